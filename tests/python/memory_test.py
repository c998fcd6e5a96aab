"""Memory that the package reads and writes: strides, results in place, overlaps, untouched entries."""

import unittest

import normscope
import numpy as np
from reference import TOLERANCES, ArrayTest, dtype


class Memory(ArrayTest):
    def rows(self, *shape, name="float32"):
        return self.random.normal(0.3, 1.0, shape).astype(dtype(name))

    def layouts(self, name):
        """Arrays of one shape and type in all layouts of NumPy."""
        x = self.rows(6, 8, 20, name=name)
        yield "every other row", x[:, ::2]
        yield "wider rows", x[..., 3:15]
        yield "one row for all", np.broadcast_to(x[0, 0], (5, 20))
        yield "rows backwards", x[::-1]
        yield "features backwards", x[..., ::-1]
        yield "every other feature", x[..., ::2]
        yield "axes swapped", x.transpose(1, 0, 2)
        yield "features first", x.transpose(2, 1, 0)
        yield "part of the rows", x[:, :5]
        yield "one axis of one", x[:, :1]
        yield "columns of Fortran", np.asfortranarray(x[0])
        yield "read-only", np.frombuffer(x.tobytes(), x.dtype).reshape(x.shape)
        packed = np.zeros(48, [("flag", "u1"), ("row", x.dtype, 20)])
        packed["row"] = x.reshape(48, 20)
        yield "no whole element apart", packed["row"]
        if name != "bfloat16":
            yield "other byte order", x.astype(x.dtype.newbyteorder())

    def check_layouts(self, name):
        for layout, x in self.layouts(name):
            with self.subTest(layout):
                plain = np.array(x, x.dtype.newbyteorder("="), order="C")
                dy = self.rows(*x.shape, name=name)
                before = x.tobytes()
                self.assert_same_bits(normscope.normalize(x), normscope.normalize(plain))
                for one, other in zip(normscope.add_normalize(dy, x), normscope.add_normalize(dy, plain)):
                    self.assert_same_bits(one, other)
                for one, other in zip(normscope.normalize_backward(dy, x), normscope.normalize_backward(dy, plain)):
                    self.assert_same_bits(one, other)
                self.assert_same_bits(normscope.jacobian_vector(x, dy), normscope.jacobian_vector(plain, dy))
                self.assert_same_bits(normscope.curvature(x), normscope.curvature(plain))
                self.assertEqual(x.tobytes(), before)

    def test_rows_are_not_copied_where_they_have_one_stride(self):
        x = self.rows(2, 2, 3, 12)
        for view in (x, x[..., 2:10], x[:, :, ::3], x.reshape(12, 12)[::4], x[:1, :, 1:2, :5]):
            inside = view.copy()
            self.assertIs(normscope.normalize(view, out=view), view)
            self.assert_same_bits(view.copy(), normscope.normalize(inside))

    def test_results_are_written_into_given_arrays(self):
        x, residual = self.rows(2, 4, 16)
        matrix = np.full((4, 40), 7.0, np.float32)
        out = matrix[:, 8:24]
        self.assertIs(normscope.normalize(x, out=out), out)
        self.assert_same_bits(out.copy(), normscope.normalize(x))
        self.assertTrue((np.delete(matrix, np.s_[8:24], 1) == 7).all())
        total, y = normscope.add_normalize(x, residual, out=(None, out))
        self.assertIs(y, out)
        self.assert_same_bits(total, x + residual)

    def test_in_place(self):
        x, residual = self.rows(2, 4, 16)
        total, y = normscope.add_normalize(x, residual)
        dx, _, _ = normscope.normalize_backward(x, residual)
        product = normscope.jacobian_vector(x, residual)
        for first, second in ((0, 1), (1, 0), (0, 0), (1, 1)):
            pair = [x.copy(), residual.copy()]
            results = normscope.add_normalize(*pair, out=(pair[first], pair[second]))
            self.assertIs(results[0], pair[first])
            self.assert_same_bits(results[1], y)
            if first != second:
                self.assert_same_bits(results[0], total)
        dy = residual.copy()
        self.assert_same_bits(normscope.normalize_backward(x, dy, out=dy)[0], dx)
        v = residual.astype(np.float64)
        self.assert_same_bits(normscope.jacobian_vector(x, v, out=v), product)

    def test_overlaps_read_what_was_there(self):
        """As NumPy's own functions do; an input that must not be overwritten counts as an overlap."""
        gain = self.rows(16)
        line = self.rows(200)
        x, out = line[:160].reshape(10, 16), line[7:167].reshape(10, 16)
        expected = normscope.normalize(x.copy(), gain)
        self.assert_same_bits(normscope.normalize(x, gain, out=out).copy(), expected)

        matrix = self.rows(8, 16)
        expected = normscope.normalize(matrix[1:].copy(), matrix[3].copy())
        self.assert_same_bits(normscope.normalize(matrix[1:], matrix[3], out=matrix[:-1]).copy(), expected)

        x, dy = self.rows(2, 5, 16)
        expected = normscope.normalize_backward(x, dy, gain)
        for one, other in zip(normscope.normalize_backward(x, dy, gain, out=x), expected):
            self.assert_same_bits(one, other)

        for compute in (normscope.jacobian_vector, normscope.vector_jacobian):
            x, v = self.random.normal(size=(2, 5, 16))
            expected = compute(x, v, gain)
            self.assert_same_bits(compute(x, v, gain, out=x), expected)

        x, y = self.rows(2, 5, 16)
        other = np.concatenate([y, y])
        expected = normscope.add_normalize(x, other[2:7].copy())
        results = normscope.add_normalize(x, other[2:7], out=(x, other[:5]))
        for one, two in zip(results, expected):
            self.assert_same_bits(np.array(one), two)

    def test_columns_side_by_side_do_not_overlap(self):
        matrix = self.rows(6, 32)
        expected = normscope.normalize(matrix[:, :16].copy())
        normscope.normalize(matrix[:, :16], out=matrix[:, 16:])
        self.assert_same_bits(matrix[:, 16:].copy(), expected)


def add_tests():
    for name in TOLERANCES:
        setattr(Memory, f"test_layouts_do_not_matter_in_{name}", lambda self, n=name: self.check_layouts(n))


add_tests()
if __name__ == "__main__":
    unittest.main()

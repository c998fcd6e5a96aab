"""Arrays of other libraries: torch's tensors, and number types that NumPy lacks."""

import types
import unittest

import normscope
import numpy as np
import reference
from reference import ArrayTest


class Tensor:
    """The part of a torch tensor's interface that the package uses, over NumPy's memory."""

    def __init__(self, array):
        self.array = array
        self.dtype = f"torch.{array.dtype}"

    def __dlpack__(self):
        return self.array.__dlpack__()

    def new_empty(self, shape):
        return Tensor(np.empty(shape, self.array.dtype))

    def copy_(self, other):
        self.array[...] = other.array

    def double(self):
        return Tensor(self.array.astype(np.float64))

    def float(self):
        return Tensor(self.array.astype(np.float32))

    def reshape(self, shape):
        return Tensor(self.array.reshape(shape))

    def __getitem__(self, key):
        return Tensor(self.array[key])


class Protocols(ArrayTest):
    """Reading of arrays, tested without the libraries that define them."""

    def test_tensors_are_read_in_place(self):
        for name in ("float64", "float32", "float16"):
            x, dy = self.random.normal(size=(2, 6, 4, 16)).astype(name)
            gain = np.arange(16.0).astype(name)
            for part in (np.s_[...], np.s_[::2], np.s_[:, 1:], np.s_[..., 3:9], np.s_[..., ::2]):
                x_part, dy_part, gain_part = x[part], dy[part], gain[: x[part].shape[-1]]
                tensors = Tensor(x_part), Tensor(dy_part), Tensor(gain_part)
                for one, other in zip(normscope.normalize_backward(*tensors),
                                      normscope.normalize_backward(x_part, dy_part, gain_part)):
                    self.assert_same_bits(one.array, other)
                self.assert_same_bits(normscope.curvature(tensors[0]).array, normscope.curvature(x_part))
        place = Tensor(x[1])
        expected = normscope.normalize(x[1])
        self.assertIs(normscope.normalize(place, out=place), place)
        self.assert_same_bits(x[1], expected)

    def test_what_has_no_more_than_dlpack_is_read_in_place(self):
        class Producer:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **_):
                return self.array.__dlpack__()

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

        x = self.random.normal(size=(5, 8))
        self.assert_same_bits(normscope.normalize(Producer(x)), normscope.normalize(x))
        self.assertEqual(normscope.select(Producer(x)).selectable, normscope.select(x).selectable)
        self.assert_same_bits(normscope.Norm(8).sigma(Producer(x)), normscope.Norm(8).sigma(x))
        with self.assertRaisesRegex(TypeError, "^normalize: x is int64, expected float64"):
            normscope.normalize(Producer(np.arange(8)))

    def test_tensors_of_other_numbers_are_refused(self):
        with self.assertRaisesRegex(TypeError, "^normalize: x is torch.int64, expected float64, float32"):
            normscope.normalize(Tensor(np.arange(8)))
        with self.assertRaisesRegex(ValueError, "^normalize: x has no axis"):
            normscope.normalize(Tensor(np.array(1.0)))

    def test_bfloat16_is_known_by_the_name_of_its_dtype(self):
        class Halves(np.ndarray):
            dtype = property(lambda self: types.SimpleNamespace(name="bfloat16"))

        def halves(values):
            return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).view(Halves)

        def numbers(array):
            return (array.view(np.ndarray).astype(np.uint32) << 16).view(np.float32)

        x, dy, out, sums = (halves(values) for values in self.random.normal(size=(4, 5, 12)))
        gain = np.arange(12.0)
        normscope.normalize(x, gain, out=out)
        self.assert_close(numbers(out), reference.normalize(numbers(x).astype(float), gain), "bfloat16")
        normscope.add_normalize(x, dy, gain, out=(sums, out))
        self.assert_close(numbers(sums), numbers(x).astype(float) + numbers(dy), "bfloat16")
        self.assert_close(numbers(out), reference.normalize(numbers(sums).astype(float), gain), "bfloat16")
        _, dgain, dbias = normscope.normalize_backward(x, dy, gain, out=out)
        dx, *gradients = reference.backward(numbers(x).astype(float), numbers(dy).astype(float), gain)
        self.assert_close(numbers(out), dx, "bfloat16")
        for one, other in zip((dgain, dbias), gradients):
            self.assertEqual(one.dtype, np.float32)
            self.assert_close(one, other, "float32")


class Tensors(ArrayTest):
    """Tensors of torch itself."""

    def setUp(self):
        super().setUp()
        if reference.torch is None:
            self.skipTest("torch's tensors are left out: there is no torch")
        self.torch = reference.torch

    def test_tensors_give_tensors_of_the_same_bits(self):
        torch = self.torch
        for name in ("float64", "float32", "float16", "bfloat16"):
            x, dy = (torch.from_numpy(rows).to(getattr(torch, name)) for rows in self.random.normal(size=(2, 4, 16)))
            gain = torch.from_numpy(self.random.normal(size=16)).to(x.dtype)
            as_numbers = lambda tensor: tensor.double().numpy()
            y = normscope.normalize(x, gain)
            self.assertEqual(y.dtype, x.dtype)
            self.assert_close(as_numbers(y), reference.normalize(as_numbers(x), as_numbers(gain)), name)
            results = normscope.normalize_backward(x, dy, gain)
            for result, one in zip(results, reference.backward(as_numbers(x), as_numbers(dy), as_numbers(gain))):
                self.assert_close(as_numbers(result), one, name)
            self.assertTrue(torch.equal(normscope.add_normalize(x, dy)[0], x + dy))
            self.assertTrue(torch.equal(normscope.normalize(x.T), normscope.normalize(x.T.contiguous())))
            self.assertIs(normscope.normalize(x, gain, out=x), x)
            self.assertTrue(torch.equal(x, y))
            self.assertEqual(normscope.curvature(x.reshape(2, 2, 16)).shape, (2, 2))

    def test_tensors_with_gradients_or_integers_are_refused(self):
        with self.assertRaisesRegex(ValueError, "normalize: gain .*use tensor.detach"):
            normscope.normalize(self.torch.ones(2, 8), self.torch.ones(8, requires_grad=True))
        with self.assertRaisesRegex(TypeError, "normalize: x is torch.int64, expected float64"):
            normscope.normalize(self.torch.ones(2, 8, dtype=self.torch.int64))


if __name__ == "__main__":
    unittest.main()

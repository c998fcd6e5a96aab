"""Every function of the package against the formulas, over kinds, groups and types."""

import itertools
import os
import sys
import threading
import unittest

import normscope
import numpy as np
import reference
from reference import ELEMENTWISE, EVERY_KIND, KINDS, TOLERANCES, ArrayTest, dtype, wide

SHAPES = ((12,), (5, 12), (2, 3, 12), (1, 1, 1, 768))


class Kernels(ArrayTest):
    def cases(self, name, shapes=SHAPES):
        """Rows of that type, gain and bias for them, and the keyword arguments."""
        for shape, kind, groups, plain in itertools.product(shapes, KINDS, (1, 4), (True, False)):
            x = self.random.normal(0.3, 2.0, shape).astype(dtype(name))
            wider = np.float64 if name == "float64" else np.float32
            gain, bias = self.random.normal(size=(2, shape[-1])).astype(wider)
            options = {"kind": kind, "groups": groups, "eps": 1e-3}
            with self.subTest(type=name, shape=shape, plain=plain, **options):
                yield (x, None, None, options) if plain else (x, gain, bias, options)

    def check_forward(self, name):
        for x, gain, bias, options in self.cases(name):
            y = normscope.normalize(x, gain, bias, **options)
            self.assertEqual(y.dtype, x.dtype)
            self.assert_close(y, reference.normalize(wide(x), gain, bias, **options), name)

    def check_added(self, name):
        for x, gain, bias, options in self.cases(name):
            residual = self.random.normal(size=x.shape).astype(x.dtype)
            total, y = normscope.add_normalize(x, residual, gain, bias, **options)
            self.assert_same_bits(total, x + residual)
            self.assert_same_bits(y, normscope.normalize(total, gain, bias, **options))

    def check_backward(self, name):
        for x, gain, _, options in self.cases(name, SHAPES[:3]):
            dy = self.random.normal(size=x.shape).astype(x.dtype)
            results = normscope.normalize_backward(x, dy, gain, **options)
            expected = reference.backward(wide(x), wide(dy), gain, **options)
            self.assertEqual([result.dtype for result in results],
                             [x.dtype, *2 * [np.float64 if name == "float64" else np.float32]])
            for result, one in zip(results, expected):
                self.assert_close(result, one, name)
            alone = normscope.normalize_backward(x, dy, gain, parameters=False, **options)
            self.assertEqual(alone[1:], (None, None))
            self.assert_same_bits(alone[0], results[0])

    def check_products(self, name):
        for x, gain, _, options in self.cases(name, SHAPES[:3]):
            vectors = self.random.normal(size=x.shape).astype(x.dtype)
            rows = wide(x).reshape(-1, x.shape[-1])
            slopes = wide(vectors).reshape(rows.shape)
            jacobians = [reference.jacobian(row, gain, **options) for row in rows]
            forward = np.stack([j @ v for j, v in zip(jacobians, slopes)]).reshape(x.shape)
            back = np.stack([j.T @ v for j, v in zip(jacobians, slopes)]).reshape(x.shape)
            for result, one in ((normscope.jacobian_vector(x, vectors, gain, **options), forward),
                                (normscope.vector_jacobian(x, vectors, gain, **options), back)):
                self.assertEqual(result.dtype, np.float64)
                self.assert_close(result, one, "float64")

    def test_hessian_products_are_those_of_differences_of_jacobians(self):
        step = 1e-5
        for kind, groups in itertools.product(KINDS, (1, 3)):
            options = {"kind": kind, "groups": groups, "eps": 1e-3}
            x, w, v = self.random.normal(0.3, 1.0, (3, 2, 4, 12))
            gain = self.random.normal(size=12)
            ahead, behind = (normscope.vector_jacobian(x + at * v, w, gain, **options) for at in (step, -step))
            product = normscope.hessian_vector(x, w, v, gain, **options)
            np.testing.assert_allclose(product, (ahead - behind) / (2 * step), atol=1e-7 * np.abs(product).max())
            self.assert_same_bits(normscope.hessian_vector(x, w, v, gain, out=w, **options), product)
            self.assertTrue(np.abs(product).max() > 1e-3)

    def test_curvature_is_the_closed_form(self):
        x = self.random.normal(0.5, 2.0, (3, 4, 24))
        for groups in (1, 4):
            blocks = x.reshape(3, 4, groups, -1)
            n = blocks.shape[-1]
            for kind, one in (("layer", 3 * (n - 2) / n / blocks.var(-1) ** 2),
                              ("rms", 3 * (n - 1) / n / (blocks**2).mean(-1) ** 2),
                              ("spherical", 3 * (n - 1) / (blocks**2).sum(-1) ** 2)):
                with self.subTest(kind=kind, groups=groups):
                    measures = normscope.curvature(x, kind=kind, groups=groups, eps=0)
                    np.testing.assert_allclose(measures, one.sum(-1), rtol=1e-11)
        number = normscope.curvature(x[0, 0])
        self.assertIsInstance(number, float)
        self.assertEqual(number, normscope.curvature(x)[0, 0])

    def test_gains_are_taken_in_the_precision_of_the_statistics(self):
        gain = self.random.normal(size=12)
        for name in ("float32", "float16"):
            x = self.random.normal(size=(5, 12)).astype(name)
            self.assert_same_bits(normscope.normalize(x, gain), normscope.normalize(x, gain.astype(np.float32)))
            self.assert_same_bits(normscope.normalize(x, list(gain)), normscope.normalize(x, gain))
        x = self.random.normal(size=(5, 12))
        self.assert_close(normscope.normalize(x, gain[::-1]), reference.normalize(x, gain[::-1]), "float64")

    def test_lists_are_float64(self):
        y = normscope.normalize([[1, 2, 3, 6]], eps=0)
        self.assert_close(y, reference.normalize(np.array([[1.0, 2.0, 3.0, 6.0]]), eps=0), "float64")

    def test_zero_rows_give_zero_rows(self):
        for shape in ((0, 8), (3, 0, 8)):
            x = np.empty(shape, np.float32)
            self.assertEqual(normscope.normalize(x).shape, shape)
            self.assertEqual(normscope.add_normalize(x, x)[1].shape, shape)
            self.assertEqual(normscope.curvature(x).shape, shape[:-1])
            dx, dgain, dbias = normscope.normalize_backward(x, x)
            self.assertEqual((dx.shape, dgain.tolist(), dbias.tolist()), (shape, [0.0] * 8, [0.0] * 8))

    def test_edge_cases_are_those_of_the_library(self):
        bias = np.arange(4.0)
        self.assert_same_bits(normscope.normalize(np.full((1, 4), 7.0), None, bias, eps=0), bias[None])
        bad = normscope.normalize(np.array([[np.nan, 1, 2, 3], [1, 2, 3, 6]], np.float32))
        self.assertEqual(np.isnan(bad).tolist(), [[True] * 4, [False] * 4])
        self.assertEqual(normscope.normalize(np.array([[3.0]])).tolist(), [[0.0]])

    def test_bits_do_not_depend_on_threads(self):
        x, dy = self.random.normal(size=(2, 800, 768)).astype(np.float32)
        for call in (lambda threads: [normscope.normalize(x, threads=threads)],
                     lambda threads: normscope.add_normalize(x, dy, threads=threads),
                     lambda threads: normscope.normalize_backward(x, dy, threads=threads),
                     lambda threads: [normscope.vector_jacobian(x, dy, threads=threads)],
                     lambda threads: [normscope.curvature(x, threads=threads)]):
            for threads in (0, 2, 7):
                for one, many in zip(call(1), call(threads)):
                    self.assert_same_bits(many, one, threads)

    def test_a_child_process_computes_with_threads_of_its_own(self):
        x = self.random.normal(size=(800, 768))
        expected = normscope.normalize(x, threads=2)
        child = os.fork()
        if child == 0:
            same = normscope.normalize(x, threads=2).tobytes() == expected.tobytes()
            os._exit(0 if same else 3)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)

    def test_other_threads_of_python_run_meanwhile(self):
        x = self.random.normal(size=(2000, 2048))
        interval = sys.getswitchinterval()
        self.addCleanup(sys.setswitchinterval, interval)
        # With a long switch interval, threads only run when another releases the interpreter.
        sys.setswitchinterval(1000)

        def order():
            events, started = [], threading.Event()

            def work():
                started.set()
                normscope.normalize(x, threads=1)
                events.append("computed")

            worker = threading.Thread(target=work)
            worker.start()
            started.wait()
            events.append("meanwhile")
            worker.join()
            return events

        # On a busy machine, some attempts may be late.
        self.assertTrue(any(order() == ["meanwhile", "computed"] for _ in range(20)))


def add_tests():
    for name in TOLERANCES:
        for check in ("forward", "added", "backward", "products"):
            method = getattr(Kernels, f"check_{check}")
            setattr(Kernels, f"test_{check}_is_the_formula_in_{name}", lambda self, m=method, n=name: m(self, n))


add_tests()


class Elementwise(unittest.TestCase):
    def test_forward_and_gradients_are_those_of_numpy(self):
        random = np.random.default_rng(7)
        x, dy = random.normal(size=(2, 50, 8))
        gain, v = random.normal(size=8), random.normal(size=x.shape)
        for kind in EVERY_KIND.keys() - set(KINDS):
            f, slope = ELEMENTWISE[kind]
            options = {"kind": kind, "alpha": 0.7, "shift": 0.2 if EVERY_KIND[kind].has_shift else 0.0}
            with self.subTest(**options):
                t = 0.7 * x + options["shift"]
                np.testing.assert_allclose(normscope.normalize(x, gain, **options), f(t) * gain, rtol=1e-14)
                dx, dgain, dbias, dalpha, dshift = normscope.normalize_backward(x, dy, gain, **options)
                inner = dy * gain * slope(t)
                np.testing.assert_allclose(dx, 0.7 * inner, rtol=1e-12, atol=1e-14)
                np.testing.assert_allclose(dgain, (dy * f(t)).sum(0), rtol=1e-12)
                np.testing.assert_allclose(dbias, dy.sum(0), rtol=1e-12)
                np.testing.assert_allclose([dalpha, dshift], [(inner * x).sum(), inner.sum()], rtol=1e-12)
                np.testing.assert_allclose(normscope.jacobian_vector(x, v, gain, **options), 0.7 * gain * slope(t) * v,
                                           rtol=1e-12, atol=1e-14)

    def test_no_two_kinds_agree_at_a_point(self):
        x = np.random.default_rng(8).normal(size=(1, 6)) + 0.4
        values = {kind: normscope.normalize(x, kind=kind, eps=0.1) for kind in EVERY_KIND}
        for one, other in itertools.combinations(EVERY_KIND, 2):
            with self.subTest(one=one, other=other):
                self.assertGreater(np.abs(values[one] - values[other]).min(), 1e-4)


if __name__ == "__main__":
    unittest.main()

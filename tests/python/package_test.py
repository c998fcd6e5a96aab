"""The package's public face: signatures, stubs, messages, the examples of its page."""

import doctest
import inspect
import os
import unittest
from pathlib import Path

import normscope
import numpy as np
from normscope import _core, kernels

PACKAGE = Path(os.environ["NORMSCOPE_SOURCE_DIR"]) / "python"
FUNCTIONS = [function for function in vars(kernels).values() if inspect.isfunction(function)]


class Package(unittest.TestCase):
    def refused(self, error, message, function, *arguments, **keywords):
        with self.assertRaises(error) as caught:
            function(*arguments, **keywords)
        self.assertEqual(str(caught.exception), message)

    def test_signatures_are_true(self):
        """Every keyword of a signature is accepted, and every default is valid."""
        x = np.arange(24.0).reshape(3, 8) ** 2
        for function in FUNCTIONS:
            parameters = inspect.signature(function).parameters.values()
            arrays = [x for parameter in parameters if parameter.default is parameter.empty]
            named = {p.name: p.default for p in parameters if p.default is not p.empty}
            for one, other in zip(np.asarray(function(*arrays), object).ravel(),
                                  np.asarray(function(*arrays, **named), object).ravel()):
                np.testing.assert_array_equal(one, other)
            self.assertIn("Shapes", function.__doc__)

    def test_everything_public_is_documented(self):
        """Functions say what they refuse, and the shapes of arrays; methods and classes at least what they are."""
        public = {name: getattr(normscope, name) for name in normscope.__all__}
        public |= {f"signature.{name}": getattr(normscope.signature, name) for name in normscope.signature.__all__}
        for name, thing in public.items():
            if inspect.ismodule(thing):
                continue
            with self.subTest(name):
                self.assertTrue(inspect.getdoc(thing))
                if inspect.isfunction(thing):
                    self.assertIn("Errors", thing.__doc__)
                    parameters = inspect.signature(thing).parameters
                    self.assertTrue(all(p.annotation is not p.empty for p in parameters.values()))
                    if parameters.keys() & {"x", "keys", "unembedding", "classes", "labels", "outputs"}:
                        self.assertIn("Shapes", thing.__doc__)
                for method, value in vars(thing).items() if inspect.isclass(thing) else ():
                    if not method.startswith("_") and (callable(value) or isinstance(value, property)):
                        self.assertTrue(inspect.getdoc(value), method)

    def test_version(self):
        self.assertRegex(normscope.__version__, r"^\d+\.\d+\.\d+$")
        self.assertEqual(normscope.__version__, _core.__version__)

    def test_values_are_refused_in_one_line(self):
        x = np.ones((2, 8), np.float32)
        refused = lambda *rest, **named: self.refused(ValueError, *rest, **named)
        refused('unknown norm kind "batch", expected layer, rms, spherical, dyt or derf', normscope.normalize, x, kind="batch")
        refused("norm: 3 groups do not divide width 8", normscope.normalize, x, groups=3)
        refused("normalize: groups is -1, expected at least 1", normscope.normalize, x, groups=-1)
        refused("curvature: threads is -1, expected at least 0", normscope.curvature, x, threads=-1)
        refused("norm: eps is -1, expected a finite number >= 0", normscope.normalize_backward, x, x, eps=-1)
        refused("norm: width is 0, expected at least 1", normscope.normalize, x[:, :0])
        refused("normalize: x has no axis, expected at least one", normscope.normalize, 3.0)
        refused("normalize: gain has shape (7,), expected (8,)", normscope.normalize, x, np.ones(7))
        refused("normalize: bias has shape (0,), expected (8,)", normscope.normalize, x, None, np.ones(0))
        refused("normalize: gain has shape (2, 8), expected (8,)", normscope.normalize, x, x)
        refused("jacobian_vector: v has shape (8,), expected (2, 8), as x has", normscope.jacobian_vector, x, x[0])
        refused("norm: gain[0] is inf, expected a finite number", normscope.curvature, x, np.full(8, np.inf))

    def test_types_are_refused_in_one_line(self):
        x = np.ones((2, 8), np.float32)
        refused = lambda *rest, **named: self.refused(TypeError, *rest, **named)
        known = "expected float64, float32, float16 or bfloat16"
        for what in ("int64", "bool", "complex64", "object", "float128", "uint16"):
            refused(f"normalize: x is {what}, {known}", normscope.normalize, x.astype(what))
        refused("add_normalize: residual is float64, expected float32, as x is",
                normscope.add_normalize, x, x.astype(float))
        refused("normalize_backward: dy is float16, expected float32, as x is",
                normscope.normalize_backward, x, x.astype(np.float16))
        refused("normalize: groups is 2.0, expected an integer", normscope.normalize, x, groups=2.0)
        refused("normalize: eps is 'small', expected a number", normscope.normalize, x, eps="small")
        refused("normalize: kind is 3, expected a string", normscope.normalize, x, kind=3)

    def test_unsuitable_out_arrays_are_refused(self):
        x = np.ones((4, 8), np.float32)
        fixed = x.copy()
        fixed.flags.writeable = False
        rows = "expected the last axis contiguous and the others one stride apart"
        for error, message, out in (
            (ValueError, "normalize: out is read-only", fixed),
            (ValueError, f"normalize: out is not laid out in rows, {rows}", np.ones((4, 16), np.float32)[:, ::2]),
            (ValueError, f"normalize: out is not laid out in rows, {rows}", x[::-1]),
            (ValueError, "normalize: out has shape (8,), expected (4, 8), as x has", x[0]),
            (TypeError, "normalize: out is float64, expected float32, as x is", np.ones((4, 8))),
            (TypeError, "normalize: out is no array", [[0.0] * 8] * 4),
        ):
            self.refused(error, message, normscope.normalize, x, out=out)
        self.refused(TypeError, "vector_jacobian: out is float32, expected float64, as x in float64 is",
                     normscope.vector_jacobian, x, x, out=x.copy())
        self.refused(TypeError, "add_normalize: out is no pair, expected (sum, y)",
                     normscope.add_normalize, x, x, out=x.copy())
        line = np.ones(48, np.float32)
        self.refused(ValueError, "add_normalize: the two of out overlap, expected one array or two",
                     normscope.add_normalize, x, x, out=(line[:32].reshape(4, 8), line[16:].reshape(4, 8)))

    def test_examples_print_what_they_show(self):
        os.chdir(PACKAGE.parent)  # examples name models of the repository
        pages = (PACKAGE / "README.md", PACKAGE.parent / "README.md")
        for failed, tried in (*(doctest.testfile(str(page), module_relative=False) for page in pages),
                              doctest.testmod(normscope)):
            self.assertTrue(tried)
            self.assertFalse(failed)


if __name__ == "__main__":
    unittest.main()

"""Plain formulas for the tests; derivatives by complex steps, which do not cancel."""

import math
import unittest

import numpy as np
from normscope._kinds import KINDS as EVERY_KIND

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None
try:
    import torch
except ImportError:
    torch = None

KINDS = tuple(kind for kind, facts in EVERY_KIND.items() if facts.divisor != "nothing")
# A block and eps, by a formula for each kind: a kind of the table that has none here is a KeyError.
FORMULAS = {
    "layer": lambda x, eps: FORMULAS["rms"](x - x.mean(-1, keepdims=True), eps),
    "rms": lambda x, eps: x / np.sqrt((x**2).mean(-1, keepdims=True) + eps),
    "spherical": lambda x, eps: x / np.sqrt((x**2).sum(-1, keepdims=True) + eps),
}
# f(t) and its derivative.
ELEMENTWISE = {
    "dyt": (np.tanh, lambda t: 1 - np.tanh(t) ** 2),
    "derf": (np.vectorize(math.erf), lambda t: 2 / math.sqrt(math.pi) * np.exp(-(t**2))),
}
# Relative to the largest entry: a few roundings of the statistics, then one to the type.
TOLERANCES = {"float64": 1e-14, "float32": 4e-6, "float16": 1e-3, "bfloat16": 8e-3}


def dtype(name):
    """The dtype of that name; skips the test if no library defines it."""
    if name != "bfloat16":
        return np.dtype(name)
    if ml_dtypes is None:
        raise unittest.SkipTest("bfloat16 is left out: there is no ml_dtypes")
    return np.dtype(ml_dtypes.bfloat16)


def wide(array):
    """The array as float64, in which NumPy computes."""
    return np.asarray(array).astype(np.float64)


def normalize(x, gain=None, bias=None, *, kind="layer", groups=1, eps=1e-5):
    y = FORMULAS[kind](x.reshape(*x.shape[:-1], groups, -1), eps).reshape(x.shape)
    return y * (1.0 if gain is None else gain) + (0.0 if bias is None else bias)


def jacobian(row, gain=None, **options):
    """dy[i]/dx[j] at [i, j]."""
    step = 1e-40
    columns = normalize(row + 1j * step * np.eye(len(row)), gain, **options).imag / step
    return columns.T


def backward(x, dy, gain=None, **options):
    rows, slopes = x.reshape(-1, x.shape[-1]), dy.reshape(-1, x.shape[-1])
    dx = np.stack([jacobian(row, gain, **options).T @ slope for row, slope in zip(rows, slopes)])
    return dx.reshape(x.shape), (slopes * normalize(rows, **options)).sum(0), slopes.sum(0)


class ArrayTest(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(3)

    def assert_close(self, got, expected, name, message=None):
        self.assertEqual(got.shape, expected.shape, message)
        error = np.abs(wide(got) - expected).max(initial=0.0)
        self.assertLessEqual(error, TOLERANCES[name] * max(1.0, np.abs(expected).max(initial=0.0)), message)

    def assert_same_bits(self, got, expected, message=None):
        self.assertEqual((got.dtype, got.shape), (expected.dtype, expected.shape), message)
        self.assertEqual(got.tobytes(), expected.tobytes(), message)

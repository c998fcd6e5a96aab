"""Plain formulas for the tests; derivatives by complex steps, which do not cancel."""

import unittest

import numpy as np

try:
    import ml_dtypes
except ImportError:
    ml_dtypes = None
try:
    import torch
except ImportError:
    torch = None

KINDS = ("layer", "rms", "spherical")
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
    blocks = x.reshape(*x.shape[:-1], groups, -1)
    if kind == "layer":
        blocks = blocks - blocks.mean(-1, keepdims=True)
    squares = blocks**2
    size = squares.sum(-1, keepdims=True) if kind == "spherical" else squares.mean(-1, keepdims=True)
    y = (blocks / np.sqrt(size + eps)).reshape(x.shape)
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

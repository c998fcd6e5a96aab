"""The problem of a line of the table, and the interface of a contender."""

from dataclasses import dataclass
from typing import Callable, NamedTuple

import ml_dtypes
import numpy as np

DTYPES = {"float32": np.dtype(np.float32), "bfloat16": np.dtype(ml_dtypes.bfloat16), "float16": np.dtype(np.float16)}


@dataclass
class Problem:
    """Rows to normalize; every number is exact in `dtype`, in whatever type a contender holds it."""

    x: np.ndarray
    dy: np.ndarray
    gain: np.ndarray
    bias: np.ndarray
    dtype: str = "float32"
    threads: int = 1
    eps: float = 1e-5

    @property
    def width(self):
        return self.x.shape[1]


class Run(NamedTuple):
    """One contender: `call` does the work once, `answer` is its result as float64 arrays."""

    call: Callable[[], object]
    answer: Callable[[], list]


def random_problem(rows, width, dtype, threads):
    random = np.random.default_rng(rows + width)
    draw = lambda *shape: random.standard_normal(shape, np.float32).astype(DTYPES[dtype])
    x, dy = draw(rows, width), draw(rows, width)
    return Problem(x, dy, draw(width), draw(width), dtype, threads)


def numbers(*arrays):
    return [np.asarray(array).astype(np.float64) for array in arrays]

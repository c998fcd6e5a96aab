"""Ours, through the Python package."""

import normscope
import numpy as np

from problem import Run, numbers


def _norm(kind="layer", groups=1):
    def run(problem):
        x, gain, bias = problem.x, problem.gain.astype(np.float32), problem.bias.astype(np.float32)
        y, threads, eps = np.empty_like(x), problem.threads, problem.eps
        bias = bias if kind == "layer" else None
        call = lambda: normscope.normalize(x, gain, bias, kind=kind, groups=groups, eps=eps, out=y, threads=threads)
        return Run(call, lambda: numbers(y))

    return run


def _residual(problem):
    x, other, gain, bias = problem.x, problem.dy, problem.gain.astype(np.float32), problem.bias.astype(np.float32)
    out, threads, eps = (np.empty_like(x), np.empty_like(x)), problem.threads, problem.eps
    call = lambda: normscope.add_normalize(x, other, gain, bias, eps=eps, out=out, threads=threads)
    return Run(call, lambda: numbers(*out))


def _backward(problem):
    x, dy, gain = problem.x, problem.dy, problem.gain.astype(np.float32)
    dx, threads, eps = np.empty_like(x), problem.threads, problem.eps
    call = lambda: normscope.normalize_backward(x, dy, gain, eps=eps, out=dx, threads=threads)
    return Run(call, lambda: numbers(*call()))


NAME = "normscope"
TASKS = {"forward": _norm(), "backward": _backward, "residual": _residual, "rms": _norm("rms"),
         "8 groups": _norm(groups=8)}

"""PyTorch's own functions, without a graph to keep."""

import numpy as np
import torch
from torch.nn import functional

from problem import DTYPES, Run, numbers

torch.inference_mode(True).__enter__()


def tensor(array):
    """The same memory; torch reads no bfloat16 of NumPy's."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _run(problem, compute, gains="float32"):
    """`compute(x, gain, bias)` gives a tuple. Gains of float32 are what torch's layer_norm is fastest with."""
    torch.set_num_threads(problem.threads)
    x = tensor(problem.x)
    gain, bias = (tensor(array.astype(DTYPES[gains])) for array in (problem.gain, problem.bias))
    call = lambda: compute(x, gain, bias)
    return Run(call, lambda: numbers(*(result.double() for result in call())))


def _norm(problem):
    width = (problem.width,)
    return _run(problem, lambda x, gain, bias: (functional.layer_norm(x, width, gain, bias, problem.eps),))


def _rms(problem):
    width = (problem.width,)
    compute = lambda x, gain, _: (functional.rms_norm(x, width, gain, problem.eps),)
    return _run(problem, compute, gains=problem.dtype)


def _groups(problem):
    return _run(problem, lambda x, gain, bias: (functional.group_norm(x, 8, gain, bias, problem.eps),))


def _residual(problem):
    width, other = (problem.width,), tensor(problem.dy)

    def compute(x, gain, bias):
        total = x + other
        return total, functional.layer_norm(total, width, gain, bias, problem.eps)

    return _run(problem, compute)


def _backward(problem):
    """With the statistics of the forward pass given, which ours recomputes."""
    width, dy = [problem.width], tensor(problem.dy)
    kept = []

    def compute(x, gain, bias):
        if not kept:
            kept.extend(torch.native_layer_norm(x, width, gain, bias, problem.eps)[1:])
        return torch.ops.aten.native_layer_norm_backward(dy, x, width, *kept, gain, bias, [True, True, True])

    return _run(problem, compute)


NAME = f"torch {torch.__version__.partition('+')[0]}"
TASKS = {"forward": _norm, "backward": _backward, "residual": _residual, "rms": _rms, "8 groups": _groups}

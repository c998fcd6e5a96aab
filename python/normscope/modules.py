"""What a live torch module tells of the norm that it computes."""

from __future__ import annotations

import copy
import functools
import inspect
from typing import Any, Callable, Iterator, NamedTuple

import numpy

from ._check import reason
from .analyses import Norm
from .kernels import normalize

#: Largest difference, relative to the largest output, at which a module counts as the norm that it is taken for.
_AGREES = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 5e-2}
#: Rows that decide which norm a module is, and the rows among which they are chosen.
_TRIED_ROWS, CONSIDERED_ROWS = 16, 1024
#: The spacing of numbers at 1.
_MACHINE_EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}

#: How the reason begins that a module computes no norm.
NO_NORM = "its output is neither"

#: What a module may call its gain and its bias: torch's and transformers' names, and TransformerLens's.
_GAINS = "weight", "w", "scale"
_BIASES = "bias", "b"
#: And its eps.
_EPS = "eps", "variance_epsilon", "epsilon", "layer_norm_eps", "norm_eps", "rms_norm_eps"


def says_norm(module: Any) -> bool:
    kind = type(module).__name__.lower()
    return any(word in kind for word in ("layernorm", "rmsnorm", "normalizationbridge"))


def owners_of(model: Any) -> dict[int, str]:
    """The names that a bridge of TransformerLens gives the parameters of the model inside, by their addresses."""
    named = model.tl_parameters() if hasattr(model, "tl_parameters") else {}
    return {tensor.data_ptr(): name for name, tensor in named.items() if tensor.data_ptr() != 0}


def understood(module: Any, x: Any, y: Any) -> tuple[Norm, list[str]] | str | None:
    """The norm that `module` computed when it made y of x, with what was assumed; or why that is not known; or None
    where every row of x is 0 or not finite, which tells nothing.

    Shapes   x, y (..., width)
    Errors   ValueError for values from which it cannot be told
    """
    if x is None or y is None or x.ndim == 0 or x.shape != y.shape or x.shape[-1] == 0:
        return "its first argument and its result are not tensors of one shape"
    width = x.shape[-1]
    rows, wanted = _telling_rows(x, y)
    if len(rows) == 0:
        return None
    gain, bias = _parameter(module, _GAINS), _parameter(module, _BIASES)
    if any(parameter is not None and len(parameter) != width for parameter in (gain, bias)):
        return f"its parameters have other shapes than ({width},)"
    if not numpy.isfinite(wanted).all():
        raise ValueError("its output is not finite where its input is")
    stated = stated_eps(module, dtype_of(x))
    eps = 1e-5 if stated is None else stated
    most = abs(wanted).max() * max(_AGREES.get(dtype_of(values), 0.0) for values in (x, y))
    fitting = []
    for kind in ("layer", "rms"):
        for offset in (0.0, 1.0) if gain is not None else (0.0,):
            norm = Norm(width, kind, 1, eps, None if gain is None else gain + offset, bias)
            errors = abs(normalize(rows, norm.gain, bias, kind=kind, eps=eps) - wanted)
            if errors.max() <= most:
                fitting.append((float(numpy.square(errors).mean()) ** 0.5, norm))
    if not fitting:
        return f"{NO_NORM} LayerNorm nor RMSNorm of its input with eps {eps:g}"
    fitting.sort(key=lambda entry: entry[0])
    notes = []
    if stated is None:
        notes.append(f"measured with eps {eps:g}, which fits its output; the module states none")
    # Rows without a mean do not tell the two kinds apart.
    alike = {norm.kind: norm for error, norm in reversed(fitting) if error <= max(2.0 * fitting[0][0], most / 1000.0)}
    if len(alike) == 1:
        return fitting[0][1], notes
    named = "rms" if "rms" in type(module).__name__.lower() else "layer"
    if not type(module).__module__.startswith(("torch.nn.", "normscope.")):
        notes.append("measured as LayerNorm or RMSNorm after the name of its class: its output fits both")
    return alike[named], notes


class Computed(NamedTuple):
    """What a module was found to compute."""

    norm: Norm
    gain: Any  #: its parameter, or None
    offset: float  #: what it adds to its gain
    bias: Any


def _in_float32(module: Any) -> Any:
    """A copy with parameters and buffers in float32 on the CPU; what else the module refers to, its hooks too, is shared."""
    import torch

    if module._modules:
        return copy.deepcopy(module).float().cpu()
    made = copy.copy(module)
    made._parameters = {name: None if value is None else torch.nn.Parameter(value.detach().float().cpu(), False)
                        for name, value in module._parameters.items()}
    made._buffers = {name: value if value is None else value.float().cpu() if value.is_floating_point() else value.cpu()
                     for name, value in copy.deepcopy(module._buffers).items()}
    return made


def norm_computed_by(module: Any) -> Computed | str:
    """The norm that a module computes, found by running a copy of it on rows of several sizes; or why it is not known."""
    import torch

    module = getattr(module, "original_component", None) or module  # a bridge of TransformerLens
    (_, gain), (_, bias) = gain_of(module) or (None, None), _named(module, _BIASES) or (None, None)
    if gain is None and not hasattr(module, "normalized_shape"):
        return "it has no gain that tells its width"
    if getattr(gain, "is_meta", False):
        return "its gain has no values (meta device: offloaded, or not loaded)"
    if "forward" in vars(module):
        return "its forward is replaced"
    names = [name for name, parameter in inspect.signature(type(module).forward).parameters.items()
             if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)]
    if len(names) != 2:
        return f"its forward takes {', '.join(names[1:]) or 'nothing'}, expected one tensor"
    width = gain.numel() if gain is not None else int(numpy.prod(module.normalized_shape))
    shape = tuple(getattr(module, "normalized_shape", (width,)))
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(_TRIED_ROWS, *shape, generator=generator) + 0.5
    x *= torch.logspace(-3, 1, _TRIED_ROWS).reshape(-1, *[1] * len(shape))
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            y = _in_float32(module).forward(x)
        found = understood(module, x.reshape(_TRIED_ROWS, -1), y.reshape(_TRIED_ROWS, -1))
    except Exception as error:  # code of others, which may fail in any way
        return reason(error) or type(error).__name__
    if found is None or isinstance(found, str):
        return found or "it tells nothing"
    norm, notes = found
    if notes:
        return notes[0]
    offset = 0.0 if gain is None else float(round(float(norm.gain[0] - _parameter(module, _GAINS)[0])))
    return Computed(norm, gain, offset, bias)


def uncompiled(model: Any) -> Iterator[Callable[[], Any]]:
    """Lets what `torch.compile` made of the model and of modules inside run as it was before: a graph calls no hook that
    came after it. Yields what undoes it."""
    for module in model.modules():
        inside = module._modules.get("_orig_mod")
        if inside is not None and "forward" in vars(module):
            yield functools.partial(setattr, module, "forward", module.forward)
            module.forward = inside.__call__
        elif getattr(module, "_compiled_call_impl", None) is not None:
            yield functools.partial(setattr, module, "_compiled_call_impl", module._compiled_call_impl)
            module._compiled_call_impl = None


def dtype_of(tensor: Any) -> str:
    """"float32" for torch.float32."""
    return str(tensor.dtype).rpartition(".")[2]


def _telling_rows(x: Any, y: Any) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Finite rows of x that are not 0, and those of y: the rows with the largest mean for their size, where kinds differ
    most."""
    width = x.shape[-1]
    rows = x.reshape(-1, width).double().numpy()
    good = numpy.flatnonzero(numpy.isfinite(rows).all(-1) & (rows != 0.0).any(-1))
    good = good[::max(1, -(-len(good) // CONSIDERED_ROWS))]
    means = abs(rows[good].sum(-1)) / abs(rows[good]).sum(-1)
    chosen = good[numpy.argsort(-means, kind="stable")[:_TRIED_ROWS]]
    return rows[chosen], y.reshape(-1, width).double().numpy()[chosen]


def stated_eps(module: Any, dtype: str) -> float | None:
    """The eps that a module has as an attribute; of torch's RMSNorm with eps None, that of the numbers it takes."""
    for name in _EPS:
        value = getattr(module, name, False)
        if value is None and dtype in _AGREES:
            return _MACHINE_EPS[dtype]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        if getattr(value, "ndim", None) == 0:  # a tensor
            return float(value)
    return None


def gain_of(module: Any) -> tuple[str, Any] | None:
    """Its gain and the name that it has there."""
    return _named(module, _GAINS)


def _named(module: Any, names: tuple[str, ...]) -> tuple[str, Any] | None:
    return next(((name, value) for name in names for value in [getattr(module, name, None)]
                 if hasattr(value, "detach") and value.ndim > 0), None)


def _parameter(module: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        found = getattr(module, name, None)
        if not hasattr(found, "detach"):
            continue
        if getattr(found, "is_meta", False):
            found = offloaded(module, name)
            if found is None:
                raise ValueError(f"its {name} has no values (meta device: offloaded, or not loaded)")
        return found.detach().cpu().double().flatten().numpy()
    return None


def offloaded(module: Any, name: str) -> Any:
    """A parameter on the meta device, from where accelerate keeps its values; None if it keeps none."""
    hook = getattr(module, "_hf_hook", None)
    for one in getattr(hook, "hooks", (hook,)):
        kept = getattr(one, "weights_map", None)
        if kept is not None and name in kept:
            return kept[name]
    return None

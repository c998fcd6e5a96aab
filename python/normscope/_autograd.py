"""Norms as functions of torch: the kernels with autograd, as operators for torch.compile, and as a formula of torch's
operations wherever those are recorded or transformed."""

from __future__ import annotations

import math
import types
from typing import Any, Callable, Optional

import torch
from torch import Tensor
from torch.autograd import forward_ad

from . import _core
from ._kinds import kind_facts

#: The order of the core's element types.
ELEMENTS = {torch.float64: 0, torch.float32: 1, torch.float16: 2, torch.bfloat16: 3}


def _element(x: Tensor) -> int:
    element = ELEMENTS.get(x.dtype)
    if element is None:
        raise TypeError(f"normalize: x is {x.dtype}, expected float64, float32, float16 or bfloat16")
    if not x.is_cpu:
        raise TypeError(f"normalize: x is on {x.device}, expected the CPU")
    return element


def _parameter(parameter: Optional[Tensor], width: int, element: int) -> Optional[Tensor]:
    """The parameter in the precision of the statistics, its entries side by side."""
    if parameter is None:
        return None
    if parameter.numel() != width:
        raise ValueError(f"normalize: a parameter has shape {tuple(parameter.shape)}, expected ({width},)")
    if not parameter.is_cpu:
        raise TypeError(f"normalize: a parameter is on {parameter.device}, expected the CPU")
    wide = torch.float32 if element else torch.float64
    if parameter.dtype is not wide:
        parameter = _real(parameter).to(wide)
    return _laid_out(parameter)


def _real(parameter: Tensor) -> Tensor:
    if parameter.is_complex():
        raise TypeError(f"normalize: a parameter is {parameter.dtype}, expected real numbers")
    return parameter


def _laid_out(x: Tensor) -> Tensor:
    """Its entries side by side in memory, each with its sign: x.imag may be stored with the other one."""
    return (x.resolve_neg() if x.is_neg() else x).contiguous()


def _explained(error: Exception, x: Tensor, **others: Optional[Tensor]) -> Exception:
    """Why a call failed, in our words where the reason is one of its tensors."""
    for name, tensor in {"x": x, **others}.items():
        if tensor is None:
            continue
        if tensor.layout is not torch.strided:
            return TypeError(f"normalize: {name} is {tensor.layout}, expected a dense tensor")
        if not tensor.is_cpu:
            return TypeError(f"normalize: {name} is on {tensor.device}, expected the CPU")
        if name in ("alpha", "shift") and (tensor.numel() != 1 or tensor.is_complex()):
            return ValueError(f"normalize: {name} is {tensor.dtype} of shape {tuple(tensor.shape)}, expected a scalar")
    if x.ndim == 0:
        return ValueError("normalize: x has no axis, expected at least one")
    return error


def _values(x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], alpha: Optional[Tensor],
            shift: Optional[Tensor], kind: str, groups: int, eps: float) -> Tensor:
    try:
        element = _element(x)
        x = _laid_out(x)
        y = torch.empty_like(x)
        width = x.shape[-1]
        gain, offset = _parameter(weight, width, element), _parameter(bias, width, element)
        _core.normalize_raw(element, x.data_ptr(), y.data_ptr(), x.numel() // (width or 1), width,
                            None if gain is None else gain.data_ptr(), None if offset is None else offset.data_ptr(),
                            kind, groups, eps, 1.0 if alpha is None else float(alpha),
                            0.0 if shift is None else float(shift), torch.get_num_threads())
        return y
    except Exception as error:
        raise _explained(error, x, weight=weight, bias=bias, alpha=alpha, shift=shift) from None


def _compute_gradients(
        x: Tensor, dy: Tensor, weight: Optional[Tensor], alpha: Optional[Tensor], shift: Optional[Tensor], kind: str,
        groups: int, eps: float, of_gain: bool, of_bias: bool,
) -> tuple[Tensor, Optional[Tensor], Optional[Tensor], tuple[float, float]]:
    """Those of x, of gain and bias where they are wanted, and of alpha and shift."""
    element = _element(x)
    x, dy = _laid_out(x), _laid_out(dy if dy.dtype is x.dtype else dy.to(x.dtype))
    dx = torch.empty_like(x)
    width = x.shape[-1]
    wide = torch.float32 if element else torch.float64
    gain = _parameter(weight, width, element)
    dgain = torch.empty(width, dtype=wide) if of_gain else None
    dbias = torch.empty(width, dtype=wide) if of_bias else None
    scalars = _core.normalize_backward_raw(
        element, x.data_ptr(), dy.data_ptr(), dx.data_ptr(), x.numel() // (width or 1), width,
        None if gain is None else gain.data_ptr(), None if dgain is None else dgain.data_ptr(),
        None if dbias is None else dbias.data_ptr(), kind, groups, eps, 1.0 if alpha is None else float(alpha),
        0.0 if shift is None else float(shift), torch.get_num_threads())
    return dx, dgain, dbias, scalars


def _gradients(x: Tensor, dy: Tensor, weight: Optional[Tensor], alpha: Optional[Tensor], shift: Optional[Tensor],
               kind: str, groups: int, eps: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Those of x, gain, bias, and of (alpha, shift), whether they are wanted or not."""
    dx, dgain, dbias, scalars = _compute_gradients(x, dy, weight, alpha, shift, kind, groups, eps, True, True)
    return dx, dgain, dbias, torch.tensor(scalars, dtype=dgain.dtype)


def _empty_gradients(x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    wide = torch.float64 if x.dtype is torch.float64 else torch.float32
    sizes = x.shape[-1], x.shape[-1], 2
    return (torch.empty_like(x, memory_format=torch.contiguous_format),
            *(torch.empty(size, dtype=wide, device=x.device) for size in sizes))


def _save(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    x, weight, bias, alpha, shift, *how = inputs
    ctx.save_for_backward(x, weight, bias, alpha, shift)
    ctx.how = how


def _backward_by(gradients: Callable[..., tuple[Tensor, Tensor, Tensor, Tensor]], ctx: Any,
                 dy: Tensor) -> tuple[Any, ...]:
    x, weight, bias, alpha, shift = ctx.saved_tensors
    dx, dgain, dbias, dscalars = gradients(x, dy, weight, alpha, shift, *ctx.how)
    return (dx, _as(weight, dgain), _as(bias, dbias), alpha if alpha is None else _as(alpha, dscalars[0]),
            shift if shift is None else _as(shift, dscalars[1]), None, None, None)


def _as(parameter: Optional[Tensor], gradient: Optional[Tensor]) -> Optional[Tensor]:
    if parameter is None or gradient is None:
        return None
    if gradient.dtype is not parameter.dtype:
        gradient = gradient.to(parameter.dtype)
    return gradient if gradient.shape == parameter.shape else gradient.reshape(parameter.shape)


#: What `_Normalize` has where there is neither alpha nor shift.
_NO_SCALARS = None, None


class _Normalize(torch.autograd.Function):
    """The norm in eager mode, where a registered operator costs several times what a small call computes."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], how: tuple[str, int, float],
                *scalars: Optional[Tensor]) -> Tensor:
        ctx.save_for_backward(x, weight, bias, *scalars)
        ctx.how = how
        return _values(x, weight, bias, *(scalars or _NO_SCALARS), *how)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
        x, weight, bias, *scalars = ctx.saved_tensors
        alpha, shift = scalars or _NO_SCALARS
        if torch.is_grad_enabled() or not _is_plain(dy, x, weight) or _is_recording() or not _is_stored(dy):
            # Derivatives of these gradients, several dy at once (torch.vmap), or a record of them may be wanted.
            dx, dgain, dbias, *dscalars = _formula_gradients(dy, x, weight, bias, alpha, shift, *ctx.how)
            return dx, dgain, dbias, None, *(dscalars if scalars else ())
        dx, dgain, dbias, dscalars = _compute_gradients(x, dy, weight, alpha, shift, *ctx.how, weight is not None,
                                                        bias is not None)
        return (dx, _as(weight, dgain), _as(bias, dbias), None,
                *(_as(scalar, torch.as_tensor(dscalar)) for scalar, dscalar in zip(scalars, dscalars)))


class _NormalizePlain(torch.autograd.Function):
    """The same by functions of the core, for tensors that it reads itself."""

    forward = staticmethod(_core.record_tensor)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
        found = NotImplemented if _is_compiling() else _core.gradients_of_tensor(ctx, dy)
        return _Normalize.backward(ctx, dy) if found is NotImplemented else found


# The norm as operators, which torch.compile keeps in its graphs.
operator = torch.library.custom_op("normscope::normalize", _values, mutates_args=())
backward_operator = torch.library.custom_op("normscope::normalize_backward", _gradients, mutates_args=())
operator.register_fake(lambda x, *_: torch.empty_like(x, memory_format=torch.contiguous_format))
backward_operator.register_fake(lambda x, *_: _empty_gradients(x))
operator.register_autograd(lambda ctx, dy: _backward_by(backward_operator, ctx, dy), setup_context=_save)


# The norm as a formula, for whoever computes something else from torch's operations than their values: a graph, a
# derivative in another direction, a tensor on several machines. What is written into memory by address escapes these.

def sizes(tensor: Tensor) -> tuple[int, ...]:
    """Its shape as plain numbers, which torch.jit.trace would record."""
    state = torch._C._get_tracing_state()
    if state is None:
        return tensor.shape
    torch._C._set_tracing_state(None)
    try:
        return tuple(tensor.shape)
    finally:
        torch._C._set_tracing_state(state)


def _as_type(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    return tensor if tensor.dtype is dtype else tensor.to(dtype)


# A block's squares that eps is added to, by what its kind divides by, and the function of each elementwise kind.
_SIZES = {"root_mean_square": torch.mean, "length": torch.sum}
_ELEMENTWISE = {"dyt": torch.tanh, "derf": torch.erf}


def _scaled(blocks: Tensor, kind: str, eps: float) -> Tensor:
    """The last axis of `blocks`, normalized."""
    facts = kind_facts("normalize", kind)
    if facts.centers:
        blocks = blocks - blocks.mean(-1, keepdim=True)
    squares = blocks * blocks
    square = _SIZES[facts.divisor](squares, -1, keepdim=True)
    if eps > 0.0:
        return blocks * torch.rsqrt(square + eps)
    # A row that is constant gives 0, and has the gradient 0.
    return blocks * torch.rsqrt(torch.where(square > 0.0, square, 1.0))


def formula(x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], alpha: Optional[Tensor],
            shift: Optional[Tensor], kind: str, groups: int, eps: float) -> Tensor:
    """The norm by operations of torch alone, with their accuracy and every derivative of them."""
    element = _element(x)
    if x.ndim == 0 or any(tensor is not None and (tensor.layout is not torch.strided or not tensor.is_cpu)
                          for tensor in (x, weight, bias, alpha, shift)):
        raise _explained(ValueError(), x, weight=weight, bias=bias, alpha=alpha, shift=shift)
    width = sizes(x)[-1]
    dtype = torch.float32 if element else torch.float64
    wide = _as_type(x, dtype)

    def vector(parameter: Optional[Tensor]) -> Optional[Tensor]:
        if parameter is None:
            return None
        shape = sizes(parameter)
        if math.prod(shape) != width:
            raise ValueError(f"normalize: a parameter has shape {tuple(shape)}, expected ({width},)")
        return _as_type(_real(parameter), dtype).flatten()

    def scalar(name: str, parameter: Optional[Tensor], default: float) -> Any:
        if parameter is None:
            return default
        if math.prod(sizes(parameter)) != 1 or parameter.is_complex():
            raise _explained(ValueError(), x, **{name: parameter})
        return _as_type(parameter, dtype).reshape(())

    gain, offset = vector(weight), vector(bias)
    if kind == "layer" and groups == 1 and eps > 0.0 and (_tracing_state() is not None or _is_exporting()):
        # One operation, which files keep; its third derivatives are wrong in torch 2.15.
        return _as_type(torch.nn.functional.layer_norm(wide, (width,), gain, offset, eps), x.dtype)
    facts = kind_facts("normalize", kind)
    if facts.divisor == "nothing":
        if groups != 1:
            raise ValueError(f"normalize: {kind} has {groups} groups, expected 1")
        inside = scalar("alpha", alpha, 1.0) * wide
        y = _ELEMENTWISE[kind](inside + scalar("shift", shift, 0.0) if facts.has_shift else inside)
    elif groups == 1:
        y = _scaled(wide, kind, eps)
    elif width % groups != 0:
        raise ValueError(f"normalize: {groups} groups do not divide width {width}")
    else:
        y = _scaled(wide.unflatten(-1, (groups, width // groups)), kind, eps).flatten(-2)
    if gain is not None:
        y = y * gain
    if offset is not None:
        y = y + offset
    return _as_type(y, x.dtype)


def _formula_gradients(dy: Tensor, *inputs: Any) -> list[Optional[Tensor]]:
    """Those of x, weight, bias, alpha and shift by the formula; None where there is no such tensor."""
    tensors, how = inputs[:5], inputs[5:]
    there = [tensor for tensor in tensors if tensor is not None]

    def function(*values: Tensor) -> Tensor:
        each = iter(values)
        return formula(*(None if tensor is None else next(each) for tensor in tensors), *how)

    _, pull_back = torch.func.vjp(function, *there)
    each = iter(pull_back(dy))
    return [None if tensor is None else next(each) for tensor in tensors]


#: The types of tensors that are nothing but entries in memory.
_PLAIN = frozenset({Tensor, torch.nn.Parameter})

# Functions of torch's, asked at every call; not every version has each.
_transforms_active = getattr(torch._C, "_are_functorch_transforms_active", bool)
_dispatch_modes = torch._C._len_torch_dispatch_stack
_tracing_state = torch._C._get_tracing_state
_is_compiling = torch.compiler.is_compiling
_is_exporting = getattr(torch.compiler, "is_exporting", bool)


def _is_recording() -> bool:
    """Whether torch does more with the operations that it is called with than compute their values."""
    return bool(_transforms_active() or _dispatch_modes() or _tracing_state() is not None
                or forward_ad._current_level >= 0)


def _is_plain(*tensors: Optional[Tensor]) -> bool:
    return all(tensor is None or type(tensor) in _PLAIN for tensor in tensors)


def _is_stored(tensor: Tensor) -> bool:
    """Whether it has an address, unlike those that torch.autograd.grad makes of several gradients, or of none."""
    try:
        return tensor.data_ptr() != 0 or not tensor._is_zerotensor()
    except RuntimeError:
        return False


def _read_by_core() -> bool:
    """Whether the core reads tensors itself, as DLPack's exchange functions describe them."""
    return _core.use_torch(types.SimpleNamespace(
        exchange=getattr(Tensor, "__dlpack_c_exchange_api__", None), tensor=Tensor, parameter=torch.nn.Parameter,
        empty_like=torch.empty_like, is_neg=Tensor.is_neg, is_grad_enabled=torch.is_grad_enabled,
        get_num_threads=torch.get_num_threads, transforms_active=_transforms_active, dispatch_modes=_dispatch_modes,
        tracing_state=_tracing_state, forward_ad=forward_ad, recorded=_NormalizePlain.apply))


#: The norm of plain tensors; of others, NotImplemented.
normalized_plain = _core.normalize_tensor if _read_by_core() else lambda *_: NotImplemented


def normalized(x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], alpha: Optional[Tensor],
               shift: Optional[Tensor], kind: str, groups: int, eps: float) -> Tensor:
    if _is_compiling():
        # An exported program is to run where this package is not installed.
        by = formula if _is_exporting() or not _is_plain(x, weight, bias) else operator
        return by(x, weight, bias, alpha, shift, kind, groups, eps)
    if alpha is None and shift is None:
        y = normalized_plain(x, weight, bias, None, kind, groups, eps)
        if y is not NotImplemented:
            return y
    inputs = x, weight, bias, alpha, shift
    if not _is_plain(*inputs) or _is_recording():
        return formula(*inputs, kind, groups, eps)
    if torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in inputs):
        scalars = () if alpha is None and shift is None else (alpha, shift)
        return _Normalize.apply(x, weight, bias, (kind, groups, eps), *scalars)
    return _values(*inputs, kind, groups, eps)

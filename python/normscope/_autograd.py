"""Norms as functions of torch: the kernels with autograd, and as operators for torch.compile."""

from __future__ import annotations

from typing import Any, Callable, Optional

import torch
from torch import Tensor

from . import _core, kernels

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
    return (parameter if parameter.dtype is wide else parameter.to(wide)).contiguous()


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


# Small calls cost as much in Python as in the kernel: what follows asks each tensor once, calls little, and looks for
# the reason of a failure afterwards.


def _values(x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], alpha: Optional[Tensor],
            shift: Optional[Tensor], kind: str, groups: int, eps: float) -> Tensor:
    try:
        element = _element(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        width = x.shape[-1]
        gain, offset = _parameter(weight, width, element), _parameter(bias, width, element)
        _core.normalize_raw(element, x.data_ptr(), y.data_ptr(), x.numel() // (width or 1), width,
                            0 if gain is None else gain.data_ptr(), 0 if offset is None else offset.data_ptr(), kind,
                            groups, eps, 1.0 if alpha is None else float(alpha), 0.0 if shift is None else float(shift),
                            torch.get_num_threads())
        return y
    except Exception as error:
        raise _explained(error, x, weight=weight, bias=bias, alpha=alpha, shift=shift) from None


def _compute_gradients(
        x: Tensor, dy: Tensor, weight: Optional[Tensor], alpha: Optional[Tensor], shift: Optional[Tensor], kind: str,
        groups: int, eps: float, of_gain: bool, of_bias: bool,
) -> tuple[Tensor, Optional[Tensor], Optional[Tensor], tuple[float, float]]:
    """Those of x, of gain and bias where they are wanted, and of alpha and shift."""
    element = _element(x)
    x, dy = x.contiguous(), (dy if dy.dtype is x.dtype else dy.to(x.dtype)).contiguous()
    dx = torch.empty_like(x)
    width = x.shape[-1]
    wide = torch.float32 if element else torch.float64
    gain = _parameter(weight, width, element)
    dgain = torch.empty(width, dtype=wide) if of_gain else None
    dbias = torch.empty(width, dtype=wide) if of_bias else None
    scalars = _core.normalize_backward_raw(
        element, x.data_ptr(), dy.data_ptr(), dx.data_ptr(), x.numel() // (width or 1), width,
        0 if gain is None else gain.data_ptr(), 0 if dgain is None else dgain.data_ptr(),
        0 if dbias is None else dbias.data_ptr(), kind, groups, eps, 1.0 if alpha is None else float(alpha),
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
        # Each argument more takes torch 0.2 µs: alpha and shift come only where there are any.
        ctx.save_for_backward(x, weight, bias, *scalars)
        ctx.how = how
        return _values(x, weight, bias, *(scalars or _NO_SCALARS), *how)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
        x, weight, bias, *scalars = ctx.saved_tensors
        alpha, shift = scalars or _NO_SCALARS
        if torch.is_grad_enabled():
            dx, dgain, dbias, dscalars = _Gradients.apply(x, dy, weight, alpha, shift, *ctx.how)
        else:
            dx, dgain, dbias, dscalars = _compute_gradients(x, dy, weight, alpha, shift, *ctx.how, weight is not None,
                                                            bias is not None)
        return (dx, _as(weight, dgain), _as(bias, dbias), None,
                *(_as(scalar, torch.as_tensor(dscalar)) for scalar, dscalar in zip(scalars, dscalars)))


class _Transformed(torch.autograd.Function):
    """The same for the transforms of torch.func, whose kind of function takes torch several times as long to call."""

    @staticmethod
    def forward(*inputs: Any) -> Tensor:
        return _values(*inputs)

    setup_context = staticmethod(_save)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Any, ...]:
        return _backward_by(_Gradients.apply, ctx, dy)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[Tensor, int]:
        if in_dims[0] is not None and all(dim is None for dim in in_dims[1:]):
            return _Transformed.apply(inputs[0].movedim(in_dims[0], 0), *inputs[1:]), 0
        return torch.stack(_of_each(_Transformed, info.batch_size, in_dims, inputs)), 0


class _Gradients(torch.autograd.Function):
    """The gradients of the norm, and their own: with L = <v, J^T dy> + <u, dgain> + <t, dbias>,

        dL/d(dy)   = J v + u * norm(x) + t
        dL/dx      = H(dy) v + J_u^T dy             H(dy) the Hessian of <dy, norm(x)>, J_u the Jacobian for gain u
        dL/dgain   = sum of (J_1 v) * dy over the rows

    where norm(x) and J_1 are those without gain and bias.
    """

    @staticmethod
    def forward(*inputs: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        return _gradients(*inputs)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        x, dy, weight, alpha, shift, *how = inputs
        ctx.save_for_backward(x, dy, weight)
        ctx.how = dict(zip(("kind", "groups", "eps"), how))
        ctx.scalars = alpha is not None or shift is not None

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, v: Tensor, u: Tensor, t: Tensor, _: Tensor) -> tuple[Any, ...]:
        how = ctx.how
        if ctx.scalars or how["kind"] in ("dyt", "derf"):
            raise RuntimeError(f"normalize: second derivatives of {how['kind']} are not known to autograd")
        x, dy, weight = ctx.saved_tensors
        wide, dwide, v, u, t = (tensor.double() for tensor in (x, dy, v, u, t))
        gain = None if weight is None else weight.double()
        ddy = kernels.jacobian_vector(wide, v, gain, **how) + u * kernels.normalize(wide, **how) + t
        dx = kernels.hessian_vector(wide, dwide, v, gain, **how) + kernels.vector_jacobian(wide, dwide, u, **how)
        dgain = None
        if weight is not None:
            dgain = (kernels.jacobian_vector(wide, v, **how) * dwide).reshape(-1, x.shape[-1]).sum(0)
        return dx.to(x.dtype), ddy.to(dy.dtype), _as(weight, dgain), None, None, None, None, None

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *inputs: Any) -> tuple[tuple[Tensor, ...], tuple[int, ...]]:
        every = _of_each(_Gradients, info.batch_size, in_dims, inputs)
        return tuple(torch.stack(outputs) for outputs in zip(*every)), (0, 0, 0, 0)


def _of_each(function: Any, batch: int, in_dims: tuple[Any, ...], inputs: tuple[Any, ...]) -> list[Any]:
    """The results of `function` for every entry of a batch."""
    return [function.apply(*(value if dim is None else value.select(dim, index)
                             for value, dim in zip(inputs, in_dims))) for index in range(batch)]


#: Whether a transform of torch.func is being computed; a function of torch's, which its autograd.Function asks too.
_transforms_active = getattr(torch._C, "_are_functorch_transforms_active", lambda: False)


# The norm as operators, which torch.compile keeps in its graphs.
operator = torch.library.custom_op("normscope::normalize", _values, mutates_args=())
backward_operator = torch.library.custom_op("normscope::normalize_backward", _gradients, mutates_args=())
operator.register_fake(lambda x, *_: torch.empty_like(x, memory_format=torch.contiguous_format))
backward_operator.register_fake(lambda x, *_: _empty_gradients(x))
operator.register_autograd(lambda ctx, dy: _backward_by(backward_operator, ctx, dy), setup_context=_save)


def normalized(x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], alpha: Optional[Tensor],
                shift: Optional[Tensor], kind: str, groups: int, eps: float) -> Tensor:
    if torch.compiler.is_compiling():
        return operator(x, weight, bias, alpha, shift, kind, groups, eps)
    if _transforms_active():
        return _Transformed.apply(x, weight, bias, alpha, shift, kind, groups, eps)
    if torch.is_grad_enabled() and (x.requires_grad or (weight is not None and weight.requires_grad)
                                    or (bias is not None and bias.requires_grad)
                                    or (alpha is not None and alpha.requires_grad)
                                    or (shift is not None and shift.requires_grad)):
        scalars = () if alpha is None and shift is None else (alpha, shift)
        return _Normalize.apply(x, weight, bias, (kind, groups, eps), *scalars)
    return _values(x, weight, bias, alpha, shift, kind, groups, eps)

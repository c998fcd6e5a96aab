"""Norms as torch modules, computed by the kernels of this package on the CPU.

They take the place of torch's own: same arguments, same parameters, same state dicts. `torch.compile`, autograd with
second derivatives (of the kinds that normalize), autocast, and `torch.func`'s grad, vjp, jacrev and vmap work with them;
third derivatives and forward mode (jvp, jacfwd) do not.
"""

from __future__ import annotations

import math
import operator
from typing import Any, Callable, Optional, get_args

import torch
from torch import Tensor, nn

from . import _core, kernels
from ._check import count, counts, flag, real, shown

_KINDS = get_args(kernels.Kind)
#: The order of the core's element types.
_ELEMENTS = {torch.float64: 0, torch.float32: 1, torch.float16: 2, torch.bfloat16: 3}


def _element(x: Tensor) -> int:
    element = _ELEMENTS.get(x.dtype)
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


def _expect_tensor(name: str, given: Any) -> None:
    if not isinstance(given, Tensor):
        raise TypeError(f"normalize: {name} is {shown(given)}, expected a tensor")


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
_operator = torch.library.custom_op("normscope::normalize", _values, mutates_args=())
_backward_operator = torch.library.custom_op("normscope::normalize_backward", _gradients, mutates_args=())
_operator.register_fake(lambda x, *_: torch.empty_like(x, memory_format=torch.contiguous_format))
_backward_operator.register_fake(lambda x, *_: _empty_gradients(x))
_operator.register_autograd(lambda ctx, dy: _backward_by(_backward_operator, ctx, dy), setup_context=_save)


def normalize(x: Tensor, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, *, kind: str = "layer",
              groups: int = 1, eps: float = 1e-5, alpha: Optional[Tensor] = None,
              shift: Optional[Tensor] = None) -> Tensor:
    """The norm of each row of x, with gradients; `normscope.normalize` has the formulas.

    Shapes   x (..., width); weight, bias (width,); alpha, shift scalars; result as x
    Errors   TypeError for other types and devices, ValueError for other shapes
    """
    _expect_tensor("x", x)
    for name, given in (("weight", weight), ("bias", bias), ("alpha", alpha), ("shift", shift)):
        if given is not None:
            _expect_tensor(name, given)
    if not torch.compiler.is_compiling():
        groups, eps = count("normalize", "groups", groups, 1), real("normalize", "eps", eps)
        if not isinstance(kind, str) or kind not in _KINDS:
            raise ValueError(f"normalize: kind is {shown(kind)}, expected one of {', '.join(_KINDS)}")
    return _normalized(x, weight, bias, alpha, shift, kind, groups, eps)


def _normalized(x: Tensor, weight: Optional[Tensor], bias: Optional[Tensor], alpha: Optional[Tensor],
                shift: Optional[Tensor], kind: str, groups: int, eps: float) -> Tensor:
    if torch.compiler.is_compiling():
        return _operator(x, weight, bias, alpha, shift, kind, groups, eps)
    if _transforms_active():
        return _Transformed.apply(x, weight, bias, alpha, shift, kind, groups, eps)
    if torch.is_grad_enabled() and (x.requires_grad or (weight is not None and weight.requires_grad)
                                    or (bias is not None and bias.requires_grad)
                                    or (alpha is not None and alpha.requires_grad)
                                    or (shift is not None and shift.requires_grad)):
        scalars = () if alpha is None and shift is None else (alpha, shift)
        return _Normalize.apply(x, weight, bias, (kind, groups, eps), *scalars)
    return _values(x, weight, bias, alpha, shift, kind, groups, eps)


def _shape_of(who: str, given: Any) -> tuple[int, ...]:
    """The sizes of the last axes."""
    try:
        sizes = [operator.index(given)]
    except TypeError:
        sizes = given
    return tuple(counts(who, "size", sizes, 1))


def _float_type(who: str, dtype: Any) -> Any:
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype in _ELEMENTS):
        raise TypeError(f"{who}: dtype is {shown(dtype)}, expected float64, float32, float16 or bfloat16")
    return dtype


class _Norm(nn.Module):
    """A norm over the last axes, with `weight` and `bias` if requested."""

    kind = "layer"

    def __init__(self, normalized_shape: Any, eps: float, affine: bool, bias: bool, groups: int = 1,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        who = type(self).__name__
        shape = _shape_of(who, normalized_shape)
        self.normalized_shape = shape
        self.eps = None if eps is None else real(who, "eps", eps)
        self.groups, self.elementwise_affine = count(who, "groups", groups, 1), flag(who, "elementwise_affine", affine)
        if math.prod(shape) % self.groups != 0:
            raise ValueError(f"{who}: {self.groups} groups do not divide width {math.prod(shape)}")
        like = {"device": device, "dtype": _float_type(who, dtype)}
        self.weight = nn.Parameter(torch.empty(shape, **like)) if self.elementwise_affine else None
        self.bias = nn.Parameter(torch.empty(shape, **like)) if self.elementwise_affine and flag(who, "bias", bias) else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Gain 1 and bias 0."""
        if self.weight is not None:
            nn.init.ones_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor) -> Tensor:
        if not isinstance(x, Tensor):
            raise TypeError(f"{type(self).__name__}: x is {shown(x)}, expected a tensor")
        shape, eps, sizes = self.normalized_shape, self.eps, x.shape
        if eps is None:
            eps = torch.finfo(x.dtype).eps if x.dtype.is_floating_point else 0.0
        if len(shape) == 1:
            if not sizes or sizes[-1] != shape[0]:
                raise ValueError(f"{type(self).__name__}: x has shape {tuple(sizes)}, expected (..., {shape[0]})")
            # nn.Module looks for parameters last; those that are computed, as by weight norm, are no parameters.
            own = self._parameters
            return _normalized(x, own["weight"] if "weight" in own else self.weight,
                               own["bias"] if "bias" in own else self.bias, None, None, self.kind, self.groups, eps)
        if tuple(sizes[-len(shape):]) != shape:
            raise ValueError(f"{type(self).__name__}: x has shape {tuple(sizes)}, expected (..., "
                             f"{', '.join(map(str, shape))})")
        if x.layout is not torch.strided:
            raise TypeError(f"{type(self).__name__}: x is {x.layout}, expected a dense tensor")
        flat = lambda tensor: None if tensor is None else tensor.flatten()
        return _normalized(x.flatten(-len(shape)), flat(self.weight), flat(self.bias), None, None, self.kind,
                           self.groups, eps).reshape(sizes)

    def extra_repr(self) -> str:
        groups = f", groups={self.groups}" if self.groups > 1 else ""
        return f"{self.normalized_shape}, eps={self.eps}{groups}, elementwise_affine={self.elementwise_affine}"


class LayerNorm(_Norm):
    """As torch.nn.LayerNorm."""

    def __init__(self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, bias, device=device, dtype=dtype)


class RMSNorm(_Norm):
    """As torch.nn.RMSNorm; eps None is the machine epsilon of x."""

    kind = "rms"

    def __init__(self, normalized_shape: Any, eps: Optional[float] = None, elementwise_affine: bool = True,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, False, device=device, dtype=dtype)


class GroupedLayerNorm(_Norm):
    """LN-G: a row is cut into `groups` consecutive blocks, each normalized on its own.

    Source   Ni et al. 2024
    """

    def __init__(self, normalized_shape: Any, groups: int, eps: float = 1e-5, elementwise_affine: bool = True,
                 bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, bias, groups, device=device, dtype=dtype)


class Spherical(_Norm):
    """Projection onto the unit sphere, x / sqrt(sum(x**2) + eps), times a gain where there is one."""

    kind = "spherical"

    def __init__(self, normalized_shape: Any, eps: float = 1e-12, elementwise_affine: bool = False,
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__(normalized_shape, eps, elementwise_affine, False, device=device, dtype=dtype)


class DyT(nn.Module):
    """Dynamic Tanh, weight * tanh(alpha * x) + bias, in place of a norm."""

    def __init__(self, width: int, alpha: float = 0.5, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        like = {"device": device, "dtype": _float_type("DyT", dtype)}
        width = count("DyT", "width", width, 1)
        self.alpha = nn.Parameter(torch.full((1,), real("DyT", "alpha", alpha, -math.inf), **like))
        self.weight = nn.Parameter(torch.ones(width, **like))
        self.bias = nn.Parameter(torch.zeros(width, **like))

    def forward(self, x: Tensor) -> Tensor:
        _expect_tensor("x", x)
        return _normalized(x, self.weight, self.bias, self.alpha, None, "dyt", 1, 1e-5)

    def extra_repr(self) -> str:
        return f"{self.weight.numel()}"


#: Modules of torch and what takes their place.
_REPLACEMENTS = {nn.LayerNorm: LayerNorm, **({nn.RMSNorm: RMSNorm} if hasattr(nn, "RMSNorm") else {})}


def replace_norms(module: nn.Module) -> int:
    """Replaces every nn.LayerNorm and nn.RMSNorm inside `module` by ours, which takes over its parameters; returns how
    many there were.

    Errors   TypeError for what is no module; norms of other classes stay
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"replace_norms: {shown(module)} is no torch.nn.Module")
    replaced = 0
    for parent in list(module.modules()):
        for name, child in list(parent.named_children()):
            kind = _REPLACEMENTS.get(type(child))
            if kind is None:
                continue
            ours = kind(child.normalized_shape, eps=child.eps, elementwise_affine=False)
            ours.elementwise_affine = child.elementwise_affine
            ours.weight, ours.bias = child.weight, getattr(child, "bias", None)
            setattr(parent, name, ours)
            replaced += 1
    return replaced

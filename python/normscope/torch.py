"""Norms as torch modules, computed by the kernels of this package on the CPU.

They take the place of torch's own: same arguments, same parameters, same state dicts. The kernels compute values and
first derivatives of plain tensors, and are operators to `torch.compile`. Wherever torch records or transforms operations
(tracing, export, `torch.func`, forward mode, higher derivatives, tensor subclasses, dispatch modes), the norm is a formula
of torch's own operations instead.
"""

import dataclasses
import math
import operator
from typing import Any, Optional, get_args

import torch
from torch import Tensor, nn

from . import kernels, lens as lens  # normscope.torch.lens
from ._autograd import ELEMENTS, _is_compiling, normalized, normalized_plain, sizes
from ._check import count, counts, flag, real, shown
from ._kinds import kind_facts
from .modules import Computed, norm_computed_by, says_norm

_KINDS = get_args(kernels.Kind)
#: The spacing of numbers at 1.
_MACHINE_EPS = {dtype: torch.finfo(dtype).eps for dtype in ELEMENTS}
#: Attributes of modules that are not theirs to copy.
_OWN = frozenset({"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "normalized_shape", "eps", "groups",
                  "elementwise_affine", "kind", "gain_offset"})


def _expect_tensor(name: str, given: Any) -> None:
    if not isinstance(given, Tensor):
        raise TypeError(f"normalize: {name} is {shown(given)}, expected a tensor")


def normalize(x: Tensor, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, *, kind: str = "layer",
              groups: int = 1, eps: float = 1e-5, alpha: Optional[Tensor] = None,
              shift: Optional[Tensor] = None) -> Tensor:
    """The norm of each row of x, with gradients; `normscope.normalize` has the formulas.

    Shapes   x (..., width); weight, bias (width,); alpha, shift scalars; result as x
    Errors   TypeError for other types and devices, ValueError for other shapes
    """
    if alpha is None and shift is None and not _is_compiling():
        y = normalized_plain(x, weight, bias, None, kind, groups, eps)
        if y is not NotImplemented:
            return y
    _expect_tensor("x", x)
    for name, given in (("weight", weight), ("bias", bias), ("alpha", alpha), ("shift", shift)):
        if given is not None:
            _expect_tensor(name, given)
    if not torch.compiler.is_compiling():
        groups, eps = count("normalize", "groups", groups, 1), real("normalize", "eps", eps)
        if not isinstance(kind, str) or kind not in _KINDS:
            raise ValueError(f"normalize: kind is {shown(kind)}, expected one of {', '.join(_KINDS)}")
    return normalized(x, weight, bias, alpha, shift, kind, groups, eps)


def _shape_of(who: str, given: Any) -> tuple[int, ...]:
    """The sizes of the last axes."""
    try:
        sizes = [operator.index(given)]
    except TypeError:
        sizes = given
    return tuple(counts(who, "size", sizes, 1))


def _float_type(who: str, dtype: Any) -> Any:
    if dtype is not None and not (isinstance(dtype, torch.dtype) and dtype in ELEMENTS):
        raise TypeError(f"{who}: dtype is {shown(dtype)}, expected float64, float32, float16 or bfloat16")
    return dtype


class _Norm(nn.Module):
    """A norm over the last axes, with `weight` and `bias` if requested."""

    # For torch.jit.script.
    __constants__ = ("kind", "normalized_shape", "eps", "groups", "elementwise_affine", "gain_offset")
    kind = "layer"
    gain_offset = 0.0  #: what is added to the stored gain: 1 in place of some norms of transformers

    def __init__(self, normalized_shape: Any, eps: float, affine: bool, bias: bool, groups: int = 1,
                 device: Any = None, dtype: Any = None) -> None:
        nn.Module.__init__(self)
        who = type(self).__name__
        shape = _shape_of(who, normalized_shape)
        self.normalized_shape = shape
        self.eps = None if eps is None else real(who, "eps", eps)
        self.groups, self.elementwise_affine = count(who, "groups", groups, 1), flag(who, "elementwise_affine", affine)
        if math.prod(shape) % self.groups != 0:
            raise ValueError(f"{who}: {self.groups} groups do not divide width {math.prod(shape)}")
        like = {"device": device, "dtype": _float_type(who, dtype)}
        for name, wanted in (("weight", True), ("bias", flag(who, "bias", bias))):
            there = self.elementwise_affine and wanted
            self.register_parameter(name, nn.Parameter(torch.empty(shape, **like)) if there else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Gain 1 and bias 0."""
        if self.weight is not None:
            nn.init.ones_(self.weight)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    @torch.jit.ignore  # torch.jit.script calls it, and does not compile it
    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  torch's name
        if not isinstance(input, Tensor):
            raise TypeError(f"{type(self).__name__}: x is {shown(input)}, expected a tensor")
        shape, eps, own = self.normalized_shape, self.eps, self._parameters
        if eps is None:
            eps = _MACHINE_EPS.get(input.dtype, 0.0)
        # nn.Module looks for parameters last; those that are computed, as by weight norm, are no parameters.
        weight = own["weight"] if "weight" in own else self.weight
        bias = own["bias"] if "bias" in own else self.bias
        if self.gain_offset != 0.0:
            weight = weight + self.gain_offset
        if len(shape) == 1 and not _is_compiling():
            # At a few rows, what follows would take as long as the norm.
            y = normalized_plain(input, weight, bias, shape[0], self.kind, self.groups, eps)
            if y is not NotImplemented:
                return y
        given = sizes(input)
        if len(shape) == 1:
            if not given or given[-1] != shape[0]:
                raise ValueError(f"{type(self).__name__}: x has shape {tuple(given)}, expected (..., {shape[0]})")
            return normalized(input, weight, bias, None, None, self.kind, self.groups, eps)
        if tuple(given[-len(shape):]) != shape:
            raise ValueError(f"{type(self).__name__}: x has shape {tuple(given)}, expected (..., "
                             f"{', '.join(map(str, shape))})")
        if input.layout is not torch.strided:
            raise TypeError(f"{type(self).__name__}: x is {input.layout}, expected a dense tensor")
        flat = lambda tensor: None if tensor is None else tensor.flatten()
        return normalized(input.flatten(-len(shape)), flat(weight), flat(bias), None, None, self.kind, self.groups,
                           eps).unflatten(-1, shape)

    def extra_repr(self) -> str:
        groups = f", groups={self.groups}" if self.groups > 1 else ""
        stored = f", gain_offset={self.gain_offset:g}" if self.gain_offset else ""
        return f"{self.normalized_shape}, eps={self.eps}{groups}{stored}, elementwise_affine={self.elementwise_affine}"


class LayerNorm(_Norm, nn.LayerNorm):
    """As torch.nn.LayerNorm."""

    def __init__(self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
                 device: Any = None, dtype: Any = None) -> None:
        _Norm.__init__(self, normalized_shape, eps, elementwise_affine, bias, device=device, dtype=dtype)


class RMSNorm(_Norm, getattr(nn, "RMSNorm", nn.Module)):
    """As torch.nn.RMSNorm; eps None is the machine epsilon of x."""

    kind = "rms"

    def __init__(self, normalized_shape: Any, eps: Optional[float] = None, elementwise_affine: bool = True,
                 device: Any = None, dtype: Any = None) -> None:
        _Norm.__init__(self, normalized_shape, eps, elementwise_affine, False, device=device, dtype=dtype)


class GroupedLayerNorm(_Norm):
    """LN-G: a row is cut into `groups` consecutive blocks, each normalized on its own.

    Source   Ni et al. 2024
    """

    def __init__(self, normalized_shape: Any, groups: int, eps: float = 1e-5, elementwise_affine: bool = True,
                 bias: bool = True, device: Any = None, dtype: Any = None) -> None:
        _Norm.__init__(self, normalized_shape, eps, elementwise_affine, bias, groups, device=device, dtype=dtype)


class Spherical(_Norm):
    """Projection onto the unit sphere, x / sqrt(sum(x**2) + eps), times a gain where there is one."""

    kind = "spherical"

    def __init__(self, normalized_shape: Any, eps: float = 1e-12, elementwise_affine: bool = False,
                 device: Any = None, dtype: Any = None) -> None:
        _Norm.__init__(self, normalized_shape, eps, elementwise_affine, False, device=device, dtype=dtype)


class DyT(nn.Module):
    """Dynamic Tanh, weight * tanh(alpha * x) + bias, in place of a norm."""

    def __init__(self, width: int, alpha: float = 0.5, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        like = {"device": device, "dtype": _float_type("DyT", dtype)}
        width = count("DyT", "width", width, 1)
        self.alpha = nn.Parameter(torch.full((1,), real("DyT", "alpha", alpha, -math.inf), **like))
        self.weight = nn.Parameter(torch.ones(width, **like))
        self.bias = nn.Parameter(torch.zeros(width, **like))

    @torch.jit.ignore  # torch.jit.script calls it, and does not compile it
    def forward(self, x: Tensor) -> Tensor:
        _expect_tensor("x", x)
        return normalized(x, self.weight, self.bias, self.alpha, None, "dyt", 1, 1e-5)

    def extra_repr(self) -> str:
        return f"{self.weight.numel()}"


@dataclasses.dataclass(frozen=True)
class Replaced:
    """What `replace_norms` did."""

    replaced: list[str]  #: names of the modules that are ours now; each alias counts
    left: dict[str, str]  #: names of norms that stay, with the reason

    def __repr__(self) -> str:
        reasons = "; ".join(f"{name}: {why}" for name, why in self.left.items())
        return f"<normscope.torch.Replaced {len(self.replaced)} norms" + (f", left {reasons}>" if reasons else ">")


def replace_norms(module: nn.Module) -> Replaced:
    """Replaces the LayerNorms and RMSNorms inside `module` by ours, by what they compute: torch's, those of transformers
    (with gains stored minus 1 too) and others whose class name contains LayerNorm or RMSNorm. Ours take over the
    parameters, hooks, `training` and attributes of each, at every place that it has in the model.

    Errors   TypeError for what is no module; norms that compute something else stay, with the reason
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"replace_norms: {shown(module)} is no torch.nn.Module")
    done: dict[int, Any] = {}  # by the module that was there: ours, or why it stays
    replaced, left = [], {}
    for path, parent in list(module.named_modules(remove_duplicate=False)):
        for name, child in list(parent._modules.items()):
            full = f"{path}.{name}" if path else name
            if child is None or not says_norm(child) or isinstance(child, _Norm):
                continue
            if id(child) not in done:
                done[id(child)] = child, _made_of(child)
            _, ours = done[id(child)]
            if isinstance(ours, str):
                left[full] = ours
            else:
                parent._modules[name] = ours
                replaced.append(full)
    if says_norm(module) and not isinstance(module, _Norm):
        left[""] = "it is the given module itself, expected one around it"
    return Replaced(replaced, left)


def _made_of(child: Any) -> Any:
    """Ours in the place of `child`; or why it stays."""
    if child._modules:
        return f"it has modules inside: {', '.join(child._modules)}"
    stored = [*child.parameters(), *child.buffers()]
    elsewhere = next((tensor for tensor in stored if not tensor.is_cpu), None)
    if elsewhere is not None:
        return f"it is on {elsewhere.device}, expected the CPU"
    found = norm_computed_by(child)
    if isinstance(found, str):
        return found
    others = {name for name, _ in (*child.named_parameters(), *child.named_buffers())} - _names_of(child, found)
    if others:
        return f"it has parameters besides gain and bias: {', '.join(sorted(others))}"
    shape = tuple(getattr(child, "normalized_shape", (found.norm.width,)))
    if kind_facts("replace_norms", found.norm.kind).centers:
        ours = LayerNorm(shape, eps=found.norm.eps, elementwise_affine=False)
    elif found.bias is None:
        ours = RMSNorm(shape, eps=found.norm.eps, elementwise_affine=False)
        if getattr(child, "eps", 0.0) is None:
            ours.eps = None  # the machine's, whatever the type
    else:
        return "it is an RMSNorm with a bias"
    ours.elementwise_affine, ours.gain_offset = found.gain is not None, found.offset
    # Under the names that they have, so that state dicts stay.
    for name, parameter in child._parameters.items():
        if name not in ("weight", "bias") and parameter is not None:
            return f"its parameter is called {name}, expected weight and bias"
    ours._parameters.update(child._parameters)
    vars(ours).update({name: value for name, value in vars(child).items() if name not in _OWN})
    return ours


def _names_of(child: Any, found: Computed) -> set[str]:
    known = {id(found.gain), id(found.bias)}
    return {name for name, tensor in child.named_parameters() if id(tensor) in known}

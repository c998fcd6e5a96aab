"""The norm kernels: forward, backward and derivatives of a norm, for NumPy arrays and torch CPU tensors."""

from __future__ import annotations

from typing import Any, TypeVar

from . import _check, _core
from ._kinds import Kind

#: numpy.ndarray or torch.Tensor; a result is what x is.
Array = TypeVar("Array")


def normalize(x: Array, gain: Any = None, bias: Any = None, *, kind: Kind = "layer", groups: int = 1,
              eps: float = 1e-5, alpha: float = 1.0, shift: float = 0.0, out: Array | None = None,
              threads: int = 0) -> Array:
    """Normalize each row of x, a row being what lies along the last axis.

        layer      y = gain * (x - mean(x)) / sqrt(var(x) + eps) + bias        LayerNorm
        rms        y = gain * x / sqrt(mean(x**2) + eps) + bias                RMSNorm
        spherical  y = gain * x / sqrt(sum(x**2) + eps) + bias                 projection onto the unit sphere
        dyt        y = gain * tanh(alpha * x) + bias                           Dynamic Tanh
        derf       y = gain * erf(alpha * x + shift) + bias                    Dynamic erf

    The last two are elementwise: groups must be 1, and eps is not used. With groups > 1 a row is cut into that many
    consecutive blocks, each normalized on its own (LN-G).
    Statistics are float32 or better, whatever the type of x. A row that is constant gives the bias.

    Shapes   x (..., width); gain, bias (width,); result as x
    Types    x: float64, float32, float16, bfloat16 (ml_dtypes' or torch's), a NumPy array or a torch CPU
             tensor, whichever the result then is too. gain and bias are taken in float32, or in float64 where
             x is float64.
    Memory   read where it lies, if the last axis is contiguous and the others run together into rows one
             stride apart; from a copy otherwise, and where out overlaps x without being x. out=x works in place.
    Threads  at most; 0 for as many as the machine has. The bits of the result do not depend on it.
    Errors   ValueError for shapes and values, TypeError for types, and for an x that records derivatives: the result
             has none. gain and bias are read without them.
    """
    _check.expect_no_gradient("normalize", {"x": x})
    return _core.normalize(x, gain, bias, kind, groups, eps, alpha, shift, out, threads)


def add_normalize(x: Array, residual: Array, gain: Any = None, bias: Any = None, *, kind: Kind = "layer",
                  groups: int = 1, eps: float = 1e-5, alpha: float = 1.0, shift: float = 0.0,
                  out: tuple[Array | None, Array | None] | None = None, threads: int = 0) -> tuple[Array, Array]:
    """Return sum = x + residual and normalize(sum), in one pass.

    Shapes   x, residual (..., width) of one type; gain, bias (width,); both results as x
    out      None or a pair (sum, y), either of which may be None, x or residual
    Errors   as for normalize, as is the rest
    """
    _check.expect_no_gradient("add_normalize", {"x": x, "residual": residual})
    return _core.add_normalize(x, residual, gain, bias, kind, groups, eps, alpha, shift, out, threads)


def normalize_backward(x: Array, dy: Array, gain: Any = None, *, kind: Kind = "layer", groups: int = 1,
                       eps: float = 1e-5, alpha: float = 1.0, shift: float = 0.0, parameters: bool = True,
                       out: Array | None = None, threads: int = 0) -> tuple[Any, ...]:
    """Return (dx, dgain, dbias), the gradients of a loss, from dy, its gradient with respect to y = normalize(x, ...).

        dx = J^T dy,   dgain = sum of dy * (y - bias) / gain over the rows,   dbias = sum of dy over the rows

    Nothing of the forward pass needs to be kept but x. Without parameters the last two are None.
    For elementwise kinds two numbers follow with the parameters: dalpha and dshift.

    Shapes   x, dy (..., width) of one type; dx as x; dgain, dbias (width,), in float32, or in float64 where x is
             float64
    out      where dx goes; out=dy works in place
    Errors   as for normalize, as is the rest
    """
    _check.expect_no_gradient("normalize_backward", {"x": x, "dy": dy})
    return _core.normalize_backward(x, dy, gain, kind, groups, eps, alpha, shift, parameters, out, threads)


def jacobian_vector(x: Array, v: Array, gain: Any = None, *, kind: Kind = "layer", groups: int = 1, eps: float = 1e-5,
                    alpha: float = 1.0, shift: float = 0.0, out: Array | None = None, threads: int = 0) -> Array:
    """Return J v for each row of x and of v, J the Jacobian of normalize at that row of x.

    Computed in float64, to which other types are converted.

    Shapes   x, v (..., width); result as x, in float64
    Errors   as for normalize
    """
    _check.expect_no_gradient("jacobian_vector", {"x": x, "v": v})
    return _core.jacobian_vector(x, v, gain, kind, groups, eps, alpha, shift, out, threads)


def vector_jacobian(x: Array, w: Array, gain: Any = None, *, kind: Kind = "layer", groups: int = 1, eps: float = 1e-5,
                    alpha: float = 1.0, shift: float = 0.0, out: Array | None = None, threads: int = 0) -> Array:
    """Return J^T w for each row of x and of w, J the Jacobian of normalize at that row of x.

    Computed in float64, to which other types are converted.

    Shapes   x, w (..., width); result as x, in float64
    Errors   as for normalize
    """
    _check.expect_no_gradient("vector_jacobian", {"x": x, "w": w})
    return _core.vector_jacobian(x, w, gain, kind, groups, eps, alpha, shift, out, threads)


def hessian_vector(x: Array, w: Array, v: Array, gain: Any = None, *, kind: Kind = "layer", groups: int = 1,
                   eps: float = 1e-5, alpha: float = 1.0, shift: float = 0.0, out: Array | None = None,
                   threads: int = 0) -> Array:
    """Return H v for each row of x, of w and of v, H the Hessian of sum(w * normalize(x)) at that row of x.

    Computed in float64, to which other types are converted.

    Shapes   x, w, v (..., width); result as x, in float64
    Errors   as for normalize
    """
    _check.expect_no_gradient("hessian_vector", {"x": x, "w": w, "v": v})
    return _core.hessian_vector(x, w, v, gain, kind, groups, eps, alpha, shift, out, threads)


def curvature(x: Array, gain: Any = None, *, kind: Kind = "layer", groups: int = 1, eps: float = 1e-5,
              alpha: float = 1.0, shift: float = 0.0, threads: int = 0) -> Array:
    """Return how nonlinear normalize is at each row of x: the squared size of all its second derivatives.

        H = sum over i of the squared Frobenius norm of d^2 y_i / dx^2

    Computed in float64, to which other types are converted.

    Shapes   x (..., width); result (...), in float64
    Errors   as for normalize
    Source   Ni et al. 2024, whose measure of the second derivatives this is
    """
    _check.expect_no_gradient("curvature", {"x": x})
    return _core.curvature(x, gain, kind, groups, eps, alpha, shift, threads)

from typing import Any, Literal, Optional, Tuple, TypeVar, Union

# numpy.ndarray or torch.Tensor; a result is what x is.
Array = TypeVar("Array")
Kind = Literal["layer", "rms", "spherical", "dyt", "derf"]

__version__: str

def normalize(
    x: Array,
    gain: Optional[Any] = None,
    bias: Optional[Any] = None,
    *,
    kind: Kind = "layer",
    groups: int = 1,
    eps: float = 1e-5,
    alpha: float = 1.0,
    shift: float = 0.0,
    out: Optional[Array] = None,
    threads: int = 0,
) -> Array: ...
def add_normalize(
    x: Array,
    residual: Array,
    gain: Optional[Any] = None,
    bias: Optional[Any] = None,
    *,
    kind: Kind = "layer",
    groups: int = 1,
    eps: float = 1e-5,
    alpha: float = 1.0,
    shift: float = 0.0,
    out: Optional[Tuple[Optional[Array], Optional[Array]]] = None,
    threads: int = 0,
) -> Tuple[Array, Array]: ...
def normalize_backward(
    x: Array,
    dy: Array,
    gain: Optional[Any] = None,
    *,
    kind: Kind = "layer",
    groups: int = 1,
    eps: float = 1e-5,
    alpha: float = 1.0,
    shift: float = 0.0,
    parameters: bool = True,
    out: Optional[Array] = None,
    threads: int = 0,
) -> Union[
    Tuple[Array, Optional[Array], Optional[Array]], Tuple[Array, Array, Array, float, float]
]: ...
def jacobian_vector(
    x: Array,
    v: Array,
    gain: Optional[Any] = None,
    *,
    kind: Kind = "layer",
    groups: int = 1,
    eps: float = 1e-5,
    alpha: float = 1.0,
    shift: float = 0.0,
    out: Optional[Array] = None,
    threads: int = 0,
) -> Array: ...
def vector_jacobian(
    x: Array,
    w: Array,
    gain: Optional[Any] = None,
    *,
    kind: Kind = "layer",
    groups: int = 1,
    eps: float = 1e-5,
    alpha: float = 1.0,
    shift: float = 0.0,
    out: Optional[Array] = None,
    threads: int = 0,
) -> Array: ...
def hessian_vector(
    x: Array,
    w: Array,
    v: Array,
    gain: Optional[Any] = None,
    *,
    kind: Kind = "layer",
    groups: int = 1,
    eps: float = 1e-5,
    alpha: float = 1.0,
    shift: float = 0.0,
    out: Optional[Array] = None,
    threads: int = 0,
) -> Array: ...
def curvature(
    x: Array,
    gain: Optional[Any] = None,
    *,
    kind: Kind = "layer",
    groups: int = 1,
    eps: float = 1e-5,
    alpha: float = 1.0,
    shift: float = 0.0,
    threads: int = 0,
) -> Union[Array, float]: ...

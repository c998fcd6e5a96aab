"""Analyses of arrays: the image of a norm, selectable keys, reachable tokens, separability."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Callable, Sequence

import numpy

from . import _core, kernels, results
from ._check import callback, count, counts, flag, numbers, real, shown
from ._kinds import KINDS, kind_facts
from .charts import illustrated

#: Called with what is being done, the steps done and their number, about ten times a second.
Progress = Callable[[str, int, int], Any]


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Norm:
    """A normalization layer with its parameters: `norm(x)` normalizes the rows of x.

    Shapes   gain, bias (width,) or None
    """

    width: int
    kind: kernels.Kind = "layer"
    groups: int = 1
    eps: float = 1e-5
    gain: Any = None
    bias: Any = None
    alpha: float = 1.0
    shift: float = 0.0

    def __repr__(self) -> str:
        parameters = [name for name in ("gain", "bias") if getattr(self, name) is not None]
        return (f"Norm({self.kind}, width={self.width}" + (f", groups={self.groups}" if self.groups > 1 else "")
                + f", eps={self.eps:g}" + (f", with {' and '.join(parameters)}" if parameters else "") + ")")

    def __eq__(self, other: Any) -> Any:
        if not isinstance(other, Norm):
            return NotImplemented
        plain = {field.name for field in dataclasses.fields(self)} - {"gain", "bias"}
        return all(getattr(self, name) == getattr(other, name) for name in plain) and all(
            (mine is None) == (theirs is None) and (mine is None or numpy.array_equal(mine, theirs))
            for mine, theirs in ((self.gain, other.gain), (self.bias, other.bias)))

    def _keywords(self) -> dict[str, Any]:
        return {"kind": self.kind, "groups": self.groups, "eps": self.eps, "alpha": self.alpha, "shift": self.shift}

    def __call__(self, x: kernels.Array) -> kernels.Array:
        """The norm of each row of x, as `normalize`."""
        return kernels.normalize(x, self.gain, self.bias, **self._keywords())

    def jacobian_vector(self, x: kernels.Array, v: kernels.Array) -> kernels.Array:
        """How the output changes along v: J v for each row of x, as `normscope.jacobian_vector`.

        Shapes   x, v (..., width); result as x, in float64
        """
        return kernels.jacobian_vector(x, v, self.gain, **self._keywords())

    def vector_jacobian(self, x: kernels.Array, w: kernels.Array) -> kernels.Array:
        """The direction of the input that the output's direction w reads: J^T w for each row of x, as
        `normscope.vector_jacobian`.

        Shapes   x, w (..., width); result as x, in float64
        """
        return kernels.vector_jacobian(x, w, self.gain, **self._keywords())

    def sigma(self, x: Any) -> numpy.ndarray:
        """The σ by which the norm divides each row of x.

        Shapes   x (..., width); result (..., groups), in float64
        Errors   ValueError for kinds that divide by nothing
        """
        facts = kind_facts("sigma", self.kind)
        if facts.divisor == "nothing":
            *kinds, last = (kind for kind, other in KINDS.items() if other.divisor != "nothing")
            raise ValueError(f"sigma: {self.kind} divides by no deviation, expected {', '.join(kinds)} or {last}")
        blocks = self._blocks(x)
        sizes = {"root_mean_square": numpy.mean, "length": numpy.sum}[facts.divisor](blocks**2, -1)
        return numpy.sqrt(sizes + self.eps)

    def part(self, x: Any, part: Any) -> numpy.ndarray:
        """What `part` of x adds to norm(x): linear in `part`, with the σ of x. Parts that sum to x add up to norm(x)
        without its bias.

        Shapes   x, part (..., width); result as part, in float64
        Errors   ValueError for another width, and for kinds that divide by nothing
        """
        sigma, blocks = self.sigma(x)[..., None], self._blocks(part)
        try:
            shape = numpy.broadcast_shapes(sigma.shape, blocks.shape)
        except ValueError:
            raise ValueError(f"part: part has shape {blocks.shape[:-2]} before its width, x {sigma.shape[:-2]}") from None
        scaled = numpy.divide(blocks, sigma, out=numpy.zeros(shape), where=sigma > 0).reshape(*shape[:-2], self.width)
        return scaled if self.gain is None else scaled * numbers("part", "gain", self.gain)

    def _blocks(self, x: Any) -> numpy.ndarray:
        """Rows in their blocks, centred where the kind centres."""
        x = numbers("norm", "x", x)
        if x.ndim == 0 or x.shape[-1] != self.width:
            raise ValueError(f"norm: x has shape {x.shape}, expected (..., {self.width})")
        blocks = x.reshape(*x.shape[:-1], self.groups, self.width // count("norm", "groups", self.groups, 1))
        return blocks - blocks.mean(-1, keepdims=True) if kind_facts("norm", self.kind).centers else blocks

    def curvature(self, x: kernels.Array) -> kernels.Array:
        """How nonlinear the norm is at each row of x, as `curvature`."""
        return kernels.curvature(x, self.gain, **self._keywords())

    def geometry(self, *, axes: int = 0, null_space: bool = False, threads: int = 0,
                 progress: Progress | None = None) -> results.Geometry:
        """The image of the norm, before its bias: null space, semi-axes and principal axes of an ellipsoid.

        Source   Riechers 2024
        axes     how many of the longest principal axes to return
        Errors   ValueError for an invalid norm, TypeError for fields of other types
        """
        return illustrated(*_core.geometry(
            self, count("geometry", "axes", axes), flag("geometry", "null_space", null_space),
            count("geometry", "threads", threads), callback("geometry", progress)))


def select(keys: Any, *, tolerance: float = 1e-12, rank_tolerance: float = 1e-12, exact: bool = False,
           threads: int = 0, progress: Progress | None = None) -> results.Select:
    """Which keys some query can give the highest score: the vertices of their convex hull, each with its proof.

    Shapes           keys (count, width); pass norm(keys) to ask about keys behind a norm
    tolerance        relative distance below which a key counts as inside the hull of the others
    rank_tolerance   relative extent below which the keys count as flat in a direction; 1e-5 for float32 keys that
                     lie in a subspace
    exact            decide in rational arithmetic what floating point leaves undecided
    Errors           ValueError for another shape and for an entry that is not finite, TypeError for integers
    Source           Brody, Alon, Yahav 2023, theorem 1
    """
    return illustrated(*_core.select(
        keys, real("select", "tolerance", tolerance, most=1.0),
        real("select", "rank_tolerance", rank_tolerance, most=1.0), flag("select", "exact", exact),
        count("select", "threads", threads), callback("select", progress)))


def reach(unembedding: Any, norm: Norm | None = None, bias: Any = None, *, tokens: Sequence[int] = (),
          nearest: int = 20, budget: float = math.inf, tolerance: float = 1e-12, threads: int = 0,
          progress: Progress | None = None) -> results.Reach:
    """Which tokens can have the largest logit of `unembedding @ norm(x) + bias` at some x, and the most probability
    of each, with proofs.

    Shapes    unembedding (tokens, width), bias (tokens,) or None
    norm      the final norm; LayerNorm without gain where None
    tokens    whose largest probability is optimized, besides the `nearest` to unreachable
    budget    billions of multiplications after which remaining work is skipped and counted
    tolerance a token is unreachable if its logit is proved to lead nowhere by more than this times the result's `scale`;
              one that leads at some point found is reachable, by however little (`to_numpy("lead.upper")` has the most of
              each, and `Head.float32_lead` says which leads float32 keeps)
    Errors    ValueError for shapes that do not match, an entry that is not finite, and a norm of several groups;
              TypeError for integers
    Source    Ba, Kiros, Hinton 2016; Grivas, Bogoychev, Lopez 2022 without the norm
    """
    return illustrated(*_core.reach(
        norm_or_none("reach", norm), unembedding, bias, counts("reach", "token", tokens),
        count("reach", "nearest", nearest), real("reach", "budget", budget), real("reach", "tolerance", tolerance, 0.0, 1.0),
        count("reach", "threads", threads), callback("reach", progress)))


def separate(*classes: Any, tolerance: float = 1e-12, exact: bool = False, threads: int = 0,
             progress: Progress | None = None) -> results.Separate:
    """How well classes separate (SSR, and LSSR: the smallest after any linear map), and of two classes whether a
    hyperplane separates them, with a proof.

    Shapes   each class (rows, width)
    Errors   ValueError for one class, other shapes, no rows and entries that are not finite; TypeError for integers
    Source   Ni et al. 2024
    """
    if len(classes) < 2:
        raise ValueError(f"separate: {len(classes)} classes, expected at least two")
    return illustrated(*_core.separate(
        list(classes), real("separate", "tolerance", tolerance), flag("separate", "exact", exact),
        count("separate", "threads", threads), callback("separate", progress)))


def norm_or_none(who: str, norm: Any) -> Norm | None:
    if norm is not None and not isinstance(norm, Norm):
        raise TypeError(f"{who}: norm is {shown(norm)}, expected a Norm")
    return norm

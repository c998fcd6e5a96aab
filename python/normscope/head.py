"""A model's vocabulary head with its final norm: logits, and what each part of the residual stream adds to them."""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import numpy as np

from . import _core
from ._check import counts, numbers, real
from ._kinds import kind_facts
from .analyses import Norm


@dataclasses.dataclass(frozen=True, repr=False)
class Head:
    """logits = scale * (unembedding @ norm(x) + bias), and soft_cap * tanh(logits / soft_cap) with a soft cap.

    Shapes   unembedding (tokens, width), bias (tokens,) or None
    """

    norm: Norm
    unembedding: Any
    bias: Any = None
    scale: float = 1.0
    soft_cap: float = 0.0

    def __repr__(self) -> str:
        cap = f", soft cap {self.soft_cap:g}" if self.soft_cap else ""
        return f"Head({len(self.unembedding)} tokens behind {self.norm!r}{cap})"

    def float32_lead(self) -> float:
        """A lead above this, as `reach` states it, is one too where logits are computed in float32, summed in any order
        from the norm's output: twice the largest rounding error of a logit. A lead below may be lost.

        Errors   ValueError for shapes that do not match
        """
        return abs(self.scale) * _core.float32_lead(self.norm, self.unembedding, self.bias)

    def logits(self, x: Any) -> np.ndarray:
        """The logits of states of the residual stream: those of the last layer are the model's, those of an earlier one
        the logit lens.

        Shapes   x (..., width); result (..., tokens), in float64
        Errors   ValueError for another width
        """
        logits = self._linear(self.norm(numbers("logits", "x", x)), slice(None), constant=True)
        return self.soft_cap * np.tanh(logits / self.soft_cap) if self.soft_cap else logits

    def decompose(self, x: Any, parts: Any, tokens: Sequence[int]) -> Decomposition:
        """What each part of x adds to the logits of `tokens`, exactly: the norm is linear once σ is that of x.

        Shapes   x (..., width); parts (count, ..., width), which sum to x
        Errors   ValueError for parts that do not sum to x, to 1e-4 of their size
        """
        x, parts = numbers("decompose", "x", x), numbers("decompose", "parts", parts)
        if parts.ndim != x.ndim + 1 or parts.shape[1:] != x.shape:
            expected = ", ".join(map(str, x.shape))
            raise ValueError(f"decompose: parts have shape {parts.shape}, expected (count, {expected})")
        size = np.abs(parts).max(initial=0.0)
        if np.abs(parts.sum(0) - x).max(initial=0.0) > 1e-4 * size:
            raise ValueError("decompose: the parts do not sum to x")
        wanted = counts("decompose", "token", tokens)
        beyond = [token for token in wanted if token >= len(self.unembedding)]
        if beyond:
            raise ValueError(f"decompose: token {beyond[0]} is not among the {len(self.unembedding)}")
        added = np.stack([self._linear(self.norm.part(x, part), wanted) for part in parts])
        constant = self._linear(np.zeros(x.shape) if self.norm.bias is None else self.norm.bias, wanted, constant=True)
        return Decomposition(added, np.broadcast_to(constant, added.shape[1:]))

    def neurons(self, out_weights: Any, *, near_null: float = 1e-2, frequencies: Any = None) -> Neurons:
        """How neurons that write `out_weights` to the residual stream can reach the logits: those that write to the
        near-null space of the head change the others' scale through σ (entropy neurons); those whose direct effect goes
        with the logarithm of each token's frequency move the output to the unigram distribution, or away from it
        (token-frequency neurons).

        Shapes        out_weights (neurons, width), the vectors that neurons write at activation 1; frequencies (tokens,)
        near_null     singular values up to this share of the largest count as null
        frequencies   how often each token occurs in some text, above 0: counts plus 1, or probabilities
        Errors        ValueError for other shapes, and for frequencies that are not above 0
        Source      Gurnee and others 2024; Stolfo and others 2024
        """
        weights, least = numbers("neurons", "out_weights", out_weights), real("neurons", "near_null", near_null)
        width = np.shape(self.unembedding)[-1]
        if weights.ndim != 2 or weights.shape[1] != width:
            raise ValueError(f"neurons: out_weights has shape {weights.shape}, expected (neurons, {width})")
        rows = np.asarray(self.unembedding, float)
        rows = rows - rows.mean(0)  # softmax does not see what all logits share
        if self.norm.gain is not None:
            rows = rows * self.norm.gain
        if kind_facts("neurons", self.norm.kind).centers:
            rows = rows - rows.mean(1, keepdims=True)
            weights_seen = weights - weights.mean(1, keepdims=True)
        else:
            weights_seen = weights
        values, axes = np.linalg.eigh(rows.T @ rows)
        null = axes[:, values <= least**2 * values[-1]]
        norms = np.linalg.norm(weights, axis=1)
        seen = np.linalg.norm(weights_seen, axis=1)
        share = np.divide(np.linalg.norm(weights_seen @ null, axis=1), seen, out=np.zeros(len(weights)), where=seen > 0)
        effects = weights_seen @ rows.T
        reach = np.linalg.norm(effects, axis=1)
        if frequencies is None:
            return Neurons(norms, share**2, reach)
        often = numbers("neurons", "frequencies", frequencies)
        if often.shape != (len(rows),) or not ((often > 0.0) & np.isfinite(often)).all():
            raise ValueError(f"neurons: frequencies has shape {often.shape}, or is not above 0, expected ({len(rows)},) numbers "
                             "above 0")
        wanted = np.log(often) - np.log(often).mean()
        lengths = reach * np.linalg.norm(wanted)
        alike = np.divide(effects @ wanted * np.sign(self.scale), lengths, out=np.zeros(len(weights)), where=lengths > 0)
        return Neurons(norms, share**2, reach, alike)

    def _linear(self, normalized: Any, tokens: Any, constant: bool = False) -> np.ndarray:
        logits = normalized @ np.asarray(self.unembedding, float)[tokens].T
        if constant and self.bias is not None:
            logits = logits + np.asarray(self.bias, float)[tokens]
        return self.scale * logits


@dataclasses.dataclass(frozen=True, repr=False)
class Decomposition:
    """Logits before a soft cap as sums: `parts.sum(0) + constant`.

    Shapes   parts (count, ..., tokens); constant (..., tokens), of the biases of norm and head
    """

    parts: np.ndarray
    constant: np.ndarray

    def __repr__(self) -> str:
        return f"Decomposition({len(self.parts)} parts of {self.parts.shape[-1]} logits)"

    @property
    def logits(self) -> np.ndarray:
        """The sum."""
        return self.parts.sum(0) + self.constant


@dataclasses.dataclass(frozen=True, repr=False)
class Neurons:
    """For every neuron: the length of the vector it writes; of its part that the norm sees (without its mean, for LayerNorm),
    the share of the squared length in the near-null space of the head; and the length of its direct effect on the
    logits at σ = 1, without the part common to all logits. With `frequencies`, also the correlation of that effect with the
    logarithm of the tokens' frequencies; its square is the share of the effect that shifts logits by frequency."""

    norm: np.ndarray
    null_share: np.ndarray
    logit_effect: np.ndarray
    frequency_correlation: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"Neurons({len(self.norm)}, null share at most {self.null_share.max(initial=0.0):.3g})"

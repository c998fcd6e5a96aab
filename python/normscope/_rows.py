"""Which tokens the rows that enter a norm belong to, and the largest entries among them."""

from __future__ import annotations

import dataclasses
import inspect
import threading
from typing import Any, Callable, NamedTuple, Union

import numpy

from ._check import reason

#: Names of the arguments by which models take tokens.
_TOKENS = "input_ids", "tokens", "input", "idx"

#: Which rows count: those that the call's attention_mask keeps (True), all (False), those of a tensor (batch, positions),
#: or of one that a function of (arguments, keywords) returns.
Mask = Union[bool, Any, Callable[[tuple[Any, ...], dict[str, Any]], Any]]


class Inputs(NamedTuple):
    """What a call of the model was given."""

    call: int
    tokens: numpy.ndarray | None  #: (batch, positions)
    mask: numpy.ndarray | None  #: (batch, positions), True for rows that count
    first: int  #: position of the first token, with keys of earlier calls
    places: numpy.ndarray | None  #: (batch or 1, positions), as the model was told


def _matrix(value: Any) -> numpy.ndarray | None:
    if not hasattr(value, "detach") or value.is_floating_point() or value.ndim not in (1, 2) or value.is_meta:
        return None
    found = value.detach().cpu().numpy()
    return found[None] if found.ndim == 1 else found


class Calls:
    """The calls of a model that run, one for each thread."""

    def __init__(self, model: Any, mask: Mask) -> None:
        self._mask = mask
        config = getattr(model, "config", None)
        self._two_streams = bool(getattr(config, "is_encoder_decoder", False))
        try:
            self._parameters = list(inspect.signature(model.forward).parameters)
        except (AttributeError, TypeError, ValueError):
            self._parameters = []
        self._running: dict[int, Inputs | str] = {}
        self._count = 0

    def begin(self, given: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        """A mask that cannot be had is the reason why no norm of the call is measured."""
        thread = threading.get_ident()
        try:
            self._running[thread] = self._inputs(given, keywords)
        except Exception as error:  # code of others, which may fail in any way
            self._running[thread] = f"its mask could not be had: {reason(error) or type(error).__name__}"
        self._count += 1

    def _inputs(self, given: tuple[Any, ...], keywords: dict[str, Any]) -> Inputs:
        named = {**dict(zip(self._parameters, given)), **keywords}
        # Two streams have tokens of their own: a row of one shape may be of either.
        first_given = given[0] if given else None
        tokens = None if self._two_streams else _matrix(
            next((named[name] for name in _TOKENS if named.get(name) is not None), first_given))
        mask = None
        stated = callable(self._mask) or hasattr(self._mask, "shape")
        if stated:
            mask = self._mask(given, keywords) if callable(self._mask) else self._mask
        elif self._mask is True and not self._two_streams:
            mask = named.get("attention_mask")
        mask = None if mask is None else numpy.asarray(mask.detach().cpu() if hasattr(mask, "detach") else mask)
        if stated and mask is not None and (mask.ndim != 2 or tokens is not None and mask.shape != tokens.shape):
            expected = "(batch, positions)" if tokens is None else tokens.shape
            raise ValueError(f"it has shape {mask.shape}, expected {expected}")
        mask = None if mask is None or mask.ndim != 2 else mask != 0
        first = 0
        if tokens is not None and mask is not None and mask.shape[1] > tokens.shape[1]:  # with a cache of earlier keys
            first = mask.shape[1] - tokens.shape[1]
            mask = mask[:, first:]
        return Inputs(self._count, tokens, mask, first, _matrix(named.get("position_ids")))

    def end(self) -> None:
        self._running.pop(threading.get_ident(), None)

    def now(self) -> Inputs | None:
        """The inputs of the call that this thread is in.

        Errors   ValueError if its mask could not be had
        """
        found = self._running.get(threading.get_ident())
        if isinstance(found, str):
            raise ValueError(found)
        return found


class Rows(NamedTuple):
    """The rows of one call of a norm that count, and where each stands."""

    kept: numpy.ndarray | None  #: indices among the rows, None for all
    call: int
    contexts: numpy.ndarray
    positions: numpy.ndarray
    tokens: numpy.ndarray | None

    def within(self, begin: int, count: int) -> Rows:
        """Of `count` rows of the call from `begin` on, which they are counted from."""
        if self.kept is None:
            first, last, kept = begin, begin + count, None
        else:
            first, last = numpy.searchsorted(self.kept, [begin, begin + count])
            kept = self.kept[first:last] - begin
        return Rows(kept, self.call, self.contexts[first:last], self.positions[first:last],
                    None if self.tokens is None else self.tokens[first:last])


def rows_of(shape: tuple[int, ...], inputs: Inputs | None, call: int, spaced: int) -> Rows:
    """Where the rows of a tensor of that shape (…, width) stand, of which every `spaced`-th is taken."""
    lead = shape[:-1]
    count = int(numpy.prod(lead, dtype=int))
    index = numpy.arange(count)
    known = inputs.tokens if inputs is not None else None
    size = known if known is not None else inputs.mask if inputs is not None else None
    if size is not None and len(lead) >= 2 and lead[:2] == size.shape:
        inner = count // max(1, size.size)
        contexts, positions = numpy.divmod(index // max(1, inner), size.shape[1])
    elif size is not None and len(lead) == 3 and (lead[0], lead[2]) == size.shape:  # heads before positions
        contexts, positions = index // (lead[1] * lead[2]), index % lead[2]
    elif size is not None and len(lead) == 1 and count == size.size:
        contexts, positions = numpy.divmod(index, size.shape[1])
    else:
        size = known = None
        per = lead[-1] if len(lead) >= 2 else count
        contexts, positions = numpy.divmod(index, max(1, per))
    kept = None
    mask = inputs.mask if inputs is not None and size is not None else None
    if mask is not None and mask.shape == size.shape and not mask.all():
        kept = index[mask[contexts, positions]]
    if spaced > 1:
        kept = (index if kept is None else kept)[::spaced]
    if kept is not None:
        contexts, positions = contexts[kept], positions[kept]
    tokens = None if known is None else known[contexts, positions]
    if size is not None and inputs is not None:
        told = inputs.places
        if told is not None and told.shape in (size.shape, (1, size.shape[1])):
            positions = numpy.broadcast_to(told, size.shape)[contexts, positions]
        else:
            positions = positions + inputs.first
    return Rows(kept, inputs.call if inputs is not None else call, contexts, positions, tokens)


@dataclasses.dataclass(frozen=True)
class Extreme:
    """The largest entry of a feature among the rows that entered a norm, or the first row that was not finite."""

    norm: str
    coordinate: int | None  #: None for a row that was not finite
    value: float
    call: int  #: of the model, from 0; of the norm, where it is called alone
    context: int  #: within the call's batch
    position: int
    token: int | None  #: its id, where the model's input has one for the row


class Extremes:
    """The largest entry of every feature, and the first row that is not finite."""

    def __init__(self, width: int) -> None:
        self.sizes = numpy.zeros(width)
        self.values = numpy.zeros(width)
        self.places = numpy.full((width, 4), -1, dtype=numpy.int64)
        self.broken: tuple[float, int, int, int, int] | None = None

    def see(self, x: numpy.ndarray, rows: Rows) -> None:
        """`x` holds the rows that count (rows, width)."""
        if len(x) == 0:
            return
        finite = numpy.isfinite(x).all(-1)
        if self.broken is None and not finite.all():
            row = int(numpy.argmin(finite))
            place = _places(rows, numpy.array([row]))[0]
            self.broken = (float(x[row][~numpy.isfinite(x[row])][0]), *(int(value) for value in place))
        sizes = abs(x)
        if not finite.all():
            sizes[~finite] = 0.0
        largest = sizes.max(0)
        larger = numpy.flatnonzero(largest > self.sizes)
        at = sizes[:, larger].argmax(0)
        self.sizes[larger] = largest[larger]
        self.values[larger] = x[at, larger]
        self.places[larger] = _places(rows, at)

    def merge(self, other: Extremes, calls: int) -> None:
        """`calls` is how many calls came before those of `other`."""
        larger = other.sizes > self.sizes
        self.sizes[larger], self.values[larger] = other.sizes[larger], other.values[larger]
        self.places[larger] = other.places[larger] + numpy.array([calls, 0, 0, 0])
        if self.broken is None and other.broken is not None:
            value, call, *rest = other.broken
            self.broken = (value, call + calls, *rest)

    def listed(self, name: str, most: int) -> list[Extreme]:
        found = [Extreme(name, int(coordinate), float(self.values[coordinate]), *_place(self.places[coordinate]))
                 for coordinate in numpy.argsort(-self.sizes, kind="stable")[:most] if self.sizes[coordinate] > 0]
        return found if self.broken is None else [Extreme(name, None, self.broken[0], *_place(self.broken[1:])), *found]


def _places(rows: Rows, at: numpy.ndarray) -> numpy.ndarray:
    """Call, context, position and token of rows."""
    tokens = numpy.full(len(at), -1) if rows.tokens is None else rows.tokens[at]
    return numpy.stack([numpy.full(len(at), rows.call), rows.contexts[at], rows.positions[at], tokens], -1)


def _place(place: Any) -> tuple[int, int, int, int | None]:
    call, context, position, token = (int(value) for value in place)
    return call, context, position, None if token < 0 else token

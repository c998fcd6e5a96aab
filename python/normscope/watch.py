"""Statistics of the rows that enter the norms of a live torch model."""

from __future__ import annotations

import sys
import threading
import weakref
from typing import Any, Callable, Iterable, Iterator, Union

import numpy

from . import _core
from ._check import count, reason, recording, shown, text
from ._rows import Calls, Extremes, Mask, Rows, rows_of
from .model import Activations, Collected, Observed
from .modules import CONSIDERED_ROWS, dtype_of, gain_of, owners_of, says_norm, uncompiled, understood

#: Entries that are copied at once from another device.
MOST_COPIED = 2**24

Which = Union[Callable[[str, Any], bool], Iterable[str], None]


class _Watched:
    """One norm: its statistics, and what of its calls they do not cover."""

    def __init__(self) -> None:
        self.calls = 0
        self.spec: Any = None
        self.observer: Any = None
        self.extremes: Any = None
        self.refused = ""  #: why it is not measured
        self.notes: list[str] = []
        self.undecided: list[numpy.ndarray] = []  #: for each call before its kind was known, NaN or 0 for each row
        self.failed: dict[str, int] = {}  #: calls that could not be measured, by the reason

    def reasons(self) -> list[str]:
        """What is to be said of it."""
        if self.calls == 0:
            return ["it was not called"]
        lost = [f"{count} of {self.calls} calls could not be measured: {why}" for why, count in self.failed.items()]
        if self.observer is None and not self.refused and not lost:
            return ["no row of its input was finite and other than 0, from which to tell what it computes"]
        return ([self.refused] if self.refused else self.notes) + lost


class Watch:
    """Collects statistics of the rows that enter the norms of a model, while the model runs. Made by `watch`.

    It watches until it is closed, or no longer referred to. `copied_bytes` counts what was copied from other devices.
    """

    def __init__(self, model: Any, which: Which, mask: Mask, most_rows: int, *how: int) -> None:
        self._model = type(model).__name__
        self._module = weakref.ref(model)
        self._how = how
        self._most_rows = most_rows
        self.copied_bytes = 0
        self._one_at_a_time = threading.Lock()  # models may run in several threads
        self._calls = Calls(model, mask)
        wanted = _choice_of(which)
        chosen = dict(_renamed(model, _outermost(entry for entry in model.named_modules() if wanted(*entry))))
        if not chosen:
            raise ValueError(f"watch: {self._model} has no norm" + ("" if which is None else " that was asked for"))
        self._norms = {name: _Watched() for name in chosen}
        ends: list[Callable[[], Any]] = []
        self._end = weakref.finalize(self, _run_all, ends)
        try:
            root = getattr(model, "_modules", {}).get("_orig_mod") or model
            ends.append(root.register_forward_pre_hook(_Hook(self, None), with_kwargs=True).remove)
            ends.append(root.register_forward_hook(_Hook(self, None), with_kwargs=True, always_call=True).remove)
            ends.extend(module.register_forward_hook(_Hook(self, name), with_kwargs=True).remove
                        for name, module in chosen.items())
            ends.extend(uncompiled(model))
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Stops watching; what was collected stays."""
        self._end()

    def result(self) -> Activations:
        """The statistics so far. Norms that could not be measured, or not in every call, are listed with the reason in
        `not_understood`.

        Errors   ValueError if no norm was called
        """
        with self._one_at_a_time:
            if not any(norm.calls for norm in self._norms.values()):
                raise ValueError(f"watch: no norm of {self._model} was called")
            norms = {name: Observed(norm.calls, norm.spec, norm.observer, norm.extremes)
                     for name, norm in self._norms.items() if norm.observer is not None}
            reasons = [(name, why) for name, norm in self._norms.items() for why in norm.reasons()]
            return Activations(Collected(self._model, norms, reasons, self._how), self._module)

    def _see(self, name: str, module: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Takes a call of a norm. What goes wrong is recorded: it is no fault of the model, which runs on."""
        with self._one_at_a_time:
            norm = self._norms[name]
            norm.calls += 1
            if norm.refused:
                return
            try:
                if recording():
                    raise TypeError("torch recorded its operations")
                with numpy.errstate(all="ignore"):
                    self._measure(norm, module, inputs, output)
            except Exception as error:
                why = reason(error) or type(error).__name__
                norm.failed[why] = norm.failed.get(why, 0) + 1

    def _measure(self, norm: _Watched, module: Any, inputs: tuple[Any, ...], output: Any) -> None:
        if not inputs or not hasattr(inputs[0], "detach"):
            raise ValueError("it was called without tensors as arguments")
        x = inputs[0].detach()
        rows = x.reshape(-1, x.shape[-1] if x.ndim else 1)
        given = self._calls.now()
        whole = rows_of(tuple(x.shape), given, norm.calls - 1, 1)
        counted = whole
        left = len(rows) if whole.kept is None else len(whole.kept)
        if self._most_rows and left > self._most_rows:
            counted = rows_of(tuple(x.shape), given, norm.calls - 1, -(-left // self._most_rows))
        if norm.extremes is None:
            norm.extremes = Extremes(rows.shape[-1])
        if norm.observer is None and not self._decide(norm, module, x, output):
            if not norm.refused:
                for piece, counted_there, _ in self._pieces(rows, rows, counted, whole):
                    norm.undecided.append(_without_entries(piece))
                    norm.extremes.see(_array_of(piece), counted_there)
            return
        for piece, counted_there, contexts in self._pieces(rows, x, counted, whole):
            for context in contexts:
                _core.observe_contexts(norm.observer, *context)
            _core.observe(norm.observer, piece)
            norm.extremes.see(_array_of(piece), counted_there)

    def _decide(self, norm: _Watched, module: Any, x: Any, output: Any) -> bool:
        """Finds out which norm it is; False if that cannot be told, or it is none."""
        y = output.detach() if hasattr(output, "detach") else None
        if y is not None and not (x.is_cpu and y.is_cpu) and x.shape == y.shape and x.ndim:
            step = max(1, x.numel() // max(1, x.shape[-1] * CONSIDERED_ROWS))
            x, y = (self._on_cpu(tensor.reshape(-1, tensor.shape[-1])[::step]) for tensor in (x, y))
        found = understood(module, x, y)
        if found is None:
            return False
        if isinstance(found, str):
            norm.refused = found
            return False
        norm.spec, norm.notes = found
        norm.observer = _core.observer_of(norm.spec, *self._how)
        for earlier in norm.undecided:
            _core.observe(norm.observer, numpy.repeat(earlier[:, None], norm.spec.width, 1))
        norm.undecided = []
        return True

    def _on_cpu(self, tensor: Any) -> Any:
        if not tensor.is_cpu:
            self.copied_bytes += tensor.numel() * tensor.element_size()
        return tensor.cpu()

    def _pieces(self, rows: Any, x: Any, counted: Rows, whole: Rows) -> Iterator[tuple[Any, Rows, Any]]:
        """The rows that count with their places, and the contexts, in pieces of a bounded size where they have to be
        copied."""
        length = x.shape[-2] if x.ndim > 2 else 1
        most = len(rows)
        if not rows.is_cpu:
            most = max(1, MOST_COPIED // max(1, rows.shape[-1] * length)) * length
        for begin in range(0, len(rows), most) if len(rows) else [0]:
            piece = self._on_cpu(rows[begin:begin + most])
            there, everything = counted.within(begin, len(piece)), whole.within(begin, len(piece))
            contexts = _contexts(piece, length, everything.kept) if x.ndim > 2 else ()
            yield piece if there.kept is None else piece[there.kept], there, contexts


def _contexts(rows: Any, length: int, kept: numpy.ndarray | None) -> Iterator[tuple[Any, int]]:
    """The contexts of `length` rows each, without the rows that do not count, and how long they are then."""
    if kept is None:
        yield rows, length
        return
    for inside in numpy.split(kept, numpy.flatnonzero(numpy.diff(kept // length)) + 1) if len(kept) else ():
        yield rows[inside], len(inside)


class _Hook:
    """What a watched norm calls. It refers to the watch weakly; copies of the norm, and files of it, call nothing."""

    def __init__(self, watch: Watch, name: str | None) -> None:
        self._watch, self._name = weakref.ref(watch), name  # without a name it is of the whole model

    def __call__(self, module: Any, inputs: tuple[Any, ...], keywords: dict[str, Any], *output: Any) -> None:
        torch = sys.modules.get("torch")
        if torch is not None and torch.compiler.is_compiling():
            return  # a graph has no watch in it
        watch = self._watch()
        # A norm that runs within a backward pass is one that gradient checkpointing runs again.
        if watch is None or torch is not None and torch._C._current_graph_task_id() >= 0:
            return
        if self._name is not None:
            watch._see(self._name, module, (*inputs, *keywords.values()), *output)
        elif output:
            watch._calls.end()
        else:
            watch._calls.begin(inputs, keywords)

    def __reduce__(self) -> Any:
        return _nothing, ()


def _nothing() -> Any:
    return _call_nothing


def _call_nothing(*_: Any) -> None:
    """The hook of a copy of a watched norm."""


def _run_all(ends: list[Callable[[], Any]]) -> None:
    while ends:
        ends.pop()()


def watch(model: Any, which: Which = None, *, mask: Mask = True, axes: int = 8, features: int = 8, sample: int = 256,
          contexts: int = 2, positions: int = 128, most_rows: int = 0, seed: int = 1) -> Watch:
    """Watches the norms of a torch model: `with watch(model) as seen: model(x)`, then `seen.result()`.

    Norms are torch's own, those of transformers and TransformerLens, and other modules whose class name contains
    LayerNorm or RMSNorm. The output of its first finite rows decides whether each is a LayerNorm or an RMSNorm and
    whether its gain is stored minus 1; one that is neither is listed as not understood, and so is one whose parameters
    are not there, or a call that could not be measured: the model runs on. Tensors may be on any device: what is measured is
    copied piece by piece. Compiled models
    run uncompiled while they are watched, and what gradient checkpointing runs again is counted once.

    which       a function of (name, module), or names of modules, or one; all norms where None
    mask        which rows count: those that the call's attention_mask keeps (True), all (False), those where a tensor
                (batch, positions) is not 0, or one that a function of (arguments, keywords) of the model returns; all rows
                count of models with an encoder and a decoder, unless one is given
    axes        how many of the longest principal axes to follow
    features    how many features with the largest share to list
    sample      rows kept of each norm, chosen evenly, for dimension and curvature
    contexts    contexts (next to last axis) kept of each norm, chosen evenly, for the keys of heads
    positions   first rows of a context that are kept
    most_rows   of each call, evenly spaced; 0 for all
    Memory      width * (axes + sample + contexts * positions) numbers of float64 for each norm, however long it watches
    Errors      TypeError unless it is a module, ValueError for a model without norms
    """
    how = (count("watch", name, value, least) for name, value, least in
           (("most_rows", most_rows, 0), ("axes", axes, 0), ("features", features, 0), ("sample", sample, 0),
            ("contexts", contexts, 0), ("positions", positions, 2), ("seed", seed, 0)))
    if not hasattr(model, "named_modules"):
        raise TypeError(f"watch: {type(model).__name__} is no torch.nn.Module")
    return Watch(model, which, mask, *how)


def _choice_of(which: Which) -> Callable[[str, Any], bool]:
    if which is None:
        return lambda name, module: _is_norm(module)
    if callable(which):
        return which
    try:
        names = frozenset(text("watch", "which", name) for name in ([which] if isinstance(which, str) else which))
    except Exception:  # an object's own code, which may fail in any way
        raise TypeError(f"watch: which is {shown(which)}, expected a function of (name, module), or names of modules") from None
    return lambda name, module: name in names


def _is_norm(module: Any) -> bool:
    """Whether its class name is that of a norm, and no module inside it has parameters, except one that it wraps."""
    return says_norm(module) and all(says_norm(child) for child in module.children()
                                      for _ in child.parameters())


def _outermost(modules: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    """The modules that are not inside another one; each comes after the modules that contain it."""
    last = None
    for name, module in modules:
        if last is None or not name.startswith(f"{last}."):
            last = name
            yield name, module


def _renamed(model: Any, modules: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    """With TransformerLens's names where the model is a bridge of it, as `open` has them."""
    owners = owners_of(model)
    for name, module in modules:
        gain = gain_of(module) if owners else None
        owner = None if gain is None else owners.get(gain[1].data_ptr())
        yield name if owner is None else owner.rpartition(".")[0], module


def _array_of(rows: Any) -> numpy.ndarray:
    return (rows if dtype_of(rows) in ("float64", "float32") else rows.double()).numpy()


def _without_entries(rows: Any) -> numpy.ndarray:
    """For each row NaN where it is not finite, else 0."""
    return numpy.where(numpy.isfinite(rows.double().numpy()).all(-1), 0.0, numpy.nan)

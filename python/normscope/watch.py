"""Statistics of the rows that enter the norms of a live torch model."""

from __future__ import annotations

import json
import os
import threading
import weakref
from typing import Any, Callable, Iterable, Union

import numpy

from . import _core, results
from ._check import callback, count, path, real, reason, recording, shown, text
from .analyses import Norm, Progress
from .charts import Illustrated
from .kernels import normalize

#: Largest difference, relative to the largest output, at which a module counts as the norm that it is taken for.
_AGREES = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 5e-2}
#: Rows that decide which norm a module is, and the rows among which they are chosen.
_TRIED_ROWS, _CONSIDERED_ROWS = 16, 1024

Which = Union[Callable[[str, Any], bool], Iterable[str], None]


#: What a module may call its gain and its bias: torch's and transformers' names, and TransformerLens's.
_GAINS = "weight", "w", "scale"
_BIASES = "bias", "b"
#: And its eps.
_EPS = "eps", "variance_epsilon", "epsilon", "layer_norm_eps", "norm_eps", "rms_norm_eps"


class Activations(Illustrated):
    """Statistics of the rows that entered the norms of a model; `document` has the numbers, `charts` the figures: "sigma", "ones",
    "frozen" and "dimension", and "keys" after `in_model`."""

    def __init__(self, texts: tuple[str, str], collected: tuple[Any, ...], module: Callable[[], Any]) -> None:
        super().__init__(results.loads(texts[0]), json.loads(texts[1]))
        self._texts, self._collected, self._module = texts, collected, module

    def __repr__(self) -> str:
        rows = max((norm.rows for norm in self.document.norms), default=0)
        return f"<normscope.Activations {self.document.model}: {len(self.document.norms)} norms, {rows} rows>"

    def within(self, model: Any = None, *, heads: int = 48, budget: float = 40.0, threads: int = 0,
               progress: Progress | None = None) -> Activations:
        """The same with the consequences for the heads and logits of the model, in the document's `in_model`.

        Of the contexts that were kept, the share of the keys that a query can select, behind norms with and without
        projection and scaling; of the kept rows of the final norm, the KL divergence of the logits where their scale is
        frozen at its mean, and whether the likeliest next tokens can be the most likely one at all.

        model     as `open` takes it; the watched module where None
        heads     at most; they are spread evenly over the layers
        budget    billions of multiplications after which no further head, and no further token, is started
        Errors    ValueError if the watched module is gone, and as `open`
        Source    Brody, Alon, Yahav 2023, for real contexts
        """
        most, work = count("within", "heads", heads), real("within", "budget", budget)
        opened = self._opened(model)
        texts = _core.observed(*self._collected, opened._core, most, work, count("within", "threads", threads),
                               callback("within", progress))
        return Activations(texts, self._collected, self._module)

    def report(self, model: Any = None, **options: Any) -> Any:
        """The report of the model's weights with these activations beside them, one page: `Model.report`, which takes
        the `options`.

        model    as `open` takes it; the watched module where None
        Errors   ValueError if the watched module is gone, and as `open`
        """
        return self._opened(model).report(activations=self, **options)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the JSON document, whole or not at all.

        Errors   OSError
        """
        self.document.save(path("save", "file", file))

    def _opened(self, model: Any) -> Any:
        from .model import Model, open as open_model

        if isinstance(model, Model):
            return model
        module = self._module() if model is None else model
        if module is None:
            raise ValueError("activations: the watched module is gone, expected a model")
        return open_model(module)

    def _page_data(self) -> str:
        document, charts = self._texts
        return f'{{"document":{document},"charts":{charts}}}'


class _Watched:
    """One norm: its statistics, and what of its calls they do not cover."""

    def __init__(self) -> None:
        self.calls = 0
        self.observer: Any = None
        self.refused = ""  #: why it is not measured
        self.notes: list[str] = []
        self.undecided: list[numpy.ndarray] = []  #: for each call before its kind was known, NaN or 0 for each row
        self.failed: dict[str, int] = {}  #: calls that could not be measured, by the reason

    def reasons(self) -> list[str]:
        """What is to be said of it."""
        lost = [f"{count} of {self.calls} calls could not be measured: {why}" for why, count in self.failed.items()]
        if self.observer is None and not self.refused and not lost:
            return ["no row of its input was finite and other than 0, from which to tell what it computes"]
        return ([self.refused] if self.refused else self.notes) + lost


class Watch:
    """Collects statistics of the rows that enter the norms of a model, while the model runs. Made by `watch`.

    It watches until it is closed, or no longer referred to.
    """

    def __init__(self, model: Any, which: Which, most_rows: int, *how: int) -> None:
        self._model = type(model).__name__
        self._module = weakref.ref(model)
        self._how = how
        self._most_rows = most_rows
        self._norms: dict[str, _Watched] = {}
        self._one_at_a_time = threading.Lock()  # models may run in several threads
        wanted = _choice_of(which)
        chosen = _outermost(entry for entry in model.named_modules() if wanted(*entry))
        hooks = [module.register_forward_hook(_hook_of(weakref.ref(self), name))
                 for name, module in _renamed(model, chosen)]
        if not hooks:
            raise ValueError(f"watch: {self._model} has no norm" + ("" if which is None else " that was asked for"))
        self._end = weakref.finalize(self, _remove, hooks)

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
            if not self._norms:
                raise ValueError(f"watch: no norm of {self._model} was called")
            norms = [(name, norm.calls, norm.observer) for name, norm in self._norms.items() if norm.observer is not None]
            reasons = [(name, why) for name, norm in self._norms.items() for why in norm.reasons()]
            collected = self._model, norms, reasons
            return Activations(_core.observed(*collected, None, 0, 0.0, 0, None), collected, self._module)

    def _see(self, name: str, module: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Takes a call of a norm. What goes wrong is recorded: it is no fault of the model, which runs on."""
        with self._one_at_a_time:
            norm = self._norms.setdefault(name, _Watched())
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
        x = _on_cpu(inputs[0]) if inputs else None
        if x is None:
            raise ValueError("it was called without tensors as arguments")
        rows = x.reshape(-1, x.shape[-1] if x.ndim else 1)
        spaced = rows
        if self._most_rows and len(rows) > self._most_rows:
            spaced = rows[::-(-len(rows) // self._most_rows)]
        if norm.observer is None:
            found = understood(module, x, _on_cpu(output))
            if found is None:
                norm.undecided.append(_without_entries(spaced))
                return
            if isinstance(found, str):
                norm.refused = found
                return
            spec, norm.notes = found
            norm.observer = _core.observer_of(spec, *self._how)
            for earlier in norm.undecided:
                _core.observe(norm.observer, numpy.repeat(earlier[:, None], spec.width, 1))
            norm.undecided = []
        if x.ndim > 2:
            _core.observe_contexts(norm.observer, rows, x.shape[-2])
        _core.observe(norm.observer, spaced)


def _hook_of(watch: weakref.ref[Watch], name: str) -> Callable[..., None]:
    def hook(module: Any, inputs: tuple[Any, ...], output: Any) -> None:
        alive = watch()
        if alive is not None:
            alive._see(name, module, inputs, output)

    return hook


def _remove(hooks: list[Any]) -> None:
    while hooks:
        hooks.pop().remove()


def watch(model: Any, which: Which = None, *, axes: int = 8, features: int = 8, sample: int = 256,
          contexts: int = 2, positions: int = 128, most_rows: int = 0, seed: int = 1) -> Watch:
    """Watches the norms of a torch model: `with watch(model) as seen: model(x)`, then `seen.result()`.

    Norms are torch's own, those of transformers and TransformerLens, and other modules whose class name contains
    LayerNorm or RMSNorm. The output of its first finite rows decides whether each is a LayerNorm or an RMSNorm and
    whether its gain is stored minus 1; one that is neither is listed as not understood, and so is one whose parameters
    are not there, or a call that could not be measured: the model runs on. Tensors may be on any device.

    which       a function of (name, module), or names of modules, or one; all norms where None
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
    return Watch(model, which, *how)


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


def says_norm(module: Any) -> bool:
    kind = type(module).__name__.lower()
    return any(word in kind for word in ("layernorm", "rmsnorm", "normalizationbridge"))


def _outermost(modules: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    """The modules that are not inside another one; each comes after the modules that contain it."""
    last = None
    for name, module in modules:
        if last is None or not name.startswith(f"{last}."):
            last = name
            yield name, module


def owners_of(model: Any) -> dict[int, str]:
    """The names that a bridge of TransformerLens gives the parameters of the model inside, by their addresses."""
    named = model.tl_parameters() if hasattr(model, "tl_parameters") else {}
    return {tensor.data_ptr(): name for name, tensor in named.items() if tensor.data_ptr() != 0}


def _renamed(model: Any, modules: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    """With TransformerLens's names where the model is a bridge of it, as `open` has them."""
    owners = owners_of(model)
    for name, module in modules:
        gain = gain_of(module) if owners else None
        owner = None if gain is None else owners.get(gain[1].data_ptr())
        yield name if owner is None else owner.rpartition(".")[0], module


def _on_cpu(tensor: Any) -> Any:
    return tensor.detach().cpu() if hasattr(tensor, "detach") else None


def _without_entries(rows: Any) -> numpy.ndarray:
    """For each row NaN where it is not finite, else 0."""
    return numpy.where(numpy.isfinite(rows.double().numpy()).all(-1), 0.0, numpy.nan)


def understood(module: Any, x: Any, y: Any) -> tuple[Norm, list[str]] | str | None:
    """The norm that `module` computed when it made y of x, with what was assumed; or why that is not known; or None
    where every row of x is 0 or not finite, which tells nothing.

    Shapes   x, y (..., width)
    Errors   ValueError for values from which it cannot be told
    """
    if x is None or y is None or x.ndim == 0 or x.shape != y.shape or x.shape[-1] == 0:
        return "its first argument and its result are not tensors of one shape"
    width = x.shape[-1]
    rows, wanted = _telling_rows(x, y)
    if len(rows) == 0:
        return None
    gain, bias = _parameter(module, _GAINS), _parameter(module, _BIASES)
    if any(parameter is not None and len(parameter) != width for parameter in (gain, bias)):
        return f"its parameters have other shapes than ({width},)"
    if not numpy.isfinite(wanted).all():
        raise ValueError("its output is not finite where its input is")
    stated = stated_eps(module, dtype_of(x))
    eps = 1e-5 if stated is None else stated
    most = abs(wanted).max() * max(_AGREES.get(dtype_of(values), 0.0) for values in (x, y))
    fitting = []
    for kind in ("layer", "rms"):
        for offset in (0.0, 1.0) if gain is not None else (0.0,):
            norm = Norm(width, kind, 1, eps, None if gain is None else gain + offset, bias)
            errors = abs(normalize(rows, norm.gain, bias, kind=kind, eps=eps) - wanted)
            if errors.max() <= most:
                fitting.append((float(numpy.square(errors).mean()) ** 0.5, norm))
    if not fitting:
        return f"its output is neither LayerNorm nor RMSNorm of its input with eps {eps:g}"
    fitting.sort(key=lambda entry: entry[0])
    notes = []
    if stated is None:
        notes.append(f"measured with eps {eps:g}, which fits its output; the module states none")
    # Rows without a mean do not tell the two kinds apart.
    alike = {norm.kind: norm for error, norm in reversed(fitting) if error <= max(2.0 * fitting[0][0], most / 1000.0)}
    if len(alike) == 1:
        return fitting[0][1], notes
    named = "rms" if "rms" in type(module).__name__.lower() else "layer"
    if not type(module).__module__.startswith(("torch.nn.", "normscope.")):
        notes.append("measured as LayerNorm or RMSNorm after the name of its class: its output fits both")
    return alike[named], notes


def dtype_of(tensor: Any) -> str:
    """"float32" for torch.float32."""
    return str(tensor.dtype).rpartition(".")[2]


def _telling_rows(x: Any, y: Any) -> tuple[numpy.ndarray, numpy.ndarray]:
    """Finite rows of x that are not 0, and those of y: the rows with the largest mean for their size, where kinds differ
    most."""
    width = x.shape[-1]
    rows = x.reshape(-1, width).double().numpy()
    good = numpy.flatnonzero(numpy.isfinite(rows).all(-1) & (rows != 0.0).any(-1))
    good = good[::max(1, -(-len(good) // _CONSIDERED_ROWS))]
    means = abs(rows[good].sum(-1)) / abs(rows[good]).sum(-1)
    chosen = good[numpy.argsort(-means, kind="stable")[:_TRIED_ROWS]]
    return rows[chosen], y.reshape(-1, width).double().numpy()[chosen]


def stated_eps(module: Any, dtype: str) -> float | None:
    """The eps that a module has as an attribute; of torch's RMSNorm with eps None, that of the numbers it takes."""
    for name in _EPS:
        value = getattr(module, name, False)
        if value is None and dtype in _AGREES:
            return _MACHINE_EPS[dtype]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        if getattr(value, "ndim", None) == 0:  # a tensor
            return float(value)
    return None


#: The spacing of numbers at 1.
_MACHINE_EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def gain_of(module: Any) -> tuple[str, Any] | None:
    """Its gain and the name that it has there."""
    return next(((name, value) for name in _GAINS for value in [getattr(module, name, None)]
                 if hasattr(value, "detach") and value.ndim > 0), None)


def _parameter(module: Any, names: tuple[str, ...]) -> Any:
    for name in names:
        found = getattr(module, name, None)
        if not hasattr(found, "detach"):
            continue
        if getattr(found, "is_meta", False):
            found = offloaded(module, name)
            if found is None:
                raise ValueError(f"its {name} has no values (meta device: offloaded, or not loaded)")
        return found.detach().cpu().double().flatten().numpy()
    return None


def offloaded(module: Any, name: str) -> Any:
    """A parameter on the meta device, from where accelerate keeps its values; None if it keeps none."""
    hook = getattr(module, "_hf_hook", None)
    for one in getattr(hook, "hooks", (hook,)):
        kept = getattr(one, "weights_map", None)
        if kept is not None and name in kept:
            return kept[name]
    return None

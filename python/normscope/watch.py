"""Statistics of the rows that enter the norms of a live torch model."""

from __future__ import annotations

import json
import os
import weakref
from typing import Any, Callable, Iterable, Union

from . import _core, results
from ._check import callback, count, path, real, shown, text
from .analyses import Norm, Progress
from .charts import Illustrated
from .kernels import normalize

#: Largest difference, relative to the largest output, at which a module counts as the norm that it is taken for.
_AGREES = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 5e-2}
#: Rows of the first call that decide which norm a module is.
_TRIED_ROWS = 16

Which = Union[Callable[[str, Any], bool], Iterable[str], None]


#: What a module may call its gain and its bias: torch's and transformers' names, and TransformerLens's.
_GAINS = "weight", "w", "scale"
_BIASES = "bias", "b"
#: And its eps.
_EPS = "eps", "variance_epsilon", "epsilon", "layer_norm_eps"


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


class Watch:
    """Collects statistics of the rows that enter the norms of a model, while the model runs. Made by `watch`."""

    def __init__(self, model: Any, which: Which, most_rows: int, *how: int) -> None:
        self._model = type(model).__name__
        self._module = weakref.ref(model)
        self._how = how
        self._most_rows = most_rows
        self._observers: dict[str, Any] = {}
        self._calls: dict[str, int] = {}
        self._not_understood: dict[str, str] = {}
        wanted = _choice_of(which)
        chosen = _outermost(entry for entry in model.named_modules() if wanted(*entry))
        self._hooks = [module.register_forward_hook(self._hook_of(name)) for name, module in _renamed(model, chosen)]
        if not self._hooks:
            raise ValueError(f"watch: {self._model} has no norm" + ("" if which is None else " that was asked for"))

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        """Stops watching; what was collected stays."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def result(self) -> Activations:
        """The statistics so far.

        Errors   ValueError if no norm was called
        """
        if not self._calls:
            raise ValueError(f"watch: no norm of {self._model} was called")
        norms = [(name, self._calls[name], observer) for name, observer in self._observers.items()]
        collected = self._model, norms, list(self._not_understood.items())
        return Activations(_core.observed(*collected, None, 0, 0.0, 0, None), collected, self._module)

    def _hook_of(self, name: str) -> Callable[..., None]:
        def hook(module: Any, inputs: tuple[Any, ...], output: Any) -> None:
            self._calls[name] = self._calls.get(name, 0) + 1
            if name in self._not_understood or not inputs:
                return
            x = _on_cpu(inputs[0])
            if name not in self._observers:
                norm = understood(module, x, _on_cpu(output))
                if isinstance(norm, str):
                    self._not_understood[name] = norm
                    return
                self._observers[name] = _core.observer_of(norm, *self._how)
            rows = x.reshape(-1, x.shape[-1])
            if x.ndim > 2:
                _core.observe_contexts(self._observers[name], rows, x.shape[-2])
            if self._most_rows and len(rows) > self._most_rows:
                rows = rows[::-(-len(rows) // self._most_rows)]
            _core.observe(self._observers[name], rows)

        return hook


def watch(model: Any, which: Which = None, *, axes: int = 8, features: int = 8, sample: int = 256,
          contexts: int = 2, positions: int = 128, most_rows: int = 0, seed: int = 1) -> Watch:
    """Watches the norms of a torch model: `with watch(model) as seen: model(x)`, then `seen.result()`.

    Norms are torch's own, those of transformers and TransformerLens, and other modules whose class name contains
    LayerNorm or RMSNorm. The output of the first call of each decides whether it is a LayerNorm or an RMSNorm and
    whether its gain is stored minus 1; one that is neither is listed as not understood. Tensors may be on any device.

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
    return _says_norm(module) and all(_says_norm(child) for child in module.children()
                                      for _ in child.parameters())


def _says_norm(module: Any) -> bool:
    kind = type(module).__name__.lower()
    return any(word in kind for word in ("layernorm", "rmsnorm", "normalizationbridge"))


def _outermost(modules: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    """The modules that are not inside another one; each comes after the modules that contain it."""
    last = None
    for name, module in modules:
        if last is None or not name.startswith(f"{last}."):
            last = name
            yield name, module


def _renamed(model: Any, modules: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    """With TransformerLens's names where the model is a bridge of it, as `open` has them."""
    if not hasattr(model, "tl_parameters"):
        return modules
    owners = {tensor.data_ptr(): name.rpartition(".")[0] for name, tensor in model.tl_parameters().items()}
    return [(owners.get(module.weight.data_ptr(), name) if hasattr(getattr(module, "weight", None), "data_ptr") else name,
             module) for name, module in modules]


def _on_cpu(tensor: Any) -> Any:
    return tensor.detach().cpu() if hasattr(tensor, "detach") else None


def understood(module: Any, x: Any, y: Any) -> Norm | str:
    """The norm that `module` computed when it made y of x, or why that is not known.

    Shapes   x, y (..., width)
    """
    if x is None or y is None or x.ndim == 0 or x.shape != y.shape or x.numel() == 0:
        return "its first argument and its result are not tensors of one shape"
    width = x.shape[-1]
    gain, bias = _parameter(module, _GAINS), _parameter(module, _BIASES)
    if any(parameter is not None and len(parameter) != width for parameter in (gain, bias)):
        return f"its parameters have other shapes than ({width},)"
    eps = next((float(value) for value in (getattr(module, name, None) for name in _EPS)
                if isinstance(value, (int, float))), 1e-5)
    rows = x.reshape(-1, width)[:_TRIED_ROWS].double().numpy()
    wanted = y.reshape(-1, width)[:_TRIED_ROWS].double().numpy()
    size = abs(wanted).max() or 1.0
    for kind in ("layer", "rms"):
        for offset in (0.0, 1.0) if gain is not None else (0.0,):
            norm = Norm(width, kind, 1, eps, None if gain is None else gain + offset, bias)
            if abs(normalize(rows, norm.gain, bias, kind=kind, eps=eps) - wanted).max() <= size * _AGREES.get(
                    str(x.dtype).rpartition(".")[2], 0.0):
                return norm
    return f"its output is neither LayerNorm nor RMSNorm of its input with eps {eps:g}"


def _parameter(module: Any, names: tuple[str, ...]) -> Any:
    found = next((value for value in (getattr(module, name, None) for name in names) if hasattr(value, "detach")), None)
    return None if found is None else found.detach().cpu().double().flatten().numpy()

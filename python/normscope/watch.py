"""What data does in the norms of a live torch model."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any, Callable, Iterable, Union

from . import _core, results
from ._check import count
from .analyses import Norm
from .charts import Illustrated
from .kernels import normalize

#: Largest difference, relative to the largest output, at which a module counts as the norm that it is taken for.
_AGREES = {"float64": 1e-9, "float32": 1e-4, "float16": 2e-2, "bfloat16": 5e-2}
#: Rows of the first call that decide which norm a module is.
_TRIED_ROWS = 16

Which = Union[Callable[[str, Any], bool], Iterable[str], None]


class Activations(Illustrated):
    """What data did in the norms of a model; `document` has the numbers, `charts` the figures: "sigma", "ones",
    "frozen" and "dimension"."""

    def __repr__(self) -> str:
        rows = max((norm.rows for norm in self.document.norms), default=0)
        return f"<normscope.Activations {self.document.model}: {len(self.document.norms)} norms, {rows} rows>"

    def _repr_html_(self) -> str:
        return self.document._repr_html_()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the JSON document."""
        self.document.save(pathlib.Path(path))


class Watch:
    """Collects statistics of the rows that enter the norms of a model, while the model runs. Made by `watch`."""

    def __init__(self, model: Any, which: Which, axes: int, features: int, sample: int, most_rows: int,
                 seed: int) -> None:
        self._model = type(model).__name__
        self._how = axes, features, sample, seed
        self._most_rows = most_rows
        self._observers: dict[str, Any] = {}
        self._calls: dict[str, int] = {}
        self._not_understood: dict[str, str] = {}
        wanted = _choice_of(which)
        self._hooks = [module.register_forward_hook(self._hook_of(name))
                       for name, module in model.named_modules() if wanted(name, module)]
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
        """What data did so far.

        Errors   ValueError if no norm was called
        """
        if not self._calls:
            raise ValueError(f"watch: no norm of {self._model} was called")
        norms = [(name, self._calls[name], observer) for name, observer in self._observers.items()]
        document, charts = _core.observed(self._model, norms, list(self._not_understood.items()))
        return Activations(results.loads(document), json.loads(charts))

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
            if self._most_rows and len(rows) > self._most_rows:
                rows = rows[::-(-len(rows) // self._most_rows)]
            _core.observe(self._observers[name], rows)

        return hook


def watch(model: Any, which: Which = None, *, axes: int = 8, features: int = 8, sample: int = 256,
          most_rows: int = 0, seed: int = 1) -> Watch:
    """Watches the norms of a torch model: `with watch(model) as seen: model(x)`, then `seen.result()`.

    Norms are torch's own, those of transformers and other modules whose class name says LayerNorm or RMSNorm. The first
    call of each decides, from its output, whether it is a LayerNorm or an RMSNorm and whether its gain is stored minus
    1; one that is neither is listed as not understood. Tensors may be on any device.

    which       a function of (name, module), or names of modules; all norms where None
    axes        how many of the longest principal axes to follow
    features    how many features with the largest share to list
    sample      rows kept of each norm, chosen evenly, for dimension and curvature
    most_rows   of each call, evenly spaced; 0 for all
    Memory      width * (axes + sample) numbers of float64 for each norm, however long it watches
    """
    how = (count("watch", name, value, least) for name, value, least in
           (("axes", axes, 0), ("features", features, 0), ("sample", sample, 0), ("most_rows", most_rows, 0),
            ("seed", seed, 0)))
    if not hasattr(model, "named_modules"):
        raise TypeError(f"watch: {type(model).__name__} is no torch.nn.Module")
    return Watch(model, which, *how)


def _choice_of(which: Which) -> Callable[[str, Any], bool]:
    if which is None:
        return lambda name, module: _is_norm(module)
    if callable(which):
        return which
    names = set(which)
    return lambda name, module: name in names


def _is_norm(module: Any) -> bool:
    kind = type(module).__name__.lower()
    return not any(True for _ in module.children()) and any(word in kind for word in ("layernorm", "rmsnorm"))


def _on_cpu(tensor: Any) -> Any:
    return tensor.detach().cpu() if hasattr(tensor, "detach") else None


def understood(module: Any, x: Any, y: Any) -> Norm | str:
    """The norm that `module` computed when it made y of x, or why that is not known.

    Shapes   x, y (..., width)
    """
    if x is None or y is None or x.ndim == 0 or x.shape != y.shape or x.numel() == 0:
        return "its first argument and its result are not tensors of one shape"
    width = x.shape[-1]
    gain, bias = _flat(getattr(module, "weight", None)), _flat(getattr(module, "bias", None))
    if any(parameter is not None and len(parameter) != width for parameter in (gain, bias)):
        return f"its parameters have other shapes than ({width},)"
    eps = next((float(value) for value in (getattr(module, name, None) for name in
                                           ("eps", "variance_epsilon", "epsilon", "layer_norm_eps"))
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


def _flat(parameter: Any) -> Any:
    return None if parameter is None else parameter.detach().cpu().double().flatten().numpy()

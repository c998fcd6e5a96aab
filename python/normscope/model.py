"""Models: `open` a checkpoint, or a live torch module, and ask what its norms do."""

from __future__ import annotations

import dataclasses
import functools
import html
import json
import math
import os
import pickle
from typing import Any, Callable, NamedTuple, Sequence

from . import _core, results
from ._check import callback, count, counts, flag, optional_path, path, real, shown, text
from ._rows import Extreme, Extremes
from .analyses import Norm, Progress
from .charts import Illustrated, illustrated, suffix_of
from .foreign import is_foreign, open_converted
from .head import Head
from .live import snapshot_of


class Model:
    """An open checkpoint. Made by `open`."""

    def __init__(self, source: str | os.PathLike[str], name: str | None = None, *, architecture: str = "",
                 heads: int = 0) -> None:
        file = path("open", "model", source)
        self._how = architecture, heads
        self._core = _core.Model(file, text("open", "architecture", architecture),
                                 count("open", "heads", heads))
        self._name = file if name is None else name

    @property
    def path(self) -> str:
        """As it was opened."""
        return self._core.path

    @property
    def format(self) -> str:
        """"safetensors", "onnx", "pytorch", …"""
        return self._core.format

    def __repr__(self) -> str:
        found = self.inspect()
        return f"<normscope.Model {found.architecture.title}, {len(found.norms)} norms, {self._name}>"

    def __reduce__(self) -> Any:
        if self._name != self.path:
            raise TypeError(f"pickle: {self._name} was opened from a live module or converted, expected a file")
        architecture, heads = self._how
        return functools.partial(Model, architecture=architecture, heads=heads), (self.path,)

    def inspect(self) -> results.Inspect:
        """The tensors of the file and the model found in them: norms in the order of the forward pass with their
        readers and writers."""
        return results.loads(_core.inspect(self._core))

    def norms(self) -> list[str]:
        """The names of the norms in the order of the forward pass."""
        return [norm.name for norm in self.inspect().norms]

    def norm(self, name: str) -> Norm:
        """The norm of that name with its parameters, gain and bias in float64.

        Errors   ValueError for a name that no norm has
        """
        return Norm(*_core.norm_parameters(self._core, text("norm", "name", name)))

    def head(self) -> Head:
        """The vocabulary head with its final norm: logits, logit lens, and what parts of the stream add to them.

        Errors   ValueError for a model whose logits read no norm, or are not modelled
        """
        norm, unembedding, *rest = _core.model_head(self._core)
        return Head(Norm(*norm), unembedding, *rest)

    def tensor(self, name: str) -> Any:
        """A tensor of the file as a NumPy array of float64.

        Errors   ValueError for a name that no tensor has, and for one that is not floating-point
        """
        return _core.tensor(self._core, text("tensor", "name", name))

    def report(self, *, activations: Activations | None = None, deep: bool = False, vocabulary: bool = True,
               budget: float = 40.0, threads: int = 0, progress: Progress | None = None) -> Report:
        """Everything about the norms, heads and vocabulary, as `normscope report` has it. Shows as a page in a
        notebook.

        activations  result of `watch` for this model, shown on the page beside the weights
        deep         every semi-axis, and vocabularies of any size
        vocabulary   whether the vocabulary is analysed at all
        budget       billions of multiplications for heads, for ranges, for tokens that a first matrix product leaves
                     undecided, and for each part of what `activations` add; no limit with `deep`
        Errors       OSError, ValueError for a file that changed or holds what cannot be read
        """
        if activations is not None and not isinstance(activations, Activations):
            raise TypeError(f"report: activations is {shown(activations)}, expected those of a watch")
        limit = real("report", "budget", budget)
        seen = None
        if activations is not None:
            seen = activations.within(self, budget=limit, threads=threads, progress=progress)
        document, charts, page = _core.model_report(
            self._core, flag("report", "deep", deep), flag("report", "vocabulary", vocabulary),
            math.inf if deep else limit,
            "null" if seen is None else seen._page_data(), count("report", "threads", threads),
            callback("report", progress))
        return Report(results.loads(document), json.loads(charts), page, seen)

    def heads(self, *, context: int = 0, queries: bool = False, certificates: bool = False, threads: int = 0,
              progress: Progress | None = None) -> results.Heads:
        """Bounds of how uniform and how sharp each attention head can be, in any context.

        context        largest number of positions for the bounds of rotary heads; 0 for the model's own
        queries        also the queries and keys that attain the bounds
        certificates   also the certificate of each bound
        Errors         ValueError for weights that cannot be read; a head that has no bounds says why
        Source         Brody, Alon, Yahav 2023, for every context at once
        """
        return illustrated(*_core.model_heads(
            self._core, count("heads", "context", context), flag("heads", "queries", queries),
            flag("heads", "certificates", certificates),
            count("heads", "threads", threads), callback("heads", progress)))

    def reach(self, *, tokens: Sequence[int] = (), nearest: int = 20, budget: float = math.inf,
              tolerance: float = 1e-12, threads: int = 0,
              progress: Progress | None = None) -> results.Reach:
        """Which tokens the model can output after its final norm, and the most probability of each.

        tokens    ids of tokens whose largest probability is optimized, besides the `nearest` to unreachable
        budget    billions of multiplications after which remaining work is skipped and counted
        tolerance as `normscope.reach`
        Errors    ValueError for a model whose logits read no norm or are not modelled, and for an unknown token
        """
        return illustrated(*_core.model_reach(
            self._core, counts("reach", "token", tokens), count("reach", "nearest", nearest),
            real("reach", "budget", budget), real("reach", "tolerance", tolerance, 0.0, 1.0), count("reach", "threads", threads),
            callback("reach", progress)))

    def geometry(self, norm: str, *, axes: int = 0, null_space: bool = False, threads: int = 0,
                 progress: Progress | None = None) -> results.Geometry:
        """The image of one norm, as `Norm.geometry`.

        Errors   ValueError for a name that no norm has
        Source   Riechers 2024
        """
        return illustrated(*_core.model_geometry(
            self._core, text("geometry", "norm", norm), count("geometry", "axes", axes),
            flag("geometry", "null_space", null_space),
            count("geometry", "threads", threads), callback("geometry", progress)))

    def trace(self, context: str | Sequence[int], *, budget: float = 100.0, threads: int = 0,
              progress: Progress | None = None) -> results.TokenTrace:
        """A text through a decoder, run by the core: what each norm of the residual stream does with each token, which
        keys each head can select, and what follows.

        context  text, for models with a tokenizer beside them, or tokens (ids)
        budget   billions of multiplications for keys, and again for reach; what remains is left out
        Errors   ValueError for a model that is no decoder or computes what is not modelled, for a text that its
                 vocabulary cannot spell, and for too many tokens
        """
        spelled = context if isinstance(context, str) else ""
        tokens = [] if isinstance(context, str) else counts("trace", "token", context)
        if not spelled and not tokens:
            raise ValueError("trace: the context is empty, expected at least one token")
        return illustrated(*_core.model_trace(
            self._core, spelled, tokens,
            real("trace", "budget", budget), count("trace", "threads", threads), callback("trace", progress)))

    def attribute(self, context: str | Sequence[int], target: int | str, *, against: int | str | None = None,
                  at: int | None = None, replace_with: Any = "zero", components: Any = None, keep: Sequence[str] = (),
                  most_removed: int = 10, budget: float = 100.0, all_contexts: bool = False, certificates: bool = False,
                  threads: int = 0, progress: Progress | None = None) -> results.Attribute:
        """A logit split by head, MLP and bias: the share of each, what removing it changes, frozen and exactly through
        the final norm, and proved bounds of the difference over every set of them.

        context        text, for models with a tokenizer beside them, or tokens (ids)
        target         token whose logit is read: its id, its name in the vocabulary, or its text
        against        read the target's logit less this token's
        at             position that is read, from 0; the last by default
        replace_with   what stands in place of a removed component: "zero", "mean" (its mean over the positions up to
                       `at`), or rows, one for each component
        components     rows that add up to the final norm's input at the position to 1e-5, in place of the model's own
        keep           names of components; the logit is also read with all others replaced by their means
        most_removed   components that may be removed together, for the bounds over every set
        budget         billions of multiplications for running the model again without each component (total effects)
        all_contexts   also bounds of each share in every context whose final norm divides by no less than here
        certificates   also what `normscope.verify` needs
        Errors         ValueError as `trace`, for what is not a token or component, and for rows that do not add up
        """
        spelled = context if isinstance(context, str) else ""
        tokens = [] if isinstance(context, str) else counts("attribute", "token", context)
        if not spelled and not tokens:
            raise ValueError("attribute: the context is empty, expected at least one token")

        def token(name: str, value: Any) -> str:
            return value if isinstance(value, str) else str(count("attribute", name, value))

        try:
            kept = list(keep)
        except Exception:  # an object's own code, which may fail in any way
            raise TypeError(f"attribute: keep is {shown(keep)}, expected names of components") from None
        word = replace_with if isinstance(replace_with, str) else ""
        if word not in ("", "zero", "mean"):
            raise ValueError(f"attribute: replace_with is {shown(replace_with)}, expected \"zero\", \"mean\" or rows")
        return illustrated(*_core.model_attribute(
            self._core, spelled, tokens, token("target", target), "" if against is None else token("against", against),
            None if at is None else count("attribute", "at", at), word, components, None if word else replace_with,
            [text("attribute", "keep", name) for name in kept],
            count("attribute", "most_removed", most_removed), real("attribute", "budget", budget),
            flag("attribute", "all_contexts", all_contexts), flag("attribute", "certificates", certificates),
            count("attribute", "threads", threads), callback("attribute", progress)))

    def ranges(self, *, threads: int = 0, progress: Progress | None = None) -> results.Ranges:
        """The range of every number that the model computes directly behind a norm, over every input of that norm: rows
        that never fire, overflow of small types, bounds on the logits.

        Errors   ValueError for weights that cannot be read; the result has the reason for parts that are not modelled
        """
        return illustrated(*_core.model_ranges(self._core, count("ranges", "threads", threads),
                                               callback("ranges", progress)))

    def rewrite(self, output: str | os.PathLike[str] | None = None, *, fold: bool = False, migrate: bool = False,
                center: bool = False, untie: bool = False, rotate: int | None = None, threads: int = 0,
                progress: Progress | None = None) -> results.Rewrite:
        """Writes a checkpoint of the same function, with a certificate; without `output`, only plans it.

        fold      the gain and bias of every norm into the linear maps that read it, where that is exact
        migrate   powers of two from each norm's gain and bias into its readers
        center    removes the mean from all writers of the residual stream, so that RMSNorms can replace its LayerNorms
        untie     stores the head as a separate tensor if it shares that of the token embedding
        rotate    the seed of a random orthogonal matrix that the residual stream is multiplied by, with `fold`
        Errors    ValueError if the rewrite is exact for no part of the model; OSError for an output that cannot be written
        """
        wanted = [flag("rewrite", name, value) for name, value in
                  (("fold", fold), ("migrate", migrate), ("center", center), ("untie", untie))]
        if not any(wanted) and rotate is None:
            raise ValueError("rewrite: nothing to do, expected fold, migrate, center, untie or rotate")
        target = optional_path("rewrite", "output", output)
        return results.loads(_core.rewrite(
            self._core, target, *wanted, rotate,
            count("rewrite", "threads", threads), callback("rewrite", progress)))

    def undo(self, output: str | os.PathLike[str], *, threads: int = 0,
             progress: Progress | None = None) -> results.Undo:
        """Writes the checkpoint that this one was rewritten from, by the recipe beside it.

        Errors   OSError without a recipe, ValueError for that of another checkpoint
        """
        return results.loads(_core.undo(self._core, path("undo", "output", output), count("undo", "threads", threads),
                                        callback("undo", progress)))

    def compare(self, other: Model | str | os.PathLike[str], *, progress: Progress | None = None) -> results.Compare:
        """Whether `other`, a later version of this model, computes the same; norm by norm what differs.

        Errors   as `open`, of `other`
        """
        after = other if isinstance(other, Model) else Model(other)
        return illustrated(*_core.compare(self._core, after._core, callback("compare", progress)))


class Report(Illustrated):
    """A report: `document` has the numbers, `charts` the figures, and a notebook shows the page. `activations` has
    the activations that the report was made with, or None.

    Fields of the document are attributes of the report as well: `report.verdict`, `report.norms`.
    """

    def __init__(self, document: results.Report, charts: list[dict[str, Any]], page: str,
                 activations: Activations | None = None) -> None:
        super().__init__(document, charts)
        self.page, self.activations = page, activations

    def __repr__(self) -> str:
        model = self.document.model
        return (f"<normscope.Report {model.title}: {len(self.document.norms)} norms, "
                f"{len(self.document.findings)} findings>")

    def _repr_html_(self) -> str:
        return (f'<iframe srcdoc="{html.escape(self.page)}" sandbox="allow-scripts allow-downloads allow-popups" '
                'style="width:100%;height:800px;border:0"></iframe>')

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the page (.html) or the JSON document (.json), whole or not at all.

        Errors   OSError
        """
        target = path("save", "file", file)
        if suffix_of(target, ".html", ".json") == ".json":
            self.document.save(target)
            return
        _core.write_file(target, self.page)


def _no_module() -> None:
    """In place of a watched module that another process has."""


class Observed(NamedTuple):
    """What a watch collected of one norm."""

    calls: int
    spec: Norm
    observer: Any
    extremes: Extremes


@dataclasses.dataclass
class Collected:
    """What a watch collected."""

    model: str
    norms: dict[str, Observed]
    reasons: list[tuple[str, str]]
    how: tuple[int, ...]  #: the options of the observers

    def texts(self, *within: Any) -> tuple[str, str]:
        """The document and its charts, with the consequences for a model if there is one."""
        listed = [(name, norm.calls, norm.observer) for name, norm in self.norms.items()]
        return _core.observed(self.model, listed, self.reasons, *(within or (None, 0, 0.0, 0, None)))

    def copy(self) -> Collected:
        return pickle.loads(pickle.dumps(self))

    def add(self, other: Collected) -> None:
        if other.how != self.how:
            raise ValueError("merge: the watches have other options, expected the same")
        for name, norm in other.copy().norms.items():
            mine = self.norms.get(name)
            if mine is None:
                self.norms[name] = norm
                continue
            _core.merge_observer(mine.observer, norm.observer)
            mine.extremes.merge(norm.extremes, mine.calls)
            self.norms[name] = mine._replace(calls=mine.calls + norm.calls)
        self.reasons = list(dict.fromkeys([*self.reasons, *other.reasons]))

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "norms": {name: norm._replace(observer=_core.packed_observer(norm.observer))
                                        for name, norm in self.norms.items()}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.norms = {}
        for name, norm in state["norms"].items():
            observer = _core.observer_of(norm.spec, *self.how)
            _core.unpack_observer(observer, norm.observer)
            self.norms[name] = norm._replace(observer=observer)


class Activations(Illustrated):
    """Statistics of the rows that entered the norms of a model; `document` has the numbers, `charts` the figures: "sigma", "ones",
    "frozen" and "dimension", and "keys" after `in_model`."""

    def __init__(self, collected: Collected, module: Callable[[], Any], texts: tuple[str, str] | None = None) -> None:
        self._texts = collected.texts() if texts is None else texts
        super().__init__(results.loads(self._texts[0]), json.loads(self._texts[1]))
        self._collected, self._module = collected, module

    def __reduce__(self) -> Any:
        return Activations, (self._collected, _no_module, self._texts)

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
        texts = self._collected.texts(opened._core, most, work, count("within", "threads", threads),
                                      callback("within", progress))
        return Activations(self._collected, self._module, texts)

    def extremes(self, norm: str | None = None, most: int = 8) -> list[Extreme]:
        """For each norm, or for one, the features with the largest entries, with the token, context and position that has
        each; before them the first row that was not finite. `pandas.DataFrame` takes the list.

        Errors   ValueError for a norm that was not measured
        """
        found = self._collected.norms
        if norm is not None and norm not in found:
            raise ValueError(f"extremes: no norm {shown(norm)} was measured, expected one of {', '.join(found)}")
        number = count("extremes", "most", most)
        return [extreme for name in (found if norm is None else [norm])
                for extreme in found[name].extremes.listed(name, number)]

    def merge(self, *others: Activations) -> Activations:
        """As if one watch had seen the rows of all, as of the processes that train one model: results can be pickled.

        Errors   ValueError for results of other norms, or of watches with other options
        """
        merged = self._collected.copy()
        for other in others:
            if not isinstance(other, Activations):
                raise TypeError(f"merge: {shown(other)} is no result of a watch")
            merged.add(other._collected)
        return Activations(merged, self._module)

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
        if isinstance(model, Model):
            return model
        module = self._module() if model is None else model
        if module is None:
            raise ValueError("activations: the watched module is gone, expected a model")
        return open(module)

    def _page_data(self) -> str:
        document, charts = self._texts
        return f'{{"document":{document},"charts":{charts}}}'


def open(model: Any, *, architecture: str = "", heads: int = 0) -> Model:  # noqa: A001
    """Opens a checkpoint (a file, a folder, or a model of the local hub cache), or a live `torch.nn.Module`.

    A module's parameters are copied into a temporary checkpoint, in memory where there is room: a snapshot; its configuration is `module.config` where it has
    one. Files of Keras, Flax and TensorFlow are converted to one as `convert` does.

    architecture   short name such as "gpt2", where the file does not state it
    heads          attention heads of a layer, where neither configuration nor shapes determine them

    Errors   OSError for a file that cannot be read, ValueError for one that is no checkpoint: each names file,
             tensor and expectation
    """
    if isinstance(model, (str, os.PathLike)):
        if is_foreign(model):
            return open_converted(model, functools.partial(Model, architecture=architecture, heads=heads))
        return Model(model, architecture=architecture, heads=heads)
    return snapshot_of(model, functools.partial(Model, architecture=architecture, heads=heads))

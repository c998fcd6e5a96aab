"""LN-Nets: linear maps with normalization as the only nonlinearity; constructed, trained and run."""

from __future__ import annotations

import json
import os
from typing import Any, Literal, Sequence

import numpy

from . import _check, _core, results
from ._check import callback, counts, optional_path, path, reason, text
from .analyses import Progress
from .charts import Illustrated, illustrated



class Net:
    """An LN-Net. `build` and `train` make one; `Net(file)` reads one that they, or the command, wrote.

    Errors   OSError for a file that cannot be read, ValueError for one that holds no net
    """

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self._core = _core.load_net(path("Net", "file", file))

    @classmethod
    def _of(cls, core: Any) -> Net:
        net = cls.__new__(cls)
        net._core = core
        return net

    @property
    def features(self) -> int:
        """Features of a sample."""
        return self._core.features

    @property
    def layers(self) -> int:
        """Layers before the linear head."""
        return self._core.layers

    @property
    def precision(self) -> str:
        """The arithmetic that it needs: "float64" or "double-double"."""
        return self._core.precision

    def __repr__(self) -> str:
        return (f"<normscope.Net of {self.layers} layers, {self.features} features to {self._core.outputs} logits, "
                f"{self.precision}>")

    def __call__(self, x: Any, *, threads: int = 0) -> numpy.ndarray:
        """The label of each sample, as `run`.

        Shapes   x (rows, ...); result (rows,), in int64
        Errors   as `run`
        """
        return numpy.array(run(self, x, threads=threads).labels, numpy.int64)

    def trace(self, x: Any, *, threads: int = 0) -> list[numpy.ndarray]:
        """The output of each layer.

        Shapes   x (rows, ...); of each layer (rows, width), in float64
        Errors   as `run`
        """
        return _core.trace_net(self._core, x, _check.count("trace", "threads", threads))

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the net as a safetensors file.

        Errors   OSError
        """
        _core.save_net(self._core, path("save", "file", file))


class Built(Illustrated):
    """A constructed net: `net` itself, `document` has the numbers, `charts` the figure "folds". Fields of the document
    are attributes as well."""

    def __init__(self, document: results.Build, charts: list[dict[str, Any]], net: Net) -> None:
        super().__init__(document, charts)
        self.net = net

    def __repr__(self) -> str:
        return (f"<normscope.Built {self.document.layers} layers in {self.document.precision}, "
                f"{self.document.correct} of {self.document.total} right>")


class Trained(Illustrated):
    """A trained net: `net` itself (the most accurate of several), `document` has the numbers, `charts` the figures
    "curves" and, where there are any, "boundary", "seeds" and "groups". Fields of the document are attributes as
    well."""

    def __init__(self, document: results.Train, charts: list[dict[str, Any]], net: Net) -> None:
        super().__init__(document, charts)
        self.net = net

    def __repr__(self) -> str:
        return (f"<normscope.Trained on {self.document.data}: accuracy {self.document.train.accuracy:.4g}, "
                f"{len(self.document.runs)} runs>")

    def to_pandas(self, field: str | None = None) -> Any:
        """A pandas DataFrame of the runs, or of another list of the document."""
        return super().to_pandas("runs" if field is None else field)


def build(x: Any, labels: Any = None, output: str | os.PathLike[str] | None = None, *,
          mode: Literal["stable", "paper"] = "stable", random_labels: int = 0, seed: int = 1,
          precision: Literal["float64", "double-double"] | None = None, eps: float = 0.0, drop_conflicts: bool = False,
          resume: str | os.PathLike[str] | None = None, threads: int = 0, progress: Progress | None = None) -> Built:
    """Constructs an LN-Net, three neurons wide, that gives every sample its label (Projection Merge).

    Shapes           x (rows, ...), float; labels (rows,), integers
    output           file to write the net to
    mode             "paper": folds as published; "stable": folds that tolerate rounding
    random_labels    how many classes to draw random labels from, instead of `labels`
    seed             of labels and projections
    precision        float64, then double-double where that fails, if None
    eps              of the net's norms
    drop_conflicts   equal rows take the label of the first of them
    resume           file to save unfinished work in, and to continue from
    Errors           ValueError for equal rows with different labels, and for rows that no projection tells apart;
                     KeyboardInterrupt at Ctrl-C, which leaves the state in `resume`
    Source           Ni et al. 2024, algorithm 1
    """
    drawn = _check.count("build", "random_labels", random_labels)
    if (labels is None) == (drawn == 0):
        raise ValueError("build: expected exactly one of labels and random_labels")
    options = {"mode": mode, "seed": seed, "precision": precision, "eps": eps, "drop_conflicts": drop_conflicts}
    document, charts, net = _core.build(
        x, [] if labels is None else labels_of("build", labels), drawn, options, optional_path("build", "output", output),
        optional_path("build", "resume", resume), _check.count("build", "threads", threads), callback("build", progress))
    return Built(results.loads(document), json.loads(charts), Net._of(net))


def run(net: Net | str | os.PathLike[str], x: Any, *, threads: int = 0,
        progress: Progress | None = None) -> results.Run:
    """Classifies samples with an LN-Net.

    Shapes   x (rows, ...), float, as many entries a row as the net has features
    net      a net, or the file of one
    Errors   ValueError for samples of another width, and for rows whose numbers leave the range of float64
    """
    opened = net if isinstance(net, Net) else Net(net)
    return results.loads(_core.run_net(opened._core, x, _check.count("run", "threads", threads), callback("run", progress)))


def train(what: Any, labels: Any = None, output: str | os.PathLike[str] | None = None, *, rows: int | None = None,
          width: int | None = None, depth: int | None = None,
          activation: Literal["norm", "relu", "gelu", "none"] | None = None,
          norm: Literal["layer", "rms", "spherical"] | None = None, groups: int | Sequence[int] = (),
          eps: float | None = None, affine: bool = False, optimizer: Literal["adam", "sgd"] | None = None,
          rate: float | None = None, schedule: Literal["constant", "cosine", "linear", "step"] | None = None,
          steps: int | None = None, batch: int | None = None, precision: Literal["float64", "float32"] | None = None,
          record_every: int | None = None, seed: int = 1, seeds: int | None = None,
          resume: str | os.PathLike[str] | None = None, threads: int = 0, progress: Progress | None = None) -> Trained:
    """Trains an LN-Net: linear layers with a norm as the only nonlinearity. What is None is the task's default.

    what           the name of a task ("spiral", "octants", "xor", "rings", "random-labels", "mnist:DIR" …), or
                   samples with `labels`
    Shapes         samples (rows, ...), float; labels (rows,), integers from 0
    output         file to write the net to (the most accurate, if several are trained)
    rows           samples of a task
    width, depth   features per layer, and layers before the linear head
    activation     after each layer; others than "norm" for comparison
    groups         each normalized separately; several train one net each, and a linear classifier beside them
    eps            added to the mean square, for spherical to the squared length
    affine         learns a gain and a bias in every norm
    rate           learning rate
    steps, batch   of training, and samples per step
    record_every   steps between two values of loss and accuracy
    seeds          consecutive seeds to train with, keeping the best net
    resume         file to save the training state in, and to continue from
    Errors         ValueError; OSError for a task whose images are not there; KeyboardInterrupt at Ctrl-C, which leaves
                   the state in `resume`
    Source         Winsor 2022; Ni et al. 2024
    """
    task = labels is None
    if task:
        text("train", "what", what)
    elif isinstance(what, (str, os.PathLike)):
        raise TypeError("train: a task has labels of its own, expected samples with labels")
    elif rows is not None:
        raise ValueError("train: rows applies to tasks only, but samples were given")
    options = {"rows": rows, "width": width, "depth": depth, "activation": activation, "norm": norm, "eps": eps,
               "affine": affine, "optimizer": optimizer, "rate": rate, "schedule": schedule, "steps": steps,
               "batch": batch, "precision": precision, "record_every": record_every, "seed": seed, "seeds": seeds}
    document, charts, net = _core.train(
        what, None if task else labels_of("train", labels), options,
        counts("train", "group", [groups] if isinstance(groups, int) else groups, 1), optional_path("train", "output", output),
        optional_path("train", "resume", resume), _check.count("train", "threads", threads), callback("train", progress))
    return Trained(results.loads(document), json.loads(charts), Net._of(net))


def count(cell: Literal["lstm", "gru"] = "lstm", language: Literal["anbn", "anbncn"] = "anbn", *, letters: int = 100,
          up_to: int = 300) -> results.Count:
    """Tests how far a trained recurrent network of ten units counts, as `normscope nets count`; its figure is "states".

    letters   of each kind in the word whose states are shown
    up_to     the longest n that is tried
    Errors    ValueError for another cell or language
    Source    Weiss et al. 2018; Merrill et al. 2020
    """
    text("count", "cell", cell), text("count", "language", language)
    return illustrated(*_core.count(cell, language, _check.count("count", "letters", letters, 1),
                                    _check.count("count", "up_to", up_to, 1)))


def labels_of(who: str, labels: Any) -> list[int]:
    """Labels as integers.

    Errors   TypeError; ValueError for more than one axis, and for numbers that are no integers
    """
    try:
        given = labels.detach().cpu().numpy() if hasattr(labels, "detach") else numpy.asarray(labels)
    except Exception as error:
        raise TypeError(f"{who}: labels is no array: {reason(error)}") from None
    if given.ndim != 1:
        raise ValueError(f"{who}: labels has shape {given.shape}, expected one axis")
    if given.dtype.kind not in "iuf":
        raise TypeError(f"{who}: labels is {given.dtype}, expected integers")
    wrong = numpy.flatnonzero(~((abs(given) <= 2.0**53) & (given == numpy.floor(given))))
    if len(wrong):
        raise ValueError(f"{who}: label {wrong[0]} is {given[wrong[0]]}, expected an integer")
    return [int(label) for label in given.tolist()]

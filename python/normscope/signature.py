"""Whose output is this? The logits behind a final norm lie on one ellipse, which tells a model by its outputs, and which
can be taken from outputs alone.

Outputs are rows of logits or log-probabilities with a number for each token: an array or tensor in float64, float32,
float16 or bfloat16, or the name of one in a file as the command takes it ("X.npy", "X.npz:NAME", "X.safetensors:TENSOR"),
which need not fit into memory.

>>> import numpy as np
>>> rng = np.random.default_rng(3)
>>> hidden = rng.normal(size=(200, 8))                     # of a model with an RMSNorm, which is not at hand
>>> rows = hidden / np.sqrt((hidden**2).mean(1, keepdims=True)) @ rng.normal(size=(8, 30))
>>> kind(rows[:150]).norm
'rms'
>>> found = extract(rows[:150])
>>> found.ellipse
<normscope.signature.Ellipse of 8 axes in 30 tokens>
>>> verify(found.ellipse, rows[150:]).verdict
'consistent'
>>> verify(found.ellipse, 1.001 * rows[150:]).verdict
'not this model'
>>> compare(found.ellipse, extract(2.0 * rows).ellipse).relation
'rescaled'
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Literal, Union

import numpy

from . import _core, results
from ._check import callback, count, optional_path, path, real, reason, shown, text
from .analyses import Progress
from .charts import Illustrated, illustrated
from .model import Model, open as open_model

__all__ = ["Certificate", "Ellipse", "Extracted", "Verified", "compare", "extract", "kind", "verify"]

#: The type in which a model computed its logits.
Precision = Literal["float64", "float32", "float16", "bfloat16"]


class Ellipse:
    """What the logits of a model lie on, taken with mean 0 over the tokens: centre + axes @ (semi_axes * u) with |u| = 1.
    `extract` finds one; `Ellipse(file)` reads one that it, or the command, wrote.

    Shapes   centre (tokens,); axes (tokens, rank), with orthonormal columns; semi_axes, errors (rank,); in float64
    Errors   OSError for a file that cannot be read, ValueError for one that holds no ellipse
    """

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self._name = path("Ellipse", "file", file)
        found = _core.load_ellipse(self._name)
        if found is None:
            raise ValueError(f"Ellipse: {self._name} holds no ellipse, expected one of `signature extract`")
        self._core = found

    @classmethod
    def _of(cls, core: Any, name: str) -> Ellipse:
        ellipse = cls.__new__(cls)
        ellipse._core, ellipse._name = core, name
        return ellipse

    @property
    def tokens(self) -> int:
        """Size of the vocabulary."""
        return self._core.tokens

    @property
    def rank(self) -> int:
        """Number of axes."""
        return self._core.rank

    @property
    def centre(self) -> numpy.ndarray:
        """The logits in the middle."""
        return self._core.centre

    @property
    def axes(self) -> numpy.ndarray:
        """Directions of the axes, one a column."""
        return self._core.axes

    @property
    def semi_axes(self) -> numpy.ndarray:
        """Half lengths of the axes, descending."""
        return self._core.semi_axes

    @property
    def errors(self) -> numpy.ndarray:
        """Stated relative error of each semi-axis, estimated from the residual; not proved."""
        return self._core.errors

    @property
    def drowned(self) -> int:
        """Axes whose stated error exceeds 0.1."""
        return self._core.drowned

    def __repr__(self) -> str:
        return f"<normscope.signature.Ellipse of {self.rank} axes in {self.tokens} tokens>"

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the ellipse as a safetensors file.

        Errors   OSError
        """
        _core.save_ellipse(self._core, path("save", "file", file))


@dataclasses.dataclass(frozen=True, repr=False, eq=False)
class Certificate:
    """Why a row is not the model's, whatever the input of its norm: weights that sum to exactly 0, with
    weights @ (logits - a0) > |A.T @ weights| + |weights| @ slack, where the model's logits are A u + a0 with |u| <= 1.

    Shapes   weights, logits, slack (values,); tokens (values,), or None where a row has every token in order
    """

    weights: numpy.ndarray
    logits: numpy.ndarray
    slack: numpy.ndarray
    tokens: numpy.ndarray | None = None

    def __repr__(self) -> str:
        return f"Certificate(of {len(self.weights)} weights)"


class Verified(Illustrated):
    """Verdicts on rows of outputs: `document` has the numbers, `certificates` the proofs of the first 64 rows that are
    proved not to be the model's, by their number. Fields of the document are attributes as well."""

    def __init__(self, document: results.SignatureVerify, certificates: dict[int, Certificate]) -> None:
        super().__init__(document, [])
        self.certificates = certificates

    def __repr__(self) -> str:
        return (f"<normscope.signature.Verified {self.document.verdict}{', proved' if self.document.proved else ''}: "
                f"{self.document.consistent} of {self.document.rows} rows consistent>")

    def to_pandas(self, field: str | None = None) -> Any:
        """A pandas DataFrame of the rows, or of another list of the document."""
        return super().to_pandas("results" if field is None else field)


class Extracted(Illustrated):
    """What outputs tell of their ellipse: `ellipse` itself, None where none fits, and `document` with the numbers. Fields
    of the document are attributes as well."""

    def __init__(self, document: results.SignatureExtract, ellipse: Ellipse | None) -> None:
        super().__init__(document, [])
        self.ellipse = ellipse

    def __repr__(self) -> str:
        found = "no ellipse" if self.ellipse is None else f"{self.document.rank} axes"
        return f"<normscope.signature.Extracted {found} in {self.document.tokens} tokens from {self.document.rows} rows>"

    def to_pandas(self, field: str | None = None) -> Any:
        """A pandas DataFrame of the axes: length and stated relative error.

        Errors   ValueError where no ellipse fits
        """
        import pandas

        if self.ellipse is None:
            raise ValueError("Extracted: no ellipse fits")
        return pandas.DataFrame({"semi_axis": self.ellipse.semi_axes, "error": self.ellipse.errors})


def verify(model: Any, outputs: Any, *, ids: Any = None, temperature: float = 1.0, precision: Precision | None = None,
           least_mean_square: float = 0.0, threads: int = 0, progress: Progress | None = None) -> Verified:
    """Decides for every row whether the model can have given it, as `normscope signature verify`.

    Shapes              outputs (..., tokens); with `ids`, integers, (..., values) and as many ids or one row of them
    model               an open model, its path, a torch module, an `Ellipse` or its file
    ids                 token of each value, where rows do not have all tokens; an array or its name
    temperature         that the logits were divided by
    precision           type in which the model computed the logits; where None, the smallest that holds the first rows
    least_mean_square   that the final norm's input never falls below; rows that need less are then not the model's. 0:
                        those that need less than 100 eps are not decided
    Errors              ValueError for rows of another width, NaN, constant rows and probabilities, and for a model whose
                        logits read no norm or are not modelled; TypeError for integers; OSError for files
    Source              Finlayson, Ren, Swayamdipta 2026; proofs are ours
    """
    against = _source("verify", "model", model)
    document, proofs = _core.signature_verify(
        against._core, against._name, *_outputs("verify", outputs, ids, temperature, precision),
        real("verify", "least_mean_square", least_mean_square), *_how("verify", threads, progress))
    certificates = {row: Certificate(*arrays, None if tokens is None else tokens.astype(numpy.int64))
                    for row, *arrays, tokens in proofs}
    return Verified(results.loads(document), certificates)


def extract(outputs: Any, output: str | os.PathLike[str] | None = None, *, temperature: float = 1.0,
            precision: Precision | None = None, soft_cap: float = 0.0, rank: int = 0,
            resume: str | os.PathLike[str] | None = None, threads: int = 0, progress: Progress | None = None) -> Extracted:
    """Finds the ellipse that outputs lie on, from the outputs alone, as `normscope signature extract`.

    Shapes        outputs (..., tokens); an ellipse of N axes needs N (N + 3)/2 different rows, better twice as many
    output        file to write the ellipse to
    temperature   that the logits were divided by
    precision     type in which the model computed the logits; where None, the smallest that holds the first rows
    soft_cap      C of C tanh(logit/C), which the model applies last; 0 without one
    rank          number of axes, where outputs have more noise than their type; 0: found from the rows
    resume        file to save the state of the fit in, and to continue from
    Errors        ValueError for too few rows or tokens and as `verify`; TypeError for integers; OSError for files;
                  KeyboardInterrupt at Ctrl-C, which leaves the state in `resume`
    Accuracy      `Ellipse.errors`; where no ellipsoid fits, the result has no ellipse
    """
    target = optional_path("extract", "output", output)
    values, _, *rest = _outputs("extract", outputs, None, temperature, precision)
    document, found = _core.signature_extract(
        values, target, *rest, real("extract", "soft_cap", soft_cap, most=1e300), count("extract", "rank", rank),
        optional_path("extract", "resume", resume), *_how("extract", threads, progress))
    return Extracted(results.loads(document), None if found is None else Ellipse._of(found, target or "ellipse"))


def kind(outputs: Any, *, temperature: float = 1.0, precision: Precision | None = None, threads: int = 0,
         progress: Progress | None = None) -> results.SignatureKind:
    """Tells kind and width of the final norm from outputs alone, as `normscope signature kind`; its figure is
    "singular_values".

    Shapes        outputs (..., tokens)
    temperature   that the logits were divided by
    precision     type in which the model computed the logits; where None, the smallest that holds the first rows
    Errors        ValueError for fewer than 3 rows and as `verify`; TypeError for integers; OSError for files
    """
    values, _, *rest = _outputs("kind", outputs, None, temperature, precision)
    return illustrated(*_core.signature_kind(values, *rest, *_how("kind", threads, progress)))


def compare(one: Any, other: Any, *, threads: int = 0) -> results.SignatureCompare:
    """Whether two ellipses of the same tokens are the same, rescaled, fine-tuned or unrelated.

    one, other   as the `model` of `verify`
    Errors       ValueError for different numbers of tokens, and as `verify`
    """
    first, second = _source("compare", "one", one), _source("compare", "other", other)
    return results.loads(_core.signature_compare(first._core, first._name, second._core, second._name,
                                                 count("compare", "threads", threads)))


def _source(who: str, name: str, given: Any) -> Union[Ellipse, Model]:
    if isinstance(given, (Ellipse, Model)):
        return given
    if isinstance(given, (str, os.PathLike)):
        file = path(who, name, given)
        found = _core.load_ellipse(file)
        if found is not None:
            return Ellipse._of(found, file)
    return open_model(given)


def _outputs(who: str, outputs: Any, ids: Any, temperature: float, precision: str | None) -> tuple[Any, ...]:
    """The rows, their ids or None, temperature and precision."""
    if precision is not None and text(who, "precision", precision) not in Precision.__args__:
        raise ValueError(f"{who}: precision is {shown(precision)}, expected {', '.join(Precision.__args__)} or None")
    return (_named(who, "outputs", outputs), None if ids is None else _ids(who, ids),
            real(who, "temperature", temperature, 1e-6, 1e6), precision or "")


def _named(who: str, name: str, given: Any) -> Any:
    """The name of an array as text, or an array as it is."""
    return path(who, name, given) if isinstance(given, (str, os.PathLike)) else given


def _ids(who: str, given: Any) -> Any:
    """The name of an array, or integers in float64."""
    if isinstance(given, (str, os.PathLike)):
        return path(who, "ids", given)
    try:
        found = numpy.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
    except Exception as error:
        raise TypeError(f"{who}: ids is no array: {reason(error)}") from None
    if found.dtype.kind not in "iu":
        raise TypeError(f"{who}: ids is {found.dtype}, expected integers")
    return found.astype(float)


def _how(who: str, threads: int, progress: Progress | None) -> tuple[int, Any]:
    return count(who, "threads", threads), callback(who, progress)

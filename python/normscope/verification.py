"""Results checked again, from their own proofs and the inputs they were computed from."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy

from . import _core, model_checker, results
from ._check import callback, count, path, reason, shown
from ._result import Result
from .analyses import Progress, norm_or_none
from .model import Model, open as open_model


def verify(result: Any, *inputs: Any, threads: int = 0, progress: Progress | None = None) -> results.Verify:
    """Rechecks every statement of a result of `select`, `separate`, `reach`, `heads`, `ranges`, `attribute` (with
    `certificates`) or `rewrite` from its own proofs, by arithmetic that shares nothing with what found them: of the first
    four exactly, with every rounding; of the others in NumPy, to 1e-9 of the sizes of terms.

    result   a result of this package or the text of its JSON document
    inputs   what it was computed from: the keys, the two classes, the unembedding with its norm and bias, as `reach`
             takes them, or the model (an open one, or its path); of `rewrite` the model, the rewritten one, and where it
             was rotated the seed or the file of the matrix
    Errors   ValueError for what is no such result and for inputs that it was not computed from; TypeError for another
             number of inputs
    """
    if not isinstance(result, (str, Result)):
        raise TypeError(f"verify: result is {shown(result)}, expected a result or the text of its document")
    document = result if isinstance(result, str) else json.dumps(result.to_dict())
    how = count("verify", "threads", threads), callback("verify", progress)
    checked = _checked_in_numpy(document)
    kind = _core.result_kind(document) if checked is None else checked["schema"][len("normscope."):-len("/1")]
    of_arrays = kind == "reach" and not (inputs and _is_model(inputs[0]))
    least, most = {"select": (1, 1), "separate": (2, 2), "rewrite": (2, 3)}.get(kind, (1, 3 if of_arrays else 1))
    if not least <= len(inputs) <= most:
        expected = str(most) if least == most else f"{least} to {most}"
        raise TypeError(f"verify: {len(inputs)} inputs of a result of {kind}, expected {expected}")
    if kind == "select":
        return results.loads(_core.verify_select(document, inputs[0], *how))
    if kind == "separate":
        return results.loads(_core.verify_separate(document, list(inputs), *how))
    if of_arrays:
        unembedding, norm, bias = (*inputs, None, None)[:3]
        return results.loads(_core.verify_reach(document, norm_or_none("verify", norm), unembedding, bias, *how))
    models = [given if isinstance(given, Model) else open_model(given) for given in inputs[:2]]
    if checked is not None:
        return _verify_in_numpy(document, checked, models, [_rotation(given) for given in inputs[2:]], how[1])
    return results.loads(_core.verify_model(models[0]._core, document, *how))


def _is_model(value: Any) -> bool:
    return isinstance(value, (Model, str, os.PathLike)) or hasattr(value, "named_modules")


def _checked_in_numpy(text: str) -> dict[str, Any] | None:
    """The document, if it is a result that the checker of checkpoints knows."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    known = isinstance(document, dict) and document.get("schema") in (
        "normscope.ranges/1", "normscope.attribute/1", "normscope.rewrite/1")
    return document if known else None


def _rotation(given: Any) -> str:
    """What `--rotate` of the command takes."""
    if isinstance(given, (str, os.PathLike)):
        return path("verify", "rotation", given)
    return f"random:{count('verify', 'rotation', given)}"


def _verify_in_numpy(text: str, document: dict[str, Any], models: list[Model], rotation: list[str],
                     progress: Progress | None) -> results.Verify:
    outcome = _outcome(text, document, models, rotation)
    if progress is not None:
        progress("statements", len(outcome.states), len(outcome.states))
    failed, unproved = ([{"item": path, "reason": why} for path, why in found] for found in (outcome.failed, outcome.unproved))
    return results.parse({"schema": "normscope.verify/1", "version": _core.__version__, "result": document["schema"],
                          "checked": len(outcome.states) - len(unproved), "failed": failed, "not_checkable": unproved})


def _outcome(text: str, document: dict[str, Any], models: list[Model], rotation: list[str]) -> Any:
    """Errors    ValueError for a document that does not fit the models, in whatever way"""
    try:
        _expect_norms(document, models[0])
        tensors = [model_checker.Tensors(model.path) for model in models] if document["schema"] == "normscope.rewrite/1" else [
            _Tensors(models[0])]
        return model_checker.check(text, *tensors, *rotation)
    except (ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError) as error:
        raise ValueError(f"verify: the result does not fit {models[0].path}: {type(error).__name__}: "
                         f"{reason(error)}") from None


def _expect_norms(document: dict[str, Any], model: Model) -> None:
    """Refuses a result whose norms are not those of the model."""
    names = "kind", "groups", "gain", "gain_offset", "bias"
    known = {norm.name: norm for norm in model.inspect().norms}
    for norm in document.get("norms", []):
        stated = norm.get("source", norm)
        found = known.get(norm["name"])
        wrong = [name for name in names if found is None or stated[name] != found[name]]
        if wrong or stated.get("width", found.width) != found.width:
            raise LookupError(f"no norm {shown(norm['name'])} with this {wrong[0] if wrong else 'width'}")


class _Tensors(Mapping[str, numpy.ndarray]):
    """The tensors of a model of any format, each read when it is asked for."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __getitem__(self, name: str) -> numpy.ndarray:
        return self._model.tensor(name)

    def __iter__(self) -> Iterator[str]:
        return (tensor.name for tensor in self._model.inspect().tensors)

    def __len__(self) -> int:
        return len(self._model.inspect().tensors)

"""The base class of all results: fields, a short repr, tables for notebooks and conversion to JSON."""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import types
import typing
from typing import Any, Callable

import numpy

from . import _core
from ._check import path as file_path, shown
from ._html import is_table, page, short
from ._summaries import COLUMNS, headline
from .charts import plotted


def _identity(value: Any) -> Any:
    return value


def _decoder_of(kind: Any) -> Callable[[Any], Any]:
    """The function that converts a JSON value to the annotated type."""
    origin = typing.get_origin(kind)
    if isinstance(kind, type) and issubclass(kind, Result):
        return kind.from_json
    if origin is list:
        entry = _decoder_of(typing.get_args(kind)[0])
        return _identity if entry is _identity else lambda values: [entry(value) for value in values]
    if origin is dict:
        entry = _decoder_of(typing.get_args(kind)[1])
        return _identity if entry is _identity else lambda values: {key: entry(v) for key, v in values.items()}
    if origin in (typing.Union, types.UnionType):
        return _union_decoder(typing.get_args(kind))
    return _identity


def _union_decoder(choices: tuple[Any, ...]) -> Callable[[Any], Any]:
    objects = [choice for choice in choices if isinstance(choice, type) and issubclass(choice, Result)]
    lists = [_decoder_of(choice) for choice in choices if typing.get_origin(choice) is list]
    if not objects and all(entry is _identity for entry in lists):
        return _identity

    def decode(value: Any) -> Any:
        if isinstance(value, dict):
            return next((choice.from_json(value) for choice in objects if choice._takes(value)), value)
        if isinstance(value, list) and lists:
            return lists[0](value)
        return value

    return decode


class Result:
    """A result of the core: a dataclass made from its JSON schema.

    Fields are attributes; `result["name"]` takes the names of the JSON document, and `to_dict` gives it back.
    """

    #: {field: name in the JSON document}, where a name is no identifier.
    _json_names: typing.ClassVar[dict] = {}
    #: Fields that a document always has.
    _required: typing.ClassVar[frozenset] = frozenset()

    #: Fields that the document stated, null among them.
    _stated: typing.ClassVar[frozenset] = frozenset()

    #: Figures that the core made of it, by name.
    _charts: typing.ClassVar[dict] = {}

    @classmethod
    @functools.lru_cache(maxsize=None)
    def _decoders(cls) -> dict[str, tuple[str, Callable[[Any], Any]]]:
        hints = typing.get_type_hints(cls)
        return {cls._json_names.get(field.name, field.name): (field.name, _decoder_of(hints[field.name]))
                for field in dataclasses.fields(cls)}

    @classmethod
    def _takes(cls, document: dict[str, Any]) -> bool:
        known = cls._decoders()
        required = {cls._json_names.get(name, name) for name in cls._required}
        if not (required <= document.keys() <= known.keys()):
            return False
        hints = typing.get_type_hints(cls)
        return all(document[name] in typing.get_args(hints[known[name][0]]) for name in required
                   if typing.get_origin(hints[known[name][0]]) is typing.Literal)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> Any:
        """The result that a JSON object holds. Fields of later versions are left out."""
        decoders = cls._decoders()
        made = cls(**{decoders[name][0]: decoders[name][1](value) for name, value in document.items()
                      if name in decoders})
        made._stated = frozenset(decoders[name][0] for name in document.keys() & decoders.keys())
        return made

    def to_dict(self) -> dict[str, Any]:
        """The JSON object, of dicts, lists, strings and numbers."""
        return {name: _plain(self[name]) for name in self._names()}

    def __getitem__(self, name: str) -> Any:
        known = self._decoders()
        if name not in known:
            raise KeyError(f"{type(self).__name__} has no field {name!r}, it has {', '.join(sorted(known))}")
        return getattr(self, known[name][0])

    def _names(self) -> list[str]:
        """The names that `result[name]` takes, of the fields that the document has."""
        return [self._json_names.get(field.name, field.name) for field in dataclasses.fields(self)
                if field.name in self._required or field.name in self._stated or getattr(self, field.name) is not None]

    def __iter__(self) -> typing.Iterator[str]:
        return iter(self._names())

    def __contains__(self, name: Any) -> bool:
        return name in self._names()

    def __repr__(self) -> str:
        line = headline(self)
        if line:
            return f"<normscope.{type(self).__name__} {line}>"
        fields = (f"{field.name}={short(getattr(self, field.name))}" for field in dataclasses.fields(self)
                  if getattr(self, field.name) is not None)
        return f"{type(self).__name__}({', '.join(fields)})"

    def _repr_html_(self) -> str:
        return page(self)

    def to_pandas(self, field: str | None = None) -> Any:
        """A pandas DataFrame of `field`, a list of results; without one, of the result's own columns (a row for each
        token of a `reach`, each semi-axis of a `geometry`), else of the longest such list. Every cell is a value: a list
        within the rows is a table of its own, with a row for each entry, as "norms.features" is.

        Errors    ImportError without pandas; ValueError if there is no such list; TypeError for a field that is no string
        """
        if field is not None and not isinstance(field, str):
            raise TypeError(f"to_pandas: field is {shown(field)}, expected a string")
        import pandas

        columns = COLUMNS.get(getattr(self, "schema", None)) if field is None else None
        if columns is not None:
            return pandas.DataFrame(columns(self))
        name = field or max((f.name for f in dataclasses.fields(self) if is_table(getattr(self, f.name))),
                            key=lambda known: len(getattr(self, known)), default=None)
        rows = self._rows_of(name) if name else None
        if rows is None:
            raise ValueError(f"to_pandas: {type(self).__name__} has no table" + (f" {field!r}" if field else ""))
        several = {path for row in rows for path in _lists_in(row)}
        return pandas.json_normalize([_without(row, several) for row in rows])

    def to_numpy(self, field: str) -> numpy.ndarray:
        """The numbers of `field` as an array, null as NaN: "semi_axes" of a `geometry`, "lead.lower" of a `reach`, and of
        the results of a list one column, "norms.eps".

        Errors   ValueError for a field that is not there, and for one that holds anything but numbers, or rows of
                 different lengths; TypeError for a field that is no string
        """
        if not isinstance(field, str):
            raise TypeError(f"to_numpy: field is {shown(field)}, expected a string")
        value: Any = self
        try:
            for part in field.split("."):
                value = [row[part] for row in value] if isinstance(value, list) else value[part]
            found = numpy.array(_without_null(value))
        except (KeyError, TypeError):
            raise ValueError(f"to_numpy: {type(self).__name__} has no field {field!r}") from None
        except ValueError:
            raise ValueError(f"to_numpy: {field} has rows of different lengths") from None
        if found.dtype.kind not in "biuf":
            raise ValueError(f"to_numpy: {field} holds {found.dtype}, expected numbers")
        return found

    def _rows_of(self, name: str) -> list[dict[str, Any]] | None:
        """The rows of a list, or with a dotted name of the lists within its rows; None where there is none."""
        outer, _, inner = name.partition(".")
        rows = getattr(self, outer, None)
        if not is_table(rows):
            return None
        plain = [row.to_dict() for row in rows]
        if not inner:
            return plain
        # A row is called what the list is, in the singular: "norm" of "norms".
        parent = outer.removesuffix("s")
        found = []
        for index, row in enumerate(plain):
            value: Any = row
            for part in inner.split("."):
                value = value.get(part) if isinstance(value, dict) else None
            if not isinstance(value, list):
                continue
            places = {key: row[key] for key in sorted(row.keys() & _PLACES)}
            owner = {parent: row["name"]} if "name" in row else {parent: index, **places}
            found += [{**owner, "index": place, **(entry if isinstance(entry, dict) else {"value": entry})}
                      for place, entry in enumerate(value)]
        return found or None

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The table of `to_pandas` for Polars and others that read Arrow; pandas needs pyarrow for it."""
        return self.to_pandas().__arrow_c_stream__(requested_schema)

    def plot(self, name: str | None = None) -> Any:
        """The figure of that name, of those that the core makes of such a result; without one, the first. An Altair chart
        where altair is installed, else the specification itself, which notebooks draw.

        Errors   ValueError for a name that no figure has, and for results without figures
        """
        return plotted(self._charts, name)

    def save(self, path: Any) -> None:
        """Writes the JSON document to `path`, whole or not at all.

        Errors    OSError
        """
        _core.write_file(file_path("save", "path", path), json.dumps(self.to_dict(), allow_nan=False))


def _without_null(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_null(entry) for entry in value]
    return math.nan if value is None else value


#: Fields that say which row it is where rows have no name.
_PLACES = frozenset({"layer", "head"})


def _lists_in(row: dict[str, Any], before: tuple[str, ...] = ()) -> typing.Iterator[tuple[str, ...]]:
    """The paths to lists, through the dictionaries of a row."""
    for name, value in row.items():
        if isinstance(value, list):
            yield (*before, name)
        elif isinstance(value, dict):
            yield from _lists_in(value, (*before, name))


def _without(row: dict[str, Any], paths: set[tuple[str, ...]], before: tuple[str, ...] = ()) -> dict[str, Any]:
    """The row without what is at those paths in any row."""
    return {name: _without(value, paths, (*before, name)) if isinstance(value, dict) else value
            for name, value in row.items() if (*before, name) not in paths}


def _plain(value: Any) -> Any:
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    return value

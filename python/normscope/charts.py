"""Charts: Vega-Lite specifications made by the core."""

from __future__ import annotations

import importlib.util
import json
import os
from typing import Any, Iterator

from . import _core
from ._check import path as file_path, shown

#: The version of Vega-Lite that the core writes.
MIME_TYPE = "application/vnd.vegalite.v5+json"


class Chart(dict):
    """A Vega-Lite specification, which notebooks draw."""

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {MIME_TYPE: dict(self), "text/plain": repr(self)}

    def __repr__(self) -> str:
        title = self.get("title", "")
        return f"<normscope.Chart {(title.get('text', '') if isinstance(title, dict) else title)!r}>"

    def to_altair(self) -> Any:
        """The same as an Altair chart.

        Errors   ImportError without altair
        """
        import altair

        return altair.Chart.from_dict(self)

    def save(self, path: Any) -> None:
        """Writes the specification (.json), or the picture (.png, .svg) that vl-convert draws of it; whole or not at all.

        Errors   OSError, ValueError for other names, ImportError for a picture without vl-convert
        """
        target = file_path("save", "path", path)
        suffix = suffix_of(target, ".json", ".png", ".svg")
        if suffix == ".json":
            _core.write_file(target, json.dumps(self))
            return
        try:
            import vl_convert
        except ImportError:
            raise ImportError(f"save: {target}: a picture needs vl-convert (pip install vl-convert-python)") from None
        spec = json.dumps(self)
        if suffix == ".svg":
            _core.write_file(target, vl_convert.vegalite_to_svg(spec))
        else:
            _core.write_bytes(target, vl_convert.vegalite_to_png(spec, scale=2.0))


def suffix_of(path: str, *known: str) -> str:
    """The ending of a path, which is one of those known.

    Errors   ValueError
    """
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in known:
        raise ValueError(f"save: {path} ends in {suffix or 'no suffix'}, expected {' or '.join(known)}")
    return suffix


class Illustrated:
    """A document and its figures. Fields of the document are attributes as well."""

    def __init__(self, document: Any, charts: list[dict[str, Any]]) -> None:
        self.document = document
        self.charts = charts_of(charts)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "document":  # which has not been set while it is unpickled
            raise AttributeError(name)
        return getattr(self.document, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.document)})

    def __eq__(self, other: Any) -> Any:
        return self.document == other.document if type(other) is type(self) else NotImplemented

    def __getitem__(self, name: str) -> Any:
        return self.document[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.document)

    def __contains__(self, name: Any) -> bool:
        return name in self.document

    def to_dict(self) -> dict[str, Any]:
        """The document as JSON has it."""
        return self.document.to_dict()

    def to_numpy(self, field: str) -> Any:
        """The numbers of a field of the document as an array, null as NaN.

        Errors   ValueError for a field that is not there or holds anything else
        """
        return self.document.to_numpy(field)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The table of `to_pandas` for Polars and others that read Arrow; pandas needs pyarrow for it."""
        return self.to_pandas().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        return self.document._repr_html_()

    def plot(self, name: str | None = None) -> Any:
        """The chart of that name; without one, the first. `list(self.charts)` has the names. An Altair chart where
        altair is installed, else the specification itself, which notebooks draw.

        Errors   ValueError for a name that no chart has
        """
        return plotted(self.charts, name)

    def to_pandas(self, field: str | None = None) -> Any:
        """A pandas DataFrame of `field`, a list of the document ("norms.features" for lists within one); without one, of its
        norms where it has any.

        Errors    ImportError without pandas; ValueError if there is no such list
        """
        return self.document.to_pandas("norms" if field is None and hasattr(self.document, "norms") else field)


def plotted(charts: dict[str, Chart], name: Any) -> Any:
    """The chart of that name, or the first, as Altair has it where that is installed.

    Errors   ValueError for a name that no chart has
    """
    if not charts:
        raise ValueError("plot: there is no chart")
    wanted = next(iter(charts)) if name is None else name
    if not isinstance(wanted, str) or wanted not in charts:
        raise ValueError(f"plot: no chart {shown(wanted)}, expected one of {', '.join(charts)}")
    chart = charts[wanted]
    return chart.to_altair() if importlib.util.find_spec("altair") else chart


def illustrated(document: str, charts: str) -> Any:
    """The result of a JSON document, with the figures of a document of charts."""
    from . import results  # whose base class draws the figures

    result = results.loads(document)
    result._charts = charts_of(json.loads(charts))
    return result


def charts_of(document: list[dict[str, Any]]) -> dict[str, Chart]:
    """The charts of a document of the schema docs/schemas/charts.schema.json, by their ids."""
    return {chart["id"]: Chart(_standing_alone(chart)) for chart in document}


def _standing_alone(chart: dict[str, Any]) -> dict[str, Any]:
    """The specification with the title and the width that a page would give it."""
    title = {"title": chart["question"]} if "question" in chart else {}
    width = {"width": 560} if chart["spec"].get("width") == "container" else {}
    return {**title, **chart["spec"], **width}

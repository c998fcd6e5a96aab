"""Charts: Vega-Lite specifications made by the core."""

from __future__ import annotations

import json
from typing import Any


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
        """Writes the specification as JSON."""
        with open(path, "w", encoding="utf-8") as file:
            json.dump(self, file)


def charts_of(document: list[dict[str, Any]]) -> dict[str, Chart]:
    """The charts of a document of the schema docs/schemas/charts.schema.json, by their ids."""
    return {chart["id"]: Chart(chart["spec"]) for chart in document}

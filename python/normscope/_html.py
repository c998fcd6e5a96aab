"""Results as HTML for notebooks: the answer in one line, the facts, and the tables with what tells their rows apart."""

from __future__ import annotations

import dataclasses
import html
from typing import Any

from ._summaries import headline

#: Rows that a table shows.
SHOWN_ROWS = 30
#: Tables of more rows are folded.
UNFOLDED_ROWS = 12
#: Fields that say how a result was made.
_BOOKKEEPING = frozenset({"schema", "version", "inputs", "certificates"})
_LEFT = "style='text-align:left'"


def fields_of(result: Any) -> dict[str, Any]:
    """The fields that say something."""
    values = {field.name: getattr(result, field.name) for field in dataclasses.fields(result)}
    return {name: value for name, value in values.items()
            if name not in _BOOKKEEPING and value is not None and value != [] and value != "" and value != {}}


def is_table(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(dataclasses.is_dataclass(entry) for entry in value)


def short(value: Any) -> str:
    """A value as one line of bounded length."""
    if isinstance(value, list):
        if len(value) <= 4 and not any(isinstance(entry, (list, dict)) or dataclasses.is_dataclass(entry)
                                       for entry in value):
            return f"[{', '.join(short(entry) for entry in value)}]"
        kind = type(value[0]).__name__ if value else ""
        return f"[{len(value)} {kind}]"
    if isinstance(value, dict):
        return f"{{{len(value)} entries}}"
    if dataclasses.is_dataclass(value):
        return f"{type(value).__name__}(…)"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = repr(value)
    return text if len(text) <= 120 else text[:119] + "…"


def _words(value: Any) -> str:
    """A value as a reader has it, or "" for what is too long for a line."""
    if isinstance(value, str):
        return value if len(value) <= 120 else value[:119] + "…"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return f"{value:.6g}" if isinstance(value, float) else str(value)
    if isinstance(value, list) and not any(isinstance(entry, (list, dict)) or dataclasses.is_dataclass(entry)
                                           for entry in value):
        head = ", ".join(_words(entry) for entry in value[:8])
        return f"{head}, … ({len(value)})" if len(value) > 8 else head
    if dataclasses.is_dataclass(value):
        parts = {name: _words(part) for name, part in fields_of(value).items() if not is_table(part)}
        return ", ".join(f"{_name(name)} {text}" for name, text in parts.items() if text)
    return ""


def _name(field: str) -> str:
    return field.strip("_").replace("_", " ")


def _table(rows: list[Any], columns: list[str]) -> str:
    def cell(value: Any) -> str:
        side = "right" if isinstance(value, (int, float)) and not isinstance(value, bool) else "left"
        return f"<td style='text-align:{side}'>{'' if value is None else html.escape(_words(value))}</td>"

    body = "".join(f"<tr><th>{index}</th>{''.join(cell(getattr(row, name, None)) for name in columns)}</tr>"
                   for index, row in enumerate(rows[:SHOWN_ROWS]))
    more = f"<p>and {len(rows) - SHOWN_ROWS} more, in <code>to_pandas()</code></p>" if len(rows) > SHOWN_ROWS else ""
    head = "".join(f"<th {_LEFT}>{html.escape(_name(name))}</th>" for name in columns)
    return f"<table style='white-space:nowrap'><thead><tr><th></th>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _folded(name: str, rows: list[Any]) -> str:
    """A table of the columns whose values fit into a cell; what all rows share stands above it."""
    names = [field.name for field in dataclasses.fields(rows[0])]
    values = {name: [getattr(row, name, None) for row in rows] for name in names}
    fitting = {name: column for name, column in values.items()
               if any(_is_plain(value) for value in column) and all(value is None or _is_plain(value) for value in column)}
    shared = {name for name, column in fitting.items()
              if len(rows) > 1 and all(value == column[0] for value in column)}
    columns = [name for name in fitting if name not in shared]
    common = ", ".join(f"{_name(name)} {_words(values[name][0])}" for name in fitting
                       if name in shared and values[name][0] not in (None, ""))
    above = f"<p>All: {html.escape(common)}</p>" if common else ""
    table = _table(rows, columns) if columns else ""
    opened = " open" if len(rows) <= UNFOLDED_ROWS else ""
    return f"<details{opened}><summary>{html.escape(_name(name))} ({len(rows)})</summary>{above}{table}</details>"


def _is_plain(value: Any) -> bool:
    return isinstance(value, (str, int, float)) or (isinstance(value, list) and 0 < len(value) <= 4 and
                                                    all(isinstance(entry, (str, int, float)) for entry in value))


def page(result: Any) -> str:
    """The result as one piece of HTML."""
    facts = fields_of(result)
    line = headline(result)
    title = f"<strong>{type(result).__name__}</strong>{': ' + html.escape(line) if line else ''}"
    rows = "".join(f"<tr><th {_LEFT}>{html.escape(_name(name))}</th><td {_LEFT}>{html.escape(text)}</td></tr>"
                   for name, text in ((name, _words(value)) for name, value in facts.items() if not is_table(value))
                   if text)
    tables = "".join(_folded(name, value) for name, value in facts.items() if is_table(value))
    return f"<div>{title}<table>{rows}</table>{tables}</div>"

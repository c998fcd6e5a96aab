"""JSON with short numbers and short lines."""

from __future__ import annotations

import json
from typing import Any

import numpy as np


def shortest(number: float) -> float:
    """The float32 as the shortest decimal that names it."""
    return float(str(np.float32(number)))


def numbers(array: Any) -> Any:
    return np.vectorize(shortest, otypes=[object])(np.asarray(array)).tolist() if np.size(array) else []


def _flat(value: Any) -> bool:
    return not isinstance(value, (dict, list)) or not value


def dumps(value: Any, indent: int = 0, width: int = 110) -> str:
    """JSON with one line for what fits on one, so that arrays of numbers do not take a line each."""
    line = json.dumps(value, allow_nan=False)
    if len(line) + indent <= width or _flat(value):
        return line
    pad, inner = " " * indent, " " * (indent + 1)
    if isinstance(value, dict):
        items = [f"{json.dumps(key)}: {dumps(item, indent + 1, width)}" for key, item in value.items()]
        return "{\n" + ",\n".join(inner + item for item in items) + f"\n{pad}}}"
    if all(_flat(item) for item in value):
        lines, current = [], ""
        for item in value:
            text = json.dumps(item, allow_nan=False)
            if current and len(current) + len(text) + indent + 3 > width:
                lines.append(current)
                current = ""
            current += (", " if current else "") + text
        return "[\n" + ",\n".join(inner + text for text in [*lines, current]) + f"\n{pad}]"
    return "[\n" + ",\n".join(inner + dumps(item, indent + 1, width) for item in value) + f"\n{pad}]"

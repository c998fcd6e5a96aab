"""Arguments checked before they reach the core, with its kind of message."""

from __future__ import annotations

import math
import operator
import os
from typing import Any

#: The most threads, tokens, axes … that are passed on.
LARGEST = 2**31 - 1


def count(who: str, name: str, value: Any, least: int = 0) -> int:
    """An integer of at least `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{who}: {name} is {value!r}, expected an integer") from None
    if not least <= number <= LARGEST:
        raise ValueError(f"{who}: {name} is {number}, expected {least} to {LARGEST}")
    return number


def real(who: str, name: str, value: Any, least: float = 0.0, most: float = math.inf) -> float:
    """A number from `least` to `most`."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{who}: {name} is {value!r}, expected a number") from None
    if not least <= number <= most:
        raise ValueError(f"{who}: {name} is {number:g}, expected {least:g} to {most:g}")
    return number


def text(who: str, name: str, value: Any) -> str:
    """A string."""
    if not isinstance(value, str):
        raise TypeError(f"{who}: {name} is {value!r}, expected a string")
    return value


def callback(who: str, value: Any) -> Any:
    """None, or what can be called."""
    if value is not None and not callable(value):
        raise TypeError(f"{who}: progress is {value!r}, expected a function of (what, done, total)")
    return value


def path(who: str, name: str, value: Any) -> str:
    """A path as text, empty for None."""
    if value is None:
        return ""
    if isinstance(value, (str, os.PathLike)):
        found = os.fspath(value)
        if isinstance(found, str):
            return found
    raise TypeError(f"{who}: {name} is {value!r}, expected a path")

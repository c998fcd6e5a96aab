"""Every case by name, in the order of the tables."""

from __future__ import annotations

from importlib import import_module

from .case import Case

GROUPS = ("known", "encoders", "decoders", "experts", "hybrids", "others", "media")

CASES: dict[str, Case] = {case.name: case for group in GROUPS
                          for case in import_module(f"{__name__}.{group}").CASES}

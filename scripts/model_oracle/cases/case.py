"""A case: a model class, a tiny configuration, inputs, outputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable

import torch

IDS = (7, 19, 3, 26, 11, 23, 5, 14, 21, 9)
PIXELS = "sin(0.7 i + 0.2), i the index in the flattened array, rounded to float32"


@dataclass(frozen=True)
class Case:
    name: str
    model: str | Callable[[], torch.nn.Module]  # a class of transformers, or what makes a torch module
    config: dict[str, Any] = field(default_factory=dict)
    inputs: dict[str, Any] = field(default_factory=lambda: {"input_ids": 7})
    outputs: tuple[str, ...] = ("logits",)
    towers: dict[str, str] = field(default_factory=lambda: {"": "text"})  # by prefix of a module's path
    options: dict[str, Any] = field(default_factory=dict)  # further arguments of the forward pass
    prepare: Callable[[torch.nn.Module], None] | None = None  # after the weights are random
    attention: str = "eager"
    note: str = ""


def tensors(inputs: dict[str, Any]) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """The tensors of a case, and how truth.json states them. A number asks for that many ids, a list is the ids, a
    tuple is the shape of numbers by formula."""
    made: dict[str, torch.Tensor] = {}
    stated: dict[str, Any] = {}
    for name, wanted in inputs.items():
        if isinstance(wanted, tuple):
            flat = torch.arange(torch.Size(wanted).numel(), dtype=torch.float64)
            made[name] = torch.sin(0.7 * flat + 0.2).float().reshape(wanted)
            stated[name] = {"formula": PIXELS, "shape": list(wanted)}
        else:
            ids = list(IDS[:wanted]) if isinstance(wanted, int) else list(wanted)
            made[name] = torch.tensor([ids])
            stated[name] = [ids]
    return made, stated

"""Collects the observations of one case in one JSON document."""

from __future__ import annotations

from typing import Any

import torch

from . import attention, norms
from .document import numbers, shortest
from .flow import Flow
from .trace import REARRANGING, Graph, Recorder
from .weights import SavedTensors


def _tower(module: str, towers: dict[str, str]) -> str:
    return next((name for prefix, name in towers.items() if module.startswith(prefix)), next(iter(towers.values())))


def _unembedding(flow: Flow, logits: int, positions: list[int]) -> dict[str, Any]:
    """From the logits back to the map that made them."""
    graph: Graph = flow.graph
    steps: list[dict[str, Any]] = []
    value = logits
    while (node := graph.maker(value)) is not None:
        if (use := flow.linear(node)) is not None:
            hidden = graph.data(use.reads)
            hidden = hidden.reshape(-1, hidden.shape[-1])
            terms = flow.stated_terms(use.reads)
            return {"maps": use.maps, "bias": use.bias, "reads": terms, "operations": steps[::-1],
                    "hidden": numbers(hidden[positions] if len(hidden) > max(positions) else hidden)}
        if value in flow.norm_of_value:
            break
        following = node.inputs[0]
        factor = next((f for v in node.inputs if (f := flow.scalar_factor(node, v)) is not None), None)
        if factor is not None:
            steps.append({"op": "mul", "number": shortest(factor)})
            following = next(v for v in node.inputs if flow.scalar_factor(node, v) is not None)
        elif node.op == "add" and any(flow.graph.weight(v) for v in node.inputs):
            following = next(v for v in node.inputs if not flow.graph.weight(v))
        elif node.op not in REARRANGING:
            steps.append({"op": node.op})
        value = following
    return {"maps": [], "reads": flow.stated_terms(value), "operations": steps[::-1]}


def observe(model: torch.nn.Module, graph: Graph, recorder: Recorder, outputs: dict[str, torch.Tensor],
            saved: SavedTensors, towers: dict[str, str]) -> dict[str, Any]:
    found = norms.find(model, graph)
    flow = Flow(graph, saved, found)
    entries, checked = [], 0
    for norm in found:
        reads = [flow.stated_terms(flow.input_of(norm, k)) for k in range(len(norm.calls))]
        checked += sum(flow.check_terms(flow.input_of(norm, k)) for k in range(len(norm.calls)))
        readers: list[dict[str, Any]] = []
        for call in norm.calls:
            readers += [reader for reader in flow.readers(call.outputs[0]) if reader not in readers]
        entries.append({"tower": _tower(norm.module, towers), **norms.describe(norm, model, saved),
                        "readers": readers, "reads": reads})
    truth: dict[str, Any] = {"norms": entries, "sums_checked": checked}
    if missed := norms.overlooked(graph, found):
        truth["other_normalizing_operations"] = missed
    truth["residual_additions"] = flow.additions()
    truth["attention"] = [dict(entry, probabilities=numbers(entry["probabilities"])) for entry in attention.find(flow)]
    truth["outputs"] = {}
    for name, tensor in outputs.items():
        rows = tensor.detach().reshape(-1, tensor.shape[-1])
        positions = [len(rows) - 1] if len(rows) > 1 else [0]
        truth["outputs"][name] = {"positions": positions, "values": numbers(rows[positions]),
                                  **_unembedding(flow, recorder.value_of(tensor), positions)}
    return truth

"""Attention as computed: probabilities, and the operations between projections and softmax."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from .document import shortest
from .flow import Flow
from .trace import REARRANGING, Node, replay

PRODUCTS = ("bmm", "baddbmm", "matmul")


def _is_product_of_activations(flow: Flow, node: Node) -> bool:
    return node.op in PRODUCTS and flow.linear(node) is None


def find(flow: Flow) -> list[dict[str, Any]]:
    """Every softmax over keys, in order of execution."""
    layers = []
    for node in flow.graph.nodes:
        if node.op not in ("_softmax", "_safe_softmax"):
            continue
        shape = flow.graph.data(node.outputs[0]).shape
        mixes = any(_is_product_of_activations(flow, use) for use in _weighted(flow, node.outputs[0]))
        if len(shape) >= 3 and mixes:
            layers.append(_describe(flow, node))
    return layers


def _weighted(flow: Flow, value: int) -> list[Node]:
    """Consumers of probabilities, also after operations that keep their shape (a mask of heads, a sum with zero)."""
    found = []
    for node in flow.consumers(value):
        found.append(node)
        if node.op in ("mul", "masked_fill", "where", "nan_to_num") and node.outputs:
            found += list(flow.consumers(node.outputs[0]))
    return found


def _describe(flow: Flow, node: Node) -> dict[str, Any]:
    graph = flow.graph
    p = graph.data(node.outputs[0]).numpy()
    windows = p.shape[0] if p.ndim == 4 else 1
    p = p.reshape(-1, *p.shape[-2:])
    path, product, sinks = _score_path(flow, node.inputs[0])
    if sinks:
        p = p[..., :-1]
    if sinks is None and (behind := _share_of_sink(flow, node.inputs[0])):
        sinks, kept = behind
        p = p * kept.reshape(*p.shape[:-1], 1)
    query, key = (product.inputs[-2], product.inputs[-1]) if product else (None, None)
    sides = {"query": _side(flow, query, p.shape[0]), "key": _side(flow, key, p.shape[0])}
    scale, cap = _scale_and_cap(path)
    for side in sides.values():
        scale *= side.pop("scale")
    entry: dict[str, Any] = {
        "module": node.module, "heads": p.shape[0] // windows, "windows": windows, "scale": shortest(scale), "soft_cap": cap,
        "score_operations": path, **sides, **_visibility(p), "sinks": sinks,
    }
    entry["probabilities"] = p
    return entry


def _visibility(p: np.ndarray) -> dict[str, Any]:
    """Which keys a query sees, from the zeros of the probabilities."""
    seen = (p > 0).any(axis=0)
    queries, keys = seen.shape
    ahead = [(j - i) for i in range(queries) for j in range(keys) if seen[i, j]]
    future, past = max(ahead), -min(ahead)
    if queries != keys:
        return {"visible": "all" if seen.all() else "some", "window": None, "ahead": None}
    causal = future <= 0
    dense = all(seen[i, j] == (-past <= j - i <= future) for i in range(queries) for j in range(keys))
    window = None if past == queries - 1 else past + 1
    name = ("causal" if causal else "all") if dense else "irregular"
    for size in range(2, queries):
        if all(seen[i, j] == (j <= i and j // size == i // size) for i in range(queries) for j in range(keys)):
            name = "causal in chunks"
    return {"visible": name, "window": window, "ahead": None if future == queries - 1 else max(future, 0)}


def _score_path(flow: Flow, value: int) -> tuple[list[dict[str, Any]], Node | None, str | None]:
    """Operations from the product of queries and keys to the softmax, in order; the product; a sink's parameter."""
    graph, path, sinks = flow.graph, [], None
    while (node := graph.maker(value)) is not None:
        if _is_product_of_activations(flow, node):
            if node.op == "baddbmm":
                path.append({"op": "add", "what": _kind_of_addend(flow, node.inputs[0])})
                if (alpha := node.kwargs.get("alpha", 1)) != 1:
                    path.append({"op": "mul", "number": shortest(alpha)})
            return path[::-1], node, sinks
        factor = next((f for v in node.inputs if (f := flow.scalar_factor(node, v)) is not None), None)
        if factor is not None:
            if factor != 1.0:
                path.append({"op": "mul", "number": shortest(factor)})
        elif node.op in REARRANGING:
            pass
        elif node.op == "cat" and len(node.inputs) == 2 and flow.graph.weight(node.inputs[1]):
            name = flow.parameter_name(graph.source(node.inputs[1]))
            sinks = name or "unknown"
        elif node.op in ("add", "sub", "mul"):
            others = [v for v in node.inputs if not _leads_to_product(flow, v)]
            path += [{"op": node.op, "what": _kind_of_addend(flow, v)} for v in others]
            if len(node.inputs) - len(others) > 1:
                path.append({"op": node.op, "what": _kind_of_activation(flow, node)})
        else:
            path.append({"op": node.op})
        value = next((v for v in node.inputs if _leads_to_product(flow, v)), node.inputs[0])
    return path[::-1], None, sinks


def _share_of_sink(flow: Flow, scores: int) -> tuple[str, np.ndarray] | None:
    """A sink that multiplies what heads have averaged by sigmoid(logsumexp(scores) - sink): its parameter, and that
    factor, with which probabilities are those of a softmax with the sink."""
    for total in flow.consumers(scores):
        for less in flow.consumers(total.outputs[0]) if total.op == "logsumexp" else ():
            name = next((flow.parameter_name(flow.graph.source(v)) for v in less.inputs if flow.graph.weight(v)), None)
            for share in flow.consumers(less.outputs[0]) if less.op == "sub" and name else ():
                if share.op == "sigmoid":
                    return name, flow.graph.data(share.outputs[0]).numpy()
    return None


def _leads_to_product(flow: Flow, value: int) -> bool:
    queue, seen = deque([value]), {value}
    while queue:
        node = flow.graph.maker(queue.popleft())
        if node is None:
            continue
        if _is_product_of_activations(flow, node):
            return True
        if flow.linear(node) is None:
            new = [v for v in node.inputs if v not in seen]
            seen.update(new)
            queue.extend(new)
    return False


def _kind_of_addend(flow: Flow, value: int) -> str:
    graph = flow.graph
    data = graph.data(value).double().numpy()
    if graph.weight(value):
        return "bias from " + ", ".join(flow.parameters_of(value))
    large = (data <= -1e4) | ~np.isfinite(data)
    if large.any() and not data[~large].any():  # perhaps computed from the padding of the input
        return "mask"
    if graph.constant(value):
        if not data.any():
            return "zeros"
        if set(np.unique(data)) <= {0.0, 1.0}:
            return "mask"
        return "constant per key and query" + (" and mask" if large.any() else "")
    return "activation"


def _kind_of_activation(flow: Flow, node: Node) -> str:
    makers = [flow.graph.maker(v) for v in node.inputs]
    if node.op == "sub" and any(maker is not None and maker.op in ("amax", "max") for maker in makers):
        return "the largest score"
    return "product of other activations"


def _side(flow: Flow, value: int | None, heads: int) -> dict[str, Any]:
    """From a projection to the product: the linear maps, norms on the way, position tables, product of numbers."""
    maps: list[dict[str, Any]] = []
    norms: list[str] = []
    reads: list[list[dict[str, Any]]] = []
    ends: list[int] = []
    added: list[str] = []
    scale, table, by_position, other = 1.0, False, False, set()
    queue, seen = deque([] if value is None else [value]), {value}
    while queue:
        current = queue.popleft()
        node = flow.graph.maker(current)
        if current in flow.norm_of_value:
            norm = flow.norms[flow.norm_of_value[current]]
            norms.append(norm.module)
            call = next(i for i, call in enumerate(norm.calls) if current in call.outputs)
            following = [flow.input_of(norm, call)]
        elif node is None:
            continue
        elif (use := flow.linear(node)) is not None:
            maps += [dict(entry, bias=use.bias) for entry in use.maps if entry not in maps]
            reads += [terms for terms in [flow.stated_terms(use.reads)] if terms not in reads]
            ends.append(node.outputs[0])
            continue
        else:
            following = [v for v in node.inputs if flow.graph.values[v].from_input]
            factors = [f for v in node.inputs if (f := flow.scalar_factor(node, v)) is not None]
            scale *= float(np.prod(factors))
            large = [v for v in node.inputs if flow.graph.constant(v) and flow.graph.data(v).numel() > 1]
            # A table in which the row of one token is a parameter (MLCD).
            large += [v for v in node.inputs if flow.graph.weight(v) and flow.graph.maker(v) is not None
                      and flow.graph.data(v).numel() > flow.graph.data(v).shape[-1] > 1]
            rotates = [v for v in large if flow.graph.data(v).shape[-1] > 1]
            table = table or (node.op == "mul" and bool(rotates))
            by_position = by_position or (node.op == "mul" and len(large) > len(rotates))
            if node.op not in REARRANGING and not factors:
                other.add(node.op)
            if node.op == "add":
                added += [name for v in node.inputs if flow.graph.weight(v) for name in flow.parameters_of(v)]
        for v in following:
            if v not in seen:
                seen.add(v)
                queue.append(v)
    return {"maps": maps, "reads": reads, "added": sorted(set(added)), "norms": norms, "position_table": table, "scaled_by_position": by_position,
            "operations": sorted(other),
            "scale": scale, "features": None if value is None else _features(flow, value, heads, ends, norms)}


def _features(flow: Flow, operand: int, heads: int, ends: list[int], norms: list[str]) -> list[list[list[int]]] | None:
    """For each head, the output features of its projection that its queries (or keys) depend on, as runs [first,
    count]; behind a norm over all heads together, the features of that norm. Found by running the operations in between
    with one feature not a number. None with several projections."""
    if len(ends) != 1 or flow.graph.data(operand).shape[0] != heads:
        return None
    starts = list(ends)
    for norm in flow.norms:
        if norm.module in norms and norm.fit.width == flow.graph.data(ends[0]).shape[-1]:
            starts += [call.outputs[0] for call in norm.calls]
    for start in starts:
        dependent = _dependence(flow, start, operand, heads)
        if dependent is not None and (heads == 1 or dependent[0] != dependent[-1] or not norms):
            return [_runs(features) for features in dependent]
    return None


def _dependence(flow: Flow, start: int, operand: int, heads: int) -> list[list[int]] | None:
    dependent: list[list[int]] = [[] for _ in range(heads)]
    for feature in range(flow.graph.data(start).shape[-1]):
        changed = flow.graph.data(start).clone()
        changed[..., feature] = float("nan")
        result = replay(flow.graph, start, changed, operand)
        if result is None:
            return None
        for head in range(heads):
            if result[head].isnan().any():
                dependent[head].append(feature)
    return dependent


def _runs(features: list[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for feature in features:
        if runs and feature == sum(runs[-1]):
            runs[-1][1] += 1
        else:
            runs.append([feature, 1])
    return runs


def _scale_and_cap(path: list[dict[str, Any]]) -> tuple[float, float]:
    """The product of the numbers that scores are multiplied by, and c of c tanh(s/c)."""
    scale, cap = 1.0, 0.0
    for i, step in enumerate(path):
        if step["op"] == "tanh":
            cap = path[i + 1]["number"]
            scale *= cap  # undoes the division by c before it
        elif step["op"] == "mul" and "number" in step and not (i and path[i - 1]["op"] == "tanh"):
            scale *= step["number"]
    return scale, shortest(cap)

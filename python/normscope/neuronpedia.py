"""Attributions as graphs in the JSON that Neuronpedia shows."""

from __future__ import annotations

import json
from typing import Any

from . import _core, results
from ._check import path as file_path, shown, text

#: The version of the schema, whose models circuit-tracer publishes.
_SCHEMA_VERSION = 1
#: The type of an MLP, a bias and a head.
_TYPES = {"mlp": "mlp", "mlp_bias": "bias", "attention_bias": "bias", "position": "position"}


def graph(found: results.Attribute, *, slug: str, scan: str) -> dict[str, Any]:
    """The graph of an attribution: a node for each component at the position that is read, one for the logit, and a link
    from each component to it. The `weight` of a link is the component's share; its `price` is what freezing the norm
    leaves out of the change that removing the component makes, `exact` that change.

    slug     name of the graph
    scan     name of the model there
    Errors   TypeError for what is no attribution
    """
    if not isinstance(found, results.Attribute):
        raise TypeError(f"graph: {shown(found)} is no result of attribute")
    name, model = text("graph", "slug", slug), text("graph", "scan", scan)
    spelled = [str(token.token) if token.name is None else token.name for token in found.tokens]
    layers = [int(component.name.partition(".")[0]) for component in found.components
              if component.name.partition(".")[0].isdigit()]
    target = f"{max(layers, default=-1) + 2}_{found.target.token}_{found.at}"
    influence = _cumulative([abs(component.share) for component in found.components])
    nodes, links = [], []
    for index, component in enumerate(found.components):
        node = _node(index, component, found)
        nodes.append({**node, "jsNodeId": node["node_id"], "ctx_idx": found.at, "run_idx": 0, "reverse_ctx_idx": 0,
                      "token_prob": 0.0, "is_target_logit": False, "clerp": component.name,
                      "influence": influence[index], "activation": component.share})
        links.append({"source": node["node_id"], "target": target, "weight": component.share, "price": component.price,
                      "exact": component.exact})
    words = [str(token.token) if token.name is None else token.name
             for token in (found.target, found.against) if token is not None]
    nodes.append({"node_id": target, "jsNodeId": target, "feature": found.target.token,
                  "layer": str(max(layers, default=-1) + 2), "ctx_idx": found.at, "feature_type": "logit",
                  "run_idx": 0, "reverse_ctx_idx": 0, "token_prob": 0.0, "is_target_logit": True,
                  # Viewers read a probability behind "(p=", which an attribution does not have.
                  "clerp": " - ".join(f'Output "{word}"' for word in words) + " (p=?)", "influence": None, "activation": found.value})
    return {"metadata": {"slug": name, "scan": model, "transcoder_list": [], "prompt_tokens": spelled,
                         "prompt": "".join(spelled),
                         "schema_version": _SCHEMA_VERSION,
                         "info": {"generator": {"name": "Normscope", "version": _core.__version__}}},
            "qParams": {"pinnedIds": [], "supernodes": [], "linkType": "both", "clickedId": "", "sg_pos": ""},
            "nodes": nodes, "links": links}


def _cumulative(sizes: list[float]) -> list[float]:
    """For each the part of the whole that it and all larger ones make, by which such graphs are pruned."""
    whole, passed, found = sum(sizes) or 1.0, 0.0, [0.0] * len(sizes)
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        passed += sizes[place]
        found[place] = min(1.0, passed / whole)
    return found


def _node(index: int, component: Any, found: results.Attribute) -> dict[str, Any]:
    layer, _, part = component.name.partition(".")
    if component.name == "embedding":
        token = found.tokens[found.at].token
        return {"node_id": f"E_{token}_{found.at}", "feature": found.at, "layer": "E", "feature_type": "embedding"}
    where = layer if layer.isdigit() and part else "E"
    # The numbers of nodes within a layer are those of heads, and beyond them the order of the components.
    number = int(part) if part.isdigit() else 10_000 + index
    pair = (int(where) if where != "E" else 0) + number
    return {"node_id": f"{where}_{number}_{found.at}", "feature": pair * (pair + 1) // 2 + number, "layer": where,
            "feature_type": "attention head" if part.isdigit() else _TYPES.get(part or component.name, "component")}


def save(found: results.Attribute, path: Any, *, slug: str, scan: str) -> None:
    """Writes the graph as JSON, whole or not at all.

    Errors   OSError, and as `graph`
    """
    _core.write_file(file_path("save", "path", path), json.dumps(graph(found, slug=slug, scan=scan), allow_nan=False))

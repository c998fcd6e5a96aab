"""Follows values through a recorded pass: what reads a value, and which writers a value is the sum of."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Iterator

import numpy as np

from .document import shortest
from .norms import Norm
from .trace import REARRANGING, Graph, Node, Ref
from .weights import SavedTensors

NOT_STATED = ("at", "maps", "module", "parts", "added_bias", "whole", "whole_factor")
# Operations that read the shape of their input only.
SHAPE_ONLY = frozenset("zeros_like ones_like empty_like full_like new_zeros new_ones new_empty new_full".split())
Term = dict[str, Any]


def selector(entry: dict[str, Any]) -> str:
    """A map's tensor as `normscope` names it: "name" or "name[3]"."""
    if entry["weight"] is None:
        return "computed from " + ", ".join(entry["computed_from"])
    return entry["weight"] + (f"[{entry['slice']}]" if "slice" in entry else "")


@dataclass
class LinearUse:
    node: Node
    reads: int  # value
    maps: list[dict[str, Any]]
    bias: str | None


@dataclass
class Flow:
    graph: Graph
    saved: SavedTensors
    norms: list[Norm]
    norm_of_value: dict[int, int] = field(default_factory=dict)
    norm_of_node: dict[int, int] = field(default_factory=dict)
    _terms: dict[int, list[Term]] = field(default_factory=dict)
    _linear: dict[int, LinearUse | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for index, norm in enumerate(self.norms):
            for call in norm.calls:
                self.norm_of_value[call.outputs[0]] = index
                for node in range(call.first_node, call.last_node):
                    self.norm_of_node[node] = index

    # Linear maps

    def linear(self, node: Node) -> LinearUse | None:
        """The node as a map of an activation by stored weights, if it is one."""
        if node.index not in self._linear:
            self._linear[node.index] = self._find_linear(node)
        return self._linear[node.index]

    def _find_linear(self, node: Node) -> LinearUse | None:
        if node.index in self.norm_of_node:
            return None
        refs = [item.value if isinstance(item, Ref) else None for item in node.args]
        if node.op in ("mm", "bmm", "matmul", "mv"):
            left, right, bias = refs[0], refs[1], None
        elif node.op in ("addmm", "baddbmm"):
            left, right, bias = refs[1], refs[2], refs[0]
        elif node.op in ("linear", "convolution"):
            left, right, bias = refs[0], refs[1], refs[2] if len(refs) > 2 else None
        else:
            return None
        assert left is not None and right is not None
        graph = self.graph
        if graph.weight(right) and graph.values[left].from_input:
            reads, weight = left, graph.data(right).numpy()
            if node.op in ("linear", "convolution"):
                weight = weight.reshape(weight.shape[0], -1).T
        elif graph.weight(left) and graph.values[right].from_input and node.op != "linear":
            reads, weight = right, np.swapaxes(graph.data(left).numpy(), -1, -2)
        else:
            return None
        maps = self._maps(weight)
        if node.op == "bmm" and all(entry["weight"] is None for entry in maps):
            return None  # attention with queries that are parameters
        if maps[0]["weight"] is None:
            maps = [dict(maps[0], computed_from=self.parameters_of(left if reads == right else right))]
        if node.op == "convolution":
            shape = list(graph.data(refs[1]).shape)  # type: ignore[index]
            maps = [dict(entry, kernel=shape[2:], groups=node.args[-1]) for entry in maps]
        return LinearUse(node, reads, maps, self._bias(bias, node, maps))

    def _maps(self, weight: np.ndarray) -> list[dict[str, Any]]:
        if weight.ndim == 1:
            weight = weight[:, None]
        if weight.ndim == 2:
            return self.saved.matrix(weight)
        found: list[dict[str, Any]] = []
        for matrix in weight.reshape(-1, *weight.shape[-2:]):
            found += [entry for entry in self.saved.matrix(matrix) if entry not in found]
        return found

    def _bias(self, bias: int | None, node: Node, maps: list[dict[str, Any]]) -> str | None:
        if bias is None or not self.graph.weight(bias):
            return self._added_bias(node)
        found = self.saved.vector(self.graph.data(bias).numpy())
        return found["tensor"] if found else None

    def _has_own_bias(self, node: Node) -> bool:
        """Whether the operation itself adds its bias."""
        which = {"addmm": 0, "baddbmm": 0, "linear": 2, "convolution": 2}.get(node.op, 99)
        return len(node.args) > which and isinstance(node.args[which], Ref)

    def _added_bias(self, node: Node) -> str | None:
        """A bias added by an operation of its own; None where several are, each for another use."""
        found = set()
        for consumer in self.consumers(node.outputs[0]) if node.outputs else ():
            if consumer.op == "add":
                for value in consumer.inputs:
                    data = self.graph.data(value)
                    if self.graph.weight(value) and data.numel() == self.graph.data(node.outputs[0]).shape[-1]:
                        found.add(self.saved.name_of(data.numpy()))
        return found.pop() if len(found) == 1 else None

    def consumers(self, value: int) -> Iterator[Node]:
        """Of the value and its rearrangements."""
        for _, node in self.uses(value):
            yield node

    def uses(self, value: int) -> Iterator[tuple[int, Node]]:
        queue, seen = deque([value]), {value}
        while queue:
            current = queue.popleft()
            for index in self.graph.consumers.get(current, ()):
                node = self.graph.nodes[index]
                if node.op in SHAPE_ONLY:
                    continue
                if node.op in REARRANGING and node.inputs[0] == current and index not in self.norm_of_node:
                    for output in node.outputs:
                        if output not in seen:
                            seen.add(output)
                            queue.append(output)
                else:
                    yield current, node

    # Readers

    def readers(self, value: int, factor: float = 1.0, joined: bool = False) -> list[dict[str, Any]]:
        """What consumes the value: linear maps, norms, and other operations by name."""
        found: list[dict[str, Any]] = []
        for current, node in self.uses(value):
            entries = self._reader(current, node, factor, joined)
            found += [entry for entry in entries if entry not in found]
        return found

    def _reader(self, current: int, node: Node, factor: float, joined: bool) -> list[dict[str, Any]]:
        extra: dict[str, Any] = {"module": node.module}
        if factor != 1.0:
            extra["factor"] = shortest(factor)
        if joined:
            extra["concatenated"] = True
        if node.index in self.norm_of_node:
            norm = self.norms[self.norm_of_node[node.index]]
            return [{"op": "norm", "norm": norm.module}]
        if (use := self.linear(node)) is not None and use.reads == current:
            return [{"op": "linear", **entry, "bias": use.bias, **extra} for entry in use.maps]
        if (scalar := self.scalar_factor(node, current)) is not None:
            return self.readers(node.outputs[0], factor * scalar, joined)
        if node.op in ("cat", "stack"):
            return self.readers(node.outputs[0], factor, True)
        others = [v for v in node.inputs if v != current]
        if node.op == "mul" and any(self.graph.constant(v) for v in others):
            return [{"op": "position table", **extra}]
        parameters = [name for v in others if self.graph.weight(v) and (name := self.parameter_name(v))]
        if parameters:
            extra["parameters"] = parameters
        return [{"op": node.op, **extra}]

    def parameter_name(self, value: int) -> str | None:
        return self.saved.name_of(self.graph.data(value).numpy())

    def parameters_of(self, value: int) -> list[str]:
        """The saved tensors that the value is computed from."""
        queue, names = deque([value]), set()
        while queue:
            current = queue.popleft()
            record = self.graph.values[current]
            if record.parameter is not None:
                names.add(self.parameter_name(current) or record.parameter)
            elif record.node is not None:
                inputs = self.graph.nodes[record.node].inputs
                queue.extend(v for v in inputs if self.graph.values[v].from_parameter)
        return sorted(names)

    def scalar_factor(self, node: Node, of: int) -> float | None:
        """c where the node multiplies the value `of` by the number c."""
        if node.op not in ("mul", "div") or len(node.args) < 2:
            return None
        first, second = node.args[0], node.args[1]
        if isinstance(first, Ref) and first.value != of and node.op == "mul":
            first, second = second, first
        if not isinstance(first, Ref) or first.value != of:
            return None
        number: float | None = None
        if isinstance(second, (int, float)):
            number = float(second)
        elif isinstance(second, Ref) and self.graph.constant(second.value):
            entries = self.graph.data(second.value)
            if entries.numel() and bool((entries == entries.flatten()[0]).all()):  # a number, or a mask of ones
                number = float(entries.flatten()[0])
        elif isinstance(second, Ref) and not self.graph.weight(second.value):
            entries = self.graph.data(second.value)
            if entries.shape[-1:] == (1,) and bool((entries == 1).all()):  # a mask of padding, without any here
                number = 1.0
        if number is None:
            return None
        return number if node.op == "mul" else 1.0 / number

    # Sums

    def terms(self, value: int) -> list[Term]:
        """The value as a sum of outputs of linear maps, embeddings, parameters, norms and other operations."""
        if value not in self._terms:
            terms = [term if "at" in term else dict(term, at=value) for term in self._expand(value)]
            self._terms[value] = sorted(terms, key=lambda term: term["at"])
        return self._terms[value]

    def check_terms(self, value: int) -> bool:
        """Whether the terms add up to the value; false where they cannot be compared because positions were moved."""
        wanted = self.graph.data(value).double().numpy()
        wanted = wanted.reshape(-1, wanted.shape[-1])
        total = np.zeros_like(wanted)
        for term in self.terms(value):
            data = self.graph.data(term.get("whole", term["at"])).double().numpy()
            if data.shape[-1] != wanted.shape[1] or "scaled_by" in term or term["kind"] == "concatenation":
                return False
            part = data.reshape(-1, wanted.shape[1])
            if part.shape[0] not in (1, total.shape[0]):
                return False
            if term.get("added_bias"):
                part = part + self.saved.tensors[term["bias"]]
            total += part * (term.get("factor", 1.0) / term.get("whole_factor", 1.0))
        size = max(1.0, float(np.abs(wanted).max()))
        if np.abs(total - wanted).max() <= 1e-4 * size:
            return True
        if np.abs(total.sum(0) - wanted.sum(0)).max() > 1e-4 * size * len(wanted):
            raise ValueError(f"value {value} is not the sum of its terms")
        return False

    def stated_terms(self, value: int) -> list[Term]:
        """The same for truth.json: oldest first, linear maps by name."""
        return [self._stated(term) for term in self.terms(value)]

    def _stated(self, term: Term) -> Term:
        stated = {key: item for key, item in term.items() if key not in NOT_STATED}
        if "factor" in stated:
            stated["factor"] = shortest(stated["factor"])
            if stated["factor"] == 1.0:
                del stated["factor"]
        if term["kind"] == "linear":
            stated["weights"] = list(dict.fromkeys(selector(entry) for entry in term["maps"]))
        if term["kind"] == "concatenation":
            stated["parts"] = [[self._stated(t) for t in part] for part in term["parts"]]
        if term["kind"] == "op":
            stated["module"] = term["module"]
        return stated

    def _expand(self, value: int) -> list[Term]:
        if value in self.norm_of_value:
            return [{"kind": "norm", "norm": self.norms[self.norm_of_value[value]].module}]
        node = self.graph.maker(value)
        if node is None:
            name = self.parameter_name(value)
            return [{"kind": "parameter", "tensor": name}] if name else [{"kind": "input"}]
        if (use := self.linear(node)) is not None:
            return [{"kind": "linear", "maps": use.maps, "bias": use.bias, "module": node.module,
                     "added_bias": use.bias is not None and not self._has_own_bias(node)}]
        if node.op in REARRANGING:
            return self._rearranged(node, value)
        if node.op in ("add", "sub", "rsub") and len(node.inputs) == 2:
            return self._sum(node)
        if node.op == "add" and len(node.inputs) == 1 and node.args[1] == 0:
            return self.terms(node.inputs[0])
        if node.op == "embedding":
            return [{"kind": "embedding", "tensor": self.parameter_name(node.inputs[0]), "module": node.module}]
        for operand in node.inputs:
            if (factor := self.scalar_factor(node, operand)) is not None:
                return [dict(term, factor=term.get("factor", 1.0) * factor) for term in self.terms(operand)]
        if node.op == "mul" and len(node.inputs) == 2:
            for operand, other in (node.inputs, node.inputs[::-1]):
                if self.graph.weight(other) and (name := self.parameter_name(other)):
                    return [dict(term, scaled_by=[*term.get("scaled_by", []), name]) for term in self.terms(operand)]
        if node.op in ("cat", "stack"):
            parts = [self.terms(part) for part in node.inputs]
            return [{"kind": "concatenation", "parts": parts}]
        if self.graph.weight(value):
            return [{"kind": "parameter", "tensor": self.parameter_name(value)}]
        if self.graph.constant(value):
            return [{"kind": "constant"}]
        return [{"kind": "op", "op": node.op, "module": node.module, "from": self.origins(value)}]

    def _rearranged(self, node: Node, value: int) -> list[Term]:
        if node.op == "index" and self.graph.weight(node.inputs[0]) and self.graph.values[value].from_input:
            table = self.parameter_name(self.graph.source(node.inputs[0]))
            return [{"kind": "embedding", "tensor": table, "module": node.module}]
        terms = self.terms(node.inputs[0])
        return [self._whole(terms[0], value)] if len(terms) == 1 else terms

    @staticmethod
    def _whole(term: Term, value: int) -> Term:
        """The term, with `value` as what it adds: its factor and its bias are in it."""
        return dict(term, whole=value, whole_factor=term.get("factor", 1.0), added_bias=False)

    def _sum(self, node: Node) -> list[Term]:
        left, right = node.inputs
        sign = {"add": (1.0, 1.0), "sub": (1.0, -1.0), "rsub": (-1.0, 1.0)}[node.op]
        terms: list[Term] = []
        for operand, factor in ((left, sign[0]), (right, sign[1])):
            if self._is_bias_of_other(operand, node):
                continue
            terms += [dict(t, factor=t.get("factor", 1.0) * factor) if factor != 1.0 else t
                      for t in self.terms(operand)]
        if any(self._is_bias_of_other(operand, node) for operand in (left, right)):
            return [self._whole(terms[0], node.outputs[0])]
        return terms

    def _is_bias_of_other(self, operand: int, node: Node) -> bool:
        data = self.graph.data(operand)
        if not self.graph.weight(operand) or data.numel() != data.shape[-1]:
            return False
        other = node.inputs[1] if node.inputs[0] == operand else node.inputs[0]
        name, terms = self.parameter_name(operand), self.terms(other)
        return len(terms) == 1 and terms[0]["kind"] == "linear" and terms[0]["bias"] == name

    def origins(self, value: int) -> list[str]:
        """Names of the nearest linear maps, norms and embeddings that the value is computed from."""
        names: list[str] = []
        queue, seen = deque([value]), {value}
        while queue:
            current = queue.popleft()
            node = self.graph.maker(current)
            if current in self.norm_of_value:
                names.append("norm " + self.norms[self.norm_of_value[current]].module)
            elif node is not None and (use := self.linear(node)) is not None:
                names += [selector(entry) for entry in use.maps]
            elif node is not None and node.op == "embedding":
                names.append(str(self.parameter_name(node.inputs[0])))
            elif node is not None:
                for previous in node.inputs:
                    if previous not in seen and self.graph.values[previous].from_input:
                        seen.add(previous)
                        queue.append(previous)
        return sorted(set(names))

    def additions(self) -> list[dict[str, Any]]:
        """Sums of two activations of which one is part of an earlier stream, in order."""
        found = []
        for node in self.graph.nodes:
            if node.op != "add" or node.index in self.norm_of_node or len(node.inputs) != 2:
                continue
            left, right = node.inputs
            if not all(self.graph.values[v].from_input for v in (left, right)):
                continue
            if self.graph.data(left).shape != self.graph.data(right).shape:
                continue
            if left == right or not self._enters_norm(node.outputs[0]):
                continue
            older, newer = sorted((left, right), key=lambda operand: int(self.terms(operand)[0]["at"]))
            start = self.stated_terms(older)[0]
            names = start.get("weights", [start.get("tensor", start.get("norm", start["kind"]))])
            found.append({"module": node.module, "stream": names[0], "added": self.stated_terms(newer)})
        return found

    def _enters_norm(self, value: int) -> bool:
        """Whether a norm normalizes the value or a later sum with it."""
        queue, seen = deque([value]), {value}
        inputs = {call_value for norm in self.norms for call_value in self._inputs(norm)}
        while queue:
            current = queue.popleft()
            if current in inputs:
                return True
            for index in self.graph.consumers.get(current, ()):
                node = self.graph.nodes[index]
                passes = node.op in REARRANGING or node.op in ("add", "sub", "cat") or any(
                    self.scalar_factor(node, v) is not None for v in node.inputs)
                for output in node.outputs if passes and self.linear(node) is None else ():
                    if output not in seen:
                        seen.add(output)
                        queue.append(output)
        return False

    def _inputs(self, norm: Norm) -> list[int]:
        return [self.input_of(norm, k) for k in range(len(norm.calls))]

    def input_of(self, norm: Norm, execution: int) -> int:
        """The value that an execution normalizes."""
        if norm.fit.value in norm.calls[0].inputs:
            return norm.calls[execution].inputs[norm.calls[0].inputs.index(norm.fit.value)]
        if execution == 0:
            return norm.fit.value
        return next(iter(norm.calls[execution].inputs), norm.calls[execution].keyword_inputs["hidden_states"])

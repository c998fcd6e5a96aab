"""Records one forward pass as a graph of ATen operations, with the values and the module that ran each."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Iterator

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .weights import is_learned_buffer

# Operations whose output holds elements of their first tensor, unchanged and perhaps in another place.
REARRANGING = frozenset(
    """view _unsafe_view reshape transpose t permute expand unsqueeze squeeze clone contiguous alias detach slice select
    split split_with_sizes unbind _to_copy lift_fresh index gather repeat roll constant_pad_nd as_strided narrow
    index_select flip unfold _reshape_alias diagonal dropout swapaxes view_as _conj lift split_with_sizes_copy
    slice_scatter masked_select movedim flatten unflatten expand_copy""".split()
)


@dataclass
class Value:
    """A tensor at one moment of the pass. An in-place operation makes a new value of the same tensor."""

    index: int
    data: torch.Tensor
    node: int | None = None  # that made it
    parameter: str | None = None  # its name in the model, if it is one
    from_input: bool = False  # whether the model's inputs affect it
    from_parameter: bool = False


@dataclass
class Node:
    index: int
    op: str
    args: list[Any]  # values as Ref
    kwargs: dict[str, Any]
    inputs: list[int]
    outputs: list[int]
    module: str
    function: Any = None  # to run it again


@dataclass(frozen=True)
class Ref:
    value: int


@dataclass
class Call:
    """One execution of a module."""

    module: str
    first_node: int
    last_node: int
    inputs: list[int]
    keyword_inputs: dict[str, int]
    outputs: list[int]


@dataclass
class Graph:
    values: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    consumers: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def maker(self, value: int) -> Node | None:
        node = self.values[value].node
        return None if node is None else self.nodes[node]

    def data(self, value: int) -> torch.Tensor:
        return self.values[value].data

    def source(self, value: int) -> int:
        """Follows rearrangements back to the value whose elements these are."""
        while (node := self.maker(value)) is not None and node.op in REARRANGING and node.inputs:
            value = node.inputs[0]
        return value

    def constant(self, value: int) -> bool:
        """Whether it depends on neither the inputs' values nor a parameter: a mask, a table of positions."""
        return not self.values[value].from_input and not self.values[value].from_parameter

    def weight(self, value: int) -> bool:
        """Whether it is computed from parameters alone."""
        return self.values[value].from_parameter and not self.values[value].from_input


class Recorder(TorchDispatchMode):
    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.graph = Graph()
        self._ids: dict[int, int] = {}  # of a tensor object: its current value
        self._alive: list[torch.Tensor] = []
        self._stack: list[tuple[str, int]] = []
        for name, parameter in model.named_parameters():
            self._add(parameter, parameter=name)
        for name, buffer in model.named_buffers():
            if is_learned_buffer(name):
                self._add(buffer, parameter=name)

    def input(self, tensor: torch.Tensor) -> int:
        return self._add(tensor, from_input=True)

    def value_of(self, tensor: torch.Tensor) -> int:
        known = self._ids.get(id(tensor))
        return self._add(tensor) if known is None else known

    def _add(self, tensor: torch.Tensor, node: int | None = None, parameter: str | None = None,
             from_input: bool = False, from_parameter: bool = False) -> int:
        value = Value(len(self.graph.values), tensor.detach().clone(), node, parameter, from_input,
                      from_parameter or parameter is not None)
        self.graph.values.append(value)
        self._ids[id(tensor)] = value.index
        self._alive.append(tensor)
        return value.index

    def _reference(self, item: Any, found: list[int]) -> Any:
        if isinstance(item, torch.Tensor):
            value = self.value_of(item)
            found.append(value)
            return Ref(value)
        if isinstance(item, (list, tuple)):
            return [self._reference(part, found) for part in item]
        return item

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        inputs: list[int] = []
        recorded = [self._reference(arg, inputs) for arg in args]
        recorded_kwargs = {key: self._reference(arg, inputs) for key, arg in kwargs.items()}
        result = func(*args, **kwargs)
        values = self.graph.values
        node = Node(len(self.graph.nodes), func.overloadpacket.__name__, recorded, recorded_kwargs, inputs, [],
                    self._stack[-1][0] if self._stack else "", func)
        self.graph.nodes.append(node)
        for value in inputs:
            self.graph.consumers[value].append(node.index)
        flags = dict(from_input=any(values[i].from_input for i in inputs),
                     from_parameter=any(values[i].from_parameter for i in inputs))
        tensors = [item for item in (result if isinstance(result, (list, tuple)) else [result])
                   if isinstance(item, torch.Tensor)]
        if func._schema.is_mutable:
            node.op = node.op.rstrip("_")
            self._mutated(tensors or [args[0]], node, flags)
        else:
            for tensor in tensors:
                node.outputs.append(self._add(tensor, node.index, **flags))
        return result

    def _mutated(self, tensors: list[torch.Tensor], node: Node, flags: dict[str, bool]) -> None:
        """New values for a tensor written in place, and for every other view of its memory."""
        written = {id(tensor) for tensor in tensors}
        storage = {tensor.untyped_storage().data_ptr() for tensor in tensors}
        for tensor in tensors:
            node.outputs.append(self._add(tensor, node.index, **flags))
        for tensor in {id(t): t for t in self._alive}.values():
            if id(tensor) not in written and tensor.untyped_storage().data_ptr() in storage:
                old = self._ids[id(tensor)]
                if self.graph.values[old].parameter is None:
                    other = Node(len(self.graph.nodes), "written_through_view", [Ref(old), Ref(node.outputs[0])], {},
                                 [old, node.outputs[0]], [], node.module)
                    self.graph.nodes.append(other)
                    for value in other.inputs:
                        self.graph.consumers[value].append(other.index)
                    merged = dict(flags, from_input=flags["from_input"] or self.graph.values[old].from_input)
                    other.outputs.append(self._add(tensor, other.index, **merged))

    def enter(self, module: str) -> None:
        self._stack.append((module, len(self.graph.nodes)))

    def leave(self, args: Any, kwargs: dict[str, Any], output: Any) -> None:
        module, first = self._stack.pop()
        inputs = [self.value_of(arg) for arg in args if isinstance(arg, torch.Tensor)]
        keywords = {key: self.value_of(arg) for key, arg in kwargs.items() if isinstance(arg, torch.Tensor)}
        parts = output if isinstance(output, (list, tuple)) else [output]
        outputs = [self.value_of(part) for part in parts if isinstance(part, torch.Tensor)]
        self.graph.calls.append(Call(module, first, len(self.graph.nodes), inputs, keywords, outputs))


@contextlib.contextmanager
def _named_modules(model: torch.nn.Module, recorder: Recorder) -> Iterator[None]:
    handles = []
    for name, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(lambda _m, _a, name=name: recorder.enter(name)))
        handles.append(module.register_forward_hook(
            lambda _m, args, kwargs, output: recorder.leave(args, kwargs, output), with_kwargs=True))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def replay(graph: Graph, start: int, changed: torch.Tensor, goal: int) -> torch.Tensor | None:
    """The value `goal` if the value `start` were `changed`; None where the operations between cannot run again."""
    needed = {goal}
    between: list[Node] = []
    for node in reversed(graph.nodes):
        if needed.intersection(node.outputs) and start not in node.outputs:
            between.append(node)
            needed.update(node.inputs)
    values = {start: changed}

    def now(item: Any) -> Any:
        if isinstance(item, Ref):
            return values.get(item.value, graph.data(item.value))
        return [now(part) for part in item] if isinstance(item, list) else item

    with torch.no_grad():
        for node in reversed(between):
            if not any(value in values for value in node.inputs):
                continue
            if node.function is None:
                return None
            args = [now(item) for item in node.args]
            if node.function._schema.is_mutable:
                args[0] = args[0].clone()
            result = node.function(*args, **{key: now(item) for key, item in node.kwargs.items()})
            values.update(zip(node.outputs, result if isinstance(result, (list, tuple)) else [result]))
    return values.get(goal)


def record(model: torch.nn.Module, inputs: dict[str, torch.Tensor], **options: Any) -> tuple[Graph, Any, Recorder]:
    """Runs the model once; the graph, the model's output, and the recorder that maps tensors to values."""
    recorder = Recorder(model)
    for tensor in inputs.values():
        recorder.input(tensor)
    with torch.no_grad(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        with _named_modules(model, recorder), recorder:
            output = model(**inputs, **options)
    return recorder.graph, output, recorder

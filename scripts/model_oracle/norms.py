"""Recognises normalizations by comparing what a module computes with every candidate formula."""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from .trace import Call, Graph, Ref
from .weights import SavedTensors, is_norm_class

EPS_NAMES = ("eps", "variance_epsilon", "epsilon", "layer_norm_eps", "norm_eps", "rms_norm_eps")
TOLERANCE = 3e-5
# A BatchNorm that does not train is an affine map.
NO_NORMS = ("Linear", "Embedding", "Conv1D", "Dropout", "BatchNorm1d", "BatchNorm2d")


@dataclass
class Fit:
    kind: str  # layer, rms, l2
    axes: str
    width: int
    groups: int
    eps: float
    gain: str | None  # parameter of the module
    bias: str | None
    gain_offset: float
    value: int  # what is normalized
    gated: bool = False  # the module multiplies the norm's output by another input


def _centred(x: np.ndarray, kind: str) -> np.ndarray:
    return x - x.mean(-1, keepdims=True) if kind == "layer" else x


def _divisor(x: np.ndarray, kind: str, eps: float) -> np.ndarray:
    if kind == "l2":
        return np.sqrt((x**2).sum(-1, keepdims=True) + eps)
    if kind == "l2_max":
        return np.maximum(np.sqrt((x**2).sum(-1, keepdims=True)), eps)
    return np.sqrt((x**2).mean(-1, keepdims=True) + eps)


def _grouped(x: np.ndarray, axes: str, groups: int) -> np.ndarray:
    """With the entries of one row of the norm on the last axis."""
    if axes == "channels":
        return np.moveaxis(x, 1, -1)
    if axes == "group and positions":
        return x.reshape(x.shape[0], groups, -1)
    return x.reshape(*x.shape[:-1], groups, x.shape[-1] // groups)


def _ungrouped(y: np.ndarray, axes: str, shape: tuple[int, ...]) -> np.ndarray:
    return np.moveaxis(y, -1, 1) if axes == "channels" else y.reshape(shape)


def _parameter(module: torch.nn.Module, name: str | None, axes: str, dims: int) -> np.ndarray | None:
    if name is None:
        return None
    values = module.get_parameter(name).detach().double().numpy()
    return values.reshape(-1, *[1] * (dims - 2)) if axes in ("channels", "group and positions") else values


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, to) == tuple(to)
    except ValueError:
        return False


def _attribute_eps(module: torch.nn.Module) -> float | None:
    for name in EPS_NAMES:
        if isinstance(eps := getattr(module, name, None), (int, float)):
            return float(eps)
    return None


def _forms(module: torch.nn.Module, x: np.ndarray) -> list[tuple[str, int]]:
    groups = {1, int(getattr(module, "num_groups", 1) or 1), int(getattr(module, "n_groups", 1) or 1)}
    if size := getattr(module, "group_size", None):
        groups.add(x.shape[-1] // int(size))
    forms = [("last", g) for g in sorted(groups) if x.shape[-1] % g == 0]
    if x.ndim >= 3:
        forms.append(("channels", 1))
        forms += [("group and positions", g) for g in sorted(groups) if x.shape[1] % g == 0]
    return forms


def _candidates(module: torch.nn.Module) -> list[tuple[str | None, str | None]]:
    names = [name for name, _ in module.named_parameters(recurse=False)]
    pairs: list[tuple[str | None, str | None]] = [(None, None)] if not names else []
    pairs += [(gain, None) for gain in names] + list(itertools.permutations(names, 2))
    return sorted(pairs, key=lambda pair: -sum(name is not None for name in pair))


def fit(module: torch.nn.Module, graph: Graph, call: Call) -> Fit | None:
    """The formula that the module's call evaluates, or None. A call that multiplies a norm's output by a gate ends before
    that."""
    if (found := _fit_call(module, graph, call)) is not None or len(call.inputs) != 2 or not is_norm_class(module):
        return found
    for index in reversed(range(call.first_node, call.last_node)):
        inner = dataclasses.replace(call, last_node=index + 1, outputs=graph.nodes[index].outputs)
        if len(inner.outputs) == 1 and (found := _fit_call(module, graph, inner)) is not None:
            call.last_node, call.outputs = inner.last_node, inner.outputs
            found.gated = True
            return found
    return None


def _fit_call(module: torch.nn.Module, graph: Graph, call: Call) -> Fit | None:
    y = graph.data(call.outputs[0]).double().numpy()
    inside = [output for node in graph.nodes[call.first_node : call.last_node] for output in node.outputs]
    for value in dict.fromkeys(call.inputs + list(call.keyword_inputs.values()) + inside):
        tensor = graph.data(value)
        heads = tensor.shape[-2] if tensor.ndim == y.ndim + 1 and tensor.numel() == y.size else 1  # side by side in y
        if value in call.outputs or heads == 1 and tensor.shape != y.shape or not tensor.is_floating_point():
            continue
        if (found := _fit_input(module, tensor.double().numpy().reshape(y.shape), y, heads)) is not None:
            found.value = value
            return found
    return None


def _fit_input(module: torch.nn.Module, x: np.ndarray, y: np.ndarray, heads: int) -> Fit | None:
    if np.array_equal(x, y):  # what has been normalized before
        return None
    eps = _attribute_eps(module)
    forms = _forms(module, x) if heads == 1 else [("last", heads)]
    for (axes, groups), kind in itertools.product(forms, ("layer", "rms", "l2", "l2_max")):
        rows = _centred(_grouped(x, axes, groups), kind)
        normal = _ungrouped(rows / _divisor(rows, kind, 1e-6 if eps is None else eps), axes, x.shape)
        for gain, bias in _candidates(module):
            g, b = _parameter(module, gain, axes, x.ndim), _parameter(module, bias, axes, x.ndim)
            if any(p is not None and not _broadcasts(p.shape, x.shape) for p in (g, b)):
                continue
            for offset in (0.0, 1.0) if g is not None else (0.0,):
                made = normal * (1 if g is None else g + offset) + (0 if b is None else b)
                if np.abs(made - y).max() <= TOLERANCE * np.abs(y).max():
                    width = rows.shape[-1] if axes == "last" else x.shape[1]
                    return Fit(kind.removesuffix("_max"), axes, width * groups if axes == "last" else width, groups,
                               0.0 if eps is None else eps, gain, bias, offset, -1)
    return None


def _inverse_silu(y: float) -> float:
    """The gate that a module with SiLU multiplies by `y`."""
    x = y
    for _ in range(50):
        s = 1.0 / (1.0 + math.exp(-x))
        x -= (x * s - y) / (s + x * s * (1.0 - s))
    return x


def measured_eps(module: torch.nn.Module, found: Fit, x: torch.Tensor, given: torch.Size) -> float:
    """eps from the module's outputs on inputs so small that it matters, of the shape `given`."""
    wanted = found.eps or 1e-6
    random = np.random.default_rng(3)
    small = random.standard_normal(x.shape) * np.sqrt(wanted)
    small = torch.from_numpy(small.astype(np.float32))
    ones = torch.full_like(small, _inverse_silu(1.0))
    with torch.no_grad():
        y = (module(small, ones) if found.gated else module(small.reshape(given))).double().numpy()
    g = _parameter(module, found.gain, found.axes, x.ndim)
    b = _parameter(module, found.bias, found.axes, x.ndim)
    normal = _grouped((y - (0 if b is None else b)) / (1 if g is None else g + found.gain_offset), found.axes,
                      found.groups)
    rows = _centred(_grouped(small.double().numpy(), found.axes, found.groups), found.kind)
    total = (lambda a: (a**2).sum(-1)) if found.kind == "l2" else (lambda a: (a**2).mean(-1))
    # Rows of `normal` have the length |row| / sqrt(size + eps), whatever the rounding of single entries.
    return float(np.median((rows**2).sum(-1) / (normal**2).sum(-1) - total(rows)))


def confirmed_eps(module: torch.nn.Module, found: Fit, x: torch.Tensor, given: torch.Size) -> tuple[float, bool]:
    """The attribute's eps where the measured one agrees, else the measured one rounded; and whether it agrees."""
    measured = measured_eps(module, found, x, given)
    if abs(measured - found.eps) <= 1e-3 * found.eps + 1e-12:
        return found.eps, True
    return (float(f"{measured:.3g}") if measured > 1e-3 * (found.eps or 1e-6) else 0.0), False


@dataclass
class Norm:
    module: str
    fit: Fit
    calls: list[Call]
    eps_agrees: bool
    class_name: str


def find(model: torch.nn.Module, graph: Graph) -> list[Norm]:
    """Every module that is a normalization, in order of first execution; those that share their parameters are one."""
    modules = dict(model.named_modules())
    norms: dict[str, Norm] = {}
    owners: dict[tuple[int, ...], str] = {}
    for call in sorted(graph.calls, key=lambda call: call.first_node):
        module = modules[call.module]
        if list(module.children()) or len(call.outputs) != 1 or not graph.values[call.outputs[0]].from_input:
            continue
        parameters = tuple(id(parameter) for parameter in module.parameters())
        owner = owners.setdefault(parameters, call.module) if parameters else call.module
        if owner in norms:
            norms[owner].calls.append(call)
            continue
        if type(module).__name__ in NO_NORMS or not module_may_be_norm(module):
            continue
        found = fit(module, graph, call)
        if found is None:
            if is_norm_class(module):
                raise ValueError(f"{call.module} ({type(module).__name__}) matches no formula of a norm")
            continue
        x = graph.data(call.outputs[0])
        taken = graph.data(found.value).shape
        eps, agrees = confirmed_eps(module, found, x, taken if len(taken) > x.ndim else x.shape)
        found.eps = eps
        norms[call.module] = Norm(call.module, found, [call], agrees, type(module).__name__)
    return list(norms.values())


def module_may_be_norm(module: torch.nn.Module) -> bool:
    return all(p.ndim <= 2 or max(p.shape) == p.numel() for p in module.parameters())


def describe(norm: Norm, model: torch.nn.Module, saved: SavedTensors) -> dict[str, Any]:
    module = model.get_submodule(norm.module)

    def stored(name: str | None) -> str | None:
        return None if name is None else saved.name_of(module.get_parameter(name).detach().numpy())

    gain_shape = list(module.get_parameter(norm.fit.gain).shape) if norm.fit.gain else None
    return {
        "module": norm.module, "class": norm.class_name, "kind": norm.fit.kind, "width": norm.fit.width,
        "groups": norm.fit.groups, "axes": norm.fit.axes, "eps": norm.fit.eps,
        "eps_is_the_module_attribute": norm.eps_agrees,
        "gain": stored(norm.fit.gain), "gain_offset": norm.fit.gain_offset, "gain_shape": gain_shape,
        "bias": stored(norm.fit.bias), "executions": len(norm.calls), **({"gated": True} if norm.fit.gated else {}),
    }


# Operations that normalize; outside a recognised module they are reported, so that no norm is overlooked.
NORMALIZING = frozenset("native_layer_norm native_group_norm rsqrt linalg_vector_norm var_mean norm _fused_rms_norm "
                        "native_batch_norm _native_batch_norm_legit_no_training cudnn_batch_norm".split())


def overlooked(graph: Graph, norms: list[Norm]) -> list[dict[str, str]]:
    covered = {index for norm in norms for call in norm.calls for index in range(call.first_node, call.last_node)}
    return [{"op": node.op, "module": node.module} for node in graph.nodes
            if node.op in NORMALIZING and node.index not in covered
            and any(graph.values[item.value].from_input for item in node.args if isinstance(item, Ref))]

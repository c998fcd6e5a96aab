"""Norms of a model replaced by ours, by what they compute."""

from __future__ import annotations

import dataclasses
from typing import Any

from torch import nn

from ._check import shown
from ._kinds import kind_facts
from .modules import Computed, norm_computed_by, says_norm

#: Attributes of modules that are not theirs to copy.
_OWN = frozenset({"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "normalized_shape", "eps", "groups",
                  "elementwise_affine", "kind", "gain_offset"})


@dataclasses.dataclass(frozen=True)
class Replaced:
    """What `replace_norms` did."""

    replaced: list[str]  #: names of the modules that are ours now; each alias counts
    left: dict[str, str]  #: names of norms that stay, with the reason

    def __repr__(self) -> str:
        reasons = "; ".join(f"{name}: {why}" for name, why in self.left.items())
        return f"<normscope.torch.Replaced {len(self.replaced)} norms" + (f", left {reasons}>" if reasons else ">")


def replace_norms(module: nn.Module) -> Replaced:
    """Replaces the LayerNorms and RMSNorms inside `module` by ours, by what they compute: torch's, those of transformers
    (with gains stored minus 1 too) and others whose class name contains LayerNorm or RMSNorm. Ours take over the
    parameters, hooks, `training` and attributes of each, at every place that it has in the model.

    Errors   TypeError for what is no module; norms that compute something else stay, with the reason
    """
    if not isinstance(module, nn.Module):
        raise TypeError(f"replace_norms: {shown(module)} is no torch.nn.Module")
    done: dict[int, Any] = {}  # by the module that was there: ours, or why it stays
    replaced, left = [], {}
    for path, parent in list(module.named_modules(remove_duplicate=False)):
        for name, child in list(parent._modules.items()):
            full = f"{path}.{name}" if path else name
            if child is None or not says_norm(child) or isinstance(child, _ours()):
                continue
            if id(child) not in done:
                done[id(child)] = child, _made_of(child)
            _, ours = done[id(child)]
            if isinstance(ours, str):
                left[full] = ours
            else:
                parent._modules[name] = ours
                replaced.append(full)
    if says_norm(module) and not isinstance(module, _ours()):
        left[""] = "it is the given module itself, expected one around it"
    return Replaced(replaced, left)


def _ours() -> Any:
    from .torch import _Norm

    return _Norm


def _made_of(child: Any) -> Any:
    """Ours in the place of `child`; or why it stays."""
    from .torch import LayerNorm, RMSNorm

    if child._modules:
        return f"it has modules inside: {', '.join(child._modules)}"
    stored = [*child.parameters(), *child.buffers()]
    elsewhere = next((tensor for tensor in stored if not tensor.is_cpu), None)
    if elsewhere is not None:
        return f"it is on {elsewhere.device}, expected the CPU"
    found = norm_computed_by(child)
    if isinstance(found, str):
        return found
    others = {name for name, _ in (*child.named_parameters(), *child.named_buffers())} - _names_of(child, found)
    if others:
        return f"it has parameters besides gain and bias: {', '.join(sorted(others))}"
    shape = tuple(getattr(child, "normalized_shape", (found.norm.width,)))
    if kind_facts("replace_norms", found.norm.kind).centers:
        ours = LayerNorm(shape, eps=found.norm.eps, elementwise_affine=False)
    elif found.bias is None:
        ours = RMSNorm(shape, eps=found.norm.eps, elementwise_affine=False)
        if getattr(child, "eps", 0.0) is None:
            ours.eps = None  # the machine's, whatever the type
    else:
        return "it is an RMSNorm with a bias"
    ours.elementwise_affine, ours.gain_offset = found.gain is not None, found.offset
    # Under the names that they have, so that state dicts stay.
    for name, parameter in child._parameters.items():
        if name not in ("weight", "bias") and parameter is not None:
            return f"its parameter is called {name}, expected weight and bias"
    ours._parameters.update(child._parameters)
    vars(ours).update({name: value for name, value in vars(child).items() if name not in _OWN})
    return ours


def _names_of(child: Any, found: Computed) -> set[str]:
    known = {id(found.gain), id(found.bias)}
    return {name for name, tensor in child.named_parameters() if id(tensor) in known}

"""Live torch modules as checkpoints."""

from __future__ import annotations

import collections
import copy
import json
import math
import pathlib
import tempfile
import warnings
import weakref
from typing import Any, Callable, Iterator

from ._check import reason
from .modules import dtype_of, gain_of, offloaded, owners_of, says_norm, stated_eps

#: What torch's wrappers of modules add to the names of parameters.
_OF_WRAPPERS = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})


def snapshot_of(module: Any, open_path: Callable[[Any, str], Any]) -> Any:
    """`open_path` of a checkpoint of `module` in a temporary folder, which exists as long as the result.

    Errors   TypeError unless it is a torch module, ValueError for one whose parameters cannot be written
    """
    if not (hasattr(module, "state_dict") and hasattr(module, "named_modules")):
        raise TypeError(f"open: {type(module).__name__} is neither a path nor a torch.nn.Module")
    model = model_inside(module)
    name = type(model).__name__ + ("" if model is module else f" in {type(module).__name__}")
    folder = tempfile.TemporaryDirectory(prefix="normscope-")
    try:
        write_checkpoint(model, pathlib.Path(folder.name))
        opened = open_path(folder.name, name)
        if correct_eps(model, opened.inspect().norms, pathlib.Path(folder.name)):
            opened = open_path(folder.name, name)
    except BaseException:
        folder.cleanup()
        raise
    weakref.finalize(opened, folder.cleanup)
    return opened


def model_inside(module: Any) -> Any:
    """The model with a configuration that `module` wraps, or `module` itself; adapters are merged in a copy.

    Warns    of parameters of the wrapper outside the model
    Errors   ValueError for several such models, and for adapters that cannot be merged
    """
    compiled = getattr(module, "_modules", {}).get("_orig_mod")
    if compiled is not None:
        return model_inside(compiled)
    if hasattr(module, "peft_config") or getattr(module, "_hf_peft_config_loaded", False):
        return _merged(module)
    if _is_configured(module):
        return module
    found = list({id(inner): (name, inner) for name, inner in _outermost_configured(module)}.values())
    models = [entry for entry in found if _is_model(entry[1])]
    if len(models) > 1:
        raise ValueError(f"open: {type(module).__name__} contains {len(models)} models, expected one of them: "
                         f"{', '.join(name for name, _ in models)}")
    models = models or [entry for entry in found if 2 * _size(entry[1]) > _size(module)]
    if len(models) != 1:
        return module
    ((_, inner),) = models
    inside = {id(parameter) for parameter in inner.parameters()}
    outside = [name for name, parameter in module.named_parameters() if id(parameter) not in inside]
    if outside:
        warnings.warn(f"open: {type(inner).__name__} inside {type(module).__name__} is opened, without {len(outside)} "
                      f"parameters outside it: {', '.join(outside[:3])}{', …' if len(outside) > 3 else ''}", stacklevel=4)
    return model_inside(inner)


def _outermost_configured(module: Any) -> Iterator[tuple[str, Any]]:
    for name, child in module.named_children():
        if any(True for _ in child.parameters()):
            if _is_configured(child):
                yield name, child
            else:
                yield from ((f"{name}.{below}", inner) for below, inner in _outermost_configured(child))


def _is_model(module: Any) -> bool:
    """Of transformers or TransformerLens."""
    return hasattr(module, "tl_parameters") or hasattr(module, "save_pretrained")


def _is_configured(module: Any) -> bool:
    return _is_model(module) or bool(configuration_of(module))


def _size(module: Any) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def _merged(model: Any) -> Any:
    """The model that one with adapters (PEFT) computes."""
    if not hasattr(model, "merge_and_unload"):
        raise ValueError(f"open: {type(model).__name__} has adapters, expected a model into which they are merged")
    try:
        merged = copy.deepcopy(model).merge_and_unload()
    except Exception as error:
        raise ValueError(f"open: the adapters of {type(model).__name__} cannot be merged: {reason(error)}") from None
    return model_inside(merged)


def write_checkpoint(module: Any, folder: pathlib.Path) -> None:
    """Writes the parameters and the configuration of `module` into `folder`.

    Errors   ValueError
    """
    try:
        if hasattr(module, "tl_parameters"):
            # A bridge of TransformerLens: its own names for the parameters of the model inside, whose configuration is
            # about other names.
            save_tensors(module.tl_parameters(), folder)
        elif hasattr(module, "save_pretrained"):
            save_pretrained(module, folder)
        else:
            save_tensors(_values_of(module), folder)
            config = configuration_of(module) or attributes_of_layers(module)
            if config:
                (folder / "config.json").write_text(json.dumps(config))
    except (KeyboardInterrupt, MemoryError, OSError):
        raise
    except Exception as error:
        raise ValueError(f"open: {type(module).__name__} cannot be written: {reason(error)}") from None


def correct_eps(module: Any, norms: list[Any], folder: pathlib.Path) -> bool:
    """Writes the eps that the norms of `module` have into its checkpoint, where they are not those that were found in
    it; returns whether there was one."""
    stated, unstated = _eps_of_norms(module)
    found = {norm.gain: norm for norm in norms}
    wrong = {tensor: eps for tensor, eps in stated.items()
             if tensor in found and (found[tensor].eps != eps or found[tensor].eps_source == "assumed")}
    if not wrong:
        return False
    file = folder / "config.json"
    config = json.loads(file.read_text()) if file.exists() else {}
    config["normscope_eps"] = wrong
    if not unstated and not any("eps" in key for key in config if key != "normscope_eps"):
        config["norm_eps"] = collections.Counter(wrong.values()).most_common(1)[0][0]
    file.write_text(json.dumps(config))
    return True


def _eps_of_norms(module: Any) -> tuple[dict[str, float], int]:
    """The eps of modules with a gain, by its name, and how many norms state none."""
    owners = owners_of(module)
    stated: dict[str, float] = {}
    unstated = 0
    for name, norm in module.named_modules():
        gain = gain_of(norm)
        if gain is None:
            continue
        eps = stated_eps(norm, dtype_of(gain[1]))
        if eps is None:
            unstated += says_norm(norm)
            continue
        plain = _plain_name(f"{name}.{gain[0]}" if name else gain[0])
        stated[owners.get(gain[1].data_ptr(), plain) if owners else plain] = eps
    return stated, unstated


def _plain_name(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in _OF_WRAPPERS)


def _values_of(module: Any) -> dict[str, Any]:
    """The tensors of its state, those that accelerate offloads from where they are kept."""
    values = {}
    for name, tensor in module.state_dict().items():
        if getattr(tensor, "is_meta", False):
            owner, _, leaf = name.rpartition(".")
            tensor = offloaded(module.get_submodule(owner), leaf)
            if tensor is None:
                raise ValueError(f"{name} has no values (meta device: offloaded, or not loaded)")
        values[_plain_name(name)] = tensor
    return values


def save_tensors(named: dict[str, Any], folder: pathlib.Path) -> None:
    """Writes tensors by name: as safetensors, which `rewrite` takes, where that package is installed."""
    import torch

    state = {name: _in_memory(name, tensor) for name, tensor in named.items() if isinstance(tensor, torch.Tensor)}
    try:
        from safetensors.torch import save_file
    except ImportError:
        torch.save(state, folder / "pytorch_model.bin")
        return
    # Tensors that share memory are refused.
    save_file({name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in state.items()},
              folder / "model.safetensors")


def _in_memory(name: str, tensor: Any) -> Any:
    """The whole tensor on the CPU.

    Errors   ValueError for one that is not stored as its entries
    """
    import torch

    if hasattr(tensor, "full_tensor"):  # a DTensor
        tensor = tensor.full_tensor()
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
        raise ValueError(f"{name} is a {type(tensor).__name__}, expected a tensor whose entries are in memory")
    return tensor.detach().cpu().resolve_neg()


def save_pretrained(module: Any, folder: pathlib.Path) -> None:
    """Writes a model of transformers, whose published names may not be the module's, without its progress bar."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    state = module.state_dict()
    offloads = any(getattr(tensor, "is_meta", False) for tensor in state.values())
    try:
        module.save_pretrained(folder, **({"state_dict": _values_of(module)} if offloads else {}))
    finally:
        if shown:
            logging.enable_progress_bar()


def configuration_of(module: Any) -> dict[str, Any]:
    """The plain values of `module.config` or `module.cfg`."""
    for name in ("config", "cfg"):
        config = getattr(module, name, None)
        if config is None:
            continue
        plain = config if isinstance(config, dict) else vars(config)
        fields = config.to_dict() if hasattr(config, "to_dict") else plain
        return {key: value for key, value in fields.items() if isinstance(key, str) and _is_plain(value)}
    return {}


def attributes_of_layers(module: Any) -> dict[str, Any]:
    """What the layers of torch's transformers keep as attributes, where all layers agree."""
    layers = [layer for layer in module.modules() if hasattr(layer, "norm_first") and hasattr(layer, "self_attn")]
    found = {"norm_first": {layer.norm_first for layer in layers},
             "nhead": {getattr(layer.self_attn, "num_heads", None) for layer in layers}}
    return {name: values.pop() for name, values in found.items() if len(values) == 1 and None not in values}


def _is_plain(value: Any) -> bool:
    """Whether JSON has such values."""
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_plain(inner) for key, inner in value.items())
    return value is None or isinstance(value, (bool, int, str)) or isinstance(value, float) and math.isfinite(value)

"""Live torch modules as checkpoints."""

from __future__ import annotations

import collections
import contextlib
import copy
import json
import math
import os
import pathlib
import sys
import tempfile
import warnings
import weakref
from typing import Any, Callable, Iterator

from ._check import reason
from .modules import NO_NORM, dtype_of, gain_of, norm_computed_by, offloaded, owners_of, says_norm, stated_eps

#: Where files are in memory.
_MEMORY = "/dev/shm"
#: What torch's wrappers of modules add to the names of parameters.
_OF_WRAPPERS = frozenset({"_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module"})


def snapshot_of(module: Any, open_path: Callable[[Any, str], Any]) -> Any:
    """`open_path` of a checkpoint of `module` in a temporary folder, which exists as long as the result: in memory where
    there is room, or else the result's name says where.

    Errors   TypeError unless it is a torch module, ValueError for one whose parameters cannot be written
    """
    if not (hasattr(module, "state_dict") and hasattr(module, "named_modules")):
        raise TypeError(f"open: {type(module).__name__} is neither a path nor a torch.nn.Module")
    with _unsharded(module):
        model = model_inside(module)
        name = f"snapshot of {type(model).__name__}" + ("" if model is module else f" in {type(module).__name__}")
        where = _in_memory_folder(module)
        if where is not None:
            with contextlib.suppress(Exception):  # there may be less room than it says
                return _snapshot_in(where, model, name, open_path)
        return _snapshot_in(None, model, f"{name}, in {tempfile.gettempdir()}", open_path)


def _snapshot_in(where: str | None, model: Any, name: str, open_path: Callable[[Any, str], Any]) -> Any:
    folder = tempfile.TemporaryDirectory(prefix="normscope-", dir=where)
    try:
        write_checkpoint(model, pathlib.Path(folder.name))
        opened = open_path(folder.name, name)
        if correct_norms(model, opened.inspect().norms, pathlib.Path(folder.name)):
            opened = open_path(folder.name, name)
    except BaseException:
        folder.cleanup()
        raise
    weakref.finalize(opened, folder.cleanup)
    return opened


def _in_memory_folder(module: Any) -> str | None:
    """Linux's folder of files in memory, if a copy of the module leaves half of what is free there."""
    try:
        wanted = _bytes_of(module)
        found = os.statvfs(_MEMORY)
        with open("/proc/meminfo", encoding="ascii") as file:
            available = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, AttributeError):
        return None
    return _MEMORY if os.access(_MEMORY, os.W_OK) and 2 * wanted < min(found.f_bavail * found.f_frsize, available) else None


def model_inside(module: Any) -> Any:
    """The model with a configuration that `module` wraps, or `module` itself; adapters are merged in a copy.

    Warns    of parameters of the wrapper outside the model
    Errors   ValueError for several such models, and for adapters that cannot be merged
    """
    parts = getattr(module, "_modules", {})
    inside_wrapper = parts.get("_orig_mod", parts.get("_fsdp_wrapped_module"))
    if inside_wrapper is not None:
        return model_inside(inside_wrapper)
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


def _bytes_of(module: Any) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in (*module.parameters(), *module.buffers())
               if hasattr(tensor, "element_size"))


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


def correct_norms(module: Any, norms: list[Any], folder: pathlib.Path) -> bool:
    """Writes what the norms of `module` compute into its checkpoint, where that is not what was found in it; returns
    whether there was one.

    Errors   ValueError for a module that was taken for a norm and computes none
    """
    found = {norm.gain: norm for norm in norms}
    stated: dict[str, dict[str, Any]] = {}
    unstated = 0
    for tensor, name, part in _norms_of(module):
        computed = norm_computed_by(part) if tensor in found else "it is no norm"
        if not isinstance(computed, str):
            stated[tensor] = {"eps": computed.norm.eps, "kind": computed.norm.kind, "gain_offset": computed.offset}
            continue
        if tensor in found and computed.startswith(NO_NORM):
            raise ValueError(f"open: {name} ({type(part).__name__}) is no norm that is known: {computed}")
        eps = stated_eps(part, dtype_of(gain_of(part)[1]))
        if eps is not None:
            stated[tensor] = {"eps": eps}
        else:
            unstated += says_norm(part)
    wrong = {tensor: facts for tensor, facts in stated.items() if tensor in found and (
        found[tensor].eps_source == "assumed" or any(getattr(found[tensor], name) != value for name, value in facts.items()))}
    if not wrong:
        return False
    file = folder / "config.json"
    config = json.loads(file.read_text()) if file.exists() else {}
    config["normscope_norms"] = wrong
    if not unstated and not any("eps" in key for key in config):
        config["norm_eps"] = collections.Counter(facts["eps"] for facts in wrong.values()).most_common(1)[0][0]
    file.write_text(json.dumps(config))
    return True


def _norms_of(module: Any) -> Iterator[tuple[str, str, Any]]:
    """Modules with a gain: the name of that tensor, their own, and they."""
    owners = owners_of(module)
    for name, part in module.named_modules():
        gain = gain_of(part)
        if gain is None:
            continue
        plain = _plain_name(f"{name}.{gain[0]}" if name else gain[0])
        yield owners.get(gain[1].data_ptr(), plain) if owners else plain, name, part


def _fully_sharded() -> Any:
    """The class of torch's wrapper whose parameters are flat, where it is in use."""
    return getattr(sys.modules.get("torch.distributed.fsdp"), "FullyShardedDataParallel", ())


def _is_sharded(module: Any) -> bool:
    return any(isinstance(part, _fully_sharded()) for part in module.modules()) or any(
        hasattr(parameter, "full_tensor") for parameter in module.parameters())


@contextlib.contextmanager
def _unsharded(module: Any) -> Iterator[None]:
    """While each parameter has all of its entries."""
    wrapper = _fully_sharded()
    if wrapper and any(isinstance(part, wrapper) for part in module.modules()):
        with wrapper.summon_full_params(module, writeback=False):
            yield
    else:
        yield


def _computed_parameters(part: Any) -> list[str]:
    """Names of the parameters that parametrizations compute."""
    computed = getattr(part, "_modules", {}).get("parametrizations")
    return [] if computed is None else list(computed)


def _plain_name(name: str) -> str:
    return ".".join(part for part in name.split(".") if part not in _OF_WRAPPERS)


def _values_of(module: Any) -> dict[str, Any]:
    """The tensors of its state, those that accelerate offloads from where they are kept."""
    values = {}
    sharded = any(isinstance(part, _fully_sharded()) for part in module.modules())
    state = {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers())} if sharded else \
        {name: value for name, value in module.state_dict().items() if ".parametrizations." not in f".{name}"}
    for name, part in module.named_modules():
        state.update({f"{name}.{own}" if name else own: getattr(part, own) for own in _computed_parameters(part)})
    for name, tensor in state.items():
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

    packed = [name for name, tensor in module.state_dict().items() if not hasattr(tensor, "detach")]
    if packed:
        raise ValueError(f"{packed[0]} is no tensor: the module is quantized")
    elsewhere = _is_sharded(module) or any(getattr(tensor, "is_meta", False) for tensor in module.state_dict().values())
    apart = elsewhere or any(_computed_parameters(part) for part in module.modules())
    state = {name: _in_memory(name, tensor) for name, tensor in _values_of(module).items()} if apart else None
    bar = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        module.save_pretrained(folder, **({} if state is None else {"state_dict": state}))
    finally:
        if bar:
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

"""Live torch modules as checkpoints."""

from __future__ import annotations

import json
import pathlib
import tempfile
import weakref
from typing import Any, Callable


def snapshot_of(module: Any, open_path: Callable[[Any, str], Any]) -> Any:
    """`open_path` of a checkpoint of `module` in a temporary folder, which exists as long as the result.

    Errors   TypeError unless it is a torch module
    """
    if not (hasattr(module, "state_dict") and hasattr(module, "named_modules")):
        raise TypeError(f"open: {type(module).__name__} is neither a path nor a torch.nn.Module")
    folder = tempfile.TemporaryDirectory(prefix="normscope-")
    try:
        write_checkpoint(module, pathlib.Path(folder.name))
        opened = open_path(folder.name, type(module).__name__)
    except BaseException:
        folder.cleanup()
        raise
    weakref.finalize(opened, folder.cleanup)
    return opened


def write_checkpoint(module: Any, folder: pathlib.Path) -> None:
    """Writes the parameters and the configuration of `module` into `folder`."""
    if hasattr(module, "tl_parameters"):
        # A bridge of TransformerLens: its own names for the parameters of the model inside, whose configuration is
        # about other names.
        save_tensors(module.tl_parameters(), folder)
        return
    if hasattr(module, "save_pretrained"):
        save_pretrained(module, folder)
        return
    save_tensors(module.state_dict(), folder)
    config = configuration_of(module)
    if config:
        (folder / "config.json").write_text(json.dumps(config))


def save_tensors(named: dict[str, Any], folder: pathlib.Path) -> None:
    """Writes tensors by name: as safetensors, which `rewrite` takes, where that package is installed."""
    import torch

    state = {name: tensor.detach().cpu() for name, tensor in named.items() if isinstance(tensor, torch.Tensor)}
    try:
        from safetensors.torch import save_file
    except ImportError:
        torch.save(state, folder / "pytorch_model.bin")
        return
    # Tensors that share memory are refused.
    save_file({name: tensor.clone(memory_format=torch.contiguous_format) for name, tensor in state.items()},
              folder / "model.safetensors")


def save_pretrained(module: Any, folder: pathlib.Path) -> None:
    """Writes a model of transformers, whose published names may not be the module's, without its progress bar."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        module.save_pretrained(folder)
    finally:
        if shown:
            logging.enable_progress_bar()


def configuration_of(module: Any) -> dict[str, Any]:
    """The plain values of `module.config` or `module.cfg`, and those that torch's own modules keep as attributes."""
    for name in ("config", "cfg"):
        config = getattr(module, name, None)
        if config is None:
            continue
        plain = config if isinstance(config, dict) else vars(config)
        fields = config.to_dict() if hasattr(config, "to_dict") else plain
        return {key: value for key, value in fields.items() if isinstance(value, (bool, int, float, str))}
    return {}

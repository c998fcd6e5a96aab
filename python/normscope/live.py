"""Live torch modules as checkpoints."""

from __future__ import annotations

import json
import pathlib
import tempfile
import weakref
from typing import Any, Callable


def snapshot_of(module: Any, open_path: Callable[[Any, str], Any]) -> Any:
    """What `open_path` makes of a checkpoint of `module`, kept in a temporary folder as long as that lives.

    Errors   TypeError for what is no torch module
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
    if hasattr(module, "save_pretrained"):
        save_pretrained(module, folder)
        return
    import torch

    state = {name: tensor.detach().cpu() for name, tensor in module.state_dict().items()
             if isinstance(tensor, torch.Tensor)}
    torch.save(state, folder / "pytorch_model.bin")
    config = configuration_of(module)
    if config:
        (folder / "config.json").write_text(json.dumps(config))


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

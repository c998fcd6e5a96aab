"""Random weights that expose mistakes, and the saved tensor that holds a given matrix or vector, found by its values."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file

NORM_CLASS = re.compile("(?<!no)norm|^RMS", re.IGNORECASE)  # MobileBERT's NoNorm multiplies and adds


def is_norm_class(module: torch.nn.Module) -> bool:
    return bool(NORM_CLASS.search(type(module).__name__)) and not list(module.children())


def _gain(count: int, random: np.random.Generator) -> np.ndarray:
    """Magnitudes from 0.3 to 2, one in six negative."""
    size = np.exp(random.uniform(np.log(0.3), np.log(2.0), count))
    return size * np.where(random.random(count) < 1 / 6, -1.0, 1.0)


def _values(name: str, old: np.ndarray, in_norm: bool, random: np.random.Generator) -> np.ndarray:
    last = name.rsplit(".", 1)[-1]
    if in_norm and last not in ("bias", "beta"):
        # A gain that starts at 0 is stored without its offset of 1.
        offset = 1.0 if old.size and np.all(old == 0) else 0.0
        return _gain(old.size, random).reshape(old.shape) - offset
    noise = np.asarray(random.standard_normal(old.shape))
    if last.startswith("bias") or last.endswith("bias") or last == "beta":
        return 0.3 * noise
    if old.ndim <= 1 or max(old.shape) == old.size:
        return old + 0.3 * noise
    if re.search("embed|wte|wpe|shared|pos_emb|cls_token|relative_attention_bias|token", name):
        return 0.7 * noise
    fan_in = old.size // old.shape[0] if old.ndim == 2 or old.ndim == 4 else old.shape[-1]
    return 1.3 * noise / np.sqrt(fan_in)


def is_learned_buffer(name: str) -> bool:
    """No parameters of the module, yet values of the checkpoint: biases of DeepSeek's routers and BART's logits, what
    Gemma 4 multiplies the stream by."""
    return name.endswith(("e_score_correction_bias", "final_logits_bias", "layer_scalar"))


def randomize(model: torch.nn.Module, seed: int = 16) -> None:
    """Overwrites every parameter, and the buffers that a checkpoint holds, by values that depend on its name only."""
    norms = {name for name, module in model.named_modules() if is_norm_class(module)}
    # What save_pretrained leaves out is a fixed table (sinusoids of positions).
    left_out = [re.compile(pattern) for pattern in getattr(model, "_keys_to_ignore_on_save", None) or []]
    stored = {name for name in model.state_dict() if not any(pattern.search(name) for pattern in left_out)}
    named = [(n, p) for n, p in model.named_parameters() if n in stored]
    named += [(n, b) for n, b in model.named_buffers() if n in stored and is_learned_buffer(n)]
    with torch.no_grad():
        for name, tensor in named:
            random = np.random.default_rng([seed, zlib.crc32(name.encode())])
            values = _values(name, tensor.detach().numpy(), name.rpartition(".")[0] in norms, random)
            tensor.copy_(torch.from_numpy(np.asarray(values, dtype=np.float32)))


@dataclass(frozen=True)
class Place:
    """Output feature `index` of the saved matrix `tensor`."""

    tensor: str
    layout: str  # "out_in": a row; "in_out": a column
    index: int
    slice: int | None = None  # on the first axis of a stack of matrices


class SavedTensors:
    """The tensors of a model.safetensors, searched by value: names in memory need not be those in the file."""

    def __init__(self, file: Path):
        self.tensors: dict[str, np.ndarray] = load_file(file)
        self._rows: dict[bytes, Place] = {}
        self._columns: dict[bytes, Place] = {}
        for name, tensor in self.tensors.items():
            if tensor.dtype != np.float32 or tensor.ndim < 2:
                continue
            stacks: list[tuple[int | None, np.ndarray]] = [(None, tensor.reshape(tensor.shape[0], -1))]
            if tensor.ndim == 3:
                stacks += [(i, tensor[i]) for i in range(tensor.shape[0])]
                stacks.append((None, tensor.reshape(-1, tensor.shape[-1])))  # the inputs of all heads
                for i, row in enumerate(tensor.transpose(0, 2, 1).reshape(tensor.shape[0], -1)):  # as einsum may read it
                    if row.any():
                        self._rows.setdefault(row.tobytes(), Place(name, "out_in", i))
            for index, matrix in stacks:
                for i, row in enumerate(matrix):
                    if row.any():
                        self._rows.setdefault(row.tobytes(), Place(name, "out_in", i, index))
                for i, column in enumerate(matrix.T):
                    if column.any():
                        self._columns.setdefault(np.ascontiguousarray(column).tobytes(),
                                                 Place(name, "in_out", i, index))

    def matrix(self, used: np.ndarray) -> list[dict[str, Any]]:
        """The saved tensors whose output features are the columns of `used` (y = x used), as runs of features. A matrix
        that the model divides by a power of two before it runs (RWKV) is found too, with that factor in `times`."""
        for scale in (1.0, 0.5, 0.25, 2.0, 4.0):
            if found := self._stored_matrix(used / np.float32(scale)):
                return [dict(entry, times=scale) for entry in found] if scale != 1.0 else found
        return [{"weight": None, "in": int(used.shape[0]), "out": int(used.shape[1])}]

    def _stored_matrix(self, used: np.ndarray) -> list[dict[str, Any]]:
        columns = [np.ascontiguousarray(column).tobytes() for column in used.T.astype(np.float32)]
        for table in (self._rows, self._columns):
            places = [table.get(column) for column in columns]
            if any(places) and all(place or not used[:, j].any() for j, place in enumerate(places)):
                return self._runs(places, used.shape[0])
        return []

    def _runs(self, places: list[Place | None], width: int) -> list[dict[str, Any]]:
        """Groups output features by tensor; consecutive ones are a first and a count."""
        groups: dict[tuple[str, str, int | None], list[int]] = {}
        for place in places:
            if place is not None:
                groups.setdefault((place.tensor, place.layout, place.slice), []).append(place.index)
        runs = []
        for (tensor, layout, index), features in groups.items():
            shape = self.tensors[tensor].shape
            if index is not None:
                shape = shape[1:]
            run: dict[str, Any] = {"weight": tensor, "layout": layout, "in": width}
            if index is not None:
                run["slice"] = index
            run["stored_out"] = int(shape[0] if layout == "out_in" else np.prod(shape) // width)
            # A padding row of zeros has no place of its own, so its run may have a gap.
            first, last = min(features), max(features)
            dense = last - first + 1
            if features == sorted(features) and (dense == len(features) or dense == len(places)):
                run |= {"first_out": first, "out": dense}
                if len(places) == run["stored_out"] and len(groups) == 1:
                    run |= {"first_out": 0, "out": len(places)}
            else:
                run |= {"out": len(features), "out_indices": features}
            runs.append(run)
        return runs

    def vector(self, used: np.ndarray) -> dict[str, Any] | None:
        """The saved tensor that holds these consecutive numbers."""
        flat = np.ascontiguousarray(used, dtype=np.float32).ravel()
        if not flat.any():
            return None
        for name, tensor in self.tensors.items():
            if tensor.dtype != np.float32 or tensor.size < flat.size:
                continue
            stored = tensor.ravel()
            for first in np.flatnonzero(stored[: stored.size - flat.size + 1] == flat[0]):
                if np.array_equal(stored[first : first + flat.size], flat):
                    return {"tensor": name, "first": int(first), "count": int(flat.size)}
        return None

    def name_of(self, used: np.ndarray) -> str | None:
        """The saved tensor that is exactly this array, perhaps in another shape."""
        found = self.vector(used)
        return found["tensor"] if found and found["count"] == self.tensors[found["tensor"]].size else None

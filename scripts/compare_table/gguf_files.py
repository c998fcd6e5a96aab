"""The fixture's GGUF file in other types, and of a wider model.

tests/models/gguf holds what llama.cpp's converter makes of a fixture, in float32. From both, `rules` finds what the converter
does to each tensor, and `converted` does the same to a checkpoint of the same names and other widths. Blocks of Q8_0 have 32
numbers of a row, so a quantized file needs rows that the fixtures are too narrow for.
"""

from __future__ import annotations

import copy
import struct
from pathlib import Path
from typing import Any, Callable, Iterator

import numpy as np

from checkpoints import ROOT, Checkpoint

FILES = ROOT / "tests/models/gguf"
F32, F16, Q8_0 = 0, 1, 8
#: What llama.cpp takes for granted, where a fixture's configuration says something else: it divides scores by the root of the
#: head's width, knows Gemma 3's windows by a fixed pattern, and gives others none.
STATED: dict[str, dict[str, Any]] = {
    "gemma2": {"query_pre_attn_scalar": 6}, "gemma3": {"query_pre_attn_scalar": 6, "layer_types": ["sliding_attention"] * 2},
    "mixtral": {"sliding_window": None}, "qwen2": {"use_sliding_window": False, "sliding_window": None, "layer_types": ["full_attention"] * 2},
    "starcoder2": {"sliding_window": None}, "mistral": {"sliding_window": None},
    # llama.cpp's converter does not write these fields, and its reader takes these values.
    "olmoe": {"rms_norm_eps": 1e-5, "clip_qkv": None}, "mpt": {"layer_norm_epsilon": 1e-5}, "smollm3": {"no_rope_layers": [1, 1]}}
#: Models that change in llama.cpp's files: it does not scale the logits of a tied T5.
CHANGED = ("t5",)
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY = 8, 9
WIDER = 16
#: Fields of configurations and of GGUF files that grow with the width.
WIDTHS = ("hidden_size", "n_embd", "d_model", "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "head_dim", "rotary_dim",
          "moe_intermediate_size", "shared_expert_intermediate_size")
LENGTHS = (".embedding_length", ".feed_forward_length", ".key_length", ".value_length", ".rope.dimension_count",
           ".expert_feed_forward_length", ".expert_shared_feed_forward_length")


class Reader:
    def __init__(self, data: bytes):
        self.data, self.at = data, 0

    def scalar(self, letter: str) -> Any:
        (value,) = struct.unpack_from("<" + letter, self.data, self.at)
        self.at += struct.calcsize(letter)
        return value

    def string(self) -> str:
        count = self.scalar("Q")
        self.at += count
        return self.data[self.at - count:self.at].decode()

    def value(self, kind: int) -> Any:
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            return self.scalar(SCALARS[kind])
        of, count = self.scalar("I"), self.scalar("Q")
        return of, [self.value(of) for _ in range(count)]


def read(path: Path) -> tuple[dict[str, tuple[int, Any]], dict[str, np.ndarray]]:
    """Metadata, {key: (type, value)}, and tensors of float32."""
    reader = Reader(path.read_bytes())
    assert reader.scalar("I") == 0x46554747
    reader.scalar("I")
    tensors, fields = reader.scalar("Q"), reader.scalar("Q")
    metadata = {}
    for _ in range(fields):
        key, kind = reader.string(), reader.scalar("I")
        metadata[key] = (kind, reader.value(kind))
    entries = []
    for _ in range(tensors):
        name = reader.string()
        shape = [reader.scalar("Q") for _ in range(reader.scalar("I"))][::-1]
        entries.append((name, shape, reader.scalar("I"), reader.scalar("Q")))
    begin, result = -(-reader.at // 32) * 32, {}
    for name, shape, kind, at in entries:
        if kind != F32:
            raise ValueError(f"{path}: {name} has type {kind}, expected float32")
        result[name] = np.frombuffer(reader.data, np.float32, int(np.prod(shape)), begin + at).reshape(shape)
    return metadata, result


def packed(kind: int, value: Any) -> bytes:
    if kind == STRING:
        return struct.pack("<Q", len(value.encode())) + value.encode()
    if kind != ARRAY:
        return struct.pack("<" + SCALARS[kind], value)
    of, values = value
    return struct.pack("<IQ", of, len(values)) + b"".join(packed(of, each) for each in values)


def quantized(array: np.ndarray) -> bytes:
    """Blocks of Q8_0: a float16 scale and 32 numbers of 8 bits."""
    blocks = array.reshape(-1, 32).astype(np.float32)
    scales = np.abs(blocks).max(1, keepdims=True) / np.float32(127)
    codes = np.round(blocks / np.where(scales == 0, 1, scales)).astype(np.int8)
    return np.concatenate([scales.astype(np.float16).view(np.uint8), codes.view(np.uint8)], axis=1).tobytes()


def write(path: Path, metadata: dict[str, tuple[int, Any]], tensors: dict[str, np.ndarray], kind: int) -> Path:
    """Matrices in `kind`, vectors in float32, as llama.cpp writes them."""
    head = struct.pack("<IIQQ", 0x46554747, 3, len(tensors), len(metadata))
    head += b"".join(packed(STRING, key) + struct.pack("<I", of) + packed(of, value) for key, (of, value) in metadata.items())
    data = b""
    for name, array in tensors.items():
        stored = F32 if array.ndim < 2 else kind
        head += packed(STRING, name) + struct.pack("<I", array.ndim) + b"".join(struct.pack("<Q", n) for n in array.shape[::-1])
        head += struct.pack("<IQ", stored, len(data))
        data += quantized(array) if stored == Q8_0 else array.astype(np.float16 if stored == F16 else np.float32).tobytes()
        data += b"\0" * (-len(data) % 32)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + data)
    return path


def heads_of(model: Checkpoint) -> tuple[int, int]:
    attention = model.attentions()[0]
    return len(attention.queries), len(attention.keys)


def interleaved(array: np.ndarray, heads: int) -> np.ndarray:
    return array.reshape(heads, 2, -1, *array.shape[1:]).swapaxes(1, 2).reshape(array.shape)


def parts_first(array: np.ndarray, heads: int) -> np.ndarray:
    """Fused by head (queries, keys, values of each), as all queries, all keys, all values."""
    return array.reshape(heads, 3, -1, *array.shape[1:]).swapaxes(0, 1).reshape(array.shape)


def grouped_parts_first(array: np.ndarray, heads: int, groups: int) -> np.ndarray:
    """Fused by group (several queries, a key and a value of each), as all queries, all keys, all values."""
    by_group = array.reshape(groups, heads // groups + 2, -1, *array.shape[1:])
    return np.concatenate([by_group[:, :-2].reshape(-1, *array.shape[1:]), by_group[:, -2].reshape(-1, *array.shape[1:]),
                           by_group[:, -1].reshape(-1, *array.shape[1:])])


Rule = Callable[[Checkpoint], np.ndarray]


def candidates(model: Checkpoint) -> Iterator[Rule]:
    """What a converter may make of the tensors of a checkpoint, each as a function of a checkpoint of these names."""
    changes: list[Callable[[np.ndarray, int, int], np.ndarray]] = [
        lambda a, h, g: a, lambda a, h, g: a.T, lambda a, h, g: a + np.float32(1), lambda a, h, g: interleaved(a, h),
        lambda a, h, g: interleaved(a, g), lambda a, h, g: parts_first(a, h), lambda a, h, g: grouped_parts_first(a, h, g)]
    for change in changes:
        for name in model.tensors:
            yield lambda m, name=name, change=change: change(m.tensors[name], *heads_of(m))
    for name in (name for name, array in model.tensors.items() if array.ndim > 1):  # the parts of a fused MLP
        for half in (0, 1):
            yield lambda m, name=name, half=half: np.split(m.tensors[name], 2, axis=-2)[half]
    for experts, _ in model.experts():
        for part in sorted(experts[0]):
            if isinstance(experts[0][part], str):
                yield lambda m, experts=experts, part=part: np.stack([m.tensors[expert[part]] for expert in experts])


def rules(model: Checkpoint, tensors: dict[str, np.ndarray]) -> dict[str, Rule]:
    """The function that makes each tensor of a GGUF file of the checkpoint it was made of."""
    found: dict[str, Rule] = {}
    for rule in candidates(model):
        try:
            made = rule(model)
        except ValueError:  # a shape that is not divided evenly
            continue
        for name, array in tensors.items():
            if name not in found and made.size == array.size and np.array_equal(made.reshape(array.shape), array):
                found[name] = rule
    return found


def stated(model: Checkpoint) -> Checkpoint:
    """The fixture with a configuration that its GGUF file can state."""
    result = model.copy()
    result.config |= STATED.get(model.name, {})
    return result


def widened(model: Checkpoint) -> Checkpoint:
    """A random model of the same configuration, `WIDER` times as wide; its tokens, heads and experts are as many."""
    wide = model.copy()
    for name in WIDTHS:
        if isinstance(wide.config.get(name), int):
            wide.config[name] *= WIDER
    if model.name in STATED and "query_pre_attn_scalar" in STATED[model.name]:
        wide.config["query_pre_attn_scalar"] *= WIDER
    random = np.random.default_rng(46)
    routers = [router + end for _, router in model.experts() for end in (".weight", ".bias")]
    for name, array in model.tensors.items():
        fixed = [0] if name in (*model.tables, model.head, *routers) or array.ndim == 3 or "wpe" in name or "positions" in name else []
        fixed += [0] if name.endswith(("lm_head.bias", "sinks")) else []
        fixed += [0] if array.ndim == 2 and "norm" in name else []
        fixed += [0] if name.endswith("shared_expert_gate.weight") else []
        shape = [n if axis in fixed else n * WIDER for axis, n in enumerate(array.shape)]
        if array.ndim < 2:
            wide.tensors[name] = np.tile(array, shape[0] // len(array))
        else:
            spread = array.std() / (1 if 0 in fixed and array.ndim == 2 and name in model.tables else np.sqrt(WIDER))
            wide.tensors[name] = (spread * random.standard_normal(shape)).astype(np.float32)
    attentions = copy.deepcopy(model.truth["attention"])
    for part in (attention[name] for attention in attentions for name in ("query", "key")):
        part["features"] = [[[first * WIDER, count * WIDER] for first, count in head] for head in part.get("features", [])]
    wide.truth = {**wide.truth, "attention": attentions}
    return wide


def converted(model: Checkpoint, wide: Checkpoint | None, path: Path, kind: int, spoil: bool = False) -> Path | None:
    """The GGUF file of a fixture in another type, or that of its wide twin; None if llama.cpp's is not committed. `spoil`
    moves a block to the place of the one before it."""
    source = FILES / f"{model.name}.gguf"
    if not source.exists() or model.name in CHANGED:
        return None
    metadata, tensors = read(source)
    if wide:
        known = rules(model, tensors)
        if any(name not in known and name != "rope_freqs.weight" for name in tensors):
            return None  # stacked experts that it splits (gpt-oss)
        tensors = {name: np.ascontiguousarray(known[name](wide)) for name in known}
        metadata = {key: (of, value * WIDER if key.endswith(LENGTHS) and of != ARRAY else value) for key, (of, value) in metadata.items()}
    if spoil:
        last = [name for name, array in tensors.items() if array.ndim > 1 and "ffn_down" in name][-1]
        tensors[last] = tensors[last].copy()
        tensors[last].reshape(-1)[:32] = tensors[last].reshape(-1)[32:64]
    return write(path, metadata, tensors, kind)

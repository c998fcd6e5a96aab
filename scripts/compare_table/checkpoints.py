"""Fixtures of the model oracle as arrays, and which of their rows and columns are heads, neurons and experts.

What is known of a head's queries and keys is what running the model showed (truth.json); values, outputs and neurons are
found by name. None of it comes from the descriptions in src/models/architectures, which the table puts to the test.
"""

from __future__ import annotations

import copy
import json
import re
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from model_oracle import fixtures  # noqa: E402

#: Modules of a plain or gated MLP: what writes, what is multiplied by it, and the gate.
MLPS = [("down_proj", "up_proj", "gate_proj"), ("down_proj", "gate_up_proj", ""), ("down_proj", "up_proj", ""),
        ("down_proj", "c_fc", ""), ("c_proj", "c_fc", ""),
        ("fc_out", "fc_in", ""), ("fc2", "fc1", ""), ("dense_4h_to_h", "dense_h_to_4h", ""), ("w2", "w3", "w1"), ("lin2", "lin1", ""),
        ("wo", "wi", ""), ("wo", "wi_1", "wi_0"), ("output_linear", "input_linear", ""), ("output.dense", "intermediate.dense", "")]
FUSED = ("gate_up_proj", "input_linear")
VALUES = {"q_proj": "v_proj", "query": "value", "q_lin": "v_lin", "q": "v", "Wq": "Wv"}
OUTPUTS = ("o_proj", "c_proj", "out_proj", "dense", "out_lin", "o", "output.dense")
ROUTERS = ("gate", "router", "router.layer")


def bits(values: np.ndarray, dtype: str) -> np.ndarray:
    """Values rounded to a dtype of safetensors, ties to even."""
    if dtype != "BF16":
        return values.astype({"F64": np.float64, "F32": np.float32, "F16": np.float16}[dtype])
    whole = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((whole + 0x7FFF + ((whole >> 16) & 1)) >> 16).astype(np.uint16)


def read_safetensors(data: bytes) -> dict[str, np.ndarray]:
    """The tensors of a file of float32, in float32."""
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    header.pop("__metadata__", None)
    result = {}
    for name, entry in header.items():
        if entry["dtype"] != "F32":
            raise ValueError(f"{name} is {entry['dtype']}, expected F32")
        first, last = (begin + at for at in entry["data_offsets"])
        result[name] = np.frombuffer(data[first:last], np.float32).reshape(entry["shape"]).copy()
    return result


def write_safetensors(path: Path, tensors: dict[str, np.ndarray], dtype: str = "F32") -> None:
    header, data, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name, array in tensors.items():
        truths = array.dtype == np.bool_
        data.append(np.ascontiguousarray(array if truths else bits(array, dtype)).tobytes())
        header[name] = {"dtype": "BOOL" if truths else dtype, "shape": list(array.shape), "data_offsets": [at, at + len(data[-1])]}
        at += len(data[-1])
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


@dataclass(frozen=True)
class Map:
    """A linear map in the file; of a stack of maps, the one at `index`."""

    weight: str
    in_out: bool = False
    bias: str = ""
    index: int | None = None


@dataclass
class Attention:
    """Maps of one attention, and the features of each that belong to a head, or to a group of heads."""

    query: Map
    key: Map
    value: Map
    output: Map
    queries: list[np.ndarray]  # by head
    keys: list[np.ndarray]  # by group
    values: list[np.ndarray]  # by group
    outputs: list[np.ndarray]  # by head: inputs of `output`
    group_of: list[int]  # by head
    rotates: bool
    normed: bool  # queries and keys pass norms
    query_gains: list[str] = field(default_factory=list)  # a number or a row for each head
    key_gains: list[str] = field(default_factory=list)
    window: int | None = None


@dataclass
class Mlp:
    ups: list[tuple[Map, np.ndarray]]  # maps and their features; the linear factor of a gated MLP first
    down: Map
    layer: str  # the name up to the layer, or the expert


@dataclass
class Checkpoint:
    name: str
    config: dict[str, Any]
    tensors: dict[str, np.ndarray]
    truth: dict[str, Any]

    def copy(self) -> Checkpoint:
        return Checkpoint(self.name, copy.deepcopy(self.config), {name: array.copy() for name, array in self.tensors.items()}, self.truth)

    def write(self, folder: Path, dtype: str = "F32") -> Path:
        folder.mkdir(parents=True)
        write_safetensors(folder / "model.safetensors", self.tensors, dtype)
        (folder / "config.json").write_text(json.dumps(self.config))
        return folder

    def rows(self, of: Map) -> np.ndarray:
        """A map as output features x input features, a view of its tensor."""
        array = self.tensors[of.weight]
        array = array if of.index is None else array[of.index]
        return array.T if of.in_out else array

    def bias(self, of: Map) -> np.ndarray | None:
        array = self.tensors.get(of.bias)
        return array if array is None or of.index is None else array[of.index]

    @property
    def kind(self) -> str:
        return self.config["model_type"]

    @property
    def tied(self) -> bool:
        """Whether the token table is the head as well."""
        return self.head in self.tables

    @property
    def tables(self) -> list[str]:
        """Tables of token embeddings."""
        return [name for name, array in self.tensors.items()
                if re.search(r"(embed_tokens|wte|embed_in|word_embeddings|shared)\.weight$", name) and len(array) == self.config["vocab_size"]]

    @property
    def head(self) -> str:
        return self.truth["outputs"]["logits"]["maps"][0]["weight"]

    def norms(self) -> list[dict[str, Any]]:
        """Norms with a gain, those of heads aside."""
        return [norm for norm in self.truth["norms"] if norm["gain"] and len(norm["gain_shape"]) == 1]

    def attentions(self) -> list[Attention]:
        return [found for stated in self.truth["attention"] if (found := self._attention(stated))]

    def _attention(self, stated: dict[str, Any]) -> Attention | None:
        features = lambda part: [np.concatenate([np.arange(first, first + count) for first, count in head]) for head in stated[part]["features"]]
        maps = [stated[part]["maps"] for part in ("query", "key")]
        if any(len(part) != 1 or not part[0]["weight"] for part in maps):
            return None
        query, key = (Map(part[0]["weight"], part[0]["layout"] == "in_out", part[0]["bias"] or "") for part in maps)
        queries, keys, group_of = features("query"), [], []
        for each in features("key"):
            found = [group for group, other in enumerate(keys) if np.array_equal(each, other)]
            group_of.append(found[0] if found else len(keys))
            keys += [] if found else [each]
        dims, (parent, _, last) = len(queries[0]), query.weight.removesuffix(".weight").rpartition(".")
        if query.weight == key.weight:
            value = query
            rest = np.setdiff1d(np.arange(len(self.rows(query))), np.concatenate([*queries, *keys]))
        else:
            name = f"{parent}.{VALUES.get(last, '')}"
            if name + ".weight" not in self.tensors:
                return None
            value = Map(name + ".weight", query.in_out, name + ".bias" if name + ".bias" in self.tensors else "")
            rest = np.arange(len(self.rows(value)))
        output = next((f"{at}.{name}" for at in (parent, parent.rpartition(".")[0]) for name in OUTPUTS if f"{at}.{name}.weight" in self.tensors), "")
        if not output or len(rest) % len(keys):
            return None
        width = len(rest) // len(keys)
        gains = {part: [name for name, array in self.tensors.items() if stated[part]["norms"] and name.startswith(stated[part]["norms"][0] + ".")
                        and array.size == heads * dims] for part, heads in (("query", len(queries)), ("key", len(keys)))}
        if "sinks" in stated and stated["sinks"]:
            gains["query"].append(stated["sinks"])
        normed = bool(stated["query"]["norms"]) or any(name.startswith(parent) and "norm" in name for name in self.tensors)
        return Attention(query, key, value, Map(output + ".weight", query.in_out, output + ".bias" if output + ".bias" in self.tensors else ""),
                         queries, keys, np.split(rest, len(keys)), np.split(np.arange(width * len(queries)), len(queries)), group_of,
                         stated["query"]["position_table"], normed, gains["query"], gains["key"], stated["window"])

    def mlps(self) -> list[Mlp]:
        result = []
        for weight in self.tensors:
            for down, up, gate in MLPS:
                name, suffix = weight.removesuffix(".weight"), ".weight" if weight.endswith(".weight") else ""
                if not name.endswith("." + down) or ".attention." in name:
                    continue
                at = name.removesuffix(down)
                names = [at + part for part in (up, gate) if part]
                if all(part + suffix in self.tensors for part in names):
                    result += self._mlp(at, weight, names, suffix, up in FUSED)
                    break
        return result

    def _mlp(self, at: str, down: str, names: list[str], suffix: str, fused: bool) -> list[Mlp]:
        stack, result = self.tensors[down], []
        conv = self.kind == "gpt2" or not suffix  # matrices that are stored in x out
        bias = lambda name: next((name + end for end in (".bias", "_bias") if name + end in self.tensors), "")
        for index in range(len(stack)) if stack.ndim == 3 else [None]:
            maps = [Map(name + suffix, conv, bias(name), index) for name in names]
            to = Map(down, conv, bias(down.removesuffix(".weight")), index)
            count = self.rows(to).shape[1]
            ups = [(each, np.arange(count)) for each in maps]
            if fused:  # the linear factor is the second half, or, in gpt-oss, every second feature
                halves = (np.arange(1, 2 * count, 2), np.arange(0, 2 * count, 2)) if not suffix else (np.arange(count, 2 * count), np.arange(count))
                ups = [(maps[0], half) for half in halves]
            result.append(Mlp(ups, to, at if index is None else f"{at}{index}."))
        return result

    def experts(self) -> list[tuple[list[dict[str, tuple[int, ...]]], str]]:
        """For each router: places (tensors, and indices in stacks) of its experts, and the router's name."""
        found: dict[str, dict[int, dict[str, Any]]] = {}
        for name, array in self.tensors.items():
            if numbered := re.match(r"(.*experts\.)(\d+)\.(.*)", name):
                found.setdefault(numbered[1], {}).setdefault(int(numbered[2]), {})[numbered[3]] = name
            elif array.ndim == 3 or name.endswith(("experts.down_proj_bias", "experts.gate_up_proj_bias")):
                parent = name.removesuffix(".weight").rpartition(".")[0] + "."
                for index in range(len(array)):
                    found.setdefault(parent, {}).setdefault(index, {})[name] = index
        result = []
        for at, experts in found.items():
            parents = (at, at.removesuffix("experts."))
            router = next((p + name for p in parents for name in ROUTERS if p + name + ".weight" in self.tensors), "")
            if router and len(experts) > 1:
                result.append(([experts[number] for number in sorted(experts)], router))
        return result

    def expert_tensors(self, expert: dict[str, Any]) -> list[np.ndarray]:
        return [self.tensors[place] if isinstance(place, str) else self.tensors[key][place] for key, place in sorted(expert.items())]


def load(case: str) -> Checkpoint:
    files = fixtures.read(case)
    return Checkpoint(case, json.loads(files["config.json"]), read_safetensors(files["model.safetensors"]), json.loads(files["truth.json"]))

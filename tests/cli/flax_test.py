"""A Flax msgpack file gives the results of the safetensors file with the same tensors; norms under names with slashes."""

import json
import struct
import unittest

import numpy as np
from command import CommandTest, safetensors


def text(value):
    return b"\xd9" + bytes([len(value)]) + value.encode()


def packed(value):
    """MessagePack as flax.serialization.to_bytes writes it."""
    if isinstance(value, dict):
        return b"\xde" + struct.pack(">H", len(value)) + b"".join(text(k) + packed(v) for k, v in value.items())
    shape = bytes([0x90 + value.ndim]) + b"".join(b"\xcd" + struct.pack(">H", extent) for extent in value.shape)
    data = value.tobytes()
    array = b"\x93" + shape + text(value.dtype.name) + b"\xc6" + struct.pack(">I", len(data)) + data
    return b"\xc9" + struct.pack(">I", len(array)) + b"\x01" + array


def nested(tensors):
    tree = {}
    for name, array in tensors.items():
        *path, last = name.split(".")
        at = tree
        for key in path:
            at = at.setdefault(key, {})
        at[last] = array
    return tree


class Flax(CommandTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(5)
        self.tensors = {}
        for layer in range(2):
            for name in ("LayerNorm", "BatchNorm"):
                for part in ("scale", "bias"):
                    self.tensors[f"params.layer.{layer}.{name}.{part}"] = random.normal(1, 0.2, 8).astype(np.float32)
        self.tensors["params.layer.0.dense.kernel"] = random.normal(size=(8, 4)).astype(np.float32)
        for moment in ("mu", "nu"):
            self.tensors[f"opt_state.0.{moment}.layer.0.LayerNorm.scale"] = np.ones(8, np.float32)

    def report(self, path):
        self.ok("report", path, "-o", "r.html", "--json", "r.json", "-q")
        return json.loads((self.folder / "r.json").read_text())

    def test_norms_are_those_of_the_same_tensors_in_safetensors(self):
        folder = self.folder / "flax"
        folder.mkdir()
        (folder / "flax_model.msgpack").write_bytes(packed(nested(self.tensors)))
        (folder / "config.json").write_text('{"layer_norm_eps": 1e-3}')
        twin = self.folder / "twin"
        twin.mkdir()
        safetensors(twin / "model.safetensors", self.tensors)
        (twin / "config.json").write_text('{"layer_norm_eps": 1e-3}')
        report, other = self.report(folder), self.report(twin)
        self.conforms("report", report)
        self.assertEqual(report["model"]["format"], "flax")
        self.assertEqual([norm["name"] for norm in report["norms"]],
                         ["params.layer.0.LayerNorm", "params.layer.1.LayerNorm"])
        self.assertEqual([norm["eps"] for norm in report["norms"]], [1e-3, 1e-3])
        for norm, same in zip(report["norms"], other["norms"], strict=True):
            for key in norm.keys() - {"reproduce"}:
                self.assertEqual(norm[key], same[key], key)

    def test_names_with_slashes(self):
        tensors = {"layer_normalization_3/gamma": np.full(8, 1.5, np.float32),
                   "layer_normalization_3/beta": np.zeros(8, np.float32),
                   "batch_normalization/gamma": np.ones(8, np.float32),
                   "batch_normalization/moving_mean": np.ones(8, np.float32),
                   "optimizer/layer_normalization_3/gamma": np.ones(8, np.float32),
                   "bert/encoder/layer_0/output/LayerNorm/gamma": np.ones(8, np.float32),
                   "bert/encoder/layer_0/output/LayerNorm/gamma/Adam_1": np.ones(8, np.float32)}
        norms = self.report(safetensors(self.folder / "a.safetensors", tensors))["norms"]
        self.assertEqual({norm["name"] for norm in norms},
                         {"layer_normalization_3", "bert/encoder/layer_0/output/LayerNorm"})
        self.assertEqual({norm["kind"] for norm in norms}, {"layer"})

    def test_a_damaged_file_is_one_line(self):
        (self.folder / "a.msgpack").write_bytes(packed(nested(self.tensors))[:-1])
        self.assertIn("a.msgpack: at byte ", self.fails(3, "inspect", "a.msgpack"))


if __name__ == "__main__":
    unittest.main()

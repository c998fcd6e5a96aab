"""PyTorch files that hold other objects beside the weights: they are named and never called."""

import argparse
import collections
import datetime
import io
import json
import pickle
import sys
import types
import unittest
import zipfile
from pathlib import PurePosixPath

import numpy as np

from command import CommandTest, fixture, safetensors


def as_of(module, name):
    """A class that pickles by that name; the module is made if it is not there."""
    parts = module.split(".")
    for i in range(1, len(parts) + 1):
        sys.modules.setdefault(".".join(parts[:i]), types.ModuleType(".".join(parts[:i])))
    made = type(name, (), {"__module__": module, "__qualname__": name})
    setattr(sys.modules[module], name, made)
    return made


FLOATS = as_of("torch", "FloatStorage")
REBUILD = as_of("torch._utils", "_rebuild_tensor_v2")


class Storage:
    def __init__(self, array):
        self.array = array


class Tensor:
    """A float32 array that pickles as a tensor."""

    def __init__(self, array, *metadata):
        self.storage, self.metadata = Storage(np.ascontiguousarray(array, np.float32)), metadata

    def __reduce__(self):
        array = self.storage.array
        return REBUILD, (self.storage, 0, array.shape, tuple(s // 4 for s in array.strides), False,
                         collections.OrderedDict(), *self.metadata)


def torch_file(path, value, protocol=2):
    """As torch.save writes it."""
    stored = []

    class Pickler(pickle.Pickler):
        def persistent_id(self, object):
            if not isinstance(object, Storage):
                return None
            stored.append(object)
            return "storage", FLOATS, str(len(stored) - 1), "cpu", object.array.size

    buffer = io.BytesIO()
    Pickler(buffer, protocol).dump(value)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", buffer.getvalue())
        for i, storage in enumerate(stored):
            archive.writestr(f"archive/data/{i}", storage.array.tobytes())


def weights():
    return collections.OrderedDict([("norm.weight", Tensor([1.0, 2.0, 0.5, 1.5])), ("norm.bias", Tensor(np.ones(4)))])


class Command:
    """Would run a command if it were called."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        import os
        return os.system, (f"touch {self.file}",)


class PickleObjects(CommandTest):
    CASES = {
        "namespace": (argparse.Namespace(lr=0.1), "argparse.Namespace"),
        "datetime": (datetime.datetime(2024, 1, 1), "datetime.datetime"),
        "path": (PurePosixPath("a/b"), "pathlib.PurePosixPath"),
        "set": ({1, 2}, "set"),
        "counter": (collections.Counter("abca"), "collections.Counter"),
        "complex": (1 + 2j, "complex"),
        "bytes": (b"abc", "bytes"),
        "scalar": (np.float64(0.3), "numpy.core.multiarray.scalar"),
        "array": (np.arange(3), "numpy.ndarray"),
    }

    def test_weights_are_read_and_the_rest_is_named(self):
        for protocol in range(2, 6):
            for name, (value, shown) in self.CASES.items():
                torch_file(self.folder / "m.pt", {"model": weights(), "extra": value}, protocol)
                text = self.ok("inspect", "m.pt")
                self.assertIn("norm.weight", text)
                named = next(line for line in text.splitlines() if line.startswith("extra: "))
                if not name.startswith(("scalar", "array")):  # whose modules NumPy renames
                    self.assertEqual(named, f"extra: {shown}, not read", (name, protocol))
                document = self.json("inspect", "m.pt")
                self.conforms("inspect", document)
                self.assertEqual(document["metadata"], {"extra": named.removeprefix("extra: ")})
                self.assertEqual([tensor["name"] for tensor in document["tensors"]], ["norm.bias", "norm.weight"])

    def test_values_of_plain_types_are_not_mentioned(self):
        plain = {"epoch": 3, "loss": 0.5, "name": "x", "list": [1, (2, None, True)], "large": 2**80,
                 "d": collections.defaultdict(list, {"a": [1]})}
        torch_file(self.folder / "m.pt", {"model": weights(), **plain})
        self.assertEqual(self.json("inspect", "m.pt")["metadata"], {})

    def test_nothing_is_called(self):
        torch_file(self.folder / "m.pt", {"model": weights(), "x": Command(self.folder / "made")})
        self.assertIn("x: posix.system, not read", self.ok("inspect", "m.pt"))
        self.ok("report", "m.pt", "-q")
        torch_file(self.folder / "m.pt", Command(self.folder / "made"))
        self.assertIn('holds "posix.system", expected a state dict', self.fails(3, "inspect", "m.pt"))
        self.assertFalse((self.folder / "made").exists())

    def test_a_tensor_with_a_negative_bit_is_listed_and_not_read(self):
        torch_file(self.folder / "m.pt", {**weights(), "fc.bias": Tensor(np.ones(4), {"neg": True})})
        self.assertRegex(self.ok("inspect", "m.pt"), r"MARKED +\[4\] +fc\.bias")
        self.assertIn("has no decoder", self.fails(3, "apply", "m.pt:fc.bias"))
        # Nothing says that equal bytes stand for equal numbers.
        self.assertNotIn("same:", self.run_command("compare", "m.pt", "m.pt").stdout)


class TiedModel(CommandTest):
    def test_a_tied_table_may_be_stored_as_the_head_alone(self):
        model = fixture("llama")
        config = json.loads((model / "config.json").read_text())
        whole = (model / "model.safetensors").read_bytes()
        size = int.from_bytes(whole[:8], "little")
        header = json.loads(whole[8:8 + size])
        header.pop("model.embed_tokens.weight")
        tensors = {name: np.frombuffer(whole, np.float32, np.prod(entry["shape"], dtype=int),
                                       8 + size + entry["data_offsets"][0]).reshape(entry["shape"])
                   for name, entry in header.items() if name != "__metadata__"}
        for tied in (True, False):
            (self.folder / "config.json").write_text(json.dumps({**config, "tie_word_embeddings": tied}))
            safetensors(self.folder / "model.safetensors", tensors)
            document = self.json("inspect", ".")
            self.assertEqual(document["architecture"]["missing"], [] if tied else ["model.embed_tokens.weight"])
            first = document["norms"][0]
            self.assertEqual([writer["tensor"] for writer in first["writers"]], ["lm_head.weight"] if tied else [])


if __name__ == "__main__":
    unittest.main()

"""Negative controls: no real checkpoint is called different from itself, in whatever form it is stored."""

import json
import shutil
import struct
import unittest

import numpy as np

from command import CHECKPOINTS, DTYPES, CommandTest, is_checkpoint

PROVED = ("same", "equivalent")


class Bfloat16(np.ndarray):
    """The upper halves of float32, which NumPy has no type for."""


def bfloat16(array):
    """float32 rounded to bfloat16, ties to even."""
    whole = np.ascontiguousarray(array, np.float32).view(np.uint32)
    return ((whole + 0x7FFF + ((whole >> 16) & 1)) >> 16).astype(np.uint16).view(Bfloat16)


def read(path):
    """The arrays of a safetensors file in the types that it stores, and its metadata."""
    data = path.read_bytes()
    begin = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:begin])
    metadata = header.pop("__metadata__", {})
    arrays = {}
    for name, entry in header.items():
        first, last = entry["data_offsets"]
        arrays[name] = np.frombuffer(data[begin + first:begin + last], DTYPES[entry["dtype"]]).reshape(entry["shape"])
    return arrays, metadata


def write(path, arrays, metadata):
    header, data, at = {"__metadata__": metadata}, [], 0
    for name, array in arrays.items():
        dtype = "BF16" if isinstance(array, Bfloat16) else next(key for key, value in DTYPES.items() if array.dtype == value)
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [at, at + array.nbytes]}
        data.append(array.tobytes())
        at += array.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data))


@unittest.skipUnless(CHECKPOINTS.is_dir(), "the real checkpoints are not there")
class Controls(CommandTest):
    def setUp(self):
        super().setUp()
        self.real = sorted(path for path in CHECKPOINTS.iterdir() if is_checkpoint(path))
        self.assertTrue(self.real)

    def files(self):
        """Checkpoints that are safetensors: arrays, metadata, and the configuration beside them, or None."""
        for path in self.real:
            file, config = (path / "model.safetensors", path / "config.json") if path.is_dir() else (path, None)
            if file.suffix == ".safetensors":
                yield path, *read(file), config if config is not None and config.exists() else None

    def copied(self, arrays, metadata, config):
        folder = self.folder / "copy"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        write(folder / "model.safetensors", arrays, metadata)
        if config is not None:
            shutil.copy(config, folder)
        return folder

    def agreement(self, old, new):
        found = json.loads(self.ok("compare", old, new, "--json", "-"))
        self.assertNotEqual(found["agreement"], "different", found["findings"])
        return found["agreement"]

    def test_a_checkpoint_is_the_same_as_itself(self):
        for path in self.real:
            with self.subTest(path.name):
                # The operations of a graph are not compared.
                self.assertEqual(self.agreement(path, path), "undecided" if path.suffix == ".onnx" else "same")

    def test_another_dtype_is_rounding(self):
        for path, arrays, metadata, config in self.files():
            for name, convert in (("float16", lambda a: a.astype(np.float16)), ("bfloat16", bfloat16), ("float64", lambda a: a.astype(np.float64))):
                changed = {key: convert(array) if array.dtype == np.float32 else array for key, array in arrays.items()}
                with self.subTest(path.name, dtype=name):
                    self.assertIn(self.agreement(path, self.copied(changed, metadata, config)), PROVED)

    def test_folded_gains_are_equivalent(self):
        folded = 0
        for path in self.real:
            with self.subTest(path.name):
                shutil.rmtree(self.folder / "folded", ignore_errors=True)
                if self.run_command("rewrite", path, "-o", "folded", "--fold", "gains", "-q").returncode == 0:
                    folded += 1
                    self.assertEqual(self.agreement(path, "folded"), "equivalent")
        self.assertGreaterEqual(folded, 5)

    def test_a_wrapper_s_prefix_changes_nothing(self):
        for path, arrays, metadata, config in self.files():
            with self.subTest(path.name):
                wrapped = {"module." + name: array for name, array in arrays.items()}
                self.assertIn(self.agreement(path, self.copied(wrapped, metadata, config)), PROVED)

    def test_the_container_changes_nothing(self):
        self.assertEqual(self.agreement(CHECKPOINTS / "presto.pt", CHECKPOINTS / "presto.safetensors"), "same")


if __name__ == "__main__":
    unittest.main()

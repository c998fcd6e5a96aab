"""Files of Keras and Flax: the same numbers as safetensors, in which norms are found as the configuration states them."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path
from unittest import mock

import normscope as ns
import numpy as np

try:
    import h5py
except ImportError:
    h5py = None
try:
    import msgpack
except ImportError:
    msgpack = None

TESTS = Path(os.environ["NORMSCOPE_SOURCE_DIR"]) / "tests"
FIXTURES = TESTS / "python/fixtures"  # a model that Keras 3 wrote, and what its norms are
NORMS = json.loads((FIXTURES / "keras_norms.json").read_text())
KINDS = {"LayerNormalization": "layer", "GroupNormalization": "layer", "RMSNormalization": "rms"}


def array(values):
    """An extension of MessagePack as flax.serialization.to_bytes writes it."""
    return msgpack.ExtType(1, msgpack.packb((values.shape, values.dtype.name, values.tobytes())))


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.output = self.folder / "m.safetensors"

    def refuses(self, file, message, error=ValueError):
        with self.assertRaisesRegex(error, message) as caught:
            ns.convert(file, self.output)
        self.assertNotIn("\n", str(caught.exception))
        self.assertFalse(self.output.exists())
        self.assertEqual(list(self.folder.glob(".*")), [])


@unittest.skipIf(h5py is None, "h5py is not installed")
class Keras(Files):
    def test_norms_are_those_of_the_configuration(self):
        expected = [name for name, norm in NORMS.items() if norm["class"] in KINDS]
        for name in ("keras_model.keras", "keras_model.h5"):
            ns.convert(FIXTURES / name, self.output)
            found = ns.open(self.output).inspect()
            self.assertEqual([norm.name for norm in found.norms], expected)
            model = ns.open(FIXTURES / name)  # converts as well
            for norm in found.norms:
                stated = NORMS[norm.name]
                self.assertEqual((norm.kind, norm.eps), (KINDS[stated["class"]], stated["epsilon"]))
                self.assertEqual(norm.groups, 2 if norm.name == "grouped" else 1)
                gain, bias = stated.get("gamma", stated.get("scale")), stated.get("beta")
                self.assertEqual(norm.width, len(gain or bias))
                for field, values in (("gain", gain), ("bias", bias)):
                    parameter = getattr(model.norm(norm.name), field)
                    self.assertEqual(parameter is None, values is None)
                    if values is not None:
                        np.testing.assert_array_equal(parameter, values)

    def test_the_archive_is_the_fixture_of_the_core(self):
        """tests/models reads that file, without h5py."""
        ns.convert(FIXTURES / "keras_model.keras", self.output)
        self.assertEqual(self.output.read_bytes(), (TESTS / "models/keras_model.safetensors").read_bytes())

    def test_weights_alone_are_found_by_name(self):
        with zipfile.ZipFile(FIXTURES / "keras_model.keras") as archive:
            weights = archive.extract("model.weights.h5", self.folder)
        ns.convert(weights, self.output)
        found = ns.open(self.output).inspect()
        self.assertEqual([norm.name for norm in found.norms],
                         [f"layers/{name}" for name in ("layer_normalization", "layer_normalization_1",
                                                        "layer_normalization_2", "layer_normalization_3",
                                                        "rms_normalization")])
        self.assertIn("Keras 3 numbers the weights of a layer", " ".join(found.architecture.notes))

    def test_numbers_are_those_that_h5py_reads(self):
        arrays = {"big": np.arange(6, dtype=">f8").reshape(2, 3), "half": np.ones(3, np.float16),
                  "group/flags": np.array([True, False]), "scalar": np.float32(2.5), "none": np.zeros((0, 3), np.float32)}
        with h5py.File(self.folder / "a.h5", "w") as file:
            for name, values in arrays.items():
                file[name] = values
            file["chunks"] = np.float32(1)
            del file["chunks"]
            file.create_dataset("packed", data=np.arange(70.0).reshape(7, 10), chunks=(2, 3), compression="gzip")
            file["bits"] = np.array([0x3fc0, 0xc000], "<u2")
            file["bits"].attrs["dtype"] = "bfloat16"
            file["text"] = "left out"
        arrays |= {"packed": np.arange(70.0).reshape(7, 10), "bits": np.array([1.5, -2.0])}
        ns.convert(self.folder / "a.h5", self.output)
        model = ns.open(self.output)
        self.assertEqual({tensor.name for tensor in model.inspect().tensors}, arrays.keys())
        for name in arrays.keys() - {"group/flags"}:
            np.testing.assert_array_equal(model.tensor(name), np.asarray(arrays[name], float))

    def test_damage_is_refused(self):
        for name in ("keras_model.h5", "keras_model.keras"):
            cut = self.folder / name
            cut.write_bytes((FIXTURES / name).read_bytes()[:5000])
            self.refuses(cut, f"convert: .*{name}: cannot be read: ")

    def test_elements_in_other_files_are_refused(self):
        (self.folder / "secret").write_bytes(bytes(8))
        with h5py.File(self.folder / "a.h5", "w") as file:
            file.create_dataset("a", (1,), np.float64, external=[(str(self.folder / "secret"), 0, 8)])
        self.refuses(self.folder / "a.h5", "'a' has its elements in other files")

    def test_types_that_safetensors_does_not_have_are_refused(self):
        with h5py.File(self.folder / "a.h5", "w") as file:
            file["a"] = np.ones(2, complex)
        self.refuses(self.folder / "a.h5", "tensor 'a' has type complex128, which safetensors does not have")

    def test_the_module_is_a_command(self):
        file = shutil.copy(FIXTURES / "keras_model.h5", self.folder)
        run = lambda *words: subprocess.run([sys.executable, "-m", "normscope", "convert", *map(str, words)],
                                            capture_output=True, text=True, cwd=self.folder)
        done = run(file, "-o", self.output)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        before = self.output.read_bytes()
        again = run(self.output, "-o", self.output)
        self.assertEqual(again.returncode, 3)
        self.assertIn("need no conversion", again.stderr)
        self.assertEqual(self.output.read_bytes(), before)
        self.assertIn("is the file to convert", run(file, "-o", file).stderr)
        self.assertIn("No such file", run("missing.h5", "-o", "x").stderr)


@unittest.skipIf(msgpack is None, "msgpack is not installed")
class Flax(Files):
    def test_arrays_have_their_path_as_name(self):
        random = np.random.default_rng(5)
        gains = [random.normal(1, 0.2, 8).astype(np.float32) for _ in range(2)]
        chunked = {"__msgpack_chunked_array__": True, "shape": {"0": 2, "1": 4},
                   "chunks": {str(i): array(gains[0][4 * i:4 * i + 4]) for i in range(2)}}
        tree = {"params": {"layer": {str(i): {"LayerNorm": {"scale": array(gains[i])}} for i in range(2)}},
                "opt_state": {"0": {"count": 3, "mu": {"LayerNorm": {"scale": array(gains[0])}}}}, "chunked": chunked}
        file = self.folder / "flax_model.msgpack"
        file.write_bytes(msgpack.packb(tree))
        (self.folder / "config.json").write_text('{"layer_norm_eps": 1e-3}')
        model = ns.open(file)
        self.assertEqual(model.norms(), ["params.layer.0.LayerNorm", "params.layer.1.LayerNorm"])
        for i, norm in enumerate(model.inspect().norms):
            self.assertEqual(norm.eps, 1e-3)
            np.testing.assert_array_equal(model.norm(norm.name).gain, gains[i])
        np.testing.assert_array_equal(model.tensor("chunked"), gains[0].reshape(2, 4))

    def test_damage_is_refused(self):
        file = self.folder / "a.msgpack"
        good = msgpack.packb({"a": array(np.ones(4, np.float32))})
        for damaged in (good[:-1], good + b"\1", msgpack.packb([1]),
                        msgpack.packb({"a": msgpack.ExtType(1, msgpack.packb(((5,), "float32", bytes(16))))}),
                        msgpack.packb({"a": msgpack.ExtType(1, b"\1")})):
            file.write_bytes(damaged)
            self.refuses(file, "convert: .*a.msgpack: cannot be read: ")


class Absent(Files):
    def test_the_message_says_what_to_install(self):
        files = {"keras": b"\x89HDF\r\n\x1a\n", "flax": b"", "tensorflow": b"", "tflite": b"abcdTFL3"}
        for (extra, begin), name in zip(files.items(), ("a.h5", "a.msgpack", "a.index", "a.bin")):
            (self.folder / name).write_bytes(begin)
            modules = ("h5py", "msgpack", "tensorflow", "ai_edge_litert", "ai_edge_litert.interpreter")
            with mock.patch.dict(sys.modules, dict.fromkeys(modules)):
                self.refuses(self.folder / name, rf"not installed .*`pip install 'normscope\[{extra}\]'`")

    def test_other_files_are_refused(self):
        (self.folder / "a.onnx").write_bytes(b"\x08\x07")
        self.refuses(self.folder / "a.onnx", "expected a file of Keras")
        self.refuses(self.folder / "missing.h5", "No such file", OSError)


if __name__ == "__main__":
    unittest.main()

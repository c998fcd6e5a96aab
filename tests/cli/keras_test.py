"""HDF5 and Keras files: inspect, report, arrays by name, and refusals in one line."""

import json
import unittest
from pathlib import Path

from command import SOURCE, CommandTest

FIXTURES = Path(__file__).resolve().parent / "fixtures"


class Keras(CommandTest):
    def report(self, path):
        self.ok("report", path, "-o", "r.html", "--json", "r.json", "-q")
        report = json.loads((self.folder / "r.json").read_text())
        self.conforms("report", report)
        return report

    def test_inspect_lists_the_weights(self):
        listed = {"keras_model.h5": "model_weights/early/early/gamma", "keras_model.keras": "layers/dense/vars/0",
                  "keras_model.weights.h5": "layers/layer_normalization/vars/1"}
        for name, tensor in listed.items():
            self.assertIn(tensor, self.ok("inspect", FIXTURES / name))

    def test_arrays_have_names(self):
        for name, tensor in [("keras_model.h5", "model_weights/early/early/beta"),
                             ("keras_model.keras", "layers/layer_normalization/vars/1"),
                             ("keras_model.weights.h5", "layers/layer_normalization/vars/1")]:
            self.ok("apply", "1,2,3,4,5,6,7,8", "--gain", f"{FIXTURES / name}:{tensor}", "-o", "y.npy")

    def test_damage_is_refused(self):
        whole = (FIXTURES / "keras_model.h5").read_bytes()
        (self.folder / "cut.h5").write_bytes(whole[:5000])
        self.assertIn("cut.h5: has 5000 bytes, its superblock states", self.fails(3, "inspect", "cut.h5"))
        archive = (FIXTURES / "keras_model.keras").read_bytes()
        (self.folder / "cut.keras").write_bytes(archive[:5000])
        self.assertIn("the file is truncated", self.fails(3, "report", "cut.keras"))


class Tensorflow(CommandTest):
    def test_norms_of_a_checkpoint(self):
        fixtures = SOURCE / "tests/checkpoint/fixtures"
        self.assertIn("bert/encoder/layer_0/output/LayerNorm/gamma/Adam_1", self.ok("inspect", fixtures / "tf_names.index"))
        for name, norms in [("tf_names.index", ["bert/encoder/layer_0/output/LayerNorm"]),
                            ("tf_objects", ["sequential/layer_normalization", "sequential/layer_normalization_1"])]:
            self.ok("report", fixtures / name, "-o", "r.html", "--json", "r.json", "-q")
            report = json.loads((self.folder / "r.json").read_text())
            self.conforms("report", report)
            self.assertEqual(sorted(norm["name"] for norm in report["norms"]), norms)


if __name__ == "__main__":
    unittest.main()

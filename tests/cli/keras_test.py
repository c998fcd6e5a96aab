"""HDF5 and Keras files: inspect, report, arrays by name, and refusals in one line."""

import json
import unittest
from pathlib import Path

from command import SOURCE, CommandTest

FIXTURES = Path(__file__).resolve().parent / "fixtures"
NORMS = json.loads((FIXTURES / "keras_norms.json").read_text())


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

    def test_norms_are_those_of_the_configuration(self):
        kinds = {"LayerNormalization": "layer", "GroupNormalization": "layer", "RMSNormalization": "rms"}
        expected = [name for name, norm in NORMS.items() if norm["class"] in kinds]
        for name in ("keras_model.keras", "keras_model.h5"):
            report = self.report(FIXTURES / name)
            self.assertEqual([norm["name"] for norm in report["norms"]], expected)
            for norm in report["norms"]:
                stated = NORMS[norm["name"]]
                self.assertEqual(norm["kind"], kinds[stated["class"]])
                self.assertEqual(norm["eps"], stated["epsilon"])
                self.assertEqual(norm["groups"], 2 if norm["name"] == "grouped" else 1)
                gain, bias = stated.get("gamma", stated.get("scale")), stated.get("beta")
                self.assertEqual(norm["width"], len(gain or bias))
            notes = " ".join(report["model"]["notes"])
            # The older format does not state the rank that a layer was built for.
            known = name.endswith(".keras")
            self.assertIn("over_rows normalizes axis " + ("-2, counted from the end" if known else "1; whether"), notes)

            self.assertIn("1 BatchNorm", notes)

    def test_weights_alone_are_found_by_name(self):
        report = self.report(FIXTURES / "keras_model.weights.h5")
        names = [norm["name"] for norm in report["norms"]]
        self.assertEqual(names, [f"layers/{name}" for name in ("layer_normalization", "layer_normalization_1",
                                                               "layer_normalization_2", "layer_normalization_3",
                                                               "rms_normalization")])
        self.assertEqual([norm["eps"] for norm in report["norms"]], [1e-3] * 4 + [1e-6])
        notes = " ".join(report["model"]["notes"])
        self.assertIn("Keras 3 numbers the weights of a layer", notes)
        self.assertIn("1 BatchNorm", notes)

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
    def test_constants_of_tensorflow_lite(self):
        lite = SOURCE / "tests/checkpoint/fixtures/lite_quantized.tflite"
        self.assertIn("I8 scaled", self.ok("inspect", lite))
        self.ok("report", lite, "-o", "r.html", "--json", "r.json", "-q")
        self.conforms("report", json.loads((self.folder / "r.json").read_text()))

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

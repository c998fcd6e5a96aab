"""An .npz file gives the results of the safetensors file with the same tensors, however its arrays are stored."""

import json
import unittest
import zipfile

import numpy as np
from command import CommandTest, safetensors


class Npz(CommandTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(6)
        self.tensors = {f"h.{layer}.{part}": random.normal(1, 0.2, 8).astype(np.float32)
                        for layer in range(2) for part in ("norm.weight", "norm.bias")}
        self.tensors["w"] = random.normal(size=(300, 200))
        safetensors(self.folder / "twin.safetensors", self.tensors)

    def report(self, path):
        self.ok("report", path, "-o", "r.html", "--json", "r.json", "-q")
        report = json.loads((self.folder / "r.json").read_text())
        self.conforms("report", report)
        return report

    def test_results_are_those_of_the_same_tensors_in_safetensors(self):
        stored = dict(self.tensors)
        stored["w"] = np.asfortranarray(stored["w"])
        stored["h.0.norm.weight"] = stored["h.0.norm.weight"].astype(">f4")
        twin = self.report("twin.safetensors")
        for save in (np.savez, np.savez_compressed):
            save(self.folder / "m.npz", **stored)
            report = self.report("m.npz")
            self.assertEqual(report["model"]["format"], "npz")
            self.assertEqual(len(report["norms"]), 2)
            for norm, same in zip(report["norms"], twin["norms"], strict=True):
                for key in norm.keys() - {"reproduce"}:
                    self.assertEqual(norm[key], same[key], key)

    def test_archives_without_weights_are_refused(self):
        np.savez(self.folder / "o.npz", a=np.array(["text"]))
        self.assertIn("o.npz: member \"a.npy\"", self.fails(3, "inspect", "o.npz"))
        with zipfile.ZipFile(self.folder / "z.npz", "w") as archive:
            archive.writestr("a.txt", "x")
        self.assertIn("is a zip without data.pkl", self.fails(3, "inspect", "z.npz"))


if __name__ == "__main__":
    unittest.main()

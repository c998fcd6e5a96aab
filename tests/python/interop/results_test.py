"""Results beside pandas, Polars and pictures. Run by `scripts/test interop`."""

import copy
import pickle
import tempfile
import unittest
from pathlib import Path

import normscope as ns
import pandas
import polars
import torch
from models_test import MODELS, shaken

torch.manual_seed(7)


class Results(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.module = shaken(MODELS["llama"]())
        cls.model = ns.open(cls.module)
        with torch.no_grad(), ns.watch(cls.module) as seen:
            cls.module(torch.randint(1, 60, (2, 6)))
        first = cls.model.norms()[0]
        cls.all = {"report": cls.model.report(), "heads": cls.model.heads(), "reach": cls.model.reach(),
                   "geometry": cls.model.geometry(first, axes=3), "ranges": cls.model.ranges(), "inspect": cls.model.inspect(),
                   "trace": cls.model.trace([1, 2, 3]), "attribute": cls.model.attribute([1, 2, 3], 4),
                   "compare": cls.model.compare(cls.model), "activations": seen.result()}

    def test_every_cell_is_a_value(self):
        for name, result in self.all.items():
            frame = result.to_pandas()
            self.assertGreater(len(frame), 0, name)
            for column in frame:
                self.assertFalse(frame[column].map(lambda cell: isinstance(cell, (list, dict))).any(), f"{name}: {column}")

    def test_lists_within_rows_are_tables(self):
        frame = self.all["activations"].to_pandas("norms.features")
        self.assertEqual(list(frame.columns[:2]), ["norm", "index"])
        self.assertEqual(len(frame), sum(len(norm.features) for norm in self.all["activations"].norms))
        second = frame[frame.norm == self.model.norms()[1]].iloc[0]
        self.assertEqual(second.largest, self.all["activations"].norms[1].features[0].largest)
        spectrum = self.all["report"].to_pandas("norms.image.spectrum")
        self.assertIn("norm", spectrum)
        with self.assertRaisesRegex(ValueError, "has no table 'norms.absent'"):
            self.all["report"].to_pandas("norms.absent")

    def test_polars(self):
        frame = polars.DataFrame(self.all["heads"])
        self.assertEqual(frame.shape, self.all["heads"].to_pandas().shape)

    def test_extremes_are_a_table(self):
        frame = pandas.DataFrame(self.all["activations"].extremes(most=1))
        self.assertEqual(list(frame.norm), self.model.norms())

    def test_copies_and_pickles_are_equal(self):
        for name, result in self.all.items():
            for other in (copy.deepcopy(result), pickle.loads(pickle.dumps(result))):
                self.assertEqual(other, result, name)
                self.assertEqual(repr(other), repr(result))
                self.assertEqual(other.to_dict(), result.to_dict())
        self.assertNotEqual(self.all["report"], self.model.report(vocabulary=False))
        norm = self.model.norm("model.norm")
        self.assertEqual(norm, pickle.loads(pickle.dumps(norm)))
        self.assertNotEqual(norm, self.model.norm(self.model.norms()[0]))
        self.assertNotEqual(norm, ns.Norm(32, "rms"))
        with self.assertRaisesRegex(TypeError, "^pickle: snapshot of LlamaForCausalLM was opened from a live module"):
            pickle.dumps(self.model)
        with tempfile.TemporaryDirectory() as folder:
            self.module.save_pretrained(folder)
            opened = pickle.loads(pickle.dumps(ns.open(folder)))
            self.assertEqual(opened.norms(), self.model.norms())

    def test_names_complete_and_iterate(self):
        for name, result in self.all.items():
            self.assertEqual(set(result), set(result.to_dict()))
            self.assertTrue(set(result) - {"schema"} <= set(dir(result)) | {"in"}, name)
            self.assertIn("schema", result)
            self.assertNotIn("absent", result)
        names = {}
        exec("from normscope import *", names)
        self.assertNotIn("open", names)
        self.assertIn("watch", names)

    def test_pictures(self):
        chart = next(iter(self.all["report"].charts.values()))
        with tempfile.TemporaryDirectory() as folder:
            for name, begin in (("x.png", b"\x89PNG"), ("x.svg", b"<svg"), ("x.json", b"{")):
                chart.save(f"{folder}/{name}")
                self.assertEqual(Path(folder, name).read_bytes()[:len(begin)], begin)
            self.all["heads"].plot().save(f"{folder}/y.png")
            self.assertEqual(Path(folder, "y.png").read_bytes()[:4], b"\x89PNG")
            for save in (chart.save, self.all["report"].save):
                with self.assertRaisesRegex(ValueError, r"^save: .*x\.txt ends in \.txt, expected \.(json|html) or"):
                    save(f"{folder}/x.txt")
            self.assertEqual(len(list(Path(folder).iterdir())), 4)


if __name__ == "__main__":
    unittest.main()

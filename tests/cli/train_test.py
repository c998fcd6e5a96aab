"""normscope train: results, resuming, figures, bad input."""

import json
import unittest

import numpy as np

from command import CommandTest


class Train(CommandTest):
    def test_spiral_is_learned_by_three_features(self):
        got = self.json("train", "spiral", "--seeds", 2)
        self.assertGreater(got["test"]["accuracy"], 0.98)
        self.assertEqual((got["net"]["width"], got["net"]["depth"], got["steps"]), (3, 2, 8000))
        self.assertEqual([run["seed"] for run in got["runs"]], [1, 2])
        self.assertEqual(len(got["loss"]), 800)
        self.assertLess(got["loss"][-1], 0.3 * got["loss"][0])

    def test_without_a_norm_the_same_net_is_linear(self):
        got = self.json("train", "spiral", "--activation", "none", "--steps", 2000)
        self.assertLess(got["test"]["accuracy"], 0.7)

    def test_samples_and_labels_from_files(self):
        random = np.random.default_rng(3)
        x = random.normal(size=(200, 4))
        np.save(self.folder / "x.npy", x)
        np.save(self.folder / "y.npy", (x[:, 0] > 0).astype(np.int64) + (x[:, 1] > 0))
        got = self.json("train", "x.npy", "y.npy", "--width", 8, "--groups", 2, "--norm", "layer", "--steps", 400,
                        "--batch", 64, "--schedule", "cosine", "--affine")
        self.assertEqual((got["rows"], got["features"], got["classes"], got["test"]), (200, 4, 3, None))
        self.assertGreater(got["train"]["accuracy"], 0.95)

    def test_threads_do_not_change_the_document(self):
        options = ("train", "random-labels", "--width", 64, "--steps", 20)
        self.assertEqual(self.json(*options, "--threads", 1), self.json(*options, "--threads", 3))

    def test_figures(self):
        self.ok("train", "spiral", "--steps", 50, "--figures", "figures", "--quiet")
        for name in ("curves.vl.json", "boundary.vl.json"):
            self.assertIn("vega-lite", json.loads((self.folder / "figures" / name).read_text())["$schema"])
        morph = json.loads((self.folder / "figures/morph.json").read_text())
        self.assertEqual(np.array(morph["states"]).shape, (3, 300, 3))

    def test_a_state_is_gone_on_from(self):
        options = ("train", "xor", "--steps", 300, "--batch", 50)
        whole = self.json(*options)
        first = self.json(*options, "--resume", "state.safetensors")
        # The state of a finished training: nothing is left to do.
        again = self.json(*options, "--resume", "state.safetensors")
        self.assertEqual(first, whole)
        self.assertEqual(again, whole)
        self.assertIn("other options", self.fails(3, *options, "--seed", 5, "--resume", "state.safetensors"))

    def test_bad_input(self):
        np.save(self.folder / "x.npy", np.ones((4, 2)))
        np.save(self.folder / "nan.npy", np.full((4, 2), np.nan))
        np.save(self.folder / "half.npy", np.array([0, 1, 0.5, 1]))
        np.save(self.folder / "one.npy", np.zeros(4))
        np.save(self.folder / "y.npy", np.array([0, 1, 0, 1]))
        np.save(self.folder / "short.npy", np.array([0, 1]))
        np.save(self.folder / "empty.npy", np.ones((0, 2)))
        for message, arguments in (
                ("needs LABELS too", ("x.npy",)),
                ("the label of row 2 is 0.5, expected an integer", ("x.npy", "half.npy")),
                ("1 class, expected at least 2", ("x.npy", "one.npy")),
                ("row 0 holds nan", ("nan.npy", "y.npy")),
                ("2 labels for 4 rows", ("x.npy", "short.npy")),
                ("has no rows", ("empty.npy", "y.npy")),
                ("3 groups do not divide width 4", ("xor", "--width", 4, "--groups", 3)),
                ("eps is 0", ("xor", "--eps", 0)),
                ("width is 0", ("xor", "--width", 0))):
            with self.subTest(message):
                self.assertIn(message, self.fails(3, "train", *arguments))
        self.fails(2, "train", "xor", "--seeds", 2, "--resume", "s.safetensors")
        self.fails(2, "train", "xor", "--norm", "batch")


if __name__ == "__main__":
    unittest.main()

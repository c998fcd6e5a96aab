"""`normscope separate`: SSR, LSSR and linear separability, its proofs checked here once more."""

import unittest

import numpy as np

from command import CommandTest


class Separate(CommandTest):
    def save(self, a, b):
        np.save(self.folder / "a.npy", np.asarray(a, float))
        np.save(self.folder / "b.npy", np.asarray(b, float))

    def separate(self, *options):
        return self.json("separate", "a.npy", "b.npy", *options)

    def weighted(self, shares, rows):
        weights = np.array([share["weight"] for share in shares])
        self.assertAlmostEqual(weights.sum(), 1.0, 12)
        return weights @ rows[[share["row"] for share in shares]]

    def test_exclusive_or(self):
        self.save([[0, 0], [1, 1]], [[0, 1], [1, 0]])
        got = self.separate()
        self.assertEqual((got["ssr"], got["separable"]), (1.0, "no"))
        self.assertAlmostEqual(got["lssr"], 1.0, 14)
        self.assertIn("linearly separable: no", self.ok("separate", "a.npy", "b.npy"))

    def test_one_layer_norm_separates_exclusive_or(self):
        u = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
        for name, x in (("a", [[0, 0], [1, 1]]), ("b", [[0, 1], [1, 0]])):
            hidden = (np.array(x) @ [[1, 0], [1, 0]] + [-1, 1]) @ u
            np.save(self.folder / f"{name}.npy", hidden)
            self.ok("apply", f"{name}.npy", "-o", f"{name}.npy", "--eps", 0)
        got = self.separate("--check")
        self.assertEqual(got["separable"], "yes")
        self.assertLess(got["lssr"], 1e-20)

    def test_proofs_hold(self):
        random = np.random.default_rng(3)
        for shift, answer in ((0.0, "no"), (9.0, "yes")):
            a, b = random.normal(size=(200, 12)), random.normal(size=(150, 12))
            a[:, 3] += shift
            self.save(a, b)
            got = self.separate()
            self.assertEqual(got["separable"], answer)
            normal = np.array(got["normal"])
            distance = np.linalg.norm(self.weighted(got["a"], a) - self.weighted(got["b"], b))
            if answer == "yes":
                self.assertGreater((a @ normal).min(), got["offset"])
                self.assertLess((b @ normal).max(), got["offset"])
                self.assertAlmostEqual((a @ normal).min() - (b @ normal).max(), got["margin"], 10)
                self.assertAlmostEqual(distance, got["margin"], 8)
            else:
                self.assertLess(distance, 1e-12)

    def test_ratios_are_the_definitions(self):
        random = np.random.default_rng(4)
        a, b = random.normal(size=(30, 5)), random.normal(size=(20, 5)) + 0.4
        self.save(a, b)
        got = self.separate()
        x = np.vstack([a, b])
        scatter = lambda x: ((x - x.mean(0)) ** 2).sum()
        self.assertAlmostEqual(got["ssr"], (scatter(a) + scatter(b)) / scatter(x), 13)
        design = np.hstack([x, np.ones((50, 1))])
        indicator = np.repeat([1.0, 0.0], [30, 20])
        residual = indicator - design @ np.linalg.lstsq(design, indicator, rcond=None)[0]
        self.assertAlmostEqual(got["lssr"], (residual ** 2).sum() / scatter(indicator), 12)
        w = np.array(got["direction"])
        self.assertAlmostEqual((scatter(a @ w) + scatter(b @ w)) / scatter(x @ w), got["lssr"], 12)

    def test_check_turns_a_negative_answer_into_a_status(self):
        self.save([[0, 0], [1, 1]], [[0, 1], [1, 0]])
        self.assertEqual(self.run_command("separate", "a.npy", "b.npy", "--check").returncode, 1)
        self.save([[0, 0], [1, 1]], [[3, 3]])
        self.assertEqual(self.run_command("separate", "a.npy", "b.npy", "--check").returncode, 0)

    def test_rows_that_are_all_one_point(self):
        self.save([[1, 2], [1, 2]], [[1, 2]])
        got = self.separate()
        self.assertEqual((got["ssr"], got["lssr"], got["rank"], got["separable"]), (None, None, 0, "no"))

    def test_bad_input_is_named(self):
        self.save(np.ones((3, 2)), np.ones((3, 4)))
        self.assertIn("a.npy has width 2, b.npy has width 4", self.fails(3, "separate", "a.npy", "b.npy"))
        self.save(np.ones((3, 2)), [[1, np.nan]])
        self.assertIn("b.npy: row 0 has nan at 1", self.fails(3, "separate", "a.npy", "b.npy"))
        self.save(np.ones((3, 2)), np.ones((0, 2)))
        self.assertIn("b.npy: is empty", self.fails(3, "separate", "a.npy", "b.npy"))


if __name__ == "__main__":
    unittest.main()

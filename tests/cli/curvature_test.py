"""`normscope curvature`: the Hessian measure over group counts."""

import unittest
from fractions import Fraction

import numpy as np

from command import CommandTest


def layer_measure(x, groups):
    """3 Σ (c − 2)/(c σ⁴) over the groups of each row: Ni et al. without gain and eps."""
    blocks = x.reshape(len(x), groups, -1)
    size = blocks.shape[2]
    return (3 * (size - 2) / size / blocks.var(2) ** 2).sum(1)


class Curvature(CommandTest):
    def setUp(self):
        super().setUp()
        self.x = np.random.default_rng(5).normal(0.5, 2.0, (50, 48))
        np.save(self.folder / "x.npy", self.x)

    def test_measures_and_ratios_are_the_closed_form(self):
        document = self.json("curvature", "x.npy", "--groups", "1,4,16")
        self.assertEqual([group["k"] for group in document["groups"]], [1, 4, 16])
        for group in document["groups"]:
            measure = layer_measure(self.x, group["k"])
            ratio = measure / layer_measure(self.x, 1)
            for name, expected in (("mean", measure.mean()), ("ratio", ratio.mean()), ("min", ratio.min()),
                                   ("max", ratio.max()), ("bound", group["k"] * (48 - 2 * group["k"]) / 46)):
                self.assertAlmostEqual(group[name] / expected, 1.0, 10, name)
            self.assertEqual(group["rows"], 50)

    def test_the_printed_bound_is_one(self):
        document = self.json("curvature", "--width", 768, "--rows", 2)
        lines = self.ok("curvature", "--width", 768, "--rows", 2).splitlines()[-len(document["groups"]):]
        for line, group in zip(lines, document["groups"]):
            groups, *_, bound = line.split()
            self.assertEqual(int(groups), group["k"])
            # The ratios are at least g (N − 2g)/(N − 2).
            exact = Fraction(group["k"] * (768 - 2 * group["k"]), 766)
            self.assertLessEqual(Fraction(bound), exact)
            self.assertGreater(Fraction(bound), exact * (1 - Fraction(1, 10**5)))

    def test_every_count_that_curves_is_the_default(self):
        counts = lambda *options: [group["k"] for group in self.json("curvature", "x.npy", *options)["groups"]]
        self.assertEqual(counts(), [1, 2, 3, 4, 6, 8, 12, 16])
        self.assertEqual(counts("--norm", "rms"), [1, 2, 3, 4, 6, 8, 12, 16, 24])

    def test_bound_is_null_where_it_is_not_proved(self):
        for options in (("--eps", "1e-5"), ("--gain", "gain.npy")):
            np.save(self.folder / "gain.npy", np.arange(1.0, 49.0))
            document = self.json("curvature", "x.npy", "--groups", "4", *options)
            self.assertIsNone(document["groups"][0]["bound"], options)

    def test_rows_without_a_measure_are_left_out(self):
        self.x[3, :16] = 1.0
        np.save(self.folder / "x.npy", self.x)
        groups = self.json("curvature", "x.npy", "--groups", "1,3")["groups"]
        self.assertEqual([group["rows"] for group in groups], [50, 49])
        self.assertIn("49 rows", self.ok("curvature", "x.npy", "--groups", "1,3"))
        np.save(self.folder / "x.npy", np.ones((2, 6)))
        self.assertIsNone(self.json("curvature", "x.npy")["groups"][0]["ratio"])

    def test_random_rows_need_no_file_and_depend_on_the_seed_alone(self):
        one = self.json("curvature", "--width", 768, "--rows", 64, "--threads", 1)
        self.assertEqual(one, self.json("curvature", "--width", 768, "--rows", 64, "--threads", 2))
        self.assertNotEqual(one, self.json("curvature", "--width", 768, "--rows", 64, "--seed", 2))
        self.assertEqual(one["groups"][-1]["k"], 256)
        for group in one["groups"]:
            self.assertGreaterEqual(group["min"], group["bound"] * (1 - 1e-12))

    def test_rows_out_are_the_measures(self):
        document = self.json("curvature", "x.npy", "--groups", "4,1", "--rows-out", "h.npy")
        rows = np.load(self.folder / "h.npy")
        self.assertEqual((rows.shape, rows.dtype), ((50, 2), np.float64))
        np.testing.assert_allclose(rows, np.stack([layer_measure(self.x, 4), layer_measure(self.x, 1)], 1), rtol=1e-11)
        for k, group in enumerate(document["groups"]):
            self.assertAlmostEqual(rows[:, k].mean() / group["mean"], 1.0, 13)
        np.save(self.folder / "x.npy", np.array([[1.0, 1, 1, 1, 2, 4], [1, 2, 3, 4, 5, 7]]))
        self.ok("curvature", "x.npy", "--groups", "1,2", "--rows-out", "h.npy")
        self.assertEqual(np.isinf(np.load(self.folder / "h.npy")).tolist(), [[False, True], [False, False]])
        self.assertIn("would overwrite", self.fails(3, "curvature", "x.npy", "--rows-out", "x.npy"))
        self.assertIn("no/h.npy", self.fails(3, "curvature", "x.npy", "--rows-out", "no/h.npy"))

    def test_sizes_that_overflow_leave_the_ratios(self):
        for exponent in (400, -400):
            np.save(self.folder / "y.npy", np.ldexp(self.x, exponent))
            got, plain = self.json("curvature", "y.npy")["groups"], self.json("curvature", "x.npy")["groups"]
            self.assertEqual([group["ratio"] for group in got], [group["ratio"] for group in plain])
            self.assertIn(got[0]["mean"], (None, 0.0))
            self.assertNotRegex(self.ok("curvature", "y.npy"), r"nan|inf")

    def test_bad_input_is_named(self):
        self.assertIn("neither X nor --width", self.fails(3, "curvature"))
        self.assertIn("5 groups do not divide width 48", self.fails(3, "curvature", "x.npy", "--groups", "5"))
        self.x[7, 2] = np.nan
        np.save(self.folder / "x.npy", self.x)
        self.assertIn("x.npy: row 7 has nan in column 2", self.fails(3, "curvature", "x.npy"))
        np.save(self.folder / "x.npy", np.zeros((0, 4)))
        self.assertIn("x.npy: is empty", self.fails(3, "curvature", "x.npy"))
        self.fails(2, "curvature", "x.npy", "--groups", "0")


if __name__ == "__main__":
    unittest.main()

"""`normscope separate` on sets that rounding has it hard with, and `--exact`: every bound and every certificate
checked here in rational arithmetic."""

import gzip
import json
import unittest
from fractions import Fraction

import numpy as np

from command import CHECKPOINTS, SANITIZED, CommandTest

MNIST = CHECKPOINTS.parent / "mnist"


def fractions(rows):
    return [[Fraction(x) for x in row] for row in np.asarray(rows, float)]


def dot(x, y):
    return sum((a * b for a, b in zip(x, y)), Fraction(0))


class SeparateExact(CommandTest):
    def separate(self, a, b, *options):
        np.save(self.folder / "a.npy", np.asarray(a, float))
        np.save(self.folder / "b.npy", np.asarray(b, float))
        return self.json("separate", "a.npy", "b.npy", *options)

    def check_bounds(self, got, a, b):
        """Margin and residual are bounds, by the definitions and without rounding."""
        if got["normal"]:
            normal = [Fraction(x) for x in got["normal"]]
            gap = min(dot(normal, row) for row in a) - max(dot(normal, row) for row in b)
            square = dot(normal, normal)
            self.assertLessEqual(Fraction(got["margin"]) * abs(Fraction(got["margin"])) * square, gap * abs(gap))
        sums = [sum(Fraction(share["weight"]) for share in got[side]) for side in "ab"]
        point = [[sum(Fraction(share["weight"]) * rows[share["row"]][i] for share in got[side]) / total
                  for i in range(len(rows[0]))] for side, rows, total in (("a", a, sums[0]), ("b", b, sums[1]))]
        difference = [x - y for x, y in zip(*point)]
        self.assertLessEqual(dot(difference, difference), Fraction(got["residual"]) ** 2)
        if got["separable"] == "yes":
            self.assertLessEqual(got["margin"], got["residual"])

    def check_certificate(self, got, a, b):
        """The integers of the exact answer prove it."""
        exact = got["exact"]
        self.assertEqual(exact["separable"], got["separable"])
        if exact["separable"] == "yes":
            normal = [int(x) for x in exact["normal"]]
            self.assertGreater(min(dot(normal, row) for row in a), max(dot(normal, row) for row in b))
            return
        self.assertEqual(exact["separable"], "no")
        points = []
        for side, rows in (("a", a), ("b", b)):
            numerators = [int(share["numerator"]) for share in exact[side]]
            self.assertTrue(all(numerator > 0 for numerator in numerators))
            self.assertEqual(sum(numerators), int(exact["denominator"]))
            points.append([sum(n * rows[share["row"]][i] for n, share in zip(numerators, exact[side]))
                           for i in range(len(rows[0]))])
        self.assertEqual(*points)

    def decide(self, a, b, *options):
        got = self.separate(a, b, "--exact", *options)
        (self.folder / "result.json").write_text(json.dumps(got))
        verified = self.run_command("verify", "result.json", "a.npy", "b.npy")
        self.assertEqual(verified.returncode, 0, verified.stdout)
        a, b = fractions(a), fractions(b)
        self.check_bounds(got, a, b)
        self.check_certificate(got, a, b)
        return got["separable"]

    def test_certificates_hold(self):
        random = np.random.default_rng(1)
        for shift in (0.0, 0.4, 3.0):
            a, b = random.normal(size=(20, 4)), random.normal(size=(15, 4))
            a[:, 0] += shift
            plain = self.separate(a, b)["separable"]
            self.assertEqual(self.decide(a, b), plain)
        self.assertEqual(self.decide([[0, 0], [3, 3]], [[1, 1], [5, 0]]), "no")
        self.assertEqual(self.decide([[0, 0], [3, 3]], [[1, np.nextafter(1, 0)], [5, 0]]), "yes")

    def test_far_and_unscaled_and_thin_sets(self):
        random = np.random.default_rng(2)
        for trial in range(4):
            a, b = random.normal(size=(9, 3)), random.normal(size=(9, 3))
            a[:, 0] = np.abs(a[:, 0]) + 1e-7
            b[:, 0] = -np.abs(b[:, 0])
            self.assertEqual(self.separate(a, b)["separable"], "yes")
            columns = 10.0 ** random.uniform(-5, 5, 3)
            got = self.separate(a * columns, b * columns)
            self.assertEqual(got["separable"], "yes")
            self.check_bounds(got, fractions(a * columns), fractions(b * columns))
            self.assertEqual(self.decide(a * columns + 1e9, b * columns + 1e9, "--tolerance", 0),
                             self.separate(a * columns + 1e9, b * columns + 1e9)["separable"])
        a, b = [[1e8, 1e8], [1e8 + 2, 1e8 + 2]], [[1e8, 1e8 + 2], [1e8 + 2, 1e8]]
        self.assertEqual(self.separate(a, b)["separable"], "no")
        self.assertEqual(self.decide(a, b), "no")

    def test_values_at_the_ends_of_the_range(self):
        for a, b in (([[1e30], [1e30]], [[-1e30], [1]]), ([[1e-60]], [[0]]), ([[1e-60, 2e-60]], [[5e-60, 6e-60]]),
                     ([[1e30, 1e-60]], [[1e30, 0]])):
            self.assertEqual(self.decide(a, b), "yes")
        for value, reason in ((1e31, "row 0 of A has 1e+31"), (5e-324, "column 0 extends over 4.94e-324")):
            np.save(self.folder / "a.npy", [[value]])
            np.save(self.folder / "b.npy", [[0.0]])
            self.assertIn(reason, self.fails(3, "separate", "a.npy", "b.npy", "--exact"))
        self.assertEqual(self.separate([[3, 4]], [[3, 4]])["margin"], None)

    def test_ratios_are_independent_of_scale(self):
        random = np.random.default_rng(3)
        a, b = random.normal(size=(9, 3)), random.normal(size=(7, 3)) + 0.5
        plain = self.separate(a, b)
        for exponent in (-190, -60, 60, 95):
            got = self.separate(np.ldexp(a, exponent), np.ldexp(b, exponent))
            for name in ("ssr", "lssr", "direction", "rank", "normal", "separable"):
                self.assertEqual(got[name], plain[name], (name, exponent))
            self.assertEqual(got["margin"], np.ldexp(plain["margin"], exponent))

    def test_what_is_undecided_says_how_it_is_decided(self):
        # In float64, 0.3 and 0.9 are not three times 0.1 and 0.3: the rounding of the segment's middle decides.
        a, b = [[0.1, 0.3], [0.3, 0.9]], [[0.2, np.nextafter(0.6, 1)], [0.2, 9]]
        self.assertEqual(self.decide(a, b), "yes")
        self.assertEqual(self.decide(a, [[0.2, 0.5], [0.2, 9]]), "no")
        # These meet, but with a tolerance of 0 rounded weights do not prove it.
        got = self.separate(a, [[0.2, 0.5], [0.2, 9]], "--tolerance", 0)
        self.assertEqual(got["separable"], "undecided")
        self.assertIn("--exact decides it", self.ok("separate", "a.npy", "b.npy", "--tolerance", 0))
        np.save(self.folder / "x.npy", np.eye(3))
        np.save(self.folder / "labels.npy", [0, 1, 2])
        self.assertIn("--exact over 3 classes",
                      self.fails(3, "separate", "x.npy", "--labels", "labels.npy", "--exact"))

    @unittest.skipIf(SANITIZED, "too much arithmetic for a sanitizer")
    def test_real_digits_by_halves(self):
        images = MNIST / "train-images-idx3-ubyte.gz"
        if not images.exists():
            self.skipTest(f"real data absent: {images}")
        with gzip.open(images) as file:
            x = np.frombuffer(file.read(16 + 784 * 12000), np.uint8, offset=16).reshape(-1, 14, 2, 14, 2)
        with gzip.open(MNIST / "train-labels-idx1-ubyte.gz") as file:
            labels = np.frombuffer(file.read(), np.uint8, offset=8)[:12000]
        x = x.sum((2, 4)).reshape(-1, 196).astype(float)
        got = self.separate(x[labels == 3][:1000], x[labels == 8][:1000], "--exact")
        self.assertEqual((got["separable"], got["exact"]["separable"]), ("no", "no"))
        self.assertLess(got["residual"], 1e-14 * got["scale"])
        # Weights are integers over a denominator of hundreds of digits, and their sum is exact in every digit.
        a, b = (x[labels == label][:1000].astype(int).tolist() for label in (3, 8))
        self.check_certificate(got, a, b)
        got = self.separate(x[labels == 5][:400], x[labels == 8][:400])
        self.assertEqual(got["separable"], "yes")
        self.assertGreater(got["margin"], got["residual"] * (1 - 1e-12))


if __name__ == "__main__":
    unittest.main()

"""`normscope separate`: SSR, LSSR and linear separability, with proofs checked here independently."""

import gzip
import signal
import subprocess
import time
import unittest

import numpy as np

from command import CHECKPOINTS, COMMAND, SANITIZED, CommandTest

MNIST = CHECKPOINTS.parent / "mnist"


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

    def test_labels_give_what_two_files_give(self):
        random = np.random.default_rng(5)
        x, labels = random.normal(size=(90, 2, 3)), random.integers(-1, 2, 90)
        x[labels == 1] += 5.0
        np.save(self.folder / "x.npy", x)
        np.save(self.folder / "labels.npy", labels)
        flat = x.reshape(90, 6)
        self.save(flat[labels == 1], flat[labels == -1])
        expected = self.separate()
        got = self.json("separate", "x.npy", "--labels", "labels.npy", "--classes=1,-1")
        self.assertEqual(got.pop("classes"), [1, -1])
        self.assertEqual([array["role"] for array in got.pop("inputs")["arrays"]], ["samples", "labels"])
        self.assertEqual([array["role"] for array in expected.pop("inputs")["arrays"]], ["a", "b"])
        for side, label in (("a", 1), ("b", -1)):
            rows = np.flatnonzero(labels == label)
            for share in expected[side]:
                share["row"] = rows[share["row"]]
        self.assertEqual(got, expected)
        several = self.json("separate", "x.npy", "--labels", "labels.npy")
        self.assertEqual(several["classes"], [-1, 0, 1])
        self.assertEqual(several["rows"], [int((labels == label).sum()) for label in (-1, 0, 1)])
        self.assertNotIn("separable", several)

    def test_answers_do_not_depend_on_threads(self):
        random = np.random.default_rng(6)
        self.save(random.normal(size=(900, 12)), random.normal(size=(700, 12)) + 1.0)
        self.assertEqual(self.separate("--threads", 1), self.separate("--threads", 3))

    @unittest.skipIf(SANITIZED, "too much arithmetic for a sanitizer")
    def test_real_digits(self):
        images = MNIST / "t10k-images-idx3-ubyte.gz"
        if not images.exists():
            self.skipTest(f"real data absent: {images}")
        names = [images, "--labels", MNIST / "t10k-labels-idx1-ubyte.gz"]
        x = np.frombuffer(gzip.open(images).read(), np.uint8, offset=16).reshape(10000, 784).astype(float)
        labels = np.frombuffer(gzip.open(names[2]).read(), np.uint8, offset=8)
        got = self.json("separate", *names)
        centred = x - x.mean(0)
        values, vectors = np.linalg.eigh(centred.T @ centred)
        kept = values > 1e-14 * values[-1]
        sums = [centred[labels == c].sum(0) / (labels == c).sum() ** 0.5 for c in range(10)]
        whitened = sums @ vectors[:, kept] / np.sqrt(values[kept])
        self.assertEqual((got["classes"], got["rank"]), (list(range(10)), kept.sum()))
        self.assertAlmostEqual(got["lssr"], 1 - np.linalg.norm(whitened, 2) ** 2, 9)
        got = self.json("separate", *names, "--classes", "0,1", "--check")
        normal = np.array(got["normal"])
        self.assertGreater((x[labels == 0] @ normal).min(), got["offset"])
        self.assertLess((x[labels == 1] @ normal).max(), got["offset"])
        nearest = self.weighted(got["a"], x) - self.weighted(got["b"], x)
        self.assertAlmostEqual(np.linalg.norm(nearest), got["margin"], 6)

    def test_interrupted_work_says_so(self):
        np.save(self.folder / "x.npy", np.random.default_rng(7).normal(size=(30000, 300)))
        np.save(self.folder / "labels.npy", np.arange(30000) % 3)
        process = subprocess.Popen([COMMAND, "separate", "x.npy", "--labels", "labels.npy", "--json", "s.json"],
                                   cwd=self.folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        # The command may be reading or computing at that time; it must stop, unless it is done.
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=120)
        self.assertIn((process.returncode, error), ((130, "normscope: cancelled\n"), (-signal.SIGINT, ""), (0, "")))
        self.assertEqual((self.folder / "s.json").exists(), process.returncode == 0)

    def test_bad_labels_are_named(self):
        self.save(np.ones((3, 2)), np.ones((3, 2)))
        self.assertIn("one of them is needed", self.fails(2, "separate", "a.npy"))
        self.fails(2, "separate", "a.npy", "b.npy", "--labels", "b.npy")
        self.fails(2, "separate", "a.npy", "b.npy", "--classes", "0,1")
        np.save(self.folder / "l.npy", [0, 1])
        self.assertIn("l.npy has 2 labels, a.npy has 3 rows", self.fails(3, "separate", "a.npy", "--labels", "l.npy"))
        np.save(self.folder / "l.npy", [0, 1, 0.5])
        self.assertIn("label 2 is 0.5", self.fails(3, "separate", "a.npy", "--labels", "l.npy"))
        np.save(self.folder / "l.npy", [0, 0, 0])
        self.assertIn("name 1 classes", self.fails(3, "separate", "a.npy", "--labels", "l.npy"))
        self.assertIn("no row has label 7",
                      self.fails(3, "separate", "a.npy", "--labels", "l.npy", "--classes", "0,7"))
        self.fails(2, "separate", "a.npy", "--labels", "l.npy", "--classes", "0,0")
        np.save(self.folder / "l.npy", [0, 1, 2])
        self.assertIn("--check over 3 classes", self.fails(3, "separate", "a.npy", "--labels", "l.npy", "--check"))

    def test_bad_input_is_named(self):
        self.save(np.ones((3, 2)), np.ones((3, 4)))
        self.assertIn("a.npy has width 2, b.npy has width 4", self.fails(3, "separate", "a.npy", "b.npy"))
        self.save(np.ones((3, 2)), [[1, np.nan]])
        self.assertIn("b.npy: row 0 has nan in column 1", self.fails(3, "separate", "a.npy", "b.npy"))
        self.save(np.ones((3, 2)), np.ones((0, 2)))
        self.assertIn("b.npy: is empty", self.fails(3, "separate", "a.npy", "b.npy"))


if __name__ == "__main__":
    unittest.main()

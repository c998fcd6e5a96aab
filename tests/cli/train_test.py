"""`normscope nets train`: results, resuming, figures, bad input."""

import gzip
import json
import os
import resource
import signal
import subprocess
import time
import unittest
from pathlib import Path

import numpy as np

from command import COMMAND, CommandTest, safetensors

MNIST = Path(os.environ["NORMSCOPE_DATA"]) / "mnist"
CIFAR10 = Path(os.environ["NORMSCOPE_DATA"]) / "cifar10"


def idx(path, array):
    """Writes bytes as an IDX file."""
    array = np.asarray(array, np.uint8)
    head = bytes([0, 0, 8, array.ndim]) + b"".join(n.to_bytes(4, "big") for n in array.shape)
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wb") as file:
        file.write(head + array.tobytes())


class Train(CommandTest):
    def test_spiral_is_learned_by_three_features(self):
        got = self.json("nets", "train", "spiral", "--seeds", 2)
        self.assertGreater(got["test"]["accuracy"], 0.98)
        self.assertEqual((got["net"]["width"], got["net"]["depth"], got["steps"]), (3, 2, 8000))
        self.assertEqual([run["seed"] for run in got["runs"]], [1, 2])
        self.assertEqual(len(got["loss"]), 800)
        self.assertLess(got["loss"][-1], 0.3 * got["loss"][0])

    def test_without_a_norm_the_same_net_is_linear(self):
        got = self.json("nets", "train", "spiral", "--activation", "none", "--steps", 2000)
        self.assertLess(got["test"]["accuracy"], 0.7)

    def test_noise_makes_a_task_harder(self):
        options = ("nets", "train", "xor")
        clean, noisy = self.json(*options), self.json(*options, "--noise", 0.5)
        self.assertEqual(self.json(*options, "--noise", 0), clean)
        self.assertGreater(clean["test"]["accuracy"], 0.99)
        self.assertLess(noisy["test"]["accuracy"], 0.97)

    def test_samples_and_labels_from_files(self):
        random = np.random.default_rng(3)
        x = random.normal(size=(200, 4))
        np.save(self.folder / "x.npy", x)
        np.save(self.folder / "y.npy", (x[:, 0] > 0).astype(np.int64) + (x[:, 1] > 0))
        got = self.json("nets", "train", "x.npy", "y.npy", "--width", 8, "--groups", 2, "--norm", "layer", "--steps", 400,
                        "--batch", 64, "--schedule", "cosine", "--affine")
        self.assertEqual((got["rows"], got["features"], got["classes"], got["test"]), (200, 4, 3, None))
        self.assertGreater(got["train"]["accuracy"], 0.95)

    def test_threads_do_not_change_the_document(self):
        options = ("nets", "train", "random-labels", "--width", 64, "--steps", 20)
        self.assertEqual(self.json(*options, "--threads", 1), self.json(*options, "--threads", 3))

    def test_figures(self):
        self.ok("nets", "train", "spiral", "--steps", 50, "--seeds", 3, "--figures", "figures", "--quiet")
        for name in ("curves.vl.json", "boundary.vl.json", "seeds.vl.json"):
            self.assertIn("vega-lite", json.loads((self.folder / "figures" / name).read_text())["$schema"])
        self.assertFalse((self.folder / "figures/groups.vl.json").exists())
        morph = json.loads((self.folder / "figures/morph.json").read_text())
        self.conforms("morph", morph)
        self.assertEqual(np.array(morph["states"]).shape, (3, 300, 3))

    def test_the_morph_is_what_run_traces(self):
        np.save(self.folder / "x.npy", np.random.default_rng(1).normal(size=(40, 2)))
        np.save(self.folder / "y.npy", np.arange(40) % 2)
        self.ok("nets", "train", "x.npy", "y.npy", "--steps", 20, "--figures", "figures", "-o", "net.safetensors")
        self.ok("nets", "run", "net.safetensors", "x.npy", "--trace", "trace.npy")
        states = np.array(json.loads((self.folder / "figures/morph.json").read_text())["states"])
        trace = np.load(self.folder / "trace.npy")
        np.testing.assert_allclose(states[1], trace[:, :3], atol=5e-5)
        np.testing.assert_allclose(states[2], trace[:, 3:], atol=5e-5)

    def test_several_groups_and_a_linear_net(self):
        got = self.json("nets", "train", "random-labels", "--rows", 200, "--steps", 100, "--width", 32, "--groups", "1,8",
                        "--figures", "figures")
        self.assertEqual([run["groups"] for run in got["runs"]], [None, 1, 8])
        self.assertEqual(got["net"]["groups"], 8)
        accuracy = [run["train"]["accuracy"] for run in got["runs"]]
        self.assertGreater(accuracy[2], accuracy[1])
        self.assertTrue((self.folder / "figures/groups.vl.json").exists())

    def test_resumes_from_a_saved_state(self):
        options = ("nets", "train", "xor", "--steps", 300, "--batch", 50)
        whole = self.json(*options)
        first = self.json(*options, "--resume", "state.safetensors")
        # The state of a finished training, after which nothing is left to do.
        again = self.json(*options, "--resume", "state.safetensors")
        self.assertEqual(first, whole)
        self.assertEqual(again, whole)
        self.assertIn("other options", self.fails(3, *options, "--seed", 5, "--resume", "state.safetensors"))

    def test_the_net_gives_the_same_labels_in_run(self):
        random = np.random.default_rng(5)
        x = random.normal(size=(150, 4))
        np.save(self.folder / "x.npy", x)
        for name, classes, options in (
                ("two", 2, ()), ("five", 5, ("--norm", "layer", "--width", 8, "--groups", 2, "--affine")),
                ("rms", 3, ("--norm", "rms", "--width", 4, "--eps", 0.01)),
                ("relu", 3, ("--activation", "relu")), ("gelu", 2, ("--activation", "gelu")),
                ("none", 3, ("--activation", "none")), ("head", 3, ("--depth", 0))):
            with self.subTest(name):
                labels = np.arange(150) % classes
                np.save(self.folder / "y.npy", labels)
                got = self.json("nets", "train", "x.npy", "y.npy", "--steps", 60, "-o", f"{name}.safetensors", *options)
                self.assertEqual(got["output"], f"{name}.safetensors")
                given = self.json("nets", "run", f"{name}.safetensors", "x.npy")["labels"]
                self.assertAlmostEqual(np.mean(given == labels), got["train"]["accuracy"], places=12)

    def test_every_kind_of_array(self):
        x = np.random.default_rng(2).integers(0, 255, size=(60, 3)).astype(np.float64)
        y = np.arange(60) % 3
        np.save(self.folder / "x.npy", x)
        np.save(self.folder / "y.npy", y)
        np.savez(self.folder / "both.npz", x=x, y=y)
        safetensors(self.folder / "both.safetensors", {"x": x, "y": y.astype(np.float32)})
        idx(self.folder / "x.idx", x)
        idx(self.folder / "y.idx.gz", y)
        results = [self.json("nets", "train", *names, "--steps", 30)["loss"] for names in (
            ("x.npy", "y.npy"), ("both.npz:x", "both.npz:y"), ("both.safetensors:x", "both.safetensors:y"),
            ("x.idx", "y.idx.gz"))]
        for result in results[1:]:
            self.assertEqual(result, results[0])

    def image_folder(self):
        random = np.random.default_rng(4)
        for part, rows in (("train", 80), ("t10k", 20)):
            labels = np.arange(rows) % 10
            images = random.integers(0, 15, size=(rows, 4, 4)) + 19 * labels[:, None, None]
            idx(self.folder / f"{part}-images-idx3-ubyte", images)
            idx(self.folder / f"{part}-labels-idx1-ubyte.gz", labels)

    def test_a_net_of_images_reads_their_bytes(self):
        self.image_folder()
        got = self.json("nets", "train", "mnist:.", "--width", 16, "--groups", 4, "--steps", 300, "--batch", 16, "--lr", 0.02,
                        "-o", "net.safetensors")
        self.assertEqual((got["rows"], got["features"], got["classes"]), (80, 16, 10))
        self.assertGreater(got["test"]["accuracy"], 0.7)
        given = self.json("nets", "run", "net.safetensors", "t10k-images-idx3-ubyte")["labels"]
        self.assertAlmostEqual(np.mean(given == np.arange(20) % 10), got["test"]["accuracy"], places=12)
        random = self.json("nets", "train", "random-labels:mnist:.", "--rows", 40, "--width", 16, "--steps", 5)
        self.assertEqual((random["rows"], random["test"]), (40, None))

    @unittest.skipUnless(CIFAR10.is_dir(), f"real data absent: {CIFAR10}")
    def test_real_cifar10(self):
        got = self.json("nets", "train", f"random-labels:cifar10:{CIFAR10}", "--rows", 100, "--steps", 2)
        self.assertEqual((got["rows"], got["features"], got["classes"]), (100, 3072, 10))

    def killed(self, how, *options):
        """A training that was ended by `how` once it had saved its state."""
        state = self.folder / "state.safetensors"
        with subprocess.Popen([COMMAND, *map(str, options), "--resume", state], cwd=self.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            deadline = time.monotonic() + 60
            while not state.exists() and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            process.send_signal(how)
            process.communicate()
        return process.returncode

    def long_training(self):
        """Options of a training that takes most of a second, three times as long as until its first save."""
        steps = 20000
        while True:
            options = ("nets", "train", "spiral", "--steps", steps, "--batch", 100, "-o", "net.safetensors", "-q")
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            self.ok(*options)
            if resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before >= 0.75:
                return options
            steps *= 2

    def test_a_killed_training_resumes_to_the_same_bytes(self):
        options = self.long_training()
        whole = (self.folder / "net.safetensors").read_bytes()
        for how, status in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)):
            with self.subTest(how):
                (self.folder / "net.safetensors").unlink()
                self.assertEqual(self.killed(how, *options), status)
                self.assertFalse((self.folder / "net.safetensors").exists())
                self.ok(*options, "--resume", "state.safetensors")
                self.assertEqual((self.folder / "net.safetensors").read_bytes(), whole)
                (self.folder / "state.safetensors").unlink()

    def test_conflicting_labels_are_reported(self):
        np.save(self.folder / "x.npy", np.array([[1.0, 2], [3, 4], [1, 2], [1, 2]]))
        np.save(self.folder / "y.npy", np.array([0, 1, 1, 0]))
        self.assertEqual(self.json("nets", "train", "x.npy", "y.npy", "--steps", 5)["conflicts"], 1)
        said = self.ok("nets", "train", "x.npy", "y.npy", "--steps", 5)
        self.assertIn("1 of 4 rows equals an earlier row with another label", said)
        self.assertIn("row 2, which equals row 0", said)

    def test_bad_input(self):
        np.save(self.folder / "x.npy", np.ones((4, 2)))
        np.save(self.folder / "nan.npy", np.full((4, 2), np.nan))
        np.save(self.folder / "half.npy", np.array([0, 1, 0.5, 1]))
        np.save(self.folder / "minus.npy", np.array([0, 1, -1, 1]))
        np.save(self.folder / "one.npy", np.zeros(4))
        np.save(self.folder / "y.npy", np.array([0, 1, 0, 1]))
        np.save(self.folder / "short.npy", np.array([0, 1]))
        np.save(self.folder / "table.npy", np.array([[0, 1], [0, 1]]))
        np.save(self.folder / "empty.npy", np.ones((0, 2)))
        (self.folder / "folder").mkdir()
        for message, arguments in (
                ("expected LABELS after it", ("x.npy",)),
                ("label 2 is 0.5, expected an integer", ("x.npy", "half.npy")),
                ("the label of row 2 is -1, expected an integer from 0", ("x.npy", "minus.npy")),
                ("1 class, expected at least 2", ("x.npy", "one.npy")),
                ("row 0 holds nan", ("nan.npy", "y.npy")),
                ("2 labels for 4 rows", ("x.npy", "short.npy")),
                ("has 2 axes, expected one axis of labels", ("x.npy", "table.npy")),
                ("has no samples", ("empty.npy", "y.npy")),
                ("3 groups do not divide width 4", ("xor", "--width", 4, "--groups", 3)),
                ("leaves a layer norm one feature", ("xor", "--width", 1, "--norm", "layer")),
                ("leaves a layer norm one feature", ("xor", "--width", 4, "--groups", 4, "--norm", "layer")),
                ("eps is 0", ("xor", "--eps", 0)),
                ("spirl: is neither a task (spiral,", ("spirl",)),
                ("has no train-images-idx3-ubyte", ("mnist:folder",)),
                ("has no data_batch_1.bin", ("random-labels:cifar10:nowhere",)),
                ("is a task and has its own labels", ("xor", "y.npy")),
                ("--rows applies to tasks only", ("x.npy", "y.npy", "--rows", 2)),
                ("--noise applies to tasks only", ("x.npy", "y.npy", "--noise", 0.1)),
                ("3 runs, expected one", ("random-labels", "--rows", 9, "--groups", "1,2", "--resume", "s")),
                ("would overwrite", ("x.npy", "y.npy", "-o", "x.npy")),
                ("would overwrite", ("xor", "-o", "a", "--json", "a"))):
            with self.subTest(message):
                self.assertIn(message, self.fails(3, "nets", "train", *arguments))
        for wrong in (("--batch", 0), ("--width", 0), ("--groups", 0), ("--steps", -1), ("--lr", -1), ("--noise", -1),
                      ("--norm", "batch"), ("--seeds", 2, "--resume", "s.safetensors")):
            with self.subTest(wrong):
                self.fails(2, "nets", "train", "xor", *wrong)

    @unittest.skipUnless(MNIST.is_dir(), f"real data absent: {MNIST}")
    def test_too_many_images(self):
        self.assertIn("has 60000 images, but 60001 were requested",
                      self.fails(3, "nets", "train", f"mnist:{MNIST}", "--rows", 60001))


if __name__ == "__main__":
    unittest.main()

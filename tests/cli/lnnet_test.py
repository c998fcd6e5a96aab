"""`normscope nets build` and `normscope nets run`."""

import gzip
import json
import os
import signal
import struct
import subprocess
import sys
import unittest

import numpy as np

from command import COMMAND, SOURCE, CommandTest


class Build(CommandTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(1)
        self.x, self.labels = random.normal(size=(400, 5)), random.integers(-1, 3, 400)
        np.save(self.folder / "x.npy", self.x)
        np.save(self.folder / "labels.npy", self.labels)

    def build(self, *options):
        return self.json("nets", "build", "x.npy", "labels.npy", "-o", "net.safetensors", *options)

    def test_build_then_run_gives_every_label(self):
        made = self.build("--folds", "folds.jsonl")
        self.assertEqual((made["correct"], made["total"], made["width"]), (400, 400, 3))
        self.assertLessEqual(made["layers"], 396)
        ran = self.json("nets", "run", "net.safetensors", "x.npy", "-o", "given.npy", "--trace", "trace.npy")
        self.assertEqual(ran["labels"], self.labels.tolist())
        np.testing.assert_array_equal(np.load(self.folder / "given.npy"), self.labels)
        self.assertEqual(np.load(self.folder / "trace.npy").shape, (400, 3 * made["layers"]))
        folds = [json.loads(line) for line in (self.folder / "folds.jsonl").read_text().splitlines()]
        self.assertEqual(len(folds), made["layers"])
        for fold in folds:
            if fold["pair"]:
                self.assertEqual(*self.labels[fold["pair"]])
        self.assertEqual(folds[-1]["runs"], 4)

    def foreign(self, x):
        """The labels according to foreign_net.py, which uses neither normscope nor any package."""
        rows = "".join(" ".join(map(repr, row)) + "\n" for row in x.tolist())
        done = subprocess.run([sys.executable, "-I", SOURCE / "tests/cli/foreign_net.py", self.folder / "net.safetensors"],
                              input=rows, capture_output=True, text=True, check=True)
        return [int(line) for line in done.stdout.split()]

    def test_the_file_is_readable_without_normscope(self):
        self.build()
        self.assertEqual(self.foreign(self.x), self.labels.tolist())
        self.build("--eps", 1e-5)
        self.assertEqual(self.foreign(self.x), self.labels.tolist())

    def test_a_double_double_net_is_readable_too(self):
        x = np.stack([np.ones(60), np.random.default_rng(4).normal(size=60) * 1e-22], 1)
        np.save(self.folder / "x.npy", x)
        np.save(self.folder / "labels.npy", self.labels[:60])
        made = self.build()
        self.assertEqual((made["precision"], made["correct"]), ("double-double", 60))
        self.assertEqual(self.json("nets", "run", "net.safetensors", "x.npy")["labels"], self.labels[:60].tolist())
        self.assertEqual(self.foreign(x), self.labels[:60].tolist())

    def test_trace_and_figure(self):
        made = self.build("--folds", "folds.jsonl", "--figures", "figures")
        folds = [json.loads(line) for line in (self.folder / "folds.jsonl").read_text().splitlines()]
        for number, fold in enumerate(folds):
            self.conforms("build-trace", fold)
            self.assertEqual(fold["layer"], number)
        runs = [fold["runs"] for fold in folds]
        self.assertEqual((min(runs), runs[-1]), (4, 4))
        figure = json.loads((self.folder / "figures/folds.vl.json").read_text())
        self.assertEqual(figure["data"]["values"][-1]["layer"], made["layers"])

    def test_paper_mode_says_when_its_precision_ends(self):
        done = self.run_command("nets", "build", "x.npy", "labels.npy", "-o", "net.safetensors", "--mode", "paper")
        self.assertEqual((done.returncode, done.stderr), (1, ""))

    def test_a_killed_build_resumes_to_the_same_bytes(self):
        np.save(self.folder / "x.npy", np.random.default_rng(2).normal(size=(10000, 2)))
        words = ["nets", "build", "x.npy", "--random-labels", "2", "--resume", "state"]
        self.ok(*words[:-2], "-o", "whole.safetensors")
        process = subprocess.Popen([COMMAND, *words, "-o", "net.safetensors"], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while not (self.folder / "state").exists() and process.poll() is None:
            os.sched_yield()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        self.assertTrue((self.folder / "state").exists())
        self.assertFalse((self.folder / "net.safetensors").exists())
        self.ok(*words, "-o", "net.safetensors")
        self.assertEqual((self.folder / "net.safetensors").read_bytes(), (self.folder / "whole.safetensors").read_bytes())
        self.assertFalse((self.folder / "state").exists())

    def test_idx_files_and_random_labels(self):
        pixels = np.random.default_rng(3).integers(0, 256, (50, 4, 4), np.uint8)
        header = b"\0\0\x08\x03" + struct.pack(">3I", *pixels.shape)
        (self.folder / "i-idx3-ubyte.gz").write_bytes(gzip.compress(header + pixels.tobytes()))
        made = self.json("nets", "build", "i-idx3-ubyte.gz", "--random-labels", 10, "-o", "net.safetensors")
        self.assertEqual((made["correct"], made["total"]), (50, 50))

    def test_run_refuses_other_files(self):
        self.assertIn("labels.npy", self.fails(3, "nets", "run", "labels.npy", "x.npy"))
        self.build()
        np.save(self.folder / "wide.npy", np.ones((3, 6)))
        self.assertIn("x has 6 features, the net reads 5", self.fails(3, "nets", "run", "net.safetensors", "wide.npy"))


if __name__ == "__main__":
    unittest.main()

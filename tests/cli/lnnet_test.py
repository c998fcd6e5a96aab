"""What build and run promise."""

import gzip
import json
import os
import signal
import struct
import subprocess
import unittest

import numpy as np

from command import COMMAND, CommandTest


def read_safetensors(path):
    """The tensors and the metadata of a file of float64, read without normscope."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__")
    return {name: np.frombuffer(data[8 + size:], np.float64, int(np.prod(entry["shape"])),
                                entry["data_offsets"][0]).reshape(entry["shape"])
            for name, entry in header.items()}, metadata


class Build(CommandTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(1)
        self.x, self.labels = random.normal(size=(400, 5)), random.integers(-1, 3, 400)
        np.save(self.folder / "x.npy", self.x)
        np.save(self.folder / "labels.npy", self.labels)

    def build(self, *options):
        return self.json("build", "x.npy", "labels.npy", "-o", "net.safetensors", *options)

    def test_build_then_run_gives_every_label(self):
        made = self.build("--trace", "folds.jsonl")
        self.assertEqual((made["correct"], made["total"], made["width"]), (400, 400, 3))
        self.assertLessEqual(made["layers"], 396)
        ran = self.json("run", "net.safetensors", "x.npy", "-o", "given.npy", "--trace", "trace.npy")
        self.assertEqual(ran["labels"], self.labels.tolist())
        np.testing.assert_array_equal(np.load(self.folder / "given.npy"), self.labels)
        self.assertEqual(np.load(self.folder / "trace.npy").shape, (400, 3 * made["layers"]))
        folds = [json.loads(line) for line in (self.folder / "folds.jsonl").read_text().splitlines()]
        self.assertEqual(len(folds), made["layers"])
        for fold in folds:
            if fold["pair"]:
                self.assertEqual(*self.labels[fold["pair"]])
        self.assertEqual(folds[-1]["runs"], 4)

    def test_the_file_is_readable_by_anyone(self):
        made = self.build()
        tensors, metadata = read_safetensors(self.folder / "net.safetensors")
        net = json.loads(metadata["normscope.lnnet"])
        self.assertEqual(sum(entry["count"] for entry in net["layers"]), made["layers"])
        now = self.x
        for i in range(len(net["layers"])):
            for weight, bias in zip(tensors[f"layers.{i}.weight"], tensors[f"layers.{i}.bias"]):
                # Term by term, as documented: numpy's own product may sum in another order.
                now = sum(now[:, [k]] * weight[:, k] for k in range(weight.shape[1])) + bias
                now = now - now.sum(1, keepdims=True) / 3
                now = now / np.sqrt((now ** 2).sum(1, keepdims=True) / 3)
        outputs = now @ tensors["head.weight"].T + tensors["head.bias"]
        np.testing.assert_array_equal(np.array(net["classes"])[outputs.argmax(1)], self.labels)

    def test_paper_mode_says_when_its_precision_ends(self):
        done = self.run_command("build", "x.npy", "labels.npy", "-o", "net.safetensors", "--mode", "paper")
        self.assertEqual((done.returncode, done.stderr), (1, ""))

    def test_a_killed_build_goes_on_to_the_same_bytes(self):
        np.save(self.folder / "x.npy", np.random.default_rng(2).normal(size=(10000, 2)))
        words = ["build", "x.npy", "--random-labels", "2", "--resume", "state"]
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
        made = self.json("build", "i-idx3-ubyte.gz", "--random-labels", 10, "-o", "net.safetensors")
        self.assertEqual((made["correct"], made["total"]), (50, 50))

    def test_equal_rows(self):
        np.save(self.folder / "x.npy", np.ones((3, 2)))
        np.save(self.folder / "labels.npy", np.array([4, 4, 5]))
        self.assertIn("rows 0 and 2 are equal, their labels are 4 and 5",
                      self.fails(3, "build", "x.npy", "labels.npy", "-o", "net.safetensors"))
        made = self.json("build", "x.npy", "labels.npy", "-o", "net.safetensors", "--drop-conflicts")
        self.assertEqual((made["layers"], made["classes"], made["relabelled"]), (0, [4], 1))
        self.assertEqual(self.json("run", "net.safetensors", "x.npy")["labels"], [4, 4, 4])

    def test_bad_input(self):
        np.save(self.folder / "half.npy", np.array([0.5] * 400))
        np.save(self.folder / "empty.npy", np.zeros((0, 5)))
        np.save(self.folder / "nan.npy", np.full((400, 5), np.nan))
        output = ("-o", "net.safetensors")
        for message, *words in (("label 0 is 0.5, expected an integer", "build", "x.npy", "half.npy", *output),
                                ("has no samples", "build", "empty.npy", "labels.npy", *output),
                                ("x[0][0] is nan", "build", "nan.npy", "labels.npy", *output),
                                ("has 2 axes", "build", "x.npy", "x.npy", *output),
                                ("either LABELS or", "build", "x.npy", *output),
                                ("x.npy", "build", "x.npy", "labels.npy", "-o", "x.npy"),
                                ("labels.npy", "run", "labels.npy", "x.npy")):
            self.assertIn(message, self.fails(3, *words))


if __name__ == "__main__":
    unittest.main()

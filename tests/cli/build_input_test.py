"""Messages of `normscope nets build` about inputs that it refuses, and inputs at its limits."""

import gzip
import struct
import unittest

import numpy as np

from command import CommandTest, safetensors

OUTPUT = ("-o", "net.safetensors")


class BuildInput(CommandTest):
    def save(self, name, values):
        np.save(self.folder / name, np.array(values))
        return name

    def refused(self, message, *words):
        self.assertIn(message, self.fails(3, "nets", "build", *words, *OUTPUT))

    def test_samples_and_labels_that_do_not_fit(self):
        x = self.save("x.npy", np.random.default_rng(1).normal(size=(6, 2)))
        labels = self.save("labels.npy", [0, 1, 0, 1, 1, 0])
        self.refused("construct: x has 6 rows, there are 5 labels", x, self.save("five.npy", [0, 1, 0, 1, 1]))
        self.refused("half.npy: label 1 is 0.5, expected an integer", x, self.save("half.npy", [0, 0.5, 1, 1, 1, 1]))
        self.refused("nan.npy: label 2 is nan, expected an integer", x, self.save("nan.npy", [0, 1, np.nan, 1, 1, 1]))
        self.refused("x.npy: has 2 axes, expected one axis of labels", x, x)
        self.refused("none.npy: has no samples, expected rows x width", self.save("none.npy", np.zeros((0, 2))), labels)
        self.refused("flat.npy: has no samples, expected rows x width", self.save("flat.npy", np.zeros((6, 0))), labels)
        self.refused("construct: x has 6 rows, there are 0 labels", x, self.save("empty.npy", np.zeros(0)))

    def test_numbers_that_are_not_finite(self):
        labels = self.save("labels.npy", [0, 1, 0])
        for value, shown in ((np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")):
            x = self.save("x.npy", [[1.0, 2.0], [3.0, value], [5.0, 6.0]])
            self.refused(f"construct: x[1][1] is {shown}, expected a finite number", x, labels)

    def test_files_that_are_something_else(self):
        x, labels = self.save("x.npy", [[1.0], [2.0]]), self.save("labels.npy", [0, 1])
        (self.folder / "text.npy").write_text("1 2 3")
        (self.folder / "i-ubyte.gz").write_bytes(gzip.compress(b"\0\0\x08\x01" + struct.pack(">I", 5) + b"123"))
        safetensors(self.folder / "m.safetensors", {"w": np.ones((2, 1))})
        self.refused("text.npy", "text.npy", labels)
        self.refused("i-ubyte.gz", "i-ubyte.gz", labels)
        self.refused("missing.npy", "missing.npy", labels)
        self.refused("m.safetensors", "m.safetensors:v", labels)
        self.refused("expected exactly one of LABELS and --random-labels", x)
        self.refused("expected exactly one of LABELS and --random-labels", x, labels, "--random-labels", 2)
        self.assertIn("x.npy", self.fails(3, "nets", "build", x, labels, "-o", "x.npy"))
        self.assertIn("labels.npy", self.fails(3, "nets", "build", x, labels, *OUTPUT, "--folds", "labels.npy"))
        for options in (("--eps", "-1"), ("--precision", "float32"), ("--mode", "fast"), ("--random-labels", "-3"),
                        ("--random-labels", "0.5")):
            self.assertEqual(self.run_command("nets", "build", x, *OUTPUT, *options).returncode, 2, options)

    def test_one_class_gives_a_constant_net_and_a_note(self):
        x, labels = self.save("x.npy", [[1.0], [2.0], [2.0]]), self.save("labels.npy", [7, 7, 7])
        self.assertIn("one class, a constant head", self.ok("nets", "build", x, labels, *OUTPUT))
        made = self.json("nets", "build", x, labels, *OUTPUT)
        self.assertEqual((made["layers"], made["width"], made["classes"], made["correct"]), (0, 0, [7], 3))
        self.assertEqual(self.json("nets", "run", "net.safetensors", x)["labels"], [7, 7, 7])
        self.assertEqual(self.json("nets", "build", self.save("one.npy", [[5.0]]), "--random-labels", 2, *OUTPUT)["total"], 1)

    def test_equal_rows_are_one_sample(self):
        x, labels = self.save("x.npy", [[1.0], [2.0], [1.0]]), self.save("labels.npy", [4, 4, 5])
        self.refused("construct: rows 0 and 2 are equal, their labels are 4 and 5; expected one label a sample", x, labels)
        said = self.ok("nets", "build", x, labels, *OUTPUT, "--drop-conflicts")
        self.assertIn("1 rows equal an earlier row and were given its label", said)
        made = self.json("nets", "build", x, self.save("agreeing.npy", [4, 5, 4]), *OUTPUT)
        self.assertEqual((made["distinct"], made["relabelled"], made["correct"]), (2, 0, 3))
        zeros = self.save("zeros.npy", [[0.0], [-0.0]])
        self.refused("rows 0 and 1 are equal", zeros, self.save("two.npy", [0, 1]))

    def test_one_feature_is_enough(self):
        x = self.save("x.npy", np.arange(50.0))
        made = self.json("nets", "build", x, "--random-labels", 3, *OUTPUT)
        self.assertEqual((made["correct"], made["total"]), (50, 50))

    def test_samples_too_crowded_for_the_precision(self):
        x = self.save("x.npy", [[1.0, 0.0], [1.0, 1e-25], [1.0, 3e-25]])
        labels = self.save("labels.npy", [0, 1, 0])
        self.refused("construct: no projection in float64 tells all samples of different labels apart, expected samples "
                     "further apart", x, labels, "--precision", "float64")
        self.assertEqual(self.json("nets", "build", x, labels, *OUTPUT)["precision"], "double-double")
        far = self.save("far.npy", [[1e150, 0.0], [1e150, 1.0], [1e150, 3.0]])
        self.refused("no projection in double-double tells", far, labels)


if __name__ == "__main__":
    unittest.main()

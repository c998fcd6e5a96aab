"""Files that other processes change while a model is open: an OSError, never numbers of two files or the end of the process."""

import os
import shutil
import tempfile
import threading
import unittest
from pathlib import Path

import normscope as ns
import numpy as np

MODEL = Path(os.environ["NORMSCOPE_SOURCE_DIR"]) / "models/wordlist_gpt"


class ChangedFiles(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name) / "m"
        shutil.copytree(MODEL, self.folder)
        self.file = self.folder / "model.safetensors"
        self.model = ns.open(self.folder)

    def raises(self, what):
        for read in (self.model.report, self.model.ranges, self.model.heads, self.model.inspect,
                     lambda: self.model.norm("transformer.ln_f"), lambda: self.model.tensor("transformer.ln_f.weight")):
            with self.assertRaisesRegex(OSError, what):
                read()

    def test_a_file_that_stays_is_read(self):
        self.assertGreater(len(self.model.inspect().norms), 0)

    def test_overwritten(self):
        with open(self.file, "r+b") as file:
            file.seek(-4, os.SEEK_END)
            file.write(b"abcd")
        self.raises("model.safetensors: was changed since it was opened")

    def test_truncated(self):
        os.truncate(self.file, 100)
        self.raises("changed")

    def test_replaced(self):
        copy = shutil.copy(self.file, self.folder / "copy")
        os.replace(copy, self.file)
        self.raises("was replaced")

    def test_the_configuration_counts(self):
        (self.folder / "config.json").write_text("{}")
        self.raises("config.json: was changed")


class ArraysThatAreMapped(unittest.TestCase):
    def test_one_that_shrinks_fails_its_own_call_alone(self):
        hidden = np.random.default_rng(1).normal(size=(4000, 9))
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / name for name in ("short.npy", "whole.npy")]
            for file in files:
                np.save(file, hidden / np.linalg.norm(hidden, axis=1, keepdims=True) @ np.eye(9, 300))
            started, cut = threading.Event(), threading.Event()
            other = []

            def whole(*_):
                started.set()
                cut.wait(60)

            thread = threading.Thread(
                target=lambda: other.append(ns.signature.kind(files[1], progress=whole)))
            thread.start()
            started.wait(60)
            with self.assertRaisesRegex(OSError, "short.npy: was changed since it was opened"):
                ns.signature.kind(files[0], progress=lambda *_: os.truncate(files[0], 4096))
            cut.set()
            thread.join()
            self.assertEqual(len(other), 1)


if __name__ == "__main__":
    unittest.main()

"""Files that other processes change while a model is open: an OSError, never numbers of two files or the end of the process."""

import os
import shutil
import tempfile
import unittest
from pathlib import Path

import normscope as ns

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


if __name__ == "__main__":
    unittest.main()

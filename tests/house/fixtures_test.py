"""Archives of the model oracle have the same bytes however often and in whatever order they are written."""

import os
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(os.environ["NORMSCOPE_SOURCE_DIR"]) / "scripts"))

from model_oracle import fixtures


class Fixtures(unittest.TestCase):
    def test_the_same_files_make_the_same_bytes(self):
        files = {"truth.json": b"{}\n" * 50, "config.json": b"{}\n", "model.safetensors": bytes(100)}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            fixtures.write("all", files, folder)
            for member in reversed(files):
                fixtures.write("each", {member: b"older"}, folder)
            for member in files:
                fixtures.write("each", {member: files[member]}, folder)
            self.assertEqual((folder / "all.zip").read_bytes(), (folder / "each.zip").read_bytes())
            self.assertEqual(fixtures.read("each", folder), files)
            self.assertEqual(fixtures.cases(folder), ["all", "each"])

    def test_archives_were_written_so(self):
        self.assertGreater(len(fixtures.cases()), 100)
        for case in fixtures.cases():
            with zipfile.ZipFile(fixtures.FIXTURES / f"{case}.zip") as archive:
                self.assertEqual(archive.namelist(), sorted(archive.namelist()), case)
                self.assertEqual({member.date_time for member in archive.infolist()}, {(1980, 1, 1, 0, 0, 0)}, case)


if __name__ == "__main__":
    unittest.main()

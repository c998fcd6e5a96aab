"""The version is defined once; files that repeat it for readers state the same."""

import os
import re
import unittest
from pathlib import Path

ROOT = Path(os.environ["NORMSCOPE_SOURCE_DIR"])
VERSION = re.search(r'version = "([0-9.]+)"', (ROOT / "include/normscope/core/version.hpp").read_text())[1]


class Version(unittest.TestCase):
    def test_the_citation_states_it(self):
        self.assertIn(f"\nversion: {VERSION}\n", (ROOT / "CITATION.cff").read_text())

    def test_the_changelog_begins_with_it(self):
        entries = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
        self.assertRegex(entries[0], rf"^\[{re.escape(VERSION)}\] - \d{{4}}-\d\d-\d\d$")


if __name__ == "__main__":
    unittest.main()

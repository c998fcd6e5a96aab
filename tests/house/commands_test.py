"""Modules below the doors name no command and no option: the command, Python and the explorer spell them differently."""

import json
import os
import re
import unittest
from pathlib import Path

ROOT = Path(os.environ["NORMSCOPE_SOURCE_DIR"])
# Results meet the doors: they state the commands that compute a report's numbers again.
MODULES = [module for module in json.loads((ROOT / "cmake/layers.json").read_text()) if module != "results"]
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|R"\((.*?)\)"|"((?:\\.|[^"\\\n])*)"|\'(?:\\.|[^\'\\])\'', re.DOTALL)
ADJACENT = re.compile(r'"\s*"')
NAMED = re.compile(r"\bnormscope [a-z]|(?<![\w-])--[a-z]")


def named(source: str) -> list[str]:
    """The texts of a C++ source that name a command or an option."""
    lines = [line for line in source.split("\n") if not line.startswith("#include")]
    texts = ["".join(found.groups("")) for found in COMMENT_OR_TEXT.finditer(ADJACENT.sub("", "\n".join(lines)))]
    return [text for text in texts if NAMED.search(text)]


class Commands(unittest.TestCase):
    def test_no_text_below_the_doors_names_one(self):
        sources = [file for module in MODULES for folder in ("src", "include/normscope")
                   for file in sorted((ROOT / folder / module).rglob("*.[ch]pp"))]
        self.assertGreater(len(sources), 200)
        for file in sources:
            with self.subTest(file.relative_to(ROOT)):
                self.assertEqual(named(file.read_text()), [])

    def test_they_would_be_noticed(self):
        self.assertEqual(named('f("see `normscope reach`; give "\n  "--tokens"); // normscope heads'), ["see `normscope reach`; give --tokens"])
        self.assertEqual(named('namespace normscope { const char quote = \'"\'; --depth; f("normscope: a -- b"); }'), [])


if __name__ == "__main__":
    unittest.main()

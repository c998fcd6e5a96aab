"""What makes LN-Nets and what judges them share no code: neither reaches the other by its includes."""

import os
import re
import unittest
from pathlib import Path

ROOT = Path(os.environ["NORMSCOPE_SOURCE_DIR"])
SOURCES = ROOT / "src/lnnet"
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<(normscope/lnnet/[^>]+)>)', re.MULTILINE)
# The driver asks both sides; construct.hpp, which the makers include for its options, is its header.
DRIVER = "construct.cpp"


def reached(name, beyond=()):
    """The files of the module that `name` includes, and those that define what they declare."""
    seen, todo = set(), [SOURCES / name]
    while todo:
        path = todo.pop()
        if path in seen or path.name in beyond or not path.exists():
            continue
        seen.add(path)
        todo.append(SOURCES / path.with_suffix(".cpp").name)
        for private, public in INCLUDE.findall(path.read_text()):
            todo.append(SOURCES / private if private else ROOT / "include" / public)
    return {path.name for path in seen}


class Evaluator(unittest.TestCase):
    def test_makers_and_judge_meet_in_the_net_alone(self):
        judge = reached("evaluate.cpp")
        self.assertIn("evaluate.hpp", judge)
        for maker in ("stable_mode.cpp", "paper_mode.cpp"):
            made_of = reached(maker, beyond={DRIVER})
            self.assertLessEqual({"projection.cpp", "head.cpp", "line.cpp", "predict.hpp"}, made_of)
            self.assertEqual(made_of & judge, {"net.hpp", "net.cpp"}, maker)

    def test_a_shortcut_would_be_seen(self):
        self.assertIn("evaluate.cpp", reached(DRIVER))


if __name__ == "__main__":
    unittest.main()

"""The constructors of LN-Nets and their evaluator share no code but the net itself."""

import os
import re
import unittest
from pathlib import Path

ROOT = Path(os.environ["NORMSCOPE_SOURCE_DIR"])
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<(normscope/nets/[^>]+)>)', re.MULTILINE)
# The driver calls both sides; its header construct.hpp is included by the constructors for the options.
DRIVER = ROOT / "src/nets/construct.cpp"


def sources(path):
    """The source files that define the declarations of `path`."""
    return [ROOT / "src/nets" / path.with_suffix(".cpp").name] if "/nets/" in str(path) else []


def reached(start, beyond=()):
    """The files of `nets` that `start` includes, and those that define what they declare."""
    seen, todo = set(), [start]
    while todo:
        path = todo.pop()
        if path in seen or path in beyond or not path.exists():
            continue
        seen.add(path)
        todo += sources(path)
        for private, public in INCLUDE.findall(path.read_text()):
            todo.append(path.parent / private if private else ROOT / "include" / public)
    return {str(path.relative_to(ROOT)) for path in seen}


class Evaluator(unittest.TestCase):
    def test_constructors_and_evaluator_meet_in_the_net_alone(self):
        evaluator = reached(ROOT / "src/nets/evaluate.cpp")
        self.assertIn("include/normscope/nets/net.hpp", evaluator)
        made_of = reached(ROOT / "src/nets/modes.cpp", beyond={DRIVER})
        self.assertLessEqual({"src/nets/line.cpp", "src/nets/line.hpp"}, made_of)
        self.assertEqual(made_of & evaluator, {"include/normscope/nets/net.hpp", "src/nets/net.cpp"})

    def test_a_shortcut_would_be_seen(self):
        self.assertIn("src/nets/evaluate.cpp", reached(DRIVER))


if __name__ == "__main__":
    unittest.main()

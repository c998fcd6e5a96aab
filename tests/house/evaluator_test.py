"""The constructors of LN-Nets and their evaluator share no code but the net itself."""

import os
import re
import unittest
from pathlib import Path

ROOT = Path(os.environ["NORMSCOPE_SOURCE_DIR"])
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<(normscope/(?:lnnet|merge)/[^>]+)>)', re.MULTILINE)
# The driver calls both sides; its header construct.hpp is included by the constructors for the options.
DRIVER = ROOT / "src/merge/construct.cpp"


def sources(path):
    """The source files that define the declarations of `path`."""
    return [ROOT / "src" / module / path.with_suffix(".cpp").name for module in ("lnnet", "merge")
            if f"/{module}/" in str(path)]


def reached(start, beyond=()):
    """The files of lnnet and merge that `start` includes, and those that define what they declare."""
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
        evaluator = reached(ROOT / "src/lnnet/evaluate.cpp")
        self.assertIn("include/normscope/lnnet/evaluate.hpp", evaluator)
        self.assertFalse({path for path in evaluator if "/merge/" in path})
        for constructor in ("stable_mode", "paper_mode"):
            made_of = reached(ROOT / f"src/merge/{constructor}.cpp", beyond={DRIVER})
            self.assertLessEqual({f"src/merge/{name}" for name in ("projection.cpp", "head.cpp", "line.cpp",
                                                                   "predict.hpp")}, made_of)
            self.assertEqual({path for path in made_of if "/lnnet/" in path},
                             {"include/normscope/lnnet/net.hpp", "src/lnnet/net.cpp"}, constructor)

    def test_a_shortcut_would_be_seen(self):
        self.assertIn("src/lnnet/evaluate.cpp", reached(DRIVER))


if __name__ == "__main__":
    unittest.main()

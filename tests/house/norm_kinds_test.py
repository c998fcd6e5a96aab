"""Adding a kind of norm to the table must be noticed wherever a kind counts: by the compiler (a switch without
default), by the table (its facts), or by `scripts/norm_kinds --check` (the lists in other languages). A comparison with
one kind takes every other kind, a new one too, for the same; each that remains is listed here with its reason."""

import os
import re
import unittest
from collections import Counter
from pathlib import Path

SOURCE = Path(os.environ["NORMSCOPE_SOURCE_DIR"])
TABLE = (SOURCE / "include/normscope/core/norm_kind.hpp").read_text()
NAMES = re.findall(r'\{NormKind::(\w+),', TABLE)
ELEMENTWISE = re.findall(r'\{NormKind::(\w+),[^}]*Divisor::nothing', TABLE)

REFUSES = "refuses every other kind"
ALLOWED = {
    "apps/cli/select.cpp": (1, "its own choice is layer and none"),
    "lab/torch/grouped_network.cpp": (3, REFUSES),
    "lab/torch/layout.cpp": (1, "an RMSNorm of these networks has no bias"),
    "src/models/fields.cpp": (1, "an RMSNorm has no bias"),
    "src/rewrite/compare_norms.cpp": (1, REFUSES),
    "src/rewrite/rotation_plan.cpp": (2, REFUSES),
    "src/rewrite/fold_plan.cpp": (2, REFUSES),
    "bench/norm/peer_normscope.py": (1, "the peers' RMSNorm has no bias"),
    "lab/experiments/brody_random_keys.cpp": (1, "its own configurations are none and layer"),
    "explorer/shared/format.ts": (1, "a LayerNorm in groups has a name of its own"),
    "explorer/app/chapters/nonlinearity.ts": (1, "its own choice is layer and rms"),
    "python/normscope/_autograd.py": (1, "torch has an operation of its own for a LayerNorm"),
    "python/normscope/modules.py": (1, "tries formulas of its own list"),
    "src/models/norm_names.cpp": (1, "a tensor's name"),
    "scripts/model_oracle/norms.py": (1, "recognizes formulas of its own list"),
}
# One file each that shares nothing with the library, its table of kinds included.
CHECKERS = {"checker.py", "head_checker.py", "model_checker.py", "token_checker.py"}


class NormKinds(unittest.TestCase):
    maxDiff = None

    def test_no_comparison_takes_other_kinds_for_the_same(self):
        names = "|".join(NAMES)
        compares = {
            ".cpp": rf'[=!]= *(?:NormKind::\w+|"(?:{names})")', ".hpp": rf'[=!]= *(?:NormKind::\w+|"(?:{names})")',
            ".py": rf'''(?:[=!]= *|\bin *\()["'](?:{names})["']''', ".ts": rf'[=!]== *"(?:{names})"',
        }
        found = Counter()
        for tree in ("apps", "bench", "explorer", "include", "lab", "python", "scripts", "src"):
            for path in sorted((SOURCE / tree).rglob("*")):
                if path.suffix not in compares or "tests" in path.parts or "node_modules" in path.parts:
                    continue
                if path.stem.endswith("_test") or path.name in CHECKERS:
                    continue
                found[str(path.relative_to(SOURCE))] += len(re.findall(compares[path.suffix], path.read_text()))
        self.assertEqual({file: count for file, count in found.items() if count},
                         {file: count for file, (count, _) in ALLOWED.items()})

    def test_python_has_the_formulas_that_no_table_gives_it(self):
        for file, place, entry, names in (
                ("_autograd.py", r"_ELEMENTWISE = \{.*?\}", r'"(\w+)":', ELEMENTWISE),
                ("model_checker.py", r"blocks = \{.*?\}", r'"(\w+)":', NAMES),
                ("kernels.py", r"Normalize each row.*?with groups", r"\n +(\w+) +y =", NAMES)):
            text = re.search(place, (SOURCE / "python/normscope" / file).read_text(), re.S | re.I)[0]
            self.assertEqual(re.findall(entry, text), names, file)

    def test_a_switch_over_kinds_has_no_default(self):
        for path in (path for tree in ("apps", "bench", "include", "lab", "src", "tests")
                     for path in (SOURCE / tree).rglob("*.[ch]pp")):
            for switch in re.findall(r"switch \([^\n]*\{\n(?:(?!\bswitch\b).)*?case NormKind::.*?\n\s*\}\n", path.read_text(), re.S):
                self.assertNotIn("default:", switch, path)


if __name__ == "__main__":
    unittest.main()

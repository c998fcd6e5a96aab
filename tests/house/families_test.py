"""What is known of a model family stands in its row of src/models/architectures: no other source lists families."""

import os
import re
import unittest
from pathlib import Path

SOURCE = Path(os.environ["NORMSCOPE_SOURCE_DIR"])
ROWS = SOURCE / "src/models/architectures"
TREES = ("apps", "bench", "explorer", "include", "lab", "python", "scripts", "src")
# Fixtures and oracles name the families that they make.
APART = {"architectures", "compare_table", "gguf_oracle", "mlx_oracle", "model_oracle", "node_modules", "tests"}
LITERAL = re.compile(r"""["']([\w.-]+)["']""")
# Literals so near to one another, in characters, are a list.
REACH = 300


def families() -> set[str]:
    """The names of all rows and their model types."""
    found = set()
    for row in ROWS.glob("*.cpp"):
        found.add(row.stem)
        for types in re.findall(r"\.model_types = \{(.*?)\}", row.read_text(), re.DOTALL):
            found.update(LITERAL.findall(types))
    return found


def listed(text: str, names: set[str]) -> set[str]:
    """The first three or more different families that stand together in a source; empty for none."""
    hits = [(match.start(), match[1]) for match in LITERAL.finditer(text) if match[1] in names]
    for start, _ in hits:
        together = {name for at, name in hits if 0 <= at - start < REACH}
        if len(together) >= 3:
            return together
    return set()


class Families(unittest.TestCase):
    def test_rows_alone_list_families(self):
        names = families()
        self.assertGreater(len(names), 100)
        for tree in TREES:
            for path in sorted((SOURCE / tree).rglob("*")):
                inside = path.relative_to(SOURCE).parts
                if path.suffix not in (".cpp", ".hpp", ".py") or APART.intersection(inside):
                    continue
                with self.subTest("/".join(inside)):
                    self.assertEqual(listed(path.read_text(), names), set())

    def test_a_second_list_is_noticed(self):
        self.assertEqual(listed('constexpr x = {"gpt2", "llama",\n "opt"};', families()), {"gpt2", "llama", "opt"})
        self.assertEqual(listed('model == "gpt2" || model == "llama"', families()), set())


if __name__ == "__main__":
    unittest.main()

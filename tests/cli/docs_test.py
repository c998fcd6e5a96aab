"""README, the tour and the pages on ranges and attribution: console blocks print what they show, code blocks are parts of compiled programs."""

import os
import re
import subprocess
import unittest
from pathlib import Path

from command import COMMAND, SOURCE, CommandTest

PAGES = [SOURCE / "README.md", SOURCE / "docs/tour.md", SOURCE / "docs/ranges.md", SOURCE / "docs/int8.md", SOURCE / "docs/attribution.md"]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


class Documents(CommandTest):
    def shell(self, command):
        environment = {**os.environ, "PATH": f"{Path(COMMAND).parent}:/usr/bin:/bin"}
        return subprocess.run(["bash", "-c", command], cwd=self.folder, env=environment, check=True, text=True,
                              capture_output=True).stdout

    def test_console_blocks_print_what_they_show(self):
        for name in ("models", "scripts"):
            (self.folder / name).symlink_to(SOURCE / name)
        for page in PAGES:
            shown = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks(page, "console")), re.MULTILINE)
            self.assertTrue(shown, page)
            for command, expected in shown:
                with self.subTest(command):
                    self.assertEqual(self.shell(command), expected)

    def test_code_blocks_are_compiled_ones(self):
        compiled = (SOURCE / "tests/consumer/main.cpp").read_text()
        for page in PAGES:
            for block in blocks(page, "cpp"):
                self.assertEqual(block, compiled)

    def test_links_lead_somewhere(self):
        folders = ("docs", "models", "python")
        for page in [*SOURCE.glob("*.md"), *(page for folder in folders for page in (SOURCE / folder).rglob("*.md"))]:
            for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
                if not target.startswith("http"):
                    self.assertTrue((page.parent / target).exists(), f"{page}: {target}")

    def test_promised_tests_exist(self):
        tests = "".join(path.read_text() for folder in ("tests", "lab") for path in (SOURCE / folder).rglob("*_test.*"))
        text = "".join(path.read_text() for path in (SOURCE / "docs").rglob("*.md"))
        text += "".join(path.read_text() for path in (SOURCE / "include").rglob("*.hpp"))
        for suite, name in re.findall(r"(?:`|test: )(\w+)\.([A-Z]\w+)[`)]", text):
            self.assertTrue(re.search(rf"\(\w*{suite}\w*,\s*{name}[,)]", tests), f"there is no test {suite}.{name}")


if __name__ == "__main__":
    unittest.main()

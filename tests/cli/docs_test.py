"""README, the tour and the guides: console blocks print what they show, code blocks are parts of compiled programs.

`docs_test.py --write PAGE...` writes what the commands print now into the pages, for a reader of the diff to judge."""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from command import COMMAND, SOURCE, CommandTest

PAGES = [SOURCE / "README.md", *(SOURCE / "docs" / page for page in ("attribution.md", "certificates.md", "compare.md", "formats.md", "gallery.md", "install.md", "int8.md", "ranges.md", "rewrite.md", "speed.md", "tour.md")),
         *sorted((SOURCE / "docs/guides").glob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def blocks(page, language):
    return [text for named, text in FENCE.findall(page.read_text()) if named == language]


def shell(command, folder):
    environment = {**os.environ, "PATH": f"{Path(COMMAND).parent}:/usr/bin:/bin"}
    return subprocess.run(["bash", "-c", command], cwd=folder, env=environment, check=True, text=True, stdout=subprocess.PIPE).stdout


def link_what_pages_use(folder):
    for name in ("examples", "models", "scripts"):
        (folder / name).symlink_to(SOURCE / name)


def write(page):
    """Runs the page's commands in a folder of their own, and puts what they print behind them."""
    with tempfile.TemporaryDirectory() as name:
        link_what_pages_use(Path(name))
        page.write_text(FENCE.sub(lambda block: block[0] if block[1] != "console" else "```console\n" + SHOWN.sub(
            lambda shown: f"$ {shown[1]}\n{shell(shown[1], name)}", block[2]) + "```", page.read_text()))


class Documents(CommandTest):
    def test_console_blocks_print_what_they_show(self):
        self.assertGreater(sum(len(SHOWN.findall("".join(blocks(page, "console")))) for page in PAGES), 40)
        for page in PAGES:
            with tempfile.TemporaryDirectory() as name:
                link_what_pages_use(Path(name))
                for command, expected in SHOWN.findall("".join(blocks(page, "console"))):
                    with self.subTest(f"{page.name}: {command}"):
                        self.assertEqual(shell(command, name), expected)

    def test_code_blocks_are_compiled_ones(self):
        """The whole program, or lines of it."""
        compiled = [line.strip() for line in (SOURCE / "tests/consumer/main.cpp").read_text().split("\n")]
        for page in (SOURCE / "README.md", SOURCE / "docs/install.md"):
            self.assertTrue(blocks(page, "cpp"), page)
        self.assertEqual(blocks(SOURCE / "docs/install.md", "cpp"), [(SOURCE / "tests/consumer/main.cpp").read_text()])
        for page in PAGES:
            for block in blocks(page, "cpp"):
                lines = [line.strip() for line in block.rstrip().split("\n")]
                self.assertTrue(any(compiled[at:at + len(lines)] == lines for at in range(len(compiled))), f"{page}: {block}")

    def test_no_block_of_a_guide_is_only_shown(self):
        """Besides what this test runs there are scripts of the repository, pycon, which the Python package's tests run,
        and without a language what is no code."""
        for page in PAGES:
            for language, text in FENCE.findall(page.read_text()):
                with self.subTest(f"{page.name}: {text}"):
                    self.assertIn(language, ("console", "cpp", "pycon", "sh", ""))
                    for line in text.splitlines() if language == "sh" else ():
                        self.assertTrue((SOURCE / line.split()[0]).is_file() and line.startswith("scripts/"), line)

    def test_commands_that_are_named_exist_with_their_options(self):
        """In code of any page: `normscope rewrite IN -o OUT --fold gains`, or `rewrite --fold`."""
        options = {}
        for name, text in re.findall(r"^# normscope (.*)\n((?:(?!# normscope ).*\n)*)", self.ok("manual", "markdown"), re.MULTILINE):
            named = re.findall(r"^`(-.*)`$", text, re.MULTILINE)
            options[name] = {option.split()[0] for names in named for option in names.split(", ")}
        self.assertGreater(len(options), 25)
        for page in [*SOURCE.glob("*.md"), *(page for folder in ("docs", "lab", "python") for page in (SOURCE / folder).rglob("*.md"))]:
            text = page.read_text()
            lines = [line.removeprefix("$ ") for _, block in FENCE.findall(text) for line in block.splitlines()]
            lines += [re.sub(r"\s+", " ", code) for code in re.findall(r"`([^`]+)`", FENCE.sub("", text))]
            for line in lines:
                for command in re.split(r"[|&;]+ *", line.partition(" #")[0]):
                    words = command.removeprefix("normscope ").split()
                    name = next((name for name in (" ".join(words[:2]), *words[:1]) if name in options), None)
                    with self.subTest(f"{page.name}: {line}"):
                        if command.startswith("normscope "):
                            self.assertTrue(name or words[0] in ("manual", "nets", "signature", "lab", "--version"), command)
                        # The options of the lab are those of its program.
                        for word in words if name and not name.startswith(("help", "lab")) else ():
                            if re.match(r"--?[a-z]", word):
                                self.assertIn(word.split("=")[0], options[name], command)

    def test_links_lead_somewhere(self):
        folders = ("docs", "models", "python")
        pages = [*SOURCE.glob("*.md"), *(page for folder in folders for page in (SOURCE / folder).rglob("*.md"))]
        for page in pages:
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
    if sys.argv[1:2] == ["--write"]:
        for name in sys.argv[2:]:
            write(Path(name))
    else:
        unittest.main()

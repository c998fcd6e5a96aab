"""What is installed from PyPI has bounds: a new version of another project cannot break a build or a test by itself."""

import os
import re
import unittest
from pathlib import Path

ROOT = Path(os.environ["NORMSCOPE_SOURCE_DIR"])
BOUNDED = re.compile(r"[\w.-]+(==[\w.]+|>=[\w.]+,<[\w.]+)")


class Packages(unittest.TestCase):
    def test_requirements_have_a_lower_and_an_upper_bound(self):
        files = sorted(ROOT.glob("*/**/*requirements.txt"))
        files = [file for file in files if "node_modules" not in file.parts and not file.parts[len(ROOT.parts)].startswith("build")]
        self.assertGreater(len(files), 8)
        for file in [*files, ROOT / "bench/norm/numbers.txt"]:
            for line in file.read_text().splitlines():
                if line and not line.startswith(("#", "--requirement ")):
                    self.assertRegex(line, rf"^{BOUNDED.pattern}$", file)

    def test_so_have_those_of_the_build(self):
        requires = re.search(r"^requires = \[(.*)\]$", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
        for requirement in re.findall(r'"([^"]*)"', requires):
            self.assertRegex(requirement, rf"^{BOUNDED.pattern}$")

    def test_scripts_install_nothing_else(self):
        """Each installation names a file of requirements, a version, or the wheel that was just built."""
        scripts = [ROOT / "python/nanobind.cmake", *(path for path in (ROOT / "scripts").iterdir() if path.is_file())]
        for script in scripts:
            for line in script.read_text(errors="replace").splitlines():
                if re.search(r"\bpip\b\S* +install\b", line):
                    follows = line.partition("install")[2]
                    self.assertRegex(follows, r"--requirement|--disable-pip-version-check|normscope-\*\.whl", f"{script}: {line}")


if __name__ == "__main__":
    unittest.main()

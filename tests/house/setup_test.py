"""scripts/setup is silent when it succeeds, and shows apt's output when it fails."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

SETUP = Path(os.environ["NORMSCOPE_SOURCE_DIR"]) / "scripts/setup"


class Setup(unittest.TestCase):
    def setup_with(self, apt, arguments=("demo",)):
        """A setup on a machine where no package is installed and `apt-get` is the given script."""
        with tempfile.TemporaryDirectory() as folder:
            for name, script in (("apt-get", apt), ("dpkg-query", "exit 1"), ("id", "echo 0")):
                path = Path(folder) / name
                path.write_text(f"#!/bin/sh\n{script}\n")
                path.chmod(0o755)
            environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
            return subprocess.run([SETUP, *arguments], env=environment, capture_output=True, text=True, timeout=60)

    def test_a_setup_that_works_is_quiet(self):
        done = self.setup_with('echo "Setting up"; echo "debconf: delaying" >&2')
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertNotIn("Setting up", done.stdout)
        self.assertTrue(done.stdout.endswith("setup: done\n"))

    def test_a_failed_installation_shows_what_apt_said(self):
        done = self.setup_with("""case "$*" in *install*)
            echo "dpkg: error processing package g++ (--configure)"; echo "E: Unable to locate package g++" >&2; exit 100
        esac""")
        self.assertEqual(done.returncode, 1)
        self.assertIn("dpkg: error processing package g++ (--configure)", done.stderr)
        self.assertIn("E: Unable to locate package g++", done.stderr)
        self.assertRegex(done.stderr, "setup: failed: .*apt-get .* install .*g\\+\\+")
        self.assertNotIn("setup: done", done.stdout)

    def test_a_failed_update_shows_what_apt_said(self):
        done = self.setup_with('echo "Err:1 no route to host"; exit 100')
        self.assertEqual(done.returncode, 1)
        self.assertIn("Err:1 no route to host", done.stderr)


if __name__ == "__main__":
    unittest.main()

"""Inputs that change while they are read, outputs that lead into them, and numbers that options refuse."""

import os
import re
import shutil
import subprocess
import time
import unittest

import numpy as np

from command import COMMAND, OWN_MODEL, SOURCE, CommandTest, safetensors


class Places(CommandTest):
    def test_a_mount_of_the_input_is_the_input(self):
        shutil.copytree(SOURCE / "tests/model/fixtures/gpt2", self.folder / "m")
        (self.folder / "b").mkdir()
        before = sorted(os.listdir(self.folder / "m"))
        for output in ("b", "b/sub", "b/new/sub"):
            script = f"mount --bind m b || exit 77; exec '{COMMAND}' rewrite m -o {output} --fold gains"
            done = subprocess.run(["unshare", "-Urm", "sh", "-c", script], cwd=self.folder, capture_output=True, text=True,
                                  timeout=120)
            if done.returncode in (1, 77):
                self.skipTest("no mounts here: " + done.stderr)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertRegex(done.stderr, f"{output}: (is in the input|would overwrite m)")
            self.assertEqual(sorted(os.listdir(self.folder / "m")), before)

    def test_names_that_could_look_like_others_are_escaped(self):
        name = "ln\u202e1\u2028.\u200bweight"
        safetensors(self.folder / "m.safetensors", {name: np.ones(4, np.float32)})
        text = self.ok("inspect", "m.safetensors")
        self.assertIn("ln\\u202e1\\u2028.\\u200bweight", text)
        self.assertNotRegex(text, "[\u200b\u2028\u202e]")
        self.assertIn("\\u202e", self.fails(3, "apply", "m.safetensors:x\u202e"))


if __name__ == "__main__":
    unittest.main()

"""A few disks that fail with every build. Not in attack_test.py, because scripts/coverage counts this one."""

import os
import random
import subprocess
import unittest

from command import COMMAND, OWN_MODEL, CommandTest
import attacks


@unittest.skipIf(not attacks.SHIM, "needs the library to preload, which sanitizers do not bear")
class DiskAttack(CommandTest):
    def test_folders_without_locks(self):
        def rewrite(output):
            return subprocess.run([COMMAND, "rewrite", OWN_MODEL / "model.safetensors", "--center", "-o", output],
                                  cwd=self.folder, capture_output=True, text=True,
                                  env={**os.environ, "LD_PRELOAD": attacks.SHIM, "NORMSCOPE_FAIL": "lock:1:always"})

        self.assertEqual(rewrite("new.safetensors").returncode, 0)
        kept = self.folder / ".normscope-rewrite-old.safetensors"
        kept.mkdir()
        done = rewrite("old.safetensors")
        self.assertEqual(done.returncode, 3)
        self.assertIn("cannot be locked (No locks available): if no other process writes it, remove it", done.stderr)
        self.assertTrue(kept.exists())
        self.assertFalse((self.folder / "old.safetensors").exists())

    def test_disks_that_fail(self):
        inner = self.folder / "inputs"
        inner.mkdir()
        attacks.make_inputs(inner)
        self.assertGreater(attacks.disk(inner, random.Random(1)), 0)


if __name__ == "__main__":
    unittest.main()

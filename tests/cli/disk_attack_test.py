"""A few disks that fail with every build. Not in attack_test.py, because scripts/coverage counts this one."""

import random
import unittest

from command import CommandTest
import attacks


class DiskAttack(CommandTest):
    @unittest.skipIf(not attacks.SHIM, "needs the library to preload, which sanitizers do not bear")
    def test_disks_that_fail(self):
        inner = self.folder / "inputs"
        inner.mkdir()
        attacks.make_inputs(inner)
        self.assertGreater(attacks.disk(inner, random.Random(1)), 0)


if __name__ == "__main__":
    unittest.main()

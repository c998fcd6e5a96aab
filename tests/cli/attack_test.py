"""A few attacks of each kind with every build; `scripts/attack HOURS` makes many. Disks fail in disk_attack_test.py."""

import random
import unittest

from command import CommandTest
import attacks


class Attacks(CommandTest):
    def setUp(self):
        super().setUp()
        self.inner = self.folder / "inputs"
        self.inner.mkdir()

    def attack(self, name):
        attacks.make_inputs(self.inner)
        self.assertGreater(attacks.ATTACKS[name](self.inner, random.Random(1)), 0)

    def test_kills(self):
        self.attack("kills")

    @unittest.skipIf(not attacks.SHIM, "needs the library to preload, which sanitizers do not bear")
    def test_power_that_fails(self):
        self.attack("power")

    def test_values(self):
        self.attack("values")

    def test_models(self):
        self.attack("models")


if __name__ == "__main__":
    unittest.main()

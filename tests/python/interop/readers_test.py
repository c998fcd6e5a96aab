"""Whole files, and some that are changed, by the reference readers from PyPI. Run by `scripts/test interop`."""

import random
import tempfile
import unittest

import readers


class Readers(unittest.TestCase):
    def test_whole_files_are_read_alike(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in readers.FORMATS:
                for seed in range(50):
                    with self.subTest(f"{name} {seed}"):
                        found = readers.compare(name, random.Random(seed), is_changed=False, folder=folder)
                        self.assertEqual(found, "agree")

    def test_changed_files_are_read_alike_where_both_read_them(self):
        _, wrong = readers.attack(20, 1)
        self.assertEqual(wrong, [])


if __name__ == "__main__":
    unittest.main()

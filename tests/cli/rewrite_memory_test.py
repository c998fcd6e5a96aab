"""A rewrite holds no more than a few blocks, however many shards a model has."""

import os
import subprocess
import sys
import unittest

from command import COMMAND, SANITIZED, SOURCE, CommandTest

sys.path.insert(0, str(SOURCE / "bench/rewrite"))
from model import make_gpt2, make_llama  # noqa: E402

LARGEST = 2 * 2048 * 512  # bytes of the largest matrix, of 16 layers in a shard each
FIXED = 72 * 2**20


@unittest.skipIf(SANITIZED, "sanitizers hold memory of their own")
class RewriteMemory(CommandTest):
    def check_peak(self, size, *options):
        process = subprocess.Popen([COMMAND, "rewrite", "in", "-o", "out", *options, "-q"], cwd=self.folder)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, 0)
        self.assertGreater(size, 1.4 * (3 * LARGEST + FIXED), "the model is too small to tell")
        self.assertLess(1024 * usage.ru_maxrss, 3 * LARGEST + FIXED)

    def test_the_peak_does_not_grow_with_the_model(self):
        self.check_peak(make_llama(self.folder / "in", 16, 512, 2048, 512), "--fold", "gains")

    def test_so_for_matrices_that_are_stored_in_out_and_streams_that_are_centred(self):
        self.check_peak(make_gpt2(self.folder / "in", 20, 512, 2048, 512, "F16"), "--fold", "gains", "--center")


if __name__ == "__main__":
    unittest.main()

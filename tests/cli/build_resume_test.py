"""A build that was interrupted or killed at any moment continues and writes the same bytes."""

import random
import signal
import subprocess
import time
import unittest

import numpy as np

from command import COMMAND, SANITIZED, CommandTest

ROWS = 4000 if SANITIZED else 12000
WORDS = ["nets", "build", "x.npy", "--random-labels", "3", "--resume", "state", "-o", "net.safetensors", "--folds", "folds"]


class BuildResume(CommandTest):
    def setUp(self):
        super().setUp()
        np.save(self.folder / "x.npy", np.random.default_rng(2).normal(size=(ROWS, 2)))

    def outputs(self):
        return [(self.folder / name).read_bytes() for name in ("net.safetensors", "folds")]

    def stopped(self, how, seconds):
        """The exit status of a build that is sent the signal `how` after a while."""
        process = subprocess.Popen([COMMAND, *WORDS], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(how)
        return process.wait(120)

    def test_stopped_at_random_moments(self):
        begin = time.monotonic()
        self.ok(*WORDS)
        whole, seconds = self.outputs(), time.monotonic() - begin
        for name in ("net.safetensors", "folds"):
            (self.folder / name).unlink()
        moments = random.Random(1)
        for how in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL, signal.SIGINT, signal.SIGKILL, signal.SIGTERM):
            status = self.stopped(how, moments.uniform(0.1, 0.6) * seconds)
            # A build that ended before the signal has nothing left to resume. Before it handles signals, one ends by this one.
            self.assertIn(status, (0, -how) if how == signal.SIGKILL else (0, 130, -how))
            self.assertEqual((self.folder / "net.safetensors").exists(), status == 0)
            if status == 0:
                break
        self.ok(*WORDS)
        self.assertEqual(self.outputs(), whole)
        self.assertFalse((self.folder / "state").exists())

    def test_a_state_of_something_else_is_refused(self):
        (self.folder / "state").write_bytes(b"not a state")
        self.assertIn("state", self.fails(3, *WORDS))
        np.save(self.folder / "x.npy", np.random.default_rng(2).normal(size=(5, 2)))
        self.ok("nets", "build", "x.npy", "--random-labels", "3", "-o", "other.safetensors")
        (self.folder / "other.safetensors").rename(self.folder / "state")
        self.assertIn("is not a state that build saved", self.fails(3, *WORDS))


if __name__ == "__main__":
    unittest.main()

"""`normscope-mpi signature extract`: the same bits on any number of processes, and after an interruption."""

import os
import signal
import time
import unittest
from pathlib import Path

import numpy as np

import ranks
from command import COMMAND, CommandTest

PROGRAM = Path(COMMAND).with_name("normscope-mpi")


@unittest.skipUnless(PROGRAM.exists(), f"{PROGRAM} is not built")
class Ranks(CommandTest):
    def outputs(self, width, tokens):
        random = np.random.default_rng(width)
        x = random.normal(size=(width * (width + 3), width))
        x -= x.mean(1, keepdims=True)
        x *= random.uniform(0.5, 2.0, width) / np.sqrt(np.mean(x * x, 1, keepdims=True))
        np.save(self.folder / "x.npy", (x @ random.normal(size=(width, tokens))).astype(np.float32))

    def start(self, count, *arguments):
        return ranks.start(count, [PROGRAM, "signature", "extract", "x.npy", "--threads", 1, *arguments], self.folder)

    def extract(self, count, name, *arguments):
        job = self.start(count, "-o", name, *arguments)
        said, complaint = job.communicate(timeout=120)
        self.assertEqual(job.returncode, 0, complaint)
        return said

    def bits(self, name):
        return (self.folder / name).read_bytes()

    def test_the_same_bits_on_any_number_of_processes(self):
        self.outputs(24, 100)
        said = self.ok("signature", "extract", "x.npy", "-o", "one.safetensors", "--resume", "one.state")
        for count in (1, 2, 3, 5):
            name = f"{count}.safetensors"
            text = self.extract(count, name, "--resume", f"{count}.state")
            self.assertEqual(text, said.replace("one.safetensors", name))
            self.assertEqual(self.bits(name), self.bits("one.safetensors"), count)
            self.assertEqual(self.bits(f"{count}.state"), self.bits("one.state"), count)

    def test_an_interrupted_fit_continues_on_other_processes(self):
        self.outputs(96, 300)
        self.ok("signature", "extract", "x.npy", "-o", "whole.safetensors")
        job = self.start(3, "-o", "part.safetensors", "--resume", "state")
        while job.poll() is None and len(ranks.running(PROGRAM, "state", self.folder)) < 3:
            time.sleep(0.01)
        time.sleep(0.5)
        # One process alone is interrupted; all stop.
        for process in ranks.running(PROGRAM, "state", self.folder)[-1:]:
            os.kill(process, signal.SIGINT)
        status, _, complaint = ranks.finished(job, PROGRAM, "state", self.folder)
        # A fast machine has finished before.
        self.assertIn(status, (0, 130, None), complaint)
        self.assertEqual((self.folder / "part.safetensors").exists(), status == 0)
        self.extract(2, "part.safetensors", "--resume", "state")
        self.assertEqual(self.bits("part.safetensors"), self.bits("whole.safetensors"))

    def test_errors_end_all_processes(self):
        self.outputs(24, 100)
        for count, name, message in ((3, "missing/e.safetensors", "missing"),
                                     (65, "e.safetensors", "65 processes, expected at most 64")):
            job = self.start(count, "-o", name)
            status, _, complaint = ranks.finished(job, PROGRAM, "extract", self.folder)
            self.assertIn(message, complaint)
            self.assertIn(status, (3, None))


if __name__ == "__main__":
    unittest.main()

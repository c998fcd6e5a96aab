"""`normscope-mpi reach`: the same bits on any number of processes, after an interruption and after one was lost."""

import json
import os
import shutil
import signal
import time
import unittest
from pathlib import Path

import numpy as np

import ranks
from command import COMMAND, CommandTest

PROGRAM = Path(COMMAND).with_name("normscope-mpi")


@unittest.skipUnless(PROGRAM.exists(), f"{PROGRAM} is not built")
class ReachRanks(CommandTest):
    def words(self, tokens, width, *options):
        weights = np.random.default_rng(4).normal(size=(tokens, width))
        np.save(self.folder / "w.npy", weights)
        np.save(self.folder / "c.npy", 0.1 * weights[:, 0])
        return ["reach", "--unembedding", "w.npy", "--unembedding-bias", "c.npy", "--norm", "layer", "--certificates", "c",
                "--json", "all.json", "--threads", "1", *options]

    def start(self, count, words):
        return ranks.start(count, [PROGRAM, *words], self.folder)

    def reach(self, count, words):
        """What it printed, and the bytes of all files that it wrote."""
        shutil.rmtree(self.folder / "c", ignore_errors=True)
        job = self.start(count, words)
        said, complaint = job.communicate(timeout=300)
        self.assertEqual((job.returncode, complaint), (0, ""))
        return said, self.files()

    def files(self):
        return {path.name: path.read_bytes() for path in [self.folder / "all.json", *(self.folder / "c").iterdir()]}

    def test_the_same_bits_on_any_number_of_processes(self):
        # More tokens than one block of the first product, some that no hidden state selects, and probabilities.
        words = self.words(1300, 6, "--sharpen-tokens", "3,77,1299", "--resume", "state")
        said = self.ok(*words)
        files, state = self.files(), (self.folder / "state").read_bytes()
        self.assertGreater(len(json.loads(files["all.json"])["unreachable"]), 100)
        for count in (1, 2, 3):
            (self.folder / "state").unlink()
            self.assertTrue(self.reach(count, words) == (said, files), count)
            self.assertEqual((self.folder / "state").read_bytes(), state, count)
        # Finished work is read again, on any number of processes.
        self.assertTrue(self.reach(2, words) == (said, files))

    def stopped(self, count, words, number, seconds):
        """The exit status of a job of which one process is sent a signal, that long after it was there."""
        job = self.start(count, words)
        while job.poll() is None and len(ranks.running(PROGRAM, "state", self.folder)) < count:
            time.sleep(0.01)
        time.sleep(seconds)
        for process in ranks.running(PROGRAM, "state", self.folder)[-1:]:
            os.kill(process, number)
        return ranks.finished(job, PROGRAM, "state", self.folder)[0]

    def test_a_stopped_reach_continues_on_other_processes(self):
        words = self.words(2500, 10, "--probability", "quick", "--resume", "state", "-q")
        begin = time.monotonic()
        self.ok(*words)
        seconds, files = time.monotonic() - begin, self.files()
        (self.folder / "state").unlink()
        shutil.rmtree(self.folder / "c")
        (self.folder / "all.json").unlink()
        status = self.stopped(3, words, signal.SIGINT, 0.5 * seconds)
        # A fast machine has finished before.
        self.assertIn(status, (0, 130, None))
        self.assertEqual((self.folder / "c").exists(), status == 0)
        if status != 0 and (self.folder / "state").exists():
            self.assertFalse(json.loads((self.folder / "all.json").read_text())["complete"])
        shutil.rmtree(self.folder / "c", ignore_errors=True)
        kept = (self.folder / "state").read_bytes() if (self.folder / "state").exists() else None
        if self.stopped(3, words, signal.SIGKILL, 0.1 * seconds) != 0:
            self.assertFalse((self.folder / "c").exists())
            if kept is not None:
                self.assertEqual((self.folder / "state").read_bytes(), kept)
        self.assertTrue(self.reach(2, words)[1] == files)

    def test_errors_end_all_processes(self):
        job = self.start(3, self.words(20, 3, "--sharpen-tokens", "20"))
        status, _, complaint = ranks.finished(job, PROGRAM, "reach", self.folder)
        self.assertIn("20 is not among the 20 tokens", complaint)
        self.assertIn(status, (3, None))


if __name__ == "__main__":
    unittest.main()

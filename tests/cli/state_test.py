"""Files of --resume: any change of one is detected, and no content is trusted unchecked."""

import os
import random
import signal
import subprocess
import time
import unittest

import numpy as np

from command import COMMAND, CommandTest
from snapshots import opened, sealed

FLIPS = 12
ROWS = 12000  # so many rows need more layers than lie between two saves (8192)


class State(CommandTest):
    def setUp(self):
        super().setUp()
        random_numbers = np.random.default_rng(3)
        np.save(self.folder / "keys.npy", random_numbers.normal(size=(200, 4)))
        np.save(self.folder / "bias.npy", random_numbers.normal(size=200))
        np.save(self.folder / "x.npy", random_numbers.normal(size=(ROWS, 2)))

    def commands(self):
        """For each kind of state: the command that saves it, the file with the answer, and the state."""
        reach = ("reach", "--unembedding", "keys.npy", "--unembedding-bias", "bias.npy", "--norm", "rms",
                 "--probability", "quick")
        for name, words in (("select", ("select", "keys.npy")), ("reach", reach),
                            ("train", ("nets", "train", "xor", "--steps", 60, "--batch", 20, "--record-every", 7))):
            words = (*words, "--json", "answer", "--resume", "state", "-q")
            self.ok(*words)
            yield name, words, (self.folder / "state").read_bytes()
        words = ("nets", "build", "x.npy", "--random-labels", 3, "-o", "answer", "--resume", "state", "-q")
        yield "build", words, self.interrupted(*words)

    def interrupted(self, *words):
        """The state of a build that is stopped after its first save."""
        process = subprocess.Popen([COMMAND, *map(str, words)], cwd=self.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        while process.poll() is None and not (self.folder / "state").exists():
            time.sleep(0.001)
        process.send_signal(signal.SIGSTOP)
        self.assertTrue((self.folder / "state").exists(), "it ended before its first save")
        saved = (self.folder / "state").read_bytes()
        process.kill()
        process.wait(120)
        return saved

    def test_no_changed_byte_changes_an_answer(self):
        state = self.folder / "state"
        places = random.Random(7)
        for name, words, saved in self.commands():
            state.write_bytes(saved)
            self.ok(*words)
            answer = (self.folder / "answer").read_bytes()
            # In the payload, and in the fields around it.
            for at in [places.randrange(len(saved)) for _ in range(FLIPS)] + [0, 22, 40, len(saved) - 1]:
                changed = bytearray(saved)
                changed[at] ^= 1 << places.randrange(8)
                state.write_bytes(changed)
                (self.folder / "answer").unlink(missing_ok=True)
                message = self.fails(3, *words)
                self.assertRegex(message, r"state: is (damaged|not a state)", (name, at))
            for changed in (saved[:-1], saved[:len(saved) // 2], saved + b"\0", b""):
                state.write_bytes(changed)
                self.assertRegex(self.fails(3, *words), r"state: is (damaged|not a state)", name)
            before, payload = opened(saved)
            version = bytearray(before)
            version[21 + 8 + len(name)] += 1
            state.write_bytes(sealed(bytes(version), payload))
            self.assertIn("in layout", self.fails(3, *words))
            state.write_bytes(saved)
            self.ok(*words)
            self.assertEqual((self.folder / "answer").read_bytes(), answer, name)
            state.unlink(missing_ok=True)
            (self.folder / "answer").unlink()

    def test_states_of_earlier_versions_are_named(self):
        kinds = {
            "select": (b"normscope.select-state/1\n", ("select", "keys.npy")),
            "reach": (b"normscope.reach_state/2 0123456789abcdef 200 4\n", ("reach", "--unembedding", "keys.npy",
                                                                             "--norm", "rms")),
            "train": (b'\x60\0\0\0\0\0\0\0{"__metadata__":{"format":"normscope.train/1"}', ("nets", "train", "xor")),
            "build": (b'\x60\0\0\0\0\0\0\0{"__metadata__":{"normscope.construct":"2"}',
                      ("nets", "build", "x.npy", "--random-labels", 3, "-o", "answer")),
        }
        for name, (old, words) in kinds.items():
            (self.folder / "state").write_bytes(old)
            self.assertIn(f"an earlier version of {name} saved; delete it to start again",
                          self.fails(3, *words, "--resume", "state"))

    def test_a_state_belongs_to_its_subcommand(self):
        self.ok("select", "keys.npy", "--resume", "state")
        self.assertIn("is not a state that reach saved",
                      self.fails(3, "reach", "--unembedding", "keys.npy", "--norm", "rms", "--resume", "state"))

    def test_a_run_killed_while_it_saves_leaves_a_state(self):
        words = ("nets", "train", "spiral", "--steps", 4000, "--batch", 50, "--json", "answer", "--resume", "state", "-q")
        self.ok(*words)
        answer = (self.folder / "answer").read_bytes()
        for name in ("state", "answer"):
            (self.folder / name).unlink()
        moments = random.Random(2)
        for _ in range(4):
            process = subprocess.Popen([COMMAND, *map(str, words)], cwd=self.folder, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            # Right after the file has changed, another save is most likely in progress.
            seen = time.monotonic()
            while process.poll() is None and time.monotonic() - seen < 0.3:
                if any(name.startswith(".normscope-") for name in os.listdir(self.folder)):
                    time.sleep(moments.uniform(0, 0.002))
                    break
            process.send_signal(signal.SIGKILL)
            process.wait(120)
        self.ok(*words)
        self.assertEqual((self.folder / "answer").read_bytes(), answer)


if __name__ == "__main__":
    unittest.main()

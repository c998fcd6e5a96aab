"""Commands whose readers close the pipe, and commands that start with closed streams."""

import json
import os
import signal
import subprocess
import unittest

import numpy as np

from command import COMMAND, OWN_MODEL, CommandTest


class Pipes(CommandTest):
    def into_closed_pipe(self, *arguments, ignored=False):
        """(status, standard error) of a command whose standard output is a pipe without a reader."""
        reader, writer = os.pipe()
        os.close(reader)
        disposition = signal.SIG_IGN if ignored else signal.SIG_DFL
        done = subprocess.run([COMMAND, *map(str, arguments)], cwd=self.folder, stdout=writer, stderr=subprocess.PIPE,
                              text=True, preexec_fn=lambda: signal.signal(signal.SIGPIPE, disposition),
                              restore_signals=False)
        os.close(writer)
        return done.returncode, done.stderr

    def test_text_to_a_closed_pipe_ends_quietly_by_the_signal(self):
        np.save(self.folder / "x.npy", np.random.default_rng(1).normal(size=(6, 4)))
        for words in (["inspect", OWN_MODEL], ["geometry", "--width", 5], ["apply", "x.npy", "-o", "y.npy"],
                      ["curvature", "x.npy"], ["select", "x.npy"], ["separate", "x.npy", "x.npy"],
                      ["nets", "build", "x.npy", "--random-labels", 2, "-o", "n.safetensors"],
                      ["reach", "--unembedding", "x.npy"], ["report", OWN_MODEL, "-o", "r.html"]):
            with self.subTest(words):
                self.assertEqual(self.into_closed_pipe(*words), (-signal.SIGPIPE, ""))
        # All output files were written completely.
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["n.safetensors", "r.html", "x.npy", "y.npy"])

    def test_a_shell_sees_the_status_of_a_closed_pipe(self):
        done = subprocess.run(f"{COMMAND} inspect {OWN_MODEL} | head -1; echo ${{PIPESTATUS[0]}}", shell=True,
                              executable="/bin/bash", cwd=self.folder, capture_output=True, text=True)
        # The command may end before `head` does.
        self.assertIn(done.stdout.splitlines()[-1], ("141", "0"))
        self.assertEqual(done.stderr, "")

    def test_a_document_that_is_cut_short_is_an_error(self):
        status, said = self.into_closed_pipe("inspect", OWN_MODEL, "--json", "-")
        self.assertEqual((status, said), (3, "normscope: standard output: write failed: Broken pipe\n"))

    def test_a_signal_that_was_ignored_stays_so(self):
        status, said = self.into_closed_pipe("inspect", OWN_MODEL, ignored=True)
        self.assertEqual((status, said), (3, "normscope: standard output: write failed: Broken pipe\n"))

    def test_closed_streams(self):
        run = lambda words: subprocess.run(f"{COMMAND} {words}", shell=True, executable="/bin/bash", cwd=self.folder,
                                           capture_output=True, text=True)
        np.save(self.folder / "x.npy", np.ones((2, 3)))
        done = run("geometry --width 3 >&-")
        self.assertEqual((done.returncode, done.stderr),
                         (3, "normscope: standard output: write failed: Bad file descriptor\n"))
        # The file does not get the descriptor of standard output.
        self.assertEqual(run("geometry --width 3 --json g.json --quiet >&-").returncode, 0)
        self.assertEqual(json.loads((self.folder / "g.json").read_text())["width"], 3)
        self.assertEqual(run("apply x.npy -o y.npy >&- 2>&-").returncode, 3)
        self.assertEqual(np.load(self.folder / "y.npy").shape, (2, 3))
        for words in ("geometry --gain none.npy 2>&-", "geometry --gain none.npy 2>/dev/full"):
            self.assertEqual(run(words).returncode, 3, words)
        self.assertEqual(run("geometry --norm batch 2>/dev/full").returncode, 2)


if __name__ == "__main__":
    unittest.main()

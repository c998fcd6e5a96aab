"""`normscope nets count`: stored networks that count and ones that do not, and training a network."""

import json
import signal
import subprocess
import time
import unittest
from pathlib import Path

import numpy as np

from command import COMMAND, CommandTest


class Count(CommandTest):
    def test_the_lstm_counts(self):
        got = self.json("nets", "count", "-n", 100)
        self.assertIsNone(got["training"])
        self.assertGreaterEqual(got["exact_to"], 150)
        self.assertTrue(any(unit["counts"] for unit in got["drifts"]))
        self.assertTrue(all(got["accepted"]["member"][5:151]))
        said = self.ok("nets", "count")
        self.assertIn("counts in c", said)
        self.assertIn(f"exact for n from 5 to {got['exact_to']}", said)

    def test_the_gru_does_not(self):
        got = self.json("nets", "count", "--cell", "gru")
        self.assertLess(got["exact_to"], 50)
        self.assertFalse(any(unit["counts"] for unit in got["drifts"]))
        self.assertIn("no unit counts", self.ok("nets", "count", "--cell", "gru"))

    def test_three_letters_need_two_counters(self):
        got = self.json("nets", "count", "--language", "anbncn")
        self.assertGreaterEqual(got["exact_to"], 80)
        self.assertGreaterEqual(sum(unit["counts"] for unit in got["drifts"]), 2)

    def test_the_trace_is_that_of_the_weights(self):
        got = self.json("nets", "count", "-n", 3, "--states", "trace.json")
        trace = json.loads((self.folder / "trace.json").read_text())
        self.conforms("trace", trace)
        width, maps = got["width"], np.array(got["parameters"]).reshape(4, -1)
        h, c = np.zeros(width), np.zeros(width)
        values = {signal["name"]: signal["values"] for signal in trace["signals"]}
        output = np.array(got["output"])
        for step, symbol in enumerate([2, *("ab".index(letter) for letter in trace["letters"])]):
            gates = []
            for one in maps:
                w = one[: 3 * width].reshape(width, 3)
                u = one[3 * width : -width].reshape(width, width)
                gates.append(w[:, symbol] + u @ h + one[-width:])
            i, f, o = (1 / (1 + np.exp(-gate)) for gate in gates[:3])
            c = f * c + i * np.tanh(gates[3])
            h = o * np.tanh(c)
            np.testing.assert_allclose(values["c"][step], c, atol=1e-12)
            np.testing.assert_allclose(values["f"][step], f, atol=1e-12)
            logits = output[: 3 * width].reshape(3, width) @ h + output[3 * width :]
            np.testing.assert_allclose(trace["probabilities"][step], np.exp(logits) / np.exp(logits).sum(), atol=1e-12)

    def test_the_figure(self):
        self.ok("nets", "count", "-n", 40, "--figures", "figures", "--quiet")
        spec = json.loads((self.folder / "figures/states.vl.json").read_text())
        self.assertIn("vega-lite", spec["$schema"])

    def test_training_repeats_itself(self):
        options = ("nets", "count", "--train", "--cell", "gru", "--width", 3, "--longest", 6, "--epochs", 20, "--up-to", 10)
        got = self.json(*options, "--seed", 5)
        self.assertEqual(got["training"]["epochs"], 20)
        self.assertLess(got["training"]["loss"][-1], got["training"]["loss"][0])
        self.assertEqual(got["spec"]["seed"], 5)
        self.assertEqual(got, self.json(*options, "--seed", 5))
        self.assertNotEqual(got["parameters"], self.json(*options, "--seed", 6)["parameters"])

    def test_membership_of_three_letters(self):
        got = self.json("nets", "count", "--train", "--language", "anbncn", "--head", "membership", "--width", 2, "--longest",
                        4, "--epochs", 1, "--up-to", 6, "--cell", "elman_relu", "-n", 30)
        self.assertEqual((got["head"], len(got["output"])), ("membership", 3))
        self.assertEqual(len(got["drifts"][0]["blocks"]), 3)

    def test_bad_input(self):
        self.assertIn("train one instead", self.fails(3, "nets", "count", "--cell", "elman_tanh"))
        self.assertIn("--train", self.fails(2, "nets", "count", "--width", 3))
        self.fails(2, "nets", "count", "--cell", "rnn")
        self.fails(2, "nets", "count", "--up-to", 3)
        self.fails(2, "nets", "count", "--up-to", 1001)
        self.fails(2, "nets", "count", "--train", "--longest", 1001)
        self.fails(2, "nets", "count", "--train", "--lr", -1)
        self.fails(3, "nets", "count", "--states", "x", "--json", "x")
        self.fails(3, "nets", "count", "--states", "no/such/folder")

    def test_stops_on_interrupt(self):
        process = subprocess.Popen([COMMAND, "nets", "count", "--train", "--epochs", "100000", "--json", "out.json"],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        # Waits until the process handles the signal, however long it takes to start.
        bit, status = 1 << (signal.SIGINT - 1), Path(f"/proc/{process.pid}/status")
        while process.poll() is None and not int(status.read_text().split("SigCgt:")[1].split()[0], 16) & bit:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (130, ""))
        self.assertEqual(list(self.folder.iterdir()), [])


if __name__ == "__main__":
    unittest.main()

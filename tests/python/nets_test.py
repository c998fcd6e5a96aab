"""LN-Nets: constructed, trained, run, saved, and messages."""

import json
import os
import tempfile
import unittest
from pathlib import Path

import normscope as ns
import numpy as np

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 5))
LABELS = RNG.integers(-2, 3, 40)


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)


class Building(Scratch):
    def test_every_sample_gets_its_label(self):
        file = self.folder / "net.safetensors"
        built = ns.build(X, LABELS, file)
        self.assertEqual((built.correct, built.total, built.output), (40, 40, str(file)))
        self.assertEqual(sorted(built.classes), sorted(set(LABELS.tolist())))
        for net in (built.net, ns.Net(file)):
            np.testing.assert_array_equal(net(X), LABELS)
            np.testing.assert_array_equal(net(X.reshape(40, 5, 1).astype(np.float32).astype(float)), net(X))
        self.assertEqual(ns.run(file, X).labels, LABELS.tolist())
        self.assertEqual(built.plot()["$schema"].rpartition("/")[2], "v5.json")
        self.assertEqual(repr(built), f"<normscope.Built {built.layers} layers in float64, 40 of 40 right>")

    def test_a_net_in_memory_names_no_file(self):
        built = ns.build(X, random_labels=2, seed=7)
        self.assertIsNone(built.output)
        again = ns.build(X, random_labels=2, seed=7)
        self.assertEqual(built.net(X).tolist(), again.net(X).tolist())
        built.net.save(self.folder / "saved.safetensors")
        self.assertEqual(ns.run(self.folder / "saved.safetensors", X).labels, built.net(X).tolist())

    def test_layers_of_a_net(self):
        net = ns.build(X, LABELS).net
        layers = net.trace(X)
        self.assertEqual([layer.shape for layer in layers], [(40, 3)] * net.layers)

    def test_conflicts(self):
        x, labels = np.ones((2, 3)), [0, 1]
        with self.assertRaisesRegex(ValueError, "row"):
            ns.build(x, labels)
        self.assertEqual(ns.build(x, labels, drop_conflicts=True).relabelled, 1)


class Counting(unittest.TestCase):
    def test_an_lstm_counts_and_a_gru_does_not(self):
        exact = {cell: ns.count(cell, letters=50, up_to=60) for cell in ("lstm", "gru")}
        self.assertEqual([exact["lstm"].exact_to, exact["gru"].exact_to], [60, 5])
        self.assertEqual([unit.unit for unit in exact["lstm"].drifts if unit.counts], [8])
        self.assertEqual(list(exact["lstm"]._charts), ["states"])
        with self.assertRaisesRegex(ValueError, "tape"):
            ns.count("tape")


class Training(Scratch):
    def test_a_task(self):
        file = self.folder / "net.safetensors"
        trained = ns.train("xor", output=file, steps=300, rows=100, seeds=2)
        self.assertGreater(trained.train.accuracy, 0.95)
        self.assertEqual((len(trained.runs), trained.data, trained.output), (2, "xor", str(file)))
        self.assertEqual(list(trained.charts), ["curves", "boundary", "seeds"])
        self.assertEqual(ns.Net(file).features, 2)
        self.assertEqual(trained.to_dict()["schema"], "normscope.train/1")

    def test_samples(self):
        corners = RNG.choice([-1.0, 1.0], (60, 2))
        labels = (corners.prod(1) > 0).astype(int)
        x = corners + 0.1 * RNG.normal(size=(60, 2))
        trained = ns.train(x, labels, steps=200, depth=1, groups=1)
        self.assertAlmostEqual((trained.net(x) == labels).mean(), trained.train.accuracy)
        swept = ns.train(X, np.abs(LABELS), steps=20, width=4, norm="layer", groups=(1, 2))
        self.assertEqual([run.groups for run in swept.runs], [None, 1, 2])
        self.assertIn("groups", swept.charts)

    def test_ctrl_c_leaves_a_state_to_continue_from(self):
        state = self.folder / "state"

        def stop(what, done, total):
            raise KeyboardInterrupt

        with self.assertRaises(KeyboardInterrupt):
            ns.train("xor", steps=10**6, resume=state, progress=stop)
        self.assertTrue(state.exists())


class Refused(Scratch):
    def test_wrong_arguments_are_refused_in_one_line(self):
        damaged = self.folder / "net"
        damaged.write_text("no net")
        for error, message, call in (
            (ValueError, "^build: expected exactly one of labels and random_labels$", lambda: ns.build(X)),
            (TypeError, "^build: x is int64, expected float64", lambda: ns.build(X.astype(int), LABELS)),
            (TypeError, "^build: labels is bool, expected integers$", lambda: ns.build(X, LABELS > 0)),
            (ValueError, "^build: label 0 is 0.5, expected an integer$", lambda: ns.build(X, [0.5] * 40)),
            (ValueError, r"^build: labels has shape \(40, 1\), expected one axis$",
             lambda: ns.build(X, LABELS[:, None])),
            (ValueError, r"^build: x has shape \(0, 5\), expected samples along the first axis$",
             lambda: ns.build(X[:0], [])),
            (ValueError, '^build: unknown mode "x", expected paper or stable$', lambda: ns.build(X, LABELS, mode="x")),
            (TypeError, "^build: mode is 3, expected a string$", lambda: ns.build(X, LABELS, mode=3)),
            (TypeError, "^build: output is 3, expected a path$", lambda: ns.build(X, LABELS, 3)),
            (ValueError, '^train: no task "x", expected spiral', lambda: ns.train("x")),
            (TypeError, "^train: what is 3, expected a string$", lambda: ns.train(3)),
            (TypeError, "^train: a task has labels of its own", lambda: ns.train("xor", LABELS)),
            (ValueError, "^train: rows applies to tasks only", lambda: ns.train(X, LABELS, rows=3)),
            (ValueError, "^train: 3 labels of 40 rows, expected one a row$", lambda: ns.train(X, [0, 1, 0])),
            (ValueError, "^train: width is 0, expected at least 1$", lambda: ns.train("xor", width=0)),
            (ValueError, 'unknown precision "F64", expected float64 or float32',
             lambda: ns.train("xor", precision="F64")),
            (OSError, "absent", lambda: ns.Net("absent")),
            (ValueError, str(damaged), lambda: ns.run(damaged, X)),
            (ValueError, "^net: x has 3 features, the net reads 5$", lambda: ns.run(ns.build(X, LABELS).net, X[:, :3])),
        ):
            with self.assertRaisesRegex(error, message) as caught:
                call()
            self.assertNotIn("\n", str(caught.exception))


if __name__ == "__main__":
    unittest.main()

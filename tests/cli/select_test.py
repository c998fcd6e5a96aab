"""`normscope select`: its answers, with certificates checked here independently in rational arithmetic."""

import json
import signal
import subprocess
import time
import unittest
from fractions import Fraction

import numpy as np

from command import CHECKPOINTS, COMMAND, CommandTest


class Select(CommandTest):
    def select(self, keys, *options):
        np.save(self.folder / "keys.npy", np.asarray(keys, float))
        return self.json("select", "keys.npy", *options)

    def certificates(self):
        return {path.stem: np.load(path) for path in (self.folder / "c").glob("*.npy")}

    def test_answers_hold_in_rational_arithmetic(self):
        random = np.random.default_rng(1)
        for count, width in ((12, 2), (40, 3), (60, 5), (30, 12)):
            keys = random.normal(size=(count, width))
            keys[-1] = keys[0]
            got = self.select(keys, "--certificates", "c")
            self.assertEqual(got["undecided"], [])
            files = self.certificates()
            exact = [[Fraction(x) for x in key] for key in keys]
            self.assertEqual(len(files["selectable"]) + len(files["unselectable"]), count)
            for i, query, margin in zip(files["selectable"].astype(int), files["queries"], files["margins"]):
                q = [Fraction(x) for x in query]
                lead = min(sum(a * (x - y) for a, x, y in zip(q, exact[i], exact[j])) for j in range(count) if j != i)
                self.assertGreater(lead, 0)
                # lead / |q| >= margin, squared.
                self.assertGreaterEqual(lead * lead, Fraction(margin) ** 2 * sum(a * a for a in q))
            for i, residual in zip(files["unselectable"].astype(int), files["residuals"]):
                shares = files["weights"][files["weights"][:, 0] == i]
                self.assertTrue((shares[:, 2] > 0).all() and (shares[:, 1] != i).all())
                total = sum(Fraction(w) for w in shares[:, 2])
                distance = [sum(Fraction(w) * exact[int(j)][k] for _, j, w in shares) / total - exact[i][k]
                            for k in range(width)]
                self.assertLessEqual(sum(x * x for x in distance), Fraction(residual) ** 2)
                self.assertLessEqual(residual, got["tolerance"] * got["scale"])

    def test_values_at_the_ends_of_what_is_accepted(self):
        for keys in ("1e30,0;0,1;1,1", "1e-60,0;0,1e-60;1e-60,1e-60", "1e30,1;1,1e-60;0,2", "1e-60,1;2e-60,1;3e-60,1;0,0"):
            got = self.json("select", keys)
            self.assertEqual(got["keys"], len(keys.split(";")))
        shape = np.random.default_rng(4).normal(size=(30, 3))
        plain = self.select(shape)
        for exponent in (-190, -40, 30, 95):
            scaled = self.select(np.ldexp(shape, exponent), "--certificates", "c")
            self.assertEqual(scaled["unselectable"], plain["unselectable"], exponent)
            self.assertTrue(np.all(self.certificates()["margins"] > 0), exponent)
        self.assertIn("column 0 extends over 1e-300, expected 0 or at least 2^-200", self.fails(3, "select", "1e-300,0;0,1"))
        self.assertIn("row 0 has 1e+308, expected numbers up to 2^100", self.fails(3, "select", "1e308,0;0,1;1,1"))

    def test_scaling_makes_every_key_selectable(self):
        keys = np.random.default_rng(2).normal(size=(200, 8))
        plain = self.select(keys, "--step", "project")
        self.assertGreater(len(plain["unselectable"]), 10)
        self.assertEqual(plain["norm"], {"kind": "layer", "steps": ["project"], "groups": 1, "eps": 1e-5,
                                         "source": None})
        for options in (("--norm", "layer"), ("--step", "project,scale"), ("--norm", "rms"), ("--step", "scale")):
            got = self.select(keys, *options)
            self.assertEqual((got["selectable"], got["proofs"]["own_direction"]), (200, 200), options)
        self.assertIsNone(self.select(keys)["norm"])

    def test_gain_and_bias_change_nothing_but_a_gain_of_zero_does(self):
        random = np.random.default_rng(3)
        keys, gain = random.normal(size=(200, 8)), random.normal(size=8)
        for zeros, some in ((0, False), (1, False), (3, True)):
            gain[:zeros] = 0
            np.save(self.folder / "gain.npy", gain)
            np.save(self.folder / "bias.npy", random.normal(size=8))
            got = self.select(keys, "--norm", "layer", "--gain", "gain.npy", "--bias", "bias.npy", "--eps", 0)
            self.assertEqual(len(got["unselectable"]) > 0, some, zeros)

    def test_rounding_of_a_float32_projection_is_not_a_direction(self):
        random = np.random.default_rng(4)
        keys = random.normal(size=(1024, 8)) * np.exp(random.normal(size=(1024, 1)))
        keys = (keys - keys.mean(1, keepdims=True))
        basis = np.linalg.svd(np.ones((1, 8)))[2][1:]
        expected = self.select(keys @ basis.T)["unselectable"]
        self.assertEqual(self.select(keys)["unselectable"], expected)
        rounded = keys.astype(np.float32)
        expected = self.select(rounded.astype(float) @ basis.T)["unselectable"]
        loose = self.select(rounded, "--rank-tolerance", 1e-5, "--tolerance", 1e-6)["unselectable"]
        self.assertEqual(loose, expected)
        self.assertLess(len(self.select(rounded)["unselectable"]), len(expected))

    def test_embeddings_of_real_models(self):
        for name, tensor, shape in (("gpt2_small_without_mlp", "wpe.weight", (1024, 768)),
                                    ("llama2c_stories260K.safetensors", "tok_emb", (512, 64)),
                                    ("rxnmapper_albert", "albert.embeddings.position_embeddings.weight", (512, 128))):
            with self.subTest(name):
                if not (CHECKPOINTS / name).exists():
                    self.skipTest(f"{CHECKPOINTS / name} is not there")
                got = self.json("select", f"{CHECKPOINTS / name}:{tensor}", "--certificates", "c")
                files = self.certificates()
                keys, queries = files["keys"], files["queries"]
                self.assertEqual((keys.shape, got["selectable"], got["undecided"]), (shape, len(queries), []))
                # Many of the keys are not selected by the query in their own direction.
                self.assertGreater(got["proofs"]["query"], 20)
                winners = files["selectable"].astype(int)
                scores = queries @ (keys - keys.mean(0)).T
                own = scores[np.arange(len(winners)), winners]
                scores[np.arange(len(winners)), winners] = -np.inf
                leads = (own - scores.max(1)) / np.linalg.norm(queries, axis=1)
                self.assertTrue((leads > 0).all())
                self.assertTrue((leads >= files["margins"] * (1 - 1e-9) - 1e-14).all())

    def test_odd_sets(self):
        self.assertEqual(self.select([[1, 2]])["proofs"]["alone"], 1)
        self.assertIsNone(self.select([[1, 2]])["margin"])
        none = self.select(np.ones((0, 3)))
        self.assertEqual((none["keys"], none["selectable"], none["unselectable"]), (0, 0, []))
        got = self.select([[1, 2], [1, 2], [0, 0]])
        self.assertEqual((got["unselectable"], got["proofs"]["twin"]), ([0, 1], 2))
        self.assertEqual(self.select([[0], [5], [1]])["unselectable"], [2])

    def test_check_turns_a_negative_answer_into_a_status(self):
        np.save(self.folder / "keys.npy", [[0.0], [5.0], [1.0]])
        self.assertEqual(self.run_command("select", "keys.npy", "--check").returncode, 1)
        self.assertIn("2 selectable, 1 not", self.ok("select", "keys.npy"))
        np.save(self.folder / "keys.npy", [[0.0], [5.0]])
        self.ok("select", "keys.npy", "--check")

    def test_the_keys_are_named(self):
        np.save(self.folder / "keys.npy", [[0.0], [5.0], [1.0]])
        text = self.ok("select", "keys.npy")
        self.assertIn("selectable keys, by row from 0: 0, 1", text)
        self.assertIn("keys that no query selects: 2", text)
        np.save(self.folder / "many.npy", np.arange(60.0)[:, None])
        text = self.ok("select", "many.npy")
        self.assertIn("keys that no query selects: 1, 2, 3,", text)
        self.assertIn("19, 20 and 38 others", text)

    def test_threads_do_not_change_the_document(self):
        keys = np.random.default_rng(5).normal(size=(1500, 6))
        self.assertEqual(self.select(keys, "--threads", 1), self.select(keys, "--threads", 3))

    def test_resumes_from_a_saved_state(self):
        keys = np.random.default_rng(6).normal(size=(900, 5))
        whole = self.select(keys)
        self.assertEqual(self.select(keys, "--resume", "state"), whole)
        self.assertEqual(self.select(keys, "--resume", "state"), whole)
        np.save(self.folder / "keys.npy", keys[1:])
        self.assertIn("other keys or options", self.fails(3, "select", "keys.npy", "--resume", "state"))

    def test_interrupted_work_is_kept(self):
        keys = np.random.default_rng(7).normal(size=(4000, 12))
        whole = self.select(keys)
        patience = 0.2
        for _ in range(40):
            work = subprocess.Popen([COMMAND, "select", "keys.npy", "--resume", "state", "--json", "got.json"],
                                    cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(patience)
            patience *= 1.2  # until a slow build, too, gets a block done before it is stopped
            work.send_signal(signal.SIGINT)
            work.communicate()
            if work.returncode == 0:
                break
            self.assertIn(work.returncode, (130, -signal.SIGINT))
            self.assertFalse((self.folder / "got.json").exists())
        self.assertEqual(json.loads((self.folder / "got.json").read_text()), whole)

    def test_random_table(self):
        options = ("select", "--random-table", "--runs", 20, "--most-width", 5, "--most-keys", 20)
        got = self.json(*options, "--figures", "f", "--threads", 1)
        self.assertEqual(got, self.json(*options, "--threads", 3))
        cells = {(cell["width"], cell["count"]): cell for cell in got["cells"]}
        self.assertEqual(len(cells), 3 * 18)
        self.assertEqual(cells[3, 20]["any"], 1)
        self.assertEqual(cells[5, 6]["any"], 0)
        self.assertAlmostEqual(cells[3, 20]["mean"], 0.3968, delta=0.06)
        for name in ("any", "mean"):
            figure = json.loads((self.folder / f"f/{name}.vl.json").read_text())
            self.assertEqual(len(figure["data"]["values"]), len(cells))
        scaled = self.json(*options, "--norm", "layer", "--eps", 0)
        self.assertEqual({cell["any"] for cell in scaled["cells"]}, {0})
        self.assertNotEqual(got, self.json(*options, "--seed", 2))
        self.assertIn("figure 1c of Brody and others 2023", self.ok(*options))
        self.assertIn("figure 1d of Brody and others 2023", self.ok(*options, "--norm", "layer", "--eps", 0))
        self.assertNotIn("figure 1", self.ok(*options, "--norm", "rms", "--eps", 0))
        self.fails(2, "select", "--runs", 3)
        self.fails(2, "select")

    def test_bad_input_is_named(self):
        np.save(self.folder / "keys.npy", [[1, np.nan]])
        self.assertIn("keys.npy: row 0 has nan in column 1", self.fails(3, "select", "keys.npy"))
        np.save(self.folder / "keys.npy", np.ones((3, 0)))
        self.assertIn("keys.npy: is empty", self.fails(3, "select", "keys.npy"))
        np.save(self.folder / "keys.npy", np.ones((3, 4)))
        np.save(self.folder / "gain.npy", np.ones(5))
        self.assertIn("5", self.fails(3, "select", "keys.npy", "--gain", "gain.npy"))
        self.assertIn("would overwrite", self.fails(3, "select", "keys.npy", "--certificates", "."))
        self.fails(2, "select", "keys.npy", "--step", "turn")


if __name__ == "__main__":
    unittest.main()

"""`signature`: real models' outputs against ellipses, proofs in rational arithmetic, and input that determines nothing."""

import json
import signal
import subprocess
import time
import unittest
from fractions import Fraction

import numpy as np

from command import COMMAND, OWN_MODEL, CommandTest, safetensors
from forward_pass import tensors
from signature_models import SORT, STORIES, rows_of, sort, stories, wordlist

FLOAT32 = 2.0**-24


def ellipse_of(gain, bias, unembedding, centers):
    """Semi-axes of the logits of weights, in float64 and by NumPy alone."""
    matrix = np.sqrt(len(gain)) * unembedding * gain
    if centers:
        matrix = matrix - matrix.mean(1, keepdims=True)
    matrix = matrix - matrix.mean(0)
    return np.linalg.svd(matrix, compute_uv=False)


class Signature(CommandTest):
    def rows(self, name, array, dtype=np.float32):
        np.save(self.folder / name, array.astype(dtype))
        return name

    def verdict(self, *arguments):
        return self.json("signature", "verify", *arguments)

    def test_outputs_against_models(self):
        """A cross table: each model's outputs are its own alone."""
        self.rows("wordlist.npy", rows_of(wordlist, 8, 32, 28))
        own = self.verdict(OWN_MODEL, "wordlist.npy")
        # 28 tokens have 27 dimensions for 63 of u: the ellipsoid is filled.
        self.assertEqual((own["verdict"], own["reason"], own["not_this_model"]), ("cannot tell", "filled", 0))
        self.assertLess(max(row["length"] for row in own["results"]), 1.0)
        other = tensors(OWN_MODEL / "model.safetensors")
        weights = {name: array.astype(np.float32) for name, array in other.items()}
        (self.folder / "other").mkdir()
        (self.folder / "other/config.json").write_bytes((OWN_MODEL / "config.json").read_bytes())
        weights["lm_head.weight"] = np.random.default_rng(3).permuted(weights["lm_head.weight"], axis=1) * np.float32(0.5)
        safetensors(self.folder / "other/model.safetensors", weights)
        found = self.verdict("other", "wordlist.npy")
        self.assertEqual((found["verdict"], found["proved"]), ("not this model", True))
        self.assertEqual(self.run_command("signature", "verify", "other", "wordlist.npy", "--check").returncode, 1)

    def margin(self, head, tokens, w, logits, slack):
        """w.(l - a0) - sum |w| slack, and |A^T w| squared, without a number of ours but w and slack."""
        unembedding, gain, bias, centers = head
        self.assertEqual(sum(w), 0)
        dot = lambda values: sum(a * Fraction(float(b)) for a, b in zip(w, values))
        column = [dot(unembedding[tokens, i]) for i in range(len(gain))]
        lead = dot(logits) - sum(c * Fraction(float(b)) for c, b in zip(column, bias))
        lead -= sum(abs(a) * Fraction(float(s)) for a, s in zip(w, slack))
        turned = [c * Fraction(float(g)) for c, g in zip(column, gain)]
        mean = sum(turned) / len(gain) if centers else 0
        return lead, len(gain) * sum((t - mean) ** 2 for t in turned)

    def assert_refuted(self, model, head, logits, genuine, ids=None, least=1):
        """The proofs of rows with float32 logits hold, and do not hold of the model's own outputs."""
        unembedding, gain, bias, _ = head
        width = len(gain)
        self.rows("x.npy", logits)
        options = [] if ids is None else ["--ids", "ids.npy"]
        if ids is not None:
            self.rows("ids.npy", ids, np.int64)
        found = self.json("signature", "verify", model, "x.npy", "--certificates", "proofs", *options)
        refuted = [row["row"] for row in found["results"] if row["proved"]]
        self.assertGreaterEqual(len(refuted), least)
        sizes = np.sqrt(width) * np.linalg.norm(unembedding * gain, axis=1) + np.abs(unembedding * bias).sum(1)
        for row in refuted[:4]:
            read = lambda name: np.load(self.folder / f"proofs/row_{row}_{name}.npy")
            tokens = np.arange(len(sizes)) if ids is None else ids[row]
            if ids is not None:
                np.testing.assert_array_equal(read("tokens"), tokens)
            np.testing.assert_array_equal(read("logits"), logits[row].astype(np.float64))
            # Rounding of the outputs, and of the model's own arithmetic, as the header states them.
            of_sums = (4 + width + 16) * FLOAT32 * sizes[tokens]
            self.assertTrue((read("slack") >= (4 * FLOAT32 * np.abs(logits[row]) + of_sums) * (1 - 1e-9)).all())
            w = [Fraction(value) for value in read("weights")]
            lead, square = self.margin(head, tokens, w, logits[row], read("slack"))
            self.assertGreater(lead, 0)
            self.assertGreater(lead**2, square)
            lead, square = self.margin(head, tokens, w, genuine[row], read("slack"))
            self.assertFalse(lead > 0 and lead**2 > square)
        if ids is None:
            first = f"proofs/row_{refuted[0]}_logits.npy"
            self.rows(first, logits)
            self.assertIn("would overwrite", self.fails(3, "signature", "verify", model, first, "--certificates", "proofs"))

    def test_certificates_hold_in_rational_arithmetic(self):
        """w sums to zero, and w.(l - a0) > r |P G W^T w| + sum |w| slack."""
        weights = tensors(OWN_MODEL / "model.safetensors")
        prefix = "transformer." if "transformer.ln_f.weight" in weights else ""
        head = (weights["lm_head.weight"], weights[prefix + "ln_f.weight"], weights[prefix + "ln_f.bias"], True)
        own = rows_of(wordlist, 2, 20, 28)
        self.assert_refuted(OWN_MODEL, head, own * np.float32(3.0), own, least=6)
        top = np.argsort(-own, 1)[:, :20]
        some = np.take_along_axis(own, top, 1)
        self.assert_refuted(OWN_MODEL, head, some * np.float32(3.0), some, top, least=6)

    @unittest.skipUnless(STORIES.exists(), "needs the real checkpoints")
    def test_certificates_of_an_rms_norm_hold_in_rational_arithmetic(self):
        w = tensors(STORIES)
        head = (w["tok_emb"], w["rms_final"], np.zeros(64), False)
        own = rows_of(stories, 1, 8, 512)
        # Outside the ellipse; and off the subspace, by a change of one logit.
        changed = own.copy()
        changed[:, 7] += np.float32(0.01)
        for logits in (own * np.float32(1.5), changed):
            self.assert_refuted(STORIES, head, logits, own, least=4)

    @unittest.skipUnless(STORIES.exists(), "needs the real checkpoints")
    def test_extracted_from_outputs_of_stories(self):
        """From outputs alone: axes as the weights have them, and outputs that tell the model."""
        self.rows("rows.npy", rows_of(stories, 48, 96, 512))
        self.rows("fresh.npy", rows_of(stories, 4, 32, 512, seed=5))
        found = self.json("signature", "extract", "rows.npy", "-o", "e.safetensors")
        w = tensors(STORIES)
        truth = ellipse_of(w["rms_final"], None, w["tok_emb"], centers=False)
        errors = np.abs(np.array(found["ellipse"]["semi_axes"]) / truth[:64] - 1)
        # Rows lie inside by eps/(2 mean square), 3e-6 at most here: no fit can know that.
        self.assertLess(np.median(errors), 1e-5)
        self.assertTrue((errors <= np.array(found["ellipse"]["errors"]) + 3.2e-6).all())
        self.assertEqual(found["ellipse"]["drowned"], 0)
        for against in ("e.safetensors", STORIES):
            self.assertEqual(self.verdict(against, "fresh.npy")["verdict"], "consistent")
        same = self.json("signature", "compare", "e.safetensors", STORIES)
        self.assertEqual(same["relation"], "same")
        kind = self.json("signature", "kind", "rows.npy", "--figures", "f")
        self.assertEqual((kind["norm"], kind["width"], kind["rank"]), ("rms", 64, 64))
        self.assertIn("vega-lite", json.loads((self.folder / "f/singular_values.vl.json").read_text())["$schema"])
        # A gain that is 2 % larger, and the same model at another temperature.
        tuned = {name: array.astype(np.float32) for name, array in w.items()}
        tuned["rms_final"] = tuned["rms_final"] * np.float32(1.02)
        safetensors(self.folder / "tuned.safetensors", tuned)
        self.assertEqual(self.verdict("tuned.safetensors", "fresh.npy", "--arch", "llama2c")["verdict"], "cannot tell")
        self.assertEqual(self.run_command("signature", "verify", "tuned.safetensors", "fresh.npy", "--arch", "llama2c",
                                          "--check").returncode, 4)
        self.assertEqual(self.json("signature", "compare", STORIES, "tuned.safetensors")["relation"], "rescaled")
        tuned["rms_final"] = tuned["rms_final"] * np.float32(0.96)
        safetensors(self.folder / "tuned.safetensors", tuned)
        found = self.verdict("tuned.safetensors", "fresh.npy", "--arch", "llama2c")
        self.assertEqual((found["verdict"], found["reason"], found["proved"]), ("not this model", "outside", True))
        fresh = np.load(self.folder / "fresh.npy")
        self.rows("cool.npy", fresh / np.float32(0.7))
        self.assertEqual(self.verdict(STORIES, "cool.npy")["verdict"], "not this model")
        self.assertEqual(self.verdict(STORIES, "cool.npy", "--temperature", 0.7)["verdict"], "consistent")
        shifted = fresh.astype(np.float64) - np.log(np.exp(fresh.astype(np.float64)).sum(1, keepdims=True))
        self.rows("logs.npy", shifted)
        self.assertEqual(self.verdict(STORIES, "logs.npy", "--dtype", "float32")["verdict"], "consistent")
        top = np.argsort(-fresh, 1)
        for count, verdict in ((100, "consistent"), (20, "cannot tell")):
            self.rows("top.npy", np.take_along_axis(shifted, top[:, :count], 1))
            self.rows("ids.npy", top[:, :count], np.int64)
            found = self.verdict(STORIES, "top.npy", "--ids", "ids.npy", "--dtype", "float32")
            self.assertEqual(found["verdict"], verdict)
            self.assertEqual(found["not_this_model"], 0)

    @unittest.skipUnless(SORT.exists(), "needs the real checkpoints")
    def test_three_tokens_fill_their_ellipse(self):
        self.rows("sorted.npy", rows_of(sort, 40, 11, 3))
        found = self.verdict(SORT, "sorted.npy", "--heads", 3)
        self.assertEqual((found["verdict"], found["not_this_model"]), ("cannot tell", 0))
        self.assertIn("fill all 2 dimensions", self.fails(3, "signature", "extract", "sorted.npy", "-o", "e.safetensors"))
        self.assertIn("cannot tell", self.ok("signature", "kind", "sorted.npy"))

    def test_an_interrupted_extraction_continues_to_the_same_bytes(self):
        rng = np.random.default_rng(1)
        hidden = rng.normal(size=(96 * 99, 96))
        self.rows("x.npy", hidden / np.linalg.norm(hidden, axis=1, keepdims=True) @ rng.normal(size=(96, 300)))
        words = ["signature", "extract", "x.npy", "--threads", "1", "-q", "-o"]
        begin = time.monotonic()
        self.ok(*words, "whole.safetensors")
        seconds = time.monotonic() - begin
        before = sorted(self.folder.iterdir())
        for part in (0.5, 0.7, 0.3, 0.9, 0.6, 0.8):
            work = subprocess.Popen([COMMAND, *words, "part.safetensors", "--resume", "state"], cwd=self.folder,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
            time.sleep(part * seconds)
            work.send_signal(signal.SIGINT)
            said = work.communicate(timeout=120)
            if work.returncode == 0:
                (self.folder / "part.safetensors").unlink()
                (self.folder / "state").unlink()
                continue
            # Before it handles signals, the process ends by this one.
            self.assertIn((work.returncode, *said), ((130, "", "normscope: cancelled\n"), (-signal.SIGINT, "", "")))
            left = set(self.folder.iterdir()) - set(before)
            self.assertLessEqual(left, {self.folder / "state"})
            if left:
                self.ok(*words, "part.safetensors", "--resume", "state")
                whole, resumed = ((self.folder / name).read_bytes() for name in ("whole.safetensors", "part.safetensors"))
                self.assertEqual(whole, resumed)
                return
        self.skipTest("it was never interrupted between two iterations")

    def test_a_resumed_extraction_writes_the_same_bytes(self):
        rng = np.random.default_rng(1)
        hidden = rng.normal(size=(300, 8))
        self.rows("x.npy", hidden / np.linalg.norm(hidden, axis=1, keepdims=True) @ rng.normal(size=(8, 20)))
        self.ok("signature", "extract", "x.npy", "-o", "a.safetensors", "--resume", "state", "-q")
        self.ok("signature", "extract", "x.npy", "-o", "b.safetensors", "--resume", "state", "-q")
        self.ok("signature", "extract", "x.npy", "-o", "c.safetensors", "-q", "--threads", 1)
        first = (self.folder / "a.safetensors").read_bytes()
        self.assertEqual(first, (self.folder / "b.safetensors").read_bytes())
        self.assertEqual(first, (self.folder / "c.safetensors").read_bytes())
        state = bytearray((self.folder / "state").read_bytes())
        state[200] ^= 1
        (self.folder / "state").write_bytes(bytes(state))
        self.fails(3, "signature", "extract", "x.npy", "-o", "d.safetensors", "--resume", "state")

    def test_what_is_refused(self):
        rng = np.random.default_rng(1)
        logits = rng.normal(size=(5, 28))
        probabilities = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        for name, rows, message in (
            ("p.npy", probabilities, "has probabilities"),
            ("n.npy", np.where(np.arange(5 * 28).reshape(5, 28) == 31, np.nan, logits), "row 1 has nan in column 3"),
            ("c.npy", np.where(np.arange(5)[:, None] == 1, 1.0, logits), "row 1 is constant"),
            ("w.npy", logits[:, :27], "has rows of 27 numbers, expected one for each of 28 tokens"),
        ):
            self.rows(name, rows)
            self.assertIn(message, self.fails(3, "signature", "verify", OWN_MODEL, name))
        self.rows("i.npy", rng.integers(0, 9, (5, 28)), np.int64)
        self.assertIn("expected F64, F32, F16 or BF16", self.fails(3, "signature", "verify", OWN_MODEL, "i.npy"))
        self.rows("x.npy", logits)
        self.assertIn("twice", self.fails(3, "signature", "verify", OWN_MODEL, "x.npy", "--ids", ",".join(["1"] * 28)))
        self.fails(2, "signature", "extract", "x.npy", "-o", "e.json")
        # A cloud without a norm behind it: a verdict, and no file.
        cloud = rng.normal(size=(400, 8)) @ rng.normal(size=(8, 20))
        self.rows("cloud.npy", cloud)
        done = self.run_command("signature", "extract", "cloud.npy", "-o", "e.safetensors")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertFalse((self.folder / "e.safetensors").exists())
        self.assertEqual(self.json("signature", "kind", "cloud.npy")["norm"], "none")


if __name__ == "__main__":
    unittest.main()

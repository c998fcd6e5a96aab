"""Signatures: arrays and files give what the command gives, proofs hold, and long fits stop."""

import doctest
import os
import signal
import tempfile
import threading
import unittest
from pathlib import Path

import normscope as ns
import numpy as np
from normscope import signature

SOURCE = Path(os.environ["NORMSCOPE_SOURCE_DIR"])
MODEL = SOURCE / "models/wordlist_gpt"
RNG = np.random.default_rng(11)
#: Unembedding of a model with an RMSNorm of width 8.
WEIGHTS = RNG.normal(size=(30, 8))


def rows(count, dtype=np.float64, weights=WEIGHTS):
    hidden = RNG.normal(size=(count, weights.shape[1]))
    return (hidden / np.sqrt((hidden**2).mean(1, keepdims=True)) @ weights.T).astype(dtype)


class Signature(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_the_ellipse_of_outputs_alone(self):
        given = rows(150)
        found = signature.extract(given)
        centred = np.sqrt(8) * (WEIGHTS - WEIGHTS.mean(0))
        lengths = np.linalg.svd(centred, compute_uv=False)
        np.testing.assert_allclose(found.ellipse.semi_axes, lengths, rtol=1e-10)
        np.testing.assert_allclose(found.ellipse.axes.T @ found.ellipse.axes, np.eye(8), atol=1e-10)
        self.assertEqual((found.rank, found.distinct_rows, found.ellipse.drowned), (8, 150, 0))
        self.assertEqual(signature.verify(found.ellipse, rows(20)).verdict, "consistent")
        self.assertEqual(signature.verify(found.ellipse, 1.001 * rows(20)).verdict, "not this model")
        self.assertEqual(signature.verify(found.ellipse, rows(20) / 0.7, temperature=0.7).verdict, "consistent")
        self.assertEqual(signature.compare(found.ellipse, signature.extract(3.0 * given).ellipse).relation, "rescaled")

    def test_arrays_and_files_are_the_same(self):
        given = rows(150, np.float32)
        np.save(self.folder / "x.npy", given)
        wide = np.empty((150, 60), np.float32)
        wide[:, ::2] = given
        of_file = signature.extract(self.folder / "x.npy", self.folder / "e.safetensors").document.to_dict()
        for layout in (given, np.asfortranarray(given), wide[:, ::2], given[None], given.astype(">f4")):
            document = signature.extract(layout, self.folder / "e.safetensors").document.to_dict()
            self.assertEqual(document | {"outputs": of_file["outputs"]}, of_file)
            self.assertEqual(document["outputs"], "outputs")
        loaded = signature.Ellipse(self.folder / "e.safetensors")
        loaded.save(self.folder / "again.safetensors")
        self.assertEqual((self.folder / "e.safetensors").read_bytes(), (self.folder / "again.safetensors").read_bytes())
        for ellipse in (loaded, self.folder / "e.safetensors", str(self.folder / "e.safetensors")):
            self.assertEqual(signature.verify(ellipse, rows(5, np.float32)).verdict, "consistent")
        with self.assertRaisesRegex(ValueError, "^Ellipse: .* holds no ellipse"):
            signature.Ellipse(MODEL / "model.safetensors")

    def test_values_of_some_tokens(self):
        ellipse = signature.extract(rows(150)).ellipse
        given = rows(6)
        ids = np.argsort(-given, 1)[:, :20]
        values = np.take_along_axis(given, ids, 1)
        self.assertEqual(signature.verify(ellipse, values, ids=ids).verdict, "consistent")
        self.assertEqual(signature.verify(ellipse, given[:, :20], ids=np.arange(20, dtype=np.uint8)).verdict, "consistent")
        self.assertEqual(signature.verify(ellipse, given[:, :20], ids=np.arange(1, 21)).verdict, "not this model")
        with self.assertRaisesRegex(TypeError, "^verify: ids is float64, expected integers$"):
            signature.verify(ellipse, values, ids=ids.astype(float))
        with self.assertRaisesRegex(ValueError, "expected one for each of 30 tokens, or their ids"):
            signature.verify(ellipse, values)

    def test_refuted_rows_have_proofs_that_hold(self):
        model = ns.open(MODEL)
        head = model.head()
        own = head.logits(RNG.normal(size=(12, head.norm.width))).astype(np.float32)
        found = signature.verify(model, own)
        self.assertEqual((found.verdict, found.reason, found.certificates), ("cannot tell", "filled", {}))
        logits = 3.0 * own
        for against in (model, MODEL):
            found = signature.verify(against, logits)
            self.assertEqual((found.verdict, found.proved), ("not this model", True))
        self.assertEqual(set(found.certificates), {result.row for result in found.results if result.proved})
        image = np.sqrt(head.norm.width) * head.unembedding * head.norm.gain
        image = image - image.mean(1, keepdims=True)
        for row, proof in found.certificates.items():
            np.testing.assert_array_equal(proof.logits, logits[row])
            self.assertIsNone(proof.tokens)
            self.assertLess(abs(proof.weights.sum()), 1e-12 * abs(proof.weights).sum())
            lead = proof.weights @ (proof.logits - head.unembedding @ head.norm.bias)
            self.assertGreater(lead, np.linalg.norm(image.T @ proof.weights) + abs(proof.weights) @ proof.slack)

    def test_the_norm_behind_outputs(self):
        found = signature.kind(rows(150))
        self.assertEqual((found.norm, found.width, found.rank), ("rms", 8, 8))
        self.assertIn("vega-lite", found.plot("singular_values")["$schema"])
        cloud = signature.extract(RNG.normal(size=(400, 8)) @ WEIGHTS.T)
        self.assertIsNone(cloud.ellipse)
        self.assertIsNone(cloud.document.ellipse)

    def test_types_are_found_or_stated(self):
        model = ns.open(MODEL)
        given = model.head().logits(RNG.normal(size=(4, 64))).astype(np.float16)
        self.assertEqual(signature.verify(model, given).precision, "F16")
        found = signature.verify(model, given.astype(float), precision="bfloat16")
        self.assertEqual((found.precision, found.precision_stated), ("BF16", True))
        with self.assertRaisesRegex(ValueError, "^kind: precision is 'int8', expected float64, float32"):
            signature.kind(given, precision="int8")

    def test_a_fit_stops_and_goes_on(self):
        given = rows(4000, weights=RNG.normal(size=(90, 60)))
        state = self.folder / "state"
        steps = []

        def interrupt(what, done, total):
            steps.append(what)
            if what.startswith("rounds"):
                os.kill(os.getpid(), signal.SIGINT)

        with self.assertRaises(KeyboardInterrupt):
            signature.extract(given, resume=state, progress=interrupt)
        self.assertIn("subspace", steps)
        self.assertTrue(state.exists())
        ticks, done = [], threading.Event()
        ticker = threading.Thread(target=lambda: [ticks.append(1) for _ in iter(lambda: done.wait(0.001), True)])
        ticker.start()
        found = signature.extract(given, resume=state)
        done.set()
        ticker.join()
        self.assertTrue(ticks, "other threads run meanwhile")
        self.assertEqual(found.rank, 60)

    def test_the_example(self):
        failed, tried = doctest.testmod(signature)
        self.assertTrue(tried)
        self.assertFalse(failed)


if __name__ == "__main__":
    unittest.main()

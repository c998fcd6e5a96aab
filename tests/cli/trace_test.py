"""`normscope trace`: its numbers are those of forward passes in NumPy, bad input is refused in one line."""

import json
import shutil
import unittest

import numpy as np

from command import CHECKPOINTS, OWN_MODEL, CommandTest, fixture
from forward_pass import Decoder, logits
from signature_models import STORIES, stories

WORD = "understanding"
IDS = [json.loads((OWN_MODEL / "vocab.json").read_text())[letter] for letter in WORD]


class Recorded(Decoder):
    """Keeps what enters each norm of the residual stream, and the attention weights of each layer."""

    def __init__(self, folder):
        super().__init__(folder)
        self.rows = []
        self.weights = []

    def weighted(self, weights, values):
        self.weights.append(weights)
        return super().weighted(weights, values)

    def norm(self, x, name, of_stream=True):
        self.rows.append((name, x))
        return super().norm(x, name, of_stream)


class Trace(CommandTest):
    def expect_probabilities(self, document, expected):
        shares = np.exp(expected - expected.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        for prediction, logit, share in zip(document["predictions"], expected, shares, strict=True):
            for token in prediction["likeliest"]:
                self.assertAlmostEqual(token["logit"], logit[token["token"]], delta=2e-5)
                self.assertAlmostEqual(token["probability"], share[token["token"]], delta=2e-5)
            self.assertEqual(prediction["likeliest"][0]["token"], int(logit.argmax()))

    def test_norms_and_predictions_are_those_of_the_definitions(self):
        document = self.json("trace", OWN_MODEL, WORD, "--likeliest", 28, "-q")
        self.assertEqual([token["token"] for token in document["tokens"]], IDS)
        self.assertEqual("".join(token["name"] for token in document["tokens"]), WORD)
        model = Recorded(OWN_MODEL)
        self.expect_probabilities(document, model.logits(np.array(IDS)))
        for norm, (name, rows) in zip(document["norms"], model.rows, strict=True):
            self.assertEqual(norm["name"], name)
            gain = model.w[name + ".weight"]
            for token, x in zip(norm["tokens"], rows, strict=True):
                centred = x - x.mean()
                sigma = np.sqrt(np.mean(centred**2) + 1e-5)
                self.assertAlmostEqual(token["sigma"], sigma, delta=1e-10 * sigma)
                self.assertAlmostEqual(token["length"], np.linalg.norm(x), delta=1e-10 * sigma)
                self.assertAlmostEqual(token["ones_share"], x.mean() ** 2 * len(x) / (x @ x), delta=1e-12)
                self.assertAlmostEqual(token["radius"], np.linalg.norm(centred) / (8 * sigma), delta=1e-12)
                y = gain * centred / sigma
                along = np.array(token["place"]) * [axis["length"] for axis in norm["axes"]]
                self.assertLess(along @ along, y @ y * (1 + 1e-9))
            # The longest axes are those of the dense matrix.
            values, vectors = np.linalg.eigh(64 * (np.diag(gain**2) - np.outer(gain, gain) / 64))
            for k, axis in enumerate(norm["axes"]):
                self.assertAlmostEqual(axis["length"], np.sqrt(values[-1 - k]), delta=1e-9)
                vector = vectors[:, -1 - k] * np.sign(vectors[axis["coordinate"], -1 - k])
                self.assertAlmostEqual(abs(axis["weight"]), vector.max(), delta=1e-6)
                for token, x in zip(norm["tokens"], rows, strict=True):
                    y = gain * (x - x.mean()) / token["sigma"]
                    self.assertAlmostEqual(token["place"][k], y @ vector / axis["length"] * np.sign(axis["weight"]), delta=1e-6)

    def test_attention_weights_are_those_of_the_definition(self):
        # Heads of their own keys; heads that share keys; windows.
        for folder, tokens in ((OWN_MODEL, IDS), (fixture("llama"), range(9)), (fixture("mistral"), range(9))):
            document = self.json("trace", folder, "--tokens", ",".join(map(str, tokens)), "-q")
            model = Recorded(folder)
            model.logits(np.array(tokens))
            before = np.zeros_like(model.rows[0][1])
            for norm, (_, rows) in zip(document["norms"], model.rows, strict=True):
                added = np.linalg.norm(rows - before, axis=1)
                np.testing.assert_allclose([token["added"] for token in norm["tokens"]], added, rtol=1e-9)
                before = rows
            self.assertEqual(document["first_query"], 0)
            expected = [(layer, head, weights[head]) for layer, weights in enumerate(model.weights) for head in range(len(weights))]
            for told, (layer, head, weights) in zip(document["attention"], expected, strict=True):
                self.assertEqual((told["layer"], told["head"]), (layer, head))
                for position, row in enumerate(told["weights"]):
                    np.testing.assert_allclose(row, weights[position, : position + 1], atol=1e-9)
            readers = [norm["readers"] for norm in document["norms"]]
            self.assertEqual(readers, [["attention"], ["mlp"]] * len(model.weights) + [["unembedding"]])
        # 16 heads have 16 * 13 + 16 * 12 weights at the last two positions.
        last = self.json("trace", OWN_MODEL, WORD, "--attention", 16 * 25, "-q")
        self.assertEqual((last["first_query"], [len(row) for row in last["attention"][0]["weights"]]), (11, [12, 13]))
        self.assertEqual(self.json("trace", OWN_MODEL, WORD, "--attention", 0, "-q")["first_query"], len(WORD))

    def test_a_lost_key_stays_selectable_until_it_is_lost(self):
        ids = [7 * i % 29 for i in range(12)]
        traced = lambda count: self.json("trace", fixture("phi"), "--tokens", ",".join(map(str, ids[:count])), "-q")["heads"]
        lost = [(index, key) for index, head in enumerate(traced(12)) for key in head["lost"]]
        self.assertGreater(len(lost), 0)
        for index, key in lost:
            self.assertIn(key["position"], traced(key["from"])[index]["selectable"])
            self.assertNotIn(key["position"], traced(key["from"] + 1)[index]["selectable"])

    def test_what_follows_has_a_rank(self):
        document = self.json("trace", OWN_MODEL, "--tokens", ",".join(map(str, IDS)), "-q")
        expected = logits(OWN_MODEL, np.array(IDS))
        for position, prediction in enumerate(document["predictions"][:-1]):
            row, token = expected[position], IDS[position + 1]
            self.assertEqual(prediction["next"]["token"], token)
            self.assertEqual(prediction["next"]["rank"], int((row > row[token]).sum()))
        self.assertIsNone(document["predictions"][-1]["next"])

    def test_keys_are_those_that_activations_count(self):
        document = self.json("trace", OWN_MODEL, WORD, "-q")
        self.assertEqual(len(document["heads"]), 16)
        for head in document["heads"]:
            self.assertEqual((head["selectable"], head["refused"]), (list(range(len(WORD))), ""))
        # Some of many keys in few dimensions are inside the hull of the others.
        tokens = ",".join(str(7 * i % 29) for i in range(12))
        self.ok("trace", fixture("phi"), "--tokens", tokens, "--json", "t.json", "--activations", "a.json", "-q")
        heads, counted = (json.loads((self.folder / name).read_text()) for name in ("t.json", "a.json"))
        hidden = 0
        for head, count in zip(heads["heads"], counted["in_model"]["heads"], strict=True):
            self.assertEqual((head["layer"], head["head"]), (count["layer"], count["head"]))
            self.assertEqual(len(head["selectable"]), count["counts"][count["own"]]["selectable"])
            hidden += 12 - len(head["selectable"])
        self.assertGreater(hidden, 0)

    def test_reach_is_that_of_reach(self):
        document = self.json("trace", OWN_MODEL, WORD, "-q")
        self.assertEqual({token["reach"] for one in document["predictions"] for token in one["likeliest"]}, {"yes"})
        self.assertEqual(document["reach_refused"], "")

    def test_outputs(self):
        out = self.ok("trace", OWN_MODEL, WORD, "-o", "trace.html", "--activations", "a.json", "--json", "t.json")
        self.assertIn("transformer.ln_f", out)
        self.assertIn("keys: 208 of 208 in 16 heads can be selected by some query", out)
        self.assertIn("reach: 25 of 25 likely tokens have the largest logit at some input of the final norm, 0 at none, 0 undecided", out)
        activations = json.loads((self.folder / "a.json").read_text())
        self.conforms("activations", activations)
        self.assertEqual([norm["rows"] for norm in activations["norms"]], [len(WORD)] * 9)
        trace = json.loads((self.folder / "t.json").read_text())
        for norm, observed in zip(trace["norms"], activations["norms"], strict=True):
            self.assertAlmostEqual(observed["sigma"]["mean"], np.mean([token["sigma"] for token in norm["tokens"]]), delta=1e-9)
        page = (self.folder / "trace.html").read_text()
        for part in ("normscope.token-trace/1", "trace-sigma", "trace-ones", "trace-place", "trace-keys", "trace-next"):
            self.assertIn(part, page)

    @unittest.skipUnless(CHECKPOINTS.is_dir(), "needs the checkpoints of $NORMSCOPE_DATA")
    def test_a_llama_of_other_authors(self):
        names = CHECKPOINTS / "tok512.bin"
        document = self.json("trace", STORIES, "Once upon a time", "--names", names, "-q")
        ids = [token["token"] for token in document["tokens"]]
        self.assertEqual(ids, [1, 403, 407, 261, 378])
        self.expect_probabilities(document, stories(np.array([ids]))[0])
        self.assertEqual([token["name"] for token in document["tokens"]][1:], [" Once", " upon", " a", " time"])
        self.assertIn("give one with --names FILE, or --tokens", self.fails(3, "trace", STORIES, "Once"))

    def test_bad_input(self):
        fails = lambda status, *arguments: self.fails(status, "trace", *arguments)
        self.assertIn("the text is empty", fails(3, OWN_MODEL, ""))
        self.assertIn('the text has "Z", which is not in the vocabulary', fails(3, OWN_MODEL, "Zebra"))
        self.assertIn("token 28 is not in the vocabulary, expected 0 to 27", fails(3, OWN_MODEL, "--tokens", "1,28"))
        self.assertIn("the context has 33 tokens, expected at most 32", fails(3, OWN_MODEL, "a" * 33))
        self.assertIn("not modelled: the forward pass of BERT", fails(3, fixture("bert"), "--tokens", "1"))
        self.assertIn("not modelled: attn_config.alibi_bias_max: 4", fails(3, fixture("mpt_scaled"), "--tokens", "1"))
        self.assertIn("expected either TEXT or --tokens", fails(2, OWN_MODEL))
        self.assertIn("expected either TEXT or --tokens", fails(2, OWN_MODEL, "a", "--tokens", "1"))
        self.assertIn("vocab.json", fails(3, OWN_MODEL, "a", "-o", OWN_MODEL / "vocab.json"))

    def test_fields_that_change_the_result_are_refused(self):
        for field, value in (("hidden_act", "quick_gelu"), ("a_field_of_tomorrow", 3), ("attention_sink", True)):
            shutil.copytree(fixture("llama"), self.folder / field)
            config = json.loads((self.folder / field / "config.json").read_text()) | {field: value}
            (self.folder / field / "config.json").write_text(json.dumps(config))
            self.assertIn(f"not modelled: {field}: ", self.fails(3, "trace", field, "--tokens", "1,2"))

    def test_a_stated_activation_is_used(self):
        shown = [self.json("trace", fixture("nanogpt"), "--heads", 3, "--tokens", "7,19", "--activation", name, "-q")
                 for name in ("gelu", "gelu_new")]
        first, second = (document["predictions"][-1]["likeliest"][0]["logit"] for document in shown)
        self.assertNotEqual(first, second)
        self.assertIn("not modelled: the activation", self.fails(3, "trace", fixture("nanogpt"), "--heads", 3, "--tokens", "7"))
        self.assertIn("states its activation itself",
                      self.fails(3, "trace", fixture("gpt2"), "--tokens", "7", "--activation", "gelu"))


if __name__ == "__main__":
    unittest.main()

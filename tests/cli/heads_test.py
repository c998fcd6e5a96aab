"""`normscope heads`: the most uniform and the sharpest attention of each head."""

import json
import struct
import unittest
from fractions import Fraction

import numpy as np

from command import CHECKPOINTS, OWN_MODEL, CommandTest, fixture, safetensors
from head_models import normed_heads


def tensors(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    types = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}
    result = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + offset for offset in entry["data_offsets"])
            result[name] = np.frombuffer(data[begin:end], types[entry["dtype"]]).reshape(entry["shape"]).astype(float)
    return result


def extremes(matrix, offset):
    """Least and largest |M u + m| over |u| <= 1, from the eigenvalues of MᵀM and a bisection of the multiplier."""
    values, vectors = np.linalg.eigh(matrix.T @ matrix)
    values = np.maximum(values, 0.0)
    b = vectors.T @ (matrix.T @ offset)
    length = lambda u: np.linalg.norm(matrix @ (vectors @ u) + offset)

    def bisect(point, low, high):
        for _ in range(300):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if np.linalg.norm(point(middle)) > 1.0 else (low, middle)
        return point(high)

    big = np.linalg.norm(b) + values[-1]
    smallest = 1e-13 * values[-1]
    least = bisect(lambda mu: -b / (values + mu), smallest, big)
    largest = bisect(lambda t: b / (t + values[-1] - values), smallest, big)
    return length(least), length(largest)


def of_gpt2(weights, layer, head, heads, centers=True):
    gain, bias = (weights[f"h.{layer}.ln_1.{part}"] for part in ("weight", "bias"))
    width = len(gain)
    dim = width // heads
    attention = weights[f"h.{layer}.attn.c_attn.weight"]
    part = lambda third: attention[:, third * width + head * dim:third * width + (head + 1) * dim].T
    project = np.eye(width) - (1.0 / width if centers else 0.0)
    query = np.sqrt(width) * part(0) * gain @ project
    key = np.sqrt(width) * part(1) * gain @ project
    begin = head * dim
    constant = part(0) @ bias + weights[f"h.{layer}.attn.c_attn.bias"][begin:begin + dim]
    return extremes(2 / np.sqrt(dim) * key.T @ query, 2 / np.sqrt(dim) * key.T @ constant)


def stories_spreads(weights, tokens):
    """The forward pass of a llama2.c model in float64: (layer, head, largest spread of a row of scores)."""
    width, dim, count, shared = 64, 8, 8, 2
    angles = np.arange(len(tokens))[:, None] * 10000.0 ** (-np.arange(0, dim, 2) / dim)

    def norm(x, gain):
        return gain * x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)

    def turned(x):
        a, b, c, s = x[..., 0::2], x[..., 1::2], np.cos(angles)[:, None], np.sin(angles)[:, None]
        return np.stack([a * c - b * s, a * s + b * c], -1).reshape(x.shape)

    x = weights["tok_emb"][tokens]
    for layer in range(5):
        part = lambda name, out, into: weights[name][layer].reshape(out, into)
        h = norm(x, weights["rms_att"][layer])
        q = turned((h @ part("wq", width, width).T).reshape(-1, count, dim))
        k = turned((h @ part("wk", width // shared, width).T).reshape(-1, count // shared, dim))
        v = (h @ part("wv", width // shared, width).T).reshape(-1, count // shared, dim)
        mixed = []
        for head in range(count):
            scores = q[:, head] @ k[:, head // shared].T / np.sqrt(dim)
            seen = np.tril(np.ones(scores.shape, bool))
            yield layer, head, (np.where(seen, scores, -np.inf).max(1) - np.where(seen, scores, np.inf).min(1)).max()
            likely = np.where(seen, np.exp(scores - np.where(seen, scores, -np.inf).max(1, keepdims=True)), 0)
            mixed.append(likely / likely.sum(1, keepdims=True) @ v[:, head // shared])
        x = x + np.concatenate(mixed, 1) @ part("wo", width, width).T
        h = norm(x, weights["rms_ffn"][layer])
        gate = h @ part("w1", 172, width).T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ part("w3", 172, width).T)) @ part("w2", width, 172).T



class Heads(CommandTest):
    def test_heads_of_several_stacks_name_theirs(self):
        for case, stacks in (("clip", {"vision", "text"}), ("bart", {"encoder", "decoder"}), ("gpt2", {""}),
                                ("t5_encoder", {""})):
            with self.subTest(case):
                names = {head["stack"] for head in self.json("report", fixture(case))["heads"]}
                self.assertEqual(names, stacks)
        places = {(head["stack"], head["layer"], head["head"]) for head in self.json("heads", fixture("clip"))["heads"]}
        self.assertEqual(len(places), 10)
        self.assertRegex(self.ok("heads", fixture("clip")), r"(?m)^vision +0 +0 .*\n(.*\n)*text   +0 +0 ")
        self.assertNotRegex(self.ok("heads", fixture("gpt2")), "stack|decoder")

    def test_extremes_are_those_of_a_dense_solver(self):
        weights = tensors(OWN_MODEL / "model.safetensors")
        weights = {name.removeprefix("transformer."): value for name, value in weights.items()}
        document = self.json("heads", OWN_MODEL)
        heads = json.loads((OWN_MODEL / "config.json").read_text())["n_head"]
        self.assertEqual(len(document["heads"]) % heads, 0)
        for got in document["heads"]:
            place = (got["layer"], got["head"])
            least, largest = of_gpt2(weights, *place, heads)
            scale = 1e-7 * got["sharp_spread"]
            np.testing.assert_allclose(got["uniform_bounds"], least, atol=scale, err_msg=str(place))
            np.testing.assert_allclose(got["sharp_bounds"], largest, atol=scale, err_msg=str(place))
            self.assertLessEqual(got["uniform_bounds"][0], got["uniform_bounds"][1])
            self.assertEqual(got["uniform_spread"], got["uniform_bounds"][1])
            least, largest = of_gpt2(weights, *place, heads, centers=False)
            np.testing.assert_allclose(got["without_projection"]["uniform_bounds"], least, atol=scale)
            np.testing.assert_allclose(got["without_projection"]["sharp_bounds"], largest, atol=scale)
            self.assertNotIn("uniform_query", got)

    def test_what_the_file_does_not_state_can_be_stated(self):
        model = self.folder / "bare.safetensors"
        model.write_bytes((fixture("gpt2") / "model.safetensors").read_bytes())
        self.assertIn("the number of heads is not known", self.fails(3, "heads", model))
        stated = ["--arch", "gpt2", "--heads", "3"]
        heads = self.json("heads", model, *stated, "--proofs")
        (self.folder / "heads.json").write_text(json.dumps(heads))
        self.assertEqual((heads["inputs"]["architecture"], heads["inputs"]["heads"]), ("gpt2", 3))
        own = self.json("heads", fixture("gpt2"))
        self.assertEqual([head["sharp_bounds"] for head in heads["heads"]],
                         [head["sharp_bounds"] for head in own["heads"]])
        self.assertIn(" 0 failed", self.ok("verify", "heads.json"))
        self.assertIn("stated: gpt2", self.ok("inspect", model, *stated))
        for command in ("report", "ranges", "reach"):
            self.ok(command, model, *stated)
        self.ok("rewrite", model, *stated, "--fold", "gains", "-o", "folded.safetensors")
        self.assertIn("equivalent", self.ok("compare", model, "folded.safetensors", *stated))
        self.fails(3, "heads", model, "--arch", "llama")
        self.fails(3, "heads", fixture("gpt2"), "--heads", "6")

    def test_queries_are_in_the_document_only_on_request(self):
        for got in self.json("heads", OWN_MODEL, "--queries")["heads"]:
            self.assertEqual(len(got["uniform_query"]), got["head_dim"])
            self.assertEqual(len(got["sharp_query"]), got["head_dim"])

    def test_printed_spreads_are_bounds(self):
        heads = self.json("heads", OWN_MODEL)["heads"]
        for line, got in zip(self.ok("heads", OWN_MODEL).splitlines()[1:], heads):
            _, _, *shown = line.split()
            for (least, most), stated in zip((shown[:2], shown[2:]), (got, got["without_projection"])):
                self.assertLessEqual(Fraction(least), Fraction(stated["uniform_bounds"][0]))
                self.assertGreaterEqual(Fraction(most), Fraction(stated["sharp_bounds"][1]))
                self.assertAlmostEqual(float(most) / stated["sharp_bounds"][1], 1.0, delta=1e-3)

    def test_printed_spreads_at_distance_zero_are_bounds(self):
        for eps, rank in ((1e-6, 4), (1e-6, 2), (0.5, 4)):
            normed_heads(self.folder, np.random.default_rng(5), eps, rank)
            (got,) = self.json("heads", ".")["heads"]
            least, most = self.ok("heads", ".").splitlines()[1].split()[-2:]
            uniform, sharp = (got["distances"]["at_distance_zero"][end + "_bounds"] for end in ("uniform", "sharp"))
            self.assertGreaterEqual(Fraction(most.removeprefix("<=")), Fraction(sharp[1]))
            self.assertEqual(most.startswith("<="), sharp[1] - sharp[0] > 1e-3 * sharp[1] or
                             uniform[1] - uniform[0] > 1e-3 * sharp[1])
            self.assertNotEqual(least, ">=0")
            if least.startswith("<="):
                self.assertGreaterEqual(Fraction(least.removeprefix("<=")), Fraction(uniform[1]))
            elif least != "-":
                self.assertLessEqual(Fraction(least.removeprefix(">=")), Fraction(uniform[0]))

    def test_threads_do_not_change_the_document(self):
        self.assertEqual(self.json("heads", OWN_MODEL, "--threads", 1), self.json("heads", OWN_MODEL, "--threads", 2))

    def test_the_report_says_the_same(self):
        self.ok("report", OWN_MODEL, "-o", "page.html", "--json", "report.json")
        report = json.loads((self.folder / "report.json").read_text())
        self.assertEqual(report["heads"], self.json("heads", OWN_MODEL)["heads"])

    def llama(self, **extra):
        """A head of two features over a stream of four, with the given other tensors."""
        rows = np.random.default_rng(2).normal(size=(2, 4)).astype(np.float32)
        layer = "model.layers.0."
        named = {f"{layer}self_attn.{part}_proj.weight": rows for part in "qk"}
        named |= {f"{layer}self_attn.v_proj.weight": rows, f"{layer}self_attn.o_proj.weight": rows.T.copy()}
        named |= {f"{layer}mlp.{part}_proj.weight": np.ones((4, 4), np.float32) for part in ("gate", "up", "down")}
        named |= {f"{layer}{norm}_layernorm.weight": np.ones(4, np.float32) for norm in ("input", "post_attention")}
        named |= {"model.norm.weight": np.ones(4, np.float32), "model.embed_tokens.weight": np.ones((5, 4), np.float32)}
        named |= {layer + name: value for name, value in extra.items()}
        (self.folder / "model").mkdir(exist_ok=True)
        safetensors(self.folder / "model/model.safetensors", named)
        (self.folder / "model/config.json").write_text(json.dumps(
            {"model_type": "llama", "hidden_size": 4, "num_attention_heads": 1, "num_key_value_heads": 1,
             "head_dim": 2, "rms_norm_eps": 1e-6, "num_hidden_layers": 1}))
        return rows.astype(float)

    def test_a_head_behind_a_root_mean_square_norm(self):
        rows = self.llama()
        (head,) = self.json("heads", "model")["heads"]
        zero = head["distances"]["at_distance_zero"]
        self.assertAlmostEqual(zero["sharp_bounds"][0] / np.linalg.norm(2 / np.sqrt(2) * 4 * rows.T @ rows, 2), 1.0, 12)
        self.assertNotIn("without_projection", zero)
        # One rotary pair takes any angle, so the longest query can be parallel to the longest key.
        everywhere = 2 / np.sqrt(2) * 4 * np.linalg.norm(rows, 2) ** 2
        self.assertAlmostEqual(head["distances"]["sharp_at_most_anywhere"] / everywhere, 1.0, 9)
        self.assertAlmostEqual(head["sharp_bounds"][0] / everywhere, 1.0, 4)
        self.assertIsNone(head["distances"]["within"])
        self.assertLess(head["uniform_bounds"][1], 1e-9)

    def test_maps_of_low_rank_have_bounds(self):
        normed_heads(self.folder, np.random.default_rng(5), 1e-6, 2)
        (got,) = self.json("heads", ".", "--queries")["heads"]
        self.assertEqual((got["sharp_spread"], got["uniform_spread"], got["own_norms"]["queries_fill"]),
                         (None, None, 0))
        self.assertEqual((got["sharp_query"], got["sharp_row"]), ([], []))
        self.assertEqual(got["sharp_bounds"][0], 0)
        self.assertGreater(got["sharp_bounds"][1], 0)
        sharpest = self.ok("heads", ".").splitlines()[1].split()[3]
        self.assertEqual(sharpest[:2], "<=")
        self.assertGreaterEqual(Fraction(sharpest[2:]), Fraction(got["sharp_bounds"][1]))

    def test_a_context_length_bounds_the_distances(self):
        normed_heads(self.folder, np.random.default_rng(7), 1e-6, 4)
        (free,) = self.json("heads", ".")["heads"]
        (short,) = self.json("heads", ".", "--context", 3)["heads"]
        self.assertIsNone(free["distances"]["within"])
        self.assertEqual((short["distances"]["within"], short["distances"]["enumerated"]), (3, True))
        self.assertLessEqual(short["sharp_bounds"][1], free["sharp_bounds"][1])
        self.assertEqual([t for t, _ in short["distances"]["curve"]], [0, 1, 2])
        self.assertIn('at distance 0", the spread', self.ok("heads", "."))

    @unittest.skipUnless(CHECKPOINTS.is_dir(), "no real checkpoints here")
    def test_no_real_sequence_is_beyond_the_bounds(self):
        path = CHECKPOINTS / "llama2c_stories260K.safetensors"
        weights = tensors(path)
        heads = self.json("heads", path, "--context", 282)["heads"]
        random = np.random.default_rng(8)
        sequences = [random.integers(0, 512, 282), np.repeat(random.integers(0, 512, 6), 47)]
        beyond_zero = 0
        for tokens in sequences:
            for layer, head, spread in stories_spreads(weights, tokens):
                got = heads[layer * 8 + head]
                self.assertEqual((got["layer"], got["head"]), (layer, head))
                self.assertLessEqual(spread, got["sharp_bounds"][1] * (1 + 1e-9))
                beyond_zero += spread > got["distances"]["at_distance_zero"]["sharp_bounds"][1]
        self.assertGreater(beyond_zero, 0, "what holds at distance 0 holds nowhere else")
        attained = np.array([head["sharp_bounds"] for head in heads])
        self.assertGreater(np.median(attained[:, 0] / attained[:, 1]), 0.98)

    def test_what_is_not_modelled_is_refused_with_the_reason(self):
        self.llama(**{"self_attn.k_proj.weight": np.full((2, 4), np.nan, np.float32)})
        (head,) = self.json("heads", "model")["heads"]
        self.assertEqual((head["refused"], head["sharp_spread"]), ("its weights are not finite", None))
        self.assertIn("not known: its weights are not finite", self.ok("heads", "model"))

    @unittest.skipUnless(CHECKPOINTS.is_dir(), "no real checkpoints here")
    def test_every_real_head_has_bounds_or_a_reason(self):
        counted = 0
        for path in sorted(CHECKPOINTS.iterdir()):
            if not (path.is_dir() or path.suffix in (".safetensors", ".onnx", ".pt")):
                continue
            done = self.run_command("heads", path, "--json", "heads.json")
            if done.returncode == 3:  # nothing is known of any head, and the line says why
                self.assertRegex(done.stderr, r"^normscope: [^\n]*: (no attention heads|not modelled|the number of heads)")
                continue
            self.assertEqual((done.returncode, done.stderr), (0, ""), path)
            for head in json.loads((self.folder / "heads.json").read_text())["heads"]:
                if "refused" in head:
                    continue
                counted += 1
                near = 0.1 if "distances" in head else 1e-8
                for low, high in (head["uniform_bounds"], head["sharp_bounds"]):
                    self.assertTrue(0.0 <= low <= high, path)
                    self.assertLessEqual(high - low, near * head["sharp_bounds"][1], path)
        self.assertGreater(counted, 0)


if __name__ == "__main__":
    unittest.main()

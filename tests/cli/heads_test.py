"""`normscope heads`: the most uniform and the sharpest attention of each head."""

import json
import struct
import unittest

import numpy as np

from command import CHECKPOINTS, OWN_MODEL, CommandTest, safetensors


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


class Heads(CommandTest):
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

    def test_queries_come_when_asked_for(self):
        for got in self.json("heads", OWN_MODEL, "--queries")["heads"]:
            self.assertEqual(len(got["uniform_query"]), got["head_dim"])
            self.assertEqual(len(got["sharp_query"]), got["head_dim"])

    def test_threads_do_not_change_the_document(self):
        self.assertEqual(self.json("heads", OWN_MODEL, "--threads", 1), self.json("heads", OWN_MODEL, "--threads", 2))

    def test_the_report_says_the_same(self):
        self.ok("report", OWN_MODEL, "-o", "page.html", "--json", "report.json")
        report = json.loads((self.folder / "report.json").read_text())
        self.assertEqual(report["heads"], self.json("heads", OWN_MODEL)["heads"])

    def llama(self, **extra):
        """A head of two features over a stream of four, and what else it is given."""
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
        matrix = 2 / np.sqrt(2) * 4 * rows.T @ rows
        self.assertAlmostEqual(head["sharp_spread"] / np.linalg.norm(matrix, 2), 1.0, 12)
        self.assertLess(head["uniform_spread"], 1e-9)
        self.assertNotIn("without_projection", head)

    def test_what_cannot_be_said_is_refused_with_the_reason(self):
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
            for head in self.json("heads", path)["heads"]:
                if "refused" in head:
                    continue
                counted += 1
                for low, high in (head["uniform_bounds"], head["sharp_bounds"]):
                    self.assertTrue(0.0 <= low <= high, path)
                    self.assertLessEqual(high - low, 1e-8 * head["sharp_bounds"][1], path)
        self.assertGreater(counted, 0)


if __name__ == "__main__":
    unittest.main()

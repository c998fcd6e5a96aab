"""`normscope heads`: the most uniform and the sharpest attention of each head."""

import json
import struct
import unittest
from fractions import Fraction
from math import isqrt

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


def exact(matrix):
    return [[Fraction(float(value)) for value in row] for row in np.atleast_2d(matrix)]


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def transposed(a):
    return [list(column) for column in zip(*a)]


def scaled(factor, a):
    return [[factor * value for value in row] for row in a]


def diagonal(values):
    return [[value if i == j else Fraction(0) for j in range(len(values))] for i, value in enumerate(values)]


def centering(width):
    return [[Fraction(i == j) - Fraction(1, width) for j in range(width)] for i in range(width)]


def square(column):
    return sum(value * value for (value,) in column)


def root_above(value):
    """A fraction at least the square root, by less than 2⁻²⁰⁰ of it or of one."""
    scale = 1 << 400
    return Fraction(isqrt(value.numerator * scale // value.denominator) + 1, 1 << 200)


def solved(matrix, column):
    """A⁻¹ b of a symmetric matrix; None where it is not positive definite."""
    rows = [list(row) + list(end) for row, end in zip(matrix, column)]
    for k, row in enumerate(rows):
        if row[k] <= 0:
            return None
        for other in rows[k + 1:]:
            factor = other[k] / row[k]
            other[:] = [a - factor * b for a, b in zip(other, row)]
    result = []
    for k in reversed(range(len(rows))):
        rest = sum(rows[k][k + 1 + i] * value for i, (value,) in enumerate(result))
        result.insert(0, [(rows[k][-1] - rest) / rows[k][k]])
    return result


class Certificates:
    """|M u + m| over |u| <= 1 in fractions, and what proves bounds of it."""

    def __init__(self, test, matrix, offset):
        self.test, self.matrix, self.offset = test, matrix, offset

    def at(self, u):
        return [[a + b] for (a,), (b,) in zip(product(self.matrix, u), self.offset)]

    def is_at_least_at(self, u, bound):
        self.test.assertLessEqual(square(u), 1)
        self.test.assertGreaterEqual(square(self.at(u)), Fraction(bound) ** 2)

    def is_at_most_at(self, u, bound):
        self.test.assertLessEqual(square(u), 1)
        self.test.assertLessEqual(square(self.at(u)), Fraction(bound) ** 2)

    def is_nowhere_below(self, bound, u):
        """yᵀ(M u + m) >= yᵀm − |Mᵀy| for every u, whatever y is."""
        if bound == 0:
            return
        y = self.at(u)
        along = product(transposed(y), self.offset)[0][0] - Fraction(bound) * root_above(square(y))
        self.test.assertGreaterEqual(along, 0)
        self.test.assertGreaterEqual(along**2, square(product(transposed(self.matrix), y)))

    def is_nowhere_above(self, bound, multiplier):
        """|M u + m|² <= μ + |m|² + bᵀ(μI − MᵀM)⁻¹b, with b = Mᵀm, where that matrix is positive definite."""
        gram = product(transposed(self.matrix), self.matrix)
        b = product(transposed(self.matrix), self.offset)
        for exponent in range(52, 20, -2):
            mu = Fraction(multiplier) * (1 + Fraction(1, 1 << exponent))
            shifted = [[mu * (i == j) - value for j, value in enumerate(row)] for i, row in enumerate(gram)]
            x = solved(shifted, b)
            if x is not None and mu + square(self.offset) + product(transposed(b), x)[0][0] <= Fraction(bound) ** 2:
                return
        self.test.fail(f"no multiplier near {multiplier} proves {bound}")


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

    def test_certificates_hold_in_rational_arithmetic(self):
        random = np.random.default_rng(3)
        whole = lambda *shape: random.integers(-6, 7, shape).astype(np.float32)
        never_uniform = 0
        for trial in range(12):
            width, dim = (4, 4) if trial % 2 == 0 else (16, 4)
            weight, bias = whole(width, 3 * width), whole(3 * width) * (0, 1, 9)[trial % 3]
            gain, shift = random.integers(1, 4, width).astype(np.float32), whole(width) * (trial % 3 > 0)
            ones = {part: np.ones(width, np.float32) for part in ("weight", "bias")}
            named = {"wte.weight": whole(5, width), "wpe.weight": whole(3, width)}
            named |= {"h.0.ln_1.weight": gain, "h.0.ln_1.bias": shift, "h.0.attn.c_attn.weight": weight,
                      "h.0.attn.c_attn.bias": bias}
            named |= {f"{norm}.{part}": value for norm in ("h.0.ln_2", "ln_f") for part, value in ones.items()}
            safetensors(self.folder / "model.safetensors", named)
            (self.folder / "config.json").write_text(json.dumps(
                {"model_type": "gpt2", "n_embd": width, "n_head": width // dim, "n_layer": 1,
                 "layer_norm_epsilon": 1e-5}))
            heads = self.json("heads", ".", "--queries")["heads"]
            self.assertEqual(len(heads), width // dim)
            for got in heads[:2]:
                self.assertEqual(got["scale"], 0.5)
                radius, begin = Fraction(isqrt(width)), got["head"] * dim
                maps = [exact(weight[:, part * width + begin:part * width + begin + dim].T) for part in range(2)]
                rows = scaled(radius, product(diagonal(exact(gain)[0]), centering(width)))
                keys = transposed(product(maps[1], rows))
                constant = [[a + Fraction(float(b))] for (a,), b in zip(
                    product(maps[0], transposed(exact(shift))), bias[begin:begin + dim])]
                proof = Certificates(self, product(keys, product(maps[0], rows)), product(keys, constant))
                point = lambda row: product(centering(width), [
                    [(Fraction(value) - Fraction(float(b))) / radius / Fraction(float(g))]
                    for value, b, g in zip(row, shift, gain)])
                sharp, uniform = point(got["sharp_row"]), point(got["uniform_row"])
                proof.is_at_least_at(sharp, got["sharp_bounds"][0])
                proof.is_nowhere_above(got["sharp_bounds"][1], got["sharp_multiplier"])
                proof.is_at_most_at(uniform, got["uniform_bounds"][1])
                proof.is_nowhere_below(got["uniform_bounds"][0], uniform)
                never_uniform += got["uniform_bounds"][0] > 0
        self.assertGreater(never_uniform, 3)

    def normed(self, random, own_eps, rank):
        """A head of four features over a stream of 16, with norms of its own on queries and keys."""
        whole = lambda *shape: random.integers(-6, 7, shape).astype(np.float32)
        layer, ones = "model.layers.0.", np.ones(16, np.float32)
        maps = {part: whole(4, 16) for part in "qk"}
        maps["q"][rank:] = maps["q"][0]
        gains = {part: random.integers(1, 9, 4).astype(np.float32) for part in "qk"}
        named = {f"{layer}self_attn.{part}_proj.weight": maps[part] for part in "qk"}
        named |= {f"{layer}self_attn.{part}_norm.weight": gains[part] for part in "qk"}
        named |= {f"{layer}self_attn.v_proj.weight": whole(4, 16), f"{layer}self_attn.o_proj.weight": whole(16, 4)}
        named |= {f"{layer}mlp.{part}_proj.weight": whole(16, 16) for part in ("gate", "up", "down")}
        named |= {f"{layer}{norm}_layernorm.weight": ones for norm in ("input", "post_attention")}
        named |= {"model.norm.weight": ones, "model.embed_tokens.weight": whole(5, 16)}
        safetensors(self.folder / "model.safetensors", named)
        (self.folder / "config.json").write_text(json.dumps(
            {"model_type": "qwen3", "hidden_size": 16, "num_attention_heads": 1, "num_key_value_heads": 1,
             "head_dim": 4, "rms_norm_eps": own_eps, "num_hidden_layers": 1}))
        return maps, gains

    def test_certificates_behind_norms_of_their_own_hold_in_rational_arithmetic(self):
        random = np.random.default_rng(4)
        for trial in range(8):
            eps = (2.0**-20, 0.0, 64.0, 2.0**-10)[trial % 4]
            maps, gains = self.normed(random, eps, 4)
            (got,) = self.json("heads", ".", "--queries")["heads"]
            own = got["own_norms"]
            self.assertEqual(own["query"], "model.layers.0.self_attn.q_norm")
            if eps < 1:
                self.assertEqual((got["sharp_spread"], got["uniform_spread"]),
                                 (got["sharp_bounds"][0], got["uniform_bounds"][1]))
            gain = {part: diagonal(exact(gains[part])[0]) for part in "qk"}
            # Norms of four features put out twice a point of the ball, scores are halved.
            proof = Certificates(self, scaled(4, product(gain["k"], gain["q"])), [[Fraction(0)]] * 4)
            proof.is_nowhere_above(got["sharp_bounds"][1], got["sharp_multiplier"])
            self.assertEqual(got["uniform_bounds"][0], 0.0)
            fills = {part: Fraction(own[name]) for part, name in (("q", "queries_fill"), ("k", "keys_fill"))}
            v = [[Fraction(value) / 2 / Fraction(float(g))] for value, g in zip(got["sharp_query"], gains["q"])]
            self.assertLessEqual(square(v), fills["q"] ** 2)
            self.assertGreaterEqual(square(proof.at(v)) * fills["k"] ** 2, Fraction(got["sharp_bounds"][0]) ** 2)
            for part, fill in fills.items():
                # σ² = ρ² e/(1 − ρ²), e = 4 eps, is below the least eigenvalue of 16 W Wᵀ.
                self.assertTrue(0 < fill < 1)
                least = fill**2 * 4 * Fraction(eps) / (1 - fill**2)
                rows = exact(maps[part])
                gram = scaled(16, product(rows, transposed(rows)))
                self.assertIsNotNone(solved([[value - least * (i == j) for j, value in enumerate(row)]
                                             for i, row in enumerate(gram)], [[Fraction(0)]] * 4))

    def test_maps_that_miss_directions_leave_bounds(self):
        self.normed(np.random.default_rng(5), 1e-6, 2)
        (got,) = self.json("heads", ".", "--queries")["heads"]
        self.assertEqual((got["sharp_spread"], got["uniform_spread"], got["own_norms"]["queries_fill"]),
                         (None, None, 0))
        self.assertEqual((got["sharp_query"], got["sharp_row"]), ([], []))
        self.assertGreater(got["sharp_bounds"][1], 0)
        text = self.ok("heads", ".")
        self.assertIn(f"<={got['sharp_bounds'][1]:.4g}", text)
        self.assertIn("hidden states need not reach", text)

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

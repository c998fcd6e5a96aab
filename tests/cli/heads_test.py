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
            self.normed(np.random.default_rng(5), eps, rank)
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
        zero = head["distances"]["at_distance_zero"]
        self.assertAlmostEqual(zero["sharp_bounds"][0] / np.linalg.norm(2 / np.sqrt(2) * 4 * rows.T @ rows, 2), 1.0, 12)
        self.assertNotIn("without_projection", zero)
        # One pair turns to any angle, so the longest query meets the longest key.
        everywhere = 2 / np.sqrt(2) * 4 * np.linalg.norm(rows, 2) ** 2
        self.assertAlmostEqual(head["distances"]["sharp_at_most_anywhere"] / everywhere, 1.0, 9)
        self.assertAlmostEqual(head["sharp_bounds"][0] / everywhere, 1.0, 4)
        self.assertIsNone(head["distances"]["within"])
        self.assertLess(head["uniform_bounds"][1], 1e-9)

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

    def proves(self, proof, query, constant, key, key_constant):
        """2 max|q'| max|k'| of a certificate at every distance is at most its spread, in fractions. Squares of both
        are rational: |q'|² = qᵀ W q and |k'|² = kᵀ W⁻¹ k, with W = FᵀF on the coordinates that stay and w_j on pair j."""
        dim, still = len(query), proof["still"]
        pairs = [[j, j + dim_of_pairs] for dim_of_pairs in [len(proof["weights"])] for j in range(dim_of_pairs)]
        self.assertEqual(sorted(still + sum(pairs, [])), list(range(dim)))
        self.assertTrue(all(turn == 1.0 for turn in proof["turns"]))
        factor = [proof["factor"][i * len(still):(i + 1) * len(still)] for i in range(len(still))]
        weights = [[Fraction(0)] * dim for _ in range(dim)]
        for i, a in enumerate(still):
            for j, b in enumerate(still):
                weights[a][b] = sum(Fraction(row[i]) * Fraction(row[j]) for row in factor)
        for pair, weight in zip(pairs, proof["weights"]):
            for i in pair:
                weights[i][i] = Fraction(weight)
        moved = [[Fraction(0) if i in still else value] for i, (value,) in enumerate(key_constant)]
        inverse = lambda columns: transposed([[value for (value,) in solved(weights, [[x] for x in column])]
                                              for column in transposed(columns)])
        squares = [self.largest_square(product(transposed(query), product(weights, query)),
                                       product(transposed(query), product(weights, constant)),
                                       product(transposed(constant), product(weights, constant))[0][0],
                                       proof["query_multiplier"]),
                   self.largest_square(product(transposed(key), inverse(key)), product(transposed(key), inverse(moved)),
                                       product(transposed(moved), inverse(moved))[0][0], proof["key_multiplier"])]
        self.assertLessEqual(4 * squares[0] * squares[1], Fraction(proof["spread"]) ** 2)

    def largest_square(self, gram, b, constant, multiplier):
        """An upper bound of uᵀ gram u + 2 bᵀu + constant over |u| <= 1, by the multiplier."""
        for exponent in range(48, 20, -2):
            mu = Fraction(multiplier) * (1 + Fraction(1, 1 << exponent)) + Fraction(1, 1 << 200)
            x = solved([[mu * (i == j) - value for j, value in enumerate(row)] for i, row in enumerate(gram)], b)
            if x is not None:
                return mu + constant + product(transposed(b), x)[0][0]
        return self.fail(f"{multiplier} is no multiplier")

    def spread_of(self, certificates, query, key, head):
        """Of the stored context, from the points of both balls, each turned forward by its own position."""
        sharp, half = certificates["sharp"], head["rotation"]["dims"] // 2
        position = max(sharp["keys"]["high_distance"], sharp["keys"]["low_distance"])

        def turned(x, at):
            angles = at * np.array(certificates["frequencies"])
            a, b, rest = x[:half], x[half:2 * half], x[2 * half:]
            return np.concatenate([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles), rest])

        def score(which):
            k = turned(key(np.array(sharp["keys"][which])), position - sharp["keys"][which + "_distance"])
            q = turned(query(np.array(sharp["query"])), position)
            still = q[2 * half:] @ k[2 * half:]
            return head["scale"] * (head["rotation"]["score_factor"] * (q @ k - still) + still)

        return score("high") - score("low")

    def test_certificates_of_heads_that_turn_hold_in_rational_arithmetic(self):
        random = np.random.default_rng(6)
        whole = lambda *shape: random.integers(-6, 7, shape).astype(np.float32)
        for trial, portion in enumerate((1.0, 0.5, 1.0, 0.5)):
            named = {f"gpt_neox.layers.0.input_layernorm.{part}": whole(16) for part in ("weight", "bias")}
            named |= {f"gpt_neox.layers.0.post_attention_layernorm.{part}": whole(16) for part in ("weight", "bias")}
            fused = {"weight": whole(48, 16), "bias": whole(48) * (trial > 1)}
            named |= {f"gpt_neox.layers.0.attention.query_key_value.{part}": value for part, value in fused.items()}
            named |= {"gpt_neox.layers.0.attention.dense.weight": whole(16, 16),
                      "gpt_neox.layers.0.attention.dense.bias": whole(16)}
            for part, shape in (("dense_h_to_4h", (64, 16)), ("dense_4h_to_h", (16, 64))):
                named |= {f"gpt_neox.layers.0.mlp.{part}.weight": whole(*shape), f"gpt_neox.layers.0.mlp.{part}.bias":
                          whole(shape[0])}
            named |= {"gpt_neox.embed_in.weight": whole(5, 16), "embed_out.weight": whole(5, 16)}
            named |= {f"gpt_neox.final_layer_norm.{part}": whole(16) for part in ("weight", "bias")}
            safetensors(self.folder / "model.safetensors", named)
            (self.folder / "config.json").write_text(json.dumps(
                {"model_type": "gpt_neox", "hidden_size": 16, "num_attention_heads": 4, "num_hidden_layers": 1,
                 "layer_norm_eps": 1e-5, "rotary_pct": portion, "max_position_embeddings": 24,
                 "use_parallel_residual": True, "hidden_act": "gelu", "intermediate_size": 64, "vocab_size": 5}))
            heads = self.json("heads", ".", "--certificates")["heads"]
            self.assertEqual(len(heads), 4)
            gain, shift = (named[f"gpt_neox.layers.0.input_layernorm.{part}"] for part in ("weight", "bias"))
            for got in heads[:2]:
                certificates = got["certificates"]
                rows = scaled(Fraction(4), product(diagonal(exact(gain)[0]), centering(16)))
                first = got["head"] * 12
                maps = [exact(fused["weight"][first + 4 * part:first + 4 * part + 4]) for part in range(2)]
                biases = [transposed(exact(fused["bias"][first + 4 * part:first + 4 * part + 4])) for part in range(2)]
                query, key = (product(part, rows) for part in maps)
                constant, key_constant = (
                    [[a + b] for (a,), (b,) in zip(product(part, transposed(exact(shift))), bias)]
                    for part, bias in zip(maps, biases))
                key, key_constant = scaled(Fraction(1, 2), key), scaled(Fraction(1, 2), key_constant)
                proof = certificates["sharp"]["everywhere"]
                self.proves(proof, query, constant, key, key_constant)
                self.assertEqual(proof["spread"], got["distances"]["sharp_at_most_anywhere"])
                real = lambda matrix: np.array([[float(value) for value in row] for row in matrix])
                query, constant, key, key_constant = map(real, (query, constant, key, key_constant))
                attained = self.spread_of(certificates, lambda u: query @ u + constant[:, 0],
                                          lambda v: 2 * (key @ v + key_constant[:, 0]), got)
                self.assertAlmostEqual(attained / got["sharp_bounds"][0], 1.0, 9)
                self.check_by_distance(got, query, constant, key, key_constant)
                self.check_unavoidable(got, query, constant, key, key_constant)

    def turn(self, got, vectors, t):
        """Columns turned by t positions."""
        half = got["rotation"]["dims"] // 2
        angles = -t * np.array(got["certificates"]["frequencies"])[:, None]  # behind the query
        a, b = vectors[:half], vectors[half:2 * half]
        return np.concatenate([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles),
                               vectors[2 * half:]])

    def check_by_distance(self, got, query, constant, key, key_constant):
        """At each distance the largest |qᵀ(R_t k − z)| that the two ellipsoids allow is at most the reach."""
        proof = got["certificates"]["sharp"]["by_distance"]
        self.assertEqual(proof["distances"], got["distances"]["within"])
        moved = key_constant.copy()
        moved[got["rotation"]["dims"]:] = 0
        square, other = proof["query_square"], proof["key_square"]
        shape = query @ query.T
        if square:
            shape = (1 + square) * (shape + constant @ constant.T / square)
        for t in range(proof["distances"]):
            turned = self.turn(got, key, t)
            gram = turned @ turned.T
            if other:
                shift = self.turn(got, moved, t) - np.array(proof["centre"])[:, None]
                gram = (1 + other) * (gram + shift @ shift.T / other)
            most = np.sqrt(np.linalg.eigvals(shape @ gram).real.max())
            self.assertLessEqual(most, proof["reach"] * (1 + 1e-12))
        self.assertLessEqual(2 * proof["reach"], proof["spread"])
        self.assertEqual(got["sharp_bounds"][1], min(proof["spread"], got["distances"]["sharp_at_most_anywhere"]))

    def check_unavoidable(self, got, query, constant, key, key_constant):
        """cᵀg − |Cᵀg| of the weighted contexts is the lower end of the most uniform."""
        g, shares = np.zeros(len(query)), 0.0
        moved = key_constant.copy()
        moved[got["rotation"]["dims"]:] = 0
        for context in got["certificates"]["uniform"]["unavoidable"]:
            for which, sign in (("high", 1), ("low", -1)):
                v = np.array(context[which])[:, None]
                self.assertLessEqual(np.linalg.norm(v), 1)
                g += sign * context["share"] * self.turn(got, key @ v + moved, context[which + "_distance"])[:, 0]
            shares += context["share"]
        lower = got["uniform_bounds"][0]
        if lower == 0:
            return
        self.assertAlmostEqual(shares, 1.0, 12)
        self.assertAlmostEqual((constant[:, 0] @ g - np.linalg.norm(query.T @ g)) / lower, 1.0, 8)

    def test_certificates_behind_norms_of_their_own_hold_in_rational_arithmetic(self):
        random = np.random.default_rng(4)
        for trial in range(8):
            eps = (2.0**-20, 0.0, 64.0, 2.0**-10)[trial % 4]
            maps, gains = self.normed(random, eps, 4)
            (got,) = self.json("heads", ".", "--certificates")["heads"]
            own, certificates = got["own_norms"], got["certificates"]
            self.assertEqual(own["query"], "model.layers.0.self_attn.q_norm")
            gain = {part: diagonal(exact(gains[part])[0]) for part in "qk"}
            # Norms of four features put out twice a point of the ball, scores are halved.
            none = [[Fraction(0)]] * 4
            self.proves(certificates["sharp"]["everywhere"], scaled(Fraction(2), gain["q"]), none, gain["k"], none)
            self.assertEqual(got["uniform_bounds"][0], 0.0)
            fills = {part: Fraction(own[name]) for part, name in (("q", "queries_fill"), ("k", "keys_fill"))}
            for point, part in ((certificates["sharp"]["query"], "q"), (certificates["sharp"]["keys"]["high"], "k"),
                                (certificates["sharp"]["keys"]["low"], "k")):
                self.assertLessEqual(square([[Fraction(value)] for value in point]), fills[part] ** 2)
            attained = self.spread_of(certificates, lambda v: 2.0 * gains["q"] * v, lambda v: 2.0 * gains["k"] * v, got)
            self.assertAlmostEqual(attained / got["sharp_bounds"][0], 1.0, 9)
            for part, fill in fills.items():
                # σ² = ρ² e/(1 − ρ²), e = 4 eps, is below the least eigenvalue of 16 W Wᵀ.
                self.assertTrue(0 < fill < 1)
                least = fill**2 * 4 * Fraction(eps) / (1 - fill**2)
                radius = certificates["queries_radius" if part == "q" else "keys_radius"]
                self.assertLessEqual(least, Fraction(radius) ** 2)
                rows = exact(maps[part])
                gram = scaled(16, product(rows, transposed(rows)))
                self.assertIsNotNone(solved([[value - Fraction(radius) ** 2 * (i == j) for j, value in enumerate(row)]
                                             for i, row in enumerate(gram)], [[Fraction(0)]] * 4))

    def test_maps_that_miss_directions_leave_bounds(self):
        self.normed(np.random.default_rng(5), 1e-6, 2)
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
        self.normed(np.random.default_rng(7), 1e-6, 4)
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
                near = 0.1 if "distances" in head else 1e-8
                for low, high in (head["uniform_bounds"], head["sharp_bounds"]):
                    self.assertTrue(0.0 <= low <= high, path)
                    self.assertLessEqual(high - low, near * head["sharp_bounds"][1], path)
        self.assertGreater(counted, 0)


if __name__ == "__main__":
    unittest.main()

"""The certificates of `normscope heads`, checked in rational arithmetic."""

import json
import unittest
from fractions import Fraction
from math import isqrt

import numpy as np

from command import CommandTest, safetensors
from head_models import normed_heads
from rational import exact, product, transposed, scaled, diagonal, centering, square, solved, Certificates


class HeadCertificates(CommandTest):
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
        """The scores of the stored context, from the points of both balls, each rotated by its own position."""
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
            heads = self.json("heads", ".", "--proofs")["heads"]
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
        """Columns rotated by t positions."""
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
            maps, gains = normed_heads(self.folder, random, eps, 4)
            (got,) = self.json("heads", ".", "--proofs")["heads"]
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


if __name__ == "__main__":
    unittest.main()

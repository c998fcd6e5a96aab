"""`normscope verify` on results of `heads`: good ones pass, and any change of one is found."""

import copy
import json
import unittest

import numpy as np

from command import CHECKPOINTS, OWN_MODEL, safetensors
from modelled_test import LLAMA, tensors
from results import ResultTest

STRONGER = 1e-6  # by this part of itself


def parent_of(document, path):
    for name in path[:-1]:
        document = document[name]
    return document


def numbers(document, path=()):
    """Paths to all numbers."""
    items = document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    for name, value in items:
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            yield path + (name,)
        else:
            yield from numbers(value, path + (name,))


class VerifyHeads(ResultTest):
    def model(self, fields, named):
        folder = self.folder / "model"
        folder.mkdir(exist_ok=True)
        safetensors(folder / "model.safetensors", named)
        (folder / "config.json").write_text(json.dumps(fields))
        return "model"

    def llama(self, fields, **how):
        named = tensors(np.random.default_rng(3), **how)
        return self.model(LLAMA | fields, named)

    def gemma(self):
        """Soft caps, and a window in every other layer."""
        return self.llama({"model_type": "gemma2", "attn_logit_softcapping": 20.0, "query_pre_attn_scalar": 4,
                           "sliding_window": 9, "num_hidden_layers": 2, "max_position_embeddings": 30}, layers=2, sandwich=True)

    def long_context(self):
        """Frequencies scaled as in Llama 3, and a context too long to check every distance."""
        return self.llama({"model_type": "llama", "max_position_embeddings": 2**31,
                           "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                                            "high_freq_factor": 4.0, "original_max_position_embeddings": 1024}})

    def normed(self):
        named = tensors(np.random.default_rng(3))
        named |= {f"model.layers.0.self_attn.{part}_norm.weight": np.linspace(0.5, 2, 4).astype(np.float32) for part in "qk"}
        return self.model(LLAMA | {"model_type": "qwen3", "max_position_embeddings": 12, "rms_norm_eps": 1e-2}, named)

    def neox(self, size=1.0):
        """Biases everywhere, and rotary embeddings on half of the coordinates."""
        new = lambda *shape: np.random.default_rng(sum(shape) + 5).normal(size=shape).astype(np.float32)
        layer = "gpt_neox.layers.0."
        named = {f"{layer}{norm}.{part}": new(16) for norm in ("input_layernorm", "post_attention_layernorm")
                 for part in ("weight", "bias")}
        named |= {f"{layer}attention.query_key_value.weight": new(48, 16), f"{layer}attention.dense.weight": new(16, 16),
                  f"{layer}attention.query_key_value.bias": np.float32(9 * size) * new(48), f"{layer}attention.dense.bias": new(16)}
        named |= {f"{layer}mlp.dense_h_to_4h.weight": new(64, 16), f"{layer}mlp.dense_h_to_4h.bias": new(64),
                  f"{layer}mlp.dense_4h_to_h.weight": new(16, 64), f"{layer}mlp.dense_4h_to_h.bias": new(16),
                  "gpt_neox.embed_in.weight": new(5, 16), "embed_out.weight": new(5, 16)}
        named |= {f"gpt_neox.final_layer_norm.{part}": new(16) for part in ("weight", "bias")}
        return self.model({"model_type": "gpt_neox", "hidden_size": 16, "num_attention_heads": 4, "num_hidden_layers": 1,
                           "layer_norm_eps": 1e-5, "rotary_pct": 0.5, "max_position_embeddings": 24, "vocab_size": 5,
                           "use_parallel_residual": True, "hidden_act": "gelu", "intermediate_size": 64}, named)

    def albert(self):
        new = lambda *shape: np.random.default_rng(sum(shape) + 7).normal(size=shape).astype(np.float32)
        layer = "encoder.albert_layer_groups.0.albert_layers.0."
        named = {f"embeddings.{part}_embeddings.weight": new(rows, 6)
                 for part, rows in (("word", 9), ("position", 5), ("token_type", 2))}
        for norm, width in (("embeddings.LayerNorm", 6), (layer + "attention.LayerNorm", 8), (layer + "full_layer_layer_norm", 8)):
            named |= {norm + ".weight": new(width), norm + ".bias": new(width)}
        linear = [("encoder.embedding_hidden_mapping_in", 8, 6), (layer + "ffn", 12, 8), (layer + "ffn_output", 8, 12)]
        linear += [(layer + "attention." + part, 8, 8) for part in ("query", "key", "value", "dense")]
        for name, out, into in linear:
            named |= {name + ".weight": new(out, into), name + ".bias": 3 * new(out)}
        return self.model({"model_type": "albert", "hidden_size": 8, "embedding_size": 6, "num_attention_heads": 2,
                           "num_hidden_layers": 3}, named)

    def models(self):
        return self.gemma, self.long_context, self.normed, self.neox, self.albert

    def test_heads_pass(self):
        seen = set()
        for model in (*self.models(), lambda: OWN_MODEL):
            document = self.result("heads", model(), "--proofs")
            got = self.passes()
            self.assertLessEqual({finding["item"].rpartition(".")[2].rpartition(" ")[2] for finding in got["not_checkable"]},
                                 {"uniform_without_scaling", "curve"})
            for head in document["heads"]:
                sharp = head["certificates"]["sharp"]
                seen |= {name for name in ("in_context", "by_distance") if sharp.get(name)}
                seen |= {name for name in ("between", "own_norms", "without_projection") if name in head}
                seen |= {"unavoidable"} if head["certificates"]["uniform"]["unavoidable"] else set()
                seen |= {"soft_cap"} if head["soft_cap"] else set()
        self.assertEqual(seen, {"in_context", "by_distance", "between", "own_norms", "without_projection", "unavoidable",
                                "soft_cap"})

    def test_heads_without_queries_or_keys_pass(self):
        for part in ("self_attn.q_proj", "self_attn.k_proj", "input_layernorm"):
            named = tensors(np.random.default_rng(3))
            named[f"model.layers.0.{part}.weight"][:] = 0.0
            document = self.result("heads", self.model(LLAMA | {"model_type": "llama"}, named), "--proofs")
            self.assertEqual(document["heads"][0]["sharp_bounds"], [0.0, 0.0])
            self.passes()

    def test_heads_of_real_models_pass(self):
        if not CHECKPOINTS.is_dir():
            self.skipTest("no real checkpoints here")
        for name in ("llama2c_stories260K.safetensors", "rxnmapper_albert", "galileo_nano_encoder"):
            self.result("heads", CHECKPOINTS / name, "--proofs", "--context", 64)
            self.passes(CHECKPOINTS / name)

    def test_without_certificates_nothing_can_be_checked(self):
        self.result("heads", self.neox())
        got = self.passes()
        self.assertEqual(sum("make it with certificates" in finding["reason"] for finding in got["not_checkable"]), 4)

    def stronger(self, head):
        """For each number stated as proved or attained: its path, and a tighter value, which is not proved."""
        bounds = [()] + [path for path in (("without_projection",), ("distances", "at_distance_zero"),
                                           ("distances", "at_distance_zero", "without_projection"))
                         if path[-1] in parent_of(head, path)] if "distances" in head else [()]
        if "without_projection" in head:
            bounds.append(("without_projection",))
        for path in bounds:
            at = head
            for name in path:
                at = at[name]
            sharpest = at["sharp_bounds"][1]
            for name in ("uniform_bounds", "sharp_bounds"):
                lower, upper = at[name]
                yield path + (name, 0), lower * (1 + STRONGER) if lower else 1e-3 * sharpest
                if upper > 1e-7 * sharpest:
                    yield path + (name, 1), upper * (1 - STRONGER)
        for name in ("sharp_at_most_anywhere", "uniform_at_most_anywhere"):
            if "distances" in head and head["distances"][name] > 1e-7 * head["sharp_bounds"][1]:
                yield ("distances", name), head["distances"][name] * (1 - STRONGER)
        for name in ("uniform_spread", "sharp_spread"):
            if head[name] is not None:
                yield (name,), head[name] * (1 + STRONGER)
        for name in ("queries_fill", "keys_fill"):
            if "own_norms" in head:
                yield ("own_norms", name), 0.5 * (1 + head["own_norms"][name])
        sharp = head["certificates"]["sharp"]
        for name in ("everywhere", "in_context", "by_distance"):
            if sharp.get(name):
                yield ("certificates", "sharp", name, "spread"), sharp[name]["spread"] * (1 - STRONGER)
        if sharp.get("by_distance"):
            yield ("certificates", "sharp", "by_distance", "reach"), 0.99 * sharp["by_distance"]["reach"]

    def fails_in_all(self, document, changes):
        """Each change must be found."""
        for label, change in changes:
            forged = copy.deepcopy(document)
            change(forged)
            (self.folder / "result.json").write_text(json.dumps(forged))
            done = self.run_command("verify", "result.json", "-q")
            self.assertEqual(done.returncode, 1, label)

    def test_tighter_bounds_than_proved_are_caught(self):
        tried = set()
        for model in self.models():
            document = self.result("heads", model(), "--proofs")
            kept = []
            for path, value in self.stronger(document["heads"][-1]):
                def change(forged, path=path, value=value):
                    parent_of(forged["heads"][-1], path)[path[-1]] = value
                kept.append(((model.__name__, path, value), change))
                tried.add(path)
            self.fails_in_all(document, kept)
        self.assertGreater(len(tried), 25)

    def test_stated_facts_are_compared_with_the_model(self):
        document = self.result("heads", self.gemma(), "--proofs")
        head = document["heads"][0]
        kept = []
        for name in ("layer", "head", "key_value_head", "head_dim", "scale", "soft_cap"):
            kept.append((name, lambda forged, n=name: forged["heads"][0].update({n: head[n] + 1})))
        for name in ("dims", "score_factor", "context"):
            kept.append((name, lambda forged, n=name: forged["heads"][0]["rotation"].update({n: (head["rotation"][n] or 0) + 2})))
        for name in ("norm", "query", "key", "value"):
            kept.append((name, lambda forged, n=name: forged["heads"][0].update({n: head[n] + "x"})))
        kept += [("window", lambda forged: forged["heads"][0].update(window=None if head["window"] else 9)),
                 ("soft_cap", lambda forged: forged["heads"][0].update(soft_cap=None)),
                 ("interleaved", lambda forged: forged["heads"][0]["rotation"].update(interleaved=True)),
                 ("frequency", lambda forged: forged["heads"][0]["certificates"]["frequencies"].__setitem__(0, 0.9)),
                 ("within", lambda forged: forged["heads"][0]["distances"].update(within=None)),
                 ("within", lambda forged: forged["heads"][0]["distances"].update(within=31))]
        self.fails_in_all(document, kept)

    def test_changed_proofs_are_caught(self):
        points = 0
        for model in self.models():
            document = self.result("heads", model(), "--proofs")
            head = document["heads"][0]
            kept = []
            for path in numbers(head["certificates"]):
                if path[-1] == 0 or path[-1] in ("query_multiplier", "key_multiplier", "share"):
                    value = parent_of(head["certificates"], path)[path[-1]]
                    # A point outside the ball, weights that bound nothing.
                    worse = -1.0 if path[-1] == "share" else 1.5 if value == 0 or "weights" not in path else -value
                    if "multiplier" in str(path[-1]):
                        worse = 0.5 * value if value and "anywhere" not in path else None
                    # Numbers that another certificate proves as well.
                    if path[:2] == ("uniform", "query") and "distances" in head:
                        worse = None
                    if worse is None or path[-2] in ("factor", "turns", "frequencies", "centre", "still"):
                        continue
                    kept.append(((model.__name__, path), lambda forged, p=path, w=worse: parent_of(
                        forged["heads"][0]["certificates"], p).__setitem__(p[-1], w)))
            for name in ("everywhere", "in_context"):
                proof = head["certificates"]["sharp"].get(name)
                if not proof:
                    continue
                changes = {"turns": [0.9 * x for x in proof["turns"]], "factor": [2 * x for x in proof["factor"]],
                           "still": proof["still"][:-1] + proof["still"][:1], "weights": [-x for x in proof["weights"]]}
                for part, value in changes.items():
                    if value == proof[part]:
                        continue
                    kept.append(((model.__name__, name, part), lambda forged, n=name, p=part, v=value: forged["heads"][0][
                        "certificates"]["sharp"][n].update({p: v})))
            points += len(kept)
            self.fails_in_all(document, kept)
        self.assertGreater(points, 30)

    def test_other_models_are_refused(self):
        document = self.result("heads", self.neox(), "--proofs")
        self.neox(2.0)
        self.assertIn("heads[0] query bias has other values", self.fails(3, "verify", "result.json"))
        document["inputs"]["arrays"] = []
        (self.folder / "result.json").write_text(json.dumps(document))
        self.assertEqual(self.run_command("verify", "result.json").returncode, 1)
        document["heads"].pop()
        (self.folder / "result.json").write_text(json.dumps(document))
        self.assertIn("is of 3 heads, expected those of the inputs, 4", self.fails(3, "verify", "result.json"))


if __name__ == "__main__":
    unittest.main()

"""With a gain MODEL:TENSOR, kind, eps, gain offset, groups and bias are the model's, unless options state them."""

import json
import unittest

import numpy as np

from command import CommandTest, safetensors


class ModelNorms(CommandTest):
    def setUp(self):
        super().setUp()
        random = np.random.default_rng(1)
        self.gain = random.normal(0.0, 0.5, 8)
        tensors = {"model.embed_tokens.weight": random.normal(size=(10, 8)), "model.norm.weight": self.gain}
        for name, shape in (("self_attn.q_proj", (8, 8)), ("self_attn.k_proj", (8, 8)), ("self_attn.v_proj", (8, 8)),
                            ("self_attn.o_proj", (8, 8)), ("mlp.gate_proj", (16, 8)), ("mlp.up_proj", (16, 8)),
                            ("mlp.down_proj", (8, 16))):
            tensors[f"model.layers.0.{name}.weight"] = random.normal(size=shape)
        for name in ("input_layernorm", "post_attention_layernorm", "pre_feedforward_layernorm",
                     "post_feedforward_layernorm"):
            tensors[f"model.layers.0.{name}.weight"] = random.normal(0.0, 0.3, 8)
        (self.folder / "gemma").mkdir()
        safetensors(self.folder / "gemma/model.safetensors", tensors)
        (self.folder / "gemma/config.json").write_text(
            json.dumps({"model_type": "gemma2", "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 4,
                        "hidden_size": 8, "num_hidden_layers": 1, "rms_norm_eps": 1e-6}))
        self.bias = random.normal(size=6)
        gpt2 = {"wte.weight": random.normal(size=(5, 6)), "wpe.weight": random.normal(size=(4, 6))}
        for name, shape in (("h.0.ln_1", (6,)), ("h.0.attn.c_attn", (6, 18)), ("h.0.attn.c_proj", (6, 6)),
                            ("h.0.ln_2", (6,)), ("h.0.mlp.c_fc", (6, 24)), ("h.0.mlp.c_proj", (24, 6)), ("ln_f", (6,))):
            gpt2[f"{name}.weight"] = random.normal(size=shape)
            gpt2[f"{name}.bias"] = random.normal(size=shape[-1])
        gpt2["ln_f.bias"] = self.bias
        self.gpt2 = gpt2
        safetensors(self.folder / "gpt2.safetensors", gpt2)

    def test_geometry_is_that_of_the_report(self):
        for model, name in (("gemma", "model.norm"), ("gpt2.safetensors", "ln_f")):
            norm = next(norm for norm in self.json("report", model, "-o", "r.html")["norms"] if norm["name"] == name)
            got = self.json("geometry", "--gain", f"{model}:{name}.weight")
            for key in ("condition", "effective_dimension", "energy", "rms_radius"):
                self.assertEqual(got[key], norm["image"][key], key)
            for key, of_norm in (("norm", "kind"), ("eps", "eps"), ("groups", "groups")):
                self.assertEqual(got[key], norm[of_norm], key)
            self.assertEqual(got.get("shift_over_radius"), norm["shift_over_radius"])
        np.testing.assert_allclose(self.json("geometry", "--gain", "gemma:model.norm.weight")["semi_axes"],
                                   np.sort(np.sqrt(8) * np.abs(1 + self.gain))[::-1], rtol=1e-14)

    def test_output_names_what_is_taken_from_the_model(self):
        source = self.json("geometry", "--gain", "gemma:model.norm.weight")["source"]
        self.assertEqual(source, {"norm": "model.norm", "model": "Gemma", "taken": ["norm", "eps", "gain_offset"]})
        self.assertIn("from the model (Gemma), model.norm: kind rms, eps 1e-06, gain offset 1\n",
                      self.ok("geometry", "--gain", "gemma:model.norm.weight"))
        source = self.json("geometry", "--gain", "gpt2.safetensors:ln_f.weight")["source"]
        self.assertEqual(source["taken"], ["norm", "eps", "bias"])
        self.assertNotIn("source", self.json("geometry", "--gain", "1,2"))

    def test_options_override_the_model(self):
        plain = self.json("geometry", "--gain", "gemma:model.norm.weight", "--norm", "layer", "--eps", "0.5",
                          "--gain-offset", "0", "--groups", "2")
        np.save(self.folder / "g.npy", self.gain)
        np.testing.assert_equal({**plain}, self.json("geometry", "--gain", "g.npy", "--eps", "0.5", "--groups", "2"))
        self.assertEqual(self.json("geometry", "--gain", "gpt2.safetensors:ln_f.weight", "--bias", "0,0,0,0,0,0")
                         ["shift_over_radius"], 0.0)

    def test_a_tensor_that_is_not_a_gain_sets_no_option(self):
        got = self.json("geometry", "--gain", "gpt2.safetensors:h.0.mlp.c_fc.bias")
        self.assertEqual((got["norm"], "source" in got), ("layer", False))

    def test_apply_is_the_models_norm(self):
        x = np.random.default_rng(2).normal(size=(5, 8))
        np.save(self.folder / "x.npy", x)
        document = self.json("apply", "x.npy", "-o", "y.npy", "--gain", "gemma:model.norm.weight")
        self.assertEqual(document["source"]["taken"], ["norm", "eps", "gain_offset"])
        expected = x / np.sqrt((x**2).mean(1, keepdims=True) + 1e-6) * (1 + self.gain)
        np.testing.assert_allclose(np.load(self.folder / "y.npy"), expected, rtol=1e-13)
        np.save(self.folder / "x.npy", x[:, :6])
        self.ok("apply", "x.npy", "-o", "y.npy", "--gain", "gpt2.safetensors:ln_f.weight", "--eps", "0")
        centred = x[:, :6] - x[:, :6].mean(1, keepdims=True)
        expected = centred / centred.std(1, keepdims=True) * self.gpt2["ln_f.weight"] + self.bias
        np.testing.assert_allclose(np.load(self.folder / "y.npy"), expected, rtol=1e-12)

    def test_curvature_select_and_reach_take_the_models_norm(self):
        x = np.random.default_rng(3).normal(size=(7, 8))
        np.save(self.folder / "x.npy", x)
        gemma = ("--gain", "gemma:model.norm.weight")
        spelled = ("--gain", "gemma:model.norm.weight", "--norm", "rms", "--eps", "1e-6", "--gain-offset", "1")
        for words, get in ((("curvature", "x.npy"), lambda d: d["groups"]),
                           (("select", "x.npy"), lambda d: {**d, "inputs": None, "norm": {**d["norm"], "source": None}}),
                           (("reach", "--unembedding", "x.npy"), lambda d: {**d["norm"], "name": None})):
            self.assertEqual(get(self.json(*words, *gemma)), get(self.json(*words, *spelled)), words)
        self.assertEqual(self.json("select", "x.npy", *gemma)["norm"]["source"]["norm"], "model.norm")
        self.assertEqual(self.json("reach", "--unembedding", "x.npy", *gemma)["norm"]["name"], "model.norm")

    def test_a_bias_that_is_not_finite_matters_where_it_is_used(self):
        self.gpt2["ln_f.bias"] = np.full(6, np.nan)
        safetensors(self.folder / "gpt2.safetensors", self.gpt2)
        self.assertEqual(self.json("geometry", "--gain", "gpt2.safetensors:ln_f.weight")["source"]["taken"],
                         ["norm", "eps"])
        np.save(self.folder / "x.npy", np.ones((2, 6)))
        self.assertIn("bias[0] is nan", self.fails(3, "apply", "x.npy", "-o", "y.npy", "--gain",
                                                   "gpt2.safetensors:ln_f.weight"))

    def test_the_configuration_is_an_input(self):
        self.assertIn("would overwrite", self.fails(3, "geometry", "--gain", "gemma/model.safetensors:model.norm.weight",
                                                  "--json", "gemma/config.json"))


if __name__ == "__main__":
    unittest.main()

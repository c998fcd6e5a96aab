"""Norms that do not normalize: the elementwise kinds, and norms whose eps turns normalization off."""

import json
import unittest

import numpy as np
from math import erf

from command import CommandTest, safetensors


def gpt2(random, **extra):
    tensors = {"wte.weight": random.normal(size=(11, 6)), "wpe.weight": random.normal(size=(4, 6))}
    for name, shape in (("h.0.ln_1", (6,)), ("h.0.attn.c_attn", (6, 18)), ("h.0.attn.c_proj", (6, 6)),
                        ("h.0.ln_2", (6,)), ("h.0.mlp.c_fc", (6, 24)), ("h.0.mlp.c_proj", (24, 6)), ("ln_f", (6,))):
        tensors[f"{name}.weight"] = random.normal(size=shape)
        tensors[f"{name}.bias"] = random.normal(size=shape[-1])
    tensors.update(extra)
    return tensors


class NormKinds(CommandTest):
    def model(self, name, tensors, **config):
        (self.folder / name).mkdir()
        safetensors(self.folder / name / "model.safetensors", tensors)
        (self.folder / name / "config.json").write_text(
            json.dumps({"model_type": "gpt2", "n_head": 2, "n_layer": 1, "n_embd": 6, "layer_norm_epsilon": 1e-5,
                        **config}))
        return name

    def elementwise_model(self):
        scalars = {f"{norm}.alpha": np.array([0.5]) for norm in ("h.0.ln_1", "h.0.ln_2", "ln_f")}
        scalars["ln_f.shift"] = np.array([0.25])
        return self.model("tanh", gpt2(np.random.default_rng(3), **scalars))

    def test_apply_is_the_formula(self):
        x = np.random.default_rng(1).normal(0.0, 3.0, (5, 4))
        np.save(self.folder / "x.npy", x)
        for kind, options, f in (("dyt", [], np.tanh), ("derf", ["--shift", "0.25"], np.vectorize(erf))):
            self.ok("apply", "x.npy", "--norm", kind, "--alpha", "0.5", *options, "--gain", "1,2,3,-4",
                    "--bias", "0,0,1,1", "-o", "y.npy")
            shift = 0.25 if options else 0.0
            np.testing.assert_allclose(np.load(self.folder / "y.npy"),
                                       f(0.5 * x + shift) * [1, 2, 3, -4] + [0, 0, 1, 1], rtol=1e-15, atol=1e-15)

    def test_a_step_or_groups_of_an_elementwise_norm_are_refused(self):
        np.save(self.folder / "x.npy", np.ones((2, 4)))
        for options in (["--step", "project"], ["--groups", "2"]):
            self.assertIn("dyt", self.fails(3, "apply", "x.npy", "--norm", "dyt", *options, "-o", "y.npy"))
        self.assertIn("dyt", self.fails(3, "reach", "--unembedding", "1,2;3,4", "--norm", "dyt"))

    def test_the_image_is_a_box(self):
        result = self.json("geometry", "--norm", "dyt", "--alpha", "2", "--gain", "3,0,-5,4")
        self.assertEqual((result["effect"], result["semi_axes"], result["null_space_dim"]),
                         ("elementwise", [5.0, 4.0, 3.0], 1))
        self.assertEqual((result["alpha"], result["shift"]), (2.0, 0.0))
        self.assertIn("its image is a box", self.ok("geometry", "--norm", "dyt", "--gain", "3,0,-5,4"))

    def test_a_model_of_elementwise_norms_gets_no_bounds(self):
        model = self.elementwise_model()
        report = self.json("report", model, "-o", "r.html")
        self.assertEqual([norm["kind"] for norm in report["norms"]], ["dyt", "dyt", "derf"])
        self.assertEqual({norm["effect"] for norm in report["norms"]}, {"elementwise"})
        self.assertIn("elementwise_norm", [finding["kind"] for finding in report["findings"]])
        self.assertEqual(report["model"]["missing"], [])
        self.assertIn("not modelled: ln_f is Dynamic erf", self.fails(3, "reach", model))
        heads = self.json("heads", model)
        self.assertTrue(all("Dynamic Tanh" in head["refused"] for head in heads["heads"]), heads["heads"][0])
        got = self.json("geometry", "--gain", f"{model}:ln_f.weight")
        self.assertEqual((got["norm"], got["alpha"], got["shift"]), ("derf", 0.5, 0.25))

    def test_a_norm_that_is_off_is_a_linear_map(self):
        model = self.model("off", gpt2(np.random.default_rng(4)), layer_norm_epsilon=1e12)
        report = self.json("report", model, "-o", "r.html")
        self.assertEqual({norm["effect"] for norm in report["norms"]}, {"off"})
        self.assertTrue(all(norm["image"] is None for norm in report["norms"]))
        self.assertIn("normalization_off", [finding["kind"] for finding in report["findings"]])
        self.assertIn("normalization is off", self.fails(3, "reach", model))
        self.assertIn("normalization is off", self.ok("geometry", "--eps", "1e12", "--gain", "1,2,3"))


if __name__ == "__main__":
    unittest.main()

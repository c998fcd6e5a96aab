"""Rewritten Llamas have the logits of transformers, by a forward pass in NumPy; a checker in NumPy refuses forged certificates."""

import copy
import json
import shutil
import subprocess
import sys
import unittest

import numpy as np

from command import SOURCE, CommandTest, safetensors
from rewrite_test import FIXTURES, normalized, tensors


def frequencies(rope, half):
    """Radians per position of each pair, stretched for long contexts as Llama 3 does."""
    plain = rope["rope_theta"] ** (-np.arange(half) / half)
    if rope["rope_type"] == "default":
        return plain
    low, high, original = rope["low_freq_factor"], rope["high_freq_factor"], rope["original_max_position_embeddings"]
    share = np.clip((original * plain / (2 * np.pi) - low) / (high - low), 0, 1)
    return (1 - share) * plain / rope["factor"] + share * plain


def rotated(x, rope):
    """Queries or keys (heads x positions x dims) with pairs (j, j + dims/2) turned by position."""
    half = x.shape[-1] // 2
    angles = np.arange(x.shape[1])[:, None] * frequencies(rope, half)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), b * np.cos(angles) + a * np.sin(angles)], axis=-1)


def llama(folder, ids):
    """Logits of a Llama or Mistral of Hugging Face's names."""
    w = tensors(folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    count, window = len(ids), config.get("sliding_window") or len(ids)
    rope = config["rope_parameters"]
    norm = lambda x, name: normalized(x, w[name + ".weight"], 0.0, config["rms_norm_eps"], False)
    linear = lambda x, name: x @ w[name + ".weight"].T + w.get(name + ".bias", 0.0)
    split = lambda x, heads: x.reshape(count, heads, -1).transpose(1, 0, 2)
    apart = np.arange(count)[:, None] - np.arange(count)
    heads, shared = config["num_attention_heads"], config["num_attention_heads"] // config["num_key_value_heads"]
    x = w["model.embed_tokens.weight"][ids]
    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        y = norm(x, at + "input_layernorm")
        q = rotated(split(linear(y, at + "self_attn.q_proj"), heads), rope)
        k = rotated(split(linear(y, at + "self_attn.k_proj"), heads // shared), rope).repeat(shared, axis=0)
        v = split(linear(y, at + "self_attn.v_proj"), heads // shared).repeat(shared, axis=0)
        scores = np.where((apart >= 0) & (apart < window), q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]), -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        attended = (weights / weights.sum(-1, keepdims=True)) @ v
        x = x + linear(attended.transpose(1, 0, 2).reshape(count, -1), at + "self_attn.o_proj")
        y = norm(x, at + "post_attention_layernorm")
        gate = linear(y, at + "mlp.gate_proj")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(y, at + "mlp.up_proj"), at + "mlp.down_proj")
    head = "model.embed_tokens" if config["tie_word_embeddings"] else "lm_head"
    return norm(x, "model.norm") @ w[head + ".weight"].T


class RewriteLlama(CommandTest):
    def test_logits_are_those_of_transformers_before_and_after(self):
        for case in ("llama", "llama_biased", "mistral"):
            source = FIXTURES / case
            truth = json.loads((source / "truth.json").read_text())
            ids = np.array(truth["inputs"]["input_ids"]).ravel()
            old = llama(source, ids)
            (position,) = truth["outputs"]["logits"]["positions"]
            np.testing.assert_allclose(old[position], np.ravel(truth["outputs"]["logits"]["values"]), rtol=0, atol=2e-5, err_msg=case)
            untie = ["--untie"] if json.loads((source / "config.json").read_text())["tie_word_embeddings"] else []
            for options in (["--fold", "gains"], ["--migrate"], ["--fold", "gains", *untie, "--rotate", "random:5"]):
                with self.subTest(f"{case} {options}"):
                    self.ok("rewrite", source, "-o", "out", *options, "-q")
                    changed = tensors(self.folder / "out/model.safetensors")["model.layers.0.input_layernorm.weight"]
                    self.assertFalse((changed == tensors(source / "model.safetensors")["model.layers.0.input_layernorm.weight"]).all())
                    np.testing.assert_allclose(llama(self.folder / "out", ids), old, rtol=0, atol=4e-6)
                    shutil.rmtree(self.folder / "out")

    def test_a_gain_that_is_lost_changes_logits(self):
        shutil.copytree(FIXTURES / "llama", self.folder / "lost")
        weights = {name: array.astype(np.float32) for name, array in tensors(FIXTURES / "llama/model.safetensors").items()}
        weights["model.norm.weight"][:] = 1
        safetensors(self.folder / "lost/model.safetensors", weights)
        ids = np.array([7, 19, 3])
        self.assertGreater(np.abs(llama(self.folder / "lost", ids) - llama(FIXTURES / "llama", ids)).max(), 1e-2)

    def checked(self, document, *models):
        (self.folder / "result.json").write_text(json.dumps(document))
        program = SOURCE / "python/normscope/model_checker.py"
        done = subprocess.run([sys.executable, "-B", program, "result.json", *models], cwd=self.folder, text=True, capture_output=True)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def test_the_checker_of_checkpoints_agrees(self):
        for case, options in (("llama", ["--fold", "gains"]), ("gpt2", ["--fold", "gains", "--center", "--untie"]), ("gpt2", ["--fold", "gains"]),
                              ("gpt2", ["--migrate"]), ("gemma", ["--fold", "gains"]), ("falcon_40b", ["--fold", "gains", "--untie"]),
                              ("stablelm", ["--fold", "gains", "--center"]), ("gpt_neox", ["--fold", "gains"]), ("mixtral", ["--migrate"])):
            source = FIXTURES / case
            document = self.json("rewrite", source, "-o", "out", *options)
            self.assertEqual(self.checked(document, source, "out"), (0, "every statement holds\n"), (case, options))
            shutil.rmtree(self.folder / "out")

    def test_the_checker_draws_rotations_itself(self):
        for case, options in (("llama", ["--fold", "gains"]), ("gpt2", ["--fold", "gains", "--untie"]), ("clip", ["--fold", "gains"]),
                              ("gpt2", ["--fold", "gains", "--center", "--untie"]), ("stablelm", ["--fold", "gains", "--center"])):
            source = FIXTURES / case
            document = self.json("rewrite", source, "-o", "out", *options, "--rotate", "random:11")
            self.assertIn("rotate_inputs", {item["change"] for item in document["certificates"]}, case)
            self.assertEqual(self.checked(document, source, "out", "random:11"), (0, "every statement holds\n"), (case, options))
            rotated = {item["tensor"] for item in document["certificates"] if item["change"].startswith("rotate")}
            status, text = self.checked(document, source, "out", "random:12")
            self.assertEqual((status, set(text.splitlines()) - {name for name in rotated}), (1, set()), case)
            item = next(item for item in document["certificates"] if item["change"] == "rotate_outputs")
            item["bound"] /= 1e3
            self.assertEqual(self.checked(document, source, "out", "random:11"), (1, item["tensor"] + "\n"), case)
            shutil.rmtree(self.folder / "out")
        q, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(16, 16)))
        np.save(self.folder / "q.npy", q.astype(np.float32))
        document = self.json("rewrite", FIXTURES / "llama", "-o", "out", "--fold", "gains", "--rotate", "q.npy")
        self.assertEqual(self.checked(document, FIXTURES / "llama", "out", "q.npy"), (0, "every statement holds\n"))

    def test_forged_certificates_are_refused(self):
        source = FIXTURES / "gpt2"
        document = self.json("rewrite", source, "-o", "out", "--fold", "gains", "--center", "--untie")
        matrix = next(item for item in document["certificates"] if item["change"] == "scale_inputs")["tensor"]
        writer = next(item for item in document["certificates"] if item["change"] == "center_outputs")["tensor"]
        bias = next(item for item in document["certificates"] if item["change"] == "add_folded_bias")["tensor"]
        for tensor in (matrix, writer, bias):
            forged = copy.deepcopy(document)
            next(item for item in forged["certificates"] if item["tensor"] == tensor).update(bound=1e-12)
            self.assertEqual(self.checked(forged, source, "out"), (1, tensor + "\n"))
        forged = copy.deepcopy(document)
        forged["certificates"] = [item for item in forged["certificates"] if item["tensor"] != matrix]
        self.assertEqual(self.checked(forged, source, "out"), (1, matrix + ": unchanged\n"))
        weights = {name: array.astype(np.float32) for name, array in tensors(self.folder / "out/model.safetensors").items()}
        gain, untouched = "transformer.h.1.ln_2.weight", "transformer.h.0.attn.c_attn.bias"
        for name, change, wrong in ((matrix, lambda x: x * np.float32(1.001), matrix), (writer, lambda x: x + np.float32(0.01), writer),
                                    (gain, lambda x: 2 * x, "transformer.h.1.ln_2: gain"), (untouched, lambda x: x + 1, untouched)):
            shutil.copytree(self.folder / "out", self.folder / "forged")
            safetensors(self.folder / "forged/model.safetensors", {**weights, name: change(weights[name])})
            status, text = self.checked(document, source, "forged")
            self.assertEqual(status, 1, name)
            self.assertIn(wrong, text)
            shutil.rmtree(self.folder / "forged")


if __name__ == "__main__":
    unittest.main()

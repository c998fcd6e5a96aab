"""Options of a configuration that change scores or logits are modelled, or named and refused, by every subcommand."""

import json
import re
import shutil
import subprocess
import unittest
from pathlib import Path

import numpy as np

from command import CommandTest, fixture, safetensors
from random_models import llama_shapes

CHROMIUM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
WIDTH, HEADS, DIM, TOKENS = 8, 2, 4, 12
LLAMA = {"hidden_size": WIDTH, "num_attention_heads": HEADS, "head_dim": DIM, "num_hidden_layers": 1,
         "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": True}


def tensors(rng, layers=1, sandwich=False):
    shapes = llama_shapes(TOKENS, WIDTH, HEADS * DIM, layers, sandwich)
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def rendered(page):
    """The HTML of a page after a browser has run its scripts."""
    done = subprocess.run([CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000",
                           "--dump-dom", page.as_uri()], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout


class ModelledTest(CommandTest):
    def model(self, fields, seed=3, **how):
        folder = self.folder / "model"
        folder.mkdir(exist_ok=True)
        self.weights = tensors(np.random.default_rng(seed), **how)
        safetensors(folder / "model.safetensors", self.weights)
        (folder / "config.json").write_text(json.dumps(LLAMA | fields))
        return folder

    def largest(self, token, offset, scale, cap=None):
        """The largest probability of a token over the ball, by gradient ascent on the model's own formula."""
        rng = np.random.default_rng(token)
        gain = self.weights["model.norm.weight"].astype(float) + offset
        matrix = scale * self.weights["model.embed_tokens.weight"].astype(float) * gain * np.sqrt(WIDTH)
        best = 0.0
        for _ in range(10):
            u = rng.normal(size=WIDTH)
            u /= np.linalg.norm(u)
            step = 0.3
            value = -np.inf
            while step > 1e-7:
                logits = matrix @ u
                slope = np.ones(TOKENS)
                if cap:
                    logits, slope = cap * np.tanh(logits / cap), 1 - np.tanh(logits / cap) ** 2
                share = np.exp(logits - logits.max())
                share /= share.sum()
                if np.log(share[token]) > value:
                    value, kept, step = np.log(share[token]), (u, share, slope), step * 1.3
                else:
                    step *= 0.5
                at, share, slope = kept
                rise = matrix.T @ ((np.eye(TOKENS)[token] - share) * slope)
                u = at + step * rise / (np.linalg.norm(rise) + 1e-300)
                u /= max(1.0, np.linalg.norm(u))
            best = max(best, np.exp(value))
        return best

    def expect_probabilities(self, document, offset, scale, cap=None):
        bounds = document["max_probability"]
        for token in range(TOKENS):
            found = self.largest(token, offset, scale, cap)
            self.assertLessEqual(found, bounds["upper"][token] * (1 + 1e-9), token)
            self.assertLessEqual(bounds["lower"][token], found * (1 + 1e-3), token)

    def test_granite_multiplies_scores_and_divides_logits(self):
        folder = self.model({"model_type": "granite", "attention_multiplier": 0.25, "logits_scaling": 8.0,
                             "embedding_multiplier": 12.0, "residual_multiplier": 0.22})
        document = self.json("reach", folder, "--probability", "full")
        self.assertEqual((document["logit_scale"], document["soft_cap"]), (0.125, 0.0))
        self.expect_probabilities(document, 0.0, 0.125)
        self.assertLess(max(document["max_probability"]["upper"]), 0.9, "its logits are an eighth of a Llama's")
        heads = self.json("heads", folder)["heads"]
        self.assertEqual({head["scale"] for head in heads}, {0.25})

    def test_a_cap_on_logits_keeps_verdicts_and_changes_probabilities(self):
        common = {"model_type": "gemma2", "attn_logit_softcapping": None, "query_pre_attn_scalar": DIM}
        capped = self.json("reach", self.model(common | {"final_logit_softcapping": 3.0}, sandwich=True),
                           "--probability", "full")
        self.assertEqual(capped["soft_cap"], 3.0)
        self.expect_probabilities(capped, 1.0, 1.0, 3.0)
        self.assertIn("before the soft cap of 3", self.ok("reach", self.folder / "model"))
        plain = self.json("reach", self.model(common | {"final_logit_softcapping": None}, sandwich=True),
                          "--probability", "full")
        self.expect_probabilities(plain, 1.0, 1.0)
        for key in ("reachable", "lead", "scale"):
            self.assertEqual(plain[key], capped[key])
        self.assertLess(max(capped["max_probability"]["lower"]), max(plain["max_probability"]["lower"]))

    def test_what_is_not_modelled_is_named_with_exit_3(self):
        for field, value in (("alibi", True), ("position_embedding_type", "relative_key"), ("clip_qkv", 8),
                             ("rope_scaling", {"type": "mrope", "mrope_section": [1, 1]})):
            folder = self.model({"model_type": "llama", field: value})
            shown = "mrope" if field == "rope_scaling" else json.dumps(value).strip('"')
            self.assertIn(f"not modelled: {field}: {shown}", self.fails(3, "heads", folder))
            self.ok("reach", folder)
        for field, value in (("lm_head_multiplier", 0.5), ("final_logit_softcapping", 30)):
            folder = self.model({"model_type": "llama", field: value})
            self.assertIn(f"not modelled: {field}: {value}", self.fails(3, "reach", folder))
            self.ok("heads", folder)
        for fields, reason in (({"model_type": "minicpm"}, "unknown architecture (model_type minicpm)"),
                               ({"model_type": "llama", "width_scale": 0.5}, "width_scale: 0.5")):
            folder = self.model(fields)
            for subcommand in ("heads", "reach"):
                self.assertIn(f"not modelled: {reason}", self.fails(3, subcommand, folder))

    def test_a_report_names_the_reason_instead_of_numbers(self):
        folder = self.model({"model_type": "minicpm"})
        document = self.json("report", folder)
        self.assertEqual(document["heads"], [])
        self.assertIsNone(document["vocabulary"])
        # What reads its norms is not known, so that nothing behind them has a range.
        self.assertFalse(any(norm["readers"] for norm in document["ranges"]["norms"]))
        self.assertTrue(any("minicpm is not known" in note and "are assumed" in note for note in document["model"]["notes"]))

    def test_nothing_is_proved_of_an_unknown_type_without_heads_and_vocabulary(self):
        folder = Path(shutil.copytree(fixture("convnext"), self.folder / "convnext"))
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"model_type": "stranger"}))
        document = self.json("report", folder)
        self.assertEqual((document["heads"], document["model"]["architecture"]), ([], "unknown"))
        self.assertFalse(any(norm["readers"] for norm in document["ranges"]["norms"]))

    @unittest.skipUnless(CHROMIUM, "no chromium to show the page")
    def test_a_page_shows_why_heads_are_not_modelled(self):
        folder = self.model({"model_type": "llama", "alibi": True})
        self.ok("report", folder)
        page = re.sub(r"<(script|style)\b.*?</\1>", "", rendered(self.folder / "report.html"), flags=re.DOTALL)
        self.assertIn("can be is not known: not modelled: alibi: true.", re.sub(r"<[^>]*>", "", page))

    def test_one_head_not_modelled_leaves_the_others(self):
        folder = self.model({"model_type": "llama", "num_hidden_layers": 2}, layers=2)
        safetensors(folder / "model.safetensors",
                    self.weights | {"model.layers.1.self_attn.sinks": np.zeros(HEADS, np.float32)})
        heads = self.json("heads", folder)["heads"]
        refused = [head.get("refused") for head in heads]
        self.assertEqual(refused[:2], [None, None])
        self.assertEqual(set(refused[2:]), {'not modelled: tensor "model.layers.1.self_attn.sinks"'})

    def test_heads_and_reach_print_the_notes_of_inspect(self):
        folder = self.model({"model_type": "llama", "rope_theta": None})
        note = "rotary base 10000 is assumed"
        for subcommand in ("inspect", "heads", "reach"):
            self.assertIn("note: " + note, self.ok(subcommand, folder))
        for subcommand in ("heads", "reach"):
            self.assertTrue(any(note in text for text in self.json(subcommand, folder)["notes"]))


if __name__ == "__main__":
    unittest.main()

"""Whether a gain is stored as w or as 1 + w: exact against the original, by what its entries tell without one."""

import re
import unittest

import numpy as np

from command import SOURCE, CommandTest, fixture, safetensors
from forward_pass import tensors

SHIFTED = (".input_layernorm.weight", ".post_attention_layernorm.weight", "model.norm.weight", ".q_norm.weight", ".k_norm.weight")


def as_mlx(weights, times=1):
    """What mlx-lm makes of Qwen3-Next: gains plus 1, convolutions with their last axis first, experts in stacks."""
    result, stacks = {}, {}
    for name, array in weights.items():
        stem, experts, rest = name.partition(".mlp.experts.")
        if experts:
            number, _, part = rest.partition(".")
            stacks.setdefault(f"{stem}.mlp.switch_mlp.{part}", {})[int(number)] = array
        elif name.endswith("conv1d.weight"):
            result[name] = np.moveaxis(array, 2, 1)
        else:
            result[name] = array + np.float32(times) if name.endswith(SHIFTED) else array
    return result | {name: np.stack([stack[i] for i in sorted(stack)]) for name, stack in stacks.items()}


class GainConvention(CommandTest):
    def folder_of(self, name, case, weights):
        folder = self.folder / name
        folder.mkdir()
        safetensors(folder / "model.safetensors", weights)
        (folder / "config.json").write_text((fixture(case) / "config.json").read_text())
        return folder

    def weights(self, case):
        return tensors(fixture(case) / "model.safetensors")

    def offset(self, folder):
        found = self.json("compare", fixture("qwen3_next"), folder)
        return found["agreement"], [one["text"] for one in found["findings"] if one["kind"] == "offset"]

    def test_compare_names_a_gain_that_is_shifted_twice_or_not_at_all(self):
        for times, words in ((1, None), (2, "is shifted twice: it is that of OLD plus 1"), (0, "is not shifted: it is that of OLD minus 1")):
            agreement, texts = self.offset(self.folder_of(f"mlx{times}", "qwen3_next", as_mlx(self.weights("qwen3_next"), times)))
            if words is None:
                self.assertIn(agreement, ("same", "equivalent"))
                self.assertEqual(texts, [])
                continue
            self.assertNotIn(agreement, ("same", "equivalent"))
            self.assertEqual(len(texts), 1)
            self.assertIn(f"the gain of model.layers.0.input_layernorm {words}", texts[0])
            self.assertRegex(texts[0], "so for 7 of 8 norms; every entry, to ")

    def test_gemma_that_stores_the_shifted_gain_is_shifted_twice(self):
        weights = {name: array + np.float32(name.endswith("norm.weight")) for name, array in self.weights("gemma").items()}
        found = self.json("compare", fixture("gemma"), self.folder_of("twice", "gemma", weights))
        self.assertIn("is shifted twice", " ".join(one["text"] for one in found["findings"]))

    def test_what_mlx_lm_converts_is_equivalent_and_a_further_1_is_named(self):
        """Converted by mlx-lm's own classes: scripts/mlx_oracle/convert.py."""
        for case in ("gemma", "qwen3_5", "qwen3_next"):
            original, converted = fixture(case), fixture(f"mlx_{case}")
            found = self.json("compare", original, converted)
            self.assertIn(found["agreement"], ("same", "equivalent"), found)
            self.assertEqual([one["kind"] for one in found["findings"]], [], case)
            twice = {name: array + np.float32(name.endswith(SHIFTED)) for name, array in tensors(converted / "model.safetensors").items()}
            found = self.json("compare", original, self.folder_of(f"twice_{case}", f"mlx_{case}", twice))
            self.assertNotIn(found["agreement"], ("same", "equivalent"), case)
            self.assertEqual([one["kind"] for one in found["findings"]], ["offset"], case)
            self.assertIn("is shifted twice: it is that of OLD plus 1", found["findings"][0]["text"])

    def conventions(self, gains):
        """The findings about conventions in the report of a Gemma with these gains, as float16."""
        weights = {name: array.astype(np.float16) for name, array in self.weights("gemma").items()}
        for number, name in enumerate(sorted(name for name in weights if name.endswith("norm.weight"))):
            weights[name] = gains[number].astype(np.float16)
        folder = self.folder_of("stored", "gemma", weights)
        report = self.json("report", folder)
        inspected = self.ok("inspect", folder)
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        return {one["kind"]: one["text"] for one in report["findings"] if one["kind"].startswith("gain_")}, inspected

    def test_report_says_what_entries_prove_what_is_evidence_and_what_is_left_open(self):
        draws = np.random.default_rng(5)
        small = draws.uniform(-0.4, 0.4, (5, 16)).astype(np.float16)
        found, inspected = self.conventions(small)
        self.assertIn("In the type that stores them, 1 was never added to the gains of ", found["gain_convention"])
        self.assertEqual(inspected.count("in its type 1 was never added before: entry "), 5)
        # Sums 1 + w with w in (-1, -1/2) are multiples of 2^-11.
        sums = np.float16(1) + draws.uniform(-1, -0.6, (5, 16)).astype(np.float16)
        sums[:, 0] = 1 + 2.0**-10
        found, inspected = self.conventions(sums)
        self.assertIn("look shifted twice: all stored entries below 1/2", found["gain_shifted_twice"])
        self.assertIn("This is evidence, no proof", found["gain_shifted_twice"])
        self.assertEqual(inspected.count("in its type 1 was at most once added before: entry "), 5)
        # Gains that are large tell nothing, whatever their mean.
        found, inspected = self.conventions(draws.uniform(1, 2, (5, 16)))
        self.assertEqual(inspected.count("no entry tells how often 1 was added before"), 5)
        self.assertEqual(found.keys() & {"gain_convention", "gain_shifted_twice", "gain_not_shifted"}, set())

    def test_a_text_decides_for_a_trained_model(self):
        """The class of these LayerNorms adds nothing; the bundled model runs on the bundled sentence."""
        own = SOURCE / "models/kjv_gpt"
        weights = tensors(own / "model.safetensors")
        for excess, kind, words in ((0, None, ""), (1, "gain_shifted_twice", "1 too large"), (-1, "gain_not_shifted", "1 too small")):
            folder = self.folder / f"by{excess}"
            folder.mkdir()
            safetensors(folder / "model.safetensors", {
                name: array + np.float32(excess) if re.search(r"ln_(1|2|f)\.weight$", name) else array for name, array in weights.items()})
            for name in ("config.json", "tokenizer.json"):
                (folder / name).write_bytes((own / name).read_bytes())
            texts = {one["kind"]: one["text"] for one in self.json("report", folder, "--no-vocabulary")["findings"]
                     if one["kind"].startswith("gain_") and "of a text" in one["text"]}
            self.assertEqual(list(texts), [kind] if kind else [], excess)
            if kind:
                self.assertIn(words, texts[kind])
                self.assertIn("tokens of a text surprises the model by", texts[kind])

    def test_a_text_decides_nothing_for_random_weights(self):
        found = {one["kind"]: one["text"] for one in self.json("report", fixture("gemma"), "--no-vocabulary")["findings"]}
        self.assertIn("there is no tokenizer beside the file", found["gain_convention_undecided"])


if __name__ == "__main__":
    unittest.main()

"""Rewritten checkpoints of each architecture have the logits of transformers, which their fixtures hold, and trained ones
those of the original: by forward passes in NumPy."""

import json
import shutil
import unittest

import numpy as np

from command import CHECKPOINTS, OWN_MODEL, CommandTest, fixture, safetensors
from forward_pass import logits, tensors
from signature_models import SORT, STORIES, sort, stories

# Streams that can be centred: of LayerNorms before their readers.
LAYER_NORMS = ("codegen", "cohere", "cohere2", "cohere_qk_norm", "falcon_11b", "falcon_40b", "falcon_7b", "falcon_alibi", "gpt2",
               "gpt2_scaled", "gpt_bigcode", "gpt_bigcode_multi_head", "gpt_neo", "gpt_neox", "gpt_neox_sequential", "gptj", "jais2", "mpt",
               "mpt_scaled", "nemotron", "olmo", "opt", "persimmon", "phi", "phi_qk_norm", "stablelm", "stablelm_parallel", "starcoder2")
RMS_NORMS = ("arcee", "gemma", "glm", "granite", "llama", "llama_biased", "ministral", "mistral", "mixtral", "olmoe", "phi3", "qwen2",
             "qwen2_moe", "qwen3", "qwen3_moe", "seed_oss", "smollm3", "vaultgemma")
# Norms at the end of branches, or of the embedding: gains before readers are folded, and streams stay as they are.
OTHERS = ("bloom", "exaone4", "gemma2", "gemma3", "glm4", "olmo2", "olmo3")


def is_tied(source):
    return json.loads((source / "config.json").read_text()).get("tie_word_embeddings", True)


class RewriteLogits(CommandTest):
    def compare(self, source, ids, *options, old, layer_norm=True):
        """Rewrites a folder, and its result has the same logits, up to the rounding of its weights."""
        untie = ["--untie"] if is_tied(source) and "--migrate" not in options else []
        with self.subTest(f"{source.name} {options}"):
            self.ok("rewrite", source, "-o", "out", *options, *untie, "-q")
            before, after = (tensors(folder / "model.safetensors") for folder in (source, self.folder / "out"))
            self.assertFalse(all(np.array_equal(before[name], after[name]) for name in before))
            np.testing.assert_allclose(logits(self.folder / "out", ids), old, rtol=0, atol=2e-6 * np.abs(old).max())
            if not layer_norm:
                np.testing.assert_allclose(logits(self.folder / "out", ids, layer_norm=False), old, rtol=0, atol=2e-6 * np.abs(old).max())
        shutil.rmtree(self.folder / "out")

    def test_logits_are_those_of_transformers_before_and_after(self):
        for case in LAYER_NORMS + RMS_NORMS + OTHERS:
            source = fixture(case)
            truth = json.loads((source / "truth.json").read_text())
            ids = np.array(truth["inputs"]["input_ids"]).ravel()
            old = logits(source, ids)
            (position,) = truth["outputs"]["logits"]["positions"]
            np.testing.assert_allclose(old[position], np.ravel(truth["outputs"]["logits"]["values"]), rtol=0, atol=2e-5, err_msg=case)
            fold = ("--fold", "gains")
            if case != "olmo":  # whose norms have no gains
                self.compare(source, ids, *fold, old=old)
                self.compare(source, ids, "--migrate", old=old)
            if case in LAYER_NORMS:
                self.compare(source, ids, *fold, "--center", "--rotate", "random:5", old=old, layer_norm=False)
            elif case in RMS_NORMS:
                self.compare(source, ids, *fold, "--rotate", "random:5", old=old)

    def test_trained_checkpoints(self):
        ids = np.array([3, 14, 15, 9, 2, 6, 5])
        old = logits(OWN_MODEL, ids)
        for options in (["--fold", "gains"], ["--migrate"], ["--fold", "gains", "--center", "--rotate", "random:2"]):
            self.compare(OWN_MODEL, ids, *options, old=old, layer_norm="--center" not in options)

    @unittest.skipUnless(CHECKPOINTS.is_dir(), "needs the checkpoints of $NORMSCOPE_DATA")
    def test_trained_checkpoints_of_other_authors(self):
        for path, forward, ids, ways in (
                (STORIES, stories, [[1, 403, 407, 261, 378, 9]], (["--fold", "gains"],)),
                (SORT, sort, [[2, 0, 1, 1, 0, 2]], (["--fold", "gains"], ["--fold", "gains", "--center"], ["--fold", "gains", "--rotate", "random:2"]))):
            old = forward(np.array(ids))
            for options in (*ways, ["--migrate"]):
                with self.subTest(f"{path.name} {options}"):
                    self.ok("rewrite", path, "-o", "out.safetensors", *options, "-q")
                    new = forward(np.array(ids), self.folder / "out.safetensors")
                    np.testing.assert_allclose(new, old, rtol=0, atol=1e-5 * np.abs(old).max())
                for file in self.folder.iterdir():
                    file.unlink()

    def test_a_gain_that_is_lost_changes_logits(self):
        for case in ("llama", "gpt_neox", "gemma", "mixtral"):
            shutil.copytree(fixture(case), self.folder / case)
            weights = {name: array.astype(np.float32) for name, array in tensors(fixture(case) / "model.safetensors").items()}
            norm = next(name for name in weights if name.endswith("layers.1.input_layernorm.weight"))
            weights[norm][:] = 1
            safetensors(self.folder / case / "model.safetensors", weights)
            ids = np.array([7, 19, 3])
            self.assertGreater(np.abs(logits(self.folder / case, ids) - logits(fixture(case), ids)).max(), 1e-2)


if __name__ == "__main__":
    unittest.main()

"""Agreement with TransformerLens on a small configuration. Run by `scripts/test interop`."""

import shutil
import tempfile
import unittest
from pathlib import Path

import normscope as ns
import numpy as np
import tokenizers
import torch
import transformers
from transformer_lens import TransformerBridge

torch.manual_seed(4)
CONFIGS = {
    "gpt2": transformers.GPT2Config(n_layer=2, n_embd=32, n_head=4, vocab_size=60, n_positions=32, bos_token_id=0,
                                    eos_token_id=0, pad_token_id=0),
    "llama": transformers.LlamaConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                                      num_key_value_heads=4, vocab_size=60, bos_token_id=0, eos_token_id=0,
                                      pad_token_id=0, max_position_embeddings=32),
}
WORDS = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(60)}, "w0"))
TOKENS = torch.randint(1, 60, (2, 9))


def save_model(config, folder):
    """A model with gains that are not all 1, and a tokenizer, which a bridge requires."""
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(tokenizer_object=WORDS, bos_token="w0", eos_token="w0",
                                         pad_token="w0").save_pretrained(folder)


def bridge_to(folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    return TransformerBridge.boot_transformers(str(folder), hf_model=model, dtype=torch.float32)


def bridge_of(config):
    with tempfile.TemporaryDirectory() as folder:
        save_model(config, folder)
        return bridge_to(folder)


class TransformerLens(unittest.TestCase):
    def test_norms_are_watched_under_the_names_that_open_has(self):
        for name, config in CONFIGS.items():
            bridge = bridge_of(config)
            _, cache = bridge.run_with_cache(TOKENS)
            with torch.no_grad(), ns.watch(bridge) as seen:
                bridge(TOKENS)
            result = seen.result()
            self.assertEqual(result.not_understood, [], name)
            self.assertEqual([norm.name for norm in result.norms],
                             [*(f"blocks.{i}.{ln}" for i in range(2) for ln in ("ln1", "ln2")), "ln_final"], name)
            for norm in result.norms:
                scale = cache[f"{norm.name}.hook_scale"]
                np.testing.assert_allclose(norm.sigma.mean, scale.mean().item(), rtol=1e-5)
                np.testing.assert_allclose(norm.frozen_scale_error, (scale / scale.mean()).std(correction=0).item(),
                                           rtol=1e-3)

    def test_a_bridge_is_opened_with_its_own_names(self):
        bridge = bridge_of(CONFIGS["gpt2"])
        with torch.no_grad(), ns.watch(bridge) as seen:
            bridge(TOKENS)
        opened = ns.open(bridge)
        self.assertEqual(opened.norms(), [norm.name for norm in seen.result().norms])
        np.testing.assert_array_equal(opened.norm("ln_final").gain, bridge.ln_final.w.detach().double().numpy())
        within = seen.result().within().in_model
        self.assertEqual(within.next.rows, 18)
        self.assertGreater(within.next.mean_divergence, 0.0)

    def test_logits_are_decomposed_alike(self):
        bridge = bridge_of(CONFIGS["gpt2"])
        head = ns.open(bridge).head()
        logits, cache = bridge.run_with_cache(TOKENS)
        x = cache["blocks.1.hook_resid_post"].detach().numpy()
        np.testing.assert_allclose(head.logits(x), logits.detach().numpy(), atol=2e-5)
        stack = cache.decompose_resid(layer=-1, return_labels=False).detach()
        ours = head.decompose(x, stack.numpy(), [3, 5])
        # TransformerLens applies the scale of the final norm to its parts; the gain is not folded here.
        scaled = cache.apply_ln_to_stack(stack, layer=-1).detach()
        theirs = (scaled * bridge.ln_final.w) @ bridge.W_U[:, [3, 5]]
        np.testing.assert_allclose(ours.parts, theirs.detach().numpy(), atol=2e-5)
        np.testing.assert_allclose(ours.logits, logits.detach().numpy()[..., [3, 5]], atol=2e-5)

    def test_logit_lenses_agree(self):
        bridge = bridge_of(CONFIGS["gpt2"])
        opened = ns.open(bridge)
        bridge.enable_compatibility_mode(disable_warnings=True, center_unembed=False)
        _, cache = bridge.run_with_cache(TOKENS)
        states = cache.accumulated_resid(layer=-1).detach()
        lens = (cache.apply_ln_to_stack(states, layer=-1) @ bridge.W_U + bridge.b_U).detach().numpy()
        head = opened.head()
        x = states[-1].numpy()
        # With the scale of the last state for all; the stream there is centred and has lost nothing that LayerNorm sees.
        ours = np.stack([(head.norm.part(x, state) + head.norm.bias) @ head.unembedding.T for state in states.numpy()])
        shift = lens.mean(-1, keepdims=True) - ours.mean(-1, keepdims=True)
        np.testing.assert_allclose(ours + shift, lens, atol=1e-4)
        # And with the scale of each state itself, as if the final norm were applied there.
        own = bridge.ln_final(states[0]) @ bridge.W_U + bridge.b_U
        mine = head.logits(states[0].numpy())
        shift = own.detach().numpy().mean(-1, keepdims=True) - mine.mean(-1, keepdims=True)
        np.testing.assert_allclose(mine + shift, own.detach().numpy(), atol=1e-4)

    def test_folded_and_centred_weights_are_theirs(self):
        with tempfile.TemporaryDirectory() as folder:
            before, after = Path(folder) / "before", Path(folder) / "after"
            save_model(CONFIGS["gpt2"], before)
            ns.open(before).rewrite(after, fold=True, center=True, untie=True)
            for file in before.glob("tokenizer*"):
                shutil.copy(file, after)
            ours, theirs = bridge_to(after), bridge_to(before)
            logits = [bridge(TOKENS) for bridge in (ours, theirs)]
            torch.testing.assert_close(*logits, rtol=1e-4, atol=1e-5)
            theirs.enable_compatibility_mode(disable_warnings=True, fold_value_biases=False, center_unembed=False)
            mine, other = ours.tl_parameters(), theirs.tl_parameters()
            # The head of GPT-2 has no bias: ours leaves the norm's where it is, theirs adds one.
            mine["unembed.b_U"] = mine["unembed.b_U"] + mine["ln_final.b"] @ mine["unembed.W_U"]
            norms = {name for name in mine if ".ln" in name or name.startswith("ln")}
            self.assertGreater(len(mine.keys() - norms), 20)
            for name in mine.keys() - norms:
                weight = mine[name]
                if name.rpartition(".")[2] in ("W_Q", "W_K", "W_V", "W_in", "W_U"):
                    # They also take out the mean over the inputs, which are centred: it reads nothing.
                    weight = weight - weight.mean(-2, keepdim=True)
                with self.subTest(name):
                    torch.testing.assert_close(weight, other[name], rtol=1e-5, atol=2e-6)


if __name__ == "__main__":
    unittest.main()

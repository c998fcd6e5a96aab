"""`watch` and `open` on live models of transformers and torch. Run by `scripts/test interop`."""

import unittest

import normscope as ns
import numpy as np
import torch
import transformers

torch.manual_seed(2)
SIZES = dict(vocab_size=60, bos_token_id=0, eos_token_id=0, pad_token_id=0)
LLAMA = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, **SIZES)
MODELS = {
    "gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(n_layer=2, n_embd=32, n_head=4, **SIZES)),
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)),
    "gemma": lambda: transformers.GemmaForCausalLM(transformers.GemmaConfig(head_dim=8, **LLAMA)),
    "bert": lambda: transformers.BertForMaskedLM(transformers.BertConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, vocab_size=60)),
}


def shaken(model):
    """The model with gains that are not all 1."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


class Watching(unittest.TestCase):
    def test_every_norm_is_understood_and_measured(self):
        for name, make in MODELS.items():
            model = shaken(make())
            tokens = torch.randint(1, 60, (3, 7))
            inputs = {}
            hooks = [module.register_forward_hook(lambda m, x, y, n=n: inputs.__setitem__(n, x[0].detach()))
                     for n, module in model.named_modules() if "norm" in type(module).__name__.lower()]
            with torch.no_grad(), ns.watch(model) as seen:
                model(tokens)
            for hook in hooks:
                hook.remove()
            result = seen.result()
            self.assertEqual(result.not_understood, [], name)
            self.assertEqual(len(result.norms), len(inputs), name)
            for norm in result.norms:
                x = inputs[norm.name].double().reshape(-1, norm.width)
                centre = x.mean(-1, keepdim=True) if norm.kind == "layer" else 0.0
                sigma = ((x - centre).square().mean(-1) + norm.eps).sqrt()
                np.testing.assert_allclose(norm.sigma.mean, sigma.mean().item(), rtol=1e-6)
                np.testing.assert_allclose(norm.frozen_scale_error, (sigma / sigma.mean()).std(correction=0).item(),
                                           rtol=1e-4)
                self.assertEqual(norm.rows, len(x) if "pooler" not in norm.name else norm.rows)
            model(tokens)
            self.assertEqual(seen.result().norms[0].calls, 1)

    def test_half_precision_and_fewer_rows(self):
        model = shaken(MODELS["llama"]()).to(torch.bfloat16)
        with torch.no_grad(), ns.watch(model, most_rows=4) as seen:
            model(torch.randint(1, 60, (3, 7)))
        self.assertEqual({norm.rows for norm in seen.result().norms}, {4})

    def test_some_norms_alone(self):
        model = MODELS["gpt2"]()
        for which in (["transformer.ln_f"], lambda name, module: name.endswith("ln_f")):
            with torch.no_grad(), ns.watch(model, which) as seen:
                model(torch.randint(1, 60, (1, 5)))
            self.assertEqual([norm.name for norm in seen.result().norms], ["transformer.ln_f"])
        with self.assertRaisesRegex(ValueError, "^watch: GPT2LMHeadModel has no norm that was asked for$"):
            ns.watch(model, ["absent"])
        with self.assertRaisesRegex(ValueError, "^watch: Linear has no norm$"):
            ns.watch(torch.nn.Linear(2, 2))
        with self.assertRaisesRegex(ValueError, "^watch: no norm of GPT2LMHeadModel was called$"):
            ns.watch(model).result()

    def test_what_is_not_a_norm_is_refused(self):
        class OddLayerNorm(torch.nn.LayerNorm):
            def forward(self, x):
                return super().forward(x) ** 3

        model = torch.nn.Sequential(OddLayerNorm(8), torch.nn.LayerNorm(8))
        with ns.watch(model) as seen:
            model(torch.randn(4, 8))
        self.assertEqual([entry.name for entry in seen.result().not_understood], ["0"])
        self.assertIn("neither LayerNorm nor RMSNorm", seen.result().not_understood[0].reason)
        self.assertEqual([norm.name for norm in seen.result().norms], ["1"])


class Opening(unittest.TestCase):
    def test_live_models_are_described_as_their_files(self):
        for name, make in MODELS.items():
            model = ns.open(shaken(make()))
            self.assertTrue(model.norms(), name)
            self.assertTrue(model.heads().heads, name)
            self.assertIn("Report", repr(model.report(vocabulary=False)), name)

    def test_parameters_are_those_of_the_module(self):
        model = shaken(MODELS["gpt2"]())
        norm = ns.open(model).norm("transformer.ln_f")
        np.testing.assert_array_equal(norm.gain, model.transformer.ln_f.weight.detach().double().numpy())
        x = torch.randn(4, 32)
        np.testing.assert_allclose(norm(x).numpy(), model.transformer.ln_f(x).detach().numpy(), atol=1e-5)

    def test_plain_modules(self):
        model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2), 2)
        self.assertEqual(len(ns.open(model).norms()), 4)


if __name__ == "__main__":
    unittest.main()

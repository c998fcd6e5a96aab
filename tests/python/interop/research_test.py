"""Ten tasks of interpretability, each done with this package and by hand in torch, on a trained model of the repository:

| task | test |
|---|---|
| logit lens at every layer | `test_logit_lens` |
| direct attribution of a logit to heads and MLPs | `test_direct_attribution` |
| what removing a part before the final norm does | `test_removal_before_the_final_norm` |
| attribution patching: the gradient's estimate of it | `test_attribution_patching` |
| ablation of a part in the whole model | `test_ablation` |
| folding gains, and whether a checkpoint computes the same | `test_fold_and_compare` |
| tokens that no hidden state can make the most likely one | `test_unargmaxable_tokens` |
| how sharply a head can attend | `test_sharpest_attention` |
| the image of a norm, its curvature, and the range of what reads it | `test_geometry` |
| massive activations and the σ of live runs | `test_live_activations` |

Run by `scripts/test interop`.
"""

import os
import tempfile
import unittest
from pathlib import Path

import normscope as ns
import numpy as np
import scipy.optimize
import torch
import transformers

FOLDER = Path(os.environ["NORMSCOPE_SOURCE_DIR"], "models/kjv_gpt")
HEADS, TARGET = 4, 9


class Research(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = transformers.GPT2LMHeadModel.from_pretrained(FOLDER, attn_implementation="eager").double().eval()
        cls.opened = ns.open(FOLDER)
        generator = torch.Generator().manual_seed(11)
        cls.tokens = torch.randint(0, cls.model.config.vocab_size, (1, 12), generator=generator)
        # What enters the maps that write to the stream, and the norms.
        cls.entered = {}
        handles = [module.register_forward_hook(lambda module, x, y, name=name: cls.entered.__setitem__(name, x[0]))
                   for name, module in cls.model.named_modules() if name.endswith(("c_proj", "ln_1", "ln_2", "ln_f"))]
        with torch.no_grad():
            cls.out = cls.model(cls.tokens, output_hidden_states=True, output_attentions=True)
        for handle in handles:
            handle.remove()
        cls.x = cls.entered["transformer.ln_f"][0, -1]
        cls.found = cls.opened.attribute(cls.tokens[0].tolist(), TARGET)

    def part(self, name):
        """What a head or an MLP wrote at the last position."""
        layer, _, what = name.partition(".")
        if what == "mlp":
            out = self.model.transformer.h[int(layer)].mlp.c_proj
            return self.entered[f"transformer.h.{layer}.mlp.c_proj"][0, -1] @ out.weight
        out = self.model.transformer.h[int(layer)].attn.c_proj
        size = out.weight.shape[0] // HEADS
        columns = slice(int(what) * size, (int(what) + 1) * size)
        return self.entered[f"transformer.h.{layer}.attn.c_proj"][0, -1, columns] @ out.weight[columns]

    def parts(self):
        for component in self.found.components:
            if component.name[0].isdigit() and not component.name.endswith("bias"):
                yield component, self.part(component.name).detach()

    def logit(self, x):
        return self.model.lm_head(self.model.transformer.ln_f(x))[..., TARGET]

    def test_logit_lens(self):
        head = self.opened.head()
        for layer, state in enumerate(self.out.hidden_states[:-1]):
            with torch.no_grad():
                wanted = self.model.lm_head(self.model.transformer.ln_f(state))
            np.testing.assert_allclose(head.logits(state.numpy()), wanted.numpy(), atol=1e-9, err_msg=layer)

    def test_direct_attribution(self):
        norm, row = self.model.transformer.ln_f, self.model.lm_head.weight[TARGET].detach()
        sigma = (self.x.var(correction=0) + norm.eps).sqrt()
        for component, part in self.parts():
            share = ((part - part.mean()) / sigma * norm.weight) @ row
            self.assertAlmostEqual(component.share, share.item(), delta=1e-8)
        self.assertAlmostEqual(self.found.value, self.out.logits[0, -1, TARGET].item(), delta=1e-8)

    def test_removal_before_the_final_norm(self):
        with torch.no_grad():
            for component, part in self.parts():
                self.assertAlmostEqual(component.exact, (self.logit(self.x - part) - self.logit(self.x)).item(), delta=1e-8)
            everything = dict((component.name, part) for component, part in self.parts())
            for bound in self.found.bounds:
                for removed in (sorted(everything)[:bound.removed], sorted(everything)[-bound.removed:]):
                    rest = self.x - sum(everything[name] for name in removed)
                    ratio = (self.x.var(correction=0) + 1e-5).sqrt() / (rest.var(correction=0) + 1e-5).sqrt()
                    self.assertTrue(bound.least <= ratio.item() <= bound.most, removed)

    def test_attribution_patching(self):
        x = self.x.clone().requires_grad_()
        (slope,) = torch.autograd.grad(self.logit(x), x)
        for component, part in self.parts():
            self.assertAlmostEqual(component.gradient, -(slope @ part).item(), delta=1e-8)
            if component.remainder is not None:
                self.assertLessEqual(abs(component.exact - component.gradient), component.remainder)

    def test_ablation(self):
        for component, _ in self.parts():
            layer, _, what = component.name.partition(".")
            block = self.model.transformer.h[int(layer)]
            out = block.mlp.c_proj if what == "mlp" else block.attn.c_proj

            def remove(module, inputs, what=what):
                kept = inputs[0].clone()
                size = kept.shape[-1] // HEADS
                kept[..., slice(None) if what == "mlp" else slice(int(what) * size, (int(what) + 1) * size)] = 0.0
                return (kept,)

            handle = out.register_forward_pre_hook(remove)
            with torch.no_grad():
                change = self.model(self.tokens).logits[0, -1, TARGET] - self.out.logits[0, -1, TARGET]
            handle.remove()
            self.assertAlmostEqual(component.rerun, change.item(), delta=1e-7)

    def test_fold_and_compare(self):
        with tempfile.TemporaryDirectory() as folder:
            self.opened.rewrite(f"{folder}/folded", fold=True)
            folded = transformers.GPT2LMHeadModel.from_pretrained(f"{folder}/folded").eval()
            self.assertTrue(ns.open(f"{folder}/folded").compare(self.opened).agreement == "equivalent")
        with torch.no_grad():
            torch.testing.assert_close(folded(self.tokens).logits.double(), self.out.logits, rtol=1e-3, atol=1e-4)
            self.assertEqual(folded.transformer.h[1].ln_1.weight.unique().tolist(), [1.0])
            folded.transformer.h[0].mlp.c_fc.weight[3, 5] += 0.5
            self.assertGreater((folded(self.tokens).logits - self.out.logits).abs().max(), 1e-3)
        self.assertEqual(self.opened.compare(ns.open(folded)).agreement, "different")

    def test_unargmaxable_tokens(self):
        """Behind an RMSNorm without bias, a token is reachable if some direction gives it the largest logit: a linear
        program for each."""
        torch.manual_seed(12)
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
            hidden_size=8, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2, vocab_size=80))
        with torch.no_grad():
            model.model.norm.weight.uniform_(0.3, 2.0)
        rows = (model.lm_head.weight * model.model.norm.weight).detach().double().numpy()
        unreachable = []
        for token, row in enumerate(rows):
            others = np.delete(rows, token, 0) - row
            found = scipy.optimize.linprog([0.0] * 8 + [-1.0], np.hstack([others, np.ones((len(others), 1))]),
                                           np.zeros(len(others)), bounds=[(-1, 1)] * 8 + [(None, None)])
            if found.x[-1] <= 1e-9:
                unreachable.append(token)
        self.assertTrue(0 < len(unreachable) < 80)
        self.assertEqual([found.token for found in ns.open(model).reach().unreachable], unreachable)

    def test_sharpest_attention(self):
        """No query found by gradient ascent beats the bound, the best comes close, and no context of a run beats it."""
        heads = self.opened.heads().heads
        for head in heads[::3]:
            block, size = self.model.transformer.h[head.layer], head.head_dim
            query, key, _ = block.attn.c_attn.weight.detach().split(HEADS * size, 1)
            bias, _, _ = block.attn.c_attn.bias.detach().split(HEADS * size)
            columns = slice(head.head * size, (head.head + 1) * size)
            gain, shift, width = block.ln_1.weight.detach(), block.ln_1.bias.detach(), len(block.ln_1.weight)

            def spread(u):
                u = u - u.mean(-1, keepdim=True)
                row = gain * u * width**0.5 / u.norm(dim=-1, keepdim=True) + shift
                q = row @ query[:, columns] + bias[columns]
                reads = gain * (q @ key[:, columns].T)
                return 2.0 * head.scale * width**0.5 * (reads - reads.mean(-1, keepdim=True)).norm(dim=-1)

            u = torch.randn(64, width, dtype=torch.float64, generator=torch.Generator().manual_seed(13)).requires_grad_()
            search = torch.optim.Adam([u], 0.05)
            for _ in range(200):
                search.zero_grad()
                (-spread(u).sum()).backward()
                search.step()
            best = spread(u).max().item()
            lower, upper = head.sharp_bounds
            self.assertLessEqual(best, upper)
            self.assertGreater(best, 0.98 * lower)
            weights = self.out.attentions[head.layer][0, head.head]
            for position, row in enumerate(weights):
                seen = row[:position + 1].log()
                self.assertLessEqual((seen.max() - seen.min()).item(), upper)

    def test_geometry(self):
        name = "transformer.h.1.ln_2"
        module = self.model.get_submodule(name)
        width, gain = len(module.weight), module.weight.detach()
        image = gain[:, None] * (torch.eye(width, dtype=torch.float64) - 1.0 / width) * width**0.5
        axes = torch.linalg.svdvals(image)[:-1]
        np.testing.assert_allclose(self.opened.geometry(name).semi_axes, axes.numpy(), rtol=1e-9)
        rows = self.entered[name][0, :2]
        second = torch.stack([torch.func.jacfwd(torch.func.jacrev(module))(row) for row in rows]).detach()
        np.testing.assert_allclose(self.opened.norm(name).curvature(rows.numpy()), second.square().sum((1, 2, 3)).numpy(), rtol=1e-9)
        reader = self.model.transformer.h[1].mlp.c_fc
        reads = gain[:, None] * reader.weight.detach()
        most = width**0.5 * (reads - reads.mean(0)).norm(dim=0) + module.bias.detach() @ reader.weight + reader.bias
        (norm,) = (norm for norm in self.opened.ranges().norms if norm.name == name)
        self.assertEqual(norm.readers[0].highest.row, most.argmax().item())
        self.assertAlmostEqual(norm.readers[0].highest.bound, most.max().item(), delta=1e-6)

    def test_live_activations(self):
        with torch.no_grad(), ns.watch(self.model) as seen:
            self.model(self.tokens)
        result = seen.result()
        for norm in result.norms:
            x = self.entered[norm.name][0]
            sigma = (x.var(-1, correction=0) + norm.eps).sqrt()
            np.testing.assert_allclose([norm.sigma.mean, norm.frozen_scale_error],
                                       [sigma.mean().item(), (sigma / sigma.mean()).std(correction=0).item()], rtol=1e-9)
            largest = result.extremes(norm.name, 1)[0]
            position, coordinate = divmod(x.abs().argmax().item(), x.shape[-1])
            self.assertEqual((largest.position, largest.coordinate, largest.token),
                             (position, coordinate, self.tokens[0, position].item()))


if __name__ == "__main__":
    unittest.main()

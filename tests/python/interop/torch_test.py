"""Our modules for torch, compared with torch's own. Run by `scripts/test interop`."""

import concurrent.futures
import io
import sys
import unittest

import normscope.torch as nt
import numpy as np
import torch
from normscope import _autograd

torch.manual_seed(1)


def pairs():
    yield nt.LayerNorm(16), torch.nn.LayerNorm(16), (5, 3, 16)
    yield nt.LayerNorm(16, bias=False), torch.nn.LayerNorm(16, bias=False), (5, 16)
    yield nt.LayerNorm((2, 8)), torch.nn.LayerNorm((2, 8)), (5, 2, 8)
    yield nt.LayerNorm(16, elementwise_affine=False), torch.nn.LayerNorm(16, elementwise_affine=False), (7, 16)
    yield nt.RMSNorm(16), torch.nn.RMSNorm(16), (5, 3, 16)
    yield nt.RMSNorm(16, eps=1e-3), torch.nn.RMSNorm(16, eps=1e-3), (1, 16)


class Modules(unittest.TestCase):
    def test_values_and_gradients_are_those_of_torch(self):
        for ours, theirs, shape in pairs():
            with torch.no_grad():
                for parameter in theirs.parameters():
                    parameter.normal_()
            ours.load_state_dict(theirs.state_dict())
            for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5), (torch.bfloat16, 5e-2)):
                ours.to(dtype), theirs.to(dtype)
                x, w = torch.randn(shape, dtype=dtype), torch.randn(shape, dtype=dtype)
                grads = []
                for module in (ours, theirs):
                    given = x.clone().requires_grad_()
                    module.zero_grad()
                    y = module(given)
                    (y * w).sum().backward()
                    self.assertEqual(y.dtype, dtype)
                    grads.append([y, given.grad, *(parameter.grad for parameter in module.parameters())])
                for mine, other in zip(*grads):
                    torch.testing.assert_close(mine, other, rtol=tolerance, atol=tolerance)
                with torch.no_grad():
                    torch.testing.assert_close(ours(x), theirs(x), rtol=tolerance, atol=tolerance)

    def test_gradients_of_norms_that_torch_lacks(self):
        double = {"dtype": torch.float64}
        x = torch.randn(3, 6, requires_grad=True, **double)
        for module in (nt.LayerNorm(6, **double), nt.GroupedLayerNorm(6, 2, **double), nt.Spherical(6),
                       nt.DyT(6, **double)):
            self.assertTrue(torch.autograd.gradcheck(module, (x,)))
            for name, parameter in module.named_parameters():
                call = lambda value: torch.func.functional_call(module, {name: value}, (x.detach(),))
                self.assertTrue(torch.autograd.gradcheck(call, (parameter,)))
        self.assertEqual(nt.GroupedLayerNorm(6, 2)(torch.randn(4, 6)).reshape(4, 2, 3).mean(-1).abs().max() < 1e-6, True)

    @unittest.skipUnless(hasattr(torch.Tensor, "__dlpack_c_exchange_api__"), "torch describes its tensors to nobody")
    def test_plain_tensors_are_read_by_the_core(self):
        """With the bits that go by address, and no other tensors."""
        plain, how = _autograd.normalized_plain, ("layer", 1, 1e-5)
        for dtype, stored in ((torch.float64, torch.float64), (torch.float32, torch.float32), (torch.bfloat16, torch.float32),
                              (torch.bfloat16, torch.bfloat16), (torch.float16, torch.float16)):
            weight, bias = (torch.nn.Parameter(torch.randn(48).to(stored)) for _ in range(2))
            for shape in ((48,), (1, 48), (3, 5, 48), (900, 48)):
                x, dy = (torch.randn(shape, dtype=dtype) for _ in range(2))
                results = []
                for call in (lambda given: plain(given, weight, bias, 48, *how),
                             lambda given: _autograd._Normalize.apply(given, weight, bias, how)):
                    given = x.clone().requires_grad_()
                    y = call(given)
                    results.append([y, *torch.autograd.grad(y, (given, weight, bias), dy)])
                for one, other in zip(*results):
                    self.assertTrue(torch.equal(one, other))
                self.assertIsNone(plain(x, weight.detach(), None, 48, *how).grad_fn)
        x, weight = torch.randn(3, 48), torch.ones(48)
        self.assertIsNot(plain(x, weight, None, 48, *how), NotImplemented)
        for given in ((x, weight.half(), None, 48, *how), (x.int(), weight, None, 48, *how), (x, weight[:1], None, 48, *how),
                      (x.T, None, None, None, *how), (torch._neg_view(x), None, None, 48, *how), (x, weight, None, 47, *how),
                      (x, torch._neg_view(weight), None, 48, *how), (x.to("meta"), None, None, 48, *how), (3, None, None, 48, *how),
                      (x.to_sparse(), None, None, 48, *how), (x[:0], None, None, 48, *how), (x, None, None, 48, "x", 1, 1e-5),
                      (x, None, None, 48, "layer", 0, 1e-5), (x, None, None, 48, "layer", 1, -1.0), (x, None, None, 48, "layer", 1, "x"),
                      (x.as_subclass(type("Other", (torch.Tensor,), {})), None, None, 48, *how)):
            self.assertIs(plain(*given), NotImplemented, given)

    def test_recorded_calls_keep_their_own_inputs(self):
        """In several threads at once, within hooks of torch that run norms too, and after one that raises."""
        outer, inner = nt.LayerNorm(16), nt.RMSNorm(16)
        given = [torch.randn(rows, 16, requires_grad=True) for rows in range(1, 9)]
        wanted = [outer(x).detach() for x in given]
        packed = []

        def pack(tensor):
            with torch.autograd.graph.saved_tensors_hooks(lambda same: same, lambda same: same):
                packed.append(inner(given[4]))
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda same: same):
            y = outer(given[2])
        self.assertTrue(packed and all(torch.equal(one, inner(given[4])) for one in packed))
        with self.assertRaises(ZeroDivisionError), torch.autograd.graph.saved_tensors_hooks(lambda _: 1 / 0, lambda same: same):
            outer(given[3])
        self.assertTrue(torch.equal(y, wanted[2]) and torch.equal(outer(given[3]), wanted[3]))
        (packed[0].sum() + y.square().sum()).backward()
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            with concurrent.futures.ThreadPoolExecutor(len(given)) as threads:
                same = threads.map(lambda x, y: all(torch.equal(outer(x), y) for _ in range(300)), given, wanted)
                self.assertEqual([*same], [True] * len(given))
        finally:
            sys.setswitchinterval(interval)

    def test_parameters_that_are_frozen_have_no_gradients(self):
        module = nt.LayerNorm(8)
        module.weight.requires_grad_(False)
        x = torch.randn(3, 8, requires_grad=True)
        module(x).backward(torch.ones(3, 8))
        self.assertIsNone(module.weight.grad)
        torch.testing.assert_close(module.bias.grad, torch.full((8,), 3.0))
        changed = x.detach().clone().requires_grad_() * 1.0
        y = module(changed)
        changed.mul_(2.0)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            y.backward(torch.ones(3, 8))

    def test_the_operator_keeps_torchs_rules(self):
        torch.library.opcheck(_autograd.operator, (torch.randn(3, 6, requires_grad=True), torch.ones(6, requires_grad=True),
                                             None, None, None, "layer", 1, 1e-5))

    def test_compiled_modules(self):
        module = nt.LayerNorm(16)
        compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
        x = torch.randn(4, 16, requires_grad=True)
        torch.testing.assert_close(compiled(x), module(x))
        compiled(x).square().sum().backward()
        self.assertIsNotNone(module.weight.grad)

    def test_autocast(self):
        module = torch.nn.Sequential(torch.nn.Linear(16, 16), nt.LayerNorm(16))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.assertEqual(module(torch.randn(2, 16)).dtype, torch.bfloat16)

    def test_norms_of_a_model_are_replaced_and_saved(self):
        model = torch.nn.TransformerEncoderLayer(16, 2, dropout=0.0)
        x = torch.randn(3, 2, 16)
        before = model(x)
        saved = io.BytesIO()
        torch.save(model.state_dict(), saved)
        self.assertEqual(nt.replace_norms(model).replaced, ["norm1", "norm2"])
        torch.testing.assert_close(model(x), before)
        saved.seek(0)
        model.load_state_dict(torch.load(saved))

    def test_norms_of_transformers_are_replaced_by_what_they_compute(self):
        import transformers as hf

        sizes = dict(vocab_size=60, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                     num_key_value_heads=2, pad_token_id=0)
        tokens = torch.randint(1, 60, (2, 5))
        for make, count in ((lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**sizes)), 5),
                            (lambda: hf.GemmaForCausalLM(hf.GemmaConfig(head_dim=8, **sizes)), 5),
                            (lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(head_dim=8, **sizes)), 9),
                            (lambda: hf.GPT2LMHeadModel(hf.GPT2Config(n_layer=2, n_embd=32, n_head=4, vocab_size=60)), 5)):
            model = make().eval()
            with torch.no_grad():
                for parameter in model.parameters():
                    if parameter.ndim == 1:
                        parameter.add_(0.3 * torch.randn_like(parameter))
            wanted, state = model(tokens).logits, model.state_dict()
            done = nt.replace_norms(model)
            self.assertEqual((len(done.replaced), done.left), (count, {}))
            torch.testing.assert_close(model(tokens).logits, wanted, rtol=1e-4, atol=1e-5)
            self.assertEqual(model.state_dict().keys(), state.keys())
            model(tokens).logits.sum().backward()
            self.assertTrue(all(parameter.grad is not None for parameter in model.parameters()))
            self.assertEqual(nt.replace_norms(model).replaced, [])

    def test_what_else_a_norm_has_is_kept_or_it_stays(self):
        class Gated(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight, self.eps = torch.nn.Parameter(torch.ones(8)), 1e-5

            def forward(self, x, gate=None):
                return torch.nn.functional.rms_norm(x, (8,), self.weight, self.eps) * (1 if gate is None else gate)

        class MeanRMSNorm(Gated):
            def forward(self, x):
                return self.weight * x / x.abs().mean(-1, keepdim=True)

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.first = torch.nn.LayerNorm(8, eps=1e-3)
                self.alias = self.first
                self.gated, self.mean = type("GatedRMSNorm", (Gated,), {})(), MeanRMSNorm()
                self.meta = torch.nn.LayerNorm(8, device="meta")

            def forward(self, x):
                return self.alias(self.first(x))

        model = Model()
        called = []
        handle = model.first.register_forward_hook(lambda module, x, y: called.append(module))
        model.first.note = "kept"
        model.first.eval()
        x = torch.randn(3, 8)
        wanted, weight = model(x), model.first.weight
        done = nt.replace_norms(model)
        self.assertEqual(done.replaced, ["first", "alias"])
        self.assertIn("its forward takes x, gate", done.left["gated"])
        self.assertIn("neither LayerNorm nor RMSNorm", done.left["mean"])
        self.assertIn("it is on meta", done.left["meta"])
        self.assertIn("left gated: its forward", repr(done))
        self.assertIs(model.first, model.alias)
        self.assertIs(model.first.weight, weight)
        self.assertIsInstance(model.first, torch.nn.LayerNorm)
        self.assertEqual((model.first.note, model.first.training, model.first.eps), ("kept", False, 1e-3))
        called.clear()
        torch.testing.assert_close(model(x), wanted)
        self.assertEqual(called, [model.first] * 2)
        handle.remove()
        model(x)
        self.assertEqual(len(called), 2)
        self.assertIn("the given module itself", nt.replace_norms(torch.nn.LayerNorm(8)).left[""])
        self.assertIsInstance(nt.RMSNorm(8), torch.nn.RMSNorm)

    def test_other_inputs_are_refused_in_one_line(self):
        for error, message, call in (
            (ValueError, r"LayerNorm: x has shape \(2, 8\), expected \(\.\.\., 16\)", lambda: nt.LayerNorm(16)(torch.ones(2, 8))),
            (ValueError, r"LayerNorm: x has shape \(2, 8\), expected", lambda: nt.LayerNorm((3, 8))(torch.ones(2, 8))),
            (TypeError, "x is torch.int64, expected float64", lambda: nt.normalize(torch.ones(2, 8).long())),
            (TypeError, "x is on meta, expected the CPU", lambda: nt.normalize(torch.ones(2, 8, device="meta"))),
            (TypeError, "weight is on meta, expected the CPU",
             lambda: nt.normalize(torch.ones(2, 8), torch.ones(8, device="meta"))),
            (ValueError, "3 groups do not divide width 8", lambda: nt.GroupedLayerNorm(8, 3)),
            (ValueError, r"a parameter has shape \(7,\), expected \(8,\)",
             lambda: nt.normalize(torch.ones(2, 8), torch.ones(7))),
        ):
            with self.assertRaisesRegex(error, message):
                call()

    def test_arguments_of_every_wrong_kind(self):
        """A result or a one-line error of ours, whatever is given for whichever argument."""
        x = torch.randn(2, 8)
        modules = (nt.LayerNorm(8), nt.RMSNorm(8), nt.GroupedLayerNorm(8, 2), nt.Spherical(8), nt.DyT(8),
                   nt.LayerNorm((2, 8)))
        calls = {
            **{f"{module}": module for module in modules},
            "x": nt.normalize,
            **{name: lambda wrong, name=name: nt.normalize(x, kind="derf", **{name: wrong})
               for name in ("weight", "bias", "alpha", "shift", "groups", "eps")},
            "kind": lambda wrong: nt.normalize(x, kind=wrong),
            **{kind.__name__: kind for kind in (nt.LayerNorm, nt.RMSNorm, nt.Spherical, nt.DyT)},
            "shape of groups": lambda wrong: nt.GroupedLayerNorm(wrong, 2),
            "groups of a module": lambda wrong: nt.GroupedLayerNorm(8, wrong),
            "eps of a module": lambda wrong: nt.LayerNorm(8, eps=wrong)(x),
            "dtype": lambda wrong: nt.LayerNorm(8, dtype=wrong),
            "affine": lambda wrong: nt.LayerNorm(8, elementwise_affine=wrong),
            "replace_norms": nt.replace_norms,
        }
        wrongs = [None, 3, -1, 0.5, "x", b"x", [], [[1.0] * 8], {}, object(), np.ones((2, 8)), torch.nn.Linear(2, 2),
                  torch.float32, torch.int64, x.long(), x > 0, x.to(torch.complex64), x.to_sparse(), x.to_mkldnn(), x.to("meta"),
                  torch.ones(()), x[:0], x[:, :0], x * torch.nan, x / 0, x.clone().requires_grad_(), x[:1].expand(3, 8),
                  torch.randn(8, 2).T, torch.randn(2, 16)[:, ::2], x.to(torch.float8_e4m3fn), x[:, :7], x.half(), x.double(),
                  x[None], torch.nn.Parameter(x.clone()), torch.from_numpy(np.broadcast_to(np.float32(1), (2, 8)).copy()),
                  torch.ones(8, device="meta")]
        for name, call in calls.items():
            for wrong in wrongs:
                with self.subTest(call=name, wrong=wrong):
                    try:
                        call(wrong)
                    except (TypeError, ValueError) as error:
                        self.assertRegex(str(error), r"^\w+: [^\n]+$")
                        self.assertNotIn("incompatible function arguments", str(error))

    def test_second_derivatives(self):
        double = {"dtype": torch.float64}
        for module, theirs in ((nt.LayerNorm(6, **double), torch.nn.LayerNorm(6, **double)),
                               (nt.RMSNorm(6, eps=1e-3, **double), torch.nn.RMSNorm(6, eps=1e-3, **double)),
                               (nt.GroupedLayerNorm(6, 2, **double), None), (nt.Spherical(6), None)):
            x = torch.randn(2, 3, 6, requires_grad=True, **double)
            with torch.no_grad():
                for parameter in module.parameters():
                    parameter.normal_()
            parameters = dict(module.named_parameters())

            def call(given, *values):
                return torch.func.functional_call(module, dict(zip(parameters, values)), (given,))

            self.assertTrue(torch.autograd.gradgradcheck(call, (x, *parameters.values())))
            if theirs is not None:
                theirs.load_state_dict(module.state_dict())
                penalties = []
                for one in (module, theirs):
                    one.zero_grad()
                    (first,) = torch.autograd.grad((one(x) ** 3).sum(), x, create_graph=True)
                    first.square().sum().backward()
                    penalties.append([parameter.grad for parameter in one.parameters() if parameter.grad is not None])
                for ours, other in zip(*penalties):
                    torch.testing.assert_close(ours, other)

    def test_transforms(self):
        ours, theirs = nt.LayerNorm(8), torch.nn.LayerNorm(8)
        with torch.no_grad():
            for parameter in theirs.parameters():
                parameter.normal_()
        ours.load_state_dict(theirs.state_dict())
        x = torch.randn(5, 3, 8)
        results = []
        for module in (ours, theirs):
            state = dict(module.named_parameters())

            def loss(parameters, given):
                return torch.func.functional_call(module, parameters, (given,)).pow(3).sum()

            results.append([torch.func.grad(loss, argnums=1)(state, x),
                            torch.func.vmap(module)(x), torch.func.vmap(module, in_dims=1)(x),
                            torch.func.jacrev(module)(x[0]),
                            *torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(state, x).values()])
        for one, other in zip(*results):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)

    def test_odd_layouts(self):
        module, theirs = nt.LayerNorm(8), torch.nn.LayerNorm(8)
        for x in (torch.randn(8, 5).T, torch.randn(4, 16)[:, ::2], torch.randn(0, 8), torch.randn(8),
                  torch.randn(3, 1, 8).expand(3, 4, 8)):
            torch.testing.assert_close(module(x), theirs(x))


if __name__ == "__main__":
    unittest.main()

"""`watch` and `open` on live models of transformers and torch. Run by `scripts/test interop`."""

import copy
import errno
import importlib.util
import os
import tempfile
import threading
import unittest
from pathlib import Path
from unittest import mock

import normscope as ns
import normscope.torch as nt
import numpy as np
import torch
import transformers
from normscope import live

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


    def test_it_is_told_from_finite_rows_of_any_type(self):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            for make, kind in ((lambda: transformers.models.llama.modeling_llama.LlamaRMSNorm(2048), "rms"),
                               (lambda: torch.nn.LayerNorm(2048), "layer"),
                               (lambda: torch.nn.RMSNorm(2048), "rms"), (lambda: nt.LayerNorm(2048), "layer")):
                model = torch.nn.Sequential(make()).to(dtype)
                x = torch.randn(3, 40, 2048).to(dtype)
                x[:, 0, 0] = torch.nan
                x[:, 1:20] = 0.0
                with torch.no_grad(), ns.watch(model) as seen:
                    model(x)
                (norm,) = seen.result().norms
                self.assertEqual((norm.kind, norm.rows, norm.not_finite), (kind, 117, 3))
                self.assertEqual(seen.result().not_understood, [])

    def test_eps_none_is_that_of_the_type(self):
        model = torch.nn.Sequential(torch.nn.RMSNorm(8))
        with ns.watch(model) as seen:
            model(torch.randn(4, 8))
        self.assertEqual(seen.result().norms[0].eps, torch.finfo(torch.float32).eps)

    def test_the_model_runs_on_where_torch_records(self):
        model = shaken(MODELS["llama"]())
        tokens = torch.randint(1, 60, (1, 5))
        wanted = model(tokens).logits
        with ns.watch(model) as seen:
            program = torch.export.export(model, (tokens,), {"use_cache": False}, strict=False)
            FakeTensorMode = torch._subclasses.fake_tensor.FakeTensorMode
            with FakeTensorMode(allow_non_fake_inputs=True):
                model(tokens)
            torch.vmap(model.model.norm)(torch.randn(2, 3, 32))
            self.assertEqual(seen.result().norms, [])
            self.assertEqual(len({entry.name for entry in seen.result().not_understood}), 5)
            self.assertIn("could not be measured", seen.result().not_understood[0].reason)
            torch.testing.assert_close(model(tokens).logits, wanted)
            self.assertEqual(len(seen.result().norms), 5)
        torch.testing.assert_close(program.module()(tokens, use_cache=False).logits, wanted)

    def test_compiled_models(self):
        model = shaken(MODELS["llama"]())
        tokens = torch.randint(1, 60, (1, 5))
        wanted = model(tokens).logits
        torch.compiler.reset()
        compiled = torch.compile(model, backend="eager")
        with torch.no_grad(), ns.watch(compiled) as seen:
            torch.testing.assert_close(compiled(tokens).logits, wanted)
        self.assertEqual({norm.rows for norm in seen.result().norms}, {5})

    def test_threads(self):
        model = torch.nn.Sequential(torch.nn.LayerNorm(64))
        with torch.no_grad(), ns.watch(model) as seen:
            workers = [threading.Thread(target=lambda: [model(torch.randn(64, 64)) for _ in range(50)]) for _ in range(4)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
        self.assertEqual((seen.result().norms[0].calls, seen.result().norms[0].rows), (200, 200 * 64))

    def test_hooks_end_with_the_watch(self):
        model = torch.nn.Sequential(torch.nn.LayerNorm(8))
        seen = ns.watch(model)
        self.assertEqual(len(model[0]._forward_hooks), 1)
        del seen
        self.assertEqual(len(model[0]._forward_hooks), 0)

    @unittest.skipUnless(importlib.util.find_spec("accelerate"), "accelerate is not there")
    def test_offloaded_models(self):
        import accelerate

        for offload in (accelerate.cpu_offload, None):
            model = shaken(MODELS["gpt2"]())
            tokens = torch.randint(1, 60, (1, 5))
            wanted = model(tokens).logits
            plain = ns.open(model).norm("transformer.ln_f")
            with tempfile.TemporaryDirectory() as folder:
                accelerate.cpu_offload(model, execution_device="cpu") if offload else \
                    accelerate.disk_offload(model, folder, execution_device="cpu")
                self.assertTrue(model.transformer.ln_f.weight.is_meta)
                with torch.no_grad(), ns.watch(model) as seen:
                    torch.testing.assert_close(model(tokens).logits, wanted)
                self.assertEqual(seen.result().not_understood, [])
                self.assertEqual({norm.rows for norm in seen.result().norms}, {5})
                np.testing.assert_array_equal(ns.open(model.transformer).norm("ln_f").gain, plain.gain)


class Opening(unittest.TestCase):
    def test_wrapped_models_are_those_inside(self):
        class Wrapper(torch.nn.Module):
            def __init__(self, model, **parts):
                super().__init__()
                self.inner = torch.nn.ModuleDict({"model": model, **parts})

        model = shaken(transformers.LlamaForCausalLM(transformers.LlamaConfig(rms_norm_eps=1e-2, **LLAMA)))
        plain = ns.open(model)
        heads = plain.heads().to_dict()["heads"]
        self.assertEqual({norm.eps for norm in plain.inspect().norms}, {1e-2})
        for wrapped in (Wrapper(model), torch.nn.DataParallel(model), torch.compile(model),
                        Wrapper(torch.nn.DataParallel(model)), torch.nn.Sequential(model)):
            opened = ns.open(wrapped)
            self.assertEqual(opened.inspect().to_dict()["norms"], plain.inspect().to_dict()["norms"])
            self.assertEqual(opened.heads().to_dict()["heads"], heads)
            self.assertIn(f"LlamaForCausalLM in {type(wrapped).__name__}>", repr(opened))
        with self.assertWarnsRegex(UserWarning, "LlamaForCausalLM inside Wrapper is opened, without 2 parameters outside "
                                                "it: inner.value.weight, inner.value.bias"):
            ns.open(Wrapper(model, value=torch.nn.Linear(32, 1)))
        with self.assertRaisesRegex(ValueError, "^open: Wrapper contains 2 models, expected one of them: inner.model, "
                                                "inner.other"):
            ns.open(Wrapper(model, other=MODELS["gpt2"]()))

    def test_the_eps_of_each_module_counts(self):
        model = shaken(MODELS["llama"]())
        model.model.layers[1].input_layernorm.variance_epsilon = 0.25
        opened = ns.open(model)
        self.assertEqual({norm.name: norm.eps for norm in opened.inspect().norms if norm.eps != 1e-6},
                         {"model.layers.1.input_layernorm": 0.25})
        self.assertTrue(opened.heads().heads)
        layers = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2, layer_norm_eps=1e-3), 2)
        layers.layers[1].norm2.eps = 0.5
        opened = ns.open(layers)
        found = opened.inspect()
        self.assertEqual([norm.eps for norm in found.norms], [1e-3, 1e-3, 1e-3, 0.5])
        self.assertEqual({norm.eps_source for norm in found.norms}, {"config"})
        self.assertNotIn("assumed", " ".join(opened.report(vocabulary=False).document.model.notes))

        class OwnNorm(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.ones(16))

        found = ns.open(torch.nn.ModuleDict({"norm": OwnNorm()})).inspect()
        self.assertEqual([norm.eps_source for norm in found.norms], ["assumed"])

    def test_what_each_module_computes_counts(self):
        """Names and shapes do not tell a LayerNorm without bias from an RMSNorm, nor a gain that is stored minus 1."""
        gemma = transformers.models.gemma.modeling_gemma.GemmaRMSNorm
        for norm, expected in ((torch.nn.RMSNorm(16, eps=1e-3), ("rms", 1e-3, 0.0)),
                               (torch.nn.LayerNorm(16, bias=False), ("layer", 1e-5, 0.0)), (gemma(16), ("rms", 1e-6, 1.0))):
            module = torch.nn.ModuleDict({"rms_norm": norm, "linear": torch.nn.Linear(16, 16)})
            (found,) = ns.open(module).inspect().norms
            self.assertEqual((found.kind, found.eps, found.gain_offset), expected)
            x = torch.randn(3, 16)
            np.testing.assert_allclose(ns.open(module).norm("rms_norm")(x).numpy(), norm(x).detach().numpy(), atol=1e-5)
        layers = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2), 2)
        for layer in layers.layers:
            layer.norm1 = torch.nn.RMSNorm(16, eps=1e-4)
        self.assertEqual([norm.kind for norm in ns.open(layers).inspect().norms], ["rms", "layer", "rms", "layer"])

        class Mean(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.ones(32))
                self.eps = 1e-5

            def forward(self, x):
                return self.weight * x / (x.abs().mean(-1, keepdim=True) + self.eps)

        model = MODELS["llama"]()
        model.model.norm = Mean()
        with self.assertRaisesRegex(ValueError, r"^open: model.norm \(Mean\) is no norm that is known: its output is neither"):
            ns.open(model)

    def test_distributed_models_are_those_inside(self):
        from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard

        model = shaken(transformers.LlamaForCausalLM(transformers.LlamaConfig(rms_norm_eps=1e-2, **LLAMA)))
        plain = ns.open(model)

        def layers_too(wrap):
            def call(model):
                for index, layer in enumerate(model.model.layers):
                    model.model.layers[index] = wrap(layer)
                return wrap(model)

            return call

        flat = lambda module: FullyShardedDataParallel(module, device_id=torch.device("cpu"))
        with tempfile.TemporaryDirectory() as folder:
            torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
            try:
                for wrap in (torch.nn.parallel.DistributedDataParallel, flat, layers_too(flat),
                             layers_too(lambda module: fully_shard(module) or module)):
                    wrapped = wrap(copy.deepcopy(model))
                    opened = ns.open(wrapped)
                    self.assertEqual(opened.inspect().to_dict()["norms"], plain.inspect().to_dict()["norms"])
                    for tensor in ("model.norm.weight", "model.layers.1.mlp.down_proj.weight"):
                        np.testing.assert_array_equal(opened.tensor(tensor), plain.tensor(tensor))
            finally:
                torch.distributed.destroy_process_group()

    def test_parametrized_weights_are_computed(self):
        model = shaken(MODELS["llama"]())
        torch.nn.utils.parametrize.register_parametrization(model.model.layers[0].mlp.down_proj, "weight", torch.nn.Softplus())
        np.testing.assert_array_equal(ns.open(model).tensor("model.layers.0.mlp.down_proj.weight"),
                                      model.model.layers[0].mlp.down_proj.weight.detach().double().numpy())

    def test_what_cannot_be_written_is_refused(self):
        packed = torch.ao.quantization.quantize_dynamic(MODELS["llama"](), {torch.nn.Linear})
        with self.assertRaisesRegex(ValueError, "is no tensor: the module is quantized$"):
            ns.open(packed)
        for model in (torch.nn.LayerNorm(8, device="meta"), MODELS["llama"]().to("meta")):
            with self.assertRaisesRegex(ValueError, rf"^open: {type(model).__name__} cannot be written: "):
                ns.open(model)

    @unittest.skipUnless(importlib.util.find_spec("peft"), "peft is not there")
    def test_adapters_are_merged_in_a_copy(self):
        import peft

        model = shaken(MODELS["llama"]())
        plain = ns.open(model).tensor("model.layers.0.self_attn.q_proj.weight")
        tuned = peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules=["q_proj"], init_lora_weights=False))
        tokens = torch.randint(1, 60, (1, 5))
        wanted = tuned(tokens).logits
        opened = ns.open(tuned)
        layer = model.model.layers[0].self_attn.q_proj
        merged = plain + layer.get_delta_weight("default").detach().double().numpy()
        np.testing.assert_allclose(opened.tensor("model.layers.0.self_attn.q_proj.weight"), merged, atol=1e-6)
        torch.testing.assert_close(tuned(tokens).logits, wanted)
        own = shaken(MODELS["llama"]())
        own._hf_peft_config_loaded = True  # as `add_adapter` of transformers leaves it
        with self.assertRaisesRegex(ValueError, "^open: LlamaForCausalLM has adapters, expected a model into which"):
            ns.open(own)

    @unittest.skipUnless(os.access(live._MEMORY, os.W_OK), "no folder of files in memory")
    def test_snapshots_are_in_memory_where_there_is_room(self):
        model, written = shaken(MODELS["gpt2"]()), []
        wanted = ns.open(model).tensor("transformer.ln_f.weight")

        def check(memory, suffix):
            opened = ns.open(model)
            self.assertEqual(Path(opened.path).parent == Path(live._MEMORY), memory)
            self.assertTrue(repr(opened).endswith(f"snapshot of GPT2LMHeadModel{suffix}>"), opened)
            np.testing.assert_array_equal(opened.tensor("transformer.ln_f.weight"), wanted)
            folder = opened.path
            del opened
            self.assertFalse(os.path.exists(folder))

        def without_room(module, folder, write=live.write_checkpoint):
            written.append(folder)
            if folder.parent == Path(live._MEMORY):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            write(module, folder)

        elsewhere = f", in {tempfile.gettempdir()}"
        check(True, "")
        free = os.statvfs(live._MEMORY)
        for name, instead in (("_MEMORY", "/absent"), ("_bytes_of", lambda module: free.f_bavail * free.f_frsize)):
            with self.subTest(name), mock.patch.object(live, name, instead):
                check(False, elsewhere)
        with mock.patch.object(live, "write_checkpoint", without_room):
            check(False, elsewhere)
        self.assertEqual([folder.exists() for folder in written], [False, False])
        with mock.patch.object(live, "_MEMORY", "/absent"), mock.patch.object(tempfile, "tempdir", "/absent"):
            with self.assertRaisesRegex(FileNotFoundError, "/absent"):
                ns.open(model)

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

    def test_attributes_of_torchs_layers_count(self):
        for first in (True, False):
            model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2, norm_first=first), 2)
            opened = ns.open(model)
            self.assertEqual({norm.placement for norm in opened.inspect().norms}, {"pre" if first else "post"})
            self.assertEqual(len(opened.heads().heads), 4)

    def test_plain_modules(self):
        model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(16, 2), 2)
        self.assertEqual(len(ns.open(model).norms()), 4)


if __name__ == "__main__":
    unittest.main()

"""`watch` in real runs: padding, positions, compiled and checkpointed models, exceptions, several processes, training. Run
by `scripts/test interop`."""

import copy
import gc
import importlib.util
import io
import pickle
import sys
import tempfile
import unittest
import warnings
from unittest import mock

import normscope as ns
import numpy as np
import torch
import transformers
from models_test import MODELS, shaken
from normscope import training

torch.manual_seed(6)
warnings.filterwarnings("ignore", category=FutureWarning)


def tokens_of(rows=3, length=7):
    return torch.randint(1, 60, (rows, length))


def hooks_of(model):
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())


def summary(result):
    return [(norm.name, norm.rows, norm.sigma.mean, norm.largest_output) for norm in result.norms]


class Rows(unittest.TestCase):
    def test_padding_does_not_count(self):
        model = shaken(MODELS["llama"]())
        tokens = tokens_of()
        lengths = torch.tensor([7, 4, 2])
        mask = (torch.arange(7) < lengths[:, None]).long()
        with torch.no_grad(), ns.watch(model) as seen:
            model(input_ids=tokens, attention_mask=mask)
        with torch.no_grad(), ns.watch(model) as apart:
            for row, length in zip(tokens, lengths):
                model(row[None, :length])
        self.assertEqual({norm.rows for norm in seen.result().norms}, {13})
        for padded, plain in zip(summary(seen.result()), summary(apart.result())):
            np.testing.assert_allclose(padded[1:], plain[1:], rtol=1e-4)
        for given in (mask, lambda arguments, keywords: mask):
            with torch.no_grad(), ns.watch(model, mask=given) as named:
                model(tokens)
            self.assertEqual({norm.rows for norm in named.result().norms}, {13})
        with torch.no_grad(), ns.watch(model) as placed:
            model(tokens, mask)
        self.assertEqual({norm.rows for norm in placed.result().norms}, {13})
        with torch.no_grad(), ns.watch(model, mask=False) as all_rows:
            model(tokens, attention_mask=mask)
        self.assertEqual({norm.rows for norm in all_rows.result().norms}, {21})
        within = seen.result().within(heads=1).in_model
        self.assertLessEqual(within.next.rows, 13)

    def test_a_mask_that_fails_does_not_stop_the_model(self):
        model = MODELS["gpt2"]()
        for mask, why in ((lambda arguments, keywords: 1 / 0, "division by zero"),
                          (torch.ones(3, 6), r"it has shape \(3, 6\), expected \(3, 7\)"), (torch.ones(7), r"it has shape \(7,\)")):
            with torch.no_grad(), ns.watch(model, mask=mask) as seen:
                model(tokens_of())
            self.assertRegex(seen.result().not_understood[0].reason,
                             f"^1 of 1 calls could not be measured: its mask could not be had: {why}")
            self.assertEqual(seen.result().norms, [])

    def test_two_streams_are_not_taken_for_one(self):
        model = transformers.T5ForConditionalGeneration(transformers.T5Config(d_model=32, d_kv=8, d_ff=48, num_layers=2,
                                                                              num_heads=4, vocab_size=60)).eval()
        tokens, mask = tokens_of(2, 4), torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
        with torch.no_grad(), ns.watch(model) as seen:
            model(input_ids=tokens, attention_mask=mask, decoder_input_ids=tokens.flip(0))
        self.assertEqual({norm.rows for norm in seen.result().norms}, {8})
        self.assertEqual({extreme.token for extreme in seen.result().extremes()}, {None})

    def test_extremes_name_the_token(self):
        model = shaken(MODELS["gpt2"]())
        tokens = tokens_of()
        tokens[1, 4] = 59
        tokens[tokens == 59] = 58
        tokens[1, 4] = 59
        with torch.no_grad():
            model.transformer.wte.weight[59, 5] = 300.0
            with ns.watch(model) as seen:
                model(tokens_of() % 58)
                model(tokens)
        largest = seen.result().extremes("transformer.h.0.ln_1")[0]
        self.assertEqual((largest.coordinate, largest.call, largest.context, largest.position, largest.token),
                         (5, 1, 1, 4, 59))
        self.assertAlmostEqual(largest.value, 300.0, delta=1.0)
        self.assertEqual(len(seen.result().extremes(most=2)), 2 * 5)
        with self.assertRaisesRegex(ValueError, "^extremes: no norm 'x' was measured"):
            seen.result().extremes("x")

    def test_positions_of_generated_tokens_count_from_the_prompt(self):
        model = shaken(MODELS["llama"]())
        with torch.no_grad():
            with ns.watch(model) as seen:
                out = model.generate(tokens_of(1, 4), max_new_tokens=5, do_sample=False, eos_token_id=None)
        for extreme in seen.result().extremes():
            self.assertEqual(extreme.token, out[0, extreme.position].item())

    def test_rows_that_are_not_finite_are_placed(self):
        model = shaken(MODELS["llama"]())
        with torch.no_grad():
            model.model.embed_tokens.weight[59] = torch.nan
            tokens = tokens_of() % 58 + 1
            tokens[:, 0] = 59
            with ns.watch(model) as seen:
                model(tokens[:1, :1])  # nothing but NaN at first
                model(tokens)
        first = seen.result().extremes("model.layers.0.input_layernorm")[0]
        self.assertEqual((first.coordinate, first.call, first.position, first.token), (None, 0, 0, 59))
        norm = seen.result().norms[0]
        self.assertEqual((norm.rows, norm.not_finite, norm.kind), (18, 4, "rms"))

    def test_keyword_inputs(self):
        class Keyword(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.norm = torch.nn.LayerNorm(8)

            def forward(self, x):
                return self.norm(input=x)

        model = Keyword()
        with ns.watch(model) as seen:
            model(x=torch.randn(3, 8))
        self.assertEqual((seen.result().norms[0].rows, seen.result().not_understood), (3, []))


class Elsewhere(torch.Tensor):
    """Says that it is on another device, and notes how many entries are copied from there at once."""

    copied = []

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        if function == torch.Tensor.is_cpu.__get__:
            return False
        result = super().__torch_function__(function, types, arguments, keywords)
        if function is not torch.Tensor.cpu:
            return result
        cls.copied.append(result.numel())
        return result.as_subclass(torch.Tensor)


class Devices(unittest.TestCase):
    def test_rows_of_other_devices_are_copied_piece_by_piece(self):
        model, x = torch.nn.Sequential(torch.nn.LayerNorm(8)), torch.randn(30, 5, 8)
        mask = torch.arange(5) < torch.randint(1, 6, (30, 1))
        for options in ({}, {"mask": mask}, {"most_rows": 7}):
            results = []
            for given, most in ((x, 2**24), (x.as_subclass(Elsewhere), 100)):
                Elsewhere.copied.clear()
                with mock.patch.object(sys.modules["normscope.watch"], "MOST_COPIED", most), torch.no_grad(), \
                        ns.watch(model, contexts=30, **options) as seen:
                    model(given)
                results.append(seen)
            self.assertEqual((results[0].copied_bytes, results[1].copied_bytes), (0, 4 * sum(Elsewhere.copied)))
            # Some rows and their outputs tell which norm it is; then two contexts at a time are copied.
            self.assertEqual(Elsewhere.copied, [1200, 1200] + [80] * 15)
            here, there = (seen.result() for seen in results)
            for mine, theirs in zip(summary(here), summary(there)):
                self.assertEqual(mine[:2], theirs[:2])
                np.testing.assert_allclose(mine[2:], theirs[2:], rtol=1e-12)
            self.assertEqual(here.extremes(), there.extremes())


class Hooks(unittest.TestCase):
    def test_models_that_were_compiled_before(self):
        tokens = tokens_of()
        for compile_it in (lambda model: torch.compile(model, backend="eager"),
                           lambda model: (model.compile(backend="eager"), model)[1],
                           lambda model: ([layer.compile(backend="eager") for layer in model.model.layers], model)[1]):
            torch.compiler.reset()
            model = shaken(MODELS["llama"]())
            compiled = compile_it(model)
            with torch.no_grad():
                wanted = compiled(tokens).logits
                calls = (compiled.forward, [layer._compiled_call_impl for layer in model.model.layers])
                with ns.watch(compiled) as seen:
                    torch.testing.assert_close(compiled(tokens).logits, wanted)
                self.assertEqual([norm.rows for norm in seen.result().norms], [21] * 5)
                self.assertEqual(calls, (compiled.forward, [layer._compiled_call_impl for layer in model.model.layers]))
                torch.testing.assert_close(compiled(tokens).logits, wanted)
            self.assertEqual(hooks_of(model), 0)

    def test_recomputed_activations_count_once(self):
        for reentrant in (True, False):
            model = shaken(MODELS["llama"]()).train()
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": reentrant})
            with ns.watch(model) as seen:
                model(tokens_of(), labels=tokens_of()).loss.backward()
            self.assertEqual({(norm.calls, norm.rows) for norm in seen.result().norms}, {(1, 21)})

    def test_no_hook_is_left(self):
        model = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Linear(9, 2))
        with self.assertRaises(RuntimeError), ns.watch(model) as seen:
            model(torch.randn(2, 8))
        self.assertEqual((hooks_of(model), seen.result().norms[0].rows), (0, 2))
        self.assertIsNone(seen._calls.now())
        for which in (lambda name, module: 1 / 0, ["absent"]):
            with self.assertRaises((ZeroDivisionError, ValueError)):
                ns.watch(model, which)
        self.assertEqual(hooks_of(model), 0)
        kept = ns.watch(model)
        self.assertGreater(hooks_of(model), 0)
        del kept
        gc.collect()
        self.assertEqual(hooks_of(model), 0)

    def test_copies_and_files_of_a_watched_model_are_not_watched(self):
        model = torch.nn.Sequential(torch.nn.LayerNorm(8))
        with ns.watch(model) as seen:
            file = io.BytesIO()
            torch.save(model, file)
            file.seek(0)
            for other in (copy.deepcopy(model), torch.load(file, weights_only=False)):
                other(torch.randn(5, 8))
            model(torch.randn(2, 8))
        self.assertEqual(seen.result().norms[0].rows, 2)

    def test_norms_that_do_not_run_are_listed(self):
        model = torch.nn.ModuleDict({"a": torch.nn.LayerNorm(8), "b": torch.nn.LayerNorm(8)})
        with ns.watch(model) as seen:
            model["a"](torch.randn(2, 8))
        self.assertEqual([(entry.name, entry.reason) for entry in seen.result().not_understood], [("b", "it was not called")])


class Processes(unittest.TestCase):
    def test_results_travel_and_merge(self):
        model = shaken(MODELS["llama"]())
        batches = [tokens_of(), tokens_of(2), tokens_of()]
        with torch.no_grad():
            with ns.watch(model) as whole:
                for batch in batches:
                    model(batch)
            parts = []
            for batch in batches:
                with ns.watch(model) as seen:
                    model(batch)
                parts.append(pickle.loads(pickle.dumps(seen.result())))
        merged = parts[0].merge(*parts[1:])
        self.assertEqual({(norm.calls, norm.rows) for norm in merged.norms}, {(3, 56)})
        for mine, theirs in zip(summary(merged), summary(whole.result())):
            self.assertEqual(mine[:2], theirs[:2])
            np.testing.assert_allclose(mine[2:], theirs[2:], rtol=1e-12)
        self.assertEqual(merged.extremes(), whole.result().extremes())
        self.assertEqual(parts[0].norms[0].rows, 21)
        self.assertEqual(merged.within(model, heads=1).in_model.next.rows, 56)
        with self.assertRaisesRegex(ValueError, "^activations: the watched module is gone"):
            parts[0].within()
        with torch.no_grad(), ns.watch(model, axes=2) as other:
            model(batches[0])
        with self.assertRaisesRegex(ValueError, "^merge: the watches have other options"):
            merged.merge(other.result())
        with self.assertRaisesRegex(TypeError, "^merge: 3 is no result of a watch"):
            merged.merge(3)


class Training(unittest.TestCase):
    def test_the_trainer_of_transformers(self):
        model = MODELS["llama"]()
        data = [{"input_ids": row, "labels": row} for row in tokens_of(16)]
        callback = training.trainer_callback(every=2, sample=8)
        with tempfile.TemporaryDirectory() as folder:
            arguments = transformers.TrainingArguments(folder, max_steps=5, per_device_train_batch_size=2, report_to=[],
                                                       gradient_accumulation_steps=2, use_cpu=True, disable_tqdm=True)
            trainer = transformers.Trainer(model, arguments, train_dataset=data, callbacks=[callback])
            trainer.train()
        self.assertEqual(sorted({row["step"] for row in callback.norms.history}), [0, 2, 4])
        self.assertEqual(len(callback.norms.history), 3 * 5)
        self.assertTrue(any("norms/model.norm/sigma" in entry for entry in trainer.state.log_history))
        self.assertEqual(hooks_of(model), 0)

    @unittest.skipUnless(importlib.util.find_spec("lightning") or importlib.util.find_spec("pytorch_lightning"),
                         "lightning is not there")
    def test_the_trainer_of_lightning(self):
        try:
            import lightning.pytorch as lightning
        except ImportError:
            import pytorch_lightning as lightning

        class Small(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.net = torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Linear(8, 1))

            def training_step(self, batch, _):
                return self.net(batch).square().mean()

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), 0.1)

        callback, model = training.lightning_callback(every=2), Small()
        with tempfile.TemporaryDirectory() as folder:
            trainer = lightning.Trainer(max_steps=5, callbacks=[callback], default_root_dir=folder, accelerator="cpu",
                                        logger=False, enable_checkpointing=False, enable_progress_bar=False,
                                        enable_model_summary=False)
            trainer.fit(model, torch.utils.data.DataLoader(torch.randn(20, 8), batch_size=4))
        self.assertEqual([row["step"] for row in callback.norms.history], [0, 2, 4])
        self.assertIn("norms/net.0/sigma", trainer.logged_metrics)
        self.assertEqual(hooks_of(model), 0)


if __name__ == "__main__":
    unittest.main()

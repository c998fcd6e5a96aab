"""`normscope.torch.lens` on live models: its shares are TransformerLens's, its changes those of models that run again, its
gradients those of finite differences. Run by `scripts/test interop`."""

import importlib.util
import json
import os
import tempfile
import unittest
from pathlib import Path

import normscope as ns
import normscope.torch as nt
import numpy as np
import torch
import transformers as hf
from normscope import lens, neuronpedia

torch.manual_seed(4)
SIZES = dict(vocab_size=60, bos_token_id=0, eos_token_id=0, pad_token_id=0)
LLAMA = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, **SIZES)
#: Models whose parts the core knows as well: fused and separate projections, biases, factors, norms behind branches.
MODELS = {
    "gpt2": lambda: hf.GPT2LMHeadModel(hf.GPT2Config(n_layer=2, n_embd=32, n_head=4, **SIZES)),
    "llama": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(**LLAMA)),
    "gemma": lambda: hf.GemmaForCausalLM(hf.GemmaConfig(head_dim=8, **LLAMA)),
    "gemma2": lambda: hf.Gemma2ForCausalLM(hf.Gemma2Config(head_dim=8, **LLAMA)),
    "qwen3": lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(head_dim=8, **LLAMA)),
    "neox": lambda: hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**LLAMA)),
    "phi3": lambda: hf.Phi3ForCausalLM(hf.Phi3Config(**LLAMA)),
    "granite": lambda: hf.GraniteForCausalLM(hf.GraniteConfig(
        residual_multiplier=0.3, embedding_multiplier=3.0, logits_scaling=4.0, **LLAMA)),
    "cohere": lambda: hf.CohereForCausalLM(hf.CohereConfig(**LLAMA)),
    "opt": lambda: hf.OPTForCausalLM(hf.OPTConfig(hidden_size=32, ffn_dim=48, num_hidden_layers=2, num_attention_heads=4,
                                                  word_embed_proj_dim=32, vocab_size=60)),
    "falcon": lambda: hf.FalconForCausalLM(hf.FalconConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                                                           vocab_size=60)),
}
#: Models that the core does not run.
OTHERS = {
    "olmo2": lambda: hf.Olmo2ForCausalLM(hf.Olmo2Config(**LLAMA)),
    "mixtral": lambda: hf.MixtralForCausalLM(hf.MixtralConfig(**LLAMA)),
    "bloom": lambda: hf.BloomForCausalLM(hf.BloomConfig(hidden_size=32, n_layer=2, n_head=4, vocab_size=60)),
}
TOKENS = [[1, 2, 3, 4, 5]]


def shaken(model):
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()


class Lens(unittest.TestCase):
    def test_parts_are_those_of_the_core(self):
        for name, make in MODELS.items():
            with self.subTest(name):
                model = shaken(make())
                with torch.no_grad():
                    parts = lens.collect(model, TOKENS)
                    found = parts.changes(7, against=9, replace_with="mean")
                    shares = parts.shares(7, against=9)
                core = ns.open(model).attribute(TOKENS[0], 7, against=9, replace_with="mean", budget=0)
                self.assertEqual([component.name for component in core.components if "norm_bias" not in component.name],
                                 [name for name in parts.names if "norm_bias" not in name])
                size = max(abs(component.share) for component in core.components)
                for component in core.components:
                    index = parts.names.index(component.name)
                    for mine, theirs in ((shares, component.share), (found.exact, component.exact),
                                         (found.frozen, component.frozen), (found.price, component.price),
                                         (found.gradient, component.gradient)):
                        self.assertAlmostEqual(mine[index, 0, -1].item(), theirs, delta=2e-5 * max(1.0, size))

    def test_parts_of_other_models(self):
        for name, make in OTHERS.items():
            with self.subTest(name), torch.no_grad():
                model = shaken(make())
                parts = lens.collect(model, TOKENS)
                logits = lambda x: model.get_output_embeddings()(parts.norm(x))[..., 7]
                torch.testing.assert_close(logits(parts.x), model(torch.tensor(TOKENS)).logits[..., 7])
                for exact, row in zip(parts.changes(7).exact, parts.rows, strict=True):
                    torch.testing.assert_close(exact, logits(parts.x - row) - logits(parts.x), rtol=1e-4, atol=1e-5)
                self.assertEqual({"0.0", "1.3", "1.mlp"} - set(parts.names), set())

    def test_a_result_of_the_core_about_live_parts(self):
        model = shaken(MODELS["gpt2"]())
        with torch.no_grad():
            parts = lens.collect(model, TOKENS)
        found = parts.attribute(7, at=3, most_removed=2, certificates=True)
        self.assertEqual([component.name for component in found.components], parts.names)
        np.testing.assert_allclose([component.exact for component in found.components],
                                   parts.changes(7).exact[:, 0, 3].detach().numpy(), atol=1e-5)
        self.assertTrue(set(found.bounds[1].attained_most.components) <= set(parts.names))
        self.assertEqual(ns.verify(found, ns.open(model)).failed, [])
        self.assertFalse(any("row " in text for text in json.dumps(found.to_dict()).split('"')))
        np.testing.assert_allclose(sum(parts.numpy().values()), parts.x.double().numpy(), atol=1e-5)

    def test_the_example_of_the_documentation(self):
        """Freezing says that head 3.3 helps the letter g; in truth removing it raises the logit."""
        folder = Path(os.environ["NORMSCOPE_SOURCE_DIR"], "models/wordlist_gpt")
        model = hf.AutoModelForCausalLM.from_pretrained(folder).eval()
        vocabulary = json.loads((folder / "vocab.json").read_text())
        with torch.no_grad():
            parts = lens.collect(model, [vocabulary[letter] for letter in "understandin"])
            changes = parts.changes(vocabulary["g"])
        index = parts.names.index("3.3")
        self.assertAlmostEqual(changes.frozen[index, 0, -1].item(), -0.1691, delta=1e-3)
        self.assertAlmostEqual(changes.exact[index, 0, -1].item(), 0.2105, delta=1e-3)

    def test_parts_follow_what_the_live_model_computes(self):
        """A hook that steers the model is in its parts, and none of ours is left."""
        model = shaken(MODELS["llama"]())
        plain = lens.collect(model, TOKENS)
        handle = model.model.layers[0].mlp.down_proj.register_forward_hook(lambda module, x, out: out * 2.0)
        steered = lens.collect(model, TOKENS)
        handle.remove()
        torch.testing.assert_close(steered["0.mlp"], 2.0 * plain["0.mlp"])
        self.assertEqual(sum(len(module._forward_hooks) for module in model.modules()), 0)
        with self.assertRaises(Exception):
            lens.collect(model, [[1000]])
        self.assertEqual(sum(len(module._forward_hooks) for module in model.modules()), 0)

    def test_wrapped_and_compiled_models(self):
        model = shaken(MODELS["llama"]())
        with torch.no_grad():
            plain = lens.collect(model, TOKENS)
            for wrap in (torch.nn.DataParallel, torch.nn.Sequential, lambda model: torch.compile(model, backend="eager"),
                         lambda model: (model.compile(backend="eager"), model(torch.tensor(TOKENS)), model)[2]):
                parts = lens.collect(wrap(model), TOKENS)
                self.assertEqual(parts.names, plain.names)
                torch.testing.assert_close(parts.rows, plain.rows)
        self.assertIsNotNone(model._compiled_call_impl)
        import peft

        tuned = peft.get_peft_model(shaken(MODELS["llama"]()), peft.LoraConfig(r=2, target_modules=["o_proj"],
                                                                              init_lora_weights=False))
        with self.assertRaisesRegex(ValueError, "^lens: "):
            lens.collect(tuned, TOKENS)

    def test_derivatives(self):
        for module in (torch.nn.LayerNorm(6), nt.RMSNorm(6, eps=1e-3)):
            module.double()
            with torch.no_grad():
                for parameter in module.parameters():
                    parameter.normal_()
            w = torch.randn(6, dtype=torch.float64, requires_grad=True)
            x, part, other = (torch.randn(2, 6, dtype=torch.float64, requires_grad=True) for _ in range(3))
            reading = lens.Reading(module, w)
            torch.testing.assert_close(reading(x), module(x) @ w)
            changes = reading.changes(x, part[None], other[None])
            torch.testing.assert_close(changes.exact[0], module(x + other - part) @ w - module(x) @ w)
            (slope,) = torch.autograd.grad((module(x) @ w).sum(), x)
            torch.testing.assert_close(changes.gradient[0], (slope * (other - part)).sum(-1))
            torch.testing.assert_close(changes.frozen[0], reading.shares(x, (other - part)[None])[0])
            call = lambda x, part, w: lens.Reading(module, w).changes(x, part[None]).price
            self.assertTrue(torch.autograd.gradcheck(call, (x, part, w)))
            nothing = reading.changes(x, part[None], part[None])
            self.assertEqual(nothing.exact.abs().max().item(), 0.0)
        gemma = hf.models.gemma.modeling_gemma.GemmaRMSNorm(6)
        torch.nn.init.normal_(gemma.weight)
        x, w = torch.randn(2, 6), torch.randn(6)
        torch.testing.assert_close(lens.Reading(gemma, w)(x), gemma(x) @ w)

    def test_a_loss_of_prices_reaches_the_weights(self):
        model = shaken(MODELS["llama"]())
        parts = lens.collect(model, TOKENS)
        parts.changes(7).price.square().sum().backward()
        for name in ("model.norm.weight", "model.layers.0.self_attn.o_proj.weight", "model.embed_tokens.weight"):
            self.assertGreater(model.get_parameter(name).grad.abs().max().item(), 0.0, name)

    def test_other_models_are_refused(self):
        model = shaken(MODELS["llama"]())
        handle = model.model.layers[0].register_forward_hook(lambda module, x, out: out + 1.0)
        with self.assertRaisesRegex(ValueError, "^lens: the 11 parts of LlamaForCausalLM miss the final norm's input by"):
            lens.collect(model, TOKENS)
        handle.remove()
        with self.assertRaisesRegex(ValueError, "^lens: target is 60, expected a token below 60"):
            lens.collect(model, TOKENS).shares(60)
        for error, given in ((TypeError, 3), (ValueError, torch.nn.Sequential(torch.nn.LayerNorm(8)))):
            with self.assertRaisesRegex(error, "^lens: "):
                lens.collect(given, TOKENS)

    def test_shares_are_the_logit_attributions_of_transformer_lens(self):
        from transformer_lens_test import CONFIGS, bridge_of

        for name, config in CONFIGS.items():
            bridge = bridge_of(config)
            bridge.enable_compatibility_mode(disable_warnings=True, center_unembed=False)  # gains within the readers
            with torch.no_grad():
                parts = lens.collect(bridge, TOKENS)
                _, cache = bridge.run_with_cache(torch.tensor(TOKENS))
                theirs = cache.logit_attrs(parts.rows, tokens=torch.full((1, 5), 7), incorrect_tokens=torch.full((1, 5), 9))
                mine = parts.shares(7, against=9)
            torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-6, msg=lambda text: f"{name}: {text}")
            with torch.no_grad():
                plain = bridge_of(config)
                parts = lens.collect(plain, TOKENS)
                logits = plain(torch.tensor(TOKENS))
                torch.testing.assert_close(parts.shares(7, 9).sum(0) + parts.reading(7, 9).constant,
                                           logits[..., 7] - logits[..., 9], rtol=1e-4, atol=1e-5)


class Graphs(unittest.TestCase):
    def test_graphs_conform_to_the_schema_of_neuronpedia(self):
        found = ns.open(shaken(MODELS["gpt2"]())).attribute(TOKENS[0], 7, against=9)
        with tempfile.TemporaryDirectory() as folder:
            neuronpedia.save(found, f"{folder}/graph.json", slug="one", scan="tiny")
            made = json.loads(Path(folder, "graph.json").read_text())
        self.assertEqual(set(made), {"metadata", "qParams", "nodes", "links"})
        nodes = {node["node_id"]: node for node in made["nodes"]}
        self.assertEqual(len(nodes), len(found.components) + 1)
        (logit,) = (node for node in nodes.values() if node["is_target_logit"])
        self.assertAlmostEqual(sum(link["weight"] for link in made["links"]), found.value - found.constant, delta=1e-9)
        for link, component in zip(made["links"], found.components, strict=True):
            self.assertEqual((nodes[link["source"]]["clerp"], link["target"]), (component.name, logit["node_id"]))
            self.assertEqual((link["price"], link["exact"]), (component.price, component.exact))
        # What the schema of Neuronpedia's upload asks for.
        self.assertTrue({"slug", "scan", "prompt_tokens", "prompt"} <= made["metadata"].keys())
        self.assertNotIn(None, made["metadata"].values())
        for node in nodes.values():
            for name, kinds in (("node_id", str), ("feature", int), ("layer", str), ("ctx_idx", int), ("feature_type", str),
                                ("jsNodeId", str), ("clerp", str), ("influence", (float, type(None)))):
                self.assertIsInstance(node[name], kinds)
        largest = max(made["links"], key=lambda link: abs(link["weight"]))["source"]
        self.assertEqual(nodes[largest]["influence"], min(node["influence"] for node in nodes.values() if node is not logit))
        package = importlib.util.find_spec("circuit_tracer")
        if package is None:
            self.skipTest("circuit-tracer, which has the schema, is not there")
        file = Path(package.submodule_search_locations[0], "frontend/graph_models.py")
        spec = importlib.util.spec_from_file_location("graph_models", file)
        schema = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(schema)
        read = schema.Model.model_validate(made)
        self.assertEqual(json.loads(read.model_dump_json())["links"], made["links"])
        self.assertEqual(set(made["nodes"][0]), set(schema.Node.model_fields))


if __name__ == "__main__":
    unittest.main()

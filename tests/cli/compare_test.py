"""`compare` accepts rewrites that keep the function, and names the mistakes that tools make."""

import json
import re
import shutil
import struct
import sys
import unittest

import numpy as np

import onnx_graphs
from command import SOURCE, CommandTest, fixture, safetensors
from forward_pass import logits, tensors

#: Exit statuses of --check.
STATUS = {"same": 0, "equivalent": 0, "different": 1, "undecided": 4}


class Compare(CommandTest):
    def changed(self, case, change, config=lambda config: None):
        """A copy of a fixture with its tensors changed, as folder NEW."""
        folder = self.folder / "NEW"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        weights = {name: array.astype(np.float32) for name, array in tensors(fixture(case) / "model.safetensors").items()}
        change(weights)
        safetensors(folder / "model.safetensors", weights)
        settings = json.loads((fixture(case) / "config.json").read_text())
        config(settings)
        (folder / "config.json").write_text(json.dumps(settings))
        return folder

    def compared(self, case, new, different):
        """The comparison with a fixture; `different` is true also where it is undecided."""
        done = self.run_command("compare", fixture(case), new, "--json", "c.json", "--check")
        document = json.loads((self.folder / "c.json").read_text())
        self.conforms("compare", document)
        self.assertEqual((done.returncode, done.stderr), (STATUS[document["agreement"]], ""), done.stdout)
        self.assertEqual(done.returncode > 0, bool(different), document["agreement"])
        return document

    def findings(self, case, change, config=lambda config: None):
        document = self.compared(case, self.changed(case, change, config), 1)
        self.assertEqual(document["agreement"], "different")
        texts = {}
        for finding in document["findings"]:
            texts[finding["kind"]] = texts.get(finding["kind"], "") + finding["text"] + "\n"
        return texts

    def test_a_model_is_the_same_as_itself(self):
        for case in ("gpt2", "gemma2", "falcon_40b", "deepseek_v2"):
            document = self.compared(case, fixture(case), 0)
            self.assertEqual((document["agreement"], document["findings"]), ("same", []), case)

    def test_rewrites_are_equivalent(self):
        for case, options in (("gpt2", ("--center", "--untie")), ("stablelm", ("--center",)), ("gemma", ()), ("phimoe", ()),
                              ("clip", ("--center",)), ("t5", ()), ("nemotron", ("--center",))):
            shutil.rmtree(self.folder / "out", ignore_errors=True)
            self.ok("rewrite", fixture(case), "-o", "out", "--fold", "gains", "-q", *options)
            document = self.compared(case, "out", 0)
            self.assertEqual(document["agreement"], "equivalent", case)
            kinds = {finding["kind"] for finding in document["findings"]}
            self.assertEqual(kinds, {"folded", "centered"} if "--center" in options else {"folded"}, case)

    def test_a_witness_is_confirmed_by_another_forward_pass(self):
        def head(weights):
            weights["model.layers.0.self_attn.o_proj.weight"][:, :8] = 0
        def gain(weights):
            weights["model.norm.weight"] += 1
        cases = {"head": (head, lambda config: None), "gain": (gain, lambda config: None),
                 "eps": (lambda weights: None, lambda config: config.update(rms_norm_eps=1e-4)),
                 "theta": (lambda weights: None, lambda config: config["rope_parameters"].update(rope_theta=20000.0))}
        for name, (change, config) in cases.items():
            new = self.changed("llama", change, config)
            witness = self.compared("llama", new, 1)["witness"]
            tokens, position = witness["tokens"], witness["position"]
            for folder, side in ((fixture("llama"), "old"), (new, "new")):
                expected = logits(folder, tokens)[position][witness["token"]]
                self.assertAlmostEqual(witness[f"{side}_logit"], expected, delta=1e-9, msg=name)
            self.assertEqual(witness["rounding"] > 0, name in ("head", "gain"))
            done = self.run_command("compare", fixture("llama"), new)
            self.assertTrue(done.stdout.startswith("different: after the tokens "), done.stdout)

    def test_a_language_head_keeps_its_own_activation(self):
        """RoBERTa's is a GELU in code; that of its MLPs has no effect on logits where these write nothing."""
        def silent(weights):
            for name in weights:
                if name.endswith("output.dense.weight") and ".attention." not in name:
                    weights[name] = 0 * weights[name]
        for case, has_witness in (("roberta", False), ("bert", True)):
            old = self.changed(case, silent).rename(self.folder / f"{case}_of_old")
            new = self.changed(case, silent, lambda config: config.update(hidden_act="silu"))
            self.ok("compare", old, new, "--json", "c.json")
            document = json.loads((self.folder / "c.json").read_text())
            self.assertEqual((document["agreement"], document.get("witness") is not None), ("different", has_witness), case)

    def test_one_norm_is_explained(self):
        def gain(weights):
            weights["transformer.h.0.ln_2.weight"][2] *= 2
        new = self.changed("gpt2", gain)
        text = self.run_command("compare", fixture("gpt2"), new, "--explain", "transformer.h.0.ln_2").stdout
        self.assertIn("transformer.h.0.ln_2 in NEW, transformer.h.0.ln_2 in OLD: different\n", text)
        self.assertRegex(text, r"reader transformer.h.0.mlp.c_fc.weight: stored weights change 0, with the gain 0\.\d+, bias .*\(differs\)")
        self.assertIn("no norm has that name; expected one of transformer.h.0.ln_1 to transformer.ln_f",
                      self.fails(3, "compare", fixture("gpt2"), new, "--explain", "ln"))

    def test_a_page_holds_the_comparison(self):
        new = self.changed("gpt2", lambda weights: weights.update({"transformer.ln_f.weight": 2 * weights["transformer.ln_f.weight"]}))
        done = self.run_command("compare", fixture("gpt2"), new, "-o", "page.html", "--json", "c.json")
        self.assertEqual((done.returncode, done.stderr), (0, ""), "no answer was asked for without --check")
        page = (self.folder / "page.html").read_text()
        data, charts = (json.loads(re.search(f'id="{name}">(.*?)</script>', page, re.S).group(1)) for name in ("report-data", "chart-data"))
        self.assertEqual(data, json.loads((self.folder / "c.json").read_text()))
        ids = [chart["id"] for chart in charts]
        self.assertEqual(ids[:2], ["witness", "drift"])
        self.assertNotIn("turn", ids, "a gain that is only longer has not turned")
        self.assertEqual([chart["panel"][:3] for chart in charts if chart["id"].startswith("gains-")], ["OLD", "NEW"])
        self.assertIn("transformer.ln_f has changed most, by 1 of its length", charts[1]["answer"])
        self.assertIn("would overwrite", self.fails(3, "compare", fixture("gpt2"), new, "-o", new / "model.safetensors"))

    def test_migrated_scales_are_equivalent(self):
        for case in ("gpt2", "gemma2", "phimoe"):
            shutil.rmtree(self.folder / "out", ignore_errors=True)
            self.ok("rewrite", fixture(case), "-o", "out", "--migrate", "-q")
            self.assertEqual(self.compared(case, "out", 0)["agreement"], "equivalent", case)

    def test_gains_read_with_another_offset(self):
        def minus_one(weights):
            for name in weights:
                if re.search(r"norm\.weight$", name):
                    weights[name] = weights[name] - 1
        text = self.findings("llama", minus_one)["offset"]
        self.assertIn("that of OLD minus 1: 1 was subtracted, as for a model that reads 1 + w in place of w", text)
        self.assertIn("so for 5 of 5 norms", text)

    def test_another_eps(self):
        found = self.findings("llama", lambda weights: None, lambda config: config.update(rms_norm_eps=1e-6))
        self.assertIn("is 1e-06 in NEW, 0.0003 in OLD; so for 5 of 5 norms", found["eps"])

    def test_a_norm_removed_by_a_large_eps(self):
        def scale(weights):
            weights["transformer.h.0.ln_1.weight"] *= 1e6
        found = self.findings("gpt2", scale, lambda config: config.update(layer_norm_epsilon=1e12))
        self.assertIn("divides by a constant", found["missing_normalization"])

    def test_a_gain_that_was_lost_and_one_that_acts_twice(self):
        name = "model.layers.1.post_attention_layernorm.weight"
        def lost(weights):
            weights[name] = np.ones_like(weights[name])
        def twice(weights):
            for reader in ("gate_proj", "up_proj"):
                weights[f"model.layers.1.mlp.{reader}.weight"] *= weights[name]
        self.assertIn("the gain was not folded", self.findings("llama", lost)["lost_gain"])
        self.assertIn("acts twice", self.findings("llama", twice)["folded_twice"])

    def test_a_gain_folded_into_the_wrong_norms_readers(self):
        def wrong(weights):
            gain = weights["model.layers.0.input_layernorm.weight"].copy()
            weights["model.layers.0.input_layernorm.weight"][:] = 1
            for reader in ("gate_proj", "up_proj"):
                weights[f"model.layers.0.mlp.{reader}.weight"] *= gain
        self.assertIn("lost_gain", self.findings("llama", wrong))

    def test_exchanged_and_zero_gains(self):
        first, second = "model.layers.0.input_layernorm.weight", "model.layers.1.input_layernorm.weight"
        def exchanged(weights):
            weights[first], weights[second] = weights[second], weights[first]
        def zero(weights):
            weights[first] = 0 * weights[first]
        self.assertIn("in NEW is that of model.layers.1.input_layernorm in OLD", self.findings("llama", exchanged)["exchanged_gain"])
        self.assertIn("is zero in NEW", self.findings("llama", zero)["zero_gain"])

    def test_a_bias_that_was_lost(self):
        def lost(weights):
            weights["transformer.h.1.ln_2.bias"] = 0 * weights["transformer.h.1.ln_2.bias"]
        self.assertIn("do not make up for it", self.findings("gpt2", lost)["lost_bias"])

    def test_centring_a_model_of_rmsnorms(self):
        def center(weights):
            weights["model.embed_tokens.weight"] -= weights["model.embed_tokens.weight"].mean(1, keepdims=True)
        self.assertIn("lost its mean", self.findings("llama", center)["centered_for_rms"])

    def test_centring_a_table_that_is_the_head_too(self):
        def center(weights):
            weights["transformer.wte.weight"] -= weights["transformer.wte.weight"].mean(1, keepdims=True)
        document = self.compared("gpt2", self.changed("gpt2", center), 1)
        self.assertEqual([norm["agreement"] for norm in document["norms"]], ["same"] * 4 + ["different"])

    def test_gains_that_are_read_as_one_plus_w(self):
        def plus_one(weights):
            for name in weights:
                if re.search(r"norm\.weight$", name):
                    weights[name] = weights[name] + 1
        self.assertIn("that of OLD plus 1: 1 was added, as for a model that reads w in place of 1 + w", self.findings("llama", plus_one)["offset"])
        # Gemma's file stores w where the gain is 1 + w.
        self.assertIn("that of OLD minus 1", self.findings("gemma", lambda weights: [
            weights.update({name: weights[name] - 1}) for name in list(weights) if re.search(r"norm\.weight$", name)])["offset"])

    def test_a_duplicated_gain(self):
        first, second = "model.layers.0.input_layernorm.weight", "model.layers.1.input_layernorm.weight"
        text = self.findings("llama", lambda weights: weights.update({second: weights[first]}))["exchanged_gain"]
        self.assertEqual(text, "the gain of model.layers.1.input_layernorm in NEW is that of model.layers.0.input_layernorm in OLD\n")

    def test_a_missing_gain(self):
        new = self.changed("llama", lambda weights: weights.pop("model.layers.1.input_layernorm.weight"))
        self.assertIn("model.layers.1.input_layernorm.weight is missing", self.fails(3, "compare", fixture("llama"), new))

    def test_a_norm_wired_to_the_wrong_reader(self):
        def exchanged(weights):
            first, second = (f"model.layers.{layer}.self_attn.q_proj.weight" for layer in (0, 1))
            weights[first], weights[second] = weights[second], weights[first]
        text = self.findings("llama", exchanged)["wrong_reader"]
        self.assertIn("model.layers.0.self_attn.q_proj.weight in NEW, which reads model.layers.0.input_layernorm, is "
                      "model.layers.1.self_attn.q_proj.weight of OLD, which reads model.layers.1.input_layernorm", text)
        def of_one_norm(weights):
            first, second = (f"model.layers.0.mlp.{part}_proj.weight" for part in ("gate", "up"))
            weights[first], weights[second] = weights[second], weights[first]
        self.assertIn("gate_proj.weight in NEW", self.findings("llama", of_one_norm)["wrong_reader"])

    def test_drift_is_measured_norm_by_norm(self):
        name = "model.layers.1.input_layernorm.weight"
        document = self.compared("llama", self.changed("llama", lambda weights: weights.update({name: weights[name] * np.float32(1.25)})), 1)
        for norm in document["norms"]:
            self.assertAlmostEqual(norm["gain_change"], 0.25 if norm["old"] + ".weight" == name else 0, places=6)
            self.assertAlmostEqual(norm["gain_cosine"], 1)
            self.assertEqual(norm["agreement"], "different" if norm["old"] + ".weight" == name else "same")

    def onnx(self, case, change=lambda weights: None, eps=None):
        """The ONNX file of a fixture."""
        weights = {name: array.astype(np.float32) for name, array in tensors(fixture(case) / "model.safetensors").items()}
        change(weights)
        config = json.loads((fixture(case) / "config.json").read_text())
        write = {"llama": onnx_graphs.llama, "gpt2": onnx_graphs.gpt2}[case]
        return write(self.folder / "model.onnx", weights, 2, eps or config.get("rms_norm_eps") or config["layer_norm_epsilon"])

    def test_an_onnx_file_of_the_same_model(self):
        document = self.compared("llama", self.onnx("llama"), 1)
        self.assertEqual((document["agreement"], document["findings"]), ("undecided", []))
        self.assertEqual(document["not_compared"], ["the operations between norms and matrices, which the graph states"])
        self.assertEqual([(norm["old"], norm["agreement"], len(norm["readers"])) for norm in document["norms"]],
                         [(f"model.layers.{layer}.{name}", "same", readers) for layer in (0, 1)
                          for name, readers in (("input_layernorm", 3), ("post_attention_layernorm", 2))] + [("model.norm", "same", 1)])
        renamed = {other["name"]: other["new"] for other in document["others"]}
        self.assertEqual(renamed.pop("model.embed_tokens.weight"), None)
        self.assertEqual(sorted(renamed), sorted(f"model.layers.{layer}.{name}.weight" for layer in (0, 1)
                                                 for name in ("self_attn.o_proj", "mlp.down_proj")))
        self.assertTrue(all(name.startswith("onnx::MatMul_") for name in renamed.values()))
        document = self.compared("gpt2", self.onnx("gpt2"), 1)
        self.assertEqual((document["agreement"], document["findings"], document["not_compared"]), ("undecided", [], [self.OPERATIONS]))
        self.onnx("llama")
        text = self.run_command("compare", "model.onnx", fixture("llama")).stdout
        self.assertIn("undecided: nothing differs of what could be compared", text)

    def test_an_onnx_file_of_a_rewritten_model(self):
        self.ok("rewrite", fixture("llama"), "-o", "out", "--fold", "gains", "-q")
        folded = tensors(self.folder / "out/model.safetensors")
        document = self.compared("llama", self.onnx("llama", lambda weights: weights.update(folded)), 1)
        self.assertEqual(document["agreement"], "undecided")
        self.assertEqual({norm["agreement"] for norm in document["norms"]}, {"equivalent"})
        self.assertIn("folded", {finding["kind"] for finding in document["findings"]})

    def test_what_differs_in_an_onnx_file(self):
        def kinds(case, *arguments):
            document = self.compared(case, self.onnx(case, *arguments), 1)
            # Graphs are not run: without a witness, only another eps is a difference whatever the weights are.
            self.assertEqual(document["agreement"], "different" if len(arguments) > 1 else "undecided")
            self.assertEqual(document["no_witness"], "no witness was sought: graphs are not run")
            return {finding["kind"] for finding in document["findings"]}
        def gain(weights):
            weights["model.layers.1.input_layernorm.weight"][3] *= 2
        def reader(weights):
            weights["model.layers.0.mlp.up_proj.weight"][1] *= np.float32(1.5)
        self.assertEqual(kinds("llama", lambda weights: None, 1e-6), {"eps"})
        self.assertEqual(kinds("llama", lambda weights: weights.update({"model.norm.weight": np.ones_like(weights["model.norm.weight"])})), {"lost_gain"})
        self.compared("llama", self.onnx("llama", gain), 1)
        document = self.compared("llama", self.onnx("llama", reader), 1)
        self.assertEqual([norm["old"] for norm in document["norms"] if norm["agreement"] == "different"],
                         ["model.layers.0.post_attention_layernorm"])
        def writer(weights):
            weights["model.layers.0.mlp.down_proj.weight"][1] *= np.float32(1.5)
        document = self.compared("llama", self.onnx("llama", writer), 1)
        self.assertEqual(document["agreement"], "undecided")
        self.assertIn("model.layers.0.mlp.down_proj.weight: no tensor of NEW has its values", document["not_compared"])

    # Constants of the graph and of the code that was traced: tables of rotary positions, a slice of the positions.
    NOT_OF_OLD = {"gpt2_dynamo": ["transformer.wpe.weight: no tensor of NEW has its values", "embedding_1 of NEW"], "gpt2_script": [],
                  "llama_dynamo": ["unsqueeze_2 of NEW", "unsqueeze_3 of NEW"],
                  "llama_script": ["/model/model/rotary_emb/Constant_output_0 of NEW"]}
    OPERATIONS = "the operations between norms and matrices, which the graph states"

    def exported(self, name, old=None, new=None):
        """The document of a checkpoint and what torch exported of it, with some of its bytes replaced."""
        model, exporter = name.split("_")
        source = fixture(f"exported_{model}")
        data = (source / f"{exporter}.onnx").read_bytes()
        if old is not None:
            self.assertIn(old, data, name)
            data = data.replace(old, new)
        (self.folder / "new.onnx").write_bytes(data)
        done = self.run_command("compare", source, "new.onnx", "--json", "c.json", "--check")
        self.assertEqual(done.stderr, "", name)
        document = json.loads((self.folder / "c.json").read_text())
        self.conforms("compare", document)
        self.assertEqual(done.returncode, STATUS[document["agreement"]])
        return document

    def test_files_that_torch_exported(self):
        for name, others in self.NOT_OF_OLD.items():
            document = self.exported(name)
            self.assertEqual(document["agreement"], "undecided", name)
            self.assertEqual((document["findings"], {norm["agreement"] for norm in document["norms"]}), ([], {"same"}), name)
            self.assertEqual(len(document["not_compared"]), len(others) + 1, document["not_compared"])
            for text in [*others, self.OPERATIONS]:
                self.assertTrue(any(line.startswith(text) for line in document["not_compared"]), (name, document["not_compared"]))

    def test_what_differs_in_files_that_torch_exported(self):
        number = lambda value: np.float32(value).tobytes()
        for name in self.NOT_OF_OLD:
            model = name.partition("_")[0]
            old = tensors(fixture(f"exported_{model}") / "model.safetensors")
            gain, reader, writer = {"gpt2": ("transformer.h.0.ln_2.weight", "transformer.h.0.mlp.c_fc.weight", "transformer.h.0.mlp.c_proj.weight"),
                                    "llama": ("model.layers.0.post_attention_layernorm.weight", "model.layers.0.mlp.up_proj.weight",
                                              "model.layers.0.mlp.down_proj.weight")}[model]
            different = lambda document: [norm["old"] for norm in document["norms"] if norm["agreement"] == "different"]
            document = self.exported(name, number(old[gain][0]), number(1.5 * old[gain][0]))
            self.assertEqual((document["agreement"], different(document)), ("undecided", [gain.removesuffix(".weight")]), name)
            document = self.exported(name, number(old[reader][0, 0]), number(1.5 * old[reader][0, 0]))
            self.assertEqual((document["agreement"], different(document)), ("undecided", [gain.removesuffix(".weight")]), name)
            document = self.exported(name, number(1e-4), number(1e-6))
            self.assertEqual({finding["kind"] for finding in document["findings"]}, {"eps"}, name)
            document = self.exported(name, number(old[writer][0, 0]), number(1.5 * old[writer][0, 0]))
            self.assertIn(document["agreement"], ("different", "undecided"), name)
            said = [*document["not_compared"], *(finding["text"] for finding in document["findings"])]
            self.assertTrue(any(writer in line for line in said), (name, said))

    def test_a_rewritten_checkpoint_and_what_torch_exported_before(self):
        for name, exporter in (("exported_gpt2", "dynamo"), ("exported_llama", "script")):
            self.ok("rewrite", fixture(name), "-o", "out", "--fold", "gains", "-q")
            shutil.copy(fixture(name) / f"{exporter}.onnx", self.folder / "new.onnx")
            self.assertEqual(self.run_command("compare", "out", "new.onnx", "--json", "c.json", "--check").returncode, 4)
            document = json.loads((self.folder / "c.json").read_text())
            self.assertEqual(document["agreement"], "undecided", name)
            self.assertIn("equivalent", {norm["agreement"] for norm in document["norms"]}, name)
            shutil.rmtree(self.folder / "out")

    def test_a_mask_of_transformer_lens_is_that_of_the_configuration(self):
        sys.path.append(str(SOURCE / "scripts/compare_table"))
        import checkpoints
        import conversions

        model = checkpoints.load("gpt_neo")
        source = model.write(self.folder / "source")
        for layer, agreement in ((None, "same"), (0, "undecided"), (1, "undecided")):  # layer 1 has a window
            other = conversions.to_transformer_lens(model.copy(), np.random.default_rng(0))
            if layer is not None:
                other.tensors[f"blocks.{layer}.attn.mask"][-1, -1] ^= True
            self.assertEqual(self.json("compare", source, other.write(self.folder / f"layer_{layer}"))["agreement"], agreement)

    def test_a_graph_says_why_a_part_is_a_norm_or_none(self):
        for old, new in ((b"", b""), (struct.pack("<f", 1e-4), struct.pack("<f", -1e-4))):
            data = (fixture("exported_llama") / "script.onnx").read_bytes()
            (self.folder / "new.onnx").write_bytes(data.replace(old, new) if old else data)
            document = self.json("inspect", "new.onnx")
            text = self.ok("inspect", "new.onnx")
            compared = self.json("compare", fixture("exported_llama"), "new.onnx")
            if old:
                self.assertEqual([norm for norm in document["norms"] if "reasons" in norm], [])
                self.assertEqual(len(document["near_misses"]), 3)
                for miss in document["near_misses"]:
                    self.assertRegex(miss["why"], r"^eps is -0.0001, the constant \S+, expected a number from 0 on$")
                    self.assertIn(f"no norm: {miss['node']}: {miss['why']}", text)
                self.assertEqual(sum("which is like a norm, but none: eps is" in line for line in compared["not_compared"]), 3)
                continue
            self.assertNotIn("near_misses", document)
            self.assertEqual(len(document["norms"]), 3)
            for norm, found in zip(document["norms"], compared["norms"], strict=True):
                self.assertTrue(norm["reasons"][0].startswith("x / sqrt(mean x² + eps), where x is "), norm["reasons"])
                self.assertEqual(found["new_reasons"], norm["reasons"])
                self.assertIn("    because     " + norm["reasons"][0], text)
            explained = self.ok("compare", fixture("exported_llama"), "new.onnx", "--explain", compared["norms"][0]["new"])
            self.assertIn("  in NEW because x / sqrt(mean x² + eps)", explained)

    def changed_field(self, case, **fields):
        document = self.compared(case, self.changed(case, lambda weights: None, lambda config: config.update(fields)), 1)
        effects = {field["field"]: field["effect"] for field in document["configuration"]}
        return document["agreement"], effects, " ".join(finding["text"] for finding in document["findings"])

    def test_a_field_that_changes_the_function(self):
        for case, field, value, said in (
                ("llama", "hidden_act", "gelu", 'hidden_act is "gelu" in NEW, "silu" in OLD'),
                ("gpt2", "n_head", 2, "n_head is 2 in NEW, 3 in OLD"),
                ("gpt2", "scale_attn_weights", False, "scale_attn_weights is false in NEW"),
                ("gemma2", "final_logit_softcapping", 5.0, "the cap of logits is 5 in NEW"),
                ("mixtral", "num_experts_per_tok", 1, "num_experts_per_tok is 1 in NEW")):
            agreement, effects, text = self.changed_field(case, **{field: value})
            self.assertEqual((agreement, effects), ("different", {field: "different"}), case)
            self.assertIn(said, text)
        agreement, effects, text = self.changed_field("llama", rope_parameters={"rope_type": "default", "rope_theta": 10000.0})
        self.assertEqual((agreement, effects), ("different", {"rope_parameters.rope_theta": "different"}))
        self.assertIn("rope_parameters.rope_theta is 10000", text)
        self.assertIn("the rotary embedding of layer 0 head 0", text)

    def test_a_field_that_is_not_understood_decides_nothing(self):
        for field, value in (("model_type", "stranger"), ("odd", 3), ("num_hidden_layers", 1), ("mlp_bias", True), ("pad_token_id", 7)):
            agreement, effects, text = self.changed_field("llama", **{field: value})
            self.assertEqual((agreement, effects), ("undecided", {field: "unknown"}), field)
            self.assertIn(f"{field} is ", text)
        new = self.changed("llama", lambda weights: None, lambda config: config.update(transformers_version="4", attention_dropout=0.5))
        self.assertEqual(self.compared("llama", new, 0)["configuration"], [])
        (new / "config.json").unlink()
        document = self.compared("llama", new, 1)
        self.assertIn("the configuration, which NEW does not have", document["not_compared"])
        self.assertEqual(document["agreement"], "undecided")

    def test_what_another_tensor_makes_up_for_is_no_difference(self):
        def permuted(weights):
            for layer in ("model.layers.0.mlp.", "model.layers.1.mlp."):
                order = np.random.default_rng(1).permutation(len(weights[layer + "up_proj.weight"]))
                for part in ("gate", "up"):
                    weights[f"{layer}{part}_proj.weight"] = weights[f"{layer}{part}_proj.weight"][order]
                weights[layer + "down_proj.weight"] = np.ascontiguousarray(weights[layer + "down_proj.weight"][:, order])
        def scaled(first, second, factor=np.float32(2)):
            def change(weights):
                for name, times in ((first, factor), (second, 1 / factor)):
                    weights[f"model.layers.0.self_attn.{name}_proj.weight"] = weights[f"model.layers.0.self_attn.{name}_proj.weight"] * times
            return change
        for change, kind in ((permuted, "permuted_neurons"), (scaled("v", "o"), "mapped_values"),
                             (scaled("v", "o", np.float32(3)), "mapped_values"), (scaled("q", "k"), "mapped_keys")):
            document = self.compared("llama", self.changed("llama", change), 0)
            self.assertEqual(document["agreement"], "equivalent")
            self.assertIn(kind, {finding["kind"] for finding in document["findings"]})
        def halves(weights):
            scaled("v", "o")(weights)
            weights["model.layers.0.self_attn.o_proj.weight"][:, 3] *= 2
        self.assertEqual(self.compared("llama", self.changed("llama", halves), 1)["agreement"], "different")

    def test_a_tensor_that_differs_is_named(self):
        def change(name):
            return lambda weights: weights.update({name: weights[name] * np.random.default_rng(2).uniform(0.5, 2, weights[name].shape).astype(np.float32)})
        for name in ("model.layers.1.mlp.up_proj.weight", "model.layers.0.self_attn.k_proj.weight", "model.layers.0.input_layernorm.weight",
                     "lm_head.weight", "model.embed_tokens.weight"):
            document = self.compared("llama", self.changed("llama", change(name)), 1)
            self.assertEqual(document["agreement"], "different")
            self.assertTrue(any(name.removesuffix(".weight") in finding["text"] for finding in document["findings"]), name)

    def test_other_tensors_and_other_models(self):
        def attention(weights):
            weights["model.layers.0.self_attn.o_proj.weight"][0, 0] += 0.01
        self.assertIn("writes something else", self.findings("llama", attention)["writer"])
        self.assertIn("expected one known architecture", self.fails(3, "compare", fixture("llama"), fixture("gpt2")))


if __name__ == "__main__":
    unittest.main()

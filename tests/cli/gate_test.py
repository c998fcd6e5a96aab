"""What stands in the way of a claim (adapters, scales, packed weights, unknown fields) leaves no number in any command."""

import json
import shutil
import unittest

import numpy as np

from command import CommandTest, Fp8, fixture, safetensors
from forward_pass import tensors

LAYERS = ("model.layers.0.", "model.layers.1.")
MAPS = [f"{layer}{map}_proj" for layer in LAYERS for map in
        ("self_attn.q", "self_attn.k", "self_attn.v", "self_attn.o", "mlp.gate", "mlp.up", "mlp.down")]
QUERY = "model.layers.0.self_attn.q_proj"
def codes(shape, seed=0):
    return np.random.default_rng(seed).integers(0, 100, shape).astype(np.uint8).view(Fp8)


def floats(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


# Each changes {name: array} or the configuration, and says which maps it concerns.
def lora(weights, config):
    out, width = weights[QUERY + ".weight"].shape
    weights[QUERY + ".lora_A.default.weight"], weights[QUERY + ".lora_B.default.weight"] = floats(4, width), floats(out, 4)
    return [QUERY]


def peft(weights, config):
    lora(weights, config)
    weights[QUERY + ".base_layer.weight"] = weights.pop(QUERY + ".weight")
    return [QUERY]


def saved_modules(weights, config):
    weights["lm_head.original_module.weight"] = weights["lm_head.modules_to_save.default.weight"] = weights.pop("lm_head.weight")
    return ["lm_head"]


def scaled(suffix, shape=(1,), method="fp8"):
    def change(weights, config):
        for name in MAPS:
            weights[name + ".weight"] = codes(weights[name + ".weight"].shape)
            weights[name + suffix] = np.full(shape, 0.01, np.float32)
        config["quantization_config"] = {"quant_method": method}
        return MAPS
    return change


def scale_without_configuration(weights, config):
    maps = scaled(".weight_scale")(weights, config)
    del config["quantization_config"]
    return maps


def scaled_head(weights, config):
    weights["lm_head.weight"] = codes(weights["lm_head.weight"].shape)
    weights["lm_head.weight_scale"] = np.full(1, 0.01, np.float32)
    return ["lm_head"]


def factors(weights, config):
    stored = weights.pop(QUERY + ".weight")
    weights[QUERY + ".weight_g"], weights[QUERY + ".weight_v"] = floats(len(stored), 1), stored
    return [QUERY]


def parametrized(weights, config):
    stored = weights.pop(QUERY + ".weight")
    for index, factor in enumerate((floats(len(stored), 1), stored)):
        weights[f"{QUERY}.parametrizations.weight.original{index}"] = factor
    return [QUERY]


def mlx_without_configuration(weights, config):
    for name in [*MAPS, "lm_head", "model.embed_tokens"]:
        out, width = weights[name + ".weight"].shape
        weights[name + ".weight"] = np.zeros((out, width // 8), np.uint32)
        weights[name + ".scales"], weights[name + ".biases"] = floats(out, 1), floats(out, 1)
    return [*MAPS, "lm_head"]


def nf4(weights, config):
    for name in MAPS:
        count = weights[name + ".weight"].size
        weights[name + ".weight"] = np.zeros((count // 2, 1), np.uint8)
        for suffix, array in ((".absmax", np.zeros(2, np.uint8)), (".nested_absmax", floats(1)), (".nested_quant_map", floats(256)),
                              (".quant_map", floats(16)), (".quant_state.bitsandbytes__nf4", np.frombuffer(b"{}", np.uint8))):
            weights[name + ".weight" + suffix] = array
    config["quantization_config"] = {"quant_method": "bitsandbytes", "load_in_4bit": True}
    return MAPS


def int8(weights, config):
    for name in MAPS:
        weights[name + ".weight"] = np.zeros(weights[name + ".weight"].shape, np.int8)
        weights[name + ".SCB"] = floats(len(weights[name + ".weight"]))
    return MAPS


def packed(axis, g_idx):
    def change(weights, config):
        for name in MAPS:
            stored = weights.pop(name + ".weight").T
            shape = [extent // 4 if k == axis else extent for k, extent in enumerate(stored.shape)]
            weights[name + ".qweight"], weights[name + ".qzeros"] = np.zeros(shape, np.int32), np.zeros((1, shape[1]), np.int32)
            weights[name + ".scales"] = floats(1, stored.shape[1])
            if g_idx:
                weights[name + ".g_idx"] = np.zeros(len(stored), np.int32)
        config["quantization_config"] = {"quant_method": "gptq" if g_idx else "awq", "bits": 3, "group_size": 8}
        return MAPS
    return change


def unknown_field(weights, config):
    config["width_scale"] = 0.5
    return [*MAPS, "lm_head"]


def unknown_type(weights, config):
    config["model_type"] = "stranger"
    return [*MAPS, "lm_head"]


def tied(weights, config):
    config["tie_word_embeddings"] = True
    return []


def scaled_norm(weights, config):
    weights["model.norm.weight_scale"] = floats(1)
    return ["lm_head"]


OBSTACLES = {
    "lora": lora, "peft": peft, "saved modules": saved_modules, "weight_scale": scaled(".weight_scale"),
    "weight_scale_inv": scaled(".weight_scale_inv", (1, 1), "other"), "scale": scaled(".scale"), "no configuration": scale_without_configuration,
    "input_scale": scaled(".input_scale"), "head scale": scaled_head, "weight norm": factors, "parametrization": parametrized, "mlx": mlx_without_configuration,
    "nf4": nf4, "int8": int8, "gptq": packed(0, True), "awq": packed(1, False), "field": unknown_field, "type": unknown_type, "tie": tied,
    "norm scale": scaled_norm}
# What concerns the logits, beside those whose maps include the head.
OF_LOGITS = {"tie", "field", "type", "mlx", "nf4", "gptq", "awq", "weight_scale", "weight_scale_inv", "scale", "input_scale"}


class Gate(CommandTest):
    def with_obstacle(self, name):
        weights = {key: value.astype(np.float32) for key, value in tensors(fixture("llama") / "model.safetensors").items()}
        config = json.loads((fixture("llama") / "config.json").read_text())
        concerned = OBSTACLES[name](weights, config)
        folder = self.folder / name.replace(" ", "_")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        safetensors(folder / "model.safetensors", weights)
        (folder / "config.json").write_text(json.dumps(config))
        return folder, [map + "." for map in concerned]

    def each(self):
        for name in OBSTACLES:
            with self.subTest(obstacle=name):
                folder, concerned = self.with_obstacle(name)
                of_logits = name in OF_LOGITS or "lm_head." in concerned
                yield name, folder, tuple(concerned), of_logits
                shutil.rmtree(folder)

    def expect_no_ranges(self, document, concerned, of_logits):
        for norm in document["norms"]:
            for reader in norm.get("readers", []):
                if reader["weight"].startswith(concerned):
                    self.assertIn("not modelled", reader["refused"])
                    self.assertNotIn("highest", reader)
        if of_logits:
            self.assertIsNone(document["logits"])

    def test_ranges(self):
        for _, folder, concerned, of_logits in self.each():
            self.expect_no_ranges(self.json("ranges", folder), concerned, of_logits)

    def concerns_heads(self, name, concerned):
        return name in ("field", "type") or any("q_proj" in map or "k_proj" in map for map in concerned)

    def test_heads(self):
        for name, folder, concerned, _ in self.each():
            if name in ("lora", "peft", "weight norm", "parametrization"):
                heads = self.json("heads", folder)["heads"]
                self.assertEqual([head["layer"] == 0 for head in heads], ["refused" in head for head in heads])
                self.assertTrue(all("not modelled" in head["refused"] for head in heads if head["layer"] == 0))
            elif self.concerns_heads(name, concerned):
                self.assertIn("not modelled", self.fails(3, "heads", folder))
            else:
                self.assertFalse(any("refused" in head for head in self.json("heads", folder)["heads"]))

    def test_reach_and_signature(self):
        rows = self.folder / "rows.npy"
        np.save(rows, floats(3, 29))
        for _, folder, _, of_logits in self.each():
            if of_logits:
                self.assertIn("not modelled", self.fails(3, "reach", folder))
                self.assertIn("not modelled", self.fails(3, "signature", "verify", folder, rows))
            else:
                self.ok("reach", folder)

    def test_report(self):
        for name, folder, concerned, of_logits in self.each():
            self.ok("report", folder, "-o", "report.html", "--json", "report.json")
            document = json.loads((self.folder / "report.json").read_text())
            self.conforms("report", document)
            self.expect_no_ranges(document["ranges"], concerned, of_logits)
            if name == "type":
                self.assertIsNone(document["vocabulary"])
            elif of_logits:
                self.assertIn("not modelled", document["vocabulary"]["refused"])
            if self.concerns_heads(name, concerned):
                self.assertTrue(all("refused" in head for head in document["heads"] if head["layer"] == 0))
            for norm in document["norms"]:
                for reader in norm["readers"]:
                    if reader["tensor"].startswith(concerned):
                        self.assertIsNone(reader["removed"] if "removed" in reader else None, reader)

    def test_trace(self):
        for _, folder, _, _ in self.each():
            self.assertIn("not modelled", self.fails(3, "trace", folder, "--tokens", "1,2"))
            self.assertIn("not modelled", self.fails(3, "attribute", folder, "--tokens", "1,2", "--target", "3"))

    def test_rewrite(self):
        for name, folder, concerned, _ in self.each():
            for options in (("--fold", "gains"), ("--migrate",), ("--fold", "gains", "--rotate", "1")):
                done = self.run_command("rewrite", folder, "-o", "out", *options)
                if done.returncode == 3:
                    self.assertNotEqual(done.stderr, "")
                    self.assertFalse((self.folder / "out").exists())
                    continue
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                document = json.loads((self.folder / "out/rewrite.json").read_text())
                edited = {certificate["tensor"] for certificate in document["certificates"]}
                self.assertFalse([tensor for tensor in edited if tensor.startswith(concerned)], name)
                if name == "norm scale":
                    self.assertNotIn("model.norm.weight", edited)
                shutil.rmtree(self.folder / "out")

    def test_compare(self):
        for name, folder, _, _ in self.each():
            itself = self.json("compare", folder, folder)
            self.assertEqual((itself["agreement"], itself["configuration"]), ("same", []), name)
            done = self.run_command("compare", fixture("llama"), folder, "--json", "c.json", "--check")
            if done.returncode == 3:
                self.assertIn("not modelled", done.stderr)
                continue
            document = json.loads((self.folder / "c.json").read_text())
            self.conforms("compare", document)
            self.assertEqual((done.returncode, document["agreement"]), (4, "undecided"), name)

    def test_inspect_and_geometry(self):
        for name, folder, _, _ in self.each():
            text = self.ok("inspect", folder)
            self.assertTrue("not modelled: " in text or "is not known" in text or name == "tie", text)
            if name == "type":
                shown = self.ok("geometry", "--gain", f"{folder}:model.norm.weight")
                self.assertIn("from the model (unknown architecture (model_type stranger)), model.norm: kind rms (assumed), "
                              "eps 0.0003 (assumed)", shown)

    def test_a_stated_architecture_decides(self):
        folder, _ = self.with_obstacle("type")
        self.ok("reach", folder, "--arch", "llama")
        self.ok("heads", folder, "--arch", "llama")
        document = self.json("inspect", folder)
        self.assertEqual(document["architecture"]["architecture"], "unknown")
        self.assertIn("state the architecture", self.ok("inspect", folder))
        self.assertEqual([norm["name"] for norm in document["norms"]][-1], "model.norm", "the order is a guess of Llama's")
        for norm in document["norms"]:
            self.assertEqual((norm["readers"], norm["writers"], norm["connections_known"], norm["order_known"], norm["eps_source"]),
                             ([], [], False, False, "assumed"))


if __name__ == "__main__":
    unittest.main()

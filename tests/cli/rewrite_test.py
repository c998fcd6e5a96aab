"""Rewritten checkpoints compute what the originals do, by a forward pass that shares nothing with the command."""

import json
import os
import shutil
import signal
import subprocess
import unittest

import numpy as np

from command import COMMAND, OWN_MODEL, CommandTest, fixture, safetensors
from forward_pass import logits, tensors


class Rewrite(CommandTest):
    source = fixture("gpt2")

    def setUp(self):
        super().setUp()
        truth = json.loads((self.source / "truth.json").read_text())
        self.ids = np.array(truth["inputs"]["input_ids"]).ravel()
        self.logits = truth["outputs"]["logits"]

    def rewritten(self, *options, source=None):
        document = self.json("rewrite", source or self.source, "-o", "out", *options)
        self.assertEqual(json.loads((self.folder / "out/rewrite.json").read_text()), document)
        return document

    def test_logits_are_those_of_transformers_before_and_after(self):
        old = logits(self.source, self.ids)
        (position,) = self.logits["positions"]
        np.testing.assert_allclose(old[position], np.ravel(self.logits["values"]), rtol=0, atol=2e-5)
        for number, options in enumerate([["--fold", "gains"], ["--fold", "gains", "--untie"], ["--center", "--untie"], ["--migrate"],
                                          ["--fold", "gains", "--center", "--untie"], ["--fold", "gains", "--untie", "--rotate", "random:5"],
                                          ["--fold", "gains", "--center", "--untie", "--rotate", "random:6"]]):
            with self.subTest(options):
                document = self.rewritten(*options)
                out = self.folder / "out"
                np.testing.assert_allclose(logits(out, self.ids), old, rtol=0, atol=2e-6)
                if "--center" in options:
                    self.assertTrue(document["streams"][0]["centered"])
                    np.testing.assert_allclose(logits(out, self.ids, layer_norm=False), old, rtol=0, atol=2e-6)
                if "--fold" in options:
                    w = tensors(out / "model.safetensors")
                    self.assertTrue((w["transformer.h.1.ln_2.weight"] == 1).all())
                    self.assertTrue((w["transformer.h.1.ln_2.bias"] == 0).all())
                shutil.rmtree(out)

    def test_an_rmsnorm_in_place_of_a_layernorm_needs_centring(self):
        gap = np.abs(logits(self.source, self.ids, layer_norm=False) - logits(self.source, self.ids)).max()
        self.assertGreater(gap, 1e-2)

    def test_a_dry_run_writes_nothing(self):
        before = sorted(self.folder.rglob("*"))
        text = self.ok("rewrite", self.source, "--dry-run", "--fold", "gains")
        self.assertIn("transformer.h.0.ln_1  c_attn   gain and bias folded\n", text)
        self.assertIn("left: its reader \"transformer.wte.weight\" is the token embedding too; untying", text)
        document = self.json("rewrite", self.source, "--dry-run", "--fold", "gains", "--center")
        self.assertEqual(document["certificates"], [])
        self.assertEqual([norm["fold"] for norm in document["norms"]], ["gain and bias"] * 4 + ["left"])
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def test_a_file_becomes_a_file(self):
        shutil.copy(self.source / "model.safetensors", self.folder / "m.safetensors")
        before = (self.folder / "m.safetensors").read_bytes()
        text = self.ok("rewrite", "m.safetensors", "-o", "n.safetensors", "--fold", "gains")
        self.assertIn("n.safetensors: 8 tensors rewritten; largest proved error", text)
        self.assertEqual((self.folder / "m.safetensors").read_bytes(), before)
        self.conforms("rewrite", json.loads((self.folder / "n.safetensors.rewrite.json").read_text()))
        self.assertIn("would overwrite", self.fails(3, "rewrite", "m.safetensors", "-o", "m.safetensors", "--fold", "gains"))

    def test_the_configuration_beside_a_file_is_kept(self):
        for name in ("model.safetensors", "config.json"):
            shutil.copy(self.source / name, self.folder / name)
        before = {path.name: path.read_bytes() for path in self.folder.iterdir()}
        for words in (["-o", "config.json"], ["-o", "n.safetensors", "--json", "config.json"], ["--dry-run", "--json", "config.json"]):
            self.assertIn("would overwrite", self.fails(3, "rewrite", "model.safetensors", "--fold", "gains", *words))
        self.assertEqual({path.name: path.read_bytes() for path in self.folder.iterdir()}, before)

    def test_activations_are_tried(self):
        rng = np.random.default_rng(4)
        width = len(tensors(self.source / "model.safetensors")["transformer.ln_f.weight"])
        rows = {f"transformer.h.{layer}.ln_{part}": rng.normal(size=(2, 200, width)) for layer in (0, 1) for part in (1, 2)}
        np.savez(self.folder / "rows.npz", **rows)
        safetensors(self.folder / "rows.safetensors", {"transformer.ln_f": np.ones((3, width), np.float32)})
        np.save(self.folder / "one.npy", rows["transformer.h.0.ln_1"])
        document = self.rewritten("--fold", "gains", "--norm-inputs", "rows.npz", "--norm-inputs", "rows.safetensors")
        self.assertEqual([norm["norm"] for norm in document["activations"]], [*rows, "transformer.ln_f"])
        self.assertEqual({(norm["given"], norm["tried"]) for norm in document["activations"]}, {(400, 256), (3, 3)})
        self.assertAlmostEqual(document["activations"][-1]["mean_share"], 1)
        bounds = {item["tensor"]: item["relative_bound"] for item in document["certificates"]}
        for norm in document["activations"][:-1]:
            for reader in norm["readers"]:
                self.assertGreater(reader["largest"], 0)
                self.assertLess(reader["largest"], 4 * bounds[reader["reader"]])
        shutil.rmtree(self.folder / "out")
        text = self.ok("rewrite", self.source, "-o", "out", "--fold", "gains", "--norm-inputs", "transformer.h.0.ln_1=one.npy")
        self.assertRegex(text, "transformer.h.0.ln_1: outputs of [0-9]+ readers? differ by at most .* of their length on 256 rows of 400\n")
        shutil.rmtree(self.folder / "out")
        for wrong, message in (("one.npy", "expected NORM=FILE.npy"), ("ln_9=one.npy", "ln_9 is no norm of the model"),
                               ("transformer.ln_f=1,2;3,4", "rows of 2 numbers")):
            self.assertIn(message, self.fails(3, "rewrite", self.source, "-o", "out", "--fold", "gains", "--norm-inputs", wrong))

    def test_undo_restores_the_folder(self):
        source = self.folder / "in"
        shutil.copytree(self.source, source)
        old = tensors(source / "model.safetensors")
        for options in (["--fold", "gains", "--center", "--untie"], ["--migrate"]):
            document = self.rewritten(*options, source="in")
            self.assertEqual(document["undo"], "rewrite.undo")
            undone = self.json("rewrite", "out", "-o", "back", "--undo")
            self.conforms("undo", undone)
            new = tensors(self.folder / "back/model.safetensors")
            self.assertEqual(sorted(new), sorted(old))
            exact = {item["tensor"] for item in undone["tensors"] if item["roundings"] == 0}
            self.assertTrue(all(item["roundings"] <= 2.02 for item in undone["tensors"]))
            rewritten = {item["tensor"] for item in undone["tensors"]} - exact
            self.assertEqual(bool(rewritten), options != ["--migrate"])
            for name, array in old.items():
                if name in rewritten:
                    np.testing.assert_allclose(new[name], array, rtol=3e-7, atol=3e-7 * np.abs(array).max())
                else:
                    np.testing.assert_array_equal(new[name], array, err_msg=name)
            for name in ("config.json", "truth.json"):
                self.assertEqual((self.folder / "back" / name).read_bytes(), (source / name).read_bytes())
            self.assertFalse((self.folder / "back/rewrite.json").exists())
            np.testing.assert_allclose(logits(self.folder / "back", self.ids), logits(self.source, self.ids), rtol=0, atol=2e-6)
            shutil.rmtree(self.folder / "out"), shutil.rmtree(self.folder / "back")

    def test_a_stream_is_rotated_by_a_matrix_of_a_file(self):
        width = len(tensors(self.source / "model.safetensors")["transformer.ln_f.weight"])
        q, _ = np.linalg.qr(np.random.default_rng(8).normal(size=(width, width)))
        np.save(self.folder / "q.npy", q)
        fold = ["--fold", "gains", "--untie", "--rotate"]
        self.assertIn("is a LayerNorm, which subtracts the mean", self.fails(3, "rewrite", self.source, "-o", "out", *fold, "q.npy"))
        # A rotation of the complement of (1, ..., 1).
        ones = np.ones((width, 1)) / np.sqrt(width)
        basis, _ = np.linalg.qr(np.hstack([ones, np.eye(width)[:, 1:]]))
        basis[:, 0] = ones[:, 0]
        inner, _ = np.linalg.qr(np.random.default_rng(9).normal(size=(width - 1, width - 1)))
        q = basis @ np.block([[np.ones((1, 1)), np.zeros((1, width - 1))], [np.zeros((width - 1, 1)), inner]]) @ basis.T
        np.save(self.folder / "q.npy", q)
        document = self.rewritten(*fold, "q.npy", "--norm-inputs", "transformer.h.1.ln_1=q.npy")
        self.assertEqual([stream["rotated"] for stream in document["rotations"]], [True])
        self.assertLess(max(reader["relative"] for reader in document["activations"][0]["readers"]), 1e-6)
        np.testing.assert_allclose(logits(self.folder / "out", self.ids), logits(self.source, self.ids), rtol=0, atol=2e-6)
        old, new = tensors(self.source / "model.safetensors"), tensors(self.folder / "out/model.safetensors")
        np.testing.assert_allclose(new["transformer.wpe.weight"], old["transformer.wpe.weight"] @ q.T, atol=1e-6)
        self.json("rewrite", "out", "-o", "back", "--undo")
        back = tensors(self.folder / "back/model.safetensors")
        for name, array in old.items():
            np.testing.assert_allclose(back[name], array, rtol=0, atol=2e-6 * np.abs(array).max(), err_msg=name)
        for wrong, message in (("1,2,3", "expected a square matrix"), ("1,0;0,1", "the matrix rotates 2 features"),
                               ("1,1;0,1", "expected an orthogonal matrix")):
            self.assertIn(message, self.fails(3, "rewrite", self.source, "-o", "no", *fold, wrong))
        self.fails(2, "rewrite", self.source, "-o", "no", "--rotate", "random:x")
        self.assertIn("has a gain, which folding gains moves", self.fails(3, "rewrite", self.source, "-o", "no", "--rotate", "random:1"))

    def test_undo_of_a_file_and_its_refusals(self):
        shutil.copy(self.source / "model.safetensors", self.folder / "m.safetensors")
        self.ok("rewrite", "m.safetensors", "-o", "n.safetensors", "--fold", "gains")
        text = self.ok("rewrite", "n.safetensors", "-o", "b.safetensors", "--undo")
        self.assertIn("b.safetensors: 16 tensors restored, 12 of them bit for bit, the others within 2 roundings", text)
        for name, array in tensors(self.folder / "m.safetensors").items():
            np.testing.assert_allclose(tensors(self.folder / "b.safetensors")[name], array, rtol=3e-7)
        self.assertIn("m.safetensors.rewrite.undo: is not there", self.fails(3, "rewrite", "m.safetensors", "-o", "c.safetensors", "--undo"))
        self.fails(2, "rewrite", "n.safetensors", "-o", "c.safetensors", "--undo", "--center")
        self.fails(2, "rewrite", "n.safetensors", "--undo")
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()),
                         ["b.safetensors", "m.safetensors", "n.safetensors", "n.safetensors.rewrite.json", "n.safetensors.rewrite.undo"])

    def test_what_is_not_exact_is_refused_by_name(self):
        self.assertIn("no gain can be folded exactly: its output is also the residual stream (post-norm)",
                      self.fails(3, "rewrite", fixture("bloom_post_residual"), "-o", "out", "--fold", "gains"))
        self.assertIn("cannot be centred exactly: model.layers.0.input_layernorm is an RMSNorm",
                      self.fails(3, "rewrite", fixture("llama"), "-o", "out", "--center"))
        safetensors(self.folder / "a.safetensors", {"x": np.ones(3)})
        self.assertIn("not modelled: unknown architecture", self.fails(3, "rewrite", "a.safetensors", "-o", "out", "--fold", "gains"))

    def test_usage(self):
        for arguments in ([self.source, "-o", "out"], [self.source, "--fold", "gains"],
                          [self.source, "-o", "out", "--fold", "biases"]):
            self.fails(2, "rewrite", *arguments)

    def test_ctrl_c_leaves_nothing(self):
        width, rows = 64, 100_000
        random = np.random.default_rng(1)
        source = self.folder / "in"
        shutil.copytree(OWN_MODEL, source)
        weights = tensors(next(source.glob("*.safetensors")))
        table = next(name for name in weights if name.endswith("wte.weight"))
        large = {name: array.astype(np.float32) for name, array in weights.items()}
        large[table] = random.normal(size=(rows, width)).astype(np.float32)
        if any(name.endswith("lm_head.weight") for name in large):
            large[next(name for name in large if name.endswith("lm_head.weight"))] = large[table]
        safetensors(next(source.glob("*.safetensors")), large)
        process = subprocess.Popen([COMMAND, "rewrite", "in", "-o", "out", "--fold", "gains"], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while process.poll() is None and not any(self.folder.glob(".normscope-rewrite*")):
            pass
        os.kill(process.pid, signal.SIGINT)
        _, error = process.communicate()
        if process.returncode == 0:
            self.skipTest("it was done before the signal came")
        self.assertEqual(process.returncode, 130, error)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["in"])


if __name__ == "__main__":
    unittest.main()

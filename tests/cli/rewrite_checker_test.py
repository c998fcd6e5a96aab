"""A checker in NumPy confirms certificates of rewrites, and refuses forged ones."""

import copy
import json
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

import numpy as np

from command import SOURCE, CommandTest, fixture, safetensors
from forward_pass import tensors


class RewriteChecker(CommandTest):
    def checked(self, document, *models):
        (self.folder / "result.json").write_text(json.dumps(document))
        program = SOURCE / "python/normscope/model_checker.py"
        done = subprocess.run([sys.executable, "-B", program, "result.json", *models], cwd=self.folder, text=True, capture_output=True)
        self.assertEqual(done.stderr, "")
        failed = [line.removeprefix("failed: ") for line in done.stdout.splitlines() if line.startswith("failed: ")]
        self.assertEqual(done.returncode, 1 if failed else 4)  # what was tried on inputs is not proved
        return failed

    def test_the_checker_of_checkpoints_agrees(self):
        for case, options in (("llama", ["--fold", "gains"]), ("gpt2", ["--fold", "gains", "--center", "--untie"]), ("gpt2", ["--fold", "gains"]),
                              ("gpt2", ["--migrate"]), ("gemma", ["--fold", "gains"]), ("falcon_40b", ["--fold", "gains", "--untie"]),
                              ("stablelm", ["--fold", "gains", "--center"]), ("gpt_neox", ["--fold", "gains"]), ("mixtral", ["--migrate"])):
            source = fixture(case)
            document = self.json("rewrite", source, "-o", "out", *options)
            self.assertEqual(self.checked(document, source, "out"), [], (case, options))
            shutil.rmtree(self.folder / "out")

    def test_the_checker_draws_rotations_itself(self):
        for case, options in (("llama", ["--fold", "gains"]), ("gpt2", ["--fold", "gains", "--untie"]), ("clip", ["--fold", "gains"]),
                              ("gpt2", ["--fold", "gains", "--center", "--untie"]), ("stablelm", ["--fold", "gains", "--center"])):
            source = fixture(case)
            document = self.json("rewrite", source, "-o", "out", *options, "--rotate", "random:11")
            self.assertIn("rotate_inputs", {item["change"] for item in document["certificates"]}, case)
            self.assertEqual(self.checked(document, source, "out", "random:11"), [], (case, options))
            rotated = {item["tensor"] for item in document["certificates"] if item["change"].startswith("rotate")}
            failed = self.checked(document, source, "out", "random:12")
            self.assertTrue(failed, case)
            self.assertEqual({line.split()[2] for line in failed} - rotated, set(), case)
            item = next(item for item in document["certificates"] if item["change"] == "rotate_outputs")
            item["bound"] /= 1e3
            self.assertEqual([line.split()[2] for line in self.checked(document, source, "out", "random:11")], [item["tensor"]], case)
            shutil.rmtree(self.folder / "out")
        q, _ = np.linalg.qr(np.random.default_rng(2).normal(size=(16, 16)))
        np.save(self.folder / "q.npy", q.astype(np.float32))
        document = self.json("rewrite", fixture("llama"), "-o", "out", "--fold", "gains", "--rotate", "q.npy")
        self.assertEqual(self.checked(document, fixture("llama"), "out", "q.npy"), [])

    def test_forged_certificates_are_refused(self):
        source = fixture("gpt2")
        document = self.json("rewrite", source, "-o", "out", "--fold", "gains", "--center", "--untie")
        matrix = next(item for item in document["certificates"] if item["change"] == "scale_inputs")["tensor"]
        writer = next(item for item in document["certificates"] if item["change"] == "center_outputs")["tensor"]
        bias = next(item for item in document["certificates"] if item["change"] == "add_folded_bias")["tensor"]
        for tensor in (matrix, writer, bias):
            forged = copy.deepcopy(document)
            next(item for item in forged["certificates"] if item["tensor"] == tensor).update(bound=1e-12)
            self.assertEqual([line.split()[2] for line in self.checked(forged, source, "out")], [tensor])
        forged = copy.deepcopy(document)
        forged["certificates"] = [item for item in forged["certificates"] if item["tensor"] != matrix]
        self.assertEqual(self.checked(forged, source, "out"), ["norms[4].fold: has no certificate that transformer.wte.weight took what transformer.ln_f lost",
                                                               f"untied: {matrix} is not the table"])
        weights = {name: array.astype(np.float32) for name, array in tensors(self.folder / "out/model.safetensors").items()}
        gain, untouched = "transformer.h.1.ln_2.weight", "transformer.h.0.attn.c_attn.bias"
        for name, change, wrong in ((matrix, lambda x: x * np.float32(1.001), matrix), (writer, lambda x: x + np.float32(0.01), writer),
                                    (gain, lambda x: 2 * x, "left another gain of transformer.h.1.ln_2"), (untouched, lambda x: x + 1, untouched)):
            shutil.copytree(self.folder / "out", self.folder / "forged")
            safetensors(self.folder / "forged/model.safetensors", {**weights, name: change(weights[name])})
            self.assertIn(wrong, " ".join(self.checked(document, source, "forged")))
            shutil.rmtree(self.folder / "forged")

    # Its roundings are not those of the bias alone.
    def test_the_error_of_a_bias_that_a_norm_keeps_is_not_left_out(self):
        source = fixture("gpt2")
        for rotation in [], ["random:3"]:
            document = self.json("rewrite", source, "-o", "out", "--fold", "gains", "--untie", *(["--rotate", *rotation] if rotation else []))
            self.assertEqual(self.checked(document, source, "out", *rotation), [])
            place, head = next((i, item) for i, item in enumerate(document["certificates"]) if item["tensor"] == "lm_head.weight")
            old, new = tensors(Path(source) / "model.safetensors"), tensors(self.folder / "out/model.safetensors")
            w, v = old["transformer.wte.weight"], new["lm_head.weight"]
            move = v @ new["transformer.ln_f.bias"] - w @ old["transformer.ln_f.bias"]
            self.assertGreater(abs(move).max(), 0)
            head["bound"] -= abs(move).min() + 1e-9 * head["bound"]
            self.assertEqual([line.split(":")[0] for line in self.checked(document, source, "out", *rotation)], [f"certificates[{place}].bound"])
            shutil.rmtree(self.folder / "out")

    def test_a_part_left_out_of_both_is_missed(self):
        source = fixture("gpt2")
        document = self.json("rewrite", source, "-o", "out", "--fold", "gains", "--center", "--untie")
        old, new = ({name: array.astype(np.float32) for name, array in tensors(folder / "model.safetensors").items()}
                    for folder in (Path(source), self.folder / "out"))
        of = {item["tensor"]: item for item in document["certificates"]}
        for name, found in (("transformer.h.0.mlp.c_fc.weight", "norms[1].fold"), ("transformer.h.0.attn.c_attn.bias", "norms[0].fold"),
                            ("transformer.h.0.mlp.c_proj.weight", "streams[0].writers")):
            forged = document | {"certificates": [item for item in document["certificates"] if item["tensor"] != name]}
            self.forge(forged, source, {**new, name: old[name]}, [found])
        for name, found in (("attn.c_attn.weight", "map"), ("attn.c_proj.bias", "input")):
            forged = copy.deepcopy(document)
            place = next(i for i, item in enumerate(document["certificates"]) if item["tensor"] == "transformer.h.0." + name)
            other = of["transformer.h.1." + name]
            forged["certificates"][place] = other | {"tensor": "transformer.h.0." + name} | (
                {"input": "transformer.h.0." + name} if found == "map" else {})
            self.forge(forged, source, {**new, "transformer.h.0." + name: new["transformer.h.1." + name]}, [f"certificates[{place}].{found}"])

    def forge(self, document, source, weights, found):
        shutil.copytree(self.folder / "out", self.folder / "forged")
        safetensors(self.folder / "forged/model.safetensors", weights)
        self.assertLessEqual(set(found), {line.partition(":")[0] for line in self.checked(document, source, "forged")})
        shutil.rmtree(self.folder / "forged")


if __name__ == "__main__":
    unittest.main()

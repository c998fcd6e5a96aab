"""`normscope ranges`: no input leaves the ranges, gradient ascent in NumPy nearly attains them, bad input is refused."""

import copy
import json
import re
import subprocess
import sys
import unittest

import numpy as np

from command import OWN_MODEL, SOURCE, CommandTest, cases, fixture, safetensors
from forward_pass import tensors


def normalized(x, norm, eps):
    centred = x - x.mean() if norm == "layer" else x
    return centred / np.sqrt(np.mean(centred**2) + eps)


def ascended(row, norm, eps, x):
    """An input at which row . normalized(x) is large, by gradient ascent."""
    for _ in range(300):
        centred = x - x.mean() if norm == "layer" else x
        sigma = np.sqrt(np.mean(centred**2) + eps)
        y = centred / sigma
        gradient = (row - (row.mean() if norm == "layer" else 0.0) - y * np.mean(row * y)) / sigma
        x = x + 0.5 * sigma * gradient / (np.linalg.norm(gradient) + 1e-300) * np.linalg.norm(y)
        x = x * 1.05  # away from eps
    return x


class Ranges(CommandTest):
    def ranges(self, *arguments):
        self.ok("ranges", *arguments, "--json", "r.json", "-q")
        document = json.loads((self.folder / "r.json").read_text())
        self.conforms("ranges", document)
        return document

    def attack(self, stated, rows, norm, gain, bias, offset, eps):
        """Random inputs, and gradient ascent from them for the rows that attain the ends."""
        rng = np.random.default_rng(1)
        for name, sign in (("lowest", -1.0), ("highest", 1.0)):
            end = stated[name]
            row = rows[end["row"]]
            reached = -np.inf
            for _ in range(4):
                x = ascended(sign * row * gain, norm, eps, rng.normal(size=len(row)))
                reached = max(reached, sign * (row @ (gain * normalized(x, norm, eps) + bias) + offset[end["row"]]))
            room = 1e-9 * (1.0 + abs(end["bound"]))
            self.assertLessEqual(reached, sign * end["bound"] + room)
            self.assertGreater(reached, sign * end["bound"] - 1e-2 * (1.0 + abs(end["bound"])))
            self.assertAlmostEqual(end["attained"], end["bound"], delta=1e-6 * (1.0 + abs(end["bound"])))
            for _ in range(50):
                values = rows @ (gain * normalized(rng.normal(size=len(row)) * 10.0 ** rng.uniform(-3, 3), norm, eps) + bias)
                self.assertLessEqual((sign * (values + offset)).max(), sign * end["bound"] + room)

    def test_the_range_of_a_norm_whose_kind_is_assumed_holds_for_the_kind_that_it_is(self):
        """Without a configuration these are taken for LayerNorms, or for gains that are stored whole."""
        for name in ("cohere", "llama4_whole", "nemotron", "vaultgemma", "gemma"):
            weights = tensors(fixture(name) / "model.safetensors")
            folder = self.folder / name
            folder.mkdir()
            (folder / "model.safetensors").write_bytes((fixture(name) / "model.safetensors").read_bytes())
            ranges = {norm["name"]: norm for norm in self.ranges(folder)["norms"]}
            attacked = 0
            for norm in json.loads((fixture(name) / "truth.json").read_text())["norms"]:
                stem = str(norm["gain"]).rpartition(".")[0]
                if stem not in ranges:
                    continue
                gain = np.asarray(weights[norm["gain"]], float) + norm["gain_offset"]
                bias = np.asarray(weights[norm["bias"]], float) if norm["bias"] else 0.0
                inputs = [sign * 1e6 * row for row in np.eye(len(gain)) for sign in (1.0, -1.0)]
                reached = max(np.abs(gain * normalized(x, norm["kind"], norm["eps"]) + bias).max() for x in inputs)
                self.assertLessEqual(reached, ranges[stem]["output"]["largest"] * (1.0 + 1e-9), (name, stem))
                attacked += 1
            self.assertGreater(attacked, 2, name)

    def test_a_norm_that_may_divide_by_several_positions_has_no_range(self):
        """Between convolutions "norm1" may be a GroupNorm, which can give one position more than its width allows."""
        safetensors(self.folder / "net.safetensors", {"block.norm1.weight": np.ones(8), "block.norm1.bias": np.zeros(8),
                                                        "block.conv.weight": np.ones((8, 8, 3, 3)), "ln.weight": np.ones(8),
                                                        "ln.bias": np.zeros(8)})
        found = {norm["name"]: norm for norm in self.ranges(self.folder / "net.safetensors")["norms"]}
        self.assertIn("several positions", found["block.norm1"]["refused"])
        self.assertAlmostEqual(found["ln"]["output"]["largest"], 2.0 * np.sqrt(8.0), places=9)

    def test_the_verdict_on_int8_is_in_words(self):
        text = self.ok("ranges", OWN_MODEL)
        self.assertRegex(text, r"int8: one scale for each norm's output suffices: a typical feature of \S+ uses [\d.]+ of 127")
        self.assertIn("Reader: a linear map that reads the norm's output.", text)

    def test_an_attack_on_gpt2(self):
        weights = tensors(fixture("gpt2") / "model.safetensors")
        document = self.ranges(fixture("gpt2"))
        config = json.loads((fixture("gpt2") / "config.json").read_text())
        prefix = "transformer." if any(name.startswith("transformer.") for name in weights) else ""
        take = lambda name: np.asarray(weights[prefix + name], float)
        mlp = next(norm for norm in document["norms"] if norm["name"].endswith("h.0.ln_2"))
        (reader,) = mlp["readers"]
        self.attack(reader, take("h.0.mlp.c_fc.weight").T, "layer", take("h.0.ln_2.weight"), take("h.0.ln_2.bias"),
                    take("h.0.mlp.c_fc.bias"), config["layer_norm_epsilon"])
        table = take("wte.weight")
        self.attack(document["logits"], table, "layer", take("ln_f.weight"), take("ln_f.bias"), np.zeros(len(table)),
                    config["layer_norm_epsilon"])

    def test_an_attack_on_llama(self):
        weights = tensors(fixture("llama") / "model.safetensors")
        document = self.ranges(fixture("llama"))
        config = json.loads((fixture("llama") / "config.json").read_text())
        norm = document["norms"][1]
        for reader in norm["readers"]:
            rows = np.asarray(weights[reader["weight"]], float)
            self.attack(reader, rows, "rms", np.asarray(weights[norm["name"] + ".weight"], float), np.zeros(rows.shape[1]),
                        np.zeros(len(rows)), config["rms_norm_eps"])

    def test_soft_caps_and_logits_that_are_not_modelled(self):
        capped = self.ranges(fixture("gemma2"))["logits"]
        self.assertGreater(capped["soft_cap"], 0.0)
        self.assertLessEqual(capped["highest"]["bound"], capped["soft_cap"] * (1 + 1e-12))
        self.assertIsNone(self.ranges(fixture("vit"))["logits"])

    def test_units_that_never_fire(self):
        import shutil

        from command import safetensors

        shutil.copytree(fixture("gpt2"), self.folder / "dead")
        weights = {name: np.array(array, np.float32) for name, array in tensors(fixture("gpt2") / "model.safetensors").items()}
        name = next(name for name in weights if name.endswith("h.0.mlp.c_fc.bias"))
        weights[name][:3], weights[name][5] = -1e4, 1e4
        safetensors(self.folder / "dead/model.safetensors", weights)
        document = self.ranges("dead")
        (reader,) = next(norm for norm in document["norms"] if norm["name"].endswith("h.0.ln_2"))["readers"]
        self.assertEqual(reader["never_positive"], {"count": 3, "rows": [0, 1, 2]})
        self.assertEqual(reader["never_negative"], {"count": 1, "rows": [5]})
        self.assertEqual(reader["may_overflow"], ["float8_e4m3"])

    def test_every_fixture(self):
        for folder in map(fixture, cases()):
            if not (folder / "config.json").is_file():
                continue
            for norm in self.ranges(folder)["norms"]:
                for reader in norm.get("readers", []):
                    if "refused" not in reader:
                        self.assertLessEqual(reader["lowest"]["bound"], reader["lowest"]["attained"], (folder, norm["name"]))
                        self.assertGreaterEqual(reader["highest"]["bound"], reader["highest"]["attained"], (folder, norm["name"]))

    def test_what_shared_layers_read_beside_a_norm_is_named(self):
        notes = [note for note in self.ranges(fixture("albert"))["notes"] if "its range covers" in note]
        layer = "albert.encoder.albert_layer_groups.0.albert_layers.0.attention."
        self.assertEqual(notes, [
            f'"{layer}{part}.weight" reads "albert.encoder.embedding_hidden_mapping_in.weight" in one layer, which reads '
            "albert.embeddings.LayerNorm: its range covers the layers that read a norm" for part in ("query", "key", "value")])
        self.assertIn(notes[0], self.ok("ranges", fixture("albert")))
        self.assertFalse(any("its range covers" in note for note in self.ranges(fixture("bert"))["notes"]))

    def test_int8_scales_before_and_after_migration(self):
        for case in ("gpt2", "mistral"):
            before = self.ranges(fixture(case))
            self.ok("rewrite", fixture(case), "-o", case, "--migrate", "-q")
            after = self.ranges(case)
            for old, new in zip(before["norms"], after["norms"]):
                folded = next(norm for norm in json.loads((self.folder / case / "rewrite.json").read_text())["norms"]
                              if norm["name"] == old["name"])["fold"] == "scales"
                if not folded:
                    continue
                self.assertLessEqual(new["output"]["largest"], 2 * new["output"]["median"] * (1 + 1e-12))
                self.assertGreaterEqual(new["output"]["int8"]["typical_steps"], old["output"]["int8"]["typical_steps"])
                for was, now in zip(old["readers"], new["readers"]):
                    self.assertAlmostEqual(now["highest"]["bound"] / was["highest"]["bound"], 1, delta=1e-9)
                    self.assertAlmostEqual(now["int8"]["scale"], max(-now["lowest"]["bound"], now["highest"]["bound"]) / 127)
            self.assertTrue(any(old["output"] != new["output"] for old, new in zip(before["norms"], after["norms"])), case)

    def test_what_evens_features_is_named(self):
        text = self.ok("ranges", fixture("gpt2"))
        self.assertIn("`normscope rewrite MODEL -o OUT --fold gains` evens them out", text)
        self.ok("rewrite", fixture("gpt2"), "-o", "even", "--migrate", "--untie", "-q")
        self.assertNotIn("--migrate", self.ok("ranges", "even"))

    def test_a_page_holds_the_ranges(self):
        document = self.ranges(OWN_MODEL, "-o", "page.html")
        page = (self.folder / "page.html").read_text()
        data, charts = (json.loads(re.search(f'id="{name}">(.*?)</script>', page, re.S).group(1)) for name in ("report-data", "chart-data"))
        self.assertEqual(data, document)
        self.assertEqual([chart["id"] for chart in charts][:2], ["ranges", "worst-over-typical"])
        self.assertIn("would overwrite", self.fails(3, "ranges", OWN_MODEL, "-o", OWN_MODEL / "model.safetensors"))

    def test_a_report_has_the_same_ranges(self):
        document = self.ranges(OWN_MODEL)
        self.ok("report", OWN_MODEL, "-o", "report.html", "--json", "report.json", "--no-vocabulary")
        report = json.loads((self.folder / "report.json").read_text())
        self.conforms("report", report)
        for norm in document["norms"]:
            norm.pop("source")
            for reader in norm["readers"]:
                reader.pop("source")
        self.assertEqual(report["ranges"], {key: document[key] for key in ("norms", "logits", "logits_refused")})

    def checked(self, document, model):
        (self.folder / "result.json").write_text(json.dumps(document))
        program = SOURCE / "python/normscope/model_checker.py"
        done = subprocess.run([sys.executable, "-B", program, "result.json", model], cwd=self.folder, text=True, capture_output=True)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def test_the_checker_of_checkpoints_agrees(self):
        for case in ("gpt2", "llama", "gemma2", "gpt_neox", "bloom", "t5", "cohere_qk_norm", "phimoe", "lucidrains_gpt_scale", "clip"):
            status, text = self.checked(self.ranges(fixture(case)), fixture(case))
            self.assertEqual((status, "failed" in text), (4, False), (case, text[:400]))
            # Which map reads which norm, and what typical inputs give, are not in the tensors.
            self.assertIn("not proved: norms[0].source", text)
            self.assertNotRegex(text, r"readers\[\d+\]\.(rows|lowest|highest|never_positive|never_negative|may_overflow|int8.scale)", case)
            self.assertNotRegex(text, r"output\.(largest|feature|may_overflow|int8.scale)|logits\.\w+\.bound", case)
        model = fixture("gpt2")
        document = self.ranges(model)
        for forge, wrong in (
            (lambda norm, reader: reader["highest"].update(bound=reader["highest"]["bound"] * (1 - 1e-6)), "highest"),
            (lambda norm, reader: reader["lowest"].update(bound=reader["lowest"]["bound"] + 1e-6), "lowest"),
            (lambda norm, reader: reader["lowest"].update(attained=0.0), "lowest.attained"),
            (lambda norm, reader: reader.update(never_positive={"count": 1, "rows": [2]}), "never_positive"),
            (lambda norm, reader: reader.update(never_negative={"count": 1, "rows": [2]}), "never_negative"),
            (lambda norm, reader: reader.update(may_overflow=["float16"]), "may_overflow"),
            (lambda norm, reader: reader.update(rows=1), "rows"),
            (lambda norm, reader: norm["output"].update(largest=norm["output"]["largest"] * (1 - 1e-6)), "output"),
            (lambda norm, reader: norm["source"].update(kind="rms"), "lowest"),
        ):
            forged = copy.deepcopy(document)
            forge(forged["norms"][1], forged["norms"][1]["readers"][0])
            status, text = self.checked(forged, model)
            self.assertEqual(status, 1, wrong)
            self.assertIn(wrong, text)
        for end, factor in (("lowest", 1), ("highest", -1)):
            forged = copy.deepcopy(document)
            forged["logits"][end]["bound"] += factor * 1e-6
            status, text = self.checked(forged, model)
            self.assertEqual([line.split()[1] for line in text.splitlines() if line.startswith("failed")], [f"logits.{end}.bound:"])
            self.assertEqual(status, 1)

    def test_one_norm_alone(self):
        (norm,) = self.ranges(OWN_MODEL, "--only", "transformer.h.0.ln_1")["norms"]
        self.assertEqual(norm["name"], "transformer.h.0.ln_1")
        self.assertEqual(self.ranges(OWN_MODEL, "--threads", 1), self.ranges(OWN_MODEL, "--threads", 2))

    def test_other_input_is_refused_in_one_line(self):
        self.assertIn('has no norm "absent"', self.fails(3, "ranges", OWN_MODEL, "--only", "absent"))
        self.fails(3, "ranges", "absent")


if __name__ == "__main__":
    unittest.main()

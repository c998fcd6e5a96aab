"""A report: what its budget leaves out, what is unusual, and what the tokens of a text do beside it."""

import collections
import json
import math
import os
import subprocess
import unittest
from pathlib import Path

from command import CHECKPOINTS, OWN_MODEL, SANITIZED, SOURCE, CommandTest, fixture


def sparse(path, tensors):
    """Writes a safetensors file of zeros that take no room, {name: shape}, in bfloat16."""
    header, at = {}, 0
    for name, shape in tensors.items():
        size = 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    path.parent.mkdir()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + at)


def written(model):
    """The report of that model which the fixture of the browser tests has written."""
    page, = Path(os.environ["NORMSCOPE_REPORTS"]).glob(f"*/{model}.json")
    return json.loads(page.read_text())


class ReportTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.model = CHECKPOINTS / "llama2c_stories260K.safetensors"
        if not self.model.exists():
            self.skipTest(f"real data absent: {self.model}")

    def report(self, *options):
        found = self.json("report", self.model, "-o", "page.html", *options)
        self.assertTrue((self.folder / "page.html").exists())
        return found

    def test_the_vocabulary_can_be_left_out(self):
        found = self.report("--no-vocabulary")["vocabulary"]
        self.assertNotIn("reach", found)
        self.assertIn("left out on request", found["refused"])

    def test_a_budget_leaves_out_what_takes_longer_and_counts_it(self):
        whole = self.report()["vocabulary"]["reach"]
        self.assertEqual(whole["left_out"], {"tokens": 0, "leads": 0, "probabilities": 0})
        self.assertTrue(self.report()["complete"])
        in_no_time = self.report("--budget", "0")
        self.assertTrue(all("beyond the budget for heads" in head["refused"] for head in in_no_time["heads"]))
        none = in_no_time["vocabulary"]["reach"]
        self.assertFalse(in_no_time["complete"])
        self.assertEqual(in_no_time["left_out"]["heads"], len(in_no_time["heads"]))
        self.assertGreater(in_no_time["left_out"]["readers"], 0)
        last = self.ok("report", self.model, "-o", "page.html", "--budget", "0").splitlines()[-1]
        self.assertIn(f"beyond the budget: {len(in_no_time['heads'])} of {len(in_no_time['heads'])} heads", last)
        # The budget counts work: any number of threads leaves out the same.
        some = [self.report("--budget", "0.0005", "--threads", str(threads)) for threads in (1, 3)]
        self.assertFalse(some[0]["complete"])
        self.assertEqual(some[0]["left_out"], some[1]["left_out"])
        self.assertEqual(some[0]["heads"], some[1]["heads"])
        self.assertGreater(none["left_out"]["probabilities"], 0)
        self.assertEqual(none["reachable"] + none["left_out"]["tokens"], whole["reachable"])

    def test_causes_read_no_weights_beyond_the_budget(self):
        read = []
        for budget in ("1", "0"):
            found = self.json("report", SOURCE / "models/kjv_gpt", "-o", "page.html", "--budget", budget)
            causes = [cause for cause in found["causes"] if cause["coordinates"]]
            self.assertTrue(causes)
            read.append(sum(len(cause["readers"]) for cause in causes))
        self.assertGreater(read[0], 0)
        self.assertEqual(read[1], 0)

    def test_no_part_of_a_large_model_starts_that_takes_more_than_the_budget(self):
        """The shape of a Qwen 2 of 131,072 positions: a head alone takes longer, and the product of all tokens."""
        width, tokens = 768, 50257
        matrices = {f"self_attn.{part}_proj": (width, width) for part in "qkvo"} | {
            "mlp.gate_proj": (64, width), "mlp.up_proj": (64, width), "mlp.down_proj": (width, 64)}
        layer = {f"{name}.weight": shape for name, shape in matrices.items()} | {
            f"self_attn.{part}_proj.bias": (width,) for part in "qkv"} | {
            f"{name}_layernorm.weight": (width,) for name in ("input", "post_attention")}
        tensors = {"model.embed_tokens.weight": (tokens, width), "model.norm.weight": (width,)}
        sparse(self.folder / "large/model.safetensors", tensors | {f"model.layers.0.{name}": shape for name, shape in layer.items()})
        (self.folder / "large/config.json").write_text(json.dumps({
            "model_type": "qwen2", "hidden_size": width, "num_attention_heads": 12, "num_key_value_heads": 12, "num_hidden_layers": 1,
            "intermediate_size": 64, "vocab_size": tokens, "rms_norm_eps": 1e-6, "rope_theta": 1e6, "hidden_act": "silu",
            "max_position_embeddings": 131072, "tie_word_embeddings": True}))
        found = self.json("report", "large", "-o", "page.html", "--budget", "0.5")
        self.assertEqual(found["left_out"]["heads"], 12)
        self.assertEqual(found["left_out"]["tokens"], tokens)
        self.assertIn("more work than the limit allows", found["vocabulary"]["refused"])
        self.assertLess(found["left_out"]["readers"], sum(len(norm["readers"]) for norm in found["norms"]))

    def test_a_budget_for_what_is_left_out_is_refused(self):
        self.fails(2, "report", self.model, "--budget", "1", "--no-vocabulary")

    @unittest.skipIf(SANITIZED, "checked once, by the faster build")
    def test_the_verdict_and_the_causes_of_gpt2(self):
        found = written("gpt2_small_without_mlp")
        self.assertEqual(found["verdict"], "Three things are unusual beside 8 reference models: coordinate 138, coordinate "
                                           "266 and ln_f.")
        self.assertNotIn("GPT-2 small", found["references"])
        self.assertIn("GPT-2 medium", found["references"])
        self.assertEqual([cause["title"] for cause in found["causes"]], [
            "Coordinate 138 stands out in 5 of 25 norms, layers 4 to 8, read most by head 11.8",
            "Coordinate 266 is switched off in 2 of 25 norms, layer 3 and ln_f",
            "ln_f amplifies coordinate 496 to 13.9 times its median gain",
        ])
        largest = found["causes"][2]["numbers"][0]
        self.assertEqual((largest["text"], largest["usual"], largest["within"], largest["of"]),
                         ("13.9 times the norm's median", "at most 9.13", 7, 8))
        kinds = {found["findings"][index]["kind"] for cause in found["causes"] for index in cause["findings"]}
        self.assertLessEqual({"stretched_axis", "concentrated_image", "shared_outlier", "null_direction"}, kinds)
        for cause in found["causes"]:
            self.assertNotIn("/", cause["reproduce"].split(":")[0])

    def test_the_text_is_the_verdict_and_a_line_about_the_page(self):
        self.assertEqual(self.ok("report", self.model, "-o", "page.html").splitlines(), [
            "Nothing unusual beside 8 reference models.",
            "page.html: Llama, as llama2.c stores it, 11 norms, 5 findings",
        ])

    @unittest.skipIf(SANITIZED, "checked once, by the faster build")
    def test_nothing_is_unusual_about_every_model(self):
        reports = [json.loads(path.read_text()) for path in Path(os.environ["NORMSCOPE_REPORTS"]).glob("*/*.json")]
        self.assertGreater(len(reports), 8)
        told = collections.Counter(measure for found in reports for measure in
                                   {number["measure"] for cause in found["causes"] for number in cause["numbers"]})
        self.assertGreater(len(told), 3)
        for measure, count in told.items():
            self.assertLessEqual(2 * count, len(reports), f"{measure} is unusual about most models")
        for found in reports:
            for cause in found["causes"]:
                for number in cause["numbers"]:
                    large = next(one for one in found["measures"] if one["measure"] == number["measure"])["unusual"] == "large"
                    self.assertTrue(number["value"] > number["limit"] if large else number["value"] < number["limit"])

    @unittest.skipIf(SANITIZED, "checked once, by the faster build")
    def test_the_references_are_measured(self):
        done = subprocess.run([SOURCE / "scripts/references", "--check", os.environ["NORMSCOPE_REPORTS"]],
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class TextTest(CommandTest):
    def seen(self, model, *options):
        said = self.ok("report", model, "-o", "page.html", "--activations", "seen.json", "--json", "report.json", *options)
        self.assertIn('"schema":"normscope.activations/1"', (self.folder / "page.html").read_text())
        return said.splitlines()[-1], self.as_its_schema_says(json.loads((self.folder / "seen.json").read_text()))

    def test_the_tokens_of_a_text_do_what_trace_says(self):
        verse = "In the beginning God created the heaven and the earth."
        (self.folder / "verse.txt").write_text(verse)
        line, found = self.seen(SOURCE / "models/kjv_gpt", "--text", "verse.txt")
        self.ok("trace", SOURCE / "models/kjv_gpt", verse, "--activations", "traced.json")
        traced = json.loads((self.folder / "traced.json").read_text())
        self.assertEqual(found["norms"], traced["norms"])
        self.assertEqual(line, f"activations: 9 norms saw {found['norms'][0]['rows']} tokens of verse.txt")
        ranges = json.loads((self.folder / "report.json").read_text())["ranges"]["norms"]
        for norm, proved in zip(found["norms"], ranges, strict=True):
            self.assertEqual(norm["name"], proved["name"])
            self.assertLessEqual(norm["largest_output"], proved["output"]["largest"])
            self.assertGreater(norm["largest_output"], 0.1 * proved["output"]["largest"])
        self.assertEqual(len(found["in_model"]["heads"]), 16)
        self.assertGreater(found["in_model"]["next"]["tokens"], 0)

    def test_a_long_text_is_cut_into_contexts_and_by_work(self):
        ids = [7 * i % 28 for i in range(32)]
        tokens = lambda count: ("--tokens", ",".join(map(str, (ids * 5)[:count])))
        line, once = self.seen(OWN_MODEL, *tokens(32))
        self.assertEqual(line, "activations: 9 norms saw 32 tokens of --tokens")
        _, thrice = self.seen(OWN_MODEL, *tokens(96))
        for one, three in zip(once["norms"], thrice["norms"], strict=True):
            self.assertEqual((one["rows"], one["calls"], three["rows"], three["calls"]), (32, 1, 96, 3))
            self.assertAlmostEqual(one["sigma"]["mean"], three["sigma"]["mean"], delta=1e-12 * one["sigma"]["mean"])
        line, _ = self.seen(OWN_MODEL, *tokens(96), "--budget", "0")
        self.assertEqual(line, "activations: 9 norms saw 64 tokens of --tokens, its beginning")
        (self.folder / "long.txt").write_text("a" * 20000)
        line, _ = self.seen(OWN_MODEL, "--text", "long.txt", "--budget", "0.01")
        self.assertRegex(line, "^activations: 9 norms saw [0-9]+ tokens of long.txt, its beginning$")

    def test_texts_that_cannot_be_read_are_refused(self):
        for name, data in (("empty", b""), ("latin1", b"caf\xe9 au lait"), ("upper", b"Zebra"), ("fine", b"zebra")):
            (self.folder / name).write_bytes(data)
        fails = lambda status, model, *options: self.fails(status, "report", model, *options)
        self.assertIn("empty: the text is empty", fails(3, OWN_MODEL, "--text", "empty"))
        self.assertIn("latin1: is not UTF-8", fails(3, OWN_MODEL, "--text", "latin1"))
        self.assertIn('upper: the text has "Z", which is not in the vocabulary', fails(3, OWN_MODEL, "--text", "upper"))
        self.assertIn("absent", fails(3, OWN_MODEL, "--text", "absent"))
        self.assertIn("not modelled: the forward pass of BERT", fails(3, fixture("bert"), "--text", "fine"))
        self.assertIn("has no tokenizer beside it", fails(3, fixture("llama"), "--text", "fine"))
        self.assertIn("fine", fails(3, OWN_MODEL, "--text", "fine", "-o", "fine"))
        self.assertIn("--text", fails(2, OWN_MODEL, "--activations", "seen.json"))
        self.assertIn("--tokens", fails(2, OWN_MODEL, "--text", "fine", "--tokens", "1"))


if __name__ == "__main__":
    unittest.main()

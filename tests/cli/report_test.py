"""The budget of a report: tokens that it leaves out, and the page's note about them."""

import json
import os
import subprocess
import unittest
from pathlib import Path

from command import CHECKPOINTS, SANITIZED, SOURCE, CommandTest


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

    @unittest.skipIf(SANITIZED, "sanitizers take longer than the budget")
    def test_a_budget_leaves_out_what_takes_longer_and_counts_it(self):
        whole = self.report()["vocabulary"]["reach"]
        self.assertEqual(whole["left_out"], {"tokens": 0, "leads": 0, "probabilities": 0})
        in_no_time = self.report("--budget", "0")
        self.assertTrue(all("time for heads was over" in head["refused"] for head in in_no_time["heads"]))
        none = in_no_time["vocabulary"]["reach"]
        self.assertGreater(none["left_out"]["probabilities"], 0)
        self.assertEqual(none["reachable"] + none["left_out"]["tokens"], whole["reachable"])

    def test_a_budget_for_what_is_left_out_is_refused(self):
        self.fails(2, "report", self.model, "--budget", "1", "--no-vocabulary")

    def test_what_is_usual_stands_beside_the_values_and_behind_the_other_findings(self):
        found = self.json("report", CHECKPOINTS / "galileo_nano_encoder", "-o", "page.html")
        self.assertEqual(found["usual"]["family"], "ViT")
        self.assertEqual(len(found["usual"]["models"]), 3)
        usual = [finding["is_usual"] for finding in found["findings"]]
        self.assertIn(True, usual)
        self.assertEqual(usual, sorted(usual))
        for finding in found["findings"]:
            self.assertTrue(finding["usual"] or not finding["is_usual"], finding["kind"])
        alone = self.json("report", self.model, "-o", "page.html", "--no-vocabulary")
        self.assertEqual(len(alone["usual"]["models"]), 1)
        self.assertFalse(any(finding["is_usual"] for finding in alone["findings"]))
        # A single model's range says nothing about others.
        self.assertEqual({one["text"] for one in alone["usual"]["ranges"]}, {""})
        self.assertEqual({finding["usual"] for finding in alone["findings"]}, {None})

    @unittest.skipIf(SANITIZED, "checked once, by the faster build")
    def test_what_one_norm_in_twenty_has_is_a_finding_in_a_model_of_the_table_too(self):
        found = json.loads((Path(os.environ["NORMSCOPE_REPORTS"]) / "whole/gpt2_small_without_mlp.json").read_text())
        unusual = [finding for finding in found["findings"] if not finding["is_usual"]]
        for kind in ("stretched_axis", "concentrated_image", "condition_range", "null_direction", "image_change"):
            self.assertIn(kind, [finding["kind"] for finding in unusual])
        longest = [finding for finding in unusual if finding["kind"] == "stretched_axis"][0]
        self.assertIn("ln_f", longest["text"])
        self.assertIn("usual longest over median axis: ", longest["usual"])
        self.assertIn("90 % of the norms of 4 GPT-2 models", longest["usual"])

    @unittest.skipIf(SANITIZED, "checked once, by the faster build")
    def test_usual_values_are_what_the_models_give(self):
        done = subprocess.run([SOURCE / "scripts/usual", "--check", "--reports", os.environ["NORMSCOPE_REPORTS"]],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()

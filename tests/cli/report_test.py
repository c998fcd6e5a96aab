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

    def test_a_budget_for_what_is_left_out_is_refused(self):
        self.fails(2, "report", self.model, "--budget", "1", "--no-vocabulary")

    @unittest.skipIf(SANITIZED, "checked once, by the faster build")
    def test_the_extremes_of_gpt2_are_findings(self):
        found = json.loads((Path(os.environ["NORMSCOPE_REPORTS"]) / "whole/gpt2_small_without_mlp.json").read_text())
        kinds = {finding["kind"] for finding in found["findings"]}
        self.assertLessEqual({"stretched_axis", "concentrated_image", "condition_range", "null_direction", "image_change"},
                             kinds)
        longest = next(finding for finding in found["findings"] if finding["kind"] == "stretched_axis")
        self.assertIn("ln_f", longest["text"])


if __name__ == "__main__":
    unittest.main()

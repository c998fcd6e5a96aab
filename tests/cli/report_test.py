"""The budget of a report: tokens that it leaves out, and the page's note about them."""

import collections
import json
import os
import subprocess
import unittest
from pathlib import Path

from command import CHECKPOINTS, SANITIZED, SOURCE, CommandTest


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


if __name__ == "__main__":
    unittest.main()

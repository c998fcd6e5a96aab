"""bench/int8 at its small size: the order of its arms, which docs/int8.md reports."""

import json
import subprocess
import sys
import unittest
from statistics import mean

from command import SANITIZED, SOURCE, CommandTest


@unittest.skipIf(SANITIZED, "runs the command on models of all other tests")
class Int8(CommandTest):
    def test_rewrites_that_even_features_lower_the_loss_in_int8(self):
        subprocess.run([sys.executable, SOURCE / "bench/int8/run.py", "--quick", "--json", "int8.json"], cwd=self.folder,
                       check=True, capture_output=True)
        results = json.loads((self.folder / "int8.json").read_text())
        self.assertIn("kjv_gpt", results)
        for model, result in results.items():
            excess = {arm: mean(row["proved"]) for arm, row in result["arms"].items()}
            with self.subTest(model, excess=excess):
                self.assertLess(excess["--fold gains"], 0.7 * excess["as it is"])
                self.assertLess(excess["--fold gains --rotate random:1"], 0.7 * excess["as it is"])
                self.assertLess(excess["--migrate"], excess["as it is"])
                self.assertLess(excess["as it is"], excess["powers dealt at random"])


if __name__ == "__main__":
    unittest.main()

"""normscope lab: the list, a run with its figure, bad input."""

import json
import unittest

from command import CommandTest


class Lab(CommandTest):
    def test_every_experiment_of_the_list_runs_and_holds(self):
        listed = self.json("lab", "list")["experiments"]
        self.assertEqual([entry["name"] for entry in listed], ["stretch", "fold", "surface"])
        for entry in listed:
            got = self.json("lab", "run", entry["name"], "-o", "figure.vl.json")["experiments"]
            self.assertTrue(got[0]["holds"])
            self.assertEqual(got[0]["claim"], entry["claim"])
            self.assertIn("vega-lite", json.loads((self.folder / "figure.vl.json").read_text())["$schema"])

    def test_people_read_the_claim_and_the_numbers(self):
        said = self.ok("lab", "run", "fold")
        self.assertIn("least x at t = 2: 0.8660", said)
        self.assertTrue(said.endswith("holds\n"))
        self.assertIn("surface", self.ok("lab", "list"))

    def test_bad_input(self):
        self.assertIn("is no experiment", self.fails(3, "lab", "run", "unfold"))
        self.assertIn("nowhere", self.fails(3, "lab", "run", "fold", "-o", "nowhere/f.json"))
        self.assertIn("would replace", self.fails(3, "lab", "run", "fold", "-o", "a", "--json", "a"))
        self.fails(2, "lab")
        self.fails(2, "lab", "run")


if __name__ == "__main__":
    unittest.main()

"""Writes results, changes them, and checks them with `normscope verify`."""

import copy
import json

from command import CommandTest


class ResultTest(CommandTest):
    def result(self, *arguments):
        """The document of a command, which also stays in result.json."""
        document = self.json(*arguments)
        (self.folder / "result.json").write_text(json.dumps(document))
        return document

    def verified(self, *inputs, status=0):
        """The output of `normscope verify` for result.json."""
        done = self.run_command("verify", "result.json", *inputs, "--json", "verified.json", "-q")
        self.assertEqual((done.returncode, done.stderr), (status, ""))
        got = json.loads((self.folder / "verified.json").read_text())
        self.assertEqual(bool(got["failed"]), status == 1)
        return got

    def passes(self, *inputs):
        got = self.json("verify", "result.json", *inputs)
        self.assertEqual(got["failed"], [])
        self.assertGreater(got["checked"], 0)
        return got

    def caught(self, document, change, inputs=()):
        """The reasons why a changed result fails."""
        forged = copy.deepcopy(document)
        change(forged)
        (self.folder / "result.json").write_text(json.dumps(forged))
        got = self.verified(*inputs, status=1)
        return " ".join(finding["item"] + " " + finding["reason"] for finding in got["failed"])

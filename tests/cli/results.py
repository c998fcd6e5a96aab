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

    def confirmed(self, *words):
        """What `normscope verify` prints of a result of which no statement fails; 4: some have no proof."""
        done = self.run_command("verify", *words)
        self.assertIn(done.returncode, (0, 4), done.stderr)
        self.assertEqual(done.returncode == 4, ", 0 not proved" not in done.stdout)
        return done.stdout

    def passes(self, *inputs):
        done = self.run_command("verify", "result.json", *inputs, "--json", "verified.json", "-q")
        got = json.loads((self.folder / "verified.json").read_text())
        self.assertEqual(got["failed"], [])
        self.assertEqual(done.returncode, 4 if got["not_checkable"] else 0)
        self.assertGreater(got["checked"], 0)
        return got

    def caught(self, document, change, inputs=()):
        """The reasons why a changed result fails."""
        forged = copy.deepcopy(document)
        change(forged)
        (self.folder / "result.json").write_text(json.dumps(forged))
        got = self.verified(*inputs, status=1)
        return " ".join(finding["item"] + " " + finding["reason"] for finding in got["failed"])

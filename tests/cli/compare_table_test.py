"""The table of docs/compare.md is what the command says now, and a wrong cell would be seen."""

import subprocess
import sys
import unittest

from command import COMMAND, SOURCE, CommandTest


class Table(CommandTest):
    def check(self, command, *cases):
        """The exit status and the cells that are wrong or not those of the page."""
        done = subprocess.run([sys.executable, "-B", SOURCE / "scripts/compare_table", "--command", command, "--check", *cases],
                              capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()

    def test_rows_are_those_of_the_page(self):
        """A dense and a mixture model of RMSNorms, with windows and caps, also in TransformerLens' names; one of LayerNorms, tied, with biases; an encoder."""
        self.assertEqual(self.check(COMMAND, "gemma2", "mistral", "mixtral", "gpt2", "bert"), (0, []))

    def test_a_command_that_accepts_or_refuses_all_is_caught(self):
        for agreement, columns in (("same", {"eps", "head zero", "Q8_0 block"}), ("different", {"heads", "BF16", "GGUF Q8_0"})):
            fake = self.folder / agreement
            fake.write_text(f"""#!/bin/sh
[ "$1" = compare ] || exit 3
echo '{{"agreement": "{agreement}", "findings": [], "not_compared": []}}'
""")
            fake.chmod(0o755)
            status, cells = self.check(fake, "llama")
            wrong = {cell.split(" | ")[1] for cell in cells if " | WRONG: " in cell}
            self.assertEqual((status, columns - wrong), (1, set()), cells)


if __name__ == "__main__":
    unittest.main()

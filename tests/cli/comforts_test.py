"""Output made from the parser: help with examples, suggestions, completions, the manual page, the site's reference."""

import os
import re
import shlex
import shutil
import subprocess
import unittest
from pathlib import Path

import numpy as np

from command import COMMAND, OWN_MODEL, SANITIZED, SOURCE, CommandTest, safetensors

#: Runs until it is stopped; explore_test.py runs its examples.
SERVES = {"explore"}
#: Its help comes from another program, which not every build has.
ELSEWHERE = {"lab"}


class Comforts(CommandTest):
    def nested(self):
        """Subcommands of subcommands, as pairs."""
        return [(name, below) for name in self.subcommands() if name not in ELSEWHERE | {"help"}
                for below in self.subcommands(name)]

    def options(self, *subcommand):
        return re.findall(r"^  (?:-\w,)?(--[\w-]+)", self.ok(*subcommand, "--help"), re.MULTILINE)

    def examples(self, subcommand):
        text = self.ok(subcommand, "--help").partition("Examples:\n")[2]
        return [line.strip() for line in text.splitlines()]

    def environment(self):
        return {**os.environ, "PATH": f"{Path(COMMAND).parent}:/usr/bin:/bin"}


class Help(Comforts):
    def test_help_of_a_subcommand_by_either_way(self):
        for name in self.subcommands():
            if name not in ELSEWHERE | {"help"}:
                self.assertEqual(self.ok("help", name), self.ok(name, "--help"))
        self.assertEqual(self.ok("help"), self.ok("--help"))
        self.assertEqual(self.ok(), self.ok("--help"))
        # Where the lab's program is not built, its subcommands are listed all the same.
        for word in ("list", "run", "show"):
            self.assertRegex(self.ok("help", "lab"), rf"(?m)^  {word}\b")
        self.assertIn('unknown subcommand "reprot"; did you mean report?', self.fails(2, "help", "reprot"))

    def test_help_is_80_columns_wide_and_shows_shared_options_last(self):
        alone = [(name,) for name in self.subcommands() if name not in ELSEWHERE | {"help"}]
        for words in [(), *alone, *self.nested()]:
            text = self.ok(*words, "--help").partition("Examples:\n")[0]
            for line in text.splitlines():
                self.assertLessEqual(len(line), 80, words)
            options = re.findall(r"^  (?:-\w,)?(--[\w-]+)", text, re.MULTILINE)
            shared = [option for option in ("--json", "--threads", "--quiet", "--help") if option in options]
            self.assertEqual(options[len(options) - len(shared):], shared, words)

    def test_an_option_means_the_same_everywhere(self):
        alone = [(name,) for name in self.subcommands() if name not in ELSEWHERE | {"help"}]
        types = {}
        for words in [*alone, *self.nested()]:
            for option, of_type in re.findall(r"^  (?:-\w,)?(--[\w-]+)(?: (\S+))?", self.ok(*words, "--help"), re.MULTILINE):
                if option not in ("--output", "--groups"):  # what is written, and whether a list is taken, differ
                    self.assertEqual(types.setdefault(option, of_type), of_type, (words, option))

    def test_subcommands_of_subcommands_have_examples(self):
        nested = self.nested()
        self.assertTrue(nested)
        for name, below in nested:
            text = self.ok(name, below, "--help").partition("Examples:\n")[2]
            self.assertIn(f"normscope {name} {below} ", text)

    @unittest.skipIf(SANITIZED, "the subcommands' own tests run them there")
    def test_every_example_runs(self):
        (self.folder / "models").symlink_to(SOURCE / "models")
        for name in self.subcommands():
            if name in ELSEWHERE | {"help"}:
                continue
            examples = self.examples(name)
            self.assertTrue(1 <= len(examples) <= 3, f"{name}: {examples}")
            self.assertTrue(any(f"normscope {name}" in example for example in examples), name)
            for example in () if name in SERVES else examples:
                with self.subTest(example):
                    done = subprocess.run(["bash", "-c", example], cwd=self.folder, env=self.environment(), text=True,
                                          capture_output=True)
                    self.assertEqual((done.returncode, done.stderr), (0, ""))
            for path in self.folder.iterdir():
                if path.name != "models":
                    shutil.rmtree(path) if path.is_dir() else path.unlink()


class Suggestions(Comforts):
    def test_subcommands(self):
        self.assertEqual(self.fails(2, "reprot", "x"),
                         'normscope: unknown subcommand "reprot"; did you mean report? (see normscope --help)\n')
        self.assertEqual(self.fails(2, "fold"), 'normscope: unknown subcommand "fold" (see normscope --help)\n')
        self.assertIn('unknown subcommand "verfy"; did you mean verify?', self.fails(2, "signature", "verfy", "x"))
        for name in ("build", "train", "run", "count"):
            self.assertIn(f'unknown subcommand "{name}"; did you mean nets {name}?', self.fails(2, name, "x"))

    def test_options(self):
        self.assertIn("did you mean --threads?", self.fails(2, "report", OWN_MODEL, "--treads", "2"))
        self.assertIn("did you mean --threads?", self.fails(2, "report", OWN_MODEL, "--thread=2"))
        self.assertNotIn("did you mean", self.fails(2, "report", OWN_MODEL, "--frobnicate"))
        self.assertIn("did you mean --rank?", self.fails(2, "signature", "extract", "x.npy", "-o", "e", "--rnak", "2"))

    def test_tensors_members_and_norms(self):
        gain = f"{OWN_MODEL}:transformer.h.0.ln_1.wieght"
        self.assertTrue(self.fails(3, "geometry", "--gain", gain).endswith(
            'has no "transformer.h.0.ln_1.wieght"; did you mean "transformer.h.0.ln_1.weight"?\n'))
        self.assertIn('did you mean "transformer.ln_f.weight"?',
                      self.fails(3, "geometry", "--gain", f"{OWN_MODEL}:ln_f.weight"))
        self.assertIn("tensors: ", self.fails(3, "geometry", "--gain", f"{OWN_MODEL}:nothing"))
        np.savez(self.folder / "a.npz", keys=np.eye(3), labels=np.arange(3))
        self.assertIn('has no "kyes"; did you mean "keys"?', self.fails(3, "select", "a.npz:kyes"))
        self.assertIn('did you mean "transformer.h.0.ln_2"?',
                      self.fails(3, "ranges", OWN_MODEL, "--only", "h.0.ln_2"))

    def test_names_cannot_control_the_terminal(self):
        safetensors(self.folder / "m.safetensors", {"gain\x1b[31m": np.ones(4, np.float32)})
        for said in (self.fails(3, "geometry", "--gain", "m.safetensors:gain\x1b[32m"), self.fails(2, "re\x1bport")):
            self.assertNotIn("\x1b", said)


class MadeFromTheParser(Comforts):
    """Completions and the manual page."""

    def test_they_name_every_subcommand_and_option(self):
        texts = {shell: self.ok("completion", shell) for shell in ("bash", "zsh", "fish")}
        texts["man"] = self.ok("manual").replace("\\-", "-")
        texts["markdown"] = self.ok("manual", "markdown").replace("\\_", "_")
        for kind, text in texts.items():
            for name in self.subcommands():
                self.assertRegex(text, rf"\b{name}\b", kind)
                for option in () if name in ELSEWHERE | {"help"} else self.options(name):
                    shown = f"-l {option[2:]}" if kind == "fish" else option
                    self.assertRegex(text, rf"{re.escape(shown)}(?![\w-])", f"{kind}: {name}")

    def test_they_name_subcommands_of_subcommands(self):
        self.assertIn(("signature", "verify"), self.nested())
        fish, manual = self.ok("completion", "fish"), self.ok("manual").replace("\\-", "-")
        for group, name in self.nested():
            self.assertIn(f".SS {group} {name}\n", manual)
            for option in self.options(group, name):
                self.assertRegex(fish, rf"__normscope_runs {group} {name}' .*-l {option[2:]}(?![\w-])")
                self.assertIn(option, self.completed("normscope", group, name, option))
        for group in {group for group, _ in self.nested()}:
            names = [name for of, name in self.nested() if of == group]
            self.assertEqual(self.completed("normscope", group, ""), [*names, "-h", "--help"])
        self.assertEqual(self.completed("normscope", "signature", "verify", "--dtype", "bf"), ["bfloat16"])
        self.assertEqual(self.completed("normscope", "signature", "verify", "mod"), [])
        self.assertEqual(self.completed("normscope", "lab", "sh"), ["show"])
        if shutil.which("fish"):
            self.assertEqual(self.completed_by_fish("normscope signature ver"), ["verify"])
            self.assertEqual(self.completed_by_fish("normscope signature verify --least"), ["--least-mean-square"])
            self.assertEqual(self.completed_by_fish("normscope lab sh"), ["show"])

    def completed_by_fish(self, line):
        done = subprocess.run(["fish", "-c", f"normscope completion fish | source; complete -C '{line}'"],
                              cwd=self.folder, env={**self.environment(), "HOME": str(self.folder)}, text=True,
                              capture_output=True, check=True)
        return [offer.split("\t")[0].rstrip("=") for offer in done.stdout.splitlines()]

    def completed(self, *words):
        """The completions that bash offers for the last of the words."""
        line = " ".join(shlex.quote(word) for word in words)
        script = (f"source <(normscope completion bash); COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; "
                  f'compopt() {{ :; }}; _normscope; printf "%s\\n" "${{COMPREPLY[@]}}"')
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, env=self.environment(), text=True,
                              capture_output=True, check=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_bash_completes(self):
        self.assertEqual(self.completed("normscope", "sel"), ["select"])
        self.assertEqual(sorted(set(self.completed("normscope", "")) - {"--help", "--version"}),
                         sorted(self.subcommands()))
        self.assertEqual(self.completed("normscope", "geometry", "--sim"), ["--similar-to"])
        self.assertEqual(self.completed("normscope", "report", "--th"), ["--threads"])
        self.assertEqual(self.completed("normscope", "geometry", "--norm", "l"), ["layer"])
        self.assertEqual(self.completed("normscope", "geometry", "--norm", "=", "l"), ["layer"])
        self.assertEqual(self.completed("normscope", "geometry", "--norm", "="),
                         self.completed("normscope", "geometry", "--norm", ""))
        self.assertEqual(self.completed("normscope", "help", "hea"), ["heads"])
        self.assertEqual(self.completed("normscope", "completion", "f"), ["fish"])
        for files in (["report", "mod"], ["report", "-o", "r"], ["geometry", "--eps", ""]):
            self.assertEqual(self.completed("normscope", *files), [], "files are the shell's own to complete")

    def test_the_shells_and_roff_accept_them(self):
        for shell in ("bash", "zsh", "fish"):
            if shutil.which(shell):
                (self.folder / shell).write_text(self.ok("completion", shell))
                done = subprocess.run([shell, "-n", self.folder / shell], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), shell)
        if shutil.which("man"):
            (self.folder / "normscope.1").write_text(self.ok("manual"))
            done = subprocess.run(["man", "--warnings", "-l", "normscope.1"], cwd=self.folder, capture_output=True,
                                  text=True, env={**self.environment(), "LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("normscope report MODEL", done.stdout)

    def test_they_are_written_to_files(self):
        self.assertEqual(self.ok("completion", "bash", "-o", "c"), "")
        self.assertEqual((self.folder / "c").read_text(), self.ok("completion", "bash"))
        self.fails(3, "manual", "-o", "no/normscope.1")


if __name__ == "__main__":
    unittest.main()

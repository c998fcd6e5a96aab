"""Inputs that change while they are read, outputs that lead into them, and numbers that options refuse."""

import os
import re
import select
import shutil
import subprocess
import unittest

import numpy as np

from command import COMMAND, OWN_MODEL, CommandTest, fixture, safetensors


class ChangingInputs(CommandTest):
    def start(self, *arguments):
        process = subprocess.Popen([COMMAND, *arguments], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   encoding="utf-8")
        self.addCleanup(process.kill)
        return process

    def pipe(self, name):
        """A pipe that a command can write to at once; a command that ends early ends it, too."""
        os.mkfifo(self.folder / name)
        pipe = os.fdopen(os.open(self.folder / name, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0)
        self.addCleanup(pipe.close)
        return pipe

    @staticmethod
    def wait_for_output(pipe):
        """Until the command has written to the pipe, which holds less than all that it has to say."""
        select.select([pipe], [], [], 60)
        os.set_blocking(pipe.fileno(), True)

    def report_while(self, change):
        """What `report` says if its input changes before the page, a pipe, is read."""
        shutil.rmtree(self.folder / "m", ignore_errors=True)
        shutil.copytree(OWN_MODEL, self.folder / "m")
        for name in ("page.html", "r.json"):
            (self.folder / name).unlink(missing_ok=True)
        page = self.pipe("page.html")
        process = self.start("report", "m", "-o", "page.html", "--json", "r.json")
        self.wait_for_output(page)
        change(self.folder / "m/model.safetensors")
        page.read()
        said = process.communicate(timeout=120)[1]
        return process.returncode, said, (self.folder / "r.json").exists()

    def test_a_result_is_not_written_of_a_file_that_changed(self):
        def overwrite(file):
            with open(file, "r+b") as opened:
                opened.seek(-4, os.SEEK_END)
                opened.write(b"abcd")

        def replace(file):
            copy = shutil.copy(file, self.folder / "copy")
            os.replace(copy, file)

        for change, what in ((overwrite, "changed"), (replace, "replaced"), (os.unlink, "removed")):
            status, said, is_written = self.report_while(change)
            self.assertEqual((status, is_written), (3, False), said)
            self.assertIn(f"m/model.safetensors: was {what} since it was opened", said)
            self.assertEqual(said.count("\n"), 1)
        self.assertEqual(self.report_while(lambda file: None), (0, "", True))

    def test_a_mapped_file_that_shrinks_is_named(self):
        np.save(self.folder / "x.npy", np.ones((1 << 20, 8)))
        output = self.pipe("y.npy")
        process = self.start("apply", "x.npy", "-o", "y.npy")
        self.wait_for_output(output)
        os.truncate(self.folder / "x.npy", 4096)
        output.read()
        self.assertEqual(process.communicate(timeout=120)[1], "normscope: x.npy was truncated while it was being read\n")
        self.assertEqual(process.returncode, 3)

    def test_an_array_may_be_written_in_place(self):
        np.save(self.folder / "x.npy", np.arange(12.0).reshape(3, 4))
        self.assertIn("x.npy: 3 rows", self.ok("apply", "x.npy", "-o", "x.npy"))


class Places(CommandTest):
    def test_a_mount_of_the_input_is_the_input(self):
        shutil.copytree(fixture("gpt2"), self.folder / "m")
        (self.folder / "b").mkdir()
        before = sorted(os.listdir(self.folder / "m"))
        for output in ("b", "b/sub", "b/new/sub"):
            script = f"mount --bind m b || exit 77; exec '{COMMAND}' rewrite m -o {output} --fold gains"
            done = subprocess.run(["unshare", "-Urm", "sh", "-c", script], cwd=self.folder, capture_output=True, text=True,
                                  timeout=120)
            if done.returncode in (1, 77):
                self.skipTest("no mounts here: " + done.stderr)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertRegex(done.stderr, f"{output}: (is in the input|would overwrite m)")
            self.assertEqual(sorted(os.listdir(self.folder / "m")), before)

    def test_names_that_could_look_like_others_are_escaped(self):
        name = "ln\u202e1\u2028.\u200bweight"
        safetensors(self.folder / "m.safetensors", {name: np.ones(4, np.float32)})
        text = self.ok("inspect", "m.safetensors")
        self.assertIn("ln\\u202e1\\u2028.\\u200bweight", text)
        self.assertNotRegex(text, "[\u200b\u2028\u202e]")
        self.assertIn("\\u202e", self.fails(3, "apply", "m.safetensors:x\u202e"))


class Numbers(CommandTest):
    VALUES = ("0", "-1", "1e308", "1e999", "nan", "", "-0.5", "99999999999999999999", "1e-400", "0x", "3,0")

    def commands(self):
        """Subcommands, and subcommands of these."""
        top = [name for name in self.subcommands() if name not in ("help", "lab", "explore")]
        return [*((name,) for name in top), *((name, below) for name in top for below in self.subcommands(name))]

    def test_options_refuse_what_is_no_number_of_theirs(self):
        """In one line that a reader can take in, whatever else the command lacks."""
        tried = 0
        for command in self.commands():
            for option, kind in re.findall(r"^  (?:-\w,)?(-{1,2}[\w-]+) ([A-Z]\S*)", self.ok(*command, "--help"), re.MULTILINE):
                if not re.fullmatch(r"[A-Z]|[A-Z]\d,.*|S|SECONDS|X|N|EPS", kind):
                    continue
                for value in self.VALUES:
                    done = self.run_command(*command, f"{option}={value}", "-q")
                    tried += 1
                    self.assertIn(done.returncode, (0, 1, 2, 3), (command, option, value, done.stderr))
                    self.assertLessEqual(len(done.stderr), 400, (command, option, value))
                    self.assertNotRegex(done.stderr, r"\d{25}", (command, option, value))
                    if done.returncode == 2:
                        self.assertEqual(done.stderr.count("\n"), 1, (command, option, value, done.stderr))
        self.assertGreater(tried, 300)

    def test_numbers_of_groups(self):
        for groups in ("0", "4,0", "-1", "nan", ""):
            message = self.fails(2, "curvature", "--width", 8, "--groups", groups)
            self.assertIn("--groups", message)
            self.assertLess(len(message), 120)


if __name__ == "__main__":
    unittest.main()

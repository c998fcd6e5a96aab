"""What a shell, a disk and a limit do to a command: a line, a documented status, and nothing lost."""

import json
import os
import resource
import shutil
import signal
import subprocess
import time
import unittest
import zipfile

import numpy as np

from command import COMMAND, OWN_MODEL, SANITIZED, CommandTest
from member_test import state_dict


class Streams(CommandTest):
    """Standard streams that are closed, full, or readers that are gone."""

    def test_errors_have_their_status_whatever_standard_error_is(self):
        for redirection in ("2>&-", "2>/dev/full", "2>&- >&-", "2>/dev/full >/dev/full"):
            for words, status in (("inspect none.safetensors", 3), ("inspect", 2), ("geometry --norm none", 2)):
                with self.subTest(redirection + " " + words):
                    done = subprocess.run(f"{COMMAND} {words} {redirection}", shell=True, executable="/bin/bash",
                                          cwd=self.folder, timeout=60)
                    self.assertEqual(done.returncode, status)

    def test_progress_and_help_survive_a_full_standard_error(self):
        for words in ("--help", "report --help", "--version", f"report {OWN_MODEL} -o r.html --quiet"):
            with self.subTest(words):
                done = subprocess.run(f"{COMMAND} {words} 2>&- ", shell=True, executable="/bin/bash", cwd=self.folder,
                                      stdout=subprocess.DEVNULL, timeout=120)
                self.assertEqual(done.returncode, 0)

    def test_help_that_cannot_be_printed_is_an_error(self):
        for words in ("--help", "--version", "report --help"):
            with self.subTest(words):
                done = subprocess.run(f"{COMMAND} {words} >/dev/full", shell=True, executable="/bin/bash",
                                      cwd=self.folder, stderr=subprocess.PIPE, text=True, timeout=60)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (3, 1), done.stderr)


class Signals(CommandTest):
    def training(self, *ignored):
        def ignore():
            for number in ignored:
                signal.signal(number, signal.SIG_IGN)
        process = subprocess.Popen([COMMAND, "nets", "train", "xor", "--steps", "1000000", "--resume", "state"], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=ignore)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 60
        while not (self.folder / "state").exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        return process

    def test_signals_that_are_ignored_stay_so(self):
        process = self.training(signal.SIGHUP, signal.SIGINT)
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGINT)
        with self.assertRaises(subprocess.TimeoutExpired):
            process.wait(timeout=1)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(timeout=60), 130)

    def test_a_limit_on_the_size_of_files_is_a_failed_write(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        for words, status in ((["report", OWN_MODEL, "-o", "r.html"], 3), (["geometry", "--width", 900, "--json", "g.json",
                                                                         "--axes", 3], 3)):
            done = self.run_command(*words, preexec_fn=limit)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (status, 1), done.stderr)
            self.assertIn("File too large", done.stderr)
            self.assertEqual(list(self.folder.iterdir()), [])


class Folders(CommandTest):
    def test_a_deleted_working_directory(self):
        np.save(self.folder / "x.npy", np.ones((2, 3)))
        gone = self.folder / "gone"
        script = f"mkdir {gone}; cd {gone}; rmdir {gone}; exec {COMMAND} "
        run = lambda words: subprocess.run(["/bin/bash", "-c", script + words], capture_output=True, text=True, timeout=120)
        done = run("report m -o r.html")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (3, 1), done.stderr)
        # What has an absolute name is not concerned.
        done = run(f"report {OWN_MODEL} -o {self.folder}/r.html --json {self.folder}/r.json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = run(f"apply {self.folder}/x.npy -o {self.folder}/y.npy")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_no_output_replaces_a_file_of_the_model(self):
        shutil.copytree(OWN_MODEL, self.folder / "m")
        (self.folder / "m/modeling.py").write_text("# code\n")
        (self.folder / "m/tokenizer.model").write_bytes(b"\0\1")
        before = {path: path.read_bytes() for path in (self.folder / "m").iterdir()}
        for name in sorted(path.name for path in before):
            with self.subTest(name):
                self.assertIn("would overwrite", self.fails(3, "inspect", "m", "--json", f"m/../m/{name}"))
        for words in (["report", "m", "-o"], ["compare", "m", "m", "-o"], ["apply", "m:transformer.ln_f.weight", "-o"],
                      ["geometry", "--gain", "m:transformer.ln_f.weight", "--json"]):
            with self.subTest(words):
                self.assertIn("would overwrite", self.fails(3, *words, "m/vocab.json"))
        self.assertEqual({path: path.read_bytes() for path in (self.folder / "m").iterdir()}, before)
        # Results may lie there, and be replaced by newer ones.
        for _ in range(2):
            self.ok("report", "m", "-o", "m/report.html", "--json", "m/report.json", "--quiet")

    def test_two_outputs_appear_together(self):
        np.save(self.folder / "x.npy", np.random.default_rng(1).normal(size=(6, 4)))
        self.run_command("nets", "build", "x.npy", "--random-labels", 2, "-o", "net.safetensors")
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
        done = self.run_command("nets", "run", "net.safetensors", "x.npy", "-o", "labels.npy", "--trace", "trace.npy",
                                preexec_fn=limit)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), ["net.safetensors", "x.npy"])
        # The document cannot be written, so neither is the array.
        done = subprocess.run(f"{COMMAND} apply x.npy -o y.npy --json - >/dev/full", shell=True, executable="/bin/bash",
                              cwd=self.folder, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertFalse((self.folder / "y.npy").exists())


class Arguments(CommandTest):
    def test_numbers_are_checked_before_anything_is_allocated(self):
        np.save(self.folder / "x.npy", np.ones((2, 3)))
        for words in (["curvature", "--rows", "1e9", "--width", 8], ["curvature", "--rows", 10**9, "--width", 8],
                      ["curvature", "--rows", 10**7, "--width", 10**7], ["curvature", "--width", -1],
                      ["curvature", "--width", 0], ["geometry", "--width", -1], ["nets", "train", "xor", "--rows", "1e9"],
                      ["nets", "train", "xor", "--width", -1], ["nets", "train", "xor", "--lr", "nan"], ["nets", "train", "xor", "--eps", "nan"],
                      ["nets", "train", "xor", "--seed", -1], ["nets", "count", "--train", "--lr", "nan"],
                      ["select", "x.npy", "--tolerance", "nan"], ["select", "x.npy", "--rank-tolerance", "nan"],
                      ["separate", "x.npy", "x.npy", "--tolerance", "nan"], ["reach", "none", "--tolerance", "nan"],
                      ["geometry", "--width", 3, "--eps", "nan"], ["geometry", "--gain", "1,2", "--gain-offset", "nan"],
                      ["heads", "none", "--context", -1]):
            with self.subTest(words):
                self.fails(2, *words)

    def test_names_of_outputs_are_names(self):
        np.save(self.folder / "x.npy", np.ones((2, 3)))
        for words in (["geometry", "--width", 3, "--json", ""], ["report", OWN_MODEL, "-o", ""],
                      ["report", OWN_MODEL, "-o", "-"], ["apply", "x.npy", "-o", "-"],
                      ["nets", "build", "x.npy", "--random-labels", 2, "-o", "-"], ["select", "x.npy", "--certificates", ""],
                      ["nets", "train", "xor", "--resume", "-"], ["curvature", "x.npy", "--rows-out", "-"],
                      ["rewrite", OWN_MODEL, "-o", "-"]):
            with self.subTest(words):
                self.fails(2, *words)

    def test_messages_are_one_line_of_bounded_length(self):
        shape = list(range(1, 3000))
        header = json.dumps({"w" * 5000: {"dtype": "F32", "shape": shape, "data_offsets": [0, 4]}}).encode()
        (self.folder / "m.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))
        header = json.dumps({"w": {"dtype": "F32", "shape": [2, *[1] * 3000, 2], "data_offsets": [0, 16]}}).encode()
        (self.folder / "deep.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(16))
        long = "x" * 3000
        for status, words in ((3, ["inspect", "m.safetensors"]), (3, ["inspect", long]), (2, ["geometry", "--" + long]),
                              (2, ["geometry", "--width", long]), (3, ["geometry", "--gain", "deep.safetensors:w"])):
            with self.subTest([str(word)[:20] for word in words]):
                done = self.run_command(*words)
                self.assertEqual((done.returncode, done.stderr.count("\n")), (status, 1), done.stderr)
                self.assertLess(len(done.stderr.encode()), 1100)


class Files(CommandTest):
    def test_a_configuration_of_many_values_takes_no_quadratic_time(self):
        shutil.copytree(OWN_MODEL, self.folder / "m")
        config = json.loads((self.folder / "m/config.json").read_text())
        config["x"] = [{} for _ in range(300_000)]
        (self.folder / "m/config.json").write_text(json.dumps(config))
        self.ok("inspect", "m")  # 98 seconds for 900 KB, before

    def test_numbers_that_json_does_not_have(self):
        shutil.copytree(OWN_MODEL, self.folder / "m")
        text = (self.folder / "m/config.json").read_text().rstrip()
        # As Mamba 2 states it, in a field that this model does not read.
        config = text[:-1] + ', "time_step_limit": [0.0, Infinity], "note": "NaN", "unused": NaN}'
        self.assertEqual(json.loads(config)["time_step_limit"][1], float("inf"))
        (self.folder / "m/config.json").write_text(config)
        self.ok("inspect", "m")
        (self.folder / "m/config.json").write_text(text[:-1] + ', "layer_norm_epsilon": NaN}')
        self.assertIn('"layer_norm_epsilon" is NaN, expected a finite number', self.fails(3, "inspect", "m"))
        for wrong in ("NaN5", "5NaN", "nan", "--Infinity", "+Infinity", "Infinity.0"):
            (self.folder / "m/config.json").write_text(text[:-1] + f', "x": {wrong}}}')
            self.assertIn("config.json", self.fails(3, "inspect", "m"))

    def test_inspect_compares_the_checksums_of_a_pytorch_file(self):
        with zipfile.ZipFile(self.folder / "m.pt", "w") as archive:
            archive.writestr("m/data.pkl", b"\x80\2" + state_dict("0", 4) + b".")
            archive.writestr("m/data/0", np.ones(4, np.float32).tobytes())
        self.ok("inspect", "m.pt")
        content = (self.folder / "m.pt").read_bytes()
        weights = np.ones(4, np.float32).tobytes()
        self.assertEqual(content.count(weights), 1)
        (self.folder / "m.pt").write_bytes(content.replace(weights, np.full(4, 2, np.float32).tobytes()))
        self.assertIn('"m/data/0": CRC-32', self.fails(3, "inspect", "m.pt"))


@unittest.skipIf(SANITIZED, "a sanitizer's own memory exceeds the limit")
class Memory(CommandTest):
    def test_every_limit_ends_with_a_line(self):
        np.save(self.folder / "x.npy", np.random.default_rng(1).normal(size=(60, 8)))
        # With less than the program's own size the kernel ends it while it starts.
        for megabytes in range(2 + (os.stat(COMMAND).st_size >> 20), 400, 14):
            def limit(size=megabytes << 20):
                resource.setrlimit(resource.RLIMIT_AS, (size, size))
            done = self.run_command("select", "x.npy", "--exact", "--threads", 1, preexec_fn=limit)
            with self.subTest(megabytes):
                if done.returncode == 127 or "error while loading shared libraries" in done.stderr:
                    continue  # the loader's
                self.assertIn(done.returncode, (0, 3), done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1 if done.returncode else 0, done.stderr)


if __name__ == "__main__":
    unittest.main()

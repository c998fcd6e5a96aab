"""`normscope lab`: the list, runs that are killed or shared among processes and ranks, exports, bad input."""

import contextlib
import csv
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import time
import unittest
from pathlib import Path

import ranks
from command import COMMAND, SANITIZED, CommandTest

LAB = Path(COMMAND).with_name("normscope-lab")
EXPERIMENT = "brody-majority"
# All configurations with small batches, so few steps that a run takes a moment, and enough to kill it before its end.
SMALL = {"batch": [300], "sequences": [3000], "read_sequences": [50]}
SHORT = {"values": {**SMALL, "steps": [74]}, "seeds": [1, 2]}
LONG = {"values": {**SMALL, "steps": [1480]}, "seeds": [1]}


class WithoutTheProgram(CommandTest):
    def test_a_missing_lab_program_is_an_error_that_says_how_to_build_it(self):
        alone = self.folder / "bin" / "normscope"
        alone.parent.mkdir()
        shutil.copy(COMMAND, alone)
        done = subprocess.run([alone, "lab", "list"], capture_output=True, encoding="utf-8", timeout=60)
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"^normscope: lab: .*normscope-lab does not exist; .*scripts/lab.*\n$")

    @unittest.skipIf(SANITIZED, "the sanitizers' libraries are others'")
    def test_the_command_links_neither_torch_nor_mpi(self):
        linked = subprocess.run(["ldd", COMMAND], capture_output=True, encoding="utf-8", check=True).stdout
        self.assertIsNone(re.search(r"torch|mpi|sqlite", linked), linked)


@unittest.skipUnless(LAB.exists(), f"{LAB} is not built")
class Lab(CommandTest):
    def rows(self, store, query):
        with contextlib.closing(sqlite3.connect(f"file:{self.folder / store}?mode=ro", uri=True)) as database:
            return database.execute(query).fetchall()

    def numbers(self, store):
        """Every metric of a store's runs, without the runs' ids, which depend on the process that made them."""
        return sorted(self.rows(store, "SELECT configuration, seed, state, metrics.step, name, value "
                                       "FROM runs JOIN metrics ON metrics.run = runs.id"))

    def sweep(self, what, store, *options):
        (self.folder / "sweep.json").write_text(json.dumps(what))
        return ["lab", "run", EXPERIMENT, "--quick", "--sweep", "sweep.json", "--lease", "2", "--store", store, *options]

    def ranks(self, count, arguments):
        return ranks.start(count, [COMMAND, *arguments], self.folder)

    def workers(self, store):
        """The processes that work on that store in this folder."""
        return ranks.running(LAB, store, self.folder)

    def at_work(self, job, store, number):
        """Waits until `number` runs have begun; returns the processes that work on the store."""
        end = time.monotonic() + 60
        while self.begun(store) < number and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(0.2)
        self.assertIsNone(job.poll(), "it was done before anything could be stopped")
        return self.workers(store)

    def begun(self, store):
        """The number of runs that have begun and are not complete."""
        try:
            return self.rows(store, "SELECT count(*) FROM runs WHERE state = 1")[0][0]
        except sqlite3.OperationalError:  # it is not there yet, or is being made
            return 0

    def test_the_list_names_what_can_be_run(self):
        listed = self.json("lab", "list")["experiments"]
        names = [entry["name"] for entry in listed]
        self.assertEqual(len(names), len(set(names)))
        papers = {entry["paper"] for entry in listed}
        for author in ("Brody", "Riechers", "Winsor", "Ni", "Weiss", "Merrill"):
            self.assertTrue(any(paper.startswith(author) for paper in papers), papers)
        printed = self.ok("lab", "list")
        for name in names:
            self.assertIn(name, printed)

    def test_only_runs_that_need_torch_load_it(self):
        def linked(program):
            return subprocess.run(["ldd", LAB.with_name(program)], capture_output=True, encoding="utf-8",
                                  check=True).stdout

        self.assertNotRegex(linked("normscope-lab"), "torch|mpi|sqlite")
        self.assertNotRegex(linked("normscope-lab-run"), "torch")
        self.assertIn("torch", linked("normscope-lab-torch"))
        experiments = self.json("lab", "list")["experiments"]
        backends = {entry["name"]: entry["backend"] for entry in experiments}
        self.assertEqual(backends["winsor-fold"], "own")
        self.assertEqual(backends["brody-language-model"], "torch")
        self.assertEqual(backends["ni-vit"], "torch or GPU")
        done = subprocess.run([LAB.with_name("normscope-lab-run"), "run", "ni-vit", "--quick"],
                              capture_output=True, encoding="utf-8", cwd=self.folder)
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, r"^normscope-lab: lab: libtorch computes ni-vit, expected .*\n$")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_device_that_cannot_compute_the_experiment_is_refused(self):
        for device in ("tpu", "cuda:", "cuda:x", "cuda:1000"):
            self.assertIn("expected cpu, cuda or cuda:INDEX",
                          self.fails(2, "lab", "run", "ni-vit", "--quick", "--device", device))
        for name, expected in (("ni-vit", "the processor only|this machine has"),
                               ("brody-language-model", "only the processor computes"),
                               ("winsor-fold", "only the processor computes winsor-fold")):
            self.assertRegex(self.fails(3, "lab", "run", name, "--quick", "--device", "cuda:99"), expected)

    def test_a_run_is_shown_plotted_and_exported(self):
        got = self.json("lab", "run", "brody-random-keys", "--quick", "-o", "figures")["experiments"][0]
        self.assertEqual(got["size"], "quick")
        self.assertGreaterEqual(got["runs"]["done"], got["runs"]["planned"])
        figures = sorted((self.folder / "figures").iterdir())
        self.assertTrue(figures)
        figure = json.loads(figures[0].read_text())
        self.assertEqual(figure["title"]["subtitle"], "normscope lab show brody-random-keys --quick -o FOLDER")
        # Shown a second time, it is the same and nothing is run.
        self.assertEqual(self.json("lab", "show", "brody-random-keys", "--quick")["experiments"][0], got)
        shown = self.ok("lab", "show", "brody-random-keys", "--quick", "--markdown")
        self.assertIn("| claim | paper | ours | interval of the effect | verdict |", shown)
        self.ok("lab", "export", "brody-random-keys", "-o", "runs.csv")
        with (self.folder / "runs.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        self.assertTrue(rows)
        self.assertEqual({row["configuration.size"] for row in rows}, {"quick"})
        for row in rows:
            float(row["value"] or "nan")

    def test_runs_travel_as_lines_with_their_rules(self):
        self.ok("lab", "run", "winsor-surface", "--store", "one")
        shown = self.json("lab", "show", "winsor-surface", "--store", "one")
        claim = shown["experiments"][0]["claims"][0]
        self.assertEqual((claim["outcome"], claim["rule"]["runs_before"]), ("reproduced", 0))
        self.assertIn("Rules, fixed before the runs:",
                      self.ok("lab", "show", "winsor-surface", "--store", "one", "--markdown"))
        self.ok("lab", "export", "winsor-surface", "--store", "one", "--format", "runs", "-o", "runs.jsonl")
        self.ok("lab", "import", "runs.jsonl", "--store", "two")
        self.assertEqual(self.json("lab", "show", "winsor-surface", "--store", "two"), shown)
        both = self.json("lab", "show", "winsor-fold", "winsor-surface", "--store", "two")["experiments"]
        self.assertEqual([entry["name"] for entry in both], ["winsor-fold", "winsor-surface"])
        self.assertEqual(both[1], shown["experiments"][0])

        # Runs that began before the rule was written.
        lines = [json.loads(line) for line in (self.folder / "runs.jsonl").read_text().splitlines()]
        for line in lines:
            if "run" in line:
                line["run"]["started"] -= 1000
        (self.folder / "old.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        self.ok("lab", "import", "old.jsonl", "--store", "three")
        text = self.ok("lab", "show", "winsor-surface", "--store", "three", "--markdown")
        self.assertIn("rule written after 4 of 4 runs", text)
        self.assertNotIn("fixed before", text)

        (self.folder / "bad.jsonl").write_text('{"rune": 1}\n')
        self.assertIn("bad.jsonl: line 1: ", self.lab_fails(3, "import", "bad.jsonl", "--store", "four"))
        self.assertIn("no.jsonl", self.lab_fails(3, "import", "no.jsonl", "--store", "four"))

    def test_results_do_not_depend_on_processes_and_ranks(self):
        self.ok(*self.sweep(SHORT, "one", "--threads", "1"))
        one = self.numbers("one")
        self.ok("lab", "export", EXPERIMENT, "--store", "one", "--format", "jsonl", "-o", "one.jsonl")
        exported = [json.loads(line) for line in (self.folder / "one.jsonl").read_text().splitlines()]
        self.assertEqual({row["seed"] for row in exported}, set(SHORT["seeds"]))
        self.assertEqual({row["done"] for row in exported}, {True})
        self.assertEqual(sorted(row["value"] for row in exported), sorted(value for *_, value in one))
        self.ok(*self.sweep(SHORT, "two", "--threads", "2"))
        self.assertEqual(self.numbers("two"), one)
        for count in (1, 3):
            job = self.ranks(count, self.sweep(SHORT, f"ranks{count}"))
            said = job.communicate(timeout=300)
            self.assertEqual(job.returncode, 0, said)
            self.assertEqual(self.numbers(f"ranks{count}"), one)

    def test_the_same_command_completes_the_runs_of_a_killed_rank(self):
        self.ok(*self.sweep(LONG, "whole", "--threads", "2"))
        whole = self.numbers("whole")
        job = self.ranks(3, self.sweep(LONG, "killed"))
        os.kill(max(self.at_work(job, "killed", 3)), signal.SIGKILL)
        job.communicate(timeout=300)
        self.assertNotEqual(job.returncode, 0)
        again = self.ranks(3, self.sweep(LONG, "killed"))
        said = again.communicate(timeout=300)
        self.assertEqual(again.returncode, 0, said)
        self.assertEqual(self.numbers("killed"), whole)

    def test_ctrl_c_saves_and_the_same_command_resumes(self):
        command = self.sweep(LONG, "stopped", "--threads", "2")
        job = subprocess.Popen([COMMAND, *command], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               encoding="utf-8", start_new_session=True)
        self.at_work(job, "stopped", 2)
        os.killpg(job.pid, signal.SIGINT)
        _, said = job.communicate(timeout=60)
        self.assertEqual(job.returncode, 130, said)
        self.assertEqual(said.count("\n"), 1, said)
        self.assertEqual(self.workers("stopped"), [])
        self.ok(*command)
        self.assertIn(2, {state for _, _, state, *_ in self.numbers("stopped")})  # complete

    def test_a_plan_says_what_runs_will_take(self):
        before = self.ok("lab", "plan", "winsor-surface", "--threads", "2")
        self.assertRegex(before, r"^winsor-surface, full size: (\d+) runs \(\d+ configurations?, \d+ seeds?\), 0 done, \1 left\n")
        self.assertIn("the experiment's own estimate", before)
        self.assertIn("memory: not known", before)
        self.assertEqual(list(self.folder.iterdir()), [])
        self.ok("lab", "run", "winsor-surface")
        after = self.ok("lab", "plan", "winsor-surface", "--runs", "9", "--threads", "2")
        self.assertRegex(after, r"(?s) [1-9]\d* done, [1-9]\d* left\nabout .* in 2 processes \(from \d+ completed runs\)\n"
                                r"at most \d+ MiB a process so far\n$")
        self.assertNotIn("about", self.ok("lab", "plan", "winsor-surface"))
        run = self.json("lab", "show", "winsor-surface")["experiments"][0]
        self.assertRegex(run["origins"][0], r", version \d+\.\d+\.\d+")

    def test_bad_input(self):
        self.assertIn("unknown experiment", self.lab_fails(3, "run", "unfold"))
        self.assertIn("does not exist", self.lab_fails(3, "show", EXPERIMENT))
        self.assertIn("does not exist", self.lab_fails(3, "export", EXPERIMENT, "-o", "x.csv"))
        self.assertIn("Reproduce the papers' experiments", self.ok("lab"))
        self.lab_fails(2, "run")
        self.lab_fails(2, "list", "--threads", "2")
        self.lab_fails(2, "run", EXPERIMENT, "--runs", "-3")
        (self.folder / "model.sqlite").write_bytes(b"x" * 5000)
        self.assertIn("model.sqlite", self.lab_fails(3, "run", EXPERIMENT, "--quick", "--store", "model.sqlite"))
        for text in ("[", '{"values": {"x": [1]}}'):
            (self.folder / "sweep.json").write_text(text)
            said = self.lab_fails(3, "run", EXPERIMENT, "--quick", "--sweep", "sweep.json", "--store", "s")
            self.assertTrue("sweep.json" in said or '"x"' in said, said)

    def lab_fails(self, status, *arguments):
        done = self.run_command("lab", *arguments)
        self.assertEqual((done.returncode, done.stdout), (status, ""), done.stderr)
        self.assertRegex(done.stderr, r"^normscope-lab: [^\n]*\n$")
        return done.stderr


if __name__ == "__main__":
    unittest.main()

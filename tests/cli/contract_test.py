"""Results, schemas and exit statuses of each subcommand."""

import json
import os
import re
import resource
import subprocess
import unittest
from pathlib import Path

import numpy as np

from command import CHECKPOINTS, COMMAND, OWN_MODEL, SANITIZED, CommandTest, is_checkpoint, safetensors


class Geometry(CommandTest):
    def setUp(self):
        super().setUp()
        self.gain = np.random.default_rng(1).normal(1.0, 0.3, 24)
        np.save(self.folder / "g.npy", self.gain)

    def image_matrix(self, width):
        return width * np.diag(self.gain) @ (np.eye(width) - 1 / width) @ np.diag(self.gain)

    def test_semi_axes_are_those_of_a_dense_solver(self):
        got = self.json("geometry", "--gain", "g.npy", "--axes", 23, "--null-space")
        eigenvalues = np.linalg.eigvalsh(self.image_matrix(24))[::-1]
        np.testing.assert_allclose(got["semi_axes"], np.sqrt(eigenvalues[:23]), rtol=1e-12)
        self.assertEqual(got["null_space_dim"], 1)
        axes = np.array(got["axes"] + got["null_space"])
        np.testing.assert_allclose(axes @ axes.T, np.eye(24), atol=1e-12)
        np.testing.assert_allclose(got["condition"], got["semi_axes"][0] / got["semi_axes"][-1])

    def test_every_source_of_a_gain_gives_the_same(self):
        expected = self.json("geometry", "--gain", "g.npy")
        np.savez(self.folder / "z.npz", gain=self.gain)
        np.savez_compressed(self.folder / "c.npz", gain=self.gain)
        safetensors(self.folder / "s.safetensors", {"gain": self.gain, "stack": np.stack([self.gain, 0 * self.gain])})
        for source in ("z.npz:gain", "c.npz:gain", "s.safetensors:gain", "s.safetensors:stack[0]"):
            self.assertEqual(self.json("geometry", "--gain", source), expected, source)

    def test_gain_offset_is_added(self):
        np.save(self.folder / "minus.npy", self.gain - 1.0)
        np.testing.assert_allclose(self.json("geometry", "--gain", "minus.npy", "--gain-offset", 1)["semi_axes"],
                                   self.json("geometry", "--gain", "g.npy")["semi_axes"], rtol=1e-14)

    def test_kinds_and_groups(self):
        rms = self.json("geometry", "--gain", "g.npy", "--norm", "rms")
        np.testing.assert_allclose(rms["semi_axes"], np.sort(np.sqrt(24) * np.abs(self.gain))[::-1], rtol=1e-14)
        self.assertEqual(self.json("geometry", "--gain", "g.npy", "--groups", 4)["null_space_dim"], 4)
        self.assertEqual(self.json("geometry", "--width", 5)["semi_axes"], [5 ** 0.5] * 4)

    def test_similarity_to_another_gain(self):
        np.save(self.folder / "h.npy", self.gain[::-1])
        got = self.json("geometry", "--gain", "g.npy", "--similar-to", "h.npy")
        a = self.image_matrix(24)
        self.gain = self.gain[::-1]
        b = self.image_matrix(24)
        self.assertAlmostEqual(got["similarity"], np.trace(a @ b) / np.linalg.norm(a) / np.linalg.norm(b), 12)

    @unittest.skipIf(SANITIZED, "sanitizers reserve terabytes of address space")
    def test_wide_norms_need_little_memory(self):
        # A matrix of this width would take 2 GiB.
        np.save(self.folder / "wide.npy", np.random.default_rng(3).normal(1.0, 0.3, 16384))
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (512 << 20, 512 << 20))
        done = self.run_command("geometry", "--gain", "wide.npy", "--json", "-", preexec_fn=limit)
        self.assertEqual((done.returncode, len(json.loads(done.stdout)["semi_axes"])), (0, 16383), done.stderr)

    def test_shift_is_the_bias_over_the_radius(self):
        got = self.json("geometry", "--gain", "1,1,1,1", "--bias", "2,0,0,0")
        self.assertEqual((got["shift_over_radius"], got["rms_radius"]), (1.0, 2.0))
        self.assertIn("shifted by 1 times its root-mean-square radius",
                      self.ok("geometry", "--gain", "1,1,1,1", "--bias", "2,0,0,0"))
        random = np.random.default_rng(4)
        for kind in ("layer", "rms"):
            x = random.normal(size=(20_000, 24))
            x -= x.mean(1, keepdims=True) if kind == "layer" else 0.0
            y = x / np.sqrt((x**2).mean(1, keepdims=True)) * self.gain
            got = self.json("geometry", "--gain", "g.npy", "--norm", kind, "--bias", "g.npy")
            self.assertAlmostEqual(got["rms_radius"] / np.sqrt((y**2).sum(1).mean()), 1.0, 2)
            self.assertAlmostEqual(got["shift_over_radius"], np.linalg.norm(self.gain) / got["rms_radius"], 12)
        self.assertIsNone(self.json("geometry", "--gain", "0,0", "--bias", "1,0")["shift_over_radius"])
        self.assertIn("its image is one point, the bias", self.ok("geometry", "--gain", "0,0", "--bias", "1,0"))

    def test_text_names_the_axes(self):
        text = self.ok("geometry", "--gain", "g.npy", "--axes", 1)
        self.assertIn("null space of dimension 1, 23 semi-axes", text)
        self.assertIn(f"{np.argmax(np.abs(self.gain))}: +", text)


class Models(CommandTest):
    def report(self, path):
        """The report of a checkpoint as JSON and as a page, which write_reports.py has written for all tests."""
        page, = Path(os.environ["NORMSCOPE_REPORTS"]).glob(f"*/{path.name}.html")
        return json.loads(page.with_suffix(".json").read_text()), page.read_text()

    def checkpoints(self):
        yield OWN_MODEL
        if not CHECKPOINTS.exists():
            self.skipTest(f"real data absent: {CHECKPOINTS}")
        yield from filter(is_checkpoint, sorted(CHECKPOINTS.iterdir()))

    def test_every_checkpoint_yields_a_report(self):
        for path in self.checkpoints():
            with self.subTest(path.name):
                document, page = self.report(path)
                self.conforms("report", document)
                self.assertLess(len(page), 10e6)
                self.assertNotIn('id="report-data">null<', page)
                charts = page.split('id="chart-data">', 1)[1].split("</script>", 1)[0]
                self.conforms("charts", json.loads(charts))
                self.assertGreater(len(document["norms"]), 0)
                for norm in document["norms"]:
                    self.assertGreater(norm["image"]["condition"], 0.999, norm["name"])

    def again(self, command, folder):
        """The output of a printed command, run in a shell in the folder of the checkpoint, whose path it does not say."""
        command = command.replace("normscope", COMMAND, 1) + " --json -"
        done = subprocess.run(command, shell=True, executable="/bin/bash", cwd=folder, capture_output=True)
        self.assertEqual((done.returncode, done.stderr), (0, b""), command)
        return json.loads(done.stdout)

    def test_geometry_agrees_with_the_report_for_every_norm(self):
        for path in self.checkpoints():
            document, _ = self.report(path)
            for norm in document["norms"][:2] + document["norms"][-1:]:
                again = self.again(norm["reproduce"], path.parent)
                self.assertEqual(again["condition"], norm["image"]["condition"], norm["name"])
                self.assertEqual(again["semi_axes"][0], norm["image"]["longest"])

    def test_the_command_of_a_finding_prints_its_numbers(self):
        shown = {"stretched_axis": lambda a: {"length": a["semi_axes"][0], "weight": max(a["axes"][0], key=abs)},
                 "concentrated_image": lambda a: {"effective_dimension": a["effective_dimension"]},
                 "condition_range": lambda a: {"most": a["condition"]},
                 "image_change": lambda a: {key: a[key] for key in ("similarity", "top_axis_cosine")},
                 # One erased direction per block: the most tilted one is reported.
                 "null_direction": lambda a: {"weight": min((max(row, key=abs) for row in a["null_space"]),
                                                            key=lambda w: abs(w - finding["numbers"]["weight"]))},
                 "gain_range": lambda a: {"most": a["gain"]["median_abs"]},
                 "large_bias": lambda a: {"shift_over_radius": a["shift_over_radius"]}}
        for path in self.checkpoints():
            for finding in self.report(path)[0]["findings"]:
                with self.subTest(f"{path.name}: {finding['kind']}"):
                    again = self.again(finding["reproduce"], path.parent)
                    for name, number in shown.get(finding["kind"], lambda _: {})(again).items():
                        self.assertAlmostEqual(number, finding["numbers"][name], 12, name)

    def test_the_command_of_a_cause_runs(self):
        for path in self.checkpoints():
            for cause in self.report(path)[0]["causes"]:
                with self.subTest(f"{path.name}: {cause['title']}"):
                    self.assertIn(path.name, cause["reproduce"])
                    self.again(cause["reproduce"], path.parent)

    def test_inspect_lists_tensors_norms_and_their_connections(self):
        document = self.json("inspect", OWN_MODEL)
        self.assertEqual(document["architecture"]["architecture"], "gpt2")
        norm = next(norm for norm in document["norms"] if norm["name"].endswith("h.1.ln_2"))
        self.assertEqual([reader["role"] for reader in norm["readers"]], ["mlp in"])
        self.assertEqual([writer["role"] for writer in norm["writers"]], ["attention out"])
        self.assertIn("read by", self.ok("inspect", OWN_MODEL))

    def test_deep_lists_every_semi_axis(self):
        norm = self.json("report", OWN_MODEL, "-o", "r.html", "--deep")["norms"][0]
        self.assertEqual(len(norm["image"]["lengths"]), norm["image"]["semi_axes"])

    def test_threads_do_not_change_the_document(self):
        one, two = (self.json("report", OWN_MODEL, "-o", "r.html", "--threads", n) for n in (1, 2))
        self.assertEqual(one, two)

    def test_quiet_says_nothing(self):
        self.assertEqual(self.ok("report", OWN_MODEL, "-o", "r.html", "--quiet"), "")


class Usage(CommandTest):
    def test_help_fits_a_screen_and_shows_the_main_job_first(self):
        text = self.ok("--help")
        self.assertLessEqual(text.count("\n"), 40)
        self.assertIn("report MODEL", text.splitlines()[0])
        self.assertEqual([line.split()[0] for line in text.splitlines() if re.match(r"\w+ +\w+ {2,}\w", line)],
                         ["look", "prove", "explain", "change", "identify", "compute", "papers", "shell"])

    def test_usage_errors_exit_with_2(self):
        for words in (["reprot"], ["report"], ["geometry", "--norm", "batch"], ["geometry", "--eps", "-1"],
                      ["geometry", "--groups", "0"], ["apply"], ["report", "a", "b"],
                      ["apply", "x.npy", "-o", "y.npy", "--step", "fold"], ["geometry"], ["geometry", "--width", "-3"],
                      ["geometry", "--width", "99999999999999"], ["geometry", "--width", "5", "--axes", "-1"],
                      ["geometry", "--width", "5", "--threads", "-1"], ["geometry", "--width", "5", "--gain-offset", "1"],
                      ["inspect", OWN_MODEL, "--threads", "2"]):
            with self.subTest(words):
                self.fails(2, *words)

    def test_folders_that_cannot_be_made_are_known_before_the_work(self):
        np.save(self.folder / "x.npy", np.random.default_rng(1).normal(size=(3000, 64)))
        for words in (["select", "x.npy", "--certificates"], ["select", "--random-table", "--runs", "1000000", "--figures"],
                      ["reach", "--unembedding", "x.npy", "--certificates"],
                      ["nets", "train", "xor", "--steps", "10000000", "--figures"]):
            for folder in ("x.npy", "x.npy/below"):
                with self.subTest(words):
                    self.assertIn("x.npy is not a folder, expected one to write into", self.fails(3, *words, folder))

    def test_literals_are_distinguished_from_files(self):
        hint = "; a literal array has two or more finite numbers: 1,2 is one row, 0;1 is two rows\n"
        for name in ("3", "-1e5", "nan", "inf"):
            for words in (["geometry", f"--gain={name}"], ["select", "--", name], ["apply", "-o", "y.npy", "--", name]):
                self.assertEqual(self.fails(3, *words), f"normscope: array: {name}: no such file{hint}")
        self.assertEqual(self.fails(3, "geometry", "--gain", "1,nan"),
                         'normscope: array: "1,nan": "nan" is not a finite number\n')
        self.assertEqual(self.fails(3, "geometry", "--gain", "none.npy"), "normscope: array: none.npy: no such file\n")

    def test_no_output_replaces_an_input_or_another_output(self):
        hub = self.folder / "hub"
        hub.mkdir()
        model = safetensors(hub / "model.safetensors", {"norm.weight": np.ones(4, np.float32)})
        (hub / "config.json").write_text("{}")
        (self.folder / "link").symlink_to("hub/model.safetensors")
        np.save(self.folder / "x.npy", np.ones((2, 4)))
        np.savez(self.folder / "s.npz", x=np.eye(4), l=np.arange(4))
        inputs = (model, hub / "config.json", self.folder / "x.npy", self.folder / "s.npz")
        contents = {path: path.read_bytes() for path in inputs}
        for words in (["report", "hub", "-o", "hub/model.safetensors"], ["report", "hub", "-o", "link"],
                      ["report", "hub", "-o", "r.html", "--json", "hub/config.json"],
                      ["report", "hub", "-o", "r", "--json", "r"], ["report", "hub", "-o", "r", "--json", "./r"],
                      ["inspect", "hub", "--json", "hub/model.safetensors"],
                      ["geometry", "--gain", "hub:norm.weight", "--json", "hub/model.safetensors"],
                      ["apply", "x.npy", "-o", "y.npy", "--json", "x.npy"],
                      ["apply", "hub:norm.weight", "-o", "hub/model.safetensors"],
                      ["nets", "run", "n.safetensors", "s.npz:x", "-o", "s.npz"],
                      ["nets", "build", "s.npz:x", "--random-labels", 2, "-o", "s.npz"],
                      ["nets", "build", "x.npy", "s.npz:l", "-o", "n", "--folds", "s.npz"],
                      ["nets", "build", "hub:norm.weight", "--random-labels", 2, "-o", "hub/config.json"]):
            with self.subTest(words):
                self.assertIn("would overwrite", self.fails(3, *words))
                for path, content in contents.items():
                    self.assertEqual(path.read_bytes(), content)

    def test_two_outputs_or_none(self):
        np.save(self.folder / "x.npy", np.ones((2, 4)))
        self.fails(3, "apply", "x.npy", "-o", "y.npy", "--json", "no/folder.json")
        self.fails(3, "apply", "x.npy", "-o", "no/y.npy", "--json", "a.json")
        self.fails(3, "report", OWN_MODEL, "-o", "r.html", "--json", "no/folder.json")

    def test_an_output_that_cannot_be_written_is_known_before_the_work(self):
        # None of the inputs exists: if they were read first, the message would be about them.
        for words in (["apply", "x.npy", "-o", "no/y.npy"], ["report", "m.onnx", "-o", "no/r.html"],
                      ["nets", "build", "x.npy", "l.npy", "-o", "no/n.safetensors"],
                      ["nets", "build", "x.npy", "l.npy", "-o", "n.safetensors", "--folds", "no/t"],
                      ["nets", "run", "n.safetensors", "x.npy", "-o", "no/l.npy"], ["curvature", "x.npy", "--json", "no/c.json"],
                      ["separate", "a.npy", "b.npy", "--json", "no/s.json"], ["inspect", "m.pt", "--json", "no/i.json"],
                      ["geometry", "--gain", "g.npy", "--json", "no/g.json"]):
            with self.subTest(words):
                self.assertIn("no/", self.fails(3, *words))

    def test_a_closed_pipe_leaves_no_files(self):
        done = subprocess.run(f"{COMMAND} report {OWN_MODEL} -o r.html --json - | head -c 1; echo ${{PIPESTATUS[0]}}",
                              shell=True, executable="/bin/bash", cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.stdout, "{3\n", done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_pipes_by_name_are_written(self):
        done = subprocess.run(f"{COMMAND} geometry --width 3 --json /dev/stdout -q | cat", shell=True, cwd=self.folder,
                              capture_output=True, text=True)
        self.assertEqual(json.loads(done.stdout)["width"], 3, done.stderr)

    def test_failing_to_write_is_an_error(self):
        self.assertIn("no/such/folder", self.fails(3, "report", OWN_MODEL, "-o", "no/such/folder/r.html"))
        self.assertIn("/dev/full", self.fails(3, "geometry", "--width", 5, "--json", "/dev/full"))


if __name__ == "__main__":
    unittest.main()

"""Hostile values through every subcommand: numbers at the ends of the range, none at all, rows that say nothing.

Each call ends with an answer whose document is JSON that its schema allows, or with one line that says what is
wrong. Never with a signal, an internal error, or a nan. Where theory says that a power of two changes nothing, the
answers are the same.
"""

import json
import re
import unittest

import numpy as np

from command import CommandTest, safetensors

RANDOM = np.random.default_rng(14).normal(size=(4, 3))
ROWS = {
    "ordinary": RANDOM,
    "huge": np.array([[1e308, 1.5e308, -1e308], [-1.7e308, 1.2e308, 1e307], [1.7e308, 1.7e308, 1.7e308], [0, 1e308, 0]]),
    "large": 1e200 * RANDOM,
    "small": 1e-200 * RANDOM,
    "least": 5e-324 * np.array([[1, 2, 3], [3, 1, 2], [0, 0, 1], [5, 5, 5]]),
    "mixed": np.array([[1e308, 1e-308, 1], [5e-324, -1e308, 2], [1e-160, 1e160, 3], [0, 0, 1e-308]]),
    "constant": np.full((4, 3), 2.5),
    "zeros": np.zeros((4, 3)),
    "one row": RANDOM[:1],
    "width one": RANDOM[:, :1],
}
BROKEN = {
    "nan": np.where(np.eye(4, 3) > 0, np.nan, RANDOM),
    "inf": np.where(np.eye(4, 3) > 0, -np.inf, RANDOM),
    "no rows": np.zeros((0, 3)),
    "no features": np.zeros((3, 0)),
    "no axes": np.array(2.0),
}
LABELS = np.array([0.0, 1.0, 0.0, 1.0])
NOT_A_NUMBER = re.compile(r"(?<![\w.])[-+]?(nan|inf)(?![\w.])", re.IGNORECASE)


def no_constant(name):
    raise AssertionError(f"{name} in JSON")


class Sweep(CommandTest):
    # Whether the rows have numbers of so few digits, or so far apart, that proofs about them have too few as well.
    coarse = False

    def call(self, *arguments):
        """The document of a call that may succeed or be refused; None if it is refused."""
        done = self.run_command(*arguments, "--threads", 1, "--json", "result.json")
        said = f"{arguments}: {done.returncode}\n{done.stdout}{done.stderr}"
        self.assertIn(done.returncode, (0, 1, 3), said)
        if done.returncode == 3:
            self.assertEqual((done.stdout, done.stderr.count("\n")), ("", 1), said)
            self.assertNotIn("-nan", done.stderr, said)
            return None
        self.assertEqual(done.stderr, "", said)
        self.assertIsNone(NOT_A_NUMBER.search(done.stdout), said)
        path = self.folder / "result.json"
        document = json.loads(path.read_text(), parse_constant=no_constant)
        self.as_its_schema_says(document)
        if arguments[0] in ("select", "separate", "reach", "heads") and not self.coarse:
            self.verify(said)
        path.unlink()
        return document

    def verify(self, said):
        """Checks result.json from the files that it names."""
        done = self.run_command("verify", "result.json", "--json", "verified.json")
        self.assertEqual((done.returncode in (0, 4), done.stderr), (True, ""), said + done.stdout)
        document = json.loads((self.folder / "verified.json").read_text(), parse_constant=no_constant)
        self.as_its_schema_says(document)

    def answer(self, *arguments):
        document = self.call(*arguments)
        self.assertIsNotNone(document, arguments)
        return document

    def refused(self, *arguments):
        self.assertIsNone(self.call(*arguments), arguments)

    def save(self, name, array):
        np.save(self.folder / name, array)
        return name

    def each(self, rows, check):
        """Calls check(name, file, array) for each of the arrays."""
        for name, array in rows.items():
            with self.subTest(name):
                self.coarse = name in ("least", "mixed")
                check(name, self.save("x.npy", array), array)
        self.coarse = False


class Norms(Sweep):
    def test_apply(self):
        def check(name, x, array):
            for options in ((), ("--eps", 0), ("--norm", "spherical", "--eps", 0)):
                self.answer("apply", x, "-o", "y.npy", *options)
                self.assertTrue(np.isfinite(np.load(self.folder / "y.npy")).all(), (name, options))
            for step in ("project", "scale"):
                self.answer("apply", x, "-o", "y.npy", "--step", step, "--eps", 0)
                self.assertFalse(np.isnan(np.load(self.folder / "y.npy")).any(), (name, step))

        self.each(ROWS, check)

    def test_apply_of_broken_arrays(self):
        def check(name, x, array):
            # An entry that is not finite affects only its row, as in a model.
            self.assertEqual(self.call("apply", x, "-o", "y.npy") is None, name in ("no features", "no axes"))

        self.each(BROKEN, check)

    def test_apply_is_independent_of_scale(self):
        for options in ((), ("--step", "scale"), ("--norm", "rms")):
            results = []
            for exponent in (0, 400, -400, 1021, -900):
                x = self.save("x.npy", np.ldexp(RANDOM, exponent))
                self.answer("apply", x, "-o", "y.npy", "--eps", 0, *options)
                results.append(np.load(self.folder / "y.npy"))
            np.testing.assert_array_equal(results[0], results[1])
            np.testing.assert_array_equal(results[0], results[2])
            # The kernels compute rows whose squares leave the range in another way, to the same bound.
            for extreme in results[3:]:
                np.testing.assert_allclose(extreme, results[0], rtol=0, atol=64 * 2.0**-53 * 3)

    def test_geometry(self):
        def check(name, x, array):
            gain, bias = self.save("g.npy", array[0]), self.save("b.npy", array[-1])
            self.call("geometry", "--gain", gain, "--bias", bias, "--axes", 2, "--null-space", "--similar-to", bias)
            self.call("geometry", "--gain", gain, "--bias", bias, "--norm", "rms", "--groups", array.shape[1])

        self.each(ROWS, check)

    def test_geometry_of_broken_arrays(self):
        def check(name, x, array):
            self.assertEqual(self.call("geometry", "--gain", self.save("g.npy", array.ravel()[:3])) is None, name != "no axes")

        self.each(BROKEN, check)

    def test_geometry_is_independent_of_scale(self):
        gain, bias = RANDOM[:2]
        plain, large, small = (self.answer("geometry", "--gain", self.save("g.npy", np.ldexp(gain, exponent)), "--bias",
                                           self.save("b.npy", np.ldexp(bias, exponent))) for exponent in (0, 1020, -900))
        for scaled in (large, small):
            for key in ("condition", "effective_dimension", "shift_over_radius", "null_space_dim"):
                self.assertEqual(scaled[key], plain[key], key)
            self.assertIn(scaled["energy"], (None, 0.0))

    def test_curvature(self):
        def check(name, x, array):
            for eps in (0, 1e-5):
                self.answer("curvature", x, "--eps", eps, "--rows-out", "h.npy")
                self.assertFalse(np.isnan(np.load(self.folder / "h.npy")).any(), (name, eps))

        self.each(ROWS, check)

    def test_curvature_of_broken_arrays(self):
        def check(name, x, array):
            self.refused("curvature", x)

        self.each(BROKEN, check)

    def test_curvature_ratios_are_independent_of_scale(self):
        ratios = [[group["ratio"] for group in self.answer("curvature", self.save("x.npy", np.ldexp(
            np.random.default_rng(3).normal(size=(5, 12)), exponent)))["groups"]] for exponent in (0, 1000, -900)]
        self.assertEqual(ratios[0], ratios[1])
        self.assertEqual(ratios[0], ratios[2])


class Nets(Sweep):
    def test_build_and_run(self):
        def check(name, x, array):
            labels = self.save("labels.npy", LABELS[:len(array)])
            made = self.call("nets", "build", x, labels, "-o", "net.safetensors", "--drop-conflicts", "--folds", "t.jsonl")
            if made and made["correct"] == made["total"]:
                given = self.answer("nets", "run", "net.safetensors", x, "--trace", "t.npy")["labels"]
                self.assertEqual(given[0], 0)
            for line in (self.folder / "t.jsonl").read_text().splitlines() if made else []:
                self.conforms("build-trace", json.loads(line, parse_constant=no_constant))

        self.each(ROWS, check)

    def test_build_and_run_of_broken_arrays(self):
        def check(name, x, array):
            self.refused("nets", "build", x, self.save("labels.npy", np.zeros(len(array) if array.shape else 1)), "-o", "net.safetensors")

        self.each(BROKEN, check)

    def test_build_is_independent_of_scale(self):
        x = np.random.default_rng(4).normal(size=(40, 3))
        labels = self.save("labels.npy", np.random.default_rng(5).integers(0, 3, 40).astype(float))
        for exponent in (0, 1020, 664, -664, -1000):
            scaled = self.save("x.npy", np.ldexp(x, exponent))
            made = self.answer("nets", "build", scaled, labels, "-o", "net.safetensors")
            self.assertEqual((made["correct"], made["precision"]), (40, "float64"), exponent)
            given = self.answer("nets", "run", "net.safetensors", scaled)["labels"]
            self.assertEqual(given, np.load(self.folder / labels).tolist())

    def test_run_refuses_rows_that_the_net_cannot_take(self):
        x = self.save("x.npy", RANDOM)
        self.answer("nets", "build", x, self.save("labels.npy", LABELS), "-o", "net.safetensors")
        def check(name, x, array):
            self.refused("nets", "run", "net.safetensors", x)

        self.each({**BROKEN, "huge": ROWS["huge"]}, check)

    def test_train(self):
        def check(name, x, array):
            labels = self.save("labels.npy", LABELS[:len(array)])
            self.call("nets", "train", x, labels, "--steps", 2, "--width", 4, "--depth", 1, "-o", "net.safetensors")

        self.each(ROWS, check)
        for rate in ("1e308", "1e30", "1e-320"):
            self.call("nets", "train", "xor", "--steps", 20, "--lr", rate, "--optimizer", "sgd", "-o", "net.safetensors")

    def test_train_of_broken_arrays(self):
        def check(name, x, array):
            self.refused("nets", "train", x, self.save("labels.npy", np.zeros(len(array) if array.shape else 1)), "--steps", 2)

        self.each(BROKEN, check)


class Sets(Sweep):
    def test_select(self):
        def check(name, x, array):
            self.call("select", x)
            self.call("select", x, "--norm", "layer", "--eps", 0)

        self.each(ROWS, check)

    def test_select_of_broken_arrays(self):
        def check(name, x, array):
            self.assertEqual(self.call("select", x) is None, name != "no rows")

        self.each(BROKEN, check)

    def test_select_is_independent_of_scale(self):
        keys = np.vstack([np.random.default_rng(6).normal(size=(12, 2)), np.zeros((1, 2))])
        answers = [self.answer("select", self.save("x.npy", np.ldexp(keys, exponent))) for exponent in (0, 90, -90)]
        for scaled in answers[1:]:
            self.assertEqual(scaled["unselectable"], answers[0]["unselectable"])
            self.assertEqual(scaled["undecided"], [])

    def test_separate(self):
        def check(name, x, array):
            self.call("separate", x, self.save("b.npy", array[::-1] + 1.0))
            self.call("separate", x, "--labels", self.save("labels.npy", LABELS[:len(array)]))

        self.each(ROWS, check)

    def test_separate_of_broken_arrays(self):
        def check(name, x, array):
            self.refused("separate", x, self.save("b.npy", RANDOM))

        self.each(BROKEN, check)

    def test_separate_is_independent_of_scale(self):
        a = np.random.default_rng(7).normal(size=(6, 3))
        b = a + np.array([2.0, 0.0, 0.0])
        answers = [self.answer("separate", self.save("a.npy", np.ldexp(a, exponent)),
                               self.save("b.npy", np.ldexp(b, exponent))) for exponent in (0, 90, -90)]
        for scaled in answers[1:]:
            self.assertEqual(scaled["separable"], answers[0]["separable"])
            self.assertAlmostEqual(scaled["ssr"], answers[0]["ssr"], 12)
            self.assertAlmostEqual(scaled["lssr"], answers[0]["lssr"], 12)

    def test_reach(self):
        def check(name, x, array):
            gain = self.save("g.npy", np.ones(array.shape[1]))
            self.call("reach", "--unembedding", x, "--gain", gain)
            self.call("reach", "--unembedding", self.save("o.npy", np.random.default_rng(8).normal(size=array.shape)),
                      "--gain", self.save("g.npy", array[0]), "--bias", self.save("b.npy", array[-1]))

        self.each(ROWS, check)

    def test_reach_of_broken_arrays(self):
        def check(name, x, array):
            self.refused("reach", "--unembedding", x, "--gain", self.save("g.npy", np.ones(3)))

        self.each(BROKEN, check)

    def test_reach_is_independent_of_scale(self):
        weights = np.vstack([np.random.default_rng(9).normal(size=(10, 3)), np.zeros((1, 3))])
        gain = self.save("g.npy", np.ones(3))
        answers = [self.answer("reach", "--unembedding", self.save("w.npy", np.ldexp(weights, exponent)), "--gain", gain)
                   for exponent in (0, 90, -90)]
        for scaled in answers[1:]:
            for answer in ("unreachable", "undecided"):
                self.assertEqual([token["token"] for token in scaled[answer]],
                                 [token["token"] for token in answers[0][answer]])


def tiny_gpt2(scale_of=None, scale=1.0):
    """A GPT-2 of one layer in float64, one of its tensors scaled."""
    random = np.random.default_rng(10)
    shapes = {"wte.weight": (6, 4), "wpe.weight": (8, 4), "h.0.ln_1.weight": (4,), "h.0.ln_1.bias": (4,),
              "h.0.attn.c_attn.weight": (4, 12), "h.0.attn.c_attn.bias": (12,), "h.0.attn.c_proj.weight": (4, 4),
              "h.0.attn.c_proj.bias": (4,), "h.0.ln_2.weight": (4,), "h.0.ln_2.bias": (4,), "h.0.mlp.c_fc.weight": (4, 8),
              "h.0.mlp.c_fc.bias": (8,), "h.0.mlp.c_proj.weight": (8, 4), "h.0.mlp.c_proj.bias": (4,), "ln_f.weight": (4,),
              "ln_f.bias": (4,)}
    tensors = {name: 0.5 + 0.5 * random.normal(size=shape) for name, shape in shapes.items()}
    if scale_of:
        tensors[scale_of] = tensors[scale_of] * scale
    return tensors


class Checkpoints(Sweep):
    CASES = [("h.0.ln_1.weight", 1e200), ("h.0.ln_1.weight", 1e308), ("h.0.ln_1.weight", 1e-310), ("h.0.ln_1.weight", 0.0),
             ("h.0.ln_2.bias", 1e308), ("h.0.ln_2.bias", np.nan), ("ln_f.weight", np.inf), ("ln_f.bias", 1e200),
             ("wte.weight", 1e200), ("wte.weight", 1e-155), ("wte.weight", 0.0), ("wte.weight", np.nan),
             ("h.0.attn.c_attn.weight", 1e200), ("h.0.attn.c_attn.weight", 1e-200), ("h.0.attn.c_attn.weight", np.nan)]

    def model(self, *scaled):
        folder = self.folder / "model"
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_head": 2, "layer_norm_epsilon": 1e-5}))
        safetensors(folder / "model.safetensors", tiny_gpt2(*scaled))
        return "model"

    def test_report_heads_and_reach(self):
        for case in self.CASES:
            with self.subTest(case):
                model = self.model(*case)
                document = self.answer("report", model, "-o", "r.html")
                self.assertIsNone(NOT_A_NUMBER.search(" ".join(f["text"] for f in document["findings"])))
                for norm in document["norms"][:1]:
                    self.assertNotIn("nan", norm["reproduce"])
                if case[0] == "h.0.ln_1.weight":
                    self.call("geometry", "--gain", f"{model}:{case[0]}")
                if "attn" in case[0] or "ln_1" in case[0]:
                    self.call("heads", model, "--proofs")
                if "wte" in case[0] or "ln_f" in case[0]:
                    self.coarse = case == ("ln_f.bias", 1e200)  # beside which the tokens' rows are nothing
                    self.call("reach", model)
                    self.coarse = False

    def test_the_image_is_independent_of_the_scale_of_the_gain(self):
        plain, large, small = (self.answer("report", self.model("h.0.ln_1.weight", 2.0**k), "-o", "r.html")["norms"][0]
                               for k in (0, 900, -900))
        for scaled in (large, small):
            for key in ("condition", "effective_dimension", "energy_top_1", "semi_axes"):
                self.assertEqual(scaled["image"][key], plain["image"][key], key)

    def test_inspect_of_odd_shapes(self):
        for name, array in {**ROWS, **BROKEN}.items():
            with self.subTest(name):
                safetensors(self.folder / "m.safetensors", {"norm.weight": np.asarray(array, float), "ln.weight": np.ravel(array)})
                done = self.run_command("inspect", "m.safetensors", "--json", "-")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                document = json.loads(done.stdout, parse_constant=no_constant)
                self.as_its_schema_says(document)
                self.answer("report", "m.safetensors", "-o", "r.html")


class Options(Sweep):
    def test_numbers_that_options_take(self):
        self.save("x.npy", RANDOM)
        for value in ("nan", "inf", "-inf", "1e999", "-1"):
            for words in (["geometry", "--width", "3", "--eps"], ["apply", "x.npy", "-o", "y.npy", "--eps"],
                          ["select", "x.npy", "--tolerance"], ["curvature", "x.npy", "--eps"],
                          ["nets", "build", "x.npy", "--random-labels", "2", "-o", "n.safetensors", "--eps"],
                          ["nets", "train", "xor", "--steps", "1", "--lr"]):
                with self.subTest((*words, value)):
                    done = self.run_command(*words, value)
                    self.assertIn(done.returncode, (2, 3), done.stdout + done.stderr)
                    self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_count(self):
        self.answer("nets", "count", "--quiet")


if __name__ == "__main__":
    unittest.main()

"""`normscope attribute`: its numbers are those of NumPy, by the definitions and by models with parts of them taken out."""

import itertools
import json
import sys
import unittest

import numpy as np

from command import OWN_MODEL, SOURCE, CommandTest, fixture
from forward_pass import ONE_IS_ADDED, RMS, Decoder
from signature_models import STORIES, stories

sys.path.insert(0, str(SOURCE / "python/normscope"))
import model_checker  # noqa: E402

WORD = "understandin"
VOCABULARY = json.loads((OWN_MODEL / "vocab.json").read_text())
IDS = np.array([VOCABULARY[letter] for letter in WORD])
TARGET = VOCABULARY["g"]


def without(name):
    """The bundled model with the weights of one component set to zero."""
    model = Decoder(OWN_MODEL)
    w, at = {key: value.copy() for key, value in model.w.items()}, "transformer."
    layer, _, part = name.partition(".")
    if name == "position":
        w[at + "wpe.weight"][:] = 0
    elif name == "embedding":
        w[at + "wte.weight"][:] = 0
    elif part.isdigit():
        w[f"{at}h.{layer}.attn.c_proj.weight"][16 * int(part):16 * int(part) + 16] = 0
    else:
        kind, _, bias = part.partition("_")
        w[f"{at}h.{layer}.{'attn' if kind == 'attention' else 'mlp'}.c_proj.{bias or 'weight'}"][:] = 0
    model.w = w
    return model


class Kept(Decoder):
    """A pass, and then passes with its weights of attention, its divisors of norms and its outputs of MLPs, without a head."""

    def __init__(self, folder):
        super().__init__(folder)
        self.config["final_logit_softcapping"] = None
        self.kept, self.without = {}, None

    def keep(self, key, value):
        return self.kept.setdefault(key, value)

    def norm(self, x, name, of_stream=True):
        gain = self.w[f"{name}.weight"] + (self.kind in ONE_IS_ADDED)
        x = x - x.mean(-1, keepdims=True) if self.kind not in RMS else x
        return x / self.keep(name, np.sqrt((x * x).mean(-1, keepdims=True) + self.eps)) * gain + self.w.get(f"{name}.bias", 0.0)

    def weighted(self, weights, values):
        self.layer += 1
        result = self.keep(self.layer, weights) @ values
        if self.without and self.without[0] == self.layer:
            result[self.without[1]] = 0
        return result

    def mlp(self, x, at):
        return self.keep(at, super().mlp(x, at))

    def logits(self, ids, without=None):
        self.without, self.layer = without, -1
        return super().logits(ids)


class Attribute(CommandTest):
    def attributed(self, *options):
        document = self.json("attribute", OWN_MODEL, WORD, "--target", "g", "-q", *options)
        self.conforms("attribute", document)
        return document

    def test_total_effects_are_those_of_models_without_the_component(self):
        document = self.attributed()
        whole = Decoder(OWN_MODEL).logits(IDS)[-1, TARGET]
        self.assertAlmostEqual(document["value"], whole, delta=1e-9)
        self.assertAlmostEqual(document["value"], document["constant"] + sum(c["share"] for c in document["components"]), delta=1e-9)
        names = [component["name"] for component in document["components"]]
        self.assertEqual(len(names), 2 + 4 * (4 + 1 + 1 + 1))
        for component in document["components"]:
            left = without(component["name"]).logits(IDS)[-1, TARGET]
            self.assertAlmostEqual(component["rerun"], left - whole, delta=1e-9, msg=component["name"])

    def test_path_sums_are_runs_with_all_else_kept(self):
        for path, ids in ((OWN_MODEL, IDS), *((fixture(name), np.array([1, 7, 3, 5, 2])) for name in ("llama", "gemma2", "granite", "gptj"))):
            document = self.json("attribute", path, "--tokens", ",".join(map(str, ids)), "--target", 4, "--most-removed", 0, "-q")
            model = Kept(path)
            whole = model.logits(ids)[-1, 4]
            self.assertAlmostEqual(document["value"], whole, delta=1e-9)
            heads = [component for component in document["components"] if component["name"].partition(".")[2].isdigit()]
            self.assertGreater(len(heads), 3)
            for component in heads:
                layer, head = map(int, component["name"].split("."))
                left = model.logits(ids, without=(layer, head))[-1, 4]
                self.assertAlmostEqual(component["paths"], left - whole, delta=1e-9, msg=f"{path} {component['name']}")

    def test_no_context_has_a_larger_share(self):
        bounded = self.attributed("--all-contexts", "--budget", 0)
        self.assertTrue(all(component["anywhere"] for component in bounded["components"]))
        self.assertEqual({component["anywhere"] for component in self.attributed("--budget", 0)["components"]}, {None})
        for word in ("a", "zzzz", "qu", "the", "understandin"):
            other = self.json("attribute", OWN_MODEL, word, "--target", "g", "--budget", 0, "--most-removed", 0, "-q")
            scale = min(1.0, other["divisor"] / bounded["divisor"])  # of a smaller divisor nothing is said
            for component, bound in zip(other["components"], bounded["components"], strict=True):
                self.assertLessEqual(bound["anywhere"]["least"], component["share"] * scale)
                self.assertGreaterEqual(bound["anywhere"]["most"], component["share"] * scale)

    def test_both_checkers_prove_shares_over_all_contexts(self):
        cases = [(OWN_MODEL, WORD, "g", 30), *((fixture(name), None, 4, None) for name in ("gpt2", "opt", "llama", "gptj", "granite", "gemma2", "falcon_7b"))]
        for path, word, target, count in cases:
            text = (word,) if word else ("--tokens", "1,7,3,5,2")
            document = self.json("attribute", path, *text, "--target", target, "--budget", 0, "--most-removed", 1, "--all-contexts", "--proofs", "-q")
            self.conforms("attribute", document)
            bounded = [k for k, component in enumerate(document["components"]) if component["anywhere"]]
            self.assertEqual([k for k, source in enumerate(document["proof"]["shares"]) if source], bounded)
            self.assertEqual(len(bounded), count or len(bounded))
            (self.folder / "result.json").write_text(json.dumps(document))
            self.run_command("verify", "result.json", "--json", "found.json", "-q")
            found = json.loads((self.folder / "found.json").read_text())
            outcome = model_checker.check(json.dumps(document), model_checker.Tensors(path))
            self.assertEqual((found["failed"], outcome.failed), ([], []), path)
            unproved = {entry["item"] for entry in found["not_checkable"]} | {item for item, _ in outcome.unproved}
            self.assertFalse([item for item in unproved if "anywhere" in item], path)
            self.assertGreaterEqual(len(bounded), 3, path)

    def test_runs_show_that_replacements_and_freezes_hold(self):
        for removal in ("zero", "mean"):
            check = self.attributed("--replace-with", removal)["check"]
            self.assertEqual((check["null_patch"], check["differing"]), (0, 0))
            self.assertAlmostEqual(check["freeze"]["by_run"], check["freeze"]["by_paths"], delta=1e-9 * abs(check["freeze"]["by_paths"]))
        self.assertIsNone(self.attributed("--budget", 0)["check"])

    def proved(self, *options):
        """The document, u, v and the changes of its proof, and s."""
        return self.parts(self.attributed("--proofs", "--budget", 0, *options))

    @staticmethod
    def parts(document):
        proof = document["proof"]
        u, v, d = (np.array(proof[name]) for name in ("row", "direction", "changes"))
        return document, u, v, d, lambda row: np.sqrt((row @ row) / proof["squared_radius"] + proof["eps"])

    def expect_effects(self, document, u, v, d, s):
        gradient = (v - (v @ u) * u / (len(u) * s(u) ** 2)) / s(u)
        for component, change in zip(document["components"], d, strict=True):
            exact = v @ (u + change) / s(u + change) - v @ u / s(u)
            for field, expected in (("exact", exact), ("frozen", v @ change / s(u)), ("gradient", gradient @ change)):
                self.assertAlmostEqual(component[field], expected, delta=1e-9)
            self.assertAlmostEqual(component["price"], component["exact"] - component["frozen"], delta=1e-12)
            self.assertLessEqual(abs(component["exact"] - component["gradient"]), component["remainder"] + 1e-12)
            if document["removal"] == "zero":
                half = (v @ change / s(u) + (v @ u) * (u @ change) / (len(u) * s(u) ** 3)) / 2
                self.assertAlmostEqual(component["rules"]["gradient_input"], -gradient @ change, delta=1e-9)
                self.assertAlmostEqual(component["rules"]["half_rule"], -half, delta=1e-9)

    def test_effects_in_random_models(self):
        for name in ("gpt2", "llama", "gptj", "gemma2", "granite"):
            document = self.json("attribute", fixture(name), "--tokens", "1,7,3,5,2", "--target", 4, "--against", 9, "--proofs", "--budget", 0, "-q")
            self.expect_effects(*self.parts(document))

    def test_effects_are_those_of_the_norm_run_again(self):
        for options in ((), ("--replace-with", "mean"), ("--against", "e", "--at", "5")):
            document, u, v, d, s = self.proved(*options)
            self.expect_effects(document, u, v, d, s)
            if not options:  # what is removed is what was there
                self.assertLess(np.abs(d.sum(0) + u).max(), 1e-9 * np.abs(d).sum(0).max())

    @unittest.skipUnless(STORIES.exists(), "the checkpoint is not there")
    def test_effects_in_a_model_of_llama(self):
        ids = "1,403,407,261,378,432,383"
        document = self.json("attribute", STORIES, "--tokens", ids, "--target", 286, "--proofs", "-q")
        self.expect_effects(*self.parts(document))
        expected = stories(np.array([[int(token) for token in ids.split(",")]]))[0, -1, 286]
        self.assertAlmostEqual(document["value"], expected, delta=1e-4)
        self.assertEqual(len(document["components"]), 1 + 5 * (8 + 1))
        last = next(component for component in document["components"] if component["name"] == "4.mlp")
        self.assertAlmostEqual(last["rerun"], last["exact"], delta=1e-9)

    def test_no_set_leaves_the_bounds(self):
        document, u, v, d, s = self.proved("--most-removed", "12")
        before, bounds = s(u), document["bounds"]
        self.assertEqual({bound["proof"] for bound in bounds}, {"every_set"})
        draw = np.random.default_rng(1)

        def price(chosen):
            left = u + d[list(chosen)].sum(0)
            return before / s(left), v @ left * (1 / s(left) - 1 / before)

        def expect(chosen):
            factor, cost = price(chosen)
            for bound in bounds[len(chosen) - 1:]:
                self.assertTrue(bound["least"] <= factor <= bound["most"])
                self.assertTrue(bound["least_price"] <= cost <= bound["most_price"])
            return factor, cost

        for count in (1, 2):
            for chosen in itertools.combinations(range(len(d)), count):
                expect(chosen)
        # Ascent by exchanges from random sets, of each of the four numbers.
        for index, sign in itertools.product((0, 1), (1, -1)):
            for count in (3, 6, 12):
                inside = list(draw.permutation(len(d))[:count])
                for _ in range(6):
                    swaps = [[*(k for k in inside if k != out), new] for out in inside for new in range(len(d)) if new not in inside]
                    inside = max([inside, *swaps], key=lambda chosen: sign * price(chosen)[index])
                best = expect(inside)[index]
                bound = bounds[count - 1]
                name = ("least" if sign < 0 else "most") + ("_price" if index else "")
                attained = bound["attained_" + name]["value"]
                self.assertLessEqual(sign * best, sign * attained + 1e-6 * abs(attained))
        names = [component["name"] for component in document["components"]]
        for bound in bounds:
            for index, name in itertools.product((0, 1), ("least", "most")):
                attained = bound["attained_" + name + ("_price" if index else "")]
                chosen = [names.index(component) for component in attained["components"]]
                self.assertLessEqual(len(chosen), bound["removed"])
                self.assertAlmostEqual(attained["value"], price(chosen)[index] if chosen else 1 - index, delta=1e-9)

    def checked(self, document):
        """The exit statuses of both checkers, and the fields that fail in both."""
        outcome = model_checker.check(json.dumps(document), model_checker.Tensors(OWN_MODEL))
        (self.folder / "result.json").write_text(json.dumps(document))
        status = self.run_command("verify", "result.json", "--json", "found.json", "-q").returncode
        failed = {entry["item"] for entry in json.loads((self.folder / "found.json").read_text())["failed"]}
        self.assertEqual(outcome.exit_status, status)
        return status, failed & {path for path, _ in outcome.failed}

    def test_checkers_prove_relaxations(self):
        """Of tangents on an edge and at 0, with no diagonal below and the sums of the rows above."""
        document, u, v, d, s = self.proved("--most-removed", 1)
        gram, lines = d @ d.T, d @ u
        sums = abs(gram).sum(1) * (1 + 1e-9)
        zeros = [0.0] * len(d)
        tangent = lambda z: u @ u - z @ gram @ z + min(0, (2 * lines + 2 * gram @ z).min())
        point = max((t * np.eye(len(d))[lines.argmin()] for t in np.linspace(0, 1, 101)), key=tangent)
        low, high = tangent(point), u @ u + max(0, (2 * lines + sums).max())
        factors = [s(u) / np.sqrt(square / 64 + document["proof"]["eps"]) for square in (low, high)]
        reads = [v @ u + min(0, (d @ v).min()), v @ u + max(0, (d @ v).max())]
        prices = [read * (factor - 1) / s(u) for read in reads for factor in factors]
        document["bounds"][0] |= {"proof": "relaxation", "most": factors[0], "least": factors[1], "least_price": min(prices),
                                  "most_price": max(prices), "below": {"diagonal": zeros, "point": point.tolist()},
                                  "above": {"diagonal": sums.tolist(), "point": zeros}}
        self.assertEqual(self.checked(document), (4, set()))
        for change, wrong in (
            (lambda bound: bound.update(most=0.9999 * bound["most"]), "most"),
            (lambda bound: bound.update(least=1.0001 * bound["least"]), "least"),
            (lambda bound: bound.update(most_price=0.99 * bound["most_price"]), "most_price"),
            (lambda bound: bound["below"].update(diagonal=sums.tolist()), "most"),
            (lambda bound: bound["above"].update(diagonal=[0.5 * x for x in bound["above"]["diagonal"]]), "least"),
            (lambda bound: bound["below"].update(point=[1.0] * len(d)), "most"),
            (lambda bound: bound.pop("below"), "most"),
        ):
            false = json.loads(json.dumps(document))
            change(false["bounds"][0])
            status, failed = self.checked(false)
            self.assertEqual(status, 1, wrong)
            self.assertIn(f"bounds[0].{wrong}", failed)

    def test_a_circuit_is_the_model_with_the_others_at_their_means(self):
        kept = ["embedding", "1.3", "2.mlp", "3.mlp"]
        document = self.attributed("--keep", ",".join(kept), "--budget", 0)
        means, u, v, d, s = self.proved("--replace-with", "mean")
        others = sum(change for component, change in zip(means["components"], d) if component["name"] not in kept)
        circuit = document["circuit"]
        self.assertAlmostEqual(circuit["exact"], v @ (u + others) / s(u + others) + document["constant"], delta=1e-9)
        self.assertAlmostEqual(circuit["frozen"], v @ (u + others) / s(u) + document["constant"], delta=1e-9)
        self.assertIsNone(circuit["rerun"])
        again = self.attributed("--keep", ",".join(component["name"] for component in document["components"]))["circuit"]
        self.assertEqual((again["exact"], again["rerun"]), (document["value"], document["value"]))

    def test_components_and_replacements_from_files(self):
        _, u, v, d, s = self.proved()
        np.save(self.folder / "rows.npy", -d)
        refusal = self.fails(3, "attribute", OWN_MODEL, WORD, "--target", "g", "--components", "rows.npy")
        self.assertIn("do not add up to the row that enters transformer.ln_f", refusal)  # centred: the mean is missing
        rows = self.stream(OWN_MODEL)
        np.save(self.folder / "rows.npy", [0.25 * rows, 0.75 * rows])
        document = self.attributed("--components", "rows.npy")
        self.assertEqual([c["rerun"] for c in document["components"]], [None, None])
        self.assertAlmostEqual(document["components"][0]["share"], 0.25 * (document["value"] - document["constant"]), delta=1e-9)
        # Replaced by itself, a component has no effect, to the last bit; and by the other row, a known one.
        np.save(self.folder / "same.npy", [0.25 * rows, 0.5 * rows])
        document = self.attributed("--components", "rows.npy", "--replace-with", "same.npy")
        self.assertEqual([document["components"][0][name] for name in ("frozen", "price", "exact", "gradient", "remainder")], [0] * 5)
        other = document["components"][1]
        self.assertAlmostEqual(other["frozen"], -0.25 * (document["value"] - document["constant"]), delta=1e-9)

    @staticmethod
    def stream(folder):
        """The row that enters the final norm."""
        seen = []

        class Recorded(Decoder):
            def norm(self, x, name, of_stream=True):
                seen.append(x)
                return super().norm(x, name, of_stream)

        Recorded(folder).logits(IDS)
        return seen[-1][-1]

    def test_outputs(self):
        out = self.ok("attribute", OWN_MODEL, WORD, "--target", "g", "--keep", "3.mlp", "--all-contexts", "-o", "a.html")
        for part in ('logit of token 8 "g" after position 11', "component", "what is left of any logit", "keeping 3.mlp only:",
                     "run again with each component as it was: 0 differ, the logit by 0; frozen"):
            self.assertIn(part, out)
        page = (self.folder / "a.html").read_text()
        for part in ("normscope.attribute/1", '"attribution"', '"attribution-positions"', '"attribution-sets"', '"attribution-ranges"'):
            self.assertIn(part, page)

    @unittest.skipUnless(STORIES.exists(), "the checkpoint is not there")
    def test_names_of_the_vocabulary(self):
        names = ("--names", STORIES.parent / "tok512.bin", "--budget", 0, "-q")
        by_name = self.json("attribute", STORIES, "Once upon a", "--target", " time", *names)
        by_id = self.json("attribute", STORIES, "Once upon a", "--target", by_name["target"]["token"], *names)
        self.assertEqual(by_name, by_id)

    def test_tokens_are_shown_as_text(self):
        command = ("attribute", SOURCE / "models/kjv_gpt", "In the beginning", "--budget", 0, "--most-removed", 1, "--target")
        by_text, by_spelling = (self.json(*command, name, "-q") for name in (" God", "\u0120God"))
        self.assertEqual(by_text, by_spelling)
        self.assertEqual(by_text["target"]["name"], " God")
        out = self.ok(*command, " God", "-o", "a.html")
        self.assertNotIn("\u0120", out + (self.folder / "a.html").read_text())

    def test_the_frozen_change_is_printed_where_it_is_not_the_share(self):
        header = lambda *options: self.ok("attribute", OWN_MODEL, WORD, "--target", "g", "--budget", 0, *options).splitlines()[2].split()
        self.assertEqual(header()[:4], ["component", "share", "price", "exact"])
        self.assertEqual(header("--replace-with", "mean")[:5], ["component", "share", "frozen", "price", "exact"])
        self.assertEqual(header("--rules")[-4:], ["paths", "grad*input", "half", "rule"])

    def test_bad_input(self):
        def refused(*options, status=3):
            return self.fails(status, "attribute", OWN_MODEL, WORD, *options)

        self.assertIn("target 99 is not in the vocabulary, expected 0 to 27", refused("--target", 99))
        self.assertIn('token: "zz" is not in the vocabulary, which spells it with 2 tokens', refused("--target", "zz"))
        self.assertIn("--target is required", refused(status=2))
        self.assertIn("position 12 is not in the text, expected 0 to 11", refused("--target", "g", "--at", 12))
        self.assertIn('"4.mlp" is not a component, expected names such as embedding', refused("--target", "g", "--keep", "4.mlp"))
        np.save(self.folder / "one.npy", np.zeros((1, 64)))
        self.assertIn("1 replacements, expected one for each of 30 components", refused("--target", "g", "--replace-with", "one.npy"))
        np.save(self.folder / "narrow.npy", np.zeros((30, 63)))
        self.assertIn("63 features, expected 64", refused("--target", "g", "--replace-with", "narrow.npy"))
        self.assertIn("not modelled", self.fails(3, "attribute", fixture("bert"), "--tokens", "1,2", "--target", 3))
        # Its factors of branches, keys and logits are known, but not what its state-space layers compute.
        self.assertIn("not modelled: the forward pass of Falcon-H1",
                      self.fails(3, "attribute", fixture("falcon_h1"), "--tokens", "1,2", "--target", 3))


if __name__ == "__main__":
    unittest.main()

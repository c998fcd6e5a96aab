"""`normscope verify`: good results pass, and any change of one is found."""

import json
import unittest

import numpy as np

from command import CHECKPOINTS, OWN_MODEL
from results import ResultTest


class Verify(ResultTest):
    # select

    def keys(self, scale=1.0):
        keys = np.random.default_rng(1).normal(size=(60, 3)) * scale
        keys[7] = keys[3]
        keys[20] = 0.25 * keys[0] + 0.75 * keys[1]
        np.save(self.folder / "keys.npy", keys)
        return keys

    def test_keys_pass(self):
        for scale in (1.0, 1e29, 1e-59):
            self.keys(scale)
            document = self.result("select", "keys.npy")
            self.assertEqual({verdict["proof"] for verdict in document["verdicts"]},
                             {"own_direction", "query", "weights", "twin"})
            self.assertEqual(self.passes()["not_checkable"], [], scale)
        self.passes("keys.npy")
        for few in ([[1.0, 2.0]], np.zeros((0, 3))):
            np.save(self.folder / "keys.npy", few)
            self.result("select", "keys.npy")
            self.passes()

    def test_keys_behind_a_norm_pass(self):
        np.save(self.folder / "keys.npy", np.random.default_rng(1).normal(size=(80, 6)))
        np.save(self.folder / "gain.npy", np.linspace(0.5, 2, 6))
        for options in (("--norm", "rms", "--gain", "gain.npy"), ("--norm", "layer", "--step", "project"),
                        ("--norm", "layer", "--gain", "gain.npy", "--gain-offset", 1)):
            self.result("select", "keys.npy", *options)
            self.passes(*(("keys.npy", "gain.npy") if "gain.npy" in options else ("keys.npy",)))

    def test_changed_verdicts_of_keys_are_caught(self):
        keys = self.keys()
        document = self.result("select", "keys.npy")
        verdicts = document["verdicts"]

        def of(proof):
            return next(i for i, verdict in enumerate(verdicts) if verdict["proof"] == proof)

        def unselectable(forged):
            forged["verdicts"][of("query")] = {"answer": "unselectable", "proof": "weights", "residual": 0,
                                               "weights": [{"key": 1, "weight": 1}]}

        def selectable(forged):
            forged["verdicts"][of("weights")] = {"answer": "selectable", "proof": "query", "margin": 1e-9,
                                                 "query": [1.0, 0, 0]}

        query = np.array(verdicts[of("query")]["query"])
        attained = np.min(np.delete(keys[of("query")] - keys, of("query"), axis=0) @ query) / np.linalg.norm(query)

        changes = {
            "selectable, unselectable, undecided": [unselectable, selectable,
                                                    lambda forged: forged.update(selectable=1),
                                                    lambda forged: forged["unselectable"].pop()],
            "smaller margin than stated": [
                lambda forged: forged["verdicts"][of("query")].update(margin=(1 + 1e-6) * attained),
                lambda forged: forged["verdicts"][of("own_direction")].update(margin=10.0),
                lambda forged: forged["verdicts"][of("query")]["query"].reverse()],
            "not the mean of the distinct keys": [lambda forged: forged.update(center=[9.0, 9.0, 9.0])],
            "farther away than stated": [
                lambda forged: forged["verdicts"][of("weights")]["weights"][0].update(weight=0.5)],
            "on itself": [lambda forged: forged["verdicts"][of("weights")]["weights"][0].update(key=of("weights"))],
            "equal another key": [lambda forged: forged["verdicts"][of("twin")]["weights"][0].update(key=1)],
            "tolerance * scale": [lambda forged: forged["verdicts"][of("weights")].update(residual=1e-6)],
            "scale": [lambda forged: forged.update(scale=1.000001 * document["scale"])],
            "proofs": [lambda forged: forged["proofs"].update(query=0)],
            "margin.least": [lambda forged: forged["margin"].update(least=0.5)],
        }
        for reason, forgeries in changes.items():
            for change in forgeries:
                self.assertIn(reason, self.caught(document, change))

    def test_margins_are_tight(self):
        """A margin that is attained cannot be claimed to be any larger."""
        np.save(self.folder / "keys.npy", [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.5 + 2**-30]])
        document = self.result("select", "keys.npy", "--tolerance", 0)
        for index, verdict in enumerate(document["verdicts"]):
            if verdict["proof"] == "query":
                self.caught(document, lambda forged, i=index, m=verdict["margin"]:
                            forged["verdicts"][i].update(margin=m * (1 + 1e-6)))

    # separate

    def test_separations_pass(self):
        random = np.random.default_rng(2)
        a, b = random.normal(size=(40, 3)), random.normal(size=(30, 3))
        cross = np.array([[1.0, 0, 0], [-1, 0, 0]]), np.array([[0, 1.0, 0], [0, -1, 0]])
        for one, other, answer in ((a + 6, b, "yes"), (*cross, "no")):
            np.save(self.folder / "a.npy", one)
            np.save(self.folder / "b.npy", other)
            document = self.result("separate", "a.npy", "b.npy")
            self.assertEqual(document["separable"], answer)
            self.assertLessEqual({finding["item"] for finding in self.passes()["not_checkable"]},
                                 {"lssr", "rank"} | ({"offset"} if answer == "no" else set()))
        np.save(self.folder / "x.npy", np.concatenate([a + 6, b, a - 20]))
        np.save(self.folder / "y.npy", np.repeat([3, 1, 2], [40, 30, 40]))
        self.result("separate", "x.npy", "--labels", "y.npy", "--classes", "3,1")
        self.passes("x.npy", "y.npy")
        self.result("separate", "x.npy", "--labels", "y.npy")
        self.passes()

    def test_changed_separations_are_caught(self):
        random = np.random.default_rng(2)
        np.save(self.folder / "a.npy", random.normal(size=(40, 3)) + 6)
        np.save(self.folder / "b.npy", random.normal(size=(30, 3)))
        yes = self.result("separate", "a.npy", "b.npy")
        for reason, change in (
                ("by less than stated", lambda forged: forged.update(margin=yes["margin"] * (1 + 1e-6))),
                ("by less than stated", lambda forged: forged["normal"].reverse()),
                ("between the sets", lambda forged: forged.update(offset=yes["offset"] + yes["margin"])),
                ("farther apart than stated", lambda forged: forged.update(residual=yes["residual"] * (1 - 1e-6))),
                ("separable is no", lambda forged: forged.update(separable="no")),
                ("sums of squares", lambda forged: forged.update(ssr=yes["ssr"] * (1 + 1e-6))),
                ("scale", lambda forged: forged.update(scale=yes["scale"] * (1 + 1e-6))),
                ("farther apart than stated", lambda forged: forged["a"][0].update(row=(yes["a"][0]["row"] + 1) % 40)),
                ("not weights", lambda forged: forged.update(b=[{"row": 0, "weight": 0.0}]))):
            with self.subTest(reason):
                self.assertIn(reason, self.caught(yes, change))
        np.save(self.folder / "a.npy", random.normal(size=(40, 3)))
        no = self.result("separate", "a.npy", "b.npy")
        self.assertEqual(no["separable"], "no")
        for reason, change in (("does not separate the sets", lambda forged: forged.update(separable="yes")),
                               ("than the tolerance", lambda forged: forged.update(residual=1e-3)),
                               ("farther apart than stated", lambda forged: forged["a"][0].update(row=0, weight=0.3))):
            self.assertIn(reason, self.caught(no, change))

    def test_exact_separations_pass(self):
        third = 1 / 3
        line = [[0, 0], [1, 1], [3, 3]]
        sets = (line, [[third, third], [third, 5]], "no"), (line, [[third, np.nextafter(third, 1)], [third, 5]], "yes")
        for a, b, answer in sets:
            np.save(self.folder / "a.npy", np.array(a, float))
            np.save(self.folder / "b.npy", np.array(b, float))
            document = self.result("separate", "a.npy", "b.npy", "--exact")
            self.assertEqual(document["separable"], answer)
            self.assertLessEqual({finding["item"] for finding in self.passes()["not_checkable"]}, {"lssr", "rank", "offset"})
            other = "yes" if answer == "no" else "no"
            self.assertIn("not the exact answer", self.caught(document, lambda forged: forged.update(separable=other)))
            changes = [lambda forged: forged["exact"].update(denominator="1")] if answer == "no" else []
            changes += [lambda forged: forged["exact"]["a"][0].update(row=1)] if answer == "no" else []
            changes += [lambda forged: forged["exact"]["normal"].reverse()] if answer == "yes" else []
            for change in changes:
                self.assertIn("the integers do not prove", self.caught(document, change))
        # Cases without a margin: sets with one mean, a gap below rounding.
        middle = [[0.2, np.nextafter(0.6, 1)], [0.2, 9]]
        for a, b, answer in ([[3, 4]], [[3, 4]], "no"), ([[0.1, 0.3], [0.3, 0.9]], middle, "yes"):
            np.save(self.folder / "a.npy", np.array(a, float))
            np.save(self.folder / "b.npy", np.array(b, float))
            self.assertEqual(self.result("separate", "a.npy", "b.npy", "--exact")["separable"], answer)
            self.passes()
            self.result("separate", "a.npy", "b.npy")
            self.passes()

    # reach

    def head(self, rows=80, width=4, bias=True):
        """Arrays with unreachable tokens, some of them unreachable only because states stay in the ball."""
        random = np.random.default_rng(3)
        weights = random.normal(size=(rows, width))
        weights[5] = weights[6:9].mean(axis=0)
        weights[40] = weights[41]
        offsets = random.normal(size=rows)
        offsets[40] = offsets[41]
        np.save(self.folder / "w.npy", weights)
        np.save(self.folder / "c.npy", 2 * offsets)
        np.save(self.folder / "g.npy", random.uniform(0.5, 1.5, width))
        np.save(self.folder / "b.npy", random.normal(size=width))
        arrays = ["--unembedding", "w.npy", *(("--unembedding-bias", "c.npy") if bias else ()), "--gain", "g.npy"]
        return arrays + (["--bias", "b.npy"] if bias else [])

    def test_tokens_pass(self):
        for norm in ("layer", "rms", "spherical"):
            for bias in (True, False):
                document = self.result("reach", *self.head(bias=bias), "--norm", norm, "--probability", "full")
                self.assertGreater(len(document["unreachable"]), 0)
                self.assertEqual(self.passes()["not_checkable"], [], (norm, bias))
        self.result("reach", *self.head(), "--norm", "rms", "--probability", "quick")
        self.passes("w.npy", "c.npy", "g.npy", "b.npy")
        self.result("reach", OWN_MODEL)
        self.passes(OWN_MODEL)
        self.result("reach", "--unembedding", "1,2,3", "--norm", "layer")
        self.passes()

    def test_a_token_s_own_direction_is_recomputed(self):
        weights = np.random.default_rng(3).normal(size=(80, 4))
        np.save(self.folder / "w.npy", weights)
        document = self.result("reach", "--unembedding", "w.npy", "--norm", "rms", "--probability", "quick")
        rows = 2 * (weights - weights.mean(axis=0))
        own = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        leads = [np.min(np.delete(rows[i] - rows, i, axis=0) @ own[i]) for i in range(80)]
        token = int(np.argmax(leads))
        for factor, status in ((1 - 1e-9, 0), (1 + 1e-9, 1)):
            document["proofs"][token]["witness"] = "own_direction"
            document["lead"]["lower"][token] = leads[token] * factor
            document["nearest"], document["max_probability"]["lower"][token] = [], 0.0
            (self.folder / "result.json").write_text(json.dumps(document))
            self.verified(status=status)

    def test_probabilities_are_those_of_logits_not_of_their_units(self):
        # Weights and gains that are scaled apart: what remains is a power of two that logits are in units of.
        weights = 0.3 * np.random.default_rng(4).normal(size=(12, 4))
        np.save(self.folder / "w.npy", np.ldexp(weights, -150))
        for power in (145, 155):
            np.save(self.folder / "g.npy", np.full(4, 2.0**power))
            document = self.result("reach", "--unembedding", "w.npy", "--gain", "g.npy", "--norm", "rms",
                                   "--probability", "full")
            self.passes()
            reasons = self.caught(document, lambda forged: forged["max_probability"].update(
                upper=[0.9 * upper for upper in forged["max_probability"]["upper"]]))
            self.assertEqual(reasons.count("stated upper bound"), 12)

    def test_equal_rows_whose_mean_is_rounded_pass(self):
        # Three times 1836.5553508257797, divided by 3, is another number.
        for value, tokens, norm, eps in ((1836.5553508257797, 3, "layer", 1e-5), (15122421201.60215, 10, "rms", 0)):
            np.save(self.folder / "w.npy", np.full((tokens, 2 if eps == 0 else 1), value))
            np.save(self.folder / "c.npy", np.arange(tokens) % 4.0)
            for bias in ([], ["--unembedding-bias", "c.npy"]):
                self.result("reach", "--unembedding", "w.npy", *bias, "--norm", norm, "--eps", eps)
                self.passes()

    def test_tokens_of_a_real_model_pass(self):
        model = CHECKPOINTS / "llama2c_stories260K.safetensors"
        if not model.exists():
            self.skipTest(f"{model} is not there")
        self.result("reach", model, "--probability", "quick")
        self.passes(model)

    def test_changed_statements_of_tokens_are_caught(self):
        document = self.result("reach", *self.head(), "--norm", "layer", "--probability", "full")
        proofs = document["proofs"]
        far = next(t for t in document["unreachable"] if t["without_ball"] == "yes")
        never = next(t for t in document["unreachable"] if t["without_ball"] == "no" and len(t["weights"]) > 1)
        given = next(i for i, p in enumerate(proofs) if isinstance(p.get("witness"), list))

        def loser(forged, token):
            return next(t for t in forged["unreachable"] if t["token"] == token["token"])

        def bound(kind, end, token, factor):
            def change(forged):
                forged[kind][end][token] *= factor
                for entry in forged["nearest"]:
                    entry["lead_at_least"] = forged["lead"]["lower"][entry["token"]]
                    entry["lead_at_most"] = forged["lead"]["upper"][entry["token"]]
            return change

        def unreachable(forged):
            forged["proofs"][given]["answer"] = "no"
            forged["unreachable"].append({**never, "token": given, "lead_at_most": forged["lead"]["upper"][given]})

        def lower_upper_end(forged):
            lead = never["lead_at_most"] - 1e-6
            loser(forged, never)["lead_at_most"] = forged["lead"]["upper"][never["token"]] = lead

        changes = (
            ("at its witness", bound("lead", "lower", given, 1 + 1e-3)),
            ("outside the ball", lambda forged: forged["proofs"][given].update(witness=[1.0, 1.0, 1.0, 1.0])),
            ("at its witness", lambda forged: forged["proofs"][given]["witness"].reverse()),
            ("at its witness", lambda forged: forged["proofs"][given].update(witness="own_direction")),
            ("bound its lead", bound("lead", "upper", given, 1 - 1e-6)),
            ("bound its lead", lower_upper_end),
            ("bound its lead", lambda forged: loser(forged, never)["weights"][0].update(weight=2.0)),
            ("bound its lead", lambda forged: loser(forged, never)["weights"][0].update(token=never["token"])),
            ("reachable, unreachable_without_ball", unreachable),
            ("exceeds a tie", unreachable),
            ("cancel as stated", lambda forged: loser(forged, never)["without_ball_weights"][0].update(weight=2.0)),
            ("cancel as stated", lambda forged: loser(forged, far).update(
                without_ball="no", without_ball_weights=far["weights"])),
            ("without the ball", lambda forged: loser(forged, far)["without_ball_witness"].update(point=[0.0] * 4)),
            ("without the ball", lambda forged: loser(forged, never).update(
                without_ball="yes", without_ball_witness=far["without_ball_witness"])),
            ("stated lower bound", bound("max_probability", "lower", given, 1 + 1e-6)),
            ("stated upper bound", bound("max_probability", "upper", given, 1 - 1e-2)),
            ("stated lower bound", lambda forged: forged["proofs"][given].pop("probability_point")),
            ("stated upper bound", lambda forged: forged["proofs"][given].update(probability_tangent=[0.0] * 4)),
            ("scale", lambda forged: forged.update(scale=document["scale"] * (1 + 1e-6))),
            ("tie", lambda forged: forged.update(tie=document["tie"] * (1 + 1e-6))),
            ("stretch", lambda forged: forged["without_ball"].update(stretch=1e-9)),
            ("other leads", lambda forged: forged["nearest"][0].update(lead_at_most=9.0)),
            ("reachable, unreachable_without_ball", lambda forged: forged.update(reachable=3)),
        )
        for reason, change in changes:
            self.assertIn(reason, self.caught(document, change))

    def test_certificates_may_be_in_a_folder(self):
        arrays = self.head()
        document = self.result("reach", *arrays, "--norm", "layer", "--probability", "full", "--certificates", "c")
        for proof in document["proofs"]:
            for name in ("witness", "probability_point", "probability_tangent"):
                if isinstance(proof.get(name), list):
                    proof[name] = "elsewhere"
        for token in document["unreachable"]:
            if "without_ball_witness" in token:
                token["without_ball_witness"] = "elsewhere"
        document["certificates"] = "nowhere"
        (self.folder / "result.json").write_text(json.dumps(document))
        self.assertIn("make it with certificates", self.passes()["not_checkable"][0]["reason"])
        self.assertEqual(self.passes("--folder", "c")["not_checkable"], [])
        document["certificates"] = {"folder": "c"}
        (self.folder / "result.json").write_text(json.dumps(document))
        self.assertEqual(self.passes()["not_checkable"], [])
        points = np.load(self.folder / "c/witnesses.npy")
        np.save(self.folder / "c/witnesses.npy", -points)
        self.assertGreater(len(self.verified(status=1)["failed"]), 0)
        self.keys()
        document = self.result("select", "keys.npy", "--certificates", "d")
        for verdict in document["verdicts"]:
            verdict.pop("query", None)
            verdict.pop("weights", None)
        (self.folder / "result.json").write_text(json.dumps(document))
        self.assertIn("make it with certificates", self.passes()["not_checkable"][0]["reason"])
        self.assertEqual(self.passes("--folder", "d")["not_checkable"], [])

    # inputs

    def test_other_inputs_are_refused(self):
        keys = self.keys()
        self.result("select", "keys.npy")
        np.save(self.folder / "other.npy", keys + 1e-12)
        self.assertIn("other values", self.fails(3, "verify", "result.json", "other.npy"))
        np.save(self.folder / "other.npy", keys[1:])
        self.assertIn("its keys is 59 x 3, expected keys of 60 x 3", self.fails(3, "verify", "result.json", "other.npy"))
        self.assertIn("expected as many INPUTS, got 2", self.fails(3, "verify", "result.json", "keys.npy", "keys.npy"))
        self.result("reach", *self.head(), "--norm", "rms", "--probability", "quick")
        self.assertIn("its gain has other values", self.fails(3, "verify", "result.json", "w.npy", "c.npy", "b.npy", "b.npy"))
        self.assertIn("would overwrite", self.fails(3, "verify", "result.json", "--json", "w.npy"))

    def test_other_files_are_refused(self):
        document = json.dumps(self.result("select", "0,0;1,0;0,1"))
        for text, message in (("{", "is not JSON"), ("[]", "schema, expected"), ("{}", "schema, expected"),
                              ('{"schema": "normscope.count/1"}', "expected normscope.select/1"),
                              ('{"schema": "normscope.select/1"}', " is missing"),
                              (document.replace('"margin"', '"margins"', 1), "is missing"),
                              (document.replace('"center": [', '"center": ["a", '), "center[0], expected number"),
                              (document.replace('"proofs": {', '"proofs": 3, "x": {'), "proofs, expected object"),
                              (document.replace('"center": [', '"scale": 1.0, "center": ['), "the member scale twice"),
                              (document.replace('"center": [', '"middle": 1.0, "center": ['), "middle, expected no member of this name"),
                              (document.replace('"tolerance": 1e-12', '"tolerance": 1e9'), "tolerance, expected at most 1"),
                              ("[" + "{}," * 2**20 + "{}]", "more lists and objects"),
                              ("[" * 10**6, "deeper nesting"),
                              (document.replace('"answer": "selectable"', '"answer": 1', 1), "verdicts[0].answer, expected selectable, unselectable or undecided"),
                              (document.replace('"keys": 3', '"keys": 4'), "is of 4 x 2 keys")):
            (self.folder / "result.json").write_text(text)
            self.assertIn(message, self.fails(3, "verify", "result.json"))
        self.fails(3, "verify", "nothing.json")
        self.fails(2, "verify")


if __name__ == "__main__":
    unittest.main()

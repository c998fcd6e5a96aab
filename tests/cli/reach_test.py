"""`normscope reach`: its answers, whose certificates hold in rational arithmetic."""

import json
import math
import re
import shutil
import signal
import struct
import subprocess
import time
import unittest
from fractions import Fraction

import numpy as np

from command import CHECKPOINTS, COMMAND, OWN_MODEL, SANITIZED, SOURCE, CommandTest, safetensors
from snapshots import (ANSWER, LOWER, NO, NOTHING_SHARP, UNDECIDED, UPPER, VECTORS, YES, opened, reach_payload, reach_tokens,
                       sealed)


def exact(values):
    return [Fraction(float(value)) for value in values]


def mean_lead(rows, offsets, token, weights):
    """Σ w (A_i − A_j) and Σ w (a_i − a_j) as fractions, weights divided by their sum."""
    total = sum(Fraction(w["weight"]) for w in weights)
    turn, offset = [Fraction(0)] * len(rows[0]), Fraction(0)
    for w in weights:
        share, other = Fraction(w["weight"]) / total, w["token"]
        if other == len(rows):
            continue
        turn = [t + share * (a - b) for t, a, b in zip(turn, rows[token], rows[other])]
        offset += share * (offsets[token] - offsets[other])
    return turn, offset


def square(vector):
    return sum(t * t for t in vector)


class Reach(CommandTest):
    def arrays(self, weights, bias=None, gain=None):
        """Files of a head behind an RMS norm of radius 2 or 4: powers of two fold exactly."""
        np.save(self.folder / "w.npy", weights)
        options = ["--unembedding", "w.npy", "--norm", "rms"]
        for name, option, array in (("c", "--unembedding-bias", bias), ("g", "--gain", gain)):
            if array is not None:
                np.save(self.folder / f"{name}.npy", array)
                options += [option, f"{name}.npy"]
        return options

    def small_heads(self):
        """(document, rows, offsets) of heads of whole numbers; `c` holds their witnesses."""
        random = np.random.default_rng(5)
        for trial in range(12):
            width = 4 if trial % 2 == 0 else 16
            weights = random.integers(-8, 9, (40 if width == 4 else 60, width)).astype(np.float64)
            bias = random.integers(-4, 5, len(weights)).astype(np.float64) * (trial % 3)
            document = self.json("reach", *self.arrays(weights, bias), "--certificates", "c")
            self.assertEqual(document["undecided"], [])
            yield document, [exact(int(width**0.5) * row) for row in weights], exact(bias)

    @unittest.skipIf(SANITIZED, "takes minutes there")
    def test_tokens_that_a_training_never_met_are_those_out_of_reach(self):
        """The card, which the training wrote, counts them and names all that are not single bytes."""
        card = (SOURCE / "models/kjv_gpt/README.md").read_text()
        count, bytes_alone = (int(number) for number in re.search(r"(\d+) never occur in the training: (\d+) bytes", card).groups())
        named = set(re.findall(r"`([^`]+)`", card.partition("never occur in the training")[2].partition("## ")[0]))
        self.ok("reach", SOURCE / "models/kjv_gpt", "--json", "reach.json", "-q")
        document = json.loads((self.folder / "reach.json").read_text())
        self.assertEqual(document["undecided"], [])
        unreachable = document["unreachable"]
        self.assertEqual(len(unreachable), count)
        self.assertEqual({token["name"] for token in unreachable if token["token"] >= 256}, named)
        self.assertEqual(len(named) + bytes_alone, count)

    def test_unreachable_tokens_are_so_in_rational_arithmetic(self):
        seen = 0
        for document, rows, offsets in self.small_heads():
            slack = Fraction(document["tolerance"]) * Fraction(document["scale"])
            for loser in document["unreachable"]:
                turn, offset = mean_lead(rows, offsets, loser["token"], loser["weights"])
                bound = Fraction(loser["lead_at_most"])
                self.assertLessEqual(bound, slack)
                self.assertGreaterEqual(bound - offset, 0)
                self.assertLessEqual(square(turn), (bound - offset) ** 2)
                seen += 1
        self.assertGreater(seen, 60)

    def test_unreachable_tokens_are_so_without_the_ball(self):
        seen = held_by_offsets = 0
        for document, rows, offsets in self.small_heads():
            # The cone's rows are up to three times as long as the logits' scale.
            slack = 3 * Fraction(document["tolerance"]) * Fraction(document["scale"])
            losers = [loser for loser in document["unreachable"] if loser["without_ball"] == "no"]
            self.assertEqual(len(losers), document["unreachable_without_ball"])
            for loser in losers:
                weights = loser["without_ball_weights"]
                self.assertTrue(all(w["weight"] > 0 and w["token"] != loser["token"] for w in weights))
                self.assertTrue(any(w["token"] < len(rows) for w in weights))
                turn, offset = mean_lead(rows, offsets, loser["token"], weights)
                self.assertLessEqual(square(turn), slack**2)
                self.assertLessEqual(offset, slack)
                seen += 1
                held_by_offsets += offset < -slack
        self.assertGreater(seen, 40)
        self.assertGreater(held_by_offsets, 10)

    def test_reachable_tokens_lead_at_their_witness_in_rational_arithmetic(self):
        seen = turned = 0
        for document, rows, offsets in self.small_heads():
            files = {path.stem: np.load(path) for path in (self.folder / "c").glob("*.npy")}
            losers = {loser["token"] for loser in document["unreachable"]}
            self.assertEqual(files["reachable"].tolist(), [i for i in range(len(rows)) if i not in losers])
            for token, point, lead in zip(files["reachable"].astype(int), files["witnesses"], files["leads"]):
                u = exact(point)
                self.assertLessEqual(square(u), 1)
                logits = [sum(a * b for a, b in zip(row, u)) + c for row, c in zip(rows, offsets)]
                found = logits[token] - max(logits[:token] + logits[token + 1:])
                self.assertGreater(found, 0)
                self.assertGreaterEqual(found, Fraction(lead))
                self.assertEqual(lead, document["lead"]["lower"][token])
                seen += 1
                own = files["rows"][token] / np.linalg.norm(files["rows"][token])
                turned += bool(np.abs(own - point).max() > 1e-6)
        self.assertGreater(seen, 300)
        self.assertGreater(turned, 30)

    def test_planted_tokens_are_found(self):
        random = np.random.default_rng(1)
        weights = random.normal(size=(200, 16))
        for token in range(5):
            shares = random.dirichlet(np.ones(4))
            weights[token] = shares @ weights[10 * token + 50:10 * token + 54]
        weights[7] = weights[8]
        document = self.json("reach", *self.arrays(weights, gain=np.ones(16)))
        self.assertEqual([loser["token"] for loser in document["unreachable"]], [0, 1, 2, 3, 4, 7, 8])
        self.assertEqual({loser["without_ball"] for loser in document["unreachable"]}, {"no"})
        self.assertEqual(document["unreachable_without_ball"], 7)
        twin = document["unreachable"][5]
        self.assertEqual(twin["weights"], [{"token": 8, "weight": 1.0}])
        self.assertEqual(self.run_command("reach", *self.arrays(weights), "--check", "-q").returncode, 1)
        for upper, loser in zip(document["max_probability"]["upper"][:5], document["unreachable"]):
            self.assertLessEqual(upper, 0.5 + 1e-9, loser)

    def test_the_ball_matters_where_there_is_a_bias(self):
        weights = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
        document = self.json("reach", *self.arrays(weights, np.array([0.0, 0.0, -3.0])))
        loser, = document["unreachable"]
        self.assertEqual((loser["token"], loser["without_ball"]), (2, "yes"))
        self.assertEqual(document["unreachable_without_ball"], 0)
        near = self.json("reach", *self.arrays(weights, np.array([0.0, 0.0, -1.0])))
        self.assertEqual(near["unreachable"], [])

    def test_probabilities_bound_what_a_search_finds(self):
        random = np.random.default_rng(2)
        weights, bias = random.normal(size=(30, 4)), random.normal(size=30)
        document = self.json("reach", *self.arrays(weights, bias), "--probability", "full")
        bounds = document["max_probability"]
        self.assertEqual(bounds["refined"], list(range(30)))
        points = random.normal(size=(20000, 4))
        # Half of the points are inside the ball, where hidden states are if eps > 0.
        points *= (np.minimum(1.0, 2.0 * random.uniform(size=20000)) / np.linalg.norm(points, axis=1))[:, None]
        logits = 2.0 * points @ weights.T + bias
        chance = np.exp(logits - logits.max(axis=1, keepdims=True))
        best = (chance / chance.sum(axis=1, keepdims=True)).max(axis=0)
        self.assertTrue(np.all(best <= np.array(bounds["upper"]) + 1e-12))
        self.assertTrue(np.all(best >= 0.9 * np.array(bounds["lower"])))
        self.assertTrue(np.all(np.array(bounds["upper"]) <= 1.002 * np.array(bounds["lower"])))
        quick = self.json("reach", *self.arrays(weights, bias), "--probability", "quick", "--sharpen-tokens", "3,5")
        self.assertEqual(quick["max_probability"]["refined"], [3, 5])
        self.assertTrue(np.all(best <= np.array(quick["max_probability"]["upper"]) + 1e-12))

    def test_values_at_the_ends_of_what_is_accepted(self):
        # No call may crash or write NaN; inputs that cannot be analysed are refused.
        for rows in ("1e28,0;0,1;1,1", "1e-29,0,0;0,1e-29,0;1e-29,1e-29,0", "1e28,1;1,1e-300;0,2"):
            for options in ((), ("--norm", "rms"), ("--norm", "rms", "--eps", "0"), ("--unembedding-bias", None)):
                words = [word or ",".join("1" for _ in rows.split(";")) for word in options]
                document = self.json("reach", "--unembedding", rows, *words)
                self.assertEqual(document["decided"], len(rows.split(";")))
                lead = document["lead"]
                self.assertTrue(all(low is None or low <= high for low, high in zip(lead["lower"], lead["upper"])), rows)
        for row in ("5e-324,0", "1.7e308,0"):
            self.assertIn("from their mean, expected 2^-100 (7.9e-31) to 2^100 (1.3e+30)",
                          self.fails(3, "reach", "--unembedding", f"{row};0,0", "--norm", "rms"))

    def test_a_large_token_makes_no_other_unreachable(self):
        for large in ("1e15", "1e29", "1e-29"):
            small = "1e-60" if large == "1e-29" else "1"
            literal = f"{large},0;0,{small};{small},{small}"
            for norm in ("rms", "layer"):
                document = self.json("reach", "--unembedding", literal, "--norm", norm)
                # Token 1 leads where the first entry is negative; behind a layer norm the second is then positive.
                self.assertEqual(document["unreachable"], [], (large, norm))
                (self.folder / "result.json").write_text(json.dumps(document))
                # Undecided tokens are left unproved.
                status = 4 if document["undecided"] else 0
                self.assertEqual(self.run_command("verify", "result.json", literal).returncode, status)
                if not document["undecided"]:
                    continue
                # The checker finds a result that calls it unreachable all the same.
                loser = document["undecided"].pop(0)
                document["unreachable"].append({**loser, "without_ball": "undecided"})
                document["proofs"][loser["token"]]["answer"] = "no"
                (self.folder / "result.json").write_text(json.dumps(document))
                self.assertEqual(self.run_command("verify", "result.json", literal).returncode, 1)

    def test_equal_tokens_have_lead_zero(self):
        document = self.json("reach", "--unembedding", "1,2;1,2;1,2")
        for loser in document["unreachable"]:
            self.assertLessEqual(loser["lead_at_most"], document["tolerance"] * document["scale"])
        self.assertEqual(len(document["unreachable"]), 3)

    def test_without_eps_only_the_sphere_counts(self):
        words = ("reach", "--unembedding", "0,0;1,-1;-1,1", "--unembedding-bias", ".1,0,0", "--norm", "layer")
        self.assertFalse(self.json(*words)["sphere"])
        self.assertIn("with eps = 0 a norm of width 2 has two outputs only", self.fails(3, *words, "--eps", "0"))
        # In the plane, the middle token leads only inside the disk, which the result states.
        weights, bias = np.array([[0.0, 0], [1, 0], [-1, 1], [-1, -1]]), np.array([0.5, 0, 0, 0])
        options = self.arrays(weights, bias)
        undecided, = self.json("reach", *options, "--eps", "0")["undecided"]
        self.assertEqual((undecided["token"], undecided["only_inside"], undecided["without_ball"]), (0, True, "yes"))
        self.assertIn("only inside the ball", self.ok("reach", *options, "--eps", "0"))
        self.assertEqual(self.json("reach", *options)["undecided"], [])
        # A state saved for the ball is refused for the sphere.
        self.ok("reach", *options, "--resume", "state")
        self.assertIn("another model", self.fails(3, "reach", *options, "--eps", "0", "--resume", "state"))

    def test_a_model_and_its_arrays_agree(self):
        document = self.json("reach", OWN_MODEL)
        self.assertEqual((document["tokens"], document["reachable"]), (28, 28))
        self.assertEqual(document["nearest"][0]["name"], "'")
        self.assertIn('token 1 "\'"', self.ok("reach", OWN_MODEL))
        file = f"{OWN_MODEL}/model.safetensors"
        norm, head = "transformer.ln_f", "lm_head.weight" if not document["tied"] else "transformer.wte.weight"
        arrays = self.json("reach", "--unembedding", f"{file}:{head}", "--gain", f"{file}:{norm}.weight",
                           "--bias", f"{file}:{norm}.bias")
        self.assertEqual(arrays["lead"], document["lead"])

    def test_real_models(self):
        if not CHECKPOINTS.exists():
            self.skipTest(f"no {CHECKPOINTS}")
        llama = self.json("reach", CHECKPOINTS / "llama2c_stories260K.safetensors", "--names",
                          CHECKPOINTS / "tok512.bin")
        self.assertEqual((llama["tokens"], llama["norm"]["kind"], llama["reachable"]), (512, "rms", 512))
        # Bytes that occur in no story: the model gives them no relevant probability.
        self.assertLess(min(llama["max_probability"]["upper"]), 0.005)
        albert = self.json("reach", CHECKPOINTS / "rxnmapper_albert")
        self.assertEqual((albert["tokens"], albert["unembedding_bias"], albert["undecided"]), (591, True, []))
        incomplete = self.fails(3, "reach", CHECKPOINTS / "gpt2_small_without_mlp")
        self.assertIn("no unembedding", incomplete)

    def test_threads_do_not_change_the_document(self):
        weights = np.random.default_rng(3).normal(size=(900, 5))
        one, four = (self.ok("reach", *self.arrays(weights), "--threads", n, "--json", "-") for n in (1, 4))
        self.assertEqual(one, four)

    def outputs(self):
        """The bytes of all files written by `reach --json all.json --certificates c`."""
        return {path.name: path.read_bytes() for path in [self.folder / "all.json", *(self.folder / "c").iterdir()]}

    def test_an_interrupted_reach_resumes_to_the_same_bytes(self):
        weights = np.random.default_rng(4).normal(size=(1000 if SANITIZED else 2500, 12))
        options = [*self.arrays(weights, 0.1 * weights[:, 0]), "--probability", "quick", "--threads", "1",
                   "--certificates", "c", "--json", "all.json", "-q"]
        begin = time.monotonic()
        self.ok("reach", *options)
        whole = time.monotonic() - begin
        expected = self.outputs()
        interrupted = 0
        for part in (0.4, 0.8):
            shutil.rmtree(self.folder / "c")
            process = subprocess.Popen([COMMAND, "reach", *options, "--resume", "state"], cwd=self.folder,
                                       stderr=subprocess.DEVNULL)
            time.sleep(part * whole)
            process.send_signal(signal.SIGINT)
            if process.wait(timeout=120) != 0:
                self.assertFalse((self.folder / "c").exists())
                if (self.folder / "state").exists():
                    self.assertFalse(json.loads((self.folder / "all.json").read_text())["complete"])
                    interrupted += 1
                self.ok("reach", *options, "--resume", "state")
            self.assertTrue(self.outputs() == expected, part)
            (self.folder / "state").unlink()
        if interrupted == 0:
            self.skipTest("it was never interrupted between two answers")

    def test_resuming_from_any_batch_leads_to_the_same_bytes(self):
        weights = np.random.default_rng(4).normal(size=(600, 5))
        options = [*self.arrays(weights, weights[:, 1]), "--certificates", "c", "--json", "all.json", "-q"]
        self.ok("reach", *options)
        expected = self.outputs()
        # Tokens that do not lead at their own direction; they are decided in batches of 64.
        self.ok("reach", *options, "--sharpen", 0, "--probability", "quick", "--resume", "state")
        before, payload = opened((self.folder / "state").read_bytes())
        hard = [token for _, token in reach_tokens(payload)[0]]
        self.assertGreater(len(hard), 3 * 64)
        for decided in range(0, len(hard), 64):
            (self.folder / "state").write_bytes(sealed(before, reach_payload(hard[:decided])))
            self.ok("reach", *options, "--resume", "state")
            self.assertTrue(self.outputs() == expected, decided)
        other = self.arrays(weights[:, ::-1].copy())
        self.assertIn("another model", self.fails(3, "reach", *other, "--resume", "state"))

    def test_resuming_a_finished_reach_changes_nothing(self):
        weights = np.random.default_rng(6).normal(size=(300, 3))
        options = ["reach", *self.arrays(weights, weights[:, 1]), "--resume", "state"]
        first = self.json(*options)
        self.assertTrue(first["complete"])
        state = (self.folder / "state").read_bytes()
        self.assertEqual(self.json(*options), first)
        # Neither leads nor probabilities are computed again, because the state records that they were.
        self.assertEqual((self.folder / "state").read_bytes(), state)
        before, payload = opened(state)
        _, rest = reach_tokens(payload)
        sharp = struct.unpack_from("<Q", rest)[0]
        self.assertGreaterEqual(sharp, 20)
        gap, points = struct.unpack_from("<dQ", rest, 16 + 8 * sharp)
        self.assertEqual((gap, points), (1e-3, len(first["max_probability"]["refined"])))
        # A state with half of the tokens, saved before any lead was computed: the rest is computed.
        (self.folder / "state").unlink()
        self.json(*options, "--sharpen", 0, "--probability", "quick")
        before, payload = opened((self.folder / "state").read_bytes())
        tokens = [token for _, token in reach_tokens(payload)[0]]
        (self.folder / "state").write_bytes(sealed(before, reach_payload(tokens[::2])))
        self.assertEqual(self.json(*options), first)
        token = tokens[1]
        for spoiled in ([token[:-1]], [token, token], [tokens[2], tokens[1]], [token[:8] + b"\2" + token[9:]],
                        [token[:ANSWER] + UNDECIDED + token[ANSWER + 1:]],
                        [struct.pack("<Q", 300) + token[8:]], [token[:LOWER] + struct.pack("<d", math.nan) + token[UPPER:]],
                        [token[:-9] + struct.pack("<Q", 300) + token[-1:]]):
            (self.folder / "state").write_bytes(sealed(before, reach_payload(spoiled)))
            self.assertIn("holds what reach did not save", self.fails(3, *options))
        point = struct.pack("<Qddd", 3, 0.0, 0.0, 0.0)
        for spoiled in (b"", NOTHING_SHARP + b"\0", struct.pack("<QQQdQ", 1, 300, 0, 0.0, 0),
                        struct.pack("<QQdQQ", 0, 0, 1e-3, 1, 300) + 2 * point,
                        struct.pack("<QQdQQQ", 0, 0, 1e-3, 2, 7, 7) + 4 * point,
                        struct.pack("<QQdQQ", 0, 0, 1e-3, 1, 7) + point + struct.pack("<Qd", 1, 0.0),
                        struct.pack("<QQdQQ", 0, 0, 1e-3, 1, 7) + point + struct.pack("<Qddd", 3, 0, math.inf, 0)):
            (self.folder / "state").write_bytes(sealed(before, reach_payload(tokens, spoiled)))
            self.assertIn("holds what reach did not save", self.fails(3, *options))

    def test_points_of_a_state_prove_their_own_bounds(self):
        weights = np.random.default_rng(6).normal(size=(300, 3))
        options = ["reach", *self.arrays(weights, weights[:, 1]), "--resume", "state"]
        first = self.json(*options)
        before, payload = opened((self.folder / "state").read_bytes())
        tokens, rest = reach_tokens(payload)
        # The point that proves a large probability is replaced by the center, or by a point far outside the ball.
        at = rest.index(struct.pack("<QQ", 300, 0)) + 8 + 8 * 300
        for point in ((0.0, 0.0, 0.0), (1e6, 0.0, 0.0)):
            forged = bytearray(rest)
            struct.pack_into("<Qddd", forged, at, 3, *point)
            (self.folder / "state").write_bytes(sealed(before, reach_payload([token for _, token in tokens],
                                                                             bytes(forged))))
            other = self.json(*options)
            self.assertLessEqual(other["max_probability"]["lower"][0], first["max_probability"]["lower"][0])
            self.assertEqual(other["max_probability"]["lower"][1:], first["max_probability"]["lower"][1:])
            self.assertEqual(other["max_probability"]["upper"], first["max_probability"]["upper"])
            (self.folder / "result.json").write_text(json.dumps(other))
            self.ok("verify", "result.json")

    def test_a_budget_is_kept_and_the_rest_is_computed_later(self):
        random = np.random.default_rng(11)
        weights = random.normal(size=(800, 12))
        options = ["reach", *self.arrays(weights, weights[:, 1])]
        whole = self.json(*options)
        self.assertEqual((whole["complete"], whole["left_out"]),
                         (True, {"tokens": 0, "leads": 0, "probabilities": 0}))
        none = self.json(*options, "--budget", 0)
        left = none["left_out"]
        self.assertFalse(none["complete"])
        self.assertEqual(left["tokens"], 800 - none["decided"])
        self.assertGreater(left["tokens"], 50)
        self.assertGreater(left["probabilities"], 19)
        text = self.ok(*options, "--budget", 0)
        self.assertIn(f"left out: {left['tokens']} tokens not decided", text)
        self.assertIn(f"left out: the largest probabilities of {left['probabilities']} tokens", text)
        # Wherever it is interrupted, it resumes to the same document, and every intermediate result verifies.
        for budget in (0, 1e-7, 1e-5, 1e-4):
            part = self.json(*options, "--budget", budget, "--resume", "state")
            (self.folder / "result.json").write_text(json.dumps(part))
            self.assertEqual(self.run_command("verify", "result.json").returncode, 0 if part["complete"] else 4)
            if budget != 1e-5:
                self.assertEqual(self.json(*options, "--resume", "state"), whole)
                (self.folder / "state").unlink()

    def test_sharpen_optimizes_as_many_leads_as_asked_for(self):
        weights = np.random.default_rng(12).normal(size=(400, 6))
        options = ["reach", *self.arrays(weights, weights[:, 1]), "--probability", "quick"]
        everything = self.json(*options, "--sharpen", 400)
        uppers = [entry["lead_at_most"] for entry in everything["nearest"]]
        self.assertEqual(len(uppers), everything["reachable"])
        self.assertEqual(uppers, sorted(uppers))
        for entry in everything["nearest"]:
            self.assertLessEqual(entry["lead_at_most"] - entry["lead_at_least"], 1.01e-6 * everything["scale"])
        for count in (0, 1, 7, 20):
            document = self.json(*options, "--sharpen", count)
            self.assertEqual(document["left_out"], {"tokens": 0, "leads": 0, "probabilities": 0})
            # No other token is closer to being unreachable than those named.
            nearest = document["nearest"][:count]
            self.assertEqual([entry["token"] for entry in nearest],
                             [entry["token"] for entry in everything["nearest"][:count]])
        self.assertEqual(self.json(*options, "--sharpen", 0)["nearest"], [])
        self.assertNotIn("smallest margins", self.ok(*options, "--sharpen", 0))
        text = self.ok(*options)
        self.assertIn("smallest margins:\n  token", text)
        self.assertIn("Reachable: at some input of the final norm", text)
        self.fails(2, *options, "--sharpen", -1)
        self.fails(2, *options, "--budget", -1)

    def test_probability_bounds_meet_the_requested_gap(self):
        weights = np.random.default_rng(13).normal(size=(60, 5))
        for gap in (1e-1, 1e-6):
            bounds = self.json("reach", *self.arrays(weights, weights[:, 1]), "--probability", "full",
                               "--probability-gap", gap)["max_probability"]
            widths = np.log(np.array(bounds["upper"]) / np.array(bounds["lower"]))
            self.assertLessEqual(widths.max(), gap * 1.01 + 1e-9)
            if gap == 1e-1:
                self.assertGreater(widths.max(), 1e-4)
        self.fails(2, "reach", *self.arrays(weights), "--probability-gap", -1)

    def test_a_state_with_a_wrong_proof_is_refused(self):
        weights = np.random.default_rng(6).normal(size=(300, 3))
        options = ["reach", *self.arrays(weights, weights[:, 1]), "--resume", "state"]
        self.json(*options, "--sharpen", 0)
        before, payload = opened((self.folder / "state").read_bytes())
        tokens = [token for _, token in reach_tokens(payload)[0]]
        reachable = next(token for token in tokens if token[ANSWER:ANSWER + 1] == YES)
        unreachable = next(token for token in tokens if token[ANSWER:ANSWER + 1] == NO)
        upper = struct.unpack_from("<d", unreachable, UPPER)[0]
        for forged in (reachable[:ANSWER] + NO + reachable[ANSWER + 1:], unreachable[:ANSWER] + YES + unreachable[ANSWER + 1:],
                       reachable[:LOWER] + struct.pack("<d", 1e3) + reachable[UPPER:],
                       unreachable[:UPPER] + struct.pack("<d", upper - 1e-6) + unreachable[VECTORS:],
                       struct.pack("<Q", (struct.unpack_from("<Q", reachable)[0] + 1) % 300) + reachable[8:]):
            (self.folder / "state").write_bytes(sealed(before, reach_payload([forged])))
            self.assertIn("that its proof does not support", self.fails(3, *options))

    def test_bad_input_is_named(self):
        options = self.arrays(np.ones((3, 4)))
        np.save(self.folder / "rows.npy", np.ones((3, 4)))
        self.fails(2, "reach")
        for option, value in (("--norm", "rms"), ("--alpha", 2), ("--shift", 1)):
            self.assertIn("excludes", self.fails(2, "reach", OWN_MODEL, option, value))
        self.assertIn("would overwrite", self.fails(3, "reach", "--unembedding", "rows.npy", "--norm", "rms",
                                                  "--certificates", "."))
        self.assertIn("--sharpen-tokens", self.fails(3, "reach", *options, "--sharpen-tokens", "3"))
        np.save(self.folder / "bad.npy", np.ones(7))
        self.fails(3, "reach", *options, "--unembedding-bias", "bad.npy")
        self.fails(3, "reach", *options, "--names", "w.npy")
        self.fails(3, "reach", *options, "--json", "w.npy")
        headless = safetensors(self.folder / "m.safetensors", {"norm.weight": np.ones(4, np.float32)})
        self.assertIn("not modelled: unknown architecture", self.fails(3, "reach", headless))

    def test_control_characters_in_token_names_are_escaped(self):
        options = self.arrays(np.array([[1.0, 0], [1.0, 0], [0, 1.0]]))
        (self.folder / "vocab.txt").write_bytes(b"\x1b[31mred\n\xff\nplain\n")
        text = self.ok("reach", *options, "--names", "vocab.txt")
        self.assertNotIn("\x1b", text)
        self.assertIn("\\x1b[31mred", text)
        self.assertEqual(self.json("reach", *options, "--names", "vocab.txt")["unreachable"][0]["token"], 0)


if __name__ == "__main__":
    unittest.main()

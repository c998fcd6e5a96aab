"""The checkers in NumPy on results made by hand: what holds passes, and what a little more would claim is found."""

import copy
import hashlib
import json
import subprocess
import sys
import unittest

import numpy as np

from command import SOURCE, safetensors
from results import ResultTest


def on(key, *weights):
    return [{key: index, "weight": weight} for index, weight in weights]


# A triangle and the middle of one of its sides.
KEYS = [[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [2.0, 2.0]]
SELECT = {"schema": "normscope.select/1", "scale": 2.5, "center": [1.5, 1.5], "verdicts": [
    {"answer": "selectable", "proof": "query", "margin": 2.8284271, "query": [-1, -1]},
    {"answer": "selectable", "proof": "own_direction", "margin": 2.7439},
    {"answer": "selectable", "proof": "own_direction", "margin": 2.7439},
    {"answer": "unselectable", "proof": "weights", "residual": 0.0, "weights": on("key", (1, 0.5), (2, 0.5))}]}

# 4 and 3 against 2 and 1.
SEPARATE = {"schema": "normscope.separate/1", "separable": "yes", "margin": 1.0, "normal": [2.0], "scale": 1.5,
            "a": on("row", (1, 3.0)), "b": on("row", (0, 1.0)), "residual": 1.0}

# Logits u, -u and -0.5 for |u| <= 1: the last never leads.
REACH = {"schema": "normscope.reach/1", "norm": {"kind": "rms"}, "tie": 1e-12, "undecided": [],
         "unreachable": [{"token": 2, "weights": on("token", (0, 1.0), (1, 1.0))}],
         "lead": {"lower": [1.0, 1.0, None], "upper": [1.5, 1.5, -0.5]},
         "max_probability": {"lower": [0.678, 0.57, 0.0], "upper": [0.738, 0.82, 0.38]},
         "proofs": [{"answer": "yes", "witness": [0.5], "weights": on("token", (2, 1.0)), "probability_point": [0.8],
                     "probability_tangent": [0.99]},
                    {"answer": "yes", "witness": [-0.5], "weights": on("token", (2, 1.0))}, {"answer": "no"}]}

# A head whose queries and keys fill a disk and turn by 0.1 a token, so that scores are within 1 of 0.
FAST = {"distances": None, "weights": [1.0], "turns": [1.0], "still": [], "factor": [], "query_multiplier": 1.0,
        "key_multiplier": 1.0, "spread": 2.0}
SLOW = FAST | {"distances": 5, "turns": [0.1996669], "still": [0, 1], "factor": [1, 0, 0, 1],
               "query_multiplier": 1.19966691, "key_multiplier": 1.19966691, "spread": 2.39934}
DISTANCES = {"distances": 5, "query_square": 0.0, "key_square": 0.0, "reach": 1.0, "centre": [0.0, 0.0], "spread": 2.0}
EQUAL = {"sharp": {"multiplier": 4.0, "query": [1.0, 0.0]}, "uniform": {"query": [0.0, 0.0], "unavoidable": []}}
APART = {"high": [np.cos(0.1), np.sin(0.1)], "high_distance": 1, "low": [-np.cos(0.2), -np.sin(0.2)], "low_distance": 2}
HEAD = {"layer": 0, "head": 0, "head_dim": 2, "scale": 1.0, "soft_cap": None,
        "rotation": {"dims": 2, "interleaved": False, "score_factor": 1.0},
        "uniform_spread": None, "sharp_spread": None, "uniform_bounds": [0.0, 1e-6], "sharp_bounds": [1.999999, 2.0],
        "distances": {"within": 5, "sharp_at_most_anywhere": 2.0, "uniform_at_most_anywhere": 1e-6,
                      "at_distance_zero": {"sharp_bounds": [2.0, 2.0], "uniform_bounds": [0.0, 1e-9]}},
        "certificates": {"norm": {"kind": "spherical"}, "frequencies": [0.1], "at_distance_zero": EQUAL,
                         "sharp": {"everywhere": FAST, "in_context": SLOW, "by_distance": DISTANCES,
                                   "query": [1.0, 0.0], "keys": APART},
                         "uniform": EQUAL["uniform"] | {"anywhere": {"query": [0.0, 0.0], "proof": FAST}}}}
HEADS = {"schema": "normscope.heads/1", "heads": [HEAD]}


class Checker(ResultTest):
    def status(self, document, roles, error=""):
        """The checker's exit status for a document and the arrays of its roles."""
        names = []
        for index, values in enumerate(roles.values()):
            names.append(f"{index}.npy")
            np.save(self.folder / names[-1], np.array(values, float))
        hashes = [hashlib.sha256(hashlib.sha256(np.array(values, "<f8").tobytes()).digest()).hexdigest()
                  for values in roles.values()]
        stated = {"arrays": [{"role": role, "sha256": sha} for role, sha in zip(roles, hashes)]}
        (self.folder / "result.json").write_text(json.dumps(document | {"inputs": stated}))
        return self.checker(*names, error=error)

    def holds(self, document, roles, *changes, error=""):
        """Whether the checker accepts a document in which the values at paths are others."""
        changed = copy.deepcopy(document)
        for path, value in changes:
            at = changed
            for name in path[:-1]:
                at = at[name]
            at[path[-1]] = value
        return self.status(changed, roles, error) == 0

    def test_keys(self):
        holds = lambda *changes, **how: self.holds(SELECT, {"keys": KEYS}, *changes, **how)
        self.assertTrue(holds())
        at = lambda index, name: ("verdicts", index, name)
        for path, value in ((at(0, "margin"), 2.82843), (at(1, "margin"), 2.744), (at(0, "query"), [1, 1]),
                            (at(3, "weights"), on("key", (1, 0.5), (2, 0.5000001)))):
            self.assertFalse(holds((path, value)), path)
        for weights in (on("key", (1, -0.5), (2, -0.5)), on("key", (1, 0.0), (2, 0.0))):
            self.assertFalse(holds((at(3, "weights"), weights), error="AssertionError"))
        alone = ("verdicts",), [{"answer": "selectable", "proof": "alone"}]
        self.assertTrue(self.holds(SELECT, {"keys": [[1.0, 2.0]]}, alone))

    def test_integers_of_keys(self):
        middle = {"answer": "unselectable", "denominator": "2",
                  "weights": [{"key": 1, "numerator": "1"}, {"key": 2, "numerator": "1"}]}
        corner = {"answer": "selectable", "query": ["-1", "-1"]}
        document = copy.deepcopy(SELECT)
        document["verdicts"][0] |= {"proof": "exact", "exact": corner}
        document["verdicts"][3] |= {"proof": "exact", "exact": middle}
        holds = lambda *changes: self.holds(document, {"keys": KEYS}, *changes)
        self.assertTrue(holds())
        one = lambda *numerators: [{"key": key, "numerator": str(number)} for key, number in numerators]
        for index, name, value in (
                (0, "query", ["1", "-1"]), (0, "query", ["0", "0"]), (3, "denominator", "3"),
                (3, "weights", one((3, 2))),
                (3, "weights", one((1, 1), (2, 1), (0, 0))), (3, "weights", one((1, 2), (2, 2), (3, -2))),
                # Twice the middle: the point is right, and the sum is not the denominator.
                (3, "weights", one((1, 1), (2, 1), (0, 1)))):
            self.assertFalse(holds((("verdicts", index, "exact", name), value)), (name, value))
        self.assertFalse(holds((("verdicts", 0, "answer"), "unselectable"), (("verdicts", 0, "residual"), 9.0),
                               (("verdicts", 0, "weights"), on("key", (1, 1.0)))))

    def test_sets(self):
        roles = {"a": [[4.0], [3.0]], "b": [[2.0], [1.0]]}
        holds = lambda *changes: self.holds(SEPARATE, roles, *changes)
        self.assertTrue(holds())
        self.assertFalse(holds((("margin",), 1.000001)))
        self.assertFalse(holds((("residual",), 0.999999)))
        self.assertFalse(holds((("normal",), [-2.0])))
        self.assertFalse(holds((("margin",), 0.0)))
        # No answer needs no margin, and an exact one proves itself.
        self.assertTrue(holds((("margin",), 0.0), (("separable",), "undecided")))
        self.assertTrue(holds((("margin",), None), (("separable",), "no")))
        yes = {"separable": "yes", "normal": ["1"]}
        self.assertTrue(holds((("margin",), 0.0), (("exact",), yes)))
        self.assertFalse(holds((("exact",), yes | {"normal": ["-1"]})))
        # 3 is in both sets: their lowest and highest scores are equal.
        touching = {"a": [[4.0], [3.0]], "b": [[3.0], [1.0]]}
        meets = lambda *changes: self.holds(SEPARATE, touching, (("separable",), "no"), (("margin",), None),
                                            (("residual",), 0.0), *changes)
        no = {"separable": "no", "denominator": "1", "a": [{"row": 1, "numerator": "1"}],
              "b": [{"row": 0, "numerator": "1"}]}
        self.assertTrue(meets((("exact",), no)))
        self.assertFalse(meets((("exact",), no | {"denominator": "2"})))
        self.assertFalse(meets((("exact",), no | {"b": [{"row": 1, "numerator": "1"}]})))
        self.assertFalse(meets((("exact",), no | {"b": [{"row": 0, "numerator": "2"}]})))
        self.assertFalse(self.holds(SEPARATE, touching, (("residual",), 0.0), (("margin",), 0.0), (("exact",), yes)))

    def test_tokens(self):
        roles = {"unembedding": [[1.0], [-1.0], [0.0]], "unembedding bias": [0.0, 0.0, -0.5]}
        holds = lambda *changes: self.holds(REACH, roles, *changes)
        self.assertTrue(holds())
        both = on("token", (0, 1.0), (2, 1.0))
        for changes in (
                [(("lead", "lower", 0), 1.000001)], [(("lead", "upper", 0), 1.499999)],
                [(("lead", "upper", 2), -0.500001)],
                [(("proofs", 0, "witness"), [1.01])], [(("proofs", 0, "witness"), [0.1])],
                [(("lead", "lower", 0), 0.0)], [(("lead", "lower", 0), -1.0), (("proofs", 0, "witness"), [-0.5])],
                # A weight on the token itself halves the bound.
                [(("proofs", 0, "weights"), both), (("lead", "upper", 0), 0.75)],
                [(("tie",), -0.6)], [(("max_probability", "lower", 0), 0.6788)],
                [(("max_probability", "upper", 0), 0.735)]):
            self.assertFalse(holds(*changes), changes)
        self.assertTrue(holds((("proofs", 2, "answer"), "undecided"), (("tie",), -0.6)))
        # The probabilities at u = 1, times 2.
        weights = (0, 1.472), (1, 0.1992), (2, 0.3285)
        no_tangent = ("proofs", 0, "probability_tangent"), None
        by_weights = lambda *weights: (no_tangent, (("proofs", 0, "probability_weights"), on("token", *weights)))
        self.assertTrue(holds(*by_weights(*weights)))
        self.assertFalse(holds(*by_weights(*weights), (("max_probability", "upper", 0), 0.735)))
        self.assertFalse(holds(*by_weights(*weights[:2])))
        self.assertFalse(holds(*by_weights(*weights, (1, -0.1))))
        # With a mean of 0 of the rows, an own direction is that of the row.
        self.assertTrue(holds((("proofs", 0, "witness"), "own_direction"), (("lead", "lower", 0), 1.5)))
        self.assertFalse(holds((("proofs", 0, "witness"), "own_direction"), (("lead", "lower", 0), 1.500001)))
        alone = {"lead": {"lower": [None], "upper": [None]}, "unreachable": [], "proofs": [{"answer": "yes"}],
                 "max_probability": {"lower": [1.0], "upper": [1.0]}}
        self.assertEqual(self.status(REACH | alone, {"unembedding": [[2.0]]}), 0)

    def test_kinds_of_norms_have_their_radius(self):
        rows = {"unembedding": [[1.0, 0.0], [-1.0, 0.0]]}
        document = REACH | {"unreachable": [], "max_probability": {"lower": [0, 0], "upper": [1, 1]}, "proofs": [
            {"answer": "yes", "witness": "own_direction", "weights": on("token", (other, 1.0))} for other in (1, 0)]}
        # 2 of a sphere, sqrt(2) times that behind an RMS norm; a layer norm leaves (1, -1)/2 of (1, 0).
        for kind, lead in (("spherical", 2.0), ("rms", 8**0.5), ("layer", 2.0)):
            for part, holds in ((1.0, True), (1 - 1e-6, False)):
                ends = {"lower": [part * lead] * 2, "upper": [part * lead] * 2}
                stated = document | {"norm": {"kind": kind}, "lead": ends}
                self.assertEqual(self.status(stated, rows) == 0, holds, (kind, part))
            stated["lead"] = {"lower": [lead * (1 + 1e-6)] * 2, "upper": [lead * (1 + 1e-6)] * 2}
            self.assertEqual(self.status(stated, rows), 1, kind)

    def test_heads(self):
        identity = [[1.0, 0.0], [0.0, 1.0]]
        roles = {"heads[0] query": identity, "heads[0] key": identity}
        of_head = lambda changes: [(("heads", 0, *path), value) for path, value in changes]
        holds = lambda *changes, **how: self.holds(HEADS, roles, *of_head(changes), **how)
        self.assertTrue(holds())
        sharp, uniform = ("certificates", "sharp"), ("certificates", "uniform")
        for path, value in (
                (("sharp_bounds",), [1.999999, 1.999999]), (("sharp_bounds",), [2.000001, 2.1]),
                (("uniform_bounds",), [1e-5, 1e-6]), (("uniform_bounds",), [0.0, -1e-6]),
                (("distances", "sharp_at_most_anywhere"), 1.999999), (("distances", "uniform_at_most_anywhere"), -1e-6),
                (("distances", "at_distance_zero", "sharp_bounds"), [2.0, 1.999999]),
                (("distances", "at_distance_zero", "sharp_bounds"), [2.000001, 2.1]),
                (("distances", "at_distance_zero", "uniform_bounds"), [1e-5, 1.0]),
                (("distances", "at_distance_zero", "uniform_bounds"), [0.0, -1e-5]),
                ((*sharp, "everywhere", "spread"), 1.9), ((*sharp, "in_context", "spread"), 2.3),
                ((*sharp, "by_distance", "reach"), 0.99), ((*sharp, "by_distance", "spread"), 1.99),
                (("uniform_spread",), 0.5), (("sharp_spread",), 1.999999)):
            self.assertFalse(holds((path, value)), (path, value))
        self.assertTrue(holds((("uniform_spread",), 1e-6), (("sharp_spread",), 1.999999)))
        # The contexts of one query may be narrower than what is known of all distances.
        loose = (("distances", "uniform_at_most_anywhere"), 2.0)
        self.assertTrue(holds(loose))
        self.assertFalse(holds(loose, ((*uniform, "query"), [1.0, 0.0])))
        # What proves nothing at all.
        for path, value in (
                ((*sharp, "everywhere", "turns"), [0.9]), ((*sharp, "in_context", "turns"), [0.19]),
                ((*sharp, "in_context", "still"), [0, 0]), ((*sharp, "in_context", "still"), [0]),
                ((*sharp, "in_context", "distances"), 33),
                ((*sharp, "keys", "high_distance"), 2), ((*sharp, "keys", "high_distance"), 0),
                ((*sharp, "keys", "high_distance"), 5), ((*sharp, "keys", "high"), [1.1, 0.0]),
                ((*sharp, "keys", "low"), [1.1, 0.0]), ((*sharp, "query"), [1.1, 0.0])):
            changes = [(path, value)]
            if path[-1] == "still" and len(value) == 1:
                changes.append(((*sharp, "in_context", "factor"), [1]))
            if value == 33:
                changes.append(((*sharp, "in_context", "turns"), [2.0]))
            self.assertFalse(holds(*changes, error="AssertionError"), (path, value))
        # Just half a turn is one that an angle in its middle bounds.
        self.assertTrue(holds(((*sharp, "in_context"), SLOW | {"distances": 32, "turns": [2.0], "spread": 6.0001,
                                                            "query_multiplier": 3.00001, "key_multiplier": 3.00001})))
        # A proof of fewer distances than the context has bounds nothing of it.
        only = (((*sharp, "by_distance"), None), (("sharp_bounds",), [1.999999, 2.3994]))
        tight = ((*sharp, "in_context"), SLOW | {"distances": 4, "turns": [0.2]})
        wide = ((*sharp, "everywhere"), FAST | {"turns": [1.5], "query_multiplier": 1.50001, "key_multiplier": 1.50001,
                                                "spread": 3.0001})
        anywhere = (("distances", "sharp_at_most_anywhere"), 3.0001)
        self.assertTrue(holds(*only, wide, anywhere))
        self.assertFalse(holds(*only, wide, anywhere, tight))
        short = (((*sharp, "in_context"), None), ((*sharp, "by_distance", "distances"), 4))
        self.assertFalse(holds(*short, wide, anywhere))
        self.assertTrue(holds(*short, wide, anywhere, (("sharp_bounds",), [1.999999, 3.0001])))
        # Without a length of the context, a proof of all distances bounds it, and one of some does not.
        endless = (("distances", "within"), None)
        self.assertTrue(holds(endless))
        self.assertFalse(holds(endless, wide, anywhere))


# A norm of two features and the map that reads it, both scaled: gain g and weights w.
NORM = {"name": "n", "kind": "rms", "groups": 1, "gain": "g", "bias": None, "gain_offset": 0.0, "fold": "migrated"}
REWRITE = {"schema": "normscope.rewrite/1", "norms": [NORM], "streams": [], "rotations": [], "untied": None, "certificates": [
    {"tensor": "w", "input": "w", "change": "scale_inputs", "norm": "n", "bound": 0.0,
     "map": {"tensor": "w", "layout": "out_in", "in": 2}}]}
GAIN = {"tensor": "g", "input": "g", "change": "divide_by_scale", "norm": "n", "bound": 0.0, "map": None}


class ModelChecker(ResultTest):
    def holds(self, document, old, new):
        for name, tensors in (("old", old), ("new", new)):
            safetensors(self.folder / name, {key: np.array(values, np.float32) for key, values in tensors.items()})
        (self.folder / "result.json").write_text(json.dumps(document))
        program = SOURCE / "python/normscope/model_checker.py"
        done = subprocess.run([sys.executable, "-B", program, "result.json", "old", "new"], cwd=self.folder, text=True,
                              capture_output=True)
        self.assertEqual(done.stderr, "")
        return done.returncode == 0

    def test_scales_are_powers_of_two(self):
        document = REWRITE | {"certificates": [*REWRITE["certificates"], GAIN]}
        old = {"g": [12.0, 12.0], "w": [[1.0, 2.0]]}
        self.assertTrue(self.holds(document, old, {"g": [3.0, 6.0], "w": [[4.0, 4.0]]}))
        self.assertFalse(self.holds(document, old, {"g": [4.0, 6.0], "w": [[3.0, 4.0]]}))
        self.assertFalse(self.holds(document, old, {"g": [3.0, 6.0], "w": [[4.0, 4.0001]]}))

    def test_a_folded_gain_is_one(self):
        document = REWRITE | {"norms": [NORM | {"fold": "gain"}]}
        old = {"g": [2.0, 4.0], "w": [[1.0, 2.0]]}
        self.assertTrue(self.holds(document, old, {"g": [1.0, 1.0], "w": [[2.0, 8.0]]}))
        self.assertFalse(self.holds(document, old, {"g": [1.0, 2.0], "w": [[2.0, 4.0]]}))
        self.assertFalse(self.holds(document, old, {"g": [1.0, 1.0], "w": [[2.0, 8.0]], "other": [1.0]}))


if __name__ == "__main__":
    unittest.main()

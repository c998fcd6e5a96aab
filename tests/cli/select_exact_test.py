"""`normscope select --exact`, `--tolerance 0` and columns of mixed scale, against a simplex method in fractions."""

import json
import unittest
from fractions import Fraction

import numpy as np

from command import SANITIZED, CommandTest


def is_inside(rows, i):
    """Whether row i is in the hull of the others: phase 1 of the simplex method, Bland's rule, no rounding."""
    columns = [[x - y for x, y in zip(row, rows[i])] + [Fraction(1)] for j, row in enumerate(rows) if j != i]
    table = [list(line) + [Fraction(0)] for line in zip(*columns)]
    table[-1][-1] = Fraction(1)
    basis = [len(columns) + k for k in range(len(table))]
    cost = [sum(line) for line in zip(*table)]
    while cost[-1] != 0:
        enter = next((j for j in range(len(columns)) if cost[j] > 0), None)
        if enter is None:
            return False
        ratios = [(line[-1] / line[enter], basis[r], r) for r, line in enumerate(table) if line[enter] > 0]
        row = min(ratios)[2]
        pivot = [x / table[row][enter] for x in table[row]]
        table = [pivot if r == row else [x - line[enter] * y for x, y in zip(line, pivot)]
                 for r, line in enumerate(table)]
        cost = [x - cost[enter] * y for x, y in zip(cost, pivot)]
        basis[row] = enter
    return True


def hostile_keys(kind, random):
    """Sets with keys on or near faces of the others' hull, or columns of any size."""
    width = int(random.integers(2, 5))
    count = width + int(random.integers(3, 9))
    keys = random.normal(size=(count, width))
    if kind == "grid":
        return random.integers(-1, 3, size=keys.shape).astype(float)
    if kind == "far grid":
        return random.integers(-1, 3, size=keys.shape) + 2.0 ** int(random.integers(20, 52))
    if kind == "tenths":
        return random.integers(-3, 4, size=keys.shape) * 0.1
    if kind in ("face", "face, mixed"):
        # All keys on one side of a plane, some at most 1e-8 from it.
        keys[:, 0] = np.abs(keys[:, 0]) + 0.1
        keys[:width, 0] = 0
        for i in range(width, width + 2):
            keys[i] = random.dirichlet(np.ones(width)) @ keys[:width]
            keys[i, 0] += random.choice((-1, 1)) * 10.0 ** -random.uniform(8, 20)
        keys = keys @ np.linalg.qr(random.normal(size=(width, width)))[0]
    if kind == "equal":
        keys[1], keys[:, 0] = keys[0], np.round(keys[:, 0])
    if kind == "constant":
        keys[:, 0] = random.choice((0.1, 1e8, 1e30))
    if kind in ("mixed", "face, mixed"):
        keys = keys * 10.0 ** random.uniform(-14, 14, width)
    if kind == "wild":
        keys = keys * 10.0 ** random.uniform(-28, 28, width)
    if kind == "one column":
        keys[:, 0] *= random.choice((1e8, 1e-12, 1e-20, 1e20))
    return keys


KINDS = ("grid", "far grid", "tenths", "face", "face, mixed", "equal", "constant", "mixed", "one column", "wild")


class SelectExact(CommandTest):
    def select(self, keys, *options):
        np.save(self.folder / "keys.npy", np.asarray(keys, float))
        return self.json("select", "keys.npy", *options)

    def verify(self, got):
        (self.folder / "result.json").write_text(json.dumps(got))
        return self.ok("verify", "result.json", "keys.npy")

    def check_certificates(self, got, rows):
        """The integers of every key that is decided exactly prove its answer."""
        for i in got["exact"]:
            verdict = got["verdicts"][i]
            exact = verdict["exact"]
            self.assertEqual((verdict["proof"], exact["answer"]), ("exact", verdict["answer"]))
            if exact["answer"] == "selectable":
                q = [int(x) for x in exact["query"]]
                scores = [sum(a * b for a, b in zip(q, row)) for row in rows]
                self.assertGreater(scores.pop(i), max(scores))
                continue
            z = {share["key"]: int(share["numerator"]) for share in exact["weights"]}
            self.assertTrue(i not in z and min(z.values()) > 0)
            self.assertEqual(sum(z.values()), int(exact["denominator"]))
            point = [sum(z[j] * rows[j][k] for j in z) for k in range(len(rows[0]))]
            self.assertEqual(point, [int(exact["denominator"]) * x for x in rows[i]])

    def test_exact_answers_hold_in_integers(self):
        random = np.random.default_rng(1)
        for kind in KINDS:
            for options in (("--exact",), ("--exact", "--tolerance", 0)):
                with self.subTest(kind, options=options):
                    keys = hostile_keys(kind, random)
                    rows = [[Fraction(x) for x in row] for row in keys]
                    got = self.select(keys, *options)
                    self.assertEqual(got["undecided"], [])
                    self.assertEqual(got["unselectable"], [i for i in range(len(rows)) if is_inside(rows, i)])
                    self.check_certificates(got, rows)
                    self.assertIn("0 failed, 0 not proved", self.verify(got))
                    # No key is called unselectable without an integer certificate.
                    proofs = {got["verdicts"][i]["proof"] for i in got["unselectable"]}
                    self.assertLessEqual(proofs, {"exact", "twin"})

    def test_a_tolerance_of_zero_says_no_only_with_a_proof(self):
        random = np.random.default_rng(2)
        for kind in KINDS:
            with self.subTest(kind):
                keys = hostile_keys(kind, random)
                rows = [[Fraction(x) for x in row] for row in keys]
                got = self.select(keys, "--tolerance", 0)
                inside = {i for i in range(len(rows)) if is_inside(rows, i)}
                self.assertLessEqual(set(got["unselectable"]), inside)
                self.assertLessEqual(inside, set(got["unselectable"] + got["undecided"]))

    def test_columns_of_any_size_change_no_answer(self):
        keys = np.random.default_rng(3).normal(size=(60, 3))
        plain = self.select(keys)
        for column in (2.0 ** 27, 2.0 ** -40, 1e8, 1e-12, 1e-20):
            got = self.select(keys * [column, 1, 1])
            self.assertEqual((got["unselectable"], got["undecided"]), (plain["unselectable"], []), column)
            self.assertIn("0 failed, 0 not proved", self.verify(got))
        # Off the line by 1e-13 of the extent of the first column, which is the whole extent of the second.
        thin = [[0, 0], [4, 0], [2, 1e-13]]
        self.assertEqual(self.select(thin)["unselectable"], [])
        self.assertEqual(self.select(thin, "--tolerance", 0)["unselectable"], [])
        self.assertEqual(self.select([[0, 0], [4, 0], [2, 0], [0, 1e-13]])["unselectable"], [2])

    def test_what_is_undecided_says_how_it_is_decided(self):
        keys = [[0, 0], [4, 0], [0, 4], [1, 2]]
        np.save(self.folder / "keys.npy", np.asarray(keys, float))
        self.assertIn("1 undecided (--exact decides them)", self.ok("select", "keys.npy", "--tolerance", 0))
        self.assertEqual(self.run_command("select", "keys.npy", "--tolerance", 0, "--check").returncode, 4)
        self.assertIn("decided exactly: 1 key\n", self.ok("select", "keys.npy", "--tolerance", 0, "--exact"))
        got = self.select(keys, "--exact")
        self.assertEqual((got["exact"], got["proofs"]["exact"]), ([3], 1))
        self.assertNotIn("exact", self.select(keys))
        self.fails(2, "select", "--random-table", "--exact")

    def test_forged_integers_are_found(self):
        got = self.select([[0, 0], [4, 0], [0, 4], [1, 2]], "--exact", "--certificates", "c")
        self.assertIn("0 failed, 0 not proved", self.verify(got))
        got["verdicts"][3]["exact"]["weights"][0]["numerator"] += "0"
        (self.folder / "result.json").write_text(json.dumps(got))
        self.assertIn("the integers do not prove the answer",
                      self.run_command("verify", "result.json", "keys.npy").stdout)

    def test_integers_behind_a_norm(self):
        keys = np.random.default_rng(4).normal(size=(40, 4))
        got = self.select(keys, "--step", "project", "--exact")
        self.assertEqual(got["undecided"], [])
        self.assertIn("0 failed", self.verify(got))

    @unittest.skipIf(SANITIZED, "too many keys for a sanitizer")
    def test_thousands_of_keys(self):
        got = self.select(np.random.default_rng(5).normal(size=(2000, 5)), "--exact")
        self.assertEqual(got["undecided"], [])
        self.assertGreater(len(got["exact"]), 1500)
        self.assertEqual(got["exact"], got["unselectable"])


if __name__ == "__main__":
    unittest.main()

"""The checkers in Python as programs, and their numbers: forgeries_test.py has what they must not confirm."""

import copy
import json
import subprocess
import sys
import unittest
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from command import CHECKPOINTS, OWN_MODEL, SOURCE, CommandTest, safetensors

sys.path.insert(0, str(SOURCE / "python/normscope"))
import _exact as exact  # noqa: E402
import checker  # noqa: E402
import head_checker  # noqa: E402
import model_checker  # noqa: E402
from forgeries_test import arrays_of_model  # noqa: E402

KEYS = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [2.0, 2.0]])
FACTS = "norm.kind=rms", "norm.eps=1e-5", "norm.name=null", "logit_scale=1", "soft_cap=0"


class Programs(CommandTest):
    def run_checker(self, name, *words):
        done = subprocess.run([sys.executable, "-B", SOURCE / "python/normscope" / name, *map(str, words)], cwd=self.folder, text=True,
                              capture_output=True)
        return done.returncode, done.stdout + done.stderr

    def write(self, name, document):
        (self.folder / name).write_text(json.dumps(document))

    def test_keys(self):
        np.save(self.folder / "keys.npy", KEYS)
        document = self.json("select", "keys.npy")
        self.write("result.json", document)
        self.assertEqual(self.run_checker("checker.py", "result.json", "keys.npy"), (0, "every statement is proved\n"))
        forged = copy.deepcopy(document)
        forged["verdicts"][0]["margin"] *= 1 + 1e-5
        self.write("forged.json", forged)
        status, text = self.run_checker("checker.py", "forged.json", "keys.npy")
        self.assertEqual(status, 1)
        self.assertIn("failed: verdicts[0].margin: is more than its query proves\n", text)
        (self.folder / "forged.json").write_text('{"schema": "normscope.select/1", "schema": "normscope.select/1"}')
        status, text = self.run_checker("checker.py", "forged.json", "keys.npy")
        self.assertEqual((status, text.count("\n")), (3, 1))
        self.assertIn("two members of one object have the same name", text)
        np.save(self.folder / "other.npy", KEYS + 1)
        status, text = self.run_checker("checker.py", "result.json", "other.npy")
        self.assertEqual((status, "inputs.arrays[0].sha256" in text), (1, True))

    def test_what_arrays_do_not_hold_is_given_or_left_unproved(self):
        np.save(self.folder / "w.npy", [[1.0, 0], [-1, 0], [0, 1], [0.1, 0.1]])
        self.write("result.json", self.json("reach", "--unembedding", "w.npy", "--norm", "rms"))
        self.assertEqual(self.run_checker("checker.py", "result.json", "w.npy", *FACTS), (0, "every statement is proved\n"))
        status, text = self.run_checker("checker.py", "result.json", "w.npy", *FACTS[:-1])
        self.assertEqual((status, text), (4, "not proved: soft_cap: is not in the arrays; give it as soft_cap=VALUE\n"))
        status, text = self.run_checker("checker.py", "result.json", "w.npy", *FACTS[1:], "norm.kind=layer")
        self.assertEqual(status, 1)
        self.assertIn("failed: norm.kind: is \"rms\", expected \"layer\"\n", text)

    def test_results_of_models(self):
        cases = [("reach", OWN_MODEL), ("heads", OWN_MODEL)]
        cases += [("heads", path) for path in (CHECKPOINTS / "llama2c_stories260K.safetensors", CHECKPOINTS / "gpt_nano_sort.safetensors")
                  if path.exists()]
        for command, path in cases:
            self.ok(command, path, "--json", "result.json", "-q", *(("--proofs", "--context", 8) if command == "heads" else ()))
            text = (self.folder / "result.json").read_text()
            with self.subTest(path=path.name, command=command):
                outcome = checker.check(text, arrays_of_model(path, json.loads(text)["inputs"]["arrays"]))
                self.assertEqual(outcome.failed, [])
                self.assertGreater(len(outcome.states), 100)


class Numbers(unittest.TestCase):
    def test_signs_with_a_root(self):
        random = np.random.default_rng(1)
        for _ in range(500):
            y, x = (Fraction(int(a), int(b)) for a, b in zip(random.integers(-5, 6, 2), random.integers(1, 5, 2)))
            square = Fraction(int(random.integers(0, 9)), int(random.integers(1, 4)))
            about = float(y) + float(x) * float(square)**0.5
            self.assertEqual(exact.sign(y, x, square), 0 if abs(about) < 1e-12 else np.sign(about), (y, x, square))

    def test_integers_are_the_doubles(self):
        values = [0.1, -3e-200, 5e-324, 1e200, 0.0]
        whole, exponent = exact.integers(values)
        self.assertEqual([Fraction(int(n)) * Fraction(2)**exponent for n in whole], [Fraction(x) for x in values])

    def test_the_least_lead_is_exact(self):
        rows = checker.Rows([[1e-200, 0.0], [3e-200, 0.0], [2e-200, 0.0]])
        self.assertGreater(rows.least_lead(1, [1e-200, 0.0]), 0)
        self.assertLess(rows.least_lead(2, [1e-200, 0.0]), 0)
        random = np.random.default_rng(2)
        values, query = random.normal(size=(40, 5)), random.normal(size=5).tolist()
        exactly = [[sum(Fraction(a) * Fraction(b) for a, b in zip(row, query))] for row in values]
        expected = min(exactly[7][0] - other[0] for j, other in enumerate(exactly) if j != 7)
        self.assertEqual(checker.Rows(values).least_lead(7, query), expected)

    def test_ranks(self):
        a = np.random.default_rng(3).integers(-3, 4, (5, 3)).astype(object)
        gram = a @ a.T
        self.assertEqual(checker.rank_of(gram), 3)
        self.assertEqual(checker.rank_of(gram, definite=True), 3)
        self.assertIs(checker.rank_of(gram - np.array(np.eye(5, dtype=int), object), definite=True), False)

    def test_angles(self):
        for theta, t in (0.7, 10**6), (1e-4, 3), (3.0, -1):
            with localcontext(head_checker.CONTEXT):
                cosine, sine = head_checker.cos_sin(head_checker.turn_of(theta, t))
            self.assertAlmostEqual(float(cosine), np.cos(theta * t), 9)
            self.assertAlmostEqual(float(sine), np.sin(theta * t), 9)
            self.assertLess(abs(cosine**2 + sine**2 - 1), Decimal("1e-27"))

    def test_bounds_of_the_longest_vector_are_tight(self):
        random = np.random.default_rng(4)
        stack, matrix, constant = random.normal(size=(4, 4)), random.normal(size=(4, 9)), random.normal(size=4)
        with localcontext(head_checker.CONTEXT):
            side = head_checker.Side(head_checker.decimals(matrix), head_checker.decimals(constant))
            side.measure()
            shift = stack @ constant
            gram = stack @ matrix @ matrix.T @ stack.T
            bound = lambda mu: (mu * (1 + shift @ np.linalg.solve(mu * np.eye(4) - gram, shift)))**0.5
            largest = np.linalg.eigvalsh(gram)[-1]
            multiplier = min(largest * (1 + np.logspace(-6, 2, 2000)), key=bound)
            found = head_checker.longest(head_checker.decimals(stack), side, head_checker.decimals(stack) @ head_checker.decimals(constant), multiplier)
            self.assertAlmostEqual(float(found) / bound(multiplier), 1, 7)
            # A multiplier below the largest eigenvalue bounds nothing: the sizes alone do.
            worse = head_checker.longest(head_checker.decimals(stack), side, head_checker.decimals(stack) @ head_checker.decimals(constant), 0.5 * largest)
            self.assertGreater(float(worse), float(found))
        u = random.normal(size=(9, 5000))
        self.assertLessEqual(np.linalg.norm(stack @ (matrix @ (u / np.linalg.norm(u, axis=0)) + constant[:, None]), axis=0).max(), float(found))


class Reading(unittest.TestCase):
    def test_what_is_no_result(self):
        for text, message in (("{", "is not JSON"), ("[]", "has no schema"), ("{}", "has no schema"), ('{"schema": 3}', "has no schema"),
                              ('{"schema": "normscope.count/1"}', "has no schema"), ('{"schema": "normscope.select/1"}', "has no version"),
                              ('{"a": 1, "a": 1}', "two members"), ('{"a": NaN}', "not a finite number"), ('{"a": 1e999}', "not a finite number"),
                              ("[" * 100000, "is not JSON"), ('{"a": ' + "9" * 1000 + "}", "too large an integer")):
            with self.assertRaisesRegex(exact.Malformed, message):
                exact.read(text)

    def test_no_field_is_without_an_outcome(self):
        outcome = exact.Outcome()
        outcome.state("a", True)
        outcome.state("b[1]", False, "is wrong")
        outcome.finish({"a": {"c": 1}, "b": [1, 2], "d": [], "e": None, "f": "text"})
        self.assertEqual([path for path, _ in outcome.unproved], ["b[0]", "f"])
        self.assertEqual([path for path, _ in outcome.failed], ["b[1]"])
        self.assertEqual(outcome.exit_status, 1)


class Checkpoints(CommandTest):
    def test_scales_and_gains(self):
        def norms(gain, weight):
            return {"model.norm.weight": np.array(gain, np.float32), "model.w": np.array(weight, np.float32)}
        norm = {"name": "n", "role": "x", "kind": "rms", "eps": 1e-5, "groups": 1, "gain": "model.norm.weight", "gain_offset": 0.0,
                "bias": None, "readers": ["model.w"], "fold": "scales", "reason": None}
        certificate = {"tensor": "model.w", "input": "model.w", "change": "scale_inputs", "norm": "n", "bound": 0.0,
                       "map": {"tensor": "model.w", "layout": "out_in", "in": 2, "out": 1}}
        gain = {"tensor": "model.norm.weight", "input": "model.norm.weight", "change": "divide_by_scale", "norm": "n", "bound": 0.0, "map": None}

        def holds(fold, certificates, old, new):
            document = {"norms": [norm | {"fold": fold}], "streams": [], "rotations": [], "untied": None, "certificates": certificates}
            for name, tensors in (("old", old), ("new", new)):
                safetensors(self.folder / name, tensors)
            return all(holds for _, holds, *_ in model_checker.rewrite(
                document, *(model_checker.Tensors(self.folder / name) for name in ("old", "new"))))
        old = norms([12.0, 12.0], [[1.0, 2.0]])
        self.assertTrue(holds("scales", [certificate, gain], old, norms([3.0, 6.0], [[4.0, 4.0]])))
        self.assertFalse(holds("scales", [certificate, gain], old, norms([4.0, 6.0], [[3.0, 4.0]])))
        self.assertFalse(holds("scales", [certificate, gain], old, norms([3.0, 6.0], [[4.0, 4.0001]])))
        old = norms([2.0, 4.0], [[1.0, 2.0]])
        self.assertTrue(holds("gain", [certificate], old, norms([1.0, 1.0], [[2.0, 8.0]])))
        self.assertFalse(holds("gain", [certificate], old, norms([1.0, 2.0], [[2.0, 4.0]])))
        self.assertFalse(holds("gain", [certificate], old, norms([1.0, 1.0], [[2.0, 8.0]]) | {"other": np.ones(1, np.float32)}))


if __name__ == "__main__":
    unittest.main()

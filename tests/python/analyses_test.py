"""Analyses of arrays and models: answers, proofs that hold, and messages."""

import json
import os
import signal
import tempfile
import threading
import unittest
from pathlib import Path

import normscope as ns
import numpy as np
from model_oracle.fixtures import fixture
from normscope import _core, checker
from normscope._kinds import KINDS

SOURCE = Path(os.environ["NORMSCOPE_SOURCE_DIR"])
KEYS = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0], [1.0, 1.0]])


class Arrays(unittest.TestCase):
    def test_selected_keys_and_their_proofs(self):
        for keys in (KEYS, KEYS.astype(np.float32), KEYS.tolist(), KEYS[:, ::-1], np.asfortranarray(KEYS)):
            found = ns.select(keys)
            self.assertEqual((found.selectable, found.unselectable), (3, [3]))
            checked = ns.verify(found, keys)
            self.assertGreater(checked.checked, 4)
            self.assertEqual(checked.failed, [])

    def test_a_proof_of_other_keys_is_refused(self):
        with self.assertRaisesRegex(ValueError, "keys"):
            ns.verify(ns.select(KEYS), KEYS + 1.0)

    def test_a_forged_answer_fails(self):
        document = ns.select(KEYS).to_dict()
        document["verdicts"][3] = dict(document["verdicts"][0])
        self.assertTrue(ns.verify(json.dumps(document), KEYS).failed)

    def test_two_classes_and_their_hyperplane(self):
        rng = np.random.default_rng(5)
        a, b = rng.normal(size=(20, 3)), rng.normal(size=(30, 3)) + 8.0
        found = ns.separate(a, b)
        self.assertEqual((found.separable, found.rows), ("yes", [20, 30]))
        self.assertTrue((a @ found.normal + found.offset > 0).all() or (a @ found.normal + found.offset < 0).all())
        self.assertEqual(ns.verify(found, a, b).failed, [])
        self.assertEqual(ns.separate(a, b, a + 4.0).rows, [20, 30, 20])

    def test_reachable_tokens(self):
        rng = np.random.default_rng(6)
        rows = rng.normal(size=(40, 5))
        rows[7] = rows[:7].mean(0)
        found = ns.reach(rows, ns.Norm(5, "rms"), tokens=[0])
        self.assertIn(7, [entry.token for entry in found.unreachable])
        self.assertEqual(ns.verify(found, rows, ns.Norm(5, "rms")).failed, [])
        self.assertGreater(ns.verify(found, rows, ns.Norm(5, "rms")).checked, 40)
        forged = found.to_dict()
        forged["unreachable"][0]["weights"][0]["weight"] *= 2
        self.assertTrue(ns.verify(json.dumps(forged), rows, ns.Norm(5, "rms")).failed)
        for other in ((rows + 1.0, ns.Norm(5, "rms")), (rows, ns.Norm(5, "rms", gain=np.full(5, 2.0)))):
            with self.assertRaisesRegex(ValueError, "^the head: "):
                ns.verify(found, *other)
        with self.assertRaisesRegex(TypeError, "^verify: 0 inputs of a result of reach, expected 1 to 3$"):
            ns.verify(found)

    def test_leads_that_float32_may_lose(self):
        rng = np.random.default_rng(6)
        norm, rows = ns.Norm(5, "rms", gain=np.linspace(0.5, 2.0, 5), bias=np.full(5, 0.25)), rng.normal(size=(40, 5))
        rows[8] = rows[0] + 1e-9 * rng.normal(size=5)
        head = ns.Head(norm, rows, rng.normal(size=40) / 8)
        head.bias[8] = head.bias[0]
        found, least = ns.reach(rows, norm, head.bias), head.float32_lead()
        lower, upper = found.to_numpy("lead.lower"), found.to_numpy("lead.upper")
        self.assertTrue((upper[[0, 8]] < least).all())
        self.assertGreater((lower > least).sum(), 20)
        # No logit in float32 is farther from the exact one than half of it.
        x = rng.normal(size=(20000, 5))
        h = norm(x).astype(np.float32)
        error = h @ rows.T.astype(np.float32) + head.bias.astype(np.float32) - head.logits(x)
        self.assertTrue(0.01 * least < abs(error).max() < 0.5 * least)
        scaled = ns.Head(norm, rows, head.bias, scale=-3.0)
        self.assertAlmostEqual(scaled.float32_lead(), 3.0 * least)

    def test_a_coarser_tolerance_proves_more_tokens_unreachable(self):
        rng = np.random.default_rng(6)
        rows, norm = rng.normal(size=(40, 5)), ns.Norm(5, "rms")
        rows[7] = rows[1:7].mean(0)
        rows[7] *= 1.0 - 1e-3 / np.linalg.norm(rows[7])
        for tolerance in (1e-12, 0.2):
            found = ns.reach(rows, norm, tolerance=tolerance)
            self.assertEqual(ns.verify(found, rows, norm).failed, [])
            self.assertEqual(found.tolerance, tolerance)
            self.assertTrue(all(entry.lead_at_most <= tolerance * found.scale for entry in found.unreachable))
        self.assertGreaterEqual(len(found.unreachable), len(ns.reach(rows, norm).unreachable))
        # A corner 1e-3 outside of an edge leads there, by less than the tolerance.
        corners = np.array([[1.0, 0.0], [-0.5, 0.75**0.5], [-0.5, -(0.75**0.5)], [0.2505, 0.501 * 0.75**0.5]])
        found = ns.reach(corners, ns.Norm(2, "rms"), tolerance=0.3)
        self.assertEqual(found.unreachable, [])
        self.assertTrue(0 < found.to_numpy("lead.upper")[3] < 0.3 * found.scale)

    def test_the_image_of_a_norm(self):
        norm = ns.Norm(3, gain=np.array([1.0, 2.0, 3.0]), eps=0.0)
        image = norm.geometry(axes=2, null_space=True)
        self.assertEqual(image.null_space_dim, 1)
        x = np.random.default_rng(7).normal(size=(500, 3))
        spread = np.abs(norm(x) @ np.array(image.axes).T).max(0)
        np.testing.assert_array_less(spread, np.array(image.semi_axes) * (1 + 1e-12))
        np.testing.assert_allclose(spread, image.semi_axes, rtol=1e-2)
        np.testing.assert_allclose(norm(x) @ image.null_space[0], 0.0, atol=1e-12)
        self.assertEqual(repr(norm), "Norm(layer, width=3, eps=0, with gain)")

    def test_wrong_arguments_are_refused_in_one_line(self):
        for error, message, call in (
            (ValueError, r"^select: keys has shape \(4,\), expected \(rows, width\)$", lambda: ns.select(KEYS[:, 0])),
            (TypeError, "^select: keys is int64, expected float64", lambda: ns.select(KEYS.astype(int))),
            (TypeError, "^select: tolerance is 'x', expected a number$", lambda: ns.select(KEYS, tolerance="x")),
            (ValueError, "^select: tolerance is nan, expected 0 to 1$",
             lambda: ns.select(KEYS, tolerance=float("nan"))),
            (TypeError, "^select: threads is 1.5, expected an integer$", lambda: ns.select(KEYS, threads=1.5)),
            (TypeError, r"^select: progress is 3, expected a function of \(what, done, total\)$",
             lambda: ns.select(KEYS, progress=3)),
            (ValueError, "NaN|nan", lambda: ns.select(KEYS * np.nan)),
            (ValueError, "^separate: 1 classes, expected at least two$", lambda: ns.separate(KEYS)),
            (ValueError, "^separate: class 1 has width 3, class 0 has 2", lambda: ns.separate(KEYS, np.ones((2, 3)))),
            (ValueError, "^separate: class 1 has no rows", lambda: ns.separate(KEYS, np.ones((0, 2)))),
            (ValueError, "^reach: width is -1, expected at least 1$", lambda: ns.reach(KEYS, ns.Norm(-1))),
            (TypeError, "^geometry: eps is 'x', expected a number$", lambda: ns.Norm(3, eps="x").geometry()),
            (ValueError, "^reach: token 9 is not among the 4, expected 0 to 3$", lambda: ns.reach(KEYS, tokens=[9])),
            (TypeError, "^verify: 2 inputs of a result of select, expected 1$",
             lambda: ns.verify(ns.select(KEYS), KEYS, KEYS)),
            (TypeError, "^open: int is neither a path nor a torch.nn.Module$", lambda: ns.open(3)),
            (OSError, "/nonexistent", lambda: ns.open("/nonexistent")),
        ):
            with self.assertRaisesRegex(error, message) as caught:
                call()
            self.assertNotIn("\n", str(caught.exception))


class Parts(unittest.TestCase):
    X = np.random.default_rng(10).normal(size=(3, 4, 12)) + 0.5

    def test_parts_add_up_to_the_norm(self):
        parts = np.random.default_rng(11).normal(size=(5, *self.X.shape))
        parts[-1] = self.X - parts[:-1].sum(0)
        gain, bias = np.linspace(-1.0, 2.0, 12), np.linspace(0.0, 1.0, 12)
        kinds = [kind for kind, facts in KINDS.items() if facts.divisor != "nothing"]
        for norm in (*(ns.Norm(12, kind, gain=gain, bias=bias) for kind in kinds), ns.Norm(12, groups=3, gain=gain)):
            whole = sum(norm.part(self.X, part) for part in parts)
            np.testing.assert_allclose(whole + (0.0 if norm.bias is None else norm.bias), norm(self.X), atol=1e-12)
            self.assertEqual(norm.sigma(self.X).shape, (3, 4, norm.groups))
        for kind in KINDS.keys() - kinds:
            with self.assertRaisesRegex(ValueError, f"^sigma: {kind} divides by no deviation, expected layer, rms or"):
                ns.Norm(12, kind).part(self.X, self.X)
        with self.assertRaisesRegex(ValueError, '^sigma: unknown norm kind "batch", expected layer, rms'):
            ns.Norm(12, "batch").sigma(self.X)
        with self.assertRaisesRegex(ValueError, r"^norm: x has shape \(4,\), expected \(..., 12\)$"):
            ns.Norm(12).sigma(np.ones(4))

    def test_logits_are_the_sum_of_what_parts_add(self):
        head = ns.open(fixture("gpt2")).head()
        width = head.norm.width
        parts = np.random.default_rng(12).normal(size=(6, 2, width))
        x = parts.sum(0)
        found = head.decompose(x, parts, [3, 1])
        np.testing.assert_allclose(found.logits, head.logits(x)[..., [3, 1]], atol=1e-12)
        np.testing.assert_allclose(head.logits(x), head.norm(x) @ head.unembedding.T, atol=1e-12)
        with self.assertRaisesRegex(ValueError, "^decompose: the parts do not sum to x$"):
            head.decompose(x, parts * 2.0, [0])
        with self.assertRaisesRegex(ValueError, "^decompose: parts have shape"):
            head.decompose(x, x, [0])

    def test_neurons_that_write_to_the_null_space(self):
        rng = np.random.default_rng(13)
        unembedding = rng.normal(size=(50, 8))
        unembedding[:, 5] *= 1e-5
        head = ns.Head(ns.Norm(8, "rms"), unembedding)
        neurons = head.neurons(np.eye(8))
        np.testing.assert_allclose(neurons.null_share, np.arange(8) == 5, atol=1e-6)
        self.assertLess(neurons.logit_effect[5], 1e-3 * neurons.logit_effect[0])
        np.testing.assert_array_equal(neurons.norm, np.ones(8))
        ones = ns.Head(ns.Norm(8), unembedding).neurons(np.ones((1, 8)))
        self.assertEqual((ones.null_share[0], ones.logit_effect[0]), (0.0, 0.0))

    def test_neurons_that_shift_logits_by_frequency(self):
        rng = np.random.default_rng(14)
        often = rng.integers(1, 1000, size=50)
        for kind in ("layer", "rms"):
            head = ns.Head(ns.Norm(8, kind, gain=rng.normal(size=8)), rng.normal(size=(50, 8)), scale=-2.0)
            # What fits the logarithms best, and its opposite, among others.
            direct = head.unembedding * head.norm.gain
            best = np.linalg.lstsq(np.c_[direct, np.ones(50)], np.log(often), rcond=None)[0][:8]
            out = np.stack([best, -best, *rng.normal(size=(4, 8))])
            seen = out - out.mean(1, keepdims=True) if kind == "layer" else out
            found = head.neurons(out, frequencies=often).frequency_correlation
            wanted = [np.corrcoef(head.scale * direct @ row, np.log(often))[0, 1] for row in seen]
            np.testing.assert_allclose(found, wanted, atol=1e-12)
            self.assertEqual((int(np.argmin(found)), int(np.argmax(found))), (0, 1) if kind == "rms" else
                             (int(np.argmin(wanted)), int(np.argmax(wanted))))
        self.assertIsNone(head.neurons(out).frequency_correlation)
        for wrong in (often[:-1], often * 0, often - often[0], np.full(50, np.nan)):
            with self.assertRaisesRegex(ValueError, r"^neurons: frequencies has shape \(\d+,\), or is not above 0"):
                head.neurons(out, frequencies=wrong)


class Checker(unittest.TestCase):
    def test_the_stand_alone_checker_agrees(self):
        a, b = KEYS, KEYS + 9.0
        failed = lambda result, arrays: [path for path, _ in checker.check(result.to_dict(), arrays).failed]
        self.assertEqual(failed(ns.select(KEYS), [KEYS]), [])
        self.assertEqual(failed(ns.separate(a, b), [a, b]), [])
        forged = ns.separate(a, b).to_dict()
        forged["margin"] *= 1.01
        self.assertEqual([path for path, _ in checker.check(forged, [a, b]).failed], ["margin"])
        self.assertTrue(any(path.startswith("inputs.arrays") for path in failed(ns.select(KEYS), [KEYS + 1.0])))


class Models(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = ns.open(fixture("gpt2"))

    def test_what_is_in_the_file(self):
        self.assertEqual(len(self.model.norms()), 5)
        self.assertIn("GPT-2", repr(self.model))
        name = self.model.norms()[0]
        norm = self.model.norm(name)
        np.testing.assert_array_equal(norm.gain, self.model.tensor(self.model.inspect().norms[0].gain))
        self.assertEqual(norm.geometry().semi_axes, self.model.geometry(name).semi_axes)
        gain = self.model.inspect().norms[0].gain
        for ask, meant in ((self.model.norm, name), (self.model.tensor, gain)):
            with self.assertRaisesRegex(ValueError, f'; did you mean "{meant}"'):
                ask(meant[:-1])

    def test_the_report_is_that_of_the_command(self):
        report = self.model.report(vocabulary=False)
        self.assertEqual([norm.name for norm in report.norms], self.model.norms())
        self.assertIn("<iframe", report._repr_html_())
        self.assertIn("vega-lite", report.plot()["$schema"])
        self.assertIn("application/vnd.vegalite.v5+json", report.plot()._repr_mimebundle_())
        with tempfile.TemporaryDirectory() as folder:
            report.save(Path(folder) / "page.html")
            report.save(Path(folder) / "report.json")
            self.assertTrue((Path(folder) / "page.html").read_text().startswith("<!doctype html>"))
            self.assertEqual(ns.results.read(Path(folder) / "report.json").to_dict(), report.document.to_dict())

    def test_heads_and_tokens_with_proofs(self):
        heads = self.model.heads(certificates=True)
        self.assertEqual(len(heads.heads), 6)
        self.assertEqual(ns.verify(heads, self.model).failed, [])
        reach = self.model.reach()
        self.assertEqual(ns.verify(reach, fixture("gpt2")).failed, [])

    def test_a_text_through_the_model(self):
        own = ns.open(SOURCE / "models/wordlist_gpt")
        found = own.trace("under", threads=1)
        self.assertEqual([token.name for token in found.tokens], list("under"))
        self.assertEqual(len(found.norms), 9)
        again = own.trace([token.token for token in found.tokens], threads=1)
        self.assertEqual(again.predictions, found.predictions)
        self.assertIsNotNone(found.plot("trace-sigma"))
        with self.assertRaisesRegex(ValueError, "^trace: the context is empty, expected at least one token$"):
            own.trace("")
        with self.assertRaisesRegex(ValueError, 'the text has "Z", which is not in the vocabulary'):
            own.trace("Z")

    def test_a_logit_split_by_component(self):
        own = ns.open(SOURCE / "models/wordlist_gpt")
        found = own.attribute("understandin", "g", keep=["3.mlp"], most_removed=3, certificates=True, threads=1)
        self.assertEqual(found.target.name, "g")
        self.assertAlmostEqual(found.constant + sum(c.share for c in found.components), found.value, delta=1e-9)
        self.assertEqual(own.attribute([token.token for token in found.tokens], found.target.token, keep=["3.mlp"], most_removed=3,
                                       certificates=True, threads=1).to_dict(), found.to_dict())
        checked = ns.verify(found, own)
        self.assertEqual(checked.failed, [])
        self.assertGreater(checked.checked, 200)
        forged = found.to_dict()
        forged["components"][4]["price"] += 1e-6
        self.assertTrue(ns.verify(json.dumps(forged), own).failed)
        with self.assertRaisesRegex(ValueError, "has no proof"):
            ns.verify(own.attribute("u", "n", budget=0.0), own)
        rows = -np.array(found.proof.changes)  # without their means
        self.assertRaisesRegex(ValueError, "do not add up", own.attribute, "understandin", "g", components=rows)
        with self.assertRaisesRegex(ValueError, 'expected "zero", "mean" or rows'):
            own.attribute("u", "n", replace_with="noise")

    def test_ranges_hold_at_random_inputs(self):
        found = self.model.ranges()
        head = self.model.head()
        logits = head.logits(100.0 * np.random.default_rng(14).normal(size=(200, head.norm.width)))
        self.assertLessEqual(logits.max(), found.logits.highest.bound)
        self.assertGreaterEqual(logits.min(), found.logits.lowest.bound)
        self.assertEqual([norm.name for norm in found.norms], self.model.norms())
        self.assertIn("vega-lite", found.plot()["$schema"])
        with self.assertRaisesRegex(ValueError, "^plot: there is no chart$"):
            self.model.inspect().plot()

    def test_results_say_their_answer(self):
        rng = np.random.default_rng(15)
        a, b = rng.normal(size=(20, 3)), rng.normal(size=(30, 3)) + 8.0
        heads = self.model.heads()
        norm = self.model.norms()[0]
        for result, answer, chart in (
            (ns.select(KEYS), "Select 3 of 4 keys selectable, 1 not>", "margins"),
            (ns.separate(a, b), "Separate 20 + 30 rows of width 3: separable: yes, SSR 0.", "along-direction"),
            (ns.separate(a, b, a), "Separate 20 + 30 + 20 rows of width 3: SSR 0.", "along-direction"),
            (ns.reach(a, ns.Norm(3)), "Reach ", "leads"),
            (ns.Norm(3, gain=np.array([1.0, 2.0, 3.0])).geometry(), "Geometry layer of width 3: 2 semi-axes from ",
             "semi-axes"),
            (self.model.geometry(norm), "Geometry layer of width ", "semi-axes"),
            (heads, "Heads 6 of 6 heads bounded, sharpest spread ", "head-spread"),
            (self.model.reach(), "tokens can have the largest logit, 0 never>", "leads"),
            (self.model.ranges(), "Ranges 5 norms, ", "ranges"),
            (self.model.trace([0, 1]), "TokenTrace 2 tokens through 5 norms>", "trace-sigma"),
            (self.model.attribute([0, 1], 2), "Attribute 14 components of a logit of ", "attribution"),
            (self.model.inspect(), "Inspect GPT-2 or minGPT: ", None),
            (ns.verify(ns.select(KEYS), KEYS), "Verify 14 statements of select checked, all hold>", None),
            (self.model.rewrite(fold=True), "Rewrite gains folded; ", None),
            (self.model.compare(self.model), "Compare same; 5 norms, 0 findings>", None),
        ):
            with self.subTest(answer):
                self.assertIn(answer, repr(result))
                self.assertTrue(repr(result).startswith("<normscope."))
                page = result._repr_html_()
                self.assertTrue(page.startswith(f"<div><strong>{type(result).__name__}</strong>: "), page[:60])
                self.assertNotIn("(…)", page)
                self.assertEqual(page.count("<table"), page.count("</table>"))
                if chart is not None:
                    self.assertEqual(next(iter(result._charts)), chart)
                    self.assertIn(chart, result._charts)
                    self.assertIn("vega-lite", result.plot(chart)["$schema"])
        # A bound is rounded up, so that the line stays true.
        largest = max(head.sharp_bounds[1] for head in heads.heads)
        stated = float(repr(heads).rpartition(" ")[2].rstrip(">"))
        self.assertTrue(largest <= stated <= 1.002 * largest)

    def test_documents_of_other_content_are_shown_all_the_same(self):
        document = ns.select(KEYS).to_dict()
        for field in document.keys() - {"schema"}:
            for wrong in (None, 3, "text", [], [None], [[1]], {}, True):
                try:
                    result = ns.results.parse({**document, field: wrong})
                except ValueError:
                    continue
                self.assertIn("Select", repr(result))
                self.assertIn("Select", result._repr_html_())

    def test_a_rewrite_compares_as_equivalent(self):
        with tempfile.TemporaryDirectory() as folder:
            planned = self.model.rewrite(fold=True)
            written = self.model.rewrite(Path(folder) / "folded", fold=True)
            self.assertEqual([norm.fold for norm in planned.norms], [norm.fold for norm in written.norms])
            self.assertTrue(written.certificates)
            compared = self.model.compare(Path(folder) / "folded")
            self.assertEqual(compared.agreement, "equivalent")
            self.assertIn("vega-lite", compared.plot()["$schema"])
            restored = ns.open(Path(folder) / "folded").undo(Path(folder) / "back")
            self.assertTrue(restored.tensors)
            self.assertIn(self.model.compare(Path(folder) / "back").agreement, ("same", "equivalent"))
            turned = self.model.rewrite(Path(folder) / "turned", fold=True, untie=True, rotate=3)
            self.assertTrue(turned.certificates)
            self.assertEqual(self.model.compare(Path(folder) / "turned").agreement, "equivalent")
        self.assertEqual(self.model.compare(self.model).agreement, "same")

    def test_ranges_and_rewrites_are_verified(self):
        ranges = self.model.ranges()
        checked = ns.verify(ranges, self.model)
        self.assertEqual((checked.result, checked.failed), ("normscope.ranges/1", []))
        self.assertGreater(checked.checked, 50)
        forged = ranges.to_dict()
        forged["norms"][1]["readers"][0]["highest"]["bound"] *= 1 - 1e-6
        self.assertIn("highest", ns.verify(json.dumps(forged), self.model).failed[0].item)
        with tempfile.TemporaryDirectory() as folder:
            written = self.model.rewrite(Path(folder) / "out", fold=True)
            checked = ns.verify(written, self.model, Path(folder) / "out")
            self.assertGreater(checked.checked, len(written.certificates))
            self.assertEqual(checked.failed, [])
            self.assertTrue(ns.verify(written, self.model, self.model).failed)
            turned = self.model.rewrite(Path(folder) / "turned", fold=True, untie=True, rotate=3)
            self.assertEqual(ns.verify(turned, self.model, Path(folder) / "turned", 3).failed, [])
            self.assertTrue(ns.verify(turned, self.model, Path(folder) / "turned", 4).failed)
            with self.assertRaisesRegex(ValueError, "^verify: the result does not fit .*: the stream was rotated"):
                ns.verify(turned, self.model, Path(folder) / "turned")
        with self.assertRaisesRegex(TypeError, "^verify: 1 inputs of a result of rewrite, expected 2 to 3$"):
            ns.verify(written, self.model)
        with self.assertRaisesRegex(ValueError, "^verify: the result does not fit .*: no norm 'transformer"):
            ns.verify(ranges, fixture("llama"))
        for broken in ({}, {"norms": None}, {"norms": [3]}, {"norms": [{"name": [], "source": {}}]}):
            with self.assertRaisesRegex(ValueError, "^verify: the result does not fit "):
                ns.verify(json.dumps({"schema": "normscope.ranges/1", **broken}), self.model)

    def test_names_that_are_not_there(self):
        with self.assertRaisesRegex(ValueError, 'no norm "ln_9"'):
            self.model.norm("ln_9")
        with self.assertRaisesRegex(ValueError, 'no tensor "w"'):
            self.model.tensor("w")
        with self.assertRaisesRegex(ValueError, "^rewrite: nothing to do"):
            self.model.rewrite()

    def test_what_a_file_does_not_state_is_stated(self):
        with tempfile.TemporaryDirectory() as folder:
            bare = Path(folder) / "bare.safetensors"
            bare.write_bytes((fixture("gpt2") / "model.safetensors").read_bytes())
            self.assertEqual(ns.open(bare).heads().heads, [])
            stated = ns.open(bare, architecture="gpt2", heads=3)
            self.assertEqual(len(stated.heads().heads), len(self.model.heads().heads))
            with self.assertRaisesRegex(ValueError, "architecture \"lama\" is not known"):
                ns.open(bare, architecture="lama")

    def test_a_rewrite_that_is_exact_for_nothing_is_refused(self):
        model = ns.open(fixture("llama"))
        self.assertFalse(any(stream.centered for stream in model.rewrite(center=True).streams))
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaisesRegex(ValueError, "cannot be centred exactly: model.layers.0.input_layernorm is an RMSNorm"):
                model.rewrite(Path(folder) / "out", center=True)
            self.assertEqual(list(Path(folder).iterdir()), [])


class Observers(unittest.TestCase):
    """What `watch` is made of, without torch; tests/python/interop watches models."""

    def test_the_document_is_as_its_schema_says(self):
        import jsonschema

        observers = []
        for kind in ("layer", "rms"):
            observer = _core.observer_of(ns.Norm(8, kind, gain=np.arange(8.0)), 4, 3, 16, 0, 2, 1)
            _core.observe(observer, np.random.default_rng(9).normal(size=(50, 8)).astype(np.float32))
            observers.append((kind, 1, observer))
        unused = _core.observer_of(ns.Norm(8), 4, 3, 16, 0, 2, 1)
        document, charts = map(json.loads, _core.observed("Model", [*observers, ("unused", 0, unused)],
                                                          [("odd", "a reason")], None, 0, 0.0, 0, None))
        schema = json.loads((SOURCE / "docs/schemas/activations.schema.json").read_text())
        jsonschema.validate(document, schema)
        found = ns.results.parse(document)
        self.assertEqual([norm.rows for norm in found.norms], [50, 50, 0])
        self.assertEqual((len(found.norms[0].axes), len(found.norms[0].features)), (4, 3))
        self.assertEqual(found.to_dict(), document)
        jsonschema.validate(charts, json.loads((SOURCE / "docs/schemas/charts.schema.json").read_text()))
        self.assertEqual([chart["id"] for chart in charts], ["sigma", "ones", "frozen", "dimension"])
        self.assertEqual(json.loads(_core.observed("Model", [("unused", 0, unused)], [], None, 0, 0.0, 0, None)[1]), [])


class Interruption(unittest.TestCase):
    KEYS = np.random.default_rng(8).normal(size=(4000, 12))

    def test_progress_is_reported_and_its_errors_propagate(self):
        steps = []
        ns.select(self.KEYS[:400], progress=lambda what, done, total: steps.append((what, done, total)))
        self.assertTrue(all(0 <= done <= total for _, done, total in steps))

        def fail(what, done, total):
            raise LookupError("enough")

        with self.assertRaisesRegex(LookupError, "enough"):
            ns.select(self.KEYS, progress=fail)

    def test_other_threads_run_and_ctrl_c_stops(self):
        calls, done = [], threading.Event()

        def interrupt():
            """Stops the main thread when this one has run three times during one call."""
            seen = []
            while not done.wait(0.001):
                seen.append(len(calls))
                if seen.count(len(calls)) == 3:
                    return os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with self.assertRaises(KeyboardInterrupt):
            for _ in range(200):
                ns.select(self.KEYS)
                calls.append(1)
        done.set()
        thread.join()


if __name__ == "__main__":
    unittest.main()

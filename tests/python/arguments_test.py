"""Every public function with arguments of every wrong kind: a result or a one-line error, never a crash."""

import functools
import inspect
import os
import sys
import tempfile
import types
import unittest

import normscope as ns
import numpy as np
from activations_test import Fake, watched
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_oracle.fixtures import fixture

# Tables are only asked for, and are pandas's own afterwards.
sys.modules.setdefault("pandas", types.SimpleNamespace(DataFrame=dict, json_normalize=list))

X = np.random.default_rng(4).normal(size=(4, 6))
X.setflags(write=False)  # it is an `out` below
NORM = ns.Norm(6, gain=np.arange(1.0, 7.0))
LABELS = np.array([0, 1, 0, 1])
HIDDEN = np.random.default_rng(5).normal(size=(40, 4))
OUTPUTS = HIDDEN / np.linalg.norm(HIDDEN, axis=1, keepdims=True) @ np.random.default_rng(6).normal(size=(4, 9))


class Hostile:
    """Claims to be an array, and fails when it is read."""

    dtype = "float64"
    shape = (4, 6)

    def __array__(self, *_, **__):
        raise RuntimeError("no array\nafter all")

    def __len__(self):
        raise OverflowError("no length")


class Failing:
    """Claims to have DLPack's interface, and fails when it is read."""

    def __dlpack__(self, **_):
        raise BufferError("no buffer\nafter all")

    def __dlpack_device__(self):
        return 1, 0


def array(values, dtype):
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(dtype)


with np.errstate(all="ignore"):
    HUGE, TINY = X * 1e308, X * 1e-320
WRONG = [None, 3, -1, 2**70, 0.5, float("nan"), float("inf"), True, "text", b"bytes", "", [], {}, object(), Hostile(), Failing(), [[1.0], [1.0, 2.0]],
         [["a", "b"]], [None, None], (1.0, 2.0), range(3), X[0], X[:0], X[:, :0], X[0, 0], np.float64(2.0), X * np.nan,
         np.where(X > 0, np.inf, X), HUGE, TINY, array(X, int), array(X, bool), array(X, complex),
         array(X, object), np.array([[object()] * 6] * 4), array(X, "U8"), np.zeros((4, 6), "datetime64[s]"),
         np.zeros(4, [("a", float)]), array(X, ">f8"), array(X, np.float16), array(X, np.float32),
         array(X, np.longdouble), np.asfortranarray(X), X[::-1], X[:, ::-1], np.repeat(X, 2, 1)[:, ::2],
         np.broadcast_to(X[:1], (4, 6)), X.copy(), X[None], X[None, None], np.ma.masked_array(X, X > 0),
         X.T, np.ones((6, 6)), np.ones(6), np.ones(7), LABELS, [0, 1, 0, 1], NORM, memoryview(X), X]
anything = st.sampled_from(range(len(WRONG))).map(WRONG.__getitem__)
REFUSALS = (TypeError, ValueError, OSError)


@functools.lru_cache(maxsize=None)
def model():
    return ns.open(fixture("gpt2"))


@functools.lru_cache(maxsize=None)
def net():
    return ns.build(X, LABELS).net


@functools.lru_cache(maxsize=None)
def ellipse():
    return ns.signature.extract(OUTPUTS).ellipse


@functools.lru_cache(maxsize=None)
def head():
    return model().head()


@functools.lru_cache(maxsize=None)
def report():
    return model().report(vocabulary=False, budget=1.0)


@functools.lru_cache(maxsize=None)
def trained():
    return ns.train(X, LABELS, steps=2, threads=1)


@functools.lru_cache(maxsize=None)
def seen():
    return watched("gpt2", length=4, sample=4)[2]


@functools.lru_cache(maxsize=None)
def selection():
    return ns.select(X)


#: Of every public function: arguments that it takes, by place or name. Each of them is replaced in turn.
CALLS = {
    "normalize": (ns.normalize, [X, np.ones(6), np.ones(6)],
                  dict(kind="layer", groups=2, eps=1e-5, alpha=1.0, shift=0.0, out=None, threads=1)),
    "add_normalize": (ns.add_normalize, [X, X, np.ones(6), np.ones(6)], dict(kind="rms", groups=1, out=None, threads=1)),
    "normalize_backward": (ns.normalize_backward, [X, X, np.ones(6)], dict(parameters=True, out=None, eps=0.0)),
    "jacobian_vector": (ns.jacobian_vector, [X, X, np.ones(6)], dict(out=None, groups=3)),
    "vector_jacobian": (ns.vector_jacobian, [X, X, np.ones(6)], dict(out=None)),
    "hessian_vector": (ns.hessian_vector, [X, X, X, np.ones(6)], dict(out=None)),
    "curvature": (ns.curvature, [X, np.ones(6)], dict(threads=1)),
    "select": (ns.select, [X], dict(tolerance=1e-9, rank_tolerance=1e-9, exact=False, threads=1)),
    "reach": (ns.reach, [X, NORM, np.zeros(4)], dict(tokens=[0], nearest=2, budget=1.0, tolerance=1e-9, threads=1)),
    "separate": (ns.separate, [X, X + 1.0], dict(tolerance=1e-9, exact=False, threads=1)),
    "verify": (ns.verify, [ns.select(X), X], dict(threads=1)),
    "verify of ranges": (lambda *a, **k: ns.verify(*a, **k), [model().ranges(), model()], dict(threads=1)),
    "build": (ns.build, [X, LABELS, None], dict(mode="stable", random_labels=0, seed=1, precision=None, eps=0.0,
                                               drop_conflicts=True, resume=None, threads=1)),
    "count": (ns.count, ["gru", "anbn"], dict(letters=4, up_to=6)),
    "run": (lambda *a, **k: ns.run(*a, **k), [net(), X], dict(threads=1)),
    "train": (ns.train, [X, LABELS, None],
              dict(width=2, depth=1, activation="norm", norm="rms", groups=(1,), eps=1e-5, affine=False, optimizer="adam",
                   rate=0.1, schedule="constant", steps=2, batch=2, precision="float64", record_every=1, seed=1, seeds=1,
                   resume=None, threads=1)),
    "signature.verify": (lambda *a, **k: ns.signature.verify(*a, **k), [ellipse(), OUTPUTS[:3]],
                         dict(ids=[*range(9)], temperature=1.0, precision="float64", least_mean_square=0.0, threads=1)),
    "signature.extract": (ns.signature.extract, [OUTPUTS, None],
                          dict(temperature=1.0, precision=None, soft_cap=0.0, rank=0, resume=None, threads=1)),
    "signature.kind": (ns.signature.kind, [OUTPUTS], dict(temperature=1.0, precision=None, threads=1)),
    "signature.compare": (lambda *a, **k: ns.signature.compare(*a, **k), [ellipse(), ellipse()], dict(threads=1)),
    "signature.Ellipse": (ns.signature.Ellipse, ["absent"], {}),
    "convert": (ns.convert, ["absent.h5", "converted.safetensors"], {}),
    "open": (ns.open, [fixture("gpt2")], dict(architecture="", heads=0)),
    "watch": (ns.watch, [Fake("gpt2")], dict(which=None, axes=1, features=1, sample=1, contexts=1, positions=2,
                                             most_rows=0, seed=1)),
    "Activations.within": (lambda *a, **k: seen().within(*a, **k), [fixture("gpt2")], dict(heads=1, budget=1.0, threads=1)),
    "Activations.report": (lambda *a, **k: seen().report(*a, **k), [fixture("gpt2")],
                           dict(vocabulary=False, budget=1.0, threads=1)),
    "Activations.save": (lambda *a: seen().save(*a), ["seen.json"], {}),
    "Result.plot": (lambda *a: selection().plot(*a), ["margins"], {}),
    "Activations.extremes": (lambda *a, **k: seen().extremes(*a, **k), [None], dict(most=2)),
    "Activations.merge": (lambda *a: seen().merge(*a), [seen()], {}),
    "Result.to_pandas": (lambda *a: selection().to_pandas(*a), ["verdicts"], {}),
    "Result.to_numpy": (lambda *a: selection().to_numpy(*a), ["verdicts.margin"], {}),
    "Result.save": (lambda *a: selection().save(*a), ["selection.json"], {}),
    "Chart.save": (lambda *a: report().charts["condition"].save(*a), ["chart.json"], {}),
    "Illustrated.plot": (lambda *a: report().plot(*a), ["condition"], {}),
    "Illustrated.to_numpy": (lambda *a: report().to_numpy(*a), ["norms.image.condition"], {}),
    "Illustrated.to_pandas": (lambda *a: report().to_pandas(*a), ["norms"], {}),
    "Report.save": (lambda *a: report().save(*a), ["report.html"], {}),
    "Trained.to_pandas": (lambda *a: trained().to_pandas(*a), ["runs"], {}),
    "Verified.to_pandas": (lambda *a: ns.signature.verify(ellipse(), OUTPUTS[:3]).to_pandas(*a), ["results"], {}),
    "Extracted.to_pandas": (lambda *a: ns.signature.extract(OUTPUTS).to_pandas(*a), [None], {}),
    "Ellipse.save": (lambda *a: ellipse().save(*a), ["ellipse.safetensors"], {}),
    "Net.save": (lambda *a: net().save(*a), ["net.safetensors"], {}),
    "results.parse": (ns.results.parse, [{}], {}),
    "results.loads": (ns.results.loads, ["{}"], {}),
    "results.read": (ns.results.read, ["absent"], {}),
    "Net": (ns.Net, ["absent"], {}),
    "Net.trace": (lambda *a, **k: net().trace(*a, **k), [X], dict(threads=1)),
    "Norm": (lambda x, **k: ns.Norm(**k)(x), [X], dict(width=6, kind="layer", groups=2, eps=1e-5, gain=None, bias=None,
                                                       alpha=1.0, shift=0.0)),
    "Norm.geometry": (lambda axes, **k: ns.Norm(**k).geometry(axes=axes), [2], dict(width=6, groups=1, gain=None, eps=0.0)),
    "Norm.sigma": (NORM.sigma, [X], {}),
    "Norm.part": (NORM.part, [X, X], {}),
    "Norm.curvature": (NORM.curvature, [X], {}),
    "Norm.jacobian_vector": (NORM.jacobian_vector, [X, X], {}),
    "Norm.vector_jacobian": (NORM.vector_jacobian, [X, X], {}),
    "Head.logits": (lambda x: head().logits(x), [np.ones((2, head().norm.width))], {}),
    "Head.decompose": (lambda *a: head().decompose(*a), [np.ones(head().norm.width), np.ones((1, head().norm.width)), [0]], {}),
    "Head.neurons": (lambda *a, **k: head().neurons(*a, **k), [np.ones((2, head().norm.width))],
                     dict(near_null=0.1, frequencies=np.ones(len(head().unembedding)))),
    "Model.norm": (lambda *a: model().norm(*a), [model().norms()[0]], {}),
    "Model.tensor": (lambda *a: model().tensor(*a), ["absent"], {}),
    "Model.heads": (lambda **k: model().heads(**k), [], dict(context=4, queries=False, certificates=False, threads=1)),
    "Model.reach": (lambda **k: model().reach(**k), [], dict(tokens=[0], nearest=1, budget=1.0, tolerance=1e-9, threads=1)),
    "Model.geometry": (lambda *a, **k: model().geometry(*a, **k), [model().norms()[0]], dict(axes=1, null_space=True)),
    "Model.trace": (lambda *a, **k: model().trace(*a, **k), [[0, 1]], dict(budget=1.0, threads=1)),
    "Model.attribute": (lambda *a, **k: model().attribute(*a, **k), [[0, 1], 2], dict(
        against=3, at=0, replace_with="mean", components=None, keep=["embedding"], most_removed=2, budget=1.0, certificates=False,
        threads=1)),
    "Model.ranges": (lambda **k: model().ranges(**k), [], dict(threads=1)),
    "Model.report": (lambda **k: model().report(**k), [], dict(deep=False, vocabulary=False, budget=1.0, activations=None)),
    "Model.rewrite": (lambda **k: model().rewrite(**k), [], dict(output=None, fold=True, migrate=False, center=False,
                                                                 untie=False, rotate=None)),
    "Model.undo": (lambda *a: model().undo(*a), ["absent"], {}),
    "Model.compare": (lambda *a: model().compare(*a), [fixture("gpt2")], {}),
}


class Arguments(unittest.TestCase):
    def setUp(self):
        # A wrong argument may be a valid path, so files are written to a temporary folder.
        folder = tempfile.TemporaryDirectory()
        before = os.getcwd()
        os.chdir(folder.name)
        self.addCleanup(folder.cleanup)
        self.addCleanup(os.chdir, before)

    def check(self, name, arguments, keywords):
        try:
            with np.errstate(all="ignore"):
                CALLS[name][0](*arguments, **keywords)
        except REFUSALS as error:
            message = str(error)
            self.assertNotIn("incompatible function arguments", message, name)
            self.assertNotIn("nanobind", message, name)
            self.assertNotIn("\n", message, name)
            self.assertRegex(message, r"^[^:]+: |^unknown |^\[Errno", f"{name}: {type(error)}")

    def test_every_function_is_called(self):
        functions = {name for name in ns.__all__ if callable(getattr(ns, name)) and not isinstance(getattr(ns, name), type)}
        functions |= {f"signature.{name}" for name in ns.signature.__all__ if name.islower()}
        self.assertEqual(functions - CALLS.keys(), set())

    def test_every_method_is_called(self):
        """All that take an argument, of the classes of the package and of what its functions return."""
        classes = {thing for module in (ns, ns.signature) for name in module.__all__
                   if isinstance(thing := getattr(module, name), type)}
        classes |= {type(selection()), type(report().plot()) if isinstance(report().plot(), dict) else dict}
        methods = {method.__qualname__ for kind in classes for name in dir(kind) if not name.startswith("_")
                   if inspect.isfunction(method := inspect.getattr_static(kind, name))
                   if method.__module__.startswith("normscope") and len(inspect.signature(method).parameters) > 1}
        self.assertEqual(methods - CALLS.keys(), set())

    def test_right_arguments_are_taken(self):
        refused = {"convert", "results.parse", "results.loads", "results.read", "Net", "Model.tensor", "Model.undo",
                   "signature.Ellipse"}
        for name in CALLS.keys() - refused:
            function, arguments, keywords = CALLS[name]
            with self.subTest(name):
                function(*arguments, **keywords)

    def test_one_wrong_argument(self):
        for name, (_, arguments, keywords) in CALLS.items():
            places = [*range(len(arguments)), *keywords]
            with self.subTest(name):
                for place in places:
                    for wrong in WRONG:
                        if place in ("progress", "which") and callable(wrong):
                            continue
                        given_arguments, given_keywords = list(arguments), dict(keywords)
                        if isinstance(place, int):
                            given_arguments[place] = wrong
                        else:
                            given_keywords[place] = wrong
                        self.check(name, given_arguments, given_keywords)

    @settings(max_examples=250, deadline=None, derandomize=True, database=None,
              suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(sorted(CALLS)), st.data())
    def test_any_wrong_arguments(self, name, data):
        _, arguments, keywords = CALLS[name]
        chosen = [data.draw(st.one_of(st.just(argument), anything)) for argument in arguments]
        named = {key: data.draw(st.one_of(st.just(value), anything)) for key, value in keywords.items()}
        named = {key: keywords[key] if key == "which" and callable(value) else value for key, value in named.items()}
        self.check(name, chosen, named)


if __name__ == "__main__":
    unittest.main()

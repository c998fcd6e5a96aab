"""`watch` without torch: modules with the interface of torch's, on the models of the fixtures."""

import json
import unittest

import normscope as ns
import numpy as np
from model_oracle.fixtures import fixture

RNG = np.random.default_rng(8)


class Tensor(np.ndarray):
    """The part of torch's interface that `watch` uses."""

    is_cpu = True

    def detach(self):
        return self

    def cpu(self):
        return self

    def numel(self):
        return self.size

    def double(self):
        return self.astype(float)

    def numpy(self):
        return np.asarray(self)


def tensor(values):
    return np.asarray(values).view(Tensor)


class Module:
    """The part of the interface of torch's modules that `watch` uses."""

    def __init__(self):
        self.hooks = []

    def register_forward_hook(self, hook, with_kwargs, always_call=False):
        self.hooks.append(hook)
        return self

    def register_forward_pre_hook(self, hook, with_kwargs):
        return self

    def remove(self):
        self.hooks = []

    def modules(self):
        return []


class LayerNorm(Module):
    def __init__(self, norm):
        super().__init__()
        self.norm, self.eps = norm, norm.eps
        self.weight = None if norm.gain is None else tensor(norm.gain)
        self.bias = None if norm.bias is None else tensor(norm.bias)

    def children(self):
        return []

    def __call__(self, x):
        y = tensor(self.norm(np.asarray(x)))
        for hook in self.hooks:
            hook(self, (tensor(x),), {}, y)
        return y


class Fake(Module):
    """The norms of a fixture under a prefix, as a module."""

    def __init__(self, name):
        super().__init__()
        self.model = ns.open(fixture(name))
        self.norms = {norm: LayerNorm(self.model.norm(norm)) for norm in self.model.norms()}

    def named_modules(self):
        return [(f"wrapped.{name}", norm) for name, norm in self.norms.items()]


def watched(name, contexts=2, length=12, **how):
    """What `watch` has seen, and the rows of each norm."""
    fake = Fake(name)
    rows = {norm: RNG.normal(size=(contexts, length, module.norm.width)) * 3.0 + 1.0
            for norm, module in fake.norms.items()}
    with ns.watch(fake, **how) as seen:
        for norm, module in fake.norms.items():
            module(rows[norm])
    return fake, rows, seen.result()


def normalized(norm, x, project, scale):
    x = x - x.mean(-1, keepdims=True) if project else x
    if scale:
        x = x / np.sqrt((x**2).mean(-1, keepdims=True) + norm.eps)
    return x * (1.0 if norm.gain is None else norm.gain) + (0.0 if norm.bias is None else norm.bias)


def turned(keys, dims, theta=500.0):
    """Keys (positions, head_dim) rotated by halves, with the base of the fixture."""
    half = dims // 2
    angles = np.arange(len(keys))[:, None] * theta ** (-np.arange(half) / half)
    first, second = keys[:, :half], keys[:, half:dims]
    return np.concatenate([first * np.cos(angles) - second * np.sin(angles),
                           second * np.cos(angles) + first * np.sin(angles), keys[:, dims:]], 1)


class Watching(unittest.TestCase):
    def norm_of(self, rows_of_calls, **how):
        """The result for a LayerNorm of width 8 that was called with these rows, and the norm."""
        module = LayerNorm(ns.Norm(8, eps=1e-3, gain=np.linspace(0.5, 2.0, 8), bias=np.ones(8)))

        class Model(Module):
            def named_modules(self):
                return [("norm", module)]

        model = Model()
        with ns.watch(model, **how) as seen:
            for rows in rows_of_calls:
                module(rows)
        return seen.result(), module

    def test_rows_that_are_not_finite_are_counted_and_left_out(self):
        rows = RNG.normal(size=(20, 8)) + 0.5
        broken = rows.copy()
        broken[0, 3] = np.nan
        nothing = np.full((3, 8), np.inf)
        expected = self.norm_of([rows])[0].norms[0]
        for calls, left_out in (([np.concatenate([broken[:1], rows])], 1), ([broken[:1], nothing, rows], 4),
                                ([rows, nothing], 3), ([np.repeat(broken[:1], 17, 0), rows], 17)):
            result, _ = self.norm_of(calls)
            (norm,) = result.norms
            self.assertEqual((norm.rows, norm.not_finite, norm.calls), (20, left_out, len(calls)))
            self.assertEqual(result.not_understood, [])
            self.assertEqual((norm.kind, norm.sigma.mean), (expected.kind, expected.sigma.mean))

    def test_rows_of_zeros_do_not_tell_the_kind(self):
        zeros = np.zeros((30, 8))
        rows = RNG.normal(size=(5, 8)) + 0.5
        (norm,) = self.norm_of([zeros, rows])[0].norms
        self.assertEqual((norm.kind, norm.rows), ("layer", 35))
        (norm,) = self.norm_of([np.concatenate([zeros, rows])])[0].norms
        self.assertEqual((norm.kind, norm.rows), ("layer", 35))
        result, _ = self.norm_of([zeros])
        self.assertEqual(result.norms, [])
        self.assertIn("no row of its input was finite and other than 0", result.not_understood[0].reason)

    def test_what_two_kinds_fit_is_said(self):
        rows = RNG.normal(size=(5, 8))
        result, _ = self.norm_of([rows - rows.mean(-1, keepdims=True)])
        self.assertEqual(result.norms[0].kind, "layer")
        self.assertIn("its output fits both", result.not_understood[0].reason)

    def test_an_eps_that_is_not_stated_is_said(self):
        module = LayerNorm(ns.Norm(8, eps=1e-5))
        del module.eps

        class Model(Module):
            def named_modules(self):
                return [("norm", module)]

        model = Model()
        with ns.watch(model) as seen:
            module(RNG.normal(size=(5, 8)) + 0.5)
        self.assertEqual(seen.result().norms[0].eps, 1e-5)
        self.assertIn("the module states none", seen.result().not_understood[0].reason)

    def test_no_exception_leaves_a_hook(self):
        rows = RNG.normal(size=(5, 8)) + 0.5

        class Meta:
            is_meta, ndim = True, 1

            def detach(self):
                return self

            def cpu(self):
                raise NotImplementedError("Cannot copy out of meta tensor; no data!")

        class Broken(Tensor):
            def cpu(self):
                raise RuntimeError("two\nlines")

        module = LayerNorm(ns.Norm(8, eps=1e-3))
        module.weight = Meta()

        class Model(Module):
            def named_modules(self):
                return [("norm", module)]

        model = Model()
        with ns.watch(model) as seen:
            module(rows)
            self.assertEqual(seen.result().norms, [])
            self.assertEqual([entry.reason for entry in seen.result().not_understood], [
                "1 of 1 calls could not be measured: its weight has no values (meta device: offloaded, or not loaded)"])
            module._hf_hook = type("Hook", (), {"weights_map": {"weight": tensor(np.ones(8))}})()
            module(rows)
            self.assertEqual(seen.result().norms[0].rows, 5)
            module.weight = None
            for hook in module.hooks:
                hook(module, (rows.view(Broken),), {}, rows.view(Broken))
                hook(module, (), {}, None)
                hook(module, (tensor(RNG.normal(size=(5, 7))),), {}, None)
        self.assertEqual(seen.result().norms[0].rows, 5)
        reasons = [entry.reason for entry in seen.result().not_understood]
        for why in ("two lines", "it was called without tensors as arguments", "observe: rows of width 7, expected 8"):
            self.assertIn(f"1 of 5 calls could not be measured: {why}", reasons)

    def test_hooks_end_with_the_watch(self):
        module = LayerNorm(ns.Norm(8))

        class Model(Module):
            def named_modules(self):
                return [("norm", module)]

        model = Model()
        seen = ns.watch(model)
        module(RNG.normal(size=(5, 8)))
        hook = module.hooks[0]
        del seen
        self.assertEqual(module.hooks, [])
        hook(module, (tensor(RNG.normal(size=(5, 8))),), None)


class InModel(unittest.TestCase):
    def test_the_divergence_is_that_of_the_definition(self):
        for name in ("gpt2", "gemma2"):  # a bias of the norm; a soft cap
            fake, rows, seen = watched(name)
            within = seen.within(fake.model).in_model
            x = rows[within.final_norm].reshape(-1, rows[within.final_norm].shape[-1])
            head = fake.model.head()
            norm = head.norm
            sigma = norm.sigma(x)
            normal = norm(x) - (0.0 if norm.bias is None else norm.bias)
            frozen = normal * sigma / sigma.mean() + (0.0 if norm.bias is None else norm.bias)

            def log_p(normalized_rows):
                logits = head._linear(normalized_rows, slice(None), constant=True)
                logits = head.soft_cap * np.tanh(logits / head.soft_cap) if head.soft_cap else logits
                logits = logits - logits.max(-1, keepdims=True)
                return logits - np.log(np.exp(logits).sum(-1, keepdims=True))

            own, other = log_p(norm(x)), log_p(frozen)
            divergence = (np.exp(own) * (own - other)).sum(-1)
            self.assertEqual(within.next.rows, len(x))
            np.testing.assert_allclose(within.next.mean_divergence, divergence.mean(), rtol=1e-9, atol=1e-13)
            np.testing.assert_allclose(within.next.most_divergence, divergence.max(), rtol=1e-9, atol=1e-13)
            self.assertEqual(within.next.changed, (own.argmax(-1) != other.argmax(-1)).mean())
            top = np.argsort(-own, axis=-1, kind="stable")[:, :10]
            self.assertEqual(within.next.tokens, len(set(top.ravel().tolist())))
            for token in within.next.list:
                self.assertEqual(token.rows, (top == token.token).any(-1).sum())
                self.assertEqual(token.first, (top[:, 0] == token.token).sum())

    def test_likely_tokens_are_reachable_as_reach_says(self):
        fake, _, seen = watched("gpt2")
        found = seen.within(fake.model).in_model.next
        unreachable = {entry.token for entry in fake.model.reach().unreachable}
        self.assertEqual(found.unreachable, len(unreachable & {token.token for token in found.list}))
        self.assertEqual(found.reachable + found.unreachable + found.undecided, found.tokens)

    def test_selectable_keys_are_those_of_the_definition(self):
        for name in ("gpt2", "llama"):
            fake, rows, seen = watched(name, positions=10)
            heads = seen.within(fake.model).in_model.heads
            found = fake.model.inspect()
            readers = {norm.name: [reader for reader in norm.readers if reader.role == "key"] for norm in found.norms}
            self.assertEqual({(head.layer, head.head) for head in heads if not head.refused},
                             {(head.layer, head.head) for head in heads})
            for head in heads[:3]:
                norm = fake.model.norm(head.norm)
                reader = readers[head.norm][0]
                weight = fake.model.tensor(reader.tensor)
                weight = weight.T if reader.layout == "in_out" else weight
                weight = weight[reader.first_out:reader.first_out + reader.out]
                bias = fake.model.tensor(reader.bias)[reader.first_out:reader.first_out + reader.out] \
                    if reader.bias else np.zeros(len(weight))
                size = next(one for one in fake.model.heads().heads if one.layer == head.layer).head_dim
                first = size * (head.head * len(weight) // size // found.architecture.heads_per_layer)
                for field, project, scale in (("neither", False, False), ("projection", True, False),
                                              ("scaling", False, True), ("both", True, True)):
                    selectable = 0
                    for context in rows[head.norm]:
                        keys = normalized(norm, context[:10], project, scale) @ weight[first:first + size].T
                        keys += bias[first:first + size]
                        selectable += ns.select(turned(keys, size) if name == "llama" else keys).selectable
                    self.assertEqual(getattr(head.counts, field).selectable, selectable, (name, head, field))
                self.assertEqual((head.contexts, head.keys), (2, 20))
                self.assertEqual(head.own, "both" if name == "gpt2" else "scaling")

    def test_caps_and_models_that_do_not_fit(self):
        fake, _, seen = watched("gpt2", contexts=5)
        self.assertEqual(len(seen.within(fake.model, heads=1).in_model.heads), 1)
        other = seen.within(fixture("vit")).in_model
        self.assertEqual(other.heads, [])
        self.assertIn("unembedding", other.next_refused)
        self.assertIsNone(seen.document.in_model)
        with self.assertRaisesRegex(TypeError, "^open: "):
            seen.report()

    def test_a_report_shows_both(self):
        fake, _, seen = watched("gpt2")
        report = fake.model.report(activations=seen)
        self.assertIn("keys", report.activations.charts)
        page = report.page
        held = json.loads(page.split('id="activation-data">')[1].split("</script>")[0])
        self.assertEqual(held["document"], report.activations.to_dict())
        self.assertEqual([chart["id"] for chart in held["charts"]], list(report.activations.charts))
        self.assertIsNone(fake.model.report().activations)
        self.assertIn('id="activation-data">null<', fake.model.report().page)
        with self.assertRaisesRegex(TypeError, "^report: activations is 3, expected those of a watch$"):
            fake.model.report(activations=3)


if __name__ == "__main__":
    unittest.main()

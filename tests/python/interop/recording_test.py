"""Our modules where torch records or transforms operations: the graph, read with another input, computes what eager mode
does. Run by `scripts/test interop`."""

import copy
import functools
import io
import os
import subprocess
import sys
import tempfile
import unittest
import warnings

import normscope as ns
import normscope.torch as nt
import numpy as np
import onnx
import torch
import torch.autograd.forward_ad as forward_ad
import torch.distributed as dist
from normscope import _core
from onnx.reference import ReferenceEvaluator
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

torch.manual_seed(3)
warnings.filterwarnings("ignore", category=FutureWarning)
warnings.filterwarnings("ignore", category=DeprecationWarning)


class Derf(torch.nn.Module):
    def __init__(self, **like):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(8, **like))
        self.alpha = torch.nn.Parameter(torch.full((1,), 0.7, **like))
        self.shift = torch.nn.Parameter(torch.full((1,), 0.1, **like))

    def forward(self, x):
        return nt.normalize(x, self.weight, kind="derf", alpha=self.alpha, shift=self.shift)


def modules(**like):
    made = {"layer": nt.LayerNorm(8, **like), "without bias": nt.LayerNorm(8, bias=False, **like),
            "without parameters": nt.LayerNorm(8, elementwise_affine=False), "rms": nt.RMSNorm(8, eps=1e-3, **like),
            "rms without eps": nt.RMSNorm(8, **like), "groups": nt.GroupedLayerNorm(8, 2, **like),
            "spherical": nt.Spherical(8), "dyt": nt.DyT(8, **like), "derf": Derf(**like),
            "two axes": nt.LayerNorm((2, 4), **like)}
    with torch.no_grad():
        for module in made.values():
            for parameter in module.parameters():
                parameter.add_(0.3 * torch.randn_like(parameter))
    return made


def rows(name, count=4, **like):
    return torch.randn(count, *((2, 4) if name == "two axes" else (8,)), **like) * 3.0 + 1.0


class Recorded(unittest.TestCase):
    def compare(self, name, module, recorded, count=7, tolerance=1e-5):
        other = rows(name, count)
        with torch.no_grad():
            torch.testing.assert_close(torch.as_tensor(np.asarray(recorded(other))), module(other), rtol=tolerance,
                                       atol=tolerance, msg=lambda text: f"{name}: {text}")

    def test_traces(self):
        for name, module in modules().items():
            with warnings.catch_warnings():
                warnings.simplefilter("error", torch.jit.TracerWarning)
                traced = torch.jit.trace(module, rows(name))
            saved = io.BytesIO()
            torch.jit.save(traced, saved)
            saved.seek(0)
            self.compare(name, module, lambda x: torch.jit.load(saved)(x).detach())

    def test_scripted_modules_call_ours(self):
        for name, module in modules().items():
            if name != "derf":  # a module of others, whose call of `normalize` torch.jit.script would have to compile
                scripted = torch.jit.script(torch.nn.Sequential(module))
                self.compare(name, module, scripted)
                with self.assertRaisesRegex(RuntimeError, "Could not export Python function call 'forward'"):
                    torch.jit.save(scripted, io.BytesIO())

    def test_the_exporter_of_onnx_by_traces(self):
        for name, module in modules().items():
            file = io.BytesIO()
            torch.onnx.export(module, (rows(name),), file, dynamo=False, input_names=["x"], dynamic_axes={"x": {0: "n"}})
            model = onnx.load_from_string(file.getvalue())
            self.assertEqual([given.name for given in model.graph.input], ["x"])
            self.compare(name, module, lambda x: ReferenceEvaluator(model).run(None, {"x": x.numpy()})[0])

    def test_the_exporter_of_onnx_by_torch_export(self):
        for name, module in modules().items():
            with tempfile.TemporaryDirectory() as folder:
                file = f"{folder}/norm.onnx"
                torch.onnx.export(module, (rows(name),), file, dynamo=True, verbose=False, input_names=["x"],
                                  dynamic_shapes=({0: torch.export.Dim("n")},))
                model = onnx.load(file)
            self.compare(name, module, lambda x: ReferenceEvaluator(model).run(None, {"x": x.numpy()})[0])

    def test_exported_files_state_the_norm(self):
        with tempfile.TemporaryDirectory() as folder:
            module = modules()["layer"]
            module.eps = 1e-3
            torch.onnx.export(torch.nn.Sequential(module, torch.nn.Linear(8, 3)), (rows("layer"),), f"{folder}/m.onnx",
                              dynamo=False)
            (norm,) = ns.open(f"{folder}/m.onnx").inspect().norms
            self.assertEqual((norm.kind, norm.width, norm.eps_source), ("layer", 8, "tensors"))
            self.assertAlmostEqual(norm.eps, 1e-3, places=8)

    def test_exported_programs(self):
        for name, module in modules().items():
            for strict in (False, True):
                program = torch.export.export(module, (rows(name),), dynamic_shapes=({0: torch.export.Dim("n")},),
                                              strict=strict)
                self.assertNotIn("normscope", str(program.graph))
                self.compare(name, module, lambda x: program.module()(x).detach())

    def test_make_fx(self):
        for name, module in modules().items():
            for mode in ("real", "fake", "symbolic"):
                state = {key: value.detach() for key, value in module.named_parameters()}
                call = lambda x, given: torch.func.functional_call(module, given, (x,))
                graph = make_fx(call, tracing_mode=mode)(rows(name), state)
                self.compare(name, module, lambda x: graph(x, state), count=4)
            graph = make_fx(torch.func.grad(lambda x: module(x).pow(2).sum()))(rows(name))
            x = rows(name).requires_grad_()
            module(x).pow(2).sum().backward()
            torch.testing.assert_close(graph(x.detach()), x.grad, rtol=1e-4, atol=1e-4)

    def test_compiled(self):
        for name, module in modules().items():
            torch.compiler.reset()
            compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
            self.compare(name, module, lambda x: compiled(x).detach())

    def test_symbolic_traces_of_fx_are_refused(self):
        with self.assertRaisesRegex(TypeError, r"^LayerNorm: x is Proxy\(input_1\), expected a tensor"):
            torch.fx.symbolic_trace(nt.LayerNorm(8))


class Modes(unittest.TestCase):
    def test_fake_tensors(self):
        for name, module in modules().items():
            with FakeTensorMode(allow_non_fake_inputs=True) as mode:
                x = mode.from_tensor(rows(name)).requires_grad_()
                y = module(x)
                y.sum().backward()
                self.assertEqual((type(y).__name__, y.shape, x.grad.shape), ("FakeTensor", x.shape, x.shape))

    def test_fake_parameters_of_a_real_input(self):
        with FakeTensorMode() as mode:
            gain = torch.ones(8)
        with self.assertRaises(AssertionError):  # of torch: it mixes both kinds
            nt.normalize(torch.ones(2, 8), gain)

    def test_modes_that_count(self):
        for name, module in modules().items():
            x = rows(name)
            with FlopCounterMode(display=False):
                y = module(x)
            torch.testing.assert_close(y, module(x))

    def test_fake_tensors_have_no_memory(self):
        with FakeTensorMode():
            x = torch.ones(2, 8)
        freed = torch.ones(2, 8)
        freed.untyped_storage().resize_(0)
        zeros = torch._efficientzerotensor((2, 8))
        for given in (x, freed, zeros):
            for call in (ns.normalize, ns.curvature, ns.select, lambda x: ns.normalize_backward(x, torch.ones(2, 8)),
                         ns.Norm(8)):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    with self.assertRaisesRegex((TypeError, ValueError), r"^\w+: \w+ (has no memory|cannot be loaded)"):
                        call(given)
        gain = torch.ones(8)
        gain.untyped_storage().resize_(0)
        with self.assertRaisesRegex(ValueError, "^normalize: a tensor has no memory"):
            nt.normalize(freed)
        with self.assertRaisesRegex(ValueError, "^normalize: a parameter has no memory"):
            nt.normalize(torch.ones(2, 8), gain)
        with self.assertRaisesRegex(ValueError, "^normalize: gain has no memory"):
            ns.normalize(torch.ones(2, 8), gain)

    def test_the_kernels_of_arrays_refuse_to_be_recorded(self):
        x = torch.randn(2, 8)
        for call in (lambda x: ns.normalize(x), lambda x: ns.normalize(x, out=torch.empty(2, 8)),
                     lambda x: ns.Norm(8)(x), lambda x: ns.curvature(x),
                     lambda x: ns.add_normalize(x, x)[1], lambda x: ns.normalize_backward(x, x)[0]):
            for record in (lambda call: torch.jit.trace(call, x, check_trace=False), lambda call: make_fx(call)(x)):
                with self.assertRaisesRegex(Exception, r"torch is recording operations, expected normscope.torch"):
                    record(call)

    def test_meta_quantized_and_sparse_tensors_are_refused(self):
        x = torch.randn(2, 8)
        module = nt.LayerNorm(8)
        for given, message in ((x.to("meta"), "x is on meta, expected the CPU"),
                               (torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), "x is torch.qint8, expected float64"),
                               (x.to_sparse(), "x is torch.sparse_coo, expected a dense tensor"),
                               (x.to_sparse_csr(), "x is torch.sparse_csr, expected a dense tensor"),
                               (x.to_mkldnn(), "x is torch._mkldnn, expected a dense tensor")):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for call in (module, nt.DyT(8), lambda x: torch.jit.trace(module, x, check_trace=False)):
                    with self.assertRaisesRegex((TypeError, ValueError), message):
                        call(given)
        for gain, message in ((torch.ones(8, dtype=torch.complex64), "a parameter is torch.complex64, expected real"),
                              (torch.ones(8, device="meta"), "weight is on meta"),
                              (torch.ones(8).to_sparse(), "weight is torch.sparse_coo")):
            with self.assertRaisesRegex((TypeError, ValueError), message):
                nt.normalize(x, gain)

    def test_negated_views_keep_their_signs(self):
        x = torch.randn(3, 8)
        negated = torch._neg_view(x)
        self.assertTrue(negated.is_neg())
        torch.testing.assert_close(nt.normalize(negated), -nt.normalize(x))
        torch.testing.assert_close(ns.normalize(negated), -ns.normalize(x))
        torch.testing.assert_close(nt.normalize(x, torch._neg_view(torch.ones(8))), -nt.normalize(x))
        torch.testing.assert_close(ns.normalize(x, torch._neg_view(torch.ones(8))), -ns.normalize(x))
        pair = torch.complex(x, x).conj().imag
        torch.testing.assert_close(nt.normalize(pair), -nt.normalize(x))
        given = x.clone().requires_grad_()
        nt.normalize(given).backward(torch._neg_view(x[[1, 2, 0]]))
        other = x.clone().requires_grad_()
        nt.normalize(other).backward(-x[[1, 2, 0]])
        torch.testing.assert_close(given.grad, other.grad)

    def test_subclasses(self):
        class Named(torch.Tensor):
            pass

        x = torch.randn(3, 8)
        y = nt.LayerNorm(8)(x.as_subclass(Named))
        self.assertIs(type(y), Named)
        torch.testing.assert_close(y.as_subclass(torch.Tensor), nt.LayerNorm(8)(x))


class Derivatives(unittest.TestCase):
    def test_all_of_first_and_second_order(self):
        for name, module in modules(dtype=torch.float64).items():
            x = rows(name, 2, dtype=torch.float64).requires_grad_()
            parameters = dict(module.named_parameters())

            def call(given, *values):
                return torch.func.functional_call(module, dict(zip(parameters, values)), (given,))

            inputs = (x, *parameters.values())
            self.assertTrue(torch.autograd.gradcheck(call, inputs, check_forward_ad=True, check_batched_grad=True,
                                                     check_batched_forward_grad=True), name)
            self.assertTrue(torch.autograd.gradgradcheck(call, inputs, check_fwd_over_rev=True, check_rev_over_rev=True,
                                                         check_batched_grad=True), name)

    def test_third_order(self):
        for name, module in modules(dtype=torch.float64).items():
            x = rows(name, 1, dtype=torch.float64)
            first = lambda x: torch.autograd.grad(module(x).pow(3).sum(), x, create_graph=True)[0]
            second = lambda x: torch.autograd.grad(first(x).pow(2).sum(), x, create_graph=True)[0]
            self.assertTrue(torch.autograd.gradcheck(second, (x.requires_grad_(),)), name)

    def test_forward_mode_without_gradients(self):
        for name, module in modules(dtype=torch.float64).items():
            x, v = rows(name, dtype=torch.float64), rows(name, dtype=torch.float64)
            with torch.no_grad(), forward_ad.dual_level():
                tangent = forward_ad.unpack_dual(module(forward_ad.make_dual(x, v))).tangent
            torch.testing.assert_close(tangent, torch.func.jvp(module, (x,), (v,))[1])

    def test_transforms_agree_with_torchs_norms(self):
        ours, theirs = modules(dtype=torch.float64)["layer"], torch.nn.LayerNorm(8, dtype=torch.float64)
        theirs.load_state_dict(ours.state_dict())
        x = rows("layer", dtype=torch.float64)
        for transform in (torch.func.jacfwd, torch.func.jacrev, torch.vmap,
                          lambda f: torch.func.hessian(lambda x: f(x).pow(3).sum()),
                          lambda f: functools.partial(torch.func.jvp, f, (x,)),
                          lambda f: lambda x: torch.autograd.functional.hessian(lambda x: f(x).pow(3).sum(), x,
                                                                                vectorize=True)):
            given = ((x,),) if isinstance(transform(ours), functools.partial) else (x,)
            torch.testing.assert_close(transform(ours)(*given), transform(theirs)(*given))

    def test_constant_rows_without_eps(self):
        for kind in ("layer", "rms", "spherical"):
            x = torch.zeros(2, 8, dtype=torch.float64)
            value, tangent = torch.func.jvp(lambda x: nt.normalize(x, kind=kind, eps=0.0), (x,), (x,))
            self.assertTrue(torch.equal(value, nt.normalize(x, kind=kind, eps=0.0)))
            self.assertTrue(torch.isfinite(tangent).all())

    def test_recomputed_activations(self):
        for name, module in modules().items():
            grads = []
            for how in ({"use_reentrant": False}, {"use_reentrant": True}, None):
                x = rows(name)
                x = torch.linspace(-1, 2, x.numel()).reshape(x.shape).requires_grad_()
                module.zero_grad()
                y = module(x) if how is None else checkpoint(module, x, **how)
                y.square().sum().backward()
                grads.append([x.grad, *(parameter.grad.clone() for parameter in module.parameters())])
            for other in grads[:2]:
                torch.testing.assert_close(other, grads[2], rtol=0.0, atol=0.0)


class Distributed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        dist.init_process_group("gloo", init_method=f"file://{cls.folder.name}/store", rank=0, world_size=1)

    @classmethod
    def tearDownClass(cls):
        dist.destroy_process_group()
        cls.folder.cleanup()

    def test_distributed_tensors(self):
        from torch.distributed.tensor import Replicate, Shard, distribute_module, distribute_tensor, init_device_mesh

        mesh = init_device_mesh("cpu", (1,))
        for name, module in modules().items():
            spread = distribute_module(copy.deepcopy(module), mesh)
            for placement in (Replicate(), Shard(0)):
                local = rows(name).requires_grad_()
                x = distribute_tensor(local.detach(), mesh, [placement]).requires_grad_()
                y = spread(x)
                y.square().sum().backward()
                module(local).square().sum().backward()
                self.assertEqual(type(y).__name__, "DTensor")
                torch.testing.assert_close(y.full_tensor(), module(local))
                torch.testing.assert_close(x.grad.full_tensor(), local.grad, rtol=1e-4, atol=1e-4)
            with self.assertRaisesRegex((TypeError, ValueError), r"^normalize: x (has no memory|cannot be loaded)"):
                ns.normalize(x.detach())

    def test_data_parallel(self):
        for name, module in modules().items():
            if not list(module.parameters()):
                continue
            wrapped = torch.nn.parallel.DistributedDataParallel(copy.deepcopy(module))
            x = rows(name)
            wrapped(x).square().sum().backward()
            module(x).square().sum().backward()
            for ours, other in zip(wrapped.parameters(), module.parameters()):
                torch.testing.assert_close(ours.grad, other.grad)


class Binding(unittest.TestCase):
    def test_addresses_of_nothing_are_refused(self):
        code = ("from normscope import _core\n"
                "for given in ((0, 64, None, None), (64, 0, None, None), (64, 64, 0, None), (64, 64, None, 0)):\n"
                "    try:\n"
                "        _core.normalize_raw(0, given[0], given[1], 2, 8, *given[2:], 'layer', 1, 0.0, 1.0, 0.0, 1)\n"
                "    except ValueError as error:\n"
                "        print(error)\n")
        printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True)
        self.assertEqual(printed.stdout.count("has no memory"), 4)
        self.assertIsNone(_core.normalize_raw(0, 0, 0, 0, 8, None, None, "layer", 1, 0.0, 1.0, 0.0, 1))


if __name__ == "__main__":
    unittest.main()

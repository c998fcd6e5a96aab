"""What every mechanism of torch makes of our modules and functions: the same numbers, or a refusal in one line; never a
crash, a hang or other numbers. `--table` prints the table of docs/torch.md, and with names of mechanisms only theirs. Run
by `scripts/test interop`."""

import copy
import io
import multiprocessing
import os
import re
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

import normscope as ns
import normscope.torch as nt
import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.fsdp as fsdp
from torch.autograd import forward_ad

SECONDS = 300
DOCS = Path(os.environ.get("NORMSCOPE_SOURCE_DIR", Path(__file__).parents[3])) / "docs/torch.md"


class Call(torch.nn.Module):
    """A function with a gain as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = torch.nn.Parameter(torch.linspace(0.5, 1.5, 8))

    def forward(self, x):
        return self.function(x, self.weight)


#: Watches that run until the process ends.
WATCHES = []


def watched():
    """A norm that is watched while it runs."""
    model = torch.nn.Sequential(torch.nn.LayerNorm(8))
    WATCHES.append(ns.watch(model))
    return model


def array_function(name):
    def function(x, gain):
        rows = {"normalize": 1, "curvature": 1, "hessian_vector": 3}.get(name, 2)
        given = gain.detach() if name in ("normalize", "add_normalize") else None
        found = getattr(ns, name)(*[x] * rows, given)
        return found[0] if isinstance(found, tuple) else found

    return Call(function)


#: Columns of the table, and what stands in them. Those of one column are tried one by one.
SUBJECTS = {
    "torch.nn.LayerNorm": [lambda: torch.nn.LayerNorm(8)],
    "LayerNorm": [lambda: nt.LayerNorm(8)],
    "RMSNorm": [lambda: nt.RMSNorm(8)],
    "GroupedLayerNorm": [lambda: nt.GroupedLayerNorm(8, 2)],
    "Spherical": [lambda: nt.Spherical(8, elementwise_affine=True)],
    "DyT": [lambda: nt.DyT(8)],
    "normalize": [lambda: Call(lambda x, gain: nt.normalize(x, gain, kind="derf"))],
    "arrays": [lambda name=name: array_function(name) for name in
               ("normalize", "add_normalize", "normalize_backward", "jacobian_vector", "vector_jacobian",
                "hessian_vector", "curvature")],
    "watch": [watched],
}
ROWS = torch.linspace(-2.0, 3.0, 32).sin().reshape(4, 8) * 3.0
OTHER = ROWS.flip(0) + 0.5


def gradients(f, x):
    x = x.detach().clone().requires_grad_()
    f.zero_grad()
    f(x).square().sum().backward()
    return [x.grad, *(p.grad.clone() for p in f.parameters() if p.grad is not None)]


def eager(f, x):
    return f(x).detach()


def by_graph(record):
    """Of a recording at ROWS, what it makes of other rows."""
    return lambda f: (lambda graph: (graph(OTHER), eager(f, OTHER)))(record(f))


def jacobian(f, x):
    """By central differences."""
    x, step = x.detach(), 1e-5
    columns = []
    with torch.no_grad():
        for entry in range(x.numel()):
            d = torch.zeros_like(x).flatten()
            d[entry] = step
            d = d.reshape(x.shape)
            columns.append((f(x + d) - f(x - d)) / (2 * step))
    return torch.stack(columns, -1).reshape(*columns[0].shape, *x.shape)


def traced(f):
    saved = io.BytesIO()
    torch.jit.save(torch.jit.trace(f, ROWS, check_trace=False), saved)
    saved.seek(0)
    return torch.jit.load(saved)


def onnx_file(dynamo):
    def record(f):
        import onnx
        from onnx.reference import ReferenceEvaluator

        with tempfile.TemporaryDirectory() as folder:
            torch.onnx.export(f, (ROWS,), f"{folder}/m.onnx", dynamo=dynamo, input_names=["x"],
                              **({"verbose": False} if dynamo else {}))
            model = onnx.load(f"{folder}/m.onnx")
        assert [given.name for given in model.graph.input] == ["x"]
        return lambda x: torch.as_tensor(np.asarray(ReferenceEvaluator(model).run(None, {"x": x.numpy()})[0]))

    return record


def compiled(backend):
    def record(f):
        torch.compiler.reset()
        made = torch.compile(f, backend=backend)
        made(ROWS)
        return made

    return record


def compiled_gradients(f):
    torch.compiler.reset()
    made = torch.compile(f, backend="aot_eager")
    return gradients(made, ROWS), gradients(f, ROWS)


def fx(mode):
    from torch.fx.experimental.proxy_tensor import make_fx

    def record(f):
        state = {name: value.detach() for name, value in f.named_parameters()}
        graph = make_fx(lambda x, given: torch.func.functional_call(f, given, (x,)), tracing_mode=mode)(ROWS, state)
        return lambda x: graph(x, state)

    return record


def fake(f):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        y = f(mode.from_tensor(ROWS))
    assert type(y).__name__ == "FakeTensor"
    return torch.zeros(y.shape), torch.zeros(eager(f, ROWS).shape)


def in_mode(make):
    def run(f):
        wanted = eager(f, ROWS)
        with make():
            y = f(ROWS)
        return y, wanted

    return run


class Counting(torch.utils._python_dispatch.TorchDispatchMode):
    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        return function(*arguments, **(keywords or {}))


class Functions(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, arguments=(), keywords=None):
        return function(*arguments, **(keywords or {}))


class Subclass(torch.Tensor):
    pass


def forward_mode(f):
    f.double()
    x, v = ROWS.double(), OTHER.double()
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(f(forward_ad.make_dual(x, v))).tangent
    assert tangent is not None, "no tangent"
    return tangent, (jacobian(f, x) * v).sum((-1, -2))


def grad_of(f):
    f.double()
    x = ROWS.double()
    return torch.func.grad(lambda x: f(x).sum())(x), jacobian(f, x).sum(tuple(range(f(x).ndim)))


def by_jacobian(transform):
    return lambda f: (transform(f.double())(ROWS.double()), jacobian(f, ROWS.double()))


def checked(order):
    def run(f):
        f.double()
        check = torch.autograd.gradcheck if order == 1 else torch.autograd.gradgradcheck
        assert check(lambda x: f(x), (ROWS[:2].double().requires_grad_(),))
        return torch.ones(1), torch.ones(1)

    return run


def recomputed(reentrant):
    from torch.utils.checkpoint import checkpoint

    def run(f):
        return gradients(CheckpointOf(f, lambda x: checkpoint(f, x, use_reentrant=reentrant)), ROWS), gradients(f, ROWS)

    return run


class CheckpointOf(torch.nn.Module):
    def __init__(self, inner, call):
        super().__init__()
        self.inner, self.call = inner, call

    def forward(self, x):
        return self.call(x)


def on_cpu(f):
    with torch.autograd.graph.save_on_cpu():
        got = gradients(f, ROWS)
    return got, gradients(f, ROWS)


def anomaly(f):
    with torch.autograd.set_detect_anomaly(True):
        got = gradients(f, ROWS)
    return got, gradients(f, ROWS)


def compiled_autograd(f):
    from torch._dynamo import compiled_autograd as module

    torch.compiler.reset()
    with module._enable(torch.compile(backend="eager")):
        got = gradients(f, ROWS)
    return got, gradients(f, ROWS)


class Group:
    """One process that is a group."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        dist.init_process_group("gloo", init_method=f"file://{self.folder.name}/store", rank=0, world_size=1)
        return dist.device_mesh.init_device_mesh("cpu", (1,))

    def __exit__(self, *_):
        dist.destroy_process_group()
        self.folder.cleanup()


def distributed_tensor(f):
    from torch.distributed.tensor import Shard, distribute_module, distribute_tensor

    wanted = eager(f, ROWS)
    with Group() as mesh:
        spread = distribute_module(f, mesh)
        return spread(distribute_tensor(ROWS, mesh, [Shard(0)])).full_tensor(), wanted


def wrapped(wrap):
    def run(f):
        wanted = gradients(f, ROWS)
        with Group() as mesh:
            return [gradients(wrap(copy.deepcopy(f), mesh), ROWS)[0]], wanted[:1]

    return run



def fully_sharded(f, mesh):
    return fsdp.FullyShardedDataParallel(f, device_id=torch.device("cpu"))


def fully_shard(f, mesh):
    fsdp.fully_shard(f, mesh=mesh)
    return f


def of_tensor(make):
    """A tensor of another kind, and what plain rows give."""
    def run(f):
        given = make(ROWS)
        y = f(given)
        return (y.to_dense() if y.layout is not torch.strided else y), eager(f, ROWS)

    return run


def without_memory(f):
    freed = ROWS.clone()
    freed.untyped_storage().resize_(0)
    return f(freed), eager(f, ROWS)


def nested(f):
    pair = torch.nested.nested_tensor([ROWS[:1], ROWS[1:]], layout=torch.jagged)
    return f(pair).values(), eager(f, ROWS)


def dynamic_quantization(f):
    model = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(f, torch.nn.Linear(8, 8)), {torch.nn.Linear})
    return model[0](ROWS), eager(f, ROWS)


def computed_parameters(f):
    norm = f[0] if isinstance(f, torch.nn.Sequential) else f
    torch.nn.utils.parametrize.register_parametrization(norm, "weight", torch.nn.Softplus())
    y = f(ROWS)
    return y, eager(f, ROWS)


def moved(f):
    """Through a file, as `torch.save` of a whole module."""
    if isinstance(f, Call):
        return f(ROWS), eager(f, ROWS)
    saved = io.BytesIO()
    torch.save(f, saved)
    saved.seek(0)
    return torch.load(saved, weights_only=False)(ROWS), eager(f, ROWS)


#: Rows of the table, by the part of torch that they belong to.
MECHANISMS = {
    "`torch.no_grad`, `torch.inference_mode`": in_mode(torch.inference_mode),
    "`torch.autocast` (bfloat16)": in_mode(lambda: torch.autocast("cpu", dtype=torch.bfloat16)),
    "`torch.save` of the module": moved,
    "`torch.jit.trace`": by_graph(traced),
    "`torch.jit.script`": by_graph(torch.jit.script),
    "`torch.onnx.export(dynamo=False)`": by_graph(onnx_file(False)),
    "`torch.onnx.export(dynamo=True)`": by_graph(onnx_file(True)),
    "`torch.export`": by_graph(lambda f: torch.export.export(f, (ROWS,), strict=False).module()),
    "`torch.export(strict=True)`": by_graph(lambda f: torch.export.export(f, (ROWS,), strict=True).module()),
    "`torch.compile`, inductor": by_graph(compiled("inductor")),
    "`torch.compile`, aot_eager, with gradients": compiled_gradients,
    "compiled autograd": compiled_autograd,
    "`torch.fx.symbolic_trace`": by_graph(torch.fx.symbolic_trace),
    "`make_fx`, real": by_graph(fx("real")),
    "`make_fx`, symbolic": by_graph(fx("symbolic")),
    "`FakeTensorMode`": fake,
    "a dispatch mode": in_mode(Counting),
    "a function mode": in_mode(Functions),
    "`torch.func.grad`": grad_of,
    "`torch.func.vmap`": lambda f: (torch.func.vmap(f)(ROWS), eager(f, ROWS)),
    "`torch.func.jacrev`": by_jacobian(torch.func.jacrev),
    "`torch.func.jacfwd`": by_jacobian(torch.func.jacfwd),
    "`torch.func.functionalize`": lambda f: (torch.func.functionalize(f)(ROWS), eager(f, ROWS)),
    "forward mode": forward_mode,
    "`gradcheck`": checked(1),
    "`gradgradcheck`": checked(2),
    "`checkpoint`, reentrant": recomputed(True),
    "`checkpoint`, not reentrant": recomputed(False),
    "`save_on_cpu`": on_cpu,
    "anomaly detection": anomaly,
    "`DTensor`": distributed_tensor,
    "`DataParallel`": lambda f: (torch.nn.DataParallel(f)(ROWS), eager(f, ROWS)),
    "`DistributedDataParallel`": wrapped(lambda f, _: torch.nn.parallel.DistributedDataParallel(f)),
    "`FullyShardedDataParallel`": wrapped(fully_sharded),
    "`fully_shard`": wrapped(fully_shard),
    "parametrizations": computed_parameters,
    "`quantize_dynamic` of the model": dynamic_quantization,
    "tensor subclasses": of_tensor(lambda x: x.as_subclass(Subclass)),
    "negated views": of_tensor(lambda x: torch._neg_view(-x)),
    "strided views": of_tensor(lambda x: torch.cat([x, x], 1)[:, :8]),
    "quantized tensors": of_tensor(lambda x: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)),
    "sparse tensors (COO)": of_tensor(lambda x: x.to_sparse()),
    "sparse tensors (CSR)": of_tensor(lambda x: x.to_sparse_csr()),
    "MKL-DNN tensors": of_tensor(lambda x: x.to_mkldnn()),
    "nested tensors": nested,
    "complex tensors": of_tensor(lambda x: x.to(torch.complex64)),
    "integers": of_tensor(lambda x: x.long()),
    "tensors on meta": of_tensor(lambda x: x.to("meta")),
    "tensors whose memory was freed": without_memory,
}
if torch.cuda.is_available():
    MECHANISMS["tensors on CUDA"] = of_tensor(lambda x: x.cuda())


def agree(got, wanted):
    if not isinstance(wanted, (list, tuple)):
        got, wanted = [got], [wanted]
    for one, other in zip(got, wanted, strict=True):
        one = torch.as_tensor(one).detach().as_subclass(torch.Tensor)
        tolerance = 2e-2 if one.dtype in (torch.float16, torch.bfloat16) else 2e-5
        torch.testing.assert_close(one.double(), other.double(), rtol=tolerance, atol=tolerance)


def outcome(mechanism, make):
    """"same", "refused" (in one line of ours), "torch refuses", or what is wrong."""
    torch.manual_seed(1)
    f = make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            got, wanted = mechanism(f)
        except Exception as error:
            text = str(error)
            if re.search(r"\b(normalize\w*|add_normalize|jacobian_vector|vector_jacobian|hessian_vector|curvature|LayerNorm|"
                         r"RMSNorm|GroupedLayerNorm|Spherical|DyT|watch): [^\n]+", text):
                return "refused"
            return f"torch refuses: {type(error).__name__}: {' '.join(text.split())[:150]}"
        try:
            agree(got, wanted)
        except Exception as error:
            return f"OTHER NUMBERS: {type(error).__name__} {' '.join(str(error).split())[:150]}"
    return "same"


def _child(names, to):
    sys.stderr = open(os.devnull, "w")
    for name in names:
        for column, makers in SUBJECTS.items():
            for number, make in enumerate(makers):
                to.send((name, column, number, outcome(MECHANISMS[name], make)))
    to.send(None)


def outcomes(names):
    """{(mechanism, column): outcomes}; each mechanism in a process of its own, which may die."""
    found = {}
    context = multiprocessing.get_context("fork")
    for name in names:
        receiver, sender = context.Pipe(duplex=False)
        child = context.Process(target=_child, args=([name], sender))
        child.start()
        sender.close()
        last = None
        try:
            while receiver.poll(SECONDS):
                entry = receiver.recv()
                if entry is None:
                    last = "done"
                    break
                found.setdefault((entry[0], entry[1]), []).append(entry[3])
            else:
                last = "HANGS"
        except EOFError:
            last = "CRASHES"
        if last != "done":
            found.setdefault((name, next(column for column, makers in SUBJECTS.items()
                                         if len(found.get((name, column), [])) < len(makers))), []).append(last)
        child.kill()
        child.join()
    return found


def cell(entries):
    short = {entry if entry in ("same", "refused") else ("torch refuses" if entry.startswith("torch refuses") else "WRONG")
             for entry in entries}
    return " / ".join(sorted(short)) or "CRASHES"


def table(found):
    names = list(dict.fromkeys(name for name, _ in found))
    lines = ["| mechanism | " + " | ".join(SUBJECTS) + " |", "|---|" + "---|" * len(SUBJECTS)]
    lines += [f"| {name} | " + " | ".join(cell(found.get((name, column), [])) for column in SUBJECTS) + " |" for name in names]
    return "\n".join(lines)


class Mechanisms(unittest.TestCase):
    def test_nothing_crashes_hangs_or_gives_other_numbers(self):
        found = outcomes(MECHANISMS)
        for (name, column), entries in found.items():
            for entry in entries:
                with self.subTest(mechanism=name, subject=column):
                    self.assertNotRegex(entry, "CRASHES|HANGS|OTHER NUMBERS")
        if not torch.cuda.is_available():
            self.assertIn(table(found), DOCS.read_text(), "mechanisms_test.py --table prints it")


if __name__ == "__main__":
    if "--table" in sys.argv:
        chosen = sys.argv[sys.argv.index("--table") + 1:] or MECHANISMS
        found = outcomes([name for name in MECHANISMS if any(part in name for part in chosen)])
        print(table(found))
        for key, entries in found.items():
            for entry in entries:
                if entry not in ("same", "refused"):
                    print(key, entry, file=sys.stderr)
    else:
        unittest.main()

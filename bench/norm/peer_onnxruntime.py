"""ONNX Runtime: models of one node, on memory that is bound to them, so that no copies are timed."""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

from problem import Run, numbers

TYPES = {"float32": TensorProto.FLOAT, "bfloat16": TensorProto.BFLOAT16, "float16": TensorProto.FLOAT16}


def _session(problem, node, inputs, parameters, outputs):
    """A session of that one node; None where it has no kernel for the type."""
    kind = TYPES[problem.dtype]
    describe = lambda names, shape: [helper.make_tensor_value_info(name, kind, shape) for name in names if name]
    given = [*inputs, *parameters]
    made = helper.make_node(inputs=given, outputs=outputs, epsilon=problem.eps, **node)
    graph = helper.make_graph([made], "norm",
                              describe(inputs, problem.x.shape) + describe(parameters, [problem.width]),
                              describe(outputs, problem.x.shape))
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17),
                                                                   helper.make_opsetid("com.microsoft", 1)])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = problem.threads
    options.log_severity_level = 4
    try:
        return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        return None


def _task(inputs, parameters, outputs, **node):
    def run(problem):
        session = _session(problem, node, inputs, parameters, outputs)
        if session is None:
            return None
        held = {"x": problem.x, "residual": problem.dy, "gain": problem.gain.astype(problem.x.dtype),
                "bias": problem.bias.astype(problem.x.dtype)}
        results = {name: np.empty_like(problem.x) for name in sorted(filter(None, outputs))}
        binding, kind = session.io_binding(), TYPES[problem.dtype]
        for name in (*inputs, *parameters):
            binding.bind_input(name, "cpu", 0, kind, held[name].shape, held[name].ctypes.data)
        for name, result in results.items():
            binding.bind_output(name, "cpu", 0, kind, result.shape, result.ctypes.data)
        compute = session.run_with_iobinding
        # Bound arrays are only referenced, so they are kept alive here.
        return Run(lambda _=held: compute(binding), lambda: numbers(*results.values()))

    return run


NAME = f"onnxruntime {onnxruntime.__version__}"
TASKS = {
    "forward": _task(["x"], ["gain", "bias"], ["y"], op_type="LayerNormalization"),
    "residual": _task(["x", "residual"], ["gain", "bias"], ["y", "", "", "sum"], op_type="SkipLayerNormalization",
                      domain="com.microsoft"),
    "rms": _task(["x"], ["gain"], ["y"], op_type="SimplifiedLayerNormalization"),
}

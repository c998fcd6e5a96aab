"""ONNX files as exporters write them: graphs over the weights of a checkpoint, some under other names and transposed."""

import struct

import numpy as np


def varint(value):
    value &= 2**64 - 1
    result = b""
    while value >= 0x80:
        result, value = result + bytes([value & 0x7F | 0x80]), value >> 7
    return result + bytes([value])


def integer(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


class Graph:
    """Nodes and initializers of a GraphProto."""

    def __init__(self):
        self.parts, self.count = b"", 0

    def constant(self, name, array):
        array = np.asarray(array)
        kind = {np.dtype(np.float32): 1, np.dtype(np.int64): 7}[array.dtype]
        tensor = b"".join(integer(1, extent) for extent in array.shape) + integer(2, kind) + text(8, name) + text(9, array.tobytes())
        self.parts += text(5, tensor)
        return name

    def node(self, op, *inputs, **attributes):
        self.count += 1
        output = f"/{op}_{self.count}_output_0"
        node = b"".join(text(1, name) for name in inputs) + text(2, output) + text(4, op)
        for name, value in attributes.items():
            if isinstance(value, float):
                stored = varint(2 << 3 | 5) + struct.pack("<f", value) + integer(20, 1)
            elif isinstance(value, list):
                stored = b"".join(integer(8, entry) for entry in value) + integer(20, 7)
            else:
                stored = integer(3, value) + integer(20, 2)
            node += text(5, text(1, name) + stored)
        self.parts += text(1, node)
        return output

    def write(self, path):
        path.write_bytes(integer(1, 8) + text(7, self.parts + text(2, "main")) + text(8, text(1, "") + integer(2, 17)))
        return path


def llama(path, weights, layers, eps):
    """As torch exports a Llama: norms keep the names of their gains, matrices are transposed constants without one."""
    graph = Graph()
    at = lambda name: graph.constant(name, weights[name].astype(np.float32))
    number = iter(range(1000, 2000))
    linear = lambda x, name: graph.node("MatMul", x, graph.constant(f"onnx::MatMul_{next(number)}", np.ascontiguousarray(weights[name + ".weight"].T.astype(np.float32))))
    two, tiny = graph.constant("/two", np.array(2, np.float32)), graph.constant("/eps", np.array(eps, np.float32))

    def norm(x, name):
        root = graph.node("Sqrt", graph.node("Add", graph.node("ReduceMean", graph.node("Pow", x, two), axes=[-1]), tiny))
        return graph.node("Mul", at(name + ".weight"), graph.node("Div", x, root))

    x = graph.node("Gather", at("model.embed_tokens.weight"), "input_ids")
    for layer in range(layers):
        name = f"model.layers.{layer}."
        y = norm(x, name + "input_layernorm")
        mixed = graph.node("Attention", *(linear(y, f"{name}self_attn.{part}_proj") for part in "qkv"))
        x = graph.node("Add", x, linear(mixed, name + "self_attn.o_proj"))
        y = norm(x, name + "post_attention_layernorm")
        gated = graph.node("Mul", graph.node("Silu", linear(y, name + "mlp.gate_proj")), linear(y, name + "mlp.up_proj"))
        x = graph.node("Add", x, linear(gated, name + "mlp.down_proj"))
    linear(norm(x, "model.norm"), "lm_head")
    return graph.write(path)


def gpt2(path, weights, layers, eps):
    """As torch exports a GPT-2: all names are kept, and the tied head is a transposed constant of its own."""
    graph = Graph()
    at = lambda name: graph.constant("transformer." + name, weights["transformer." + name].astype(np.float32))
    norm = lambda x, name: graph.node("LayerNormalization", x, at(name + ".weight"), at(name + ".bias"), axis=-1, epsilon=float(eps))
    linear = lambda x, name: graph.node("Gemm", x, at(name + ".weight"), at(name + ".bias"))
    x = graph.node("Add", graph.node("Gather", at("wte.weight"), "input_ids"), at("wpe.weight"))
    for layer in range(layers):
        x = graph.node("Add", x, linear(graph.node("Attention", linear(norm(x, f"h.{layer}.ln_1"), f"h.{layer}.attn.c_attn")), f"h.{layer}.attn.c_proj"))
        x = graph.node("Add", x, linear(graph.node("Gelu", linear(norm(x, f"h.{layer}.ln_2"), f"h.{layer}.mlp.c_fc")), f"h.{layer}.mlp.c_proj"))
    head = np.ascontiguousarray(weights["transformer.wte.weight"].T.astype(np.float32))
    graph.node("MatMul", norm(x, "ln_f"), graph.constant("onnx::MatMul_999", head))
    return graph.write(path)

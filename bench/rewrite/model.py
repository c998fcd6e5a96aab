"""Makes Llamas and GPT-2s of random weights, in shards, as Hugging Face folders."""

import json
import struct
from pathlib import Path

import numpy as np

GAINS = ("norm.weight", "ln_1.weight", "ln_2.weight", "ln_f.weight")


class Values:
    """Random values near normal, as bytes of a dtype; drawn once and used again from other places."""

    def __init__(self, dtype):
        rng = np.random.default_rng(1)
        # Sums of two uniform numbers: fast to draw, and spread over many exponents.
        weights = (rng.random(2**20 + 1, np.float32) - rng.random(2**20 + 1, np.float32)) * np.float32(0.05)
        gains = rng.uniform(0.5, 1.5, 2**16).astype(np.float32)
        self.weights, self.gains = (self.stored(values, dtype) for values in (weights, gains))
        self.at = 0

    @staticmethod
    def stored(values, dtype):
        if dtype == "BF16":
            return (values.view(np.uint32) >> 16).astype(np.uint16)
        return values.astype({"F16": np.float16, "F32": np.float32}[dtype])

    def write(self, file, name, count):
        if name.endswith(GAINS):
            file.write(np.resize(self.gains, count).tobytes())
        while not name.endswith(GAINS) and count > 0:
            piece = self.weights[self.at:self.at + count]
            file.write(piece.tobytes())
            count -= len(piece)
            self.at = (self.at + len(piece)) % len(self.weights)


def header_of(tensors, dtype):
    """The bytes before the data of a file of tensors {name: shape}, and where the data of each begin and end."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors.items():
        size = (4 if dtype == "F32" else 2) * int(np.prod(shape))
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, {name: header[name]["data_offsets"] for name in tensors}


def write_shard(path, tensors, values, dtype):
    """Tensors of random values, {name: shape}; gains are between 0.5 and 1.5."""
    with open(path, "wb") as file:
        file.write(header_of(tensors, dtype)[0])
        for name, shape in tensors.items():
            values.write(file, name, int(np.prod(shape)))


def write_index(folder: Path, shards, config) -> list:
    """Writes config.json and the index of shards; returns their names."""
    names = [f"model-{number + 1:05}-of-{len(shards):05}.safetensors" for number in range(len(shards))]
    index = {tensor: name for name, tensors in zip(names, shards) for tensor in tensors}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    (folder / "config.json").write_text(json.dumps(config))
    return names


def write_folder(folder: Path, shards, config, dtype) -> int:
    folder.mkdir(parents=True)
    values = Values(dtype)
    for name, tensors in zip(write_index(folder, shards, config), shards):
        write_shard(folder / name, tensors, values, dtype)
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def llama_shards(layers: int, width: int, inner: int, vocabulary: int) -> list:
    """Names and shapes: a shard for each layer, and one for the rest."""
    shards = [{"model.embed_tokens.weight": (vocabulary, width), "model.norm.weight": (width,), "lm_head.weight": (vocabulary, width)}]
    for layer in range(layers):
        at = f"model.layers.{layer}."
        shards.append({at + "input_layernorm.weight": (width,), at + "post_attention_layernorm.weight": (width,),
                       **{at + f"self_attn.{part}_proj.weight": (width, width) for part in "qkvo"},
                       at + "mlp.gate_proj.weight": (inner, width), at + "mlp.up_proj.weight": (inner, width),
                       at + "mlp.down_proj.weight": (width, inner)})
    return shards


def llama_config(layers: int, width: int, inner: int, vocabulary: int) -> dict:
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": width, "intermediate_size": inner,
        "num_hidden_layers": layers, "num_attention_heads": width // 64, "num_key_value_heads": width // 64, "hidden_act": "silu",
        "vocab_size": vocabulary, "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "max_position_embeddings": 2048}


def make_llama(folder: Path, layers: int, width: int, inner: int, vocabulary: int, dtype: str = "BF16") -> int:
    """Writes the model, whose matrices are stored out x in; returns its bytes."""
    shape = (layers, width, inner, vocabulary)
    return write_folder(folder, llama_shards(*shape), llama_config(*shape), dtype)


def make_gpt2(folder: Path, layers: int, width: int, inner: int, vocabulary: int, dtype: str = "BF16") -> int:
    """Writes the model, whose matrices are stored in x out, with a head of its own; returns its bytes."""
    norm = lambda name: {f"{name}.weight": (width,), f"{name}.bias": (width,)}
    linear = lambda name, inputs, outputs: {f"{name}.weight": (inputs, outputs), f"{name}.bias": (outputs,)}
    shards = [{"transformer.wte.weight": (vocabulary, width), "transformer.wpe.weight": (1024, width),
               **norm("transformer.ln_f"), "lm_head.weight": (vocabulary, width)}]
    for layer in range(layers):
        at = f"transformer.h.{layer}."
        shards.append({**norm(at + "ln_1"), **norm(at + "ln_2"), **linear(at + "attn.c_attn", width, 3 * width),
                       **linear(at + "attn.c_proj", width, width), **linear(at + "mlp.c_fc", width, inner),
                       **linear(at + "mlp.c_proj", inner, width)})
    return write_folder(folder, shards, {
        "architectures": ["GPT2LMHeadModel"], "model_type": "gpt2", "n_embd": width, "n_inner": inner, "n_layer": layers,
        "n_head": width // 64, "n_positions": 1024, "n_ctx": 1024, "vocab_size": vocabulary, "layer_norm_epsilon": 1e-5,
        "activation_function": "gelu_new", "tie_word_embeddings": False}, dtype)

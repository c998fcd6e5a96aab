"""Makes a Llama of random weights: bfloat16, in shards, as a Hugging Face folder."""

import json
import struct
from pathlib import Path

import numpy as np


def write_shard(path, tensors, rng):
    """Tensors of random bfloat16 values near normal, {name: shape}; gains are between 0.5 and 1.5."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors.items():
        size = 2 * int(np.prod(shape))
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in tensors.items():
            count = int(np.prod(shape))
            if name.endswith("norm.weight"):
                values = rng.uniform(0.5, 1.5, count).astype(np.float32)
            else:
                # Sums of two uniform numbers: fast to draw, and spread over many exponents.
                values = (rng.random(count, np.float32) - rng.random(count, np.float32)) * np.float32(0.05)
            file.write((values.view(np.uint32) >> 16).astype(np.uint16).tobytes())


def make_llama(folder: Path, layers: int, width: int, inner: int, vocabulary: int) -> int:
    """Writes the model; returns its bytes."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    shards = [{"model.embed_tokens.weight": (vocabulary, width), "model.norm.weight": (width,), "lm_head.weight": (vocabulary, width)}]
    for layer in range(layers):
        at = f"model.layers.{layer}."
        shards.append({at + "input_layernorm.weight": (width,), at + "post_attention_layernorm.weight": (width,),
                       **{at + f"self_attn.{part}_proj.weight": (width, width) for part in "qkvo"},
                       at + "mlp.gate_proj.weight": (inner, width), at + "mlp.up_proj.weight": (inner, width),
                       at + "mlp.down_proj.weight": (width, inner)})
    index = {}
    for number, tensors in enumerate(shards):
        name = f"model-{number + 1:05}-of-{len(shards):05}.safetensors"
        write_shard(folder / name, tensors, rng)
        index.update(dict.fromkeys(tensors, name))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": width, "intermediate_size": inner,
        "num_hidden_layers": layers, "num_attention_heads": width // 64, "num_key_value_heads": width // 64, "hidden_act": "silu",
        "vocab_size": vocabulary, "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "max_position_embeddings": 2048}))
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))

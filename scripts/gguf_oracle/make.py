#!/usr/bin/env python3
"""Writes the GGUF files of the tests, with PyPI's gguf. Run by hand, never in CI.

    tests/files/fixtures/blocks.gguf           a tensor of every quantized type, of random blocks
    tests/files/fixtures/blocks.safetensors    the same, as gguf.quants.dequantize decodes them
    tests/models/gguf/CASE.gguf                      the fixture CASE of the model oracle, converted as llama.cpp
                                                    converts it

usage: scripts/gguf_oracle/make.py     (needs scripts/gguf_oracle/requirements.txt)
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import load_file, save_file

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from model_oracle.fixtures import fixture  # noqa: E402

BLOCKS = ROOT / "tests" / "files" / "fixtures"
MODELS = ROOT / "tests" / "models" / "gguf"

# Byte offsets of a block's float16 factors; other bytes may have any value.
FACTORS = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [],
}


def random_blocks(random: np.random.Generator, name: str, rows: int, blocks: int) -> np.ndarray:
    """Blocks of type `name` with factors around 0.01."""
    _, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    data = random.integers(0, 256, (rows, blocks, size), dtype=np.uint8)
    for offset in FACTORS[name]:
        factor = random.normal(0, 0.01, (rows, blocks, 1)).astype(np.float16)
        data[..., offset:offset + 2] = factor.view(np.uint8)
    if name == "MXFP4":
        data[..., 0] = random.integers(100, 130, (rows, blocks), dtype=np.uint8)  # the exponent of its factor
    return data.reshape(rows, -1)


def write_blocks() -> None:
    random = np.random.default_rng(1)
    writer = gguf.GGUFWriter(BLOCKS / "blocks.gguf", "none")
    expected = {}
    for name in FACTORS:
        kind = gguf.GGMLQuantizationType[name]
        is_small = gguf.GGML_QUANT_SIZES[kind][0] == 32
        data = random_blocks(random, name, 3 if is_small else 2, 2 if is_small else 1)
        writer.add_tensor(name, data, raw_dtype=kind)
        expected[name] = gguf.quants.dequantize(data, kind)
    close(writer)
    save_file(expected, BLOCKS / "blocks.safetensors")
    (BLOCKS / "blocks.safetensors").chmod(0o644)


def close(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_tokens(writer: gguf.GGUFWriter, count: int) -> None:
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([f"token {i}" for i in range(count)])
    writer.add_token_scores([float(i) for i in range(count)])
    writer.add_bos_token_id(1)


def interleaved(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of queries or keys as llama.cpp orders them: a rotated pair is two neighbours, not two halves."""
    return weight.reshape(heads, 2, -1, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def write_llama(source: Path, to: Path) -> None:
    config = json.loads((source / "config.json").read_text())
    weights = load_file(source / "model.safetensors")
    writer = gguf.GGUFWriter(to, "llama")
    writer.add_name("a tiny Llama")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    add_tokens(writer, config["vocab_size"])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config["num_hidden_layers"])
    for name, weight in weights.items():
        if "q_proj" in name:
            weight = interleaved(weight, config["num_attention_heads"])
        if "k_proj" in name:
            weight = interleaved(weight, config["num_key_value_heads"])
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), np.ascontiguousarray(weight))
    close(writer)


def write_gpt2(source: Path, to: Path) -> None:
    config = json.loads((source / "config.json").read_text())
    weights = load_file(source / "model.safetensors")
    writer = gguf.GGUFWriter(to, "gpt2")
    writer.add_block_count(config["n_layer"])
    writer.add_context_length(config["n_positions"])
    writer.add_embedding_length(config["n_embd"])
    writer.add_feed_forward_length(config["n_inner"])
    writer.add_head_count(config["n_head"])
    writer.add_layer_norm_eps(config["layer_norm_epsilon"])
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    add_tokens(writer, config["vocab_size"])
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.GPT2, config["n_layer"])
    for name, weight in weights.items():
        if name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
            weight = weight.T
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight", ".bias")), np.ascontiguousarray(weight))
    close(writer)


def main() -> None:
    for folder in (BLOCKS, MODELS):
        folder.mkdir(exist_ok=True)
    write_blocks()
    write_llama(fixture("llama"), MODELS / "llama.gguf")
    write_gpt2(fixture("gpt2"), MODELS / "gpt2.gguf")


if __name__ == "__main__":
    main()

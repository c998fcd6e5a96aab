#!/usr/bin/env python3
"""Writes tiny random models of RWKV-6 and RWKV-7 with the names that llama.cpp's converter reads. Run by hand, never in CI.

    tests/models/fixtures/rwkv6.zip    names, shapes and fields of the published RWKV-6 in Hugging Face's form, whose class
                                       is code beside the published files
    tests/models/fixtures/rwkv7.zip    as RWKV7ForCausalLM of flash-linear-attention saves it

usage: scripts/gguf_oracle/rwkv.py FLA

FLA is a folder with the unpacked wheels of PyPI's flash-linear-attention and fla-core (0.5.2 was used). Only the class's names,
shapes and configuration are taken, since it runs on an accelerator alone. Needs torch, triton and transformers 5.
"""

from __future__ import annotations

import json
import sys
import zlib
from pathlib import Path

import numpy as np
from safetensors.numpy import save

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from model_oracle.fixtures import write  # noqa: E402

WIDTH, HEAD, INNER, LAYERS, WORDS, RANK = 16, 8, 20, 3, 29, 4

CONFIG_6 = {
    "architectures": ["Rwkv6ForCausalLM"], "attention_hidden_size": WIDTH,
    "auto_map": {"AutoConfig": "configuration_rwkv6.Rwkv6Config", "AutoModelForCausalLM": "modeling_rwkv6.Rwkv6ForCausalLM"},
    "bos_token_id": 0, "eos_token_id": 0, "head_size": HEAD, "head_size_divisor": 8, "hidden_size": WIDTH,
    "intermediate_size": INNER, "layer_norm_epsilon": 3e-4, "model_type": "rwkv6", "num_hidden_layers": LAYERS,
    "rescale_every": 6, "tie_word_embeddings": False, "use_cache": True, "vocab_size": WORDS}


def shapes_6() -> dict[str, tuple[int, ...]]:
    shapes = {"rwkv.embeddings.weight": (WORDS, WIDTH), "head.weight": (WORDS, WIDTH)}

    def norm(name: str) -> None:
        shapes[f"{name}.weight"] = shapes[f"{name}.bias"] = (WIDTH,)

    norm("rwkv.ln_out")
    norm("rwkv.blocks.0.pre_ln")
    for layer in range(LAYERS):
        block = f"rwkv.blocks.{layer}"
        for name in ("ln1", "ln2", "attention.ln_x"):
            norm(f"{block}.{name}")
        for part in "xwkvrg":
            shapes[f"{block}.attention.time_maa_{part}"] = (1, 1, WIDTH)
        shapes |= {f"{block}.attention.{name}": shape for name, shape in {
            "time_maa_w1": (WIDTH, 5 * RANK), "time_maa_w2": (5, RANK, WIDTH), "time_decay": (1, 1, WIDTH),
            "time_decay_w1": (WIDTH, RANK + 1), "time_decay_w2": (RANK + 1, WIDTH),
            "time_faaaa": (WIDTH // HEAD, HEAD)}.items()}
        for name in ("receptance", "key", "value", "gate", "output"):
            shapes[f"{block}.attention.{name}.weight"] = (WIDTH, WIDTH)
        shapes |= {f"{block}.feed_forward.{name}": shape for name, shape in {
            "time_maa_k": (1, 1, WIDTH), "time_maa_r": (1, 1, WIDTH), "key.weight": (INNER, WIDTH),
            "receptance.weight": (WIDTH, WIDTH), "value.weight": (WIDTH, INNER)}.items()}
    return shapes


def class_7(folder: str) -> tuple[dict, dict[str, tuple[int, ...]]]:
    sys.path.insert(0, folder)
    import triton

    triton.autotune = triton.heuristics = lambda *args, **options: lambda function: function  # no kernel is run
    from fla.models.rwkv7 import RWKV7Config, RWKV7ForCausalLM

    # Published: heads of 64 features and eps 1e-5, so the norm of a head has eps 64e-5, which llama.cpp takes for granted.
    config = RWKV7Config(hidden_size=WIDTH, intermediate_size=INNER, num_hidden_layers=LAYERS, head_dim=HEAD, vocab_size=WORDS,
                         decay_low_rank_dim=RANK, gate_low_rank_dim=RANK + 1, a_low_rank_dim=RANK + 2, v_low_rank_dim=RANK + 3,
                         norm_eps=64e-5 / HEAD, fuse_norm=False)
    model = RWKV7ForCausalLM(config)
    eps = {module.eps for name, module in model.named_modules() if name.endswith("g_norm")}
    assert eps == {HEAD * config.norm_eps}, eps
    stated = json.loads(config.to_json_string(use_diff=False)) | {"architectures": ["RWKV7ForCausalLM"]}
    return stated, {name: tuple(values.shape) for name, values in model.state_dict().items()}


def values(name: str, shape: tuple[int, ...]) -> np.ndarray:
    random = np.random.default_rng(zlib.crc32(name.encode()))
    gains = ("norm.weight", "ln.weight", "ln1.weight", "ln2.weight", "ln_x.weight", "ln_out.weight")
    mean = 1.0 if name.endswith(gains) else 0.0
    return (mean + 0.3 * random.standard_normal(shape)).astype(np.float32)


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    for case, (config, shapes) in {"rwkv6": (CONFIG_6, shapes_6()), "rwkv7": class_7(sys.argv[1])}.items():
        tensors = {name: values(name, shape) for name, shape in shapes.items()}
        write(case, {"config.json": (json.dumps(config, indent=2, sort_keys=True) + "\n").encode(),
                     "model.safetensors": save(tensors, {"format": "pt"})})


if __name__ == "__main__":
    main()

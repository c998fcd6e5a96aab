#!/usr/bin/env python3
"""Converts fixtures of the model oracle with llama.cpp's own converter. Run by hand, never in CI.

    tests/models/gguf/CASE.gguf          the fixture CASE, in float32 as convert_hf_to_gguf.py writes it
    tests/models/gguf/CASE.fused.gguf    with --fuse-qkv

usage: scripts/gguf_oracle/convert.py LLAMA_CPP [CASE...]

LLAMA_CPP is a source tree of llama.cpp, such as vendor/llama.cpp in the source package of PyPI's llama-cpp-python
(0.3.36 was used). The fixtures have no tokenizer, and neither have the files. Needs torch and transformers 5.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from model_oracle.fixtures import fixture  # noqa: E402

MODELS = ROOT / "tests" / "models" / "gguf"
CASES = ("bert_encoder", "bloom", "cohere", "cohere2_period", "deepseek_v2", "falcon_40b", "falcon_7b", "gemma",
         "gemma2", "gemma3", "glm4", "glm4_moe", "gpt2", "gpt_neox", "gpt_oss", "granite", "granitemoe", "llama",
         "llama.fused", "llama4", "mamba", "mamba2", "mixtral", "mpt", "nemotron", "nomic_bert", "olmo", "olmo2",
         "olmo3", "olmoe", "phi3", "phi_ungrouped", "qwen2", "qwen2_moe_sparse", "qwen2_moe_sparse.fused", "qwen3",
         "qwen3.fused", "qwen3_moe_sparse", "qwen3_yarn", "rwkv6", "rwkv7", "seed_oss", "smollm3", "stablelm",
         "starcoder2", "t5", "t5_gated")


def set_vocab(model) -> None:
    """In place of the converter's, which every class has its own of: only the number of words."""
    model.gguf_writer.add_tokenizer_model("none")
    model.gguf_writer.add_vocab_size(model.hparams["vocab_size"])
    if "type_vocab_size" in model.hparams:
        model.gguf_writer.add_token_type_count(model.hparams["type_vocab_size"])


def with_inner_width(kind: type):
    """The converter's method, which states four times the width for GPT-2 and Falcon, as all published models have."""
    def set_gguf_parameters(model) -> None:
        kind.set_gguf_parameters(model)
        inner = model.hparams.get("ffn_hidden_size") or model.hparams.get("n_inner")
        if inner:
            model.gguf_writer.add_feed_forward_length(inner)
    return set_gguf_parameters


def as_published(config: dict) -> None:
    """Names and fields that published files of these families have and transformers 5 writes in another way."""
    portion = config.get("rope_parameters", {}).get("partial_rotary_factor")
    if portion is not None:
        config.setdefault("rotary_pct", portion)  # GPT-NeoX
    if config.get("multi_query") and not config.get("new_decoder_architecture"):
        config.pop("num_kv_heads")  # Falcon 7B has one key, whatever this field says
    if "n_positions" in config:
        config.setdefault("n_ctx", config["n_positions"])  # GPT-2
    if config["model_type"] == "nomic_bert":
        config |= {"n_positions": 8192, "activation_function": "swiglu", "causal": False, "prenorm": False,
                   "qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False, "rotary_emb_fraction": 1.0,
                   "rotary_emb_interleaved": False, "rotary_emb_scale_base": None,
                   "rotary_emb_base": config["rope_parameters"]["rope_theta"]}
    if config["model_type"] in ("cohere2", "nemotron"):  # the converter takes heads to be as wide as the stream together
        wider = config["head_dim"] * config["num_attention_heads"] / config["hidden_size"]
        if config["model_type"] == "cohere2":
            config["rotary_pct"] = wider
        else:
            config["rope_parameters"]["partial_rotary_factor"] *= wider
    config.pop("num_nextn_predict_layers", None)  # transformers saves no such layers
    config["architectures"] = [name.replace("MptFor", "MPTFor") for name in config["architectures"]]


def convert(name: str, to: Path) -> None:
    import gguf
    import torch
    from conversion import get_model_class
    from conversion.base import ModelBase, ModelType, get_model_architecture

    case, _, fused = name.partition(".")
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / case
        shutil.copytree(fixture(case), folder)
        config = ModelBase.load_hparams(folder, False)
        as_published(config)
        # Gemma 3's class counts the words of this file.
        vocabulary = {f"word {i}": i for i in range(config["vocab_size"])}
        (folder / "tokenizer.json").write_text(json.dumps(
            {"model": {"type": "WordPiece", "vocab": vocabulary}, "added_tokens": []}))
        kind = get_model_class(get_model_architecture(config, ModelType.TEXT))
        wordless = type(kind.__name__, (kind,), {"set_vocab": set_vocab, "set_gguf_parameters": with_inner_width(kind),
                                                 "model_arch": kind.model_arch})
        with torch.inference_mode():
            wordless(folder, gguf.LlamaFileType.ALL_F32, to, hparams=config, model_name=f"a tiny {case}",
                     fuse_qkv=bool(fused)).write()


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tree = Path(sys.argv[1])
    for part in (tree, tree / "gguf-py"):
        sys.path.insert(0, str(part))
    for case in sys.argv[2:] or CASES:
        convert(case, MODELS / f"{case}.gguf")


if __name__ == "__main__":
    main()

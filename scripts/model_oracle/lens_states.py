#!/usr/bin/env python3
"""Makes tests/models/fixtures/lens_*.zip: tiny random models, and the states of what TransformerLens makes of them.

usage: scripts/model_oracle/lens_states.py

Needs transformer-lens 3.9, the last with HookedTransformer, beside requirements.txt. Each archive has a checkpoint as transformers
saves it, `plain.safetensors` (no weight processing) and `folded.safetensors` (fold_ln, center_writing_weights, center_unembed and
fold_value_biases, where TransformerLens allows them). Both must have the log probabilities of transformers. TransformerLens has no
HookedTransformer of StableLM: there `plain` are the parameters of its bridge, whose folded ones have a square W_O transposed.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import warnings
from pathlib import Path

import torch
import transformers
from safetensors.torch import save_file

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from model_oracle import fixtures  # noqa: E402

WIDTH, HEADS, INNER, LAYERS, VOCABULARY, POSITIONS, EPS = 8, 2, 12, 2, 13, 8, 3e-4
TOKENS = torch.tensor([[3, 1, 12, 7, 5, 9]])
COMMON = {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "vocab_size": VOCABULARY,
          "max_position_embeddings": POSITIONS, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None}
HALF = {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}
NEOX = {**COMMON, "intermediate_size": INNER, "layer_norm_eps": EPS, "rope_parameters": HALF, "tie_word_embeddings": False}
CONFIGS = {
    "qwen2": transformers.Qwen2Config(**COMMON, num_key_value_heads=1, intermediate_size=INNER, rms_norm_eps=EPS),
    "gemma": transformers.GemmaConfig(**COMMON, num_key_value_heads=1, head_dim=6, intermediate_size=INNER, rms_norm_eps=EPS),
    "phi": transformers.PhiConfig(**NEOX),
    "gpt_neox": transformers.GPTNeoXConfig(**NEOX),
    "gpt_neox_sequential": transformers.GPTNeoXConfig(**NEOX, use_parallel_residual=False),
    "gptj": transformers.GPTJConfig(n_embd=WIDTH, n_head=HEADS, n_inner=INNER, n_layer=LAYERS, n_positions=POSITIONS, rotary_dim=2,
                                    vocab_size=VOCABULARY, layer_norm_epsilon=EPS, bos_token_id=0, eos_token_id=0),
    "gpt_neo": transformers.GPTNeoConfig(hidden_size=WIDTH, num_heads=HEADS, num_layers=LAYERS, attention_types=[[["global", "local"], 1]],
                                         window_size=3, intermediate_size=INNER, vocab_size=VOCABULARY, max_position_embeddings=POSITIONS,
                                         layer_norm_epsilon=EPS, bos_token_id=0, eos_token_id=0),
    "opt": transformers.OPTConfig(**COMMON, ffn_dim=INNER, word_embed_proj_dim=WIDTH),
    "stablelm": transformers.StableLmConfig(**COMMON, num_key_value_heads=1, intermediate_size=INNER, layer_norm_eps=EPS, rope_parameters=HALF, use_qkv_bias=True),
}
#: What a HookedTransformerConfig has beyond the common fields.
HOOKED = {
    "qwen2": {"n_key_value_heads": 1, "normalization_type": "RMS", "final_rms": True, "gated_mlp": True, "act_fn": "silu",
              "positional_embedding_type": "rotary", "rotary_dim": 4, "rotary_base": 10000},
    "gemma": {"n_key_value_heads": 1, "normalization_type": "RMS", "final_rms": True, "gated_mlp": True, "act_fn": "gelu_new", "d_head": 6,
              "positional_embedding_type": "rotary", "rotary_dim": 6, "rotary_base": 10000},
    "phi": {"positional_embedding_type": "rotary", "rotary_dim": 2, "rotary_base": 10000, "parallel_attn_mlp": True, "act_fn": "gelu_new"},
    "gpt_neox": {"positional_embedding_type": "rotary", "rotary_dim": 2, "rotary_base": 10000, "parallel_attn_mlp": True, "act_fn": "gelu"},
    "gptj": {"positional_embedding_type": "rotary", "rotary_dim": 2, "rotary_adjacent_pairs": True, "parallel_attn_mlp": True, "act_fn": "gelu_new"},
    "gpt_neo": {"attn_types": ["global", "local"], "use_attn_scale": False, "use_local_attn": True, "window_size": 3, "act_fn": "gelu_new"},
    "opt": {"act_fn": "relu", "eps": 1e-5},
}
HOOKED["gpt_neox_sequential"] = {**HOOKED["gpt_neox"], "parallel_attn_mlp": False}
PLAIN = {"fold_ln": False, "center_writing_weights": False, "center_unembed": False, "fold_value_biases": False}
STATES = {"plain": PLAIN, "folded": dict.fromkeys(PLAIN, True)}


def hooked_states(kind: str, model: torch.nn.Module) -> dict[str, tuple[dict[str, torch.Tensor], torch.Tensor]]:
    """A HookedTransformer's state and its logits."""
    from transformer_lens import HookedTransformer, HookedTransformerConfig
    from transformer_lens.pretrained import weight_conversions

    convert = getattr(weight_conversions, f"convert_{kind.removeprefix('gpt_').removesuffix('_sequential')}_weights")
    result = {}
    for name, processing in STATES.items():
        fields = {"d_model": WIDTH, "d_head": WIDTH // HEADS, "n_heads": HEADS, "n_layers": LAYERS, "n_ctx": POSITIONS, "d_mlp": INNER, "eps": EPS,
                  "d_vocab": VOCABULARY, "normalization_type": "LN", "device": "cpu", "dtype": torch.float32, **HOOKED[kind]}
        config = HookedTransformerConfig(**fields)
        state = {key: tensor.clone() for key, tensor in convert(model, config).items()}
        if processing["fold_ln"]:
            config.normalization_type += "Pre"
        hooked = HookedTransformer(config, move_to_device=False)
        hooked.load_and_process_state_dict(state, **processing)
        result[name] = hooked.eval().state_dict(), hooked(TOKENS, prepend_bos=False)
    return result


def bridge_states(folder: Path, model: torch.nn.Module) -> dict[str, tuple[dict[str, torch.Tensor], torch.Tensor]]:
    import tokenizers
    from transformer_lens.model_bridge import TransformerBridge

    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({f"w{i}": i for i in range(VOCABULARY)}, "w0"))
    transformers.PreTrainedTokenizerFast(tokenizer_object=words, bos_token="w0", eos_token="w0", pad_token="w0").save_pretrained(folder)
    bridge = TransformerBridge.boot_transformers(str(folder), hf_model=model, dtype=torch.float32)
    return {"plain": (bridge.tl_parameters(), bridge(TOKENS))}


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    torch.manual_seed(46)
    for kind, config in CONFIGS.items():
        model = transformers.AutoModelForCausalLM.from_config(config).eval().float()
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                is_gain = parameter.dim() == 1 and not name.endswith("bias") and kind != "gemma"
                parameter.copy_(torch.randn_like(parameter) * 0.3 + is_gain)
        with tempfile.TemporaryDirectory() as scratch, torch.no_grad():
            folder = Path(scratch)
            model.save_pretrained(folder)
            files = {file: (folder / file).read_bytes() for file in ("config.json", "model.safetensors")}
            wanted = torch.log_softmax(model(TOKENS).logits, -1)
            states = hooked_states(kind, model) if kind in HOOKED else bridge_states(folder, model)
            for name, (state, logits) in states.items():
                error = (torch.log_softmax(logits, -1) - wanted).abs().max().item()
                print(f"{kind} {name}: {len(state)} tensors, log probabilities differ by {error:.1e}")
                assert error < 2e-5
                save_file({key: tensor.detach().clone().contiguous() for key, tensor in state.items()}, folder / f"{name}.safetensors")
                files[f"{name}.safetensors"] = (folder / f"{name}.safetensors").read_bytes()
            fixtures.write(f"lens_{kind}", files)


if __name__ == "__main__":
    main()

"""Small models whose heads the tests of `normscope heads` read."""

import json

import numpy as np

from command import safetensors


def normed_heads(folder, random, own_eps, rank):
    """A head of four features over a stream of 16, with norms of its own on queries and keys."""
    whole = lambda *shape: random.integers(-6, 7, shape).astype(np.float32)
    layer, ones = "model.layers.0.", np.ones(16, np.float32)
    maps = {part: whole(4, 16) for part in "qk"}
    maps["q"][rank:] = maps["q"][0]
    gains = {part: random.integers(1, 9, 4).astype(np.float32) for part in "qk"}
    named = {f"{layer}self_attn.{part}_proj.weight": maps[part] for part in "qk"}
    named |= {f"{layer}self_attn.{part}_norm.weight": gains[part] for part in "qk"}
    named |= {f"{layer}self_attn.v_proj.weight": whole(4, 16), f"{layer}self_attn.o_proj.weight": whole(16, 4)}
    named |= {f"{layer}mlp.{part}_proj.weight": whole(16, 16) for part in ("gate", "up", "down")}
    named |= {f"{layer}{norm}_layernorm.weight": ones for norm in ("input", "post_attention")}
    named |= {"model.norm.weight": ones, "model.embed_tokens.weight": whole(5, 16)}
    safetensors(folder / "model.safetensors", named)
    (folder / "config.json").write_text(json.dumps(
        {"model_type": "qwen3", "hidden_size": 16, "num_attention_heads": 1, "num_key_value_heads": 1,
         "head_dim": 4, "rms_norm_eps": own_eps, "num_hidden_layers": 1}))
    return maps, gains

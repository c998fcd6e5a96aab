"""Vocabularies and small models with numbers of very different sizes, for attacks on what is proved about them."""

import json

import numpy as np

from command import safetensors

TOKENS = 6


def llama_shapes(tokens, width, inner, layers=1, sandwich=False):
    """Names and shapes of a Llama's tensors, with tied embeddings; `inner` is heads times head_dim, and `sandwich` adds
    Gemma 2's norms before and after the MLP."""
    shapes = {"model.embed_tokens.weight": (tokens, width), "model.norm.weight": (width,)}
    for layer in range(layers):
        at = f"model.layers.{layer}."
        norms = ["input", "post_attention", *(["pre_feedforward", "post_feedforward"] if sandwich else [])]
        shapes |= {f"{at}{norm}_layernorm.weight": (width,) for norm in norms}
        shapes |= {f"{at}self_attn.{part}_proj.weight": (inner, width) for part in "qkv"}
        shapes[f"{at}self_attn.o_proj.weight"] = (width, inner)
        shapes |= {f"{at}mlp.{part}_proj.weight": (16, width) for part in ("gate", "up")}
        shapes[f"{at}mlp.down_proj.weight"] = (width, 16)
    return shapes


def vocabulary(numbers, folder):
    """Arguments of `reach` for a random unembedding: sometimes with gain, bias, common part and logit biases."""
    draws = np.random.default_rng(numbers.randrange(2**32))
    sized = lambda low, high: 10 ** numbers.uniform(low, high)
    tokens, width = numbers.randrange(2, 14), numbers.randrange(1, 7)
    rows = draws.normal(size=(tokens, width)) * sized(-2, 12)
    if numbers.random() < 0.5:
        rows[draws.random(rows.shape) < 0.3] *= sized(-12, 0)
    if numbers.random() < 0.5:
        rows[:, numbers.randrange(width)] *= sized(-20, 2)
    if tokens > 3 and numbers.random() < 0.3:
        rows[0] = rows[1:4].mean(axis=0)
    if numbers.random() < 0.3:
        rows += sized(-3, 12) * draws.normal(size=width)
    norm = numbers.choice(["layer", "rms", "spherical"])
    words = ["reach", "--norm", norm, "--eps", numbers.choice(["0", "1e-12", "1e-5"])]
    arrays = {"--unembedding": rows}
    if norm != "spherical" and numbers.random() < 0.5:
        arrays["--gain"] = draws.normal(size=width) * 10.0 ** draws.uniform(-6, 6, width)
    if norm == "layer" and numbers.random() < 0.6:
        arrays["--bias"] = draws.normal(size=width) * sized(-6, 8)
    if numbers.random() < 0.4:
        arrays["--unembedding-bias"] = draws.normal(size=tokens) * sized(-4, 10)
    for option, values in arrays.items():
        np.save(folder / f"{option[2:]}.npy", values)
        words += [option, f"{option[2:]}.npy"]
    return words


def model(numbers, folder):
    """Writes a model of one layer: its configuration and weights."""
    draws = np.random.default_rng(numbers.randrange(2**32))
    dtype = numbers.choice([np.float32, np.float64])
    dim, heads = numbers.choice([2, 4, 6]), numbers.choice([1, 2])
    kind = numbers.choice(["llama", "qwen2", "qwen3", "gemma2", "gpt2"])
    width = dim * heads * (1 if kind == "gpt2" else numbers.choice([1, 2]))

    def new(*shape):
        values = draws.normal(size=shape) * 10 ** numbers.uniform(-4, 4)
        form = numbers.randrange(8)
        if form == 0:
            values[:] = 0.0
        elif form == 1 and len(shape) == 2:
            values[1:] = values[0] * draws.normal(size=(shape[0] - 1, 1))  # rank 1
        elif form == 2:
            values *= 10.0 ** draws.uniform(-8, 0, shape[-1])
        elif form == 3:
            values = np.round(2 * values / np.abs(values).max())
        elif form == 4 and len(shape) == 2:
            values *= 10.0 ** draws.uniform(-8, 0, (shape[0], 1))
        return values.astype(dtype)

    if kind == "gpt2":
        fields = {"n_embd": width, "n_head": heads, "n_layer": 1, "n_positions": 8, "n_ctx": 8,
                  "layer_norm_epsilon": numbers.choice([0.0, 1e-12, 1e-5]), "activation_function": "gelu_new"}
        named = {"wte.weight": new(TOKENS, width), "wpe.weight": new(8, width)}
        maps = {"attn.c_attn": 3 * width, "attn.c_proj": width, "mlp.c_fc": 4 * width}
        named |= {f"h.0.{part}.weight": new(width, out) for part, out in maps.items()}
        named |= {f"h.0.{part}.bias": new(out) for part, out in maps.items()}
        named |= {"h.0.mlp.c_proj.weight": new(4 * width, width), "h.0.mlp.c_proj.bias": new(width)}
        for norm in ("h.0.ln_1", "h.0.ln_2", "ln_f"):
            named |= {f"{norm}.{part}": new(width) for part in ("weight", "bias")}
    else:
        fields = {"hidden_size": width, "num_attention_heads": heads, "num_key_value_heads": heads, "head_dim": dim,
                  "num_hidden_layers": 1, "rms_norm_eps": numbers.choice([0.0, 1e-6, 1.0]), "rope_theta": 10000.0,
                  "tie_word_embeddings": True, "max_position_embeddings": numbers.choice([8, 64, 2048])}
        shapes = llama_shapes(TOKENS, width, heads * dim, sandwich=kind == "gemma2")
        if kind == "qwen2":
            shapes |= {f"model.layers.0.self_attn.{part}_proj.bias": (heads * dim,) for part in "qkv"}
        elif kind == "qwen3":
            shapes |= {f"model.layers.0.self_attn.{part}_norm.weight": (dim,) for part in "qk"}
        elif kind == "gemma2":
            fields |= {"attn_logit_softcapping": 10 ** numbers.uniform(-2, 4), "query_pre_attn_scalar": 4,
                       "sliding_window": numbers.choice([3, 4096]), "final_logit_softcapping": 30.0}
        named = {name: new(*shape) for name, shape in shapes.items()}
    safetensors(folder / "model.safetensors", named)
    (folder / "config.json").write_text(json.dumps({"model_type": kind, "vocab_size": TOKENS} | fields))

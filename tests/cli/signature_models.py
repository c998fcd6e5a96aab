"""Reference forward passes in NumPy, float32 throughout, whose last logits the tests of signatures hold against ellipses."""

import json
import os
from pathlib import Path

import numpy as np

from forward_pass import tensors

OWN_MODEL = Path(__file__).resolve().parents[2] / "models/wordlist_gpt"
CHECKPOINTS = Path(os.environ["NORMSCOPE_DATA"]) / "checkpoints"
STORIES = CHECKPOINTS / "llama2c_stories260K.safetensors"
SORT = CHECKPOINTS / "gpt_nano_sort.safetensors"


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def rms(x, gain):
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + np.float32(1e-5)) * gain


def layer_norm(x, gain, bias):
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True) + np.float32(1e-5)) * gain + bias


def attended(query, key, value):
    """Causal attention of (batch, head, position, feature)."""
    count = query.shape[2]
    scores = query @ key.swapaxes(2, 3) / np.float32(np.sqrt(query.shape[3]))
    hidden = np.triu(np.full((count, count), -np.inf, np.float32), 1)
    return softmax(scores + hidden) @ value


def turned(x):
    """Rotary embedding of neighbouring pairs, as llama2.c has it."""
    dims = x.shape[-1]
    angles = np.arange(x.shape[2])[:, None] * 10000.0 ** (-np.arange(0, dims, 2) / dims)
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    even, odd = x[..., 0::2], x[..., 1::2]
    return np.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(x.shape)


def stories(ids, path=STORIES):
    """Logits of stories260K at every position of ids (batch, position)."""
    w = {name: np.asarray(value, np.float32) for name, value in tensors(path).items()}
    batch, count = ids.shape
    x = w["tok_emb"][ids]
    split = lambda y, heads: y.reshape(batch, count, heads, 8).transpose(0, 2, 1, 3)
    for layer in range(5):
        linear = lambda name, out: w[name][layer].reshape(out, -1).T
        h = rms(x, w["rms_att"][layer])
        query, key = turned(split(h @ linear("wq", 64), 8)), turned(split(h @ linear("wk", 32), 4))
        value = split(h @ linear("wv", 32), 4)
        mixed = attended(query, key.repeat(2, 1), value.repeat(2, 1))
        x = x + mixed.transpose(0, 2, 1, 3).reshape(batch, count, 64) @ linear("wo", 64)
        h = rms(x, w["rms_ffn"][layer])
        gate = h @ linear("w1", 172)
        x = x + (gate / (1 + np.exp(-gate)) * (h @ linear("w3", 172))) @ linear("w2", 64)
    return rms(x, w["rms_final"]) @ w["tok_emb"].T


def gpt(weights, heads, ids, stored_out_in):
    """Logits of a GPT-2 at every position of ids (batch, position)."""
    w = {name.removeprefix("transformer."): np.asarray(value, np.float32) for name, value in weights.items()}
    batch, count = ids.shape
    x = w["wte.weight"][ids] + w["wpe.weight"][:count]
    width = x.shape[-1]
    for layer in range(1 + max(int(name.split(".")[1]) for name in w if name.startswith("h."))):
        at = f"h.{layer}."
        linear = lambda y, name: y @ (w[at + name + ".weight"].T if stored_out_in else w[at + name + ".weight"]) + w[at + name + ".bias"]
        h = layer_norm(x, w[at + "ln_1.weight"], w[at + "ln_1.bias"])
        parts = np.split(linear(h, "attn.c_attn"), 3, -1)
        query, key, value = (y.reshape(batch, count, heads, -1).transpose(0, 2, 1, 3) for y in parts)
        mixed = attended(query, key, value).transpose(0, 2, 1, 3).reshape(batch, count, width)
        x = x + linear(mixed, "attn.c_proj")
        inner = linear(layer_norm(x, w[at + "ln_2.weight"], w[at + "ln_2.bias"]), "mlp.c_fc")
        inner = 0.5 * inner * (1 + np.tanh(np.float32(np.sqrt(2 / np.pi)) * (inner + np.float32(0.044715) * inner**3)))
        x = x + linear(inner, "mlp.c_proj")
    return layer_norm(x, w["ln_f.weight"], w["ln_f.bias"]) @ w["lm_head.weight"].T


def wordlist(ids):
    heads = json.loads((OWN_MODEL / "config.json").read_text())["n_head"]
    return gpt(tensors(OWN_MODEL / "model.safetensors"), heads, ids, stored_out_in=False)


def sort(ids, path=SORT):
    return gpt(tensors(path), 3, ids, stored_out_in=True)


def rows_of(model, batch, count, vocabulary, seed=1):
    """Logits at every position of random prompts."""
    ids = np.random.default_rng(seed).integers(0, vocabulary, (batch, count))
    logits = model(ids)
    return logits.reshape(-1, logits.shape[-1])

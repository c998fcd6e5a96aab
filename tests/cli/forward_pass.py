"""Logits of decoders of Hugging Face's names, in NumPy and float64, by a forward pass that shares nothing with the command.

Parts are found by their names in the file, and what the names do not say is in `config.json` or in the tables below. That
the pass is the model's shows in the committed logits of transformers: `rewrite_logits_test.py` compares each.
"""

import json
import math
import struct

import numpy as np

ROOTS = ("model.", "transformer.", "gpt_neox.", "model.decoder.", "")
EMBEDDINGS = ("embed_tokens", "wte", "embed_in", "word_embeddings")
LAYERS = ("layers.", "h.", "blocks.")
FINAL_NORMS = ("norm", "ln_f", "final_layer_norm", "final_layernorm", "norm_f")
HEADS = ("lm_head", "embed_out")
BEFORE_ATTENTION = ("input_layernorm", "ln_1", "ln_attn", "norm_1", "self_attn_layer_norm")
BEFORE_MLP = ("pre_feedforward_layernorm", "ln_2", "ln_mlp", "norm_2", "final_layer_norm", "post_attention_layernorm")
AFTER_ATTENTION, AFTER_MLP = ("post_self_attn_layernorm",), ("post_feedforward_layernorm", "post_mlp_layernorm")
ATTENTION = ("self_attn.", "attn.attention.", "attn.", "attention.", "self_attention.")
FUSED = ("c_attn", "qkv_proj", "query_key_value", "Wqkv")
OUTPUTS = ("o_proj", "c_proj", "out_proj", "dense")
MLP = ("mlp.", "ffn.", "block_sparse_moe.", "")
UPS = ("up_proj", "c_fc", "fc_in", "fc1", "dense_h_to_4h", "w3")
DOWNS = ("down_proj", "c_proj", "fc_out", "fc2", "dense_4h_to_h", "w2")

RMS = {"llama", "mistral", "ministral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "phi3", "granite", "olmo2", "olmo3", "mixtral",
       "qwen2_moe", "qwen3_moe", "olmoe", "glm", "glm4", "smollm3", "seed_oss", "exaone4", "vaultgemma", "arcee"}
ONE_IS_ADDED = {"gemma", "gemma2", "gemma3_text", "vaultgemma", "nemotron"}  # to gains
NORM_AFTER_ATTENTION = {"gemma2", "gemma3_text", "olmo2", "olmo3", "exaone4"}  # is called post_attention_layernorm
INTERLEAVED = {"gptj", "codegen", "cohere", "cohere2", "glm", "glm4"}  # rotated pairs (2 j, 2 j + 1)
IN_OUT = {"gpt2"}
BY_HEAD = {"gpt_neox", "bloom", "persimmon", "falcon", "gpt_bigcode"}  # fused: the queries of each group, then its key and value
ACTIVATIONS = {
    "silu": lambda x: x / (1 + np.exp(-x)),
    "relu": lambda x: np.maximum(x, 0),
    "relu2": lambda x: np.maximum(x, 0) ** 2,
    "gelu": lambda x: 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))),
    "gelu_new": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}
ACTIVATIONS["gelu_pytorch_tanh"] = ACTIVATIONS["gelu_new"]


def tensors(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    result = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        result[name] = np.frombuffer(data[8 + length + begin:8 + length + end], np.float32).reshape(entry["shape"])
    return {name: array.astype(np.float64) for name, array in result.items()}


def normalized(x, gain, bias, eps, centers):
    x = x - x.mean(-1, keepdims=True) if centers else x
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * gain + bias


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def frequencies(rope, half):
    """Radians per position of each pair, stretched for long contexts."""
    plain = rope["rope_theta"] ** (-np.arange(half) / half)
    if rope["rope_type"] == "linear":
        return plain / rope["factor"]
    if rope["rope_type"] == "default":
        return plain
    low, high, original = rope["low_freq_factor"], rope["high_freq_factor"], rope["original_max_position_embeddings"]
    share = np.clip((original * plain / (2 * np.pi) - low) / (high - low), 0, 1)
    return (1 - share) * plain / rope["factor"] + share * plain


def turned(x, rope, dims, interleaved):
    """Queries or keys (heads x positions x dims) with pairs of the first `dims` features turned by position."""
    half = dims // 2
    angles = np.arange(x.shape[1])[:, None] * frequencies(rope, half)
    first, second = (slice(0, dims, 2), slice(1, dims, 2)) if interleaved else (slice(0, half), slice(half, dims))
    result = x.copy()
    result[..., first] = x[..., first] * np.cos(angles) - x[..., second] * np.sin(angles)
    result[..., second] = x[..., second] * np.cos(angles) + x[..., first] * np.sin(angles)
    return result


def alibi_slopes(config, heads):
    """Per head; of the extra heads beyond a power of two, MPT takes them in another order than BLOOM and Falcon."""
    if config["model_type"] == "mpt":
        count = 2 ** math.ceil(math.log2(heads))
        slopes = 2.0 ** -(np.arange(1, count + 1) * 8 / count)  # whatever alibi_bias_max is, in transformers
        return slopes if count == heads else np.concatenate([slopes[1::2], slopes[::2]])[:heads]
    count = 2 ** math.floor(math.log2(heads))
    extra = 2.0 ** (-4 / count * np.arange(1, 2 * (heads - count) + 1, 2))
    return np.concatenate([2.0 ** (-8 / count * np.arange(1, count + 1)), extra])


class Decoder:
    def __init__(self, folder, layer_norm=True):
        """Without `layer_norm`, the LayerNorms of the residual stream are RMSNorms."""
        self.w = tensors(folder / "model.safetensors")
        self.config = json.loads((folder / "config.json").read_text())
        self.kind = self.config["model_type"]
        self.layer_norm = layer_norm
        self.heads = self.option("num_attention_heads", "n_head", "num_heads", "n_heads")
        self.kv_heads = self.option("num_kv_heads", "num_key_value_heads", default=self.heads)
        if self.kind == "falcon" and not self.config["new_decoder_architecture"]:
            self.kv_heads = 1 if self.config["multi_query"] else self.heads
        self.eps = self.option("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps", default=1e-5)
        self.root = self.named("", [root + name for name in EMBEDDINGS for root in ROOTS]).rpartition(".")[0] + "."

    def option(self, *names, default=None):
        return next((self.config[name] for name in names if self.config.get(name) is not None), default)

    def named(self, at, names):
        return next((at + name for name in names if at + name + ".weight" in self.w), None)

    def norm(self, x, name, of_stream=True):
        gain = self.w.get(f"{name}.weight", 1.0) + (self.kind in ONE_IS_ADDED)
        return normalized(x, gain, self.w.get(f"{name}.bias", 0.0), self.eps, self.kind not in RMS and (self.layer_norm or not of_stream))

    def linear(self, x, name):
        weight = self.w[name + ".weight"]
        return x @ (weight if self.kind in IN_OUT else weight.T) + self.w.get(name + ".bias", 0.0)

    def queries_keys_values(self, x, at):
        fused, count = self.named(at, FUSED), len(x)
        if not fused:
            parts = [self.linear(x, at + part) for part in ("q_proj", "k_proj", "v_proj")]
        elif self.kind == "codegen":  # four parts, each with its queries, values and keys
            mixed = self.linear(x, fused).reshape(count, 4, 3, -1)
            parts = [mixed[:, :, part].reshape(count, -1) for part in (0, 2, 1)]
        elif self.kind in BY_HEAD:
            groups = 1 if self.config.get("multi_query") and self.kind == "gpt_bigcode" else self.kv_heads
            mixed = self.linear(x, fused).reshape(count, groups, self.heads // groups + 2, -1)
            parts = [part.reshape(count, -1) for part in np.split(mixed, [self.heads // groups, self.heads // groups + 1], axis=2)]
        else:
            mixed = self.linear(x, fused)
            dims = mixed.shape[1] // (self.heads + 2 * self.kv_heads)
            parts = np.split(mixed, [self.heads * dims, (self.heads + self.kv_heads) * dims], axis=1)
        dims = parts[0].shape[1] // self.heads
        for index, letter in enumerate("qk"):
            parts[index] = self.normed(parts[index], letter, at, dims)
        clip = self.config.get("clip_qkv") or self.config.get("attn_config", {}).get("clip_qkv") or np.inf
        return [np.clip(part, -clip, clip).reshape(count, -1, dims).transpose(1, 0, 2) for part in parts]

    def normed(self, x, letter, at, dims):
        """Queries or keys behind their norm, over a head or over all."""
        name = next((at + letter + end for end in ("_norm", "_layernorm") if any(n.startswith(at + letter + end + ".") for n in self.w)), None)
        if name is None:
            return x
        each = sorted(n for n in self.w if n.startswith(name + ".norms."))
        if each:  # a norm for every head
            self.w[name + ".weight"] = np.stack([self.w[n] for n in each])
        per_head = self.w[name + ".weight"].size == dims or self.w[name + ".weight"].ndim == 2
        parts = x.reshape(len(x), -1, dims) if per_head else x
        return self.norm(parts, name, of_stream=False).reshape(x.shape)

    def scale(self, layer, dims):
        scale = self.option("query_pre_attn_scalar", default=dims) ** -0.5
        scale = self.config.get("attention_multiplier", self.config.get("attn_config", {}).get("softmax_scale") or scale)
        if self.kind == "gpt_neo":
            scale = 1.0
        return scale / (layer + 1 if self.config.get("scale_attn_by_inverse_layer_idx") else 1)

    def weighted(self, weights, values):
        """Sums of values, heads x queries x dims."""
        return weights @ values

    def attention(self, x, at, layer):
        q, k, v = self.queries_keys_values(x, at)
        count, dims = q.shape[1:]
        kinds = self.option("layer_types", "attention_layers")
        slides = kinds is None or kinds[layer] in ("sliding_attention", "local")
        window = (self.option("sliding_window", "window_size") if slides else None) or count
        turns = {"cohere2": slides, "exaone4": slides, "smollm3": self.config.get("no_rope_layers", [True] * 99)[layer]}.get(self.kind, True)
        alibi = self.kind in ("bloom", "mpt") or self.config.get("alibi")
        rope = self.config.get("rope_parameters", {"rope_theta": 1e4, "rope_type": "default"})
        rope = rope.get(kinds[layer] if kinds else "", rope)
        turns = turns and not alibi and ("rope_parameters" in self.config or "rotary_dim" in self.config)
        if turns:
            turning = self.config.get("rotary_dim", int(dims * rope.get("partial_rotary_factor", 1.0)))
            q, k = (turned(part, rope, turning, self.kind in INTERLEAVED) for part in (q, k))
        k, v = (part.repeat(self.heads // len(part), axis=0) for part in (k, v))
        scale = self.scale(layer, dims)
        scores = scale * (q @ k.transpose(0, 2, 1))
        if self.config.get("attn_logit_softcapping"):
            scores = self.config["attn_logit_softcapping"] * np.tanh(scores / self.config["attn_logit_softcapping"])
        if alibi:
            scores = scores + alibi_slopes(self.config, self.heads)[:, None, None] * np.arange(count) * (scale if self.kind == "falcon" else 1)
        apart = np.arange(count)[:, None] - np.arange(count)
        attended = self.weighted(softmax(np.where((apart >= 0) & (apart < window), scores, -np.inf)), v)
        return self.linear(attended.transpose(1, 0, 2).reshape(count, -1), self.named(at, OUTPUTS))

    def act(self, x):
        name = self.option("hidden_act", "hidden_activation", "activation_function", "activation", default="gelu")
        return ACTIVATIONS["gelu_new" if self.kind == "bloom" else name](x)

    def expert(self, x, at):
        down, both = self.named(at, DOWNS), self.named(at, ("gate_up_proj",))
        gate = self.named(at, ("gate_proj", "w1"))
        if both:
            gate, up = np.split(self.linear(x, both), 2, axis=-1)
            return self.linear(self.act(gate) * up, down)
        up = self.linear(x, self.named(at, UPS))
        return self.linear(self.act(self.linear(x, gate)) * up if gate else self.act(up), down)

    def mlp(self, x, at):
        if at + "gate.weight" not in self.w:
            return self.expert(x, at)
        shares, result = softmax(self.linear(x, at + "gate")), np.zeros_like(x)
        for row, share in enumerate(shares):
            chosen = np.argsort(-share)[:self.config["num_experts_per_tok"]]
            total = share[chosen].sum() if self.config.get("norm_topk_prob", self.kind == "mixtral") else 1.0
            for number in chosen:
                result[row] += share[number] / total * self.expert(x[row:row + 1], f"{at}experts.{number}.")[0]
        if at + "shared_expert_gate.weight" in self.w:
            result += self.expert(x, at + "shared_expert.") / (1 + np.exp(-self.linear(x, at + "shared_expert_gate")))
        return result

    def block(self, x, layer):
        prefix = next(self.root + name for name in LAYERS if any(n.startswith(self.root + name) for n in self.w))
        at = f"{prefix}{layer}."
        find = lambda names: self.named(at, names)
        attention = next(at + part for part in ATTENTION if any(n.startswith(at + part) for n in self.w))
        feed = next(at + part for part in MLP if any(n.startswith(at + part) for n in self.w))
        after = find(AFTER_ATTENTION) or (at + "post_attention_layernorm" if self.kind in NORM_AFTER_ATTENTION else None)
        before, second = find(BEFORE_ATTENTION), find(BEFORE_MLP)
        if second == after:
            second = None
        has_gains = self.kind != "olmo"
        pre = lambda y, name: self.norm(y, name) if name or not has_gains else y
        post = lambda y, name: self.norm(y, name) if name else y
        times = self.config.get("residual_multiplier", 1.0)
        normed = pre(x, before)
        mixed = times * post(self.attention(normed, attention, layer), after)
        if self.option("use_parallel_residual", "parallel_attn", default=self.kind in ("gptj", "codegen", "phi", "cohere", "cohere2")):
            return x + mixed + self.mlp(self.norm(x, second) if second else normed, feed)
        x = x + mixed
        return x + times * post(self.mlp(pre(x, second), feed), find(AFTER_MLP))

    def logits(self, ids):
        table = self.w[self.named(self.root, EMBEDDINGS) + ".weight"]
        x = table[ids] * self.config.get("embedding_multiplier", math.sqrt(table.shape[1]) if "gemma" in self.kind else 1.0)
        for name, shift in (("wpe", 0), ("embed_positions", 2)):
            if f"{self.root}{name}.weight" in self.w:
                x = x + self.w[f"{self.root}{name}.weight"][np.arange(len(ids)) + shift]
        if self.root + "word_embeddings_layernorm.weight" in self.w:
            x = self.norm(x, self.root + "word_embeddings_layernorm")
        for layer in range(self.option("num_hidden_layers", "n_layer", "num_layers", "n_layers")):
            x = self.block(x, layer)
        x = self.norm(x, self.named(self.root, FINAL_NORMS))
        head = None if self.config.get("tie_word_embeddings", True) else self.named("", HEADS)
        result = x @ (self.w[head + ".weight"] if head else table).T + (self.w.get(f"{head}.bias", 0.0))
        result = result * self.config.get("logit_scale", 1 / self.config.get("logits_scaling", 1.0)) if self.kind != "mpt" else result
        cap = self.config.get("final_logit_softcapping")
        return cap * np.tanh(result / cap) if cap else result


def logits(folder, ids, layer_norm=True):
    return Decoder(folder, layer_norm).logits(ids)

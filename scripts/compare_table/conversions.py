"""What people do to a checkpoint without changing its function: each makes another checkpoint, or None where the architecture
has nothing of the kind."""

from __future__ import annotations

from typing import Callable

import numpy as np

from checkpoints import Checkpoint, Map

ALIBI = ("bloom", "mpt")  # a head's slope belongs to its place


def exchange(model: Checkpoint, of: Map, to: np.ndarray, source: np.ndarray) -> None:
    """Output features `to` get those of `source`."""
    rows = model.rows(of)
    rows[to] = rows[source].copy()
    bias = model.bias(of)
    if bias is not None:
        bias[to] = bias[source].copy()


def permute_heads(model: Checkpoint, random: np.random.Generator) -> Checkpoint | None:
    """Groups in another order, and the heads of each group."""
    attentions = model.attentions()
    if not attentions or model.kind in ALIBI or model.config.get("alibi") or len(attentions[0].queries) == 1:
        return None
    shares = len(attentions[0].queries) // len(attentions[0].keys)
    groups = np.roll(np.arange(len(attentions[0].keys)), 1)
    heads = np.concatenate([[h for h, g in enumerate(attentions[0].group_of) if g == group][::-1] for group in groups])
    assert len(heads) == shares * len(groups)
    for a in attentions:
        together = lambda parts, order: np.concatenate([parts[i] for i in order])
        exchange(model, a.query, together(a.queries, range(len(heads))), together(a.queries, heads))
        exchange(model, a.key, together(a.keys, range(len(groups))), together(a.keys, groups))
        exchange(model, a.value, together(a.values, range(len(groups))), together(a.values, groups))
        columns = model.rows(a.output)
        columns[:, together(a.outputs, range(len(heads)))] = columns[:, together(a.outputs, heads)].copy()
        for names, order in ((a.query_gains, heads), (a.key_gains, groups)):
            for name in names:
                by_head = model.tensors[name].reshape(len(order), -1)
                model.tensors[name] = by_head[order].reshape(model.tensors[name].shape)
    for name, array in model.tensors.items():
        if name.endswith("relative_attention_bias.weight"):
            model.tensors[name] = array[:, heads]
    return model


def permute_neurons(model: Checkpoint, random: np.random.Generator) -> Checkpoint | None:
    mlps = model.mlps()
    for mlp in mlps:
        order = random.permutation(len(mlp.ups[0][1]))
        for of, features in mlp.ups:
            exchange(model, of, features, features[order])
        columns = model.rows(mlp.down)
        columns[:] = columns[:, order].copy()
    return model if mlps else None


def permute_experts(model: Checkpoint, random: np.random.Generator) -> Checkpoint | None:
    routers = model.experts()
    for experts, router in routers:
        order = np.roll(np.arange(len(experts)), 1)
        stored = [[array.copy() for array in model.expert_tensors(expert)] for expert in experts]
        for expert, source in zip(experts, order):
            for array, values in zip(model.expert_tensors(expert), stored[source]):
                array[...] = values
        for name in (router + ".weight", router + ".bias"):
            if name in model.tensors:
                model.tensors[name] = model.tensors[name][order]
    return model if routers else None


def scale_values(model: Checkpoint, random: np.random.Generator) -> Checkpoint | None:
    """Every feature of the values by a factor of its own, which the output undoes."""
    attentions = [a for a in model.attentions() if not clamped(model)]
    for a in attentions:
        for group, features in enumerate(a.values):
            factors = random.uniform(0.5, 2, len(features)).astype(np.float32)
            multiply(model, a.value, features, factors)
            for head in np.flatnonzero(np.array(a.group_of) == group):
                model.rows(a.output)[:, a.outputs[head]] /= factors
    return model if attentions else None


def scale_scores(model: Checkpoint, random: np.random.Generator) -> Checkpoint | None:
    """All queries of a group by a factor that its keys undo."""
    attentions = [a for a in model.attentions() if not a.normed and not clamped(model)]
    for a in attentions:
        for group, features in enumerate(a.keys):
            factor = np.float32(random.uniform(0.5, 2))
            multiply(model, a.key, features, factor)
            for head in np.flatnonzero(np.array(a.group_of) == group):
                multiply(model, a.query, a.queries[head], 1 / factor)
    return model if attentions else None


def mix_values(model: Checkpoint, random: np.random.Generator) -> Checkpoint | None:
    """Each group's values by a random invertible matrix, whose inverse the output applies."""
    attentions = [a for a in model.attentions() if not clamped(model)]
    for a in attentions:
        for group, features in enumerate(a.values):
            matrix = np.linalg.qr(random.standard_normal((len(features),) * 2))[0] * random.uniform(0.8, 1.25, len(features))
            transform(model, a.value, features, matrix)
            for head in np.flatnonzero(np.array(a.group_of) == group):
                columns = model.rows(a.output)
                columns[:, a.outputs[head]] = columns[:, a.outputs[head]].astype(np.float64) @ np.linalg.inv(matrix)
    return model if attentions else None


def mix_scores(model: Checkpoint, random: np.random.Generator) -> Checkpoint | None:
    """Queries and keys of heads without rotation by a matrix and its inverse's transpose."""
    attentions = [a for a in model.attentions() if not a.rotates and not a.normed and not clamped(model)]
    for a in attentions:
        for group, features in enumerate(a.keys):
            matrix = np.linalg.qr(random.standard_normal((len(features),) * 2))[0] * random.uniform(0.8, 1.25, len(features))
            transform(model, a.key, features, matrix)
            for head in np.flatnonzero(np.array(a.group_of) == group):
                transform(model, a.query, a.queries[head], np.linalg.inv(matrix).T)
    return model if attentions else None


def transform(model: Checkpoint, of: Map, features: np.ndarray, matrix: np.ndarray) -> None:
    rows, bias = model.rows(of), model.bias(of)
    rows[features] = matrix @ rows[features].astype(np.float64)
    if bias is not None:
        bias[features] = matrix @ bias[features].astype(np.float64)


def scale_neurons(model: Checkpoint, random: np.random.Generator) -> Checkpoint | None:
    """The linear factor of each gated neuron, which what writes undoes; of ReLU neurons the neuron."""
    relu = activation(model) in ("relu",)
    mlps = [mlp for mlp in model.mlps() if (len(mlp.ups) == 2 or relu) and model.kind != "gpt_oss"]  # gpt-oss clamps them
    for mlp in mlps:
        of, features = mlp.ups[0]
        factors = random.uniform(0.5, 2, len(features)).astype(np.float32)
        multiply(model, of, features, factors)
        model.rows(mlp.down)[:] /= factors
    return model if mlps else None


def multiply(model: Checkpoint, of: Map, features: np.ndarray, factors: np.ndarray | np.float32) -> None:
    rows, bias = model.rows(of), model.bias(of)
    rows[features] *= np.reshape(factors, (-1, 1))
    if bias is not None:
        bias[features] *= factors


def clamped(model: Checkpoint) -> bool:
    return bool(model.config.get("clip_qkv") or (model.config.get("attn_config") or {}).get("clip_qkv"))


ACTIVATIONS = ("hidden_act", "hidden_activation", "activation_function", "activation", "dense_act_fn")


def activation(model: Checkpoint) -> str:
    return next((str(model.config[name]) for name in ACTIVATIONS if model.config.get(name)), "")


HEADS = {"gpt_neox": "embed_out", "bert": "cls.predictions.decoder", "roberta": "lm_head.decoder", "distilbert": "vocab_projector"}


def untie(model: Checkpoint, random: np.random.Generator) -> Checkpoint | None:
    if not model.tied:
        return None
    head = HEADS.get(model.kind, "lm_head")
    model.tensors[head + ".weight"] = model.tensors[model.head].copy()
    if head.endswith(".decoder"):  # which shares the bias of its parent too
        model.tensors[head + ".bias"] = model.tensors[head.removesuffix("decoder") + "bias"].copy()
    model.config["tie_word_embeddings"] = False
    return model


#: Families that TransformerLens reads and whose files have its norms, heads and plain or gated MLPs.
LENS = ("gpt2", "llama", "mistral", "qwen2", "gpt_neox", "opt", "gemma", "phi", "stablelm", "bloom", "gptj", "gpt_neo")


def to_transformer_lens(model: Checkpoint, random: np.random.Generator) -> Checkpoint | None:
    """Names and shapes of a HookedTransformer's state, with its buffers: a matrix (in, out) for each head."""
    attentions, mlps, norms = model.attentions(), model.mlps(), model.norms()
    if model.kind not in LENS or not len(norms) - 1 <= 2 * len(attentions) <= 2 * len(mlps):
        return None
    if any(model.bias(of) is not None for mlp in mlps for of, _ in mlp.ups[1:]):  # a gate has no bias there
        return None
    per_layer, new = (len(norms) - 1) // len(attentions), {}

    def move(name: str, array: np.ndarray | None, zeros: tuple[int, ...] = ()) -> None:
        if array is not None or zeros:
            new[name] = np.zeros(zeros, np.float32) if array is None else np.ascontiguousarray(array)

    def move_norm(name: str, norm: dict) -> None:
        move(name + ".w", model.tensors[norm["gain"]] + np.float32(norm["gain_offset"]))
        move(name + ".b", model.tensors[norm["bias"]] if norm["bias"] else None)

    scale = np.float32(model.config["hidden_size"] ** 0.5 if model.kind == "gemma" else 1)
    move("embed.W_E", model.tensors[model.tables[0]] * scale)
    skipped = 2 if model.kind == "opt" else 0
    move("pos_embed.W_pos", next((array[skipped:] for name, array in model.tensors.items()
                                  if name.endswith(("wpe.weight", "embed_positions.weight"))), None))
    for layer, (a, mlp) in enumerate(zip(attentions, mlps)):
        at = f"blocks.{layer}."
        for number in range(2):  # attention and MLP may share one
            move_norm(f"{at}ln{number + 1}", norms[layer * per_layer + min(number, per_layer - 1)])
        for letter, of, parts in (("Q", a.query, a.queries), ("K", a.key, a.keys), ("V", a.value, a.values)):
            shared, bias = "_" if len(parts) < len(a.queries) else "", model.bias(of)
            move(f"{at}attn.{shared}W_{letter}", np.stack([model.rows(of)[features].T for features in parts]))
            move(f"{at}attn.{shared}b_{letter}", None if bias is None else np.stack([bias[features] for features in parts]),
                 (len(parts), len(parts[0])))
        move(f"{at}attn.W_O", np.stack([model.rows(a.output)[:, features].T for features in a.outputs]))
        move(f"{at}attn.b_O", model.bias(a.output), (len(model.rows(a.output)),))
        places = np.arange(16)
        apart = places[:, None] - places
        move(f"{at}attn.mask", (apart >= 0) & (apart < (a.window or 16)))
        move(f"{at}attn.IGNORE", np.float32(-np.inf))
        if a.rotates:
            rope = model.config.get("rope_parameters") or {}
            dims = model.config.get("rotary_dim", int(len(a.queries[0]) * rope.get("partial_rotary_factor", 1)))
            pairs = np.repeat(np.arange(dims // 2), 2) if model.kind == "gptj" else np.tile(np.arange(dims // 2), 2)
            angles = places[:, None] * rope.get("rope_theta", 1e4) ** (-pairs / (dims // 2))
            move(f"{at}attn.rotary_sin", np.sin(angles).astype(np.float32))
            move(f"{at}attn.rotary_cos", np.cos(angles).astype(np.float32))
        for letter, (of, features) in zip(("in", "gate"), mlp.ups):
            bias = model.bias(of)
            move(f"{at}mlp.W_{letter}", model.rows(of)[features].T)
            if letter == "in":
                move(f"{at}mlp.b_in", None if bias is None else bias[features], (len(features),))
        move(f"{at}mlp.W_out", model.rows(mlp.down).T)
        move(f"{at}mlp.b_out", model.bias(mlp.down), (len(model.rows(mlp.down)),))
    move_norm("ln_final", norms[-1])
    move("unembed.W_U", model.tensors[model.head].T)
    move("unembed.b_U", model.tensors.get("lm_head.bias"), (len(model.tensors[model.head]),))
    model.tensors = new
    return model


Conversion = Callable[[Checkpoint, np.random.Generator], "Checkpoint | None"]
CONVERSIONS: dict[str, Conversion] = {
    "heads": permute_heads, "neurons": permute_neurons, "experts": permute_experts, "scale v/o": scale_values, "scale q/k": scale_scores, "mix v/o": mix_values, "mix q/k": mix_scores,
    "scale neurons": scale_neurons, "untie": untie, "TransformerLens": to_transformer_lens}

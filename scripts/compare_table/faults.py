"""Mistakes of converters, and what looks like a symmetry and is none, each made in a copy of a checkpoint; None where the
architecture cannot have it."""

from __future__ import annotations

from typing import Callable

import numpy as np

from checkpoints import Checkpoint
from conversions import ACTIVATIONS, ALIBI, HEADS, activation, exchange, multiply, scale_values

EPS = ("rms_norm_eps", "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon", "norm_eps")


def gain_off_by_one(model: Checkpoint) -> Checkpoint | None:
    """As for a model that reads w in place of 1 + w, or the reverse."""
    norms = model.norms()
    for norm in norms:
        model.tensors[norm["gain"]] += np.float32(1 if not norm["gain_offset"] else -1)
    return model if norms else None


def gains_exchanged(model: Checkpoint) -> Checkpoint | None:
    norms = model.norms()
    pairs = [(one, other) for i, one in enumerate(norms) for other in norms[i + 1:] if one["gain_shape"] == other["gain_shape"]]
    if not pairs:
        return None
    one, other = (norm["gain"] for norm in pairs[0])
    model.tensors[one], model.tensors[other] = model.tensors[other], model.tensors[one]
    return model


def eps(model: Checkpoint) -> Checkpoint | None:
    names = [name for name in EPS if model.config.get(name) and model.kind not in ("olmo", "opt")]
    for name in names:
        model.config[name] *= 10
    return model if names else None


def theta(model: Checkpoint) -> Checkpoint | None:
    rope = model.config.get("rope_parameters") or {}
    places = [part for part in (rope, *rope.values()) if isinstance(part, dict) and part.get("rope_theta")]
    for part in places:
        part["rope_theta"] *= 4.0
    return model if places and any(a.rotates for a in model.attentions()) else None


def other_activation(model: Checkpoint) -> Checkpoint | None:
    names = [name for name in ACTIVATIONS if model.config.get(name)]
    if not names or model.kind in ("mpt", "bloom", "gpt_oss"):
        return None
    for name in names:
        model.config[name] = "silu" if activation(model) not in ("silu", "swish") else "relu"
    return model


def query_permutation(model: Checkpoint) -> Checkpoint | None:
    """Rotated pairs of the queries in the other order, halves for neighbours, and those of the keys as before."""
    attentions = [a for a in model.attentions() if a.rotates]
    for a in attentions:
        for features in a.queries:
            count = len(features) // 2 * 2
            exchange(model, a.query, features[:count], features[:count].reshape(2, -1).T.ravel())
    return model if attentions else None


def head_zeroed(model: Checkpoint) -> Checkpoint | None:
    attentions = model.attentions()
    if not attentions:
        return None
    model.rows(attentions[-1].output)[:, attentions[-1].outputs[0]] = 0
    return model


def expert_exchanged(model: Checkpoint) -> Checkpoint | None:
    """Two experts, and not their rows of the router."""
    routers = model.experts()
    if not routers:
        return None
    first, second = (model.expert_tensors(expert) for expert in routers[0][0][:2])
    for one, other in zip(first, second):
        one[...], other[...] = other.copy(), one.copy()
    return model


def block_wrong(model: Checkpoint) -> Checkpoint | None:
    """32 consecutive numbers of the last matrix that writes are those of the next block."""
    mlps = model.mlps()
    if not mlps:
        return None
    of = mlps[-1].down
    flat = model.tensors[of.weight][... if of.index is None else of.index].reshape(-1)
    flat[:32] = flat[32:64].copy()
    return model


def bias_lost(model: Checkpoint) -> Checkpoint | None:
    """The last bias of a map that is not the key's, which softmax does not see."""
    attentions, mlps = model.attentions(), model.mlps()
    maps = [a.value for a in attentions] + [a.output for a in attentions] + [mlp.down for mlp in mlps] + [of for mlp in mlps for of, _ in mlp.ups]
    names = [of.bias for of in maps if of.bias]
    if not names:
        names = [norm["bias"] for norm in model.truth["norms"] if norm["bias"]]
    if not names:
        return None
    model.tensors[names[-1]][...] = 0
    return model


def scale(model: Checkpoint) -> Checkpoint | None:
    """One matrix that writes, times 1.01."""
    mlps = model.mlps()
    if not mlps:
        return None
    model.rows(mlps[0].down)[...] *= np.float32(1.01)
    return model


def tie_flag(model: Checkpoint) -> Checkpoint | None:
    """An untied head is dropped and the flag set, so that the token table is the head."""
    if model.tied or HEADS.get(model.kind, "lm_head") + ".weight" not in model.tensors:
        return None
    del model.tensors[HEADS.get(model.kind, "lm_head") + ".weight"]
    model.config["tie_word_embeddings"] = True
    return model


def soft_cap(model: Checkpoint) -> Checkpoint | None:
    names = [name for name in ("attn_logit_softcapping", "final_logit_softcapping") if model.config.get(name)]
    if model.kind == "gemma3_text":  # whose class keeps the field of scores and has no such cap
        names = [name for name in names if name.startswith("final")]
    for name in names:
        model.config[name] = None
    return model if names else None


def window(model: Checkpoint) -> Checkpoint | None:
    if not any(stated["window"] for stated in model.truth["attention"]):
        return None
    for name in ("sliding_window", "window_size", "attention_window"):
        if model.config.get(name):
            model.config[name] = 4096
    return model


def rows_shifted(model: Checkpoint) -> Checkpoint | None:
    """The token table begins one row later."""
    tables = model.tables
    for name in tables:
        model.tensors[name] = np.roll(model.tensors[name], 1, axis=0)
    return model if tables else None


def outputs_in_place(model: Checkpoint) -> Checkpoint | None:
    """Groups in another order, and the columns of the output as they were."""
    attentions = [a for a in model.attentions() if len(a.queries) > 1]
    for a in attentions:
        for of, parts in ((a.query, a.queries), (a.key, a.keys), (a.value, a.values)):
            exchange(model, of, np.concatenate(parts), np.concatenate(parts[1:] + parts[:1]))
    return model if attentions else None


def groups_exchanged(model: Checkpoint) -> Checkpoint | None:
    """Keys and values of two groups, and not the queries that they serve."""
    attentions = [a for a in model.attentions() if len(a.keys) > 1]
    for a in attentions[-1:]:
        for of, parts in ((a.key, a.keys), (a.value, a.values)):
            exchange(model, of, np.concatenate(parts[:2]), np.concatenate(parts[1::-1]))
    return model if attentions else None


def frequencies_exchanged(model: Checkpoint) -> Checkpoint | None:
    """All features of queries and keys in the reverse order, which is a symmetry of heads that do not rotate."""
    attentions = [a for a in model.attentions() if a.rotates]
    for a in attentions:
        for of, parts in ((a.query, a.queries), (a.key, a.keys)):
            for features in parts:
                exchange(model, of, features, features[::-1])
    return model if attentions else None


def slopes_exchanged(model: Checkpoint) -> Checkpoint | None:
    """Heads in another order where each has a slope of its own."""
    attentions = model.attentions()
    if not attentions or not (model.kind in ALIBI or model.config.get("alibi")):
        return None
    for a in attentions:
        for of, parts in ((a.query, a.queries), (a.key, a.keys), (a.value, a.values)):
            exchange(model, of, np.concatenate(parts), np.concatenate(parts[::-1]))
        columns = model.rows(a.output)
        columns[:, np.concatenate(a.outputs)] = columns[:, np.concatenate(a.outputs[::-1])].copy()
    return model


def neurons_in_place(model: Checkpoint) -> Checkpoint | None:
    """Two neurons of one MLP exchanged, and not what they write."""
    mlps = model.mlps()
    for of, features in mlps[-1].ups if mlps else []:
        exchange(model, of, features[:2], features[1::-1])
    return model if mlps else None


def gate_negated(model: Checkpoint) -> Checkpoint | None:
    """Both factors of the gated neurons times -1, or plain ones and what they write: their product, if the gate were linear."""
    mlps = model.mlps()
    for mlp in mlps:
        for of, features in mlp.ups:
            multiply(model, of, features, np.float32(-1))
        if len(mlp.ups) == 1:
            model.rows(mlp.down)[...] *= -1
    return model if mlps else None


def scale_kept(model: Checkpoint) -> Checkpoint | None:
    """All features of the values by factors that the output undoes, but for one."""
    attentions = model.attentions()
    changed = scale_values(model, np.random.default_rng(46)) if attentions else None
    if changed:
        changed.rows(attentions[0].value)[attentions[0].values[0][0]] *= np.float32(1.25)
    return changed


Fault = Callable[[Checkpoint], "Checkpoint | None"]
FAULTS: dict[str, Fault] = {
    "gain ± 1": gain_off_by_one, "gains exchanged": gains_exchanged, "eps": eps, "theta": theta, "activation": other_activation,
    "query order": query_permutation, "head zero": head_zeroed, "expert exchanged": expert_exchanged, "block wrong": block_wrong,
    "bias lost": bias_lost, "times 1.01": scale, "tie flag": tie_flag, "soft cap lost": soft_cap, "window lost": window,
    "rows shifted": rows_shifted}
#: What a symmetry is not quite.
NEAR_MISSES: dict[str, Fault] = {
    "outputs in place": outputs_in_place, "groups exchanged": groups_exchanged, "frequencies exchanged": frequencies_exchanged,
    "slopes exchanged": slopes_exchanged, "neurons in place": neurons_in_place, "gate negated": gate_negated,
    "one scale kept": scale_kept}

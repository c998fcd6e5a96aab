#!/usr/bin/env python3
"""Writes fields.json into tests/models/fixtures/CASE.zip: what each field of a configuration changes in the running model.

usage: scripts/model_oracle/fields.py [--out FOLDER] [CASE ...]     (default: all cases that are classes of transformers)

Every field of the fixture's configuration, every field of its class, and every field of FOREIGN (those of other classes
and of older versions) is set to other values or removed, with the same weights. Each time the model runs with the inputs
of its norms replaced by `rows`, and once as it is. Two runs are compared in what a description of the file states:

  norms    the first output of every norm of features
  scores   of the last query but one, of the last head of every self-attention, for every key; null where it sees none
  logits   of the first tokens, at the last position

Fields are paths, "rope_parameters/rope_theta"; the value null removes the field. `same`: values that change nothing in
any output; `stream`: those that change the outputs of the whole model alone, not these functions of a norm's input;
`changed`: the rest, with the numbers that they change. Values that the class refuses or that change the shapes of its
tensors are left out. The test FieldsOracle compares descriptions with these files.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
from pathlib import Path
from typing import Any, Iterator

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import torch  # noqa: E402
import transformers  # noqa: E402

from model_oracle import fixtures  # noqa: E402
from model_oracle.cases import CASES  # noqa: E402
from model_oracle.cases.case import Case, tensors  # noqa: E402
from model_oracle.make import eager_experts, load, prepare  # noqa: E402
from model_oracle.searches import Scores  # noqa: E402

Json = Any
ABSENT = object()
FACTS = ("norms", "scores", "logits")

# Fields of other classes, or of older versions of the same class, that a configuration may hold.
FOREIGN: dict[str, list[Json]] = {
    "rope_theta": [300.0], "partial_rotary_factor": [0.67, 0.5], "rotary_pct": [0.5], "rotary_emb_base": [300.0],
    "rope_scaling": [{"type": "linear", "factor": 2.0}, {"rope_type": "default", "rope_theta": 300.0},
                     {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 8}],
    "rope_local_base_freq": [70.0], "rope_parameters": [{"rope_type": "default", "rope_theta": 300.0}],
    "attn_logit_softcapping": [0.3], "final_logit_softcapping": [0.7], "logits_soft_cap": [0.7],
    "query_pre_attn_scalar": [11], "attention_multiplier": [0.3], "logit_scale": [0.4], "logits_scaling": [5.0],
    "embedding_multiplier": [3.0], "residual_multiplier": [0.22],
    "sliding_window": [3], "use_sliding_window": [True], "max_window_layers": [1], "sliding_window_pattern": [2],
    "layer_types": [["sliding_attention", "full_attention"], ["full_attention", "full_attention"]],
    "attention_window_size": [3], "no_rope_layers": [[0, 1]], "no_rope_layer_interval": [2],
    "clip_qkv": [0.05], "alibi": [True], "qk_layernorm": [True], "use_qk_norm": [True], "qk_norm": [True],
    "scale_attn_weights": [False], "scale_attn_by_inverse_layer_idx": [True], "position_embedding_type": ["relative_key"],
    "use_parallel_residual": [True, False], "attention_bias": [True], "is_causal": [False],
    "rms_norm_eps": [2e-3], "layer_norm_eps": [2e-3], "layer_norm_epsilon": [2e-3], "norm_eps": [2e-3],
    "norm_epsilon": [2e-3], "normalize_before": [True, False], "do_layer_norm_before": [False],
    "use_bidirectional_attention": [True], "attn_temperature_tuning": [True], "attention_chunk_size": [3],
    "original_max_position_embeddings": [8], "max_position_embeddings": [16], "add_cross_attention": [True],
    "is_decoder": [True, False],
}
# Values of fields whose own value says little about others.
OTHERS: dict[str, list[Json]] = {
    "hidden_act": ["relu", "gelu"], "activation_function": ["relu", "gelu"], "hidden_activation": ["relu", "gelu"],
    "activation": ["relu", "gelu"], "head_dim": [], "use_cache": [False], "rope_type": ["linear"], "type": ["linear"],
}
# Names, training, generation: they say nothing about a forward pass.
SKIPPED = ("architectures", "model_type", "transformers_version", "_name_or_path", "dtype", "torch_dtype", "id2label",
           "label2id", "return_dict", "output_attentions", "output_hidden_states", "problem_type", "tie_word_embeddings",
           "vocab_size", "hidden_size", "chunk_size_feed_forward", "auto_map")


def values_for(key: str, value: Json) -> list[Json]:
    """Other values than `value` for a field of that name; ABSENT removes it."""
    others: list[Json] = list(OTHERS.get(key, FOREIGN.get(key, [])))
    if key not in OTHERS:
        if isinstance(value, bool):
            others.append(not value)
        elif isinstance(value, int):
            others += [value + 1, 2 * value] if value else [1]
        elif isinstance(value, float):
            others += [1.5 * value + 0.01] if value else [0.5]
            if key.endswith(("eps", "epsilon")):
                others = [2e-3]
        elif isinstance(value, list) and len(value) > 1:
            others.append(value[::-1])
        elif value is None and key not in FOREIGN:
            others += [True, 0.5, 3]
    unique: list[Json] = [ABSENT]
    return unique + [other for i, other in enumerate(others) if other != value and other not in others[:i]]


def variants(case: Case, config: Json, foreign: bool = True) -> Iterator[tuple[list[str], Json]]:
    """Path and value of every change; `foreign`: also of fields that only other classes have."""
    config_class = getattr(transformers, case.model).config_class
    defaults = config_class().to_dict()

    def walk(path: list[str], held: Json, known: Json) -> Iterator[tuple[list[str], Json]]:
        for key in {**held, **known}:
            if key in SKIPPED or key.endswith(("token_id", "token_ids", "_dropout", "_range")):
                continue
            value = held.get(key)
            if isinstance(value, dict):
                inner = known.get(key)
                yield from walk([*path, key], value, inner if isinstance(inner, dict) and "config" in key else {})
                yield [*path, key], ABSENT
            else:
                yield from (([*path, key], other) for other in values_for(key, value if key in held else known.get(key))
                            if key in held or other is not ABSENT)
        if foreign and (not path or path[-1].endswith("_config")):
            for key, others in FOREIGN.items():
                if key not in held and key not in known:
                    yield from (([*path, key], other) for other in others)
        if path and path[-1] in ("rope_parameters", "full_attention", "sliding_attention") and "rope_type" in held:
            for key, others in (("partial_rotary_factor", [0.67]), ("factor", [2.0]), ("attention_factor", [0.7])):
                if key not in held:
                    yield from (([*path, key], other) for other in others)

    seen: list[tuple[list[str], Json]] = []
    for change in walk([], config, defaults):
        if change not in seen:
            seen.append(change)
            yield change


def changed(config: Json, path: list[str], value: Json) -> Json:
    result = copy.deepcopy(config)
    place = result
    for key in path[:-1]:
        place = place[key]
    if value is ABSENT:
        place.pop(path[-1], None)
    else:
        place[path[-1]] = value
    return result


def rows(shape: torch.Size) -> torch.Tensor:
    """What a norm reads: so small that its eps matters, the same for every execution and position by number."""
    if len(shape) == 3 and shape[1] == 1 < shape[0]:  # positions before the batch (XLNet)
        return rows(torch.Size((1, shape[0], shape[2]))).transpose(0, 1)
    entries = torch.arange(shape[-2] * shape[-1], dtype=torch.float64)
    return (0.02 * torch.sin(0.7 * entries + 0.2)).float().reshape(shape[-2:]).expand(shape).clone()


class Observed:
    """One run with the inputs of the outer norms replaced, and one as it is."""

    def __init__(self, case: Case, truth: Json, model: torch.nn.Module):
        inner = {name for entry in truth["attention"] for side in ("query", "key") for name in entry[side]["norms"]}
        norms = {norm["module"]: norm for norm in truth["norms"] if norm["axes"] == "last" and norm["module"]}
        self.norms: dict[str, float] = {}
        inputs = tensors(case.inputs)[0]

        def force(module: Any, args: Any, kwargs: Any) -> Any:
            if args:
                return (rows(args[0].shape), *args[1:]), kwargs
            return args, dict(kwargs, hidden_states=rows(kwargs["hidden_states"].shape))

        def keep(name: str) -> Any:
            def hook(_module: Any, _args: Any, output: torch.Tensor) -> None:
                self.norms.setdefault(str(norms[name]["gain"] or name + ".").rpartition(".")[0], float(output.reshape(-1)[0]))
            return hook

        handles = []
        for name, norm in norms.items():
            if name in inner or norm["groups"] != 1 or "Gated" in norm["class"]:
                continue
            module = model.get_submodule(name)
            handles += [module.register_forward_pre_hook(force, with_kwargs=True), module.register_forward_hook(keep(name))]
        with torch.no_grad(), Scores() as collected:
            output = model(**inputs, **case.options)
        for handle in handles:
            handle.remove()
        self.scores = self._scores(truth, collected.found)
        first = output[case.outputs[0]]
        self.last = first.shape[-2] - 1
        self.logits = first.reshape(-1, first.shape[-1])[-1, :4].tolist()
        with torch.no_grad():
            self.outputs = [model(**inputs, **case.options)[name] for name in case.outputs]

    @staticmethod
    def _scores(truth: Json, found: list[torch.Tensor]) -> dict[str, list[float | None]]:
        usable = [one for one in found if one.ndim == 4]
        entries = [entry for entry in truth["attention"] if entry["windows"] == 1]
        if len(usable) != len(entries):
            return {}
        names = [str(entry["query"]["maps"][0]["weight"]) if entry["query"]["maps"] else "" for entry in entries]
        kept: dict[str, list[float | None]] = {}
        differing: set[str] = set()
        for name, entry, one in zip(names, entries, usable):
            if not name or entry["query"]["reads"] != entry["key"]["reads"]:
                continue
            last = one[0, -1, -2, : -1 if entry["sinks"] else None].tolist()
            found = [None if score <= -1e4 else score for score in last]
            if kept.setdefault(name, found) != found:  # several passes through the same weights
                differing.add(name)
        return {name: scores for name, scores in kept.items() if name not in differing}


def number(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.5g}")


def differs(a: Json, b: Json) -> bool:
    if a is None or b is None:
        return a is not b
    if isinstance(a, list):
        return len(a) != len(b) or any(differs(x, y) for x, y in zip(a, b))
    if isinstance(a, dict):
        return a.keys() != b.keys() or any(differs(a[key], b[key]) for key in a)
    return abs(a - b) > 1e-5 * (abs(a) + abs(b)) + 1e-7


def rounded(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    return [number(inner) for inner in value] if isinstance(value, list) else number(value)


def decoded(value: Json) -> Json:
    """A copy with infinities as configurations store them, {"__float__": "Infinity"}, as numbers."""
    if isinstance(value, dict):
        return float(value["__float__"]) if "__float__" in value else {key: decoded(inner) for key, inner in value.items()}
    return [decoded(inner) for inner in value] if isinstance(value, list) else value


def run(case: Case, truth: Json, config: Json, weights: dict[str, torch.Tensor] | None) -> Observed:
    model_class = getattr(transformers, case.model)
    read = model_class.config_class.from_dict(decoded(config))
    model = model_class._from_config(read, attn_implementation=case.attention, dtype=torch.float32)
    model.load_state_dict(weights)
    for module in model.modules():
        if hasattr(module, "config"):
            module.config.use_cache = False
    return Observed(case, truth, eager_experts(model.eval()))


def observe(case: Case, folder: Path) -> Json:
    config = json.loads((folder / "config.json").read_text())
    truth = json.loads((folder / "truth.json").read_text())
    weights = load(case, folder).state_dict()
    base = run(case, truth, config, weights)
    result: Json = {"base": {"last": base.last} | {fact: rounded(getattr(base, fact)) for fact in FACTS},
                    "same": {}, "stream": {}, "changed": []}
    for path, value in variants(case, config):
        try:
            found = run(case, truth, changed(config, path, value), weights)
        except Exception:  # noqa: BLE001: the class refuses the value, or its tensors have other shapes
            continue
        field, set_to = "/".join(path), None if value is ABSENT else value
        if different := difference(base, found):
            result["changed"].append({"field": field, "value": set_to} | different)
            continue
        equal = all(a.shape == b.shape and torch.allclose(a, b, rtol=1e-5, atol=1e-7)
                    for a, b in zip(base.outputs, found.outputs))
        result["same" if equal else "stream"].setdefault(field, []).append(set_to)
    return result


def difference(base: Observed, found: Observed) -> Json:
    """The numbers of `found` that are not those of `base`."""
    result: Json = {}
    for fact in FACTS:
        a, b = getattr(base, fact), getattr(found, fact)
        if isinstance(b, dict):
            b = {key: value for key, value in b.items() if key not in a or differs(a[key], value)}
        if b and differs(a, b):
            result[fact] = rounded(b)
    return result


def text(result: Json) -> str:
    """One change a line."""
    lines = [f' "{part}": {json.dumps(result[part])}' for part in ("base", "same", "stream")]
    entries = ",\n  ".join(json.dumps(entry) for entry in result["changed"])
    lines.append(f' "changed": [\n  {entries}]' if entries else ' "changed": []')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main() -> int:
    cases = [name for name, case in CASES.items() if isinstance(case.model, str)]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", choices=[[], *cases])
    parser.add_argument("--out", type=Path, default=fixtures.FIXTURES)
    arguments = parser.parse_args()
    prepare(silent=True)
    for name in arguments.cases or cases:
        result = observe(CASES[name], fixtures.fixture(name))
        fixtures.write(name, {"fields.json": text(result).encode()}, arguments.out)
        print(name, *(f"{part} {len(result[part])}" for part in ("same", "stream", "changed")), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

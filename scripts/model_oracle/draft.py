#!/usr/bin/env python3
"""Writes the first draft of an architecture: what a tiny model of a class shows when it runs, in the words of builder.hpp.

usage: scripts/model_oracle/draft.py MODEL_TYPE [FIELD=JSON ...]     prints the case, what fields change, and a file

The default configuration of the class is made tiny by the names of its fields (TINY); FIELD=JSON sets others. The case goes
into cases/, the file into src/models/architectures/; both are to be read, named and shortened by hand. Then make.py and
fields.py write the fixture, and table.py the rows of docs/models.md.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, Iterator

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import transformers  # noqa: E402

from model_oracle import fields  # noqa: E402
from model_oracle.cases.case import Case  # noqa: E402
from model_oracle.make import make, prepare  # noqa: E402
from model_oracle.sweep import class_of  # noqa: E402

# Sizes that differ from each other, by the name of the field; the first that matches. Fields of other names stay.
TINY: list[tuple[str, Any]] = [
    ("vocab_size|.*vocab_size", 29), ("head_dim|d_kv|.*head_dim", 6), ("num_key_value_heads|num_kv_heads", 2),
    ("(num_)?(attention_)?heads?|n_heads?|.*attention_heads", 4), ("hidden_size|d_model|n_embd|dim|emb_dim|embed_dim", 24),
    ("moe_intermediate_size|expert_.*size", 6), ("shared.*intermediate_size", 14),
    ("intermediate_size|.*ffn_dim|d_ff|n_inner|dff|hidden_dim", 20), (".*layers|n_layers?|.*hidden_layers", 2),
    ("max_position_embeddings|n_positions|.*max_positions", 32), ("num(_local|_routed)?_experts|n_routed_experts", 3),
    ("num_experts_per_tok|moe_k|top_k_experts", 2), ("n_group|topk_group|n_shared_experts|num_shared_experts", 1),
    ("first_k_dense_replace|num_dense_layers", 1), ("q_lora_rank", 10), ("kv_lora_rank", 8), ("qk_nope_head_dim", 6),
    ("qk_rope_head_dim", 4), ("v_head_dim", 5), ("sliding_window", 4), ("rms_norm_eps|layer_norm_eps.*|norm_epsilon", 3e-4),
    ("pad_token_id", 0), ("bos_token_id", 1), (".*eos_token_id", 2), ("image_size", 8), ("patch_size", 4),
]
# Inputs other than ids.
SHAPES = {"pixel_values": (1, 3, 8, 8), "input_values": (1, 60), "input_features": (1, 12, 8)}
# Fields that follow from those.
DROPPED = ("layer_types", "mlp_layer_types", "rope_parameters", "no_rope_layers", "architectures", "model_type",
           "transformers_version", "id2label", "label2id", "dtype")


def tiny(defaults: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for key, value in defaults.items():
        if key in DROPPED or value is None and not key.endswith("token_id"):
            continue
        if isinstance(value, dict) and key.endswith("config"):
            made[key] = tiny(value) | {name: value[name] for name in ("model_type",) if name in value}
            continue
        found = next((size for pattern, size in TINY if re.fullmatch(pattern, key)), None)
        if found is not None and not isinstance(value, (bool, list, dict)):
            made[key] = found
    return made


def tiny_case(model_type: str, changes: dict[str, Any]) -> Case:
    model_class = class_of(model_type)
    if model_class is None:
        raise ValueError(f"transformers {transformers.__version__} has no model of this type")
    config = tiny(model_class.config_class().to_dict()) | changes
    shape = SHAPES.get(model_class.main_input_name)
    return Case(re.sub(r"\W", "_", model_type), model_class.__name__, config,
                **({"inputs": {model_class.main_input_name: shape}} if shape else {}))


def relative(name: str) -> tuple[str, str]:
    """A tensor's or module's name within its layer, and the layer's."""
    name = re.sub(r"\.(weight|bias)(\[\d+\])?$", "", name or "")
    layer = re.match(r"(.*?\.\d+)\.(.*)", name)
    return (layer[2], layer[1]) if layer else (name, "")


class Draft:
    """The statements of a forward pass: (layer, statement), in the order of execution."""

    def __init__(self, truth: dict[str, Any]):
        self.truth, self.said, self.lines = truth, set(), []
        self.norms = {norm["module"]: norm for norm in truth["norms"]}
        self.added = {term["norm"] for entry in truth["residual_additions"] for term in entry["added"] if term["kind"] == "norm"}
        self.heads = {name: side for entry in truth["attention"] for side in ("query", "key") for name in entry[side]["norms"]}
        self.queries = {tuple(m["weight"] for m in entry["query"]["maps"]): entry for entry in truth["attention"]}
        for norm in truth["norms"]:
            for term in norm["reads"][0]:
                self.term(term)
            self.norm(norm)
        for entry in truth["residual_additions"]:
            for term in entry["added"]:
                self.term(term)

    def say(self, name: str, text: str, mark: Any = None) -> None:
        if (mark or (name, text)) in self.said:
            return
        self.said.add(mark or (name, text))
        short, layer = relative(name)
        self.lines.append((layer, text.format(f'"{short}"') if name else text))

    def term(self, term: dict[str, Any]) -> None:
        if "factor" in term:
            self.say("", f"// a factor of {term['factor']} on {term.get('weights') or term.get('tensor')}")
        if term["kind"] == "embedding":
            self.say(term["tensor"], 'b.embedding("token embedding", {});')
        elif term["kind"] == "parameter":
            self.say(term["tensor"], 'b.embedding("position embedding", {});')
        elif term["kind"] == "linear":
            for weight in term["weights"]:
                if not any(norm["reads"][0] == [term] for norm in self.norms.values()):
                    self.say(weight, 'b.writes("out", {});')
        elif term["kind"] == "op":
            for name in term.get("from", []):
                if not name.startswith("norm "):
                    self.say(name, f'// {term["op"]} of {{}} is added')

    def norm(self, norm: dict[str, Any]) -> None:
        name = (norm["gain"] or norm["module"] + ".weight")
        if side := self.heads.get(norm["module"]):
            return self.say(name, f'b.norm_of_heads({{}}, "{side} norm", "{side}");')
        word = "norm_of_branch" if norm["module"] in self.added else "norm"
        if word == "norm" and norm["reads"][0] and norm["reads"][0][0]["kind"] in ("linear", "op") and len(norm["reads"][0]) == 1:
            word = "norm_inside"
        end = ', 0' if word == "norm_inside" else ""
        gated = ", gated" if norm.get("gated") else ""
        self.say(name, f'b.{word}({{}}, "input"{end});  // {norm["kind"]}, eps {norm["eps"]:g}, gain + {norm["gain_offset"]:g}{gated}')
        readers = [reader for reader in norm["readers"] if reader["op"] == "linear"]
        for reader in readers:
            entry = self.queries.get((reader["weight"],))
            parts = "query", "key", "value"
            maps = [relative(m["weight"])[0] for side in parts[:2] for m in (entry or {}).get(side, {"maps": []})["maps"]]
            if entry and len(set(maps)) == 2:
                value = next((relative(r["weight"])[0] for r in readers if re.search(r"v_|value|\.v\.", r["weight"])), "?")
                self.say(reader["weight"], f'b.attention({{}}, "{maps[1]}", "{value}");')
            elif entry:
                self.say(reader["weight"], 'b.fused_attention({});')
            elif not re.search(r"(k_|v_|key|value)[^.]*\.weight", reader["weight"] or ""):
                self.say(reader["weight"] or "?", 'b.reads("in", {});')
        for reader in norm["readers"]:
            if reader["op"] not in ("linear", "norm", "position table"):
                self.lines.append((relative(name)[1], f"// read by {reader['op']} in {reader.get('module')}"))

    def body(self) -> Iterator[str]:
        groups: dict[str, list[str]] = {}
        for layer, text in self.lines:
            groups.setdefault(layer, []).append(text)
        seen: dict[tuple[str, ...], str] = {}
        for layer, texts in groups.items():
            same = seen.setdefault(tuple(texts), layer)
            if not layer:
                yield from (f"  {text}" for text in texts)
            elif same == layer:
                pattern = re.sub(r"\.\d+$", ".{}.", layer).removeprefix("model.")
                yield f'  b.each_layer("{pattern}", [&] {{  // as {layer}'
                yield from (f"    {text}" for text in texts)
                yield "  });"
            else:
                yield f"  // {layer} is as {same}"
        output = next(iter(self.truth["outputs"].values()))
        if output.get("maps"):
            yield f'  b.unembedding({{"{relative(output["maps"][0]["weight"])[0]}"}}, false);  // then {output["operations"]}'


def file(model_type: str, title: str, draft: Draft, config: dict[str, Any]) -> str:
    norms = draft.truth["norms"]
    eps = next((key for key, value in config.items() if norms and value == norms[0]["eps"]), "")
    body = "\n".join(draft.body())
    signature = sorted({re.sub(r"\.\d+\.", ".{}.", norm["gain"].removeprefix("model.").rpartition(".")[0] + ".")
                        for norm in norms if norm["gain"]}, key=lambda name: "{}" not in name)[:3]
    return f'''#include "architecture.hpp"
#include "blocks.hpp"
#include "builder.hpp"

namespace normscope::models::architectures {{

namespace {{

void {model_type}_forward(Builder& b) {{
  b.norms({{.kind = NormKind::{norms[0]["kind"] if norms else "layer"}, .placement = Placement::pre, .eps_key = "{eps}"}});
{body}
}}

}}  // namespace

extern const Architecture {model_type} = {{
    .name = "{model_type}",
    .title = "{title}",
    .model_types = {{"{model_type}"}},
    .signature = {{{", ".join(f'"{name}"' for name in signature)}}},
    .without = {{}},
    .describe = {model_type}_forward,
}};

}}  // namespace normscope::models::architectures
'''


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__.partition("\n\n")[2], end="", file=sys.stderr)
        return 2
    prepare(silent=True)
    model_type, *changes = sys.argv[1:]
    try:
        case = tiny_case(model_type, {key: json.loads(value) for key, _, value in (one.partition("=") for one in changes)})
    except ValueError as error:
        print(f"{model_type}: {error}", file=sys.stderr)
        return 3
    name, config = case.name, case.config
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / name
        make(case, folder)
        truth = json.loads((folder / "truth.json").read_text())
        print(f'    Case("{name}", "{case.model}", {config}),\n')
        for entry in fields.observe(case, folder)["changed"]:
            print(f'// {entry["field"]} = {json.dumps(entry["value"])} changes {", ".join(k for k in entry if k not in ("field", "value"))}')
        for entry in truth["attention"][:2]:
            print(f'// {entry["module"]}: {entry["heads"]} heads, scale {entry["scale"]}, cap {entry["soft_cap"]}, sees {entry["visible"]}, '
                  f'window {entry["window"]}, rotary {entry["query"]["position_table"]}, {entry["score_operations"]}')
        if missed := truth.get("other_normalizing_operations"):
            print(f"// normalizes outside any norm: {missed}")
        print("\n" + file(name, case.model.partition("For")[0], Draft(truth), config))
    return 0


if __name__ == "__main__":
    sys.exit(main())

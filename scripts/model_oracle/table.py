#!/usr/bin/env python3
"""Writes docs/models.md: what is supported of which family, from tests/models/supports.json, which the test `Supports` keeps
true, and the table of the tiny models that descriptions are compared with. --check only compares."""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from model_oracle.fixtures import cases, read  # noqa: E402

PAGE = ROOT / "docs/models.md"
HEAD = """# Models

Each row is a model of a few kilobytes with random weights, built with transformers or PyTorch by
[scripts/model_oracle](../scripts/model_oracle/README.md) and run once to observe its norms, what reads and writes
them, attention scores and logits. The test `Oracle.DescribesWhatRunningTheModelShows` compares the description of its
file with these observations. "Described: yes" means that all of them agree, and that heads and logits are called "not
modelled" exactly where the model changes them in a way that the bounds do not cover; "not yet" means that norms are found
by name and shape alone. For torch.nn's stacks (`torch_*`) only the stack itself is described: what surrounds it is a
model's own code, and without `norm_first` in a configuration its heads get no bounds. `scripts/model_oracle/table.py`
writes this page.

## What is supported

One row is one architecture of `src/models/architectures`, as its fixtures below are described. "In part": of some norms or
heads, or of some of these models; a report names the rest and why.

| column | a model of this family gets |
|---|---|
| wiring | the readers and writers of every norm, in the order of the forward pass, so `rewrite` can fold |
| heads | bounds of attention scores (`heads`) |
| vocabulary | bounds of logits (`reach`) |
| ranges | the range of every number computed behind a norm (`ranges`) |
| centre, rotate | `rewrite` of the stream |
| run | `trace`, `attribute`, and a witness of `compare` |
| GGUF, Lens | the same description of a file in the names of llama.cpp or TransformerLens |

@MATRIX@

## Fields of configurations

A class may store a field without using it, or use it elsewhere: Gemma 3 keeps `attn_logit_softcapping` and applies no cap.
[fields.py](../scripts/model_oracle/README.md#fields-of-configurations) therefore changes each field of the configuration, and
fields of other classes and older versions, with the same weights, and records in `fields.json`, in the archives of most
classes of transformers, which norms, scores and logits the running model changes. The test `FieldsOracle` computes the
same numbers from the description of each changed file. Where versions of transformers differ, or other programs use
what transformers ignores, heads are called "not modelled": a rotary base beside another one in `rope_scaling`,
`partial_rotary_factor` of a class that rotates whole heads.

## Attacks

[attack.py](../scripts/model_oracle/README.md#attacking-bounds) searches for inputs that exceed the bounds printed for these
models, by gradient ascent on the running model. It was run on afmoe, aimv2, albert, arcee, bart, biogpt, bitnet, bloom,
camembert, chinese_clip_vision, clip, cohere2, convbert, ctrl, cwm, data2vec_audio, deepseek_v2, diffllama, electra,
ernie, ernie4_5, falcon_alibi, falcon_h1, falcon_h1_gated, falcon_h1_norm, flex_olmo, fnet, funnel, gemma2, gemma3n,
gemma4, gemma4_moe, glm4v, glm_ocr, gpt2, gpt_neox, gpt_neox_japanese, gpt_oss, granite, granitemoe, granitemoehybrid,
granitemoehybrid_dense, granitemoeshared, helium, jais2, jetmoe, lfm2, lfm2_moe, llama, llama4, llama_biased,
longcat_flash, longt5, longt5_global, lucidrains_gpt, lucidrains_vit, mamba2, marian, mbart, megatron_bert, metaclip_2,
minimax, minimax_m2, ministral3, mistral, mllama_text, mobilebert, modernbert, modernbert_decoder, moonshine, moshi,
mpt, nanochat, nanogpt, nemotron_h, nemotron_h_latent, olmo2, olmo_hybrid, open_clip, parakeet_ctc, perceiver,
prophetnet, qwen2_5_vl, qwen2_vl, qwen3, qwen3_5, qwen3_5_moe, qwen3_next, qwen3_vl, qwen3_vl_moe, reformer, rembert,
roberta_prelayernorm, segformer, siglip2_vision, siglip_vision, smolvlm_vision, speecht5, swinv2, t5, t5gemma, timesfm,
vaultgemma, vit, vit_mae, wavlm, whisper, xglm, xlm, xlm_roberta, xlm_roberta_xl, xlnet, xlstm, zamba, zamba2 and
zamba2_plain: no bound of `heads`, `reach` or `ranges` was exceeded.

## Other models

A model of any other architecture is "unknown": its norms are found by name and shape, listed in the order of their
names, and not followed through depth; a note says for each what of kind, eps and offset is assumed and why. Names of
PyTorch, Keras, TensorFlow, Flax and Haiku are known, `a_2` and `b_2` of the Annotated Transformer, stacks of gains by
layer or head (`query_norm//scale` of shape (layers, width)), a place in a `Sequential` between linear maps (`net.1`)
and `bn1` without running statistics; other vectors that may be gains are listed if no norm is found. An ONNX graph
states its norms and their order itself, and names do not replace that: a norm is described only if each of its
operators, with every attribute and the shapes of its constants, is understood, and a map that reads it only if it is y
= W x + b (a `Gemm` with another alpha or beta is not). What is not understood is named in a note, with the tensors
whose names suggest norms, and nothing is computed of it; that an ONNX file is of a known architecture is for the user
to state (`--arch`). GroupNorms of diffusion models have the `norm_num_groups` of the configuration. Normalization that
is not analysed is counted: "33 BatchNorm".

A model whose tensors are named as those of a known architecture, but whose `model_type` is not one of it, is unknown too:
the order of its norms, their kind, eps and offset are those of that architecture, as a guess, and nothing is said of what
reads them, of heads and of logits unless `--arch` states the architecture.

`python -m normscope convert` keeps the configuration of a Keras model, which states kind, eps and axis of the norms; which
layers read them is not taken from it. Of a TensorFlow Lite file it takes the constants and not the graph: norms are found
by their names, and their kind and eps are assumed.

@SWEEP@

## Models that descriptions were compared with

"GGUF: yes" means that the fixture was converted by llama.cpp's converter or as it does, and that the description of that
file is the same, but for what the converter drops (the tests `GgufModel`).

| fixture | class | norms | kinds | heads | described | GGUF |
|---|---|---|---|---|---|---|
"""


COLUMNS = {"wiring": "wiring", "heads": "heads", "vocabulary": "vocabulary", "ranges": "ranges", "centre": "centre",
           "rotate": "rotate", "run": "run", "GGUF": "llama.cpp", "Lens": "TransformerLens"}


def together(values: list[Any]) -> str:
    """One word for the models of a family."""
    words = {"yes" if value is True else value for value in values if value not in ("", False)}
    if not words:
        return ""
    if len(words) > 1 or any(value is False for value in values):
        return "in part"
    return words.pop()


def matrix() -> str:
    families: dict[str, list[dict[str, Any]]] = {}
    for one in json.loads((ROOT / "tests/models/supports.json").read_text()).values():
        families.setdefault(one["architecture"], []).append(one)
    lines = ["| family | model types | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 2) + "|"]
    for name, models in sorted(families.items(), key=lambda item: str(item[1][0]["title"]).lower()):
        source = (ROOT / f"src/models/architectures/{name}.cpp").read_text()
        stated = re.search(r"\.model_types = \{(.*?)\},\n", source, re.DOTALL)
        types = ", ".join(re.findall(r'"([^"]+)"', stated[1])) if stated else ""
        cells = [together([model[key] for model in models]) for key in COLUMNS.values()]
        lines.append(f"| {models[0]['title']} | {types} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def sweep() -> str:
    """The section about every class of transformers, from what sweep.py kept."""
    kept = json.loads((ROOT / "tests/models/sweep.json").read_text())
    types = kept["types"]
    counts = Counter(row["state"] for row in types.values())
    ran = sorted(name for name in types if "seconds" in types[name])
    largest = sorted((name for name in types if "bytes" in types[name]), key=lambda name: -types[name]["bytes"])
    shown = [name for name in largest if types[name]["state"] == "described"][:12]
    lines = ["| " + " | ".join((name, row["class"], f"{row['bytes'] / 1e9:.1f}", f"{row['tensors']:,}", f"{row['norms']:,}",
                                f"{row['seconds']:.1f}" if "seconds" in row else "", str(row.get("mib", "")))) + " |"
             for name, row in ((name, types[name]) for name in shown)]
    words = {"described": "described", "incomplete": "described but for tensors that the file lacks",
             "fitted": "unknown, with the names of a known one", "unknown": "unknown", "no class": "without a class of their own",
             "not built": "whose class refuses its defaults or needs another package", "failed": "failed"}
    stated = "; ".join(f"{counts[state]} {text}" for state, text in words.items())
    slowest, biggest = (max(ran, key=lambda name: types[name][key]) for key in ("seconds", "mib"))
    median = sorted(types[name]["seconds"] for name in ran)[len(ran) // 2]
    return f"""## Every class of transformers

[sweep.py](../scripts/model_oracle/README.md#sweep) describes every class of transformers {kept["transformers"]} at the widths of its
default configuration, from a sparse file as `save_pretrained` would write it. Of {len(types)} types: {stated}. The largest file
has {types[largest[0]]["bytes"] / 1e9:,.0f} GB and {types[largest[0]]["tensors"]:,} tensors ({largest[0]}).

`report --budget 1` was run on {len(ran)} of them, by builds without full optimization, on a processor that others
used too: processor time and memory, no time of a clock. The median is {median:.1f} s; the most are {types[slowest]["seconds"]:.1f} s ({slowest})
and {types[biggest]["mib"]} MiB ({biggest}). What did not fit into the budget is listed by each page. The largest that are described:

| type | class | GB of the file | tensors | norms | seconds | MiB |
|---|---|---|---|---|---|---|
""" + "\n".join(lines)


def page() -> str:
    text = (ROOT / "tests/models/oracle_test.cpp").read_text()
    listed = re.search(r"not_described = \{(.*?)\};", text, re.DOTALL)
    missing = set(re.findall(r'"([^"]+)"', listed.group(1))) if listed else set()
    rows = []
    for files in map(read, cases()):
        if "truth.json" not in files:
            continue
        truth = json.loads(files["truth.json"])
        kinds = ", ".join(sorted({norm["kind"] for norm in truth["norms"]}))
        heads = sum(attention["heads"] for attention in truth["attention"])
        described = "not yet" if truth["case"] in missing else "yes"
        gguf = "yes" if (ROOT / f"tests/models/gguf/{truth['case']}.gguf").exists() else ""
        rows.append(f"| {truth['case']} | {truth['class'] or '-'} | {len(truth['norms'])} | {kinds} | {heads} | {described} | {gguf} |")
    count = sum("| yes | " in row for row in rows)
    return HEAD.replace("@MATRIX@", matrix()).replace("@SWEEP@", sweep()) + "\n".join(rows) + f"\n\n{count} of {len(rows)} are described.\n"


def main() -> int:
    if "--check" in sys.argv[1:]:
        if PAGE.read_text() == page():
            return 0
        print(f"{PAGE} is not what the fixtures say: run scripts/model_oracle/table.py", file=sys.stderr)
        return 1
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())

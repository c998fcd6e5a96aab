#!/usr/bin/env python3
"""Writes docs/rewrite.md's table: every fixture rewritten by normscope, and its outputs in transformers before and after.

usage: scripts/model_oracle/rewrite.py [--command PATH] [--check] [CASE ...]

Every case of tests/models/fixtures is rewritten in four ways: gains folded, the residual stream centred, both, and gains
folded and the stream rotated, with --untie where the head is the token embedding. Original and rewritten checkpoint are loaded by the same class and run in
float64 on the same input, so that what differs is the rounding of the stored weights alone. A centred model is run a
second time with every LayerNorm of its stream replaced by an RMSNorm of the same eps, gain and bias. --check fails if a
rewritten model does not load or differs by more than the rounding of float32 allows; it writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import torch  # noqa: E402
import transformers  # noqa: E402

from model_oracle.cases import CASES  # noqa: E402
from model_oracle.cases.case import Case, tensors  # noqa: E402
from model_oracle.fixtures import fixture  # noqa: E402
from model_oracle.make import load, picked, prepare  # noqa: E402

PAGE = ROOT / "docs/rewrite.md"
BEGIN, END = "<!-- scripts/model_oracle/rewrite.py -->", "<!-- end -->"
# Trained models by others, if they are there.
CHECKPOINTS = Path(os.environ.get("NORMSCOPE_DATA", ROOT.parent / "shared/data")) / "checkpoints"
WAYS = {"gains folded": ("--fold", "gains"), "stream centred": ("--center",), "both": ("--fold", "gains", "--center"),
        "gains folded, stream rotated": ("--fold", "gains", "--rotate", "random:7")}
NEEDS_UNTYING = "needs --untie"
LARGEST = 3e-5  # relative to the largest output; weights of float32 are rounded once, and pass a few layers


class Rms(torch.nn.Module):
    """An RMSNorm with the parameters of a LayerNorm."""

    def __init__(self, norm: torch.nn.Module, eps: float, offset: float):
        super().__init__()
        self.norm, self.eps, self.offset = norm, eps, offset

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        weight, bias = getattr(self.norm, "weight", None), getattr(self.norm, "bias", None)
        y = y if weight is None else y * (weight + self.offset)
        return y if bias is None else y + bias


def llama_of_transformers(source: Path, folder: Path) -> Path:
    """stories260K, whose tensors have the names of llama2.c, as transformers saves a Llama."""
    from safetensors.torch import load_file

    if not source.exists():
        return source
    w = load_file(source)
    config = transformers.LlamaConfig(vocab_size=512, hidden_size=64, intermediate_size=172, num_hidden_layers=5, num_attention_heads=8,
                                      num_key_value_heads=4, rms_norm_eps=1e-5, max_position_embeddings=512, tie_word_embeddings=True)
    model = transformers.LlamaForCausalLM(config)
    state = {"model.embed_tokens.weight": w["tok_emb"], "model.norm.weight": w["rms_final"], "lm_head.weight": w["tok_emb"]}
    # llama2.c turns neighbouring features of a head, transformers those that are half a head apart.
    apart = lambda rows: rows.reshape(-1, 4, 2, 64).transpose(1, 2).reshape(-1, 64)
    for layer in range(config.num_hidden_layers):
        at = f"model.layers.{layer}."
        state |= {at + "input_layernorm.weight": w["rms_att"][layer], at + "post_attention_layernorm.weight": w["rms_ffn"][layer],
                  at + "self_attn.q_proj.weight": apart(w["wq"][layer]), at + "self_attn.k_proj.weight": apart(w["wk"][layer].reshape(32, 64)),
                  at + "self_attn.v_proj.weight": w["wv"][layer].reshape(32, 64), at + "self_attn.o_proj.weight": w["wo"][layer],
                  at + "mlp.gate_proj.weight": w["w1"][layer], at + "mlp.down_proj.weight": w["w2"][layer],
                  at + "mlp.up_proj.weight": w["w3"][layer]}
    model.load_state_dict(state)
    model.save_pretrained(folder)
    return folder


def trained(scratch: Path) -> dict[str, tuple[Case, Path]]:
    """Trained models, by folder."""
    return {"wordlist_gpt": (Case("wordlist_gpt (trained)", "GPT2LMHeadModel", inputs={"input_ids": 10}), ROOT / "models/wordlist_gpt"),
            "stories260K": (Case("stories260K (trained)", "LlamaForCausalLM", inputs={"input_ids": 10}),
                            llama_of_transformers(CHECKPOINTS / "llama2c_stories260K.safetensors", scratch / "stories260K"))}


def run(case: Case, model: torch.nn.Module) -> dict[str, torch.Tensor]:
    inputs, _ = tensors(case.inputs)
    inputs = {k: v.double() if isinstance(v, torch.Tensor) and v.is_floating_point() else v for k, v in inputs.items()}
    with torch.no_grad():
        return picked(model.double()(**inputs, **case.options), case.outputs)


def without_means(model: torch.nn.Module, document: dict[str, Any], truth: Path) -> None:
    """Replaces the LayerNorms of centred streams."""
    names = {name for stream in document["streams"] if stream["centered"] for name in stream["norms"]}
    norms = json.loads(truth.read_text())["norms"] if truth.exists() else []
    paths = {str(norm["gain"]).rpartition(".")[0]: norm["module"] for norm in norms if norm["gain"]}
    for norm in document["norms"]:
        if norm["name"] in names:
            path = paths.get(norm["name"], norm["name"])
            parent, _, last = path.rpartition(".")
            setattr(model.get_submodule(parent), last, Rms(model.get_submodule(path), norm["eps"], norm["gain_offset"]))


def difference(new: dict[str, torch.Tensor], old: dict[str, torch.Tensor]) -> float:
    return max(float((new[k] - old[k]).abs().max() / old[k].abs().max()) for k in old)


REASONS: list[str] = []


def refused(message: str) -> str:
    """A letter for the reason, without the names of norms and tensors."""
    message = re.sub(r"^(no gain can be folded|cannot be centred|cannot be rotated) exactly: ", "", message)
    message = re.sub(r'"?\w+(\.\w+)*\.[A-Za-z_]\w*"?', "a norm", message)
    message = re.sub(r'model_type "\w+"; .*', "its model_type", message)
    if message not in REASONS:
        REASONS.append(message)
    return f"refused ({chr(ord('a') + REASONS.index(message))})"


def rewritten(case: Case, source: Path, command: Path, options: tuple[str, ...], old: dict[str, torch.Tensor],
              folder: Path) -> str:
    """A cell of the table."""
    done = subprocess.run([command, "rewrite", source, "-o", folder, "-q", *options], capture_output=True, text=True)
    if done.returncode == 3:
        message = done.stderr.strip().removeprefix(f"normscope: rewrite: {source}: ")
        tied = "untying gives" in message or "cannot be untied" in message
        return NEEDS_UNTYING if tied else refused(message)
    if done.returncode:
        raise ValueError(done.stderr)
    document = json.loads((folder / "rewrite.json").read_text())
    folds = [norm["fold"] for norm in document["norms"]]
    text = []
    if document["fold_gains"]:
        text.append(f"{sum('gain' in fold for fold in folds)} of {len(folds)} norms")
    worst = difference(run(case, load(case, folder)), old)
    text.append(f"{worst:.1e}")
    if any(stream["centered"] for stream in document["streams"]):
        model = load(case, folder)
        without_means(model, document, source / "truth.json")
        worst = max(worst, centred := difference(run(case, model), old))
        text.append(f"as RMSNorm {centred:.1e}")
    if not worst < LARGEST:
        text.append("DIFFERS")
    return ", ".join(text)


def row(case: Case, source: Path, command: Path) -> list[str]:
    cells = []
    old = run(case, load(case, source))
    tied = json.loads(subprocess.run([command, "rewrite", source, "--dry-run", "--untie", "--json", "-"],
                                     capture_output=True, text=True).stdout or "{}")
    for options in WAYS.values():
        with tempfile.TemporaryDirectory() as scratch:
            cell = rewritten(case, source, command, options, old, Path(scratch) / "out")
            if tied:
                again = rewritten(case, source, command, (*options, "--untie"), old, Path(scratch) / "untied")
                if again != cell:
                    cell = f"untied: {again}" if cell == NEEDS_UNTYING else f"{cell}; untied: {again}"
        cells.append("refused (tied)" if cell == NEEDS_UNTYING else cell)
    return cells


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--command", type=Path, default=ROOT / "build/bin/normscope")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    prepare()
    lines, wrong = [], 0
    scratch = tempfile.TemporaryDirectory()
    known = {name: (case, fixture(name)) for name, case in CASES.items()} | trained(Path(scratch.name))
    for name in arguments.cases or known:
        if not known[name][1].exists():
            print(f"{name}: absent: {known[name][1]}", file=sys.stderr)
            continue
        try:
            cells = row(*known[name], arguments.command)
        except Exception as error:  # noqa: BLE001: the other cases are still tried
            cells = [f"FAILED {type(error).__name__}: {error}"[:300].replace("\n", " ")]
        wrong += any("DIFFERS" in cell or "FAILED" in cell for cell in cells)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    if not arguments.check and not arguments.cases:
        head = (f"transformers {transformers.__version__}, torch {torch.__version__.split('+')[0]}; differences are "
                f"relative to the largest output.\n\n| fixture | {' | '.join(WAYS)} |\n|---|{'---|' * len(WAYS)}\n")
        reasons = "".join(f"({chr(ord('a') + i)}) {reason}.\n" for i, reason in enumerate(REASONS)).replace(".\n(", ";\n(")
        page = PAGE.read_text()
        before, after = page.index(BEGIN) + len(BEGIN), page.index(END)
        PAGE.write_text(page[:before] + "\n" + head + "\n".join(lines) + "\n\n" + reasons + page[after:])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

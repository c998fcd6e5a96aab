#!/usr/bin/env python3
"""Writes the table of docs/compare.md: what `normscope compare` says of conversions that are exact and of faults that are not.

usage: python3 scripts/compare_table [--command PATH] [--check] [--confirm] [--column NAME] [CASE ...]

Each row is a fixture of the model oracle, each column a change of it (conversions.py, faults.py, and `normscope rewrite`).
A cell is wrong if an exact conversion is called different, or a fault the same or equivalent; then the exit status is 1 and
nothing is written. --check compares the rows of CASEs with those of the page. --confirm runs both checkpoints in transformers
(scripts/model_oracle/requirements.txt): logits of conversions must agree, those of a witness must be the ones that were printed.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import numpy as np

from checkpoints import ROOT, Checkpoint, load
from conversions import CONVERSIONS
from faults import FAULTS

CASES = ("llama llama_biased mistral ministral qwen2 qwen3 gemma gemma2 gemma3 phi phi3 gpt2 gpt_neox gptj gpt_neo codegen falcon_7b falcon_40b "
         "bloom mpt opt stablelm starcoder2 cohere cohere2 granite olmo olmo2 glm4 nemotron smollm3 exaone4 persimmon arcee seed_oss mixtral "
         "qwen2_moe qwen3_moe olmoe granitemoe gpt_oss bert roberta distilbert t5").split()
REWRITES = {"fold": ("--fold", "gains"), "centre": ("--center",), "rotate": ("--fold", "gains", "--rotate", "random:7")}
DTYPES = {"BF16": "BF16", "F16": "F16"}
PAGE = ROOT / "docs/compare.md"
BEGIN, END = "<!-- scripts/compare_table -->", "<!-- end of scripts/compare_table -->"
PROVED = ("same", "equivalent", "equivalent up to quantization")
NONE = "–"


class Table:
    def __init__(self, command: Path, scratch: Path):
        self.command, self.scratch, self.number = command, scratch, 0

    def folder(self) -> Path:
        self.number += 1
        return self.scratch / str(self.number)

    def compare(self, old: Path, new: Path, *options: str) -> dict:
        done = subprocess.run([self.command, "compare", old, new, "--json", "-", *options], capture_output=True, text=True)
        if done.returncode:
            return {"agreement": "refused", "not_compared": [done.stderr.strip().removeprefix("normscope: compare: ")]}
        return json.loads(done.stdout)

    def rewritten(self, old: Path, options: tuple[str, ...]) -> Path | None:
        """What `rewrite` makes, with --untie where that is needed."""
        for more in ((), ("--untie",)):
            folder = self.folder()
            done = subprocess.run([self.command, "rewrite", old, "-o", folder, "-q", *options, *more], capture_output=True, text=True)
            if done.returncode == 0:
                return folder
        return None

    def made(self, model: Checkpoint, old: Path) -> dict[str, Path | None]:
        """Each changed checkpoint by the column's name."""
        random = lambda name: np.random.default_rng([46, zlib.crc32(f"{model.name} {name}".encode())])
        made = {name: (lambda options=options: self.rewritten(old, options)) for name, options in REWRITES.items()}
        made |= {name: (lambda name=name, change=change: self.written(change(model.copy(), random(name)))) for name, change in CONVERSIONS.items()}
        made |= {name: (lambda dtype=dtype: model.write(self.folder(), dtype)) for name, dtype in DTYPES.items()}
        made |= {name: (lambda change=change: self.written(change(model.copy()))) for name, change in FAULTS.items()}
        return made

    def written(self, model: Checkpoint | None) -> Path | None:
        return model and model.write(self.folder())


def cell(document: dict, fault: bool) -> str:
    """A cell's text; WRONG is not allowed."""
    agreement = document["agreement"]
    if agreement in PROVED:
        return "WRONG: " + agreement if fault else {"same": "same", "equivalent": "="}.get(agreement, "=q")
    if agreement == "different":
        text = "≠" if document.get("witness") else "≠ (no witness)"
        return text if fault else "WRONG: " + "; ".join(f["text"] for f in document["findings"])[:300]
    reasons = [document["no_witness"]] if fault and document.get("no_witness") else document["not_compared"]
    return "? " + "; ".join(reasons or [f["text"] for f in document["findings"]])[:300]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--command", type=Path, default=ROOT / "build/bin/normscope")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--confirm", action="store_true")
    parser.add_argument("--column", action="append")
    arguments = parser.parse_args()
    if arguments.confirm:
        import confirm
    wrong = witnesses = 0
    with tempfile.TemporaryDirectory() as scratch:
        table = Table(arguments.command.resolve(), Path(scratch))
        for case in arguments.cases or CASES:
            model = load(case)
            old = model.write(table.folder())
            running = arguments.confirm and confirm.Running(case, old)
            for column, make in table.made(model, old).items():
                if arguments.column and column not in arguments.column:
                    continue
                new = make()
                document = table.compare(old, new) if new else {}
                text = cell(document, column in FAULTS) if new else NONE
                if running and new and column != "TransformerLens":
                    if said := confirm.confirmed(running, new, document, column in FAULTS, column in DTYPES):
                        text = "WRONG: " + said
                    witnesses += "witness" in document
                wrong += text.startswith("WRONG")
                print(f"{case} | {column} | {text}", flush=True)
    print(f"{wrong} wrong cells, {witnesses} witnesses confirmed", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

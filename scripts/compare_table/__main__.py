#!/usr/bin/env python3
"""Writes the tables of docs/compare.md: what `normscope compare` says of conversions that are exact, and of faults.

usage: python3 scripts/compare_table [--command PATH] [--check] [CASE ...]

Each row is a fixture of the model oracle, each column a change of it (conversions.py, faults.py, gguf_files.py, and `normscope
rewrite`). A cell is wrong if an exact conversion is called different, or a fault the same or equivalent; then the exit status
is 1 and nothing is written. Each changed checkpoint is also run in transformers (scripts/model_oracle/requirements.txt): an
exact conversion must keep the logits, a fault must not, and the logits of a witness must be those that were printed. --check
leaves that out, and compares the cells of CASEs with the page.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from pathlib import Path
from typing import Callable

import numpy as np

import gguf_files
from checkpoints import ROOT, Checkpoint, fixtures, load
from conversions import CONVERSIONS
from faults import FAULTS, NEAR_MISSES

CASES = ("llama llama_biased mistral ministral qwen2 qwen3 gemma gemma2 gemma3 phi phi3 gpt2 gpt_neox gptj gpt_neo codegen falcon_7b falcon_40b "
         "bloom mpt opt stablelm starcoder2 cohere cohere2 granite olmo olmo2 glm4 nemotron smollm3 exaone4 persimmon arcee seed_oss mixtral "
         "qwen2_moe qwen3_moe olmoe granitemoe gpt_oss bert roberta distilbert t5").split()
REWRITES = {"fold": ("--fold", "gains"), "centre": ("--center",), "rotate": ("--fold", "gains", "--rotate", "random:7")}
PAGE = ROOT / "docs/compare.md"
BEGIN, END = "<!-- scripts/compare_table -->", "<!-- end of scripts/compare_table -->"
QUANTIZED = ("--tolerance", "quantization")
NONE = "–"


class Row:
    """A fixture, and what is made of it."""

    def __init__(self, case: str, command: Path, scratch: Path):
        self.model, self.command, self.scratch, self.number = load(case), command, scratch, 0
        self.old = self.model.write(self.path())
        self.stated = gguf_files.stated(self.model)
        self.wide = gguf_files.widened(self.stated)

    def path(self) -> Path:
        self.number += 1
        return self.scratch / f"{self.model.name}_{self.number}"

    def random(self, name: str) -> np.random.Generator:
        return np.random.default_rng([46, zlib.crc32(f"{self.model.name} {name}".encode())])

    def written(self, model: Checkpoint | None) -> Path | None:
        return model and model.write(self.path())

    def rewritten(self, old: Path, options: tuple[str, ...]) -> Path | None:
        """What `rewrite` makes, with --untie where that is needed."""
        for more in ((), ("--untie",)):
            folder = self.path()
            done = subprocess.run([self.command, "rewrite", old, "-o", folder, "-q", *options, *more], capture_output=True, text=True)
            if done.returncode == 0:
                return folder
        return None

    def disguised(self) -> Path:
        """Permutations and scales at once, rounded once, and then a fold and a rotation, or a fold."""
        model = self.model.copy()
        model.tensors = {name: array.astype(np.float64) for name, array in model.tensors.items()}
        for name, change in CONVERSIONS.items():
            if name not in ("untie", "TransformerLens", "mix v/o", "mix q/k"):
                model = change(model.copy(), self.random(name)) or model
        folder = model.write(self.path())
        return self.rewritten(folder, REWRITES["rotate"]) or self.rewritten(folder, REWRITES["fold"]) or folder

    def gguf(self, wide: Checkpoint | None, kind: int, spoil: bool = False) -> tuple[Path, Path] | None:
        """A checkpoint and its GGUF file."""
        path = self.path().with_suffix(".gguf")
        return gguf_files.converted(self.stated, wide, path, kind, spoil) and ((wide or self.stated).write(self.path()), path)

    def columns(self) -> dict[str, Callable[[], Path | tuple[Path, Path] | None]]:
        """What makes a changed checkpoint, or a pair of checkpoints, by the column's name."""
        model, old = self.model, self.old
        made: dict[str, Callable[[], Path | tuple[Path, Path] | None]] = {}
        for name, options in REWRITES.items():
            made[name] = lambda options=options: self.rewritten(old, options)
        for name, conversion in CONVERSIONS.items():
            made[name] = lambda name=name, conversion=conversion: self.written(conversion(model.copy(), self.random(name)))
        made["all"] = self.disguised
        for dtype in ("F16", "BF16"):
            made[dtype] = lambda dtype=dtype: model.write(self.path(), dtype)
        made["GGUF F16"] = lambda: self.gguf(None, gguf_files.F16)
        made["GGUF Q8_0"] = lambda: self.gguf(self.wide, gguf_files.Q8_0)
        for name, fault in (FAULTS | NEAR_MISSES).items():
            made[name] = lambda fault=fault: self.written(fault(model.copy()))
        made["Q8_0 block"] = lambda: self.gguf(self.wide, gguf_files.Q8_0, spoil=True)
        return made

    def compare(self, old: Path, new: Path, *options: str) -> dict:
        done = subprocess.run([self.command, "compare", old, new, "--json", "-", *options], capture_output=True, text=True)
        if done.returncode:
            return {"agreement": "refused", "not_compared": [done.stderr.strip().removeprefix("normscope: compare: ")]}
        return json.loads(done.stdout)

    def cells(self, running) -> dict[str, str]:
        result = {}
        for column, make in self.columns().items():
            made = make()
            if made is None:
                result[column] = NONE
                continue
            old, new = made if isinstance(made, tuple) else (self.old, made)
            document = self.compare(old, new, *(QUANTIZED if "Q8_0" in column else ()))
            result[column] = cell(document, is_fault(column))
            # TransformerLens' names and GGUF files are not transformers'.
            if running and old == self.old and column != "TransformerLens":
                if said := running.refutes(new, document, is_fault(column), column in ("F16", "BF16")):
                    result[column] = "WRONG: " + said
        return result


def is_fault(column: str) -> bool:
    return column in FAULTS or column in NEAR_MISSES or column == "Q8_0 block"


def cell(document: dict, fault: bool) -> str:
    agreement = document["agreement"]
    findings = "; ".join(finding["text"] for finding in document.get("findings", []))
    if agreement in ("same", "equivalent", "equivalent up to quantization"):
        return f"WRONG: {agreement}" if fault else {"same": "same", "equivalent": "="}.get(agreement, "= q")
    if agreement == "different":
        return ("≠" if document.get("witness") else "≠ s") if fault else f"WRONG: {findings}"
    # What differs beyond rounding comes before what is only another form.
    texts = sorted((finding["text"] for finding in document.get("findings", [])),
                   key=lambda text: "differs" not in text and "something else" not in text)
    none = document.get("no_witness", "")
    decides = fault or (not document["not_compared"] and none.startswith("no witness was sought"))
    reason = none if none and decides else "; ".join(document["not_compared"] or texts)
    return "? " + general(reason)


def general(reason: str) -> str:
    """The first of several reasons, without the names and numbers of one file."""
    reason = reason.rpartition("; ")[2] if "; expected one known architecture" in reason else reason.partition(";")[0]
    reason = re.sub(r'"?\b[A-Za-z_]\w*(\.\w+)*\.[A-Za-z_]\w*(\[\d+\])?"?', "a tensor", reason)
    reason = re.sub(r"(: )?by [\d.e+-]+( and [\d.e+-]+)? relative( in one row)?|: [\d.e+-]+ relative", "", reason)
    return re.sub(r"\b(layer|head) \d+", r"a \1", reason).strip()


def of_page(page: str) -> dict[str, dict[str, str]]:
    """The cells that the page has, with reasons in place of their letters."""
    text = page[page.index(BEGIN):page.index(END)]
    reasons = dict(re.findall(r"^\((\w+)\) (.*)[.;]$", text, re.MULTILINE))
    result: dict[str, dict[str, str]] = {}
    columns: list[str] = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.strip("|").split("|")]
        if line.startswith("| fixture"):
            columns = fields[1:]
        elif line.startswith("| "):
            values = [f"? {reasons[value[2:]]}" if value.startswith("? ") else value for value in fields[1:]]
            result.setdefault(fields[0], {}).update(zip(columns, values, strict=True))
    return result


def to_page(rows: dict[str, dict[str, str]], said: list[str]) -> str:
    reasons: list[str] = []

    def short(text: str) -> str:
        if not text.startswith("? "):
            return text
        if text[2:] not in reasons:
            reasons.append(text[2:])
        return f"? {letters(reasons.index(text[2:]))}"

    lines = [BEGIN]
    shown = list(next(iter(rows.values())))
    for columns in ([column for column in shown if not is_fault(column)],
                    [column for column in shown if is_fault(column) and column not in NEAR_MISSES], list(NEAR_MISSES)):
        lines += [f"| fixture | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
        lines += [f"| {case} | {' | '.join(short(cells[column]) for column in columns)} |" for case, cells in rows.items()]
        lines.append("")
    lines += [f"({letters(index)}) {reason};" for index, reason in enumerate(reasons)]
    return "\n".join([*lines, "", *said, END])


def letters(index: int) -> str:
    return chr(ord("a") + index % 26) * (1 + index // 26)


def summary(rows: dict[str, dict[str, str]]) -> str:
    counts = {fault: Counter(re.match(r"\?|= q|≠ s|\S+", text)[0] for cells in rows.values() for column, text in cells.items()
                             if is_fault(column) == fault) for fault in (False, True)}
    proved = sum(counts[False][kind] for kind in ("same", "=", "= q"))
    return (f"{len(rows)} architectures: of {counts[False].total() - counts[False][NONE]} exact conversions {proved} are proved and "
            f"{counts[False]['?']} are undecided; of {counts[True].total() - counts[True][NONE]} faults {counts[True]['≠']} have a witness, "
            f"{counts[True]['≠ s']} a structural reason, and {counts[True]['?']} are undecided. No cell is wrong.")


def copies(command: Path, scratch: Path) -> str:
    """Healthy files are accepted: every fixture that states a configuration is compared with a copy of it."""
    counts: Counter[str] = Counter()
    for case in fixtures.cases():
        files = fixtures.read(case)
        if {"config.json", "model.safetensors"} <= files.keys():
            folders = [fixtures.unpack(case, scratch / f"{case}_{side}") for side in ("old", "new")]
            done = subprocess.run([command, "compare", *folders, "--json", "-"], capture_output=True, text=True)
            counts[json.loads(done.stdout)["agreement"] if done.returncode == 0 else "refused"] += 1
    return f"Of {counts.total()} fixtures and their copies, " + ", ".join(f"{count} are {kind}" for kind, count in counts.most_common()) + "."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--command", type=Path, default=ROOT / "build/bin/normscope")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    command, rows, wrong = arguments.command.resolve(), {}, 0
    if not arguments.check:
        import confirm
    with tempfile.TemporaryDirectory() as folder:
        page = PAGE.read_text()
        before = of_page(page) if arguments.check else {}
        for case in arguments.cases or CASES:
            row = Row(case, command, Path(folder))
            rows[case] = row.cells(None if arguments.check else confirm.Running(case, row.old))
            for column, text in rows[case].items():
                known = before.get(case, {}).get(column)
                bad = text.startswith("WRONG") or (arguments.check and text != known)
                wrong += bad
                if bad or not arguments.check:
                    print(f"{case} | {column} | {text}" + (f" (the page: {known})" if arguments.check else ""), flush=True)
        said = [] if wrong or arguments.check or arguments.cases else [summary(rows), confirm.summary(), copies(command, Path(folder))]
    if said:
        PAGE.write_text(page[:page.index(BEGIN)] + to_page(rows, said) + page[page.index(END) + len(END):])
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

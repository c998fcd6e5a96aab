#!/usr/bin/env python3
"""Searches for inputs that exceed the bounds that normscope prints for a fixture, by gradient ascent on the model itself.

usage: scripts/model_oracle/attack.py [--command PATH] [--set FIELD=JSON ...] CASE ...

`heads`: the rows that enter the norm before each head are free. Ascent looks for a query and two keys with a larger
spread than `sharp_bounds`, and for a query whose spread is below `uniform_bounds` in every context that it finds.
`reach`: the input of the final norm is free. Ascent looks for a larger lead and a larger probability of every token.
`ranges`: the input of every norm is free. Ascent looks for a larger entry of its output, for an output of a linear layer
that reads it outside its range, and for a logit outside theirs.
With `--set`, fields of the configuration are changed before, as in `--set attn_logit_softcapping=2.0`.
Prints attained value / bound; exits with 1 if one is passed by more than the rounding of float32 (--rounding, relative
to the largest score or logit).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Iterable

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import torch  # noqa: E402

from model_oracle.cases import CASES  # noqa: E402
from model_oracle.cases.case import Case  # noqa: E402
from model_oracle.fixtures import FIXTURES, unpack  # noqa: E402
from model_oracle.make import load, prepare  # noqa: E402
from model_oracle.range_searches import RangeSearches  # noqa: E402
from model_oracle.searches import POSITIONS, Bounds, FreeInputs, HeadSearches, ascend, batch, fewest_positions, modules_read  # noqa: E402


def stated_heads(folder: Path) -> list[str]:
    """The number of heads as an option where no configuration states it and all attentions have as many."""
    heads = {entry["heads"] for entry in json.loads((folder / "truth.json").read_text())["attention"]}
    return ["--heads", str(heads.pop())] if len(heads) == 1 and not (folder / "config.json").exists() else []


def run_command(command: Path, what: str, folder: Path, *options: str) -> Bounds | str:
    """The JSON of a subcommand, or its message where it gives none."""
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / "result.json"
        done = subprocess.run([command, what, folder, "--json", output, "-q", "--threads", "1", *stated_heads(folder),
                               *options], capture_output=True, text=True)
        return json.loads(output.read_text()) if output.exists() else (done.stderr or done.stdout).strip()


def matching(truth: Bounds, heads: list[Bounds]) -> list[tuple[int, Bounds]]:
    """Each printed head with the attentions that it is about: those with its weights, that read its norm."""
    names = {norm["module"]: {norm["module"], str(norm["gain"]).rpartition(".")[0]} for norm in truth["norms"]}
    pairs = []
    for head in heads:
        of_weight = [i for i, entry in enumerate(truth["attention"])
                     if any(entry_map["weight"] == head["query"] for entry_map in entry["query"]["maps"])]
        of_norm = [i for i in of_weight if any(head["norm"] in names.get(module, ())
                                               for module in modules_read(truth, truth["attention"][i], "query"))]
        pairs += [(i, head) for i in of_norm or of_weight]
    return pairs


def attack_heads(case: Case, folder: Path, truth: Bounds, command: Path, rounding: float) -> bool:
    result = run_command(command, "heads", folder, "--context", str(POSITIONS))
    if isinstance(result, str):
        print(f"{case.name}: heads: {result}")
        return True
    # Learned queries read no norm: nothing bounds their heads.
    learned = [not entry["query"]["maps"] for entry in truth["attention"]]
    truth = truth | {"attention": [entry for entry in truth["attention"] if entry["query"]["maps"]]}
    pairs = [(i, head) for i, head in matching(truth, result["heads"]) if head.get("sharp_bounds")]
    if not pairs:
        print(f"{case.name}: heads: no bounds")
        return True
    searches = HeadSearches(case, folder, truth, learned)
    best, _ = searches.run(100, 1.0)
    least = None
    if any(head["uniform_bounds"][0] > 0 for _, head in pairs):
        searches.run(150, -1.0)
        _, least = searches.run(80, 0.0)
    searches.free.remove()
    slack = rounding * max(searches.largest, 1.0)
    wrong, sharp, reached, uniform = [], [], [], []
    for i, head in pairs:
        where = f"{case.name}: layer {head['layer']} head {head['head']}"
        own = searches.of_head(i, head["head"])
        attained, (proved, bound) = float(best[i, own].max()), head["sharp_bounds"]
        sharp.append(attained / bound if bound else 1.0)
        if proved > 0.0:
            reached.append(attained / proved)
        if attained > bound + slack:
            wrong.append(f"{where}: spread {attained:.9g} is above the bound {bound:.9g}")
        if least is not None and head["uniform_bounds"][0] > 0:
            lowest = float(least[i, own].min())
            uniform.append(lowest / head["uniform_bounds"][0])
            if lowest < head["uniform_bounds"][0] - slack:
                wrong.append(f"{where}: a query has no spread above {lowest:.9g}, below {head['uniform_bounds'][0]:.9g}")
    print("\n".join([*wrong, f"{case.name}: heads: {len(sharp)} of {len(result['heads'])} over {searches.length} "
                     f"positions, attained / bound {_range(sharp)}"
                     + (f", attained / proved attainable {_range(reached)}" if reached else "")
                     + (f", most uniform / bound {_range(uniform)}" if uniform else "")]))
    return not wrong


def _range(values: Iterable[float]) -> str:
    ordered = sorted(values)
    return f"{ordered[0]:.4f} to {ordered[-1]:.4f}"


def attack_reach(case: Case, folder: Path, truth: Bounds, command: Path, rounding: float) -> bool:
    result = run_command(command, "reach", folder)
    if isinstance(result, str):
        print(f"{case.name}: reach: {result}")
        return True
    model = load(case, folder)
    named = [norm["module"] for norm in truth["norms"]
             if result["norm"]["name"] in (norm["module"], str(norm["gain"]).rpartition(".")[0])]
    if not named:
        print(f"{case.name}: reach: the norm {result['norm']['name']} is not one that runs")
        return False
    tokens, restarts = result["tokens"], 6
    inputs = batch(case, tokens * restarts, fewest_positions(model))
    free = FreeInputs(model, named[-1:])
    token = torch.arange(tokens * restarts) % tokens
    cap, largest = result["soft_cap"], 0.0

    def logits() -> torch.Tensor:
        nonlocal largest
        free.start()
        output = model(**inputs, **case.options)
        found = (output if isinstance(output, torch.Tensor) else output[case.outputs[0]])[:, -1]
        largest = max(largest, float(found.detach().abs().max()))
        return found

    def leads() -> torch.Tensor:
        found = logits()
        if cap:
            found = cap * torch.atanh((found / cap).clamp(-0.9999, 0.9999))
        own = found.gather(1, token[:, None])
        return own[:, 0] - found.scatter(1, token[:, None], -torch.inf).amax(-1)

    def log_probabilities() -> torch.Tensor:
        return torch.log_softmax(logits(), -1).gather(1, token[:, None])[:, 0]

    lead = ascend(free, leads, 100).reshape(restarts, tokens).amax(0)
    probability = ascend(free, log_probabilities, 100).reshape(restarts, tokens).amax(0)
    free.remove()
    upper_lead = torch.tensor(result["lead"]["upper"])
    upper_probability = torch.tensor(result["max_probability"]["upper"]).log()
    slack = rounding * max(largest, 1.0) * (50.0 if cap else 1.0)  # atanh near 1 magnifies rounding
    wrong = [(int(t), "lead", float(lead[t]), float(upper_lead[t])) for t in range(tokens)
             if lead[t] > upper_lead[t] + slack]
    wrong += [(int(t), "log probability", float(probability[t]), float(upper_probability[t])) for t in range(tokens)
              if probability[t] > upper_probability[t] + slack]
    for t, what, attained, bound in wrong:
        print(f"{case.name}: token {t}: {what} {attained:.9g} is above the bound {bound:.9g}")
    ratio = (lead / upper_lead)[upper_lead > 1e-6]  # of tokens that can lead
    gap = (upper_probability - probability).clamp(min=0.0)
    print(f"{case.name}: reach: {tokens} tokens, lead attained / bound {_range(ratio.tolist())}, probability attained / "
          f"bound {_range((-gap).exp().tolist())}")
    return not wrong


def attack_ranges(case: Case, folder: Path, truth: Bounds, command: Path, rounding: float) -> bool:
    result = run_command(command, "ranges", folder)
    if isinstance(result, str):
        print(f"{case.name}: ranges: {result}")
        return True
    searches = RangeSearches(case, folder, truth, result)
    searches.run(60)
    found = searches.compared()
    searches.free.remove()
    if result["logits"]:
        found += attained_logits(case, folder, truth, result["logits"])
    wrong = [(what, attained, bound) for what, attained, bound in found
             if attained > bound + rounding * max(abs(bound), 1.0)]
    for what, attained, bound in wrong:
        print(f"{case.name}: {what}: {attained:.9g} is above the bound {bound:.9g}")
    ratios = [attained / bound for _, attained, bound in found if bound > 0.0]
    print(f"{case.name}: ranges: {len(found)} bounds of {len(searches.norms)} norms, attained / bound "
          f"{_range(ratios) if ratios else '-'}" + ("" if result["logits"] else f"; logits: {result['logits_refused']}"))
    return not wrong


def attained_logits(case: Case, folder: Path, truth: Bounds, logits: Bounds) -> list[tuple[str, float, float]]:
    """The highest logit and minus the lowest one that ascent over the input of the final norm finds, and their bounds."""
    named = [norm["module"] for norm in truth["norms"]
             if logits["norm"] in (norm["module"], str(norm["gain"]).rpartition(".")[0])]
    if not named:
        return []
    model = load(case, folder)
    inputs = batch(case, 2 * logits["tokens"], fewest_positions(model))
    free = FreeInputs(model, named[-1:])
    search = torch.arange(2 * logits["tokens"])

    def signed() -> torch.Tensor:
        free.start()
        output = model(**inputs, **case.options)
        found = (output if isinstance(output, torch.Tensor) else output[case.outputs[0]])[:, -1]
        return (1.0 - 2.0 * (search % 2)) * found[search, search // 2]

    best = ascend(free, signed, 100)
    free.remove()
    return [("highest logit", float(best[0::2].max()), logits["highest"]["bound"]),
            ("minus the lowest logit", float(best[1::2].max()), -logits["lowest"]["bound"])]


def change(folder: Path, changes: list[str]) -> None:
    """Gives some fields of the configuration other values."""
    if changes:
        config = json.loads((folder / "config.json").read_text())
        config |= {field: json.loads(value) for field, _, value in (change.partition("=") for change in changes)}
        (folder / "config.json").write_text(json.dumps(config))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+", metavar="CASE", choices=[*CASES, "all"])
    parser.add_argument("--command", type=Path, default=ROOT / "build/bin/normscope")
    parser.add_argument("--fixtures", type=Path, default=FIXTURES)
    parser.add_argument("--rounding", type=float, default=1e-5)
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=JSON")
    arguments = parser.parse_args()
    prepare()
    good = True
    for name in CASES if "all" in arguments.cases else arguments.cases:
        torch.manual_seed(1)
        with tempfile.TemporaryDirectory() as scratch:
            folder = unpack(name, Path(scratch) / name, arguments.fixtures)
            change(folder, arguments.set)
            truth = json.loads((folder / "truth.json").read_text())
            for attack in (attack_heads, attack_reach, attack_ranges):
                try:
                    good = attack(CASES[name], folder, truth, arguments.command, arguments.rounding) and good
                except Exception as error:  # noqa: BLE001: the other cases are still attacked
                    good = False
                    print(f"{name}: {attack.__name__}: {type(error).__name__}: {error}")
                sys.stdout.flush()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

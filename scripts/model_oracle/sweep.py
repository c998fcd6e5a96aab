#!/usr/bin/env python3
"""Describes every class of transformers: a sparse file as its default configuration would be saved, read by `normscope`.

usage: scripts/model_oracle/sweep.py [--command PATH] [--report] [--budget N] [--json FILE] [--keep] [MODEL_TYPE ...]    (default: all types)

--keep writes what the tables of docs/models.md need to tests/models/sweep.json, where rows of other types stay; table.py
makes the page of it.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
import transformers  # noqa: E402
from transformers.core_model_loading import revert_weight_conversion  # noqa: E402
from transformers.models.auto import modeling_auto as auto  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
# The class with most of a published file, first.
HEADS = ("SEQ_TO_SEQ_CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "SPEECH_SEQ_2_SEQ", "MASKED_LM", "CAUSAL_LM", "CTC", "PRETRAINING",
         "IMAGE_CLASSIFICATION", "UNIVERSAL_SEGMENTATION", "OBJECT_DETECTION", "TIME_SERIES_PREDICTION")
KEPT = ROOT / "tests/models/sweep.json"
DTYPES = {torch.float64: "F64", torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16", torch.int64: "I64", torch.int32: "I32",
          torch.bool: "BOOL", torch.uint8: "U8", torch.complex64: "C64"}


def class_of(model_type: str) -> type | None:
    for head in HEADS:
        if (name := getattr(auto, f"MODEL_FOR_{head}_MAPPING_NAMES").get(model_type)) is not None:
            break
    else:
        name = auto.MODEL_MAPPING_NAMES.get(model_type)
    return getattr(transformers, name[0] if isinstance(name, (tuple, list)) else name, None) if name else None


def saved_tensors(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Names, types and shapes of the file that `save_pretrained` would write."""
    state = dict(model.state_dict())
    for name in getattr(model, "all_tied_weights_keys", {}):
        state.pop(name, None)
    return revert_weight_conversion(model, state)


def write_sparse(path: Path, tensors: dict[str, torch.Tensor]) -> int:
    header, at = {}, 0
    for name, tensor in tensors.items():
        size = tensor.numel() * tensor.element_size()
        header[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)
    return at


def build(model_type: str, folder: Path) -> dict[str, Any]:
    model_class = class_of(model_type)
    if model_class is None:
        return {"state": "no class"}
    try:
        config = transformers.AutoConfig.for_model(model_type)
        with torch.device("meta"):
            model = model_class._from_config(config, dtype=torch.bfloat16)
        tensors = saved_tensors(model)
    except Exception as error:  # noqa: BLE001: many defaults build no model
        return {"state": "not built", "class": model_class.__name__, "error": f"{type(error).__name__}: {error}"[:200]}
    config.architectures = [model_class.__name__]
    config.save_pretrained(folder)
    size = write_sparse(folder / "model.safetensors", tensors)
    return {"class": model_class.__name__, "bytes": size, "tensors": len(tensors)}


def run(command: list[str]) -> dict[str, Any]:
    """Exit status, seconds of processor time and MiB of a command, and what it printed."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdout=out, stderr=errors)
        peak = 0
        while True:
            held = re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
            peak = max(peak, int(held[1]) if held else 0)
            done, status, usage = os.wait4(process.pid, os.WNOHANG)  # its memory includes this process, before exec
            if done:
                process.returncode = os.waitstatus_to_exitcode(status)
                break
            time.sleep(0.02)
        out.seek(0), errors.seek(0)
        return {"seconds": round(usage.ru_utime + usage.ru_stime, 1), "mib": peak // 1024, "exit": process.returncode,
                "out": out.read(), "error": errors.read().decode().strip()[-300:]}


def state(architecture: dict[str, Any]) -> str:
    if architecture["architecture"] != "unknown":
        return "described" if not architecture["missing"] else "incomplete"
    return "fitted" if "look like" in architecture["evidence"] else "unknown"


def sweep(model_type: str, command: str, budget: str | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / model_type
        folder.mkdir()
        row = {"type": model_type, **build(model_type, folder)}
        if "state" in row:
            return row
        done = run([command, "inspect", str(folder), "--json", "-", "-q"])
        if done["exit"] != 0:
            return row | {"state": "failed", "exit": done["exit"], "error": done["error"]}
        document = json.loads(done["out"])
        architecture = document["architecture"]
        row |= {"state": state(architecture), "architecture": architecture["architecture"], "norms": len(document["norms"]),
                "missing": architecture["missing"], "notes": architecture["notes"], "evidence": architecture["evidence"]}
        if budget is not None:
            done = run([command, "report", str(folder), "--budget", budget, "-q", "-o", f"{scratch}/report.html"])
            row |= {key: done[key] for key in ("seconds", "mib", "exit", "error")}
            if done["exit"] != 0:
                row["state"] = "failed"
        return row


def keep(rows: list[dict[str, Any]]) -> None:
    """Adds what docs/models.md says of these types to the file that table.py reads."""
    known = json.loads(KEPT.read_text())["types"] if KEPT.exists() else {}
    fields = ("state", "class", "architecture", "bytes", "tensors", "norms", "seconds", "mib")
    for row in rows:
        measured = {key: value for key, value in known.get(row["type"], {}).items() if key in ("seconds", "mib")}
        known[row["type"]] = measured | {key: row[key] for key in fields if key in row}
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(known.items()))
    KEPT.write_text(f'{{"transformers": {json.dumps(transformers.__version__)}, "types": {{\n{lines}}}}}\n')


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("types", nargs="*", metavar="MODEL_TYPE")
    parser.add_argument("--command", default=str(ROOT / "build-dev/bin/normscope"))
    parser.add_argument("--report", action="store_true", help="also time `report`")
    parser.add_argument("--budget", default="1", metavar="N", help="that of the report (default: 1)")
    parser.add_argument("--json", type=Path, help="one line for each type")
    parser.add_argument("--keep", action="store_true", help="write tests/models/sweep.json")
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    states: Counter[str] = Counter()
    rows, lines = [], []
    for model_type in arguments.types or CONFIG_MAPPING_NAMES:
        row = sweep(model_type, arguments.command, arguments.budget if arguments.report else None)
        states[row["state"]] += 1
        rows.append(row)
        lines.append(json.dumps(row))
        if arguments.keep:
            keep(rows)
        print(row["state"], model_type, row.get("class", ""), *(row[key] for key in ("architecture", "norms", "exit", "seconds", "mib", "error") if row.get(key)), flush=True)
        if arguments.json:
            arguments.json.write_text("\n".join(lines) + "\n")
    print(", ".join(f"{count} {name}" for name, count in sorted(states.items())))
    return 1 if states["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes tests/models/fixtures/CASE.zip: a tiny random model as transformers saves it, and what running it shows.

usage: scripts/model_oracle/make.py [--out FOLDER] [CASE ...]     (default: all cases)
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

from model_oracle import fixtures, truth  # noqa: E402
from model_oracle.cases import CASES  # noqa: E402
from model_oracle.cases.case import Case, tensors  # noqa: E402
from model_oracle.document import dumps  # noqa: E402
from model_oracle.trace import record  # noqa: E402
from model_oracle.weights import SavedTensors, randomize  # noqa: E402


def build(case: Case) -> torch.nn.Module:
    """The model with its random weights."""
    torch.manual_seed(0)
    if callable(case.model):
        model = case.model()
    else:
        model_class = getattr(transformers, case.model)
        config = model_class.config_class(**case.config)
        model = model_class._from_config(config, attn_implementation=case.attention, dtype=torch.float32)
    eager_experts(model.eval())
    randomize(model)
    if case.prepare:
        case.prepare(model)
    return model


def eager_experts(model: torch.nn.Module) -> torch.nn.Module:
    """Experts one after the other: other implementations ask for aligned strides."""
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")
    return model


def save(case: Case, model: torch.nn.Module, folder: Path) -> None:
    if callable(case.model):
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {name: tensor.clone().contiguous() for name, tensor in model.state_dict().items()}
        save_file(tensors, folder / "model.safetensors")
        if hasattr(model, "save_config"):  # of diffusers
            model.save_config(folder)
        return
    model.save_pretrained(folder)
    for path in folder.iterdir():
        if path.name not in ("config.json", "model.safetensors"):
            path.unlink()


def load(case: Case, folder: Path) -> torch.nn.Module:
    """The model as a user would load it: what is observed belongs to the file, not to the memory it came from."""
    if callable(case.model):
        from safetensors.torch import load_file

        model = case.model()
        model.load_state_dict(load_file(folder / "model.safetensors"))
    else:
        model_class = getattr(transformers, case.model)
        model, report = model_class.from_pretrained(folder, attn_implementation=case.attention, dtype=torch.float32,
                                                    output_loading_info=True)
        if report["missing_keys"] or report["unexpected_keys"] or report["mismatched_keys"]:
            raise ValueError(f"{case.name}: the saved file does not load: {report}")
        for module in model.modules():
            if hasattr(module, "config"):
                module.config.use_cache = False
    return eager_experts(model.eval())


def picked(output: Any, names: tuple[str, ...]) -> dict[str, torch.Tensor]:
    if isinstance(output, torch.Tensor):
        return {names[0]: output}
    return {name: output[name] for name in names}


def make(case: Case, folder: Path) -> None:
    inputs, stated = tensors(case.inputs)
    original = build(case)
    save(case, original, folder)
    model = load(case, folder)
    graph, output, recorder = record(model, inputs, **case.options)
    outputs = picked(output, case.outputs)
    with torch.no_grad():
        expected = picked(original(**inputs, **case.options), case.outputs)
    for name, tensor in outputs.items():
        if not torch.equal(tensor, expected[name]) and (tensor - expected[name]).abs().max() > 1e-5:
            raise ValueError(f"{case.name}: {name} of the saved model differs from the model's")
    document = {
        "schema": "normscope.model_oracle/1", "case": case.name,
        "class": case.model if isinstance(case.model, str) else None,
        "versions": {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__},
        **({"note": case.note} if case.note else {}), "inputs": stated,
        **truth.observe(model, graph, recorder, outputs, SavedTensors(folder / "model.safetensors"), case.towers),
    }
    (folder / "truth.json").write_text(dumps(document) + "\n")


def prepare(silent: bool = False) -> None:
    """One thread, no operation that stands for a whole layer, no progress bars; `silent` where models are made that may
    not run."""
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)
    transformers.logging.set_verbosity(50) if silent else transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    if silent:
        warnings.filterwarnings("ignore")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE")
    parser.add_argument("--out", type=Path, default=fixtures.FIXTURES)
    arguments = parser.parse_args()
    unknown = [name for name in arguments.cases if name not in CASES]
    if unknown:
        parser.error(f"unknown case {unknown[0]}; known are {', '.join(CASES)}")
    prepare()
    failed = []
    for name in arguments.cases or CASES:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / name
            try:
                make(CASES[name], folder)
            except Exception as error:  # noqa: BLE001: one case that fails does not keep the others from being made
                if os.environ.get("ORACLE_TRACEBACK"):
                    raise
                failed.append(name)
                print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
                continue
            files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
        fixtures.write(name, files, arguments.out)
        print(name, *(f"{len(data)}" for data in files.values()), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Writes tests/models/fixtures/mlx_CASE.zip: the fixture CASE of the model oracle as mlx-lm's own class converts it.

    python3 -m venv ENV && ENV/bin/pip install 'mlx[cpu]' mlx-lm && ENV/bin/python scripts/mlx_oracle/convert.py

mlx-lm 0.32.2 was used. Classes add 1 to the gains of Qwen3-Next and Qwen3.5 and move the last axis of their convolutions;
Gemma's stay as they are.
"""

import importlib
import json
import sys
import tempfile
from pathlib import Path

import mlx.core as mx

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from model_oracle.fixtures import fixture, write  # noqa: E402

# By case, the module of mlx-lm that its model_type names.
CASES = {"gemma": "gemma", "qwen3_5": "qwen3_5", "qwen3_next": "qwen3_next"}


def main():
    for case, module in CASES.items():
        folder = fixture(case)
        text = (folder / "config.json").read_bytes()
        config = json.loads(text)
        # Published configurations of Qwen3-Next have the first two fields, and the base of positions outside of a section.
        rotary = config.get("rope_parameters", {})
        stated = {"full_attention_interval": 2, "mlp_only_layers": [], "rope_theta": rotary.get("rope_theta", 1e4),
                  "partial_rotary_factor": rotary.get("partial_rotary_factor", 1.0)} | config
        made = importlib.import_module(f"mlx_lm.models.{module}")
        model = made.Model(made.ModelArgs.from_dict(stated))
        tensors = mx.load(str(folder / "model.safetensors"))
        if hasattr(model, "sanitize"):
            tensors = model.sanitize(tensors)
        model.load_weights(list(tensors.items()))  # refuses missing and unknown names
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch) / "model.safetensors"
            mx.save_safetensors(str(path), tensors, metadata={"format": "mlx"})
            write(f"mlx_{case}", {"model.safetensors": path.read_bytes(), "config.json": text})


if __name__ == "__main__":
    main()

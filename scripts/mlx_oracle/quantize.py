#!/usr/bin/env python3
"""Writes tests/files/fixtures/mlx: a matrix that MLX quantized in each of its formats, and what MLX makes of it again.

    python3 -m venv ENV && ENV/bin/pip install 'mlx[cpu]' && ENV/bin/python scripts/mlx_oracle/quantize.py
"""

import json
from pathlib import Path

import mlx.core as mx
import numpy as np

FOLDER = Path(__file__).resolve().parents[2] / "tests/files/fixtures/mlx"
FORMATS = {f"affine{bits}": dict(group_size=(32, 64, 128)[bits % 3], bits=bits) for bits in (2, 3, 4, 5, 6, 8)}
FORMATS |= {name: dict(group_size=group, bits=bits, mode=name)
            for name, group, bits in (("mxfp4", 32, 4), ("nvfp4", 16, 4), ("mxfp8", 32, 8))}
FORMATS |= {f"{name}_{dtype}": FORMATS[name] for name in ("affine4", "affine8") for dtype in ("bfloat16", "float16")}


def main():
    draws = np.random.default_rng(7)
    matrix = draws.standard_normal((6, 128)) * 0.02
    matrix[1] += 0.1  # of one sign
    matrix[2, ::9] *= 30
    matrix[3] *= 1e-3
    matrix[4, :64] = 0
    tensors = {"original": mx.array(matrix.astype(np.float32))}
    for name, form in FORMATS.items():
        dtype = getattr(mx, name.partition("_")[2] or "float32")
        parts = mx.quantize(tensors["original"].astype(dtype), **form)
        for part, values in zip(("weight", "scales", "biases"), parts):
            tensors[f"{name}.{part}"] = values
        tensors[f"{name}.dequantized"] = mx.dequantize(*parts, **form).astype(mx.float32)
    FOLDER.mkdir(exist_ok=True)
    mx.save_safetensors(str(FOLDER / "model.safetensors"), tensors, metadata={"format": "mlx"})
    stated = {"group_size": 64, "bits": 4} | FORMATS
    (FOLDER / "config.json").write_text(json.dumps({"quantization": stated, "quantization_config": stated}, indent=1) + "\n")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes the GGUF files of the tests, with PyPI's gguf. Run by hand, never in CI.

    tests/files/fixtures/blocks.gguf           a tensor of every quantized type, of random blocks
    tests/files/fixtures/blocks.safetensors    the same, as gguf.quants.dequantize decodes them

usage: scripts/gguf_oracle/make.py     (needs scripts/gguf_oracle/requirements.txt)
"""

from __future__ import annotations

from pathlib import Path

import gguf
import numpy as np
from safetensors.numpy import save_file

ROOT = Path(__file__).resolve().parent.parent.parent
BLOCKS = ROOT / "tests" / "files" / "fixtures"

# Byte offsets of a block's float16 factors; other bytes may have any value.
FACTORS = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [],
}


def random_blocks(random: np.random.Generator, name: str, rows: int, blocks: int) -> np.ndarray:
    """Blocks of type `name` with factors around 0.01."""
    _, size = gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]
    data = random.integers(0, 256, (rows, blocks, size), dtype=np.uint8)
    for offset in FACTORS[name]:
        factor = random.normal(0, 0.01, (rows, blocks, 1)).astype(np.float16)
        data[..., offset:offset + 2] = factor.view(np.uint8)
    if name == "MXFP4":
        data[..., 0] = random.integers(100, 130, (rows, blocks), dtype=np.uint8)  # the exponent of its factor
    return data.reshape(rows, -1)


def write_blocks() -> None:
    random = np.random.default_rng(1)
    writer = gguf.GGUFWriter(BLOCKS / "blocks.gguf", "none")
    expected = {}
    for name in FACTORS:
        kind = gguf.GGMLQuantizationType[name]
        is_small = gguf.GGML_QUANT_SIZES[kind][0] == 32
        data = random_blocks(random, name, 3 if is_small else 2, 2 if is_small else 1)
        writer.add_tensor(name, data, raw_dtype=kind)
        expected[name] = gguf.quants.dequantize(data, kind)
    close(writer)
    save_file(expected, BLOCKS / "blocks.safetensors")
    (BLOCKS / "blocks.safetensors").chmod(0o644)


def close(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    BLOCKS.mkdir(exist_ok=True)
    write_blocks()


if __name__ == "__main__":
    main()

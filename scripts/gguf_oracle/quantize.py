#!/usr/bin/env python3
"""Writes tests/files/fixtures/quantized.gguf: one random matrix, and what ggml's own quantizers make of it. By hand only.

Tensors are named after their types; those that end in .important are quantized for columns of unequal importance.

usage: scripts/gguf_oracle/quantize.py LIBRARY     (libggml-base.so, such as of PyPI's pywhispercpp; needs gguf)
"""

from __future__ import annotations

import ctypes
import sys

import gguf
import numpy as np
from make import BLOCKS, FACTORS, close


def quantize(library: ctypes.CDLL, matrix: np.ndarray, kind: gguf.GGMLQuantizationType, importance: np.ndarray | None) -> np.ndarray:
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    rows, columns = matrix.shape
    result = np.zeros((rows, columns // elements * size), np.uint8)
    library.ggml_quantize_init(kind.value)
    written = library.ggml_quantize_chunk(
        kind.value, matrix.ctypes.data, result.ctypes.data, 0, rows, columns,
        None if importance is None else importance.ctypes.data)
    assert written == result.size, kind
    return result


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    library.ggml_quantize_chunk.argtypes = [
        ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    random = np.random.default_rng(3)
    # Heavy tails, and rows of unequal size, as of trained matrices.
    matrix = random.standard_t(4, (8, 512)) * 0.03 * np.exp(random.normal(0, 0.7, (8, 1)))
    matrix = np.ascontiguousarray(matrix, np.float32)
    importance = np.ascontiguousarray(np.exp(random.normal(0, 0.7, 512)), np.float32)
    writer = gguf.GGUFWriter(BLOCKS / "quantized.gguf", "none")
    writer.add_tensor("original", matrix)
    for name in FACTORS:
        kind = gguf.GGMLQuantizationType[name]
        writer.add_tensor(name, quantize(library, matrix, kind, None), raw_dtype=kind)
        writer.add_tensor(f"{name}.important", quantize(library, matrix, kind, importance), raw_dtype=kind)
    close(writer)


if __name__ == "__main__":
    main()

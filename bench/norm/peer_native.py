"""The contenders in C++, oneDNN and Debian's libtorch among them, by the benchmark's own program: a safetensors file
holds the problem, another the answers."""

import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

from problem import numbers

TYPES = {"F64": np.dtype(np.float64), "F32": np.dtype(np.float32), "BF16": np.dtype(ml_dtypes.bfloat16),
         "F16": np.dtype(np.float16)}


def _write(path, arrays):
    header, data = {}, b""
    for name, array in arrays.items():
        begin, stored = len(data), next(stored for stored, dtype in TYPES.items() if dtype == array.dtype)
        data += array.tobytes()
        header[name] = {"dtype": stored, "shape": array.shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def _read(path):
    """{name: array}"""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    arrays = {}
    for name, entry in json.loads(data[8:begin]).items():
        count, start = math.prod(entry["shape"]), begin + entry["data_offsets"][0]
        arrays[name] = np.frombuffer(data, TYPES[entry["dtype"]], count, start).reshape(entry["shape"])
    return arrays


def answers(program, task, problem):
    """{contender: results}, of those that do the task in that type."""
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "problem.safetensors"), Path(folder, "answers.safetensors")
        _write(asked, {"eps": np.array([problem.eps]), "x": problem.x, "dy": problem.dy, "gain": problem.gain,
                       "bias": problem.bias})
        if subprocess.run([program, "--answer", task, asked, answered]).returncode:
            sys.exit(f"accuracy: {program} has no answers")
        results = {}
        # Named CONTENDER/PLACE.
        for name, array in sorted(_read(answered).items(), key=lambda item: int(item[0].rpartition("/")[2])):
            rows = array.reshape(problem.x.shape) if array.size == problem.x.size else array
            results.setdefault(name.rpartition("/")[0], []).extend(numbers(rows))
    return results

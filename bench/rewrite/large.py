"""Rewrites a sharded Llama of 100 GB, is killed (kill -9) on the way and continues.

usage: bench/rewrite/large.py [--gigabytes N] [--command PATH] [--folder FOLDER]

The model has the shape of a Llama of 70 billion parameters. Of every matrix 64 rows are random and the others are zeros, which
are holes in the files of the input; holes.c, which is preloaded, makes holes of them in the output, so that both fit a
disk of a few GB. The command reads, rewrites and certifies every byte; what the times leave out is the disk. It takes minutes.
Exits with 1 if the peak of memory is above three times the largest tensor plus 72 MiB, if the killed process' shards are not
taken over, or if a rewritten row is not the original one times the gain, rounded once.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from model import Values, header_of, llama_config, llama_shards, write_index

HERE = Path(__file__).resolve().parent
WIDTH, INNER, VOCABULARY = 8192, 28672, 32000
ROWS = 64
FIXED = 72 * 2**20


def make(folder, layers):
    """Writes the model; returns its bytes."""
    folder.mkdir()
    shards, values = llama_shards(layers, WIDTH, INNER, VOCABULARY), Values("BF16")
    names = write_index(folder, shards, llama_config(layers, WIDTH, INNER, VOCABULARY))
    for name, tensors in zip(names, shards):
        text, places = header_of(tensors, "BF16")
        with open(folder / name, "wb") as file:
            file.write(text)
            for tensor, shape in tensors.items():
                file.seek(len(text) + places[tensor][0])
                values.write(file, tensor, shape[-1] * (ROWS if len(shape) > 1 else 1))
            file.truncate(len(text) + max(end for _, end in places.values()))
    return sum((folder / name).stat().st_size for name in names)


def started(arguments, *words, **environment):
    return subprocess.Popen([arguments.command, "rewrite", *words], stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})


def ended(process, begin):
    """Output, status, seconds, processor seconds and peak memory."""
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return text, process.returncode, time.monotonic() - begin, usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss


def rows_of(folder, layer, tensor):
    """The first rows of a tensor as float32."""
    path = next(folder.glob(f"model-{layer + 2:05}-of-*.safetensors"))
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        entry = json.loads(file.read(length))[f"model.layers.{layer}.{tensor}"]
        file.seek(8 + length + entry["data_offsets"][0])
        bits = np.frombuffer(file.read(2 * entry["shape"][-1] * (ROWS if len(entry["shape"]) > 1 else 1)), np.uint16)
    return (bits.astype(np.uint32) << 16).view(np.float32).reshape(-1, entry["shape"][-1])


def rounded(values):
    """float64 to bfloat16, ties to even; the product of two bfloat16 is exact in float32."""
    bits = values.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).view(np.float32)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", type=float, default=100)
    parser.add_argument("--command", type=Path, default=HERE.parent.parent / "build/bin/normscope")
    parser.add_argument("--folder", type=Path, help="where the model is made, default a temporary folder")
    arguments = parser.parse_args()
    layers = max(3, round(arguments.gigabytes * 1e9 / (2 * (4 * WIDTH**2 + 3 * WIDTH * INNER))))
    allowed = 3 * 2 * WIDTH * max(INNER, VOCABULARY) + FIXED
    with tempfile.TemporaryDirectory(prefix="normscope-large-", dir=arguments.folder) as scratch:
        folder = Path(scratch)
        library = folder / "holes.so"
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, HERE / "holes.c", "-ldl"], check=True)
        size = make(folder / "in", layers)
        print(f"{size / 1e9:.1f} GB in {layers + 1} shards; allowed peak {allowed / 1e6:.0f} MB")
        words = [folder / "in", "--fold", "gains"]
        begin = time.monotonic()
        text, status, seconds, _, peak = ended(started(arguments, *words, "--dry-run"), begin)
        print(f"plan (--dry-run): {seconds:.2f} s, peak {peak / 1e6:.0f} MB, {len(text.splitlines())} lines")
        begin = time.monotonic()
        process = started(arguments, *words, "-o", folder / "out", LD_PRELOAD=str(library))
        work = folder / ".normscope-rewrite-out"
        while process.poll() is None and len(list(work.glob("files/*.safetensors"))) < (layers + 1) // 2:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        _, killed, seconds, _, first = ended(process, begin)
        kept = len(list(work.glob("files/*.safetensors")))
        print(f"killed after {seconds:.0f} s, {kept} of {layers + 1} shards finished, peak {first / 1e6:.0f} MB")
        begin = time.monotonic()
        text, done, seconds, processor, second = ended(started(arguments, *words, "-o", folder / "out", LD_PRELOAD=str(library)), begin)
        print(f"continued: {seconds:.0f} s, {processor:.0f} s of processor time, peak {second / 1e6:.0f} MB")
        print("\n".join(line for line in text.splitlines() if "taken over" in line or "largest proved error" in line))
        wrong = status != 0 or killed != -signal.SIGKILL or done != 0 or "taken over" not in text or max(first, second) > allowed
        for layer in (0, layers - 1):
            gain = rows_of(folder / "in", layer, "input_layernorm.weight").astype(np.float64)
            old, new = (rows_of(folder / at, layer, "self_attn.q_proj.weight") for at in ("in", "out"))
            wrong = wrong or not np.array_equal(new, rounded(old * gain)) or not (rows_of(folder / "out", layer, "input_layernorm.weight") == 1).all()
        print("WRONG" if wrong else "as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

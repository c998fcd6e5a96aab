"""Compares models of random weights with copies that are rewritten, rounded or spoilt, beside reading the same files.

usage: scripts/bench compare [--quick] [--runs 3] [--shape LAYERS WIDTH INNER VOCABULARY] [--models llama gpt2]
                             [--cases "a copy" F16 ...] [--command PATH] [--json FILE]

7 billion parameters: --shape 32 4096 11008 32000 --models llama --cases "a copy" "gains folded" F16 --runs 1

The rate is that of both models' bytes. Reading is `cat` of the same files to nowhere, so both are in the page cache: it is
what a disk that is not in the way would allow. A ratio is the rate of `compare` over that of reading, of medians. Peak
memory is the largest resident set.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench/rewrite"))
from run import apart, measured  # noqa: E402

CASES = ("a copy", "gains folded", "gains folded, stream rotated", "F16", "a gain that differs")
SHAPES = {True: (2, 1024, 2816, 8000), False: (8, 2048, 5632, 32000)}  # layers, width, inner, vocabulary


def make(model, folder, shape, dtype):
    apart(f"from model import make_{model}; from pathlib import Path; make_{model}(Path({str(folder)!r}), *{shape}, {dtype!r})")


def spoil(model, folder, shape):
    """A copy with another number in a gain; a witness is sought."""
    make(model, folder, shape, "BF16")
    gain = {"llama": "model.norm.weight", "gpt2": "transformer.ln_f.weight"}[model]
    path = next(path for path in folder.glob("*.safetensors") if gain.encode() in path.read_bytes()[:1 << 20])
    with open(path, "r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        file.seek(8 + length + json.loads(file.read(length))[gain]["data_offsets"][0])
        file.write(bytes([0, 0x41]))  # 8, for a number between 0.5 and 1.5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="models of about 66 MB in place of 1.1 GB")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--shape", type=int, nargs=4, metavar=("LAYERS", "WIDTH", "INNER", "VOCABULARY"), help="in place of 8 2048 5632 32000")
    parser.add_argument("--models", nargs="+", choices=("llama", "gpt2"), default=["llama", "gpt2"])
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--command", type=Path, default=ROOT / "build/bin/normscope")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    shape, rows = tuple(arguments.shape or SHAPES[arguments.quick]), []
    print(f"{os.cpu_count()} processors\n\n| model | compared with | GB | verdict | seconds | GB/s | of reading | processor s | peak MB |\n|---|---|---|---|---|---|---|---|---|")
    for model in arguments.models:
        with tempfile.TemporaryDirectory(prefix="normscope-bench-") as scratch:
            folder = Path(scratch)
            make(model, folder / "old", shape, "BF16")
            rewrite = lambda new, *options: subprocess.run([arguments.command, "rewrite", folder / "old", "-o", new, "-q", *options], check=True)
            made = {"a copy": lambda new: make(model, new, shape, "BF16"),
                    "gains folded": lambda new: rewrite(new, "--fold", "gains"),
                    "gains folded, stream rotated": lambda new: rewrite(new, "--fold", "gains", "--rotate", "random:7"),
                    "F16": lambda new: make(model, new, shape, "F16"),
                    "a gain that differs": lambda new: spoil(model, new, shape)}
            for name in arguments.cases:
                new = folder / "new"
                made[name](new)
                files = [path for side in ("old", "new") for path in (folder / side).glob("*.safetensors")]
                size = sum(path.stat().st_size for path in files)
                read = statistics.median(measured(["cat", *files])[0] for _ in range(arguments.runs + 1))
                words = [arguments.command, "compare", folder / "old", new, "--json", folder / "c.json", "-q"]
                wall, processor, peak = (statistics.median(column) for column in zip(*(measured(words) for _ in range(arguments.runs))))
                verdict = json.loads((folder / "c.json").read_text())["agreement"]
                rows.append({"model": model, "new": name, "bytes": size, "verdict": verdict, "seconds": wall, "reading": read,
                             "processor": processor, "peak": peak})
                print(f"| {model} | {name} | {size / 1e9:.2f} | {verdict} | {wall:.2f} | {size / wall / 1e9:.2f} | {read / wall:.2f} | {processor:.2f} | "
                      f"{peak / 1e6:.0f} |", flush=True)
                subprocess.run(["rm", "-r", new], check=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()

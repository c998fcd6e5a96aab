"""Rewrites models of random weights: our command, cp, cp with sync, and for the gains of Llamas a script of torch and safetensors.

usage: scripts/bench rewrite [--quick] [--pairs N] [--without-torch] [--models llama gpt2] [--dtypes BF16 F32 F16] [--json FILE]

Every contender is a process of its own, and writes a folder of its own that is removed before the next. Our command ends
when what it wrote is on the disk; cp does not wait for that, so it is measured with sync as well. The answers of the script
are compared first, tensor by tensor and bit by bit. A ratio is the contender's time over ours, the median of paired runs:
0.5 says that we take twice as long. The processor time counts all cores, and no disk. Peak memory is the largest resident
set, beside three times the largest tensor plus 72 MiB.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMMAND = HERE.parent.parent / "build/bin/normscope"
SHAPES = {True: {"llama": (2, 1024, 2816, 8000), "gpt2": (2, 1024, 4096, 8000)},  # layers, width, inner, vocabulary
          False: {"llama": (8, 2048, 5632, 32000), "gpt2": (8, 2048, 8192, 32000)}}
WAYS = {"llama": {"fold": ["--fold", "gains"]},
        "gpt2": {"fold": ["--fold", "gains"], "center": ["--center"], "fold and center": ["--fold", "gains", "--center"]}}
FIXED = 72 * 2**20


def measured(words):
    """Wall time and processor time in seconds, and peak memory in bytes, of a process that must succeed."""
    begin = time.monotonic()
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"bench: {words[0]} failed with status {process.returncode}")
    return time.monotonic() - begin, usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss


def same(one, other):
    """Whether both folders have the same tensors, bit by bit."""
    import torch
    from safetensors import safe_open
    names = sorted(path.name for path in one.glob("*.safetensors"))
    if names != sorted(path.name for path in other.glob("*.safetensors")):
        return False
    for name in names:
        with safe_open(one / name, "pt") as a, safe_open(other / name, "pt") as b:
            if sorted(a.keys()) != sorted(b.keys()):
                return False
            for key in a.keys():
                if not torch.equal(a.get_tensor(key).view(torch.uint8), b.get_tensor(key).view(torch.uint8)):
                    return False
    return True


def apart(call):
    """Runs a line of this file in a separate process, since its memory would count for processes that are started here."""
    return subprocess.run([sys.executable, "-B", "-c", f"import sys; sys.path.insert(0, {str(HERE)!r}); {call}"],
                          check=True, capture_output=True, text=True).stdout.strip()


def bench(folder, command, pairs, way, options, with_torch):
    """Medians of every contender, {name: (ratio, seconds, processor seconds, peak)}, and whether the answers agree."""
    ours = lambda out: [command, "rewrite", folder / "in", "-o", out, *options, "-q"]
    ways = {"normscope": ours, "cp": lambda out: ["cp", "-r", folder / "in", out],
            "cp and sync": lambda out: ["sh", "-c", f"cp -r '{folder / 'in'}' '{out}' && sync '{out}'/*"]}
    agrees = None
    if with_torch and way == "fold":
        ways["torch and safetensors"] = script = lambda out: [sys.executable, HERE / "fold.py", folder / "in", out]
        for name, words in (("ours", ours), ("theirs", script)):
            measured(words(folder / name))
        agrees = apart(f"from run import same; from pathlib import Path; "
                       f"print(same(Path({str(folder / 'ours')!r}), Path({str(folder / 'theirs')!r})))") == "True"
        for name in ("ours", "theirs"):
            shutil.rmtree(folder / name)
    runs = {name: [] for name in ways}
    for _ in range(pairs):
        for name, words in ways.items():
            os.sync()
            runs[name].append(measured(words(folder / "out")))
            shutil.rmtree(folder / "out")
    result = {}
    for name, results in runs.items():
        ratio = statistics.median(theirs[0] / mine[0] for theirs, mine in zip(results, runs["normscope"]))
        result[name] = (ratio, *(statistics.median(column) for column in zip(*results)))
    return result, agrees


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="models of about 66 MB in place of 1.1 GB, 2.1 GB in float32")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--models", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--dtypes", nargs="+", choices=("BF16", "F32", "F16"), default=["BF16", "F32", "F16"])
    parser.add_argument("--without-torch", action="store_true", help="leave out the script, and with it the comparison of the answers")
    parser.add_argument("--command", type=Path, default=COMMAND)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows, wrong = [], 0
    print(f"{os.cpu_count()} processors\n\n| model | rewrite | GB | contender | GB/s | ratio | GB per s of processor | peak MB | allowed | agrees |\n"
          f"|---|---|---|---|---|---|---|---|---|---|")
    for model in arguments.models:
        for dtype in arguments.dtypes:
            shape = SHAPES[arguments.quick][model]
            with tempfile.TemporaryDirectory(prefix="normscope-bench-") as scratch:
                folder = Path(scratch)
                apart(f"from model import make_{model}; from pathlib import Path; make_{model}(Path({str(folder / 'in')!r}), *{shape}, {dtype!r})")
                size = sum(path.stat().st_size for path in (folder / "in").glob("*.safetensors"))
                allowed = 3 * shape[1] * max(shape[2], shape[3]) * (4 if dtype == "F32" else 2) + FIXED
                for way, options in WAYS[model].items():
                    with_torch = model == "llama" and not arguments.without_torch
                    result, agrees = bench(folder, arguments.command, arguments.pairs, way, options, with_torch)
                    wrong += agrees is False or result["normscope"][3] > allowed
                    for name, (ratio, wall, processor, peak) in result.items():
                        is_ours = name == "normscope"
                        answer = {None: "", True: "yes", False: "NO"}[agrees if name.startswith("torch") else None]
                        print(f"| {model} {dtype} | {way} | {size / 1e9:.2f} | {name} | {size / wall / 1e9:.2f} | {'' if is_ours else f'{ratio:.2f}'} | "
                              f"{size / processor / 1e9:.2f} | {peak / 1e6:.0f} | {f'{allowed / 1e6:.0f}' if is_ours else ''} | {answer} |", flush=True)
                        rows.append({"task": "rewrite", "model": model, "way": way, "shape": shape, "dtype": dtype, "threads": os.cpu_count(),
                                     "contender": name, "ratio": ratio, "bytes_per_second": size / wall,
                                     "bytes_per_processor_second": size / processor, "peak_bytes": peak, "agrees": agrees is not False})
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

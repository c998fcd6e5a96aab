"""Folds the gains of a Llama of random bfloat16 weights: our command, a script of torch and safetensors, and cp.

usage: scripts/bench rewrite [--quick] [--pairs N] [--without-torch] [--json FILE]

Every contender is a process of its own, and writes a folder of its own that is removed before the next. The answers are
compared first, tensor by tensor and bit by bit. A ratio is the contender's time over ours, the median of paired runs; the
processor time counts both cores, and no disk. Peak memory is the largest resident set.
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
SHAPES = {True: (2, 1024, 2816, 8000), False: (8, 2048, 5632, 32000)}  # layers, width, inner, vocabulary


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
                if not torch.equal(a.get_tensor(key).view(torch.int16), b.get_tensor(key).view(torch.int16)):
                    return False
    return True


def apart(call):
    """Runs a line of this file in a process of its own: what it holds would count as the memory of those started here."""
    return subprocess.run([sys.executable, "-B", "-c", f"import sys; sys.path.insert(0, {str(HERE)!r}); {call}"],
                          check=True, capture_output=True, text=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a model of 66 MB in place of 1.1 GB")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--without-torch", action="store_true", help="leave out the script, and with it the comparison of the answers")
    parser.add_argument("--command", type=Path, default=COMMAND)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    layers, width, inner, vocabulary = SHAPES[arguments.quick]
    with tempfile.TemporaryDirectory(prefix="normscope-bench-") as scratch:
        folder = Path(scratch)
        apart(f"from model import make_llama; from pathlib import Path; "
              f"make_llama(Path({str(folder / 'in')!r}), {layers}, {width}, {inner}, {vocabulary})")
        size = sum(path.stat().st_size for path in (folder / "in").glob("*.safetensors"))
        ways = {
            "normscope": lambda out: [arguments.command, "rewrite", folder / "in", "-o", out, "--fold", "gains", "-q"],
            "torch and safetensors": lambda out: [sys.executable, HERE / "fold.py", folder / "in", out],
            "cp": lambda out: ["cp", "-r", folder / "in", out],
        }
        agrees = True
        if arguments.without_torch:
            ways.pop("torch and safetensors")
        else:
            one, other = (str(folder / name) for name in list(ways)[:2])
            for name in list(ways)[:2]:
                measured(ways[name](folder / name))
            agrees = apart(f"from run import same; from pathlib import Path; print(same(Path({one!r}), Path({other!r})))") == "True"
            for path in (one, other):
                shutil.rmtree(path)
        runs = {name: [] for name in ways}
        for _ in range(arguments.pairs):
            for name, words in ways.items():
                os.sync()
                runs[name].append(measured(words(folder / "out")))
                shutil.rmtree(folder / "out")
        print(f"{size / 1e9:.2f} GB of bfloat16 in {layers + 1} shards, {os.cpu_count()} processors")
        print(f"{'contender':<24} {'GB/s':>7} {'ratio':>7} {'GB per s of processor':>22} {'ratio':>7} {'peak MB':>8}  agrees")
        rows = []
        for name, results in runs.items():
            wall, processor, peak = (statistics.median(column) for column in zip(*results))
            ratios = [statistics.median(theirs[i] / ours[i] for theirs, ours in zip(results, runs["normscope"])) for i in (0, 1)]
            answer = "-" if name == "cp" or arguments.without_torch else "yes" if agrees else "NO"
            print(f"{name:<24} {size / wall / 1e9:>7.2f} {ratios[0]:>7.2f} {size / processor / 1e9:>22.2f} {ratios[1]:>7.2f} "
                  f"{peak / 1e6:>8.0f}  {answer}")
            rows.append({"task": "rewrite", "shape": [layers, width, inner, vocabulary], "dtype": "BF16", "threads": os.cpu_count(),
                         "contender": name, "ratio": ratios[0], "processor_ratio": ratios[1], "bytes_per_second": size / wall,
                         "peak_bytes": peak, "agrees": agrees or name == "cp"})
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if agrees else 1


if __name__ == "__main__":
    sys.exit(main())

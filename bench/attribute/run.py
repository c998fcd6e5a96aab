"""Attributes a logit behind a text of random tokens, in a model of random weights with the shape of GPT-2 small.

usage: scripts/bench attribute [--tokens 256] [--threads 2] [--runs 3] [--json FILE]

Seconds are medians of whole processes, which read the model too; processor seconds are those of all their threads, and depend
less on what else the machine does. The model runs again without a component from its layer on: the time of such a run is
what they add, divided by their number; with them come the path sums and the checks of runs.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench/rewrite"))
from model import make_gpt2  # noqa: E402

SHAPE = (12, 768, 3072, 50257)  # layers, width, inner, vocabulary


def processor_seconds():
    """Of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--command", type=Path, default=ROOT / "build/bin/normscope")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    tokens = ",".join(map(str, np.random.default_rng(1).integers(0, SHAPE[-1], arguments.tokens)))
    with tempfile.TemporaryDirectory(prefix="normscope-bench-") as scratch:
        model, result = Path(scratch) / "in", Path(scratch) / "out.json"
        make_gpt2(model, *SHAPE, "F32")

        def seconds(*options):
            """The median of several runs, elapsed and of the processor, and the result of the last."""
            times = []
            for _ in range(arguments.runs):
                start, used = time.perf_counter(), processor_seconds()
                subprocess.run([arguments.command, "attribute", model, "--tokens", tokens, "--target", "5", "--threads",
                                str(arguments.threads), "-q", "--json", result, *options], check=True)
                times.append((time.perf_counter() - start, processor_seconds() - used))
            return np.median(times, axis=0), json.loads(result.read_text())

        subprocess.run([arguments.command, "trace", model, "--tokens", tokens, "--threads", str(arguments.threads), "-q",
                        "--json", result], check=True)  # so that the first run finds the model in memory
        forward, _ = seconds("--budget", "0", "--most-removed", "0")
        without, _ = seconds("--budget", "0")
        whole, document = seconds()
    runs = sum(component["rerun"] is not None for component in document["components"])
    row = {"task": "attribute", "tokens": arguments.tokens, "threads": arguments.threads, "components": len(document["components"]),
           "runs_without_a_component": runs}
    parts = {"forward_pass_and_closed_forms": forward, "bounds_of_sets": without - forward,
             "such_a_run": (whole - without) / max(1, runs), "whole": whole, "beyond_the_forward_pass": whole - forward}
    for name, value in row.items():
        print(f"{name:30} {value}")
    for name, (elapsed, processor) in parts.items():
        print(f"{name:30} {elapsed:7.2f} s, {processor:7.2f} s of processors")
        row |= {name: elapsed, f"{name}_processor": processor}
    if arguments.json:
        arguments.json.write_text(json.dumps([row], indent=1) + "\n")


if __name__ == "__main__":
    main()

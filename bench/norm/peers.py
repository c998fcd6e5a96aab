#!/usr/bin/env python3
"""Norms through the Python package against peers from PyPI: their time divided by ours, in the same run.

As in bench.hpp: answers are compared before any time is believed; ours and a peer run in turn, and what is told is
the median of the ratios of such pairs, with its quartiles. Where several threads compute, every run comes after a
rest and a run that is not timed, because the threads of some peers spin for a while after a run and occupy our CPUs.
"""

import argparse
import ctypes
import gc
import json
import os
import statistics
import sys
import time
from itertools import repeat

import numpy as np

import peer_normscope
import peer_onnxruntime
import peer_torch
from problem import random_problem

PEERS = (peer_torch, peer_onnxruntime)
# Relative to the largest entry of each result. Of backward dx is compared: the gradients of gain and bias are summed
# in the type of the rows by torch, which accuracy.py shows.
TOLERANCES = {"float32": 1e-5, "bfloat16": 0.02, "float16": 0.003}
TASKS = ("forward", "backward", "residual", "rms", "8 groups")
QUICK = [(1, 64), (1, 4096), (256, 128), (64, 4096)]
SIZES = [(1, 64), (1, 4096), (64, 64), (256, 128), (64, 768), (64, 4096), (16, 16384), (4096, 768), (512, 4096),
         (128, 16384), (65536, 128), (16384, 1024), (4096, 4096), (1024, 16384)]
SIZES_FOR_ALL_THREADS = [(4096, 768), (4096, 4096)]


def keep_memory():
    """Results stay mapped between calls; otherwise peers that allocate them would also pay for page faults."""
    trim_threshold, mmap_threshold = -1, -3
    for option in (mmap_threshold, trim_threshold):
        ctypes.CDLL(None).mallopt(option, 1 << 30)


def agree(task, ours, theirs, tolerance):
    """Within the tolerance, of the first million entries of every result."""
    for one, other in zip(ours[:1], theirs[:1]) if task == "backward" else zip(ours, theirs, strict=True):
        one, other = one.ravel()[: 1 << 20], other.ravel()[: 1 << 20]
        if not (np.abs(one - other) <= tolerance * np.abs(one).max(initial=0.0)).all():
            return False
    return True


def seconds(call, calls, rest):
    if rest:
        time.sleep(rest)
        call()
    start = time.perf_counter()
    for _ in repeat(None, calls):
        call()
    return time.perf_counter() - start


def compare(task, problem, pairs):
    """One row a peer that does the task in that type."""
    rest = 0.02 if problem.threads > 1 else 0.0
    calls = 1 + (1 << 18) // problem.x.size
    rows = []
    for peer in PEERS:
        theirs = peer.TASKS[task](problem) if task in peer.TASKS else None
        if theirs is None:
            continue
        ours = peer_normscope.TASKS[task](problem)
        for run in (ours, theirs):
            run.call()
        agrees = agree(task, ours.answer(), theirs.answer(), TOLERANCES[problem.dtype])
        own, ratios = [], []
        for _ in range(pairs):
            own.append(seconds(ours.call, calls, rest) / calls)
            ratios.append(seconds(theirs.call, calls, rest) / calls / own[-1])
        low, _, high = statistics.quantiles(ratios, n=4)
        rows.append({"task": task, "shape": "{}x{}".format(*problem.x.shape), "dtype": problem.dtype,
                     "threads": problem.threads, "contender": peer.NAME, "ratio": statistics.median(ratios),
                     "ours_ms": 1e3 * statistics.median(own), "agrees": agrees, "low": low, "high": high})
    return rows


def duration(ms):
    """In the unit that gives at least one digit before the point."""
    return f"{1e6 * ms:.0f} ns" if ms < 1e-3 else f"{1e3 * ms:.2f} µs" if ms < 1 else f"{ms:.2f} ms"


def cases(quick):
    """(rows, width, type, threads)"""
    for dtype in TOLERANCES:
        for size in QUICK if quick else SIZES:
            yield *size, dtype, 1
    if not quick and (os.cpu_count() or 1) > 1:
        for dtype in TOLERANCES:
            for size in SIZES_FOR_ALL_THREADS:
                yield *size, dtype, 2


def main():
    parser = argparse.ArgumentParser(description="Benchmark: a peer's time over ours, in the same run")
    parser.add_argument("--json", metavar="FILE", help="also write the rows to FILE")
    parser.add_argument("--append", action="store_true", help="leave the rows that FILE has before them")
    parser.add_argument("--quick", action="store_true", help="small shapes only")
    options = parser.parse_args()

    keep_memory()
    gc.disable()
    print(f"{'task':<12} {'shape':>10} {'dtype':>8} {'threads':>7} {'contender':<24} {'ratio':>10} {'quartiles':>15} "
          f"{'ours':>10}  agrees")
    table = []
    for rows, width, dtype, threads in cases(options.quick):
        problem = random_problem(rows, width, dtype, threads)
        for task in TASKS:
            for row in compare(task, problem, 11 if problem.x.size > 1 << 22 else 25):
                table.append(row)
                quartiles = f"{row['low']:.2f} – {row['high']:.2f}"
                print(f"{task:<12} {row['shape']:>10} {dtype:>8} {threads:>7} {row['contender']:<24} "
                      f"{row['ratio']:>10.2f} {quartiles:>15} {duration(row['ours_ms']):>10}  "
                      f"{'yes' if row['agrees'] else 'NO'}", flush=True)
        gc.collect()
    if options.json:
        before = []
        if options.append:
            with open(options.json, encoding="utf-8") as file:
                before = json.load(file)
        with open(f"{options.json}.part", "w", encoding="utf-8") as file:
            json.dump(before + table, file, indent=1)
            file.write("\n")
        os.replace(f"{options.json}.part", options.json)
    return 0 if all(row["agrees"] for row in table) else 1


if __name__ == "__main__":
    sys.exit(main())

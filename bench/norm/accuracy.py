#!/usr/bin/env python3
"""Errors of LayerNorm on hard rows: ours and its peers, all relative to exact results.

Errors are in units of u (|y − b| + |g|), u the rounding of the type (2⁻²⁴ for float32, 2⁻⁸ for bfloat16); for dx in
units of u times the size of its terms. One unit is what rounding the right answer may cost. Below, the gradients of
gain and bias, summed over thousands of rows: the worst error over the largest entry.
"""

import argparse
import importlib
import json
import os
import sys

import numpy as np

import peer_native
import peer_normscope
from hard_rows import LEAST, exact, hard_rows
from problem import Problem, random_problem

PEERS = ("peer_torch", "peer_onnxruntime")
ROUNDING = {"float32": 2.0**-24, "bfloat16": 2.0**-8}
# A number of every type.
EPS = 2.0**-17
WIDTH = 4096


def worst(got, expected, sizes, dtype):
    """In units of rounding; errors below the least number of the type do not count."""
    if not np.isfinite(got).all():
        return None
    return max(0.0, ((np.abs(got - expected) - LEAST[dtype]) / (ROUNDING[dtype] * sizes)).max())


def answers(contenders, task, problem):
    """{contender: results}, of those that do the task in that type. `contenders` are modules, and at last the program
    of those in C++, whose own kernels, being ours, must answer as the package does: so nothing was lost on the way."""
    *modules, program = contenders
    found = {}
    for contender in modules:
        run = contender.TASKS[task](problem) if task in contender.TASKS else None
        if run is not None:
            run.call()
            found[contender.NAME] = run.answer()
    native = peer_native.answers(program, task, problem)
    here, there = found[peer_normscope.NAME], native.pop(peer_normscope.NAME)
    if not all(np.array_equal(one, other, equal_nan=True) for one, other in zip(here, there, strict=True)):
        sys.exit(f"accuracy: {program} and the Python package disagree on the same {task} rows, expected the same bits")
    return found | native


def on_hard_rows(contenders, dtype):
    names, rows = zip(*hard_rows(WIDTH, dtype).items())
    problem = random_problem(len(rows), WIDTH, dtype, threads=1)
    problem = Problem(np.stack(rows), problem.dy, problem.gain, np.zeros_like(problem.bias), dtype, eps=EPS)
    forward, backward = (answers(contenders, task, problem) for task in ("forward", "backward"))
    for index, name in enumerate(names):
        y, sizes, dx, dx_sizes = exact(problem.x[index], problem.dy[index], problem.gain, EPS)
        for what, results, one, size in (("y", forward, y, sizes), ("dx", backward, dx, dx_sizes)):
            for contender, result in results.items():
                yield {"what": what, "dtype": dtype, "row": name, "contender": contender,
                       "error": worst(result[0][index], one, size, dtype)}


def of_sums(contenders, dtype, rows=4096, width=768):
    problem = random_problem(rows, width, dtype, threads=1)
    x, dy = problem.x.astype(np.longdouble), problem.dy.astype(np.longdouble)
    z = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + np.longdouble(problem.eps))
    expected = {"dgain": (dy * z).sum(0), "dbias": dy.sum(0)}
    for contender, (_, *sums) in answers(contenders, "backward", problem).items():
        for (what, one), got in zip(expected.items(), sums):
            yield {"what": what, "dtype": dtype, "row": f"{rows} ordinary rows", "contender": contender,
                   "error": float((np.abs(got - one)).max() / np.abs(one).max())}


def show(table, what, dtype, unit):
    """One line per row, one column per contender, the worst below."""
    lines = [line for line in table if (line["what"], line["dtype"]) == (what, dtype)]
    columns = list(dict.fromkeys(line["contender"] for line in lines))
    told = lambda name, texts: print(f"{name:<22}" + "".join(f"{text:>{len(column) + 3}}"
                                                             for text, column in zip(texts, columns)))
    print(f"\n{what}, {dtype}, in {unit}")
    told("", columns)
    errors = {(line["row"], line["contender"]): line["error"] for line in lines}
    shown = lambda error: "not finite" if error is None else f"{error:.2g}" if error < 10 else f"{error:.3g}"
    names = list(dict.fromkeys(line["row"] for line in lines))
    for name in names:
        told(name, [shown(errors[name, column]) for column in columns])
    if len(names) > 1:
        every = [[errors[name, column] for name in names] for column in columns]
        told("worst", [shown(None if None in one else max(one)) for one in every])


def main():
    parser = argparse.ArgumentParser(description="Accuracy: worst errors on hard rows, ours beside the peers'")
    parser.add_argument("--native", metavar="PROGRAM", required=True, help="bench_norm, which has the peers in C++")
    parser.add_argument("--without-python", action="store_true", help="leave out the peers in Python")
    parser.add_argument("--json", metavar="FILE", help="also write the errors to FILE; null where not finite")
    options = parser.parse_args()
    peers = [] if options.without_python else [importlib.import_module(name) for name in PEERS]
    contenders = [peer_normscope, *peers, options.native]
    print(f"LayerNorm of width {WIDTH} with a gain")
    table = []
    for dtype in ROUNDING:
        table += [*on_hard_rows(contenders, dtype), *of_sums(contenders, dtype)]
        for what in ("y", "dx"):
            show(table, what, dtype, "roundings")
        for what in ("dgain", "dbias"):
            show(table, what, dtype, "parts of the largest entry")
    if options.json:
        with open(f"{options.json}.part", "w", encoding="utf-8") as file:
            json.dump(table, file, indent=1)
            file.write("\n")
        os.replace(f"{options.json}.part", options.json)


if __name__ == "__main__":
    main()

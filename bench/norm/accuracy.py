#!/usr/bin/env python3
"""How wrong LayerNorm gets on hard rows: ours beside the peers that live on PyPI, all against exact answers.

Errors are in units of u (|y − b| + |g|), u the rounding of the type (2⁻²⁴ for float32, 2⁻⁸ for bfloat16); for dx in
units of u times the size of its terms. One unit is what rounding the right answer may cost. Below, the gradients of
gain and bias, summed over thousands of rows: the worst error over the largest entry.
"""

import argparse
import json
import os

import numpy as np

import peer_normscope
import peer_onnxruntime
import peer_torch
from hard_rows import LEAST, exact, hard_rows
from problem import Problem, random_problem

CONTENDERS = (peer_normscope, peer_torch, peer_onnxruntime)
ROUNDING = {"float32": 2.0**-24, "bfloat16": 2.0**-8}
# A number of every type.
EPS = 2.0**-17
WIDTH = 4096


def worst(got, expected, sizes, dtype):
    """In units of rounding; what the least number of the type rounds away is not counted."""
    if not np.isfinite(got).all():
        return None
    return max(0.0, ((np.abs(got - expected) - LEAST[dtype]) / (ROUNDING[dtype] * sizes)).max())


def answers(task, problem):
    """{contender: results}, of those that do the task in that type."""
    found = {}
    for contender in CONTENDERS:
        run = contender.TASKS[task](problem) if task in contender.TASKS else None
        if run is not None:
            run.call()
            found[contender.NAME] = run.answer()
    return found


def on_hard_rows(dtype):
    names, rows = zip(*hard_rows(WIDTH, dtype).items())
    problem = random_problem(len(rows), WIDTH, dtype, threads=1)
    problem = Problem(np.stack(rows), problem.dy, problem.gain, np.zeros_like(problem.bias), dtype, eps=EPS)
    forward, backward = answers("forward", problem), answers("backward", problem)
    for index, name in enumerate(names):
        y, sizes, dx, dx_sizes = exact(problem.x[index], problem.dy[index], problem.gain, EPS)
        for what, results, one, size in (("y", forward, y, sizes), ("dx", backward, dx, dx_sizes)):
            for contender, result in results.items():
                yield {"what": what, "dtype": dtype, "row": name, "contender": contender,
                       "error": worst(result[0][index], one, size, dtype)}


def of_sums(dtype, rows=4096, width=768):
    problem = random_problem(rows, width, dtype, threads=1)
    x, dy = problem.x.astype(np.longdouble), problem.dy.astype(np.longdouble)
    z = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + np.longdouble(problem.eps))
    expected = {"dgain": (dy * z).sum(0), "dbias": dy.sum(0)}
    for contender, (_, *sums) in answers("backward", problem).items():
        for (what, one), got in zip(expected.items(), sums):
            yield {"what": what, "dtype": dtype, "row": f"{rows} ordinary rows", "contender": contender,
                   "error": float((np.abs(got - one)).max() / np.abs(one).max())}


def show(table, what, dtype, unit):
    """One line a row, one column a contender, the worst below."""
    lines = [line for line in table if (line["what"], line["dtype"]) == (what, dtype)]
    columns = list(dict.fromkeys(line["contender"] for line in lines))
    print(f"\n{what}, {dtype}, in {unit}\n{'':<24}" + "".join(f"{column:>20}" for column in columns))
    errors = {(line["row"], line["contender"]): line["error"] for line in lines}
    shown = lambda error: "not finite" if error is None else f"{error:.2g}" if error < 10 else f"{error:.3g}"
    names = list(dict.fromkeys(line["row"] for line in lines))
    for name in names:
        print(f"{name:<24}" + "".join(f"{shown(errors[name, column]):>20}" for column in columns))
    if len(names) > 1:
        every = [[errors[name, column] for name in names] for column in columns]
        print(f"{'worst':<24}" + "".join(f"{shown(None if None in one else max(one)):>20}" for one in every))


def main():
    parser = argparse.ArgumentParser(description="Accuracy: worst errors on hard rows, ours beside the peers'")
    parser.add_argument("--json", metavar="FILE", help="also write the errors to FILE; null where not finite")
    options = parser.parse_args()
    print(f"LayerNorm of width {WIDTH} with a gain")
    table = []
    for dtype in ROUNDING:
        table += [*on_hard_rows(dtype), *of_sums(dtype)]
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

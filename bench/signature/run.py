"""The ellipse of logits from outputs alone: time over width, compared to a dense solve, and the effect of noise on the axes.

usage: scripts/bench signature [--quick] [--widths D1,D2,...] [--no-noise] [--cross] [--figure FILE] [--json FILE]

Outputs are float32 logits of random unembeddings (2 D tokens) behind an RMSNorm whose gains are drawn from those of
models/wordlist_gpt, at inputs with an uneven covariance: twice as many rows as an ellipse has unknowns. The dense solve
is NumPy's least squares with one column for each unknown. Seconds are those of all processors together. Semi-axes are compared with the singular values of the weights.
The default widths are 32 to 256; --widths 64,128,256,384,512,768 is the whole table, which needs 8 GB of memory and
4 GB of disk. With --json, it can be run in parts. --cross is a table of its own: see cross.py.
"""

import argparse
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Threads of the dense solve wait by spinning, which would count as processor time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np  # noqa: E402

import cross  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
BLOCK = 4096
DENSE = 96  # the largest width of the dense solve
FACTORS = (1.1, 2, 8, 32)  # rows over unknowns, in the table of noise


def real_gains():
    data = (ROOT / "models/wordlist_gpt/model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    entry = next(value for name, value in header.items() if name.endswith("ln_f.weight"))
    begin, end = entry["data_offsets"]
    return np.frombuffer(data[8 + length + begin:8 + length + end], np.float32).astype(float)


class Model:
    def __init__(self, width, tokens, seed=1):
        self.rng = np.random.default_rng(seed)
        self.width, self.tokens = width, tokens
        gain = self.rng.choice(real_gains(), width)
        unembedding = self.rng.normal(size=(tokens, width)) / np.sqrt(width)
        self.matrix = np.sqrt(width) * unembedding * gain
        self.spread = (1.0 + np.arange(width)) ** -0.3
        self.axes = np.linalg.svd(self.matrix - self.matrix.mean(0), compute_uv=False)

    def outputs(self, rows):
        hidden = self.spread * (self.rng.normal(size=(rows, self.width)) + 0.3)
        return hidden / np.linalg.norm(hidden, axis=1, keepdims=True) @ self.matrix.T

    def write(self, path, rows, change=lambda logits: logits, dtype=np.float32):
        """Block by block, so that the whole is never in memory."""
        array = np.lib.format.open_memmap(path, "w+", dtype, (rows, self.tokens))
        for begin in range(0, rows, BLOCK):
            end = min(rows, begin + BLOCK)
            array[begin:end] = change(self.outputs(end - begin))
        array.flush()


def unknowns(width):
    return width * (width + 3) // 2


def bfloat16(logits):
    bits = logits.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def extract(command, folder, options=()):
    """The document of an extraction and its processor time; the command's status is 1 where no ellipse fits."""
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    words = [command, "signature", "extract", "x.npy", "-o", "e.safetensors", "--json", "e.json", "-q", *options]
    status = subprocess.run([str(word) for word in words], cwd=folder).returncode
    if status not in (0, 1):
        sys.exit(f"bench: normscope signature extract failed with status {status}")
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime
    return json.loads((folder / "e.json").read_text()), seconds


def axis_errors(found, model):
    if found["ellipse"] is None:
        return None
    axes = np.array(found["ellipse"]["semi_axes"])
    return np.abs(axes / model.axes[:len(axes)] - 1)


def dense(logits, width):
    """Processor time of the least squares with a column for each unknown, and the semi-axes that it finds."""
    begin = time.process_time()
    centred = logits.astype(float) - logits.mean(1, keepdims=True, dtype=float)
    middle = centred.mean(0)
    basis = np.linalg.svd(centred[:4 * width] - middle, full_matrices=False)[2][:width]
    y = (centred - middle) @ basis.T
    scale, turn = np.linalg.eigh(np.cov(y.T))
    x = y @ turn / np.sqrt(scale)
    first, second = np.triu_indices(width)
    columns = np.concatenate([x[:, first] * x[:, second], x], 1)
    solution = np.linalg.lstsq(columns, np.ones(len(x)), rcond=None)[0]
    matrix = np.zeros((width, width))
    matrix[first, second] = solution[:len(first)] / 2
    matrix += matrix.T
    centre = -0.5 * np.linalg.solve(matrix, solution[len(first):])
    root = np.linalg.cholesky(matrix / (1 + centre @ matrix @ centre))
    return time.process_time() - begin, np.linalg.svd(np.sqrt(scale)[:, None] * np.linalg.inv(root).T, compute_uv=False)


def fitted(table, name):
    """The exponent of time over width, and the widths that it is fitted to."""
    # Below about a second, the start of the process is a large part of the time.
    of = [row for row in table if row["width"] >= (64 if name == "seconds" else 32) and name in row]
    logs = [np.log([row[what] for row in of]) for what in ("width", name)]
    return (np.polyfit(*logs, 1)[0], of[0]["width"], of[-1]["width"]) if len(of) > 1 else None


def growth(command, folder, widths, table, keep):
    """Appends a row for each width that the table lacks, and calls `keep` after each."""
    print(f"{'width':>6} {'rows':>8} {'rounds':>7} {'seconds':>8} {'worst axis':>11} {'median':>9} {'stated':>9} {'dense s':>8} {'dense worst':>11}")
    for width in widths:
        if width in [row["width"] for row in table]:
            continue
        model = Model(width, 2 * width)
        rows = 2 * unknowns(width)
        model.write(folder / "x.npy", rows)
        found, seconds = extract(command, folder)
        errors = axis_errors(found, model)
        row = {"width": width, "rows": rows, "rounds": found["rounds"], "seconds": seconds, "worst": errors.max(),
               "median": float(np.median(errors)), "stated": max(found["ellipse"]["errors"])}
        if width <= DENSE:
            row["dense_seconds"], axes = dense(np.load(folder / "x.npy"), width)
            row["dense_worst"] = np.abs(axes / model.axes[:width] - 1).max()
        table.append({name: float(value) for name, value in row.items()})
        beside = f"{row['dense_seconds']:8.2f} {row['dense_worst']:11.1e}" if width <= DENSE else f"{'-':>8} {'-':>11}"
        print(f"{width:6} {rows:8} {found['rounds']:7} {seconds:8.2f} {row['worst']:11.1e} {row['median']:9.1e} {row['stated']:9.1e} {beside}", flush=True)
        table.sort(key=lambda row: row["width"])
        keep()


def log_probabilities(logits):
    logits = logits.astype(float) - logits.max(1, keepdims=True)
    return logits - np.log(np.exp(logits).sum(1, keepdims=True))


def harm(model, change, dtype, options):
    """What a change of the outputs costs their user: the mean divergence in nats and the share of other first tokens."""
    logits = model.outputs(2000)
    changed = change(logits).astype(dtype).astype(float)
    if "--temperature" in options:  # which the user asked for
        changed = changed * float(options[1])
    before, after = log_probabilities(logits), log_probabilities(changed)
    return float((np.exp(before) * (before - after)).sum(1).mean()), float((before.argmax(1) != after.argmax(1)).mean())


def noise(command, folder, width, tokens):
    """Errors of the axes for less precise outputs and more rows, and what these outputs cost their user."""
    model = Model(width, tokens)
    size = np.abs(model.outputs(200)).mean()
    normal = lambda part: lambda logits: logits + part * size * model.rng.normal(size=logits.shape)
    rank = ("--rank", str(width))
    cases = [
        ("float64", lambda x: x, np.float64, ()),
        ("float32", lambda x: x, np.float32, ()),
        ("float32, temperature 0.7", lambda x: x / 0.7, np.float32, ("--temperature", "0.7")),
        ("float16", lambda x: x, np.float16, ()),
        ("bfloat16", bfloat16, np.float32, ()),
        ("two decimals", lambda x: np.round(x, 2), np.float32, rank),
        ("noise of 0.1 %", normal(1e-3), np.float32, rank),
        ("noise of 1 %", normal(1e-2), np.float32, rank),
        ("noise of 10 %", normal(1e-1), np.float32, rank),
        ("soft cap of twice the mean size, not undone", lambda x: 2 * size * np.tanh(x / (2 * size)), np.float32, rank),
        ("the same, undone", lambda x: 2 * size * np.tanh(x / (2 * size)), np.float64, ("--soft-cap", repr(float(2 * size)))),
    ]
    print(f"\nwidth {width}, {tokens} tokens, mean size of a logit {size:.3g}; errors of semi-axes: median, worst; cost to users")
    table = []
    for name, change, dtype, options in cases:
        cells = []
        divergence, other = harm(model, change, dtype, options)
        for factor in FACTORS:
            rows = round(factor * unknowns(width))
            model.write(folder / "x.npy", rows, change, dtype)
            done = subprocess.run([str(command), "signature", "extract", "x.npy", "-o", "e.safetensors", "--json", "e.json", "-q", *options],
                                  cwd=folder, capture_output=True, text=True)
            entry = {"noise": name, "rows": rows, "divergence": divergence, "other_first": other}
            if done.returncode == 3:
                cells.append("refused")
                entry["refused"] = done.stderr.strip().split(": ", 2)[-1]
            else:
                found = json.loads((folder / "e.json").read_text())
                errors = axis_errors(found, model)
                if errors is None:
                    cells.append(f"no ellipse (rank {found['rank']})")
                else:
                    drowned = found["ellipse"]["drowned"]
                    cells.append(f"{np.median(errors):.1e} {errors.max():.1e}, {drowned} drowned")
                    entry |= {"rank": found["rank"], "median": float(np.median(errors)), "worst": float(errors.max()), "drowned": drowned}
            table.append(entry)
        found = " | ".join(f"{factor} x: {text:28}" for factor, text in zip(FACTORS, cells))
        print(f"{name:45} | {found} | {divergence:.1e} nats, {other:6.2%} first tokens", flush=True)
    return table


def figure(table):
    """Time against width on logarithmic axes, with the fitted powers of the width as lines."""
    axis = lambda field, title, **how: {"field": field, "type": "quantitative", "title": title, "axis": how,
                                        "scale": {"type": "log", "nice": False, "padding": 10}}
    widths = [32 * 2**k for k in range(6) if 32 * 2**k <= max(row["width"] for row in table)]
    points, lines = [], []
    for name, series in (("seconds", "normscope"), ("dense_seconds", "dense least squares")):
        fit = fitted(table, name)
        label = f"{series}, width^{fit[0]:.1f}" if fit else series
        of = [row for row in table if name in row]
        points += [{"series": label, "width": row["width"], "seconds": row[name]} for row in of]
        if fit:
            middle = [row for row in of if fit[1] <= row["width"] <= fit[2]]
            scale = np.exp(np.mean([np.log(row[name]) - fit[0] * np.log(row["width"]) for row in middle]))
            lines += [{"series": label, "width": width, "seconds": scale * width ** fit[0]} for width in fit[1:]]
    encoding = {"x": axis("width", "width of the model", values=widths), "y": axis("seconds", "processor seconds", tickCount=5),
                "color": {"field": "series", "type": "nominal", "title": None, "legend": {"orient": "top-left", "labelLimit": 0}}}
    layer = lambda mark, values: {"data": {"values": values}, "mark": mark, "encoding": encoding}
    return {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "title": "Time to find an ellipse from outputs alone",
            "width": 520, "height": 320, "layer": [layer({"type": "line", "strokeDash": [4, 4]}, lines),
                                                   layer({"type": "point", "filled": True, "size": 60}, points)]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="widths 16, 32 and 64 alone, and a small table of noise")
    parser.add_argument("--widths", type=lambda text: [int(part) for part in text.split(",")])
    parser.add_argument("--no-noise", action="store_true", help="leave out the table of noise")
    parser.add_argument("--cross", action="store_true", help="the cross table of models and outputs alone")
    parser.add_argument("--command", type=Path, default=ROOT / "build/bin/normscope")
    parser.add_argument("--figure", type=Path, help="write time against width as a Vega-Lite figure")
    parser.add_argument("--json", type=Path, help="results, written after each width; widths that the file has already are not run again")
    arguments = parser.parse_args()
    widths = arguments.widths or ([16, 32, 64] if arguments.quick else [32, 64, 96, 128, 256])
    command = arguments.command.resolve()
    with tempfile.TemporaryDirectory(prefix="normscope-bench-") as scratch:
        if arguments.cross:
            document = cross.cross(command, Path(scratch))
            if arguments.json:
                arguments.json.write_text(json.dumps(document, indent=1) + "\n")
            return
        document = json.loads(arguments.json.read_text()) if arguments.json and arguments.json.exists() else {}
        table = document.setdefault("growth", [])

        def keep():
            fits = {name: fitted(table, name) for name in ("seconds", "dense_seconds")}
            document["exponents"] = {name: fit[0] for name, fit in fits.items() if fit}
            if arguments.json:
                arguments.json.write_text(json.dumps(document, indent=1) + "\n")
            if arguments.figure:
                arguments.figure.write_text(json.dumps(figure(table), indent=1) + "\n")
            return fits

        growth(command, Path(scratch), widths, table, keep)
        for name, fit in keep().items():
            if fit:
                who = "ours" if name == "seconds" else "dense"
                print(f"{who}: time grows as width^{fit[0]:.2f} over {fit[1]:.0f} to {fit[2]:.0f}")
        if not arguments.no_noise:
            document["noise"] = noise(command, Path(scratch), 16 if arguments.quick else 48, 200)
            keep()


if __name__ == "__main__":
    main()

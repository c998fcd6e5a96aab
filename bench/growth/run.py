"""Time and memory of the command over four sizes each: how they grow, and how far they are from what the hardware allows.

usage: scripts/bench growth [--quick] [--tasks report heads ...] [--command PATH] [--json FILE] [--page docs/speed.md]

Every number is that of a whole process, the median of up to three runs; exponents are least squares of logarithms. The
limit is the largest of three times that a task cannot avoid: its bytes read once from the page cache (`cat`), or copied to
the disk (`cp` and `sync`), and its operations at the rate of NumPy's matrix product, on all processors, measured in the
same run. Models are Llamas of random weights in bfloat16. --page writes the table and the figure into the section Growth of a
page; the figure needs `explorer/node_modules/.bin/vl2svg`.
"""

import argparse
import importlib.util
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent


def bench(task, module="run"):
    """A file of another benchmark."""
    sys.path.insert(0, str(ROOT / "bench" / task))
    specification = importlib.util.spec_from_file_location(f"{task}_{module}", ROOT / "bench" / task / f"{module}.py")
    loaded = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(loaded)
    return loaded


apart = bench("rewrite").apart
models = bench("rewrite", "model")
heads = bench("heads")
signature = bench("signature")

LLAMA = (2048, 5632, 4000)  # width, inner, vocabulary
GPT2 = (6, 256, 1024, 8000)  # layers, width, inner, vocabulary
DIM, WIDTH = 64, 768  # of the heads


def measured(*words):
    """Elapsed and processor time in seconds, and peak memory in bytes, of a process that a small one starts: that of this one would count."""
    return json.loads(apart(f"import json; from run import measured; print(json.dumps(measured({list(map(str, words))!r})))"))


def rate_of_products(dtype, side=2048):
    """Operations a second of a matrix product on all processors."""
    a = np.random.default_rng(1).standard_normal((side, side)).astype(dtype)
    a @ a
    times = []
    for _ in range(5):
        start = time.perf_counter()
        a @ a
        times.append(time.perf_counter() - start)
    return 2 * side**3 / statistics.median(times)


class Bench:
    """The folder of the inputs, the command, and the rates of the machine."""

    def __init__(self, folder, command):
        self.folder, self.command, self.llamas = folder, command, {}
        self.rates = {"float32": rate_of_products(np.float32), "float64": rate_of_products(np.float64)}

    def llama(self, layers):
        """The folder of a model, and its bytes. Reading and copying are measured with the first."""
        if layers not in self.llamas:
            path = self.folder / f"llama-{layers}"
            size = models.make_llama(path, layers, *LLAMA)
            if not self.llamas:
                self.rates["reading"] = size / self.read(path)
                self.rates["copying"] = size / self.copy(path)
            self.llamas[layers] = path, size
        return self.llamas[layers]

    def read(self, *folders):
        return statistics.median(measured("cat", *(path for folder in folders for path in folder.glob("*.safetensors")))[0] for _ in range(3))

    def copy(self, path):
        new = self.folder / "copy"
        os.sync()
        seconds = measured("sh", "-c", f"cp -r '{path}' '{new}' && sync '{new}'/*")[0]
        subprocess.run(["rm", "-r", new], check=True)
        return seconds

    def run(self, *words, before=lambda: None, status=0):
        """Medians of the elapsed time, the processor time and the peak memory of up to three runs, 3 s together."""
        words = self.command, *words
        if status:  # of a run that succeeds
            words = "sh", "-c", f'"$@"; [ $? = {status} ]', "sh", *words
        runs = []
        while len(runs) < 3 and sum(run[0] for run in runs) < 3:
            before()
            runs.append(measured(*words, "-q"))
        return dict(zip(("wall", "processor", "memory"), map(statistics.median, zip(*runs))))


# Each of a size gives what was measured, what the limit counts, and the seconds of a peer where there is one.

def report(run, layers):
    model, size = run.llama(layers)
    return run.run("report", model, "--no-vocabulary", "-o", run.folder / "page.html") | {"reading": size, "peer": run.read(model)}


def ranges(run, layers):
    model, size = run.llama(layers)
    return run.run("ranges", model) | {"reading": size, "peer": run.read(model)}


def rewrite(run, layers):
    model, size = run.llama(layers)
    new = run.folder / "new"
    clear = lambda: (subprocess.run(["rm", "-rf", new], check=True), os.sync())
    return run.run("rewrite", model, "-o", new, "--fold", "gains", before=clear) | {"copying": size, "peer": run.copy(model)}


def compare(run, layers):
    model, size = run.llama(layers)
    new = run.folder / "new"
    subprocess.run(["rm", "-rf", new], check=True)
    measured(run.command, "rewrite", model, "-o", new, "--fold", "gains", "-q")
    return run.run("compare", model, new, "--json", run.folder / "compare.json") | {"reading": 2 * size, "peer": run.read(model, new)}


def factorizations(number, positions):
    """Operations of one Cholesky factorization for each distance and head."""
    return number * positions * DIM**3 / 3


def bounds(run, positions):
    folder = run.folder / f"heads-{positions}"
    folder.mkdir(exist_ok=True)
    number = heads.write(folder, DIM, WIDTH, positions, True)
    return folder, folder / "heads.json", factorizations(number, positions)


def heads_of(run, positions):
    folder, _, work = bounds(run, positions)
    return run.run("heads", folder) | {"float32": work}


def verify(run, positions):
    folder, result, work = bounds(run, positions)
    made, _, _ = measured(run.command, "heads", folder, "--proofs", "--json", result, "-q")
    # The curves of distances have no proof, so that status 4 is the best.
    return run.run("verify", result, status=4) | {"float64": work, "peer": made}


def reach(run, tokens, width=256):
    """Rows whose lengths differ as e^(N/2): then many tokens do not lead in the direction of their own row."""
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((tokens, width)) * np.exp(0.5 * rng.standard_normal((tokens, 1)))
    np.save(run.folder / "rows.npy", rows.astype(np.float32))
    rows = rows.astype(np.float32)
    start = time.perf_counter()
    for first in range(0, tokens, 1024):
        rows[first:first + 1024] @ rows.T
    product = time.perf_counter() - start
    return run.run("reach", "--unembedding", run.folder / "rows.npy", "--norm", "rms", "--probability", "quick", "--sharpen", "0") | {
        "float32": 2 * tokens**2 * width, "peer": product}


def signature_of(run, width):
    model = signature.Model(width, 2 * width)
    rows = 2 * signature.unknowns(width)
    model.write(run.folder / "outputs.npy", rows)
    row = run.run("signature", "extract", run.folder / "outputs.npy", "-o", run.folder / "ellipse.safetensors")
    if width <= 64:
        row["peer"] = signature.dense(np.load(run.folder / "outputs.npy"), width)[0]
    # Their coordinates in a basis of the outputs, which needs each of them once.
    return row | {"float64": 2 * rows * 2 * width * width}


def attribute(run, tokens):
    layers, width, inner, vocabulary = GPT2
    model, result = run.folder / "gpt2", run.folder / "attribute.json"
    if not model.exists():
        models.make_gpt2(model, *GPT2, "F32")
    text = ",".join(map(str, np.random.default_rng(1).integers(0, vocabulary, tokens)))
    row = run.run("attribute", model, "--tokens", text, "--target", "5", "--most-removed", "0", "--json", result)
    again = sum(component["rerun"] is not None for component in json.loads(result.read_text())["components"])
    passed = 2 * tokens * layers * (4 * width * width + 2 * width * inner + tokens * width)
    # A run without a component begins at its layer, half of the model in the mean.
    return row | {"float64": passed * (1 + again / 2)}


# Task, what grows, sizes, function, the limit, the peer in the same run.
TASKS = {
    "report": ("layers of 0.1 GB", (1, 2, 4, 8), report, "its file read once", "`cat`"),
    "heads": ("positions", (1024, 2048, 4096, 8192), heads_of, "one Cholesky factorization a distance", ""),
    "reach": ("tokens", (2000, 4000, 8000, 16000), reach, "one product A Aᵀ", "A Aᵀ, NumPy"),
    "ranges": ("layers of 0.1 GB", (1, 2, 4, 8), ranges, "its file read once", "`cat`"),
    "compare": ("layers of 0.1 GB", (1, 2, 4, 8), compare, "both files read once", "`cat`"),
    "rewrite": ("layers of 0.1 GB", (1, 2, 4, 8), rewrite, "its file copied to the disk", "`cp` and `sync`"),
    "verify": ("positions", (1024, 2048, 4096, 8192), verify, "one Cholesky factorization a distance", "`heads`, which it checks"),
    "signature": ("width", (32, 64, 96, 128), signature_of, "the outputs' coordinates", "dense least squares, NumPy"),
    "attribute": ("tokens", (32, 64, 128, 256), attribute, "its forward passes", ""),
}


def exponent(rows, name):
    return np.polyfit(np.log([row["size"] for row in rows]), np.log([row[name] for row in rows]), 1)[0]


def number(value):
    """Two digits, without an exponent."""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def table(results):
    """A line for each task."""
    lines = ["| task | over | elapsed, s | processor, s | peak memory, MB | time grows as | memory as | limit | times the limit | peer, s |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for task, rows in results.items():
        grows, _, _, limit, peer = TASKS[task]
        column = lambda name, unit=1: " · ".join(number(row[name] / unit) if name in row else "" for row in rows)
        beside = f"{peer}: {column('peer').rstrip(' ·')}" if peer else ""
        lines.append(f"| {task} | {' · '.join(format(row['size'], ',') for row in rows)} {grows} | {column('wall')} | {column('processor')} | "
                     f"{column('memory', 1e6)} | size^{exponent(rows, 'wall'):.2f} | size^{exponent(rows, 'memory'):.2f} | "
                     f"{limit}: {number(rows[-1]['limit'])} s | {number(rows[-1]['wall'] / rows[-1]['limit'])} | {beside} |")
    return "\n".join(lines)


def figure(results):
    """Elapsed time over the limit against the size over the smallest one, on logarithmic axes: level where time grows as the limit."""
    points = [{"task": task, "size": row["size"] / rows[0]["size"], "ratio": row["wall"] / row["limit"]} for task, rows in results.items() for row in rows]
    axis = lambda field, title, **how: {"field": field, "type": "quantitative", "title": title, "scale": {"type": "log"}, "axis": how}
    encoding = {"x": axis("size", "size over the smallest one", values=[1, 2, 4, 8]), "y": axis("ratio", "times the limit", tickCount=5),
                "color": {"field": "task", "type": "nominal", "title": None, "sort": list(results)}}
    return {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "title": "Elapsed time over what the hardware allows",
            "width": 520, "height": 320, "data": {"values": points}, "encoding": encoding,
            "layer": [{"mark": {"type": "line"}}, {"mark": {"type": "point", "filled": True, "size": 60}}]}


def processor():
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    family = re.search(r"^cpu family\s*:\s*(\d+)$", Path("/proc/cpuinfo").read_text(), re.M)
    return f"{os.cpu_count()} processors, {found[1] if found else platform.machine()}" + (f", family {family[1]}" if family else "")


def machine(rates):
    return (f"{processor()}; `cat` reads {rates['reading'] / 1e9:.1f} GB/s, `cp` and `sync` copy {rates['copying'] / 1e9:.2f} GB/s, products make "
            f"{rates['float32'] / 1e9:.0f} billion operations a second in float32 and {rates['float64'] / 1e9:.0f} in float64")


def write_page(page, text, results):
    """Replaces what is between the marks of the section, and draws the figure."""
    images, draw = page.parent / "images", ROOT / "explorer/node_modules/.bin/vl2svg"
    specification = json.dumps(figure(results), indent=1) + "\n"
    (images / "growth.vl.json").write_text(specification)
    if draw.exists():
        (images / "growth.svg").write_text(subprocess.run([draw], input=specification, capture_output=True, text=True, check=True).stdout)
        text += "\n![Elapsed time over the limit against the size over the smallest one, a line for each task](images/growth.svg)\n"
    else:
        print(f"bench: no figure without {draw} (npm --prefix explorer ci)", file=sys.stderr)
    begin, end = "<!-- scripts/bench growth -->\n", "<!-- end of the table -->"
    before, _, rest = page.read_text().partition(begin)
    if end not in rest:
        sys.exit(f"bench: {page}: expected a line {begin.strip()} and after it {end}")
    page.write_text(before + begin + text + rest[rest.index(end):])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="the two smallest sizes of each")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--command", type=Path, default=ROOT / "build/bin/normscope")
    parser.add_argument("--json", type=Path, help="results, written after each task; tasks that the file has already are not run again")
    parser.add_argument("--page", type=Path, help="the page whose section Growth gets the table")
    arguments = parser.parse_args()
    known = json.loads(arguments.json.read_text()) if arguments.json and arguments.json.exists() else {}
    results = known.get("tasks", {})
    with tempfile.TemporaryDirectory(prefix="normscope-bench-") as scratch:
        run = Bench(Path(scratch), arguments.command.resolve())
        run.llama(TASKS["report"][1][0])
        for task in arguments.tasks:
            if task in results:
                continue
            _, sizes, of, _, _ = TASKS[task]
            results[task] = []
            for size in sizes[:2] if arguments.quick else sizes:
                row = {"size": size} | of(run, size)
                row["limit"] = max(row[what] / rate for what, rate in run.rates.items() if what in row)
                results[task].append(row)
                print(f"{task:10} {size:6} {row['wall']:8.2f} s {row['processor']:8.2f} s of processors {row['memory'] / 1e6:6.0f} MB, "
                      f"{row['wall'] / row['limit']:7.1f} times the limit", flush=True)
            known = {"rates": run.rates, "tasks": results}
            if arguments.json:
                arguments.json.write_text(json.dumps(known, indent=1) + "\n")
    results = {task: results[task] for task in TASKS if task in results}
    text = f"{machine(known['rates'])}:\n\n{table(results)}\n"
    print("\n" + text)
    if arguments.page:
        write_page(arguments.page, text, results)


if __name__ == "__main__":
    main()

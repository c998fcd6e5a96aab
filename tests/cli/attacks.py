"""Attacks on the command, each a function of a random generator: failing system calls, kills, loss of
power, extreme values, models with extreme weights.

`attack_test.py` and `disk_attack_test.py` run a few of each with every build, `scripts/attack` as many as there is time
for. A function returns how many runs it made, and raises Broken with what happened where a promise does not hold.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

import random_models
from command import COMMAND, OWN_MODEL, SOURCE, safetensors

sys.path.append(str(SOURCE / "python/normscope"))
import model_checker

SHIM = os.environ.get("NORMSCOPE_SHIM", "")
DOCUMENTED = (0, 1, 3, 4)


class Broken(AssertionError):
    pass


def require(holds, *context):
    if not holds:
        raise Broken(" ".join(map(str, context)))


def make_inputs(folder):
    """Small inputs of every subcommand."""
    numbers = np.random.default_rng(7)
    np.save(folder / "x.npy", numbers.normal(size=(7, 3)))
    np.save(folder / "y.npy", numbers.normal(size=(5, 3)) + 4)
    np.save(folder / "labels.npy", np.array([0, 1, 0, 1, 1, 0, 1]))
    np.save(folder / "w.npy", numbers.normal(size=(9, 3)))
    np.savez_compressed(folder / "z.npz", x=numbers.normal(size=(4, 3)))
    safetensors(folder / "m.safetensors", {"norm.weight": np.ones(8, np.float32), "norm.bias": np.zeros(8, np.float32)})
    subprocess.run([COMMAND, "nets", "build", "x.npy", "labels.npy", "-o", "net.safetensors", "-q"], cwd=folder, check=True)
    subprocess.run([COMMAND, "select", "x.npy", "--json", "select.json", "-q"], cwd=folder, check=True)


# A subcommand on these inputs, and the files it writes.
COMMANDS = {
    "report": (["report", "m.safetensors", "-o", "o.html", "--json", "o.json"], ["o.html", "o.json"]),
    "inspect": (["inspect", "m.safetensors", "--json", "o.json"], ["o.json"]),
    "geometry": (["geometry", "--gain", "1,2,0.5", "--axes", "2", "--json", "o.json"], ["o.json"]),
    "apply": (["apply", "z.npz:x", "-o", "o.npy", "--json", "o.json"], ["o.npy", "o.json"]),
    "curvature": (["curvature", "x.npy", "--rows-out", "o.npy", "--json", "o.json"], ["o.npy", "o.json"]),
    "select": (["select", "x.npy", "--exact", "--json", "o.json"], ["o.json"]),
    "separate": (["separate", "x.npy", "y.npy", "--exact", "--json", "o.json"], ["o.json"]),
    "reach": (["reach", "--unembedding", "w.npy", "--json", "o.json"], ["o.json"]),
    "verify": (["verify", "select.json", "x.npy", "--json", "o.json"], ["o.json"]),
    "build": (["nets", "build", "x.npy", "labels.npy", "-o", "o.safetensors", "--folds", "o.jsonl"],
              ["o.safetensors", "o.jsonl"]),
    "run": (["nets", "run", "net.safetensors", "x.npy", "-o", "o.npy", "--trace", "o2.npy"], ["o.npy", "o2.npy"]),
    "train": (["nets", "train", "xor", "--rows", "8", "--steps", "4", "-o", "o.safetensors"], ["o.safetensors"]),
    "count": (["nets", "count", "--up-to", "5", "-n", "5", "--json", "o.json", "--states", "o2.json"], ["o.json", "o2.json"]),
    "ranges": (["ranges", "m.safetensors", "--json", "o.json"], ["o.json"]),
    "heads": (["heads", "m.safetensors", "--json", "o.json"], ["o.json"]),
    "rewrite": (["rewrite", str(OWN_MODEL / "model.safetensors"), "--center", "-o", "o.safetensors"], ["o.safetensors"]),
    "help": (["--help"], []),
    "attribute": (["attribute", str(OWN_MODEL), "--tokens", "1,2,3", "--target", "4", "--most-removed", "2", "--json", "o.json",
                   "-o", "o.html"], ["o.json", "o.html"]),
    "trace": (["trace", str(OWN_MODEL), "--tokens", "1,2,3", "--json", "o.json", "-o", "o.html"], ["o.json", "o.html"]),
}
ONE_THREAD = {"report", "apply", "curvature", "select", "separate", "reach", "verify", "build", "run", "train", "heads",
              "ranges", "attribute", "trace"}


def arguments_of(name):
    words, outputs = COMMANDS[name]
    return words + (["--threads", "1"] if name in ONE_THREAD else []), outputs


class Subject:
    """A subcommand in a folder of its inputs, and what it writes when nothing fails."""

    def __init__(self, folder, name):
        self.folder, self.name = Path(folder), name
        self.words, self.outputs = arguments_of(name)
        done = self.run({})
        self.status = done.returncode
        self.expected = {output: self.content(output) for output in self.outputs}

    def content(self, output):
        path = self.folder / output
        return path.read_bytes() if path.exists() else None

    def run(self, environment, **options):
        return subprocess.run([COMMAND, *self.words], cwd=self.folder, env={**os.environ, **environment}, timeout=120,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)

    def count(self, kind):
        counter = self.folder.parent / "count"
        self.run({"LD_PRELOAD": SHIM, "NORMSCOPE_FAIL": f"{kind}:0", "NORMSCOPE_FAIL_COUNT": str(counter)})
        return int(counter.read_text())

    def fails_at(self, kind, k, always):
        """One run whose k-th call fails: a documented status, a line, and each output as before or complete."""
        for output in self.outputs:
            (self.folder / output).write_bytes(b"the earlier one")
        done = self.run({"LD_PRELOAD": SHIM, "NORMSCOPE_FAIL": f"{kind}:{k}" + (":always" if always else "")})
        context = (self.name, kind, k, "always" if always else "once", done.returncode, done.stderr[-300:])
        require(done.returncode in DOCUMENTED, *context)
        failed = done.returncode != self.status
        require(done.stderr.count(b"\n") == (done.returncode == 3), "lines of standard error:", *context)
        contents = [self.content(output) for output in self.outputs]
        earlier = [content == b"the earlier one" for content in contents]
        complete = [content == self.expected[output] for content, output in zip(contents, self.outputs)]
        if failed:
            # A rename that fails leaves those before it; otherwise no output appears without the others.
            require(all(a or b for a, b in zip(earlier, complete)), "an output is neither old nor complete:", *context)
            together = all(earlier) or all(complete) or kind in ("rename", "link")
            require(together, "outputs did not appear together:", *context)
        else:
            require(all(complete) or self.status == 3, "an output is incomplete:", *context)
        left = [path.name for path in self.folder.glob(".normscope-*")]
        require(not left, "a file is left:", *left, *context)


def chosen(count, first, sampled, numbers):
    """The first calls, and a sample of the others; all of them where sampled is None."""
    if sampled is None:
        return range(1, count + 1)
    rest = range(first + 1, count + 1)
    return [*range(1, min(first, count) + 1), *numbers.sample(rest, min(sampled, len(rest)))]


def disk(folder, numbers, first=4, sampled=2, names=tuple(COMMANDS)):
    """Lets the first calls of each kind of system call fail, and some later ones: one at a time, or with all that follow."""
    runs = 0
    for name in names:
        subject = Subject(folder, name)
        for kind in ("read", "write", "fsync", "rename", "link", "stat", "map", "lock", "mode", "random"):
            for k in chosen(subject.count(kind), first, sampled, numbers):
                # If every fstat fails, the command cannot identify the folder that it made, and leaves it: one fails.
                subject.fails_at(kind, k, always=kind != "stat" and numbers.random() < 0.5)
                runs += 1
    return runs


# What saves its state, and what it writes at the end.
SAVING = {
    "train": (["nets", "train", "spiral", "--rows", "64", "--steps", "3000", "--resume", "state", "-o", "s.safetensors"],
              "s.safetensors"),
    "build": (["nets", "build", "big.npy", "--random-labels", "2", "--resume", "state", "-o", "s.safetensors"],
              "s.safetensors"),
    "select": (["select", "keys.npy", "--resume", "state", "--json", "s.json"], "s.json"),
    "report": (["report", str(OWN_MODEL), "-o", "s.html"], "s.html"),
    "rewrite": (["rewrite", str(OWN_MODEL), "--center", "-o", "s.model"], "s.model"),
}
POWER_FAILED = 9  # the status with which the preloaded library ends the process


class Saving:
    """A command that goes on where it was interrupted, and its output when nothing interrupts it."""

    def __init__(self, folder, name):
        self.folder, self.name = Path(folder), name
        self.words, self.output = SAVING[name]
        draws = np.random.default_rng(3)
        np.save(self.folder / "big.npy", draws.normal(size=(120, 4)))
        np.save(self.folder / "keys.npy", draws.normal(size=(400, 12)))
        begun = time.monotonic()
        self.expected = self.finish()
        self.seconds = time.monotonic() - begun

    def start(self, **environment):
        return subprocess.Popen([COMMAND, *self.words, "-q"], cwd=self.folder, env={**os.environ, **environment},
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def content(self):
        path = self.folder / self.output
        if path.is_dir():
            return {inner.name: inner.read_bytes() for inner in path.iterdir()}
        return path.read_bytes() if path.exists() else None

    def clean(self):
        for path in (*self.folder.glob("s.*"), *self.folder.glob("state"), *self.folder.glob(".normscope-*")):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def finish(self):
        done = subprocess.run([COMMAND, *self.words, "-q"], cwd=self.folder, capture_output=True, timeout=300)
        require(done.returncode in (0, 1), self.name, done.returncode, done.stderr[-300:])
        return self.content()

    def expect_whole(self, *context):
        require(self.content() in (None, self.expected), self.name, "left a part of its output:", *context)

    def expect_finish(self, *context):
        if self.content() is not None:
            return  # if it was killed after the last rename, its work folder may remain
        require(self.finish() == self.expected, self.name, "finished with other bytes:", *context)
        left = list(self.folder.glob(".normscope-rewrite-*"))
        require(not left, self.name, "left", left, *context)


def kills(folder, numbers, times=2, names=tuple(SAVING)):
    """Kills at random moments: the output is absent or whole, and the next run finishes with the same bytes."""
    runs = 0
    for name in names:
        saving = Saving(folder, name)
        for _ in range(times):
            saving.clean()
            for _ in range(numbers.randrange(1, 4)):
                process = saving.start()
                time.sleep(numbers.random() * saving.seconds)
                process.send_signal(signal.SIGKILL)
                process.wait()
                saving.expect_whole("after a kill")
                runs += 1
                if saving.content() is not None:
                    break
            saving.expect_finish("after a kill")
        saving.clean()
    return runs


def power(folder, numbers, times=3, names=tuple(SAVING)):
    """Cuts the power before the k-th change of a file: what was not synced is lost, and the command has to continue."""
    runs = 0
    for name in names:
        saving = Saving(folder, name)
        counter = Path(folder).parent / "count"
        saving.clean()
        saving.start(LD_PRELOAD=SHIM, NORMSCOPE_FAIL="power:0", NORMSCOPE_FAIL_COUNT=str(counter)).wait()
        count = int(counter.read_text())
        # The last calls put the output in place.
        for k in {*range(max(1, count - times), count + 1), *numbers.sample(range(1, count + 1), min(times, count))}:
            saving.clean()
            status = saving.start(LD_PRELOAD=SHIM, NORMSCOPE_FAIL=f"power:{k}").wait()
            require(status in (0, 1, POWER_FAILED), name, k, status)
            saving.expect_whole("when the power failed", k, "of", count)
            saving.expect_finish("after the power failed", k, "of", count)
            runs += 1
        saving.clean()
    return runs


def extreme_matrix(numbers, rows, width):
    """Rows with the exponents, subnormal numbers, ties and signs that arithmetic stumbles over."""
    draws = np.random.default_rng(numbers.randrange(2**32))
    x = draws.normal(size=(rows, width))
    kind = numbers.randrange(10)
    if kind == 0:
        x *= 2.0 ** draws.integers(-60, 60, size=(rows, 1))
    elif kind == 1:
        x *= 2.0 ** draws.integers(-60, 60, size=(1, width))
    elif kind == 2:
        x = np.round(x * 2) / 2  # ties and duplicates
    elif kind == 3:
        x[1:] = x[0] + x[1:] * 2.0**-45  # nearly one point
    elif kind == 4:
        x[:, -1] = x[:, 0] * 2.0**-30  # nearly flat
    elif kind == 5:
        x = draws.integers(-2, 3, size=(rows, width)).astype(float)
    elif kind == 6:
        x *= 2.0**-190  # the least sizes accepted
    elif kind == 7:
        x[rows // 2:] = (x[:rows - rows // 2] * (1 + 2.0**-52))  # near ties
    elif kind == 8:
        x[:] = x[0] + np.spacing(x[0]) * draws.integers(-2, 3, size=(rows, width))  # the mean may be one of them, rounded
    return x


def is_verified(name, *matrices):
    """Whether `verify` has to confirm a result. Differences close to subnormal numbers are refused; the scale
    of `reach` is that of rows without their mean, which it states to fewer digits the closer the rows are.
    """
    apart = [np.abs(x - x.mean(axis=0)).max() for x in matrices]
    least = [2.0**-30 * np.abs(x).max() if name == "reach" else 0.0 for x in matrices]
    return all(rest == 0 or rest > max(2.0**-1000, bound) for rest, bound in zip(apart, least))


def answers(document):
    """What a result decides, without the numbers that prove it."""
    told = {key: document[key] for key in ("unselectable", "separable", "answer", "reachable") if key in document}
    for key in ("unreachable", "undecided"):
        told[key] = [item["token"] if isinstance(item, dict) else item for item in document.get(key, [])]
    return told


def values(folder, numbers, times=10):
    """Extreme numbers: documented statuses, results that `verify` confirms, and the same for x and 2^k x."""
    folder = Path(folder)
    runs = 0

    def run(*words, allowed=DOCUMENTED):
        nonlocal runs
        runs += 1
        done = subprocess.run([COMMAND, *map(str, words)], cwd=folder, capture_output=True, timeout=300, text=True)
        require(done.returncode in allowed, words, done.returncode, done.stderr[-300:])
        require(done.stderr.count("\n") == (1 if done.returncode == 3 else 0), words, done.stderr[-300:])
        return done.returncode

    for _ in range(times):
        rows, width = numbers.randrange(1, 9), numbers.randrange(1, 5)
        x, y = extreme_matrix(numbers, rows, width), extreme_matrix(numbers, rows, width)
        factor = 2.0 ** numbers.choice([-90, -30, -3, 3, 30, 60])
        exact = ["--exact"] if numbers.random() < 0.5 else []
        found = []
        for name, times_x, times_y in (("a", x, y), ("b", x * factor, y * factor)):
            np.save(folder / f"{name}.npy", times_x)
            np.save(folder / f"{name}y.npy", times_y)
            both = []
            for words in (["select", f"{name}.npy", *exact], ["separate", f"{name}.npy", f"{name}y.npy", *exact],
                          ["reach", "--unembedding", f"{name}.npy"]):
                if run(*words, "--json", "v.json") == 3:
                    both.append(None)
                    continue
                both.append(answers(json.loads((folder / "v.json").read_text())))
                run("verify", "v.json", allowed=(0, 4) if is_verified(words[0], times_x, times_y) else DOCUMENTED)
            found.append(both)
        if is_verified("reach", x, y) and is_verified("reach", x * factor, y * factor):
            # One of the two may be refused because its numbers are too small.
            same = all(a == b for a, b in zip(*found) if a is not None and b is not None)
            require(same, "other answers for x and", factor, "x:", x.tolist(), y.tolist(), found)
        special = x.copy()
        special.flat[numbers.randrange(special.size)] = numbers.choice([np.nan, np.inf, -np.inf, 5e-324, 1.8e308, -0.0])
        np.save(folder / "special.npy", special)
        for words in (["apply", "special.npy", "-o", "v.npy"], ["curvature", "special.npy"], ["select", "special.npy"],
                      ["separate", "special.npy", "ay.npy"], ["reach", "--unembedding", "special.npy"],
                      ["geometry", "--gain", "special.npy"], ["nets", "build", "special.npy", "--random-labels", 2, "-o", "v.net"]):
            run(*words)
    return runs


REWRITES = (["--migrate"], ["--fold", "gains"], ["--center", "--untie"], ["--center", "--untie", "--fold", "gains"],
            ["--fold", "gains", "--untie", "--rotate", "random:3"])


def models(folder, numbers, times=15):
    """Models with numbers of very different sizes: `verify` or the checker in NumPy confirms every result."""
    folder = Path(folder)
    (folder / "model").mkdir(exist_ok=True)
    runs = 0

    def succeeds(*words):
        nonlocal runs
        runs += 1
        done = subprocess.run([COMMAND, *words], cwd=folder, capture_output=True, timeout=300, text=True)
        refused = done.returncode == 3 and words[0] != "verify" and done.stderr.count("\n") == 1
        unproved = done.returncode == 4 and words[0] == "verify"
        require(done.returncode == 0 or refused or unproved, words, done.stdout[-900:], done.stderr[-300:])
        return not refused

    def check(*models):
        found = model_checker.check((folder / "v.json").read_text(), *models)
        require(not found.failed, "the checker refuses", *found.failed)

    for _ in range(times):
        random_models.model(numbers, folder / "model")
        for words in (random_models.vocabulary(numbers, folder), ["heads", "model", "--proofs"],
                      ["reach", "model"]):
            if succeeds(*words, "--json", "v.json"):
                succeeds("verify", "v.json")
        old = model_checker.Tensors(folder / "model")
        if succeeds("ranges", "model", "--json", "v.json"):
            check(old)
        change = numbers.choice(REWRITES)
        shutil.rmtree(folder / "out", ignore_errors=True)
        if succeeds("rewrite", "model", "-o", "out", *change, "--json", "v.json"):
            check(old, model_checker.Tensors(folder / "out"), "random:3" if "--rotate" in change else None)
    return runs


ATTACKS = {"disk": disk, "kills": kills, "power": power, "values": values, "models": models}

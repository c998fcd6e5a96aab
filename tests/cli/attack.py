"""Attacks for some hours: attack.py HOURS SEED [KIND…], every kind by default. Prints a table of what was tried, which
docs/reliability.md quotes."""

import os
import random
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import attacks
from command import SOURCE


def fuzz(_folder, numbers, runs=50_000):
    """Every fuzz target: by libFuzzer from the corpus that it keeps beside the programs, else on its own mutations."""
    programs = [path for path in sorted(Path(os.environ["NORMSCOPE_FUZZ"]).glob("fuzz_*"))
                if path.is_file() and os.access(path, os.X_OK)]
    is_guided = "build-fuzz" in os.environ["NORMSCOPE_FUZZ"]
    for program in programs:
        words = [program, f"-runs={runs}", f"-seed={numbers.randrange(1, 2**31)}"]
        if is_guided:
            corpus = program.parent / "corpus" / program.name
            corpus.mkdir(parents=True, exist_ok=True)
            words += ["-timeout=60", "-rss_limit_mb=4096", f"-artifact_prefix={corpus.parent}/", corpus]
        done = subprocess.run(words, capture_output=True, text=True)
        attacks.require(done.returncode == 0, *words, done.stderr[-600:])
    return runs * len(programs)


def properties(_folder, numbers, cases=500):
    """Every property of the unit tests, with other random cases than those of the builds."""
    names = {}
    for path in sorted((SOURCE / "tests").glob("*/*_test.cpp")):
        for suite, test in re.findall(r"RC_GTEST_PROP\(\s*(\w+),\s*(\w+)", path.read_text()):
            names.setdefault(path.parent.name, []).append(f"{suite}.{test}")
    for module, tests in names.items():
        words = [Path(os.environ["NORMSCOPE_TESTS"]) / f"{module}_tests", f"--gtest_filter={':'.join(tests)}"]
        cases_of = f"seed={numbers.randrange(2**63)} max_success={cases}"
        done = subprocess.run(words, env={**os.environ, "RC_PARAMS": cases_of}, capture_output=True, text=True)
        attacks.require(done.returncode == 0, f"RC_PARAMS='{cases_of}'", *words, done.stdout[-2000:])
        attacks.require(f"{len(tests)} test" in done.stdout, *words, "did not run", len(tests), "properties")
    return cases * sum(map(len, names.values()))


# More of each than the tests of a build make; a round is some minutes.
ROUND = {
    "disk": lambda folder, numbers: attacks.disk(folder, numbers, first=20, sampled=20),
    "kills": lambda folder, numbers: attacks.kills(folder, numbers, times=6),
    "power": lambda folder, numbers: attacks.power(folder, numbers, times=20),
    "values": lambda folder, numbers: attacks.values(folder, numbers, times=40),
    "models": lambda folder, numbers: attacks.models(folder, numbers, times=100),
    "fuzz": fuzz,
    "properties": properties,
}


def main(hours, seed, kinds):
    end = time.monotonic() + 3600 * hours
    runs = dict.fromkeys(kinds or ROUND, 0)
    if not runs.keys() <= ROUND.keys():
        sys.exit(f"attack: no kind of attack is called {' or '.join(runs.keys() - ROUND.keys())}; expected {', '.join(ROUND)}")
    broken = None
    while time.monotonic() < end and broken is None:
        for name in runs:
            if time.monotonic() >= end:
                break
            with tempfile.TemporaryDirectory() as outer:
                folder = Path(outer) / "inputs"
                folder.mkdir()
                attacks.make_inputs(folder)
                try:
                    runs[name] += ROUND[name](folder, random.Random(f"{name} {seed}"))
                except attacks.Broken as error:
                    broken = f"{name}, seed {seed}: {error}"
                    break
        seed += 1
    print("| attack | runs |\n|---|---|")
    for name, count in runs.items():
        print(f"| {name} | {count} |")
    print(broken or "every promise held")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))

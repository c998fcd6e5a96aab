"""Attacks for some hours: attack.py HOURS SEED. Prints a table of what was tried, which docs/reliability.md quotes."""

import random
import sys
import tempfile
import time
from pathlib import Path

import attacks

# More of each than the tests of a build make; a round is a few minutes.
ROUND = {
    "allocations": lambda folder, numbers: attacks.allocations(folder, numbers, first=0, sampled=60),
    "disk": lambda folder, numbers: attacks.disk(folder, numbers, first=20, sampled=20),
    "kills": lambda folder, numbers: attacks.kills(folder, numbers, times=6),
    "values": lambda folder, numbers: attacks.values(folder, numbers, times=40),
}


def main(hours, seed):
    end = time.monotonic() + 3600 * hours
    runs = dict.fromkeys(ROUND, 0)
    broken = None
    while time.monotonic() < end and broken is None:
        for name, attack in ROUND.items():
            if time.monotonic() >= end:
                break
            with tempfile.TemporaryDirectory() as outer:
                folder = Path(outer) / "inputs"
                folder.mkdir()
                attacks.make_inputs(folder)
                try:
                    runs[name] += attack(folder, random.Random(f"{name} {seed}"))
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
    sys.exit(main(float(sys.argv[1]), int(sys.argv[2])))

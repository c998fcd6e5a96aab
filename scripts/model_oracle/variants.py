#!/usr/bin/env python3
"""Makes fixtures of other configurations than those of tests/models/fixtures, for the test Oracle to compare.

usage: scripts/model_oracle/variants.py FOLDER [--one-in N] CASE|MODEL_TYPE ...

Of a case, one fixture for each field of its configuration and each other value that its class accepts: unlike fields.py,
the model is built anew, so sizes change too, and fields that only other classes have are left to it: they change nothing
here and are refused. Of any other type of transformers, the tiny configuration of draft.py. Then

  NORMSCOPE_FIXTURES=FOLDER build-dev/tests/models_tests --gtest_filter='Fixtures/Oracle.*'
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
from pathlib import Path
from typing import Iterator

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))


from model_oracle import draft, fields, fixtures  # noqa: E402
from model_oracle.cases import CASES  # noqa: E402
from model_oracle.cases.case import Case  # noqa: E402
from model_oracle.make import make, prepare  # noqa: E402


def variants(name: str, one_in: int) -> Iterator[tuple[str, Case]]:
    """What is changed, and the case."""
    if name not in CASES:
        yield "its defaults, made tiny", draft.tiny_case(name, {})
        return
    case = CASES[name]
    config = json.loads(fixtures.read(name)["config.json"])
    for number, (path, value) in enumerate(fields.variants(case, config, foreign=False)):
        if number % one_in == 0:
            changed = fields.decoded(fields.changed(config, path, value))
            what = "without " if value is fields.ABSENT else ""
            yield f"{what}{'/'.join(path)}" + ("" if what else f" = {json.dumps(value)}"), dataclasses.replace(
                case, name=f"{name}_{number}", config=changed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="+", metavar="CASE|MODEL_TYPE")
    parser.add_argument("--one-in", type=int, default=1, metavar="N", help="take each N-th of the changes")
    arguments = parser.parse_args()
    prepare(silent=True)
    for name in arguments.names:
        for what, case in variants(name, arguments.one_in):
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch) / case.name
                try:
                    make(case, folder)
                except Exception as error:  # noqa: BLE001: the class refuses the value, or does not run with it
                    print(f"{case.name}: {what}: not made: {type(error).__name__}: {str(error)[:100]!r}", flush=True)
                    continue
                fixtures.write(case.name, {path.name: path.read_bytes() for path in folder.iterdir()}, arguments.folder)
            print(f"{case.name}: {what}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

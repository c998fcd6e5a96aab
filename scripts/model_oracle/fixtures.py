#!/usr/bin/env python3
"""The archives of tests/models/fixtures: CASE.zip holds all files of one case of the model oracle.

usage: scripts/model_oracle/fixtures.py CASE FOLDER     unpacks a case into FOLDER/CASE
       scripts/model_oracle/fixtures.py                 lists the cases and their files
"""

from __future__ import annotations

import atexit
import functools
import io
import sys
import tempfile
import zipfile
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent.parent.parent / "tests/models/fixtures"


def cases(folder: Path = FIXTURES) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.zip"))


def read(case: str, folder: Path = FIXTURES) -> dict[str, bytes]:
    """The files of a case."""
    with zipfile.ZipFile(folder / f"{case}.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(case: str, files: dict[str, bytes], folder: Path = FIXTURES) -> None:
    """Writes files into the archive of a case, where files of other names stay.

    The same files make the same bytes, and an archive that has them already is left as it is, because another zlib may
    compress differently.
    """
    path = folder / f"{case}.zip"
    before = read(case, folder) if path.exists() else {}
    if path.exists() and before == {**before, **files}:
        return
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in sorted({**before, **files}.items()):
            member = zipfile.ZipInfo(name)  # dated 1980
            member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(member, data)
    folder.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.getvalue())


def unpack(case: str, to: Path, folder: Path = FIXTURES) -> Path:
    """Writes the files of a case into the new folder `to`."""
    to.mkdir(parents=True)
    for name, data in read(case, folder).items():
        (to / name).write_bytes(data)
    return to


@functools.cache
def fixture(case: str) -> Path:
    """A folder with the files of a case, for reading until the process ends."""
    return unpack(case, scratch() / case)


@functools.cache
def scratch() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="normscope-")
    atexit.register(folder.cleanup)
    return Path(folder.name)


def main() -> int:
    if len(sys.argv) == 1:
        for case in cases():
            print(case, *(f"{name} {len(data)}" for name, data in read(case).items()))
        return 0
    if len(sys.argv) != 3 or sys.argv[1] not in cases():
        print(__doc__.partition("\n\n")[2], end="", file=sys.stderr)
        return 2
    print(unpack(sys.argv[1], Path(sys.argv[2]) / sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Holds the kernels' instructions a row, counted by callgrind, against a table; --rewrite writes the table.

usage: instruction_counts.py [--rewrite] PROGRAM TABLE BUILD

Counts know no noise, so what a change costs or saves is seen where times would drown it. They depend on the
compiler and its flags, which BUILD names: a table of another build is not held against (exit 77, skipped).
"""

import pathlib
import re
import subprocess
import sys
import tempfile

SKIPPED = 77
MORE = 1.05  # of the table's count: a failure
LESS = 0.90  # time to lower the table


def counted(program):
    """Instructions per row of every case: the difference of two counts, divided by the difference of their rows."""
    totals = {}
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/out", program]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            raise SystemExit(f"{' '.join(command)} exited {ran.returncode}:\n{ran.stderr}")
        for dump in pathlib.Path(folder).glob("out.*"):
            text = dump.read_text()
            trigger = re.search(r"^desc: Trigger: Client Request: (.+) (\d+)$", text, re.MULTILINE)
            instructions = re.search(r"^totals: (\d+)$", text, re.MULTILINE)
            totals.setdefault(trigger[1], {})[int(trigger[2])] = int(instructions[1])
    counts = {}
    for case, of_rows in totals.items():
        fewer, more = sorted(of_rows)
        counts[case] = round((of_rows[more] - of_rows[fewer]) / (more - fewer))
    return counts


def in_order(case):
    name, dtype, width, groups = case.split()
    return dtype, name, int(groups), int(width)


def written(build, counts):
    lines = [f"# instructions a row with AVX2, {build}; written by the target instruction_table",
             "# direction type width groups instructions"]
    lines += [f"{case} {counts[case]}" for case in sorted(counts, key=in_order)]
    return "\n".join(lines) + "\n"


def read(table):
    first, *lines = table.read_text().splitlines()
    build = re.fullmatch(r"# instructions a row with AVX2, (.*); written by the target instruction_table", first)[1]
    entries = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return build, {case: int(count) for case, count in entries}


def main(arguments):
    rewrite = arguments[:1] == ["--rewrite"]
    program, table, build = arguments[1:] if rewrite else arguments
    table = pathlib.Path(table)
    if "avx2" not in pathlib.Path("/proc/cpuinfo").read_text().split():
        print("skipped: this machine has no AVX2")
        return SKIPPED
    if rewrite:
        table.write_text(written(build, counted(program)))
        return 0
    table_build, expected = read(table)
    if build != table_build:
        print(f"skipped: the table is of {table_build}, this is {build}")
        return SKIPPED
    counts = counted(program)
    if counts.keys() != expected.keys():
        print(f"cases: {sorted(counts.keys() ^ expected.keys())} are in the table or counted, not both")
        return 1
    failed = False
    lower = False
    for case in sorted(counts, key=in_order):
        share = counts[case] / expected[case]
        failed |= share > MORE
        lower |= share < LESS
        verdict = "TOO MANY" if share > MORE else "fewer" if share < LESS else ""
        print(f"{case:30} {counts[case]:8} of {expected[case]:8} {share:6.3f} {verdict}".rstrip())
    if lower:
        print("some counts are more than a tenth below the table: lower it, by building the target instruction_table")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

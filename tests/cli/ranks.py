"""Runs a program on several processes of mpirun, for the tests."""

import os
import subprocess
from pathlib import Path

# Root is allowed because a container has no other user; ranks that wait yield their core.
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
               "OMPI_MCA_mpi_yield_when_idle": "1"}


def start(count, command, folder):
    return subprocess.Popen(["mpirun", "--oversubscribe", "-n", str(count), *map(str, command)], cwd=folder,
                            env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")


def finished(job, program, word, folder, seconds=120):
    """Exit status, output and error output of a job.

    The status is None if all its processes have ended, but mpirun has not: after an abort, that of Open MPI 4.1 sometimes
    waits for a lock of its own for ever.
    """
    ended = 0
    for _ in range(seconds // 5):
        try:
            texts = job.communicate(timeout=5)
            return job.returncode, *texts
        except subprocess.TimeoutExpired:
            ended = 0 if running(program, word, folder) else ended + 1
        if ended == 2:
            job.kill()
            return None, *job.communicate()
    job.kill()
    job.communicate()
    raise AssertionError(f"processes of {program} did not end within {seconds} s")


def running(program, word, folder):
    """The processes of that program in that folder with that word on their command line."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if words[0] == os.fsencode(program) and word.encode() in words and os.readlink(process / "cwd") == str(folder):
                found.append(int(process.name))
        except (OSError, ValueError):
            continue
    return found

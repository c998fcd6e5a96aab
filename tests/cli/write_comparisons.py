"""Writes pages of comparisons into the folder named on the command line: same, rewritten, and trained further."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from command import COMMAND, fixture, safetensors
from forward_pass import tensors

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
source = fixture("gpt2")
with tempfile.TemporaryDirectory() as scratch:
    folded, trained = Path(scratch) / "folded", Path(scratch) / "trained"
    subprocess.run([COMMAND, "rewrite", source, "-o", folded, "--fold", "gains", "-q"], check=True)
    shutil.copytree(source, trained)
    random = np.random.default_rng(1)
    drifted = {name: (array * (1 + 0.05 * random.normal(size=array.shape))).astype(np.float32)
               for name, array in tensors(source / "model.safetensors").items()}
    safetensors(trained / "model.safetensors", drifted, {"format": "pt"})
    for name, other, status in (("same", source, 0), ("folded", folded, 0), ("trained", trained, 1)):
        done = subprocess.run([COMMAND, "compare", source, other, "--check", "-q", "-o", folder / f"{name}.html"])
        if done.returncode != status:
            sys.exit(f"{name}: status {done.returncode}, expected {status}")

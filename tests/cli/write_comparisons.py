"""Writes pages of comparisons into the folder named on the command line: same, rewritten, in another order, and trained further."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from command import COMMAND, SOURCE, fixture, safetensors
from forward_pass import tensors

sys.path.append(str(SOURCE / "scripts/compare_table"))
import checkpoints  # noqa: E402
from conversions import CONVERSIONS  # noqa: E402

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
    # Heads, neurons and experts in another order, and neurons times factors.
    for case, changes in (("gpt2", ("heads", "neurons")), ("mixtral", ("heads", "experts", "scale neurons", "mix v/o"))):
        model = checkpoints.load(case)
        before, after = model.write(Path(scratch) / f"{case}_before"), model.copy()
        for change in changes:
            after = CONVERSIONS[change](after, np.random.default_rng(3))
        subprocess.run([COMMAND, "compare", before, after.write(Path(scratch) / f"{case}_permuted"), "--check", "-q",
                        "-o", folder / f"{case}_permuted.html"], check=True)

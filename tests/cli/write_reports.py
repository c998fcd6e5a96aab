"""Writes the report of every available checkpoint into the folder named on the command line."""

import subprocess
import sys
from pathlib import Path

from command import CHECKPOINTS, COMMAND, OWN_MODEL, is_checkpoint

folder = Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
if not CHECKPOINTS.exists():
    print(f"real data absent: {CHECKPOINTS}; only our own model")
for path in [OWN_MODEL, *filter(is_checkpoint, sorted(CHECKPOINTS.glob("*")))]:
    subprocess.run([COMMAND, "report", path, "-o", folder / f"{path.name}.html"], check=True)

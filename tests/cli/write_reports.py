"""Writes the report of every available checkpoint, as a page and as JSON, into the folder named on the command line: one
of each kind into `whole`, whose browser test tries everything, the others into `brief`."""

import subprocess
import sys
from pathlib import Path

from command import CHECKPOINTS, COMMAND, OWN_MODEL, is_checkpoint

# The largest, an RMSNorm with a vocabulary, an encoder with a decoder, an ONNX graph, and our own.
WHOLE = {"gpt2_small_without_mlp", "llama2c_stories260K.safetensors", "presto.pt", "magika_v3_3.onnx", OWN_MODEL.name}

folder = Path(sys.argv[1])
for part in "whole", "brief":
    (folder / part).mkdir(parents=True, exist_ok=True)
if not CHECKPOINTS.exists():
    print(f"real data absent: {CHECKPOINTS}; only our own model")
for path in [OWN_MODEL, *filter(is_checkpoint, sorted(CHECKPOINTS.glob("*")))]:
    target = folder / ("whole" if path.name in WHOLE else "brief") / path.name
    done = subprocess.run([COMMAND, "report", path, "-o", f"{target}.html", "--json", f"{target}.json"],
                          capture_output=True, text=True)
    if done.returncode != 0 or done.stderr:
        sys.exit(f"{path}: exit status {done.returncode}: {done.stderr}")

"""Runs checkpoints in transformers, in float64: the other side of the table. Needs scripts/model_oracle/requirements.txt."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers

import checkpoints  # noqa: F401: the path of scripts
from model_oracle.cases import CASES
from model_oracle.cases.case import tensors
from model_oracle.make import load, picked

AGREE = 1e-4  # relative to the largest logit: float32 weights, rounded once or twice, and pass two layers
SAME_LOGIT = 1e-5  # relative to the largest logit: transformers computes rotary angles in float32

torch.set_num_threads(1)
torch.backends.mha.set_fastpath_enabled(False)
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


class Running:
    """A checkpoint in memory."""

    def __init__(self, case: str, folder: Path):
        self.case = CASES[case]
        self.model = load(self.case, folder).double()

    def logits(self, ids: list[int] | None = None) -> torch.Tensor:
        """Positions x tokens, of these ids or of the case's own input."""
        inputs = {"input_ids": torch.tensor([ids])} if ids else tensors(self.case.inputs)[0]
        with torch.no_grad():
            return picked(self.model(**inputs, **self.case.options), self.case.outputs)["logits"][0]


def confirmed(old: Running, new: Path, document: dict, fault: bool, rounds: bool) -> str:
    """What is wrong with a verdict; nothing if transformers says the same."""
    try:
        other = Running(old.case.name, new)
    except Exception as error:  # noqa: BLE001: what does not load is no model
        return f"does not load: {type(error).__name__}: {str(error)[:200]}"
    before, after = old.logits(), other.logits()
    gap = float((after - before).abs().max() / before.abs().max())
    if not fault and not rounds and not gap < AGREE:
        return f"logits differ by {gap:.1e}, so the conversion is not exact"
    if fault and gap == 0:
        return "no logit differs, so it is no fault"
    if witness := document.get("witness"):
        for running, side in ((old, "old"), (other, "new")):
            found = running.logits(witness["tokens"])
            value, largest = float(found[witness["position"], witness["token"]]), float(found.abs().max())
            if not abs(value - witness[f"{side}_logit"]) < SAME_LOGIT * largest:
                return f"the witness's logit is {value:.9g} in transformers, {witness[f'{side}_logit']:.9g} here"
    return ""

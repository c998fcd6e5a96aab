"""Runs checkpoints in transformers, in float64: the other side of the table. Needs scripts/model_oracle/requirements.txt."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers

import checkpoints  # noqa: F401: the path of scripts
from model_oracle.cases import CASES
from model_oracle.cases.case import tensors
from model_oracle.make import load, picked, prepare

AGREE = 1e-4  # relative to the largest logit: float32 weights, rounded once or twice, and pass a few layers
SAME_LOGIT = 1e-5  # relative to the largest logit: transformers computes rotary angles in float32

prepare()

kept: list[float] = []  # differences of the logits of exact conversions
witnessed: list[float] = []  # and of the logits of witnesses


def summary() -> str:
    return (f"transformers {transformers.__version__} ran {len(kept)} of the conversions: logits differ by at most {max(kept):.0e} of the "
            f"largest. It also ran {len(witnessed) // 2} witnesses: its logits are those printed, to {max(witnessed):.0e} of the largest.")


class Running:
    """A fixture in memory."""

    def __init__(self, case: str, folder: Path):
        self.case = CASES[case]
        self.model = load(self.case, folder).double()

    def logits(self, ids: list[int] | None = None) -> torch.Tensor:
        """Positions x tokens, of these ids or of the case's own input."""
        inputs = {"input_ids": torch.tensor([ids])} if ids else tensors(self.case.inputs)[0]
        with torch.no_grad():
            return picked(self.model(**inputs, **self.case.options), self.case.outputs)["logits"][0]

    def refutes(self, new: Path, document: dict, fault: bool, rounds: bool) -> str:
        """What transformers says against a cell; nothing if it agrees."""
        try:
            other = Running(self.case.name, new)
        except Exception as error:  # noqa: BLE001: what does not load is no model
            return f"does not load: {type(error).__name__}: {str(error)[:200]}"
        before, after = self.logits(), other.logits()
        gap = float((after - before).abs().max() / before.abs().max())
        if not fault and not rounds:
            kept.append(gap)
            if not gap < AGREE:
                return f"logits differ by {gap:.1e}, so the conversion is not exact"
        if fault and gap == 0:
            return "no logit differs, so it is no fault"
        if witness := document.get("witness"):
            for running, side in ((self, "old"), (other, "new")):
                found = running.logits(witness["tokens"])
                value, printed = float(found[witness["position"], witness["token"]]), witness[f"{side}_logit"]
                witnessed.append(abs(value - printed) / float(found.abs().max()))
                if not witnessed[-1] < SAME_LOGIT:
                    return f"the witness's logit is {value:.9g} in transformers, {printed:.9g} here"
        return ""

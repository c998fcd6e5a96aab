"""Gradient ascent against the bounds of `normscope ranges`: every norm's input is free, the model's own linear layers
are watched. Of a module that does more than one map, such as all experts at once, the stored matrix is applied instead:
the module's own output is that of several maps, and says nothing about one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from model_oracle.cases.case import Case
from model_oracle.make import load
from model_oracle.searches import Bounds, FreeInputs, ascend, batch, positions_of

MOST_SEARCHES = 512  # rows of a norm's readers that are searched for in one model run, each from below and above


class Watched:
    """Outputs of modules in the order of their executions."""

    def __init__(self, model: torch.nn.Module, modules: list[str]):
        self.found: dict[str, list[torch.Tensor]] = {name: [] for name in modules}
        self.read: dict[str, list[torch.Tensor]] = {name: [] for name in modules}
        for name in modules:
            model.get_submodule(name).register_forward_hook(self._hook(name))

    def _hook(self, name: str) -> Any:
        def keep(_module: Any, args: Any, output: Any) -> None:
            if isinstance(output, torch.Tensor):  # a router returns more than what its map gives
                self.found[name].append(output)
                self.read[name].append(args[0] if args else output)
        return keep

    def start(self) -> None:
        for kept in (self.found, self.read):
            for tensors in kept.values():
                tensors.clear()

    def behind(self, module: str, norm: str) -> list[torch.Tensor]:
        """Outputs of a module; of one that runs several times, as shared layers do, when it reads that norm."""
        outputs = self.found[module]
        if len(outputs) == 1:
            return outputs
        read = {tensor.data_ptr() for tensor in self.found[norm]}
        return [output for output, given in zip(outputs, self.read[module]) if given.data_ptr() in read]


def bounds_of_weights(norm: Bounds) -> dict[str, tuple[int, float, float]]:
    """Rows, lowest and highest bound of each tensor that reads the norm, all parts of a fused one together."""
    found: dict[str, tuple[int, float, float]] = {}
    for reader in norm["readers"]:
        if "refused" in reader:
            continue
        rows, low, high = found.get(reader["weight"], (0, float("inf"), -float("inf")))
        found[reader["weight"]] = (rows + reader["rows"], min(low, reader["lowest"]["bound"]),
                                   max(high, reader["highest"]["bound"]))
    return found


class RangeSearches:
    """For each norm that `ranges` bounds: its own output, and those of the linear maps that read it whole."""

    def __init__(self, case: Case, folder: Path, truth: Bounds, ranges: Bounds):
        self.case, self.model = case, load(case, folder)
        bounded = {norm["name"]: norm for norm in ranges["norms"] if "refused" not in norm}
        self.norms: list[tuple[Bounds, Bounds]] = []
        for norm in truth["norms"]:
            for name in (norm["module"], str(norm["gain"]).rpartition(".")[0]):
                if name in bounded and norm["module"]:
                    self.norms.append((norm, bounded[name]))
                    break
        self.readers: dict[str, list[tuple[str, float, float]]] = {}  # by norm: module or matrix, lowest, highest
        self.matrices: dict[str, torch.Tensor] = {}  # by name: out x in
        self.added: dict[str, torch.Tensor] = {}  # by module: a bias that the model adds to its output
        stored = load_file(folder / "model.safetensors")
        for norm, bounds in self.norms:
            by_weight = bounds_of_weights(bounds)
            for reader in norm["readers"]:
                rows, low, high = by_weight.get(reader.get("weight") or "", (0, 0.0, 0.0))
                if reader["op"] != "linear" or "factor" in reader or not rows == reader["out"] == reader["stored_out"]:
                    continue
                name = reader["module"]
                if not self.is_map(name):
                    if reader["bias"] is not None or "slice" in reader:
                        continue
                    name = reader["weight"]
                    matrix = stored[name]  # XLNet's have three axes: in, head, out
                    self.matrices[name] = matrix if reader["layout"] == "out_in" else matrix.flatten(1).T
                elif reader["bias"] is not None and self.model.get_submodule(name).bias is None:
                    self.added[name] = stored[reader["bias"]].flatten()  # BART's final_logits_bias
                self.readers.setdefault(norm["module"], []).append((name, low, high))
        self.free = FreeInputs(self.model, [norm["module"] for norm, _ in self.norms])
        modules = [norm["module"] for norm, _ in self.norms]
        modules += [name for readers in self.readers.values() for name, _, _ in readers if name not in self.matrices]
        self.watched = Watched(self.model, list(dict.fromkeys(modules)))
        length = positions_of(self.model, case)
        self.inputs = batch(case, max(2, MOST_SEARCHES // length), length)

    def is_map(self, module: str) -> bool:
        return type(self.model.get_submodule(module)).__name__ in ("Linear", "Conv1D")

    def outputs(self) -> dict[tuple[str, str], torch.Tensor]:
        """(rows, features) of each norm's output and of its readers, by norm and module; readers that run on other rows
        than the norm's are left out."""
        self.free.start()
        self.watched.start()
        self.model(**self.inputs, **self.case.options)
        found = {}
        for norm, _ in self.norms:
            name = norm["module"]
            own = self.watched.found[name]
            if norm["axes"] != "last" or norm.get("gated") or not own:
                continue
            rows = sum(one.numel() // one.shape[-1] for one in own)
            found[name, name] = torch.cat([one.reshape(-1, one.shape[-1]) for one in own])
            for module, _, _ in self.readers.get(name, []):
                if module in self.matrices:
                    found[name, module] = found[name, name] @ self.matrices[module].T
                    continue
                outputs = self.watched.behind(module, name)
                of_all = sum(one.numel() // one.shape[-1] for one in outputs) == rows
                if outputs and (of_all or len(self.watched.found[module]) > 1):
                    found[name, module] = torch.cat([one.reshape(-1, one.shape[-1]) for one in outputs])
                    found[name, module] = found[name, module] + self.added.get(module, 0.0)
        return found

    def objective(self) -> torch.Tensor:
        """Every row of every norm searches for one number: a feature of one reader, up or down."""
        total: torch.Tensor | float = 0.0
        found = self.outputs()
        for (norm, module), output in found.items():
            with torch.no_grad():
                low, high = output.amin(0), output.amax(0)
                key = norm, module
                self.low[key] = torch.minimum(self.low.get(key, low), low)
                self.high[key] = torch.maximum(self.high.get(key, high), high)
            modules = [other for owner, other in found if owner == norm]
            row = torch.arange(output.shape[0])
            mine = row % len(modules) == modules.index(module)
            search = row // len(modules)
            feature, sign = search // 2 % output.shape[1], 1.0 - 2.0 * (search % 2)
            total = total + (mine * sign * output[row, feature]).sum()
        assert isinstance(total, torch.Tensor)
        return total[None]

    def run(self, steps: int) -> None:
        self.low: dict[tuple[str, str], torch.Tensor] = {}
        self.high: dict[tuple[str, str], torch.Tensor] = {}
        ascend(self.free, self.objective, steps)

    def compared(self) -> list[tuple[str, float, float]]:
        """What, attained and bound of each number, as sizes that must not be passed."""
        result = []
        for norm, bounds in self.norms:
            name = norm["module"]
            if (name, name) not in self.low:
                continue
            size = max(float(-self.low[name, name].min()), float(self.high[name, name].max()))
            result.append((f"output of {name}", size, bounds["output"]["largest"]))
            for module, low, high in self.readers.get(name, []):
                if (name, module) in self.low:
                    result.append((f"{module} at most", float(self.high[name, module].max()), high))
                    result.append((f"minus {module} at most", float(-self.low[name, module].min()), -low))
        return result

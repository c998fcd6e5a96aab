"""Gradient ascent over free inputs of a model's norms."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import torch

from model_oracle.cases.case import Case, tensors
from model_oracle.make import load

POSITIONS = 32
Bounds = dict[str, Any]
# Numbers that a case has once for each input, not for each position.
OF_INPUTS = ("pixel_attention_mask", "spatial_shapes", "freq")


class Scores(torch.overrides.TorchFunctionMode):
    """Collects the inputs of every softmax over keys."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[torch.Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name == "scaled_dot_product_attention":
            return self._attention(*args, **kwargs)
        if name in ("softmax", "_softmax") and args[0].ndim >= 3:
            self.found.append(args[0])
        return func(*args, **kwargs)

    def _attention(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                   attn_mask: torch.Tensor | None = None, dropout_p: float = 0.0, is_causal: bool = False,
                   scale: float | None = None, enable_gqa: bool = False) -> torch.Tensor:
        if enable_gqa:
            repeat = query.shape[-3] // key.shape[-3]
            key, value = key.repeat_interleave(repeat, -3), value.repeat_interleave(repeat, -3)
        scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
        if is_causal:
            scores = scores.masked_fill(torch.ones(scores.shape[-2:]).tril() == 0, -torch.inf)
        if attn_mask is not None:
            allowed = attn_mask.dtype == torch.bool
            scores = scores.masked_fill(~attn_mask, -torch.inf) if allowed else scores + attn_mask
        self.found.append(scores)
        return torch.softmax(scores, -1) @ value


class FreeInputs:
    """Replaces the inputs of modules, at each of their executions, by tensors that a search may change."""

    def __init__(self, model: torch.nn.Module, modules: list[str]):
        self.rows: dict[tuple[str, int], torch.Tensor] = {}
        self._count: dict[str, int] = {}
        self._handles = [model.get_submodule(name).register_forward_pre_hook(self._hook(name), with_kwargs=True)
                         for name in modules]

    def _hook(self, name: str) -> Callable[..., Any]:
        def replace(_module: Any, args: Any, kwargs: Any) -> Any:
            key = name, self._count.get(name, 0)
            self._count[name] = key[1] + 1
            given = args[0] if args else kwargs["hidden_states"]
            if key not in self.rows:
                self.rows[key] = self.scaled(torch.randn(given.shape)).requires_grad_()
            if args:
                return (self.rows[key], *args[1:]), kwargs
            return args, dict(kwargs, hidden_states=self.rows[key])
        return replace

    @staticmethod
    def scaled(rows: torch.Tensor) -> torch.Tensor:
        """Rows so long that eps does not matter."""
        return 100.0 * rows / rows.square().mean(-1, keepdim=True).sqrt()

    def start(self) -> None:
        self._count = {}

    def rescale(self) -> None:
        with torch.no_grad():
            for rows in self.rows.values():
                rows.copy_(self.scaled(rows))

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


def ascend(free: FreeInputs, objective: Callable[[], torch.Tensor], steps: int) -> torch.Tensor:
    """The largest values of the objective (one for each independent search) over the steps of Adam."""
    best = objective().detach()
    optimizer, schedule = adam(free, steps)
    for _ in range(steps):
        optimizer.zero_grad()
        values = objective()
        best = torch.maximum(best, values.detach())
        (-values.sum()).backward()
        optimizer.step()
        schedule.step()
        free.rescale()
    return torch.maximum(best, objective().detach())


def adam(free: FreeInputs, steps: int) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    optimizer = torch.optim.Adam(list(free.rows.values()), lr=15.0, betas=(0.8, 0.99))
    return optimizer, torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.02 ** (1 / steps))


def positions_of(model: torch.nn.Module, case: Case) -> int:
    config = getattr(model, "config", None)
    if config is None:  # as many as the case has: a table of positions may be added whole
        return max([8, *(made.shape[1] for made in tensors(case.inputs)[0].values() if made.dtype == torch.int64)])
    text = config.get_text_config() if hasattr(config, "get_text_config") else config
    names = ("max_position_embeddings", "n_positions", "max_seq_len", "max_target_positions")
    known = [int(getattr(text, name)) for name in names if (getattr(text, name, None) or 0) > 0]
    behind_padding = ("roberta", "xlm-roberta", "xlm-roberta-xl", "roberta-prelayernorm", "camembert", "data2vec-text", "esm",
                      "mpnet", "opt", "prophetnet")
    padded = 3 if getattr(text, "model_type", "") in behind_padding else 0
    return min([POSITIONS, *known]) - padded


def fewest_positions(model: torch.nn.Module) -> int:
    """One, but where a model halves the positions."""
    return 7 if getattr(getattr(model, "config", None), "model_type", "") == "funnel" else 1


def batch(case: Case, count: int, length: int) -> dict[str, torch.Tensor]:
    """The case's inputs, `count` times, with ids of the given length."""
    made, _ = tensors(case.inputs)
    inputs = {}
    for name, tensor in made.items():
        if tensor.dtype == torch.int64 and name not in OF_INPUTS:
            times = [1, length // tensor.shape[1] + 1, *[1] * (tensor.ndim - 2)]
            tensor = tensor.repeat(times)[:, :length]
        inputs[name] = tensor.expand(count, *tensor.shape[1:])
    return inputs


def modules_read(truth: Bounds, entry: Bounds, side: str) -> list[str]:
    """The norms that the projections of one side of an attention read, directly or through one map; the layer where
    they read none."""
    inner = {name for other in truth["attention"] for end in ("query", "key") for name in other[end]["norms"]}
    modules: list[str] = []
    for terms in entry[side]["reads"]:
        if len(terms) > 1 or terms[0]["kind"] == "embedding":
            modules.append(entry["module"].rpartition(".")[0])
        elif terms[0]["kind"] == "norm":
            modules += [terms[0]["norm"]] if terms[0]["norm"] not in inner else []
        else:
            modules += [norm["module"] for norm in truth["norms"] for reader in norm["readers"]
                        if reader.get("weight") and reader["weight"] in terms[0].get("weights", [])]
    return modules


def free_modules(truth: Bounds) -> list[str]:
    return list(dict.fromkeys(name for entry in truth["attention"] for side in ("query", "key")
                              for name in modules_read(truth, entry, side)))


class HeadSearches:
    """Searches over the inputs of every attention at once: search s is about head s of each, modulo its heads.

    A score depends on its query and its own key only, so two contexts with the same query suffice for each search: in
    the first, the key at every position ascends, in the second it descends. The spread is that of the context which has
    the best key of the first and, at another position, the best of the second.
    """

    def __init__(self, case: Case, folder: Path, truth: Bounds, learned: list[bool]):
        self.case, self.attentions, self.learned = case, truth["attention"], learned
        self.model = load(case, folder)
        self.heads = max(entry["heads"] for entry in self.attentions)
        self.count, self.length = self.heads * 4, positions_of(self.model, case)
        self.inputs = batch(case, 2 * self.count, self.length)
        self.free = FreeInputs(self.model, free_modules(truth))
        self.visible = {name: entry["visible"] for entry in self.attentions
                        for name in modules_read(truth, entry, "query")}  # of the norms that queries read
        self.largest = 0.0
        self.scores()
        with torch.no_grad():  # the same query in both contexts
            for leaf in self.free.rows.values():
                for searches, row in self._query_rows(leaf):
                    leaf[searches, row] = leaf[searches % self.count, row]

    def scores(self) -> list[torch.Tensor]:
        """For each attention (context, search, key), those of one query."""
        self.free.start()
        with Scores() as collected:
            self.model(**self.inputs, **self.case.options)
        usable = [one for one in collected.found if one.shape[-1] > 1 and one.shape[0] * one.shape[1] % (2 * self.count) == 0]
        if len(usable) > len(self.attentions):  # torch's own attention hides the softmax of learned queries, others do not
            usable = [one for one, is_learned in zip(usable, self.learned, strict=True) if not is_learned]
        return [self._of_query(one, entry) for one, entry in zip(usable, self.attentions, strict=True)]

    def _of_query(self, scores: torch.Tensor, entry: Bounds) -> torch.Tensor:
        scores = scores.reshape(2, self.count, -1, *scores.shape[-2:])[..., : -1 if entry["sinks"] else None]
        search = torch.arange(self.count)
        own = scores[:, search, search % scores.shape[2]]
        return own[:, search, self.query_row(own.shape[2], entry["visible"])]

    def query_row(self, length: int, visible: str) -> torch.Tensor:
        """The last row; in half of the searches the middle one where later positions are seen as well."""
        if visible.startswith("causal"):
            return torch.full((self.count,), length - 1)
        return torch.where(torch.arange(self.count) // self.heads % 2 == 1, length // 2, length - 1)

    def spreads(self, scores: list[torch.Tensor]) -> torch.Tensor:
        """(attentions, searches)"""
        found = []
        for up, down in scores:
            seen = up.detach() > -1e4
            self.largest = max(self.largest, float(up.detach()[seen].abs().max()))
            other = seen[:, :, None] & seen[:, None] & ~torch.eye(up.shape[-1], dtype=torch.bool)
            found.append((up[:, :, None] - down[:, None]).masked_fill(~other, -torch.inf).amax((1, 2)))
        return torch.stack(found)

    def run(self, steps: int, query: float) -> tuple[torch.Tensor, torch.Tensor]:
        """The largest and the last spreads. Keys move to extreme scores, queries by `query` times the gradient of the
        spread."""
        leaves = list(self.free.rows.values())
        best, (optimizer, schedule) = torch.tensor(-torch.inf), adam(self.free, steps)
        for step in range(steps + 1):
            scores = self.scores()
            spreads = self.spreads(scores)
            best = torch.maximum(best, spreads.detach())
            if step == steps:
                break
            separate = sum(one[0][one[0] > -1e4].sum() - one[1][one[1] > -1e4].sum() for one in scores)
            of_keys = torch.autograd.grad(separate, leaves, retain_graph=True, allow_unused=True)
            of_queries = torch.autograd.grad(spreads.sum(), leaves, allow_unused=True)
            before = [leaf.detach().clone() for leaf in leaves]
            for leaf, keys, queries in zip(leaves, of_keys, of_queries):
                leaf.grad = torch.zeros_like(leaf) if keys is None else -keys
                for row in self._query_rows(leaf):
                    leaf.grad[row] = 0.0 if queries is None else -query * self._shared(queries[row])
            optimizer.step()
            schedule.step()
            self.free.rescale()
            for leaf, old in zip(leaves, before):
                for row in self._query_rows(leaf) if query == 0.0 else ():
                    leaf.data[row] = old[row]
        return best, spreads.detach()

    def _query_rows(self, leaf: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Index of the query's row in every context of a leaf that queries are made from."""
        name = next(name for (name, _), rows in self.free.rows.items() if rows is leaf)
        if name not in self.visible:
            return []
        return [(torch.arange(2 * self.count), self.query_row(leaf.shape[1], self.visible[name]).repeat(2))]

    def _shared(self, gradient: torch.Tensor) -> torch.Tensor:
        """Both contexts have the same query."""
        return gradient.reshape(2, self.count, -1).sum(0).repeat(2, 1)

    def of_head(self, attention: int, head: int) -> list[int]:
        return [s for s in range(self.count) if s % self.attentions[attention]["heads"] == head]

"""What heads, MLPs and other parts of a live torch model add to a logit, through its final norm: frozen, exactly, and as
tensors of torch with derivatives, for use in a loss.

>>> parts = lens.collect(model, tokens)             # doctest: +SKIP
>>> parts.changes(target=17).exact[:, 0, -1]        # doctest: +SKIP
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any, Iterator

import torch
from torch import Tensor

from . import results
from ._check import count, shown
from ._kinds import kind_facts
from .live import model_inside
from .model import open as open_model
from .modules import norm_computed_by, uncompiled

#: By how much parts may miss their sum, relative to their sizes; models compute in float32 or less.
_MISSES = {torch.float64: 1e-9, torch.float32: 1e-4, torch.bfloat16: 5e-2, torch.float16: 1e-2}


@dataclasses.dataclass(frozen=True, eq=False)
class Changes:
    """What replacing each part does to the reading: exact = frozen + price.

    Shapes   all (count, …), the reading's
    """

    frozen: Tensor  #: with the norm's divisor kept
    price: Tensor  #: what that leaves out: the norm divides what remains by another number
    exact: Tensor
    gradient: Tensor  #: the first-order estimate of exact, as attribution patching makes it


class Reading:
    """`direction · norm(x)` as a function of the rows x, by the formula of a live norm: differentiable in all of them.

    norm        module that is a LayerNorm or an RMSNorm, by what it computes
    Shapes      direction (width,)
    Errors      ValueError for modules that are neither
    """

    def __init__(self, norm: Any, direction: Tensor) -> None:
        found = norm_computed_by(norm)
        if isinstance(found, str):
            raise ValueError(f"lens: {type(norm).__name__} is not understood: {found}")
        self.eps, self._centres = found.norm.eps, kind_facts("lens", found.norm.kind).centers
        gain = None if found.gain is None else found.gain + found.offset if found.offset else found.gain
        self.weights = direction if gain is None else direction * gain.flatten()
        bias = None if found.bias is None else found.bias.flatten()
        self.constant = direction.new_zeros(()) if bias is None else direction @ bias
        if self._centres:
            self.weights = self.weights - self.weights.mean()

    def centred(self, x: Tensor) -> Tensor:
        """What is divided."""
        return x - x.mean(-1, keepdim=True) if self._centres else x

    def divisor(self, x: Tensor) -> Tensor:
        """√(|x|²/width + eps), x centred.

        Shapes   x (…, width); result (…)
        """
        return (self.centred(x).square().mean(-1) + self.eps).sqrt()

    def __call__(self, x: Tensor) -> Tensor:
        return self.centred(x) @ self.weights / self.divisor(x) + self.constant

    def shares(self, x: Tensor, parts: Tensor) -> Tensor:
        """What each part adds to the reading with the divisor of x: they add up to it, less the constant.

        Shapes   x (…, width), parts (count, …, width); result (count, …)
        """
        return parts @ self.weights / self.divisor(x)

    def changes(self, x: Tensor, parts: Tensor, replacements: Tensor | None = None) -> Changes:
        """Each part replaced alone, by nothing or by the row of `replacements`.

        Shapes   as `shares`; replacements as parts
        """
        d = self.centred(-parts if replacements is None else replacements - parts)
        u, s = self.centred(x), self.divisor(x)
        along = d @ self.weights
        frozen = along / s
        width = x.shape[-1]
        grown = ((d * (2.0 * u + d)).sum(-1)) / width  # s'² − s²
        after = (s.square() + grown).clamp_min(0.0).sqrt()
        # 1/s' − 1/s without the difference of two close numbers.
        price = (u @ self.weights + along) * -grown / (s * after * (s + after))
        gradient = frozen - (u @ self.weights) * (u * d).sum(-1) / (width * s**3)
        return Changes(frozen, price, frozen + price, gradient)


@dataclasses.dataclass(frozen=True, eq=False)
class Parts:
    """The addends of the residual stream before the final norm of a live model, in the run that they were collected in.

    Shapes   rows (count, batch, positions, width); x (batch, positions, width); tokens (batch, positions)
    """

    names: list[str]  #: embedding, position, LAYER.HEAD, LAYER.mlp, LAYER.attention_bias, LAYER.mlp_bias
    rows: Tensor
    x: Tensor  #: what enters the final norm
    tokens: Tensor
    norm: Any  #: the final norm, a module
    unembedding: Tensor  #: (tokens of the vocabulary, width), of the live model
    bias: Tensor | None
    scale: float  #: of the logits
    model: Any = dataclasses.field(repr=False)

    def __repr__(self) -> str:
        return f"<normscope.torch.lens.Parts {len(self.names)} parts of {tuple(self.x.shape)}>"

    def __getitem__(self, name: str) -> Tensor:
        """The rows of one part, (batch, positions, width)."""
        if name not in self.names:
            raise KeyError(f"lens: no part {name!r}, expected one of {', '.join(self.names)}")
        return self.rows[self.names.index(name)]

    @property
    def miss(self) -> float:
        """The largest difference between x and the sum of the parts, over the largest sum of their sizes."""
        size = self.rows.detach().abs().sum(0).max()
        return float((self.rows.sum(0) - self.x).detach().abs().max() / size) if size > 0 else 0.0

    def reading(self, target: int, against: int | None = None) -> Reading:
        """The target's logit, or its difference to another's, without the unembedding's bias and soft caps."""
        vocabulary = len(self.unembedding)
        for name, token in (("target", target), ("against", against)):
            if token is not None and count("lens", name, token) >= vocabulary:
                raise ValueError(f"lens: {name} is {token}, expected a token below {vocabulary}")
        row = self.unembedding[target]
        return Reading(self.norm, self.scale * (row if against is None else row - self.unembedding[against]))

    def shares(self, target: int, against: int | None = None) -> Tensor:
        """What each part adds to the logit with the divisor of this run, as TransformerLens's `logit_attrs`.

        Shapes   result (count, batch, positions)
        """
        return self.reading(target, against).shares(self.x, self.rows)

    def changes(self, target: int, against: int | None = None, *, replace_with: Any = "zero") -> Changes:
        """What replacing each part before the final norm does to the logit, exactly and as estimates have it.

        replace_with   "zero", "mean" (the part's mean over the positions up to each), or rows like `rows`
        Shapes         those of the result (count, batch, positions)
        """
        if isinstance(replace_with, Tensor):
            replacements = replace_with.expand_as(self.rows)
        elif replace_with == "mean":
            upto = torch.arange(1, self.rows.shape[-2] + 1, dtype=self.rows.dtype, device=self.rows.device)
            replacements = self.rows.cumsum(-2) / upto[:, None]
        elif replace_with == "zero":
            replacements = None
        else:
            raise ValueError(f'lens: replace_with is {shown(replace_with)}, expected "zero", "mean" or a tensor of rows')
        return self.reading(target, against).changes(self.x, self.rows, replacements)

    def numpy(self) -> dict[str, Any]:
        """The rows of each part as arrays of float64, (batch, positions, width)."""
        return {name: rows.detach().double().cpu().numpy() for name, rows in zip(self.names, self.rows)}

    def attribute(self, target: int, *, context: int = 0, at: int | None = None, **options: Any) -> results.Attribute:
        """The core's result about these parts, with its proved bounds over every set of them: `Model.attribute`, which
        takes the `options`.

        context   which of the batch
        at        position that is read; the last where None
        Errors    as `Model.attribute`
        """
        tokens = self.tokens[context].tolist()
        position = len(tokens) - 1 if at is None else count("attribute", "at", at)
        rows = self.rows[:, context, position].detach().double().cpu().numpy()
        found = open_model(self.model).attribute(tokens, target, at=position, components=rows, **options)
        return renamed(found, self.names)


def renamed(found: results.Attribute, names: list[str]) -> results.Attribute:
    """With the names of parts in place of "row K"."""
    known = {component.name: name for component, name in zip(found.components, names, strict=True)}
    for component, name in zip(found.components, names):
        component.name = name
    for bound in found.bounds:
        for end in vars(bound).values():
            if hasattr(end, "components"):
                end.components[:] = [known[name] for name in end.components]
    if found.circuit is not None:
        found.circuit.kept[:] = [known[name] for name in found.circuit.kept]
    return found


def collect(model: Any, tokens: Any = None, **inputs: Any) -> Parts:
    """Runs a model of transformers or TransformerLens with hooks, and splits what enters its final norm into embeddings,
    heads, MLPs and biases. A branch with a norm of its own counts as what that norm puts out, with its divisor kept.

    tokens   ids (batch, positions) or (positions,)
    inputs   further arguments of the model
    Errors   TypeError unless it is a module; ValueError for models whose parts are not known, or do not add up
    """
    if not hasattr(model, "named_modules"):
        raise TypeError(f"lens: {type(model).__name__} is no torch.nn.Module")
    if not hasattr(model, "run_with_cache") and not hasattr(model, "peft_config"):
        model = model_inside(model)
    ids = torch.as_tensor(tokens if tokens is not None else inputs.pop("input_ids", None))
    ids = ids[None] if ids.ndim == 1 else ids
    found = dict(_of_lens(model, ids, inputs) if hasattr(model, "run_with_cache") else _of_hooks(model, ids, inputs))
    parts = Parts(names=list(found["parts"]), rows=torch.stack(list(found["parts"].values())), x=found["x"], tokens=ids,
                  norm=found["norm"], unembedding=found["unembedding"], bias=found["bias"],
                  scale=1.0 if hasattr(model, "run_with_cache") else _scale_of(model), model=model)
    miss, most = parts.miss, _MISSES.get(parts.x.dtype, 1e-4)
    if not miss <= most:
        raise ValueError(f"lens: the {len(parts.names)} parts of {type(model).__name__} miss the final norm's input by "
                         f"{miss:.2g} of their size, expected at most {most:g}: its wiring is not known")
    return parts


def _heads_of(z: Tensor, weight: Tensor, heads: int) -> Iterator[Tensor]:
    """What each head's columns of z add to z @ weight.

    Shapes   z (…, heads * n); weight (heads * n, width)
    """
    if z.shape[-1] % heads:
        raise ValueError(f"lens: {heads} heads do not divide the {z.shape[-1]} inputs of the attention's output map")
    for part, rows in zip(z.split(z.shape[-1] // heads, -1), weight.split(len(weight) // heads, 0)):
        yield part @ rows


def _of_lens(model: Any, tokens: Tensor, inputs: dict[str, Any]) -> dict[str, Any]:
    """By the cache of TransformerLens."""
    _, cache = model.run_with_cache(tokens, **inputs)
    parts: dict[str, Tensor] = {"embedding": cache["hook_embed"]}
    if "hook_pos_embed" in cache:
        parts["position"] = cache["hook_pos_embed"].expand_as(parts["embedding"])
    for layer, block in enumerate(model.blocks):
        z = cache[f"blocks.{layer}.attn.hook_z"]
        weight, width = block.attn.W_O, parts["embedding"].shape[-1]
        heads = weight.shape[0]
        for head, part in enumerate(_heads_of(z.flatten(-2) if z.ndim == 4 else z, weight.reshape(-1, width), heads)):
            parts[f"{layer}.{head}"] = part
        for name, out, bias in (("attention_bias", None, getattr(block.attn, "b_O", None)),
                                ("mlp", cache[f"blocks.{layer}.hook_mlp_out"], getattr(block.mlp, "b_out", None))):
            stored = isinstance(bias, Tensor) and bool(bias.any())
            if out is not None:
                parts[f"{layer}.{name}"] = out - bias if stored else out
            if stored:
                parts[f"{layer}.{name if out is None else 'mlp_bias'}"] = bias.expand_as(parts["embedding"])
    return {"parts": parts, "x": cache[f"blocks.{len(model.blocks) - 1}.hook_resid_post"], "norm": model.ln_final,
            "unembedding": model.W_U.T, "bias": getattr(model, "b_U", None)}


class _Seen(dict):
    """What entered and left modules, by their names, in one run."""

    def hooks(self, model: Any, names: Any) -> Iterator[Any]:
        for name in names:
            try:
                module = model.get_submodule(name)
            except AttributeError:
                raise ValueError(f"lens: {type(model).__name__} has no module {name}: its wiring is not known") from None

            def hook(module: Any, given: tuple[Any, ...], keywords: dict[str, Any], out: Any, name: str = name) -> None:
                if name in self:
                    raise ValueError(f"lens: {name} ran more than once, expected one pass without gradient checkpointing")
                # Copies: some models add to a branch's output in place.
                self[name] = tuple(tensor[0].clone() if isinstance(tensor, tuple) else tensor.clone()
                                   for tensor in ((*given, *keywords.values())[0], out))

            yield module.register_forward_hook(hook, with_kwargs=True)


def _of_hooks(model: Any, tokens: Tensor, inputs: dict[str, Any]) -> dict[str, Any]:
    """By hooks at the maps that the core found to write the residual stream."""
    norms = open_model(model).inspect().norms
    writers: dict[tuple[int | None, str], tuple[Any, Any]] = {}
    for norm in norms:
        for writer in norm.writers:
            if writer.role in ("query", "key", "value"):
                continue  # of norms inside attention
            layer = re.search(r"\.(\d+)\.", f".{writer.tensor}")
            key = (int(layer[1]) if layer and "embedding" not in writer.role else None, writer.role)
            after = norm.name if norm.placement == "inside" else None
            before = writers.get(key, (writer,))[0]
            if key[1] == "mlp out" and (before is None or before.tensor != writer.tensor):
                writers[key] = None, _experts_of(model, writer.tensor), after
            else:
                writers[key] = writer, writer.tensor.rpartition(".")[0], after
    stream = [norm.name for norm in norms if norm.placement == "pre" and norm.order_known]
    if not stream or (None, "token embedding") not in writers or any(role not in _ROLES for _, role in writers):
        raise ValueError(f"lens: the norms of {type(model).__name__} are not known to read a stream of addends")
    # The embedding as the first norm reads it, times what the model multiplies it by.
    first = stream[0] if len(stream) > 1 else writers[None, "token embedding"][1]
    final = stream[-1]
    watched = {first, final, *(module for _, module, _ in writers.values()),
               *(after for *_, after in writers.values() if after)}
    seen, ends = _Seen(), []
    try:
        ends.extend(handle.remove for handle in seen.hooks(model, watched))
        ends.extend(uncompiled(model))
        model(tokens, **{"use_cache": False, **inputs})
    finally:
        for end in ends:
            end()
    idle = sorted(watched - seen.keys())
    if idle:
        raise ValueError(f"lens: {idle[0]} of {type(model).__name__} did not run")
    config = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
    start, parts = seen[first][0 if len(stream) > 1 else 1], {}
    position = writers.get((None, "position embedding"))
    place = None if position is None else seen[position[1]][1].expand_as(start)
    parts["embedding"] = start if place is None else start - place
    if place is not None:
        parts["position"] = place
    factor = getattr(config, "residual_multiplier", 1.0)
    heads = getattr(config, "num_attention_heads", None)
    if not isinstance(heads, int) or heads < 1:
        raise ValueError(f"lens: the configuration of {type(model).__name__} does not state one number of heads")
    for layer in sorted({key[0] for key in writers if key[0] is not None}):
        for role, bias_name in (("attention out", "attention_bias"), ("mlp out", "mlp_bias")):
            if (layer, role) not in writers:
                continue
            writer, name, after = writers[layer, role]
            module = model.get_submodule(name)
            given, out = seen[name]
            given, out = given.reshape(*start.shape[:-1], -1), out.reshape(start.shape)
            bias = None if writer is None else getattr(module, "bias", None)
            through = _branch(model, after, seen, factor)
            if role == "attention out":
                weight = getattr(module, "weight", None)
                if not isinstance(weight, Tensor) or weight.ndim != 2 or not weight.is_floating_point():
                    raise ValueError(f"lens: {name} has no weight of plain numbers")
                rows = weight if writer.layout == "in_out" else weight.T
                for head, part in enumerate(_heads_of(given, rows, heads)):
                    parts[f"{layer}.{head}"] = through(part)
            else:
                parts[f"{layer}.mlp"] = through(out if bias is None else out - bias)
            if bias is not None:
                parts[f"{layer}.{bias_name}"] = through(bias.expand_as(out))
            shift = _shift_of(model, after)
            if shift is not None:
                parts[f"{layer}.{bias_name.replace('bias', 'norm_bias')}"] = factor * shift.expand_as(out)
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    if head is None:
        raise ValueError(f"lens: {type(model).__name__} has no output embeddings")
    return {"parts": parts, "x": seen[final][0], "norm": model.get_submodule(final), "unembedding": head.weight,
            "bias": getattr(head, "bias", None)}


#: The maps that may write a stream of which all addends are known.
_ROLES = frozenset({"token embedding", "position embedding", "attention out", "mlp out"})


def _experts_of(model: Any, tensor: str) -> str:
    """The module that sums the experts of the layer of that tensor."""
    layer = re.match(r"(.*?\.\d+)\.", tensor)
    for name in ("mlp", "block_sparse_moe", "feed_forward", "moe", "ffn"):
        if layer and name in dict(model.get_submodule(layer[1]).named_children()):
            return f"{layer[1]}.{name}"
    raise ValueError(f"lens: the experts of {type(model).__name__} are not known: {tensor} has several beside it")


def _scale_of(model: Any) -> float:
    """What its logits are multiplied by."""
    try:
        return open_model(model).head().scale
    except ValueError:
        return 1.0  # not modelled


def _branch(model: Any, after: str | None, seen: _Seen, factor: float) -> Any:
    """How a part of a branch's output enters the stream: through the norm of the branch, if there is one, with its divisor
    kept, and multiplied by a factor."""
    if after is None:
        return lambda part: part * factor if factor != 1.0 else part
    found = norm_computed_by(model.get_submodule(after))
    if isinstance(found, str):
        raise ValueError(f"lens: {after} is not understood: {found}")
    whole = Reading(model.get_submodule(after), seen[after][0].new_zeros(seen[after][0].shape[-1]))
    divisor = whole.divisor(seen[after][0])[..., None]
    gain = 1.0 if found.gain is None else found.gain + found.offset
    return lambda part: factor * gain * whole.centred(part) / divisor


def _shift_of(model: Any, after: str | None) -> Tensor | None:
    return None if after is None else getattr(model.get_submodule(after), "bias", None)

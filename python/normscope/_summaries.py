"""What each kind of result says in one line, and in columns, by its schema."""

from __future__ import annotations

import decimal
from typing import Any, Callable

#: Bounds are rounded up, so that they stay true.
_UP = decimal.Context(prec=4, rounding=decimal.ROUND_CEILING)


def counted(count: int, noun: str) -> str:
    """"1 norm", "2 norms"."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def at_most(value: float) -> str:
    """An upper bound in four digits."""
    return f"{float(_UP.create_decimal(value)):g}"


def _or_nothing(value: Any, text: str) -> str:
    return "" if value is None else text.format(value)


def _geometry(result: Any) -> str:
    axes = len(result.semi_axes)
    if not axes:
        return f"{result.norm} of width {result.width}: a point"
    longest = f" from {result.semi_axes[0]:.4g} to {result.semi_axes[-1]:.4g}"
    return (f"{result.norm} of width {result.width}: {axes} semi-ax{'i' if axes == 1 else 'e'}s{longest}"
            f"{_or_nothing(result.condition, ', condition {:.4g}')}, effective dimension {result.effective_dimension:.4g}")


def _select(result: Any) -> str:
    undecided = f", {len(result.undecided)} undecided" if result.undecided else ""
    return f"{result.selectable} of {counted(result.keys, 'key')} selectable, {len(result.unselectable)} not{undecided}"


def _separate(result: Any) -> str:
    rows = " + ".join(map(str, result.rows))
    separable = f"separable: {result.separable}, " if result.separable else ""
    return (f"{rows} rows of width {result.width}: {separable}SSR {_or_nothing(result.ssr, '{:.4g}') or 'not defined'}, "
            f"LSSR {_or_nothing(result.lssr, '{:.4g}') or 'not defined'}")


def _reach(result: Any) -> str:
    undecided = f", {len(result.undecided)} undecided" if result.undecided else ""
    return (f"{result.reachable} of {counted(result.tokens, 'token')} can have the largest logit, "
            f"{len(result.unreachable)} never{undecided}")


def _heads(result: Any) -> str:
    bounded = [head.sharp_bounds for head in result.heads if head.sharp_bounds]
    spreads = f", sharpest spread {at_most(min(b[1] for b in bounded))} to {at_most(max(b[1] for b in bounded))}" if bounded else ""
    return f"{len(bounded)} of {counted(len(result.heads), 'head')} bounded{spreads}"


def _ranges(result: Any) -> str:
    readers = [reader for norm in result.norms for reader in norm.readers or []]
    bounded = [reader for reader in readers if reader.refused is None]
    largest = max((abs(end.bound) for reader in bounded for end in (reader.lowest, reader.highest)), default=None)
    numbers = "" if largest is None else f", numbers up to {at_most(largest)}"
    return (f"{counted(len(result.norms), 'norm')}, {len(bounded)} of {counted(len(readers), 'linear map')} behind them "
            f"bounded{numbers}")


def _rewrite(result: Any) -> str:
    changed = [what for what, done in (("gains folded", result.fold_gains), ("gains migrated", result.migrate),
                                       ("stream centred", result.center), ("head untied", result.untied),
                                       ("stream rotated", result.rotations)) if done]
    return f"{', '.join(changed) or 'nothing'}; {counted(len(result.certificates), 'changed tensor')}"


def _verify(result: Any) -> str:
    kind = result.result.rpartition("/")[0].removeprefix("normscope.")
    failed = f", {len(result.failed)} do not hold" if result.failed else ", all hold"
    open_ones = f", {len(result.not_checkable)} not proved" if result.not_checkable else ""
    return f"{counted(result.checked, 'statement')} of {kind} checked{failed}{open_ones}"


#: Of the results whose answer fits into a line.
HEADLINES: dict[str, Callable[[Any], str]] = {
    "normscope.compare/1": lambda r: f"{r.agreement}; {counted(len(r.norms), 'norm')}, {counted(len(r.findings), 'finding')}",
    "normscope.geometry/1": _geometry,
    "normscope.heads/1": _heads,
    "normscope.inspect/1": lambda r: (f"{r.architecture.title}: {counted(len(r.tensors), 'tensor')}, "
                                      f"{counted(len(r.norms), 'norm')}"),
    "normscope.ranges/1": _ranges,
    "normscope.reach/1": _reach,
    "normscope.rewrite/1": _rewrite,
    "normscope.run/1": lambda r: f"labels of {counted(r.rows, 'sample')}, by {counted(r.layers, 'layer')}",
    "normscope.select/1": _select,
    "normscope.separate/1": _separate,
    "normscope.attribute/1": lambda r: f"{counted(len(r.components), 'component')} of a logit of {r.value:.4g}",
    "normscope.token-trace/1": lambda r: f"{counted(len(r.tokens), 'token')} through {counted(len(r.norms), 'norm')}",
    "normscope.signature-compare/1": lambda r: f"{r.relation}, scale {r.scale:.6g}",
    "normscope.signature-kind/1": lambda r: f"norm: {r.norm}, rank {r.rank} of {counted(r.rows, 'row')}",
    "normscope.undo/1": lambda r: f"{counted(len(r.tensors), 'tensor')} restored",
    "normscope.verify/1": _verify,
}


def headline(result: Any) -> str:
    """The answer in one line, empty for other results."""
    line = HEADLINES.get(getattr(result, "schema", None))
    try:
        return line(result) if line else ""
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return ""  # a document that was read from a file need not be one that the core wrote


def _of_tokens(result: Any) -> dict[str, Any]:
    return {"answer": [proof.answer for proof in result.proofs],
            "lead_lower": result.lead.lower, "lead_upper": result.lead.upper,
            "probability_lower": result.max_probability.lower, "probability_upper": result.max_probability.upper}


#: Columns of the results that are a table although they have no list of parts, or a better one.
COLUMNS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "normscope.geometry/1": lambda r: {"semi_axis": r.semi_axes},
    "normscope.reach/1": _of_tokens,
    "normscope.run/1": lambda r: {"label": r.labels},
}

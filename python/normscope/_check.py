"""Checks of arguments before they reach the core, with messages in the core's form."""

from __future__ import annotations

import math
import operator
import os
import sys
from typing import Any

import numpy

#: The most threads, tokens, axes … that are passed on.
LARGEST = 2**31 - 1


def shown(value: Any) -> str:
    """A value as one line, for messages."""
    if isinstance(value, numpy.ndarray):
        return f"an array of shape {value.shape}"
    try:
        line = " ".join(repr(value).split())
    except Exception:  # an object's own code, which may fail in any way
        line = f"a {type(value).__name__}"
    return line if len(line) <= 60 else line[:59] + "…"


def reason(error: Exception) -> str:
    """An exception of other code as one line."""
    return " ".join(str(error).split())


def count(who: str, name: str, value: Any, least: int = 0) -> int:
    """An integer of at least `least`."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{who}: {name} is {shown(value)}, expected an integer") from None
    if not least <= number <= LARGEST:
        raise ValueError(f"{who}: {name} is {number}, expected {least} to {LARGEST}")
    return number


def counts(who: str, name: str, values: Any, least: int = 0) -> list[int]:
    """Integers of at least `least`; `name` is that of one."""
    try:
        listed = list(values)
    except Exception:
        raise TypeError(f"{who}: {name}s is {shown(values)}, expected integers") from None
    return [count(who, name, value, least) for value in listed]


def real(who: str, name: str, value: Any, least: float = 0.0, most: float = math.inf) -> float:
    """A number from `least` to `most`."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{who}: {name} is {shown(value)}, expected a number") from None
    if not least <= number <= most:
        raise ValueError(f"{who}: {name} is {number:g}, expected {least:g} to {most:g}")
    return number


def flag(who: str, name: str, value: Any) -> bool:
    """True or False, or a value that converts to one."""
    try:
        return bool(value)
    except Exception:
        raise TypeError(f"{who}: {name} is {shown(value)}, expected True or False") from None


def text(who: str, name: str, value: Any) -> str:
    """A string."""
    if not isinstance(value, str):
        raise TypeError(f"{who}: {name} is {shown(value)}, expected a string")
    return value


def path(who: str, name: str, value: Any) -> str:
    """A path as text."""
    if isinstance(value, (str, os.PathLike)):
        found = os.fspath(value)
        if found == "":
            raise ValueError(f"{who}: {name} is empty, expected a path")
        if isinstance(found, str):
            return found
    raise TypeError(f"{who}: {name} is {shown(value)}, expected a path")


def optional_path(who: str, name: str, value: Any) -> str:
    """A path as text, empty for None."""
    return "" if value is None else path(who, name, value)


def numbers(who: str, name: str, value: Any) -> numpy.ndarray:
    """An array in float64, of an array or tensor of numbers or of lists of them."""
    try:
        if hasattr(value, "detach"):
            value = value.detach().cpu().double()
        only_dlpack = hasattr(value, "__dlpack__") and not hasattr(value, "__array__")
        found = numpy.from_dlpack(value) if only_dlpack else numpy.asarray(value)
    except Exception as error:
        raise TypeError(f"{who}: {name} is no array: {reason(error)}") from None
    if found.dtype.kind not in "biuf" and found.dtype.name != "bfloat16":
        raise TypeError(f"{who}: {name} is {found.dtype}, expected numbers")
    return found.astype(float, copy=False)


def recording() -> bool:
    """Whether torch records or redirects operations, as `torch.jit.trace`, `make_fx` and `FakeTensorMode` do: what is
    written into a tensor by its address then escapes it."""
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    modes = getattr(torch._C, "_len_torch_dispatch_stack", int)  # not in every version
    return torch._C._get_tracing_state() is not None or modes() > 0


def expect_computed(who: str) -> None:
    """Refuses to make a tensor that torch would record as an empty one."""
    if recording():
        raise TypeError(f"{who}: torch is recording operations, expected normscope.torch.normalize, which it can record")


def expect_no_gradient(who: str, inputs: dict[str, Any]) -> None:
    """Refuses inputs whose derivatives torch records, where the result would silently have none."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    level = torch.autograd.forward_ad._current_level
    for name, given in inputs.items():
        if not isinstance(given, torch.Tensor):
            continue
        recorded = given.requires_grad and torch.is_grad_enabled()
        if recorded or level >= 0 and torch.autograd.forward_ad.unpack_dual(given).tangent is not None:
            raise TypeError(f"{who}: {name} records derivatives, which the result does not have; expected {name}.detach(), "
                            "or normscope.torch.normalize, which records them too")


def callback(who: str, value: Any) -> Any:
    """None, or a callable."""
    if value is not None and not callable(value):
        raise TypeError(f"{who}: progress is {shown(value)}, expected a function of (what, done, total)")
    return value

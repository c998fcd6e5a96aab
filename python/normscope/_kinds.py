"""The kinds of norm. scripts/norm_kinds writes this file from the table in include/normscope/core/norm_kind.hpp."""

from typing import Literal, NamedTuple

Kind = Literal["layer", "rms", "spherical", "dyt", "derf"]


class Facts(NamedTuple):
    """What a kind does to a block of features before gain and bias."""

    centers: bool  #: whether the mean is subtracted first
    divisor: Literal["root_mean_square", "length", "nothing"]  #: of a block; "nothing" for elementwise kinds
    has_shift: bool  #: whether shift is a parameter; elementwise kinds have alpha


KINDS: dict[str, Facts] = {
    "layer": Facts(True, "root_mean_square", False),
    "rms": Facts(False, "root_mean_square", False),
    "spherical": Facts(False, "length", False),
    "dyt": Facts(False, "nothing", False),
    "derf": Facts(False, "nothing", True),
}


def kind_facts(who: str, kind: str) -> Facts:
    """The facts of that kind; `who` begins the message.

    Errors   ValueError if there is no such kind
    """
    if kind not in KINDS:
        *names, last = KINDS
        raise ValueError(f'{who}: unknown norm kind "{kind}", expected {", ".join(names)} or {last}')
    return KINDS[kind]

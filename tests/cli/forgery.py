"""How forgeries of results are written: edits of the genuine document, each with the claim that it negates."""

import json
import re
from typing import Any, Callable, NamedTuple


class Forgery(NamedTuple):
    source: str
    name: str
    field: str
    verdict: str
    forge: Callable[[str], str]  # from the text of the genuine result to that of the false one


def steps_of(path):
    return [int(number) if number else name for name, number in re.findall(r"([A-Za-z_]\w*)|\[(-?\d+)\]", path)]


def value_at(document, path):
    for step in steps_of(path):
        document = document[step]
    return document


def put(path: str, value: Any):
    """An edit: the value at a path becomes another; a function is given the old one."""
    *steps, last = steps_of(path)

    def edit(document):
        for step in steps:
            document = document[step]
        document[last] = value(document[last]) if callable(value) else value
    return edit


def drop(path: str):
    *steps, last = steps_of(path)

    def edit(document):
        for step in steps:
            document = document[step]
        del document[last]
    return edit


def add(path: str, value: Any):
    """An edit: an entry more at the end of a list, or a member more."""
    def edit(document):
        at = value_at(document, path)
        at.append(value(document) if callable(value) else value) if isinstance(at, list) else at.update(value)
    return edit


def edited(*edits):
    def forge(text):
        document = json.loads(text)
        for edit in edits:
            edit(document)
        return json.dumps(document)
    return forge


def weights(name, *pairs):
    return [{name: index, "weight": weight} for index, weight in pairs]


def numerators(name, *pairs):
    return [{name: index, "numerator": str(number)} for index, number in pairs]


class Forgeries:
    def __init__(self, source):
        self.source, self.all = source, []

    def claim(self, name, field, verdict, *edits):
        self.all.append(Forgery(self.source, name, field, verdict, edited(*edits)))

    def failed(self, name, field, *edits):
        self.claim(name, field, "failed", *edits)

    def unproved(self, name, field, *edits):
        self.claim(name, field, "unproved", *edits)

    def malformed(self, name, field, *edits):
        self.claim(name, field, "malformed", *edits)

    def text(self, name, field, forge):
        self.all.append(Forgery(self.source, name, field, "malformed", forge))


def header(of):
    """What every kind of result has that names its arrays."""
    of.failed("another hash of an input", "sha256", put("inputs.arrays[0].sha256", "0" * 64))
    of.failed("another shape of an input", "shape", put("inputs.arrays[0].shape", lambda shape: [shape[0] + 1, *shape[1:]]))
    of.failed("an input left out", "arrays", drop("inputs.arrays[0]"))
    layout(of)


def layout(of):
    """What every kind of result has."""
    of.malformed("an unknown member", "proof_of_everything", add("", {"proof_of_everything": True}))
    of.malformed("a schema of no result", "schema", put("schema", "normscope.truth/1"))
    of.text("two members of one name", "schema", lambda text: text.replace("{", '{"version": "0", ', 1))
    of.text("a number that is not finite", "NaN", lambda text: re.sub(r'("(?:scale|divisor|version)": )[^,]+', r"\1NaN", text, count=1))
    of.text("text after the result", "JSON", lambda text: text + "{}")
    of.text("the result cut off", "JSON", lambda text: text[:-1])

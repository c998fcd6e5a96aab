"""What the checkers in Python share: results read strictly, an outcome for each field, and numbers without rounding.

Doubles are integers times a power of two, so sums of their products are exact in integers. Logits have the factor √N of
a norm, and lengths are roots, which compares of squares decide. Exponentials and logarithms are decimals of 50 digits.
"""

import json
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np

UNIT = 2.0**-53


class Malformed(ValueError):
    """What is no result of its schema."""


class Outcome:
    """Of each field of a result, whether it is proved. Exit status: 1 a field failed, 4 one is left unproved, 0 neither.

    The failed and the unproved fields are lists of (path, reason); a path is written as `verdicts[3].margin`.
    """

    def __init__(self):
        self.states, self.parts = {}, set()

    def part(self, path, holds, reason):
        """Something about a list or an object, of whose members nothing is said by that."""
        if path not in self.states:
            self.parts.add(path)
        return self.state(path, holds, reason)

    def state(self, path, holds, reason=""):
        """A field, with all that it contains, is proved (True), fails (False) or is left unproved (None)."""
        rank = {False: 2, None: 1, True: 0}
        holds = None if holds is None else bool(holds)
        if path not in self.states or rank[holds] > rank[self.states[path][0]]:
            self.states[path] = holds, reason
        return holds

    def use(self, *paths):
        """Numbers of a certificate: they state nothing but what is proved by them."""
        for path in paths:
            self.parts.discard(path)
            self.state(path, True)

    def equal(self, path, stated, found):
        return self.state(path, type(stated) is type(found) and stated == found or _same_number(stated, found),
                          f"is {_short(stated)}, expected {_short(found)}")

    def finish(self, document):
        """Leaves each field unproved of which nothing was said."""
        known = set(self.states) - self.parts
        for path in _leaves(document, ""):
            if path not in self.states and not any(path[:end.start()] in known for end in re.finditer(r"[.\[]", path)):
                self.state(path, None, "nothing in the result and its inputs proves it")
        return self

    def _of(self, holds):
        return [(path, reason) for path, (found, reason) in self.states.items() if found is holds]

    @property
    def failed(self):
        return self._of(False)

    @property
    def unproved(self):
        return self._of(None)

    @property
    def exit_status(self):
        return 1 if self.failed else 4 if self.unproved else 0


def _same_number(a, b):
    return all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in (a, b)) and a == b


def _short(value):
    text = json.dumps(value, default=str)
    return text if len(text) < 60 else text[:56] + " ..."


def _leaves(value, path):
    """Paths of all that has no members; null, and a list without entries, state nothing unless they are read."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{index}]")
    elif value is not None:
        yield path


def report(outcome):
    """Prints what fails and what is left unproved, and gives the exit status."""
    for word, found in (("failed", outcome.failed), ("not proved", outcome.unproved)):
        alike = {}
        for path, reason in found:
            alike.setdefault((re.sub(r"\[\d+\]", "", path), reason if word == "not proved" else path), []).append((path, reason))
        for (path, reason), *more in alike.values():
            print(f"{word}: {path}{f' and {len(more)} more' if more else ''}: {reason}")
    if outcome.exit_status == 0:
        print("every statement is proved")
    return outcome.exit_status


# Reading

def read(text):
    """The document of a result's text, if it is one of its schema.

    Errors   Malformed
    """
    def members(pairs):
        if len({name for name, _ in pairs}) != len(pairs):
            raise Malformed("two members of one object have the same name: " + ", ".join(sorted(name for name, _ in pairs))[:200])
        return dict(pairs)

    def finite(digits):
        number = float(digits)
        if not math.isfinite(number):
            raise Malformed(f"{digits[:40]} is not a finite number")
        return number

    def whole(digits):
        if len(digits) > 20:
            raise Malformed(f"{digits[:40]}... is too large an integer")
        return int(digits)

    try:
        document = json.loads(text, object_pairs_hook=members, parse_float=finite, parse_int=whole, parse_constant=finite)
    except Malformed:
        raise
    except (ValueError, RecursionError) as error:
        raise Malformed(f"is not JSON: {error}") from None
    kind = re.fullmatch(r"normscope\.([a-z]+)/1", document["schema"]) if isinstance(document, dict) and isinstance(
        document.get("schema"), str) else None
    schema = kind and _schema(kind[1])
    if not schema or kind[1] not in ("select", "separate", "reach", "heads", "ranges", "attribute", "rewrite"):
        raise Malformed("has no schema of a result that can be checked")
    _conform(document, schema, "", schema.get("$defs", {}))
    return document


def _schema(kind):
    """From the package, or from the sources of the project."""
    for folder in (Path(__file__).parent / "schemas", Path(__file__).parents[2] / "docs/schemas"):
        file = folder / f"{kind}.schema.json"
        if file.is_file():
            return json.loads(file.read_text(encoding="utf-8"))
    return None


_TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int, "number": (int, float)}


def _conform(value, schema, path, named, closed=True):
    """The part of JSON Schema that the schemas use; a closed object has no members but those that its schema names."""
    if "$ref" in schema:
        schema = named[schema["$ref"].rpartition("/")[2]]
    def refuse(what):
        raise Malformed(f"{path or 'the result'} is {_short(value)}, expected {what}")
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool)) for kind in kinds):
        refuse(" or ".join(kinds))
    if "const" in schema and value != schema["const"]:
        refuse(repr(schema["const"]))
    if "enum" in schema and value not in schema["enum"]:
        refuse(f"one of {schema['enum']}")
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        refuse(schema["pattern"])
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        most = schema.get("maximum", math.inf)
        if not schema.get("minimum", -math.inf) <= value <= most or not value > schema.get("exclusiveMinimum", -math.inf):
            refuse(f"a number from {schema.get('minimum', schema.get('exclusiveMinimum', '-inf'))} to {most}")
        if isinstance(value, int) and abs(value) > 2**63:
            refuse("a smaller integer")
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf):
            refuse(f"from {schema.get('minItems', 0)} to {schema.get('maxItems', 'any')} entries")
        for index, entry in enumerate(value):
            _conform(entry, schema.get("items", {}), f"{path}[{index}]", named)
    if isinstance(value, dict):
        known = schema.get("properties")
        for name in schema.get("required", []):
            if name not in value:
                raise Malformed(f"{path or 'the result'} has no {name}")
        for name, entry in value.items():
            if closed and known is not None and name not in known:
                raise Malformed(f"{path or 'the result'} has an unknown member {_short(name)}")
            _conform(entry, (known or {}).get(name, {}), f"{path}.{name}" if path else name, named)
    alternatives = schema.get("oneOf") or schema.get("anyOf")
    if alternatives:
        fits = 0
        for one in alternatives:
            try:
                _conform(value, one, path, named, closed="type" in one)
                fits += 1
            except Malformed:
                pass
        if not fits:
            refuse("one of its alternatives")


# Exact numbers

def integers(values):
    """Integers n and an exponent e, so that values = n 2^e; n in an array of the same shape."""
    values = np.asarray(values, float)
    parts, exponents = np.frexp(values)
    whole = np.ldexp(parts, 53).astype(np.int64)
    used = exponents[whole != 0]
    least = int(used.min()) if used.size else 0
    shifts = np.where(whole != 0, exponents - least, 0)
    numbers = np.empty(values.shape, object)
    numbers.flat = [int(n) << int(s) for n, s in zip(whole.flat, shifts.flat)]
    return numbers, least - 53


def power(exponent):
    return Fraction(2) ** exponent


def sign(y, x=0, square=1):
    """The sign of y + x √square, of fractions with square >= 0."""
    y_square, x_square = y * y, x * x * square
    if x_square == 0 or (y >= 0) == (x >= 0) and y != 0:
        return (y > 0) - (y < 0)
    larger = y if y_square > x_square else x
    return 0 if y_square == x_square else (larger > 0) - (larger < 0)


def is_between(values, least=1e-100, most=1e100):
    """Whether float64 neither overflows nor underflows in sums of products of such values."""
    sizes = np.abs(values)
    return not sizes.size or bool(np.all((sizes == 0) | (sizes > least) & (sizes < most)))


def shares(entries, key, count, excluded, outcome, path):
    """Indices and integers of weights whose sum is positive, on distinct entries but `excluded`; None for others."""
    index = [entry[key] for entry in entries]
    weight = np.array([float(entry["weight"]) for entry in entries])
    problem = ("names an index twice" if len(set(index)) != len(index) else
               "names an index that is not there" if any(not 0 <= i < count for i in index) else
               "has a weight on the entry that it is about" if excluded in index else
               "has a weight below 0" if (weight < 0).any() else
               "has no positive weight" if not (weight > 0).any() else "")
    if problem:
        outcome.state(path, False, problem)
        return None
    outcome.use(path)
    return index, integers(weight)[0]

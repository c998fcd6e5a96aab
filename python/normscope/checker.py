"""Checks a result of `normscope select`, `separate`, `reach` or `heads` with nothing but Python and NumPy.

    python3 checker.py RESULT ARRAYS... [FIELD=VALUE...]

RESULT is the JSON of --json, ARRAYS are .npy files in the order of its `inputs.arrays`. From the certificates and the
arrays alone it derives the strongest statement that each proves, and compares the result with it, field by field: a
field is proved, fails, or is left unproved, and there is none that is neither. docs/certificates.md has the
inequalities, under the names of the functions here.

What the arrays do not hold, such as the kind of a norm or a soft cap, is compared with FIELD=VALUE (norm.kind=layer,
soft_cap=0; heads.scale=0.25 is of every head) where it is given; where not, it is taken from the result and listed as
unproved. Exit status: 0 everything is proved, 1 a field fails, 3 no such result or other arrays, 4 a field is left
unproved.

Sums of products are exact, in integers. Of numbers that no inequality bounds (scale, center, ssr, lssr, direction) the
stated value may differ by 1e-9 of its size. Not covered, and left unproved: norms of keys, certificates in folders.
"""

import hashlib
import json
import sys
from fractions import Fraction

import numpy as np

if __package__:
    from . import _exact as exact
else:
    import _exact as exact

from_sizes = 1e-9  # of numbers that are stated as values and not as bounds


def sha256(x):
    data = np.ascontiguousarray(x, "<f8").tobytes()
    pieces = [hashlib.sha256(data[i:i + 2**20]).digest() for i in range(0, len(data), 2**20)]
    return hashlib.sha256(b"".join(pieces)).hexdigest()


def is_near(stated, found, size):
    return stated is not None and abs(Fraction(stated) - found) <= Fraction(from_sizes) * size


class Rows:
    """Rows of doubles, and their integers in units of 2^exponent."""

    def __init__(self, values):
        self.values = np.asarray(values, float)
        self.integers, self.exponent = exact.integers(self.values)
        self.safe = exact.is_between(self.values)

    def least_lead(self, i, q):
        """The least of q·(row i − row j) over all other rows j, exactly. `q` are doubles, or integers.

        Rows that float64 proves to be farther, with (n + 4) u of the sizes of terms for its rounding, are left out.
        """
        whole = [isinstance(x, int) for x in q]
        (query, exponent) = (np.array(q, object), 0) if all(whole) else exact.integers(q)
        others = np.arange(len(self.values)) != i
        if not any(whole) and self.safe and exact.is_between(q):
            scores = self.values @ np.asarray(q)
            off = (len(q) + 4) * 4 * exact.UNIT * (np.abs(self.values) @ np.abs(q))
            leads, off = scores[i] - scores, off + off[i]
            others &= leads - off <= np.min((leads + off)[others])
        differences = self.integers[i] - self.integers[others]
        return min(differences @ query) * exact.power(self.exponent + exponent)


# Keys

def select(result, outcome, facts, keys):
    count, width = keys.shape
    outcome.equal("keys", result["keys"], count)
    outcome.equal("width", result["width"], width)
    for name, entries, expected in (("verdicts", result["verdicts"], count), ("center", result["center"], width if count else 0)):
        if len(entries) != expected:
            return outcome.state(name, False, f"has {len(entries)} entries, expected {expected}")
    if result["norm"] is not None:
        return outcome.state("norm", None, "keys behind a norm are not covered")
    outcome.state("inputs.arrays", len(result["inputs"]["arrays"]) == 1, "has more than the keys, which no norm precedes")
    rows = Rows(keys)
    scale, extents = center_of(result, outcome, rows)
    verdicts = result["verdicts"]
    for i, verdict in enumerate(verdicts):
        key_verdict(result, outcome, rows, scale, extents, i, verdict, f"verdicts[{i}]")
    answers = [verdict["answer"] for verdict in verdicts]
    outcome.equal("selectable", result["selectable"], answers.count("selectable"))
    for answer in ("unselectable", "undecided"):
        outcome.equal(answer, result[answer], [i for i, found in enumerate(answers) if found == answer])
    for proof, stated in result["proofs"].items():
        outcome.equal(f"proofs.{proof}", stated, sum(verdict["proof"] == proof for verdict in verdicts))
    margins = sorted(verdict["margin"] for verdict in verdicts
                     if verdict["answer"] == "selectable" and verdict.get("margin") is not None)
    found = {"least": margins[0], "median": margins[len(margins) // 2], "largest": margins[-1]} if margins else None
    for name in found or {}:
        outcome.equal(f"margin.{name}", (result["margin"] or {}).get(name), found[name])
    outcome.part("margin", (result["margin"] is None) == (found is None), "is not that of the verdicts")
    if "exact" in result:
        outcome.equal("exact", result["exact"], [i for i, verdict in enumerate(verdicts)
                                                 if verdict.get("exact", {}).get("answer", "undecided") != "undecided"])
    outcome.use("tolerance")
    outcome.state("certificates", result["certificates"] == "here" or None, "are elsewhere, and not read")


def center_of(result, outcome, rows):
    """The scale and the extents of columns as the stated center gives them, which is compared with the keys' mean."""
    center = [Fraction(x) for x in result["center"]]
    distinct = np.array(list({tuple(row): row for row in rows.integers.tolist()}.values()), object)
    unit = exact.power(rows.exponent)
    extents = []
    for k, stated in enumerate(center):
        column = rows.integers[:, k]
        size = max(map(abs, column)) * unit
        extents.append(max(abs(max(column) * unit - stated), abs(min(column) * unit - stated)))
        outcome.state(f"center[{k}]", is_near(stated, sum(distinct[:, k]) * unit / len(distinct), size), "is not the mean of the distinct keys")
    scale = max(extents, default=Fraction(0))
    outcome.state("scale", is_near(result["scale"], scale, scale), "is not the largest distance of a coordinate from the center")
    return scale, extents


def key_verdict(result, outcome, rows, scale, extents, i, verdict, at):
    count, width = rows.values.shape
    answer, proof, certificate = verdict["answer"], verdict["proof"], verdict.get("exact")
    query = verdict.get("query")
    elsewhere = result["certificates"] != "here"

    def say(holds, reason):
        outcome.state(f"{at}.answer", holds, reason)
        outcome.state(f"{at}.proof", holds, reason)

    if certificate:
        if certificate["answer"] == "undecided":
            outcome.state(f"{at}.exact", None, "an undecided answer states nothing")
        else:
            outcome.state(f"{at}.exact", proof == "exact" and answer == certificate["answer"] and exact_key(certificate, rows, i),
                          "the integers do not prove the answer")
    if answer == "undecided":
        say(proof == "none", "an undecided key has no proof")
    elif proof == "alone":
        say(answer == "selectable" and count == 1, "there are other keys")
        outcome.state(f"{at}.margin", verdict.get("margin") is None, "is stated of the only key")
    elif answer == "selectable":
        if proof == "own_direction":
            query = (rows.values[i] - np.array(result["center"])).tolist()
        if proof not in ("own_direction", "query", "exact") or proof == "exact" and (not certificate or query is None and verdict.get("margin")):
            return say(False, "its kind of proof proves no such answer")
        if query is None and proof == "query":
            return say(None if elsewhere else False, "its query is not in the result")
        if query is not None and len(query) != width:
            return say(False, "its query has another width than the keys")
        margin = verdict.get("margin")
        if margin is None:
            outcome.state(f"{at}.margin", False, "is stated of the only key alone")
            margin = 0.0
        if proof == "exact":
            say(certificate["answer"] == "selectable" and len(certificate["query"]) == width, "has other integers")
        lead = rows.least_lead(i, query) if query is not None and count > 1 else Fraction(1)
        outcome.use(f"{at}.query")
        if proof != "exact":
            say(lead > 0, "its query does not give it the highest score")
        square = sum(Fraction(x)**2 for x in query or [])
        outcome.state(f"{at}.margin", margin == 0 or lead > 0 and lead**2 >= Fraction(margin)**2 * square, "is more than its query proves")
    else:
        stated = verdict.get("weights")
        if proof not in ("weights", "twin", "exact") or proof == "exact" and not certificate:
            return say(False, "its kind of proof proves no such answer")
        if stated is None:
            return say(None if elsewhere else False, "its weights are not in the result")
        found = exact.shares(stated, "key", count, i, outcome, f"{at}.weights")
        if not found:
            return say(False, "its weights prove nothing")
        index, z = found
        apart = z @ (rows.integers[index] - rows.integers[i])
        total, unit = sum(z), exact.power(rows.exponent)
        square = sum(x * x for x in apart) * unit**2
        residual = verdict.get("residual")
        outcome.state(f"{at}.residual", residual is not None and square <= (Fraction(residual) * total)**2, "is less than its weights prove")
        tolerance = Fraction(result["tolerance"])
        if proof == "exact":
            return say(certificate["answer"] == "unselectable", "has other integers")
        near = square <= (tolerance * scale * total)**2 and all(
            abs(x) * unit <= tolerance * extent * total for x, extent in zip(apart, extents))
        say(near and (proof != "twin" or not any(apart)), "it is farther from the others' hull than the tolerance allows")


def exact_key(certificate, rows, i):
    if certificate["answer"] == "selectable":
        query = [int(digits) for digits in certificate["query"]]
        return len(query) == rows.values.shape[1] and (len(rows.values) == 1 or rows.least_lead(i, query) > 0)
    index, z = [entry["key"] for entry in certificate["weights"]], [int(entry["numerator"]) for entry in certificate["weights"]]
    if i in index or len(set(index)) != len(index) or max(index) >= len(rows.values) or sum(z) != int(certificate["denominator"]):
        return False
    return not any(np.array(z, object) @ (rows.integers[index] - rows.integers[i]))


# Classes

def separate(result, outcome, facts, **arrays):
    if "samples" in arrays:
        samples, labels = arrays["samples"], arrays["labels"].ravel()
        samples = samples.reshape(len(labels), -1)
        classes = result.get("classes", facts.get("classes", []))
        numbers = [np.flatnonzero(labels == label) for label in classes]
        parts = [samples[index] for index in numbers]
        # Labels that are left out, as by --classes, are the caller's to say.
        every = sorted(set(labels.astype(int).tolist()))
        outcome.state("classes", None if sorted(classes) != every and facts.get("classes") != classes else
                      classes == sorted(classes) or facts.get("classes") == classes, "are not the labels, in order")
    else:
        parts = [arrays["a"], arrays["b"]]
        numbers = [np.arange(len(part)) for part in parts]
        outcome.state("classes", "classes" not in result, "are stated without labels")
    width = parts[0].shape[1]
    outcome.equal("width", result["width"], width)
    outcome.equal("rows", result["rows"], [len(part) for part in parts])
    if min(map(len, parts)) == 0 or len({part.shape[1] for part in parts}) != 1:
        return outcome.state("rows", False, "a class has no rows, or another width")
    rows = Rows(np.vstack(parts))
    ends = np.cumsum([0, *map(len, parts)])
    ratio(result, outcome, rows, ends)
    if len(parts) != 2:
        for name in ("separable", "margin", "normal", "offset", "a", "b", "residual", "scale", "exact", "tolerance"):
            if name in result:
                outcome.state(name, False, "is stated of more classes than two")
    elif "separable" in result:
        hyperplane(result, outcome, rows, ends[1], numbers)


def ratio(result, outcome, rows, ends):
    """Sums of squares around the means of classes, and around the mean of all, and their least ratio along a line."""
    unit, width = exact.power(2 * rows.exponent), rows.values.shape[1]

    def scatter(x):
        """Σ (x − mean)(x − mean)ᵀ, times the number of rows."""
        total = x.sum(axis=0)
        return len(x) * (x.T @ x) - np.outer(total, total)
    common = int(np.lcm.reduce([*map(int, np.diff(ends)), len(rows.values)], dtype=object))
    all_rows = scatter(rows.integers) * (common // len(rows.values))
    within = sum(scatter(rows.integers[a:b]) * (common // int(b - a)) for a, b in zip(ends, ends[1:]))
    spread = sum(np.diag(all_rows))
    rank = rank_of(all_rows)
    outcome.state("rank", True if result["rank"] == rank else False if result["rank"] > rank else None,
                  f"is {result['rank']}, of exact rows {rank}")
    if spread == 0:
        for name in ("ssr", "lssr"):
            outcome.state(name, result[name] is None, "is stated of equal rows")
        return outcome.state("direction", not any(result["direction"]), "is stated of equal rows")
    outcome.state("ssr", is_near(result["ssr"], Fraction(sum(np.diag(within)), spread), Fraction(1)),
                  "is not the ratio of the sums of squares")
    line, lssr = result["direction"], result["lssr"]
    if lssr is None or len(line) != width:
        outcome.state("direction", False, "has another width, or no ratio")
        return outcome.state("lssr", False, "has no direction that attains it")
    outcome.state("direction", abs(sum(Fraction(x)**2 for x in line) - 1) <= from_sizes, "is no unit vector")
    n, _ = exact.integers(line)
    along = n @ all_rows @ n
    attained = along > 0 and is_near(lssr, Fraction(n @ within @ n, along), Fraction(1))
    outcome.state("direction", attained, "is not one whose projection has that ratio")
    least = Fraction(lssr) - Fraction(from_sizes)
    if not attained:
        return outcome.state("lssr", False, "is not attained")
    if least > 0 and width > 64:
        return outcome.state("lssr", None, "that no direction has a smaller ratio is checked up to a width of 64")
    is_least = least <= 0 or rank_of(within * least.denominator - all_rows * least.numerator, definite=True) is not False
    # The search is in float64, which misses the least ratio of columns that are nearly dependent.
    outcome.state("lssr", True if is_least else None, "is not the least: another direction has a smaller ratio")


def rank_of(matrix, definite=False):
    """The rank of a symmetric matrix of integers with no negative eigenvalue; False where `definite` asks for those and
    there is one. By elimination without fractions, with the largest pivot of the diagonal."""
    a, rank, last = matrix.copy(), 0, 1
    left = list(range(len(a)))
    while left:
        pivot = max(left, key=lambda i: a[i, i])
        if a[pivot, pivot] <= 0:
            return rank if not definite or not any(a[i, j] for i in left for j in left) else False
        left.remove(pivot)
        for i in left:
            for j in left:
                if j >= i:
                    a[i, j] = a[j, i] = (a[i, j] * a[pivot, pivot] - a[i, pivot] * a[pivot, j]) // last
        last, rank = a[pivot, pivot], rank + 1
        if definite and any(a[i, i] < 0 for i in left):
            return False
    return rank


def hyperplane(result, outcome, rows, split, numbers):
    unit, answer, width = exact.power(rows.exponent), result["separable"], rows.values.shape[1]
    means = [Fraction(int(sum(column))) / len(column) for column in rows.integers.T]
    scale = max(abs(x - mean) for column, mean in zip(rows.integers.T, means) for x in column) * unit
    outcome.state("scale", result["scale"] is not None and is_near(result["scale"], scale, scale), "is not the largest distance of a coordinate from the mean")
    outcome.use("tolerance")
    certificate = result.get("exact", {"separable": "undecided"})
    if certificate["separable"] != "undecided":
        outcome.state("exact", exact_hyperplane(certificate, rows, split, numbers), "the integers do not prove the answer")
        outcome.state("separable", certificate["separable"] == answer, "is not the answer of the integers")
    elif "exact" in result:
        outcome.state("exact", None, "an undecided answer states nothing")
    normal, margin, offset = result["normal"], result["margin"], result["offset"]
    gap = None
    if len(normal) not in (0, width):
        outcome.state("normal", False, "has another width than the rows")
    elif normal:
        n, of_normal = exact.integers(normal)
        scores, score_unit = rows.integers @ n, exact.power(rows.exponent + of_normal)
        low, high = min(scores[:split]) * score_unit, max(scores[split:]) * score_unit
        gap, square = low - high, sum(Fraction(x)**2 for x in normal)
        outcome.state("normal", abs(square - 1) <= from_sizes, "is no unit vector")
        m = Fraction(margin) if margin is not None else None
        outcome.state("margin", m is None or exact.sign(gap, -m, square) >= 0, "the normal separates the sets by less than stated")
        if offset is not None and answer == "yes" and gap > 0:
            between = low > Fraction(offset) > high
            nearest = not between and all(not high < Fraction(float(np.nextafter(offset, way))) < low for way in (-np.inf, np.inf))
            close = abs(Fraction(offset) - (low + high) / 2) <= abs(Fraction(float(np.spacing(offset)))) + gap
            outcome.state("offset", between or nearest and close, "does not lie between the sets")
        else:
            outcome.use("offset")  # of sets that are not separated it states nothing
    else:
        outcome.state("margin", margin is None, "is stated without a normal")
        outcome.use("normal", "offset")
    if answer == "yes" and certificate["separable"] != "yes":
        outcome.state("separable", gap is not None and gap > 0, "is yes without a normal that separates the sets")
    index_of = [{int(number): k for k, number in enumerate(of_class)} for of_class in numbers]
    points, columns = [], []
    for name, known, start in (("a", index_of[0], 0), ("b", index_of[1], split)):
        entries = [{"row": known.get(entry["row"], -1), "weight": entry["weight"]} for entry in result[name]]
        found = exact.shares(entries, "row", len(known), None, outcome, name)
        if not found:
            outcome.state("residual", False, f"the weights {name} prove nothing")
            return answer != "no" or certificate["separable"] == "no" or outcome.state("separable", False, f"the weights {name} prove nothing")
        total = sum(Fraction(entry["weight"]) for entry in entries)
        outcome.state(name, abs(total - 1) <= from_sizes, "are weights with a sum other than 1")
        index, z = found
        points.append([Fraction(int(x), int(sum(z))) for x in z @ rows.integers[[start + i for i in index]]])
        columns.append((rows.integers[[start + i for i in index]], z))
    apart = [a - b for a, b in zip(*points)]
    square, residual = sum(x * x for x in apart) * unit**2, result["residual"]
    outcome.state("residual", residual is not None and square <= Fraction(residual)**2, "the weighted points are farther apart")
    if answer == "no" and certificate["separable"] != "no":
        heaviest = columns[0][0][max(range(len(columns[0][1])), key=lambda i: columns[0][1][i])]
        sizes = [sum(Fraction(sum(int(w) * abs(x - h) for w, x in zip(z, column)), int(sum(z))) for column, z in
                     ((of_class[:, k], z) for of_class, z in columns)) for k, h in enumerate(heaviest)]
        tolerance = Fraction(result["tolerance"])
        near = square <= (tolerance * scale)**2 and all(abs(x) <= tolerance * size for x, size in zip(apart, sizes))
        outcome.state("separable", near, "is no, but the weighted points are farther apart than the tolerance allows")
    if answer == "undecided":
        outcome.state("separable", True)


def exact_hyperplane(certificate, rows, split, numbers):
    if certificate["separable"] == "yes":
        n = np.array([int(digits) for digits in certificate["normal"]], object)
        if len(n) != rows.values.shape[1]:
            return False
        scores = rows.integers @ n
        return min(scores[:split]) > max(scores[split:])
    points = []
    for side, of_class, start in (("a", numbers[0], 0), ("b", numbers[1], split)):
        known = {int(number): start + k for k, number in enumerate(of_class)}
        index, z = [entry["row"] for entry in certificate[side]], [int(entry["numerator"]) for entry in certificate[side]]
        if len(set(index)) != len(index) or not set(index) <= set(known) or sum(z) != int(certificate["denominator"]):
            return False
        points.append(np.array(z, object) @ rows.integers[[known[i] for i in index]])
    return not any(points[0] - points[1])


# The whole

def arrays_of(result, outcome, arrays):
    """The arrays by their roles, if they are those of the result: by role, shape and hash."""
    stated = result["inputs"]["arrays"]
    if len({entry["role"] for entry in stated}) != len(stated) or len(stated) != len(arrays):
        outcome.state("inputs.arrays", False, f"are {len(stated)} of different roles, got {len(arrays)} arrays")
        return {}
    named = {}
    for index, (entry, given) in enumerate(zip(stated, arrays)):
        given = np.asarray(given, float)
        at = f"inputs.arrays[{index}]"
        # A list may be a vector or a single row.
        same = list(given.shape) == entry["shape"] or given.ndim < 2 and entry["shape"] in ([1, given.size], [given.size, 1])
        outcome.state(f"{at}.shape", same, f"is {entry['shape']}, got {list(given.shape)}")
        outcome.state(f"{at}.sha256", sha256(given) == entry["sha256"], "is of other values")
        outcome.state(f"{at}.values", bool(np.isfinite(given).all()), "are not finite")
        outcome.use(f"{at}.role")
        named[entry["role"]] = given.reshape(entry["shape"]) if same else given
    return named


def check(result, arrays, facts=None):
    """The `Outcome` of a result: its text, or its document, for arrays in the order of its inputs.

    facts    by the path of a field, what the arrays do not hold
    Errors   ValueError for what is no result of select, separate, reach or heads
    """
    if __package__:
        from . import head_checker, token_checker
    else:
        import head_checker
        import token_checker
    result = exact.read(result if isinstance(result, str) else json.dumps(result))
    checks = {"select": select, "separate": separate, "reach": token_checker.reach, "heads": head_checker.heads}
    kind = result["schema"][len("normscope."):-len("/1")]
    if kind not in checks:
        raise exact.Malformed(f"is a result of {kind}: model_checker.py checks it")
    outcome = exact.Outcome()
    outcome.use("schema", "version", "inputs.arguments")  # where the result is from
    outcome.use(*(f"inputs.{name}" for name in result["inputs"] if name not in ("arguments", "arrays")))
    named = arrays_of(result, outcome, arrays)
    outcome.use("inputs.arrays")
    roles = {"select": [{"keys"}], "separate": [{"a", "b"}, {"samples", "labels"}], "reach": [{"unembedding"}], "heads": [set()]}[kind]
    if not any(needed <= set(named) for needed in roles):
        outcome.state("inputs.arrays", False, "are not of the roles of such a result")
    elif not outcome.failed:
        if kind == "select":
            named = {"keys": named["keys"]}  # without the parameters of a norm, which is not covered
        checks[kind](result, outcome, facts or {}, **named)
    return outcome.finish(result)


def main(result, *names):
    try:
        with open(result, encoding="utf-8") as file:
            text = file.read()
        facts = {}
        for name in names:
            if "=" in name:
                field, _, value = name.partition("=")
                try:
                    facts[field] = json.loads(value)
                except ValueError:
                    facts[field] = value
        return exact.report(check(text, [np.load(name) for name in names if "=" not in name], facts))
    except (OSError, UnicodeError, ValueError) as error:
        print(f"checker: {result}: {error}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 1 else __doc__)

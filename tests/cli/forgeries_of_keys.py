"""Forgeries of results of `select` and `separate`."""

import copy

from forgery import add, drop, header, numerators, put, weights


def select(of):
    header(of)
    twin = [{"answer": "selectable", "proof": "query", "query": [1.0, 0.0], "margin": 5e-324}] * 2
    at = "verdicts[{}].{}".format

    def counts(document):
        """Counts that fit the verdicts, so that only the claim itself is false."""
        verdicts = document["verdicts"]
        document["selectable"] = sum(v["answer"] == "selectable" for v in verdicts)
        for answer in ("unselectable", "undecided"):
            document[answer] = [i for i, v in enumerate(verdicts) if v["answer"] == answer]
        document["proofs"] = {k: sum(v["proof"] == k for v in verdicts) for k in document["proofs"]}
        margins = sorted(v["margin"] for v in verdicts if v["answer"] == "selectable" and v.get("margin") is not None)
        document["margin"] = {"least": margins[0], "median": margins[len(margins) // 2], "largest": margins[-1]} if margins else None

    def verdict(index, value):
        return put(f"verdicts[{index}]", value), counts
    selectable = lambda query, margin: {"answer": "selectable", "proof": "query", "query": query, "margin": margin}
    of.failed("a key between two others is selectable", "verdicts[3]", *verdict(3, selectable([1.0, 1.0], 1e-300)))
    of.failed("a key between two others leads by nothing", "verdicts[3]", *verdict(3, selectable([1.0, 1.0], 0.0)))
    of.failed("an inner key is selectable", "verdicts[4]", *verdict(4, selectable([-1.0, -1.0], 0.5)))
    of.failed("an inner key by a query of zeros", "verdicts[4]", *verdict(4, selectable([0.0, 0.0], 0.5)))
    of.failed("equal keys are selectable", "verdicts[1]", *[put(f"verdicts[{i}]", twin[0]) for i in (1, 5)], counts)
    of.failed("an inner key by its own direction", "verdicts[4]",
              *verdict(4, {"answer": "selectable", "proof": "own_direction", "margin": 0.1}))
    of.failed("a key among six is alone", "verdicts[4]",
              *verdict(4, {"answer": "selectable", "proof": "alone", "margin": None}))
    of.failed("an answer without a query", "verdicts[4]", *verdict(4, {"answer": "selectable", "proof": "none"}))
    of.failed("an answer of proof query without one", "verdicts[4]",
              *verdict(4, {"answer": "selectable", "proof": "query", "margin": 0.5}))
    of.failed("a corner is unselectable by weights", "verdicts[0]", *verdict(
        0, {"answer": "unselectable", "proof": "weights", "residual": 0.0, "weights": weights("key", (3, 1.0))}))
    of.failed("a corner is unselectable by a weight on itself", "verdicts[0]", *verdict(
        0, {"answer": "unselectable", "proof": "weights", "residual": 0.0, "weights": weights("key", (0, 1.0))}))
    of.failed("a corner is unselectable by nearly all weight on itself", "verdicts[0]", *verdict(
        0, {"answer": "unselectable", "proof": "weights", "residual": 1e-13,
            "weights": weights("key", (0, 1.0), (4, 1e-14))}))
    of.failed("a corner is unselectable by negative weights", "weights", *verdict(
        0, {"answer": "unselectable", "proof": "weights", "residual": 0.0,
            "weights": weights("key", (4, 2.0), (3, -1.0))}))
    of.failed("a corner is unselectable by weights of sum 0", "verdicts[0]", *verdict(
        0, {"answer": "unselectable", "proof": "weights", "residual": 0.0, "weights": weights("key", (1, 0.0))}))
    of.failed("a corner is unselectable by no weights", "verdicts[0]", *verdict(
        0, {"answer": "unselectable", "proof": "weights", "residual": 0.0, "weights": []}))
    of.failed("a corner is unselectable without weights", "verdicts[0]", *verdict(
        0, {"answer": "unselectable", "proof": "weights", "residual": 0.0}))
    of.failed("a corner has an equal key", "verdicts[0]", *verdict(
        0, {"answer": "unselectable", "proof": "twin", "residual": 0.0, "weights": weights("key", (4, 1.0))}))
    of.failed("a corner is unselectable to its residual", "verdicts[0]", *verdict(
        0, {"answer": "unselectable", "proof": "weights", "residual": 1.5, "weights": weights("key", (4, 1.0))}))
    of.failed("weights of the same key twice", "weights", put("verdicts[3].weights", weights("key", (1, 0.5), (1, 0.5))))
    of.failed("a weight on a key that is not there", "weights", put("verdicts[3].weights", weights("key", (6, 1.0))))
    of.malformed("a weight on a huge index", "weights", put("verdicts[3].weights", weights("key", (2**70, 1.0))))
    of.malformed("a weight on a fraction of an index", "weights", put("verdicts[3].weights", weights("key", (1.5, 1.0))))
    of.failed("a smaller residual than the weights have", "residual",
              put("verdicts[3].weights", weights("key", (1, 0.5), (2, 0.5000001))), put("verdicts[3].residual", 0.0))
    of.malformed("a negative residual", "residual", put("verdicts[3].residual", -1.0))
    of.malformed("an unknown answer", "answer", put("verdicts[3].answer", "sometimes"), counts)
    of.malformed("an unknown proof", "proof", put("verdicts[3].proof", "trust me"))
    of.failed("undecided keys are called decided", "verdicts[3]",
              put("verdicts[3]", {"answer": "undecided", "proof": "weights"}), counts)
    of.failed("a margin raised", "margin", put(at(0, "margin"), lambda x: x * (1 + 1e-5)), counts)
    of.failed("a margin of the double above the root of 2", "margin", put(at(0, "margin"), 1.4142135623730951), counts)
    of.failed("a margin of 1e300", "margin", put(at(2, "margin"), 1e300), counts)
    of.failed("a margin of nothing of a key among others", "margin", put(at(2, "margin"), None))
    of.failed("the least margin raised", "margin.least", put("margin.least", lambda x: 2 * x))
    of.failed("the median margin raised", "margin.median", put("margin.median", lambda x: 2 * x))
    of.failed("the largest margin raised", "margin.largest", put("margin.largest", lambda x: 2 * x))
    of.failed("no margin", "margin", put("margin", None))
    of.failed("more selectable keys", "selectable", put("selectable", lambda x: x + 1))
    of.failed("an unselectable key left out", "unselectable", drop("unselectable[0]"))
    of.failed("an unselectable key more", "unselectable", add("unselectable", 0))
    of.failed("an undecided key more", "undecided", add("undecided", 0))
    of.failed("other counts of proofs", "proofs", put("proofs.weights", lambda x: x + 1))
    of.failed("another scale", "scale", put("scale", lambda x: x * 1.001))
    of.failed("another center", "center", put("center[0]", lambda x: x + 1e-3))
    of.failed("a key more", "keys", put("keys", lambda x: x + 1))
    of.failed("a verdict left out", "verdicts", drop("verdicts[5]"))
    of.failed("another width", "width", put("width", 3))
    of.malformed("a tolerance of 1e9", "tolerance", put("tolerance", 1e9))
    of.malformed("a negative tolerance", "tolerance", put("tolerance", -1e-12))
    of.unproved("a norm that was not applied", "norm", put("norm", {
        "kind": "layer", "steps": ["project", "scale"], "groups": 1, "eps": 1e-5, "source": None}))
    of.unproved("certificates elsewhere", "verdicts[3]", put("certificates", "nowhere"), drop("verdicts[3].weights"))


def select_exact(of):
    middle = {"answer": "unselectable", "proof": "exact", "residual": 0.0, "weights": weights("key", (1, 0.5), (2, 0.5)),
              "exact": {"answer": "unselectable", "denominator": "2", "weights": numerators("key", (1, 1), (2, 1))}}

    def exact(index, **changes):
        def edit(document):
            verdict = copy.deepcopy(middle)
            verdict["exact"] |= changes
            document["verdicts"][index] = verdict
            document["exact"] = [i for i, v in enumerate(document["verdicts"]) if "exact" in v]
            document["selectable"] = sum(v["answer"] == "selectable" for v in document["verdicts"])
            document["unselectable"] = [i for i, v in enumerate(document["verdicts"]) if v["answer"] == "unselectable"]
            document["proofs"] = {k: sum(v["proof"] == k for v in document["verdicts"]) for k in document["proofs"]}
        return edit
    of.failed("integers of another point", "verdicts[4]", exact(4))
    of.failed("integers with another denominator", "verdicts[3]", exact(3, denominator="3"))
    of.failed("integers on the key itself", "verdicts[3]", exact(3, weights=numerators("key", (3, 2))))
    of.failed("integers twice as large", "verdicts[3]", exact(3, weights=numerators("key", (1, 2), (2, 2))))
    of.malformed("a negative integer", "weights", exact(3, weights=numerators("key", (1, 2), (2, 2), (0, -2))))
    of.malformed("an integer of 0", "weights", exact(3, weights=numerators("key", (1, 1), (2, 1), (0, 0))))
    of.malformed("integers that are no numbers", "weights", exact(3, weights=numerators("key", (1, "one"))))
    of.malformed("no integers", "weights", exact(3, weights=[]))
    of.failed("a key between two others is exactly selectable", "verdicts[3]", exact(3), put("verdicts[3]", {
        "answer": "selectable", "proof": "exact", "margin": 0.0, "query": [1.0, 1.0],
        "exact": {"answer": "selectable", "query": ["1", "1"]}}))
    of.failed("an answer that its integers deny", "verdicts[3]", exact(3), put("verdicts[3].answer", "selectable"))
    of.failed("decided keys that are not", "exact", put("exact", [0]))


def select_tiny(of):
    """Products of such keys with these queries underflow to 0."""
    lead = {"answer": "selectable", "proof": "query", "query": [1e-270, 0.0], "margin": 5e-324}
    of.failed("a key between two others", "verdicts[4]", put("verdicts[4]", lead))
    of.failed("a key on a side", "verdicts[3]", put("verdicts[3]", lead | {"query": [1e-270, 1e-270]}))
    corner = {"answer": "unselectable", "proof": "weights", "residual": 0.0}
    of.failed("a corner is unselectable", "verdicts[1]", put("verdicts[1]", corner | {"weights": weights("key", (4, 1.0))}))
    of.failed("a corner by weights that underflow", "verdicts[1]",
              put("verdicts[1]", corner | {"weights": weights("key", (4, 1e-200))}))
    of.failed("a corner is another key's equal", "verdicts[2]",
              put("verdicts[2]", corner | {"proof": "twin", "weights": weights("key", (0, 1.0))}))


def select_far_columns(of):
    equal = {"answer": "selectable", "proof": "query", "query": [1.0, 0.0], "margin": 5e-324}
    of.failed("equal keys are selectable, columns 2^300 apart", "verdicts[0]",
              put("verdicts[0]", equal), put("verdicts[1]", equal), put("selectable", 4), put("unselectable", []))


def select_normed(of):
    of.failed("more selectable keys", "selectable", put("selectable", lambda x: x + 1))
    for name, value in (("kind", "rms"), ("eps", 0.5), ("groups", 3)):
        of.failed(f"another {name} of the norm", "norm", put(f"norm.{name}", value))
    of.failed("no norm", "center", put("norm", None))
    of.failed("other steps", "norm", put("norm.steps", ["shift"]))
    of.failed("one step four times", "center", put("norm.steps", ["shift"] * 4))
    of.malformed("no step", "norm", put("norm.steps", []))
    of.failed("a gain of a model", "norm", put("norm.source", {"norm": "x", "model": "y", "taken": ["eps"]}))
    for index in (0, 1, 3, 4):
        of.failed(f"the answer about key {index} changed", f"verdicts[{index}]", put(f"verdicts[{index}]", lambda old: (
            {"answer": "unselectable", "proof": "weights", "residual": 0.0, "weights": weights("key", (2, 1.0))}
            if old["answer"] == "selectable" else
            {"answer": "selectable", "proof": "query", "query": [1.0, 0.0, 0.0], "margin": 0.5})))


def separate(of):
    header(of)
    of.failed("a margin raised", "margin", put("margin", lambda x: x * (1 + 1e-9)))
    of.failed("a margin raised in its last place", "margin", put("margin", lambda x: x * (1 + 1e-12)))
    of.failed("the normal turned around", "normal", put("normal", lambda n: [-x for x in n]))
    of.failed("another normal", "normal", put("normal", [0.0, 1.0]))
    of.failed("no normal", "normal", put("normal", []))
    of.failed("a normal of another width", "normal", put("normal", [1.0]))
    of.failed("a normal of zeros", "normal", put("normal", [0.0, 0.0]))
    of.failed("an offset beyond A", "offset", put("offset", 1e3))
    of.failed("an offset below B", "offset", put("offset", -1e3))
    of.failed("a smaller residual", "residual", put("residual", lambda x: 0.9 * x))
    of.failed("a residual of 0", "residual", put("residual", 0.0))
    of.failed("they cannot be separated", "separable", put("separable", "no"))
    of.failed("they touch within the tolerance", "separable", put("separable", "no"), put("residual", 1e-13))
    of.failed("a weight more", "a", put("a[0].weight", 2.0))
    of.malformed("a negative weight", "b", put("b[0].weight", -1.0))
    of.failed("weights without a sum", "a", put("a", weights("row", (0, 0.0))))
    of.failed("weights on a row of no class", "b", put("b", weights("row", (17, 1.0))))
    of.failed("weights on a row twice", "b", put("b", weights("row", (0, 0.5), (0, 0.5))))
    of.malformed("another answer", "separable", put("separable", "maybe"))
    of.failed("a smaller scale", "scale", put("scale", lambda x: 0.5 * x))
    of.failed("a larger scale", "scale", put("scale", lambda x: 1e6 * x))
    of.failed("no scale", "scale", put("scale", None))
    of.malformed("a tolerance of 1e9", "tolerance", put("tolerance", 1e9))
    of.malformed("a negative tolerance", "tolerance", put("tolerance", -1.0))
    of.failed("a smaller ratio of squares", "ssr", put("ssr", lambda x: 0.99 * x))
    of.failed("no ratio of squares", "ssr", put("ssr", None))
    of.failed("a smaller least ratio", "lssr", put("lssr", lambda x: 0.5 * x))
    of.failed("a larger least ratio", "lssr", put("lssr", lambda x: min(1.0, 2 * x + 1e-3)))
    of.failed("another direction", "direction", put("direction", [0.6, -0.8]))
    of.failed("a direction that is no unit vector", "direction", put("direction", lambda d: [2 * x for x in d]))
    of.failed("no direction", "direction", put("direction", []))
    of.failed("a larger rank", "rank", put("rank", 3))
    of.unproved("a smaller rank", "rank", put("rank", 1))
    of.failed("another number of rows", "rows", put("rows[0]", 4))
    of.malformed("an empty class", "rows", put("rows[0]", 0))
    of.malformed("a single class", "rows", put("rows", [6]))
    of.failed("another width", "width", put("width", 3))
    of.failed("labels that were not given", "classes", add("", {"classes": [0, 1]}))
    of.failed("integers of a wrong normal", "exact", add("", {"exact": {"separable": "yes", "normal": ["-1", "0"]}}))
    of.failed("integers of a point that is none", "exact", add("", {"exact": {
        "separable": "no", "denominator": "1", "a": numerators("row", (0, 1)), "b": numerators("row", (0, 1))}}),
        put("separable", "no"))


def separate_constant_column(of):
    yes = put("separable", "yes"), put("offset", 5e-324)
    of.failed("XOR is separable by a normal that underflows", "separable", *yes, put("normal", [0, 0, 5e-324]), put("margin", 0.2))
    of.failed("XOR is separable by its constant column", "separable", *yes, put("normal", [0, 0, 1.0]), put("margin", 5e-324))
    of.failed("XOR is separable without a margin", "separable", *yes, put("normal", [0, 0, 1.0]), put("margin", None))
    of.failed("XOR is separable by a margin of 0", "separable", *yes, put("normal", [1.0, 0, 0]), put("margin", 0.0))
    of.failed("XOR is separable without a normal", "separable", put("separable", "yes"), put("normal", []), put("margin", None))


def separate_touching(of):
    of.failed("XOR is separable", "separable", put("separable", "yes"), put("normal", [1.0, 0.0]), put("margin", 0.0))
    of.failed("XOR is separable by a tiny margin", "separable", put("separable", "yes"), put("normal", [1.0, 0.0]), put("margin", 5e-324))
    of.failed("a margin of hulls that meet", "margin", put("normal", [1.0, 0.0]), put("margin", 0.5))
    of.failed("a negative residual by one point", "residual", put("a", weights("row", (0, 1.0))), put("residual", 0.0))


def separate_exact(of):
    of.failed("integers turned around", "exact", put("exact.normal", lambda n: [x[1:] if x[0] == "-" else "-" + x if x != "0" else x for x in n]))
    of.failed("integers of 0", "exact", put("exact.normal", ["0", "0"]))
    of.malformed("integers that are no numbers", "exact", put("exact.normal", ["1", "x"]))
    of.failed("integers of another width", "exact", put("exact.normal", ["1"]))
    of.failed("the exact answer turned around", "exact", put("exact", {
        "separable": "no", "denominator": "1", "a": numerators("row", (0, 1)), "b": numerators("row", (0, 1))}), put("separable", "no"))
    of.unproved("an exact reason of nothing", "exact", put("exact", {"separable": "undecided", "reason": "both hulls were seen to meet"}))
    of.malformed("an exact answer without integers", "exact", put("exact", {"separable": "no"}))


def separate_exact_touching(of):
    of.failed("another denominator", "exact", put("exact.denominator", "7"))
    of.failed("another row", "exact", put("exact.a", numerators("row", (0, 1))), put("exact.denominator", "1"))
    of.failed("sums that differ", "exact", put("exact.b[0].numerator", "5"))
    of.malformed("numerators below 0", "exact", put("exact.a[0].numerator", "-1"))
    of.failed("separable after all", "separable", put("separable", "yes"))
    of.failed("an exact normal of XOR", "exact", put("exact", {"separable": "yes", "normal": ["1", "0"]}), put("separable", "yes"))


def separate_three(of):
    of.failed("a smaller ratio of squares", "ssr", put("ssr", lambda x: 0.5 * x))
    of.failed("a smaller least ratio", "lssr", put("lssr", lambda x: 0.5 * x))
    of.failed("other labels", "classes", put("classes", [0, 1, 5]))
    of.failed("labels in another order", "classes", put("classes", [1, 0, 2]))
    of.failed("rows missing", "rows", put("rows", [3, 3, 2]))
    of.failed("a class left out", "classes", put("rows", [3, 3]), put("classes", [0, 1]))
    of.malformed("an empty class", "rows", put("rows", [3, 0, 3]))
    of.failed("three classes are separable", "separable", add("", {"separable": "yes", "margin": 1.0, "normal": [1.0, 0.0]}))
    of.failed("another direction", "direction", put("direction", [0.6, 0.8]))


def separate_labelled(of):
    of.failed("a row of the other class", "a", put("a", weights("row", (3, 1.0))), put("residual", 0.0))
    of.failed("labels in another order", "classes", put("classes", [1, 0]))
    of.failed("a margin raised", "margin", put("margin", lambda x: x * (1 + 1e-9)))
    of.failed("they touch", "separable", put("separable", "no"), put("residual", 0.0))


def separate_tiny(of):
    """The products of such rows with these normals underflow."""
    of.failed("XOR at 1e-60 is separable", "separable", put("separable", "yes"), put("normal", [1e-270, 0.0]), put("margin", 0.0))
    of.failed("XOR at 1e-60 by a margin", "separable", put("separable", "yes"), put("normal", [1e-270, 1e-270]), put("margin", 1e-61))
    of.failed("no ratio of squares", "ssr", put("ssr", None))
    of.failed("a residual of a single row", "residual", put("a", weights("row", (0, 1.0))), put("residual", 0.0))

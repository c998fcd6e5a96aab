"""False results, each a genuine one with a claim of it negated: what neither checker may confirm.

A test makes the genuine results of SOURCES by the command and gives each forgery to a checker: `forgeries()` yields them
all, and `python3 forgeries.py` lists them.

A forgery is made from a claim, not from a comparison of a checker: for each field of each kind of result, a value that
states more than is true, or that nothing proves. `field` is what a checker has to name. `verdict` is the strictest
outcome: "failed" (the certificates or the inputs contradict it, or prove less), "unproved" (nothing in the file proves
it) or "malformed" (no result of its schema). A checker may give a weaker one, but never exit status 0, and never end by
a signal.
"""

import copy
import json
import re
from typing import Any, Callable, NamedTuple

FIXTURE = "fixture:"  # a word that names a case of the model oracle


class Source(NamedTuple):
    """A genuine result: the words of the command, and what the arrays do not tell, by the path of its field."""
    command: tuple
    facts: dict = {}


class Forgery(NamedTuple):
    source: str
    name: str
    field: str
    verdict: str
    forge: Callable[[str], str]  # from the text of the genuine result to that of the false one


KEYS = "0,0;4,0;0,4;2,2;1,1;4,0"  # 3 is between 1 and 2, 4 inside, 5 is equal to 1
TOKENS = "3,0,1;-2,1,0;0,-3,2;1,1,-3;-1,-2,-2;0.2,0.1,0.1;2,2,2;0,0.1,0"
BIAS = "0.5,0,-0.25,0,1,-3,0,0.125"

SOURCES = {
    "select": Source(("select", KEYS)),
    "select_exact": Source(("select", KEYS, "--exact")),
    "select_tiny": Source(("select", "1e-60,0;3e-60,0;0,2e-60;1e-60,1e-60;2e-60,0")),
    "select_far_columns": Source(("select", "1.2676506002282294e30,1e-60;1.2676506002282294e30,1e-60;0,0;6.338253001141147e29,-1e-60")),
    "select_normed": Source(("select", "1,0,0;0,2,0;0,0,3;1,1,1;5,-1,2;-1,0,0.5", "--norm", "layer")),
    "separate": Source(("separate", "3,1;4,2;3,4", "0,0;1,-1;-1,2")),
    "separate_constant_column": Source(("separate", "0,0,1;1,1,1", "0,1,1;1,0,1")),
    "separate_touching": Source(("separate", "0,0;2,2", "0,2;2,0")),
    "separate_exact": Source(("separate", "3,1;4,2;3,4", "0,0;1,-1;-1,2", "--exact")),
    "separate_exact_touching": Source(("separate", "0,0;2,2", "0,2;2,0", "--exact")),
    "separate_three": Source(("separate", "0,0;1,0;0,1;5,5;6,5;5,6;9,0;9,1;8,0", "--labels", "0,0,0,1,1,1,2,2,2")),
    "separate_labelled": Source(("separate", "0,0;1,0;0,1;5,5;6,5;5,6", "--labels", "0,0,0,1,1,1")),
    "separate_tiny": Source(("separate", "0,0;2e-60,2e-60", "0,2e-60;2e-60,0")),
    "reach": Source(("reach", "--unembedding", TOKENS, "--unembedding-bias", BIAS, "--norm", "layer", "--gain",
                     "1,0.5,2", "--bias", "0.1,-0.2,0.3", "--probability", "full"),
                    {"norm.kind": "layer", "norm.eps": 1e-5, "norm.name": None, "logit_scale": 1.0, "soft_cap": 0.0}),
    "reach_rms": Source(("reach", "--unembedding", "1,0;-1,0;0,1;0,-1;0.1,0.1", "--norm", "rms"),
                        {"norm.kind": "rms", "norm.eps": 1e-5, "norm.name": None, "logit_scale": 1.0, "soft_cap": 0.0}),
    "reach_sphere": Source(("reach", "--unembedding", TOKENS, "--norm", "spherical", "--eps", "0", "--probability", "full"),
                           {"norm.kind": "spherical", "norm.eps": 0.0, "norm.name": None, "logit_scale": 1.0,
                            "soft_cap": 0.0}),
    "reach_tiny": Source(("reach", "--unembedding", "1e-30,0;-1e-30,0;0,1e-30;0,-1e-30;1e-31,1e-31", "--norm", "rms"),
                         {"norm.kind": "rms", "norm.eps": 1e-5, "norm.name": None, "logit_scale": 1.0, "soft_cap": 0.0}),
    "reach_model": Source(("reach", "models/wordlist_gpt"), {}),
    "reach_cap": Source(("reach", FIXTURE + "gemma2", "--probability", "full"), {}),
    "heads": Source(("heads", FIXTURE + "gpt2", "--proofs"), {}),
    "heads_rotary": Source(("heads", FIXTURE + "llama", "--proofs"), {}),
    "heads_cap": Source(("heads", FIXTURE + "gemma2", "--proofs"), {}),
    "heads_own_norms": Source(("heads", FIXTURE + "qwen3", "--proofs"), {}),
    "heads_biased": Source(("heads", FIXTURE + "gpt_neox", "--proofs"), {}),
    "heads_between": Source(("heads", FIXTURE + "albert", "--proofs"), {}),
    "heads_bare": Source(("heads", "models/wordlist_gpt"), {}),
    "attribute": Source(("attribute", FIXTURE + "gemma2", "--tokens", "1,7,3,5,2", "--target", "4", "--against", "9", "--replace-with", "mean",
                         "--keep", "0.mlp,1.0", "--proofs"), {}),
    "attribute_anywhere": Source(("attribute", FIXTURE + "gpt2", "--tokens", "1,7,3,5,2", "--target", "4", "--most-removed", "1",
                                  "--all-contexts", "--proofs"), {}),
    "attribute_gated": Source(("attribute", FIXTURE + "llama", "--tokens", "1,7,3,5,2", "--target", "4", "--most-removed", "1",
                               "--all-contexts", "--proofs"), {}),
    "attribute_behind": Source(("attribute", FIXTURE + "gemma2", "--tokens", "1,7,3,5,2", "--target", "4", "--most-removed", "1",
                                "--all-contexts", "--proofs"), {}),
}


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


def reach_arrays(of):
    header(of)
    token_at = lambda index: lambda document: document["unreachable"][index]["token"]
    number = lambda document, kind: [i for i, proof in enumerate(document["proofs"]) if proof["answer"] == kind]

    def bound(kind, end, change, answer="yes", which=0):
        """A bound of the first token with an answer, with the entries that repeat it."""
        def edit(document):
            token = number(document, answer)[which]
            document[kind][end][token] = change(document[kind][end][token])
            for entry in document["nearest"]:
                entry["lead_at_least"] = document["lead"]["lower"][entry["token"]]
                entry["lead_at_most"] = document["lead"]["upper"][entry["token"]]
            for entry in document["unreachable"] + document["undecided"]:
                entry["lead_at_most"] = document["lead"]["upper"][entry["token"]]
        return edit

    def of_proof(answer, change, which=0):
        def edit(document):
            change(document["proofs"][number(document, answer)[which]])
        return edit

    def loser(change, which=0):
        return lambda document: change(document["unreachable"][which])

    def unreachable(document):
        """The first reachable token becomes unreachable, with its own weights."""
        token = number(document, "yes")[0]
        proof = document["proofs"][token]
        document["unreachable"].append({
            "token": token, "name": None, "lead_at_most": document["lead"]["upper"][token],
            "weights": proof.get("weights", []), "without_ball": "undecided", "without_ball_weights": []})
        document["proofs"][token] = {"answer": "no"}
        document["reachable"] -= 1

    def reachable(document):
        entry = document["unreachable"].pop(0)
        document["proofs"][entry["token"]] = {"answer": "yes", "witness": "own_direction", "weights": entry["weights"]}
        document["lead"]["lower"][entry["token"]] = 1e-9
        document["reachable"] += 1

    def open_token(document):
        """An open token, of which bounds are stated all the same."""
        token = number(document, "yes")[0]
        document["proofs"][token] = {"answer": "open"}
        document["reachable"] -= 1
        document["decided"] -= 1
        document["left_out"]["tokens"] += 1
        document["complete"] = False
        document["nearest"] = [entry for entry in document["nearest"] if entry["token"] != token]

    def undecided(document):
        token = number(document, "yes")[0]
        document["undecided"].append({
            "token": token, "name": None, "lead_at_most": document["lead"]["upper"][token], "weights": [],
            "without_ball": "undecided", "without_ball_weights": []})
        document["proofs"][token] = {"answer": "undecided"}
        document["reachable"] -= 1
        document["nearest"] = [entry for entry in document["nearest"] if entry["token"] != token]

    lead_of_loser = bound("lead", "lower", lambda x: 50.0, "no")
    of.failed("an unreachable token leads by 50", "lead.lower", lead_of_loser)
    of.failed("an unreachable token has a probability of 0.999999", "max_probability.lower", lead_of_loser,
              bound("max_probability", "lower", lambda x: 0.999999, "no"))
    of.failed("a probability of an unreachable token raised", "max_probability.lower",
              bound("max_probability", "lower", lambda x: 0.75, "no"))
    of.failed("a token reachable after all", "proofs", reachable)
    of.failed("a token unreachable after all", "proofs", unreachable)
    of.failed("a lead raised", "lead.lower", bound("lead", "lower", lambda x: x * (1 + 1e-9)))
    of.failed("every lead raised", "lead.lower", *[bound("lead", "lower", lambda x: x * 1.5 + 1, "yes", k) for k in range(3)])
    of.failed("a largest lead lowered", "lead.upper", bound("lead", "upper", lambda x: 0.5 * x))
    of.failed("a largest lead below 0", "lead.upper", bound("lead", "upper", lambda x: -1.0))
    of.failed("a largest lead of an unreachable token lowered", "lead.upper", bound("lead", "upper", lambda x: x - 0.1, "no"))
    of.failed("a least lead of nothing", "lead.lower", bound("lead", "lower", lambda x: None))
    of.failed("a least lead below 0 of a reachable token", "lead.lower", bound("lead", "lower", lambda x: -1.0))
    of.failed("an open token has a lead of 9", "lead.lower", open_token, put("lead.lower[0]", 9.0))
    of.failed("an open token has no lead", "lead", open_token, put("lead.lower[0]", None), put("lead.upper[0]", -1.0))
    of.failed("an open token has a probability", "max_probability", open_token, put("max_probability.lower[0]", 0.99))
    of.failed("an open token has no probability", "max_probability", open_token, put("max_probability.upper[0]", 1e-9),
              put("max_probability.lower[0]", 0.0))
    of.failed("an undecided token has no lead", "lead.upper", undecided, bound("lead", "upper", lambda x: -1.0, "undecided"))
    of.failed("an undecided token has a lead", "lead.lower", undecided, bound("lead", "lower", lambda x: 9.0, "undecided"))
    of.failed("a witness outside the ball", "witness", of_proof("yes", lambda proof: proof.update(witness=[9.0, -9.0, 5.0])),
              bound("lead", "lower", lambda x: 2 * x))
    of.failed("a witness of another token", "witness", of_proof("yes", lambda proof: proof.update(witness=[0.0, 0.0, 0.0])))
    of.failed("a witness of another width", "witness", of_proof("yes", lambda proof: proof.update(witness=[0.5])))
    of.failed("no witness", "proofs", of_proof("yes", lambda proof: proof.pop("witness")))
    of.malformed("an unknown witness", "witness", of_proof("yes", lambda proof: proof.update(witness="somewhere")))
    of.unproved("a witness elsewhere", "lead.lower", of_proof("yes", lambda proof: proof.update(witness="elsewhere")),
                put("certificates", "nowhere"))
    of.failed("weights on the token itself", "weights", loser(lambda entry: entry.update(
        weights=weights("token", (entry["token"], 1.0)), lead_at_most=0.0)), bound("lead", "upper", lambda x: 0.0, "no"))
    of.failed("a weight more on the token itself", "weights",
              loser(lambda entry: entry["weights"].append({"token": entry["token"], "weight": 1e9})),
              bound("lead", "upper", lambda x: 0.0 if x < 0 else x, "no"))
    of.malformed("negative weights", "weights", loser(lambda entry: entry["weights"][0].update(weight=-0.5)))
    of.failed("other weights", "weights", loser(lambda entry: entry.update(weights=weights("token", (6, 1.0)))))
    of.failed("weights of sum 0", "weights", loser(lambda entry: entry.update(weights=weights("token", (0, 0.0)))))
    of.failed("no weights", "weights", loser(lambda entry: entry.update(weights=[])))
    of.failed("a weight on a token that is not there", "weights",
              loser(lambda entry: entry.update(weights=weights("token", (99, 1.0)))))
    of.failed("a token weighed twice", "weights",
              loser(lambda entry: entry["weights"].append(dict(entry["weights"][0]))))
    of.failed("unreachable without the ball too", "without_ball", loser(lambda entry: entry.update(
        without_ball="no", without_ball_weights=weights("token", (0, 1.0)))))
    of.failed("reachable without the ball", "without_ball", loser(lambda entry: entry.update(
        without_ball="yes", without_ball_weights=[], without_ball_witness={"point": [1.0, 0.0, 0.0], "height": 1.0})))
    of.failed("reachable without the ball at nothing", "without_ball", loser(lambda entry: entry.update(
        without_ball="yes", without_ball_weights=[], without_ball_witness={"point": [0.0, 0.0, 0.0], "height": 1e-300})))
    of.malformed("reachable without the ball at a height below 0", "height", loser(lambda entry: entry.update(
        without_ball="yes", without_ball_weights=[], without_ball_witness={"point": [1.0, 0.0, 0.0], "height": -1.0})))
    of.failed("a token listed twice", "unreachable", lambda document: document["unreachable"].append(document["unreachable"][0]))
    of.failed("an unreachable token left out", "unreachable", drop("unreachable[0]"))
    of.failed("a token that is not there is unreachable", "unreachable", loser(lambda entry: entry.update(token=99)))
    of.unproved("a name of a token", "name", loser(lambda entry: entry.update(name="the")))
    of.failed("another lead than the token's", "lead_at_most", loser(lambda entry: entry.update(lead_at_most=-7.0)))
    of.failed("more reachable tokens", "reachable", put("reachable", lambda x: x + 1))
    of.failed("other tokens unreachable without the ball", "unreachable_without_ball", put("unreachable_without_ball", lambda x: x + 1))
    of.failed("more decided tokens", "decided", put("decided", lambda x: x + 1))
    of.failed("another number of tokens", "tokens", put("tokens", lambda x: x + 1))
    of.failed("another width", "width", put("width", lambda x: x + 1))
    of.failed("a proof left out", "proofs", drop("proofs[-1]"))
    of.malformed("an unknown answer", "answer", put("proofs[0].answer", "perhaps"))
    of.failed("a probability raised", "max_probability.lower", bound("max_probability", "lower", lambda x: x + 0.5 * (1 - x)))
    of.failed("a largest probability lowered", "max_probability.upper", bound("max_probability", "upper", lambda x: 0.9 * x))
    of.failed("a largest probability of an unreachable token lowered", "max_probability.upper",
              bound("max_probability", "upper", lambda x: 0.5 * x, "no"))
    of.malformed("a probability above 1", "max_probability", put("max_probability.upper[0]", 1.5))
    of.malformed("a probability below 0", "max_probability", put("max_probability.lower[0]", -0.5))
    of.failed("a lower end above the upper one", "max_probability", bound("max_probability", "upper", lambda x: 1e-9))
    of.failed("tokens whose probabilities were not worked out", "refined", add("max_probability.refined", lambda d: d["tokens"] + 5))
    of.failed("a point of probability outside the ball", "max_probability.lower",
              of_proof("yes", lambda proof: proof.update(probability_point=[30.0, -30.0, 9.0])),
              bound("max_probability", "lower", lambda x: 1 - 1e-9))
    of.malformed("probabilities below 0", "probability_weights",
                 of_proof("yes", lambda proof: proof.update(probability_weights=weights("token", (0, 1.0), (1, -0.5)))))
    of.failed("entropy of a token counted twice", "max_probability.upper", of_proof(
        "yes", lambda proof: proof.update(probability_weights=weights("token", *[(0, 1.0)] * 64))),
        bound("max_probability", "upper", lambda x: 0.1))
    of.failed("a larger tie", "tie", put("tie", lambda x: 1e6 * x))
    of.failed("a tie of 50, and all is unreachable", "tie", put("tie", 50.0), unreachable)
    of.malformed("a tie below 0", "tie", put("tie", -1.0))
    of.malformed("a tolerance of 1e9", "tolerance", put("tolerance", 1e9), put("tie", 1e9), unreachable)
    of.malformed("a negative tolerance", "tolerance", put("tolerance", -1.0))
    of.failed("a larger scale", "scale", put("scale", lambda x: 1.01 * x))
    of.failed("another stretch", "without_ball.stretch", put("without_ball.stretch", 1e-30))
    of.malformed("a stretch below 0", "stretch", put("without_ball.stretch", -1.0))
    of.failed("a larger tie without the ball", "without_ball.tie", put("without_ball.tie", 5.0))
    of.failed("another kind of norm", "norm.kind", put("norm.kind", "rms"))
    of.malformed("an unknown kind of norm", "norm.kind", put("norm.kind", "batch"))
    of.failed("another eps", "norm.eps", put("norm.eps", 0.5))
    of.failed("eps 0 of a ball", "sphere", put("norm.eps", 0.0), put("sphere", True))
    of.failed("a sphere of a ball", "sphere", put("sphere", True))
    of.failed("a soft cap that is not there", "soft_cap", put("soft_cap", 30.0))
    of.malformed("a negative soft cap", "soft_cap", put("soft_cap", -1.0))
    of.failed("another factor of logits", "logit_scale", put("logit_scale", 2.0))
    of.failed("no bias", "unembedding_bias", put("unembedding_bias", lambda x: not x))
    of.unproved("a note", "notes", add("notes", "token 5 has a probability of 1"))
    of.failed("tied to a table", "tied", put("tied", True))
    of.failed("a name of a norm", "norm.name", put("norm.name", "ln_f"))
    of.failed("left out although complete", "left_out", put("left_out.tokens", 3))
    of.failed("complete although left out", "complete", open_token, put("complete", True))
    of.failed("nearest tokens in another order", "nearest", put("nearest", lambda old: old[::-1]))
    of.failed("an unreachable token is nearest", "nearest", lambda document: document["nearest"].append({
        "token": token_at(0)(document), "name": None, "lead_at_least": None, "lead_at_most": document["unreachable"][0]["lead_at_most"]}))
    of.failed("another lead of a nearest token", "nearest", put("nearest[0].lead_at_most", lambda x: 2 * x))
    of.failed("the nearest token left out", "nearest", drop("nearest[0]"))
    of.unproved("a name of a nearest token", "name", put("nearest[0].name", "the"))


def reach_rms(of):
    def named(token, lower, probability):
        def edit(document):
            document["lead"]["lower"][token] = lower
            document["max_probability"]["lower"][token] = probability
        return edit
    of.failed("the inner token has a probability of 0.999999", "lead.lower", named(4, 50.0, 0.999999))
    of.failed("a token beats all others by 2", "lead.lower", named(0, 2.0, 0.9))


def reach_sphere(of):
    of.failed("a ball of a sphere", "sphere", put("sphere", False))
    of.failed("an eps of a sphere", "eps", put("norm.eps", 1e-5))
    of.malformed("a member that tokens do not have", "ends", lambda document: document["unreachable"][0].update(ends=[0, 1]))
    of.failed("leads raised", "lead.lower", lambda document: document["lead"].update(
        lower=[x and x + 0.1 for x in document["lead"]["lower"]]))
    of.failed("largest leads lowered", "lead.upper", lambda document: document["lead"].update(
        upper=[x - 1 for x in document["lead"]["upper"]]))
    of.failed("a sphere's point at 0", "witness", lambda document: next(
        proof for proof in document["proofs"] if proof["answer"] == "yes").update(witness=[0.0, 0.0, 0.0]))


def reach_tiny(of):
    """Products of such rows with this witness underflow to 0."""
    def leads(document):
        document["proofs"][4] = {"answer": "yes", "witness": [1e-300, 1e-300]}
        document["lead"]["lower"][4] = 5e-324
        document["reachable"] = 5
        document["unreachable"], document["unreachable_without_ball"] = [], 0

    of.failed("the inner token leads by what underflows", "proofs", leads)
    of.failed("no token can lead", "lead.upper", put("lead.upper", [0.0] * 5))


def reach_model(of):
    header(of)
    for name, value in (("kind", "rms"), ("eps", 0.1), ("name", "transformer.h.0.ln_1")):
        of.failed(f"another {name} of the norm", f"norm.{name}", put(f"norm.{name}", value))
    of.failed("a soft cap", "soft_cap", put("soft_cap", 5.0))
    of.failed("another factor of logits", "logit_scale", put("logit_scale", 0.5))
    of.failed("tied or not", "tied", put("tied", lambda x: not x))
    of.failed("a bias or not", "unembedding_bias", put("unembedding_bias", lambda x: not x))
    of.unproved("a name of a token", "name", put("nearest[0].name", "zebra"))
    of.unproved("names of tokens swapped", "name", put("nearest[0].name", "a"), put("nearest[1].name", "b"))
    of.unproved("a note", "notes", add("notes", "every token is reachable by some text"))
    of.failed("another source", "source", put("source", "gpt-5"))
    of.failed("every lead raised", "lead.lower", lambda document: document["lead"].update(
        lower=[x and 1.0001 * x for x in document["lead"]["lower"]]))
    of.failed("every largest lead lowered", "lead.upper", lambda document: document["lead"].update(
        upper=[0.5 * x for x in document["lead"]["upper"]]))
    of.failed("every probability raised", "max_probability.lower", lambda document: document["max_probability"].update(
        lower=[1 - 1e-12] * document["tokens"]))
    of.failed("every largest probability lowered", "max_probability.upper", lambda document: document["max_probability"].update(
        upper=[0.5 * x for x in document["max_probability"]["upper"]]))
    of.failed("witnesses of other tokens", "lead.lower", lambda document: document.update(
        proofs=document["proofs"][1:] + document["proofs"][:1]))


def reach_cap(of):
    for value in (0.0, 1.0, 1e9):
        of.failed(f"a soft cap of {value}", "soft_cap", put("soft_cap", value))
    of.failed("probabilities behind the cap raised", "max_probability.lower", lambda document: document["max_probability"].update(
        lower=[min(1.0, 1.2 * x) for x in document["max_probability"]["lower"]]))
    of.failed("probabilities without the cap", "max_probability.lower", lambda document: document["max_probability"].update(
        lower=[0.999] * document["tokens"]))
    of.unproved("largest probabilities behind the cap", "max_probability.upper", lambda document: document["max_probability"].update(
        upper=[0.5 * x for x in document["max_probability"]["upper"]]))
    of.failed("leads behind the cap", "lead.lower", lambda document: document["lead"].update(
        lower=[x and x + 1 for x in document["lead"]["lower"]]))


def head_bounds(of, at="heads[0]", inside=""):
    """Bounds of a head, and of the same without a projection or at distance zero."""
    where = at + inside
    for name in ("uniform_bounds", "sharp_bounds"):
        of.failed(f"{inside} {name}: the lower end raised", name, put(f"{where}.{name}[0]", lambda x: x * (1 + 1e-6) + 1e-3))
        of.failed(f"{inside} {name}: the upper end lowered", name, put(f"{where}.{name}[1]", lambda x: 0.5 * x - 1e-8))
        of.failed(f"{inside} {name}: the lower end above the upper one", name, put(f"{where}.{name}", lambda x: [x[1] + 1, x[1]]))
        of.failed(f"{inside} {name}: an upper end below 0", name, put(f"{where}.{name}", [-2.0, -1.0]))
    of.failed(f"{inside}: no spread at all", "sharp_bounds", put(f"{where}.sharp_bounds", [0.0, 1e-9]))


def heads(of):
    header(of)
    head_bounds(of)
    at = "heads[0]."
    for name in ("uniform_spread", "sharp_spread"):
        of.failed(f"{name} raised", name, put(at + name, lambda x: 2 * (x or 0) + 1))
        of.failed(f"{name} lowered", name, put(at + name, lambda x: 0.5 * (x or 0) - 1e-3))
    of.failed("no spread", "sharp_spread", put(at + "sharp_spread", None))
    for name, value in (("layer", 7), ("head", 7), ("key_value_head", 7), ("head_dim", 3), ("norm", "ln"), ("query", "q"),
                        ("key", "k"), ("value", "v"), ("soft_cap", 5.0), ("window", 3), ("pass", "later"), ("stack", "x"),
                        ("rotary", True)):
        of.failed(f"another {name}", name, put(at + name, value))
    of.failed("another scale of scores", "scale", put(at + "scale", lambda x: 2 * x))
    of.failed("a rotation", "rotation", put(at + "rotation", {
        "dims": 2, "interleaved": False, "score_factor": 1.0, "frequencies_known": True, "context": None}))
    of.failed("marked as refused, with any bound", "refused", lambda document: [head.update(
        refused="", sharp_bounds=[0, 1e-9], sharp_spread=1e-9, uniform_bounds=[0, 0], uniform_spread=0) for head in document["heads"]])
    of.failed("marked as refused", "refused", lambda document: document["heads"][0].update(refused="its scores are not modelled"))
    of.failed("a head left out", "heads", drop("heads[-1]"))
    of.failed("no heads", "heads", put("heads", []))
    of.failed("a head twice", "heads", lambda document: document["heads"].append(document["heads"][0]))
    proof = at + "certificates."
    of.failed("a multiplier below the largest eigenvalue", "sharp_bounds", put(proof + "sharp.multiplier", lambda x: 0.25 * x),
              put(at + "sharp_bounds[1]", lambda x: 0.5 * x))
    of.failed("a negative multiplier", "sharp_bounds", put(proof + "sharp.multiplier", -1.0), put(at + "sharp_bounds[1]", 0.0))
    of.failed("a query outside the ball", "sharp_bounds", put(proof + "sharp.query", lambda q: [3 * x for x in q]),
              put(at + "sharp_bounds", lambda x: [2 * x[1], 3 * x[1]]), put(at + "sharp_spread", lambda x: None))
    of.failed("a query of another width", "query", put(proof + "sharp.query", [1.0]))
    of.failed("another kind of norm", "norm.kind", put(proof + "norm.kind", lambda x: "rms" if x != "rms" else "layer"))
    of.failed("a norm of queries that is not there", "query_norm", put(proof + "query_norm", {"kind": "rms", "eps": 1e-6}))
    of.failed("norms of its own", "own_norms", add("heads[0]", {"own_norms": {"query": "q", "key": "k", "queries_fill": 1.0, "keys_fill": 1.0}}))
    of.failed("shares that underflow", "uniform_bounds", lambda document: document["heads"][0]["certificates"]["uniform"].update(unavoidable=[
        {"high": [way * 1e-200 for _ in document["heads"][0]["certificates"]["sharp"]["query"]],
         "low": [-way * 1e-200 for _ in document["heads"][0]["certificates"]["sharp"]["query"]], "share": 5e-324} for way in (1, -1)]),
        put(at + "uniform_bounds", lambda x: [x[1] + 1, x[1] + 2]))
    of.failed("negative shares", "uniform_bounds", put(proof + "uniform.unavoidable", lambda old: [
        dict(entry, share=-1.0) for entry in old] or [{"high": [1.0], "low": [1.0], "share": -1.0}]))
    of.unproved("uniform without scaling", "uniform_without_scaling", lambda document: document["heads"][0].update(
        uniform_without_scaling=not document["heads"][0].get("uniform_without_scaling", False)))
    of.failed("another architecture", "architecture", put("architecture", "llama"))
    of.unproved("a note", "notes", add("notes", "every head can be uniform"))
    of.failed("certificates left out", "certificates", drop("heads[0].certificates"))


def heads_rotary(of):
    head_bounds(of)
    head_bounds(of, inside=".distances.at_distance_zero")
    at, over = "heads[0].", "heads[0].distances."
    for name in ("sharp_at_most_anywhere", "uniform_at_most_anywhere"):
        of.failed(f"{name} lowered", name, put(over + name, lambda x: 0.9 * x - 1e-9))
        of.failed(f"{name} below 0", name, put(over + name, -1.0))
    of.failed("distances of another context", "sharp_bounds", put(over + "within", lambda x: (x or 0) + 100))
    of.failed("every distance", "sharp_bounds", put(over + "within", None))
    of.malformed("no distance", "within", put(over + "within", 0))
    of.failed("enumerated or not", "enumerated", put(over + "enumerated", lambda x: not x))
    of.unproved("a curve", "curve", put(over + "curve", [[1, 99.0]]))
    for name, value in (("dims", 2), ("interleaved", lambda x: not x), ("score_factor", 0.5), ("frequencies_known", lambda x: not x),
                        ("context", 9999)):
        of.failed(f"another {name} of the rotation", "rotation", put(at + f"rotation.{name}", value))
    proof = at + "certificates."
    of.failed("another frequency", "frequencies", put(proof + "frequencies[0]", lambda x: 0.5 * x))
    of.failed("no frequencies", "frequencies", put(proof + "frequencies", []))
    sharp = proof + "sharp."
    of.failed("everywhere: a smaller spread", "spread", put(sharp + "everywhere.spread", lambda x: 0.9 * x))
    of.failed("everywhere: turns below 1", "spread", put(sharp + "everywhere.turns", lambda x: [0.5 * t for t in x]))
    of.failed("everywhere: weights below 0", "spread", put(sharp + "everywhere.weights", lambda x: [-t for t in x]))
    of.failed("everywhere: weights of 0", "spread", put(sharp + "everywhere.weights", lambda x: [0.0 for t in x]))
    of.failed("everywhere: all distances by slow pairs", "spread", put(sharp + "everywhere.still", [0, 1]),
              put(sharp + "everywhere.factor", [1.0, 0.0, 0.0, 1.0]))
    of.failed("everywhere: a smaller multiplier", "spread", put(sharp + "everywhere.query_multiplier", lambda x: 0.1 * x),
              put(sharp + "everywhere.spread", lambda x: 0.5 * x), put(over + "sharp_at_most_anywhere", lambda x: 0.5 * x))
    of.failed("everywhere: of few distances", "sharp_at_most_anywhere", put(sharp + "everywhere.distances", 1))
    of.failed("no certificate of everywhere", "sharp_at_most_anywhere", put(sharp + "everywhere", None))

    def by_distance(**changes):
        return lambda document: [document["heads"][0]["certificates"]["sharp"][name].update(
            {key: change(proof[key]) for key, change in changes.items() if key in proof})
            for name, proof in list(document["heads"][0]["certificates"]["sharp"].items())
            if name in ("by_distance", "in_context") and proof]
    of.failed("by distance: a smaller spread", "spread", by_distance(spread=lambda x: 0.5 * x))
    of.failed("by distance: fewer distances", "sharp_bounds", by_distance(distances=lambda x: 1))
    of.failed("by distance: a smaller reach", "sharp_bounds", by_distance(reach=lambda x: 0.5 * x, spread=lambda x: 0.5 * x),
              put(at + "sharp_bounds[1]", lambda x: 0.5 * x))
    of.failed("by distance: a huge number", "spread", by_distance(distances=lambda x: 10**7))
    for name in ("high", "low"):
        of.failed(f"the {name} key outside the ball", "sharp_bounds", put(sharp + f"keys.{name}", lambda x: [9 * v for v in x]),
                  put(at + "sharp_bounds", lambda x: [2 * x[1], 3 * x[1]]))
    of.failed("both keys at one distance", "sharp_bounds", lambda document: document["heads"][0]["certificates"]["sharp"]["keys"].update(
        low_distance=document["heads"][0]["certificates"]["sharp"]["keys"]["high_distance"]))
    of.failed("a key at the query's own position", "sharp_bounds", put(sharp + "keys.high_distance", 0))
    of.failed("a key beyond the context", "sharp_bounds", put(sharp + "keys.high_distance", 10**6))
    of.malformed("a key at a huge distance", "high_distance", put(sharp + "keys.high_distance", -(2**70)))
    of.failed("no keys", "sharp_bounds", put(sharp + "keys", None))
    for name, value in (("key_value_head", 5), ("scale", 9.0)):
        of.failed(f"another {name}", name, put(at + name, value))


def heads_cap(of):
    head_bounds(of)
    for name, value in (("removed", None), ("doubled", 5.0), ("tiny", 1e-6), ("huge", 1e9), ("negative", -1.0), ("zero", 0.0)):
        of.failed(f"the soft cap {name}", "soft_cap", put("heads[0].soft_cap", value))
    of.failed("another window", "window", put("heads[0].window", 99))
    of.failed("the other window", "window", put("heads[0].window", None))
    of.failed("a bound above twice the cap", "sharp_bounds", put("heads[0].sharp_bounds", [5.5, 6.0]))


def heads_own_norms(of):
    head_bounds(of)
    for name in ("queries_fill", "keys_fill"):
        of.failed(f"{name} raised", name, put(f"heads[0].own_norms.{name}", 1.0))
        of.malformed(f"{name} above 1", name, put(f"heads[0].own_norms.{name}", 1.5))
    for name in ("queries_radius", "keys_radius"):
        of.failed(f"{name} raised", name.replace("radius", "fill"), put(f"heads[0].certificates.{name}", lambda x: 1e9))
    of.failed("no norms of its own", "own_norms", drop("heads[0].own_norms"))
    of.failed("other norms of its own", "own_norms", put("heads[0].own_norms.query", "other"))
    of.failed("another eps of its own norm", "eps", put("heads[0].certificates.query_norm.eps", 0.0))
    of.failed("another kind of its own norm", "kind", put("heads[0].certificates.key_norm.kind", "layer"))


def heads_biased(of):
    """Biases, and rotary pairs on a part of each head."""
    head_bounds(of)
    head_bounds(of, inside=".distances.at_distance_zero")


def heads_between(of):
    """A map between the norm and the projections, and two entries a head."""
    head_bounds(of)
    of.failed("the mean left in: no spread", "sharp_bounds", put("heads[0].without_projection.sharp_bounds", [0.0, 1e-9]))
    of.failed("the mean left in: the upper end lowered", "sharp_bounds", put("heads[0].without_projection.sharp_bounds[1]", lambda x: 0.9 * x))
    of.failed("no map between", "between", put("heads[0].between", None))
    of.failed("another pass", "pass", put("heads[0].pass", "later"))


def heads_bare(of):
    of.unproved("bounds without certificates", "bounds", put("heads[0].sharp_bounds", [0.0, 1e-9]))


def attribute(of):
    layout(of)
    raised = lambda x: x + 1e-6
    for name in ("value", "constant"):
        of.failed(f"the {name} raised", name, put(name, raised))
    of.failed("the divisor lowered", "divisor", put("divisor", lambda x: x * (1 - 1e-6)))
    of.failed("another target", "direction", put("target.token", lambda x: x + 1))
    of.failed("another direction", "direction", put("proof.direction[0]", lambda x: x + 1e-3))
    of.failed("another radius", "squared_radius", put("proof.squared_radius", 1.0))
    of.failed("another eps", "divisor", put("proof.eps", 1.0), put("divisor", lambda x: x + 1e-3))
    of.failed("no gain", "direction", put("proof.source.gain", None), put("proof.direction[1]", lambda x: 1.5 * x + 1))
    of.failed("another row", "divisor", put("proof.row", lambda row: [2 * x for x in row]))
    of.failed("a component's row left out", "changes", drop("proof.changes[0]"))
    for name in ("frozen", "price", "exact", "gradient", "cosine"):
        of.failed(f"{name} raised", name, put(f"components[3].{name}", raised))
    of.failed("a smaller bound of the gradient's error", "remainder", put("components[0].remainder", lambda x: 0.999 * x))
    of.failed("least raised", "least", put("bounds[1].least", lambda x: x * (1 + 1e-6)))
    of.failed("most lowered", "most", put("bounds[1].most", lambda x: x * (1 - 1e-6)))
    of.failed("least_price raised", "least_price", put("bounds[1].least_price", lambda x: x + 1e-5))
    of.failed("most_price lowered", "most_price", put("bounds[1].most_price", lambda x: x - 1e-5))
    of.failed("bounds of another number of components", "removed", put("bounds[1].removed", 1))
    of.failed("an attained factor raised", "attained_most", put("bounds[1].attained_most.value", lambda x: 1.001 * x))
    of.failed("an attained set with a component more", "attained_least",
              put("bounds[0].attained_least", lambda x: x | {"components": ["embedding", *x["components"]][:3] + ["1.mlp"]}))
    of.malformed("an attained set of what is no component", "attained_least", put("bounds[0].attained_least.components", ["99.mlp"]))
    for path, value in (("tokens[0].token", 9), ("at", 0), ("miss", 0.0), ("components[2].name", "9.9"), ("components[1].rerun", 0.5), ("components[1].paths", 0.5),
                        ("components[1].rounding", 0.0), ("components[2].shares[0]", 7.0), ("removal", "given"), ("norm", "another"),
                        ("architecture", "Another")):
        of.unproved(f"another {path}", re.sub(r"\[\d+\]", "", path).split(".")[-1], put(path, value))
    of.malformed("no proof", "proof", drop("proof"))
    for name in ("exact", "frozen", "gradient"):
        of.failed(f"the circuit's {name} raised", name, put(f"circuit.{name}", lambda x: x + 1e-6))
    of.failed("another component is kept", "exact", put("circuit.kept[0]", "embedding"))
    of.unproved("no soft cap", "soft_cap", put("soft_cap", 1e3))
    for name in ("share", "rules.half_rule"):
        of.unproved(f"another {name}", name.split(".")[0], put(f"components[1].{name}", 0.25))


def anywhere(of, *components):
    for k in components:
        of.failed(f"a least share raised, of component {k}", "least", put(f"components[{k}].anywhere.least", lambda x: x + 1e-6 * (1 + abs(x))))
        of.failed(f"a most share lowered, of component {k}", "most", put(f"components[{k}].anywhere.most", lambda x: x - 1e-6 * (1 + abs(x))))


def attribute_anywhere(of):
    # Embeddings, two heads, an MLP and both biases.
    anywhere(of, 0, 1, 2, 3, 6, 7, 8)
    of.failed("a range without its source", "anywhere", put("components[0].anywhere", {"least": -1e-3, "most": 1e-3}), put("proof.shares[0]", None))
    of.unproved("a check that did not hold", "check", put("check.null_patch", 1.0))
    # Which maps are a component's, the checker in NumPy cannot tell.
    for name, value in (("scale", 0.5), ("rows", "transformer.wpe.weight"), ("of", "constant")):
        of.unproved(f"another {name} of the embedding", "shares", put(f"proof.shares[0].{name}", value))
    of.unproved("another head's values", "shares", put("proof.shares[3].in.outputs", lambda runs: [[runs[0][0] + 1, runs[0][1] - 1]]))
    of.unproved("another head's columns", "shares", put("proof.shares[2].first_input", lambda x: x + 1))


def attribute_gated(of):
    anywhere(of, 0, 1, -1)
    of.unproved("another activation", "shares", put("proof.shares[-1].activation", "relu"))
    of.unproved("no gate", "shares", put("proof.shares[-1].gate", None))


def attribute_behind(of):
    anywhere(of, 0, -1)
    of.unproved("another norm of a branch", "shares", put("proof.shares[-1].norm.gain_offset", 0.0))
    of.failed("a range of a part of what a norm divides", "anywhere", put("components[1].anywhere", {"least": -1e-3, "most": 1e-3}))


def forgeries():
    """All forgeries, in the order of SOURCES."""
    makers = {"reach": reach_arrays} | {name: globals()[name] for name in SOURCES if name != "reach"}
    for source in SOURCES:
        of = Forgeries(source)
        makers[source](of)
        yield from of.all


if __name__ == "__main__":
    for forgery in forgeries():
        print(f"{forgery.source:26s}{forgery.verdict:11s}{forgery.field:28s}{forgery.name}")

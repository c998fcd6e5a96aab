"""False results, each a genuine one with a claim of it negated: what neither checker may confirm.

A test makes the genuine results of SOURCES by the command and gives each forgery to a checker: `forgeries()` yields them
all, and `python3 forgeries.py` lists them.

A forgery is made from a claim, not from a comparison of a checker: for each field of each kind of result, a value that
states more than is true, or that nothing proves. `field` is what a checker has to name. `verdict` is the strictest
outcome: "failed" (the certificates or the inputs contradict it, or prove less), "unproved" (nothing in the file proves
it) or "malformed" (no result of its schema). A checker may give a weaker one, but never exit status 0, and never end by
a signal.
"""

import re
from typing import NamedTuple

import forgeries_of_heads
import forgeries_of_keys
import forgeries_of_tokens
from forgery import Forgeries, drop, layout, put

FIXTURE = "fixture:"  # a word that names a case of the model oracle


class Source(NamedTuple):
    """A genuine result: the words of the command, and what the arrays do not tell, by the path of its field."""
    command: tuple
    facts: dict = {}


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
    of.failed("most is negative", "most", put("bounds[1].most", lambda x: -x))
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
    of.failed("an MLP's range without its proof", "most", put("proof.shares[6].above", None))
    of.failed("an MLP never adds anything, by a curvature", "most", *no_share(6)("curvatures[0]", -1e30))
    of.failed("an MLP never adds anything, by a slope", "most", *no_share(6)("slopes[0]", 1e30))
    of.failed("an MLP's range with another multiplier", "least", put("proof.shares[6].below.multiplier", 0.0))
    of.unproved("another head's values", "shares", put("proof.shares[3].in.outputs", lambda runs: [[runs[0][0] + 1, runs[0][1] - 1]]))
    of.unproved("another head's columns", "shares", put("proof.shares[2].first_input", lambda x: x + 1))


def no_share(component):
    """An MLP that never adds anything, by a proof whose terms are so large that their rounding covers it."""
    def edits(member, value):
        sides = [put(f"proof.shares[{component}].{side}.{member}", value) for side in ("below", "above")]
        return (put(f"components[{component}].anywhere", {"least": 0.0, "most": 0.0}), *sides)
    return edits


def attribute_gated(of):
    of.failed("an MLP never adds anything, by a curvature", "most", *no_share(5)("curvatures[0]", -1e30))
    of.failed("a gated MLP never adds anything, by a multiplier", "most", *no_share(5)("multiplier", 1e30))
    anywhere(of, 0, 1, -1)
    of.failed("another slope of a unit", "most", put("proof.shares[-1].above.slopes[0]", lambda x: x + 1.0))
    of.unproved("another activation", "shares", put("proof.shares[-1].activation", "relu"))
    of.unproved("no gate", "shares", put("proof.shares[-1].gate", None))


def attribute_behind(of):
    anywhere(of, 0, -1)
    of.unproved("another norm of a branch", "shares", put("proof.shares[-1].norm.gain_offset", 0.0))
    of.failed("a range of a part of what a norm divides", "anywhere", put("components[1].anywhere", {"least": -1e-3, "most": 1e-3}))


def forgeries():
    """All forgeries, in the order of SOURCES."""
    makers = vars(forgeries_of_keys) | vars(forgeries_of_tokens) | vars(forgeries_of_heads) | globals()
    for source in SOURCES:
        of = Forgeries(source)
        makers[source](of)
        yield from of.all


if __name__ == "__main__":
    for forgery in forgeries():
        print(f"{forgery.source:26s}{forgery.verdict:11s}{forgery.field:28s}{forgery.name}")

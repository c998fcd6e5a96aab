"""Forgeries of results of `heads`."""

from forgery import add, drop, header, put


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

"""Checks a result of `normscope select`, `separate`, `reach` or `heads` with nothing but NumPy.

    python3 checker.py RESULT ARRAYS...

RESULT is the JSON of --json, ARRAYS are .npy files in the order of its `inputs.arrays`. Prints what does not hold, and
exits with 1 if something does not. docs/certificates.md has the inequalities, under the names of the functions here.
Computes in float64 and accepts deviations of 1e-9 of the sizes of terms. Not covered: labels, norms of keys, folders,
eps = 0, and heads with soft caps or norms of their own.
"""

import hashlib
import json
import sys
from fractions import Fraction

import numpy as np


def sha256(x):
    data = np.ascontiguousarray(x, "<f8").tobytes()
    pieces = [hashlib.sha256(data[i:i + 2**20]).digest() for i in range(0, len(data), 2**20)]
    return hashlib.sha256(b"".join(pieces)).hexdigest()


def mean(entries, key, rows):
    w = np.array([entry["weight"] for entry in entries])
    assert (w >= 0).all() and w.sum() > 0
    return w @ rows[[entry[key] for entry in entries]] / w.sum()


def exactly(exact, rows, i):
    if exact["answer"] == "selectable":
        q = [int(digits) for digits in exact["query"]]
        return all((rows[i] - other) @ q > 0 for j, other in enumerate(rows) if j != i)
    z = {entry["key"]: int(entry["numerator"]) for entry in exact["weights"]}
    d = int(exact["denominator"])
    same = all(sum(z[j] * rows[j] for j in z) == d * rows[i])
    return same and i not in z and min(z.values()) > 0 and sum(z.values()) == d


def select(result, keys):
    allowed = 1e-9 * result["scale"]
    rows = np.array([[Fraction(x) for x in row] for row in keys])
    for i, verdict in enumerate(result["verdicts"]):
        rest = keys[i] - np.delete(keys, i, axis=0)
        if verdict["proof"] == "exact":
            yield f"key {i}", exactly(verdict["exact"], rows, i) and verdict["exact"]["answer"] == verdict["answer"]
        elif verdict["answer"] == "selectable" and len(rest):
            q = keys[i] - result["center"] if verdict["proof"] == "own_direction" else np.array(verdict["query"])
            yield f"key {i}", np.min(rest @ q) / np.linalg.norm(q) >= verdict["margin"] - allowed
        if verdict["answer"] == "unselectable":
            residual = np.linalg.norm(mean(verdict["weights"], "key", keys) - keys[i])
            yield f"key {i}", residual <= verdict["residual"] + allowed


def separate(result, a, b):
    n, allowed = np.array(result["normal"]), 1e-9 * result["scale"]
    gap = (np.min(a @ n) - np.max(b @ n)) / np.linalg.norm(n)
    yield "margin", result["margin"] is None or gap >= result["margin"] - allowed
    apart = np.linalg.norm(mean(result["a"], "row", a) - mean(result["b"], "row", b))
    yield "residual", apart <= result["residual"] + allowed
    exact = result.get("exact", {"separable": "undecided"})
    yield "separable", result["separable"] != "yes" or exact["separable"] == "yes" or result["margin"] > 0
    a, b = [np.array([[Fraction(x) for x in row] for row in rows]) for rows in (a, b)]
    if exact["separable"] == "yes":
        n = [int(digits) for digits in exact["normal"]]
        yield "exact", min(a @ n) > max(b @ n)
    if exact["separable"] == "no":
        z = [[int(entry["numerator"]) for entry in exact[side]] for side in "ab"]
        point = [z @ rows[[entry["row"] for entry in exact[side]]] for side, rows, z in zip("ab", (a, b), z)]
        yield "exact", all(point[0] == point[1]) and {*map(sum, z)} == {int(exact["denominator"])}


def reach(result, w, c=0.0, g=1.0, beta=0.0):
    kind, tokens = result["norm"]["kind"], len(w)
    rows = (w - w.mean(axis=0)) * g * (1 if kind == "spherical" else np.sqrt(w.shape[1]))
    offsets = (w - w.mean(axis=0)) @ (beta * np.ones(w.shape[1])) + c - np.mean(c)
    if kind == "layer":
        rows -= rows.mean(axis=1, keepdims=True)
    scale = np.max(np.linalg.norm(rows, axis=1) + abs(offsets))
    lost = {entry["token"]: entry for entry in result["unreachable"] + result["undecided"]}
    for i, proof in enumerate(result["proofs"]):
        d, e = rows[i] - rows, offsets[i] - offsets
        lower, upper = result["lead"]["lower"][i], result["lead"]["upper"][i]
        if proof["answer"] == "yes" and tokens > 1:
            u = rows[i] / np.linalg.norm(rows[i]) if proof["witness"] == "own_direction" else np.array(proof["witness"])
            inside = np.linalg.norm(u) <= 1
            yield f"token {i} leads", inside and np.delete(d @ u + e, i).min() >= lower - 1e-9 * scale and lower > 0
        weights = lost[i]["weights"] if i in lost else proof.get("weights")
        if weights:
            bound = np.linalg.norm(mean(weights, "token", d)) + mean(weights, "token", e)
            yield f"token {i} leads by more", bound <= upper + 1e-9 * scale and all(x["token"] != i for x in weights)
        yield f"token {i}", proof["answer"] != "no" or upper <= result["tie"]
        least, most = [np.log(np.maximum(result["max_probability"][end][i], 1e-300)) for end in ("lower", "upper")]
        if proof.get("probability_point"):
            known = -np.log(np.exp(-d @ proof["probability_point"] - e).sum())
            yield f"token {i} has probability", known >= least - 1e-9 * (1 + scale)
        p = np.zeros(tokens)
        if proof.get("probability_tangent"):
            p = np.exp(-d @ proof["probability_tangent"] - e)
        for entry in proof.get("probability_weights", []):
            p[entry["token"]] = entry["weight"]
        if p.any():
            p /= p.sum()
            known = np.linalg.norm(p @ d) + p @ e + p @ np.log(np.maximum(p, 1e-300))
            yield f"token {i} has more probability", p.min() >= 0 and known <= most + 1e-9 * (1 + scale)


def bound(m, c, multiplier):
    """At least the largest |m u + c|, |u| <= 1."""
    h, best = m @ m.T, np.sqrt(np.sum(m * m)) + np.linalg.norm(c)
    for mu in multiplier * (1 + 2.0 ** -np.arange(20, 52, 4)):
        inner = mu * np.eye(len(h)) - h
        if mu > 0 and np.linalg.eigvalsh(inner)[0] > 0:
            best = min(best, np.sqrt(mu * (1 + c @ np.linalg.solve(inner, c))))
    return best


def heads(result, **arrays):
    for i, head in enumerate(result["heads"]):
        if "refused" in head:
            continue
        covered = not head["soft_cap"] and "own_norms" not in head
        assert covered, f"layer {head['layer']} head {head['head']}: soft caps and own norms are not covered"
        get = lambda role, default=None: arrays.get(f"heads[{i}] {role}", default)
        proof, dim, rotation, over = head["certificates"], head["head_dim"], head["rotation"], head.get("distances")
        kind, frequencies = proof["norm"]["kind"], np.array(proof.get("frequencies", []))
        pairs = [(2 * j, 2 * j + 1) if rotation["interleaved"] else (j, j + rotation["dims"] // 2)
                 for j, theta in enumerate(frequencies) if theta]
        frequencies = frequencies[frequencies != 0]
        stays = np.array([all(k not in pair for pair in pairs) for k in range(dim)])
        scales = head["scale"] * np.ones(dim)
        if rotation:
            scales[:rotation["dims"]] *= rotation["score_factor"]

        def turned(x, t):
            x = np.array(x)
            for (a, b), angle in zip(pairs, -t * frequencies):
                x[a], x[b] = x[a] * np.cos(angle) - x[b] * np.sin(angle), x[a] * np.sin(angle) + x[b] * np.cos(angle)
            return x

        def side(part, projects):
            w, shift = get(part), get(part + " bias", np.zeros(dim))
            if get("between") is not None:
                w, shift = w @ get("between"), shift + w @ get("between bias", np.zeros(w.shape[1]))
            n, shift = w.shape[1], shift + w @ get("norm bias", np.zeros(w.shape[1]))
            w = (1 if kind == "spherical" else np.sqrt(n)) * w * get("norm gain", np.ones(n))
            return w - w.mean(axis=1, keepdims=True) if kind == "layer" and projects else w, shift

        def sides(projects):
            (q, c), (k, d) = side("query", projects), side("key", projects)
            return q, c, scales[:, None] * k, np.where(stays, 0, scales * d)

        def unavoidable(contexts, q, c, k, d):
            g = np.zeros(dim)
            for context in contexts:
                for which, sign in (("high", 1), ("low", -1)):
                    v = np.array(context[which])
                    key = k @ v / np.linalg.norm(v) + d
                    g += sign * context["share"] * turned(key, context.get(which + "_distance", 0))
            return (c @ g - np.linalg.norm(q.T @ g)) / sum(context["share"] for context in contexts) if contexts else 0

        def at_zero(stated, proof, q, c, k, d):
            spread = lambda u: 2 * np.linalg.norm(k.T @ (q @ np.array(u) + c)) if np.linalg.norm(u) <= 1 else np.nan
            yield stated["sharp_bounds"][1], "<", bound(2 * k.T @ q, 2 * k.T @ c, proof["sharp"]["multiplier"])
            yield stated["sharp_bounds"][0], ">", spread(proof["sharp"]["query"])
            yield stated["uniform_bounds"][1], "<", spread(proof["uniform"]["query"])
            yield stated["uniform_bounds"][0], ">", unavoidable(proof["uniform"]["unavoidable"], q, c, k, 0 * d)

        def by_weights(p, q, c, k, d, query=None):
            still, n = p["still"], p["distances"]
            slow = [a in still for a, b in pairs]
            angles = frequencies if len(frequencies) else pairs
            for (a, b), is_slow, turn, theta in zip(pairs, slow, p["turns"], angles):
                assert (b in still) == is_slow and (is_slow or turn >= 1)
                assert not is_slow or (n - 1) * abs(theta) <= np.pi and turn >= 2 * np.sin((n - 1) * abs(theta) / 4)
            assert set(np.flatnonzero(stays)) <= set(still) and len(set(still)) == len(still)
            factor = np.array(p["factor"]).reshape(len(still), len(still))
            middle = turned(k, (n - 1) / 2) if any(slow) else k
            order, w, e = [x for pair in pairs for x in pair], np.repeat(p["weights"], 2), np.repeat(p["turns"], 2)
            on_query = lambda x: np.concatenate([factor @ x[still], (np.sqrt(e * w) * x[order].T).T])
            keys = np.concatenate([np.linalg.solve(factor.T, middle[still]), np.sqrt(e / w)[:, None] * k[order]])
            constant = np.concatenate([np.zeros(len(still)), np.sqrt(e / w) * d[order]])
            longest = (bound(on_query(q), on_query(c), p["query_multiplier"]) if query is None
                       else np.linalg.norm(on_query(query)))
            return 2 * longest * bound(keys, constant, p["key_multiplier"])

        def over_distances(q, c, k, d):
            sharp, uniform, within = proof["sharp"], proof["uniform"], over["within"]
            proved = []
            for name in ("everywhere", "in_context"):
                if sharp[name]:
                    yield sharp[name]["spread"], "<", by_weights(sharp[name], q, c, k, d)
                    reach = sharp[name]["distances"]
                    proved += [sharp[name]["spread"]] if reach is None or within and reach >= within else []
            p = sharp["by_distance"]
            if p:
                shape, most = (1 + p["query_square"]) * q @ q.T, 0
                if p["query_square"]:
                    shape = shape + (1 + 1 / p["query_square"]) * np.outer(c, c)
                for t in range(p["distances"]):
                    e, at = turned(d, t) - np.array(p["centre"]), turned(k, t)
                    gram = (1 + p["key_square"]) * at @ at.T
                    if p["key_square"]:
                        gram = gram + (1 + 1 / p["key_square"]) * np.outer(e, e)
                    most = max(most, np.linalg.eigvals(shape @ gram).real.max())
                yield p["reach"], "<", np.sqrt(most)
                yield p["spread"], "<", 2 * p["reach"]
                proved += [p["spread"]] if within and p["distances"] >= within else []
            yield head["sharp_bounds"][1], "<", min(proved)
            yield over["sharp_at_most_anywhere"], "<", sharp["everywhere"]["spread"]
            if sharp["keys"] and head["sharp_bounds"][0] > 0:
                at, (t, s) = sharp["keys"], (sharp["keys"][which + "_distance"] for which in ("high", "low"))
                assert t != s and min(t, s) > 0 and (not within or max(t, s) < within)
                assert max(np.linalg.norm(x) for x in (sharp["query"], at["high"], at["low"])) <= 1
                apart = turned(k @ np.array(at["high"]) + d, t) - turned(k @ np.array(at["low"]) + d, s)
                yield head["sharp_bounds"][0], ">", (q @ np.array(sharp["query"]) + c) @ apart
            anywhere = q @ np.array(uniform["anywhere"]["query"]) + c
            everywhere = by_weights(uniform["anywhere"]["proof"], q, c, k, d, anywhere)
            yield over["uniform_at_most_anywhere"], "<", min(everywhere, over["sharp_at_most_anywhere"])
            least = min(over["uniform_at_most_anywhere"], head["sharp_bounds"][1])
            if within and within <= 2**16:
                query = q @ np.array(uniform["query"]) + c
                scores = np.array([(query @ turned(d, t), np.linalg.norm(query @ turned(k, t))) for t in range(within)])
                least = min(least, scores.sum(axis=1).max() + (scores[:, 1] - scores[:, 0]).max())
            yield head["uniform_bounds"][1], "<", least
            yield head["uniform_bounds"][0], ">", unavoidable(uniform["unavoidable"], q, c, k, d)

        statements = list(over_distances(*sides(True))) if over else []
        outer = over["at_distance_zero"] if over else head
        statements += at_zero(outer, proof["at_distance_zero"] if over else proof, *sides(True))
        if "without_projection" in outer:
            statements += at_zero(outer["without_projection"], proof["without_projection"], *sides(False))
        q, c, k, d = sides(False)
        allowed = 1e-9 * np.linalg.norm(k) * (np.linalg.norm(q) + np.linalg.norm(c))
        for stated, relation, found in statements:
            holds = found <= stated + allowed if relation == "<" else stated <= max(found, 0) + allowed
            yield f"layer {head['layer']} head {head['head']}: {stated}", holds
        narrow = [head["uniform_bounds"][1], head["sharp_bounds"][0]]
        yield "spreads", [head["uniform_spread"], head["sharp_spread"]] in ([None, None], narrow)


def failures(result, arrays):
    """The statements of `result` that do not hold for `arrays`, which are in the order of its inputs.

    Errors   ValueError for other arrays than those that the result was computed from
    """
    if not __debug__:
        raise RuntimeError("checker: some of its checks are assertions, which python -O leaves out")
    stated = result["inputs"]["arrays"]
    arrays = [np.asarray(array, float) for array in arrays]
    if [sha256(x) for x in arrays] != [entry["sha256"] for entry in stated]:
        raise ValueError("checker: other arrays than the result's " + ", ".join(entry["role"] for entry in stated))
    short = {"unembedding": "w", "unembedding bias": "c", "gain": "g", "norm bias": "beta"}
    named = {short.get(entry["role"], entry["role"]): x for entry, x in zip(stated, arrays)}
    checks = {"select": select, "separate": separate, "reach": reach, "heads": heads}[result["schema"][10:-2]]
    return [item for item, holds in checks(result, **named) if not holds]


def main(result, *names):
    with open(result, encoding="utf-8") as file:
        wrong = failures(json.load(file), [np.load(name) for name in names])
    print(*wrong or ["every statement holds"], sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

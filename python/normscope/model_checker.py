"""Checks a result of `normscope ranges`, `attribute` or `rewrite` against the checkpoints themselves, with nothing but NumPy.

    python3 model_checker.py RESULT MODEL                 of ranges, and of attribute with --proofs
    python3 model_checker.py RESULT IN OUT [ROTATION]     of rewrite

RESULT is the JSON of --json; checkpoints are .safetensors files, or folders of such; ROTATION is what --rotate was given,
random:SEED or a .npy file. From the checkpoints it derives each number, and compares the result with it, field by field:
a field is proved, fails, or is left unproved. docs/certificates.md has the inequalities, under the names of the functions
here. Computes in float64 and accepts deviations of 1e-9 of the sizes of terms. It takes the wiring, which map reads which
norm, from the result, and lists it as unproved. Exit status: 0 everything is proved, 1 a field fails, 3 no such result or
other files, 4 a field is left unproved. Not covered: rewrites of rewritten checkpoints.
"""

import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np

if __package__:
    from . import _exact as exact
else:
    import _exact as exact


class Tensors(Mapping):
    """The tensors of a .safetensors file, or of all in a folder, each read when it is asked for; types other than
    floating-point as bytes."""

    def __init__(self, path):
        self.places = {}
        for file in sorted(Path(path).glob("model*.safetensors")) or sorted(Path(path).glob("*.safetensors")) or [Path(path)]:
            with open(file, "rb") as opened:
                start = 8 + int.from_bytes(opened.read(8), "little")
                header = json.loads(opened.read(start - 8))
            self.places |= {name: (file, start, entry) for name, entry in header.items() if name != "__metadata__"}

    def __iter__(self):
        return iter(self.places)

    def __len__(self):
        return len(self.places)

    def __getitem__(self, name):
        file, start, entry = self.places[name]
        begin, end = entry["data_offsets"]
        kind = np.dtype({"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}.get(entry["dtype"], "u1"))
        x = np.fromfile(file, kind, (end - begin) // kind.itemsize, offset=start + begin)
        x = (x.astype("<u4") << 16).view("<f4") if entry["dtype"] == "BF16" else x
        return x.astype(float).reshape(entry["shape"]) if x.dtype.kind == "f" else x


def at(model, selector):
    """The tensor "name", or entry i of "name[i]"."""
    name, _, index = selector.removesuffix("]").rpartition("[") if selector.endswith("]") else (selector, "", "")
    return model[name][int(index)] if index else model[name]


def matrix(model, selector, layout, width):
    """All of a stored matrix as outputs x inputs."""
    stored = at(model, selector)
    if stored.dtype.kind != "f":
        raise exact.Malformed(f"{selector} holds no floating-point numbers: quantized matrices are not covered")
    return stored.reshape(width, -1).T if layout == "in_out" else stored.reshape(-1, width)


def parameters(norm, model, width):
    gain = norm["gain_offset"] + at(model, norm["gain"]).ravel() if norm["gain"] else 1.0
    bias = at(model, norm["bias"]).ravel() if norm["bias"] else 0.0
    return gain * np.ones(width), bias * np.ones(width)


def sphere(norm, width):
    """Blocks of features that a norm scales together, and the radius of each: y = radius u, |u| <= 1, before the gain."""
    kind, groups = norm["kind"], norm["groups"]
    blocks = {"layer": groups, "rms": groups, "spherical": groups, "dyt": width, "derf": width}.get(kind)
    if blocks is None:
        raise exact.Malformed(f"a norm is {kind}, which this checker does not know")
    return blocks, np.sqrt(width / groups) if kind in ("layer", "rms") else 1.0


LIMITS = {"float16": 65504.0, "bfloat16": 255 * 2.0**120, "float8_e4m3": 448.0, "float8_e5m2": 57344.0}


def exceeded(size):
    return {name for name, limit in LIMITS.items() if size > limit}


def reader_ranges(norm, reader, model, where):
    source, width = reader["source"], norm["source"]["width"]
    gain, bias = parameters(norm["source"], model, width)
    blocks, radius = sphere(norm["source"], width)
    stored = matrix(model, reader["weight"], source["layout"], width)
    if sum(count for _, count in source["outputs"]) > len(stored):
        raise exact.Malformed(f"{where}source.outputs are more than are stored")
    rows = [first + k for first, count in source["outputs"] for k in range(count)]
    w = stored[rows]
    c = at(model, source["bias"]).ravel()[rows] if source["bias"] else np.zeros(len(w))
    u = (w * gain).reshape(len(w), blocks, -1)
    if norm["source"]["kind"] == "layer":
        u = u - u.mean(axis=2, keepdims=True)
    m, h = w @ bias + c, radius * np.linalg.norm(u, axis=2).sum(axis=1)
    sizes = abs(w) @ abs(bias) + abs(c) + h
    yield where + "rows", reader["rows"] == len(w)
    for name, end, sign in (("lowest", m - h, 1), ("highest", -m - h, -1)):
        stated = reader[name]
        yield f"{where}{name}.bound", np.all(sign * stated["bound"] <= end + 1e-9 * sizes)
        known = 0 <= stated["row"] < len(end)
        yield f"{where}{name}.row", known and end[stated["row"]] <= end.min() + 1e-9 * sizes[stated["row"]]
        reached = sign * stated["attained"] - end[stated["row"]] if known and stated["attained"] is not None else np.inf
        yield f"{where}{name}.attained", None if stated["attained"] is None else abs(reached) <= 1e-6 * sizes[stated["row"]]
    for name, holds in (("never_positive", m + h <= 1e-9 * sizes), ("never_negative", m - h >= -1e-9 * sizes)):
        rows = reader[name]["rows"]
        yield where + name, (reader[name]["count"] <= holds.sum() and len(rows) <= reader[name]["count"] and len(set(rows)) == len(rows)
                             and all(0 <= row < len(holds) and holds[row] for row in rows))
    size = max(-reader["lowest"]["bound"], reader["highest"]["bound"])
    yield where + "may_overflow", set(reader["may_overflow"]) == exceeded(size)
    yield where + "int8.scale", abs(reader["int8"]["scale"] - size / 127) <= 1e-9 * size


def ranges(result, model):
    for i, norm in enumerate(result["norms"]):
        where = f"norms[{i}]."
        if "refused" in norm:
            yield f"{where}output", None if norm.get("output") is None and not norm.get("readers") else False
            continue
        width = norm["source"]["width"]
        gain, bias = parameters(norm["source"], model, width)
        blocks, radius = sphere(norm["source"], width)
        reach = radius * np.sqrt(1 - blocks / width) if norm["source"]["kind"] == "layer" else radius
        sizes, output = reach * abs(gain) + abs(bias), norm["output"]
        yield f"{where}output.largest", output["largest"] >= sizes.max() * (1 - 1e-9)
        yield f"{where}output.feature", 0 <= output["feature"] < width and sizes[output["feature"]] >= sizes.max() * (1 - 1e-9)
        yield f"{where}output.may_overflow", set(output["may_overflow"]) == exceeded(output["largest"])
        yield f"{where}output.int8.scale", abs(output["int8"]["scale"] - output["largest"] / 127) <= 1e-9 * output["largest"]
        for j, reader in enumerate(norm["readers"]):
            if "refused" not in reader:
                yield from reader_ranges(norm, reader, model, f"{where}readers[{j}].")
            elif any(name in reader for name in ("lowest", "highest", "never_positive", "never_negative", "may_overflow", "int8", "typical")):
                yield f"{where}readers[{j}].refused", False
    heads = [reader for norm in result["norms"] for reader in norm.get("readers", [])
             if reader["role"] == "unembedding" and "refused" not in reader]
    if result["logits"] and heads:
        scale, cap = result["logits"]["scale"], result["logits"]["soft_cap"]
        ends = np.array([heads[-1]["lowest"]["bound"], heads[-1]["highest"]["bound"]]) * scale
        low, high = sorted(cap * np.tanh(ends / cap) if cap else ends)
        allowed = 1e-9 * max(abs(low), abs(high))
        yield "logits.lowest.bound", result["logits"]["lowest"]["bound"] <= low + allowed
        yield "logits.highest.bound", result["logits"]["highest"]["bound"] >= high - allowed


def every_set(f, lines, reads, gram, price, sizes):
    """Extremes of f(S) = |u + sum of d_k|^2 and of the price of freezing over all sets of at most so many components, for
    each number in `sizes`, which are 1, 2, ... Two components are added at once, for all pairs."""
    found, count = [np.array([f, f, 0.0, 0.0])], len(lines)
    own = np.diag(gram)

    def extremes(square, read):
        cost = price(square, read)
        return np.array([square.min(), square.max(), cost.min(), cost.max()])

    def join(size, values):
        while len(found) <= size:
            found.append(found[-1].copy())
        found[size][[0, 2]] = np.minimum(found[size][[0, 2]], values[[0, 2]])
        found[size][[1, 3]] = np.maximum(found[size][[1, 3]], values[[1, 3]])

    def extend(size, first, square, read, h):
        rest = slice(first, None)
        if size + 1 <= max(sizes):
            one, r = square + 2 * h[rest] + own[rest], read + reads[rest]
            if len(one):
                join(size + 1, extremes(one, r))
            if size + 2 == max(sizes) and len(one) > 1:
                i, j = np.triu_indices(len(one), 1)
                two = one[i] + one[j] - square + 2 * gram[rest, rest][i, j]
                join(size + 2, extremes(two, r[i] + r[j] - read))
            elif size + 2 < max(sizes):
                for k in range(first, count):
                    extend(size + 1, k + 1, one[k - first], r[k - first], h + gram[k])

    extend(0, 0, f, price.read, lines)
    return [found[min(size, len(found) - 1)] for size in sizes]


MOST_SETS = 1e5


def sets(count, size):
    return sum(math.comb(count, k) for k in range(size + 1))


def relaxed(f, lines, gram, lengths, certificate, removed, sign):
    """The bound of f that a tangent proves, below for sign 1 and above for -1; none if the diagonal does not make it one."""
    z, diagonal = np.array(certificate["point"]), np.array(certificate["diagonal"])
    a = sign * (gram - np.diag(diagonal))
    scale = np.where(lengths > 0, lengths, 1)
    if len(z) != len(lines) or np.any((z < 0) | (z > 1)) or z.sum() > removed or np.linalg.eigvalsh(a / np.outer(scale, scale))[0] < -1e-10:
        return -sign * np.inf
    slope = sign * (2 * lines + diagonal) + 2 * a @ z
    return sign * (sign * f - z @ a @ z + np.minimum(np.sort(slope)[:removed], 0).sum())


def attribute(result, model):
    """Of rows u and changes d_k of the proof: what each does to v.u/s, s^2 = |u|^2/R^2 + eps, and all sets of them. That the
    rows are the model's only its forward pass tells."""
    proof = result["proof"]
    source, (u, v, d) = proof["source"], (np.array(proof[name], float) for name in ("row", "direction", "changes"))
    width, components = len(u), result["components"]
    gain, bias = parameters(source, model, width)
    rows = matrix(model, source["unembedding"], source["layout"], width)
    offsets = at(model, source["unembedding_bias"]).ravel() if source["unembedding_bias"] else np.zeros(len(rows))
    w, c = rows[result["target"]["token"]], offsets[result["target"]["token"]]
    if result["against"] is not None:
        w, c = w - rows[result["against"]["token"]], c - offsets[result["against"]["token"]]
    w, c, centre = source["logit_scale"] * w, source["logit_scale"] * c, source["kind"] == "layer"
    exact_v = gain * w - centre * (gain * w).mean()
    yield "proof.direction", v.shape == u.shape and np.linalg.norm(v - exact_v) <= 1e-9 * np.linalg.norm(gain * w)
    yield "proof.squared_radius", proof["squared_radius"] == (1 if source["kind"] == "spherical" else width)
    yield "constant", abs(result["constant"] - c - w @ bias) <= 1e-9 * (abs(c) + abs(w) @ abs(bias))
    for part in ("row", "changes", "eps", "source", "shares"):
        yield f"proof.{part}", None, "only a forward pass of the model tells"
    if d.shape != (len(components), width) or (centre and max(abs(u.mean()), abs(d.mean(axis=1)).max()) > 1e-9 * abs(d).max()):
        raise exact.Malformed("proof.changes are no rows of the components")
    divisor = lambda square: np.sqrt(np.maximum(square, 0) / proof["squared_radius"] + proof["eps"])
    s, length, reads = divisor(u @ u), np.linalg.norm(u), d @ v
    yield "divisor", abs(result["divisor"] - s) <= 1e-9 * s
    yield "value", abs(result["value"] - result["constant"] - v @ u / s) <= 1e-9 * np.linalg.norm(v) * length / s
    for k, (component, change) in enumerate(zip(components, d)):
        after, where = u + change, f"components[{k}]."
        t, along, square = divisor(after @ after), u @ change, change @ change
        size = np.linalg.norm(v) * (length + np.sqrt(square)) * (1 / s + 1 / t if t > 0 else np.inf)
        gradient = (v @ change - (v @ u) * along / (proof["squared_radius"] * s * s)) / s
        found = {"frozen": v @ change / s, "exact": v @ after / t - v @ u / s, "gradient": gradient}
        found["price"] = found["exact"] - found["frozen"]
        for name, value in found.items():
            yield where + name, abs(component[name] - value) <= 1e-9 * size
        step = np.clip(-along / square, 0, 1) if square > 0 else 0.0
        nearest = u + step * change
        bound = np.linalg.norm(v) * square / np.sqrt(3 * proof["squared_radius"]) / divisor(nearest @ nearest)**2
        yield where + "remainder", component["remainder"] is None or component["remainder"] >= bound * (1 - 1e-9)
        lengths = length * np.linalg.norm(after)
        yield where + "cosine", abs(component["cosine"] - (u @ after / lengths if lengths > 0 else 0)) <= 1e-9
        if component["shares"]:
            yield where + "shares", None, "only a forward pass of the model tells"
        yield from share_ends(component, proof["shares"][k], v, s, model, where)
        zero = result["removal"] == "zero"
        of_row = {"share": -found["frozen"], "rules.gradient_input": -gradient, "rules.half_rule": gradient / 2 - found["frozen"]}
        for name, value in of_row.items():
            stated = component["rules"][name[6:]] if name[:6] == "rules." else component[name]
            yield where + name, abs(stated - value) <= 1e-9 * size if zero else None, "of replaced components only a forward pass tells"
    yield from attribute_bounds(result, u, v, d, divisor)
    if result["circuit"] and result["removal"] == "mean":
        kept = set(result["circuit"]["kept"])
        if not kept <= {component["name"] for component in components}:
            raise exact.Malformed("circuit.kept are no components")
        total = sum((change for component, change in zip(components, d) if component["name"] not in kept), np.zeros(width))
        t, value = divisor((u + total) @ (u + total)), result["value"]
        found = {"frozen": v @ total / s, "exact": v @ (u + total) / t - v @ u / s,
                 "gradient": (v @ total - (v @ u) * (u @ total) / (proof["squared_radius"] * s * s)) / s}
        size = abs(value) + np.linalg.norm(v) * (length + np.linalg.norm(total)) * (1 / s + 1 / t)
        yield "circuit.kept", True
        for name, change in found.items():
            yield f"circuit.{name}", abs(result["circuit"][name] - value - change) <= 1e-9 * size


def own_map(part, model, width):
    """The matrix of a part of a stored map, outputs x inputs, and its bias."""
    rows = [first + k for first, count in part["outputs"] for k in range(count)]
    bias = at(model, part["bias"]).ravel()[rows] if part["bias"] else np.zeros(len(rows))
    return matrix(model, part["weight"], part["layout"], width)[rows], bias


def behind(norm, rows, model):
    """The centre and the reach of what each row reads of a norm's outputs, and the sizes of their terms."""
    gain, bias = parameters(norm, model, norm["width"])
    blocks, radius = sphere(norm, norm["width"])
    u = (rows * gain).reshape(len(rows), blocks, -1)
    sizes = abs(rows) @ abs(bias) + radius * abs(u).sum(axis=(1, 2))
    if norm["kind"] == "layer":
        u = u - u.mean(axis=2, keepdims=True)
    return rows @ bias, radius * np.linalg.norm(u, axis=2).sum(axis=1), sizes


def activate(name, x):
    if name == "gelu":
        return 0.5 * x * np.vectorize(math.erfc, otypes=[float])(-x / math.sqrt(2))
    if name == "gelu_tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    if name == "silu":
        return x / (1 + np.exp(-np.clip(x, -700, None)))
    return np.maximum(x, 0) ** (2 if name == "squared_relu" else 1)


def activated(name, low, high):
    """The extremes of an activation, which falls to its least value and rises from there."""
    grid = np.linspace(-4, 0, 40001)
    lowest = grid[activate(name, grid).argmin()] if name in ("gelu", "gelu_tanh", "silu") else 0.0
    ends = activate(name, low), activate(name, high), activate(name, np.clip(lowest, low, high))
    return np.minimum.reduce(ends), np.maximum(*ends[:2])


# How many times what an MLP can add the terms of a proof may be: deviations are accepted in proportion to them.
LARGEST_TERMS = 100


def share_ends(component, source, v, s, model, where):
    """Bounds of v.x over all that a component can add to the stream in any context, over every divisor of at least s."""
    if component["anywhere"] is None:
        return
    if source["of"] in ("rows", "constant"):
        stored = source["rows"] and at(model, source["rows"]).reshape(-1, len(v))
        reads, size = stored @ v, np.linalg.norm(stored, axis=1).max() * np.linalg.norm(v)
        low, high = reads.min(), reads.max()
    elif source["of"] == "norm":
        centre, reach, size = (x[0] for x in behind(source["norm"], v[None], model))
        low, high = centre - reach, centre + reach
    else:
        norm = source["norm"]
        weight, bias = own_map(source["in"], model, norm["width"])
        first, (out, _) = source["first_input"], own_map(source["out"], model, stored_inputs(source["out"], model, len(v)))
        through = v @ out[:, first:first + len(weight)]
        if source["of"] == "head":
            centre, reach, size = (x[0] for x in behind(norm, (through @ weight)[None], model))
            low, high = centre - reach + through @ bias, centre + reach + through @ bias
        else:
            ends = lambda w, b: (lambda centre, reach, _: (centre + b - reach, centre + b + reach))(*behind(norm, w, model))
            inner = ends(weight, bias)
            units = activated(source["activation"], *(ends(*own_map(source["gate"], model, norm["width"])) if source["gate"] else inner))
            if source["gate"]:
                products = [factor * value for factor in units for value in inner]
                units = np.minimum.reduce(products), np.maximum.reduce(products)
            added = [through * unit for unit in units]
            low, high, size = np.minimum(*added).sum(), np.maximum(*added).sum(), np.maximum(*map(abs, added)).sum()
    low, high = sorted((source["scale"] * low, source["scale"] * high))
    size *= abs(source["scale"])
    largest = size
    for name, sign in (("below", -1), ("above", 1)):
        if source["of"] == "mlp" and source[name]:
            bound, terms = quadratic_bound(source, sign * source["scale"] * through, source[name], model)
            if terms <= LARGEST_TERMS * size:
                low, high = (max(low, -bound), high) if sign < 0 else (low, min(high, bound))
                largest = max(largest, terms)
    allowed = 1e-9 * largest
    for name, holds in (("least", component["anywhere"]["least"] * s <= min(0, low) + allowed),
                        ("most", component["anywhere"]["most"] * s >= max(0, high) - allowed)):
        yield f"{where}anywhere.{name}", holds


def highest(f, low, high):
    """The largest value of each of several functions between two of its arguments: of a grid, with the best place refined."""
    best = np.full(low.shape, -np.inf)
    for start, end in ((low, np.clip(0, low, high)), (np.clip(0, low, high), high)):
        z = start + np.linspace(0, 1, 1025)[:, None] * (end - start)
        y = f(z)
        # Where a grid of a function is nearly as high in two places, both may be the highest between.
        for _ in range(3):
            k = y.argmax(axis=0)
            a, b = (z[np.clip(k + d, 0, 1024), np.arange(len(low))] for d in (-1, 1))
            for _ in range(60):
                third = (b - a) / 3
                right = f(a + third) < f(b - third)
                a, b = np.where(right, a + third, a), np.where(right, b, b - third)
            best = np.maximum(best, np.maximum(f((a + b) / 2), y.max(axis=0)))
            y[abs(np.arange(1025)[:, None] - k) <= 2] = -np.inf
    return best


def quadratic_bound(source, a, proof, model):
    """An upper bound of what the units of an MLP add up to, each at most a quadratic function of what it reads of the ball
    |u| <= 1, and the sizes of its terms; infinite where the proof does not hold."""
    norm = source["norm"]

    def reads(part):
        weight, bias = own_map(part, model, norm["width"])
        gain, shift = parameters(norm, model, norm["width"])
        rows = sphere(norm, norm["width"])[1] * weight * gain
        return rows - (norm["kind"] == "layer") * rows.mean(axis=1, keepdims=True), bias + weight @ shift

    p, c = reads(source["gate"] or source["in"])
    s, t, k = (np.array(proof[name], float) for name in ("slopes", "curvatures", "balances"))
    if sphere(norm, norm["width"])[0] != 1 or norm["kind"] in ("dyt", "derf") or s.shape != a.shape or t.shape != a.shape:
        return np.inf, 0.0
    reach, multiplier, name = np.linalg.norm(p, axis=1), proof["multiplier"], source["activation"]
    if source["gate"]:
        q, x = reads(source["in"])
        if k.shape != a.shape or not (k > 0).all():
            return np.inf, 0.0
        rest = highest(lambda z: (activate(name, z) - s * z)**2 - t * (z - c)**2, c - reach, c + reach)
        constants = np.array([a * s * x * c, abs(a) * k * x * x / 2, abs(a) * rest / k / 2])
        h = (a * s * x) @ p + (a * s * c + abs(a) * k * x) @ q
        matrix = (p.T * (a * s)) @ q + (q.T * (abs(a) * k / 2)) @ q + (p.T * (abs(a) * t / k / 2)) @ p
        lengths = abs(a) * (abs(s) * reach + k * np.linalg.norm(q, axis=1)) * np.linalg.norm(q, axis=1) + abs(a * t / k) * reach**2
    else:
        constants = highest(lambda z: a * activate(name, z) - s * (z - c) - t * (z - c)**2, c - reach, c + reach)
        h, matrix, lengths = s @ p, (p.T * t) @ p, abs(s) * reach + abs(t) * reach**2
    left = multiplier * np.eye(len(h)) - (matrix + matrix.T) / 2
    size = abs(constants).sum() + lengths.sum() + multiplier
    values, axes = np.linalg.eigh(left)
    if multiplier < 0 or values[0] < -1e-10 * size:
        return np.inf, size
    w = axes @ (axes.T @ h / 2 / np.maximum(values, 1e-12 * size))
    return constants.sum() + multiplier + w @ left @ w + np.linalg.norm(h - 2 * left @ w), size


def stored_inputs(part, model, outputs):
    """The number of inputs of a stored map with that many outputs."""
    return at(model, part["weight"]).size // outputs


def attribute_bounds(result, u, v, d, divisor):
    gram, lines, reads, lengths = d @ d.T, d @ u, d @ v, np.linalg.norm(d, axis=1)
    f, s, bounds = u @ u, divisor(u @ u), result["bounds"]
    index_of = {component["name"]: k for k, component in enumerate(result["components"])}

    def price(square, read):
        with np.errstate(divide="ignore"):
            return read * (1 / divisor(square) - 1 / s)

    price.read = v @ u
    tried = [bound["removed"] for bound in bounds if bound["proof"] == "every_set" and sets(len(d), bound["removed"]) <= MOST_SETS]
    extremes = dict(zip(tried, every_set(f, lines, reads, gram, price, tried))) if tried else {}
    for k, bound in enumerate(bounds):
        where, removed = f"bounds[{k}].", bound["removed"]
        yield where + "removed", removed == k + 1 and removed <= len(d)
        longest = np.linalg.norm(u) + np.sort(lengths)[::-1][:removed].sum()
        if bound["proof"] == "relaxation":
            low, high = (relaxed(f, lines, gram, lengths, bound[name], removed, sign) if name in bound else -sign * np.inf for name, sign in (("below", 1), ("above", -1)))
        elif removed in extremes:
            low, high = extremes[removed][:2]
        else:
            for name in ("proof", "least", "most", "least_price", "most_price"):
                yield where + name, None, f"takes more than {MOST_SETS:g} sets"
            low = None
        if low is not None:
            for name in {"below", "above"} & set(bound):
                yield where + name, True
            yield where + "proof", True
            small, large = divisor(low - 1e-12 * longest**2), divisor(high)
            yield where + "least", bound["least"] <= s / large * (1 + 1e-9)
            yield where + "most", bound["most"] is None or small > 0 and bound["most"] >= s / divisor(low) * (1 - 1e-9)
            order = np.sort(reads)
            ends = [price.read + np.minimum(order[:removed], 0).sum(), price.read + np.maximum(order[::-1][:removed], 0).sum()]
            with np.errstate(divide="ignore"):
                products = [read * (factor - 1) / s for read in ends for factor in (s / large, s / divisor(low) if low > 0 else np.inf)]
            least, most = min(products), max(products)
            if removed in extremes:
                least, most = max(least, extremes[removed][2]), min(most, extremes[removed][3])
            allowed = 1e-9 * np.linalg.norm(v) * longest * (1 / s + 1 / small if small > 0 else np.inf)
            yield where + "least_price", bound["least_price"] is None or bound["least_price"] <= least + allowed
            yield where + "most_price", bound["most_price"] is None or bound["most_price"] >= most - allowed
        for name in ("least", "most", "least_price", "most_price"):
            stated = bound["attained_" + name]
            chosen = [index_of[component] for component in stated["components"]]
            left = u + d[chosen].sum(axis=0)
            value = price(left @ left, v @ left) if name.endswith("price") else s / divisor(left @ left)
            fits = len(set(chosen)) == len(chosen) <= removed
            yield where + "attained_" + name, fits and (stated["value"] is None or abs(stated["value"] - value) <= 1e-6 * (abs(value) + (name[-5:] == "price") * longest * np.linalg.norm(v) / s))


def random_bits(seed):
    """Blackman and Vigna's xoshiro256++, seeded through SplitMix64."""
    state, rest = [], 2**64 - 1
    for _ in range(4):
        seed = (seed + 0x9E3779B97F4A7C15) & rest
        mixed = ((seed ^ seed >> 30) * 0xBF58476D1CE4E5B9) & rest
        mixed = ((mixed ^ mixed >> 27) * 0x94D049BB133111EB) & rest
        state.append(mixed ^ mixed >> 31)
    turned = lambda x, by: (x << by | x >> (64 - by)) & rest
    while True:
        yield (turned((state[0] + state[3]) & rest, 23) + state[0]) & rest
        shifted = (state[1] << 17) & rest
        state[2] ^= state[0]
        state[3] ^= state[1]
        state[1] ^= state[2]
        state[0] ^= state[3]
        state[2] ^= shifted
        state[3] = turned(state[3], 45)


def normals(bits):
    """Marsaglia's polar method."""
    while True:
        u, v = ((next(bits) >> 11) * 2.0**-52 - 1 for _ in range(2))
        s = u * u + v * v
        if 0 < s < 1:
            yield from (u * np.sqrt(-2 * np.log(s) / s), v * np.sqrt(-2 * np.log(s) / s))


def rotation_matrix(rotation, width, keeps_mean):
    """Q of random:SEED, (R x H) diag(signs) for width = m 2^k and a reflection if Q (1, ..., 1) is to be (1, ..., 1); or
    the orthogonal matrix next to that of a file."""
    kind, _, seed = rotation.partition(":")
    if kind != "random":
        u, _, v = np.linalg.svd(np.load(rotation).astype(float))
        return u @ v
    bits, block = random_bits(int(seed)), width & -width
    signs = np.array([1.0 if next(bits) & 1 else -1.0 for _ in range(width)])
    r, h = np.ones((1, 1)), np.ones((1, 1))
    if width > block:
        r, numbers = np.zeros((width // block, width // block)), normals(bits)
        for i, row in enumerate(r):
            row[:] = [next(numbers) for _ in row]
            for _ in range(2):
                row -= r[:i].T @ (r[:i] @ row)
                row /= np.linalg.norm(row)
    while len(h) < block:
        h = np.kron([[1, 1], [1, -1]], h)
    q = np.kron(r, h / np.sqrt(block)) * signs
    ones = np.full(width, 1 / np.sqrt(width))
    mirror = q @ ones - ones
    length = np.linalg.norm(mirror)
    return q - 2 * np.outer(mirror, mirror @ q) / length**2 if keeps_mean and length > 1e-12 else q


def rotated_error(certificate, norm, old, new, q, means):
    """`error_of` of rotations: W' = W G Q^T of readers, Q W of writers, Q v of vectors, with q(width) = Q."""
    change, stored = certificate["change"], certificate["map"]
    if change == "rotate":
        w, v = at(old, certificate["input"]).ravel(), at(new, certificate["tensor"]).ravel()
        gain = parameters(norm, old, len(w))[0]
        if certificate["tensor"] == norm["bias"]:
            w = w / np.where(w == 0, 1, gain) if norm["fold"] == "gain" else w
        elif means:
            w = w - w.mean()
        return abs(v - q(len(w)) @ w).max(), np.linalg.norm(w)
    w, v = (matrix(model, certificate[name], stored["layout"], stored["in"]) for model, name in ((old, "input"), (new, "tensor")))
    if change == "rotate_outputs":
        exact = q(len(w)) @ (w - w.mean(axis=0) if means else w)
        return np.linalg.norm(v - exact, axis=0).max(), np.linalg.norm(w, axis=0).max()
    width = stored["in"]
    blocks, radius = sphere(norm, width)
    exact, length = (w * parameters(norm, old, width)[0]) @ q(width).T, radius * np.sqrt(blocks)
    moved, size = kept_bias(norm, w, v, old, new)
    v = v * parameters(norm, new, width)[0]
    return (length * np.linalg.norm(v - exact, axis=1) + moved).max(), length * np.linalg.norm(exact, axis=1).max() + size


def kept_bias(norm, w, v, old, new):
    """How far each output of a reader moves where the norm keeps its bias, and the size of the terms."""
    bias, left = (at(model, norm["bias"]).ravel() if norm["bias"] else np.zeros(1) for model in (old, new))
    if not left.any():  # `taken_from` asks where it went
        return 0.0, 0.0
    return abs(v @ left - w @ bias), (abs(w) @ abs(bias) + abs(v) @ abs(left)).max()


def error_of(certificate, norm, old, new):
    """The largest error of an output over all inputs of the norm, or of a written vector, and the magnitudes that round."""
    change, stored = certificate["change"], certificate["map"]
    w, v = at(old, certificate["input"]), at(new, certificate["tensor"])
    whole = matrix(old, stored["tensor"], stored["layout"], stored["in"]) if stored else None
    if change == "center_outputs":
        v = matrix(new, certificate["tensor"], stored["layout"], stored["in"])
        return np.linalg.norm(v - (whole - whole.mean(axis=0)), axis=0).max(), np.linalg.norm(whole, axis=0).max()
    width = stored["in"] if stored else w.size
    (gain, bias), (after, _) = parameters(norm, old, width), parameters(norm, new, width)
    if change == "scale_inputs":
        v = matrix(new, certificate["tensor"], stored["layout"], stored["in"])
        blocks, radius = sphere(norm, width)
        length, (moved, size) = radius * np.sqrt(blocks), kept_bias(norm, whole, v, old, new)
        return (length * np.linalg.norm(v * after - whole * gain, axis=1) + moved).max(), length * abs(whole * gain).max() + size
    if change == "center":
        exact = w - w.mean()
    elif change == "add_folded_bias":
        exact = w.ravel() + whole @ bias
    elif change == "divide_by_gain":
        exact = np.divide(w.ravel(), gain, out=np.zeros(width), where=w.ravel() != 0)
    else:
        if change != "divide_by_scale":
            raise exact.Malformed(f"{certificate['tensor']}: {change} is not covered")
        powers = np.frexp(np.divide(gain, after, out=np.ones(width), where=after != 0))[0]
        return (0.0 if np.all(abs(powers) == 0.5) or norm["gain_offset"] else np.inf), abs(w).max()
    return abs(v.ravel() - exact).max(), abs(exact).max()


def taken_from(norm, certificates, old, new):
    """What each reader of a norm needs a certificate of: the changes by which it takes the gain, the bias, neither or both."""
    stored = norm["gain"] or norm["bias"]
    if not stored:
        return []
    (gain, bias), (after, left) = (parameters(norm, model, at(model, stored).size) for model in (old, new))
    taken = [] if np.array_equal(gain, after) else [("scale_inputs", "rotate_inputs")]
    kept = left.any() and any(c["tensor"] == norm["bias"] for c in certificates) or np.array_equal(bias * after, left * gain)
    return taken if kept else [*taken, ("add_folded_bias",)]


def rewrite(result, old, new, rotation=None):
    norms = {norm["name"]: norm for norm in result["norms"]}
    centered = {name for stream in result["streams"] if stream["centered"] for name in stream["norms"]}
    turned = {name: stream for stream in result["rotations"] if stream["rotated"] for name in stream["norms"]}
    if turned and not rotation:
        raise ValueError("model_checker: the stream was rotated; expected random:SEED or the matrix's .npy file behind OUT")
    matrices, changed = {}, set()

    def q(width, keeps_mean):
        if (width, keeps_mean) not in matrices:
            matrices[width, keeps_mean] = rotation_matrix(rotation, width, keeps_mean)
        return matrices[width, keeps_mean]

    for k, certificate in enumerate(result["certificates"]):
        name = certificate["norm"]
        changed.add(certificate["tensor"].partition("[")[0])
        if certificate["change"].startswith("rotate"):
            of_stream = lambda width, keeps_mean=turned[name]["keeps_mean"]: q(width, keeps_mean)
            error, size = rotated_error(certificate, norms[name], old, new, of_stream, name in centered)
        else:
            error, size = error_of(certificate, norms[name], old, new)
        where = f"certificates[{k}]."
        yield f"{where}bound", error <= certificate["bound"] * (1 + 1e-9) + 1e-13 * size, f"of {certificate['tensor']} is exceeded"
        for part in ("tensor", "change", "norm"):  # what the error was computed from
            yield where + part, True
        untied = result["untied"] and (certificate["tensor"], certificate["input"]) == (result["untied"]["head"], result["untied"]["table"])
        yield where + "input", untied or certificate["tensor"] == certificate["input"], "is another tensor"
        of_reader = certificate["change"] == "add_folded_bias" and certificate["map"]["tensor"] in norms[name]["readers"]
        yield where + "map", not certificate["map"] or of_reader or certificate["map"]["tensor"] == certificate["input"], "is another map"
    for i, norm in enumerate(result["norms"]):
        neutral = {"gain and bias": ("gain", "bias"), "gain": ("gain",)}.get(norm["fold"], ())
        for part in neutral:
            if norm[part] and norm[part].partition("[")[0] not in changed:
                value = 1 - norm["gain_offset"] if part == "gain" else 0
                yield f"norms[{i}].fold", np.all(at(new, norm[part]) == value), f"left another {part} of {norm['name']}"
        taken = taken_from(norm, result["certificates"], old, new)
        for reader in norm["readers"]:
            for changes in taken:
                found = any(c["change"] in changes and c["norm"] == norm["name"] and c["map"]["tensor"] == reader for c in result["certificates"])
                yield f"norms[{i}].fold", found, f"has no certificate that {reader} took what {norm['name']} lost"
    for what, changes in ("streams", ("center_outputs", "rotate_outputs", "center")), ("rotations", ("rotate", "rotate_inputs", "rotate_outputs")):
        covered = {c["input"] for c in result["certificates"] if c["change"] in changes}
        for i, stream in enumerate(result[what]):
            missing = sorted(set(stream["writers"]) - covered) if stream.get("centered") or stream.get("rotated") else []
            if missing:
                yield f"{what}[{i}].writers", False, f"have no certificate of {missing[0]}"
    left = {norm[part].partition("[")[0] for norm in result["norms"] for part in ("gain", "bias")
            if norm[part] and norm["fold"] in ("gain and bias", "gain")}
    added = {result["untied"]["head"]} if result["untied"] else set()
    yield "certificates", set(new) == set(old) | added, "the rewritten checkpoint has other tensors"
    for name in added - changed:
        yield "untied", np.array_equal(old[result["untied"]["table"]], new[name]), f"{name} is not the table"
    for name in sorted(set(old) & set(new) - changed - left):
        same = old[name].shape == new[name].shape and np.array_equal(old[name], new[name])
        yield "certificates", same, f"have none of {name}, which was changed"


def check(result, *models):
    """The `Outcome` of a result, its text or its document, for the `Tensors` of its checkpoints and the text of --rotate.

    Errors   ValueError for what is no result of ranges, attribute or rewrite, or does not fit the checkpoints
    """
    result = exact.read(result if isinstance(result, str) else json.dumps(result))
    kind = {"normscope.ranges/1": ranges, "normscope.attribute/1": attribute, "normscope.rewrite/1": rewrite}.get(result["schema"])
    if not kind:
        raise exact.Malformed("is no result of ranges, attribute or rewrite")
    if kind is attribute and "proof" not in result:
        raise exact.Malformed("has no proof: normscope attribute writes one with --proofs")
    outcome = exact.Outcome()
    outcome.use("schema", "version", "path", "input", "inputs")
    # An overflow makes a statement fail; NumPy's warning adds nothing.
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            for path, holds, *reason in kind(result, *models):
                (outcome.part if path == "certificates" else outcome.state)(path, None if holds is None else bool(holds), *reason or ["does not hold to 1e-9 of the sizes of its terms"])
        except (ArithmeticError, IndexError, KeyError, TypeError) as error:
            raise exact.Malformed(f"does not fit its checkpoints: {type(error).__name__}: {error}") from None
    return outcome.finish(result)


def main(result, *checkpoints):
    try:
        with open(result, encoding="utf-8") as file:
            text = file.read()
        return exact.report(check(text, *map(Tensors, checkpoints[:2]), *checkpoints[2:]))
    except (OSError, UnicodeError, ValueError) as error:
        print(f"model_checker: {result}: {error}", file=sys.stderr)
        return 3


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]) if len(sys.argv) > 1 else __doc__)

"""The attention heads of `normscope heads`: bounds of the spread of scores, in decimals. Part of checker.py.

Numbers have 60 digits, so sums of products are off by less than 10^-50 of the sizes of their terms; 10^-30 of these is
added to every bound from above and taken from every bound from below. The enumerations of distances, of which there are
thousands, are in float64 with a bound of its rounding.
"""

import decimal
from decimal import Decimal

import numpy as np

if __package__:
    from . import _exact as exact
else:
    import _exact as exact

CONTEXT = decimal.Context(prec=60, Emin=-10**9, Emax=10**9)
OFF = Decimal("1e-30")
MOST_TURNS = 2.0**22       # angles of an enumeration of distances
MOST_OPERATIONS = 2.0**36  # of its products
MOST_SWEPT = 2**16         # distances of one query


def takes_too_long(distances, head):
    return distances * len(head.pairs) > MOST_TURNS or distances * float(head.dim)**3 > MOST_OPERATIONS


def decimals(values):
    """Doubles as decimals, exactly."""
    values = np.asarray(values, float)
    found = np.empty(values.shape, object)
    found.flat = [Decimal(x) for x in values.ravel().tolist()]
    return found


def zeros(*shape):
    return np.full(shape, Decimal(0), object)


def length(x):
    return sum((y * y for y in np.ravel(x)), Decimal(0)).sqrt()


def cholesky(matrix):
    """The lower factor; None where the matrix is not positive definite."""
    a, n = matrix.copy(), len(matrix)
    for k in range(n):
        if not a[k, k] > 0:
            return None
        a[k:, k] = a[k:, k] / a[k, k].sqrt()
        if k + 1 < n:
            a[k + 1:, k + 1:] -= np.outer(a[k + 1:, k], a[k + 1:, k])
        a[k, k + 1:] = Decimal(0)
    return a


def solve(factor, x):
    """(L Lᵀ)⁻¹ x."""
    x, n = x.copy(), len(factor)
    for k in range(n):
        x[k] = (x[k] - factor[k, :k] @ x[:k]) / factor[k, k] if k else x[k] / factor[k, k]
    for k in reversed(range(n)):
        x[k] = (x[k] - factor[k + 1:, k] @ x[k + 1:]) / factor[k, k] if k + 1 < n else x[k] / factor[k, k]
    return x


def inverse(matrix):
    """By elimination with the largest pivot; None where there is none."""
    n = len(matrix)
    a = np.hstack([matrix, zeros(n, n)])
    for k in range(n):
        a[k, n + k] = Decimal(1)
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(a[i, k]))
        if a[pivot, k] == 0:
            return None
        a[[k, pivot]] = a[[pivot, k]]
        a[k] = a[k] / a[k, k]
        for i in range(n):
            if i != k and a[i, k]:
                a[i] = a[i] - a[i, k] * a[k]
    return a[:, n:]


def pi():
    """By Machin's formula."""
    def arctan(m):
        term, total, k = Decimal(1) / m, Decimal(0), 1
        while abs(term) > Decimal("1e-75"):
            total, term, k = total + term / k, -term / (m * m), k + 2
        return total
    with decimal.localcontext(decimal.Context(prec=80)):
        return 4 * (4 * arctan(5) - arctan(239))


PI = pi()


def turn_of(theta, t):
    """The angle t θ between -π and π, from a product without rounding."""
    with decimal.localcontext(decimal.Context(prec=120)):
        angle = (Decimal(theta) * Decimal(t)).remainder_near(2 * PI) if abs(Decimal(theta) * Decimal(t)) < 10**30 else Decimal(0)
    return angle


def cos_sin(angle):
    """By their series, which is below 10^-60 after so many terms for angles up to π."""
    angle = CONTEXT.plus(angle)
    cosine, sine, term = Decimal(1), Decimal(0), Decimal(1)
    for k in range(1, 90):
        term = term * angle / k
        if k % 2:
            sine += term if k % 4 == 1 else -term
        else:
            cosine += term if k % 4 == 0 else -term
    return cosine, sine


class Side:
    """Queries C u + c or keys K v + d, |u|, |v| <= 1, of which points with |u| <= fill are reached."""

    def __init__(self, matrix, constant):
        self.map, self.constant, self.own = matrix, constant, None

    def measure(self):
        self.map_size, self.constant_size = length(self.map), length(self.constant)
        self.size = self.map_size + self.constant_size
        self.gram = self.map @ self.map.T

    def at(self, point):
        return self.map @ decimals(point) + self.constant


def behind(kind, gain, bias, weight, constant, projects):
    """W x + b of a norm's output x = r G Π u + β."""
    n = weight.shape[1]
    radius = Decimal(1) if kind == "spherical" else Decimal(n).sqrt()
    matrix = weight * decimals(np.ones(n) if gain is None else gain.ravel()) * radius
    if kind == "layer" and projects:
        matrix = matrix - matrix.sum(axis=1)[:, None] / n
    return matrix, constant + (weight @ decimals(bias.ravel()) if bias is not None else 0)


class Head:
    """Queries, keys and rotation of a head, from its arrays and the facts that they do not hold."""

    def __init__(self, arrays, facts, projects):
        get = arrays.get
        self.dim, kind = len(arrays["query"]), facts["norm.kind"]

        def side(part):
            weight, constant = decimals(arrays[part]), zeros(self.dim)
            if get(part + " bias") is not None:
                constant = decimals(get(part + " bias").ravel())
            if get("between") is not None:
                shift = get("between bias")
                constant = constant + (weight @ decimals(shift.ravel()) if shift is not None else 0)
                weight = weight @ decimals(get("between"))
            matrix, constant = behind(kind, get("norm gain"), get("norm bias"), weight, constant, projects)
            own = facts[f"{part}_norm"]
            if not own:
                return Side(matrix, constant)
            identity = zeros(self.dim, self.dim)
            np.fill_diagonal(identity, Decimal(1))
            found = Side(*behind(own["kind"], get(f"{part} norm gain"), get(f"{part} norm bias"), identity, zeros(self.dim), projects))
            centers = own["kind"] == "layer" and projects
            if centers:
                matrix, constant = matrix - matrix.sum(axis=0) / self.dim, constant - constant.sum() / self.dim
            found.own = matrix, constant, centers, Decimal(own["eps"]) * (1 if own["kind"] == "spherical" else self.dim)
            return found
        self.query, self.key = side("query"), side("key")
        rotation = facts["rotation"] or {"dims": 0, "interleaved": False, "score_factor": 1.0}
        dims, scale = rotation["dims"], Decimal(facts["scale"])
        factor = np.array([scale * Decimal(rotation["score_factor"]) if k < dims else scale for k in range(self.dim)], object)
        self.key.map, self.key.constant = factor[:, None] * self.key.map, factor * self.key.constant
        given = facts["frequencies"]
        self.known = bool(given)
        pairs = [(2 * j, 2 * j + 1) if rotation["interleaved"] else (j, j + dims // 2) for j in range(dims // 2)]
        self.pairs = [pair for pair, theta in zip(pairs, given) if theta] if given else pairs
        self.frequencies = [theta for theta in given if theta]
        turning = {k for pair in self.pairs for k in pair}
        self.stays = [k for k in range(self.dim) if k not in turning]
        self.moving = np.array([self.key.constant[k] if k in turning else Decimal(0) for k in range(self.dim)], object)
        self.query.measure()
        self.key.measure()
        self.scores = self.query.size * self.key.size  # at least every score

    def turned(self, x, t):
        """R_t x."""
        x = x.copy()
        for j, (a, b) in enumerate(self.pairs):
            c, s = cos_sin(turn_of(self.frequencies[j], -t))
            x[a], x[b] = x[a] * c - x[b] * s, x[a] * s + x[b] * c
        return x


class Cap:
    """Spreads behind a soft cap."""

    def __init__(self, cap, largest):
        self.cap, self.largest = Decimal(cap) if cap else None, largest

    def score(self, x):
        x = 2 * x / self.cap
        if abs(x) > 10**5:
            return self.cap.copy_sign(x)
        return self.cap * (x.exp() - 1) / (x.exp() + 1)

    def upper(self, spread):
        return spread if not self.cap or spread is None else 2 * self.score(spread / 2) + OFF * self.cap

    def lower(self, spread):
        if not self.cap or spread is None or spread <= 0:
            return spread
        return self.score(self.largest) - self.score(self.largest - spread) - OFF * self.cap


def longest(stack, side, constant, multiplier):
    """At least the largest |L C u + m| of the ball, by the multiplier of |u|² <= 1."""
    matrix = stack @ side.gram @ stack.T
    sizes = length(stack)**2 * side.map_size**2 + length(constant)**2
    if sizes == 0:
        return Decimal(0)
    lost = OFF * OFF * sizes
    n = len(matrix)
    trace = max(sum(matrix[i, i] for i in range(n)), Decimal(0))
    best = (trace + lost * n).sqrt() + length(constant)
    for power in (80, *range(56, 18, -1)):
        mu = Decimal(multiplier) * (1 + Decimal(2)**-power) + 4 * lost
        inner = -matrix
        for i in range(n):
            inner[i, i] += mu - 2 * lost
        factor = cholesky(inner) if mu > 0 else None
        if factor is None:
            continue
        for i in range(n):
            inner[i, i] += 2 * lost
        x = solve(factor, constant)
        x = x + solve(factor, constant - inner @ x)
        rest = constant - inner @ x
        # μI − H is at least `lost` of I: what x lacks is at most |rest|² over it.
        square = mu * (1 + constant @ x + rest @ x + rest @ rest / lost) + OFF * lost
        if not 0 < square < best * best:
            break  # a larger multiplier is no better
        best = square.sqrt()
    return best * (1 + OFF)


def is_in_ball(point, side, fill):
    return len(point) == side.map.shape[1] and length(decimals(point)) <= fill and fill > 0


class Bounds:
    """What the certificates of one head prove; None where they prove nothing."""

    def __init__(self, head, cap, fills, within=0):
        self.head, self.fills, self.within = head, fills, within
        self.cap = Cap(cap, head.scores)
        self.off = OFF * (head.scores + head.query.size * head.key.size)

    def spread_at(self, point):
        """|K| spreads of a query at one distance: exactly 2 |Kᵀ q|."""
        if not is_in_ball(point, self.head.query, self.fills[0]):
            return None
        return 2 * length(self.head.key.map.T @ self.head.query.at(point))

    def sharpest(self, multiplier):
        key = self.head.key
        ridge = OFF * key.map_size**2
        gram = key.gram.copy()
        for i in range(len(gram)):
            gram[i, i] += ridge
        factor = cholesky(gram)
        if factor is None:
            return Decimal(0) if key.map_size == 0 else None
        stack = 2 * factor.T
        return longest(stack, self.head.query, stack @ self.head.query.constant, multiplier) + self.off

    def is_of_context(self, a, b):
        return a != b and min(a, b) > 0 and (not self.within or max(a, b) < self.within)

    def unavoidable(self, contexts, turns):
        head, total = self.head, Decimal(0)
        pull = zeros(head.dim)
        for context in contexts:
            share = Decimal(context["share"])
            if share < 0 or turns and not (head.known and self.is_of_context(context["high_distance"], context["low_distance"])):
                return None
            total += share
            for which, way in (("high", 1), ("low", -1)):
                v = decimals(context[which])
                if len(v) != head.key.map.shape[1] or not length(v):
                    return None
                key = head.key.map @ (v * (self.fills[1] / length(v))) + head.moving
                pull = pull + way * share * (head.turned(key, context[which + "_distance"]) if turns else key)
        if total <= 0:
            return None
        c, matrix = head.query.constant, head.query.map
        return (c @ pull - length(matrix.T @ pull)) / total - self.off

    def context(self, sharp):
        """The scores of the two keys that attain the sharpest spread."""
        keys, head = sharp.get("keys"), self.head
        if not keys or not is_in_ball(sharp["query"], head.query, self.fills[0]) or any(
                not is_in_ball(keys[which], head.key, self.fills[1]) for which in ("high", "low")):
            return None
        turns = bool(head.pairs)
        if turns and not (head.known and "high_distance" in keys and "low_distance" in keys and self.is_of_context(
                keys["high_distance"], keys["low_distance"])):
            return None
        query = head.query.at(sharp["query"])
        found = []
        for which in ("high", "low"):
            key = head.key.at(keys[which])
            found.append(query @ (head.turned(key, keys[which + "_distance"]) if turns else key))
        return found[0] - self.off, found[1] + self.off

    def by_weights(self, p, query=None):
        """2 |Q q| |Q' k|, if the certificate is one: its pairs turn by no more than it says."""
        head, n = self.head, p["distances"]
        still, pairs = p["still"], head.pairs
        if (len(p["weights"]) != len(pairs) or len(p["turns"]) != len(pairs) or len(set(still)) != len(still) or
                any(k >= head.dim for k in still) or not set(head.stays) <= set(still) or len(p["factor"]) != len(still)**2 or
                not all(w > 0 for w in p["weights"])):
            return None
        for j, (a, b) in enumerate(pairs):
            slow = a in still
            if slow != (b in still) or not slow and not p["turns"][j] >= 1:
                return None
            if slow:
                if not n or not head.known:
                    return None
                turn = abs(Decimal(head.frequencies[j])) * (n - 1)
                if turn > PI or not Decimal(p["turns"][j]) >= 2 * cos_sin(turn / 4)[1]:
                    return None
        slow = [j for j, (a, _) in enumerate(pairs) if a in still]
        factor = decimals(p["factor"]).reshape(len(still), len(still))
        back = inverse(factor)
        if back is None:
            return None
        across = back.T
        rows = len(still) + 2 * len(pairs)
        on_query, on_key, constant = zeros(rows, head.dim), zeros(rows, head.dim), zeros(rows)
        for i in range(len(still)):
            for k, at in enumerate(still):
                on_query[i, at], on_key[i, at] = factor[i, k], across[i, k]
        for i in range(len(still)):
            for j in slow:
                # A row of F⁻ᵀ R_mid.
                a, b = pairs[j]
                c, s = cos_sin(turn_of(head.frequencies[j], -(n - 1) * Decimal("0.5")))
                x, y = on_key[i, a], on_key[i, b]
                on_key[i, a], on_key[i, b] = c * x + s * y, c * y - s * x
        for j, pair in enumerate(pairs):
            w, e = Decimal(p["weights"][j]), Decimal(p["turns"][j])
            for side, k in enumerate(pair):
                row = len(still) + 2 * j + side
                on_query[row, k], on_key[row, k] = (e * w).sqrt(), (e / w).sqrt()
                constant[row] = on_key[row, k] * head.moving[k]
        of_query = length(on_query @ query) * (1 + OFF) if query is not None else longest(
            on_query, head.query, on_query @ head.query.constant, p["query_multiplier"])
        of_key = longest(on_key, head.key, constant, p["key_multiplier"])
        apart = factor.T @ across
        for i in range(len(still)):
            apart[i, i] -= 1
        return 2 * of_query * of_key * (1 + OFF) + 4 * length(apart) * head.scores + self.off

    def by_distance(self, p):
        """2 (reach + E), if the ellipsoids say so at every distance: in float64."""
        head, dim = self.head, self.head.dim
        reach, kappa, rho = p["reach"], p["query_square"], p["key_square"]
        if not head.known or len(p["centre"]) != dim or min(reach, kappa, rho) < 0 or p["distances"] < 1:
            return None
        if head.query.size == 0 or head.key.map_size + length(head.moving) == 0:
            return Decimal(0)
        if takes_too_long(p["distances"], head):
            return None
        floats = lambda x: np.array(x, float)
        moving, constant, centre = floats(head.moving), head.query.constant, np.array(p["centre"])
        shift = float(length(head.moving)) + float(np.linalg.norm(centre)) * (1 + 1e-12)
        left_out = Decimal(0)
        if kappa == 0:
            left_out += head.query.constant_size * (head.key.map_size + Decimal(shift))
        if rho == 0:
            left_out += head.query.map_size * Decimal(shift)
        shape = head.query.gram + (np.outer(constant, constant) / Decimal(kappa) if kappa else 0)
        shape = shape * (1 + Decimal(kappa))
        trace = float(sum(shape[i, i] for i in range(dim)))
        thicker = 1e-14 * trace + 1e-300
        for i in range(dim):
            shape[i, i] += Decimal(thicker)
        factor = cholesky(shape)
        if factor is None:
            return None
        lower, gram = floats(factor), floats(head.key.gram) * (1 + rho)
        key_trace = (1 + rho) * float(head.key.map_size)**2 + ((1 + rho) / rho * shift**2 if rho else 0)
        u = exact.UNIT
        # Products of dim² terms, turned twice by angles within 4 u; the factorization.
        lost = ((3 * dim + 16) * 1.01 * u + 32 * u) * (trace + thicker * dim) * key_trace + (dim + 2) * dim * 1.01 * u * reach**2
        first, second = [pair[0] for pair in head.pairs], [pair[1] for pair in head.pairs]
        for begin in range(0, p["distances"], 256):
            times = range(begin, min(begin + 256, p["distances"]))
            rotation = np.broadcast_to(np.eye(dim), (len(times), dim, dim)).copy()
            for j, theta in enumerate(head.frequencies):
                angles = np.array([float(turn_of(theta, -t)) for t in times])
                a, b, c, s = first[j], second[j], np.cos(angles), np.sin(angles)
                rotation[:, a, a], rotation[:, a, b], rotation[:, b, a], rotation[:, b, b] = c, -s, s, c
            turned = rotation @ gram @ rotation.transpose(0, 2, 1)
            if rho:
                e = rotation @ moving - centre
                turned += (1 + rho) / rho * e[:, :, None] * e[:, None, :]
            inner = (reach**2 - lost) * np.eye(dim) - lower.T @ turned @ lower
            try:
                np.linalg.cholesky((inner + inner.transpose(0, 2, 1)) / 2)
            except np.linalg.LinAlgError:
                return None
        return 2 * (Decimal(reach) + left_out) * (1 + OFF)

    def widest(self, query):
        """Of one query over all distances of the context, in float64."""
        head = self.head
        if not head.known or not 0 < self.within <= MOST_SWEPT:
            return None
        q, matrix, moving = (np.array(x, float) for x in (query, head.key.map, head.moving))
        size = float(length(query))
        lost = (2 * (head.dim + 8) * 1.01 + 2 * 16 + 2 * matrix.shape[1]) * exact.UNIT * size * float(head.key.map_size + length(head.moving))
        high, low = -np.inf, np.inf
        first, second = [pair[0] for pair in head.pairs], [pair[1] for pair in head.pairs]
        for begin in range(0, self.within, 256):
            times = range(begin, min(begin + 256, self.within))
            angles = np.array([[float(turn_of(theta, t)) for theta in head.frequencies] for t in times])
            back = np.broadcast_to(q, (len(times), head.dim)).copy()
            c, s = np.cos(angles), np.sin(angles)
            back[:, first], back[:, second] = q[first] * c - q[second] * s, q[first] * s + q[second] * c
            half, middle = np.linalg.norm(back @ matrix, axis=1), back @ moving
            high, low = max(high, np.max(middle + half)), min(low, np.min(middle - half))
        return Decimal(float(high - low) + 2 * lost)


def fill_of(outcome, side, stated, radius, path):
    """The part of the ball that is reached, as its radius proves."""
    if side.own is None:
        outcome.state(path, stated == 1, "is not 1, without a norm")
        return Decimal(1)
    if stated == 0 or radius is None:
        outcome.state(path, stated == 0, "has no radius")
        return Decimal(0)
    matrix, constant, centers, eps = side.own
    sigma, dim = Decimal(radius), len(matrix)
    gram = matrix @ matrix.T
    square = sum(gram[i, i] for i in range(dim))
    needed = sigma + length(constant)
    lost = OFF * (square + needed**2)
    for i in range(dim):
        if centers:  # the direction that is projected out does not count
            gram[i] = gram[i] + 2 * square / dim
        gram[i, i] -= needed**2 + lost
    holds = sigma > 0 and cholesky(gram) is not None and Decimal(stated) <= sigma / (sigma**2 + eps).sqrt()
    outcome.state(path, holds, "is more than its radius proves")
    return Decimal(stated) if holds else Decimal(0)


def is_above(stated, found):
    return found is not None and Decimal(stated) >= found


def is_below(stated, found):
    return stated <= 0 or found is not None and Decimal(stated) <= found


def unavoidable(outcome, at, contexts, bounds, turns):
    found = bounds.unavoidable(contexts, turns)
    if contexts and found is None:
        outcome.state(f"{at}uniform_bounds[0]", False, "has unavoidable contexts that are none: shares below 0, other widths or distances")
    return bounds.cap.lower(found)


def at_zero(outcome, at, stated, proof, bounds, context=None):
    """Two keys at one distance, or of a head without rotation. Gives the upper ends that are proved."""
    cap = bounds.cap
    sharpest = cap.upper(bounds.sharpest(proof["sharp"]["multiplier"]))
    outcome.state(f"{at}sharp_bounds[1]", is_above(stated["sharp_bounds"][1], sharpest), "is less than its multiplier proves")
    spread = bounds.spread_at(proof["sharp"]["query"])
    attained = cap.lower(spread * bounds.fills[1] * (1 - OFF) - bounds.off) if spread is not None else None
    if context and cap.cap:
        of_context = cap.score(context[0]) - cap.score(context[1]) - OFF * cap.cap
        attained = of_context if attained is None else max(attained, of_context)
    outcome.state(f"{at}sharp_bounds[0]", is_below(stated["sharp_bounds"][0], attained), "is more than its query attains")
    spread = bounds.spread_at(proof["uniform"]["query"])
    most = [x for x in (sharpest, cap.upper(spread * (1 + OFF) + bounds.off) if spread is not None else None) if x is not None]
    outcome.state(f"{at}uniform_bounds[1]", is_above(stated["uniform_bounds"][1], min(most, default=None)), "is less than its query has")
    least = unavoidable(outcome, at, proof["uniform"]["unavoidable"], bounds, False)
    outcome.state(f"{at}uniform_bounds[0]", is_below(stated["uniform_bounds"][0], least), "is more than its contexts prove")


def over_distances(outcome, at, entry, bounds):
    over, proof = entry["distances"], entry["certificates"]
    sharp, uniform, cap = proof["sharp"], proof["uniform"], bounds.cap
    within = bounds.within
    path = f"{at}certificates.sharp"
    proved, everywhere = [], None

    def spread_of(certificate, name, query=None):
        found = bounds.by_weights(certificate, query)
        holds = is_above(certificate["spread"], found)
        outcome.state(f"{name}.spread", holds, "is less than its weights prove")
        return Decimal(certificate["spread"]) if holds else None
    for name in ("everywhere", "in_context"):
        if sharp.get(name):
            found, reach = spread_of(sharp[name], f"{path}.{name}"), sharp[name]["distances"]
            everywhere = found if name == "everywhere" and reach is None else everywhere
            if found is not None and (reach is None or within and reach >= within):
                proved.append(found)
    p = sharp.get("by_distance")
    if p:
        found = bounds.by_distance(p)
        holds = found is not None and Decimal(p["spread"]) >= found
        too_many = takes_too_long(p["distances"], bounds.head)
        outcome.state(f"{path}.by_distance.spread", None if too_many else holds,
                      "takes too long to check" if too_many else "is less than its ellipsoids prove")
        if holds and within and p["distances"] >= within:
            proved.append(Decimal(p["spread"]))
    outcome.equal(f"{at}distances.enumerated", over["enumerated"], bool(p))
    most = cap.upper(min(proved, default=None))
    outcome.state(f"{at}distances.sharp_at_most_anywhere", is_above(over["sharp_at_most_anywhere"], cap.upper(everywhere)),
                  "is less than its weights prove")
    outcome.state(f"{at}sharp_bounds[1]", is_above(entry["sharp_bounds"][1], most), "is less than its certificates prove")
    context = bounds.context(sharp)
    attained = None
    if context:
        attained = cap.lower(context[0] - context[1])
        if cap.cap:
            attained = max(attained, cap.score(context[0]) - cap.score(context[1]) - OFF * cap.cap)
    outcome.state(f"{at}sharp_bounds[0]", is_below(entry["sharp_bounds"][0], attained), "is more than its keys attain")
    anywhere = [cap.upper(everywhere)]
    certificate = uniform.get("anywhere")
    if certificate and certificate["proof"] and is_in_ball(certificate["query"], bounds.head.query, bounds.fills[0]):
        query = bounds.head.query.at(certificate["query"])
        found = spread_of(certificate["proof"], f"{at}certificates.uniform.anywhere.proof", query)
        if certificate["proof"]["distances"] is None:
            anywhere.append(cap.upper(found))
    anywhere = min((x for x in anywhere if x is not None), default=None)
    outcome.state(f"{at}distances.uniform_at_most_anywhere", is_above(over["uniform_at_most_anywhere"], anywhere), "is less than its weights prove")
    widest = [x for x in (anywhere, most) if x is not None]
    upper = entry["uniform_bounds"][1]
    if not is_above(upper, min(widest, default=None)) and is_in_ball(uniform["query"], bounds.head.query, bounds.fills[0]):
        found = cap.upper(bounds.widest(bounds.head.query.at(uniform["query"])))
        widest += [found] if found is not None else []
    outcome.state(f"{at}uniform_bounds[1]", is_above(upper, min(widest, default=None)), "is less than its query's contexts have")
    least = unavoidable(outcome, at, uniform["unavoidable"], bounds, True)
    outcome.state(f"{at}uniform_bounds[0]", is_below(entry["uniform_bounds"][0], least), "is more than its contexts prove")


# What the arrays of a head do not hold.
FACTS = ("stack", "layer", "head", "pass", "key_value_head", "scale", "norm", "between", "query", "key", "value",
         "rotation", "soft_cap", "window")
OF_CERTIFICATES = {"norm.kind": ("norm", "kind"), "query_norm": ("query_norm",), "key_norm": ("key_norm",), "frequencies": ("frequencies",)}


def facts_of(entry, outcome, facts, at, index):
    """The facts of a head: as the caller says, or else as the result states, which is left unproved."""
    def given(name, value):
        for path in (f"{at}{name}", f"heads.{name}"):
            if path in facts:
                outcome.equal(f"{at}{name}", value, facts[path])
                return facts[path]
        outcome.state(f"{at}{name}", None, f"is not in the arrays; give it as heads[{index}].{name}=VALUE")
        return value
    found = {name: given(name, entry.get(name)) for name in FACTS}
    certificates = entry.get("certificates")
    for name, steps in OF_CERTIFICATES.items() if certificates else ():
        value = certificates
        for step in steps:
            value = value.get(step) if value else None
        found[name] = given("certificates." + name, value)
    for name in ("query", "key") if "own_norms" in entry else ():
        given(f"own_norms.{name}", entry["own_norms"][name])
    found["frequencies"] = found.get("frequencies") or []
    return found


def heads(result, outcome, facts, **arrays):
    of_head = {}
    for role, values in arrays.items():
        index, _, part = role.removeprefix("heads[").partition("] ")
        known = role.startswith("heads[") and index.isdigit() and int(index) < len(result["heads"])
        if not known:
            outcome.part("heads", False, f"has none that the input {role!r} is of")
            continue
        of_head.setdefault(int(index), {})[part] = values
    for name in ("path", "architecture"):
        if name in facts:
            outcome.equal(name, result[name], facts[name])
    places = [tuple(str(entry[name]) for name in ("stack", "layer", "head", "pass", "norm", "query", "key")) for entry in result["heads"]]
    outcome.part("heads", len(set(places)) == len(places) and (bool(places) or None), "has one twice" if places else "that there are none is not in the arrays")
    for i, entry in enumerate(result["heads"]):
        with decimal.localcontext(CONTEXT):
            one_head(entry, outcome, facts, of_head.get(i, {}), i)


def one_head(entry, outcome, facts, arrays, i):
    at = f"heads[{i}]."
    found = facts_of(entry, outcome, facts, at, i)
    if "refused" in entry:
        outcome.state(f"{at}refused", None, "why spreads are not known is not in the arrays")
        for name in ("uniform_bounds", "sharp_bounds", "distances", "without_projection", "uniform_spread", "sharp_spread", "certificates"):
            if entry.get(name) is not None:
                outcome.state(at + name, False, "is stated of a head that was refused")
        return
    if "certificates" not in entry:
        reason = "the certificates are not in the result; make it with certificates"
        for name in ("uniform_bounds", "sharp_bounds", "distances", "without_projection", "uniform_spread", "sharp_spread"):
            if entry.get(name) is not None:
                outcome.state(at + name, False if arrays else None, reason)
        return
    if not {"query", "key"} <= set(arrays) or "sharp_bounds" not in entry or "uniform_bounds" not in entry:
        return outcome.state(f"{at}sharp_bounds", False, "has no arrays of the head's query and key, or no bounds")
    outcome.equal(f"{at}head_dim", entry["head_dim"], len(arrays["query"]))
    outcome.use(f"{at}certificates")
    shapes = {part: arrays[part].shape for part in ("query", "key")}
    rotation = found["rotation"]
    if len(shapes["query"]) != 2 or shapes["query"] != shapes["key"] or rotation and (rotation["dims"] > len(arrays["query"]) or (
            found["frequencies"] and len(found["frequencies"]) != rotation["dims"] // 2)):
        return outcome.state(f"{at}rotation", False, "does not fit the head's arrays")
    outcome.equal(f"{at}rotary", entry["rotary"], bool(rotation))
    if any(part.startswith(side) != bool(found[f"{side.replace(' ', '_')}"]) for side in ("query norm", "key norm") for part in arrays if part.startswith(side)):
        return outcome.state(f"{at}certificates", False, "lack a norm of the head's own")
    head = Head(arrays, found, True)
    proof, turning = entry["certificates"], "distances" in entry
    if turning != bool(head.pairs):
        return outcome.state(f"{at}sharp_bounds", False, "distances are there without a rotation, or missing with one")

    def fills(scores, stated, radii, path):
        if stated is None:
            if scores.query.own or scores.key.own:
                outcome.state(f"{at}own_norms", False, "has norms of its own, of which the parts that are reached are missing")
                return Decimal(0), Decimal(0)
            return Decimal(1), Decimal(1)
        return tuple(fill_of(outcome, side, stated[f"{name}_fill"], radii.get(f"{name}_radius"), f"{path}.{name}_fill")
                     for name, side in (("queries", scores.query), ("keys", scores.key)))
    own = entry.get("own_norms")
    if own:
        for name in ("query", "key"):
            outcome.state(f"{at}own_norms.{name}", bool(own[name]) == bool(found[f"{name}_norm"]), "is not as the certificates say")
    of_fills = fills(head, own, proof, f"{at}own_norms")
    cap = found["soft_cap"]
    if cap is not None and not cap > 0:
        return outcome.state(f"{at}soft_cap", False, "is not positive")
    within = (entry["distances"]["within"] or 0) if turning else 0
    bounds = Bounds(head, cap, of_fills, within)
    outer, outer_at, certificate = entry, at, proof
    if turning:
        outcome.use(f"{at}distances.within")
        over_distances(outcome, at, entry, bounds)
        outer, outer_at, certificate = entry["distances"]["at_distance_zero"], f"{at}distances.at_distance_zero.", proof.get("at_distance_zero")
        if certificate is None:
            return outcome.state(f"{at}distances.at_distance_zero", False, "has no certificate")
    at_zero(outcome, outer_at, outer, certificate, bounds, bounds.context(proof["sharp"]) if not turning else None)
    if "without_projection" in outer:
        inner, path = proof.get("without_projection"), f"{outer_at}without_projection."
        if inner is None:
            return outcome.state(path[:-1], False, "has no certificate")
        without = Head(arrays, found, False)
        of_inner = fills(without, inner if "queries_fill" in inner else None, inner, f"{at}certificates.without_projection")
        at_zero(outcome, path, outer["without_projection"], inner, Bounds(without, cap, of_inner))
    spreads = [entry["uniform_spread"], entry["sharp_spread"]]
    (uniform_low, uniform), (sharp, sharp_high) = entry["uniform_bounds"], entry["sharp_bounds"]
    narrow = max(uniform - uniform_low, sharp_high - sharp) <= 1e-3 * sharp_high * (1 + 1e-9) or not (rotation or cap or own)
    for name, stated, expected in (("uniform_spread", spreads[0], uniform), ("sharp_spread", spreads[1], sharp)):
        outcome.state(at + name, spreads == [None, None] or narrow and stated == expected, "is not the end of its bounds, or the ends are far apart")

"""The tokens of `normscope reach`: leads without rounding, probabilities by decimals. Part of checker.py."""

import decimal
import math
from fractions import Fraction

import numpy as np

if __package__:
    from . import _exact as exact
else:
    import _exact as exact

# Decimals of 60 digits: exp, ln and sqrt are rounded correctly, so a sum of fewer than 10^9 terms has an error below
# 10^-45 of the sizes of its terms, which is added.
CONTEXT = decimal.Context(prec=60, Emin=-10**9, Emax=10**9)
OFF = decimal.Decimal("1e-40")
# Entropies have a logarithm for every pair of tokens: 34 digits, and 10^-25.
LOGARITHMS = decimal.Context(prec=34, Emin=-10**9, Emax=10**9)
OFF_LOGARITHM = decimal.Decimal("1e-25")


def to_decimal(x):
    x = Fraction(x)
    return CONTEXT.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator))


def fact(result, outcome, facts, path):
    """What the arrays do not hold: as the caller says, or else as the result states, which is left unproved."""
    value = result
    for name in path.split("."):
        value = value[name]
    if path not in facts:
        outcome.state(path, None, f"is not in the arrays; give it as {path}=VALUE")
        return value
    outcome.equal(path, value, facts[path])
    return facts[path]


class Logits:
    """Logits A u + a of a vocabulary behind a norm: A = f r Π(g ⊙ W), a = f (W β + c)."""

    def __init__(self, kind, sphere, factor, w, c, g, beta):
        self.tokens, self.width = w.shape
        self.centers, self.sphere, self.factor = kind == "layer", sphere, Fraction(factor)
        self.square = 1 if kind == "spherical" else self.width  # r²
        self.floats = w, c, g, beta
        self.w, e = exact.integers(w)
        (self.g, of_gain), (beta_z, of_beta), (c_z, of_c) = (exact.integers(x) for x in (g, beta, c))
        self.unit_w, self.unit_g = exact.power(e), exact.power(of_gain)
        # Offsets W β + c of all tokens, as integers.
        least = min(e + of_beta, of_c)
        self.offsets = (self.w @ beta_z) * 2**(e + of_beta - least) + c_z * 2**(of_c - least)
        self.unit_offset = exact.power(least)
        self.safe = all(exact.is_between(x) for x in (w, c, g, beta))

    def at(self, u, onto_sphere):
        """Π of a point times the gain: integers, their unit, and r² over the square of its length where only its
        direction counts; the same in float64; None for the point 0 of a sphere."""
        z, exponent = u if isinstance(u, tuple) else exact.integers(u)
        unit = exact.power(exponent)
        if self.centers:
            z, unit = self.width * z - sum(z), unit / self.width
        square = Fraction(self.square)
        if onto_sphere:
            length = sum(x * x for x in z) * unit**2
            if not length:
                return None
            square /= length
        if isinstance(u, tuple):  # integers of any size, in units of the largest
            shift = max(max(map(int.bit_length, map(abs, z))) - 60, 0)
            floats = np.array([float(x >> shift) for x in z]) * float(unit * 2**shift)
        else:
            floats = np.array(u, float)
        mean = math.fsum(floats) / self.width if self.centers and not isinstance(u, tuple) else 0.0
        return z * self.g, unit * self.unit_g, square, (floats - mean, np.abs(floats) + abs(mean))

    def own_direction(self, i):
        z = (self.tokens * self.w[i] - self.w.sum(axis=0)) * self.g
        return z, 0

    def differences(self, i, others, at):
        """(x, y) of x √square + y, the differences of token i's logit to others' without the factor, as fractions."""
        z, unit = at[0], at[1] * self.unit_w
        for j in others:
            yield Fraction(int((self.w[i] - self.w[j]) @ z)) * unit, int(self.offsets[i] - self.offsets[j]) * self.unit_offset

    def approximate(self, at):
        """Logits in float64, and a bound of their errors; None where they may overflow or underflow."""
        w, c, g, beta = self.floats
        _, _, square, (point, size) = at
        if not self.safe or not exact.is_between(size) or not 1e-100 < float(square) < 1e100:
            return None
        # Entries of the point are off by 4 u of their size, the root by 2 u; products and sums add (n + 6) u of all sizes.
        root, factor = float(square)**0.5, float(self.factor)
        sizes = np.abs(w) @ (size * np.abs(g) * root + np.abs(beta)) + np.abs(c)
        return factor * (w @ (point * g * root + beta) + c), 2 * (self.width + 16) * exact.UNIT * abs(factor) * sizes

    def leads_by(self, i, at, lead, strictly=False):
        """Whether token i's logit leads all others by `lead`, exactly; pairs that float64 proves are left out."""
        others = np.arange(self.tokens) != i
        found = self.approximate(at)
        if found is not None:
            logits, off = found
            others &= ~(logits[i] - logits - off - off[i] > float(lead) + abs(float(lead)) * 1e-15)
        lead = Fraction(lead) / self.factor
        least = 1 if strictly else 0
        return all(exact.sign(y - lead, x, at[2]) >= least for x, y in self.differences(i, np.flatnonzero(others), at))

    def mean_difference(self, i, index, weights):
        """|Σ w_j (A_i − A_j)|² and Σ w_j (a_i − a_j), over Σ w_j, without the factor."""
        total = int(sum(weights))
        z = (total * self.w[i] - np.array(weights, object) @ self.w[index]) * self.g
        unit = self.unit_w * self.unit_g / total
        if self.centers:
            z, unit = self.width * z - sum(z), unit / self.width
        offset = (total * self.offsets[i] - sum(w * self.offsets[j] for w, j in zip(weights, index)))
        return self.square * sum(x * x for x in z) * unit**2, Fraction(int(offset), total) * self.unit_offset

    def logit_decimals(self, i, at):
        """l_j − l_i of all tokens."""
        root = CONTEXT.sqrt(to_decimal(at[2]))
        for x, y in self.differences(i, range(self.tokens), at):
            yield CONTEXT.multiply(to_decimal(-self.factor), CONTEXT.add(CONTEXT.multiply(to_decimal(x), root), to_decimal(y)))

    def has_probability(self, i, at, least, cap):
        """Whether token i has at least that probability at a point."""
        if at is None:
            return False
        found = self.approximate(at)
        if found is not None and not cap:
            logits, off = found
            terms = np.exp(np.minimum(logits - logits[i] + off + off[i], 700.0))
            # exp is off by less than 16 u, and a sum of n terms by n u.
            if (1 - (self.tokens + 64) * 4 * exact.UNIT) / terms.sum() >= least and (logits - logits[i]).max() < 690:
                return True
        if cap:
            return self.has_capped_probability(i, at, least, cap)
        with decimal.localcontext(CONTEXT):
            total = sum((difference * (1 + OFF) if difference > 0 else difference * (1 - OFF)).exp()
                        for difference in self.logit_decimals(i, at))
            return (1 - OFF) / total >= to_decimal(least)

    def has_capped_probability(self, i, at, least, cap):
        with decimal.localcontext(CONTEXT):
            root, c = to_decimal(at[2]).sqrt(), to_decimal(cap)
            unit = at[1] * self.unit_w
            capped = []
            for j in range(self.tokens):
                logit = to_decimal(self.factor) * (to_decimal(Fraction(int(self.w[j] @ at[0])) * unit) * root + to_decimal(
                    int(self.offsets[j]) * self.unit_offset))
                twice = max(min((2 * logit / c), decimal.Decimal(10**6)), decimal.Decimal(-10**6)).exp()
                capped.append(c * (twice - 1) / (twice + 1))
            total = sum((logit - capped[i] + OFF * c).exp() for logit in capped)
            return (1 - OFF) / total >= to_decimal(least)

    def probability_is_at_most(self, i, index, weights, most):
        """exp(|Σ p_j (A_i − A_j)| + Σ p_j (a_i − a_j) − H(p)) <= most, p = weights over their sum."""
        if most >= 1:
            return True
        if most <= 0:
            return False
        z, _ = exact.integers(weights)
        square, offset = self.mean_difference(i, index, list(z))
        with decimal.localcontext(CONTEXT):
            length = to_decimal(square).sqrt()
            total = int(sum(z))
            entropy = -sum(LOGARITHMS.multiply(p, LOGARITHMS.ln(p)) for p in (LOGARITHMS.divide(int(w), total) for w in z if w))
            bound = to_decimal(abs(self.factor)) * length + to_decimal(self.factor * offset) - entropy
            sizes = length * to_decimal(abs(self.factor)) + abs(to_decimal(self.factor * offset)) + entropy + 1
            return (bound + OFF_LOGARITHM * sizes).exp() <= to_decimal(most) * (1 - OFF)

    def tangent_weights(self, i, at):
        """Probabilities at a point, in float64: any will do."""
        found = self.approximate(at)
        if found is None:
            return None
        logits = found[0]
        weights = np.exp(logits - logits.max())
        index = np.flatnonzero(weights > 0)
        return index, weights[index]


class Sizes:
    """Lengths of rows that ties are measured by, in numbers of 64 bits with a wide exponent where the machine has them."""

    def __init__(self, logits):
        w, c, g, beta = (np.asarray(x, np.longdouble) for x in logits.floats)
        f = abs(np.longdouble(float(logits.factor)))
        r = np.longdouble(logits.square)**0.5

        def of(rows, offsets):
            terms = r * np.linalg.norm(rows * g, axis=1) + np.abs(rows * beta).sum(axis=1) + np.abs(offsets)
            turned = rows * g
            if logits.centers:
                turned = turned - turned.mean(axis=1, keepdims=True)
            return f * r * np.linalg.norm(turned, axis=1), f * np.abs(rows @ beta + offsets), f * terms
        self.length, self.height, terms = of(w - w.mean(axis=0), c - c.mean())
        _, _, alone = of(w, c)
        self.scale = (self.length + self.height).max()
        self.terms = terms.max() + 16 * exact.UNIT * alone.max()
        self.left = 16 * exact.UNIT * alone.max()
        self.own_size = np.minimum(self.length + self.height, alone)
        self.own_terms = np.minimum(terms, alone)


def reach(result, outcome, facts, **arrays):
    w = arrays["unembedding"]
    tokens, width = w.shape
    outcome.equal("tokens", result["tokens"], tokens)
    outcome.equal("width", result["width"], width)
    outcome.equal("unembedding_bias", result["unembedding_bias"], "unembedding bias" in arrays)
    kind, eps, factor, cap = (fact(result, outcome, facts, path) for path in ("norm.kind", "norm.eps", "logit_scale", "soft_cap"))
    outcome.equal("sphere", result["sphere"], eps == 0)
    given = [entry["role"] for entry in result["inputs"]["arguments"]]
    if "model" in given:
        for path in ("source", "norm.name", "tied"):
            fact(result, outcome, facts, path)
    else:
        names = [entry["name"] for entry in result["inputs"]["arguments"] if entry["role"] == "unembedding"]
        outcome.state("source", result["source"] in names, "is not the unembedding")
        outcome.equal("norm.name", result["norm"]["name"], None)
        outcome.equal("tied", result["tied"], False)
    lists = [result["proofs"], *result["lead"].values(), result["max_probability"]["lower"], result["max_probability"]["upper"]]
    if any(len(entries) != tokens for entries in lists):
        return outcome.state("proofs", False, f"or bounds are not of {tokens} tokens")
    if not factor > 0:
        return outcome.state("logit_scale", False, "is not positive")
    shaped = {"unembedding bias": np.zeros(tokens), "gain": np.ones(width), "norm bias": np.zeros(width)}
    for role, default in shaped.items():
        shaped[role] = arrays.get(role, default).ravel()
        if shaped[role].size != default.size:
            return outcome.state("inputs.arrays", False, f"{role} has another length")
    logits = Logits(kind, eps == 0, factor, w, shaped["unembedding bias"], shaped["gain"], shaped["norm bias"])
    tie = ties(result, outcome, logits)
    lost = listed(result, outcome, logits)
    for i in range(tokens):
        token(result, outcome, logits, tie, lost.get(i), i, cap)
    counts(result, outcome, tokens)


def ties(result, outcome, logits):
    """Gives a function of a token and its weights: the largest lead that counts as none."""
    with np.errstate(all="ignore"):
        sizes = Sizes(logits)
        scale, tolerance, stated = np.longdouble(result["scale"]), result["tolerance"], result["without_ball"]
        outcome.use("tolerance")
        outcome.state("scale", abs(scale - sizes.scale) <= 1e-9 * sizes.scale + sizes.left + 1e-12 * sizes.terms, "is not the largest |A_j| + |a_j|")
        most = max(tolerance * scale, 2.0**-44 * sizes.terms) * (1 + 1e-9)
        outcome.state("tie", result["tie"] <= most, "is more than the tolerance allows")
        longest, highest, stretch = sizes.length.max(), sizes.height.max(), np.longdouble(stated["stretch"])
        rounded = 1e-12 * sizes.terms + sizes.left
        flat = longest <= rounded or highest <= rounded
        outcome.state("without_ball.stretch", flat or longest / 4 <= stretch * highest <= 4 * longest,
                      "does not scale offsets to the size of rows")
        larger = max(1, stretch)
        most = max(tolerance * (longest + stretch * highest + sizes.left * larger), 2.0**-44 * sizes.terms * larger) * (1 + 1e-9)
        outcome.state("without_ball.tie", stated["tie"] <= most, "is more than the tolerance allows")

    def own(i, index, weights):
        with np.errstate(all="ignore"):
            p = np.array([float(Fraction(int(w), int(sum(weights)))) for w in weights])
            tau = max(tolerance * (p @ sizes.own_size[index]), 2.0**-45 * (sizes.own_terms[i] + p @ sizes.own_terms[index]))
            return min(Fraction(result["tie"]), Fraction(float(tau)) * (1 + Fraction(1, 10**9)))
    return own


def listed(result, outcome, logits):
    """The entries of `unreachable` and `undecided`, by token."""
    lost = {}
    for name, answer in (("unreachable", "no"), ("undecided", "undecided")):
        for index, entry in enumerate(result[name]):
            at, i = f"{name}[{index}]", entry["token"]
            fits = i < logits.tokens and i not in lost and result["proofs"][i]["answer"] == answer
            outcome.state(f"{at}.token", fits, "is not a token with that answer, or is there twice")
            if not fits:
                continue
            lost[i] = entry, at
            outcome.state(f"{at}.lead_at_most", entry["lead_at_most"] == result["lead"]["upper"][i], "is not the token's")
            without_ball(result, outcome, logits, entry, at)
    missing = [i for i, proof in enumerate(result["proofs"]) if proof["answer"] in ("no", "undecided") and i not in lost]
    outcome.part("unreachable", not missing, f"and undecided lack {missing[:5]}")
    return lost


def without_ball(result, outcome, logits, entry, at):
    answer, i, witness = entry["without_ball"], entry["token"], entry.get("without_ball_witness")
    if witness is not None and answer != "yes":
        outcome.state(f"{at}.without_ball_witness", False, "is of another answer")
    if answer == "yes":
        if witness == "elsewhere":
            return outcome.state(f"{at}.without_ball", None, "its witness is elsewhere, and not read")
        outcome.use(f"{at}.without_ball_witness")
        holds = isinstance(witness, dict) and len(witness["point"]) == logits.width
        if holds:
            where = logits.at(witness["point"], False)
            height = Fraction(witness["height"])
            others = [j for j in range(logits.tokens) if j != i]
            holds = height > 0 and all(exact.sign(height * y, x, where[2]) > 0 for x, y in logits.differences(i, others, where))
        outcome.state(f"{at}.without_ball", holds, "does not lead at its witness")
    elif answer == "no":
        weights = [x for x in entry["without_ball_weights"] if x["token"] != logits.tokens]
        found = exact.shares(weights, "token", logits.tokens, i, outcome, f"{at}.without_ball_weights")
        holds = False
        if found:
            square, offset = logits.mean_difference(i, *found)
            beyond = max(Fraction(0), Fraction(result["without_ball"]["stretch"]) * offset)
            tie = 3 * Fraction(result["without_ball"]["tie"]) / logits.factor * (1 + Fraction(1, 10**9))
            holds = square + beyond**2 <= tie**2
        outcome.state(f"{at}.without_ball", holds, "its weights do not cancel")
    else:
        outcome.state(f"{at}.without_ball", True)
        if not entry["without_ball_weights"]:
            outcome.use(f"{at}.without_ball_weights")


def point(stated, logits, i, onto_sphere):
    """Of a point of a certificate: None where it is elsewhere, False where it is no point of the ball."""
    if stated == "elsewhere":
        return None
    if stated == "own_direction":
        return logits.at(logits.own_direction(i), True) or False
    if len(stated) != logits.width or not onto_sphere and sum(Fraction(x)**2 for x in stated) > 1:
        return False
    return logits.at(stated, onto_sphere) or False


def token(result, outcome, logits, tie, entry, i, cap):
    proof, at = result["proofs"][i], f"proofs[{i}]"
    answer, alone = proof["answer"], logits.tokens == 1
    lower, upper = result["lead"]["lower"][i], result["lead"]["upper"][i]
    of_lower, of_upper = f"lead.lower[{i}]", f"lead.upper[{i}]"
    where = point(proof["witness"], logits, i, logits.sphere) if "witness" in proof else False
    outcome.use(f"{at}.witness", f"{at}.probability_point", f"{at}.probability_tangent")
    if answer == "yes":
        proved = (alone or None if where is None else where and lower is not None and lower > 0 and logits.leads_by(i, where, lower))
        outcome.state(f"{at}.answer", proved, "its witness does not give it the largest logit by its lead")
        outcome.state(of_lower, alone and lower is None or proved, "is more than the token leads by at its witness")
    else:
        holds = lower is None
        for stated in ("own_direction", proof.get("probability_point"), [0.0] * logits.width):
            if not holds and stated is not None:
                at_point = point(stated, logits, i, logits.sphere)
                holds = bool(at_point) and logits.leads_by(i, at_point, lower)
        outcome.state(of_lower, holds, "is more than the token's logit is above all others' at any point of its certificate")
        if answer == "undecided" or answer == "open":
            outcome.state(f"{at}.answer", True)
    # The largest lead.
    weights, where_weights = (entry[0]["weights"], f"{entry[1]}.weights") if entry else (proof.get("weights"), f"{at}.weights")
    found = exact.shares(weights, "token", logits.tokens, i, outcome, where_weights) if weights else None
    if weights is not None and not weights:
        outcome.use(where_weights)
    bounded = upper is None
    if found and not bounded:
        square, offset = logits.mean_difference(i, *found)
        bounded = exact.sign(Fraction(upper) / logits.factor - offset, -1, square) >= 0
    elif alone:
        bounded = True
    bounded = None if bounded is False and result["certificates"] != "here" and not weights else bounded
    outcome.state(of_upper, bounded, "is less than its weights prove")
    if answer == "no":
        outcome.state(f"{at}.answer", bounded and (None if not found else upper is not None and Fraction(upper) <= tie(i, *found)),
                      "its largest lead is more than a tie, or not proved")
    probability(result, outcome, logits, i, cap, where, proved_lead(outcome, of_lower, lower), proved_lead(outcome, of_upper, upper))


def proved_lead(outcome, path, value):
    return value if outcome.states[path][0] else None


def probability(result, outcome, logits, i, cap, witness, lower, upper):
    proof, at = result["proofs"][i], f"proofs[{i}]"
    least, most = (result["max_probability"][end][i] for end in ("lower", "upper"))
    of_lower, of_upper = (f"max_probability.{end}[{i}]" for end in ("lower", "upper"))
    if logits.tokens == 1:
        outcome.state(of_upper, most == 1, "is less than 1 of the only token")
        return outcome.state(of_lower, True)
    holds = least <= 0
    if lower is not None and not cap:
        with decimal.localcontext(CONTEXT):
            holds = holds or (1 - OFF) / (1 + (logits.tokens - 1) * (-to_decimal(lower)).exp() * (1 + OFF)) >= to_decimal(least)
    for stated in (proof.get("probability_point"), witness):
        if not holds and stated is not None:
            where = stated if stated is witness else point(stated, logits, i, logits.sphere)
            holds = None if where is None else bool(where) and logits.has_probability(i, where, least, cap)
    outcome.state(of_lower, holds or (None if "elsewhere" in (proof.get("probability_point"), proof.get("witness")) else False),
                  "is more than its point and its lead prove")
    if cap:
        return outcome.state(of_upper, True if most >= 1 else None, "behind a soft cap a result proves no upper ends")
    holds = most >= 1
    if upper is not None and not holds:
        with decimal.localcontext(CONTEXT):
            holds = (1 + OFF) / (1 + (-to_decimal(upper)).exp() * (1 - OFF)) <= to_decimal(most)
    if "probability_weights" in proof:
        found = exact.shares(proof["probability_weights"], "token", logits.tokens, None, outcome, f"{at}.probability_weights")
        if found and not holds:
            holds = logits.probability_is_at_most(i, found[0], [entry["weight"] for entry in proof["probability_weights"]], most)
    tangent = proof.get("probability_tangent")
    if not holds and tangent is not None and tangent != "elsewhere":
        where = logits.at(logits.own_direction(i), True) if tangent == "own_direction" else (
            logits.at(tangent, False) if len(tangent) == logits.width else None)
        weights = where and logits.tangent_weights(i, where)
        holds = bool(weights) and logits.probability_is_at_most(i, *weights, most)
    outcome.state(of_upper, holds or (None if tangent == "elsewhere" else False), "is less than its lead and its certificate prove")
    outcome.state(of_lower, least <= most, "is above the upper end")


def counts(result, outcome, tokens):
    answers = [proof["answer"] for proof in result["proofs"]]
    entries = result["unreachable"] + result["undecided"]
    outcome.equal("reachable", result["reachable"], answers.count("yes"))
    outcome.equal("decided", result["decided"], tokens - answers.count("open"))
    outcome.equal("unreachable_without_ball", result["unreachable_without_ball"], sum(entry["without_ball"] == "no" for entry in entries))
    left = result["left_out"]
    outcome.equal("left_out.tokens", left["tokens"], answers.count("open"))
    outcome.equal("complete", result["complete"], not any(left.values()))
    refined = result["max_probability"]["refined"]
    fits = len(set(refined)) == len(refined) and all(i < tokens for i in refined)
    outcome.state("max_probability.refined", fits, "names a token twice, or one that is not there")
    outcome.state("left_out.probabilities", left["probabilities"] <= tokens - len(refined), "counts tokens whose bounds were worked out")
    lower, upper = result["lead"]["lower"], result["lead"]["upper"]
    nearest = [entry["token"] for entry in result["nearest"]]
    fits = len(set(nearest)) == len(nearest) and all(i < tokens and answers[i] == "yes" for i in nearest)
    outcome.part("nearest", fits, "names a token twice, or one that is not reachable")
    if not fits:
        return
    for index, entry in enumerate(result["nearest"]):
        outcome.state(f"nearest[{index}].token", True)
        for name, bounds in (("lead_at_least", lower), ("lead_at_most", upper)):
            outcome.equal(f"nearest[{index}].{name}", entry[name], bounds[entry["token"]])
    out_of_order = any(None not in (lower[a], upper[b]) and lower[a] > upper[b] for a, b in zip(nearest, nearest[1:]))
    outcome.part("nearest", not out_of_order, "has a token before one whose leads are smaller")
    most = max((upper[i] for i in nearest if upper[i] is not None), default=None)
    closer = sum(lower[i] is not None and lower[i] < most for i in range(tokens) if answers[i] == "yes" and i not in nearest) if nearest and most is not None else 0
    outcome.state("left_out.leads", left["leads"] >= closer, f"is less than {closer} tokens whose leads may be smaller than those of nearest")
    outcome.use("certificates")

"""Hard rows, by the formulas of tests/norm/kernel_cases.hpp, and their exact results."""

import mpmath
import numpy as np

from problem import DTYPES

LEAST = {"float32": 2.0**-149, "bfloat16": 2.0**-133}
# Enough digits for the sum of the squares of the largest and the least number.
mpmath.mp.prec = 1200


def hard_rows(width, dtype):
    """{name: row}, every entry one of `dtype`."""
    random = np.random.default_rng(width)
    normal = lambda: random.standard_normal(width)
    place, far, large = np.arange(width), 1e6, 2.0**125
    only = lambda where, value, others: np.where(place == where, value, others)
    rows = {
        "ordinary": normal(),
        "far mean": far + normal(),
        "one huge entry": only(width // 2, large / 64, normal()),
        "first entry huge": only(0, far, normal()),
        "smallest numbers": LEAST[dtype] * np.round(4 * normal()),
        "small": 2.0**-60 * normal(),
        "constant": np.full(width, 1e3 / 3),
        "constant and large": np.full(width, large),
        "zeros": np.zeros(width),
        "alternating": np.where(place % 2 == 0, far, -far),
        "alternating and large": np.where(place % 2 == 0, large, -large),
        "two levels": np.where(place < width // 3, far, 0.0) + normal(),
        "rising": place * 0.01 + 5.0,
        "wide range": np.ldexp(normal(), random.integers(0, 13, width)),
    }
    return {name: row.astype(np.float32).astype(DTYPES[dtype]) for name, row in rows.items()}


def exact(x, dy, gain, eps):
    """y and dx of one row without a bias, each with the size that its error is measured by: |y| + |g|, and
    |a| + mean|a| + |z| mean|a z| over the deviation, with a = g dy and z the row normed without its gain."""
    wide = lambda values: [mpmath.mpf(float(value)) for value in values]
    x, dy, gain = wide(x), wide(dy), wide(gain)
    n = len(x)
    mean = lambda values: mpmath.fsum(values) / n
    centre = mean(x)
    x = [value - centre for value in x]
    deviation = mpmath.sqrt(mean([value * value for value in x]) + eps)
    z = [value / deviation for value in x]
    a = [g * d for g, d in zip(gain, dy)]
    of_a, of_az = mean(a), mean([p * q for p, q in zip(a, z)])
    size_a, size_az = mean([abs(value) for value in a]), mean([abs(p * q) for p, q in zip(a, z)])
    y = [value * g for value, g in zip(z, gain)]
    sizes = [abs(value) + abs(g) for value, g in zip(y, gain)]
    dx = [(p - of_a - q * of_az) / deviation for p, q in zip(a, z)]
    dx_sizes = [(abs(p) + size_a + abs(q) * size_az) / deviation for p, q in zip(a, z)]
    return [np.array([float(value) for value in values]) for values in (y, sizes, dx, dx_sizes)]

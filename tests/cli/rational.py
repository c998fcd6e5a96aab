"""Linear algebra in rational numbers, and the certificates that it checks."""

from fractions import Fraction
from math import isqrt

import numpy as np


def exact(matrix):
    return [[Fraction(float(value)) for value in row] for row in np.atleast_2d(matrix)]


def product(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def transposed(a):
    return [list(column) for column in zip(*a)]


def scaled(factor, a):
    return [[factor * value for value in row] for row in a]


def diagonal(values):
    return [[value if i == j else Fraction(0) for j in range(len(values))] for i, value in enumerate(values)]


def centering(width):
    return [[Fraction(i == j) - Fraction(1, width) for j in range(width)] for i in range(width)]


def square(column):
    return sum(value * value for (value,) in column)


def root_above(value):
    """A fraction that exceeds the square root by less than 2⁻²⁰⁰ of the root or of 1."""
    scale = 1 << 400
    return Fraction(isqrt(value.numerator * scale // value.denominator) + 1, 1 << 200)


def solved(matrix, column):
    """A⁻¹ b of a symmetric matrix; None where it is not positive definite."""
    rows = [list(row) + list(end) for row, end in zip(matrix, column)]
    for k, row in enumerate(rows):
        if row[k] <= 0:
            return None
        for other in rows[k + 1:]:
            factor = other[k] / row[k]
            other[:] = [a - factor * b for a, b in zip(other, row)]
    result = []
    for k in reversed(range(len(rows))):
        rest = sum(rows[k][k + 1 + i] * value for i, (value,) in enumerate(result))
        result.insert(0, [(rows[k][-1] - rest) / rows[k][k]])
    return result


class Certificates:
    """Bounds of |M u + m| over |u| <= 1, in fractions."""

    def __init__(self, test, matrix, offset):
        self.test, self.matrix, self.offset = test, matrix, offset

    def at(self, u):
        return [[a + b] for (a,), (b,) in zip(product(self.matrix, u), self.offset)]

    def is_at_least_at(self, u, bound):
        self.test.assertLessEqual(square(u), 1)
        self.test.assertGreaterEqual(square(self.at(u)), Fraction(bound) ** 2)

    def is_at_most_at(self, u, bound):
        self.test.assertLessEqual(square(u), 1)
        self.test.assertLessEqual(square(self.at(u)), Fraction(bound) ** 2)

    def is_nowhere_below(self, bound, u):
        """yᵀ(M u + m) >= yᵀm − |Mᵀy| for every u, whatever y is."""
        if bound == 0:
            return
        y = self.at(u)
        along = product(transposed(y), self.offset)[0][0] - Fraction(bound) * root_above(square(y))
        self.test.assertGreaterEqual(along, 0)
        self.test.assertGreaterEqual(along**2, square(product(transposed(self.matrix), y)))

    def is_nowhere_above(self, bound, multiplier):
        """|M u + m|² <= μ + |m|² + bᵀ(μI − MᵀM)⁻¹b, with b = Mᵀm, where that matrix is positive definite."""
        gram = product(transposed(self.matrix), self.matrix)
        b = product(transposed(self.matrix), self.offset)
        for exponent in range(52, 20, -2):
            mu = Fraction(multiplier) * (1 + Fraction(1, 1 << exponent))
            shifted = [[mu * (i == j) - value for j, value in enumerate(row)] for i, row in enumerate(gram)]
            x = solved(shifted, b)
            if x is not None and mu + square(self.offset) + product(transposed(b), x)[0][0] <= Fraction(bound) ** 2:
                return
        self.test.fail(f"no multiplier near {multiplier} proves {bound}")

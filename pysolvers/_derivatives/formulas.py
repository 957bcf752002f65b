"""Coefficients of compact differences, as exact fractions (Lele 1992)."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from math import sqrt
from typing import NamedTuple

import numpy as np


class Formula(NamedTuple):
    """An inner formula: the sides are symmetric.

    beta d[i-2] + alpha d[i-1] + d[i] + alpha d[i+1] + beta d[i+2] is a times the central
    difference over 2 h plus b times that over 4 h; of order 2, of (f[i+k] - 2 f[i] + f[i-k])
    / (k h)^2.
    """

    alpha: Fraction
    beta: Fraction
    a: Fraction
    b: Fraction

    @property
    def reach(self) -> int:
        """Number of rows at each end where the inner formula needs points outside."""
        return 2 if self.b or self.beta else 1


def _formula(alpha: str, beta: str, a: str, b: str) -> Formula:
    return Formula(Fraction(alpha), Fraction(beta), Fraction(a), Fraction(b))


# By order of the derivative and accuracy; [1, (2.1.6) to (2.1.11), (2.2.6) to (2.2.9)] of
# compact.py. Those of accuracy 8 are the pentadiagonal ones of five points.
FORMULAS = {
    (1, 4): _formula("1/4", "0", "3/2", "0"),
    (1, 6): _formula("1/3", "0", "14/9", "1/9"),
    (1, 8): _formula("4/9", "1/36", "40/27", "25/54"),
    (2, 4): _formula("1/10", "0", "6/5", "0"),
    (2, 6): _formula("2/11", "0", "12/11", "3/11"),
    (2, 8): _formula("344/1179", "23/2358", "320/393", "310/393"),
}


@cache
def end_weights(order: int, accuracy: int, closure: int) -> tuple[tuple[float, ...], ...]:
    """Return the weights of the first points in the right sides of the first rows.

    The left sides are those of the inner formula, without entries outside. Row i is exact for
    polynomials of degree order - 1 + min(closure + i, accuracy).
    """
    formula = FORMULAS[order, accuracy]
    found = []
    for row in range(formula.reach):
        left = {row: Fraction(1)}
        for offset, value in ((1, formula.alpha), (2, formula.beta)):
            left |= {row + k: value for k in (-offset, offset) if row + k >= 0 and value}
        count = min(closure + row, accuracy) + order
        moments = [
            sum(
                (
                    value * _derivative(degree, order, column - row)
                    for column, value in left.items()
                ),
                Fraction(0),
            )
            for degree in range(count)
        ]
        powers = [[Fraction(k - row) ** degree for k in range(count)] for degree in range(count)]
        found.append(tuple(map(float, _solve(powers, moments))))
    return tuple(found)


class Split(NamedTuple):
    """The five diagonals of a formula as `scale` times the product of two matrices (a, 1, a).

    That is their product on a periodic grid. With w = z + 1 / z the symbol of the five diagonals is
    beta (w - w_1) (w - w_2), and each a is -1 / w_k; the roots are real and less than -2.
    """

    scale: float
    sides: tuple[float, float]


def split(order: int) -> Split:
    """Return the product for the formula of accuracy 8."""
    formula = FORMULAS[order, 8]
    alpha, beta = float(formula.alpha), float(formula.beta)
    root = sqrt(alpha**2 - 4 * beta * (1 - 2 * beta))
    first = -(alpha + root) / 2  # beta w, the root of larger magnitude
    second = beta * (1 - 2 * beta) / first
    return Split(1 - 2 * beta, (-beta / second, -beta / first))


# Points that count in the first unknown of five diagonals: the next ones have weights below 1e-19.
SPLIT_POINTS = 64


@cache
def split_ends(order: int, closure: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return `end_weights` for the product of `split`, divided by its scale.

    In a grid with ends the product lacks a_1 a_2 in the corners, so that a_1 a_2 times the first
    unknown is subtracted from the first right side. This unknown is a sum over the values near the
    end, whose weights decay by 0.49 and 0.28 a point, for at least `SPLIT_POINTS` points.
    """
    formula, (scale, (first, second)) = FORMULAS[order, 8], split(order)
    a, b = float(formula.a), float(formula.b)
    n, sign = 3 * SPLIT_POINTS, 1 if order == 2 else -1
    near, far = (a / 2, b / 4) if order == 1 else (a, b / 4)
    right = np.zeros((n, n))
    for k, weight in ((1, near), (2, far)):
        right += weight * (np.eye(n, k=k) + sign * np.eye(n, k=-k) - (1 + sign) * np.eye(n))
    weights = end_weights(order, 8, closure)
    for row, line in enumerate(weights):
        right[row] = 0
        right[row, : len(line)] = line
    sides = float(formula.alpha), float(formula.beta)
    left = np.eye(n) + sum(
        side * (np.eye(n, k=k) + np.eye(n, k=-k)) for k, side in enumerate(sides, 1)
    )
    unknown = np.linalg.solve(left.T, np.eye(n)[0]) @ right
    row = right[0] / scale - first * second * unknown
    return tuple(row[:SPLIT_POINTS].tolist()), tuple(value / scale for value in weights[1])


def _derivative(degree: int, order: int, x: int) -> Fraction:
    """Return the derivative of x^degree."""
    factor = 1
    for k in range(order):
        factor *= degree - k
    return Fraction(factor) * Fraction(x) ** (degree - order) if degree >= order else Fraction(0)


def _solve(matrix: list[list[Fraction]], rhs: list[Fraction]) -> list[Fraction]:
    """Solve a small system of fractions by the method of Gauss and Jordan."""
    rows = [[*line, value] for line, value in zip(matrix, rhs, strict=True)]
    for k in range(len(rows)):
        pivot = next(i for i in range(k, len(rows)) if rows[i][k])
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [value / rows[k][k] for value in rows[k]]
        for i, line in enumerate(rows):
            if i != k and line[k]:
                rows[i] = [x - line[k] * y for x, y in zip(line, rows[k], strict=True)]
    return [line[-1] for line in rows]

"""Compact differences of accuracy 8: the product of two matrices, against dense five diagonals."""

import numpy as np
import pytest

from pysolvers import compact_derivative
from pysolvers._derivatives.formulas import FORMULAS, end_weights


@pytest.mark.parametrize("closure", [3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("order", [1, 2])
def test_products_of_two_matrices_are_the_five_diagonals(order, closure):
    """Accuracy 8 of at least 64 points, at all ends, and of fewer."""
    alpha, beta, a, b = map(float, FORMULAS[order, 8])
    sign = 1 if order == 2 else -1
    a, b = (a / 2, b / 4) if order == 1 else (a, b / 4)
    for n in (63, 64, 65, 130):
        left = np.eye(n)
        for k, side in ((1, alpha), (2, beta)):
            left += side * (np.eye(n, k=k) + np.eye(n, k=-k))
        right = np.zeros((n, n))
        for k, weight in ((1, a), (2, b)):
            right += weight * (np.eye(n, k=k) + sign * np.eye(n, k=-k) - (1 + sign) * np.eye(n))
        for row, line in enumerate(end_weights(order, 8, closure)):
            right[[row, -1 - row]] = 0
            right[row, : len(line)] = line
            right[-1 - row, n - len(line) :] = sign * np.array(line[::-1])
        wanted = np.linalg.solve(left, right)
        options = {"order": order, "accuracy": 8, "closure": closure}
        for axis in (0, 1):
            found = compact_derivative(np.eye(n), axis, **options)
            found = found if axis == 0 else found.T
            assert np.abs(found - wanted).max() < 2e-15 * np.abs(right).max() * 30
        constant = compact_derivative(np.ones((2, n)), **options)
        assert (constant == 0).all()

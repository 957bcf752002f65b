"""Products of the derivatives of solves, against the formula of the contract."""

import itertools

import numpy as np
import oracle
import pytest

from pysolvers._runtime import backends


def formula(g, x, *, periodic):
    """Return -g_i x_{i-1}, -g_i x_i and -g_i x_{i+1}, rows along axis 1."""
    before, after = np.roll(x, 1, 1), np.roll(x, -1, 1)
    if not periodic:
        before[:, 0] = after[:, -1] = 0
    return -g * before, -g * x, -g * after


@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("periodic", [False, True])
def test_products_are_those_of_the_formula(rng, dtype, periodic):
    core = backends.require("cpu")
    flags = core.PERIODIC if periodic else 0
    # Parts of the loop have 2048 numbers: lines end in them, and go on in the next ones.
    for outer, rows, inner in itertools.product((1, 3), (1, 2, 3, 700, 2048), (1, 5)):
        g, x = (oracle.uniform(rng, (outer, rows, inner), dtype) for _ in range(2))
        whole = formula(g, x, periodic=periodic)
        for threads in (1, 3):
            found = [np.full(g.size, np.nan, dtype) for _ in range(3)]
            status = core.products(flags, rows, inner, g.ravel(), x.ravel(), *found, threads)
            assert status == 0
            for part, expected in zip(found, whole, strict=True):
                np.testing.assert_allclose(
                    part.reshape(g.shape), expected, rtol=4 * np.finfo(dtype).eps
                )


def test_arrays_that_do_not_fit_are_refused():
    core = backends.require("cpu")
    one = np.ones(6)
    for rows, inner, arrays, error, text in (
        (4, 1, [one] * 5, ValueError, "6 numbers are no systems of 4 rows, 1 apart"),
        (2, 2, [one] * 5, ValueError, "no systems of 2 rows, 2 apart"),
        (0, 1, [one] * 5, ValueError, "no systems of 0 rows"),
        (2, 1, [one, one[:4], one, one, one], ValueError, "x: need 6 numbers, got 4"),
        (2, 1, [one, one.astype("f4"), one, one, one], TypeError, "x: need float64"),
        (2, 1, [one, one, one[::-1], one, one], TypeError, "lower: need float64 in C order"),
        (2, 1, [[1.0], one, one, one, one], TypeError, "g: need an ndarray"),
    ):
        with pytest.raises(error, match=text):
            core.products(0, rows, inner, *arrays, 0)

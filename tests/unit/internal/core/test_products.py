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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("periodic", [False, True])
def test_products_of_steps_are_those_of_the_combinations(rng, dtype, periodic):
    core = backends.require("cpu")
    flags = core.PERIODIC if periodic else 0
    share, theta, scale = 0.75, 0.375, -0.5
    for outer, rows, inner in itertools.product((1, 3), (1, 2, 3, 700, 2048), (1, 5)):
        g, x, of, u = (oracle.uniform(rng, (outer, rows, inner), dtype) for _ in range(4))
        whole = formula(g + share * of, scale * (u + theta * (x - u)), periodic=periodic)
        found = [np.full(g.size, np.nan, dtype) for _ in range(3)]
        of_step = (of.ravel(), u.ravel(), share, theta, scale)
        assert core.products(flags, rows, inner, g.ravel(), x.ravel(), *found, 3, of_step) == 0
        for part, expected in zip(found, whole, strict=True):
            np.testing.assert_allclose(
                part.reshape(g.shape), expected, rtol=0, atol=8 * np.finfo(dtype).eps
            )


@pytest.mark.parametrize(("dtype", "start"), [("float32", 3), ("float64", 1), ("complex128", 0)])
@pytest.mark.parametrize("inner", [1, 7])
def test_large_products_that_begin_anywhere(rng, inner, dtype, start):
    """They are stored past the caches."""
    core = backends.require("cpu")
    rows, outer = 1001, 1260 // inner
    g, x = (oracle.uniform(rng, (outer, rows, inner), dtype) for _ in range(2))
    memory = [np.full(g.size + 8, 7, dtype) for _ in range(3)]
    found = [line[start : start + g.size] for line in memory]

    assert core.products(0, rows, inner, g.ravel(), x.ravel(), *found, 3) == 0

    assert found[0].nbytes > 4 << 20
    for part, line, expected in zip(found, memory, formula(g, x, periodic=False), strict=True):
        np.testing.assert_allclose(part.reshape(g.shape), expected, rtol=4 * np.finfo(dtype).eps)
        assert (line[:start] == 7).all()
        assert (line[start + g.size :] == 7).all()


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
        (2, 1, [one] * 5 + [(one, one[:2], 0.5, 0.5, 1.0)], ValueError, "u: need 6 numbers, got 2"),
        (2, 1, [one * 1j] * 5 + [(one * 1j, one * 1j, 0.5, 0.5, 1.0)], TypeError, "g: unsupported"),
        (2, 1, [one] * 5 + [(one, one)], TypeError, "5 arguments"),
    ):
        with pytest.raises(error, match=text):
            core.products(0, rows, inner, *arrays[:5], 0, *arrays[5:])

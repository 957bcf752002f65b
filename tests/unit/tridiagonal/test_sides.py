"""Several right-hand sides of each of several matrices, which are eliminated once."""

import numpy as np
import oracle
import pytest

from pysolvers import RowSums, SingularSystemError

# Axes of (side, system, row) in memory, and the axis of the rows.
LAYOUTS = {
    "contiguous": ((0, 1, 2), 2),
    "adjacent systems": ((0, 2, 1), 1),
    "sides inside": ((1, 0, 2), 2),
    "adjacent sides": ((1, 2, 0), 1),
}


def laid_out(layout, *arrays):
    """Return arrays of (side, system, row), or matrices of (system, row), in a layout."""
    order, axis = LAYOUTS[layout]
    full = [a if a.ndim == 3 else a[None] for a in arrays]
    return [np.array(a.transpose(order), order="C") for a in full], axis


def by_side(layout, x):
    """Return x as (side, system, row)."""
    return x.transpose(np.argsort(LAYOUTS[layout][0]))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize(("sides", "rows"), [(2, 1), (3, 5), (2, 33), (7, 70), (4, 400), (7, 401)])
def test_each_side_is_solved(solve, rng, dtype, layout, sides, rows):
    *matrix, _ = oracle.dominant(rng, (37, rows), dtype)
    rhs = oracle.uniform(rng, (sides, 37, rows), dtype)
    (*laid, b), axis = laid_out(layout, *matrix, rhs)

    x = by_side(layout, solve(*laid, b, axis=axis))

    assert x.dtype == dtype
    np.testing.assert_allclose(x, oracle.solve(*matrix, rhs), atol=300 * oracle.eps(dtype))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_matrices_with_row_exchanges_between_others(solve, rng, layout):
    *matrix, _ = oracle.dominant(rng, (40, 21))
    matrix[1][7] = 0.0  # an odd number of rows: singular with a zero diagonal
    matrix[1][7, 0] = 1.0
    rhs = oracle.uniform(rng, (3, 40, 21))
    (*laid, b), axis = laid_out(layout, *matrix, rhs)

    x = by_side(layout, solve(*laid, b, axis=axis, pivot=None))

    np.testing.assert_allclose(x, oracle.solve(*matrix, rhs), rtol=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("threads", [1, 2])
def test_sides_in_place_have_the_bits_of_solves_of_their_own(solve, backend, rng, layout, threads):
    *matrix, _ = oracle.dominant(rng, (150, 75))
    rhs = oracle.uniform(rng, (4, 150, 75))
    (*laid, b), axis = laid_out(layout, *matrix, rhs)

    x = by_side(layout, solve(*laid, b, axis=axis, out=b, threads=threads))

    assert np.shares_memory(x, b)
    # The kernels of a device differ by the axis and the number of systems with one matrix.
    bound = 0 if backend == "cpu" else 1e-14
    for side in range(4):
        expected = solve(*matrix, rhs[side])
        np.testing.assert_allclose(x[side], expected, rtol=0, atol=bound * np.abs(expected).max())


@pytest.mark.parametrize("layout", LAYOUTS)
def test_row_sums_of_sides(solve, rng, layout):
    lower, upper = -rng.uniform(0, 1, (2, 20, 30))
    lower[:, 0] = upper[:, -1] = 0
    sums = rng.uniform(1e-3, 1, (20, 30))
    rhs = rng.standard_normal((3, 20, 30))
    (*laid, b), axis = laid_out(layout, lower, sums, upper, rhs)

    x = by_side(layout, solve(laid[0], RowSums(laid[1]), laid[2], b, axis=axis))

    expected = oracle.solve(lower, sums - lower - upper, upper, rhs)
    np.testing.assert_allclose(x, expected, rtol=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("pivot", [None, False])
def test_singular_matrices_of_sides_are_named(solve, rng, layout, pivot):
    *matrix, _ = oracle.dominant(rng, (20, 9))
    for word in matrix:
        word[11, 4:] = 0.0
    rhs = oracle.uniform(rng, (2, 20, 9))
    (*laid, b), axis = laid_out(layout, *matrix, rhs)

    with pytest.raises(SingularSystemError) as caught:
        solve(*laid, b, axis=axis, pivot=pivot)

    order = [k for k in LAYOUTS[layout][0] if k < 2]
    expected = np.array([[0, 11], [1, 11]])[:, order]
    np.testing.assert_array_equal(caught.value.systems, expected)
    np.testing.assert_array_equal(caught.value.rows, [4, 4])

"""One matrix for contiguous systems of a device array that begin anywhere in memory."""

import numpy as np
import oracle
import pytest

import pysolvers

# Eight lanes of a warp and more, whole warps, teams of up to eight of them; with chunks of 13 rows
# and of 17.
ROWS = (70, 75, 100, 104, 105, 137, 200, 208, 209, 270, 272, 273, 301, 416, 417, 512, 513, 545)
ROWS += (777, 832, 833, 1021, 1089, 1249, 3001, 4001)


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


def problem(rng, rows, systems, dtype):
    """Return a dominant matrix and right-hand sides."""
    *matrix, _ = oracle.dominant(rng, (rows,), dtype)
    return matrix, oracle.uniform(rng, (systems, rows), dtype)


def within(cupy, array, gap, offset):
    """Return a copy whose rows are `gap` apart and begin at `offset`, and its block of NaN."""
    systems, rows = array.shape
    block = cupy.full(offset + systems * (rows + gap), np.nan, array.dtype)
    part = block[offset:].reshape(systems, rows + gap)[:, :rows]
    part[...] = cupy.asarray(array)
    return part, block


def error(matrix, rhs, x, **options):
    """Return the backward error in eps."""
    return oracle.backward_error(*matrix, rhs, x, **options) / oracle.eps(x.dtype)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_lengths(cupy, rng, dtype, periodic, rows):
    many = 9001 if rows < 600 else 4001 if rows < 1100 else 2001  # three for each team
    for systems in (2, 3, 70, many):
        matrix, rhs = problem(rng, rows, systems, dtype)

        x = pysolvers.solve_tridiagonal(
            *map(cupy.asarray, matrix), cupy.asarray(rhs), periodic=periodic, pivot=False
        )

        assert error(matrix, rhs, cupy.asnumpy(x), periodic=periodic) <= 40


@pytest.mark.parametrize(("gap", "offset", "of_x"), [(0, 0, 0), (1, 3, 3), (2, 1, 5), (3, 2, 0)])
@pytest.mark.parametrize("rows", [75, 137, 270, 301, 777, 3001])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_what_lies_between_systems(cupy, rng, dtype, rows, gap, offset, of_x):
    """Nothing around the right-hand sides is read, and nothing around x written."""
    matrix, rhs = problem(rng, rows, 501, dtype)
    right, _ = within(cupy, rhs, gap, offset)
    x, block = within(cupy, np.zeros_like(rhs), gap, of_x)

    pysolvers.solve_tridiagonal(*map(cupy.asarray, matrix), right, pivot=False, out=x)

    assert error(matrix, rhs, cupy.asnumpy(x)) <= 20
    x[...] = np.nan
    assert bool(cupy.isnan(block).all())


@pytest.mark.parametrize("rows", [137, 301, 777, 3001])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_where_systems_begin_does_not_change_a_bit(cupy, rng, dtype, rows):
    matrix, rhs = problem(rng, rows, 2003, dtype)
    arrays = [*map(cupy.asarray, matrix)]
    factor = pysolvers.factor_tridiagonal(*arrays, rows=rows, pivot=False)
    whole = pysolvers.solve_tridiagonal(*arrays, cupy.asarray(rhs), pivot=False)

    part = pysolvers.solve_tridiagonal(*arrays, cupy.asarray(rhs)[1:40], pivot=False)
    with_gaps = pysolvers.solve_tridiagonal(*arrays, within(cupy, rhs, 1, 3)[0], pivot=False)
    there = cupy.asarray(rhs)
    factor.solve(there, out=there)

    assert bool((part == whole[1:40]).all())
    assert bool((with_gaps == whole).all())
    assert bool((there == whole).all())

"""Long systems side by side: chunks of one system and neighbours in lanes give the same bits."""

import numpy as np
import oracle
import pytest

from pysolvers import SingularSystemError, solve_tridiagonal

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
SIDES = [2, 3, 7, 8, 9, 16, 17, 65, 130]  # fewer than lanes, whole lanes, some more; two bands
ROWS = [4097, 5000, 16400, 33000]  # with wider chunks and without, cut once and twice


def systems(rng, side, rows, dtype=np.float64):
    """Dominant systems of shape (side, rows)."""
    lower, diag, upper, rhs = (rng.uniform(-1, 1, (side, rows)).astype(dtype) for _ in range(4))
    diag += np.where(diag.real < 0, -3, 3)
    return lower, diag, upper, rhs


def one_by_one(*operands, **options):
    """Each system by itself."""
    alone = [solve_tridiagonal(*system, **options) for system in zip(*operands, strict=True)]
    return np.stack(alone)


def along_first(operands):
    """The same systems as columns, neighbours in memory."""
    return [np.ascontiguousarray(a.T) for a in operands]


@pytest.mark.each_value
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("side", SIDES)
def test_neighbours_in_memory_have_the_bits_of_one_alone(rng, side, periodic):
    operands = systems(rng, side, 4097)

    x = solve_tridiagonal(*along_first(operands), axis=0, method="partition", periodic=periodic)

    alone = one_by_one(*operands, method="partition", periodic=periodic)
    np.testing.assert_array_equal(x.T, alone)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", ROWS)
def test_lengths_and_types(rng, rows, dtype):
    operands = systems(rng, 17, rows, dtype)

    x = solve_tridiagonal(*along_first(operands), axis=0, method="partition")

    np.testing.assert_array_equal(x.T, one_by_one(*operands, method="partition"))
    error = max(oracle.backward_error(*s) for s in zip(*operands, x.T, strict=True))
    assert error <= 10 * oracle.eps(dtype)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_between_two_axes_and_in_place(rng, threads):
    operands = systems(rng, 36, 9000)
    middle = [np.ascontiguousarray(a.reshape(3, 12, 9000).swapaxes(1, 2)) for a in operands]
    expected = one_by_one(*operands, method="partition").reshape(3, 12, 9000).swapaxes(1, 2)

    solve_tridiagonal(*middle, axis=1, method="partition", out=middle[3], threads=threads)

    np.testing.assert_array_equal(middle[3], expected)


@pytest.mark.parametrize("side", [2, 8, 40])
def test_one_that_is_not_dominant_among_others(rng, side):
    lower, diag, upper, rhs = systems(rng, side, 4500)
    diag[side // 2, 4000] = 1e-3
    columns = along_first((lower, diag, upper, rhs))

    x, info = solve_tridiagonal(*columns, axis=0, out=columns[3], return_info=True)

    assert info.pivoted == 1
    np.testing.assert_array_equal(x.T, one_by_one(lower, diag, upper, rhs))


@pytest.mark.parametrize("side", [2, 8, 40])
def test_a_singular_one_among_others(rng, side):
    operands = systems(rng, side, 4500)
    lower, diag, upper, _ = operands
    bad, row = side - 1, 3000
    lower[bad, row] = diag[bad, row] = upper[bad, row] = 0
    x = np.empty((4500, side))

    with pytest.raises(SingularSystemError) as caught:
        solve_tridiagonal(*along_first(operands), axis=0, method="partition", out=x)

    assert list(caught.value.systems) == [bad]
    assert list(caught.value.rows) == [row]
    others = one_by_one(*(a[:bad] for a in operands), method="partition")
    np.testing.assert_array_equal(x.T[:bad], others)


def most_of(rows):
    """Return each fifth row, and all near the ends: of blocks of a power of two each place."""
    return sorted({*range(0, rows, 5), *range(min(40, rows)), *range(max(0, rows - 40), rows)})


@pytest.mark.parametrize("rows", [70, 4127])
def test_empty_row_is_told_wherever_it_is(rows):
    diag = np.full(rows, 3.0)
    lower, upper = np.full((2, rows), -1.0)

    for row in most_of(rows):
        lower[row] = diag[row] = upper[row] = 0
        with pytest.raises(SingularSystemError, match=rf"row {row}$"):
            solve_tridiagonal(lower, diag, upper, 1.0 + diag, method="partition")
        lower[row] = upper[row] = -1
        diag[row] = 3


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_first_of_several_empty_rows_is_told(threads):
    diag = np.full(40_000, 3.0)
    upper = np.where(np.arange(40_000) % 19_000 == 100, 0.0, -1.0)
    diag[upper == 0] = 0

    with pytest.raises(SingularSystemError, match=r"row 100$"):
        solve_tridiagonal(upper, diag, upper, np.ones(40_000), pivot=False, threads=threads)


@pytest.mark.parametrize("rows", [4097, 4127])
def test_row_that_is_not_dominant_is_seen_wherever_it_is(rows):
    diag = np.full(rows, 3.0)

    for row in most_of(rows):
        diag[row] = 0.5
        _, info = solve_tridiagonal(-1.0, diag, -1.0, diag, return_info=True)
        assert (row, info.pivoted) == (row, 1)
        diag[row] = 3


@pytest.mark.parametrize("side", [3, 24])
def test_ends_of_off_diagonals_have_no_influence(rng, side):
    operands = systems(rng, side, 4200)
    lower, diag, upper, rhs = along_first(operands)
    expected = one_by_one(*operands, method="partition").T
    short = solve_tridiagonal(lower[1:], diag, upper[:-1], rhs, axis=0, method="partition")
    lower[0] = upper[-1] = np.nan

    x = solve_tridiagonal(lower, diag, upper, rhs, axis=0, method="partition")

    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(short, expected)

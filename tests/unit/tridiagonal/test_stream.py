"""Batches beyond the caches take another way through memory and give the same bits."""

from itertools import pairwise

import numpy as np
import pytest

from pysolvers import factor_tridiagonal, solve_tridiagonal

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
BYTES = 9 * 2**20  # above the size from which answers are stored past the caches
PIECES = 7


def problem(rng, rows, dtype, *, offset=0):
    """Dominant systems, and room for x, in arrays whose data start `offset` elements late."""
    systems = BYTES // (rows * np.dtype(dtype).itemsize) + 1

    def room():
        flat = np.empty(systems * rows + offset, dtype)
        return flat[offset:].reshape(systems, rows)

    arrays = [room() for _ in range(5)]
    for array in arrays[:4]:
        array[...] = rng.uniform(-1, 1, (systems, rows))
        if np.issubdtype(dtype, np.complexfloating):
            array[...] += 1j * rng.uniform(-1, 1, (systems, rows)).astype(array.real.dtype)
    arrays[1][...] += 5
    arrays[4][...] = np.nan
    return arrays


def in_pieces(lower, diag, upper, rhs, **options):
    """The same systems in batches that stay in cache."""
    cuts = np.linspace(0, len(rhs), PIECES + 1).astype(int)
    return np.concatenate(
        [
            solve_tridiagonal(*(a[i:j] for a in (lower, diag, upper, rhs)), **options)
            for i, j in pairwise(cuts)
        ]
    )


@pytest.mark.each_value  # the lanes of a type are those of the other kernels
@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("rows", [1, 7, 16, 63, 65, 1000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_contiguous_systems(rng, dtype, rows, offset):
    lower, diag, upper, rhs, x = problem(rng, rows, dtype, offset=offset)

    solve_tridiagonal(lower, diag, upper, rhs, out=x)

    np.testing.assert_array_equal(x, in_pieces(lower, diag, upper, rhs))


@pytest.mark.parametrize("options", [{"periodic": True}, {"pivot": True}, {"method": "partition"}])
@pytest.mark.parametrize("rows", [16, 100, 700])
def test_contiguous_systems_by_other_ways(rng, rows, options):
    lower, diag, upper, rhs, x = problem(rng, rows, np.float64, offset=1)

    solve_tridiagonal(lower, diag, upper, rhs, out=x, **options)

    np.testing.assert_array_equal(x, in_pieces(lower, diag, upper, rhs, **options))


@pytest.mark.parametrize("rows", [5, 64, 300])
def test_short_off_diagonals(rng, rows):
    lower, diag, upper, rhs, x = problem(rng, rows, np.float64)
    lower, upper = (np.ascontiguousarray(a) for a in (lower[:, 1:], upper[:, :-1]))

    solve_tridiagonal(lower, diag, upper, rhs, out=x)

    np.testing.assert_array_equal(x, in_pieces(lower, diag, upper, rhs))


@pytest.mark.parametrize("rows", [16, 100, 700])
def test_in_place(rng, rows):
    lower, diag, upper, rhs, _ = problem(rng, rows, np.float64, offset=1)
    expected = in_pieces(lower, diag, upper, rhs)

    solve_tridiagonal(lower, diag, upper, rhs, out=rhs)

    np.testing.assert_array_equal(rhs, expected)


@pytest.mark.parametrize("rows", [16, 63])
def test_answers_with_gaps_between_them(rng, rows):
    *system, _ = problem(rng, rows, np.float64)
    system = [a[: len(a) // 16 * 16 - 8] for a in system]
    room = np.full((len(system[0]), rows + 1), 77.0)

    solve_tridiagonal(*system, out=room[:, :-1], threads=1)

    np.testing.assert_array_equal(room[:, :-1], in_pieces(*system))
    assert np.all(room[:, -1] == 77)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("rows", [3, 40])
@pytest.mark.parametrize("dtype", DTYPES)
def test_interleaved_systems(rng, dtype, rows, axis):
    systems = problem(rng, rows, dtype, offset=1)
    count = len(systems[0]) // 5 * 5
    operands = [a[:count] for a in systems[:4]]
    shape = (rows, count) if axis == 0 else (5, rows, count // 5)

    def turned(a):
        a = a.T if axis == 0 else a.reshape(5, count // 5, rows).transpose(0, 2, 1)
        return np.ascontiguousarray(a)

    x = solve_tridiagonal(*(turned(a) for a in operands), axis=axis)

    assert x.shape == shape
    np.testing.assert_array_equal(x, turned(in_pieces(*operands)))


@pytest.mark.parametrize("offset", [0, 1, 2, 5])
@pytest.mark.parametrize("lacks", [0, 1])
@pytest.mark.parametrize("pivot", [None, True])
def test_interleaved_answers_at_any_address(rng, offset, lacks, pivot):
    systems = problem(rng, 40, np.float64)
    count = len(systems[0]) // 64 * 64 - lacks
    operands = [a[:count] for a in systems[:4]]
    room = np.full(40 * count + 8, 77.0)
    x = room[offset : offset + 40 * count].reshape(40, count)

    solve_tridiagonal(*(np.ascontiguousarray(a.T) for a in operands), axis=0, pivot=pivot, out=x)

    np.testing.assert_array_equal(x.T, in_pieces(*operands, pivot=pivot))
    assert np.all(room[:offset] == 77)
    assert np.all(room[offset + 40 * count :] == 77)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [16, 65, 1000])
def test_shared_matrix_and_factor(rng, rows, dtype):
    lower, diag, upper, rhs, x = problem(rng, rows, dtype, offset=1)
    matrix = lower[0], diag[0], upper[0]

    solve_tridiagonal(*matrix, rhs, out=x)
    by_factor = factor_tridiagonal(*matrix).solve(rhs)

    everywhere = [np.broadcast_to(a, rhs.shape) for a in matrix]
    np.testing.assert_array_equal(x, in_pieces(*(np.array(a) for a in everywhere), rhs))
    np.testing.assert_array_equal(by_factor, x)


@pytest.mark.each_value
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_long_systems(rng, dtype, periodic):
    """One lane a chunk: 300 000 rows, alone in cache and together beyond it."""
    lower, diag, upper, rhs, x = problem(rng, 300_001, dtype)

    solve_tridiagonal(lower, diag, upper, rhs, out=x, periodic=periodic)

    alone = [
        solve_tridiagonal(*row, periodic=periodic)
        for row in zip(lower, diag, upper, rhs, strict=True)
    ]
    np.testing.assert_array_equal(x, alone)

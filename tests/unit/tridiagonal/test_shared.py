"""Long systems that share a matrix: cut into chunks, each of them eliminated once for all."""

import numpy as np
import oracle
import pytest

from pysolvers import SingularSystemError, factor_tridiagonal, solve_tridiagonal

SIDES = [2, 3, 7, 8, 11, 17, 33]  # in lanes of chunks, of systems, some more
ROWS = [600, 4097, 5000, 33_000]  # with wider chunks and without, cut once and twice
LONG = 131_072  # rows from which on factors are kept in chunks
TRANSPOSES = [("N", False), ("T", True), ("H", False)]


def system(rng, side, rows, dtype=np.float64):
    """A matrix, and right-hand sides of shape (side, rows)."""
    *matrix, _ = oracle.dominant(rng, (rows,), dtype)
    return matrix, oracle.uniform(rng, (side, rows), dtype)


def own(matrix, rhs, **options):
    """Each system by itself."""
    return np.stack([solve_tridiagonal(*matrix, b, method="partition", **options) for b in rhs])


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("side", SIDES)
def test_shared_matrix_gives_the_bits_of_an_own_one(rng, side, periodic):
    matrix, rhs = system(rng, side, 4129)
    options = {"method": "partition", "periodic": periodic}
    expected = own(matrix, rhs, periodic=periodic)

    np.testing.assert_array_equal(solve_tridiagonal(*matrix, rhs, **options), expected)
    columns = np.ascontiguousarray(rhs.T)
    matrix = [a[:, np.newaxis] for a in matrix]
    x = solve_tridiagonal(*matrix, columns, axis=0, **options)
    np.testing.assert_array_equal(x.T, expected)
    sparse = np.zeros((4129, 2 * side))[:, ::2]
    sparse[:] = columns
    solve_tridiagonal(*matrix, sparse, axis=0, out=sparse, **options)
    np.testing.assert_array_equal(sparse.T, expected)


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("rows", ROWS)
def test_lengths_and_types(rng, rows, dtype):
    matrix, rhs = system(rng, 5, rows, dtype)

    x = solve_tridiagonal(*matrix, rhs, method="partition")

    np.testing.assert_array_equal(x, own(matrix, rhs))
    assert oracle.backward_error(*matrix, rhs, x) <= 10 * oracle.eps(dtype)


@pytest.mark.parametrize("along", ["row", "column"])
@pytest.mark.parametrize("rows", [528, 529, 544, 1040])  # chunks of 33 to 65 rows: whole blocks
def test_chunks_of_whole_blocks_and_more_sides_than_one_band_has_lanes(rng, rows, along):
    matrix, rhs = system(rng, 129, rows)  # one more than 16 tiles of any number of lanes
    axis = -1 if along == "row" else 0
    layout = rhs if axis == -1 else np.ascontiguousarray(rhs.T)
    words = [a[np.newaxis] if axis == -1 else a[:, np.newaxis] for a in matrix]

    x = solve_tridiagonal(*words, layout, axis=axis, method="partition")

    x = x if axis == -1 else x.T
    np.testing.assert_array_equal(x[::16], own(matrix, rhs[::16]))
    assert oracle.backward_error(*matrix, rhs, x) <= 10 * oracle.eps(np.float64)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_between_two_axes_in_place_and_anywhere_in_a_cache_line(rng, threads):
    matrix, rhs = system(rng, 60, 5000)
    expected = own(matrix, rhs).reshape(3, 20, 5000).swapaxes(1, 2)
    middle = rhs.reshape(3, 20, 5000).swapaxes(1, 2)

    for offset in (0, 1, 3):
        x = np.zeros(rhs.size + offset)[offset:].reshape(middle.shape)
        x[:] = middle
        solve_tridiagonal(*(a[:, np.newaxis] for a in matrix), x, axis=1, out=x, threads=threads)
        np.testing.assert_array_equal(x, expected, err_msg=f"offset {offset}")


def test_one_matrix_a_plane(rng):
    matrices = oracle.dominant(rng, (3, 4500))[:3]
    rhs = oracle.uniform(rng, (3, 4500, 10))
    planes = zip(*matrices, rhs, strict=True)
    expected = [own(plane[:3], plane[3].T).T for plane in planes]

    x = solve_tridiagonal(*(a[..., np.newaxis] for a in matrices), rhs, axis=1)

    np.testing.assert_array_equal(x, expected)


def test_answers_that_leave_the_cache(rng):
    matrix, rhs = system(rng, 17, 70_001)
    columns = [a[:, np.newaxis] for a in matrix]

    x = solve_tridiagonal(*matrix, rhs)
    across = solve_tridiagonal(*columns, np.ascontiguousarray(rhs.T), axis=0)

    np.testing.assert_array_equal(x[[0, 16]], own(matrix, rhs[[0, 16]]))
    np.testing.assert_array_equal(across.T, x)


@pytest.mark.parametrize("form", ["short", "with ends"])
def test_ends_of_off_diagonals(rng, form):
    (lower, diag, upper), rhs = system(rng, 3, LONG)
    lower[0] = upper[-1] = np.nan
    expected = own((lower, diag, upper), rhs)
    matrix = (lower[1:], diag, upper[:-1]) if form == "short" else (lower, diag, upper)

    x = solve_tridiagonal(*matrix, rhs)

    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(factor_tridiagonal(*matrix).solve(rhs), expected)


def test_matrix_that_is_not_dominant_is_pivoted(rng):
    (lower, diag, upper), rhs = system(rng, 3, LONG)
    diag[4000] = 1e-3

    x, info = solve_tridiagonal(lower, diag, upper, rhs, return_info=True)

    assert info.pivoted == 3
    alone = [solve_tridiagonal(lower, diag, upper, b) for b in rhs]
    np.testing.assert_array_equal(x, alone)
    f = factor_tridiagonal(lower, diag, upper)
    assert f.info.pivoted == 1
    assert oracle.backward_error(lower, diag, upper, rhs, f.solve(rhs)) <= 1e-13


def test_singular_matrix_is_told(rng):
    (lower, diag, upper), rhs = system(rng, 3, LONG)
    lower[3000] = diag[3000] = upper[3000] = 0

    with pytest.raises(SingularSystemError) as caught:
        solve_tridiagonal(lower, diag, upper, rhs, method="partition")
    assert list(caught.value.systems) == [0, 1, 2]
    assert list(caught.value.rows) == [3000] * 3
    with pytest.raises(SingularSystemError) as caught:
        factor_tridiagonal(lower, diag, upper, pivot=False)
    assert list(caught.value.rows) == [3000]


@pytest.mark.each_value
@pytest.mark.parametrize(("trans", "periodic"), TRANSPOSES)
@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("rows", [LONG, LONG + 4099])
def test_factor_of_a_long_matrix(rng, rows, dtype, trans, periodic):
    matrix, rhs = system(rng, 3, rows, dtype)

    f = factor_tridiagonal(*matrix, periodic=periodic)
    x = f.solve(rhs, trans=trans)

    assert f.info.method == "partition"
    transposed = oracle.transposed(*matrix, trans)
    error = oracle.backward_error(*transposed, rhs, x, periodic=periodic)
    assert error <= 20 * oracle.eps(dtype)


@pytest.mark.each_value
@pytest.mark.parametrize("side", [1, 2, 5, 11, 19])
@pytest.mark.parametrize(("trans", "periodic"), TRANSPOSES)
def test_factor_gives_the_same_bits_wherever_the_systems_lie(rng, side, trans, periodic):
    matrix, rhs = system(rng, side, LONG + 3)
    f = factor_tridiagonal(*matrix, periodic=periodic)
    expected = np.stack([f.solve(b, trans=trans, threads=1) for b in rhs])

    np.testing.assert_array_equal(f.solve(rhs, trans=trans, threads=3), expected)
    across = factor_tridiagonal(*(a[:, np.newaxis] for a in matrix), axis=0, periodic=periodic)
    columns = np.ascontiguousarray(rhs.T)
    assert across.solve(columns, trans=trans, out=columns) is columns
    np.testing.assert_array_equal(columns.T, expected)


@pytest.mark.parametrize(("trans", "periodic"), TRANSPOSES)
def test_long_matrices_are_factored_as_if_each_were_alone(rng, trans, periodic):
    lower, diag, upper = oracle.dominant(rng, (2, LONG + 3, 3))[:3]
    rhs = oracle.uniform(rng, (2, LONG + 3, 3))
    diag[1, 77, 2] = 1e-3  # this one is pivoted

    f = factor_tridiagonal(lower, diag, upper, axis=1, periodic=periodic)
    x = f.solve(rhs, trans=trans)

    assert f.info.method == "partition"
    assert f.info.pivoted == 1
    for j, k in np.ndindex(2, 3):
        matrix = [a[j, :, k] for a in (lower, diag, upper)]
        alone = factor_tridiagonal(*matrix, periodic=periodic)
        np.testing.assert_array_equal(x[j, :, k], alone.solve(rhs[j, :, k], trans=trans))
    one = factor_tridiagonal(
        *(a[:, :, :1] for a in (lower, diag, upper)), axis=1, periodic=periodic
    )
    np.testing.assert_array_equal(
        one.solve(rhs, trans=trans)[:, :, 0], x[:, :, 0]
    )  # a matrix for each plane of right-hand sides


def test_singular_matrix_among_long_ones_is_told(rng):
    lower, diag, upper = oracle.dominant(rng, (3, LONG))[:3]
    lower[1, 3000] = diag[1, 3000] = upper[1, 3000] = 0

    with pytest.raises(SingularSystemError) as caught:
        factor_tridiagonal(lower, diag, upper, pivot=False)

    assert list(caught.value.systems) == [1]
    assert list(caught.value.rows) == [3000]

"""Periodic systems: the first and the last row are coupled."""

import numpy as np
import oracle
import pytest

import pysolvers


@pytest.mark.parametrize("rows", oracle.ROWS)
@pytest.mark.parametrize("method", oracle.METHODS)
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_backward_error_is_a_few_eps(solve, rng, dtype, method, rows):
    system = oracle.dominant(rng, (5, rows), dtype)

    x = solve(*system, periodic=True, method=method)

    assert oracle.backward_error(*system, x, periodic=True) <= 30 * oracle.eps(dtype)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("method", oracle.METHODS)
def test_answer_is_the_dense_one(solve, rng, method, rows):
    system = oracle.dominant(rng, (4, rows))

    x = solve(*system, periodic=True, method=method)

    np.testing.assert_allclose(x, oracle.solve(*system, periodic=True), rtol=1e-12)


@pytest.mark.parametrize("rows", [2, 3, 4, 17, 64, 200])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_random_systems_are_pivoted(solve, rng, dtype, rows):
    system = oracle.general(rng, (5, rows), dtype)

    x = solve(*system, periodic=True, pivot=True)

    matrix = oracle.dense(*system[:3], periodic=True)
    condition = np.max(np.linalg.cond(matrix.astype(complex)))
    exact = oracle.solve(*system, periodic=True)
    scale = np.max(np.abs(exact), axis=-1, keepdims=True)
    assert np.max(np.abs(x - exact) / scale) <= 50 * condition * oracle.eps(dtype)


@pytest.mark.parametrize("shift", [1, 5])
def test_turning_the_ring_turns_the_answer(solve, rng, shift):
    system = oracle.dominant(rng, (3, 12))

    turned = solve(*(np.roll(a, shift, axis=-1) for a in system), periodic=True)

    np.testing.assert_allclose(
        turned, np.roll(solve(*system, periodic=True), shift, axis=-1), rtol=1e-12
    )


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("method", oracle.METHODS)
def test_every_axis_gives_the_same_bits(solve, same_but_for_layout, rng, method, axis):
    system = oracle.dominant(rng, (3, 5, 21))
    moved = [np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in system]

    x = solve(*moved, axis=axis, periodic=True, method=method)

    expected = solve(*system, periodic=True, method=method)
    same_but_for_layout(np.moveaxis(x, axis, -1), expected, neighbours=axis < 2)


@pytest.mark.parametrize("method", oracle.METHODS)
def test_shared_matrix(solve, rng, method):
    lower, diag, upper, _ = oracle.dominant(rng, (21,))
    rhs = oracle.uniform(rng, (9, 21))

    x = solve(lower, diag, upper, rhs, periodic=True, method=method)

    error = oracle.backward_error(lower, diag, upper, rhs, x, periodic=True)
    assert error <= 30 * oracle.eps(float)


def test_in_place(solve, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (5, 21))
    expected = solve(lower, diag, upper, rhs, periodic=True)

    solve(lower, diag, upper, rhs, periodic=True, out=rhs)

    np.testing.assert_array_equal(rhs, expected)


def test_short_off_diagonals_are_refused(solve, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (9,))

    with pytest.raises(ValueError, match="periodic"):
        solve(lower[1:], diag, upper, rhs, periodic=True)
    with pytest.raises(ValueError, match="periodic"):
        solve(lower, diag, upper[:-1], rhs, periodic=True)


@pytest.mark.parametrize("rows", [3, 4, 9])
def test_dominant_ring_among_others_exchanges_no_rows(rng, rows):
    """Its last row is a thousand times as large as the others."""
    system = oracle.general(rng, (16, rows))
    for a, dominant in zip(system, oracle.dominant(rng, (rows,)), strict=True):
        a[5] = dominant
        a[5, -1] *= 1000

    x, info = pysolvers.solve_tridiagonal(*system, periodic=True, return_info=True)

    assert info.pivoted == 15
    alone = pysolvers.solve_tridiagonal(*(a[5] for a in system), periodic=True)
    np.testing.assert_array_equal(x[5], alone)
    made = pysolvers.factor_tridiagonal(*system[:3], periodic=True)
    by_factor = pysolvers.factor_tridiagonal(*(a[5] for a in system[:3]), periodic=True)
    np.testing.assert_array_equal(made.solve(system[3])[5], by_factor.solve(system[3][5]))


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("rows", [3, 4, 9])
def test_empty_column_is_told_by_its_number(rng, rows, periodic):
    lower, diag, upper, rhs = oracle.general(rng, (rows, rows))
    for column in range(rows):
        diag[column, column] = 0
        lower[column, (column + 1) % rows] = upper[column, column - 1] = 0

    with pytest.raises(pysolvers.SingularSystemError) as caught:
        pysolvers.solve_tridiagonal(lower, diag, upper, rhs, periodic=periodic, pivot=True)

    np.testing.assert_array_equal(caught.value.systems[:, 0], np.arange(rows))
    np.testing.assert_array_equal(caught.value.rows, np.arange(rows))


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_singular_ring_is_told(solve, rows):
    with pytest.raises(pysolvers.SingularSystemError) as caught:
        solve(-1.0, 2.0, -1.0, np.ones((2, rows)), periodic=True, pivot=True)

    np.testing.assert_array_equal(caught.value.systems, [[0], [1]])

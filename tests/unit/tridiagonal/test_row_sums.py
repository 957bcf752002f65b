"""Factors of matrices that are given by off-diagonals and row sums, and solves with them.

The truth is elimination in 120 digits: for right sides of one sign every unknown must be right, for
any condition number.
"""

import exact_lines
import numpy as np
import pytest
from exact_lines import family as matrices

from pysolvers import RowSums, SingularSystemError, factor_tridiagonal, solve_tridiagonal

DTYPES = ["float32", "float64"]


def in_form(operands):
    """Return operands with row sums as the public functions take them."""
    lower, sums, *rest = operands
    return [lower, RowSums(sums), *rest]


def assert_every_unknown(x, operands, dtype, *, periodic):
    lower, sums, upper, rhs = operands
    rows = x.shape[-1]
    bound = max(50, rows / 2) * np.finfo(dtype).eps
    for k in range(len(x)):
        truth = exact_lines.solve(lower[k], sums[k], upper[k], rhs[k], periodic=periodic)
        error = np.abs(x[k].astype(float) - truth) / truth
        assert error.max() <= bound, (k, error.max() / np.finfo(dtype).eps)


@pytest.mark.each_value
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 2, 3, 17, 130])
def test_every_unknown_is_right_for_any_condition(rng, rows, dtype, periodic):
    if periodic and rows < 3:
        pytest.skip("a periodic matrix of two rows is below")
    operands = matrices(rng, 6, rows, dtype, symmetric=rows % 2 == 0)
    lower, sums, upper, rhs = operands
    factor = factor_tridiagonal(lower, RowSums(sums), upper, rows=rows, periodic=periodic)
    assert_every_unknown(factor.solve(rhs), operands, dtype, periodic=periodic)
    first = [np.ascontiguousarray(a.T) for a in operands]
    factor = factor_tridiagonal(*in_form(first[:3]), axis=0, rows=rows, periodic=periodic)
    assert_every_unknown(factor.solve(first[3]).T, operands, dtype, periodic=periodic)
    np.testing.assert_array_equal(
        solve_tridiagonal(*in_form(operands), periodic=periodic), factor.solve(rhs, axis=-1)
    )
    np.testing.assert_array_equal(
        solve_tridiagonal(*in_form(first), axis=0, periodic=periodic), factor.solve(first[3])
    )


@pytest.mark.parametrize("rows", [1, 2])
def test_short_periodic_matrices(rows):
    lower, sums, upper = np.array([[-3.0, -1.0], [1e-20, 2e-21], [-2.0, -4.0]])[:, :rows]
    rhs = np.array([1.0, 3.0])[:rows]
    x = factor_tridiagonal(lower, RowSums(sums), upper, periodic=True).solve(rhs)
    truth = exact_lines.solve(lower, sums, upper, rhs, periodic=True)
    np.testing.assert_allclose(x, truth, rtol=1e-15)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [-1, 0])
def test_shared_matrix_and_transposes(rng, dtype, periodic, axis):
    lower, sums, upper, _ = (a[0] for a in matrices(rng, 1, 90, dtype))
    rhs = rng.random((7, 90)).astype(dtype)
    factor = factor_tridiagonal(lower, RowSums(sums), upper, periodic=periodic)
    given = rhs if axis == -1 else np.ascontiguousarray(rhs.T)
    for trans in "NT":  # the matrix is symmetric
        x = factor.solve(given, axis=axis, trans=trans)
        x = x if axis == -1 else x.T
        operands = [np.broadcast_to(a, rhs.shape) for a in (lower, sums, upper)]
        assert_every_unknown(x, [*operands, rhs], dtype, periodic=periodic)


@pytest.mark.parametrize("periodic", [False, True])
def test_signs_of_the_laplacian_and_complex_right_sides(rng, periodic):
    operands = matrices(rng, 5, 40, "float64")
    lower, sums, upper, rhs = operands
    factor = factor_tridiagonal(-lower, RowSums(-sums), -upper, periodic=periodic)
    x = factor.solve(-rhs * (1 + 2j))
    np.testing.assert_allclose(x.imag, 2 * x.real, rtol=1e-15)
    assert_every_unknown(x.real, operands, "float64", periodic=periodic)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_long_matrix_in_chunks(rng, dtype, periodic):
    """The truth is the solution for constant coefficients: f = 1, so that x = 1 / s."""
    rows = 1 << 17
    sums = 1e-14
    factor = factor_tridiagonal(-1.0, RowSums(np.full(rows, sums, dtype)), -1.0, periodic=periodic)
    assert factor.info.method == "partition"
    x = factor.solve(np.ones(rows, dtype))
    s = float(np.dtype(dtype).type(sums))
    error = np.abs(x.astype(float) * s - 1).max()
    assert error <= 1500 * np.finfo(dtype).eps
    lower = -(10 ** rng.uniform(-2, 2, rows)).astype(dtype)
    upper = np.roll(lower, -1)
    own = (10 ** rng.uniform(-20, -10, rows)).astype(dtype)
    x = factor_tridiagonal(lower, RowSums(own), upper, periodic=periodic).solve(own)
    assert np.abs(x.astype(float) - 1).max() <= 1500 * np.finfo(dtype).eps


def solved_in_order(lower, sums, upper, rhs, *, periodic):
    """Return the solutions along axis 0 by elimination in order, in extended precision."""
    a, s, c, f = (np.array(v, np.longdouble) for v in (-lower, sums, -upper, rhs))
    n = len(f) - periodic
    far = np.zeros_like(f)  # the coupling to the last unknown of a periodic system
    if periodic:
        far[0], far[n - 1], c[n - 1] = a[0], far[n - 1] + c[n - 1], 0
    else:
        c[n - 1] = 0
    pivot = np.empty_like(f)
    for i in range(n):
        if i > 0:
            m = a[i] / pivot[i - 1]
            s[i], far[i], f[i] = (v[i] + m * v[i - 1] for v in (s, far, f))
        pivot[i] = s[i] + c[i] + far[i]
    for i in range(n - 1, -1, -1):
        for v in (s, far, f):  # the solution for the row sums is 1 without the last unknown
            v[i] = (v[i] + (c[i] * v[i + 1] if i < n - 1 else 0)) / pivot[i]
    if periodic:
        a, c = a[n], np.array(-upper[n], np.longdouble)
        f[n] = (f[n] + a * f[n - 1] + c * f[0]) / (s[n] + a * s[n - 1] + c * s[0])
        f[:n] += far[:n] * f[n]
    return f


@pytest.mark.each_value
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize(
    ("dtype", "rows"), [("float32", 8500), ("float64", 4200), ("float64", 33000)]
)
def test_long_systems_are_solved_in_chunks(rng, dtype, rows, periodic):
    """Also the system of the ends of the chunks is divided if the rows are many."""
    shape = (rows, 3)
    lower, upper = (-(10 ** rng.uniform(-3, 3, shape)).astype(dtype) for _ in range(2))
    lower[1:, 1:] = upper[:-1, 1:]  # the first system has a drift
    sums = (10 ** rng.uniform(-12, -3, shape)).astype(dtype)
    rhs = rng.random(shape).astype(dtype)
    truth = solved_in_order(lower, sums, upper, rhs, periodic=periodic)

    def check(x):
        assert np.abs(x / truth - 1).max() <= rows / 2 * np.finfo(dtype).eps
        return x

    options = {"periodic": periodic}
    first = check(solve_tridiagonal(lower, RowSums(sums), upper, rhs, axis=0, **options))
    last = [np.ascontiguousarray(a.T) for a in (lower, sums, upper, rhs)]
    for threads in (1, 2):
        x = solve_tridiagonal(*in_form(last), threads=threads, **options)
        np.testing.assert_array_equal(x.T, first)
    alone = solve_tridiagonal(*in_form([a[1] for a in last]), **options)
    np.testing.assert_array_equal(alone, first[:, 1])
    sides = np.repeat(last[3][1:2], 20, 0)
    shared = solve_tridiagonal(*in_form([a[1] for a in last[:3]]), sides, **options)
    np.testing.assert_array_equal(shared, np.broadcast_to(alone, sides.shape))


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("rows", [5000, 40000])
def test_long_systems_without_row_sums_are_singular(rng, rows, periodic):
    c = rng.random((2, rows)) + 0.5
    sums = np.ones((2, rows))
    sums[1] = 0
    matrix = in_form((-np.roll(c, 1, 1), sums, -c))
    with pytest.raises(SingularSystemError) as caught:
        solve_tridiagonal(*matrix, sums, periodic=periodic)
    assert (caught.value.systems, list(caught.value.rows)) == ([(1,)], [rows - 1])
    x = solve_tridiagonal(*matrix, np.ones((2, rows)), periodic=periodic, on_singular="nan")
    assert np.isnan(x[1]).all()
    np.testing.assert_allclose(x[0], 1, rtol=1e-13)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 5, 100, 1 << 17])
def test_a_matrix_without_row_sums_is_singular(rng, rows, periodic):
    lower = -rng.random(rows) - 0.5
    with pytest.raises(SingularSystemError) as caught:
        factor_tridiagonal(
            lower, RowSums(np.zeros(rows)), np.roll(lower, -1), rows=rows, periodic=periodic
        )
    assert list(caught.value.rows) == [rows - 1]


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("shape", [(1, 1, 40), (3, 1, 40), (1, 4, 40), (3, 4, 40), (3, 4, 9000)])
def test_solves_with_matrices_of_some_axes(rng, shape, periodic):
    """One matrix for the other batch axes, and for neighbouring systems of strided rows."""
    outer, inner, rows = shape
    diagonals = [a.reshape(shape) for a in matrices(rng, outer * inner, rows, "float64")[:3]]
    rhs = rng.random((3, 4, rows))
    expected = factor_tridiagonal(*in_form(diagonals), periodic=periodic).solve(rhs)
    out = rhs.copy()
    assert solve_tridiagonal(*in_form(diagonals), out, periodic=periodic, out=out, threads=2) is out
    np.testing.assert_allclose(out, expected, rtol=1e-13)
    strided = [np.ascontiguousarray(np.moveaxis(a, -1, 0)) for a in (*diagonals, rhs)]
    x = solve_tridiagonal(*in_form(strided), axis=0, periodic=periodic)
    np.testing.assert_allclose(np.moveaxis(x, 0, -1), expected, rtol=1e-13)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 40, 512])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_a_few_right_sides_of_each_matrix(rng, count, rows, dtype, periodic):
    """Vectors hold right sides of one matrix or of several; each unknown is the same."""
    batch = 70
    c = (0.5 + rng.random((batch, rows, 1))).astype(dtype)
    sums = (1 + rng.random((batch, rows, 1))).astype(dtype)
    c[:, -1] *= periodic
    sums[-3] = 0
    rhs = rng.random((batch, rows, count)).astype(dtype)
    matrix = in_form((-np.roll(c, 1, 1), sums, -c))
    options = {"axis": 1, "periodic": periodic, "on_singular": "nan"}

    x = solve_tridiagonal(*matrix, rhs, threads=1, **options)
    for k in range(count):
        alone = solve_tridiagonal(*matrix, rhs[..., k : k + 1].copy(), **options)
        np.testing.assert_array_equal(x[..., k : k + 1], alone)
    out = rhs.copy()
    solve_tridiagonal(*matrix, out, out=out, threads=2, **options)
    np.testing.assert_array_equal(out, x)

    assert list(np.isnan(x).any((1, 2)).nonzero()[0]) == [batch - 3]
    c, sums, x = (np.delete(a, -3, 0).astype(float) for a in (c, sums, x))
    flux = c * (np.roll(x, -1, 1) - x)
    found = sums * x - flux + np.roll(flux, 1, 1)
    bound = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(found, np.delete(rhs, -3, 0), rtol=0, atol=bound)


@pytest.mark.parametrize("shared", [False, True])
def test_solve_names_singular_systems(rng, shared):
    sums = np.ones((1 if shared else 5, 30))
    sums[0] = 0
    rhs = rng.random((5, 30))
    with pytest.raises(SingularSystemError) as caught:
        solve_tridiagonal(-1.0, RowSums(sums), -1.0, rhs)
    assert list(caught.value.rows) == [29] * (5 if shared else 1)
    x = solve_tridiagonal(-1.0, RowSums(sums), -1.0, rhs, on_singular="nan")
    assert (np.isnan(x).all(axis=1) == ([True] * 5 if shared else [True, *[False] * 4])).all()


def test_solve_takes_short_off_diagonals_and_complex_right_sides(rng):
    lower, sums, upper, rhs = matrices(rng, 3, 20, "float64")
    x = solve_tridiagonal(lower[:, 1:], RowSums(sums), upper[:, :-1], rhs * (1 + 2j))
    np.testing.assert_allclose(x.imag, 2 * x.real, rtol=1e-15)
    assert_every_unknown(x.real, (lower, sums, upper, rhs), "float64", periodic=False)


def test_solve_without_systems():
    assert solve_tridiagonal(-1.0, RowSums(1.0), -1.0, np.empty((0, 4))).shape == (0, 4)


def test_refactor_takes_row_sums():
    factor = factor_tridiagonal(-1.0, RowSums(np.full(20, 1e-30)), -1.0)
    factor.refactor(-1.0, RowSums(np.full(20, 2e-30)), -1.0)
    np.testing.assert_allclose(factor.solve(np.ones(20)), 5e29, rtol=1e-14)


def test_corners_are_ignored():
    lower, sums, upper = np.full(9, -1.0), np.full(9, 0.25), np.full(9, -1.0)
    x = factor_tridiagonal(lower, RowSums(sums), upper).solve(np.ones(9))
    lower[0], upper[-1] = np.nan, 1e300
    np.testing.assert_array_equal(
        factor_tridiagonal(lower, RowSums(sums), upper).solve(np.ones(9)), x
    )
    np.testing.assert_allclose(x, 4.0, rtol=1e-15)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("batch", [(3, 700), (3, 1), (1, 700)], ids=str)
def test_more_systems_than_a_cache_holds(rng, batch, axis, periodic):
    """The blocks of a batch, and which of their systems are singular; the same for any threads."""
    rows = 64
    c = 0.5 + rng.random((*batch, rows))
    c[..., -1] *= periodic
    sums = 1 + rng.random((*batch, rows))
    singular = np.zeros(batch, bool)
    singular[-1, -3:] = singular[0, 0] = True
    sums[singular] = 0
    rhs = rng.random((3, 700, rows))
    lower, upper = -np.roll(c, 1, -1), -c
    given = [np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in (lower, sums, upper, rhs)]
    options = {"axis": axis, "periodic": periodic}

    x = solve_tridiagonal(*in_form(given), on_singular="nan", threads=1, **options)
    for_two = solve_tridiagonal(*in_form(given), on_singular="nan", threads=2, **options)
    np.testing.assert_array_equal(for_two, x)
    x = np.moveaxis(x, axis, -1)
    expected = np.broadcast_to(singular, (3, 700))
    np.testing.assert_array_equal(np.isnan(x).all(-1), expected)
    found = sums * x - c * (np.roll(x, -1, -1) - x) + lower * (np.roll(x, 1, -1) - x)
    regular = ~expected
    np.testing.assert_allclose(found[regular], rhs[regular], rtol=0, atol=1e-13)

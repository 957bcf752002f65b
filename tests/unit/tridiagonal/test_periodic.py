"""Periodic systems: the first and the last row are coupled."""

import numpy as np
import oracle
import pytest

import pysolvers


@pytest.mark.each_value
@pytest.mark.parametrize("method", oracle.METHODS)
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_backward_error_is_a_few_eps(solve, rng, dtype, method):
    for rows in oracle.ROWS:
        system = oracle.dominant(rng, (5, rows), dtype)

        x = solve(*system, periodic=True, method=method)

        error = oracle.backward_error(*system, x, periodic=True)
        assert error <= 30 * oracle.eps(dtype), f"{rows} rows"


@pytest.mark.parametrize("method", oracle.METHODS)
def test_answer_is_the_dense_one(solve, rng, method):
    for rows in (1, 2, 3, 4, 5, 9):
        system = oracle.dominant(rng, (4, rows))

        x = solve(*system, periodic=True, method=method)

        np.testing.assert_allclose(x, oracle.solve(*system, periodic=True), rtol=1e-12)


@pytest.mark.each_value
@pytest.mark.parametrize("rows", [2, 3, 4, 17, 64, 129])
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


@pytest.mark.filterwarnings("ignore:the periodic matrix:pysolvers.SingularSystemWarning")
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_singular_ring_is_told(solve, rows):
    with pytest.raises(pysolvers.SingularSystemError) as caught:
        solve(-1.0, 2.0, -1.0, np.ones((2, rows)), periodic=True, pivot=True)

    np.testing.assert_array_equal(caught.value.systems, [[0], [1]])


@pytest.mark.parametrize("form", [float, lambda value: np.full(6, value)])
def test_ring_whose_rows_add_up_to_zero_is_warned_of(form):
    lower, diag, upper = map(form, (-1.0, 2.0, -1.0))
    rhs = np.ones(6)

    with pytest.warns(pysolvers.SingularSystemWarning, match="up to a constant"):
        pysolvers.solve_tridiagonal(lower, diag, upper, rhs, periodic=True)
    with pytest.warns(pysolvers.SingularSystemWarning, match="up to a constant"):
        pysolvers.factor_tridiagonal(lower, diag, upper, rows=6, periodic=True)
    pysolvers.solve_tridiagonal(lower, diag, upper, rhs, periodic=True, on_singular="nan")
    pysolvers.solve_tridiagonal(lower, diag, upper, rhs)
    pysolvers.solve_tridiagonal(lower, diag + 1e-9, upper, rhs, periodic=True)
    none = np.empty(0)
    assert pysolvers.solve_tridiagonal(none, none, none, none, periodic=True).size == 0


def advection(rng, systems, rows, dtype):
    """Return central differences of u_t + c u_x = nu u_xx, one implicit step: c of either sign."""
    speed, nu = rng.uniform(-200, 200, (systems, 1)), rng.uniform(0, 10, (systems, 1))
    rows_of = (-(nu + speed), 1 + 2 * nu, -(nu - speed))
    return [np.broadcast_to(a, (systems, rows)).astype(dtype) for a in rows_of]


def constant(rng, systems, rows, dtype):
    """Return matrices with the same entries in every row."""
    return [np.repeat(oracle.uniform(rng, (systems, 1), dtype), rows, axis=1) for _ in range(3)]


def piecewise(rng, systems, rows, dtype):
    """Return matrices with the same entries in every row of each third."""
    third = np.arange(rows) * 3 // rows
    return [oracle.uniform(rng, (systems, 3), dtype)[:, third] for _ in range(3)]


def transpose(matrix, trans):
    """Return lower, diag and upper of A, A^T or A^H of periodic systems."""
    lower, diag, upper = matrix
    if trans != "N":
        lower, upper = np.roll(upper, 1, axis=-1), np.roll(lower, -1, axis=-1)
    return [np.conj(a) if trans == "H" else a for a in (lower, diag, upper)]


def normwise_error(matrix, rhs, x):
    """Return max |A x - b| / max (|A| |x| + |b|) of every system, in eps of x."""
    normwise, _ = oracle.backward_errors(*matrix, rhs, x, periodic=True)
    return normwise / oracle.eps(x.dtype)


@pytest.mark.each_value
@pytest.mark.parametrize("family", [advection, constant, piecewise])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 31, 32, 33, 64, 257, 1024])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_entries_do_not_grow(rng, dtype, rows, family):
    """Elimination in order loses all digits of these systems, whose condition is small."""
    matrix = family(rng, 19, rows, dtype)
    if family is piecewise:  # where parts grow in opposite directions, numerically singular
        few = [a[:, : min(rows, 97)] for a in matrix]  # singular values of long rows take seconds
        condition = np.linalg.cond(oracle.dense(*few, periodic=True).astype(complex))
        matrix = [a[condition < 0.01 / oracle.eps(dtype)] for a in few]
    rhs = oracle.uniform(rng, matrix[0].shape, dtype)
    assert len(rhs) > 0

    for options in ({}, {"pivot": True}):
        x = pysolvers.solve_tridiagonal(*matrix, rhs, periodic=True, **options)
        assert normwise_error(matrix, rhs, x).max() <= 50
    factor = pysolvers.factor_tridiagonal(*matrix, rows=matrix[1].shape[-1], periodic=True)
    for trans in "NTH":
        x = factor.solve(rhs, trans=trans)
        assert normwise_error(transpose(matrix, trans), rhs, x).max() <= 50


def large_steps(rng, systems, rows, dtype):
    """Return `advection` with steps of 1 to 1e6 cells, of either sign, and its condition numbers.

    Most matrices are dominant. In a third of the systems the first half of the rows is ten times
    as large, in another third the last row is half as large.
    """
    shape = (systems, 1)
    speed = 10 ** rng.uniform(0, 6, shape) * rng.choice([-1, 1], shape)
    nu = np.abs(speed) * 10 ** rng.uniform(-0.1, 1, shape)
    if np.issubdtype(dtype, np.complexfloating):
        nu = nu * np.exp(1j * rng.choice([0, 0, 0.3, -0.3], shape) * rng.random(shape))
    size = np.ones((systems, rows))
    size[::3, : rows // 2] = 10
    size[1::3, -1] = 0.5
    matrix = (-(nu + speed), 1 + 2 * nu, -(nu - speed))
    return [(a * size).astype(dtype) for a in matrix], circulant_condition(*matrix, rows)


def circulant_condition(lower, diag, upper, rows):
    """Return the condition number of matrices with constant coefficients, which are normal."""
    turn = np.exp(2j * np.pi * np.arange(rows) / rows)
    values = np.abs(lower / turn + diag + upper * turn)
    return values.max(axis=-1) / values.min(axis=-1)


# Rows and systems. Errors of one sign grow with the rows: of many rows few systems show them.
OF_LARGE_STEPS = [
    *((63, 120), (64, 120), (257, 120), (4096, 36)),
    pytest.param(1000, 120, marks=pytest.mark.slow),
    pytest.param(4096, 120, marks=pytest.mark.slow),
]


@pytest.mark.each_value
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("rows", "systems"), OF_LARGE_STEPS)
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_large_steps(rng, dtype, rows, systems, axis):
    """Elimination in order adds up n rounding errors of one sign in the last row of these."""
    matrix, condition = large_steps(rng, systems, rows, dtype)
    judged = condition < 0.1 / oracle.eps(dtype)
    rhs = oracle.uniform(rng, (systems, rows), dtype)
    rhs[::2] += 1
    laid = [np.array(np.moveaxis(a, -1, axis), order="C") for a in (*matrix, rhs)]
    assert judged.sum() > 0.4 * systems

    x, info = pysolvers.solve_tridiagonal(*laid, axis=axis, periodic=True, return_info=True)
    factor = pysolvers.factor_tridiagonal(*laid[:3], axis=axis, periodic=True)
    answers = {trans: factor.solve(laid[3], trans=trans) for trans in "NTH"}

    assert 0 < info.pivoted < systems
    for trans, y in [("N", x), *answers.items()]:
        error = normwise_error(transpose(matrix, trans), rhs, np.moveaxis(y, axis, -1))
        assert error[judged].max() <= 50


@pytest.mark.each_value
@pytest.mark.parametrize("method", ["auto", "thomas"])
@pytest.mark.parametrize(("rows", "systems"), OF_LARGE_STEPS)
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_large_steps_without_exchanges(solve, rng, dtype, rows, systems, method):
    """The residual of the last row is corrected, on a device by the Thomas algorithm."""
    matrix, condition = large_steps(rng, systems, rows, dtype)
    judged = condition < 0.1 / oracle.eps(dtype)
    rhs = oracle.uniform(rng, (systems, rows), dtype)
    rhs[::2] += 1

    x = solve(*matrix, rhs, periodic=True, method=method, pivot=False)

    assert normwise_error(matrix, rhs, x)[judged].max() <= 50


@pytest.mark.parametrize("adjacent", ["rows", "systems"])
@pytest.mark.parametrize("trans", ["N", "T", "H"])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_large_steps_of_one_matrix(rng, dtype, trans, adjacent):
    """The answers replace the right-hand sides, and have the bits of single right-hand sides."""
    rows, speed = 4003, -70000.0 if trans == "N" else 70000.0
    nu = 1.01 * abs(speed)
    matrix = [np.full(rows, a, dtype) for a in (-(nu + speed), 1 + 2 * nu, -(nu - speed))]
    rhs = oracle.uniform(rng, (37, rows), dtype) + dtype(1)
    factor = pysolvers.factor_tridiagonal(*matrix, periodic=True)
    alone = np.stack([factor.solve(b, trans=trans) for b in rhs])

    for systems in (2, 19, 37):
        few = rhs[:systems]
        x = np.array(few) if adjacent == "rows" else np.array(few.T, order="C").T
        factor.solve(x, trans=trans, out=x)
        np.testing.assert_array_equal(x, alone[:systems])

    assert factor.info.pivoted == 0
    assert normwise_error(transpose(matrix, trans), rhs, alone).max() <= 25


@pytest.mark.each_value
@pytest.mark.parametrize("rows", [2, 3, 4, 5, 40, 41])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_shared_matrix_with_exchanges_gives_the_bits_of_single_systems(rng, dtype, rows):
    matrix = [a[0] for a in piecewise(rng, 1, rows, dtype)]
    rhs = oracle.uniform(rng, (37, rows), dtype)

    x = pysolvers.solve_tridiagonal(*matrix, rhs, periodic=True, pivot=True)

    assert normwise_error([a[None] for a in matrix], rhs, x).max() <= 50
    alone = [pysolvers.solve_tridiagonal(*matrix, b, periodic=True, pivot=True) for b in rhs]
    np.testing.assert_array_equal(x, alone)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("trans", ["N", "T", "H"])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_mixed_factor_in_place(rng, dtype, trans, axis):
    """Some matrices of a tile exchange rows, others do not; the answer replaces the rhs."""
    matrix = constant(rng, 21, 30, dtype)
    matrix[1][::3] += 4
    rhs = oracle.uniform(rng, (21, 30), dtype)
    laid = [np.array(np.moveaxis(a, -1, axis), order="C") for a in (*matrix, rhs)]
    factor = pysolvers.factor_tridiagonal(*laid[:3], axis=axis, periodic=True)
    x = laid[3]

    factor.solve(x, trans=trans, out=x)

    assert 0 < factor.info.pivoted <= 14
    error = normwise_error(transpose(matrix, trans), rhs, np.moveaxis(x, axis, -1))
    assert error.max() <= 50
    for k in (0, 1, 20):
        one = pysolvers.factor_tridiagonal(*(a[k] for a in matrix), periodic=True)
        np.testing.assert_array_equal(np.moveaxis(x, axis, -1)[k], one.solve(rhs[k], trans=trans))


def test_an_advection_step_is_the_one_of_the_fourier_transform(rng):
    rows, nu = 512, 0.05
    for speed in (-1.5, 1.5, -150.0):
        matrix = (-(nu + speed), np.full(rows, 1 + 2 * nu), -(nu - speed))
        rhs = oracle.uniform(rng, (rows,))
        angle = 2 * np.pi * np.fft.fftfreq(rows)
        symbol = 1 + 2 * nu - 2 * nu * np.cos(angle) + 2j * speed * np.sin(angle)
        exact = np.fft.ifft(np.fft.fft(rhs) / symbol).real

        x = pysolvers.solve_tridiagonal(*matrix, rhs, periodic=True)

        condition = np.abs(symbol).max() / np.abs(symbol).min()
        assert np.abs(x - exact).max() <= 100 * condition * oracle.eps(float) * np.abs(exact).max()


@pytest.mark.parametrize("options", [{"pivot": True}, {}])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_subnormal_matrices_are_solved(rng, dtype, periodic, options):
    """The reciprocals of the pivots overflow, and all entries are rounded to 16 eps."""
    small = np.finfo(dtype).tiny / 16
    matrix = [oracle.uniform(rng, (9, 12), dtype) for _ in range(3)]
    if not periodic:
        matrix[0][:, 0] = matrix[2][:, -1] = 0
    matrix[1][4] *= 4  # one dominant system
    rhs = oracle.uniform(rng, (9, 12), dtype)
    parts = [(a.view(small.dtype) * small) for a in (*matrix, rhs)]
    tiny = [a.view(dtype) for a in parts]
    scaled = [(a.astype(np.longdouble) / small).astype(small.dtype).view(dtype) for a in parts]

    x, info = pysolvers.solve_tridiagonal(*tiny, periodic=periodic, return_info=True, **options)

    assert len(info.singular) == 0
    assert normwise_error(scaled[:3], scaled[3], x).max() <= 50 * 16

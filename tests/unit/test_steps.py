"""Products, residuals and implicit steps against dense matrices and exact arithmetic."""

import functools
from fractions import Fraction

import numpy as np
import oracle
import pytest

import pysolvers
from pysolvers import RowSums, residual, solve_tridiagonal, theta_step, tridiagonal_matvec

DTYPES = (np.float32, np.float64, np.complex64, np.complex128)
ROWS = (1, 2, 3, 7, 16, 17, 33, 130)
SHAPES = ((1,), (3,), (9,), (2, 40), (40, 3))
LAYOUTS = ("last", "first", "reversed")


def laid_out(array, layout):
    """Return an array with the rows last in memory, first in memory, or backwards."""
    if layout == "first":
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(array, -1, 0)), 0, -1)
    if layout == "reversed":
        return np.ascontiguousarray(array[..., ::-1])[..., ::-1]
    return np.ascontiguousarray(array)


def operands(seed, shape, dtype, layout="last"):
    rng = np.random.default_rng(seed)
    return tuple(laid_out(a, layout) for a in oracle.dominant(rng, shape, dtype))


def wide(dtype):
    return np.clongdouble if np.dtype(dtype).kind == "c" else np.longdouble


def product(lower, diag, upper, x, *, periodic=False):
    """Return A x in long double."""
    return oracle.multiply(
        *(np.asarray(a, wide(x.dtype)) for a in (lower, diag, upper, x)), periodic=periodic
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("periodic", [False, True])
def test_products_are_those_of_the_matrix(dtype, layout, periodic):
    for rows in ROWS:
        for batch in SHAPES:
            lower, diag, upper, x = operands(rows, (*batch, rows), dtype, layout)
            y = tridiagonal_matvec(lower, diag, upper, x, periodic=periodic)
            truth = product(lower, diag, upper, x, periodic=periodic)
            bound = (
                4
                * np.finfo(dtype).eps
                * product(*(np.abs(a) for a in (lower, diag, upper, x)), periodic=periodic)
            )
            assert y.dtype == dtype
            assert (np.abs(y - truth) <= bound.real * (2 if y.dtype.kind == "c" else 1)).all()


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_products_along_any_axis_and_with_shared_diagonals(axis):
    rng = np.random.default_rng(5)
    x = rng.standard_normal((19, 20, 21))
    n = x.shape[axis]
    lower, diag, upper = rng.standard_normal((3, n))
    y = tridiagonal_matvec(lower[1:], diag, upper[:-1], x, axis=axis)
    truth = np.moveaxis(np.moveaxis(x, axis, -1) @ oracle.dense(lower, diag, upper).T, -1, axis)
    np.testing.assert_allclose(y, truth, rtol=1e-13, atol=1e-13)
    out = np.empty_like(x)
    assert tridiagonal_matvec(lower, diag, upper, x, axis=axis, out=out) is out
    np.testing.assert_array_equal(out, y)


def test_products_of_a_real_matrix_and_complex_vectors():
    lower, diag, upper, _ = operands(1, (5, 6, 12), np.float64)
    x = operands(2, (5, 6, 12), np.complex128)[3]
    y = tridiagonal_matvec(lower, diag, upper, x)
    np.testing.assert_allclose(y, product(lower, diag, upper, x).astype(complex), rtol=1e-14)


def test_a_product_ignores_the_corners_and_refuses_an_overlap():
    x = np.arange(1.0, 5.0)
    lower, diag, upper = np.full(4, 2.0), np.full(4, 3.0), np.full(4, 5.0)
    lower[0] = upper[3] = np.nan
    truth = [3 + 10, 2 + 6 + 15, 4 + 9 + 20, 6 + 12]
    np.testing.assert_array_equal(tridiagonal_matvec(lower, diag, upper, x), truth)
    with pytest.raises(ValueError, match="out overlaps x"):
        tridiagonal_matvec(lower, diag, upper, x, out=x)


def test_a_product_with_row_sums_keeps_their_digits():
    # The rows of a constant are the row sums, which are lost in the diagonal.
    n, s = 50, 1e-20
    ones = np.ones((7, n))
    y = tridiagonal_matvec(-1.0, RowSums(np.full(n, s)), -1.0, 3 * ones)
    np.testing.assert_array_equal(y, 3 * s * ones)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_residuals(dtype, layout):
    lower, diag, upper, x = operands(3, (4, 11, 37), dtype, layout)
    b = operands(4, (4, 11, 37), dtype, layout)[3]
    truth = b - product(lower, diag, upper, x)
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(
        residual(lower, diag, upper, x, b), truth.astype(dtype), atol=20 * eps * 4
    )
    inputs = b.copy()
    assert residual(lower, diag, upper, x, inputs, out=inputs) is inputs
    np.testing.assert_array_equal(inputs, residual(lower, diag, upper, x, b))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extended_residuals_have_twice_the_digits(dtype):
    lower, diag, upper, b = operands(6, (9, 21), dtype)
    x = solve_tridiagonal(lower, diag, upper, b)
    r = residual(lower, diag, upper, x, b, extended=True)
    eps = float(np.finfo(dtype).eps)
    for j, i in np.ndindex(b.shape):
        terms = [Fraction(float(b[j, i])), -Fraction(float(diag[j, i])) * Fraction(float(x[j, i]))]
        for entries, k in ((lower, i - 1), (upper, i + 1)):
            if 0 <= k < b.shape[1]:
                terms.append(-Fraction(float(entries[j, i])) * Fraction(float(x[j, k])))
        exact, size = sum(terms), float(sum(map(abs, terms)))
        assert abs(float(Fraction(float(r[j, i])) - exact)) <= eps * abs(exact) + 8 * eps**2 * size


def test_extended_residuals_of_complex_numbers():
    lower, diag, upper, b = operands(7, (3, 12), np.complex64)
    x = solve_tridiagonal(lower, diag, upper, b)
    truth = b - product(lower, diag, upper, x)
    r = residual(lower, diag, upper, x, b, extended=True)
    np.testing.assert_allclose(r, truth.astype(np.complex64), rtol=3e-7, atol=1e-13)


def dense_step(lower, diag, upper, u, dt, theta, source=0.0, *, periodic=False):
    """Return the step by dense matrices of the equations themselves."""
    a = oracle.dense(lower, diag, upper, periodic=periodic)
    identity = np.eye(a.shape[-1])
    rhs = u + (1 - theta) * dt * np.einsum("...ij,...j->...i", a, u) + dt * source
    return np.linalg.solve(identity - theta * dt * a, rhs[..., None])[..., 0]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("periodic", [False, True])
def test_theta_steps_are_those_of_the_equations(dtype, layout, periodic):
    for rows, theta in ((1, 0.5), (2, 1), (3, 0.25), (17, 0.5), (70, 0.6), (70, 0)):
        for batch in ((1,), (9,), (3, 17)):
            lower, diag, upper, u = operands(rows, (*batch, rows), dtype, layout)
            diag = -np.abs(diag)
            source = operands(9, (*batch, rows), dtype, layout)[3]
            x = theta_step(
                lower, diag, upper, u, dt=0.7, theta=theta, source=source, periodic=periodic
            )
            longer = np.complex128 if np.dtype(dtype).kind == "c" else np.float64
            double = [np.asarray(a, longer) for a in (lower, diag, upper, u)]
            truth = dense_step(*double, 0.7, theta, source, periodic=periodic)
            assert x.dtype == dtype
            np.testing.assert_allclose(x, truth, atol=200 * np.finfo(dtype).eps, rtol=0)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_theta_steps_with_one_matrix(axis):
    rng = np.random.default_rng(8)
    u = rng.standard_normal((23, 24, 25))
    n = u.shape[axis]
    lower, upper = rng.uniform(0, 1, (2, n))
    diag = -(lower + upper)
    x = theta_step(lower[1:], diag, upper[:-1], u, dt=3.0, axis=axis)
    truth = dense_step(lower, diag, upper, np.moveaxis(u, axis, -1), 3.0, 0.5)
    np.testing.assert_allclose(np.moveaxis(x, axis, -1), truth, atol=1e-13)
    out = u.copy()
    assert theta_step(lower, diag, upper, out, dt=3.0, axis=axis, out=out) is out
    np.testing.assert_array_equal(out, x)


@pytest.mark.parametrize("columns", [64, 131])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_adjacent_systems_are_made_in_registers_as_in_blocks(dtype, columns):
    rng = np.random.default_rng(columns)
    shape = (37, columns)
    lower, upper = rng.uniform(0, 1, (2, *shape)).astype(dtype)
    diag, u, source = -(lower + upper), *rng.standard_normal((2, *shape)).astype(dtype)
    depth = rng.integers(0, 38, columns)
    inside = (np.arange(37)[:, None] < depth) | (rng.random(shape) < 0.1)
    for array in (lower, diag, upper, source):
        array[~inside] = np.nan
    options = {"dt": 0.3, "theta": 0.7}

    x = theta_step(lower, diag, upper, u, source=source, where=inside, axis=0, **options)

    turned = [np.ascontiguousarray(a.T) for a in (lower, diag, upper, u, source, inside)]
    same = theta_step(*turned[:4], source=turned[4], where=turned[5], **options)
    np.testing.assert_array_equal(x, same.T)
    np.testing.assert_array_equal(x[~inside], u[~inside])
    h = 0.7 * 0.3
    for k in range(0, columns, 9):
        rows = np.flatnonzero(inside[:, k])
        a = np.zeros((37, 37))
        for i in rows:
            a[i, i] = diag[i, k]
            for j, entry in ((i - 1, lower[i, k]), (i + 1, upper[i, k])):
                if j in rows:
                    a[i, j] = entry
        rhs = u[:, k] + h * np.where(inside[:, k], source[:, k], 0)
        y = np.linalg.solve(np.eye(37) - h * a, rhs.astype(float))
        exact = u[:, k] + (y - u[:, k]) / 0.7
        np.testing.assert_allclose(x[:, k], exact, atol=100 * np.finfo(dtype).eps)


def test_theta_steps_in_place_and_with_any_number_of_threads_have_the_same_bits():
    for shape in ((5000, 33), (2, 20001)):
        lower, diag, upper, u = operands(11, shape, np.float64)
        diag, source = -np.abs(diag), np.cos(u)
        x = theta_step(lower, diag, upper, u, dt=0.3, source=source, threads=1)
        kept = u.copy()
        theta_step(lower, diag, upper, kept, dt=0.3, source=source, out=kept, threads=2)
        np.testing.assert_array_equal(kept, x)
        truth = oracle.multiply(-0.15 * lower, 1 - 0.15 * diag, -0.15 * upper, x)
        right = u + 0.15 * oracle.multiply(lower, diag, upper, u) + 0.3 * source
        np.testing.assert_allclose(truth, right, atol=1e-13)


def test_theta_steps_of_a_real_matrix_with_complex_values():
    lower, diag, upper, _ = operands(1, (5, 6, 12), np.float64)
    u = operands(2, (5, 6, 12), np.complex128)[3]
    x = theta_step(lower, -np.abs(diag), upper, u, dt=0.5)
    truth = dense_step(lower, -np.abs(diag), upper, u, 0.5, 0.5)
    np.testing.assert_allclose(x, truth, atol=1e-13)


@pytest.mark.parametrize("theta", [0.5, 1.0])
def test_theta_steps_converge_with_their_order(theta):
    n = 40
    h = 1 / (n + 1)
    y = np.linspace(h, 1 - h, n)
    a = np.full(n, 1 / h**2)
    rate = 4 / h**2 * np.sin(np.pi * h / 2) ** 2  # of the discrete mode
    errors = []
    for steps in (20, 40):
        u = np.sin(np.pi * y)
        for _ in range(steps):
            u = theta_step(a, -2 * a, a, u, dt=0.1 / steps, theta=theta)
        errors.append(np.abs(u - np.exp(-0.1 * rate) * np.sin(np.pi * y)).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2 if theta == 0.5 else 1, abs=0.05)


@pytest.mark.parametrize("axis", [-1, 0])
def test_explicit_steps(axis):
    lower, diag, upper, u = operands(4, (6, 6), np.float64)
    source = np.arange(6.0)
    across = source if axis == -1 else source[:, None]
    line = [np.moveaxis(a, axis, -1) for a in (lower, diag, upper, u)]
    truth = u + 0.1 * np.moveaxis(oracle.multiply(*line), -1, axis) + 0.1 * across
    options = {"dt": 0.1, "theta": 0, "axis": axis}
    for given in (source, source.tolist()):  # one axis lies along the systems
        x = theta_step(lower, diag, upper, u.tolist(), source=given, **options)
        np.testing.assert_allclose(x, truth, atol=1e-14)
    kept = u.copy()
    theta_step(lower, diag, upper, kept, source=source, out=kept, **options)
    np.testing.assert_array_equal(kept, x)
    single = [a.astype(np.float32) for a in (lower, diag, upper, u, source)]
    options["dt"] = np.float64(0.1)
    x = theta_step(*single[:4], source=single[4], **options)
    assert x.dtype == np.float32
    np.testing.assert_allclose(x, truth, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"source has shape \(4, 6\), .* u of shape \(6, 6\)"):
        theta_step(lower, diag, upper, u, source=np.ones((4, 6)), **options)


def test_a_theta_step_with_row_sums_conserves_where_the_diagonal_loses_digits():
    n = 64
    k = np.full((3, n + 1), 1e14)
    k[:, [0, -1]] = 0
    u = np.random.default_rng(2).uniform(1, 2, (3, n))
    x = theta_step(k[:, :-1], RowSums(np.zeros((3, n))), k[:, 1:], u, dt=1.0, theta=1)
    np.testing.assert_allclose(x.sum(-1), u.sum(-1), rtol=1e-14)


def test_theta_step_says_what_is_wrong():
    u = np.ones(5)
    with pytest.raises(ValueError, match=r"theta must be in 0 \.\. 1, got 2"):
        theta_step(1.0, -2.0, 1.0, u, dt=1.0, theta=2)
    with pytest.raises(TypeError, match="dt"):
        theta_step(1.0, -2.0, 1.0, u, dt="1")
    with pytest.raises(ValueError, match="dt must be finite"):
        theta_step(1.0, -2.0, 1.0, u, dt=np.inf)
    with pytest.raises(pysolvers.SingularSystemError):
        theta_step(0.0, 2.0, 0.0, u, dt=1.0)
    assert np.isnan(theta_step(0.0, 2.0, 0.0, u, dt=1.0, on_singular="nan")).all()
    with pytest.raises(ValueError, match="u is nan at row 2"):
        theta_step(1.0, -2.0, 1.0, [1.0, 1.0, np.nan], dt=1.0, check_finite=True)
    for theta in (0, 0.5):
        with pytest.raises(ValueError, match="on_singular must be one of"):
            theta_step(1.0, -2.0, 1.0, u, dt=1.0, theta=theta, on_singular="no")
        with pytest.raises(TypeError, match="pivot must be a bool or None"):
            theta_step(1.0, -2.0, 1.0, u, dt=1.0, theta=theta, pivot="no")


@pytest.mark.parametrize("options", [{}, {"return_info": True}, {"where": True}], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_systems_of_steps_are_nan_where_that_is_asked(options, dtype):
    diag = np.full((3, 9), -2.0, dtype)
    diag[1, 8] = 2  # 1 - theta dt diag is 0 in this row, which is coupled to no other
    u = np.ones((3, 9), dtype)
    for threads in (1, 2):
        x = theta_step(
            0.0, diag, 0.0, u, dt=1.0, pivot=False, on_singular="nan", threads=threads, **options
        )
        x = x[0] if "return_info" in options else x
        assert np.isnan(x).all(1).tolist() == [False, True, False]
        assert np.isfinite(x[::2]).all()


@pytest.mark.parametrize("dt", [0.5, -0.5])
def test_signs_of_row_sums_of_a_step(dt):
    u, sign = np.ones(5), np.sign(dt)
    ends = np.array([np.nan, 1, 1, 1, 1])  # the first one is ignored

    def step(lower, sums, upper, **options):
        return theta_step(sign * lower, RowSums(sign * sums, **options), upper, u, dt=dt, theta=1)

    for wrong in ((-1.0, 0.0, sign), (ends, 0.0, -sign), (1.0, np.linspace(0, 2.1, 5), sign)):
        with pytest.raises(ValueError, match=r"with RowSums lower and upper must be [<>]= 0 and"):
            step(*wrong)
    step(-1.0, 0.0, sign, check_signs=False)
    assert np.isfinite(step(ends, np.linspace(-1, 1.9, 5), sign)).all()
    with pytest.raises(ValueError, match=r"RowSums.s is nan at row 2"):
        step(1.0, np.array([0, 0, np.nan, 0, 0]), sign)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pivot", [None, True])
@pytest.mark.parametrize("periodic", [False, True])
def test_several_right_sides_of_own_matrices(dtype, pivot, periodic):
    rng = np.random.default_rng(3)
    for batch, rows, axis in (((17,), 40, -1), ((3, 14), 33, 0), ((40,), 7, 0)):
        shape = (*batch, rows) if axis == -1 else (rows, *batch)
        matrix = oracle.general if pivot else oracle.dominant
        lower, diag, upper, _ = (
            np.moveaxis(a, -1, axis) for a in matrix(rng, (*batch, rows), dtype)
        )
        rhs = oracle.uniform(rng, (9, *shape), dtype)
        along = axis if axis < 0 else axis + 1
        x, info = solve_tridiagonal(
            *(lower, diag, upper, rhs), axis=along, pivot=pivot, periodic=periodic, return_info=True
        )
        assert info.systems == 9 * np.prod(batch)
        assert info.pivoted == (info.systems if pivot else 0)
        terms = [np.moveaxis(a, axis, -1) for a in (lower, diag, upper)]
        back = product(*terms, np.moveaxis(x, along, -1), periodic=periodic)
        size = product(*map(np.abs, (*terms, np.moveaxis(x, along, -1))), periodic=periodic)
        error = np.abs(back - np.moveaxis(rhs, along, -1))
        largest = np.abs(size).max(-1, keepdims=True)  # with exchanges: normwise
        assert (error <= 60 * np.finfo(dtype).eps * (largest if pivot else np.abs(size))).all()


def test_a_singular_matrix_of_several_right_sides_is_found_with_each_of_them():
    diag = np.full((20, 9), 3.0)
    diag[13, 4] = 0
    with pytest.raises(pysolvers.SingularSystemError) as error:
        solve_tridiagonal(np.zeros((20, 9)), diag, np.zeros((20, 9)), np.ones((3, 20, 9)))
    np.testing.assert_array_equal(error.value.systems, [[0, 13], [1, 13], [2, 13]])
    np.testing.assert_array_equal(error.value.rows, [4, 4, 4])


def complementarity(lower, diag, upper, u, least, dt, theta, x):
    """Return the residuals B x - r of the step and the distances x - g."""
    a = oracle.dense(lower, diag, upper)
    rhs = u + (1 - theta) * dt * a @ u
    return x - theta * dt * a @ x - rhs, x - least


@pytest.mark.parametrize("theta", [0.5, 1])
@pytest.mark.parametrize("contact", ["first", "last"])
def test_projected_steps_solve_the_complementarity_problem(theta, contact):
    n = 60
    s = np.linspace(0.0, 3.0, n)
    order = slice(None) if contact == "first" else slice(None, None, -1)
    least = np.maximum(1 - s, 0.0)[order]
    vol, rate = 0.3, 0.05
    h = s[1]
    second, first = 0.5 * vol**2 * s**2 / h**2, 0.5 * rate * s / h
    lower, diag, upper = second - first, -2 * second - rate, second + first
    for entries in (lower, diag, upper):
        entries[[0, -1]] = 0
    if contact == "last":
        lower, diag, upper = upper[::-1].copy(), diag[::-1].copy(), lower[::-1].copy()
    u = least.copy()
    for _ in range(5):
        x = theta_step(
            lower, diag, upper, u, dt=0.02, theta=theta, projected=least, contact=contact
        )
        gap, distance = complementarity(lower, diag, upper, u, least, 0.02, theta, x)
        assert (distance >= 0).all()
        assert (gap >= -1e-15).all()
        assert np.minimum(gap, distance).max() < 1e-14
        assert 0 < (distance[order] == 0)[: n // 3].sum() < n // 3
        u = x


def american_put(steps, s, vol, rate, time):
    """Return prices of American puts of strike 1 by a binomial tree (Cox, Ross, Rubinstein)."""
    dt = time / steps
    up = np.exp(vol * np.sqrt(dt))
    p = (np.exp(rate * dt) - 1 / up) / (up - 1 / up)
    k = np.arange(steps + 1)
    value = np.maximum(1 - s * up ** (2.0 * k - steps), 0)
    for level in range(steps - 1, -1, -1):
        k = np.arange(level + 1)
        held = np.exp(-rate * dt) * (p * value[1:] + (1 - p) * value[:-1])
        value = np.maximum(held, 1 - s * up ** (2.0 * k - level))
    return value[0]


def test_american_puts_agree_with_a_binomial_tree():
    n, rate, time = 400, 0.05, 1.0
    vols = np.array([0.2, 0.3, 0.4, 0.3])[:, None]
    s = np.linspace(0, 4, n)
    h = s[1]
    second, first = 0.5 * vols**2 * s**2 / h**2, 0.5 * rate * s / h + 0 * vols
    lower, diag, upper = second - first, -2 * second - rate, second + first
    for entries in (lower, diag, upper):
        entries[:, [0, -1]] = 0
    least = np.maximum(1 - s, 0)
    u = np.tile(least, (4, 1))
    for k in range(100):
        u = theta_step(
            lower, diag, upper, u, dt=time / 100, theta=1 if k < 4 else 0.5, projected=least
        )
    for j, start in enumerate((0.9, 1.0, 1.1, 1.2)):
        tree = american_put(2000, start, vols[j, 0], rate, time)
        assert abs(np.interp(start, s, u[j]) - tree) < 2e-3


def test_bounds_are_of_real_numbers():
    with pytest.raises(TypeError, match="projected needs real operands, got complex128"):
        theta_step(1.0, -2.0, 1.0, np.ones(4) * 1j, dt=1.0, projected=0.0)


def test_options_that_contradict_projected():
    u = np.ones(5)
    with pytest.raises(ValueError, match="periodic=True contradicts projected"):
        theta_step(1.0, -2.0, 1.0, u, dt=1.0, projected=0.0, periodic=True)
    with pytest.raises(ValueError, match="contact must be 'first' or 'last', got 'left'"):
        theta_step(1.0, -2.0, 1.0, u, dt=1.0, projected=0.0, contact="left")


@pytest.mark.parametrize("name", ["T", "K", "dz"])
def test_operands_of_diffusion_that_are_none_are_errors(name):
    given = {"T": np.ones(5), "K": 1.0, "dz": 1.0, name: None}
    with pytest.raises(TypeError, match=f"implicit_diffusion: {name} is None: pass a number"):
        pysolvers.implicit_diffusion(*given.values(), 0.1, axis=0)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("K", np.ma.ones(4), r"K must be a plain array, .* write K\.filled\(value\)"),
        ("dz", np.ma.ones(5), r"dz must be a plain array, .* write dz\.filled\(value\)"),
        ("K", "1", "K: need float32"),
        ("dz", np.ones(4), "dz has 4 entries, but the systems along axis 1 have 5 rows"),
        ("K", np.ones((2, 4)), r"K \(2, 4\), dz \(\), K \(2, 4\), T \(3, 5\)"),
        ("out", "dz", "out overlaps dz; it may be T itself"),
    ],
)
def test_operands_of_diffusion_have_their_names_in_messages(name, value, text):
    given = {"T": np.ones((3, 5)), "K": 1.0, "dz": np.ones((3, 5)) if name == "out" else 1.0}
    given[name] = given["dz"] if name == "out" else value
    with pytest.raises((TypeError, ValueError), match=text):
        pysolvers.implicit_diffusion(**given, dt=0.1, axis=1)


@pytest.mark.parametrize("name", ["flux_first", "flux_last", "value_first", "value_last"])
def test_conditions_of_diffusion_are_finite(name):
    T, values = np.ones((3, 5)), np.array([1.0, np.inf, 1.0])
    where = np.ones((3, 5), bool)
    where[1] = False
    step = functools.partial(pysolvers.implicit_diffusion, T, 1.0, 1.0, 0.1, axis=1)
    with pytest.raises(ValueError, match=rf"{name} is inf at batch index \(1,\), and check_finite"):
        step(**{name: values}, check_finite=True)
    assert np.isfinite(step(**{name: values}, where=where, check_finite=True)).all()
    with pytest.raises(ValueError, match="initial is nan, and check_finite"):
        pysolvers.linear_recurrence(0.5, T, initial=np.nan, check_finite=True)


def test_matrices_and_sources_of_single_precision_are_not_rounded_again():
    """float32 with float64 gives float64: what is computed from the entries has that precision."""
    rng = np.random.default_rng(3)
    lower, upper, diag, source = rng.uniform(-1, 1, (4, 5)).astype(np.float32)
    u = rng.uniform(-1, 1, (5, 5))
    wide = [np.asarray(a, np.float64) for a in (lower, diag, upper, source)]
    for theta in (0.0, 0.7):
        options = {"dt": 0.3, "theta": theta, "axis": 0}
        truth = theta_step(*wide[:3], u, source=wide[3], **options)
        x = theta_step(lower, diag, upper, u, source=source, **options)
        np.testing.assert_allclose(x, truth, rtol=0, atol=1e-15)
    for bytes_of in ("<", ">"):
        entries = [a.astype(a.dtype.newbyteorder(bytes_of)) for a in (lower, diag)]
        made = pysolvers.factor_theta(*entries, wide[2], **options)
        np.testing.assert_allclose(made.step(u, source), truth, rtol=0, atol=1e-15)
        made = pysolvers.factor_theta(*entries, upper, **options)
        assert made.dtype == np.float32

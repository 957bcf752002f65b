"""`RowSums` in the place of the diagonal: signs, options, shapes, and errors."""

import pickle
from functools import partial

import exact_lines
import numpy as np
import pytest

from pysolvers import (
    RowSums,
    SingularSystemError,
    SingularSystemWarning,
    factor_tridiagonal,
    solve_tridiagonal,
)

ROWS = 7
BOTH = pytest.mark.parametrize("operation", ["solve_tridiagonal", "factor_tridiagonal"])


@pytest.fixture(params=[-1, 0], ids=["last", "first"])
def axis(request):
    return request.param


def matrix(rng, shape=(3, ROWS)):
    lower, upper = -rng.random((2, *shape)) - 0.1
    return lower, rng.random(shape), upper


def called(operation, lower, sums, upper, axis=-1, **options):
    """Call a function with systems along the last axis of the operands, stored along `axis`."""
    lower, sums, upper = (
        np.ascontiguousarray(np.moveaxis(a, -1, axis)) if np.ndim(a) else a
        for a in (lower, sums, upper)
    )
    if operation == "factor_tridiagonal":
        return factor_tridiagonal(lower, RowSums(sums), upper, axis=axis, **options)
    rhs = np.ones(max((lower, sums, upper), key=np.size).shape)
    return solve_tridiagonal(lower, RowSums(sums), upper, rhs, axis=axis, **options)


@BOTH
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("operand", range(3))
def test_an_entry_of_the_wrong_sign_is_named(rng, operation, operand, sign, axis):
    operands = [sign * a for a in matrix(rng)]
    operands[operand][2, 4] = value = (-0.125, 0.125)[operand != 1] * sign
    name = ("lower", "RowSums.s", "upper")[operand]
    where = f"{operation}: {name} is {value} at batch index (2,), row 4, but"

    with pytest.raises(ValueError, match="pass the diagonal") as caught:
        called(operation, *operands, axis=axis)

    assert str(caught.value).startswith(where)


@BOTH
def test_every_form_of_an_operand_is_checked(rng, operation):
    lower, sums, upper = matrix(rng)
    for form, where in (
        (0.5, "batch index (0,), row 0"),
        (np.full((3, 1), 0.5), "batch index (0,), row 0"),
        (
            np.r_[-np.ones(ROWS - 2), 0.5],
            f"batch index (0,), row {ROWS - 1}",
        ),  # without the first entry
        (np.c_[-np.ones((3, ROWS - 2)), [-1, 0.5, -1]], f"batch index (1,), row {ROWS - 1}"),
    ):
        with pytest.raises(ValueError) as caught:
            called(operation, form, sums, upper)
        assert f"lower is 0.5 at {where}" in str(caught.value)
    with pytest.raises(ValueError, match=r"RowSums.s is -1.0 at batch index \(0,\), row 0"):
        called(operation, lower, -1.0, upper)


@BOTH
def test_entries_that_are_ignored_have_any_sign(rng, operation, axis):
    lower, sums, upper = matrix(rng)
    expected = called(operation, lower, sums, upper, axis)
    for value in (5.0, np.nan, np.inf):
        lower[:, 0] = upper[:, -1] = value
        found = called(operation, lower, sums, upper, axis)
        if operation == "solve_tridiagonal":
            np.testing.assert_array_equal(found, expected)
    lower[:, 0] = upper[:, -1] = 5.0
    with pytest.raises(ValueError, match=r"lower is 5.0 at batch index \(0,\), row 0"):
        called(operation, lower, sums, upper, axis, periodic=True)
    options = {"rows": 1} if operation == "factor_tridiagonal" else {}
    called(operation, lower[:, :1], sums[:, :1], upper[:, :1], **options)


@BOTH
def test_zeros_have_both_signs(operation):
    for sign in (1, -1):
        called(operation, 0.0, np.full(ROWS, sign * 2.0), 0.0)
        called(operation, np.full(ROWS, -0.0), np.full(ROWS, sign * 2.0), -sign * 1.0)


def test_signs_are_those_of_all_matrices_of_a_call(rng):
    operands = [np.concatenate([a, -a]) for a in matrix(rng)]
    with pytest.raises(ValueError, match="in all matrices of a call"):
        called("solve_tridiagonal", *operands)


@BOTH
def test_unchecked_signs(rng, operation):
    lower, sums, upper = matrix(rng)
    lower[1, 3] = 0.25
    rhs = np.ones_like(sums)
    form = RowSums(sums, check_signs=False)
    if operation == "solve_tridiagonal":
        x = solve_tridiagonal(lower, form, upper, rhs)
    else:
        x = factor_tridiagonal(lower, form, upper).solve(rhs)
    for k in range(3):
        truth = exact_lines.solve(lower[k], sums[k], upper[k], rhs[k])
        np.testing.assert_allclose(x[k], truth, rtol=1e-13)


@BOTH
def test_options_that_do_not_fit(rng, operation):
    call = partial(called, operation, *matrix(rng))
    with pytest.raises(ValueError, match="pivot must be None or False with RowSums, got True"):
        call(pivot=True)
    call(pivot=False)
    with pytest.raises(TypeError, match="pivot must be a bool or None"):
        call(pivot="yes")
    if operation == "solve_tridiagonal":
        for method in ("thomas", "pcr", "pivoted"):
            with pytest.raises(ValueError, match="method must be 'auto' with RowSums, got"):
                call(method=method)
    with pytest.raises(TypeError, match="check_signs must be"):
        RowSums(1.0, check_signs=2)


@BOTH
def test_complex_matrices(rng, operation):
    lower, sums, upper = matrix(rng)
    with pytest.raises(TypeError, match=r"must be real, got complex128.*pass the diagonal"):
        called(operation, lower, sums * 1j, upper)


@pytest.mark.parametrize("place", ["lower", "upper", "rhs"])
def test_row_sums_in_another_place(place):
    named = {"lower": -1.0, "diag": 3.0, "upper": -1.0, "rhs": np.ones(4)}
    named[place] = RowSums(named[place])
    with pytest.raises(TypeError, match="stands in the place of diag"):
        solve_tridiagonal(**named)


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("periodic", [False, True])
def test_singular_matrices(rng, periodic, rows):
    sums = np.ones((4, rows))
    sums[2] = 0
    rhs = rng.random((4, rows))
    options = {"periodic": periodic}
    with pytest.raises(SingularSystemError) as caught:
        solve_tridiagonal(-1.0, RowSums(sums), -1.0, rhs, **options)
    assert (caught.value.systems, caught.value.rows) == ([[2]], [rows - 1])
    with pytest.warns(SingularSystemWarning):
        solve_tridiagonal(-1.0, RowSums(sums), -1.0, rhs, **options, on_singular="warn")
    x = solve_tridiagonal(-1.0, RowSums(sums), -1.0, rhs, **options, on_singular="nan")
    assert (np.isnan(x).all(axis=1) == [False, False, True, False]).all()
    factor = factor_tridiagonal(-1.0, RowSums(sums), -1.0, rows=rows, **options, on_singular="nan")
    for trans in "NTH":
        y = factor.solve(rhs, trans=trans)
        assert (np.isnan(y).all(axis=1) == [False, False, True, False]).all()


def test_info_and_unchanged_operands(rng):
    lower, sums, upper = matrix(rng)
    before = [a.copy() for a in (lower, sums, upper)]
    rhs = rng.random((3, ROWS))
    x, info = solve_tridiagonal(lower, RowSums(sums), upper, rhs, return_info=True)
    assert (info.systems, info.rows, info.pivoted) == (3, ROWS, 0)
    for a, b in zip((lower, sums, upper), before, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(x, solve_tridiagonal(lower, RowSums(sums), upper, rhs, threads=2))
    np.testing.assert_array_equal(
        solve_tridiagonal(lower, RowSums(sums), upper, rhs, check_finite=True), x
    )
    sums[1, 2] = np.nan
    with pytest.raises(ValueError, match="check_finite=True requires finite values"):
        solve_tridiagonal(lower, RowSums(sums), upper, rhs, check_finite=True, on_singular="nan")


def test_refactor_keeps_the_form(rng):
    lower, sums, upper = matrix(rng)
    factor = factor_tridiagonal(lower, RowSums(sums), upper)
    ordinary = factor_tridiagonal(lower, 5.0, upper)
    x = factor.solve(np.ones(ROWS))
    with pytest.raises(ValueError, match=r"made from RowSums: pass RowSums\(s\)"):
        factor.refactor(lower, sums, upper)
    with pytest.raises(ValueError, match="made from a diagonal: pass the diagonal"):
        ordinary.refactor(lower, RowSums(sums), upper)
    with pytest.raises(ValueError, match=r"TridiagonalFactor.refactor: RowSums.s is -"):
        factor.refactor(lower, RowSums(-sums), upper)
    np.testing.assert_array_equal(factor.solve(np.ones(ROWS)), x)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(factor)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("periodic", [False, True])
def test_transposes_keep_every_unknown(rng, dtype, periodic):
    """Matrices that are not symmetric, with a condition number of about 1e25."""
    rows = 40
    lower = -(10 ** rng.uniform(-3, 3, (4, rows)))
    upper = np.roll(lower, -1, -1) * rng.uniform(0.7, 1.4, (4, 1))
    sums = 10 ** rng.uniform(-25, -20, (4, rows))
    lower, sums, upper = (a.astype(dtype) for a in (lower, sums, upper))
    rhs = rng.random((4, rows)).astype(dtype)
    factor = factor_tridiagonal(lower, RowSums(sums), upper, periodic=periodic)
    for trans in "TH":
        x = factor.solve(rhs, trans=trans)
        for k in range(4):
            operands = lower[k], sums[k], upper[k], rhs[k]
            truth = exact_lines.solve_transposed(*operands, periodic=periodic)
            error = np.abs(x[k] - truth) / truth
            assert error.max() <= 80 * np.finfo(dtype).eps


def test_an_ocean_column_in_float32():
    """60 layers of 1 to 200 m, mixed by 1 m2/s for a step of 1e9 s."""
    depth = np.geomspace(1.0, 200.0, 60)
    distance = (depth[1:] + depth[:-1]) / 2
    rate = 1e9 * 1.0 / distance  # dt k / distance
    lower, upper = (-(rate / size).astype("float32") for size in (depth[1:], depth[:-1]))
    heat = np.where(np.arange(60) < 5, 1.0, 0.0).astype("float32")
    x = solve_tridiagonal(lower, RowSums(np.float32(1.0)), upper, heat)
    full = np.r_[0, lower], np.ones(60), np.r_[upper, 0], heat
    truth = exact_lines.solve(*full)
    assert np.abs(x / truth - 1).max() < 5e-6
    diag = np.float32(1.0) - np.r_[np.float32(0), lower] - np.r_[upper, np.float32(0)]
    ordinary = solve_tridiagonal(lower, diag, upper, heat)
    assert np.abs(ordinary / truth - 1).max() > 1e-2


def test_host_arrays_of_jax():
    jnp = pytest.importorskip("jax.numpy")
    x = solve_tridiagonal(-1.0, RowSums(jnp.full(5, 2.0)), -1.0, jnp.full(5, 4.0))
    assert isinstance(x, type(jnp.ones(1)))
    np.testing.assert_allclose(x, 2.0, rtol=1e-6)
    with pytest.raises(ValueError, match=r"RowSums.s is -2.0 at row 0"):
        solve_tridiagonal(-1.0, RowSums(jnp.full(5, -2.0)), -1.0, jnp.full(5, 4.0))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("rows", [1 << 13, (1 << 15) + 1, 1 << 18])
def test_one_long_system(rng, rows, periodic, dtype):
    """The truth for the right-hand side s is 1 in every row."""
    lower = -(10 ** rng.uniform(-3, 3, rows)).astype(dtype)
    sums = (10 ** rng.uniform(-20, -10, rows)).astype(dtype)
    x = solve_tridiagonal(lower, RowSums(sums), np.roll(lower, -1), sums, periodic=periodic)
    assert np.abs(x.astype(float) - 1).max() <= rows / 2 * np.finfo(dtype).eps

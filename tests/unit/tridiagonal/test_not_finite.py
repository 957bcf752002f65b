"""NaN and infinity in a matrix: an error that names the system and the row, in all methods.

On the CPU. On a device such a matrix gives NaN without an error.
"""

import warnings
from functools import partial

import numpy as np
import oracle
import pytest

import pysolvers
from pysolvers import RowSums, SingularSystemError, factor_tridiagonal, solve_tridiagonal

NAMES = ("lower", "diag", "upper")
VALUES = (np.nan, np.inf, -np.inf)


def spoiled(system, bad, places, axis):
    """Return copies of operands, rows last, with `bad` at (operand, system, row), along `axis`."""
    operands = [a.copy() for a in system]
    for operand, at, row in places:
        operands[operand][at, row] = bad
    return [np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in operands]


def require_named(call, operation, name, value, index, row):
    """Require an error of a call that names an entry, and is not one of a singular system."""
    with pytest.raises(ValueError) as caught:
        call()
    assert not isinstance(caught.value, SingularSystemError)
    where = f"batch index {index}, " if index else ""
    assert str(caught.value).startswith(f"{operation}: {name} is {value} at {where}row {row}, and")


def counted(rows, periodic):
    """Return (operand, row) of the first, middle and last entries of a matrix that count."""
    for operand in range(3):
        first = int(operand == 0 and not periodic)
        last = rows - 1 - int(operand == 2 and not periodic)
        for row in sorted({first, (first + last) // 2, last}):
            if first <= row <= last:
                yield operand, row


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("method", oracle.METHODS)
@pytest.mark.parametrize("rows", [1, 2, 3, 9, 40])
def test_an_entry_that_is_not_finite_is_an_error(rng, rows, method, periodic, axis):
    """In each place and of each dtype; the other systems are solved, the operands are kept."""
    options = {"method": method, "periodic": periodic, "axis": axis}
    for k, (operand, row) in enumerate(counted(rows, periodic)):
        dtype, value = oracle.DTYPES[k % 4], VALUES[k % 3]
        system = oracle.dominant(rng, (19, rows), dtype)
        operands = spoiled(system, value, [(operand, 11, row)], axis)
        kept = [a.copy() for a in operands]
        out = np.zeros_like(operands[3])

        shown = str(np.asarray(value, dtype)[()])
        require_named(
            partial(solve_tridiagonal, *operands, **options, out=out),
            *("solve_tridiagonal", NAMES[operand], shown, (11,), row),
        )
        for a, before in zip(operands, kept, strict=True):
            np.testing.assert_array_equal(a, before)
        good = np.arange(19) != 11
        expected = solve_tridiagonal(*spoiled(system, 0, [], axis), **options)
        np.testing.assert_array_equal(
            np.moveaxis(out, axis, -1)[good], np.moveaxis(expected, axis, -1)[good]
        )


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("pivot", [None, False, True])
@pytest.mark.parametrize("kind", [oracle.dominant, oracle.general])
@pytest.mark.parametrize("systems", [1, 5, 70])
def test_also_in_general_and_in_many_systems(rng, systems, kind, pivot, axis):
    for rows in (5, 33, 600):
        system = kind(rng, (systems, rows))
        for operand, row in counted(rows, False):
            at = systems // 2
            for value in VALUES:
                operands = spoiled(system, value, [(operand, at, row)], axis)
                require_named(
                    partial(solve_tridiagonal, *operands, pivot=pivot, axis=axis),
                    *("solve_tridiagonal", NAMES[operand], value, (at,), row),
                )


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("pivot", [None, False, True])
@pytest.mark.parametrize("kind", ["one", "own", "shared"])
def test_also_in_long_systems(rng, kind, pivot, periodic):
    """Systems divided into chunks or spans, and factors of such systems."""
    rows = 140_000 if kind == "shared" else 20_000
    matrix = oracle.dominant(rng, (1 if kind == "one" else 3, rows))[:3]
    index = (0,) if kind == "one" else (2,)
    if kind == "shared":
        matrix, index = [a[2] for a in matrix], ()
    rhs = rng.standard_normal((1 if kind == "one" else 3, rows))
    for k, (operand, row) in enumerate(counted(rows, periodic)):
        places = [a.copy() for a in matrix]
        places[operand][(*index, row)] = VALUES[k % 3]
        found = NAMES[operand], VALUES[k % 3], index, row
        options = {"pivot": pivot, "periodic": periodic}
        require_named(partial(factor_tridiagonal, *places, **options), "factor_tridiagonal", *found)
        if kind == "shared":
            found = *found[:2], (0,), row
        require_named(
            partial(solve_tridiagonal, *places, rhs, **options), "solve_tridiagonal", *found
        )


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("pivot", [None, False, True])
@pytest.mark.parametrize("kind", [oracle.dominant, oracle.general])
def test_factors(rng, kind, pivot, periodic, axis):
    for rows in (2, 9, 70):
        for k, (operand, row) in enumerate(counted(rows, periodic)):
            dtype, value = oracle.DTYPES[k % 4], VALUES[k % 3]
            system = kind(rng, (19, rows), dtype)
            *good, rhs = spoiled(system, 0, [], axis)
            *bad, _ = spoiled(system, value, [(operand, 7, row)], axis)
            options = {"axis": axis, "pivot": pivot, "periodic": periodic, "rows": rows}
            found = NAMES[operand], str(np.asarray(value, dtype)[()]), (7,), row

            require_named(
                partial(factor_tridiagonal, *bad, **options), "factor_tridiagonal", *found
            )
            made = factor_tridiagonal(*good, **options)
            x = made.solve(rhs)
            require_named(partial(made.refactor, *bad), "TridiagonalFactor.refactor", *found)
            np.testing.assert_array_equal(made.solve(rhs), x)
            y = factor_tridiagonal(*bad, **options, on_singular="nan").solve(rhs)
            rest = np.arange(19) != 7
            assert np.isnan(np.moveaxis(y, axis, -1)[7]).all()
            np.testing.assert_array_equal(
                np.moveaxis(y, axis, -1)[rest], np.moveaxis(x, axis, -1)[rest]
            )


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("name", ["lower", "RowSums.s", "upper"])
def test_factors_of_row_sums(name, periodic):
    named = {"lower": -np.ones((3, 8)), "RowSums.s": np.ones((3, 8)), "upper": -np.ones((3, 8))}
    named[name][1, 4] = np.nan
    lower, sums, upper = named.values()
    matrix = lower, RowSums(sums), upper

    call = partial(factor_tridiagonal, *matrix, periodic=periodic)
    require_named(call, "factor_tridiagonal", name, "nan", (1,), 4)
    solve = partial(solve_tridiagonal, *matrix, np.ones((3, 8)), periodic=periodic)
    require_named(solve, "solve_tridiagonal", name, "nan", (1,), 4)


@pytest.mark.parametrize("form", ["shared", "short", "number", "constant"])
@pytest.mark.parametrize("operand", range(3))
def test_every_form_of_an_operand(rng, operand, form):
    operands = list(oracle.dominant(rng, (3, 6)))
    index, row = (1,), 3
    if form == "shared":
        operands[operand], index = operands[operand][0], (0,)
        operands[operand][row] = np.nan
    elif form == "number":
        operands[operand], index, row = np.nan, (0,), 0
    elif form == "constant":
        operands[operand] = operands[operand][:, :1].copy()
        operands[operand][1], row = np.nan, 0
    else:
        operands[operand][1, row] = np.nan
        operands[0], operands[2] = operands[0][:, 1:], operands[2][:, :-1]

    require_named(
        partial(solve_tridiagonal, *operands),
        "solve_tridiagonal",
        NAMES[operand],
        "nan",
        index,
        row,
    )


def test_complex_right_hand_sides_of_a_real_matrix(rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (4, 9))
    upper[2, 5] = np.inf
    found = ("upper", "inf", (2,), 5)

    require_named(
        partial(solve_tridiagonal, lower, diag, upper, rhs * 1j), "solve_tridiagonal", *found
    )


def test_an_entry_that_does_not_count_is_no_error(rng):
    system = oracle.dominant(rng, (3, 9))
    expected = solve_tridiagonal(*system)
    system[0][:, 0] = system[2][:, -1] = np.nan

    np.testing.assert_array_equal(solve_tridiagonal(*system), expected)
    np.testing.assert_array_equal(factor_tridiagonal(*system[:3]).solve(system[3]), expected)


def test_of_a_singular_and_a_matrix_that_is_not_finite_the_latter_is_reported(rng):
    system = oracle.dominant(rng, (5, 8))
    for a in system[:3]:
        a[1] = 0
    system[0][4, 7] = system[2][3, 2] = np.nan

    require_named(partial(solve_tridiagonal, *system), "solve_tridiagonal", "upper", "nan", (3,), 2)
    _, info = solve_tridiagonal(*system, on_singular="ignore", return_info=True)
    np.testing.assert_array_equal(info.singular[:, 0], [1, 3, 4])


def test_the_other_policies(rng):
    system = oracle.dominant(rng, (3, 9))
    good = solve_tridiagonal(*system)[[0, 2]]
    system[1][1, 4] = np.nan

    with pytest.warns(pysolvers.SingularSystemWarning, match=r"diag is nan at .*\(1,\), row 4"):
        x = solve_tridiagonal(*system, on_singular="warn")
    np.testing.assert_array_equal(x[[0, 2]], good)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = solve_tridiagonal(*system, on_singular="nan")
        solve_tridiagonal(*system, on_singular="ignore")
    assert np.isnan(x[1]).all()
    np.testing.assert_array_equal(x[[0, 2]], good)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("method", oracle.METHODS)
def test_large_and_small_finite_entries_are_no_error(method, periodic, axis):
    """Pivots whose sum overflows, and those next to the smallest that have a reciprocal."""
    for size in (2.0**1023, 2.0**-1020):
        diag = np.full((3, 40), size)
        x = solve_tridiagonal(0.0, diag, 0.0, diag, axis=axis, method=method, periodic=periodic)
        np.testing.assert_array_equal(x, np.ones_like(diag))


@pytest.mark.parametrize("method", ["thomas", "cr", "pcr", "cr-pcr", "pcr-thomas"])
def test_a_pivot_that_overflows_is_singular(method):
    """A product of finite entries leaves the range."""
    diag, off = np.array([1e-200, 1.0, 1.0, 1.0, 1.0]), np.full(5, 1e200)
    with pytest.raises(SingularSystemError):
        solve_tridiagonal(off, diag, off, np.ones(5), method=method)


def test_arrays_of_jax(rng):
    jax = pytest.importorskip("jax")
    with jax.enable_x64(True):
        operands = [jax.numpy.asarray(a) for a in oracle.dominant(rng, (3, 9))]
        operands[2] = operands[2].at[1, 3].set(np.nan)

        found = "solve_tridiagonal", "upper", "nan", (1,), 3
        require_named(partial(solve_tridiagonal, *operands), *found)
        require_named(partial(solve_tridiagonal, *operands, method="thomas"), *found)
        x = pysolvers.jax.solve_tridiagonal(*operands)
        np.testing.assert_array_equal(np.isnan(x).all(axis=1), [False, True, False])


def test_arrays_of_torch(rng):
    torch = pytest.importorskip("torch")
    from pysolvers import torch as wrapper

    operands = [torch.asarray(a) for a in oracle.dominant(rng, (3, 9))]
    operands[0][2, 8] = np.nan
    found = "lower", "nan", (2,), 8
    calls = {
        "solve_tridiagonal": (wrapper.solve_tridiagonal, 4),
        "factor_tridiagonal": (wrapper.factor_tridiagonal, 3),
    }
    for name, (call, count) in calls.items():
        require_named(partial(call, *operands[:count], on_singular="raise"), name, *found)
    x = wrapper.solve_tridiagonal(*operands)
    assert x.isnan().all(1).tolist() == [False, False, True]

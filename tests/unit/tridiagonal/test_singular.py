"""Singular systems: who is named, who is spared, and the four policies."""

import warnings

import numpy as np
import oracle
import pytest

import pysolvers

BAD = {(0, 2): 5, (1, 0): 0, (2, 3): 20}  # system: row that stands alone with nothing in it


@pytest.fixture
def system(rng):
    """Dominant systems, of which those in BAD have one empty row and column."""
    lower, diag, upper, rhs = oracle.dominant(rng, (3, 4, 21))
    for index, row in BAD.items():
        lower[*index, row] = diag[*index, row] = upper[*index, row] = 0
        upper[*index, row - 1] = 0
        lower[*index, (row + 1) % 21] = 0
    return lower, diag, upper, rhs


@pytest.fixture
def good():
    mask = np.ones((3, 4), bool)
    for index in BAD:
        mask[index] = False
    return mask


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("method", oracle.METHODS)
def test_error_names_the_systems_and_spares_the_others(solve, system, good, method, periodic):
    out = np.full((3, 4, 21), np.nan)
    expected = solve(*(a[good] for a in system), method=method, periodic=periodic)

    with pytest.raises(pysolvers.SingularSystemError) as caught:
        solve(*system, method=method, periodic=periodic, out=out)

    np.testing.assert_array_equal(caught.value.systems, list(BAD))
    np.testing.assert_array_equal(out[good], expected)
    assert caught.value.rows.shape == (3,)


@pytest.mark.parametrize("method", oracle.METHODS)
def test_error_names_the_row(solve, system, method):
    with pytest.raises(pysolvers.SingularSystemError, match="row 5") as caught:
        solve(*system, method=method)

    np.testing.assert_array_equal(caught.value.rows, list(BAD.values()))


@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("rows", [37, 512])
def test_no_empty_row_among_random_ones_is_missed(solve, rng, rows, dtype):
    matrix = oracle.general(rng, (300, rows), dtype)[:3]
    empty = rng.integers(rows, size=300)
    for a in matrix:
        a[np.arange(300), empty] = 0

    with pytest.raises(pysolvers.SingularSystemError) as caught:
        solve(*matrix, np.zeros((300, rows), dtype), pivot=True)

    np.testing.assert_array_equal(caught.value.systems[:, 0], np.arange(300))
    assert np.all(caught.value.rows >= empty)


@pytest.mark.parametrize("axis", [0, 1])
def test_systems_are_numbered_without_the_axis(solve, system, axis):
    moved = [np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in system]

    with pytest.raises(pysolvers.SingularSystemError) as caught:
        solve(*moved, axis=axis)

    np.testing.assert_array_equal(caught.value.systems, list(BAD))
    np.testing.assert_array_equal(caught.value.rows, list(BAD.values()))


def test_one_dimensional_system_has_an_empty_index(solve):
    with pytest.raises(pysolvers.SingularSystemError) as caught:
        solve(0.0, 0.0, 0.0, np.ones(3))

    assert caught.value.systems.shape == (1, 0)
    np.testing.assert_array_equal(caught.value.rows, [0])


def test_systems_are_told_in_ascending_order_however_they_lie(solve):
    diag = np.ones((3, 2, 4), order="F")
    diag[2, 0, 1] = diag[0, 1, 3] = diag[1, 1, 0] = 0

    with pytest.raises(pysolvers.SingularSystemError) as error:
        solve(0.0, diag, 0.0, np.ones((3, 2, 4), order="F"))

    assert error.value.systems.tolist() == [[0, 1], [1, 1], [2, 0]]
    assert error.value.rows.tolist() == [3, 0, 1]


def test_error_is_a_linalg_error():
    assert issubclass(pysolvers.SingularSystemError, np.linalg.LinAlgError)
    assert issubclass(pysolvers.SingularSystemError, pysolvers.PysolversError)


@pytest.mark.each_value
@pytest.mark.parametrize("row", [0, 3, 8])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_thomas_names_its_first_zero_pivot(solve, dtype, row):
    lower, diag, upper, rhs = (np.ones((2, 9), dtype) for _ in range(4))
    lower *= 0  # the pivots are diag itself
    diag[1, row] = 0
    diag[1, 8] = 0

    with pytest.raises(pysolvers.SingularSystemError) as caught:
        solve(lower, diag, upper, rhs, method="thomas")

    np.testing.assert_array_equal(caught.value.systems, [[1]])
    np.testing.assert_array_equal(caught.value.rows, [row])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("rows", [16, 83])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_thomas_names_zero_pivots_among_many_systems(solve, rng, dtype, rows, axis):
    system = oracle.dominant(rng, (45, rows), dtype)
    bad = {0: 0, 1: rows - 1, 7: 5, 8: rows - 2, 44: 9}
    for index, row in bad.items():
        system[0][index, row] = system[1][index, row] = 0

    with pytest.raises(pysolvers.SingularSystemError) as caught:
        solve(*(np.moveaxis(a, -1, axis).copy() for a in system), axis=axis, method="thomas")

    np.testing.assert_array_equal(caught.value.systems[:, 0], list(bad))
    np.testing.assert_array_equal(caught.value.rows, list(bad.values()))


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("rows", [2, 3, 9, 33])
def test_pivoting_finds_linearly_dependent_rows(solve, dtype, rows):
    lower, diag, upper, rhs = (np.zeros((3, rows), dtype) for _ in range(4))
    diag += 1
    lower[1, -1] = upper[1, -2] = 1  # the last two rows of system 1 are equal

    with pytest.raises(pysolvers.SingularSystemError) as caught:
        solve(lower, diag, upper, rhs, pivot=True)

    np.testing.assert_array_equal(caught.value.systems, [[1]])
    np.testing.assert_array_equal(caught.value.rows, [rows - 1])


@pytest.mark.parametrize(("dtype", "value"), [(np.float64, 1e-310), (np.float32, 1e-40)])
def test_pivot_whose_reciprocal_overflows_is_singular_without_exchanges(solve, dtype, value):
    diag = np.array([[1.0, 1.0], [1.0, value]], dtype)

    with pytest.raises(pysolvers.SingularSystemError) as caught:
        solve(0.0, diag, 0.0, np.ones((2, 2), dtype), pivot=False)

    np.testing.assert_array_equal(caught.value.systems, [[1]])
    np.testing.assert_array_equal(caught.value.rows, [1])


@pytest.mark.parametrize("pivot", [True, None])
@pytest.mark.parametrize(
    ("dtype", "value"),
    [(np.float64, 1e-310), (np.float32, 1e-40), (np.complex128, 1e-310j), (np.complex64, 1e-40j)],
)
def test_pivot_whose_reciprocal_overflows_is_solved_with_exchanges(dtype, value, pivot):
    diag = np.array([[1, 1], [1, value]], dtype)

    x, info = pysolvers.solve_tridiagonal(0.0, diag, 0.0, diag, pivot=pivot, return_info=True)

    np.testing.assert_array_equal(x, np.ones((2, 2), dtype))
    assert len(info.singular) == 0


@pytest.mark.parametrize("method", oracle.METHODS)
def test_smallest_normal_pivots_are_solved(solve, method):
    diag = np.full((2, 5), 2.0**-1020)

    x = solve(0.0, diag, 0.0, diag, method=method)

    np.testing.assert_array_equal(x, np.ones((2, 5)))


@pytest.mark.parametrize("method", oracle.METHODS)
def test_nan_policy_marks_whole_systems_only(solve, system, good, method):
    x, info = solve(*system, method=method, on_singular="nan", return_info=True)

    assert np.all(np.isnan(x[~good]))
    assert np.all(np.isfinite(x[good]))
    assert len(info.singular) == len(BAD)


def test_nan_policy_in_place_and_strided(solve, system, good):
    *matrix, rhs = (np.moveaxis(a, -1, 0).copy() for a in system)

    solve(*matrix, rhs, axis=0, on_singular="nan", out=rhs)

    np.testing.assert_array_equal(np.isnan(rhs).all(axis=0), ~good)
    np.testing.assert_array_equal(np.isnan(rhs).any(axis=0), ~good)


def test_warn_policy_warns_once_and_returns(solve, system, good):
    with pytest.warns(pysolvers.SingularSystemWarning, match="row 5") as caught:
        x = solve(*system, on_singular="warn")

    assert len(caught) == 1
    assert caught[0].filename == __file__  # the caller's line, not ours
    np.testing.assert_array_equal(x[good], solve(*(a[good] for a in system)))


def test_ignore_policy_is_silent(solve, system, good):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x, info = solve(*system, on_singular="ignore", return_info=True)

    np.testing.assert_array_equal(x[good], solve(*(a[good] for a in system)))
    assert len(info.singular) == len(BAD)


def test_regular_batch_has_nobody_singular(solve, rng):
    _, info = solve(*oracle.dominant(rng, (3, 9)), on_singular="ignore", return_info=True)

    assert len(info.singular) == 0


@pytest.mark.each_value
@pytest.mark.parametrize("policy", ["raise", "warn", "nan"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("method", oracle.METHODS)
def test_a_right_hand_side_that_is_not_finite_is_not_singular(solve, rng, method, bad, policy):
    system = oracle.dominant(rng, (3, 9))
    system[3][1, 4] = bad

    x = solve(*system, method=method, on_singular=policy)

    assert not np.all(np.isfinite(x[1]))
    assert np.all(np.isfinite(x[[0, 2]]))


def test_shared_singular_matrix_fails_every_system(solve):
    diag = np.ones(5)
    diag[3] = 0

    with pytest.raises(pysolvers.SingularSystemError) as caught:
        solve(0.0, diag, 0.0, np.ones((2, 3, 5)))

    np.testing.assert_array_equal(caught.value.systems, list(np.ndindex(2, 3)))
    np.testing.assert_array_equal(caught.value.rows, [3] * 6)

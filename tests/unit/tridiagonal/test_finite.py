"""`check_finite`, and what NaN does without it."""

import numpy as np
import oracle
import pytest

import pysolvers

NAMES = ("lower", "diag", "upper", "rhs")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("place", range(4))
def test_the_first_entry_that_is_not_finite_is_named(solve, rng, place, axis, value):
    system = oracle.dominant(rng, (3, 4, 6), rng.choice(oracle.DTYPES))
    system[place][2, 1, 3] = value
    system[place][2, 3, 1] = value
    operands = [np.moveaxis(a, -1, axis) for a in system]

    with pytest.raises(ValueError) as error:
        solve(*operands, axis=axis, check_finite=True)

    shown = str(system[place][2, 1, 3])
    assert str(error.value).startswith(
        f"solve_tridiagonal: {NAMES[place]} is {shown} at batch index (2, 1), row 3"
    )
    assert not isinstance(error.value, pysolvers.SingularSystemError)


@pytest.mark.parametrize("form", ["own", "shared", "short", "number"])
@pytest.mark.parametrize("place", range(4))
def test_rows_of_every_form_of_an_operand(solve, factor, rng, place, form):
    operands = list(oracle.dominant(rng, (3, 6)))
    name, row, batch = NAMES[place], 3, r"batch index \(1,\), "
    if form == "number":
        if place == 3:
            return
        operands[place], row, batch = np.nan, 0, r"batch index \(0,\), "
    elif form == "shared":
        operands[place], batch = operands[place][0], r"batch index \(0,\), "
        operands[place][row] = np.nan
    else:
        operands[place][1, row] = np.nan
        if form == "short" and name in ("lower", "upper"):
            operands[place] = operands[place][:, 1:] if name == "lower" else operands[place][:, :-1]
    text = rf"{name} is nan at {batch}row {row}"

    with pytest.raises(ValueError, match=text):
        solve(*operands, check_finite=True)
    if place < 3:
        with pytest.raises(ValueError, match=f"factor_tridiagonal: {text}"):
            factor(*operands[:3], rows=6, check_finite=True)
        return
    made = factor(*operands[:3], rows=6)
    with pytest.raises(ValueError, match=rf"TridiagonalFactor.solve: {text}"):
        made.solve(operands[3], check_finite=True)
    assert np.isnan(made.solve(operands[3])).any()


def test_entries_that_do_not_count_are_not_checked(solve, factor, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (3, 6))
    expected = solve(lower, diag, upper, rhs)
    lower[:, 0] = upper[:, -1] = np.nan

    np.testing.assert_array_equal(solve(lower, diag, upper, rhs, check_finite=True), expected)
    made = factor(lower, diag, upper, check_finite=True)
    np.testing.assert_allclose(made.solve(rhs, check_finite=True), expected, rtol=1e-13)
    for place, row in ((0, 0), (2, 5)):
        operands = [a.copy() for a in (lower, diag, upper, rhs)]
        operands[2 - place][...] = 0
        with pytest.raises(ValueError, match=f"{NAMES[place]} is nan at .*row {row}"):
            solve(*operands, periodic=True, check_finite=True)
    one = solve([[np.nan]], [[2.0]], np.nan, [[3.0]], check_finite=True)
    np.testing.assert_array_equal(one, [[1.5]])


def test_refactor_checks_what_the_factor_checks(factor, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (3, 6))
    made = factor(lower, diag, upper, check_finite=True)
    expected = made.solve(rhs)
    diag[2, 4] = np.nan

    with pytest.raises(ValueError, match=r"refactor: diag is nan at batch index \(2,\), row 4"):
        made.refactor(lower, diag, upper)
    np.testing.assert_array_equal(made.solve(rhs), expected)


@pytest.mark.parametrize("value", [1, None, "yes"])
def test_check_finite_is_a_bool(solve, factor, value):
    with pytest.raises(TypeError, match="check_finite must be a bool"):
        solve(0.5, 4.0, 0.5, np.ones(5), check_finite=value)
    with pytest.raises(TypeError, match="check_finite must be a bool"):
        factor(0.5, 4.0, 0.5, rows=5, check_finite=value)
    with pytest.raises(TypeError, match="check_finite must be a bool"):
        factor(0.5, 4.0, 0.5, rows=5).solve(np.ones(5), check_finite=value)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("kind", [oracle.dominant, oracle.general])
@pytest.mark.parametrize("systems", [5, 40])
def test_nan_in_one_right_hand_side_stays_in_its_system(solve, factor, rng, axis, kind, systems):
    *matrix, rhs = (np.moveaxis(a, -1, axis) for a in kind(rng, (systems, 33)))
    for operands in (matrix, [np.moveaxis(a, axis, -1)[0] for a in matrix]):
        expected = solve(*operands, rhs, axis=axis)
        dirty = np.array(rhs)
        np.moveaxis(dirty, axis, -1)[3, 7] = np.nan
        for x in (
            solve(*operands, dirty, axis=axis),
            factor(*operands, axis=axis if operands is matrix else -1).solve(dirty, axis=axis),
        ):
            rows = np.moveaxis(x, axis, -1)
            assert np.isnan(rows[3]).any()
            clean = np.arange(systems) != 3
            np.testing.assert_allclose(
                rows[clean], np.moveaxis(expected, axis, -1)[clean], rtol=1e-6, atol=1e-9
            )

"""Solves with factors that need no planning go to the extension directly; no bit changes."""

import sys

import numpy as np
import oracle
import pytest

import pysolvers
from pysolvers import TridiagonalFactor

SOLVE = TridiagonalFactor._solve_directly


@pytest.fixture
def direct(monkeypatch):
    """Whether each solve needed no planning."""
    answers = []

    def counted(self, *arguments):
        answer = SOLVE(self, *arguments)
        answers.append(answer is not None)
        return answer

    monkeypatch.setattr(TridiagonalFactor, "_solve_directly", counted)
    return answers


def planned(factor, rhs, **options):
    """The answer of a call that is planned."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TridiagonalFactor, "_solve_directly", lambda self, *arguments: None)
        return factor.solve(rhs, **options)


def matrices(rng, shape, axis, dtype):
    inner = np.moveaxis(np.empty(shape), axis, -1).shape
    made = oracle.dominant(rng, inner, np.dtype(dtype))[:3]
    return [np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in made]


@pytest.mark.each_value
@pytest.mark.parametrize("trans", ["N", "T", "H"])
@pytest.mark.parametrize(
    ("matrix", "rhs"), [(d, d) for d in oracle.DTYPES] + [("f4", "c8"), ("f8", "c16")]
)
@pytest.mark.parametrize(
    ("matrix_shape", "shape", "axis", "is_direct"),
    [
        ((9,), (9,), None, True),
        ((9,), (5, 9), None, True),
        ((9,), (9, 5), 0, True),
        ((9,), (2, 9, 5), 1, True),
        ((9,), (2, 5, 9), 2, True),
        ((9,), (9, 2, 5), -3, True),
        ((1, 9), (5, 9), None, True),
        ((5, 9), (5, 9), None, True),
        ((2, 3, 9), (2, 3, 9), -1, True),
        ((2, 3, 9), (3, 2, 9), -1, None),
        ((2, 3, 9), (4, 2, 3, 9), -1, "one dtype"),
        ((3, 9), (2, 3, 9), None, "one dtype"),
        ((3, 9), (2, 1, 3, 9), None, "one dtype"),
    ],
)
def test_answers_are_those_of_planned_calls(
    direct, rng, matrix_shape, shape, axis, is_direct, matrix, rhs, trans
):
    factor = pysolvers.factor_tridiagonal(*matrices(rng, matrix_shape, -1, matrix))
    sides = oracle.uniform(rng, shape, np.dtype(rhs))
    options = {"trans": trans} if axis is None else {"trans": trans, "axis": axis}
    if is_direct is None:
        with pytest.raises(ValueError, match="does not broadcast"):
            factor.solve(sides, **options)
        assert direct == [False]
        return
    if is_direct == "one dtype":
        is_direct = matrix == rhs
    expected = planned(factor, sides, **options)

    x = factor.solve(sides, **options)
    out = np.empty_like(sides)
    y = factor.solve(sides, out=out, **options)
    z = factor.solve(sides, out=sides, **options)

    assert direct == [is_direct] * 3
    assert (y is out, z is sides) == (True, True)
    for answer in (x, y, z):
        assert answer.dtype == rhs
        np.testing.assert_array_equal(answer, expected)


@pytest.mark.parametrize("rhs", ["f8", "c16"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((9, 5), 0), ((3, 9, 4), 1), ((9, 3, 4), 0), ((1, 9, 4), 1), ((40, 60, 60), 1)],
)
def test_matrices_along_other_axes(direct, rng, shape, axis, rhs):
    factor = pysolvers.factor_tridiagonal(*matrices(rng, shape, axis, "f8"), axis=axis)
    sides = oracle.uniform(rng, shape, np.dtype(rhs))
    expected = planned(factor, sides)

    np.testing.assert_array_equal(factor.solve(sides), expected)
    np.testing.assert_array_equal(factor.solve(sides, axis=axis), expected)
    # In large fields, both parts are first copied.
    assert direct == [not (rhs == "c16" and sides.size > 100_000)] * 2


@pytest.mark.parametrize(
    ("shape", "axis", "is_direct"),
    [((9, 5), -2, True), ((9, 3, 4), -3, True), ((3, 9, 4), -2, False), ((1, 9), -2, True)],
)
@pytest.mark.parametrize("batch", [(1,), (6,), (2, 3)])
def test_batches_beside_matrices_along_other_axes(direct, rng, shape, axis, is_direct, batch):
    factor = pysolvers.factor_tridiagonal(
        *matrices(rng, shape, axis, "f8"), axis=axis, rows=shape[axis]
    )
    sides = oracle.uniform(rng, (*batch, *shape), np.dtype("f8"))
    x = factor.solve(sides)
    assert direct == [is_direct]
    for place in np.ndindex(*batch):
        np.testing.assert_array_equal(x[place], factor.solve(sides[place]))


def test_strides(direct, rng):
    factor = pysolvers.factor_tridiagonal(*matrices(rng, (10, 20), -1, "f8"))
    whole = oracle.uniform(rng, (30, 60), np.dtype("f8"))
    for view in (whole[::3, ::3], whole[20:10:-1, 20:40], np.asfortranarray(whole[:10, :20])):
        np.testing.assert_array_equal(factor.solve(view), planned(factor, view))
    assert all(direct)


def test_calls_that_are_planned(direct, rng):
    factor = pysolvers.factor_tridiagonal(*matrices(rng, (5, 9), -1, "f8"))
    rhs = oracle.uniform(rng, (5, 9), np.dtype("f8"))
    expected = planned(factor, rhs)

    wide = np.empty((5, 18))
    factor.solve(rhs, out=wide[:, ::2])
    np.testing.assert_array_equal(wide[:, ::2], expected)
    np.testing.assert_array_equal(factor.solve(rhs.tolist()), expected)
    np.testing.assert_array_equal(factor.solve(rhs.astype(">f8")), expected)
    for bad, error in [
        ({"out": np.empty((5, 8))}, ValueError),
        ({"out": rhs[::-1]}, ValueError),
        ({"out": np.empty((5, 9), "f4")}, TypeError),
        ({"axis": 2}, ValueError),
        ({"axis": 1.0}, TypeError),
        ({"axis": 0}, ValueError),
    ]:
        with pytest.raises(error):
            factor.solve(rhs, **bad)
    np.testing.assert_array_equal(
        factor.solve(rhs[0]), planned(factor, np.broadcast_to(rhs[0], (5, 9)))
    )
    with pytest.raises(ValueError, match="rhs has 8 entries"):
        factor.solve(rhs[0, 1:])
    assert not any(direct)


@pytest.mark.parametrize("is_singular", [False, True])
def test_nan_for_singular_matrices(direct, rng, is_singular):
    lower, diag, upper = matrices(rng, (5, 9), -1, "f8")
    if is_singular:
        lower[2], diag[2], upper[2] = 0, 0, 0
    factor = pysolvers.factor_tridiagonal(lower, diag, upper, on_singular="nan")

    x = factor.solve(np.ones((5, 9)))

    assert direct == [not is_singular]
    np.testing.assert_array_equal(
        np.isnan(x).all(axis=1), np.arange(5) == (2 if is_singular else -1)
    )


def test_references_are_released(direct, rng):
    factor = pysolvers.factor_tridiagonal(*matrices(rng, (5, 9), -1, "f8"))
    rhs, out = np.ones((5, 9)), np.empty((5, 9))
    before = sys.getrefcount(rhs), sys.getrefcount(out), sys.getrefcount(factor)
    for _ in range(100):
        factor.solve(rhs)
        factor.solve(rhs, out=out)
        factor.solve(rhs, axis=1, out=out)
    assert all(direct)
    assert (sys.getrefcount(rhs), sys.getrefcount(out), sys.getrefcount(factor)) == before

"""Calls that need no planning give the bits of those that are planned."""

import functools
import itertools

import numpy as np
import pytest

import pysolvers
from pysolvers._blocks import bands, systems
from pysolvers._steps import calls


@pytest.fixture
def planned(monkeypatch):
    """Return a function that calls without the direct calls, and one that counts those."""
    taken = []
    solve, apply = systems.solve_directly, systems.apply_directly

    def counted(function):
        def call(*arguments):
            answer = function(*arguments)
            taken.append(answer is not None)
            return answer

        return call

    monkeypatch.setattr(systems, "solve_directly", counted(solve))
    monkeypatch.setattr(systems, "apply_directly", counted(apply))
    periodic = counted(bands._solve_periodic_directly)
    monkeypatch.setattr(bands, "_solve_periodic_directly", periodic)
    monkeypatch.setattr(calls, "call_directly", counted(calls.call_directly))

    def compare(call, *, direct=True, atol=0.0):
        """Call with and without the direct calls; the first one is `direct`."""
        taken.clear()
        own = call()
        assert taken[-1:] == [direct]
        with monkeypatch.context() as patch:
            for name in ("solve_directly", "apply_directly"):
                patch.setattr(systems, name, lambda *_: None)
            patch.setattr(calls, "call_directly", lambda *_: None)
            patch.setattr(bands, "_solve_periodic_directly", lambda *_: None)
            other = call()
        assert own.dtype == other.dtype and own.shape == other.shape
        np.testing.assert_allclose(own, other, rtol=0, atol=atol)
        return own

    return compare


def blocks(rng, batch, rows, side, dtype, *, definite=False):
    lower, diag, upper = rng.uniform(-1, 1, (3, *batch, rows, side, side)).astype(dtype)
    diag += 4 * side * np.eye(side, dtype=dtype)
    if definite:
        diag = (diag + diag.swapaxes(-1, -2)) / 2
        upper[..., :-1, :, :] = lower[..., 1:, :, :].swapaxes(-1, -2)
    return lower, diag, upper


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("side", [2, 3, 4, 5])
def test_blocks(planned, side, dtype):
    rng = np.random.default_rng(side)
    for batch, rows, columns in itertools.product([(), (1,), (3,), (2, 3)], [1, 2, 9], [1, 3]):
        lower, diag, upper = blocks(rng, batch, rows, side, dtype)
        rhs = rng.standard_normal((*batch, rows, side, columns)).astype(dtype)
        kept = [array.copy() for array in (lower, diag, upper, rhs)]
        matrices = [(lower, diag, upper)]
        if rows > 1:
            shorter = lower[..., 1:, :, :].copy(), diag, upper[..., :-1, :, :].copy()
            matrices += [shorter, (lower.reshape(-1, side, side)[0], diag, upper)]
        if len(batch) > 1:
            matrices.append((lower, diag[0, 0].copy(), upper))  # of all systems
        for matrix, pivot in itertools.product(matrices, (None, False, True)):
            solve = functools.partial(pysolvers.solve_block_tridiagonal, *matrix, rhs, pivot=pivot)
            planned(solve)
            out = np.empty_like(rhs)
            assert solve(out=out) is out
        for array, copy in zip((lower, diag, upper, rhs), kept, strict=True):
            np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("batch", [(), (3,)])
def test_symmetric_blocks(planned, batch):
    rng = np.random.default_rng(1)
    lower, diag, upper = blocks(rng, batch, 7, 3, np.float64, definite=True)
    rhs = rng.standard_normal((*batch, 7, 3, 1))
    options = {"assume": "positive definite"}
    full = planned(lambda: pysolvers.solve_block_tridiagonal(lower, diag, upper, rhs, **options))
    for one, other in (
        (lower, None),
        (None, upper),
        (lower[..., 1:, :, :].copy(), None),
        (None, upper[..., :-1, :, :].copy()),
    ):
        x = planned(
            lambda one=one, other=other: pysolvers.solve_block_tridiagonal(
                one, diag, other, rhs, **options
            )
        )
        np.testing.assert_array_equal(x, full)


def test_calls_that_are_planned(planned):
    rng = np.random.default_rng(2)
    lower, diag, upper = blocks(rng, (3,), 7, 2, np.float64)
    rhs = rng.standard_normal((3, 7, 2, 1))
    solve = pysolvers.solve_block_tridiagonal
    first = [a.swapaxes(0, 1).copy() for a in (lower, diag, upper, rhs)]
    for call in (
        lambda: solve(lower, diag, upper, rhs[:1]),
        lambda: solve(lower, diag, upper, rhs.astype(np.float32)),
        lambda: solve(lower, diag, upper, rhs.astype(complex)),
        lambda: solve(lower[..., ::-1], diag, upper, rhs),
        lambda: solve(*first, axis=0),
        lambda: solve(lower, diag, upper, rhs, out=rhs.copy()[::-1]),
    ):
        planned(call, direct=False)
    x = rhs.copy()
    solve(lower, diag, upper, x, out=x)
    np.testing.assert_array_equal(x, solve(lower, diag, upper, rhs))


def test_singular_blocks_are_reported():
    zero, diag = np.zeros((2, 5, 2, 2)), np.zeros((2, 5, 2, 2)) + np.eye(2)
    diag[1, 3] = 0
    rhs = np.ones((2, 5, 2, 1))
    for pivot in (None, False, True):
        with pytest.raises(pysolvers.SingularSystemError) as raised:
            pysolvers.solve_block_tridiagonal(zero, diag, zero, rhs, pivot=pivot)
        assert raised.value.systems.tolist() == [[1]]
        x = pysolvers.solve_block_tridiagonal(zero, diag, zero, rhs, pivot=pivot, on_singular="nan")
        assert np.isnan(x[1]).all() and (x[0] == 1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("side", [2, 4, 5])
def test_factors_of_blocks(planned, side, dtype):
    rng = np.random.default_rng(side)
    for batch, pivot, trans in itertools.product([(), (1,), (3,), (2, 3)], [False, True], "NT"):
        factor = pysolvers.factor_block_tridiagonal(
            *blocks(rng, batch, 6, side, dtype), pivot=pivot
        )
        for lead, columns in itertools.product({batch, (4, *batch)}, [1, 3]):
            rhs = rng.standard_normal((*lead, 6, side, columns)).astype(dtype)
            direct = lead == batch or np.prod(batch) == 1
            planned(lambda f=factor, r=rhs, t=trans: f.solve(r, trans=t), direct=direct)
    with pytest.raises(ValueError, match="rhs must have 6 rows"):
        factor.solve(rhs[..., 0])
    with pytest.raises(ValueError, match="trans"):
        factor.solve(rhs, trans="X")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_factors_of_five_diagonals(planned, dtype):
    rng = np.random.default_rng(3)
    for batch, axis, rows in itertools.product([(), (1,), (3,), (2, 3)], [0, -1], [2, 7, 8]):
        matrix = rng.uniform(-1, 1, (5, *batch, rows)).astype(dtype)
        matrix[2] += 6
        moved = [np.moveaxis(band, -1, axis).copy() for band in matrix]
        for pivot, trans in itertools.product((False, True), "NTH"):
            factor = pysolvers.factor_pentadiagonal(*moved, axis=axis, pivot=pivot)
            rhs = np.moveaxis(rng.standard_normal((*batch, rows)).astype(dtype), -1, axis)
            direct = len(batch) < 2 or axis == -1
            planned(lambda f=factor, r=rhs, t=trans: f.solve(r, trans=t), direct=direct)
            rhs = rhs.copy()
            planned(lambda f=factor, r=rhs, t=trans: f.solve(r, trans=t))
            if batch in ((), (1,)) and axis == -1:
                wide = rng.standard_normal((2, 4, rows)).astype(dtype)
                planned(lambda f=factor, r=wide, t=trans: f.solve(r, trans=t))
    with pytest.raises(ValueError, match="rhs must have 8 rows"):
        factor.solve(np.ones(7, dtype))


def test_right_hand_sides_of_another_batch_are_refused():
    factor = pysolvers.factor_pentadiagonal(*np.ones((2, 2, 3, 8)), *np.ones((3, 2, 3, 8)) * 9)
    with pytest.raises(ValueError, match="do not broadcast"):
        factor.solve(np.ones((6, 8)))
    assert factor.solve(np.ones(8)).shape == (2, 3, 8)


def test_solutions_of_singular_factors_are_nan():
    diag = np.array([[1.0, 1, 1, 1], [1, 1, 0, 1]])
    factor = pysolvers.factor_pentadiagonal(0.0, 0.0, diag, 0.0, 0.0, on_singular="nan")
    x = factor.solve(np.ones((2, 4)))
    assert (x[0] == 1).all() and np.isnan(x[1]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_products(planned, dtype):
    rng = np.random.default_rng(4)

    def random(*shape):
        a = rng.uniform(-1, 1, shape)
        return (a + 1j * rng.uniform(-1, 1, shape) if np.dtype(dtype).kind == "c" else a).astype(
            dtype
        )

    for batch, axis, rows in itertools.product([(), (3,), (2, 3)], [0, -1], [3, 4, 9]):
        shape = np.moveaxis(np.empty((*batch, rows)), -1, axis).shape
        x = random(*shape)
        line, short = random(rows), random(rows - 1)
        for matrix in (
            (-1.0, 2.0, -1.0),
            (line, line, line),
            (short, line, short),
            (random(*shape), random(*shape), random(*shape)),
            (-1.0, random(*shape), line),
        ):
            multiply = functools.partial(pysolvers.tridiagonal_matvec, *matrix, x, axis=axis)
            y = planned(multiply)
            out = np.empty_like(x)
            assert multiply(out=out) is out
            np.testing.assert_array_equal(out, y)
            with pytest.raises(ValueError, match="overlap"):
                multiply(out=x)
            if matrix[0] is not short:
                planned(functools.partial(multiply, periodic=True))


def test_products_that_are_planned(planned):
    x = np.ones((3, 4))
    multiply = pysolvers.tridiagonal_matvec
    for call in (
        lambda: multiply(1, 2.0, np.float32(1), x.astype(np.float32)[:, ::-1]),
        lambda: multiply(np.ones(4, np.float32), 2.0, 1.0, x),
        lambda: multiply(1.0, 2.0, 1.0, x.astype(int)),
        lambda: multiply(np.ones((1, 4)), 2.0, 1.0, x),
    ):
        planned(call, direct=call() is None)
    with pytest.raises(ValueError):
        multiply(np.ones(3), 2.0, np.ones(3), x, periodic=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_periodic_systems(planned, dtype):
    rng = np.random.default_rng(5)
    some = {"atol": 8 * np.finfo(dtype).eps}  # planned calls factor the open matrices by blocks
    for rows, batch in itertools.product([5, 6, 7, 8, 9], [(), (3,), (2, 3)]):
        lines = rng.uniform(-1, 1, (5, rows)).astype(dtype)
        lines[2] += 6
        rhs = rng.standard_normal((*batch, rows)).astype(dtype)
        kept = lines.copy(), rhs.copy()
        for matrix in (lines, (1.0, -4.0, 7.0, -4.0, 1.0), (0.5, *lines[1:4], -0.5)):
            for pivot in (None, False, True):
                solve = functools.partial(
                    pysolvers.solve_pentadiagonal, *matrix, rhs, periodic=True, pivot=pivot
                )
                x = planned(solve, **some)
                out = np.empty_like(rhs)
                assert solve(out=out) is out
                np.testing.assert_allclose(out, x, rtol=0, **some)
        upper, upper2 = lines[3], lines[4]
        symmetric = (np.roll(upper2, 2), np.roll(upper, 1), lines[2], upper, upper2)
        options = {"periodic": True, "assume": "positive definite"}
        for matrix in (symmetric, (None, None, *symmetric[2:]), (None, None, 7.0, -4.0, 1.0)):
            solve = functools.partial(pysolvers.solve_pentadiagonal, *matrix, rhs, **options)
            planned(solve, **some)
        np.testing.assert_array_equal(lines, kept[0])
        np.testing.assert_array_equal(rhs, kept[1])


def test_wrong_periodic_systems_have_the_messages_of_planned_calls():
    solve = functools.partial(pysolvers.solve_pentadiagonal, periodic=True)
    rhs = np.ones(6)
    with pytest.raises(pysolvers.SingularSystemError):
        solve(0.0, 0.0, np.array([1.0, 1, 1, 1, 0, 1]), 0.0, 0.0, rhs)
    with pytest.raises(pysolvers.SingularSystemError, match="not positive definite"):
        solve(None, None, -7.0, -4.0, 1.0, rhs, assume="positive definite")
    with pytest.raises(ValueError, match="at least 5 rows"):
        solve(1.0, -4.0, 7.0, -4.0, 1.0, rhs[:4])
    with pytest.raises(ValueError, match="lower2 is None"):
        solve(None, -4.0, 7.0, -4.0, 1.0, rhs)
    with pytest.raises(ValueError, match="finite"):
        solve(1.0, -4.0, np.array([7.0, 7, 7, 7, 7, np.nan]), -4.0, 1.0, rhs)
    with pytest.raises(ValueError, match="on_singular"):
        solve(1.0, -4.0, 7.0, -4.0, 1.0, rhs, on_singular="never")

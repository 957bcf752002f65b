"""The axis of a factor says where the systems lie in right-hand sides.

Matrices of one dimension can lie along any axis. Cubes have the same length along all axes, so that
the shape does not determine the axis: the solutions are compared with those along the last axis.
"""

from functools import partial

import numpy as np
import oracle
import pytest

import pysolvers
from pysolvers import RowSums

N = 6


def operands():
    """Return three diagonals, those below and above them, and a mask, all of one dimension."""
    rng = np.random.default_rng(5)
    lower, diag, upper, _ = oracle.dominant(rng, (N,))
    where = np.arange(N) != 2
    return lower, diag, upper, 0.1 * lower, 0.1 * upper, where


def tridiagonal(axis, method="solve", diag=None, **options):
    lower, own, upper, *_ = operands()
    made = pysolvers.factor_tridiagonal(
        lower, own if diag is None else diag, upper, axis=axis, **options
    )
    return getattr(made, method)


def numbers(axis, **options):
    made = pysolvers.factor_tridiagonal(-1.0, 2.5, -1.2, rows=N, axis=axis, **options)
    return made.solve


def refactored(axis):
    lower, diag, upper, *_ = operands()
    made = pysolvers.factor_tridiagonal(lower, 2 * diag, upper, axis=axis)
    made.refactor(lower, diag, upper)
    return made.solve


def theta(axis, source=None, **options):
    lower, diag, upper, *_ = operands()
    made = pysolvers.factor_theta(lower, -diag, upper, dt=0.3, axis=axis, **options)
    return lambda u, **own: made.step(u, source, count=2, **own)


def pentadiagonal(axis, **options):
    lower, diag, upper, lower2, upper2, _ = operands()
    bands = lower2, lower, diag, upper, upper2
    return pysolvers.factor_pentadiagonal(*bands, axis=axis, **options).solve


def blocks(axis, **options):
    lower, diag, upper, *_ = (np.eye(2) * a[:, None, None] + 0.1 for a in operands()[:3])
    solve = pysolvers.factor_block_tridiagonal(lower, diag, upper, axis=axis, **options).solve
    return lambda rhs, **own: solve(np.stack([rhs, 2 * rhs], -1)[..., None], **own)[..., 0]


SUMS = RowSums(np.full(N, 3.0), check_signs=False)
CALLS = {
    "tridiagonal": tridiagonal,
    "transposed": lambda axis: partial(tridiagonal(axis), trans="T"),
    "periodic": partial(tridiagonal, periodic=True),
    "pivoted": partial(tridiagonal, pivot=True),
    "mask": partial(tridiagonal, where=operands()[-1]),
    "row sums": partial(tridiagonal, diag=SUMS),
    "product": partial(tridiagonal, method="multiply", keep_matrix=True),
    "product inside": partial(
        tridiagonal, method="multiply", keep_matrix=True, where=operands()[-1]
    ),
    "numbers": numbers,
    "numbers inside": partial(numbers, where=operands()[-1]),
    "refactored": refactored,
    "theta": theta,
    "theta inside": partial(theta, where=operands()[-1]),
    "theta with a source": partial(theta, source=np.arange(1.0, N + 1)),
    "pentadiagonal": pentadiagonal,
    "periodic pentadiagonal": partial(pentadiagonal, periodic=True),
    "blocks": blocks,
    "periodic blocks": partial(blocks, periodic=True),
}


@pytest.mark.parametrize("name", CALLS)
def test_matrices_of_one_dimension_lie_along_the_axis(name):
    rng = np.random.default_rng(1)
    last = CALLS[name](-1)
    for shape in ((N,) * 3, (N, N), (N,)):
        cube = rng.standard_normal(shape)
        for rhs in (cube, np.asfortranarray(cube), cube.astype(">f8"), cube + 1j * cube[::-1]):
            for axis in range(-len(shape), len(shape)):
                moved = last(np.ascontiguousarray(np.moveaxis(rhs, axis, -1)), axis=-1)
                tail = moved.ndim - len(shape)  # of blocks
                expected = np.moveaxis(moved, -1 - tail, axis - tail if axis < 0 else axis)
                x = CALLS[name](axis)(rhs)
                np.testing.assert_allclose(x, expected, rtol=0, atol=1e-12, err_msg=f"{axis}")
                np.testing.assert_allclose(last(rhs, axis=axis), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", CALLS)
def test_axis_that_right_hand_sides_do_not_have_is_refused_at_the_solve(name):
    for axis, shape in ((1, (N,)), (2, (N, N)), (-3, (N, N)), (-2, (N,))):
        solve = CALLS[name](axis)
        with pytest.raises(np.exceptions.AxisError, match=f"axis of the factor .*got {axis}"):
            solve(np.ones(shape))
        assert solve(np.ones(shape), axis=-1) is not None
    with pytest.raises(TypeError, match="axis must be an int, got float"):
        CALLS[name](1.0)


def test_axis_of_a_factor_is_that_of_right_hand_sides():
    lower, diag, upper, lower2, upper2, _ = operands()
    block = np.eye(2) * diag[:, None, None]
    for axis in (0, 4, -1, -2):
        for made in (
            pysolvers.factor_tridiagonal(lower, diag, upper, axis=axis),
            pysolvers.factor_tridiagonal(-1.0, 3.0, -1.0, rows=N, axis=axis),
            pysolvers.factor_theta(lower, -diag, upper, dt=0.1, axis=axis),
            pysolvers.factor_pentadiagonal(lower2, lower, diag, upper, upper2, axis=axis),
            pysolvers.factor_block_tridiagonal(block, 3 * block, block, axis=axis),
        ):
            assert made.axis == axis
    several = np.stack([diag, 2 * diag], -1)
    assert pysolvers.factor_tridiagonal(-1.0, several, -1.0, axis=0).axis == -2
    assert pysolvers.factor_pentadiagonal(0.1, -1.0, several, -1.0, 0.1, axis=0).axis == -2
    mask = np.ones((N, 2), bool)  # with the mask the matrices have two dimensions
    assert pysolvers.factor_tridiagonal(-1.0, diag, -1.0, axis=0, where=mask).axis == -2


def test_inverses_have_the_shape_of_the_matrices_whatever_the_axis():
    lower, diag, upper, lower2, upper2, _ = operands()
    bands = lower2, lower, diag, upper, upper2
    made = [pysolvers.factor_pentadiagonal(*bands, axis=a, pivot=False) for a in (-1, 0, 2, -2)]
    block = np.eye(2) * diag[:, None, None]
    more = [
        pysolvers.factor_block_tridiagonal(0.1 * block, block, 0.1 * block, axis=a, pivot=False)
        for a in (-1, 0, 2, -2)
    ]
    for factors, name in ((made, "inverse_diagonals"), (more, "inverse_blocks")):
        first, *others = (getattr(factor, name)() for factor in factors)
        for other in others:
            np.testing.assert_array_equal(other, first)


@pytest.mark.parametrize("name", ["pentadiagonal", "blocks"])
def test_one_right_hand_side_of_several_matrices_has_the_axis_of_the_solution(name, rng):
    lower, diag, upper, _ = oracle.dominant(rng, (N, N))
    if name == "blocks":
        bands = [np.eye(2) * a[..., None, None] for a in (lower, diag, upper)]
        solve = pysolvers.factor_block_tridiagonal(*bands).solve
        rhs = rng.standard_normal((N, 2, 1))
    else:
        solve = pysolvers.factor_pentadiagonal(0.0, lower, diag, upper, 0.0).solve
        rhs = rng.standard_normal(N)
    last = solve(rhs)
    np.testing.assert_array_equal(solve(rhs, axis=-1), last)
    np.testing.assert_array_equal(solve(rhs, axis=1), last)
    for axis in (0, -2):
        np.testing.assert_array_equal(solve(rhs, axis=axis), np.swapaxes(last, 0, 1))


def test_a_device_uses_the_axis_of_the_factor(factor, rng):
    lower, diag, upper, _ = oracle.dominant(rng, (7,))
    cube = rng.standard_normal((7, 7, 7))
    for axis in range(-3, 3):
        x = factor(lower, diag, upper, axis=axis).solve(cube)
        expected = oracle.solve(lower, diag, upper, np.moveaxis(cube, axis, -1))
        np.testing.assert_allclose(np.moveaxis(x, axis, -1), expected, rtol=0, atol=1e-13)

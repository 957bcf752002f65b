"""Checks of split factors, run by every rank of an MPI job; see test_distributed.py."""

import fake_device
import numpy as np
import oracle
import pytest
from ranks_solve import BOUND, cut, diffusion, joined, singular_operands
from slabs import chosen

import pysolvers
from pysolvers.distributed import Slab


def factored(group, matrix, shape, axis, along, **options):
    """Factor the part of matrices that broadcast to a shape."""
    parts = [cut(group, a, shape, along) for a in matrix]
    options |= {"rows": max(np.shape(a)[axis] for a in parts if np.ndim(a))}
    return pysolvers.factor_tridiagonal(
        *parts, axis=axis, group=group, split=Slab(along), **options
    )


def solved(group, factor, matrix, rhs, axis, along, periodic=False):
    """Solve, and check the backward error of the whole."""
    part = cut(group, rhs, rhs.shape, along)
    x = factor.solve(part, axis=axis)
    whole = joined(group, x, along)
    operands = [*(np.broadcast_to(a, rhs.shape) for a in matrix), rhs, whole]
    wide = [np.moveaxis(a, axis, -1) for a in operands]
    errors, _ = oracle.backward_errors(*wide, periodic=periodic)
    assert x.dtype == np.result_type(rhs, *matrix)
    assert errors.max() <= BOUND * oracle.eps(x.dtype), (rhs.shape, axis, along, factor.info)
    return whole


def check_every_axis_and_dtype(group, rng):
    for axis in range(3):
        for along in range(3):
            for dtype in oracle.DTYPES:
                for make in (oracle.dominant, oracle.general):
                    shape = [5, 4, 6]
                    shape[axis] = 23
                    batch = (*shape[:axis], *shape[axis + 1 :])
                    operands = make(rng, (*batch, shape[axis]), dtype)
                    *matrix, rhs = (np.moveaxis(a, -1, axis) for a in operands)
                    periodic = axis == 1
                    factor = factored(group, matrix, shape, axis, along, periodic=periodic)
                    solved(group, factor, matrix, rhs, axis, along, periodic)
                    if make is oracle.dominant and along == axis and group.size > 1:
                        assert factor.info.exchange == "ends"
                    assert (factor.info.rows, factor.info.systems) == (23, np.prod(batch))


def check_shared_matrices(group, rng):
    """One matrix, and matrices that the batch shares in part, with real and complex sides."""
    shape = (4, 3, 29)
    for make in (oracle.dominant, oracle.general):
        operands = make(rng, shape)
        rhs = operands[3]
        for index in (np.s_[0, 0], np.s_[:1], np.s_[:, :1]):
            matrix = [a[index] for a in operands[:3]]
            factor = factored(group, matrix, matrix[0].shape, -1, matrix[0].ndim - 1)
            solved(group, factor, matrix, rhs, 2, 2)
            solved(group, factor, matrix, rhs + 1j * rhs[::-1], 2, 2)
            more = np.stack([rhs, 2 * rhs[:, ::-1]])
            solved(group, factor, matrix, more, 3, 3)
        one = [a[0, 0] for a in operands[:3]]
        factor = factored(group, one, (29,), 0, 0)
        turned = np.moveaxis(rhs, 2, 0)
        solved(group, factor, [a[:, None, None] for a in one], turned, 0, 0)


def check_parts_of_more_rows_than_the_ends_reach(group, rng):
    """The ends of a part reach some or all of its rows, in all or in some of the systems."""
    rows = 400 * group.size + 1
    rhs = rng.standard_normal((6, rows))
    for ratio in (0.2, 4.0, 1e6, np.array([1e-12, 0.2, 1, 4, 20, 1e6])[:, None]):
        matrix = diffusion(rhs.shape, ratio)
        for own in (matrix, [a[0] for a in matrix], [a.T for a in matrix]):
            axis = 0 if own[0].ndim > 1 and len(own[0]) == rows else -1
            along = axis % own[0].ndim
            sides = rhs.T if axis == 0 else rhs
            for periodic in (False, True):
                factor = factored(group, own, own[0].shape, axis, along, periodic=periodic)
                if group.size > 1:
                    assert factor.info.exchange == "ends"
                solved(group, factor, own, sides, axis, axis % sides.ndim, periodic)


def check_every_remainder(group, rng):
    for rows in range(group.size, 4 * group.size + 2):
        for make in (oracle.dominant, oracle.general):
            for periodic in (False, True):
                for shape in chosen(rows, ((3, rows), (1, rows), (rows,))):
                    axis = len(shape) - 1
                    *matrix, rhs = make(rng, shape)
                    factor = factored(group, matrix, shape, axis, axis, periodic=periodic)
                    solved(group, factor, matrix, rhs, axis, axis, periodic)


def check_in_place_and_refactored(group, rng):
    *matrix, rhs = oracle.dominant(rng, (5, 31))
    factor = factored(group, matrix, (5, 31), 1, 1)
    part = cut(group, rhs, (5, 31), 1)
    x = factor.solve(part)
    repeated = part.copy()
    assert factor.solve(repeated, out=repeated) is repeated
    np.testing.assert_array_equal(repeated, x)
    other = oracle.general(rng, (5, 31))[:3]
    factor.refactor(*(cut(group, a, (5, 31), 1) for a in other))
    solved(group, factor, other, rhs, 1, 1)
    assert factor.nbytes > 0


def check_singular_matrices(group, rng):
    """All ranks name the same matrices and rows as one device."""
    *matrix, rhs = singular_operands(rng)
    try:
        pysolvers.factor_tridiagonal(*matrix)
    except pysolvers.SingularSystemError as error:
        expected = error
    for along in (0, 1):
        try:
            factored(group, matrix, (6, 20), 1, along)
        except pysolvers.SingularSystemError as error:
            found = error
        np.testing.assert_array_equal(found.systems[:, 0], [1, 4])
        np.testing.assert_array_equal(found.rows, expected.rows)
        factor = factored(group, matrix, (6, 20), 1, along, on_singular="nan")
        np.testing.assert_array_equal(factor.info.singular[:, 0], [1, 4])
        x = joined(group, factor.solve(cut(group, rhs, (6, 20), along)), along)
        np.testing.assert_array_equal(np.isnan(x).all(axis=1), np.isin(range(6), (1, 4)))


def check_arrays_on_a_device(group, rng):
    """On a device made of protected host memory, which ends a process that touches it."""
    with fake_device.in_place_of_cuda() as fake:
        for make in (oracle.dominant, oracle.general):
            *matrix, rhs = make(rng, (4, 21))
            for own in (matrix, [a[:1] for a in matrix]):
                factor = factored(group, own, (len(own[0]), 21), 1, 1, device="cuda")
                solved(group, factor, own, rhs, 1, 1)
                part = fake.array(cut(group, rhs, (4, 21), 1))
                x = joined(group, factor.solve(part).get(), 1)
                errors, _ = oracle.backward_errors(
                    *(np.broadcast_to(a, (4, 21)) for a in own), rhs, x
                )
                assert errors.max() <= BOUND * oracle.eps(float)


def check_axes_of_matrices_of_one_dimension(group, rng):
    """The axis of the factor is that of right-hand sides: of cubes, whose axes are equally long."""
    n = 4 * group.size
    lower, diag, upper, _ = oracle.dominant(rng, (n,))
    cube = rng.standard_normal((n,) * 3)
    inside = np.arange(n) % 5 != 2
    for axis in range(-3, 3):
        along = axis % 3
        operands = [cut(group, a, (n,), 0) for a in (lower, diag, upper, inside)]
        part = cut(group, cube, cube.shape, along)
        for where in (None, inside):
            options = {"axis": axis, "group": group, "split": Slab(axis)}
            whole = {"axis": along, "where": where}
            if where is not None:
                options["where"] = operands[3]
            made = pysolvers.factor_tridiagonal(*operands[:3], **options)
            x = joined(group, made.solve(part), along)
            expected = pysolvers.solve_tridiagonal(lower, diag, upper, cube, **whole)
            np.testing.assert_allclose(x, expected, rtol=0, atol=1e-12)
            assert made.axis == axis
            made = pysolvers.factor_theta(operands[0], -operands[1], operands[2], dt=0.1, **options)
            x = joined(group, made.step(part, count=2), along)
            expected = cube
            for _ in range(2):
                expected = pysolvers.theta_step(lower, -diag, upper, expected, dt=0.1, **whole)
            np.testing.assert_allclose(x, expected, rtol=0, atol=1e-12)
    split = {"axis": 2, "group": group, "pivot": True}
    made = pysolvers.factor_tridiagonal(*operands[:3], **split, split=Slab(2))
    with pytest.raises(ValueError, match=r"axis of the factor must be .*got 2"):
        made.solve(operands[1])
    with pytest.raises(ValueError, match=r"split along their rows, .*: write Slab\(2\)"):
        pysolvers.factor_tridiagonal(*operands[:3], **split, split=Slab(0))

"""Checks of split solves, run by every rank of an MPI job; see test_distributed.py.

Every rank makes the same random operands, takes its part of them, and compares its part of the
solution. The whole solution is checked on rank 0 by its backward error.
"""

import ctypes
import itertools
from typing import ClassVar
from unittest import mock

import fake_device
import numpy as np
import oracle
import pytest
from mpi4py import MPI
from rank_hooks import (
    address_of,
    answer,
    clock_at,
    failing_reduction,
    in_two_passes,
    keeping_nothing,
    with_nccl,
)
from slabs import EVERY, chosen

import pysolvers
from pysolvers.distributed import Group, Slab

BOUND = 8  # eps, for the normwise backward error; as for one device


def cut(group, array, shape, axis):
    """Return the part of an operand that this rank holds, if it varies along the axis."""
    array = np.asarray(array)
    at = axis - len(shape) + array.ndim
    if at < 0 or array.shape[at] == 1:
        return array
    part = Slab(axis).part(shape[axis], group.rank, group.size)
    return array[(slice(None),) * at + (part,)]


def joined(group, part, axis):
    """Return the array of which each rank has a part."""
    return np.concatenate(group.objects("test", part), axis)


def solved(group, operands, shape, axis, along, periodic=False, exchange=None, **options):
    """Solve with split operands; check the backward error of the whole, and return it."""
    parts = [cut(group, a, shape, along) for a in operands]
    x, info = pysolvers.solve_tridiagonal(
        *parts,
        axis=axis,
        periodic=periodic,
        group=group,
        split=Slab(along),
        return_info=True,
        **options,
    )
    whole = joined(group, x, along)
    wide = [np.moveaxis(np.broadcast_to(a, shape), axis, -1) for a in (*operands, whole)]
    errors, _ = oracle.backward_errors(*wide, periodic=periodic)
    kind = np.result_type(*operands)
    assert x.dtype == kind
    assert np.max(errors, initial=0) <= BOUND * oracle.eps(kind), (shape, axis, along, info)
    assert info.ranks == group.size
    assert info.rows == shape[axis]
    assert info.systems * info.rows == np.prod(shape)
    if exchange is not None and group.size > 1:
        ways = (exchange, "peers", "nccl") if options.get("device") == "cuda" else (exchange,)
        assert info.exchange in (ways if along == axis else ("none",))
    return whole, info


def check_every_axis_and_dtype(group, rng):
    for axis in range(3):
        for along in range(3):
            for dtype in oracle.DTYPES:
                for periodic in (False, True):
                    shape = [5, 4, 6]
                    shape[axis] = 23
                    operands = [
                        np.moveaxis(a, -1, axis)
                        for a in oracle.dominant(
                            rng, (*shape[:axis], *shape[axis + 1 :], 23), dtype
                        )
                    ]
                    solved(group, operands, shape, axis, along, periodic, "ends")


def check_every_remainder(group, rng):
    for rows in range(group.size, 4 * group.size + 2):
        for dtype in (np.float64, np.complex64):
            for periodic in (False, True):
                shape = (3, rows)
                operands = oracle.dominant(rng, shape, dtype)
                solved(group, operands, shape, 1, 1, periodic, "ends")
                operands = oracle.general(rng, shape, dtype)
                solved(group, operands, shape, 1, 1, periodic)


def check_shared_matrices_and_numbers(group, rng):
    shape = (4, 3, 29)
    lower, diag, upper, rhs = oracle.dominant(rng, shape)
    one = [a[0, 0] for a in (lower, diag, upper)]
    for matrix in (one, [a[:, :1] for a in (lower, diag, upper)], (-1.0, 4.0, -1.0)):
        solved(group, [*matrix, rhs], shape, 2, 2, exchange="ends")
        solved(group, [*matrix, rhs + 1j * rhs], shape, 2, 2, exchange="ends")
    columns = [a[..., None] for a in one]
    solved(group, [*columns, np.moveaxis(rhs, 2, 1)], (4, 29, 3), 1, 1, exchange="ends")


def check_memory_orders_of_ranks(group, rng):
    """Only ranks with contiguous rows make a real matrix complex that all systems share."""
    shape = (4, 3, 29)
    lower, diag, upper, rhs = oracle.dominant(rng, shape)
    one = [a[0, 0] for a in (lower, diag, upper)]
    complex_rhs = np.array(rhs + 1j * rhs, order="FC"[group.rank % 2])
    for pivot, exchange in ((None, "ends"), (True, "lines")):
        operands = [*one, complex_rhs]
        solved(group, operands, shape, 2, 2, pivot=pivot, exchange=exchange)


def check_unequal_parts(group, rng):
    """The parts of the ranks can have any lengths."""
    sizes = [1 + 5 * ((rank + 1) % group.size) for rank in range(group.size)]
    start = sum(sizes[: group.rank])
    part = slice(start, start + sizes[group.rank])
    for make, periodic in ((oracle.dominant, False), (oracle.general, True)):
        operands = make(rng, (3, sum(sizes)))
        x = pysolvers.solve_tridiagonal(
            *(a[:, part] for a in operands), periodic=periodic, group=group, split=Slab(1)
        )
        errors, _ = oracle.backward_errors(*operands, joined(group, x, 1), periodic=periodic)
        assert errors.max() <= BOUND * oracle.eps(float)


def check_row_exchanges(group, rng):
    """Zero diagonals: the rows of one rank are singular where their number is odd."""
    for rows in (6 * group.size, 6 * group.size + 2):
        for shape in ((5, rows), (1, rows), (rows,)):
            ones = np.ones(shape)
            axis, systems = len(shape) - 1, ones.size // rows
            for pivot in (None, True):
                operands = (ones, 0 * ones, ones, rng.standard_normal(shape))
                _, info = solved(group, operands, shape, axis, axis, pivot=pivot, exchange="lines")
                assert info.pivoted == systems


def check_numbers_on_some_ranks(group, rng):
    """A diagonal can be a number on one rank and an array on another one."""
    shape = (5, 29)
    for make in (oracle.dominant, oracle.general):
        operands = make(rng, shape)
        operands[0][...], operands[2][...] = -1.25, 0.75
        parts = [cut(group, a, shape, 1) for a in operands]
        if group.rank == 0:
            parts[0] = -1.25
        if group.rank == group.size - 1:
            parts[2] = 0.75
        options = {"group": group, "split": Slab(1)}
        factor = pysolvers.factor_tridiagonal(*parts[:3], **options)
        for x in (pysolvers.solve_tridiagonal(*parts, **options), factor.solve(parts[3])):
            errors, _ = oracle.backward_errors(*operands, joined(group, x, 1))
            assert errors.max() <= BOUND * oracle.eps(float)


def check_rows_at_the_ends_decide(group, rng):
    """A matrix that is dominant but for one row that couples two ranks needs row exchanges."""
    shape = (5, 8 * group.size)
    for k in range(1, group.size):
        for which, row in ((0, 8 * k), (2, 8 * k - 1), (1, 8 * k - 1), (1, 8 * k)):
            operands = oracle.dominant(rng, shape)
            operands[which][3, row] *= 100 if which != 1 else 1e-3
            _, info = solved(group, operands, shape, 1, 1, exchange="lines")
            assert info.pivoted == 1


def check_pivot_true_of_dominant_systems(group, rng):
    operands = oracle.dominant(rng, (7, 30))
    whole, _ = solved(group, operands, (7, 30), 1, 1, pivot=True, exchange="lines")
    np.testing.assert_array_equal(whole, pysolvers.solve_tridiagonal(*operands, pivot=True))


def check_long_lines(group, rng):
    """Lines whose matrices are dominant and nearly singular."""
    for rows in (1000, 30001):
        shape = (2, rows)
        for lower, diag, upper in ((-1, 2, -1), (-1.9, 2, -0.1), (1, 2, 1)):
            matrix = [np.full(shape, float(v)) for v in (lower, diag, upper)]
            operands = (*matrix, rng.standard_normal(shape))
            solved(group, operands, shape, 1, 1, exchange="ends")


def diffusion(shape, ratio):
    """Return the diagonals of an implicit step of diffusion, with k dt / h^2 = `ratio`."""
    return [np.full(shape, value) for value in (-ratio, 1 + 2 * ratio, -ratio)]


def check_parts_of_more_rows_than_the_ends_reach(group, rng):
    """The ends of a part reach some, many or all of its rows, in all or in some of the systems."""
    rows = 400 * group.size + 1
    shape = (6, rows)
    rhs = rng.standard_normal(shape)
    ratios = np.array([1e-12, 0.2, 1, 4, 20, 1e6])[:, None]
    *random, sides = oracle.dominant(rng, shape)
    for periodic in (False, True):
        for ratio in (0.2, 4.0, 1e6, ratios):
            matrix = diffusion(shape, ratio)
            solved(group, [*matrix, rhs], shape, 1, 1, periodic, "ends")
            turned = [a.T for a in (*matrix, rhs)]
            solved(group, turned, shape[::-1], 0, 0, periodic, "ends")
            solved(group, [*matrix, rhs], shape, 1, 1, periodic, "ends", pivot=False)
            single = [a.astype(np.float32) for a in (*matrix, rhs)]
            solved(group, single, shape, 1, 1, periodic, "ends")
            solved(group, [*matrix, rhs + 1j * rhs[::-1]], shape, 1, 1, periodic, "ends")
        for index in (np.s_[:], np.s_[0], np.s_[:, :1]):
            matrix = [a[index] for a in random]
            whole, _ = solved(group, [*matrix, sides], shape, 1, 1, periodic, "ends")
            expected = pysolvers.solve_tridiagonal(*matrix, sides, periodic=periodic)
            np.testing.assert_allclose(whole, expected, rtol=1e-12, atol=1e-14)


def check_ends_in_all_rows_in_one_pass(group, rng):
    """The pass for x and the ends gives the bits of one solve for each of them."""
    if group.size == 1:
        return
    rows = 300 * group.size + 1
    shapes = ((5, rows), 1), ((rows, 21), 0), ((2, 3, rows), 2), ((3, rows, 4), 1)
    for number, (shape, axis) in enumerate(shapes):
        for dtype in chosen(number, oracle.DTYPES):
            ratio = rng.uniform(1e3, 1e6, [n if k != axis else 1 for k, n in enumerate(shape)])
            matrix = [np.broadcast_to(a, shape).astype(dtype) for a in (-ratio, 1 + 2 * ratio)]
            operands = (*matrix, matrix[0], oracle.uniform(rng, shape, dtype))
            parts = [np.array(cut(group, a, shape, axis)) for a in operands]
            for periodic, pivot, in_place in ((0, None, 0), (1, False, 0), (0, None, 1)):
                options = {"axis": axis, "periodic": bool(periodic), "pivot": pivot}
                options |= {"group": group, "split": Slab(axis)}
                sides = [parts[3].copy() for _ in range(2)]
                outs = [rhs if in_place else None for rhs in sides]
                found = pysolvers.solve_tridiagonal(*parts[:3], sides[0], out=outs[0], **options)
                with in_two_passes() as spikes:
                    expected = pysolvers.solve_tridiagonal(
                        *parts[:3], sides[1], out=outs[1], **options
                    )
                assert spikes.call_count == 1
                np.testing.assert_array_equal(found, expected)
            solved(group, operands, shape, axis, axis, exchange="ends")


def check_rows_inside_decide_in_one_pass(group, rng):
    """A row inside of a part whose ends reach all rows needs row exchanges, or has a bad pivot."""
    if group.size == 1:
        return
    shape = (5, 300 * group.size)
    for rank in range(group.size):
        operands = [*diffusion(shape, 1e6), rng.standard_normal(shape)]
        operands[1][3, 300 * rank + 150] *= 1 - 1e-3
        _, info = solved(group, operands, shape, 1, 1, exchange="lines")
        assert info.pivoted == 1
        for a in operands[:3]:
            a[3, 300 * rank + 150] = 0
        parts = [cut(group, a, shape, 1) for a in operands]
        options = {"group": group, "split": Slab(1)}
        for pivot in (None, False):
            with pytest.raises(pysolvers.SingularSystemError) as error:
                pysolvers.solve_tridiagonal(*parts, pivot=pivot, **options)
            with pytest.raises(pysolvers.SingularSystemError) as expected:
                pysolvers.solve_tridiagonal(*operands, pivot=pivot)
            assert error.value.systems.tolist() == [[3]] == expected.value.systems.tolist()
            assert error.value.rows.tolist() == expected.value.rows.tolist()


def check_memory_of_the_ends_is_used_again(group, rng):
    """The arrays of a call are kept for the next ones, and are not those of its solution."""
    if group.size == 1:
        return
    found = []
    for rows, dtype in ((500, np.float64), (900, np.complex128), (300, np.float32)):
        shape = (4, rows * group.size)
        operands = [a.astype(dtype) for a in diffusion(shape, 1e6)]
        operands.append(oracle.uniform(rng, shape, dtype))
        whole, _ = solved(group, operands, shape, 1, 1, True, "ends")
        parts = [cut(group, a, shape, 1) for a in operands]
        options = {"group": group, "split": Slab(1), "periodic": True}
        found.append((pysolvers.solve_tridiagonal(*parts, **options), whole))
        kept = group.kept["scratch"]
        memory = {number: array.ctypes.data for number, array in kept.items()}
        pysolvers.solve_tridiagonal(*parts, **options)
        assert memory == {number: array.ctypes.data for number, array in kept.items()}
        with keeping_nothing():
            kept.clear()
            pysolvers.solve_tridiagonal(*parts, **options)
            assert not kept
    for x, whole in found:
        np.testing.assert_array_equal(joined(group, x, 1), whole)


def check_entries_that_reach_no_other_row(group, rng):
    """Systems that are cut between the ranks anyway, all or one of them."""
    shape = (3, 150 * group.size)
    for system in (slice(None), slice(1, 2)):
        lower, diag, upper, rhs = oracle.dominant(rng, shape)
        for k in range(1, group.size):
            lower[system, 150 * k] = upper[system, 150 * k - 2 : 150 * k] = 0
        solved(group, (lower, diag, upper, rhs), shape, 1, 1, False, "ends")


def check_attempts_that_are_singular(group, rng):
    """The last rows of a part alone are singular, the part and the systems are not."""
    shape = (3, 400 * group.size)
    lower, diag, upper, rhs = oracle.dominant(rng, shape)
    row = np.arange(group.size) * 400 + 399 - 64
    for k in (row, row - 1):
        lower[:, k], upper[:, k] = 1, 1
    diag[:, row - 1], diag[:, row] = 2, 0
    operands = lower, diag, upper, rhs
    solved(group, operands, shape, 1, 1, False, "ends", pivot=False)
    factor = pysolvers.factor_tridiagonal(
        *(cut(group, a, shape, 1) for a in operands[:3]), pivot=False, group=group, split=Slab(1)
    )
    x = joined(group, factor.solve(cut(group, rhs, shape, 1)), 1)
    assert oracle.backward_errors(*operands, x)[0].max() <= BOUND * oracle.eps(float)


def check_one_row_that_is_not_finite(group, rng):
    """Its system is not finite in any row, the others are as without it."""
    shape = (3, 300 * group.size)
    for value in (np.nan, np.inf):
        for at in (0, 299, 300 * group.size - 1):
            operands = oracle.dominant(rng, shape)
            parts = [cut(group, a, shape, 1) for a in operands]
            options = {"group": group, "split": Slab(1)}
            factor = pysolvers.factor_tridiagonal(*parts[:3], **options)
            expected = pysolvers.solve_tridiagonal(*parts, **options)
            operands[3][1, at] = value
            parts[3] = cut(group, operands[3], shape, 1)
            for x in (pysolvers.solve_tridiagonal(*parts, **options), factor.solve(parts[3])):
                assert not np.isfinite(x[1]).any()
                np.testing.assert_allclose(x[::2], expected[::2], rtol=1e-12, atol=1e-14)


def check_same_bits_twice(group, rng):
    operands = oracle.dominant(rng, (6, 50))
    first, _ = solved(group, operands, (6, 50), 1, 1)
    repeated, _ = solved(group, operands, (6, 50), 1, 1)
    np.testing.assert_array_equal(first, repeated)


def check_operands_are_kept_and_out_is_filled(group, rng):
    for shape, make in itertools.product(
        ((5, 31), (5, 200 * group.size)), (oracle.dominant, oracle.general)
    ):
        parts = [np.ascontiguousarray(cut(group, a, shape, 1)) for a in make(rng, shape)]
        kept = [a.copy() for a in parts]
        options = {"group": group, "split": Slab(1)}
        x = pysolvers.solve_tridiagonal(*parts, **options)
        for part, before in zip(parts, kept, strict=True):
            np.testing.assert_array_equal(part, before)
        y = pysolvers.solve_tridiagonal(*parts, out=parts[3], **options)
        assert y is parts[3]
        np.testing.assert_array_equal(x, y)


def check_short_and_ignored_entries(group, rng):
    for rows in (17, 3 * group.size, 4 * group.size):
        lower, diag, upper, rhs = oracle.dominant(rng, (4, rows))
        lower[:, 0] = upper[:, -1] = np.nan
        parts = [cut(group, a, (4, rows), 1) for a in (lower, diag, upper, rhs)]
        options = {"group": group, "split": Slab(1)}
        expected = pysolvers.solve_tridiagonal(*parts, **options)
        lower[:, 0] = upper[:, -1] = 0
        errors, _ = oracle.backward_errors(lower, diag, upper, rhs, joined(group, expected, 1))
        assert errors.max() <= BOUND * oracle.eps(float)
        if group.rank == 0:
            parts[0] = parts[0][:, 1:]
        if group.rank == group.size - 1:
            parts[2] = parts[2][:, :-1]
        found = pysolvers.solve_tridiagonal(*parts, **options)
        np.testing.assert_array_equal(found, expected)
        factor = pysolvers.factor_tridiagonal(*parts[:3], **options)
        np.testing.assert_allclose(factor.solve(parts[3]), expected, rtol=1e-13, atol=1e-14)


def check_operands_of_one_axis(group, rng):
    """They lie along the systems, which are cut or whole, with as many rows as columns or not."""
    shapes = itertools.product((1, 2, 3), (0, 1), (0, 1))
    several = [lines for lines in itertools.product((False, True), repeat=4) if not all(lines)]
    for number, (own, axis, along) in enumerate(shapes):
        # Of 1 or 3 rows per rank, not as many as columns, fewer combinations in turn.
        step = 1 if EVERY else 4 if own == 2 else 8
        for lines in several[number % step :: step]:
            shape = [own * group.size, 2 * group.size][:: -1 if axis else 1]
            rows = shape[axis]
            part = Slab(along).part(shape[along], group.rank, group.size)
            full, parts = [], []
            for a, is_line in zip(oracle.dominant(rng, (2 * group.size, rows)), lines, strict=True):
                a = a[:1] if is_line else a
                full.append(a)
                whole = a[0] if is_line else np.moveaxis(a, -1, axis)
                if is_line:
                    parts.append(whole[part] if along == axis else whole)
                else:
                    parts.append(whole[(slice(None),) * along + (part,)])
            full[1] = full[1] + np.copysign(3, full[1])
            parts[1] = parts[1] + np.copysign(3, parts[1])
            expected = np.moveaxis(oracle.solve(*full), -1, axis)
            close = {"rtol": 1e-12, "atol": 1e-14}
            options = {"axis": axis, "group": group, "split": Slab(along)}
            x = pysolvers.solve_tridiagonal(*parts, **options)
            np.testing.assert_allclose(joined(group, x, along), expected, **close)
            if not all(lines[:3]):
                own_rows = own if along == axis else rows
                factor = pysolvers.factor_tridiagonal(*parts[:3], rows=own_rows, **options)
                y = factor.solve(parts[3], axis=axis)
                np.testing.assert_allclose(joined(group, y, along), expected, **close)
            is_cut = along == axis
            if lines[0] and (group.rank == 0 or not is_cut):
                parts[0] = parts[0][1:]
            if lines[2] and (group.rank == group.size - 1 or not is_cut):
                parts[2] = parts[2][:-1]
            short = pysolvers.solve_tridiagonal(*parts, **options)
            np.testing.assert_allclose(short, x, **close)


def check_omitted_entries_inside(group, rng):
    """Only the ends can be omitted, whatever the length that remains: one of two, none of one."""
    if group.size == 1:
        return
    for own in (1, 2, 3):
        parts = [a[0] for a in oracle.dominant(rng, (1, own))]
        options = {"group": group, "split": Slab(0)}
        if group.rank == 1:
            parts[0] = parts[0][1:]
        error = ValueError if group.rank == 1 else pysolvers.DistributedError
        for call in (pysolvers.solve_tridiagonal, pysolvers.factor_tridiagonal):
            operands = parts if call is pysolvers.solve_tridiagonal else parts[:3]
            with pytest.raises(error, match="lower: only rank 0"):
                call(*operands, **options)


def check_empty_batch(group, rng):
    for shape in ((0, 12), (3, 0, 12)):
        operands = [np.ones(shape)] * 4
        parts = [cut(group, a, shape, len(shape) - 1) for a in operands]
        x, info = pysolvers.solve_tridiagonal(*parts, group=group, split=Slab(-1), return_info=True)
        assert x.shape == parts[3].shape
        assert info.systems == 0


def singular_operands(rng):
    operands = oracle.dominant(rng, (6, 20))
    for system, row in ((1, 0), (4, 12)):
        for a in operands[:3]:
            a[system, row] = 0
        operands[2][system, row - 1 : row] = 0
    return operands


def check_matrices_that_are_not_finite(group, rng):
    """All ranks name the same entry, in a part of any rank and next to the cuts."""
    shape = (6, 20)
    last = group.size - 1
    cuts = {0, 19, *(Slab(1).part(20, rank, group.size).stop - 1 for rank in range(last)), 13}
    for (k, row), along, pivot in itertools.product(
        enumerate(sorted(cuts)), (0, 1), (None, False, True)
    ):
        operands = oracle.dominant(rng, shape)
        name = ("lower" if row else "diag", "diag", "upper" if row < 19 else "diag")[k % 3]
        operands[("lower", "diag", "upper").index(name)][4, row] = np.nan
        parts = [cut(group, a, shape, along) for a in operands]
        options = {"group": group, "split": Slab(along), "pivot": pivot}
        text = rf"{name} is nan at batch index \(4,\), row {row}, and"
        with pytest.raises(ValueError, match=f"solve_tridiagonal: {text}") as error:
            pysolvers.solve_tridiagonal(*parts, **options)
        assert not isinstance(error.value, pysolvers.SingularSystemError)
        with pytest.raises(ValueError, match=f"factor_tridiagonal: {text}"):
            pysolvers.factor_tridiagonal(*parts[:3], **options)
        x = pysolvers.solve_tridiagonal(*parts, **options, on_singular="nan")
        np.testing.assert_array_equal(
            np.isnan(joined(group, x, along)).all(axis=1), np.arange(6) == 4
        )


def check_singular_systems(group, rng):
    """All ranks name the same systems and rows as one device."""
    shape = (6, 20)
    operands = singular_operands(rng)
    for pivot in (None, True, False):
        for along in (0, 1):
            parts = [cut(group, a, shape, along) for a in operands]
            options = {"group": group, "split": Slab(along), "pivot": pivot}
            try:
                pysolvers.solve_tridiagonal(*parts, **options)
            except pysolvers.SingularSystemError as error:
                found = error
            try:
                pysolvers.solve_tridiagonal(*operands, pivot=pivot)
            except pysolvers.SingularSystemError as error:
                expected = error
            np.testing.assert_array_equal(found.systems, expected.systems)
            np.testing.assert_array_equal(found.rows, expected.rows)
            x, info = pysolvers.solve_tridiagonal(
                *parts, on_singular="nan", return_info=True, **options
            )
            whole = joined(group, x, along)
            np.testing.assert_array_equal(info.singular[:, 0], [1, 4])
            np.testing.assert_array_equal(np.isnan(whole).all(axis=1), np.isin(range(6), (1, 4)))
            rest = [a[[0, 2, 3, 5]] for a in (*operands, whole)]
            assert oracle.backward_errors(*rest)[0].max() <= BOUND * oracle.eps(float)


def check_one_singular_line(group, rng):
    """Its number is 0 on all ranks, once."""
    for shape in ((20,), (1, 20)):
        operands = [a.reshape(shape) for a in oracle.dominant(rng, (20,))]
        for a in operands[:3]:
            a[..., 7] = 0
        along = len(shape) - 1
        parts = [cut(group, a, shape, along) for a in operands]
        options = {"on_singular": "nan", "return_info": True}
        _, expected = pysolvers.solve_tridiagonal(*operands, **options)
        options |= {"group": group, "split": Slab(along)}
        x, info = pysolvers.solve_tridiagonal(*parts, **options)
        del options["return_info"]
        factor = pysolvers.factor_tridiagonal(*parts[:3], **options)
        for each in (info, factor.info):
            assert each.singular.shape == (1, along)
            np.testing.assert_array_equal(each.singular_rows, expected.singular_rows)
        assert np.isnan(x).all()
        assert np.isnan(factor.solve(parts[3])).all()


def check_arrays_on_a_device(group, rng):
    """On a device made of protected host memory, which ends a process that touches it."""
    with fake_device.in_place_of_cuda() as fake:
        for dtype in oracle.DTYPES:
            for periodic in (False, True):
                shape = (4, 19, 3)
                operands = [np.moveaxis(a, -1, 1) for a in oracle.dominant(rng, (4, 3, 19), dtype)]
                solved(group, operands, shape, 1, 1, periodic, "ends", device="cuda")
                operands[:3] = [a[:1, :, :1] for a in operands[:3]]
                solved(group, operands, shape, 1, 1, periodic, "ends", device="cuda")
                operands[:3] = [a.real for a in operands[:3]]
                solved(group, operands, shape, 1, 1, periodic, device="cuda")
        operands = oracle.general(rng, (5, 20))
        expected = pysolvers.solve_tridiagonal(*operands)
        for along in (0, 1):
            parts = [fake.array(cut(group, a, (5, 20), along)) for a in operands]
            for policy in ("raise", "ignore"):
                x = pysolvers.solve_tridiagonal(
                    *parts, group=group, split=Slab(along), on_singular=policy
                )
                np.testing.assert_allclose(joined(group, x.get(), along), expected, rtol=1e-12)


class PeerDevice(fake_device.Device):
    """A device made of host memory, whose parts exchange all their rows by MPI.

    What a part sends by NCCL is its number, which the other parts expect.
    """

    PART_STEPS: ClassVar = {"whole": 0, "send": 1, "receive": 2}
    status = 0  # of part_check()
    can_share = True

    def __init__(self):
        super().__init__()
        self.Mark.passed = True

    def reach(self, other, device, /):
        return 0

    def part_mailbox(self, dtype, systems, count, step, /):
        return 0, 64

    def share(self, address, device, /):
        return 0, bytes(64)

    def open_shared(self, name, device, /):
        failure = next(k for k, (name, _) in self.STATUS.items() if name == "PS_DEVICE_FAILURE")
        return (0, 1) if self.can_share else (failure, 0)

    def close_shared(self, address, device, /):
        return 0

    def part_leave(self, *arguments):
        return 0

    def part_check(self, *arguments):
        assert arguments[10] == (0, 0)
        return self.status

    def part_solve(
        self, flags, lower, diag, upper, rhs, x, info, part, count, last, boxes, logs, *rest
    ):
        key, clock, _, marks, step, *_ = rest
        assert len(boxes) == len(logs) == count
        assert last[part] - (last[part - 1] if part else -1) >= x.shape[2]
        assert (key != 0) == (step == 0)
        with self.open():
            if step:
                numbers = [(ctypes.c_char * 64).from_address(box) for box in boxes]
                if step == self.PART_STEPS["send"]:
                    numbers[part].raw = bytes([part + 1]) * 64
                    return 0
                assert [box.raw[0] for box in numbers] == [k + 1 for k in range(count)]
            own = [np.array(a) for a in (lower, diag, upper, rhs)]
            found = MPI.COMM_WORLD.allgather(own)
            start = sum(each[1].shape[2] for each in found[:part])
            parts = zip(*found, strict=True)
            whole = [np.concatenate(a, axis=2) for a in parts]
            y = pysolvers.solve_tridiagonal(*whole, periodic=bool(flags & 1), on_singular="ignore")
            zero = (whole[1] == 0).all(axis=2)
            y[zero] = 7  # what a kernel leaves there is unspecified
            x[...] = y[..., start : start + x.shape[2]]
            weak = (np.abs(whole[1]) < np.abs(whole[0]) + np.abs(whole[2])).any(axis=2)
            if marks:
                ctypes.memmove(marks, weak.tobytes(), weak.size)
            info[...] = zero.ravel()
            noted = clock_at(clock)
            noted["calls"] += 1
            if zero.any() or (marks and weak.any()):
                noted["failed"] = noted["calls"]
            answer(noted)
        return 0


class NcclOverMpi:
    """`Nccl` for memory of `fake_device`."""

    def __init__(self, device):
        self._device = device

    def exchange(self, operation, sends, receives, device):
        with self._device.open():
            buffers = {
                rank: (ctypes.c_char * box.nbytes).from_address(address_of(box))
                for rank, box in (sends | receives).items()
            }
            sent = {
                (ctypes.c_char * a.nbytes).from_address(address_of(a)).raw for a in sends.values()
            }
            (own,) = sent  # the same for all ranks
            found = MPI.COMM_WORLD.allgather(own)
            for rank, box in receives.items():
                buffers[rank].raw = found[rank]
                assert box.nbytes == len(found[rank])

    def wait(self, operation, device):
        pass


def in_place_of_nccl(device):
    """Let the ranks find NCCL."""
    return with_nccl(NcclOverMpi(device))


def check_lines_on_devices(group, rng):
    """Between devices of one host and, if these cannot use each other's memory, by NCCL."""
    if group.size != 2:
        return
    for way in ("peers", "nccl"):
        with (
            mock.patch.object(fake_device, "Device", PeerDevice),
            mock.patch.object(PeerDevice, "can_share", way == "peers"),
            fake_device.in_place_of_cuda() as device,
            in_place_of_nccl(device),
        ):
            solve_on_devices_by(way, Group(), rng)


def solve_on_devices_by(way, group, rng):
    for dtype in oracle.DTYPES:
        for periodic in (False, True):
            operands = [np.moveaxis(a, -1, 1) for a in oracle.dominant(rng, (4, 3, 19), dtype)]
            for pivot in (None, False):
                options = {"pivot": pivot, "device": "cuda"}
                _, info = solved(group, operands, (4, 19, 3), 1, 1, periodic, **options)
                assert info.exchange == way
    operands = oracle.general(rng, (5, 20))
    _, info = solved(group, operands, (5, 20), 1, 1, device="cuda")
    assert info.exchange == "lines"
    # Without row exchanges, singular systems are those that the kernel names.
    operands = oracle.dominant(rng, (5, 20))
    for a in operands[:3]:
        a[3] = 0
    parts = [cut(group, a, (5, 20), 1) for a in operands]
    options = {"group": group, "split": Slab(1), "device": "cuda", "pivot": False}
    x, info = pysolvers.solve_tridiagonal(*parts, on_singular="nan", return_info=True, **options)
    assert info.exchange == way and info.singular.tolist() == [[3]]
    np.testing.assert_array_equal(np.isnan(x).all(axis=1), np.arange(5) == 3)
    with pytest.raises(pysolvers.SingularSystemError) as caught:
        pysolvers.solve_tridiagonal(*parts, **options)
    assert caught.value.systems.tolist() == [[3]]
    with mock.patch.object(PeerDevice, "status", 1):
        operands = oracle.dominant(rng, (5, 22))
        _, info = solved(group, operands, (5, 22), 1, 1, device="cuda")
        assert info.exchange == "ends"


def check_solution_in_place_of_the_right_hand_sides(group, rng):
    """One system needs row exchanges: then all are solved again, from the right-hand sides."""
    if group.size != 2:
        return
    with (
        mock.patch.object(fake_device, "Device", PeerDevice),
        fake_device.in_place_of_cuda() as fake,
    ):
        for pivot, exchange in ((None, "lines"), (False, "peers")):
            operands = oracle.dominant(rng, (5, 20))
            if pivot is None:
                for a, b in zip(operands, oracle.general(rng, (1, 20)), strict=True):
                    a[3] = b[0]
            expected = pysolvers.solve_tridiagonal(*operands)
            parts = [fake.array(cut(group, a, (5, 20), 1)) for a in operands]
            x, info = pysolvers.solve_tridiagonal(
                *parts,
                group=Group(),
                split=Slab(1),
                pivot=pivot,
                out=parts[3],
                return_info=True,
            )
            assert x is parts[3] and info.exchange == exchange
            np.testing.assert_allclose(joined(group, x.get(), 1), expected, rtol=1e-10)


def check_exchanges_of_a_call(group, rng):
    """A call exchanges the facts of the ranks, and then the numbers of the reduced system."""
    if group.size == 1:
        return
    operands = [
        a[:, Slab(1).part(24, group.rank, group.size)] for a in oracle.dominant(rng, (3, 24))
    ]
    options = {"group": group, "split": Slab(1)}
    factor = pysolvers.factor_tridiagonal(*operands[:3], **options)
    for call in (
        lambda: pysolvers.solve_tridiagonal(*operands, **options),
        lambda: factor.solve(operands[3]),
    ):
        with mock.patch.object(group, "exchange", wraps=group.exchange) as exchange:
            call()
        assert exchange.call_count == 2


def check_an_error_of_one_rank_in_its_elimination(group, rng):
    """It raises on all ranks, with the reason, and the group can be used after it."""
    if group.size == 1:
        return
    operands = oracle.dominant(rng, (3, 24))
    parts = [a[:, Slab(1).part(24, group.rank, group.size)] for a in operands]
    options = {"group": group, "split": Slab(1)}
    factor = pysolvers.factor_tridiagonal(*parts[:3], **options)
    kind = MemoryError if group.rank == 1 else pysolvers.DistributedError
    with failing_reduction(MemoryError("no room") if group.rank == 1 else None):
        with pytest.raises(kind, match="no room"):
            pysolvers.solve_tridiagonal(*parts, **options)
        with pytest.raises(kind, match="no room"):
            factor.solve(parts[3])
    solved(group, operands, (3, 24), 1, 1, exchange="ends")


def check_objects_of_any_size(group, rng):
    for sizes in (
        (0, 0, 0, 0),
        (0, 5000, 0, 20000),
        (1000, 1015, 1016, 1017),
        (990, 980, 970, 960),
    ):
        found = group.objects("test", b"%d" % group.rank * sizes[group.rank % 4])
        assert found == [b"%d" % rank * sizes[rank % 4] for rank in range(group.size)]


def check_that_all_ranks_have_devices_for_one_pass(group, rng):
    """A rank with arrays of the host among ranks with devices: all take the way over the host."""
    if group.size != 2:
        return
    operands = oracle.dominant(rng, (5, 20))
    with mock.patch.object(fake_device, "Device", PeerDevice), fake_device.in_place_of_cuda():
        device = "cuda" if group.rank else "cpu"
        _, info = solved(group, operands, (5, 20), 1, 1, device=device)
    assert info.exchange == "ends"


def check_sub_communicators(group, rng):
    if group.size < 3:
        return
    from mpi4py import MPI

    color = int(group.rank >= 2)
    part = Group(MPI.COMM_WORLD.Split(color), timeout=20)
    assert part.size == (group.size - 2 if color else 2)
    operands = oracle.dominant(rng, (3, 11 + color))
    solved(part, operands, (3, 11 + color), 1, 1)


def check_closed_groups_free_their_communicators(group, rng):
    """More groups, one after the other, than an MPI library has communicators."""
    if group.size != 2:
        return
    for _ in range(2100 if EVERY else 3):  # MPICH has 2048
        with Group(MPI.COMM_WORLD, timeout=20) as one:
            comm = one._transport._comm
        assert comm == MPI.COMM_NULL
    one.close()
    with pytest.raises(ValueError, match="test: the group is closed; make another with Group"):
        one.objects("test", 1)
    with pytest.raises(KeyError), Group(MPI.COMM_WORLD, timeout=20) as one:
        raise KeyError
    assert one.objects("test", one.rank) == [0, 1]
    one.close()

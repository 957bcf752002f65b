"""Checks of split block tridiagonal and pentadiagonal solves, run by every rank of an MPI job.

See test_distributed.py. The oracles are LAPACK, by SciPy's `solve_banded`, and the same call with
the whole arrays.
"""

import itertools
import pickle
from contextlib import nullcontext

import numpy as np
import oracle
import pytest
import shared_device
import shared_nccl
from fake_device import FullArray, in_place_of_cuda
from rank_hooks import failing_blocks, without_whole_lines
from ranks_solve import joined
from scipy.linalg import solve_banded
from slabs import anew, chosen

from pysolvers import (
    BackendError,
    DistributedError,
    SingularSystemError,
    SingularSystemWarning,
    factor_block_tridiagonal,
    factor_pentadiagonal,
    solve_block_tridiagonal,
    solve_pentadiagonal,
)
from pysolvers.distributed import Slab

BOUND = 200  # eps, for the normwise backward error
KINDS = ("dominant", "definite", "general")
OFFSETS = range(-2, 3)


def random_blocks(rng, batch, rows, side, dtype, kind):
    """Return lower, diag and upper of random matrices, the rows first of the last three axes."""
    lower, diag, upper = (oracle.uniform(rng, (*batch, rows, side, side), dtype) for _ in range(3))
    if kind == "dominant":
        diag = diag + np.asarray(5 * side, diag.real.dtype) * np.eye(side, dtype=diag.dtype)
    if kind == "definite":
        diag = diag + np.swapaxes(diag.conj(), -1, -2)
        diag += np.asarray(6 * side, diag.real.dtype) * np.eye(side, dtype=diag.dtype)
        lower[..., 1:, :, :] = np.swapaxes(upper[..., :-1, :, :].conj(), -1, -2)
    return lower, diag, upper


def random_bands(rng, batch, rows, dtype, kind):
    """Return five diagonals of random matrices, the rows last."""
    bands = [oracle.uniform(rng, (*batch, rows), dtype) for _ in range(5)]
    if kind == "dominant":
        bands[2] = bands[2] + np.asarray(14, bands[2].real.dtype)
    if kind == "definite":
        bands[2] = (bands[2].real + 7).astype(dtype)
        bands[1][..., 1:] = bands[3][..., :-1].conj()
        bands[0][..., 2:] = bands[4][..., :-2].conj()
    return bands


def product(blocks, x, *, periodic=False):
    """Return the product of matrices of blocks, rows first of the last three axes, with x."""
    lower, diag, upper = blocks
    before, after = np.roll(x, 1, -3), np.roll(x, -1, -3)
    if not periodic:
        before[..., 0, :, :], after[..., -1, :, :] = 0, 0
    return lower @ before + diag @ x + upper @ after


def band_product(bands, x, *, periodic=False):
    """Return the product of matrices of five diagonals, rows last, with x."""
    y = np.zeros(x.shape, np.result_type(x, *bands))
    for band, offset in zip(bands, OFFSETS, strict=True):
        part = np.roll(x, -offset, -1)
        if not periodic and offset > 0:
            part[..., max(x.shape[-1] - offset, 0) :] = 0
        elif not periodic and offset < 0:
            part[..., :-offset] = 0
        y += band * part
    return y


def own_part(group, array, axis, sizes=None):
    """Return the part of an array that this rank holds along an axis; by default the even one."""
    if sizes is None:
        held = Slab(0).part(array.shape[axis], group.rank, group.size)
    else:
        bounds = np.cumsum([0, *sizes])
        held = slice(bounds[group.rank], bounds[group.rank + 1])
    return np.take(array, range(held.start, held.stop), axis)


def require_solution(operands, rhs, x, multiply, periodic, tail):
    """Require a small normwise backward error of each system."""
    wide = [a.astype(np.result_type(a, np.float64)) for a in (*operands, rhs, x)]
    *matrix, right, found = wide
    rest = np.abs(multiply(matrix, found, periodic=periodic) - right)
    axes = tuple(range(-tail, 0)) if tail > 1 else (-1,)
    largest = sum(np.abs(a).max(axes) for a in matrix)
    scale = largest * np.abs(found).max(axes) + np.abs(right).max(axes)
    side = operands[0].shape[-1] if tail > 1 else 2
    errors = rest.max(axes) / np.where(scale == 0, 1, scale)
    assert errors.max(initial=0) <= BOUND * side * oracle.eps(x.dtype), errors.max()


def solve_blocks(group, blocks, rhs, *, axis=0, along=0, ndim=1, sizes=None, **options):
    """Solve with the parts of this rank; return the whole solution, the rows last but two."""
    arrays = [None if a is None else np.moveaxis(a, -3, axis - ndim - 2) for a in (*blocks, rhs)]
    place = along - ndim - 2
    parts = [None if a is None else own_part(group, a, place, sizes) for a in arrays]
    x = solve_block_tridiagonal(
        *parts, axis=axis - ndim, group=group, split=Slab(along - ndim), **options
    )
    return np.moveaxis(joined(group, np.asarray(x), place), axis - ndim - 2, -3)


def solve_bands(group, bands, rhs, *, axis=0, along=0, ndim=1, sizes=None, **options):
    """Solve with the parts of this rank; return the whole solution, the rows last."""
    arrays = [None if a is None else np.moveaxis(a, -1, axis - ndim) for a in (*bands, rhs)]
    parts = [None if a is None else own_part(group, a, along - ndim, sizes) for a in arrays]
    x = solve_pentadiagonal(
        *parts, axis=axis - ndim, group=group, split=Slab(along - ndim), **options
    )
    return np.moveaxis(joined(group, np.asarray(x), along - ndim), axis - ndim, -1)


def options_of(kind):
    """Return the options of a call for matrices of a kind."""
    return {"assume": "positive definite"} if kind == "definite" else {}


def check_blocks_along_every_axis(group, rng):
    number = 0
    cases = itertools.product(((7,), (5, 9), (3, 8, 4)), (2, 3, 4, 6), KINDS)
    for shape, side, kind in cases:
        for axis, along in itertools.product(range(len(shape)), repeat=2):
            number += 1
            if shape[along] < group.size or (shape[axis] < 4 and kind == "general"):
                continue
            batch = (*shape[:axis], *shape[axis + 1 :])
            for dtype in chosen(number, oracle.DTYPES):
                blocks = random_blocks(rng, batch, shape[axis], side, dtype, kind)
                rhs = oracle.uniform(rng, (*batch, shape[axis], side, 1 + number % 2), dtype)
                where = {"axis": axis, "along": along, "ndim": len(shape)}

                x = solve_blocks(group, blocks, rhs, **where, **options_of(kind))

                assert x.dtype == rhs.dtype
                require_solution(blocks, rhs, x, product, periodic=False, tail=3)


def check_bands_along_every_axis(group, rng):
    number = 0
    for shape, kind in itertools.product(((17,), (5, 19), (3, 23, 4)), KINDS):
        for axis, along in itertools.product(range(len(shape)), repeat=2):
            number += 1
            if shape[along] < group.size or (shape[axis] < 6 and kind == "general"):
                continue
            batch = (*shape[:axis], *shape[axis + 1 :])
            for dtype in chosen(number, oracle.DTYPES):
                bands = random_bands(rng, batch, shape[axis], dtype, kind)
                rhs = oracle.uniform(rng, (*batch, shape[axis]), dtype)
                where = {"axis": axis, "along": along, "ndim": len(shape)}

                x = solve_bands(group, bands, rhs, **where, **options_of(kind))

                assert x.dtype == rhs.dtype
                require_solution(bands, rhs, x, band_product, periodic=False, tail=1)


def check_against_lapack(group, rng):
    rows = 40 * group.size + 1
    for kind in KINDS:
        bands, rhs = random_bands(rng, (), rows, float, kind), rng.standard_normal(rows)
        full = np.zeros((5, rows))
        for k, offset in enumerate(OFFSETS):
            full[2 - offset, max(offset, 0) : rows + min(offset, 0)] = bands[k][
                max(-offset, 0) : rows - max(offset, 0)
            ]

        x = solve_bands(group, bands, rhs, **options_of(kind))

        np.testing.assert_allclose(x, solve_banded((2, 2), full, rhs), rtol=1e-8, atol=1e-9)


def check_unequal_parts_and_parts_of_one_row(group, rng):
    """Also parts of five diagonals with fewer rows than are eliminated."""
    for sizes in (
        [1 + 5 * (rank % 2) for rank in range(group.size)],
        [1] * (group.size - 1) + [4],
        [4 + 3 * rank for rank in range(group.size)],
        [2] * (group.size - 1) + [5],
    ):
        rows = sum(sizes)
        for kind, periodic in itertools.product(KINDS, (False, True)):
            if periodic and (rows < 5 or kind == "definite"):
                continue
            options = options_of(kind) | {"periodic": periodic, "sizes": sizes}
            blocks = random_blocks(rng, (2,), rows, 2, float, kind)
            rhs = rng.standard_normal((2, rows, 2, 1))
            x = solve_blocks(group, blocks, rhs, axis=1, along=1, ndim=2, **options)
            require_solution(blocks, rhs, x, product, periodic=periodic, tail=3)
            bands, right = random_bands(rng, (2,), rows, float, kind), rhs[..., 0, 0]
            x = solve_bands(group, bands, right, axis=1, along=1, ndim=2, **options)
            require_solution(bands, right, x, band_product, periodic=periodic, tail=1)


def check_ends_of_every_reach(group, rng):
    """The columns of the interior vanish after some rows, or in none."""
    rows = 400 * group.size
    for gain, dtype in itertools.product((0.3, 0.8, 0.98, 1.0), (np.float64, np.float32)):
        batch, half = (3,), np.asarray(0.5 * gain, dtype)
        blocks = random_blocks(rng, batch, rows, 2, dtype, "general")
        for k, factor in ((0, half), (1, 1), (2, half)):
            blocks[k][...] = -factor * np.eye(2) if k != 1 else np.eye(2)
        blocks[1][..., 0, 0] += np.asarray(1e-3, dtype)
        rhs = oracle.uniform(rng, (*batch, rows, 2, 3), dtype)
        for periodic in (False, True):
            x = solve_blocks(group, blocks, rhs, axis=1, along=1, ndim=2, periodic=periodic)
            require_solution(blocks, rhs, x, product, periodic=periodic, tail=3)
        weight = np.asarray({0.3: 2, 0.8: 1e-1, 0.98: 1e-3, 1.0: 1e-5}[gain], dtype)
        numbers = [np.full(rows, value, dtype) for value in (1, -4, 6 + weight, -4, 1)]
        right = oracle.uniform(rng, (3, rows), dtype)
        bands = [np.broadcast_to(a, right.shape) for a in numbers]
        x = solve_bands(group, bands, right, axis=1, along=1, ndim=2, assume="positive definite")
        require_solution(bands, right, x, band_product, periodic=False, tail=1)


def check_dominant_and_definite_systems_are_eliminated_in_parts(group, rng):
    """Not as whole lines, whatever the side of the blocks."""
    rows = 5 * group.size + 1
    for side, kind, dtype in itertools.product((2, 3, 5), KINDS[:2], (float, complex)):
        blocks = random_blocks(rng, (2,), rows, side, dtype, kind)
        rhs = oracle.uniform(rng, (2, rows, side, 1), dtype)
        bands = random_bands(rng, (2,), rows, dtype, kind)
        right = oracle.uniform(rng, (2, rows), dtype)
        where = {"axis": 1, "along": 1, "ndim": 2, **options_of(kind)}
        with without_whole_lines():
            x = solve_blocks(group, blocks, rhs, **where)
            y = solve_bands(group, bands, right, **where)
        require_solution(blocks, rhs, x, product, periodic=False, tail=3)
        require_solution(bands, right, y, band_product, periodic=False, tail=1)


def check_matrices_that_lines_share(group, rng):
    """Operands with fewer axes, numbers, and one half of symmetric matrices."""
    rows = 12 * group.size
    split = {"group": group, "split": Slab(-1)}
    lower, diag, upper = random_blocks(rng, (), rows, 3, float, "definite")
    rhs = rng.standard_normal((4, rows, 3, 2))
    expected = solve_block_tridiagonal(lower, diag, upper, rhs)
    own_low, own, own_up, right = (own_part(group, a, -3) for a in (lower, diag, upper, rhs))
    for halves in ((own_low, own, own_up), (None, own, own_up), (own_low, own, None)):
        x = solve_block_tridiagonal(*halves, right, assume="positive definite", **split)
        np.testing.assert_allclose(joined(group, x, -3), expected, rtol=1e-9, atol=1e-11)
    block, middle = 0.3 * rng.standard_normal((3, 3)), 6 * np.eye(3)
    for periodic in (False, True):
        whole = solve_block_tridiagonal(block, middle, block.T, rhs, periodic=periodic)
        x = solve_block_tridiagonal(block, middle, block.T, right, periodic=periodic, **split)
        np.testing.assert_allclose(joined(group, x, -3), whole, rtol=1e-9, atol=1e-11)
        line = np.ascontiguousarray(right[..., 0, 0])
        whole = solve_pentadiagonal(1, -4, 11, -4, 1, rhs[..., 0, 0], periodic=periodic)
        x = solve_pentadiagonal(1, -4, 11, -4, 1, line, periodic=periodic, **split)
        np.testing.assert_allclose(joined(group, x, -1), whole, rtol=1e-9, atol=1e-11)
        bands = (-4, 11, -4, 1) if periodic else (11, -4, 1)
        if not periodic:
            x = solve_pentadiagonal(None, None, *bands, line, assume="positive definite", **split)
            np.testing.assert_allclose(joined(group, x, -1), whole, rtol=1e-9, atol=1e-11)
    bands = random_bands(rng, (), rows, complex, "definite")
    side = oracle.uniform(rng, (rows,), complex)
    parts = [own_part(group, a, 0) for a in (*bands, side)]
    x = solve_pentadiagonal(None, None, *parts[2:], assume="positive definite", **split)
    require_solution(bands, side, joined(group, x, 0), band_product, periodic=False, tail=1)


def check_entries_at_the_ends_can_be_omitted(group, rng):
    rows = 6 * group.size
    split = {"group": group, "split": Slab(-1)}
    lower, diag, upper = random_blocks(rng, (2,), rows, 2, float, "dominant")
    rhs = rng.standard_normal((2, rows, 2, 1))
    parts = [own_part(group, a, -3) for a in (lower, diag, upper, rhs)]
    bands, line = random_bands(rng, (), rows, float, "dominant"), rng.standard_normal(rows)
    own = [own_part(group, a, -1) for a in (*bands, line)]
    if group.rank == 0:
        parts[0] = parts[0][:, 1:]
        own[0], own[1] = own[0][2:], own[1][1:]
    if group.rank == group.size - 1:
        parts[2] = parts[2][:, :-1]
        own[3], own[4] = own[3][:-1], own[4][:-2]
    x = solve_block_tridiagonal(*parts, **split)
    require_solution(
        (lower, diag, upper), rhs, joined(group, x, -3), product, periodic=False, tail=3
    )
    x = solve_pentadiagonal(*own, **split)
    require_solution(bands, line, joined(group, x, 0), band_product, periodic=False, tail=1)
    if group.size > 1:
        short = parts[0][:, 1:] if group.rank == 1 else parts[0]
        expected = ValueError if group.rank == 1 else DistributedError
        with pytest.raises(expected, match="lower: only rank 0, which holds the first row"):
            solve_block_tridiagonal(short, *parts[1:], **split)
        last = own[4][:-2] if group.rank == 0 else own[4]
        expected = ValueError if group.rank == 0 else DistributedError
        with pytest.raises(expected, match=f"upper2: only rank {group.size - 1}, which holds"):
            solve_pentadiagonal(*own[:4], last, own[5], **split)


def check_singular_systems(group, rng):
    """They are named on every rank, also where only a part of a rank is singular."""
    rows = 5 * group.size
    for along, kind in itertools.product((0, 1), ("dominant", "definite")):
        blocks = random_blocks(rng, (6,), rows, 2, float, kind)
        bands = random_bands(rng, (6,), rows, float, kind)
        rhs = rng.standard_normal((6, rows, 2, 1))
        for system in (1, 4):
            for a in blocks:
                a[system, rows // 2] = 0
            for a in bands:
                a[system, rows // 2] = 0
        for solve, matrix, right, axis in (
            (solve_blocks, blocks, rhs, -3),
            (solve_bands, bands, rhs[..., 0, 0], -1),
        ):
            where = {"axis": 1, "along": along, "ndim": 2, **options_of(kind)}
            with pytest.raises(SingularSystemError) as raised:
                solve(group, matrix, right, **where)
            np.testing.assert_array_equal(raised.value.systems[:, 0], [1, 4])
            with pytest.warns(SingularSystemWarning):
                solve(group, matrix, right, on_singular="warn", **where)
            x = solve(group, matrix, right, on_singular="nan", **where)
            whole = np.moveaxis(x, axis, -1) if axis == -3 else x
            is_nan = np.isnan(whole.reshape(6, -1)).all(1)
            np.testing.assert_array_equal(is_nan, np.isin(range(6), (1, 4)))
            assert np.isfinite(x[~is_nan]).all()
            matrix[1][4, -1] = np.nan
            with pytest.raises(ValueError, match="is nan at"):
                solve(group, matrix, right, **where)
            matrix[1][4, -1] = 1


def check_parts_that_are_singular_alone(group, rng):
    """The whole matrix is regular."""
    if group.size == 1:
        return
    rows = 6 * group.size
    lower, diag, upper = random_blocks(rng, (2,), rows, 2, float, "general")
    diag[:, :5], upper[:, :5], lower[:, 1:6] = 0, 0, 0
    for k in range(6):  # the rows of rank 0 are coupled in pairs, the last ones to rank 1
        diag[:, k] = np.eye(2)
    diag[:, 4:6] = [[0.0, 1.0], [0.0, 0.0]]
    upper[:, 4] = [[0.0, 0.0], [1.0, 0.0]]
    lower[:, 5] = [[1.0, 0.0], [0.0, 0.0]]
    rhs = rng.standard_normal((2, rows, 2, 1))
    for pivot in (None, True):
        x = solve_blocks(group, (lower, diag, upper), rhs, axis=1, along=1, ndim=2, pivot=pivot)
        require_solution((lower, diag, upper), rhs, x, product, periodic=False, tail=3)


def check_parts_that_are_nearly_singular_alone(group, rng):
    """Their elimination would lose all digits; the whole matrices are regular."""
    if group.size == 1:
        return
    rows, own = 8 * group.size, 7
    blocks = random_blocks(rng, (), rows, 2, float, "general")
    bands = random_bands(rng, (), 2 * rows, float, "general")
    ends = {0, own - 1, own, rows - 2, rows - 1}
    for k in range(1, group.size):
        ends |= {8 * k - 2, 8 * k - 1, 8 * k}
    for k in ends:  # the rows that a rank sees first are dominant
        blocks[1][k] += 9 * np.eye(2)
        bands[2][2 * k : 2 * k + 2] += 15
    middle = np.zeros(2 * own)
    middle[own] = 1
    matrices = {
        solve_blocks: blocks_matrix(blocks)[: 2 * own, : 2 * own],
        solve_bands: bands_matrix(bands)[: 2 * own, : 2 * own],
    }
    for solve, part in matrices.items():
        change = 1 / np.linalg.solve(part, middle)[own]
        if solve is solve_blocks:
            blocks[1][own // 2, own % 2, own % 2] -= change
        else:
            bands[2][own] -= change
    rhs, right = rng.standard_normal((rows, 2, 1)), rng.standard_normal(2 * rows)
    x = solve_blocks(group, blocks, rhs)
    require_solution(blocks, rhs, x, product, periodic=False, tail=3)
    x = solve_bands(group, bands, right)
    require_solution(bands, right, x, band_product, periodic=False, tail=1)
    # The first row of a rank needs the rank before.
    blocks = random_blocks(rng, (), rows, 2, float, "dominant")
    for k, block in ((0, np.eye(2)), (1, 1e-13 * np.eye(2)), (2, np.zeros((2, 2)))):
        blocks[k][8] = block
    for k, block in ((0, np.zeros((2, 2))), (1, np.zeros((2, 2))), (2, np.eye(2))):
        blocks[k][7] = block
    x = solve_blocks(group, blocks, rhs)
    require_solution(blocks, rhs, x, product, periodic=False, tail=3)


def check_rows_inside_one_part_decide(group, rng):
    """Systems that need row exchanges there are solved as whole lines, also in place."""
    if group.size == 1:
        return
    rows, split = 400 * group.size, {"group": group, "split": Slab(-1)}
    for rank, on_device in itertools.product((0, group.size - 1), (False, True)):
        place = rows * rank // group.size + 200  # l and u vanish in fewer rows
        blocks = random_blocks(rng, (3,), rows, 2, float, "dominant")
        bands = random_bands(rng, (3,), rows, float, "dominant")
        for pivot in (None, True):
            for solve, dominant, shape, tail, multiply in (
                (solve_block_tridiagonal, blocks, (3, rows, 2, 2), 3, product),
                (solve_block_tridiagonal, blocks, (3, rows, 2, 1), 3, product),
                (solve_pentadiagonal, bands, (3, rows), 1, band_product),
            ):
                matrix = [a.copy() for a in dominant]
                if pivot is None:
                    matrix[len(matrix) // 2][1, place] *= 1e-9
                rhs = rng.standard_normal(shape)
                with in_place_of_cuda() if on_device else nullcontext() as device:

                    def parts(*arrays, device=device):
                        own = [np.ascontiguousarray(own_part(group, a, 1)) for a in arrays]
                        return own if device is None else [FullArray(device, a) for a in own]

                    right = parts(*matrix, rhs)
                    with without_whole_lines(), pytest.raises(AssertionError, match="whole lines"):
                        solve(*right, pivot=pivot, **split)
                    x = solve(*right, out=right[-1], pivot=pivot, **split)
                    x = joined(group, x.get() if on_device else x, 1)
                require_solution(matrix, rhs, x, multiply, periodic=False, tail=tail)


def blocks_matrix(blocks):
    """Return the dense matrix of blocks."""
    rows, side = blocks[1].shape[:2]
    unit = np.eye(rows * side).reshape(rows, side, rows * side)
    return product(blocks, unit).reshape(rows * side, rows * side)


def bands_matrix(bands):
    """Return the dense matrix of five diagonals."""
    return band_product(bands, np.eye(len(bands[2]))).T


def check_results_in_place_and_values_that_are_not_finite(group, rng):
    rows = 300 * group.size
    blocks = random_blocks(rng, (3,), rows, 2, float, "dominant")
    rhs = rng.standard_normal((3, rows, 2, 2))
    own = [own_part(group, a, 1) for a in (*blocks, rhs)]
    x = solve_block_tridiagonal(*own, out=own[3], group=group, split=Slab(-1))
    assert x is own[3]
    require_solution(blocks, rhs, joined(group, x, 1), product, periodic=False, tail=3)
    rhs[1, 2, 0, 1] = np.inf
    x = solve_blocks(group, blocks, rhs, axis=1, along=1, ndim=2)
    is_finite = [[True, True], [True, False], [True, True]]
    np.testing.assert_array_equal(np.isfinite(x).all((1, 2)), is_finite)
    np.testing.assert_array_equal(np.isfinite(x).any((1, 2)), is_finite)
    require_solution(blocks, rhs[..., :1], x[..., :1], product, periodic=False, tail=3)


def check_empty_batches(group, _rng):
    split = {"group": group, "split": Slab(-1)}
    x = solve_block_tridiagonal(np.eye(2), np.eye(2), np.eye(2), np.zeros((0, 4, 2, 1)), **split)
    assert x.shape == (0, 4, 2, 1)
    assert solve_pentadiagonal(1, 1, 9, 1, 1, np.zeros((0, 4)), **split).shape == (0, 4)


def check_calls_that_differ(group, rng):
    blocks = random_blocks(rng, (), 6, 2, float, "definite")
    split = {"group": group, "split": Slab(0)}
    rhs = rng.standard_normal((6, 2, 1))
    if group.size == 1:
        return
    other = group.rank > 0
    for options, text in (
        ({"pivot": other}, "pivot must be the same"),
        ({"assume": "positive definite" if other else "general"}, "assume must be the same"),
        ({"periodic": other}, "periodic must be the same"),
        ({"on_singular": "nan" if other else "raise"}, "on_singular must be the same"),
    ):
        with pytest.raises(DistributedError, match=text):
            solve_block_tridiagonal(*blocks, rhs, **split, **options)
    with pytest.raises(DistributedError if other else ValueError, match="threads"):
        solve_block_tridiagonal(*blocks, rhs, **split, threads=None if other else -1)
    with pytest.raises(ValueError, match="at least 5 rows"):
        solve_pentadiagonal(
            1, 1, 9, 1, 1, np.ones(2 if group.size == 2 else 1), periodic=True, **split
        )
    with pytest.raises(DistributedError, match="shape must be the same"):
        solve_block_tridiagonal(*blocks, np.ones((6, 2, 1 + other)), **split)


def check_errors_of_one_rank_raise_on_all(group, rng):
    blocks = random_blocks(rng, (), 6, 2, float, "dominant")
    rhs = rng.standard_normal((6, 2, 1))
    split = {"group": group, "split": Slab(0)}
    if group.size > 1:
        context = failing_blocks(MemoryError("no memory")) if group.rank == 0 else nullcontext()
        with (
            context,
            pytest.raises(DistributedError if group.rank else MemoryError, match="no mem"),
        ):
            solve_block_tridiagonal(*blocks, rhs, **split)
    assert np.isfinite(solve_block_tridiagonal(*blocks, rhs, **split)).all()


def check_arrays_of_a_device(group, rng):
    rows = 30 * group.size
    with in_place_of_cuda() as device:

        def there(array):
            return FullArray(device, np.ascontiguousarray(array))

        split = {"group": group, "split": Slab(-1)}
        for kind in KINDS:
            blocks = random_blocks(rng, (3,), rows, 2, float, kind)
            bands = random_bands(rng, (3,), rows, float, kind)
            rhs = rng.standard_normal((3, rows, 2, 2))
            for periodic in (False, True):
                if periodic and (kind == "definite" or group.size == 1):
                    continue  # such systems of one rank need a library
                options = {**options_of(kind), "periodic": periodic}
                parts = [there(own_part(group, a, 1)) for a in (*blocks, rhs)]
                x = solve_block_tridiagonal(*parts, **split, **options).get()
                x = joined(group, x, 1)
                require_solution(blocks, rhs, x, product, periodic=periodic, tail=3)
                parts = [there(own_part(group, a, 1)) for a in (*bands, rhs[..., 0, 0])]
                x = solve_pentadiagonal(*parts, out=parts[-1], **split, **options)
                assert x is parts[-1]
                x = joined(group, x.get(), 1)
                require_solution(bands, rhs[..., 0, 0], x, band_product, periodic=periodic, tail=1)
            many = random_bands(rng, (300,), rows, float, kind)  # more than have factors
            right = rng.standard_normal((300, rows))
            parts = [there(own_part(group, a, 1)) for a in (*many, right)]
            decided = options_of(kind) if kind == "definite" else {"pivot": kind == "general"}
            x = joined(group, solve_pentadiagonal(*parts, **split, **decided).get(), 1)
            require_solution(many, right, x, band_product, periodic=False, tail=1)
            right = there(own_part(group, rhs[..., 0, 0], 1))
            x = joined(
                group, solve_pentadiagonal(1.0, -4.0, 11.0, -4.0, 1.0, right, **split).get(), 1
            )
            np.testing.assert_allclose(
                x, solve_pentadiagonal(1.0, -4.0, 11.0, -4.0, 1.0, rhs[..., 0, 0]), rtol=1e-9
            )
            block = blocks[1][0, 0]
            outer, inner, right = (there(a) for a in (block / 20, block, own_part(group, rhs, 1)))
            x = solve_block_tridiagonal(outer, inner, outer, right, **split).get()
            whole = [np.broadcast_to(a, blocks[0].shape) for a in (block / 20, block, block / 20)]
            require_solution(whole, rhs, joined(group, x, 1), product, periodic=False, tail=3)
            own = [own_part(group, a, 1) for a in (*bands, rhs[..., 0, 0])]
            if group.rank > 0:  # the first rank has arrays of the host
                own = [there(a) for a in own]
            x = solve_pentadiagonal(*own, **split, **options_of(kind))
            x = joined(group, x.get() if group.rank > 0 else x, 1)
            require_solution(bands, rhs[..., 0, 0], x, band_product, periodic=False, tail=1)
            if kind != "general":
                complexes = rhs + 1j * rhs[:, ::-1]
                parts = [there(own_part(group, a, 1)) for a in (*blocks, complexes)]
                x = joined(group, solve_block_tridiagonal(*parts, **split).get(), 1)
                require_solution(blocks, complexes, x, product, periodic=False, tail=3)


def check_ends_that_travel_between_devices(group, rng):
    """Of many short systems, of few, and in turn; by inboxes and by NCCL."""
    if group.size == 1:
        return
    for link in ("peers", "nccl"):
        with shared_device.in_place_of_cuda() as device, shared_nccl.in_place_of_nccl(device):

            def there(array, device=device):
                device.calls.append("upload")  # which the array takes back
                return FullArray(device, np.ascontiguousarray(array))

            linked = anew(group, links=(link,))
            split = {"group": linked, "split": Slab(-1), "pivot": False}
            for (systems, rows), periodic in itertools.product(
                ((3, 30), (300, 6), (5, 8)), (False, True)
            ):
                shape = (systems, rows * group.size)
                bands = random_bands(rng, shape[:1], shape[1], float, "dominant")
                blocks = random_blocks(rng, shape[:1], shape[1], 3, float, "dominant")
                rhs = rng.standard_normal((*shape, 3, 2))
                parts = [there(own_part(group, a, 1)) for a in (*bands, rhs[..., 0, 0])]
                with without_whole_lines():
                    x = solve_pentadiagonal(*parts, **split, periodic=periodic).get()
                x = joined(group, x, 1)
                require_solution(bands, rhs[..., 0, 0], x, band_product, periodic=periodic, tail=1)
                parts = [there(own_part(group, a, 1)) for a in (*blocks, rhs)]
                with without_whole_lines():
                    x = solve_block_tridiagonal(*parts, **split, periodic=periodic).get()
                x = joined(group, x, 1)
                require_solution(blocks, rhs, x, product, periodic=periodic, tail=3)
            assert link not in linked.reasons
            linked.close()


def kept_factor(group, factor, matrix, *, axis, along, ndim, tail, sizes=None, **options):
    """Factor the parts of this rank of matrices with the rows at their place."""
    arrays = [None if a is None else np.moveaxis(a, -tail, axis - ndim - tail + 1) for a in matrix]
    place = along - ndim - tail + 1
    parts = [None if a is None else own_part(group, a, place, sizes) for a in arrays]
    made = factor(*parts, axis=axis - ndim, group=group, split=Slab(along - ndim), **options)
    for part in parts:
        part[...] = np.nan  # of the caller
    return made


def check_factors_along_every_axis(group, rng):
    number = 0
    cases = ((factor_block_tridiagonal, 3), (factor_pentadiagonal, 1))
    for shape, kind, periodic in itertools.product(
        ((11,), (5, 12), (3, 9, 4)), KINDS, (False, True)
    ):
        for axis, along in itertools.product(range(len(shape)), repeat=2):
            number += 1
            if shape[along] < group.size or shape[axis] < 6 or (periodic and kind == "definite"):
                continue
            batch = (*shape[:axis], *shape[axis + 1 :])
            dtype = chosen(number, oracle.DTYPES)[0]
            side = 2 + number % 4
            where = {"axis": axis, "along": along, "ndim": len(shape)}
            options = {**options_of(kind), "periodic": periodic}
            for factor, tail in cases:
                if tail > 1:
                    matrix = random_blocks(rng, batch, shape[axis], side, dtype, kind)
                    rhs = oracle.uniform(rng, (*batch, shape[axis], side, 2), dtype)
                else:
                    matrix = random_bands(rng, batch, shape[axis], dtype, kind)
                    rhs = oracle.uniform(rng, (*batch, shape[axis]), dtype)
                blocks = tail - 1
                made = kept_factor(group, factor, matrix, **where, tail=tail, **options)
                place = axis - len(shape) - blocks
                right = own_part(group, np.moveaxis(rhs, -tail, place), along - len(shape) - blocks)
                x = joined(group, made.solve(right), along - len(shape) - blocks)
                multiply = product if tail > 1 else band_product
                require_solution(
                    matrix,
                    rhs,
                    np.moveaxis(x, place, -tail),
                    multiply,
                    periodic=periodic,
                    tail=tail,
                )
                assert made.is_kept or kind == "general" or along == axis
                expected = factor(*matrix, axis=-1, **options).logdet()
                found = made.logdet()
                if along != axis:
                    found = joined(group, np.asarray(found), along - (along > axis))
                np.testing.assert_allclose(
                    found, expected, rtol=1e-4 if dtype in (np.float32, np.complex64) else 1e-9
                )


def check_factors_solve_right_hand_sides_of_more_axes(group, rng):
    rows = 7 * group.size
    for dtype in (float, complex):
        matrix = random_blocks(rng, (), rows, 2, dtype, "dominant")
        bands = random_bands(rng, (), rows, dtype, "dominant")
        split = {"group": group, "split": Slab(0)}
        made = factor_block_tridiagonal(*(own_part(group, a, 0) for a in matrix), axis=0, **split)
        kept = factor_pentadiagonal(*(own_part(group, a, 0) for a in bands), axis=0, **split)
        assert made.is_kept
        assert kept.is_kept
        rhs = oracle.uniform(rng, (rows, 5, 2, 3), dtype)
        x = joined(group, made.solve(own_part(group, rhs, 0)), 0)
        wide, found = (np.moveaxis(a, 0, 1) for a in (rhs, x))
        require_solution(
            [np.broadcast_to(a, (5, *a.shape)) for a in matrix],
            wide,
            found,
            product,
            periodic=False,
            tail=3,
        )
        x = joined(group, kept.solve(own_part(group, rhs[..., 0, 0], 0)), 0)
        wide, found = rhs[..., 0, 0].T, x.T
        require_solution(
            [np.broadcast_to(a, (5, rows)) for a in bands],
            wide,
            found,
            band_product,
            periodic=False,
            tail=1,
        )
        if dtype is float:
            x = joined(group, made.solve(own_part(group, rhs * 1j, 0)), 0)
            require_solution(
                [np.broadcast_to(a, (5, *a.shape)) for a in matrix],
                np.moveaxis(rhs * 1j, 0, 1),
                np.moveaxis(x, 0, 1),
                product,
                periodic=False,
                tail=3,
            )
        x = joined(group, made.solve(np.moveaxis(own_part(group, rhs, 0), 0, 1), axis=-1), 1)
        assert x.shape == (5, rows, 2, 3)
        assert made.solve(own_part(group, rhs, 0)[:, :0]).shape[1] == 0
        with pytest.raises((ValueError, DistributedError), match="rows along axis"):
            made.solve(own_part(group, rhs, 0)[1:] if group.rank == 0 else own_part(group, rhs, 0))


def check_factors_of_singular_matrices(group, rng):
    rows = 6 * group.size
    blocks = random_blocks(rng, (4,), rows, 2, float, "dominant")
    for a in blocks:
        a[2, rows // 2] = 0
    rhs = rng.standard_normal((4, rows, 2, 1))
    for along in (0, 1):
        if along == 0 and group.size > 4:
            continue
        where = {"axis": 1, "along": along, "ndim": 2, "tail": 3}
        with pytest.raises(SingularSystemError) as raised:
            kept_factor(group, factor_block_tridiagonal, blocks, **where)
        np.testing.assert_array_equal(raised.value.systems, [[2]])
        made = kept_factor(group, factor_block_tridiagonal, blocks, on_singular="nan", **where)
        x = joined(group, made.solve(own_part(group, rhs, along)), along)
        np.testing.assert_array_equal(np.isnan(x).all((1, 2, 3)), np.arange(4) == 2)


def check_matrices_that_are_not_definite_inside_a_part(group, rng):
    rows = 6 * group.size
    diag, zero = np.ones((4, rows)), np.zeros((4, rows))
    diag[3, 2] = -1
    one = np.eye(2)
    blocks = [a[..., None, None] * one for a in (zero, diag, zero)]
    where = {"axis": 1, "along": 1, "ndim": 2, "assume": "positive definite"}
    for solve, factor, matrix, tail in (
        (solve_bands, factor_pentadiagonal, (zero, zero, diag, zero, zero), 1),
        (solve_blocks, factor_block_tridiagonal, blocks, 3),
    ):
        rhs = rng.standard_normal((4, rows, 2, 1) if tail == 3 else (4, rows))
        for call in (
            lambda solve=solve, matrix=matrix, rhs=rhs: solve(group, matrix, rhs, **where),
            lambda factor=factor, matrix=matrix, tail=tail: kept_factor(
                group, factor, matrix, tail=tail, **where
            ),
        ):
            with pytest.raises(SingularSystemError, match="not positive definite") as raised:
                call()
            np.testing.assert_array_equal(raised.value.systems, [[3]])


def check_factors_that_differ(group, rng):
    blocks = random_blocks(rng, (), 6, 2, float, "dominant")
    split = {"group": group, "split": Slab(-1)}
    made = factor_block_tridiagonal(*blocks, **split)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(made)
    with pytest.raises(ValueError, match="split along their rows, which are axis -1"):
        factor_block_tridiagonal(*blocks, group=group, split=Slab(1))
    if group.size > 1:
        other = group.rank > 0
        with pytest.raises(DistributedError, match="pivot must be the same"):
            factor_block_tridiagonal(*blocks, pivot=other, **split)
        with pytest.raises(DistributedError, match="shape must be the same"):
            made.solve(np.ones((6, 2, 1 + other)))
    with in_place_of_cuda() as device, pytest.raises(BackendError, match="needs the CPU"):
        made.solve(FullArray(device, np.ones((6, 2, 1))))


def check_factors_of_arrays_of_a_device(group, rng):
    """Also of matrices that are solved as whole lines, on the host, and those of whole systems."""
    rows = 30 * group.size
    for kind, periodic, along in itertools.product(KINDS, (False, True), (0, 1)):
        if periodic and (kind == "definite" or group.size == 1 or along == 0):
            continue  # such systems of one rank need a library
        batch = (2 * group.size,)
        blocks = random_blocks(rng, batch, rows, 2, float, kind)
        bands = random_bands(rng, batch, rows, float, kind)
        sides = rng.standard_normal((*batch, rows, 2, 2))
        options = {**options_of(kind), "periodic": periodic}
        for factor, matrix, rhs, multiply, tail in (
            (factor_block_tridiagonal, blocks, sides, product, 3),
            (factor_pentadiagonal, bands, sides[..., 0, 0], band_product, 1),
        ):
            with in_place_of_cuda() as device:

                def there(array, device=device, along=along):
                    return FullArray(device, np.ascontiguousarray(own_part(group, array, along)))

                parts = [there(a) for a in matrix]
                split = {"group": group, "split": Slab(along - 2)}
                is_cut = along == 1 and group.size > 1
                if kind == "general" and not is_cut:
                    with pytest.raises(BackendError, match="no row exchanges"):
                        factor(*parts, axis=-1, **split, **options)
                    continue
                made = factor(*parts, axis=-1, **split, **options)
                for part in parts:
                    part[...] = np.nan  # of the caller
                assert made.is_kept is (kind != "general")
                x = joined(group, made.solve(there(rhs)).get(), along)
                require_solution(matrix, rhs, x, multiply, periodic=periodic, tail=tail)
                parts = rhs + 1j * rhs[:, ::-1]
                x = joined(group, made.solve(there(parts)).get(), along)
                require_solution(matrix, parts, x, multiply, periodic=periodic, tail=tail)
                found = made.logdet().get()
                found = joined(group, found, 0) if along == 0 else found
                host = np.ascontiguousarray(own_part(group, rhs, along))
                assert type(made.solve(host)) is np.ndarray
            expected = factor(*matrix, axis=-1, **options).logdet()
            np.testing.assert_allclose(found, expected, rtol=1e-9)

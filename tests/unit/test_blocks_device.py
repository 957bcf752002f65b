"""Block tridiagonal and pentadiagonal systems on a device have the solutions of the CPU.

The device is made of protected host memory or, where there is one, a GPU.
"""

import weakref
from itertools import product

import fake_device
import numpy as np
import pytest
from scipy.linalg import solve_banded

from pysolvers import (
    BackendError,
    SingularSystemError,
    factor_block_tridiagonal,
    factor_pentadiagonal,
    solve_block_tridiagonal,
    solve_pentadiagonal,
)
from pysolvers.smoothing import whittaker

SHAPES = [((), -1), ((5,), -1), ((5, 3), 0), ((2, 300), 1)]


def near(found, expected):
    assert found.dtype == expected.dtype
    bound = 200 * np.finfo(expected.dtype).eps * max(1, np.abs(expected).max())
    assert np.abs(found - expected).max() <= bound


def blocks(rng, batch, axis, rows, side, columns, dtype):
    """Draw block diagonally dominant matrices, and right-hand sides."""
    shape = list(batch)
    shape.insert(axis if axis >= 0 else len(shape), rows)
    lower, diag, upper = (rng.uniform(-0.2, 0.2, (*shape, side, side)) / side for _ in range(3))
    diag = diag + np.roll(np.eye(side), 1, 0)
    rhs = rng.standard_normal((*shape, side, columns))
    return [a.astype(dtype) for a in (lower, diag, upper, rhs)]


@pytest.mark.parametrize("pivot", [None, False, True])
@pytest.mark.parametrize("side", [2, 3, 4])
@pytest.mark.parametrize(("batch", "axis"), SHAPES)
def test_blocks(device_library, rng, batch, axis, side, pivot):
    library = device_library
    dtype = ("float32", "float64")[side % 2]
    operands = blocks(rng, batch, axis, 7, side, 2, dtype)
    there = [library.array(a) for a in operands]
    x = solve_block_tridiagonal(*there, axis=axis, pivot=pivot)
    assert library.is_kind(x)
    near(library.get(x), solve_block_tridiagonal(*operands, axis=axis, pivot=pivot))


@pytest.mark.parametrize("pivot", [None, False, True])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 13, 33, 64, 200, 256])
@pytest.mark.parametrize(("batch", "axis"), SHAPES)
def test_five_diagonals(device_library, rng, batch, axis, rows, pivot):
    library = device_library
    shape = list(batch)
    shape.insert(axis if axis >= 0 else len(shape), rows)
    operands = [rng.uniform(-0.1, 0.1, shape) for _ in range(6)]
    operands[2] += 1
    x = solve_pentadiagonal(*(library.array(a) for a in operands), axis=axis, pivot=pivot)
    assert library.is_kind(x)
    near(library.get(x), solve_pentadiagonal(*operands, axis=axis, pivot=pivot))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("side", [2, 3, 4])
@pytest.mark.parametrize(("batch", "axis"), [((33,), 0), ((3, 11), -1)])
def test_systems_with_more_rows_than_shared_memory_has(
    device_library, rng, batch, axis, side, dtype
):
    library = device_library
    operands = blocks(rng, batch, axis, 140, side, 1, dtype)
    x = solve_block_tridiagonal(*(library.array(a) for a in operands), axis=axis, pivot=False)
    near(library.get(x), solve_block_tridiagonal(*operands, axis=axis, pivot=False))


@pytest.mark.parametrize("pivot", [None, False])
@pytest.mark.parametrize(("rows", "systems"), [(150, 8461), (201, 8461), (230, 8461), (512, 3463)])
def test_neighbouring_systems_that_are_eliminated_in_turns(
    device_library, rng, rows, systems, pivot
):
    """Many systems for each multiprocessor, some of which need blocks of 2."""
    library = device_library
    operands = [rng.uniform(-0.1, 0.1, (rows, systems)) for _ in range(6)]
    operands[2] += 1
    operands[1][rows // 2, ::97] = 9.0
    x = solve_pentadiagonal(*(library.array(a) for a in operands), axis=0, pivot=pivot)
    near(library.get(x), solve_pentadiagonal(*operands, axis=0, pivot=pivot))


@pytest.mark.parametrize("pivot", [None, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("rows", "outer", "systems"),
    [
        *product([240, 241, 250, 256, 257], [1], [4232]),
        *product([149, 256, 260, 512, 1000, 1043, 4080], [3, 1], [36, 33]),
        *product([500, 1000, 2051], [5], [16]),
        (1000, 1, 1064),
        (4080, 1, 264),
    ],
)
def test_neighbouring_systems_that_are_divided(
    device_library, rng, outer, systems, rows, dtype, pivot
):
    """Tiles of 8 or 16 systems, of which the last ones are not complete, in a block or a cluster;
    some need blocks of 2."""
    library = device_library
    operands = [rng.uniform(-0.1, 0.1, (outer, rows, systems)).astype(dtype) for _ in range(6)]
    operands[2] += 1
    operands[1][:, rows // 2, ::13] = 9.0
    there = [library.array(a) for a in operands]
    x = solve_pentadiagonal(*there, axis=1, pivot=pivot, out=there[5] if library.mutable else None)
    x = library.get(x)
    found = np.pad(x, ((0, 0), (2, 2), (0, 0)))
    parts = [
        np.where(
            ((np.arange(rows) + k >= 0) & (np.arange(rows) + k < rows))[:, None],
            operands[k + 2] * found[:, k + 2 : k + 2 + rows],
            0,
        )
        for k in range(-2, 3)
    ]
    residual = np.abs(sum(parts) - operands[5]).max((0, 1))
    scale = sum(map(np.abs, parts)).max((0, 1)) + np.abs(operands[5]).max((0, 1))
    assert x.dtype == dtype
    assert (residual <= 50 * np.finfo(dtype).eps * scale).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("rows", [100, 256, 500, 1000, 2040, 4096])
def test_chunks_of_systems_that_depend_on_each_other(device_library, rng, rows, axis, dtype):
    """Little in some systems, much in others, whose rows have a sum of 0.002; other systems of
    the batch do not change the bits of x."""
    library, systems = device_library, 80
    bands = [rng.uniform(-0.1, 0.1, (systems, rows)) for _ in range(5)]
    bands[2] += 1
    for k, slow in ((3, (-0.25, -0.249, 1.0, -0.249, -0.25)), (5, (0.2, 0.2, 0.9, 0.2, 0.2))):
        for band, value in zip(bands, slow, strict=True):
            band[k::16] = value
    rhs = rng.uniform(-1, 1, (systems, rows))
    rhs[7::16] = np.arange(rows) == rows // 2
    operands = [np.moveaxis(a.astype(dtype), 1, axis).copy() for a in (*bands, rhs)]
    x = library.get(solve_pentadiagonal(*map(library.array, operands), axis=axis, pivot=False))
    for found, expected in zip(
        np.moveaxis(x, axis, 1),
        np.moveaxis(solve_pentadiagonal(*operands, axis=axis, pivot=False), axis, 1),
        strict=True,
    ):
        bound = 500 * np.finfo(dtype).eps * max(1, np.abs(expected).max())
        assert np.abs(found - expected).max() <= bound
    if axis == 0:
        return
    some = solve_pentadiagonal(*(library.array(a[16:32]) for a in operands), pivot=False)
    np.testing.assert_array_equal(library.get(some), x[16:32])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("pivot", [None, False])
@pytest.mark.parametrize("rows", [100, 257, 300, 601, 1000, 1024, 2052, 4096])
def test_contiguous_systems_that_are_divided(device_library, rng, rows, pivot, dtype):
    library = device_library
    diagonals = [rng.uniform(-0.1, 0.1, (5, rows)).astype(dtype) for _ in range(6)]
    diagonals[2] += 1
    operands = blocks(rng, (5,), -1, rows // 2, 2, 1, dtype)
    for solve, case in ((solve_pentadiagonal, diagonals), (solve_block_tridiagonal, operands)):
        x = solve(*(library.array(a) for a in case), pivot=pivot)
        near(library.get(x), solve(*case, pivot=pivot))


def long_systems(rng, batch, axis, rows, side, dtype):
    """Draw dominant systems of so many block rows, or pairs of five diagonals, and their solver."""
    if side > 0:
        return solve_block_tridiagonal, blocks(rng, batch, axis, rows, side, 1, dtype)
    shape = list(batch)
    shape.insert(axis if axis >= 0 else len(shape), 2 * rows - rows % 2)
    operands = [rng.uniform(-0.2, 0.2, shape).astype(dtype) for _ in range(6)]
    operands[2] += 1
    return solve_pentadiagonal, operands


@pytest.mark.parametrize("pivot", [None, False])
@pytest.mark.parametrize("side", [0, 2, 3, 4])
@pytest.mark.parametrize(
    ("batch", "axis", "rows"),
    [((), -1, 5001), ((5,), -1, 1100), ((5,), 0, 2049), ((2, 3), 1, 1501), ((2, 70), 1, 600)],
)
def test_few_long_systems(device_library, rng, batch, axis, rows, side, pivot):
    """Chunks in several levels, also of neighbouring systems; results in place."""
    library = device_library
    for dtype in ("float32", "float64"):
        solve, operands = long_systems(rng, batch, axis, rows, side, dtype)
        options = {"axis": axis, "pivot": pivot}
        expected = solve(*operands, **options)
        there = [library.array(a) for a in operands]
        near(library.get(solve(*there, **options)), expected)
        out = there[-1] if library.mutable else None
        near(library.get(solve(*there, **options, out=out)), expected)


def five_of_differences(rng, systems, rows):
    """Return five diagonals of W + 30 D'D with weights W and second differences D: definite."""
    second = np.array([1.0, -2.0, 1.0])
    bands = [np.zeros((systems, rows)) for _ in range(5)]
    bands[2] += rng.uniform(0.5, 1.5, (systems, rows))
    for p in range(3):
        for q in range(3):
            bands[2 + q - p][:, p : rows - 2 + p] += 30 * second[p] * second[q]
    return bands


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("rows", [2049, 9000])
def test_few_long_systems_against_lapack(device_library, rng, rows, axis):
    """Dominant ones, those that need exchanges, and definite ones, which are not dominant."""
    library, systems = device_library, 4
    general = [rng.standard_normal((systems, rows)) for _ in range(5)]
    general[2][:2] += 12 * np.sign(general[2][:2])
    rhs = rng.standard_normal((systems, rows))
    definite = {"assume": "positive definite"}
    for bands, options in ((general, {}), (five_of_differences(rng, systems, rows), definite)):
        there = [
            library.array(np.ascontiguousarray(np.moveaxis(a, 1, axis))) for a in (*bands, rhs)
        ]
        x = np.moveaxis(library.get(solve_pentadiagonal(*there, axis=axis, **options)), axis, 1)
        for system in range(systems):
            banded = np.zeros((5, rows))
            for offset in range(-2, 3):
                band = bands[2 + offset][system]
                to = banded[2 - offset]
                to[max(offset, 0) : rows + min(offset, 0)] = band[
                    max(-offset, 0) : rows - max(offset, 0)
                ]
            known = solve_banded((2, 2), banded, rhs[system])
            own, error = (residual_of(banded, y, rhs[system]) for y in (x[system], known))
            assert own <= 20 * error + 4 * np.finfo(float).eps
            if options or system < 2:
                np.testing.assert_allclose(x[system], known, atol=1e-10 * np.abs(known).max())


def residual_of(banded, x, rhs):
    """Return the normwise backward error of a solution; `banded` is that of `solve_banded`."""
    rows = len(x)
    rest, size = -rhs, np.abs(banded).max() * np.abs(x).max() + np.abs(rhs).max()
    for offset in range(-2, 3):
        to = slice(max(-offset, 0), rows - max(offset, 0))
        of = slice(max(offset, 0), rows + min(offset, 0))
        rest[to] += banded[2 - offset][of] * x[of]
    return np.abs(rest).max() / size


@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("side", [0, 2, 3])
def test_bad_pivots_of_few_long_systems(device_library, rng, side, axis):
    """The first bad row, in the order of elimination, also of the last chunk; NaN; exchanges."""
    library, rows, systems = device_library, 1030, 7
    solve, operands = long_systems(rng, (systems,), axis, rows, side, "float64")
    for bad in (0, 517, rows - 1):
        matrix = [a.copy() for a in operands]
        for diagonal in matrix[: len(matrix) - 1]:
            lines = np.moveaxis(diagonal, 1 if axis == 0 else 0, 0)
            lines[5, (2 if side == 0 else 1) * bad :] = 0
        first = bad * (2 if side == 0 else 1)
        there = [library.array(a) for a in matrix]
        with pytest.raises(SingularSystemError) as caught:
            solve(*there, axis=axis, pivot=False)
        assert caught.value.systems.tolist() == [[5]]
        assert caught.value.rows.tolist() == [first]
        x = library.get(solve(*there, axis=axis, pivot=False, on_singular="nan"))
        good = np.arange(systems) != 5
        expected = solve(*operands, axis=axis)
        place = 1 if axis == 0 else 0
        near(np.compress(good, x, place), np.compress(good, expected, place))
        assert np.isnan(np.compress(~good, x, place)).all()


@pytest.mark.parametrize("side", [0, 2, 3])
def test_few_long_systems_of_which_one_needs_exchanges(device_library, rng, side):
    library, rows = device_library, 700
    solve, operands = long_systems(rng, (3,), -1, rows, side, "float64")
    operands[2 if side == 0 else 1][1, rows // 2] *= 1e-3
    expected = solve(*operands)
    there = [library.array(a) for a in operands]
    out = there[-1] if library.mutable else None
    near(library.get(solve(*there, out=out)), expected)


@pytest.mark.parametrize("rows", [700, 1300])
@pytest.mark.parametrize("side", [2, 3])
def test_long_systems_whose_chunks_begin_with_a_bad_pivot(device_library, rng, side, rows):
    """The pivot is not bad where rows are eliminated in order."""
    library = device_library
    operands = blocks(rng, (3,), -1, rows, side, 1, "float64")
    operands[1][1, 16:600:16] = 0
    operands[0][1, 16:600:16] = 3 * np.eye(side)
    operands[2][1, 15:599:16] = np.eye(side)
    expected = solve_block_tridiagonal(*operands, pivot=False)
    there = [library.array(a) for a in operands]
    near(library.get(solve_block_tridiagonal(*there, pivot=False)), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [1, 2, 3, 6, 64, 1000])
@pytest.mark.parametrize("side", [2, 3, 4])
def test_blocks_from_both_ends(device_library, rng, side, rows, dtype):
    """The first bad block row is reported, also if it is eliminated from the last row on."""
    library = device_library
    operands = blocks(rng, (19,), -1, rows, side, 1, dtype)
    for bad in {0, rows // 2, rows - 1}:
        matrix = [a.copy() for a in operands]
        for diagonal in matrix[:3]:
            diagonal[5, bad:] = 0
        there = [library.array(a) for a in matrix]
        with pytest.raises(SingularSystemError) as caught:
            solve_block_tridiagonal(*there, pivot=False)
        assert caught.value.systems.tolist() == [[5]]
        assert caught.value.rows.tolist() == [bad]
        x = library.get(solve_block_tridiagonal(*there, pivot=False, on_singular="nan"))
        good = np.arange(19) != 5
        near(x[good], solve_block_tridiagonal(*operands, pivot=False)[good])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [18, 20, 34, 64, 130, 256, 1000])
@pytest.mark.parametrize("side", [2, 3, 4])
def test_blocks_that_are_eliminated_in_place(device_library, rng, side, rows, dtype):
    """Chunks of a part of a warp and of some warps; permutations as pivots; definite matrices."""
    library = device_library
    operands = blocks(rng, (11,), -1, rows, side, 1, dtype)
    operands[1][3, 1::5] = np.roll(operands[1][3, 1::5], 1, 1)
    for pivot in (None, False):
        x = solve_block_tridiagonal(*(library.array(a) for a in operands), pivot=pivot)
        near(library.get(x), solve_block_tridiagonal(*operands, pivot=pivot))
    lower, diag, upper, rhs = blocks(rng, (11,), -1, rows, side, 1, dtype)
    diag = np.roll(diag, -1, -2) + np.roll(diag, -1, -2).swapaxes(-1, -2)
    lower[:, 1:] = upper[:, :-1].swapaxes(-1, -2)
    definite = [lower, diag, upper, rhs]
    options = {"assume": "positive definite"}
    x = solve_block_tridiagonal(*(library.array(a) for a in definite), **options)
    near(library.get(x), solve_block_tridiagonal(*definite, **options))
    diag[7, 6] = -np.eye(side)
    with pytest.raises(SingularSystemError) as caught:
        solve_block_tridiagonal(*(library.array(a) for a in definite), **options)
    assert caught.value.systems.tolist() == [[7]]


@pytest.mark.parametrize("side", [2, 3, 4])
def test_results_in_place_and_systems_that_need_exchanges(device_library, rng, side):
    library = device_library
    operands = blocks(rng, (4,), -1, 9, side, 1, "float64")
    operands[1][1, 4] *= 1e-3
    operands[1][3, 0] *= 1e-3
    expected = solve_block_tridiagonal(*operands)
    there = [library.array(a) for a in operands]
    out = there[3] if library.mutable else None
    x = solve_block_tridiagonal(*there, out=out)
    assert out is None or x is out
    near(library.get(x), expected)


def test_singular_matrices_and_systems_that_no_device_solves(device_library, rng):
    library = device_library
    operands = blocks(rng, (4,), -1, 5, 2, 1, "float64")
    operands[1][2, 0] = 0
    there = [library.array(a) for a in operands]
    with pytest.raises(SingularSystemError) as caught:
        solve_block_tridiagonal(*there, pivot=False)
    assert caught.value.systems.tolist() == [[2]]
    x = library.get(solve_block_tridiagonal(*there, pivot=False, on_singular="nan"))
    assert np.isnan(x[2]).all()
    assert np.isfinite(x[[0, 1, 3]]).all()
    definite = [library.array(a) for a in (np.eye(2) * 0.1, -np.eye(2), np.eye(2) * 0.1)]
    with pytest.raises(SingularSystemError) as caught:
        solve_block_tridiagonal(*definite, there[3], assume="positive definite")
    assert caught.value.systems.tolist() == [[0], [1], [2], [3]]
    for pivot in (None, True):
        x = library.get(solve_block_tridiagonal(*there, pivot=pivot))
        near(x, solve_block_tridiagonal(*operands, pivot=True))
        null = [operands[0].copy(), operands[1], operands[2].copy(), operands[3]]
        null[0][2, 0] = null[2][2, 0] = 0
        with pytest.raises(SingularSystemError) as caught:
            solve_block_tridiagonal(*map(library.array, null), pivot=pivot)
        assert caught.value.systems.tolist() == [[2]]
    diagonals = [library.array(np.ones((2, 9))) for _ in range(6)]
    for factor, matrix in (
        (factor_block_tridiagonal, there[:3]),
        (factor_pentadiagonal, diagonals[:5]),
    ):
        with pytest.raises(BackendError, match="no row exchanges across blocks"):
            factor(*matrix)
    with pytest.raises(BackendError, match=r"function of pysolvers\.torch or pysolvers\.jax"):
        whittaker(diagonals[0], 1.0)
    with pytest.raises(BackendError, match="factor_pentadiagonal: periodic=True needs the CPU"):
        factor_pentadiagonal(*diagonals[:5], periodic=True)


@pytest.mark.parametrize("rows", [1, 3, 10, 33, 131])
def test_factors_of_five_diagonals_whose_rows_are_dominant(device_library, rng, rows):
    """Also of an odd number, and where pairs of rows are not."""
    bands = rng.uniform(0.5, 1, (5, 4, rows))
    bands[2] = bands[[0, 1, 3, 4]].sum(0) + 0.01
    rhs = rng.standard_normal((4, rows))

    factor = factor_pentadiagonal(*map(device_library.array, bands), rows=rows)

    x = device_library.get(factor.solve(device_library.array(rhs)))
    near(x, solve_pentadiagonal(*bands, rhs))
    for bad in (0, rows // 2, rows - 1):
        other = bands.copy()
        other[2, 3, bad] = 0
        with pytest.raises(BackendError, match="no row exchanges across blocks"):
            factor_pentadiagonal(*map(device_library.array, other), rows=rows)


@pytest.mark.parametrize("pivot", [None, True])
def test_five_diagonals_that_need_exchanges(device_library, rng, pivot):
    """Rows of the first systems have small pivots; the others are dominant."""
    library = device_library
    operands = [rng.uniform(-0.1, 0.1, (300, 40)) for _ in range(6)]
    operands[2] += 1
    operands[2][:100, ::7] *= 1e-8
    x = library.get(solve_pentadiagonal(*(library.array(a) for a in operands), pivot=pivot))
    near(x, solve_pentadiagonal(*operands, pivot=True))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_matrices_that_all_systems_share(device_library, rng, axis):
    library = device_library
    rhs = rng.standard_normal((6, 7, 8)).astype("f4")
    line = rng.uniform(4, 5, rhs.shape[axis]).astype("f4")
    numbers = (0.1, -0.5, 4.0, -0.5, 0.1)
    x = solve_pentadiagonal(*numbers, library.array(rhs), axis=axis)
    near(library.get(x), solve_pentadiagonal(*numbers, rhs, axis=axis))
    there = (0.1, -0.5, library.array(line), -0.5, 0.1)
    x = solve_pentadiagonal(*there, library.array(rhs), axis=axis, assume="positive definite")
    near(library.get(x), solve_pentadiagonal(0.1, -0.5, line, -0.5, 0.1, rhs, axis=axis))
    one, sides = np.eye(2), rng.standard_normal((5, 6, 2, 1))
    there = [library.array(a) for a in (one, 4 * one, one, sides)]
    x = solve_block_tridiagonal(*there, axis=axis % 2)
    near(library.get(x), solve_block_tridiagonal(one, 4 * one, one, sides, axis=axis % 2))


def forms(rng, rows, axis, offset, tail=()):
    """Yield a diagonal of every form: own, of a line, one for all rows and systems, of a batch."""
    shift = 5 * np.eye(*tail) if tail and offset == 0 else 5.0 * (offset == 0)
    for count in (rows, max(0, rows - abs(offset))):
        own, batch = [4, 4], [1, 4]
        own[axis] = batch[axis] = count
        for shape in (own, batch, [count], []):
            yield rng.uniform(0.1, 0.2, (*shape, *tail)) + shift


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("rows", [1, 2, 3, 6])
def test_operands_of_every_form(device_library, rng, rows, axis):
    library = device_library
    shape = [4, 4]
    shape[axis] = rows

    def check(solve, operands, **options):
        there = [None if a is None else library.array(a) for a in operands]
        x = library.get(solve(*there, axis=axis, **options))
        near(x, solve(*operands, axis=axis, **options))

    rhs = rng.standard_normal(shape)
    for bands in zip(*(forms(rng, rows, axis, k) for k in range(-2, 3)), strict=True):
        if bands[2].ndim:
            check(solve_pentadiagonal, (*bands, rhs))
            half = (None, None, *bands[2:], rhs)
            check(solve_pentadiagonal, half, assume="positive definite")
    rhs = rng.standard_normal((*shape, 2, 3))
    blocks_of = (forms(rng, rows, axis, k, (2, 2)) for k in (-1, 0, 1))
    for lower, diag, upper in zip(*blocks_of, strict=True):
        check(solve_block_tridiagonal, (lower, diag, upper, rhs))
        symmetric = diag + np.swapaxes(diag, -1, -2)
        check(solve_block_tridiagonal, (None, symmetric, upper, rhs), assume="positive definite")


def check_factor(library, there, here, rhs, **options):
    """Compare the results of factors on the device and on the CPU."""
    for trans in ("N", "T"):
        x = there.solve(library.array(rhs), trans=trans, **options)
        assert library.is_kind(x)
        near(library.get(x), here.solve(rhs, trans=trans, **options))
    determinant = there.logdet()
    assert library.is_kind(determinant)
    bound = 100 * np.finfo(rhs.dtype).eps
    assert np.allclose(library.get(determinant), here.logdet(), rtol=bound, atol=bound)


@pytest.mark.parametrize("side", [2, 3, 4])
@pytest.mark.parametrize("rows", [1, 2, 7, 66, 300])
@pytest.mark.parametrize(("batch", "axis"), [((), -1), ((5, 3), 0), ((2, 3), 1)])
def test_factors_of_blocks(device_library, rng, batch, axis, rows, side):
    library, dtype = device_library, ("float32", "float64")[side % 2]
    *matrix, rhs = blocks(rng, batch, axis, rows, side, 2, dtype)
    there = factor_block_tridiagonal(*(library.array(a) for a in matrix), axis=axis, rows=rows)
    here = factor_block_tridiagonal(*matrix, axis=axis, rows=rows, pivot=False)
    assert not there.pivoted
    check_factor(library, there, here, rhs)
    check_factor(
        library,
        there,
        here,
        np.stack((rhs, rhs[..., ::-1]), -1).view(f"c{2 * rhs.itemsize}")[..., 0],
    )
    for found, expected in zip(there.inverse_blocks(), here.inverse_blocks(), strict=True):
        assert library.is_kind(found)
        near(library.get(found), expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [1, 2, 3, 8, 65, 200, 601])
@pytest.mark.parametrize(("batch", "axis"), [((), -1), ((5, 3), 0), ((2, 3), 1)])
def test_factors_of_five_diagonals(device_library, rng, batch, axis, rows, dtype):
    library = device_library
    shape = list(batch)
    shape.insert(axis if axis >= 0 else len(shape), rows)
    *bands, rhs = (rng.uniform(-0.1, 0.1, shape).astype(dtype) for _ in range(6))
    bands[2] += 1
    there = factor_pentadiagonal(*(library.array(a) for a in bands), axis=axis, rows=rows)
    here = factor_pentadiagonal(*bands, axis=axis, rows=rows)
    check_factor(library, there, here, rhs)
    for found, expected in zip(there.inverse_diagonals(), here.inverse_diagonals(), strict=True):
        near(library.get(found), expected)


@pytest.mark.parametrize("axes", [(4, 1, 3), (1, 5, 3), (4, 5, 1), (1, 1, 1)])
def test_factors_of_matrices_that_right_hand_sides_share(device_library, rng, axes):
    library = device_library
    bands = [rng.uniform(-0.1, 0.1, (*axes, 9)) for _ in range(5)]
    bands[2] += 1
    there = factor_pentadiagonal(*(library.array(a) for a in bands))
    here = factor_pentadiagonal(*bands)
    check_factor(library, there, here, rng.standard_normal((4, 5, 3, 9)))
    with pytest.raises(ValueError, match="rhs must have 9 rows"):
        there.solve(library.array(np.ones((4, 5, 3, 8))))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_right_hand_sides_of_all_factors(device_library, rng, axis):
    library = device_library
    shape = [2, 3]
    shape.insert(axis if axis >= 0 else 2, 7)
    bands = [rng.uniform(-0.1, 0.1, shape) for _ in range(5)]
    bands[2] += 1
    there = factor_pentadiagonal(*map(library.array, bands), axis=axis)
    here = factor_pentadiagonal(*bands, axis=axis)
    part = [1 if size < 7 else size for size in shape]
    for own in ((7,), part, [2, *part]):
        rhs = rng.standard_normal(own)
        check_factor(library, there, here, rhs)
        check_factor(library, there, here, rhs * (1 + 2j))
    place = axis if axis >= 0 else 2
    (*matrix, _) = (
        np.ascontiguousarray(np.moveaxis(a, 2, place))
        for a in blocks(rng, (2, 3), -1, 7, 2, 1, "float64")
    )
    there = factor_block_tridiagonal(*map(library.array, matrix), axis=axis)
    here = factor_block_tridiagonal(*matrix, axis=axis)
    for own in ((7,), part, [2, *part]):
        check_factor(library, there, here, rng.standard_normal((*own, 2, 3)))
        check_factor(library, there, here, rng.standard_normal((*own, 2, 1)) * (1 + 2j))
    with pytest.raises(ValueError, match="the batch axes do not broadcast"):
        there.solve(library.array(np.ones([5 if n < 7 else n for n in shape] + [2, 1])))


@pytest.mark.parametrize("on_singular", ["raise", "nan"])
def test_real_matrices_with_complex_right_hand_sides(device_library, rng, on_singular):
    library = device_library
    bands = [rng.uniform(-0.1, 0.1, (3, 9)) for _ in range(5)]
    bands[2] += 1
    *matrix, sides = blocks(rng, (3,), -1, 9, 3, 2, "float64")
    for a in (*bands, *matrix):
        a[1] = 0
    rhs = rng.standard_normal((3, 9)) * (1 - 3j)
    for solve, case in (
        (solve_pentadiagonal, [*bands, rhs]),
        (solve_block_tridiagonal, [*matrix, sides * (1 - 3j)]),
    ):
        there = [library.array(a) for a in case]
        expected = solve(*case, on_singular="nan")
        if on_singular == "raise":
            with pytest.raises(SingularSystemError) as caught:
                solve(*there)
            assert caught.value.systems.tolist() == [[1]]
        else:
            x = solve(*there, on_singular="nan")
            assert library.is_kind(x)
            x = library.get(x)
            assert np.isnan(x[1].real).all()
            assert np.isnan(x[1].imag).all()
            near(x[[0, 2]], expected[[0, 2]])


def test_factors_of_one_long_matrix(device_library, rng):
    library = device_library
    for rows in (4096, 5000):
        *matrix, rhs = blocks(rng, (), -1, rows, 2, 1, "float64")
        there = factor_block_tridiagonal(*(library.array(a) for a in matrix))
        here = factor_block_tridiagonal(*matrix)
        check_factor(library, there, here, rhs)
        for found, expected in zip(there.inverse_blocks(), here.inverse_blocks(), strict=True):
            near(library.get(found), expected)


def test_factors_of_definite_and_singular_matrices(device_library, rng):
    library = device_library
    *matrix, rhs = blocks(rng, (4,), -1, 80, 2, 1, "float64")
    diag = np.tile(4 * np.eye(2), (4, 80, 1, 1))
    diag[2, 40] = -np.eye(2)
    for rows in (slice(0, 80), slice(30, 60)):
        given = (library.array(matrix[0][:, rows]), library.array(diag[:, rows]), None)
        with pytest.raises(SingularSystemError) as caught:
            factor_block_tridiagonal(*given, assume="positive definite")
        assert caught.value.systems.tolist() == [[2]]
        del caught  # has the frames, which have the factors
        factor = factor_block_tridiagonal(*given, assume="positive definite", on_singular="nan")
        x = library.get(factor.solve(library.array(rhs[:, rows])))
        assert np.isnan(x[2]).all()
        good = [0, 1, 3]
        own = factor_block_tridiagonal(
            matrix[0][good, rows], diag[good, rows], None, assume="positive definite"
        )
        near(x[good], own.solve(rhs[good, rows]))


@pytest.mark.parametrize("pivot", [None, False])
@pytest.mark.parametrize("rows", [7, 64, 66, 300])
@pytest.mark.parametrize("axis", [0, 1])
def test_five_diagonals_whose_pairs_of_rows_are_exchanged(device_library, rng, axis, rows, pivot):
    """Blocks of two rows are dominant, scalar rows are not in half of the systems."""
    library, systems = device_library, 9
    bands = [rng.uniform(-0.05, 0.05, (systems, rows)) for _ in range(5)]
    bands[2][::2] += 1
    first = rows % 2  # of the first pair
    bands[2][1::2, :first] = 1
    bands[3][1::2, first::2] += 1
    bands[1][1::2, first + 1 :: 2] += 1
    rhs = rng.standard_normal((systems, rows))
    operands = [np.moveaxis(a, 1, axis).copy() for a in (*bands, rhs)]
    x = solve_pentadiagonal(*(library.array(a) for a in operands), axis=axis, pivot=pivot)
    near(library.get(x), solve_pentadiagonal(*operands, axis=axis, pivot=True))


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("is_complex", [False, True])
def test_complex_and_periodic_systems(device_library, rng, is_complex, periodic):
    library = device_library
    bands = [rng.uniform(-1, 1, (3, 9)) * np.exp(1j * k * is_complex) for k in range(6)]
    bands = bands if is_complex else [band.real.copy() for band in bands]
    bands[2] += 9
    matrix = [np.stack([band, 0.5 * band], -1)[..., None, :] + 0 * np.eye(2) for band in bands[1:4]]
    matrix[1] = matrix[1] + 9 * np.eye(2)
    rhs = rng.standard_normal((3, 9, 2, 1))
    rhs = rhs + 1j * rhs[::-1] if is_complex else rhs
    if type(library).__name__ in ("HostMemory", "Numba") and (is_complex or periodic):
        with pytest.raises(BackendError, match=r"need arrays of CuPy|needs the CPU"):
            solve_pentadiagonal(*map(library.array, bands), periodic=periodic)
        return
    for solve, case in ((solve_pentadiagonal, bands), (solve_block_tridiagonal, [*matrix, rhs])):
        x = solve(*map(library.array, case), periodic=periodic)
        assert library.is_kind(x)
        near(library.get(x), solve(*case, periodic=periodic))
    zero = [0 * band for band in bands[:5]]
    if is_complex or periodic:
        with pytest.raises(SingularSystemError) as caught:
            solve_pentadiagonal(*map(library.array, [*zero, bands[5]]), periodic=periodic)
        assert caught.value.systems.tolist() == [[0], [1], [2]]


def test_operands_of_periodic_systems_are_on_one_device(device_library, rng):
    library = device_library
    bands = [rng.uniform(-0.1, 0.1, (3, 9)) for _ in range(6)]
    bands[2] += 1
    there = [library.array(band) for band in bands]
    with pytest.raises(TypeError, match=r"lower2 is a numpy\.ndarray"):
        solve_pentadiagonal(bands[0], *there[1:], periodic=True)
    with pytest.raises(ValueError, match="move all arrays to one device"):
        solve_pentadiagonal(*there, periodic=True, device="cpu")
    for operands, where in ((there, {"stream": 1}), (bands, {"device": "cuda"})):
        with pytest.raises(BackendError, match=r"factors and stream=.* without device="):
            solve_pentadiagonal(*operands, periodic=True, **where)


@pytest.mark.parametrize("on_singular", ["raise", "nan", "ignore"])
@pytest.mark.parametrize("pivot", [None, False])
def test_factors_outlive_the_stream_and_the_arrays_of_their_call(rng, pivot, on_singular):
    """Memory is freed on its stream: what is kept must not be on a stream of the caller."""
    *matrix, _ = blocks(rng, (3,), -1, 9, 2, 1, "float64")
    bands = [rng.uniform(-0.1, 0.1, (3, 9)) for _ in range(5)]
    bands[2] += 1
    stream = 0x700000
    for make, operands in ((factor_block_tridiagonal, matrix), (factor_pentadiagonal, bands)):
        with fake_device.in_place_of_cuda() as device:
            there = [fake_device.Array(device, a, stream=stream) for a in operands]

            factor = make(*there, pivot=pivot, on_singular=on_singular)

            assert device.buffers
            assert stream not in {buffer.stream for buffer in device.buffers}
            operand = weakref.ref(there.pop())
            assert operand() is None
            del factor
            assert not device.buffers

"""Several right-hand sides of each of several matrices on a device, one after the other."""

import numpy as np
import oracle
import pytest

import pysolvers

# Around the chunks of a thread, the rows of a warp, a block and clusters; the longest without
# kernels for several sides.
ROWS = (1, 2, 9, 13, 14, 16, 17, 32, 33, 64, 100, 257, 513, 545, 1000, 1025, 2049, 4097, 9000)


def batch(rng, rows, count, sides, axis, dtype):
    """Return the diagonals and the right-hand sides of systems along axis 0 or 1."""
    *matrix, _ = oracle.dominant(rng, (count, rows), dtype)
    rhs = oracle.uniform(rng, (sides, count, rows), dtype)
    if axis == 0:
        matrix, rhs = [a.T for a in matrix], rhs.swapaxes(1, 2)
    return matrix, rhs


def solve(matrix, rhs, axis, **options):
    """Solve on the device."""
    cupy = pytest.importorskip("cupy")
    arrays = [cupy.asarray(np.ascontiguousarray(a)) for a in (*matrix, rhs)]
    return cupy.asnumpy(pysolvers.solve_tridiagonal(*arrays, axis=axis + 1, **options))


def error(matrix, rhs, x, axis, **options):
    """Return the largest backward error of a side in eps of the dtype."""
    if axis == 0:
        matrix, rhs, x = [a.T for a in matrix], rhs.swapaxes(1, 2), x.swapaxes(1, 2)
    found = [oracle.backward_error(*matrix, b, y, **options) for b, y in zip(rhs, x, strict=True)]
    return max(found) / oracle.eps(x.dtype)


@pytest.mark.parametrize("sides", [2, 3, 4, 8])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("count", [37, 101, 132])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lengths(rng, dtype, axis, count, rows, sides):
    """132 systems are copied in bulk, 37 and 101 number by number, and 64 rows by 16 bytes."""
    matrix, rhs = batch(rng, rows, count, sides, axis, dtype)

    x = solve(matrix, rhs, axis, pivot=False)

    assert error(matrix, rhs, x, axis) <= 20


@pytest.mark.parametrize("sides", [1, 5, 6, 7, 9, 10, 16, 17])
@pytest.mark.parametrize("count", [1, 2, 32, 33, 40, 130])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_of_sides_and_systems(rng, dtype, axis, count, sides):
    matrix, rhs = batch(rng, 70, count, sides, axis, dtype)

    x = solve(matrix, rhs, axis)

    assert error(matrix, rhs, x, axis) <= 20


@pytest.mark.parametrize("count", [100, 101])
@pytest.mark.parametrize("rows", [3, 16, 17, 64, 70, 130, 600, 2049])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_periodic(rng, dtype, axis, rows, count):
    matrix, rhs = batch(rng, rows, count, 4, axis, dtype)

    x = solve(matrix, rhs, axis, periodic=True)

    assert error(matrix, rhs, x, axis, periodic=True) <= 20


@pytest.mark.parametrize(("before", "behind"), [(3, 2), (4, 8)])  # the latter begin at 16 bytes
@pytest.mark.parametrize("rows", [20, 70, 600, 2050])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parts_of_arrays_in_place(rng, dtype, axis, rows, before, behind):
    """The arrays have other numbers before and after the systems, which stay as they are."""
    cupy = pytest.importorskip("cupy")
    matrix, rhs = batch(rng, rows, 100, 5, axis, dtype)
    around = [np.pad(a, [(0, 0)] * (a.ndim - 1) + [(before, behind)]) for a in (*matrix, rhs)]
    arrays = [cupy.asarray(np.ascontiguousarray(a)) for a in around]
    parts = [a[..., before:-behind] for a in arrays]

    pysolvers.solve_tridiagonal(*parts, axis=axis + 1, out=parts[3])

    assert error(matrix, rhs, cupy.asnumpy(parts[3]), axis) <= 20
    for array, as_before in zip(arrays[:3], around, strict=False):
        np.testing.assert_array_equal(cupy.asnumpy(array), as_before)
    parts[3][...] = 0
    assert not cupy.asnumpy(arrays[3]).any()


@pytest.mark.parametrize("count", [100, 101])
@pytest.mark.parametrize("rows", [20, 64, 70, 600])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_singular_and_not_dominant_matrices_between_others(rng, dtype, axis, rows, count):
    matrix, rhs = batch(rng, rows, count, 4, axis, dtype)
    by_row = [a if axis == 1 else a.T for a in matrix]
    for a in by_row:
        a[5, rows // 2] = 0
    by_row[1][7, 0] = 1e-3  # smaller than upper: rows are exchanged

    x = solve(matrix, rhs, axis, on_singular="nan")

    x, rhs = (a if axis == 1 else a.swapaxes(1, 2) for a in (x, rhs))
    assert np.isnan(x[:, 5]).all()
    others = np.arange(count) != 5
    of_others = [a[others] for a in by_row]
    assert error(of_others, rhs[:, others], x[:, others], 1) <= 20


@pytest.mark.parametrize("sides", [4, 5, 6])
@pytest.mark.parametrize("rows", [300, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiles_of_a_cluster_follow_each_other(rng, dtype, rows, sides):
    """Sides of a tile are loaded and joined where those of the tile before were."""
    cupy = pytest.importorskip("cupy")
    matrix, rhs = batch(rng, rows, 40, sides, 0, dtype)
    arrays = [cupy.tile(cupy.asarray(np.ascontiguousarray(a)), 60) for a in (*matrix, rhs)]

    together = [pysolvers.solve_tridiagonal(*arrays, axis=1, pivot=False) for _ in range(4)]

    first = cupy.asnumpy(together[0][..., :40])
    assert error(matrix, rhs, first, 0) <= 20
    for x in together:
        assert (x.reshape(sides, rows, 60, 40) == x[..., None, :40]).all()
        assert (x == together[0]).all()


def test_a_side_that_is_not_finite_harms_no_other(rng):
    matrix, rhs = batch(rng, 70, 40, 3, 0, np.float64)
    rhs[1, 3, :] = np.nan

    x = solve(matrix, rhs, 0)

    assert np.isnan(x[1]).any()
    assert error(matrix, rhs[::2], x[::2], 0) <= 20


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("rows", [20, 64, 300])
@pytest.mark.parametrize("axis", [0, 1])
def test_more_tiles_than_blocks(rng, axis, rows, more):
    """Blocks and clusters draw their tiles; with one system more no other begins at 16 bytes."""
    count = 32 * 16 * 132
    matrix, rhs = batch(rng, rows, 64, 2, axis, np.float32)
    repeated = [np.concatenate([a] * (count // 64 + 1), axis=-1 - axis) for a in (*matrix, rhs)]
    cut = [a[..., : count + more] if axis == 0 else a[..., : count + more, :] for a in repeated]

    x = solve(cut[:3], cut[3], axis, pivot=False)

    x = x[..., :count] if axis == 0 else x[..., :count, :]
    parts = np.split(x, count // 64, axis=-1 - axis)
    assert error(matrix, rhs, parts[-1], axis) <= 20
    for part in parts:
        np.testing.assert_array_equal(part, parts[-1])


@pytest.mark.parametrize("rows", [2, 70, 600])
@pytest.mark.parametrize("axis", [0, 1])
def test_short_off_diagonals(rng, axis, rows):
    matrix, rhs = batch(rng, rows, 100, 3, axis, np.float64)
    first, last = [(slice(None),) * axis + (at,) for at in (slice(1, None), slice(-1))]
    short = [matrix[0][first], matrix[1], matrix[2][last]]

    x = solve(short, rhs, axis)

    assert error(matrix, rhs, x, axis) <= 20


@pytest.mark.parametrize("rows", [20, 64, 300])
def test_rows_that_are_apart(rng, rows):
    """Neither rows nor systems are neighbours in memory."""
    cupy = pytest.importorskip("cupy")
    matrix, rhs = batch(rng, rows, 100, 4, 1, np.float64)
    wide = [cupy.asarray(np.repeat(a, 2, axis=-1)) for a in (*matrix, rhs)]
    parts = [a[..., ::2] for a in wide]

    pysolvers.solve_tridiagonal(*parts, axis=2, out=parts[3])

    assert error(matrix, rhs, cupy.asnumpy(parts[3]), 1) <= 20
    np.testing.assert_array_equal(cupy.asnumpy(wide[3][..., 1::2]), rhs)

"""Systems along a strided axis on a device: every way in which their rows are shared out."""

import numpy as np
import oracle
import pytest

import pysolvers

# Around half a chunk, a chunk of 8 to 32 rows, a warp, a block and clusters of 2 to 8 blocks of
# each dtype, the longest with half lines.
ROWS = (2, 5, 16, 17, 32, 33, 64, 100, 193, 257, 500, 513, 1000, 1022, 1537, 2049, 3000, 4096, 5000)


def solve(columns, **options):
    """Solve on the device systems that lie along the first axis."""
    cupy = pytest.importorskip("cupy")
    arrays = [cupy.asarray(np.ascontiguousarray(a)) for a in columns]
    return cupy.asnumpy(pysolvers.solve_tridiagonal(*arrays, axis=0, **options))


def error(columns, x, **options):
    """Backward error in eps of the dtype."""
    system = [a.T for a in columns]
    return oracle.backward_error(*system, x.T, **options) / oracle.eps(x.dtype)


# Rows that begin at sectors of memory, at 16 bytes, and anywhere.
@pytest.mark.parametrize("count", [40, 36, 37])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_lengths(rng, dtype, periodic, rows, count):
    columns = [a.T for a in oracle.dominant(rng, (count, rows), dtype)]

    x = solve(columns, periodic=periodic, pivot=False)

    assert error(columns, x, periodic=periodic) <= 20


@pytest.mark.parametrize("count", [2, 3, 15, 16, 17, 31, 32, 33, 34, 100])
@pytest.mark.parametrize("rows", [40, 700])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_numbers_of_columns(rng, dtype, rows, count):
    columns = [a.T for a in oracle.dominant(rng, (count, rows), dtype)]

    x = solve(columns, pivot=False)

    assert error(columns, x) <= 20


@pytest.mark.parametrize("rows", [40, 700, 3000])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_aligned_columns_and_others_give_the_same_bits(rng, dtype, rows):
    columns = [a.T for a in oracle.dominant(rng, (65, rows), dtype)]
    whole = solve(columns, pivot=False)

    part = solve([a[:, 1:] for a in columns], pivot=False)

    np.testing.assert_array_equal(part, whole[:, 1:])


@pytest.mark.parametrize("offset", [0, 1, 3])
@pytest.mark.parametrize("gap", [0, 2, 5])
@pytest.mark.parametrize("rows", [40, 300, 3000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_rows_that_begin_anywhere_read_nothing_around_them(rng, dtype, rows, gap, offset):
    """Operands are parts of blocks of NaN that end where the last element ends."""
    cupy = pytest.importorskip("cupy")
    columns = [a.T for a in oracle.dominant(rng, (67, rows), dtype)]

    def within(a):
        count, pitch = a.shape[0], a.shape[1] + gap
        block = cupy.full(offset + (count - 1) * pitch + a.shape[1], np.nan, dtype)
        strides = pitch * block.itemsize, block.itemsize
        part = cupy.lib.stride_tricks.as_strided(block[offset:], a.shape, strides)
        part[...] = cupy.asarray(np.ascontiguousarray(a))
        return part, block

    lower, diag, upper, rhs = (
        within(a) for a in (columns[0][1:], columns[1], columns[2][:-1], columns[3])
    )
    x = pysolvers.solve_tridiagonal(
        lower[0], diag[0], upper[0], rhs[0], axis=0, pivot=False, out=rhs[0]
    )

    assert error(columns, cupy.asnumpy(x)) <= 20
    pitch = x.shape[1] + gap
    around = cupy.asnumpy(rhs[1][offset:])
    assert np.isnan(cupy.asnumpy(rhs[1][:offset])).all()
    assert all(np.isnan(around[k * pitch + 67 : (k + 1) * pitch]).all() for k in range(rows))


@pytest.mark.parametrize("rows", [40, 700, 3000])
@pytest.mark.parametrize("row", [0, 7, -1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_bad_pivot_is_told_and_stays_in_its_column(rng, dtype, row, rows):
    columns = [a.T.copy() for a in oracle.dominant(rng, (70, rows), dtype)]
    good = solve(columns, pivot=False)
    for a in columns[:3]:
        a[row, 33] = 0

    with pytest.raises(pysolvers.SingularSystemError) as caught:
        solve(columns, pivot=False)
    x = solve(columns, pivot=False, on_singular="nan")

    assert caught.value.systems.tolist() == [[33]]
    assert caught.value.rows.tolist() == [row % rows]
    assert np.isnan(x[:, 33]).all()
    others = np.arange(70) != 33
    np.testing.assert_array_equal(x[:, others], good[:, others])


@pytest.mark.parametrize("pivot", [False, None])
@pytest.mark.parametrize("count", [4097, 70_000, 1_000_003])
def test_a_singular_system_among_very_many_is_named(count, pivot):
    """Their numbers are copied to the host only if one of them is not 0."""
    cupy = pytest.importorskip("cupy")
    lower, diag, upper, rhs = (cupy.full((5, count), value) for value in (-1.0, 4.0, -1.0, 1.0))
    options = {"axis": 0, "pivot": pivot, "on_singular": "raise"}
    regular = pysolvers.solve_tridiagonal(lower, diag, upper, rhs, **options)
    for bad in (0, count // 2, count - 1):
        for a in (lower, diag, upper):
            a[2, bad] = 0

        with pytest.raises(pysolvers.SingularSystemError) as caught:
            pysolvers.solve_tridiagonal(lower, diag, upper, rhs, **options)
        assert caught.value.systems.tolist() == [[bad]]
        with pytest.raises(pysolvers.SingularSystemError) as caught:
            pysolvers.factor_tridiagonal(lower, diag, upper, axis=0, on_singular="raise")
        assert caught.value.systems.tolist() == [[bad]]

        for a, value in ((lower, -1), (diag, 4), (upper, -1)):
            a[2, bad] = value
    x = pysolvers.solve_tridiagonal(lower, diag, upper, rhs, **options)
    assert bool((x == regular).all())


@pytest.mark.parametrize("shape", [(1, 64), (1, 37), (3, 10), (2, 1)])
@pytest.mark.parametrize("rows", [2, 40, 700])
@pytest.mark.parametrize("pivot", [False, None, True])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_factors_of_columns(rng, dtype, periodic, pivot, rows, shape):
    """Their diagonals lie as the right-hand sides do, the corner entries, too."""
    cupy = pytest.importorskip("cupy")
    *matrix, rhs = oracle.dominant(rng, (*shape, rows), dtype)
    arrays = [cupy.asarray(np.swapaxes(a, 1, 2).copy()) for a in (*matrix, rhs)]
    factor = pysolvers.factor_tridiagonal(*arrays[:3], axis=1, periodic=periodic, pivot=pivot)

    for trans in "NTH":
        x = cupy.asnumpy(factor.solve(arrays[3], trans=trans)).swapaxes(1, 2)
        turned = oracle.transposed(*matrix, trans)
        error = oracle.backward_error(*turned, rhs, x, periodic=periodic)
        assert error <= 20 * oracle.eps(dtype)


@pytest.mark.parametrize("rows", [40, 700, 3000])
def test_only_columns_that_are_not_dominant_are_pivoted(rng, rows):
    columns = [a.T.copy() for a in oracle.dominant(rng, (70, rows))]
    plain = solve(columns, pivot=False)
    columns[1][rows // 2, 40] = 0

    x = solve(columns)

    assert error(columns, x) <= 200
    others = np.arange(70) != 40
    np.testing.assert_array_equal(x[:, others], plain[:, others])


@pytest.mark.parametrize(("rows", "copies"), [(90, 1100), (260, 600), (600, 600)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_so_many_columns_that_their_tiles_are_claimed(rng, dtype, rows, copies):
    cupy = pytest.importorskip("cupy")
    system = oracle.dominant(rng, (64, rows), dtype)
    many = [cupy.tile(cupy.asarray(np.ascontiguousarray(a.T)), copies) for a in system]

    x = pysolvers.solve_tridiagonal(*many, axis=0, pivot=False, out=many[3])

    x = x.reshape(rows, copies, 64)
    assert oracle.backward_error(*system, cupy.asnumpy(x[:, 0]).T) <= 20 * oracle.eps(dtype)
    assert (x == x[:, :1]).all()


@pytest.mark.parametrize("rows", [15, 16, 17, 33, 47, 48, 64, 65, 80, 81, 100, 129, 160, 161])
@pytest.mark.parametrize("pivot", [False, None])
@pytest.mark.parametrize("more", [5, 32])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_columns_of_few_rows(rng, dtype, rows, pivot, more):
    """Two threads solve each of so many columns of few rows, in float32 if rows begin anywhere."""
    cupy = pytest.importorskip("cupy")
    count = 48 * cupy.cuda.Device().attributes["MultiProcessorCount"] + more
    index = np.arange(count) % 61
    few = [a.T.copy() for a in oracle.dominant(rng, (61, rows), dtype)]
    few[0][0] = few[2][-1] = np.nan
    for a in few[:3]:
        a[rows // 3, 7] = 0
    few[1][rows - 2, 9] = 0
    columns = [np.ascontiguousarray(a[:, index]) for a in few]

    with pytest.raises(pysolvers.SingularSystemError) as caught:
        solve(columns, pivot=pivot)
    x = solve(columns, pivot=pivot, on_singular="ignore")
    arrays = [cupy.asarray(a) for a in columns]
    in_place = pysolvers.solve_tridiagonal(
        *arrays, axis=0, pivot=pivot, out=arrays[3], on_singular="ignore"
    )

    assert caught.value.systems.ravel().tolist() == np.flatnonzero(index == 7).tolist()
    assert set(caught.value.rows.tolist()) == {rows // 3}
    few[0][0] = few[2][-1] = 0
    others = np.setdiff1d(np.arange(61), [7, 9])
    assert error([a[:, others] for a in few], x[:, others]) <= 20
    if pivot is None:
        assert error([a[:, 9:10] for a in few], x[:, 9:10]) <= 200
    np.testing.assert_array_equal(x, x[:, index])
    np.testing.assert_array_equal(in_place.get(), x)


@pytest.mark.parametrize("inner", [2, 3, 8, 20, 33])
@pytest.mark.parametrize("rows", [40, 700])
def test_middle_axis(rng, rows, inner):
    cupy = pytest.importorskip("cupy")
    system = oracle.dominant(rng, (5, inner, rows))
    arrays = [cupy.asarray(np.ascontiguousarray(np.swapaxes(a, 1, 2))) for a in system]

    x = cupy.asnumpy(pysolvers.solve_tridiagonal(*arrays, axis=1, pivot=False))

    assert oracle.backward_error(*system, np.swapaxes(x, 1, 2)) <= 20 * oracle.eps(x.dtype)

"""One matrix for systems along a strided axis of a device array: every way to share them out."""

import numpy as np
import oracle
import pytest

import pysolvers

MANY = 9000  # systems, enough to pay for a table of a matrix that is solved with once
# Below, around and above one to many groups of rows of each dtype.
ROWS = (257, 300, 384, 385, 512, 513, 1000, 2049, 4096, 4200, 8191)


def problem(rng, rows, shape, dtype=np.float64):
    """Return a dominant matrix and right-hand sides, the systems along the first axis."""
    *matrix, _ = oracle.dominant(rng, (rows,), dtype)
    return matrix, oracle.uniform(rng, (rows, *shape), dtype)


def device(array):
    """Return a copy of the array on the device."""
    return pytest.importorskip("cupy").asarray(np.ascontiguousarray(array))


def host(array):
    """Return a copy of a device array, the systems along the last axis."""
    return np.moveaxis(pytest.importorskip("cupy").asnumpy(array), 0, -1)


def factor(matrix, **options):
    """Factor on the device; without row exchanges, if nothing else is said."""
    return pysolvers.factor_tridiagonal(*map(device, matrix), **{"pivot": False, **options})


def solve(made, rhs, **options):
    """Solve along the first axis: of a factor the last axis, of a view, is that one."""
    cupy = pytest.importorskip("cupy")
    view = cupy.moveaxis(device(rhs), 0, -1)
    return host(cupy.moveaxis(made.solve(view, out=cupy.empty_like(view), **options), -1, 0))


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_lengths(rng, dtype, periodic, rows):
    matrix, rhs = problem(rng, rows, (70,), dtype)

    x = solve(factor(matrix, periodic=periodic), rhs)

    error = oracle.backward_error(*matrix, rhs.T, x, periodic=periodic)
    assert error <= 20 * oracle.eps(dtype)


@pytest.mark.parametrize("count", [16, 17, 31, 32, 33, 100, 5000])
@pytest.mark.parametrize("rows", [300, 1000])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_numbers_of_columns(rng, dtype, rows, count):
    matrix, rhs = problem(rng, rows, (count,), dtype)

    x = solve(factor(matrix), rhs)

    assert oracle.backward_error(*matrix, rhs.T, x) <= 20 * oracle.eps(dtype)


@pytest.mark.parametrize("trans", ["T", "H"])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_transposes(rng, dtype, trans):
    matrix, rhs = problem(rng, 1000, (70,), dtype)

    x = solve(factor(matrix), rhs, trans=trans)

    solved = oracle.transposed(*matrix, trans)
    assert oracle.backward_error(*solved, rhs.T, x) <= 20 * oracle.eps(dtype)


@pytest.mark.parametrize("rows", [300, 4096])
@pytest.mark.parametrize("inner", [16, 20, 64])
def test_middle_axis(rng, inner, rows):
    *matrix, _ = oracle.dominant(rng, (rows,))
    rhs = oracle.uniform(rng, (5, rows, inner))
    cupy = pytest.importorskip("cupy")
    view = cupy.swapaxes(device(rhs), 1, 2)

    x = factor(matrix).solve(view, out=cupy.empty_like(view))

    error = oracle.backward_error(*matrix, np.swapaxes(rhs, 1, 2), cupy.asnumpy(x))
    assert error <= 20 * oracle.eps(x.dtype)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_neighbours_alignment_and_factor_do_not_change_a_bit(rng, dtype):
    matrix, rhs = problem(rng, 1000, (MANY,), dtype)
    columns = [device(a.reshape(-1, 1)) for a in matrix]
    whole = solve(factor(matrix), rhs)

    part = solve(factor(matrix), rhs[:, 1:40])
    x = pysolvers.solve_tridiagonal(*columns, device(rhs), axis=0, pivot=False)

    np.testing.assert_array_equal(part, whole[1:40])
    np.testing.assert_array_equal(host(x), whole)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbours_and_alignment_of_long_rows_change_roundings_only(rng, dtype):
    matrix, rhs = problem(rng, 3001, (MANY + 1,), dtype)
    columns = [device(a.reshape(-1, 1)) for a in matrix]
    whole = solve(factor(matrix), rhs)

    part = solve(factor(matrix), rhs[:, 1:40])
    x = pysolvers.solve_tridiagonal(*columns, device(rhs), axis=0, pivot=False)

    assert np.abs(part - whole[1:40]).max() <= 8 * oracle.eps(dtype) * np.abs(whole).max()
    np.testing.assert_array_equal(host(x), whole)


@pytest.mark.parametrize("pivot", [None, False])
def test_without_a_factor(rng, pivot):
    matrix, rhs = problem(rng, 1000, (3, MANY // 3))
    columns = [device(a.reshape(-1, 1, 1)) for a in matrix]
    there = device(rhs)

    x = pysolvers.solve_tridiagonal(*columns, there, axis=0, pivot=pivot, out=there)

    assert x is there
    error = oracle.backward_error(*matrix, np.moveaxis(rhs, 0, -1)[:, ::9], host(x)[:, ::9])
    assert error <= 20 * oracle.eps(x.dtype)


@pytest.mark.parametrize("rows", [99, 100, 159, 160, 200, 255, 256])
@pytest.mark.parametrize("count", [36000, 36001, 36004])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_of_one_block(rng, dtype, periodic, count, rows):
    matrix, rhs = problem(rng, rows, (count,), dtype)
    columns = [device(a.reshape(-1, 1)) for a in matrix]
    options = {"axis": 0, "pivot": False, "periodic": periodic}

    x = host(pysolvers.solve_tridiagonal(*columns, device(rhs), **options))

    some = np.r_[0:70, 70:count:97, count - 70 : count]
    error = oracle.backward_error(*matrix, rhs.T[some], x[some], periodic=periodic)
    assert error <= 20 * oracle.eps(dtype)


@pytest.mark.parametrize(("rows", "count"), [(1000, MANY), (3001, MANY + 1)])
def test_a_row_of_zeros_is_named_in_all_systems(rng, rows, count):
    matrix, rhs = problem(rng, rows, (count,))
    for a in matrix:
        a[33] = 0
    columns = [device(a.reshape(-1, 1)) for a in matrix]

    with pytest.raises(pysolvers.SingularSystemError) as caught:
        pysolvers.solve_tridiagonal(*columns, device(rhs), axis=0, pivot=False)

    assert set(caught.value.rows.tolist()) == {33}
    assert len(caught.value.systems) == count


@pytest.mark.parametrize("rows", [300, 4096])
def test_in_place_and_with_the_same_factor(rng, rows):
    matrix, rhs = problem(rng, rows, (500,))
    made = factor(matrix, pivot=None)
    there = device(rhs).T

    x = made.solve(there, out=there)

    assert x is there
    assert oracle.backward_error(*matrix, rhs.T, host(x.T)) <= 20 * oracle.eps(x.dtype)
    difference = np.abs(solve(made, rhs) - host(x.T)).max()
    assert difference <= 8 * oracle.eps(x.dtype) * np.abs(host(x.T)).max()


def test_a_matrix_that_is_not_dominant_is_pivoted(rng):
    matrix, rhs = problem(rng, 1000, (70,))
    matrix[1][500] = 0

    x = solve(factor(matrix, pivot=None), rhs)

    assert oracle.backward_error(*matrix, rhs.T, x) <= 200 * oracle.eps(x.dtype)


def test_nothing_leaks_into_other_systems(rng):
    matrix, rhs = problem(rng, 1000, (5000,))
    expected = solve(factor(matrix), rhs)
    rhs[700, 33] = np.nan

    x = solve(factor(matrix), rhs)

    assert np.isnan(x[33]).all()
    others = np.arange(5000) != 33
    np.testing.assert_array_equal(x[others], expected[others])


@pytest.mark.parametrize("rows", [1000, 4096, 4200])
@pytest.mark.parametrize("columns", [4608, 4612])
@pytest.mark.parametrize("kept", [False, True])
def test_graphs_in_turn(rng, kept, columns, rows):
    cupy = pytest.importorskip("cupy")
    matrix, rhs = problem(rng, rows, (columns,), np.float32)
    there = [device(a) for a in matrix]
    made = factor(matrix)
    inputs = [device(rhs), device(2 * rhs)]
    results = [cupy.empty_like(a) for a in inputs]
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in inputs]
    graphs = []

    def run(a, x):
        if kept:
            made.solve(a.T, out=x.T)
        else:
            columns = [b.reshape(-1, 1) for b in there]
            pysolvers.solve_tridiagonal(
                *columns, a, axis=0, pivot=False, out=x, on_singular="ignore"
            )

    expected = []
    for a, x in zip(inputs, results, strict=True):
        run(a, x)
        expected.append(host(x))
        x.fill(cupy.nan)
    cupy.cuda.get_current_stream().synchronize()
    for stream, a, x in zip(streams, inputs, results, strict=True):
        with stream:
            stream.begin_capture()
            run(a, x)
            graphs.append(stream.end_capture())
    for _ in range(3):
        for stream, graph in zip(streams, graphs, strict=True):
            graph.launch(stream)
    for stream in streams:
        stream.synchronize()

    for x, solved in zip(results, expected, strict=True):
        np.testing.assert_array_equal(host(x), solved)


def slow_rows(rows, dtype, slow):
    """Return a matrix whose rows decay fast, but for some in the middle."""
    side = np.full(rows, -0.2, dtype)
    side[rows // 2 - slow // 2 : rows // 2 + slow // 2] = -0.5
    return [side, np.ones(rows, dtype), side.copy()]


@pytest.mark.parametrize("slow", [0, 12, 60])
@pytest.mark.parametrize("rows", [1000, 3001])
@pytest.mark.parametrize("count", [33, 11181])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_that_decay_fast_and_slowly(rng, dtype, count, rows, slow):
    matrix = slow_rows(rows, dtype, slow)
    rhs = oracle.uniform(rng, (rows, count), dtype)
    columns = [device(a.reshape(-1, 1)) for a in matrix]

    x = host(pysolvers.solve_tridiagonal(*columns, device(rhs), axis=0, pivot=False))
    kept = solve(factor(matrix), rhs)

    some = np.unique(np.r_[0:20, 0:count:97, count - 20 : count])
    for found in (x, kept):
        error = oracle.backward_error(*matrix, rhs.T[some], found[some])
        assert error <= 20 * oracle.eps(dtype)


@pytest.mark.parametrize("count", [70, 5001])
@pytest.mark.parametrize("rows", [1000, 2001, 4199])
@pytest.mark.parametrize("trans", ["N", "T"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_long_rows(rng, dtype, trans, rows, count):
    side = rng.uniform(-0.45, 0.45, (2, rows)).astype(dtype)
    matrix = [side[0], np.ones(rows, dtype), side[1]]
    rhs = oracle.uniform(rng, (rows, count), dtype)

    x = solve(factor(matrix), rhs, trans=trans)

    solved = matrix if trans == "N" else oracle.transposed(*matrix, trans)
    some = np.unique(np.r_[0:20, 0:count:17, count - 20 : count])
    error = oracle.backward_error(*solved, rhs.T[some], x[some])
    assert error <= 20 * oracle.eps(dtype)


@pytest.mark.parametrize("pivot", [None, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_each_result_is_reported(rng, dtype, pivot):
    matrix, rhs = problem(rng, 3001, (2, 1001), dtype)
    columns = [device(a.reshape(-1, 1, 1)) for a in matrix]

    x, info = pysolvers.solve_tridiagonal(
        *columns, device(rhs), axis=0, pivot=pivot, return_info=True
    )

    assert info.pivoted == 0
    found = np.moveaxis(host(x), -1, 0).reshape(3001, -1).T
    error = oracle.backward_error(*matrix, rhs.reshape(3001, -1).T[::29], found[::29])
    assert error <= 20 * oracle.eps(dtype)


def test_nothing_of_long_rows_leaks_into_other_systems(rng):
    matrix, rhs = problem(rng, 3001, (5001,))
    expected = solve(factor(matrix), rhs)
    rhs[700, 33] = np.nan

    x = solve(factor(matrix), rhs)

    assert np.isnan(x[33, 690:710]).all()
    others = np.arange(5001) != 33
    np.testing.assert_array_equal(x[others], expected[others])

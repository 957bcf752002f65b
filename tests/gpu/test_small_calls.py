"""Calls with small systems, which reuse plans, and memory that the device writes for the host."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import oracle
import pytest

import pysolvers


def test_layouts_take_turns(streaming, rng):
    """More layouts than a thread remembers, some with addresses that do not allow vectors."""
    cases = []
    for systems, rows in ((1, 5), (3, 64), (100, 64), (7, 500), (40, 33)):
        for skipped in (0, 1):
            for axis in (0, 1):
                wide = oracle.dominant(rng, (systems, rows + skipped))
                hosts = [np.moveaxis(a[:, skipped:], 1, axis) for a in wide]
                whole = (streaming.array(np.moveaxis(a, 1, axis).copy()) for a in wide)
                index = (slice(None), slice(skipped, None)) if axis else (slice(skipped, None),)
                cases.append((hosts, [streaming.view(a, index) for a in whole], axis))

    for _ in range(3):
        for hosts, arrays, axis in cases:
            x = streaming.get(pysolvers.solve_tridiagonal(*arrays, axis=axis))
            system = [np.moveaxis(a, axis, 1) for a in (*hosts, x)]
            assert np.max(oracle.backward_error(*system)) < 50 * oracle.eps(np.float64)


@pytest.mark.parametrize("systems", [30, 300, 5000])
def test_threads_report_their_own_singular_systems(streaming, systems):
    """More threads than blocks of memory that the device writes; 5000 systems do not fit one."""

    def solve(number):
        rng = np.random.default_rng(number)
        lower, diag, upper, rhs = oracle.dominant(rng, (systems, 12))
        lower[number, 4:6] = diag[number, 4] = upper[number, 3:5] = 0
        arrays = [streaming.array(a) for a in (lower, diag, upper, rhs)]
        found = []
        with streaming.current(streaming.stream()):
            for _ in range(10):
                with pytest.raises(pysolvers.SingularSystemError) as caught:
                    pysolvers.solve_tridiagonal(*arrays)
                found.append((caught.value.systems.tolist(), caught.value.rows.tolist()))
        return found

    with ThreadPoolExecutor(24) as pool:
        for number, found in enumerate(pool.map(solve, range(24))):
            assert found == [([[number]], [4])] * 10


@pytest.mark.parametrize("trans", ["N", "T"])
@pytest.mark.parametrize("systems", [1, 6])
def test_factors_of_matrices_that_are_dominant_by_rows_only(streaming, rng, systems, trans):
    """The host knows that no rows are exchanged, but not those of the transposes."""
    scale = 2.0 ** rng.integers(-8, 8, (systems, 70))
    lower, diag, upper, rhs = oracle.dominant(rng, (systems, 70))
    matrix = [scale * a for a in (lower, diag, upper)]
    factor = pysolvers.factor_tridiagonal(*map(streaming.array, matrix))
    assert factor.info.pivoted == 0

    x = streaming.get(factor.solve(streaming.array(rhs), trans=trans))

    expected = pysolvers.factor_tridiagonal(*matrix, pivot=True).solve(rhs, trans=trans)
    np.testing.assert_allclose(x, expected, rtol=1e-8)


def test_factors_of_matrices_with_row_exchanges(streaming, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (6, 70))
    diag[2, 1::4] = 0
    factor = pysolvers.factor_tridiagonal(*map(streaming.array, (lower, diag, upper)))
    assert factor.info.pivoted == 1

    x = streaming.get(factor.solve(streaming.array(rhs)))

    errors = oracle.matrix_backward_error(lower, diag, upper, rhs, x)
    assert np.max(errors) < 50 * oracle.eps(np.float64)


@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("rows", [9, 500, 5000])
@pytest.mark.parametrize("on_singular", ["raise", "ignore"])
def test_systems_with_row_exchanges_in_place(
    streaming, rng, dtype, axis, shared, rows, on_singular
):
    """With 'raise' the host knows after the first kernel which systems need row exchanges."""
    lower, diag, upper, rhs = oracle.dominant(rng, (11, rows), np.dtype(dtype))
    diag[[2, 7], 1::4] = 0
    matrix = [a[2] if shared else a for a in (lower, diag, upper)]
    hosts = [np.moveaxis(a, 1, axis).copy() if a.ndim > 1 else a for a in (*matrix, rhs)]
    arrays = [streaming.array(a) for a in hosts]

    for _ in range(2):
        streaming.assign(arrays[3], streaming.array(hosts[3]))
        x = pysolvers.solve_tridiagonal(*arrays, axis=axis, out=arrays[3], on_singular=on_singular)

        assert x is arrays[3]
        found = np.moveaxis(streaming.get(x), axis, 1)
        system = [np.broadcast_to(a, rhs.shape) for a in matrix]
        errors = oracle.matrix_backward_error(*system, rhs, found)
        assert np.max(errors) < 200 * oracle.eps(dtype)


def test_singular_systems_among_those_with_row_exchanges(streaming, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (40, 21))
    diag[5:9, 1::4] = 0
    lower[30, 4:6] = diag[30, 4] = upper[30, 3:5] = 0
    arrays = [streaming.array(a) for a in (lower, diag, upper, rhs)]

    for _ in range(3):
        with pytest.raises(pysolvers.SingularSystemError) as caught:
            pysolvers.solve_tridiagonal(*arrays)

        assert caught.value.systems.tolist() == [[30]]
        assert caught.value.rows.tolist() == [4]

"""Every method, dtype and size: the answer solves the system to a few eps."""

import numpy as np
import oracle
import pytest

from pysolvers import solve_tridiagonal


@pytest.mark.each_value
@pytest.mark.parametrize("method", oracle.METHODS)
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_backward_error_is_a_few_eps(solve, rng, dtype, method):
    for rows in oracle.ROWS:
        system = oracle.dominant(rng, (5, rows), dtype)

        x = solve(*system, method=method)

        assert x.dtype == dtype
        assert x.shape == (5, rows)
        assert oracle.backward_error(*system, x) <= 10 * oracle.eps(dtype), f"{rows} rows"


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("method", oracle.METHODS)
def test_any_number_of_systems_fills_the_lanes(solve, rng, method, axis):
    for systems in oracle.SYSTEMS:
        system = oracle.dominant(rng, (systems, 37))
        moved = [np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in system]

        x = np.moveaxis(solve(*moved, axis=axis, method=method), axis, -1)

        error = oracle.backward_error(*system, x)
        assert error <= 10 * oracle.eps(x.dtype), f"{systems} systems"


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("method", ["cr", "pcr", "cr-pcr", "pcr-thomas"])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_rows_of_one_system_fill_the_lanes(rng, dtype, method, periodic):
    """With a system per lane the operations are the same."""
    options = {"method": method, "periodic": periodic}
    for rows in (*oracle.ROWS, 5001):
        lower, diag, upper, rhs = oracle.dominant(rng, (3, rows), dtype)
        if not periodic:
            lower[:, 0] = upper[:, -1] = np.nan
        if rows > 5:  # two bad pivots, of which the first that is met is reported
            for a in (lower, diag, upper):
                a[2, [rows // 3, rows // 2]] = 0
        options |= {"on_singular": "ignore", "return_info": True}

        x, info = solve_tridiagonal(lower, diag, upper, rhs, **options)

        for k in range(3):
            wide = [np.repeat(a[k], 2)[::2] for a in (lower, diag, upper, rhs)]
            alone, its = solve_tridiagonal(*wide, **options)
            np.testing.assert_array_equal(alone, x[k], f"{rows} rows")
            bad = list(info.singular_rows[np.ravel(info.singular) == k])
            assert list(its.singular_rows) == bad, f"{rows} rows"


@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_random_systems_are_pivoted_to_a_few_eps(solve, rng, dtype):
    for rows in oracle.ROWS:
        system = oracle.general(rng, (5, rows), dtype)

        x = solve(*system, pivot=True)

        assert oracle.backward_error(*system, x) <= 200 * oracle.eps(dtype), rows


@pytest.mark.parametrize("method", oracle.METHODS)
def test_answer_is_the_dense_one(solve, rng, method):
    system = oracle.dominant(rng, (3, 20))

    np.testing.assert_allclose(solve(*system, method=method), oracle.solve(*system), rtol=1e-12)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (0, 0), (2, 0, 4), (2, 4, 0)])
def test_empty_systems_and_batches_give_an_empty_answer(solve, shape):
    empty = np.empty(shape, np.float32)
    for method in oracle.METHODS:
        x = solve(empty, empty, empty, empty, method=method)

        assert x.shape == shape, method
        assert x.dtype == np.float32


@pytest.mark.parametrize("method", oracle.METHODS)
def test_single_row_is_a_division(solve, method):
    nan = np.array([np.nan])

    assert solve(nan, np.array([4.0]), nan, np.array([2.0]), method=method) == [0.5]


@pytest.mark.parametrize("method", oracle.METHODS)
@pytest.mark.parametrize("rows", [70_001, 131_072])
def test_long_systems(solve, rng, method, rows):
    system = oracle.dominant(rng, (2, rows))

    assert oracle.backward_error(*system, solve(*system, method=method)) <= 20 * oracle.eps(float)


@pytest.mark.parametrize("value", [1e-30, 1e30])
@pytest.mark.parametrize("method", oracle.METHODS)
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_scale_of_the_matrix_does_not_matter(solve, rng, dtype, method, value):
    lower, diag, upper, rhs = oracle.dominant(rng, (4, 50), dtype)
    factor = dtype(value)
    system = lower * factor, diag * factor, upper * factor, rhs

    x = solve(*system, method=method)

    assert oracle.backward_error(*system, x) <= 10 * oracle.eps(dtype)

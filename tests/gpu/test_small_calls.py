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


@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("pivot", [None, False, True])
@pytest.mark.parametrize("exchanges", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis", "lacks"), [((40, 6), 0, 0), ((5000, 12), 1, 0), ((3, 33, 9), 1, 1)]
)
def test_theta_steps_give_the_bits_of_planned_calls(
    streaming, rng, shape, axis, lacks, exchanges, pivot, dtype
):
    """With info a call is planned; without, it needs no planning."""
    own = shape[lacks:]
    batch = [size for k, size in enumerate(own) if k != axis - lacks]
    systems = list(oracle.dominant(rng, (*batch, own[axis - lacks]), dtype))[:3]
    if exchanges:
        systems[1][..., 3::5] = -1 / 0.18  # diagonals of I - 0.18 A that are 2 + 1 - 1
        systems[0][..., 3::5] *= 20
    matrix = [streaming.array(np.moveaxis(a, -1, axis - lacks).copy()) for a in systems]
    host = oracle.uniform(rng, shape, dtype)
    u, options = streaming.array(host), {"dt": 0.3, "theta": 0.6, "axis": axis, "pivot": pivot}
    expected = streaming.get(pysolvers.theta_step(*matrix, u, return_info=True, **options)[0])

    for policy in ("raise", "nan", "ignore"):
        x = pysolvers.theta_step(*matrix, u, on_singular=policy, **options)
        np.testing.assert_array_equal(streaming.get(x), expected)
        out = streaming.array(host)
        given = pysolvers.theta_step(*matrix, out, out=out, on_singular=policy, **options)
        assert given is out
        np.testing.assert_array_equal(streaming.get(out), expected)
    np.testing.assert_array_equal(streaming.get(u), host)


@pytest.mark.parametrize("systems", [30, 5000])
def test_singular_theta_steps_are_named(streaming, rng, systems):
    lower, diag, upper, u = oracle.dominant(rng, (systems, 12))
    lower[7, 4], diag[7, 4], upper[7, 4] = 0, 2, 0  # the row of I - A / 2 is 0
    arrays = [streaming.array(a) for a in (lower, diag, upper, u)]

    with pytest.raises(pysolvers.SingularSystemError) as caught:
        pysolvers.theta_step(*arrays, dt=1.0)
    x = streaming.get(pysolvers.theta_step(*arrays, dt=1.0, on_singular="nan"))

    assert caught.value.systems.tolist() == [[7]]
    assert np.isnan(x[7]).all()
    assert np.isfinite(np.delete(x, 7, 0)).all()


@pytest.mark.parametrize("on_singular", ["raise", "nan", "ignore"])
@pytest.mark.parametrize(("shape", "axis"), [((3, 33, 40), 1), ((2, 3, 40, 33), -1)])
def test_several_right_sides_give_the_bits_of_planned_calls(
    streaming, rng, shape, axis, on_singular
):
    lacks = len(shape) - 2
    systems = oracle.dominant(rng, (40, 33))[:3]
    hosts = [a.copy() if axis == -1 else a.T.copy() for a in systems]
    rhs = oracle.uniform(rng, shape, float)
    arrays = [streaming.array(a) for a in (*hosts, rhs)]
    options = {"axis": axis, "on_singular": on_singular}
    planned, _ = pysolvers.solve_tridiagonal(*arrays, return_info=True, **options)

    x = pysolvers.solve_tridiagonal(*arrays, **options)

    np.testing.assert_array_equal(streaming.get(x), streaming.get(planned))
    assert x.shape == shape
    for place in np.ndindex(shape[:lacks]):
        inner = axis if axis == -1 else axis - lacks
        system = [np.moveaxis(a, inner, -1) for a in (rhs[place], streaming.get(x)[place])]
        errors = oracle.backward_error(*systems, *system)
        assert np.max(errors) < 50 * oracle.eps(float)

"""Long contiguous systems on a device: tiles with halos, and two passes for those that fail.

Tiles of float64 have 2112 rows and halos of 77, those of float32 4352 and 51. A system fails if an
unknown next to a halo depends on those beyond.
"""

import numpy as np
import oracle
import pytest
from scipy.linalg import solve_banded

import pysolvers

# From the first lengths with halos on, around whole tiles of float64 and float32.
ROWS = (32_768, 34_000, 35_398, 35_399, 40_000, 65_536, 68_051, 68_052, 300_001)
SLOW = (0.0, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2)  # what is left of the diagonal 2 of -1, 2, -1


@pytest.fixture
def cupy():
    return pytest.importorskip("cupy")


def slow(rng, rows, dtype):
    """Return systems whose solutions decay slowly along the rows, and one that decays fast."""
    operands = oracle.dominant(rng, (len(SLOW) + 1, rows), dtype)
    for k, excess in enumerate(SLOW):
        operands[0][k], operands[1][k], operands[2][k] = -1, 2 + excess, -1
    return operands


def solve(cupy, operands, **options):
    """Solve on the device systems along the last axis, without row exchanges."""
    arrays = [cupy.asarray(np.ascontiguousarray(a)) for a in operands]
    return cupy.asnumpy(pysolvers.solve_tridiagonal(*arrays, **{"pivot": False, **options}))


def banded(operands):
    """Return the solutions by SciPy, one system after the other."""
    return np.array(
        [
            solve_banded((1, 1), np.array([np.roll(u, 1), d, np.roll(low, -1)]), b)
            for low, d, u, b in zip(*operands, strict=True)
        ]
    )


def error(operands, x, **options):
    """Return the backward error in eps."""
    return oracle.backward_error(*operands, x, **options) / oracle.eps(x.dtype)


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_lengths(cupy, rng, dtype, periodic, rows):
    operands = oracle.dominant(rng, (3, rows), dtype)

    x = solve(cupy, operands, periodic=periodic)

    assert error(operands, x, periodic=periodic) <= 40


@pytest.mark.parametrize("rows", [40_000, 200_000, 1_000_003])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_unknowns_that_depend_on_distant_rows(cupy, rng, dtype, rows):
    operands = slow(rng, rows, dtype)

    x = solve(cupy, operands)

    assert error(operands, x) <= 60
    if dtype == np.float64:
        expected = banded([a[3:] for a in operands])
        np.testing.assert_allclose(x[3:], expected, rtol=1e-8, atol=1e-8 * abs(expected).max())


@pytest.mark.parametrize("excess", [1e-6, 0.01, 1.0])
@pytest.mark.parametrize("rows", [40_000, 300_001])
def test_rows_that_only_one_end_of_a_system_sees(cupy, rng, rows, excess):
    """A right-hand side in the first row alone, and one in the last: the others are not zero."""
    lower, diag, upper, rhs = oracle.dominant(rng, (2, rows))
    lower[:], diag[:], upper[:], rhs[:] = -1, excess + 2, -1, 0
    rhs[0, 0] = rhs[1, -1] = 1

    x = solve(cupy, (lower, diag, upper, rhs))

    expected = banded((lower, diag, upper, rhs))
    np.testing.assert_allclose(x, expected, rtol=1e-6, atol=1e-290)


@pytest.mark.parametrize("rows", [40_000, 300_001])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_neighbours_do_not_change_a_bit(cupy, rng, dtype, rows):
    several = [slow(rng, rows, dtype) for _ in range(2)]
    operands = [np.concatenate(pair) for pair in zip(*several, strict=True)]
    whole = solve(cupy, operands)

    for k in (0, 3, 6, 13):
        np.testing.assert_array_equal(solve(cupy, [a[k : k + 1] for a in operands])[0], whole[k])


@pytest.mark.parametrize("pivot", [None, False])
@pytest.mark.parametrize("rows", [40_000, 300_001])
def test_in_place(cupy, rng, rows, pivot):
    operands = slow(rng, rows, np.float64)
    arrays = [cupy.asarray(a) for a in operands]

    x = pysolvers.solve_tridiagonal(*arrays, pivot=pivot, out=arrays[3])

    assert x is arrays[3]
    assert error(operands, cupy.asnumpy(x)) <= 60


@pytest.mark.parametrize("rows", [40_000, 300_001])
def test_short_off_diagonals_and_rows_in_reverse(cupy, rng, rows):
    lower, diag, upper, rhs = oracle.dominant(rng, (2, rows))
    arrays = [cupy.asarray(a) for a in (lower[:, 1:], diag, upper[:, :-1], rhs)]
    turned = [cupy.asarray(np.ascontiguousarray(a[:, ::-1]))[:, ::-1] for a in (lower, diag, upper)]

    x = cupy.asnumpy(pysolvers.solve_tridiagonal(*arrays, pivot=False))
    same = cupy.asnumpy(pysolvers.solve_tridiagonal(*turned, arrays[3], pivot=False))

    assert error((lower, diag, upper, rhs), x) <= 40
    assert error((lower, diag, upper, rhs), same) <= 40


@pytest.mark.parametrize("rows", [40_000, 300_001])
@pytest.mark.parametrize("row", [0, 20_000, -1])
def test_a_bad_pivot_is_named_and_spares_the_others(cupy, rng, row, rows):
    operands = oracle.dominant(rng, (4, rows))
    good = solve(cupy, operands)
    for a in operands[:3]:
        a[2, row] = 0

    with pytest.raises(pysolvers.SingularSystemError) as caught:
        solve(cupy, operands)
    x = solve(cupy, operands, on_singular="nan")

    assert caught.value.systems.tolist() == [[2]]
    assert caught.value.rows.tolist() == [row % rows]
    assert np.isnan(x[2]).all()
    np.testing.assert_array_equal(x[[0, 1, 3]], good[[0, 1, 3]])


@pytest.mark.parametrize("rows", [40_000, 300_001])
def test_systems_that_are_not_dominant_are_pivoted(cupy, rng, rows):
    operands = oracle.dominant(rng, (3, rows))
    general = oracle.general(rng, (rows,))
    for a, other in zip(operands, general, strict=True):
        a[1] = other

    x = solve(cupy, operands, pivot=None)

    assert error([a[[0, 2]] for a in operands], x[[0, 2]]) <= 40
    assert oracle.matrix_backward_error(*(a[1] for a in operands), x[1]) <= 100 * oracle.eps(
        x.dtype
    )

"""Long systems with row exchanges, which are cut into spans: as accurate as in one piece."""

import numpy as np
import oracle
import pytest

from pysolvers import SingularSystemError, solve_tridiagonal

ROWS = 1 << 18  # from here on
RING_ROWS = 1 << 15  # periodic systems, from here on
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
# Of the accuracy set those that are made in a time that grows with the rows. In the default run
# one of each kind: random, of growing entries, with empty couplings, with a small diagonal.
NUMBERS = [
    *(1, 3, 5, 14, 16),
    *(pytest.param(k, marks=pytest.mark.slow) for k in (2, 4, 6, 7, 17, 18, 19, 20)),
]


def systems(rng, side, rows, dtype=np.float64):
    """Lower, diag, upper, rhs of shape (side, rows), without dominance."""
    return [oracle.uniform(rng, (side, rows), dtype) for _ in range(4)]


def one_by_one(operands, **options):
    """Each system by itself."""
    alone = [solve_tridiagonal(*s, pivot=True, **options) for s in zip(*operands, strict=True)]
    return np.stack(alone)


def ring_error(x, *system):
    """Return the largest normwise backward error of periodic systems, in eps."""
    normwise, _ = oracle.backward_errors(*system, x, periodic=True)
    return np.max(normwise) / oracle.eps(x.dtype)


@pytest.mark.parametrize("number", NUMBERS)
def test_forward_and_backward_error_are_those_of_lapack(number):
    *system, exact = oracle.accuracy_draw.__wrapped__(number, ROWS + 77, 0)
    forms = list(oracle.gtsv_forms(*system))

    x = solve_tridiagonal(*system, pivot=True)

    lapack = max(oracle.forward_error(form, exact) for form in forms)
    assert oracle.forward_error(x, exact) <= 10 * max(lapack, oracle.eps(np.float64))
    backward = max(oracle.backward_error(*system, form) for form in forms)
    assert oracle.backward_error(*system, x) <= 4 * max(backward, 3 * oracle.eps(np.float64))


@pytest.mark.parametrize(
    ("dtype", "rows"),
    [(np.float64, ROWS), *((dtype, ROWS + 511) for dtype in DTYPES)],
)
def test_types_and_lengths(rng, dtype, rows):
    system = [a[0] for a in systems(rng, 1, rows, dtype)]

    x = solve_tridiagonal(*system, pivot=True)

    lapack = max(oracle.backward_error(*system, form) for form in oracle.gtsv_forms(*system))
    assert oracle.backward_error(*system, x) <= 4 * lapack


@pytest.mark.each_value
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("side", "axis"), [(1, 1), (3, 1), (3, 0), (19, 0)])
def test_same_bits_whatever_lies_beside(rng, side, axis, threads):
    operands = systems(rng, side, ROWS + 5)
    laid = operands if axis == 1 else [np.ascontiguousarray(a.T) for a in operands]

    x = solve_tridiagonal(*laid, axis=axis, pivot=True, threads=threads)

    np.testing.assert_array_equal(x if axis == 1 else x.T, one_by_one(operands, threads=2))


def test_ends_strides_in_place_and_the_choice_of_auto(rng):
    lower, diag, upper, rhs = (a[0] for a in systems(rng, 1, ROWS + 5))
    expected = solve_tridiagonal(lower, diag, upper, rhs, pivot=True)
    lower[0] = upper[-1] = np.nan
    wide = [np.repeat(a, 2)[::2] for a in (lower, diag, upper, rhs)]
    back = [a[::-1].copy()[::-1] for a in (lower, diag, upper, rhs)]

    chosen, info = solve_tridiagonal(lower, diag, upper, rhs, return_info=True)
    short = solve_tridiagonal(lower[1:], diag, upper[:-1], rhs, pivot=True)
    for x in (
        chosen,
        short,
        solve_tridiagonal(*wide, pivot=True),
        solve_tridiagonal(*back, pivot=True),
        solve_tridiagonal(lower, diag, upper, rhs, pivot=True, out=rhs),
    ):
        np.testing.assert_array_equal(x, expected)
    assert info.pivoted == 1


@pytest.mark.parametrize("axis", [0, 1])
def test_a_singular_one_among_others(rng, axis):
    operands = systems(rng, 4, ROWS)
    for a in operands[:3]:
        a[2, 1000] = 0
    laid = operands if axis == 1 else [np.ascontiguousarray(a.T) for a in operands]
    out = np.empty_like(laid[3])

    with pytest.raises(SingularSystemError) as caught:
        solve_tridiagonal(*laid, axis=axis, pivot=True, out=out)

    assert list(caught.value.systems) == [2]
    others = [0, 1, 3]
    x = out if axis == 1 else out.T
    np.testing.assert_array_equal(x[others], one_by_one([a[others] for a in operands]))


@pytest.mark.each_value
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_entries_do_not_grow(rng, dtype, axis):
    """Constant coefficients: solutions grow along the rows, and the spans' ends with them."""
    draws = 4
    rows = ROWS + 301
    matrix = [np.repeat(oracle.uniform(rng, (draws, 1), dtype), rows, axis=1) for _ in range(3)]
    rhs = oracle.uniform(rng, (draws, rows), dtype)
    laid = [a if axis == 1 else np.ascontiguousarray(a.T) for a in (*matrix, rhs)]

    x, info = solve_tridiagonal(
        *laid, axis=axis, pivot=True, on_singular="ignore", return_info=True
    )

    assert (info.pivoted, info.repeated) == (draws, 0)
    compared = 0
    for k, mine in enumerate(x if axis == 1 else x.T):
        system = [a[k] for a in (*matrix, rhs)]
        if lapack_error(system) < 10:  # not numerically singular, and without overflow
            assert normwise_error(*system, mine) <= 20
            compared += 1
    assert compared > 0


@pytest.mark.each_value
@pytest.mark.parametrize("rows", [RING_ROWS, RING_ROWS + 1, 300_001])
@pytest.mark.parametrize("diag", [1.999, 1.3, 0.1, -1.3])
def test_a_ring_whose_solutions_oscillate(rng, diag, rows):
    """Without spans a row is carried on, and rounded, from the middle to the ends: 700 eps."""
    rhs = oracle.uniform(rng, (rows,))
    matrix = [np.full(rows, value) for value in (-1.0, diag, -1.0)]

    x = solve_tridiagonal(*matrix, rhs, pivot=True, periodic=True)

    assert ring_error(x, *matrix, rhs) <= 20


@pytest.mark.parametrize("dtype", DTYPES)
def test_rings_of_all_types(rng, dtype):
    *matrix, rhs = systems(rng, 3, RING_ROWS + 511, dtype)
    skewed = [np.full_like(rhs, value) for value in (1.4, 1.2, -1.6)]  # advection-diffusion

    for operands in ((*matrix, rhs), (*skewed, rhs)):
        x = solve_tridiagonal(*operands, pivot=True, periodic=True)

        assert ring_error(x, *operands) <= 20


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("side", "axis"), [(3, 1), (3, 0), (19, 0)])
def test_rings_have_the_same_bits_whatever_lies_beside(rng, side, axis, threads):
    operands = systems(rng, side, RING_ROWS + 5)
    laid = operands if axis == 1 else [np.ascontiguousarray(a.T) for a in operands]

    x = solve_tridiagonal(*laid, axis=axis, pivot=True, periodic=True, threads=threads)

    expected = one_by_one(operands, periodic=True, threads=2)
    np.testing.assert_array_equal(x if axis == 1 else x.T, expected)
    chosen = solve_tridiagonal(*laid, axis=axis, periodic=True, threads=threads)
    np.testing.assert_array_equal(chosen, x)


@pytest.mark.parametrize("place", [0, 1000, RING_ROWS // 2, RING_ROWS - 1])
def test_a_singular_ring_among_others(rng, place):
    operands = systems(rng, 4, RING_ROWS)
    for a in operands[:3]:
        a[2, place] = 0
    out = np.empty_like(operands[3])

    with pytest.raises(SingularSystemError) as caught:
        solve_tridiagonal(*operands, pivot=True, periodic=True, out=out)

    assert list(caught.value.systems) == [2]
    others = [0, 1, 3]
    expected = one_by_one([a[others] for a in operands], periodic=True)
    np.testing.assert_array_equal(out[others], expected)


def lapack_error(system):
    """Return the normwise error of LAPACK's solution, or inf if it has none."""
    try:
        return normwise_error(*system, oracle.gtsv(*system))
    except np.linalg.LinAlgError:
        return np.inf


@np.errstate(all="ignore")
def normwise_error(lower, diag, upper, rhs, x):
    """Return max |A x - b| / max (|A| |x| + |b|), in eps of x."""
    below, above = lower * np.roll(x, 1), upper * np.roll(x, -1)
    below[0] = above[-1] = 0
    products = (below, diag * x, above)
    scale = (sum(map(np.abs, products)) + np.abs(rhs)).max()
    error = np.abs(sum(products) - rhs).max() / scale / oracle.eps(x.dtype)
    return error if np.isfinite(error) else np.inf

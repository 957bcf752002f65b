"""The 20-matrix accuracy set of Klein and Strzodka (2021), against LAPACK on the same draw."""

import functools

import numpy as np
import oracle
import pytest

ROWS = 512
EPS = oracle.eps(np.float64)
DRAWS = [pytest.param(3, id="3"), pytest.param(100, id="100", marks=pytest.mark.slow)]

# Diagonally dominant at n = 512, so that no pivoting is needed. Rows of 13 are just dominant, and
# it is numerically singular.
DOMINANT = (2, 3, 6, 7, 13, 17, 18, 19, 20)


drawn = functools.lru_cache(64)(oracle.accuracy_draw)  # a matrix of given singular values: 0.2 s


def stacked(number, rows, draws):
    """Return lower, diag, upper, rhs, exact of all draws, each of shape (draws, rows)."""
    return [np.stack(a) for a in zip(*(drawn(number, rows, k) for k in range(draws)), strict=True)]


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize(
    "number",  # of matrices of given singular values, which take long, one kind
    [pytest.param(k, marks=[pytest.mark.slow] * (k in (8, 9, 11))) for k in oracle.ACCURACY_SET],
)
def test_pivoted_forward_error_is_that_of_lapack(solve, number, draws):
    *system, exact = stacked(number, ROWS, draws)

    x = solve(*system, pivot=True, on_singular="ignore")

    for k in range(draws):
        forms = oracle.gtsv_forms(*(a[k] for a in system))
        lapack = max(oracle.forward_error(form, exact[k]) for form in forms)
        ours = oracle.forward_error(x[k], exact[k])
        assert ours <= 10 * max(lapack, EPS), f"draw {k}"


def check_backward_error(system, x, few=10):
    """Few eps, or as LAPACK on the same draw: partial pivoting alone promises no more."""
    error = oracle.backward_error(*system, x)
    if error > few * oracle.eps(x.dtype):
        forms = oracle.gtsv_forms(*system)
        assert error <= 4 * max(oracle.backward_error(*system, form) for form in forms)


@pytest.mark.parametrize("draws", DRAWS)
@pytest.mark.parametrize("number", oracle.ACCURACY_SET)
def test_pivoted_backward_error_is_a_few_eps(solve, number, draws):
    *system, _ = stacked(number, ROWS, draws)

    x = solve(*system, pivot=True)

    errors = [oracle.backward_error(*draw) for draw in zip(*system, x, strict=True)]
    assert np.median(errors) <= 10 * EPS
    for draw in zip(*system, x, strict=True):
        check_backward_error(draw[:4], draw[4])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("rows", [*range(ROWS - 8, ROWS + 9), *range(2, 36)])
def test_pivoted_backward_error_at_every_remainder(solve, rows, axis):
    left_out = {8, 9, 10, 11} if rows % 2 == 0 else {8, 9, 10, 11, 15}  # 15 is singular if odd
    numbers = [k for k in oracle.ACCURACY_SET if k not in left_out]
    drawn = [oracle.accuracy_draw(number, rows, 0)[:4] for number in numbers]
    system = [np.stack(a, axis=1 - axis) for a in zip(*drawn, strict=True)]

    x = solve(*system, pivot=True, axis=axis)

    moved = [np.moveaxis(a, axis, -1) for a in (*system, x)]
    for draw in zip(*moved, strict=True):
        check_backward_error(draw[:4], draw[4])


@pytest.mark.parametrize("method", oracle.UNPIVOTED)
@pytest.mark.parametrize("number", [k for k in DOMINANT if k not in oracle.NUMERICALLY_SINGULAR])
def test_methods_without_pivoting_on_dominant_matrices(solve, number, method):
    *system, _ = stacked(number, ROWS, 3)

    x = solve(*system, method=method)

    assert oracle.backward_error(*system, x) <= 10 * EPS


def test_auto_pivots_exactly_the_matrices_that_are_not_dominant(solve):
    for number in oracle.ACCURACY_SET:
        *system, _ = stacked(number, ROWS, 2)
        _, info = solve(*system, return_info=True)
        assert info.pivoted == (0 if number in DOMINANT else 2), number


def test_tiny_diagonal_in_single_precision(solve):
    *system, exact = (a.astype(np.float32) for a in oracle.accuracy_draw(16, ROWS, 0))
    system[3] = oracle.multiply(*(a.astype(float) for a in (*system[:3], exact))).astype(np.float32)

    assert oracle.forward_error(solve(*system, pivot=True), exact) < 2e-6
    assert oracle.forward_error(solve(*system, method="thomas"), exact) > 1e-2


@pytest.mark.each_value
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128])
@pytest.mark.parametrize("number", [1, 5, 6, 7, 14, 16, 17, 18, 19, 20])
def test_other_dtypes_pivot_as_well(solve, number, dtype):
    *system, _ = stacked(number, ROWS, 3)
    phase = 1j if np.issubdtype(dtype, np.complexfloating) else 1
    system = [(a * p).astype(dtype) for a, p in zip(system, (1, phase, -1, phase), strict=True)]

    x = solve(*system, pivot=True)

    # LAPACK's elimination of 16 in single precision multiplies by one throughout and rounds
    # each row by itself; where rows meet in a tree, the rounding of all of them adds up.
    few = np.sqrt(ROWS) if number == 16 or np.iscomplexobj(x) else 10
    for draw in zip(*system, x, strict=True):
        check_backward_error(draw[:4], draw[4], few)

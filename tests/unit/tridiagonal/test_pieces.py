"""Long systems with row exchanges: same bits alone and in a batch that fills the lanes of vectors.

A few systems are cut into pieces, those of a full batch are eliminated in the order of their rows.
Systems whose solutions oscillate or do not decay are cut into spans in both.
"""

import numpy as np
import oracle
import pytest

from pysolvers import solve_tridiagonal

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
BATCH = 16  # systems that fill the lanes
ROWS = 20_011


def constant(diag):
    """Return a maker of systems with -1, `diag`, -1 in every row."""

    def make(rng, rows, dtype):
        one = np.ones(rows, dtype)
        return -one, dtype(diag) * one, -one, oracle.uniform(rng, rows, dtype)

    return make


def with_oscillations(rng, rows, dtype):
    """Return general systems in whose middle solutions neither grow nor decay."""
    system = oracle.general(rng, (rows,), dtype)
    middle = slice(rows // 4, rows // 4 + 400)
    for a, value in zip(system, (-1, 1.3, -1), strict=False):
        a[middle] = value
    return system


def with_a_bad_pivot(rng, rows, dtype):
    """Return a matrix of which a row in the middle is zero."""
    system = oracle.general(rng, (rows,), dtype)
    for a in system[:3]:
        a[rows // 2] = 0
    return system


def uncoupled(rng, rows, dtype):
    """Return general systems with zeros in all three diagonals."""
    system = oracle.general(rng, (rows,), dtype)
    for k, a in enumerate(system[:3]):
        a[k * 7 :: 37] = 0
    return system


KINDS = {
    "general": lambda rng, rows, dtype: oracle.general(rng, (rows,), dtype),
    "dominant": lambda rng, rows, dtype: oracle.dominant(rng, (rows,), dtype),
    "slow decay": constant(2.01),
    "no decay": constant(2),
    "oscillations": constant(1.3),
    "oscillations in the middle": with_oscillations,
    "bad pivot": with_a_bad_pivot,
    "uncoupled": uncoupled,
}


def in_a_full_batch(system, **options):
    """Return the solution of a system that is one of a full batch."""
    batch = [np.broadcast_to(a, (BATCH, len(a))) for a in system[:3]]
    batch = [a * np.ones((BATCH, 1), a.dtype) for a in batch]  # matrices of their own
    rhs = np.repeat(system[3][None], BATCH, axis=0)
    return solve_tridiagonal(*batch, rhs, pivot=True, **options)[0]


@pytest.mark.each_value
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_same_bits_as_in_a_full_batch(rng, dtype, kind):
    for rows in (ROWS, 1 << 13):
        system = KINDS[kind](rng, rows, dtype)
        expected = in_a_full_batch(system, on_singular="ignore")

        for threads in (1, 2):
            x = solve_tridiagonal(*system, pivot=True, threads=threads, on_singular="ignore")
            np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("rows", [4096, 4097, 8191, 16_384, 16_399, 100_003])
def test_same_bits_for_any_length(rng, rows):
    system = oracle.general(rng, (rows,))

    x = solve_tridiagonal(*system, pivot=True)

    np.testing.assert_array_equal(x, in_a_full_batch(system))


@pytest.mark.each_value
@pytest.mark.parametrize("kind", ["general", "no decay", "oscillations"])
@pytest.mark.parametrize("rows", [4097, ROWS, 200_003])
@pytest.mark.parametrize("dtype", DTYPES)
def test_backward_error_is_that_of_lapack(rng, dtype, rows, kind):
    system = KINDS[kind](rng, rows, dtype)

    x = solve_tridiagonal(*system, pivot=True)

    lapack = max(oracle.backward_error(*system, form) for form in oracle.gtsv_forms(*system))
    assert oracle.backward_error(*system, x) <= 4 * lapack


@pytest.mark.each_value
@pytest.mark.parametrize(
    "kinds",
    [["general", "no decay", "dominant", "oscillations", "slow decay"] * 4, ["oscillations"] * 19],
    ids=["all", "in spans"],
)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_batch_of_many_kinds(rng, dtype, axis, kinds):
    alone = [KINDS[kind](rng, ROWS // 2, dtype) for kind in kinds]
    batch = [np.stack(a, axis=1 - axis) for a in zip(*alone, strict=True)]
    in_place = batch[3].copy()
    options = {"axis": axis, "pivot": True, "return_info": True}

    x, info = solve_tridiagonal(*batch, **options)
    solve_tridiagonal(*batch[:3], in_place, out=in_place, axis=axis, pivot=True, threads=1)

    assert info.pivoted == len(kinds)
    np.testing.assert_array_equal(in_place, x)
    for k, system in enumerate(alone):
        np.testing.assert_array_equal(
            x.take(k, axis=1 - axis), solve_tridiagonal(*system, pivot=True)
        )


@pytest.mark.parametrize("diag", [2, 1.3])
def test_right_hand_sides_of_one_matrix(rng, diag):
    *matrix, _ = constant(diag)(rng, 5000, np.float64)
    rhs = oracle.uniform(rng, (40, 5000))

    x = solve_tridiagonal(*matrix, rhs, pivot=True)

    for k in (0, 17, 39):
        np.testing.assert_array_equal(x[k], solve_tridiagonal(*matrix, rhs[k], pivot=True))


@pytest.mark.parametrize(
    "kind", ["general", "slow decay", "no decay", "oscillations in the middle"]
)
def test_layouts(rng, kind):
    lower, diag, upper, rhs = KINDS[kind](rng, ROWS, np.float64)
    lower[0] = upper[-1] = np.nan  # corners of a system that is not periodic are not read
    expected = in_a_full_batch((lower, diag, upper, rhs))

    short = solve_tridiagonal(lower[1:], diag, upper[:-1], rhs, pivot=True)
    apart = solve_tridiagonal(
        *(np.repeat(a, 3)[::3] for a in (lower, diag, upper, rhs)), pivot=True
    )
    stacked = [np.stack([a, a], axis=1) for a in (lower, diag, upper, rhs)]
    columns = solve_tridiagonal(*stacked, axis=0, pivot=True)
    in_place = rhs.copy()
    solve_tridiagonal(lower, diag, upper, in_place, out=in_place, pivot=True)

    for x in (short, apart, columns[:, 0], columns[:, 1], in_place):
        np.testing.assert_array_equal(x, expected)


def test_a_system_that_auto_solves_with_row_exchanges(rng):
    system = oracle.general(rng, (ROWS,))

    x, info = solve_tridiagonal(*system, return_info=True)

    assert info.pivoted == 1
    np.testing.assert_array_equal(x, in_a_full_batch(system))


def test_info_tells_the_row_of_a_bad_pivot(rng):
    system = with_a_bad_pivot(rng, ROWS, np.float64)

    options = {"pivot": True, "return_info": True, "on_singular": "ignore"}
    _, alone = solve_tridiagonal(*system, **options)
    batch = [np.repeat(a[None], BATCH, axis=0) for a in system]
    _, among = solve_tridiagonal(*batch, **options)

    assert alone.singular_rows.tolist() == among.singular_rows[:1].tolist()
    assert alone.singular_rows[0] >= ROWS // 2


def test_two_systems_that_are_divided_into_spans_one_after_the_other(rng):
    # The eliminated rows of one of them are kept, those of both are too many.
    rhs = oracle.uniform(rng, (2, 70000), np.complex128)
    side, diag = np.full_like(rhs, -1), np.full_like(rhs, 2)

    x = solve_tridiagonal(side, diag, side, rhs, pivot=True)

    for number in range(2):
        system = side[number], diag[number], side[number], rhs[number]
        np.testing.assert_array_equal(x[number], solve_tridiagonal(*system, pivot=True))

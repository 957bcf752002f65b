"""When rows are exchanged, and that the info says so."""

import numpy as np
import oracle
import pytest


def mixed(rng, shape, dtype=np.float64):
    """Return systems of which every third needs row exchanges, and the mask of these."""
    system = oracle.dominant(rng, shape, dtype)
    needs = np.zeros(shape[:-1], bool)
    needs.reshape(-1)[::3] = True
    for a, general in zip(system, oracle.general(rng, shape, dtype), strict=True):
        a[needs] = general[needs]
    return system, needs


@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("axis", [0, 1])
def test_auto_pivots_the_systems_that_need_it(solve, same_but_for_layout, rng, axis, dtype):
    system, needs = mixed(rng, (31, 40), dtype)
    moved = [np.ascontiguousarray(np.moveaxis(a, -1, axis)) for a in system]

    x, info = solve(*moved, axis=axis, return_info=True)

    assert info.pivoted == needs.sum()
    x = np.moveaxis(x, axis, -1)
    assert oracle.backward_error(*system, x) <= 200 * oracle.eps(dtype)
    plain = solve(*(a[~needs] for a in system))
    same_but_for_layout(x[~needs], plain, neighbours=axis == 0)
    np.testing.assert_array_equal(x[needs], solve(*(a[needs] for a in system), pivot=True))


def test_forced_pivoting_counts_every_system(solve, rng):
    system = oracle.dominant(rng, (31, 40))

    for options in ({"pivot": True}, {"method": "pivoted"}, {"pivot": True, "method": "pivoted"}):
        _, info = solve(*system, **options, return_info=True)
        assert (info.method, info.pivoted) == ("pivoted", 31)


def test_forbidden_pivoting_counts_none(solve, rng):
    system = oracle.general(rng, (31, 40))

    _, info = solve(*system, pivot=False, on_singular="ignore", return_info=True)

    assert info.pivoted == 0
    assert info.method != "pivoted"


@pytest.mark.parametrize("method", oracle.UNPIVOTED)
def test_explicit_methods_do_not_pivot(solve, rng, method):
    system = oracle.general(rng, (31, 40))

    for pivot in (None, False):
        _, info = solve(*system, method=method, pivot=pivot, on_singular="ignore", return_info=True)
        assert (info.method, info.pivoted) == (method, 0)


@pytest.mark.parametrize("method", oracle.UNPIVOTED)
def test_pivoting_of_another_method_is_refused(solve, rng, method):
    with pytest.raises(ValueError, match=f"pivot.*{method}|{method}.*pivot"):
        solve(*oracle.dominant(rng, (9,)), method=method, pivot=True)


def test_pivoted_without_pivoting_is_refused(solve, rng):
    with pytest.raises(ValueError, match="pivot"):
        solve(*oracle.dominant(rng, (9,)), method="pivoted", pivot=False)


def test_rows_that_are_just_dominant_are_not_pivoted(solve, rng):
    rhs = oracle.uniform(rng, (5, 30))

    _, info = solve(-1.0, 2.0, -1.0, rhs, return_info=True)

    assert info.pivoted == 0


@pytest.mark.parametrize("row", [0, 14, 29])
def test_one_row_that_is_not_dominant_makes_its_system_pivot(solve, rng, row):
    lower, diag, upper, rhs = oracle.dominant(rng, (5, 30))
    diag[3, row] = 1e-3

    _, info = solve(lower, diag, upper, rhs, return_info=True)

    assert info.pivoted == 1


def test_ends_do_not_count_as_couplings_unless_periodic(solve, rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (5, 30))
    lower[1, 0] = upper[2, -1] = 100
    lower[3, 0] = upper[3, -1] = np.nan

    _, info = solve(lower, diag, upper, rhs, return_info=True)
    assert info.pivoted == 0

    lower[3, 0] = upper[3, -1] = 0
    _, info = solve(lower, diag, upper, rhs, periodic=True, return_info=True)
    assert info.pivoted == 2


def test_complex_rows_are_dominant_by_their_modulus(solve, rng):
    rhs = oracle.uniform(rng, (4, 9), np.complex128)

    _, info = solve(0.5 + 0.5j, 1.5, 0.5 - 0.5j, rhs, return_info=True)
    assert info.pivoted == 0

    _, info = solve(0.5 + 0.5j, 1 + 0.9j, 0.5 - 0.5j, rhs, return_info=True)
    assert info.pivoted == 4


@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_rows_are_compared_however_small_they_are(solve, rng, dtype):
    """The squares of a complex number's parts may be 0 where its modulus is not."""
    lower, diag, upper, rhs = oracle.general(rng, (6, 30), dtype)
    size = np.finfo(dtype).tiny ** 0.7

    x, info = solve(*(size * a for a in (lower, diag, upper, rhs)), return_info=True)

    assert info.pivoted == solve(lower, diag, upper, rhs, return_info=True)[1].pivoted == 6
    assert oracle.backward_error(lower, diag, upper, rhs, x) <= 200 * oracle.eps(dtype)


@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_zero_diagonal_is_no_obstacle(solve, rng, dtype):
    for rows in (2, 4, 30, 64, 130):
        lower, _, upper, rhs = oracle.general(rng, (5, rows), dtype)
        diag = np.zeros((5, rows), dtype)

        x, info = solve(lower, diag, upper, rhs, return_info=True)

        assert info.pivoted == 5
        assert oracle.backward_error(lower, diag, upper, rhs, x) <= 200 * oracle.eps(dtype)


def test_shared_matrix_that_needs_pivoting(solve, rng):
    lower, diag, upper, _ = oracle.general(rng, (33,))
    rhs = oracle.uniform(rng, (9, 33))

    x, info = solve(lower, diag, upper, rhs, return_info=True)

    assert info.pivoted == 9
    assert oracle.backward_error(lower, diag, upper, rhs, x) <= 200 * oracle.eps(float)


def test_in_place_pivoting_of_a_mixed_batch(solve, rng):
    (lower, diag, upper, rhs), _ = mixed(rng, (50, 33))
    expected = solve(lower, diag, upper, rhs)

    solve(lower, diag, upper, rhs, out=rhs)

    np.testing.assert_array_equal(rhs, expected)

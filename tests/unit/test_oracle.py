"""The oracle against hand-made answers and published figures."""

import growth_families
import numpy as np
import oracle
import pytest


def test_dense_matrix_holds_the_three_diagonals():
    matrix = oracle.dense(np.array([9, 1, 2]), np.array([3, 4, 5]), np.array([6, 7, 9]))

    np.testing.assert_array_equal(matrix, [[3, 6, 0], [1, 4, 7], [0, 2, 5]])


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (1, [[111]]),
        (2, [[10, 101], [101, 10]]),
        (3, [[10, 100, 1], [1, 10, 100], [100, 1, 10]]),
    ],
)
def test_periodic_couplings_meet_where_the_ring_is_short(rows, expected):
    lower, diag, upper = np.ones(rows), np.full(rows, 10), np.full(rows, 100)

    np.testing.assert_array_equal(oracle.dense(lower, diag, upper, periodic=True), expected)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 3, 8])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_product_is_that_of_the_dense_matrix(rng, rows, dtype, periodic):
    lower, diag, upper, x = oracle.general(rng, (3, rows), dtype)

    product = oracle.multiply(lower, diag, upper, x, periodic=periodic)

    matrix = oracle.dense(lower, diag, upper, periodic=periodic)
    np.testing.assert_allclose(product, (matrix @ x[..., None])[..., 0], rtol=0, atol=1e-5)


def test_backward_error_sees_one_wrong_digit(rng):
    *matrix, exact = oracle.dominant(rng, (2, 7))
    rhs = oracle.multiply(*matrix, exact)
    assert oracle.backward_error(*matrix, rhs, exact) < 1e-15

    exact[1, 6] *= 1 + 1e-9

    assert 1e-11 < oracle.backward_error(*matrix, rhs, exact) < 1e-8


def test_backward_error_of_nan_is_not_small(rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (7,))
    assert not oracle.backward_error(lower, diag, upper, rhs, np.full(7, np.nan)) <= 1


def test_backward_error_of_zero_is_zero():
    zero = np.zeros(3)
    assert oracle.backward_error(zero, np.ones(3), zero, zero, zero) == 0


def test_dominant_rows_are_dominant(rng):
    for dtype in oracle.DTYPES:
        lower, diag, upper, _ = oracle.dominant(rng, (50, 9), dtype)
        assert np.all(np.abs(diag) > np.abs(lower) + np.abs(upper))


@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_lapack_and_dense_solutions_agree(rng, dtype):
    system = oracle.dominant(rng, (9,), dtype)

    x = oracle.gtsv(*system)

    assert x.dtype == dtype
    np.testing.assert_allclose(x, oracle.solve(*system), rtol=50 * oracle.eps(dtype))


def test_lapack_names_the_row_of_a_zero_pivot():
    with pytest.raises(np.linalg.LinAlgError, match="row 2"):
        oracle.gtsv(np.zeros(4), np.array([1.0, 1, 0, 1]), np.zeros(4), np.ones(4))


@pytest.mark.parametrize(
    ("number", "rows_of_matrix"),
    [
        (3, [[-5, 2, 0], [1 / 2, -7, 3], [0, 1 / 3, -9]]),
        (7, [[4 / 3, -2 / 3, 0], [-2 / 3, 5 / 3, -2 / 3], [0, -2 / 3, 4 / 3]]),
        (18, [[4, -1, 0], [-1, 4, -1], [0, -1, 4]]),
        (19, [[4, 1, 0], [-1, 4, 1], [0, -1, 4]]),
    ],
)
def test_fixed_matrices_of_the_set(number, rows_of_matrix, rng):
    matrix = oracle.dense(*oracle.accuracy_matrix(number, 3, rng))

    np.testing.assert_allclose(matrix, rows_of_matrix, rtol=1e-15)


def test_dorr_is_an_m_matrix_with_zero_row_sums_inside(rng):
    lower, diag, upper = oracle.accuracy_matrix(13, 9, rng)

    assert np.all(lower < 0)
    assert np.all(upper < 0)
    assert np.all(diag > 0)
    np.testing.assert_allclose(lower + diag + upper, 0, atol=1e-12)
    np.testing.assert_allclose(lower, upper[::-1])  # the flow turns at the centre


@pytest.mark.parametrize(("number", "large"), [(8, 23), (9, 1), (10, 1), (11, 23)])
def test_randsvd_has_its_singular_values(number, large, rng):
    values = np.linalg.svd(oracle.dense(*oracle.accuracy_matrix(number, 24, rng)), compute_uv=False)

    np.testing.assert_allclose(values[0], 1, rtol=1e-12)
    assert values[-1] < 1e-14
    assert np.sum(values > 1 / 24) >= large


def test_same_seed_same_draw_and_other_seed_other_draw():
    first, repeated, other = (oracle.accuracy_draw(1, 16, seed) for seed in (0, 0, 1))

    np.testing.assert_array_equal(first, repeated)
    assert not np.array_equal(first, other)


def test_unknown_matrix_of_the_set_is_refused(rng):
    with pytest.raises(ValueError, match="1 to 20, got 21"):
        oracle.accuracy_matrix(21, 8, rng)


@pytest.mark.parametrize(
    ("number", "published"), [(3, 1.3e-16), (6, 9.6e-17), (16, 1.7e-15), (17, 1.1e-16)]
)
def test_lapack_reproduces_the_published_medians(number, published):
    errors = []
    for seed in range(9):
        *system, exact = oracle.accuracy_draw(number, 512, seed)
        errors.append(oracle.forward_error(oracle.gtsv(*system), exact))

    assert published / 3 < np.median(errors) < published * 3


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("rows", [3, 4, 50])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_condition_is_that_of_the_dense_matrix(rng, dtype, rows, periodic):
    matrix = oracle.general(rng, (rows,), dtype)[:3]
    exact = np.linalg.cond(oracle.dense(*matrix, periodic=periodic).astype(complex), 1)

    assert exact / 3 <= oracle.condition(*matrix, periodic=periodic) <= 1.001 * exact


def test_condition_of_a_periodic_matrix_whose_rows_differ_in_size():
    """Its condition number is above 1e9700; SuperLU with ordered columns gives 6e11."""
    lower, diag, upper, _ = (
        a[0] for a in growth_families.draw("scaled", "complex128", 3413, 8, [641750787])
    )
    lower = np.full_like(diag, lower[0])

    assert oracle.condition(lower, diag, upper, periodic=True) > 1e16


def test_condition_of_a_matrix_whose_inverse_overflows():
    """Its smallest pivot is 2e-307; the estimate from solutions that are NaN was 2436."""
    lower, diag, upper, _ = growth_families.draw("scaled", "complex64", 1651, 4, [2758082544])

    assert oracle.condition(lower[1], diag[1], upper[0], periodic=True) > 1e16


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 40, 41])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_band_elimination_solves_periodic_systems(rng, dtype, rows):
    lower, diag, upper, rhs = oracle.dominant(rng, (rows,), dtype)
    exact = oracle.solve(lower, diag * 4, upper, rhs, periodic=True)
    forms = list(oracle.periodic_forms(lower, diag * 4, upper, rhs))

    assert len(forms) == 12
    assert sorted(oracle.folded_order(rows)) == list(range(rows))
    for x in forms:
        assert oracle.forward_error(x, exact) <= 10 * oracle.eps(dtype)


@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("rows", [1, 2, 3, 40])
def test_backward_errors_see_one_wrong_digit(rng, rows, dtype):
    system = oracle.general(rng, (5, rows), dtype)
    x = oracle.gtsv_batch(*system)
    small = (*oracle.backward_errors(*system, x), oracle.matrix_backward_error(*system, x))
    x[3, rows // 2] *= 1.01
    large = (*oracle.backward_errors(*system, x), oracle.matrix_backward_error(*system, x))

    for before, after in zip(small, large, strict=True):
        assert np.all(before <= 50 * oracle.eps(dtype))
        assert after[3] >= 1e-6
        np.testing.assert_array_equal(np.delete(after, 3), np.delete(before, 3))


@pytest.mark.parametrize("dtype", oracle.DTYPES)
@pytest.mark.parametrize("family", growth_families.FAMILIES)
def test_families_are_finite_and_reproducible(family, dtype):
    for rows in (1, 2, 3, 200):
        system = growth_families.draw(family, dtype, rows, 7, [1, 2])
        repeated = growth_families.draw(family, dtype, rows, 7, [1, 2])

        for a, b in zip(system, repeated, strict=True):
            assert a.shape == (7, rows) and a.dtype == dtype and np.all(np.isfinite(a))
            np.testing.assert_array_equal(a, b)
        if family in growth_families.CONSTANT:
            assert all(np.all(a == a[:, :1]) for a in system[:3])

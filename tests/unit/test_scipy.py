"""`pysolvers.scipy`: the answers of SciPy, for every number of diagonals, dtype and shape."""

import numpy as np
import pytest
import scipy.linalg

import pysolvers
from pysolvers.scipy import cho_solve_banded, from_banded, solve_banded, solveh_banded

DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def random(rng, shape, dtype):
    a = rng.uniform(-1, 1, shape)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.uniform(-1, 1, shape)
    return a.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("below", [0, 1, 2])
@pytest.mark.parametrize("above", [0, 1, 2])
def test_general_bands(below, above, dtype):
    rng = np.random.default_rng(3 * below + above)
    eps = np.finfo(dtype).eps
    for rows in (max(below, above) + 1, 7, 8):
        ab = random(rng, (3, below + above + 1, rows), dtype)
        ab[:, above] += 3  # not dominant, well-conditioned
        for shape in ((rows,), (rows, 2), (3, rows, 2)):
            b = random(rng, shape, dtype)
            kept = ab.copy(), b.copy()
            x = solve_banded((below, above), ab, b)
            assert x.dtype == dtype
            for k in range(3):
                own = b if b.ndim < 3 else b[k]
                expected = scipy.linalg.solve_banded((below, above), ab[k], own)
                np.testing.assert_allclose(x[k], expected, rtol=2e3 * eps, atol=500 * eps)
                one = solve_banded((below, above), ab[k], own)
                assert one.shape == expected.shape
            np.testing.assert_array_equal(ab, kept[0])
            np.testing.assert_array_equal(b, kept[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_positive_definite_bands(count, lower, dtype):
    rng = np.random.default_rng(count)
    eps = np.finfo(dtype).eps
    for rows in (count + 1, 7, 8):
        ab = random(rng, (3, count + 1, rows), dtype)
        main = 0 if lower else count
        ab[:, main] = np.abs(ab[:, main]) + 6
        for shape in ((rows,), (rows, 2), (3, rows, 2)):
            b = random(rng, shape, dtype)
            x = solveh_banded(ab, b, lower=lower)
            for k in range(3):
                own = b if b.ndim < 3 else b[k]
                expected = scipy.linalg.solveh_banded(ab[k], own, lower=lower)
                np.testing.assert_allclose(x[k], expected, rtol=500 * eps, atol=100 * eps)
        ab[1, main] *= -1
        with pytest.raises(np.linalg.LinAlgError):
            solveh_banded(ab, b, lower=lower)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_solves_with_cholesky_factors(count, lower, dtype):
    rng = np.random.default_rng(count)
    eps = np.finfo(dtype).eps
    for rows in (count + 1, 7, 8):
        ab = random(rng, (3, count + 1, rows), dtype)
        main = 0 if lower else count
        ab[:, main] = np.abs(ab[:, main]) + 4
        cb = np.stack([scipy.linalg.cholesky_banded(one, lower=lower) for one in ab])
        unused = cb.copy()  # entries of the storage that are outside the matrix
        for k in range(1, count + 1):
            outside = slice(rows - k, None) if lower else slice(0, k)
            unused[:, k if lower else count - k, outside] = 7
        for shape in ((rows,), (rows, 2), (3, rows, 2)):
            b = random(rng, shape, dtype)
            kept = unused.copy(), b.copy()
            x = cho_solve_banded((unused, lower), b)
            assert x.dtype == dtype
            for k in range(3):
                own = b if b.ndim < 3 else b[k]
                expected = scipy.linalg.cho_solve_banded((cb[k], lower), own)
                np.testing.assert_allclose(x[k], expected, rtol=100 * eps, atol=20 * eps)
                assert cho_solve_banded((unused[k], lower), own).shape == expected.shape
            np.testing.assert_array_equal(unused, kept[0])
            np.testing.assert_array_equal(b, kept[1])
    assert np.isnan(cho_solve_banded((0 * cb, lower), 0 * b)).all()


def test_factors_of_the_least_definite_matrix():
    """A penalty of condition 1e10: the residual is that of a backward stable solve."""
    rows = 1000
    D = np.diff(np.eye(rows), 2, axis=0)
    A = 1e-1 * np.eye(rows) + 1e8 * D.T @ D
    ab = np.zeros((3, rows))
    for k in range(3):
        ab[2 - k, k:] = np.diag(A, k)
    b = np.sin(np.arange(rows))
    cb = scipy.linalg.cholesky_banded(ab)
    x, expected = cho_solve_banded((cb, False), b), scipy.linalg.cho_solve_banded((cb, False), b)

    def backward(x):
        return abs(A @ x - b).max() / (abs(A).sum(1).max() * abs(x).max())

    assert backward(x) <= max(10 * backward(expected), 4 * np.finfo(float).eps)


def test_diagonals_of_a_storage():
    ab = np.arange(20.0).reshape(5, 4)
    bands = from_banded(ab, (2, 2))
    assert [band.tolist() for band in bands] == [
        [16, 17], [12, 13, 14], [8, 9, 10, 11], [5, 6, 7], [2, 3],
    ]  # fmt: skip
    assert np.shares_memory(bands[0], ab)
    lines = from_banded(ab[:3])
    for own, other in zip(lines, pysolvers.from_banded(ab[:3]), strict=True):
        np.testing.assert_array_equal(own, other)
    assert from_banded(ab[:2], (0, 1))[0].tolist() == [0, 0, 0]


def test_errors():
    ab, b = np.ones((3, 4)), np.ones(4)
    for call, rule in (
        (lambda: solve_banded((3, 0), ab, b), "from 0 to 2 each"),
        (lambda: solve_banded((1, 0), ab, b), r"\(..., l \+ u \+ 1 = 2, n\)"),
        (lambda: solve_banded((1, 1), ab, b[:3]), "b must have 4 rows"),
        (lambda: solve_banded((1, 1), ab * np.nan, b), "infs or NaNs"),
        (lambda: solveh_banded(np.ones((4, 4)), b), "u from 0 to 2"),
        (lambda: cho_solve_banded((np.ones((4, 4)), True), b), "cb must have .* u from 0 to 2"),
        (lambda: cho_solve_banded((ab, True), b[:3]), "b must have 4 rows as cb"),
        (lambda: cho_solve_banded((ab, True), b * np.inf), "infs or NaNs"),
    ):
        with pytest.raises(ValueError, match=rule):
            call()
    with pytest.raises(TypeError, match=r"a pair, got ndarray: write \(cb, lower\)"):
        cho_solve_banded(ab, b)
    with pytest.raises(np.linalg.LinAlgError):
        solve_banded((1, 1), 0 * ab, b)
    assert solve_banded((1, 1), np.ones((0, 3, 4)), b).shape == (0, 4)
    assert cho_solve_banded((np.ones((0, 3, 4)), True), b).shape == (0, 4)

"""Block tridiagonal systems: dense systems, LAPACK, and the identities of factors."""

import copy
import pickle

import numpy as np
import pytest
from oracle import eps
from scipy.linalg import solve_banded

from pysolvers import (
    SingularSystemError,
    factor_block_tridiagonal,
    solve_block_tridiagonal,
)


def dense(lower, diag, upper):
    """Return the matrices, shape (..., n k, n k)."""
    rows, side = diag.shape[-3], diag.shape[-1]
    matrix = np.zeros((*diag.shape[:-3], rows * side, rows * side), diag.dtype)
    for i in range(rows):
        here = slice(i * side, (i + 1) * side)
        matrix[..., here, here] = diag[..., i, :, :]
        if i > 0:
            before = slice((i - 1) * side, i * side)
            matrix[..., here, before] = lower[..., i, :, :]
            matrix[..., before, here] = upper[..., i - 1, :, :]
    return matrix


def blocks(rng, batch, rows, side, dtype=np.float64, diagonal=0.0):
    """Return lower, diag, upper of random blocks."""
    shape = (*batch, rows, side, side)
    lower, diag, upper = (rng.uniform(-1, 1, shape) for _ in range(3))
    return tuple(np.asarray(b, dtype) for b in (lower, diag + diagonal * np.eye(side), upper))


def definite(rng, batch, rows, side, dtype=np.float64):
    """Return lower and diag of symmetric positive definite matrices, L L' with random blocks L."""
    shape = (*batch, rows, side, side)
    own = np.tril(rng.uniform(-1, 1, shape)) + 2 * np.eye(side)
    below = rng.uniform(-1, 1, shape)
    below[..., 0, :, :] = 0
    diag = own @ np.swapaxes(own, -1, -2) + below @ np.swapaxes(below, -1, -2)
    lower = np.zeros(shape)
    lower[..., 1:, :, :] = below[..., 1:, :, :] @ np.swapaxes(own[..., :-1, :, :], -1, -2)
    return np.asarray(lower, dtype), np.asarray(diag, dtype)


def backward_error(matrix, x, rhs):
    """Return the largest normwise backward error of the systems of a batch, in eps."""
    matrix, x, rhs = (np.asarray(a, np.longdouble) for a in (matrix, x, rhs))
    norm = np.abs(matrix).sum(-1).max(-1)
    size = norm * np.abs(x).max(-1) + np.abs(rhs).max(-1)
    residual = np.abs((matrix @ x[..., None])[..., 0] - rhs).max(-1)
    return float((residual / size).max())


def by_lapack(lower, diag, upper, rhs):
    """Solve by `gbsv`."""
    matrix, half = dense(lower, diag, upper), 2 * diag.shape[-1] - 1
    count = matrix.shape[-1]
    half = min(half, count - 1)
    answers = []
    for one, right in zip(matrix.reshape(-1, count, count), rhs.reshape(-1, count), strict=True):
        bands = np.zeros((2 * half + 1, count), one.dtype)
        for offset in range(-half, half + 1):
            line = np.diagonal(one, offset)
            bands[half - offset, max(offset, 0) : count + min(offset, 0)] = line
        answers.append(solve_banded((half, half), bands, right))
    return np.reshape(answers, rhs.shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("side", [2, 3, 4, 5, 8])
def test_systems_of_every_size(side, dtype):
    rng = np.random.default_rng(side)
    for rows in (1, 2, 3, 4, 5, 8, 9, 17):
        for batch in ((), (1,), (3,), (2, 5)):
            for diagonal, pivot in ((4 * side, None), (4 * side, False), (0, None), (0, True)):
                case = blocks(rng, batch, rows, side, dtype, diagonal)
                rhs = np.asarray(rng.uniform(-1, 1, (*batch, rows, side, 2)), dtype)
                x = solve_block_tridiagonal(*case, rhs, pivot=pivot)
                flat = np.moveaxis(x, -1, 0).reshape(2, *batch, rows * side)
                right = np.moveaxis(rhs, -1, 0).reshape(2, *batch, rows * side)
                assert x.dtype == dtype
                assert backward_error(dense(*case), flat, right) <= 8 * side * eps(dtype)


@pytest.mark.parametrize("side", [2, 3, 4, 6])
def test_backward_errors_are_those_of_lapack(side):
    rng = np.random.default_rng(3)
    lower, diag = definite(rng, (40,), 30, side)
    upper = np.zeros_like(lower)
    upper[:, :-1] = np.swapaxes(lower[:, 1:], -1, -2)
    families = [
        (blocks(rng, (40,), 30, side, diagonal=2.2 * side), "general"),
        ((lower, diag, upper), "positive definite"),
    ]
    for case, assume in families:
        rhs = rng.uniform(-1, 1, (40, 30, side, 1))
        matrix, right = dense(*case), rhs.reshape(40, -1)
        x = solve_block_tridiagonal(*case, rhs, assume=assume).reshape(40, -1)
        lapack = backward_error(matrix, by_lapack(*case, rhs[..., 0]).reshape(40, -1), right)
        assert backward_error(matrix, x, right) <= 10 * max(lapack, eps(np.float64))


@pytest.mark.parametrize("side", [2, 3, 4, 5])
@pytest.mark.parametrize("pivot", [False, True])
def test_factors(side, pivot):
    rng = np.random.default_rng(4)
    for rows, batch in ((1, (3,)), (2, ()), (9, (2, 5))):
        case = blocks(rng, batch, rows, side, diagonal=4 * side)
        matrix = dense(*case)
        factor = factor_block_tridiagonal(*case, rows=rows, pivot=pivot)
        rhs = rng.uniform(-1, 1, (3, *batch, rows, side, 2))
        for trans, of in (("N", matrix), ("T", np.swapaxes(matrix, -1, -2))):
            x = factor.solve(rhs, trans=trans)
            right = np.moveaxis(rhs, -1, 0).reshape(2, 3, *batch, rows * side)
            flat = np.moveaxis(x, -1, 0).reshape(right.shape)
            assert backward_error(of, flat, right) <= 8 * side * eps(np.float64)
        assert np.allclose(factor.logdet(), np.linalg.slogdet(matrix)[1], rtol=1e-12, atol=1e-12)
        if factor.pivoted:
            with pytest.raises(ValueError, match="inverse_blocks needs factors of open systems"):
                factor.inverse_blocks()
            continue
        whole = np.linalg.inv(matrix)
        found = dense(*factor.inverse_blocks())
        places = dense(*(np.ones_like(block) for block in case)) != 0
        assert np.allclose(found, np.where(places, whole, 0), rtol=1e-12, atol=1e-13)


def test_positive_definite_matrices_by_one_half():
    rng = np.random.default_rng(5)
    lower, diag = definite(rng, (7,), 12, 3)
    upper = np.swapaxes(lower[:, 1:], -1, -2)
    rhs = rng.uniform(-1, 1, (7, 12, 3, 1))
    options = {"assume": "positive definite"}
    x = solve_block_tridiagonal(lower, diag, None, rhs, **options)

    assert (x == solve_block_tridiagonal(None, diag, upper, rhs, **options)).all()
    assert (x == solve_block_tridiagonal(lower[:, 1:], diag, upper, rhs, **options)).all()
    factor = factor_block_tridiagonal(lower, diag, None, **options)
    matrix = dense(lower, diag, np.concatenate((upper, 0 * upper[:, :1]), 1))
    assert np.allclose(factor.logdet(), np.linalg.slogdet(matrix)[1], rtol=1e-12)
    with pytest.raises(ValueError, match="pivot=True contradicts"):
        solve_block_tridiagonal(lower, diag, None, rhs, pivot=True, **options)
    with pytest.raises(ValueError, match="upper is None: pass its blocks"):
        solve_block_tridiagonal(lower, diag, None, rhs)
    diag[2, 0] *= -1  # three negative eigenvalues
    with pytest.raises(SingularSystemError):
        factor_block_tridiagonal(0 * lower, diag, None, **options).logdet()


def test_axes_strides_and_shared_blocks():
    rng = np.random.default_rng(6)
    lower, diag, upper = blocks(rng, (4, 6), 9, 3, diagonal=12)
    rhs = rng.uniform(-1, 1, (4, 6, 9, 3, 2))
    x = solve_block_tridiagonal(lower, diag, upper, rhs)

    for axis in (0, 1, 2):
        case = [np.moveaxis(a, 2, axis) for a in (lower, diag, upper, rhs)]
        for arrays in (case, [a.copy() for a in case], [np.asfortranarray(a) for a in case]):
            moved = solve_block_tridiagonal(*arrays, axis=axis)
            assert (np.moveaxis(moved, axis, 2) == x).all()
    turned = [a[:, ::-1, ::-1] for a in (upper, diag, lower, rhs)]
    back = solve_block_tridiagonal(*turned)[:, ::-1, ::-1]
    assert np.allclose(back, x, rtol=1e-12, atol=1e-13)
    one = np.eye(3)
    shared = solve_block_tridiagonal(-one, 5 * one, -one, rhs)
    wide = [np.broadcast_to(a, (9, 3, 3)) for a in (-one, 5 * one, -one)]
    assert (shared == solve_block_tridiagonal(*wide, rhs)).all()
    out, kept = np.empty_like(rhs), rhs.copy()
    assert solve_block_tridiagonal(lower, diag, upper, rhs, out=out) is out
    assert (rhs == kept).all()
    assert solve_block_tridiagonal(lower, diag, upper, rhs, out=rhs) is rhs
    assert (rhs == x).all()
    assert solve_block_tridiagonal(-one, one, one, np.zeros((0, 5, 3, 1))).shape == (0, 5, 3, 1)


def test_bits_depend_on_the_system_alone():
    rng = np.random.default_rng(7)
    case = blocks(rng, (50,), 40, 2, diagonal=3)
    case[1][::3] -= 3 * np.eye(2)  # with row exchanges
    rhs = rng.uniform(-1, 1, (50, 40, 2, 1))
    x = solve_block_tridiagonal(*case, rhs, threads=1)

    assert (x == solve_block_tridiagonal(*case, rhs, threads=2)).all()
    for k in (0, 1, 49):
        assert (x[k] == solve_block_tridiagonal(*(a[k] for a in (*case, rhs)))).all()


@pytest.mark.parametrize("side", [2, 3, 5])
def test_complex_blocks(side):
    rng = np.random.default_rng(8)
    real, imag = (blocks(rng, (4,), 7, side, diagonal=4 * side) for _ in range(2))
    case = [a + 1j * b for a, b in zip(real, imag, strict=True)]
    rhs = rng.uniform(-1, 1, (4, 7, side, 2)) + 1j * rng.uniform(-1, 1, (4, 7, side, 2))

    for matrices in (case, real):
        x = solve_block_tridiagonal(*matrices, rhs)
        matrix = dense(*(np.asarray(m, complex) for m in matrices))
        wanted = np.linalg.solve(matrix, rhs.reshape(4, -1, 2))
        assert np.allclose(x.reshape(4, -1, 2), wanted, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("side", [2, 3, 20])
def test_parts_of_complex_right_hand_sides_stay_apart(side, periodic):
    rng = np.random.default_rng(9)
    case = blocks(rng, (3,), 7, side, diagonal=4 * side)
    rhs = rng.uniform(-1, 1, (3, 7, side, 2)) * (1 + 2j)
    rhs.imag[1, 3] = np.inf
    options = {"periodic": periodic}
    for x in (
        solve_block_tridiagonal(*case, rhs, **options),
        factor_block_tridiagonal(*case, **options).solve(rhs),
    ):
        known = solve_block_tridiagonal(*case, rhs.real, **options)
        np.testing.assert_allclose(x.real, known, rtol=1e-11)
        np.testing.assert_allclose(x.imag[[0, 2]], 2 * known[[0, 2]], rtol=1e-11)
        assert not np.isfinite(x.imag[1]).all()


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("factors", [(1, 1j), (1j, 1)])
def test_other_complex_systems_are_valid_after_an_error(factors, periodic):
    rng = np.random.default_rng(10)
    case = [factors[0] * block for block in blocks(rng, (3,), 7, 2, diagonal=8)]
    for block in case:
        block[1] = 0
    rhs = factors[1] * rng.uniform(-1, 1, (3, 7, 2, 2)) + 0j
    out = np.full_like(rhs, np.nan)
    with pytest.raises(SingularSystemError):
        solve_block_tridiagonal(*case, rhs, periodic=periodic, out=out)
    good = [0, 2]
    own = solve_block_tridiagonal(*(block[good] for block in case), rhs[good], periodic=periodic)
    np.testing.assert_allclose(out[good], own, rtol=1e-12)


def around(lower, diag, upper):
    """Return periodic matrices, shape (..., n k, n k)."""
    matrix, side = dense(lower, diag, upper), diag.shape[-1]
    matrix[..., :side, -side:] += lower[..., 0, :, :]
    matrix[..., -side:, :side] += upper[..., -1, :, :]
    return matrix


@pytest.mark.parametrize("pivot", [None, False, True])
@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("periodic", [False, True])
def test_complex_and_periodic_matrices(periodic, is_complex, pivot):
    rng = np.random.default_rng(18)
    for side, rows in ((2, 3), (2, 16), (3, 7), (5, 4)):
        diagonal = 0 if pivot else 4 * side
        case, rhs = (
            blocks(rng, (3,), rows, side, diagonal=diagonal),
            rng.uniform(-1, 1, (3, rows, side, 2)),
        )
        if is_complex:
            imag = blocks(rng, (3,), rows, side)
            case, rhs = [a + 1j * b for a, b in zip(case, imag, strict=True)], rhs * (1 - 2j)
        matrix = (around if periodic else dense)(*case)
        options = {"periodic": periodic, "pivot": pivot}
        factor = factor_block_tridiagonal(*case, **options)
        assert np.allclose(factor.logdet(), np.linalg.slogdet(matrix)[1], rtol=1e-11)
        adjoint = np.swapaxes(matrix.conj(), -1, -2)
        for trans, one in (("N", matrix), ("T", adjoint.conj()), ("H", adjoint)):
            x = factor.solve(rhs, trans=trans).reshape(3, -1, 2)
            residual = np.abs(one @ x - rhs.reshape(3, -1, 2)).max()
            # a border whose columns grow by less than 32 amplifies errors
            most = 300 if pivot and periodic else 30
            size = np.abs(one).sum(-1).max() * np.abs(x).max()
            assert residual <= most * np.finfo(float).eps * size
        x = solve_block_tridiagonal(*case, rhs, **options)
        assert np.allclose(x, factor.solve(rhs), rtol=1e-9)
        moved = solve_block_tridiagonal(
            *(np.moveaxis(a, 1, 0) for a in (*case, rhs)), axis=0, **options
        )
        assert np.allclose(np.moveaxis(moved, 0, 1), x, rtol=1e-9)


@pytest.mark.parametrize("factor", [1, 1j])
def test_periodic_matrices_whose_open_part_is_singular(factor):
    rng = np.random.default_rng(23)
    for rows in (6, 10):  # of the rows 1, 0, 1 all but the last one are singular
        for change in (0.0, 1e-6):
            one = np.ones((2, rows, 1, 1)) * np.array([[1, 2], [0, 1]]) * factor
            lower, diag, upper = (
                one
                + change * rng.standard_normal(one.shape) * (np.arange(2) > 0)[:, None, None, None]
                for _ in range(3)
            )
            diag = diag - one
            rhs = rng.standard_normal((2, rows, 2, 3))
            matrix = around(lower, diag, upper)
            sides = rhs.reshape(2, -1, 3)

            x = solve_block_tridiagonal(lower, diag, upper, rhs, periodic=True).reshape(sides.shape)

            size = np.abs(matrix).sum(-1).max() * np.abs(x).max() + np.abs(sides).max()
            assert np.abs(matrix @ x - sides).max() < 30 * eps(x.dtype) * size
            same = rhs.astype(x.dtype)
            solve_block_tridiagonal(lower, diag, upper, same, periodic=True, out=same)
            assert (same.reshape(x.shape) == x).all()
            made = factor_block_tridiagonal(lower, diag, upper, periodic=True)
            for trans, full in {"T": matrix.mT, "H": matrix.mT.conj()}.items():
                x = made.solve(rhs.astype(x.dtype), trans=trans).reshape(sides.shape)
                assert np.abs(full @ x - sides).max() < 30 * eps(x.dtype) * size
            np.testing.assert_allclose(made.logdet(), np.linalg.slogdet(matrix)[1], rtol=1e-12)


@pytest.mark.parametrize("is_complex", [False, True])
def test_periodic_matrices_that_are_definite_or_singular(is_complex):
    rng = np.random.default_rng(19)
    upper = rng.uniform(-1, 1, (4, 9, 2, 2)) * (np.exp(1j) if is_complex else 1)
    lower = np.swapaxes(np.roll(upper, 1, 1).conj(), -1, -2)
    diag, rhs = np.tile(6 * np.eye(2), (4, 9, 1, 1)), rng.uniform(-1, 1, (4, 9, 2, 1))
    options = {"assume": "positive definite", "periodic": True}
    x = solve_block_tridiagonal(lower, diag, None, rhs, **options)
    matrix = around(lower, diag.astype(upper.dtype), upper)

    assert np.allclose(matrix @ x.reshape(4, -1, 1), rhs.reshape(4, -1, 1), atol=1e-13)
    assert np.allclose(solve_block_tridiagonal(None, diag, upper, rhs, **options), x, rtol=1e-12)
    factor = factor_block_tridiagonal(None, diag, upper, **options)
    assert np.allclose(factor.logdet(), np.linalg.slogdet(matrix)[1], rtol=1e-12)
    with pytest.raises(ValueError, match="inverse_blocks needs factors of open systems"):
        factor.inverse_blocks()
    for row in (3, 8):  # a row of the open matrix, and the last one
        bad = diag.copy()
        bad[2, row] *= -1
        with pytest.raises(SingularSystemError, match="not positive definite") as caught:
            solve_block_tridiagonal(None, bad, upper, rhs, **options)
        assert caught.value.systems.tolist() == [[2]]
        diag_row, own = diag.copy(), [np.array(a) for a in (lower, upper)]
        for part in (diag_row, *own):
            part[1, row] = 0
        y = solve_block_tridiagonal(own[0], diag_row, own[1], rhs, periodic=True, on_singular="nan")
        assert np.isnan(y).all((-3, -2, -1)).tolist() == [False, True, False, False]


@pytest.mark.parametrize("pivot", [False, True])
def test_singular_and_not_finite_matrices(pivot):
    rng = np.random.default_rng(9)
    case = blocks(rng, (5,), 11, 2, diagonal=9)
    rhs = rng.uniform(-1, 1, (5, 11, 2, 1))
    good = solve_block_tridiagonal(*case, rhs, pivot=pivot)
    case[0][2, 4] = case[1][2, 4] = case[2][2, 4] = 0
    others = [0, 1, 3, 4]

    with pytest.raises(SingularSystemError) as caught:
        solve_block_tridiagonal(*case, rhs, pivot=pivot)
    assert caught.value.systems.tolist() == [[2]]
    assert pivot or caught.value.rows.tolist() == [4]
    x = solve_block_tridiagonal(*case, rhs, pivot=pivot, on_singular="nan")
    assert np.isnan(x[2]).all()
    assert (x[others] == good[others]).all()
    factor = factor_block_tridiagonal(*case, pivot=pivot, on_singular="nan")
    y = factor.solve(rhs)
    assert np.isnan(y[2]).all()
    assert np.allclose(y[others], good[others], rtol=1e-12, atol=1e-13)
    case[1][2, 4, 0, 1] = np.nan
    with pytest.raises(ValueError, match=r"diag is nan at batch index \(2,\), row 4"):
        solve_block_tridiagonal(*case, rhs, pivot=pivot)
    rhs[3, 5, 0] = np.inf
    case[1][2, 4] = 9 * np.eye(2)
    x = solve_block_tridiagonal(*case, rhs, pivot=pivot)
    assert not np.isfinite(x[3]).all()
    assert (x[[0, 1, 4]] == good[[0, 1, 4]]).all()


def test_ignored_blocks_are_not_read():
    rng = np.random.default_rng(10)
    lower, diag, upper = blocks(rng, (3,), 6, 3, diagonal=12)
    rhs = rng.uniform(-1, 1, (3, 6, 3, 1))
    x = solve_block_tridiagonal(lower, diag, upper, rhs)
    lower[:, 0] = upper[:, -1] = np.nan

    assert (solve_block_tridiagonal(lower, diag, upper, rhs) == x).all()
    assert (solve_block_tridiagonal(lower[:, 1:], diag, upper[:, :-1], rhs) == x).all()


def test_errors_say_what_to_write():
    one = np.eye(2)
    rhs = np.ones((5, 2, 1))

    with pytest.raises(ValueError, match=r"write rhs\[\.\.\., None\]"):
        solve_block_tridiagonal(one, one, one, rhs[..., 0])
    with pytest.raises(ValueError, match="for blocks of one number use solve_tridiagonal"):
        solve_block_tridiagonal(one[:1, :1], one[:1, :1], one[:1, :1], rhs[:, :1])
    with pytest.raises(ValueError, match="lower has 3 rows along axis -1, the systems have 5"):
        solve_block_tridiagonal(np.zeros((3, 2, 2)), one, one, rhs)
    with pytest.raises(ValueError, match="assume must be 'general' or 'positive definite'"):
        solve_block_tridiagonal(one, one, one, rhs, assume="symmetric")
    with pytest.raises(ValueError, match="the batch axes do not broadcast"):
        solve_block_tridiagonal(np.zeros((3, 5, 2, 2)), one, one, np.ones((4, 5, 2, 1)))
    with pytest.raises(ValueError, match="a periodic system must have at least 3 rows, got 2"):
        factor_block_tridiagonal(one, one, one, rows=2, periodic=True)
    with pytest.raises(ValueError, match="lower has 4 rows along axis -1, the systems have 5"):
        solve_block_tridiagonal(np.zeros((4, 2, 2)), one, one, rhs, periodic=True)
    with pytest.raises(ValueError, match=r"rhs must have 4 rows along axis -1"):
        factor_block_tridiagonal(-one, 3 * one, -one, rows=4).solve(rhs)
    for axis in (1, -2, 2**63, -(2**70)):
        with pytest.raises(np.exceptions.AxisError, match=r"axis must be in -1 \.\. 0.*got"):
            solve_block_tridiagonal(-one, 3 * one, -one, rhs, axis=axis)


def shifted(rng, side, rows):
    """Return symmetric matrices on both sides of positive definite, and whether each one is."""
    lower, diag = definite(rng, (40,), rows, side)
    matrix = dense(lower, diag, np.swapaxes(np.roll(lower, -1, -3), -1, -2))
    least = np.linalg.eigvalsh(matrix)[:, 0]
    shift = least * np.where(np.arange(40) % 2, 1.01, 0.99)  # the least eigenvalue changes sign
    return lower, diag - shift[:, None, None, None] * np.eye(side), np.arange(40) % 2 == 0


@pytest.mark.parametrize("side", [2, 3, 4, 5])
def test_matrices_that_are_not_positive_definite_are_named(side):
    rng = np.random.default_rng(side)
    lower, diag, is_definite = shifted(rng, side, 7)
    rhs = rng.standard_normal((40, 7, side, 1))
    options = {"assume": "positive definite"}
    for call in (
        lambda: solve_block_tridiagonal(lower, diag, None, rhs, **options),
        lambda: solve_block_tridiagonal(lower, diag, None, np.repeat(rhs, 3, -1), **options),
        lambda: factor_block_tridiagonal(lower, diag, None, **options),
    ):
        with pytest.raises(SingularSystemError, match="not positive definite, as 19 more") as found:
            call()
        np.testing.assert_array_equal(found.value.systems[:, 0], np.flatnonzero(~is_definite))
    x = solve_block_tridiagonal(lower, diag, None, rhs, on_singular="nan", **options)
    np.testing.assert_array_equal(np.isnan(x).any((1, 2, 3)), ~is_definite)
    upper = np.swapaxes(np.roll(lower, -1, -3), -1, -2)
    general = solve_block_tridiagonal(lower, diag, upper, rhs, pivot=True)
    np.testing.assert_allclose(x[is_definite], general[is_definite], rtol=1e-6, atol=1e-8)


def test_the_row_of_the_first_pivot_that_is_not_positive_definite():
    diag = np.broadcast_to(4 * np.eye(3), (6, 3, 3)).copy()
    for block in (-np.eye(3), np.diag([4.0, -4.0, 4.0]), [[4, 0, 9], [0, 4, 0], [9, 0, 4.0]]):
        diag[4] = block
        with pytest.raises(SingularSystemError, match="in row 4 is not") as found:
            factor_block_tridiagonal(
                np.zeros((3, 3)), diag, np.zeros((3, 3)), assume="positive definite"
            )
        assert found.value.rows.tolist() == [4]


def test_one_factor_solves_along_any_axis():
    rng = np.random.default_rng(0)
    lower, diag, upper = rng.uniform(-1, 1, (3, 6, 2, 2))
    factor = factor_block_tridiagonal(lower, diag + 5 * np.eye(2), upper)
    for shape, axis in (((6, 3), 0), ((4, 6, 3), 1), ((4, 6, 3), -2), ((6, 4, 3), 0)):
        rhs = rng.standard_normal((*shape, 2, 1))
        x = factor.solve(rhs, axis=axis)
        moved = np.moveaxis(rhs, axis if axis >= 0 else axis - 2, -3).copy()
        expected = np.moveaxis(factor.solve(moved), -3, axis if axis >= 0 else axis - 2)
        np.testing.assert_array_equal(x, expected)
    with pytest.raises(np.exceptions.AxisError, match=r"axis must be in -2 \.\. 1"):
        factor.solve(np.ones((6, 3, 2, 1)), axis=2)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_right_hand_sides_with_fewer_axes_than_the_matrices(axis):
    rng = np.random.default_rng(1)
    matrix = [np.moveaxis(a, 2, axis if axis >= 0 else 2) for a in blocks(rng, (3, 4), 5, 2)]
    factor = factor_block_tridiagonal(*matrix, axis=axis)
    shape = [1, 1]
    shape.insert(axis if axis >= 0 else 2, 5)
    rhs = rng.standard_normal((*shape, 2, 1))
    expected = solve_block_tridiagonal(*matrix, rhs, axis=axis)
    np.testing.assert_allclose(factor.solve(rhs), expected, rtol=1e-10)
    np.testing.assert_allclose(factor.solve(rhs.reshape(5, 2, 1)), expected, rtol=1e-10)


def test_number_of_rows_of_constant_diagonals():
    one, diag = np.tile(np.eye(2), (5, 1, 1)), 4 * np.eye(2)
    assert factor_block_tridiagonal(one, diag, one[1:]).rows == 5
    assert factor_block_tridiagonal(one, diag, one, periodic=True).rows == 5
    with pytest.raises(ValueError, match=r"can have 5 or 6 rows, .* pass rows=n"):
        factor_block_tridiagonal(one, diag, one)
    for rows in (5, 6):
        factor = factor_block_tridiagonal(one, diag, one, rows=rows)
        full = np.tile(diag, (rows, 1, 1))
        expected = factor_block_tridiagonal(np.eye(2), full, np.eye(2)).logdet()
        np.testing.assert_allclose(factor.logdet(), expected, rtol=1e-13)


def test_factors_of_no_matrix():
    none = np.zeros((0, 4, 2, 2))

    factor = factor_block_tridiagonal(none, none + np.eye(2), none)

    assert factor.solve(np.ones((0, 4, 2, 3))).shape == (0, 4, 2, 3)
    assert factor.logdet().shape == (0,)


@pytest.mark.parametrize("periodic", [False, True])
def test_operands_that_are_none_are_errors(periodic):
    one = np.eye(2)
    with pytest.raises(TypeError, match="rhs is None: pass an array"):
        solve_block_tridiagonal(one, 4 * one, one, None, periodic=periodic)
    with pytest.raises(TypeError, match="factor_block_tridiagonal: diag is None: pass an array"):
        factor_block_tridiagonal(one, None, one, rows=5, periodic=periodic)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("periodic", [False, True])
def test_factors_do_not_read_the_matrices_again(periodic, dtype):
    rng = np.random.default_rng(30)
    case, rhs = blocks(rng, (2,), 7, 3, dtype, 12), rng.standard_normal((2, 7, 3, 1))
    factor = factor_block_tridiagonal(*case, periodic=periodic)
    x, logarithms = factor.solve(rhs), factor.logdet()
    for array in case:
        array[...] = np.nan

    np.testing.assert_array_equal(factor.solve(rhs), x)
    np.testing.assert_array_equal(factor.logdet(), logarithms)


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_factors_are_not_copied(copied):
    factor = factor_block_tridiagonal(np.eye(2), 4 * np.eye(2), np.eye(2), rows=6)
    with pytest.raises(TypeError, match="cannot be pickled or copied: keep the diagonals"):
        copied(factor)


def test_blocks_of_one_row_need_rows():
    unit = np.eye(2)
    several = np.broadcast_to(unit, (3, 1, 2, 2))

    with pytest.raises(ValueError, match=r"one row along axis -1: .*\(3, 1, 2, 2\).* rows=n"):
        factor_block_tridiagonal(several, 4 * several, several)
    with pytest.raises(ValueError, match=r"operands are all 2-d.* rows=n"):
        factor_block_tridiagonal(unit, 4 * unit, unit)
    one = factor_block_tridiagonal(several, 4 * several, several, rows=1)
    np.testing.assert_array_equal(one.solve(np.ones((3, 1, 2, 1))), np.full((3, 1, 2, 1), 0.25))
    two = factor_block_tridiagonal(several, 4 * several, several, rows=2)
    np.testing.assert_allclose(two.solve(np.full((3, 2, 2, 1), 5.0)), 1, rtol=1e-15)

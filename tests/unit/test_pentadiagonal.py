"""Pentadiagonal systems: dense systems, LAPACK, and the identities of factors."""

import copy
import pickle

import numpy as np
import pytest
from oracle import eps
from scipy.linalg import solve_banded, solveh_banded

from pysolvers import (
    SingularSystemError,
    factor_block_tridiagonal,
    factor_pentadiagonal,
    solve_pentadiagonal,
)

OFFSETS = (-2, -1, 0, 1, 2)


def dense(bands, *, periodic=False):
    """Return the matrices, shape (..., n, n)."""
    bands = np.broadcast_arrays(*bands)
    rows = bands[2].shape[-1]
    matrix = np.zeros((*bands[2].shape, rows), bands[2].dtype)
    for band, offset in zip(bands, OFFSETS, strict=True):
        for i in range(rows):
            if periodic or 0 <= i + offset < rows:
                matrix[..., i, (i + offset) % rows] += band[..., i]
    return matrix


def random_bands(rng, shape, dtype=np.float64, diagonal=0.0):
    bands = [rng.uniform(-1, 1, shape) for _ in OFFSETS]
    bands[2] = bands[2] + diagonal
    return [np.asarray(band, dtype) for band in bands]


def backward_error(matrix, x, rhs):
    matrix, x, rhs = (np.asarray(a, np.longdouble) for a in (matrix, x, rhs))
    size = np.abs(matrix).sum(-1).max(-1) * np.abs(x).max(-1) + np.abs(rhs).max(-1)
    return float((np.abs((matrix @ x[..., None])[..., 0] - rhs).max(-1) / size).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("periodic", [False, True])
def test_systems_of_every_size(dtype, periodic):
    rng = np.random.default_rng(0)
    for rows in (1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 33, 40):
        for batch in ((), (1,), (3,), (2, 5), (9,)):
            for diagonal, pivot in ((9, None), (9, False), (0, None), (0, True)):
                if periodic and (rows < 5 or diagonal == 0):
                    continue
                bands = random_bands(rng, (*batch, rows), dtype, diagonal)
                rhs = np.asarray(rng.uniform(-1, 1, (*batch, rows)), dtype)
                x = solve_pentadiagonal(*bands, rhs, periodic=periodic, pivot=pivot)
                matrix = dense(bands, periodic=periodic)
                assert x.dtype == dtype
                assert backward_error(matrix, x, rhs) <= 30 * eps(dtype)


@pytest.mark.parametrize("rows", [3, 5, 8, 200, 201])
def test_backward_errors_are_those_of_lapack(rows):
    rng = np.random.default_rng(1)
    batch = 30
    weights = rng.uniform(0.1, 1, (batch, rows))
    steps = np.diff(np.eye(rows), 2, axis=0)
    for strength in (1.0, 1e3, 1e6):
        smooth = strength * steps.T @ steps
        bands = [np.zeros((batch, rows)) for _ in OFFSETS]
        for band, offset in zip(bands, OFFSETS, strict=True):
            line = np.diagonal(smooth, offset)
            band[:, max(-offset, 0) : rows - max(offset, 0)] = line
        bands[2] = bands[2] + weights
        rhs = weights * rng.standard_normal((batch, rows))
        x = solve_pentadiagonal(
            None, None, bands[2], bands[3], bands[4], rhs, assume="positive definite"
        )
        matrix = dense(bands)
        upper = np.zeros((3, batch, rows))
        upper[2], upper[1, :, 1:], upper[0, :, 2:] = bands[2], bands[3][:, :-1], bands[4][:, :-2]
        lapack = np.stack([solveh_banded(upper[:, k], rhs[k]) for k in range(batch)])
        least = max(backward_error(matrix, lapack, rhs), eps(np.float64))
        assert backward_error(matrix, x, rhs) <= 10 * least
    bands = random_bands(rng, (batch, rows))
    rhs = rng.uniform(-1, 1, (batch, rows))
    full = np.zeros((5, batch, rows))
    for band, offset in zip(bands, OFFSETS, strict=True):
        line = band[:, max(-offset, 0) : rows - max(offset, 0)]
        full[2 - offset, :, max(offset, 0) : rows + min(offset, 0)] = line
    lapack = np.stack([solve_banded((2, 2), full[:, k], rhs[k]) for k in range(batch)])
    least = max(backward_error(dense(bands), lapack, rhs), eps(np.float64))
    assert backward_error(dense(bands), solve_pentadiagonal(*bands, rhs), rhs) <= 10 * least


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("pivot", [False, True])
def test_factors(pivot, periodic):
    rng = np.random.default_rng(2)
    for rows, batch in ((5, (3,)), (6, ()), (21, (2, 5)), (40, (9,))):
        bands = random_bands(rng, (*batch, rows), diagonal=9)
        matrix = dense(bands, periodic=periodic)
        factor = factor_pentadiagonal(*bands, pivot=pivot, periodic=periodic)
        assert factor.pivoted == pivot
        rhs = rng.uniform(-1, 1, (3, *batch, rows))
        for trans, of in (("N", matrix), ("T", np.swapaxes(matrix, -1, -2))):
            assert backward_error(of, factor.solve(rhs, trans=trans), rhs) <= 30 * eps(float)
        assert np.allclose(factor.logdet(), np.linalg.slogdet(matrix)[1], rtol=1e-12)
        if pivot or periodic:
            with pytest.raises(ValueError, match="inverse_diagonals needs factors of open"):
                factor.inverse_diagonals()
            continue
        inverse = np.linalg.inv(matrix)
        found = dense(factor.inverse_diagonals())
        near = np.abs(np.subtract.outer(range(rows), range(rows))) <= 2
        assert np.allclose(found, np.where(near, inverse, 0), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("rows", [3, 4, 9, 10, 33])
def test_factors_of_dominant_rows_have_no_exchanges(rows):
    """Also where a row of the identity stands before an odd number of rows, and by rows alone."""
    rng = np.random.default_rng(rows)
    bands = rng.uniform(0.5, 1, (5, 4, rows))
    bands[2] = bands[[0, 1, 3, 4]].sum(0) + 0.01
    rhs = rng.standard_normal((4, rows))

    factor = factor_pentadiagonal(*bands)

    assert not factor.pivoted
    np.testing.assert_allclose(factor.solve(rhs), solve_pentadiagonal(*bands, rhs), rtol=1e-11)
    bands[2, 3, rows // 2] = 0
    assert factor_pentadiagonal(*bands).pivoted


def test_axes_strides_and_shared_diagonals():
    rng = np.random.default_rng(3)
    bands = random_bands(rng, (4, 6, 33), diagonal=9)
    rhs = rng.uniform(-1, 1, (4, 6, 33))
    x = solve_pentadiagonal(*bands, rhs)

    for axis in (0, 1, 2):
        case = [np.moveaxis(a, 2, axis) for a in (*bands, rhs)]
        for arrays in (case, [a.copy() for a in case], [np.asfortranarray(a) for a in case]):
            moved = solve_pentadiagonal(*arrays, axis=axis)
            assert (np.moveaxis(moved, axis, 2) == x).all()
    short = [
        band[..., max(-offset, 0) : 33 - max(offset, 0)]
        for band, offset in zip(bands, OFFSETS, strict=True)
    ]
    assert (solve_pentadiagonal(*short, rhs) == x).all()
    line = [band[1, 2] for band in bands]
    shared = solve_pentadiagonal(*line, rhs)
    assert (
        shared == solve_pentadiagonal(*(np.broadcast_to(v, rhs.shape) for v in line), rhs)
    ).all()
    number = solve_pentadiagonal(1.0, -4.0, 7.0, -4.0, 1.0, rhs)
    whole = [np.full(rhs.shape, v) for v in (1.0, -4.0, 7.0, -4.0, 1.0)]
    assert (number == solve_pentadiagonal(*whole, rhs)).all()
    for band, offset in zip(bands, OFFSETS, strict=True):
        if offset < 0:
            band[..., :-offset] = np.nan
        elif offset > 0:
            band[..., 33 - offset :] = np.inf
    assert (solve_pentadiagonal(*bands, rhs) == x).all()
    assert solve_pentadiagonal(*bands, rhs, out=rhs) is rhs
    assert (rhs == x).all()


def test_symmetric_matrices_by_one_half():
    rng = np.random.default_rng(4)
    diag, upper, upper2 = (rng.uniform(a, b, (5, 21)) for a, b in ((5, 6), (-1, 1), (-1, 1)))
    lower, lower2 = np.roll(upper, 1, -1), np.roll(upper2, 2, -1)
    rhs = rng.uniform(-1, 1, (5, 21))
    for periodic in (False, True):
        options = {"assume": "positive definite", "periodic": periodic}
        x = solve_pentadiagonal(None, None, diag, upper, upper2, rhs, **options)
        full = dense((lower2, lower, diag, upper, upper2), periodic=periodic)
        assert backward_error(full, x, rhs) <= 30 * eps(float)
        factor = factor_pentadiagonal(None, None, diag, upper, upper2, **options)
        assert np.allclose(factor.logdet(), np.linalg.slogdet(full)[1], rtol=1e-12)


def test_bits_depend_on_the_system_alone():
    rng = np.random.default_rng(5)
    bands = random_bands(rng, (40, 300), diagonal=3)  # some need row exchanges
    rhs = rng.uniform(-1, 1, (40, 300))
    x = solve_pentadiagonal(*bands, rhs, threads=1)

    assert (x == solve_pentadiagonal(*bands, rhs, threads=2)).all()
    for k in (0, 1, 39):
        assert (x[k] == solve_pentadiagonal(*(band[k] for band in bands), rhs[k])).all()

    upper, upper2 = (rng.uniform(-1, 1, (40, 300)) for _ in range(2))
    diag = np.full((40, 300), 5.0)
    alone = solve_pentadiagonal(None, None, diag, upper, upper2, rhs, assume="positive definite")
    diag[1::3, 200] = -5.0  # not positive definite
    options = {"assume": "positive definite", "on_singular": "nan"}
    x = solve_pentadiagonal(None, None, diag, upper, upper2, rhs, **options)
    is_other = np.arange(40) % 3 != 1
    assert np.isnan(x[~is_other]).all() and (x[is_other] == alone[is_other]).all()
    solve_pentadiagonal(None, None, diag, upper, upper2, rhs, **options, out=rhs)
    np.testing.assert_array_equal(rhs, x)


def test_complex_right_hand_sides():
    rng = np.random.default_rng(6)
    bands = random_bands(rng, (3, 12), diagonal=9)
    rhs = rng.uniform(-1, 1, (3, 12)) + 1j * rng.uniform(-1, 1, (3, 12))
    x = solve_pentadiagonal(*bands, rhs)

    assert (x.real == solve_pentadiagonal(*bands, rhs.real)).all()
    assert (x.imag == solve_pentadiagonal(*bands, rhs.imag)).all()
    assert np.allclose(factor_pentadiagonal(*bands).solve(rhs), x, rtol=1e-12)


@pytest.mark.parametrize("periodic", [False, True])
def test_parts_of_complex_right_hand_sides_stay_apart(periodic):
    rng = np.random.default_rng(7)
    bands = random_bands(rng, (3, 12), diagonal=9)
    rhs = rng.uniform(-1, 1, (3, 12)) * (1 + 2j)
    rhs.imag[1, 3] = np.inf
    for x in (
        solve_pentadiagonal(*bands, rhs, periodic=periodic),
        factor_pentadiagonal(*bands, periodic=periodic).solve(rhs),
    ):
        np.testing.assert_allclose(
            x.real, solve_pentadiagonal(*bands, rhs.real, periodic=periodic), rtol=1e-12
        )
        assert np.isfinite(x.imag[[0, 2]]).all()
        assert not np.isfinite(x.imag[1]).all()


@pytest.mark.parametrize("periodic", [False, True])
def test_other_systems_with_complex_right_hand_sides_are_valid_after_an_error(periodic):
    rng = np.random.default_rng(8)
    bands = random_bands(rng, (3, 12), diagonal=9)
    for band in bands:
        band[1] = 0
    rhs = rng.uniform(-1, 1, (3, 12)) * (1 + 2j)
    out = np.full_like(rhs, np.nan)
    with pytest.raises(SingularSystemError):
        solve_pentadiagonal(*bands, rhs, periodic=periodic, out=out)
    good = [0, 2]
    own = solve_pentadiagonal(*(band[good] for band in bands), rhs[good], periodic=periodic)
    np.testing.assert_allclose(out[good], own, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("periodic", [False, True])
def test_complex_matrices(dtype, periodic):
    rng = np.random.default_rng(16)
    for rows in (5, 6, 9, 32) if periodic else (1, 2, 3, 4, 7, 32):
        for diagonal, pivot in ((9, None), (9, False), (0, True)):
            real, imag = (random_bands(rng, (3, rows), diagonal=d) for d in (diagonal, 0))
            bands = [np.asarray(a + 1j * b, dtype) for a, b in zip(real, imag, strict=True)]
            rhs = np.asarray(rng.uniform(-1, 1, (3, rows)) + 1j, dtype)
            options = {"periodic": periodic, "pivot": pivot}
            matrix = dense(bands, periodic=periodic)
            factor = factor_pentadiagonal(*bands, rows=rows, **options)
            wide = np.asarray(matrix, complex)
            assert np.allclose(factor.logdet(), np.linalg.slogdet(wide)[1], 1e3 * eps(dtype), 1e-4)
            adjoint = np.swapaxes(matrix.conj(), -1, -2)
            for trans, one in (("N", matrix), ("T", adjoint.conj()), ("H", adjoint)):
                x = factor.solve(rhs, trans=trans)
                # a border whose columns grow by less than 32 amplifies errors
                most = 30 if diagonal or not periodic else 300
                assert modulus_error(one, x, rhs) <= most * eps(dtype)
            x = solve_pentadiagonal(*bands, rhs, **options)
            assert x.dtype == dtype
            assert np.allclose(x, factor.solve(rhs), rtol=1e4 * eps(dtype))
            moved = solve_pentadiagonal(*(b.T for b in bands), rhs.T, axis=0, **options)
            assert (x == moved.T).all()


def modulus_error(matrix, x, rhs):
    matrix, x, rhs = (np.asarray(a, np.clongdouble) for a in (matrix, x, rhs))
    size = np.abs(matrix).sum(-1).max(-1) * np.abs(x).max(-1) + np.abs(rhs).max(-1)
    return float((np.abs((matrix @ x[..., None])[..., 0] - rhs).max(-1) / size).max())


def test_complex_matrices_that_are_hermitian_or_singular():
    rng = np.random.default_rng(17)
    upper, upper2 = (rng.uniform(-1, 1, (3, 11)) * np.exp(1j) for _ in range(2))
    diag, rhs = np.full((3, 11), 5.0), rng.uniform(-1, 1, (3, 11))
    definite = {"assume": "positive definite"}
    for periodic in (False, True):
        x = solve_pentadiagonal(None, None, diag, upper, upper2, rhs, periodic=periodic, **definite)
        lower, lower2 = np.roll(upper, 1, -1).conj(), np.roll(upper2, 2, -1).conj()
        full = dense((lower2, lower, diag + 0j, upper, upper2), periodic=periodic)
        assert np.allclose((full @ x[..., None])[..., 0], rhs, atol=1e-13)
        diag[1, 4] = -5
        with pytest.raises(SingularSystemError, match="not positive definite"):
            solve_pentadiagonal(None, None, diag, upper, upper2, rhs, periodic=periodic, **definite)
        diag[1, 4] = 5
    factor = factor_pentadiagonal(None, None, diag, upper, upper2, **definite)
    inverse = np.linalg.inv(dense((lower2, lower, diag + 0j, upper, upper2)))
    for band, offset in zip(factor.inverse_diagonals(), OFFSETS, strict=True):
        found = np.diagonal(inverse, offset, -2, -1)
        own = band[:, max(0, -offset) : 11 - max(0, offset)]
        assert np.allclose(own, found, rtol=1e-12, atol=1e-14)
    bands = [np.array(b) for b in (lower2, lower, diag + 0j, upper, upper2)]
    for band in bands:
        band[2, 5] = 0
    x = solve_pentadiagonal(*bands, rhs, on_singular="nan")
    assert np.isnan(x).all(-1).tolist() == [False, False, True]


@pytest.mark.parametrize("factor", [1, 1j])
@pytest.mark.parametrize("pivot", [None, True])
def test_periodic_matrices_whose_open_part_is_singular(pivot, factor):
    """Of the rows 1, 1, 1 all but the last two of 7 or 10 are singular, of 8 the last one more."""
    rng = np.random.default_rng(22)
    for rows in (7, 8, 10):
        for change in (0.0, 1e-6):
            line = np.full((2, rows), factor, np.result_type(type(factor), np.float64))
            line[1] += change * rng.standard_normal(rows)
            bands = [0 * line, line, line[0], line, 0 * line]  # the diagonal is that of all
            rhs = rng.standard_normal((3, 2, rows))
            matrix = dense(bands, periodic=True)
            options = {"periodic": True, "pivot": pivot}

            x = solve_pentadiagonal(*bands, rhs, **options)

            assert np.linalg.cond(matrix).max() < 20
            assert modulus_error(matrix, x, rhs) < 30 * eps(x.dtype)
            same = rhs.astype(x.dtype)
            assert (solve_pentadiagonal(*bands, same, **options, out=same) == x).all()
            few = solve_pentadiagonal(
                *(band[-1] for band in bands[:2]),
                line[0],
                *(band[-1] for band in bands[3:]),
                rhs[0, 1],
                **options,
            )
            assert modulus_error(matrix[1], few, rhs[0, 1]) < 30 * eps(x.dtype)
            made = factor_pentadiagonal(*bands, **options)
            turned = {"N": matrix, "T": matrix.mT, "H": matrix.mT.conj()}
            for trans, full in turned.items():
                y = made.solve(rhs.astype(x.dtype), trans=trans)
                assert modulus_error(full, y, rhs) < 30 * eps(x.dtype)
            np.testing.assert_allclose(made.logdet(), np.linalg.slogdet(matrix)[1], rtol=1e-12)
    singular = [np.zeros(6), np.ones(6), np.ones(6), np.ones(6), np.zeros(6)]
    with pytest.raises(SingularSystemError):
        solve_pentadiagonal(*singular, np.ones(6), **options)
    assert np.isnan(solve_pentadiagonal(*singular, np.ones(6), **options, on_singular="nan")).all()


@pytest.mark.parametrize("pivot", [False, True])
@pytest.mark.parametrize("periodic", [False, True])
def test_singular_matrices(periodic, pivot):
    rng = np.random.default_rng(7)
    bands = random_bands(rng, (5, 12), diagonal=9)
    rhs = rng.uniform(-1, 1, (5, 12))
    options = {"pivot": pivot, "periodic": periodic}
    good = solve_pentadiagonal(*bands, rhs, **options)
    for band in bands:
        band[3, 5] = 0

    with pytest.raises(SingularSystemError) as caught:
        solve_pentadiagonal(*bands, rhs, **options)
    assert caught.value.systems.tolist() == [[3]]
    x = solve_pentadiagonal(*bands, rhs, on_singular="nan", **options)
    assert np.isnan(x[3]).all()
    assert (x[[0, 1, 2, 4]] == good[[0, 1, 2, 4]]).all()
    bands[2][3, 5] = np.inf
    with pytest.raises(ValueError, match=r"diag is inf at batch index \(3,\), row 5"):
        solve_pentadiagonal(*bands, rhs, **options)


def test_errors_say_what_to_write():
    rhs = np.ones((3, 8))

    with pytest.raises(ValueError, match="upper must have 8 or 7 entries along axis -1, got 5"):
        solve_pentadiagonal(1.0, 1.0, 9.0, np.ones(5), 1.0, rhs)
    with pytest.raises(ValueError, match="lower2 is None: pass the diagonal"):
        solve_pentadiagonal(None, None, 9.0, 1.0, 1.0, rhs)
    with pytest.raises(ValueError, match="a periodic system must have at least 5 rows, got 4"):
        solve_pentadiagonal(1.0, 1.0, 9.0, 1.0, 1.0, rhs[:, :4], periodic=True)
    with pytest.raises(ValueError, match="the number of rows is unknown: pass rows=n"):
        factor_pentadiagonal(1.0, 1.0, 9.0, 1.0, 1.0)
    with pytest.raises(np.exceptions.AxisError, match=r"axis must be in -2 \.\. 1"):
        solve_pentadiagonal(1.0, 1.0, 9.0, 1.0, 1.0, rhs, axis=2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("rows", [5, 8, 33])
def test_matrices_that_are_not_positive_definite_are_named(rows, periodic, dtype):
    rng = np.random.default_rng(rows)
    u, v = rng.uniform(-1, 1, (2, 60, rows))
    corner = np.zeros((60, rows, rows))
    i = np.arange(rows)
    for line, step in ((u, 1), (v, 2)):
        last = rows if periodic else rows - step
        corner[:, i[:last], (i[:last] + step) % rows] += line[:, :last]
    matrix = corner + np.swapaxes(corner, 1, 2)
    least = np.linalg.eigvalsh(matrix)[:, 0]
    d = np.broadcast_to(-least[:, None], u.shape)
    is_definite = np.arange(60) % 3 != 1
    d = d + np.where(is_definite, 0.02, -0.02)[:, None]  # the least eigenvalue
    bands = [np.asarray(a, dtype) for a in (d, u, v)]
    rhs = rng.standard_normal((60, rows)).astype(dtype)
    options = {"assume": "positive definite", "periodic": periodic}
    with pytest.raises(SingularSystemError, match="not positive definite") as found:
        solve_pentadiagonal(None, None, *bands, rhs, **options)
    np.testing.assert_array_equal(found.value.systems[:, 0], np.flatnonzero(~is_definite))
    with pytest.raises(SingularSystemError, match="not positive definite"):
        factor_pentadiagonal(None, None, *bands, **options)
    x = solve_pentadiagonal(None, None, *bands, rhs, on_singular="nan", **options)
    np.testing.assert_array_equal(np.isnan(x).any(-1), ~is_definite)


def test_number_of_rows_of_constant_diagonals():
    full, one, two = np.ones(9), np.ones(8), np.ones(7)
    for case in ((full, full, 6, full, full), (two, one, 6, one, two), (1, full, 6, one, 1)):
        assert factor_pentadiagonal(*case).rows == 9
    assert factor_pentadiagonal(1, one, 6, one, 1, periodic=True).rows == 8
    text = r"by lower and upper the systems can have 8 or 9 rows, .* pass rows=n"
    with pytest.raises(ValueError, match=text):
        factor_pentadiagonal(1, one, 6, one, 1)
    for rows in (8, 9):
        assert factor_pentadiagonal(1, one, 6, one, 1, rows=rows).rows == rows
    with pytest.raises(ValueError, match="give rhs all rows"):
        solve_pentadiagonal(1.0, one[None], 6.0, one[None], 1.0, np.ones((2, 1)))


@pytest.mark.parametrize("options", [{"assume": "positive definite"}, {"pivot": False}, {}])
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_periodic_systems_of_any_scale(scale, options):
    rng = np.random.default_rng(1)
    rhs = rng.standard_normal((3, 9))
    line = np.array([1.0, -4.0, 7.0, -4.0, 1.0])
    expected = solve_pentadiagonal(*line, rhs, periodic=True)
    x = solve_pentadiagonal(*scale * line, scale * rhs, periodic=True, **options)
    np.testing.assert_allclose(x, expected, rtol=1e-13)
    factor = factor_pentadiagonal(*scale * line, rows=9, periodic=True, **options)
    np.testing.assert_allclose(factor.solve(scale * rhs), expected, rtol=1e-13)


@pytest.mark.parametrize("periodic", [False, True])
def test_one_factor_solves_along_any_axis(periodic):
    rng = np.random.default_rng(0)
    factor = factor_pentadiagonal(0.5, -1.0, 5.0, 1.0, 0.3, rows=9, periodic=periodic)
    for shape, axis in (((9,), 0), ((9, 3), 0), ((2, 9, 3), 1), ((2, 9, 3), -2), ((9, 2, 3), 0)):
        for kind in (float, complex):
            rhs = rng.standard_normal(shape).astype(kind)
            x = factor.solve(rhs, axis=axis)
            expected = factor.solve(np.moveaxis(rhs, axis, -1).copy())
            np.testing.assert_array_equal(x, np.moveaxis(expected, -1, axis))
    with pytest.raises(np.exceptions.AxisError, match=r"axis must be in -2 \.\. 1"):
        factor.solve(np.ones((9, 3)), axis=2)
    with pytest.raises(ValueError, match="9 rows along axis -1"):
        factor.solve(np.ones((9, 3)), axis=1)


@pytest.mark.parametrize("periodic", [False, True])
def test_factors_of_no_matrix_and_of_no_right_hand_side(periodic):
    bands = random_bands(np.random.default_rng(0), (0, 6), diagonal=6.0)
    factor = factor_pentadiagonal(*bands, periodic=periodic)

    assert factor.solve(np.ones((0, 6))).shape == factor.solve(np.ones(6)).shape == (0, 6)
    assert factor.solve(np.ones((6, 0)), axis=0).shape == (6, 0)
    assert factor.logdet().shape == (0,)
    one = factor_pentadiagonal(0.1, 0.1, 2.0, 0.1, 0.1, rows=6, periodic=periodic)
    assert one.solve(np.ones((0, 6))).shape == (0, 6)
    own = factor_pentadiagonal(0.1, 0.1j, 2.0, 0.1, 0.1, rows=6, periodic=periodic)
    assert own.solve(np.ones((0, 6))).shape == (0, 6)


@pytest.mark.parametrize("periodic", [False, True])
def test_operands_that_are_none_are_errors(periodic):
    with pytest.raises(TypeError, match="rhs is None: pass an array"):
        solve_pentadiagonal(1.0, 1.0, 7.0, 1.0, 1.0, None, periodic=periodic)


@pytest.mark.parametrize("copied", [pickle.dumps, copy.copy, copy.deepcopy])
def test_factors_are_not_copied(copied):
    factor = factor_pentadiagonal(1.0, -4.0, 7.0, -4.0, 1.0, rows=6)
    with pytest.raises(TypeError, match="cannot be pickled or copied: keep the diagonals"):
        copied(factor)


@pytest.mark.parametrize("kind", ["pentadiagonal", "blocks"])
def test_right_hand_sides_get_the_precision_of_factors(kind):
    def solve(dtype, rhs):
        diag = np.asarray(2 + np.arange(8.0), dtype)
        if kind == "pentadiagonal":
            return factor_pentadiagonal(0.1, 0.3, diag, 0.2, 0.1).solve(rhs)
        block = diag[:, None, None] * np.eye(2, dtype=dtype)
        return factor_block_tridiagonal(0.1 * block, block, 0.1 * block).solve(rhs)

    rhs = np.arange(16.0).reshape(2, 8)
    rhs = rhs if kind == "pentadiagonal" else rhs.reshape(8, 2, 1)
    truth = solve("f8", rhs)
    for narrow in (rhs.astype("f4"), rhs.astype(int), rhs.tolist()):
        x = solve("f8", narrow)
        assert x.dtype == np.float64
        np.testing.assert_allclose(x, truth, rtol=1e-14)
    assert solve("f8", rhs.astype("c8")).dtype == solve("c16", rhs.astype("f4")).dtype == "c16"
    assert solve("f4", rhs.astype("f4")).dtype == np.float32
    with pytest.raises(TypeError, match="rhs is float64, but the factor is float32"):
        solve("f4", rhs)


def test_matrices_without_rows_are_refused():
    empty = np.zeros(0)
    with pytest.raises(ValueError, match="matrices must have at least one row, got 0"):
        factor_pentadiagonal(empty, empty, empty, empty, empty)
    assert solve_pentadiagonal(0.1, 0.1, 3.0, 0.1, 0.1, np.zeros((3, 0))).shape == (3, 0)


def test_coefficients_of_one_row_need_rows():
    column = np.ones((3, 1))
    bands = column, column, 6 * column, column, column

    with pytest.raises(ValueError, match=r"one row along axis -1: .*diag \(3, 1\).* rows=n"):
        factor_pentadiagonal(*bands)
    with pytest.raises(ValueError, match=r"operands are all 0-d.* rows=n"):
        factor_pentadiagonal(1.0, 1.0, 6.0, 1.0, 1.0)
    np.testing.assert_allclose(
        factor_pentadiagonal(*bands, rows=1).solve(column), column / 6, rtol=1e-15
    )
    np.testing.assert_allclose(
        factor_pentadiagonal(*bands, rows=2).solve(np.full((3, 2), 7.0)), 1, rtol=1e-15
    )

"""`pysolvers.jax.solve_block_tridiagonal` and `solve_pentadiagonal`: values and derivatives."""

import numpy as np
import pytest
from array_libraries import check_gradients
from covering import slow

import pysolvers

jax = pytest.importorskip("jax")

from jax import numpy as jnp  # noqa: E402

from pysolvers.jax import (  # noqa: E402
    block_tridiagonal_logdet,
    solve_block_tridiagonal,
    solve_pentadiagonal,
)


def bands(rng, shape, *, short=False):
    rows = shape[-1]
    lengths = [max(0, rows - (abs(k) if short else 0)) for k in range(-2, 3)]
    found = [rng.uniform(-1, 1, (*shape[:-1], n)) for n in lengths]
    found[2] += 6
    return found


@pytest.mark.parametrize(
    ("rows", "periodic"),
    [
        *((rows, False) for rows in (1, 9)),
        *((rows, True) for rows in (5, 9)),
        *(slow(rows, False) for rows in (2, 3, 5, 6)),
        slow(6, True),
    ],
)
def test_five_diagonals(rows, periodic):
    rng = np.random.default_rng(rows)
    for short in (False, not periodic):
        case = bands(rng, (3, rows), short=short)
        rhs = rng.standard_normal((2, 3, rows))
        for pivot in (None, True, False) if rows == 9 and not short else (None,):
            options = {"periodic": periodic, "pivot": pivot}
            expected = pysolvers.solve_pentadiagonal(*case, rhs, **options)
            found = solve_pentadiagonal(*case, rhs, **options)
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
        moved = [np.moveaxis(a, -1, 0) for a in case]
        columns = np.moveaxis(rhs[0], -1, 0)
        found = solve_pentadiagonal(*moved, columns, axis=0, periodic=periodic)
        expected = pysolvers.solve_pentadiagonal(*case, rhs[0], periodic=periodic)
        np.testing.assert_allclose(np.moveaxis(found, 0, -1), expected, rtol=1e-12, atol=1e-13)
    if rows == 9:
        check_gradients(lambda *a: solve_pentadiagonal(*a, periodic=periodic), (*case, rhs))


def test_symmetric_matrices_and_shared_ones():
    rng = np.random.default_rng(0)
    _, _, d, u, v = bands(rng, (7,))
    rhs = rng.standard_normal((4, 7))
    symmetric = lambda d, u, v, r: solve_pentadiagonal(  # noqa: E731
        None, None, d, u, v, r, assume="positive definite"
    )
    expected = pysolvers.solve_pentadiagonal(None, None, d, u, v, rhs, assume="positive definite")
    np.testing.assert_allclose(symmetric(d, u, v, rhs), expected, rtol=1e-12)
    check_gradients(symmetric, (d, u, v, rhs), orders=2)
    mapped = jax.vmap(symmetric, (None, None, None, 0))(d, u, v, rhs)
    np.testing.assert_allclose(mapped, expected, rtol=1e-12)
    numbers = lambda d, r: symmetric(d, 0.5, -0.25, r)  # noqa: E731
    check_gradients(numbers, (6.0, rhs))
    many = jax.vmap(numbers, (0, None))(jnp.array([6.0, 7.0]), rhs)
    np.testing.assert_allclose(many[1], numbers(7.0, rhs), rtol=1e-12)
    assert np.isnan(symmetric(-d, u, v, rhs)).all()
    imaginary = solve_pentadiagonal(1.0, 0.5, d, u, v, 1j * rhs)
    np.testing.assert_allclose(imaginary.imag, solve_pentadiagonal(1.0, 0.5, d, u, v, rhs))
    with pytest.raises(ValueError, match="upper must have 7 or 6 entries"):
        solve_pentadiagonal(1.0, 0.5, d, u[:3], v, rhs)


# Derivatives of the second order compile for some seconds; those of open bands are made above.
@pytest.mark.parametrize(
    ("periodic", "orders"), [(True, 1), slow(False, 1), slow(True, 2), slow(False, 2)]
)
def test_complex_and_periodic_matrices(periodic, orders):
    rng = np.random.default_rng(4)
    options = {"periodic": periodic, "pivot": False}
    real, imag = rng.uniform(-1, 1, (2, 5, 3, 7))
    case = [*(real + 1j * imag), rng.standard_normal((3, 7)) + 0j]
    case[2] += 9
    expected = pysolvers.solve_pentadiagonal(*case, **options)
    np.testing.assert_allclose(solve_pentadiagonal(*case, **options), expected, rtol=1e-11)
    check_gradients(lambda *a: solve_pentadiagonal(*a, **options), case)
    case = [*rng.uniform(-1, 1, (3, 2, 5, 2, 2)), rng.standard_normal((2, 5, 2, 1))]
    case[1] += 8 * np.eye(2)
    for factor in (1, 1 + 0.5j):
        wide = [factor * case[0], *case[1:]]
        expected = pysolvers.solve_block_tridiagonal(*wide, **options)
        found = solve_block_tridiagonal(*wide, **options)
        np.testing.assert_allclose(found, expected, rtol=1e-11)
    check_gradients(lambda *a: solve_block_tridiagonal(*a, **options), case, orders=orders)
    upper = case[2] * 1j
    hermitian = {"assume": "positive definite", "periodic": periodic}
    expected = pysolvers.solve_block_tridiagonal(None, case[1], upper, case[3], **hermitian)
    found = solve_block_tridiagonal(None, case[1], upper, case[3], **hermitian)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_periodic_matrices_whose_open_part_is_singular():
    bands = np.array([0.0, 1.0, 1.0, 1.0, 0.0])
    rhs = np.random.default_rng(1).standard_normal((2, 7))
    x = solve_pentadiagonal(*bands, rhs, periodic=True)
    matrix = sum(np.roll(np.eye(7), k, axis=1) for k in (-1, 0, 1))
    np.testing.assert_allclose(x @ matrix.T, rhs, rtol=0, atol=1e-14)
    found = solve_pentadiagonal(*(bands * 1j), rhs, periodic=True)
    np.testing.assert_allclose(found, x / 1j, rtol=0, atol=1e-14)
    one, rest = np.eye(2), np.zeros((2, 2))
    sides = rhs.reshape(2, 7, 1)[:, :, None, :] * np.array([[1.0], [2.0]])
    x = solve_block_tridiagonal(
        one, np.broadcast_to(rest, (7, 2, 2)), 2 * one, sides, periodic=True
    )
    product = np.roll(x, 1, axis=1) + 2 * np.roll(x, -1, axis=1)
    np.testing.assert_allclose(product, sides, rtol=0, atol=1e-14)


@pytest.mark.parametrize(
    ("rows", "side"), [(4, 2), slow(1, 3), slow(1, 2), slow(1, 5), slow(4, 3), slow(4, 5)]
)
def test_blocks(rows, side):
    rng = np.random.default_rng(side)
    lower, diag, upper = rng.uniform(-1, 1, (3, 3, rows, side, side))
    diag = diag + 4 * side * np.eye(side)
    rhs = rng.standard_normal((3, rows, side, 2))
    for options in ({}, {"pivot": True}):
        expected = pysolvers.solve_block_tridiagonal(lower, diag, upper, rhs, **options)
        found = solve_block_tridiagonal(lower, diag, upper, rhs, **options)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    check_gradients(solve_block_tridiagonal, (lower, diag, upper, rhs))
    shared = lambda *a: solve_block_tridiagonal(*a, rhs)  # noqa: E731
    check_gradients(shared, (lower[0, 0], diag[0, 0], upper[0, 0]))
    mapped = jax.vmap(solve_block_tridiagonal, (None, 0, None, 0))
    np.testing.assert_allclose(
        mapped(lower[0], diag, upper[0], rhs),
        pysolvers.solve_block_tridiagonal(lower[0], diag, upper[0], rhs),
        rtol=1e-12,
        atol=1e-13,
    )
    moved = [np.moveaxis(a, 1, 0) for a in (lower, diag, upper, rhs)]
    np.testing.assert_allclose(
        np.moveaxis(solve_block_tridiagonal(*moved, axis=0), 0, 1), found, rtol=1e-12, atol=1e-13
    )


def test_symmetric_and_complex_blocks():
    rng = np.random.default_rng(5)
    lower = rng.uniform(-1, 1, (4, 2, 2))
    diag = 5 * np.eye(2) + np.zeros((4, 2, 2))
    rhs = rng.standard_normal((3, 4, 2, 1))
    definite = lambda a, d, r: solve_block_tridiagonal(  # noqa: E731
        a, d, None, r, assume="positive definite"
    )
    expected = pysolvers.solve_block_tridiagonal(lower, diag, None, rhs, assume="positive definite")
    np.testing.assert_allclose(definite(lower, diag, rhs), expected, rtol=1e-12)
    check_gradients(definite, (lower, diag, rhs))
    assert np.isnan(definite(lower, -diag, rhs)).all()
    found = solve_block_tridiagonal(1j * lower, diag, lower, rhs)
    expected = pysolvers.solve_block_tridiagonal(1j * lower, diag, lower, rhs)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(ValueError, match="rhs must have the shape"):
        solve_block_tridiagonal(lower, diag, lower, rhs[..., 0, 0])


@pytest.mark.parametrize("rows", [slow(1), 4])
def test_logarithms_of_determinants(rows):
    rng = np.random.default_rng(rows)
    lower, diag, upper = rng.uniform(-1, 1, (3, 3, rows, 2, 2))
    diag = diag @ diag.swapaxes(-1, -2) + 6 * np.eye(2)
    dense = np.zeros((3, 2 * rows, 2 * rows))
    for i in range(rows):
        here, before = slice(2 * i, 2 * i + 2), slice(2 * i - 2, 2 * i)
        dense[:, here, here] = diag[:, i]
        if i:
            dense[:, here, before], dense[:, before, here] = lower[:, i], upper[:, i - 1]
    found = jax.jit(block_tridiagonal_logdet)(lower, diag, upper)
    np.testing.assert_allclose(found, np.linalg.slogdet(dense)[1], rtol=1e-13)
    check_gradients(block_tridiagonal_logdet, (lower, diag, upper))
    definite = lambda d, u: block_tridiagonal_logdet(  # noqa: E731
        None, d, u, assume="positive definite"
    )
    check_gradients(definite, (diag, upper))
    shared = lambda u, d: block_tridiagonal_logdet(u, d, u)  # noqa: E731
    check_gradients(shared, (upper[0, 0], diag))
    mapped = jax.vmap(block_tridiagonal_logdet, (None, 0, None))(lower[0], diag, upper[0])
    np.testing.assert_allclose(mapped, block_tridiagonal_logdet(lower[0], diag, upper[0]))
    assert np.isnan(definite(-diag, upper)).all()
    with pytest.raises(NotImplementedError, match="first derivatives only"):
        jax.hessian(lambda d: shared(upper[0, 0], d).sum())(diag)
    with pytest.raises(TypeError, match="must be real"):
        block_tridiagonal_logdet(lower, 1j * diag, upper)


def test_determinants_of_periodic_matrices():
    rng = np.random.default_rng(0)
    lower, upper = rng.uniform(-1, 1, (2, 2, 5, 2, 2))
    diag = rng.uniform(-1, 1, (2, 5, 2, 2)) + 5 * np.eye(2)
    factor = pysolvers.factor_block_tridiagonal(lower, diag, upper, periodic=True)
    value = lambda *blocks: block_tridiagonal_logdet(*blocks, periodic=True)  # noqa: E731
    np.testing.assert_allclose(value(lower, diag, upper), factor.logdet(), rtol=1e-13)
    check_gradients(value, (lower, diag, upper))
    options = {"assume": "positive definite", "periodic": True}
    diag = diag @ diag.swapaxes(-1, -2)
    diag[0, -1] *= -1
    found = block_tridiagonal_logdet(None, diag, 0 * upper, **options)
    assert np.isnan(found).tolist() == [True, False]


@pytest.mark.parametrize("periodic", [False, True])
def test_parts_of_right_hand_sides_stay_apart(periodic):
    rng = np.random.default_rng(3)
    blocks = [rng.uniform(-1, 1, (2, 5, 2, 2)) for _ in range(3)]
    blocks[1] += 9 * np.eye(2)
    rhs = rng.standard_normal((2, 5, 2, 3)) * (1 + 2j)
    check_gradients(
        lambda *operands: solve_block_tridiagonal(*operands, periodic=periodic), (*blocks, rhs)
    )
    rhs.imag[1, 2] = np.inf
    x = np.asarray(solve_block_tridiagonal(*blocks, rhs, periodic=periodic))
    expected = pysolvers.solve_block_tridiagonal(*blocks, rhs, periodic=periodic)
    np.testing.assert_allclose(x.real, expected.real, rtol=1e-10)
    np.testing.assert_allclose(x.imag[0], expected.imag[0], rtol=1e-10)
    assert not np.isfinite(x.imag[1]).all()


def test_periodic_five_diagonals_of_any_scale():
    rng = np.random.default_rng(0)
    rhs, line = rng.standard_normal((2, 9)), np.array([1.0, -4.0, 7.0, -4.0, 1.0])
    options = {"periodic": True, "pivot": False}
    expected = solve_pentadiagonal(*line, rhs, **options)
    for scale in (1e-200, 1e200):
        x = solve_pentadiagonal(*scale * line, scale * rhs, **options)
        np.testing.assert_allclose(x, expected, rtol=1e-13, atol=1e-15)


def test_errors_name_the_rule():
    line, blocks = np.ones(5), np.ones((5, 2, 2))
    with pytest.raises(ValueError, match="assume must be 'general' or 'positive definite'"):
        solve_pentadiagonal(*[line] * 6, assume="definite")
    with pytest.raises(ValueError, match="pivot=True contradicts assume='positive definite'"):
        solve_block_tridiagonal(*[blocks] * 4, assume="positive definite", pivot=True)
    with pytest.raises(ValueError, match="rhs must have at least one dimension"):
        solve_pentadiagonal(*[line] * 5, 1.0)
    with pytest.raises(np.exceptions.AxisError, match=r"axis must be in -1 .. 0 for"):
        solve_pentadiagonal(*[line] * 6, axis=1)
    with pytest.raises(ValueError, match="a periodic system must have at least"):
        solve_block_tridiagonal(*[blocks[:2]] * 4, periodic=True)
    with pytest.raises(ValueError, match="blocks must have 2 to"):
        solve_block_tridiagonal(*[np.ones((5, 1, 1))] * 4)
    assert solve_pentadiagonal(*[np.ones((0, 5))] * 6).shape == (0, 5)
    assert solve_block_tridiagonal(*[np.ones((0, 5, 2, 2))] * 4).shape == (0, 5, 2, 2)


def test_errors_name_the_axis():
    five, three = np.ones((5, 2)), np.ones((3, 2))
    with pytest.raises(ValueError, match="upper must have 5 or 4 entries along axis 0, got 3"):
        solve_pentadiagonal(five, five, five, three, five, five, axis=0)
    blocks = np.ones((5, 1, 2, 2))
    with pytest.raises(ValueError, match="lower has 3 rows along axis 0, the systems have 5"):
        solve_block_tridiagonal(blocks[:3], blocks, blocks, blocks, axis=0)


def test_a_right_hand_side_that_is_none_is_an_error():
    with pytest.raises(TypeError, match="solve_pentadiagonal: rhs is None: pass an array"):
        solve_pentadiagonal(1.0, 1.0, 7.0, 1.0, 1.0, None)

"""Blocks, five diagonals and linear smoothers of `pysolvers.torch`: values and gradients."""

import numpy as np
import pytest

import pysolvers
from pysolvers import smoothing

torch = pytest.importorskip("torch", exc_type=ImportError)

from pysolvers.torch import (  # noqa: E402
    block_tridiagonal_logdet,
    hodrick_prescott,
    solve_block_tridiagonal,
    solve_pentadiagonal,
    whittaker,
)


def tensors(*arrays, grad=True):
    return tuple(torch.tensor(a, dtype=torch.float64, requires_grad=grad) for a in arrays)


def checked(call, operands):
    assert torch.autograd.gradcheck(call, operands)
    assert torch.autograd.gradgradcheck(call, operands)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 5, 6, 7])
def test_five_diagonals(rows, periodic):
    if periodic and rows < 5:
        return
    rng = np.random.default_rng(rows)
    case = list(rng.uniform(-1, 1, (5, 2, rows)))
    case[2] += 6
    rhs = rng.standard_normal((3, 2, rows))
    operands = tensors(*case, rhs)
    for pivot in (None, True):
        found = solve_pentadiagonal(*operands, periodic=periodic, pivot=pivot)
        expected = pysolvers.solve_pentadiagonal(*case, rhs, periodic=periodic, pivot=pivot)
        np.testing.assert_allclose(found.detach(), expected, rtol=1e-12, atol=1e-13)
    checked(lambda *a: solve_pentadiagonal(*a, periodic=periodic), operands)


@pytest.mark.parametrize("periodic", [False, True])
def test_numbers_as_diagonals_of_one_system(periodic):
    """A number is a tensor with one row, which is no constant in an array of one dimension."""
    rhs = np.random.default_rng(1).standard_normal(7)
    bands = (1.0, -4.0, 7.0, -4.0, 1.0)
    found = solve_pentadiagonal(*bands, *tensors(rhs), periodic=periodic)
    expected = pysolvers.solve_pentadiagonal(*bands, rhs, periodic=periodic)

    np.testing.assert_allclose(found.detach(), expected, rtol=1e-12)


def test_symmetric_matrices_shared_ones_and_vmap():
    rng = np.random.default_rng(0)
    d, u, v = rng.uniform(-1, 1, (3, 7))
    d, rhs = d + 6, rng.standard_normal((3, 7))
    operands = tensors(d, u, v, rhs)

    def symmetric(d, u, v, r):
        return solve_pentadiagonal(None, None, d, u, v, r, assume="positive definite")

    expected = pysolvers.solve_pentadiagonal(None, None, d, u, v, rhs, assume="positive definite")
    np.testing.assert_allclose(symmetric(*operands).detach(), expected, rtol=1e-12)
    checked(symmetric, operands)
    number = torch.tensor(6.0, dtype=torch.float64, requires_grad=True)
    checked(lambda d, r: symmetric(d, 0.5, -0.25, r), (number, operands[3]))
    mapped = torch.vmap(symmetric, (None, None, None, 0))(*operands)
    np.testing.assert_allclose(mapped.detach(), expected, rtol=1e-12)
    gradient = torch.func.grad(lambda d: symmetric(d, *operands[1:]).sum())(operands[0])
    symmetric(*operands).sum().backward()
    np.testing.assert_allclose(gradient.detach(), operands[0].grad, rtol=1e-12)
    assert symmetric(-operands[0], *operands[1:]).isnan().all()
    both = solve_pentadiagonal(1.0, 0.5, *operands[:3], torch.complex(operands[3], operands[3]))
    np.testing.assert_allclose(both.real.detach(), both.imag.detach())


def test_periodic_matrices_whose_open_part_is_singular():
    rhs = np.random.default_rng(1).standard_normal((2, 7))
    x = solve_pentadiagonal(0.0, 1.0, 1.0, 1.0, 0.0, torch.as_tensor(rhs), periodic=True).numpy()
    matrix = sum(np.roll(np.eye(7), k, axis=1) for k in (-1, 0, 1))
    np.testing.assert_allclose(x @ matrix.T, rhs, rtol=0, atol=1e-14)
    one = torch.eye(2, dtype=torch.float64)
    rest, sides = one.expand(7, 2, 2) * 0, torch.as_tensor(rhs)[..., None, None].expand(2, 7, 2, 1)
    x = solve_block_tridiagonal(one, rest, 2 * one, sides, periodic=True)
    product = x.roll(1, 1) + 2 * x.roll(-1, 1)
    np.testing.assert_allclose(product, sides, rtol=0, atol=1e-14)


@pytest.mark.parametrize("side", [2, 5])
@pytest.mark.parametrize("rows", [1, 3])
def test_blocks(rows, side):
    rng = np.random.default_rng(side)
    lower, diag, upper = rng.uniform(-1, 1, (3, 2, rows, side, side))
    diag = diag + 4 * side * np.eye(side)
    rhs = rng.standard_normal((2, rows, side, 1))
    operands = tensors(lower, diag, upper, rhs)
    expected = pysolvers.solve_block_tridiagonal(lower, diag, upper, rhs)
    np.testing.assert_allclose(solve_block_tridiagonal(*operands).detach(), expected, rtol=1e-12)
    checked(solve_block_tridiagonal, operands)
    shared = tensors(lower[0, 0], diag[0, 0], rhs)
    checked(
        lambda a, d, r: solve_block_tridiagonal(a, d, None, r, assume="positive definite"), shared
    )


@pytest.mark.parametrize("order", [1, 2])
def test_smoothers(order):
    rng = np.random.default_rng(order)
    y, weights, lam = rng.standard_normal((3, 8)), rng.uniform(0.5, 1, 8), np.array([1.0, 9, 99])
    found = whittaker(*tensors(y, lam), order=order, weights=tensors(weights)[0])
    expected = smoothing.whittaker(y, lam, order=order, weights=weights)
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-11)
    checked(lambda y, lam, w: whittaker(y, lam, order=order, weights=w), tensors(y, lam, weights))
    moved = whittaker(*tensors(y.T), 9.0, order=order, axis=0)
    np.testing.assert_allclose(
        moved.detach().T, smoothing.whittaker(y, 9.0, order=order), rtol=1e-11
    )
    cycle, trend = hodrick_prescott(*tensors(y), 99.0)
    np.testing.assert_allclose(trend.detach(), smoothing.hodrick_prescott(y, 99.0)[1], rtol=1e-11)
    np.testing.assert_allclose((cycle + trend).detach(), y, rtol=1e-13)
    y[0, 3], weights[3] = np.nan, 0
    values, own = tensors(y, weights)
    whittaker(values, 9.0, order=order, weights=own).sum().backward()
    assert values.grad.isfinite().all()
    assert (values.grad[:, 3] == 0).all()


@pytest.mark.parametrize("assume", ["general", "positive definite"])
@pytest.mark.parametrize(("rows", "axis"), [(1, -1), (4, -1), (3, 0)])
def test_logarithms_of_determinants(rows, axis, assume):
    """Values and gradients are those of dense matrices; one block for all rows is a constant."""
    rng = np.random.default_rng(rows)
    shape = (2, rows, 2, 2) if axis else (rows, 2, 2, 2)
    lower, diag, upper = rng.uniform(-1, 1, (3, *shape))
    diag = diag @ diag.swapaxes(-1, -2) + 5 * np.eye(2)
    operands = tensors(diag, upper) if assume != "general" else tensors(lower, diag, upper)

    def call(*blocks):
        *below, diag, above = blocks
        below = below[0] if below else None
        return block_tridiagonal_logdet(below, diag, above, axis=axis, assume=assume)

    def dense(*blocks):
        diag, above = (b.movedim(-3 if axis else 0, -3) for b in blocks[-2:])
        below = blocks[0].movedim(-3 if axis else 0, -3) if len(blocks) == 3 else None
        full = torch.zeros(2, 2 * rows, 2 * rows, dtype=torch.float64)
        for i in range(rows):
            place = slice(2 * i, 2 * i + 2)
            full[:, place, place] = diag[:, i]
            if i:
                before = slice(2 * i - 2, 2 * i)
                full[:, before, place] = above[:, i - 1]
                left = above[:, i - 1].mT if below is None else below[:, i]
                full[:, place, before] = left
        return torch.linalg.slogdet(full)[1]

    weights = torch.tensor([1.0, -2.0], dtype=torch.float64)
    found = torch.autograd.grad((call(*operands) * weights).sum(), operands)
    values = (dense(*operands) * weights).sum()
    expected = torch.autograd.grad(values, operands, materialize_grads=True)
    np.testing.assert_allclose(call(*operands).detach(), dense(*operands).detach(), rtol=1e-13)
    for own, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-11, atol=1e-13)
    if rows > 1 and axis:
        one = tensors(3 * np.eye(2))[0]
        torch.autograd.gradcheck(
            lambda b: call(*operands[:-2], b[None] + 0 * operands[-2], operands[-1]), one
        )


def test_determinants_under_transformations_and_of_matrices_without_them():
    rng = np.random.default_rng(2)
    diag, upper = tensors(rng.uniform(-1, 1, (3, 4, 2, 2)) + 6 * np.eye(2), np.zeros((4, 2, 2)))
    lone = tensors(rng.uniform(-1, 1, (4, 2, 2)))[0]

    def value(d):
        return block_tridiagonal_logdet(lone, d, upper)

    mapped = torch.vmap(value)(diag)
    np.testing.assert_allclose(mapped.detach(), value(diag).detach())
    gradient = torch.vmap(torch.func.grad(value))(diag)
    (expected,) = torch.autograd.grad(value(diag).sum(), diag)
    np.testing.assert_allclose(gradient.detach(), expected, rtol=1e-13)
    first = torch.autograd.grad(value(diag).sum(), diag, create_graph=True)[0]
    with pytest.raises(NotImplementedError, match="first derivatives only"):
        first.sum().backward()
    found = block_tridiagonal_logdet(None, -diag, upper, assume="positive definite")
    assert found.isnan().all()
    assert value(0 * diag).isnan().all()
    with pytest.raises(TypeError, match="must be real"):
        value(diag * 1j)
    with pytest.raises(ValueError, match="row exchanges"):
        torch.func.grad(lambda d: value(d).sum())(0.1 * diag)


@pytest.mark.parametrize("periodic", [False, True])
def test_complex_and_periodic_matrices(periodic):
    rng = np.random.default_rng(4)
    options = {"periodic": periodic, "pivot": False}
    case = [rng.uniform(-1, 1, (2, 6)) * np.exp(1j * k) for k in range(6)]
    case[2] += 9
    tensors = [torch.tensor(a, requires_grad=True) for a in case]
    found = solve_pentadiagonal(*tensors, **options)
    expected = pysolvers.solve_pentadiagonal(*case, **options)
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-11)
    assert torch.autograd.gradcheck(lambda *a: solve_pentadiagonal(*a, **options), tensors)
    case = [*rng.uniform(-1, 1, (3, 2, 4, 2, 2)), rng.standard_normal((2, 4, 2, 1))]
    case[1] += 8 * np.eye(2)
    tensors = [torch.tensor(a, requires_grad=True) for a in case]
    found = solve_block_tridiagonal(*tensors, **options)
    expected = pysolvers.solve_block_tridiagonal(*case, **options)
    np.testing.assert_allclose(found.detach(), expected, rtol=1e-11)
    assert torch.autograd.gradcheck(lambda *a: solve_block_tridiagonal(*a, **options), tensors)


@pytest.mark.parametrize("rows", [3, 6])
def test_determinants_of_periodic_matrices(rows):
    rng = np.random.default_rng(rows)
    lower, upper = rng.uniform(-1, 1, (2, 2, rows, 2, 2))
    diag = rng.uniform(-1, 1, (2, rows, 2, 2)) + 5 * np.eye(2)
    factor = pysolvers.factor_block_tridiagonal(lower, diag, upper, periodic=True)
    operands = tensors(lower, diag, upper)

    def value(*blocks):
        return block_tridiagonal_logdet(*blocks, periodic=True)

    np.testing.assert_allclose(value(*operands).detach(), factor.logdet(), rtol=1e-13)
    assert torch.autograd.gradcheck(value, operands)
    definite = diag @ diag.swapaxes(-1, -2) + 5 * np.eye(2)
    options = {"assume": "positive definite", "periodic": True}
    factor = pysolvers.factor_block_tridiagonal(None, definite, upper, **options)
    operands = tensors(definite, upper, grad=False)
    found = block_tridiagonal_logdet(None, *operands, **options)
    np.testing.assert_allclose(found, factor.logdet(), rtol=1e-13)
    operands[0][0, -1] *= -1
    found = block_tridiagonal_logdet(None, *operands, **options)
    assert found.isnan().tolist() == [True, False]


@pytest.mark.parametrize("periodic", [False, True])
def test_real_matrices_with_complex_right_hand_sides(periodic):
    rng = np.random.default_rng(3)
    blocks = [rng.uniform(-1, 1, (2, 5, 2, 2)) for _ in range(3)]
    blocks[1] += 9 * np.eye(2)
    rhs = rng.standard_normal((2, 5, 2, 3)) * (1 + 2j)
    rhs.imag[1, 2] = np.inf
    operands = [torch.tensor(a) for a in (*blocks, rhs)]
    x = solve_block_tridiagonal(*operands, periodic=periodic).numpy()
    expected = pysolvers.solve_block_tridiagonal(*blocks, rhs, periodic=periodic)
    np.testing.assert_allclose(x.real, expected.real, rtol=1e-10)
    np.testing.assert_allclose(x.imag[0], expected.imag[0], rtol=1e-10)
    assert not np.isfinite(x.imag[1]).all()

"""`pysolvers.torch.linear_recurrence`: values, gradients and transformations."""

import numpy as np
import pytest

import pysolvers

torch = pytest.importorskip("torch", exc_type=ImportError)

from pysolvers.torch import linear_recurrence  # noqa: E402


def operands(shape, order, dtype=torch.float64):
    torch.manual_seed(0)
    a, second = (
        (0.4 * torch.randn(shape, dtype=dtype).clamp(-1.5, 1.5) for _ in range(2))
        if (not dtype.is_complex)
        else (0.4 * torch.randn(shape, dtype=dtype) for _ in range(2))
    )
    initial = tuple(torch.randn(shape[:-1], dtype=dtype) for _ in range(order))
    return a, torch.randn(shape, dtype=dtype), second if order == 2 else None, initial


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128])
def test_values_and_gradients(dtype, reverse, order):
    a, b, second, initial = operands((2, 5), order, dtype)

    def values(a, b, *others):
        own = others[0] if order == 2 else None
        given = others[1:] if order == 2 else others[0]
        return linear_recurrence(a, b, second=own, initial=given, reverse=reverse)

    inputs = (a, b, *((second, *initial) if order == 2 else initial))
    wanted = pysolvers.linear_recurrence(
        a.numpy(),
        b.numpy(),
        second=None if second is None else second.numpy(),
        initial=tuple(v.numpy() for v in initial) if order == 2 else initial[0].numpy(),
        reverse=reverse,
    )
    assert np.allclose(values(*inputs), wanted, rtol=1e-13, atol=1e-13)
    for tensor in inputs:
        tensor.requires_grad_()
    assert torch.autograd.gradcheck(values, inputs)
    assert torch.autograd.gradgradcheck(values, inputs)


def test_shared_coefficients_and_axes():
    _, b, _, _ = operands((4, 6), 1)
    line = torch.linspace(-0.5, 0.5, 6, dtype=b.dtype, requires_grad=True)
    linear_recurrence(line, b).square().sum().backward()
    own = line.detach().expand(4, 6).clone().requires_grad_()
    linear_recurrence(own.T, b.T, axis=0).square().sum().backward()

    assert torch.allclose(line.grad, own.grad.sum(0))
    number = torch.tensor(0.5, dtype=b.dtype, requires_grad=True)
    linear_recurrence(number, b).sum().backward()
    assert number.grad.shape == ()


def test_vmap_and_func():
    a, b, _, _ = operands((3, 4, 6), 1)
    wanted = linear_recurrence(a, b)

    assert torch.allclose(torch.vmap(linear_recurrence)(a, b), wanted)
    shared = torch.vmap(linear_recurrence, in_dims=(None, 0))(a[0], b)
    assert torch.allclose(shared, linear_recurrence(a[0], b))
    gradient = torch.func.grad(lambda a: linear_recurrence(a, b).sum())(a)
    own = a.clone().requires_grad_()
    linear_recurrence(own, b).sum().backward()
    assert torch.allclose(gradient, own.grad)
    with pytest.raises(TypeError, match="need a tensor or a number"):
        linear_recurrence(a.numpy(), b)

"""Gradients of theta steps with and without a graph of the reverse pass: two ways to one number."""

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

from pysolvers.torch import theta_step  # noqa: E402


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("theta", [0.6, 1.0])
@pytest.mark.parametrize(
    ("shape", "axis"),  # the last ones are stored past the caches
    [((3, 7), 1), ((7, 3), 0), ((4, 5, 6), 1), ((40_001, 17), 1), ((17, 40_001), 0)],
)
def test_gradients_without_a_graph_are_those_with_one(shape, axis, theta, periodic):
    torch.manual_seed(0)
    lower, diag, upper, u, g = torch.rand(5, *shape, dtype=torch.float64).unbind()
    for own in (u, u.select(axis, 0).unsqueeze(axis).expand(shape), u.flip(0)):
        leaves = [a.clone().requires_grad_() for a in (lower, -diag - 2, upper)]
        leaves.append(own.detach().requires_grad_())
        x = theta_step(*leaves, dt=0.3, theta=theta, axis=axis, periodic=periodic)
        for cotangent in (g, torch.ones((), dtype=torch.float64).expand(shape)):
            fast = torch.autograd.grad(x, leaves, cotangent, retain_graph=True)
            slow = torch.autograd.grad(x, leaves, cotangent, create_graph=True)
            for one, other in zip(fast, slow, strict=True):
                torch.testing.assert_close(one, other.detach(), rtol=1e-12, atol=1e-13)

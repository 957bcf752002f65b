"""Gradients of theta steps with and without a graph of the reverse pass: two ways to one number."""

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from pysolvers.torch import linear_recurrence, solve_tridiagonal, theta_step  # noqa: E402


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


class Calls(TorchDispatchMode):
    """A mode that counts the calls of an operator."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func is torch.ops.pysolvers.theta_step.default
        return func(*args, **(kwargs or {}))


def matrix_and_values():
    torch.manual_seed(1)
    lower, diag, upper, u = torch.rand(4, 3, 7, dtype=torch.float64).unbind()
    return [a.clone().requires_grad_() for a in (lower, -diag - 2, upper, u)]


def test_modes_and_classes_of_tensors_see_the_operator():
    """Other calls of the same numbers are made without the dispatcher."""
    leaves = matrix_and_values()
    expected = torch.autograd.grad(theta_step(*leaves, dt=0.3).square().sum(), leaves)
    with Calls() as calls:
        x = theta_step(*leaves, dt=0.3)
        found = torch.autograd.grad(x.square().sum(), leaves)
    assert calls.count == 2
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=0)

    plain = [a.detach() for a in leaves]
    with FakeTensorMode() as mode:
        fake = [mode.from_tensor(a) for a in plain]
        assert isinstance(theta_step(*fake, dt=0.3), FakeTensor)
    assert isinstance(theta_step(*fake, dt=0.3), FakeTensor)
    traced = make_fx(lambda *a: theta_step(*a, dt=0.3))(*plain)
    assert "pysolvers.theta_step" in traced.code


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (3,), (0, 2), (1, 3), (5,), (1, 4), (4, 5)])
def test_gradients_of_some_operands_are_those_of_all(wanted):
    leaves = [*matrix_and_values(), torch.rand(7, dtype=torch.float64).requires_grad_()]
    leaves.append(torch.tensor(0.3, dtype=torch.float64, requires_grad=True))

    def gradients(given, among):
        *matrix, u, source, dt = given
        x = theta_step(*matrix, u, source=source, dt=dt)
        return torch.autograd.grad(x.square().sum(), among)

    given = [a if k in wanted else a.detach() for k, a in enumerate(leaves)]
    found = gradients(given, [given[k] for k in wanted])
    expected = gradients(leaves, leaves)
    for k, own in zip(wanted, found, strict=True):
        torch.testing.assert_close(own, expected[k], rtol=1e-12, atol=1e-14)


def test_gradients_of_batches_of_cotangents_and_of_gradients():
    leaves = matrix_and_values()
    x = theta_step(*leaves, dt=0.3)
    g = torch.rand(5, 3, 7, dtype=torch.float64)
    found = torch.autograd.grad(x, leaves, g, is_grads_batched=True, retain_graph=True)
    for k in range(len(g)):
        one = torch.autograd.grad(x, leaves, g[k], retain_graph=True)
        torch.testing.assert_close([a[k] for a in found], list(one), rtol=1e-12, atol=1e-14)
    assert torch.autograd.gradgradcheck(lambda *a: theta_step(*a, dt=0.3, axis=0), leaves)


def test_results_without_gradients_have_no_graph():
    leaves = matrix_and_values()
    assert not theta_step(*(a.detach() for a in leaves), dt=0.3).requires_grad
    with torch.no_grad():
        assert not theta_step(*leaves, dt=0.3).requires_grad
    dt = torch.tensor(0.3, requires_grad=True)
    (slope,) = torch.autograd.grad(theta_step(*(a.detach() for a in leaves), dt=dt).sum(), dt)
    h = 1e-6
    ends = [theta_step(*(a.detach() for a in leaves), dt=0.3 + s).sum() for s in (-h, h)]
    torch.testing.assert_close(slope.double(), (ends[1] - ends[0]) / (2 * h), rtol=1e-5, atol=1e-7)


# Of the first dual number.
@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")
@pytest.mark.parametrize("needs_gradient", [False, True])
def test_derivatives_in_forward_mode_are_refused(needs_gradient):
    """They were lost without a word if no operand needed a gradient."""
    *matrix, u = (a.detach() for a in matrix_and_values())
    calls = [
        lambda u: theta_step(*matrix, u, dt=0.3),
        lambda u: solve_tridiagonal(*matrix, u),
        lambda u: linear_recurrence(0.5, u),
    ]
    for call in calls:
        with forward_ad.dual_level():
            torch.testing.assert_close(call(u), call(u.clone()))
            dual = forward_ad.make_dual(u.clone().requires_grad_(needs_gradient), u)
            with pytest.raises(NotImplementedError, match="jvp"):
                call(dual)


def test_lazy_negatives_are_values():
    """The imaginary part of a lazy conjugate is a lazy negative."""
    leaves = matrix_and_values()
    x = theta_step(*leaves, dt=0.3)
    g = torch.complex(torch.zeros_like(x.detach()), torch.rand_like(x.detach())).conj().imag
    assert g.is_neg()
    lazy = [torch.complex(a.detach(), -a.detach()).conj().imag.requires_grad_() for a in leaves]
    y = theta_step(*lazy, dt=0.3)
    assert all(a.is_neg() for a in lazy)
    torch.testing.assert_close(y, x)
    expected = torch.autograd.grad(x, leaves, g.resolve_neg(), retain_graph=True)
    for result, given in ((x, leaves), (y, lazy)):
        found = torch.autograd.grad(result, given, g)
        torch.testing.assert_close(found, expected, rtol=1e-13, atol=0)

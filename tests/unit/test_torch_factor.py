"""`pysolvers.torch.factor_tridiagonal`: solutions and gradients equal those of dense solves."""

import gc
import weakref

import numpy as np
import oracle
import pytest

import pysolvers

torch = pytest.importorskip("torch", exc_type=ImportError)

from pysolvers.torch import _factor, factor_tridiagonal, solve_tridiagonal  # noqa: E402

# Of torch.compile itself, in torch 2.7.
pytestmark = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")

of_torch_itself = pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")

REAL, COMPLEX = torch.float64, torch.complex128
TRANS = ("N", "T", "H")


def system(batch=(3,), rows=5, dtype=REAL, *, sides=(3,)):
    """Return diagonals of dominant matrices and right-hand sides that need gradients."""
    rng = np.random.default_rng(7)
    kind = np.dtype(str(dtype).removeprefix("torch."))
    diagonals = oracle.dominant(rng, (*batch, rows), kind)[:3]
    rhs = oracle.uniform(rng, (*sides, rows), kind)
    return [torch.tensor(a).requires_grad_() for a in (*diagonals, rhs)]


def dense_solve(lower, diag, upper, rhs, *, trans="N", periodic=False):
    rows = rhs.shape[-1]
    dense = torch.diag_embed(diag)
    if periodic:
        identity = torch.eye(rows, dtype=diag.dtype)
        dense = dense + lower.unsqueeze(-1) * identity.roll(-1, 1)
        dense = dense + upper.unsqueeze(-1) * identity.roll(1, 1)
    else:
        dense = dense + torch.diag_embed(lower[..., 1:], -1)
        dense = dense + torch.diag_embed(upper[..., :-1], 1)
    dense = {"N": dense, "T": dense.mT, "H": dense.mH}[trans]
    return torch.linalg.solve(dense.to(rhs.dtype), rhs.unsqueeze(-1)).squeeze(-1)


def solve(*operands, trans="N", **options):
    *diagonals, rhs = operands
    return factor_tridiagonal(*diagonals, **options).solve(rhs, trans=trans)


def nearly(found, expected):
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("trans", TRANS)
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("batch", [(3,), ()])
@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
def test_solution_and_gradients_are_those_of_a_dense_solve(dtype, batch, periodic, trans):
    operands = system(batch, dtype=dtype, sides=(2, 3))
    options = {"periodic": periodic, "trans": trans}
    x, y = solve(*operands, **options), dense_solve(*operands, **options)
    nearly(x, y)
    weights = torch.rand_like(x)
    for one, other in zip(
        torch.autograd.grad((x * weights).abs().square().sum(), operands),
        torch.autograd.grad((y * weights).abs().square().sum(), operands),
        strict=True,
    ):
        nearly(one, other)


@pytest.mark.parametrize("trans", TRANS)
@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
def test_first_and_second_derivatives_are_those_of_finite_differences(dtype, trans):
    operands = system((), 4, dtype, sides=(2,))

    def function(*values):
        return solve(*values, trans=trans)

    assert torch.autograd.gradcheck(function, operands)
    assert torch.autograd.gradgradcheck(function, operands)


def test_a_real_matrix_with_complex_sides():
    *diagonals, _ = system(())
    rhs = system((), dtype=COMPLEX)[3]
    x = solve(*diagonals, rhs, trans="H")
    y = dense_solve(*diagonals, rhs, trans="H")
    nearly(x, y)
    operands = [*diagonals, rhs]
    for one, other in zip(
        torch.autograd.grad(x.abs().square().sum(), operands),
        torch.autograd.grad(y.abs().square().sum(), operands),
        strict=True,
    ):
        nearly(one, other)


def test_matrices_along_another_axis_and_constant_diagonals():
    _, diag, _, rhs = system((3,), sides=(2, 3))
    x = factor_tridiagonal(-1.0, diag.mT, -0.5, axis=0).solve(rhs.movedim(-1, 1))
    expected = solve_tridiagonal(-1.0, diag, -0.5, rhs)
    nearly(x.movedim(1, -1), expected)
    constant = factor_tridiagonal(torch.tensor(-1.0, dtype=REAL), 3.0, -1.0, rows=5)
    nearly(constant.solve(rhs, axis=-1), solve_tridiagonal(-1.0, 3.0, -1.0, rhs))


def test_the_reverse_pass_makes_no_factors(monkeypatch):
    operands = system()
    x = solve(*operands)
    monkeypatch.setattr(_factor, "_factors", None)
    torch.autograd.grad(x.sum(), operands, create_graph=True)[1].sum().backward()


def test_factors_exist_as_long_as_they_can_be_used():
    *diagonals, rhs = system()
    factor = factor_tridiagonal(*diagonals)
    made = weakref.ref(_factor._OWNERS[int(factor._number)])
    x = factor.solve(rhs)
    del factor
    gc.collect()
    assert made() is not None  # for the reverse pass
    x.sum().backward()
    del x
    gc.collect()
    assert made() is None


def test_a_copied_number_gives_the_same_solution():
    *diagonals, rhs = system()
    factor = factor_tridiagonal(*diagonals)
    expected = factor.solve(rhs)
    factor._number = factor._number + 10**9
    nearly(factor.solve(rhs), expected)


@pytest.mark.parametrize(("diag_dim", "rhs_dim"), [(0, None), (None, 0), (0, 0)])
def test_vmap(diag_dim, rhs_dim):
    lower, diag, upper, rhs = (a.detach() for a in system())
    diag = diag[0] if diag_dim is None else diag
    rhs = rhs[0] if rhs_dim is None else rhs
    values = [lower[0], diag, upper[0], rhs]
    dims = (None, diag_dim, None, rhs_dim)
    x = torch.vmap(solve, in_dims=dims)(*values)
    nearly(x, solve_tridiagonal(*values))

    def loss(*operands):
        return solve(*operands).square().sum()

    found = torch.vmap(torch.func.grad(loss, (0, 1, 2, 3)), in_dims=dims)(*values)
    for k in range(3):
        one = [a[k] if dim == 0 else a for a, dim in zip(values, dims, strict=True)]
        leaves = [a.clone().requires_grad_() for a in one]
        expected = torch.autograd.grad(dense_solve(*leaves).square().sum(), leaves)
        for gradient, other in zip(found, expected, strict=True):
            nearly(gradient[k], other)


def test_vmap_inside_vmap_over_other_axes():
    lower, diag, upper, _ = (a.detach() for a in system())
    rhs = system(sides=(3, 3))[3].detach()
    twice = torch.vmap(torch.vmap(solve, (None, None, None, 0)), (None, 0, None, None))
    x = twice(lower[0], diag, upper[0], rhs[0])
    nearly(x, solve_tridiagonal(lower[0], diag[:, None], upper[0], rhs[0]))


@of_torch_itself
def test_compiled_without_graph_breaks():
    torch._dynamo.reset()
    operands = system()
    *diagonals, rhs = operands

    def loss(*operands):
        return solve(*operands).square().sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for one, other in zip(
        torch.autograd.grad(compiled(*operands), operands),
        torch.autograd.grad(loss(*operands), operands),
        strict=True,
    ):
        nearly(one, other)
    factor = factor_tridiagonal(*diagonals)
    compiled = torch.compile(lambda b: factor.solve(b), fullgraph=True, backend="aot_eager")
    nearly(compiled(rhs), factor.solve(rhs))


@of_torch_itself
def test_operators_pass_the_checks_of_torch():
    *diagonals, rhs = system()
    options = (5, False, None, "nan")
    factor = factor_tridiagonal(*diagonals)
    solve_factored = torch.ops.pysolvers.solve_factored.default
    torch.library.opcheck(solve_factored, (factor._number, *diagonals, rhs, "H", *options))


def test_singular_matrices_and_bad_arguments():
    lower, diag, upper, rhs = (a.detach() for a in system())
    for diagonal in (lower, diag, upper):
        diagonal[1] = 0
    x = factor_tridiagonal(lower, diag, upper).solve(rhs)
    assert x.isnan().all(1).tolist() == [False, True, False]
    with pytest.raises(pysolvers.SingularSystemError):
        factor_tridiagonal(lower, diag, upper, on_singular="raise")
    factor = factor_tridiagonal(*system()[:3])
    with pytest.raises(ValueError, match="trans must be"):
        factor.solve(rhs, trans="C")
    with pytest.raises(ValueError, match="do not broadcast along axis -1"):
        factor.solve(rhs[:, :4])
    with pytest.raises(ValueError, match=r"axis must be in -2 \.\. 1"):
        factor.solve(rhs, axis=2)
    with pytest.raises(TypeError, match="rhs"):
        factor.solve(rhs.numpy())

"""`pysolvers.torch.factor_tridiagonal`: solutions and gradients equal those of dense solves."""

import gc
import itertools
import weakref

import numpy as np
import oracle
import pytest

import pysolvers

torch = pytest.importorskip("torch", exc_type=ImportError)

from pysolvers.torch import (  # noqa: E402
    _factor,
    factor_theta,
    factor_tridiagonal,
    solve_tridiagonal,
)

# Of torch.compile itself, in torch 2.7.
pytestmark = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")

of_torch_itself = pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")

REAL, COMPLEX = torch.float64, torch.complex128
TRANS = ("N", "T", "H")
DTYPES = (torch.float32, REAL, torch.complex64, COMPLEX)
SUBSETS = [s for s in itertools.product((None, 0), repeat=4) if any(dim == 0 for dim in s)]


def system(batch=(3,), rows=5, dtype=REAL, *, sides=(3,), dominant=True):
    """Return diagonals of matrices and right-hand sides that need gradients."""
    rng = np.random.default_rng(7)
    kind = np.dtype(str(dtype).removeprefix("torch."))
    make = oracle.dominant if dominant else oracle.general
    diagonals = make(rng, (*batch, rows), kind)[:3]
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


def nearly(found, expected, most=5e3):
    bound = most * torch.finfo(expected.dtype).eps * max(1.0, float(expected.detach().abs().max()))
    torch.testing.assert_close(found, expected, rtol=0, atol=bound)


@pytest.mark.parametrize("trans", TRANS)
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("batch", [(3,), ()])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pivot", [None, True])
def test_solution_and_gradients_are_those_of_a_dense_solve(pivot, dtype, batch, periodic, trans):
    operands = system(batch, dtype=dtype, sides=(2, 3), dominant=pivot is None)
    options = {"periodic": periodic, "trans": trans}
    x, y = solve(*operands, pivot=pivot, **options), dense_solve(*operands, **options)
    most = 5e3 if pivot is None else 1e5
    nearly(x, y, most)
    weights = torch.rand_like(x)
    for one, other in zip(
        torch.autograd.grad((x * weights).abs().square().sum(), operands),
        torch.autograd.grad((y * weights).abs().square().sum(), operands),
        strict=True,
    ):
        nearly(one, other, most)


@pytest.mark.parametrize("trans", TRANS)
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
def test_first_and_second_derivatives_are_those_of_finite_differences(dtype, periodic, trans):
    operands = system((), 4, dtype, sides=(2,))

    def function(*values):
        return solve(*values, periodic=periodic, trans=trans)

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


@pytest.mark.parametrize("where", [None, torch.arange(4) != 2])
@pytest.mark.parametrize("shape", [(4,), (4, 4), (4, 4, 4)])
def test_axis_of_a_factor_is_that_of_right_hand_sides(shape, where):
    lower, diag, upper, _ = (a.detach() for a in system((), 4))
    cube = torch.rand(shape, dtype=REAL, generator=torch.manual_seed(0))
    own = [a.numpy() for a in (lower, diag, upper)]
    mask = None if where is None else where.numpy()
    for axis in range(-len(shape), len(shape)):
        made = factor_tridiagonal(lower, diag, upper, axis=axis, where=where)
        x = made.solve(cube)
        options = {"axis": axis, "where": mask}
        expected = torch.tensor(pysolvers.solve_tridiagonal(*own, cube.numpy(), **options))
        nearly(x, expected)
        nearly(made.solve(cube, axis=axis), expected)
        nearly(made.multiply(x), cube)
        assert made.axis == axis
        transposed = pysolvers.factor_tridiagonal(*own, **options).solve(cube.numpy(), trans="T")
        nearly(made.solve(cube, trans="T"), torch.tensor(transposed))
        rod = factor_theta(lower, -diag, upper, dt=0.3, theta=0.7, axis=axis, where=where)
        source = torch.arange(4.0, dtype=REAL)
        step = {"dt": 0.3, "theta": 0.7, "source": source.numpy(), **options}
        expected = pysolvers.theta_step(own[0], -own[1], own[2], cube.numpy(), **step)
        nearly(rod.step(cube, source), torch.tensor(expected))
        nearly(rod.step(cube, source, axis=axis), torch.tensor(expected))
        mapped = torch.vmap(made.solve)(torch.stack([cube, 2 * cube]))
        nearly(mapped, torch.stack([x, 2 * x]))
    for axis in (len(shape), -len(shape) - 1):
        made = factor_tridiagonal(lower, diag, upper, axis=axis)
        rod = factor_theta(lower, -diag, upper, dt=0.1, axis=axis)
        for call in (made.solve, made.multiply, rod.step):
            with pytest.raises(np.exceptions.AxisError, match=f"axis of the factor .*got {axis}"):
                call(cube)


def test_products_have_the_axis_of_the_result():
    *diagonals, _ = (a.detach() for a in system((4, 4), 4))
    made = factor_tridiagonal(*(a.mT for a in diagonals), axis=1)
    line = torch.arange(4.0, dtype=REAL)
    for x in (line, line[:, None] + torch.ones(4, 4, dtype=REAL)):
        own = x if x.ndim == 1 else x.mT
        expected = pysolvers.tridiagonal_matvec(*(a.numpy() for a in diagonals), own.numpy())
        nearly(made.multiply(x), torch.tensor(expected).mT)
    nearly(made.multiply(line, axis=-1), made.multiply(line).mT)


@pytest.mark.parametrize("axis", [-1, 0])
def test_a_right_hand_side_of_one_axis_is_that_of_all_matrices(axis):
    lower, diag, upper, rhs = (a.detach() for a in system((3,)))
    one = rhs[0].clone().requires_grad_()

    x = factor_tridiagonal(*(a.movedim(-1, axis) for a in (lower, diag, upper)), axis=axis).solve(
        one
    )

    expected = solve_tridiagonal(lower, diag, upper, one)
    nearly(x.movedim(axis, -1), expected)
    nearly(torch.autograd.grad(x.sum(), one)[0], torch.autograd.grad(expected.sum(), one)[0])


def test_the_reverse_pass_makes_no_factors(monkeypatch):
    operands = system()
    x = solve(*operands)
    monkeypatch.setattr(_factor, "_factors", None)
    torch.autograd.grad(x.sum(), operands, create_graph=True)[1].sum().backward()


@pytest.mark.parametrize("needed", [(True,) * 4, (False, False, False, True)])
def test_only_the_diagonals_and_x_are_kept(needed):
    operands = [
        a.detach().requires_grad_(is_needed) for a, is_needed in zip(system(), needed, strict=True)
    ]
    kept = []
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda a: kept.append(a) or a, lambda a: a)
    with hooks:
        x = solve(*operands)
    fields = {a.data_ptr() for a in kept if a.numel() > 1}
    expected = {a.data_ptr() for a in operands[:3]} | ({x.data_ptr()} if needed[0] else set())
    assert fields == expected


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


@pytest.mark.parametrize("dims", SUBSETS)
def test_vmap_over_each_subset_of_operands(dims):
    operands = [a.detach() for a in system()]
    values = [a if dim == 0 else a[0] for a, dim in zip(operands, dims, strict=True)]
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
    options = (5, False, None, "nan", False, False)
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
    with pytest.raises(ValueError, match=r"rhs has shape \(3, 4\), to which \(3, 5\) of the"):
        factor.solve(rhs[:, :4])
    with pytest.raises(ValueError, match="rhs has 4 entries, but the systems along axis 1 have 5"):
        factor.solve(rhs[0, :4])
    with pytest.raises(ValueError, match=r"axis must be in -2 \.\. 1"):
        factor.solve(rhs, axis=2)
    with pytest.raises(TypeError, match="rhs"):
        factor.solve(rhs.numpy())


def test_coefficients_of_one_row_need_rows():
    """As with NumPy: an entry for each matrix is its only row, or stands for all rows."""
    column, mask = torch.ones(3, 1, dtype=REAL), torch.ones(3, 1, dtype=torch.bool)
    matrix = column, 4 * column, column
    for make in (factor_tridiagonal, lambda *a: factor_theta(*a, dt=0.1)):
        with pytest.raises(ValueError, match=r"one row along axis -1: .*diag \(3, 1\).* rows=n"):
            make(*matrix)
    with pytest.raises(TypeError, match="rows must be an int, got float"):
        factor_tridiagonal(*matrix, rows=1.0)
    for options in ({"rows": 1}, {"where": mask}):
        x = factor_tridiagonal(*matrix, **options).solve(8 * column)
        torch.testing.assert_close(x, 2 * column)
    one = factor_tridiagonal(*(a[0] for a in matrix))
    torch.testing.assert_close(one.solve(8 * column), 2 * column)
    five = factor_tridiagonal(*matrix, rows=5).solve(torch.ones(3, 5, dtype=REAL))
    full = [a.expand(3, 5) for a in matrix]
    torch.testing.assert_close(five, solve_tridiagonal(*full, torch.ones(3, 5, dtype=REAL)))

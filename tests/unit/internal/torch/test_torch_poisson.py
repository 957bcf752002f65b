"""`pysolvers.torch.FastPoisson`: the numbers of `pysolvers.FastPoisson`, with gradients."""

import copy
import gc
import io

import numpy as np
import poisson_reference
import pytest

from pysolvers import Neumann

torch = pytest.importorskip("torch", exc_type=ImportError)
pytest.importorskip("scipy")

from pysolvers.torch import FastPoisson, _poisson  # noqa: E402

# Of torch.compile itself, in torch 2.7 and 2.11.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning"),
]

ENDS = ("DD", "DN", "ND", "NN", "PP")
REAL = torch.float64
OPERATOR = torch.ops.pysolvers.solve_poisson.default
# Kinds of the sides along x, y and z, the shape, and coordinates along x where it is stretched.
GRIDS = {
    "given values": (("DD", "DD"), (5, 6), None),
    "one Neumann side": (("DN", "ND"), (4, 5), None),
    "all Neumann": (("NN", "NN"), (4, 5), None),
    "periodic": (("PP", "PP"), (4, 5), None),
    "stretched": (("DN", "NN"), (4, 5), [0.0, 0.1, 0.3, 0.4, 0.8, 1.1]),
    "stretched, all Neumann": (("NN", "PP"), (4, 5), [0.0, 0.1, 0.3, 0.4, 0.8, 1.1]),
    "line": (("ND",), (6,), None),
    "box": (("DN", "NN", "PP"), (3, 4, 5), None),
}


def spacing_of(edges, shape, grid):
    steps = [0.2, 0.3, 0.4][: len(shape)]
    return steps if edges is None else [edges[: shape[-1] + (grid == "cells")], *steps[1:]]


def in_torch(boundary):
    return {
        side: Neumann(torch.tensor(one.flux))
        if isinstance(one, Neumann)
        else one
        if isinstance(one, str)
        else torch.tensor(one)
        for side, one in boundary.items()
    }


def random(*shape, dtype=REAL, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, dtype=dtype, generator=generator)


def nearly(found, expected, most=1e4):
    bound = most * torch.finfo(expected.dtype).eps * float(expected.detach().abs().max())
    torch.testing.assert_close(found, expected, rtol=0, atol=bound)


def solver_of(case, grid="nodes", values=0.0):
    kinds, shape, edges = GRIDS[case]
    boundary = poisson_reference.conditions(kinds, shape, lambda sizes: values)
    return FastPoisson(shape, spacing_of(edges, shape, grid), boundary=boundary, grid=grid)


def test_complex_gradients_with_values_at_the_sides():
    boundary = {"x-": 1j, "x+": 2.0, "y-": Neumann(1.0), "y+": -1j}
    solver = FastPoisson((4, 5), 0.2, boundary=boundary)
    f = random(4, 5, dtype=torch.complex128).requires_grad_()
    side = random(4, dtype=torch.complex128).requires_grad_()

    def solve(f, side):
        return solver.solve(f, boundary={"x-": side})

    assert torch.autograd.gradcheck(solver.solve, f)
    assert torch.autograd.gradcheck(solve, (f, side))
    assert torch.autograd.gradgradcheck(solve, (f, side))


def test_complex_gradients():
    solver = solver_of("stretched")
    f = random(4, 5, dtype=torch.complex128).requires_grad_()
    assert torch.autograd.gradcheck(solver.solve, f)
    assert torch.autograd.gradgradcheck(solver.solve, f)
    # The gradient that arrives is a conjugate view.
    found = torch.autograd.grad(solver.solve(f.conj()).conj().real.sum(), f)[0]
    expected = torch.autograd.grad(solver.solve(f).real.sum(), f)[0]
    nearly(found, expected)


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", [REAL, torch.complex64])
def test_operator_passes_the_checks_of_torch(dtype, transposed):
    grid = solver_of("stretched")._grid
    f = random(5, 4, dtype=dtype).mT
    for right in (f, f.expand(2, 4, 5)):
        right = right.detach().requires_grad_()
        torch.library.opcheck(OPERATOR, (right, None, grid, transposed))


def test_vmap_of_the_operator_over_another_axis():
    grid, f = solver_of("stretched")._grid, random(4, 5, 3)
    together = torch.vmap(lambda f: OPERATOR(f, None, grid, True), in_dims=2)(f)
    apart = torch.stack([OPERATOR(f[..., k], None, grid, True) for k in range(3)])
    torch.testing.assert_close(together, apart, rtol=0, atol=0)


def test_vmap_inside_vmap_and_a_hessian():
    solver = solver_of("all Neumann")
    f = random(2, 4, 3, 5)
    twice = torch.vmap(torch.vmap(solver.solve, in_dims=1))(f)
    nearly(twice[1, 2], solver.solve(f[1, :, 2]), most=100)

    def loss(f):
        return solver.solve(f).square().sum()

    hessian = torch.func.jacrev(torch.func.grad(loss))(f[0, :, 0]).reshape(20, 20)
    jacobian = torch.func.jacrev(solver.solve)(f[0, :, 0]).reshape(20, 20)
    nearly(hessian, 2 * jacobian.mT @ jacobian)


@pytest.mark.slow  # compiles C++
def test_compiled_by_inductor():
    torch._dynamo.reset()
    solver = FastPoisson((9, 8), 0.2, boundary={"x": 0.5, "y": Neumann(0.3)})

    def loss(f):
        return solver.solve(f * f).square().sum()

    f = random(9, 8).requires_grad_()
    compiled = torch.compile(loss, fullgraph=True)
    found = torch.autograd.grad(compiled(f), f)[0]
    nearly(found, torch.autograd.grad(loss(f), f)[0])


def test_the_reverse_pass_keeps_nothing():
    solver = solver_of("one Neumann side", values=0.5)
    f = random(4, 5).requires_grad_()
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda a: kept.append(a) or a, lambda a: a):
        solver.solve(f)
    assert not kept


def test_solvers_for_arrays_are_shared_and_last_as_long_as_they_can_be_used():
    first, second = solver_of("box"), solver_of("box", values=2.0)
    assert first._solvers is second._solvers
    grid = first._grid
    f = random(3, 4, 5).requires_grad_()
    u = first.solve(f)
    made = first._solvers._made
    del first, second
    gc.collect()
    assert grid in _poisson._KEPT  # for the reverse pass
    u.sum().backward()
    assert len(made) == 1
    del u
    gc.collect()
    assert grid not in _poisson._KEPT
    repeated = OPERATOR(torch.ones_like(f), None, grid, True)  # makes a solver for this call
    torch.testing.assert_close(repeated, f.grad, rtol=0, atol=0)
    assert grid not in _poisson._KEPT


def test_a_solver_in_a_module_is_copied_and_saved():
    solver = solver_of("stretched", values=0.5)
    expected = solver.solve(random(4, 5))
    alike = copy.deepcopy(solver)
    assert alike._solvers is solver._solvers
    file = io.BytesIO()
    torch.save(solver, file)
    file.seek(0)
    for other in (alike, torch.load(file, weights_only=False)):
        torch.testing.assert_close(other.solve(random(4, 5)), expected, rtol=0, atol=0)


def test_types_promote_as_documented():
    f = torch.ones(5, dtype=torch.float32)
    assert FastPoisson(5, 0.1, boundary=1.0).solve(f).dtype == torch.float32
    assert FastPoisson(5, 0.1, boundary=1j).solve(f).dtype == torch.complex64
    wide = torch.tensor(1.0, dtype=REAL)
    assert FastPoisson(5, 0.1, boundary=wide).solve(f).dtype == REAL
    assert FastPoisson(5, 0.1, boundary=0.0).solve(f.int()).dtype == REAL
    assert FastPoisson(5, 0.1, boundary=wide).solve(1).dtype == REAL


def test_errors_name_the_rule():
    with pytest.raises(TypeError, match="boundary x- must be a number or an array"):
        FastPoisson(5, 0.1, boundary=lambda x: x)
    with pytest.raises(TypeError, match="boundary x-: need a tensor or a number, got ndarray"):
        FastPoisson((4, 5), 0.1, boundary=np.ones(4))
    with pytest.raises(ValueError, match=r"boundary y- must broadcast to shape \(5,\), got"):
        FastPoisson((4, 5), 0.1, boundary={"x": 0.0, "y": torch.ones(4)})
    solver = FastPoisson(5, 0.1, boundary=0.0)
    with pytest.raises(TypeError, match="x- is Dirichlet in this solver"):
        solver.solve(torch.ones(5), boundary={"x-": Neumann()})
    with pytest.raises(ValueError, match=r"f must broadcast to shape \(5,\), got shape \(4,\)"):
        solver.solve(torch.ones(2, 4))
    with pytest.raises(TypeError, match="f must be a tensor"):
        solver.solve(1.0)
    with pytest.raises(TypeError, match="f: need float32"):
        solver.solve(torch.ones(5).half())

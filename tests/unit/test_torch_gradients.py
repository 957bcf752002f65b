"""`pysolvers.torch.solve_tridiagonal`: gradients equal those of dense solves and differences."""

import itertools

import numpy as np
import oracle
import pytest

import pysolvers

torch = pytest.importorskip("torch", exc_type=ImportError)

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from pysolvers.torch import solve_tridiagonal  # noqa: E402

# Of torch.compile itself, in torch 2.7 and 2.11.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning"),
]

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
OPERATOR = torch.ops.pysolvers.solve_tridiagonal.default
REAL, COMPLEX = torch.float64, torch.complex128
DTYPES = (torch.float32, REAL, torch.complex64, COMPLEX)

# Shapes of lower, diag, upper and rhs, rows last.
SHAPES = {
    "own": [(3, 5)] * 4,
    "two batch axes": [(2, 3, 5)] * 4,
    "shared": [(5,), (5,), (5,), (3, 5)],
    "short": [(3, 4), (3, 5), (3, 4), (3, 5)],
    "short and shared": [(4,), (5,), (4,), (3, 5)],
    "constant": [(), (3, 1), (1, 1), (3, 5)],
    "mixed": [(2, 1, 5), (3, 5), (2, 1, 1), (1, 3, 5)],
    "one right-hand side": [(3, 5), (3, 5), (5,), (5,)],
    "one row": [(3, 1)] * 4,
    "two rows": [(3, 2)] * 4,
    "two rows, short": [(3, 1), (3, 2), (3, 1), (3, 2)],
}
PERIODIC = [name for name in SHAPES if "short" not in name]
CASES = [(name, False) for name in SHAPES] + [(name, True) for name in PERIODIC]


def system(shapes, dtype=REAL, *, dominant=True, seed=0):
    """Return random operands that need gradients."""
    rng = np.random.default_rng(seed)
    make = oracle.dominant if dominant else oracle.general
    rows = shapes[3][-1]
    wide = np.dtype(str(dtype).removeprefix("torch."))
    fields = [make(rng, (*shape[:-1], rows), wide)[k] for k, shape in enumerate(shapes)]
    cut = [
        field[..., : shape[-1]] if shape else field[0]
        for field, shape in zip(fields, shapes, strict=True)
    ]
    if dominant and shapes[1][-1:] == (1,):
        cut[1] = cut[1] + 3
    return [torch.tensor(a).requires_grad_() for a in cut]


def matrix(lower, diag, upper, shape, *, periodic=False):
    """Return the dense matrices; rows of the operands last."""
    rows = shape[-1]
    dense = torch.diag_embed(diag.expand(shape))
    if not periodic:
        if rows > 1:
            inner = (*shape[:-1], rows - 1)
            lower = lower[..., 1:] if lower.shape[-1:] == (rows,) else lower
            upper = upper[..., :-1] if upper.shape[-1:] == (rows,) else upper
            dense = dense + torch.diag_embed(lower.expand(inner), -1)
            dense = dense + torch.diag_embed(upper.expand(inner), 1)
        return dense
    for diagonal, offset in ((lower, -1), (upper, 1)):
        places = torch.eye(rows, dtype=diag.dtype).roll(offset, 1)
        dense = dense + diagonal.expand(shape).unsqueeze(-1) * places
    return dense


def dense_solve(lower, diag, upper, rhs, *, periodic=False):
    """Solve with dense matrices; rows of the operands last."""
    shape = torch.broadcast_shapes(*(a.shape[:-1] for a in (lower, diag, upper, rhs)))
    rhs = rhs.expand(*shape, rhs.shape[-1])
    dense = matrix(lower, diag, upper, rhs.shape, periodic=periodic)
    return torch.linalg.solve(dense.to(rhs.dtype), rhs.unsqueeze(-1)).squeeze(-1)


def nearly(actual, desired, most=200):
    scale = max(float(desired.detach().abs().max()), 1.0) if desired.numel() else 1.0
    bound = most * torch.finfo(desired.dtype).eps * scale
    torch.testing.assert_close(actual, desired, rtol=0, atol=bound)


class Recorder(TorchDispatchMode):
    """The shapes of the operands of each solve."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is OPERATOR:
            self.calls.append([tuple(a.shape) for a in args[:4]])
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
def test_derivatives_with_row_exchanges_are_those_of_finite_differences(dtype, periodic):
    small = [a.detach() / 8 for a in system([(2, 6)] * 4, dtype)]
    small[0] += torch.tensor([0, 1] * 3)  # exchanges of the rows 2 i and 2 i + 1
    small[1].zero_()
    small[2] += torch.tensor([1, 0] * 3)
    operands = [a.requires_grad_() for a in small]

    def solve(*values):
        return solve_tridiagonal(*values, periodic=periodic, pivot=True)

    assert torch.autograd.gradcheck(solve, operands)
    assert torch.autograd.gradgradcheck(solve, operands)


def test_gradients_of_a_real_matrix_with_complex_sides_are_real():
    lower, diag, upper = system([(5,)] * 3 + [(5,)])[:3]
    rhs = system([(3, 5)] * 4, COMPLEX)[3]
    operands = [lower, diag, upper, rhs]
    x = solve_tridiagonal(*operands)
    assert x.dtype == COMPLEX
    y = dense_solve(*operands)
    found = torch.autograd.grad(x.abs().square().sum(), operands)
    expected = torch.autograd.grad(y.abs().square().sum(), operands)
    for one, other, operand in zip(found, expected, operands, strict=True):
        assert one.dtype == operand.dtype
        nearly(one, other, most=2000)


@pytest.mark.parametrize("dtype", [REAL, COMPLEX])
@pytest.mark.parametrize(("case", "periodic"), CASES)
def test_first_and_second_derivatives_are_those_of_finite_differences(case, periodic, dtype):
    operands = system(SHAPES[case], dtype)

    def solve(*values):
        return solve_tridiagonal(*values, periodic=periodic)

    assert torch.autograd.gradcheck(solve, operands)
    assert torch.autograd.gradgradcheck(solve, operands)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_the_result_has_the_memory_order_of_the_right_hand_side(order):
    operands = [a.detach().permute(order) for a in system([(4, 5, 3)] * 4)]
    x = solve_tridiagonal(*operands)
    assert x.stride() == operands[3].stride()
    arrays = [a.numpy() for a in operands]
    np.testing.assert_array_equal(x.numpy(), pysolvers.solve_tridiagonal(*arrays))


# The checks of torch read the gradients of tensors that are not leaves.
checks = pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")


@checks
@pytest.mark.parametrize("shapes", [SHAPES["own"], SHAPES["mixed"]])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", [REAL, torch.complex64])
def test_operator_passes_the_checks_of_torch(shapes, periodic, dtype):
    ndim = max(len(shape) for shape in shapes)
    operands = [
        a.detach().reshape((1,) * (ndim - a.ndim) + a.shape).requires_grad_()
        for a in system(shapes, dtype)
    ]
    torch.library.opcheck(OPERATOR, (*operands, periodic, None, "nan", None))


@checks
def test_operator_passes_the_checks_of_torch_with_other_strides():
    operands = [a.detach().transpose(0, 1).requires_grad_() for a in system([(5, 3)] * 4)]
    operands[3] = operands[3].detach()[:1].expand(3, 5).requires_grad_()
    torch.library.opcheck(OPERATOR, (*operands, False, None, "nan", 1))


SUBSETS = [s for s in itertools.product((None, 0), repeat=4) if any(dim == 0 for dim in s)]


@pytest.mark.parametrize("subset", SUBSETS)
def test_vmap_over_each_subset_of_operands(subset):
    operands = system([(3, 5)] * 4)
    values = [a if dim == 0 else a[1] for a, dim in zip(operands, subset, strict=True)]
    with Recorder() as recorder:
        x = torch.vmap(solve_tridiagonal, in_dims=subset)(*values)
    assert recorder.calls == [[(3 if dim == 0 else 1, 5) for dim in subset]]

    y = dense_solve(*values)
    nearly(x, y)
    found = torch.autograd.grad(x.square().sum(), operands)
    expected = torch.autograd.grad(y.square().sum(), operands)
    for one, other in zip(found, expected, strict=True):
        nearly(one, other, most=2000)


def test_vmap_of_the_operator_over_other_axes():
    operands = [a.detach() for a in system([(5, 3)] * 4)]
    batched = torch.vmap(lambda *a: OPERATOR(*a, False, None, "nan", None), in_dims=1)
    nearly(batched(*operands), dense_solve(*(a.mT for a in operands)))


def test_vmap_inside_vmap_over_other_axes():
    operands = system([(2, 5, 3)] * 4)
    twice = torch.vmap(
        torch.vmap(solve_tridiagonal, in_dims=(1, None, 1, 1)), in_dims=(0, 0, None, 0)
    )
    diag, upper = operands[1][..., 0], operands[2][0]
    x = twice(operands[0], diag, upper, operands[3])
    rows_last = [operands[0].mT, diag[:, None], upper.mT[None], operands[3].mT]
    nearly(x, dense_solve(*rows_last))


def test_gradients_of_each_sample():
    lower, diag, upper, rhs = (a.detach() for a in system(SHAPES["short and shared"]))

    def loss(solve):
        return lambda *operands: solve(*operands).square().sum()

    all_of_them = (0, 1, 2, 3)
    options = {"in_dims": (None, None, None, 0)}
    found = torch.vmap(torch.func.grad(loss(solve_tridiagonal), all_of_them), **options)
    expected = torch.vmap(torch.func.grad(loss(dense_solve), all_of_them), **options)
    for one, other in zip(
        found(lower, diag, upper, rhs), expected(lower, diag, upper, rhs), strict=True
    ):
        nearly(one, other)


def test_jacobians_of_torch_func():
    operands = [a.detach() for a in system([(5,)] * 4)]
    found = torch.func.jacrev(solve_tridiagonal, (0, 1, 2, 3))(*operands)
    expected = torch.func.jacrev(dense_solve, (0, 1, 2, 3))(*operands)
    for one, other in zip(found, expected, strict=True):
        nearly(one, other)


def test_a_hessian_of_torch_func():
    lower, diag, upper, rhs = (a.detach() for a in system([(5,)] * 4))

    def hessian(solve):
        def loss(diag, rhs):
            return solve(lower, diag, upper, rhs).pow(3).sum()

        return torch.func.jacrev(torch.func.jacrev(loss, (0, 1)), (0, 1))(diag, rhs)

    for one, other in zip(hessian(solve_tridiagonal), hessian(dense_solve), strict=True):
        for a, b in zip(one, other, strict=True):
            nearly(a, b, most=2000)


@pytest.mark.parametrize("needed", SUBSETS)
def test_only_what_is_needed_is_kept_and_computed(needed):
    operands = [a.detach() for a in system([(3, 5)] * 4)]
    for operand, dim in zip(operands, needed, strict=True):
        operand.requires_grad_(dim == 0)
    kept = []

    def keep(tensor):
        kept.append(tensor.data_ptr())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        x = solve_tridiagonal(*operands)
    with Recorder() as recorder:
        x.sum().backward()

    expected = {a.data_ptr() for a in operands[:3]}
    if 0 in needed[:3]:
        expected.add(x.data_ptr())
    assert set(kept) == expected
    assert len(recorder.calls) == 1
    assert [a.grad is not None for a in operands] == [dim == 0 for dim in needed]


def test_the_adjoint_matrix_is_a_view():
    operands = [a.detach().requires_grad_() for a in system([(3, 5)] * 4)]
    seen = []

    class Addresses(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            if function is OPERATOR:
                seen.append([a.data_ptr() for a in args[:3]])
            return function(*args, **(kwargs or {}))

    x = solve_tridiagonal(*operands)
    with Addresses():
        x.sum().backward()
    lower, diag, upper, _ = operands
    assert seen == [[upper.data_ptr(), diag.data_ptr(), lower[:, 1:].data_ptr()]]


def test_a_shared_matrix_stays_shared_in_the_reverse_pass():
    operands = system(SHAPES["shared"])
    x = solve_tridiagonal(*operands)
    with Recorder() as recorder:
        x.square().sum().backward()
    assert recorder.calls == [[(1, 4), (1, 5), (1, 4), (3, 5)]]


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("case", ["own", "shared", "mixed"])
def test_compiled_without_graph_breaks(case, dynamic):
    torch._dynamo.reset()

    def loss(*operands):
        return solve_tridiagonal(*operands, axis=-1).square().sum()

    compiled = torch.compile(loss, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    operands = system(SHAPES[case])
    found = torch.autograd.grad(compiled(*operands), operands)
    expected = torch.autograd.grad(loss(*operands), operands)
    for one, other in zip(found, expected, strict=True):
        nearly(one, other)


@pytest.mark.skipif(VERSION < (2, 11), reason="torch 2.8 compiles no torch.func.grad of it")
def test_compiled_gradient_of_torch_func():
    torch._dynamo.reset()
    operands = [a.detach() for a in system(SHAPES["shared"])]

    def loss(*operands):
        return solve_tridiagonal(*operands).square().sum()

    gradient = torch.func.grad(loss, (0, 1, 2, 3))
    compiled = torch.compile(gradient, fullgraph=True, backend="aot_eager")
    for one, other in zip(compiled(*operands), gradient(*operands), strict=True):
        nearly(one, other)


def test_compiled_vmap():
    torch._dynamo.reset()
    operands = [a.detach() for a in system(SHAPES["shared"])]
    batch = torch.vmap(solve_tridiagonal, in_dims=(None, None, None, 0))
    compiled = torch.compile(batch, fullgraph=True, backend="aot_eager")
    nearly(compiled(*operands), batch(*operands))


@pytest.mark.slow  # compiles C++
def test_compiled_by_inductor():
    torch._dynamo.reset()

    def loss(*operands):
        return solve_tridiagonal(*operands, axis=0).square().sum()

    compiled = torch.compile(loss, fullgraph=True)
    operands = [a.detach().mT.requires_grad_() for a in system([(40, 50)] * 4)]
    found = torch.autograd.grad(compiled(*operands), operands)
    expected = torch.autograd.grad(loss(*operands), operands)
    for one, other in zip(found, expected, strict=True):
        nearly(one, other)


def test_a_singular_system_is_nan_and_the_others_are_solved():
    lower, diag, upper, rhs = (a.detach() for a in system([(3, 5)] * 4))
    for diagonal in (lower, diag, upper):
        diagonal[1] = 0
    diag.requires_grad_()
    x = solve_tridiagonal(lower, diag, upper, rhs)
    x.sum().backward()
    for result in (x, diag.grad):
        assert result.isnan().all(1).tolist() == [False, True, False]
        assert not result[[0, 2]].isnan().any()
    with pytest.raises(pysolvers.SingularSystemError):
        solve_tridiagonal(lower, diag, upper, rhs, on_singular="raise")


def test_a_result_that_is_changed_cannot_be_differentiated():
    operands = system([(3, 5)] * 4)
    x = solve_tridiagonal(*operands)
    y = x.sum()
    x.detach().zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_numbers_and_integers_promote_as_documented():
    rhs = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float32)
    assert solve_tridiagonal(-1, 2.0, -1.0, rhs).dtype == torch.float32
    assert solve_tridiagonal(-1, 2.0, -1j, rhs).dtype == torch.complex64
    diag = torch.full((3,), 2.0, dtype=torch.float64)
    assert solve_tridiagonal(-1, diag, -1, rhs).dtype == torch.float64
    whole = solve_tridiagonal(-1, 2, -1, torch.tensor([1, 0, 1]))
    nearly(whole, torch.ones(3, dtype=REAL))


def test_bad_operands_are_refused():
    rhs = torch.ones(3)
    with pytest.raises(TypeError, match="rhs: need float32"):
        solve_tridiagonal(-1, 2, -1, rhs.half())
    with pytest.raises(TypeError, match="diag: need a tensor or a number, got ndarray"):
        solve_tridiagonal(-1, np.ones(3), -1, rhs)
    with pytest.raises(TypeError, match="must be a tensor"):
        solve_tridiagonal(-1, 2, -1, 1.0)
    for number in (1.0, torch.tensor(1.0)):
        with pytest.raises(ValueError, match="at least one dimension"):
            solve_tridiagonal(-1, rhs, -1, number)
    with pytest.raises(ValueError, match="diag has 4 entries, but the systems have 3 rows"):
        solve_tridiagonal(-1, torch.ones(4), -1, rhs)
    with pytest.raises(ValueError, match=r"diag has 1 entry, .* write a number"):
        solve_tridiagonal(-1, torch.ones(1), -1, rhs)
    with pytest.raises(ValueError, match="do not broadcast"):
        solve_tridiagonal(-1, torch.ones(2, 3), -1, rhs.expand(4, 3))
    with pytest.raises(ValueError, match="on_singular"):
        solve_tridiagonal(-1, 2, -1, rhs, on_singular="nothing")

"""`RowSums` in `pysolvers.torch`: every unknown and every gradient is right for any condition."""

import pytest

torch = pytest.importorskip("torch", exc_type=ImportError)

from pysolvers import RowSums, SingularSystemError  # noqa: E402
from pysolvers.torch import factor_tridiagonal, solve_tridiagonal  # noqa: E402
from pysolvers.torch._by_sums import solve_transposed_sums  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning"),
]

FORMS = {
    "own": [(2, 4)] * 4,
    "shared": [(4,), (4,), (4,), (2, 4)],
    "short": [(2, 3), (2, 4), (3,), (2, 4)],
    "constant": [(), (2, 1), (), (2, 4)],
    "one row": [(2, 1)] * 4,
    "two rows": [(2, 2)] * 4,
}
CASES = [(form, False) for form in FORMS]
CASES += [(form, True) for form in FORMS if form != "short"]


def system(form):
    generator = torch.Generator().manual_seed(1)
    operands = [torch.rand(s, generator=generator, dtype=torch.float64) for s in FORMS[form]]
    lower, sums, upper, rhs = (a + 0.2 for a in operands)
    return [a.requires_grad_() for a in (-lower, sums, -upper, rhs - 0.7)]


def solve(lower, sums, upper, rhs, **options):
    return solve_tridiagonal(lower, RowSums(sums), upper, rhs, **options)


@pytest.mark.parametrize(("form", "periodic"), CASES)
def test_transposes_by_operations_are_those_of_factors(form, periodic):
    lower, sums, upper, rhs = (a.detach() for a in system(form))
    factor = factor_tridiagonal(lower, RowSums(sums), upper, rows=rhs.shape[-1], periodic=periodic)
    full = [a.reshape((1,) * (2 - a.ndim) + a.shape) for a in (lower, sums, upper)]
    x = solve_transposed_sums(*full, rhs, periodic=periodic)
    torch.testing.assert_close(x, factor.solve(rhs, axis=-1, trans="T"), rtol=1e-13, atol=0)


def test_complex_right_sides_vmap_and_compile():
    operands = system("own")
    rhs = operands[3] * (1 + 2j)
    x = solve(*operands[:3], rhs)
    torch.testing.assert_close(x, solve(*operands) * (1 + 2j))
    of = torch.func.grad(lambda *a: solve(*a).square().sum(), (0, 1, 2, 3))
    every = torch.func.vmap(of)(*operands)
    whole = torch.autograd.grad(solve(*operands).square().sum(), operands)
    torch.testing.assert_close(every, whole)
    compiled = torch.compile(solve, fullgraph=True, backend="aot_eager")
    y = compiled(*operands)
    torch.testing.assert_close(torch.autograd.grad(y.square().sum(), operands), whole)


def test_errors_and_singular_systems():
    lower, sums, upper, rhs = (a.detach() for a in system("own"))
    with pytest.raises(ValueError, match=r"RowSums.s is -.* at batch index \(0,\), row 0"):
        solve(lower, -sums, upper, rhs)
    sums[1] = 0
    assert solve(lower, sums, upper, rhs).isnan().all(-1).tolist() == [False, True]
    with pytest.raises(SingularSystemError):
        solve(lower, sums, upper, rhs, on_singular="raise")


@pytest.mark.filterwarnings("ignore:The .grad attribute:UserWarning")  # of torch itself
@pytest.mark.parametrize("transposed", [False, True])
def test_operator_passes_the_checks_of_torch(transposed):
    operator = torch.ops.pysolvers.solve_by_sums.default
    torch.library.opcheck(operator, (*system("own"), False, transposed, False, "nan", None))

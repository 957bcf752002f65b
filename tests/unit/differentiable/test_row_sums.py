"""`RowSums` in JAX and PyTorch: every unknown and every gradient is right for any condition."""

import itertools

import exact_lines
import numpy as np
import pytest
from array_libraries import IGNORED, check_derivatives, close, converted
from covering import slow

from pysolvers import RowSums

pytestmark = IGNORED

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


@pytest.fixture
def solve(differentiable):
    """`solve_tridiagonal` of the library with row sums."""

    def call(lower, sums, upper, rhs, **options):
        function = differentiable.functions.solve_tridiagonal
        return function(lower, RowSums(sums), upper, rhs, **options)

    return call


@pytest.fixture
def factor(differentiable):
    """`factor_tridiagonal` of the library with row sums."""

    def call(lower, sums, upper, **options):
        return differentiable.functions.factor_tridiagonal(lower, RowSums(sums), upper, **options)

    return call


def system(rng, form):
    lower, sums, upper, rhs = (np.asarray(rng.random(s)) + 0.2 for s in FORMS[form])
    return [-lower, sums, -upper, rhs - 0.7]


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("by_factor", [False, True])
def test_unknowns_and_gradients_for_any_condition(
    differentiable, solve, factor, rng, by_factor, dtype, periodic
):
    rows = 7 if differentiable.name == "jax" else 31  # whose programs grow with the rows
    operands = exact_lines.family(rng, 4, rows, dtype, symmetric=False)
    g = rng.random((4, rows)).astype(dtype)
    weight = differentiable.array(g)

    def solution(lower, sums, upper, rhs):
        if by_factor:
            return factor(lower, sums, upper, periodic=periodic).solve(rhs)
        return solve(lower, sums, upper, rhs, periodic=periodic)

    there = converted(differentiable, operands)
    x = differentiable.jit(solution)(*there)
    _, found = differentiable.value_and_grad(lambda *a: (weight * solution(*a)).sum(), 4)(*there)

    found = [differentiable.get(a) for a in found]
    exact_lines.check_gradients(operands, g, differentiable.get(x), found, periodic=periodic)


@pytest.mark.parametrize(
    ("form", "periodic"),
    [case if case == ("own", True) else slow(*case) for case in CASES],
)
def test_derivatives_of_both_orders(differentiable, solve, rng, form, periodic):
    weight = differentiable.array(rng.random(FORMS[form][3]))

    def loss(*operands):
        return (weight * solve(*operands, periodic=periodic) ** 2).sum()

    check_derivatives(differentiable, loss, system(rng, form), rng, rtol=1e-5)


@pytest.mark.parametrize("trans", ["H", slow("N"), slow("T")])
@pytest.mark.parametrize("periodic", [False, slow(True)])
def test_derivatives_of_solves_with_factors(differentiable, factor, rng, periodic, trans):
    weight = differentiable.array(rng.random((2, 4)))

    def loss(lower, sums, upper, rhs):
        x = factor(lower, sums, upper, periodic=periodic).solve(rhs, trans=trans)
        return (weight * x**2).sum()

    orders = 1 if trans == "H" else 2  # of a transposed solve derivatives are solves
    check_derivatives(differentiable, loss, system(rng, "own"), rng, rtol=1e-5, orders=orders)


@pytest.mark.parametrize(
    "mapped",
    [
        # The entries of one off-diagonal, and the sides.
        case if case in ((1, 0, 0, 0), (0, 0, 0, 1)) else slow(case)
        for case in itertools.product((False, True), repeat=4)
        if any(case)
    ],
)
def test_vmap_over_subsets_of_operands(differentiable, solve, rng, mapped):
    operands = [-rng.random((3, 5)), rng.random((3, 5)), -rng.random((3, 5)), rng.random((3, 5))]
    given = [a if m else a[0] for a, m in zip(operands, mapped, strict=True)]
    axes = tuple(0 if m else None for m in mapped)
    slope = differentiable.gradient_of(lambda *a: (solve(*a) ** 2).sum())

    found = differentiable.vmap(slope, axes)(*converted(differentiable, given))
    alone = differentiable.jit(slope)

    for k in range(3):
        one = [a[k] if m else a for a, m in zip(given, mapped, strict=True)]
        truth = alone(*converted(differentiable, one))
        close(differentiable, found[k], differentiable.get(truth), 1e5)


@pytest.mark.parametrize("trans", ["N", "H", slow("T")])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("axis", [0, slow(1)])
def test_factors(differentiable, factor, rng, axis, periodic, trans):
    lower, sums, upper = -rng.random((7, 4)), rng.random((7, 4)), -rng.random((7, 4))
    rhs = rng.random((7, 4)) + 1j * rng.random((7, 4))
    turned = [a if axis == 0 else a.T.copy() for a in (lower, sums, upper, rhs)]
    *matrix, right = converted(differentiable, turned)
    made = factor(*matrix, axis=axis, periodic=periodic)
    x = differentiable.get(made.solve(right, trans=trans))
    x = x if axis == 0 else x.T
    for k in range(4):
        one = [a[:, k] for a in (lower, sums, upper)]
        whole = exact_lines.solve if trans == "N" else exact_lines.solve_transposed
        for part, own in ((rhs.real, x.real), (rhs.imag, x.imag)):
            truth = whole(*one, part[:, k], periodic=periodic)
            np.testing.assert_allclose(own[:, k], truth, rtol=1e-12)


def test_complex_right_sides_and_programs(differentiable, solve, rng):
    lower, sums, upper, rhs = converted(differentiable, system(rng, "own"))

    x = differentiable.compiled(solve)(lower, sums, upper, rhs)
    wide = solve(lower, sums, upper, rhs * (1 + 2j))

    close(differentiable, wide, differentiable.get(x) * (1 + 2j))


def test_ignored_entries_and_singular_systems(differentiable, solve, rng):
    lower, upper = np.full((2, 5), -1.0), np.full((2, 5), -1.0)
    lower[:, 0] = upper[:, -1] = np.nan
    sums = np.ones((2, 5))
    sums[1] = 0
    given = converted(differentiable, (lower, sums, upper, np.ones((2, 5))))
    x = differentiable.get(solve(*given))
    np.testing.assert_allclose(x[0], 1.0, rtol=1e-14)
    assert np.isnan(x[1]).all()
    one = [a[0] for a in given]
    _, (of_lower, of_upper) = differentiable.value_and_grad(
        lambda a, c: solve(a, one[1], c, one[3]).sum(), 2
    )(one[0], one[2])
    of_lower, of_upper = differentiable.get(of_lower), differentiable.get(of_upper)
    assert (of_lower[0], of_upper[-1]) == (0, 0)
    assert np.isfinite(of_lower).all()


def test_errors_name_the_rule(differentiable, solve, factor, rng):
    lower, sums, upper, rhs = converted(differentiable, system(rng, "own"))
    for call in (solve, lambda a, s, c, _, **o: factor(a, s, c, **o)):
        with pytest.raises(ValueError, match="pivot must be None or False with RowSums"):
            call(lower, sums, upper, rhs, pivot=True)
        with pytest.raises(TypeError, match=r"must be real.*, got complex128"):
            call(lower, sums * 1j, upper, rhs)

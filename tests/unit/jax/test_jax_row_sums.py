"""`RowSums` in `pysolvers.jax`: every unknown and every gradient is right for any condition."""

import itertools
from functools import partial

import exact_lines
import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy

from pysolvers import RowSums  # noqa: E402
from pysolvers.jax import factor_tridiagonal, solve_tridiagonal  # noqa: E402


def solve(lower, sums, upper, rhs, **options):
    return solve_tridiagonal(lower, RowSums(sums), upper, rhs, **options)


def dense(lower, sums, upper, rhs, *, periodic=False):
    """Return the solution of one system by dense LU of JAX."""
    rows = rhs.shape[-1]
    below, above = np.roll(np.eye(rows), -1, axis=1), np.roll(np.eye(rows), 1, axis=1)
    if not periodic:
        below[0] = above[-1] = 0
    lower, sums, upper = (jnp.broadcast_to(a, (rows,)) for a in (lower, sums, upper))
    parts = lower[:, None] * (below - np.eye(rows) * below.sum(1)[:, None])
    parts += upper[:, None] * (above - np.eye(rows) * above.sum(1)[:, None])
    return jnp.linalg.solve(parts + jnp.diag(sums), rhs)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rows", [3, pytest.param(40, marks=pytest.mark.slow)])
def test_unknowns_and_gradients_for_any_condition(rng, rows, dtype, periodic):
    operands = exact_lines.family(rng, 4, rows, dtype, symmetric=rows % 2 == 0)
    g = rng.random((4, rows)).astype(dtype)

    @jax.jit
    def both(g, *operands):
        x, back = jax.vjp(partial(solve, periodic=periodic), *operands)
        return x, back(g)

    x, found = both(g, *operands)
    exact_lines.check_gradients(operands, g, x, found, periodic=periodic)


FORMS = {
    "own": [(6,), (6,), (6,)],
    "short": [(5,), (6,), (5,)],
    "numbers": [(), (), ()],
    "mixed": [(), (6,), (5,)],
}


@pytest.mark.parametrize(
    "orders", [[jax.grad], pytest.param([jax.jacfwd, jax.hessian], marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize(
    "form", [f if f in ("own", "short") else pytest.param(f, marks=pytest.mark.slow) for f in FORMS]
)
def test_derivatives_are_those_of_dense_solves(rng, form, periodic, orders):
    if periodic and form in ("short", "mixed"):
        pytest.skip("a periodic matrix has its corner entries")
    lower, sums, upper = (jnp.asarray(rng.random(shape) + 0.2) for shape in FORMS[form])
    operands = [-lower, sums, -upper, jnp.asarray(rng.standard_normal(6))]

    def whole(lower, sums, upper, rhs):
        lower = jnp.r_[0.0, lower] if lower.shape == (5,) else lower
        upper = jnp.r_[upper, 0.0] if upper.shape == (5,) else upper
        return dense(lower, sums, upper, rhs, periodic=periodic)

    def of(function):
        return lambda *operands: (function(*operands) ** 3).sum()

    ours, theirs = of(partial(solve, periodic=periodic)), of(whole)
    for order in orders:
        found, truth = (jax.jit(order(f, (0, 1, 2, 3)))(*operands) for f in (ours, theirs))
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(truth), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_vmap_over_each_subset_of_operands(rng):
    operands = [-rng.random((3, 5)), rng.random((3, 5)), -rng.random((3, 5)), rng.random((3, 5))]
    for mapped in itertools.product((False, True), repeat=4):
        if not any(mapped):
            continue
        given = [a if m else a[0] for a, m in zip(operands, mapped, strict=True)]
        axes = [0 if m else None for m in mapped]
        every = jax.vmap(jax.grad(lambda *a: (solve(*a) ** 2).sum(), (0, 1, 2, 3)), in_axes=axes)
        found = every(*given)
        for k in range(3):
            one = [a[k] if m else a for a, m in zip(given, mapped, strict=True)]
            truth = jax.grad(lambda *a: (dense(*a) ** 2).sum(), (0, 1, 2, 3))(*one)
            for a, b in zip(found, truth, strict=True):
                np.testing.assert_allclose(a[k], b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("trans", ["N", "H", pytest.param("T", marks=pytest.mark.slow)])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("axis", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_factors(rng, axis, periodic, trans):
    lower, sums, upper = -rng.random((7, 4)), rng.random((7, 4)), -rng.random((7, 4))
    rhs = rng.random((7, 4)) + 1j * rng.random((7, 4))
    matrix = [a if axis == 0 else a.T for a in (lower, sums, upper)]
    factor = factor_tridiagonal(
        matrix[0], RowSums(matrix[1]), matrix[2], axis=axis, periodic=periodic
    )
    assert isinstance(factor.diag, RowSums)
    x = jax.jit(lambda factor, b: factor.solve(b, trans=trans))(factor, rhs if axis == 0 else rhs.T)
    x = x if axis == 0 else x.T
    for k in range(4):
        one = [a[:, k] for a in (lower, sums, upper)]
        whole = exact_lines.solve if trans == "N" else exact_lines.solve_transposed
        for part, own in ((rhs.real, x.real), (rhs.imag, x.imag)):
            truth = whole(*one, part[:, k], periodic=periodic)
            np.testing.assert_allclose(own[:, k], truth, rtol=1e-12)


def test_ignored_entries_and_singular_systems(rng):
    lower, upper = np.full((2, 5), -1.0), np.full((2, 5), -1.0)
    lower[:, 0] = upper[:, -1] = np.nan
    sums = np.ones((2, 5))
    sums[1] = 0
    x = solve(lower, sums, upper, np.ones((2, 5)))
    np.testing.assert_allclose(x[0], 1.0, rtol=1e-14)
    assert np.isnan(x[1]).all()
    of_lower, of_upper = jax.grad(lambda a, c: solve(a, sums[0], c, np.ones(5)).sum(), (0, 1))(
        lower[0], upper[0]
    )
    assert (of_lower[0], of_upper[-1]) == (0, 0)
    assert np.isfinite(of_lower).all()


def test_a_tree_with_one_leaf():
    (leaf,) = jax.tree.leaves(RowSums(2.0, check_signs=False))
    form = jax.tree.map(lambda s: 3 * s, RowSums(2.0, check_signs=False))
    assert (leaf, form.s, form.check_signs) == (2.0, 6.0, False)
    slope = jax.grad(lambda form: solve_tridiagonal(-1.0, form, -1.0, jnp.ones(3)).sum())(
        RowSums(2.0)
    )
    np.testing.assert_allclose(slope.s, -0.75, rtol=1e-12)


def test_errors_name_the_rule():
    rhs = jnp.ones(4)
    for call in (solve, lambda *a, **o: factor_tridiagonal(a[0], RowSums(a[1]), a[2], rows=4, **o)):
        with pytest.raises(ValueError, match="pivot must be None or False with RowSums"):
            call(-1.0, 1.0, -1.0, rhs, pivot=True)
        with pytest.raises(TypeError, match=r"RowSums.s must be real with RowSums, got complex128"):
            call(-1.0, 1j, -1.0, rhs)
    with pytest.raises(ValueError, match="does not take RowSums with axis_name"):
        solve(-1.0, 1.0, -1.0, rhs, axis_name="rows")

"""`RowSums` in `pysolvers.jax`: every unknown and every gradient is right for any condition."""

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


FORMS = {
    "own": [(6,), (6,), (6,)],
    "short": [(5,), (6,), (5,)],
    "numbers": [(), (), ()],
    "mixed": [(), (6,), (5,)],
}


@pytest.mark.parametrize(
    "orders", [[jax.jacfwd], pytest.param([jax.grad, jax.hessian], marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize(
    "form", [f if f == "own" else pytest.param(f, marks=pytest.mark.slow) for f in FORMS]
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


def test_a_tree_with_one_leaf():
    (leaf,) = jax.tree.leaves(RowSums(2.0, check_signs=False))
    form = jax.tree.map(lambda s: 3 * s, RowSums(2.0, check_signs=False))
    assert (leaf, form.s, form.check_signs) == (2.0, 6.0, False)
    slope = jax.grad(lambda form: solve_tridiagonal(-1.0, form, -1.0, jnp.ones(3)).sum())(
        RowSums(2.0)
    )
    np.testing.assert_allclose(slope.s, -0.75, rtol=1e-12)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_rows_are_divided_over_devices(rng, rows, periodic):
    """Values are right for any condition; gradients are those of one device."""
    count = 4 * rows
    lower, sums, upper, rhs = exact_lines.family(rng, 5, count, "float64", symmetric=True)

    def split(*operands):
        parts = [jnp.moveaxis(a.reshape(5, 4, rows), 1, 0) for a in operands]
        options = {"periodic": periodic, "axis_name": "devices"}
        x = jax.vmap(lambda *part: solve(*part, **options), axis_name="devices")(*parts)
        return jnp.moveaxis(x, 0, 1).reshape(5, count)

    truth = np.array(
        [
            exact_lines.solve(*(a[k] for a in (lower, sums, upper, rhs)), periodic=periodic)
            for k in range(5)
        ]
    )
    x = jax.jit(split)(lower, sums, upper, rhs)
    assert (np.abs(x - truth) / truth).max() <= 50 * np.finfo(float).eps
    z = jax.jit(split)(lower, sums, upper, rhs * (1 + 2j))
    np.testing.assert_allclose(z.imag, 2 * z.real, rtol=1e-13)
    lower, sums, upper = rng.random((3, 5, count)) + 0.2
    found, expected = (
        jax.jit(jax.grad(lambda *a, f=f: (f(*a) ** 3).sum(), (0, 1, 2, 3)))(
            -lower, sums, -upper, rhs
        )
        for f in (split, partial(solve, periodic=periodic))
    )
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())


def test_errors_name_the_rule():
    rhs = jnp.ones(4)
    assert isinstance(factor_tridiagonal(-1.0, RowSums(1.0), -1.0, rows=4).diag, RowSums)
    with pytest.raises(ValueError, match="pivot must be None or False with RowSums"):
        solve(-1.0, 1.0, -1.0, rhs, pivot=True)

"""`pysolvers.lineax`: the solver of Lineax agrees with dense solves and with that of Lineax."""

import doctest

import numpy as np
import oracle
import pytest

jax = pytest.importorskip("jax")
lineax = pytest.importorskip("lineax")
jnp = jax.numpy

import pysolvers.lineax  # noqa: E402
from pysolvers.lineax import Tridiagonal  # noqa: E402


def solve(lower, diag, upper, rhs, **options):
    operator = lineax.TridiagonalLinearOperator(diag, lower[1:], upper[:-1])
    return lineax.linear_solve(operator, rhs, Tridiagonal(**options)).value


@pytest.mark.parametrize("dtype", [np.complex128, pytest.param(np.float64, marks=pytest.mark.slow)])
def test_solution_of_one_system(rng, dtype):
    system = oracle.dominant(rng, (9,), dtype)

    np.testing.assert_allclose(solve(*map(jnp.asarray, system)), oracle.solve(*system), rtol=1e-13)


def test_a_mapped_solve_is_one_call_and_has_the_bits_of_the_batch(rng):
    lower, diag, upper, _ = map(jnp.asarray, oracle.dominant(rng, (9,)))
    rhs = jnp.asarray(oracle.uniform(rng, (20, 9)))
    mapped = jax.jit(jax.vmap(solve, in_axes=(None, None, None, 0)))

    expected = pysolvers.solve_tridiagonal(*map(np.asarray, (lower, diag, upper, rhs)))
    np.testing.assert_array_equal(mapped(lower, diag, upper, rhs), expected)
    program = mapped.lower(lower, diag, upper, rhs).as_text()
    assert program.count("custom_call @pysolvers_tridiagonal") == 1


def test_gradients_are_those_of_a_dense_solve(rng):
    system = oracle.dominant(rng, (3, 6))
    x, ones = oracle.solve(*system), np.ones((3, 6))

    @jax.jit
    def derivatives(*operands):
        gradient = jax.grad(lambda *o: (jax.vmap(solve)(*o) ** 2).sum(), range(4))(*operands)
        tangents = tuple(jnp.ones_like(a) for a in operands)
        return gradient, jax.jvp(jax.vmap(solve), operands, tangents)[1]

    gradient, forward = derivatives(*system)
    for own, one in zip(gradient, oracle.adjoint(*system[:3], x, 2 * x), strict=True):
        np.testing.assert_allclose(own, one, rtol=1e-11, atol=1e-12)
    change = oracle.solve(*system[:3], 1 - oracle.multiply(ones, ones, ones, x))
    np.testing.assert_allclose(forward, change, rtol=1e-11, atol=1e-12)


def test_rows_are_exchanged_unless_the_solver_says_otherwise():
    ones, diag = jnp.ones(4), jnp.zeros(4)
    expected = np.linalg.solve(np.eye(4, k=1) + np.eye(4, k=-1), np.arange(4.0))

    np.testing.assert_allclose(solve(ones, diag, ones, jnp.arange(4.0)), expected, atol=1e-14)
    with pytest.raises(Exception, match="non-finite"):
        solve(ones, diag, ones, jnp.arange(4.0), pivot=False)


def test_singular_operators_are_reported():
    operator = lineax.TridiagonalLinearOperator(jnp.zeros(3), jnp.zeros(2), jnp.zeros(2))
    found = lineax.linear_solve(operator, jnp.ones(3), Tridiagonal(), throw=False)

    assert found.result == lineax.RESULTS.singular
    with pytest.raises(Exception, match="singular"):
        lineax.linear_solve(operator, jnp.ones(3), Tridiagonal())


def test_trees_and_tagged_operators(rng):
    lower, diag, upper, rhs = oracle.dominant(rng, (5,))
    matrix = np.diag(diag) + np.diag(lower[1:], -1) + np.diag(upper[:-1], 1)
    operator = lineax.MatrixLinearOperator(jnp.asarray(matrix), lineax.tridiagonal_tag)
    x = lineax.linear_solve(operator, jnp.asarray(rhs), Tridiagonal()).value
    np.testing.assert_allclose(x, oracle.solve(lower, diag, upper, rhs), rtol=1e-13)

    def apply(parts):
        y = jnp.asarray(matrix) @ jnp.concatenate((parts["a"], parts["b"]))
        return {"a": y[:2], "b": y[2:]}

    parts = {"a": jnp.asarray(rhs[:2]), "b": jnp.asarray(rhs[2:])}
    structure = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), parts)
    tree = lineax.FunctionLinearOperator(apply, structure, lineax.tridiagonal_tag)
    y = lineax.linear_solve(tree, parts, Tridiagonal()).value
    np.testing.assert_allclose(jnp.concatenate((y["a"], y["b"])), x, rtol=1e-13)


def test_other_operators_are_refused():
    with pytest.raises(ValueError, match=r"TridiagonalLinearOperator.*got MatrixLinearOperator"):
        lineax.linear_solve(lineax.MatrixLinearOperator(jnp.eye(3)), jnp.ones(3), Tridiagonal())
    wide = lineax.MatrixLinearOperator(jnp.ones((2, 3)), lineax.tridiagonal_tag)
    with pytest.raises(ValueError, match="square"):
        lineax.linear_solve(wide, jnp.ones(2), Tridiagonal())


def test_example_runs():
    assert doctest.testmod(pysolvers.lineax).failed == 0

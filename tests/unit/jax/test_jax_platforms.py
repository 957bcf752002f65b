"""Platforms for which the package has no kernel: the functions of JAX lower to operations of JAX.

No such device is here. The same operations are run on the CPU, and lowered for a TPU.
"""

import importlib

import numpy as np
import oracle
import pytest

jax = pytest.importorskip("jax")
jnp = jax.numpy

import pysolvers  # noqa: E402
from pysolvers.jax import factor_tridiagonal, linear_recurrence, solve_tridiagonal  # noqa: E402


def close(actual, desired):
    np.testing.assert_allclose(actual, desired, rtol=0, atol=1e-12 * max(1, abs(desired).max()))


@pytest.fixture(scope="class")
def elsewhere():
    """Take the branch of other platforms; JAX compiles all functions anew once."""

    def default(*operands, default, **_):
        return default(*operands)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("_call", "recurrence"):
            module = importlib.import_module(f"pysolvers.jax.{name}")
            patch.setattr(module, "by_platform", default)
        jax.clear_caches()
        yield
    jax.clear_caches()


@pytest.mark.usefixtures("elsewhere")
class TestElsewhere:
    """Values and derivatives of the operations of JAX."""

    @pytest.mark.parametrize(
        ("rows", "periodic", "pivot"),
        [  # in turn: row exchanges, with complex numbers, and none
            (2, True, False),
            (17, False, None),
            *(
                pytest.param(*case, marks=pytest.mark.slow)
                for case in (
                    *((1, False, None), (17, True, False)),
                    (1, True, False),
                    (2, False, False),
                    (3, False, None),
                    (3, True, False),
                )
            ),
        ],
    )
    def test_solutions_satisfy_the_systems(self, rng, rows, periodic, pivot):
        dtype = np.complex128 if pivot is None else np.float64
        system = [oracle.uniform(rng, (5, rows), dtype) for _ in range(4)]
        if pivot is False:
            system[1] = system[1] + 4
        x = np.asarray(solve_tridiagonal(*system, periodic=periodic, pivot=pivot))

        desired = pysolvers.solve_tridiagonal(*system, periodic=periodic)
        np.testing.assert_allclose(
            pysolvers.tridiagonal_matvec(*system[:3], x, periodic=periodic), system[3], atol=1e-9
        )
        np.testing.assert_allclose(x, desired, rtol=1e-7)

    def test_zero_pivots_are_exchanged_and_singular_systems_are_nan(self):
        lower, upper = np.ones((1, 6)), np.ones((1, 6))
        diag = np.zeros((1, 6))
        x = solve_tridiagonal(lower, diag, upper, np.arange(6.0))
        close(
            np.asarray(x), np.linalg.solve(np.eye(6, k=1) + np.eye(6, k=-1), np.arange(6.0))[None]
        )

        # Small pivots everywhere, also that of the last row before the corner.
        diag = np.array([[1e-14, 1.0, 1e-14, 1e-14]])
        x = solve_tridiagonal(1.0, diag, 1.5, np.arange(4.0), periodic=True)
        matrix = np.diag(diag[0]) + np.diag([1.5] * 3, 1) + np.diag([1.0] * 3, -1)
        matrix[0, 3], matrix[3, 0] = 1.0, 1.5
        close(np.asarray(x), np.linalg.solve(matrix, np.arange(4.0))[None])

        diag = np.array([[2.0, 2.0, 2.0], [0.0, 2.0, 2.0]])
        x = solve_tridiagonal(0.0, diag, 0.0, np.ones((2, 3)))
        assert np.isnan(x[1]).all() and (x[0] == 0.5).all()

    @pytest.mark.parametrize(
        ("trans", "axis"),
        [("T", -1), *(pytest.param(t, 0, marks=pytest.mark.slow) for t in "NH")],
    )
    def test_short_shared_and_transposed_matrices(self, rng, trans, axis):
        lower, diag, upper, _ = oracle.dominant(rng, (6,))
        rhs = oracle.uniform(rng, (6, 6))
        arguments = lower[1:], diag, upper[:-1]

        x = factor_tridiagonal(*arguments, axis=-1).solve(rhs, trans=trans)

        close(np.asarray(x), pysolvers.factor_tridiagonal(*arguments).solve(rhs, trans=trans))
        y = solve_tridiagonal(*arguments, rhs, axis=axis)
        close(np.asarray(y), pysolvers.solve_tridiagonal(*arguments, rhs, axis=axis))

    @pytest.mark.each_value
    @pytest.mark.parametrize("periodic", [False, True])
    @pytest.mark.parametrize("rows", [2, 40])
    def test_row_sums_keep_their_digits(self, rng, periodic, rows):
        lower, upper = -rng.random((2, 3, rows)) * 10.0 ** rng.integers(0, 8, (2, 3, rows))
        sums, rhs = 1e-6 * rng.random((3, rows)), rng.random((3, rows))
        form = pysolvers.RowSums(sums)

        x = np.asarray(solve_tridiagonal(lower, form, upper, rhs, periodic=periodic))

        desired = pysolvers.solve_tridiagonal(lower, form, upper, rhs, periodic=periodic)
        np.testing.assert_allclose(x, desired, rtol=1e-13)

    @pytest.mark.each_value
    @pytest.mark.parametrize("reverse", [False, True])
    @pytest.mark.parametrize("order", [1, 2])
    def test_recurrences(self, rng, reverse, order):
        a, b, c = rng.uniform(-0.6, 0.6, (3, 2, 9))
        options = {"reverse": reverse} | ({"second": c} if order == 2 else {})

        close(
            np.asarray(linear_recurrence(a, b, **options)),
            pysolvers.linear_recurrence(a, b, **options),
        )

    @pytest.mark.parametrize("periodic", [pytest.param(False, marks=pytest.mark.slow), True])
    def test_gradients_and_vmap_are_those_of_linear_algebra(self, rng, periodic):
        lower, diag, upper, rhs = oracle.dominant(rng, (4, 7))

        def value(*operands):
            one = jax.vmap(lambda *o: solve_tridiagonal(*o, periodic=periodic), (0, 0, 0, None))
            return (one(*operands) ** 2).sum()

        found = jax.jit(jax.grad(value, argnums=(0, 1, 2, 3)))(lower, diag, upper, rhs[0])

        shared = np.broadcast_to(rhs[0], rhs.shape)
        x = oracle.solve(lower, diag, upper, shared, periodic=periodic)
        *matrix, last = oracle.adjoint(lower, diag, upper, x, 2 * x, periodic=periodic)
        for one, other in zip(found, (*matrix, last.sum(0)), strict=True):
            close(np.asarray(one), other)

    @pytest.mark.slow
    def test_split_rows(self, rng):
        sharding = jax.sharding
        if not hasattr(jax, "shard_map") or len(jax.devices()) < 2:
            pytest.skip("needs jax.shard_map and two devices")
        system = oracle.dominant(rng, (3, 8))
        split = sharding.PartitionSpec(None, "rows")
        mesh = sharding.Mesh(np.array(jax.devices()[:2]), ("rows",))
        for options, spec in ({"axis_name": "rows"}, split), ({}, sharding.PartitionSpec()):
            solve = jax.shard_map(
                lambda *o, options=options: solve_tridiagonal(*o, **options),
                mesh=mesh,
                in_specs=(spec,) * 4,
                out_specs=spec,
            )
            close(np.asarray(solve(*system)), oracle.solve(*system))


@pytest.mark.parametrize("name", ["solve", "periodic", "sums", "recurrence", "second", "gradient"])
def test_programs_for_a_tpu_call_no_kernel_of_the_package(name):
    export = pytest.importorskip("jax.export")
    a = jnp.ones((3, 8), jnp.float32)
    functions = {
        "solve": lambda a: solve_tridiagonal(-a, 3 * a, -a, a),
        "periodic": lambda a: solve_tridiagonal(-a, 3 * a, -a, a, periodic=True),
        "sums": lambda a: solve_tridiagonal(-a, pysolvers.RowSums(a), -a, a),
        "recurrence": lambda a: linear_recurrence(a, a),
        "second": lambda a: linear_recurrence(a, a, second=a),
        "gradient": jax.grad(lambda a: solve_tridiagonal(-a, 3 * a, -a, a).sum()),
    }
    program = jax.jit(functions[name])
    assert (
        "pysolvers"
        in export.export(
            program,
            platforms=["cpu"],
            disabled_checks=[
                export.DisabledSafetyCheck.custom_call("pysolvers_tridiagonal"),
                export.DisabledSafetyCheck.custom_call("pysolvers_recurrence"),
            ],
        )(a).mlir_module()
    )
    assert (
        "custom_call @pysolvers" not in export.export(program, platforms=["tpu"])(a).mlir_module()
    )

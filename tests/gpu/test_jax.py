"""`pysolvers.jax` on a device: the same numbers as on the CPU, also inside CUDA graphs."""

from functools import partial

import numpy as np
import oracle
import pytest

jax = pytest.importorskip("jax")

import pysolvers  # noqa: E402
from pysolvers.jax import CubicSpline, solve_tridiagonal  # noqa: E402

OPERANDS = range(4)


@pytest.fixture(autouse=True)
def device(cuda):
    """Let JAX have float64 and use the first device."""
    try:
        (first, *_) = jax.devices("cuda")
    except RuntimeError as error:
        pytest.skip(str(error))
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    with jax.default_device(first):
        yield first
    jax.config.update("jax_enable_x64", before)


def on_host(function, *operands):
    """Call a function on the CPU."""
    with jax.default_device(jax.devices("cpu")[0]):
        return jax.tree.map(np.asarray, function(*operands))


def close(actual, desired, factor=1e4):
    most = factor * np.finfo(desired.dtype).eps * max(1, np.max(np.abs(desired), initial=0))
    np.testing.assert_allclose(np.asarray(actual), desired, rtol=0, atol=most)


@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (100, 64), (33, 513), (2, 100_000)])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_solution_has_a_small_backward_error(rng, device, dtype, shape, periodic):
    system = oracle.dominant(rng, shape, dtype)

    x = jax.jit(lambda *a: solve_tridiagonal(*a, periodic=periodic))(*system)

    assert x.devices() == {device}
    error = oracle.backward_error(*system, np.asarray(x), periodic=periodic)
    assert error < 50 * oracle.eps(dtype)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shared", [False, True])
def test_systems_lie_along_any_axis_and_share_matrices(rng, axis, shared):
    lower, diag, upper, rhs = oracle.dominant(rng, (20, 30, 65))
    matrix = [a[:1, :1] if shared else a for a in (lower, diag, upper)]
    operands = [np.moveaxis(a, -1, axis) for a in (*matrix, rhs)]

    x = solve_tridiagonal(*operands, axis=axis)

    close(np.moveaxis(np.asarray(x), axis, -1), oracle.solve(*matrix, rhs))


@pytest.mark.parametrize("pivot", [None, True])
def test_rows_are_exchanged(rng, pivot):
    system = oracle.general(rng, (20, 300))

    x = np.asarray(solve_tridiagonal(*system, pivot=pivot))

    assert oracle.matrix_backward_error(*system, x).max() < 1000 * oracle.eps(np.float64)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_singular_systems_are_nan(rng, dtype, axis):
    system = oracle.dominant(rng, (70, 64), dtype)
    for a in system[:3]:
        a[33, 5] = 0

    x = solve_tridiagonal(*(np.moveaxis(a, -1, axis) for a in system), axis=axis)

    x = np.moveaxis(np.asarray(x), axis, -1)
    assert np.isnan(x[33]).all()
    others = [np.delete(a, 33, axis=0) for a in (*system, x)]
    assert oracle.backward_error(*others) < 50 * oracle.eps(dtype)


OPTIONS = [{}, {"periodic": True}, {"axis": 0}, {"pivot": True}]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("dtype", oracle.DTYPES)
def test_gradients_are_those_of_the_host(rng, dtype, options):
    rows = (1, 4, 33, 1000)[(OPTIONS.index(options) + oracle.DTYPES.index(dtype)) % 4]
    system = [
        np.moveaxis(a, -1, options.get("axis", -1)) for a in oracle.dominant(rng, (9, rows), dtype)
    ]
    weight = oracle.uniform(rng, system[0].shape, dtype)

    def gradients(*operands):
        return jax.jit(
            jax.grad(lambda *a: (weight * solve_tridiagonal(*a, **options)).real.sum(), OPERANDS)
        )(*operands)

    for found, desired in zip(gradients(*system), on_host(gradients, *system), strict=True):
        close(found, desired)


def test_repeated_calls_report_singular_systems(rng):
    system = oracle.dominant(rng, (7, 65))
    desired = pysolvers.solve_tridiagonal(*system)
    for _ in range(5):
        close(pysolvers.solve_tridiagonal(*map(jax.numpy.asarray, system)), desired)

    lower, diag, upper, _ = system
    lower[3, 4] = diag[3, 4] = upper[3, 4] = 0
    for _ in range(5):
        with pytest.raises(pysolvers.SingularSystemError) as caught:
            pysolvers.solve_tridiagonal(*map(jax.numpy.asarray, system))
        np.testing.assert_array_equal(caught.value.systems, [[3]])


@pytest.mark.parametrize("trans", ["N", "T"])
@pytest.mark.parametrize("options", [{}, {"pivot": False}, {"periodic": True}])
def test_repeated_solves_with_factors_are_compiled(rng, options, trans):
    system = oracle.dominant(rng, (7, 65))
    desired = pysolvers.factor_tridiagonal(*system[:3], **options).solve(system[3], trans=trans)
    *matrix, rhs = map(jax.numpy.asarray, system)
    factor = pysolvers.factor_tridiagonal(*matrix, **options)

    for _ in range(5):
        x = factor.solve(rhs, trans=trans)
        assert x.sharding == rhs.sharding
        close(x, desired)

    assert factor._factors.programs[0]._matrices is not None


def test_gradients_of_a_shared_matrix_and_vmap(rng):
    lower, diag, upper, _ = oracle.dominant(rng, (65,))
    rhs = oracle.uniform(rng, (300, 65))

    def gradients(*operands):
        solve = jax.vmap(solve_tridiagonal, (None, None, None, 0))
        return jax.jit(jax.grad(lambda *a: (solve(*a) ** 2).sum(), OPERANDS))(*operands)

    operands = lower, diag, upper, rhs
    for found, desired in zip(gradients(*operands), on_host(gradients, *operands), strict=True):
        close(found, desired)


def test_operands_can_be_parts_of_arrays(rng):
    """XLA may pass an address inside another array, which is aligned to an element only."""
    systems = [oracle.dominant(rng, (5, 4, 63), np.float32) for _ in range(3)]
    stacked = [np.stack(parts) for parts in zip(*systems, strict=True)]

    x = jax.jit(lambda *a: jax.lax.map(lambda each: solve_tridiagonal(*each), a))(*stacked)

    for k, system in enumerate(systems):
        assert oracle.backward_error(*system, np.asarray(x[k])) < 50 * oracle.eps(np.float32)


def test_chains_of_solves_are_repeated_with_other_operands(rng):
    """A program of several solves becomes a CUDA graph, which is launched again."""
    lower, diag, upper, _ = oracle.dominant(rng, (100, 64))

    @jax.jit
    def chain(lower, diag, upper, rhs):
        for k in range(8):
            rhs = solve_tridiagonal(lower, diag + k, upper, rhs)
        return rhs

    for _ in range(5):
        rhs = oracle.uniform(rng, (100, 64))
        desired = rhs
        for k in range(8):
            desired = oracle.solve(lower, diag + k, upper, desired)
        close(chain(lower, diag, upper, jax.numpy.asarray(rhs)), desired)


def test_loop_of_a_thousand_solves(rng):
    """Implicit steps of diffusion, which keep the mean of each system."""
    k = rng.uniform(0.01, 0.1, (100, 1))
    rhs = oracle.uniform(rng, (100, 64))

    def loop(k, rhs):
        def step(_, x):
            return solve_tridiagonal(-k, 1 + 2 * k, -k, x, periodic=True)

        return jax.jit(lambda x: jax.lax.fori_loop(0, 1000, step, x))(rhs)

    found, desired = loop(k, rhs), on_host(loop, k, rhs)
    np.testing.assert_allclose(np.asarray(found), desired, atol=1e-11)


def test_each_device_solves_its_part(rng):
    if len(jax.devices("cuda")) < 2:
        pytest.skip("needs two devices")
    devices = np.array(jax.devices("cuda")[:2])
    over = jax.sharding.PartitionSpec("systems")
    system = oracle.dominant(rng, (64, 100))

    solve = jax.shard_map(
        solve_tridiagonal,
        mesh=jax.sharding.Mesh(devices, ("systems",)),
        in_specs=(over,) * 4,
        out_specs=over,
    )

    x = jax.jit(solve)(*system)
    assert x.devices() == set(devices)
    close(x, oracle.solve(*system))


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("bc_type", ["not-a-knot", "periodic"])
def test_splines_and_their_gradients_are_those_of_the_host(rng, bc_type, own):
    x = np.cumsum(rng.uniform(0.5, 1.5, (65, 40 if own else 1)), axis=0)
    x = x if own else x[:, 0]
    y, points = rng.standard_normal((65, 40)), rng.uniform(-3, 70, 100)

    def values(x, y, points):
        def loss(*arguments):
            spline = CubicSpline(*arguments[:2], bc_type=bc_type)
            integral = spline.integrate(arguments[2][0], 9.0)
            return (spline(arguments[2]) ** 2).sum() + integral.sum(), spline.c

        return jax.jit(jax.value_and_grad(loss, (0, 1, 2), has_aux=True))(x, y, points)

    found, desired = (jax.tree.leaves(f(x, y, points)) for f in (values, partial(on_host, values)))

    for a, b in zip(found, desired, strict=True):
        close(a, np.asarray(b))

"""`pysolvers.jax` on a device: the same numbers as on the CPU, also inside CUDA graphs."""

import numpy as np
import oracle
import pytest

jax = pytest.importorskip("jax")

import pysolvers  # noqa: E402
from pysolvers.jax import solve_tridiagonal  # noqa: E402


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

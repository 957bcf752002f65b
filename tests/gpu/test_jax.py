"""`pysolvers.jax` on a device: the same numbers as on the CPU, also inside CUDA graphs."""

import numpy as np
import oracle
import pytest

jax = pytest.importorskip("jax")

import pysolvers  # noqa: E402
from pysolvers.jax import (  # noqa: E402
    FastPoisson as JaxPoisson,
    linear_recurrence as jax_recurrence,
    solve_block_tridiagonal,
    solve_pentadiagonal,
    solve_tridiagonal,
)
from pysolvers.jax.smoothing import whittaker  # noqa: E402


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


def grads_on_both(function, operands, bound=1e4):
    """Compare a value and the gradients of a sum of squares with those of the CPU."""
    loss = jax.value_and_grad(lambda *a: (function(*a) ** 2).sum(), tuple(range(len(operands))))
    value, found = jax.jit(loss)(*map(jax.numpy.asarray, operands))
    desired_value, desired = on_host(loss, *operands)
    close(value, desired_value, bound)
    for one, wanted in zip(found, desired, strict=True):
        close(one, wanted, bound)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(("shape", "axis"), [((3, 5000), -1), ((700, 40), 0), ((1, 40_000), 1)])
def test_recurrences_and_their_gradients(rng, shape, axis, order, reverse):
    a, second = (rng.uniform(-0.45, 0.45, shape) for _ in range(2))
    operands = (a, rng.standard_normal(shape), *((second,) if order == 2 else ()))

    def compute(a, b, second=None):
        return jax_recurrence(a, b, second=second, axis=axis, reverse=reverse)

    close(compute(*map(jax.numpy.asarray, operands)), on_host(compute, *operands))
    grads_on_both(compute, operands)
    shared = (np.float64(0.5), operands[1])
    grads_on_both(compute, shared, 1e6)


@pytest.mark.parametrize("pivot", [None, False, True])
@pytest.mark.parametrize("side", [0, 2, 3, 4, 5])
def test_blocks_and_their_gradients(rng, side, pivot):
    """Side 5 is solved on the host; one of the systems needs row exchanges by default."""
    if side == 0:
        operands = [rng.uniform(-0.2, 0.2, (70, 9)) for _ in range(5)]
        operands[2] += 1
        operands.append(rng.standard_normal((70, 9)))
        solve = solve_pentadiagonal
    else:
        operands = [rng.uniform(-0.2, 0.2, (70, 9, side, side)) / side for _ in range(3)]
        operands[1] += np.eye(side)
        operands.append(rng.standard_normal((70, 9, side, 2)))
        solve = solve_block_tridiagonal
        if pivot is not False:
            operands[1][0, 4] *= 1e-3
    grads_on_both(lambda *a: solve(*a, pivot=pivot), operands, 1e6)


def test_singular_blocks_and_smoothers(rng):
    definite = [np.broadcast_to(np.eye(2) * v, (50, 6, 2, 2)).copy() for v in (0.1, 1.0, 0.1)]
    definite[1][3] *= -1
    rhs = rng.standard_normal((50, 6, 2, 1))
    x = np.asarray(solve_block_tridiagonal(*definite, rhs, assume="positive definite"))
    assert np.isnan(x[3]).all()
    assert np.isfinite(np.delete(x, 3, 0)).all()
    y = rng.standard_normal((40, 100))
    for order in (1, 2):
        grads_on_both(lambda y, lam, o=order: whittaker(y, lam, order=o), (y, 7.0), 1e6)


@pytest.mark.parametrize(
    ("geometry", "grid", "dtype"),
    [("cartesian", "nodes", "float64"), ("cylinder", "cells", "float32")],
)
def test_poisson_and_its_gradients(rng, geometry, grid, dtype):
    """Transforms, products and lines; f, a side and the number c."""
    shape = 24, 17
    r = np.linspace(0, 1, shape[1] + (grid == "cells")) ** 1.5
    boundary = {"x+": pysolvers.Robin(2.0, 0.5), "y-": pysolvers.Neumann(0.3), "y+": 0.0}
    if geometry == "cartesian":
        boundary["x-"] = 1.0
    options = {"boundary": boundary, "grid": grid, "geometry": geometry, "helmholtz": 0.7}
    solver = JaxPoisson(shape, (r, 0.1), **options)
    f, side = rng.random(shape).astype(dtype), rng.random(shape[1]).astype(dtype)
    weight = rng.random(shape).astype(dtype)

    def loss(f, side, number):
        boundary = {"y+": side}
        return (weight * solver.solve(f, boundary=boundary, helmholtz=number) ** 2).sum()

    host = pysolvers.FastPoisson(shape, (r, 0.1), dtype=dtype, **options)
    expected = host.solve(f, boundary={"y+": side})
    close(
        solver.solve(jax.numpy.asarray(f), boundary={"y+": jax.numpy.asarray(side)}), expected, 200
    )
    arguments = f, side, np.asarray(0.7, dtype)
    gradients = jax.grad(loss, argnums=(0, 1, 2))
    for own, wanted in zip(
        jax.jit(gradients)(*map(jax.numpy.asarray, arguments)),
        on_host(gradients, *arguments),
        strict=True,
    ):
        assert own.devices() == {jax.devices("cuda")[0]}
        close(own, wanted, 200)

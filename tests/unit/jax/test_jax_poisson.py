"""`pysolvers.jax.FastPoisson`: the numbers of `pysolvers.FastPoisson`, and gradients."""

import numpy as np
import pytest
from poisson_reference import conditions

jax = pytest.importorskip("jax")
pytest.importorskip("scipy")

import pysolvers  # noqa: E402
from pysolvers import Neumann  # noqa: E402
from pysolvers.jax import FastPoisson  # noqa: E402

ENDS = ("DD", "DN", "ND", "NN", "PP")


def solutions(shape, spacing, f, boundary, **options):
    """Return the solution of this package for arrays, and that for JAX."""
    singular = all(isinstance(one, str | Neumann) for one in boundary.values())
    host = pysolvers.FastPoisson(
        shape,
        spacing,
        boundary=boundary,
        dtype=f.dtype,
        on_incompatible="ignore" if singular else "raise",
        **options,
    )
    solver = FastPoisson(shape, spacing, boundary=boundary, **options)
    assert solver.is_singular == singular
    return host.solve(f), jax.jit(solver.solve)(f)


def close(actual, desired):
    most = 1e4 * np.finfo(desired.dtype).eps * np.abs(desired).max()
    assert actual.dtype == desired.dtype
    np.testing.assert_allclose(actual, desired, rtol=0, atol=most)


@pytest.mark.parametrize("grid", ["nodes", "cells"])
@pytest.mark.parametrize("ends", ENDS)
def test_sides_of_all_kinds(rng, grid, ends):
    for others in ENDS:
        boundary = conditions((others, ends), (6, 7), rng.random)
        desired, found = solutions((6, 7), (0.1, 0.2), rng.random((6, 7)), boundary, grid=grid)
        close(found, desired)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("kinds", [("DN", "PP", "PP"), ("PP", "ND", "PP"), ("NN", "NN", "PP")])
def test_boxes_and_types(rng, kinds, dtype):
    shape = (4, 5, 6)
    f = rng.random(shape).astype(dtype)
    values = {"D": np.float32(0.5), "N": Neumann(np.float32(0.2)), "P": "periodic"}
    boundary = {
        axis + sign: values[end]
        for axis, ends in zip("xyz", kinds, strict=True)
        for sign, end in zip("-+", ends, strict=True)
    }

    desired, found = solutions(shape, 0.3, f, boundary)

    close(found, desired)


def test_stretched_line(rng):
    nodes = np.cumsum(rng.random(9) + 0.5)

    desired, found = solutions((9,), nodes, rng.random(9), {"x-": 1.0, "x+": Neumann(0.3)})

    close(found, desired)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("boundary", [Neumann(), {"x": "periodic", "y": Neumann()}])
def test_thin_cells_along_the_lines(boundary, dtype):
    """A long wave along y: its eigenvalue must not be lost beside 1 / spacing^2 of x."""
    size, faces = 64, np.concatenate([[0], np.cumsum(np.geomspace(1, 200, 60))])
    for rows, spacing, step in ((60, faces, 1e3), (32, 1.0, 1e4), (32, 1e-4, 1e4), (32, 1.0, 1.0)):
        theta = np.pi / size
        eigenvalue = -((2 / step * np.sin(theta / 2)) ** 2)
        wave = np.cos(theta * (np.arange(size) + 0.5))[:, None] * np.ones(rows)
        solver = FastPoisson((size, rows), (spacing, step), boundary=boundary, grid="cells")
        u = np.asarray(solver.solve(wave.astype(dtype)))
        assert u.dtype == dtype
        assert np.abs(u * eigenvalue - wave).max() <= 20 * np.finfo(dtype).eps


@pytest.mark.parametrize("grid", ["nodes", "cells"])
def test_gradients_of_thin_lines_in_single_precision(rng, grid):
    """The gradient of g . S f is S^T g = v S (g / v), which the host solves in double precision."""
    shape, steps = (12, 20), (1e-3, 1.0)
    for boundary in (Neumann(), {"x-": Neumann(), "x+": 0.0, "y": Neumann()}):
        solver = FastPoisson(shape, steps, boundary=boundary, grid=grid)
        wave = np.cos(np.pi * (np.arange(12) + 0.5) / 12)[:, None] * (1 + 0.1 * rng.random(shape))
        wave = wave.astype(np.float32)
        found = jax.grad(lambda f, g=wave, s=solver: (g * s.solve(f)).sum())(np.zeros_like(wave))
        volumes = np.ones(shape)
        if grid == "nodes":
            volumes[[0, -1]] /= 2
            volumes[:, [0, -1]] /= 2
        host = pysolvers.FastPoisson(
            shape, steps, boundary=boundary, grid=grid, on_incompatible="ignore"
        )
        desired = volumes * host.solve(wave / volumes)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, desired, rtol=0, atol=2e-5 * np.abs(desired).max())


def test_spacings_out_of_the_range_of_the_dtype():
    solver = FastPoisson(8, 1e-25, boundary=0.0)
    assert np.isfinite(solver.solve(np.ones(8))).all()
    with pytest.raises(ValueError, match=r"spacing along x must be at least .* in float32"):
        solver.solve(np.ones(8, np.float32))
    with pytest.raises(ValueError, match=r"spacing along x must be at least .* in float64"):
        FastPoisson(8, 1e-200, boundary=0.0)


@pytest.mark.parametrize("kinds", [("DN", "DD"), ("NN", "PP")])
def test_gradients_agree_with_finite_differences(rng, kinds):
    shape = 5, 6
    boundary = conditions(kinds, shape, rng.random)
    solver = FastPoisson(shape, 0.2, boundary=boundary)
    f, weight, side = rng.random(shape), rng.random(shape), rng.random(5)

    def loss(f, side):
        new = {"x-": Neumann(side) if kinds[0][0] == "N" else side}
        return (weight * solver.solve(f, boundary=new) ** 2).sum()

    directions = rng.random(shape), rng.random(5)
    slopes = jax.jit(jax.grad(loss, (0, 1)))(f, side)
    total = sum((s * d).sum() for s, d in zip(slopes, directions, strict=True))
    h = 1e-5
    loss = jax.jit(loss)
    ends = [loss(f + t * directions[0], side + t * directions[1]) for t in (-h, h)]
    np.testing.assert_allclose(total, (ends[1] - ends[0]) / (2 * h), rtol=1e-6)


def test_batches_by_vmap(rng):
    solver = FastPoisson((5, 6), 0.2, boundary={"x": 0.0, "y": "periodic"})
    f = rng.random((3, 5, 6))

    solve = jax.jit(solver.solve)

    together = jax.vmap(solve)(f)

    for one, right in zip(together, f, strict=True):
        close(one, np.asarray(solve(right)))


def test_errors_name_the_rule():
    with pytest.raises(TypeError, match="boundary x- must be a number or an array"):
        FastPoisson(5, 0.1, boundary=lambda x: x)
    solver = FastPoisson(5, 0.1, boundary=0.0)
    with pytest.raises(TypeError, match="x- is Dirichlet in this solver"):
        solver.solve(1.0, boundary={"x-": Neumann()})
    with pytest.raises(TypeError, match="f must be a number or an array, not a function"):
        solver.solve(lambda x: x)
    assert solver.solve(1).dtype == np.float64

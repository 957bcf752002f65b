"""ParabolicADI and AdvectionDiffusion on a GPU, by arrays of CuPy: the solutions of the CPU."""

import numpy as np
import pytest
from parabolic_cases import HESTON, SCHEMES, heston_mesh, heston_solver
from solver_cases import advected, parabolic

from pysolvers import ConvergenceError, Neumann, ParabolicADI, Robin

pytest.importorskip("cupy")


def assert_same(make, count=3, **options):
    there, here = make(device="cuda", **options), make(**options)
    there.step(count)
    here.step(count)
    scale = np.abs(here.u).max()
    np.testing.assert_allclose(there.u, here.u, rtol=0, atol=1e-12 * scale)
    return there, here


@pytest.mark.parametrize("damped", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_schemes_and_sides(scheme, damped, rng):
    there, here = assert_same(parabolic, scheme=scheme, damped_start=damped)
    there.u = here.u = rng.random(here.u.shape)
    np.testing.assert_allclose(there.step(2).u, here.step(2).u, rtol=0, atol=1e-12)
    assert there.result().backend == "cuda"


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_coefficients_and_sides_of_place_and_time(axes, rng):
    shape, names = (7, 9, 12)[-axes:], "xyz"[:axes]
    diffusion = {name * 2: lambda x, t: 1 + x + t for name in names}
    if axes > 1:
        diffusion["xy"] = rng.random(shape)
    boundary = {"x-": Robin(0.5, lambda t: t), "x+": "linear", "y": Neumann(0.2), "z": "periodic"}
    options = {
        "spacing": 0.1,
        "dt": 0.02,
        "diffusion": diffusion,
        "advection": {"x": lambda t: np.cos(t)},
        "reaction": -0.1,
        "source": lambda x, t: x * t,
        "boundary": {k: v for k, v in boundary.items() if k[0] in names},
        "initial": rng.random(shape),
    }
    assert_same(lambda **more: ParabolicADI(shape, **options, **more))


@pytest.mark.parametrize("has_arrays", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("shape", [(300, 770), (770, 301), (40, 1500), (3, 65)])
def test_plates(shape, scheme, has_arrays, rng):
    k = 1 + rng.random(shape) if has_arrays else 1.0
    options = {
        "extent": ((0, 1), (0, 1)),
        "diffusion": {"xx": k, "xy": 0.5 * k, "yy": k},
        "boundary": {"x": 0.5, "y-": Neumann(0.1), "y+": 0.2},
        "initial": rng.random(shape),
        "dt": 1e-3,
        "scheme": scheme,
    }
    assert_same(lambda **more: ParabolicADI(shape, **options, **more))


@pytest.mark.parametrize("sides", [0.5, "periodic", Neumann(0.1)], ids=["value", "ring", "flux"])
@pytest.mark.parametrize("mixed", [0.0, 0.4])
@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("shape", [(64, 130), (70, 132), (5, 8)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_constant_coefficients(dtype, shape, batch, mixed, sides, rng):
    """Rows that begin at packs of 16 bytes, and rows that do not."""
    options = {
        "extent": ((0, 1), (0, 1)),
        "batch": batch,
        "diffusion": {"xx": 1.0, "yy": 2.0} | ({"xy": mixed} if mixed else {}),
        "advection": {"y": 0.5},
        "boundary": {"x": sides, "y": sides if sides == "periodic" else 0.0},
        "initial": rng.random((*batch, *shape)),
        "dt": 1e-3,
        "dtype": dtype,
    }
    for scheme in ("douglas", "modified-craig-sneyd"):
        there, here = (
            ParabolicADI(shape, scheme=scheme, device=on, **options) for on in ("cuda", "cpu")
        )
        eps = np.finfo(dtype).eps
        np.testing.assert_allclose(there.step(3).u, here.step(3).u, rtol=0, atol=500 * eps)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("nodes", [20, 1500, 4096])
def test_lines_of_a_batch(nodes, dtype, rng):
    options = {
        "spacing": 1.0,
        "diffusion": {"xx": 1.0},
        "boundary": {"x-": 0.3, "x+": Neumann(0.1)},
        "initial": rng.random(nodes),
        "dt": 0.4,
        "batch": 3,
        "dtype": dtype,
    }
    there, here = (ParabolicADI((nodes,), device=on, **options) for on in ("cuda", "cpu"))
    eps = np.finfo(dtype).eps
    np.testing.assert_allclose(there.step(3).u, here.step(3).u, rtol=0, atol=200 * eps)


def test_a_singular_matrix():
    nothing = {"diffusion": {"xx": 0.0, "yy": 0.0}, "boundary": "periodic", "initial": 1.0}
    options = {"spacing": 1.0, "reaction": 8.0, "dt": 0.5, "scheme": "douglas", **nothing}
    with pytest.raises(ConvergenceError, match="not finite"):
        ParabolicADI((5, 6), device="cuda", **options).step()


def test_heston():
    parameters, mesh = HESTON[1]
    s, v = heston_mesh((80, 40), mesh)
    assert_same(lambda **more: heston_solver(parameters, s, v, dt=0.02, **more), 10)


@pytest.mark.parametrize("differences", ["central", "upwind", "third-order"])
def test_advection_and_diffusion(differences):
    assert_same(advected, differences=differences)


def test_a_state_goes_on_elsewhere(tmp_path):
    there, here = assert_same(advected)
    there.save(tmp_path / "state")
    repeated = type(here).load(tmp_path / "state", here.problem, device="cpu")
    np.testing.assert_allclose(repeated.step().u, here.step().u, rtol=0, atol=1e-12)

"""The cavity on a staggered grid with a force, and with another velocity of the lid."""

import copy
import pickle

import numpy as np
import pytest
from staggered_steps import reference_step, state

import pysolvers
from pysolvers import StaggeredCavity
from pysolvers.papers import survey2014

PRESSURES = ["fast", "sor"]


def faces(n):
    """Coordinates x and y of u, then of v."""
    centres, edges = (np.arange(n) + 0.5) / n, np.arange(n + 1) / n
    return (edges, centres[:, None]), (centres, edges[:, None])


def gradient(p):
    """Differences of a potential of cells, 0 on the walls."""
    n = len(p)
    x, y = np.zeros((n, n + 1)), np.zeros((n + 1, n))
    x[:, 1:-1], y[1:-1] = np.diff(p, axis=1) * n, np.diff(p, axis=0) * n
    return x, y


@pytest.mark.parametrize("pressure", PRESSURES)
@pytest.mark.parametrize("lid", [1.0, 0.0, -2.5])
def test_step_has_the_force_at_its_start(pressure, lid):
    """Against the scheme: a force is an addition of dt f to the velocity before the projection."""
    n, re, dt = 9, 40, 0.004

    def fx(t, y, x):
        return np.sin(3 * x) * y * (1 + 5 * t)

    fy = np.random.default_rng(1).random((n + 1, n))
    cavity = StaggeredCavity(
        re, n, lid_velocity=lid, force=(fx, fy), pressure=pressure, pressure_tol=1e-12, dt=dt
    ).step(12)
    u, v, t = cavity.u.copy(), cavity.v.copy(), cavity.time

    cavity.step()

    f, g, _ = reference_step(u, v, re, dt, 0.0, lid, force=(fx(t, *faces(n)[0][::-1]), fy))
    np.testing.assert_allclose(cavity.u, f, atol=1e-12)
    np.testing.assert_allclose(cavity.v, g, atol=1e-12)


@pytest.mark.parametrize("pressure", PRESSURES)
def test_a_gradient_changes_the_pressure_only(pressure):
    n = 24
    centres = (np.arange(n) + 0.5) / n
    potential = np.sin(3 * centres) * np.exp(centres)[:, None]
    force = gradient(potential)

    cavity = StaggeredCavity(
        100, n, lid_velocity=0, force=force, pressure=pressure, pressure_tol=1e-11
    ).step(40)

    assert max(np.abs(cavity.u).max(), np.abs(cavity.v).max()) < 1e-13
    np.testing.assert_allclose(cavity.p, potential - potential.mean(), atol=1e-12)
    assert cavity.result().psi.max() < 1e-13


def swirl(x, y):
    """Velocity of psi = (sin(pi x) sin(pi y))^2, which has no slip on all walls."""
    s, c = np.sin, np.cos
    u = 2 * np.pi * s(np.pi * x) ** 2 * s(np.pi * y) * c(np.pi * y)
    v = -2 * np.pi * s(np.pi * x) * c(np.pi * x) * s(np.pi * y) ** 2
    return u, v


def force_of_swirl(re):
    """Force that keeps `swirl` steady, with the pressure cos(pi x) cos(pi y)."""
    k, s, c = np.pi, np.sin, np.cos

    def fx(x, y):
        u, v = swirl(x, y)
        ux = 2 * k**2 * s(2 * k * x) * s(k * y) * c(k * y)
        uy = 2 * k**2 * s(k * x) ** 2 * c(2 * k * y)
        lap = 4 * k**3 * c(2 * k * x) * s(k * y) * c(k * y)
        lap = lap - 4 * k**3 * s(k * x) ** 2 * s(2 * k * y)
        return u * ux + v * uy - k * s(k * x) * c(k * y) - lap / re

    def fy(x, y):
        u, v = swirl(x, y)
        vx = -2 * k**2 * c(2 * k * x) * s(k * y) ** 2
        vy = -2 * k**2 * s(k * x) * c(k * x) * s(2 * k * y)
        lap = 4 * k**3 * s(2 * k * x) * s(k * y) ** 2
        lap = lap - 4 * k**3 * s(k * x) * c(k * x) * c(2 * k * y)
        return u * vx + v * vy - k * c(k * x) * s(k * y) - lap / re

    return fx, fy


def test_a_steady_solution_has_order_two():
    errors = []
    for n in (12, 24):
        cavity = StaggeredCavity(10, n, lid_velocity=0, force=force_of_swirl(10))
        result = cavity.solve(1e-6)
        (xu, yu), (xv, yv) = faces(n)
        u, v = swirl(xu, yu)[0], swirl(xv, yv)[1]
        p = np.cos(np.pi * result.x) * np.cos(np.pi * result.y)[:, None]
        errors.append([np.abs(result.u - u).max(), np.abs(result.v - v).max()])
        errors[-1].append(np.abs(result.p - p).max())
    orders = np.log2(np.divide(*errors))
    assert (orders > 1.85).all(), (orders, errors)
    assert max(errors[1][:2]) < 0.02


def test_a_force_in_time_has_order_one():
    """Fluid that a force cos(t) accelerates from rest: against steps eight times as short."""

    def velocity(dt):
        force = (lambda y, t: y * np.cos(t), 0.0)
        return StaggeredCavity(10, 8, lid_velocity=0, force=force, dt=dt).run(0.5).u

    fine = velocity(0.5 / 1600)
    errors = [np.abs(velocity(0.5 / steps) - fine).max() for steps in (100, 200)]
    assert errors[0] / errors[1] == pytest.approx((16 - 1) / (8 - 1), rel=0.05)


def test_a_force_can_be_set_between_steps(tmp_path):
    n = 8
    rng = np.random.default_rng(2)
    one, other = ((rng.random((n, n + 1)), rng.random((n + 1, n))) for _ in range(2))

    changed = StaggeredCavity(50, n, force=one).step(4)
    given = tuple(part.copy() for part in other)
    changed.force = given
    for part in given:
        part[...] = 7.0  # the values are copied
    changed.step(4)

    u = StaggeredCavity(50, n, force=one).step(4)
    expected = StaggeredCavity(50, n, force=other)
    expected.u, expected.v, expected.p = u.u, u.v, u.p
    expected.step(4)
    np.testing.assert_allclose(changed.u, expected.u, rtol=0, atol=1e-15)
    assert changed.force is given
    changed.force = None
    assert changed.step().force is None
    assert StaggeredCavity(50, n, force=(0.0, 0.0)).step(5).u.max() > 0


def test_a_state_with_a_force_needs_it_again(tmp_path):
    force = (lambda x, y, t: y + t, 0.5)
    cavity = StaggeredCavity(50, 8, lid_velocity=0.25, force=force).step(7)
    cavity.save(tmp_path / "state")
    with pytest.raises(ValueError, match=r"had a force: load\(path, force=\(fx, fy\)\)"):
        StaggeredCavity.load(tmp_path / "state")
    loaded = StaggeredCavity.load(tmp_path / "state", force=force)
    assert loaded.force is force
    assert loaded.lid_velocity == 0.25
    repeated = copy.deepcopy(cavity).step(30)
    for one, two in zip(state(loaded.step(30)), state(repeated), strict=True):
        np.testing.assert_array_equal(one, two)
    constant = StaggeredCavity(50, 8, force=(1.0, 2.0)).step(3)
    copied = pickle.loads(pickle.dumps(constant))
    np.testing.assert_array_equal(copied.step(3).u, constant.step(3).u)


@pytest.mark.parametrize("pressure", PRESSURES)
def test_kernels_and_threads_change_no_bit_of_a_forced_flow(pressure):
    options = {"force": (lambda x, t: np.sin(x + t), 0.3), "pressure": pressure}
    first = StaggeredCavity(100, 40, threads=1, **options).step(9)
    others = [StaggeredCavity(100, 40, threads=k, **options) for k in (2, 3)]
    if pressure == "sor":
        others.append(survey2014.StaggeredCavity(100, 40, kernels="serial", **options))
    for other in others:
        for one, two in zip(state(first), state(other.step(9)), strict=True):
            np.testing.assert_array_equal(one, two)


def test_length_of_a_step_counts_the_acceleration():
    """From rest with the acceleration a a particle moves by h in sqrt(2 h / a)."""
    n, a = 16, 50.0
    cavity = StaggeredCavity(1e9, n, lid_velocity=0, force=(0.0, lambda x, y: a * (x > 0.5)))
    expected = 0.5 * np.sqrt(2 / n / a)
    assert cavity.last_dt == pytest.approx(expected)
    assert cavity.step().last_dt == pytest.approx(expected)
    speed = np.abs(cavity.v).max()
    most = max(speed, np.abs(cavity.u).max())
    cavity.step()
    assert cavity.last_dt == pytest.approx(0.5 * 2 / n / (most + np.sqrt(most**2 + 2 * a / n)))


def test_fluid_at_rest_stays_at_rest():
    cavity = StaggeredCavity(100, 8, lid_velocity=0).step(25)
    assert cavity.time == pytest.approx(25 * 0.5 * 100 / 64 / 4)
    assert not cavity.u.any()
    assert not cavity.v.any()
    assert cavity.solve(1e-9).converged


def test_velocity_of_the_lid_only_scales():
    """u(t; Re, lid) = lid u1(lid t; lid Re, 1)."""
    fast = StaggeredCavity(20, 12, lid_velocity=-4).run(0.25)
    unit = StaggeredCavity(80, 12).run(1.0)
    np.testing.assert_allclose(fast.u, -4 * unit.u[:, ::-1], atol=1e-12)
    np.testing.assert_allclose(fast.v, 4 * unit.v[:, ::-1], atol=1e-12)
    np.testing.assert_allclose(fast.p, 16 * unit.p[:, ::-1], atol=1e-11)
    np.testing.assert_allclose(fast.omega, -4 * unit.omega[:, ::-1], atol=1e-11)
    assert fast.centreline_u(1.0) == pytest.approx(-4)


def test_fast_flow_of_a_force_is_not_unstable():
    cavity = StaggeredCavity(1, 8, lid_velocity=0, force=(lambda y: 5e4 * y, 0.0)).step(300)
    assert 150 < np.abs(cavity.u).max() < 5000
    with pytest.raises(pysolvers.ConvergenceError, match="diverged"):
        StaggeredCavity(1, 8, force=(lambda y: 5e4 * y, 0.0), dt=0.1).step(100)


@pytest.mark.parametrize(
    ("force", "error", "message"),
    [
        (1.0, TypeError, r"force must be None or a tuple of the components along x and y"),
        ((1.0,), TypeError, "force must be None or a tuple"),
        ((1.0, "a"), TypeError, r"force\[1\] must be real numbers"),
        ((np.zeros((8, 8)), 0.0), ValueError, r"force\[0\] must broadcast to \(8, 9\), got .*8, 8"),
        ((0.0, np.full((9, 8), np.nan)), ValueError, r"force\[1\] must be finite"),
        ((0.0, lambda T: T), TypeError, r"force\[1\]: the parameters .* among x, y, t, got T"),
    ],
)
def test_bad_forces_are_named(force, error, message):
    with pytest.raises(error, match=message):
        StaggeredCavity(100, 8, force=force)
    cavity = StaggeredCavity(100, 8, force=(0.0, 1.0))
    with pytest.raises(error, match=message):
        cavity.force = force
    assert cavity.step().force == (0.0, 1.0)


def test_kernels_with_directives_have_no_force(monkeypatch):
    monkeypatch.setattr(survey2014.directive, "load", lambda name: None)
    with pytest.raises(ValueError, match="force must be None with kernels='directive'"):
        survey2014.StaggeredCavity(100, 8, kernels="directive", pressure="sor", force=(0.0, 1.0))

"""Steady states on the staggered grid: published values, order of convergence, extrapolation."""

import functools

import numpy as np
import pytest

from pysolvers.flow import LidDrivenCavity, StaggeredCavity
from pysolvers.papers import botella_peyret_profiles, ghia_profiles

slow = pytest.mark.slow

# Re, gamma: least u on x = 1/2, largest deviations from the profiles of u by Ghia et al. and by
# Botella and Peyret, of another program for the same scheme on 128 x 128 cells
PROGRAM = [
    (100, 0.0, -0.21373, 0.0047, None),
    (1000, 0.0, -0.38242, 0.0030, 0.0061),
    (1000, 0.9, -0.31610, 0.0677, 0.0734),
]

# u_min, v_max and v_min on the centre lines for Re = 1000: Marchi, Suero and Araki 2009
MARCHI = np.array([-0.3885721, 0.3769471, -0.527056])


@functools.cache
def extremes(re, n):
    """u_min, v_max and v_min on the centre lines, with the longest stable steps."""
    dt = min(0.9 * re / n**2 / 4, 1.9 / re)
    found = StaggeredCavity(re, n, dt=dt).solve(1e-5).centreline_extrema()
    return np.array([found.u_min, found.v_max, found.v_min])


@functools.cache
def nodal_extremes(n):
    result = LidDrivenCavity(1000, n).solve(1e-8)
    places = np.linspace(0, 1, n)
    u, v = result.centreline_u(), result.centreline_v()

    def peak(line, k):
        fit = np.polynomial.Polynomial.fit(places[k - 2 : k + 3], line[k - 2 : k + 3], 4)
        roots = fit.deriv().roots()
        real = roots[np.abs(roots.imag) < 1e-9].real
        return fit(real[np.argmin(np.abs(real - places[k]))])

    return np.array([peak(u, u.argmin()), peak(v, v.argmax()), peak(v, v.argmin())])


def order(coarse, middle, fine):
    return np.log2((coarse - middle) / (middle - fine))


def extrapolated(coarse, fine):
    return fine + (fine - coarse) / 3


def test_order_of_convergence_is_two_on_small_grids():
    found = order(*(extremes(100, n) for n in (16, 32, 64)))

    assert (found > 1.6).all()
    assert (found < 2.4).all()


def test_profiles_are_those_of_ghia():
    profiles = ghia_profiles(100)
    result = StaggeredCavity(100, 48).solve(1e-4)

    assert np.nanmax(np.abs(result.centreline_u(profiles["y"]) - profiles["u"])) < 0.005
    # 0.009 is the error of the published v: other methods and finer grids deviate as much
    assert np.nanmax(np.abs(result.centreline_v(profiles["x"]) - profiles["v"])) < 0.01
    vortex = result.primary_vortex()
    assert vortex.x == pytest.approx(0.6172, abs=0.005)
    assert vortex.y == pytest.approx(0.7344, abs=0.008)


@slow
@pytest.mark.parametrize(("re", "gamma", "u_min", "from_ghia", "from_botella"), PROGRAM)
def test_values_are_those_of_another_program(re, gamma, u_min, from_ghia, from_botella):
    result = StaggeredCavity(re, 128, gamma=gamma).solve(1e-5)

    assert result.centreline_u().min() == pytest.approx(u_min, abs=2e-4)
    assert result.divergence < 1e-12
    ghia = ghia_profiles(re)
    deviation = np.nanmax(np.abs(result.centreline_u(ghia["y"]) - ghia["u"]))
    assert deviation == pytest.approx(from_ghia, abs=2e-4)
    if from_botella is not None:
        spectral = botella_peyret_profiles()
        deviation = np.abs(result.centreline_u(spectral["y"]) - spectral["u"]).max()
        assert deviation == pytest.approx(from_botella, abs=2e-4)


@slow
@pytest.mark.parametrize("re", [100, 1000])
def test_order_of_convergence_is_two(re):
    found = order(*(extremes(re, n) for n in (64, 128, 256)))

    print(f"Re {re}: orders {found}")
    assert (found > 1.8).all()
    assert (found < 2.3).all()


@slow
def test_extrapolations_of_both_formulations_are_those_of_marchi():
    staggered = extrapolated(extremes(1000, 128), extremes(1000, 256))
    nodal = extrapolated(nodal_extremes(129), nodal_extremes(257))

    print(f"staggered {staggered}, nodal {nodal}")
    np.testing.assert_allclose(staggered, MARCHI, atol=3e-4)
    np.testing.assert_allclose(nodal, MARCHI, atol=3e-4)


@slow
def test_sor_leaves_the_divergence_of_its_tolerance_on_a_fine_grid():
    cavity = StaggeredCavity(1000, 128, pressure="sor", pressure_tol=1e-4).step(500)
    exact = StaggeredCavity(1000, 128).step(500)

    assert cavity.divergence < 1e-5
    np.testing.assert_allclose(cavity.u, exact.u, atol=1e-5)

"""The lid-driven cavity against values known for its discrete equations, and the spectral ones.

The converged solution of the discrete equations does not depend on the iteration, so that
values on the nodes must come out to their last digit.
"""

import numpy as np
import pytest

from pysolvers.flow import LidDrivenCavity
from pysolvers.papers import botella_peyret_profiles, ghia_profiles, primary_vortices

slow = pytest.mark.slow

# nodes, Re, wall; psi at its least node and omega there; least u on x = 1/2, largest and least
# v on y = 1/2
DISCRETE = [
    (65, 1000, "thom", -0.105221, -1.87433, -0.33777, 0.32457, -0.45853),
    pytest.param(129, 100, "thom", -0.103325, -3.16422, -0.21343, 0.17888, -0.25283, marks=slow),
    pytest.param(129, 400, "thom", -0.112771, -2.28142, -0.32445, 0.29908, -0.44767, marks=slow),
    pytest.param(129, 1000, "thom", -0.115466, -2.01865, -0.37535, 0.36340, -0.51002, marks=slow),
    (129, 1000, "jensen", -0.116009, -2.02556, -0.37729, 0.36539, -0.51258),
]


def psi_extreme(n, re, wall):
    return LidDrivenCavity(re, n, wall=wall).solve(1e-8).psi.min()


@pytest.mark.parametrize(("n", "re", "wall", "psi", "omega", "u_min", "v_max", "v_min"), DISCRETE)
def test_converged_values_on_the_nodes(n, re, wall, psi, omega, u_min, v_max, v_min):
    result = LidDrivenCavity(re, n, wall=wall).solve(1e-8)
    vortex = result.primary_vortex(refine=False)

    assert vortex.psi == pytest.approx(psi, abs=1e-5)
    assert vortex.omega == pytest.approx(omega, abs=1e-4)
    assert result.centreline_u().min() == pytest.approx(u_min, abs=1e-5)
    assert result.centreline_v().max() == pytest.approx(v_max, abs=1e-5)
    assert result.centreline_v().min() == pytest.approx(v_min, abs=1e-5)


@pytest.mark.parametrize("wall", ["thom", "woods", pytest.param("jensen", marks=slow)])
def test_order_of_convergence_is_two(wall):
    values = [psi_extreme(n, 100, wall) for n in (33, 65, 129)]

    order = np.log2((values[1] - values[0]) / (values[2] - values[1]))

    # thom is of first order on the wall alone, which leaves the field of second order
    assert 1.7 < order < 2.4


@slow
def test_extrapolation_meets_the_spectral_solution():
    (spectral,) = (v for v in primary_vortices(1000) if v.psi is not None)
    coarse, fine = (
        LidDrivenCavity(1000, n, threads=1).solve(1e-8).primary_vortex() for n in (129, 257)
    )

    psi = fine.psi + (fine.psi - coarse.psi) / 3
    omega = fine.omega + (fine.omega - coarse.omega) / 3

    assert psi == pytest.approx(spectral.psi, abs=1e-4)
    assert omega == pytest.approx(spectral.omega, abs=3e-3)
    assert (fine.x, fine.y) == pytest.approx((spectral.x, spectral.y), abs=1e-3)


@slow
def test_extrapolated_profiles_meet_the_spectral_ones():
    table = botella_peyret_profiles()
    coarse, fine = (LidDrivenCavity(1000, n, threads=1).solve(1e-8) for n in (129, 257))

    for line, place, values in (
        ("centreline_u", table["y"], table["u"]),
        ("centreline_v", table["x"], table["v"]),
    ):
        on_coarse, on_fine = (getattr(r, line)(place) for r in (coarse, fine))
        extrapolated = on_fine + (on_fine - on_coarse) / 3
        np.testing.assert_allclose(extrapolated, values, atol=2e-3)


@pytest.mark.parametrize("re", [100, pytest.param(400, marks=slow)])
def test_profiles_are_those_of_ghia_within_both_errors(re):
    table = ghia_profiles(re)
    result = LidDrivenCavity(re, 129).solve()

    for here, there in (
        (result.centreline_u(table["y"]), table["u"]),
        (result.centreline_v(table["x"]), table["v"]),
    ):
        assert np.nanmax(np.abs(here - there)) < 0.01


@pytest.mark.parametrize("re", [100, 400, 1000])
def test_main_vortex_lies_where_ghia_found_it(re):
    published = primary_vortices(re)[0]

    vortex = LidDrivenCavity(re, 129).solve().primary_vortex()

    # the published centre is a node of their grid of spacing 1/128
    assert (vortex.x, vortex.y) == pytest.approx((published.x, published.y), abs=1 / 128)


@slow
@pytest.mark.parametrize("wall", ["jensen", "thom"])
@pytest.mark.parametrize("re", [3200, 5000])
def test_high_reynolds_numbers_converge_from_rest(re, wall):
    result = LidDrivenCavity(re, 257, wall=wall, threads=1).solve()
    table = ghia_profiles(re)

    assert result.converged
    assert np.max(np.abs(result.centreline_u(table["y"]) - table["u"])) < 0.05
    assert np.max(np.abs(result.centreline_v(table["x"]) - table["v"])) < 0.05

"""HeatADI(scheme="implicit") on a device made of host memory: copies and products of the device."""

import numpy as np
import pytest
import shared_device
from unsplit_cases import PLANE, UNSPLIT, bar

from pysolvers import Dirichlet, HeatADI, Neumann

pytestmark = pytest.mark.filterwarnings("ignore:HeatADI.*too large for the solution:RuntimeWarning")


@pytest.fixture
def device():
    with shared_device.in_place_of_cuda() as device:
        yield device


@pytest.mark.parametrize("name", ["single", "moving", "periodic", "insulated", "box"])
def test_steps_and_steady_states_are_those_of_the_host(device, name):
    problem = UNSPLIT[name]
    host, there = (HeatADI(**problem, device=where) for where in ("cpu", "cuda"))
    bound = 1e-4 if problem.get("dtype") is np.float32 else 1e-7  # ten tolerances
    for dt in (problem["dt"], problem["dt"] / 3):
        for solver in (host, there):
            solver.dt = dt
            solver.step(2)
        np.testing.assert_allclose(there.u, host.u, rtol=0, atol=bound * abs(host.u).max())
    assert there.result().scheme == "implicit"
    if name in ("moving", "box"):
        steady = [solver.solve_steady().u for solver in (host, there)]
        np.testing.assert_allclose(*steady, rtol=0, atol=1e-9 * abs(host.u).max())
        np.testing.assert_allclose(there.step().u, host.step().u, rtol=0, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_data_of_a_stage_are_evaluated_once(device, dtype):
    """Also where the residual is computed again, as it is for steps of this length in float32."""
    seen = {"source": [], "value": [], "flux": []}

    def noted(name):
        def values(x, t):
            seen[name].append(t)
            return 0.1 * np.sin(x + t)

        return values

    sides = {"x": Neumann(), "y-": Dirichlet(noted("value")), "y+": Neumann(noted("flux"))}
    problem = PLANE | {"diffusivity": bar(1e4), "dtype": dtype, "boundary": sides}
    solver = HeatADI(**problem, source=noted("source"), device="cuda", damped_start=False).step()
    for times in seen.values():
        times.clear()
    solver.step(3)
    dt, first = problem["dt"], 1 - 0.5**0.5
    stages = [dt * (step + share) for step in (1, 2, 3) for share in (first, 1)]
    for name, times in seen.items():
        np.testing.assert_allclose(times, stages, rtol=1e-12, err_msg=name)

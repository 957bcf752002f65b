"""HeatADI on a device made of host memory: rods, heat capacities, coordinates, laws, holes."""

import numpy as np
import pytest
import shared_device

from pysolvers import HeatADI, Neumann, Robin

pytestmark = pytest.mark.filterwarnings(
    "ignore:HeatADI.*too large for the solution:RuntimeWarning",
    "ignore:HeatADI.*can leave the range:RuntimeWarning",
)
RNG = np.random.default_rng(5)
LINE = np.cumsum(RNG.uniform(0.5, 1.5, 14))
HOLES = RNG.random((12, 14)) < 0.2
OPEN = {"x-": Robin(2.0, lambda t: 1 + t), "x+": 0.0}
PLATE = {"boundary": OPEN | {"y": Neumann(0.1)}, "shape": (12, 14)}
CLOSED = {"boundary": Neumann(), "shape": (12, 14), "initial": RNG.random((12, 14))}
EVEN, UNEVEN = {"spacing": 1.0}, {"coordinates": (LINE, LINE[:12])}
CAPACITY = {"heat_capacity": 10 ** RNG.uniform(-1, 1, (12, 14))}
PROBLEMS = {
    "rod": EVEN | {"boundary": OPEN, "shape": (14,), "source": lambda x, t: x * t},
    "rod of layers": {
        "coordinates": [LINE],
        "boundary": OPEN,
        "shape": (14,),
        "heat_capacity": lambda x: np.where(x < 7, 1.0, 5.0),
    },
    "capacity": EVEN | PLATE | CAPACITY,
    "capacity, closed": EVEN | CLOSED | CAPACITY,
    "coordinates": UNEVEN | PLATE | {"source": lambda x, y, t: x * t},
    "coordinates, closed": UNEVEN | CLOSED,
    "k(T)": EVEN | PLATE | {"diffusivity": lambda T: 1 + T * T},
    "k(T), q(T)": UNEVEN
    | PLATE
    | CAPACITY
    | {"diffusivity": lambda x, T: 1 + x + T * T, "source": lambda T: -T},
    "q(T), closed": EVEN | CLOSED | {"source": lambda T: 1 - T},
    "insulated holes": EVEN | PLATE | {"holes": HOLES, "source": 0.1},
    "insulated holes, closed": EVEN | CLOSED | {"holes": HOLES},
    "holes of a temperature": EVEN | PLATE | {"holes": HOLES, "hole_temperature": 0.5},
}


@pytest.fixture
def device():
    with shared_device.in_place_of_cuda() as device:
        yield device


SLOW = {("k(T)", "implicit"), ("k(T), q(T)", "auto")}


@pytest.mark.parametrize(
    ("name", "scheme"),
    [
        pytest.param(name, scheme, marks=pytest.mark.slow if (name, scheme) in SLOW else ())
        for name in PROBLEMS
        for scheme in ("auto", "implicit")
    ],
)
def test_steps_and_steady_states_are_those_of_the_host(device, name, scheme):
    problem = PROBLEMS[name] | {"dt": 0.3, "scheme": scheme}
    host, there = (HeatADI(**problem, device=where) for where in ("cpu", "cuda"))
    begin = host.heat()

    for dt in (0.3, 0.1):
        for solver in (host, there):
            solver.dt = dt
            solver.step(3)
        np.testing.assert_allclose(there.u, host.u, rtol=0, atol=1e-7 * abs(host.u).max())
    if "closed" in name and "q(T)" not in name:
        assert there.heat() == pytest.approx(begin, rel=1e-11)
    steady = [solver.solve_steady().u for solver in (host, there)]
    np.testing.assert_allclose(*steady, rtol=0, atol=1e-8 * abs(host.u).max())
    np.testing.assert_allclose(there.step().u, host.step().u, rtol=0, atol=1e-7)

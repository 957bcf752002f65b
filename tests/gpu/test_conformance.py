"""Fields of solvers on a GPU that are set, and times to start: as on the CPU."""

import numpy as np
import pytest
from solver_cases import SOLVERS, STARTS, STEPPERS, count_of, fields_of, reloaded

# Of fields of size 1 after a few steps; an implicit step has a tolerance.
BOUNDS = {"heat-implicit": 1e-6, "heat-holes": 1e-6, "heat-law": 1e-6}


@pytest.mark.parametrize("name", STARTS)
def test_a_solver_goes_on_from_other_values(name, rng):
    there, here = STARTS[name](device="cuda").step(3), STARTS[name]().step(3)
    here.u = there.u = field = rng.random(here.u.shape)
    field[...] = 7.0  # u is a copy

    assert count_of(there) == 3
    np.testing.assert_array_equal(there.u, here.u)
    for count in (1, 4):
        bound = BOUNDS.get(name, 1e-11)
        np.testing.assert_allclose(there.step(count).u, here.step(count).u, rtol=0, atol=bound)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("StaggeredCavity", {"pressure": "sor", "pressure_tol": 1e-10}),
        ("StaggeredCavity", {}),
        ("LidDrivenCavity", {"pseudo_dt": 0.05}),
        ("SquareCylinder", {}),
    ],
)
@pytest.mark.parametrize("before", [3, 4])
def test_a_flow_goes_on_from_other_fields(name, options, before, rng, tmp_path):
    """After odd and even numbers of steps: a device has two places for a velocity."""
    pytest.importorskip("scipy")
    there, here = SOLVERS[name](device="cuda", **options), SOLVERS[name](**options)
    there.step(before), here.step(before)
    for field in fields_of(name):
        values = 0.1 * rng.random(np.shape(getattr(here, field)))
        setattr(there, field, values)
        setattr(here, field, values)
    for _ in range(2):
        there.step(3), here.step(3)
        for field in fields_of(name):
            found, expected = (np.array(getattr(each, field)) for each in (there, here))
            found, expected = (a[1:-1, 1:-1] for a in (found, expected))  # not omega in corners
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 if options else 1e-9)
        there = reloaded(there, tmp_path / "state")


@pytest.mark.parametrize("name", STEPPERS)
def test_a_start_time_is_that_of_the_first_step(name):
    pytest.importorskip("scipy")
    step = 2.0**-7
    solver = SOLVERS[name](dt=step, start_time=-0.5, device="cuda")
    plain = SOLVERS[name](dt=step, start_time=-0.5)
    times = [-0.5, -0.5 + 3 * step, -0.5 + 4.5 * step]
    found, expected = solver.record(times=times), plain.record(times=times)
    assert [frame.time for frame in found.frames] == times
    np.testing.assert_allclose(found.u, expected.u, rtol=0, atol=1e-9)

"""The cavity on a staggered grid on a GPU has the fields of the CPU."""

import threading

import availability
import numpy as np
import pytest

import pysolvers
from pysolvers.flow import StaggeredCavity

_cuda = availability.extension("cuda")
pytestmark = pytest.mark.gpu

PRESSURES = ["fast", "sor"]


@pytest.fixture(autouse=True)
def _device():
    if reason := _cuda.unavailable():
        pytest.skip(reason)


def pair(*args, **options):
    """Return the same cavity on the GPU and on the CPU."""
    if options.get("pressure", "fast") == "fast":
        pytest.importorskip("scipy.fft")
    threads = 1 if args[1] < 200 else None
    return (
        StaggeredCavity(*args, device="cuda", **options),
        StaggeredCavity(*args, threads=threads, **options),
    )


def state(cavity):
    return cavity.u.copy(), cavity.v.copy(), cavity.p, cavity.time, cavity.change, cavity.sweeps


def assert_same_bits(a, b):
    for x, y in zip(state(a), state(b), strict=True):
        np.testing.assert_array_equal(x, y)


def assert_same_flow(here, there, tolerance=1e-10):
    """Require equality relative to the largest value; the speed of the lid bounds u and v.

    The pressure has the rounding errors of the velocity, divided by the length of a step.
    """
    assert here.steps == there.steps
    assert here.time == pytest.approx(there.time, rel=tolerance)
    for name in ("u", "v", "p"):
        x, y = getattr(here, name), getattr(there, name)
        size = np.abs(y).max() if name != "p" else max(np.abs(y).max(), np.abs(there.u).max())
        np.testing.assert_allclose(x, y, rtol=0, atol=tolerance * size)


@pytest.mark.parametrize("pressure", PRESSURES)
@pytest.mark.parametrize("n", [4, 5, 31, 32, 33, 64, 100, 128])
def test_fields_are_those_of_the_cpu(n, pressure):
    here, there = pair(5 if n < 9 else 400, n, pressure=pressure)
    steps = 200 if n in (5, 33, 64) else 40

    here.step(steps)
    there.step(steps)

    assert_same_flow(here, there)
    assert here.change == pytest.approx(there.change, rel=1e-6)
    assert here.sweeps == there.sweeps
    if pressure == "fast":
        assert here.divergence < 1e-12


@pytest.mark.parametrize("pressure", PRESSURES)
@pytest.mark.parametrize("n", [255, 600])
def test_large_fields_are_those_of_the_cpu(n, pressure):
    # With so few iterations a step, the flow grows after some more steps.
    options = {"pressure_tol": None, "max_sweeps": 13} if pressure == "sor" else {}
    count = 4 if pressure == "sor" else 21
    here, there = pair(1000, n, pressure=pressure, **options)

    assert_same_flow(here.step(count), there.step(count))


@pytest.mark.parametrize("pressure", PRESSURES)
@pytest.mark.parametrize(
    "options", [{"gamma": 0.9}, {"gamma": 1}, {"gamma": "auto"}, {"dt": 1e-4}, {"tau": 0.1}]
)
def test_options(options, pressure):
    here, there = pair(100, 40, pressure=pressure, **options)

    assert_same_flow(here.step(61), there.step(61))


@pytest.mark.parametrize("pressure", PRESSURES)
@pytest.mark.parametrize(
    "options",
    [
        {"force": (0.0, lambda x, y: 9 * x * y)},
        {"force": (lambda y, t: np.sin(9 * t) * y, 2.0)},
        {"force": (lambda y, t: np.sin(9 * t) * y, 2.0), "dt": 1e-3},
    ],
)
@pytest.mark.parametrize("lid", [0.0, -1.5])
@pytest.mark.parametrize("n", [5, 33, 100])
def test_flow_of_a_force_is_that_of_the_cpu(n, lid, options, pressure):
    here, there = pair(100, n, lid_velocity=lid, pressure=pressure, **options)

    assert_same_flow(here.step(31), there.step(31))
    for flow in (here, there):
        flow.force = (lambda x: x, np.full((n + 1, n), 0.5))
    assert_same_flow(here.step(30), there.step(30))
    for flow in (here, there):
        flow.force = None
    assert_same_flow(here.run(here.time + 0.1), there.run(there.time + 0.1))
    assert np.abs(here.u).max() > 1e-6  # the fluid still moves


@pytest.mark.parametrize(
    "options", [{"omega": 1.2}, {"pressure_tol": 1e-8}, {"pressure_tol": None, "max_sweeps": 9}]
)
def test_options_of_sor(options):
    here, there = pair(100, 37, pressure="sor", **options)

    assert_same_flow(here.step(31), there.step(31))
    assert here.sweeps == there.sweeps > 0


@pytest.mark.parametrize("pressure", PRESSURES)
def test_run_ends_at_its_time(pressure):
    here, there = pair(100, 24, pressure=pressure)

    for until in (0.03, 0.05, 0.05, 0.31):
        a, b = here.run(until), there.run(until)

        assert a.time == b.time == until
        assert_same_flow(here, there)


@pytest.mark.parametrize("pressure", PRESSURES)
def test_steady_state_is_that_of_the_cpu(pressure):
    here, there = pair(100, 24, pressure=pressure)

    a, b = here.solve(1e-3), there.solve(1e-3)

    assert a.stop_reason == b.stop_reason == "converged"
    assert a.steps == b.steps and a.change <= 1e-3
    assert a.backend == "cuda"
    assert_same_flow(here, there)
    np.testing.assert_allclose(a.history.time, b.history.time, rtol=1e-12)
    np.testing.assert_array_equal(a.history.step, b.history.step)


def test_steady_flow_has_the_published_minimum():
    pytest.importorskip("scipy.fft")
    result = StaggeredCavity(100, 64, device="cuda").solve(1e-5)

    middle = result.u[:, 32]
    assert middle.min() == pytest.approx(-0.2137, abs=2e-3)
    assert result.divergence < 1e-12


@pytest.mark.parametrize("pressure", PRESSURES)
def test_dt_can_be_changed(pressure):
    here, there = pair(100, 24, pressure=pressure)

    for dt in (1e-3, 2e-4, None):
        here.dt = there.dt = dt
        assert_same_flow(here.step(11), there.step(11))


@pytest.mark.parametrize("pressure", PRESSURES)
def test_growth_ends_at_the_step_of_the_cpu(pressure):
    options = {"pressure_tol": None, "max_sweeps": 3} if pressure == "sor" else {}
    here, there = pair(1000, 32, pressure=pressure, dt=0.1, **options)

    with pytest.raises(pysolvers.ConvergenceError, match="diverged") as of_cpu:
        there.step(400)
    with pytest.raises(pysolvers.ConvergenceError, match="diverged") as of_gpu:
        here.step(400)

    assert of_gpu.value.result.steps == of_cpu.value.result.steps
    assert here.steps == there.steps


def test_too_few_sweeps_leave_the_step_before():
    here, there = pair(100, 32, pressure="sor", pressure_tol=1e-9, max_sweeps=300)
    before = None

    for cavity in (there, here):
        with pytest.raises(pysolvers.ConvergenceError, match="SOR left the residual") as error:
            cavity.step(400)
        assert error.value.result.stop_reason == "diverged"
    assert here.steps == there.steps
    before = state(here)
    with pytest.raises(pysolvers.ConvergenceError):
        here.step()
    for x, y in zip(before[:3], state(here)[:3], strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("pressure", PRESSURES)
def test_calls_from_other_threads(pressure):
    whole = StaggeredCavity(100, 33, pressure=pressure, device="cuda").step(30)
    cavity = StaggeredCavity(100, 33, pressure=pressure, device="cuda").step(10)

    for _ in range(2):
        thread = threading.Thread(target=cavity.step, args=(10,))
        thread.start()
        thread.join()

    assert_same_bits(cavity, whole)


@pytest.mark.parametrize("pressure", PRESSURES)
def test_two_cavities_take_turns(pressure):
    alone = StaggeredCavity(100, 33, pressure=pressure, device="cuda").step(20)
    one, other = (StaggeredCavity(re, 33, pressure=pressure, device="cuda") for re in (100, 50))

    for _ in range(4):
        one.step(5)
        other.step(5)

    assert_same_bits(one, alone)
    assert np.abs(other.u - one.u).max() > 1e-3


@pytest.mark.parametrize("pressure", PRESSURES)
def test_times_of_the_stages(pressure):
    result = StaggeredCavity(100, 64, pressure=pressure, device="cuda").step(100).result()
    seconds = result.seconds

    assert set(seconds) == {"predict", "pressure", "correct"}
    # With the direct solver, the time of one of them can be 0 if others use the device.
    assert min(seconds.values()) >= 0
    assert sum(seconds.values()) > 0
    assert result.threads == 0 and result.kernel

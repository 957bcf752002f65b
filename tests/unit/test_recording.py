"""When a callback is called, and which states a record keeps."""

import numpy as np
import pytest

from pysolvers import (
    GCEIDD,
    LMSOR,
    ConvectionDiffusion,
    HeatADI,
    LidDrivenCavity,
    RedBlackSOR,
    SquareCylinder,
    StaggeredCavity,
    SteadyConvectionDiffusion,
)

SQUARE = {"extent": ((0.0, 1.0), (0.0, 1.0))}


def heat(dt=2.0**-7):
    return HeatADI((6, 7), **SQUARE, dt=dt, boundary=lambda x, t: x * np.sin(9 * t), initial=1.0)


def transport(dt=2.0**-7):
    problem = ConvectionDiffusion(
        (1.0, 0.5), 0.01, initial=lambda x, y: x * y, boundary=lambda t: np.cos(t)
    )
    return GCEIDD(problem, shape=(9, 8), dt=dt, scheme="mu")


def staggered(dt=2.0**-7):
    return StaggeredCavity(100, 8, dt=dt)


def cylinder(dt=2.0**-7):
    return SquareCylinder(10, (17, 101), dt=dt)


def plate():
    return RedBlackSOR((9, 8), **SQUARE, boundary={"x": 0.0, "y-": 1.0, "y+": 2.0})


def steady():
    return LMSOR(SteadyConvectionDiffusion(1.0, 2.0, shape=(9, 8), **SQUARE, boundary=lambda x: x))


STEPPERS = {"heat": heat, "gceidd": transport, "staggered": staggered, "cylinder": cylinder}
ITERATIONS = {
    "cavity": lambda **options: LidDrivenCavity(100, 9).solve(1e-3, **options),
    "plate": lambda **options: plate().solve(1e-5, **options),
    "lmsor": lambda **options: steady().solve(1e-5, **options),
    "staggered": lambda **options: staggered().solve(2e-2, **options),
    "cylinder": lambda **options: SquareCylinder(10, (17, 101), steady=True).solve(0.1, **options),
}
EVERY = {"plate": "check_every", "lmsor": "check_every"}


@pytest.mark.parametrize("make", STEPPERS.values(), ids=STEPPERS)
def test_a_callback_is_called_after_each_step_and_changes_nothing(make):
    seen, some = [], []
    solver, plain = make(), make().run(0.15)
    result = solver.run(0.15, callback=lambda s: seen.append((s.steps, s.time, s.u.copy())))
    make().run(0.15, callback=lambda s: some.append(s.steps), interval=6)

    assert [steps for steps, _, _ in seen] == list(range(1, result.steps + 1))
    assert some == [6, 12, 18, 20][: 3 + (result.steps == 20)]
    assert seen[-1][1] == 0.15
    assert result.stop_reason == plain.stop_reason == "reached"
    np.testing.assert_array_equal(result.u, plain.u)
    repeated = make()
    for steps, _, u in seen[:10]:
        assert repeated.step().steps == steps
        np.testing.assert_array_equal(repeated.u, u)


@pytest.mark.parametrize("make", STEPPERS.values(), ids=STEPPERS)
def test_a_true_value_ends_the_run_unless_it_has_ended(make):
    assert make().run(0.15, callback=lambda s: s.steps == 3).steps == 3
    assert make().run(0.15, callback=lambda s: s.steps == 3).stop_reason == "callback"
    assert make().run(0.15, callback=lambda s: s.time == 0.15).stop_reason == "reached"
    calls = []
    solver = make()
    solver.run(0.0, callback=calls.append)  # no step, no call
    assert calls == []


@pytest.mark.parametrize("name", ITERATIONS)
def test_a_callback_is_called_after_each_iteration_and_at_the_end(name):
    solve, every = ITERATIONS[name], EVERY.get(name, "interval")

    def count(solver):
        return getattr(solver, "iterations", getattr(solver, "steps", None))

    plain, seen, some = solve(), [], []
    result = solve(callback=lambda s: seen.append(count(s)))
    assert plain.converged if name != "cylinder" else plain.stop_reason == "converged"
    assert seen == list(range(1, count(plain) + 1))
    assert result.stop_reason == plain.stop_reason
    np.testing.assert_array_equal(result.u, plain.u)
    sparse = solve(callback=lambda s: some.append(count(s)), **{every: 7})
    last = count(sparse)
    assert some == [*range(7, last, 7), last]
    assert solve(callback=lambda s: count(s) == 5).stop_reason == "callback"


@pytest.mark.parametrize("make", STEPPERS.values(), ids=STEPPERS)
def test_a_record_has_exactly_the_times_of_the_list(make):
    times = [0.0, 0.01, 0.05, 0.0501, 0.1]  # of which only the first one is a whole number of steps
    solver, expected = make(), make()
    result = solver.record(times=times)

    assert [frame.time for frame in result.frames] == times
    assert (result.time, result.stop_reason) == (0.1, "reached")
    for time, frame in zip(times, result.frames, strict=True):
        expected.run(time)
        np.testing.assert_array_equal(frame.u, expected.u)
        assert frame.frames == ()
    longer = solver.record(0.2, times=np.array([0.15]))
    assert ([frame.time for frame in longer.frames], longer.time) == ([0.15], 0.2)


@pytest.mark.parametrize("make", STEPPERS.values(), ids=STEPPERS)
def test_a_record_has_frames_at_equal_distances_and_at_the_end(make):
    step, solver = 2.0**-7, make()
    every = solver.record(10 * step, every=3 * step)
    assert [frame.time / step for frame in every.frames] == [0, 3, 6, 9, 10]
    np.testing.assert_array_equal(every.u, make().run(10 * step).u)  # no step was shortened
    np.testing.assert_array_equal(every.frames[-1].u, every.u)
    repeated = solver.record(11 * step, every=1.0)
    assert [frame.time / step for frame in repeated.frames] == [10, 11]
    assert [frame.time for frame in solver.record(11 * step).frames] == [11 * step]


@pytest.mark.parametrize("make", [heat, transport, cylinder])
def test_a_record_without_times_has_about_fifty_frames_and_whole_steps(make):
    step, solver = 2.0**-7, make()
    frames = solver.record(120.3 * step).frames
    times = np.array([frame.time for frame in frames]) / step

    np.testing.assert_allclose(times, [*np.arange(0, 119, 3), 120, 120.3], rtol=1e-12)
    assert len(staggered(None).record(0.5).frames) == 51


@pytest.mark.each_value
@pytest.mark.parametrize("make", STEPPERS.values(), ids=STEPPERS)
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({}, TypeError, "record needs until or times"),
        ({"times": [0.1], "every": 0.1}, TypeError, "times or every, got both"),
        ({"times": []}, ValueError, "at least one time"),
        ({"times": [0.1, 0.1]}, ValueError, "must be finite and rise"),
        ({"times": [0.1, np.nan]}, ValueError, "must be finite and rise"),
        ({"times": [-0.1, 0.1]}, ValueError, "must not be before the time 0"),
        ({"until": 0.1, "times": [0.2]}, ValueError, "must not be after until, 0.1"),
        ({"until": 0.1, "every": 0.0}, ValueError, "every must be positive"),
        ({"until": 0.1, "every": "1"}, TypeError, "every must be a number"),
        ({"until": -0.1}, ValueError, "until must be at least the time 0"),
    ],
)
def test_wrong_times_are_named_before_a_step_is_made(make, options, error, message):
    solver = make()
    with pytest.raises(error, match=message):
        solver.record(**options)
    assert solver.steps == 0


@pytest.mark.parametrize("make", STEPPERS.values(), ids=STEPPERS)
def test_a_dataset_of_a_record_has_the_frames_along_time(make):
    pytest.importorskip("xarray")
    result = make().record(times=[0.0, 0.03, 0.07])
    data, last = result.to_xarray(), result.frames[-1].to_xarray()

    np.testing.assert_array_equal(data["time"], [0.0, 0.03, 0.07])
    assert set(data.data_vars) == set(last.data_vars)
    for name in data.data_vars:
        assert data[name].dims == ("time", *last[name].dims)
        for k, frame in enumerate(result.frames):
            np.testing.assert_array_equal(data[name][k], getattr(frame, name))
    np.testing.assert_array_equal(data["x"], result.x)
    assert data.attrs["steps"] == result.steps


@pytest.mark.parametrize("solve", [ITERATIONS["cavity"], ITERATIONS["plate"]])
def test_a_dataset_of_a_steady_solution(solve):
    pytest.importorskip("xarray")
    result = solve()
    data = result.to_xarray()

    assert data["u"].dims == ("y", "x")
    np.testing.assert_array_equal(data["u"], result.u)
    np.testing.assert_array_equal(data["y"], result.y)

"""The entry of the staggered cavity in the extension: operands, numbers, clock, ends of a call."""

import numpy as np
import pytest

from pysolvers import _core


def call(n=6, **changes):
    """Call the binding with legal operands, but for the changes."""
    square, centres = np.zeros((n + 2, n + 2)), np.zeros((n, n))
    operands = {name: square.copy() for name in "uv"} | {"p": centres.copy()}
    operands |= {name: square.copy() for name in "fg"} | {"q": centres.copy()}
    operands["clock"] = np.zeros(len(_core.CLOCK))
    operands["clock"][_core.CLOCK["u"]] = 2
    numbers = {"re": 10.0, "tau": 0.5, "gamma": 0.0, "dt": 0.0}
    numbers |= {"until": 1.0, "steady": -1.0, "tol": -1.0, "omega": 1.5}
    numbers |= {"lid": 1.0, "push": 0.0, "bound": 100.0}
    codes = {"kernel": 0, "pressure": 1, "stages": 7}
    for table in (operands, numbers, codes):
        table.update({name: value for name, value in changes.items() if name in table})
    call.operands = operands
    most = changes.get("most_sweeps", 3)
    made = np.zeros(1, np.int64)
    tables = tuple(codes.values()), tuple(numbers.values()), most
    return _core.staggered_step(*tables, *operands.values(), None, 1, 1, made)


def test_call_of_the_binding():
    status, report = call()

    assert _core.STATUS[status][0] == "PS_OK"
    assert report["steps"] == 1
    assert report["end"] == "count"


@pytest.mark.parametrize(
    "changes",
    [
        {"re": 0.0},
        {"re": np.inf},
        {"tau": np.nan},
        {"dt": -1.0},
        {"until": np.nan},
        {"steady": np.nan},
        {"gamma": 1.5},
        {"omega": 2.0},
        {"tol": np.nan},
        {"lid": np.inf},
        {"push": -1.0},
        {"bound": 0.0},
        {"kernel": 3},
        {"pressure": 2},
        {"stages": 8},
        {"most_sweeps": 0},
        {"n": 3},
    ],
)
def test_backend_refuses_illegal_numbers(changes):
    status, report = call(**changes)

    assert _core.STATUS[status][0] == "PS_BAD_ARGUMENT"
    assert report is None


@pytest.mark.parametrize("moving", ["f", "g"])
def test_clock_has_the_maxima_of_both_components(moving, rng):
    """The stage correct without pressure: u is f and v is g, from rest."""
    n = 6
    explicit = np.zeros((n + 2, n + 2))
    inside = np.s_[1:-1, 1:-2] if moving == "f" else np.s_[1:-2, 1:-1]
    explicit[inside] = rng.uniform(-3, 3, (n, n - 1) if moving == "f" else (n - 1, n))
    clock = np.zeros(len(_core.CLOCK))
    clock[_core.CLOCK["dt"]] = 0.25

    call(n, pressure=0, stages=4, clock=clock, **{moving: explicit})

    largest = np.abs(explicit).max()
    found = {name: clock[code] for name, code in _core.CLOCK.items()}
    ghosts = np.abs(2 - explicit[n, : n + 1]).max()
    expected = {"f": (max(largest, ghosts), 0), "g": (2, largest)}[moving]
    assert (found["u"], found["v"]) == pytest.approx(expected)
    assert found["change"] == pytest.approx(largest / 0.25)
    velocity = call.operands["u" if moving == "f" else "v"]
    np.testing.assert_array_equal(velocity[inside], explicit[inside])


@pytest.mark.parametrize("field", ["f", "g"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_velocity_that_is_not_finite_ends_the_call(field, value):
    explicit = np.zeros((8, 8))
    explicit[3, 3] = value

    status, report = call(pressure=0, stages=4, **{field: explicit})

    assert _core.STATUS[status][0] == "PS_OK"
    assert report["end"] == "grown"
    assert report["steps"] == 1


@pytest.mark.parametrize("field", ["f", "g"])
@pytest.mark.parametrize(("value", "end"), [(100.0, "count"), (-100.5, "grown")])
def test_each_component_beyond_the_bound_ends_the_call(field, value, end):
    explicit = np.zeros((8, 8))
    explicit[3, 3] = value

    _, report = call(pressure=0, stages=4, **{field: explicit})

    other = call.operands["clock"][_core.CLOCK["v" if field == "f" else "u"]]
    assert other <= 2
    assert report["end"] == end


@pytest.mark.parametrize("time", [1.0, 1.5])
@pytest.mark.parametrize(
    "changes", [{}, {"pressure": 0, "stages": 1}, {"pressure": 0, "stages": 4}]
)
def test_call_after_the_end_time_changes_nothing(changes, time, rng):
    clock = np.arange(len(_core.CLOCK), dtype=float)
    clock[_core.CLOCK["time"]] = time  # `until` is 1
    velocities = {name: rng.uniform(-1, 1, (8, 8)) for name in "uvfg"}
    centres = {name: rng.uniform(-1, 1, (6, 6)) for name in "pq"}
    before = {name: field.copy() for name, field in (velocities | centres).items()}
    before["clock"] = clock.copy()

    status, report = call(clock=clock, **velocities, **centres, **changes)

    assert _core.STATUS[status][0] == "PS_OK"
    assert (report["steps"], report["end"]) == (0, "until")
    for name, values in before.items():
        np.testing.assert_array_equal(call.operands[name], values, err_msg=name)


def test_backend_refuses_overlapping_fields():
    u = np.zeros((8, 8))

    status, _ = call(u=u, f=u)

    assert _core.STATUS[status][0] == "PS_BAD_LAYOUT"


@pytest.mark.parametrize("name", ["v", "p", "f", "q", "clock"])
def test_binding_refuses_other_shapes(name):
    with pytest.raises(ValueError, match=f"{name}: need"):
        call(**{name: np.zeros((9, 9))})

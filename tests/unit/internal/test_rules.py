"""What solvers share inside: functions by name, short messages, sides, domains, the clock."""

import numpy as np
import pytest

from pysolvers import Dirichlet, HeatADI, Neumann, Robin
from pysolvers._boundary import condition_of, sides_of
from pysolvers._checks import short
from pysolvers._data import NodeData
from pysolvers._domain import origin_and_step, per_axis
from pysolvers._functions import arguments_of, call
from pysolvers._solver.clock import Clock

X, Y = np.linspace(0, 1, 5)[None, :], np.linspace(0, 2, 4)[:, None]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x, X),
        (lambda t: t, 3.0),
        (lambda t, x, y: t + x * y, 3 + X * Y),
        (lambda y, x: y - 2 * x, Y - 2 * X),
        (lambda x, k=5.0: k * x, 5 * X),
        (lambda *, y: y, Y),
        (lambda: 7.0, 7.0),
    ],
)
def test_arguments_are_matched_by_name(function, expected):
    found = NodeData("source", function, X, Y).at(3.0)

    np.testing.assert_array_equal(np.broadcast_to(found, (4, 5)), np.broadcast_to(expected, (4, 5)))


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (lambda a, b: 0, "got a, b"),
        (lambda x, z: 0, "got z"),
        (lambda *args: 0, r"got \*args"),
        (lambda x, /: 0, "got x"),
        (np.sin, ""),
    ],
)
def test_other_names_raise_and_the_known_ones_are_named(function, given):
    with pytest.raises(TypeError, match=f"^source: .*{given}.*write lambda x, y, t: ..."):
        NodeData("source", function, X, Y)


def test_a_ufunc_is_a_function_of_the_only_known_name():
    assert arguments_of("factor", np.cos, "t") == ("t",)
    assert call("value", lambda b: b + 1, {"a": 1, "b": 2}) == 3


def test_values_constant_along_an_axis_stay_small():
    assert NodeData("k", lambda x, t: x * t, X, Y).shape == (1, 5)
    assert NodeData("k", lambda y, t: y if t > 1 else 0.0, X, Y).shape == (4, 1)
    assert NodeData("k", lambda t: t, X, Y).shape == (1, 1)
    assert NodeData("k", lambda x, y: x, X, Y).shape == (1, 5)


@pytest.mark.parametrize(
    "value",
    [[[float(i) for i in range(65)] for _ in range(65)], np.ones((65, 65)), "x" * 10_000, {1: "x"}],
    ids=["list", "array", "text", "dict"],
)
def test_values_in_messages_are_short(value):
    assert len(short(value)) < 300


def test_sides_by_name_by_axis_or_all():
    assert sides_of(1.0, "xy") == {"x-": 1.0, "x+": 1.0, "y-": 1.0, "y+": 1.0}
    assert sides_of({"x-": 1, "x+": 2, "y": 3}, "xy") == {"x-": 1, "x+": 2, "y-": 3, "y+": 3}
    with pytest.raises(ValueError, match=r"each side must be given.*; y-, y\+ are missing"):
        sides_of({"x": 1}, "xy")
    with pytest.raises(ValueError, match="given by both"):
        sides_of({"x": 1, "x-": 2, "y": 3}, "xy")
    with pytest.raises(ValueError, match="the sides are x-, x+".replace("+", r"\+")):
        sides_of({"x": 1, "y": 2, "z": 3}, "xy")


def test_a_value_is_a_dirichlet_condition():
    assert condition_of("x-", 2.0).value == 2.0
    assert condition_of("x-", "periodic") == "periodic"
    for given in (Dirichlet(1.0), Neumann(1.0), Robin(1.0, 2.0)):
        assert condition_of("x-", given) is given
    with pytest.raises(TypeError, match=r"boundary x-: .*Dirichlet, Neumann, or a value"):
        condition_of("x-", Robin(1.0), "Dirichlet, Neumann")
    with pytest.raises(ValueError, match="got 'Periodic'"):
        condition_of("x-", "Periodic")


def test_extent_and_spacing_place_the_nodes():
    extent = ((1.0, 3.0), (-1.0, 0.0))

    assert origin_and_step((5, 11), None, extent, "") == ((1.0, -1.0), (0.5, 0.1))
    assert origin_and_step((5, 10), None, extent, "y") == ((1.0, -1.0), (0.5, 0.1))
    assert origin_and_step((5, 11), (0.2, 0.3), None, "") == ((0.0, 0.0), (0.2, 0.3))
    assert per_axis("h", {"y": 2, "x": 1}, "xy") == per_axis("h", (1, 2), "xy") == (1.0, 2.0)
    solver = HeatADI(
        (11, 5), extent=extent, dt=0.1, initial=lambda x, y: x + 10 * y, boundary="periodic"
    )
    assert solver.u[0, 0] == -9.0
    np.testing.assert_allclose(solver.x, 1 + np.arange(5) * 0.4)
    np.testing.assert_allclose(solver.result().y, -1 + np.arange(11) / 11)


def test_times_of_a_leg_are_multiples_of_its_step():
    clock = Clock(0.1)

    assert [clock.at(n) for n in (0, 3, 10)] == [0.0, 3 * 0.1, 1.0]
    assert clock.split(1.0) == (10, 0.0)
    steps, rest = clock.split(0.25)
    assert (steps, rest) == (2, pytest.approx(0.05))
    clock.change(2, 0.05)
    clock.reach(3, 0.25)
    assert (clock.at(3), clock.last(3), clock.last(2)) == (0.25, 0.05, 0.1)
    clock.change(3, 0.1)
    assert clock.at(5) == 0.25 + 2 * 0.1
    repeated = Clock(1.0)
    repeated.restore(clock.facts())
    assert repeated.segment == clock.segment

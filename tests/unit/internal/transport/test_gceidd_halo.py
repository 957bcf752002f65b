"""Held grids of GCEIDD: how far a wrong side reaches, and which held grids the ranks get."""

from dataclasses import replace

import gceidd_reference
import numpy as np
import pytest

from pysolvers import ConvectionDiffusion, Dirichlet, Neumann
from pysolvers._solver.counter import Counter
from pysolvers.distributed import Slab
from pysolvers.papers import gceidd2022
from pysolvers.transport._plan import (
    Coefficients,
    depth_for,
    interfaces,
    lost_nodes,
    plan_halo,
)
from pysolvers.transport._run import Extremes
from pysolvers.transport._state import TransportState, field_names

SHAPE, TALL = (79, 33), (241, 33)
SIDES = {"x-": 0.3, "x+": Neumann(), "y-": Neumann(0.01), "y+": Dirichlet(lambda x: x)}
WIDE = Coefficients(0.4, 4.1, 3.0, 0.0)


def problem(courant, **changes):
    """Return a problem whose Courant number along y is that of one step of 1."""
    data = {
        "velocity": (0.2 / 32, courant / 78),
        "diffusion": 0.6 / 78**2,
        "extent": ((0.0, 1.0), (0.0, 1.0)),
        "initial": lambda x, y: np.sin(9 * x + 5 * y),
        "boundary": SIDES,
    }
    return ConvectionDiffusion(**data | changes)


def held_grid_of(given, method, held, strips, start, shape=SHAPE, *, keeps=False):
    """Return the state of a held grid with wrong sides and the fields of the whole grid."""
    solver = gceidd2022.GCEIDD(given, shape=shape, dt=1.0, **method)
    part = held, slice(0, shape[1])
    nodes = held.stop - held.start, shape[1]
    settings = replace(solver._settings, shape=nodes, strips=(solver._settings.strips[0], strips))
    data = given._grid_data(shape, part, is_held=True)
    for side, edge in data.edges.items():
        if not data._has(side):
            edge._value = np.full_like(np.asarray(edge._value, float), 1e3)  # wrong
    state = TransportState(data, settings, keeps=keeps)
    state.set_fields({name: values[part] for name, values in start.items()})
    return state


def stepped(given, method, held, strips, steps, start, shape=SHAPE, lost=(0, 0)):
    """Return the solution in a held grid after some steps from fields of the whole grid."""
    state = held_grid_of(given, method, held, strips, start, shape)
    state.prepare([1.0 + k for k in range(steps)])
    assert not state.step(1.0, (-1e300, 1e300), steps, 1, Counter().begin(), lost=lost)["grown"]
    return state.u


METHODS = (
    {"scheme": "cp"},
    {"scheme": "cfd"},
    {"scheme": "cfd", "foot": "extrapolate"},
    {"scheme": "mu"},
    {"scheme": "mu", "predictor": "printed"},
)


def whole(given, method, steps, shape=SHAPE):
    """Return the fields of the whole grid before some steps, and the solution after them."""
    solver = gceidd2022.GCEIDD(given, shape=shape, dt=1.0, **method).step(3)
    names = field_names(solver._settings.scheme)
    start = {name: values.copy() for name, values in solver._state.fields().items()}
    assert tuple(start) == names
    return start, solver.step(steps).u


@pytest.mark.each_value
@pytest.mark.parametrize("strips", [13, 26])
@pytest.mark.parametrize("courant", [0.4, -0.4, 1.7, -1.7, 2.0, 2.5, -2.5])
@pytest.mark.parametrize("method", METHODS)
def test_nodes_that_are_right_after_steps_in_strips(method, courant, strips):
    given = problem(courant)
    method = method | {"strips": (2, strips)}
    nodes = interfaces(SHAPE[0] - 1, strips)
    reach = max(1, int(abs(courant)) + 1)
    for steps in (1, 2, 3):
        start, expected = whole(given, method, steps)
        for low, high in ((3, strips), (0, strips - 2), (1, strips - 1)):
            held = slice(nodes[low], nodes[high] + 1)
            distances = [n - nodes[low] for n in nodes[low + 1 :]]
            lost = lost_nodes(distances, reach, steps)
            below = lost if low else 0
            above = lost if high < strips else 0
            u = stepped(given, method, held, high - low, steps, start)

            right = slice(below, len(u) - above)
            np.testing.assert_array_equal(u[right], expected[held][right])


@pytest.mark.parametrize("rows", [79, 78])  # strips of 6 cells; the first one has 6, or 5
@pytest.mark.parametrize("courant", [0.4, -1.7])
@pytest.mark.parametrize("method", METHODS)
def test_a_held_grid_that_loses_its_wrong_strips_is_right_elsewhere(method, courant, rows):
    given, strips, shape = problem(courant), 13, (rows, SHAPE[1])
    method = method | {"strips": (2, strips)}
    nodes = interfaces(rows - 1, strips)
    for steps in (1, 2, 3):
        start, expected = whole(given, method, steps, shape)
        for low, high in ((3, strips), (0, strips - 2), (1, strips - 1)):
            held = slice(nodes[low], nodes[high] + 1)
            lost = int(low > 0), int(high < strips)
            u = stepped(given, method, held, high - low, steps, start, shape, lost)

            below, above = low + steps * lost[0], high - steps * lost[1]
            right = slice(nodes[below] + lost[0], nodes[above] + 1 - lost[1])
            np.testing.assert_array_equal(
                u[right.start - held.start : right.stop - held.start], expected[right]
            )


@pytest.mark.parametrize("velocity", [(0.2 / 32, 0.005), (0.0, 0.005)])
@pytest.mark.parametrize("method", METHODS)
def test_fields_that_are_kept_are_those_before_the_steps(method, velocity):
    diffusion = (1e-4 * (velocity[0] > 0), 1e-4)  # without both a sweep changes nothing
    given = problem(0.4, velocity=velocity, diffusion=diffusion, boundary=0.3)
    method = method | {"strips": (2, 13)}
    start, expected = whole(given, method, 3)
    state = held_grid_of(given, method, slice(0, SHAPE[0]), 13, start, keeps=True)

    for _ in range(2):
        state.prepare([1.0 + k for k in range(3)])
        state.step(1.0, (-1e300, 1e300), 3, 1, Counter().begin(), keeps=True)
        np.testing.assert_array_equal(state.u, expected)
        state.restore()
        for name, values in state.fields().items():
            np.testing.assert_array_equal(values, start[name], name)


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("courant", [0.4, -1.7, 2.5])
@pytest.mark.parametrize("method", METHODS)
def test_wrong_nodes_reach_as_far_as_the_rule_says(method, courant, steps):
    given, strips = problem(courant), 13
    method = method | {"strips": (2, strips)}
    nodes = interfaces(SHAPE[0] - 1, strips)
    start, expected = whole(given, method, steps)
    held = slice(nodes[3], SHAPE[0])

    u = stepped(given, method, held, strips - 3, steps, start)

    lost = lost_nodes([n - nodes[3] for n in nodes[4:]], int(abs(courant)) + 1, steps)
    wrong = np.flatnonzero((u != expected[held]).any(axis=1))
    assert wrong[-1] == lost - 1


@pytest.mark.parametrize("across", [1, 3])
@pytest.mark.parametrize("courant", [0.4, -1.7])
@pytest.mark.parametrize("method", METHODS)
def test_layers_of_one_strip(method, courant, across):
    rows, steps = TALL[0], 2
    given = problem(courant * 78 / (rows - 1), diffusion=0.3 / (rows - 1) ** 2)
    method = method | {"strips": (across, 1)}
    along = Coefficients(abs(courant), 0.3, 0.1 if method["scheme"] != "cfd" else 0.3, 0.0)
    other = Coefficients(0.2, 0.3 * 32**2 / (rows - 1) ** 2, 0.0, 0.0)
    kind = {"scheme": method["scheme"], "foot": method.get("foot", "clamp")}
    layers = depth_for(along, other, steps, "float64", **kind, strips_across=across)
    assert layers < rows
    start, expected = whole(given, method, steps, TALL)

    u = stepped(given, method, slice(0, rows - 1), 1, steps, start, TALL)

    error = np.abs(u - expected[:-1])
    assert error[: rows - 1 - layers].max() <= 1e3 * 2e-16  # a side is wrong by 10^3
    # The bound is not far from what happens.
    assert error[-layers // 6 :].max() > 1e-12


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("method", METHODS)
def test_layers_of_one_strip_with_a_velocity_that_changes_along_it(method, sign):
    rows, steps = TALL[0], 2
    h = 1 / (rows - 1)
    velocity = 0.2 / 32, lambda y: sign * h * (0.8 + 0.4 * np.sin(60 * y))
    given = problem(0.0, velocity=velocity, diffusion=0.3 * h**2)
    data = given._grid_data(TALL)
    found = Extremes.joined([Extremes.of(data, 1, 0)])
    assert 0.08 < found.difference / h < 0.1
    along = Coefficients(1.2, 0.3, 0.1 if method["scheme"] != "cfd" else 0.3, found.difference / h)
    other = Coefficients(0.2, 0.3 * 32**2 * h**2, 0.0, 0.0)
    kind = {"scheme": method["scheme"], "foot": method.get("foot", "clamp"), "strips_across": 1}
    layers = depth_for(along, other, steps, "float64", **kind)
    assert layers < rows
    start, expected = whole(given, method, steps, TALL)

    u = stepped(given, method, slice(0, rows - 1), 1, steps, start, TALL)

    error = np.abs(u - expected[:-1])
    assert error[: rows - 1 - layers].max() <= 1e3 * 2e-16


def test_layers_of_one_strip_with_the_divergence_of_the_velocity():
    along, across = Coefficients(0.4, 0.3, 0.1, 0.0), Coefficients(0.2, 0.3, 0.0, 0.0)
    kind = {"scheme": "cp", "foot": "clamp", "strips_across": 1}

    def layers(q):
        return depth_for(along._replace(divergence=q), across, 2, "float64", **kind)

    assert layers(0.0) < layers(0.3) < layers(0.9)
    assert layers(1.0) is None


def test_differences_of_the_velocity_between_ranks_count():
    given = problem(0.0, velocity=(lambda x, y: x + 10.0 * (y > 0.5), lambda y: 7.0 * (y > 0.5)))
    parts = [given._grid_data((9, 11), (rows, slice(0, 11))) for rows in (slice(5), slice(5, 9))]

    x, y = (Extremes.joined([Extremes.of(part, k, 0) for part in parts]) for k in (0, 1))

    assert [Extremes.of(part, 1, 0).difference for part in parts] == [0.0, 0.0]
    assert y.difference == 7.0
    np.testing.assert_allclose(x.difference, 0.1)
    assert (x.velocity, y.velocity) == (11.0, 7.0)


def test_held_grids_end_where_their_strips_are_those_of_the_grid():
    for cells, strips, ranks in ((8191, 512, 2), (8191, 512, 5), (300, 60, 3), (1000, 77, 2)):
        parts = [Slab(0).part(cells + 1, rank, ranks) for rank in range(ranks)]
        plan = plan_halo(
            parts,
            cells,
            strips,
            4096,
            WIDE,
            WIDE,
            "float64",
            scheme="cp",
            foot="clamp",
            strips_across=strips,
            link="cpu",
            shrinks=True,
        )
        if plan is None:
            assert (cells, strips) == (1000, 77)
            continue
        nodes = interfaces(cells, strips)
        for cut, part in zip(plan.cuts, parts, strict=True):
            first, last = cut.held.start, cut.held.stop - 1
            assert cut.own == part
            assert [n for n in nodes if first <= n <= last] == [
                first + n for n in interfaces(last - first, cut.strips)
            ]
            assert cut.lost == (int(first > 0), int(last < cells))
            # What is left after all steps ends before the nodes of the rank begin.
            low, high = nodes.index(first), nodes.index(last)
            assert first == 0 or nodes[low + plan.steps] < part.start
            assert last == cells or nodes[high - plan.steps] >= part.stop


def test_no_held_grids_where_a_step_reaches_over_the_neighbours():
    parts = [slice(0, 20), slice(20, 40)]
    kind = {"scheme": "cp", "foot": "clamp", "strips_across": 1, "link": "cpu", "shrinks": True}
    assert plan_halo(parts, 39, 1, 10**6, WIDE, WIDE, "float64", **kind) is None
    assert plan_halo(parts, 39, 2, 10**6, WIDE, WIDE, "float64", **kind) is None
    growing = WIDE._replace(divergence=1.0)
    large = [slice(0, 4000), slice(4000, 8000)]
    assert plan_halo(large, 7999, 1, 40, growing, growing, "float64", **kind) is None


@pytest.mark.parametrize("courant", [0.0, 0.4, 0.999, 1.5, 2.25, 7.75])
def test_reach_is_that_of_the_farthest_node_that_a_foot_reads(courant):
    """Up to this Courant number, in both directions: by the feet of unit vectors."""
    n = 41
    method = gceidd_reference.Reference(np.zeros((1, n)), (1, 1), 1.0, (), (), None, None)
    farthest = 0
    for number in np.linspace(-courant, courant, 33):
        feet = method.at_feet(np.eye(n), np.full((n, n), number), 1.0)[:, n // 2]
        farthest = max(farthest, np.abs(np.flatnonzero(feet) - n // 2).max())
    assert Coefficients(courant, 0.1, 0.1, 0.0).reach == max(1, farthest)

"""Checks of HeatADI(scheme="implicit") with a group on devices: of host memory, and GPUs.

Fields of few nodes are solved for as a whole by each device. With `holding` a device has its nodes
and a halo wherever this is possible.
"""

from contextlib import nullcontext
from unittest import mock

import numpy as np
import pytest
import ranks_heat
from rank_hooks import failing, one_iteration
from ranks_heat import equal
from slabs import EVERY, chosen, few, holding, on_device, part_of, same
from unsplit_cases import PLANE, UNSPLIT

from pysolvers import ConvergenceError, Dirichlet, DistributedError, HeatADI, Neumann, Robin
from pysolvers.distributed import Slab

OnDevice = on_device(HeatADI)
CLOSE = {"float64": 1e-7, "float32": 1e-4}  # ten times the tolerance of a stage
BAR = {"x": Neumann(), "y-": 1.0, "y+": 0.0}

# Problems whose halo is not deeper than the nodes of a rank, if the longest axis is cut.
LONG = {"spacing": 1.0, "dt": 0.02, "scheme": "implicit"}
HALOS = {
    "values": LONG
    | {"shape": (120, 9), "initial": 0.5, "boundary": {"y-": 1.0, "y+": 0.0, "x": Neumann()}},
    "moving": LONG
    | {
        "shape": (11, 120),
        "initial": lambda x, y: np.sin(x) + y,
        "boundary": {
            "x-": Neumann(lambda y, t: y * t),
            "x+": Robin(2.0, lambda y, t: t + y),
            "y-": Dirichlet(lambda x, t: np.cos(t) * np.sin(0.1 * x)),
            "y+": Robin(0.5, 1.0),
        },
        "source": lambda x, y, t: np.sin(x * y) * np.exp(-t),
    },
    "single": LONG
    | {
        "shape": (120, 8),
        "dtype": np.float32,
        "initial": lambda x, y: np.cos(0.3 * y),
        "boundary": {"y": "periodic", "x-": Neumann(0.2), "x+": 1.0},
        "source": 0.1,
    },
    "closed": LONG
    | {
        "shape": (120, 10),
        "initial": lambda x, y: np.sin(0.5 * y) + 0 * x,
        "boundary": {"x-": Neumann(lambda t: np.sin(t)), "x+": Neumann(0.1), "y": Neumann()},
        "source": lambda y, t: np.cos(t + y),
    },
    "box": LONG
    | {
        "shape": (6, 120, 5),
        "initial": lambda x, y, z: np.sin(y + z) + x,
        "boundary": {"x": "periodic", "y": Neumann(), "z-": lambda y, t: np.sin(y + t), "z+": 1.0},
    },
}


def random_k(shape):
    """A conductivity of ratio 100 that is random from node to node."""
    return 100 ** np.random.default_rng(7).random(shape)


def bar_of(shape):
    """A conductivity of ratio 100 with a bar that is parallel to no axis."""
    places = np.meshgrid(*[np.linspace(0, 1, n) for n in shape], indexing="ij")
    return np.where(abs(places[-1] - places[-2]) < 0.12, 100.0, 1.0)


def check_unsplit_steps_have_the_bits_of_one_device(group, rng, links):
    """Also steady states, and arrays of the part of a rank."""
    with mock.patch.object(ranks_heat, "HeatADI", OnDevice):
        ranks_heat.check_unsplit_steps_have_the_bits_of_one_process(group, rng)
        ranks_heat.check_arrays_of_the_part_with_unsplit_steps(group, rng)


def check_unsplit_steps_of_a_bar_stay_in_the_range_of_the_data(group, rng, links):
    boxes = ((14, 19, 17), "float32", (1,)), ((65, 60), "float64", (0, 1))
    for shape, dtype, axes in few(boxes, 2):
        k, sides = bar_of(shape), BAR | ({"z": Neumann()} if len(shape) == 3 else {})
        problem = {"shape": shape, "spacing": 1.0, "dt": 10.0, "boundary": sides, "dtype": dtype}
        one = OnDevice(**problem, diffusivity=k).step(4)
        for axis in chosen(0, axes):
            part = part_of(group, k, axis)
            split = OnDevice(**problem, diffusivity=part, group=group, split=Slab(axis))
            result = split.step(1).step(3).result()
            same(group, split, one.u, axis, CLOSE[dtype])
            assert (result.scheme, result.backend) == ("implicit", "cuda")
            assert result.exchange == "none"  # each device has all nodes
            assert result.damped_start
            assert result.iterations == one.result().iterations > 0
            assert split.u.min() > -1e-4
            assert split.u.max() < 1 + 1e-4
            assert split.steps == 4


def check_unsplit_steps_where_a_rank_has_a_field_near_0(group, rng, links):
    """Its values are subnormal numbers: the tolerance is that of the whole field."""
    problem = {"shape": (70 * group.size, 9), "spacing": 1.0, "dt": 1.0, "boundary": BAR}
    problem |= {"scheme": "implicit", "dtype": np.float32}
    one = OnDevice(**problem)
    with holding(1):
        split = OnDevice(**problem, group=group, split=Slab(0))
        for _ in range(4):
            same(group, split.step(), one.step().u, 0, CLOSE["float32"])


def check_unsplit_steps_after_a_steady_state(group, rng, links):
    """A steady state changes nothing of the steps, of which a source and inflows are kept."""
    problem = UNSPLIT["moving"] | {"source": 0.5, "boundary": {"x": Neumann(0.3), "y": 1.0}}
    one = OnDevice(**problem).step(3)
    split = OnDevice(**problem, group=group, split=Slab(0)).step(3)
    equal(group, split.solve_steady(), one.solve_steady().u, 0)
    equal(group, split.step(), OnDevice(**problem).step(4).u, 0)


def check_unsplit_steps_of_all_sizes_of_steps(group, rng, links):
    """Steps for which alternating directions have no nodes; those that "auto" takes in turn."""
    problem = UNSPLIT["bar"] | {"shape": (group.size + 2, 12), "dt": 0.5}
    one = OnDevice(**problem).step(2)
    equal(group, OnDevice(**problem, group=group, split=Slab(1)).step(2), one.u, 1)
    k = bar_of((101, 104))
    problem = {"shape": k.shape, "spacing": 1.0, "boundary": BAR, "initial": 0.5}
    for dts, axis in few((((1.0, 0.003, 1.0), 0), ((0.003, 2.0, 0.002), 1)), 2):
        one = OnDevice(**problem, diffusivity=k, dt=dts[0])
        own = {"diffusivity": part_of(group, k, axis), "group": group, "split": Slab(axis)}
        split = OnDevice(**problem, **own, dt=dts[0])
        for dt in dts:
            for solver in (one, split):
                solver.dt = dt
                solver.run(until=solver.time + 2.5 * dt)
            assert split.result().scheme == one.result().scheme
            assert (split.result().iterations > 0) == (dt >= 1)
            same(group, split, one.u, axis, 1e-7)


def check_unsplit_states_that_are_saved(group, rng, links):
    if not EVERY:  # a file has nothing of devices: as on the CPU
        return
    with mock.patch.multiple(ranks_heat, HeatADI=OnDevice, STEPS=2):
        ranks_heat.continue_saved_states(group, UNSPLIT["moving"])


def check_errors_of_unsplit_steps_on_one_device(group, rng, links):
    with mock.patch.object(ranks_heat, "HeatADI", OnDevice):
        ranks_heat.check_errors_of_unsplit_steps_raise_on_all_ranks(group, rng)


def raising_once(time):
    """Return the source x t, which raises an OSError at its first call after a time."""
    failed = []

    def source(x, t):
        if t > time and not failed:
            failed.append(t)
            raise OSError("none is left")
        return x * t

    return source


def check_unsplit_steps_go_on_after_an_error(group, rng, links):
    """After a rank without memory, and a source that raised once: T is that of before."""
    if group.size == 1:
        return
    is_last = group.rank == group.size - 1
    source = raising_once(2.5 * PLANE["dt"] if is_last else np.inf)
    problem = UNSPLIT["bar"] | {"source": source}
    one = OnDevice(**UNSPLIT["bar"], source=lambda x, t: x * t)
    split = OnDevice(**problem, group=group, split=Slab(0))
    kind = MemoryError if is_last else DistributedError
    for part in ("fields of a slab", "values on a device"):
        full = failing(part, MemoryError("none is left"))
        with full if is_last else nullcontext(), pytest.raises(kind, match="none is left"):
            split.step()
    one.step(2)
    split.step(2)
    before = split.u.copy()
    with pytest.raises(OSError if is_last else DistributedError, match="none is left"):
        split.step()
    np.testing.assert_array_equal(split.u, before)
    assert split.steps == 2
    equal(group, split.step(2), one.step(2).u, 0)


def check_halos_of_unsplit_steps(group, rng, links, each=4):
    """Each device holds its nodes and a halo: T is that of one device up to the tolerance."""
    for name, problem in few(HALOS.items(), each):
        shape = problem["shape"]
        axis, k = int(np.argmax(shape)), random_k(shape)
        one = OnDevice(**problem, diffusivity=k).step(4)
        own = {"diffusivity": part_of(group, k, axis), "group": group, "split": Slab(axis)}
        with holding(0):
            split = OnDevice(**problem, **own).step(1).step(3)
        result = split.result()
        is_divided = group.size > 1
        nodes = split._runner.unsplit._held.store.operand("t").shape[axis]
        assert (nodes < 120) == is_divided, name
        assert result.exchange in (links if is_divided else ("none",))
        assert abs(result.iterations - one.result().iterations) <= 3
        same(group, split, one.u, axis, CLOSE[one.u.dtype.name] * float(np.abs(one.u).max()))
        for change in split._runner.unsplit._recent if is_divided else ():
            change = split._runner.unsplit._held.solver._device.download(change)
            outer = change.take([0] * (group.rank > 0) + [-1] * (group.rank < group.size - 1), axis)
            assert not outer.any()  # as the basis of a solve must be


def check_halos_of_a_closed_box(group, rng, links):
    """All heat comes from sources and inflows, also after steps that were not made."""
    problem = HALOS["closed"]
    k, is_last = random_k(problem["shape"]), group.rank == group.size - 1
    one = OnDevice(**problem, diffusivity=k).step(6)
    own = {"diffusivity": part_of(group, k, 0), "group": group, "split": Slab(0)}
    with holding(0):
        split = OnDevice(**problem, **own).step()
        before = split.u.copy()
        full = failing("solve of levels", MemoryError("none is left"))
        kind = MemoryError if is_last else DistributedError
        with one_iteration(), pytest.raises(ConvergenceError, match="dt"):
            split.step()
        with full if is_last else nullcontext(), pytest.raises(kind, match="none is left"):
            split.step()
        np.testing.assert_array_equal(split.u, before)
        split.step(5)
    same(group, split, one.u, 0, CLOSE["float64"] * float(np.abs(one.u).max()))
    u = split.gather()
    if u is not None:
        heat = [np.trapezoid(np.trapezoid(v)) for v in (u, one.u)]
        np.testing.assert_allclose(*heat, rtol=1e-13)


def check_halos_at_a_steady_state(group, rng, links):
    """What the ends of the halos change is small compared with the change in a step, not with T."""
    problem = LONG | {"shape": (120, 9), "dt": 2.0, "boundary": HALOS["values"]["boundary"]}
    problem |= {"initial": lambda x, y: 1 - y / 119, "damped_start": False}
    with holding(0):
        split = OnDevice(**problem, group=group, split=Slab(0))
        before = split.u.copy()
        split.step(3)
    assert group.size == 1 or split._runner.unsplit._held.depth > 0
    np.testing.assert_allclose(split.u, before, rtol=0, atol=5e-14)


def check_halos_for_steps_of_other_lengths(group, rng, links):
    """A deeper halo is made for longer steps and kept for shorter ones; "auto", steady states."""
    shape = (120, 12)
    k = random_k(shape)
    problem = {"shape": shape, "spacing": 1.0, "boundary": HALOS["values"]["boundary"]}
    problem["damped_start"] = False  # whose half-steps need a deeper halo than a step
    one = OnDevice(**problem, diffusivity=k, dt=0.02)
    own = {"diffusivity": part_of(group, k, 0), "group": group, "split": Slab(0)}
    with holding(0):
        split = OnDevice(**problem, **own, dt=0.02)
        seen = []
        for dt in (0.02, 0.018, 0.03, 5.0, 0.001, 0.02):
            for solver in (one, split):
                solver.dt = dt
                solver.run(until=solver.time + 2.5 * dt)
            held = split._runner.unsplit._held
            seen.append(held if split.result().iterations else None)
            same(group, split, one.u, 0, CLOSE["float64"])
            assert split.result().scheme == one.result().scheme
        for solver in (one, split):  # a short last step keeps what is held
            solver.run(until=solver.time + 1.001 * solver.dt)
        assert split._runner.unsplit._held is held
        steady, expected = split.solve_steady(), part_of(group, one.solve_steady().u, 0)
        np.testing.assert_allclose(steady.u, expected, rtol=0, atol=1e-8)
        for solver in (one, split):
            solver.step()
        same(group, split, one.u, 0, CLOSE["float64"])
        assert seen[1] is seen[0]
        assert seen[4] is None
        if group.size > 1:
            depths = [held.depth for held in seen if held]
            assert depths[0] < depths[2]
            assert depths[3] == 0  # the halo would be deeper than the nodes of a rank
            assert depths[4] > 0


def check_halos_after_an_error(group, rng, links):
    if group.size == 1:
        return
    is_last = group.rank == group.size - 1
    source = raising_once(2.5 * LONG["dt"] if is_last else np.inf)
    k = random_k(HALOS["values"]["shape"])
    own = {"diffusivity": part_of(group, k, 0), "group": group, "split": Slab(0)}
    one = OnDevice(**HALOS["values"], diffusivity=k, source=lambda x, t: x * t)
    kind = MemoryError if is_last else DistributedError
    with holding(0):
        split = OnDevice(**HALOS["values"], **own, source=source)
        for part in ("fields of a slab", "values on a device"):
            full = failing(part, MemoryError("none is left"))
            with full if is_last else nullcontext(), pytest.raises(kind, match="none is left"):
                split.step()
        split.step(2)
        before = split.u.copy()
        with pytest.raises(OSError if is_last else DistributedError, match="none is left"):
            split.step()
        np.testing.assert_array_equal(split.u, before)
        same(group, split.step(2), one.step(4).u, 0, 1e-7)
        one.dt = split.dt = 2 * LONG["dt"]  # a deeper halo
        before = split.u.copy()
        full = failing("fields of a slab", MemoryError("none is"))
        with full if is_last else nullcontext(), pytest.raises(kind, match="none is"):
            split.step()
        np.testing.assert_array_equal(split.u, before)
        same(group, split.step(2), one.step(2).u, 0, 1e-7)


def check_halos_of_ranks_that_wrap(group, rng, links):
    """The first rank is the neighbour of the last one."""
    shape = (150, 7)
    k = random_k(shape)
    problem = LONG | {"shape": shape, "dt": 0.01, "initial": lambda x, y: np.sin(0.2 * y) + x}
    problem["boundary"] = {"y": "periodic", "x-": Neumann(), "x+": Robin(1.0, lambda t: t)}
    own = {"diffusivity": part_of(group, k, 0), "group": group, "split": Slab(0)}
    source = rng.standard_normal(shape)
    one = OnDevice(**problem, diffusivity=k, source=source).step(4)
    with holding(0):
        split = OnDevice(**problem, **own, source=part_of(group, source, 0)).step(4)
    assert group.size == 1 or split._runner.unsplit._held.depth > 0
    same(group, split, one.u, 0, 1e-7 * float(np.abs(one.u).max()))

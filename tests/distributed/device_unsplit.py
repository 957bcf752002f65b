"""Checks of HeatADI(scheme="implicit") with a group on devices: of host memory, and GPUs."""

from contextlib import nullcontext
from unittest import mock

import numpy as np
import pytest
import ranks_heat
from ranks_heat import equal
from slabs import on_device, part_of, same
from unsplit_cases import PLANE, UNSPLIT

from pysolvers import DistributedError, HeatADI, Neumann
from pysolvers._runtime.fields import DeviceFields
from pysolvers.distributed import Slab
from pysolvers.heat import _unsplit_slab

OnDevice = on_device(HeatADI)
CLOSE = {"float64": 1e-7, "float32": 1e-4}  # ten times the tolerance of a stage
BAR = {"x": Neumann(), "y-": 1.0, "y+": 0.0}


def bar_of(shape):
    """A conductivity of ratio 100 with a bar that is parallel to no axis."""
    places = np.meshgrid(*[np.linspace(0, 1, n) for n in shape], indexing="ij")
    return np.where(abs(places[-1] - places[-2]) < 0.12, 100.0, 1.0)


def check_unsplit_steps_have_the_bits_of_one_device(group, rng, ways):
    """Also steady states, and arrays of the part of a rank."""
    with mock.patch.object(ranks_heat, "HeatADI", OnDevice):
        ranks_heat.check_unsplit_steps_have_the_bits_of_one_process(group, rng)
        ranks_heat.check_arrays_of_the_part_with_unsplit_steps(group, rng)


def check_unsplit_steps_of_a_bar_stay_in_the_range_of_the_data(group, rng, ways):
    for shape, dtype, axes in (((65, 60), "float64", (0, 1)), ((14, 19, 17), "float32", (1,))):
        k, sides = bar_of(shape), BAR | ({"z": Neumann()} if len(shape) == 3 else {})
        problem = {"shape": shape, "spacing": 1.0, "dt": 10.0, "boundary": sides, "dtype": dtype}
        one = OnDevice(**problem, diffusivity=k).step(6)
        for axis in axes:
            part = part_of(group, k, axis)
            split = OnDevice(**problem, diffusivity=part, group=group, split=Slab(axis))
            result = split.step(2).step(4).result()
            same(group, split, one.u, axis, CLOSE[dtype])
            assert (result.scheme, result.backend) == ("implicit", "cuda")
            assert result.exchange == "none"  # each device has all nodes
            assert result.damped_start
            assert result.iterations == one.result().iterations > 0
            assert split.u.min() > -1e-4
            assert split.u.max() < 1 + 1e-4
            assert split.steps == 6


def check_unsplit_steps_after_a_steady_state(group, rng, ways):
    """A steady state changes nothing of the steps, of which a source and inflows are kept."""
    problem = UNSPLIT["moving"] | {"source": 0.5, "boundary": {"x": Neumann(0.3), "y": 1.0}}
    one = OnDevice(**problem).step(3)
    split = OnDevice(**problem, group=group, split=Slab(0)).step(3)
    equal(group, split.solve_steady(), one.solve_steady().u, 0)
    equal(group, split.step(), OnDevice(**problem).step(4).u, 0)


def check_unsplit_steps_of_all_sizes_of_steps(group, rng, ways):
    """Steps for which alternating directions have no nodes; those that "auto" takes in turn."""
    problem = UNSPLIT["bar"] | {"shape": (group.size + 2, 12), "dt": 0.5}
    one = OnDevice(**problem).step(2)
    equal(group, OnDevice(**problem, group=group, split=Slab(1)).step(2), one.u, 1)
    k = bar_of((101, 104))
    problem = {"shape": k.shape, "spacing": 1.0, "boundary": BAR, "initial": 0.5}
    for dts, axis in (((1.0, 0.003, 1.0), 0), ((0.003, 2.0, 0.002), 1)):
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


def check_unsplit_states_that_are_saved(group, rng, ways):
    with mock.patch.object(ranks_heat, "HeatADI", OnDevice):
        ranks_heat.continue_saved_states(group, UNSPLIT["moving"])


def check_errors_of_unsplit_steps_on_one_device(group, rng, ways):
    with mock.patch.object(ranks_heat, "HeatADI", OnDevice):
        ranks_heat.check_errors_of_unsplit_steps_raise_on_all_ranks(group, rng)


def check_unsplit_steps_go_on_after_an_error(group, rng, ways):
    """After a rank without memory, and a source that raised once: T is that of before."""
    if group.size == 1:
        return
    is_last, failed = group.rank == group.size - 1, []

    def source(x, t):
        if t > 2.5 * PLANE["dt"] and is_last and not failed:
            failed.append(t)
            raise OSError("none is left")
        return x * t

    problem = UNSPLIT["bar"] | {"source": source}
    one = OnDevice(**UNSPLIT["bar"], source=lambda x, t: x * t)
    split = OnDevice(**problem, group=group, split=Slab(0))
    kind = MemoryError if is_last else DistributedError
    for owner, name in ((_unsplit_slab, "make_fields"), (DeviceFields, "hold")):
        full = mock.patch.object(owner, name, side_effect=MemoryError("none is left"))
        with full if is_last else nullcontext(), pytest.raises(kind, match="none is left"):
            split.step()
    one.step(2)
    split.step(2)
    before = split.u.copy()
    with pytest.raises(OSError if is_last else DistributedError, match="none is left"):
        split.step()
    np.testing.assert_array_equal(split.u, before)
    assert split.steps == 2
    same(group, split.step(2), one.step(2).u, 0, 1e-7)

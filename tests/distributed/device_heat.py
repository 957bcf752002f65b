"""Checks of HeatADI with a group on devices, for devices of host memory and for GPUs."""

import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import ranks_heat
from rank_hooks import failing_steps
from ranks_heat import BOX, PLANE, PROBLEMS, wave
from slabs import EVERY, chosen, few, on_device, same

from pysolvers import DistributedError, HeatADI, Neumann
from pysolvers.distributed import Slab

OnDevice = on_device(HeatADI)


def fine(problem, axis=0):
    """Return a problem that four ranks can step with a halo, if this axis is cut."""
    if len(problem["shape"]) == 2:
        return problem | {"shape": (101, 104), "dt": 4e-6}
    shape = [14, 13, 15]
    shape[axis] = 50 + axis
    return problem | {"shape": tuple(shape), "dt": 8e-6}


def bound_of(problem, one):
    """Return a bound of the difference to one process, whose kernels can be others.

    Each of two fields has rounding errors of its own. Two sweeps of a step store the field, and
    round it by eps/2 times the largest value; these short steps solve for differences that are
    small compared with it. Later steps damp the errors: two fields differ by less than
    2 * steps * eps * largest.
    """
    eps = np.finfo(problem.get("dtype", np.float64)).eps
    return 2 * one.steps * float(eps) * max(1.0, float(np.abs(one.u).max()))


def check_heat_by_halo(group, rng, links):
    for number, (name, given) in few(enumerate(PROBLEMS.items()), 2):
        if name in ranks_heat.DAMPED and not EVERY:
            continue
        for axis in chosen(number, range(len(given["shape"]))):
            problem = fine(given, axis)
            one = OnDevice(**problem).step(40)
            one.dt = problem["dt"] / 3
            one.step(3)
            split = OnDevice(**problem, group=group, split=Slab(axis)).step(3).step(37)
            split.dt = problem["dt"] / 3
            split.step(3)
            same(group, split, one.u, axis, bound_of(problem, one))
            result = split.result()
            assert result.backend == "cuda", name
            assert result.exchange in (links if group.size > 1 else ("none",))
            assert result.damped_start == one.result().damped_start
            assert (split.time, split.steps) == (one.time, one.steps)


def check_heat_by_cut_lines(group, rng, links):
    """Steps for which the halo would be too deep; also the bits, and ranks that differ."""
    with mock.patch.object(ranks_heat, "HeatADI", OnDevice):
        ranks_heat.check_long_steps(group, rng)
        ranks_heat.check_bits_do_not_depend_on_the_calls(group, rng)
        ranks_heat.check_ranks_that_step_differently(group, rng)
        ranks_heat.check_kernels_that_fail_on_one_rank(group, rng)


def check_heat_by_cut_lines_that_fails(group, rng, links):
    """A rank that fails between two steps of a call ends the wait of the others at once."""
    if group.size == 1 or links != ("peers",):
        return
    problem = BOX | {"shape": (40, 11, 10), "dt": 0.5, "initial": 1.0, "damped_start": False}
    problem |= {"boundary": {"x": 0.0, "y": Neumann(), "z": 1.0}}
    one = OnDevice(**problem).step(9)
    split = OnDevice(**problem, group=group, split=Slab(0)).step(1)
    began = time.monotonic()
    with (
        failing_steps(3, OSError("no data")) if group.rank == 1 else nullcontext(),
        pytest.raises(OSError if group.rank == 1 else DistributedError, match="no data"),
    ):
        split.step(8)
    assert time.monotonic() - began < group.timeout / 2
    repeated = OnDevice(**problem, group=group, split=Slab(0)).step(9)
    same(group, repeated, one.u, 0, bound_of(problem, one))


def check_heat_of_two_solvers_in_turn(group, rng, links):
    """Layers of one solver that have arrived stay right while another one sends its own."""
    problems = [fine(PROBLEMS[name]) for name in ("values", "single", "box")]
    ones = [OnDevice(**problem) for problem in problems]
    splits = [OnDevice(**problem, group=group, split=Slab(0)) for problem in problems]
    for count in (16, 16, 32, 9):  # windows end where another solver goes on
        for solver in (*ones, *splits):
            solver.step(count)
    for problem, one, split in zip(problems, ones, splits, strict=True):
        same(group, split, one.u, 0, bound_of(problem, one))


def check_heat_run_and_saved_states(group, rng, links):
    problem = fine(PROBLEMS["fluxes"])
    data = {name: problem[name] for name in ("boundary", "diffusivity", "heat_capacity")}
    one = OnDevice(**problem)
    split = OnDevice(**problem, group=group, split=Slab(1))
    for solver in (one, split):
        solver.run(30.5 * problem["dt"])
    assert split.last_dt == one.last_dt
    same(group, split, one.u, 1, 1e-13)
    folder = Path(group.objects("test", tempfile.mkdtemp() if group.rank == 0 else None)[0])
    split.save(folder / "split.npz")
    if group.rank == 0:
        one.save(folder / "one.npz")
    group.objects("test", None)
    one.step(9)
    for name in ("one.npz", "split.npz"):
        alone = OnDevice.load(folder / name, **data).step(9)
        np.testing.assert_allclose(alone.u, one.u, rtol=0, atol=1e-13)
        for axis in (0, 1):
            more = OnDevice.load(folder / name, **data, group=group, split=Slab(axis)).step(9)
            same(group, more, one.u, axis, 1e-13)


def check_heat_that_a_device_refuses(group, rng, links):
    if group.size == 1:
        return
    for axis, problem in ((1, PLANE), (1, BOX), (0, PLANE | {"shape": (2 * group.size - 1, 14)})):
        along = ("x" if axis else "y") if len(problem["shape"]) == 2 else "y"
        options = {"group": group, "split": Slab(axis), "initial": 1.0}
        with pytest.raises(
            ValueError, match=rf"each rank needs \d+ nodes along {along} for k dt/h"
        ):
            OnDevice(**problem | {"dt": 0.5}, **options)
    solver = OnDevice(**fine(PROBLEMS["values"]), group=group, split=Slab(1)).step(2)
    before = solver.u.copy()
    solver.dt = 1.0
    for _ in range(2):
        with pytest.raises(ValueError, match=r"take split=Slab\(0\), fewer ranks, a smaller dt"):
            solver.step()
    np.testing.assert_array_equal(solver.u, before)
    devices = {"device": "cuda" if group.rank else "cpu"}
    with pytest.raises(DistributedError, match="device must be the same on all ranks"):
        HeatADI(**PLANE, group=group, split=Slab(0), **devices)


def check_heat_of_large_fields(group, rng, links):
    """Several blocks of the kernels, f32 and f64, with an array for the conductivity or not."""
    sides = {"x": 0.0, "y-": Neumann(1.0), "y+": lambda x, t: np.sin(3 * x) + t}
    plane = {"shape": (700, 517), "spacing": 0.01, "dt": 3e-5, "initial": wave, "boundary": sides}
    box = {"shape": (130, 96, 128), "spacing": 0.01, "dt": 3e-5, "boundary": {"x": 1.0, "y": 0.0}}
    box["boundary"]["z"] = "periodic"
    for problem in (
        plane,
        plane | {"dtype": np.float32},
        plane | {"scheme": "douglas-gunn", "diffusivity": lambda x, y: 1 + x * y},
        box,
        box | {"dtype": np.float32, "source": lambda x, t: x + t},
    ):
        one = OnDevice(**problem).step(40)
        for axis in range(len(problem["shape"])):
            split = OnDevice(**problem, group=group, split=Slab(axis)).step(40)
            same(group, split, one.u, axis, bound_of(problem, one))

"""Checks of the solver of docs/architecture.md on slabs, run by every rank of a job."""

import tempfile
from pathlib import Path

import fake_device
import numpy as np
import pytest
from page_solver import END, VISCOSITY, burgers, module_of_the_page, wave
from rank_hooks import counting_bars
from slabs import part_of, same

from pysolvers import ConvergenceError, DistributedError
from pysolvers.distributed import Slab

SPLIT = Slab(0)
PAGE = module_of_the_page()
BOUND = 1e-13  # rounding errors of data of size 1


def check_order_is_two(group, rng):
    errors = []
    for k in (1, 2):
        solver = burgers(PAGE, 64 * k + 1, 0.02 / k, group=group, split=SPLIT)
        result = solver.run(END)
        u, x = (group.allgather("test", np.resize(a, 99 * k)) for a in (result.u, result.x))
        errors.append(np.abs(u - wave(x, END)).max())
    assert errors[0] < 1e-2
    np.testing.assert_allclose(np.log2(np.divide(errors[:-1], errors[1:])), 2, atol=0.2)


def check_steps_are_those_of_one_process(group, rng):
    for n in (2 * group.size + 1, 64):
        one, split = burgers(PAGE, n), burgers(PAGE, n, group=group, split=SPLIT)
        np.testing.assert_array_equal(split.x, part_of(group, one.x, 0))
        same(group, split.step(7).step(4), one.step(11).u, 0, BOUND)
        assert (split.steps, split.time) == (one.steps, one.time)
        split.dt = one.dt = 0.005
        result = split.record(0.33, every=0.1)
        same(group, split, one.record(0.33, every=0.1).u, 0, BOUND)
        assert [frame.time for frame in result.frames] == pytest.approx([0.22, 0.32, 0.33])
        assert result.exchange == ("none" if group.size == 1 else "host")


def check_values_that_are_set(group, rng):
    values = rng.random(31)
    one, split = burgers(PAGE, 31), burgers(PAGE, 31, group=group, split=SPLIT)
    one.u, split.u = values, part_of(group, values, 0)
    same(group, split.step(5), one.step(5).u, 0, BOUND)
    given = burgers(PAGE, 31, initial=part_of(group, values, 0), group=group, split=SPLIT)
    np.testing.assert_array_equal(given.step(5).u, split.u)


def check_files_are_those_of_any_number_of_ranks(group, rng):
    where = {"group": group, "split": SPLIT}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(group.objects("test", folder)[0]) / "state"
        burgers(PAGE, **where).step(7).save(path)
        group.objects("test", None)
        one, split = PAGE.Burgers.load(path), PAGE.Burgers.load(path, **where)
        expected = burgers(PAGE, **where).step(16)
        assert one.steps == split.steps == 7
        np.testing.assert_array_equal(split.step(9).u, expected.u)
        same(group, split, one.step(9).u, 0, BOUND)
        group.objects("test", None)


def check_lines_are_solved_on_devices(group, rng):
    expected = burgers(PAGE).step(20)
    with fake_device.in_place_of_cuda():
        solver = burgers(PAGE, device="cuda", group=group, split=SPLIT).step(20)
        assert solver.result().backend == "cuda"
        same(group, solver, expected.u, 0, BOUND)


def check_progress_is_shown_by_one_rank(group, rng):
    with counting_bars() as bars:
        burgers(PAGE, dt=0.001, group=group, split=SPLIT).run(0.1, progress=True)
    shown = bars.return_value.return_value.update.call_args_list
    assert [count for (count,), _ in shown] == ([64, 36] if group.rank == 0 else [])


def check_errors(group, rng):
    with pytest.raises(TypeError, match="given together"):
        burgers(PAGE, group=group)
    with pytest.raises(ValueError, match="cannot be split" if group.size > 3 else "at least 3"):
        burgers(PAGE, 3 if group.size > 3 else 2, group=group, split=SPLIT)
    if group.size > 1:
        with pytest.raises(DistributedError, match="viscosity must be the same on all ranks"):
            PAGE.Burgers(9, extent=(0, 1), viscosity=1 + group.rank, dt=1, group=group, split=SPLIT)
        last = group.rank == group.size - 1
        with pytest.raises(ValueError if last else DistributedError, match="broadcast"):
            burgers(PAGE, initial=np.zeros(4 if last else 1), group=group, split=SPLIT)
    solver = burgers(PAGE, group=group, split=SPLIT)
    solver.u = np.where(solver.x > 0, 1e200, -1e200)
    with np.errstate(all="ignore"), pytest.raises(ConvergenceError, match="not finite"):
        solver.run(1.0)
    assert solver.settings.viscosity == VISCOSITY

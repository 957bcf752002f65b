"""Checks of what every solver has on slabs, run by every rank of a job: see test_distributed.py."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
import shared_device
from slabs import anew, chosen, few, part_of, same
from solver_cases import STARTS, count_of, reloaded, transport

from pysolvers import DistributedError
from pysolvers.distributed import Slab

CASES = STARTS | {
    # Velocities that change with time: the ranks exchange rows for columns.
    "rows for columns": lambda initial=0.0, **o: transport(
        initial, boundary=lambda x, t: x + t, velocity=(lambda t: 1 + t, 0.5), **o
    ),
    "rows for columns, mu": lambda initial=0.0, **o: transport(
        initial, velocity=(lambda t: 1 + t, 0.5), scheme="mu", **o
    ),
}
# Those that take no group: of one dimension, of one process, or of no ranks at all.
REFUSED = ("heat-rod", "heat-holes", "heat-law", "parabolic", "advected")
BOUND = 1e-12


def split_cases():
    """Yield the cases with each axis along which they can be split, or one of them in turn."""
    for number, (name, make) in enumerate(CASES.items()):
        if name.startswith(REFUSED):
            continue
        axes = (0,) if name.startswith(("lmsor", "plate")) else (0, 1)
        for axis in chosen(number, (0, 1, 2) if name == "heat-3d" else axes):
            yield name, make, axis


def check_other_cases_are_refused(group, rng):
    for name, make in CASES.items():
        if name.startswith(REFUSED):
            with pytest.raises((ValueError, TypeError), match="group"):
                make(group=group, split=Slab(0))
        elif name.startswith(("lmsor", "plate")):
            with pytest.raises(ValueError, match=r"split must be Slab\(0\)"):
                make(group=group, split=Slab(1))


def check_fields_that_are_set(group, rng):
    """In the default run each second case; the next check has the others."""
    for number, (name, make, axis) in few([*enumerate(split_cases())][1:], 2):
        run(group, rng, name, make, axis, chosen(number, (0, 3)))


def check_fields_that_are_set_on_devices(group, rng):
    with shared_device.in_place_of_cuda(is_shared=False):
        for number, (name, make, axis) in few(enumerate(split_cases(), 1), 2):
            deep = name.startswith("heat") and axis > 0  # a halo that few nodes do not have
            if not deep and not name.startswith(("heat-implicit", "rows")):
                run(anew(group), rng, name, make, axis, chosen(number, (0, 3)), device="cuda")


def run(group, rng, name, make, axis, steps, **where):
    """Set u on all ranks after some of `steps`: as on one process."""
    options = {"scheme": "douglas-gunn"} if name in ("heat", "heat-smooth") else {}
    for before in steps:
        one = make(**options).step(before)
        split = make(**options, **where, group=group, split=Slab(axis)).step(before)
        assert split.group is group
        assert split.split == Slab(axis)
        field = rng.random(one.u.shape)
        one.u, split.u = field, part_of(group, field, axis)
        assert count_of(split) == before
        for count in (0, 1, 4):
            same(group, split.step(count), one.step(count).u, axis, BOUND)


def check_values_of_another_shape_raise_on_all_ranks(group, rng):
    for name in ("heat", "cp", "lmsor", "plate"):
        split = CASES[name](group=group, split=Slab(0))
        kept = np.array(split.u)
        last = group.rank == group.size - 1
        values = kept[:, 1:] if last else kept
        with pytest.raises(ValueError if last else DistributedError, match="u must have the shape"):
            split.u = values
        np.testing.assert_array_equal(split.u, kept)


def check_a_start_time_and_a_record(group, rng):
    for name, make, axis in few(split_cases(), 2):
        if name.startswith(("lmsor", "plate")):
            continue
        one, split = make(start_time=2.0), make(start_time=2.0, group=group, split=Slab(axis))
        times = [2.0, 2.015, 2.04]
        found = split.record(times=times)
        expected = one.record(times=times)
        assert [frame.time for frame in found.frames] == times
        for frame, whole in zip(found.frames, expected.frames, strict=True):
            own = part_of(group, whole.u, axis)
            np.testing.assert_allclose(frame.u, own, rtol=0, atol=BOUND)
        with tempfile.TemporaryDirectory() as folder:
            loaded = reloaded(one, Path(folder) / str(group.rank))
            assert (loaded.start_time, loaded.time) == (2.0, split.time)

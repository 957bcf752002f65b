"""Checks of solvers with a group on devices made of host memory; see test_distributed.py.

Whatever is not a kernel is that of GPUs: fields on the device, parts that are copied, layers that
travel between devices or through the memory of the host, and waiting.
"""

import io
import tempfile
from contextlib import nullcontext, redirect_stderr
from unittest import mock

import device_heat
import device_poisson
import device_relaxation
import device_transport
import numpy as np
import pytest
import shared_device
from slabs import anew, same

from pysolvers import (
    GCEIDD,
    LMSOR,
    BackendError,
    DistributedError,
    FastPoisson,
    HeatADI,
    RedBlackSOR,
)
from pysolvers._cli import main
from pysolvers._runtime import state
from pysolvers.cases import heat
from pysolvers.distributed import Slab, _inbox

# Of one process, with several blocks of the kernels of a GPU.
LARGE = ("check_heat_of_large_fields",)


def check_layers_between_devices(group, rng):
    with shared_device.in_place_of_cuda():
        run(group, rng, ("peers",))


def check_layers_through_the_host(group, rng):
    with shared_device.in_place_of_cuda(is_shared=False):
        run(anew(group), rng, ("host",))


def check_fields_stay_on_the_device(group, rng):
    """Steps, also shorter ones, move neither the field nor the layers to the host."""
    problem = device_heat.fine(device_heat.PROBLEMS["values"]) | {"shape": (601, 104)}
    with shared_device.in_place_of_cuda() as device:
        solver = device_heat.OnDevice(**problem, group=anew(group), split=Slab(0)).step(1)
        nbytes, device.transferred = solver.u.nbytes, 0
        solver.step(40)
        solver.dt = 0.9 * problem["dt"]
        solver.step(1)
        assert device.transferred < nbytes / 4


def check_inbox_that_cannot_grow(group, rng):
    """A solver keeps its inbox, and another one gets one, after a rank had too little memory."""
    if group.size == 1:
        return
    small = device_heat.fine(device_heat.PROBLEMS["values"])
    large = small | {"shape": (101, 520)}
    with shared_device.in_place_of_cuda():
        options = {"group": anew(group), "split": Slab(0)}
        ones = [device_heat.OnDevice(**problem).step(40) for problem in (small, large)]
        first = device_heat.OnDevice(**small, **options).step(5)
        kind = MemoryError if group.rank == 1 else DistributedError
        full = mock.patch.object(_inbox, "SharedMemory", side_effect=MemoryError("none is left"))
        second = device_heat.OnDevice(**large, **options)
        for _ in range(2):
            with full if group.rank == 1 else nullcontext(), pytest.raises(kind, match="none is"):
                second.step(5)
        first.step(35)
        second.step(40)
        for problem, one, split in zip((small, large), ones, (first, second), strict=True):
            same(options["group"], split, one.u, 0, device_heat.bound_of(problem, one))
            assert split.result().exchange == "peers"


def check_device_that_a_rank_lacks(group, rng):
    """All ranks raise at once, and the group can be used afterwards."""
    if group.size == 1:
        return
    poisson = device_poisson.ranks_poisson.PROBLEMS["values"]
    transport = device_transport.PROBLEMS["values"]
    kind = BackendError if group.rank == 1 else DistributedError
    with shared_device.in_place_of_cuda():
        for solver, problem, options in (
            (HeatADI, (), device_heat.PLANE),
            (FastPoisson, (), poisson),
            (LMSOR, (device_relaxation.flow((20, 20)),), {}),
            (RedBlackSOR, ((20, 20),), {"boundary": 1.0}),
            (GCEIDD, (transport,), device_transport.METHOD),
        ):
            found = {"device": f"cuda:{group.rank}"} | options | {"group": group, "split": Slab(0)}
            with pytest.raises(kind, match="there is no device cuda:1: 1 in all"):
                solver(*problem, **found)


def check_memory_that_a_rank_lacks(group, rng):
    """Memory of a device that is allocated after the options were compared."""
    if group.size == 1:
        return
    kind = MemoryError if group.rank == 1 else DistributedError
    heat = device_heat.fine(device_heat.PROBLEMS["values"])
    poisson = device_poisson.ranks_poisson.PROBLEMS["values"]
    with shared_device.in_place_of_cuda() as device:
        options = {"group": anew(group), "split": Slab(0)}
        for make, call in (
            (lambda: device_heat.OnDevice(**heat, **options), lambda solver: solver.step(5)),
            (lambda: device_poisson.OnDevice(**poisson, **options), lambda one: one.solve(1.0)),
        ):
            solver = make()
            full = mock.patch.object(device, "Buffer", side_effect=MemoryError("none is left"))
            with full if group.rank == 1 else nullcontext(), pytest.raises(kind, match="none is"):
                call(solver)
            call(solver)


def check_heat_goes_on_after_an_error_of_cut_lines(group, rng):
    """A rank that has no memory for the first step with cut lines leaves the field as it was."""
    if group.size == 1:
        return
    problem = device_heat.fine(device_heat.PROBLEMS["values"])
    kind = MemoryError if group.rank == 1 else DistributedError
    with shared_device.in_place_of_cuda():
        options = {"group": anew(group), "split": Slab(0)}
        one = device_heat.OnDevice(**problem).step(5)
        split = device_heat.OnDevice(**problem, **options).step(5)
        before = split.u.copy()
        one.dt = split.dt = 1000 * problem["dt"]
        full = mock.patch.object(state.DeviceState, "hold", side_effect=MemoryError("none is left"))
        with full if group.rank == 1 else nullcontext(), pytest.raises(kind, match="none is"):
            split.step(1)
        np.testing.assert_array_equal(split.u, before)
        same(options["group"], split.step(3), one.step(3).u, 0, 1e-12)


def check_command_on_a_rank_without_devices(group, rng):
    """Rank 0 says at once what rank 1 lacks."""
    if group.size == 1:
        return
    folder = group.objects("test", tempfile.mkdtemp() if group.rank == 0 else None)[0]
    lacks = mock.patch.object(heat.backends, "require", side_effect=BackendError("none is here"))
    errors = io.StringIO()
    device = shared_device.in_place_of_cuda()
    with lacks if group.rank == 1 else nullcontext(), redirect_stderr(errors), device:
        status = main(["run", "heat", "--device", "cuda", "--no-plot", "--output", folder])
    assert status == 1
    assert errors.getvalue().endswith("none is here\n" if group.rank == 0 else "")


def run(group, rng, ways):
    for module in (device_heat, device_poisson, device_relaxation, device_transport):
        for name, check in list(vars(module).items()):
            if name.startswith("check_") and name not in LARGE:
                check(group, rng, ways)


if __name__ == "__main__":
    from run_checks import run_checks

    run_checks(globals())

"""Checks of solvers with a group on devices made of host memory; see test_distributed.py.

Whatever is not a kernel is that of GPUs: fields on the device, parts that are copied, layers that
travel between devices or through the memory of the host, and waiting.
"""

from contextlib import nullcontext
from unittest import mock

import device_heat
import device_poisson
import device_relaxation
import device_transport
import numpy as np
import pytest
import shared_device
from slabs import anew, same

from pysolvers import DistributedError
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
    """A solver keeps its inbox, and another one gets its own, after a rank had too little memory."""
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


def run(group, rng, ways):
    for module in (device_heat, device_poisson, device_relaxation, device_transport):
        for name, check in list(vars(module).items()):
            if name.startswith("check_") and name not in LARGE:
                check(group, rng, ways)


if __name__ == "__main__":
    from run_checks import run_checks

    run_checks(globals())

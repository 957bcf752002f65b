"""Checks of solvers with a group on GPUs, run by every rank of an MPI job; see tests/gpu.

Rank r uses device r, or the devices in turn if there are fewer.
"""

import own_device  # noqa: F401, I001  before CUDA is used
from unittest import mock

import device_heat
import device_poisson
import device_relaxation
import device_transport
from slabs import anew

from pysolvers import _cuda
from pysolvers._errors import BackendError
from pysolvers._runtime.mailboxes import SharedMemory


def check_solvers(group, rng):
    run(group, rng, ("peers", "host"))


def check_solvers_without_shared_memory(group, rng):
    refused = BackendError("devices that cannot use each other's memory")
    with mock.patch.object(SharedMemory, "open", side_effect=refused):
        run(anew(group), rng, ("host",))


def run(group, rng, ways):
    for module in (device_heat, device_poisson, device_relaxation, device_transport):
        for name, check in list(vars(module).items()):
            if name.startswith("check_"):
                check(group, rng, ways)


if __name__ == "__main__":
    from run_checks import run_checks

    assert _cuda.unavailable() is None
    run_checks(globals())

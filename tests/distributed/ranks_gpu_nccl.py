"""Checks of NCCL between GPUs, run by every rank of an MPI job; see tests/gpu.

    ranks_gpu_nccl.py solvers        the solvers with a group, by NCCL alone
    ranks_gpu_nccl.py refused        the default links without shared memory

Rank r uses device r, or the devices in turn if there are fewer. NCCL refuses ranks that share a
device, unless they pretend to be on different hosts, as they do for ``solvers``: the messages then
go through sockets, and an exchange takes some milliseconds.
"""

import own_device  # noqa: I001  before CUDA is used
import os
import sys
import time

import device_heat
import device_transport
import numpy as np
import pytest
import ranks_gpu_solvers
from rank_hooks import failing
from slabs import anew, part_of

from pysolvers import BackendError
from pysolvers.distributed import Slab


def shares_device(group):
    """Whether some ranks use one device."""
    return group.size > len(own_device.NAMES)


def solvers_by_nccl(group, rng):
    if shares_device(group):  # before NCCL reads it
        os.environ["NCCL_HOSTID"] = f"rank {group.rank}"
        os.environ["NCCL_SOCKET_IFNAME"] = "lo"
    ranks_gpu_solvers.run(anew(group, links=("nccl",)), rng, ("nccl",))


def default_links_without_shared_memory(group, rng):
    """NCCL, or the host at once if ranks share a device."""
    if group.size == 1:
        return
    shares = shares_device(group)
    expected = "host" if shares else "nccl"
    no_memory = BackendError("devices that cannot use each other's memory")
    problem = device_heat.fine(device_heat.PROBLEMS["values"])
    one = device_heat.OnDevice(**problem).step(20)
    with failing("shared memory", no_memory):
        repeated = anew(group)
        begun = time.monotonic()
        split = device_heat.OnDevice(**problem, group=repeated, split=Slab(0)).step(20)
        assert time.monotonic() - begun < group.timeout
        assert split.result().exchange == expected
        bound = device_heat.bound_of(problem, one)
        np.testing.assert_allclose(split.u, part_of(group, one.u, 0), rtol=0, atol=bound)
        transport = device_transport.OnDevice(
            device_transport.PROBLEMS["values"],
            **device_transport.METHOD,
            group=repeated,
            split=Slab(0),
        )
        assert transport.step(2).result().exchange == expected
    assert ("nccl" in repeated.reasons) == shares
    if shares:
        with pytest.raises(BackendError, match="'nccl': rank 0: ncclCommInitRank"):
            device_heat.OnDevice(**problem, group=anew(group, links=("nccl",)), split=Slab(0))


if __name__ == "__main__":
    from run_checks import run_checks

    checks = {"solvers": solvers_by_nccl, "refused": default_links_without_shared_memory}
    run_checks({"check_of_nccl": checks[sys.argv[1]]})

"""Checks of GCEIDD with a group on devices, of host memory or GPUs: those of the CPU."""

from unittest import mock

import numpy as np
import pytest
import ranks_transport
import slabs
from ranks_transport import METHOD, PROBLEMS

from pysolvers import DistributedError
from pysolvers.distributed import Slab
from pysolvers.papers.gceidd2022 import GCEIDD

OnDevice = slabs.on_device(GCEIDD)
REFUSED = "exchange"  # the problem with sides that no kernel of a device has
# In the default run; the others differ on the CPU, in what is not a kernel, and run there.
CHECKS = (
    "check_fields_of_one_process",
    "check_the_halo_is_exchanged",
    "check_held_grids_that_grow_alone",
    "check_steps_that_differ",
)


def same(group, solver, expected, axis, bound):
    """Require the field of one process, whose kernels on a device can be others."""
    slabs.same(group, solver, expected, axis, 10 * bound)


def check_transport(group, rng, links):
    offered = {
        name: {
            key: given for key, given in getattr(ranks_transport, name).items() if key != REFUSED
        }
        for name in ("PROBLEMS", "STEADY")
    }
    with mock.patch.multiple(ranks_transport, GCEIDD=OnDevice, same=same, **offered):
        for name, check in list(vars(ranks_transport).items()):
            if name in CHECKS or (
                slabs.EVERY and name.startswith("check_") and not name.endswith("_refused")
            ):
                check(group, np.random.default_rng(1))


def check_transport_of_a_large_field(group, rng, links):
    options = METHOD | {"shape": (300, 517), "strips": 4, "dt": 1e-3}
    for dtype in (np.float64, np.float32):
        one = OnDevice(PROBLEMS["turning"], **options, dtype=dtype).step(20)
        bound = 20 * 8 * float(np.finfo(dtype).eps) * float(np.abs(one.u).max())
        for axis in (0, 1):
            split = OnDevice(
                PROBLEMS["turning"], **options, dtype=dtype, group=group, split=Slab(axis)
            )
            slabs.same(group, split.step(20), one.u, axis, bound)
            assert split.result().exchange in (links if group.size > 1 else ("none",))


def check_what_devices_do_not_offer(group, rng, links):
    given, options = PROBLEMS["values"], {"group": group, "split": Slab(0)}
    with pytest.raises(ValueError, match="kernels must be 'fused'"):
        OnDevice(given, **METHOD, kernels="paper", **options)
    with pytest.raises(ValueError, match="Robin and periodic sides have no kernels on devices"):
        OnDevice(PROBLEMS[REFUSED], **METHOD, **options)
    if group.size > 1:
        device = "cuda" if group.rank else "cpu"
        with pytest.raises(DistributedError, match="device must be the same on all ranks"):
            GCEIDD(given, **METHOD, device=device, **options)

"""Checks of HeatADI(scheme="implicit") with a group on devices made of host memory."""

import device_unsplit
import shared_device
from slabs import anew


def check_unsplit_heat(group, rng):
    with shared_device.in_place_of_cuda():
        for name, check in list(vars(device_unsplit).items()):
            if name.startswith("check_"):
                check(anew(group), rng, ("peers",))

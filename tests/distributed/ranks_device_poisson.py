"""Checks of FastPoisson with a group on devices made of host memory, where lines are cut.

Of three ranks one has no end of a line that is not periodic.
"""

import device_poisson
import shared_device
from slabs import anew


def check_cut_lines(group, rng):
    with shared_device.in_place_of_cuda():
        for name in ("packed_waves", "nodes_in_parts", "mirrored_boxes", "one_or_two_rows"):
            check = getattr(device_poisson, f"check_poisson_of_{name}")
            check(anew(group), rng, ("peers",))

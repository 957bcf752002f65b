"""Checks of FastPoisson with a group on devices made of host memory, where lines are cut.

Of three ranks one has no end of a line that is not periodic.
"""

import device_poisson
import shared_device
from slabs import anew


def check_cut_lines(group, rng):
    with shared_device.in_place_of_cuda():
        device_poisson.check_poisson_of_packed_waves(anew(group), rng, ("peers",))
        device_poisson.check_poisson_of_nodes_in_parts(anew(group), rng, ("peers",))
        device_poisson.check_poisson_of_one_or_two_rows_of_each_rank(anew(group), rng, ("peers",))

"""Checks of solvers with a group on devices made of host memory; see test_distributed.py.

Whatever is not a kernel is that of GPUs: fields on the device, parts that are copied, layers that
travel between devices or through the memory of the host, and waiting.
"""

import device_heat
import device_relaxation
import device_transport
import shared_device
from slabs import anew

# Of one process, with several blocks of the kernels of a GPU.
LARGE = ("check_heat_of_large_fields",)


def check_layers_between_devices(group, rng):
    with shared_device.in_place_of_cuda():
        run(group, rng, ("peers",))


def check_layers_through_the_host(group, rng):
    with shared_device.in_place_of_cuda(is_shared=False):
        run(anew(group), rng, ("host",))


def run(group, rng, ways):
    for module in (device_heat, device_relaxation, device_transport):
        for name, check in list(vars(module).items()):
            if name.startswith("check_") and name not in LARGE:
                check(group, rng, ways)


if __name__ == "__main__":
    from run_checks import run_checks

    run_checks(globals())

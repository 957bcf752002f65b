"""Checks of solvers with a group on devices made of host memory; see test_distributed.py.

Whatever is not a kernel is that of GPUs: fields on the device, parts that are copied, layers that
travel between devices or through the memory of the host, and waiting.
"""

import device_heat
import device_poisson
import device_relaxation
import device_transport
import shared_device
from slabs import anew

from pysolvers.distributed import Slab

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


def run(group, rng, ways):
    for module in (device_heat, device_poisson, device_relaxation, device_transport):
        for name, check in list(vars(module).items()):
            if name.startswith("check_") and name not in LARGE:
                check(group, rng, ways)


if __name__ == "__main__":
    from run_checks import run_checks

    run_checks(globals())

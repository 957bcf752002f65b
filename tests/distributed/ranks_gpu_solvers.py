"""Checks of solvers with a group on GPUs, run by every rank of an MPI job; see tests/gpu.

Rank r uses device r, or the devices in turn if there are fewer.
"""

import own_device  # noqa: F401, I001  before CUDA is used

import device_heat
import device_halo
import device_poisson
import device_relaxation
import device_transport
import device_unsplit
import gpu_libraries
import numpy as np
from rank_hooks import failing
from slabs import anew, part_of

from pysolvers import BackendError, FastPoisson, Neumann
from pysolvers.distributed import Slab

MODULES = device_halo, device_heat, device_poisson, device_relaxation, device_transport


def check_solvers(group, rng):
    run(group, rng, group.links)


def check_solvers_without_shared_memory(group, rng):
    refused = BackendError("devices that cannot use each other's memory")
    with failing("shared memory", refused):
        run(anew(group, links=("peers", "host")), rng, ("host",))


def check_unsplit_heat(group, rng):
    run(group, rng, group.links, (device_unsplit,))


def check_poisson_of_arrays_on_the_device(group, rng):
    problem = {"shape": (66, 70), "spacing": 0.1, "boundary": {"x": "periodic", "y": 1.0}}
    f = rng.standard_normal(problem["shape"])
    expected = FastPoisson(**problem, device="cuda").solve(f)
    for axis in (0, 1):
        solver = FastPoisson(**problem, device="cuda", group=group, split=Slab(axis))
        for kind in gpu_libraries.LIBRARIES.values():
            try:
                library = kind()
            except ImportError:
                continue
            u = library.get(solver.solve(library.array(np.array(part_of(group, f, axis)))))
            np.testing.assert_allclose(u, part_of(group, expected, axis), rtol=0, atol=1e-11)


def check_poisson_of_many_cut_lines(group, rng):
    """A thread eliminates a whole line, and skips the rows that change neither end."""
    cases = (
        ((40, 192, 200), 1.0, "cells", np.float64),
        ((301, 190, 200), Neumann(), "cells", np.float32),
        ((60, 200, 216), "periodic", "cells", np.float64),
        ((31, 70000), 1.0, "cells", np.float64),
        ((65, 192, 191), Neumann(), "nodes", np.float64),
    )
    for shape, boundary, grid, dtype in cases:
        problem = {"shape": shape, "spacing": 0.1, "boundary": boundary, "grid": grid}
        problem |= {"dtype": dtype, "on_incompatible": "ignore", "device": "cuda"}
        f = rng.standard_normal(shape).astype(dtype)
        expected = FastPoisson(**problem).solve(f)
        u = FastPoisson(**problem, group=group, split=Slab(0)).solve(part_of(group, f, 0))
        most = 1e3 * np.finfo(dtype).eps * np.abs(expected).max()
        np.testing.assert_allclose(u, part_of(group, expected, 0), rtol=0, atol=most)


def run(group, rng, links, modules=MODULES):
    for module in modules:
        for name, check in list(vars(module).items()):
            if name.startswith("check_"):
                check(group, rng, links)


if __name__ == "__main__":
    from run_checks import run_checks

    run_checks(globals())

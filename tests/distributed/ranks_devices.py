"""Checks of ranks that see all devices of a host, run by every rank of an MPI job; see tests/gpu.

``device="cuda"`` is the device of the number of the rank; arrays can be on any device.
"""

import cupy
import numpy as np
import oracle
from ranks_solve import cut, joined
from slabs import part_of

import pysolvers
from pysolvers import GCEIDD, LMSOR, FastPoisson, HeatADI, RedBlackSOR
from pysolvers.distributed import Slab

SHAPE = (6, 301)


def used(ordinal):
    """Return the bytes in use on a device."""
    with cupy.cuda.Device(ordinal):
        free, all_bytes = cupy.cuda.runtime.memGetInfo()
    return all_bytes - free


def check_arrays_of_the_host(group, rng):
    operands = oracle.dominant(rng, SHAPE)
    expected = pysolvers.solve_tridiagonal(*operands)
    for along in (0, 1):
        parts = [cut(group, a, SHAPE, along) for a in operands]
        options = {"device": "cuda", "group": group, "split": Slab(along)}
        x, info = pysolvers.solve_tridiagonal(*parts, return_info=True, **options)
        assert info.device == group.rank
        assert info.exchange == ("peers" if along else "none")
        np.testing.assert_allclose(joined(group, x, along), expected, rtol=1e-10, atol=1e-10)
        factor = pysolvers.factor_tridiagonal(*parts[:3], **options)
        assert factor.info.device == group.rank
        x = factor.solve(parts[3])
        np.testing.assert_allclose(joined(group, x, along), expected, rtol=1e-10, atol=1e-10)


def check_arrays_of_any_device(group, rng):
    """Also where another device is current, and in repeated calls."""
    operands = oracle.dominant(rng, SHAPE)
    expected = pysolvers.solve_tridiagonal(*operands)
    for ordinal in (group.rank, group.size - 1 - group.rank):
        for current in range(group.size):
            with cupy.cuda.Device(ordinal):
                parts = [cupy.asarray(np.array(cut(group, a, SHAPE, 1))) for a in operands]
                cupy.cuda.Device().synchronize()
            with cupy.cuda.Device(current):
                for device in (None, "cuda", f"cuda:{ordinal}"):
                    for _ in range(3):
                        x = pysolvers.solve_tridiagonal(
                            *parts, device=device, group=group, split=Slab(1)
                        )
                        assert x.device.id == ordinal
                        whole = joined(group, x.get(), 1)
                        np.testing.assert_allclose(whole, expected, rtol=1e-10, atol=1e-10)


def check_solvers(group, rng):
    """Each solver has the field of one device; the fields lie on all devices."""
    large, options = (2048, 2048), {"device": "cuda", "group": group, "split": Slab(0)}
    problem = pysolvers.SteadyConvectionDiffusion(
        1.0, 2.0, shape=(301, 301), extent=((0.0, 1.0), (0.0, 1.0)), boundary=lambda x, y: x * y
    )
    transport = pysolvers.ConvectionDiffusion(
        velocity=(0.8, 0.4),
        diffusion=1e-3,
        initial=lambda x, y: np.sin(np.pi * x) * np.sin(np.pi * y),
        extent=((0.0, 1.0), (0.0, 1.0)),
        boundary=0.0,
    )
    cases = {
        "HeatADI": lambda **o: HeatADI(large, 1.0, 0.5, initial=1.0, boundary=0.0, **o).step(40),
        "LMSOR": lambda **o: LMSOR(problem, **o).iterate(40),
        "RedBlackSOR": lambda **o: RedBlackSOR((301, 301), boundary=1.0, spacing=1.0, **o).iterate(
            40
        ),
        "GCEIDD": lambda **o: GCEIDD(transport, shape=(513, 513), dt=1e-3, strips=32, **o).step(20),
    }
    for name, make in cases.items():
        before = [used(k) for k in range(group.size)]
        group.objects("test", None)
        solver = make(**options)
        group.objects("test", None)
        if name == "HeatADI":
            assert all(used(k) - start > 1 << 23 for k, start in enumerate(before))
        group.objects("test", None)
        assert solver.result().exchange == "peers", name
        expected = make(device=f"cuda:{group.rank}").u
        most = 1e-11 * np.abs(expected).max()
        np.testing.assert_allclose(solver.u, part_of(group, expected, 0), rtol=0, atol=most)


def check_poisson_of_arrays_on_the_own_device(group, rng):
    problem = {"shape": (66, 70), "spacing": 0.1, "boundary": {"x": "periodic", "y": 1.0}}
    f = rng.standard_normal(problem["shape"])
    expected = FastPoisson(**problem).solve(f)
    for axis in (0, 1):
        solver = FastPoisson(**problem, device="cuda", group=group, split=Slab(axis))
        with cupy.cuda.Device(group.rank):
            own = cupy.asarray(np.array(part_of(group, f, axis)))
        u = solver.solve(own)
        assert u.device.id == group.rank
        np.testing.assert_allclose(u.get(), part_of(group, expected, axis), rtol=0, atol=1e-11)


if __name__ == "__main__":
    from run_checks import run_checks

    run_checks(globals())

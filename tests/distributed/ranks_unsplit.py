"""Checks of HeatADI(scheme="implicit") on ranks: the bits of one process, for any division."""

import numpy as np
from slabs import dividing, part_of
from unsplit_cases import UNSPLIT

from pysolvers import HeatADI, Neumann, Robin
from pysolvers.distributed import Slab


def equal(group, solver, expected, axis):
    """Require the bits of one process."""
    np.testing.assert_array_equal(solver.u, part_of(group, expected, axis))


def check_unsplit_steps_have_the_bits_of_one_process(group, rng):
    unsplit_steps(group)
    for nodes in (0, 300):  # all levels are divided that can be, or the first ones
        with dividing(nodes):
            unsplit_steps(group)


def check_axes_of_few_nodes(group, rng):
    """Ranks without a line through the rows, two rows per rank, and axes that are not coarser."""
    k = np.where(np.add.outer(np.arange(33), np.arange(33)) % 33 < 9, 1e3, 1.0)
    values = {"x-": 1.0, "x+": 0.0, "y": Neumann()}
    fluxes = {"x": Neumann(1.0), "y-": Robin(1.0, 2.0), "y+": 0.0}
    for shape in (
        (33, 3),
        (3, 33),
        (max(3, 2 * group.size), 7),
        (2 * group.size + 1, 16),
        (8, 3, 9),
    ):
        for sides in (values, fluxes):
            sides = sides | ({"z": "periodic"} if len(shape) == 3 else {})
            problem = {"shape": shape, "spacing": 1.0, "scheme": "implicit", "boundary": sides}
            whole = np.ones(shape) * k[tuple(slice(n) for n in shape[-2:])]
            for dt in (0.01, 30.0):
                one = HeatADI(**problem, diffusivity=whole, dt=dt).step(3)
                for axis in (a for a, n in enumerate(shape) if n >= group.size):
                    problem |= {"dt": dt, "diffusivity": part_of(group, whole, axis)}
                    with dividing(0):
                        split = HeatADI(**problem, group=group, split=Slab(axis)).step(3)
                    equal(group, split, one.u, axis)
                del problem["dt"], problem["diffusivity"]


def unsplit_steps(group):
    for name, problem in UNSPLIT.items():
        one = HeatADI(**problem).step(2)
        assert one.result().scheme == "implicit", name
        one.dt = problem["dt"] / 3
        one.step(1)
        steady = one.solve_steady() if name not in ("insulated", "periodic") else None
        for axis in range(len(problem["shape"])):
            split = HeatADI(**problem, group=group, split=Slab(axis)).step(1).step(1)
            split.dt = problem["dt"] / 3
            split.step(1)
            equal(group, split, one.u, axis)
            assert split.result().iterations == one.result().iterations > 0, name
            assert repr(split) == repr(one)
            if steady is not None:
                found = split.solve_steady()
                equal(group, found, steady.u, axis)
                assert found.iterations == steady.iterations
                assert split.result().iterations == one.result().iterations

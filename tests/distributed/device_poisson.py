"""Checks of FastPoisson with a group on devices, of host memory or GPUs: those of the CPU."""

import itertools
from unittest import mock

import numpy as np
import pytest
import ranks_poisson
from poisson_pairs import set_least_in_two_parts, set_mirrored
from slabs import on_device, part_of

from pysolvers import DistributedError, FastPoisson, Neumann
from pysolvers.distributed import Slab

OnDevice = on_device(FastPoisson)


def check_poisson(group, rng, links):
    with mock.patch.object(ranks_poisson, "FastPoisson", OnDevice):
        ranks_poisson.check_fields_of_one_process(group, np.random.default_rng(1))
        ranks_poisson.check_thin_lines(group, rng)
        ranks_poisson.check_functions_and_stretched_coordinates(group, rng)
        ranks_poisson.check_eigenvectors_along_a_whole_axis(group, rng)


def check_poisson_of_packed_waves(group, rng, links):
    """Cells and periodic axes, with lines along the first axis; of even and of odd lengths."""
    sides = {"values": 1.0, "closed": Neumann(), "periodic": "periodic"}
    cases = (
        ((9, 12), "values", "values"),
        ((13, 11), "closed", "closed"),
        ((9, 12), "periodic", "values"),
        ((9, 12, 10), "values", "closed"),
        ((11, 9, 8), "closed", "closed"),
        ((9, 10, 11), "periodic", "periodic"),
    )
    for number, (shape, others, last) in enumerate(cases):
        names = "xyz"[: len(shape)]
        boundary = dict.fromkeys(names, sides[others]) | {names[-1]: sides[last]}
        dtype, bound = ((np.float64, 2e-13), (np.float32, 1e-4))[number % 2]
        problem = {"shape": shape, "spacing": 0.1, "boundary": boundary, "grid": "cells"}
        problem |= {"dtype": dtype, "on_incompatible": "ignore"}
        f = rng.standard_normal(shape).astype(dtype)
        f -= f.mean()
        expected = OnDevice(**problem).solve(f)
        solver = OnDevice(**problem, group=group, split=Slab(0))
        one = group.size == 1
        assert solver.exchange == ("none" if one else links[0])
        assert solver._device._packed is not None
        cut = f"cut along {names[::-1][0]}, rank {group.rank} of {group.size}, exchange {links[0]}>"
        assert one or repr(solver).endswith(cut)
        u = solver.solve(part_of(group, f, 0))
        most = bound * np.abs(expected).max()
        np.testing.assert_allclose(u, part_of(group, expected, 0), rtol=0, atol=most)


def check_poisson_of_nodes_in_parts(group, rng, links):
    """The intervals of nodes are halved, and the lines of each part are cut."""
    for least in (0, 1 << 40):
        for dtype, side, intervals in ((np.float64, 1.0, 24), (np.float32, Neumann(), 20)):
            boundary = {"x": side, "y": Neumann()}
            problem = {"shape": (13, intervals + 1), "spacing": 0.1, "boundary": boundary}
            problem |= {"dtype": dtype, "on_incompatible": "ignore"}
            f = rng.standard_normal(problem["shape"]).astype(dtype)
            with pytest.MonkeyPatch.context() as patch:
                set_least_in_two_parts(patch, least)
                expected = OnDevice(**problem).solve(f)
                solver = OnDevice(**problem, group=group, split=Slab(0))
                u = solver.solve(part_of(group, f, 0))
            assert solver._device._packed.has_branches == (least == 0)
            most = 1e3 * np.finfo(dtype).eps * np.abs(expected).max()
            np.testing.assert_allclose(u, part_of(group, expected, 0), rtol=0, atol=most)


def check_poisson_of_mirrored_boxes(group, rng, links):
    """Products of both other axes, also with transforms, and the constant wave."""
    cases = itertools.product(
        [(11, 9, 8), (11, 8, 9), (11, 9, 17)], [(1.0, 0.0), (Neumann(), 0.0), (Neumann(), 0.5)]
    )
    for shape, (side, helmholtz) in cases:
        problem = {"shape": shape, "spacing": 0.3, "boundary": side, "helmholtz": helmholtz}
        problem["on_incompatible"] = "ignore"
        f = rng.standard_normal(problem["shape"])
        with pytest.MonkeyPatch.context() as patch:
            set_mirrored(patch)
            expected = OnDevice(**problem).solve(f)
            solver = OnDevice(**problem, group=group, split=Slab(0))
            u = solver.solve(part_of(group, f, 0))
        assert solver.methods == {"x": "eigenvectors", "y": "eigenvectors", "z": "lines"}
        assert solver._device._packed is not None
        most = 1e-12 * np.abs(expected).max()
        np.testing.assert_allclose(u, part_of(group, expected, 0), rtol=0, atol=most)


def check_poisson_of_one_or_two_rows(group, rng, links):
    """There is nothing between the ends of a part, or one row."""
    for rows in (1, 2):
        shape = rows * group.size, 7
        for lines in (Neumann(), 1.0) + (("periodic",) if shape[0] > 1 else ()):
            problem = {"shape": shape, "spacing": 0.5, "boundary": {"y": lines, "x": 2.0}}
            problem |= {"grid": "cells", "dtype": (np.float64, np.complex128)[rows - 1]}
            f = rng.standard_normal(shape).astype(problem["dtype"])
            expected = OnDevice(**problem).solve(f)
            solver = OnDevice(**problem, group=group, split=Slab(0))
            u = solver.solve(part_of(group, f, 0))
            np.testing.assert_allclose(u, part_of(group, expected, 0), rtol=0, atol=1e-12)


def check_poisson_of_large_fields(group, rng, links):
    for shape, dtype in (((300, 257), np.float64), ((65, 70, 33), np.float32)):
        problem = {"shape": shape, "spacing": 0.1, "dtype": dtype}
        for boundary in ({"x": 1.0, "y": "periodic", "z": 0.0}, {"x": "periodic", "y": 1.0}):
            sides = {"z": "periodic"} | boundary
            own = {name: one for name, one in sides.items() if name in "xyz"[: len(shape)]}
            f = rng.standard_normal(shape).astype(dtype)
            expected = OnDevice(**problem, boundary=own).solve(f)
            # The condition number of the Laplacian is about the square of the number of nodes.
            bound = max(shape) ** 2 * float(np.finfo(dtype).eps) * float(np.abs(expected).max())
            for axis in range(len(shape)):
                solver = OnDevice(**problem, boundary=own, group=group, split=Slab(axis))
                u = solver.solve(part_of(group, f, axis))
                np.testing.assert_allclose(u, part_of(group, expected, axis), rtol=0, atol=bound)
                repeated = u.copy()
                solver.solve(part_of(group, f, axis).copy(), out=repeated)
                np.testing.assert_array_equal(repeated, u)


def check_poisson_of_ranks_that_differ(group, rng, links):
    if group.size == 1:
        return
    problem = ranks_poisson.PROBLEMS["values"] | {"group": group, "split": Slab(0)}
    solver = OnDevice(**problem)
    kind = ValueError if group.rank == 1 else DistributedError
    with pytest.raises(kind, match=r"f must broadcast|rank 1 raised"):
        solver.solve(np.ones((99, 15) if group.rank == 1 else (1, 15)))
    device = "cuda" if group.rank else "cpu"
    with pytest.raises(DistributedError, match="device must be the same on all ranks"):
        FastPoisson(**problem, device=device)

"""Checks of FastPoisson on slabs, run by every rank of an MPI job; see test_distributed.py."""

import warnings

import numpy as np
import pytest
from slabs import chosen, part_of

from pysolvers import DistributedError, FastPoisson, Neumann, Robin, SingularSystemWarning
from pysolvers.distributed import Slab

PLANE = {"shape": (18, 15), "extent": ((0.0, 2.0), (0.0, 1.0))}
BOX = {"shape": (9, 12, 10), "extent": ((0.0, 2.0), (0.0, 1.0), (0.0, 1.5))}
EDGES = np.linspace(0, 1, 16) ** 1.5

PROBLEMS = {
    "values": PLANE
    | {"boundary": {"x-": lambda y: y, "x+": 2.0, "y-": lambda x: np.cos(x), "y+": -1.0}},
    "cells": PLANE
    | {"boundary": {"x": 1.0, "y-": Neumann(2.0), "y+": lambda x: x}, "grid": "cells"},
    "periodic": PLANE | {"boundary": {"x": "periodic", "y": Neumann(lambda x: np.sin(np.pi * x))}},
    "periodic lines": PLANE
    | {"boundary": {"x": lambda y: np.sin(2 * np.pi * y), "y": "periodic"}, "grid": "cells"},
    "singular": PLANE | {"boundary": Neumann(), "on_incompatible": "ignore"},
    "singular and periodic": PLANE
    | {"boundary": "periodic", "grid": "cells", "on_incompatible": "ignore"},
    "box": BOX | {"boundary": {"x": 1.0, "y": Neumann(1.0), "z-": lambda x, y: x * y, "z+": 0.0}},
    "periodic box": BOX | {"boundary": {"x": "periodic", "y": "periodic", "z": 1.0}},
    "stretched": PLANE
    | {"extent": None, "spacing": (EDGES[:15] + EDGES[1:], np.linspace(0, 1, 18) ** 2)}
    | {"boundary": {"x": 1.0, "y-": Robin(2.0, 0.5), "y+": 0.0}, "helmholtz": 0.3},
    "stretched box": BOX
    | {"extent": None, "spacing": (np.linspace(0, 1, 11) ** 2, EDGES[:13], np.linspace(0, 2, 10))}
    | {"boundary": {"x": Neumann(), "y": Robin(1.0, 2.0), "z": "periodic"}, "grid": "cells"},
    "closed": PLANE
    | {"extent": None, "spacing": (np.linspace(0, 1, 16) ** 2, np.linspace(0, 1, 19) ** 1.4)}
    | {"boundary": Neumann(), "grid": "cells", "on_incompatible": "ignore"},
    "pipe": PLANE
    | {"boundary": {"x+": 1.0, "y": Neumann(0.2)}, "geometry": "cylinder", "grid": "cells"},
    "line": {"shape": (40,), "spacing": 0.1, "boundary": {"x-": 1.0, "x+": Neumann(2.0)}},
}


def check_fields_of_one_process(group, rng):
    for number, (name, problem) in enumerate(PROBLEMS.items()):
        for dtype, bound in chosen(number, ((np.float64, 2e-13), (np.complex64, 3e-4))):
            problem = problem | {"dtype": dtype}
            f = rng.standard_normal(problem["shape"]).astype(dtype)
            expected = FastPoisson(**problem).solve(f)
            size = np.abs(expected).max()
            batch = np.stack([f, 2 * f])
            for axis in chosen(number, range(f.ndim)):
                solver = FastPoisson(**problem, group=group, split=Slab(axis))
                u = solver.solve(part_of(group, f, axis))
                wanted = part_of(group, expected, axis)
                np.testing.assert_allclose(u, wanted, rtol=0, atol=bound * size, err_msg=name)
                if number % 3 == 0:
                    both = solver.solve(part_of(group, batch, axis + 1))
                    np.testing.assert_allclose(both[0], u, rtol=0, atol=bound * size)


def check_thin_lines(group, rng):
    """The other axis has long waves: their small eigenvalues must not be lost in 1 / h^2."""
    shape, spacing = (24, 40), (1e-3, 1e3)
    theta = np.pi / shape[0]
    eigenvalue = -((2 / spacing[1] * np.sin(theta / 2)) ** 2)
    wave = np.cos(theta * (np.arange(shape[0]) + 0.5))[:, None] * np.ones(shape[1])
    for boundary in (Neumann(), {"x": "periodic", "y": Neumann()}):
        for dtype in (np.float32, np.float64, np.complex64):
            solver = FastPoisson(
                shape,
                spacing,
                boundary=boundary,
                grid="cells",
                dtype=dtype,
                group=group,
                split=Slab(-1),
            )
            u = solver.solve(part_of(group, wave, 1).astype(dtype)) * eigenvalue
            error = np.abs(u - part_of(group, wave, 1)).max()
            assert error <= 20 * np.finfo(dtype).eps, (boundary, dtype, error)


STRETCHED = {
    "shape": (11, 16),
    "spacing": (EDGES, 0.1),
    "boundary": {"x": lambda y: y, "y-": lambda x: x, "y+": Neumann(1.0)},
}


def right_side(x, y):
    return np.exp(x) * np.sin(5 * y)


def check_functions_and_stretched_coordinates(group, rng):
    problem, f = STRETCHED, right_side
    one = FastPoisson(**problem)
    solver = FastPoisson(**problem, group=group, split=Slab(-1))
    np.testing.assert_array_equal(solver.x, part_of(group, one.x, 0))
    given = {"y-": lambda x: 1 - x}
    for boundary in (None, given):
        u = solver.solve(f, boundary=boundary)
        expected = part_of(group, one.solve(f, boundary=boundary), 1)
        np.testing.assert_allclose(u, expected, rtol=0, atol=1e-12)


def check_eigenvectors_along_a_whole_axis(group, rng):
    problem, f = STRETCHED, right_side
    one = FastPoisson(**problem)
    whole = FastPoisson(**problem, group=group, split=Slab(0))
    assert whole.methods == {"x": "eigenvectors", "y": "lines"}
    u = whole.solve(f)
    np.testing.assert_allclose(u, part_of(group, one.solve(f), 0), rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="helmholtz must be at least 0 with a group"):
        FastPoisson(**problem, helmholtz=-1.0, group=group, split=Slab(0))
    with pytest.raises(ValueError, match="with split the axis y, and no other, must have 'lines'"):
        FastPoisson(**problem, methods={"x": "lines"}, group=group, split=Slab(0))


def check_reports_on_all_ranks(group, rng):
    solver = FastPoisson(**PLANE, boundary=Neumann(), group=group, split=Slab(0))
    with pytest.warns(SingularSystemWarning, match="mean of 1 times"):
        solver.solve(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solver.solve(part_of(group, np.cos(np.pi * np.arange(18) / 17)[:, None], 0))
    if group.size > 1:
        kind = ValueError if group.rank == 1 else DistributedError
        with pytest.raises(kind, match=r"f must broadcast|rank 1 raised"):
            solver.solve(np.ones((99, 15) if group.rank == 1 else (1, 15)))

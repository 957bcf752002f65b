"""Parts of fields that the ranks of a job hold, for the checks of solvers on slabs."""

import sys
from unittest.mock import patch

import numpy as np

from pysolvers.distributed import Group, Slab
from pysolvers.heat import _row_levels, _unsplit_slab

# The slow runs take all combinations of the cases of a check, the others each case once.
EVERY = "every" in sys.argv[1:]


def chosen(number, choices):
    """Return the choices for one of several cases: one of them in turn, or all in the slow runs."""
    return choices if EVERY else choices[number % len(choices) :][:1]


def few(choices, step):
    """Return each `step`-th of some cases, or all in the slow runs."""
    return [*choices] if EVERY else [*choices][::step]


def part_of(group, field, axis):
    """Return the part of an array of the whole grid that this rank holds."""
    held = Slab(axis).part(field.shape[axis], group.rank, group.size)
    return field[(slice(None),) * axis + (held,)]


def dividing(nodes):
    """Return a context in which levels of more nodes are divided over the ranks."""
    return patch.multiple(_row_levels, _GATHERED=nodes, _GATHERED_BY_FEW=nodes)


def holding(nodes):
    """Return a context in which devices hold a halo, not all nodes, of fields of more nodes."""
    return patch.object(_unsplit_slab, "_HELD_BY_ALL", nodes)


def same(group, solver, expected, axis, bound):
    """Require the field of one process, up to rounding errors of data of size 1."""
    np.testing.assert_allclose(solver.u, part_of(group, expected, axis), rtol=0, atol=bound)
    whole = solver.gather()
    assert (whole is None) == (group.rank > 0)
    if whole is not None:
        np.testing.assert_array_equal(part_of(group, whole, axis), solver.u)


def on_device(solver, device="cuda"):
    """Return a class of solvers that run on a device."""

    class OnDevice(solver):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options | {"device": device})

    return OnDevice


def recording(solver):
    """Return a class of relaxations that records the calls of the backend in `calls`.

    Each has the iterations that were made before it, the number of its iterations and the number
    between two that it measures.
    """

    class Recording(solver):
        calls = ()

        def _call(self, count, stop, made):
            before = sum(number for _, number, _ in self.calls)
            self.calls = (*self.calls, (before, count, stop[2]))
            return super()._call(count, stop, made)

    return Recording


def calls_of(measured, depth):
    """Return the calls that make iterations up to the last of those that are measured.

    They end at measured iterations, and at exchanges after each `depth` iterations.
    """
    ends = sorted({*measured, *range(depth, measured[-1], depth)})
    return tuple(
        (before, end - before, end - before if end in measured else 0)
        for before, end in zip([0, *ends], ends, strict=False)
    )


def anew(group, **options):
    """Return a group of the same ranks that has seen no devices."""
    options = {"timeout": group.timeout} | options
    if group.size == 1:
        return Group(**options)
    from mpi4py import MPI

    return Group(MPI.COMM_WORLD, **options)

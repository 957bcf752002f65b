"""Checks of LMSOR and RedBlackSOR with a group on devices, of host memory or GPUs."""

import numpy as np
import pytest
from ranks_relaxation import MEASURES, SPLIT, flow
from slabs import calls_of, chosen, on_device, part_of, recording

from pysolvers import ConvergenceError, DistributedError, Neumann, RedBlackSOR, Robin
from pysolvers.papers.lmsor2012 import LMSOR

BOUNDARY = {"x-": lambda y: y, "x+": Neumann(0.3), "y-": Robin(2.0, 1.0), "y+": lambda x: x}
EXTENT = ((0.0, 1.0), (0.0, 1.5))


def lmsor(shape, **options):
    return on_device(LMSOR)(flow(shape), **options)


def plate(shape, **options):
    return on_device(RedBlackSOR)(shape, extent=EXTENT, boundary=BOUNDARY, **options)


def check_relaxations(group, rng, links):
    """From parts that have rows for one iteration between two exchanges to several of them."""
    wave = {"initial": lambda x, y: np.sin(9 * x * y)}
    cases = (
        (lmsor, wave),
        (lmsor, wave | {"kernel": 1, "dtype": np.float32}),
        (lmsor, {"relaxation": 1.4, "kernel": 2}),
        (plate, wave | {"source": lambda x, y: x - y}),
        (plate, wave | {"omega": 1.5, "dtype": np.float32}),
    )
    for number, (make, options) in enumerate(cases):
        eps = np.finfo(options.get("dtype", np.float64)).eps
        for ny in chosen(number, (12, 17, 45, 150)):
            one = make((ny, 71), **options).iterate(95)
            split = make((ny, 71), **options, group=group, split=SPLIT)
            split.iterate(3).iterate(16).iterate(1).iterate(75)
            bound = 500 * eps * np.abs(one.u).max()
            np.testing.assert_allclose(split.u, part_of(group, one.u, 0), rtol=0, atol=bound)
            np.testing.assert_array_equal(split.y, part_of(group, one.y, 0))
            whole = split.gather()
            if whole is not None:
                np.testing.assert_allclose(whole, one.u, rtol=0, atol=bound)


def check_counts_of_relaxations(group, rng, links):
    cases = (
        (lmsor, (17, 15), 3),
        (plate, (45, 30), 3),
        (lmsor, (150, 30), 5),
        (plate, (150, 30), 49),
    )
    for number, (make, shape, every) in enumerate(cases):
        for criterion, norm in chosen(number, MEASURES):
            options = {"criterion": criterion, "norm": norm, "check_every": every}
            tol = 1e3 if criterion == "solution" else 1e-7
            expected = make(shape).solve(tol, **options)
            solver = make(shape, group=group, split=SPLIT)
            link = solver.result().exchange  # before the first exchange
            found = solver.solve(tol, **options)
            assert found.exchange == link
            assert found.iterations == expected.iterations
            assert found.backend == "cuda"
            assert found.exchange in (links if group.size > 1 else ("none",))
            measures = found.history.measure, expected.history.measure
            np.testing.assert_allclose(*measures, rtol=1e-6)


def check_calls_of_relaxations(group, rng, links):
    """Calls end at exchanges, and measure what is asked for."""
    for ny in (17, 150):
        split = on_device(recording(LMSOR))(flow((ny, 71)), group=group, split=SPLIT)
        depth = split._rows.steps
        assert depth == min(32, (ny // group.size - 1) // 2) if depth < 8 else depth % 8 == 0
        split.iterate(3).iterate(40)
        with pytest.raises(ConvergenceError):
            split.solve(0, max_iterations=70, check_every=25)
        assert split.calls == calls_of([3, 43, 68, 93, 113], depth)


def check_relaxations_of_ranks_that_differ(group, rng, links):
    if group.size == 1:
        return
    for solver, first in ((LMSOR, flow((20, 20))), (RedBlackSOR, (20, 20))):
        options = {"boundary": 1.0, "spacing": 1.0} if solver is RedBlackSOR else {}
        options["device"] = "cuda" if group.rank else "cpu"
        with pytest.raises(DistributedError, match="device must be the same on all ranks"):
            solver(first, **options, group=group, split=SPLIT)

"""Checks of LMSOR on slabs, run by every rank of an MPI job; see test_distributed.py."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from slabs import calls_of, chosen, few, part_of, recording

from pysolvers import (
    ConvergenceError,
    DistributedError,
    Neumann,
    Robin,
    SteadyConvectionDiffusion,
)
from pysolvers.distributed import Slab
from pysolvers.papers.lmsor2012 import LMSOR
from pysolvers.papers.survey2014 import RedBlackSOR

SPLIT = Slab(0)


def flow(shape, **options):
    """A problem with convection that turns, so that every row has its own parameters."""
    return SteadyConvectionDiffusion(
        lambda x, y: 30 * (2 * y - 1) * (x + 1),
        lambda x, y: -20 * (2 * x - 1),
        shape=shape,
        extent=((0.0, 1.0), (0.0, 1.5)),
        source=lambda x, y: x - y,
        **({"differences": "central", "boundary": lambda x, y: x * y} | options),
    )


def check_bits_of_one_process(group, rng):
    for place, ny in enumerate((12, 15, 17, 30)):
        for number, kernel in enumerate(("auto", 1, 2), place):
            for dtype in chosen(number, (np.float64, np.float32)):
                options = {"kernel": kernel, "dtype": dtype}
                options["initial"] = lambda x, y: np.sin(9 * x * y)
                one = LMSOR(flow((ny, 14)), **options).iterate(25)
                split = LMSOR(flow((ny, 14)), **options, group=group, split=SPLIT)
                split.iterate(10).iterate(15)
                np.testing.assert_array_equal(split.u, part_of(group, one.u, 0))
                np.testing.assert_array_equal(split.y, part_of(group, one.y, 0))
                whole = split.gather()
                assert (whole is None) == (group.rank > 0)
                if whole is not None:
                    np.testing.assert_array_equal(whole, one.u)


def check_sides(group, rng):
    """Nodes on sides are unknowns; x is periodic, or has an outflow."""
    for ny in (12, 15):
        for along in ({"x": "periodic"}, {"x-": lambda y: y, "x+": Neumann()}):
            boundary = {**along, "y-": Robin(2.0, lambda x: x), "y+": Neumann(0.3)}
            problem = flow((ny, 14), boundary=boundary)
            one = LMSOR(problem).iterate(25)
            split = LMSOR(problem, group=group, split=SPLIT).iterate(25)
            np.testing.assert_array_equal(split.u, part_of(group, one.u, 0))
            one.u, split.u = one.u + 1, split.u + 1
            expected = one.iterate(3).u
            np.testing.assert_array_equal(split.iterate(3).u, part_of(group, expected, 0))
    with pytest.raises(ValueError, match="the axis y of the rows must not be periodic"):
        LMSOR(flow((12, 14), boundary={"x": 0.0, "y": "periodic"}), group=group, split=SPLIT)


MEASURES = (("residual", "max"), ("residual", "l2"), ("change", "l2"), ("solution", "max"))


def check_counts_and_measures_of_one_process(group, rng):
    separable = SteadyConvectionDiffusion(
        lambda x: 20 * x,
        lambda y: 5.0 - y,
        shape=(18, 13),
        extent=((0, 1), (0, 1)),
        boundary=1.0,
        differences="central",
    )
    for place, problem in enumerate(
        (flow((17, 15)), flow((17, 15), differences="upwind"), separable)
    ):
        for number, relaxation in enumerate(("lmsor", "lsor", 1.4), place):
            for criterion, norm in chosen(number, MEASURES):
                options = {"criterion": criterion, "norm": norm, "check_every": 7}
                tol = 0.9 if criterion == "solution" else 1e-7
                one = LMSOR(problem, relaxation=relaxation)
                split = LMSOR(problem, relaxation=relaxation, group=group, split=SPLIT)
                try:
                    expected = one.solve(tol, max_iterations=300, **options)
                except ConvergenceError as error:
                    with pytest.raises(ConvergenceError):
                        split.solve(tol, max_iterations=300, **options)
                    expected = error.result
                    found = split.result()
                else:
                    found = split.solve(tol, max_iterations=300, **options)
                assert found.iterations == expected.iterations
                assert_same_measures(found, expected)
                np.testing.assert_array_equal(found.u, part_of(group, expected.u, 0))


def assert_same_measures(found, expected):
    """Maxima have the same bits; sums of squares have another order."""
    np.testing.assert_array_equal(found.history.iteration, expected.history.iteration)
    bound = 0 if expected.norm == "max" else 1e-12
    np.testing.assert_allclose(found.history.measure, expected.history.measure, rtol=bound)


def check_stops_of_one_process(group, rng):
    """At the first measured iteration that satisfies the tolerance, for many tolerances."""
    problem = flow((17, 15))
    for norm in ("max", "l2"):
        with pytest.raises(ConvergenceError) as error:
            LMSOR(problem).solve(0, norm=norm, max_iterations=60)
        history = error.value.result.history.measure
        for every in (1, 4):
            for place in (3, 10, 11, 25):
                # Above the measure by more than the order of summation changes it.
                tol = history[place] * (1 if norm == "max" else 1 + 1e-12)
                options = {"norm": norm, "check_every": every}
                expected = LMSOR(problem).solve(tol, **options)
                found = LMSOR(problem, group=group, split=SPLIT).solve(tol, **options)
                assert expected.iterations >= place + 1
                assert found.iterations == expected.iterations
                assert_same_measures(found, expected)
                np.testing.assert_array_equal(found.u, part_of(group, expected.u, 0))


def check_only_what_is_asked_for_is_measured(group, rng):
    split = recording(LMSOR)(flow((17, 15)), group=group, split=SPLIT)
    split.iterate(5).iterate(2)
    with pytest.raises(ConvergenceError):
        split.solve(0, max_iterations=8, check_every=3)
    assert split.calls == calls_of([5, 7, 10, 13, 15], 1)


def check_plates(group, rng):
    boundary = {"x-": lambda y: y, "x+": Neumann(0.3), "y-": Robin(2.0, 1.0), "y+": lambda x: x}
    extent = ((0.0, 1.0), (0.0, 1.5))
    for ny in few((12, 13, 15, 17, 30), 2):
        for options in (
            {"source": lambda x, y: x - y},
            {"omega": 1.5, "variant": "split"},
            {"dtype": np.float32},
        ):
            problem = {"shape": (ny, 14), "extent": extent, "boundary": boundary, **options}
            one = RedBlackSOR(**problem).iterate(25)
            split = RedBlackSOR(**problem, group=group, split=SPLIT).iterate(25)
            np.testing.assert_array_equal(split.u, part_of(group, one.u, 0))
            np.testing.assert_array_equal(split.y, part_of(group, one.y, 0))
            whole = split.gather()
            if whole is not None:
                np.testing.assert_array_equal(whole, one.u)
        for criterion, norm in MEASURES if ny in (13, 30) else ():
            options = {"criterion": criterion, "norm": norm, "check_every": 2}
            tol = 1e3 if criterion == "solution" else 1e-8
            problem = {"shape": (ny, 14), "extent": extent, "boundary": boundary}
            expected = RedBlackSOR(**problem).solve(tol, **options)
            found = RedBlackSOR(**problem, group=group, split=SPLIT).solve(tol, **options)
            assert found.iterations == expected.iterations
            assert_same_measures(found, expected)


def check_states_continue_with_any_number_of_ranks(group, rng):
    boundary = {"x": 0.5, "y-": Robin(2.0, 1.0), "y+": lambda x: x}
    plate = {"shape": (15, 14), "spacing": 0.1, "boundary": boundary, "source": 1.0}
    makes = {
        LMSOR: lambda **where: LMSOR(flow((15, 14)), initial=1.0, **where),
        RedBlackSOR: lambda **where: RedBlackSOR(**plate, **where),
    }
    where = {"group": group, "split": SPLIT}
    folder = Path(group.objects("test", tempfile.mkdtemp() if group.rank == 0 else None)[0])
    for kind, make in makes.items():
        path = folder / kind.__name__
        expected = make().iterate(7)
        make(**where).iterate(7).save(path)
        group.objects("test", None)
        one, split = kind.load(path), kind.load(path, **where)
        assert one.iterations == split.iterations == 7
        assert one.residual == expected.residual
        np.testing.assert_array_equal(one.u, expected.u)
        expected.iterate(9)
        np.testing.assert_array_equal(one.iterate(9).u, expected.u)
        np.testing.assert_array_equal(split.iterate(9).u, part_of(group, expected.u, 0))


def check_what_is_not_offered(group, rng):
    problem = flow((20, 20))
    options = {"group": group, "split": SPLIT}
    with pytest.raises(ValueError, match="kernel must be"):
        LMSOR(problem, kernel="serial", **options)
    with pytest.raises(ValueError, match="split must be"):
        LMSOR(problem, group=group, split=Slab(1))
    if group.size > 1:
        with pytest.raises(ValueError, match="at least 3 rows"):
            LMSOR(flow((5, 9)), **options)
        with pytest.raises(DistributedError, match="relaxation must be the same"):
            LMSOR(problem, relaxation=1.0 + 0.1 * group.rank, **options)
        with pytest.raises(DistributedError, match="number of iterations must be the same"):
            LMSOR(problem, **options).iterate(2 + group.rank)

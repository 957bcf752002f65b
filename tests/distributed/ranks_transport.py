"""Checks of GCEIDD on slabs, run by every rank of an MPI job; see test_distributed.py."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from slabs import part_of, same

from pysolvers import (
    GCEIDD,
    ConvectionDiffusion,
    ConvergenceError,
    Dirichlet,
    DistributedError,
    Neumann,
)
from pysolvers.distributed import Slab

STEPS = 6
SHAPE = (22, 25)
METHOD = {"shape": SHAPE, "dt": 0.02}
EXTENT = ((0.0, 2.0), (-1.0, 1.0))


def pulse(x, y):
    return np.exp(-((x - 0.8) ** 2 + (y - 0.1) ** 2) / 0.05)


def problem(**changes):
    data = {"velocity": (1.0, -0.5), "diffusion": 0.01, "extent": EXTENT, "initial": pulse}
    return ConvectionDiffusion(**data | changes)


TURNING = {"velocity": (lambda y: -3 * y, lambda x, t: 2 * x * np.cos(t))}
SIDES = {
    "x-": lambda y, t: np.sin(3 * t) + y,
    "x+": Neumann(lambda y, t: 0.01 * y * t),
    "y-": Neumann(0.02),
    "y+": Dirichlet(lambda x, t: x + t),
}
OTHER_SIDES = {"x-": Neumann(), "x+": 1.0, "y-": lambda x: x**2, "y+": Neumann(lambda x: 0.01 * x)}
SOURCE = {"source": lambda x, y, t: np.sin(x + 2 * y) * np.exp(-t)}
SUM = {"source": [(lambda t: 1 + t, lambda x, y: x * y), (0.5, 2.0)]}
SPREAD = {"diffusion": (lambda x, y: 0.01 + 0.02 * x, lambda y: 0.02 + 0.01 * y**2)}

PROBLEMS = {
    "values": problem(),
    "turning": problem(**TURNING, boundary=SIDES),
    "source": problem(**TURNING, **SOURCE, **SPREAD, boundary=OTHER_SIDES),
    "sum": problem(**SUM, boundary=SIDES),
    "no flux": problem(**TURNING, **SUM, boundary=Neumann()),
}
METHODS = (
    {},
    {"strips": (3, 4)},
    {"strips": (1, 5), "scheme": "cfd", "foot": "extrapolate"},
    {"strips": 3, "scheme": "cfd"},
    {"strips": (4, 3), "scheme": "mu"},
    {"strips": 2, "scheme": "mu", "predictor": "printed", "upwind": "plain"},
    {"strips": 3, "dtype": np.float32},
)


def check_fields_of_one_process(group, rng):
    for given in PROBLEMS.values():
        for method in METHODS:
            one = GCEIDD(given, **METHOD, **method).step(STEPS)
            one.dt = METHOD["dt"] / 3
            one.step(3)
            bound = 1e-13 if method.get("dtype") is not np.float32 else 2e-6
            for axis in (0, 1):
                split = GCEIDD(given, **METHOD, **method, group=group, split=Slab(axis))
                split.step(STEPS)
                split.dt = METHOD["dt"] / 3
                split.step(1).step(2)
                same(group, split, one.u, axis, bound)
                assert (split.time, split.steps) == (one.time, one.steps)


def check_arrays_of_the_whole_grid(group, rng):
    ny, nx = SHAPE
    given = problem(
        velocity=(rng.uniform(-1, 1, SHAPE), rng.uniform(-1, 1, (ny, 1))),
        diffusion=(rng.uniform(0.01, 0.02, nx), 0.01),
        source=rng.uniform(-1, 1, SHAPE),
        initial=rng.uniform(-1, 1, SHAPE),
        boundary={
            "x-": rng.uniform(-1, 1, (ny, 1)),
            "x+": Neumann(rng.uniform(0, 0.01, (ny, 1))),
            "y-": rng.uniform(-1, 1, nx),
            "y+": Neumann(rng.uniform(0, 0.01, (1, nx))),
        },
    )
    one = GCEIDD(given, **METHOD, strips=2).step(STEPS)
    for axis in (0, 1):
        split = GCEIDD(given, **METHOD, strips=2, group=group, split=Slab(axis)).step(STEPS)
        same(group, split, one.u, axis, 1e-13)
        line = (one.y, one.x)[axis]
        np.testing.assert_array_equal((split.y, split.x)[axis], part_of(group, line, 0))
        assert split.result().u.shape == (split.y.size, split.x.size)
    whole = problem(initial=np.ones((ny - 1, nx)))
    with pytest.raises(ValueError, match="initial must broadcast"):
        GCEIDD(whole, **METHOD, group=group, split=Slab(0))


def check_run_and_result(group, rng):
    given = PROBLEMS["turning"]
    one = GCEIDD(given, **METHOD, strips=2).run(0.09)
    split = GCEIDD(given, **METHOD, strips=2, group=group, split=Slab(1)).run(0.09)
    np.testing.assert_allclose(split.u, part_of(group, one.u, 1), rtol=0, atol=1e-13)
    assert split.last_dt == one.last_dt
    assert split.stop_reason == "reached"


def check_saved_states(group, rng):
    """A state is continued by one process and by a group, and the other way round."""
    given = PROBLEMS["turning"]
    for method in METHODS[4:6]:
        one = GCEIDD(given, **METHOD, **method).step(STEPS)
        folder = Path(group.objects("test", tempfile.mkdtemp() if group.rank == 0 else None)[0])
        for axis in (0, 1):
            split = GCEIDD(given, **METHOD, **method, group=group, split=Slab(axis)).step(STEPS)
            split.save(folder / f"split{axis}.npz")
        if group.rank == 0:
            one.save(folder / "one.npz")
        group.objects("test", None)
        one.step(STEPS)
        for name in ("one.npz", "split0.npz", "split1.npz"):
            alone = GCEIDD.load(folder / name, given).step(STEPS)
            np.testing.assert_allclose(alone.u, one.u, rtol=0, atol=1e-13)
            for axis in (0, 1):
                more = GCEIDD.load(folder / name, given, group=group, split=Slab(axis))
                same(group, more.step(STEPS), one.u, axis, 1e-13)
                assert more.steps == one.steps


def check_growth_ends_all_ranks(group, rng):
    """A solution that exceeds the bound on one rank raises after the same step on all ranks."""
    given = problem(source=lambda x, y: (y < -0.9) * 1.0, initial=0.0)
    with pytest.raises(ConvergenceError) as one:
        GCEIDD(given, **METHOD, bound=0.05).step(100)
    for axis in (0, 1):
        split = GCEIDD(given, **METHOD, bound=0.05, group=group, split=Slab(axis))
        with pytest.raises(ConvergenceError) as found:
            split.step(100)
        assert found.value.result.steps == one.value.result.steps
        assert found.value.result.stop_reason == "grown"


def check_what_is_not_offered(group, rng):
    given, split = PROBLEMS["values"], Slab(0)
    with pytest.raises(TypeError, match="must be given together"):
        GCEIDD(given, **METHOD, split=split)
    with pytest.raises(ValueError, match="at least"):
        GCEIDD(given, shape=(4 * group.size - 1, 30), dt=0.1, group=group, split=split)
    if group.size == 1:
        return
    with pytest.raises(DistributedError, match="strips must be the same on all ranks"):
        GCEIDD(given, **METHOD, strips=1 + group.rank, group=group, split=split)
    other = problem(boundary=Neumann()) if group.rank else given
    with pytest.raises(DistributedError, match="boundary must be the same on all ranks"):
        GCEIDD(other, **METHOD, group=group, split=split)

    def source(t):
        if t > 0.05 and group.rank == 1:
            raise OSError("no data")
        return t

    solver = GCEIDD(problem(source=source), **METHOD, group=group, split=split)
    with pytest.raises(OSError if group.rank == 1 else DistributedError, match="no data"):
        solver.step(10)
    assert solver.steps == 2


if __name__ == "__main__":
    from run_checks import run_checks

    run_checks(globals())

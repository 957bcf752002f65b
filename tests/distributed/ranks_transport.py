"""Checks of GCEIDD on slabs, run by every rank of an MPI job; see test_distributed.py."""

import tempfile
from pathlib import Path
from time import perf_counter
from unittest import mock

import numpy as np
import pytest
from rank_hooks import few_steps
from slabs import EVERY, chosen, few, part_of, same

import pysolvers
from pysolvers import (
    ConvectionDiffusion,
    ConvergenceError,
    Dirichlet,
    DistributedError,
    Neumann,
    Robin,
)
from pysolvers.distributed import Slab
from pysolvers.papers.gceidd2022 import GCEIDD

STEPS = 6
SHAPE = (22, 25)
METHOD = {"shape": SHAPE, "dt": 0.02}
EXTENT = ((0.0, 2.0), (-1.0, 1.0))


def pulse(x, y):
    return np.exp(-((x - 0.8) ** 2 + (y - 0.1) ** 2) / 0.05)


def problem(**changes):
    data = {"velocity": (1.0, -0.5), "diffusion": 0.01, "extent": EXTENT, "initial": pulse}
    data["boundary"] = 0.0
    return ConvectionDiffusion(**data | changes)


TURNING = {"velocity": (lambda y: -3 * y, lambda x, t: 2 * x * np.cos(t))}
SIDES = {
    "x-": lambda y, t: np.sin(3 * t) + y,
    "x+": Neumann(lambda y, t: 0.01 * y * t),
    "y-": Neumann(0.02),
    "y+": Dirichlet(lambda x, t: x + t),
}
OTHER_SIDES = {"x-": Neumann(), "x+": 1.0, "y-": lambda x: x**2, "y+": Neumann(lambda x: 0.01 * x)}
EXCHANGE = {
    "x-": Robin(0.7, lambda y, t: np.sin(3 * t) + y),
    "x+": "outflow",
    "y-": Robin(0.05, lambda x: x),
    "y+": Robin(0.2, 0.5),
}
SOURCE = {"source": lambda x, y, t: np.sin(x + 2 * y) * np.exp(-t)}
SUM = {"source": [(lambda t: 1 + t, lambda x, y: x * y), (0.5, 2.0)]}
SPREAD = {"diffusion": (lambda x, y: 0.01 + 0.02 * x, lambda y: 0.02 + 0.01 * y**2)}

PROBLEMS = {
    "values": problem(),
    "turning": problem(**TURNING, boundary=SIDES),
    "source": problem(**TURNING, **SOURCE, **SPREAD, boundary=OTHER_SIDES),
    "sum": problem(**SUM, boundary=SIDES),
    "no flux": problem(**TURNING, **SUM, boundary=Neumann()),
    "exchange": problem(**TURNING, **SPREAD, boundary=EXCHANGE),
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
    for number, method in enumerate(METHODS):
        for given in chosen(number, [*PROBLEMS.values()]):
            one = GCEIDD(given, **METHOD, **method).step(STEPS)
            one.dt = METHOD["dt"] / 3
            one.step(3)
            bound = 1e-13 if method.get("dtype") is not np.float32 else 2e-6
            for axis in chosen(number, (0, 1)):
                split = GCEIDD(given, **METHOD, **method, group=group, split=Slab(axis))
                split.step(STEPS)
                split.dt = METHOD["dt"] / 3
                split.step(1).step(2)
                same(group, split, one.u, axis, bound)
                assert (split.time, split.steps) == (one.time, one.steps)


def check_periodic_axes_are_refused(group, rng):
    given = problem(boundary={"x": "periodic", "y": 0.0})
    with pytest.raises(ValueError, match="with a group no axis must be periodic"):
        GCEIDD(given, **METHOD, group=group, split=Slab(0))


# A grid on which the ranks exchange a halo, with 26 strips of 5 cells.
LARGE = {"shape": (131, 131), "dt": 0.004}
STEADY = {
    "values": problem(velocity=(lambda y: 1 - y, lambda x: 0.5 * x - 0.3)),
    "sources": problem(**SUM, **SPREAD, velocity=(0.7, -0.9), boundary=SIDES),
    "function": problem(**SOURCE, velocity=(-0.7, 0.9), boundary=OTHER_SIDES),
    "exchange": problem(**SPREAD, velocity=(0.7, -0.9), boundary=EXCHANGE),
}
LOCAL = (
    {"strips": (1, 1)},
    {"strips": (26, 26)},
    {"strips": (26, 26), "scheme": "cfd"},
    {"strips": (26, 1), "scheme": "cfd", "foot": "extrapolate"},
    {"strips": (26, 26), "scheme": "mu"},
    {"strips": (1, 26), "scheme": "mu", "predictor": "printed"},
    {"strips": (26, 26), "dtype": np.float32},
)


def check_solver_without_the_options_of_the_paper(group, rng):
    """Sweeps of complete lines, whose prediction is the printed one for ``'mu'``."""
    method = METHOD | {"strips": 3, "scheme": "mu"}
    one = pysolvers.GCEIDD(PROBLEMS["turning"], **method).step(STEPS)
    for axis in (0, 1):
        split = pysolvers.GCEIDD(PROBLEMS["turning"], **method, group=group, split=Slab(axis))
        same(group, split.step(STEPS), one.u, axis, 1e-12)


def by_halo(solver):
    return solver._state.has_halo


def check_fields_by_halo(group, rng):
    for number, method in enumerate(few(LOCAL, 3)):
        for name, given in chosen(number, [*STEADY.items()]):
            one = GCEIDD(given, **LARGE, **method).step(2).step(9)
            states = [one.u.copy()]
            for dt, steps in ((LARGE["dt"] / 3, 3), (1.3 * LARGE["dt"], 5)):
                one.dt = dt
                states.append(one.step(steps).u.copy())
            one.run(one.time + 2.4 * one.dt)
            bound = 1e-13 if method.get("dtype") is not np.float32 else 2e-6
            for axis in chosen(number, (0, 1)):
                split = GCEIDD(given, **LARGE, **method, group=group, split=Slab(axis))
                # One strip along the cut axis needs a deep halo.
                if method["strips"][1 - axis] > 1 or (name == "values" and group.size == 2):
                    assert by_halo(split), (name, method)
                same(group, split.step(2).step(9), states[0], axis, bound)
                split.dt = LARGE["dt"] / 3
                same(group, split.step(3), states[1], axis, bound)
                split.dt = 1.3 * LARGE["dt"]
                same(group, split.step(1).step(4), states[2], axis, bound)
                split.run(split.time + 2.4 * split.dt)
                same(group, split, one.u, axis, bound)
                assert (split.time, split.steps) == (one.time, one.steps)


# A grid with 480 cells along the cut axis and 20 along the other one, with a Courant number of 0.4
# and a dt/h^2 = 0.2 along the cut axis: it has held grids for up to 4 ranks, also with one strip.
LONG = {"dt": 1e-3}
SCHEMES = (
    {"scheme": "cp"},
    {"scheme": "cfd"},
    {"scheme": "cfd", "foot": "extrapolate"},
    {"scheme": "mu"},
    {"scheme": "mu", "predictor": "printed"},
)


def long(axis, strips, **changes):
    """Return a problem and options of a grid that is cut along its long axis.

    The velocity along this axis changes along it; one of its ends has a flux, the other one values
    that change with time.
    """
    name, across = "yx"[axis], "xy"[axis]
    along = {
        "x": lambda x: 0.8 + 0.1 * np.sin(9 * x),
        "y": lambda y: 0.8 + 0.1 * np.sin(9 * y),
    }
    velocity, diffusion = {name: along[name], across: -1.5}, {name: 9e-4, across: 2e-3}
    data = {
        "velocity": (velocity["x"], velocity["y"]),
        "diffusion": (diffusion["x"], diffusion["y"]),
        "extent": ((0.0, 1.0), (0.0, 1.0)),
        "initial": lambda x, y: np.sin(40 * x + 30 * y),
        "source": lambda x, y, t: np.cos(5 * x - 9 * y + 20 * t),
        "boundary": {
            f"{name}-": Neumann(0.01),
            f"{name}+": lambda t: np.sin(30 * t),
            f"{across}-": Dirichlet(0.3),
            f"{across}+": Neumann(),
        },
    }
    shape = (481, 21) if axis == 0 else (21, 481)
    both = (4, strips) if axis == 0 else (strips, 4)
    return ConvectionDiffusion(**data | changes), LONG | {"shape": shape, "strips": both}


def require_halo(group, solver):
    """Require held grids that are not the whole grid, so that the halo is exchanged."""
    assert by_halo(solver)
    plan = solver._state._run._plan
    assert plan.steps <= 4
    nodes = solver._settings.shape[solver._state.axis]
    if group.size > 1:
        assert all(cut.held.stop - cut.held.start < nodes for cut in plan.cuts)
        assert all(cut.held != cut.own for cut in plan.cuts)


def check_the_halo_is_exchanged(group, rng):
    """Each scheme in turn along one axis, with one strip or several ones along the cut axis."""
    for number, method in enumerate(few(SCHEMES, 2)):
        for axis, strips in chosen(number, ((0, 1), (1, 60), (0, 60), (1, 1))):
            given, options = long(axis, strips)
            one = GCEIDD(given, **options, **method)
            with few_steps():
                split = GCEIDD(given, **options, **method, group=group, split=Slab(axis))
                require_halo(group, split)
                same(group, split.step(3).step(8), one.step(11).u, axis, 1e-13)
                for dt, steps in ((LONG["dt"] / 3, 5), (1.3 * LONG["dt"], 9)):
                    one.dt = split.dt = dt
                    same(group, split.step(steps), one.step(steps).u, axis, 1e-13)
                    require_halo(group, split)
                end = one.time + 5.4 * one.dt
                split.run(end)
                same(group, split, one.run(end).u, axis, 1e-13)
                assert (split.time, split.steps) == (one.time, one.steps)


def check_fields_that_are_not_by_halo(group, rng):
    """The velocity changes with time, or no held grid has strips like those of the whole grid."""
    turning = {"velocity": (lambda t: 0.5 * np.cos(t), 0.8)}
    for number, (strips, changes) in enumerate(((60, turning), (97, {}), (1, turning))):
        for method in chosen(number, SCHEMES[::3]):
            given, options = long(0, strips, **changes)
            one = GCEIDD(given, **options, **method)
            split = GCEIDD(given, **options, **method, group=group, split=Slab(0))
            assert by_halo(split) == (group.size == 1 and not changes)
            same(group, split.step(4), one.step(4).u, 0, 1e-13)
    for strips in (2, 27):  # some ranks have such held grids
        one = GCEIDD(PROBLEMS["values"], **LARGE, strips=strips).step(4)
        split = GCEIDD(PROBLEMS["values"], **LARGE, strips=strips, group=group, split=Slab(0))
        same(group, split.step(4), one.u, 0, 1e-13)


def check_steps_that_are_too_long_for_the_halo(group, rng):
    """With one strip, long steps need a deeper halo than the neighbours have nodes."""
    for axis in (0, 1):
        given, options = long(axis, 1)
        for method in chosen(axis, SCHEMES[::3]):
            one = GCEIDD(given, **options, **method)
            split = GCEIDD(given, **options, **method, group=group, split=Slab(axis))
            assert by_halo(split)
            same(group, split.step(6), one.step(6).u, axis, 1e-13)
            one.dt = split.dt = 60 * LONG["dt"]
            same(group, split.step(2), one.step(2).u, axis, 1e-12)
            assert by_halo(split) == (group.size == 1)
            for factor, back in ((50, group.size == 1), (1, True), (60, group.size == 1)):
                one.dt = split.dt = factor * LONG["dt"]
                same(group, split.step(2), one.step(2).u, axis, 1e-12)
                assert by_halo(split) == back


def check_growth_by_halo(group, rng):
    """A call of several steps ends after the step of one process."""
    given = problem(source=lambda x, y: (y < -0.9) * 1.0, initial=0.0)
    options = LARGE | {"bound": 0.05, "strips": 26}
    with pytest.raises(ConvergenceError) as one:
        GCEIDD(given, **options).step(60)
    for axis in (0, 1):
        with few_steps():
            split = GCEIDD(given, **options, group=group, split=Slab(axis))
        require_halo(group, split)
        with pytest.raises(ConvergenceError) as found:
            split.step(60)
        assert found.value.result.steps == one.value.result.steps > 8
        same(group, split, one.value.result.u, axis, 1e-13)


def check_held_grids_that_grow_alone(group, rng):
    """Values that are wrong, next to the ends of the held grids, are larger than the bound."""
    h = 2 / (LARGE["shape"][0] - 1)
    given = problem(
        velocity=(0.0, 0.0),
        diffusion=0.7 * h**2 / LARGE["dt"],
        initial=lambda y: np.cos(np.pi * (y + 1) / h),  # 1 and -1 in turn; a third after a step
        boundary=0.0,
    )
    options = LARGE | {"bound": 0.5}
    one = GCEIDD(given, **options).step(20)
    split = GCEIDD(given, **options, group=group, split=Slab(0))
    kind = type(split._state._run)
    if not hasattr(kind, "_make_singly"):
        assert group.size > 2
        return
    with mock.patch.object(
        kind, "_make_singly", autospec=True, side_effect=kind._make_singly
    ) as all:
        same(group, split.step(20), one.u, 0, 1e-13)
    assert (all.call_count > 0) == (group.size > 1)


def check_saved_states_by_halo(group, rng):
    with few_steps():
        require_saved_states(group, STEADY["sources"], LARGE, few(LOCAL[1:5:3], 2), 5, require_halo)


def require_saved_states(group, given, options, methods, steps, require_exchange=None):
    """A state is continued by one process and by a group, and the other way round."""
    for method in methods:
        one = GCEIDD(given, **options, **method).step(steps)
        folder = Path(group.objects("test", tempfile.mkdtemp() if group.rank == 0 else None)[0])
        for axis in (0, 1):
            split = GCEIDD(given, **options, **method, group=group, split=Slab(axis)).step(steps)
            split.save(folder / f"split{axis}.npz")
        if group.rank == 0:
            one.save(folder / "one.npz")
        group.objects("test", None)
        one.step(STEPS)
        for number, name in enumerate(("one.npz", "split0.npz", "split1.npz")):
            alone = GCEIDD.load(folder / name, given).step(STEPS)
            np.testing.assert_allclose(alone.u, one.u, rtol=0, atol=1e-13)
            for axis in chosen(number, (0, 1)):
                more = GCEIDD.load(folder / name, given, group=group, split=Slab(axis))
                if require_exchange:
                    require_exchange(group, more)
                same(group, more.step(STEPS), one.u, axis, 1e-12)
                assert more.steps == one.steps


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
        same(group, split, one.u, axis, 1e-12)
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
    if not EVERY:  # those by a halo have one field more
        return
    require_saved_states(group, PROBLEMS["turning"], METHOD, few(METHODS[5:3:-1], 2), STEPS)


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
        assert found.value.result.stop_reason == "diverged"


def check_range_is_that_of_all_ranks(group, rng):
    """The limits of all ranks are those of one process, where the source is the same in time."""
    data = {
        "sides": problem(velocity=(1.0, lambda x, t: x * t), boundary=SIDES | {"y-": Neumann()}),
        "values": problem(source=lambda x, y: x - y, boundary=OTHER_SIDES),
        "turning": PROBLEMS["turning"],
    }
    for name, given in data.items():
        one = GCEIDD(given, **METHOD).step(STEPS)
        for axis in (0, 1):
            split = GCEIDD(given, **METHOD, group=group, split=Slab(axis)).step(STEPS)
            found = split._range.limits(STEPS)
            np.testing.assert_allclose(found, one._range.limits(STEPS), rtol=1e-12, err_msg=name)


def check_values_out_of_the_range_end_all_ranks(group, rng):
    """Unstable predictions leave the range of the data at the same step, in held grids or not."""
    given = problem(
        velocity=(0.0, 0.0),
        diffusion=1.0,
        extent=((0, 130), (0, 130)),
        boundary={"x": lambda t: 0.5 * np.sin(t), "y": 0.0},
        initial=np.random.default_rng(1).uniform(-1, 1, (131, 131)),
    )
    for dt in (14.0, 14.5):
        with pytest.warns(RuntimeWarning, match="unstable"), pytest.raises(ConvergenceError) as one:
            GCEIDD(given, (131, 131), dt, strips=26).step(300)
        assert "which initial values, sides and source allow" in str(one.value)
        for axis in (0, 1):
            with pytest.warns(RuntimeWarning, match="unstable"):
                split = GCEIDD(given, (131, 131), dt, strips=26, group=group, split=Slab(axis))
            with pytest.raises(ConvergenceError) as found:
                split.step(300)
            assert found.value.result.steps == one.value.result.steps


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

    for given in (source, [(source, lambda x: x)]):
        solver = GCEIDD(problem(source=given), **METHOD, group=group, split=split)
        with pytest.raises(OSError if group.rank == 1 else DistributedError, match="no data"):
            solver.step(10)
        assert solver.steps == 2
    with few_steps():
        for given in (source, [(source, 1.0)]):
            solver = GCEIDD(problem(source=given), **LARGE, strips=26, group=group, split=split)
            require_halo(group, solver)
            with pytest.raises(OSError if group.rank == 1 else DistributedError, match="no data"):
                solver.step(20)
            assert solver.steps <= 12  # rank 1 cannot evaluate step 13
            assert 13 - solver.steps <= 4


def check_steps_that_differ(group, rng):
    """Ranks whose steps have another length, or another number, raise on all ranks at once."""
    if group.size == 1:
        return
    odd = group.rank == 1
    for given in (problem(), problem(source=lambda x, t: x * t)):
        for dt, steps in ((0.9, 3), (1.4, 3), (1.0, 2)):
            solver = GCEIDD(given, **LARGE, strips=26, group=group, split=Slab(0))
            assert by_halo(solver)
            solver.step(1)
            if odd:
                solver.dt = dt * LARGE["dt"]
            begun = perf_counter()
            with pytest.raises(DistributedError, match="must"):
                solver.step(steps if odd else 3)
            assert perf_counter() - begun < group.timeout / 2
        solver = GCEIDD(given, **LARGE, strips=26, group=group, split=Slab(0)).step(1)
        solver.dt = (0.9 if odd else 0.8) * LARGE["dt"]
        with pytest.raises(DistributedError, match="must"):
            solver.step(3)

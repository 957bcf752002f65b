"""Checks of HeatADI on slabs, run by every rank of an MPI job; see test_distributed.py."""

import tempfile
import time
import warnings
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from rank_hooks import cheap_stages, failing_steps, no_cut_lines
from slabs import EVERY, chosen, dividing, few, part_of, same
from unsplit_cases import BOX, PLANE, UNSPLIT, wave

from pysolvers import (
    ConvergenceError,
    Dirichlet,
    DistributedError,
    HeatADI,
    Neumann,
    Robin,
)
from pysolvers.distributed import Slab

STEPS = 7
PROBLEMS = {
    "values": PLANE | {"initial": wave, "damped_start": False},
    "damped": PLANE | {"initial": 1.0, "dt": 0.5},
    "single": PLANE | {"initial": wave, "dtype": np.float32},
    "values in time": PLANE
    | {
        "initial": wave,
        "boundary": {
            "x-": lambda y, t: np.cos(3 * t) * y,
            "x+": lambda y, t: y**2 + t,
            "y-": lambda x, t: np.sin(t) * x,
            "y+": 1.0,
        },
        "source": lambda x, y, t: x * y * np.exp(-t),
    },
    "fluxes": PLANE
    | {
        "initial": wave,
        "boundary": {
            "x-": Neumann(lambda y, t: y * t),
            "x+": Robin(2.0, lambda y, t: t + y),
            "y-": Neumann(0.3),
            "y+": Robin(0.5, 1.0),
        },
        "diffusivity": {"x": 2.0, "y": 0.5},
        "heat_capacity": 1.25,
    },
    "exchange and a short step": PLANE
    | {
        "initial": wave,
        "dt": 1e-4,
        "boundary": {"x-": Robin(2.0, 1.0), "x+": 0.0, "y": 1.0},
    },
    "conductivity": PLANE
    | {
        "initial": wave,
        "diffusivity": lambda x, y: 1 + x * y + np.sin(5 * y) ** 2,
        "boundary": {"x": Dirichlet(lambda y: y), "y-": Neumann(1.0), "y+": 0.0},
        "source": 2.0,
        "heat_capacity": 0.8,
    },
    "damped with a conductivity": BOX
    | {
        "scheme": "douglas-gunn",
        "initial": 1.0,
        "dt": 50.0,
        "diffusivity": lambda x, y, z: 0.1 + 2 * np.sin(7 * x * y + 5 * z) ** 2,
        "boundary": {"x-": 0.0, "x+": Robin(3.0, 2.0), "y": Neumann(), "z": 1.5},
    },
    "periodic": PLANE
    | {
        "initial": lambda x, y: np.sin(np.pi * x) + np.cos(2 * np.pi * y) * x,
        "boundary": {"x": Neumann(lambda y, t: t * np.sin(2 * np.pi * y)), "y": "periodic"},
        "diffusivity": lambda x, y: 2 + np.sin(2 * np.pi * y) + x,
    },
    "box": BOX
    | {
        "initial": lambda x, y, z: x * y + z**2,
        "boundary": {
            "x-": lambda y, z, t: y * z * np.cos(t),
            "x+": Neumann(lambda z, t: t * z),
            "y": "periodic",
            "z-": Robin(1.0, lambda x, t: x + t),
            "z+": lambda x, y, t: x * np.sin(2 * np.pi * y) + t,
        },
        "source": lambda z, t: z + t,
    },
    "damped box": BOX | {"initial": 1.0, "boundary": {"x": 0.0, "y": 1.0, "z": Neumann(1.0)}},
}


# Whose kernels are those of others: "damped box" has a damped start, "fluxes" has exchange.
DAMPED = ("damped", "damped with a conductivity", "exchange and a short step")


def check_fields_of_one_process(group, rng):
    """In the default run those whose kernels have no halo in the next check."""
    for number, (name, problem) in few([*enumerate(PROBLEMS.items())][1:], 2):
        one = HeatADI(**problem).step(STEPS)
        one.dt = problem["dt"] / 3
        one.step(2)
        bound = 1e-13 if problem.get("dtype") is not np.float32 else 2e-6
        for axis in chosen(number, range(len(problem["shape"]))):
            split = HeatADI(**problem, group=group, split=Slab(axis)).step(STEPS)
            split.dt = problem["dt"] / 3
            split.step(2)
            same(group, split, one.u, axis, bound)
            assert split.result().damped_start == one.result().damped_start, name
            np.testing.assert_allclose(split.heat(), one.heat(), rtol=0, atol=10 * bound)
            assert (split.time, split.steps) == (one.time, one.steps)


def fine(problem):
    """Return a problem of which one process steps by the kernels, and so do four ranks."""
    if len(problem["shape"]) == 3:
        return problem | {"shape": (41, 44, 48), "dt": 8e-6}
    return problem | {"shape": (101, 104), "dt": 4e-6}


def check_kernels_with_a_halo_for_several_steps(group, rng):
    for number, (name, problem) in few(enumerate(PROBLEMS.items(), 1), 2):
        if name in DAMPED and not EVERY:
            continue
        problem = fine(problem)
        one = HeatADI(**problem).step(20)
        one.dt = problem["dt"] / 3
        one.step(5)
        bound = 1e-13 if problem.get("dtype") is not np.float32 else 4e-6
        for axis in chosen(number, range(len(problem["shape"]))):
            split = HeatADI(**problem, group=group, split=Slab(axis))
            split.step(3).step(17)
            split.dt = problem["dt"] / 3
            split.step(5)
            same(group, split, one.u, axis, bound)
            assert split.result().kernel == one.result().kernel, name


def check_windows_that_shrink(group, rng):
    """Stages cost nothing here, and cut lines are not allowed."""
    planes = (
        {"boundary": PROBLEMS["values in time"]["boundary"], "source": lambda x, t: x * t},
        {"boundary": PROBLEMS["fluxes"]["boundary"]},
        {"boundary": {"x": 0.0, "y": "periodic"}, "diffusivity": lambda x: 2 + x},
    )
    boxes = [problem for problem in PROBLEMS.values() if len(problem["shape"]) == 3]
    planes = [PLANE | {"scheme": "douglas-gunn"} | plane for plane in planes]
    for problem in few((*planes, *boxes), 2):
        problem = fine(problem | {"damped_start": False})
        across = (6, 7)[: len(problem["shape"]) - 1]  # the windows depend on the rows only
        problem |= {"shape": (321, *across), "dt": problem["dt"] / 20}
        one = HeatADI(**problem).step(45)
        with cheap_stages(), no_cut_lines():
            split = HeatADI(**problem, group=group, split=Slab(0))
            split.step(1).step(17).step(27)
        stages = split._runner.slab._plan.stages
        assert group.size == 1 or len(stages) > 1, stages
        same(group, split, one.u, 0, 1e-13)


def check_bits_do_not_depend_on_the_calls(group, rng):
    problem = fine(PROBLEMS["values in time"])
    field = HeatADI(**problem, group=group, split=Slab(0)).step(41).u
    repeated = HeatADI(**problem, group=group, split=Slab(0)).step(1).step(17).step(2).step(21)
    np.testing.assert_array_equal(repeated.u, field)


def check_fields_that_are_not_finite_are_noticed_on_all_ranks(group, rng):
    """They become so in the middle of the steps, on one rank."""
    for problem in (fine(PLANE), PLANE | {"shape": (120, 70), "dt": 0.07}):
        heated = 2e38 / problem["dt"]
        problem |= {
            "dtype": np.float32,
            "source": lambda y: np.where(y < 0.2, heated, 0.0),  # noqa: B023
            "boundary": Neumann(),
        }
        for steps in few((3, 200, 40), 2):
            split = HeatADI(**problem, group=group, split=Slab(0)).step(1)
            with pytest.raises(ConvergenceError, match=f"not finite after step {1 + steps}"):
                split.step(steps)


def check_long_steps_that_are_not_finite_are_noticed_on_all_ranks(group, rng):
    """Array operations make them, since a long step spreads over all nodes of the cut axis."""
    problem = fine(PLANE)
    problem |= {
        "dt": 1000 * problem["dt"],
        "dtype": np.float32,
        "boundary": Neumann(),
        "source": lambda y: np.where(y < 0.2, 2e38 / problem["dt"], 0.0),
    }
    split = HeatADI(**problem, group=group, split=Slab(1)).step(1)
    if group.size > 2:
        assert split.result().kernel == "slabs"
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "overflow", RuntimeWarning)
        with pytest.raises(ConvergenceError, match=r"not finite after step \d"):
            split.step(3)


def check_longer_and_shorter_steps(group, rng):
    """Steps that spread over few nodes are made by the kernels, others by array operations."""
    problem = fine(PROBLEMS["conductivity"])
    one = HeatADI(**problem).step(3)
    splits = [HeatADI(**problem, group=group, split=Slab(axis)).step(3) for axis in (0, 1)]
    for factor in (1000, 1):
        for solver in (one, *splits):
            solver.dt = factor * problem["dt"]
            solver.step(3)
        for axis, split in enumerate(splits):
            same(group, split, one.u, axis, 1e-13)
            is_slow = axis == 1 and factor == 1000 and group.size > 1
            assert split.result().kernel == ("slabs" if is_slow else one.result().kernel)


def check_long_steps(group, rng):
    """What a step spreads over all nodes is corrected by the cut lines of the last sweep."""
    plane = {"shape": (120, 70), "extent": ((0.0, 2.0), (0.0, 1.0)), "dt": 0.07, "initial": wave}
    sides = {"x-": lambda y, t: np.cos(t) * y, "x+": Robin(1.0, 2.0), "y-": 1.0, "y+": Neumann(1.0)}
    box = BOX | {"shape": (40, 11, 10), "dt": 0.5, "initial": 1.0}
    ring = {"x": 0.0, "y": Neumann(lambda x, t: x + t), "z": "periodic"}
    problems = (
        plane | {"boundary": {"x": 0.0, "y": "periodic"}, "scheme": "douglas-gunn"},
        plane | {"boundary": sides},
        plane | {"boundary": sides, "diffusivity": lambda x, y: 1 + x + np.sin(9 * y) ** 2},
        box | {"boundary": ring, "source": lambda z, t: z + t},
    )
    for problem in problems if EVERY else problems[2:]:
        one = HeatADI(**problem).step(20)
        split = HeatADI(**problem, group=group, split=Slab(0)).step(1).step(19)
        same(group, split, one.u, 0, 1e-13 * max(1.0, np.abs(one.u).max()))
        assert split.result().kernel == one.result().kernel


def check_constants_keep_their_bits(group, rng):
    """In an insulated box, also where lines are cut."""
    ring = {"x": Neumann(), "y": "periodic"}
    for scheme in ("peaceman-rachford", "douglas-gunn"):
        for sides, dtype in ((Neumann(), np.float64), (ring, np.float32)):
            problem = {"shape": (120, 30), "spacing": 1.0, "dt": 200.0, "initial": 0.1}
            problem |= {"boundary": sides, "scheme": scheme, "dtype": dtype, "damped_start": False}
            split = HeatADI(
                **problem,
                diffusivity=lambda x, y: 1.5 + np.sin(9 * x + y),
                group=group,
                split=Slab(0),
            )
            split.step(3).step(4)
            assert (split.u == dtype(0.1)).all()


def check_ranks_that_step_differently(group, rng):
    if group.size == 1:
        return
    problem = fine(PROBLEMS["values"])
    solver = HeatADI(**problem, group=group, split=Slab(0)).step(1)
    with pytest.raises(DistributedError, match="all ranks must make the same steps"):
        solver.step(2 + group.rank % 2)

    def source(t):
        if t > 3 * problem["dt"] and group.rank == 1:
            raise OSError("no data")
        return t

    solver = HeatADI(**problem, source=source, group=group, split=Slab(0))
    with pytest.raises(OSError if group.rank == 1 else DistributedError, match="no data"):
        solver.step(40)
    solver = HeatADI(**problem, group=group, split=Slab(0)).step(1)
    solver.dt = (0.9 if group.rank == 1 else 0.8) * solver.dt
    with pytest.raises(DistributedError, match="must"):
        solver.step(3)


def check_kernels_that_fail_on_one_rank(group, rng):
    """The others do not wait until the timeout."""
    if group.size == 1:
        return
    solver = HeatADI(**fine(PROBLEMS["values"]), group=group, split=Slab(0)).step(1)
    began = time.monotonic()
    with (
        failing_steps(0, OSError("no data")) if group.rank == 1 else nullcontext(),
        pytest.raises(OSError if group.rank == 1 else DistributedError, match="no data"),
    ):
        solver.step(8)
    assert time.monotonic() - began < group.timeout / 2


def check_arrays_of_the_part(group, rng):
    initial, k, source = rng.uniform(1, 2, (3, *PLANE["shape"]))
    data = {"initial": initial, "diffusivity": k, "source": source}
    one = HeatADI(**PLANE, **data).step(STEPS)
    for axis in (0, 1):
        parts = {name: part_of(group, values, axis) for name, values in data.items()}
        split = HeatADI(**PLANE, **parts, group=group, split=Slab(axis)).step(STEPS)
        same(group, split, one.u, axis, 1e-13)
        short = {"dt": 1e-5, "shape": (61, 64)}
        whole = {name: np.resize(values, short["shape"]) for name, values in data.items()}
        parts = {name: part_of(group, values, axis) for name, values in whole.items()}
        repeated = HeatADI(**PLANE | short, **whole).step(STEPS)
        window = HeatADI(**PLANE | short, **parts, group=group, split=Slab(axis)).step(STEPS)
        same(group, window, repeated.u, axis, 1e-13)
        assert window.result().kernel == repeated.result().kernel
        line = (one.y, one.x)[axis]
        np.testing.assert_allclose(
            (split.y, split.x)[axis], part_of(group, line, 0), rtol=1e-14, atol=1e-15
        )


def check_run_and_result(group, rng):
    problem = PROBLEMS["values in time"]
    one = HeatADI(**problem).run(0.1)
    split = HeatADI(**problem, group=group, split=Slab(0)).run(0.1)
    np.testing.assert_allclose(split.u, part_of(group, one.u, 0), rtol=0, atol=1e-13)
    assert split.last_dt == one.last_dt


def check_last_part_of_one_node(group, rng):
    """The nodes of a side are all that the last rank has, and a layer of the rank before."""
    for axis in (0, 1):
        shape = [9, 9]
        shape[axis] = max(4, 2 * group.size - 1)
        problem = {"shape": shape, "spacing": 0.1, "initial": 1.0}
        problem["boundary"] = {
            "x-": Neumann(0.3),
            "x+": lambda y, t: np.cos(3 * t) + y,
            "y-": 0.5,
            "y+": lambda x, t: np.cos(2 * t) + x,
        }
        for number, dt in enumerate((0.001, 0.1), axis):
            for damped in chosen(number, (False, True)):
                options = problem | {"dt": dt, "damped_start": damped}
                one = HeatADI(**options).step(3)
                split = HeatADI(**options, group=group, split=Slab(axis)).step(3)
                same(group, split, one.u, axis, 1e-12)


def check_data_with_a_jump_between_periodic_ends(group, rng):
    problem = {"shape": (8, 9), "spacing": 0.1, "dt": 0.1, "initial": wave, "damped_start": True}
    problem["boundary"] = {"x": "periodic", "y": Neumann(lambda x, t: x + np.cos(t))}
    one = HeatADI(**problem).step(3)
    same(group, HeatADI(**problem, group=group, split=Slab(1)).step(3), one.u, 1, 1e-12)


def check_warning_of_growth(group, rng):
    """The conductivity of the whole field counts; rank 0 warns."""
    z, y = np.ix_(np.arange(9.0), np.arange(9.0))
    k = np.broadcast_to(1 + z[..., None] * y[..., None], (9, 9, 9))
    options = {"shape": k.shape, "spacing": 1.0, "dt": 0.05, "boundary": 0.0}  # 64 dt is 3.2
    options["scheme"] = "douglas-gunn"
    for axis in range(3):
        split = Slab(axis)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            HeatADI(**options, diffusivity=part_of(group, k, axis), group=group, split=split)
        assert ["it is 3.2:" in str(w.message) for w in found] == [True] * (group.rank == 0)
        layers = np.moveaxis(np.broadcast_to(np.arange(1.0, 10.0), k.shape), 2, axis)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            HeatADI(
                **options | {"dt": 9.0},
                diffusivity=part_of(group, layers, axis),
                group=group,
                split=split,
            )


def equal(group, solver, expected, axis):
    """Require the bits of one process."""
    np.testing.assert_array_equal(solver.u, part_of(group, expected, axis))


def check_unsplit_steps_have_the_bits_of_one_process(group, rng):
    """All levels of several nodes are divided; ranks_unsplit.py has more cases."""
    with dividing(120):
        for number, (name, problem) in enumerate(UNSPLIT.items()):
            # The branches of "box" (with ten times its nodes, and periodic); no branch of float32.
            if name in ("cube", "bar", "ring", "periodic", "single") and not EVERY:
                continue
            steps = (1, 1) if name == "moving" or EVERY else (1,)
            one = HeatADI(**problem).step(sum(steps))
            assert one.result().scheme == "implicit", name
            axis = number % len(problem["shape"])
            split = HeatADI(**problem, group=group, split=Slab(axis))
            for count in steps:
                split.step(count)
            equal(group, split, one.u, axis)
            assert split.result().iterations == one.result().iterations > 0, name
            assert repr(split) == repr(one)


def check_schemes_that_auto_chooses(group, rng):
    """The conductivity of the whole field counts, also if that of each rank is a number."""
    k = np.where(np.add.outer(np.arange(17), np.arange(14)) < 15, 1.0, 50.0)
    options = {"shape": k.shape, "spacing": 1.0, "boundary": 0.0}
    for axis in (0, 1):
        part = part_of(group, k, axis)
        split = HeatADI(**options, dt=1.0, diffusivity=part, group=group, split=Slab(axis))
        assert split.step().result().scheme == "implicit"
        split.dt = 0.01
        assert split.step().result().scheme == "peaceman-rachford"
        assert split.result().iterations == 0
        one = HeatADI(**options, dt=1.0, diffusivity=k).step()
        one.dt = 0.01
        same(group, split, one.step().u, axis, 1e-13)


def check_arrays_of_the_part_with_unsplit_steps(group, rng):
    initial, k, source = rng.uniform(1, 2, (3, 21, 18))
    data = {"initial": initial, "diffusivity": k**9, "source": source}
    options = PLANE | {"shape": k.shape, "scheme": "implicit"}
    one = HeatADI(**options, **data).step(3)
    for axis in (0, 1):
        parts = {name: part_of(group, values, axis) for name, values in data.items()}
        split = HeatADI(**options, **parts, group=group, split=Slab(axis)).step(3)
        equal(group, split, one.u, axis)
        equal(group, split.solve_steady(), one.solve_steady().u, axis)


def check_errors_of_unsplit_steps_raise_on_all_ranks(group, rng):
    problem = UNSPLIT["insulated"] | {"initial": 0.0}

    def source(t):
        if t > 2 * problem["dt"] and group.rank == group.size - 1:
            raise OSError("no data")
        return t

    solver = HeatADI(**problem, source=source, group=group, split=Slab(0))
    is_last = group.rank == group.size - 1
    with pytest.raises(OSError if is_last else DistributedError, match="no data"):
        solver.step(9)
    solver = HeatADI(**problem, source=1.0, group=group, split=Slab(0))
    with pytest.raises(ValueError, match="do not balance"):
        solver.solve_steady()
    if group.size > 1:
        error = ValueError if group.rank == 0 else DistributedError
        with pytest.raises(error, match="max_iterations"):
            solver.solve_steady(max_iterations=group.rank)
    with pytest.raises(ConvergenceError, match="1 iterations are not enough"):
        HeatADI(**UNSPLIT["bar"], group=group, split=Slab(0)).solve_steady(max_iterations=1)
    problem = problem | {"dtype": np.float32, "source": lambda y: np.where(y < 0.2, 3e38, 0.0)}
    solver = HeatADI(**problem | {"dt": 1.0}, group=group, split=Slab(0))
    with pytest.raises(ConvergenceError), np.errstate(all="ignore"):
        solver.step(9)


def check_saved_states(group, rng):
    """A state is continued by one process and by a group, and the other way round."""
    for problem in few((UNSPLIT["moving"], PROBLEMS["fluxes"]), 2):  # a file has the same fields
        continue_saved_states(group, problem)


def continue_saved_states(group, problem):
    names = ("boundary", "diffusivity", "heat_capacity", "source")
    data = {name: problem[name] for name in names if name in problem}
    one = HeatADI(**problem).step(STEPS)
    iterations = one.result().iterations
    bound = 1e-7 if iterations else 1e-12  # ten times the tolerance of the iteration
    split = HeatADI(**problem, group=group, split=Slab(1)).step(STEPS)
    folder = Path(group.objects("test", tempfile.mkdtemp() if group.rank == 0 else None)[0])
    split.save(folder / "split.npz")
    if group.rank == 0:
        one.save(folder / "one.npz")
    group.objects("test", None)
    one.step(STEPS)
    for number, name in enumerate(("one.npz", "split.npz")):
        alone = HeatADI.load(folder / name, **data).step(STEPS)
        np.testing.assert_allclose(alone.u, one.u, rtol=0, atol=bound)
        for axis in chosen(number, (0, 1)):
            more = HeatADI.load(folder / name, **data, group=group, split=Slab(axis))
            assert more.result().iterations == iterations
            same(group, more.step(STEPS), one.u, axis, bound)
            assert more.steps == one.steps


def check_one_rank_that_differs(group, rng):
    if group.size == 1:
        return
    with pytest.raises(DistributedError, match="dt must be the same on all ranks"):
        HeatADI(**PLANE | {"dt": 0.1 + group.rank}, group=group, split=Slab(0))

"""Jobs in which a rank differs, fails or ends; see test_distributed.py."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
import shared_device
import shared_nccl
import shared_parts
from rank_hooks import field_on_device, halo_between, shorten_the_end
from ranks_few import PLANE, solvers
from slabs import anew

import pysolvers
from pysolvers import DistributedError
from pysolvers.distributed import Group, Slab

SHAPE = (3, 40)
FOLDER = Path(sys.argv[1])  # where each rank writes a file of what it found


def note(group, *words):
    with (FOLDER / str(group.rank)).open("a") as file:
        print(*words, sep="|", file=file)


def solve(group, part, **options):
    """Solve the part of this rank."""
    return pysolvers.solve_tridiagonal(
        *(np.full_like(part, value) for value in (-1, 4, -1)),
        part,
        **({"group": group, "split": Slab(-1)} | options),
    )


def part_of(group, dtype=float):
    return np.ones(SHAPE, dtype)[:, Slab(1).part(SHAPE[1], group.rank, group.size)]


def differ(group):
    """Rank 1 makes another call than the others; every rank says what it raised."""
    part = part_of(group)
    odd = group.rank == 1
    calls = {
        "dtype": lambda: solve(group, part_of(group, np.float32) if odd else part),
        "shape": lambda: solve(group, part[:2] if odd else part),
        "periodic": lambda: solve(group, part, periodic=odd),
        "pivot": lambda: solve(group, part, pivot=True if odd else None),
        "policy": lambda: solve(group, part, on_singular="nan" if odd else "raise"),
        "split": lambda: solve(group, part, split=Slab(0 if odd else 1)),
        "method": lambda: solve(group, part, method="thomsa" if odd else "auto"),
        "short": lambda: pysolvers.solve_tridiagonal(
            -np.ones(part.shape[1] - odd), 4.0, -1.0, part, group=group, split=Slab(1)
        ),
        "empty": lambda: solve(group, part[:, :0] if odd else part),
    }
    for name, call in calls.items():
        try:
            call()
        except (ValueError, DistributedError) as error:
            where = getattr(error, "ranks", "")
            note(group, name, type(error).__name__, where, error)
    x = solve(group, part)  # the group can be used after all that
    note(group, "after", np.isfinite(x).all())


def attempt(group, name, call):
    """Make a call that must fail, and note its error."""
    start = time.monotonic()
    try:
        call()
    except Exception as error:
        seconds = time.monotonic() - start
        where = getattr(error, "ranks", "")
        note(group, name, type(error).__name__, where, error, f"{seconds:.1f}")
    else:
        note(group, name, "no error")


def heat(group, **options):
    split = {"group": group, "split": Slab(0)}
    return pysolvers.HeatADI(**(PLANE | {"dt": 0.01, "boundary": 0.0} | split | options))


def solvers_differ(group):
    """Rank 1 has other options of the solvers than the others."""
    odd = group.rank == 1
    make = solvers(group, 16)
    neumann = {"x": pysolvers.Neumann(), "y": 0.0}
    calls = {
        "factor dtype": lambda: pysolvers.factor_tridiagonal(
            -1.0, np.full(3, 4.0, "f4" if odd else "f8"), -1.0, group=group, split=Slab(0)
        ),
        "heat dtype": lambda: make["heat"](dtype="float32" if odd else "float64"),
        "heat boundary": lambda: make["heat"](boundary=neumann if odd else 0.0),
        "heat value": lambda: make["heat"](dt=-1.0 if odd else 0.01),
        "poisson boundary": lambda: make["poisson"](boundary=neumann if odd else 0.0),
        "lmsor dtype": lambda: make["lmsor"](dtype="float32" if odd else "float64"),
        "plate omega": lambda: make["plate"](omega=1.6 if odd else 1.5),
    }
    for name, call in calls.items():
        attempt(group, name, call)


def sizes(group):
    """The message of rank 1 is longer than the others expect."""
    own = np.zeros(3 if group.rank == 1 else 2)
    attempt(group, "sizes", lambda: group.allgather("test", own))


def midway(group, how):
    """Rank 1 raises an error in the middle of a run: it ends, or makes another call."""

    def callback(solver):
        if group.rank == 1 and solver.steps == 3:
            raise RuntimeError("no data")

    solver = heat(group)
    if how == "ends" and group.rank == 1:
        solver.run(0.1, callback=callback, interval=1)
    attempt(group, "run", lambda: solver.run(0.1, callback=callback, interval=1))
    attempt(group, "next", lambda: heat(group))


def lose(group, how):
    """Rank 1 ends or stops between two calls; the others say what they raised, and when."""
    part = part_of(group)
    solve(group, part)
    if group.rank == 1:
        if how == "exit":
            raise SystemExit(3)
        if how == "leave":
            return
        os.kill(os.getpid(), signal.SIGKILL if how == "kill" else signal.SIGSTOP)
    start = time.monotonic()
    for _ in range(2):
        try:
            solve(group, part)
        except DistributedError as error:
            seconds = time.monotonic() - start
            note(group, error.ranks, f"{seconds:.1f}", error)
    raise SystemExit(4)


def nccl(group, how):
    """A message between devices does not arrive, or NCCL reports an error, or a rank ends."""
    import device_heat

    kinds = {"silent": shared_nccl.SilentCommunicator, "failing": shared_nccl.FailingCommunicator}
    kind = kinds.get(how, shared_nccl.Communicator) if group.rank == 1 else shared_nccl.Communicator
    with shared_device.in_place_of_cuda() as device, shared_nccl.in_place_of_nccl(device, kind):
        device.path.unlink()  # no other rank opens it, and the job can end before this context does
        repeated = anew(group, links=("nccl",), timeout=20 if how == "ends" else 1)
        if how == "ends":
            end_before_messages(group, repeated)
            return
        problem = device_heat.fine(device_heat.PROBLEMS["values"])
        solver = device_heat.OnDevice(**problem, group=repeated, split=Slab(0))
        attempt(group, "run", lambda: solver.step(200))
        attempt(group, "next", lambda: heat(repeated))


def kernel(group, how):
    """Rank 1 ends, or raises, while the kernels of the others wait for it."""
    import ranks_repeats

    with shared_parts.in_place_of_cuda() as (device, _):
        repeated = anew(group, links=("peers",), timeout=20)
        operands = ranks_repeats.Operands(
            repeated, device, [np.full(SHAPE, value) for value in (-1.0, 4.0, -1.0, 1.0)]
        )
        for _ in range(3):
            operands.solve(repeated)
        device.path.unlink()  # the job can end before this context does
        if group.rank == 1:
            if how == "exit":
                raise SystemExit(3)
            raise RuntimeError("no data")
        attempt(group, "run", lambda: operands.solve(repeated))
        attempt(group, "next", lambda: operands.solve(repeated))


def end_before_messages(group, repeated):
    """Rank 1 ends by an error after the ranks met, while the others wait for its halo."""
    halo = halo_between(repeated, field_on_device((9, 5)), 0, 1)
    halo.post("u")
    repeated.objects("test", None)
    halo.passed()
    if group.rank == 1:
        raise RuntimeError("no data")
    attempt(group, "run", lambda: halo.complete("u"))
    attempt(group, "next", lambda: halo.refresh("u"))


def first(group):
    """Rank 1 ends after its part of a call that takes rank 2 longer than rank 1's end takes."""
    if group.rank == 2:
        time.sleep(1.5)
        group.exchange("test", {0: np.arange(5.0)}, {})
        return
    if group.rank == 1:
        group.exchange("test", {0: np.arange(7.0)}, {})
        return
    found = {1: np.zeros(7), 2: np.zeros(5)}
    group.exchange("test", {}, found)
    right = (np.array_equal(found[rank], np.arange(len(found[rank]))) for rank in found)
    note(group, "first", *right)


def survived(group):
    """All faults after which the job ends without an error."""
    differ(group)
    solvers_differ(group)
    first(group)


def die(group):
    """Rank 1 is killed in the middle of a run."""

    def callback(solver):
        if group.rank == 1 and solver.steps == 5:
            os.kill(os.getpid(), signal.SIGKILL)

    attempt(group, "run", lambda: heat(group).run(0.5, callback=callback, interval=1))


def loop(group):
    """Solve until an interrupt; every rank says that it came."""
    part = part_of(group)
    note(group, "begun")
    try:
        while True:
            solve(group, part)
    except KeyboardInterrupt:
        note(group, "interrupted")
        raise


if __name__ == "__main__":
    _, what, *arguments = sys.argv[1:]
    shorten_the_end()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell ignores it
    globals()[what](Group(timeout=2 if what == "die" or "stop" in arguments else 20), *arguments)

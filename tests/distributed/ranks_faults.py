"""Jobs in which a rank differs, fails or ends; see test_distributed.py."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

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


def lose(group, how):
    """Rank 1 ends or stops between two calls; the others say what they raised, and when."""
    part = part_of(group)
    solve(group, part)
    if group.rank == 1:
        if how == "exit":
            raise SystemExit(3)
        os.kill(os.getpid(), signal.SIGKILL if how == "kill" else signal.SIGSTOP)
    start = time.monotonic()
    for _ in range(2):
        try:
            solve(group, part)
        except DistributedError as error:
            seconds = time.monotonic() - start
            note(group, error.ranks, f"{seconds:.1f}", error)
    raise SystemExit(4)


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
    signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell ignores it
    globals()[what](Group(timeout=2 if what == "lose" else 20), *arguments)

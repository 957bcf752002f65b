"""Measure solves of lines that are cut over ranks, their stages, and the messages.

Each rank has one thread, or one GPU. The matrices are those of every line, or one for all lines
whose factors are kept; rows along the last axis, dominant, so that what couples two ranks decays
within some ten rows. For the first size also matrices (-1, 2, -1) of every line, in which it decays
in no row (`slow`). Of each call the slowest rank counts,
and of all calls the fastest one, also for each stage, so that other processes of the machine
disturb little. In the same run: the solve of the part of a rank `alone`, without the other ranks,
and the solve with row exchanges, which sends whole lines to the ranks and back (`whole lines`).

The first size is also that of the other systems that can be cut: recurrences, whose values decay or
not, blocks of 2 and five diagonals, in the same number of unknowns, with the part of a rank alone.

The stages are those of `pysolvers.papers.logp1993.CostModel`. `exchange` contains the time in which
a rank waits for the others. The constants of the model are fitted to the first size; the record has
the time of the model for all sizes.

    python -m pysolvers bench distributed --ranks 1 2 4      # jobs on this host
    mpirun -n 8 python -m pysolvers bench distributed        # the ranks of this launcher only
    mpirun -n 2 python -m pysolvers bench distributed --device cuda

Needs the extra 'mpi'; with --device cuda CuPy, and rank r uses device r.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np

from pysolvers import (
    factor_tridiagonal,
    linear_recurrence,
    solve_block_tridiagonal,
    solve_pentadiagonal,
    solve_tridiagonal,
)
from pysolvers.cases.tables import Column, Table
from pysolvers.distributed import Group, Slab
from pysolvers.distributed._ends import Matrices
from pysolvers.papers.logp1993 import CostModel

from .options import add_options, positive
from .ranks import clock_of, printed_by, values_of_ranks
from .record import Measurement, Record, finish
from .timing import samples_of

SIZES = ((4096, 1024), (512, 8192), (512, 256))  # rows of all ranks, lines
MESSAGES = tuple(8 << k for k in range(0, 24, 3))  # bytes
MANY = 200  # messages at once
MODEL_RANKS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
MODEL_SIZE = 65536, 4096  # rows, lines
NUMBERS = {"own": 7, "shared": 2}

# Function of the package -> stage; what follows the exchange up to the substitution, without
# comparisons of the ranks, is the solution of the reduced systems.
STAGES = {
    (Matrices, "reduce"): "elimination",
    (Matrices, "spikes"): "elimination",
    (Matrices, "eliminate"): "elimination",
    (Group, "allgather"): "exchange",
    (Group, "objects"): "comparison",
    (Matrices, "substitute"): "substitution",
}


class Stages:
    """Seconds by stage of one call, while the functions of `STAGES` are timed."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inside = False
        self._exchanged: float | None = None  # end of the exchange

    def _timed(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if self._inside:
                return function(*args, **options)
            start = perf_counter()
            if self._exchanged is not None:
                self._add("reduced systems", start - self._exchanged)
                self._exchanged = None
            self._inside = True
            try:
                return function(*args, **options)
            finally:
                self._inside = False
                end = perf_counter()
                self._add(stage, end - start)
                if stage == "exchange":
                    self._exchanged = end

        return call

    def _add(self, stage: str, seconds: float) -> None:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Time the functions of the package."""
        patches = [
            patch.object(owner, name, self._timed(getattr(owner, name), stage))
            for (owner, name), stage in STAGES.items()
        ]
        for one in patches:
            one.start()
        try:
            yield
        finally:
            for one in patches:
                one.stop()


def arrays_on(device: str) -> tuple[Callable[[Any], Any], Callable[[], None]]:
    """Return what brings an array to the device, and what waits for the device."""
    if device == "cpu":
        return np.asarray, lambda: None
    import cupy

    cupy.cuda.Device(int(device.partition(":")[2])).use()
    return cupy.asarray, cupy.cuda.Device().synchronize


def fastest(
    group: Group, call: Callable[[], Any], wait: Callable[[], None], calls: int
) -> tuple[float, dict[str, float]]:
    """Return the seconds of the fastest call, and of each stage, the mean of the ranks."""
    best, of_stages = float("inf"), dict[str, float]()
    for _ in range(calls + 1):
        stages = Stages()
        group.objects("benchmark", None)  # the ranks begin together
        with stages.measured():
            start = perf_counter()
            call()
            wait()
            seconds = perf_counter() - start
        found = group.objects("benchmark", (seconds, stages.seconds))
        best = min(best, max(seconds for seconds, _ in found))
        for name in found[0][1]:
            mean = sum(own[name] for _, own in found) / group.size
            of_stages[name] = min(mean, of_stages.get(name, mean))
    return best, of_stages


def measured_size(
    group: Group, rows: int, lines: int, dtype: str, device: str, calls: int, *, slow: bool
) -> Iterator[Record]:
    """Yield the times of one size, for each kind of matrices; `slow`: also the slow ones."""
    to_device, wait = arrays_on(device)
    part = Slab(-1).part(rows, group.rank, group.size)
    own = lines, part.stop - part.start
    rng = np.random.default_rng(group.rank)
    lower, upper, rhs = (to_device(rng.uniform(-1, 1, own).astype(dtype)) for _ in range(3))
    diag = to_device(rng.uniform(3, 4, own).astype(dtype))
    out = to_device(np.empty(own, dtype))
    matrix = lower, diag, upper
    one = [values[0] for values in matrix]
    where: dict[str, Any] = {"device": device, "threads": 1}
    split: dict[str, Any] = {"group": group, "split": Slab(-1)}
    factor = factor_tridiagonal(*one, **where, **split)
    alone = factor_tridiagonal(*one, **where)
    _, info = solve_tridiagonal(*matrix, rhs, return_info=True, **where, **split)
    calls_of: dict[str, dict[str, Callable[[], Any]]] = {
        "own": {
            "seconds": lambda: solve_tridiagonal(*matrix, rhs, out=out, **where, **split),
            "alone": lambda: solve_tridiagonal(*matrix, rhs, out=out, **where),
            "whole lines": lambda: solve_tridiagonal(
                *matrix, rhs, out=out, pivot=True, **where, **split
            ),
        },
        "shared": {
            "seconds": lambda: factor.solve(rhs, out=out),
            "alone": lambda: alone.solve(rhs, out=out),
        },
    }
    if slow:
        laplace = [to_device(np.full(own, value, dtype)) for value in (-1, 2, -1)]
        calls_of["slow"] = {
            "seconds": lambda: solve_tridiagonal(*laplace, rhs, out=out, **where, **split),
            "alone": lambda: solve_tridiagonal(*laplace, rhs, out=out, **where),
        }
    for kind, functions in calls_of.items():
        found = {name: fastest(group, call, wait, calls) for name, call in functions.items()}
        yield {
            "ranks": group.size,
            "rows": rows,
            "lines": lines,
            "matrix": kind,
            "exchange": factor.info.exchange if kind == "shared" else info.exchange,
            **{name: seconds for name, (seconds, _) in found.items()},
            "stages": found["seconds"][1],
        }


def measured_systems(
    group: Group, rows: int, lines: int, dtype: str, device: str, calls: int
) -> Iterator[Record]:
    """Yield the times of the other systems that can be cut, with as many unknowns as a size."""
    to_device, wait = arrays_on(device)
    part = Slab(-1).part(rows, group.rank, group.size)
    own = lines, part.stop - part.start
    pairs = own[0], own[1] // 2, 2, 2
    rng = np.random.default_rng(group.rank)

    def uniform(shape: tuple[int, ...], low: float = -1, high: float = 1) -> Any:
        return to_device(rng.uniform(low, high, shape).astype(dtype))

    rhs, out = uniform(own), to_device(np.empty(own, dtype))
    near = [uniform(own) for _ in range(4)]
    split: dict[str, Any] = {"group": group, "split": Slab(-1)}
    calls_of: dict[str, Callable[..., Any]] = {
        "recurrence": partial(linear_recurrence, uniform(own, 0.3, 0.9), rhs),
        "recurrence, slow": partial(linear_recurrence, uniform(own, -1, -0.9999), rhs),
        "five diagonals": partial(
            solve_pentadiagonal, near[0], near[1], uniform(own, 6, 7), near[2], near[3], rhs
        ),
        "blocks of 2": partial(
            solve_block_tridiagonal,
            uniform(pairs),
            uniform(pairs) + to_device(6 * np.eye(2, dtype=dtype)),
            uniform(pairs),
            rhs.reshape(*pairs[:3], 1),
        ),
    }
    for system, call in calls_of.items():
        to = out.reshape(*pairs[:3], 1) if system == "blocks of 2" else out
        own_call = partial(call, out=to, device=device, threads=1)
        seconds, stages = fastest(group, partial(own_call, **split), wait, calls)
        alone, _ = fastest(group, own_call, wait, calls)
        size: Record = {"system": system, "rows": rows, "lines": lines, "ranks": group.size}
        yield size | {"seconds": seconds, "alone": alone, "stages": stages}


def measured_messages(group: Group, calls: int) -> list[Record]:
    """Return the times in which each rank sends as many bytes to every other one."""
    found = []
    for octets in MESSAGES if group.size > 1 else ():
        mine = np.zeros(octets, np.uint8)
        call = {"": lambda mine=mine: group.allgather("benchmark", mine)}
        times = samples_of(call, 4 * calls, clock=clock_of(group))[""]
        found.append({"ranks": group.size, "bytes": octets, "seconds": min(times)})
    return found


def measured_gap(calls: int) -> float:
    """Return the seconds of one of many short messages that two ranks send each other at once."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank > 1 or comm.size == 1:
        return 0.0
    numbers = np.zeros((2 * MANY, 1))
    times = []
    for _ in range(4 * calls):
        comm.sendrecv(None, 1 - comm.rank, source=1 - comm.rank)
        start = perf_counter()
        requests = [comm.Irecv(numbers[k], 1 - comm.rank) for k in range(MANY)]
        requests += [comm.Isend(numbers[MANY + k], 1 - comm.rank) for k in range(MANY)]
        MPI.Request.Waitall(requests)
        times.append(perf_counter() - start)
    return min(times) / MANY


def measure(args: argparse.Namespace) -> Record:
    """Return the values of the ranks of this job; collective."""
    group = Group()
    device = "cpu" if args.device == "cpu" else f"cuda:{group.rank}"
    sizes = [(rows * args.scale[0], lines * args.scale[1]) for rows, lines in SIZES]
    # For weak scaling, the first size also with half of its rows for each rank.
    sizes.append((sizes[0][0] // 2 * group.size, sizes[0][1]))
    cases: list[Record] = []
    for rows, lines in dict.fromkeys(sizes):
        slow = (rows, lines) == sizes[0]
        cases += measured_size(group, rows, lines, args.dtype, device, args.calls, slow=slow)
    systems = [*measured_systems(group, *sizes[0], args.dtype, device, args.calls)]
    messages = measured_messages(group, args.calls)
    gap = measured_gap(args.calls)
    return {"cases": cases, "systems": systems, "messages": messages, "gap": gap}


def fitted(found: Record, kind: str, itemsize: int) -> CostModel:
    """Return the model with the constants of one kind of matrices.

    They are those of the largest number of ranks, at the first size; those of the reduced systems
    at the size with the most lines. The fixed part is what the smallest size takes in addition to
    the other terms.
    """
    own = [case for case in found["cases"] if case["matrix"] == kind]
    most = max(case["ranks"] for case in own)
    messages = [message for message in found["messages"] if message["ranks"] == most]
    first = next(case for case in own if case["ranks"] == most)
    size = {name: first[name] for name in ("rows", "lines")}
    widest = max((c for c in own if c["ranks"] == most), key=lambda c: c["lines"])
    single = next(c for c in own if c["ranks"] == 1 and all(c[k] == size[k] for k in size))
    unknowns, stages = first["rows"] * first["lines"] / most, first["stages"]
    short, long = messages[0], messages[-1]
    per_octet = (long["seconds"] - short["seconds"]) / (long["bytes"] - short["bytes"])
    constants = {
        "whole": single["seconds"] / (unknowns * most),
        "elimination": stages["elimination"] / unknowns,
        "substitution": stages["substitution"] / unknowns,
        "reduced": widest["stages"]["reduced systems"] / (most * widest["lines"]),
        "latency": max(short["seconds"] - (most - 1) * found["gap"], 0.0),
        "gap": found["gap"],
        "bandwidth": (most - 1) / per_octet,
        "numbers": NUMBERS[kind],
    }
    small = min((c for c in own if c["ranks"] == most), key=lambda c: c["seconds"])
    model = CostModel(**constants)
    rest = small["seconds"] - model.seconds(small["rows"], small["lines"], most, itemsize=itemsize)
    return CostModel(**constants, overhead=max(rest, 0.0))


def jobs(args: argparse.Namespace) -> Record:
    """Return the values of jobs of all numbers of ranks on this host."""
    merged: Record = {"cases": [], "systems": [], "messages": [], "gap": 0.0}
    for ranks in args.ranks:
        options = ["--calls", str(args.calls), "--dtype", args.dtype, "--device", args.device]
        found = printed_by("distributed", ranks, [*options, "--scale", *map(str, args.scale)])
        for key in ("cases", "systems", "messages"):
            merged[key] += found[key]
        merged["gap"] = found["gap"]
    return merged


def record_of(args: argparse.Namespace, found: Record) -> Record:
    """Return the record: machine, measured values, and the fitted model."""
    measurement = Measurement("distributed", ("mpi4py", "mpich"), gpu=args.device == "cuda")
    models: Record = {}
    ranks = {case["ranks"] for case in found["cases"]}
    itemsize = np.dtype(args.dtype).itemsize
    for kind in NUMBERS if 1 in ranks and len(ranks) > 1 and args.device == "cpu" else ():
        model = fitted(found, kind, itemsize)
        models[kind] = asdict(model)
        for case in found["cases"]:
            if case["matrix"] == kind:
                size = case["rows"], case["lines"], case["ranks"]
                case["model"] = model.seconds(*size, itemsize=itemsize)
    settings = {"dtype": args.dtype, "device": args.device, "calls": args.calls}
    more = {key: value for key, value in found.items() if key != "cases"}
    return measurement.record(found["cases"], settings, **more, models=models)


def tables(record: Record) -> list[Table]:
    """Return the tables of a record: stages, predictions for more ranks, other systems."""
    found = [measured(record), predicted(record)] if record["models"] else [measured(record)]
    return [*found, other_systems(record)] if "systems" in record else found


def measured(record: Record) -> Table:
    """Return the table of the stages of solves on the ranks of one host."""
    names = ("elimination", "exchange", "reduced systems", "substitution", "comparison")
    rows = []
    for entry in record["cases"]:
        times = [entry["seconds"], entry.get("model"), *map(entry["stages"].get, names)]
        times.append(entry.get("whole lines") if entry["ranks"] > 1 else None)
        size = (entry[key] for key in ("matrix", "rows", "lines", "ranks"))
        rows.append((*size, *(None if time is None else 1e3 * time for time in times)))
    columns = [Column("matrix"), Column("rows"), Column("lines"), Column("ranks")]
    columns += [Column(name, ".2f") for name in ("ms", "model", *names, "whole lines")]
    machine = record["machine"]
    note = (
        "Times in ms, float64, one thread a rank; the fastest of "
        f"{record['settings']['calls']} calls, for each stage by itself. *Comparison*: the ranks "
        "compare the arguments, and whether a rank failed. *Whole lines*: with `pivot=True`. "
        "*Slow*: the matrices (-1, 2, -1) of every line, whose ends reach all rows. "
        f"Measured on {machine['cpu']}, {machine['cpus']} cores, MPICH in "
        f"shared memory; load of the machine before: {record['load']:.1f}."
    )
    return Table("", columns, rows, (note,))


def other_systems(record: Record) -> Table:
    """Return the table of the other systems that can be cut."""
    rows = []
    for entry in record["systems"]:
        size = (entry[key] for key in ("system", "rows", "lines", "ranks"))
        waits = [entry["stages"].get(name) for name in ("exchange", "comparison")]
        times = (entry["seconds"], entry["alone"], *waits)
        rows.append((*size, *(None if time is None else 1e3 * time for time in times)))
    columns = [Column("system", left=True), Column("rows"), Column("lines"), Column("ranks")]
    columns += [Column(name, ".2f") for name in ("ms", "alone", "exchange", "comparison")]
    machine = record["machine"]
    note = (
        f"Times in ms, {record['settings']['dtype']}, as above. *Alone*: the part of a rank, "
        "without the others. The values of a *slow* recurrence reach all rows after them. Measured "
        f"on {machine['cpu']}, {machine['cpus']} cores; load of the machine before: "
        f"{record['load']:.1f}."
    )
    return Table("", columns, rows, (note,))


def predicted(record: Record) -> Table:
    """Return the table of the times of the model for more ranks."""
    found = CostModel(**record["models"]["own"])
    rows, lines = MODEL_SIZE
    stages = list(found.stages(rows, lines, 1))[1:]
    one = found.seconds(rows, lines, 1)
    cells = []
    for count in MODEL_RANKS:
        times = found.stages(rows, lines, count)
        total, other = (
            found.seconds(rows, lines, count, reduced_on=ranks) for ranks in ("all", "shares")
        )
        smaller = ("all" if total <= other else "in shares") if count > 1 else ""
        shares = 1e3 * other if count > 1 else None
        predictions = (*(1e3 * times[stage] for stage in stages), 1e3 * total)
        cells.append((count, *predictions, one / count / total, shares, smaller))
    columns = [Column("ranks"), *(Column(name, ".1f") for name in (*stages, "all"))]
    columns += [Column("efficiency", ".0%"), Column("in shares", ".1f")]
    note = (
        f"Predicted times in ms: {lines} lines of {rows} rows, float64, own matrices, with the "
        "constants of the record above for any number of ranks. *In shares*: each rank would solve "
        "the reduced systems of its share of the lines, which this package does not do."
    )
    return Table("", [*columns, Column("smaller", left=True)], cells, (note,))


TAKES_RANKS = True  # of an MPI launcher


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, "ranks", "device")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--calls", type=positive, default=15, help="of a case (%(default)d)")
    parser.add_argument(
        "--scale", type=positive, nargs=2, default=[1, 1], help="factors of all rows, of all lines"
    )


def run(args: argparse.Namespace) -> int:
    """Measure, print the tables and write the record."""
    found = values_of_ranks(args, lambda: measure(args), lambda: jobs(args))
    if found is None:
        return 0
    record = record_of(args, found)
    finish(args, record, tables(record))
    return 0

"""Measure the scaling of solvers whose fields are split over ranks: HeatADI, LMSOR and GCEIDD.

Each rank has one GPU, or one thread. The fields are split by `Slab(0)`. Strong scaling: the same
field for any number of ranks; weak scaling: a cube for each rank, joined along the split axis. A
case is made of calls of some steps; of each call the slowest rank counts, and the median of the
calls. One rank is the solver without a group. The efficiency is the time of one rank over that of
the ranks, for strong scaling over their number as well. Each call of LMSOR measures its last
iteration.

    python -m pysolvers bench slabs                          # jobs of 1 and 2 ranks on GPUs
    python -m pysolvers bench slabs --ranks 1 2 4 --cube 1024 --json FILE
    python -m pysolvers bench slabs --ranks 1                # one device
    python -m pysolvers bench slabs --device cpu --plane 1024 --cube 96
    python -m pysolvers bench slabs --ways peers nccl host   # each way in a job of its own

Needs the extra 'mpi' for more than one rank. Rank r uses device r, or the devices in turn if there
are fewer: the times of ranks that share a device say nothing of scaling.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from pysolvers import (
    GCEIDD,
    LMSOR,
    ConvectionDiffusion,
    HeatADI,
    SteadyConvectionDiffusion,
)
from pysolvers._runtime import backends
from pysolvers.cases.records import write_record
from pysolvers.distributed import WAYS, Group, Slab

from . import machine
from .ranks import is_rank, printed_by, write_as_rank

RATIO = 0.5  # k dt/h^2 of HeatADI
STEPS = 128  # of a call
STRIP = 16  # cells of a strip of GCEIDD, as many as its kernels hold in registers

Record = dict[str, Any]


def heat(shape: tuple[int, ...], dtype: type, **options: Any) -> HeatADI:
    """Return a solver of a plane or a box that cools from 1 to the 0 of its sides.

    Its first step is not damped: array operations on the host, which are not measured here, would
    take minutes for the largest boxes.
    """
    options |= {"boundary": 0.0, "initial": 1.0, "damped_start": False}
    return HeatADI(shape, 1.0, RATIO, dtype=dtype, **options)


def relaxation(size: int, **options: Any) -> LMSOR:
    """Return a solver of convection that turns, so that every node has its own parameter."""
    problem = SteadyConvectionDiffusion(
        lambda x, y: 30 * (2 * y - 1) * (x + 1),
        lambda x, y: -20 * (2 * x - 1),
        shape=(size, size),
        extent=((0.0, 1.0), (0.0, 1.0)),
        boundary=lambda x, y: x * y,
        differences="central",
    )
    return LMSOR(problem, **options)


def transport(size: int, **options: Any) -> GCEIDD:
    """Return a solver of a wave that is carried along the diagonal."""
    problem = ConvectionDiffusion(
        velocity=(0.8, 0.4),
        diffusion=1e-3,
        initial=lambda x, y: np.sin(np.pi * x) * np.sin(np.pi * y),
        extent=((0.0, 1.0), (0.0, 1.0)),
        boundary=0.0,
    )
    strips = max(size // STRIP, 1)
    return GCEIDD(problem, shape=(size, size), dt=0.5 / size, strips=strips, **options)


def cases(args: argparse.Namespace, ranks: int) -> Iterator[tuple[str, str, Callable[..., Any]]]:
    """Yield name, kind of scaling and maker of each case."""
    plane = (args.plane, args.plane)
    cube = (args.cube * ranks, args.cube, args.cube)
    yield "HeatADI plane float32", "strong", lambda **o: heat(plane, np.float32, **o)
    yield "HeatADI plane float64", "strong", lambda **o: heat(plane, np.float64, **o)
    yield "HeatADI cubes float64", "weak", lambda **o: heat(cube, np.float64, **o)
    yield "LMSOR float64", "strong", lambda **o: relaxation(args.plane, **o)
    yield "GCEIDD float64", "strong", lambda **o: transport(args.plane, **o)


def seconds_of(group: Group, call: Callable[[int], Any], count: int, calls: int) -> float:
    """Return the seconds of a call, of the slowest rank; the median of the calls."""
    call(count)
    times = []
    for _ in range(calls):
        group.objects("benchmark", None)  # the ranks begin together
        start = perf_counter()
        call(count)
        times.append(max(group.objects("benchmark", perf_counter() - start)))
    return median(times)


def measure(args: argparse.Namespace) -> list[Record]:
    """Return the cases of the ranks of this job; collective."""
    group = Group(ways=args.ways[0].split(","))
    options: dict[str, Any] = {"device": "cpu", "threads": 1}
    if args.device == "cuda":
        options = {"device": f"cuda:{group.rank % backends.require('cuda').device_count()}"}
    if group.size > 1:
        options |= {"group": group, "split": Slab(0)}
    found = []
    for name, scaling, make in cases(args, group.size):
        if args.only and not name.startswith(tuple(args.only)):
            continue
        solver = make(**options)
        call = solver.iterate if isinstance(solver, LMSOR) else solver.step
        seconds = seconds_of(group, call, args.steps, args.calls) / args.steps
        record: Record = {"case": name, "scaling": scaling, "ranks": group.size}
        record |= {"shape": solver.shape, "seconds": seconds}
        result = solver.result()
        record |= {"kernel": result.kernel, "exchange": getattr(result, "exchange", None)}
        found.append(record)
        if group.rank == 0:
            print(f"{name}, {group.size} ranks: {1e3 * seconds:.4f} ms", file=sys.stderr)
        del solver, result
    return found


def jobs(args: argparse.Namespace) -> list[Record]:
    """Return the cases of jobs of all numbers of ranks on this host."""
    values = {"device": args.device, "plane": args.plane, "cube": args.cube}
    values |= {"steps": args.steps, "calls": args.calls}
    options = [word for name, value in values.items() for word in (f"--{name}", str(value))]
    options += ["--only", *args.only] if args.only else []
    found = []
    for ranks in args.ranks:
        for ways in args.ways if ranks > 1 else args.ways[:1]:
            found += printed_by("slabs", ranks, [*options, "--ways", ways])
    return found


def add_efficiencies(found: list[Record]) -> None:
    """Add the efficiency to each case that was measured with one rank as well."""
    alone = {case["case"]: case["seconds"] for case in found if case["ranks"] == 1}
    for case in found:
        if case["case"] in alone:
            work = case["ranks"] if case["scaling"] == "strong" else 1
            case["efficiency"] = alone[case["case"]] / (work * case["seconds"])


TAKES_RANKS = True  # of an MPI launcher


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--plane", type=int, default=8192, help="nodes of a side (%(default)d)")
    parser.add_argument("--cube", type=int, default=512, help="the same (%(default)d)")
    parser.add_argument("--steps", type=int, default=STEPS, help="of a call (%(default)d)")
    parser.add_argument("--calls", type=int, default=5, help="of a case (%(default)d)")
    parser.add_argument(
        "--ways",
        nargs="+",
        default=[",".join(WAYS)],
        help="between devices, separated by commas: the first possible one is taken (%(default)s); "
        "several of these lists are measured one after the other",
    )
    parser.add_argument("--only", nargs="+", default=[], help="beginnings of the names of cases")
    parser.add_argument("--json", help="file of the record; - prints the values of a job")


def run(args: argparse.Namespace) -> int:
    """Measure, print a table, and write the record."""
    if is_rank(args.json):
        found = measure(args)
        if write_as_rank(found, args.json):
            return 0
    else:
        found = jobs(args)
    add_efficiencies(found)
    print("case                     ranks         ms  efficiency  exchange")
    for case in found:
        efficiency = f"{100 * case['efficiency']:.0f} %" if "efficiency" in case else ""
        print(
            f"{case['case']:24} {case['ranks']:5d} {1e3 * case['seconds']:10.4f} "
            f"{efficiency:>11}  {case['exchange'] or ''}"
        )
    if args.json:
        record = {
            "benchmark": "solvers split over ranks",
            "machine": machine.machine(),
            "gpu": machine.gpu() if args.device == "cuda" else None,
            "versions": machine.versions("pysolvers", "numpy", "mpi4py", "mpich"),
            "cases": found,
        }
        write_record(args.json, record)
    return 0

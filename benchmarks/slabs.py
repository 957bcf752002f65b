"""The scaling of solvers whose fields are split over ranks: HeatADI, LMSOR, GCEIDD, FastPoisson.

Each rank has one GPU, or one thread. The fields are split by `Slab(0)`. Strong scaling: the same
field for any number of ranks; weak scaling: a cube for each rank, joined along the split axis. A
case is made of calls of some steps; of each call the slowest rank counts, and the median of the
calls. One rank is the solver without a group. The efficiency is the time of one rank over that of
the ranks, for strong scaling over their number as well. Each call of LMSOR measures its last
iteration. FastPoisson solves for right sides that lie on the device, by CuPy; boxes of more than
512^3 cells take fewer steps a call.

`link` of a record is what each GPU copies to the next one in a second, all GPUs at once, in the
same run. With it the time of two all-to-all exchanges is shown, by which a split axis would become
whole and split again: FastPoisson exchanges the ends of its lines instead.

    python -m pysolvers bench slabs --ranks 1                # one device
    python -m pysolvers bench slabs --device cpu --plane 1024 --cube 96 --box 96
    python -m pysolvers bench slabs --links peers nccl host   # each link in a job of its own

Needs the extra 'mpi' for more than one rank. Rank r uses device r, or the devices in turn if there
are fewer: the times of ranks that share a device say nothing of scaling.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from typing import Any

import numpy as np

from pysolvers import (
    GCEIDD,
    LMSOR,
    ConvectionDiffusion,
    FastPoisson,
    HeatADI,
    SteadyConvectionDiffusion,
)
from pysolvers._repr import shape_text
from pysolvers._runtime import backends
from pysolvers.cases.tables import Column, Table
from pysolvers.distributed import Group, Slab
from pysolvers.distributed._group import LINKS

from .options import add_options, positive
from .parts import link_bandwidth
from .ranks import cases_of_jobs, clock_of, guarded, values_of_ranks, without_failures
from .record import Measurement, Record, finish, place
from .timing import median_of

RATIO = 0.5  # k dt/h^2 of HeatADI
STEPS = 128  # of a call
BOXES = (512, 1024)  # of FastPoisson
STRIP = 16  # cells of a strip of GCEIDD, as many as its kernels hold in registers


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


class Poisson:
    """A solver of a box with values at its sides, and a right side."""

    kernel = ""

    def __init__(self, size: int, dtype: type, **options: Any) -> None:
        self.shape = (size, size, size)
        problem: dict[str, Any] = {"boundary": 0.0, "grid": "cells", "dtype": dtype}
        self._solver = FastPoisson(self.shape, 1.0, **problem, **options)
        group, device = options.get("group"), options["device"]
        planes = len(range(size)[Slab(0).part(size, group.rank, group.size)]) if group else size
        own = (planes, size, size)
        self.exchange = self._solver.exchange
        self._wait: Callable[[], object] = int
        if device == "cpu":
            self._f: Any = np.random.default_rng(1).random(own, dtype)
        else:
            import cupy

            cupy.cuda.Device(int(device.partition(":")[2])).use()
            self._f = cupy.random.default_rng(1).random(own, dtype)
            self._wait = cupy.cuda.Device().synchronize
        self._out = self._f.copy()

    def step(self, count: int) -> None:
        """Solve some times."""
        for _ in range(count):
            self._solver.solve(self._f, out=self._out)
        self._wait()

    def result(self) -> "Poisson":
        """Return what has the name of the kernel, and of the exchange."""
        return self


Maker = Callable[..., Any]


def cases(args: argparse.Namespace, ranks: int) -> Iterator[tuple[str, str, int, Maker]]:
    """Yield name, kind of scaling, steps of a call and maker of each case."""
    steps = args.steps
    plane = (args.plane, args.plane)
    cube = (args.cube * ranks, args.cube, args.cube)
    yield "HeatADI plane float32", "strong", steps, lambda **o: heat(plane, np.float32, **o)
    yield "HeatADI plane float64", "strong", steps, lambda **o: heat(plane, np.float64, **o)
    yield "HeatADI cubes float64", "weak", steps, lambda **o: heat(cube, np.float64, **o)
    yield "LMSOR float64", "strong", steps, lambda **o: relaxation(args.plane, **o)
    yield "GCEIDD float64", "strong", steps, lambda **o: transport(args.plane, **o)
    for size in args.box:
        few = max(1, min(steps, steps * BOXES[0] ** 3 // size**3))
        for dtype in (np.float32, np.float64):
            name = f"FastPoisson {size} {np.dtype(dtype).name}"
            yield name, "strong", few, partial(Poisson, size, dtype)


def measure(args: argparse.Namespace) -> list[Record]:
    """Return the cases of the ranks of this job; collective."""
    group = Group(links=args.links[0].split(","))
    options: dict[str, Any] = {"device": "cpu", "threads": 1}
    if args.device == "cuda":
        options = {"device": f"cuda:{group.rank % backends.require('cuda').device_count()}"}
    if group.size > 1:
        options |= {"group": group, "split": Slab(0)}

    def case(name: str, scaling: str, count: int, make: Maker) -> Record:
        """Return the times of one case."""
        solver = make(**options)
        call: Any = solver.iterate if isinstance(solver, LMSOR) else solver.step
        steps = median_of(partial(call, count), args.calls, clock=clock_of(group))
        seconds = steps / count
        record: Record = {"case": name, "scaling": scaling, "ranks": group.size}
        record |= {"shape": solver.shape, "seconds": seconds}
        result = solver.result()
        record |= {"kernel": result.kernel, "exchange": getattr(result, "exchange", None)}
        if group.rank == 0:
            print(f"{name}, {group.size} ranks: {1e3 * seconds:.4f} ms", file=sys.stderr)
        return record

    wanted = tuple(args.only) if args.only else ("",)
    return [
        guarded(f"{name}, ranks {group.size}", partial(case, name, *more))
        for name, *more in cases(args, group.size)
        if name.startswith(wanted)
    ]


def jobs(args: argparse.Namespace) -> list[Record]:
    """Return the cases of jobs of all numbers of ranks on this host."""
    values = {"device": args.device, "plane": args.plane, "cube": args.cube}
    values |= {"steps": args.steps, "calls": args.calls}
    options = ["--box", *map(str, args.box)]
    options += [word for name, value in values.items() for word in (f"--{name}", str(value))]
    options += ["--only", *args.only] if args.only else []
    return cases_of_jobs(
        "slabs",
        (
            (ranks, [*options, "--links", link])
            for ranks in args.ranks
            for link in (args.links if ranks > 1 else args.links[:1])
        ),
    )


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
    add_options(parser, "quick", "ranks", device="cuda")
    numbers = {"plane": 8192, "cube": 512, "steps": STEPS, "calls": 5}
    texts = ("nodes of a side", "the same", "of a call", "of a case")
    for (name, default), text in zip(numbers.items(), texts, strict=True):
        help_text = f"{text} (%(default)d)"
        parser.add_argument(f"--{name}", type=positive, default=default, help=help_text)
    help_text = "cells of a side of FastPoisson (%(default)s)"
    parser.add_argument("--box", nargs="+", type=positive, default=list(BOXES), help=help_text)
    parser.add_argument(
        "--links",
        nargs="+",
        default=[",".join(LINKS)],
        help="between devices, separated by commas: the first possible one is taken (%(default)s); "
        "several of these lists are measured one after the other",
    )
    parser.add_argument("--only", nargs="+", default=[], help="beginnings of the names of cases")


def exchanges_of(case: Record, link: float) -> float | None:
    """Return the milliseconds of two all-to-all exchanges of a case of FastPoisson on GPUs."""
    name, *_, dtype = case["case"].split()
    ranks = case["ranks"]
    if ranks == 1 or name != "FastPoisson":
        return None
    return 2e3 * prod(case["shape"]) * np.dtype(dtype).itemsize * (ranks - 1) / ranks**2 / link


def tables(record: Record) -> list[Table]:
    """Return the table of a record."""
    rows, link = [], record.get("link")
    for entry in record["cases"]:
        name, *_, dtype = entry["case"].split()
        rows.append(
            (
                f"{name}, {dtype}",
                shape_text(entry["shape"]),
                entry["scaling"],
                entry["ranks"],
                (entry["exchange"] if entry["ranks"] > 1 else "") or "",
                1e3 * entry["seconds"],
                entry.get("efficiency"),
                *([exchanges_of(entry, link)] if link else []),
            )
        )
    columns = [
        Column("solver"),
        Column("nodes", left=True),
        Column("scaling", left=True),
        Column("GPUs" if record["gpu"] else "ranks"),
        Column("exchange", left=True),
        Column("ms", ".3f"),
        Column("efficiency", ".0%"),
        *([Column("all-to-all, ms", ".3f")] if link else []),
    ]
    what = ("GPU", "GPUs") if record["gpu"] else ("rank", "ranks")
    exchanges = (
        "*All-to-all*: two exchanges of the field at the speed of a copy from each GPU to the "
        f"next one, all at once ({1e-9 * link:.0f} GB/s in the same run). "
        if link
        else ""
    )
    note = (
        f"Milliseconds of a step or an iteration, of the slowest {what[0]}. *Efficiency*: the time "
        f"of one {what[0]} over that of the {what[1]}, for strong scaling over their number as "
        f"well. {exchanges}Measured on {place(record)}{', NVLink' if record['gpu'] else ''}."
    )
    return [Table("", columns, rows, (note,))]


def run(args: argparse.Namespace) -> int:
    """Measure, print the table and write the record."""
    if args.quick:
        args.plane, args.cube, args.box, args.steps, args.calls = 65, 17, [17], 4, 1
    packages = ("mpi4py", "mpich")
    found = values_of_ranks(args, lambda: measure(args), lambda: jobs(args))
    if found is None:
        return 0
    found, failed = without_failures(found)
    measurement = Measurement("slabs", packages, gpu=args.device == "cuda")
    add_efficiencies(found)
    settings = {"quick": args.quick, "steps": args.steps, "calls": args.calls}
    ranks, more = max(case["ranks"] for case in found), {}
    if args.device == "cuda" and 1 < ranks <= backends.require("cuda").device_count():
        more["link"] = link_bandwidth(ranks)
    record = measurement.record(found, settings, **more)
    finish(args, record, tables(record), failed=failed, count=ranks)
    return bool(failed)

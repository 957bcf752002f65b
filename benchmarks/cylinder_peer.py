"""Compare SquareCylinder at Re 100 with a lattice Boltzmann solver, lettuce, on one geometry.

Both compute the channel of `SquareCylinder`: length 50, height 8, cylinder of side 1 a quarter of
the length behind the parabolic inflow, Re 100 by the largest inflow velocity. lettuce
(`lettucecfd` 0.3.0 on PyTorch) has bounce-back walls half a cell outside the fluid nodes, and an
inflow and an outlet of equilibrium populations; its drag is the momentum that the nodes of the
cylinder reverse in a step. With its outlet of anti-bounce-back the populations grow without bound
where the outlet meets the walls. Its native CUDA kernels contain neither outlet, so that it runs as
operations of PyTorch. St is the frequency of v four sides behind the centre, Cd the mean of the
drag, both over the second half of the run.

The errors refer to the values that the grids of `SquareCylinder` approach: Richardson's
extrapolation of the two finest ones with order 1, that of the default wall formula, unless
`--strouhal` and `--drag` give other values. `seconds` is the time of the run, without its set-up.
The last lines compare each run of lettuce with the fastest run of this package that has at most the
same error.
Needs PyTorch and `lettucecfd`, whose version 0.3.0 asks for Python 3.12 (3.11 works with pip's
--ignore-requires-python).

    python -m pysolvers bench cylinder_peer  # on a GPU
    python -m pysolvers bench cylinder_peer --device cpu --grids 80 96 --sides 6 8 --until 80
"""

import argparse
import time
from typing import Any

from pysolvers._progress import progress
from pysolvers.cases.tables import Column, Table
from pysolvers.flow import SquareCylinder
from pysolvers.flow.cylinder._result import strouhal_of

from .options import add_options
from .record import Measurement, Record, finish, place

RE = 100.0
LENGTH, HEIGHT = 50, 8  # of the channel, in sides of the cylinder


def simulation(intervals: int, until: float, device: str, dtype: str) -> dict[str, Any]:
    """Return time, Strouhal number and drag of SquareCylinder."""
    shape = intervals + 1, round(intervals / 10) * LENGTH + 1
    cylinder = SquareCylinder(RE, shape, device=device, dtype=dtype).step(1)
    start = time.perf_counter()
    history = cylinder.run(until, progress=False).history
    seconds = time.perf_counter() - start
    late = history.probe_time > until / 2
    return {
        "solver": "pysolvers",
        "cells": intervals,
        "steps": cylinder.steps,
        "seconds": seconds,
        "strouhal": strouhal_of(history.probe_time[late], history.v[late, 0]).value,
        "drag": float(history.drag[history.time > until / 2].mean()),
    }


def extrapolated(rows: list[dict[str, Any]], name: str) -> float:
    """Return the value that the two finest grids approach with order 1."""
    coarse, fine = rows[-2:]
    ratio = fine["cells"] / coarse["cells"]
    return float((ratio * fine[name] - coarse[name]) / (ratio - 1))


def as_accurate(rows: list[dict[str, Any]], name: str, error: float) -> dict[str, Any] | None:
    """Return the fastest run with at most this error, or None."""
    found = [row for row in rows if row["errors"][name] <= error]
    return min(found, key=lambda row: row["seconds"], default=None)


def tables(record: Record) -> list[Table]:
    """Return the table of a record: both solvers on one geometry."""
    rows = []
    for entry in record["cases"]:
        is_ours = entry["solver"] == "pysolvers"
        cells = entry["cells"] // HEIGHT if is_ours else entry["cells"]
        names = ("steps", "seconds", "strouhal", "drag")
        steps, seconds, strouhal, drag = (entry[name] for name in names)
        errors = entry["errors"]
        row = (strouhal, errors["strouhal"], drag, errors["drag"])
        rows.append((entry["solver"], cells, steps, seconds, *row))
    columns = (
        Column("solver"),
        Column("cells of a side"),
        Column("steps"),
        Column("seconds", ".2f"),
        Column("St", ".4f"),
        Column("error", ".1%"),
        Column("Cd", ".3f"),
        Column("error", ".1%"),
    )
    reference, settings, versions = record["reference"], record["settings"], record["versions"]
    note = (
        f"Re = 100 to t = {settings['until']:g}, {settings['dtype']}, Mach number "
        f"{settings['mach']:g} of the lattice. The errors refer to St {reference['strouhal']:.4f} "
        f"and Cd {reference['drag']:.3f}, to which the two finest grids of this package "
        f"extrapolate. Measured on {place(record)}, "
        f"lettuce {versions['lettucecfd']}, PyTorch {versions['torch']}."
    )
    return [Table("", columns, rows, (note,))]


def comparison(record: Record) -> Table:
    """Return the fastest run of this package that is as accurate as each run of lettuce."""
    ours = [entry for entry in record["cases"] if entry["solver"] == "pysolvers"]
    rows = []
    for entry in (entry for entry in record["cases"] if entry["solver"] == "lettuce"):
        for name, error in entry["errors"].items():
            other = as_accurate(ours, name, error) or {"cells": None, "seconds": None}
            seconds = (entry["seconds"], other["cells"], other["seconds"])
            rows.append((name, error, entry["cells"], *seconds))
    heads = {"within": ".2%", "lettuce": "", "s": ".2f", "pysolvers": "", "its s": ".2f"}
    return Table("", [Column("value"), *(Column(n, f) for n, f in heads.items())], rows)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, device="cuda")
    parser.add_argument("--dtype", default="float64", choices=("float32", "float64"))
    parser.add_argument("--grids", type=int, nargs="+", default=[80, 160, 240, 320])
    parser.add_argument("--sides", type=int, nargs="+", default=[10, 20, 30, 40])
    parser.add_argument("--mach", type=float, default=0.1, help="Mach number of lettuce")
    parser.add_argument("--until", type=float, default=200.0)
    parser.add_argument("--strouhal", type=float, default=None, help="reference of the errors")
    parser.add_argument("--drag", type=float, default=None, help="reference of the errors")


def run(args: argparse.Namespace) -> int:
    """Measure, print the tables and write the record."""
    from .lettuce_channel import lattice

    measurement = Measurement("cylinder_peer", ("torch", "lettucecfd"), gpu=args.device != "cpu")
    options = args.until, args.device, args.dtype
    ours = [simulation(n, *options) for n in progress(args.grids, "SquareCylinder")]
    theirs = [
        lattice(n, args.until, args.mach, args.device, args.dtype)
        for n in progress(args.sides, "lettuce")
    ]
    reference = {name: extrapolated(ours, name) for name in ("strouhal", "drag")}
    reference |= {name: given for name in reference if (given := getattr(args, name)) is not None}
    for entry in (*ours, *theirs):
        entry["errors"] = {name: abs(entry[name] / v - 1) for name, v in reference.items()}
    settings = {"until": args.until, "dtype": args.dtype, "mach": args.mach}
    record = measurement.record([*ours, *theirs], settings, reference=reference)
    finish(args, record, [*tables(record), comparison(record)])
    return 0

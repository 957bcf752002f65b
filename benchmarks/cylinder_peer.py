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
from pathlib import Path
from typing import Any

import lettuce
import numpy as np
import torch

from pysolvers.cases.records import write_record
from pysolvers.flow import SquareCylinder
from pysolvers.flow._cylinder_result import strouhal_of

from . import machine

RE = 100.0
LENGTH, HEIGHT, PROBE = 50, 8, 4  # in sides of the cylinder
START = (2.0, 0.4, 0.2)  # perturbation: x and y from the centre, square of the width
SAMPLES = 40  # of drag and v in the time in which the flow passes the side


class Channel(lettuce.Obstacle):
    """The channel with `side` cells along a side of the cylinder, an even number."""

    def __init__(self, context: lettuce.Context, side: int, mach: float) -> None:
        self.side = side
        self.solid = torch.zeros(LENGTH * side, HEIGHT * side + 2, dtype=torch.bool)
        first = LENGTH * side // 4 - side // 2, (HEIGHT - 1) * side // 2 + 1
        self.cylinder = np.s_[first[0] : first[0] + side, first[1] : first[1] + side]
        self.solid[:, 0] = self.solid[:, -1] = self.solid[self.cylinder] = True
        super().__init__(context, list(self.solid.shape), RE, mach, LENGTH)
        inlet = torch.zeros_like(self.solid)
        inlet[0] = True
        u = self.profile()
        self._walls = [
            lettuce.EquilibriumBoundaryPU(
                context, self, inlet.to(context.device), torch.stack([u, 0 * u])[:, None, :]
            ),
            lettuce.EquilibriumOutletP([1, 0], self),
            lettuce.BounceBackBoundary(self.solid.to(context.device)),
        ]

    @property
    def post_boundaries(self) -> list[Any]:
        """Inflow, outlet and walls."""
        return self._walls

    def places(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return x and y of the nodes, in sides; the walls are at y = 4 and y = -4."""
        x, y = (torch.arange(n, dtype=torch.float64) for n in self.solid.shape)
        return (x + 0.5) / self.side, (y - 0.5) / self.side - HEIGHT / 2

    def profile(self) -> torch.Tensor:
        """Return u of the inflow, shape (ny,)."""
        return (1 - (self.places()[1] / (HEIGHT / 2)) ** 2).clamp(min=0)

    def initial_pu(self) -> tuple[Any, torch.Tensor]:
        """Return the inflow everywhere, and a perturbation of v behind the cylinder."""
        x, y = self.places()
        square = (x[:, None] - LENGTH / 4 - START[0]) ** 2 + (y - START[1]) ** 2
        v = 0.2 * torch.exp(-square / START[2])
        u = self.profile().expand_as(v)
        return torch.zeros_like(v)[None], torch.stack([u, v]) * ~self.solid


def lattice(side: int, until: float, mach: float, device: str, dtype: str) -> dict[str, Any]:
    """Return time, Strouhal number and drag of lettuce."""
    context = lettuce.Context(torch.device(device), getattr(torch, dtype), use_native=False)
    flow = Channel(context, side, mach)
    run = lettuce.Simulation(flow, lettuce.BGKCollision(flow.units.relaxation_parameter_lu), [])
    speed = flow.units.characteristic_velocity_lu
    every = max(1, round(side / speed / SAMPLES))
    count = round(until * side / speed / every)
    x, y = flow.places()
    probe = (
        int(torch.argmin((x - LENGTH / 4 - PROBE).abs())),
        int(torch.argmin(y.abs())),
    )
    found = torch.zeros(count, 2, dtype=torch.float64, device=context.device)
    run(1)
    synchronize(device)
    start = time.perf_counter()
    for k in range(count):
        run(every)
        momentum = flow.j()
        found[k, 0] = 2 * momentum[0][flow.cylinder].sum()  # populations that turn round
        found[k, 1] = momentum[1][probe]
    values = found.cpu().numpy()
    seconds = time.perf_counter() - start
    times = (1 + every * np.arange(1, count + 1)) * speed / side
    late = times > until / 2
    return {
        "solver": "lettuce",
        "cells": side,
        "steps": every * count,
        "seconds": seconds,
        "strouhal": strouhal_of(times[late], values[late, 1]).value,
        "drag": float(values[late, 0].mean() * 2 / (speed**2 * side)),
    }


def ours(intervals: int, until: float, device: str, dtype: str) -> dict[str, Any]:
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


def synchronize(device: str) -> None:
    """Wait for the device."""
    if device != "cpu":
        torch.cuda.synchronize()


def extrapolated(rows: list[dict[str, Any]], name: str) -> float:
    """Return the value that the two finest grids approach with order 1."""
    coarse, fine = rows[-2:]
    ratio = fine["cells"] / coarse["cells"]
    return float((ratio * fine[name] - coarse[name]) / (ratio - 1))


def as_accurate(rows: list[dict[str, Any]], name: str, error: float) -> dict[str, Any] | None:
    """Return the fastest run with at most this error, or None."""
    found = [row for row in rows if row["errors"][name] <= error]
    return min(found, key=lambda row: row["seconds"], default=None)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", default="float64", choices=("float32", "float64"))
    parser.add_argument("--grids", type=int, nargs="+", default=[80, 160, 240, 320])
    parser.add_argument("--sides", type=int, nargs="+", default=[10, 20, 30, 40])
    parser.add_argument("--mach", type=float, default=0.1, help="Mach number of lettuce")
    parser.add_argument("--until", type=float, default=200.0)
    parser.add_argument("--strouhal", type=float, default=None, help="reference of the errors")
    parser.add_argument("--drag", type=float, default=None, help="reference of the errors")
    parser.add_argument("--json", type=Path, default=None, help="file for the values")


def run(args: argparse.Namespace) -> int:
    """Measure, print a table, and write the values if asked to."""
    place = args.until, args.device, args.dtype
    tables = {
        "pysolvers": [ours(n, *place) for n in args.grids],
        "lettuce": [lattice(n, args.until, args.mach, *place[1:]) for n in args.sides],
    }
    reference = {name: extrapolated(tables["pysolvers"], name) for name in ("strouhal", "drag")}
    reference |= {name: given for name in reference if (given := getattr(args, name)) is not None}
    print("reference: St {strouhal:.5f} Cd {drag:.4f}".format(**reference))
    for solver, rows in tables.items():
        for row in rows:
            row["errors"] = {name: abs(row[name] / v - 1) for name, v in reference.items()}
            print(f"{solver:>10} {row['cells']:5d} {row['steps']:8d} steps {row['seconds']:9.2f} s"
                  f"  St {row['strouhal']:.5f} Cd {row['drag']:.4f}  errors "
                  + " ".join(f"{e:.2%}" for e in row["errors"].values()), flush=True)  # fmt: skip
    for row in tables["lettuce"]:
        for name, error in row["errors"].items():
            other = as_accurate(tables["pysolvers"], name, error)
            ours_ = "none" if other is None else f"{other['cells']:d}, {other['seconds']:.2f} s"
            print(f"{name:>10} within {error:.2%}: lettuce {row['cells']}, {row['seconds']:.2f} s; "
                  f"pysolvers {ours_}")  # fmt: skip
    if args.json is not None:
        record = {
            "benchmark": "cylinder_peer",
            "machine": machine.machine(),
            "gpu": machine.gpu() if args.device != "cpu" else None,
            "versions": machine.versions("pysolvers", "torch", "lettucecfd"),
            "until": args.until,
            "dtype": args.dtype,
            "mach": args.mach,
            "reference": reference,
            "tables": tables,
        }
        write_record(args.json, record)
    return 0

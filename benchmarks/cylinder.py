"""Steps of SquareCylinder on a GPU, its stages and the steady flow, compared with the host.

Unsteady steps at Re 100, after the start of the flow. `step` is the time of the device between
two events around the steps of a call, the median over calls; `call` is the time of the host for
the same steps. `floor` is the time of a copy, on fields of the same size in the same run, of the
fewest words that a step moves (11 per node), `words` that of the words that the kernels move (16
per node). The stages have the shares of steps without forces. `one core` and `all cores` of the
host make the same steps in C. `lines` are steps with psi by sweeps of lines, as the paper's. Needs
CuPy; --kernels needs PyTorch.
"""

import argparse
import time
from statistics import median
from typing import Any

import numpy as np

from pysolvers._progress import progress
from pysolvers.cases.tables import Column, Table
from pysolvers.flow import SquareCylinder

from . import machine
from .options import add_options
from .record import Measurement, Record, finish
from .timing import device, host, median_of, require_cupy, samples_of

GRIDS = ((161, 801), (209, 1001), (401, 2001))
QUICK_GRIDS = ((33, 201),)
BARS = {(161, 801): 60e-6, (401, 2001): 120e-6}  # seconds of a step
STEADY = (241, 1201)
STEADY_BAR = 3.0  # seconds
FEWEST_WORDS, WORDS = 11, 16
HOST: dict[str, int | None] = {"one_core": 1, "all_cores": None}  # threads
HOST_STEPS = 4  # of a call: as many as between two rows of forces


def copy_time(shape: tuple[int, ...], words: int, dtype: type) -> float:
    """Return the time of copies between six fields that move `words` words per node."""
    cupy = require_cupy()
    fields = [cupy.zeros(shape, dtype) for _ in range(6)]

    def copies() -> None:
        for k in range(6):
            cupy.copyto(fields[k], fields[(k + 1) % 6])

    return median_of(copies, 7, length=10, clock=device()) / 6 * words / 2


def stages(cylinder: SquareCylinder, steps: int) -> tuple[dict[str, float], float]:
    """Return the seconds of the device for the stages of `steps` steps, and those of the host."""
    before = cylinder.result().seconds
    seconds = host(lambda: cylinder.step(steps), 1)
    after = cylinder.result().seconds
    return {name: after[name] - before[name] for name in after}, seconds


def measure(shape: tuple[int, int], dtype: type, calls: int, core: float) -> Record:
    """Return the times of a step and of its stages in seconds."""
    cylinder = SquareCylinder(100, shape, dtype=dtype, device="cuda").step(200)
    found = [stages(cylinder, 100) for _ in range(calls)]
    single = []
    for _ in range(3):  # the last of 99 steps has no forces
        single.append(stages(cylinder, 99)[0])
        cylinder.step(1)
    shares = {name: median(s[name] / sum(s.values()) for s in single) for name in single[0]}
    step = median(sum(s.values()) / 100 for s, _ in found)
    return {
        "shape": list(shape),
        "dtype": np.dtype(dtype).name,
        "step": step,
        "call": median(seconds / 100 for _, seconds in found),
        "stages": {name: share * step for name, share in shares.items()},
        "floor": copy_time(shape, FEWEST_WORDS, dtype),
        "words": copy_time(shape, WORDS, dtype),
        **(host_steps(shape, core) if dtype is np.float64 else dict.fromkeys(HOST)),
    }


def host_steps(shape: tuple[int, int], budget: float, **options: Any) -> dict[str, float]:
    """Return the seconds of a step on one core and on all cores of the host."""
    found = {}
    for name, threads in HOST.items():
        cylinder = SquareCylinder(100, shape, threads=threads, **options).step(HOST_STEPS)
        steps = {"": lambda flow=cylinder: flow.step(HOST_STEPS)}
        found[name] = median(samples_of(steps, 10**6, budget=budget)[""]) / HOST_STEPS
    return found


def lines(shape: tuple[int, int], re: float, budget: float) -> Record:
    """Return the seconds of a step with psi by sweeps of lines, also on one core at Re 100."""
    cylinder = SquareCylinder(re, shape, psi_solver="lines", device="cuda").step(100)
    call = host(lambda: cylinder.step(100), 1) / 100
    on_host = host_steps(shape, budget, psi_solver="lines") if re == 100 else dict.fromkeys(HOST)
    return {"shape": list(shape), "re": re, "call": call, **on_host}


def steady(shape: tuple[int, int]) -> dict[str, float]:
    """Return steps, seconds and recirculation length of the steady flow at Re 40."""
    SquareCylinder(40, (33, 201), steady=True, device="cuda").step(1)  # loads the module
    cylinder = SquareCylinder(40, shape, steady=True, device="cuda")
    start = time.perf_counter()
    result = cylinder.solve(1e-6)
    seconds = time.perf_counter() - start
    return {
        "steps": result.steps,
        "seconds": seconds,
        "length": result.recirculation_length,
        "drag": result.drag,
    }


def kernels(shape: tuple[int, int], steps: int = 40) -> dict[str, float]:
    """Return the microseconds of each kernel in a step, by the profiler of PyTorch.

    The blocks of a kernel are launched before the kernel before it ends: a kernel counts from the
    end of that one on.
    """
    from torch.profiler import ProfilerActivity, profile

    cylinder = SquareCylinder(100, shape, device="cuda").step(200)
    with profile(activities=[ProfilerActivity.CUDA]) as records:
        cylinder.step(steps)
    times: dict[str, float] = {}
    ended = 0.0
    for event in sorted(records.events(), key=lambda event: event.time_range.end):
        if event.device_time > 0:
            begin, end = max(event.time_range.start, ended), event.time_range.end
            times[event.name] = times.get(event.name, 0.0) + (end - begin) / steps
            ended = end
    return dict(sorted(times.items(), key=lambda item: -item[1]))


def intervals(shape: Any) -> str:
    """Return the intervals of a grid as text."""
    return " × ".join(str(n - 1) for n in shape)


def _beside(seconds: float | None, call: float) -> str:
    """Return a time of the host and its ratio to that of the device."""
    return "" if seconds is None else f"{seconds * 1e6:.0f} ({seconds / call:.0f} ×)"


def _listed(names: list[str]) -> str:
    """Return the names of columns as text."""
    return " and ".join(f"*{name.replace('_', ' ')}*" for name in names)


def table(record: Record) -> Table:
    """Return the table of steps: microseconds."""
    names = [name for name in HOST if any(entry.get(name) for entry in record["cases"])]
    rows = []
    for entry in record["cases"]:
        cells = [_beside(entry.get(name), entry["call"]) for name in names]
        times = (1e6 * entry["step"], 1e6 * entry["call"])
        rows.append((intervals(entry["shape"]), entry["dtype"], *times, *cells))
    columns = [Column("intervals"), Column("dtype", left=True)]
    columns += [Column("step", ".0f"), Column("call", ".0f")]
    columns += [Column(name.replace("_", " ")) for name in names]
    found = record["steady"]
    note = (
        'Microseconds of an unsteady step with `psi_solver="fast"`: *step* by the clock of the '
        f"device, *call* by that of the host, {_listed(names)} of the host of the device, in "
        "brackets the ratio to *call*. The steady flow at Re = 40 on 240 × 1200 intervals takes "
        f"{found['steps']} steps and {found['seconds']:.2f} s. "
        f"Measured on {record['gpu']['name']}, {record['machine']['cpu']}."
    )
    return Table("", columns, rows, (note,))


def details(record: Record) -> list[Table]:
    """Return the tables that no page shows: stages, floors, sweeps of lines, kernels."""
    names = ("floor", "words")
    stage_names = list(record["cases"][0]["stages"])
    columns = [Column("intervals"), Column("dtype", left=True)]
    columns += [Column(name, ".1f") for name in (*names, *stage_names)]
    rows = [
        (
            intervals(e["shape"]),
            e["dtype"],
            *(1e6 * e[name] for name in names),
            *(1e6 * e["stages"][name] for name in stage_names),
        )
        for e in record["cases"]
    ]
    found = [Table("floors and stages, µs", columns, rows)]
    names = ("Re", "µs", *(f"{name.replace('_', ' ')}, µs" for name in HOST))
    columns = [Column("intervals"), *(Column(name, ".0f") for name in names)]
    rows = [
        (
            intervals(e["shape"]),
            e["re"],
            1e6 * e["call"],
            *(1e6 * e[name] if e.get(name) else None for name in HOST),
        )
        for e in record["lines"]
    ]
    found.append(Table('psi_solver="lines"', columns, rows))
    for name, times in record.get("kernels", {}).items():
        columns = [Column("kernel"), Column("µs", ".2f")]
        found.append(Table(f"kernels of a step, {name} nodes", columns, list(times.items())))
    return found


def missed(record: Record) -> list[str]:
    """Return what misses its bar."""
    found = [
        f"{intervals(e['shape'])}: a step takes more than {1e6 * BARS[shape]:g} µs"
        for e in record["cases"]
        if (shape := tuple(e["shape"])) in BARS
        and e["dtype"] == "float64"
        and e["step"] > BARS[shape]
    ]
    if record["steady"]["seconds"] > STEADY_BAR:
        found.append(f"the steady flow takes more than {STEADY_BAR:g} s")
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, "quick")
    parser.add_argument("--kernels", action="store_true", help="also the time of each kernel")
    parser.add_argument("--core", type=float, default=1.0, help="seconds for one core, per grid")


def run(args: argparse.Namespace) -> int:
    """Measure, print the tables and write the record."""
    measurement = Measurement("cylinder", machine.GPU_PACKAGES, gpu=True)
    grids, calls = (QUICK_GRIDS, 2) if args.quick else (GRIDS, 15)
    core = 0.0 if args.quick else args.core
    todo = [(shape, dtype) for shape in grids for dtype in (np.float64, np.float32)]
    cases = [measure(*case, calls, core) for case in progress(todo, "cylinder")]
    more: Record = {
        "steady": steady((33, 201) if args.quick else STEADY),
        "lines": [lines(shape, re, core) for shape in grids for re in (100.0, 200.0)],
    }
    if args.kernels:
        more["kernels"] = {"x".join(map(str, s)): kernels(s) for s in {grids[0], grids[-1]}}
    record = measurement.record(cases, {"quick": args.quick}, **more)
    finish(args, record, [table(record), *details(record)], missed(record))
    return 0

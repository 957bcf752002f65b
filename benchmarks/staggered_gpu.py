"""Time the steps of StaggeredCavity on a GPU, with the direct solver and with SOR.

    python -m pysolvers bench staggered_gpu    # prints a table
    python -m pysolvers bench staggered_gpu --cpu    # also on the CPU

Times are medians over calls of 20 steps, of the host, which waits once in a call with the direct
solver. The floor is the time in which 15 words per cell move at the bandwidth of a copy: 8 of the
stages and 7 of the direct solver. On grids whose fields fit into the cache of the device a step can
be faster. With SOR every step makes the same number of iterations.
"""

import argparse
import time
from pathlib import Path
from statistics import median
from typing import Any

from pysolvers import StaggeredCavity
from pysolvers.cases.records import write_record

from . import machine
from .gpu_device import device_bandwidth

SIZES = (128, 256, 512, 1024, 2048)
WORDS = 15
INTERVAL = 20  # steps of a call


def step_times(n: int, budget: float, **options: Any) -> tuple[float, dict[str, float]]:
    """Return the seconds of a step, and those of its stages."""
    times: list[float] = []
    while len(times) < 3 or (sum(times) < budget and len(times) < 50):
        # From rest each time: with few iterations of SOR the flow would grow after many steps.
        cavity = StaggeredCavity(1000, n, **options).step(2)
        before = cavity.result().seconds
        start = time.perf_counter()
        cavity.step(INTERVAL)
        times.append(time.perf_counter() - start)
    after = cavity.result().seconds
    return median(times) / INTERVAL, {k: (after[k] - before[k]) / INTERVAL for k in after}


def measure(n: int, sweeps: int, bandwidth: float, *, cpu: bool) -> dict[str, Any]:
    """Return the times of a size."""
    sor = {"pressure": "sor", "pressure_tol": None, "max_sweeps": sweeps, "dt": 1e-7}
    fast, stages = step_times(n, 0.5, kernels="cuda")
    relaxed, _ = step_times(n, 0.5, kernels="cuda", **sor)
    entry = {"n": n, "fast": fast, "stages": stages, "sor": relaxed}
    entry["floor"] = WORDS * 8 * n * n / bandwidth
    if cpu:
        entry["fast on the CPU"], _ = step_times(n, 1.0)
        entry["sor on the CPU"], _ = step_times(n, 1.0, **sor)
    return entry


def line(entry: dict[str, Any]) -> str:
    """Return the line of a size in the table."""
    cells = [entry["fast"], *entry["stages"].values(), entry["floor"], entry["sor"]]
    cells += [entry[name] for name in ("fast on the CPU", "sor on the CPU") if name in entry]
    return f"| {entry['n']}² | " + " | ".join(f"{1e6 * t:.1f}" for t in cells) + " |"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--sweeps", type=int, default=50, help="iterations of SOR in a step")
    parser.add_argument("--cpu", action="store_true", help="also on the CPU")
    parser.add_argument("--json", type=Path, default=None, help="file for the values")


def run(args: argparse.Namespace) -> int:
    """Measure, print a table, and write the values if asked to."""
    bandwidth = device_bandwidth()
    heads = ["fast", "predict", "pressure", "correct", "floor", f"sor, {args.sweeps} sweeps"]
    heads += ["fast, CPU", "sor, CPU"] if args.cpu else []
    print(f"µs a step; copy at {bandwidth / 1e9:.0f} GB/s")
    print("| cells |", " | ".join(heads), "|")
    print("|---" * (len(heads) + 1) + "|")
    entries = []
    for n in args.sizes:
        entries.append(measure(n, args.sweeps, bandwidth, cpu=args.cpu))
        print(line(entries[-1]), flush=True)
    if args.json:
        packages = ("pysolvers", *machine.GPU_PACKAGES, "nvidia-cufft")
        record = {
            "benchmark": "staggered cavity on a GPU",
            "gpu": machine.gpu(),
            "versions": machine.versions(*packages),
            "bandwidth": bandwidth,
            "sweeps": args.sweeps,
            "cases": entries,
        }
        write_record(args.json, record)
    return 0

"""Time the kernels of StaggeredCavity: the same steps and SOR sweeps with each of them.

    python -m pysolvers bench staggered [--sizes 128 256 512 1024] [--steps 20] [--sweeps 50]

prints milliseconds for a step, the median of three runs. Kernels that are not available are left
out; the last column is the direct solver of the pressure.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

from pysolvers import BackendError, StaggeredCavity

KERNELS = ("serial", "openmp", "auto", "directive", "directive-openmp")


def milliseconds(make: Callable[[], StaggeredCavity], steps: int) -> float | None:
    """Return the time of a step, or None if the kernels are not available."""
    try:
        cavity = make().step(2)
    except BackendError:
        return None
    times = []
    for _ in range(3):
        start = time.perf_counter()
        cavity.step(steps)
        times.append((time.perf_counter() - start) / steps * 1e3)
    return median(times)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    parser.add_argument("--sizes", type=int, nargs="+", default=[128, 256, 512, 1024])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--sweeps", type=int, default=50)


def run(options: argparse.Namespace) -> int:
    print("| cells |", " | ".join(KERNELS), "| fast |")
    print("|---" * (len(KERNELS) + 2) + "|")
    for n in options.sizes:
        row = []
        for kernels in (*KERNELS, None):

            def make(n: int = n, kernels: str | None = kernels) -> StaggeredCavity:
                if kernels is None:
                    return StaggeredCavity(1000, n)
                return StaggeredCavity(
                    1000,
                    n,
                    pressure="sor",
                    pressure_tol=None,
                    max_sweeps=options.sweeps,
                    kernels=kernels,  # type: ignore[arg-type]
                )

            found = milliseconds(make, options.steps)
            row.append("" if found is None else f"{found:.3g}")
        print(f"| {n}² |", " | ".join(row), "|", flush=True)
    return 0

#!/usr/bin/env python3
"""Measure solves of lines that are split over GPUs, one rank per GPU, and of their parts.

Own matrices, and one matrix for all lines with kept factors. `one` is the solve of the part of a
rank alone, without the other ranks: the split solve would take this time if nothing was exchanged
and every word was moved once. Rank 0 prints; times are the largest of the ranks, medians of calls.

    mpirun -n 2 python benchmarks/distributed_gpu.py
    mpirun -n 2 python benchmarks/distributed_gpu.py --json FILE
    mpirun -n 2 python benchmarks/distributed_gpu.py --device cpu --shape 64 64 512

Needs the extra 'mpi'; rank r uses device r.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from pysolvers import factor_tridiagonal, solve_tridiagonal
from pysolvers.distributed import Group, Slab

CALLS = 9


def arrays_on(device: str) -> tuple[Callable[[Any], Any], Callable[[], None]]:
    """Return what brings an array to the device, and what waits for the device."""
    if device == "cpu":
        return np.asarray, lambda: None
    import cupy

    cupy.cuda.Device(int(device.partition(":")[2])).use()
    return cupy.asarray, cupy.cuda.Device().synchronize


def measured(group: Group, call: Callable[[], Any], wait: Callable[[], None]) -> float:
    """Return the median time of a call in seconds, for the slowest rank."""
    times = []
    for _ in range(CALLS + 2):
        group.objects("benchmark", None)  # the ranks begin together
        start = perf_counter()
        call()
        wait()
        times.append(max(group.objects("benchmark", perf_counter() - start)))
    return median(times[2:])


def run(group: Group, shape: list[int], dtype: str, device: str) -> dict[str, float]:
    """Return the times for lines along the last axis."""
    to_device, wait = arrays_on(device)
    rows = Slab(-1).part(shape[-1], group.rank, group.size)
    own = (*shape[:-1], rows.stop - rows.start)
    rng = np.random.default_rng(group.rank)
    lower, upper, rhs = (to_device(rng.uniform(-1, 1, own).astype(dtype)) for _ in range(3))
    diag = to_device(rng.uniform(3, 4, own).astype(dtype))
    out = to_device(np.empty(own, dtype))
    split = {"group": group, "split": Slab(-1)}
    options = {"pivot": False, "device": device, "out": out}
    line = [a[(0,) * (len(shape) - 1)] for a in (lower, diag, upper)]
    alone = factor_tridiagonal(*line, pivot=False, device=device)
    factor = factor_tridiagonal(*line, pivot=False, device=device, group=group, split=Slab(-1))
    calls = {
        "own matrices": lambda: solve_tridiagonal(lower, diag, upper, rhs, **options, **split),
        "own matrices, one": lambda: solve_tridiagonal(lower, diag, upper, rhs, **options),
        "factor": lambda: factor.solve(rhs, out=out),
        "factor, one": lambda: alone.solve(rhs, out=out),
    }
    return {name: measured(group, call, wait) for name, call in calls.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shape", type=int, nargs="+", default=[256, 256, 4096])
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--device", help="by default the device with the number of the rank")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    group = Group()
    device = arguments.device or f"cuda:{group.rank}"
    times = run(group, arguments.shape, arguments.dtype, device)
    if group.rank:
        return
    unknowns = np.prod(arguments.shape) / group.size
    print(f"{group.size} ranks, {arguments.shape}, {arguments.dtype}, {device.partition(':')[0]}")
    for name, seconds in times.items():
        print(f"{name:20} {1e3 * seconds:10.3f} ms {1e-9 * unknowns / seconds:8.2f} G/s a rank")
    if arguments.json is not None:
        record = {"ranks": group.size, "shape": arguments.shape, "dtype": arguments.dtype}
        arguments.json.write_text(json.dumps(record | {"seconds": times}, indent=1) + "\n")


if __name__ == "__main__":
    main()

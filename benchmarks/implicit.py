"""`HeatADI` with scheme="implicit": iterations, and the time of a step over alternating directions.

A plate or a box of k between 1 and a ratio, 1 and 0 on the sides along x, insulated along the other
axes, h = 1. The conductivity is a diagonal bar, a disc, powers of the ratio at random at each node,
a smooth hill, or one of two values at random at each node.

Iterations are those of the first stage of a step from T = 0, which begins from zero; on the first
of the sizes. Times are those of steps 4 to 9 on one thread, for a ratio of 100: the least of
several runs of each step, so that other processes count little.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pysolvers import ConvergenceError, HeatADI, Neumann
from pysolvers._progress import progress
from pysolvers._repr import shape_text
from pysolvers.cases.tables import Column, Table

from .options import add_options
from .record import Measurement, finish

KINDS = ("bar", "disc", "random", "smooth", "two values")
RATIOS = {"bar": (1e2, 1e6), "random": (1e2, 1e6), "two values": (1e2, 1e4)}
NUMBERS = (1.0, 100.0, 1e4)  # dt/h^2
SIZES = ((128, 128), (64, 64), (512, 512), (48, 48, 48))
BEFORE, STEPS = 3, 6  # steps before those that are timed, and these
LEAST_SECONDS = 0.02  # of a run of alternating directions


def conductivity(kind: str, shape: tuple[int, ...], ratio: float) -> NDArray[np.float64]:
    """Return k at the nodes, between 1 and `ratio`."""
    rng = np.random.default_rng(0)
    places = np.meshgrid(*[np.linspace(0, 1, n) for n in shape], indexing="ij")
    exponents: dict[str, Callable[[], Any]] = {
        "bar": lambda: abs(places[-1] - places[-2]) < 0.12,
        "disc": lambda: sum((p - 0.5) ** 2 for p in places) < 0.09,
        "random": lambda: rng.random(shape),
        "smooth": lambda: np.exp(-sum((p - 0.4) ** 2 for p in places) / 0.04),
        "two values": lambda: rng.random(shape) < 0.5,
    }
    return ratio ** np.asarray(exponents[kind](), np.float64)


def made(k: NDArray[np.float64], number: float, scheme: str, **options: Any) -> HeatADI:
    """Return a solver with T = 0 and steps of this dt/h^2."""
    sides = {"x-": 1.0, "x+": 0.0, "y": Neumann()} | ({"z": Neumann()} if k.ndim == 3 else {})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # steps are large on purpose
        return HeatADI(
            k.shape, 1.0, number, diffusivity=k, boundary=sides, scheme=scheme, threads=1, **options
        )


def stepped(solver: HeatADI, count: int) -> float:
    """Make some steps; return the seconds that they take."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        start = time.perf_counter()
        solver.step(count)
        return time.perf_counter() - start


def iterations(k: NDArray[np.float64], number: float) -> int | None:
    """Return the iterations of a stage that begins from zero; None if it was not solved."""
    solver = made(k, number, "implicit", damped_start=False)
    levels, counts = solver._runner.unsplit._levels(), list[int]()
    solve = levels.solve

    def counting(*operands: Any) -> dict[str, Any]:
        report = solve(*operands)
        counts.append(report["iterations"])
        return report

    levels.solve = counting  # type: ignore[method-assign]
    try:
        stepped(solver, 1)
    except ConvergenceError:
        return None
    return counts[0]


def ratio_of_times(k: NDArray[np.float64], number: float, runs: int) -> float:
    """Return the time of a step over that of a step by alternating directions."""
    split = "peaceman-rachford" if k.ndim == 2 else "douglas-gunn"
    whole = np.full((runs, STEPS), np.inf)
    parts = []
    for run in range(runs):
        alternating, implicit = made(k, number, split), made(k, number, "implicit")
        once = stepped(alternating, BEFORE) / BEFORE
        count = max(1, round(LEAST_SECONDS / once))
        parts.append(stepped(alternating, count) / count)
        stepped(implicit, BEFORE)
        whole[run] = [stepped(implicit, 1) for _ in range(STEPS)]
    return float(whole.min(0).mean() / min(parts))


def counted(shape: tuple[int, ...]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the table of iterations."""
    rows = [(kind, ratio) for kind in KINDS for ratio in RATIOS.get(kind, (1e2,))]
    for kind, ratio in progress(rows, "iterations"):
        k = conductivity(kind, shape, ratio)
        yield (kind, ratio, *(iterations(k, number) for number in NUMBERS))


def timed(sizes: tuple[tuple[int, ...], ...], runs: int) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the table of times."""
    cases = [(shape, kind) for shape in sizes for kind in KINDS[:4]]
    for shape, kind in progress(cases, "times"):
        k = conductivity(kind, shape, 1e2)
        few = max(2, min(runs, round(runs * 128**2 / prod(shape))))
        yield (
            shape_text(shape),
            kind,
            *(ratio_of_times(k, number, few) for number in NUMBERS),
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, "quick", "sizes", runs=20)


def run(args: argparse.Namespace) -> int:
    """Measure, print the tables and write the record."""
    sizes = ((16, 16),) if args.quick else tuple(args.sizes or SIZES)
    measurement = Measurement("implicit", ())
    counts = list(counted(sizes[0]))
    times = list(timed(sizes, 1 if args.quick else args.runs))
    found = [{"kind": kind, "ratio": ratio, "iterations": own} for kind, ratio, *own in counts]
    found += [{"shape": shape, "kind": kind, "times": own} for shape, kind, *own in times]
    record = measurement.record(found, {"quick": args.quick, "numbers": list(NUMBERS)})
    numbers = [f"{number:g}" for number in NUMBERS]
    tables = [
        Table(
            f"iterations of a stage that begins from zero, {shape_text(sizes[0])}, by dt/h^2",
            [Column("k"), Column("ratio", "g"), *(Column(name, "d") for name in numbers)],
            counts,
        ),
        Table(
            "time of a step over that of alternating directions, by dt/h^2",
            [Column("shape"), Column("k", left=True), *(Column(name, ".1f") for name in numbers)],
            times,
        ),
    ]
    finish(args, record, tables)
    return 0

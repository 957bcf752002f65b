"""The part `solvers` of the benchmark on a GPU: steps of solvers on grids, splines created.

The time of a step is the difference of two runs of different lengths, divided by the difference of
their steps: what is done once per call does not count. The time of a spline is that of the
constructor on the host, which waits for the device.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from pysolvers import CubicSpline, HeatADI
from pysolvers._repr import shape_text
from pysolvers.cases.tables import Column, Table

from .papers.gceidd2022_speed import pulse_solver
from .timing import Clock, require_cupy, waiting

# Device time in seconds of the longer run; the shorter one has a few steps.
BUDGET, FEW, MOST_STEPS, REPEATS = 0.1, 2, 400, 3
# Of HeatADI: k dt/h^2 of a step. Strips per axis of GCEIDD, as the papers have them.
RATIO, STRIPS = 0.5, 8
QUICK = 64  # nodes along an axis of a quick run, at most

Entry = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class SolverCase:
    """A solver on the device.

    Parameters
    ----------
    solver : {'HeatADI', 'HeatADI, k(x)', 'HeatADI, periodic', 'GCEIDD', 'CubicSpline'}
        What makes the steps: with one conductivity, with one of each node, with a periodic middle
        axis. A spline is created, along the first axis.
    shape : tuple of int
        Nodes along the axes; cells of GCEIDD; of a spline the numbers of knots and of splines.
    dtype : str
        Its numbers.
    words : float
        Smallest number of words that a step moves per node.
    bar : float, optional
        Target of the package, as a fraction of the time of a copy of so many words.
    time_bar : float, optional
        Target in seconds.
    """

    solver: str
    shape: tuple[int, ...]
    dtype: str
    words: float
    bar: float | None = None
    time_bar: float | None = None


CASES = (
    SolverCase(solver="HeatADI", shape=(3000, 5000), dtype="float64", words=4, bar=0.9),
    SolverCase(solver="HeatADI", shape=(777, 12345), dtype="float64", words=4, bar=0.9),
    SolverCase(solver="HeatADI", shape=(1024, 1024), dtype="float32", words=4, bar=0.7),
    SolverCase(solver="HeatADI", shape=(300, 400, 500), dtype="float64", words=6, bar=0.8),
    SolverCase(solver="HeatADI", shape=(700, 700, 700), dtype="float32", words=6, bar=0.8),
    SolverCase(solver="HeatADI", shape=(1000, 1000, 200), dtype="float64", words=6, bar=0.8),
    SolverCase(solver="HeatADI", shape=(128, 128, 128), dtype="float64", words=6, bar=0.6),
    SolverCase(
        solver="HeatADI, periodic", shape=(256, 256, 256), dtype="float64", words=6, bar=0.8
    ),
    *(
        SolverCase(solver="HeatADI, k(x)", shape=shape, dtype=dtype, words=6, bar=0.7)
        for shape in ((2048, 2048), (1500, 3333))
        for dtype in ("float32", "float64")
    ),
    *(
        SolverCase(solver="GCEIDD", shape=(n, n), dtype="float64", words=4, bar=0.6)
        for n in (1024, 2048, 3000)
    ),
    *(
        SolverCase(solver="CubicSpline", shape=shape, dtype="float64", words=3, time_bar=bar)
        for shape, bar in (((2048, 8192), 250e-6), ((64, 1000), 60e-6))
    ),
)


def solver_cases(*, quick: bool = False) -> Iterator[SolverCase]:
    """Yield the cases; those of a quick run are small and have no targets."""
    for case in CASES:
        if quick:
            shape = tuple(min(length, QUICK) for length in case.shape)
            yield replace(case, shape=shape, bar=None, time_bar=None)
        else:
            yield case


def measure_solver(case: SolverCase, bandwidth: float, *, quick: bool = False) -> Entry:
    """Time a case and return its entry of the record; `bandwidth` is that of copies."""
    entry: Entry = {**asdict(case), "shape": list(case.shape)}
    entry["floor"] = (
        case.words * float(np.prod(case.shape)) * np.dtype(case.dtype).itemsize / bandwidth
    )
    try:
        entry["seconds"] = (
            _creation_seconds(case, quick=quick)
            if case.solver == "CubicSpline"
            else _step_seconds(made_solver(case), quick=quick)
        )
    except Exception as error:  # the other cases run even if one fails
        text = str(error).splitlines() or [""]
        entry["failure"] = f"{type(error).__name__}: {text[0]}"
        return entry
    finally:
        require_cupy().get_default_memory_pool().free_all_blocks()
    entry["fraction"] = round(entry["floor"] / entry["seconds"], 4)
    return entry


def made_solver(case: SolverCase, **place: Any) -> Any:
    """Return the solver of a case, by default on the device."""
    place = place or {"device": "cuda"}
    if case.solver == "GCEIDD":
        return pulse_solver(case.shape[0], STRIPS, **place)
    options: dict[str, Any] = {"boundary": 0.0, "initial": 1.0, "damped_start": False}
    if case.solver == "HeatADI, k(x)":
        k = np.random.default_rng(1).uniform(0.5, 2.0, case.shape)
        options |= {"diffusivity": k, "scheme": "peaceman-rachford"}
    if case.solver == "HeatADI, periodic":
        options["boundary"] = {"x": 0.0, "y": "periodic", "z": 0.0}
    return HeatADI(case.shape, 1.0, RATIO, dtype=np.dtype(case.dtype), **options, **place)


def _step_seconds(solver: Any, *, quick: bool) -> float:
    """Return the seconds of a step."""
    clock = _waiting_clock()

    def run(count: int) -> Callable[[], object]:
        return partial(solver.step, count)

    clock(run(FEW), 1)
    once = clock(run(FEW), 1) / FEW
    many = FEW + (2 if quick else int(min(max(8, BUDGET / once), MOST_STEPS)))
    times = [(clock(run(many), 1), clock(run(FEW), 1)) for _ in range(REPEATS)]
    return median(longer - shorter for longer, shorter in times) / (many - FEW)


def _waiting_clock() -> Clock:
    """Return the clock of the host, which waits for the device."""
    return waiting(lambda _: require_cupy().cuda.Device().synchronize())


def _creation_seconds(case: SolverCase, *, quick: bool) -> float:
    cupy = require_cupy()
    x = cupy.linspace(0, 1, case.shape[0], dtype=case.dtype)
    y = cupy.random.default_rng(1).standard_normal(case.shape, case.dtype)
    create = partial(CubicSpline, x, y, 0)
    clock = _waiting_clock()
    clock(create, 3)
    return median(clock(create, 1) for _ in range(3 if quick else 50))


def table(entries: list[Entry]) -> Table:
    """Return the table of the part."""
    names = ("solver", "size", "dtype", "time", "of the words", "bar")
    columns = [Column(name, left=name in ("size", "dtype")) for name in names]
    rows = [_row(entry) for entry in entries]
    return Table("Steps of solvers on grids, splines created", columns, rows)


def misses(entry: Entry) -> bool:
    """Return whether a case of a record failed, or is slower than its target."""
    if "failure" in entry:
        return True
    if entry["time_bar"] is not None:
        return bool(entry["seconds"] > entry["time_bar"])
    return entry["bar"] is not None and bool(entry["fraction"] < entry["bar"])


def _row(entry: Entry) -> tuple[Any, ...]:
    size = (entry["solver"], shape_text(entry["shape"]), entry["dtype"])
    if "failure" in entry:
        return (*size, entry["failure"], "", "")
    bar = f"{1e6 * entry['time_bar']:.0f} µs" if entry["time_bar"] is not None else ""
    if entry["bar"] is not None:
        bar = f"{entry['bar']:.0%} of {entry['words']:g}"
    mark = " (missed)" if misses(entry) else ""
    return (*size, f"{1e6 * entry['seconds']:.1f} µs", f"{entry['fraction']:.0%}", bar + mark)

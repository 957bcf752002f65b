"""The flow around a square cylinder of Souri, Akbarzadeh and Mahmoodi Darian (2020), Figs. 13-19.

13, 16   steady flow: recirculation length over the Reynolds number, streamlines
14, 15   profiles of the velocity at Re = 100, t = 100
17       streamlines at Re = 100 from t = 100 to 110
18       vorticity at t = 100 and Strouhal number at four Reynolds numbers
19       times of a step: sweeps of lines on the host and on a GPU, and the direct solver for psi

The CPU baseline of Fig. 19 is the C of csrc/cpu/flow on one core, as in the paper. On a GPU the
lines are solved by PTA, one thread a line with coefficients in global memory, as in the paper, and
by the partition method, many threads a line in shared memory.

The paper contains no numbers for its figures other than "about 9 times" for Fig. 19 and the line
Lr/D = -0.065 + 0.0554 Re of Breuer et al. (2000) in Fig. 13.
"""

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pysolvers._checks import index
from pysolvers._errors import BackendError, CoarseGridWarning
from pysolvers._progress import progress
from pysolvers.flow import CylinderResult
from pysolvers.papers.pta2020 import SquareCylinder

from ..timing import host

__all__ = [
    "ALL_CORES",
    "BLOCKS",
    "LENGTH_REYNOLDS",
    "ONE_CORE",
    "PARTITION",
    "PTA",
    "RUNS",
    "SHEDDING_REYNOLDS",
    "SNAPSHOTS",
    "STREAMLINE_REYNOLDS",
    "TIMING_GRIDS",
    "TIMING_REYNOLDS",
    "CylinderRun",
    "CylinderTimes",
    "run_blocks",
    "run_steady",
    "run_times",
    "run_unsteady",
]

LENGTH_REYNOLDS = (10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0)
STREAMLINE_REYNOLDS = (1.0, 15.0, 30.0)
SHEDDING_REYNOLDS = (75.0, 100.0, 150.0, 200.0)
SNAPSHOTS = (100.0, 102.0, 104.0, 106.0, 108.0, 110.0)
# The paper has 160 x 800, 200 x 1000 and 400 x 2000 intervals. The channel is 8 D high and the
# cylinder has an even number of intervals, so that those along y are a multiple of 16.
TIMING_GRIDS = ((161, 801), (209, 1001), (401, 2001))
TIMING_REYNOLDS = (100.0, 200.0)
BLOCKS = (32, 64, 128, 256)  # threads of a block in the paper
_STROUHAL_UNTIL = 150.0  # about 7 periods after the start of the shedding
_WARM_UP = 20  # steps


@dataclass(frozen=True, slots=True)
class CylinderRun:
    """One column of Fig. 19.

    Parameters
    ----------
    name : str
        Its name in the table.
    device : str
        ``"cpu"`` or ``"cuda"``.
    psi : {'fast', 'lines'}
        Solver of the equation of psi.
    threads : int or None
        Host threads; None is all cores.
    line_method : {'partition', 'pta'}
        Solution of the lines on a device.
    """

    name: str
    device: str
    psi: str
    threads: int | None = None
    line_method: str = "partition"


ONE_CORE, ALL_CORES = "lines, one core", "lines, all cores"
PTA, PARTITION = "lines by PTA, GPU", "lines by partition, GPU"
RUNS = (
    CylinderRun(ONE_CORE, "cpu", "lines", 1),
    CylinderRun(ALL_CORES, "cpu", "lines"),
    CylinderRun(PTA, "cuda", "lines", line_method="pta"),
    CylinderRun(PARTITION, "cuda", "lines"),
    CylinderRun("fast, one core", "cpu", "fast", 1),
    CylinderRun("fast, all cores", "cpu", "fast"),
    CylinderRun("fast, GPU", "cuda", "fast"),
)


@dataclass(frozen=True, slots=True, eq=False)
class CylinderTimes:
    """Times of a step.

    Parameters
    ----------
    steps : int
        Steps of each run on the CPU; ten times as many on the GPU.
    seconds : dict
        Seconds of a step by name of the run and "ny x nx, Re".
    reasons : dict of str to str
        Reason why a run is missing, by its name.
    """

    steps: int
    seconds: dict[str, dict[str, float]]
    reasons: dict[str, str]

    def speedups(self, name: str, over: str = ONE_CORE) -> dict[str, float]:
        """Return how many times faster one run is than another, by case."""
        times, others = self.seconds.get(name, {}), self.seconds.get(over, {})
        return {case: others[case] / time for case, time in times.items() if case in others}


def run_steady(
    reynolds: Iterable[float],
    shape: tuple[int, int],
    *,
    device: str | None = None,
    tol: float = 1e-6,
) -> dict[float, CylinderResult]:
    """Compute steady flows."""
    return {
        re: _flow(re, shape, steady=True, device=device).solve(tol, progress=False)
        for re in progress(list(reynolds), "steady")
    }


def run_unsteady(
    re: float,
    shape: tuple[int, int],
    *,
    device: str | None = None,
    snapshots: Iterable[float] = SNAPSHOTS,
    until: float = _STROUHAL_UNTIL,
    dt: float | None = None,
) -> tuple[list[CylinderResult], CylinderResult]:
    """Compute an unsteady flow."""
    solver = _flow(re, shape, device=device, dt=dt)
    results = [solver.run(time, progress=False) for time in snapshots]
    return results, solver.run(max(until, solver.time), progress=False)


def run_times(
    grids: Iterable[tuple[int, int]] = TIMING_GRIDS,
    reynolds: Iterable[float] = TIMING_REYNOLDS,
    *,
    steps: int = 10,
) -> CylinderTimes:
    """Measure a step of every run on every grid."""
    steps = index("steps", steps, 1)
    numbers, shapes = tuple(reynolds), tuple(grids)
    seconds: dict[str, dict[str, float]] = {}
    reasons: dict[str, str] = {}
    todo = [(r, s, x) for r in RUNS for s in shapes for x in numbers]
    for run, shape, re in progress(todo, "times"):
        if run.name in reasons:
            continue
        case = f"{shape[0] - 1} x {shape[1] - 1}, Re {re:g}"
        try:
            seconds.setdefault(run.name, {})[case] = _seconds(run, shape, re, steps)
        except BackendError as error:
            reasons[run.name] = str(error)
            seconds.pop(run.name, None)
    return CylinderTimes(steps, seconds, reasons)


def run_blocks(shape: tuple[int, int], re: float, *, steps: int = 10) -> dict[int, float]:
    """Measure a step of PTA by the number of threads of a block."""
    run = next(run for run in RUNS if run.name == PTA)
    return {block: _seconds(run, shape, re, steps, block=block) for block in BLOCKS}


def _flow(re: float, shape: tuple[int, int], **options: Any) -> SquareCylinder:
    """Return the flow on any grid: that of the paper, or a coarse one for a short trial."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoarseGridWarning)
        return SquareCylinder(re, shape, **options)


def _seconds(
    run: CylinderRun, shape: tuple[int, int], re: float, steps: int, **options: Any
) -> float:
    """Return the time of a step."""
    count = steps * (10 if run.device == "cuda" else 1)
    options |= {"psi_solver": run.psi, "device": run.device, "threads": run.threads}
    solver = _flow(re, shape, line_method=run.line_method, **options)
    solver.step(min(count, _WARM_UP))
    return host(lambda: solver.step(count), 1) / count

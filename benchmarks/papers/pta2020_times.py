"""The timing experiment of Souri, Akbarzadeh and Mahmoodi Darian (2020).

The steady cavity by line Jacobi, exactly 1000 iterations on grids of 64^2 to 1024^2 nodes: Thomas
elimination on one core of the CPU is compared with cyclic reduction, parallel cyclic reduction and
one thread per line on the GPU. If lines run along y, neighbouring threads read neighbouring words,
so that access is coalesced.

Re = 1000 if the direction of the lines alternates. The comparison of coalesced and uncoalesced
access needs lines along one direction only; then the iteration diverges at Re = 1000 on grids of up
to 256^2 nodes. These runs are at Re = 100; the work of an iteration is the same at any Reynolds
number.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from pysolvers._checks import index
from pysolvers._errors import BackendError
from pysolvers.flow import LidDrivenCavity
from pysolvers.flow.cavity import LineMethod

from ..timing import host

__all__ = ["GRIDS", "ITERATIONS", "RUNS", "Experiment", "Run", "run_experiment"]

GRIDS = (64, 128, 256, 512, 1024)
ITERATIONS = 1000
_WARM_UP = 40


@dataclass(frozen=True, slots=True)
class Run:
    """One column of the experiment.

    Parameters
    ----------
    name : str
        Its name in the table.
    device : str
        ``"cpu"`` (one core) or ``"cuda"``.
    line_method : str
        Algorithm that solves the lines.
    direction : {'x', 'y', 'alternate'}
        Direction of the lines.
    published : str or None
        Name of the column in `souri_timings` that it repeats.
    """

    name: str
    device: str
    line_method: LineMethod
    direction: Literal["alternate", "x", "y"]
    published: str | None = None

    @property
    def reynolds(self) -> float:
        """float: Reynolds number with which the iteration does not diverge."""
        return 1000.0 if self.direction == "alternate" else 100.0


RUNS = (
    Run("one core", "cpu", "thomas", "alternate", "thomas"),
    Run("CR", "cuda", "cr", "x", "cr"),
    Run("PCR", "cuda", "pcr", "x", "pcr"),
    Run("PTA coalesced", "cuda", "thomas", "y", "pta"),
    Run("PTA uncoalesced", "cuda", "thomas", "x"),
    Run("auto", "cuda", "auto", "alternate"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Experiment:
    """The results of the experiment.

    Parameters
    ----------
    iterations : int
        Iterations of each run.
    grids : tuple of int
        Nodes along a side.
    seconds : dict of str to dict of int to float
        Time by name of the run and grid, for runs that were possible.
    reasons : dict of str to str
        Reason why a run is missing, by its name.
    """

    iterations: int
    grids: tuple[int, ...]
    seconds: dict[str, dict[int, float]]
    reasons: dict[str, str]

    def speedups(self, name: str, over: str = RUNS[0].name) -> dict[int, float]:
        """Return how many times faster one run is than another, by grid.

        Parameters
        ----------
        name : str
            The run.
        over : str, default: 'one core'
            The run to compare it with.

        Returns
        -------
        ratios : dict of int to float
            For the grids on which both times are known.
        """
        times, others = self.seconds.get(name, {}), self.seconds.get(over, {})
        return {n: others[n] / time for n, time in times.items() if n in others}


def run_experiment(
    grids: Iterable[int] = GRIDS,
    *,
    iterations: int = ITERATIONS,
    progress: Callable[[list[tuple[Run, int]]], Iterable[tuple[Run, int]]] = iter,
) -> Experiment:
    """Measure every run on every grid.

    Parameters
    ----------
    grids : iterable of int, default: those of the paper
        Nodes along a side.
    iterations : int, default: 1000
        Iterations of each run.
    progress : callable, optional
        Yields the items of its argument and displays the progress.

    Returns
    -------
    experiment : Experiment
        Runs that are not possible on this machine are missing; `reasons` explains why.

    Raises
    ------
    ValueError
        If `iterations` is less than 1, or a grid is too small for the cavity.
    """
    iterations = index("iterations", iterations, 1)
    grids = tuple(grids)
    seconds: dict[str, dict[int, float]] = {}
    reasons: dict[str, str] = {}
    for run, n in progress([(run, n) for run in RUNS for n in grids]):
        if run.name in reasons:
            continue
        try:
            seconds.setdefault(run.name, {})[n] = _seconds(run, n, iterations)
        except BackendError as error:
            reasons[run.name] = str(error)
            seconds.pop(run.name, None)
    return Experiment(iterations, grids, seconds, reasons)


def _seconds(run: Run, n: int, iterations: int) -> float:
    """Return the time of one run, after a first run that loads the kernels."""
    _cavity(run, n).iterate(min(iterations, _WARM_UP))
    cavity = _cavity(run, n)
    return host(lambda: cavity.iterate(iterations), 1)


def _cavity(run: Run, n: int) -> LidDrivenCavity:
    return LidDrivenCavity(
        run.reynolds,
        n,
        wall="thom",
        method="line-jacobi",
        line_method=run.line_method,
        direction=run.direction,
        device=run.device,
        threads=1 if run.device == "cpu" else None,
    )

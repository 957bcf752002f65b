"""The timing experiment of Souri, Akbarzadeh and Mahmoodi Darian (2020).

The steady cavity by line Jacobi, exactly 1000 iterations on grids of 64^2 to 1024^2 nodes: Thomas
elimination on one core of the CPU is compared with cyclic reduction, parallel cyclic reduction and
one thread per line on the GPU. If lines run along y, neighbouring threads read neighbouring words,
so that access is coalesced. Without a GPU the same methods are compared on the CPU. Profiles of the
steady flow stand next to those of Ghia et al. (Fig. 10).

Re = 1000 if the direction of the lines alternates. The comparison of coalesced and uncoalesced
access needs lines along one direction only; then the iteration diverges at Re = 1000 on grids of up
to 256^2 nodes. These runs are at Re = 100; the work of an iteration is the same at any Reynolds
number.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from pysolvers._checks import index
from pysolvers._errors import BackendError
from pysolvers._progress import progress
from pysolvers._runtime import backends
from pysolvers.cases.tables import Column, Table
from pysolvers.flow import CavityResult
from pysolvers.flow.cavity.solver import LineMethod
from pysolvers.papers.pta2020 import LidDrivenCavity, souri_timings

from ..timing import host
from .pta2020_cavity import profile_table, profile_verdict, run_profiles
from .pta2020_figures import add_cylinder_figures, run_cylinder_figures
from .report import Verdict, add_paper_options, report

TITLE = "Souri et al. 2020: the cavity, {} iterations of line Jacobi"
# Target of the package: seconds of 1000 iterations on 1024^2 nodes on an H200.
_BAR_GRID, _BAR_SECONDS = 1024, 0.06
_QUICK = (64, 128), 60  # grids and iterations of --quick

GRIDS = (64, 128, 256, 512, 1024)
ITERATIONS = 1000
BLOCKS = (32, 64, 128, 256)  # threads of a block of PTA in the paper
_WARM_UP = 40
_COALESCED = 2.0  # the paper's speedup by coalesced access


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
    threads : int or None, default: 1
        Threads on the CPU; None for all.
    """

    name: str
    device: str
    line_method: LineMethod
    direction: Literal["alternate", "x", "y"]
    published: str | None = None
    threads: int | None = 1

    @property
    def reynolds(self) -> float:
        """float: Reynolds number with which the iteration does not diverge."""
        return 1000.0 if self.direction == "alternate" else 100.0

    @property
    def lines(self) -> str:
        """str: Direction of the lines, for a table."""
        return "x and y" if self.direction == "alternate" else self.direction


RUNS = (
    Run("one core", "cpu", "thomas", "alternate", "thomas"),
    Run("CR", "cuda", "cr", "x", "cr"),
    Run("PCR", "cuda", "pcr", "x", "pcr"),
    Run("PTA coalesced", "cuda", "thomas", "y", "pta"),
    Run("PTA uncoalesced", "cuda", "thomas", "x"),
    Run("auto", "cuda", "auto", "alternate"),
)
# Measured where there is no GPU.
CPU_RUNS = (
    RUNS[0],
    Run("CR, one core", "cpu", "cr", "x"),
    Run("PCR, one core", "cpu", "pcr", "x"),
    Run("Thomas along y, one core", "cpu", "thomas", "y"),
    Run("Thomas along x, one core", "cpu", "thomas", "x"),
    Run("Thomas, all cores", "cpu", "thomas", "alternate", threads=None),
    Run("auto, all cores", "cpu", "auto", "alternate", threads=None),
)
_EVERY = (*RUNS, *CPU_RUNS[1:])
_PTA = {run.name: run for run in RUNS if run.line_method == "thomas" and run.device == "cuda"}
_ORDER = (
    "The order of the paper, PTA before PCR before CR, is reversed here: CR and PCR keep their "
    "lines in shared memory, where those of the paper keep all variables in global memory, and "
    "one thread a line, at most 1022 lines, does not fill a GPU of today. One core computes the "
    "coefficients in its sweep; CR, PCR and PTA read them from arrays."
)
_COALESCING = (
    "The paper stores the coefficients of the same lines in two orders; here coalesced are lines "
    "along y and uncoalesced lines along x of fields in one order. At most 1022 threads are at "
    "work, which wait for the latency of the memory and not for its bandwidth, and the arrays of "
    "up to 512^2 nodes lie in the second-level cache of a GPU of today."
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
    blocks : dict of int to dict of str to float
        Time of PTA on the finest grid, by threads of a block and name of the run.
    """

    iterations: int
    grids: tuple[int, ...]
    seconds: dict[str, dict[int, float]]
    reasons: dict[str, str]
    blocks: dict[int, dict[str, float]] = field(default_factory=dict)

    def speedups(self, name: str, over: str = RUNS[0].name) -> dict[int, float]:
        """Return how many times faster one run is than another, by grid."""
        times, others = self.seconds.get(name, {}), self.seconds.get(over, {})
        return {n: others[n] / time for n, time in times.items() if n in others}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to its parser."""
    add_paper_options(parser)
    parser.add_argument("--grids", type=int, nargs="+", default=GRIDS, help="nodes along a side")
    parser.add_argument("--iterations", type=int, default=ITERATIONS, help="(%(default)d)")
    add_cylinder_figures(parser)


def run(args: argparse.Namespace) -> int:
    """Run the experiment and return the exit code."""
    if args.cylinder:
        return run_cylinder_figures(args)
    grids, iterations = _QUICK if args.quick else (args.grids, args.iterations)
    experiment = run_experiment(grids, iterations=iterations)
    profiles = run_profiles(129, (100,)) if args.quick else run_profiles()
    compared = profile_table(profiles)
    report(
        args,
        "pta2020",
        TITLE.format(experiment.iterations),
        [*tables(experiment), compared],
        verdict=[
            verdict(experiment),
            coalescing_verdict(experiment),
            profile_verdict(compared),
        ],
        facts=asdict(experiment),
        pictures={"times": _picture(experiment), "fig10": lambda: _cavities(profiles)},
    )
    return 0


def verdict(experiment: Experiment) -> Verdict:
    """Return what the paper claims and what was found."""
    published = {name: souri_timings()[name].largest_speedup for name in ("pta", "pcr", "cr")}
    found = {
        run.published: max(ratios.values())
        for run in RUNS[1:]
        if run.published in published and (ratios := experiment.speedups(run.name))
    }
    claimed = ", ".join(f"{n.upper()} {value:g}" for n, value in published.items())
    listed = ", ".join(f"{n.upper()} {found[n]:.0f}" for n in published if n in found)
    fast = all(found.get(name, 0.0) >= value for name, value in published.items())
    ranked = fast and found["pta"] == max(found.values())
    outcome = "not measured" if not found else "confirmed" if ranked else "order not confirmed"
    return Verdict(
        f"a GPU solves the lines of the cavity up to {claimed} times faster than one core, so that "
        "PTA is the fastest method",
        f"up to {listed} times" if found else "this machine has no GPU that the package can use",
        f"speedups confirmed, {outcome}" if found and fast and not ranked else outcome,
    )


def coalescing_verdict(experiment: Experiment) -> Verdict:
    """Return what the paper claims of coalesced access and what was found."""
    ratios = experiment.speedups("PTA coalesced", "PTA uncoalesced").values()
    found = f"{min(ratios):.2f} to {max(ratios):.2f} times" if ratios else "no GPU to measure it on"
    confirmed = "confirmed" if ratios and max(ratios) >= _COALESCED else "not confirmed"
    return Verdict(
        f"PTA is about {_COALESCED:g} times faster with coalesced access",
        found,
        confirmed if ratios else "not measured",
    )


def tables(experiment: Experiment) -> Iterator[Table]:
    """Yield the tables: seconds and speedups, with the published ones."""
    notes = ["published: Intel i7-990X, one core; NVIDIA GTX 580", *_notes(experiment)]
    yield _table("seconds", experiment, experiment.seconds, ".4f", _published_seconds, notes)
    ratios = {run.name: experiment.speedups(run.name) for run in _EVERY[1:]}
    if any(ratios.values()):
        title = f"times faster than {RUNS[0].name}"
        yield _table(title, experiment, ratios, ".2f", _published_speedups)
    if experiment.blocks:
        columns = [Column("threads a block"), *(Column(f"{name}, s", ".4f") for name in _PTA)]
        rows = [(block, *times.values()) for block, times in experiment.blocks.items()]
        yield Table(f"PTA on {experiment.grids[-1]}^2 nodes by threads a block", columns, rows)


def _table(
    title: str,
    experiment: Experiment,
    values: dict[str, dict[int, float]],
    form: str,
    published: Callable[[Run], str],
    notes: Iterable[str] = (),
) -> Table:
    columns = [Column("run"), Column("lines along"), Column("Re", "g")]
    columns += [Column(f"{n}^2", form) for n in experiment.grids]
    rows = [
        (
            *(run.name, run.lines, run.reynolds),
            *(values[run.name][n] for n in experiment.grids),
            published(run),
        )
        for run in _EVERY
        if values.get(run.name)
    ]
    return Table(title, [*columns, Column("published", left=True)], rows, list(notes))


def _published_seconds(run: Run) -> str:
    timing = souri_timings().get(run.published or "")
    known = timing is not None and timing.seconds is not None
    return f"{timing.seconds:g} at {timing.nodes}^2" if timing and known else ""


def _published_speedups(run: Run) -> str:
    timing = souri_timings().get(run.published or "")
    return f"{timing.least_speedup:g} to {timing.largest_speedup:g}" if timing else ""


def _notes(experiment: Experiment) -> Iterator[str]:
    """Yield the remarks: coalescing, the target of the package, what was not measured."""
    ratios = experiment.speedups("PTA coalesced", "PTA uncoalesced")
    if ratios:
        listed = ", ".join(f"{ratio:.2f} at {n}^2" for n, ratio in ratios.items())
        yield f"coalesced over uncoalesced: {listed}; published: about {_COALESCED:g}"
        yield _COALESCING
    others = (experiment.speedups("PTA coalesced", name) for name in ("CR", "PCR"))
    if any(ratio < 1 for ratios in others for ratio in ratios.values()):
        yield _ORDER
    time = experiment.seconds.get("auto", {}).get(_BAR_GRID)
    if time is not None:
        yield (
            f"{ITERATIONS} iterations on {_BAR_GRID}^2 nodes: "
            f"{time * ITERATIONS / experiment.iterations:.4f} s, bar {_BAR_SECONDS:g} s (H200)"
        )
    for reason in dict.fromkeys(experiment.reasons.values()):
        names = ", ".join(name for name, text in experiment.reasons.items() if text == reason)
        yield f"not measured: {names}: {reason}"


def _cavities(results: list[CavityResult]) -> Any:
    from .pta2020_plots import plot_cavities

    return plot_cavities(results)


def _picture(experiment: Experiment) -> Callable[[], Any]:
    def draw() -> Any:
        from .figures import plot_speedups

        timings = souri_timings()
        published = {
            run.name: (timings[run.published].least_speedup, timings[run.published].largest_speedup)
            for run in RUNS[1:]
            if run.published in timings
        }
        ratios = {run.name: experiment.speedups(run.name) for run in _EVERY}
        title = f"The cavity, {experiment.iterations} iterations of line Jacobi"
        return plot_speedups(experiment.seconds, ratios, published, title)

    return draw


def run_experiment(
    grids: Iterable[int] = GRIDS,
    *,
    iterations: int = ITERATIONS,
) -> Experiment:
    """Measure every run on every grid, and those of the CPU alone where there is no GPU."""
    iterations = index("iterations", iterations, 1)
    grids = tuple(grids)
    runs = (*RUNS, *CPU_RUNS[1:]) if backends.unavailable_reason("cuda") else RUNS
    seconds: dict[str, dict[int, float]] = {}
    reasons: dict[str, str] = {}
    for run, n in progress([(run, n) for run in runs for n in grids], "pta2020"):
        if run.name in reasons:
            continue
        try:
            seconds.setdefault(run.name, {})[n] = _seconds(run, n, iterations)
        except BackendError as error:
            reasons[run.name] = str(error)
            seconds.pop(run.name, None)
    blocks = {}
    if seconds.keys() >= _PTA.keys():
        for block in progress(BLOCKS, "pta2020"):
            blocks[block] = {
                run.name: _seconds(run, grids[-1], iterations, block) for run in _PTA.values()
            }
    return Experiment(iterations, grids, seconds, reasons, blocks)


def _seconds(run: Run, n: int, iterations: int, block: Any = None) -> float:
    """Return the time of one run, after a first run that loads the kernels."""
    _cavity(run, n, block).iterate(min(iterations, _WARM_UP))
    cavity = _cavity(run, n, block)
    return host(lambda: cavity.iterate(iterations), 1)


def _cavity(run: Run, n: int, block: Any) -> LidDrivenCavity:
    return LidDrivenCavity(
        run.reynolds,
        n,
        wall="thom",
        method="line-jacobi",
        line_method=run.line_method,
        direction=run.direction,
        device=run.device,
        threads=run.threads if run.device == "cpu" else None,
        block=block,
    )

"""``python -m pysolvers reproduce pta2020``: measured times, compared with the published ones."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pysolvers._progress import progress
from pysolvers.cases.records import write_record
from pysolvers.cases.tables import Verdict
from pysolvers.papers import souri_timings

from .. import machine
from .pta2020_figures import add_cylinder_figures, run_cylinder_figures
from .pta2020_times import GRIDS, ITERATIONS, RUNS, Experiment, Run, run_experiment

# Target of the package: seconds of 1000 iterations on 1024^2 nodes on an H200.
_BAR_GRID, _BAR_SECONDS = 1024, 0.06
_QUICK = (64, 128), 60  # grids and iterations of --quick


class _Quick(argparse.Action):
    """The option ``--quick``: sets the grids and the iterations."""

    def __call__(
        self, parser: object, namespace: argparse.Namespace, values: object, option: object = None
    ) -> None:
        """Set the options."""
        namespace.grids, namespace.iterations = _QUICK


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiment to its parser."""
    parser.add_argument("--grids", type=int, nargs="+", default=GRIDS, help="nodes along a side")
    parser.add_argument("--iterations", type=int, default=ITERATIONS, help="(%(default)d)")
    parser.add_argument("--quick", action=_Quick, nargs=0, help="small sizes, to see that it runs")
    parser.add_argument("--output", type=Path, default=Path("results"), help="folder (%(default)s)")
    parser.add_argument("--no-plot", action="store_true", help="write no picture")
    add_cylinder_figures(parser)


def run(args: argparse.Namespace) -> int:
    """Run the experiment and return the exit code."""
    if args.cylinder:
        return run_cylinder_figures(args)
    experiment = run_experiment(args.grids, iterations=args.iterations, progress=_shown)
    for line in report(experiment):
        print(line)
    args.output.mkdir(parents=True, exist_ok=True)
    _write(experiment, args.output / "pta2020.json")
    if not args.no_plot:
        _draw(experiment, args.output / "pta2020.png")
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


def report(experiment: Experiment) -> Iterator[str]:
    """Yield the lines that set the measured times, compared with the published ones."""
    gpu = machine.gpu()
    yield str(verdict(experiment))
    yield ""
    yield f"Souri et al. 2020: the cavity, {experiment.iterations} iterations of line Jacobi"
    yield f"here: {machine.cpu_model()}; {gpu['name'] if gpu else 'no GPU'}"
    yield "published: Intel i7-990X, one core; NVIDIA GTX 580"
    yield ""
    yield "seconds"
    yield from _rows(experiment, experiment.seconds, "8.4f", _published_seconds)
    yield ""
    ratios = {run.name: experiment.speedups(run.name) for run in RUNS[1:]}
    if any(ratios.values()):
        yield f"times faster than {RUNS[0].name}"
        yield from _rows(experiment, ratios, "8.2f", _published_speedups)
        yield ""
    yield from _coalescing(experiment)
    yield from _bar(experiment)
    for reason in dict.fromkeys(experiment.reasons.values()):
        names = ", ".join(name for name, text in experiment.reasons.items() if text == reason)
        yield f"not measured: {names}: {reason}"


def _rows(
    experiment: Experiment, values: dict[str, dict[int, float]], form: str, published: Any
) -> Iterator[str]:
    heads = "".join(f"{f'{n}^2':>9}" for n in experiment.grids)
    yield f"{'':16}{heads}  published"
    for run in RUNS:
        row = values.get(run.name)
        if row:
            cells = "".join(f" {format(row[n], form)}" for n in experiment.grids)
            yield f"{run.name:16}{cells}  {published(run)}".rstrip()


def _published_seconds(run: Run) -> str:
    timing = souri_timings().get(run.published or "")
    known = timing is not None and timing.seconds is not None
    return f"{timing.seconds:g} at {timing.nodes}^2" if timing and known else ""


def _published_speedups(run: Run) -> str:
    timing = souri_timings().get(run.published or "")
    return f"{timing.least_speedup:g} to {timing.largest_speedup:g}" if timing else ""


def _coalescing(experiment: Experiment) -> Iterator[str]:
    ratios = experiment.speedups("PTA coalesced", "PTA uncoalesced")
    if ratios:
        listed = ", ".join(f"{ratio:.2f} at {n}^2" for n, ratio in ratios.items())
        yield f"coalesced over uncoalesced: {listed}; published: about 2"


def _bar(experiment: Experiment) -> Iterator[str]:
    times = [
        values[_BAR_GRID] * ITERATIONS / experiment.iterations
        for name, values in experiment.seconds.items()
        if name == "auto" and _BAR_GRID in values
    ]
    if times:
        yield (
            f"{ITERATIONS} iterations on {_BAR_GRID}^2 nodes: {min(times):.4f} s, "
            f"bar {_BAR_SECONDS:g} s (H200)"
        )


def _write(experiment: Experiment, path: Path) -> None:
    facts = {"gpu": machine.gpu(), "machine": machine.machine(), **asdict(experiment)}
    write_record(path, facts)
    print(f"wrote {path}", file=sys.stderr)


def _draw(experiment: Experiment, path: Path) -> None:
    from .speedups import plot_speedups

    timings = souri_timings()
    published = {
        run.name: (timings[run.published].least_speedup, timings[run.published].largest_speedup)
        for run in RUNS[1:]
        if run.published in timings
    }
    ratios = {run.name: experiment.speedups(run.name) for run in RUNS}
    title = f"The cavity, {experiment.iterations} iterations of line Jacobi"
    try:
        figure = plot_speedups(experiment.seconds, ratios, published, title)
    except ImportError as error:
        print(f"no picture: {error}", file=sys.stderr)
        return
    figure.savefig(path, dpi=110)
    print(f"wrote {path}", file=sys.stderr)


def _shown(items: list[tuple[Run, int]]) -> Iterable[tuple[Run, int]]:
    return progress(items, "pta2020")

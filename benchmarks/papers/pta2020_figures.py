"""``python -m pysolvers reproduce pta2020 --cylinder``: Figs. 13 to 19 of Souri et al. (2020)."""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pysolvers._progress import progress
from pysolvers.cases.records import write_record
from pysolvers.flow import CylinderResult, Strouhal
from pysolvers.papers import breuer_recirculation_length

from .. import machine
from . import pta2020_cylinder as paper

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "add_cylinder_figures", "run_cylinder_figures"]

FIGURES = (13, 14, 15, 16, 17, 18, 19)
_NO_STROUHAL = "no number: the run is too short"


def add_cylinder_figures(parser: argparse.ArgumentParser) -> None:
    """Add the options of these figures to the parser of the experiment."""
    parser.add_argument(
        "--cylinder", action="store_true", help="the flow around a cylinder, Figs. 13 to 19"
    )
    parser.add_argument(
        "--figures", type=int, nargs="+", choices=FIGURES, default=FIGURES, help="of --cylinder"
    )
    parser.add_argument(
        "--shape",
        type=int,
        nargs=2,
        default=(161, 801),
        metavar=("NY", "NX"),
        help="nodes along y and x of Figs. 13 to 18 (161 801)",
    )
    parser.add_argument("--device", default="cpu", help="of Figs. 13 to 18 (%(default)s)")
    parser.add_argument("--end", type=float, default=150.0, help="end of Fig. 18 (%(default)g)")
    parser.add_argument("--steps", type=int, default=10, help="of Fig. 19 (%(default)d)")


def run_cylinder_figures(args: argparse.Namespace) -> int:
    """Make the figures and return the exit code."""
    args.output.mkdir(parents=True, exist_ok=True)
    wanted, shape = set(args.figures), tuple(args.shape)
    facts: dict[str, Any] = {"machine": machine.machine(), "gpu": machine.gpu(), "shape": shape}
    print(
        "Claimed: a step on a GPU is about 9 times faster than on one core (Fig. 19); the paper "
        "prints no numbers for Figs. 13 to 18. Found: the tables of the figures below.\n"
    )
    print(f"Souri et al. 2020, square cylinder, {shape[0]} x {shape[1]} nodes on {args.device}")
    if wanted & {13, 16}:
        _steady(args, wanted, shape, facts)
    if wanted & {14, 15, 17, 18}:
        _unsteady(args, wanted, shape, facts)
    if 19 in wanted:
        _times(args, facts)
    path = args.output / "pta2020_cylinder.json"
    write_record(path, facts)
    print(f"wrote {path}", file=sys.stderr)
    return 0


def _steady(
    args: argparse.Namespace, wanted: set[int], shape: tuple[int, int], facts: dict[str, Any]
) -> None:
    from . import pta2020_plots as plots

    numbers = set(paper.LENGTH_REYNOLDS if 13 in wanted else ())
    numbers |= set(paper.STREAMLINE_REYNOLDS if 16 in wanted else ())
    results = paper.run_steady(
        sorted(numbers), shape, device=args.device, progress=lambda r: progress(r, "steady")
    )
    if 13 in wanted:
        found = {re: results[re].recirculation_centre_length for re in paper.LENGTH_REYNOLDS}
        published = {re: breuer_recirculation_length(re) + 0.5 for re in paper.LENGTH_REYNOLDS}
        facts["recirculation"] = found
        print("\nFig. 13: recirculation length Lc/D from the centre")
        print(f"{'Re':>8}{'here':>10}{'Breuer':>10}")
        for re, length in found.items():
            print(f"{re:8g}{length:10.4f}{published[re]:10.4f}")
        _save(args, 13, lambda: plots.plot_lengths(found, published))
    if 16 in wanted:
        chosen = [results[re] for re in paper.STREAMLINE_REYNOLDS]
        _save(args, 16, lambda: plots.plot_fields(chosen))


def _unsteady(
    args: argparse.Namespace, wanted: set[int], shape: tuple[int, int], facts: dict[str, Any]
) -> None:
    from . import pta2020_plots as plots

    numbers = paper.SHEDDING_REYNOLDS if 18 in wanted else (100.0,)
    first: list[CylinderResult] = []
    strouhal: dict[float, Strouhal | None] = {}
    scale = min(1.0, args.end / paper.SNAPSHOTS[-1])  # a shorter run for tests
    for re in progress(list(numbers), "unsteady"):
        times = [scale * time for time in (paper.SNAPSHOTS if re == 100 else (100.0,))]
        until = args.end if 18 in wanted else times[-1]
        results, last = paper.run_unsteady(
            re, shape, device=args.device, snapshots=times, until=until
        )
        first.append(results[0])
        try:
            strouhal[re] = last.strouhal()
        except ValueError:
            strouhal[re] = None
        if re == 100:
            _at_100(args, wanted, results)
    if 18 in wanted:
        facts["strouhal"] = {re: found and found._asdict() for re, found in strouhal.items()}
        print("\nFig. 18: Strouhal number")
        for re, found in strouhal.items():
            text = f"{found.value:.5f} +- {found.uncertainty:.5f}" if found else _NO_STROUHAL
            print(f"{re:8g}  {text}")
        _save(args, 18, lambda: plots.plot_fields(first, vorticity=True))
        known = {re: found for re, found in strouhal.items() if found}
        if known:
            _save(args, 18, lambda: plots.plot_strouhal(known), "_strouhal")


def _at_100(args: argparse.Namespace, wanted: set[int], results: list[CylinderResult]) -> None:
    from . import pta2020_plots as plots

    if 14 in wanted:
        _save(args, 14, lambda: plots.plot_centre_line(results[0]))
    if 15 in wanted:
        _save(args, 15, lambda: plots.plot_stations(results[0]))
    if 17 in wanted:
        _save(args, 17, lambda: plots.plot_fields(results))


def _times(args: argparse.Namespace, facts: dict[str, Any]) -> None:
    grids = [tuple(args.shape)] if args.steps < 2 else paper.TIMING_GRIDS
    times = paper.run_times(grids, steps=args.steps, progress=lambda r: progress(r, "times"))
    facts["seconds"], facts["reasons"] = times.seconds, times.reasons
    print("\nFig. 19: milliseconds of a step, and times faster than lines on one core")
    for line in _table(times):
        print(line)
    print("published: about 9 times, Intel i7-990X (one core) and NVIDIA GTX 580")


def _table(times: paper.CylinderTimes) -> Iterator[str]:
    cases = list(next(iter(times.seconds.values()), {}))
    for case in cases:
        cells = []
        for run in paper.RUNS:
            if case in times.seconds.get(run.name, {}):
                value = times.seconds[run.name][case] * 1e3
                ratio = times.speedups(run.name).get(case, float("nan"))
                cells.append(f"{run.name} {value:.3f} ({ratio:.1f})")
        yield f"{case}: " + ", ".join(cells)
    for name, reason in times.reasons.items():
        yield f"not measured: {name}: {reason}"


def _save(
    args: argparse.Namespace, number: int, draw: "Callable[[], Figure]", suffix: str = ""
) -> None:
    """Draw and write a picture, if one is asked for and can be drawn."""
    if args.no_plot:
        return
    path: Path = args.output / f"pta2020_fig{number}{suffix}.png"
    try:
        draw().savefig(path, dpi=110)
    except ImportError as error:
        print(f"no picture: {error}", file=sys.stderr)
        return
    print(f"wrote {path}", file=sys.stderr)

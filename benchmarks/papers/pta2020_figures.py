"""``python -m pysolvers reproduce pta2020 --cylinder``: Figs. 13 to 19 of Souri et al. (2020)."""

import argparse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pysolvers._progress import progress
from pysolvers.cases.tables import Column, Table, write_tables
from pysolvers.flow import CylinderResult, Strouhal
from pysolvers.papers import breuer_drag, breuer_recirculation_length

from . import pta2020_cylinder as paper
from .report import Verdict, report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "add_cylinder_figures", "run_cylinder_figures", "verdicts"]

FIGURES = (13, 14, 15, 16, 17, 18, 19)
_NAME = "pta2020_cylinder"
_TITLE = "Souri et al. 2020, square cylinder, {} x {} nodes on {}"
_PUBLISHED_SPEEDUP = 9.0  # Fig. 19, "about"
_AGREES = 0.05  # relative difference up to which a length counts as the published one
_QUICK_SHAPE, _QUICK_END = (33, 201), 11.0
_NO_STROUHAL = "the run is too short"
_BREUER = (
    "Breuer et al. 2000: the line Lr/D = -0.065 + 0.0554 Re, and the drag read off a figure, "
    "within 3 %; the paper by Souri et al. has no drag"
)
_NO_NUMBERS = "published Strouhal numbers: no published numbers at hand"


@dataclass(frozen=True, slots=True)
class _Found:
    """What a run found: tables, entries of the record, and functions that draw figures."""

    tables: list[Table] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    pictures: dict[str, "Callable[[], Figure]"] = field(default_factory=dict)


def add_cylinder_figures(parser: argparse.ArgumentParser) -> None:
    """Add the options of these figures to the parser of the experiment."""
    parser.add_argument(
        "--cylinder",
        action="store_true",
        help="the flow around a cylinder, Figs. 13 to 19; --quick: on 33 x 201 nodes",
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
    wanted, shape, end = set(args.figures), tuple(args.shape), args.end
    steps, grids = args.steps, paper.TIMING_GRIDS
    if args.quick:
        shape, end, steps, grids = _QUICK_SHAPE, _QUICK_END, 1, (_QUICK_SHAPE,)
    found = _Found(facts={"shape": shape})
    title = _TITLE.format(*shape, args.device)
    stages: list[Callable[[], None]] = []
    if wanted & {13, 16}:
        stages.append(lambda: _steady(args.device, wanted, shape, found))
    if wanted & {14, 15, 17, 18}:
        stages.append(lambda: _unsteady(args.device, end, wanted, shape, found))
    if 19 in wanted:
        stages.append(lambda: _times(grids, steps, found))
    try:
        for stage in stages:
            stage()
            write_tables(args, _NAME, title, found.tables, facts=found.facts)
    finally:  # what was found before an error is reported, too
        if found.tables or found.pictures:
            report(
                args,
                _NAME,
                title,
                found.tables,
                verdict=verdicts(found.facts),
                facts=found.facts,
                pictures=found.pictures,
            )
    return 0


def verdicts(facts: Mapping[str, Any]) -> list[Verdict]:
    """Return what the paper claims of the cylinder and what a run found."""
    lengths = facts.get("recirculation", {})
    errors = [abs(at / (breuer_recirculation_length(re) + 0.5) - 1) for re, at in lengths.items()]
    nodes = " x ".join(map(str, facts.get("shape", ())))
    over_one = facts.get("speedups", {})
    speedups = over_one.get(paper.PTA, {}).values()
    return [
        Verdict(
            "the length of the recirculation grows with Re as in published results (Fig. 13)",
            f"within {max(errors):.1%} of the line of Breuer et al. 2000 on {nodes} nodes"
            if errors
            else "Fig. 13 was not made",
            "not measured"
            if not errors
            else "confirmed"
            if max(errors) < _AGREES
            else "not confirmed",
        ),
        Verdict(
            f"a step by PTA on a GPU is about {_PUBLISHED_SPEEDUP:g} times faster than on one core "
            "(Fig. 19)",
            f"{_range(speedups)}{_partition(over_one)}" if speedups else "no time of a GPU",
            "not measured"
            if not speedups
            else "confirmed"
            if max(speedups) >= _PUBLISHED_SPEEDUP
            else "not confirmed",
        ),
    ]


def _range(speedups: Iterable[float]) -> str:
    found = list(speedups)
    return f"{min(found):.1f} to {max(found):.1f} times"


def _partition(speedups: Mapping[str, Mapping[str, float]]) -> str:
    """Return the speedups of the other solution of the lines, as a part of a sentence."""
    found = speedups.get(paper.PARTITION, {}).values()
    return f"; {_range(found)} with lines by the partition method" if found else ""


def _steady(device: str, wanted: set[int], shape: tuple[int, int], found: _Found) -> None:
    numbers = set(paper.LENGTH_REYNOLDS if 13 in wanted else ())
    numbers |= set(paper.STREAMLINE_REYNOLDS if 16 in wanted else ())
    results = paper.run_steady(sorted(numbers), shape, device=device)
    if 13 in wanted:
        lengths = {re: results[re].recirculation_centre_length for re in paper.LENGTH_REYNOLDS}
        published = {re: breuer_recirculation_length(re) + 0.5 for re in paper.LENGTH_REYNOLDS}
        found.facts["recirculation"] = lengths
        drags = {re: results[re].drag for re in paper.LENGTH_REYNOLDS}
        curve = breuer_drag()
        known = dict(zip(curve["re"].tolist(), curve["cd"].tolist(), strict=True))
        columns = (
            Column("Re", "g"),
            Column("Lc/D, here", ".4f"),
            Column("Breuer", ".4f"),
            Column("Cd, here", ".3f"),
            Column("Breuer", ".2f"),
        )
        rows = [(re, lengths[re], published[re], drags[re], known.get(re)) for re in lengths]
        title = "Fig. 13: recirculation length Lc/D from the centre, and drag"
        found.tables.append(Table(title, columns, rows, (_BREUER,)))
        found.facts["drag"] = drags
        found.pictures["fig13"] = lambda: _plots().plot_lengths(lengths, published)
        found.pictures["fig13_drag"] = lambda: _plots().plot_drag(drags, known)
    if 16 in wanted:
        chosen = [results[re] for re in paper.STREAMLINE_REYNOLDS]
        found.pictures["fig16"] = lambda: _plots().plot_fields(chosen)


def _unsteady(
    device: str, end: float, wanted: set[int], shape: tuple[int, int], found: _Found
) -> None:
    numbers = paper.SHEDDING_REYNOLDS if 18 in wanted else (100.0,)
    first: list[CylinderResult] = []
    strouhal: dict[float, Strouhal | None] = {}
    scale = min(1.0, end / paper.SNAPSHOTS[-1])  # a shorter run for tests
    for re in progress(list(numbers), "unsteady"):
        times = [scale * time for time in (paper.SNAPSHOTS if re == 100 else (100.0,))]
        until = end if 18 in wanted else times[-1]
        results, last = paper.run_unsteady(re, shape, device=device, snapshots=times, until=until)
        first.append(results[0])
        try:
            strouhal[re] = last.strouhal()
        except ValueError:
            strouhal[re] = None
        if re == 100:
            _at_100(wanted, results, found)
    if 18 in wanted:
        found.facts["strouhal"] = {re: n and n._asdict() for re, n in strouhal.items()}
        rows = [
            (re, n.value, n.uncertainty) if n else (re, _NO_STROUHAL, None)
            for re, n in strouhal.items()
        ]
        columns = (Column("Re", "g"), Column("Strouhal number", ".5f"), Column("+-", ".5f"))
        found.tables.append(Table("Fig. 18: Strouhal number", columns, rows, (_NO_NUMBERS,)))
        found.pictures["fig18"] = lambda: _plots().plot_fields(first, vorticity=True)
        known = {re: n for re, n in strouhal.items() if n}
        if known:
            found.pictures["fig18_strouhal"] = lambda: _plots().plot_strouhal(known)


def _at_100(wanted: set[int], results: list[CylinderResult], found: _Found) -> None:
    if 14 in wanted:
        found.pictures["fig14"] = lambda: _plots().plot_centre_line(results[0])
    if 15 in wanted:
        found.pictures["fig15"] = lambda: _plots().plot_stations(results[0])
    if 17 in wanted:
        found.pictures["fig17"] = lambda: _plots().plot_fields(results)


def _times(grids: Any, steps: int, found: _Found) -> None:
    times = paper.run_times(grids, steps=steps)
    found.facts["seconds"], found.facts["reasons"] = times.seconds, times.reasons
    found.facts["speedups"] = {run.name: times.speedups(run.name) for run in paper.RUNS}
    runs = [run.name for run in paper.RUNS if times.seconds.get(run.name)]
    rows = []
    for case in next(iter(times.seconds.values()), {}):
        cells: list[Any] = [case]
        for name in runs:
            cells += [1e3 * times.seconds[name][case], times.speedups(name).get(case)]
        rows.append(cells)
    columns = [Column("case")]
    for name in runs:
        columns += [Column(f"{name}, ms", ".3f"), Column("×", ".1f")]
    notes = [f"not measured: {name}: {reason}" for name, reason in times.reasons.items()]
    notes.append("published: about 9 times, Intel i7-990X (one core) and NVIDIA GTX 580")
    notes.append("208 x 1000 intervals stand for the 200 x 1000 of the paper")
    notes.append(
        "PTA has one thread a line and coefficients in global memory, as in the paper; the "
        "partition method has many threads a line, in shared memory; 'fast' solves psi directly"
    )
    title = f"Fig. 19: milliseconds of a step, and times faster than {paper.ONE_CORE}"
    found.tables.append(Table(title, columns, rows, notes))
    if paper.PTA in times.seconds:
        found.tables.append(_block_table(grids[-1], steps))


def _block_table(shape: tuple[int, int], steps: int) -> Table:
    re = paper.TIMING_REYNOLDS[0]
    times = paper.run_blocks(shape, re, steps=steps)
    columns = (Column("threads a block"), Column("ms", ".3f"))
    title = f"PTA: milliseconds of a step, {shape[0] - 1} x {shape[1] - 1}, Re {re:g}"
    return Table(title, columns, [(block, 1e3 * time) for block, time in times.items()])


def _plots() -> Any:
    from . import pta2020_plots

    return pta2020_plots

"""``python -m pysolvers reproduce gceidd2022``: tables, figures and speeds of the paper."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pysolvers._progress import progress
from pysolvers._runtime import backends
from pysolvers.cases.tables import Column, Table
from pysolvers.papers.gceidd2022 import GRIDS

from ..timing import device_bandwidth, require_cupy
from .figures import Curves
from .gceidd2022_runs import (
    METHODS,
    channel_curves,
    courant_curves,
    front_curves,
    strip_curves,
    table_entries,
)
from .gceidd2022_speed import STRIPS, StepTime, make_clock, solve_seconds, step_time, strip_counts
from .report import Verdict, add_paper_options, report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = "Foadaddini et al. 2022: GCEIDD for convection-dominated diffusion"
SPEED_GRIDS = (128, 256, 512, 1024)
# Largest speedups of strips in the paper (Quadro K2200): solves along y and along x, whole step.
PUBLISHED_GAINS = {
    128: (16.4, 10.9, 3.0),
    256: (10.6, 6.7, 2.5),
    512: (5.8, 4.9, 1.8),
    1024: (3.5, 4.7, 1.5),
}
# Strips on each grid for which the paper compares with CR-PCR; its speedups are 19.7 to 4.2.
PUBLISHED_AGAINST = {128: 32, 256: 64, 512: 128, 1024: 256}
_EXAMPLES = ("1, D 0.005", "1, D 0.05", "2, D 0.005", "2, D 0.01")
_BAR_FRACTION, _BAR_MICROSECONDS = 0.75, 15.0


_AGREES = 0.03  # relative difference up to which an error counts as the published one


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiments to their parser."""
    add_paper_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run the experiments and return the exit code."""
    reason = backends.unavailable_reason("cuda")
    device = "cpu" if reason else "cuda"
    grids = GRIDS[:1] if args.quick else GRIDS[:3] if reason else GRIDS
    numbers = (1,) if args.quick else (1, 2, 3, 4)
    tables = [error_table(number, grids, device) for number in numbers]
    figures = _figures(device, quick=args.quick, small=bool(reason))
    tables += [_curve_table(curves) for curves in (*figures["strips"], *figures["courant"])]
    tables += list(_speed_tables(quick=args.quick)) if not reason else [_nothing(reason)]
    pictures = {name: _picture(name, curves) for name, curves in figures.items()}
    said = verdict(tables[: len(numbers)])
    report(args, "gceidd2022", TITLE, tables, verdict=said, pictures=pictures)
    return 0


def verdict(tables: Sequence[Table]) -> Verdict:
    """Return what the paper claims and what the tables of errors of a run say about it."""
    printed: dict[tuple[Any, ...], float] = {}
    found: dict[tuple[Any, ...], float] = {}
    for table in tables:
        for method, nodes, _, _, as_printed, _, as_found in table.rows:
            # The paper has one MU, which the reading that agrees better stands for.
            key = table.title, str(method).replace("MU-L", "MU").replace("MU-P", "MU"), nodes
            for best, change in ((printed, as_printed), (found, as_found)):
                best[key] = min(best.get(key, float("inf")), abs(float(str(change))))
    counts = [sum(change < _AGREES for change in best.values()) for best in (printed, found)]
    total = len(found)
    return Verdict(
        f"the {total} errors of these tables on these grids",
        f"{counts[0]} agree within {_AGREES:.0%} with the method as printed, {counts[1]} with "
        "plain upwind differences and with sources and sides one step late",
        "confirmed with these two changes of the text" if counts[1] == total else "not confirmed",
    )


def error_table(number: int, grids: Sequence[int], device: str | None) -> Table:
    """Return one of the tables 1 to 4."""
    heads = ("published", "as printed", "change", "as found", "change")
    columns = [Column("method, norm"), Column("nodes")]
    columns += [Column(h, "+.1%" if h == "change" else ".2e") for h in heads]
    rows = []
    for e in table_entries(number, grids, device=device):
        changes = e.printed / e.published - 1, e.found / e.published - 1
        found = (e.published, e.printed, changes[0], e.found, changes[1])
        rows.append((f"{e.method} {e.norm}", e.nodes, *found))
    return Table(
        f"Table {number}: example {_EXAMPLES[number - 1]}",
        columns,
        rows,
        (
            "As printed: modified upwind differences, data in time"
            + (", D 0.001." if number == 1 else ".")
            + " As found: plain upwind differences, sources and sides one step late. MU-L"
            " extrapolates from the newest half levels, MU-P as printed; the paper has one MU.",
        ),
    )


def _figures(device: str, *, quick: bool, small: bool) -> dict[str, list[Curves]]:
    """Return the curves of the figures 7 to 16 by picture."""
    cells = 32 if quick else 128 if small else 256
    strips = strip_counts(cells, STRIPS[:7])
    many = min(32, cells // 4)
    courant = (1, 2) if quick else (1, 2, 3, 4, 6, 8)
    shape, parts = ((64, 16), (8, 4)) if quick else ((512, 128), (64, 16))
    return {
        "strips": [strip_curves(k, strips, cells=cells, device=device) for k in (1, 2)],
        "courant": [
            courant_curves(k, courant, cells=cells, strips=many, device=device) for k in (1, 2)
        ],
        "fronts": [front_curves(c, cells=cells, strips=many, device=device) for c in (1, 2)],
        "channel": [channel_curves(cells=shape, strips=parts, device=device)],
    }


def _picture(name: str, curves: list[Curves]) -> "Callable[[], Figure]":
    def draw() -> "Figure":
        from .figures import plot_curves

        errors = name in ("strips", "courant")
        return plot_curves(curves, log=(errors, errors))

    return draw


def _curve_table(curves: Curves) -> Table:
    places = sorted({x for line in curves.lines.values() for x in line[0]})
    found = {name: dict(zip(*line, strict=True)) for name, line in curves.lines.items()}
    columns = (Column(curves.x, "g"), *(Column(name, ".2e") for name in METHODS))
    rows = [(x, *(found.get(name, {}).get(x) for name in METHODS)) for x in places]
    notes = ("Empty: the error is larger than 1.",) if "CFL" in curves.x else ()
    return Table(f"{curves.title}: {curves.y}", columns, rows, notes)


def _nothing(reason: str) -> Table:
    return Table("Speed", (Column("not measured"),), [(reason,)])


def _speed_tables(*, quick: bool) -> Iterator[Table]:
    """Yield the tables of the figures 17 to 23 and of the fused step."""
    grids = (32,) if quick else SPEED_GRIDS
    paper = {
        (n, s): step_time(n, s, "paper")
        for n, s in progress([(n, s) for n in grids for s in _s(n)], "gceidd2022")
    }
    fused = {(n, s): step_time(n, s) for n in (*grids, *(() if quick else (2048,))) for s in _s(n)}
    yield _gains(paper, grids)
    yield _parts(paper, grids[-2:])
    yield _strategies(grids[-1])
    yield _against(paper, fused, grids)
    yield _fused(paper, fused, device_bandwidth())


def _s(cells: int) -> list[int]:
    return strip_counts(cells)


def _gains(paper: dict[tuple[int, int], StepTime], grids: Sequence[int]) -> Table:
    columns = [Column("cells")]
    for name in ("y solve", "x solve", "step"):
        columns += [Column(f"{name}, gain", ".1f"), Column("strips"), Column("published", ".1f")]
    rows = []
    for n in grids:
        cells: list[Any] = [f"{n}²"]
        for k, name in enumerate(("y solve", "x solve", "")):
            times = {s: t.parts[name] if name else t.step for (m, s), t in paper.items() if m == n}
            best = min(times, key=lambda s: times[s])
            published = PUBLISHED_GAINS[n][k] if n in PUBLISHED_GAINS else None
            cells += [times[1] / times[best], best, published]
        rows.append(tuple(cells))
    return Table("Largest speedup by strips, kernels of the paper", columns, rows)


def _parts(paper: dict[tuple[int, int], StepTime], grids: Sequence[int]) -> Table:
    names = ("x solve", "y solve", "x rows", "y rows")
    columns = (
        Column("cells, strips"),
        Column("step, µs", ".1f"),
        *(Column(f"{name}, µs", ".1f") for name in names),
        Column("predict and correct", ".0%"),
        Column("published"),
    )
    rows = []
    for n in grids:
        for s in _s(n):
            t = paper[n, s]
            said = {2: "2-3 %", 128: "15-20 %"}.get(s) if n == 512 else None
            parts = (1e6 * t.parts[name] for name in names)
            share = t.share("predict", "correct")
            rows.append((f"{n}², {s}", 1e6 * t.step, *parts, share, said))
    return Table("The paper's kernels: parts of a step", columns, rows)


def _strategies(cells: int) -> Table:
    columns = (
        Column("strips"),
        Column("naive, µs", ".1f"),
        Column("3S, µs", ".1f"),
        Column("naive / 3S", ".2f"),
    )
    rows = []
    for s in _s(cells):
        naive, staged = (step_time(cells, s, "paper", k).parts["x solve"] for k in ("naive", "3s"))
        rows.append((s, 1e6 * naive, 1e6 * staged, naive / staged))
    note = "Published: up to 3.7 times, at 1024² and 8 strips, with 43 % more cache hits."
    return Table(
        f"Solves along x at {cells}²: shared memory in three stages", columns, rows, (note,)
    )


def _against(
    paper: dict[tuple[int, int], StepTime],
    fused: dict[tuple[int, int], StepTime],
    grids: Sequence[int],
) -> Table:
    columns = (
        Column("cells"),
        Column("strips"),
        Column("paper's kernels, µs", ".1f"),
        Column("fused, µs", ".1f"),
        Column("lines by", ""),
        Column("µs", ".1f"),
        Column("over the paper's", ".1f"),
        Column("over fused", ".1f"),
    )
    rows: list[tuple[Any, ...]] = []
    for n, solves in _whole_lines(grids).items():
        s = PUBLISHED_AGAINST.get(n, max(_s(n)))
        best = min(t.step for (m, _), t in fused.items() if m == n)
        parts = paper[n, 1].parts.items()
        rest = sum(time for name, time in parts if not name.endswith("solve"))
        for name, (x, y) in solves.items():
            step = rest + x + y
            times = (1e6 * paper[n, s].step, 1e6 * best, name, 1e6 * step)
            rows.append((f"{n}²", s, *times, step / paper[n, s].step, step / best))
    note = (
        "Steps without strips whose rows come from the paper's kernels and whose lines are solved "
        "with matrices in arrays. Published: CR-PCR 19.7 (128²) down to 4.2 times (1024²) slower "
        "than the paper's kernels."
    )
    return Table("Comparison with solves of whole lines", columns, rows, (note,))


def _whole_lines(grids: Sequence[int]) -> dict[int, dict[str, tuple[float, float]]]:
    """Return the seconds of solves of whole lines by grid and solver."""
    with require_cupy().cuda.Stream(non_blocking=True):
        clock = make_clock()
        return {n: solve_seconds(n, clock) for n in grids}


def _fused(
    paper: dict[tuple[int, int], StepTime],
    fused: dict[tuple[int, int], StepTime],
    bandwidth: float,
) -> Table:
    columns = (
        Column("cells"),
        Column("best strips"),
        Column("fused, µs", ".1f"),
        Column("of the floor", ".0%"),
        Column("bar"),
        Column("best of the paper's, µs", ".1f"),
        Column("paper's / fused", ".1f"),
    )
    rows = []
    for n in dict.fromkeys(cells for cells, _ in fused):
        best = min((t for (m, _), t in fused.items() if m == n), key=lambda t: t.step)
        others = [t.step for (m, _), t in paper.items() if m == n]
        fraction = 4 * 8 * (n + 1) ** 2 / bandwidth / best.step
        bar = {2048: f"{_BAR_FRACTION:.0%}", 512: f"{_BAR_MICROSECONDS:g} µs", 1024: "4 ×"}.get(n)
        theirs = 1e6 * min(others) if others else None
        ratio = min(others) / best.step if others else None
        rows.append((f"{n}²", best.strips, 1e6 * best.step, fraction, bar, theirs, ratio))
    note = (
        f"The floor of 4 words a node and step at {bandwidth / 1e12:.2f} TB/s; grids of up to "
        "1024² stay in the cache, which is faster."
    )
    return Table("A fused step", columns, rows, (note,))

"""``python -m pysolvers reproduce gceidd2022``: tables, figures and speeds of the paper."""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pysolvers._progress import progress
from pysolvers._runtime import backends
from pysolvers.cases.tables import Column, Table
from pysolvers.papers.gceidd2022 import GRIDS

from ..timing import device_bandwidth, require_cupy
from .figures import Curves, plot_fields
from .gceidd2022_runs import (
    METHODS,
    channel_curves,
    channel_field,
    courant_curves,
    front_curves,
    front_field,
    pulse_field,
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
# Predict and correct in a step on 512² cells, by strips: Figure 21.
PUBLISHED_SHARES = {2: "2-3 %", 128: "15-20 %"}
_BREAKDOWN_GRID = 512
# Growth of the error of MU in example 2 over the strips by Courant number: text of Figure 9.
PUBLISHED_GROWTH = {0.5: 2.2, 1.0: 2.7, 2.0: 2.9}
_STRIP_COURANT = tuple(PUBLISHED_GROWTH)
_GROWTH_AGREES = 0.1
# Largest Courant number at which CFD converges by example: text of Figures 8 and 10.
PUBLISHED_COURANT = {1: 2.0, 2: 4.0}
_CONVERGED = 0.01  # error
_TIMES = (0.3, 1.5, 3.0)  # of the table of Figure 16
_SPEEDS = (250.0, 500.0, 750.0, 1000.0)  # V of Figure 15
_STAGES_GAIN = 3.7  # of 3S in the paper
_STRATEGY_TABLE = 3  # among the tables of speed
_STRATEGY_GAINS = (3, 6)  # its columns of ratios: the usual stages, without the first one
_STAGES = (
    "Stage 1 is the naive kernel: there the ratio is that of a kernel to itself. By default it "
    "ends at 512 strips on each multiprocessor, 67584 on the 132 of an H200; the last columns are "
    "without it, few_strips=0. Stage 2 limits the blocks that share a cache, stage 3 exchanges "
    "strips of less than 32 cells through shared memory."
)
_OCCUPANCY = (
    "Resident threads of a multiprocessor over their largest number, by "
    "cudaOccupancyMaxActiveBlocksPerMultiprocessor, float64, blocks of 128 threads. No published "
    "numbers at hand. The kernels are compiled once, without a register limit (maxrregcount)."
)
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
    grids = GRIDS[:1] if args.quick else GRIDS
    numbers = (1,) if args.quick else (1, 2, 3, 4)
    tables = [error_table(number, grids, device) for number in numbers]
    said = [verdict(tables)]
    figures = _figures(device, quick=args.quick)
    growth = _growth_table(figures["strips"])
    tables += [_curve_table(curves) for curves in (*figures["strips"], *figures["courant"])]
    tables += [growth, _front_table(figures["fronts"]), _channel_table(figures["channel"])]
    said += [growth_verdict(growth), courant_verdict(figures["courant"])]
    said += [channel_verdict(figures["channel"][0])]
    pictures = {name: _picture(name, curves) for name, curves in figures.items()}
    pictures |= _maps(device, quick=args.quick)
    speeds = list(_cpu_tables(reason, quick=args.quick) if reason else _speed_tables(args.quick))
    said.append(strategy_verdict(None if reason else speeds[_STRATEGY_TABLE]))
    tables += speeds
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


def _figures(device: str, *, quick: bool) -> dict[str, list[Curves]]:
    """Return the curves of the figures 7 to 10, 12 and 16 by picture."""
    cells = 32 if quick else 256
    strips = strip_counts(cells, STRIPS[:7])
    many = min(32, cells // 4)
    courant = (1, 2) if quick else (1, 2, 3, 4, 6, 8)
    shape, parts = ((64, 16), (8, 4)) if quick else ((256, 64), (32, 8))
    front = front_curves(1, cells=cells, strips=many, device=device)
    others: dict[str, Any] = {"cells": cells, "strips": many, "reference": front}
    return {
        "strips": [
            strip_curves(k, strips, cells=cells, courant=c, device=device)
            for k in (1, 2)
            for c in _STRIP_COURANT
        ],
        "courant": [
            courant_curves(k, courant, cells=cells, strips=many, device=device) for k in (1, 2)
        ],
        "fronts": [front, *(front_curves(c, device=device, **others) for c in (2, 4))],
        "channel": [channel_curves(c, cells=shape, strips=parts, device=device) for c in (1, 2)],
    }


def _maps(device: str, *, quick: bool) -> "dict[str, Callable[[], Figure]]":
    """Return what draws the maps of the figures 11, 13 and 15."""
    cells = 32 if quick else 256
    square: dict[str, Any] = {"cells": cells, "strips": min(32, cells // 4), "device": device}
    shape, parts = ((64, 16), (8, 4)) if quick else ((256, 64), (32, 8))
    channel: dict[str, Any] = {"cells": shape, "strips": parts, "device": device}
    schemes = ("CFD", "CP", "MU-L")

    def pulses() -> "Figure":
        fields = [pulse_field(name, **square) for name in (*schemes, "exact")]
        return plot_fields(fields, "Figure 11: example 2, CFL 1, a quarter of a turn")

    def fronts() -> "Figure":
        fields = [front_field(name, **square) for name in (*schemes, "reference")]
        return plot_fields(fields, "Figure 13: example 3, CFL 1, t = 0.2")

    def channels() -> "Figure":
        fields = [
            replace(field, name=f"{name}, V = {speed:g}")
            for speed in (_SPEEDS[:1] if quick else _SPEEDS)
            for name in ("CP", "reference")
            for field in (channel_field(name, speed, **channel),)
        ]
        return plot_fields(fields, "Figure 15: example 4, temperature at t = 3", by_row=True)

    return {"fig11": pulses, "fig13": fronts, "fig15": channels}


def _picture(name: str, curves: list[Curves]) -> "Callable[[], Figure]":
    def draw() -> "Figure":
        from .figures import plot_curves

        errors = name in ("strips", "courant")
        limits = (-0.2, 1.2) if name == "fronts" else None
        columns = 2 if len(curves) % 3 else 3
        return plot_curves(curves, log=(errors, errors), columns=columns, limits=limits)

    return draw


def _curve_table(curves: Curves) -> Table:
    places = sorted({x for line in curves.lines.values() for x in line[0]})
    found = {name: dict(zip(*line, strict=True)) for name, line in curves.lines.items()}
    columns = (Column(curves.x, "g"), *(Column(name, ".2e") for name in METHODS))
    rows = [(x, *(found.get(name, {}).get(x) for name in METHODS)) for x in places]
    notes = ("Empty: the error is larger than 1.",) if "CFL" in curves.x else ()
    return Table(f"{curves.title}: {curves.y}", columns, rows, notes)


def _growth_table(curves: Sequence[Curves]) -> Table:
    """Return how the error of MU in example 2 grows over the strips, text of Figure 9."""
    columns = (
        Column("CFL", "g"),
        Column("strips"),
        Column("MU-L, error over that of one strip", ".2f"),
        Column("MU-P", ".2f"),
        Column("published, MU", ".1f"),
    )
    rows = []
    for courant, curve in zip(_STRIP_COURANT, curves[len(_STRIP_COURANT) :], strict=True):
        (x, newest), (_, printed) = (curve.lines[name] for name in ("MU-L", "MU-P"))
        growth = newest[-1] / newest[0], printed[-1] / printed[0]
        rows.append((courant, int(x[-1]), *growth, PUBLISHED_GROWTH[courant]))
    title = "Figure 9: growth of the error of MU over the strips, example 2"
    return Table(title, columns, rows, ("The paper has up to 64 strips on 256² cells.",))


def growth_verdict(growth: Table) -> Verdict:
    """Return what the paper says of the error of MU over the strips and what was found."""
    pairs = [(float(str(row[2])), float(str(row[4]))) for row in growth.rows]
    agree = all(abs(found / published - 1) < _GROWTH_AGREES for found, published in pairs)
    said = ", ".join(f"{published:g}" for _, published in pairs)
    courant = ", ".join(f"{row[0]:g}" for row in growth.rows)
    return Verdict(
        f"the error of MU in example 2 grows {said} times over the strips at CFL {courant}",
        f"{', '.join(f'{found:.2f}' for found, _ in pairs)} times with {growth.rows[0][1]} strips",
        "confirmed" if agree else "not confirmed",
    )


def courant_verdict(curves: Sequence[Curves]) -> Verdict:
    """Return up to which Courant number CFD converges in the paper and here."""
    found = {}
    for number, curve in zip(PUBLISHED_COURANT, curves, strict=True):
        line = zip(*curve.lines.get("CFD", ((), ())), strict=True)
        found[number] = max((at for at, error in line if error < _CONVERGED), default=0.0)
    largest = min(max(at for at, _ in zip(*c.lines["CP"], strict=True)) for c in curves)
    outcome = (
        "not measured"
        if largest <= max(PUBLISHED_COURANT.values())
        else "confirmed"
        if found == PUBLISHED_COURANT
        else "not confirmed"
    )
    texts = [
        ", ".join(f"{limit:g} in example {number}" for number, limit in limits.items())
        for limits in (PUBLISHED_COURANT, found)
    ]
    return Verdict(f"CFD converges up to CFL {texts[0]}", f"up to CFL {texts[1]}", outcome)


def _front_table(curves: Sequence[Curves]) -> Table:
    """Return how far the methods are from the reference in Figure 12."""
    columns = (
        Column("CFL"),
        Column("method", left=True),
        Column("largest difference from the reference", ".3f"),
        Column("least u", ".3f"),
        Column("largest u", ".3f"),
    )
    rows = []
    for curve in curves:
        at, exact = curve.lines["reference"]
        for name in METHODS:
            y, u = curve.lines[name]
            difference = float(np.max(np.abs(u - np.interp(y, at, exact))))
            rows.append((curve.title.split()[-1], name, difference, min(u), max(u)))
    note = (
        "Reference: central differences without strips, 4 times as many cells along each axis, "
        "CFL 1/4. CFD does not converge at CFL 4, as published."
    )
    return Table("Figure 12: example 3 at x = 0.5, t = 0.2", columns, rows, (note,))


def _channel_table(curves: Sequence[Curves]) -> Table:
    """Return the temperatures of Figure 16 in the first half and at the end."""
    columns = (
        Column("CFL"),
        Column("method", left=True),
        *(Column(f"T at t = {time:g}", ".1f") for time in _TIMES),
    )
    rows: list[tuple[Any, ...]] = []
    for curve in curves:
        for name, (t, value) in curve.lines.items():
            found = (float(np.interp(time, t, value)) for time in _TIMES)
            rows.append((curve.title.split()[-1], name, *found))
    note = "Reference: central differences without strips, twice as many cells, CFL 1/4."
    return Table("Figure 16: example 4, temperature at A = (0.175, 0)", columns, rows, (note,))


def channel_verdict(curves: Curves) -> Verdict:
    """Return what the paper says of Figure 16 and what was found."""
    ends = {name: values[-1] for name, (_, values) in curves.lines.items()}
    rise = ends["reference"] - 25.0
    off = {name: abs(ends[name] - ends["reference"]) / rise for name in ("CFD", "CP", "MU-L")}
    agree = max(off["CFD"], off["CP"]) < _AGREES < off["MU-L"]
    return Verdict(
        "in example 4 the temperature at A by CFD and CP is that of the reference, and that of MU "
        "is not",
        "at t = 3 " + ", ".join(f"{name} differs by {value:.1%}" for name, value in off.items()),
        "confirmed" if agree else "not confirmed",
    )


def strategy_verdict(strategies: Table | None) -> Verdict:
    """Return what the paper claims of the strategy 3S; `strategies` is None without a GPU."""
    rows = strategies.rows if strategies else ()
    usual, early = (
        max((float(str(row[at])) for row in rows), default=0.0) for at in _STRATEGY_GAINS
    )
    best = max(usual, early)
    return Verdict(
        f"shared memory in three stages makes solves along x up to {_STAGES_GAIN:g} times faster",
        f"up to {usual:.2f} times, and {early:.2f} times without the first stage, which is the "
        "naive kernel"
        if best
        else "this machine has no GPU that the package can use",
        "not measured" if not best else "confirmed" if best >= _STAGES_GAIN else "not confirmed",
    )


def _cpu_tables(reason: str, *, quick: bool) -> Iterator[Table]:
    """Yield the times of a step on the CPU over the strips, and what needs a GPU."""
    columns = (
        Column("cells, strips"),
        Column("one core, µs", ".1f"),
        Column("all cores, µs", ".1f"),
        Column("one core / all", ".2f"),
        Column("one core, over one strip", ".2f"),
    )
    rows = []
    for n in (32,) if quick else SPEED_GRIDS[1::2]:
        steps = 4 if quick else max(4, 2**22 // n**2)
        first = None
        for s in _s(n):
            times = [step_time(n, s, device="cpu", threads=k, steps=steps).step for k in (1, None)]
            first = first or times[0]
            ratios = times[0] / times[1], first / times[0]
            rows.append((f"{n}², {s}", *(1e6 * time for time in times), *ratios))
    note = "Example 2, CP, CFL 1. A core has no use for strips, which add the corrections."
    yield Table("A step on the CPU", columns, rows, (note,))
    missing = ", ".join(f"{n}²" for n in SPEED_GRIDS)
    text = f"Figures 17 to 23, {missing}: {reason}"
    yield Table("Kernels of the paper", (Column("not measured"),), [(text,)])


def _speed_tables(quick: bool) -> Iterator[Table]:
    """Yield the tables of the figures 17 to 23 and of the fused step."""
    grids = (32,) if quick else SPEED_GRIDS
    paper = {
        (n, s): step_time(n, s, "paper")
        for n, s in progress([(n, s) for n in grids for s in _s(n)], "gceidd2022")
    }
    fused = {(n, s): step_time(n, s) for n in (*grids, *(() if quick else (2048,))) for s in _s(n)}
    yield _gains(paper, grids)
    yield _parts(paper, grids)
    yield _breakdown(grids[-1] if quick else _BREAKDOWN_GRID)
    yield from _strategies(grids[-1])
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
            said = PUBLISHED_SHARES.get(s) if n == _BREAKDOWN_GRID else None
            parts = (1e6 * t.parts[name] for name in names)
            share = t.share("predict", "correct")
            rows.append((f"{n}², {s}", 1e6 * t.step, *parts, share, said))
    return Table("The paper's kernels: parts of a step", columns, rows)


def _breakdown(cells: int) -> Table:
    """Return the parts of a step by scheme for few and for many strips, Figure 21."""
    names = ("x solve", "y solve", "x rows", "y rows")
    columns = (
        Column("scheme"),
        Column("strips"),
        Column("step, µs", ".1f"),
        *(Column(f"{name}, µs", ".1f") for name in names),
        Column("predict and correct", ".0%"),
        Column("published"),
    )
    rows = []
    for scheme in ("mu", "cfd", "cp"):
        for s, said in PUBLISHED_SHARES.items():
            count = min(s, max(_s(cells)))
            t = step_time(cells, count, "paper", scheme=scheme)
            share = t.share("predict", "correct")
            parts = (1e6 * t.parts[name] for name in names)
            rows.append((scheme.upper(), count, 1e6 * t.step, *parts, share, said))
    return Table(f"Figure 21: parts of a step at {cells}², by scheme", columns, rows)


def _strategies(cells: int) -> Iterator[Table]:
    """Yield the solves along x by strategy, Figure 19, and the occupancy of the kernels, 18."""
    columns = (
        Column("strips"),
        Column("naive, µs", ".1f"),
        Column("3S, µs", ".1f"),
        Column("naive / 3S", ".2f"),
        Column("stage"),
        Column("3S from the first strip on, µs", ".1f"),
        Column("naive / that", ".2f"),
        Column("stage"),
    )
    rows: list[tuple[Any, ...]] = []
    shares: list[tuple[Any, ...]] = []
    for s in _s(cells):
        runs = [
            step_time(cells, s, "paper", strategy, **options)
            for strategy, options in (("naive", {}), ("3s", {}), ("3s", {"few_strips": 0}))
        ]
        naive, usual, early = (t.parts["x solve"] for t in runs)
        rows.append(
            (
                *(s, 1e6 * naive, 1e6 * usual, naive / usual, _stage(runs[1])),
                *(1e6 * early, naive / early, _stage(runs[2])),
            )
        )
        first = runs[0].occupancy
        parts = (first.get(f"x {part}") for part in ("predict", "rows", "solve", "correct"))
        shares.append((s, *parts, runs[2].occupancy.get("x solve"), _stage(runs[2])))
    note = "Published: up to 3.7 times, at 1024² and 8 strips, with 43 % more cache hits."
    title = f"Figure 19: solves along x at {cells}², shared memory in three stages"
    yield Table(title, columns, rows, (note, _STAGES))
    names = ("predict", "rows", "solve, naive", "correct", "solve, 3S from the first strip on")
    yield Table(
        f"Figure 18: occupancy of the kernels along x at {cells}²",
        (Column("strips"), *(Column(name, ".0%") for name in names), Column("stage")),
        shares,
        (_OCCUPANCY,),
    )


def _stage(time: StepTime) -> str:
    """Return the stage of 3S, whose number the kernel reports."""
    return time.kernel.rpartition(" ")[2]


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

"""``python -m pysolvers reproduce survey2014``: a plate by red-black SOR, and a cavity.

Niemeyer and Sung, Recent progress and challenges in exploiting graphics processors in
computational fluid dynamics, J. Supercomputing 67, 2014: a Tesla C2075 against a Xeon X5650. Case
study 1 is the plate, 128 x 128 to 8192 x 8192 cells, case study 2 the lid-driven cavity on a
staggered grid (survey2014_cavity.py).
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from pysolvers._errors import BackendError, ConvergenceError
from pysolvers._progress import progress
from pysolvers._runtime import backends
from pysolvers.cases.tables import Column, Table, write_tables
from pysolvers.papers.survey2014 import RedBlackSOR

from ..timing import cpu_bandwidth, device_bandwidth
from .report import Verdict, add_paper_options, left_out, report
from .survey2014_cavity import available, directive_name, flow_table, times_table

TITLE = "Niemeyer and Sung 2014: red-black SOR for Laplace's equation on a plate, and the cavity"
GRIDS = (128, 256, 512, 1024, 2048, 4096, 8192)
DTYPES = ("float64", "float32")
# omega of the survey, and its largest speedups by dtype: its best GPU code over its naive GPU code,
# over one core and over six cores. Its code of the CPU has one array for each colour.
_OMEGA = 1.85
PUBLISHED = {"float64": (19.0, 10.0, 4.6), "float32": (None, 16.0, 4.6)}
_COMPARED = ("naive", "one core", "all cores")  # with the best kernel, in the order of PUBLISHED
_WORDS = 2
_LAYOUTS = (
    "One core and all cores have one array for each colour, as the program of the survey; "
    "interleaved: both colours in one array. The survey has six cores."
)


@dataclass(frozen=True, slots=True)
class Variant:
    """A column of the survey.

    Parameters
    ----------
    name : str
        Its heading.
    device : {'cpu', 'cuda'}
        The device.
    variant : str
        As in `RedBlackSOR`.
    threads : int or None
        Number of threads on the CPU.
    largest : int
        Cells along a side of the finest grid on which it is measured; the survey does not have
        the variants that end before its last grid.
    """

    name: str
    device: str
    variant: str
    threads: int | None = None
    largest: int = GRIDS[-1]


VARIANTS = (
    Variant("one core", "cpu", "split", 1),
    Variant("one core, interleaved", "cpu", "naive", 1, 4096),
    Variant("all cores", "cpu", "split"),
    Variant("all cores, auto", "cpu", "auto", largest=4096),
    Variant("naive", "cuda", "naive"),
    Variant("coalesced", "cuda", "coalesced"),
    Variant("split", "cuda", "split"),
    Variant("shared", "cuda", "shared"),
    Variant("atomic", "cuda", "atomic"),
    Variant("auto", "cuda", "auto"),
)
# With compiler directives: on a device if there is one, otherwise on the host.
DIRECTIVES = (
    Variant("OpenACC", "cpu", "directive"),
    Variant("OpenMP target", "cpu", "directive-openmp"),
)
# Cells relaxed in a measurement; naive, coalesced and split copy the residual of each cell to the
# host.
_CELLS = {
    (v.device, v.variant): 1e7 if v.device == "cpu" else 2e9 for v in (*VARIANTS, *DIRECTIVES)
}
_CELLS |= {("cuda", name): 2e7 for name in ("naive", "coalesced", "split")}
# Where a cell finds the coefficients of its equation; the survey has arrays and textures.
COEFFICIENTS = ("tables", "arrays", "texture")
_COEFFICIENT_GRID, _FEW, _MANY = 2048, 100, 600  # cells along a side, iterations of two calls
_GPU = tuple(v.name for v in VARIANTS if v.device == "cuda")
_SURVEYED = _GPU[:-1]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiments to their parser."""
    add_paper_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run the experiments and return the exit code."""
    reason = backends.unavailable_reason("cuda")
    grids = GRIDS[:1] if args.quick else GRIDS[:4] if reason else GRIDS
    variants = tuple(v for v in VARIANTS if not reason or v.device == "cpu")
    bandwidth = cpu_bandwidth(2**16 if args.quick else 2**25) if reason else device_bandwidth()
    tables = [_accuracy_table((16, 32) if args.quick else (16, 32, 64))]
    pictures = {}
    # Largest ratios of a naive kernel, one core and all cores to the best kernel, by dtype.
    largest: dict[str, tuple[float, ...]] = {}
    for dtype in DTYPES:
        shown = (*_directives(), *variants)
        runs = [(v, n) for n in grids for v in shown if n <= v.largest]
        times = {
            (v.name, n): seconds(v, n, dtype, quick=args.quick)
            for v, n in progress(runs, "survey2014")
        }
        tables.append(_time_table(times, shown, grids, dtype, bandwidth))
        if not reason:
            tables.append(_ratio_table(times, grids, dtype))
            best = {n: min(times[name, n] for name in _SURVEYED) for n in grids}
            largest[dtype] = tuple(
                max(times[name, n] / best[n] for n in grids) for name in _COMPARED
            )
        pictures[dtype] = _picture(times, shown, grids, dtype)
        write_tables(args, "survey2014", TITLE, tables)
    if not reason:
        n = grids[0] if args.quick else _COEFFICIENT_GRID
        tables += [_coefficient_table(n, dtype) for dtype in DTYPES]
        write_tables(args, "survey2014", TITLE, tables)
    tables += _cavity_tables(quick=args.quick, has_device=not reason)
    if reason:
        missing = (f"{n}²" for n in GRIDS if n not in grids)
        notes = left_out(missing, "up to 0.5 s an iteration on one core", quick=args.quick)
        tables.append(Table("On a GPU", (Column("not measured"),), [(reason,)], notes))
    report(args, "survey2014", TITLE, tables, verdict=verdicts(largest), pictures=pictures)
    return 0


def verdicts(largest: Mapping[str, Sequence[float]]) -> list[Verdict]:
    """Return what the survey claims of each dtype and what was found.

    Parameters
    ----------
    largest : mapping
        By dtype, the largest ratios of the times of `_COMPARED` to the best kernel; empty without
        a GPU.
    """
    found: Sequence[float]
    sentences = []
    for dtype, published in PUBLISHED.items():
        found = largest.get(dtype, (0.0,) * len(published))
        sentences += [
            verdict(ratio, claimed, dtype, name)
            for ratio, claimed, name in zip(found, published, _COMPARED, strict=True)
            if claimed is not None
        ]
    return sentences


def verdict(
    fastest: float, claimed: float = 10.0, dtype: str = "float64", over: str = "one core"
) -> Verdict:
    """Return what the survey claims and what was found.

    Parameters
    ----------
    fastest : float
        The largest speedup found; 0 without a GPU.
    claimed : float, default: 10
        That of the survey.
    dtype, over : str
        Dtype, and what the best kernel of the GPU is compared with.
    """
    names = {"naive": "than its naive kernel", "all cores": "than on all cores (six)"}
    return Verdict(
        f"red-black SOR in {dtype} is up to {claimed:g} times faster on a GPU "
        f"{names.get(over, 'than on one core, an array a colour')}",
        f"up to {fastest:.0f} times on the GPU of this machine"
        if fastest
        else "this machine has no GPU that the package can use",
        "not measured"
        if not fastest
        else "confirmed, with newer hardware"
        if fastest >= claimed
        else "not confirmed",
    )


def _directives() -> Iterator[Variant]:
    """Yield the variants with directives that this machine can run."""
    for v in DIRECTIVES:
        with suppress(BackendError):
            yield Variant(directive_name(v.name, v.variant), v.device, v.variant)


def _cavity_tables(*, quick: bool, has_device: bool) -> list[Table]:
    grids = (16,) if quick else (128, 256, 512, 1024)
    tables = [times_table(grids, tuple(available()), quick=quick)]
    with suppress(ModuleNotFoundError):  # SciPy, for the direct solver
        if quick:
            tables.append(flow_table(16, "cpu", 1e-1))
        else:
            n, device = (128, "cuda") if has_device else (64, "cpu")
            tables.append(flow_table(n, device, 1e-5))
    return tables


def seconds(variant: Variant, cells: int, dtype: str, *, quick: bool = False) -> float:
    """Return the seconds of an iteration in which the residual is measured."""
    plate = RedBlackSOR(
        (cells, cells),
        extent=((0, 1), (0, 1)),
        boundary={"y+": 1.0, "x": 0.0, "y-": 0.0},
        omega=_OMEGA,
        variant=cast(Any, variant.variant),
        dtype=np.dtype(dtype),
        device=variant.device,
        threads=variant.threads,
    )
    most = 2 * cells**2 if quick else _CELLS[variant.device, variant.variant]
    count = min(1000, max(2, int(most / cells**2)))
    plate.iterate(1)  # loads the kernels
    before = plate.seconds["iterations"]
    with suppress(ConvergenceError):  # a tolerance that is never reached
        plate.solve(0.0, max_iterations=count)
    return (plate.seconds["iterations"] - before) / count


def _coefficient_table(cells: int, dtype: str) -> Table:
    """Return the times of iterations that measure nothing, by the memory of the coefficients."""
    rows = [
        (variant, *(1e6 * _plain_seconds(variant, name, cells, dtype) for name in COEFFICIENTS))
        for variant in ("naive", "coalesced", "split")
    ]
    columns = [Column("kernel", left=True), *(Column(name, ".1f") for name in COEFFICIENTS)]
    note = (
        "No residual is measured. Tables: three rows and two constants; arrays: a_P, a_W, a_E, "
        "a_S, a_N and b of each cell, as in the survey; texture: the same arrays as textures."
    )
    title = f"µs an iteration at {cells}² by the memory of the coefficients, {dtype}"
    return Table(title, columns, rows, (note,))


def _plain_seconds(variant: str, coefficients: str, cells: int, dtype: str) -> float:
    plate = RedBlackSOR(
        (cells, cells),
        extent=((0, 1), (0, 1)),
        boundary={"y+": 1.0, "x": 0.0, "y-": 0.0},
        omega=_OMEGA,
        variant=cast(Any, variant),
        coefficients=cast(Any, coefficients),
        dtype=np.dtype(dtype),
        device="cuda",
    )
    seconds = []
    for iterations in (2, _FEW, _MANY):  # a call measures a residual once, in its last iteration
        before = plate.seconds["iterations"]
        plate.iterate(iterations)
        seconds.append(plate.seconds["iterations"] - before)
    return max(seconds[2] - seconds[1], 0.0) / (_MANY - _FEW)


def _accuracy_table(grids: Sequence[int]) -> Table:
    columns = [Column("cells"), Column("iterations"), Column("error, lower half", ".2e")]
    columns.append(Column("T(1/2, 1/2)", ".6f"))
    rows = []
    for n in grids:
        plate = RedBlackSOR(
            (n, n), extent=((0, 1), (0, 1)), boundary={"y+": 1.0, "x": 0.0, "y-": 0.0}
        )
        result = plate.solve(1e-12)
        half = n // 2
        exact = _exact(plate.x[None, :], plate.y[:half, None])
        error = np.abs(result.u[:half] - exact).max()
        middle = result.u[half - 1 : half + 1, half - 1 : half + 1].mean()
        rows.append((f"{n}²", result.iterations, float(error), float(middle)))
    note = "The optimal omega; the exact temperature in the middle is 1/4."
    return Table("Error of the finite volumes", columns, rows, (note,))


def _exact(x: Any, y: Any) -> Any:
    """Return the series of the temperature; y is the distance from the hot side."""
    n = np.arange(1, 200, 2)[:, None, None] * np.pi
    decay = np.exp(n * (y - 1)) * -np.expm1(-2 * n * y) / -np.expm1(-2 * n)
    return np.sum(4 / n * np.sin(n * x) * decay, axis=0)


def _time_table(
    times: dict[tuple[str, int], float],
    variants: Sequence[Variant],
    grids: Sequence[int],
    dtype: str,
    bandwidth: float,
) -> Table:
    columns = [Column("cells"), *(Column(v.name, ".1f") for v in variants)]
    columns.append(Column("auto, of the floor", ".0%"))
    last = variants[-1].name
    rows: list[tuple[Any, ...]] = []
    for n in grids:
        floor = _WORDS * np.dtype(dtype).itemsize * n * n / bandwidth
        found = (times.get((v.name, n)) for v in variants)
        row = [time and 1e6 * time for time in found]
        rows.append((f"{n}²", *row, floor / times[last, n]))
    note = (
        "The residual is measured in every iteration. The floor: 2 words a cell and iteration, "
        f"both colours in one pass, at {bandwidth / 1e9:.0f} GB/s; several iterations a pass go "
        "below."
    )
    return Table(f"µs an iteration, {dtype}", columns, rows, (note,))


def _ratio_table(times: dict[tuple[str, int], float], grids: Sequence[int], dtype: str) -> Table:
    columns = (
        Column("cells"),
        Column("naive / best of the survey's", ".1f"),
        Column("one core / best", ".1f"),
        Column("one core, interleaved / best", ".1f"),
        Column("all cores / best", ".1f"),
        Column("best / auto", ".1f"),
    )
    rows: list[tuple[Any, ...]] = []
    for n in grids:
        best = min(times[name, n] for name in _SURVEYED)
        names = ("naive", "one core", "one core, interleaved", "all cores")
        found = (times.get((name, n)) for name in names)
        ratios = (time and time / best for time in found)
        rows.append((f"{n}²", *ratios, best / times["auto", n]))
    naive, core, cores = PUBLISHED[dtype]
    rows.append(("published, up to", naive, core, None, cores, None))
    return Table(f"Ratios, {dtype}", columns, rows, (_LAYOUTS,))


def _picture(
    times: dict[tuple[str, int], float],
    variants: Sequence[Variant],
    grids: Sequence[int],
    dtype: str,
) -> Callable[[], Any]:
    def draw() -> Any:
        from .figures import Curves, plot_curves

        curves = Curves(f"Red-black SOR, {dtype}", "cells along a side", "time of an iteration (s)")
        for v in variants:
            for n in (n for n in grids if n <= v.largest):
                curves.add(v.name, n, times[v.name, n])
        return plot_curves([curves], log=(True, True))

    return draw

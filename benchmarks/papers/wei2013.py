"""``python -m pysolvers reproduce wei2013``: ADI on a GPU, compared with published speeds."""

import argparse
import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from pysolvers import HeatADI
from pysolvers._progress import progress
from pysolvers._runtime import backends
from pysolvers.cases.tables import Column, Table
from pysolvers.papers.wei2013 import advance_of_a_mode, heated_plate
from pysolvers.tridiagonal import solve_tridiagonal

from ..jobs import jax_plate, scipy_plate
from ..timing import cpu_bandwidth, device_bandwidth, host, median_of
from .report import Verdict, add_paper_options, left_out, report

GRIDS = (1024, 2048, 4096, 8192)
MAPPINGS = ("C1", "C2", "C3", "C4")
MEMORIES = ("baseline", "texture", "transpose")
BLOCKS = (32, 64, 128, 256, 512)

PUBLISHED_SPEEDUPS: Mapping[str, Mapping[int, tuple[float, float, float, float]]] = {
    "baseline": {
        1024: (33.3, 77.2, 33.4, 78.8),
        2048: (21.3, 59.4, 21.4, 60.4),
        4096: (15.7, 51.0, 15.7, 51.9),
        8192: (12.2, 43.8, 12.1, 44.3),
    },
    "texture": {
        1024: (45.0, 103.1, 45.8, 103.0),
        2048: (24.9, 58.9, 25.8, 58.4),
        4096: (18.0, 63.4, 18.3, 63.2),
        8192: (13.8, 52.2, 14.1, 51.4),
    },
    "transpose": {
        1024: (112.3, 118.0, 109.6, 119.6),
        2048: (97.1, 100.1, 96.1, 102.2),
        4096: (78.9, 80.1, 77.8, 82.8),
        8192: (68.7, 69.4, 67.4, 71.5),
    },
}
"""Times faster than one core, blocks of 128 threads: by memory and grid, one a mapping."""

PUBLISHED_DIFFERENCES: Mapping[int, float] = {
    1024: 2.87e-6,
    2048: 2.90e-6,
    4096: 2.92e-6,
    8192: 2.93e-6,
}
"""Relative l2 difference of the field of the GPU and of the CPU after 100 steps."""

TITLE = "Wei et al. 2013: ADI by parallel cyclic reduction on a GPU"
_BLOCKS_GAIN = 2.5  # of several blocks over one in the paper
_BLOCK = 128  # threads of the published table
_MEMORY_NOTES = {
    "baseline": "The matrices are arrays of all nodes, as in the paper.",
    "texture": "a, b, c, d and T are read as textures of linear memory.",
    "transpose": (
        "Three transpositions a step, of the right side, of the solution and back; the paper has "
        "two."
    ),
}
_QUICK_GRIDS = (32, 64)
_BLOCK_GRID = 2048
_PARTS_GRID = 4096
# Nodes, dtype and scheme of steps of the package; words per node; target.
_FUSED = (
    ((1024, 1024), "float32", "peaceman-rachford", 4, "12 µs"),
    ((2048, 2048), "float32", "peaceman-rachford", 4, ""),
    ((4096, 4096), "float32", "peaceman-rachford", 4, ""),
    ((8192, 8192), "float32", "peaceman-rachford", 4, "85%"),
    ((4096, 4096), "float64", "peaceman-rachford", 4, "85%"),
    ((512, 512, 512), "float64", "douglas-gunn", 6, "80%"),
)
_CPU_FUSED = ((4096, 4096), "float64", "peaceman-rachford", 4, "60%")
_QUICK_FUSED = (((32, 32), "float32", "peaceman-rachford", 4, ""),)


@dataclass(frozen=True, slots=True)
class StepTime:
    """Time of a step, and of its parts if they were measured.

    Parameters
    ----------
    step : float
        Seconds of a step, in a call of many steps.
    parts : dict of str to float
        Seconds by stage.
    """

    step: float
    parts: dict[str, float]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the experiments to their parser."""
    add_paper_options(parser)


def run(args: argparse.Namespace) -> int:
    """Run the experiments and return the exit code."""
    reason = backends.unavailable_reason("cuda")
    grids = _QUICK_GRIDS if args.quick else GRIDS
    serial = _one_core(grids[:3] if reason else grids)
    tables = [_advance_table(), _serial_table(serial)]
    said = [verdict(tables[0], 0.0)]
    if reason:
        tables.append(_cpu_table(grids[:3], quick=args.quick))
        missing_note = f"Table 2, Table 3, Figs. 4 and 5: {reason}"
        missing = (f"{n}²" for n in (GRIDS if args.quick else grids[3:]))
        notes = left_out(missing, "about 2 s a solve by PCR on one core", quick=args.quick)
        tables.append(Table("On a GPU", (Column("not measured"),), [(missing_note,)], notes))
    else:
        paper = _paper_seconds(grids)
        tables += [_speedup_table(paper, serial, memory, grids) for memory in MEMORIES]
        fastest = max(serial[n] / time for (_, _, n), time in paper.items())
        said = [verdict(tables[0], fastest), *device_verdicts(paper)]
        tables += list(_device_tables(paper, grids, quick=args.quick))
    cpu = _QUICK_FUSED if args.quick else (_CPU_FUSED,)
    tables.append(_fused_table("cpu", cpu, cpu_bandwidth(2**16 if args.quick else 2**25)))
    tables.append(_scipy_table(64 if args.quick else 1024))
    pictures = {} if reason else {"speedups": _picture(paper, serial, grids)}
    report(args, "wei2013", TITLE, tables, verdict=said, pictures=pictures)
    return 0


def verdict(advance: Table, fastest: float) -> Verdict:
    """Return what the paper claims and what was found."""
    claimed = max(max(row) for rows in PUBLISHED_SPEEDUPS.values() for row in rows.values())
    number, part = advance.rows[-1][:2]
    speed = f"up to {fastest:.0f} times" if fastest else "no GPU that the package can use"
    outcome = "not measured" if not fastest else "confirmed" if fastest >= claimed else "lower"
    return Verdict(
        f"an ADI step on a GPU is up to {claimed:.0f} times faster than on one core",
        f"{speed}; the published scheme advances a mode by {float(str(part)):.1%} of the step at "
        f"r = {number}, because it is one pass of line Jacobi",
        f"speed {outcome}; scheme not confirmed as an integrator in time",
    )


def device_verdicts(paper: Mapping[tuple[str, str, int], float]) -> list[Verdict]:
    """Return what the paper claims of blocks and of memory, and what was found.

    Parameters
    ----------
    paper : mapping
        Seconds of a step by memory, mapping and nodes.
    """
    blocks = [
        time / paper[memory, "C2", n]
        for (memory, mapping, n), time in paper.items()
        if mapping == "C1"
    ]
    gains = {
        to: [
            time / paper[to, m, n] for (memory, m, n), time in paper.items() if memory == "baseline"
        ]
        for to in ("texture", "transpose")
    }
    ranked = [1 < texture < turned for texture, turned in zip(*gains.values(), strict=True)]
    found = ", ".join(f"{memory} {_range(ratios)}" for memory, ratios in gains.items())
    return [
        Verdict(
            f"several blocks a system, C2, are up to {_BLOCKS_GAIN:g} times faster than one, C1",
            f"{_range(blocks)}, by memory and grid",
            "confirmed" if max(blocks) >= _BLOCKS_GAIN else "not confirmed",
        ),
        Verdict(
            "a transposition is faster than strided access, and texture memory is between them",
            f"times faster than the baseline, by mapping and grid: {found}; in this order in "
            f"{sum(ranked)} of {len(ranked)} cases",
            "confirmed" if all(ranked) else "not confirmed",
        ),
    ]


def _range(ratios: Sequence[float]) -> str:
    return f"{min(ratios):.2f} to {max(ratios):.2f}"


def _cpu_table(grids: Sequence[int], *, quick: bool) -> Table:
    """Return the times of the two solves of a step by method on the CPU, float32."""
    methods = ("thomas", "cr", "pcr", "cr-pcr", "auto")
    columns = [Column("nodes"), Column("method", left=True)]
    columns += [Column(f"{where}, ms", ".2f") for where in ("one core", "all cores")]
    columns.append(Column("Thomas on one core / method on one core", ".2f"))
    rows = []
    for n in grids:
        first = None
        for method in methods:
            runs = 1 if quick else 3
            times = [_solve_seconds(n, method, threads, runs) for threads in (1, None)]
            first = first or times[0]
            rows.append((f"{n}²", method, *(1e3 * time for time in times), first / times[0]))
    note = "Lines along x and along y, one matrix for all, r = 100."
    return Table("Solves of a step on the CPU, by method", columns, rows, (note,))


def _solve_seconds(nodes: int, method: Any, threads: int | None, runs: int) -> float:
    """Return the seconds of solves along x and along y."""
    rhs = np.linspace(0.0, 1.0, nodes**2, dtype=np.float32).reshape(nodes, nodes)
    sides, diag = np.full(nodes, -100, np.float32), np.full(nodes, 201, np.float32)
    options: Any = {"method": method, "threads": threads}

    def solve() -> None:
        for axis in (-1, 0):
            solve_tridiagonal(sides, diag, sides, rhs, axis=axis, **options)

    return median_of(solve, runs)


def _one_core(grids: Sequence[int]) -> dict[int, float]:
    """Return the seconds of a step by Thomas elimination on one core."""
    return {
        n: step_seconds(heated_plate(n, threads=1), 2 if n > 2048 else 5, 1).step
        for n in progress(grids, "wei2013")
    }


def _advance_table() -> Table:
    heads = ("wei2013", "2/(1 + 2r)", "peaceman-rachford")
    columns = (Column("r"), *(Column(head, ".4f") for head in heads))
    rows = [
        (
            f"{r:g}",
            advance_of_a_mode("wei2013", r),
            2 / (1 + 2 * r),
            advance_of_a_mode("peaceman-rachford", r),
        )
        for r in (0.1, 1.0, 10.0, 100.0)
    ]
    note = (
        "The first sine mode on 65² nodes, 10 steps. The published scheme is one pass of line "
        "Jacobi on an implicit step; the paper has r = 100."
    )
    return Table("Time that a scheme advances, over the time it should", columns, rows, (note,))


def _serial_table(serial: dict[int, float]) -> Table:
    rows = [(f"{n}²", 1e3 * seconds) for n, seconds in serial.items()]
    return Table("One core, Thomas, float32", (Column("nodes"), Column("ms a step", ".2f")), rows)


def _paper_seconds(grids: Sequence[int]) -> dict[tuple[str, str, int], float]:
    """Return the seconds of a step of the paper's variants."""
    wanted = [(k, m, n) for n in grids for k in MEMORIES for m in MAPPINGS]
    found = {}
    for memory, mapping, n in progress(wanted, "wei2013"):
        solver = _paper_solver(n, memory, mapping, _BLOCK)
        found[memory, mapping, n] = step_seconds(solver, 10 if n > 2048 else 200, 1).step
    return found


def _paper_solver(nodes: int, memory: str, mapping: str, block: int, **options: Any) -> Any:
    return heated_plate(
        nodes,
        kernels="wei2013",
        memory=memory,
        mapping=mapping,
        block=block,
        device="cuda",
        **options,
    )


def _speedup_table(
    paper: dict[tuple[str, str, int], float],
    serial: dict[int, float],
    memory: str,
    grids: Sequence[int],
) -> Table:
    columns = [Column("nodes")]
    for mapping in MAPPINGS:
        columns += [Column(mapping, ".1f"), Column("published", ".1f")]
    rows = []
    for n in grids:
        said = PUBLISHED_SPEEDUPS[memory].get(n, (None,) * len(MAPPINGS))
        cells: list[Any] = [f"{n}²"]
        for k, mapping in enumerate(MAPPINGS):
            cells += [serial[n] / paper[memory, mapping, n], said[k]]
        rows.append(tuple(cells))
    title = f"Times faster than one core, {memory}, blocks of {_BLOCK}"
    return Table(title, columns, rows, (_MEMORY_NOTES[memory],))


def _device_tables(
    paper: dict[tuple[str, str, int], float], grids: Sequence[int], *, quick: bool
) -> Iterator[Table]:
    yield _block_table(grids[-1] if quick else _BLOCK_GRID)
    yield _difference_table(grids[:1] if quick else grids)
    yield _parts_table(grids[-1] if quick else _PARTS_GRID)
    cases = _QUICK_FUSED if quick else _FUSED
    yield _fused_table("cuda", cases, device_bandwidth(), paper)
    yield _peer_table(64 if quick else 4096)


def _block_table(nodes: int) -> Table:
    columns = (Column("threads a block"), *(Column(m, ".1f") for m in MAPPINGS))
    rows: list[tuple[Any, ...]] = []
    for block in BLOCKS:
        cells: list[Any] = [block]
        for mapping in MAPPINGS:
            solver = _paper_solver(nodes, "transpose", mapping, block)
            cells.append(1e6 * step_seconds(solver, 10, 1).step)
        rows.append(tuple(cells))
    return Table(f"µs a step at {nodes}², transpose, by threads a block", columns, rows)


def _difference_table(grids: Sequence[int]) -> Table:
    columns = (
        Column("nodes"),
        Column("wei2013 C4", ".2e"),
        Column("published", ".2e"),
        Column("fused", ".2e"),
        Column("bar", ".0e"),
    )
    rows = []
    for n in progress(grids, "wei2013"):
        theirs = relative_difference(n, kernels="wei2013", mapping="C4")
        ours = relative_difference(n, scheme="peaceman-rachford")
        rows.append((f"{n}²", theirs, PUBLISHED_DIFFERENCES.get(n), ours, 3e-6))
    note = "After 100 steps."
    return Table("Relative l2 difference of GPU and CPU, float32", columns, rows, (note,))


def _parts_table(nodes: int) -> Table:
    names = ("rhs", "x", "y", "transpose")
    columns = (Column("memory"), *(Column(f"{name}, µs", ".1f") for name in names))
    rows: list[tuple[Any, ...]] = []
    for memory in MEMORIES:
        parts = step_seconds(_paper_solver(nodes, memory, "C4", _BLOCK, timed=True), 5, 1).parts
        rows.append((memory, *(1e6 * parts.get(name, 0.0) for name in names)))
    return Table(f"Parts of a step at {nodes}², C4, blocks of {_BLOCK}", columns, rows)


def _fused_table(
    device: str,
    cases: Sequence[tuple[tuple[int, ...], str, str, int, str]],
    bandwidth: float,
    paper: dict[tuple[str, str, int], float] | None = None,
) -> Table:
    columns = (
        Column("nodes"),
        Column("dtype"),
        Column("scheme"),
        Column("µs a step", ".1f"),
        Column("words"),
        Column("of the floor", ".0%"),
        Column("bar"),
        Column("over the paper's best", ".1f"),
    )
    rows = []
    for shape, dtype, scheme, words, bar in progress(cases, "wei2013"):
        solver = heated_plate(shape, dtype=np.dtype(dtype), scheme=scheme, device=device)
        nodes = int(np.prod(shape))
        steps = 400 if nodes <= 2**24 else 100
        step = step_seconds(solver, steps if device == "cuda" else 20, 2).step
        del solver
        floor = words * np.dtype(dtype).itemsize * nodes / bandwidth
        times = [t for (_, _, n), t in (paper or {}).items() if (n, n) == shape]
        gain = min(times) / step if times and dtype == "float32" else None
        name = " × ".join(map(str, shape))
        rows.append((name, dtype, scheme, 1e6 * step, words, floor / step, bar, gain))
    where = "all cores" if device == "cpu" else "the GPU"
    note = f"The floor is that of the copy bandwidth, {bandwidth / 1e9:.0f} GB/s."
    return Table(f"Steps of this package, {where}", columns, rows, (note,))


def _peer_table(nodes: int) -> Table:
    """Return the times of an ADI step with the tridiagonal solver of JAX and with this package."""
    columns = (Column("step"), Column(f"µs at {nodes}², float32", ".1f"))
    ours = heated_plate(nodes, scheme="peaceman-rachford", device="cuda")
    rows: list[tuple[Any, ...]] = [("fused", 1e6 * step_seconds(ours, 20).step)]
    del ours
    try:
        rows.append(("JAX, tridiagonal_solve", 1e6 * _jax_seconds(nodes)))
    except Exception as error:  # the other peers run even if one fails
        text = str(error).splitlines() or [type(error).__name__]
        rows.append((f"JAX: {text[0][:60]}", None))
    return Table("Peers on the GPU", columns, rows)


def _jax_seconds(nodes: int) -> float:
    """Return the seconds of a Peaceman-Rachford step, r = 100, with JAX."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    if import_module("jax").default_backend() != "gpu":
        raise RuntimeError("no GPU backend here")
    return median_of(jax_plate(np.ones((nodes, nodes), np.float32), 50.0), 5)


def _scipy_table(nodes: int) -> Table:
    """Return the times of an ADI step with SciPy on one core and with this package."""
    columns = (Column("step"), Column(f"ms at {nodes}², float64", ".2f"))
    options: dict[str, Any] = {"scheme": "peaceman-rachford", "dtype": np.float64}
    times = {
        "all cores": step_seconds(heated_plate(nodes, **options), 10).step,
        "one core": step_seconds(heated_plate(nodes, threads=1, **options), 5).step,
    }
    rows: list[tuple[Any, ...]] = [(name, 1e3 * seconds) for name, seconds in times.items()]
    try:
        seconds = median_of(scipy_plate(np.ones((nodes, nodes)), 50.0), 3)
        rows.append(("SciPy, solve_banded", 1e3 * seconds))
    except ImportError:
        rows.append(("SciPy is not installed", None))
    return Table("Peers on the CPU", columns, rows)


def _picture(
    paper: dict[tuple[str, str, int], float], serial: dict[int, float], grids: Sequence[int]
) -> Callable[[], Any]:
    def draw() -> Any:
        from .figures import plot_speedups

        seconds = {"one core": dict(serial)}
        seconds |= {f"C4, {m}": {n: paper[m, "C4", n] for n in grids} for m in MEMORIES}
        ratios = {
            name: {n: serial[n] / t for n, t in times.items()} for name, times in seconds.items()
        }
        published = {
            f"C4, {m}": (
                min(row[3] for row in PUBLISHED_SPEEDUPS[m].values()),
                max(row[3] for row in PUBLISHED_SPEEDUPS[m].values()),
            )
            for m in MEMORIES
        }
        return plot_speedups(seconds, ratios, published, "A step of ADI, float32")

    return draw


def step_seconds(solver: HeatADI, steps: int, warm_up: int = 2) -> StepTime:
    """Measure the steps of a solver."""
    with warnings.catch_warnings():  # the time does not depend on the accuracy of the step
        warnings.filterwarnings("ignore", "HeatADI.*too large for the solution", RuntimeWarning)
        solver.step(warm_up)
    before = solver.seconds
    step = host(lambda: solver.step(steps), 1) / steps
    return StepTime(step, {k: (v - before[k]) / steps for k, v in solver.seconds.items()})


def relative_difference(nodes: int, steps: int = 100, **options: Any) -> float:
    """Return the relative l2 difference of two devices' fields."""
    there = heated_plate(nodes, device="cuda", **options).step(steps).u.astype(float)
    same = {name: options[name] for name in ("scheme", "dtype") if name in options}
    here = heated_plate(nodes, **same).step(steps).u.astype(float)
    return float(np.linalg.norm(there - here) / np.linalg.norm(here))

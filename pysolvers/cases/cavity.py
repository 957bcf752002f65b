"""``python -m pysolvers run cavity``: solve, compare with published tables, draw, time."""

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from .._progress import progress
from .._repr import counted
from ..flow import CavityResult, LidDrivenCavity
from ..flow.cavity._settings import LineMethod
from ..papers import (
    ghia_lid_vorticity,
    ghia_reynolds_numbers,
    primary_vortices,
    published_profiles,
)
from ..plots.cavity import draw_cavity
from .grid_error import NoEstimate, compute_half, error_of, half_nodes
from .records import write_result

_GHIA, _BOTELLA = "Ghia et al. 1982", "Botella and Peyret 1998"
_LINE_METHODS: tuple[LineMethod, ...] = ("thomas", "cr", "pcr", "cr-pcr", "pcr-thomas", "pivoted")
_TIMED_ITERATIONS = 20
_REPEATS = 5


def add_cavity_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the case to its parser."""
    parser.add_argument(
        "--re",
        "--reynolds",
        type=float,
        default=1000.0,
        help="Reynolds number (%(default)g)",
    )
    parser.add_argument("--n", type=int, default=129, help="nodes along a side (%(default)d)")
    parser.add_argument("--tol", type=float, default=1e-7, help="residual (%(default)g)")
    parser.add_argument("--wall", default="jensen", help="jensen, woods or thom (%(default)s)")
    parser.add_argument("--method", default="adi", help="adi or line-jacobi (%(default)s)")
    parser.add_argument(
        "--line-method", default="auto", help="algorithm of the tridiagonal lines (%(default)s)"
    )
    parser.add_argument("--psi-solver", default="adi", help="adi or fast (%(default)s)")
    parser.add_argument("--max-iterations", type=int, default=200_000, help="(%(default)d)")
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:N (%(default)s)")
    parser.add_argument("--threads", type=int, help="threads (chosen by the grid)")
    parser.add_argument("--output", type=Path, default=Path("results"), help="folder (%(default)s)")
    parser.add_argument("--no-plot", action="store_true", help="write no picture")


def run_cavity(args: argparse.Namespace) -> int:
    """Run the case and return the exit code.

    Raises
    ------
    ValueError
        If an option is out of its range.
    ConvergenceError
        If the iteration did not reach the tolerance.
    """
    cavity = _cavity(args, args.line_method)
    args.output.mkdir(parents=True, exist_ok=True)
    start = perf_counter()
    result = cavity.solve(args.tol, max_iterations=args.max_iterations)
    elapsed = perf_counter() - start

    tables = published_profiles(result.reynolds)
    error = grid_error(args, result)
    for line in (
        *report(result, elapsed, tables, error),
        "",
        *speed_table(args),
    ):
        print(line)
    write_files(result, tables, args.output, error, plot=not args.no_plot)
    return 0


def grid_error(args: argparse.Namespace, fine: CavityResult) -> str:
    """Return the line with the error of the grid, estimated by a run on half the intervals."""
    try:
        n = half_nodes(fine.n)
        coarse = compute_half(
            f"{n} x {n}",
            lambda: _cavity(args, args.line_method, n).solve(
                args.tol, max_iterations=args.max_iterations
            ),
        )
    except NoEstimate as error:
        return f"error of the grid: not estimated, {error}"
    places, intervals = np.linspace(0.0, 1.0, 201), (fine.n - 1, n - 1)
    u = error_of(fine.centreline_u(places), coarse.centreline_u(places), intervals)
    v = error_of(fine.centreline_v(places), coarse.centreline_v(places), intervals)
    psi = error_of(fine.primary_vortex().psi, coarse.primary_vortex().psi, intervals)
    return (
        f"error of the grid, estimated by a run on {n} x {n} nodes: u on x = 1/2 {u:.4f}, "
        f"v on y = 1/2 {v:.4f}, psi of the vortex {psi:.4f}"
    )


def report(
    result: CavityResult, elapsed: float, tables: dict[str, dict[str, Any]], error: str
) -> Iterator[str]:
    """Yield the lines that compare a result with published values; `error` is that of the grid."""
    yield (
        f"Lid-driven cavity, Re = {result.reynolds:g}, {result.n} x {result.n} nodes, "
        f"{result.wall} walls, {result.method}"
    )
    yield (
        f"{result.stop_reason} after {result.iterations} iterations, residual "
        f"{result.residual:.1e}, {elapsed:.2f} s"
    )
    yield error
    for name, columns in tables.items():
        yield ""
        yield from _profile("u on x = 1/2", "y", columns["y"], result.centreline_u, columns, name)
        yield ""
        yield from _profile("v on y = 1/2", "x", columns["x"], result.centreline_v, columns, name)
    yield from _lid(result)
    yield ""
    yield from _vortices(result)
    yield ""
    yield from _time_split(result, elapsed)


def speed_table(args: argparse.Namespace) -> Iterator[str]:
    """Yield the lines with the time of an iteration for each line method."""
    times = {name: _time_of_iteration(args, name) for name in progress(_LINE_METHODS, "timing")}
    nodes = (args.n - 2) ** 2
    yield f"Time of one iteration of {args.method} by line method (best of {_REPEATS}):"
    yield "method        ms/iteration    ns/node   of thomas"
    for name, seconds in times.items():
        yield (
            f"{name:12} {1e3 * seconds:13.3f} {1e9 * seconds / nodes:10.2f} "
            f"{seconds / times['thomas']:11.2f}"
        )


def write_files(
    result: CavityResult, tables: dict[str, dict[str, Any]], folder: Path, note: str, *, plot: bool
) -> None:
    """Write the result, and the figure if requested; see `write_result`."""
    stem = folder / f"cavity_re{result.reynolds:g}_n{result.n}"
    draw = partial(draw_cavity, result, tables, note=note)
    write_result(result, stem, draw if plot else None)


def _cavity(
    args: argparse.Namespace, line_method: LineMethod, n: int | None = None
) -> LidDrivenCavity:
    """Return a new solver with the options of the command line; `n` replaces theirs."""
    return LidDrivenCavity(
        args.re,
        args.n if n is None else n,
        wall=args.wall,
        method=args.method,
        line_method=line_method,
        psi_solver=args.psi_solver,
        device=args.device,
        threads=args.threads,
    )


def _profile(
    title: str, place: str, at: Any, ours: Any, columns: dict[str, Any], source: str
) -> Iterator[str]:
    """Yield a table of one velocity and the published one, with the largest difference."""
    published = columns[title[0]]
    values = ours(at)
    difference = values - published
    yield f"{title}, {source}"
    yield f"{place:>8} {'here':>10} {'published':>10} {'difference':>11}"
    for row in zip(at, values, published, difference, strict=True):
        if np.isnan(row[2]):
            yield f"{row[0]:8.4f} {row[1]:10.5f} {'omitted (misprint)':>22}"
        else:
            yield "{:8.4f} {:10.5f} {:10.5f} {:11.5f}".format(*row)
    yield f"{'largest':>8} {np.nanmax(np.abs(difference)):33.5f}"


def _lid(result: CavityResult) -> Iterator[str]:
    """Yield a table of the vorticity along the lid if there is a published one."""
    if result.reynolds not in ghia_reynolds_numbers():
        return
    table = ghia_lid_vorticity(result.reynolds)
    places, omega = result.wall_vorticity("lid")
    yield ""
    yield f"|omega| along the lid, {_GHIA}"
    yield f"{'x':>8} {'here':>10} {'published':>10} {'ratio':>11}"
    for x, published in zip(table["x"], table["omega"], strict=True):
        value = abs(float(np.interp(x, places, omega)))
        yield f"{x:8.4f} {value:10.4f} {published:10.4f} {value / published:11.4f}"


def _vortices(result: CavityResult) -> Iterator[str]:
    """Yield the primary vortex, here and as published, and the differences."""
    node, fitted = result.primary_vortex(refine=False), result.primary_vortex()
    yield f"{'primary vortex':24} {'x':>9} {'y':>9} {'psi':>11} {'omega':>10}"
    rows: Sequence[tuple[str, Any]] = [("here, at a node", node), ("here, refined", fitted)]
    published = primary_vortices(result.reynolds)
    for name, vortex in [*rows, *((v.source, v) for v in published)]:
        yield _vortex_row(name, vortex.x, vortex.y, vortex.psi, vortex.omega)
    for vortex in published:
        yield _vortex_row(
            f"  difference, {vortex.source.split()[0]}",
            fitted.x - vortex.x,
            fitted.y - vortex.y,
            None if vortex.psi is None else fitted.psi - vortex.psi,
            None if vortex.omega is None else fitted.omega - vortex.omega,
        )


def _vortex_row(name: str, x: float, y: float, psi: float | None, omega: float | None) -> str:
    """Return a row of the table of the vortex; None leaves a cell empty."""
    psi_text = "" if psi is None else f"{psi:.6f}"
    omega_text = "" if omega is None else f"{omega:.5f}"
    return f"{name:24} {x:9.4f} {y:9.4f} {psi_text:>11} {omega_text:>10}".rstrip()


def _time_split(result: CavityResult, elapsed: float) -> Iterator[str]:
    """Yield the time of the solve and the share of each stage."""
    inside = sum(result.seconds.values())
    yield (
        f"Time: {elapsed:.2f} s, {1e3 * elapsed / max(result.iterations, 1):.3f} ms an iteration, "
        f"{counted(result.threads, 'thread')}, {result.kernel}, lines by {result.line_method}"
    )
    for name, seconds in [*result.seconds.items(), ("other", max(elapsed - inside, 0.0))]:
        yield f"  {name:10} {seconds:8.3f} s {seconds / elapsed:6.1%}"


def _time_of_iteration(args: argparse.Namespace, line_method: LineMethod) -> float:
    """Return the best time of an iteration, in s."""
    cavity = _cavity(args, line_method).iterate(_TIMED_ITERATIONS)
    times = []
    for _ in range(_REPEATS):
        start = perf_counter()
        cavity.iterate(_TIMED_ITERATIONS)
        times.append(perf_counter() - start)
    return min(times) / _TIMED_ITERATIONS

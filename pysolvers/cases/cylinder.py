"""``python -m pysolvers run cylinder``: run, compare with published values, draw."""

import argparse
import sys
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np

from .._errors import CoarseGridWarning
from .._repr import counted
from ..flow import CylinderResult, SquareCylinder
from ..papers import breuer_drag, breuer_recirculation_length
from ..plots.cylinder import draw_cylinder
from .grid_error import NoEstimate, compute_half, error_of, half_nodes
from .records import write_result

_SOURCE = "Breuer et al. 2000"
_LAST = 16.0  # time at the end over which forces are averaged: two periods of shedding


def add_cylinder_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the case to its parser."""
    parser.add_argument(
        "--re",
        "--reynolds",
        type=float,
        default=100.0,
        help="Reynolds number (%(default)g)",
    )
    parser.add_argument(
        "--shape",
        type=int,
        nargs=2,
        default=(161, 801),
        metavar=("NY", "NX"),
        help="nodes along y and x (161 801)",
    )
    parser.add_argument("--length", type=float, default=50.0, help="of the channel (%(default)g)")
    parser.add_argument("--until", type=float, default=150.0, help="end time (%(default)g)")
    parser.add_argument("--dt", type=float, help="time step (from grid and Reynolds number)")
    parser.add_argument("--steady", action="store_true", help="compute the steady flow instead")
    parser.add_argument("--tol", type=float, default=1e-6, help="of --steady (%(default)g)")
    parser.add_argument("--max-iterations", type=int, default=100_000, help="of --steady")
    parser.add_argument("--cylinder", default="free", help="free or fixed (%(default)s)")
    parser.add_argument("--wall", default="thom", help="thom, woods or jensen (%(default)s)")
    parser.add_argument("--psi-solver", default="fast", help="fast or lines (%(default)s)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (%(default)s)")
    parser.add_argument("--threads", type=int, help="threads (chosen by the grid)")
    parser.add_argument("--output", type=Path, default=Path("results"), help="folder (%(default)s)")
    parser.add_argument("--no-plot", action="store_true", help="write no picture")
    parser.add_argument("--film", type=Path, help="file for a film of the vorticity (GIF)")


def run_cylinder(args: argparse.Namespace) -> int:
    """Run the case and return the exit code.

    Raises
    ------
    ValueError
        If an option is out of its range, or the film has an unknown format.
    ConvergenceError
        If the step is too large, or the tolerance was not reached.
    """
    if args.film is not None and args.steady:
        raise ValueError("--film shows the unsteady flow: leave out --film or --steady")
    solver = _solver(args, tuple(args.shape))
    args.output.mkdir(parents=True, exist_ok=True)
    if args.film is not None:
        args.film.parent.mkdir(parents=True, exist_ok=True)
    start = perf_counter()
    if args.steady:
        result = solver.solve(args.tol, max_iterations=args.max_iterations)
    elif args.film is not None:
        result = solver.record(args.until)
    else:
        result = solver.run(args.until)
    elapsed = perf_counter() - start
    error = grid_error(args, result)
    for line in report(result, elapsed, error):
        print(line)
    write_files(result, args.output, error, plot=not args.no_plot)
    if args.film is not None:  # last: an error of the film leaves the other files
        result.animate(args.film)
        print(f"wrote {args.film}", file=sys.stderr)
    return 0


def grid_error(args: argparse.Namespace, fine: CylinderResult) -> str:
    """Return the line with the error of the grid, estimated by a run on half the intervals."""
    try:
        values = _values(fine)
    except ValueError as error:  # the flow has no Strouhal number yet
        return f"error of the grid: not estimated, {error}"
    try:
        shape = half_nodes(fine.psi.shape[0]), half_nodes(fine.psi.shape[1])
        name = f"{shape[0]} x {shape[1]}"

        def run() -> dict[str, float]:
            """Return the values of a flow on the grid of this shape."""
            with warnings.catch_warnings():  # the coarser grid is for the comparison only
                warnings.simplefilter("ignore", CoarseGridWarning)
                solver = _solver(args, shape)
            if args.steady:
                return _values(solver.solve(args.tol, max_iterations=args.max_iterations))
            return _values(solver.run(args.until))

        coarse = compute_half(name, run)
    except NoEstimate as error:
        return f"error of the grid: not estimated, {error}"
    intervals = fine.psi.shape[0] - 1, shape[0] - 1
    errors = (f"{k} {error_of(values[k], coarse[k], intervals):.4f}" for k in values)
    return f"error of the grid, estimated by a run on {name} nodes: {', '.join(errors)}"


def _values(result: CylinderResult) -> dict[str, float]:
    """Return the numbers whose error is estimated, by their names."""
    if result.steady:
        return {"drag Cd": result.drag, "recirculation Lr/D": result.recirculation_length}
    last = result.history.time > result.time - _LAST
    drag = float(np.mean(result.history.drag[last]))
    return {"Strouhal number": result.strouhal().value, "drag Cd": drag}


def _solver(args: argparse.Namespace, shape: tuple[int, int]) -> SquareCylinder:
    """Return a new solver on `shape` with the options of the command line."""
    return SquareCylinder(
        args.re,
        shape,
        length=args.length,
        dt=args.dt,
        cylinder=args.cylinder,
        psi_solver=args.psi_solver,
        wall=args.wall,
        steady=args.steady,
        device=args.device,
        threads=args.threads,
    )


def report(result: CylinderResult, elapsed: float, error: str) -> Iterator[str]:
    """Yield the lines that compare a result with published values; `error` is that of the grid."""
    ny, nx = result.psi.shape
    yield (
        f"Square cylinder, Re = {result.reynolds:g}, {ny} x {nx} nodes, {result.wall} walls, "
        f"psi on the cylinder {result.cylinder}"
    )
    yield f"{result.stop_reason} after {result.steps} steps of {result.dt:g}, {elapsed:.2f} s"
    yield error
    yield ""
    yield f"{'':28} {'here':>20} {_SOURCE:>20}"
    published = _published_drag(result.reynolds)
    if result.steady:
        yield _row("drag Cd", f"{result.drag:.4f}", published)
        yield _row("  by pressure and shear", f"{result.surface_drag:.4f}")
        inside = 5 < result.reynolds < 60
        length = f"{breuer_recirculation_length(result.reynolds):.4f}" if inside else ""
        yield _row("recirculation Lr/D", f"{result.recirculation_length:.4f}", length)
    else:
        yield from _unsteady(result, published)
    yield ""
    total = sum(result.seconds.values())
    shares = ", ".join(f"{name} {t / total:.0%}" for name, t in result.seconds.items() if total)
    milliseconds = 1e3 * elapsed / max(result.steps, 1)
    place = counted(result.threads, "thread") if result.backend == "cpu" else result.backend
    yield f"{milliseconds:.2f} ms/step on {place}: {shares}"


def write_files(result: CylinderResult, folder: Path, note: str, *, plot: bool) -> None:
    """Write the result, and the figure if requested; see `write_result`."""
    kind = "_steady" if result.steady else ""
    stem = folder / f"cylinder_re{result.reynolds:g}_{result.psi.shape[0]}{kind}"
    write_result(result, stem, partial(draw_cylinder, result, note=note) if plot else None)


def _unsteady(result: CylinderResult, published: str) -> Iterator[str]:
    """Yield Strouhal number, drag and lift of the last periods."""
    history = result.history
    try:
        found = result.strouhal()
        yield _row(
            "Strouhal number",
            f"{found.value:.5f}",
            f"(mean of {found.periods} periods, +- {found.uncertainty:.1e})",
        )
    except ValueError as error:
        yield f"no Strouhal number: {error}"
    last = history.time > result.time - _LAST
    if not last.any():
        return
    for name, drag, lift in (
        ("", history.drag, history.lift),
        ("  by pressure and shear", history.surface_drag, history.surface_lift),
    ):
        mean, half = float(np.mean(drag[last])), float(np.ptp(drag[last])) / 2
        yield _row(name or "drag Cd", f"{mean:.4f} +- {half:.4f}", "" if name else published)
        mean, half = float(np.mean(lift[last])), float(np.ptp(lift[last])) / 2
        yield _row(name or "lift Cl", f"{mean:.4f} +- {half:.4f}")
    largest = float(np.abs(history.v[history.probe_time > result.time - _LAST, 0]).max())
    yield _row("largest |v| at 4 D", f"{largest:.4f}")


def _row(name: str, here: str, published: str = "") -> str:
    """Return a row of three columns: quantity, value here, published value."""
    return f"{name:28} {here:>20} {published:>20}".rstrip()


def _published_drag(reynolds: float) -> str:
    """Return the drag between two published values, or why there is none."""
    table = breuer_drag()
    numbers = table["re"]
    if not numbers[0] <= reynolds <= numbers[-1]:
        return f"Re {numbers[0]:g} to {numbers[-1]:g} only"
    logarithm = np.interp(np.log(reynolds), np.log(numbers), np.log(table["cd"]))
    return f"{float(np.exp(logarithm)):.4f}"

"""``python -m pysolvers run heat``: a body that cools, compared with the series of its solution.

The unit square or the unit cube has the temperature 1 at time 0 and the temperature 0 on all
sides. The solution is a product of the solutions of a slab (Carslaw and Jaeger 1959, chapters 3
and 5). All ranks of an MPI launcher compute one field; rank 0 prints and writes files.
"""

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _machine as machine
from .._checks import require
from .._errors import BackendError
from ..distributed import Group, Slab
from ..distributed._group import agreement_of
from ..distributed._launch import launch_command, launched
from ..heat import HeatADI, HeatResult
from ..spline import CubicSpline
from .grid_error import NoEstimate, compute_half, error_of, half_nodes
from .tables import Column, Table, add_report_arguments, report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_TITLE = "Cooling of a {}, Carslaw and Jaeger 1959"
_OPERATION = "run heat"
_PLACES = 5  # rows of the table


def add_heat_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the case to its parser."""
    parser.add_argument(
        "--shape", type=int, nargs="+", default=[129, 129], help="ny nx or nz ny nx (129 129)"
    )
    parser.add_argument("--dt", type=float, default=1e-3, help="time step (%(default)g)")
    parser.add_argument("--until", type=float, default=0.1, help="end time (%(default)g)")
    parser.add_argument(
        "--dtype", choices=("float64", "float32"), default="float64", help="(%(default)s)"
    )
    parser.add_argument(
        "--device", help="cpu, cuda or cuda:N (cpu); with ranks, cuda gives each its own device"
    )
    parser.add_argument("--threads", type=int, help="threads of a rank (chosen by the grid)")
    parser.add_argument(
        "--ranks",
        type=int,
        metavar="N",
        help="split the field over N processes, which mpiexec starts on this host",
    )
    parser.add_argument(
        "--split",
        choices=("x", "y", "z"),
        help="axis that is cut; the processes of an MPI launcher solve together (the first axis)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        metavar="S",
        help="seconds that a rank waits for another one (%(default)g)",
    )
    parser.add_argument("--launched", action="store_true", help=argparse.SUPPRESS)
    add_report_arguments(parser)


def run_heat(args: argparse.Namespace) -> int:
    """Run the case and return the exit code.

    Raises
    ------
    ValueError
        If an option is out of its range.
    BackendError
        If ranks are requested and MPI is missing, or has another number of ranks.
    DistributedError
        If another rank failed.
    """
    require(args.until > 0, "--until must be positive", args.until)  # the series needs it
    axes = "xyz"[: len(args.shape)]
    axis = args.split or axes[-1]
    require(axis in axes, f"--split must be one of {', '.join(axes)} for {len(axes)} axes", axis)
    split = Slab(-1 - axes.index(axis))
    if args.ranks is not None and not args.launched and launched()[0] == 1:
        require(args.ranks > 0, "--ranks must be positive", args.ranks)
        if args.ranks > 1:
            split.part(args.shape[split.axis], 0, args.ranks)  # refuses more ranks than nodes
            _launch(args)
    group = _group(args)
    with agreement_of(group, _OPERATION):
        if group is None or group.rank == 0:
            args.output.mkdir(parents=True, exist_ok=True)
    cut = None if group is None else split
    solver = _solver(args, tuple(args.shape), args.dt, device=args.device, group=group, split=cut)
    start = perf_counter()
    result = solver.run(args.until)
    elapsed = perf_counter() - start
    whole = solver.gather()
    ranks = 1 if group is None else group.size
    with agreement_of(group, _OPERATION):
        if whole is not None:
            result = replace(result, u=whole, origin=(0.0,) * whole.ndim)
            _write(args, result, elapsed, f"{ranks}, cut along {axis}" if ranks > 1 else "1")
    return 0


def cooled_slab(x: NDArray[np.float64], t: float) -> NDArray[np.float64]:
    r"""Return the temperature of a slab of thickness 1 that cools from 1, its sides at 0.

    .. math:: \frac{4}{\pi} \sum_{m = 1, 3, 5, \dots} \frac{\sin m \pi x}{m} e^{-m^2 \pi^2 t}

    Parameters
    ----------
    x : ndarray of float
        Distances from one side.
    t : float
        Time, positive; the diffusivity is 1.

    Returns
    -------
    ndarray of float
        The temperatures. Terms below :math:`10^{-17}` are left out.
    """
    m = np.arange(1.0, 2.0 + np.sqrt(40.0 / t) / np.pi, 2.0)
    terms = np.sin(np.pi * np.multiply.outer(x, m)) * np.exp(-((m * np.pi) ** 2) * t) / m
    return np.asarray(4 / np.pi * terms.sum(axis=-1))


def _launch(args: argparse.Namespace) -> None:
    """Replace this process by the launcher of the ranks, which run the same command line."""
    command = launch_command(args.ranks, ["-m", "pysolvers", *args.command_line, "--launched"])
    share = max(machine.cpu_count() // args.ranks, 1)
    # The messages are of host memory: MPICH does not need to look for devices.
    defaults = {"PYSOLVERS_NUM_THREADS": str(share), "MPIR_CVAR_ENABLE_GPU": "0"}
    sys.stdout.flush()
    os.execve(command[0], command, defaults | os.environ)


def _group(args: argparse.Namespace) -> Group | None:
    """Return the ranks of the launcher; None if this process is alone."""
    if not args.launched and args.split is None and launched()[0] == 1:
        return None
    group = Group(timeout=args.timeout)
    if args.ranks not in (None, group.size):
        raise BackendError(
            f"--ranks is {args.ranks}, but MPI has {group.size} ranks: start the command with "
            f"mpiexec -n {args.ranks}, of the MPI library that mpi4py uses"
        )
    return group if group.size > 1 else None


def _write(args: argparse.Namespace, result: HeatResult, elapsed: float, ranks: str) -> None:
    """Print the comparison with the series, and write the files."""
    body = {2: "square", 3: "cube"}[result.u.ndim]
    name = f"heat_{'x'.join(map(str, result.u.shape))}"
    lines = [cooled_slab(line, result.time) for line in (result.x, result.y)]
    exact = np.multiply.outer(lines[1], lines[0])
    if result.u.ndim == 3:
        exact = cooled_slab(result.z, result.time)[:, None, None] * exact
    error = _grid_error(args, result)
    pictures: dict[str, Callable[[], Figure]] = {"isotherms": lambda: _figure(result, error)}
    report(
        args,
        name,
        _TITLE.format(body),
        [_comparison(result, exact, error), _speed(result, elapsed, ranks)],
        pictures=pictures,
    )
    path = args.output / f"{name}.npz"
    result.save(path)
    print(f"wrote {path}", file=sys.stderr)


def _comparison(result: HeatResult, exact: NDArray[np.float64], error: str) -> Table:
    """Return the temperatures along x through the middle of the body; `error`: of the grid."""
    middle = tuple(n // 2 for n in result.u.shape[:-1])
    found, expected = result.u[middle], exact[middle]
    nodes = np.linspace(0, len(found) // 2, _PLACES + 1).astype(int)[1:]
    columns = (Column("x", ".4f"), *(Column(n, ".6f") for n in ("here", "series", "difference")))
    rows = [
        (float(result.x[i]), float(found[i]), float(expected[i]), float(found[i] - expected[i]))
        for i in nodes
    ]
    largest = float(np.abs(result.u - exact).max())
    notes = (f"Largest difference at a node: {largest:.2e}.", error)
    title = f"Temperature through the middle of the body at t = {result.time:g}"
    return Table(title, columns, rows, notes)


def _grid_error(args: argparse.Namespace, fine: HeatResult) -> str:
    """Return the sentence with the error of grid and step, from a run with both twice as coarse."""
    try:
        shape = tuple(half_nodes(nodes) for nodes in fine.u.shape)
        name = " x ".join(map(str, shape))
        coarse = compute_half(name, lambda: _solver(args, shape, dt=2 * args.dt).run(args.until))
    except NoEstimate as reason:
        return f"Error of grid and step: not estimated, {reason}."
    field = coarse.u
    for axis, nodes in enumerate(fine.u.shape):
        knots, places = (np.linspace(0.0, 1.0, n) for n in (field.shape[axis], nodes))
        field = CubicSpline(knots, field, axis)(places)
    error = error_of(fine.u, field, (2, 1))
    return (
        f"Error of grid and step, estimated by a run on {name} nodes with dt = {2 * args.dt:g}: "
        f"{error:.2e}."
    )


def _solver(args: argparse.Namespace, shape: tuple[int, ...], dt: float, **options: Any) -> HeatADI:
    """Return a new solver of a unit square or cube of temperature 1 whose sides have 0."""
    return HeatADI(
        shape,
        extent=((0.0, 1.0),) * len(shape),
        dt=dt,
        initial=1.0,
        dtype=args.dtype,
        threads=args.threads,
        boundary=0.0,
        **options,
    )


def _speed(result: HeatResult, elapsed: float, ranks: str) -> Table:
    """Return a table of the time of a step; `elapsed` are the seconds of all steps."""
    step = elapsed / max(result.steps, 1)
    columns = (
        Column("nodes"),
        Column("scheme"),
        Column("ranks"),
        Column("steps"),
        Column("ms a step", ".3f"),
        Column("ns a node", ".2f"),
    )
    nodes = " x ".join(map(str, result.u.shape[::-1]))
    cells = (nodes, result.scheme, ranks, result.steps, 1e3 * step, 1e9 * step / result.u.size)
    return Table(f"Time: {elapsed:.2f} s", columns, [cells])


def _figure(result: HeatResult, note: str) -> "Figure":
    """Return a figure of T with a note below it."""
    from ..plots._figure import add_note, new_figure
    from ..plots.heat import draw_heat

    figure = new_figure(6.2, 5.0)
    draw_heat(figure, result)
    add_note(figure, note)
    return figure

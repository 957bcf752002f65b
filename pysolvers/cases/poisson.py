"""``python -m pysolvers run poisson``: a duct or a pipe, compared with the series of its solution.

In both problems the Laplacian of u is -1, and u = 0 on the walls. The duct is a rectangle: u is the
velocity of the developed flow (Boussinesq 1868). The pipe is a cylinder of radius 1 with two ends:
u is the temperature above that of its surface with a source of 1 (Carslaw and Jaeger 1959, ch. 8).
The nodes are finer at the walls, along both axes.
"""

import argparse
import sys
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import require
from .._extras import extra_module
from ..poisson import FastPoisson
from .tables import Column, Table, add_report_arguments, report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[np.float64]

_TITLES = {
    "duct": "Developed flow through a rectangular duct, Boussinesq 1868",
    "pipe": "Heated cylinder between two ends, Carslaw and Jaeger 1959",
}
_TERMS = 400  # of a series


class Values(NamedTuple):
    """u in the middle, and its mean."""

    middle: float
    mean: float


def add_poisson_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the case to its parser."""
    parser.add_argument("--problem", choices=tuple(_TITLES), default="duct", help="(%(default)s)")
    parser.add_argument(
        "--n", type=int, default=128, help="cells along each axis, divisible by 8 (%(default)s)"
    )
    parser.add_argument(
        "--aspect", type=float, default=2.0, help="height or length over width or radius (2)"
    )
    parser.add_argument(
        "--stretching",
        type=float,
        default=1.5,
        help="of the nodes, tanh(b s) / tanh(b); 0 for uniform nodes (%(default)g)",
    )
    parser.add_argument("--threads", type=int, help="(chosen by the grid)")
    add_report_arguments(parser)


def run_poisson(args: argparse.Namespace) -> int:
    """Run the case and return the exit code.

    Raises
    ------
    ValueError
        If an option is out of its range.
    """
    require(args.n >= 8 and args.n % 8 == 0, "--n must be divisible by 8", args.n)
    require(args.aspect > 0, "--aspect must be positive", args.aspect)
    require(0 <= args.stretching <= 5, "--stretching must be in 0 .. 5", args.stretching)
    args.output.mkdir(parents=True, exist_ok=True)
    exact = (duct_series if args.problem == "duct" else pipe_series)(args.aspect)
    grids = [args.n // 4, args.n // 2, args.n]
    found = []
    for n in grids:
        start = perf_counter()
        solver = _solver(args, n)
        ready = perf_counter()
        u = solver.solve(-1.0)
        found.append((solver, u, ready - start, perf_counter() - ready))
    solver, u = found[-1][:2]
    name = f"poisson_{args.problem}_{args.n}"
    tables = [
        _comparison(grids, [_values(args, one[0], one[1]) for one in found], exact),
        _speed(grids, found),
    ]
    pictures: dict[str, Callable[[], Figure]] = {"field": lambda: _figure(args, solver, u)}
    report(args, name, _TITLES[args.problem], tables, pictures=pictures)
    path = args.output / f"{name}.npz"
    np.savez(path, u=u, x=solver.x, y=solver.y)
    print(f"wrote {path}", file=sys.stderr)
    return 0


def duct_series(aspect: float) -> Values:
    r"""Return u in the middle and its mean, in a duct of width 1 and height `aspect`.

    With :math:`m = (2 k + 1) \pi` and the height a,

    .. math:: u(x, y) = \frac{x (1 - x)}{2} - 4 \sum_k \frac{\sin m x}{m^3}
        \frac{\cosh m (y - a / 2)}{\cosh m a / 2} .
    """
    m = (2 * np.arange(_TERMS) + 1) * np.pi
    # 1 / cosh, without overflow
    ratios = 2 * np.exp(-m * aspect / 2) / (1 + np.exp(-m * aspect))
    signs = (-1.0) ** np.arange(_TERMS)
    middle = 1 / 8 - 4 * float((signs * ratios / m**3).sum())
    mean = 1 / 12 - 16 / aspect * float((np.tanh(m * aspect / 2) / m**5).sum())
    return Values(middle, mean)


def pipe_series(aspect: float) -> Values:
    r"""Return u in the middle and its mean, in a cylinder of radius 1 and length `aspect`.

    With the zeros j of :math:`J_0` and the length a,

    .. math:: u(r, z) = \frac{1 - r^2}{4} - \sum_j \frac{2 J_0(j r)}{j^3 J_1(j)}
        \frac{\cosh j (z - a / 2)}{\cosh j a / 2} .
    """
    special: Any = extra_module("scipy.special", "poisson")
    j = special.jn_zeros(0, _TERMS)
    ratios = 2 * np.exp(-j * aspect / 2) / (1 + np.exp(-j * aspect))
    middle = 1 / 4 - float((2 * ratios / (j**3 * special.j1(j))).sum())
    mean = 1 / 8 - 8 / aspect * float((np.tanh(j * aspect / 2) / j**5).sum())
    return Values(middle, mean)


def _solver(args: argparse.Namespace, n: int) -> FastPoisson:
    """Return a solver on n cells between the walls along each axis."""
    is_pipe = args.problem == "pipe"
    x = _stretched(n, args.stretching, from_middle=is_pipe)
    y = args.aspect * _stretched(n, args.stretching, from_middle=False)
    return FastPoisson(
        (n + 1, n + 1),
        (x, y),
        boundary=0.0,
        geometry="cylinder" if is_pipe else "cartesian",
        threads=args.threads,
    )


def _stretched(n: int, stretching: float, *, from_middle: bool) -> Array:
    """Return nodes from 0 to 1, finer at both ends or, from the middle, at 1."""
    s = np.linspace(0.0 if from_middle else -1.0, 1.0, n + 1)
    if stretching:
        s = np.tanh(stretching * s) / np.tanh(stretching)
    return s if from_middle else (1 + s) / 2


def _values(args: argparse.Namespace, solver: FastPoisson, u: Array) -> Values:
    """Return u in the middle, which is a node, and the mean by the trapezoidal rule."""
    n = len(solver.x) - 1
    weights = solver.x if args.problem == "pipe" else np.ones(n + 1)
    along_y = np.trapezoid(u, solver.y, axis=0) / args.aspect
    mean = np.trapezoid(along_y * weights, solver.x) / np.trapezoid(weights, solver.x)
    return Values(float(u[n // 2, 0 if args.problem == "pipe" else n // 2]), float(mean))


def _comparison(grids: list[int], found: list[Values], exact: Values) -> Table:
    """Return the values on the grids, those of the series, and the orders."""
    names = ("cells", "middle", "error", "order", "mean", "error", "order")
    formats = ("", ".8f", ".1e", ".2f", ".8f", ".1e", ".2f")
    rows = []
    errors = [[abs(a - b) for a, b in zip(one, exact, strict=True)] for one in found]
    for k, (n, values) in enumerate(zip(grids, found, strict=True)):
        cells: list[Any] = [f"{n} x {n}"]
        for which, value in enumerate(values):
            error = errors[k][which]
            is_known = k > 0 and error > 0
            order = float(np.log2(errors[k - 1][which] / error)) if is_known else None
            cells += [value, error, order]
        rows.append(tuple(cells))
    rows.append(("series", exact.middle, None, None, exact.mean, None, None))
    columns = [Column(name, text) for name, text in zip(names, formats, strict=True)]
    return Table("u in the middle, and its mean", columns, rows)


def _speed(grids: list[int], found: list[Any]) -> Table:
    """Return the methods of the axes, and the seconds of the matrices and of one right side."""
    columns = (Column("cells"), Column("methods"), Column("matrices, ms", ".1f"))
    rows = []
    for n, (solver, _, made, solved) in zip(grids, found, strict=True):
        methods = ", ".join(f"{axis}: {method}" for axis, method in solver.methods.items())
        rows.append((f"{n} x {n}", methods, 1e3 * made, 1e3 * solved))
    return Table("Time", (*columns, Column("solve, ms", ".2f")), rows)


def _figure(args: argparse.Namespace, solver: FastPoisson, u: Array) -> "Figure":
    """Return a figure of u."""
    from ..plots._figure import new_figure

    figure = new_figure(5.0, 5.0)
    axes = figure.add_subplot()
    levels = axes.contourf(solver.x, solver.y, u, 20)
    names = ("r", "z") if args.problem == "pipe" else ("x", "y")
    axes.set(xlabel=names[0], ylabel=names[1], aspect="equal")
    figure.colorbar(levels, label="u")
    return figure

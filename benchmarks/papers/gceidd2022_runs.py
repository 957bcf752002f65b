"""The numerical experiments of Foadaddini, Zolfaghari, Mahmoodi Darian and Saadatfar (2022).

Tables 1 to 4 and the curves of Figures 7 to 16. Settings that the paper does not state, or
misprints, are those that reproduce its tables: see the page on GCEIDD.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pysolvers._errors import ConvergenceError
from pysolvers._progress import progress
from pysolvers.papers.gceidd2022 import (
    GCEIDD,
    GRIDS,
    decaying_bump,
    decaying_bump_exact,
    entering_fronts,
    heated_channel,
    published_errors,
    rotating_pulse,
    rotating_pulse_exact,
    table_errors,
)
from pysolvers.transport import ConvectionDiffusion, TransportResult

from .figures import Curves

__all__ = [
    "METHODS",
    "Field",
    "TableEntry",
    "channel_curves",
    "channel_field",
    "courant_curves",
    "front_curves",
    "front_field",
    "pulse_field",
    "strip_curves",
    "table_entries",
]

METHODS: dict[str, dict[str, str]] = {
    "CFD": {"scheme": "cfd"},
    "CP": {"scheme": "cp"},
    "MU-L": {"scheme": "mu", "predictor": "newest"},
    "MU-P": {"scheme": "mu", "predictor": "printed"},
}
"""The schemes, MU with its newest and its printed predictor: options of `GCEIDD` by name."""

_PRINTED_DIFFUSION = (0.001, 0.05, 0.005, 0.01)
_PLAIN = {"upwind": "plain", "foot": "extrapolate"}
_NORMS = ("linf", "l2")

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TableEntry:
    """An error of a table: the published value and those of this package.

    Parameters
    ----------
    table, nodes : int
        Number of the table, and nodes per side.
    method : str
        One of `METHODS`.
    norm : {'linf', 'l2'}
        Norm of the error.
    published : float
        The paper's number, one for both predictors of MU.
    printed : float
        With the settings that the paper states: modified upwind differences, and Table 1 with
        diffusion 0.001.
    found : float
        With the settings that reproduce the tables.
    """

    table: int
    nodes: int
    method: str
    norm: str
    published: float
    printed: float
    found: float


def table_entries(
    table: int,
    grids: Iterable[int] = GRIDS,
    *,
    device: str | None = None,
) -> list[TableEntry]:
    """Repeat a table."""
    published = published_errors(table)
    errors = {}
    for name, nodes in progress([(name, n) for name in METHODS for n in grids], f"table {table}"):
        options = METHODS[name]
        as_printed = {
            "late": False,
            "diffusion": _PRINTED_DIFFUSION[table - 1],
            "upwind": "modified",
            "predictor": "printed",
        }
        printed = _errors(table, nodes, device, **(options | as_printed))
        errors[name, nodes] = printed, _errors(table, nodes, device, **options)
    entries = []
    for (name, nodes), (printed, found) in errors.items():
        for k, norm in enumerate(_NORMS):
            said = published[METHODS[name]["scheme"], norm][GRIDS.index(nodes)]
            entries.append(TableEntry(table, nodes, name, norm, said, printed[k], found[k]))
    return sorted(entries, key=lambda e: (list(METHODS).index(e.method), e.norm, e.nodes))


def _errors(table: int, nodes: int, device: str | None, **options: Any) -> tuple[float, float]:
    """Return the errors of an entry, infinite if the computation diverges."""
    try:
        return table_errors(table, nodes, device=device, **options)
    except ConvergenceError:
        return np.inf, np.inf


_Example = tuple[ConvectionDiffusion, Callable[..., Any], float]


def _example(number: int) -> _Example:
    if number == 1:
        return decaying_bump(0.001), decaying_bump_exact, 1.0
    diffusion = 0.005
    exact = partial(rotating_pulse_exact, diffusion=diffusion)
    return rotating_pulse(diffusion), exact, float(np.pi / 2)


def _l2(number: int, cells: int, courant: float, name: str, strips: int, device: Any) -> float:
    """Return the l2 error of an example, infinite if the computation diverges."""
    problem, exact, end = _example(number)
    speed = 1.0 if number == 1 else 4.0
    dt = courant / cells / speed
    options = {**_PLAIN, **METHODS[name], "strips": strips, "device": device}
    try:
        solver = GCEIDD(problem, shape=(cells + 1, cells + 1), dt=dt, **options).step(
            int(end / dt + 1e-9)
        )
    except ConvergenceError:
        return np.inf
    error = solver.result().errors(exact)[1]
    return error if error < 1 else np.inf


def strip_curves(
    number: int,
    strips: Iterable[int] = (1, 2, 4, 8, 16, 32, 64),
    *,
    cells: int = 256,
    courant: float = 1.0,
    device: str | None = None,
) -> Curves:
    """Return the errors over the number of strips, as in Figures 7 and 9."""
    title = f"Figure {7 if number == 1 else 9}: example {number}, CFL {courant:g}, {cells}² cells"
    curves = Curves(title, "strips", "l2 error")
    for name in METHODS:
        for count in strips:
            curves.add(name, count, _l2(number, cells, courant, name, count, device))
    return curves


def courant_curves(
    number: int,
    courant: Iterable[float] = (1, 2, 3, 4, 6, 8),
    *,
    cells: int = 256,
    strips: int = 32,
    device: str | None = None,
) -> Curves:
    """Return the errors over the Courant number, as in Figures 8 and 10."""
    title = f"Figure {8 if number == 1 else 10}: example {number}, {strips} strips, {cells}² cells"
    curves = Curves(title, "CFL", "l2 error")
    for name in METHODS:
        for value in courant:
            curves.add(name, value, _l2(number, cells, value, name, strips, device))
    return curves


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A field of a method.

    Parameters
    ----------
    name : str
        The method, ``'reference'`` or ``'exact'``.
    x, y : ndarray
        Coordinates of the nodes.
    u : ndarray, shape (ny, nx)
        Values.
    """

    name: str
    x: Array
    y: Array
    u: Array


def front_curves(
    courant: float,
    *,
    cells: int = 256,
    strips: int = 32,
    reference: Curves | None = None,
    device: str | None = None,
) -> Curves:
    """Return example 3 at x = 0.5 and t = 0.2, as in Figure 12.

    Parameters
    ----------
    courant : float
        Courant number.
    cells, strips : int
        Numbers along each axis.
    reference : Curves, optional
        Curves that have the line ``'reference'``, which is computed otherwise.
    device : str, optional
        Device of the solver.
    """
    curves = Curves(f"Figure 12: example 3, x = 0.5, t = 0.2, CFL {courant:g}", "y", "u")
    if reference is None:
        field = front_field("reference", cells=cells, device=device)
        curves.lines["reference"] = _section(field)
    else:
        curves.lines["reference"] = reference.lines["reference"]
    for name in METHODS:
        field = front_field(name, courant, cells=cells, strips=strips, device=device)
        curves.lines[name] = _section(field)
    return curves


def _section(field: Field) -> tuple[list[float], list[float]]:
    return field.y.tolist(), field.u[:, len(field.x) // 2].tolist()


def pulse_field(
    name: str, *, cells: int = 256, strips: int = 32, device: str | None = None
) -> Field:
    """Return example 2 after a quarter of a turn, CFL 1, as in Figure 11; also ``'exact'``."""
    problem, exact, end = _example(2)
    method = "CFD" if name == "exact" else name
    solver = _solver(problem, method, (cells, cells), 1 / (4 * cells), strips, device)
    if name == "exact":
        start = solver.result()
        u = exact(start.x[None, :], start.y[:, None], end)
        return Field(name, start.x, start.y, u)
    return _field(name, solver.run(end))


def front_field(
    name: str,
    courant: float = 1.0,
    *,
    cells: int = 256,
    strips: int = 32,
    device: str | None = None,
) -> Field:
    """Return example 3 at t = 0.2, as in Figures 12 and 13; also ``'reference'``.

    The reference is central differences without strips on 4 times as many cells, CFL 1/4.
    """
    if name == "reference":
        cells, courant, strips = 4 * cells, 0.25, 1
    solver = _solver(entering_fronts(), name, (cells, cells), courant / cells, strips, device)
    return _field(name, solver.run(0.2))


def channel_field(
    name: str,
    speed: float,
    *,
    cells: tuple[int, int] = (256, 64),
    strips: tuple[int, int] = (32, 8),
    device: str | None = None,
) -> Field:
    """Return example 4 at t = 3, CFL 1, as in Figure 15; also ``'reference'``."""
    solver = _channel(name, speed, 1.0, cells, strips, device)
    return _field(name, solver.run(3.0))


def channel_curves(
    courant: float = 1.0,
    *,
    cells: tuple[int, int] = (256, 64),
    strips: tuple[int, int] = (32, 8),
    speed: float = 250.0,
    device: str | None = None,
) -> Curves:
    """Return the temperature of example 4 at A = (0.175, 0) over time, as in Figure 16.

    Parameters
    ----------
    courant : float, default: 1
        Courant number.
    cells, strips : (int, int)
        Numbers along x and y.
    speed : float, default: 250
        V of the profile.
    device : str, optional
        Device of the solver.
    """
    curves = Curves(f"Figure 16: example 4, A = (0.175, 0), CFL {courant:g}", "t", "temperature")
    for name in ("reference", *METHODS):
        solver = _channel(name, speed, courant, cells, strips, device)
        curves.add(name, 0.0, float(solver.u[0, 0]))
        for time in _CHANNEL_TIMES:
            result = solver.run(time)
            curves.add(name, time, float(np.interp(0.175, result.x, result.u[0])))
    return curves


_CHANNEL_TIMES = tuple(k / 20 for k in range(1, 61))


def _channel(
    name: str,
    speed: float,
    courant: float,
    cells: tuple[int, int],
    strips: tuple[int, int],
    device: str | None,
) -> GCEIDD:
    """Return the solver of example 4; the reference has twice as many cells and CFL 1/4."""
    if name == "reference":
        cells, courant, strips = (2 * cells[0], 2 * cells[1]), 0.25, (1, 1)
    dt = courant * (0.25 / cells[0]) / (speed * 0.025**2)
    return _solver(heated_channel(speed), name, cells, dt, strips, device)


def _solver(
    problem: ConvectionDiffusion,
    name: str,
    cells: tuple[int, int],
    dt: float,
    strips: int | tuple[int, int],
    device: str | None,
) -> GCEIDD:
    options: dict[str, Any] = {**_PLAIN, **METHODS["CFD" if name == "reference" else name]}
    shape = cells[1] + 1, cells[0] + 1
    return GCEIDD(
        problem, shape=shape, dt=dt, strips=strips, device=device, bound=np.inf, **options
    )


def _field(name: str, result: TransportResult) -> Field:
    return Field(name, result.x, result.y, result.u)

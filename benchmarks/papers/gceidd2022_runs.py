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
from pysolvers.transport import GCEIDD, ConvectionDiffusion

from .figures import Curves

__all__ = [
    "METHODS",
    "TableEntry",
    "channel_curves",
    "courant_curves",
    "front_curves",
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


def front_curves(
    courant: float, *, cells: int = 256, strips: int = 32, device: str | None = None
) -> Curves:
    """Return example 3 along the diagonal at t = 48/256, as in Figures 12 to 14."""
    curves = Curves(f"Figures 12-14: example 3, CFL {courant:g}", "x = y", "u")
    for name in METHODS:
        options: dict[str, Any] = {**_PLAIN, **METHODS[name], "bound": np.inf}
        solver = GCEIDD(
            entering_fronts(),
            shape=(cells + 1, cells + 1),
            dt=courant / cells,
            strips=strips,
            device=device,
            **options,
        )
        u = solver.step(round(48 * cells / 256 / courant)).u.diagonal()
        for i, value in enumerate(np.clip(u, -1.0, 2.0)):
            curves.add(name, i / cells, value)
    return curves


def channel_curves(
    *,
    cells: tuple[int, int] = (512, 128),
    strips: tuple[int, int] = (64, 16),
    courant: float = 1.0,
    speed: float = 250.0,
    device: str | None = None,
) -> Curves:
    """Return the temperature of example 4 on the axis of the channel, as in Figures 15 and 16."""
    curves = Curves(f"Figures 15-16: example 4, CFL {courant:g}", "x", "temperature at the wall")
    dt = courant * (0.25 / cells[0]) / (speed * 0.025**2)
    for name in METHODS:
        options: dict[str, Any] = {**_PLAIN, **METHODS[name]}
        solver = GCEIDD(
            heated_channel(speed),
            shape=(cells[1] + 1, cells[0] + 1),
            dt=dt,
            strips=strips,
            device=device,
            **options,
        )
        result = solver.step(round(3 / dt)).result()
        for x, value in zip(result.x, result.u[0], strict=True):
            curves.add(name, x, value)
    return curves

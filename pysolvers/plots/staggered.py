"""Figures of the cavity on a staggered grid."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._published import published_profiles
from ._figure import add_scale, levels_of, show_figure
from .cavity import Tables, draw_profiles, draw_streamlines, draw_vorticity, square
from .film import make_film

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..flow.staggered._result import StaggeredResult

__all__ = ["draw_staggered", "film", "plot", "plot_pressure", "plot_steps"]

_LEVELS = 16
_SPEEDS = np.linspace(0, 1, 21)


def plot(
    result: "StaggeredResult",
    ax: "Axes | None" = None,
    *,
    tables: Tables = None,
    show: bool | None = None,
    **options: Any,
) -> Any:
    """Draw a result and show it; see `StaggeredResult.plot`."""

    def draw_on(axes: "Axes") -> None:
        """Draw vorticity and streamlines only; a fluid at rest has no vortex."""
        draw_vorticity(axes, result.x_faces, result.omega, **_vorticity(result) | options)
        if result.psi.any():
            vortex = result.primary_vortex()
            draw_streamlines(axes, result.x_faces, result.psi, vortex, colours=("k", "k"))
        square(axes, f"vorticity and streamlines, t = {result.time:.4g}")

    draw = partial(draw_staggered, result=result, tables=tables, **options)
    return show_figure(ax, draw_on, (14, 8), draw, show)


def draw_staggered(
    figure: "Figure", result: "StaggeredResult", tables: Tables = None, **options: Any
) -> Any:
    """Draw streamlines, vorticity, pressure, profiles, changes and steps on an empty figure."""
    axes = figure.subplots(2, 3)
    faces = result.x_faces
    if result.psi.any():
        draw_streamlines(axes[0, 0], faces, result.psi, result.primary_vortex())
    square(axes[0, 0], "streamlines" if result.psi.any() else "streamlines: the fluid is at rest")
    draw_vorticity(axes[0, 1], faces, result.omega, **_vorticity(result) | options)
    plot_pressure(axes[0, 2], result)
    if tables is None and result.lid_velocity == 1:
        published = published_profiles(result.reynolds)
        tables = {f"{name}, steady": columns for name, columns in published.items()}
    u, v = result.centreline_u(faces), result.centreline_v(faces)
    draw_profiles(axes[1, 0], faces, u, v, tables, _unit(result))
    plot_steps(axes[1, 1], axes[1, 2], result)
    figure.suptitle(
        f"Cavity on a staggered grid, Re = {result.reynolds:g}, "
        f"{result.n} × {result.n} cells, t = {result.time:.4g} side / {_unit(result)}"
    )
    return axes


def _unit(result: "StaggeredResult") -> str:
    """Return the name of the speed of the Reynolds number."""
    return "lid speed" if abs(result.lid_velocity) == 1 else "U"


def _vorticity(result: "StaggeredResult") -> dict[str, Any]:
    """Return options of `draw_vorticity`: colours for a lid of another speed end elsewhere."""
    if abs(result.lid_velocity) == 1:
        return {}
    omega = np.sort(result.omega, axis=None)
    skipped = omega.size // 50
    levels = levels_of(omega[skipped : omega.size - skipped], _LEVELS)
    return {"unit": _unit(result), "levels": levels}


def plot_pressure(axes: "Axes", result: "StaggeredResult") -> None:
    """Draw the pressure, with a colour bar that covers 96 % of the cells.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : StaggeredResult
        The result.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from pysolvers import StaggeredCavity
    >>> from pysolvers.plots.staggered import plot_pressure
    >>> result = StaggeredCavity(reynolds=100, n=16).run(until=0.5)
    >>> axes = Figure().add_subplot()
    >>> plot_pressure(axes, result)
    """
    values = np.sort(result.p, axis=None)
    skipped = values.size // 50  # the pressure is singular in both corners below the lid
    levels = levels_of(values[skipped : values.size - skipped], _LEVELS)
    filled = axes.contourf(result.x, result.y, result.p, levels=levels, extend="both")
    add_scale(axes, filled, f"pressure (density × {_unit(result)}²)", shrink=0.85)
    square(axes, "pressure")


def plot_steps(change: "Axes", length: "Axes", result: "StaggeredResult") -> None:
    """Draw the change per unit of time, and the length of the steps, over time.

    Parameters
    ----------
    change, length : matplotlib.axes.Axes
        The axes of both.
    result : StaggeredResult
        The result.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from pysolvers import StaggeredCavity
    >>> from pysolvers.plots.staggered import plot_steps
    >>> result = StaggeredCavity(reynolds=100, n=16).run(until=0.5)
    >>> change, length = Figure().subplots(1, 2)
    >>> plot_steps(change, length, result)
    """
    history, unit = result.history, _unit(result)
    change.semilogy(history.time, history.change, "C0")
    change.set(
        xlabel=f"time (side / {unit})",
        ylabel=f"largest change ({unit}² / side)",
        title="change of the velocity per unit of time",
    )
    length.plot(history.time, history.dt, "C2")
    length.set(
        xlabel=f"time (side / {unit})",
        ylabel=f"length of a step (side / {unit})",
        title="length of the steps",
    )
    length.set_ylim(bottom=0)
    for axes in (change, length):
        axes.grid(alpha=0.3)
        if not len(history.time):
            axes.text(0.5, 0.5, "no steps yet", ha="center", transform=axes.transAxes)
            axes.set(xticks=[], yticks=[])
            axes.minorticks_off()


def film(frames: "tuple[StaggeredResult, ...]", **options: Any) -> Any:
    """Return a film of the speed with streamlines; `options` as in `make_film` and `contourf`."""
    label = f"speed ({_unit(frames[0])})" if frames else None
    return make_film(frames, _paint, (5.8, 4.8), label, **options)


def _paint(axes: "Axes", result: "StaggeredResult", **options: Any) -> Any:
    """Draw speed and streamlines: a frame of a film."""
    u = (result.u[:, 1:] + result.u[:, :-1]) / 2
    v = (result.v[1:] + result.v[:-1]) / 2
    options = {
        "levels": _SPEEDS * (abs(result.lid_velocity) or 1.0),
        "cmap": "viridis",
        "extend": "max",
        **options,
    }
    drawn = axes.contourf(result.x, result.y, np.hypot(u, v), **options)
    if result.psi.any():
        levels = result.primary_vortex().psi * np.linspace(0.05, 0.95, 10)
        faces = result.x_faces
        axes.contour(
            faces, faces, result.psi, np.sort(levels), colors="w", linewidths=0.7, linestyles="-"
        )
    square(axes, f"t = {result.time:.3g} side / {_unit(result)}")
    return drawn

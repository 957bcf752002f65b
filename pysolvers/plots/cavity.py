"""Figures of the lid-driven cavity."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._figure import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..flow._result import CavityResult, Vortex

__all__ = ["plot_cavity", "plot_profiles", "plot_residuals", "plot_streamlines", "plot_vorticity"]

Array = NDArray[np.float64]
Tables = Mapping[str, Mapping[str, Any]] | None

# Levels of psi as fractions of its extreme value: equal steps in the main vortex; the corner eddies
# rotate in the opposite direction and are weaker by four to seven orders of magnitude.
_MAIN = np.linspace(0.05, 0.95, 10)
_CORNER = -(10.0 ** np.arange(-7.0, -1.0))

# Levels of omega in units of lid speed over side.
_VORTICITY = np.array([-5, -4, -3, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 4, 5])

_MARKERS = "osD^v"


def plot_cavity(result: "CavityResult", tables: Tables = None) -> "Figure":
    """Draw streamlines, vorticity, centre-line profiles and residuals on one figure.

    Parameters
    ----------
    result : CavityResult
        The result.
    tables : mapping, optional
        Published profiles by name, with the columns ``y`` and ``u``, ``x`` and ``v``.

    Returns
    -------
    figure : matplotlib.figure.Figure
        A new figure, independent of pyplot.
    """
    figure = new_figure(10, 9)
    axes = figure.subplots(2, 2)
    plot_streamlines(axes[0, 0], result)
    plot_vorticity(axes[0, 1], result)
    plot_profiles(axes[1, 0], result, tables)
    plot_residuals(axes[1, 1], result)
    figure.suptitle(
        f"Lid-driven cavity, Re = {result.reynolds:g}, {result.n} × {result.n} nodes, "
        f"{result.wall} walls"
    )
    return figure


def plot_streamlines(axes: "Axes", result: "CavityResult") -> None:
    """Draw contours of psi, the corner eddies in another colour.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : CavityResult
        The result.
    """
    draw_streamlines(axes, result.x, result.psi, result.primary_vortex())


def plot_vorticity(axes: "Axes", result: "CavityResult") -> None:
    """Draw contours of omega.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : CavityResult
        The result.
    """
    draw_vorticity(axes, result.x, result.omega / abs(result.lid_velocity))


def plot_profiles(axes: "Axes", result: "CavityResult", tables: Tables = None) -> None:
    """Draw u on x = 1/2 and v on y = 1/2, with published values as marks.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : CavityResult
        The result.
    tables : mapping, optional
        As in `plot_cavity`.
    """
    speed = abs(result.lid_velocity)
    u, v = result.centreline_u() / speed, result.centreline_v() / speed
    draw_profiles(axes, result.x, u, v, tables)


def plot_residuals(axes: "Axes", result: "CavityResult") -> None:
    """Draw the residuals of both equations and the pseudo-time step over iterations.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : CavityResult
        The result.
    """
    history = result.history
    axes.semilogy(history.iteration, history.omega, "C0", label="vorticity equation")
    axes.semilogy(history.iteration, history.psi, "C1", label="streamfunction equation")
    if np.isfinite(history.step).any():
        axes.semilogy(history.iteration, history.step, "C2:", label="pseudo-time step")
    axes.set(xlabel="iterations", title="root mean square residuals")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def draw_streamlines(axes: "Axes", places: Array, psi: Array, vortex: "Vortex") -> None:
    """Draw contours of psi at nodes with these coordinates along both axes."""
    share = psi / vortex.psi
    axes.contour(places, places, share, levels=_MAIN, colors="C0", linewidths=1)
    lowest = float(share.min())
    levels = np.sort(_CORNER[lowest < _CORNER])
    if len(levels):
        axes.contour(
            places, places, share, levels=levels, colors="C1", linewidths=0.8, linestyles="-"
        )
    axes.plot(vortex.x, vortex.y, "+", color="C0")
    square(axes, "streamlines")


def draw_vorticity(axes: "Axes", places: Array, omega: Array) -> None:
    """Draw contours of omega, in units of lid speed over side."""
    lines = axes.contour(
        places,
        places,
        omega,
        levels=_VORTICITY,
        cmap="viridis",
        linewidths=1,
        linestyles="-",
    )
    axes.clabel(lines, fontsize=7)
    square(axes, "vorticity (lid speed / side)")


def draw_profiles(axes: "Axes", places: Array, u: Array, v: Array, tables: Tables) -> None:
    """Draw u on x = 1/2 and v on y = 1/2 in units of the lid speed."""
    axes.plot(places, u, "C0", label="u on x = 1/2, over y")
    axes.plot(places, v, "C1", label="v on y = 1/2, over x")
    for marker, (name, columns) in zip(_MARKERS, (tables or {}).items(), strict=False):
        style: dict[str, Any] = {"marker": marker, "ls": "", "ms": 4.5, "mfc": "none"}
        axes.plot(columns["y"], columns["u"], color="C0", label=name, **style)
        axes.plot(columns["x"], columns["v"], color="C1", **style)
    axes.set(xlabel="place / side", ylabel="velocity / lid speed", title="centre lines")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def square(axes: "Axes", title: str) -> None:
    """Show the unit square with this title."""
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="x", ylabel="y", title=title)

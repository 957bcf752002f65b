"""Figures of the flow around a square cylinder."""

import os
from collections.abc import Iterable
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np

from .._atomic import atomic_write
from .._extras import extra_module
from ._figure import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..flow import CylinderResult

__all__ = [
    "plot_cylinder",
    "plot_histories",
    "plot_profiles",
    "plot_streamlines",
    "plot_vorticity",
    "write_film",
]

_BEFORE, _BEHIND = 4.0, 20.0  # part of the channel that is drawn, from the centre
_STATIONS = (0, 4, 8)  # profiles over y, at these distances behind the centre
_LARGEST = 3.0  # of the vorticity in the colour scale
_NEAR_ZERO = 0.12  # psi between the lines of the wake


def plot_cylinder(result: "CylinderResult") -> "Figure":
    """Draw streamlines, vorticity, velocities, and histories of forces or of the change.

    Parameters
    ----------
    result : CylinderResult
        The result.

    Returns
    -------
    figure : matplotlib.figure.Figure
        The figure.
    """
    figure = new_figure(11, 9)
    grid = figure.add_gridspec(3, 2)
    plot_streamlines(figure.add_subplot(grid[0, :]), result)
    plot_vorticity(figure.add_subplot(grid[1, :]), result)
    plot_profiles(figure.add_subplot(grid[2, 0]), result)
    plot_histories(figure.add_subplot(grid[2, 1]), result)
    state = "steady" if result.steady else f"t = {result.time:g} D/Umax"
    figure.suptitle(f"Square cylinder, Re = {result.reynolds:g}, {state}")
    return figure


def plot_streamlines(axes: "Axes", result: "CylinderResult") -> None:
    """Draw contours of psi, in the wake closer ones.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : CylinderResult
        The result.
    """
    place = result.x - result.grid.centre
    wall = float(result.psi[-1, 0])
    main = np.linspace(-wall, wall, 21)
    middle = float(result.psi[result.grid.body][0, 0])
    near = middle + np.linspace(-_NEAR_ZERO, _NEAR_ZERO, 5)
    for levels, colour in ((main, "C0"), (near, "C1")):
        axes.contour(
            place,
            result.y,
            result.psi,
            levels=levels,
            colors=colour,
            linewidths=0.7,
            linestyles="-",
        )
    _body(axes, result, "streamlines")


def plot_vorticity(axes: "Axes", result: "CylinderResult") -> None:
    """Draw the vorticity in colours, from -3 to 3 Umax/D.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : CylinderResult
        The result.
    """
    levels = np.linspace(-_LARGEST, _LARGEST, 25)
    place = result.x - result.grid.centre
    filled = axes.contourf(
        place, result.y, result.omega, levels=levels, cmap="RdBu_r", extend="both"
    )
    bar = axes.figure.colorbar(filled, ax=axes, ticks=[-3, -2, -1, 0, 1, 2, 3], fraction=0.02)
    bar.set_label("vorticity (Umax / D)")
    _body(axes, result, "vorticity")


def plot_profiles(axes: "Axes", result: "CylinderResult") -> None:
    """Draw u over y at 0, 4 and 8 sides behind the centre.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : CylinderResult
        The result.
    """
    for k, distance in enumerate(_STATIONS):
        i = int(np.argmin(np.abs(result.x - result.grid.centre - distance)))
        axes.plot(result.u[:, i], result.y, f"C{k}", label=f"u at x = {distance} D")
        axes.plot(result.v[:, i], result.y, f"C{k}--", label=f"v at x = {distance} D")
    axes.set(xlabel="velocity (Umax)", ylabel="y (D)", title="profiles")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))


def plot_histories(axes: "Axes", result: "CylinderResult") -> None:
    """Draw drag and lift over time; for a steady flow the change of psi over the steps.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : CylinderResult
        The result.
    """
    history = result.history
    if result.steady:
        axes.semilogy(np.arange(1, len(history.change) + 1), history.change)
        axes.set(xlabel="steps", ylabel="largest change of psi (Umax^2)", title="convergence")
    else:
        axes.plot(history.time, history.drag, "C0", label="drag coefficient Cd")
        axes.plot(history.time, history.lift, "C1", label="lift coefficient Cl")
        axes.plot(
            history.probe_time, history.v[:, 0], "C2", lw=0.8, label="v at 4 D behind the centre"
        )
        started = history.drag[history.time > 0.1 * result.time]
        top = 1.3 * float(np.max(started, initial=1.0))
        axes.set(xlabel="time (D / Umax)", ylim=(-1.2, top), title="histories")
        axes.legend(fontsize=7)
    axes.grid(alpha=0.3)


def write_film(
    path: "str | os.PathLike[str]", results: Iterable["CylinderResult"], rate: float
) -> int:
    """Write the vorticity of several results as the frames of an animated GIF.

    Parameters
    ----------
    path : path-like
        The file. It is written completely or not at all.
    results : iterable of CylinderResult
        One result for each frame; they are not kept.
    rate : float
        Frames per second.

    Returns
    -------
    count : int
        Number of frames.
    """
    image: Any = extra_module("PIL.Image", "plot")
    frames = []
    for result in results:
        figure = new_figure(9, 2.8)
        axes = figure.add_subplot()
        plot_vorticity(axes, result)
        axes.set_title(f"vorticity, Re = {result.reynolds:g}, t = {result.time:.2f} D/Umax")
        picture = BytesIO()
        figure.savefig(picture, format="png", dpi=100)
        # One palette of colours for each frame, without dithering, keeps the file small.
        frames.append(image.open(picture).convert("RGB").quantize(128, dither=0))
    with atomic_write(path) as stream:
        frames[0].save(
            stream,
            format="GIF",
            save_all=True,
            append_images=frames[1:],
            duration=round(1000 / rate),
            loop=0,
        )
    return len(frames)


def _body(axes: "Axes", result: "CylinderResult", title: str) -> None:
    axes.fill([-0.5, 0.5, 0.5, -0.5], [-0.5, -0.5, 0.5, 0.5], color="0.3", zorder=3)
    centre = result.grid.centre
    axes.set(
        xlim=(max(-_BEFORE, -centre), min(_BEHIND, result.length - centre)),
        ylim=(-4, 4),
        aspect="equal",
        xlabel="x (D), from the centre of the cylinder",
        ylabel="y (D)",
        title=title,
    )

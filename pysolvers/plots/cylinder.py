"""Figures of the flow around a square cylinder."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .._extras import extra_module
from ._figure import add_note, add_scale, new_figure, show_figure
from .film import make_film

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..flow import CylinderResult

__all__ = [
    "SCALE",
    "draw_cylinder",
    "film",
    "paint_vorticity",
    "plot",
    "plot_histories",
    "plot_profiles",
    "plot_streamlines",
    "plot_vorticity",
]

_BEFORE, _BEHIND = 4.0, 20.0  # part of the channel that is drawn, from the centre
_STATIONS = (0, 4, 8)  # profiles over y, at these distances behind the centre
_LARGEST = 3.0  # of the vorticity in the colour scale
_CLOSED = 4  # levels of closed streamlines between the cylinder's psi and its largest difference
_SIZE = 11, 10  # inches
SCALE = "vorticity (Umax / D)"
"""Label of the colour scale."""


def plot(
    result: "CylinderResult",
    ax: "Axes | None" = None,
    *,
    show: bool | None = None,
    **options: Any,
) -> Any:
    """Draw a result and show it; see `CylinderResult.plot`."""

    def draw(figure: "Figure") -> Any:
        """Draw all parts and return their axes, without colour bars."""
        draw_cylinder(result, figure, **options)
        return np.array([axes for axes in figure.axes if axes.get_title()])

    return show_figure(ax, partial(plot_vorticity, result=result, **options), _SIZE, draw, show)


def draw_cylinder(
    result: "CylinderResult", figure: "Figure | None" = None, *, note: str = "", **options: Any
) -> "Figure":
    """Draw streamlines, vorticity, velocities, and histories on an empty figure.

    `note` stands below them: the error of the grid, for example.
    """
    figure = new_figure(*_SIZE) if figure is None else figure
    grid = figure.add_gridspec(3, 2, height_ratios=(1.2, 1.2, 1))
    upper, lower = figure.add_subplot(grid[0, :]), figure.add_subplot(grid[1, :])
    plot_streamlines(upper, result)
    add_scale([upper, lower], paint_vorticity(lower, result, **options), SCALE, fraction=0.02)
    lower.set_title("vorticity")
    plot_profiles(figure.add_subplot(grid[2, 0]), result)
    plot_histories(figure.add_subplot(grid[2, 1]), result)
    state = "steady" if result.steady else f"t = {result.time:g} D/Umax"
    figure.suptitle(f"Square cylinder, Re = {result.reynolds:g}, {state}")
    add_note(figure, note)
    return figure


def plot_streamlines(axes: "Axes", result: "CylinderResult") -> None:
    """Draw contours of psi: of the flow, the one of the cylinder, and closed ones in the wake.

    The closed ones have closer levels, from the range of psi in the backflow behind the cylinder.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : CylinderResult
        The result.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from pysolvers import SquareCylinder
    >>> from pysolvers.plots.cylinder import plot_streamlines
    >>> result = SquareCylinder(reynolds=40, shape=(49, 201)).run(until=0.5)
    >>> axes = Figure().add_subplot()
    >>> plot_streamlines(axes, result)
    """
    contourpy = extra_module("contourpy", "plot")
    place = result.x - result.grid.centre
    lines = contourpy.contour_generator(place, result.y, result.psi).lines
    wall = float(result.psi[-1, 0])
    middle = float(result.psi[result.grid.body][0, 0])
    for level in np.linspace(-wall, wall, 22)[1:-1]:
        for line in lines(level):
            axes.plot(*line.T, "C0", lw=0.7)
    for line in lines(middle):
        axes.plot(*line.T, "C1", lw=0.9)
    behind = (result.u < 0) & (place > 0.5) & (place < _BEHIND)
    largest = float(np.abs(result.psi[behind] - middle).max(initial=0.0))
    for share in np.arange(1, _CLOSED + 1) / (_CLOSED + 1):
        for level in (middle - share * largest, middle + share * largest):
            for line in lines(level):
                if (line[0] == line[-1]).all():
                    axes.plot(*line.T, "C1", lw=0.7)
    _body(axes, result, "streamlines")


def plot_vorticity(axes: "Axes", result: "CylinderResult", **options: Any) -> None:
    """Draw the vorticity in colours, from -3 to 3 Umax/D.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : CylinderResult
        The result.
    **options
        Options of `contourf`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from pysolvers import SquareCylinder
    >>> from pysolvers.plots.cylinder import plot_vorticity
    >>> result = SquareCylinder(reynolds=40, shape=(49, 201)).run(until=0.5)
    >>> axes = Figure().add_subplot()
    >>> plot_vorticity(axes, result)
    """
    add_scale(axes, paint_vorticity(axes, result, **options), SCALE, fraction=0.02)
    _body(axes, result, "vorticity")


def film(frames: "tuple[CylinderResult, ...]", **options: Any) -> Any:
    """Return a film of the vorticity; `options` as in `make_film` and `contourf`."""
    return make_film(frames, paint_vorticity, (10, 3.6), SCALE, **options)


def paint_vorticity(axes: "Axes", result: "CylinderResult", **options: Any) -> Any:
    """Draw the vorticity without a colour bar, and return what a colour bar needs."""
    levels = np.linspace(-_LARGEST, _LARGEST, 25)
    options = {"levels": levels, "cmap": "RdBu_r", "extend": "both", **options}
    drawn = axes.contourf(result.x - result.grid.centre, result.y, result.omega, **options)
    _body(axes, result, f"t = {result.time:.4g} D / Umax")
    return drawn


def plot_profiles(axes: "Axes", result: "CylinderResult") -> None:
    """Draw u over y at 0, 4 and 8 sides behind the centre.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : CylinderResult
        The result.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from pysolvers import SquareCylinder
    >>> from pysolvers.plots.cylinder import plot_profiles
    >>> result = SquareCylinder(reynolds=40, shape=(49, 201)).run(until=0.5)
    >>> axes = Figure().add_subplot()
    >>> plot_profiles(axes, result)
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

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from pysolvers import SquareCylinder
    >>> from pysolvers.plots.cylinder import plot_histories
    >>> result = SquareCylinder(reynolds=40, shape=(49, 201)).run(until=0.5)
    >>> axes = Figure().add_subplot()
    >>> plot_histories(axes, result)
    """
    history = result.history
    if result.steady:
        axes.semilogy(np.arange(1, len(history.change) + 1), history.change)
        axes.set(xlabel="steps", ylabel="largest change of psi (Umax²)", title="convergence")
    else:
        axes.plot(history.time, history.drag, "C0", label="drag coefficient Cd")
        axes.plot(history.time, history.lift, "C1", label="lift coefficient Cl")
        axes.plot(history.probe_time, history.v[:, 0], "C2", lw=0.8, label="v at x = 4 D")
        started = history.drag[history.time > 0.1 * result.time]
        top = 1.3 * float(np.max(started, initial=1.0))
        axes.set(
            xlabel="time (D / Umax)",
            ylabel="coefficient, velocity (Umax)",
            ylim=(-1.2, top),
            title="histories",
        )
        axes.legend(fontsize=7, loc="lower center", ncols=3)
    axes.grid(alpha=0.3)


def _body(axes: "Axes", result: "CylinderResult", title: str) -> None:
    """Fill the cylinder and set limits and labels of the flow around it."""
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

"""Figures of the lid-driven cavity."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._published import published_profiles
from .._repr import counted
from ._figure import add_note, add_scale, new_figure, show_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..flow import Vortex
    from ..flow.cavity._result import CavityResult

__all__ = [
    "draw_cavity",
    "plot",
    "plot_profiles",
    "plot_residuals",
    "plot_streamlines",
    "plot_vorticity",
]

Array = NDArray[np.float64]
Tables = Mapping[str, Mapping[str, Any]] | None

# Levels of psi as fractions of its extreme value: equal steps in the main vortex; the corner eddies
# rotate in the opposite direction and are weaker by four to seven orders of magnitude.
_MAIN = np.linspace(0.05, 0.95, 10)
_CORNER = -(10.0 ** np.arange(-7.0, -1.0))

# Levels of omega in units of lid speed over side. omega is not bounded at the corners of the lid:
# the colours end at the value below which the main vortex and the wall layers lie.
_VORTICITY = np.linspace(-6, 6, 25)
_VORTICITY_TICKS = np.arange(-6, 7, 2)

# A profile has the colour of its velocity; each source has its own mark.
_MARKERS = "osD^v"


def plot(
    result: "CavityResult",
    ax: "Axes | None" = None,
    *,
    tables: Tables = None,
    show: bool | None = None,
    **options: Any,
) -> Any:
    """Draw a result and show it; see `CavityResult.plot`."""

    def draw_on(axes: "Axes") -> None:
        """Draw vorticity and streamlines only."""
        plot_vorticity(axes, result, **options)
        vortex = result.primary_vortex()
        draw_streamlines(axes, result.x, result.psi, vortex, colours=("k", "k"))
        square(axes, f"vorticity and streamlines, Re = {result.reynolds:g}")

    def draw(figure: "Figure") -> Any:
        """Draw all four parts and return their axes, two by two."""
        draw_cavity(result, tables, figure, **options)
        return np.array(figure.axes[:4]).reshape(2, 2)

    return show_figure(ax, draw_on, (10, 9), draw, show)


def draw_cavity(
    result: "CavityResult",
    tables: Tables = None,
    figure: "Figure | None" = None,
    *,
    note: str = "",
    **options: Any,
) -> "Figure":
    """Draw streamlines, vorticity, centre-line profiles and residuals on an empty figure.

    `note` stands below them: the error of the grid, for example.
    """
    figure = new_figure(10, 9) if figure is None else figure
    axes = figure.subplots(2, 2)
    plot_streamlines(axes[0, 0], result)
    plot_vorticity(axes[0, 1], result, **options)
    plot_profiles(axes[1, 0], result, tables)
    plot_residuals(axes[1, 1], result)
    figure.suptitle(
        f"Lid-driven cavity, Re = {result.reynolds:g}, {result.n} × {result.n} nodes, "
        f"{result.wall} walls"
    )
    add_note(figure, note)
    return figure


def plot_streamlines(axes: "Axes", result: "CavityResult") -> None:
    """Draw contours of psi, the corner eddies in another colour.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : CavityResult
        The result.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from pysolvers import LidDrivenCavity
    >>> from pysolvers.plots.cavity import plot_streamlines
    >>> result = LidDrivenCavity(reynolds=100, n=33).solve(tol=1e-6)
    >>> axes = Figure().add_subplot()
    >>> plot_streamlines(axes, result)
    """
    draw_streamlines(axes, result.x, result.psi, result.primary_vortex())


def plot_vorticity(axes: "Axes", result: "CavityResult", **options: Any) -> None:
    """Draw omega in colours.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : CavityResult
        The result.
    **options
        Options of `contourf`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from pysolvers import LidDrivenCavity
    >>> from pysolvers.plots.cavity import plot_vorticity
    >>> result = LidDrivenCavity(reynolds=100, n=33).solve(tol=1e-6)
    >>> axes = Figure().add_subplot()
    >>> plot_vorticity(axes, result)
    """
    draw_vorticity(axes, result.x, result.omega / abs(result.lid_velocity), **options)


def plot_profiles(axes: "Axes", result: "CavityResult", tables: Tables = None) -> None:
    """Draw u on x = 1/2 and v on y = 1/2, with published values as marks.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : CavityResult
        The result.
    tables : mapping, optional
        As in `CavityResult.plot`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from pysolvers import LidDrivenCavity
    >>> from pysolvers.plots.cavity import plot_profiles
    >>> result = LidDrivenCavity(reynolds=100, n=33).solve(tol=1e-6)
    >>> axes = Figure().add_subplot()
    >>> plot_profiles(axes, result)
    """
    speed = abs(result.lid_velocity)
    u, v = result.centreline_u() / speed, result.centreline_v() / speed
    if tables is None:
        tables = published_profiles(result.reynolds) if result.lid_velocity > 0 else {}
    draw_profiles(axes, result.x, u, v, tables)


def plot_residuals(axes: "Axes", result: "CavityResult") -> None:
    """Draw the residuals of both equations and, on an axis of its own, the pseudo-time step.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : CavityResult
        The result.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from pysolvers import LidDrivenCavity
    >>> from pysolvers.plots.cavity import plot_residuals
    >>> result = LidDrivenCavity(reynolds=100, n=33).solve(tol=1e-6)
    >>> axes = Figure().add_subplot()
    >>> plot_residuals(axes, result)
    """
    history = result.history
    lines = axes.semilogy(history.iteration, history.omega, "C0", label="vorticity equation")
    lines += axes.semilogy(history.iteration, history.psi, "C1", label="streamfunction equation")
    axes.set(xlabel="iterations", ylabel="root mean square residual", title="convergence")
    axes.grid(alpha=0.3)
    if np.isfinite(history.pseudo_dt).any():
        right = axes.twinx()
        lines += right.plot(history.iteration, history.pseudo_dt, "C2:", label="pseudo-time step")
        right.set_ylabel("pseudo-time step (side / lid speed)", color="C2")
        right.tick_params(axis="y", colors="C2")
        right.set_ylim(0, 1.4 * float(np.nanmax(history.pseudo_dt)))  # room for the legend
    axes.legend(handles=lines, fontsize=8, loc="upper right")


def draw_streamlines(
    axes: "Axes",
    places: Array,
    psi: Array,
    vortex: "Vortex",
    colours: tuple[str, str] = ("C0", "C1"),
) -> None:
    """Draw contours of psi at nodes with these coordinates along both axes."""
    share = psi / vortex.psi
    style: dict[str, Any] = {"linestyles": "-"}
    axes.contour(places, places, share, levels=_MAIN, colors=colours[0], linewidths=1, **style)
    lowest = float(share.min())
    levels = np.sort(_CORNER[lowest < _CORNER])
    if len(levels):
        axes.contour(
            places, places, share, levels=levels, colors=colours[1], linewidths=0.8, **style
        )
    axes.plot(vortex.x, vortex.y, "+", color=colours[0])
    square(axes, "streamlines")


def draw_vorticity(
    axes: "Axes", places: Array, omega: Array, unit: str = "lid speed", **options: Any
) -> None:
    """Draw omega, in units of a speed over side, in colours."""
    options = {"levels": _VORTICITY, "cmap": "RdBu_r", "extend": "both", **options}
    drawn = axes.contourf(places, places, omega, **options)
    ticks = {"ticks": _VORTICITY_TICKS} if options["levels"] is _VORTICITY else {}
    add_scale(axes, drawn, f"vorticity ({unit} / side)", shrink=0.85, **ticks)
    square(axes, "vorticity")


def draw_profiles(
    axes: "Axes", places: Array, u: Array, v: Array, tables: Tables, unit: str = "lid speed"
) -> None:
    """Draw u on x = 1/2 and v on y = 1/2 in units of a speed."""
    axes.plot(places, u, "C0", label="u on x = 1/2, over y")
    axes.plot(places, v, "C1", label="v on y = 1/2, over x")
    for marker, (name, columns) in zip(_MARKERS, (tables or {}).items(), strict=False):
        style: dict[str, Any] = {"marker": marker, "ls": "", "ms": 4.5, "mfc": "none"}
        axes.plot(columns["y"], columns["u"], color="C0", **style)
        axes.plot(columns["x"], columns["v"], color="C1", **style)
        omitted = int(sum(np.isnan(columns[velocity]).sum() for velocity in "uv"))
        if omitted:
            name += f", {counted(omitted, 'value')} left out"
        axes.plot([], [], color="0.3", label=name, **style)
    axes.set(
        xlabel="x or y (side of the cavity)", ylabel=f"velocity ({unit})", title="centre lines"
    )
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)


def square(axes: "Axes", title: str) -> None:
    """Show the unit square with this title."""
    axes.set(
        xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="x (side)", ylabel="y (side)", title=title
    )

"""Figures of the cavity on a staggered grid."""

from typing import TYPE_CHECKING

from ._figure import new_figure
from .cavity import Tables, draw_profiles, draw_streamlines, draw_vorticity, square

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..flow._staggered_result import StaggeredResult

__all__ = ["plot_pressure", "plot_staggered", "plot_steps"]

_LEVELS = 16


def plot_staggered(result: "StaggeredResult", tables: Tables = None) -> "Figure":
    """Draw streamlines, vorticity, pressure, centre-line profiles, changes and steps.

    Parameters
    ----------
    result : StaggeredResult
        The result.
    tables : mapping, optional
        Published profiles by name, with the columns ``y`` and ``u``, ``x`` and ``v``.

    Returns
    -------
    figure : matplotlib.figure.Figure
        A new figure, independent of pyplot.
    """
    figure = new_figure(13, 8)
    axes = figure.subplots(2, 3)
    faces = result.x_faces
    if result.steps:
        draw_streamlines(axes[0, 0], faces, result.psi, result.primary_vortex())
    draw_vorticity(axes[0, 1], faces, result.omega)
    plot_pressure(axes[0, 2], result)
    draw_profiles(axes[1, 0], faces, result.centreline_u(faces), result.centreline_v(faces), tables)
    plot_steps(axes[1, 1], axes[1, 2], result)
    figure.suptitle(
        f"Lid-driven cavity on a staggered grid, Re = {result.reynolds:g}, "
        f"{result.n} × {result.n} cells, t = {result.time:.4g}"
    )
    return figure


def plot_pressure(axes: "Axes", result: "StaggeredResult") -> None:
    """Draw the pressure, with a colour bar that covers 96 % of the cells.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : StaggeredResult
        The result.
    """
    values = sorted(result.p.ravel().tolist())
    skipped = len(values) // 50  # the pressure is singular in both corners below the lid
    low, high = values[skipped], values[-1 - skipped]
    if low == high:
        high = low + 1.0
    levels = [low + (high - low) * k / _LEVELS for k in range(_LEVELS + 1)]
    filled = axes.contourf(result.x, result.y, result.p, levels=levels, extend="both")
    assert axes.figure is not None
    axes.figure.colorbar(filled, ax=axes, label="p / (density × lid speed²)", shrink=0.8)
    square(axes, "pressure")


def plot_steps(change: "Axes", length: "Axes", result: "StaggeredResult") -> None:
    """Draw the change per unit of time, and the length of the steps, over time.

    Parameters
    ----------
    change, length : matplotlib.axes.Axes
        The axes of both.
    result : StaggeredResult
        The result.
    """
    history = result.history
    change.semilogy(history.time, history.change, "C0")
    change.set(
        xlabel="time × lid speed / side",
        ylabel="change × side / lid speed²",
        title="largest change of a velocity per unit of time",
    )
    length.plot(history.time, history.dt, "C2")
    length.set(
        xlabel="time × lid speed / side", ylabel="step × lid speed / side", title="length of a step"
    )
    length.set_ylim(bottom=0)
    for axes in (change, length):
        axes.grid(alpha=0.3)

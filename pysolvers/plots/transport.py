"""Figures of convection and diffusion."""

from typing import TYPE_CHECKING

import numpy as np

from ._figure import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..transport._result import TransportResult

__all__ = ["plot_field", "plot_profiles", "plot_transport"]


def plot_transport(result: "TransportResult") -> "Figure":
    """Draw the solution as a map, and its profiles through the highest point.

    Parameters
    ----------
    result : TransportResult
        The result.

    Returns
    -------
    figure : matplotlib.figure.Figure
        A new figure, independent of pyplot.
    """
    figure = new_figure(10, 4.4)
    left, right = figure.subplots(1, 2)
    plot_field(left, result)
    plot_profiles(right, result)
    nx, ny = len(result.x) - 1, len(result.y) - 1
    figure.suptitle(
        f"{result.scheme}, {nx} × {ny} cells, {result.strips[0]} × {result.strips[1]} strips, "
        f"t = {result.time:g}"
    )
    return figure


def plot_field(axes: "Axes", result: "TransportResult") -> None:
    """Draw u as a map.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : TransportResult
        The result.
    """
    colours = axes.pcolormesh(result.x, result.y, result.u, shading="gouraud", cmap="viridis")
    axes.figure.colorbar(colours, ax=axes, label="u")
    axes.set(xlabel="x", ylabel="y", aspect="equal", title="u")


def plot_profiles(axes: "Axes", result: "TransportResult") -> None:
    """Draw u along x and along y through the node where it is largest.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : TransportResult
        The result.
    """
    j, i = np.unravel_index(int(np.argmax(result.u)), result.u.shape)
    axes.plot(result.x, result.u[j], label=f"along x, y = {result.y[j]:.3g}")
    axes.plot(result.y, result.u[:, i], "--", label=f"along y, x = {result.x[i]:.3g}")
    axes.set(xlabel="x or y", ylabel="u", title="through the highest point")
    axes.legend(frameon=False)

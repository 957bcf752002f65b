"""Figures of heat conduction."""

from typing import TYPE_CHECKING

from ._figure import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..heat._result import HeatResult

__all__ = ["plot_heat", "plot_isotherms"]


def plot_heat(result: "HeatResult") -> "Figure":
    """Draw isotherms on a new figure.

    Parameters
    ----------
    result : HeatResult
        The result; with three axes, the middle plane across z is drawn.

    Returns
    -------
    figure : matplotlib.figure.Figure
        A new figure, independent of pyplot.
    """
    figure = new_figure(6, 5)
    plot_isotherms(figure.subplots(), result)
    figure.suptitle(f"Heat conduction, {result.scheme}, t = {result.time:g}")
    return figure


def plot_isotherms(axes: "Axes", result: "HeatResult") -> None:
    """Draw filled contours of the temperature, with a scale.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : HeatResult
        The result; with three axes, the middle plane across z is drawn.
    """
    plane = result.u if result.u.ndim == 2 else result.u[result.u.shape[0] // 2]
    drawn = axes.contourf(result.x, result.y, plane, levels=20, cmap="inferno")
    axes.figure.colorbar(drawn, ax=axes, label="T")
    axes.set(aspect="equal", xlabel="x", ylabel="y")

"""Figures of red-black relaxations."""

from typing import TYPE_CHECKING

import numpy as np

from ._figure import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..relaxation._result import RelaxationResult

__all__ = ["plot_measures", "plot_relaxation", "plot_solution"]

_PIXELS = 400  # largest number of nodes per side that is drawn; more are not visible


def plot_relaxation(result: "RelaxationResult") -> "Figure":
    """Draw solution and history of a relaxation on one figure.

    Parameters
    ----------
    result : RelaxationResult
        The result.

    Returns
    -------
    figure : matplotlib.figure.Figure
        A new figure, independent of pyplot.
    """
    figure = new_figure(10, 4.5)
    left, right = figure.subplots(1, 2)
    plot_solution(left, result)
    plot_measures(right, result)
    figure.suptitle(f"{result.title}, {result.relaxation}, {result.iterations} iterations")
    return figure


def plot_solution(axes: "Axes", result: "RelaxationResult") -> None:
    """Draw the solution as contours.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : RelaxationResult
        The result.
    """
    step_y, step_x = (-(-n // _PIXELS) for n in result.u.shape)
    x, y = result.x[::step_x], result.y[::step_y]
    u = result.u[::step_y, ::step_x]
    if min(u.shape) > 1 and np.isfinite(u).all():
        axes.figure.colorbar(axes.contourf(x, y, u, levels=20), ax=axes)
    axes.set(xlabel="x", ylabel="y", aspect="equal")


def plot_measures(axes: "Axes", result: "RelaxationResult") -> None:
    """Draw the measured norms over the iterations.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : RelaxationResult
        The result.
    """
    axes.semilogy(result.history.iteration, result.history.measure)
    axes.set(xlabel="iterations", ylabel=f"{result.criterion} ({result.norm} norm)")
    axes.grid(alpha=0.3)

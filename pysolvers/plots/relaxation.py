"""Figures of red-black relaxations."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._figure import add_scale, axis_labels, levels_of, show_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..relaxation._result import RelaxationResult

__all__ = ["draw_relaxation", "plot", "plot_measures", "plot_solution"]

_PIXELS = 400  # largest number of nodes per side that is drawn; more are not visible


def plot(
    result: "RelaxationResult",
    ax: "Axes | None" = None,
    *,
    show: bool | None = None,
    **options: Any,
) -> Any:
    """Draw solution and history of a relaxation and show them; see `RelaxationResult.plot`."""
    draw_on = partial(plot_solution, result=result, **options)
    return show_figure(
        ax, draw_on, (10, 4.5), partial(draw_relaxation, result=result, **options), show
    )


def draw_relaxation(figure: "Figure", result: "RelaxationResult", **options: Any) -> NDArray[Any]:
    """Draw solution and history of a relaxation on an empty figure and return both axes."""
    axes: NDArray[Any] = figure.subplots(1, 2)
    plot_solution(axes[0], result, **options)
    plot_measures(axes[1], result)
    figure.suptitle(f"{result.title}, {result.relaxation}, {result.iterations} iterations")
    return axes


def plot_solution(
    axes: "Axes",
    result: "RelaxationResult",
    *,
    label: str = "u",
    unit: str | None = None,
    **options: Any,
) -> None:
    """Draw the solution as filled contours, with a scale.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : RelaxationResult
        The result.
    label : str, default: 'u'
        Label of the scale, for example ``"temperature (°C)"``.
    unit : str, optional
        Unit of the coordinates, for example ``"mm"``.
    **options
        Options of `contourf`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from pysolvers import solve_laplace
    >>> from pysolvers.plots.relaxation import plot_solution
    >>> sides = {"x": 0.0, "y-": 0.0, "y+": 1.0}
    >>> result = solve_laplace((16, 16), extent=((0, 1), (0, 1)), boundary=sides)
    >>> axes = Figure().add_subplot()
    >>> plot_solution(axes, result)
    """
    step_y, step_x = (-(-n // _PIXELS) for n in result.u.shape)
    x, y = result.x[::step_x], result.y[::step_y]
    u = result.u[::step_y, ::step_x]
    if min(u.shape) > 1 and np.isfinite(u).all():
        options.setdefault("levels", levels_of(u))
        add_scale(axes, axes.contourf(x, y, u, **options), label)
    axes.set(aspect="equal", title="solution", **axis_labels("xy", unit))


def plot_measures(axes: "Axes", result: "RelaxationResult") -> None:
    """Draw the measured norms over the iterations.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : RelaxationResult
        The result.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from pysolvers import solve_laplace
    >>> from pysolvers.plots.relaxation import plot_measures
    >>> sides = {"x": 0.0, "y-": 0.0, "y+": 1.0}
    >>> result = solve_laplace((16, 16), extent=((0, 1), (0, 1)), boundary=sides)
    >>> axes = Figure().add_subplot()
    >>> plot_measures(axes, result)
    """
    axes.semilogy(result.history.iteration, result.history.measure)
    axes.set(
        xlabel="iterations",
        ylabel=f"{result.criterion} ({result.norm} norm)",
        title="convergence",
    )
    axes.grid(alpha=0.3)

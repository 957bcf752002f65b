"""Figures of curves side by side."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_curves"]

Points = tuple[Sequence[float], Sequence[float]]


class _Curves(Protocol):
    """What one plot shows: its title, what its axes tell, and its lines by name."""

    @property
    def title(self) -> str: ...
    @property
    def x(self) -> str: ...
    @property
    def y(self) -> str: ...
    @property
    def lines(self) -> Mapping[str, Points]: ...


def plot_curves(
    plots: Sequence[_Curves], *, log: tuple[bool, bool] = (False, False), columns: int = 2
) -> "Figure":
    """Draw curves, one plot beside the other.

    Parameters
    ----------
    plots : sequence of objects with title, x, y and lines
        What they show; the lines by name, each its x and its y.
    log : (bool, bool), default: (False, False)
        Whether the axes are logarithmic, that of x to base 2.
    columns : int, default: 2
        Plots in a row.

    Returns
    -------
    figure : matplotlib.figure.Figure
        A figure of its own, known to no window.
    """
    from matplotlib.figure import Figure

    rows = -(-len(plots) // columns)
    width = min(columns, len(plots))
    figure = Figure(figsize=(5.2 * width, 3.8 * rows), layout="constrained")
    grid = figure.subplots(rows, width, squeeze=False).ravel()
    for axes in grid[len(plots) :]:
        axes.remove()
    for axes, plot in zip(grid, plots, strict=False):
        many = max((len(x) for x, _ in plot.lines.values()), default=0) > 40
        for k, (name, (x, y)) in enumerate(plot.lines.items()):
            axes.plot(x, y, f"C{k}-" if many else f"C{k}o-", ms=4, lw=1.2, label=name)
        if log[0]:
            axes.set_xscale("log", base=2)
        if log[1]:
            axes.set_yscale("log")
        axes.set(title=plot.title, xlabel=plot.x, ylabel=plot.y)
        axes.grid(alpha=0.3)
        if plot.lines:
            axes.legend(fontsize=8)
    return figure

"""Figures of curves in neighbouring plots."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING

from ._figure import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Curves", "plot_curves"]


@dataclass(frozen=True, slots=True)
class Curves:
    """The curves of one plot.

    Parameters
    ----------
    title, x, y : str
        Title, and labels of the axes.
    lines : dict of str to (list of float, list of float)
        Points by name of the method; diverged results are omitted.
    """

    title: str
    x: str
    y: str
    lines: dict[str, tuple[list[float], list[float]]] = field(default_factory=dict)

    def add(self, name: str, x: float, y: float) -> None:
        """Append a point if it is finite."""
        if isfinite(y):
            line = self.lines.setdefault(name, ([], []))
            line[0].append(float(x))
            line[1].append(float(y))


def plot_curves(
    plots: Sequence[Curves], *, log: tuple[bool, bool] = (False, False), columns: int = 2
) -> "Figure":
    """Draw curves in neighbouring plots.

    Parameters
    ----------
    plots : sequence of Curves
        The curves of each plot.
    log : (bool, bool), default: (False, False)
        Whether the axes are logarithmic, that of x to base 2.
    columns : int, default: 2
        Plots in a row.

    Returns
    -------
    figure : matplotlib.figure.Figure
        A new figure, independent of pyplot.
    """
    rows = -(-len(plots) // columns)
    width = min(columns, len(plots))
    figure = new_figure(5.2 * width, 3.8 * rows)
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

"""Figures of repeated papers: curves in neighbouring plots, and times and speedups of methods."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from pysolvers.plots._figure import new_figure, plain_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .gceidd2022_runs import Field

__all__ = ["Curves", "plot_curves", "plot_fields", "plot_speedups"]

_MARKED = 40  # largest number of points of a line that are drawn as marks
_LABELLED = 10  # largest number of places that are all labelled
_DASHES = ("-", "--", "-.")  # of lines without marks, which may cover each other
_STYLES = {"exact": "k:", "reference": "k:"}


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
    plots: Sequence[Curves],
    *,
    log: tuple[bool, bool] = (False, False),
    columns: int = 2,
    limits: tuple[float, float] | None = None,
) -> "Figure":
    """Draw curves in neighbouring plots; `limits` are those of the y axes."""
    rows = -(-len(plots) // columns)
    width = min(columns, len(plots))
    figure = new_figure(5.2 * width, 3.8 * rows)
    grid = figure.subplots(rows, width, squeeze=False).ravel()
    for axes in grid[len(plots) :]:
        axes.remove()
    for axes, plot in zip(grid, plots, strict=False):
        axes.set_title(plot.title)
        axes.grid(alpha=0.3)
        if len({place for x, _ in plot.lines.values() for place in x}) == 1:
            _draw_bars(axes, plot)
        else:
            _draw_lines(axes, plot, log)
        if limits is not None:
            axes.set_ylim(*limits)
    return figure


def plot_fields(fields: Sequence["Field"], title: str, *, by_row: bool = False) -> "Figure":
    """Draw maps of fields in two columns, in the colours of the last field, the reference.

    Parameters
    ----------
    fields : sequence of Field
        The fields.
    title : str
        Title of the figure.
    by_row : bool, default: False
        Whether each row has the colours of its last field.
    """
    rows = -(-len(fields) // 2)
    width, height = np.ptp(fields[0].x), np.ptp(fields[0].y)
    figure = new_figure(10.0, 0.6 + rows * (0.5 + min(4.2, 4.4 * height / width + 0.4)))
    grid = figure.subplots(rows, 2, squeeze=False)
    for k, (axes, shown) in enumerate(zip(grid.ravel(), fields, strict=False)):
        last = fields[min(k | 1, len(fields) - 1) if by_row else -1].u
        low, high = float(last.min()), float(last.max())
        drawn = axes.pcolormesh(
            shown.x, shown.y, shown.u, vmin=low, vmax=high, shading="nearest", rasterized=True
        )
        axes.set_aspect("equal")
        axes.set(title=shown.name, xlabel="x", ylabel="y")
        axes.label_outer()
        figure.colorbar(drawn, ax=axes, shrink=0.9, fraction=0.03)
    figure.suptitle(title)
    return figure


def _draw_lines(axes: "Axes", plot: Curves, log: tuple[bool, bool]) -> None:
    many = max((len(x) for x, _ in plot.lines.values()), default=0) > _MARKED
    for k, (name, (x, y)) in enumerate(plot.lines.items()):
        style = _STYLES.get(name, f"C{k}{_DASHES[k % len(_DASHES)]}" if many else f"C{k}o-")
        axes.plot(x, y, style, ms=4, lw=1.2, label=name)
    places = sorted({place for x, _ in plot.lines.values() for place in x})
    if log[0]:
        axes.set_xscale("log", base=2)
        if len(places) <= _LABELLED:
            axes.set_xticks(places, [f"{place:g}" for place in places])
            axes.minorticks_off()
    if log[1]:
        axes.set_yscale("log")
        plain_ticks(axes.yaxis)
    axes.set(xlabel=plot.x, ylabel=plot.y)
    if plot.lines:
        axes.legend(fontsize=8)


def _draw_bars(axes: "Axes", plot: Curves) -> None:
    """Draw the values at the single place of each line as bars."""
    for k, (name, (_, (value,))) in enumerate(plot.lines.items()):
        axes.barh(name, value, color=f"C{k}", height=0.6)
    axes.invert_yaxis()
    axes.ticklabel_format(axis="x", scilimits=(-3, 4))
    (place,) = {x[0] for x, _ in plot.lines.values()}
    axes.set(xlabel=plot.y, title=f"{plot.title}\n{plot.x} {place:g}")


def plot_speedups(
    seconds: Mapping[str, Mapping[int, float]],
    speedups: Mapping[str, Mapping[int, float]],
    published: Mapping[str, tuple[float, float]],
    title: str,
) -> "Figure":
    """Draw times and, if several runs were timed, speedups over the grid with published ranges."""
    compared = [
        name for name in seconds if any(ratio != 1 for ratio in speedups.get(name, {}).values())
    ]
    panels = 2 if compared else 1
    figure = new_figure(5 * panels, 4.5)
    left, *right = figure.subplots(1, panels, squeeze=False)[0]
    for k, (name, values) in enumerate(seconds.items()):
        left.loglog(list(values), list(values.values()), f"C{k}o-", ms=4, label=name)
        if name in compared:
            ratios = speedups[name]
            right[0].loglog(list(ratios), list(ratios.values()), f"C{k}o-", ms=4, label=name)
            if name in published:
                label = f"{name}, published range"
                right[0].axhspan(*published[name], color=f"C{k}", alpha=0.12, label=label)
    left.set(ylabel="time (s)", title="time")
    for axes in right:
        axes.set(ylabel="speed (one core = 1)", title="speedup")
    ticks = sorted({n for values in seconds.values() for n in values})
    for axes in (left, *right):
        axes.set_xlabel("nodes along a side")
        axes.set_xticks(ticks, [str(n) for n in ticks], minor=False)
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
        plain_ticks(axes.yaxis)
    figure.suptitle(title)
    return figure

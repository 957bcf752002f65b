"""Figures of published and measured times of methods."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ._figure import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_speedups"]


def plot_speedups(
    seconds: Mapping[str, Mapping[int, float]],
    speedups: Mapping[str, Mapping[int, float]],
    published: Mapping[str, tuple[float, float]],
    title: str,
) -> "Figure":
    """Draw times and speedups over the grid, with the published range of each speedup.

    Parameters
    ----------
    seconds, speedups : mapping of str to mapping of int to float
        Values by name of the run and nodes along a side.
    published : mapping of str to (float, float)
        The smallest and the largest published speedup of a run.
    title : str
        Title of the figure.

    Returns
    -------
    figure : matplotlib.figure.Figure
        A new figure, independent of pyplot.
    """
    figure = new_figure(10, 4.5)
    left, right = figure.subplots(1, 2)
    for k, (name, values) in enumerate(seconds.items()):
        left.loglog(list(values), list(values.values()), f"C{k}o-", ms=4, label=name)
        ratios = speedups.get(name, {})
        if any(ratio != 1 for ratio in ratios.values()):
            right.loglog(list(ratios), list(ratios.values()), f"C{k}o-", ms=4, label=name)
        if name in published:
            low, high = published[name]
            right.axhspan(low, high, color=f"C{k}", alpha=0.12, label=f"{name}, published range")
    left.set(ylabel="seconds", title="time")
    right.set(ylabel="times faster than one core", title="speedup")
    ticks = sorted({n for values in seconds.values() for n in values})
    for axes in (left, right):
        axes.set_xlabel("nodes along a side")
        axes.set_xticks(ticks, [str(n) for n in ticks], minor=False)
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        if axes.get_legend_handles_labels()[1]:
            axes.legend(fontsize=8)
    figure.suptitle(title)
    return figure

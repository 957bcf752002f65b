"""Figures of published and measured times of methods."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pysolvers.plots._figure import new_figure, plain_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["plot_speedups"]


def plot_speedups(
    seconds: Mapping[str, Mapping[int, float]],
    speedups: Mapping[str, Mapping[int, float]],
    published: Mapping[str, tuple[float, float]],
    title: str,
) -> "Figure":
    """Draw times and, if several runs were timed, speedups over the grid with published ranges.

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

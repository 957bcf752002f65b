"""Figures: for files, independent of pyplot and of windows; for users, managed by pyplot."""

from collections.abc import Callable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._extras import extra_module

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LABELS = 7  # largest number of labels on a colour bar


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure that pyplot does not know; width and height are in inches."""
    figure = extra_module("matplotlib.figure", "plot").Figure
    return figure(figsize=(width, height), layout="constrained")


def show_figure(
    ax: Any,
    draw_on: "Callable[[Axes], Any]",
    size: tuple[float, float],
    draw: "Callable[[Figure], Any]",
    show: bool | None,
) -> Any:
    """Draw on axes of the caller, or on a figure that pyplot manages, and show this figure.

    Parameters
    ----------
    ax : Axes or None
        Axes of the caller; None for a figure.
    draw_on : callable
        Draws the main field on axes.
    size : (float, float)
        Width and height of the figure in inches.
    draw : callable
        Draws on the empty figure and returns its axes.
    show : bool or None
        Whether to open a window. A notebook shows the figures of pyplot at the end of a cell. By
        default, a window is therefore opened only if the backend of matplotlib opens windows and
        pyplot is not in interactive mode. A program waits until the window is closed.

    Returns
    -------
    axes : Axes or ndarray of Axes
        `ax`, or what `draw` returns.

    Raises
    ------
    TypeError
        If `ax` is not axes of matplotlib, for example the path of a file.
    """
    if ax is not None:
        check_axes(ax)
        draw_on(ax)
        return ax
    pyplot = extra_module("matplotlib.pyplot", "plot")
    figure = pyplot.figure(figsize=size, layout="constrained")
    try:
        axes = draw(figure)
    except BaseException:
        pyplot.close(figure)
        raise
    if show is None:
        has_windows = getattr(figure.canvas, "required_interactive_framework", None) is not None
        show = has_windows and not pyplot.isinteractive()
    if show:
        pyplot.show()
    return axes


def check_axes(ax: Any) -> None:
    """Raise TypeError if `ax` is not axes of matplotlib, for example the path of a file."""
    axes = extra_module("matplotlib.axes", "plot").Axes
    if not isinstance(ax, axes):
        raise TypeError(
            f"ax must be axes of matplotlib, got {type(ax).__name__}; to write the figure to a "
            "file: result.plot(show=False), then matplotlib.pyplot.savefig(path)"
        )


def levels_of(field: NDArray[Any], number: int = 20) -> NDArray[np.float64]:
    """Return about `number` levels that cover the finite values of a field.

    The first and the last level are the smallest and the largest value, so that the scale begins
    exactly at the temperature of the surroundings, for example; those between them are round. The
    levels also cover values that differ by rounding errors from the first and the last one, so
    that a plateau is filled.
    """
    finite = field[np.isfinite(field)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if high - low <= 1e-12 * max(abs(low), abs(high)) or high == low:
        low, high = low - 0.5, high + 0.5
    ticker = extra_module("matplotlib.ticker", "plot")
    locator = ticker.MaxNLocator(number, steps=[1, 2, 2.5, 5, 10])
    levels = np.asarray(locator.tick_values(low, high), np.float64)
    # A level close to an end would be a band that is too thin to be seen.
    near = 0.25 * (levels[1] - levels[0])
    room = 1e-9 * (high - low)
    inside = levels[(low + near < levels) & (levels < high - near)]
    return np.concatenate([[low - room], inside, [high + room]])


def axis_labels(names: Sequence[str], unit: str | None) -> dict[str, str]:
    """Return the keywords ``xlabel`` and ``ylabel`` of axes for two coordinates and their unit."""
    suffix = f" ({unit})" if unit else ""
    return {f"{axis}label": name + suffix for axis, name in zip("xy", names, strict=False)}


def add_note(figure: "Figure", note: str) -> None:
    """Write a note below the plots of a figure, over its width; an empty one is left out."""
    if note:
        figure.supxlabel(fill(note, int(14 * figure.get_figwidth())), fontsize=9)


def add_scale(axes: "Axes | list[Axes]", drawn: Any, label: str, **options: Any) -> None:
    """Add a colour bar, with a label and ticks at round numbers, to axes or to a list of them."""
    ticker = extra_module("matplotlib.ticker", "plot")
    levels = getattr(drawn, "levels", drawn.get_clim())
    low, high = float(levels[0]), float(levels[-1])
    ticks = ticker.MaxNLocator(_LABELS, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
    # The bar of filled contours would show a tick outside of their levels at a wrong place.
    room = 1e-9 * (high - low)
    options.setdefault("ticks", ticks[(low - room <= ticks) & (ticks <= high + room)])
    drawn.axes.figure.colorbar(drawn, ax=axes, label=label, **options)


def plain_ticks(axis: Any) -> None:
    """Give a logarithmic axis of less than two decades ticks at 1, 2 and 5 times powers of ten."""
    low, high = axis.get_view_interval()
    if not 0 < low < high < 100 * low:
        return
    ticker = extra_module("matplotlib.ticker", "plot")
    axis.set_major_locator(ticker.LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(ticker.FormatStrFormatter("%g"))
    axis.set_minor_formatter(ticker.NullFormatter())
    if high < 10 * low:
        axis.set_major_locator(ticker.MaxNLocator(6))
        axis.set_minor_locator(ticker.NullLocator())

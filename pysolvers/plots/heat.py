"""Figures of heat conduction."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ._figure import add_scale, axis_labels, levels_of, show_figure
from .film import make_film

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..heat._result import HeatResult

__all__ = ["draw_heat", "film", "plot", "plot_isotherms"]

_WIDTH = 6.2  # of a figure, inches
_LABEL = "temperature"


def plot(
    result: "HeatResult", ax: "Axes | None" = None, *, show: bool | None = None, **options: Any
) -> "Axes":
    """Draw isotherms and show them; see `HeatResult.plot`."""
    draw_on = partial(plot_isotherms, result=result, **options)
    draw = partial(draw_heat, result=result, **options)
    axes: Axes = show_figure(ax, draw_on, _size(result), draw, show)
    return axes


def draw_heat(figure: "Figure", result: "HeatResult", **options: Any) -> "Axes":
    """Draw isotherms on an empty figure."""
    axes = figure.subplots()
    plot_isotherms(axes, result, **options)
    figure.suptitle(f"Heat conduction, {result.scheme}")
    return axes


def plot_isotherms(
    axes: "Axes", result: "HeatResult", *, label: str = _LABEL, **options: Any
) -> None:
    """Draw filled contours of the temperature, with a scale; of a rod a curve.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : HeatResult
        The result; with three axes, the middle plane across z is drawn.
    label : str, default: 'temperature'
        Label of the scale, for example ``"temperature (°C)"``.
    **options
        ``unit`` of the coordinates, for example ``"mm"``, and options of `contourf`, for a rod of
        `Axes.plot`.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from pysolvers import HeatADI
    >>> from pysolvers.plots.heat import plot_isotherms
    >>> solver = HeatADI((9, 17), 1 / 8, dt=0.01, boundary={"x-": 1.0, "x+": 0.0, "y": 0.0})
    >>> result = solver.run(until=0.055)
    >>> axes = Figure().add_subplot()
    >>> plot_isotherms(axes, result, label="T (K)")
    """
    drawn = _paint(axes, result, **_labelled(result, label), **options)
    if result.u.ndim > 1:
        add_scale(axes, drawn, label)


def film(frames: "tuple[HeatResult, ...]", *, label: str = _LABEL, **options: Any) -> Any:
    """Return a film of isotherms, or of the curve of a rod.

    `options` are those of `make_film` and of `contourf`, or of `Axes.plot`.
    """
    values = np.array(
        [value for frame in frames for value in (frame._inside().min(), frame._inside().max())]
    )
    is_rod = any(frame.u.ndim == 1 for frame in frames[:1])
    if is_rod:
        room = 0.05 * float(np.ptp(values)) or 0.5
        options.setdefault("ylim", (values.min() - room, values.max() + room))
        options.setdefault("ylabel", label)
    else:
        options.setdefault("levels", levels_of(values))
    return make_film(frames, _paint, _size(*frames[:1]), None if is_rod else label, **options)


def _size(*results: "HeatResult") -> tuple[float, float]:
    """Return the size of a figure for the domain of a result, a square without a result."""
    ratio = 1.0
    for result in results:
        if result.u.ndim == 1:
            return _WIDTH, 3.8
        ratio = float((result.y[-1] - result.y[0]) / (result.x[-1] - result.x[0]))
    return _WIDTH, min(max(4.1 * ratio + 0.9, 2.8), 8.0)


def _labelled(result: "HeatResult", label: str) -> dict[str, str]:
    """Return the label as an option of the curve of a rod; none for other results."""
    return {"ylabel": label} if result.u.ndim == 1 else {}


def _paint(axes: "Axes", result: "HeatResult", *, unit: str | None = None, **options: Any) -> Any:
    """Draw T, of a box in its middle plane, without a colour bar: a frame of a film, too."""
    title = f"t = {result.time:.4g}"
    if result.u.ndim == 1:
        return _paint_rod(axes, result, title, unit, **options)
    options.setdefault("cmap", "inferno")
    plane = _without_holes(result)
    if plane.ndim == 3:
        k = plane.shape[0] // 2
        plane = plane[k]
        title += f", plane z = {result.z[k]:.4g}" + (f" {unit}" if unit else "")
    options.setdefault("levels", levels_of(np.ma.compressed(plane)))
    drawn = axes.contourf(result.x, result.y, plane, **options)
    axes.set(aspect="equal", title=title, **axis_labels("xy", unit))
    return drawn


def _without_holes(result: "HeatResult") -> Any:
    """Return T as a masked array, if there are holes."""
    return result.u if result.holes is None else np.ma.masked_array(result.u, result.holes)


def _paint_rod(
    axes: "Axes",
    result: "HeatResult",
    title: str,
    unit: str | None,
    *,
    ylabel: str,
    ylim: tuple[float, float] | None = None,
    **options: Any,
) -> Any:
    """Draw the temperature of a rod as a curve."""
    drawn = axes.plot(result.x, _without_holes(result), **options)
    axes.set(title=title, ylabel=ylabel, **axis_labels("x", unit))
    if ylim is not None:
        axes.set_ylim(*ylim)
    axes.margins(x=0)
    return drawn

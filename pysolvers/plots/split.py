"""Figures of solvers by schemes that split: curves or a map, of the first ones of a batch."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ._figure import add_scale, axis_labels, show_figure
from .film import make_film

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .._split.solver import SplitResult

__all__ = ["film", "plot"]

_SIZE = 6.2, 4.4  # of a figure, inches
_CURVES = 8  # equations of a batch that are drawn in one dimension
_LABEL = "u"


def plot(
    result: "SplitResult",
    ax: "Axes | None" = None,
    *,
    show: bool | None = None,
    label: str = _LABEL,
    **options: Any,
) -> Any:
    """Draw the solutions and show them; see `Result.plot`."""

    def draw(axes: "Axes") -> "Axes":
        drawn = _paint(axes, result, label=label, **options)
        if len(result.shape) > 1:
            add_scale(axes, drawn, label)
        return axes

    return show_figure(ax, draw, _SIZE, lambda figure: draw(figure.subplots()), show)


def film(frames: "tuple[SplitResult, ...]", *, label: str = _LABEL, **options: Any) -> Any:
    """Return a film; `options` are those of `make_film` and of `plot`."""
    fields = [frame.u for frame in frames]
    low, high = (min(map(np.min, fields)), max(map(np.max, fields))) if frames else (0.0, 1.0)
    if frames and len(frames[0].shape) == 1:
        room = 0.05 * float(high - low) or 0.5
        options.setdefault("ylim", (low - room, high + room))
        return make_film(frames, partial(_paint, label=label), _SIZE, None, **options)
    options = {"vmin": low, "vmax": high, **options}
    return make_film(frames, _paint, _SIZE, label, **options)


def _paint(
    axes: "Axes",
    result: "SplitResult",
    *,
    label: str = _LABEL,
    unit: str | None = None,
    ylim: Any = None,
    **options: Any,
) -> Any:
    """Draw curves, or a map: of three axes the middle plane across z."""
    each = result.u.reshape(-1, *result.shape)
    title = f"t = {result.time:.4g}"
    if len(result.shape) == 1:
        drawn: Any = axes.plot(result.x, each[:_CURVES].T, **options)
        axes.set(xlabel=axis_labels("xy", unit)["xlabel"], ylabel=label, title=title)
        axes.grid(alpha=0.3)
        if ylim is not None:
            axes.set_ylim(*ylim)
        return drawn
    plane = each[0]
    if plane.ndim == 3:
        k = plane.shape[0] // 2
        plane, title = plane[k], f"{title}, plane z = {result.z[k]:.4g}"
    options = {"shading": "nearest", **options}
    drawn = axes.pcolormesh(result.x, result.y, plane, **options)
    axes.set(title=title, **axis_labels("xy", unit))
    return drawn

"""Figures of results that have no figures of their own: a curve, or a map, of the first field."""

from typing import TYPE_CHECKING, Any

from ._figure import add_scale, axis_labels, show_figure
from .film import make_film

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .._solver.result import Result

__all__ = ["film", "plot"]


def plot(
    result: "Result", ax: "Axes | None" = None, *, show: bool | None = None, **options: Any
) -> Any:
    """Draw a result and show it; see `Result.plot`."""

    def draw(axes: "Axes") -> "Axes":
        return _draw(axes, result, **options)

    return show_figure(ax, draw, (6, 4.4), lambda figure: draw(figure.subplots()), show)


def film(frames: "tuple[Result, ...]", **options: Any) -> Any:
    """Return a film; `options` are those of `make_film` and of `plot`."""
    fields = [getattr(frame, _main(frame)[0]) for frame in frames]
    limits = [float(field.min()) for field in fields], [float(field.max()) for field in fields]
    low, high = (min(limits[0]), max(limits[1])) if frames else (0.0, 1.0)
    if frames and fields[0].ndim == 1:
        room = 0.05 * (high - low) or 0.5
        options.setdefault("ylim", (low - room, high + room))
        return make_film(frames, _paint, (6, 4.4), None, **options)
    options = {"vmin": low, "vmax": high, **options}
    label = _main(frames[0])[0] if frames else ""
    return make_film(frames, _paint, (6, 4.4), label, **options)


def _main(result: "Result") -> tuple[str, list[str]]:
    """Return the name and the dimensions of the first field."""
    name, dims = next(iter(result._dims().items()))
    return name, dims.split()


def _draw(axes: "Axes", result: "Result", **options: Any) -> "Axes":
    """Draw the main field; one of two dimensions gets a colour bar."""
    name, dims = _main(result)
    drawn = _paint(axes, result, **options)
    if len(dims) == 2:
        add_scale(axes, drawn, name)
    return axes


def _paint(
    axes: "Axes", result: Any, *, unit: str | None = None, ylim: Any = None, **options: Any
) -> Any:
    """Draw the main field without a colour bar: a frame of a film, too."""
    name, dims = _main(result)
    field = getattr(result, name)
    places = [getattr(result, result._COORDINATES.get(dim, dim)) for dim in reversed(dims)]
    if len(dims) == 1:
        drawn: Any = axes.plot(places[0], field, **options)
        axes.set(**axis_labels((dims[0], name), None) | axis_labels((dims[0],), unit))
        axes.grid(alpha=0.3)
        if ylim is not None:
            axes.set_ylim(*ylim)
    else:
        drawn = axes.pcolormesh(*places, field, **{"shading": "nearest", **options})
        axes.set(aspect="equal", **axis_labels(dims[::-1], unit))
    if hasattr(result, "time"):
        axes.set_title(f"t = {result.time:.4g}")
    return drawn

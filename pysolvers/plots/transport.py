"""Figures of convection and diffusion."""

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._repr import shape_text
from ._figure import add_scale, axis_labels, show_figure
from .film import make_film

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..transport._result import TransportResult

__all__ = ["draw_transport", "film", "plot", "plot_field", "plot_profiles"]

_LABEL = "u"


def plot(
    result: "TransportResult",
    ax: "Axes | None" = None,
    *,
    show: bool | None = None,
    **options: Any,
) -> Any:
    """Draw a result and show it; see `TransportResult.plot`."""
    draw_on = partial(plot_field, result=result, **options)
    return show_figure(
        ax, draw_on, (10, 4.4), partial(draw_transport, result=result, **options), show
    )


def draw_transport(figure: "Figure", result: "TransportResult", **options: Any) -> NDArray[Any]:
    """Draw the solution as a map, and its profiles, on an empty figure and return both axes."""
    axes: NDArray[Any] = figure.subplots(1, 2)
    plot_field(axes[0], result, **options)
    names = {name: options[name] for name in ("label", "unit") if name in options}
    plot_profiles(axes[1], result, **names)
    figure.suptitle(
        f"{result.scheme}, {shape_text(result.u.shape)} nodes, "
        f"strips {result.strips[0]} along x, {result.strips[1]} along y"
    )
    return axes


def plot_field(
    axes: "Axes", result: "TransportResult", *, label: str = _LABEL, **options: Any
) -> None:
    """Draw u as a map, with a scale.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : TransportResult
        The result.
    label : str, default: 'u'
        Label of the scale, for example ``"salinity (g/kg)"``.
    **options
        ``unit`` of the coordinates, for example ``"km"``, and options of `pcolormesh`.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from pysolvers import GCEIDD, ConvectionDiffusion
    >>> from pysolvers.plots.transport import plot_field
    >>> problem = ConvectionDiffusion(
    ...     (1.0, 0.0), 0.01, boundary=0.0,
    ...     initial=lambda x, y: np.sin(np.pi * x) * np.sin(np.pi * y),
    ... )
    >>> result = GCEIDD(problem, (17, 17), dt=0.01, strips=2).run(until=0.1)
    >>> axes = Figure().add_subplot()
    >>> plot_field(axes, result)
    """
    add_scale(axes, _paint(axes, result, **options), label)


def plot_profiles(
    axes: "Axes", result: "TransportResult", *, label: str = _LABEL, unit: str | None = None
) -> None:
    """Draw u along x and along y through the node where it is largest.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        The axes.
    result : TransportResult
        The result.
    label : str, default: 'u'
        Label of the ordinate.
    unit : str, optional
        Unit of the coordinates.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from pysolvers import GCEIDD, ConvectionDiffusion
    >>> from pysolvers.plots.transport import plot_profiles
    >>> problem = ConvectionDiffusion(
    ...     (1.0, 0.0), 0.01, boundary=0.0,
    ...     initial=lambda x, y: np.sin(np.pi * x) * np.sin(np.pi * y),
    ... )
    >>> result = GCEIDD(problem, (17, 17), dt=0.01, strips=2).run(until=0.1)
    >>> axes = Figure().add_subplot()
    >>> plot_profiles(axes, result)
    """
    j, i = np.unravel_index(int(np.argmax(result.u)), result.u.shape)
    axes.plot(result.x, result.u[j], label=f"along x, y = {result.y[j]:.3g}")
    axes.plot(result.y, result.u[:, i], "--", label=f"along y, x = {result.x[i]:.3g}")
    place = "x or y" + (f" ({unit})" if unit else "")
    axes.set(xlabel=place, ylabel=label, title="profiles through the highest point")
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)


def film(frames: "tuple[TransportResult, ...]", *, label: str = _LABEL, **options: Any) -> Any:
    """Return a film of maps; `options` are those of `make_film` and of `pcolormesh`."""
    options.setdefault("vmin", min((float(frame.u.min()) for frame in frames), default=0.0))
    options.setdefault("vmax", max((float(frame.u.max()) for frame in frames), default=1.0))
    return make_film(frames, _paint, (5.6, 4.4), label, **options)


def _paint(
    axes: "Axes", result: "TransportResult", *, unit: str | None = None, **options: Any
) -> Any:
    """Draw u without a colour bar: a frame of a film, too."""
    drawn = axes.pcolormesh(
        result.x, result.y, result.u, **{"shading": "gouraud", "cmap": "viridis", **options}
    )
    axes.set(aspect="equal", title=f"t = {result.time:.4g}", **axis_labels("xy", unit))
    return drawn

"""Films of solutions that change with time."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._extras import extra_module
from ._figure import add_scale, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["make_film"]

# Formats that Pillow writes.
_PILLOW = (".gif", ".apng", ".webp")

# Buttons of a film -> characters for the icons that matplotlib takes from the network.
_ICONS = {
    "fa-minus": "&#8722;",
    "fa-fast-backward": "&#124;&#9664;",
    "fa-step-backward": "&#10094;",
    "fa-play fa-flip-horizontal": "&#9664;",
    "fa-pause": "&#124;&#124;",
    "fa-play": "&#9654;",
    "fa-step-forward": "&#10095;",
    "fa-fast-forward": "&#9654;&#124;",
    "fa-plus": "+",
}


def make_film(
    frames: Sequence[Any],
    paint: "Callable[..., Any]",
    size: tuple[float, float],
    label: str | None,
    *,
    path: Any = None,
    fps: float = 12.0,
    dpi: float = 80.0,
    **options: Any,
) -> Any:
    """Return the film of a sequence of results, and write it to a file if there is a path.

    Parameters
    ----------
    frames : sequence of results
        The states, at least one.
    paint : callable
        ``paint(axes, frame, **options)`` draws a state and returns what the colour bar belongs to.
    size : (float, float)
        Width and height in inches.
    label : str or None
        Name and unit of the colour bar; None for no bar.
    path : path-like, optional
        File to write. ``.gif``, ``.apng`` and ``.webp`` need Pillow; the other formats need
        ffmpeg.
    fps : float, default: 12
        Frames per second.
    dpi : float, default: 80
        Pixels per inch of the file.
    **options
        Options of `paint`. Levels and limits of the colours must be those of all frames.

    Returns
    -------
    film : matplotlib.animation.FuncAnimation
        The film; a notebook shows it with buttons.

    Raises
    ------
    ValueError
        If there are no frames, or if no program that is installed writes the format of `path`.
    """
    if not frames:
        raise ValueError("the result has no frames: record(until) keeps them, run(until) does not")
    animation = extra_module("matplotlib.animation", "plot")
    if path is not None:
        path = Path(path)
        _check_format(path, animation.writers.list())
    extra_module("matplotlib.backends.backend_agg", "plot")
    figure = new_figure(*size)
    axes: Axes = figure.subplots()
    drawn = paint(axes, frames[0], **options)
    if label is not None:
        add_scale(axes, drawn, label)

    def update(number: int) -> list[Any]:
        """Draw a frame in place of the former one."""
        axes.clear()
        paint(axes, frames[number], **options)
        return []

    class Film(animation.FuncAnimation):  # type: ignore[name-defined]
        """A film that a notebook shows with buttons."""

        def _repr_html_(self) -> str:
            return _without_network(str(self.to_jshtml()))

    film = Film(figure, update, frames=len(frames), interval=1000 / fps, blit=False)
    if path is not None:
        writer = animation.PillowWriter(fps=fps) if path.suffix.lower() in _PILLOW else None
        film.save(path, writer=writer, dpi=dpi, **({} if writer else {"fps": fps}))
    return film


def _check_format(path: Path, writers: Sequence[str]) -> None:
    """Raise ValueError if Pillow does not write the format of `path` and there is no other writer.

    `writers` are the writers of matplotlib that are available. Matplotlib replaces ffmpeg by Pillow
    if it is missing, and Pillow reports an unknown file extension.
    """
    if path.suffix.lower() not in _PILLOW and set(writers) <= {"pillow", "html"}:
        raise ValueError(
            f"path: a film in the format {path.suffix!r} needs ffmpeg, which is not installed; "
            f"write {path.with_suffix('.gif').name!r}, or install ffmpeg; got {str(path)!r}"
        )


def _without_network(page: str) -> str:
    """Return the page of a film with characters instead of icons from the network."""
    page = re.sub(r"<link[^>]*font-awesome[^>]*>", "", page)
    for name, character in _ICONS.items():
        page = page.replace(f'<i class="fa {name}"></i>', character)
    return page

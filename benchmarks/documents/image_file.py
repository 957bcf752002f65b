"""What the pictures of the documentation share: their folder, their ticks, their files."""

from pathlib import Path

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter
from PIL import Image  # comes with matplotlib

from ..sources import ROOT

__all__ = ["IMAGES", "plain_log_ticks", "print_size", "write_image"]

IMAGES = ROOT / "docs" / "images"


def write_image(figure: Figure, path: Path, colours: int | None = None) -> None:
    """Write a figure as PNG, if given with so many colours, and print the size of the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    if colours is not None:
        Image.open(path).convert("RGB").quantize(colours).save(path, optimize=True)
    print_size(path)


def print_size(path: Path) -> None:
    """Print the name and the size of a file."""
    print(f"{path.name}: {path.stat().st_size} bytes")


def plain_log_ticks(axis: Axis, *subs: float) -> None:
    """Label the ticks of a logarithmic axis by plain numbers, at multiples `subs` of decades."""
    axis.set_major_locator(LogLocator(base=10, subs=subs or (1.0,)))
    axis.set_major_formatter(FormatStrFormatter("%g"))
    axis.set_minor_formatter(NullFormatter())

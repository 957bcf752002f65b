"""Write a picture of the documentation."""

from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image  # comes with matplotlib

__all__ = ["print_size", "write_image"]


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

"""Renew the picture of README.md from the one that `make demo` wrote, with fewer colours."""

from pathlib import Path

from PIL import Image  # comes with matplotlib

from .image_file import print_size

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "results" / "cavity_re1000_n129.png"
TARGET = ROOT / "docs" / "images" / "cavity.png"
COLOURS = 256


def renew() -> None:
    """Write the picture."""
    picture = Image.open(SOURCE).convert("RGB")
    picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(TARGET, optimize=True)
    print_size(TARGET)

"""Renew the picture of README.md from the one that `make demo` wrote, with fewer colours."""

from PIL import Image  # comes with matplotlib

from ..sources import ROOT
from .image_file import IMAGES, print_size

SOURCE = ROOT / "results" / "cavity_re1000_n129.png"
TARGET = IMAGES / "cavity.png"
COLOURS = 256


def renew() -> None:
    """Write the picture."""
    picture = Image.open(SOURCE).convert("RGB")
    picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(TARGET, optimize=True)
    print_size(TARGET)

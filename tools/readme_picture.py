#!/usr/bin/env python3
"""Renew the picture of README.md from the one that `make demo` wrote, with fewer colours."""

from pathlib import Path

from image_file import print_size
from PIL import Image  # comes with matplotlib

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "results" / "cavity_re1000_n129.png"
TARGET = ROOT / "docs" / "images" / "cavity.png"
COLOURS = 256

if __name__ == "__main__":
    picture = Image.open(SOURCE).convert("RGB")
    picture.quantize(COLOURS, Image.Quantize.MAXCOVERAGE).save(TARGET, optimize=True)
    print_size(TARGET)

#!/usr/bin/env python3
"""Draw the small pictures of docs/gallery.md: execute the notebooks, take a figure of each.

A notebook without a figure of its own gets the picture of another file. With names of notebooks,
only these are drawn.
"""

import argparse
import base64
import io
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
# Name of a notebook -> number of its figure, or the file of the picture.
PICTURES: dict[str, int | str] = {
    "01_tridiagonal": "speed.png",
    "02_cavity": -1,
    "03_gpu": "gpu_roofline.png",
    "04_lmsor": -1,
    "05_adi": 0,
    "06_gceidd": 0,
    "07_cylinder": 0,
    "08_poisson": 0,
    "09_staggered": 1,
}
SIZE = 480, 300
COLOURS = 128


def figure(name: str) -> Image.Image:
    """Return the picture of a notebook."""
    chosen = PICTURES[name]
    if isinstance(chosen, str):
        return Image.open(IMAGES / chosen)
    notebook = nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)
    NotebookClient(notebook, timeout=600).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    data = [output["data"] for output in outputs if "data" in output]
    pictures = [entry["image/png"] for entry in data if "image/png" in entry]
    return Image.open(io.BytesIO(base64.b64decode(pictures[chosen])))


def main() -> int:
    """Draw the pictures and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=PICTURES, metavar="NAME")
    folder = IMAGES / "gallery"
    folder.mkdir(parents=True, exist_ok=True)
    for name in parser.parse_args().names:
        picture = figure(name).convert("RGB")
        picture.thumbnail(SIZE, Image.Resampling.LANCZOS)
        canvas = Image.new("RGB", SIZE, "white")
        canvas.paste(picture, tuple((a - b) // 2 for a, b in zip(SIZE, picture.size, strict=True)))
        path = folder / f"{name}.png"
        canvas.quantize(COLOURS).save(path, optimize=True)
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

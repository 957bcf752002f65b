#!/usr/bin/env python3
"""Make docs/images/street.gif: one period of the vortex street behind a square cylinder.

`SquareCylinder` at Re = 100 on 129 x 651 nodes runs until the flow is periodic, and records one
period of it, so that the film repeats without a jump. It takes a few minutes.
"""

from io import BytesIO
from pathlib import Path

import numpy as np
from image_file import print_size
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from pysolvers import SquareCylinder
from pysolvers.flow import CylinderResult

TARGET = Path(__file__).resolve().parents[1] / "docs" / "images" / "street.gif"
REYNOLDS, SHAPE, START = 100, (129, 651), 120.0
FRAMES, COLOURS, MILLISECONDS = 36, 64, 90
LENGTH = 22.0  # of the channel that is shown, behind the centre of the cylinder
LEVELS = np.linspace(-2.6, 2.6, 27)


def frame(result: CylinderResult) -> Image.Image:
    """Return the picture of the vorticity of a state."""
    figure = Figure(figsize=(7.5, 2.5), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    x = result.x - result.grid.centre
    shown = slice(*x.searchsorted((-2.0, LENGTH)))
    omega = np.clip(result.omega[:, shown], LEVELS[0], LEVELS[-1])
    axes.contourf(x[shown], result.y, omega, LEVELS, cmap="RdBu_r")
    axes.fill([-0.5, 0.5, 0.5, -0.5], [-0.5, -0.5, 0.5, 0.5], "0.25")
    axes.set_axis_off()
    axes.set_aspect("equal")
    file = BytesIO()
    FigureCanvasAgg(figure).print_png(file)
    return Image.open(file).convert("RGB")


def main() -> int:
    """Make the film and return the exit code."""
    solver = SquareCylinder(REYNOLDS, SHAPE)
    solver.run(START)
    period = 1 / solver.result().strouhal().value
    times = START + period * np.arange(1, FRAMES + 1) / FRAMES
    frames = [frame(state) for state in solver.record(times=list(times)).frames]
    palette = frames[0].quantize(COLOURS)
    first, *rest = (each.quantize(palette=palette, dither=Image.Dither.NONE) for each in frames)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    first.save(TARGET, save_all=True, append_images=rest, duration=MILLISECONDS, loop=0)
    print_size(TARGET)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

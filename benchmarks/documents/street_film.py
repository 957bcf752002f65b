"""Make docs/images/street.gif: one period of the vortex street behind a square cylinder.

`SquareCylinder` at Re = 100 on 129 x 701 nodes runs until the flow is periodic, and records one
period of it, so that the film repeats without a jump. The frames contain the Strouhal number and
the error of its grid, estimated by a run on half the intervals. It takes a few minutes.
"""

import warnings
from io import BytesIO

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from pysolvers import CoarseGridWarning, SquareCylinder
from pysolvers.cases.grid_error import error_of, half_nodes
from pysolvers.flow import CylinderResult

from .image_file import IMAGES, print_size

TARGET = IMAGES / "street.gif"
REYNOLDS, SHAPE, START = 100, (129, 701), 120.0
FRAMES, COLOURS, MILLISECONDS = 36, 64, 90
LENGTH = 22.0  # of the channel that is shown, behind the centre of the cylinder
LEVELS = np.linspace(-2.6, 2.6, 27)


def frame(result: CylinderResult, note: str) -> Image.Image:
    """Return the picture of the vorticity of a state, with a note below the street."""
    figure = Figure(figsize=(7.5, 2.5), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    x = result.x - result.grid.centre
    shown = slice(*x.searchsorted((-2.0, LENGTH)))
    omega = np.clip(result.omega[:, shown], LEVELS[0], LEVELS[-1])
    axes.contourf(x[shown], result.y, omega, LEVELS, cmap="RdBu_r")
    axes.fill([-0.5, 0.5, 0.5, -0.5], [-0.5, -0.5, 0.5, 0.5], "0.25")
    axes.text(-1.8, -3.7, note, fontsize=8, va="bottom", color="0.2")
    axes.set_axis_off()
    axes.set_aspect("equal")
    file = BytesIO()
    FigureCanvasAgg(figure).print_png(file)
    return Image.open(file).convert("RGB")


def renew() -> None:
    """Make the film."""
    solver = SquareCylinder(REYNOLDS, SHAPE)
    strouhal = solver.run(START).strouhal().value
    half = tuple(half_nodes(nodes) for nodes in SHAPE)
    with warnings.catch_warnings():  # the coarser grid is for the comparison only
        warnings.simplefilter("ignore", CoarseGridWarning)
        coarse = SquareCylinder(REYNOLDS, half).run(START).strouhal().value
    error = error_of(strouhal, coarse, (SHAPE[0] - 1, half[0] - 1))
    note = (
        f"vorticity, Re = {REYNOLDS}, {SHAPE[0]} × {SHAPE[1]} nodes; "
        f"Strouhal number {strouhal:.4f}, error of the grid about {error:.4f}"
    )
    period = 1 / strouhal
    times = START + period * np.arange(1, FRAMES + 1) / FRAMES
    frames = [frame(state, note) for state in solver.record(times=list(times)).frames]
    palette = frames[0].quantize(COLOURS)
    first, *rest = (each.quantize(palette=palette, dither=Image.Dither.NONE) for each in frames)
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    first.save(TARGET, save_all=True, append_images=rest, duration=MILLISECONDS, loop=0)
    print_size(TARGET)

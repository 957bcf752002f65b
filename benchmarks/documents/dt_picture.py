"""Draw docs/images/dt.png, the picture of docs/dt.md: factors of a step, and errors of a jump.

python -m pysolvers bench documents dt
"""

import warnings

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pysolvers import HeatADI

from .image_file import IMAGES, plain_log_ticks, write_image

COLOURS = 64
NODES, TIME = 257, 0.05
SCHEMES = {
    "crank-nicolson, not damped": {"damped_start": False},
    "default: first step damped": {},
    "implicit": {"scheme": "implicit"},
}


def factors(axes: Axes) -> None:
    """Draw the factor of a step for a wave of the decay rate lambda."""
    z = np.linspace(0.0, 10.0, 401)
    gamma = 1 - np.sqrt(0.5)
    axes.plot(z, np.exp(-z), "k", label="exact")
    axes.plot(z, (1 - z / 2) / (1 + z / 2), label="crank-nicolson")
    axes.plot(z, ((1 - z / 4) / (1 + z / 4)) ** 2, label="alternating directions, square")
    axes.plot(z, (1 - (1 - 2 * gamma) * z) / (1 + gamma * z) ** 2, label="implicit")
    axes.plot(z, 1 / (1 + z / 2) ** 2, ":", label="damped first step")
    axes.axvspan(0.0, 0.5, color="0.9")
    axes.set(xlabel="λ dt", ylabel="factor of a step", title="a wave that decays as exp(-λ t)")
    axes.legend(fontsize=8)


def field(steps: int, **options: object) -> np.ndarray:
    """Return a rod at 0 whose end is at 1, after these steps to the time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        rod = HeatADI(
            (NODES,),
            extent=((0.0, 1.0),),
            dt=TIME / steps,
            boundary={"x-": 1.0, "x+": 0.0},
            **options,
        )
        return rod.step(steps).u


def errors(axes: Axes) -> None:
    """Draw the error of a start with a jump over the number of steps."""
    steps, fine = [3, 5, 10, 20, 40, 80, 160, 320], field(8000)
    for name, options in SCHEMES.items():
        found = [np.abs(field(n, **options) - fine).max() for n in steps]
        axes.loglog(steps, found, "o-", label=name)
    axes.set(xlabel=f"steps to t = {TIME}", ylabel="largest error", title="a rod with a jump")
    plain_log_ticks(axes.xaxis, 1.0, 3.0)
    axes.legend(fontsize=8)


def renew() -> None:
    """Draw the picture."""
    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    factors(left)
    errors(right)
    write_image(figure, IMAGES / "dt.png", COLOURS)

"""Figures of Souri et al. (2020): 10, the cavity; 13 to 18, the flow around a square cylinder."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pysolvers.papers import ghia_profiles
from pysolvers.plots._figure import add_scale, new_figure
from pysolvers.plots.cylinder import SCALE, paint_vorticity, plot_streamlines

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pysolvers.flow import CavityResult, CylinderResult, Strouhal

__all__ = [
    "plot_cavities",
    "plot_centre_line",
    "plot_drag",
    "plot_fields",
    "plot_lengths",
    "plot_stations",
    "plot_strouhal",
]

_STATIONS = (0.0, 4.0, 8.0)  # distances behind the centre


def plot_cavities(results: Sequence["CavityResult"]) -> "Figure":
    """Draw u and v through the centre of cavities with the values of Ghia et al., Fig. 10."""
    figure = new_figure(9, 4.5)
    left, right = figure.subplots(1, 2)
    for k, result in enumerate(results):
        n = len(result.x)
        ghia = ghia_profiles(result.reynolds)
        name = f"Re = {result.reynolds:g}"
        left.plot(result.u[:, n // 2], result.y, f"C{k}", label=name)
        left.plot(ghia["u"], ghia["y"], f"C{k}o", mfc="none", ms=4)
        right.plot(result.x, result.v[n // 2], f"C{k}", label=name)
        right.plot(ghia["x"], ghia["v"], f"C{k}o", mfc="none", ms=4)
    left.plot([], [], "ko", mfc="none", ms=4, label="Ghia et al. 1982")
    left.set(xlabel="u on x = 1/2", ylabel="y")
    right.set(xlabel="x", ylabel="v on y = 1/2")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    left.legend(fontsize=8)
    return figure


def plot_lengths(lengths: Mapping[float, float], published: Mapping[float, float]) -> "Figure":
    """Draw the recirculation length from the centre over the Reynolds number, Fig. 13."""
    figure = new_figure(6, 4.5)
    axes = figure.add_subplot()
    axes.plot(list(published), list(published.values()), "k-", lw=0.8, label="Breuer et al. 2000")
    axes.plot(list(lengths), list(lengths.values()), "C0o", label="here")
    axes.set(xlabel="Reynolds number", ylabel="recirculation length Lc/D, from the centre")
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def plot_drag(drags: Mapping[float, float], published: Mapping[float, float]) -> "Figure":
    """Draw the drag of the steady flows with that of Breuer et al. (2000), as Fig. 13."""
    figure = new_figure(6, 4.5)
    axes = figure.add_subplot()
    near = {re: cd for re, cd in published.items() if min(drags) <= re <= max(drags)}
    axes.plot(list(near), list(near.values()), "ks", mfc="none", label="Breuer et al. 2000")
    axes.plot(list(drags), list(drags.values()), "C0o-", label="here")
    axes.set(xlabel="Reynolds number", ylabel="drag coefficient")
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def plot_centre_line(result: "CylinderResult") -> "Figure":
    """Draw u and v along y = 0, Fig. 14."""
    figure = new_figure(8, 4)
    axes = figure.add_subplot()
    row = result.psi.shape[0] // 2
    place = result.x - result.grid.centre
    axes.plot(place, result.u[row], "C0", label="u")
    axes.plot(place, result.v[row], "C1", label="v")
    axes.axvspan(-0.5, 0.5, color="0.8")
    axes.set(
        xlabel="x (D), from the centre of the cylinder",
        ylabel="velocity on y = 0 (Umax)",
        title=f"Re = {result.reynolds:g}, t = {result.time:.4g} D/Umax",
    )
    axes.grid(alpha=0.3)
    axes.legend()
    return figure


def plot_stations(result: "CylinderResult") -> "Figure":
    """Draw u and v over y at x = 0, 4 and 8 from the centre, Fig. 15."""
    figure = new_figure(8, 4.5)
    left, right = figure.subplots(1, 2, sharey=True)
    for distance in _STATIONS:
        i = int(np.argmin(np.abs(result.x - result.grid.centre - distance)))
        left.plot(result.u[:, i], result.y, label=f"x = {distance:g} D")
        right.plot(result.v[:, i], result.y, label=f"x = {distance:g} D")
    left.set(xlabel="u (Umax)", ylabel="y (D)")
    right.set(xlabel="v (Umax)")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    right.legend()
    figure.suptitle(f"Re = {result.reynolds:g}, t = {result.time:.4g} D/Umax")
    return figure


def plot_fields(results: Sequence["CylinderResult"], *, vorticity: bool = False) -> "Figure":
    """Draw the streamlines or the vorticity of several flows, Figs. 16 to 18."""
    figure = new_figure(10 if vorticity else 9, 0.5 + 3 * len(results))
    panels = np.ravel(figure.subplots(len(results), sharex=True))
    drawn = None
    for axes, result in zip(panels, results, strict=True):
        if vorticity:
            drawn = paint_vorticity(axes, result)
        else:
            plot_streamlines(axes, result)
        state = "steady" if result.steady else f"t = {result.time:.4g} D/Umax"
        axes.set_title(f"Re = {result.reynolds:g}, {state}")
        axes.label_outer()
    if drawn is not None:
        add_scale(list(panels), drawn, SCALE, fraction=0.02, aspect=16 * len(results))
    return figure


def plot_strouhal(numbers: Mapping[float, "Strouhal"]) -> "Figure":
    """Draw the Strouhal number over the Reynolds number, part of Fig. 18."""
    figure = new_figure(6, 4)
    axes = figure.add_subplot()
    axes.errorbar(
        list(numbers),
        [found.value for found in numbers.values()],
        [found.uncertainty for found in numbers.values()],
        fmt="C0o-",
        capsize=3,
    )
    axes.set(xlabel="Reynolds number", ylabel="Strouhal number f D / Umax")
    axes.grid(alpha=0.3)
    return figure

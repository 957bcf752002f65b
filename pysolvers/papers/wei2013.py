"""The experiments of Wei, Jang, Zhang and Jia (2013): ADI by parallel cyclic reduction on a GPU.

Parallelizing alternating direction implicit solver on GPUs, Procedia Computer Science 18 (ICCS
2013), 389-398: GTX 680 compared with one core of an i7-3770K, single precision, 100 steps.
"""

from typing import Any

import numpy as np

from .._boundary import Dirichlet
from ..heat import HeatADI
from ..heat._settings import Scheme

__all__ = ["advance_of_a_mode", "heated_plate"]

_SPACING = _STEP = 0.01


def heated_plate(nodes: int | tuple[int, ...], **options: Any) -> HeatADI:
    """Return the solver of the plate of the experiments, with one hot and three cold sides.

    Parameters
    ----------
    nodes : int or tuple of int
        Nodes per side, or along each axis.
    **options
        Options of `HeatADI`; default: single precision and the scheme of the paper.

    Returns
    -------
    solver : HeatADI
        The solver at time 0.
    """
    shape = (nodes, nodes) if isinstance(nodes, int) else nodes
    cold = dict.fromkeys(("x-", "x+", "y-"), Dirichlet(0.0))
    sides = {**cold, "y+": Dirichlet(1.0)}
    if len(shape) == 3:
        sides |= {"z-": Dirichlet(0.0), "z+": Dirichlet(0.0)}
    settings: dict[str, Any] = {
        "dtype": np.float32,
        "scheme": "wei2013",
        "damped_start": False,
    } | options
    return HeatADI(shape, _SPACING, _STEP, boundary=sides, initial=0.0, **settings)


def advance_of_a_mode(scheme: Scheme, r: float, *, nodes: int = 65, steps: int = 10) -> float:
    """Return the time by which a scheme advances the first sine mode, over the correct time.

    Parameters
    ----------
    scheme : str
        As in `HeatADI`.
    r : float
        dt divided by the square of the spacing.
    nodes : int, default: 65
        Nodes per side of the unit square.
    steps : int, default: 10
        Number of steps.

    Returns
    -------
    ratio : float
        1 for a time integrator.
    """
    h = 1.0 / (nodes - 1)
    dt = r * h * h
    line = np.sin(np.pi * np.linspace(0.0, 1.0, nodes))
    mode = np.outer(line, line)
    solver = HeatADI((nodes, nodes), h, dt, scheme=scheme, initial=mode, boundary=Dirichlet(0.0))
    middle = nodes // 2
    factor = solver.step(steps).u[middle, middle] / mode[middle, middle]
    return float(-np.log(factor) / (2 * np.pi**2 * dt * steps))

"""The experiments of Wei, Jang, Zhang and Jia (2013): ADI by parallel cyclic reduction on a GPU.

Parallelizing alternating direction implicit solver on GPUs, Procedia Computer Science 18 (ICCS
2013), 389-398: GTX 680 compared with one core of an i7-3770K, single precision, 100 steps.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from .._boundary import Dirichlet
from ..heat import HeatADI
from ..heat.adi import Scheme

__all__ = [
    "BLOCKS",
    "GRIDS",
    "MAPPINGS",
    "MEMORIES",
    "PUBLISHED_DIFFERENCES",
    "PUBLISHED_SPEEDUPS",
    "advance_of_a_mode",
    "heated_plate",
    "relative_difference",
    "step_seconds",
]

GRIDS = (1024, 2048, 4096, 8192)
MAPPINGS = ("C1", "C2", "C3", "C4")
MEMORIES = ("baseline", "texture", "transpose")
BLOCKS = (32, 64, 128, 256, 512)

PUBLISHED_SPEEDUPS: Mapping[str, Mapping[int, tuple[float, float, float, float]]] = {
    "baseline": {
        1024: (33.3, 77.2, 33.4, 78.8),
        2048: (21.3, 59.4, 21.4, 60.4),
        4096: (15.7, 51.0, 15.7, 51.9),
        8192: (12.2, 43.8, 12.1, 44.3),
    },
    "texture": {
        1024: (45.0, 103.1, 45.8, 103.0),
        2048: (24.9, 58.9, 25.8, 58.4),
        4096: (18.0, 63.4, 18.3, 63.2),
        8192: (13.8, 52.2, 14.1, 51.4),
    },
    "transpose": {
        1024: (112.3, 118.0, 109.6, 119.6),
        2048: (97.1, 100.1, 96.1, 102.2),
        4096: (78.9, 80.1, 77.8, 82.8),
        8192: (68.7, 69.4, 67.4, 71.5),
    },
}
"""Times faster than one core, blocks of 128 threads: by memory and grid, one a mapping."""

PUBLISHED_DIFFERENCES: Mapping[int, float] = {
    1024: 2.87e-6,
    2048: 2.90e-6,
    4096: 2.92e-6,
    8192: 2.93e-6,
}
"""Relative l2 difference of the field of the GPU and of the CPU after 100 steps."""

_SPACING = _STEP = 0.01


@dataclass(frozen=True, slots=True)
class StepTime:
    """Time of a step, and of its parts if they were measured.

    Parameters
    ----------
    step : float
        Seconds of a step, in a call of many steps.
    parts : dict of str to float
        Seconds by stage.
    """

    step: float
    parts: dict[str, float]


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


def step_seconds(solver: HeatADI, steps: int, warm_up: int = 2) -> StepTime:
    """Measure the steps of a solver.

    Parameters
    ----------
    solver : HeatADI
        The solver, which is advanced.
    steps : int
        Number of measured steps.
    warm_up : int, default: 2
        Number of steps before the measurement, at least 1.

    Returns
    -------
    time : StepTime
        Time of one step.
    """
    with warnings.catch_warnings():  # the time does not depend on the accuracy of the step
        warnings.filterwarnings("ignore", "HeatADI.*too large for the solution", RuntimeWarning)
        solver.step(warm_up)
    before = solver.seconds
    start = perf_counter()
    solver.step(steps)
    step = (perf_counter() - start) / steps
    return StepTime(step, {k: (v - before[k]) / steps for k, v in solver.seconds.items()})


def relative_difference(nodes: int, steps: int = 100, **options: Any) -> float:
    """Return the relative l2 difference of two devices' fields.

    Parameters
    ----------
    nodes : int
        Nodes per side.
    steps : int, default: 100
        Number of steps from time 0.
    **options
        Options of the solver on the device.

    Returns
    -------
    difference : float
        Norm of the difference of ``device="cuda"`` and the CPU, over that of the CPU.
    """
    there = heated_plate(nodes, device="cuda", **options).step(steps).u.astype(float)
    same = {name: options[name] for name in ("scheme", "dtype") if name in options}
    here = heated_plate(nodes, **same).step(steps).u.astype(float)
    return float(np.linalg.norm(there - here) / np.linalg.norm(here))


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

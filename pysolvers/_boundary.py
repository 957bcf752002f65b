"""Boundary conditions: `Dirichlet`, `Neumann` and `Robin`."""

from dataclasses import dataclass
from typing import Any

__all__ = ["Boundary", "Dirichlet", "Neumann", "Robin"]


@dataclass(frozen=True, slots=True, eq=False)
class Dirichlet:
    """The value of the solution is given on a side.

    Parameters
    ----------
    value : number, array or callable, default: 0
        Value of the solution. The docstring of each solver states the shape of arrays and the
        arguments of functions.
    """

    value: Any = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Neumann:
    r"""The flux into the domain, or the derivative along the outward normal, is given.

    Parameters
    ----------
    flux : number, array or callable, default: 0
        For heat conduction the inflow :math:`k\,\partial T/\partial n`: a positive flux heats
        the domain. For convection and diffusion :math:`\partial u/\partial n`.
    """

    flux: Any = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Robin:
    r"""Exchange with the surroundings: :math:`k\,\partial T/\partial n = h (T_\infty - T)`.

    Parameters
    ----------
    coefficient : float
        The coefficient h, at least 0.
    ambient : number, array or callable, default: 0
        Ambient value :math:`T_\infty`. The docstring of each solver states the shape of arrays
        and the arguments of functions.
    """

    coefficient: float
    ambient: Any = 0.0


Boundary = Dirichlet | Neumann | Robin

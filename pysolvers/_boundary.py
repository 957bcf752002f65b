"""What the sides of a domain prescribe."""

from dataclasses import dataclass
from typing import Any

__all__ = ["Boundary", "Dirichlet", "Neumann", "Robin"]


@dataclass(frozen=True, slots=True, eq=False)
class Dirichlet:
    """The solution itself is given on a side.

    Parameters
    ----------
    value : number, array or callable, default: 0
        The solution there. What an array or a function may be, the solver says.
    """

    value: Any = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Neumann:
    r"""The flux into the domain, or the derivative along the outward normal, is given.

    Parameters
    ----------
    flux : number, array or callable, default: 0
        For heat :math:`k\,\partial T/\partial n`, the inflow: positive warms. For convection
        and diffusion :math:`\partial u/\partial n`.
    """

    flux: Any = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Robin:
    r"""Exchange with an ambient: :math:`k\,\partial T/\partial n = h (T_\infty - T)`.

    Parameters
    ----------
    coefficient : float
        The coefficient h, at least 0.
    ambient : number, array or callable, default: 0
        :math:`T_\infty`. What an array or a function may be, the solver says.
    """

    coefficient: float
    ambient: Any = 0.0


Boundary = Dirichlet | Neumann | Robin

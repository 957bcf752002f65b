r"""Vorticity on a wall at rest, from the streamfunction near the wall.

    omega_w = (a (psi_1 - psi_w) + b (psi_2 - psi_w)) / h^2 + c omega_1

with the values one and two nodes away from the wall along its normal:

    thom     a = -2             order 1    Thom 1933
    woods    a = -3, c = -1/2   order 2    Woods 1954
    jensen   a = -4, b = 1/2    order 2    Jensen 1959

The kernels of the cavity contain the same formulas, with the speed of the lid.
"""

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

Wall = Literal["jensen", "woods", "thom"]


class WallFormula(NamedTuple):
    """Coefficients of the formula.

    Parameters
    ----------
    psi1, psi2 : float
        a and b of the differences of psi.
    omega1 : float
        c.
    """

    psi1: float
    psi2: float
    omega1: float

    @property
    def gain(self) -> float:
        """Reaction of the wall to 1 of omega_1, psi_1 and psi_2 / 2 in units of h^2, negated."""
        return -(self.psi1 + 2 * self.psi2) - self.omega1

    def at(self, psi: tuple[Array, Array], omega1: Array, wall: Any, h: float) -> Array:
        """Return the vorticity on a wall.

        Parameters
        ----------
        psi : pair of ndarray
            Streamfunction one and two nodes away.
        omega1 : ndarray
            Vorticity one node away.
        wall : float or ndarray
            Streamfunction on the wall.
        h : float
            Distance of the nodes along the normal.
        """
        near, far = psi
        found: Array = (self.psi1 / h**2) * (near - wall)
        if self.psi2:
            found += (self.psi2 / h**2) * (far - wall)
        if self.omega1:
            found += self.omega1 * omega1
        return np.asarray(found)


WALLS = {
    "thom": WallFormula(-2.0, 0.0, 0.0),
    "woods": WallFormula(-3.0, 0.0, -0.5),
    "jensen": WallFormula(-4.0, 0.5, 0.0),
}


def cavity_wall_residual(wall: str, psi: Array, omega: Array, lid_velocity: float) -> float:
    """Return the root mean square of the formula minus omega on the walls of a cavity.

    Parameters
    ----------
    wall : str
        Name of the formula.
    psi, omega : ndarray
        Fields on the unit square, shape (n, n), with psi = 0 on the walls.
    lid_velocity : float
        Velocity of the wall y = 1. Its formula contains psi minus that of the moving wall,
        -lid_velocity times the distance.
    """
    h = 1.0 / (psi.shape[0] - 1)
    total = 0.0
    for turned, turned_omega, speed in (
        (psi, omega, 0.0),
        (psi[::-1], omega[::-1], lid_velocity),
        (psi.T, omega.T, 0.0),
        (psi.T[::-1], omega.T[::-1], 0.0),
    ):
        near, far = (turned[k, 1:-1] + k * h * speed for k in (1, 2))
        found = WALLS[wall].at((near, far), turned_omega[1, 1:-1], 0.0, h)
        total += float(np.square(found - turned_omega[0, 1:-1]).mean())
    return float(np.sqrt(total / 4))

r"""Vorticity on a wall at rest, from the streamfunction near the wall.

    omega_w = (a (psi_1 - psi_w) + b (psi_2 - psi_w)) / h^2 + c omega_1

with the values one and two nodes away from the wall along its normal:

    thom     a = -2             order 1    Thom 1933
    woods    a = -3, c = -1/2   order 2    Woods 1954
    jensen   a = -4, b = 1/2    order 2    Jensen 1959

The kernels of the cavity contain the same formulas, with the speed of the lid.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["WALLS", "WallFormula"]

Array = NDArray[Any]


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

r"""The streamfunction in a channel around a body, by alternating sweeps of lines.

Cycles of the iteration of Peaceman and Rachford (1955) for -lap psi = omega, with A = -delta_xx and
B = -delta_yy,

    (A + r) p   = (r - B) psi + omega
    (B + r) psi = (r - A) p   + omega

and the parameters r of Wachspress (1962),

    r_j = b (a/b)^(j/(J-1)), j = 0 .. J - 1,    J - 1 the least with (sqrt(2) - 1)^(2(J-1)) <= a/b,

where a and b bound the eigenvalues of A and B. Without a body, A and B commute, and a cycle reduces
every error by a factor bounded independently of the grid. Around the body, whose nodes have
identity rows, they do not commute; a cycle was measured to reduce the residual by a factor of 20
to 30 on 80 x 400 intervals (J = 10). Cycles follow each other until the residual is below the
tolerance.

psi on the body is one value. With phi the solution without omega that is 1 on the body and 0 on
the boundary, psi + d phi has another value on the body, and the circulation around the box, which
is the flux of -grad psi through its faces, is linear in d.

The backends make the cycles (csrc/cpu/flow/cylinder.c, cuda/flow/cylinder_psi_lines.cu). Words
moved per unknown: 6 for each parameter. Operations: 2 (8 + 7). Stable: all rows are diagonally
dominant.
"""

from math import ceil, log, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._body_poisson import BodyPoisson
from ._channel import ChannelGrid

Array = NDArray[Any]


class LineCycle:
    """Parameters of a cycle, and phi.

    Parameters
    ----------
    grid : ChannelGrid
        The grid.
    direct : BodyPoisson
        The direct solver of the same equations.
    """

    def __init__(self, grid: ChannelGrid, direct: BodyPoisson) -> None:
        #: Parameters of a cycle.
        self.shifts = _wachspress(
            min(pi / grid.length, pi / (2 * abs(grid.y[0]))) ** 2
            / (4 if direct.free_outlet else 1),
            4 / min(grid.hx, grid.hy) ** 2,
        )
        #: psi without omega that is 1 on the body and 0 on the boundary.
        self.unit = np.zeros(grid.shape)
        direct.solve(np.zeros(grid.shape), self.unit, value=1.0)
        #: Circulation of `unit` around the box.
        self.unit_circulation = _circulation(grid, self.unit)


def _circulation(grid: ChannelGrid, psi: Array) -> float:
    """Return the flux of -grad psi through the faces of the cells of the nodes of the box."""
    rows, columns = grid.box
    part = psi[rows.first - 1 : rows.last + 2, columns.first - 1 : columns.last + 2]
    along_x = (part[1:-1, -1] - part[1:-1, -2]).sum() + (part[1:-1, 0] - part[1:-1, 1]).sum()
    along_y = (part[-1, 1:-1] - part[-2, 1:-1]).sum() + (part[0, 1:-1] - part[1, 1:-1]).sum()
    ratio = grid.hy / grid.hx
    return -float(along_x * ratio + along_y / ratio)


def _wachspress(least: float, most: float) -> list[float]:
    """Return the parameters for eigenvalues between two bounds, the largest first."""
    count = 1 + ceil(log(most / least) / (-2 * log(sqrt(2) - 1)))
    return [most * (least / most) ** (j / (count - 1)) for j in range(count)]

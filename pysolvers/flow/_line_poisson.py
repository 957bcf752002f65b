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

Words moved per unknown: 2 (5 + 6) for each parameter. Operations: 2 (8 + 7). Stable: all rows are
diagonally dominant.
"""

from math import ceil, log, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..tridiagonal import solve_tridiagonal
from ._body_poisson import BodyPoisson
from ._channel import ChannelGrid

__all__ = ["LinePoisson"]

Array = NDArray[Any]

_MOST_CYCLES = 100  # a solution from zero to 1e-12 takes about 12
_STAGNATION = 0.9  # a cycle that leaves more than this share of the residual is the last one


class LinePoisson:
    """Solver of -lap psi = omega around the cylinder; parameters as in `BodyPoisson`.

    Parameters
    ----------
    tolerance : float
        Bound of the residual, relative to the largest absolute value of omega.
    """

    #: `solve` starts from the values of psi at the unknowns.
    needs_guess = True

    def __init__(
        self,
        grid: ChannelGrid,
        dtype: np.dtype,
        threads: int,
        *,
        free_outlet: bool,
        tolerance: float,
    ) -> None:
        self._grid, self._free_outlet = grid, free_outlet
        #: Bound of the residual, relative to the largest absolute value of omega.
        self.tolerance = tolerance
        #: The direct solver of the same equations.
        self.direct = direct = BodyPoisson(grid, dtype, threads, free_outlet=free_outlet)
        self.threads = direct.threads
        #: Cycles of the last solution.
        self.cycles = 0
        ny, nx = grid.shape
        columns = nx - 1 if free_outlet else nx - 2
        self._inner = slice(1, ny - 1), slice(1, 1 + columns)
        self._over_x, self._over_y = 1 / grid.hx**2, 1 / grid.hy**2
        self._along = {}
        for axis, over in (("x", self._over_x), ("y", self._over_y)):
            lower = np.full((ny - 2, columns), -over, dtype)
            upper = lower.copy()
            if axis == "x" and free_outlet:
                lower[:, -1] = -2 * over
            for band in (lower, upper):
                band[grid.body_unknowns] = 0
            self._along[axis] = lower, upper
        #: Parameters of a cycle.
        self.shifts = _wachspress(
            min(pi / grid.length, pi / (2 * abs(grid.y[0]))) ** 2 / (4 if free_outlet else 1),
            4 * max(self._over_x, self._over_y),
        )
        unit = np.zeros(grid.shape, dtype)
        direct.solve(np.zeros(grid.shape, dtype), unit, value=1.0)
        #: psi without omega that is 1 on the body and 0 on the boundary, and its circulation.
        self.unit = unit
        self.unit_circulation = self._circulation(unit)

    def solve(
        self,
        omega: Array,
        psi: Array,
        *,
        value: float = 0.0,
        circulation: float | None = None,
        sources: float = 0.0,
    ) -> float:
        """Solve as `BodyPoisson.solve`; `psi` contains an estimate of the solution.

        With a given circulation the iteration keeps the value that the estimate has on the
        body; the value is changed after it.
        """
        del sources
        body = self._grid.body
        if circulation is not None:
            value = float(psi[body][0, 0])
        psi[body] = value
        residual, largest = self._residual(omega, psi)
        before = float("inf")
        self.cycles = 0
        # NaN fails the comparisons.
        while (
            residual > self.tolerance * largest
            and residual < _STAGNATION * before
            and self.cycles < _MOST_CYCLES
        ):
            for shift in self.shifts:
                self._half(omega, psi, shift, "x", value)
                self._half(omega, psi, shift, "y", value)
            self.cycles += 1
            before = residual
            residual, _ = self._residual(omega, psi)
        if circulation is not None:
            change = (circulation - self._circulation(psi)) / self.unit_circulation
            psi[self._inner] += change * self.unit[self._inner]
            value += change
            psi[body] = value
        return value

    def _second(self, psi: Array, axis: str) -> Array:
        """Return the second difference at the unknowns."""
        rows, columns = self._inner
        centre = psi[rows, columns]
        if axis == "y":
            return np.asarray((psi[2:, columns] - 2 * centre + psi[:-2, columns]) * self._over_y)
        east = psi[rows, 2 : columns.stop + 1]
        if self._free_outlet:  # the node behind the outlet is that before it
            east = np.concatenate([east, psi[rows, -2:-1]], axis=1)
        return np.asarray((east - 2 * centre + psi[rows, : columns.stop - 1]) * self._over_x)

    def _residual(self, omega: Array, psi: Array) -> tuple[float, float]:
        """Return the largest absolute values of the residual and of omega at the unknowns."""
        source = omega[self._inner].copy()
        source[self._grid.body_unknowns] = 0
        found = self._second(psi, "x") + self._second(psi, "y") + source
        found[self._grid.body_unknowns] = 0
        return float(np.abs(found).max()), float(np.abs(source).max())

    def _half(self, omega: Array, psi: Array, shift: float, axis: str, value: float) -> None:
        """Solve the lines along an axis."""
        over = self._over_x if axis == "x" else self._over_y
        rhs = self._second(psi, "y" if axis == "x" else "x")
        rhs += omega[self._inner]
        rhs += shift * psi[self._inner]
        if axis == "x":
            rhs[:, 0] += over * psi[1:-1, 0]
            if not self._free_outlet:
                rhs[:, -1] += over * psi[1:-1, -1]
        else:
            columns = self._inner[1]
            rhs[0] += over * psi[0, columns]
            rhs[-1] += over * psi[-1, columns]
        diag = shift + 2 * over
        rhs[self._grid.body_unknowns] = diag * value
        lower, upper = self._along[axis]
        solve_tridiagonal(
            lower,
            rhs.dtype.type(diag),
            upper,
            rhs,
            axis=1 if axis == "x" else 0,
            out=rhs,
            threads=self.threads,
        )
        psi[self._inner] = rhs

    def _circulation(self, psi: Array) -> float:
        """Return the flux of -grad psi through the faces of the cells of the nodes of the box."""
        rows, columns = self._grid.box
        part = psi[rows.first - 1 : rows.last + 2, columns.first - 1 : columns.last + 2].astype(
            np.float64
        )
        along_x = (part[1:-1, -1] - part[1:-1, -2]).sum() + (part[1:-1, 0] - part[1:-1, 1]).sum()
        along_y = (part[-1, 1:-1] - part[-2, 1:-1]).sum() + (part[0, 1:-1] - part[1, 1:-1]).sum()
        ratio = self._grid.hy / self._grid.hx
        return -float(along_x * ratio + along_y / ratio)


def _wachspress(least: float, most: float) -> list[float]:
    """Return the parameters for eigenvalues between two bounds, the largest first."""
    count = 1 + ceil(log(most / least) / (-2 * log(sqrt(2) - 1)))
    return [most * (least / most) ** (j / (count - 1)) for j in range(count)]

r"""The streamfunction in a channel around a body, solved directly.

The equations -lap psi = omega hold at all nodes but those of the body, where psi has one value
psi_c. Without the body, a sine transform along y and one tridiagonal system along x for each wave
solve them (Hockney 1965). Charges q at the nodes of the surface of the body make

    psi = psi_0 + G q,    (G q)(s) = psi_c - psi_0(s)    at the nodes s of the surface,

where psi_0 is the solution without charges and without sources in the body, and G contains the
Green's functions (Buzbee, Dorr, George and Golub 1971). psi is then discretely harmonic inside the
body and equal to psi_c at all nodes of the body. G is computed and factored once. psi_0 is needed
on the surface only, so that one transform forward and one back are enough: the tridiagonal systems
are solved twice, first for psi_0 and, with the transformed charges added, for psi.

The circulation of the velocity around a box of nodes that contains the body is the sum of omega
and of -q over the box times the area of a cell, because the sum of the discrete Laplacian over the
box is the flux of grad psi through its sides. It is linear in psi_c, so that either can be given.

The backends solve alike in every step (csrc/cpu/flow/cylinder_psi.inc,
cuda/flow/cylinder_transform.cu); this solver gives them G, and psi at time 0. Stable: the matrices
of all waves are diagonally dominant, and G is symmetric and definite.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._axis import DIRICHLET, NEUMANN
from ..._extras import extra_module
from ...poisson._axes import Axis
from ...poisson._host import HostPoisson
from ._channel import ChannelGrid

Array = NDArray[Any]


class BodyPoisson:
    """Solver of -lap psi = omega around the cylinder.

    Parameters
    ----------
    grid : ChannelGrid
        The grid.
    threads : int
        0 leaves the choice to the backend.
    free_outlet : bool
        Whether the derivative along x is zero at the outlet; otherwise psi is given there.
    """

    def __init__(self, grid: ChannelGrid, threads: int, *, free_outlet: bool) -> None:
        ny, nx = grid.shape
        ends = DIRICHLET, NEUMANN if free_outlet else DIRICHLET
        axes = (
            Axis("y", ny, True, (DIRICHLET, DIRICHLET), grid.y, grid.hy),
            Axis("x", nx, True, ends, grid.x, grid.hx),
        )
        self._grid, self._free_outlet = grid, free_outlet
        self._host = HostPoisson(axes, np.dtype(np.float64), threads)
        self._unknowns = axes[0].unknowns, axes[1].unknowns
        shape = axes[0].count, axes[1].count
        self._waves, self._lines = np.empty(shape), np.empty(shape)
        rows, columns = grid.body_unknowns
        modes = np.arange(1, ny - 1)
        places = np.arange(rows.start + 1, rows.stop + 1)
        self._sines = np.sin(np.pi / (ny - 1) * (np.outer(places, modes) % (2 * (ny - 1))))
        self._columns = columns
        block = rows.stop - rows.start, columns.stop - columns.start
        inside = np.zeros(block, bool)
        inside[1:-1, 1:-1] = True
        self._surface = np.nonzero(~inside)
        self._charges = np.zeros(block)
        linalg = extra_module("scipy.linalg", "poisson")
        self._solve_dense = partial(linalg.lu_solve, check_finite=False)  # steps are checked later
        self._lu = linalg.lu_factor(self._green())
        ones = np.ones(len(self._surface[0]))
        # The charges that raise psi on the body by 1.
        self._unit_charges = self._solve_dense(self._lu, ones)
        self._area = grid.hx * grid.hy

    @property
    def free_outlet(self) -> bool:
        """Whether the derivative along x is zero at the outlet."""
        return self._free_outlet

    @property
    def surface(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Rows and columns of the surface nodes, from the first row and column of the body."""
        rows, columns = self._surface
        return rows, columns

    def inverse(self) -> NDArray[np.float64]:
        """Return the charges for psi of 1 at one surface node and 0 at the others, in columns."""
        return np.asarray(self._solve_dense(self._lu, np.eye(len(self._surface[0]))), np.float64)

    def solve(
        self,
        omega: Array,
        psi: Array,
        *,
        value: float = 0.0,
        circulation: float | None = None,
        sources: float = 0.0,
    ) -> float:
        """Solve, and write the unknowns and the nodes of the body to `psi`.

        Parameters
        ----------
        omega : ndarray, shape (ny, nx)
            The vorticity; the nodes of the body are not read.
        psi : ndarray, shape (ny, nx)
            For the streamfunction; contains its values on the boundary.
        value : float
            psi on the body.
        circulation : float, optional
            Circulation around the box; `value` is then not used.
        sources : float
            Sum of omega over the nodes of the box that are not nodes of the body.

        Returns
        -------
        value : float
            psi on the body.
        """
        waves, lines, host = self._waves, self._lines, self._host
        np.negative(omega[self._unknowns], out=waves)
        waves[self._grid.body_unknowns] = 0
        inner_rows, inner_columns = self._unknowns
        waves[:, 0] -= psi[inner_rows, 0] / self._grid.hx**2
        if not self._free_outlet:
            waves[:, -1] -= psi[inner_rows, -1] / self._grid.hx**2
        waves[0] -= psi[0, inner_columns] / self._grid.hy**2
        waves[-1] -= psi[-1, inner_columns] / self._grid.hy**2
        host.transform(waves)
        host.solve_lines(waves, lines)
        intervals = self._grid.intervals[0]
        # The inverse of the sine transform at the nodes of the body only.
        found = (self._sines @ lines[:, self._columns] / intervals)[self._surface]
        charges = self._solve_dense(self._lu, -np.asarray(found, np.float64))
        if circulation is not None:
            missing = circulation / self._area - sources + charges.sum()
            value = float(-missing / self._unit_charges.sum())
        charges += value * self._unit_charges
        self._charges[self._surface] = charges
        waves[:, self._columns] += 2 * (self._sines.T @ self._charges)
        host.solve_lines(waves, waves)
        host.transform_back(waves, psi[self._unknowns])
        psi[self._grid.body] = value
        return value

    def _green(self) -> NDArray[np.float64]:
        """Return the response of psi on the surface to charges there, without the body."""
        rows, columns = self._surface
        count = self._columns.stop - self._columns.start
        waves = len(self._sines[0])
        # response[k, i, m]: value in column i of the body to a unit in column m, for wave k.
        response = np.empty((waves, count, count))
        unit = np.zeros_like(self._lines)
        for m in range(count):
            unit[:] = 0
            unit[:, self._columns.start + m] = 1
            self._host.solve_lines(unit, unit)
            response[:, :, m] = unit[:, self._columns]
        sines = self._sines * (2 / self._grid.intervals[0])
        green = np.empty((len(rows), len(rows)))
        for k, (j, i) in enumerate(zip(rows, columns, strict=True)):
            weights = sines[j][:, None] * response[:, i, :]  # (waves, column of the charge)
            green[k] = (self._sines @ weights)[rows, columns]
        return green

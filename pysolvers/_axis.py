r"""One axis of a grid: coordinates, control volumes, faces, sides and rows.

Row i of the unknowns along an axis is the balance of fluxes over a control volume,

    (A u)[i] = ( g[i+1] (u[i+1] - u[i]) - g[i] (u[i] - u[i-1]) ) / v[i],    g = m / d,

with m the areas of the faces between the volumes, d the distances between neighbours, and v the
control volumes. It is the same for all axes. V A is symmetric, V = diag(v). With p = 0 (cartesian),
1 (the radius of a cylinder) or 2 (of a sphere), and R the largest radius,

    m(r) = (r / R)^p,    v[i] = integral of m over the volume.

On nodes the volumes end midway between the nodes, and half a volume belongs to a side that is not
Dirichlet; on cells the volumes are the cells, and a side lies half a cell away. The couplings g to
the sides are, with h the size of the cell next to a side,

    side                          nodes    cells
    Dirichlet                     m / d    2 m / h
    Robin, H (value - u)          m H      m / (1 / H + h / 2)
    Neumann, and the axis r = 0   0        0

A side adds g value / v to its row, or m flux / v for a flux. On a uniform grid these rows are the
three-point formula with the ghost value 2 b - u[0] (Dirichlet, cells), u[1] + 2 h g (Neumann,
nodes) or u[0] + h g (Neumann, cells), where b is the value and g the outward derivative. The rows
are of second order on uniform grids, and on stretched grids x = x(s) with smooth x(s).
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

DIRICHLET, NEUMANN, ROBIN, PERIODIC = "Dirichlet", "Neumann", "Robin", "periodic"
ON_AXIS = "axis"  # the end r = 0, which is no side

ROUNDING = 4
"""Rounding errors of coordinates, in units of the largest one, that equal distances can have."""

POWERS = {"cartesian": 0, "cylinder": 1, "sphere": 2}
"""Power of r in the area of a face, by geometry."""


@dataclass(frozen=True, eq=False)
class GridAxis:
    """One axis of a grid.

    Parameters
    ----------
    name : str
        ``"x"``, ``"y"`` or ``"z"``.
    size : int
        Length of this axis of the solution.
    on_nodes : bool
        Whether the values lie on nodes, the ends among them, or in cells.
    ends : (str, str)
        Kinds of the sides at the lower and the upper end.
    edges : ndarray of float
        Nodes, or faces of the cells, in ascending order; ``size + 1`` of them for cells and for
        periodic nodes, where the last one is the image of the first.
    step : float or None
        Distance of the edges if it is constant, otherwise None.
    power : {0, 1, 2}, default: 0
        Power p of the radius in the areas; the edges of a radial axis are not negative.
    exchange : (float, float), default: (0, 0)
        Coefficients H of Robin sides.
    """

    name: str
    size: int
    on_nodes: bool
    ends: tuple[str, str]
    edges: Array
    step: float | None
    power: int = 0
    exchange: tuple[float, float] = (0.0, 0.0)

    @property
    def holds(self) -> tuple[bool, bool]:
        """Whether the values next to the lower and the upper end are there."""
        return True, True

    @property
    def is_periodic(self) -> bool:
        """Whether the axis is periodic."""
        return self.ends[0] == PERIODIC

    @property
    def has_null_vector(self) -> bool:
        """Whether the rows annihilate constants."""
        return DIRICHLET not in self.ends and not any(self.exchange)

    @cached_property
    def places(self) -> Array:
        """Coordinates of the values."""
        if self.on_nodes:
            return self.edges[: self.size]
        return (self.edges[1:] + self.edges[:-1]) / 2

    @property
    def unknowns(self) -> slice:
        """The values that are unknown: all but the nodes on Dirichlet sides."""
        start, stop = (int(self.on_nodes and end == DIRICHLET) for end in self.ends)
        return slice(start, self.size - stop)

    @property
    def count(self) -> int:
        """Number of unknowns along the axis."""
        return self.unknowns.stop - self.unknowns.start

    @property
    def intervals(self) -> int:
        """Number of intervals between the nodes, or of cells."""
        return len(self.edges) - 1

    @cached_property
    def steps(self) -> Array:
        """Distances of the edges; exactly equal on a uniform axis.

        Exactly symmetric if the edges are symmetric up to their rounding errors.
        """
        if self.step is not None:
            return np.full(self.intervals, self.step)
        edges = self.edges
        halves = (edges - edges[::-1]) / 2
        rest = edges - halves
        rounding = ROUNDING * np.finfo(float).eps * np.abs(edges).max()
        return np.diff(halves if np.ptp(rest) <= rounding else edges)

    @cached_property
    def _bounds(self) -> Array:
        """Coordinates of the faces of the control volumes, unless the axis is periodic."""
        if not self.on_nodes:
            return self.edges
        middles = (self.edges[1:] + self.edges[:-1]) / 2
        bounds = np.concatenate([self.edges[:1], middles, self.edges[-1:]])
        return bounds[self.unknowns.start : self.unknowns.stop + 1]

    @cached_property
    def areas(self) -> Array:
        """Areas of the faces of the control volumes, the ends included."""
        if not self.power:
            return np.ones(self.count + 1)
        return (self._bounds / self.edges[-1]) ** self.power

    @cached_property
    def volumes(self) -> Array:
        """Control volumes of the unknowns."""
        if not self.power:
            return self.widths[self.unknowns]
        # The mean of the area over a volume: sums of positive numbers, right to a few eps.
        radii = self._bounds / self.edges[-1]
        low, high = radii[:-1], radii[1:]
        lengths = self.widths[self.unknowns]
        if self.power == 1:
            return lengths * (low + high) / 2
        return lengths * (low * low + low * high + high * high) / 3

    @cached_property
    def gaps(self) -> Array:
        """Distances of neighbouring values, on a periodic axis also of the last one and the first.

        That of cells is half of the sum of their sizes.
        """
        if self.on_nodes:
            return self.steps
        after = np.roll(self.steps, -1) if self.is_periodic else self.steps[1:]
        return (self.steps[: len(after)] + after) / 2

    @cached_property
    def widths(self) -> Array:
        """Lengths of the control volumes of all values, also of nodes on Dirichlet sides."""
        if not self.on_nodes:
            return self.steps
        if self.is_periodic:
            return (self.steps + np.roll(self.steps, 1)) / 2
        padded = np.concatenate([[0.0], self.steps, [0.0]])
        return (padded[1:] + padded[:-1]) / 2

    @cached_property
    def couplings(self) -> Array:
        """Area / distance of each unknown to its neighbours, those to the sides included."""
        inner = 1 / self.gaps
        if self.is_periodic:
            return np.concatenate([inner[-1:], inner])
        ends = [self._end_coupling(end) for end in (0, 1)]
        couplings = np.concatenate([ends[0], inner, ends[1]])
        return couplings * self.areas if self.power else couplings

    def _end_coupling(self, end: int) -> Array:
        """Return 1 / distance to a side; nothing where the distance is that of two nodes."""
        kind, exchange, step = self.ends[end], self.exchange[end], self.steps[-end]
        if kind == DIRICHLET:
            return np.array([] if self.on_nodes else [2 / step])
        if not exchange:
            return np.array([0.0])
        return np.array([exchange if self.on_nodes else 1 / (1 / exchange + step / 2)])

    @property
    def rows(self) -> tuple[Array, Array, Array]:
        """Lower, main and upper diagonal; lower[0] and upper[-1] couple to the sides."""
        lower = self.couplings[:-1] / self.volumes
        upper = self.couplings[1:] / self.volumes
        return lower, -(lower + upper), upper

    @property
    def sums(self) -> Array:
        """Sums of the rows, without lower[0] and upper[-1] unless the axis is periodic.

        They are zero but for the rows next to Dirichlet and Robin sides. The sums of the rows of a
        wave are these plus its eigenvalue, both without rounding errors relative to their size. In
        the main diagonal an eigenvalue that is small relative to 1 / spacing^2 would be lost.
        """
        sums = np.zeros(self.count)
        if not self.is_periodic:
            sums[0] -= self.couplings[0] / self.volumes[0]
            sums[-1] -= self.couplings[-1] / self.volumes[-1]
        return sums

    @property
    def pin(self) -> int:
        """The row whose unknown is zero in a singular system: that of the strongest couplings.

        The rounding errors of the sum of all rows, each times its volume, act as a source there.
        """
        if self.step is not None and not self.power:
            return 0
        return int((self.couplings[1:] + self.couplings[:-1]).argmax())

    def side_factor(self, end: int) -> float:
        """Return the factor of the value, the ambient value or the flux of a side in its row.

        Parameters
        ----------
        end : {0, 1}
            The lower or the upper end.
        """
        factor = self.areas[-end] if self.ends[end] == NEUMANN else self.couplings[-end]
        return float(factor / self.volumes[-end])

    @property
    def is_symmetric(self) -> bool:
        """Whether the rows are the same in reverse order, and not periodic."""
        is_even = self.ends[0] == self.ends[1] and self.exchange[0] == self.exchange[1]
        steps = self.steps
        return (
            is_even and not (self.is_periodic or self.power) and bool((steps == steps[::-1]).all())
        )

    @property
    def slopes(self) -> tuple[Array, Array]:
        """Lower and upper weights of the first derivative at the values between two others.

        Those of the value itself are minus their sums. They are exact for parabolas. The ends of
        an axis that is not periodic have weights of 0.
        """
        before, after = self._neighbours
        both = before + after
        found = -after / (before * both), before / (after * both)
        if not self.is_periodic:
            for weights in found:
                weights[[0, -1]] = 0
        return found

    @property
    def _neighbours(self) -> tuple[Array, Array]:
        """Distances of all values from those before and after; 1 where there is none."""
        if self.is_periodic:
            return np.roll(self.gaps, 1), self.gaps
        return np.append(1.0, self.gaps), np.append(self.gaps, 1.0)

    @property
    def whole_rows(self) -> tuple[Array, Array]:
        """Lower and upper diagonal for all values; 0 in the rows of nodes on Dirichlet sides."""
        found = np.zeros(self.size), np.zeros(self.size)
        for weights, own in zip(found, self.rows[::2], strict=True):
            weights[self.unknowns] = own
        return found

    @property
    def spacing(self) -> float:
        """Mean distance of the edges."""
        if self.step is not None:
            return self.step
        return float(self.edges[-1] - self.edges[0]) / self.intervals


def even_step(edges: Array) -> float | None:
    """Return the distance of the edges if it is constant up to their rounding errors."""
    step = float((edges[-1] - edges[0]) / (len(edges) - 1))
    rounding = ROUNDING * np.finfo(float).eps * np.abs(edges).max()
    # Rows next to each other then differ by less than the rounding errors of the coordinates.
    return step if np.abs(np.diff(edges) - step).max() <= rounding else None

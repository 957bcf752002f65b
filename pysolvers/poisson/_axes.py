r"""One axis of a grid: coordinates, control volumes, faces, sides, rows, waves.

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

The eigenvectors of uniform rows with p = 0 and without Robin sides are sines, cosines or complex
exponentials (Swarztrauber 1977), with the eigenvalues -(2/h sin(theta/2))^2. With N intervals
between the sides (nodes) or N cells:

    sides                   theta_k               nodes    cells
    Dirichlet, Dirichlet    k pi / N, k >= 1      DST-I    DST-II
    Dirichlet, Neumann      (k + 1/2) pi / N      DST-III  DST-IV
    Neumann, Dirichlet      (k + 1/2) pi / N      DCT-III  DCT-IV
    Neumann, Neumann        k pi / N, k >= 0      DCT-I    DCT-II
    periodic                2 k pi / N            FFT      FFT

`_modes` computes those of other rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from .._checks import require
from ._modes import Block, Modes, Rows, eigenvectors, halved

Array = NDArray[np.float64]

DIRICHLET, NEUMANN, ROBIN, PERIODIC = "Dirichlet", "Neumann", "Robin", "periodic"
ON_AXIS = "axis"  # the end r = 0, which is no side

ROUNDING = 4
"""Rounding errors of coordinates, in units of the largest one, that equal distances can have."""

POWERS = {"cartesian": 0, "cylinder": 1, "sphere": 2}
"""Power of r in the area of a face, by geometry."""

# Transform by the kinds of the two ends: function, type on nodes, type on cells.
_TRANSFORMS = {
    (DIRICHLET, DIRICHLET): ("dst", 1, 2),
    (DIRICHLET, NEUMANN): ("dst", 3, 4),
    (NEUMANN, DIRICHLET): ("dct", 3, 4),
    (NEUMANN, NEUMANN): ("dct", 1, 2),
    (PERIODIC, PERIODIC): ("fft", 0, 0),
}


@dataclass(frozen=True, eq=False)
class Axis:
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

    def __post_init__(self) -> None:
        least = 1
        if self.on_nodes:
            least = 3 if self.ends == (DIRICHLET, DIRICHLET) else 2
        elif self.is_periodic:
            least = 2
        require(
            (self.ends[0] == PERIODIC) == (self.ends[1] == PERIODIC),
            f"boundary: both sides along {self.name} must be periodic, or none of them",
            self.ends,
        )
        kind = "nodes" if self.on_nodes else "cells"
        ends = " and ".join(dict.fromkeys(self.ends))
        require(
            self.size >= least,
            f"shape must have at least {least} {kind} along {self.name} between {ends} sides",
            self.size,
        )

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

    @property
    def has_transform(self) -> bool:
        """Whether the eigenvectors are sines, cosines or exponentials."""
        return self.step is not None and self.power == 0 and self.ends in _TRANSFORMS

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
    def _steps(self) -> Array:
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
            return self._lengths
        # The mean of the area over a volume: sums of positive numbers, right to a few eps.
        radii = self._bounds / self.edges[-1]
        low, high = radii[:-1], radii[1:]
        if self.power == 1:
            return self._lengths * (low + high) / 2
        return self._lengths * (low * low + low * high + high * high) / 3

    @cached_property
    def _lengths(self) -> Array:
        """Lengths of the control volumes of the unknowns."""
        steps = self._steps
        if not self.on_nodes:
            return steps
        if self.is_periodic:
            return (steps + np.roll(steps, 1)) / 2
        padded = np.concatenate([[0.0], steps, [0.0]])
        return ((padded[1:] + padded[:-1]) / 2)[self.unknowns]

    @cached_property
    def couplings(self) -> Array:
        """Area / distance of each unknown to its neighbours, those to the sides included."""
        steps = self._steps
        if self.is_periodic:
            gaps = steps if self.on_nodes else (steps + np.roll(steps, -1)) / 2
            return 1 / np.concatenate([gaps[-1:], gaps])
        inner = 1 / steps if self.on_nodes else 2 / (steps[1:] + steps[:-1])
        ends = [self._end_coupling(end) for end in (0, 1)]
        couplings = np.concatenate([ends[0], inner, ends[1]])
        return couplings * self.areas if self.power else couplings

    def _end_coupling(self, end: int) -> Array:
        """Return 1 / distance to a side; nothing where the distance is that of two nodes."""
        kind, exchange, step = self.ends[end], self.exchange[end], self._steps[-end]
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
        the main diagonal an eigenvalue that is small beside 1 / spacing^2 would be lost.
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

    @cached_property
    def modes(self) -> Modes:
        """Eigenvectors of the rows."""
        if self.has_transform and not self.is_periodic:
            return self._sines()
        length = float(self.edges[-1] - self.edges[0])
        kind = self.is_periodic, self.has_null_vector
        rows = Rows(self.name, self.volumes, self.couplings, length, *kind)
        return eigenvectors(rows, is_symmetric=self.is_symmetric)

    @property
    def is_symmetric(self) -> bool:
        """Whether the rows are the same in reverse order, and not periodic."""
        is_even = self.ends[0] == self.ends[1] and self.exchange[0] == self.exchange[1]
        steps = self._steps
        return (
            is_even and not (self.is_periodic or self.power) and bool((steps == steps[::-1]).all())
        )

    def _sines(self) -> Modes:
        """Return the waves sin or cos ((j + a) (k + b) pi / N) at all places j."""
        matrices = self.first_waves(self.count)
        if self.ends[0] == self.ends[1] and self.count > 1:
            return halved(self.eigenvalues(), *matrices)
        return Modes(self.eigenvalues(), (Block(*matrices),))

    def first_waves(self, count: int) -> tuple[Array, Array]:
        """Return the first waves of a transform that is not periodic, and what multiplies values.

        Returns
        -------
        forward, backward : ndarray
            The first one makes amplitudes of values, the second one values of amplitudes.
        """
        is_sine = self.ends[0] == DIRICHLET
        double_a = (2 * is_sine) if self.on_nodes else 1
        double_b = 1 if self.ends[0] != self.ends[1] else 2 * is_sine
        places, orders = 2 * np.arange(self.count) + double_a, 2 * np.arange(count) + double_b
        waves = _sine(np.outer(places, orders) + (0 if is_sine else 2 * self.intervals), self)
        is_extreme = orders % (2 * self.intervals) == 0  # 1 or -1 at all places
        squares = self.intervals / np.where(is_extreme, 1, 2)
        assert self.step is not None
        # The scale of the transforms of SciPy: twice the scalar products.
        forward = 2 * waves.T * (self.volumes / self.step)
        return np.ascontiguousarray(forward), waves / (2 * squares)

    @property
    def spectrum(self) -> Array:
        """All eigenvalues of the rows."""
        return self.eigenvalues() if self.has_transform else self.modes.values

    @property
    def transform(self) -> tuple[str, int]:
        """Function of the transform, ``"dst"``, ``"dct"`` or ``"fft"``, and its type."""
        function, nodes, cells = _TRANSFORMS[self.ends]
        return function, nodes if self.on_nodes else cells

    def eigenvalues(self, count: int | None = None) -> Array:
        """Return the eigenvalues of the rows in the order of the transform.

        Parameters
        ----------
        count : int, optional
            Only so many; all by default.
        """
        function, _ = self.transform
        modes = np.arange(self.count if count is None else count, dtype=float)
        if function == "fft":
            modes *= 2
        elif self.ends[0] != self.ends[1]:
            modes += 0.5
        elif function == "dst":
            modes += 1
        assert self.has_transform and self.step is not None
        return -((2 / self.step * np.sin(np.pi / 2 * modes / self.intervals)) ** 2)


def wave_sums(
    waves: Sequence[Array | None],
    line: "Axis | AxisPart | None",
    *,
    helmholtz: float,
    is_singular: bool,
) -> Array:
    """Return lambda - c of all waves, and with lines the row sums of their matrices.

    Parameters
    ----------
    waves : sequence of (ndarray or None)
        For each axis of the array the eigenvalues of the waves, or None for that of the lines.
    line : Axis, AxisPart or None
        The axis of the lines.
    helmholtz : float
        The number c.
    is_singular : bool
        Whether constants solve the equation with f = 0. The matrices of lambda = 0 then get a
        further entry in the row `Axis.pin`, with which they are regular: see `_host`.

    Returns
    -------
    sums : ndarray
        The axis of the lines has the rows, or one entry if all rows of a wave have the same sum.
    """
    total: Array = np.zeros(())
    for own in waves:
        total = total[..., None] + (np.zeros(1) if own is None else own)
    total = total - helmholtz
    if line is None:
        return total
    place = [own is None for own in waves].index(True)
    is_even = not is_singular and not np.ptp(line.sums)
    rows = line.sums[:1] if is_even else line.sums
    sums = total + rows.reshape((-1,) + (1,) * (total.ndim - 1 - place))
    if is_singular and line.pin is not None:
        by_wave, is_zero = np.moveaxis(sums, place, -1), np.moveaxis(total, place, -1)[..., 0] == 0
        by_wave[is_zero, line.pin] += line.rows[1][line.pin] or -1.0
    return sums


def _sine(turns: NDArray[np.int64], axis: Axis) -> Array:
    """Return sin(pi / (4 N) turns), reduced to the first octant as integers: right to one eps."""
    quarter = 2 * axis.intervals
    turns = turns % (4 * quarter)
    sign = np.where(turns < 2 * quarter, 1.0, -1.0)
    turns = turns % (2 * quarter)
    turns = np.minimum(turns, 2 * quarter - turns)
    unit = np.pi / (2 * quarter)
    return sign * np.where(
        2 * turns <= quarter, np.sin(unit * turns), np.cos(unit * (quarter - turns))
    )


def check_lengths(axes: Sequence[Axis], dtype: np.dtype) -> None:
    """Check that the matrices of these axes are in the range of a dtype.

    Their entries are at most 16 / spacing^2, and an eigenvalue or an entry that is not zero is at
    least 1 / length^2.

    Raises
    ------
    ValueError
        If not.
    """
    limits = np.finfo(dtype)
    shortest, longest = 8 / sqrt(limits.max), 0.5 / sqrt(limits.tiny)
    advice = f"in {dtype}, so that 1 / spacing^2 is in its range (choose another unit of length"
    advice += ", or double precision)" if limits.dtype == np.float32 else ")"
    for axis in axes:
        step, length = axis.step, float(axis.edges[-1] - axis.edges[0])
        if step is None:
            step = float(np.diff(axis.edges).min())
        rule = f"spacing along {axis.name} must be at least {shortest:.2g} {advice}"
        require(step >= shortest, rule, step)
        rule = (
            f"length along {axis.name} must be at most {longest:.2g} {advice}, "
            f"the spacing is {step:.2g}"
        )
        require(length <= longest, rule, length)
        for end, sign in enumerate("-+"):
            if axis.exchange[end]:
                rule = f"boundary {axis.name}{sign}: the coefficient of Robin must be in the range "
                rule += f"of {dtype} after division by the spacing"
                with np.errstate(over="ignore"):
                    factor = axis.side_factor(end)
                require(factor <= limits.max / 16, rule, axis.exchange[end])


class AxisPart:
    """Consecutive values along an axis, which one rank of a group holds.

    Parameters
    ----------
    whole : Axis
        The axis.
    part : slice
        The values.
    """

    def __init__(self, whole: Axis, part: slice) -> None:
        unknowns = whole.unknowns
        first, stop = max(unknowns.start, part.start), min(unknowns.stop, part.stop)
        require(
            first < stop,
            f"split: every rank must hold an unknown along {whole.name}; this one holds the values",
            part,
        )
        rows = slice(first - unknowns.start, stop - unknowns.start)
        self.whole = whole
        self.name, self.ends, self.edges = whole.name, whole.ends, whole.edges
        self.exchange = whole.exchange
        self.is_periodic, self.has_null_vector = whole.is_periodic, whole.has_null_vector
        self.size, self.count = part.stop - part.start, stop - first
        self.unknowns = slice(first - part.start, stop - part.start)
        self.places, self.volumes = whole.places[part], whole.volumes[rows]
        self.holds = part.start == 0, part.stop == whole.size
        lower, diag, upper = (diagonal[rows] for diagonal in whole.rows)
        #: Lower, main and upper diagonal of the unknowns.
        self.rows = lower, diag, upper
        #: Sums of the rows of the whole axis.
        self.sums = whole.sums[rows]
        #: `Axis.pin`, or None if another rank holds the row.
        self.pin = whole.pin - rows.start if rows.start <= whole.pin < rows.stop else None

    def side_factor(self, end: int) -> float:
        """Return the factor of a side in its row, as `Axis.side_factor` does."""
        return self.whole.side_factor(end)

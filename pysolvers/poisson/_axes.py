r"""The second difference along one axis: its rows, and its transform where it is uniform.

Row i of the unknowns along an axis is the balance of fluxes over a control volume,

    ( (u[i+1] - u[i]) / d[i+1] - (u[i] - u[i-1]) / d[i] ) / v[i],

with v the lengths of the control volumes and d the distances between neighbours. On nodes the
volumes end midway between the nodes, and half a volume belongs to a Neumann side; on cells the
volumes are the cells, and a Dirichlet side lies half a cell away. On a uniform grid these rows are
the three-point formula with the ghost value 2 b - u[0] (Dirichlet, cells), u[1] + 2 h g (Neumann,
nodes) or u[0] + h g (Neumann, cells), where b is the value and g the outward derivative. The rows
are of second order on uniform grids, and on stretched grids x = x(s) with smooth x(s).

The eigenvectors of uniform rows are sines, cosines or complex exponentials (Swarztrauber 1977),
with the eigenvalues -(2/h sin(theta/2))^2. With N intervals between the sides (nodes) or N cells:

    sides                   theta_k               nodes    cells
    Dirichlet, Dirichlet    k pi / N, k >= 1      DST-I    DST-II
    Dirichlet, Neumann      (k + 1/2) pi / N      DST-III  DST-IV
    Neumann, Dirichlet      (k + 1/2) pi / N      DCT-III  DCT-IV
    Neumann, Neumann        k pi / N, k >= 0      DCT-I    DCT-II
    periodic                2 k pi / N            FFT      FFT
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from .._checks import require

Array = NDArray[np.float64]

DIRICHLET, NEUMANN, PERIODIC = "Dirichlet", "Neumann", "periodic"

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
    """

    name: str
    size: int
    on_nodes: bool
    ends: tuple[str, str]
    edges: Array
    step: float | None

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
        return DIRICHLET not in self.ends

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
        """Distances of the edges; exactly equal on a uniform axis."""
        return np.diff(self.edges) if self.step is None else np.full(self.intervals, self.step)

    @cached_property
    def volumes(self) -> Array:
        """Lengths of the control volumes of the unknowns."""
        steps = self._steps
        if not self.on_nodes:
            return steps
        if self.is_periodic:
            return (steps + np.roll(steps, 1)) / 2
        padded = np.concatenate([[0.0], steps, [0.0]])
        return ((padded[1:] + padded[:-1]) / 2)[self.unknowns]

    @cached_property
    def _couplings(self) -> Array:
        """1 / distance from each unknown to its neighbours, ends included; 0 at Neumann sides."""
        steps = self._steps
        if self.is_periodic:
            gaps = steps if self.on_nodes else (steps + np.roll(steps, -1)) / 2
            return 1 / np.concatenate([gaps[-1:], gaps])
        if self.on_nodes:
            inner = 1 / steps
            ends = [np.zeros(int(end == NEUMANN)) for end in self.ends]
        else:
            inner = 2 / (steps[1:] + steps[:-1])
            near = steps[0], steps[-1]
            ends = [
                np.array([2 / step if end == DIRICHLET else 0.0])
                for end, step in zip(self.ends, near, strict=True)
            ]
        return np.concatenate([ends[0], inner, ends[1]])

    @property
    def rows(self) -> tuple[Array, Array, Array]:
        """Lower, main and upper diagonal; lower[0] and upper[-1] couple to the sides."""
        lower = self._couplings[:-1] / self.volumes
        upper = self._couplings[1:] / self.volumes
        return lower, -(lower + upper), upper

    @property
    def sums(self) -> Array:
        """Sums of the rows, without lower[0] and upper[-1] unless the axis is periodic.

        They are zero but for the rows next to Dirichlet sides. The sums of the rows of a wave are
        these plus its eigenvalue, both without rounding errors relative to their size. In the main
        diagonal an eigenvalue that is small beside 1 / spacing^2 would be lost.
        """
        sums = np.zeros(self.count)
        if not self.is_periodic:
            sums[0] -= self._couplings[0] / self.volumes[0]
            sums[-1] -= self._couplings[-1] / self.volumes[-1]
        return sums

    def side_factor(self, end: int) -> float:
        """Return the factor of the value or the outward derivative of a side in its row.

        Parameters
        ----------
        end : {0, 1}
            The lower or the upper end.
        """
        volume = self.volumes[-end]
        coupling = self._couplings[-end]
        return float((coupling if self.ends[end] == DIRICHLET else 1.0) / volume)

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
        assert self.step is not None, "only uniform axes have a transform"
        return -((2 / self.step * np.sin(np.pi / 2 * modes / self.intervals)) ** 2)


def wave_sums(
    last: "Axis | AxisPart", waves: Sequence[Array], *, is_singular: bool, is_first: bool = True
) -> Array:
    """Return the row sums of the lines of all waves.

    Parameters
    ----------
    last : Axis or AxisPart
        The axis of the lines.
    waves : sequence of ndarray
        Eigenvalues of the waves along each other axis.
    is_singular : bool
        Whether no side is Dirichlet. The matrices of lambda = 0 then get a further entry in their
        first row, with which they are regular: see `_host`.
    is_first : bool, default: True
        Whether the rows of `last` begin with the first one of the whole axis.

    Returns
    -------
    sums : ndarray
        The last axis has the rows, or one entry if all rows of a wave have the same sum.
    """
    total: Array = np.zeros(())
    for own in waves:
        total = total[..., None] + own
    is_even = not is_singular and not np.ptp(last.sums)
    sums = total[..., None] + (last.sums[:1] if is_even else last.sums)
    if is_singular and is_first:
        sums[total == 0, 0] += last.rows[1][0] or -1.0
    return sums


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
        self._whole = whole
        self.name, self.ends, self.edges = whole.name, whole.ends, whole.edges
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

    def side_factor(self, end: int) -> float:
        """Return the factor of a side in its row, as `Axis.side_factor` does."""
        return self._whole.side_factor(end)

r"""Waves of one axis of a grid: the eigenvectors of its rows.

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

from .._axis import DIRICHLET, NEUMANN, PERIODIC, GridAxis
from .._checks import require
from ._modes import Block, Modes, Rows, eigenvectors, halved

Array = NDArray[np.float64]

# Transform by the kinds of the two ends: function, type on nodes, type on cells.
_TRANSFORMS = {
    (DIRICHLET, DIRICHLET): ("dst", 1, 2),
    (DIRICHLET, NEUMANN): ("dst", 3, 4),
    (NEUMANN, DIRICHLET): ("dct", 3, 4),
    (NEUMANN, NEUMANN): ("dct", 1, 2),
    (PERIODIC, PERIODIC): ("fft", 0, 0),
}


@dataclass(frozen=True, eq=False)
class Axis(GridAxis):
    """One axis of a grid, with the waves along it.

    The parameters are those of `GridAxis`.
    """

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
    def has_transform(self) -> bool:
        """Whether the eigenvectors are sines, cosines or exponentials."""
        return self.step is not None and self.power == 0 and self.ends in _TRANSFORMS

    @cached_property
    def modes(self) -> Modes:
        """Eigenvectors of the rows."""
        if self.has_transform and not self.is_periodic:
            return self._sines()
        length = float(self.edges[-1] - self.edges[0])
        kind = self.is_periodic, self.has_null_vector
        rows = Rows(self.name, self.volumes, self.couplings, length, *kind)
        return eigenvectors(rows, is_symmetric=self.is_symmetric)

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
        assert self.has_transform
        return self.eigenvalues_at(modes / self.intervals)

    def odd_eigenvalues(self, size: int) -> Array:
        """Return the eigenvalues of the waves of odd order 2 q + 1 of `size` intervals.

        The even q are first, and then the odd ones from the last to the first (struct ps_waves).
        """
        order = np.concatenate([np.arange(0, size, 2), np.arange(1, size, 2)[::-1]])
        return self.eigenvalues_at((2 * order + 1) / (2 * size))

    def eigenvalues_at(self, angles: Array) -> Array:
        """Return the eigenvalues of waves that turn by so many half turns per node."""
        assert self.step is not None
        return -((2 / self.step * np.sin(np.pi / 2 * angles)) ** 2)


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

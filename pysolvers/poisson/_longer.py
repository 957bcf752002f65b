r"""Rectangles of a slow length as a part of a longer grid, whose transform is fast.

The transform of N intervals, or N cells, with large prime factors takes several times as long as
that of N' = N + P without them. A right side that is continued beyond the side x = N h of the
shorter grid, oddly if it is a Dirichlet side and evenly if it is a Neumann side,

    f(N + s) = -f(N - s)    or    f(N + s) = f(N - s),

has there the solution of the shorter grid, also continued, but for what the side at N' adds to it:
a solution of the equation without right side. Along x it is, for wave k of the other axis,

    c_k phi_k,    phi_k = sinh(theta x) / sinh(theta N)    or    cosh(theta x) / cosh(theta N),

with the eigenvalues mu_k of the other axis and 2 cosh theta_k = 2 + h^2 (|mu_k| + c). With the
solution v of the longer grid,

    nodes, Dirichlet    c_k = v_k[N]
    cells, Dirichlet    c_k = (v_k[N] + v_k[N - 1]) / (2 cosh(theta / 2))
    nodes, Neumann      c_k = (v_k[N'] - v_k[N - P]) / (2 tanh(theta N) sinh(theta P))
    cells, Neumann      c_k = (v_k[N' - 1] - v_k[N - P]) / (2 tanh(theta N) sinh(theta (P - 1/2)))

c_k is at most the largest value of the solution, for Dirichlet sides; between Neumann sides the
rounding errors of the difference grow by 1 / (2 theta^2 N P), and grids of which theta P is small
do not take this form. Of a wave that is constant along both axes (theta = 0, and no c) the
limit phi = x^2 / N^2 remains, and the mean of the solution is made zero.

What is left of wave k at the side is exp(-theta_k P): waves with theta_k P > 39 in float64 need no
correction. That of the others, 30 to 150, is one product of matrices, 2 operations for each of them
and unknown, after one of a matrix with a vector.

Words per unknown: those of `_waves` for N' intervals, but 1 for each field, which has N of them,
and 2 for the product. Repeated solves are a graph, in which the parts of the waves run at the same
time, and the products of the columns near the side and far from it.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from math import log, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._axis import DIRICHLET, NEUMANN
from .._runtime.cublas import padded_rows, products
from .._runtime.device import Device, address_of, aligned, device_array, pairs
from ._axes import Axis
from ._methods import has_short_factors
from ._waves import PackedWaves

Array = NDArray[Any]

# Smallest number of unknowns: fewer are bound by the calls of the host.
_LEAST = 1 << 20
_MOST_FACTOR = 13  # prime factors up to it are fast in cuFFT
_MULTIPLE = 8  # of a fast length: `_waves` halves it three times
_MOST_LONGER = 1.5  # N' / N
# Times for each unknown, in words (H200, `_methods._Costs`): the solution on a length that is a
# power of 2; in units of it, that on other lengths with and without a kernel of cuFFT that
# transforms real lines directly, and the longest of these (of 2000 lines 2048, 2160, 2240, 2304
# intervals take 196, 237, 279, 294 us); an odd part of the halved lines; the product, and a long
# wave (of 4095 lines 4096, 4200, 4320 intervals take 885, 1107, 985 us, of 2048 lines 2048 and 2160
# intervals 269 and 264, with the blocks of columns one after the other; at the same time and
# divided 4096 intervals take 832 us, 2048 222 us, and 2160 intervals, not divided, 212 us).
_SOLUTION = 11.0
_DIRECT, _PACKED, _MOST_DIRECT = 1.25, 1.35, 1088
_ODD = 1.2
_COPIES = 2.0
_WAVE = 0.02
_MOST_WAVES = 4096  # whose tables take as much memory as the field
_MOST_COST = 28.0  # padded transforms take longer
_LEAST_DECAY = 0.5  # least theta P of a wave between Neumann sides that is not constant
_WORK = 8 << 20  # bytes of the work area of cuBLAS
# Columns of a product: those nearest to the side, and a multiple of which another one begins at.
_LEAST_COLUMNS, _COLUMNS = 32, 32
# Waves of a product: of 4093 waves and few columns, one product fills half the device.
_MOST_TERMS = 1024


class _Term(NamedTuple):
    """A product of some waves for consecutive columns.

    Attributes
    ----------
    columns, waves : slice
        Both of them.
    spare : int or None
        Where its result begins among those that are added to the field afterwards; without it the
        product is added to the field.
    """

    columns: slice
    waves: slice
    spare: int | None


class LongerGrid:
    """Plans and tables of the longer grid; the interface is that of `PackedWaves`.

    Parameters
    ----------
    axes : sequence of Axis
        Two: that of the lines, and x.
    intervals : int
        N', as `longer_intervals` returns it.
    dtype : dtype
        Of the fields. Complex ones are two fields of real numbers.
    device : Device
        The device.
    keep : callable
        Copies an array of the host to the device.
    helmholtz : float, default: 0
        The number c, at least 0.
    """

    #: Whether parts of a solve can run at the same time.
    has_branches = True

    def __init__(
        self,
        axes: Sequence[Axis],
        intervals: int,
        dtype: np.dtype,
        device: Device,
        keep: Callable[[Array], Array],
        helmholtz: float = 0.0,
    ) -> None:
        first, last = axes
        assert last.step is not None
        self._dtype = real = np.empty(0, dtype).real.dtype
        longer = _longer(last, intervals)
        self._packed = PackedWaves([first, longer], real, device, keep, helmholtz)
        self._products = products(device.ordinal)
        self._shape = first.count, last.count
        rates = _rates(first, last, helmholtz)
        more = intervals - last.intervals
        count = max(1, int(np.searchsorted(rates, _decay(real) / more)))
        rates = rates[:count]
        forward, backward = first.first_waves(count)
        factors, waves = _corrections(rates, last, more)
        forward = forward * factors[:, None]
        #: Whether the mean of the solution is made zero, as a further wave.
        self._is_singular = not helmholtz and first.has_null_vector and last.has_null_vector
        if self._is_singular:
            weights = last.volumes / last.volumes.sum()
            waves[0] -= waves[0] @ weights
            waves = np.vstack([np.ones(last.count), waves])
            backward = np.column_stack([np.ones(first.count), backward])
            self._weights = keep(np.asarray([weights], real))
            self._means = keep(np.asarray([first.volumes / first.volumes.sum()], real))
        #: The further value of a line that the corrections need, one of the result that is added
        #: to it, and the factor of this one.
        is_odd = last.ends[0] == DIRICHLET
        self._edge = last.count if is_odd else longer.count - 1
        self._other = last.intervals - 1 if is_odd else last.intervals - more
        self._factor = keep(np.full((1, 1), 1 if is_odd else -1, real))
        self._needs_other = not (is_odd and last.on_nodes)
        self._forward = keep(np.ascontiguousarray(forward, real))
        self._count, self._own = len(waves), count
        blocks = _blocks(rates, last, more, _decay(real), len(waves) - count)
        self._terms, spare = _terms(blocks, first.count)
        size = real.itemsize
        self._waves = keep(padded_rows(waves, real))
        self._backward = keep(padded_rows(-backward, real))
        #: Numbers of a row of both.
        self._lead, self._backward_lead = self._waves.shape[1], self._backward.shape[1]
        sizes = (
            max(self._packed.wave_bytes, self._shape[0] * self._lead * size),
            self._waves.nbytes,
            self._shape[0] * size,
            self._count * size,
            self._shape[0] * size,
            _WORK * len(self._terms),
            spare * size,
        )
        #: Where begin the waves, the waves of the correction times their amplitudes, the values
        #: beyond the side, the amplitudes, the means of the rows, the work areas of cuBLAS, one
        #: for each product, and the results that are added afterwards, and the end.
        self._starts = np.cumsum([0, *map(aligned, sizes)]).tolist()

    @property
    def wave_bytes(self) -> int:
        """Bytes of the waves and of all that `run` needs but the work areas of cuFFT."""
        return int(self._starts[-1])

    @property
    def work_bytes(self) -> int:
        """Bytes of the work areas of cuFFT."""
        return self._packed.work_bytes

    def alone(self) -> AbstractContextManager[None]:
        """Let no other thread use the plans of cuFFT."""
        return self._packed.alone()

    def run(self, source: Array, target: Array, waves: int, work: int, device: Device) -> None:
        """Enqueue a solve, as `PackedWaves.run` does; the fields can be complex."""
        if source.dtype.kind == "c":
            for own, to in zip(pairs(source), pairs(target), strict=True):
                self.run(own, to, waves, work, device)
            return
        edge = waves + self._starts[2]
        self._packed.run(source, target, waves, work, device, edge=(edge, self._edge))
        size = self._dtype.itemsize
        rows, columns = target.strides
        if columns == size and rows % size == 0 and rows >= self._shape[1] * size:
            self._correct(target, waves, device)
            return
        # The memory of the waves is free.
        strides = self._lead * size, size
        field = device_array(waves, self._shape, strides, self._dtype, target)
        device.write(field, target)
        self._correct(field, waves, device)
        device.write(target, field)

    def _correct(self, field: Array, waves: int, device: Device) -> None:
        """Enqueue the difference to the solution on the longer grid; rows have no gaps."""
        rows, columns = self._shape
        scaled, edge, amplitudes, means, work, spare = (waves + a for a in self._starts[1:7])
        rest = self._dtype, device.stream, (work, _WORK)
        multiply = self._products.vector
        size = self._dtype.itemsize
        own = address_of(field), field.strides[0] // size
        if self._needs_other:
            values = device_array(edge, (rows, 1), None, self._dtype, field)
            other = field[:, self._other : self._other + 1]
            device.add_product(values, self._factor, other)
        place = amplitudes + (self._count - self._own) * size
        multiply((address_of(self._forward), rows), edge, place, (self._own, rows), *rest)
        if self._is_singular:
            multiply(own, address_of(self._weights), means, (rows, columns), *rest)
            multiply((address_of(self._means), rows), means, amplitudes, (1, rows), *rest)
        table, to = (address_of(self._waves), self._lead), (scaled, self._lead)
        back = address_of(self._backward), self._backward_lead
        with device.branches(len(self._terms)) as branches:
            for k, (term, branch) in enumerate(zip(self._terms, branches, strict=True)):
                start, first = term.columns.start, term.waves.start
                width, terms = term.columns.stop - start, term.waves.stop - first
                own_waves, given = (
                    (place + (first * lead + start) * size, lead) for place, lead in (table, to)
                )
                there, adds = (own[0] + start * size, own[1]), term.spare is None
                if term.spare is not None:
                    there = spare + term.spare * size, width
                rest = self._dtype, branch.stream, (work + k * _WORK, _WORK)
                factors = amplitudes + first * size
                self._products.scaled_rows(factors, own_waves, given, (terms, width), *rest)
                left = back[0] + first * size, back[1]
                shape = rows, terms, width
                self._products.matrices(left, given, there, shape, *rest, adds=adds)
        for term in self._terms:
            if term.spare is not None:
                part = field[:, term.columns]
                place = spare + term.spare * size
                more = device_array(place, part.shape, None, self._dtype, field)
                device.enqueue(device.backend.accumulate, part[None], more[None])


def longer_intervals(axes: Sequence[Axis], dtype: np.dtype, helmholtz: float) -> int:
    """Return the intervals N' of a longer grid on which a device solves faster; 0 if there is none.

    The axes have transforms, that of the lines first.
    """
    if len(axes) != 2 or prod(axis.count for axis in axes) < _LEAST:
        return 0
    first, last = axes
    suits = last.ends in ((DIRICHLET, DIRICHLET), (NEUMANN, NEUMANN)) and not first.is_periodic
    if not suits or helmholtz < 0 or not (first.has_transform and last.has_transform):
        return 0
    if has_short_factors(last, _MOST_FACTOR):
        return 0
    n = last.intervals
    rates, best, found = _rates(first, last, helmholtz), _MOST_COST, 0
    least = 1
    if last.ends[0] == NEUMANN:
        slowest = rates[rates > 0].min(initial=np.inf)
        least = 1 + int(min(_LEAST_DECAY / slowest, n))
    for intervals in range((n // _MULTIPLE + 1) * _MULTIPLE, int(_MOST_LONGER * n), _MULTIPLE):
        shortest = intervals // (_MULTIPLE if last.on_nodes else 1)
        factors = _cost_of_length(intervals, intervals // (2 if last.on_nodes else 1), shortest)
        if factors and intervals >= n + least:
            more, decay = intervals - n, _decay(dtype)
            long_ones = rates[: max(1, int(np.searchsorted(rates, decay / more)))]
            blocks = _blocks(long_ones, last, more, decay, 0)
            waves = sum((stop - start) * count for start, stop, count in blocks) / n
            cost = _SOLUTION * factors * intervals / n + _COPIES + _WAVE * waves
            if cost < best and len(long_ones) <= _MOST_WAVES:
                best, found = cost, intervals
    return found


def _cost_of_length(intervals: int, longest: int, shortest: int) -> float:
    """Return the time of a length in units of that of powers of 2; 0 if a factor is large.

    `longest` and `shortest`: transforms of real numbers.
    """
    rest = intervals
    for factor in (2, 3, 5, 7):
        while rest % factor == 0:
            rest //= factor
    if rest > 1:
        return 0.0
    if not intervals & (intervals - 1):
        return 1.0
    return (_ODD if shortest % 2 else 1.0) * (_DIRECT if longest <= _MOST_DIRECT else _PACKED)


def _decay(dtype: np.dtype) -> float:
    """Return theta P from which on a wave is zero at the side up to rounding errors."""
    return -log(np.finfo(dtype).eps / 16)


def _rates(first: Axis, last: Axis, helmholtz: float) -> Array:
    """Return theta_k of all waves along the axis of the lines, the smallest first."""
    assert last.step is not None
    return 2 * np.arcsinh(last.step / 2 * np.sqrt(helmholtz - first.eigenvalues()))


def _longer(axis: Axis, intervals: int) -> Axis:
    """Return the axis continued to so many intervals or cells."""
    assert axis.step is not None
    edges = axis.edges[0] + axis.step * np.arange(intervals + 1.0)
    return replace(axis, size=intervals + axis.on_nodes, edges=edges)


def _blocks(
    rates: Array, last: Axis, more: int, decay: float, constants: int
) -> list[tuple[int, int, int]]:
    """Return first and last place of columns, and the number of waves that reach them.

    At the side wave k is at most exp(-theta_k P), P = `more`, and exp(-theta_k (P + d)) at the
    distance d of it: the fewer, the larger d is.
    """
    found, stop = [], last.count
    width = max(more, _LEAST_COLUMNS)
    distance = 0
    while stop > 0:
        start = max(last.count - 2 * distance if distance else last.count - width, 0)
        start = start // _COLUMNS * _COLUMNS if start >= _LEAST_COLUMNS else 0
        count = len(rates)
        if distance:
            count = max(1, int(np.searchsorted(rates, decay / (more + distance))))
        found.append((start, stop, min(count, len(rates)) + constants))
        stop, distance = start, last.count - start
    return found


def _terms(blocks: Sequence[tuple[int, int, int]], rows: int) -> tuple[list[_Term], int]:
    """Return the products of all blocks, and the numbers of results that are added afterwards."""
    found, spare = [], 0
    for start, stop, count in blocks:
        for first in range(0, count, _MOST_TERMS):
            waves = slice(first, min(first + _MOST_TERMS, count))
            found.append(_Term(slice(start, stop), waves, spare if first else None))
            spare += rows * (stop - start) * bool(first)
    return found, spare


def _corrections(rates: Array, last: Axis, more: int) -> tuple[Array, Array]:
    """Return what makes amplitudes c_k of the values at the side, and phi_k in the unknowns."""
    n = last.intervals
    half = 0.0 if last.on_nodes else 0.5
    is_odd, is_zero = last.ends[0] == DIRICHLET, rates == 0
    x = np.arange(last.count) + (half or float(is_odd))
    theta = np.where(is_zero, 1e-8 / n, rates)
    t = theta[:, None]
    if is_odd:
        waves = np.exp(-t * (n - x)) * np.expm1(-2 * t * x) / np.expm1(-2 * t * n)
        return 1 / (2 * np.cosh(half * theta)) if half else np.ones(len(theta)), waves
    waves = np.exp(-t * (n - x)) * (1 + np.exp(-2 * t * x)) / (1 + np.exp(-2 * t * n))
    waves = np.where(is_zero[:, None], (x / n) ** 2, waves)
    factors = 1 / (2 * np.tanh(theta * n) * np.sinh(np.minimum(theta * (more - half), 700)))
    return np.where(is_zero, n / (4 * (more - half)), factors), waves

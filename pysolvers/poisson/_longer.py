r"""Nodes between two Dirichlet sides as a part of a longer grid, whose transform is fast.

The transform of N intervals with large prime factors takes several times as long as that of
N' = N + P intervals without them. The longer grid has a Dirichlet side at node N'. Its solution is
that of the shorter one if it is zero at node N. A right side that is odd about node N,

    f[N + s] = -f[N - s],    0 < s < P,

makes waves along the other axis zero there that decay within P nodes. With the eigenvalues mu_k of
the other axis and 2 cosh theta_k = 2 + h^2 (|mu_k| + c), what is left of wave k at node N is
exp(-theta_k P). For the long waves, theta_k P < 39 in float64, a source at node N makes the
solution zero there. By the solutions sinh(theta j) of the equations without right side it is

    q_k = - sum over s of w_k(s) f_k[N - s],
    w_k(s) = sinh(theta (N - s)) / sinh(theta N),                                      s >= P,
    w_k(s) = sinh(theta s) sinh(theta (N - P)) / (sinh(theta P) sinh(theta N)),        s < P,

which follows from the differences of the two sums of the Green's function, without cancellation.
f_k is the product of the K long waves with f, 2 K operations per unknown, which reads f once.

Words per unknown: those of `_waves` for N' intervals, 2 to copy f, 1 for f_k and 2 to copy the
solution. Repeated solves are a graph, in which the parts of the waves run at the same time.
Products of all waves would take 4 n operations. A source that depends on the solution on the longer
grid (capacitance matrix: Buzbee, Dorr, George and Golub 1971) needs no product, but a second
solution.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from math import log, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._axis import DIRICHLET
from .._runtime.cublas import products
from .._runtime.device import Device, address_of, device_array
from ._axes import Axis
from ._methods import has_short_factors
from ._waves import PackedWaves

Array = NDArray[Any]

# Smallest number of unknowns: fewer are bound by the calls of the host.
_LEAST = 1 << 20
_MOST_FACTOR = 13  # prime factors up to it are fast in cuFFT
_MULTIPLE = 8  # of a fast length: `_waves` halves it three times
_MOST_LONGER = 1.5  # N' / N
# Times for each unknown, in words (H200, `_methods._Costs`): the solution on a fast length whose
# only prime factor is 2, what other prime factors add to it, copies and f, and a long wave. 3000^2
# nodes take 836, 755, 854 and 806 us with 3200, 3456, 3584 and 4096 intervals.
_SOLUTION = 11.0
_FACTORS = {3: 0.03, 5: 0.08, 7: 0.2}
_COPIES = 5.0
_WAVE = 0.02
_MOST_COST = 28.0  # padded transforms take longer
_SEGMENT = 64  # numbers that are added up by one product
_ALIGNED = 32  # bytes that the start of a row is a multiple of, for cuBLAS
_WORK = 8 << 20  # bytes of the work area of cuBLAS


class LongerGrid:
    """Plans and tables of the longer grid; the interface is that of `PackedWaves`.

    Parameters
    ----------
    axes : sequence of Axis
        Two: that of the lines, and x.
    intervals : int
        N', as `longer_intervals` returns it.
    dtype : dtype
        float32 or float64.
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
        edges = last.edges[0] + last.step * np.arange(intervals + 1.0)
        longer = replace(last, size=intervals + 1, edges=edges)
        self._packed = PackedWaves([first, longer], dtype, device, keep, helmholtz)
        self._products, self._dtype = products(device.ordinal), dtype
        self._shape, self._intervals = (first.count, intervals - 1), last.intervals
        rates = _rates(first, last, helmholtz)
        more = intervals - last.intervals
        rates = rates[: max(1, int(np.searchsorted(rates, _decay(dtype) / more)))]
        self._waves = len(rates)
        forward, backward = first.first_waves(self._waves)
        n = last.intervals
        segments = -(-(n - 1) // _SEGMENT)
        fits = segments * _SEGMENT < intervals
        #: Segments of the sums over a row, and their length; the places after node N are zero.
        self._segments = (segments, _SEGMENT) if fits else (1, n - 1)
        weights = np.zeros((self._waves, prod(self._segments)))
        weights[:, : n - 1] = -_weights(rates, n, more)
        ones = np.ones((max(self._segments), 1))
        tables = forward, weights, backward, ones, np.zeros((1, 1)), np.full((1, 1), -1.0)
        kept = [keep(np.ascontiguousarray(table, dtype)) for table in tables]
        self._forward, self._weights, self._backward, self._ones, self._zero, self._minus = kept
        size = dtype.itemsize
        #: Numbers from one row of the right side to the next.
        self._pitch = -(-self._shape[1] * size // _ALIGNED) * _ALIGNED // size
        sizes = (
            self._packed.wave_bytes,
            self._shape[0] * self._pitch * size,
            self._weights.nbytes,
            self._weights.nbytes,
            self._waves * self._segments[0] * size,
            self._waves * size,
            _WORK,
        )
        #: Where begin the waves, the right side, its long waves, their products with the weights,
        #: the sums of these, the sources and the work area of cuBLAS, and the end.
        self._starts = np.cumsum([0, *(-(-size // 256) * 256 for size in sizes)]).tolist()

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
        """Enqueue a solve, as `PackedWaves.run` does."""
        count, n, size = self._shape[1], self._intervals, self._dtype.itemsize
        start, more = waves + self._starts[1], count + 1 - n
        strides = self._pitch * size, size
        field = device_array(start, self._shape, strides, self._dtype, source)
        own, rest = field[:, : n - 1], field[:, n - 1 :]
        device.write(own, source)
        device.write(rest, np.broadcast_to(self._zero, rest.shape))
        device.add_product(rest[:, 1:more], self._minus, own[:, ::-1][:, : more - 1])
        self._set_sources(field, waves, device)
        self._packed.run(field, field, waves, work, device)
        device.write(target, own)

    def _set_sources(self, field: Array, waves: int, device: Device) -> None:
        """Enqueue the sources at node N that make the long waves zero there.

        A sum over a row is two products with ones: one product would be a single block of threads.
        """
        rows, n, count = self._shape[0], self._intervals, self._waves
        segments, length = self._segments
        parts, products, sums, sources, work = (waves + start for start in self._starts[2:7])
        forward, backward, ones = (
            address_of(table) for table in (self._forward, self._backward, self._ones)
        )

        def multiply(a: Any, b: Any, target: Any, shape: tuple[int, int, int]) -> None:
            """Enqueue a product of matrices given by address and distance of the rows."""
            rest = device.stream, (work, _WORK)
            self._products.matrices(a, b, target, shape, self._dtype, *rest)

        width, right = segments * length, (address_of(field), self._pitch)
        multiply((forward, rows), right, (parts, width), (count, rows, width))
        given, weighted = (
            device_array(address, (count, width), None, self._dtype, field)
            for address in (parts, products)
        )
        device.write(weighted, np.broadcast_to(self._zero, weighted.shape))
        device.add_product(weighted, self._weights, given)
        multiply((products, length), (ones, 1), (sums, 1), (count * segments, length, 1))
        multiply((sums, segments), (ones, 1), (sources, 1), (count, segments, 1))
        column = right[0] + (n - 1) * self._dtype.itemsize
        multiply((backward, count), (sources, 1), (column, self._pitch), (rows, count, 1))


def longer_intervals(axes: Sequence[Axis], dtype: np.dtype, helmholtz: float) -> int:
    """Return the intervals N' of a longer grid on which a device solves faster; 0 if there is none.

    The axes have transforms, that of the lines first.
    """
    if len(axes) != 2 or dtype.kind != "f" or prod(axis.count for axis in axes) < _LEAST:
        return 0
    first, last = axes
    suits = last.on_nodes and last.ends == (DIRICHLET, DIRICHLET) and not first.is_periodic
    if not suits or helmholtz < 0 or not (first.has_transform and last.has_transform):
        return 0
    if has_short_factors(last, _MOST_FACTOR):
        return 0
    n = last.intervals
    rates, best, found = _rates(first, last, helmholtz), _MOST_COST, 0
    for intervals in range((n // _MULTIPLE + 1) * _MULTIPLE, int(_MOST_LONGER * n), _MULTIPLE):
        factors = _cost_of_factors(intervals)
        if factors:
            count = int(np.searchsorted(rates, _decay(dtype) / (intervals - n)))
            cost = _SOLUTION * factors * intervals / n + _COPIES + _WAVE * count
            if cost < best:
                best, found = cost, intervals
    return found


def _cost_of_factors(intervals: int) -> float:
    """Return the time of a length in units of that of powers of 2; 0 if a factor is large."""
    cost, rest = 1.0, intervals
    while rest % 2 == 0:
        rest //= 2
    for factor, more in _FACTORS.items():
        while rest % factor == 0:
            cost, rest = cost + more, rest // factor
    return cost if rest == 1 else 0.0


def _decay(dtype: np.dtype) -> float:
    """Return theta P from which on a wave is zero at node N up to rounding errors."""
    return -log(np.finfo(dtype).eps / 16)


def _rates(first: Axis, last: Axis, helmholtz: float) -> Array:
    """Return theta_k of all waves along the axis of the lines, the smallest first."""
    assert last.step is not None
    return 2 * np.arcsinh(last.step / 2 * np.sqrt(helmholtz - first.eigenvalues()))


def _weights(rates: Array, n: int, more: int) -> Array:
    """Return w_k(s) of the nodes 1 .. N - 1, for all waves."""
    s = n - np.arange(1.0, n)
    t = np.maximum(rates, 1e-8 / n)[:, None]  # the limit of theta = 0

    def part(x: Any) -> Any:
        """Return 1 - exp(-2 x)."""
        return -np.expm1(-2 * x)

    near = np.exp(-t * np.maximum(2 * more - s, 0)) * part(t * s) * part(t * (n - more))
    near = near / (part(t * more) * part(t * n))
    far = np.exp(-t * s) * part(t * (n - s)) / part(t * n)
    return np.where(s < more, near, far)

"""Lines whose rows lie on several devices: the unknowns between the parts.

Each rank eliminates its rows of all lines onto the ends of its part. With its last unknown y, that
of the rank before, y_left, and the first unknown of the next rank, x_next, this leaves

    x_first = G + (1 - S - U) y_left + U y,    A (y - y_left) + sigma y + C (y - x_next) = D

for each line. S, U, A, sigma and C depend on the matrices only, and are exchanged once; all are at
least 0, as in the form of row sums (csrc/include/pysolvers.h, PS_ROW_SUMS), and so are those of the
systems of the y of all ranks,

    -A y_left + (A + sigma + C S' + C U') y - C U' y_next = D + C G'

where primes are of the next rank. Every rank solves these, one row for each rank, and then its own
rows between y_left and y. Wang, ACM Trans. Math. Softw. 7 (1981) 170-183.

Words per line: 2 over the link to each rank, G and D, and 12 of copies and of the solve for each
rank. The rows themselves are read once more than on one device by the kernel of packed waves;
`CutSystems` also reads their matrices once more, and writes what the elimination leaves: 6 words
per unknown.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._row_sums import RowSums
from .._runtime.device import Device, address_of, aligned, device_array
from .._runtime.fields import DeviceViews
from .._runtime.lines import solve_lines
from ..distributed._exchange import Exchange, exchange_of
from ..distributed._group import Group
from ..factor import factor_tridiagonal
from ._axes import AxisPart, wave_sums

Array = NDArray[Any]

_FIELD = "ends"
_ENDS = 2  # G and D
#: S, U, A, sigma and C.
COUPLINGS = 5


class CutLines:
    """The unknowns between the parts of lines, and what the ranks exchange for them.

    Parameters
    ----------
    group : Group
        The ranks, which follow each other along the lines.
    operation : str
        Of the caller, for messages.
    counts : sequence of int
        Numbers of lines that are eliminated together.
    dtype : dtype
        float32 or float64.
    device : Device
        That of this rank.
    periodic : bool
        Whether the first row of a line couples to the last one.
    """

    def __init__(
        self,
        group: Group,
        operation: str,
        counts: Sequence[int],
        dtype: np.dtype,
        device: Device,
        *,
        periodic: bool,
    ) -> None:
        self._group, self._operation, self._dtype = group, operation, dtype
        self._starts, self._counts = np.cumsum([0, *counts]).tolist(), counts
        self._lines, self._periodic = self._starts[-1], periodic
        self._fields = DeviceViews(device)
        self._exchange: Exchange | None = None
        self._refresh: Callable[[str], None] | None = None
        self._matrices: list[Array] = []  # lower, row sums and upper, shape (ranks, lines)
        self._next: Array | None = None  # C of all ranks
        #: The arguments.
        self.ranks = group, operation
        #: Bytes of the numbers of a solve.
        self.nbytes = (_ENDS + 1) * group.size * self._lines * dtype.itemsize

    def connect(self, couplings: Array, keep: Callable[[Array], Array]) -> None:
        """Find how the numbers travel, and exchange the couplings; collective.

        Parameters
        ----------
        couplings : ndarray, shape (5, lines)
            S, U, A, sigma and C of this rank, on the host.
        keep : callable
            Copies an array of the host to the device.
        """
        group, device = self._group, self._fields.device
        s, u, a, sigma, c = group.allgather(self._operation, couplings).transpose(1, 0, 2)
        after = np.roll(s, -1, axis=0), np.roll(u, -1, axis=0)
        with group.agreement(self._operation):
            rows = -a, sigma + c * after[0], -c * after[1]
            self._matrices, self._next = [keep(row) for row in rows], keep(c)
            memory = device.memory(self.nbytes)
        self._take(device, memory.address, memory)
        ranks = range(group.size)
        others = [rank for rank in ranks if rank != group.rank]
        part = {rank: [(slice(rank, rank + 1),)] for rank in ranks}
        sends = dict.fromkeys(others, part[group.rank])
        receives = {rank: part[rank] for rank in others}
        where = group, self._operation, self._fields, self._fields
        self._exchange = exchange_of(*where, sends, receives, _FIELD)
        self._refresh = self._exchange.refresh

    @contextmanager
    def in_order(self, count: int) -> Iterator[None]:
        """Return a context of so many calls of `between`; collective.

        Devices that can wait for each other do so, and the host waits for nothing.
        """
        assert self._exchange is not None
        with self._exchange.in_order(count, waits=False) as refresh:
            self._refresh = refresh
            try:
                yield
            finally:
                self._refresh = self._exchange.refresh

    def place(self, numbers: int, k: int = 0) -> int:
        """Return where this rank writes G and D of lines that are eliminated together.

        Parameters
        ----------
        numbers : int
            Address of the numbers of a solve.
        k : int, default: 0
            Which ones of `counts`.
        """
        before = self._group.rank * self._lines + self._starts[k]
        return numbers + _ENDS * before * self._dtype.itemsize

    def between(self, device: Device, numbers: int, owner: Any) -> list[tuple[int, int]]:
        """Return the addresses of y_left and y, for each of `counts`; collective.

        Parameters
        ----------
        device : Device
            The stream.
        numbers : int
            Address of `nbytes` bytes, with G and D of this rank.
        owner : object
            What keeps this memory.
        """
        assert self._refresh is not None
        assert self._next is not None
        self._take(device, numbers, owner)
        ranks, rank, size = self._group.size, self._group.rank, self._dtype.itemsize
        row = self._lines * size
        start = numbers + _ENDS * ranks * row
        y = device_array(start, (ranks, self._lines), None, self._dtype, owner)
        right, rows = y.T[None], [matrix.T[None] for matrix in self._matrices]
        parts = []
        for begin, count in zip(self._starts, self._counts, strict=False):
            first, strides = numbers + _ENDS * begin * size, (_ENDS * row, count * size, size)
            ends = device_array(first, (ranks, _ENDS, count), strides, self._dtype, owner)
            own = slice(begin, begin + count)
            products = [(y[:-1, own], self._next[:-1, own], ends[1:, 0])]
            if self._periodic:
                products.append((y[-1:, own], self._next[-1:, own], ends[:1, 0]))
            parts.append((y[:, own], ends[:, 1], products))
        # The device can wait for what follows the exchange: all else is prepared before it.
        self._refresh(_FIELD)
        for own_y, of_y, products in parts:
            device.write(own_y, of_y)
            for product in products:
                device.add_product(*product)
        options = {"periodic": self._periodic, "has_sums": True}
        solve_lines(device, device.operation, rows, right, right, **options)
        places = start + (rank - 1) % ranks * row, start + rank * row
        return [(places[0] + begin * size, places[1] + begin * size) for begin in self._starts[:-1]]

    def _take(self, device: Device, numbers: int, owner: Any) -> None:
        """Let the exchange use the numbers of a call."""
        shape = self._group.size, _ENDS * self._lines
        ends = device_array(numbers, shape, None, self._dtype, owner)
        self._fields.take(device, {_FIELD: ends})


class ConstantLine:
    """The line of the constant wave, where constants solve the equation with f = 0.

    The ranks collect its rows, and each one solves it in float64 on the host, while the devices
    solve the other lines.

    Parameters
    ----------
    ranks : (Group, str)
        The ranks; and the operation, for messages.
    part : AxisPart
        What this rank has of the axis of the lines.
    """

    def __init__(self, ranks: tuple[Group, str], part: AxisPart) -> None:
        whole = part.whole
        (lower, _, upper), periodic = whole.rows, whole.is_periodic
        sums = wave_sums([None], whole, helmholtz=0.0, is_singular=True)
        form = RowSums(sums, check_signs=False)
        self._factor = factor_tridiagonal(lower, form, upper, rows=whole.count, periodic=periodic)
        self._ranks, self._rows, self._volumes = ranks, part.count, whole.volumes
        self._counts: list[int] = []

    def connect(self) -> None:
        """Collect the numbers of rows; collective."""
        group, operation = self._ranks
        counts = group.allgather(operation, np.array([self._rows]))
        self._counts = counts[:, 0].tolist()

    def solve(self, right: Array) -> Array:
        """Return the part of the solution with mean zero; collective.

        Parameters
        ----------
        right : ndarray, shape (rows, ...)
            The part of the right side, on the host; its mean is subtracted.
        """
        group, operation = self._ranks
        mine = np.zeros((max(self._counts), *right.shape[1:]))
        mine[: self._rows] = right
        found = group.allgather(operation, mine)
        parts = zip(found, self._counts, strict=True)
        line = np.concatenate([part[:count] for part, count in parts]).T
        line = line - self._mean(line)
        x = self._factor.solve(line)
        start = sum(self._counts[: group.rank])
        own = (x - self._mean(x)).T[start : start + self._rows]
        return np.asarray(own, right.dtype)

    def _mean(self, line: Array) -> Array:
        """Return the means of lines, their rows last."""
        return (line * self._volumes).sum(axis=-1, keepdims=True) / self._volumes.sum()


class CutSystems:
    """Tridiagonal systems of any matrices, whose rows lie on several devices.

    The rows but the last one of this rank, T, are solved twice: for zero on both sides, which gives
    G and D, and between y_left and y.

    Parameters
    ----------
    ranks : (Group, str)
        The ranks; and the operation, for messages.
    matrices : sequence of ndarray
        lower, row sums and upper of the rows of this rank, (systems or 1, rows or 1), on the host.
        The entries at the ends of lines that are not periodic are not used.
    rows : int
        Rows of this rank.
    parts : int
        Right sides of a system, which follow each other in memory.
    device : Device
        That of this rank.
    keep : callable
        Copies an array of the host to the device.
    periodic : bool
        Whether the first row of a line couples to the last one.
    """

    def __init__(
        self,
        ranks: tuple[Group, str],
        matrices: Sequence[Array],
        rows: int,
        parts: int,
        device: Device,
        keep: Callable[[Array], Array],
        *,
        periodic: bool,
    ) -> None:
        group, _ = ranks
        systems = max(len(values) for values in matrices)
        lower, sums, upper = (np.array(np.broadcast_to(a, (len(a), rows))) for a in matrices)
        self._dtype, self._rows, self._keep = sums.dtype, rows, keep
        if not periodic and group.rank == 0:
            lower[:, 0] = 0
        if not periodic and group.rank == group.size - 1:
            upper[:, -1] = 0
        # Neighbours in memory are neighbours along the inner axis.
        self._shape = (1, systems) if parts == 1 else (systems, parts)
        self._is_inner = parts == 1
        self._sums = np.broadcast_to(sums, (systems, rows))
        self._lower, self._upper = lower, upper
        #: What the ranks exchange.
        self.cut = CutLines(*ranks, [systems * parts], self._dtype, device, periodic=periodic)
        field = systems * parts * rows * self._dtype.itemsize
        self._start = aligned(self.cut.nbytes)
        #: Bytes of the numbers of a solve, and of the rows after elimination.
        self.nbytes = self._start + field
        self._inside: list[Array] = []
        if rows > 1:
            inner = np.array(self._sums[:, :-1])
            inner[:, 0] -= lower[:, 0]
            inner[:, -1] -= upper[:, -2]
            self._inside = [self._on_device(a) for a in (lower[:, :-1], inner, upper[:, :-1])]
        columns = lower[:, -1], np.full(1, -1.0), -lower[:, 0], -upper[:, max(rows - 2, 0)]
        # Of the last row, of D, and of the rows next to y_left and to y.
        self._factors = [self._on_device(np.asarray(a, self._dtype)[:, None]) for a in columns]

    def connect(self, device: Device) -> None:
        """Let the ranks exchange what depends on the matrices only; collective."""
        group, operation = self.cut.ranks
        with group.agreement(operation):
            mine = self._couplings(device)
        self.cut.connect(mine, self._keep)

    def solve(self, device: Device, systems: Array, numbers: int, owner: Any) -> None:
        """Enqueue the solution in place; collective.

        Parameters
        ----------
        device : Device
            The stream.
        systems : ndarray
            The right sides, rows (systems, rows, parts) in C order.
        numbers : int
            Address of `nbytes` bytes.
        owner : object
            What keeps this memory.
        """
        lines = self._lines(address_of(systems), systems)
        ends = device_array(
            self.cut.place(numbers), (_ENDS, *self._shape), None, self._dtype, owner
        )
        of_last, minus, of_left, of_own = (a[..., 0] for a in self._factors)
        zero = np.zeros((1, 1), self._dtype)
        device.write(ends, zero[None])
        if self._inside:
            g = self._lines(numbers + self._start, owner)[..., :-1]
            solve_lines(device, device.operation, self._inside, lines[..., :-1], g, has_sums=True)
            device.write(ends[0], g[..., 0])
            device.add_product(ends[1], of_last, g[..., -1])
        device.add_product(ends[1], minus, lines[..., -1])
        left, own = (
            device_array(address, self._shape, None, self._dtype, owner)
            for address in self.cut.between(device, numbers, owner)[0]
        )
        if self._inside:
            inside = lines[..., :-1]
            device.add_product(inside[..., 0], of_left, left)
            device.add_product(inside[..., -1], of_own, own)
            solve_lines(device, device.operation, self._inside, inside, inside, has_sums=True)
        device.write(lines[..., -1], own)

    def _couplings(self, device: Device) -> Array:
        """Return S, U, A, sigma and C of all lines."""
        lower, upper = self._lower, self._upper
        found = np.zeros((COUPLINGS, *self._shape), self._dtype)
        first, last, own, left = (np.zeros(self._shape, self._dtype) for _ in range(4))
        if self._inside:
            shape = (*self._shape, self._rows - 1)
            work = device.empty(shape, self._dtype)
            device.write(work, self._as_lines(self._sums[:, :-1]))
            solve_lines(device, device.operation, self._inside, work, work, has_sums=True)
            first, last = (device.download(work[..., i]) for i in (0, -1))
            left = self._column(device, work, 0, lower[:, 0])
            own = self._column(device, work, -1, upper[:, -2])
        else:
            own, left = own + 1, left + 1
        of_last = self._as_lines(lower[:, -1:])[..., 0]
        found[0], found[1], found[2] = first, own, of_last * left
        found[3] = of_last * last - self._as_lines(self._sums[:, -1:])[..., 0]
        found[4] = self._as_lines(upper[:, -1:])[..., 0]
        return found.reshape(COUPLINGS, -1)

    def _column(self, device: Device, work: Array, place: int, coupling: Array) -> Array:
        """Return what the unknown beyond one end of T adds at the other end."""
        device.write(work, np.zeros((1, 1, 1), self._dtype))
        device.write(work[..., place], -self._as_lines(coupling[:, None])[..., 0])
        solve_lines(device, device.operation, self._inside, work, work, has_sums=True)
        return device.download(work[..., -1 - place])

    def _lines(self, address: int, owner: Any) -> Array:
        """View rows (systems, rows, parts) as lines, their rows last."""
        outer, inner = self._shape
        size = self._dtype.itemsize
        steps = (1, self._rows, 1) if self._is_inner else (self._rows * inner, 1, inner)
        strides = tuple(step * size for step in steps)
        return device_array(address, (outer, inner, self._rows), strides, self._dtype, owner)

    def _as_lines(self, values: Array) -> Array:
        """View values of the systems, (systems or 1, rows), as lines, their rows last."""
        return values[None] if self._is_inner else values[:, None]

    def _on_device(self, values: Array) -> Array:
        """Return values of the systems as lines on the device."""
        there = self._as_lines(self._keep(values))
        return np.broadcast_to(there, (*self._shape, values.shape[1]))

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
rank. The rows themselves are read once more than on one device.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._runtime.device import Device, address_of, device_array
from .._runtime.fields import DeviceViews
from ..distributed._exchange import Exchange, exchange_of
from ..distributed._group import Group

Array = NDArray[Any]

_FIELD = "ends"
_ENDS = 2  # G and D
_COUPLINGS = 5  # S, U, A, sigma and C

# Enqueues the elimination, which writes G and D of all lines and, unless the second address is 0,
# the couplings.
Eliminate = Callable[[Device, int, int], None]


class CutLines:
    """The unknowns between the parts of lines, and what the ranks exchange for them.

    Parameters
    ----------
    group : Group
        The ranks, which follow each other along the lines.
    operation : str
        Of the caller, for messages.
    lines : int
        Number of lines.
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
        lines: int,
        dtype: np.dtype,
        device: Device,
        *,
        periodic: bool,
    ) -> None:
        self._group, self._operation, self._dtype = group, operation, dtype
        self._lines, self._periodic = lines, periodic
        self._fields = DeviceViews(device)
        self._exchange: Exchange | None = None
        self._matrices: list[Array] = []  # lower, row sums and upper, shape (ranks, lines)
        self._next: Array | None = None  # C of all ranks
        #: Bytes of the numbers of a solve.
        self.nbytes = (_ENDS + 1) * group.size * lines * dtype.itemsize

    def connect(self, eliminate: Eliminate, keep: Callable[[Array], Array]) -> None:
        """Find how the numbers travel, and exchange the couplings; collective.

        Parameters
        ----------
        eliminate : callable
            Enqueues the elimination of any right sides.
        keep : callable
            Copies an array of the host to the device.
        """
        group, device = self._group, self._fields.device
        with group.agreement(self._operation):
            memory = device.memory(self.nbytes)
            own = device.empty((_COUPLINGS, self._lines), self._dtype)
            eliminate(device, self.place(memory.address), address_of(own))
            mine = device.download(own)
        s, u, a, sigma, c = group.allgather(self._operation, mine).transpose(1, 0, 2)
        after = np.roll(s, -1, axis=0), np.roll(u, -1, axis=0)
        with group.agreement(self._operation):
            rows = -a, sigma + c * after[0], -c * after[1]
            self._matrices, self._next = [keep(row) for row in rows], keep(c)
        self._take(device, memory.address, memory)
        ranks = range(group.size)
        others = [rank for rank in ranks if rank != group.rank]
        part = {rank: [(slice(rank, rank + 1),)] for rank in ranks}
        sends = dict.fromkeys(others, part[group.rank])
        receives = {rank: part[rank] for rank in others}
        where = group, self._operation, self._fields, self._fields
        self._exchange = exchange_of(*where, sends, receives, _FIELD)

    def place(self, numbers: int) -> int:
        """Return where this rank writes G and D, from the address of the numbers of a solve."""
        return numbers + _ENDS * self._group.rank * self._lines * self._dtype.itemsize

    def between(self, device: Device, numbers: int, owner: Any) -> tuple[int, int]:
        """Return the addresses of y_left and y of all lines, which follow G and D; collective.

        Parameters
        ----------
        device : Device
            The stream.
        numbers : int
            Address of `nbytes` bytes, with G and D of this rank.
        owner : object
            What keeps this memory.
        """
        assert self._exchange is not None
        assert self._next is not None
        ends = self._take(device, numbers, owner)
        self._exchange.refresh(_FIELD)
        size, rank = self._group.size, self._group.rank
        row = self._lines * self._dtype.itemsize
        start = numbers + _ENDS * size * row
        y = device_array(start, (size, self._lines), None, self._dtype, owner)
        device.write(y, ends[:, 1])
        device.add_product(y[:-1], self._next[:-1], ends[1:, 0])
        if self._periodic:
            device.add_product(y[-1:], self._next[-1:], ends[:1, 0])
        rows = [matrix.T[None] for matrix in self._matrices]
        solve_by_sums(device, rows, y.T[None], periodic=self._periodic)
        return start + (rank - 1) % size * row, start + rank * row

    def centre(self, device: Device, line: Array, volumes: Array) -> None:
        """Make the mean of a line zero, of which each rank holds a part; collective.

        Parameters
        ----------
        device : Device
            The stream.
        line : ndarray
            The part of this rank, shape (rows, ...), on the device.
        volumes : ndarray, shape (rows,)
            The weights.
        """
        with self._group.agreement(self._operation):
            values = device.download(line)
        own = np.append(volumes @ values.reshape(len(volumes), -1), volumes.sum())
        sums = self._group.allgather(self._operation, own).sum(axis=0)
        mean = (sums[:-1] / sums[-1]).astype(self._dtype)
        device.write(line, values - mean.reshape(values.shape[1:]))

    def _take(self, device: Device, numbers: int, owner: Any) -> Array:
        """Let the exchange use the numbers of a call; return G and D of all ranks."""
        shape = self._group.size, _ENDS, self._lines
        ends = device_array(numbers, shape, None, self._dtype, owner)
        self._fields.take(device, {_FIELD: ends})
        return ends


def solve_by_sums(
    device: Device, matrices: list[Array], lines: Array, *, periodic: bool, has_sums: bool = True
) -> None:
    """Enqueue the solution of tridiagonal systems in place.

    Parameters
    ----------
    device : Device
        The stream.
    matrices : list of ndarray
        lower, row sums (without `has_sums` the diagonal) and upper.
    lines : ndarray
        The right sides, (outer, inner, rows) as the matrices.
    periodic : bool
        Whether the systems are periodic.
    """
    backend = device.backend
    flags = backend.ROW_SUMS if has_sums else 0
    status, _ = backend.tridiag_solve(
        backend.METHODS["auto"],
        backend.PIVOTS["never"],
        flags | (backend.PERIODIC if periodic else 0),
        *matrices,
        lines,
        lines,
        None,
        0,
        0,
        *device.arguments,
        0,
    )
    device.check(status)

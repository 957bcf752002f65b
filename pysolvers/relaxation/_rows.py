"""Rows of a red-black grid that a process relaxes: all of them, or those of one rank of a group.

An iteration relaxes the red nodes, then the black ones, so that a node depends on nodes two rows
away. Each rank therefore has a halo of two rows of its neighbours at every cut, relaxes the inner
one of them as well, and gets both anew for the next iteration. On a device it makes d iterations
between two exchanges, with a halo of 2 d rows: after k iterations the outer 2 k of them are not
those of one process.
The first row that a rank holds has an even number in the whole grid, so that the colours are those
of the whole: below a cut there can be one row more. The own rows have the same bits as with one
process.

A measured iteration counts the own rows only, whose residuals and changes are those of one process,
and the ranks combine one number each.

Words per node and iteration: those of the iteration with one process; 2 exchanged rows per cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._checks import require
from .._runtime.backends import parse_device
from .._runtime.fields import Fields
from ..distributed import Group, Slab
from ..distributed._halo import SlabNodes
from ..distributed._halo_run import HaloRun
from ..distributed._systems import checked_group

if TYPE_CHECKING:
    from ._base import Relaxation

Array = NDArray[Any]

_REACH = 2  # rows that an iteration depends on
_LEAST = 3  # rows of a rank: as many as its neighbours can hold of them
# Iterations between two exchanges on a device, if the ranks have rows for them. An exchange and the
# start of a call take the time of several iterations: with 8 iterations between two exchanges, two
# H100 took 0.283 ms per iteration of 8192 x 8192 nodes in float64, and one 0.294 ms. A rank holds
# 64 more rows at a cut for 32 iterations, 1.6 % of its 4096. The rows that are exchanged per
# iteration are as many with any number.
_ON_DEVICE = 32
_PAIRS = 8  # iterations of two blocked sweeps, after which the field is in its place


def rows_of(
    group: Group | None,
    split: Slab | None,
    rows: int,
    operation: str,
    device: str | None,
    *,
    frame: int = 0,
) -> WholeRows:
    """Return the rows of this process.

    Parameters
    ----------
    group : Group or None
        The ranks; None is one process.
    split : Slab or None
        The axis of the rows.
    rows : int
        Number of rows of the whole grid, without the frame.
    operation : str
        Of the caller, for messages.
    device : str or None
        As in `solve_tridiagonal`.
    frame : {0, 1}, default: 0
        Number of further rows before the first and after the last one.
    """
    if group is None and split is None:
        return WholeRows(rows, frame)
    return HaloRows(*checked_group(group, split), rows, operation, device, frame=frame)


def periodic_codes(
    periodic: Sequence[bool], shape: Sequence[int], operation: str, group: Any, *, on_device: bool
) -> int:
    """Return the bits of the periodic axes: 1 is x, 2 is y.

    Parameters
    ----------
    periodic : sequence of bool
        Whether the axes x and y are periodic.
    shape : (ny, nx)
        Number of nodes along y and x.
    operation : str
        Of the caller, for messages.
    group : Group or None
        The ranks.
    on_device : bool
        Whether a device iterates.

    Raises
    ------
    ValueError
        If the nodes cannot be coloured, or if no kernel has the periodic axes.
    """
    code = 0
    for bit, name, is_periodic, n in zip((1, 2), "xy", periodic, shape[::-1], strict=True):
        if is_periodic:
            code |= bit
            require(
                n % 2 == 0,
                f"{operation}: a periodic axis needs an even number of nodes, so that neighbours "
                f"have different colours: take one node more or less along {name}",
                n,
            )
    require(
        not (code and on_device),
        f"{operation}: periodic axes have no kernels on devices: use device='cpu'",
        "periodic",
    )
    require(
        not (code & 2 and group is not None),
        f"{operation}: with a group the axis y of the rows must not be periodic: exchange x and y, "
        "or use one process",
        "periodic",
    )
    return code


class WholeRows:
    """All rows of the grid.

    Parameters as of `rows_of`.
    """

    #: The ranks.
    group: Group | None = None

    def __init__(self, rows: int, frame: int) -> None:
        self._set(slice(0, rows), rows, frame)
        #: Numbers of all rows that are held here, in the whole grid with its frame.
        self.held = slice(0, rows + 2 * frame)
        #: The own rows among those that are held, with the frame.
        self.own = self.held
        #: The same without the frame.
        self.inner = slice(frame, rows + frame)

    def _set(self, part: slice, rows: int, frame: int) -> None:
        """Set what depends on the own rows, which are `part` of the `rows` of the grid."""
        #: Numbers of the own rows of the grid.
        self.part = part
        #: Number of interior rows of the whole grid.
        self.interior = rows - 2 * (1 - frame)

    @property
    def exchange(self) -> str:
        """How rows travel from rank to rank: as `exchange` of a result."""
        return "none"

    @property
    def part_of_held(self) -> slice:
        """Which rows of the grid, without its frame, are inside of the frame that is held here.

        For a grid with further rows before the first and after the last one.
        """
        return slice(self.held.start, self.held.stop - 2)

    @property
    def held_interior(self) -> int:
        """Number of interior rows of the grid that is held here."""
        return self.held.stop - self.held.start - 2

    def start(self, fields: Fields) -> None:
        """Find how rows of the packed fields travel; collective."""

    def refresh(self, *names: str) -> None:
        """Exchange rows that ranks hold of their neighbours; collective."""

    def gather(self, own: Array) -> Array | None:
        """Return all rows from those of the ranks; on rank 0, None on the others. Collective."""
        return own

    def iterate(self, solver: Relaxation, count: int) -> str:
        """Iterate at most so often; return why the iteration ended, as the backend."""
        return solver._iterate_alone(count)


class HaloRows(HaloRun, WholeRows):
    """The rows of one rank, and those that it holds of its neighbours.

    Parameters
    ----------
    group : Group
        The ranks.
    split : Slab
        The axis of the rows.
    rows : int
        Number of rows that are split.
    operation : str
        Of the caller, for messages.
    device : str or None
        As in `solve_tridiagonal`.
    frame : {0, 1}, default: 0
        Number of further rows before the first and after the last one, which belong to the first
        and to the last rank.
    """

    def __init__(
        self,
        group: Group,
        split: Slab,
        rows: int,
        operation: str,
        device: str | None,
        *,
        frame: int = 0,
    ) -> None:
        require(split.of(2) == 0, "split must be Slab(0), the axis of the rows", split)
        parts = [split.part(rows, rank, group.size) for rank in range(group.size)]
        least = min(part.stop - part.start for part in parts)
        require(least >= _LEAST, f"every rank needs at least {_LEAST} rows of nodes", least)
        steps = _iterations(least, on_device=parse_device(device)[0] != "cpu")
        HaloRun.__init__(self, group, operation, steps, ("u",))
        self.group: Group = group
        reach = _REACH * steps
        self._set(parts[group.rank], rows, frame)
        last = group.size - 1
        parts = [
            slice(p.start + frame * (rank > 0), p.stop + frame * (1 + (rank == last)))
            for rank, p in enumerate(parts)
        ]
        part = parts[group.rank]
        depths = [reach + p.start % 2 if rank else 0 for rank, p in enumerate(parts)]
        halo = depths[group.rank], reach * (group.rank < last)
        given = reach * (group.rank > 0), [*depths, 0][group.rank + 1]
        nodes = SlabNodes(group, 1, part, halo, given)  # of the packed fields
        self.held, self.own, self._faces = nodes.held, nodes.own, nodes.faces
        self.inner = slice(
            self.own.start + frame * (group.rank == 0), self.own.stop - frame * (group.rank == last)
        )
        #: First and number of the own interior rows: those that a measurement counts.
        self.counted = self._counted_rows() if group.size > 1 else (0, 0)

    def _counted_rows(self) -> tuple[int, int]:
        """Return first and number of the own rows that are interior rows of what is held."""
        held = self.held.stop - self.held.start
        first, last = max(self.own.start, 1), min(self.own.stop, held - 1)
        return first, last - first

    def start(self, fields: Fields) -> None:
        self.connect(fields, self._faces)

    def iterate(self, solver: Relaxation, count: int) -> str:
        """Iterate at most so often; collective.

        The ranks combine a measured value, so that all end after the same iteration.
        """
        every, tolerance, scale, names, codes = solver._stop_test()
        made, bound, value = 0, tolerance / scale, inf
        with self.group.agreement(self._operation) as agreed:
            agreed.same = {
                "number of iterations": (solver.iterations, count, every),
                "stop test": (tolerance, *names),
            }
        while made < count:
            # Up to the next measured iteration or exchange.
            measured = min(count, (made // every + 1) * every)
            with self.sizes_of_calls(measured - made) as numbers:
                for number in numbers:
                    is_measured = made + number == measured
                    stop = (*codes, number if is_measured else 0, -1.0, None, *self.counted)
                    report = solver._call_backend(number, stop)
                    made += number
            value = self._joined(report["measure"], names[1])
            solver._note(value * scale)
            if not isfinite(value) or value <= bound:
                break
        if not isfinite(value):
            return "not finite"
        return "tolerance" if value <= bound else "count"

    def _joined(self, measure: float, norm: str) -> float:
        """Return the norm over all rows from those of the ranks over their own rows; collective."""
        if self.group.size == 1:
            return measure
        squares = measure * measure * self.counted[1]  # of the nodes of a row on average
        own = np.array(measure if norm == "max" else squares)
        every = self.group.allgather(self._operation, own)
        return float(every.max() if norm == "max" else np.sqrt(every.sum() / self.interior))


def _iterations(least: int, *, on_device: bool) -> int:
    """Return the number of iterations between two exchanges if a rank has `least` rows."""
    if not on_device:
        return 1
    most = min(_ON_DEVICE, (least - 1) // _REACH)
    return most - most % _PAIRS if most > _PAIRS else most

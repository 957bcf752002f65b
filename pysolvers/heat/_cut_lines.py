r"""Steps of a slab by the kernels whose last sweep has cut lines.

The kernels solve with the diagonal block of a rank: the nodes beyond the cuts have given values g
in the last sweep, and everything before is that of the whole field. With the solutions l and u for
the value 1 at one of these nodes and no right-hand side, the solution of the whole lines is

    x_i = v_i + l_i (x_before - g_before) + u_i (x_after - g_after),

v that of the kernels, x_before the last unknown of the rank before, x_after the first one of the
next rank. Peaceman and Rachford's scheme takes T before the step for g, Douglas and Gunn's, whose x
are differences, 0: the differences x - g are 0 where T does not change, and a constant keeps its
bits. These equations of the first and the last node of each rank, minus g of the same nodes, are a
reduced system of 2 ranks unknowns per line; the rows of its inverse that a rank needs are made
once. T changes by l (x_before - g_before) + u (x_after - g_after), and w = 2 T - rhs by twice as
much, at the nodes where l and u are not below rounding errors.

Operations and words per node and step: those of a call of the kernels for one step, and 2 and 2 for
each of l and u near the cuts; one exchange of 2 numbers per line, or of 4. Stability: l and u are
positive and their sum is below 1, so that the reduced system is diagonally dominant; for k dt/h^2
of 10^5 and more, the sum comes close to 1, and rounding errors of the differences grow.

Source: Polizzi and Sameh, Parallel Computing 32 (2006) 177-194.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..distributed import Group
from ..distributed._halo import HaloFace
from ..distributed._halo_run import negligible
from ._damped_start import FieldOps, solve_axis
from ._halo import OPERATION, HeatHalo, Plan, Stage
from ._sides import Grid, Side
from ._state import HeatState

Array = NDArray[Any]

_ALWAYS = 1 << 62  # steps between two exchanges of the halo
_PLAN = Plan(_ALWAYS, 1, 1.0, [Stage(_ALWAYS, 1)])


class CutLines(HeatHalo):
    """Steps on the nodes of a rank and one of each neighbour; the first axis of the field is cut.

    Parameters
    ----------
    group : Group
        The ranks.
    state : HeatState
        The nodes, the halo included, at the time of the next step.
    faces : sequence of HaloFace
        The halo, of T and w.
    exchanged : {'t', 'w'}
        The field that the next step depends on.
    grid : Grid
        The nodes, the halo included.
    cuts : sequence of (Side or None)
        The sides before the first and after the last own node that are cuts.
    sides : sequence of Side
        All sides.
    """

    def __init__(
        self,
        group: Group,
        state: HeatState,
        faces: Sequence[HaloFace],
        exchanged: str,
        grid: Grid,
        cuts: Sequence[Side | None],
        sides: Sequence[Side],
    ) -> None:
        super().__init__(group, state, faces, _PLAN, exchanged)
        self._most = 1
        self._pending: Array | None = None  # what T at the nodes beyond the cuts still changes
        first, last = (int(cut is not None) for cut in cuts)
        nodes = grid.nodes[-1]
        self._own = slice(first, nodes - last)
        # The first and the last own node, and the nodes beyond the cuts.
        self._ends = (slice(first, nodes - last, nodes - last - first - 1),)
        self._cut_sides, self._is_cut = cuts, np.array([cut is not None for cut in cuts])
        start, stop = (0 if first else nodes - 1), (nodes if last else 1)
        self._beyond = (slice(start, stop, nodes - 1),)
        others = (1,) * (grid.axes - 1) if grid.k is None else grid.nodes[-2::-1]
        spikes = np.zeros((2, nodes, *others))
        for spike, cut in zip(spikes, cuts, strict=True):
            if cut is not None:
                given = {cut: np.ones(())}
                solve_axis(grid, sides, grid.axes - 1, given, spike, FieldOps(None, None))
        own = spikes[:, self._own]
        self._weights = _weights(group.allgather(OPERATION, own[:, [0, -1]]), group.rank)
        #: 1 at lines of unknowns, 0 at lines on a side of given values.
        self._is_unknown = np.ones(grid.nodes[-2::-1])
        layer = self._is_unknown[None]
        for side in sides:
            if side.axis < grid.axes - 1 and side.kind == "value":
                side.of(layer)[...] = 0
        self._dtype = dtype = state.t.dtype
        #: g beyond both cuts, 0 where there is none.
        self._given = np.zeros((2, *grid.nodes[-2::-1]), dtype)
        small = negligible(dtype)
        is_large = own.reshape(2, own.shape[1], -1).max(axis=2) > small
        stop = int(is_large[0].nonzero()[0].max(initial=-1)) + 1
        start = int(is_large[1].nonzero()[0].min(initial=own.shape[1]))
        #: Nodes, and l or u there.
        with group.agreement(OPERATION):  # a rank can have too little memory
            self._spikes = [
                ((slice(at, at + len(spike)),), state.store.hold(spike.astype(dtype)))
                for at, spike in ((first, own[0, :stop]), (first + start, own[1, start:]))
                if len(spike)
            ]
        self._changing = [k for k, n in enumerate((stop, own.shape[1] - start)) if n]

    def _apply_pending(self) -> None:
        if self._pending is not None:
            self._add("t", self._pending)
            self._pending = None

    def _add(self, name: str, beyond: Array) -> None:
        """Add to a field what the nodes beyond the cuts change, near the cuts."""
        for (at, spike), k in zip(self._spikes, self._changing, strict=True):
            self._state.store.add_product(name, at, spike, beyond[k : k + 1])

    def _make(self, count: int, *, measures: bool) -> dict[str, Any]:
        """Make a step with the kernels, and what the nodes of other ranks change of it."""
        store = self._state.store
        if self._exchanged == "t":
            before, halo = store.part("t", self._ends), store.part("t", self._beyond)
            report = super()._make(count, measures=measures)
            ends = store.part("t", self._ends).astype(np.float64) - before
            beyond = self._changes(self._group.allgather(OPERATION, ends))
            self._add("t", beyond)
            store.set_part("t", self._beyond, halo + beyond[self._is_cut])
            return report
        if self._is_fresh:
            self._given[self._is_cut] = store.part("t", self._beyond)
        for side, values in zip(self._cut_sides, self._given, strict=True):
            if side is not None:
                self._state.set_level(side, values)
        report = super()._make(count, measures=measures)
        ends = store.part("t", self._ends)
        found = self._group.allgather(OPERATION, np.stack([ends, self._given]).astype(np.float64))
        solved, given = found[:, 0], found[:, 1]
        # Of the first node of a rank what the rank before took for it, of the last one the next.
        known = np.stack([np.roll(given[:, 1], 1, 0), np.roll(given[:, 0], -1, 0)], axis=1)
        beyond = self._changes(solved - known)
        self._given += beyond
        self._given[~self._is_cut] = 0
        self._add("w", 2 * beyond)  # the next step reads w alone
        self._pending = beyond
        return report

    def _changes(self, ends: Array) -> Array:
        """Return x - g of the nodes beyond the cuts, from v - g of the ends of all ranks."""
        ends = ends.reshape(-1, *ends.shape[2:])
        beyond = np.einsum("ej...,j...->e...", self._weights, ends)
        return (beyond * self._is_unknown).astype(self._dtype)


def _weights(ends: Array, rank: int) -> Array:
    """Return the rows of the inverse of the reduced systems that a rank needs.

    `ends` has l and u of the first and the last node of each rank, shape (ranks, 2, 2, ...). The
    result, shape (2, 2 ranks, ...), gives the last unknown of the rank before and the first one of
    the next rank from v of the first and the last node of every rank.
    """
    ranks, others = len(ends), ends.shape[3:]
    matrix = np.zeros((*others, 2 * ranks, 2 * ranks)) + np.eye(2 * ranks)
    beyond = [(2 * ((p - 1) % ranks) + 1, 2 * ((p + 1) % ranks)) for p in range(ranks)]
    for p in range(ranks):
        for side in (0, 1):
            for end in (0, 1):
                matrix[..., 2 * p + end, beyond[p][side]] -= ends[p, side, end]
    wanted = np.eye(2 * ranks)[:, list(beyond[rank])]
    found = np.linalg.solve(matrix.swapaxes(-1, -2), wanted)
    return np.moveaxis(found, (-1, -2), (0, 1))

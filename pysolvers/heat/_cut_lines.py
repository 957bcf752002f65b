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
each of l and u near the cuts; one exchange of 2 numbers per line, or of 4. The differences of
Douglas and Gunn's scheme are exchanged and added where T lies, and only between ranks that the
reduced system couples by more than rounding errors: on devices of one host the host waits after all
steps of a call. Stability: l and u are positive and their sum is below 1, so that the reduced
system is diagonally dominant; for k dt/h^2 of 10^5 and more, the sum comes close to 1, and rounding
errors of the differences grow.

Source: Polizzi and Sameh, Parallel Computing 32 (2006) 177-194.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._runtime.device import Device
from .._runtime.fields import Fields, Index, make_fields
from .._solver.counter import Counter
from ..distributed import Group
from ..distributed._exchange import exchange_of
from ..distributed._halo import HaloFace
from ..distributed._halo_run import negligible
from ._damped_start import FieldOps, solve_axis
from ._halo import OPERATION, HeatHalo, Plan, Stage, joined
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
        #: 1 at lines of unknowns, 0 at lines on a side of given values.
        is_unknown = np.ones(grid.nodes[-2::-1])
        layer = is_unknown[None]
        for side in sides:
            if side.axis < grid.axes - 1 and side.kind == "value":
                side.of(layer)[...] = 0
        weights = _weights(group.allgather(OPERATION, own[:, [0, -1]]), group.rank)
        #: x - g of the nodes beyond the cuts for v - g of the first and the last node of each rank.
        self._weights = weights * is_unknown
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
        self._changes_of_t: _Changes | None = None
        if exchanged == "t":
            outer = [(slice(at, at + 1),) for at in (0, nodes - 1)]
            self._changes_of_t = _Changes(
                group,
                state.store,
                [(slice(at, at + 1),) for at in (self._own.start, self._own.stop - 1)],
                [at if cut is not None else None for at, cut in zip(outer, cuts, strict=True)],
                self._weights,
                {k: spike for spike, k in zip(self._spikes, self._changing, strict=True)},
                state.device,
            )
        if self._changes_of_t is not None and self._changes_of_t.is_in_order:
            # Ranks that make other numbers of steps are found before the first one.
            self._agrees = True
        else:
            self._most = 1

    def _apply_pending(self) -> None:
        if self._pending is not None:
            self._add("t", self._pending)
            self._pending = None

    def _add(self, name: str, beyond: Array) -> None:
        """Add to a field what the nodes beyond the cuts change, near the cuts."""
        for (at, spike), k in zip(self._spikes, self._changing, strict=True):
            self._state.store.add_product(name, at, spike, beyond[k : k + 1])

    def _make(self, count: int, *, measures: bool) -> dict[str, Any]:
        """Make steps with the kernels, and what the nodes of other ranks change of each."""
        changes, report = self._changes_of_t, None
        if changes is None:
            for s in range(count):
                report = joined(report, self._step_of_w(s, measures=measures and s == count - 1))
        else:
            with changes.in_order(count) as change:
                for s in range(count):
                    goes_on = s < count - 1
                    measured = measures and not goes_on
                    made = self._step_kernels(s, measures=measured, goes_on=goes_on)
                    report = joined(report, made)
                    change()
        assert report is not None
        return report

    def _step_kernels(self, s: int, *, measures: bool, goes_on: bool = False) -> dict[str, Any]:
        """Make step s of a call with the kernels; return their report."""
        return self._state.step(
            1,
            is_fresh=self._is_fresh and s == 0,
            made=Counter().begin(),
            first=s,
            measures=measures,
            goes_on=goes_on,
        )

    def _step_of_w(self, s: int, *, measures: bool) -> dict[str, Any]:
        """Make step s of a call of Peaceman and Rachford's scheme; return the report."""
        store = self._state.store
        if self._is_fresh and s == 0:
            self._given[self._is_cut] = store.part("t", self._beyond)
        for side, values in zip(self._cut_sides, self._given, strict=True):
            if side is not None:
                self._state.set_level(side, values)
        report = self._step_kernels(s, measures=measures)
        ends = store.part("t", self._ends)
        found = self._group.allgather(OPERATION, np.stack([ends, self._given]).astype(np.float64))
        solved, given = found[:, 0], found[:, 1]
        # Of the first node of a rank what the rank before took for it, of the last one the next.
        known = np.stack([np.roll(given[:, 1], 1, 0), np.roll(given[:, 0], -1, 0)], axis=1)
        differences = (solved - known).reshape(-1, *solved.shape[2:])
        beyond = np.einsum("ej...,j...->e...", self._weights, differences).astype(self._dtype)
        self._given += beyond
        self._given[~self._is_cut] = 0
        self._add("w", 2 * beyond)  # the next step reads w alone
        self._pending = beyond
        return report


class _Changes:
    """What the nodes beyond the cuts change in T, computed where T lies.

    Parameters
    ----------
    group : Group
        The ranks.
    store : Fields
        What has T.
    ends : sequence of index
        The first and the last own node of each line.
    beyond : sequence of (index or None)
        The nodes beyond the cuts.
    weights : array, shape (2, 2 ranks, ...)
        As of `_weights`.
    spikes : mapping of int to (index, array)
        The nodes that the first and the second of the nodes beyond change, and l or u there.
    device : str or None
        Where T lies.
    """

    def __init__(
        self,
        group: Group,
        store: Fields,
        ends: Sequence[Index],
        beyond: Sequence[Index | None],
        weights: Array,
        spikes: Mapping[int, tuple[Index, Array]],
        device: str | None,
    ) -> None:
        t = store.operand("t", changes=False)
        dtype, lines, rank, ranks = t.dtype, t.shape[1:], group.rank, group.size
        is_large = np.abs(weights).max(axis=tuple(range(2, weights.ndim))) > negligible(dtype)
        for k, at in enumerate(beyond):
            is_large[k] &= at is not None
        wanted = group.allgather(OPERATION, is_large.any(axis=0))
        # The differences that are exchanged are g - v.
        weights = np.where(is_large.reshape(2, -1, *(1,) * len(lines)), -weights, 0)
        layout = dict.fromkeys(("outer", "before"), ((2, *lines), dtype))
        with group.agreement(OPERATION):  # a rank can have too little memory
            layout |= {"ends": ((2 * ranks, *lines), dtype), "weights": (weights.shape, dtype)}
            self._fields = fields = make_fields(layout, device, OPERATION)
            fields.set("weights", weights.astype(dtype))
            self._store, found = store, [spikes.get(k, (None, None)) for k in (0, 1)]
        #: What `heat_cut` takes: this rank; the first and the last own node, if their changes are
        #: needed; the nodes beyond the cuts; for each of these, the first node that it changes, and
        #: the range of the ends that change it.
        self._numbers: tuple[Any, ...] = (
            (rank, ranks),
            tuple(
                at[0].start if wanted[:, 2 * rank + end].any() else -1
                for end, at in enumerate(ends)
            ),
            tuple(-1 if at is None else at[0].start for at in beyond),
            tuple(0 if at is None else at[0].start for at, _ in found),
            tuple(_range_of(np.flatnonzero(row)) for row in is_large),
        )
        self._spikes = tuple(spike for _, spike in found)
        others = [other for other in range(ranks) if other != rank]
        sends = _some({other: _ends_of(rank, wanted[other]) for other in others})
        receives = _some({other: _ends_of(other, wanted[rank]) for other in others})
        self._exchange = exchange_of(group, OPERATION, fields, fields, sends, receives, "ends")

    @property
    def is_in_order(self) -> bool:
        """Whether the devices wait for each other, so that a call can make several steps."""
        return self._exchange.is_in_order

    @contextmanager
    def in_order(self, count: int) -> Iterator[Callable[[], None]]:
        """Return a context of some steps, with a function that ends a step; collective."""
        memory, t = self._store.memory, self._store.operand("t")
        _, ends, beyond, *_ = self._numbers
        for name, places in (("outer", beyond), ("before", ends)):
            for k, at in enumerate(places):
                if at >= 0:
                    memory.write(self._fields.operand(name)[k], t[at])
        with self._exchange.in_order(count) as exchange:
            yield lambda: self._end(exchange)

    def _end(self, exchange: Callable[[str], None]) -> None:
        """Add what the nodes beyond the cuts change, after a step of the kernels; collective."""
        self._change(applies=False)
        exchange("ends")
        self._change(applies=True)

    def _change(self, *, applies: bool) -> None:
        """Make a part of what `ps_heat_cut` describes, where T lies."""
        names, memory = ("before", "ends", "outer", "weights"), self._store.memory
        fields = [self._fields.operand(name) for name in names]
        operands: tuple[Any, ...] = *self._numbers, self._store.operand("t"), *fields, self._spikes
        if isinstance(memory, Device):
            memory.enqueue(memory.backend.heat_cut, applies, *operands)
        else:
            cut_of_host(applies, *operands)


def cut_of_host(
    applies: bool,
    place: tuple[int, int],
    at: Sequence[int],
    beyond: Sequence[int],
    first: Sequence[int],
    used: Sequence[tuple[int, int]],
    t: Array,
    before: Array,
    ends: Array,
    outer: Array,
    weights: Array,
    spikes: Sequence[Array | None],
) -> None:
    """Make a part of what `ps_heat_cut` describes, with arrays of the host."""
    known = [end for end in (0, 1) if at[end] >= 0]
    if not applies:
        for end in known:
            ends[2 * place[0] + end] = before[end] - t[at[end]]
        return
    for k, (start, stop) in enumerate(used):
        if beyond[k] < 0:
            continue
        change = sum((weights[k, j] * ends[j] for j in range(start, stop)), np.zeros_like(t[0]))
        outer[k] += change
        t[beyond[k]] = outer[k]
        spike = spikes[k]
        if spike is not None:
            t[first[k] : first[k] + len(spike)] += spike * change
    for end in known:
        before[end] = t[at[end]]


def _range_of(numbers: NDArray[np.intp]) -> tuple[int, int]:
    """Return the first of some rising numbers, and the one after the last."""
    return (int(numbers[0]), int(numbers[-1]) + 1) if len(numbers) else (0, 0)


def _line(j: int) -> Index:
    """Return the index of the ends with a number."""
    return (slice(j, j + 1),)


def _ends_of(rank: int, wanted: Array) -> list[Index]:
    """Return those of the ends of a rank that are wanted."""
    return [_line(2 * rank + end) for end in (0, 1) if wanted[2 * rank + end]]


def _some(parts: Mapping[int, list[Index]]) -> dict[int, list[Index]]:
    """Return the parts of ranks that have any."""
    return {rank: own for rank, own in parts.items() if own}


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

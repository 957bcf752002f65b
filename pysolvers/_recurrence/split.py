"""Linear recurrences of arrays that are split over the ranks of a group.

With s = x_t, or (x_t, x_{t-1}) for the second order, the part of a rank is an affine map of the
state before it,

    s_after = P s_before + q,

where q is the last state of the part computed from 0, and P the product of its companion matrices.
Each rank knows P and q of all ranks after one exchange of 2 numbers per line, 6 of the second
order, and with them the state before its part (a scan of pairs). From there it computes its rows
again, block after block, until they are those that were computed from 0: where the recurrence
decays these are few.

Words per entry: 3 for the part from 0; 2 for P, the second of them in cache; at most 3 again. With
a matrix that all entries share P is a power. The first rank knows its state from the start, and the
last one needs no P: two ranks take 3 to 6 words.

Where an entry of P is large or not finite, digits would be lost in P s: then each rank waits for
the state of the rank before. Otherwise P s loses as many digits as the loop itself: of every
product one rounding error.

Source: Blelloch, "Prefix sums and their applications", CMU-CS-90-190, 1990.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._lines.prepared import Prepared, finish, viewed
from .._lines.step import recur, recur_lines
from .._options import Choice
from .._runtime.arrays import real_of
from ..distributed import Group, Slab
from ..distributed._ends import packed, unpacked
from ..distributed._group import own_device
from ..distributed._systems import check_sizes, checked_group

Array = NDArray[Any]

# Entries of P up to which the states before the parts are computed from P: those of the first, and
# of the second order; as within a line (csrc/cpu, cuda).
_MOST = {1: 2.0, 2: 16.0}
# Numbers of the first block that is computed again, and rows. The next one has the rows in which
# the differences would vanish by the same decay, with a margin, or all rows.
_FIRST_BLOCK, _FIRST_ROWS, _MARGIN = 1 << 14, 64, 1.25
_MOST_DECAY = 0.99  # in a block, of what is worth another block
_ALL = 1 << 62  # more rows than there are
# Numbers of a block of the products, which stays in cache.
_PRODUCTS = 1 << 15

_OPERATION = "linear_recurrence"
_STATES = ("state 1", "state 2")


def recur_split(
    group: Group | None,
    split: Slab | None,
    named: dict[str, Any],
    choice: Choice,
    prepare: Callable[[Choice], Prepared],
    *,
    reverse: bool,
) -> Any:
    """Compute recurrences of operands of which each rank holds its part.

    `prepare` checks the operands and the options of this rank.
    """
    group, split = checked_group(group, split)
    with group.agreement(_OPERATION) as agreed:
        given = named if choice.out is None else {**named, "out": choice.out}
        choice = choice._replace(device=own_device(choice.device, group, given))
        call = viewed(prepare(choice))
        full = call.shape.full
        along = split.of(len(full))
        is_cut = along == call.shape.axis and group.size > 1
        agreed.own = full[along]
        agreed.same = {
            "dtype": str(call.dtype),
            "shape": tuple(":" if axis == along else size for axis, size in enumerate(full)),
            "axis": call.shape.axis,
            "operands": [*named],
            "use of initial": bool(call.operation.columns),
            "reverse": bool(reverse),
            "batch shape of the coefficients": _matrix_batch(call) if is_cut else None,
        }
    check_sizes(along, agreed.found)
    if not is_cut or not call.result.size:
        with group.agreement(_OPERATION):
            return recur(call, reverse=reverse)
    part = Part(call, reverse=reverse)
    # The ranks in the order of t.
    order = range(group.size)[:: -1 if reverse else 1]
    place = order.index(group.rank)
    maps = _maps_of(group, part, is_first=place == 0, is_last=place == group.size - 1)
    states = [maps[order[0]].state]
    for rank in order[1:-1]:
        with np.errstate(all="ignore"):
            states.append(maps[rank].after(states[-1]))
    most = _MOST[part.order]
    known = (*(maps[rank].product for rank in order[1:-1]), *states)
    is_stable = all(np.isfinite(numbers).all() for numbers in known) and all(
        (np.abs(maps[rank].product) <= most).all() for rank in order[1:-1]
    )
    before = states[place - 1] if is_stable else _in_order(group, part, order)
    if place > 0:
        part.continue_from(before)
    return finish(call)


def _in_order(group: Group, part: Part, order: range) -> Array:
    """Compute the parts one after the other, but the last; return the state before this one."""
    place, before, found = order.index(group.rank), part.state, part.state
    for number, rank in enumerate(order[:-1]):
        with group._agreed_numbers(_OPERATION, part.state.size, part.state.dtype) as computed:
            if place == number > 0:
                part.continue_from(before)
            computed.mine = part.state.ravel()
        assert computed.numbers is not None
        before = computed.numbers[rank].reshape(part.state.shape)
        found = before if place == number + 1 else found
    return found


def _matrix_batch(call: Prepared) -> tuple[int, ...]:
    """Return the batch shape of the coefficients, also of parts without entries."""
    own = (call.operands[name] for name in ("a", "second") if name in call.operands)
    return np.broadcast_shapes(*(call.shape.batch_first(array).shape[:-1] for array in own))


class Map(NamedTuple):
    """What a part makes of the state before it: product (..., order, order), state (..., order)."""

    product: Array
    state: Array

    def after(self, before: Array) -> Array:
        """Return the state after the part."""
        return (self.product @ before[..., None])[..., 0] + self.state


class Part:
    """The rows of one rank.

    Parameters
    ----------
    call : Prepared
        The call of this rank, with its views.
    reverse : bool
        Whether t decreases.

    Attributes
    ----------
    order : int
        Of the recurrence.
    batch : tuple of int
        Batch shape of the coefficients.
    state : array, shape (..., order)
        The values of the last rows, the last one first.
    """

    def __init__(self, call: Prepared, *, reverse: bool) -> None:
        self._call, self._reverse, self._target = call, reverse, call.target
        self._coefficients = [call.views[n] for n in ("a", "second") if n in call.views]
        self.order = len(self._coefficients)
        self.batch = np.broadcast_shapes(*(view.shape[:-1] for view in self._coefficients))
        self._x = call.views["result"]
        self._rows = self._x.shape[-1]
        self.state = np.zeros((*self._x.shape[:-1], self.order), self._x.dtype)
        #: Where the rows from 0 are: in the result, unless it replaces b.
        self._rows_from_0 = self._x

    def start(self, *, has_initial: bool) -> None:
        """Compute the rows from the initial values, or from 0, and set `state`."""
        call = self._call
        if has_initial and call.operation.columns:
            recur_lines(call, reverse=self._reverse)
            last = call.views[call.operation.columns[0]]
            self.state[..., 0] = self._target.download(last)[..., 0]
        else:
            if not has_initial and np.may_share_memory(call.views["b"], self._x):
                self._rows_from_0 = self._target.packed(self._x)
            self._recur(self._views(slice(0, self._rows)), self._rows_from_0)
        self._take_state(self._rows_from_0)

    def product(self) -> Array:
        """Return the product of the companion matrices of all rows."""
        if all(view.shape[-1] == 1 for view in self._coefficients):
            matrix = self._companion()
            with np.errstate(all="ignore"):
                return np.linalg.matrix_power(matrix, self._rows)
        kind, ndim = self._x.dtype, self._x.ndim
        columns = [
            np.broadcast_to(e, (*self.batch, self.order)) for e in np.eye(self.order, dtype=kind)
        ]
        zero = self._target.zeros((1,) * ndim, kind)
        count = min(self._rows, max(_FIRST_ROWS, _PRODUCTS // max(prod(self.batch), 1)))
        memory = self._target.empty((*self.batch, count), kind)
        for start in range(0, self._rows, count):
            rows = self._places(start, min(start + count, self._rows))
            to = memory[..., : rows.stop - rows.start]
            views = {**self._views(rows), "b": zero}
            for number, before in enumerate(columns):
                self._recur(views, to, before)
                columns[number] = self._last(to, before)
            if not any(column.any() for column in columns):
                break
        return np.stack(columns, -1)

    def continue_from(self, before: Array) -> None:
        """Compute the rows again, from the state before them, where they differ; set `state`."""
        start, rows, eps = 0, self._rows, float(np.finfo(real_of(before.dtype)).eps)
        size = _difference(before, np.zeros_like(before))  # of what is computed from 0
        count = max(_FIRST_ROWS, _FIRST_BLOCK // max(prod(self._x.shape[:-1]), 1))
        new = before
        while start < rows:
            stop = min(start + count, rows)
            place = self._places(start, stop)
            is_last = stop == rows
            old = None if is_last else self._last(self._rows_from_0[..., place], before)
            to = self._x[..., place]
            self._recur(self._views(place), to, new)
            new = self._last(to, new)
            start = stop
            if old is None or _is_same(new, old):
                break
            left = _difference(new, old)
            count = _next_count(count, size, left, float(np.abs(new).max()), eps)
            size = left
        if start < rows and self._rows_from_0 is not self._x:
            place = self._places(start, rows)
            self._target.write(self._x[..., place], self._rows_from_0[..., place])
        self.state = before
        self._take_state(self._x)

    def _take_state(self, x: Array) -> None:
        """Set `state` to that after the rows x."""
        self.state = self._last(x, self.state)

    def _places(self, start: int, stop: int) -> slice:
        """Return where rows are that follow each other in t."""
        return slice(self._rows - stop, self._rows - start) if self._reverse else slice(start, stop)

    def _views(self, rows: slice) -> dict[str, Array]:
        """Return the coefficients and b of consecutive rows."""
        return {
            name: view if view.shape[-1] == 1 else view[..., rows]
            for name, view in self._call.views.items()
            if name in ("a", "second", "b")
        }

    def _recur(self, views: dict[str, Array], to: Array, before: Array | None = None) -> None:
        """Compute rows to an array, by default from 0."""
        names = () if before is None else _STATES[: self.order]
        states = {
            name: self._target.upload(np.ascontiguousarray(before[..., k : k + 1]))
            for k, name in enumerate(names)
            if before is not None
        }
        about = self._call.operation._replace(columns=names)
        views = {**views, **states, "result": to}
        recur_lines(self._call._replace(operation=about, views=views), reverse=self._reverse)

    def _last(self, x: Array, before: Array) -> Array:
        """Return the state after rows x."""
        places = (0, 1) if self._reverse else (-1, -2)
        found = [self._target.download(x[..., k]) for k in places[: min(self.order, x.shape[-1])]]
        found += [np.broadcast_to(before[..., 0], found[0].shape)] * (self.order - len(found))
        return np.stack(found, -1)

    def _companion(self) -> Array:
        """Return the companion matrix of coefficients that all rows have."""
        matrix = np.zeros((*self.batch, self.order, self.order), self._x.dtype)
        for k, view in enumerate(self._coefficients):
            matrix[..., 0, k] = self._target.download(view)[..., 0]
        if self.order > 1:
            matrix[..., 1, 0] = 1
        return matrix


def _is_same(new: Array, old: Array) -> bool:
    """Return whether states differ by no more than a rounding error."""
    with np.errstate(invalid="ignore"):
        close = np.abs(new - old) <= np.finfo(real_of(new.dtype)).eps * np.abs(new)
    return bool((close | (new == old) | (np.isnan(new) & np.isnan(old))).all())


def _difference(new: Array, old: Array) -> float:
    """Return the largest difference of states; NaN if one is NaN."""
    with np.errstate(invalid="ignore"):
        return float(np.abs(new - old).max())


def _next_count(count: int, size: float, left: float, largest: float, eps: float) -> int:
    """Return the rows of the next block, after one in which a difference fell from size to left.

    `largest` is the size of the values, whose rounding errors the difference is to reach.
    """
    decay = left / size if size else 1.0
    if not 0 < decay < _MOST_DECAY:  # also NaN
        return _ALL
    wanted = eps * largest / left
    if not 0 < wanted < 1:
        return count
    return max(count, int(min(_MARGIN * count * log(wanted) / log(decay), _ALL)))


def _maps_of(group: Group, part: Part, *, is_first: bool, is_last: bool) -> list[Map]:
    """Compute the parts from 0, and return the maps of all ranks; collective.

    The product of the first part in the order of t, whose state is known, and that of the last one,
    which nothing follows, are 0.
    """
    state, product = part.state.shape, (*part.batch, part.order, part.order)
    dtype = part.state.dtype
    with group._agreed_numbers(_OPERATION, prod(state) + prod(product), dtype) as made:
        part.start(has_initial=is_first)
        own = np.zeros(product, dtype) if is_first or is_last else part.product()
        made.mine = packed((part.state, own), dtype)
    assert made.numbers is not None  # every rank has numbers, or all have raised
    states, products = unpacked(made.numbers, (state, product))
    return [Map(*pair) for pair in zip(products, states, strict=True)]

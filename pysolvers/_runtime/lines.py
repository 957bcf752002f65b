"""From arrays of any number of axes to the lines of the contract: (outer, inner, rows).

The batch axes of all operands are merged jointly until two are left, which for any
strides is a view. An operand that prevents it is copied.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import raise_for_status

Array = NDArray[Any]


def contiguous_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the strides in bytes of a C-contiguous array."""
    strides = []
    step = itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def solve_lines(
    where: Any,
    operation: str,
    matrix: Sequence[Array],
    right: Array,
    solution: Array,
    *,
    periodic: bool = False,
    has_sums: bool = False,
    threads: int = 0,
) -> None:
    """Solve tridiagonal systems without row exchanges, or enqueue that.

    Parameters
    ----------
    where : Device or Target
        With the backend.
    operation : str
        Of the caller, for messages.
    matrix : sequence of ndarray
        lower, diagonal (with `has_sums` the row sums) and upper.
    right, solution : ndarray
        (outer, inner, rows) as the matrices; they can be one array.
    periodic : bool, default: False
        Whether the systems are periodic.
    threads : int, default: 0
        Number of threads of the host.
    """
    backend = where.backend
    flags = (backend.ROW_SUMS if has_sums else 0) | (backend.PERIODIC if periodic else 0)
    code = backend.METHODS["auto"], backend.PIVOTS["never"], flags
    rest = None, threads, 0, *where.arguments, 0
    status, _ = backend.tridiag_solve(*code, *matrix, right, solution, *rest)
    raise_for_status(status, backend.STATUS, operation)


def pairs(array: Array) -> Array:
    """View a complex array as real: a leading axis of length 2 has real and imaginary part."""
    parts = array[..., None].view(array.real.dtype)
    return parts.transpose(-1, *range(array.ndim))


@dataclass(frozen=True, slots=True)
class Plan:
    """How the batch axes of all operands become (outer, inner).

    Attributes
    ----------
    batch : tuple of int
        Sizes of the batch axes.
    outer, inner : tuple of int
        The batch axes that are merged into each, the slowest first. Axes of length 1
        are in neither.
    copied : tuple of int
        Positions of the operands that do not merge so, and are copied.
    """

    batch: tuple[int, ...]
    outer: tuple[int, ...]
    inner: tuple[int, ...]
    copied: tuple[int, ...] = ()

    def size(self, axes: Iterable[int]) -> int:
        """Return the number of batch indices along some axes."""
        return prod(self.batch[axis] for axis in axes)

    def lines(self, view: Array, rows: int) -> Array:
        """View an operand, its rows last, as (outer, inner, rows), or copy it so."""
        length = rows if view.shape[-1] == 1 else view.shape[-1]
        shape = (self.size(self.outer), self.size(self.inner), length)
        order = self.outer + self.inner
        if view.shape == (*self.batch, length) and order == tuple(sorted(order)):
            return view.reshape(shape)
        lines = lines_view(view, (self.outer, self.inner), self.batch)
        return lines if lines.shape == shape else np.broadcast_to(lines, shape)

    def restore(self, lines: Array, view: Array) -> None:
        """Write lines that `lines` had to copy back to their view."""
        write_lines(lines, view, self.outer + self.inner)

    def unravel(self, systems: NDArray[np.intp]) -> NDArray[np.intp]:
        """Batch indices, shape (K, len(batch)), of systems numbered outer * inner."""
        order = self.outer + self.inner
        indices = np.zeros((len(systems), len(self.batch)), np.intp)
        if order:
            places = np.unravel_index(systems, [self.batch[axis] for axis in order])
            for axis, place in zip(order, places, strict=True):
                indices[:, axis] = place
        return indices


def lines_view(view: Array, groups: Sequence[Sequence[int]], batch: Sequence[int]) -> Array:
    """Merge groups of batch axes, by a copy where the strides do not allow a view.

    Parameters
    ----------
    view : ndarray, shape broadcastable to (*batch, rows)
        An operand. Its axes that are in no group have length 1.
    groups : sequence of sequence of int
        Axes to merge into one, the slowest first.
    batch : sequence of int
        Sizes of all batch axes.

    Returns
    -------
    ndarray, shape (len(group 0) or 1, len(group 1) or 1, ..., rows)
        An axis over which the operand does not vary has length 1.
    """
    full = list(view.shape)
    sizes = []
    for group in groups:
        varies = any(view.shape[axis] != 1 for axis in group)
        if varies:
            for axis in group:
                full[axis] = batch[axis]
        sizes.append(prod(batch[axis] for axis in group) if varies else 1)
    if tuple(full) != view.shape:
        view = np.broadcast_to(view, full)
    merged = [axis for group in groups for axis in group]
    return _reorder(view, merged).reshape(*sizes, view.shape[-1])


def write_lines(lines: Array, view: Array, order: Sequence[int]) -> None:
    """Write what `lines_view` had to copy, its axes in this order, back to the view."""
    target = _reorder(view, order)
    target[...] = lines.reshape(target.shape)


def _reorder(view: Array, order: Sequence[int]) -> Array:
    """Put the batch axes in this order, those left out (of length 1) first."""
    rest = [axis for axis in range(view.ndim - 1) if axis not in order]
    return view.transpose([*rest, *order, view.ndim - 1])


def batch_strides(view: Array) -> list[int]:
    """Strides in bytes of the batch axes, 0 where the operand broadcasts."""
    return [
        stride if size > 1 else 0
        for size, stride in zip(view.shape[:-1], view.strides[:-1], strict=True)
    ]


def plan_lines(
    batch: tuple[int, ...],
    strides: Sequence[Sequence[int]],
    guide: Sequence[int],
    *,
    keep: Sequence[int] = (),
) -> Plan:
    """Merge batch axes until two are left, for all operands alike.

    Parameters
    ----------
    batch : tuple of int
        Sizes of the batch axes.
    strides : sequence of sequence of int
        For each operand its strides along the batch axes, 0 where it broadcasts.
    guide : sequence of int
        Strides that order the axes: the slowest first.
    keep : sequence of int, optional
        Positions of operands that may not be copied. Their axes merge to two.

    Returns
    -------
    Plan
        With the fewest operands copied.
    """
    order = sorted(
        (axis for axis, size in enumerate(batch) if size > 1),
        key=lambda axis: -abs(guide[axis]),
    )
    candidates = [k for k in range(len(strides)) if k not in keep]
    for count in range(len(candidates) + 1):
        for copied in combinations(candidates, count):
            rest = [s for k, s in enumerate(strides) if k not in copied]
            groups = _merge(order, batch, rest)
            if len(groups) <= 2:
                outer, inner = [(), (), *groups][-2:]
                return Plan(batch, tuple(outer), tuple(inner), copied)
    raise ValueError("the operands to keep have more than two batch axes")


def _merge(
    order: Sequence[int], batch: Sequence[int], strides: Sequence[Sequence[int]]
) -> list[list[int]]:
    """Return groups of axes that are one axis in all operands: the strides continue each other."""
    groups: list[list[int]] = []
    for axis in order:
        if groups and all(s[groups[-1][-1]] == s[axis] * batch[axis] for s in strides):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups

"""From arrays of any number of axes to the lines of the contract: (outer, inner, rows).

The batch axes of all operands are merged jointly until two are left, which for any
strides is a view. An operand that prevents it is copied.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import prod
from typing import Any, NamedTuple

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
class Shape:
    """Common shape of the operands of a call.

    Attributes
    ----------
    full : tuple of int
        Shape of the result.
    axis : int
        Axis of the systems in it; at least 0.
    omits : tuple of bool
        For each operand, whether it has one row less.
    """

    full: tuple[int, ...]
    axis: int
    omits: tuple[bool, ...]

    @property
    def rows(self) -> int:
        """Length of a system."""
        return self.full[self.axis]

    @property
    def short(self) -> tuple[bool, ...]:
        """For each operand, whether the backend must know that it has one row less.

        One of two rows broadcasts: the row that is then added is ignored.
        """
        return tuple(omits and self.rows != 2 for omits in self.omits)

    @property
    def batch(self) -> tuple[int, ...]:
        """Shape without the axis of the systems."""
        return self.full[: self.axis] + self.full[self.axis + 1 :]

    def batch_first(self, array: Array) -> Array:
        """View an operand with all axes of `full`, the axis of the systems last.

        An operand of one axis lies along the axis of the systems; others, broadcastable to
        `full`, have its last axes.
        """
        ndim = len(self.full)
        is_line = array.ndim == 1
        if array.ndim < ndim:
            array = array[(None,) * (ndim - array.ndim)]
        if is_line or self.axis == ndim - 1:
            return array
        order = [*range(self.axis), *range(self.axis + 1, ndim), self.axis]
        return array.transpose(order)

    def operands(self, arrays: Sequence[Array]) -> list[Array]:
        """View operands as `batch_first` does."""
        return [self.batch_first(array) for array in arrays]


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

    def lines(
        self, view: Array, rows: int, copied: Callable[[Array], Array] | None = None
    ) -> Array:
        """View an operand, its rows last, as (outer, inner, rows), or copy it so.

        `copied` as for `lines_view`.
        """
        length = rows if view.shape[-1] == 1 else view.shape[-1]
        shape = (self.size(self.outer), self.size(self.inner), length)
        order = self.outer + self.inner
        is_whole = view.shape == (*self.batch, length) and order == tuple(sorted(order))
        if is_whole and copied is None:
            return view.reshape(shape)
        lines = lines_view(view, (self.outer, self.inner), self.batch, copied)
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


def lines_view(
    view: Array,
    groups: Sequence[Sequence[int]],
    batch: Sequence[int],
    copied: Callable[[Array], Array] | None = None,
) -> Array:
    """Merge groups of batch axes, by a copy where the strides do not allow a view.

    Parameters
    ----------
    view : ndarray, shape broadcastable to (*batch, rows)
        An operand. Its axes that are in no group have length 1.
    groups : sequence of sequence of int
        Axes to merge into one, the slowest first.
    batch : sequence of int
        Sizes of all batch axes.
    copied : callable, optional
        What copies an array of a device.

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
    ordered = _reorder(view, merged)
    if (
        copied is not None
        and view.size
        and not all(
            view.strides[slow] == view.strides[fast] * view.shape[fast]
            for group in groups
            for slow, fast in pairwise([axis for axis in group if view.shape[axis] > 1])
        )
    ):
        ordered = copied(ordered)
    return ordered.reshape(*sizes, view.shape[-1])


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


def plan_of(
    batch: tuple[int, ...],
    views: Sequence[Array],
    masks: Sequence[Array] = (),
    *,
    keeps: bool = False,
) -> Plan:
    """Return the order of the batch axes: that of the last view, the solution, decides.

    Masks come after the views; `keeps` says that they may not be copied.
    """
    strides = [batch_strides(view) for view in (*views, *masks)]
    keep = range(len(views), len(strides)) if keeps else ()
    return plan_lines(batch, strides, strides[len(views) - 1], keep=keep)


def lines_of(target: Any, plan: Plan, views: Sequence[Array], rows: int) -> list[Array]:
    """View operands on a target, their rows last, as (outer, inner, rows), or copy them so."""
    copied = target.copier
    return [plan.lines(view, rows, copied) for view in views]


def brought(target: Any, shape: Shape, operands: Sequence[Array]) -> list[Array]:
    """Bring operands to where a target uses them, and view them as `Shape.batch_first` does."""
    moved = operands if target.copier is None else target.move(*operands)
    return [shape.batch_first(array) for array in moved]


def shares_one_matrix(shape: Shape, operands: Sequence[Array]) -> bool:
    """Whether several systems share one matrix, and the last operand has contiguous rows."""
    *matrix, rhs = shape.operands(operands)
    return (
        prod(shape.batch) > 1
        and rhs.shape[-1] > 1
        and rhs.strides[-1] == rhs.itemsize
        and all(size == 1 for view in matrix for size in view.shape[:-1])
    )


def brought_side(target: Any, shape: Shape, rhs: Array) -> Array:
    """Bring right-hand sides to where a target uses them, and view them with all axes of a call."""
    (view,) = brought(target, shape, [rhs])
    full = (*shape.batch, shape.rows)
    return view if view.shape == full else np.broadcast_to(view, full)


class Parts(NamedTuple):
    """The calls of the backend for one solve: their operands, and these as lines of their plan."""

    views: list[list[Array]]
    plan: Plan
    lines: list[list[Array]]
    paired: bool = False  # whether the first batch axis has the real and the imaginary part
    work: Array | None = None  # contiguous copy of the right-hand sides, in place of x


def parts_of(
    target: Any, shape: Shape, views: Sequence[Array], masks: Sequence[Array] = ()
) -> Parts:
    """Divide a solve with a real matrix and complex right-hand sides into real systems.

    `views`: lower, diagonal, upper, right-hand side and solution, the rows last. Real and imaginary
    parts are two right-hand sides of one matrix: the two indices of one more batch axis. If the
    batch axes then do not merge to two without more copies, the parts are solved one after the
    other. The lines of `masks`, of which there is at most one, come after those of the views.
    """
    *matrix, rhs, x = views
    rows, keeps = x.shape[-1], target.copier is not None  # a device copies no bytes
    plan = plan_of(shape.batch, views, masks, keeps=keeps)
    if not x.size:
        return Parts([list(views)], plan, [])
    if rhs.dtype == matrix[1].dtype:
        return Parts([list(views)], plan, [lines_of(target, plan, [*views, *masks], rows)])
    sides = [pairs(rhs), pairs(x)]
    together = [*(view[None] for view in matrix), *sides]
    others = [mask[None] for mask in masks]
    paired = plan_of((2, *shape.batch), together, others, keeps=keeps)
    if len(paired.copied) <= len(plan.copied):
        lines = lines_of(target, paired, [*together, *others], rows)
        return Parts([together], paired, [lines], paired=True)
    parts = [[*matrix, right, solution] for right, solution in zip(*sides, strict=True)]
    work = target.packed(sides[1][0])
    operands = [*matrix, work, work]
    plan = plan_of(shape.batch, operands, masks, keeps=keeps)
    lines = lines_of(target, plan, [*operands, *masks], rows)
    return Parts(parts, plan, [lines] * 2, work=work)


def arranged(
    target: Any, shape: Shape, operands: Sequence[Array], x: Array
) -> tuple[list[Array], Parts]:
    """Bring the operands of a solve to where they are used; return views with x, and the calls."""
    views = [*brought(target, shape, operands), shape.batch_first(x)]
    return views, parts_of(target, shape, views)


def arranged_matrices(
    target: Any, shape: Shape, operands: Sequence[Array], dtype: np.dtype
) -> tuple[list[Array], Plan, list[Array]]:
    """Bring diagonals to where they are used; return their views, their plan, and their lines.

    The batch axes merge as those of right-hand sides in C order.
    """
    is_empty = not all(shape.full)
    views = shape.operands(operands) if is_empty else brought(target, shape, operands)
    guide = list(contiguous_strides(shape.full, dtype.itemsize))
    del guide[shape.axis]
    strides = [*(batch_strides(view) for view in views), guide]
    plan = plan_lines(shape.batch, strides, guide, keep=(len(views),))
    return views, plan, [] if is_empty else lines_of(target, plan, views, shape.rows)


class Sides(NamedTuple):
    """What a solve with factors reads and writes; None for what it lacks."""

    rhs: Any
    x: Any
    source: Any = None
    where: Any = None


class SideLines(NamedTuple):
    """Operands of a solve with factors as lines."""

    lines: Sides
    x: Array  # of which `lines.x` is a view or a copy
    groups: tuple[Sequence[int], ...]  # batch axes: for several matrices shared, outer and inner


def arranged_sides(
    target: Any,
    shape: Shape,
    arrays: Sequence[Array],
    x: Array,
    where: Array | None,
    own: Plan,
    *,
    is_paired: bool,
) -> SideLines:
    """Bring right-hand sides, and perhaps a source, to where they are used; return their lines.

    Parameters as of `side_lines`; `is_paired` says whether real and imaginary parts are two
    right-hand sides of one real matrix.
    """
    solution = shape.batch_first(x)
    given = (*brought(target, shape, arrays), *(() if where is None else (where,)))
    views = [
        view if view.shape == solution.shape else np.broadcast_to(view, solution.shape)
        for view in given
    ]
    sides = Sides(
        views[0],
        solution,
        views[1] if len(arrays) > 1 else None,
        None if where is None else views[-1],
    )
    return side_lines(target, sides, own, is_paired=is_paired)


def side_lines(target: Any, sides: Sides, own: Plan, *, is_paired: bool) -> SideLines:
    """Return views of right-hand sides and solutions as lines; `own` is the plan of the matrices.

    With one matrix the batch axes merge freely. Several matrices can be shared by further axes,
    those before the axes of `own`. A mask is then left as it is.
    """
    if is_paired:
        rhs, x, source, where = sides
        sides = Sides(
            pairs(rhs),
            pairs(x),
            None if source is None else pairs(source),
            None if where is None else np.broadcast_to(where, (2, *where.shape)),
        )
    x = sides.x
    batch = x.shape[:-1]
    if not (own.outer or own.inner):
        given = [view for view in sides if view is not None]
        plan = plan_lines(batch, [batch_strides(view) for view in given], batch_strides(x))
        lines = iter(lines_of(target, plan, given, x.shape[-1]))
        found = Sides(*(None if view is None else next(lines) for view in sides))
        return SideLines(found, x, (plan.outer, plan.inner))
    first, strides = len(batch) - len(own.batch), batch_strides(x)
    outer, inner = ([first + axis for axis in axes] for axes in (own.outer, own.inner))
    shared = sorted(
        (k for k, n in enumerate(batch) if n > 1 and k not in (*outer, *inner)),
        key=lambda k: -abs(strides[k]),
    )
    groups = (shared, outer, inner)
    copied = target.copier
    grouped = [
        None if view is None else lines_view(view, groups, batch, copied) for view in sides[:3]
    ]
    return SideLines(Sides(grouped[0], grouped[1], grouped[2], sides.where), x, groups)


class NamedLines(NamedTuple):
    """Operands by name: views with all batch axes, the rows last, and lines of their plan."""

    views: dict[str, Array]
    plan: Plan
    lines: dict[str, Array]


def named_views(
    target: Any,
    shape: Shape,
    operands: Mapping[str, Array],
    x: Array,
    columns: Collection[str],
    pairs_of: Collection[str] | None,
) -> dict[str, Array]:
    """Bring operands to where they are used; return views of them and of x, the ``"result"``.

    Operands in `columns` have one entry per system. With `pairs_of`, real and imaginary parts of
    these operands and of x are two right-hand sides of one real matrix.
    """
    given = list(operands.values())
    moved = given if target.copier is None else target.move(*given)
    batch = len(shape.full) - 1
    views = {
        name: array[(None,) * (batch - array.ndim) + (..., None)]
        if name in columns
        else shape.batch_first(array)
        for name, array in zip(operands, moved, strict=True)
    }
    views["result"] = shape.batch_first(x)
    if pairs_of is None:
        return views
    names = (*pairs_of, "result")
    return {name: pairs(view) if name in names else view[None] for name, view in views.items()}


def named_lines(
    target: Any, views: dict[str, Array], columns: Collection[str], keep: Collection[str]
) -> NamedLines:
    """Return views of `named_views` as lines; those in `keep` are not copied."""
    x = views["result"]
    batch, rows = x.shape[:-1], x.shape[-1]
    strides = [batch_strides(view) for view in views.values()]
    places = [place for place, name in enumerate(views) if name in keep]
    plan = plan_lines(batch, strides, strides[-1], keep=places)
    lines = lines_of(target, plan, list(views.values()), rows)
    return NamedLines(
        views,
        plan,
        {
            name: line[..., :1] if name in columns else line
            for name, line in zip(views, lines, strict=True)
        },
    )


def arranged_by_name(
    target: Any,
    shape: Shape,
    operands: Mapping[str, Array],
    x: Array,
    columns: Collection[str],
    pairs_of: Collection[str] | None,
    keep: Collection[str],
) -> NamedLines:
    """Do what `named_views` and `named_lines` do."""
    views = named_views(target, shape, operands, x, columns, pairs_of)
    return named_lines(target, views, columns, keep)

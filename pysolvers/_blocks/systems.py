"""Batches of block tridiagonal and pentadiagonal matrices: calls of the backend.

A matrix is three diagonals of blocks, or five diagonals of numbers (`side` 0). The operands are
views with the batch axes first, then the rows and, of blocks, the two axes of a block; those of
right-hand sides have the rows and, of blocks, one axis last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import prod
from threading import get_ident
from types import ModuleType
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import axis_number, integer
from .._errors import BackendError, raise_for_status
from .._options import OnSingular, pivot_code
from .._runtime.arrays import factor_axis, one_row
from .._runtime.backends import require
from .._runtime.device import address_of, aligned, device_array, is_device_array
from .._runtime.direct import call_directly
from .._runtime.interop import library_of, locate, view as device_view
from .._runtime.lines import Plan, plan_lines
from .._runtime.singular import Entry, Singular, find_singular
from .._runtime.streams import Stream
from .._runtime.targets import DeviceTarget, Target, fast_access_of, find_target
from .._xp import joined

Array = NDArray[Any]
Assume = Literal["general", "positive definite"]
Trans = Literal["N", "T", "H"]

_ALIGNMENT = 64
_MOST_AXES = 64  # of an array of NumPy


class Matrices(NamedTuple):
    """Checked matrices."""

    operation: str
    side: int
    rows: int
    batch: tuple[int, ...]
    dtype: np.dtype
    names: tuple[str, ...]
    operands: tuple[Array | None, ...]
    definite: bool = False
    periodic: tuple[Array, ...] = ()  # all rows of the diagonals, if the operands are not

    @property
    def tail(self) -> int:
        """Number of the last axes of an operand that are not batch axes."""
        return 1 if self.side == 0 else 3

    def without_operands(self) -> Matrices:
        """Return what factors keep of the matrices."""
        return self._replace(operands=(), periodic=())


class UnreadSingular:
    """What a device finds of singular matrices, which is read when it is asked for.

    Parameters
    ----------
    target : Target
        The device, and the stream on which the matrices are factored.
    info : array
        The numbers of singular rows there, in memory that outlives the stream.
    plan : Plan
        The order of the matrices.
    """

    def __init__(self, target: Target, info: Array, plan: Plan) -> None:
        self._target, self._info, self._plan = target.without_operands(), info, plan
        self._thread = get_ident()

    @cached_property
    def found(self) -> Singular:
        """The singular matrices, after a wait for the factorization."""
        return find_singular(np.asarray(self._target.info_on_host(self._info)), self._plan)

    def order(self, target: Target) -> None:
        """Let a call follow the factorization: one on another stream waits for it."""
        assert isinstance(target, DeviceTarget)
        own = self._target.arguments == target.arguments and self._thread == get_ident()
        if not own or target.is_captured:
            _ = self.found


class Factors(NamedTuple):
    """Factors of a batch of matrices, numbered in C order; `matrices` has no operands."""

    matrices: Matrices
    pivot: int
    store: Array
    found: Singular | UnreadSingular
    keeper: Stream | None = None  # of the store on a device

    @property
    def singular(self) -> Singular:
        """The singular matrices."""
        return self.found if isinstance(self.found, Singular) else self.found.found


class ExchangesNeededError(BackendError):
    """Factors on a device would need row exchanges across blocks, which they do not have."""


class Uncopied:
    """Factors that only their process has."""

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError(
            f"a {type(self).__name__} cannot be pickled or copied: keep the diagonals and factor "
            "them again"
        )


# What takes arrays on a device in place of an operation.
_ON_DEVICE = {
    **dict.fromkeys(
        ("BlockTridiagonalFactor.solve", "PentadiagonalFactor.solve"),
        "factor matrices on the device, or ",
    ),
    **dict.fromkeys(
        ("whittaker", "hodrick_prescott"),
        "call the function of pysolvers.torch or pysolvers.jax, or ",
    ),
}


# What replaces factors, and solves with stream= or device=, of complex and periodic systems.
INSTEAD = (
    "solve with arrays of CuPy, PyTorch or JAX on a device, without factors and stream=, or pass "
    "arrays of NumPy without device="
)


def host_target(operation: str, named: dict[str, Any], out: Any, leader: str) -> Target:
    """Return the target of a call, which must be the CPU."""
    given = {name: value for name, value in named.items() if value is not None}
    on_device = [name for name, value in given.items() if locate(value) is not None]
    if on_device:
        name, instead = on_device[0], _ON_DEVICE.get(operation, "")
        raise BackendError(
            f"{operation} needs the CPU, and {name} is on a device: {instead}pass arrays of NumPy, "
            f"as cupy.asnumpy({name}), {name}.cpu() or numpy.asarray({name})"
        )
    return find_target(None, None, given, out, operation=operation, leader=leader)


def target_of(
    operation: str,
    named: dict[str, Any],
    out: Any,
    leader: str,
    device: str | None = None,
    stream: object = None,
) -> Target:
    """Return the target of a solve, or of factors."""
    given = {name: value for name, value in named.items() if value is not None}
    return find_target(device, stream, given, out, operation=operation, leader=leader)


class Operands(NamedTuple):
    """The operands of a solve, or of factors, where they are used."""

    target: Target
    given: dict[str, Any]
    leader: Array
    operands: dict[str, Array]
    dtype: np.dtype

    def result(self, out: Any, shape: tuple[int, ...]) -> Array:
        """Return where the result of a solve is written."""
        return self.target.result(out, self.given, self.leader, shape, self.dtype, leader="rhs")


def operands_of(
    operation: str, named: dict[str, Any], out: Any, device: str | None, stream: object
) -> Operands:
    """Return the operands of a solve, if there is an operand "rhs", or of factors."""
    given = {name: value for name, value in named.items() if value is not None}
    if "rhs" in named:
        target = target_of(operation, named, out, "rhs", device, stream)
    else:
        target = target_of(operation, named, out, "diag")
    arrays, dtype, _ = target.operands(given)
    leader = dict(zip(given, arrays, strict=True)).get("rhs", arrays[0])
    return Operands(
        target, given, leader, dict(zip(given, moved(target, arrays), strict=True)), dtype
    )


def require_periodic_rows(operation: str, rows: int, least: int) -> None:
    """Raise ValueError unless a periodic system has so many rows."""
    if rows < least:
        raise ValueError(
            f"{operation}: a periodic system must have at least {least} rows, got {rows}"
        )


def row_axis(axis: Any, ndim: int, what: str, has_rhs: bool) -> tuple[int, int]:
    """Return the axis of the rows in operands, counted from the end, and that of their solutions.

    Without right-hand sides the latter is that of a factor. `what` says what has `ndim` axes.
    """
    if not has_rhs:
        return factor_axis(axis, ndim, what)
    place = axis_number(axis, ndim, what) - ndim
    return place, place


def shape_of(batch: Sequence[int], rows: int, axis: int) -> tuple[int, ...]:
    """Return the shape of systems with the rows along an axis, a negative number."""
    shape = [*batch, rows]
    shape.insert(len(shape) + axis, shape.pop())
    return tuple(shape)


def moved(target: Target, arrays: Sequence[Array]) -> list[Array]:
    """Bring operands to where they are used."""
    if target.name == "cpu":
        return list(arrays)
    return [a if is_device_array(a) else target.upload(np.asarray(a, order="C")) for a in arrays]


def require_host(target: Target, operation: str, what: str, write: str) -> None:
    """Raise BackendError for what no device computes."""
    if target.name != "cpu":
        raise BackendError(f"{operation}: {what} needs the CPU: {write}")


def pivoting(backend: ModuleType, assume: str, pivot: bool | None) -> int:
    """Return the code of the pivoting for the options of a call, or raise."""
    if assume not in ("general", "positive definite"):
        raise ValueError(f"assume must be 'general' or 'positive definite', got {assume!r}")
    if assume != "general":
        if pivot:
            raise ValueError(
                "pivot=True contradicts assume='positive definite', which needs no row exchanges"
            )
        pivot = False
    return pivot_code(pivot, backend.PIVOTS)


def broadcast_batch(named: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """Return the shape to which batch axes broadcast, or raise ValueError."""
    shapes = set(named.values())
    if len(shapes) == 1:
        return shapes.pop()
    try:
        return np.broadcast_shapes(*named.values())
    except ValueError:
        text = ", ".join(f"{name} {shape}" for name, shape in named.items())
        raise ValueError(f"the batch axes do not broadcast: {text}") from None


def rows_of_lines(
    operation: str,
    operands: dict[str, Array],
    views: dict[str, Array],
    axis: int,
    *,
    constant: int,
    omitted: Mapping[str, int],
    periodic: bool,
) -> int:
    """Return the number of rows of systems whose diagonal and right-hand side are constant.

    Raise ValueError if operands without a right-hand side leave it open. `views`: the operands,
    the rows before the last `constant` axes, which are those of an operand that is the same in all
    rows. `omitted`: how many entries an operand can omit.
    """
    lengths = {n: (v.shape[-1 - constant], omitted.get(n, 0)) for n, v in views.items()}
    found = {name: pair for name, pair in lengths.items() if pair[0] > 1}
    if not found:
        if "rhs" not in operands and operands["diag"].ndim != constant + 1:
            raise _unknown_rows(operation, operands, axis, constant)
        return 1
    fits = [{size, size if periodic else size + omitted} for size, omitted in found.values()]
    counts = sorted(set.intersection(*fits))
    if len(counts) > 1:
        write = "give rhs all rows" if "rhs" in lengths else "pass rows=n"
        raise ValueError(
            f"{operation}: by {' and '.join(found)} the systems can have {counts[0]} or "
            f"{counts[1]} rows, and the diagonal is constant: {write}"
        )
    return counts[0] if counts else max(size for size, _ in found.values())


def _unknown_rows(
    operation: str, operands: dict[str, Array], axis: int, constant: int
) -> ValueError:
    """Return the error of factors whose operands leave the number of rows open."""
    if any(array.ndim > constant for array in operands.values()):
        return one_row(operands, axis)
    return ValueError(
        f"{operation}: the operands are all {constant}-d, so the number of rows is unknown: "
        "pass rows=n"
    )


def rows_as_asked(operation: str, rows: int, count: int, what: str) -> int:
    """Return the argument `rows`, or raise; `what` have `count` rows, 1 if they are constant."""
    asked = integer("rows", rows)
    if count not in (1, asked):
        raise ValueError(f"{operation}: rows is {rows}, but the {what} have {count} rows")
    return asked


def expanded(array: Array, shape: tuple[int, ...]) -> Array:
    """Broadcast an array that has not this shape already."""
    return array if array.shape == shape else np.broadcast_to(array, shape)


def last(array: Array, axis: int, place: int = -1) -> Array:
    """Move an axis to a place, both negative, if it is not there."""
    return array if axis == place else np.moveaxis(array, axis, place)


def with_batch(view: Array, tail: int, ndim: int) -> Array:
    """Add batch axes of length 1 in front."""
    missing = ndim - (view.ndim - tail)
    return view[(None,) * missing] if missing > 0 else view


def lines_of(
    view: Array, tail: int, batch: Sequence[int], groups: Sequence[Sequence[int]]
) -> Array:
    """Merge the batch axes of a view to two, (outer, inner), by a copy where it must be."""
    shape = view.shape[-tail:]
    merged = [axis for group in groups for axis in group]
    counts = [prod(batch[axis] for axis in group) for group in groups]
    if view.shape[:-tail] == tuple(batch) and merged == sorted(merged):
        return view.reshape(*counts, *shape)
    full, sizes = list(view.shape[:-tail]), []
    for group in groups:
        varies = any(view.shape[axis] != 1 for axis in group)
        for axis in group:
            full[axis] = batch[axis] if varies else 1
        sizes.append(prod(batch[axis] for axis in group) if varies else 1)
    wide = expanded(view, (*full, *shape))
    rest = [axis for axis in range(len(batch)) if axis not in merged]
    order = [*rest, *merged, *range(len(batch), view.ndim)]
    lines = wide.transpose(order).reshape(*sizes, *shape)
    return expanded(lines, (*counts, *shape))


def _strides(view: Array, tail: int) -> list[int]:
    return [
        stride if size > 1 else 0
        for size, stride in zip(view.shape[:-tail], view.strides[:-tail], strict=True)
    ]


def solve(
    target: Target,
    matrices: Matrices,
    rhs: Array,
    x: Array,
    pivot: int,
    threads: int,
    policy: OnSingular = "raise",
) -> Singular:
    """Solve for right-hand sides of the batch of the matrices, or raise.

    A device does what `policy` says without waiting if this is not to raise or to warn.
    """
    if target.name != "cpu":
        return _solve_on_device(target, matrices, rhs, x, pivot, threads, policy)
    return solve_on_host(target, matrices, rhs, x, pivot, threads)[0]


def solve_on_host(
    target: Target, matrices: Matrices, rhs: Array, x: Array, pivot: int, threads: int
) -> tuple[Singular, int]:
    """Solve as `solve`; also return the number of systems with exchanges across blocks."""
    batch, tail = matrices.batch, matrices.tail
    sides = 1 if matrices.side == 0 else 2
    views = [view for view in matrices.operands if view is not None]
    views = [with_batch(view, tail, len(batch)) for view in views]
    strides = [*(_strides(v, tail) for v in views), _strides(rhs, sides), _strides(x, sides)]
    plan = plan_lines(batch, strides, strides[-1])
    groups = (plan.outer, plan.inner)
    lines = iter([lines_of(view, tail, batch, groups) for view in views])
    matrix = tuple(None if view is None else next(lines) for view in matrices.operands)
    to = lines_of(x, sides, batch, groups)
    if not np.may_share_memory(to, x) or not to.flags.writeable:
        to = np.empty(to.shape, to.dtype)
    info = np.zeros(to.shape[:2], np.int32)
    sizes = (matrices.rows, *to.shape[:2])
    report = _run(
        target,
        matrices,
        "solve",
        (pivot, 0, sizes),
        matrix=matrix,
        rhs=lines_of(rhs, sides, batch, groups),
        x=to,
        info=info,
        threads=threads,
    )
    if not np.may_share_memory(to, x):
        order = [*plan.outer, *plan.inner]
        rest = [axis for axis in range(len(batch)) if axis not in order]
        moved = x.transpose([*rest, *order, *range(len(batch), x.ndim)])
        moved[...] = to.reshape(moved.shape)
    return find_singular(info.ravel(), plan), report["pivoted"]


def _solve_on_device(
    target: Target,
    matrices: Matrices,
    rhs: Array,
    x: Array,
    pivot: int,
    threads: int,
    policy: OnSingular,
) -> Singular:
    """Solve on a device."""
    batch, tail = matrices.batch, matrices.tail
    sides = 1 if matrices.side == 0 else 2
    views = [None if v is None else with_batch(v, tail, len(batch)) for v in matrices.operands]
    tails = [*(tail for _ in views), sides, sides]
    operands = [*views, rhs, x]
    every = tuple(range(len(batch)))
    guide = _strides(x, sides)
    plans = (plan_lines(batch, [guide], guide), Plan(batch, (), every))
    for plan in plans:
        lines = [
            None if v is None else target.merged(v, count, batch, (plan.outer, plan.inner))
            for v, count in zip(operands, tails, strict=True)
        ]
        if all((line is None) == (v is None) for line, v in zip(lines, operands, strict=True)):
            break
    for number, view in enumerate(operands):
        if view is not None and lines[number] is None:
            full = np.broadcast_to(view, (*batch, *view.shape[-tails[number] :]))
            lines[number] = target.merged(
                target.copied(full), tails[number], batch, (plan.outer, plan.inner)
            )
    *matrix, right, to = lines
    assert to is not None
    info = target.info(to.shape[0] * to.shape[1])
    sizes = (matrices.rows, *to.shape[:2])
    _run(
        target,
        matrices,
        "solve",
        (pivot, 0, sizes),
        matrix=tuple(matrix),
        rhs=right,
        x=to,
        info=info,
        threads=threads,
    )
    if policy == "nan":
        marks = info.reshape(to.shape[:2])
        for part in [to] if sides == 1 else [to[..., p] for p in range(to.shape[-1])]:
            target.fill_nan(part, marks)
    if address_of(to) != address_of(x):
        target.write(x, to.reshape(x.shape))
    found = np.zeros(0, np.int32)
    if target.reports_singular(policy):
        found = np.asarray(target.info_on_host(info)).ravel()
    return find_singular(found, plan)


def solve_directly(
    kind: Literal["bands", "blocks"],
    matrix: tuple[Any, ...],
    rhs: Any,
    axis: Any,
    out: Any,
    assume: Any,
    pivot: Any,
    threads: Any,
    device: str | None = None,
    policy: OnSingular = "raise",
) -> Any:
    """Solve in one call of the extension if the operands need no planning, or return None.

    Calls with errors in their arguments and those with singular systems give None, too, and on a
    device those that make solutions NaN.
    """
    access = None if type(rhs) is np.ndarray else fast_access_of(rhs, device)
    if (access is None and device not in (None, "cpu")) or (access is not None and policy == "nan"):
        return None
    backend, functions, ordinal = access or (require("cpu"), None, 0)
    definite = assume == "positive definite"
    if not (pivot is None or (type(pivot) is bool and not (pivot and definite))):
        return None
    if not definite and assume != "general":
        return None
    if type(axis) is not int or abs(axis) > _MOST_AXES:
        return None
    code = pivot_code(False if definite else pivot, backend.PIVOTS)
    if access is not None:
        borrowed = backend.bands_borrowed if kind == "bands" else backend.blocks_borrowed
        options = (code, definite, threads, ordinal, policy != "ignore", functions)
        answer = borrowed(*matrix, rhs, axis, out, *options)
        return None if answer is NotImplemented else answer
    solve = backend.bands_direct if kind == "bands" else backend.blocks_direct
    return call_directly(solve, (*matrix, rhs), axis, out, code, definite, threads)


def _all_lines(target: Target, view: Array, tail: int, batch: Sequence[int]) -> Array:
    """View the matrices of a batch as (1, count), by a copy where it must be."""
    groups = ((), tuple(range(len(batch))))
    if target.name == "cpu":
        return lines_of(with_batch(view, tail, len(batch)), tail, batch, groups)
    return _device_lines(target, with_batch(view, tail, len(batch)), tail, batch, groups)


def _device_lines(
    target: Target,
    view: Array,
    tail: int,
    batch: Sequence[int],
    groups: Sequence[Sequence[int]],
) -> Array:
    """Merge the batch axes of a view on a device to two, (outer, inner), by a copy if needed."""
    lines = target.merged(view, tail, batch, groups)
    if lines is not None:
        return lines
    full = np.broadcast_to(view, (*batch, *view.shape[-tail:]))
    copy = target.copied(full.transpose(_grouped(batch, tail, groups)))
    sizes = [prod(batch[axis] for axis in group) for group in groups]
    return copy.reshape(*sizes, *view.shape[-tail:])


def _grouped(batch: Sequence[int], tail: int, groups: Sequence[Sequence[int]]) -> list[int]:
    """Return the order of the axes that has those of the groups last in the batch."""
    order = [axis for group in groups for axis in group]
    rest = [axis for axis in range(len(batch)) if axis not in order]
    return [*rest, *order, *range(len(batch), len(batch) + tail)]


def factor(target: Target, matrices: Matrices, pivot: int, threads: int) -> Factors:
    """Factor matrices; with the pivoting 'auto', with exchanges in all if one needs them.

    A call waits for a device if it has to know which matrices are dominant; otherwise what uses the
    factors, or asks for singular matrices, does.
    """
    backend, batch, tail = target.backend, matrices.batch, matrices.tail
    plan = Plan(batch, (), tuple(range(len(batch))))
    matrix = tuple(
        None if view is None else _all_lines(target, view, tail, batch)
        for view in matrices.operands
    )
    if matrices.side > backend.FAST_SIDE:
        pivot = backend.PIVOTS["always"]
    kept = matrices.without_operands()
    while True:
        if target.name != "cpu" and pivot == backend.PIVOTS["always"]:
            raise ExchangesNeededError(
                f"{matrices.operation}: factors on a device have no row exchanges across blocks, "
                "which matrices that are not block diagonally dominant can need: write pivot=False "
                "or assume='positive definite' if these need none, or solve for all right-hand "
                "sides, or pass arrays of NumPy"
            )
        store, info, report = _factor_once(target, matrices, matrix, pivot, threads)
        is_decided = pivot != backend.PIVOTS["auto"]
        if is_decided and not target.is_synchronous:
            target.release_inputs()
            target.has_read_kept(target.keeper)
            unread = UnreadSingular(target, info, plan)
            return Factors(kept, pivot, store, unread, target.keeper)
        found = np.asarray(target.info_on_host(info)).ravel()
        if is_decided:
            break
        exchanges = report["pivoted"] > 0 or (report["pivoted"] < 0 and bool((found < 0).any()))
        pivot = backend.PIVOTS["always" if exchanges else "never"]
        if not exchanges:
            break
        del store  # an exception keeps what this function has
    return Factors(kept, pivot, store, find_singular(found, plan), target.keeper)


def _factor_once(
    target: Target, matrices: Matrices, matrix: tuple[Array | None, ...], pivot: int, threads: int
) -> tuple[Array, Array, dict[str, Any]]:
    """Return the store of factors, the numbers of singular rows there, and the report."""
    backend, count = target.backend, prod(matrices.batch)
    dtype = backend.DTYPES[matrices.dtype.name]
    size = backend.blocks_store(dtype, pivot, matrices.side, matrices.rows, count)
    if target.name == "cpu":
        memory = np.empty(size + _ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % _ALIGNMENT
        store, info = memory[start : start + size], np.zeros((1, count), np.int32)
    else:
        # Both last as long as the factors, perhaps longer than the stream of the call.
        begin = aligned(size)
        memory = target.kept((begin + 4 * count,), np.dtype(np.uint8), target.keeper)
        store, info = memory[:size], memory[begin:].view(np.int32)
    report = _run(
        target,
        matrices,
        "factor",
        (pivot, 0, (matrices.rows, 1, count)),
        matrix=matrix,
        info=info,
        store=store,
        threads=threads,
    )
    return store, info, report


def apply(
    target: Target,
    factors: Factors,
    trans: str,
    rhs: Array,
    threads: int,
    x: Array | None = None,
) -> Array:
    """Solve for right-hand sides whose last batch axes are those of the matrices.

    A device writes the solutions to `x`, which can be `rhs`.
    """
    matrices = factors.matrices
    if not rhs.size:
        return np.empty(rhs.shape, matrices.dtype) if x is None else x
    _order(target, factors)
    sides = 1 if matrices.side == 0 else 2
    batch = rhs.shape[:-sides]
    own = (1,) * (len(batch) - len(matrices.batch)) + matrices.batch
    inner = tuple(k for k, size in enumerate(own) if size > 1)
    outer = tuple(k for k, size in enumerate(own) if size == 1 and batch[k] > 1)
    step = 1
    if not inner:  # one matrix: the right-hand sides fill the lanes
        outer, inner, step = (), outer, 0
    groups = (outer, inner)
    if x is None:
        lines = lines_of(rhs, sides, batch, groups)
        to: Array | None = np.empty(lines.shape, matrices.dtype)
    else:
        lines = _device_lines(target, rhs, sides, batch, groups)
        to = target.merged(x, sides, batch, groups)
    is_copy = to is None
    if to is None:
        to = target.empty(lines.shape, matrices.dtype)
    _run(
        target,
        matrices,
        "apply",
        (factors.pivot, target.backend.TRANS[trans], (matrices.rows, *lines.shape[:2])),
        rhs=lines,
        x=to,
        store=factors.store,
        of=(prod(matrices.batch), step),
        threads=threads,
    )
    target.has_read_kept(factors.keeper)
    if x is not None and not is_copy:
        return x
    order = _grouped(batch, sides, groups)
    lines = to.reshape(*(rhs.shape[k] for k in order))
    if x is None:
        return lines.transpose(np.argsort(order))
    target.write(x.transpose(order), lines)
    return x


def apply_directly(
    target: Target, factors: Factors, trans: Any, rhs: Array, axis: int, threads: int
) -> Any:
    """Solve in one call of the extension if the right-hand sides need no planning, or None."""
    matrices, backend = factors.matrices, target.backend
    if type(trans) is not str or trans not in backend.TRANS:
        return None
    batch = matrices.batch
    lead = rhs.ndim - matrices.tail
    count = prod(batch)
    if count == 1:
        if lead < len(batch):
            return None
        place = axis if lead else -1  # a vector is that of all matrices
    else:
        place = axis
        shape = rhs.shape[: lead + 1]
        if lead != len(batch) or shape[: lead + 1 + axis] + shape[lead + 1 + axis + 1 :] != batch:
            return None
    answer = backend.blocks_factored(
        factors.store,
        backend.DTYPES[matrices.dtype.name],
        factors.pivot,
        backend.TRANS[trans],
        matrices.side,
        matrices.rows,
        count,
        rhs,
        place,
        threads or None,
    )
    return None if answer is NotImplemented else answer


def logdet(target: Target, factors: Factors) -> tuple[Array, Array]:
    """Return the logarithms of the absolute values of the determinants, and their signs."""
    matrices = factors.matrices
    count = prod(matrices.batch)
    _order(target, factors)
    logarithms, signs = (target.empty((count,), np.dtype(np.float64)) for _ in range(2))
    _run(
        target,
        matrices,
        "logdet",
        (factors.pivot, 0, (matrices.rows, 1, count)),
        store=factors.store,
        of=(count, 1),
        pair=(logarithms, signs),
        threads=0,
    )
    target.has_read_kept(factors.keeper)
    return logarithms.reshape(matrices.batch), signs.reshape(matrices.batch)


def inverse(target: Target, factors: Factors, to: Sequence[Array] | None = None) -> Sequence[Array]:
    """Return the blocks of the inverses in the places of those of the matrices.

    A device writes them to `to` if these are views of whole batches.
    """
    matrices = factors.matrices
    count, side = prod(matrices.batch), matrices.side or 2
    _order(target, factors)
    rows = matrices.rows if matrices.side else (matrices.rows + 1) // 2
    shape, groups = (1, count, rows, side, side), ((), tuple(range(len(matrices.batch))))
    blocks: list[Array | None] = [None] * 3
    if to is not None:
        blocks = [target.merged(view, 3, matrices.batch, groups) for view in to]
    if any(block is None for block in blocks):
        empty = np.zeros if target.name == "cpu" else target.empty  # a device writes all blocks
        blocks, to = [empty(shape, matrices.dtype) for _ in range(3)], None
    _run(
        target,
        matrices,
        "inverse",
        (factors.pivot, 0, (matrices.rows, 1, count)),
        store=factors.store,
        of=(count, 1),
        inverse=tuple(blocks),
        threads=0,
    )
    target.has_read_kept(factors.keeper)
    if to is not None:
        return to
    return [
        block.reshape(*matrices.batch, rows, side, side) for block in blocks if block is not None
    ]


def _order(target: Target, factors: Factors) -> None:
    """Let a call follow that which made the factors."""
    if isinstance(factors.found, UnreadSingular):
        factors.found.order(target)


def _run(
    target: Target,
    matrices: Matrices,
    task: str,
    codes: tuple[int, int, tuple[int, ...]],
    *,
    matrix: Any = None,
    rhs: Any = None,
    x: Any = None,
    info: Any = None,
    store: Any = None,
    of: tuple[int, int] = (1, 1),
    inverse: Any = None,
    pair: Any = None,
    threads: int,
) -> Any:
    """Call the backend; `codes` are pivoting, trans and (rows, outer, inner)."""
    backend = target.backend
    pivot, trans, shape = codes
    status, report = backend.blocks_run(
        backend.BLOCK_TASKS[task],
        backend.DTYPES[matrices.dtype.name],
        pivot,
        trans,
        matrices.side,
        matrices.definite,
        shape,
        matrix,
        rhs,
        x,
        info,
        store,
        of,
        inverse,
        pair,
        threads,
        *target.arguments,
    )
    raise_for_status(status, backend.STATUS, matrices.operation)
    return report


def solve_penalised(
    y: Array, lam: Array, weights: Array, bands: Sequence[Array], z: Array, threads: int
) -> Array:
    """Solve (W + lam P) z = W y on the CPU for series (series, rows); return their `info`.

    P is symmetric with the diagonal and the upper diagonals `bands`, W that of the weights; lam has
    one axis. `info` is -1 where a weight is negative or not finite.
    """
    backend = require("cpu")
    count, rows = y.shape
    diag, upper, upper2 = (
        np.broadcast_to(band, (1, count, len(band))) if len(band) else None for band in bands
    )
    info = np.zeros(count, np.int32)
    status, _ = backend.blocks_run(
        backend.BLOCK_TASKS["solve"],
        backend.DTYPES[y.dtype.name],
        backend.PIVOTS["never"],
        backend.TRANS["N"],
        0,
        True,
        (rows, 1, count),
        (upper2, upper, diag, upper, upper2),
        y[None],
        z[None],
        info,
        None,
        (1, 0),
        None,
        None,
        threads,
        0,
        0,
        weights[None],
        lam[None, :, None],
    )
    raise_for_status(status, backend.STATUS, "a smoother")
    return info


def with_last_row(singular: Singular, wrong: Array, row: int) -> Singular:
    """Add the matrices of a batch that are `wrong` in the last row of a periodic system."""
    known = {tuple(system) for system in singular.systems}
    more = [system for system in np.argwhere(wrong) if tuple(system) not in known]
    if not more:
        return singular
    found = np.concatenate((singular.systems, np.array(more, np.intp)))
    rows = np.concatenate((singular.rows, np.full(len(more), row, np.intp)))
    order = np.lexsort(found.T[::-1]) if found.shape[1] else np.arange(len(found))
    return Singular(found[order], rows[order])


def react(
    singular: Singular,
    matrices: Matrices,
    x: Array | None,
    policy: OnSingular,
    stacklevel: int,
    target: Target | None = None,
) -> None:
    """Do what `on_singular` says; x has the batch axes of the matrices last before the rows.

    `target`: the device that holds the operands, if it is not the CPU.
    """
    if policy == "nan" and x is not None:
        fill_nan(singular, matrices, x, target)
    report(explained(singular, matrices, policy, target), matrices, policy, stacklevel + 1)


def fill_nan(
    singular: Singular, matrices: Matrices, x: Array, target: Target | None = None
) -> None:
    """Write NaN to the solutions of singular systems; x and `target` as in `react`."""
    on_device = target is not None and target.name != "cpu"
    tail = 1 if matrices.side == 0 else 2
    for system in singular.systems:
        places = [
            slice(None) if size == 1 else place
            for size, place in zip(matrices.batch, system, strict=True)
        ]
        part = x[(..., *places, *(slice(None),) * tail)]
        if target is not None and on_device:
            target.write(part, np.array(np.nan, part.dtype))
        else:
            part[...] = np.nan


def explained(
    singular: Singular, matrices: Matrices, policy: OnSingular, target: Target | None = None
) -> Singular:
    """Return singular systems, with the first entry that is not finite if `policy` reports them."""
    if not len(singular.rows) or policy not in ("raise", "warn"):
        return singular
    if target is not None and target.name != "cpu":
        operands = (None if v is None else target.download(v) for v in matrices.operands)
        matrices = matrices._replace(operands=tuple(operands))
    return Singular(singular.systems, singular.rows, _not_finite(matrices))


def report(singular: Singular, matrices: Matrices, policy: OnSingular, stacklevel: int) -> None:
    """Raise or warn, if `on_singular` requires it, for singular systems that were `explained`."""
    if not len(singular.rows):
        return
    if matrices.definite and singular.entry is None:
        singular = Singular(
            singular.systems, singular.rows, None, _indefinite_text(matrices.operation, singular)
        )
    singular.report(policy, matrices.operation, stacklevel=stacklevel + 1)


def _indefinite_text(operation: str, singular: Singular) -> str:
    """Return the message for matrices that are not positive definite."""
    system, row = tuple(map(int, singular.systems[0])), int(singular.rows[0])
    where = f"of batch index {system} " if system else ""
    more = f", as {len(singular.rows) - 1} more of the batch" if len(singular.rows) > 1 else ""
    return (
        f"{operation}: the matrix {where}is not positive definite{more}: its pivot in row {row} is "
        "not; write assume='general' for other matrices"
    )


def _not_finite(matrices: Matrices) -> Entry | None:
    """Return the first entry of the matrices that is not finite."""
    half = len(matrices.operands) // 2
    operands = matrices.periodic or matrices.operands
    for number, (name, view) in enumerate(zip(matrices.names, operands, strict=True)):
        if view is None or np.isfinite(view).all():
            continue
        tail, offset = matrices.tail, number - half
        rows = view.shape[-tail]
        # Less rows: the first ones.
        first = rows - matrices.rows if offset < 0 and not matrices.periodic else 0
        for place in np.argwhere(~np.isfinite(view)):
            row = int(place[view.ndim - tail]) - first
            if matrices.periodic or 0 <= row + offset < matrices.rows:
                batch = tuple(int(k) for k in place[: view.ndim - tail])
                return Entry(name, batch, row, view[tuple(place)])
    return None


def require_operands(operation: str, named: dict[str, Any]) -> None:
    """Raise TypeError for a diagonal or a right-hand side that is None."""
    for name in ("diag", "rhs"):
        if name in named and named[name] is None:
            raise TypeError(f"{operation}: {name} is None: pass an array")


def real_parts(rhs: Array, x: Array, *, is_complex: bool) -> list[tuple[Array, Array]]:
    """Return the pairs of right-hand sides and solutions of a matrix that `is_complex`, or real."""
    if x.dtype.kind == "c" and not is_complex:
        return [(rhs.real, x.real), (rhs.imag, x.imag)]
    return [(rhs, x)]


def solved_by_parts(
    operation: str, rhs: Any, dtype: np.dtype, solve: Callable[[Array], Array]
) -> Any:
    """Return the solution in the library of `rhs`, for factors of a dtype.

    Complex right-hand sides are solved as two real parts unless the factors are complex.
    """
    target = host_target(operation, {"rhs": rhs}, None, "rhs")
    array = right_side(target, rhs, dtype)
    splits = array.dtype.kind == "c" and dtype.kind != "c"
    parts = [array.real, array.imag] if splits else [array]
    x = [solve(part) for part in parts]
    answer = x[0] if len(x) == 1 else joined(np, x[0], x[1])
    result = target.result(None, {"rhs": rhs}, array, answer.shape, answer.dtype, leader="rhs")
    result[...] = answer
    return target.finish(result, rhs, None)


def on_host(target: Target, name: str, value: Any) -> Any:
    """Return a copy of an operand on the host, or None if it is None."""
    if locate(value) is None:
        return None if value is None else np.array(value)
    assert isinstance(target, DeviceTarget)
    return target.download(device_view(name, value, target.stream))


def right_side(target: Target, rhs: Any, dtype: np.dtype) -> Array:
    """Return right-hand sides in the precision of factors, or raise TypeError."""
    like = {"the factor": np.empty((1,), dtype)}
    (array,), _, _ = target.operands({"rhs": rhs}, like, widens=True)
    return array


class DeviceResults:
    """Results of factors that are on a device, as arrays of the library of the matrices.

    Parameters
    ----------
    target : Target
        Of the call that made the factors.
    value : array
        An operand of the caller.
    tail : int
        Number of the last axes of an operand that are not batch axes.
    """

    def __init__(self, target: Target, value: Any, tail: int) -> None:
        self._tail = tail
        self._device = target.device_name
        view = np.broadcast_to(np.zeros((), np.float64), (1,))
        self._like = library_of(value).empty(value, view, (1,), target.ordinal)

    def target(self, operation: str) -> Target:
        """Return the target of a call without operands, on the current stream."""
        return target_of(operation, {"the factor": self._like}, None, "the factor", self._device)

    def new(self, target: Target, shape: tuple[int, ...], dtype: Any) -> tuple[Any, Array]:
        """Return a new array of the caller, and where it is written."""
        like = np.broadcast_to(np.zeros((), dtype), (1,))
        assert isinstance(target, DeviceTarget)
        value = library_of(self._like).empty(self._like, like, shape, target.ordinal)
        x = device_view("the result", value, target.stream)
        if not x.flags.writeable:
            x = device_array(address_of(x), x.shape, x.strides, x.dtype, x)
        return value, x

    def publish(self, target: Target, value: Any) -> Any:
        """Return what the caller gets for a new array, all writes to which are enqueued."""
        assert isinstance(target, DeviceTarget)
        library = library_of(self._like)
        return library.publish(value, target.stream, target.ordinal, target.backend)

    def finish(self, target: Target, values: Array) -> Any:
        """Return an array of the caller with these values of the device."""
        value, x = self.new(target, values.shape, values.dtype)
        if x.dtype != values.dtype:  # JAX without float64
            values = target.download(values).astype(x.dtype)
        target.write(x, values)
        return self.publish(target, value)

    def right_side(self, operation: str, dtype: np.dtype, rhs: Any) -> tuple[Target, Array]:
        """Return the target of a solve, and its right-hand sides there."""
        target = target_of(operation, {"rhs": rhs}, None, "rhs", self._device)
        (array,) = moved(target, [right_side(target, rhs, dtype)])
        return target, array

    def logdet(self, operation: str, factors: Factors) -> Any:
        """Return the logarithms of the determinants, NaN where `assume` does not hold."""
        target = self.target(operation)
        logarithms, _ = logdet(target, factors)
        return self.finish(target, logarithms)

    def solve(
        self,
        operation: str,
        dtype: np.dtype,
        rhs: Any,
        axis: int,
        widened: Callable[[Array], Array],
        solve: Callable[..., None],
    ) -> Any:
        """Return the solutions, with ``solve(target, rhs, x)`` for real right-hand sides.

        These are what `widened` returns: views with all batch axes, then the rows and, of blocks,
        two axes. `axis` is that of the rows among those before the latter.
        """
        target, array = self.right_side(operation, dtype, rhs)
        wide, blocks = widened(array), self._tail - 1
        places = (-1 - blocks, axis - blocks)
        shape = np.moveaxis(wide, *places).shape
        result = target.result(None, {"rhs": rhs}, array, shape, array.dtype, leader="rhs")
        if result.size:
            x = np.moveaxis(target.destination(result), *reversed(places))
            for right, to in real_parts(wide, x, is_complex=False):
                solve(target, right, to)
        return target.finish(result, rhs, None)

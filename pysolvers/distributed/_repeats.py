"""Calls of `solve_tridiagonal` on devices that repeat an earlier kind of call: no agreement.

The ranks agree in the first call of a kind (_devices.py). A later one is a lookup, and a kernel
that compares the kinds of the ranks, by a hash, in the exchange that it makes anyway. A rank that
cannot repeat a kind, or makes another call, says so in its next message through the memory of the
host; the kernels of the others then end at once. If their calls wait for the outcome, they take
part in the agreement, which has the errors, or solves. Otherwise the solution is NaN, and the next
agreement of the group raises.

A call with `return_info` waits, as its info has the rows of all ranks: these are in its hash, and a
rank with other rows makes all of them agree.

Operands are those of the libraries with fast access, and numbers. A repeated call needs the
addresses, shapes and strides of an earlier one of this rank; others are prepared, without messages.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import BackendError, DistributedError, raise_for_status
from .._lines.engine import prepare
from .._options import Choice, SolveInfo
from .._runtime.device import address_of, device_array
from .._runtime.interop import Library, library_of, locate
from .._runtime.lines import plan_of
from .._runtime.targets import DeviceTarget
from ._devices import (
    Kind,
    facts_of,
    kinds_of,
    late_error,
    part_check,
    part_operands,
    signature_of,
    waiting_of,
    with_sizes,
)
from ._group import EARLIER, Group
from ._slab import Slab

Array = NDArray[Any]

_CALLS = 256  # that are kept
_RHS, _X = 3, 4
_NUMBERS = (float, int)


class _Call:
    """A call of this rank whose operands the device can use as they are.

    Parameters
    ----------
    kind : Kind
        Its kind.
    backend : module
        The extension.
    operands, waiting : tuple
        The first arguments of `part_solve`, and its patience and marks. They do not keep the
        arrays of the caller, who passes them in each call.
    info : SolveInfo or None
        That of calls without failures, if the caller asks for it: one for all, as its arrays are
        empty.
    copy : tuple or None
        The solution of the caller, and where it is computed, if it replaces the right-hand sides:
        another solve would need these.
    """

    __slots__ = ("backend", "copy", "info", "kind", "operands", "waiting")

    def __init__(
        self,
        kind: Kind,
        backend: Any,
        operands: tuple[Any, ...],
        waiting: tuple[int, int],
        copy: tuple[Array, Array] | None,
        info: SolveInfo | None,
    ) -> None:
        self.kind, self.backend = kind, backend
        self.operands, self.waiting, self.copy, self.info = operands, waiting, copy, info


def solve_as_before(group: Group, split: Slab, named: dict[str, Any], choice: Choice) -> Any:
    """Return the solution of a call of a kind that is kept, or None if it must be agreed upon."""
    kinds = group.kept["calls"]["kinds"]
    rhs, out = named["rhs"], choice.out
    library = library_of(rhs)
    if not kinds.found or not library.has_fast_access or not library.on_device(rhs):
        return None
    if not _is_plain(choice):
        return None
    if len(kinds.ordinals) == 1:  # arrays of another device are not found
        (ordinal,) = kinds.ordinals
    else:
        ordinal = locate(rhs)
    is_new = out is None
    if is_new:
        out = library.fast_access[3](rhs, ordinal)
    identity = _identity(library, (*named.values(), out), choice, split)
    if identity is None:
        return None
    is_captured = library.is_captured(ordinal)
    if is_captured and choice.return_info:  # it waits
        return None
    call = kinds.calls.get(identity)
    if call is None:
        call = _prepared(group, split, named, choice._replace(out=out))
        if call is None:
            return None
        if not is_captured:  # otherwise numbers are in memory of the graph
            if len(kinds.calls) >= _CALLS:
                kinds.calls.clear()
            kinds.calls[identity] = call
    stream = library.fast_access[2](ordinal)
    where = ordinal, stream

    def owner() -> object:
        """Return what keeps the stream."""
        return library.stream(rhs, ordinal).owner

    if not _solved(group, call, choice, where, owner, is_captured):
        return None
    return out if call.info is None else (out, call.info)


def _is_plain(choice: Choice) -> bool:
    """Whether the options are among those of repeated calls."""
    return (
        choice.stream is None
        and choice.check_finite is False
        and not choice.has_sums
        and choice.pivot is not True
    )


def _identity(
    library: Library, operands: tuple[Any, ...], choice: Choice, split: Slab
) -> tuple[Any, ...] | None:
    """Return what decides how a call is prepared; None if it cannot be repeated."""
    found: list[Any] = []
    for operand in operands:
        if type(operand) in _NUMBERS:
            found.append(operand)
            continue
        if library_of(operand) is not library:
            return None
        identity = library.identity(operand)
        if identity is None:
            return None
        found.append(identity)
    identity = (*found, *_options(choice), split.axis)
    try:
        hash(identity)
    except TypeError:
        return None
    return identity


_options = attrgetter(
    "axis",
    "method",
    "periodic",
    "pivot",
    "on_singular",
    "device",
    "threads",
    "return_info",
)


def _prepared(group: Group, split: Slab, named: dict[str, Any], choice: Choice) -> _Call | None:
    """Prepare a call of a kind that is kept; None if this rank cannot repeat the kind."""
    try:
        call = prepare(named, choice)
        along = split.of(len(call.shape.full))
    except Exception:  # the agreement has the messages
        return None
    facts = facts_of(group, call)
    if facts is None or along != call.shape.axis or call.converted or not call.result.size:
        return None
    kinds = kinds_of(group)
    target, signature, described = call.target, signature_of(call, along), None
    if choice.return_info:
        known = kinds.described.get((signature, target.ordinal))
        if known is None or known[0][group.rank] != call.shape.rows:
            return None
        signature, described = with_sizes(signature, known[0]), known[1]
    kind = kinds.found.get((signature, target.ordinal))
    if kind is None or not isinstance(target, DeviceTarget) or kind.order != facts.order:
        return None
    views, copy = list(call.views), None
    given = [type(value) in _NUMBERS for value in named.values()]
    if kind.waits and np.may_share_memory(views[_RHS], views[_X]):
        solution = kinds.scratch(target, views[_X])
        copy = _unowned(views[_X]), solution
        views[_X] = solution
    plan = plan_of(call.shape.batch, views)
    if plan.copied:
        return None
    flags, *lines, info, part, count, rows = part_operands(group, call, plan, views, kind.info)
    lines = [
        line if is_kept else _unowned(line)
        for line, is_kept in zip(lines, [*given, copy is not None], strict=True)
    ]
    operands = flags, *lines, info, part, count, rows
    waiting = waiting_of(group, kind.marks)
    if part_check(target, operands, waiting):
        return None
    return _Call(kind, target.backend, operands, waiting, copy, described)


def _unowned(line: Array) -> Array:
    """Return an array over the same memory, which it does not keep: that of the caller's array."""
    return device_array(address_of(line), line.shape, line.strides, line.dtype, None)


def _solved(
    group: Group,
    call: _Call,
    choice: Choice,
    where: tuple[int, int],
    owner: Callable[[], object],
    is_captured: bool,
) -> bool:
    """Solve; return whether the solution is complete, or will be."""
    kind, backend = call.kind, call.backend
    operands, link = call.operands, kind.link
    try:
        status = link.enqueue(
            backend, operands, call.waiting, kind.key, where, owner, is_captured=is_captured
        )
        _check(backend, status)
    except BackendError:
        with group.agreement(EARLIER):  # all ranks raise
            raise
    if choice.on_singular == "nan":
        lines = call.operands[1 + _X]
        _check(backend, backend.fill_nan(lines, kind.info.reshape(lines.shape[:2]), *where))
    if not kind.waits:
        if not is_captured:
            group.unchecked = lambda: _failure(group, kind, backend, where)
        return True
    outcome = link.outcome(backend, where)
    if outcome.late < 0 and not outcome.has_failed:
        if call.copy is not None:
            _check(backend, backend.relayout(*call.copy, *where))
        return True
    if outcome.late >= 0 and not outcome.is_elsewhere:
        raise late_error(group, outcome)
    if outcome.late >= 0:
        group.forget_calls()
    else:  # the same on all ranks
        kinds_of(group).forget(link)
    return False


def _check(backend: Any, status: int) -> None:
    """Raise the exception for what a call of the backend returned."""
    raise_for_status(status, backend.STATUS, EARLIER)


def _failure(
    group: Group, kind: Kind, backend: Any, where: tuple[int, int]
) -> DistributedError | None:
    """Wait for calls that did not wait; return the error of a rank that did not answer."""
    outcome = kind.link.outcome(backend, where)
    if outcome.late < 0:
        return None
    error = late_error(group, outcome)
    return DistributedError(
        f"{error}. The solution of this earlier call, which did not wait, is NaN", error.ranks
    )

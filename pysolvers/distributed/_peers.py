"""Lines that are cut over the devices of one host, solved in one pass over memory.

The devices write the numbers of the reduced system into each other's memory, within the kernel:
csrc/include/ps_part.h. Each rank has mailboxes for every number of systems and dtype that the group
has met; they are made, opened and closed by all ranks together.
"""

import socket
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._errors import BackendError, DistributedError
from .._runtime.mailboxes import Mailboxes
from .._runtime.singular import Singular, find_singular
from ..tridiagonal import Call, plan_of, shape_flags
from ._group import Group

__all__ = ["solve_by_peers"]

_OPERATION = "solve_tridiagonal"
_MOST = 8  # ranks
_KEPT = 4  # mailboxes of a rank
_X = 4


class _Facts(NamedTuple):
    """What must be equal on all ranks for a solve in one pass."""

    host: str
    order: tuple[tuple[int, ...], tuple[int, ...]]
    is_possible: bool = True


def solve_by_peers(
    group: Group, call: Call, sizes: Sequence[int]
) -> tuple[dict[str, Any], Singular | None] | None:
    """Solve on devices of one host.

    Returns
    -------
    report : dict
        As of the backend.
    singular : Singular or None
        The singular systems, if the call asks for them.

    None in place of both, on all ranks, if this way cannot be taken: an operand is on the host, a
    device cannot use the memory of another one, or a system needs row exchanges.
    """
    place, backend, shape = call.place, call.place.backend, call.shape
    if not hasattr(backend, "part_solve") or not 2 <= group.size <= _MOST:  # a host has none
        return None
    plan = plan_of(shape.batch, call.views)
    systems = prod(shape.batch)
    with group.agreement(_OPERATION) as facts:
        simple = not plan.copied and not any(shape.short) and sum(sizes) < backend.MAX_ROWS
        one_dtype = len({view.dtype for view in call.views}) == 1
        facts.own = _Facts(_host(), (plan.outer, plan.inner), simple and one_dtype)
    if any(own != facts.found[0] or not own.is_possible for own in facts.found):
        return None
    boxes = _mailboxes(group, call, systems)
    if boxes is None:
        return None
    info = place.info(systems)
    marks = None
    if call.options.pivot != backend.PIVOTS["never"]:
        marks = backend.Buffer(systems, *place.arguments)
    arguments = (
        shape_flags(backend, shape, call.choice.periodic),
        *place.lines(plan, call.views, shape.rows),
        info,
        group.rank,
        group.size,
        tuple(int(end) - 1 for end in np.cumsum(sizes)),
        *boxes.arguments,
        round(1e9 * group.timeout),
        0 if marks is None else marks.address,
        *place.arguments,
    )
    with group.agreement(_OPERATION) as checked:
        checked.own = backend.part_check(*arguments)
    if any(checked.found):
        return None
    with group.agreement(_OPERATION) as begun:
        begun.own = backend.part_solve(*arguments)
        boxes.used(place.arguments[1])
    if any(begun.found):
        raise BackendError(f"{_OPERATION}: {backend.STATUS[max(begun.found)][1]}")
    return _outcome(group, call, info, marks, plan)


def _outcome(
    group: Group, call: Call, info: Any, marks: Any, plan: Any
) -> tuple[dict[str, Any], Singular | None] | None:
    place, backend = call.place, call.place.backend
    report: dict[str, Any] = {"method": "partition", "kernel": "partition devices", "copied": ()}
    report |= {"threads": 0, "pivoted": 0, "repeated": 0}
    if marks is None and not place.asks(call.options.policy):
        return report, None
    failed = place.read(info)
    late = -int(failed.min(initial=0)) - 1
    if late >= 0:
        raise DistributedError(
            f"{_OPERATION}: rank {group.rank} of {group.size} gets no message from rank {late}: "
            f"waited {group.timeout:g} s",
            (late,),
        )
    if marks is not None:
        found = np.empty(len(failed), np.uint8)
        backend.download(found, marks.address, *place.arguments)
        if found.any() or failed.any():
            return None
    return report, find_singular(failed, plan)


def _host() -> str:
    """Return a name of the machine that no other one has."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return f"{socket.gethostname()} {path.read_text() if path.exists() else ''}"


def _mailboxes(group: Group, call: Call, systems: int) -> Mailboxes | None:
    """Return the mailboxes for this call, or None if a device cannot use another one's memory."""
    place = call.place
    kept: dict[Any, Mailboxes | None] = group.kept.setdefault("mailboxes", {})
    key = str(call.dtype), systems, place.ordinal
    if key in kept:
        return kept[key]
    while len(kept) >= _KEPT:
        _discard(group, kept.pop(next(iter(kept))))
    with group.agreement(_OPERATION) as made:
        dtype, backend = call.dtype, place.backend
        boxes = Mailboxes(
            backend, place.ordinal, dtype, systems, group.rank, group.size, group.rank
        )
        made.own = boxes.own
    with group.agreement(_OPERATION) as opened:
        try:
            boxes.connect(made.found)
            opened.own = True
        except BackendError:
            opened.own = False
    kept[key] = boxes
    if not all(opened.found):
        _discard(group, boxes)
        kept[key] = None
    return kept[key]


def _discard(group: Group, boxes: Mailboxes | None) -> None:
    """Close mailboxes on all ranks, and only then free them."""
    if boxes is None:
        return
    with group.agreement(_OPERATION):
        boxes.wait()
    with group.agreement(_OPERATION):
        boxes.close()

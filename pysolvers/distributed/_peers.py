"""Lines that are cut over the devices of one host, solved in one pass over memory.

The devices write the numbers of the reduced system into each other's memory, within the kernel:
csrc/include/ps_part.h. Each rank has mailboxes for every number of systems and dtype that the group
has met; they are made, opened and closed by all ranks together.
"""

import socket
from collections.abc import Sequence
from functools import cache
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._errors import BackendError, DistributedError
from .._runtime.mailboxes import Mailboxes
from .._runtime.shadows import address_of
from .._runtime.singular import Singular, find_singular
from ..tridiagonal import Call, plan_of, shape_flags
from ._group import Group

__all__ = ["Facts", "facts_of", "host_name", "solve_by_peers"]

_OPERATION = "solve_tridiagonal"
_MOST = 8  # ranks
_KEPT = 4  # mailboxes of a rank
_CHECKS = 256  # calls whose check is kept
_ALIGNMENT = 256  # octets: addresses that differ by a multiple of it are alike

Key = tuple[str, int, tuple[int, ...]]  # dtype, number of systems, device of each rank


class Facts(NamedTuple):
    """What the other ranks need to know of a rank for a solve in one pass.

    Attributes
    ----------
    like : tuple
        What must be equal on all ranks: the machine, and the order of the systems.
    device : int
        The device of the operands.
    geometry : tuple
        What the check of the backend depends on, apart from the sizes of the parts.
    """

    like: tuple[Any, ...]
    device: int
    geometry: tuple[Any, ...]


def facts_of(group: Group, call: Call) -> Facts | None:
    """Return the facts of this rank, or None if its operands cannot be solved in one pass."""
    if "peers" not in group.ways or not hasattr(call.place.backend, "part_solve"):
        return None  # a host has none
    plan = plan_of(call.shape.batch, call.views)
    one_dtype = len({view.dtype for view in call.views}) == 1
    if plan.copied or any(call.shape.short) or not one_dtype:
        return None
    places = tuple((address_of(view) % _ALIGNMENT, view.shape, view.strides) for view in call.views)
    geometry = (str(call.dtype), call.choice.periodic, call.options.pivot, places)
    return Facts((host_name(), plan.outer, plan.inner), call.place.ordinal, geometry)


def solve_by_peers(
    group: Group, call: Call, sizes: Sequence[int], facts: Sequence[Facts | None]
) -> tuple[dict[str, Any], Singular | None] | None:
    """Solve on devices of one host.

    Parameters
    ----------
    group : Group
        The ranks.
    call : Call
        The call of this rank.
    sizes : sequence of int
        Rows of each rank.
    facts : sequence
        `facts_of` all ranks.

    Returns
    -------
    report : dict
        As of the backend.
    singular : Singular or None
        The singular systems, if the call asks for them.

    None in place of both, on all ranks, if this way cannot be taken: an operand is on the host, a
    device cannot use the memory of another one, a block cannot hold the rows of a rank, or a system
    needs row exchanges.
    """
    known = [own for own in facts if own is not None]
    if len(known) < len(facts) or len({own.like for own in known}) > 1 or len(known) > _MOST:
        return None
    place, backend, shape = call.place, call.place.backend, call.shape
    if sum(sizes) >= backend.MAX_ROWS:
        return None
    plan, systems = plan_of(shape.batch, call.views), prod(shape.batch)
    info, marks = place.info(systems), None
    if call.options.pivot != backend.PIVOTS["never"]:
        marks = place.block((systems,), np.dtype(np.uint8))
    operands = (
        shape_flags(backend, shape, call.choice.periodic),
        *place.lines(plan, call.views, shape.rows),
        info,
        group.rank,
        group.size,
        tuple(int(end) - 1 for end in np.cumsum(sizes)),
    )
    rest = (
        round(1e9 * group.timeout),
        0 if marks is None else address_of(marks),
        backend.PART_STEPS["whole"],
        *place.arguments,
    )
    # What the ranks checked is the same on all of them, as they keep it by the facts of all.
    checks = group.kept.setdefault("checked", {})
    checked = tuple(sizes), tuple(known)
    if checked not in checks:
        if len(checks) >= _CHECKS:
            checks.clear()
        with group.agreement(_OPERATION) as agreed:  # reads no mailbox
            agreed.own = backend.part_check(*operands, (0,) * group.size, 0, *rest)
        checks[checked] = not any(agreed.found)
    if not checks[checked]:
        return None
    key = str(call.dtype), systems, tuple(own.device for own in known)
    boxes = _mailboxes(group, call, key)
    if boxes is None:
        return None
    with group.agreement(_OPERATION) as begun:
        begun.own = backend.part_solve(*operands, *boxes.arguments, *rest)
        boxes.used(place.arguments[1])
    if any(begun.found):
        raise BackendError(f"{_OPERATION}: {backend.STATUS[max(begun.found)][1]}")
    return _outcome(group, call, info, marks, plan)


def _outcome(
    group: Group, call: Call, info: Any, marks: Any, plan: Any
) -> tuple[dict[str, Any], Singular | None] | None:
    place = call.place
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
    if marks is not None and (failed.any() or place.read(marks).any()):
        return None
    return report, find_singular(failed, plan)


@cache
def host_name() -> str:
    """Return a name of the machine that no other one has."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return f"{socket.gethostname()} {path.read_text() if path.exists() else ''}"


def _mailboxes(group: Group, call: Call, key: Key) -> Mailboxes | None:
    """Return the mailboxes for this call, or None if a device cannot use another one's memory."""
    place = call.place
    kept: dict[Key, Mailboxes | None] = group.kept.setdefault("mailboxes", {})
    if key in kept:
        return kept[key]
    while len(kept) >= _KEPT:
        _discard(group, kept.pop(next(iter(kept))))
    with group.agreement(_OPERATION) as made:
        _, systems, devices = key
        boxes = Mailboxes(
            place.backend, place.ordinal, call.dtype, systems, group.rank, len(devices), group.rank
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

"""Lines that are cut over devices, each of which eliminates and substitutes in one kernel.

Devices of one host that can write into each other's memory exchange the numbers of the reduced
system within the kernel: 5 words per unknown. Other devices exchange them by NCCL between two
kernels, each of which reads the operands: 9 words. See csrc/include/ps_part.h.

Each rank has mailboxes for every number of systems and dtype that the group has met; they are made,
opened and closed by all ranks together.
"""

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._errors import BackendError, DistributedError
from .._lines.engine import Call, plan_of
from .._options import shape_flags
from .._runtime.device import address_of
from .._runtime.lines import Plan
from .._runtime.mailboxes import CLOCK_BYTES, Mailboxes, Outcome, mailbox_bytes
from .._runtime.singular import Singular, find_singular
from .._runtime.targets import DeviceTarget
from ._group import Group, host_name
from ._links import first_link
from ._nccl import Nccl, nccl_of

Array = NDArray[Any]
Answer = tuple[dict[str, Any], Singular | None, str]

_OPERATION = "solve_tridiagonal"
_MOST = 8  # ranks
_KEPT = 4  # mailboxes of a rank
_CHECKS = 256  # calls whose check is kept
_ALIGNMENT = 256  # octets: addresses that differ by a multiple of it are alike
_RHS, _X = 3, 4

Key = tuple[str, int, tuple[int, ...]]  # dtype, number of systems, device of each rank


class Facts(NamedTuple):
    """What the other ranks need to know of a rank for a solve on devices.

    Attributes
    ----------
    host : str
        The machine.
    order : tuple
        The order of the systems, which must be equal on all ranks.
    device : int
        The device of the operands.
    geometry : tuple
        What the check of the backend depends on, apart from the sizes of the parts.
    """

    host: str
    order: tuple[Any, ...]
    device: int
    geometry: tuple[Any, ...]


def facts_of(group: Group, call: Call) -> Facts | None:
    """Return the facts of this rank, or None if its operands cannot be solved on devices."""
    is_possible = {"peers", "nccl"} & set(group.links)
    if not is_possible or not hasattr(call.target.backend, "part_solve"):  # a host has none
        return None
    plan = plan_of(call.shape.batch, call.views)
    one_dtype = len({view.dtype for view in call.views}) == 1
    if plan.copied or any(call.shape.short) or not one_dtype:
        return None
    places = tuple((address_of(view) % _ALIGNMENT, view.shape, view.strides) for view in call.views)
    geometry = (str(call.dtype), call.choice.periodic, call.options.pivot, places)
    return Facts(host_name(), (plan.outer, plan.inner), call.target.ordinal, geometry)


def solve_on_devices(
    group: Group, call: Call, sizes: Sequence[int], facts: Sequence[Facts | None]
) -> Answer | None:
    """Solve on the devices of the ranks.

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
    link : {'peers', 'nccl'}
        How the numbers travel.

    None in place of all, on all ranks, if there is no such link: an operand is on the host,
    devices can neither use each other's memory nor NCCL, a block cannot hold the rows of a rank, or
    a system needs row exchanges.
    """
    known = [own for own in facts if own is not None]
    if len(known) < len(facts) or len({own.order for own in known}) > 1 or len(known) > _MOST:
        return None
    target, backend, shape = call.target, call.target.backend, call.shape
    assert isinstance(target, DeviceTarget)
    if sum(sizes) >= backend.MAX_ROWS:
        return None
    *matrix, rhs, x = call.views
    needs_rhs = call.options.pivot != backend.PIVOTS["never"] and np.may_share_memory(rhs, x)
    # Systems that need row exchanges are solved again, from the right-hand sides.
    solution = target.packed(x) if needs_rhs else x
    views = (*matrix, rhs, solution)
    plan, systems = plan_of(shape.batch, views), prod(shape.batch)
    info, marks = target.info(systems), None
    if call.options.pivot != backend.PIVOTS["never"]:
        marks = target.empty((systems,), np.dtype(np.uint8))
    operands: tuple[Any, ...] = (
        shape_flags(backend, shape, call.choice.periodic),
        *target.lines(plan, views, shape.rows),
        info,
        group.rank,
        group.size,
        tuple(int(end) - 1 for end in np.cumsum(sizes)),
    )
    waiting = round(1e9 * group.timeout), 0 if marks is None else address_of(marks)
    # What the ranks checked is the same on all of them, as they keep it by the facts of all.
    checks = group.kept.setdefault("checked", {})
    checked = tuple(sizes), tuple(known)
    if checked not in checks:
        if len(checks) >= _CHECKS:
            checks.clear()
        with group.agreement(_OPERATION) as agreed:  # reads no mailbox
            agreed.own = backend.part_check(
                *operands,
                (0,) * group.size,
                0,
                *waiting,
                backend.PART_STEPS["whole"],
                *target.arguments,
            )
        checks[checked] = not any(agreed.found)
    if not checks[checked]:
        return None
    key = str(call.dtype), systems, tuple(own.device for own in known)
    link = _link(group, call, target, key, one_host=len({own.host for own in known}) == 1)
    if link is None:
        return None
    with group.agreement(_OPERATION) as begun:
        begun.own = link.begin(target, operands, waiting)
    if any(begun.found):
        raise BackendError(f"{_OPERATION}: {backend.STATUS[max(begun.found)][1]}")
    link.end(target, operands, waiting)
    outcome = _outcome(group, call, info, marks, plan, link.clock)
    if outcome is None:
        return None
    if needs_rhs:
        target.write(x, solution)
    if call.options.policy == "nan":
        lines = operands[1 + _X]
        target.fill_nan(lines, info.reshape(lines.shape[:2]))
    return *outcome, link.name


def _outcome(
    group: Group, call: Call, info: Array, marks: Array | None, plan: Plan, clock: Array
) -> tuple[dict[str, Any], Singular | None] | None:
    """Return report and singular systems, or None if a system needs row exchanges."""
    target = call.target
    report: dict[str, Any] = {"method": "partition", "kernel": "partition devices", "copied": ()}
    report |= {"threads": 0, "pivoted": 0, "repeated": 0}
    if marks is None and not target.reports_singular(call.options.policy):
        return report, None
    late, has_failed = Outcome.of(target.on_host(clock))
    if late >= 0:
        raise DistributedError(
            f"{_OPERATION}: rank {group.rank} of {group.size} gets no message from rank {late}: "
            f"waited {group.timeout:g} s",
            (late,),
        )
    if marks is not None and has_failed:
        return None
    failed = target.on_host(info) if has_failed else np.zeros(0, np.int32)
    return report, find_singular(failed, plan)


class _PeerLink:
    """Mailboxes in the memory of the devices of one host."""

    name = "peers"

    def __init__(self, boxes: Mailboxes) -> None:
        self._boxes = boxes

    @property
    def clock(self) -> Array:
        """The clock, in the memory of the device."""
        return self._boxes.clock

    def begin(self, target: DeviceTarget, operands: Sequence[Any], waiting: Sequence[int]) -> int:
        """Enqueue the solve; return the status."""
        backend = target.backend
        step = backend.PART_STEPS["whole"]
        status: int = backend.part_solve(
            *operands, *self._boxes.arguments, *waiting, step, *target.arguments
        )
        self._boxes.used(target.arguments[1])
        return status

    def end(self, target: DeviceTarget, operands: Sequence[Any], waiting: Sequence[int]) -> None:
        """Do what remains after all ranks have begun: nothing."""

    def discard(self, group: Group) -> None:
        """Close the mailboxes on all ranks, and only then free them; collective."""
        with group.agreement(_OPERATION):
            self._boxes.wait()
        with group.agreement(_OPERATION):
            self._boxes.close()


class _NcclLink:
    """Memory for the numbers of all ranks, which NCCL brings to all devices.

    Parameters
    ----------
    group : Group
        The ranks.
    nccl : Nccl
        What brings messages.
    target : DeviceTarget
        The device of this rank.
    dtype : dtype
        Of the systems.
    systems : int
        Number of the systems.
    """

    name = "nccl"

    def __init__(
        self, group: Group, nccl: Nccl, target: DeviceTarget, dtype: np.dtype, systems: int
    ) -> None:
        self._group, self._nccl = group, nccl
        size = mailbox_bytes(target, dtype, systems, group.size, "send")
        pitch = -(-max(size, CLOCK_BYTES) // _ALIGNMENT) * _ALIGNMENT
        rows = target.empty((group.size + 1, pitch), np.dtype(np.uint8), lasting=True)
        self._clock = rows[0, :CLOCK_BYTES]
        target.write(self._clock, np.zeros(CLOCK_BYTES, np.uint8))
        target.wait()
        #: The numbers of each rank.
        self._boxes = [rows[1 + rank, :size] for rank in range(group.size)]

    @property
    def clock(self) -> Array:
        """The clock, in the memory of the device."""
        return self._clock

    def begin(self, target: DeviceTarget, operands: Sequence[Any], waiting: Sequence[int]) -> int:
        """Enqueue the elimination; return the status."""
        return self._step("send", target, operands, waiting)

    def end(self, target: DeviceTarget, operands: Sequence[Any], waiting: Sequence[int]) -> None:
        """Exchange the numbers, substitute, and wait; collective."""
        rank = self._group.rank
        others = {other: box for other, box in enumerate(self._boxes) if other != rank}
        sends = dict.fromkeys(others, self._boxes[rank])
        self._nccl.exchange(_OPERATION, sends, others, target)
        status = self._step("receive", target, operands, waiting)
        self._nccl.wait(_OPERATION, target)
        target.check(status)

    def _step(
        self, step: str, target: DeviceTarget, operands: Sequence[Any], waiting: Sequence[int]
    ) -> int:
        """Enqueue one of the two kernels of a solve; return the status."""
        status: int = target.backend.part_solve(
            *operands,
            tuple(address_of(box) for box in self._boxes),
            address_of(self._clock),
            *waiting,
            target.backend.PART_STEPS[step],
            *target.arguments,
        )
        return status

    def discard(self, group: Group) -> None:
        """Free the memory: no call uses it."""


def _link(
    group: Group, call: Call, target: DeviceTarget, key: Key, *, one_host: bool
) -> _PeerLink | _NcclLink | None:
    """Return the link between the devices for this call, or None if there is none; collective."""
    kept: dict[Key, _PeerLink | _NcclLink | None] = group.kept.setdefault("links", {})
    if key in kept:
        return kept[key]
    while len(kept) >= _KEPT:
        oldest = kept.pop(next(iter(kept)))
        if oldest is not None:
            oldest.discard(group)
    where = group, call, target, key
    kept[key] = link = first_link(
        group,
        peers=partial(_peer_link, *where, one_host=one_host),
        nccl=partial(_nccl_link, *where),
    )
    return link


def _peer_link(
    group: Group, call: Call, target: DeviceTarget, key: Key, *, one_host: bool
) -> _PeerLink | None:
    """Return mailboxes, or None if a device cannot use another one's memory; collective."""
    if not one_host:
        return None
    with group.agreement(_OPERATION) as made:
        _, systems, devices = key
        rank = group.rank
        boxes = Mailboxes(target, call.dtype, systems, rank, len(devices), rank)
        made.own = boxes.own
    with group.agreement(_OPERATION) as opened:
        try:
            boxes.connect(made.found)
            opened.own = True
        except BackendError:
            opened.own = False
    link = _PeerLink(boxes)
    if all(opened.found):
        return link
    link.discard(group)
    return None


def _nccl_link(group: Group, call: Call, target: DeviceTarget, key: Key) -> _NcclLink | None:
    """Return memory for the numbers of all ranks, or None without NCCL; collective."""
    nccl = nccl_of(group, _OPERATION, target)
    if nccl is None:
        return None
    with group.agreement(_OPERATION):
        link = _NcclLink(group, nccl, target, call.dtype, key[1])
    return link

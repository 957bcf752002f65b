"""Lines that are cut over devices, each of which eliminates and substitutes in one kernel.

Devices of one host that can write into each other's memory exchange the numbers of the reduced
system within the kernel: 5 words per unknown. Other devices exchange them by NCCL between two
kernels, each of which reads the operands: 9 words. See csrc/include/ps_part.h.

Each rank has mailboxes for every number of systems and dtype that the group has met; they are made,
opened and closed by all ranks together.

Ranks that solve without an agreement find each other's calls in logs, one of each rank, in the
memory of its device. A call has a key, the hash of what must be the same on all ranks. Row numbers
of the kernels leave out numbers after the rows of a rank, so that a rank needs to know no sizes.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._errors import BackendError, DistributedError, raise_for_status
from .._lines.engine import Call
from .._options import SolveInfo, shape_flags
from .._runtime.device import Device, address_of, device_array, packed_strides
from .._runtime.lines import Plan, lines_of, plan_of
from .._runtime.mailboxes import CLOCK_BYTES, CallLog, Mailboxes, Outcome, mailbox_bytes
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
_KINDS = 32  # of calls, each with 5 bytes per system
_ALIGNMENT = 256  # octets: addresses that differ by a multiple of it are alike
_RHS, _X = 3, 4
_SPAN = 1 << 27  # row numbers of a rank: more rows than a block can hold
# Seconds of waiting for a device without a pause: those of a large solve.
_SPIN = 2e-2
_PAUSE = 1e-4  # seconds

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
    is_broken : bool
        Whether a call of this rank gave up, after which the mailboxes of all ranks are made anew.
    """

    host: str
    order: tuple[Any, ...]
    device: int
    geometry: tuple[Any, ...]
    is_broken: bool


class Kind(NamedTuple):
    """A kind of calls: what is the same on all ranks, and as long as the kind is kept.

    Attributes
    ----------
    key : int
        Its hash; not 0.
    link : PeerLink
        How the ranks exchange numbers.
    ordinal : int
        The device of this rank.
    order : tuple
        The order of the systems.
    info, marks : array
        Memory of the device for a number of each system; without checks there are no marks.
    waits : bool
        Whether a call waits for its outcome.
    """

    key: int
    link: "PeerLink"
    ordinal: int
    order: tuple[Any, ...]
    info: Array
    marks: Array | None
    waits: bool


class Kinds:
    """The kinds of calls that all ranks of a group have made.

    Attributes
    ----------
    found : dict
        The kinds, by signature and device.
    ordinals : set of int
        The devices of this rank.
    calls : dict
        The calls of this rank, by the identities of their operands.
    """

    def __init__(self) -> None:
        self.found: dict[Any, Kind] = {}
        self.ordinals: set[int] = set()
        self.calls: dict[Any, Any] = {}
        #: Rows of each rank, and the info, of the last call of a signature with `return_info`.
        self.described: dict[Any, tuple[tuple[int, ...], SolveInfo]] = {}
        self._scratch: Array | None = None

    def scratch(self, device: Device, like: Array) -> Array:
        """Return an array like another one, of memory that all calls use in turn."""
        if self._scratch is None or self._scratch.nbytes < like.nbytes:
            self.calls.clear()  # those with smaller memory
            octet = np.dtype(np.uint8)
            self._scratch = device.empty((like.nbytes,), octet, lasting=True)
        address, strides = address_of(self._scratch), packed_strides(like)
        return device_array(address, like.shape, strides, like.dtype, self._scratch)

    def forget(self, link: "PeerLink | None" = None) -> None:
        """Forget the calls with a link, or all."""
        self.calls.clear()
        self.found = {
            signature: kind
            for signature, kind in self.found.items()
            if link is not None and kind.link is not link
        }


def kinds_of(group: Group) -> Kinds:
    """Return the kinds of calls of a group."""
    found: Kinds = group.kept.setdefault("calls", {}).setdefault("kinds", Kinds())
    return found


def facts_of(group: Group, call: Call) -> Facts | None:
    """Return the facts of this rank, or None if its operands cannot be solved on devices."""
    is_possible = {"peers", "nccl"} & set(group.links)
    if not is_possible or not hasattr(call.target.backend, "part_solve"):  # a host has none
        return None
    if call.choice.has_sums or call.masks:
        return None
    plan = plan_of(call.shape.batch, call.views)
    one_dtype = len({view.dtype for view in call.views}) == 1
    if plan.copied or any(call.shape.short) or not one_dtype:
        return None
    places = tuple((address_of(view) % _ALIGNMENT, view.shape, view.strides) for view in call.views)
    geometry = (str(call.dtype), call.choice.periodic, call.options.pivot, places)
    order = plan.outer, plan.inner
    return Facts(host_name(), order, call.target.ordinal, geometry, group.is_broken)


def signature_of(call: Call, along: int) -> tuple[Any, ...]:
    """Return what must be the same on all ranks in a call that is cut along its rows."""
    choice = call.choice
    full = tuple(":" if axis == along else size for axis, size in enumerate(call.shape.full))
    options = choice.method, choice.periodic, choice.pivot, choice.on_singular
    return str(call.dtype), full, call.shape.axis, matrix_batch(call), *options


def with_sizes(signature: tuple[Any, ...], sizes: Sequence[int]) -> tuple[Any, ...]:
    """Return the signature of calls with `return_info`, whose info has the rows of all ranks."""
    return (*signature, "info", tuple(sizes))


def matrix_batch(call: Call) -> tuple[int, ...]:
    """Return the batch shape of the matrices: that of all systems, or shorter axes."""
    views = (*call.views[:_RHS], *call.masks)
    return np.broadcast_shapes(*(view.shape[:-1] for view in views))


def key_of(signature: tuple[Any, ...], order: tuple[Any, ...]) -> int:
    """Return the hash of a kind of calls, not 0, the same on all ranks."""
    digest = blake2b(repr((signature, order)).encode(), digest_size=8).digest()
    return int.from_bytes(digest) | 1 << 63


def row_numbers(group: Group) -> tuple[int, ...]:
    """Return the number of the last row of each rank, as the kernels count."""
    return tuple(_SPAN * (rank + 1) - 1 for rank in range(group.size))


def part_operands(
    group: Group, call: Call, plan: Plan, views: Sequence[Array], info: Array
) -> tuple[Any, ...]:
    """Return the first arguments of `part_solve`, up to the row numbers."""
    target, shape = call.target, call.shape
    return (
        shape_flags(target.backend, shape, call.choice.periodic),
        *lines_of(target, plan, views, shape.rows),
        info,
        group.rank,
        group.size,
        row_numbers(group),
    )


def solve_on_devices(
    group: Group,
    call: Call,
    sizes: Sequence[int],
    facts: Sequence[Facts | None],
    signature: tuple[Any, ...],
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
    signature : tuple
        What is the same on all ranks in all calls of this kind.

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
    if max(sizes) >= _SPAN:
        return None
    if any(own.is_broken for own in known):
        _discard_all(group)
    *matrix, rhs, x = call.views
    needs_rhs = call.options.pivot != backend.PIVOTS["never"] and np.may_share_memory(rhs, x)
    # Systems that need row exchanges are solved again, from the right-hand sides.
    solution = target.packed(x) if needs_rhs else x
    views = (*matrix, rhs, solution)
    plan, systems = plan_of(shape.batch, views), prod(shape.batch)
    info, marks = target.info(systems), None
    if call.options.pivot != backend.PIVOTS["never"]:
        marks = target.empty((systems,), np.dtype(np.uint8))
    operands = part_operands(group, call, plan, views, info)
    waiting = waiting_of(group, marks)
    # What the ranks checked is the same on all of them, as they keep it by the facts of all.
    checks = group.kept.setdefault("checked", {})
    checked = tuple(sizes), tuple(known)
    if checked not in checks:
        if len(checks) >= _CHECKS:
            checks.clear()
        with group.agreement(_OPERATION) as agreed:
            agreed.own = part_check(target, operands, waiting)
        checks[checked] = not any(agreed.found)
    if not checks[checked]:
        return None
    key = str(call.dtype), systems, tuple(own.device for own in known)
    link = _link(group, call, target, key, one_host=len({own.host for own in known}) == 1)
    if link is None:
        return None
    order = plan.outer, plan.inner
    hashed = key_of(signature, order)
    with group.agreement(_OPERATION) as begun:
        begun.own = link.begin(target, operands, waiting, hashed)
    if any(begun.found):
        raise BackendError(f"{_OPERATION}: {backend.STATUS[max(begun.found)][1]}")
    link.end(target, operands, waiting)
    outcome = _outcome(group, call, info, plan, link, sizes, asks=marks is not None)
    if outcome is None:
        return None
    is_good = outcome[1] is None or not len(outcome[1].rows)
    if isinstance(link, PeerLink) and is_good and not target.is_captured:
        _keep(group, signature, call, link, order, has_marks=marks is not None)
    if needs_rhs:
        target.write(x, solution)
    if call.options.policy == "nan":
        lines = operands[1 + _X]
        target.fill_nan(lines, info.reshape(lines.shape[:2]))
    return *outcome, link.name


def waiting_of(group: Group, marks: Array | None) -> tuple[int, int]:
    """Return the patience, and the address of the marks, as `part_solve` takes them."""
    return round(1e9 * group.timeout), 0 if marks is None else address_of(marks)


def part_check(target: DeviceTarget, operands: Sequence[Any], waiting: Sequence[int]) -> int:
    """Return the status with which a solve would begin; this reads no mailbox."""
    backend = target.backend
    nothing = (0,) * operands[-2]
    step = backend.PART_STEPS["whole"]
    status: int = backend.part_check(
        *operands, nothing, nothing, 0, 0, *waiting, step, *target.arguments
    )
    return status


def _keep(
    group: Group,
    signature: tuple[Any, ...],
    call: Call,
    link: "PeerLink",
    order: tuple[Any, ...],
    *,
    has_marks: bool,
) -> None:
    """Keep the kind of a call that has succeeded on all ranks, for `solve_as_before`."""
    kinds, target, systems = kinds_of(group), call.target, prod(call.shape.batch)
    if (signature, target.ordinal) in kinds.found:
        return
    if len(kinds.found) >= _KINDS:
        kinds.forget()
    marks = target.empty((systems,), np.dtype(np.uint8), lasting=True) if has_marks else None
    # The rows of another rank can differ in a later call: its info must not be returned then.
    waits = has_marks or target.reports_singular(call.options.policy) or call.choice.return_info
    info = target.info(systems, lasting=True)
    key = key_of(signature, order)
    kind = Kind(key, link, target.ordinal, order, info, marks, waits)
    kinds.found[signature, target.ordinal] = kind
    kinds.ordinals.add(target.ordinal)


def describe(
    group: Group, signature: tuple[Any, ...], sizes: Sequence[int], info: SolveInfo
) -> None:
    """Keep the info of a call without failures, for later ones of its kind."""
    described = kinds_of(group).described
    if info.copied or (info.singular is not None and len(info.singular)):
        return
    if len(described) >= _KINDS:
        described.clear()
    described[signature, info.device] = tuple(sizes), info


def _outcome(
    group: Group,
    call: Call,
    info: Array,
    plan: Plan,
    link: "PeerLink | _NcclLink",
    sizes: Sequence[int],
    *,
    asks: bool,
) -> tuple[dict[str, Any], Singular | None] | None:
    """Return report and singular systems, or None if a system needs row exchanges."""
    target = call.target
    assert isinstance(target, DeviceTarget)
    report: dict[str, Any] = {"method": "partition", "kernel": "partition devices", "copied": ()}
    report |= {"threads": 0, "pivoted": 0, "repeated": 0}
    if not asks and not target.reports_singular(call.options.policy):
        return report, None
    outcome = link.outcome(target.backend, target.arguments)
    if outcome.late >= 0:
        raise late_error(group, outcome)
    if asks and outcome.has_failed:
        return None
    failed = target.on_host(info) if outcome.has_failed else np.zeros(0, np.int32)
    singular = find_singular(failed, plan)
    ranks, within = np.divmod(singular.rows, _SPAN)
    starts, counts = np.cumsum([0, *sizes]), np.array(sizes)
    # The last row of a rank has the last number.
    rows = starts[ranks] + np.minimum(within, counts[ranks] - 1)
    return report, replace(singular, rows=rows)


def _outcome_of(backend: Any, clock: int, where: Sequence[int]) -> Outcome:
    """Return the outcome that a clock has, after the call."""
    found = np.empty(CLOCK_BYTES, np.uint8)
    raise_for_status(backend.download(found, clock, *where), backend.STATUS, _OPERATION)
    return Outcome.of(found)


def late_error(group: Group, outcome: Outcome) -> DistributedError:
    """Return the error of a call in which a rank did not answer, and give the mailboxes up."""
    group.forget_calls()
    why = "it makes another call" if outcome.is_elsewhere else f"waited {group.timeout:g} s"
    return DistributedError(
        f"{_OPERATION}: rank {group.rank} of {group.size} gets no message from rank "
        f"{outcome.late}: {why}",
        (outcome.late,),
    )


class PeerLink:
    """Mailboxes in the memory of the devices of one host.

    Parameters
    ----------
    group : Group
        The ranks.
    boxes : Mailboxes
        The mailboxes.
    log : CallLog
        Where the ranks find each other's calls.
    """

    name = "peers"

    def __init__(self, group: Group, boxes: Mailboxes, log: CallLog) -> None:
        self._group, self._boxes, self._log = group, boxes, log
        #: Whether a graph uses the mailboxes, which then are kept.
        self.is_captured = False

    def enqueue(
        self,
        backend: Any,
        operands: Sequence[Any],
        waiting: Sequence[int],
        key: int,
        where: tuple[int, int],
        owner: Callable[[], object],
        *,
        is_captured: bool = False,
    ) -> int:
        """Enqueue the solve on a device and a stream, which `owner` keeps; return the status."""
        ordinal, stream = where
        log, boxes = self._log, self._boxes
        self._group.leaving = log.leave
        self.is_captured = self.is_captured or is_captured
        log.follow(stream, owner, is_captured=is_captured)
        addresses, clock = boxes.arguments
        status: int = backend.part_solve(
            *operands,
            addresses,
            log.addresses,
            key,
            clock,
            *waiting,
            backend.PART_STEPS["whole"],
            ordinal,
            stream,
            boxes.sharing,
        )
        if not is_captured:
            boxes.used(stream, is_counted=not self.is_captured)
        return status

    def begin(
        self, target: DeviceTarget, operands: Sequence[Any], waiting: Sequence[int], key: int
    ) -> int:
        """Enqueue the solve; return the status."""
        ordinal, stream = target.arguments
        where, owner = (ordinal, stream), target.stream.owner
        arguments = target.backend, operands, waiting, key, where, lambda: owner
        return self.enqueue(*arguments, is_captured=target.is_captured)

    def end(self, target: DeviceTarget, operands: Sequence[Any], waiting: Sequence[int]) -> None:
        """Do what remains after all ranks have begun: nothing."""

    def outcome(self, backend: Any, where: Sequence[int]) -> Outcome:
        """Wait for the last call, which was made on a device and a stream; return its outcome.

        Raises
        ------
        DistributedError
            If another rank has ended. The group cannot be used after that.
        """
        group, boxes = self._group, self._boxes
        begun, missing = time.monotonic(), None
        while not boxes.poll():
            waited = time.monotonic() - begun
            if waited > _SPIN:
                time.sleep(_PAUSE)
                if missing is None and (missing := group._missing(waited)) is not None:
                    self._log.give_up()
        if boxes.answer is not None:
            found = Outcome.of(boxes.answer.read(CLOCK_BYTES))
        else:
            found = _outcome_of(backend, boxes.address, where)
        boxes.completed(found)
        if found.late >= 0 and missing is not None:
            rank, reason = missing
            group._lose(
                f"{_OPERATION}: rank {group.rank} of {group.size} gets no message from rank "
                f"{rank}: {reason}"
            )
            raise DistributedError(group._lost, (rank,))
        return found

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

    def outcome(self, backend: Any, where: Sequence[int]) -> Outcome:
        """Return the outcome of the last call, which `end` has waited for."""
        return _outcome_of(backend, address_of(self._clock), where)

    def begin(
        self, target: DeviceTarget, operands: Sequence[Any], waiting: Sequence[int], key: int
    ) -> int:
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
            (0,) * self._group.size,
            0,
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
) -> PeerLink | _NcclLink | None:
    """Return the link between the devices for this call, or None if there is none; collective."""
    kept: dict[Key, PeerLink | _NcclLink | None] = group.kept.setdefault("links", {})
    if key in kept:
        return kept[key]
    free = [
        one for one, link in kept.items() if not isinstance(link, PeerLink) or not link.is_captured
    ]
    for one in free[: max(len(free) - _KEPT + 1, 0)]:
        _discard(group, kept.pop(one))
    where = group, call, target, key
    kept[key] = link = first_link(
        group,
        peers=partial(_peer_link, *where, one_host=one_host),
        nccl=partial(_nccl_link, *where),
    )
    return link


def _discard(group: Group, link: PeerLink | _NcclLink | None) -> None:
    """Discard a link, and forget the calls that use it; collective."""
    if isinstance(link, PeerLink):
        kinds_of(group).forget(link)
    if link is not None:
        link.discard(group)


def _discard_all(group: Group) -> None:
    """Discard all links, after a call gave up; collective."""
    links: dict[Key, PeerLink | _NcclLink | None] = group.kept.pop("links", {})
    logs: dict[tuple[int, ...], CallLog] = group.kept.pop("logs", {})
    group.leaving = None
    for link in links.values():
        _discard(group, link)
    for log in logs.values():
        with group.agreement(_OPERATION):
            log.close()
    group.is_broken = False


def _peer_link(
    group: Group, call: Call, target: DeviceTarget, key: Key, *, one_host: bool
) -> PeerLink | None:
    """Return mailboxes, or None if a device cannot use another one's memory; collective."""
    if not one_host:
        return None
    with group.agreement(_OPERATION) as made:
        _, systems, devices = key
        rank = group.rank
        # What is kept must not keep the arrays of this call, as its target does.
        device = Device(target.backend, target.ordinal, _OPERATION, target.stream)
        boxes = Mailboxes(device, call.dtype, systems, rank, len(devices), rank)
        logs: dict[tuple[int, ...], CallLog] = group.kept.setdefault("logs", {})
        log = logs.get(devices) or CallLog(device, rank, len(devices), rank)
        made.own = boxes.own, log.own
    addresses, of_logs = zip(*made.found, strict=True)
    with group.agreement(_OPERATION) as opened:
        try:
            boxes.connect(addresses)
            if devices not in logs:
                log.connect(of_logs)
            opened.own = True
        except BackendError:
            opened.own = False
    link = PeerLink(group, boxes, log)
    if all(opened.found):
        logs[devices] = log
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

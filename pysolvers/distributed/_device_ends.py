"""Numbers on devices that all ranks need, as one array on each device.

They travel by the links of the group (_links.py): into the inboxes of the other devices, by NCCL,
or through the memory of the host. One barrier of the ranks per exchange.
"""

from typing import Any

from numpy.typing import NDArray

from .._runtime.device import Device
from .._runtime.targets import DeviceTarget
from ._group import Group
from ._inbox import Inbox, inbox_of, padded
from ._links import first_link
from ._nccl import Nccl, nccl_of

Array = NDArray[Any]


class DeviceEnds:
    """The numbers of one call; see `ends_of`."""

    def __init__(
        self, group: Group, operation: str, target: DeviceTarget, link: Inbox | Nccl | None
    ) -> None:
        self._group, self._operation = group, operation
        self._target, self._link = target, link

    def allgather(self, mine: Array) -> Array:
        """Return the numbers of all ranks, (ranks, count), in memory of the device; collective.

        The caller waits for the device before other numbers travel by the same link.
        """
        group, target, link = self._group, self._target, self._link
        if link is None:
            return target.upload(group.allgather(self._operation, target.download(mine)))
        found = target.empty((group.size, *mine.shape), mine.dtype)
        target.write(found[group.rank], mine)
        others = [rank for rank in range(group.size) if rank != group.rank]
        if isinstance(link, Nccl):
            sends, receives = dict.fromkeys(others, mine), {rank: found[rank] for rank in others}
            with group._barrier(self._operation):
                pass
            link.exchange(self._operation, sends, receives, target)
            link.wait(self._operation, target)
            return found
        pitch = padded(mine.nbytes)
        with group._barrier(self._operation):
            link.prepare(target)
            for rank in others:
                target.write(link.there(rank, group.rank * pitch, mine), mine)
            target.wait()
        link.passed(self)
        for rank in others:
            target.write(found[rank], link.here(rank * pitch, mine))
        return found

    def take(self) -> None:
        """Do nothing: what has arrived was brought to its place when it arrived."""


def ends_of(group: Group, operation: str, target: DeviceTarget, nbytes: int) -> DeviceEnds:
    """Return how numbers of so many bytes, the same on all ranks, travel; collective."""
    device = Device(target.backend, target.ordinal, operation)
    size = group.size * padded(nbytes)
    link = first_link(
        group,
        peers=lambda: inbox_of(group, operation, device, size),
        nccl=lambda: nccl_of(group, operation, device),
    )
    return DeviceEnds(group, operation, target, link)

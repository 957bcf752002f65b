"""Parts of fields on devices, which the ranks exchange by NCCL.

A message is a part of a field, if the part lies in memory without gaps, and otherwise a copy in
memory of the device that all messages of the group use in turn.

Words moved per word sent: 1 over the link, and 2 at each end where the part has gaps.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._runtime.device import Device, address_of
from .._runtime.fields import DeviceFields, Index
from ._group import Group
from ._inbox import ALIGNMENT, padded
from ._nccl import Nccl

Array = NDArray[Any]

# NCCL copies single bytes between addresses that are not alike modulo 16, which takes longer than
# to copy the part.
_ALIKE = 16
_OCTET = np.dtype(np.uint8)


class _Message(NamedTuple):
    """What travels, and the copies of parts in it; none if it is itself a part."""

    values: Array
    copies: Sequence[tuple[Index, Array]]


class NcclParts:
    """The memory of messages, and their exchange.

    Parameters
    ----------
    group : Group
        The ranks.
    nccl : Nccl
        What brings messages.
    device : Device
        That of this rank.
    """

    name = "nccl"

    def __init__(self, group: Group, nccl: Nccl, device: Device) -> None:
        self._group, self._nccl, self._device = group, nccl, device
        self._memory: Array | None = None  # of messages that are sent, and received

    def reserve(self, operation: str, nbytes: int) -> None:
        """Make room for messages to all ranks of some bytes in all, and from them; collective."""
        nbytes = padded(nbytes) + self._group.size * ALIGNMENT
        with self._group.agreement(operation):
            if self._memory is None or nbytes > self._memory.shape[1]:
                self._memory = self._device.empty((2, nbytes), _OCTET, lasting=True)

    def pack(
        self, state: DeviceFields, name: str, sends: Mapping[int, Sequence[Index]]
    ) -> dict[int, Array]:
        """Enqueue what makes the messages with parts of a field; return them.

        Parameters
        ----------
        state : DeviceFields
            Where the field lies.
        name : str
            The field.
        sends : mapping of int to sequence of tuple of slice
            The parts for each other rank.
        """
        messages = self._messages(state.array(name), sends, 0)
        for message in messages.values():
            for at, copy in message.copies:
                state.read(name, at, copy)
        return {rank: message.values for rank, message in messages.items()}

    def exchange(
        self,
        operation: str,
        sends: Mapping[int, Array],
        state: DeviceFields,
        name: str,
        receives: Mapping[int, Sequence[Index]],
    ) -> None:
        """Exchange messages, and wait for them; collective, after the ranks have met.

        Parameters
        ----------
        operation : str
            Of the caller, for messages.
        sends : mapping of int to array
            What `pack` returned.
        state, name
            The field to which the messages are written.
        receives : mapping of int to sequence of tuple of slice
            Its parts from each other rank, in the order in which that rank sends them.

        Raises
        ------
        DistributedError
            As `Nccl.wait`.
        """
        messages = self._messages(state.operand(name), receives, 1)
        values = {rank: message.values for rank, message in messages.items()}
        self._nccl.exchange(operation, sends, values, state.device)
        for message in messages.values():
            for at, copy in message.copies:
                state.write(name, at, copy)
        self._nccl.wait(operation, state.device)

    def _messages(
        self, field: Array, parts: Mapping[int, Sequence[Index]], end: int
    ) -> dict[int, _Message]:
        """Return the message of each rank: of those that are sent (`end` 0) or received (1)."""
        assert self._memory is not None
        memory, found, place = self._memory[end], {}, 0
        for rank, indices in parts.items():
            views = [field[at] for at in indices]
            only = views[0]
            if len(views) == 1 and only.flags.c_contiguous and address_of(only) % _ALIKE == 0:
                found[rank] = _Message(only, ())
                continue
            start, copies = place, []
            for at, view in zip(indices, views, strict=True):
                octets = memory[place : place + view.nbytes]
                copies.append((at, octets.view(view.dtype).reshape(view.shape)))
                place += view.nbytes
            found[rank] = _Message(memory[start:place], copies)
            place = padded(place)
        return found

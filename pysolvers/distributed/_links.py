"""Links: by what numbers on devices travel from rank to rank.

The first one of ``Group.links`` that is possible on all ranks is taken: `first_link`. What a link
is depends on what travels: parts of fields (`link_of`), or the numbers of cut lines, which a kernel
reads (_devices.py).
"""

from collections.abc import Callable
from typing import TypeVar

from .._errors import BackendError
from .._runtime.backends import parse_device, require
from .._runtime.device import Device
from ._group import Group
from ._inbox import ALIGNMENT, Inbox, inbox_of
from ._nccl import nccl_of
from ._parts import NcclParts

P = TypeVar("P")
N = TypeVar("N")


def first_link(
    group: Group, *, peers: Callable[[], P | None], nccl: Callable[[], N | None]
) -> P | N | None:
    """Return what the first possible link of a group makes, None for the host; collective.

    Parameters
    ----------
    group : Group
        The ranks.
    peers, nccl : callable
        Make the link, or return None, the same on all ranks, if it is not possible.
    """
    for one in group.links:
        if one == "host":
            return None
        found = peers() if one == "peers" else nccl()
        if found is not None:
            return found
    return None


def link_of(group: Group, operation: str, device: Device, nbytes: int) -> Inbox | NcclParts | None:
    """Return the link between the devices, or None for the memory of the host; collective.

    Parameters
    ----------
    group : Group
        The ranks.
    operation : str
        Of the caller, for messages.
    device : Device
        That of this rank.
    nbytes : int
        Size of the messages that this rank sends in one exchange, or gets, if these are more.

    Raises
    ------
    BackendError
        If none of the links of the group is possible; the message has the reason of each.
    """
    if group.size == 1:
        return None
    with group.agreement(operation) as agreed:
        agreed.own = device.ordinal, nbytes
        agreed.same = {"links of the group": group.links}
    ordinals, sizes = zip(*agreed.found, strict=True)

    def parts() -> NcclParts | None:
        """Return the messages of NCCL, kept by the devices of the ranks; None without NCCL."""
        nccl = nccl_of(group, operation, device)
        if nccl is None:
            return None
        links: dict[tuple[int, ...], NcclParts] = group.kept.setdefault("parts", {})
        found = links.setdefault(ordinals, NcclParts(group, nccl, device))
        found.reserve(operation, max(sizes))
        return found

    link = first_link(group, peers=lambda: inbox_of(group, operation, device, nbytes), nccl=parts)
    if link is not None or "host" in group.links:
        return link
    reasons = "; ".join(f"{one!r}: {group.reasons[one]}" for one in group.links)
    raise BackendError(
        f"{operation}: the ranks cannot exchange numbers between devices by the links of their "
        f"group: {reasons}. Add 'host' to links, or leave links out"
    )


def link_name(group: Group, operation: str, device: str | None) -> str:
    """Return how numbers travel: ``'peers'``, ``'nccl'``, ``'host'``, or ``'cpu'``; collective.

    Parameters
    ----------
    group : Group
        The ranks.
    operation : str
        Of the caller, for messages.
    device : str or None
        That of this rank, as in `solve_tridiagonal`; on all ranks a device, or on none.

    Returns
    -------
    str
        ``'cpu'`` without devices.

    Raises
    ------
    BackendError
        As `link_of`.
    """
    name, ordinal = parse_device(device)
    if name == "cpu":
        return "cpu"
    own = Device(require(name), ordinal, operation)
    link = link_of(group, operation, own, ALIGNMENT)
    return "host" if link is None else link.name

"""Halo exchange between neighbouring ranks.

A rank steps its part of a field and a halo: nodes of its neighbours, which the ranks exchange
after some steps. How they travel: _exchange.py.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._checks import require
from .._runtime.fields import Fields, Index
from ._exchange import Exchange, exchange_arrays, exchange_of
from ._group import Group
from ._slab import Slab

Array = NDArray[Any]


class HaloFace(NamedTuple):
    """Nodes that this rank exchanges with a neighbour.

    Attributes
    ----------
    end : {0, 1}
        At which end of the part of this rank: before its first node or after its last one.
    rank : int
        The neighbour.
    sent, received : tuple of slice
        The nodes of this rank that the neighbour holds, and those of the neighbour, in a field.
    """

    end: int
    rank: int
    sent: Index
    received: Index


def faces_of(
    group: Group,
    axis: int,
    nodes: int,
    held: tuple[int, int],
    given: tuple[int, int] | None = None,
) -> list[HaloFace]:
    """Return the faces of the halo of a field.

    Parameters
    ----------
    group : Group
        The ranks; the first one follows the last one.
    axis : int
        Axis of the field that is cut.
    nodes : int
        Number of its nodes along this axis, the halo included.
    held : (int, int)
        How many nodes of the rank before and of the next one the field has; 0 where there is none.
    given : (int, int), optional
        How many nodes of this rank they hold. By default the halos of all ranks are as deep as
        that of this one.
    """
    at: Index = (slice(None),) * axis
    first, last = held
    low, high = given or (max(held) * (first > 0), max(held) * (last > 0))
    found = []
    if first or low:
        sent, received = slice(first, first + low), slice(first)
        found.append(HaloFace(0, (group.rank - 1) % group.size, (*at, sent), (*at, received)))
    if last or high:
        sent, received = slice(nodes - last - high, nodes - last), slice(nodes - last, nodes)
        found.append(HaloFace(1, (group.rank + 1) % group.size, (*at, sent), (*at, received)))
    return found


class SlabNodes:
    """Nodes along the axis that is cut: those of this rank, and a halo of its neighbours.

    Parameters
    ----------
    group, axis
        As of `faces_of`.
    part : slice
        The nodes of this rank, among all.
    halo, given
        Nodes of the neighbours, and what they hold of this rank: `held` and `given` of `faces_of`.
    """

    def __init__(
        self,
        group: Group,
        axis: int,
        part: slice,
        halo: tuple[int, int],
        given: tuple[int, int] | None = None,
    ) -> None:
        first, last = halo
        nodes = part.stop - part.start
        #: The nodes of this rank, among all and among those that it holds.
        self.part, self.own = part, slice(first, first + nodes)
        #: The nodes that this rank holds, among all.
        self.held = slice(part.start - first, part.stop + last)
        self.faces = faces_of(group, axis, nodes + first + last, halo, given)


def slab_nodes(group: Group, split: Slab, shape: Sequence[int], depth: int) -> SlabNodes:
    """Return the nodes of this rank of a field of this shape, split evenly, with a halo."""
    axis = split.of(len(shape))
    parts = [split.part(shape[axis], rank, group.size) for rank in range(group.size)]
    least = min(part.stop - part.start for part in parts)
    require(least >= depth, f"every rank needs at least {depth} nodes along axis {axis}", least)
    halo = depth * (group.rank > 0), depth * (group.rank < group.size - 1)
    return SlabNodes(group, axis, parts[group.rank], halo)


def with_neighbours(group: Group, operation: str, part: Array) -> Array:
    """Return the first and the last entry along the last axis between those of the neighbours.

    The entries are that of the rank before, the first and the last one of this rank, and that of
    the next rank; the first rank follows the last one. Collective.
    """
    first, last = part[..., :1], part[..., -1:]
    field = np.concatenate([first, first, last, last], axis=-1)
    faces = faces_of(group, field.ndim - 1, field.shape[-1], (1, 1))
    refresh_halo(group, operation, faces, field)
    return field


def refresh_halo(group: Group, operation: str, faces: Sequence[HaloFace], field: Array) -> None:
    """Exchange the halo of an array of the host; collective."""
    sends, receives = _by_rank(faces)
    exchange_arrays(group, operation, field, sends, field, receives)


def _by_rank(
    faces: Sequence[HaloFace],
) -> tuple[dict[int, list[Index]], dict[int, list[Index]]]:
    """Return the parts in the message to each rank, and in that of each rank, in their order.

    With two ranks both neighbours can be one rank. The nodes at the first end of the sender come
    first in the message: they are those at the last end of the receiver.
    """
    sends: dict[int, list[Index]] = {}
    receives: dict[int, list[Index]] = {}
    for face in sorted(faces, key=lambda face: face.end):
        sends.setdefault(face.rank, []).append(face.sent)
        receives.setdefault(face.rank, []).insert(0, face.received)
    return sends, receives


def halo_of(
    group: Group, operation: str, fields: Fields, faces: Sequence[HaloFace], name: str
) -> Exchange:
    """Return the exchange of the halo of fields; collective.

    Parameters
    ----------
    group : Group
        The ranks.
    operation : str
        Of the caller, for messages.
    fields : Fields
        On all ranks on a device, or on all in the memory of the host.
    faces : sequence of HaloFace
        The nodes.
    name : str
        One of the fields that have the halo; all are of one shape and dtype.
    """
    return exchange_of(group, operation, fields, fields, *_by_rank(faces), name)

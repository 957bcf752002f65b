"""Masks of systems of which each rank holds a part.

Whether the first and the last row of a part are coupled to others depends on the mask of the rows
of the neighbours next to them: one entry of each neighbour and system. Everything else is that of
one process (_lines/masks.py).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._lines.masks import Beyond, beyond_ends
from .._runtime.device import is_device_array
from .._runtime.targets import Target
from ._group import Group
from ._halo import with_neighbours

Array = NDArray[Any]


def beyond_part(
    group: Group, operation: str, inside: Array, *, is_cut: bool, periodic: bool
) -> Beyond:
    """Return the masks of the rows beyond the ends of the part of this rank; collective.

    `inside` has the rows last, at least one, and the same batch shape on all ranks.
    """
    if not is_cut:
        return beyond_ends(inside, periodic=periodic)
    field = with_neighbours(group, operation, inside)
    before, after = field[..., :1], field[..., -1:]
    if not periodic and group.rank == 0:
        before = np.zeros_like(before)
    if not periodic and group.rank == group.size - 1:
        after = np.zeros_like(after)
    return before, after


def ends_of_mask(target: Target, mask: Array) -> Array:
    """Return the first and the last row of a mask on the host."""
    ends = [mask[..., i] for i in (0, -1)]
    return np.stack([target.download(a) if is_device_array(a) else a for a in ends], axis=-1)


def keep_outside(target: Target, x: Array, solution: Array, inside: Array, others: Array) -> None:
    """Write solutions inside a mask, and others outside, to x; all have the rows last."""
    where = np.broadcast_to(inside, x.shape)
    target.write(x, target.selected(solution, where, others))

"""Checks of split operands, and the singular systems of all ranks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._runtime.arrays import Shape
from .._runtime.singular import Singular
from ._group import Group
from ._slab import Slab

__all__ = ["check_short", "check_sizes", "checked_group", "merged", "numbered"]


def checked_group(group: object, split: object) -> tuple[Group, Slab]:
    """Return the arguments `group` and `split` of a call, or raise."""
    if not isinstance(group, Group) or not isinstance(split, Slab):
        raise TypeError(
            "group and split must be given together, a Group and a Slab of pysolvers.distributed; "
            f"got {type(group).__name__} and {type(split).__name__}"
        )
    return group, split


def check_short(group: Group, shape: Shape) -> None:
    """Raise if this rank omits an entry of lower or upper that couples to another rank."""
    for name, end, k in (("lower", 0, 0), ("upper", group.size - 1, 2)):
        if shape.omits[k] and group.rank != end:
            raise ValueError(
                f"{name}: only rank {end}, which holds the {'last' if k else 'first'} row, may "
                f"omit an entry; rank {group.rank} has {shape.rows - 1} entries for "
                f"{shape.rows} rows"
            )


def check_sizes(along: int, sizes: Sequence[int]) -> None:
    """Raise if some ranks hold nothing."""
    if min(sizes) == 0 < max(sizes):
        raise ValueError(
            f"split: every rank must hold at least one index of axis {along}, but the ranks hold "
            f"{', '.join(map(str, sizes))}"
        )


def merged(found: Sequence[Singular], sizes: Sequence[int], axis: int) -> Singular:
    """Return the singular systems of ranks whose batches are split along a batch axis."""
    starts = np.cumsum([0, *sizes])
    systems = np.concatenate([own.systems for own in found])
    systems[:, axis] += np.repeat(starts[:-1], [len(own.rows) for own in found])
    rows = np.concatenate([own.rows for own in found])
    order = np.lexsort(systems.T[::-1])
    return Singular(systems[order], rows[order])


def numbered(numbers: ArrayLike, rows: ArrayLike, batch: tuple[int, ...]) -> Singular:
    """Return singular systems that are numbered over the batch in C order."""
    places: NDArray[Any] = np.asarray(numbers, np.intp)
    indices = np.zeros((len(places), len(batch)), np.intp)
    if batch:
        indices[:] = np.stack(np.unravel_index(places, batch), axis=1)
    return Singular(indices, np.asarray(rows, np.intp))

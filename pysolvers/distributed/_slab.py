"""How an array is split over the ranks of a group."""

from dataclasses import dataclass

import numpy as np

from .._checks import integer


@dataclass(frozen=True)
class Slab:
    """A split of arrays along one axis: every rank holds consecutive indices of it.

    Rank 0 holds the first indices, the next rank the next ones, and so on. Each rank holds at
    least one index; their numbers can differ.

    Parameters
    ----------
    axis : int
        The axis of the complete array along which it is split.

    Examples
    --------
    >>> from pysolvers.distributed import Slab
    >>> [Slab(axis=0).part(10, rank, 4) for rank in range(4)]
    [slice(0, 3, None), slice(3, 6, None), slice(6, 8, None), slice(8, 10, None)]
    """

    axis: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", integer("axis", self.axis))

    def part(self, length: int, rank: int, size: int) -> slice:
        """Return the indices of one rank in an even split.

        Parameters
        ----------
        length : int
            Length of the axis; at least `size`.
        rank : int
            The rank, ``group.rank``.
        size : int
            Number of ranks, ``group.size``.

        Returns
        -------
        slice
            The first ``length % size`` ranks have one index more than the others.

        Raises
        ------
        ValueError
            If a rank would have no index.
        """
        length, rank, size = integer("length", length), integer("rank", rank), integer("size", size)
        if not 0 <= rank < size:
            raise ValueError(f"rank must be in 0 .. size - 1 = {size - 1}, got {rank}")
        if length < size:
            raise ValueError(
                f"an axis of {length} cannot be split over {size} ranks: every rank needs an index"
            )
        each, more = divmod(length, size)
        start = rank * each + min(rank, more)
        return slice(start, start + each + (rank < more))

    def of(self, ndim: int) -> int:
        """Return the axis as a number from 0 on for an array of `ndim` axes, or raise."""
        if not -ndim <= self.axis < ndim:
            raise np.exceptions.AxisError(
                f"split: the axis must be in {-ndim} .. {ndim - 1} for operands of {ndim} axes, "
                f"got {self.axis}"
            )
        return self.axis % ndim

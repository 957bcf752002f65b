"""Where the nodes of a red-black grid lie in memory."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_UNIT = 16  # elements that the length of a row is a multiple of


@dataclass(frozen=True, slots=True)
class ColourGrid:
    """A grid of nx by ny nodes and a frame around them, split by colour or not.

    Parameters
    ----------
    nx, ny : int
        Nodes inside the frame along x and y.
    interleaved : bool, default: False
        Whether both colours share the rows of one array. Otherwise red nodes, of even
        i + j, fill one half of a field and black ones the other.
    """

    nx: int
    ny: int
    interleaved: bool = False

    @property
    def pitch(self) -> int:
        """Elements between two rows of a colour.

        An odd multiple of 16, so that neighbouring rows never share the sets of a cache.
        """
        units = -(-(self.nx + 3) // 2 // _UNIT)
        return (units + 1 - units % 2) * _UNIT

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of a field."""
        if self.interleaved:
            return self.ny + 2, 2 * self.pitch
        return 2, self.ny + 2, self.pitch

    def pack(self, values: Array, dtype: Any) -> Array:
        """Return a field from values of shape (ny + 2, nx + 2); zero between the nodes."""
        field = np.zeros(self.shape, dtype)
        if self.interleaved:
            field[:, : self.nx + 2] = values
            return field
        for colour, row, parity in _QUARTERS:
            quarter = values[row::2, parity::2]
            field[colour, row::2, : quarter.shape[1]] = quarter
        return field

    def wrap(self, values: Array, periodic: int) -> None:
        """Copy the nodes at the ends of periodic axes to the frame.

        Parameters
        ----------
        values : ndarray, shape (ny + 2, nx + 2)
            Changed in place.
        periodic : int
            Bits of the axes: 1 is x, 2 is y.
        """
        if periodic & 1:
            values[:, 0], values[:, -1] = values[:, -2], values[:, 1]
        if periodic & 2:
            values[0], values[-1] = values[-2], values[1]

    def unpack(self, field: Array) -> Array:
        """Return the values of a field: a new array of shape (ny + 2, nx + 2)."""
        if self.interleaved:
            return field[:, : self.nx + 2].copy()
        values = np.empty((self.ny + 2, self.nx + 2), field.dtype)
        for colour, row, parity in _QUARTERS:
            quarter = values[row::2, parity::2]
            quarter[...] = field[colour, row::2, : quarter.shape[1]]
        return values


# Colour, first row and first column of the nodes with the parity of that row and column.
_QUARTERS = tuple((c, row, (row + c) % 2) for c in (0, 1) for row in (0, 1))


def split_by_parity(tables: Array, pitch: int) -> Array:
    """Return rows of shape (k, n) as (k, 2, pitch), even places first."""
    parts = np.zeros((len(tables), 2, pitch), tables.dtype)
    for parity in (0, 1):
        part = tables[:, parity::2]
        parts[:, parity, : part.shape[1]] = part
    return parts

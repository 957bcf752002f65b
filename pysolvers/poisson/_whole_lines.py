"""Lines whose rows lie on several devices, exchanged for whole lines of some of the waves.

Each rank has some rows of all waves before the exchange, and all rows of some waves after it; the
systems of these waves are then solved as on one device.

Words per unknown and exchange, with P ranks: (P - 1)/P over the link, and 2 + 2 (P - 1)/P of
copies (_exchange.py). The least is what each device sends: 1/P of the field, but for its own part.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._runtime.device import Device, device_array
from .._runtime.fields import DeviceViews
from ..distributed._group import Group
from ..distributed._transpose import Transposition, even_parts

Array = NDArray[Any]

_FIELD = "waves"
_ANYWHERE = 512  # an address, of arrays of which only the shape counts


class WholeLines:
    """How waves are divided, and their exchange.

    Parameters
    ----------
    group : Group
        The ranks, of which each has at least one wave.
    operation : str
        Of the caller, for messages.
    rows : sequence of int
        Rows of each rank.
    waves : int
        Number of waves.
    shape_of : callable
        Returns the shape of the array with some rows and some waves.
    axes : (int, int)
        Its axes of the rows and of the waves.
    dtype : dtype
        Of its numbers.
    device : Device
        That of this rank.
    """

    def __init__(
        self,
        group: Group,
        operation: str,
        rows: Sequence[int],
        waves: int,
        shape_of: Callable[[int, int], tuple[int, ...]],
        axes: tuple[int, int],
        dtype: np.dtype,
        device: Device,
    ) -> None:
        stops = np.cumsum(rows).tolist()
        held = [slice(stop - count, stop) for stop, count in zip(stops, rows, strict=True)]
        divided = even_parts(group, waves)
        #: The waves of this rank after the exchange.
        self.own = divided[group.rank]
        self._shapes = (
            shape_of(rows[group.rank], waves),
            shape_of(stops[-1], self.own.stop - self.own.start),
        )
        self._dtype = dtype
        #: Bytes of the whole lines.
        self.nbytes = prod(self._shapes[1]) * dtype.itemsize
        self._fields = DeviceViews(device), DeviceViews(device)
        self._transposition = Transposition(group, operation, held, divided, axes)

    def connect(self) -> None:
        """Find how the numbers travel; collective."""
        self._take(self._fields[0].device, _ANYWHERE, _ANYWHERE, None)
        self._transposition.connect(*self._fields, _FIELD)

    def gather(self, device: Device, parts: int, whole: int, owner: Any) -> None:
        """Write the whole lines of the waves of this rank, and wait for them; collective.

        Parameters
        ----------
        device : Device
            The stream.
        parts, whole : int
            Addresses of the rows of this rank, and of the whole lines.
        owner : object
            What keeps the memory.
        """
        self._take(device, parts, whole, owner)
        self._transposition.to_columns.refresh(_FIELD)

    def scatter(self, device: Device, parts: int, whole: int, owner: Any) -> None:
        """Write the rows of this rank from the whole lines, and wait for them; collective."""
        self._take(device, parts, whole, owner)
        self._transposition.to_rows.refresh(_FIELD)

    def _take(self, device: Device, parts: int, whole: int, owner: Any) -> None:
        """Let the fields be the arrays at two addresses."""
        places = zip(self._fields, (parts, whole), self._shapes, strict=True)
        for fields, address, shape in places:
            array = device_array(address, shape, None, self._dtype, owner)
            fields.take(device, {_FIELD: array})

r"""Products with the eigenvectors of both symmetric axes of a plane, in place of transforms.

The eigenvectors of an axis that is symmetric about its middle are even and odd: sums of the values
in mirror places have the amplitudes of the even ones, differences those of the odd ones, and a
product takes half the operations. One kernel makes the sums and differences of both axes of a plane
while it copies the field (PS_MIRRORED), and one undoes them. Words per unknown:

    load      sums and differences of mirror places            2
    products  along y and x, to a second array and back        4
    lines     along the first axis                             2
    products  along y and x                                    4
    store     mirror places of sums and differences            2

and n operations for each product, 4 n in all.
"""

from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._runtime.cublas import padded_rows, products
from .._runtime.device import address_of
from .._runtime.streams import Stream
from ._axes import Axis
from ._methods import EIGENVECTORS, method_of_device

Array = NDArray[Any]

_MULTIPLE = 4  # of the numbers of a half of a line: PS_MIRRORED
_WORK = 8 << 20  # bytes of the work area of cuBLAS, so that a graph shares none with other calls
_LEAST = 64  # places of an axis whose halves are worth their own products


def are_mirrored(axes: Sequence[Any], dtype: np.dtype, helmholtz: float) -> bool:
    """Return whether a box has lines along the first axis and products along two symmetric ones."""
    if len(axes) != 3 or dtype.kind != "f" or helmholtz < 0:
        return False
    first, *others = axes
    unknowns = int(np.prod([axis.count for axis in axes], dtype=float))
    return first.has_transform and all(
        axis.is_symmetric
        and not axis.is_periodic
        and axis.count >= _LEAST
        and method_of_device(axis, unknowns) == EIGENVECTORS
        for axis in others
    )


def mirrored_pitch(axis: Axis) -> int:
    """Return the numbers from one line to the next."""
    return 2 * (-(-((axis.count + 1) // 2) // _MULTIPLE) * _MULTIPLE)


def mirrored_shifts(others: Sequence[Axis]) -> Array:
    """Return the sums of the eigenvalues of all places of a plane, those between lines included."""
    across, along = (axis.modes.values for axis in others)
    pitch, half = mirrored_pitch(others[1]), (len(along) + 1) // 2
    values = np.full(pitch, along.min() or -1.0)
    values[:half] = along[:half]
    values[pitch // 2 : pitch // 2 + len(along) - half] = along[half:]
    return (across[:, None] + values).ravel()


class MirroredProducts:
    """The products before the lines, or after them; the interface is that of `CufftPlan`.

    Parameters
    ----------
    others : sequence of Axis
        The axes of a plane: y and x.
    backward : bool
        Whether the products make values of amplitudes.
    planes : int
        Number of planes.
    dtype : dtype
        float32 or float64.
    ordinal : int
        Number of the device.
    keep : callable
        Copies an array of the host to the device.
    """

    def __init__(
        self,
        others: Sequence[Axis],
        *,
        backward: bool,
        planes: int,
        dtype: np.dtype,
        ordinal: int,
        keep: Callable[[Array], Array],
    ) -> None:
        self._products, self._dtype = products(ordinal), dtype
        self._planes, self._rows = planes, others[0].count
        self._pitch = mirrored_pitch(others[1])
        self._matrices = [
            [
                (len(matrix), keep(padded_rows(matrix, dtype)))
                for matrix in (block.backward if backward else block.forward for block in blocks)
            ]
            for blocks in (axis.modes.blocks for axis in others)
        ]
        #: Held by a thread that executes the plan, or that lets no other one execute it.
        self.lock = RLock()
        self._bytes = planes * self._rows * self._pitch * dtype.itemsize
        #: Bytes of the second array and of the work area of cuBLAS.
        self.work_bytes = self._bytes + _WORK

    def execute(self, lines: int, work: int, stream: Stream) -> None:
        """Enqueue the products of all planes, as `CufftPlan.execute` does.

        Products along the rows leave the places between lines as they are; those across them write
        zeros there.
        """
        size, pitch = self._dtype.itemsize, self._pitch
        area = work + self._bytes, _WORK
        across, along = self._matrices
        start = 0
        for count, matrix in across:
            skip = start * pitch * size
            own = address_of(matrix), matrix.shape[1]
            shape, distance = (self._planes, count, pitch), self._rows * pitch
            places = lines + skip, work + skip
            self._products.columns(own, *places, shape, distance, self._dtype, stream, work=area)
            start += count
        for k, (count, matrix) in enumerate(along):
            skip = k * pitch // 2 * size
            own = address_of(matrix), matrix.shape[1]
            sizes = self._planes * self._rows, count
            places = work + skip, lines + skip
            self._products.rows(own, *places, sizes, pitch, self._dtype, stream, work=area)

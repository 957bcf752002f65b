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

and n operations for each product, 4 n in all. The even waves of nodes between two Dirichlet sides,
and those of the first half of the orders between two Neumann sides, are waves of half the
intervals, which are even and odd as well: with an even number of intervals 3 n operations remain.
"""

from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._axis import DIRICHLET, NEUMANN
from .._runtime.cublas import padded_rows, products
from .._runtime.device import address_of
from .._runtime.streams import Stream
from ._axes import Axis
from ._methods import EIGENVECTORS, method_of_device
from ._modes import Block, halved

Array = NDArray[Any]

_MULTIPLE = 4  # of the numbers of a quarter of a line: PS_MIRRORED
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


class _Part(NamedTuple):
    """A part of the places of a line, and the eigenvectors that it has.

    Attributes
    ----------
    start : int
        Its first place in a line.
    values : ndarray
        The eigenvalues.
    block : Block
        The matrices.
    """

    start: int
    values: Array
    block: Block


def is_twice(axis: Axis) -> bool:
    """Return whether the waves of half the intervals of an axis are even and odd, too."""
    alike = (DIRICHLET, DIRICHLET), (NEUMANN, NEUMANN)
    return axis.has_transform and axis.on_nodes and axis.ends in alike and axis.count % 2 == 1


def mirrored_pitch(axis: Axis) -> int:
    """Return the numbers from one line to the next."""
    quarter = ((axis.count + 1) // 2 + 1) // 2
    return 4 * (-(-quarter // _MULTIPLE) * _MULTIPLE)


def _parts(axis: Axis) -> list[_Part]:
    """Return the parts of the places along an axis, as struct ps_waves does."""
    pitch, (even, odd) = mirrored_pitch(axis), axis.modes.blocks
    half = len(even.forward)
    first, second = axis.modes.values[:half], axis.modes.values[half:]
    if not is_twice(axis):
        return [_Part(0, first, even), _Part(pitch // 2, second, odd)]
    if axis.ends[0] == DIRICHLET:
        quarters = halved(second, *odd)
        found, start = [_Part(0, first, even)], pitch // 2
    else:
        quarters = halved(first, *even)
        found, start = [_Part(pitch // 2, second, odd)], 0
    count = len(quarters.blocks[0].forward)
    own = quarters.values[:count], quarters.values[count:]
    both = zip((start, start + pitch // 4), own, quarters.blocks, strict=True)
    return sorted([*found, *(_Part(*part) for part in both)], key=lambda part: part.start)


def mirrored_shifts(others: Sequence[Axis]) -> Array:
    """Return the sums of the eigenvalues of all places of a plane, those between lines included."""
    across = np.concatenate([part.values for part in _parts(others[0])])
    along = np.full(mirrored_pitch(others[1]), others[1].modes.values.min() or -1.0)
    for part in _parts(others[1]):
        along[part.start : part.start + len(part.values)] = part.values
    return (across[:, None] + along).ravel()


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
        across, along = (_parts(axis) for axis in others)
        self._across = [keep(padded_rows(_matrix(part, backward), dtype)) for part in across]
        # With the places between the parts, which have zeros: sizes of even tiles for cuBLAS.
        starts = [*(part.start for part in along[1:]), self._pitch]
        self._along = [
            (part.start, keep(_square(_matrix(part, backward), stop - part.start, dtype)))
            for part, stop in zip(along, starts, strict=True)
        ]
        #: Held by a thread that executes the plan, or that lets no other one execute it.
        self.lock = RLock()
        self._bytes = planes * self._rows * self._pitch * dtype.itemsize
        #: Bytes of the second array and of the work area of cuBLAS.
        self.work_bytes = self._bytes + _WORK

    def execute(self, lines: int, work: int, stream: Stream) -> None:
        """Enqueue the products of all planes, as `CufftPlan.execute` does.

        The places between the parts of a line have zeros, before and after.
        """
        size, pitch = self._dtype.itemsize, self._pitch
        area = work + self._bytes, _WORK
        start = 0
        for matrix in self._across:
            skip, count = start * pitch * size, len(matrix)
            own = address_of(matrix), matrix.shape[1]
            shape, distance = (self._planes, count, pitch), self._rows * pitch
            places = lines + skip, work + skip
            self._products.columns(own, *places, shape, distance, self._dtype, stream, work=area)
            start += count
        for place, matrix in self._along:
            own, sizes = (address_of(matrix), len(matrix)), (self._planes * self._rows, len(matrix))
            places = work + place * size, lines + place * size
            self._products.rows(own, *places, sizes, pitch, self._dtype, stream, work=area)


def _matrix(part: _Part, backward: bool) -> Array:
    """Return the matrix of a part before the lines, or after them."""
    return part.block.backward if backward else part.block.forward


def _square(matrix: Array, size: int, dtype: np.dtype) -> Array:
    """Return a matrix with further rows and columns of zeros."""
    found = np.zeros((size, size), dtype)
    found[: len(matrix), : matrix.shape[1]] = matrix
    return found

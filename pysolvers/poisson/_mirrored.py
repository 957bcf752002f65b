r"""Products with eigenvectors of symmetric axes of a plane, in place of transforms or with them.

The eigenvectors of an axis that is symmetric about its middle are even and odd: sums of the values
in mirror places have the amplitudes of the even ones, differences those of the odd ones, and a
product takes half the operations. One kernel makes the sums and differences of both axes of a plane
while it copies the field (PS_MIRRORED), and one undoes them. Words per unknown:

    load      sums and differences of mirror places            2
    x, y      to a second array and back                       4
    lines     along the first axis                             2
    y, x      to the second array and back                     4
    store     mirror places of sums and differences            2

and n operations for each product, 4 n in all. The even waves of nodes between two Dirichlet sides,
and those of the first half of the orders between two Neumann sides, are waves of half the
intervals, which are even and odd as well: with an even number of intervals 3 n operations remain.

Where the intervals along x are a multiple of 8 without large prime factors, the products along y
remain, 1.5 n operations, and x has the parts of two halvings (`_waves`, PS_MIRRORED_ROWS):
transforms of 3/4 of its values, and products by the even and odd eigenvectors of the rest, which
take n / 8 operations. The words are the same. A part of the lines is an array of its own.
Where the intervals along y are a multiple of 8 as well, and many, the rows are in five parts
(PS_MIRRORED_IN_FIVE), and 0.875 n operations along y remain.
"""

from collections.abc import Callable, Sequence
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._axis import DIRICHLET, NEUMANN
from .._runtime.cublas import padded_rows, products
from .._runtime.cufft import COMPLEX_TO_REAL, REAL_TO_COMPLEX, CufftPlan
from .._runtime.device import address_of
from .._runtime.streams import Stream
from ._axes import Axis
from ._methods import EIGENVECTORS, has_short_factors, method_of_device
from ._modes import Block, halved

Array = NDArray[Any]

_MULTIPLE = 4  # of the numbers of a quarter of a line: PS_MIRRORED
_WORK = 8 << 20  # bytes of the work area of cuBLAS, so that a graph shares none with other calls
_LEAST = 32  # places of an axis whose halves are worth their own products
# Intervals up to which they replace extended transforms: boxes of 97, 129, 257, 1025 nodes take
# 0.08, 0.13, 0.72, 77 ms, with extended transforms 0.50, 0.40, -, 135 ms (H200).
_MOST = 1500
# Intervals from which rows are in five parts: boxes of 129, 257, 513 nodes take 144, 696, 5410 us,
# and in three parts 124, 692, 6030 (H200).
_LEAST_IN_FIVE = 320
_HALVINGS = 2  # of PS_MIRRORED_ROWS
_MOST_FACTOR = 7  # of the intervals of halved lines


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
        and (_is_extended(axis) or method_of_device(axis, unknowns) == EIGENVECTORS)
        for axis in others
    )


def _is_extended(axis: Axis) -> bool:
    """Return whether the transform of an axis is that of its extension, and not too long."""
    return axis.has_transform and axis.transform[1] == 1 and axis.intervals <= _MOST


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


class MirroredLines(NamedTuple):
    """Lines of an array of their own: all, or a part of all.

    Attributes
    ----------
    pitch : int
        Numbers from one line to the next, as the kernels that load and store have them.
    parts : tuple of _Part
        Those that have products; without any, the lines have transforms.
    size : int
        Numbers of a line after the transform or the products along x. There is no space between
        these lines: rows that begin at multiples of 32 bytes take 0.96 of the time (513^3 nodes,
        H200).
    waves : ndarray, shape (size,)
        Eigenvalues of all places; those that have no wave have any of them.
    """

    pitch: int
    parts: tuple[_Part, ...]
    size: int
    waves: Array


def is_twice(axis: Axis) -> bool:
    """Return whether the waves of half the intervals of an axis are even and odd, too."""
    alike = (DIRICHLET, DIRICHLET), (NEUMANN, NEUMANN)
    return axis.has_transform and axis.on_nodes and axis.ends in alike and axis.count % 2 == 1


def has_halved_lines(axis: Axis) -> bool:
    """Return whether an axis has the lines of PS_MIRRORED_ROWS."""
    is_multiple = axis.intervals % (2 << _HALVINGS) == 0
    return is_twice(axis) and is_multiple and has_short_factors(axis, _MOST_FACTOR)


def mirrored_pitch(axis: Axis) -> int:
    """Return the numbers from one line to the next."""
    quarter = ((axis.count + 1) // 2 + 1) // 2
    return 4 * _rounded(quarter)


def mirrored_lines(axis: Axis) -> list[MirroredLines]:
    """Return the lines of x: with the constant wave, if there is one, in the first place."""
    if not has_halved_lines(axis):
        pitch = mirrored_pitch(axis)
        return [_with_products(pitch, _parts(axis, pitch))]
    _, *eighths = _of_even_order(axis)
    pitch = 2 * _rounded(len(eighths[0][0]))
    # The kernel divides the results by it.
    scaled = (
        (values, Block(forward, 2 * axis.intervals * backward))
        for values, forward, backward in eighths
    )
    parts = [_Part(k * pitch // 2, *own) for k, own in enumerate(scaled)]
    found = [_with_products(pitch, parts)]
    for level in range(1, _HALVINGS + 1):
        size = axis.intervals >> level
        found.append(MirroredLines(size + 2, (), size, axis.odd_eigenvalues(size)))
    return found


def has_rows_in_five(axis: Axis) -> bool:
    """Return whether an axis has the rows of PS_MIRRORED_IN_FIVE, which pay on long axes."""
    return is_twice(axis) and axis.intervals % 8 == 0 and axis.intervals >= _LEAST_IN_FIVE


def mirrored_rows(axis: Axis, *, in_five: bool) -> list[_Part]:
    """Return the parts of the places along y, which follow each other without gaps."""
    parts = _parts_in_five(axis) if in_five else _parts(axis, mirrored_pitch(axis))
    starts = np.cumsum([0, *(len(part.values) for part in parts)])
    pairs = zip(parts, starts[:-1], strict=True)
    return [part._replace(start=int(start)) for part, start in pairs if len(part.values)]


def _parts_in_five(axis: Axis) -> list[_Part]:
    """Return the parts of PS_MIRRORED_IN_FIVE, the constant wave first.

    Of waves q of odd order those with the same sign of cos(pi (2 q + 1) / 4) have one: they are
    those of numbers 1 to m = N / 4, of which the last one is doubled.
    """
    is_sine, m = axis.ends[0] == DIRICHLET, axis.intervals // 4
    values, forward, backward = _halves(axis.modes)[not is_sine]
    places = np.arange(m) if is_sine else np.arange(2 * m - 1, m - 1, -1)
    found = []
    for signs in ([0, 3], [1, 2]):
        waves = np.flatnonzero(np.isin(np.arange(2 * m) % 4, signs))
        own = forward[np.ix_(waves, places)]
        own[:, -1] /= 2
        found.append((values[waves], own, backward[np.ix_(places, waves)]))
    odd_order, *quarters = _of_even_order(axis)
    return [_Part(0, own[0], Block(*own[1:])) for own in (*quarters, odd_order, *found)]


def _of_even_order(axis: Axis) -> list[tuple[Array, Array, Array]]:
    """Return eigenvalues and matrices of the waves of even order of an axis of nodes.

    First those of odd order of half the intervals, then the even and the odd ones of the others:
    both halvings leave the second half of sines, and the first half of cosines.
    """
    is_sine = axis.ends[0] == DIRICHLET
    quarters = _halves(halved(*_halves(axis.modes)[is_sine]))
    return [quarters[not is_sine], *_halves(halved(*quarters[is_sine]))]


def _halves(modes: Any) -> list[tuple[Array, Array, Array]]:
    """Return eigenvalues and matrices of the even and of the odd eigenvectors."""
    count = len(modes.blocks[0].forward)
    values = modes.values[:count], modes.values[count:]
    return [(own, *block) for own, block in zip(values, modes.blocks, strict=True)]


def _with_products(pitch: int, parts: Sequence[_Part]) -> MirroredLines:
    """Return lines of parts that have products."""
    values = np.concatenate([part.values for part in parts])
    waves = np.full(pitch, values.min() or -1.0)
    for part in parts:
        waves[part.start : part.start + len(part.values)] = part.values
    return MirroredLines(pitch, tuple(parts), pitch, waves)


def _rounded(count: int) -> int:
    """Return the next multiple of `_MULTIPLE`."""
    return -(-count // _MULTIPLE) * _MULTIPLE


def _parts(axis: Axis, pitch: int) -> list[_Part]:
    """Return the parts of the places along an axis, as struct ps_waves does."""
    even, odd = axis.modes.blocks
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


def mirrored_shifts(rows: Sequence[_Part], lines: MirroredLines) -> Array:
    """Return the sums of the eigenvalues of all places of a plane, those between lines included."""
    across = np.concatenate([part.values for part in rows])
    return (across[:, None] + lines.waves).ravel()


class MirroredProducts:
    """Products along y, and products or transforms along x, before the lines or after them.

    The interface is that of `CufftPlan`.

    Parameters
    ----------
    rows : sequence of _Part
        The parts of the axis y of the planes: `mirrored_rows`.
    lines : MirroredLines
        The lines along x.
    backward : bool
        Whether values are made of amplitudes.
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
        rows: Sequence[_Part],
        lines: MirroredLines,
        *,
        backward: bool,
        planes: int,
        dtype: np.dtype,
        ordinal: int,
        keep: Callable[[Array], Array],
    ) -> None:
        self._products, self._dtype, self._backward = products(ordinal), dtype, backward
        self._planes, self._rows = planes, sum(len(part.values) for part in rows)
        self._size = lines.size
        self._across = [keep(padded_rows(_matrix(part, backward), dtype)) for part in rows]
        # With the places between the parts, which have zeros: sizes of even tiles for cuBLAS.
        starts = [*(part.start for part in lines.parts[1:]), lines.pitch]
        self._along = [
            (part.start, keep(_square(_matrix(part, backward), stop - part.start, dtype)))
            for part, stop in zip(lines.parts, starts, strict=False)
        ]
        form = REAL_TO_COMPLEX if backward else COMPLEX_TO_REAL
        rest = lines.pitch, planes * self._rows, dtype, ordinal, lines.size
        self._plan = None if lines.parts else CufftPlan(form, (lines.size,), *rest)
        #: Held by a thread that executes the plan, or that lets no other one execute it.
        self.lock = RLock() if self._plan is None else self._plan.lock
        self._bytes = planes * self._rows * self._size * dtype.itemsize
        self._area = max(_WORK, 0 if self._plan is None else self._plan.work_bytes)
        #: Bytes of the second array and of the work area of the libraries.
        self.work_bytes = self._bytes + self._area

    def execute(self, lines: int, work: int, stream: Stream) -> None:
        """Enqueue the products and transforms of all planes, as `CufftPlan.execute` does.

        The places between the parts of a line have zeros, before and after.
        """
        steps = [self._execute_along, self._execute_across]
        if self._backward:
            steps.reverse()
        area = work + self._bytes, self._area
        steps[0](lines, work, area, stream)
        steps[1](work, lines, area, stream)

    def _execute_across(
        self, source: int, target: int, area: tuple[int, int], stream: Stream
    ) -> None:
        """Enqueue the products along y."""
        start, width = 0, self._size
        for matrix in self._across:
            skip, count = start * width * self._dtype.itemsize, len(matrix)
            own = address_of(matrix), matrix.shape[1]
            shape, distance = (self._planes, count, width), self._rows * width
            places = source + skip, target + skip
            self._products.columns(own, *places, shape, distance, self._dtype, stream, work=area)
            start += count

    def _execute_along(
        self, source: int, target: int, area: tuple[int, int], stream: Stream
    ) -> None:
        """Enqueue the products or the transform along x."""
        if self._plan is not None:
            self._plan.execute(source, area[0], stream, target)
        for place, matrix in self._along:
            skip = place * self._dtype.itemsize
            own, sizes = (address_of(matrix), len(matrix)), (self._planes * self._rows, len(matrix))
            places = source + skip, target + skip
            self._products.rows(own, *places, sizes, self._size, self._dtype, stream, work=area)


def _matrix(part: _Part, backward: bool) -> Array:
    """Return the matrix of a part before the lines, or after them."""
    return part.block.backward if backward else part.block.forward


def _square(matrix: Array, size: int, dtype: np.dtype) -> Array:
    """Return a matrix with further rows and columns of zeros."""
    found = np.zeros((size, size), dtype)
    found[: len(matrix), : matrix.shape[1]] = matrix
    return found

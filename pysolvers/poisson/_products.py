"""Products with the eigenvectors of an axis.

Where these are even and odd, the values are added to and subtracted from their mirror images first,
and each half is multiplied by a matrix of half the size: half the operations.

Matrices of up to about 128 rows multiply parts of the values by one thread of the BLAS, in several
threads of the solver. The parts do not depend on the number of threads. Products with larger ones
run on the threads of the BLAS.
"""

from collections import deque
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._columns import share
from ._modes import Block, Modes

Array = NDArray[Any]

# Operations / 2 of a product up to which OpenBLAS uses one thread. More threads of it wait for each
# other, which takes 50 times as long where other processes keep the cores busy.
_SERIAL = 1 << 18
_LEAST = 16  # columns of a product of such a size that are worth a call
_TOGETHER = 1 << 16  # values that a thread multiplies before it takes others


class Product:
    """Matrices of an axis for real values of one precision.

    Parameters
    ----------
    modes : Modes
        The eigenvectors.
    dtype : dtype
        float32 or float64.
    """

    def __init__(self, modes: Modes, dtype: np.dtype) -> None:
        self._blocks = [
            Block(*(np.ascontiguousarray(a, dtype) for a in block)) for block in modes.blocks
        ]
        self._size = len(modes.values)

    @property
    def nbytes(self) -> int:
        """Size of the matrices in bytes."""
        return sum(matrix.nbytes for block in self._blocks for matrix in block)

    @property
    def gain(self) -> float:
        """Amplitude of the first eigenvector in the constant 1."""
        total = float(self._blocks[0].forward[0].sum(dtype=np.float64))
        return 2 * total if self.is_halved else total

    @property
    def is_halved(self) -> bool:
        """Whether the eigenvectors are even and odd; arrays of any strides are then accepted."""
        return len(self._blocks) == 2

    def forward(
        self,
        source: Array,
        target: Array,
        axis: int,
        threads: int = 1,
        spare: Array | None = None,
    ) -> None:
        """Write the amplitudes of the values along an axis, -3 .. -1; `target` is contiguous.

        `spare` is a contiguous array like `target` for sums and differences: 1 MB of new memory is
        four times as slow, as its pages are mapped first.
        """
        if not self.is_halved:
            _multiply(self._blocks[0].forward, source, target, axis, threads)
            return
        mirrored = np.flip(source, axis)
        start = 0
        for block, operation in zip(self._blocks, (np.add, np.subtract), strict=True):
            place = _part(axis, 0, block.forward.shape[1])
            values = source[place]
            half = operation(values, mirrored[place], out=_array(values.shape, source.dtype, spare))
            part = target[_part(axis, start, len(block.forward))]
            _multiply(block.forward, half, part, axis, threads)
            start += len(block.forward)

    def backward(
        self,
        source: Array,
        target: Array,
        axis: int,
        threads: int = 1,
        spare: Array | None = None,
    ) -> None:
        """Write the values of the amplitudes along an axis, -3 .. -1; `source` is contiguous.

        `spare` is that of `forward`.
        """
        if not self.is_halved:
            _multiply(self._blocks[0].backward, source, target, axis, threads)
            return
        halves: list[Array] = []
        start = 0
        for matrix in (block.backward for block in self._blocks):
            shape = list(source.shape)
            shape[axis] = len(matrix)
            used = sum(half.size for half in halves)
            halves.append(_array(shape, source.dtype, spare, used))
            part = source[_part(axis, start, matrix.shape[1])]
            _multiply(matrix, part, halves[-1], axis, threads)
            start += matrix.shape[1]
        even, odd = halves
        size = odd.shape[axis]
        first = even[_part(axis, 0, size)]
        np.subtract(first, odd, out=np.flip(target, axis)[_part(axis, 0, size)])
        np.add(first, odd, out=target[_part(axis, 0, size)])
        if self._size % 2:
            target[_part(axis, size, 1)] = even[_part(axis, size, 1)]


def _array(shape: Sequence[int], dtype: np.dtype, spare: Array | None, used: int = 0) -> Array:
    """Return a contiguous array: after `used` numbers of `spare`, or a new one."""
    if spare is None:
        return np.empty(shape, dtype)
    return spare.reshape(-1)[used : used + prod(shape)].reshape(shape)


def _part(axis: int, start: int, count: int) -> tuple[Any, ...]:
    """Return the index of consecutive entries along an axis, counted from the end."""
    return (..., slice(start, start + count), *(slice(None),) * (-1 - axis))


def _multiply(matrix: Array, source: Array, target: Array, axis: int, threads: int) -> None:
    """Multiply the vectors along an axis, -3 .. -1, by a matrix; `target` is another array."""
    if source.dtype.kind == "c":
        if axis == -1:
            for part in ("real", "imag"):
                values = np.ascontiguousarray(getattr(source, part))
                product = np.empty((*values.shape[:-1], len(matrix)), matrix.dtype)
                _multiply(matrix, values, product, axis, threads)
                getattr(target, part)[...] = product
            return
        source, target = source.view(matrix.dtype), target.view(matrix.dtype)
    if axis == -1 and source.flags.c_contiguous and target.flags.c_contiguous:
        source, target = (a.reshape(-1, a.shape[-1]) for a in (source, target))
    if axis == -3:
        source, target = source.swapaxes(-3, -2), target.swapaxes(-3, -2)
    most = _SERIAL // matrix.size
    along = -2 if axis == -1 else -1
    if most < _LEAST or (threads == 1 and source.shape[along] <= most):
        _product(matrix, source, target, axis)
        return
    tail = () if along == -1 else (slice(None),)

    def run(_: int, part: tuple[Any, ...]) -> None:
        values, products = source[part], target[part]
        for one in _slices(values.shape[along], most):
            place = (..., one, *tail)
            _product(matrix, values[place], products[place], axis)

    # Parts for the threads: of the longest axis of the batch or, without one, of the vectors.
    sizes = source.shape[:-2]
    divided = max(range(len(sizes)), key=sizes.__getitem__, default=0)
    parts: deque[tuple[int, tuple[Any, ...]]]
    if sizes and sizes[divided] > 1:
        step = max(1, _TOGETHER * sizes[divided] // max(source.size, 1))
        head = (slice(None),) * divided
        parts = deque((0, (*head, one)) for one in _slices(sizes[divided], step))
    else:
        step = most * max(1, _TOGETHER // (most * matrix.shape[1]))
        parts = deque((0, (..., one, *tail)) for one in _slices(source.shape[along], step))
    share(lambda: run, parts, threads)


def _slices(size: int, step: int) -> list[slice]:
    """Return consecutive slices of an axis."""
    return [slice(j, j + step) for j in range(0, size, step)]


def _product(matrix: Array, source: Array, target: Array, axis: int) -> None:
    """Call the BLAS of NumPy for vectors along the last axis (-1) or the one before."""
    if axis == -1:
        np.matmul(source, matrix.T, out=target)
    else:
        np.matmul(matrix, source, out=target)

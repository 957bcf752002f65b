"""Products with the eigenvectors of an axis.

Where these are even and odd, the values are added to and subtracted from their mirror images first,
and each half is multiplied by a matrix of half the size: half the operations.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._modes import Block, Modes

Array = NDArray[Any]


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

    def forward(self, source: Array, target: Array, axis: int) -> None:
        """Write the amplitudes of the values along an axis, -3 .. -1; `target` is contiguous."""
        if not self.is_halved:
            _multiply(self._blocks[0].forward, source, target, axis)
            return
        mirrored = np.flip(source, axis)
        start = 0
        for block, operation in zip(self._blocks, (np.add, np.subtract), strict=True):
            place = _part(axis, 0, block.forward.shape[1])
            half = operation(source[place], mirrored[place], order="C")
            _multiply(block.forward, half, target[_part(axis, start, len(block.forward))], axis)
            start += len(block.forward)

    def backward(self, source: Array, target: Array, axis: int) -> None:
        """Write the values of the amplitudes along an axis, -3 .. -1; `source` is contiguous."""
        if not self.is_halved:
            _multiply(self._blocks[0].backward, source, target, axis)
            return
        halves, start = [], 0
        for matrix in (block.backward for block in self._blocks):
            shape = list(source.shape)
            shape[axis] = len(matrix)
            halves.append(np.empty(shape, source.dtype))
            part = source[_part(axis, start, matrix.shape[1])]
            _multiply(matrix, part, halves[-1], axis)
            start += matrix.shape[1]
        even, odd = halves
        size = odd.shape[axis]
        first = even[_part(axis, 0, size)]
        np.subtract(first, odd, out=np.flip(target, axis)[_part(axis, 0, size)])
        np.add(first, odd, out=target[_part(axis, 0, size)])
        if self._size % 2:
            target[_part(axis, size, 1)] = even[_part(axis, size, 1)]


def _part(axis: int, start: int, count: int) -> tuple[Any, ...]:
    """Return the index of consecutive entries along an axis, counted from the end."""
    return (..., slice(start, start + count), *(slice(None),) * (-1 - axis))


def _multiply(matrix: Array, source: Array, target: Array, axis: int) -> None:
    """Multiply the vectors along an axis, -3 .. -1, by a matrix; `target` is another array."""
    if source.dtype.kind == "c":
        if axis == -1:
            for part in ("real", "imag"):
                product = np.ascontiguousarray(getattr(source, part)) @ matrix.T
                getattr(target, part)[...] = product
            return
        source, target = source.view(matrix.dtype), target.view(matrix.dtype)
    if axis == -1:
        if source.flags.c_contiguous and target.flags.c_contiguous:
            source, target = (a.reshape(-1, a.shape[-1]) for a in (source, target))
        np.matmul(source, matrix.T, out=target)
        return
    if axis == -3:
        source, target = (a.reshape(*a.shape[:-2], -1) for a in (source, target))
    np.matmul(matrix, source, out=target)

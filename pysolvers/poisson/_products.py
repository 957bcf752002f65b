"""Products with the eigenvectors of an axis.

Where these are even and odd, the values are added to and subtracted from their mirror images first,
and each half is multiplied by a matrix of half the size: half the operations.

Values are multiplied in parts, which are copied, or added and subtracted, to memory that stays in
the cache of a core. Each thread of the solver multiplies parts of its own, with one thread of the
BLAS, by matrices of up to about 128 rows. Larger matrices multiply parts of 16 MB by the threads of
the BLAS. The parts do not depend on the number of threads. As they are copied, the target can be
the source.
"""

from collections import deque
from collections.abc import Iterator, Sequence
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
_TOGETHER = 1 << 16  # values of a part for one thread
_LARGE = 1 << 21  # values of a part for the threads of the BLAS


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
        most = _SERIAL // max(block.forward.size for block in self._blocks)
        self._is_serial = most >= _LEAST
        self._columns = most if self._is_serial else _LARGE
        self._spare: list[Array] = []

    @property
    def nbytes(self) -> int:
        """Size of the matrices in bytes."""
        return sum(matrix.nbytes for block in self._blocks for matrix in block)

    @property
    def gain(self) -> float:
        """Amplitude of the first eigenvector in the constant 1."""
        total = float(self._blocks[0].forward[0].sum(dtype=np.float64))
        return 2 * total if len(self._blocks) == 2 else total

    def forward(self, source: Array, target: Array, axis: int, threads: int = 1) -> None:
        """Write the amplitudes of values along an axis, -3 .. -1.

        `source` has any strides; `target` is contiguous and can be `source`.
        """
        self._run(self._forward, source, target, axis, threads)

    def backward(self, source: Array, target: Array, axis: int, threads: int = 1) -> None:
        """Write the values of amplitudes along an axis, -3 .. -1.

        `source` is contiguous; `target` has any strides and can be `source`.
        """
        self._run(self._backward, source, target, axis, threads)

    def _run(self, multiply: Any, source: Array, target: Array, axis: int, threads: int) -> None:
        """Multiply parts of the vectors along an axis."""
        if axis == -3:
            source, target = source.swapaxes(-3, -2), target.swapaxes(-3, -2)
        along = max(axis, -2)
        is_pair = source.dtype.kind == "c"
        if is_pair and along == -2 and all(a.strides[-1] == a.itemsize for a in (source, target)):
            source, target = (a.view(self._blocks[0].forward.dtype) for a in (source, target))
            is_pair = False
        parts = deque(self._parts(source.shape, along))

        def run(_: int, place: tuple[Any, ...]) -> None:
            values, products = source[place], target[place]
            if is_pair:
                for part in ("real", "imag"):
                    whole = np.ascontiguousarray(getattr(values, part))
                    multiply(whole, whole, along)
                    getattr(products, part)[...] = whole
                return
            multiply(values, products, along)

        share(lambda: run, parts, threads if self._is_serial else 1)

    def _parts(self, shape: tuple[int, ...], along: int) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Yield the indices of parts that stay in a cache."""
        others, whole = shape[-3 - along], slice(None)
        count = max(1, (_TOGETHER if self._is_serial else _LARGE) // self._size)
        for head in _places(shape[:-2], max(1, count // max(1, others))):
            for one in _slices(others, count):
                yield 0, (*head, one, whole) if along == -1 else (*head, whole, one)

    def _forward(self, source: Array, target: Array, along: int) -> None:
        """Write the amplitudes of a part."""
        scratch = self._take(source.size)
        if len(self._blocks) == 1:
            values = scratch[: source.size].reshape(source.shape)
            values[...] = source
            self._multiply(self._blocks[0].forward, values, target, along)
        else:
            mirrored, sums, used, start = np.flip(source, along), [], 0, 0
            for block, operation in zip(self._blocks, (np.add, np.subtract), strict=True):
                place = _part(along, 0, block.forward.shape[1])
                values = source[place]
                out = scratch[used : used + values.size].reshape(values.shape)
                sums.append(operation(values, mirrored[place], out=out))
                used += values.size
            for block, half in zip(self._blocks, sums, strict=True):
                part = target[_part(along, start, len(block.forward))]
                self._multiply(block.forward, half, part, along)
                start += len(block.forward)
        self._spare.append(scratch)

    def _backward(self, source: Array, target: Array, along: int) -> None:
        """Write the values of a part."""
        scratch = self._take(source.size)
        halves: list[Array] = []
        used = start = 0
        for matrix in (block.backward for block in self._blocks):
            shape = list(source.shape)
            shape[along] = len(matrix)
            out = scratch[used : used + prod(shape)].reshape(shape)
            part = source[_part(along, start, matrix.shape[1])]
            self._multiply(matrix, part, out, along)
            halves.append(out)
            used += out.size
            start += matrix.shape[1]
        if len(halves) == 1:
            target[...] = halves[0]
        else:
            even, odd = halves
            size = odd.shape[along]
            first = even[_part(along, 0, size)]
            np.subtract(first, odd, out=np.flip(target, along)[_part(along, 0, size)])
            np.add(first, odd, out=target[_part(along, 0, size)])
            if self._size % 2:
                target[_part(along, size, 1)] = even[_part(along, size, 1)]
        self._spare.append(scratch)

    def _multiply(self, matrix: Array, source: Array, target: Array, along: int) -> None:
        """Call the BLAS of NumPy for vectors along the last axis (-1) or the one before."""
        for one in _slices(source.shape[-3 - along], self._columns):
            if along == -1:
                np.matmul(source[..., one, :], matrix.T, out=target[..., one, :])
            else:
                np.matmul(matrix, source[..., one], out=target[..., one])

    def _take(self, size: int) -> Array:
        """Return memory that no other thread uses: 1 MB of new memory is four times as slow."""
        while self._spare:
            try:
                found = self._spare.pop()
            except IndexError:  # another thread took the last one
                break
            if len(found) >= size:
                return found
        return np.empty(size, self._blocks[0].forward.dtype)


def _part(axis: int, start: int, count: int) -> tuple[Any, ...]:
    """Return the index of consecutive entries along an axis, counted from the end."""
    return (..., slice(start, start + count), *(slice(None),) * (-1 - axis))


def _places(sizes: Sequence[int], count: int) -> Iterator[tuple[slice, ...]]:
    """Yield slices of axes that contain at most `count` entries, or one."""
    if not sizes:
        yield ()
        return
    *rest, size = sizes
    for head in _places(rest, max(1, count // max(size, 1))):
        for one in _slices(size, count):
            yield (*head, one)


def _slices(size: int, most: int) -> Iterator[slice]:
    """Yield slices of an axis of at most `most` entries, which differ by at most one entry."""
    count = -(-size // most)
    for k in range(count):
        yield slice(k * size // count, (k + 1) * size // count)

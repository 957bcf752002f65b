"""Products with the eigenvectors of an axis.

Where these are even and odd, the values are added to and subtracted from their mirror images first,
and each half is multiplied by a matrix of half the size: half the operations.

Matrices of up to 128 rows multiply by a kernel of the backend (``ps_modes.h``), whose result has
the same bits for any number of threads. Larger ones multiply parts of 16 MB by the threads of the
BLAS of NumPy, which has twice the speed with them. The target can be the source.
"""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._errors import raise_for_status
from .._runtime import backends
from ._modes import Block, Modes

Array = NDArray[Any]

_MOST = 128  # rows of a matrix for the kernel
_TOGETHER = 1 << 21  # values of a part for the BLAS


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
        self._is_small = len(self._blocks[0].forward) <= _MOST
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
        """Write the amplitudes of values along an axis, -3 .. -1, of two to four axes.

        `source` has any strides; `target` is contiguous and can be `source`.
        """
        self._run(source, target, axis, threads, is_backward=False)

    def backward(self, source: Array, target: Array, axis: int, threads: int = 1) -> None:
        """Write the values of amplitudes along an axis, -3 .. -1, of two to four axes.

        `source` is contiguous; `target` has any strides and can be `source`.
        """
        self._run(source, target, axis, threads, is_backward=True)

    def _run(
        self, source: Array, target: Array, axis: int, threads: int, *, is_backward: bool
    ) -> None:
        """Multiply real numbers, or real and imaginary parts."""
        if source.dtype.kind != "c":
            pairs = [(source, target)]
        elif axis < -1 and all(a.strides[-1] == a.itemsize for a in (source, target)):
            real = self._blocks[0].forward.dtype
            pairs = [(source.view(real), target.view(real))]
        else:
            pairs = [(source.real, target.real), (source.imag, target.imag)]
        for values, products in pairs:
            if self._is_small:
                self._by_kernel(values, products, axis, threads, is_backward)
            else:
                self._by_blas(values, products, axis, is_backward)

    def _by_kernel(
        self, source: Array, target: Array, axis: int, threads: int, is_backward: bool
    ) -> None:
        """Multiply by the kernel of the backend."""
        backend = backends.require("cpu")
        even, *odd = (block.backward if is_backward else block.forward for block in self._blocks)
        status = backend.modes(
            *(is_backward, even, odd[0] if odd else None),
            *(_four_axes(source, axis), _four_axes(target, axis), threads),
        )
        raise_for_status(status, backend.STATUS, "FastPoisson")

    def _by_blas(self, source: Array, target: Array, axis: int, is_backward: bool) -> None:
        """Multiply by the BLAS, in parts whose copies take little memory."""
        if target.strides[-1] != target.itemsize:  # a part of complex numbers
            whole = np.ascontiguousarray(source)
            self._by_blas(whole, whole, axis, is_backward)
            target[...] = whole
            return
        along = max(axis, -2)
        if axis == -3:
            source, target = source.swapaxes(-3, -2), target.swapaxes(-3, -2)
        multiply = self._backward if is_backward else self._forward
        for place in _parts(source.shape, along, max(1, _TOGETHER // self._size)):
            multiply(source[place], target[place], along)

    def _forward(self, source: Array, target: Array, along: int) -> None:
        """Write the amplitudes of a part."""
        scratch = self._take(source.size)
        if len(self._blocks) == 1:
            values = scratch[: source.size].reshape(source.shape)
            values[...] = source
            _multiply(self._blocks[0].forward, values, target, along)
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
                _multiply(block.forward, half, part, along)
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
            _multiply(matrix, part, out, along)
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


def _four_axes(a: Array, axis: int) -> Array:
    """Return a view whose axis 2 is that of the vectors: axes of a batch, vectors, and more."""
    if axis != -2:
        a = a.swapaxes(axis, -2)
    return a[(None,) * (4 - a.ndim)]


def _multiply(matrix: Array, source: Array, target: Array, along: int) -> None:
    """Call the BLAS of NumPy for vectors along the last axis (-1) or the one before."""
    if along == -1:
        np.matmul(source, matrix.T, out=target)
    else:
        np.matmul(matrix, source, out=target)


def _part(axis: int, start: int, count: int) -> tuple[Any, ...]:
    """Return the index of consecutive entries along an axis, counted from the end."""
    return (..., slice(start, start + count), *(slice(None),) * (-1 - axis))


def _parts(shape: tuple[int, ...], along: int, most: int) -> Iterator[tuple[slice, ...]]:
    """Yield the indices of parts of at most `most` vectors along an axis, -2 or -1."""
    others, whole = shape[-3 - along], slice(None)
    for head in _places(shape[:-2], max(1, most // max(1, others))):
        for one in _slices(others, most):
            yield (*head, one, whole) if along == -1 else (*head, whole, one)


def _places(sizes: Sequence[int], most: int) -> Iterator[tuple[slice, ...]]:
    """Yield slices of axes of at most `most` entries."""
    if not sizes:
        yield ()
        return
    *rest, size = sizes
    for head in _places(rest, max(1, most // max(1, size))):
        for one in _slices(size, most):
            yield (*head, one)


def _slices(size: int, most: int) -> Iterator[slice]:
    """Yield slices of an axis of at most `most` entries, which differ by at most one entry."""
    count = -(-size // most)
    for k in range(count):
        yield slice(k * size // count, (k + 1) * size // count)

r"""The solution on the CPU: transforms by SciPy, lines by the factored matrices.

Work array: one field, whose rows are padded where their length in bytes is a multiple of 4096.
Transforms along the axes other than the last one read columns. In rows of such a length, the
entries of a column compete for few places of the cache: a DST-II along the first axis of 2048^2
takes 57 ms in float64, and 18 ms in padded rows (AMD EPYC, one thread).

Words moved per unknown in two dimensions: 2 for the copy into the work array, 2 for each transform,
2 and 5 words of factors for the lines, 2 for the copy out; 15 in all.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._extras import extra_module
from .._runtime import backends
from ..tridiagonal import factor_tridiagonal
from ._axes import Axis

__all__ = ["HostPoisson"]

Array = NDArray[Any]

_SERIAL_BELOW = 1 << 16  # unknowns: below, starting threads costs more than they save
_PADDING = 128  # bytes
_CRITICAL = 4096  # bytes: rows of a multiple of this length are padded


class HostPoisson:
    """Transforms and factors for one grid.

    Parameters
    ----------
    axes : sequence of Axis
        In the order of the array: x last.
    dtype : dtype
        Of the solution.
    threads : int
        0 leaves the choice to the backend.
    """

    def __init__(self, axes: Sequence[Axis], dtype: np.dtype, threads: int) -> None:
        self._fft = extra_module("scipy.fft", "poisson")
        self._axes, self._dtype = tuple(axes), dtype
        self._real = np.empty(0, dtype).real.dtype
        self._shape = tuple(axis.count for axis in axes)
        backend = backends.require("cpu")
        most = threads or backend.default_threads()
        self.threads = 1 if not threads and prod(self._shape) < _SERIAL_BELOW else most
        cosines = [k for k, axis in enumerate(axes[:-1]) if not axis.is_periodic]
        waves = [k for k, axis in enumerate(axes[:-1]) if axis.is_periodic]
        # The axis of a real transform to half the waves comes first among the periodic ones.
        self._order = [*cosines, *reversed(waves)]
        self._half = waves[-1] if waves and dtype.kind == "f" else None
        self._is_complex = bool(waves) or dtype.kind == "c"
        self.is_singular = all(axis.has_null_vector for axis in axes)
        self._factor = self._factored()
        self._spare: list[Array] = []

    @property
    def nbytes(self) -> int:
        """Size of the factors in bytes."""
        return self._factor.nbytes

    def solve(self, f: Array, sides: Mapping[tuple[int, int], Array], result: Array) -> float:
        """Solve, and write the unknowns to `result`.

        Parameters
        ----------
        f : ndarray
            Right side; broadcasts to the shape of the solution.
        sides : mapping of (axis, end) to ndarray
            What each side adds to the rows of the unknowns next to it.
        result : ndarray
            The solution. Values on Dirichlet nodes are not written.

        Returns
        -------
        defect : float
            In a singular case the mean that was subtracted from the right side, divided by the
            root mean square of the right side; otherwise 0.
        """
        inner = tuple(axis.unknowns for axis in self._axes)
        work = self._take()
        work[...] = np.broadcast_to(f, result.shape)[inner]
        for (axis, end), values in sides.items():
            work[(slice(None),) * axis + (-end,)] += values
        scale = _root_mean_square(work) if self.is_singular else 0.0
        defect = 0.0
        field = self._forward(work)
        if self.is_singular:
            defect = self._subtract_mean(field)
        lines = field.view(self._real).reshape(*field.shape, 2) if self._is_complex else field
        self._factor.solve(lines, out=lines, threads=self.threads)
        if self.is_singular:
            self._subtract_mean(field)
        result[inner] = self._backward(field)
        self._spare.append(work)
        return defect / scale if defect else 0.0

    def _factored(self) -> Any:
        """Factor one matrix for each combination of waves."""
        *others, last = self._axes
        lower, diag, upper = last.rows
        ndim = len(self._axes)
        for k, axis in enumerate(others):
            count = axis.count // 2 + 1 if k == self._half else None
            waves = axis.eigenvalues(count)
            diag = diag + waves.reshape((-1,) + (1,) * (ndim - 1 - k))
        diag = np.array(diag)
        if self.is_singular:
            # The first matrix A has the null vector 1 and the left null vector v of the volumes.
            # If v b = 0, the solution of (A + s e e^T) x = b, e = (1, 0, ...), s != 0, has
            # x[0] = 0 and satisfies A x = b.
            first = (0,) * ndim
            diag[first] += diag[first] or -1.0
        operands = [np.asarray(a, self._real) for a in (lower, diag, upper)]
        if self._is_complex:  # real and imaginary part are two right sides of one matrix
            operands = [a[..., None] for a in operands]
        return factor_tridiagonal(
            *operands,
            axis=-2 if self._is_complex else -1,
            periodic=last.is_periodic,
            pivot=False,
            threads=self.threads,
        )

    def _take(self) -> Array:
        """Return a work array; calls in several threads get different ones."""
        try:
            return self._spare.pop()
        except IndexError:
            *others, row = self._shape
            size = self._dtype.itemsize
            padded = row + (_PADDING // size if row * size % _CRITICAL == 0 else 0)
            return np.empty((*others, padded), self._dtype)[..., :row]

    def _forward(self, work: Array) -> Array:
        field = work
        for k in self._order:
            field = self._along(k, field, backward=False)
        return field

    def _backward(self, field: Array) -> Array:
        for k in reversed(self._order):
            field = self._along(k, field, backward=True)
        return field

    def _along(self, k: int, field: Array, *, backward: bool) -> Array:
        """Transform along an axis; the array given can be overwritten."""
        name, kind = self._axes[k].transform
        options: dict[str, Any] = {"axis": k, "workers": self.threads, "overwrite_x": True}
        prefix = "i" if backward else ""
        if kind:
            transform: Callable[..., Array] = getattr(self._fft, prefix + name)
            return transform(field, kind, **options)
        if k != self._half:
            return getattr(self._fft, prefix + "fft")(field, **options)
        if backward:
            return self._fft.irfft(field, self._axes[k].count, **options)
        return self._fft.rfft(field, **options)

    def _subtract_mean(self, field: Array) -> float:
        """Make the mean of a transformed field zero; return the magnitude of the old mean."""
        volumes = self._axes[-1].volumes
        first = (0,) * (len(self._axes) - 1)
        total = volumes @ field[first] / volumes.sum()
        field[first] -= total
        return float(abs(total)) / self._gain

    @property
    def _gain(self) -> float:
        """What the transforms make of the constant 1."""
        gain = 1.0
        for axis in self._axes[:-1]:
            name, _ = axis.transform
            gain *= axis.intervals if name == "fft" else 2 * axis.intervals
        return gain


def _root_mean_square(a: Array) -> float:
    axes = list(range(a.ndim))
    total = np.einsum(a.real, axes, a.real, axes, [])
    if a.dtype.kind == "c":
        total = total + np.einsum(a.imag, axes, a.imag, axes, [])
    return sqrt(float(total) / a.size)

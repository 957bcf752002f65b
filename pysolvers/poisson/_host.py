r"""The solution on the CPU: transforms by SciPy, lines by the factored matrices.

With f the right side less the contributions of the sides, and A the rows along x,

    f^ = T f,    (A + lambda[k]) u^[k] = f^[k] for each combination k of waves,    u = inverse T u^

where T transforms all axes but x, and lambda[k] is the sum of the eigenvalues along these axes
(Hockney 1965). The matrices are made from their off-diagonals and row sums: the row sums are
lambda[k] and what the rows next to Dirichlet sides lose to these, known without rounding errors,
while the main diagonal loses lambda[k] where the spacing of x is small beside that of the other
axes. The factors then have relative errors of a few eps for any ratio of the spacings
(`pysolvers.RowSums`).

If all sides are Neumann or periodic, the matrix A of lambda = 0 has the null vector 1 and the left
null vector v of the volumes. If v b = 0, the solution of (A + s e e^T) x = b, e = (1, 0, ...),
s != 0, has x[0] = 0 and satisfies A x = b. s is the diagonal entry of this row: the rounding errors
of v b then change x by no more than those of the other rows do, in any unit of length.

Words moved per unknown in two dimensions: 2 for each transform, 2 and 3 words of factors for the
lines; 9 in all, and 11 if a side has values other than zero. Operations: 5 log2(n) for the two
transforms and 5 for the lines.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from math import isfinite, prod, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._extras import extra_module
from .._row_sums import RowSums
from .._runtime import backends
from .._runtime.fp_mode import in_default_fp_mode
from ..distributed import Group, Slab
from ..distributed._group import ONE_PROCESS
from ..factor import factor_tridiagonal
from ._axes import wave_sums
from ._columns import transform_columns

Array = NDArray[Any]

_SERIAL_BELOW = 1 << 18  # unknowns: below, starting threads costs more than they save


class HostPoisson:
    """Transforms and factors for one grid.

    Parameters
    ----------
    axes : sequence of Axis
        In the order of the array; the lines lie along the last one.
    dtype : dtype
        Of the solution.
    threads : int
        0 leaves the choice to the backend.
    group : Group, optional
        Ranks; if there are several, they hold parts of the last axis, which is an `AxisPart`.
    """

    def __init__(
        self,
        axes: Sequence[Any],
        dtype: np.dtype,
        threads: int,
        group: Group = ONE_PROCESS,
    ) -> None:
        self._group = group
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
        self._spare: list[tuple[Array, Array]] = []

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make the solver again: the factors lie in memory of the backend."""
        return HostPoisson, (self._axes, self._dtype, self.threads, self._group)

    @property
    def nbytes(self) -> int:
        """Size of the factors in bytes."""
        return self._factor.nbytes

    @in_default_fp_mode
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
        source = np.broadcast_to(f, result.shape)[inner]
        work, field = self._take()
        if sides or not self._order or source.dtype != self._dtype:
            work[...] = source
            source = work
            for (axis, end), values in sides.items():
                work[(slice(None),) * axis + (-end,)] += values
        scale = self._root_mean_square(source) if self.is_singular else 0.0
        defect = 0.0
        self._forward(source, work, field)
        if self.is_singular:
            defect = self._subtract_mean(field)
        lines = field.view(self._real).reshape(*field.shape, 2) if self._is_complex else field
        self._factor.solve(lines, out=lines, threads=self.threads)
        if self.is_singular:
            self._subtract_mean(field)
        self._backward(field, work, result[inner])
        self._spare.append((work, field))
        return defect / scale if scale else 0.0

    @in_default_fp_mode
    def transform(self, field: Array) -> None:
        """Replace real values at the unknowns by their waves; no axis may be periodic."""
        self._forward(field, field, field)

    @in_default_fp_mode
    def solve_lines(self, field: Array, out: Array) -> None:
        """Solve the lines of all waves of a field."""
        self._factor.solve(field, out=out, threads=self.threads)

    @in_default_fp_mode
    def transform_back(self, field: Array, result: Array) -> None:
        """Write the values whose waves `field` contains to `result`; changes `field`."""
        self._backward(field, field, result)

    @in_default_fp_mode
    def _factored(self) -> Any:
        """Factor one matrix for each combination of waves."""
        *others, last = self._axes
        lower, _, upper = last.rows
        waves = [
            axis.eigenvalues(axis.count // 2 + 1 if k == self._half else None)
            for k, axis in enumerate(others)
        ]
        is_first = self._group.rank == 0
        sums = wave_sums(last, waves, is_singular=self.is_singular, is_first=is_first)
        sums = np.broadcast_to(sums, (*sums.shape[:-1], last.count))
        operands = [np.asarray(a, self._real) for a in (lower, sums, upper)]
        if self._is_complex:  # real and imaginary part are two right sides of one matrix
            operands = [a[..., None] for a in operands]
        axis = -2 if self._is_complex else -1
        options: dict[str, Any] = {"rows": last.count, "periodic": last.is_periodic}
        if self._group.size > 1:
            options |= {"group": self._group, "split": Slab(axis)}
        lower, sums, upper = operands
        form = RowSums(sums, check_signs=False)
        return factor_tridiagonal(lower, form, upper, axis=axis, threads=self.threads, **options)

    def _take(self) -> tuple[Array, Array]:
        """Return work arrays for values and for waves; calls in several threads get their own.

        They are one array, unless real values have complex waves.
        """
        try:
            return self._spare.pop()
        except IndexError:
            work = np.empty(self._shape, self._dtype)
        if self._half is None:
            return work, work
        shape = list(self._shape)
        shape[self._half] = shape[self._half] // 2 + 1
        return work, np.empty(shape, np.result_type(self._dtype, np.complex64))

    def _forward(self, source: Array, work: Array, field: Array) -> None:
        """Transform `source` to the waves in `field`; changes `work`, which can be `source`."""
        wave = False
        for k in self._order:
            wave = wave or k == self._half
            target = field if wave else work
            self._along(k, source, target, backward=False)
            source = target

    def _backward(self, field: Array, work: Array, result: Array) -> None:
        """Transform the waves in `field` to `result`; changes `field` and `work`."""
        source = field
        for k in reversed(self._order):
            target = work if source is work or k == self._half else field
            if k == self._order[0]:
                target = result
            self._along(k, source, target, backward=True)
            source = target
        if not self._order:
            result[...] = field

    def _along(self, k: int, source: Array, target: Array, *, backward: bool) -> None:
        """Transform along an axis."""
        name, kind = self._axes[k].transform
        prefix = "i" if backward else ""
        options: dict[str, Any] = {"axis": 0, "overwrite_x": True}
        if kind:
            options["type"] = kind
        elif k != self._half:
            name = "fft"
        else:
            name = "rfft"
            if backward:
                options["n"] = self._axes[k].count
        transform = partial(getattr(self._fft, prefix + name), **options)
        transform_columns(transform, source, target, k, source.dtype, self.threads)

    def _subtract_mean(self, field: Array) -> float:
        """Make the mean of a transformed field zero; return the magnitude of the old mean."""
        volumes = self._axes[-1].volumes
        first = (0,) * (len(self._axes) - 1)
        total = self._sum((volumes / self._sum(volumes.sum())) @ field[first])
        field[first] -= total
        return float(abs(total)) / self._gain

    def _root_mean_square(self, a: Array) -> float:
        """Return the root mean square over all ranks, also where squares overflow or underflow."""
        limits = np.finfo(self._real)
        count = self._sum(a.size)
        square = self._sum(_sum_of_squares(a)) / count
        if limits.tiny / limits.eps <= square <= limits.max:
            return sqrt(square)
        largest = float(self._of_ranks(np.abs(a).max()).max())
        if largest == 0 or not isfinite(largest):
            return largest
        return largest * sqrt(self._sum(_sum_of_squares(a / a.dtype.type(largest))) / count)

    def _sum(self, value: Any) -> Any:
        """Return the sum over all ranks."""
        return value if self._group.size == 1 else self._of_ranks(value).sum()

    def _of_ranks(self, value: Any) -> Array:
        """Return the values of all ranks."""
        return self._group.allgather("FastPoisson", np.array(value))

    @property
    def _gain(self) -> float:
        """What the transforms make of the constant 1."""
        gain = 1.0
        for axis in self._axes[:-1]:
            name, _ = axis.transform
            gain *= axis.intervals if name == "fft" else 2 * axis.intervals
        return gain


def _sum_of_squares(a: Array) -> float:
    """Return the sum of the squared magnitudes, without an array of them."""
    axes = list(range(a.ndim))
    total = np.einsum(a.real, axes, a.real, axes, [])
    if a.dtype.kind == "c":
        total = total + np.einsum(a.imag, axes, a.imag, axes, [])
    return float(total)

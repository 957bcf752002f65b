r"""The solution on the CPU: transforms by SciPy, products with eigenvectors, lines by factors.

With f the right side less the contributions of the sides, A the rows along the axis of the lines,
and c the number `helmholtz`,

    f^ = T f,    (A + lambda[k] - c) u^[k] = f^[k] for each combination k of waves,    u = T^-1 u^

where T transforms all other axes, and lambda[k] is the sum of the eigenvalues along these axes
(Hockney 1965). Waves are sines, cosines or exponentials, which T finds by SciPy's transforms or, if
there are few of them, by a matrix product; or the eigenvectors of any rows (`_modes`), which T
finds by a matrix product (Lynch, Rice and Thomas 1964). Without lines f^ is divided by lambda - c.

The matrices of the lines are made from their off-diagonals and row sums: the row sums are
lambda[k] - c and what the rows next to Dirichlet and Robin sides lose to these, known without
rounding errors, while the main diagonal loses lambda[k] where the spacing of the lines is small
compared with that of the other axes. The factors then have relative errors of a few eps for any
ratio of the spacings (`pysolvers.RowSums`). This needs row sums of one sign, that is, c >= 0.

If all sides are Neumann or periodic and c = 0, the matrix A of lambda = 0 has the null vector 1 and
the left null vector v of the volumes. If v b = 0, the solution of (A + s e e^T) x = b, with a unit
vector e and s != 0, has e^T x = 0 and satisfies A x = b. s is the diagonal entry of the row of e,
which is that of the strongest couplings: the rounding errors of v b then change x by no more than
those of the other rows do, in any unit of length.

Fields have a leading axis of the batch, of length 1 if there is none.

Words moved per unknown in two dimensions: 2 for each transform, 2 and 3 words of factors for the
lines; 9 in all, and 11 if a side has values other than zero. Operations: 5 log2(n) for the two
transforms, or 4 n for the two products, and 5 for the lines.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from math import isfinite, prod, sqrt
from typing import Any, NamedTuple

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
from ._columns import share, transform_columns, transform_rows
from ._methods import check_distance
from ._products import Product

Array = NDArray[Any]

_IN_CACHE = 1 << 19  # bytes of the fields of a batch that are solved together
_SERIAL_BELOW = 1 << 18  # unknowns: below, starting threads costs more than they save


class _Work(NamedTuple):
    """Work arrays of a call, with the shape (batch, unknowns); `waves` of complex waves."""

    values: Array
    waves: Array

    def fields(self, count: int) -> "_Work":
        """Return the arrays of the first fields."""
        if count == len(self.values):
            return self
        return _Work(self.values[:count], self.waves[:count])


class HostPoisson:
    """Transforms, products and factors for one grid.

    Parameters
    ----------
    axes : sequence of Axis
        In the order of the array.
    dtype : dtype
        Of the solution.
    threads : int
        0 leaves the choice to the backend.
    group : Group, optional
        Ranks; if there are several, they hold parts of the axis of the lines, which is an
        `AxisPart`.
    methods : sequence of str, optional
        For each axis ``"transform"``, ``"eigenvectors"`` or, at most once, ``"lines"``; by default
        lines along the last axis, and transforms.
    helmholtz : float, default: 0
        The number c; not negative if there are lines.
    """

    def __init__(
        self,
        axes: Sequence[Any],
        dtype: np.dtype,
        threads: int,
        group: Group = ONE_PROCESS,
        methods: Sequence[str] | None = None,
        helmholtz: float = 0.0,
    ) -> None:
        self._group = group
        self._fft = extra_module("scipy.fft", "poisson")
        self._axes, self._dtype = tuple(axes), dtype
        self._real = np.empty(0, dtype).real.dtype
        self._shape = tuple(axis.count for axis in axes)
        last = len(axes) - 1
        self._methods = tuple(methods or ["transform"] * last + ["lines"])
        self._helmholtz = helmholtz
        self._line = self._methods.index("lines") if "lines" in self._methods else None
        backend = backends.require("cpu")
        self._most = threads or backend.default_threads()
        self._is_free = not threads
        self.threads = self._count_of_threads(1)
        self._products = {
            k: Product(axes[k].modes, self._real)
            for k, name in enumerate(self._methods)
            if name == "eigenvectors"
        }
        others = [k for k, name in enumerate(self._methods) if name == "transform"]
        cosines = [k for k in others if not axes[k].is_periodic]
        waves = [k for k in others if axes[k].is_periodic]
        # The axis of a real transform to half the waves comes first among the periodic ones.
        self._order = [*self._products, *cosines, *reversed(waves)]
        self._half = waves[-1] if waves and dtype.kind == "f" else None
        self.is_singular = not helmholtz and all(axis.has_null_vector for axis in axes)
        sums = wave_sums(
            [self._eigenvalues(k) for k in range(len(axes))],
            None if self._line is None else axes[self._line],
            helmholtz=helmholtz,
            is_singular=self.is_singular,
        )
        self._factor = None if self._line is None else self._factored(sums)
        self._inverse = self._divisor(sums) if self._line is None else None
        self._spare: list[_Work] = []

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make the solver again: the factors lie in memory of the backend."""
        rest = self._group, self._methods, self._helmholtz
        return HostPoisson, (self._axes, self._dtype, self._most * (not self._is_free), *rest)

    @property
    def nbytes(self) -> int:
        """Size of the factors and the matrices of the products in bytes."""
        own = sum(product.nbytes for product in self._products.values())
        own += 0 if self._inverse is None else self._inverse.nbytes
        return own if self._factor is None else own + self._factor.nbytes

    @in_default_fp_mode
    def solve(self, f: Array, sides: Mapping[tuple[int, int], Array], result: Array) -> float:
        """Solve, and write the unknowns to `result`.

        Parameters
        ----------
        f : ndarray
            Right side; broadcasts to the shape of the solution.
        sides : mapping of (axis, end) to ndarray
            What each side adds to the rows of the unknowns next to it; broadcasts with the axes of
            the batch.
        result : ndarray
            The solution, with any number of leading axes of a batch. Values on Dirichlet nodes are
            not written.

        Returns
        -------
        defect : float
            In a singular case the mean that was subtracted from the right side, divided by the
            root mean square of the right side, the largest of the batch; otherwise 0.
        """
        ndim = len(self._axes)
        inner: tuple[Any, ...] = (..., *(axis.unknowns for axis in self._axes))
        batch, shape = result.shape[:-ndim], self._shape
        source = (f if f.shape == result.shape else np.broadcast_to(f, result.shape))[inner]
        target = result[inner]
        if not batch:
            added = {place: a[None] for place, a in sides.items()}
            return self._solve_part(source[None], added, target[None], self.threads)
        count = prod(batch)
        if not count:
            return 0.0
        additions = {
            place: np.broadcast_to(added, batch + added.shape[-(ndim - 1) :] if ndim > 1 else batch)
            for place, added in sides.items()
        }
        if len(batch) != 1:  # several axes of a batch have no common stride
            source = source.reshape(count, *shape)
            additions = {k: a.reshape(count, *a.shape[len(batch) :]) for k, a in additions.items()}
        own = target if len(batch) == 1 else np.empty((count, *shape), self._dtype)
        step = max(1, _IN_CACHE // (prod(shape) * self._dtype.itemsize))
        threads, defects = self._count_of_threads(count), [0.0]
        # Parts of a batch that stay in the cache, each by one thread.
        inside = threads if count <= step else 1

        def run(_: int, part: Any) -> None:
            added = {place: a[part] for place, a in additions.items()}
            defects.append(self._solve_part(source[part], added, own[part], inside))

        parts = deque((step, (slice(j, j + step),)) for j in range(0, count, step))
        # Ranks exchange in the order of the parts.
        share(lambda: run, parts, threads if self._group.size == 1 else 1)
        if len(batch) > 1:
            target[...] = own.reshape(target.shape)
        return max(defects)

    def _solve_part(
        self,
        source: Array,
        additions: Mapping[tuple[int, int], Array],
        result: Array,
        threads: int,
    ) -> float:
        """Solve for a batch with one axis; arguments and result as those of `solve`."""
        own = self._take(len(source))
        work = own.fields(len(source))
        if additions or not self._is_direct(source):
            work.values[...] = source
            for (axis, end), added in additions.items():
                work.values[(slice(None),) * (axis + 1) + (-end,)] += added
            source = work.values
        if not self.is_singular:
            field = self._forward(source, work, threads)
            self._solve_waves(field, field, threads)
            self._backward(field, work, result, threads)
            self._spare.append(own)
            return 0.0
        scales = [self._root_mean_square(one) for one in source]
        field = self._forward(source, work, threads)
        defects = self._subtract_mean(field)
        self._solve_waves(field, field, threads)
        self._subtract_mean(field)
        self._backward(field, work, result, threads)
        self._spare.append(own)
        return max(d / s if s else 0.0 for d, s in zip(defects.tolist(), scales, strict=True))

    @in_default_fp_mode
    def transform(self, field: Array) -> None:
        """Replace real values at the unknowns by their waves; no axis may be periodic."""
        whole = field[None]
        self._forward(whole, _Work(whole, whole), self.threads)

    @in_default_fp_mode
    def solve_lines(self, field: Array, out: Array) -> None:
        """Solve the lines of all waves of a field."""
        self._solve_waves(field[None], out[None], self.threads)

    @in_default_fp_mode
    def transform_back(self, field: Array, result: Array) -> None:
        """Write the values whose waves `field` contains to `result`; changes `field`."""
        whole = field[None]
        self._backward(whole, _Work(whole, whole), result[None], self.threads)

    def _count_of_threads(self, count: int) -> int:
        """Return the number of threads for a batch."""
        return 1 if self._is_free and count * prod(self._shape) < _SERIAL_BELOW else self._most

    def _eigenvalues(self, k: int) -> Array | None:
        """Return the eigenvalues of the waves along an axis; None for that of the lines."""
        axis = self._axes[k]
        if k == self._line:
            return None
        if k in self._products:
            return axis.modes.values
        return axis.eigenvalues(axis.count // 2 + 1 if k == self._half else None)

    def _divisor(self, sums: Array) -> Array:
        """Return the reciprocals of lambda - c; 0 for the wave that is constant."""
        check_distance(self._helmholtz, sums, self._dtype)
        #: Distance of c to the nearest eigenvalue.
        self.distance = float(np.abs(sums).min())
        if self.is_singular:
            sums[(0,) * sums.ndim] = np.inf
        return np.asarray(1 / sums, self._real)

    @in_default_fp_mode
    def _factored(self, sums: Array) -> Any:
        """Factor one matrix for each combination of waves."""
        assert self._line is not None
        axis, ndim = self._axes[self._line], len(self._axes)
        lower, _, upper = axis.rows
        shape = list(sums.shape)
        shape[self._line] = axis.count
        along = (-1,) + (1,) * (ndim - 1 - self._line)
        operands = [lower.reshape(along), np.broadcast_to(sums, shape), upper.reshape(along)]
        operands = [np.asarray(a, self._real) for a in operands]
        place = self._line - ndim
        options: dict[str, Any] = {"rows": axis.count, "periodic": axis.is_periodic}
        if self._group.size > 1:
            options |= {"group": self._group, "split": Slab(place)}
        lower, sums, upper = operands
        form = RowSums(sums, check_signs=False)
        return factor_tridiagonal(lower, form, upper, axis=place, threads=self._most, **options)

    def _take(self, count: int) -> _Work:
        """Return work arrays of at least `count` fields; calls in several threads get their own."""
        while self._spare:
            try:
                found = self._spare.pop()
            except IndexError:  # another thread took the last one
                break
            if len(found.values) >= count:
                return found
        values = np.empty((count, *self._shape), self._dtype)
        if self._half is None:
            return _Work(values, values)
        shape = list(values.shape)
        shape[self._half + 1] = self._shape[self._half] // 2 + 1
        return _Work(values, np.empty(shape, np.result_type(self._dtype, np.complex64)))

    def _is_direct(self, a: Array) -> bool:
        """Whether the first operation can read `a`."""
        return bool(self._order) and a.dtype == self._dtype and a.flags.aligned

    def _forward(self, source: Array, work: _Work, threads: int) -> Array:
        """Transform `source`, which can be `work.values`, and return the array of the waves."""
        for k in self._order:
            if k == self._half:
                target = work.waves
            elif not any(source is own for own in work):
                target = work.values
            else:
                target = source
            self._along(k, source, target, threads, backward=False)
            source = target
        return source

    def _backward(self, source: Array, work: _Work, result: Array, threads: int) -> None:
        """Transform waves, which are in an array of `work`, to `result`."""
        for k in reversed(self._order):
            if k == self._order[0]:
                target = result
            elif k == self._half:
                target = work.values
            else:
                target = source
            self._along(k, source, target, threads, backward=True)
            source = target
        if source is not result:
            result[...] = source

    def _along(
        self,
        k: int,
        source: Array,
        target: Array,
        threads: int,
        *,
        backward: bool,
    ) -> None:
        """Transform along an axis of the grid."""
        if k in self._products:
            product = self._products[k]
            multiply = product.backward if backward else product.forward
            multiply(source, target, k - len(self._axes), threads)
            return
        name, kind = self._axes[k].transform
        prefix = "i" if backward else ""
        options: dict[str, Any] = {}
        if kind:
            options["type"] = kind
        elif k != self._half:
            name = "fft"
        else:
            name = "rfft"
            if backward:
                options["n"] = self._axes[k].count
        function = getattr(self._fft, prefix + name)
        if k == len(self._axes) - 1:
            is_own = source is target or backward
            transform = partial(function, axis=-1, overwrite_x=is_own, **options)
            transform_rows(transform, source, target, threads)
            return
        transform = partial(function, axis=0, overwrite_x=True, **options)
        if len(source) > 1 and source.ndim == 3:
            transform_columns(transform, source, target, k + 1, source.dtype, threads)
            return
        for one, to in zip(source, target, strict=True):
            transform_columns(transform, one, to, k, source.dtype, threads)

    def _solve_waves(self, field: Array, out: Array, threads: int) -> None:
        """Solve the lines of all waves, or divide by lambda - c; `out` can be `field`."""
        if self._inverse is not None:
            np.multiply(field, self._inverse, out=out)
            return
        assert self._factor is not None
        if len(field) == 1:
            field, out = field[0], out[0]
        self._factor.solve(field, out=out, threads=threads)

    def _subtract_mean(self, field: Array) -> Array:
        """Make the means of a transformed batch zero; return the magnitudes of the old means."""
        first: list[Any] = [0] * len(self._axes)
        if self._line is None:
            place = (slice(None), *first)
            total = field[place].copy()
            field[place] = 0
        else:
            first[self._line] = slice(None)
            lines = field[(slice(None), *first)]
            # Not by the BLAS, whose threads wait for each other longer than these sums take.
            total = self._sum((lines * self._weights).sum(axis=-1))
            lines -= total[:, None]
        return np.asarray(np.abs(total) / self._gain)

    @cached_property
    def _weights(self) -> Array:
        """The volumes of the lines, divided by their sum."""
        assert self._line is not None
        volumes = self._axes[self._line].volumes
        return np.asarray(volumes / self._sum(volumes.sum()))

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
        if self._group.size == 1:
            return value
        return self._of_ranks(value).reshape(self._group.size, *np.shape(value)).sum(axis=0)

    def _of_ranks(self, value: Any) -> Array:
        """Return the values of all ranks."""
        return self._group.allgather("FastPoisson", np.array(value))

    @cached_property
    def _gain(self) -> float:
        """What the transforms make of the constant 1."""
        gain = 1.0
        for k, axis in enumerate(self._axes):
            if k in self._products:
                gain *= self._products[k].gain
            elif k != self._line:
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

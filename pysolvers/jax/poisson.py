r"""Direct solution of the Poisson equation, as a function of JAX.

With T the transforms along all axes but that of the lines, A the rows along this axis, lambda[k]
the sum of the eigenvalues of the waves k and c the number `helmholtz` (Hockney 1965),

    f^ = T f,    (A + lambda[k] - c) u^[k] = f^[k],    u = inverse T u^.

The eigenvectors of other axes than uniform ones are products with matrices (`poisson._modes`). Wave
k of a uniform axis is phi_k(j) = sin or cos (j + a) (k + b) pi / N, with the shifts a and b of
`poisson._axes`. Its sums over j or k are parts of

    sum_j v_j exp(-i pi (j + a) (k + b) / N)
        = exp(-i pi a (k + b) / N) sum_j [v_j exp(-i pi j b / N)] exp(-2 i pi j k / (2 N)),

one complex Fourier transform of length 2 N, which JAX has on every device. That is about 4 times
the work of a real transform of the same kind.

The lines are given by their conductances and row sums, so that no ratio of the spacings loses
lambda[k] (`_row_sums`).

Sides, rows and eigenvalues are those of `pysolvers.poisson`. The transforms are not: a program that
XLA compiles cannot call those of SciPy or cuFFT, and JAX has the complex one alone. The operator of
PyTorch has no numerics of its own: it calls the solver for arrays (`torch._poisson`).
"""

from typing import Any, NamedTuple

import jax
import numpy as np
from jax import numpy as jnp
from numpy.typing import NDArray

from .._axis import DIRICHLET
from ..poisson._axes import Axis, check_lengths, wave_sums
from ..poisson._differentiable import LinearPoisson
from ..poisson._methods import EIGENVECTORS, LINES, TRANSFORM, check_distance
from ._row_sums import solve_row_sums
from ._xp import XP

__all__ = ["FastPoisson"]


class _Waves(NamedTuple):
    """The waves of an axis that is not periodic."""

    shift_j: float  # a
    shift_k: float  # b
    intervals: int  # N
    is_sine: bool
    weights: NDArray[np.float64]  # of the values in a scalar product of waves
    squares: NDArray[np.float64]  # sum_j weights_j phi_k(j)^2

    @classmethod
    def of(cls, axis: Axis) -> "_Waves":
        """Return the waves of the rows of an axis."""
        sine = axis.ends[0] == DIRICHLET
        shift_j = float(sine) if axis.on_nodes else 0.5
        shift_k = 0.5 if axis.ends[0] != axis.ends[1] else float(sine)
        orders = np.arange(axis.count) + shift_k
        is_extreme = orders % axis.intervals == 0  # phi = 1 or -1 at all places
        squares = axis.intervals / np.where(is_extreme, 1, 2)
        assert axis.step is not None
        return cls(shift_j, shift_k, axis.intervals, sine, axis.volumes / axis.step, squares)

    def forward(self, values: jax.Array, axis: int) -> jax.Array:
        """Return the amplitudes of real values."""
        scale = _along(1 / self.squares, values, axis)
        weighted = values * _along(self.weights, values, axis)
        return self._sum(weighted, axis, self.shift_j, self.shift_k) * scale

    def backward(self, amplitudes: jax.Array, axis: int) -> jax.Array:
        """Return the values of real amplitudes."""
        return self._sum(amplitudes, axis, self.shift_k, self.shift_j)

    def _sum(self, values: jax.Array, axis: int, shift: float, other: float) -> jax.Array:
        """Return sum_j values_j phi((j + shift) (k + other))."""
        count = values.shape[axis]
        unit = -1j * np.pi / self.intervals
        numbers = np.arange(count)
        before = _along(np.exp(unit * numbers * other), values, axis)
        after = _along(np.exp(unit * shift * (numbers + other)), values, axis)
        waves = jnp.fft.fft(values * before, 2 * self.intervals, axis)
        found = jax.lax.slice_in_dim(waves, 0, count, axis=axis) * after
        return -found.imag if self.is_sine else found.real


class _Products(NamedTuple):
    """The eigenvectors of an axis: amplitudes of values, and values of amplitudes."""

    amplitudes: NDArray[np.float64]
    values: NDArray[np.float64]

    @classmethod
    def of(cls, axis: Axis) -> "_Products":
        """Return the eigenvectors of the rows of an axis."""
        return cls(axis.modes.forward, axis.modes.backward)

    def forward(self, values: jax.Array, axis: int) -> jax.Array:
        """Return the amplitudes of real values."""
        return _product(self.amplitudes, values, axis)

    def backward(self, values: jax.Array, axis: int) -> jax.Array:
        """Return the real values of amplitudes."""
        return _product(self.values, values, axis)


def _product(matrix: NDArray[np.float64], values: jax.Array, axis: int) -> jax.Array:
    """Multiply the vectors along an axis by a matrix, in the full precision of the values."""
    lines = jnp.moveaxis(values, axis, -1)
    product = jnp.matmul(lines, _real(matrix.T, values), precision=jax.lax.Precision.HIGHEST)
    return jnp.moveaxis(product, -1, axis)


def _along(numbers: NDArray[Any], like: jax.Array, axis: int) -> jax.Array:
    """Return numbers along an axis, in the precision of an array."""
    shape = [1] * like.ndim
    shape[axis] = -1
    kind = np.result_type(like.real.dtype, np.complex64 if numbers.dtype.kind == "c" else "f4")
    return jnp.asarray(numbers.reshape(shape).astype(kind))


class FastPoisson(LinearPoisson):
    r"""Direct solver of the Poisson and the Helmholtz equation, for functions of JAX.

    .. math:: u_{xx} + u_{yy} + u_{zz} - c\, u = f

    on an interval, a rectangle, a box, a cylinder or a sphere, with the equations and the numbers
    of `pysolvers.FastPoisson`.

    Parameters
    ----------
    shape, spacing, boundary, extent, helmholtz, grid, geometry, methods
        As in `pysolvers.FastPoisson`. Values of `boundary` are numbers or arrays, also arrays
        that JAX traces, but no functions.

    Attributes
    ----------
    shape : tuple of int
        Shape of the solution.
    is_singular : bool
        Whether all sides are Neumann or periodic and c = 0.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range; the message names the rule and
        the value.

    Notes
    -----
    The solution is linear in f and in the values of the sides, and a function of the number c, an
    argument of `solve`; it can be differentiated any number of times with respect to all of them.
    If all sides are Neumann or periodic and c = 0, the mean of the difference between f and the
    derivatives on the sides is subtracted without a report, and the mean of the solution is zero.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from pysolvers import Neumann
    >>> from pysolvers.jax import FastPoisson
    >>> solver = FastPoisson((9, 17), 1 / 8, boundary={"x-": 1.0, "x+": 0.0, "y": Neumann()})
    >>> u = jax.jit(solver.solve)(0.0)
    >>> print(bool(jnp.abs(u - (1 - jnp.linspace(0, 1, 17))).max() < 1e-5))
    True
    """

    _library = XP

    def _solve(self, right: jax.Array, helmholtz: jax.Array | None) -> jax.Array:
        check_lengths(self._axes, np.dtype(right.dtype))
        inner = (..., *(axis.unknowns for axis in self._axes))
        found = self._solve_unknowns(right[inner], helmholtz)
        return jnp.zeros_like(right).at[inner].set(found)

    def _solve_unknowns(self, right: jax.Array, helmholtz: jax.Array | None) -> jax.Array:
        """Transform, solve the lines and transform back; axes are counted from the end."""
        ndim = len(self._axes)
        axes = dict(zip(range(-ndim, 0), self._axes, strict=True))
        methods = dict(zip(axes, self._methods, strict=True))
        transforms: list[tuple[int, Any]] = [
            (k, _Products.of(axis)) for k, axis in axes.items() if methods[k] == EIGENVECTORS
        ]
        others = [k for k, method in methods.items() if method == TRANSFORM]
        transforms += [(k, _Waves.of(axes[k])) for k in others if not axes[k].is_periodic]
        field = right
        for k, waves in transforms:
            field = _of_parts(lambda a, w=waves, k=k: w.forward(a, k), field)
        half = None
        periodic = [k for k in others if axes[k].is_periodic]
        for k in periodic:
            if jnp.iscomplexobj(field):
                field = jnp.fft.fft(field, axis=k)
            else:
                half, field = k, jnp.fft.rfft(field, axis=k)
        eigenvalues = [
            None if method == LINES else self._eigenvalues(axes[k], method, k == half)
            for k, method in methods.items()
        ]
        field = self._solve_waves(field, eigenvalues, helmholtz)
        for k in reversed(periodic):
            if k == half:
                field = jnp.fft.irfft(field, right.shape[k], axis=k)
            else:
                field = jnp.fft.ifft(field, axis=k)
        for k, waves in reversed(transforms):
            field = _of_parts(lambda a, w=waves, k=k: w.backward(a, k), field)
        return field

    def _eigenvalues(self, axis: Axis, method: str, is_half: bool) -> NDArray[np.float64]:
        """Return the eigenvalues of the waves of an axis; `is_half`: of half the waves."""
        if method == EIGENVECTORS:
            return axis.modes.values
        return axis.eigenvalues(axis.count // 2 + 1 if is_half else None)

    def _solve_waves(
        self,
        field: jax.Array,
        eigenvalues: list[NDArray[np.float64] | None],
        helmholtz: jax.Array | None,
    ) -> jax.Array:
        """Solve the lines of all waves, or divide by lambda - c."""
        number = self.helmholtz if helmholtz is None else 0.0
        is_singular = self.is_singular and helmholtz is None
        place = self._methods.index(LINES) if LINES in self._methods else None
        line = None if place is None else self._axes[place]
        sums = wave_sums(eigenvalues, line, helmholtz=number, is_singular=is_singular)
        if place is not None:
            axis = place - len(self._axes)
            field, sums = jnp.moveaxis(field, axis, -1), np.moveaxis(sums, axis, -1)
            field = self._solve_lines(field, sums, self._axes[place], helmholtz, is_singular)
            return jnp.moveaxis(field, -1, axis)
        if helmholtz is not None:
            return field / (_real(sums, field) - helmholtz)
        if is_singular:
            sums[(0,) * sums.ndim] = np.inf
        else:
            check_distance(self.helmholtz, sums, np.dtype(field.real.dtype))
        return field * _real(1 / sums, field)

    def _solve_lines(
        self,
        field: jax.Array,
        sums: NDArray[np.float64],
        line: Axis,
        helmholtz: jax.Array | None,
        is_singular: bool,
    ) -> jax.Array:
        """Solve lines along the last axis from the row sums."""
        if is_singular:
            field = _without_mean(field, line, len(self._axes))
        # The coupling of unknown i to the next one; minus, as the sums are.
        conductance = -line.couplings[1:]
        conductance = conductance if line.is_periodic else conductance[:-1]
        scaled = _real(sums * line.volumes, field)
        if helmholtz is not None:
            scaled = scaled - helmholtz * _real(line.volumes, field)
        # The parts of complex waves are two batches: the vectors of the CPU then hold entries of
        # several matrices, and the rows of a line are contiguous. Side by side, as complex numbers
        # have them, they take 2 to 4 times as long.
        is_complex = jnp.iscomplexobj(field)
        parts = jnp.stack([field.real, field.imag]) if is_complex else field
        found = solve_row_sums(
            _real(conductance, field),
            scaled,
            parts * _real(line.volumes, field),
            axis=-1,
            periodic=line.is_periodic,
        )
        field = jax.lax.complex(found[0], found[1]) if is_complex else found
        return _without_mean(field, line, len(self._axes)) if is_singular else field


def _real(numbers: NDArray[np.float64], like: jax.Array) -> jax.Array:
    """Return numbers in the real precision of an array."""
    return jnp.asarray(numbers.astype(like.real.dtype))


def _without_mean(field: jax.Array, line: Axis, ndim: int) -> jax.Array:
    """Make the means of transformed fields zero; the lines are the last axis."""
    first = (..., *(0,) * (ndim - 1), slice(None))
    lines = field[first]
    weights = _real(line.volumes / line.volumes.sum(), field)
    return field.at[first].add(-(weights * lines).sum(-1, keepdims=True))


def _of_parts(transform: Any, field: jax.Array) -> jax.Array:
    """Transform real and imaginary part."""
    if not jnp.iscomplexobj(field):
        return transform(field)
    return jax.lax.complex(transform(field.real), transform(field.imag))

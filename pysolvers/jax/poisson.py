r"""Direct solution of the Poisson equation, as a function of JAX.

With T the transforms along all axes but x, A the rows along x and lambda[k] the sum of the
eigenvalues of the waves k (Hockney 1965),

    f^ = T f,    (A + lambda[k]) u^[k] = f^[k],    u = inverse T u^.

Wave k of a uniform axis is phi_k(j) = sin or cos (j + a) (k + b) pi / N, with the shifts a and b of
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

from ..poisson._axes import DIRICHLET, Axis, check_lengths, wave_sums
from ..poisson._differentiable import LinearPoisson
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


def _along(numbers: NDArray[Any], like: jax.Array, axis: int) -> jax.Array:
    """Return numbers along an axis, in the precision of an array."""
    shape = [1] * like.ndim
    shape[axis] = -1
    kind = np.result_type(like.real.dtype, np.complex64 if numbers.dtype.kind == "c" else "f4")
    return jnp.asarray(numbers.reshape(shape).astype(kind))


class FastPoisson(LinearPoisson):
    r"""Direct solver of the Poisson equation, for functions of JAX.

    .. math:: u_{xx} + u_{yy} + u_{zz} = f

    on an interval, a rectangle or a box, with the equations and the numbers of
    `pysolvers.FastPoisson`.

    Parameters
    ----------
    shape, spacing, boundary, extent, grid
        As in `pysolvers.FastPoisson`. Values of `boundary` are numbers or arrays, also arrays
        that JAX traces, but no functions.

    Attributes
    ----------
    shape : tuple of int
        Shape of the solution.
    is_singular : bool
        Whether all sides are Neumann or periodic.

    Raises
    ------
    TypeError, ValueError
        If a parameter has the wrong type or is out of range; the message names the rule and
        the value.

    Notes
    -----
    The solution is linear in f and in the values of the sides, so that it can be differentiated
    any number of times with respect to them. If all sides are Neumann or periodic, the mean of
    the difference between f and the derivatives on the sides is subtracted without a report, and
    the mean of the solution is zero.

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

    def _solve(self, right: jax.Array) -> jax.Array:
        check_lengths(self._axes, np.dtype(right.dtype))
        inner = tuple(axis.unknowns for axis in self._axes)
        return jnp.zeros_like(right).at[inner].set(self._solve_unknowns(right[inner]))

    def _solve_unknowns(self, right: jax.Array) -> jax.Array:
        """Transform, solve the lines and transform back."""
        others = list(enumerate(self._axes[:-1]))
        plain = [(k, _Waves.of(axis)) for k, axis in others if not axis.is_periodic]
        field = right
        for k, waves in plain:
            field = _of_parts(lambda a, w=waves, k=k: w.forward(a, k), field)
        half = None
        periodic = [k for k, axis in others if axis.is_periodic]
        for k in periodic:
            if jnp.iscomplexobj(field):
                field = jnp.fft.fft(field, axis=k)
            else:
                half, field = k, jnp.fft.rfft(field, axis=k)
        field = self._solve_lines(field, half)
        for k in reversed(periodic):
            if k == half:
                field = jnp.fft.irfft(field, right.shape[k], axis=k)
            else:
                field = jnp.fft.ifft(field, axis=k)
        for k, waves in plain:
            field = _of_parts(lambda a, w=waves, k=k: w.backward(a, k), field)
        return field

    def _solve_lines(self, field: jax.Array, half: int | None) -> jax.Array:
        """Solve the lines of all waves; `half`: axis with half the waves."""
        *others, last = self._axes
        waves = [
            axis.eigenvalues(field.shape[k] if k == half else None) for k, axis in enumerate(others)
        ]
        sums = wave_sums(last, waves, is_singular=self.is_singular)
        if self.is_singular:
            field = self._without_mean(field)
        conductance = -last.rows[2] * last.volumes
        conductance = conductance if last.is_periodic else conductance[:-1]

        def operand(numbers: NDArray[np.float64]) -> jax.Array:
            return jnp.asarray(numbers.astype(field.real.dtype))

        # The parts of complex waves are two batches: the vectors of the CPU then hold entries of
        # several matrices, and the rows of a line are contiguous. Side by side, as complex numbers
        # have them, they take 2 to 4 times as long.
        is_complex = jnp.iscomplexobj(field)
        parts = jnp.stack([field.real, field.imag]) if is_complex else field
        found = solve_row_sums(
            operand(conductance),
            operand(sums * last.volumes),
            parts * operand(last.volumes),
            axis=-1,
            periodic=last.is_periodic,
        )
        field = jax.lax.complex(found[0], found[1]) if is_complex else found
        return self._without_mean(field) if self.is_singular else field

    def _without_mean(self, field: jax.Array) -> jax.Array:
        """Make the mean of a transformed field zero."""
        volumes = self._axes[-1].volumes
        first = (0,) * (field.ndim - 1)
        line = field[first]
        weights = jnp.asarray((volumes / volumes.sum()).astype(line.real.dtype))
        return field.at[first].add(-(weights * line).sum())


def _of_parts(transform: Any, field: jax.Array) -> jax.Array:
    """Transform real and imaginary part."""
    if not jnp.iscomplexobj(field):
        return transform(field)
    return jax.lax.complex(transform(field.real), transform(field.imag))

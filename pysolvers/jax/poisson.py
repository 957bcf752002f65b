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
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from jax import numpy as jnp
from jax.typing import ArrayLike
from numpy.typing import NDArray

from .._boundary import sides_of
from .._domain import AXES
from .._options import check_choice
from ..poisson._axes import DIRICHLET, NEUMANN, Axis
from ..poisson._sides import condition_value, kind_of_condition
from ..poisson.fast import checked_shape, grid_axes
from .tridiagonal import solve_tridiagonal

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


class FastPoisson:
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

    def __init__(
        self,
        shape: int | Sequence[int],
        spacing: Any = None,
        *,
        boundary: Any,
        extent: Sequence[Sequence[float]] | None = None,
        grid: Literal["nodes", "cells"] = "nodes",
    ) -> None:
        check_choice("grid", grid, {"nodes": 0, "cells": 1})
        self.shape = checked_shape(shape)
        conditions = sides_of(boundary, AXES[: len(self.shape)])
        self._kinds = {side: kind_of_condition(side, given) for side, given in conditions.items()}
        self._axes = grid_axes(self.shape, spacing, extent, grid, self._kinds)
        self._values = self._checked_values(conditions)
        self.is_singular = all(axis.has_null_vector for axis in self._axes)

    def solve(self, f: ArrayLike, *, boundary: Mapping[str, Any] | None = None) -> jax.Array:
        """Solve for one right side.

        Parameters
        ----------
        f : array_like
            Right side, broadcastable to `shape`. Its precision is that of the solution.
        boundary : mapping, optional
            New conditions of some sides, of the same kinds, as in `pysolvers.FastPoisson.solve`.

        Returns
        -------
        u : jax.Array
            The solution.

        Raises
        ------
        TypeError
            If the kind of a side changes.
        """
        names = AXES[: len(self.shape)]
        changed = {} if boundary is None else sides_of(boundary, names, complete=False)
        values = self._values | self._checked_values(changed)
        right = jnp.asarray(f)
        dtype = jnp.result_type(right, *values.values())
        right = right.astype(dtype if dtype.kind in "fc" else jnp.result_type(float))
        inner = tuple(axis.unknowns for axis in self._axes)
        u = jnp.zeros(self.shape, right.dtype)
        found = self._solve_unknowns(self._with_sides(right, values, inner))
        return self._with_nodes(u.at[inner].set(found), values)

    def _checked_values(self, conditions: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values of conditions by side."""
        found = {}
        for side, condition in conditions.items():
            kind = kind_of_condition(side, condition)
            value = condition_value(condition)
            if kind != self._kinds[side]:
                raise TypeError(
                    f"boundary {side} is {self._kinds[side]} in this solver, but {condition!r} is "
                    f"{kind}: create another FastPoisson"
                )
            if callable(value):
                raise TypeError(f"boundary {side} must be a number or an array, not a function")
            if kind in (DIRICHLET, NEUMANN):
                found[side] = jnp.asarray(value)
        return found

    def _with_sides(
        self, f: jax.Array, values: Mapping[str, Any], inner: tuple[slice, ...]
    ) -> jax.Array:
        """Return the right side of the unknowns, the contributions of the sides included."""
        right = jnp.broadcast_to(f, self.shape)[inner]
        for k, axis in enumerate(self._axes):
            others = [other for other in self._axes if other is not axis]
            for end, sign in enumerate("-+"):
                if axis.name + sign in values:
                    value = values[axis.name + sign].astype(right.dtype)
                    whole = jnp.broadcast_to(value, [other.size for other in others])
                    part = whole[tuple(other.unknowns for other in others)]
                    right = right.at[_at(k, -end)].add(-axis.side_factor(end) * part)
        return right

    def _with_nodes(self, u: jax.Array, values: Mapping[str, Any]) -> jax.Array:
        """Return the solution with the values of Dirichlet nodes, in the order x, y, z."""
        for k, axis in reversed(list(enumerate(self._axes))):
            for end, sign in enumerate("-+"):
                if axis.on_nodes and axis.ends[end] == DIRICHLET:
                    u = u.at[_at(k, -end)].set(values[axis.name + sign].astype(u.dtype))
        return u

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
        lower, diag, upper = last.rows
        for k, axis in enumerate(others):
            waves = axis.eigenvalues(field.shape[k] if k == half else None)
            diag = diag + waves.reshape((-1,) + (1,) * (len(others) - k))
        diag = np.array(diag)
        if self.is_singular:
            # See `poisson._host`: the rows stay satisfied, and the first unknown is zero.
            diag[(0,) * field.ndim] += diag[(0,) * field.ndim] or -1.0
            field = self._without_mean(field)

        def operand(diagonal: np.ndarray) -> jax.Array:
            return jnp.asarray(diagonal.astype(field.real.dtype))[..., None]

        parts = jnp.stack([field.real, field.imag] if jnp.iscomplexobj(field) else [field], -1)
        found = solve_tridiagonal(
            operand(lower),
            operand(diag),
            operand(upper),
            parts,
            axis=-2,
            periodic=last.is_periodic,
            pivot=False,
        )
        is_complex = found.shape[-1] == 2
        field = jax.lax.complex(found[..., 0], found[..., 1]) if is_complex else found[..., 0]
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


def _at(axis: int, place: int) -> tuple[Any, ...]:
    """Return the index of one layer along an axis."""
    return (slice(None),) * axis + (place,)

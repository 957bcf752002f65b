"""Cubic splines in batches, as pytrees of JAX."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
from jax.tree_util import register_pytree_node_class
from jax.typing import ArrayLike

from ..spline._arguments import Conditions, Extrapolate
from ..spline._differentiable import Form, Pieces, coefficients_through, cubic_of
from ._xp import XP
from .tridiagonal import solve_tridiagonal

__all__ = ["CubicSpline", "PiecewisePolynomial"]


# Compiled as one program also outside of transformations, of which JAX compiles each operation.
_THROUGH = jax.jit(
    partial(coefficients_through, XP, partial(solve_tridiagonal, pivot=False)),
    static_argnames="kinds",
)


@register_pytree_node_class
class PiecewisePolynomial(Pieces):
    r"""Piecewise polynomials of a batch, as the methods of `CubicSpline` return them.

    On the piece :math:`x_i \le x < x_{i+1}` the polynomials are

    .. math:: p(x) = \sum_{q=0}^{k-1} c_q (x - x_i)^{k-1-q}.

    The first and the last piece extend to all x outside. It is a pytree, whose leaves are the
    knots and the coefficients.

    Attributes
    ----------
    extrapolate : bool or 'periodic'
        What `__call__` does outside the knots by default.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pysolvers.jax import CubicSpline
    >>> x = jnp.linspace(0.0, jnp.pi, 41)
    >>> slope = CubicSpline(x, jnp.sin(x)).derivative()
    >>> round(float(slope(0.0)), 4)
    1.0
    """

    _library = XP
    _at = jax.jit(Pieces._at, static_argnames=("order", "outside", "per_spline"))

    def _with(
        self, coefficients: Sequence[Any], extrapolate: Extrapolate, form: Form
    ) -> PiecewisePolynomial:
        return PiecewisePolynomial._of(self._knots, coefficients, self._axis, extrapolate, form)

    def tree_flatten(self) -> tuple[Any, Any]:
        """Return the leaves and the constants of the pytree."""
        return (self._knots, self._coefficients), (self._axis, self.extrapolate, self._form)

    @classmethod
    def tree_unflatten(cls, constants: Any, leaves: Any) -> PiecewisePolynomial:
        """Return an object with these leaves and constants."""
        return cls._of(*leaves, *constants)


@register_pytree_node_class
class CubicSpline(PiecewisePolynomial):
    r"""Cubic splines through the values of a batch, with derivatives, as a pytree of JAX.

    The slopes at the knots solve the tridiagonal systems of `pysolvers.CubicSpline`.

    Parameters
    ----------
    x : array_like, shape (n,), or a shape that broadcasts to that of `y`
        Knots: real, finite, strictly increasing, at least 2. One vector is shared by all splines;
        an array with as many axes as `y` has a vector for each spline along `axis`.
    y : array_like
        Values, real or complex, with n entries along `axis`. The other axes are those of the
        batch.
    axis : int, default: 0
        Axis of the knots in `y`.
    bc_type : str or pair, default: 'not-a-knot'
        Condition at the ends, as in `pysolvers.CubicSpline`: ``'not-a-knot'``, ``'clamped'``,
        ``'natural'`` or ``'periodic'``, or a pair of conditions of the first and the last knot,
        each a name other than ``'periodic'`` or a pair (order, value) of the order of a
        derivative, 1 or 2, and its values: an array of the shape of `y` without `axis`.
    extrapolate : bool or 'periodic', optional
        Whether points outside the knots have the value of the first or last piece (True), are NaN
        (False), or are shifted by periods. By default ``'periodic'`` for periodic splines,
        otherwise True.

    Attributes
    ----------
    extrapolate : bool or 'periodic'
        What `__call__` does outside the knots by default.

    Raises
    ------
    TypeError
        If an array has an unsupported dtype.
    ValueError
        If x is complex, shapes do not fit, `bc_type` or `extrapolate` is unknown, or a derivative
        that is given as a number or as an array of NumPy is not finite.

    See Also
    --------
    pysolvers.CubicSpline : The same splines for arrays outside of transformations, faster.

    Notes
    -----
    Splines can be made and evaluated under ``jit``, ``vmap``, ``grad``, ``jvp`` and ``scan``, and
    be arguments and results of such functions. Values, derivatives and integrals are
    differentiable any number of times with respect to y, the knots, the given derivatives and the
    points; the third derivative of a spline jumps at the knots. The derivative with respect to y
    takes one more tridiagonal solve.

    Compiled code cannot raise errors: that the knots increase, that x and y are finite, and that
    the values of a periodic spline are equal at both ends is not checked. A periodic spline whose
    ends differ goes through all values, with slopes and curvatures that are periodic.

    The pytree holds the knots and the coefficients, 4 words per knot and spline.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from pysolvers.jax import CubicSpline
    >>> x = jnp.linspace(0.0, 3.0, 31)
    >>> spline = CubicSpline(x, jnp.sin(x))
    >>> slope = jax.grad(spline)(1.0)
    >>> print(bool(jnp.abs(slope - jnp.cos(1.0)) < 1e-4))
    True
    >>> of_values = jax.grad(lambda y: CubicSpline(x, y).integrate(0.0, 3.0))(jnp.sin(x))
    >>> print(f"{of_values.sum():.3f}")
    3.000
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        axis: int = 0,
        bc_type: Conditions = "not-a-knot",
        extrapolate: Extrapolate | None = None,
    ) -> None:
        self._set(*cubic_of(XP, _THROUGH, x, y, axis, bc_type, extrapolate))

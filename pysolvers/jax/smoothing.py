"""Linear smoothers as functions of JAX; the formulas of smoothing/_differentiable.py."""

from functools import partial

import jax
from jax import numpy as jnp
from jax.typing import ArrayLike

from ..smoothing._differentiable import smooth
from ._xp import XP
from .blocks import solve_pentadiagonal
from .tridiagonal import solve_tridiagonal

__all__ = ["hodrick_prescott", "whittaker"]

_SOLVES = (partial(solve_tridiagonal, pivot=False), solve_pentadiagonal)


def whittaker(
    y: ArrayLike,
    lam: ArrayLike,
    *,
    order: int = 2,
    weights: ArrayLike | None = None,
    axis: int = -1,
) -> jax.Array:
    r"""Smooth many series by penalised differences, as a function of JAX.

    .. math:: (W + \lambda D^T D)\, z = W y .

    Parameters
    ----------
    y, lam, order, weights, axis
        As in `pysolvers.smoothing.whittaker`. That `lam` and the weights are not negative is not
        checked.

    Returns
    -------
    jax.Array, shape of `y`
        The smooth values z; NaN where the matrix is not positive definite.

    Raises
    ------
    TypeError
        If an operand is complex.
    ValueError
        If `order` is not 1 or 2, or shapes do not fit.

    Notes
    -----
    The function has derivatives of every order with respect to `y`, `lam` and `weights`, so that
    `lam` can be fitted, and can be used under all transformations of JAX. A value of `y` with the
    weight 0 has no influence.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from pysolvers.jax import whittaker
    >>> y = jnp.array([0.0, 0.0, 3.0, 0.0, 0.0])
    >>> print(whittaker(y, 1.0).round(2))
    [0.12 0.75 1.25 0.75 0.12]
    >>> slope = jax.grad(lambda lam: whittaker(y, lam)[2])(1.0)
    >>> print(f"{slope:.3f}")
    -0.344
    """
    _, z, place = smooth(XP, _SOLVES, {"y": y, "lam": lam, "weights": weights}, axis, order)
    return jnp.moveaxis(z, -1, place)


def hodrick_prescott(
    y: ArrayLike, lam: ArrayLike = 1600.0, *, axis: int = -1
) -> tuple[jax.Array, jax.Array]:
    r"""Split many series into cycle and trend, as a function of JAX.

    Parameters
    ----------
    y, lam, axis
        As in `pysolvers.smoothing.hodrick_prescott`.

    Returns
    -------
    cycle, trend : jax.Array, shape of `y`
        The trend is that of `whittaker` of order 2; the cycle is `y` minus the trend.

    Raises
    ------
    TypeError, ValueError
        As `whittaker`.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pysolvers.jax import hodrick_prescott
    >>> cycle, trend = hodrick_prescott(jnp.arange(5.0))
    >>> print(bool(jnp.abs(cycle).max() < 1e-2))
    True
    """
    values, z, place = smooth(XP, _SOLVES, {"y": y, "lam": lam}, axis, 2)
    return jnp.moveaxis(values - z, -1, place), jnp.moveaxis(z, -1, place)

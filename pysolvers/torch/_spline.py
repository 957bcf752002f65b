"""Cubic splines in batches, with gradients."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Tensor

from ..spline._arguments import Conditions, Extrapolate
from ..spline._differentiable import Form, Pieces, coefficients_through, cubic_of
from ._solve import solve_tridiagonal
from ._xp import XP

_THROUGH = partial(coefficients_through, XP, partial(solve_tridiagonal, pivot=False))


class PiecewisePolynomial(Pieces):
    r"""Piecewise polynomials of a batch, as the methods of `CubicSpline` return them.

    On the piece :math:`x_i \le x < x_{i+1}` the polynomials are

    .. math:: p(x) = \sum_{q=0}^{k-1} c_q (x - x_i)^{k-1-q}.

    The first and the last piece extend to all x outside.

    Attributes
    ----------
    extrapolate : bool or 'periodic'
        What `__call__` does outside the knots by default.

    Examples
    --------
    >>> import torch
    >>> from pysolvers.torch import CubicSpline
    >>> x = torch.linspace(0.0, torch.pi, 41)
    >>> slope = CubicSpline(x, torch.sin(x)).derivative()
    >>> round(float(slope(torch.tensor(0.0))), 4)
    1.0
    """

    _library = XP

    def _with(
        self, coefficients: Sequence[Any], extrapolate: Extrapolate, form: Form
    ) -> PiecewisePolynomial:
        return PiecewisePolynomial._of(self._knots, coefficients, self._axis, extrapolate, form)


class CubicSpline(PiecewisePolynomial):
    r"""Cubic splines through the values of a batch, with gradients.

    The slopes at the knots solve the tridiagonal systems of `pysolvers.CubicSpline`.

    Parameters
    ----------
    x : Tensor, shape (n,), or a shape that broadcasts to that of `y`
        Knots: real, finite, strictly increasing, at least 2. One vector is shared by all splines;
        a tensor with as many axes as `y` has a vector for each spline along `axis`.
    y : Tensor
        Values, real or complex, with n entries along `axis`. The other axes are those of the
        batch.
    axis : int, default: 0
        Axis of the knots in `y`.
    bc_type : str or pair, default: 'not-a-knot'
        Condition at the ends, as in `pysolvers.CubicSpline`: ``'not-a-knot'``, ``'clamped'``,
        ``'natural'`` or ``'periodic'``, or a pair of conditions of the first and the last knot,
        each a name other than ``'periodic'`` or a pair (order, value) of the order of a
        derivative, 1 or 2, and its values: a tensor of the shape of `y` without `axis`, or a
        number if there is no other axis.
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
        If x or y is not a tensor, or a tensor has an unsupported dtype.
    ValueError
        If x is complex, shapes do not fit, `bc_type` or `extrapolate` is unknown, or a derivative
        that is given as a number or as an array of NumPy is not finite.

    See Also
    --------
    pysolvers.CubicSpline : The same splines for arrays of any library, faster, without gradients.

    Notes
    -----
    Values, derivatives and integrals are differentiable any number of times, in reverse mode, with
    respect to y, the knots, the given derivatives and the points; the third derivative of a spline
    jumps at the knots. The gradient with respect to y takes one more tridiagonal solve. Splines can
    be made and evaluated inside `torch.compile`, `torch.vmap` and `torch.func.grad`.

    A call does not wait for a device: that the knots increase, that x and y are finite, and that
    the values of a periodic spline are equal at both ends is not checked. A periodic spline whose
    ends differ goes through all values, with slopes and curvatures that are periodic.

    The spline keeps the knots and the coefficients, 4 words per knot and spline.

    Examples
    --------
    >>> import torch
    >>> from pysolvers.torch import CubicSpline
    >>> x = torch.linspace(0.0, 3.0, 31)
    >>> y = torch.sin(x).requires_grad_()
    >>> integral = CubicSpline(x, y).integrate(0.0, 3.0)
    >>> integral.backward()
    >>> print(f"{integral:.3f} {y.grad.sum():.3f}")
    1.990 3.000
    """

    def __init__(
        self,
        x: Tensor,
        y: Tensor,
        axis: int = 0,
        bc_type: Conditions = "not-a-knot",
        extrapolate: Extrapolate | None = None,
    ) -> None:
        self._set(*cubic_of(XP, _THROUGH, x, y, axis, bc_type, extrapolate))

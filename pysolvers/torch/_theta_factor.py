"""Implicit steps with kept factors, with gradients; the formulas of _steps/differentiable.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .._checks import integer, require
from .._lines.factor import require_broadcast
from .._options import OnSingular
from .._row_sums import RowSums
from .._runtime.arrays import factor_axis
from .._steps.differentiable import steps_by_factor, theta_matrix
from ._factor import TridiagonalFactor
from ._operands import as_tensors, rows_last
from ._xp import XP


class ThetaFactor:
    r"""Factors of :math:`I - \theta\, dt\, A`, with gradients; see `factor_theta`.

    Attributes
    ----------
    factor : TridiagonalFactor
        The factors.
    dt : float or Tensor
        The argument of `factor_theta`.
    theta : float
        The argument of `factor_theta`.

    Examples
    --------
    >>> import torch
    >>> from pysolvers.torch import factor_theta
    >>> inner = torch.tensor([0.0, 1.0, 1.0, 0.0])  # the values at the ends stay
    >>> rod = factor_theta(inner, -2 * inner, inner, dt=0.1, theta=1.0)
    >>> rod.step(torch.tensor([1.0, 0.0, 0.0, 0.0]), count=1000).round(decimals=3)
    tensor([1.0000, 0.6670, 0.3330, 0.0000])
    """

    def __init__(
        self,
        factor: TridiagonalFactor,
        dt: Tensor | float,
        theta: float,
        where: Tensor | None = None,
    ) -> None:
        self.factor = factor
        self.dt = dt
        self.theta = theta
        #: The rows that are inside, the axis of the matrices last.
        self._inside = where

    def step(
        self,
        u: Tensor,
        source: Tensor | float | None = None,
        *,
        count: int = 1,
        axis: int | None = None,
    ) -> Tensor:
        """Make steps as `theta_step` makes them.

        Parameters
        ----------
        u : Tensor
            The values at the time t, of a shape as the right-hand sides of
            `TridiagonalFactor.solve`.
        source : Tensor or number, optional
            The source s, per time, the same in all steps; broadcastable with `u`.
        count : int, default: 1
            Number of steps.
        axis : int, optional
            Axis of the systems in the result, as in `TridiagonalFactor.solve`.

        Returns
        -------
        Tensor, shape of `u`, or of the matrices if `u` has one dimension
            The values at the time t + count dt.

        Raises
        ------
        TypeError
            If `u` is no tensor, or has a dtype that `theta_step` does not take.
        ValueError
            If the matrices do not broadcast to `u`, `source` does not, or `count` is less than 1.
        """
        steps = integer("count", count)
        require(steps >= 1, "count must be at least 1", count)
        factor = self.factor
        given: dict[str, Any] = {"u": u} if source is None else {"u": u, "source": source}
        tensors = as_tensors(given)
        kind = torch.promote_types(tensors["u"].dtype, factor.diag.dtype)
        values, added = tensors["u"].to(kind), tensors.get("source")
        shape = factor._rhs_shape(values, axis, "u")
        values = rows_last(values, shape).expand(*shape.batch, shape.rows)
        if added is not None:
            require_broadcast("ThetaFactor.step", "source", added, shape)
            added = rows_last(added.to(kind), shape)

        def repeat(advance: Callable[[Tensor], Tensor], first: Tensor) -> Tensor:
            """Advance once for each step."""
            for _ in range(steps):
                first = advance(first)
            return first

        x: Tensor = steps_by_factor(
            XP,
            lambda b: factor.solve(b, axis=-1),
            values,
            added,
            self._inside,
            dt=self.dt,
            theta=self.theta,
            repeat=repeat,
            beyond=torch.lerp,
        )
        return x.movedim(-1, shape.axis)


def factor_theta(
    lower: Tensor | complex,
    diag: Tensor | complex | RowSums,
    upper: Tensor | complex,
    *,
    dt: Tensor | float,
    theta: float = 0.5,
    axis: int = -1,
    rows: int | None = None,
    periodic: bool = False,
    pivot: bool | None = None,
    on_singular: OnSingular = "nan",
    where: Tensor | None = None,
) -> ThetaFactor:
    r"""Factor the matrices of `theta_step`, for many steps of :math:`u_t = A u + s`.

    Parameters
    ----------
    lower, diag, upper : Tensor or number, shapes that broadcast
        The diagonals of A, in 1 / time; `diag` can be `pysolvers.RowSums`. At least one tensor.
    dt : float or Tensor without axes
        Length of the steps; it can have a gradient.
    theta : float, default: 0.5
        Greater than 0 and at most 1; a number.
    axis, rows, periodic, pivot, on_singular, where
        As in `factor_tridiagonal`, for the matrices :math:`I - \theta\, dt\, A`.

    Returns
    -------
    ThetaFactor
        An object with the method ``step``.

    Raises
    ------
    TypeError, ValueError, SingularSystemError
        As `factor_tridiagonal`, and if `theta` is not in its range.

    See Also
    --------
    theta_step : One step.

    Notes
    -----
    A step is a solve with the kept factors and, with theta < 1, an extrapolation. It is
    differentiable with respect to every tensor, also `dt`; the reverse pass of each step solves
    with the same factors, transposed. The gradients outside `where` are those of the identity.

    Examples
    --------
    >>> import torch
    >>> from pysolvers.torch import factor_theta
    >>> k = torch.tensor(1.0, requires_grad=True)
    >>> rod = factor_theta(k, -2 * k, k, dt=0.1, rows=3)
    >>> end = rod.step(torch.tensor([0.0, 1.0, 0.0]), count=20)[1]
    >>> end.backward()
    >>> print(f"{float(end.detach()):.4f} {float(k.grad):.4f}")
    0.1554 -0.1852
    """
    found = theta_matrix(
        *(XP, lower, diag, upper, where),
        dt=dt,
        theta=theta,
        axis=axis,
        rows=rows,
        periodic=periodic,
    )
    factor = TridiagonalFactor(
        found.lower,
        found.diag,
        found.upper,
        axis=found.axis,
        rows=rows,
        periodic=periodic,
        pivot=pivot,
        on_singular=on_singular,
    )
    inside = found.inside
    if inside is not None:
        inside = inside.movedim(factor_axis(found.axis, inside.ndim)[0], -1)
    return ThetaFactor(factor, dt, float(theta), inside)

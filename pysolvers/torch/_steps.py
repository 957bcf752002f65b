"""Products and implicit steps as functions of PyTorch; the formulas of _steps/differentiable.py."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from .._row_sums import RowSums
from .._steps import differentiable
from .._steps.differentiable import require_theta
from ._operands import as_tensors
from ._row_sums import solve_row_sums
from ._solve import solve_tridiagonal
from ._theta import make_step, takes
from ._xp import XP


def tridiagonal_matvec(
    lower: Tensor | float,
    diag: Tensor | float | RowSums,
    upper: Tensor | float,
    x: Tensor | float,
    *,
    axis: int = -1,
    periodic: bool = False,
) -> Tensor:
    r"""Multiply batched tridiagonal matrices by vectors along one axis, with gradients.

    .. math:: y_i = l_i x_{i-1} + d_i x_i + u_i x_{i+1}, \quad 0 \le i < n.

    Parameters
    ----------
    lower, diag, upper, x : Tensor or number
        As in `pysolvers.tridiagonal_matvec`; `diag` can be `pysolvers.RowSums`.
    axis : int, default: -1
        Axis of the vectors.
    periodic : bool, default: False
        Whether ``lower[0]`` multiplies ``x[n - 1]`` and ``upper[n - 1]`` multiplies ``x[0]``.

    Returns
    -------
    Tensor, shape of the broadcast operands
        The products, by operations of PyTorch.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.torch.solve_tridiagonal`.

    Examples
    --------
    >>> import torch
    >>> from pysolvers.torch import tridiagonal_matvec
    >>> print(tridiagonal_matvec(-1.0, 2.0, -1.0, torch.tensor([1.0, 2.0, 4.0])))
    tensor([ 0., -1.,  6.])
    """
    return differentiable.matvec(XP, lower, diag, upper, x, axis=axis, periodic=periodic)


def residual(
    lower: Tensor | float,
    diag: Tensor | float | RowSums,
    upper: Tensor | float,
    x: Tensor | float,
    rhs: Tensor | float,
    *,
    axis: int = -1,
    periodic: bool = False,
) -> Tensor:
    r"""Return the residuals b - A x of batched tridiagonal systems, with gradients.

    Parameters
    ----------
    lower, diag, upper, x, rhs : Tensor or number
        As in `pysolvers.residual`.
    axis, periodic
        As in `tridiagonal_matvec`.

    Returns
    -------
    Tensor, shape of the broadcast operands
        The residuals.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.torch.solve_tridiagonal`.

    Examples
    --------
    >>> import torch
    >>> from pysolvers.torch import residual
    >>> b = torch.tensor([1.0, 0.0, 2.0])
    >>> print(residual(-1.0, 2.0, -1.0, torch.ones(3), b))
    tensor([0., 0., 1.])
    """
    return differentiable.residual(XP, lower, diag, upper, x, rhs, axis=axis, periodic=periodic)


def _until_same(advance: Callable[[Tensor], Tensor], first: Tensor, most: int) -> Tensor:
    """Advance until nothing changes, at most a number of times."""
    with torch.no_grad():
        for _ in range(most):
            found = advance(first)
            if torch.equal(found, first):
                break
            first = found
    return found


def theta_step(
    lower: Tensor | float,
    diag: Tensor | float | RowSums,
    upper: Tensor | float,
    u: Tensor | float,
    *,
    dt: Tensor | float,
    theta: float = 0.5,
    source: Tensor | float | None = None,
    axis: int = -1,
    periodic: bool = False,
    pivot: bool | None = None,
    where: Tensor | None = None,
    projected: Tensor | float | None = None,
) -> Tensor:
    r"""Make an implicit step of :math:`u_t = A u + s`, with gradients.

    .. math:: (I - \theta\, dt\, A)\, x = (I + (1 - \theta)\, dt\, A)\, u + dt\, s.

    Parameters
    ----------
    lower, diag, upper, u : Tensor or number
        As in `pysolvers.theta_step`.
    dt : float or Tensor without axes
        Length of the step; it can have a gradient.
    theta : float, default: 0.5
        Greater than 0 and at most 1; a number.
    source, axis, periodic, pivot, where
        As in `pysolvers.theta_step`.
    projected : Tensor or number, optional
        Lower bound of x, broadcastable with `u`, for real operands; see Notes.

    Returns
    -------
    Tensor, shape of the broadcast operands
        The values at the time t + dt; NaN in systems with a singular matrix.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.torch.solve_tridiagonal`, and if `theta` is not in its range.

    Notes
    -----
    `x` is differentiable with respect to every tensor, as of `pysolvers.torch.solve_tridiagonal`.
    A real step without `RowSums` and `where` is one call of `pysolvers.theta_step`, on a device
    only if `dt` is a number; its reverse pass is another such call, and products. Other steps also
    write the three diagonals of :math:`I - \theta\, dt\, A`, 3 words per unknown, none where all
    systems have one matrix. The gradients outside `where` are those of the identity.

    With `projected` the step solves the complementarity problem of `pysolvers.theta_step`, for rows
    in contact with the bound anywhere, by the primal-dual active set method ([1]_): solves, until
    the rows in contact do not change. The solution is that of the problem if :math:`I - \theta\,
    dt\, A` is an M-matrix. In contact the gradient is that of the bound, elsewhere that of the
    equations. The method looks at values: it is not possible under
    `torch.vmap`.

    References
    ----------
    .. [1] M. Hintermueller, K. Ito and K. Kunisch, "The primal-dual active set strategy as a
       semismooth Newton method", SIAM J. Optim. 13 (2002) 865-888.

    Examples
    --------
    >>> import torch
    >>> from pysolvers.torch import theta_step
    >>> inner = torch.tensor([0.0, 1.0, 1.0, 1.0, 0.0])
    >>> u = torch.tensor([0.0, 0.0, 0.0, 0.0, 4.0])
    >>> print(theta_step(inner, -2 * inner, inner, u, dt=1.0, theta=1))
    tensor([0.0000, 0.1905, 0.5714, 1.5238, 4.0000])
    """
    if where is None and projected is None and takes(dt, lower, diag, upper, u, source):
        require_theta(theta)
        named = {"lower": lower, "diag": diag, "upper": upper, "u": u}
        given = named if source is None else {**named, "source": source}
        options: dict[str, Any] = {"axis": axis, "periodic": periodic, "pivot": pivot}
        return make_step(as_tensors(given), dt, theta, **options)
    return differentiable.step(
        XP,
        partial(solve_tridiagonal, pivot=pivot),
        lower,
        diag,
        upper,
        u,
        dt=dt,
        theta=theta,
        source=source,
        axis=axis,
        periodic=periodic,
        where=where,
        projected=projected,
        repeat=_until_same,
    )


def implicit_diffusion(
    T: Tensor | float,
    K: Tensor | float,
    dz: Tensor | float,
    dt: Tensor | float,
    *,
    axis: int,
    flux_first: Tensor | float | None = None,
    flux_last: Tensor | float | None = None,
    value_first: Tensor | float | None = None,
    value_last: Tensor | float | None = None,
    source: Tensor | float | None = None,
    theta: float = 1,
    where: Tensor | None = None,
) -> Tensor:
    r"""Make an implicit step of diffusion between layers, with gradients.

    Parameters
    ----------
    T, K, dz : Tensor or number
        As in `pysolvers.implicit_diffusion`, which has the equations.
    dt : float or Tensor without axes
        Length of the step; it can have a gradient.
    axis, flux_first, flux_last, value_first, value_last, source, where
        As in `pysolvers.implicit_diffusion`.
    theta : float, default: 1
        Greater than 0 and at most 1; a number.

    Returns
    -------
    Tensor, shape of T and all that broadcasts with it
        The values at the time t + dt.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.implicit_diffusion`.

    Notes
    -----
    The rows are solved by `pysolvers.RowSums`, and the sum of dz T over a column is conserved to
    rounding.

    Examples
    --------
    >>> import torch
    >>> from pysolvers.torch import implicit_diffusion
    >>> T = implicit_diffusion(torch.tensor([3.0, 0.0, 0.0]), 1.0, 1.0, 1e6, axis=0)
    >>> print(T.round(decimals=3))
    tensor([1., 1., 1.])
    """
    return differentiable.diffusion(
        XP,
        solve_row_sums,
        T,
        K,
        dz,
        dt,
        axis=axis,
        flux_first=flux_first,
        flux_last=flux_last,
        value_first=value_first,
        value_last=value_last,
        source=source,
        theta=theta,
        where=where,
    )

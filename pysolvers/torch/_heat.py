"""A step of heat conduction by alternating directions, as a function of PyTorch.

The formulas are those of heat/_differentiable.py.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ..heat._differentiable import problem_of, step
from ._row_sums import solve_row_sums
from ._xp import XP


def heat_step(
    u: Tensor,
    *,
    dt: Tensor | float,
    spacing: Any,
    diffusivity: Any = 1.0,
    boundary: Any = 0.0,
    source: Tensor | float = 0.0,
) -> Tensor:
    r"""Advance heat conduction by one step of alternating directions, with gradients.

    .. math:: T_t = \nabla \cdot (k \nabla T) + q

    on a line, a rectangle or a box, by central differences on nodes that include the boundary.

    Parameters
    ----------
    u : Tensor, shape (nx,), (ny, nx) or (nz, ny, nx)
        Temperature at the beginning of the step. Batches: `torch.vmap`.
    dt : float or Tensor
        Time step; positive.
    spacing : float, sequence or mapping
        Distance between the nodes: one number for all axes, one for each axis in the order x, y,
        z, or a mapping with the keys ``"x"``, ``"y"``, ``"z"``.
    diffusivity : float, Tensor or mapping, default: 1
        Conductivity k, positive: a number, a tensor that broadcasts to the shape of `u`, or a
        mapping of axes to numbers. The flux between two nodes uses the harmonic mean of their
        values.
    boundary : Dirichlet, Neumann, Robin, 'periodic', number, Tensor or mapping, default: 0
        Boundary condition of all sides, or a mapping with the keys ``"x-"``, ``"x+"``, ``"y-"``,
        ... for one side or ``"x"``, ``"y"``, ``"z"`` for both sides of an axis, as in
        `pysolvers.HeatADI`. Values are numbers, or tensors over the nodes of the side; they are
        constant during the step, and replace those of `u` on Dirichlet sides.
    source : float or Tensor, default: 0
        Heat source q in the middle of the step, broadcastable to the shape of `u`.

    Returns
    -------
    Tensor
        Temperature at the end of the step: shape and dtype of `u`.

    Raises
    ------
    TypeError, ValueError
        If `u` is not a tensor of float32 or float64 with one to three axes, another argument is
        complex or an array of NumPy, a side is missing or unknown, the coefficient of a `Robin`
        side is not a number, a tensor does not broadcast to its place, or the spacing is not
        positive.

    See Also
    --------
    pysolvers.HeatADI : The same steps, faster, without gradients.

    Notes
    -----
    The step is that of Douglas and Gunn [1]_, the default of `pysolvers.HeatADI` in three
    dimensions. In two dimensions its solution is that of Peaceman and Rachford up to rounding
    errors, in one dimension that of Crank and Nicolson. The numbers are those of
    ``HeatADI(..., damped_start=False)`` up to rounding errors. All arguments but `spacing` can
    be differentiated, also the values within `boundary`.

    A constant in an insulated or periodic box keeps its bits for any k and dt, and the gradient of
    its heat is exactly the volumes of the nodes. Otherwise the rounding errors of two and three
    dimensions grow with the differences between neighbours times :math:`k \, dt / h^2`: the changes
    of the axes, which can be so large, cancel in the sum. In one dimension the step and its
    gradients with respect to `u`, `source` and `boundary` have errors of a few units in the last
    place for any dt. Gradients with respect to k and dt are products of differences between
    neighbours, which decrease as dt grows: their relative error is about
    :math:`k \, dt / h^2` units in the last place.

    References
    ----------
    .. [1] J. Douglas and J. E. Gunn, "A general formulation of alternating direction
       methods", *Numerische Mathematik* 6, 428-453, 1964.

    Examples
    --------
    >>> import torch
    >>> from pysolvers.torch import heat_step
    >>> x = torch.linspace(0.0, 1.0, 11)
    >>> u = torch.zeros(11)
    >>> for _ in range(100):
    ...     u = heat_step(u, dt=0.05, spacing=0.1, boundary={"x-": 1.0, "x+": 0.0})
    >>> print(bool((u - (1 - x)).abs().max() < 1e-5))
    True
    """
    if not isinstance(u, Tensor) or u.dtype not in (torch.float32, torch.float64):
        kind = u.dtype if isinstance(u, Tensor) else type(u).__name__
        raise TypeError(f"u must be a tensor of float32 or float64, got {kind}")
    return step(XP, solve_row_sums, *problem_of(XP, u, dt, spacing, diffusivity, boundary, source))

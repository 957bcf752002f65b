"""A step of heat conduction by alternating directions, as a function of PyTorch.

With K T = -dt (div k grad T) by central differences on nodes that include the boundary, a step of
Douglas and Gunn solves for differences along one axis at a time,

    (1 + K_x/2) D_1 = dt q - (K_x + K_y + K_z) T,
    (1 + K_y/2) D_2 = D_1,   (1 + K_z/2) D_3 = D_2,   T+ = T + D_3.

In one dimension this is the method of Crank and Nicolson, in two dimensions the solution is that
of Peaceman and Rachford. Of second order in time and space, without growth for any dt if there
are at most two axes or k is constant; see heat/_growth.py. Source: J. Douglas and J. E. Gunn,
Numerische Mathematik 6 (1964) 428-453. About 11 operations per node and axis for each solve, and 4
for each difference.

The matrices are given by their couplings and row sums, which are 1 but for sides with exchange: see
`_row_sums`. Nothing is lost where the couplings are large beside 1.

The helpers view fields with the axis of the lines last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from .._boundary import PERIODIC, Dirichlet, Neumann, Robin
from .._checks import require, require_broadcast
from .._domain import AXES, per_axis
from ..heat._sides import boundary_by_side, check_coefficient, check_nodes
from ._row_sums import flux_into, solve_row_sums

_REFUSED = (complex, np.complexfloating, np.ndarray)  # new_full takes neither


class _Lines(NamedTuple):
    """The rows of K along one axis."""

    axis: int  # negative
    periodic: bool
    coupling: Tensor  # of node i to node i + 1; 0 at the last node unless periodic
    weights: Tensor  # 1 / volume of a node, in units of 1 / h: shape (n,)
    given: Tensor  # whether the value of a node is given: shape (n,)
    exchange: Tensor | float  # Robin: addition to the diagonal
    inflow: Tensor | float  # Neumann and Robin: term added to -K T

    def without_k(self, t: Tensor) -> Tensor:
        """Return -K T with the inflow, at the nodes whose values are not given."""
        t = t.movedim(self.axis, -1)
        product = flux_into(self.coupling, t, self.weights)
        return (product - self.exchange * t + self.inflow).movedim(-1, self.axis)

    def without_given(self, change: Tensor) -> Tensor:
        """Return a change with zeros on nodes with given values."""
        return change.movedim(self.axis, -1).masked_fill(self.given, 0).movedim(-1, self.axis)

    def solve(self, change: Tensor) -> Tensor:
        """Solve (1 + K/2) D = change, where D is 0 at the given values."""
        half, before, after = self.coupling / 2, self.given.roll(1), self.given.roll(-1)
        # What a node loses to neighbours with given values belongs to its row sum.
        lost = half.roll(1, -1).masked_fill(~before, 0) + half.masked_fill(~after, 0)
        x = solve_row_sums(
            half.masked_fill(self.given | after, 0),
            1 + lost * self.weights + self.exchange / 2,
            self.weights,
            change.movedim(self.axis, -1),
            periodic=self.periodic,
        )
        return x.movedim(-1, self.axis)


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
    its heat is exactly the volumes of the nodes. Otherwise the rounding errors grow with the
    differences between neighbours times :math:`k \, dt / h^2`: the changes of the three axes, which
    can be so large, cancel in the sum.

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
    require(1 <= u.ndim <= len(AXES), "u must have 1, 2 or 3 axes", u.ndim)
    names = AXES[: u.ndim]
    steps = per_axis("spacing", spacing, names)
    sides = boundary_by_side(boundary, names)
    check_nodes("u", u.shape, sides)
    dt = _fitted("dt", dt, (), u)
    lines = []
    for number, name in enumerate(names):
        axis, ends = -1 - number, (sides[f"{name}-"], sides[f"{name}+"])
        k = diffusivity[name] if isinstance(diffusivity, Mapping) else diffusivity
        u = _with_values(u, axis, ends)
        k = _fitted("diffusivity", k, u.shape, u)
        lines.append(_lines(u, axis, k, dt, steps[number], ends))
    change = dt * _fitted("source", source, u.shape, u)
    for line in lines:
        change = change + line.without_k(u)
    for line in lines:
        change = line.without_given(change)
    for line in lines:
        change = line.solve(change)
    return u + change


def _like(name: str, value: Tensor | float, u: Tensor) -> Tensor:
    """Return a real number or tensor as a tensor with the dtype and the device of u, or raise."""
    rule = f"{name} must be a real number or a tensor of real numbers"
    if isinstance(value, Tensor):
        if value.is_complex():
            raise TypeError(f"{rule}, got {value.dtype}")
        return value.to(u)
    if isinstance(value, _REFUSED):
        raise TypeError(f"{rule}, got {type(value).__name__}")
    return u.new_full((), value)


def _fitted(name: str, value: Tensor | float, shape: Sequence[int], u: Tensor) -> Tensor:
    """Return an argument like u, or raise ValueError if it does not broadcast to a shape."""
    tensor = _like(name, value, u)
    require_broadcast(name, tensor.shape, shape)
    return tensor


def _with_values(u: Tensor, axis: int, ends: tuple[Any, Any]) -> Tensor:
    """Return u with the values that Dirichlet sides give."""
    u = u.movedim(axis, -1)
    first, last = (isinstance(end, Dirichlet) for end in ends)
    parts = [u[..., int(first) : u.shape[-1] - int(last)]]
    side = u[..., :1]
    name, shape = f"boundary {AXES[-1 - axis]}", u.shape[:-1]
    if first:
        values = _fitted(name, ends[0].value, shape, u)
        parts.insert(0, values.expand(shape).unsqueeze(-1).expand_as(side))
    if last:
        values = _fitted(name, ends[1].value, shape, u)
        parts.append(values.expand(shape).unsqueeze(-1).expand_as(side))
    return torch.cat(parts, -1).movedim(-1, axis)


def _lines(u: Tensor, axis: int, k: Tensor, dt: Tensor, h: float, ends: tuple[Any, Any]) -> _Lines:
    """Return the rows of K along an axis for conditions at its lower and its upper end."""
    nodes = u.shape[axis]
    k = k.reshape((1,) * (u.ndim - k.ndim) + tuple(k.shape)).movedim(axis, -1)
    k = k.expand(*k.shape[:-1], nodes)
    after = k.roll(-1, -1)
    coupling = dt / h**2 * 2 * k * after / (k + after)
    numbers = torch.arange(nodes, device=u.device)
    weights, given = (
        torch.ones_like(numbers, dtype=u.dtype),
        torch.zeros_like(numbers, dtype=torch.bool),
    )
    if ends[0] == PERIODIC:
        return _Lines(axis, True, coupling, weights, given, 0.0, 0.0)

    coupling = coupling.masked_fill(numbers == nodes - 1, 0)
    for end, place in zip(ends, (0, nodes - 1), strict=True):
        if isinstance(end, Dirichlet):
            given = given | (numbers == place)
        else:  # the cell at a side with a flux is half as wide
            weights = torch.where(numbers == place, 2.0, weights)
    exchange: Tensor | float = 0.0
    inflow: Tensor | float = 0.0
    name = f"boundary {AXES[-1 - axis]}"
    for end, widths in zip(ends, ((0, nodes - 1), (nodes - 1, 0)), strict=True):
        if isinstance(end, Robin):
            coefficient = _like(name, end.coefficient, u)
            check_coefficient(coefficient.shape)
            exchange = exchange + pad((2 * dt / h * coefficient).reshape(1), widths)
            flux = coefficient * _like(name, end.ambient, u)
        elif isinstance(end, Neumann):
            flux = _like(name, end.flux, u)
        else:
            continue
        require_broadcast(name, flux.shape, u.movedim(axis, -1).shape[:-1])
        inflow = inflow + pad((2 * dt / h * flux).unsqueeze(-1), widths)
    return _Lines(axis, False, coupling, weights, given, exchange, inflow)

r"""Systems of diffusion, given by conductances and row sums: an operator of PyTorch.

With the conductances c_i between the rows i and i + 1, the volumes v and the row sums s,

    (A x)_i = s_i x_i - (q_i - q_{i-1}) / v_i,   q_i = c_i (x_{i+1} - x_i),

where c >= 0 and s > 0. The backends solve with the off-diagonals -c_i / v_i, -c_{i-1} / v_i and s
without subtractions of matrix entries (csrc/include/pysolvers.h, PS_ROW_SUMS), so that no ratio of
s to c loses digits. v A is symmetric. The transpose, whose row sums would be differences, is
therefore solved with A itself: with the gradient g of a real function with respect to x,

    z = A^-1 (g / v),   grad f = v z,   grad s = -v z x,
    grad c_i = (z_{i+1} - z_i) (x_i - x_{i+1}),

summed over the axes along which an operand broadcasts. z is a call of the same operator, so that
second derivatives follow.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .._row_sums import RowSums
from ..tridiagonal import solve_tridiagonal as solve_arrays
from ._operands import batch_first, differentiable, result_like

_NAME = "pysolvers::solve_row_sums"
torch.library.define(
    _NAME,
    "(Tensor conductance, Tensor sums, Tensor weights, Tensor rhs, bool periodic) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)
_solve = torch.ops.pysolvers.solve_row_sums.default


def flux_into(conductance: Tensor, x: Tensor, weights: Tensor) -> Tensor:
    """Return (q_i - q_{i-1}) w_i along the last axis, with the weights w = 1 / v.

    It is exactly zero where x is constant, and so is the gradient with respect to x where the one
    with respect to the result, divided by v, is constant. A line that is not periodic has the last
    conductance 0.
    """
    flux = conductance * (x.roll(-1, -1) - x)
    return (flux - flux.roll(1, -1)) * weights


def solve_row_sums(
    conductance: Tensor, sums: Tensor, weights: Tensor, rhs: Tensor, *, periodic: bool
) -> Tensor:
    """Solve systems along the last axis, with gradients.

    Parameters
    ----------
    conductance, sums, rhs : Tensor
        c, s and right sides: real, of one dtype, on one device. They broadcast; all have n rows.
        Unless `periodic`, the last c is 0.
    weights : Tensor, shape (n,)
        1 / v; it has no gradient.
    periodic : bool
        As in `solve_tridiagonal`.

    Returns
    -------
    Tensor
        x, where f = a s with a number a gives exactly x = a.
    """
    operands = [
        a.reshape((1,) * (rhs.ndim - a.ndim) + a.shape) for a in (conductance, sums, weights)
    ]
    return differentiable(_Differentiable, _solve, *operands, rhs, periodic)


@torch.library.impl(_NAME, ("cpu", "cuda"))
def _run(conductance: Tensor, sums: Tensor, weights: Tensor, rhs: Tensor, periodic: bool) -> Tensor:
    conductance, sums, weights, rhs = (a.detach() for a in (conductance, sums, weights, rhs))
    x = result_like(rhs, conductance, sums)
    if not x.numel():
        return x
    # The constant that is nearest to f / s, and smaller: f - a s then has the signs of f.
    ratio = rhs / sums
    level = ratio.amin(-1, keepdim=True).clamp(min=0) + ratio.amax(-1, keepdim=True).clamp(max=0)
    solve_arrays(
        -conductance.roll(1, -1) * weights,
        RowSums(sums, check_signs=False),
        -conductance * weights,
        rhs - sums * level,
        periodic=periodic,
        on_singular="nan",
        out=x,
    )
    return x.add_(level)


@torch.library.register_fake(_NAME)
def _fake(
    conductance: Tensor, sums: Tensor, weights: Tensor, rhs: Tensor, periodic: bool
) -> Tensor:
    return result_like(rhs, conductance, sums)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    conductance, sums, weights, rhs, ctx.periodic = inputs
    ctx.rhs_shape = rhs.shape
    solution = [output] if any(ctx.needs_input_grad[:2]) else []
    ctx.save_for_backward(conductance, sums, weights, *solution)


def _backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    conductance, sums, weights, *solution = ctx.saved_tensors
    needs = ctx.needs_input_grad
    z = differentiable(
        _Differentiable, _solve, conductance, sums, weights, grad * weights, ctx.periodic
    )
    y = z / weights
    of_c = of_s = None
    if solution and needs[0]:
        (x,) = solution
        of_c = ((z.roll(-1, -1) - z) * (x - x.roll(-1, -1))).sum_to_size(conductance.shape)
    if solution and needs[1]:
        of_s = (-y * solution[0]).sum_to_size(sums.shape)
    return of_c, of_s, None, y.sum_to_size(ctx.rhs_shape) if needs[3] else None, None


class _Differentiable(torch.autograd.Function):
    """The operator and its derivative; see the class in `_solve`."""

    generate_vmap_rule = True
    setup_context = staticmethod(_keep)
    backward = staticmethod(_backward)

    @staticmethod
    def forward(
        conductance: Tensor, sums: Tensor, weights: Tensor, rhs: Tensor, periodic: bool
    ) -> Tensor:
        return _solve(conductance, sums, weights, rhs, periodic)


torch.library.register_autograd(_NAME, _backward, setup_context=_keep)


@torch.library.register_vmap(_NAME)
def _vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Tensor, int]:
    return _solve(*batch_first(arguments[:4], in_dims), *arguments[4:]), 0

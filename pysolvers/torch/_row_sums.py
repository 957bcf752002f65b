r"""Symmetric systems of diffusion, given by conductances and row sums: an operator of PyTorch.

With the conductances c_i between the rows i and i + 1 and the row sums s,

    (S x)_i = s_i x_i - (q_i - q_{i-1}),   q_i = c_i (x_{i+1} - x_i),

where c >= 0 and s > 0. The backends solve with the off-diagonals -c and s without subtractions of
matrix entries (csrc/include/pysolvers.h, PS_ROW_SUMS), so that no ratio of s to c loses digits. S
is its own transpose: with the gradient g of a real function with respect to x,

    y = S^-1 g,   grad f = y,   grad s = -y x,   grad c_i = (y_{i+1} - y_i) (x_i - x_{i+1}),

summed over the axes along which an operand broadcasts. y is a call of the same operator, so that
second derivatives follow.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .._row_sums import RowSums
from ..tridiagonal import solve_tridiagonal as solve_arrays
from ._operands import Direct, batch_first, differentiable, fake_empty, result_like
from ._xp import XP

_NAME = "pysolvers::solve_row_sums"
torch.library.define(
    _NAME,
    "(Tensor conductance, Tensor sums, Tensor rhs, bool periodic) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)
_solve = torch.ops.pysolvers.solve_row_sums.default


def solve_row_sums(
    conductance: Tensor, sums: Tensor, rhs: Tensor, *, axis: int, periodic: bool
) -> Tensor:
    """Solve systems along an axis, with gradients.

    Parameters
    ----------
    conductance, sums, rhs : Tensor
        c, s and right sides: real, of one dtype, on one device. They broadcast; `rhs` has all
        axes. s and `rhs` have n rows, c has n - 1 or, if `periodic`, n.
    axis : int
        Axis of the systems, negative.
    periodic : bool
        As in `solve_tridiagonal`.

    Returns
    -------
    Tensor
        x, where f = a s with a number a gives exactly x = a.
    """
    if not periodic:
        conductance = XP.padded(conductance, 0, 1, axis)
    operands = [
        a.reshape((1,) * (rhs.ndim - a.ndim) + tuple(a.shape)).movedim(axis, -1)
        for a in (conductance, sums, rhs)
    ]
    return differentiable(_Differentiable, _solve, *operands, periodic).movedim(-1, axis)


def _run(conductance: Tensor, sums: Tensor, rhs: Tensor, periodic: bool) -> Tensor:
    """Solve along the last axis; all operands have n rows, the last c is 0 unless `periodic`."""
    conductance, sums, rhs = (a.detach() for a in (conductance, sums, rhs))
    x = result_like(rhs, conductance, sums)
    if not x.numel():
        return x
    # The constant that is nearest to f / s, and smaller: f - a s then has the signs of f.
    ratio = rhs / sums
    level = ratio.amin(-1, keepdim=True).clamp(min=0) + ratio.amax(-1, keepdim=True).clamp(max=0)
    solve_arrays(
        -conductance.roll(1, -1),
        RowSums(sums, check_signs=False),
        -conductance,
        rhs - sums * level,
        periodic=periodic,
        on_singular="nan",
        out=x,
    )
    return x.add_(level)


torch.library.impl(_NAME, ("cpu", "cuda"), _run)


@torch.library.register_fake(_NAME)
def _fake(conductance: Tensor, sums: Tensor, rhs: Tensor, periodic: bool) -> Tensor:
    """Return the solution without values."""
    return result_like(rhs, conductance, sums, empty=fake_empty)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Keep the matrix, and the solution if the gradient of the matrix is asked for."""
    conductance, sums, rhs, ctx.periodic = inputs
    ctx.rhs_shape = rhs.shape
    solution = [output] if any(ctx.needs_input_grad[:2]) else []
    ctx.save_for_backward(conductance, sums, *solution)


def _backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """Return the gradients: one solve with the same matrix, which is symmetric."""
    conductance, sums, *solution = ctx.saved_tensors
    needs = ctx.needs_input_grad
    y = differentiable(_Differentiable, _solve, conductance, sums, grad, ctx.periodic)
    of_c = of_s = None
    if solution and needs[0]:
        (x,) = solution
        of_c = ((y.roll(-1, -1) - y) * (x - x.roll(-1, -1))).sum_to_size(conductance.shape)
    if solution and needs[1]:
        of_s = (-y * solution[0]).sum_to_size(sums.shape)
    return of_c, of_s, y.sum_to_size(ctx.rhs_shape) if needs[2] else None, None


class _Differentiable(torch.autograd.Function):
    """The operator and its derivative; see the class in `_solve`."""

    direct = Direct.of(_run, _keep, _backward)
    generate_vmap_rule = True
    setup_context = staticmethod(_keep)
    backward = staticmethod(_backward)

    @staticmethod
    def forward(conductance: Tensor, sums: Tensor, rhs: Tensor, periodic: bool) -> Tensor:
        return _solve(conductance, sums, rhs, periodic)


torch.library.register_autograd(_NAME, _backward, setup_context=_keep)


@torch.library.register_vmap(_NAME)
def _vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Tensor, int]:
    """Solve for a batch, whose axis comes first."""
    return _solve(*batch_first(arguments[:3], in_dims), *arguments[3:]), 0

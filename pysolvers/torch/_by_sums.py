"""Direct solves with matrices given by row sums, and with their transposes: one operator.

For x = A⁻¹ b, the gradient g of a real function with respect to x and λ = A⁻ᵀ g,

    grad b = λ,   grad s_i = -λ_i x_i,   grad l_i = -λ_i (x_{i-1} - x_i),
    grad u_i = -λ_i (x_{i+1} - x_i),

and for y = A⁻ᵀ g, with the gradient h with respect to y and z = A⁻¹ h, the same products of y_i and
z. Each is a call of the same operator, so that second derivatives follow. Row sums of Aᵀ are
differences: factors of A solve with Aᵀ on the CPU, and `_transposed_sums` does on a device.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._lines.factor import TridiagonalFactor as Factors
from .._row_sums import RowSums
from .._transposed_sums import solve_transposed
from ..tridiagonal import solve_tridiagonal as solve_arrays
from ._operands import (
    Direct,
    batch_first,
    differentiable,
    fake_solution,
    keep_operands,
    result_like,
    vector_if_shared,
)
from ._products import diagonal_gradients

_NAME = "pysolvers::solve_by_sums"
torch.library.define(
    _NAME,
    "(Tensor lower, Tensor sums, Tensor upper, Tensor rhs, bool periodic, bool transposed, "
    "bool check_signs, str on_singular, int? threads) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)
_solve = torch.ops.pysolvers.solve_by_sums.default


def solve_transposed_sums(
    lower: Tensor, sums: Tensor, upper: Tensor, rhs: Tensor, *, periodic: bool
) -> Tensor:
    """Solve with the transposes by operations on tensors, rows last; NaN if A is singular."""
    rows = rhs.shape[-1]
    if not periodic:
        lower = pad(_all_rows(lower, rows)[..., 1 - rows or rows :], (1, 0))
        upper = pad(_all_rows(upper, rows)[..., : rows - 1], (0, 1))
    lower, sums, upper = (_all_rows(a, rows) for a in (lower, sums, upper))
    return solve_transposed(torch, lower, sums, upper, rhs, periodic=periodic)


def _all_rows(diagonal: Tensor, rows: int) -> Tensor:
    """Expand a diagonal with the same entry in all rows."""
    return diagonal.expand(*diagonal.shape[:-1], rows) if diagonal.shape[-1] == 1 else diagonal


def _run(
    lower: Tensor,
    sums: Tensor,
    upper: Tensor,
    rhs: Tensor,
    periodic: bool,
    transposed: bool,
    check_signs: bool,
    on_singular: Any,
    threads: int | None,
) -> Tensor:
    """Solve with detached tensors; a device has no factors for the transposed form."""
    x = result_like(rhs, lower, sums, upper)
    if not x.numel():
        return x
    lower, sums, upper, rhs = (a.detach() for a in (lower, sums, upper, rhs))
    wide = rhs if rhs.shape == x.shape else rhs.expand(x.shape)
    if transposed and x.is_cuda:
        return x.copy_(solve_transposed_sums(lower, sums, upper, wide, periodic=periodic))
    lower, sums, upper = (vector_if_shared(a, x.shape[-1]) for a in (lower, sums, upper))
    form = RowSums(sums, check_signs=check_signs)
    if transposed:
        factors = Factors(
            lower,
            form,
            upper,
            rows=x.shape[-1],
            periodic=periodic,
            on_singular=on_singular,
            threads=threads,
        )
        return factors.solve(wide, axis=-1, trans="T", out=x, threads=threads)
    return solve_arrays(
        lower,
        form,
        upper,
        wide,
        periodic=periodic,
        on_singular=on_singular,
        threads=threads,
        out=x,
    )


torch.library.impl(_NAME, ("cpu", "cuda"), _run)
torch.library.register_fake(_NAME, fake_solution)


def _backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """Return the gradients: one solve with the transposed matrix, and products."""
    lower, sums, upper, *solution = ctx.saved_tensors
    periodic, transposed, _, on_singular, threads = ctx.options
    matrix, needs = (lower, sums, upper), ctx.needs_input_grad
    y = solve_by_sums(*matrix, grad, periodic, not transposed, False, on_singular, threads)
    gradients: list[Tensor | None] = [None] * 3
    if solution:
        x = solution[0]
        # Real parts of products with a conjugate: the matrices are real.
        right, left = (y, x) if transposed else (x, y)
        gradients = diagonal_gradients(
            matrix, right, left, needs[:3], periodic=periodic, has_sums=True
        )
    return (*gradients, y.sum_to_size(ctx.rhs_shape) if needs[3] else None, *(None,) * 5)


class _Differentiable(torch.autograd.Function):
    """The operator and its derivative; see the class in `_solve`."""

    direct = Direct.of(_run, keep_operands, _backward)
    generate_vmap_rule = True
    setup_context = staticmethod(keep_operands)
    backward = staticmethod(_backward)

    @staticmethod
    def forward(
        lower: Tensor,
        sums: Tensor,
        upper: Tensor,
        rhs: Tensor,
        periodic: bool,
        transposed: bool,
        check_signs: bool,
        on_singular: str,
        threads: int | None,
    ) -> Tensor:
        return _solve(
            lower, sums, upper, rhs, periodic, transposed, check_signs, on_singular, threads
        )


def solve_by_sums(*arguments: Any) -> Tensor:
    """Solve; the arguments are those of the operator."""
    return differentiable(_Differentiable, _solve, *arguments)


torch.library.register_autograd(_NAME, _backward, setup_context=keep_operands)


@torch.library.register_vmap(_NAME)
def _vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Tensor, int]:
    """Solve for a batch, whose axis comes first."""
    return _solve(*batch_first(arguments[:4], in_dims), *arguments[4:]), 0

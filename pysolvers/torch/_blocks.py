"""Block tridiagonal and pentadiagonal systems with gradients: operators of PyTorch.

The operators have operands with equally many axes, the rows of diagonals last, those of blocks
last but two. With the gradient g of a real function with respect to x,

    λ = A^-T g,   grad rhs = λ,   grad a^(k)_i = -λ_i x_{i+k}   (blocks: -λ_i x_{i+k}^T),

summed over the axes along which an operand broadcasts. λ is a call of the same operator, so that
second derivatives follow.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from .._blocks import (
    solve_block_tridiagonal as solve_block_arrays,
    solve_pentadiagonal as solve_band_arrays,
)
from .._blocks.differentiable import (
    bands_of,
    bands_solution,
    blocks_of,
    blocks_solution,
    by_columns,
    exchanges_rows,
    folds,
    require_assumption,
    shifted,
    shifted_blocks,
    transposed,
)
from .._blocks.systems import Assume
from .._checks import require_flag
from .._runtime.backends import require
from ._operands import Direct, batch_first, differentiable
from ._xp import XP

_NAMES = ("pysolvers::solve_bands", "pysolvers::solve_blocks")
_OPTIONS = "bool? pivot, bool definite, int? threads"
torch.library.define(
    _NAMES[0],
    "(Tensor lower2, Tensor lower, Tensor diag, Tensor upper, Tensor upper2, Tensor rhs, "
    f"{_OPTIONS}) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)
torch.library.define(
    _NAMES[1],
    f"(Tensor lower, Tensor diag, Tensor upper, Tensor rhs, {_OPTIONS}) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)
_solve_bands = torch.ops.pysolvers.solve_bands.default
_solve_blocks = torch.ops.pysolvers.solve_blocks.default


def solve_pentadiagonal(
    lower2: Tensor | float | None,
    lower: Tensor | float | None,
    diag: Tensor | float,
    upper: Tensor | float,
    upper2: Tensor | float,
    rhs: Tensor,
    *,
    axis: int = -1,
    assume: Assume = "general",
    periodic: bool = False,
    pivot: bool | None = None,
    threads: int | None = None,
) -> Tensor:
    r"""Solve many independent pentadiagonal systems along one axis, with gradients.

    .. math::

       l^{(2)}_i x_{i-2} + l_i x_{i-1} + d_i x_i + u_i x_{i+1} + u^{(2)}_i x_{i+2} = r_i,
       \quad 0 \le i < n.

    Parameters
    ----------
    lower2, lower, diag, upper, upper2, rhs : Tensor or number
        As in `pysolvers.solve_pentadiagonal`.
    axis, assume, periodic, pivot, threads
        As in `pysolvers.solve_pentadiagonal`.

    Returns
    -------
    Tensor, shape of the broadcast operands
        The solutions; NaN for a matrix that is singular, or not positive definite as `assume`
        says.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.solve_pentadiagonal`.
    BackendError
        If the device is not available.

    Notes
    -----
    `x` is differentiable with respect to every tensor, any number of times, in reverse mode, by one
    solve with the transposed matrix. The function works inside `torch.compile`, `torch.vmap` and
    `torch.func.grad`, on a CUDA device on the current stream.

    A periodic system is solved as an open one with blocks of 4 rows and row exchanges. With
    ``pivot=False`` or ``assume='positive definite'``, and complex ones on a device, it is bordered,
    which takes less time and needs a regular matrix without the last two rows and columns.

    Examples
    --------
    >>> import torch
    >>> from pysolvers.torch import solve_pentadiagonal
    >>> rhs = torch.tensor([3.0, -1.0, 0.0, -1.0, 3.0], dtype=torch.float64)
    >>> solve_pentadiagonal(1.0, -4.0, 6.0, -4.0, 1.0, rhs).round(decimals=6)
    tensor([1., 1., 1., 1., 1.], dtype=torch.float64)
    """
    require_flag("periodic", periodic)
    require_assumption(assume, pivot)
    bands = (lower2, lower, diag, upper, upper2)
    is_complex = any(XP.is_complex(band) for band in bands if band is not None)
    if isinstance(rhs, Tensor) and rhs.is_complex() and not is_complex:
        options: dict[str, Any] = {
            "axis": axis,
            "assume": assume,
            "periodic": periodic,
            "pivot": pivot,
            "threads": threads,
        }
        real, imag = (solve_pentadiagonal(*bands, part, **options) for part in (rhs.real, rhs.imag))
        return torch.complex(real, imag)
    named = {
        "lower2": lower2,
        "lower": lower,
        "diag": diag,
        "upper": upper,
        "upper2": upper2,
        "rhs": rhs,
    }
    lines = bands_of(XP, named, axis, assume, periodic=bool(periodic))
    definite = assume != "general"
    exchanges = exchanges_rows(assume, pivot)

    def solve(*operands: Tensor) -> Tensor:
        return differentiable(_Bands, _solve_bands, *operands, exchanges, definite, threads)

    def solve_by_blocks(*operands: Tensor) -> Tensor:
        return differentiable(_Blocks, _solve_blocks, *operands, exchanges, definite, threads)

    is_folded = folds(assume, pivot, periodic=bool(periodic))
    return bands_solution(
        XP,
        lines,
        solve,
        solve_by_blocks,
        partial(_exchanging, threads),
        is_complex=is_complex,
        is_folded=is_folded and fits(lines.rhs, 8 if is_complex else 4),
        periodic=bool(periodic),
    )


def solve_block_tridiagonal(
    lower: Tensor | None,
    diag: Tensor,
    upper: Tensor | None,
    rhs: Tensor,
    *,
    axis: int = -1,
    assume: Assume = "general",
    periodic: bool = False,
    pivot: bool | None = None,
    threads: int | None = None,
) -> Tensor:
    r"""Solve many independent block tridiagonal systems along one axis, with gradients.

    .. math:: L_i x_{i-1} + D_i x_i + U_i x_{i+1} = r_i, \quad 0 \le i < n.

    Parameters
    ----------
    lower, diag, upper, rhs : Tensor
        As in `pysolvers.solve_block_tridiagonal`: blocks (..., n, k, k), right-hand sides
        (..., n, k, m).
    axis, assume, periodic, pivot, threads
        As in `pysolvers.solve_block_tridiagonal`.

    Returns
    -------
    Tensor, shape (..., n, k, m)
        The solutions; NaN for a matrix that is singular, or not positive definite as `assume`
        says.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.solve_block_tridiagonal`.
    BackendError
        If tensors on a device have blocks of more than 4 rows, complex ones of more than 2.

    Notes
    -----
    As `pysolvers.torch.solve_pentadiagonal`. A periodic system is solved as an open one with blocks
    of 2 k rows if these have at most 32 rows, on a device 4, complex ones half as many.

    Examples
    --------
    >>> import torch
    >>> from pysolvers.torch import solve_block_tridiagonal
    >>> one = torch.eye(2, dtype=torch.float64)
    >>> rhs = torch.ones(3, 2, 1, dtype=torch.float64)
    >>> solve_block_tridiagonal(-one, 3 * one, -one, rhs)[..., 0]
    tensor([[0.5714, 0.5714],
            [0.7143, 0.7143],
            [0.5714, 0.5714]], dtype=torch.float64)
    """
    require_flag("periodic", periodic)
    require_assumption(assume, pivot)
    blocks = (lower, diag, upper)
    is_complex = any(XP.is_complex(block) for block in blocks if block is not None)
    if isinstance(rhs, Tensor) and rhs.is_complex() and not is_complex:

        def solve_real(columns: Tensor) -> Tensor:
            return solve_block_tridiagonal(
                *blocks,
                columns,
                axis=axis,
                assume=assume,
                periodic=periodic,
                pivot=pivot,
                threads=threads,
            )

        return by_columns(XP, solve_real, rhs)
    named = {"lower": lower, "diag": diag, "upper": upper, "rhs": rhs}
    lines = blocks_of(XP, named, axis, assume, periodic=bool(periodic))
    definite = assume != "general"
    options = (exchanges_rows(assume, pivot), definite, threads)

    def solve(*operands: Tensor) -> Tensor:
        return differentiable(_Blocks, _solve_blocks, *operands, *options)

    is_folded = folds(assume, pivot, periodic=bool(periodic))
    return blocks_solution(
        XP,
        lines,
        solve,
        partial(_exchanging, threads),
        most=_most_side(lines.rhs) if is_folded else None,
        periodic=bool(periodic),
    )


def fits(tensor: Tensor, side: int) -> bool:
    """Return whether blocks of so many rows are solved where the tensors are."""
    return side <= _most_side(tensor)


def _most_side(tensor: Tensor) -> int:
    """Return the most rows of blocks that are solved where the tensors are."""
    backend = require("cpu")
    return backend.FAST_SIDE if tensor.is_cuda else backend.MOST_SIDE


def solve_open_blocks(*arguments: Any) -> Tensor:
    """Solve with blocks: lower, diag, upper, rhs, pivot, definite, threads."""
    return differentiable(_Blocks, _solve_blocks, *arguments)


def _exchanging(threads: int | None, *operands: Tensor) -> Tensor:
    """Solve with blocks and row exchanges."""
    return differentiable(_Blocks, _solve_blocks, *operands, True, False, threads)


def _empty(tail: int, *operands: Tensor) -> Tensor:
    """Allocate a result with the rows and columns of the right-hand sides."""
    batch = torch.broadcast_shapes(*(operand.shape[:-tail] for operand in operands))
    return operands[-1].new_empty((*batch, *operands[-1].shape[-tail:]))


def _run(solve: Any, tail: int, operands: tuple[Tensor, ...], options: tuple[Any, ...]) -> Tensor:
    """Solve with detached tensors, as one more batch: an operand of one row is then a constant."""
    x = _empty(tail, *operands)
    if not x.numel():
        return x
    pivot, definite, threads = options
    assume: Assume = "positive definite" if definite else "general"
    *arrays, out = (each.detach()[None] for each in (*operands, x))
    if not x.is_cuda:  # solves of arrays of NumPy take less time
        *arrays, out = (each.numpy() for each in (*arrays, out))
    solve(
        *arrays,
        pivot=None if definite else pivot,
        assume=assume,
        on_singular="nan",
        threads=threads,
        out=out,
    )
    return x


def _run_bands(*arguments: Any) -> Tensor:
    return _run(solve_band_arrays, 1, arguments[:6], arguments[6:])


def _run_blocks(*arguments: Any) -> Tensor:
    return _run(solve_block_arrays, 3, arguments[:4], arguments[4:])


torch.library.impl(_NAMES[0], ("cpu", "cuda"), _run_bands)
torch.library.impl(_NAMES[1], ("cpu", "cuda"), _run_blocks)


@torch.library.register_fake(_NAMES[0])
def _fake_bands(*arguments: Any) -> Tensor:
    return _empty(1, *arguments[:6])


@torch.library.register_fake(_NAMES[1])
def _fake_blocks(*arguments: Any) -> Tensor:
    return _empty(3, *arguments[:4])


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Keep what the derivative needs: the `setup_context` of both operators."""
    *tensors, rhs = inputs[:-3]
    ctx.options, ctx.rhs_shape = inputs[-3:], rhs.shape
    solution = [output] if any(ctx.needs_input_grad[: len(tensors)]) else []
    ctx.save_for_backward(*tensors, *solution)


def _backward_bands(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """Return the gradients, from a solve with the transposes."""
    matrix, solution = ctx.saved_tensors[:5], ctx.saved_tensors[5:]
    y = differentiable(_Bands, _solve_bands, *transposed(XP, matrix), grad, *ctx.options)
    gradients: list[Tensor | None] = [None] * 5
    for k, band in enumerate(matrix):
        if ctx.needs_input_grad[k]:
            x = solution[0]
            far = x if x.shape[-1] > 1 or k == 2 else torch.zeros_like(x)
            gradients[k] = -(y * shifted(XP, far, k - 2)).sum_to_size(band.shape)
    own = y.sum_to_size(ctx.rhs_shape) if ctx.needs_input_grad[5] else None
    return (*gradients, own, None, None, None)


def _backward_blocks(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """Return the gradients, from a solve with the transposes."""
    matrix, solution = ctx.saved_tensors[:3], ctx.saved_tensors[3:]
    y = differentiable(_Blocks, _solve_blocks, *transposed(XP, matrix), grad, *ctx.options)
    gradients: list[Tensor | None] = [None] * 3
    for k, block in enumerate(matrix):
        if ctx.needs_input_grad[k]:
            x = solution[0]
            if k != 1:
                x = shifted_blocks(XP, x, k - 1) if x.shape[-3] > 1 else torch.zeros_like(x)
            gradients[k] = -(y @ x.transpose(-1, -2)).sum_to_size(block.shape)
    own = y.sum_to_size(ctx.rhs_shape) if ctx.needs_input_grad[3] else None
    return (*gradients, own, None, None, None)


class _Bands(torch.autograd.Function):
    """The operator and its derivative, in the form that `torch.func` needs."""

    direct = Direct.of(_run_bands, _keep, _backward_bands)
    generate_vmap_rule = True
    setup_context = staticmethod(_keep)
    backward = staticmethod(_backward_bands)

    @staticmethod
    def forward(*arguments: Any) -> Tensor:
        return _solve_bands(*arguments)


class _Blocks(torch.autograd.Function):
    """The operator and its derivative, in the form that `torch.func` needs."""

    direct = Direct.of(_run_blocks, _keep, _backward_blocks)
    generate_vmap_rule = True
    setup_context = staticmethod(_keep)
    backward = staticmethod(_backward_blocks)

    @staticmethod
    def forward(*arguments: Any) -> Tensor:
        return _solve_blocks(*arguments)


torch.library.register_autograd(_NAMES[0], _backward_bands, setup_context=_keep)
torch.library.register_autograd(_NAMES[1], _backward_blocks, setup_context=_keep)


@torch.library.register_vmap(_NAMES[0])
def _vmap_bands(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Tensor, int]:
    """Solve for a batch, whose axis comes first."""
    return _solve_bands(*batch_first(arguments[:6], in_dims), *arguments[6:]), 0


@torch.library.register_vmap(_NAMES[1])
def _vmap_blocks(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Tensor, int]:
    """Solve for a batch, whose axis comes first."""
    return _solve_blocks(*batch_first(arguments[:4], in_dims), *arguments[4:]), 0

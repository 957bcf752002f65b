"""Determinants of block tridiagonal matrices with gradients: operators of PyTorch.

With the gradient g of a real function with respect to log |det A|, that with respect to A is
g A^-T, of which the blocks in the places of those of A are needed (Takahashi, Fagan and Chen 1973).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from .._blocks.blocks import inverses, log_determinants
from .._blocks.differentiable import (
    exchanges_rows,
    logdet_of_ring,
    matrix_of_logdet,
    require_assumption,
    transposed,
)
from .._blocks.systems import Assume, ExchangesNeededError
from .._checks import require_flag
from ._blocks import fits, solve_open_blocks
from ._operands import batch_first, differentiable
from ._xp import XP

_NAMES = ("pysolvers::block_logdet", "pysolvers::block_inverses")
_ARGUMENTS = "(Tensor lower, Tensor diag, Tensor upper, bool? pivot, bool definite, int? threads)"
for _name, _result in zip(_NAMES, ("Tensor", "(Tensor, Tensor, Tensor)"), strict=True):
    torch.library.define(_name, f"{_ARGUMENTS} -> {_result}", tags=torch.Tag.pt2_compliant_tag)
_logdet = torch.ops.pysolvers.block_logdet.default
_inverses = torch.ops.pysolvers.block_inverses.default


def block_tridiagonal_logdet(
    lower: Tensor | None,
    diag: Tensor,
    upper: Tensor | None,
    *,
    axis: int = -1,
    assume: Assume = "general",
    periodic: bool = False,
    pivot: bool | None = None,
    threads: int | None = None,
) -> Tensor:
    r"""Return :math:`\log |\det A|` of block tridiagonal matrices, with gradients.

    Parameters
    ----------
    lower, diag, upper : Tensor, shape (..., n, k, k)
        Real blocks, as in `pysolvers.factor_block_tridiagonal`; one of them has n rows.
    axis, assume, periodic, pivot, threads
        As in `pysolvers.factor_block_tridiagonal`.

    Returns
    -------
    Tensor, shape of the batch
        The logarithms, in the dtype of the blocks; NaN for a matrix that is singular, or not
        positive definite as `assume` says.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.factor_block_tridiagonal`; and for a gradient of matrices with row exchanges
        across blocks, or with blocks of more than 4 rows.
    NotImplementedError
        For a second derivative, which needs all blocks of the inverse.

    Notes
    -----
    The gradient with respect to the blocks :math:`A_{ij}` is that of the result times
    :math:`(A^{-1})_{ji}^T`. Matrices on a device are factored there if their blocks have at most 4
    rows and need no row exchanges across blocks, otherwise by a copy on the CPU.

    Of a periodic matrix, the determinant is that of the matrix without the last row and column,
    which has to be regular, times that of the last equation after the elimination of the others.

    Examples
    --------
    >>> import torch
    >>> from pysolvers.torch import block_tridiagonal_logdet
    >>> diag = torch.full((3, 1, 1), 4.0, dtype=torch.float64) * torch.eye(2, dtype=torch.float64)
    >>> one = torch.eye(2, dtype=torch.float64)
    >>> block_tridiagonal_logdet(-one, diag, -one).round(decimals=6)
    tensor(8.0507, dtype=torch.float64)
    """
    require_assumption(assume, pivot)
    require_flag("periodic", periodic)
    named = {"lower": lower, "diag": diag, "upper": upper}
    matrix = matrix_of_logdet(XP, named, axis, assume, periodic=bool(periodic))
    definite = assume != "general"
    options = (None if definite else pivot, definite, threads)

    def logdet(*blocks: Tensor) -> Tensor:
        return differentiable(_Logdet, _logdet, *blocks, *options)

    def solve(*operands: Tensor) -> Tensor:
        exchanges = exchanges_rows(assume, pivot)
        return solve_open_blocks(*operands, exchanges, definite, threads)

    if periodic:
        return logdet_of_ring(XP, matrix, solve, logdet, definite=definite)
    return logdet(*matrix)


def _computed(compute: Any, arguments: tuple[Any, ...]) -> Any:
    """Call a function of factors, where the blocks are if it can compute there."""
    *blocks, pivot, definite, threads = (
        a.detach() if isinstance(a, Tensor) else a for a in arguments
    )
    options: dict[str, Any] = {
        "assume": "positive definite" if definite else "general",
        "pivot": pivot,
        "threads": threads,
    }
    if blocks[1].is_cuda and pivot is not True and fits(blocks[1], blocks[1].shape[-1]):
        with suppress(ExchangesNeededError):
            return compute(*blocks, **options)
    return compute(*(block.cpu().numpy() for block in blocks), **options)


def _batch(blocks: tuple[Any, ...]) -> torch.Size:
    return torch.broadcast_shapes(*(block.shape[:-3] for block in blocks))


@torch.library.impl(_NAMES[0], ("cpu", "cuda"))
def _run_logdet(*arguments: Any) -> Tensor:
    diag = arguments[1]
    return torch.as_tensor(_computed(log_determinants, arguments), dtype=diag.dtype).to(diag.device)


@torch.library.impl(_NAMES[1], ("cpu", "cuda"))
def _run_inverses(*arguments: Any) -> tuple[Tensor, ...]:
    device = arguments[1].device
    return tuple(torch.as_tensor(a).to(device) for a in _computed(inverses, arguments))


@torch.library.register_fake(_NAMES[0])
def _fake_logdet(*arguments: Any) -> Tensor:
    return arguments[1].new_empty(_batch(arguments[:3]))


@torch.library.register_fake(_NAMES[1])
def _fake_inverses(*arguments: Any) -> tuple[Tensor, ...]:
    blocks = arguments[:3]
    rows = max(block.shape[-3] for block in blocks)
    shape = (*_batch(blocks), rows, *blocks[1].shape[-2:])
    return tuple(blocks[1].new_empty(shape) for _ in range(3))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    ctx.options = inputs[3:]
    ctx.save_for_backward(*inputs[:3])


def _backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """Return the gradients with respect to the blocks."""
    blocks = ctx.saved_tensors
    found = transposed(XP, differentiable(_Inverses, _inverses, *blocks, *ctx.options))
    weight = grad[..., None, None, None]
    own = zip(found, blocks, ctx.needs_input_grad, strict=False)
    return (*((weight * a).sum_to_size(b.shape) if is_used else None for a, b, is_used in own),) + (
        None,
    ) * 3


def _refuse(ctx: Any, *_: Any) -> Any:
    raise NotImplementedError(
        "block_tridiagonal_logdet has first derivatives only: a second one needs all blocks of the "
        "inverse; use torch.linalg.slogdet for small matrices"
    )


class _Logdet(torch.autograd.Function):
    """The operator and its derivative, in the form that `torch.func` needs."""

    setup_context = staticmethod(_keep)
    backward = staticmethod(_backward)

    @staticmethod
    def forward(*arguments: Any) -> Tensor:
        return _logdet(*arguments)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Tensor, int]:
        return _Logdet.apply(*_batched(in_dims, arguments)), 0


class _Inverses(torch.autograd.Function):
    """The operator without a derivative, in the form that `torch.func` needs."""

    setup_context = staticmethod(_keep)
    backward = staticmethod(_refuse)

    @staticmethod
    def forward(*arguments: Any) -> Any:
        return _inverses(*arguments)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
        return _Inverses.apply(*_batched(in_dims, arguments)), (0, 0, 0)


def _batched(in_dims: tuple[Any, ...], arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return (*batch_first(arguments[:3], in_dims), *arguments[3:])


torch.library.register_autograd(_NAMES[0], _backward, setup_context=_keep)
torch.library.register_autograd(_NAMES[1], _refuse, setup_context=_keep)


@torch.library.register_vmap(_NAMES[0])
def _vmap_logdet(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Tensor, int]:
    """Factor a batch, whose axis comes first."""
    return _logdet(*_batched(in_dims, arguments)), 0


@torch.library.register_vmap(_NAMES[1])
def _vmap_inverses(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
    """Factor a batch, whose axis comes first."""
    return _inverses(*_batched(in_dims, arguments)), (0, 0, 0)

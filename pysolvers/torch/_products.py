r"""The products that are the gradients of the diagonals: an operator of PyTorch on the CPU.

For the gradient g = A^-T (gradient of x) of a solve, one pass over two arrays writes

    lower_i = -g_i x_{i-1},   diag_i = -g_i x_i,   upper_i = -g_i x_{i+1}.

Operations of PyTorch take up to eight passes, and new memory for each. The operator is linear in g
and in x: with the cotangents a, b, c of its results,

    grad g_i = -(a_i x_{i-1} + b_i x_i + c_i x_{i+1}),
    grad x_i = -(c_{i-1} g_{i-1} + b_i g_i + a_{i+1} g_{i+1}).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._errors import raise_for_status
from .._runtime.backends import require
from ._operands import batch_first, differentiable, empty_like

_NAME = "pysolvers::products"
torch.library.define(
    _NAME,
    "(Tensor g, Tensor x, bool periodic) -> (Tensor, Tensor, Tensor)",
    tags=torch.Tag.pt2_compliant_tag,
)
_products = torch.ops.pysolvers.products.default


def products(g: Tensor, x: Tensor, *, periodic: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return the products of real tensors of one shape on the CPU, the rows last."""
    found: Any = differentiable(_Differentiable, _products, g, x, periodic)
    return found


@torch.library.impl(_NAME, "cpu")
def _run(g: Tensor, x: Tensor, periodic: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Call the backend with the memory of dense tensors: rows lie `inner` numbers apart."""
    g, x = g.detach().resolve_neg(), x.detach().resolve_neg()
    if torch.empty_like(x, device="meta").stride() != x.stride():  # x has gaps, or repeats elements
        x = empty_like(x).copy_(x)
    if g.stride() != x.stride():
        g = empty_like(x).copy_(g)
    found = empty_like(x), empty_like(x), empty_like(x)
    if not x.numel():
        return found
    rows = x.shape[-1]
    inner = x.stride(-1) if rows > 1 else 1
    core, flat = require("cpu"), (x.numel(),)
    status = core.products(
        core.PERIODIC if periodic else 0,
        rows,
        inner,
        *(a.as_strided(flat, (1,)).numpy() for a in (g, x, *found)),
        0,
    )
    raise_for_status(status, core.STATUS, "products")
    return found


@torch.library.register_fake(_NAME)
def _fake(g: Tensor, x: Tensor, periodic: bool) -> tuple[Tensor, ...]:
    """Return the results without values."""
    return tuple(torch.empty_like(x) for _ in range(3))


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Keep both operands."""
    g, x, ctx.periodic = inputs
    ctx.save_for_backward(g, x)


def _backward(ctx: Any, *cotangents: Tensor) -> tuple[Any, ...]:
    """Return the gradients of g and x, by operations of PyTorch."""
    g, x = ctx.saved_tensors
    a, b, c = cotangents
    periodic = ctx.periodic
    of_g = of_x = None
    if ctx.needs_input_grad[0]:
        before, after = (shifted(x, k, periodic=periodic) for k in (-1, 1))
        of_g = -(a * before + b * x + c * after)
    if ctx.needs_input_grad[1]:
        before, after = shifted(c * g, -1, periodic=periodic), shifted(a * g, 1, periodic=periodic)
        of_x = -(before + b * g + after)
    return of_g, of_x, None


class _Differentiable(torch.autograd.Function):
    """The operator and its derivative; see the class in `_solve`."""

    generate_vmap_rule = True
    setup_context = staticmethod(_keep)
    backward = staticmethod(_backward)

    @staticmethod
    def forward(g: Tensor, x: Tensor, periodic: bool) -> Any:
        return _products(g, x, periodic)


torch.library.register_autograd(_NAME, _backward, setup_context=_keep)


@torch.library.register_vmap(_NAME)
def _vmap(info: Any, in_dims: tuple[Any, ...], g: Tensor, x: Tensor, periodic: bool) -> Any:
    """Multiply a batch, whose axis comes first."""
    g, x = torch.broadcast_tensors(*batch_first((g, x), in_dims))
    return _products(g, x, periodic), (0, 0, 0)


def diagonal_gradients(
    diagonals: Sequence[Tensor],
    x: Tensor,
    y: Tensor,
    needed: Sequence[bool],
    *,
    periodic: bool,
    has_sums: bool = False,
) -> list[Tensor | None]:
    """Return the gradients of the diagonals, -y_i x̄_j, in their shapes; None if not needed.

    With `has_sums`, ``diag`` has row sums, and those of the off-diagonals are -y_i (x̄_j - x̄_i).
    """
    is_fused = x.device.type == "cpu" and not (has_sums or x.is_complex() or y.is_complex())
    fused = products(y, x, periodic=periodic) if is_fused and sum(needed) > 1 else None
    if fused is None:
        x, y = x.conj(), -y
    gradients: list[Tensor | None] = []
    for k, (diagonal, is_needed) in enumerate(zip(diagonals, needed, strict=True)):
        if not is_needed:
            gradients.append(None)
            continue
        offset = k - 1
        if fused is not None:
            product = fused[k]
        else:
            product = y * shifted(x, offset, periodic=periodic, minus_own=has_sums)
        if not diagonal.is_complex() and product.is_complex():
            product = product.real
        if diagonal.shape[-1] == product.shape[-1] - 1 > 1:  # without row 0, or without the last
            product = product[..., 1:] if offset < 0 else product[..., :-1]
        gradients.append(product.sum_to_size(diagonal.shape))
    return gradients


def shifted(x: Tensor, offset: int, *, periodic: bool, minus_own: bool = False) -> Tensor:
    """Return x_{i + offset}, or x_{i + offset} - x_i; 0 outside of a matrix that is not periodic.

    For the offset 0 always x_i.
    """
    if offset == 0:
        return x
    if periodic:
        return x.roll(-offset, -1) - x if minus_own else x.roll(-offset, -1)
    if minus_own:
        step = x[..., 1:] - x[..., :-1]
        return pad(-step, (1, 0)) if offset < 0 else pad(step, (0, 1))
    return pad(x[..., :-1], (1, 0)) if offset < 0 else pad(x[..., 1:], (0, 1))

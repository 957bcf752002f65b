r"""The products that are the gradients of the diagonals: an operator of PyTorch.

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
from .._runtime.interop import library_of
from ._operands import Direct, batch_first, differentiable, empty_like, summed

_NAME = "pysolvers::products"
torch.library.define(
    _NAME,
    "(Tensor g, Tensor x, bool periodic) -> (Tensor, Tensor, Tensor)",
    tags=torch.Tag.pt2_compliant_tag,
)
_products = torch.ops.pysolvers.products.default


def products(g: Tensor, x: Tensor, *, periodic: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return the products of real tensors of one shape, the rows last."""
    found: Any = differentiable(_Differentiable, _products, g, x, periodic)
    return found


def _run(g: Tensor, x: Tensor, periodic: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Call the backend with the memory of dense tensors."""
    return _written(g.detach().resolve_neg(), x.detach().resolve_neg(), periodic=periodic)


def step_products(
    a: Tensor, g: Tensor, u: Tensor, x: Tensor, *, theta: float, scale: float, periodic: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the products of a + (1/theta - 1) g and scale (u + theta (x - u)), without a graph.

    One pass over four tensors, of which the combinations are not written to memory.
    """
    given = [g, u] if theta != 1 else [a, x]  # with theta = 1 g and u do not count
    numbers = 1 / theta - 1, theta, scale
    operands = [each.detach() if each.requires_grad else each for each in (a, x, *given)]
    return _written(*operands, numbers, periodic=periodic)


def _written(g: Tensor, x: Tensor, *of_step: Any, periodic: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Return the products of g and x; `of_step`: two operands of a step, and its numbers."""
    if not _is_dense(x):
        x = empty_like(x).copy_(x)
    *others, numbers = of_step or ((),)
    operands = [alike(each, x) for each in (g, *others)]
    found = empty_like(x), empty_like(x), empty_like(x)
    if not x.numel():
        return found
    backend = require("cuda" if x.is_cuda else "cpu")
    flat = [operands[0], x, *found, *operands[1:]]
    if not x.is_contiguous():
        flat = [each.as_strided((x.numel(),), (1,)) for each in flat]
    device, stream, *arrays = backend.borrow_operands(
        *flat, -1, (None, *library_of(x).fast_access[1:])
    )
    status = backend.products(
        backend.PERIODIC if periodic else 0,
        *_layout(x),
        *arrays[:5],
        0,
        (*arrays[5:], *numbers),
        device,
        stream,
    )
    raise_for_status(status, backend.STATUS, "products")
    return found


def _is_dense(tensor: Tensor) -> bool:
    """Return whether the numbers of a tensor are one block of memory."""
    if tensor.is_contiguous():
        return True
    step = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1:
            if stride != step:
                return False
            step *= size
    return True


def alike(tensor: Tensor, layout: Tensor) -> Tensor:
    """Return a tensor of the shape of another one, copied unless it has its strides."""
    is_same = tensor.shape == layout.shape and tensor.stride() == layout.stride()
    if is_same and not tensor.is_neg():
        return tensor
    return empty_like(layout).copy_(tensor)


def _layout(x: Tensor) -> tuple[int, int]:
    """Return the rows of a dense tensor, and how many numbers they lie apart."""
    rows = x.shape[-1]
    return rows, x.stride(-1) if rows > 1 else 1


torch.library.impl(_NAME, ("cpu", "cuda"), _run)


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

    direct = Direct.of(_run, _keep, _backward)
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
    known: tuple[Tensor, Tensor, Tensor] | None = None,
) -> list[Tensor | None]:
    """Return the gradients of the diagonals, -y_i x̄_j, in their shapes; None if not needed.

    With `has_sums`, ``diag`` has row sums, and those of the off-diagonals are -y_i (x̄_j - x̄_i).
    `known` are the products, if they are known.
    """
    is_fused = not (has_sums or x.is_complex() or y.is_complex())
    fused = known
    if fused is None and is_fused and sum(needed) > 1:
        fused = products(y, x, periodic=periodic)
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
        gradients.append(summed(product, diagonal.shape))
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

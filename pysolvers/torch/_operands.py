"""Operands, results and gradients of systems as tensors, with the rows along the last axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from .._runtime.arrays import Shape, common_size, padded_shape

_OPERANDS = (Tensor, int, float, complex)
_DTYPES = (torch.float32, torch.float64, torch.complex64, torch.complex128)


def as_tensors(
    named: Mapping[str, Any], dtypes: Sequence[torch.dtype] | None = None
) -> dict[str, Tensor]:
    """Return operands as tensors of the dtypes to which they promote, on one device.

    Python numbers do not raise the precision of tensors, and tensors of integers alone give
    float64. A real matrix with a complex ``rhs`` stays real.

    Raises
    ------
    TypeError
        If an operand is neither a tensor nor a number, if none is a tensor, or if one has
        another dtype than float32, float64, complex64, complex128, integers or booleans.
    """
    tensors = [value for value in named.values() if isinstance(value, Tensor)]
    for name, value in named.items():
        if not isinstance(value, _OPERANDS):
            raise TypeError(f"{name}: need a tensor or a number, got {type(value).__name__}")
    if not tensors:
        raise TypeError(f"one of {', '.join(named)} must be a tensor, got numbers only")
    if dtypes is None:
        dtype = promoted(named)
        dtypes = [dtype] * len(named)
        if "rhs" in named and dtype.is_complex:
            matrix = [value for name, value in named.items() if name != "rhs"]
            if not any(is_complex(value) for value in matrix):
                real = dtype.to_real()
                dtypes = [dtype if name == "rhs" else real for name in named]
    device = tensors[0].device
    return {
        name: value.to(dtype)
        if isinstance(value, Tensor)
        else torch.full((), value, dtype=dtype, device=device)
        for (name, value), dtype in zip(named.items(), dtypes, strict=True)
    }


def promoted(named: Mapping[str, Any]) -> torch.dtype:
    """Return the dtype to which operands promote."""
    for name, value in named.items():
        if isinstance(value, Tensor) and value.dtype not in _DTYPES and _is_inexact(value.dtype):
            raise TypeError(
                f"{name}: need float32, float64, complex64, complex128, integers or booleans, "
                f"got {value.dtype}"
            )
    dtypes = [value.dtype for value in named.values() if isinstance(value, Tensor)]
    dtype = reduce(torch.promote_types, dtypes)
    if not _is_inexact(dtype):
        dtype = torch.float64
    return dtype.to_complex() if any(is_complex(value) for value in named.values()) else dtype


def _is_inexact(dtype: torch.dtype) -> bool:
    """Return whether the dtype has floating-point numbers, real or complex."""
    return dtype.is_floating_point or dtype.is_complex


def is_complex(value: Any) -> bool:
    """Whether an argument is complex: a tensor, a number or an array of NumPy."""
    if isinstance(value, Tensor):
        return value.is_complex()
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "c"
    return isinstance(value, complex | np.complexfloating)


def rows_last(tensor: Tensor, shape: Shape) -> Tensor:
    """View an operand with all axes of the result, the axis of the systems last."""
    padded = padded_shape(tensor.shape, shape.axis, len(shape.full))
    return tensor.reshape(padded).movedim(shape.axis, -1)


def batch_first(tensors: Sequence[Tensor], in_dims: Sequence[Any]) -> list[Tensor]:
    """Return tensors with a first axis for the batch of vmap, of size 1 if it shares a tensor."""
    return [
        tensor.unsqueeze(0) if dim is None else tensor.movedim(dim, 0)
        for tensor, dim in zip(tensors, in_dims, strict=False)
    ]


def differentiable(
    function: type[torch.autograd.Function], operator: Callable[..., Tensor], *arguments: Any
) -> Tensor:
    """Call an operator, by its `function` where this is needed.

    `torch.func.grad` refuses operators with `register_autograd`; `torch.compile` accepts both.
    The operator itself takes less time.
    """
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return function.apply(*arguments)
    return operator(*arguments)


def result_like(rhs: Tensor, *others: Tensor) -> Tensor:
    """Allocate a result, in the memory order of `rhs` if it has its shape."""
    if all(other.shape[:-1] == rhs.shape[:-1] for other in others):
        batch = rhs.shape[:-1]
    else:
        sizes = zip(rhs.shape[:-1], *(other.shape[:-1] for other in others), strict=True)
        batch = torch.Size(map(common_size, sizes))
    shape = (*batch, max(rhs.shape[-1], *(other.shape[-1] for other in others)))
    return torch.empty_like(rhs) if rhs.shape == shape else rhs.new_empty(shape)


def fake_solution(lower: Tensor, diag: Tensor, upper: Tensor, rhs: Tensor, *_: Any) -> Tensor:
    """Allocate the result of a solve: the fake of an operator with these operands."""
    return result_like(rhs, lower, diag, upper)


def keep_operands(ctx: Any, inputs: tuple[Any, ...], output: Tensor, tensors: int = 4) -> None:
    """Keep what the derivative of a solve needs: the `setup_context` of an operator.

    The first inputs are `tensors` tensors, of which the last four are lower, diag, upper and rhs.
    """
    *matrix, rhs = inputs[:tensors]
    ctx.options = inputs[tensors:]
    ctx.rhs_shape = rhs.shape
    # Without x if no diagonal needs a gradient.
    solution = [output] if any(ctx.needs_input_grad[tensors - 4 : tensors - 1]) else []
    ctx.save_for_backward(*matrix, *solution)


def vector_if_shared(diagonal: Tensor, rows: int) -> Tensor:
    """Return a diagonal of a matrix that all systems share as a tensor of one axis."""
    length = diagonal.shape[-1]
    if diagonal.numel() != length:
        return diagonal
    vector = diagonal.reshape(length)
    return vector.expand(rows) if length == 1 else vector


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
    x, y = x.conj(), -y
    gradients: list[Tensor | None] = []
    for offset, diagonal, is_needed in zip((-1, 0, 1), diagonals, needed, strict=True):
        if not is_needed:
            gradients.append(None)
            continue
        product = y * _shifted(x, offset, periodic=periodic, minus_own=has_sums)
        if not diagonal.is_complex() and product.is_complex():
            product = product.real
        if diagonal.shape[-1] == product.shape[-1] - 1 > 1:  # without row 0, or without the last
            product = product[..., 1:] if offset < 0 else product[..., :-1]
        gradients.append(product.sum_to_size(diagonal.shape))
    return gradients


def _shifted(x: Tensor, offset: int, *, periodic: bool, minus_own: bool) -> Tensor:
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

"""Tensors and numbers of a call as tensors of one dtype, with the rows along the last axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from .._runtime.arrays import Shape, padded_shape

__all__ = ["as_tensors", "batch_first", "differentiable", "promoted", "rows_last"]

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
            if not any(_is_complex(value) for value in matrix):
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
    return dtype.to_complex() if any(_is_complex(value) for value in named.values()) else dtype


def _is_inexact(dtype: torch.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


def _is_complex(value: Any) -> bool:
    return value.is_complex() if isinstance(value, Tensor) else isinstance(value, complex)


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

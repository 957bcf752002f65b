"""Array operations of PyTorch for the formulas that libraries share; see pysolvers/_xp.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from .._xp import ArrayLibrary
from ._operands import as_tensors, is_complex

_REFUSED = (complex, np.complexfloating, np.ndarray)  # new_full takes none of them


def _checked(name: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}: need a tensor or a number, got {type(value).__name__}")
    return value


def _like(name: str, value: Tensor | float, like: Tensor) -> Tensor:
    rule = f"{name} must be a real number or a tensor of real numbers"
    if isinstance(value, Tensor):
        if value.is_complex():
            raise TypeError(f"{rule}, got {value.dtype}")
        return value.to(like)
    if isinstance(value, _REFUSED):
        raise TypeError(f"{rule}, got {type(value).__name__}")
    return like.new_full((), value)


def _points(value: Any, like: Tensor) -> Tensor:
    if is_complex(value):
        raise TypeError(f"x must contain real values, got {getattr(value, 'dtype', value)}")
    return torch.as_tensor(value, dtype=like.dtype, device=like.device)


def _ones(count: int, like: Tensor) -> Tensor:
    return torch.ones(count, dtype=like.real.dtype, device=like.device)


def _rows(tensor: Tensor, start: int, stop: int, axis: int) -> Tensor:
    return tensor.narrow(axis, start, stop - start)


def _padded(tensor: Tensor, before: int, after: int, axis: int) -> Tensor:
    inner = -1 - axis if axis < 0 else tensor.ndim - 1 - axis  # axes after this one
    return pad(tensor, (0, 0) * inner + (before, after))


def _add(tensor: Tensor, axis: int, index: int, values: Tensor) -> Tensor:
    return _put(tensor, axis, index, tensor.select(axis, index) + values)


def _put(tensor: Tensor, axis: int, index: int, values: Tensor) -> Tensor:
    """Return a tensor with new values in a row. select_scatter has no complex gradients."""
    size = tensor.shape[axis]
    first = index % size
    row = values.expand_as(tensor.select(axis, first)).unsqueeze(axis)
    before, after = tensor.narrow(axis, 0, first), tensor.narrow(axis, first + 1, size - first - 1)
    return torch.cat((before, row, after), axis)


def _locate(knots: Tensor, points: Tensor) -> Tensor:
    knots = knots.detach()
    # The sum has the batch of both, also that of vmap, in contiguous memory.
    points = (points.detach() + torch.zeros_like(knots[..., :1])).contiguous()
    if knots.numel() == knots.shape[-1]:  # one line for the whole batch
        return torch.searchsorted(knots.reshape(-1).contiguous(), points, right=True)
    lines = knots.expand(*points.shape[:-1], knots.shape[-1]).contiguous()
    return torch.searchsorted(lines, points, right=True)


def _take(tensor: Tensor, indices: Tensor) -> Tensor:
    if indices.numel() == indices.shape[-1]:
        return tensor.index_select(-1, indices.reshape(-1))
    return torch.take_along_dim(tensor, indices, -1)


def _computed(tensor: Tensor) -> Tensor:
    """Return a tensor as it is: no compiler of torch changes the order of divisions."""
    return tensor


XP = ArrayLibrary(
    torch,
    torch.movedim,
    as_tensors,
    _checked,
    _like,
    _points,
    is_complex,
    torch.complex,
    _ones,
    _rows,
    _padded,
    _add,
    _put,
    _locate,
    _take,
    Tensor.detach,
    _computed,
)

"""Operands, results and gradients of systems as tensors, with the rows along the last axis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad

from .._runtime.arrays import common_size, padded_shape
from .._runtime.lines import Shape

_OPERANDS = (Tensor, int, float, complex)
_LARGE = 1 << 22  # bytes from which on NumPy asks for huge pages
_PLAIN = (Tensor, torch.nn.Parameter)
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
    if dtypes is None and _have_one_dtype(named):
        return dict(named)
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


def _have_one_dtype(named: Mapping[str, Any]) -> bool:
    """Return whether operands are tensors of one dtype that solvers have."""
    dtype = None
    for value in named.values():
        if not isinstance(value, Tensor) or (dtype is not None and value.dtype is not dtype):
            return False
        dtype = value.dtype
    return dtype in _DTYPES


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
    axes = len(shape.full)
    if tensor.ndim != axes:
        tensor = tensor.reshape(padded_shape(tensor.shape, shape.axis, axes))
    return tensor if shape.axis == axes - 1 else tensor.movedim(shape.axis, -1)


def axis_back(x: Tensor, axis: int) -> Tensor:
    """View a result, with its rows last, with them along an axis that is not negative."""
    return x if axis == x.ndim - 1 else x.movedim(-1, axis)


def summed(gradient: Tensor, shape: torch.Size) -> Tensor:
    """Return the sum of a gradient over the axes along which an operand broadcasts."""
    return gradient if gradient.shape == shape else gradient.sum_to_size(shape)


def batch_first(tensors: Sequence[Tensor], in_dims: Sequence[Any]) -> list[Tensor]:
    """Return tensors with a first axis for the batch of vmap, of size 1 if it shares a tensor."""
    return [
        tensor.unsqueeze(0) if dim is None else tensor.movedim(dim, 0)
        for tensor, dim in zip(tensors, in_dims, strict=False)
    ]


def differentiable(
    function: type[torch.autograd.Function],
    operator: Callable[..., Tensor],
    *arguments: Any,
) -> Tensor:
    """Call an operator, by its `function` where this is needed.

    `torch.func.grad` refuses operators with `register_autograd`; `torch.compile` accepts both.
    The operator itself takes less time, and `function.direct`, which is called without the
    dispatcher of PyTorch, half of that time; `function.direct` is called where no transformation,
    mode or class of tensors asks for the operator.
    """
    if _is_transformed() or forward_ad._current_level >= 0:  # which the function refuses
        return function.apply(*arguments)
    direct = getattr(function, "direct", None)
    if direct is None or not _are_plain(arguments):
        return operator(*arguments)
    if torch.is_grad_enabled():
        for each in arguments:
            if isinstance(each, Tensor) and each.requires_grad:
                return direct.apply(*arguments)
    return direct.run(*arguments)


class Direct(torch.autograd.Function):
    """An operator that is called without the dispatcher of PyTorch.

    `of` makes a class for each operator, with `run`, `keep` and `backward`, the functions of the
    operator.
    """

    run: Callable[..., Any]
    keep: Callable[..., None]

    @classmethod
    def of(cls, run: Callable[..., Any], keep: Callable[..., None], backward: Any) -> type[Direct]:
        """Return the class for an operator."""
        functions = {"run": run, "keep": keep, "backward": backward}

        def forward(ctx: Any, *arguments: Any) -> Any:
            ctx.has_plain_operands = True
            found = run(*arguments)
            keep(ctx, arguments, found)
            return found

        functions["forward"] = forward
        return type("Direct", (cls,), {k: staticmethod(f) for k, f in functions.items()})


def _are_plain(arguments: Sequence[Any]) -> bool:
    """Return whether tensors are plain, and nothing watches their operations."""
    tensors = [each for each in arguments if isinstance(each, Tensor)]
    return not _is_watched() and all(map(is_plain, tensors))


def is_plain(tensor: Tensor) -> bool:
    """Return whether the memory of a tensor has its values, and its class is that of PyTorch."""
    return (
        type(tensor) in _PLAIN
        and (tensor.is_cpu or tensor.is_cuda)
        and not (tensor.is_neg() or tensor.is_conj())
        and not torch._C._functorch.is_legacy_batchedtensor(tensor)
    )


def _is_watched() -> bool:
    """Return whether a mode of PyTorch sees the operations, or a trace of them is made."""
    return bool(torch._C._len_torch_dispatch_stack() or torch._C._get_tracing_state() is not None)


def fake_empty(tensor: Tensor, shape: Sequence[int] | None = None, **options: Any) -> Tensor:
    """Allocate as `empty_like` does, by PyTorch alone."""
    if shape is None:
        return torch.empty_like(tensor, **options)
    return tensor.new_empty(shape, **options)


def empty_like(tensor: Tensor, shape: Sequence[int] | None = None) -> Tensor:
    """Allocate a tensor of a shape, or in the memory order of another one, without values.

    Large ones are arrays of NumPy, which asks for huge pages, as PyTorch does not: a solve of
    4.5 million unknowns with a result in new memory takes half of the time.
    """
    size = tensor.numel() if shape is None else prod(shape)
    if not tensor.is_cpu or size * tensor.element_size() < _LARGE:
        return torch.empty_like(tensor) if shape is None else tensor.new_empty(shape)
    plan = fake_empty(tensor, shape, device="meta")
    flat = np.empty(size, str(tensor.dtype).removeprefix("torch."))
    return torch.from_numpy(flat).as_strided(plan.shape, plan.stride())


def has_no_graph() -> bool:
    """Return whether operations are made for their values alone."""
    return not (torch.is_grad_enabled() or _is_transformed()) and not _is_watched()


def _is_transformed() -> bool:
    """Return whether a program is made of the operations, or `torch.func` changes them."""
    return bool(torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active())


def result_like(rhs: Tensor, *others: Tensor, empty: Callable[..., Tensor] = empty_like) -> Tensor:
    """Allocate a result, in the memory order of an operand that has its shape and is dense."""
    shape: Sequence[int] = rhs.shape
    if all(other.shape == shape for other in others) and 0 not in rhs.stride():
        return empty(rhs)
    if all(other.shape[:-1] == shape[:-1] for other in others):
        batch = rhs.shape[:-1]
    else:
        sizes = zip(rhs.shape[:-1], *(other.shape[:-1] for other in others), strict=True)
        batch = torch.Size(map(common_size, sizes))
    rows = [each.shape[-1] for each in (rhs, *others)]
    shape = (*batch, max(rows) if rows[0] else 0)
    for each in (rhs, *others):  # a gradient can be one number for all
        if each.shape == shape and each.dtype == rhs.dtype and 0 not in each.stride():
            return empty(each)
    return empty(rhs, shape)


def fake_solution(lower: Tensor, diag: Tensor, upper: Tensor, rhs: Tensor, *_: Any) -> Tensor:
    """Allocate the result of a solve: the fake of an operator with these operands."""
    return result_like(rhs, lower, diag, upper, empty=fake_empty)


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


def transposed(diagonals: Sequence[Tensor], rows: int, *, periodic: bool) -> list[Tensor]:
    """Return the diagonals of the transposed matrices: views unless periodic."""
    lower, diag, upper = diagonals
    if periodic:
        return [upper.roll(1, -1), diag, lower.roll(-1, -1)]
    if upper.shape[-1] == rows > 1:
        upper = upper[..., :-1]
    if lower.shape[-1] == rows > 1:
        lower = lower[..., 1:]
    return [upper, diag, lower]

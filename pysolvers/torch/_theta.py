r"""Implicit steps with gradients: an operator of PyTorch over `pysolvers.theta_step`.

With M = I - h A, h = theta dt and M y = u + h s the step is x = u + (y - u) / theta. For the
gradient g of a real function with respect to x,

    M^T (theta lambda) = g,   grad u = (1 - 1/theta) g + lambda,   grad s = h lambda,
    grad A_ij = h lambda_i y_j,   grad dt = theta (lambda . s + sum A_ij lambda_i y_j).

grad u is a step from g with A^T instead of A, so that the reverse pass calls the same entry of the
backend. Operations of PyTorch would write the three diagonals of M, and take a pass for each term.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

import torch
from torch import Tensor

from .._checks import require
from .._lines.engine import step_directly
from .._runtime.arrays import resolve_shape
from .._steps import theta_step as step_arrays
from ._operands import (
    Direct,
    axis_back,
    batch_first,
    differentiable,
    fake_empty,
    has_no_graph,
    is_plain,
    result_like,
    rows_last,
    summed,
    transposed,
    vector_if_shared,
)
from ._products import alike, diagonal_gradients, step_products
from ._xp import XP

_NAME = "pysolvers::theta_step"
_OPTIONS = "float theta, bool periodic, bool? pivot"
torch.library.define(
    _NAME,
    "(Tensor lower, Tensor diag, Tensor upper, Tensor u, Tensor? source, Tensor dt, "
    f"{_OPTIONS}) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)
_step = torch.ops.pysolvers.theta_step.default


def takes(dt: Any, *values: Any) -> bool:
    """Return whether the operator takes these operands: real tensors, and numbers.

    A device has the length of a step as a number of the host, which a tensor there is not.
    """
    kinds = ("cpu", "cuda") if isinstance(dt, int | float) else ("cpu",)
    return all(
        value.device.type in kinds and not value.is_complex()
        if isinstance(value, Tensor)
        else value is None or isinstance(value, int | float)
        for value in values
    )


def make_step(
    operands: dict[str, Tensor],
    dt: Any,
    theta: float,
    *,
    axis: int,
    periodic: bool,
    pivot: bool | None,
) -> Tensor:
    """Make the step of `pysolvers.torch.theta_step` with tensors of one dtype."""
    if operands["u"].ndim == 0:
        raise ValueError("u must have at least one dimension, got a 0-d array")
    shape = resolve_shape(operands, axis, leader="u", periodic=periodic)
    views = {name: rows_last(tensor, shape) for name, tensor in operands.items()}
    u = views["u"]
    on_host = u if u.device.type == "cpu" else torch.empty(0, dtype=u.dtype)
    length = XP.like("dt", dt, on_host)
    require(length.ndim == 0, "dt must be a number or an array without axes", length.shape)
    source = views.pop("source", None)
    x = _call(*views.values(), source, length, float(theta), periodic, pivot)
    return axis_back(x, shape.axis)


def _call(*arguments: Any) -> Tensor:
    """Make the step; the arguments are those of the operator."""
    return differentiable(_Differentiable, _step, *arguments)


def _run(
    lower: Tensor,
    diag: Tensor,
    upper: Tensor,
    u: Tensor,
    source: Tensor | None,
    dt: Tensor,
    theta: float,
    periodic: bool,
    pivot: bool | None,
) -> Tensor:
    """Make the step with detached tensors; diagonals of one matrix for all go as vectors."""
    x = result_like(u, lower, diag, upper, *([] if source is None else [source]))
    lower, diag, upper, u = [a.detach() if a.requires_grad else a for a in (lower, diag, upper, u)]
    lower, diag, upper = [vector_if_shared(a, x.shape[-1]) for a in (lower, diag, upper)]
    u = u if u.shape == x.shape else u.expand(x.shape)
    if source is not None:
        source = vector_if_shared(source.detach(), x.shape[-1])
    matrix, length = (lower, diag, upper), float(dt)
    own = (theta * length, 1 / theta, source, None)
    options = (-1, x, pivot, periodic, None)
    made = None
    if isfinite(length):
        made = step_directly((*matrix, u), options, "nan", None, "theta_step", "theta", own)
    if made is None:  # the call needs planning, or has an error in its options
        given: dict[str, Any] = {"dt": length, "theta": theta, "source": source}
        given |= {"periodic": periodic, "pivot": pivot}
        made = step_arrays(*matrix, u, **given, on_singular="nan", out=x)
    return made


torch.library.impl(_NAME, ("cpu", "cuda"), _run)


@torch.library.register_fake(_NAME)
def _fake(
    lower: Tensor,
    diag: Tensor,
    upper: Tensor,
    u: Tensor,
    source: Tensor | None,
    *options: Any,
) -> Tensor:
    """Return the result without values."""
    others = [] if source is None else [source]
    return result_like(u, lower, diag, upper, *others, empty=fake_empty)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Keep the operands and, if a gradient of the matrix or of dt is asked for, the solution."""
    *matrix, u, source, dt, ctx.theta, ctx.periodic, ctx.pivot = inputs
    needs = ctx.needs_input_grad
    ctx.u_shape, ctx.source_shape = u.shape, None if source is None else source.shape
    has_matrix = any(needs[:3]) or needs[5]
    kept = (u, output) if has_matrix else (None, None)
    ctx.save_for_backward(*matrix, dt, *kept, source if needs[5] else None)


def _backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """Return the gradients: a step with the transposes, and products."""
    saved, is_value = ctx.saved_tensors, has_no_graph() and is_plain(grad)
    if is_value:  # views of tensors without gradients take less time
        saved = tuple(a if a is None else a.detach() for a in saved)
    lower, diag, upper, dt, u, x, source = saved
    theta, periodic, needs = ctx.theta, ctx.periodic, ctx.needs_input_grad
    diagonals = (lower, diag, upper)
    matrix = transposed(diagonals, grad.shape[-1], periodic=periodic)
    # That of dt needs lambda_i y_j at all entries, of which the gradients of A are h times.
    needed = (True,) * 3 if needs[5] else needs[:3]
    is_fused = is_value and any(needed)
    h = theta * (float(dt) if is_fused else dt)
    scale = (-1.0 if is_fused else -torch.ones_like(h)) if needs[5] else -h
    of_source, of_dt, of_u, known = None, None, None, None
    if is_fused and grad.is_cuda:
        made = _with_products(
            *(matrix, grad, u, x, h, theta, scale, periodic, ctx.pivot),
            are_plain=getattr(ctx, "has_plain_operands", False),
        )
        of_u, known = made or (None, None)
    if of_u is None:
        of_u = _call(*matrix, grad, None, dt, theta, periodic, ctx.pivot)
    factor = of_u  # lambda
    if theta != 1 and (not is_fused or needs[4] or (needs[5] and source is not None)):
        factor = torch.add(of_u, grad, alpha=1 / theta - 1)
    found: list[Tensor | None] = [None] * 3
    if x is not None:
        if is_fused:
            y, numbers = x, {"theta": theta, "scale": scale}
            if known is None:
                known = step_products(of_u, grad, u, x, periodic=periodic, **numbers)
        else:
            y = scale * (x if theta == 1 else torch.lerp(u.expand_as(x), x, theta))
        found = diagonal_gradients(diagonals, y, factor, needed, periodic=periodic, known=known)
    if needs[4]:
        of_source = summed(h * factor, ctx.source_shape)
    if needs[5]:
        whole = [product for product in found if product is not None]
        of_dt = sum((a * p).sum() for a, p in zip(diagonals, whole, strict=True))
        of_dt = theta * (of_dt if source is None else of_dt + (factor * source).sum())
        found = [h * p if n else None for p, n in zip(whole, needs[:3], strict=True)]
    of_u = summed(of_u, ctx.u_shape) if needs[3] else None
    return (*found, of_u, of_source, of_dt, None, None, None)


def _with_products(
    matrix: list[Tensor],
    grad: Tensor,
    u: Tensor,
    x: Tensor,
    h: float,
    theta: float,
    scale: float,
    periodic: bool,
    pivot: bool | None,
    *,
    are_plain: bool,
) -> tuple[Tensor, tuple[Tensor, ...]] | None:
    """Make the transposed step and the products of `step_products` in one call on a device.

    None if h is not finite, or if the extension leaves the step to Python.
    """
    if not isfinite(h):
        return None
    grad, u = alike(grad, x), x if theta == 1 else alike(u, x)  # with theta = 1 u does not count
    matrix = [vector_if_shared(a, x.shape[-1]) for a in matrix]
    of_u, *products = [torch.empty_like(x) for _ in range(4)]
    own = (h, 1 / theta, *(None,) * 6, (x, u, *products), scale)
    options = (-1, of_u, pivot, periodic, None)
    made = step_directly(
        *((*matrix, grad), options, "nan", None, "theta_step", "theta", own), are_plain=are_plain
    )
    return None if made is None else (of_u, tuple(products))


class _Differentiable(torch.autograd.Function):
    """The operator and its derivative; see the class in `_solve`."""

    direct = Direct.of(_run, _keep, _backward)
    generate_vmap_rule = True
    setup_context = staticmethod(_keep)
    backward = staticmethod(_backward)

    @staticmethod
    def forward(
        lower: Tensor,
        diag: Tensor,
        upper: Tensor,
        u: Tensor,
        source: Tensor | None,
        dt: Tensor,
        theta: float,
        periodic: bool,
        pivot: bool | None,
    ) -> Tensor:
        return _step(lower, diag, upper, u, source, dt, theta, periodic, pivot)


torch.library.register_autograd(_NAME, _backward, setup_context=_keep)


@torch.library.register_vmap(_NAME)
def _vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Tensor, int]:
    """Make the steps of a batch, whose axis comes first; lengths of their own scale A and s."""
    *matrix, u, source, dt = arguments[:6]
    tensors = batch_first([*matrix, u], in_dims)
    if source is not None:
        source = batch_first([source], in_dims[4:5])[0]
    if in_dims[5] is not None:
        scale = dt.reshape(-1, *(1,) * (tensors[0].ndim - 1))
        tensors[:3] = [a * scale for a in tensors[:3]]
        source = None if source is None else source * scale
        dt = torch.ones((), dtype=dt.dtype)
    return _step(*tensors, source, dt, *arguments[6:]), 0

"""Linear recurrences with gradients: an operator of PyTorch over `pysolvers.linear_recurrence`.

The operator has operands with equally many axes, t last, sizes of 1 where they broadcast. For
x_t = a_t x_{t-1} + c_t x_{t-2} + b_t and the gradient g of a real function with respect to x,

    λ_t = g_t + conj(a_{t+1}) λ_{t+1} + conj(c_{t+2}) λ_{t+2},   grad b = λ,
    grad a_t = λ_t conj(x_{t-1}),   grad c_t = λ_t conj(x_{t-2}),

summed over the axes along which an operand broadcasts. λ is a call of the same operator in the
other direction, with coefficients that are shifted by one and two rows, so that second derivatives
follow.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from .._checks import require_flag
from .._recurrence import linear_recurrence as recur_arrays
from .._recurrence.differentiable import lines_of
from ._operands import (
    Direct,
    axis_back,
    batch_first,
    differentiable,
    fake_empty,
    result_like,
    vector_if_shared,
)
from ._xp import XP

_NAME = "pysolvers::linear_recurrence"
torch.library.define(
    _NAME,
    "(Tensor a, Tensor c, Tensor b, bool has_second, bool reverse, int? threads) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)
_recur = torch.ops.pysolvers.linear_recurrence.default


def linear_recurrence(
    a: Tensor | complex,
    b: Tensor,
    *,
    initial: Tensor | complex | tuple[Tensor | complex, Tensor | complex] | None = None,
    second: Tensor | complex | None = None,
    axis: int = -1,
    reverse: bool = False,
    threads: int | None = None,
) -> Tensor:
    r"""Compute many linear recurrences of first or second order along one axis, with gradients.

    .. math:: x_t = a_t x_{t-1} + c_t x_{t-2} + b_t, \quad 0 \le t < n.

    Parameters
    ----------
    a, b : Tensor or number
        As in `pysolvers.linear_recurrence`.
    initial, second, axis, reverse
        As in `pysolvers.linear_recurrence`.
    threads : int, optional
        Number of host threads, as in `pysolvers.solve_tridiagonal`.

    Returns
    -------
    Tensor, shape of the broadcast operands
        The values x, on the device of the operands.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.torch.solve_tridiagonal`.
    BackendError
        If the device is not available.

    Notes
    -----
    `x` is differentiable with respect to every tensor, any number of times, in reverse mode. With
    the gradient g of a real function with respect to x, the reverse pass is the recurrence

    .. math:: \lambda_t = g_t + \bar a_{t+1} \lambda_{t+1} + \bar c_{t+2} \lambda_{t+2}

    in the other direction; the gradients of b, a and c are :math:`\lambda_t`,
    :math:`\lambda_t \bar x_{t-1}` and :math:`\lambda_t \bar x_{t-2}`, summed over the axes along
    which an operand broadcasts. The coefficients and x are kept between the passes.

    The function works inside `torch.compile`, `torch.vmap` and `torch.func.grad`.

    Examples
    --------
    >>> import torch
    >>> from pysolvers.torch import linear_recurrence
    >>> a = torch.tensor(0.5, requires_grad=True)
    >>> x = linear_recurrence(a, torch.tensor([1.0, 0.0, 0.0, 0.0]))
    >>> x
    tensor([1.0000, 0.5000, 0.2500, 0.1250], grad_fn=<...>)
    >>> x[-1].backward()
    >>> a.grad
    tensor(0.7500)
    """
    require_flag("reverse", reverse)
    lines = lines_of(XP, a, b, initial=initial, second=second, axis=axis, reverse=bool(reverse))
    ndim = len(lines.shape.full)
    views = [
        line.reshape((1,) * (ndim - line.ndim) + tuple(line.shape))
        for line in (*lines.coefficients, lines.b)
    ]
    if second is None:
        views.insert(1, views[0].new_zeros((1,) * ndim))
    has_second = second is not None
    x = _call(*views, has_second, bool(reverse), threads)
    return axis_back(x, lines.shape.axis)


def _call(*arguments: Any) -> Tensor:
    """Compute; the arguments are those of the operator."""
    return differentiable(_Differentiable, _recur, *arguments)


def _run(
    a: Tensor, c: Tensor, b: Tensor, has_second: bool, reverse: bool, threads: int | None
) -> Tensor:
    """Compute with detached tensors; coefficients of all lines alike go as vectors."""
    x = result_like(b, a, c)
    a, c, b = (v.detach() if v.requires_grad else v for v in (a, c, b))
    if not x.numel():
        return x
    rows = x.shape[-1]
    return recur_arrays(
        vector_if_shared(a, rows),
        b if b.shape == x.shape else b.expand(x.shape),
        second=vector_if_shared(c, rows) if has_second else None,
        reverse=reverse,
        threads=threads,
        out=x,
    )


torch.library.impl(_NAME, ("cpu", "cuda"), _run)


@torch.library.register_fake(_NAME)
def _fake(a: Tensor, c: Tensor, b: Tensor, *_: Any) -> Tensor:
    return result_like(b, a, c, empty=fake_empty)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Keep what the derivative needs; without x if no coefficient needs a gradient."""
    a, c, b, *ctx.options = inputs
    ctx.b_shape = b.shape
    solution = [output] if any(ctx.needs_input_grad[:2]) else []
    ctx.save_for_backward(a, c, *solution)


def _backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """Return the gradients, from the recurrence in the other direction."""
    a, c, *solution = ctx.saved_tensors
    has_second, reverse, threads = ctx.options
    rows = grad.shape[-1]
    moved = (_moved(a.conj(), 1, rows, reverse), _moved(c.conj(), 2, rows, reverse))
    options = (has_second, not reverse, threads)
    y = _call(*moved, grad, *options)
    needs = ctx.needs_input_grad
    gradients: list[Tensor | None] = [None, None]
    for order, coefficient in enumerate((a, c), 1):
        if solution and needs[order - 1] and (order == 1 or has_second):
            product = y * _moved(solution[0].conj(), -order, rows, reverse)
            gradients[order - 1] = product.sum_to_size(coefficient.shape)
    return (*gradients, y.sum_to_size(ctx.b_shape) if needs[2] else None, None, None, None)


def _moved(line: Tensor, by: int, rows: int, reverse: bool) -> Tensor:
    """Return the entries of a line `by` rows further, 0 beyond its ends; a constant as it is."""
    if line.shape[-1] == 1 != rows:
        return line
    by = -by if reverse else by
    if abs(by) >= rows:
        return torch.zeros_like(line)
    return pad(line[..., by:], (0, by)) if by > 0 else pad(line[..., :by], (-by, 0))


class _Differentiable(torch.autograd.Function):
    """The operator and its derivative, in the form that `torch.func` needs."""

    direct = Direct.of(_run, _keep, _backward)
    generate_vmap_rule = True
    setup_context = staticmethod(_keep)
    backward = staticmethod(_backward)

    @staticmethod
    def forward(
        a: Tensor, c: Tensor, b: Tensor, has_second: bool, reverse: bool, threads: int | None
    ) -> Tensor:
        return _recur(a, c, b, has_second, reverse, threads)


torch.library.register_autograd(_NAME, _backward, setup_context=_keep)


@torch.library.register_vmap(_NAME)
def _vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Tensor, int]:
    """Compute for a batch, whose axis comes first."""
    return _recur(*batch_first(arguments[:3], in_dims), *arguments[3:]), 0

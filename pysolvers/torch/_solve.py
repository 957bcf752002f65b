"""Direct solves with gradients: an operator of PyTorch over `pysolvers.solve_tridiagonal`.

The operator has operands with equally many axes, rows last, sizes of 1 where they broadcast.
For x = A⁻¹ b and the gradient g of a real function with respect to x,

    λ = A⁻ᴴ g,   grad b = λ,   grad l_i = -λ_i x̄_{i-1},   grad d_i = -λ_i x̄_i,
    grad u_i = -λ_i x̄_{i+1},

summed over the axes along which an operand broadcasts (M. B. Giles, "Collected matrix derivative
results for forward and reverse mode algorithmic differentiation", 2008). A⁻ᴴ g is a call of the
same operator with the off-diagonals exchanged and shifted by one row, so that second derivatives
follow. Unless A is periodic, Aᵀ is a view: without row 0 of l and without row n - 1 of u.

With a matrix of its own for each system, the solve moves 5 words per unknown. The reverse pass
moves 5 for λ and 5 for the gradients of the diagonals, on the CPU by one entry of the backend
(_products.py), on a device if the products are fused by a compiler.
It keeps the diagonals and x, nothing else.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from .._options import OnSingular, pivot_code
from .._row_sums import RowSums, form_of
from .._runtime.arrays import resolve_shape
from .._runtime.backends import require
from .._steps.differentiable import solve_masked
from ..tridiagonal import solve_tridiagonal as solve_arrays
from ._by_sums import solve_by_sums
from ._operands import (
    Direct,
    as_tensors,
    axis_back,
    batch_first,
    differentiable,
    fake_solution,
    keep_operands,
    result_like,
    rows_last,
    summed,
    transposed,
    vector_if_shared,
)
from ._products import diagonal_gradients
from ._xp import XP

_NAME = "pysolvers::solve_tridiagonal"
torch.library.define(
    _NAME,
    "(Tensor lower, Tensor diag, Tensor upper, Tensor rhs, bool periodic, bool? pivot, "
    "str on_singular, int? threads) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)
_solve = torch.ops.pysolvers.solve_tridiagonal.default


def solve_tridiagonal(
    lower: Tensor | complex,
    diag: Tensor | complex | RowSums,
    upper: Tensor | complex,
    rhs: Tensor,
    *,
    axis: int = -1,
    periodic: bool = False,
    pivot: bool | None = None,
    where: Tensor | None = None,
    on_singular: OnSingular = "nan",
    threads: int | None = None,
) -> Tensor:
    r"""Solve many independent tridiagonal systems along one axis, with gradients.

    For every index of the other axes, find `x` with

    .. math:: l_i x_{i-1} + d_i x_i + u_i x_{i+1} = b_i, \quad 0 \le i < n.

    Parameters
    ----------
    lower, diag, upper : Tensor or number, shape broadcastable with `rhs`
        The three diagonals. Unless `periodic`, ``lower[0]`` and ``upper[n - 1]`` are ignored and
        have the gradient 0; `lower` and `upper` can omit them and have n - 1 entries along `axis`.
        A matrix that broadcasts over a batch axis, or that `torch.vmap` shares, is never expanded
        in memory. `diag` can be `pysolvers.RowSums`: row sums instead of the diagonal, for real
        matrices of diffusion.
    rhs : Tensor, shape (..., n, ...)
        Right-hand sides b; at least one axis.
    axis : int, default: -1
        Axis of the systems in the broadcast shape of the operands. An operand of one dimension
        lies along it and has n entries, as in `pysolvers.solve_tridiagonal`.
    periodic : bool, default: False
        Whether ``lower[0]`` couples to ``x[n - 1]`` and ``upper[n - 1]`` to ``x[0]``.
    pivot : bool, optional
        Whether to exchange rows; by default in the systems that are not diagonally dominant.
    where : Tensor of bool, optional
        Rows that are inside, broadcastable with `rhs`, as in `pysolvers.solve_tridiagonal`. The
        matrix is then expanded to the shape of the result.
    on_singular : {'nan', 'raise', 'warn', 'ignore'}
        Reaction to a singular system: set its solution to NaN, raise an error, issue a warning,
        or do nothing. With ``'raise'`` and ``'warn'`` a call waits for the device.
    threads : int, optional
        Number of host threads, as in `pysolvers.solve_tridiagonal`.

    Returns
    -------
    x : Tensor, shape of the broadcast operands
        The solutions, on the device of the operands.

    Raises
    ------
    TypeError
        If an operand is neither a tensor nor a number, or has another dtype than float32,
        float64, complex64, complex128, integers or booleans.
    ValueError
        If an option is unknown, an operand of one dimension does not have n entries, other shapes
        do not broadcast, or `axis` is out of range. With `RowSums`, if `pivot` is True, or if an
        entry has a sign that the form excludes: on the CPU, and on a device if `on_singular` is
        ``'raise'`` or ``'warn'``.
    SingularSystemError
        If a system is singular and `on_singular` is ``'raise'``.

    See Also
    --------
    factor_tridiagonal : Factor matrices once, to solve with them often.
    pysolvers.solve_tridiagonal : The function for arrays of any library, without gradients.

    Notes
    -----
    `x` is differentiable with respect to every tensor, any number of times, in reverse mode.
    With the gradient g of a real function with respect to x, the reverse pass solves
    :math:`A^H \lambda = g`; then ([1]_, section 2.3.1)

    .. math:: \bar b = \lambda, \quad \bar l_i = -\lambda_i \bar x_{i-1}, \quad
        \bar d_i = -\lambda_i \bar x_i, \quad \bar u_i = -\lambda_i \bar x_{i+1}.

    Gradients are summed over the axes along which an operand broadcasts, and are not computed
    for operands that need none. Between the passes the three diagonals and x are kept, nothing
    else; without x if no diagonal needs a gradient.

    With :class:`~pysolvers.RowSums` the gradients are :math:`\bar s_i = -\lambda_i \bar x_i`,
    :math:`\bar l_i = -\lambda_i (\bar x_{i-1} - \bar x_i)` and
    :math:`\bar u_i = -\lambda_i (\bar x_{i+1} - \bar x_i)`. The transposes are solved with factors
    of A on the CPU, and on a device by cyclic reduction with the pivots of A, log2(n) passes.

    The function works inside `torch.compile` with ``fullgraph=True``, `torch.vmap`,
    `torch.func.grad`, `torch.func.jacrev` and CUDA graphs, on the current stream. Forward-mode
    derivatives (`torch.func.jvp`) are not offered.

    The operands promote as in `pysolvers.solve_tridiagonal`: Python numbers do not raise the
    precision of tensors, integers alone give float64, and a real matrix with a complex `rhs`
    stays real.

    References
    ----------
    .. [1] M. B. Giles, "Collected matrix derivative results for forward and reverse mode
       algorithmic differentiation", in *Advances in Automatic Differentiation*, Springer,
       35-44, 2008.

    Examples
    --------
    >>> import torch
    >>> from pysolvers.torch import solve_tridiagonal
    >>> diag = torch.full((3,), 2.0, requires_grad=True)
    >>> x = solve_tridiagonal(-1.0, diag, -1.0, torch.tensor([1.0, 0.0, 1.0]))
    >>> x.sum().backward()
    >>> diag.grad
    tensor([-1.5000, -2.0000, -1.5000])
    """
    if where is not None:
        solve = partial(solve_tridiagonal, pivot=pivot, on_singular=on_singular, threads=threads)
        return solve_masked(
            *(XP, solve, lower, diag, upper, rhs, where), axis=axis, periodic=periodic
        )
    middle, form = form_of(diag)
    operands = as_tensors({"lower": lower, "diag": middle, "upper": upper, "rhs": rhs})
    if operands["rhs"].ndim == 0:
        raise ValueError("rhs must have at least one dimension, got a 0-d tensor")
    shape = resolve_shape(operands, axis, leader="rhs", periodic=periodic)
    views = [rows_last(tensor, shape) for tensor in operands.values()]
    if form is not None:
        if pivot is not None:
            pivot_code(pivot, require("cpu").PIVOTS, has_sums=True)
        x = solve_by_sums(*views, periodic, False, form.check_signs, on_singular, threads)
        return x.movedim(-1, shape.axis)
    x = _call(*views, periodic, pivot, on_singular, threads)
    return axis_back(x, shape.axis)


def _call(*arguments: Any) -> Tensor:
    """Solve; the arguments are those of the operator."""
    return differentiable(_Differentiable, _solve, *arguments)


def _run(
    lower: Tensor,
    diag: Tensor,
    upper: Tensor,
    rhs: Tensor,
    periodic: bool,
    pivot: bool | None,
    on_singular: Any,
    threads: int | None,
) -> Tensor:
    """Solve with detached tensors; diagonals of one matrix for all go as vectors."""
    x = result_like(rhs, lower, diag, upper)
    lower, diag, upper, rhs = (
        a.detach() if a.requires_grad else a for a in (lower, diag, upper, rhs)
    )
    lower, diag, upper = (vector_if_shared(a, x.shape[-1]) for a in (lower, diag, upper))
    return solve_arrays(
        lower,
        diag,
        upper,
        rhs if rhs.shape == x.shape else rhs.expand(x.shape),
        periodic=periodic,
        pivot=pivot,
        on_singular=on_singular,
        threads=threads,
        out=x,
    )


torch.library.impl(_NAME, ("cpu", "cuda"), _run)
torch.library.register_fake(_NAME, fake_solution)


def _backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """Return the gradients: y = A^-T g of the right side, and -y x of the diagonals."""
    lower, diag, upper, *solution = ctx.saved_tensors
    diagonals, periodic = (lower, diag, upper), ctx.options[0]
    matrix = transposed(diagonals, grad.shape[-1], periodic=periodic)
    if any(diagonal.is_complex() for diagonal in diagonals):  # conjugates g, not the matrix
        y = _call(*matrix, grad.conj(), *ctx.options).conj()
    else:
        y = _call(*matrix, grad, *ctx.options)
    needs = ctx.needs_input_grad
    gradients: list[Tensor | None] = [None] * 3
    if solution:
        gradients = diagonal_gradients(diagonals, solution[0], y, needs[:3], periodic=periodic)
    return (*gradients, summed(y, ctx.rhs_shape) if needs[3] else None, *(None,) * 4)


class _Differentiable(torch.autograd.Function):
    """The operator and its derivative, in the form that `torch.func` needs."""

    direct = Direct.of(_run, keep_operands, _backward)
    generate_vmap_rule = True
    setup_context = staticmethod(keep_operands)
    backward = staticmethod(_backward)

    # Names for all arguments: torch.compile of torch 2.7 counts them.
    @staticmethod
    def forward(
        lower: Tensor,
        diag: Tensor,
        upper: Tensor,
        rhs: Tensor,
        periodic: bool,
        pivot: bool | None,
        on_singular: str,
        threads: int | None,
    ) -> Tensor:
        return _solve(lower, diag, upper, rhs, periodic, pivot, on_singular, threads)


torch.library.register_autograd(_NAME, _backward, setup_context=keep_operands)


@torch.library.register_vmap(_NAME)
def _vmap(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Tensor, int]:
    """Solve for a batch, whose axis comes first."""
    return _solve(*batch_first(arguments[:4], in_dims), *arguments[4:]), 0

"""Solves with kept factors, with gradients: operators over `pysolvers.factor_tridiagonal`.

Factors are no tensors. An operator makes them and returns their number, a tensor of one integer
that owns them: they exist as long as this tensor. Another operator solves with the factors of a
number. It takes the diagonals, too, for the gradients. With these it makes the factors again if
they do not exist any more, because the tensor was copied, or if they have another batch shape,
because `torch.vmap` gave the diagonals an axis that they had not when the factors were made.

For x = op(A)⁻¹ b with op(A) = A, Aᵀ or Aᴴ and the gradient g with respect to x,

    op      y             gradient of b    gradient of A_ij
    A       A⁻ᴴ g         y                -y_i x̄_j
    Aᴴ      A⁻¹ g         y                -x_i ȳ_j
    Aᵀ      A⁻¹ ḡ         ȳ                -x̄_i ȳ_j

on the three diagonals. The reverse pass solves with the same factors. It keeps them, the diagonals
and x.
"""

from __future__ import annotations

from itertools import count, dropwhile
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import torch
from torch import Tensor

from .._checks import axis_number, require
from .._lines.factor import TridiagonalFactor as Factors, rhs_shape
from .._options import OnSingular, Trans, pivot_code
from .._row_sums import RowSums, form_of
from .._runtime.arrays import axis_of_solutions, factor_axis, factor_shape
from .._runtime.backends import require as require_backend
from .._runtime.lines import Shape
from .._steps.differentiable import masked_matrix, masked_product
from ._by_sums import solve_transposed_sums
from ._operands import (
    Direct,
    as_tensors,
    batch_first,
    differentiable,
    fake_empty,
    keep_operands,
    result_like,
    rows_last,
)
from ._products import diagonal_gradients
from ._xp import XP

_MAKE, _SOLVE = "pysolvers::factor_tridiagonal", "pysolvers::solve_factored"
_OPTIONS = "int rows, bool periodic, bool? pivot, str on_singular, bool has_sums, bool check_signs"
torch.library.define(
    _MAKE,
    f"(Tensor lower, Tensor diag, Tensor upper, {_OPTIONS}) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)
torch.library.define(
    _SOLVE,
    "(Tensor number, Tensor lower, Tensor diag, Tensor upper, Tensor rhs, str trans, "
    f"{_OPTIONS}) -> Tensor",
    tags=torch.Tag.pt2_compliant_tag,
)
_make = torch.ops.pysolvers.factor_tridiagonal.default
_solve = torch.ops.pysolvers.solve_factored.default


class _Owner(np.ndarray):
    """The number of factors, with the factors; a tensor over its memory keeps it."""

    factors: Factors


_OWNERS: WeakValueDictionary[int, _Owner] = WeakValueDictionary()
_NUMBERS = count()


class TridiagonalFactor:
    """Factors of a batch of tridiagonal matrices, with gradients; see `factor_tridiagonal`.

    Attributes
    ----------
    lower, diag, upper : Tensor
        The diagonals, the axis of the matrices last; `diag` has the row sums of matrices that
        are given by `RowSums`.
    axis : int
        Axis of the systems in right-hand sides, as in `pysolvers.TridiagonalFactor`.
    rows : int
        Number of rows of each matrix.
    periodic : bool
        The argument of `factor_tridiagonal`.
    where : Tensor or None
        The rows that are inside, the axis of the matrices last.

    Examples
    --------
    >>> import torch
    >>> from pysolvers.torch import factor_tridiagonal
    >>> off = torch.full((4,), -1.0)
    >>> factor = factor_tridiagonal(off, 2.5, off)
    >>> factor.solve(torch.tensor([1.5, 0.5, 0.5, 1.5]))
    tensor([1., 1., 1., 1.])
    """

    def __init__(
        self,
        lower: Tensor | complex,
        diag: Tensor | complex | RowSums,
        upper: Tensor | complex,
        *,
        axis: int = -1,
        rows: int | None = None,
        periodic: bool = False,
        pivot: bool | None = None,
        on_singular: OnSingular = "nan",
        where: Tensor | None = None,
    ) -> None:
        middle, form = form_of(diag)
        self.where = None
        if where is not None:
            matrix = lower, middle, upper, where
            lower, middle, upper, inside, axis = masked_matrix(
                XP, *matrix, axis=axis, rows=rows, periodic=periodic
            )
            place = factor_axis(axis, inside.ndim)[0]
            self.where, rows = inside.movedim(place, -1), middle.shape[place]
        has_sums = form is not None
        if has_sums and pivot is not None:
            pivot_code(pivot, require_backend("cpu").PIVOTS, has_sums=True)
        named = as_tensors({"lower": lower, "diag": middle, "upper": upper})
        shape, own = factor_shape(named, axis, rows, periodic=periodic)
        self.lower, self.diag, self.upper = (rows_last(tensor, shape) for tensor in named.values())
        self.axis = own
        self.rows = shape.rows
        self.periodic = periodic
        check_signs = form is not None and form.check_signs
        self._options = (shape.rows, periodic, pivot, on_singular, has_sums, check_signs)
        diagonals = (self.lower, self.diag, self.upper)
        self._number = _make(*(tensor.detach() for tensor in diagonals), *self._options)

    def solve(self, rhs: Tensor, *, axis: int | None = None, trans: Trans = "N") -> Tensor:
        r"""Solve :math:`A x = b`, :math:`A^T x = b` or :math:`A^H x = b`.

        Parameters
        ----------
        rhs : Tensor
            Right-hand sides b, to whose shape the matrices broadcast. One dimension lies along
            the systems, for all matrices.
        axis : int, optional
            Axis of the systems in the solution; by default the attribute `axis`.
        trans : {'N', 'T', 'H'}
            Whether to solve with A, its transpose or its conjugate transpose.

        Returns
        -------
        x : Tensor, shape of `rhs`, or of the matrices if `rhs` has one dimension
            The solutions.

        Raises
        ------
        TypeError
            If `rhs` is no tensor, or does not promote to the precision of the factors.
        ValueError
            If the matrices do not broadcast to `rhs`, or `trans` is unknown.
        """
        require(trans in ("N", "T", "H"), "trans must be 'N', 'T' or 'H'", trans)
        (b,) = as_tensors({"rhs": rhs}).values()
        b = b.to(torch.promote_types(b.dtype, self.diag.dtype))
        shape = self._rhs_shape(b, axis, "rhs")
        b = rows_last(b, shape)  # one axis broadcasts to the matrices
        diagonals = (self.lower, self.diag, self.upper)
        missing = len(shape.batch) - len(batch_of(*diagonals))
        padded = (t.reshape((1,) * missing + tuple(t.shape)) for t in diagonals)
        inside = b if self.where is None else torch.where(self.where, b, 0)
        arguments = (self._number, *padded, inside, trans, *self._options)
        x = differentiable(_Differentiable, _solve, *arguments)
        x = x if self.where is None else torch.where(self.where, x, b)
        return x.movedim(-1, shape.axis)

    def _rhs_shape(self, rhs: Tensor, axis: int | None, name: str) -> Shape:
        """Return the shape of solutions for right-hand sides, or raise."""
        batch = batch_of(self.lower, self.diag, self.upper)
        along = len(batch) + 1 + self.axis
        return rhs_shape((*batch[:along], self.rows, *batch[along:]), self.axis, rhs, axis, name)

    def multiply(self, x: Tensor, *, axis: int | None = None) -> Tensor:
        """Multiply the matrices by tensors.

        Parameters
        ----------
        x, axis
            As `rhs` and `axis` of `solve`.

        Returns
        -------
        Tensor
            The products A x; outside `where` x.

        Raises
        ------
        TypeError
            If `x` is no tensor.
        ValueError
            If `x` does not have the rows of the matrices, or shapes do not broadcast.
        """
        (own,) = as_tensors({"x": x}).values()
        ndim = len(batch_of(self.lower, self.diag, self.upper)) + 1
        place = axis_of_solutions(axis, self.axis, ndim, own.ndim, "x")
        if own.ndim > 1:
            own = own.movedim(axis_number(place, own.ndim, f"x of {own.ndim} axes"), -1)
        if own.shape[-1:] != (self.rows,):
            raise ValueError(f"x must have {self.rows} rows, got shape {tuple(x.shape)}")
        y = masked_product(
            XP,
            (self.lower, self.diag, self.upper),
            self.rows,
            own,
            self.where,
            has_sums=self._options[4],
            axis=-1,
            periodic=self.periodic,
        )
        return y.movedim(-1, place)


def factor_tridiagonal(
    lower: Tensor | complex,
    diag: Tensor | complex | RowSums,
    upper: Tensor | complex,
    *,
    axis: int = -1,
    rows: int | None = None,
    periodic: bool = False,
    pivot: bool | None = None,
    on_singular: OnSingular = "nan",
    where: Tensor | None = None,
) -> TridiagonalFactor:
    """Factor a batch of tridiagonal matrices for repeated solves, with gradients.

    Parameters
    ----------
    lower, diag, upper : Tensor or number, shapes that broadcast
        The three diagonals, as in `solve_tridiagonal`, or `RowSums` in the place of `diag`; at
        least one tensor.
    axis : int, default: -1
        Axis of the systems, in the diagonals and in right-hand sides, as in
        `pysolvers.factor_tridiagonal`: any axis of right-hand sides for diagonals of one
        dimension. Under `torch.vmap` it is an axis of the tensors that are not mapped.
    rows : int, optional
        Number of rows; by default that of the diagonals. Needed if no diagonal has more than one
        entry along `axis`.
    periodic : bool, default: False
        Whether the matrices have corner entries, as in `solve_tridiagonal`.
    pivot : bool, optional
        Whether to exchange rows; by default in the matrices that are not diagonally dominant.
    on_singular : {'nan', 'raise', 'warn', 'ignore'}
        Reaction to a singular matrix; with ``'nan'``, solves with this matrix return NaN.
    where : Tensor of bool, optional
        Rows that are inside, broadcastable with the diagonals, as in `solve_tridiagonal`: solves
        keep the values of the right-hand sides outside.

    Returns
    -------
    TridiagonalFactor
        An object with the method ``solve``.

    Raises
    ------
    TypeError
        If a diagonal is neither a tensor nor a number, or has an unsupported dtype.
    ValueError
        If shapes do not broadcast, or `rows` is needed and not given.
    SingularSystemError
        If a matrix is singular and `on_singular` is ``'raise'``.

    See Also
    --------
    solve_tridiagonal : Solve without keeping the factors.

    Notes
    -----
    Solutions are differentiable with respect to the diagonals and the right-hand sides. The
    reverse pass solves with the same factors, transposed. A factor can be made and used inside
    `torch.compile`, `torch.func.grad` and `torch.vmap`. A graph that makes or uses factors
    contains a tensor on the CPU, their number, so that ``mode="reduce-overhead"`` of
    `torch.compile` does not record it as a CUDA graph.

    Examples
    --------
    >>> import torch
    >>> from pysolvers.torch import factor_tridiagonal
    >>> diag = torch.full((3,), 2.0, requires_grad=True)
    >>> factor = factor_tridiagonal(-1.0, diag, -1.0)
    >>> x = factor.solve(torch.tensor([[1.0, 0.0, 1.0], [0.0, 4.0, 0.0]]))
    >>> x.detach().round(decimals=4)
    tensor([[1., 1., 1.],
            [2., 4., 2.]])
    >>> x.sum().backward()
    >>> diag.grad
    tensor([ -4.5000, -10.0000,  -4.5000])
    """
    return TridiagonalFactor(
        lower,
        diag,
        upper,
        axis=axis,
        rows=rows,
        periodic=periodic,
        pivot=pivot,
        on_singular=on_singular,
        where=where,
    )


@torch.library.impl(_MAKE, ("cpu", "cuda"))
def _run_make(
    lower: Tensor,
    diag: Tensor,
    upper: Tensor,
    rows: int,
    periodic: bool,
    pivot: bool | None,
    on_singular: Any,
    has_sums: bool,
    check_signs: bool,
) -> Tensor:
    """Factor, keep the factors and return their number; they end with the tensor."""
    owner = np.asarray(next(_NUMBERS), np.int64).view(_Owner)
    options = (rows, periodic, pivot, on_singular, has_sums, check_signs)
    owner.factors = _factors(lower, diag, upper, *options)
    _OWNERS[int(owner)] = owner
    return torch.from_numpy(owner)


def _factors(
    lower: Tensor,
    diag: Tensor,
    upper: Tensor,
    rows: int,
    periodic: bool,
    pivot: bool | None,
    on_singular: Any,
    has_sums: bool,
    check_signs: bool,
) -> Factors:
    """Return factors of detached tensors."""
    # An array of one dimension has an entry for each row.
    lower, diag, upper = (
        tensor.detach().expand(rows) if tensor.shape == (1,) else tensor.detach()
        for tensor in (lower, diag, upper)
    )
    return Factors(
        lower,
        RowSums(diag, check_signs=check_signs) if has_sums else diag,
        upper,
        rows=rows,
        periodic=periodic,
        pivot=pivot,
        on_singular=on_singular,
    )


@torch.library.register_fake(_MAKE)
def _fake_make(lower: Tensor, *arguments: Any) -> Tensor:
    """Return the number of factors without a value."""
    return torch.empty((), dtype=torch.int64, device="cpu")


@torch.library.register_vmap(_MAKE)
def _vmap_make(info: Any, in_dims: tuple[Any, ...], *arguments: Any) -> tuple[Tensor, None]:
    """Factor the matrices of a batch; the number is one for all."""
    return _make(*batch_first(arguments[:3], in_dims), *arguments[3:]), None


def _run_solve(
    number: Tensor,
    lower: Tensor,
    diag: Tensor,
    upper: Tensor,
    rhs: Tensor,
    trans: Any,
    *options: Any,
) -> Tensor:
    """Solve with the kept factors, or with new ones if the batch is another one."""
    diagonals = (lower, diag, upper)
    x = result_like(rhs, *diagonals)
    _, periodic, _, _, has_sums, _ = options
    if has_sums and trans != "N" and x.is_cuda:  # of real matrices; H is T
        wide = rhs.detach().expand(x.shape)
        lower, diag, upper = (a.detach() for a in diagonals)
        return x.copy_(solve_transposed_sums(lower, diag, upper, wide, periodic=periodic))
    owner = _OWNERS.get(int(number))
    if owner is not None and _varying(owner.factors.shape[:-1]) == _varying(batch_of(*diagonals)):
        factors = owner.factors
    else:
        factors = _factors(*diagonals, *options)
    return factors.solve(rhs.detach().expand(x.shape), axis=-1, trans=trans, out=x)


def batch_of(*tensors: Tensor) -> tuple[int, ...]:
    """Return the common batch shape."""
    return tuple(torch.broadcast_shapes(*(tensor.shape[:-1] for tensor in tensors)))


def _varying(batch: tuple[int, ...]) -> tuple[int, ...]:
    """Return a batch shape without leading axes of size 1."""
    return tuple(dropwhile(lambda size: size == 1, batch))


torch.library.impl(_SOLVE, ("cpu", "cuda"), _run_solve)


@torch.library.register_fake(_SOLVE)
def _fake_solve(
    number: Tensor, lower: Tensor, diag: Tensor, upper: Tensor, rhs: Tensor, *options: Any
) -> Tensor:
    """Return the solution without values."""
    return result_like(rhs, lower, diag, upper, empty=fake_empty)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Keep for the reverse pass what `keep_operands` keeps, of five tensors."""
    keep_operands(ctx, inputs, output, tensors=5)  # the number of the factor is before the others


def _backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    """Return the gradients: one solve with the transposed factors, and products."""
    number, lower, diag, upper, *solution = ctx.saved_tensors
    (trans, *options), needs = ctx.options, ctx.needs_input_grad
    reverse = "H" if trans == "N" else "N"
    g = grad.conj() if trans == "T" else grad
    y = differentiable(_Differentiable, _solve, number, lower, diag, upper, g, reverse, *options)
    gradients: list[Tensor | None] = [None] * 3
    if solution:
        (x,) = solution
        left, right = {"N": (y, x), "H": (x, y), "T": (x.conj(), y)}[trans]
        gradients = diagonal_gradients(
            (lower, diag, upper),
            right,
            left,
            needs[1:4],
            periodic=options[1],
            has_sums=options[4],
        )
    of_rhs = y.conj() if trans == "T" else y
    of_rhs = of_rhs.sum_to_size(ctx.rhs_shape) if needs[4] else None
    return (None, *gradients, of_rhs, *(None,) * 7)


class _Differentiable(torch.autograd.Function):
    """The solve and its derivative; see the class in `_solve`."""

    direct = Direct.of(_run_solve, _keep, _backward)
    generate_vmap_rule = True
    setup_context = staticmethod(_keep)
    backward = staticmethod(_backward)

    @staticmethod
    def forward(
        number: Tensor,
        lower: Tensor,
        diag: Tensor,
        upper: Tensor,
        rhs: Tensor,
        trans: str,
        rows: int,
        periodic: bool,
        pivot: bool | None,
        on_singular: str,
        has_sums: bool,
        check_signs: bool,
    ) -> Tensor:
        options = (rows, periodic, pivot, on_singular, has_sums, check_signs)
        return _solve(number, lower, diag, upper, rhs, trans, *options)


torch.library.register_autograd(_SOLVE, _backward, setup_context=_keep)


@torch.library.register_vmap(_SOLVE)
def _vmap_solve(
    info: Any, in_dims: tuple[Any, ...], number: Tensor, *arguments: Any
) -> tuple[Tensor, int]:
    """Solve for a batch, whose axis comes first."""
    return _solve(number, *batch_first(arguments[:4], in_dims[1:]), *arguments[4:]), 0

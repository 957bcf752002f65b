"""Batched tridiagonal systems in functions of JAX."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
from jax import numpy as jnp
from jax.custom_batching import custom_vmap
from jax.tree_util import register_dataclass, register_pytree_node
from jax.typing import ArrayLike

from .._checks import require_flag
from .._options import Trans, check_choice, pivot_code
from .._row_sums import RowSums, complex_sums, form_of
from .._runtime.arrays import (
    axis_of_solutions,
    factor_axis,
    factor_shape,
    padded_shape,
    require_rows,
    resolve_shape,
)
from .._runtime.backends import require
from .._runtime.lines import Shape
from .._steps.differentiable import masked_matrix, masked_product, single, solve_masked
from .._transposed_sums import solve_transposed as solve_transposed_sums
from ._call import has_device, solve_lines
from ._mesh import equally_varying, varying_axes
from ._products import multiply, multiply_by_sums, multiply_negated
from ._split import solve_split
from ._xp import XP, as_operands, as_plain

__all__ = [
    "TridiagonalFactor",
    "factor_tridiagonal",
    "solve_tridiagonal",
]

register_pytree_node(
    RowSums,
    lambda form: ((form.s,), form.check_signs),
    lambda check_signs, children: RowSums(children[0], check_signs=check_signs),
)


def solve_tridiagonal(
    lower: ArrayLike,
    diag: ArrayLike | RowSums,
    upper: ArrayLike,
    rhs: ArrayLike,
    *,
    axis: int = -1,
    periodic: bool = False,
    pivot: bool | None = None,
    where: ArrayLike | None = None,
    axis_name: str | None = None,
) -> jax.Array:
    r"""Solve many independent tridiagonal systems along one axis, as a function of JAX.

    For every index of the other axes, find `x` with

    .. math:: l_i x_{i-1} + d_i x_i + u_i x_{i+1} = r_i, \quad 0 \le i < n.

    Parameters
    ----------
    lower, diag, upper : array_like, shape broadcastable with `rhs`
        The three diagonals. Unless `periodic`, ``lower[0]`` and ``upper[n - 1]`` are
        ignored, and `lower` and `upper` can omit them: they then have n - 1 entries along
        `axis`. A matrix that broadcasts over a batch axis, or that `jax.vmap` does not map,
        is not expanded in memory. `diag` can be `pysolvers.RowSums`: row sums instead of the
        diagonal, for real matrices of diffusion. Their signs are not checked.
    rhs : array_like, shape (..., n, ...)
        Right-hand sides; at least one axis.
    axis : int, default: -1
        Axis of the systems in the broadcast shape. An operand of one dimension lies along it
        and has n entries, as in `pysolvers.solve_tridiagonal`.
    periodic : bool, default: False
        Whether ``lower[0]`` couples to ``x[n - 1]`` and ``upper[n - 1]`` to ``x[0]``.
    pivot : bool, optional
        Whether to exchange rows. By default rows are exchanged in the systems that are not
        diagonally dominant.
    where : array_like of bool, optional
        Rows that are inside, broadcastable with `rhs`, as in `pysolvers.solve_tridiagonal`. The
        matrix is then expanded to the shape of the result.
    axis_name : str, optional
        Axis of a mesh over whose devices the rows are split, inside ``shard_map``: the operands
        have the rows of one device, equally many on each, in the order of the devices. `lower`
        and `upper` then cannot omit entries. Rows are exchanged within a device alone, so that
        the systems should be diagonally dominant.

    Returns
    -------
    x : jax.Array, shape of the broadcast operands
        The solutions, on the device of the operands: a CPU or a CUDA device. The solution
        of a singular system is NaN. The dtype is the one to which JAX promotes the
        operands.

    Raises
    ------
    TypeError
        If an operand is not float32, float64, complex64, complex128, or of integers or
        booleans. If a matrix with `RowSums` is complex.
    ValueError
        If an operand of one dimension does not have n entries, or other shapes do not
        broadcast. With `RowSums`, if `pivot` is True.

    See Also
    --------
    pysolvers.solve_tridiagonal : The same for arrays outside of transformations.

    Notes
    -----
    The function can be used under ``jit``, ``vmap``, ``grad``, ``jvp``, ``vjp``, ``scan``,
    ``while_loop`` and ``shard_map``, in any order, and differentiated any number of times.

    With :math:`A x = r`, a tangent is :math:`\dot x = A^{-1} (\dot r - \dot A x)`. In reverse
    mode, with the cotangent g of x ([1]_),

    .. math:: \lambda = A^{-T} g, \quad \bar r = \lambda, \quad
        \bar l_i = -\lambda_i x_{i-1}, \quad \bar d_i = -\lambda_i x_i, \quad
        \bar u_i = -\lambda_i x_{i+1},

    summed over the axes along which an operand broadcasts. The reverse pass is one more
    solve, with the transposes of the matrices. It keeps the matrix and x, and nothing else.

    With :class:`~pysolvers.RowSums` the cotangents are
    :math:`\bar s_i = -\lambda_i x_i`, :math:`\bar l_i = -\lambda_i (x_{i-1} - x_i)` and
    :math:`\bar u_i = -\lambda_i (x_{i+1} - x_i)`. The transposes are solved by cyclic reduction
    with the pivots of the matrices, in log2(n) passes, each of 4 words per unknown and more.

    With `axis_name`, a device solves three systems per line with its rows, and exchanges 7
    numbers per line, or 2 if all lines share a matrix, with the others (partition method,
    [2]_); with `where` the entries of the mask at the ends, too. With :class:`~pysolvers.RowSums`
    there are four systems, and solutions have the accuracy of one device; gradients do not, as the
    reverse pass adds parts of both signs. It takes as many solves.

    References
    ----------
    .. [1] M. B. Giles, "Collected matrix derivative results for forward and reverse mode
       algorithmic differentiation", *Advances in Automatic Differentiation*, Springer,
       35-44, 2008.
    .. [2] H. H. Wang, "A parallel method for tridiagonal equations", *ACM Transactions on
       Mathematical Software* 7, 170-183, 1981.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from pysolvers.jax import solve_tridiagonal
    >>> rhs = jnp.array([1.0, 0.0, 1.0])
    >>> print(solve_tridiagonal(-1.0, 2.0, -1.0, rhs))
    [1. 1. 1.]
    >>> slope = jax.grad(lambda d: solve_tridiagonal(-1.0, d, -1.0, rhs).sum())(2.0)
    >>> print(f"{slope:.3f}")
    -5.000
    """
    require_flag("periodic", periodic)
    middle, form = form_of(diag)
    has_sums = form is not None
    code = pivot_code(pivot, require("cpu").PIVOTS, has_sums=has_sums)
    if where is not None and axis_name is None:
        return solve_masked(
            *(XP, partial(solve_tridiagonal, pivot=pivot), lower, diag, upper, rhs),
            jnp.asarray(where),
            axis=axis,
            periodic=bool(periodic),
        )
    if has_sums:
        _require_real("solve_tridiagonal", lower=lower, diag=middle, upper=upper)
        rhs = as_plain("rhs", rhs)
        if jnp.iscomplexobj(rhs):
            solve = partial(
                solve_tridiagonal,
                *(lower, RowSums(middle), upper),
                axis=axis,
                periodic=periodic,
                where=where,
                axis_name=axis_name,
            )
            return jax.lax.complex(solve(rhs.real), solve(rhs.imag))
    operands = as_operands(lower=lower, diag=middle, upper=upper, rhs=rhs)
    if operands["rhs"].ndim == 0:
        raise ValueError("rhs must have at least one dimension, got a 0-d array")
    if axis_name is not None:
        lines = operands
        if where is not None:
            mask = as_plain("where", where)
            if mask.dtype != bool:
                raise TypeError(f"where: need booleans, got {mask.dtype}: write where != 0")
            lines = {**operands, "where": mask}
        shape = resolve_shape(lines, axis, leader="rhs", periodic=bool(periodic), omits=False)
        own: dict[str, Any] = {"periodic": bool(periodic), "pivot": pivot, "has_sums": has_sums}
        return _solve_split(lines, shape, axis_name, **own)
    shape = resolve_shape(operands, axis, leader="rhs", periodic=bool(periodic))
    options = {"shape": shape, "periodic": bool(periodic), "pivot": code}
    return _solve(*operands.values(), **options, has_sums=has_sums)


@register_dataclass
@dataclass(frozen=True)
class TridiagonalFactor:
    """Tridiagonal matrices, prepared for solves, as a pytree of JAX; see `factor_tridiagonal`.

    Attributes
    ----------
    lower, diag, upper : jax.Array
        The diagonals, of one dtype and with the same number of axes; `diag` can be `RowSums`.
    axis : int
        Axis of the systems in right-hand sides, as in `pysolvers.TridiagonalFactor`.
    rows : int
        Number of rows of each matrix.
    periodic : bool
        Whether the matrices have corner entries.
    pivot : bool or None
        Whether rows are exchanged.
    where : jax.Array or None
        The rows that are inside, with as many axes as the diagonals.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pysolvers.jax import factor_tridiagonal
    >>> factor = factor_tridiagonal(-1.0, 2.5, -1.0, rows=4)
    >>> bool(jnp.allclose(factor.solve(jnp.array([1.5, 0.5, 0.5, 1.5])), 1.0))
    True
    """

    lower: jax.Array
    diag: jax.Array | RowSums
    upper: jax.Array
    axis: int = field(metadata={"static": True})
    rows: int = field(metadata={"static": True})
    periodic: bool = field(metadata={"static": True})
    pivot: bool | None = field(metadata={"static": True})
    where: jax.Array | None = None

    def solve(self, rhs: ArrayLike, *, trans: Trans = "N") -> jax.Array:
        r"""Solve with the matrices, their transposes or their adjoints.

        Parameters
        ----------
        rhs : array_like, shape (..., n, ...)
            Right-hand sides, with n entries along the attribute `axis`. The matrices broadcast
            over the other axes; an `rhs` of one dimension is the right-hand side of all matrices.
        trans : {'N', 'T', 'H'}
            Whether to solve :math:`A x = b`, :math:`A^T x = b` or :math:`A^H x = b`.

        Returns
        -------
        x : jax.Array
            The solutions; NaN for singular matrices.

        Raises
        ------
        ValueError
            If `rhs` does not have n rows or the axis, or `trans` is unknown.
        """
        check_choice("trans", trans, require("cpu").TRANS)
        diag, form = form_of(self.diag)
        if form is None:
            operands = as_operands(lower=self.lower, diag=diag, upper=self.upper, rhs=rhs)
        else:  # the matrix stays real
            operands = as_operands(lower=self.lower, diag=diag, upper=self.upper)
            operands["rhs"] = as_plain("rhs", rhs)
        *matrix, b = operands.values()
        along = self._axis_of("rhs", b)
        if b.ndim == 1:
            axis = along % matrix[0].ndim
            batch = ((*a.shape[:axis], self.rows, *a.shape[axis + 1 :]) for a in matrix)
            require_rows("rhs", b, jnp.broadcast_shapes(*batch), axis)
        # Constant coefficients of one matrix: an array of one axis has an entry for each row.
        lower, diag, upper = (single(a, self.rows) for a in matrix)
        options: dict[str, Any] = {
            "axis": along,
            "periodic": self.periodic,
            "pivot": self.pivot,
        }

        middle = diag if form is None else RowSums(diag)

        def solve(b: jax.Array) -> jax.Array:
            return solve_tridiagonal(lower, middle, upper, b, **options)

        if trans == "N" and self.where is None:
            return solve(b)
        shape = jax.eval_shape(solve, b).shape
        b = b.reshape(padded_shape(b.shape, along % len(shape), len(shape)))
        b = outside = jnp.broadcast_to(b, shape)
        inside = self._inside(along, len(shape))
        if inside is not None:
            b = jnp.where(inside, b, 0)
        if trans == "N":
            x = solve(b)
        else:
            (x,) = jax.linear_transpose(solve, b)(b.conj() if trans == "H" else b)
            x = x.conj() if trans == "H" else x
        return x if inside is None else jnp.where(inside, x, outside)

    def _axis_of(self, name: str, b: jax.Array) -> int:
        """Return the axis of the systems in solutions, counted from the end, or raise."""
        ndim = self.lower.ndim
        if ndim > 1 and self.axis >= 0:
            raise ValueError(
                f"a factor of matrices of one dimension along axis {self.axis} has diagonals of "
                f"{ndim} axes, as jax.vmap returns it: solve under the same jax.vmap, or write "
                "axis=-1"
            )
        axis = axis_of_solutions(None, self.axis, ndim, b.ndim, name)
        if b.ndim > 1 and (-axis > b.ndim or b.shape[axis] != self.rows):
            raise ValueError(
                f"{name} must have {self.rows} rows along axis {axis}, got shape {b.shape}"
            )
        return axis

    def _inside(self, axis: int, ndim: int) -> jax.Array | None:
        """Return the mask for solutions of `ndim` axes, the systems along `axis`."""
        mask = self.where
        if mask is None or mask.ndim > 1:
            return mask
        return mask.reshape(padded_shape(mask.shape, axis % ndim, ndim))

    def multiply(self, x: ArrayLike) -> jax.Array:
        """Multiply the matrices by arrays.

        Parameters
        ----------
        x : array_like, shape (..., n, ...)
            As `rhs` of `solve`.

        Returns
        -------
        jax.Array
            The products A x; outside `where` x.

        Raises
        ------
        ValueError
            If `x` does not have n rows.
        """
        diag, form = form_of(self.diag)
        own = x = as_plain("x", x)
        axis = self._axis_of("x", own)
        if own.ndim == 1:  # along the axis of the matrices
            own = own.reshape(own.shape + (1,) * (-axis - 1))
        if own.ndim == 0 or own.shape[axis] != self.rows:
            raise ValueError(f"x must have {self.rows} rows along axis {axis}, got shape {x.shape}")
        return masked_product(
            XP,
            (self.lower, diag, self.upper),
            self.rows,
            own,
            self._inside(axis, own.ndim),
            has_sums=form is not None,
            axis=axis,
            periodic=self.periodic,
        )


def factor_tridiagonal(
    lower: ArrayLike,
    diag: ArrayLike | RowSums,
    upper: ArrayLike,
    *,
    axis: int = -1,
    rows: int | None = None,
    periodic: bool = False,
    pivot: bool | None = None,
    where: ArrayLike | None = None,
) -> TridiagonalFactor:
    """Prepare tridiagonal matrices for repeated solves, as a pytree of JAX.

    Parameters
    ----------
    lower, diag, upper : array_like, shapes that broadcast
        The three diagonals, as in `solve_tridiagonal`.
    axis : int, default: -1
        Axis of the systems, in the diagonals and in right-hand sides, as in
        `pysolvers.factor_tridiagonal`: any axis of right-hand sides for diagonals of one
        dimension. Under `jax.vmap` it is an axis of the arrays that are not mapped.
    rows : int, optional
        Number of rows n; by default that of the diagonals. Needed if no diagonal has more
        than one entry along `axis`.
    periodic, pivot
        As in `solve_tridiagonal`.
    where : array_like of bool, optional
        Rows that are inside, broadcastable with the diagonals, as in `solve_tridiagonal`: solves
        keep the values of the right-hand sides outside.

    Returns
    -------
    TridiagonalFactor
        A pytree with the method ``solve``. It can be an argument or a result of functions that
        JAX transforms, and a loop can carry it.

    Raises
    ------
    TypeError, ValueError
        As `solve_tridiagonal`.

    Notes
    -----
    The pytree holds the diagonals, so that gradients with respect to them are those of
    `solve_tridiagonal`. Matrices of their own are solved from the diagonals, 5 words per
    unknown, which is the minimum. A matrix that all systems share is eliminated once per call
    on the CPU and once per block of systems on a device; a solve then moves 2 words per
    unknown. The eliminated matrix is not kept between calls.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pysolvers.jax import factor_tridiagonal
    >>> factor = factor_tridiagonal(-1.0, jnp.full(3, 2.0), -1.0)
    >>> print(factor.solve(jnp.array([[1.0, 0.0, 1.0], [0.0, 4.0, 0.0]])))
    [[1. 1. 1.]
     [2. 4. 2.]]
    """
    require_flag("periodic", periodic)
    middle, form = form_of(diag)
    pivot_code(pivot, require("cpu").PIVOTS, has_sums=form is not None)
    if form is not None:
        _require_real("factor_tridiagonal", lower=lower, diag=middle, upper=upper)
    inside: jax.Array | None = None
    if where is not None:
        matrix = lower, middle, upper, jnp.asarray(where)
        lower, middle, upper, inside, axis = masked_matrix(
            XP, *matrix, axis=axis, rows=rows, periodic=bool(periodic)
        )
        rows = middle.shape[factor_axis(axis, middle.ndim)[0]]
    operands = as_operands(lower=lower, diag=middle, upper=upper)
    shape, own = factor_shape(operands, axis, rows, periodic=bool(periodic))
    lower, middle, upper = (_expanded(a, shape) for a in operands.values())
    middle = middle if form is None else RowSums(middle)
    options = own, shape.rows, bool(periodic), pivot
    return TridiagonalFactor(lower, middle, upper, *options, inside)


def _require_real(operation: str, **named: ArrayLike) -> None:
    """Raise TypeError for matrices given by row sums that are complex."""
    for name, value in named.items():
        array = as_plain(name, value)
        if jnp.iscomplexobj(array):
            raise complex_sums(operation, array.dtype)


@partial(jax.jit, static_argnames=("shape", "periodic", "pivot", "has_sums"))
def _solve(
    *operands: jax.Array, shape: Shape, periodic: bool, pivot: int, has_sums: bool
) -> jax.Array:
    """Solve for operands of one dtype."""
    if 0 in shape.full:
        return jnp.zeros(shape.full, operands[-1].dtype)
    axis = shape.axis - len(shape.full)  # counted from the end: vmap adds axes at the front
    lower, diag, upper, rhs = equally_varying([_expanded(a, shape) for a in operands])
    along: dict[str, Any] = {"axis": axis, "periodic": periodic}
    solve, solve_transposed = (
        batched(partial(solve_lines, **along, pivot=pivot, transposed=t, has_sums=has_sums))
        for t in (False, True)
    )
    if has_sums:
        solve_transposed = partial(_solve_transposed_sums, **along)
    # Without `checkpoint` the reverse pass would keep x and the matrix shifted by a row, too.
    by_form = multiply_by_sums if has_sums else multiply
    plain = jax.checkpoint(partial(by_form, **along), prevent_cse=False)
    has_products = not has_sums and _uses_products(rhs)

    def product(x: jax.Array) -> jax.Array:
        """Return A x, by the operation with a gradient of its own if there is one."""
        if has_products:
            return -multiply_negated(lower, diag, upper, x, axis, periodic)
        return plain(lower, diag, upper, x)

    return jax.lax.custom_linear_solve(
        product,
        jnp.broadcast_to(rhs, shape.full),
        lambda _, b: solve(lower, diag, upper, b),
        lambda _, b: solve_transposed(lower, diag, upper, b),
    )


def _solve_transposed_sums(
    lower: jax.Array,
    sums: jax.Array,
    upper: jax.Array,
    rhs: jax.Array,
    *,
    axis: int,
    periodic: bool,
) -> jax.Array:
    """Solve with the transposes of matrices given by row sums; operands as for `solve_lines`."""
    lower, sums, upper, rhs = (jnp.moveaxis(a, axis, -1) for a in (lower, sums, upper, rhs))
    rows = rhs.shape[-1]
    lower, sums, upper = (
        jnp.broadcast_to(a, (*a.shape[:-1], rows)) if a.shape[-1] == 1 else a
        for a in (lower, sums, upper)
    )
    if not periodic:
        lower, upper = lower[..., lower.shape[-1] - rows + 1 :], upper[..., : rows - 1]
        lower = jnp.concatenate((jnp.zeros_like(lower, shape=(*lower.shape[:-1], 1)), lower), -1)
        upper = jnp.concatenate((upper, jnp.zeros_like(upper, shape=(*upper.shape[:-1], 1))), -1)
    y = solve_transposed_sums(jnp, lower, sums, upper, rhs, periodic=periodic)
    return jnp.moveaxis(jnp.broadcast_to(y, rhs.shape), -1, axis)


def _solve_split(
    operands: dict[str, jax.Array],
    shape: Shape,
    axis_name: str,
    *,
    periodic: bool,
    pivot: bool | None,
    has_sums: bool,
) -> jax.Array:
    """Solve for operands of one dtype, and perhaps a mask, of which each device has some rows."""
    lines = []
    for array in operands.values():
        line = jnp.moveaxis(_expanded(array, shape), shape.axis, -1)
        lines.append(jnp.broadcast_to(line, (*line.shape[:-1], shape.rows)))
    lower, diag, upper, rhs, *mask = lines
    if 0 in shape.full:
        return jnp.zeros(shape.full, rhs.dtype)
    x = solve_split(
        partial(solve_tridiagonal, pivot=pivot),
        *(lower, diag, upper, rhs),
        axis_name=axis_name,
        periodic=periodic,
        has_sums=has_sums,
        inside=jnp.broadcast_to(mask[0], rhs.shape) if mask else None,
    )
    return jnp.moveaxis(x, -1, shape.axis)


def _expanded(array: jax.Array, shape: Shape) -> jax.Array:
    """Return an operand with all axes; one without entries, of one row, as a zero."""
    padded = padded_shape(array.shape, shape.axis, len(shape.full))
    if shape.rows == 1 and padded[shape.axis] == 0:
        batch = (*padded[: shape.axis], 1, *padded[shape.axis + 1 :])
        return jnp.zeros(batch, array.dtype)
    return array.reshape(padded)


def _uses_products(rhs: jax.Array) -> bool:
    """Return whether the derivatives use the kernel of a device.

    `shard_map` refuses primitives for which it has no rule. Where it can be in use, that is if
    operands vary over a mesh, and in versions of JAX that do not say, the derivatives are array
    operations.
    """
    return has_device() and hasattr(jax.lax, "pcast") and not varying_axes(rhs)


def batched(solve: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """Return `solve` with a rule for vmap: operands that are not mapped broadcast."""
    mapped = custom_vmap(solve)

    @mapped.def_vmap
    def rule(_: int, is_mapped: Sequence[bool], *operands: jax.Array) -> tuple[jax.Array, bool]:
        """Give operands that are not mapped an axis of length 1 and call the mapped form."""
        return mapped(
            *(a if m else a[None] for a, m in zip(operands, is_mapped, strict=True))
        ), True

    return mapped

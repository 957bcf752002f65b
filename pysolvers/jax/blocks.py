"""Block tridiagonal and pentadiagonal systems in functions of JAX."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp
from jax.typing import ArrayLike

from .._blocks import (
    solve_block_tridiagonal as solve_block_arrays,
    solve_pentadiagonal as solve_band_arrays,
)
from .._blocks.blocks import inverses, log_determinants
from .._blocks.differentiable import (
    BANDS,
    BLOCKS,
    bands_of,
    bands_solution,
    blocks_of,
    blocks_solution,
    by_columns,
    exchanges_rows,
    folds,
    logdet_of_ring,
    matrix_of_logdet,
    multiply_bands,
    multiply_blocks,
    require_assumption,
    transposed,
)
from .._blocks.systems import Assume
from .._checks import integer, require_flag
from .._options import pivot_code
from .._runtime.backends import require
from ._call import by_platform, solve_block_lines
from ._mesh import equally_varying
from ._xp import XP, as_plain
from .tridiagonal import batched

__all__ = ["block_tridiagonal_logdet", "solve_block_tridiagonal", "solve_pentadiagonal"]


def solve_pentadiagonal(
    lower2: ArrayLike | None,
    lower: ArrayLike | None,
    diag: ArrayLike,
    upper: ArrayLike,
    upper2: ArrayLike,
    rhs: ArrayLike,
    *,
    axis: int = -1,
    assume: Assume = "general",
    periodic: bool = False,
    pivot: bool | None = None,
) -> jax.Array:
    r"""Solve many independent pentadiagonal systems along one axis, as a function of JAX.

    .. math::

       l^{(2)}_i x_{i-2} + l_i x_{i-1} + d_i x_i + u_i x_{i+1} + u^{(2)}_i x_{i+2} = r_i,
       \quad 0 \le i < n.

    Parameters
    ----------
    lower2, lower, diag, upper, upper2, rhs : array_like
        As in `pysolvers.solve_pentadiagonal`.
    axis, assume, periodic, pivot
        As in `pysolvers.solve_pentadiagonal`.

    Returns
    -------
    jax.Array, shape of the broadcast operands
        The solutions; NaN for a matrix that is singular, or not positive definite as `assume`
        says.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.solve_pentadiagonal`.

    Notes
    -----
    The function can be used under all transformations of JAX, as
    `pysolvers.jax.solve_tridiagonal`. With the cotangent g of x the reverse pass is one solve with
    the transposed matrix,

    .. math:: \lambda = A^{-T} g, \quad \bar r = \lambda, \quad
        \bar a^{(k)}_i = -\lambda_i x_{i+k}

    for the diagonal :math:`a^{(k)}` at the distance k, summed over the axes along which it
    broadcasts. On a CPU and on a CUDA device XLA calls the kernels; on other platforms, and of a
    device for blocks of more than 4 rows, the arrays are copied to the host and back.

    A periodic system is solved as an open one with blocks of 4 rows and row exchanges. With
    ``pivot=False`` or ``assume='positive definite'`` it is bordered, which takes less time and
    needs a regular matrix without the last two rows and columns.

    Examples
    --------
    >>> import jax
    >>> import jax.numpy as jnp
    >>> from pysolvers.jax import solve_pentadiagonal
    >>> rhs = jnp.array([3.0, -1.0, 0.0, -1.0, 3.0])
    >>> print(solve_pentadiagonal(1.0, -4.0, 6.0, -4.0, 1.0, rhs).round(3))
    [1. 1. 1. 1. 1.]
    """
    require_flag("periodic", periodic)
    require_assumption(assume, pivot)
    exchanges = exchanges_rows(assume, pivot)
    code = pivot_code(exchanges, require("cpu").PIVOTS)
    place = integer("axis", axis)
    operands = _arrays(lower2=lower2, lower=lower, diag=diag, upper=upper, upper2=upper2, rhs=rhs)
    options: dict[str, Any] = {"assume": assume, "periodic": bool(periodic), "pivot": code}
    is_folded = folds(assume, pivot, periodic=bool(periodic))
    return _pentadiagonal(*operands, axis=place, is_folded=is_folded, **options)


def solve_block_tridiagonal(
    lower: ArrayLike | None,
    diag: ArrayLike,
    upper: ArrayLike | None,
    rhs: ArrayLike,
    *,
    axis: int = -1,
    assume: Assume = "general",
    periodic: bool = False,
    pivot: bool | None = None,
) -> jax.Array:
    r"""Solve many independent block tridiagonal systems along one axis, as a function of JAX.

    .. math:: L_i x_{i-1} + D_i x_i + U_i x_{i+1} = r_i, \quad 0 \le i < n.

    Parameters
    ----------
    lower, diag, upper, rhs : array_like
        As in `pysolvers.solve_block_tridiagonal`: blocks (..., n, k, k), right-hand sides
        (..., n, k, m).
    axis, assume, periodic, pivot
        As in `pysolvers.solve_block_tridiagonal`.

    Returns
    -------
    jax.Array, shape (..., n, k, m)
        The solutions; NaN for a matrix that is singular, or not positive definite as `assume`
        says.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.solve_block_tridiagonal`.

    Notes
    -----
    As `pysolvers.jax.solve_pentadiagonal`, with the cotangents

    .. math:: \lambda = A^{-T} g, \quad \bar r = \lambda, \quad
        \bar L_i = -\lambda_i x_{i-1}^T, \quad \bar D_i = -\lambda_i x_i^T, \quad
        \bar U_i = -\lambda_i x_{i+1}^T .

    A periodic system is solved as an open one with blocks of 2 k rows, as there, if these have at
    most 32 rows, complex ones 16.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pysolvers.jax import solve_block_tridiagonal
    >>> diag = jnp.array([[4.0, 1.0], [0.0, 5.0]])
    >>> rhs = jnp.array([[4.0, 4.0], [3.0, 3.0], [4.0, 4.0]])[..., None]
    >>> print(solve_block_tridiagonal(-jnp.eye(2), diag, -jnp.eye(2), rhs)[..., 0].round(3))
    [[1. 1.]
     [1. 1.]
     [1. 1.]]
    """
    require_flag("periodic", periodic)
    require_assumption(assume, pivot)
    exchanges = exchanges_rows(assume, pivot)
    code = pivot_code(exchanges, require("cpu").PIVOTS)
    operands = _arrays(lower=lower, diag=diag, upper=upper, rhs=rhs)
    options: dict[str, Any] = {"assume": assume, "periodic": bool(periodic), "pivot": code}
    is_folded = folds(assume, pivot, periodic=bool(periodic))
    return _block_tridiagonal(*operands, axis=integer("axis", axis), is_folded=is_folded, **options)


def _arrays(**named: ArrayLike | None) -> list[jax.Array | None]:
    """Return the operands of a call as arrays of JAX; None where one is not given."""
    return [None if value is None else as_plain(name, value) for name, value in named.items()]


# As one program also outside of transformations: JAX would compile each operation for itself.
@partial(jax.jit, static_argnames=("axis", "assume", "periodic", "pivot", "is_folded"))
def _pentadiagonal(
    *operands: Any, axis: int, assume: Assume, periodic: bool, pivot: int, is_folded: bool
) -> jax.Array:
    """Solve with operands of any shapes and dtypes."""
    *bands, rhs = operands
    is_complex = any(band is not None and jnp.iscomplexobj(band) for band in bands)
    if jnp.iscomplexobj(rhs) and not is_complex:
        options: dict[str, Any] = {
            "axis": axis,
            "assume": assume,
            "periodic": periodic,
            "pivot": pivot,
            "is_folded": is_folded,
        }
        parts = (_pentadiagonal(*bands, a, **options) for a in (rhs.real, rhs.imag))
        return jax.lax.complex(*parts)
    named = dict(zip((*BANDS, "rhs"), operands, strict=True))
    lines = bands_of(XP, named, axis, assume, periodic=periodic)
    code: dict[str, Any] = {"pivot": pivot, "definite": assume != "general"}
    solve, by_blocks = partial(_solve_bands, **code), partial(_solve_blocks, **code)
    return bands_solution(
        XP,
        lines,
        solve,
        by_blocks,
        _exchanging,
        is_complex=is_complex,
        is_folded=is_folded,
        periodic=periodic,
    )


@partial(jax.jit, static_argnames=("axis", "assume", "periodic", "pivot", "is_folded"))
def _block_tridiagonal(
    *operands: Any, axis: int, assume: Assume, periodic: bool, pivot: int, is_folded: bool
) -> jax.Array:
    """Solve with operands of any shapes and dtypes."""
    *blocks, rhs = operands
    is_complex = any(block is not None and jnp.iscomplexobj(block) for block in blocks)
    if jnp.iscomplexobj(rhs) and not is_complex:
        options: dict[str, Any] = {
            "axis": axis,
            "assume": assume,
            "periodic": periodic,
            "pivot": pivot,
            "is_folded": is_folded,
        }
        return by_columns(XP, partial(_block_tridiagonal, *blocks, **options), rhs)
    named = dict(zip((*BLOCKS, "rhs"), operands, strict=True))
    lines = blocks_of(XP, named, axis, assume, periodic=periodic)
    most = require("cpu").MOST_SIDE
    side = lines.rhs.shape[-2] * (2 if jnp.iscomplexobj(lines.rhs) else 1)
    if not 2 <= side <= most:
        raise ValueError(
            f"blocks must have 2 to {most} rows, complex ones half as many, got {side}"
        )
    solve = partial(_solve_blocks, pivot=pivot, definite=assume != "general")
    fold = most if is_folded else None
    return blocks_solution(XP, lines, solve, _exchanging, most=fold, periodic=periodic)


def block_tridiagonal_logdet(
    lower: ArrayLike | None,
    diag: ArrayLike,
    upper: ArrayLike | None,
    *,
    axis: int = -1,
    assume: Assume = "general",
    periodic: bool = False,
    pivot: bool | None = None,
) -> jax.Array:
    r"""Return :math:`\log |\det A|` of block tridiagonal matrices, as a function of JAX.

    Parameters
    ----------
    lower, diag, upper : array_like, shape (..., n, k, k)
        Real blocks, as in `pysolvers.factor_block_tridiagonal`; one of them has n rows.
    axis, assume, periodic, pivot
        As in `pysolvers.factor_block_tridiagonal`.

    Returns
    -------
    jax.Array, shape of the batch
        The logarithms, in the dtype of the blocks; NaN for a matrix that is singular, or not
        positive definite as `assume` says.

    Raises
    ------
    TypeError, ValueError
        As `pysolvers.factor_block_tridiagonal`; for a derivative of matrices with row exchanges
        across blocks, or with blocks of more than 4 rows, JAX raises an error of its own.
    NotImplementedError
        For a second derivative, which needs all blocks of the inverse.

    Notes
    -----
    The derivative with respect to the blocks :math:`A_{ij}` is :math:`(A^{-1})_{ji}^T`, in forward
    and in reverse mode. The function can be used under `jax.jit` and `jax.vmap`. The matrices are
    factored on the CPU; those on a device are copied.

    Of a periodic matrix, the determinant is that of the matrix without the last row and column,
    which has to be regular, times that of the last equation after the elimination of the others.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from pysolvers.jax import block_tridiagonal_logdet
    >>> diag = jnp.tile(4 * jnp.eye(2), (3, 1, 1))
    >>> print(block_tridiagonal_logdet(-jnp.eye(2), diag, -jnp.eye(2)).round(3))
    8.051
    """
    require_assumption(assume, pivot)
    operands = _arrays(lower=lower, diag=diag, upper=upper)
    place, exchanges = integer("axis", axis), None if assume != "general" else pivot
    require_flag("periodic", periodic)
    options: dict[str, Any] = {"axis": place, "assume": assume, "pivot": exchanges}
    return _matrix_logdet(*operands, periodic=bool(periodic), **options)


@partial(jax.jit, static_argnames=("axis", "assume", "pivot", "periodic"))
def _matrix_logdet(
    *operands: Any, axis: int, assume: Assume, pivot: bool | None, periodic: bool
) -> jax.Array:
    """Compute with operands of any shapes and dtypes."""
    named = dict(zip(BLOCKS, operands, strict=True))
    matrix = matrix_of_logdet(XP, named, axis, assume, periodic=periodic)
    definite = assume != "general"

    def solve(*operands: jax.Array) -> jax.Array:
        code = pivot_code(False if definite else pivot, require("cpu").PIVOTS)
        return _solve_blocks(*operands, pivot=code, definite=definite)

    def logdet(*blocks: jax.Array) -> jax.Array:
        return _logdet(*blocks, pivot, assume)

    if periodic:
        return logdet_of_ring(XP, matrix, solve, logdet, definite=definite)
    return logdet(*matrix)


def _factored(
    compute: Callable[..., Any], matrix: tuple[jax.Array, ...], shapes: Any, *options: Any
) -> Any:
    """Call a function of factors with arrays of NumPy."""
    pivot, assume = options

    def on_host(*blocks: Any) -> Any:
        found = compute(*map(np.asarray, blocks), assume=assume, pivot=pivot, threads=None)
        return jax.tree.map(lambda a, like: np.asarray(a, like.dtype), found, shapes)

    return jax.pure_callback(on_host, shapes, *matrix, vmap_method="expand_dims")


@partial(jax.custom_jvp, nondiff_argnums=(3, 4))
def _logdet(
    lower: jax.Array, diag: jax.Array, upper: jax.Array, pivot: bool | None, assume: Assume
) -> jax.Array:
    matrix = (lower, diag, upper)
    batch = jnp.broadcast_shapes(*(block.shape[:-3] for block in matrix))
    shape = jax.ShapeDtypeStruct(batch, diag.dtype)
    return _factored(log_determinants, matrix, shape, pivot, assume)


@partial(jax.custom_jvp, nondiff_argnums=(3, 4))
def _inverses(
    lower: jax.Array, diag: jax.Array, upper: jax.Array, pivot: bool | None, assume: Assume
) -> list[jax.Array]:
    matrix = (lower, diag, upper)
    batch = jnp.broadcast_shapes(*(block.shape[:-3] for block in matrix))
    full = (*batch, max(block.shape[-3] for block in matrix), *diag.shape[-2:])
    return _factored(inverses, matrix, [jax.ShapeDtypeStruct(full, diag.dtype)] * 3, pivot, assume)


@_logdet.defjvp
def _logdet_jvp(pivot: Any, assume: Any, primals: Any, tangents: Any) -> tuple[Any, Any]:
    """Return the value and the sum of the entries of A^-T times those of the tangents."""
    found = transposed(XP, _inverses(*primals, pivot, assume))
    change = sum((a * t).sum((-3, -2, -1)) for a, t in zip(found, tangents, strict=True))
    return _logdet(*primals, pivot, assume), change


@_inverses.defjvp
def _inverses_jvp(*_: Any) -> Any:
    raise NotImplementedError(
        "block_tridiagonal_logdet has first derivatives only: a second one needs all blocks of the "
        "inverse; use jax.numpy.linalg.slogdet for small matrices"
    )


def _solve_bands(*operands: jax.Array, pivot: int, definite: bool) -> jax.Array:
    """Solve open systems of five diagonals, rows last."""
    return _solve(operands, multiply_bands, _host_bands, pivot=pivot, definite=definite)


def _solve_blocks(*operands: jax.Array, pivot: int, definite: bool) -> jax.Array:
    """Solve with blocks, rows last but two."""
    return _solve(operands, multiply_blocks, _host_blocks, pivot=pivot, definite=definite)


def _exchanging(*operands: jax.Array) -> jax.Array:
    """Solve with blocks and row exchanges."""
    return _solve_blocks(*operands, pivot=require("cpu").PIVOTS["always"], definite=False)


def _solve(
    operands: tuple[jax.Array, ...],
    multiply: Callable[..., jax.Array],
    on_host: Callable[..., Any],
    *,
    pivot: int,
    definite: bool,
) -> jax.Array:
    """Solve for operands of one dtype and number of axes."""
    *matrix, rhs = equally_varying(list(operands))
    tail = 1 if len(matrix) == 5 else 3
    batch = jnp.broadcast_shapes(*(a.shape[:-tail] for a in operands))
    full = (*batch, *rhs.shape[-tail:])
    if 0 in full:
        return jnp.zeros(full, rhs.dtype)
    code: dict[str, Any] = {"pivot": pivot, "definite": definite}
    solve, solve_transposed = (
        batched(partial(_compute, on_host=on_host, is_transposed=t, **code)) for t in (False, True)
    )
    product = jax.checkpoint(lambda x, *own: multiply(XP, own, x), prevent_cse=False)
    return jax.lax.custom_linear_solve(
        lambda x: product(x, *matrix),
        jnp.broadcast_to(rhs, full),
        lambda _, b: solve(*matrix, b),
        lambda _, b: solve_transposed(*matrix, b),
    )


def _compute(
    *operands: jax.Array,
    on_host: Callable[..., Any],
    is_transposed: bool,
    pivot: int,
    definite: bool,
) -> jax.Array:
    """Solve where the operands are, or by a copy to the host."""
    options: dict[str, Any] = {"pivot": pivot, "definite": definite}
    here = partial(solve_block_lines, transposed=is_transposed, **options)

    def there(*operands: jax.Array) -> jax.Array:
        *matrix, rhs = operands
        if is_transposed:
            matrix = transposed(XP, matrix)
        tail = 1 if len(matrix) == 5 else 3
        batch = jnp.broadcast_shapes(*(a.shape[:-tail] for a in operands))
        result = jax.ShapeDtypeStruct((*batch, *rhs.shape[-tail:]), rhs.dtype)
        return jax.pure_callback(partial(on_host, **options), result, *matrix, rhs)

    is_fast = len(operands) == 6 or operands[-1].shape[-2] <= require("cpu").FAST_SIDE
    on_device = partial(here, on_device=True) if is_fast else there
    return by_platform(*operands, cpu=here, cuda=on_device, default=there)


def _host_bands(*operands: Any, pivot: int, definite: bool) -> Any:
    """Solve arrays of NumPy."""
    return _on_host(solve_band_arrays, operands, pivot, definite)


def _host_blocks(*operands: Any, pivot: int, definite: bool) -> Any:
    """Solve arrays of NumPy."""
    return _on_host(solve_block_arrays, operands, pivot, definite)


def _on_host(solve: Callable[..., Any], operands: Any, pivot: int, definite: bool) -> Any:
    """Call a function of arrays of NumPy with the options of these codes."""
    pivots = require("cpu").PIVOTS
    choice = {pivots["auto"]: None, pivots["always"]: True}.get(pivot, False)
    return solve(
        *map(np.asarray, operands),
        pivot=None if definite else choice,
        assume="positive definite" if definite else "general",
        on_singular="nan",
    )

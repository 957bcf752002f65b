"""The formulas of block tridiagonal and pentadiagonal systems for JAX and PyTorch; see _xp.py.

Diagonals have their rows along the last axis, blocks along the last but two; all operands of a
system have the same number of axes, with sizes of 1 where they broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .._checks import axis_number
from .._xp import ArrayLibrary
from .pairs import embedded, paired, pairs_of_rows, rows_of_pairs
from .rings import folded_matrix, folded_rows, unfolded_rows
from .systems import require_operands

Array = Any

BANDS = ("lower2", "lower", "diag", "upper", "upper2")
BLOCKS = ("lower", "diag", "upper")
_LEAST_PERIODIC, _LEAST_PERIODIC_BLOCKS = 5, 3


class Lines(NamedTuple):
    """Operands of systems: the diagonals of the matrices, right-hand sides, axis of the rows."""

    matrix: list[Array]
    rhs: Array
    axis: int  # of the rows in a result, negative


def require_assumption(assume: str, pivot: bool | None) -> None:
    """Raise ValueError for a wrong assumption, or one that contradicts `pivot`."""
    if assume not in ("general", "positive definite"):
        raise ValueError(f"assume must be 'general' or 'positive definite', got {assume!r}")
    if assume != "general" and pivot:
        raise ValueError(
            "pivot=True contradicts assume='positive definite', which needs no row exchanges"
        )


def bands_of(
    library: ArrayLibrary, named: dict[str, Any], axis: int, assume: str, *, periodic: bool
) -> Lines:
    """Check and promote the operands of `solve_pentadiagonal`."""
    operation = "solve_pentadiagonal"
    _require_given(operation, named, assume, ["lower2", "lower"], ["lower2", "lower"])
    given = {name: value for name, value in named.items() if value is not None}
    arrays = library.operands(given)
    if arrays["rhs"].ndim == 0:
        raise ValueError("rhs must have at least one dimension, got a 0-d array")
    ndim = max(array.ndim for array in arrays.values())
    place = _place(axis, ndim)
    views = {}
    for name, array in arrays.items():
        wide = array.reshape((1,) * (ndim - array.ndim) + tuple(array.shape))
        views[name] = wide if array.ndim <= 1 else library.move(wide, place, -1)
    rows = views["rhs"].shape[-1]
    if periodic and rows < _LEAST_PERIODIC:
        raise ValueError(
            f"{operation}: a periodic system must have at least {_LEAST_PERIODIC} rows, got {rows}"
        )
    for name, offset in zip(BANDS, range(-2, 3), strict=True):
        if name in views:
            is_line = arrays[name].ndim == 1
            views[name] = _with_rows(
                library, name, views[name], offset, rows, axis, is_line=is_line, periodic=periodic
            )
    if "lower" not in views:
        for offset, (name, other) in ((1, ("lower", "upper")), (2, ("lower2", "upper2"))):
            line = shifted(library, views[other], -offset, periodic=periodic)
            views[name] = line.conj() if library.is_complex(line) else line
    return Lines([views[name] for name in BANDS], views["rhs"], place)


def _with_rows(
    library: ArrayLibrary,
    name: str,
    line: Array,
    offset: int,
    rows: int,
    axis: int,
    *,
    is_line: bool,
    periodic: bool,
) -> Array:
    """Return a diagonal with all rows or one, zeros in the place of entries that it omits."""
    length = line.shape[-1]
    least = 0 if periodic else abs(offset)
    if length == rows or (length == 1 and not is_line):
        return line
    if length != max(0, rows - least):
        less = f" or {max(0, rows - least)}" if least else ""
        raise ValueError(f"{name} must have {rows}{less} entries along axis {axis}, got {length}")
    missing = rows - length
    before, after = (missing, 0) if offset < 0 else (0, missing)
    return library.padded(line, before, after, line.ndim - 1)


def shifted(library: ArrayLibrary, line: Array, by: int, *, periodic: bool = False) -> Array:
    """Return the entries `by` rows further, 0 or those of the other end beyond; or a constant."""
    rows, last = line.shape[-1], line.ndim - 1
    if rows == 1 or by == 0:
        return line
    if periodic:
        by %= rows
        parts = (library.rows(line, by, rows, last), library.rows(line, 0, by, last))
        return library.xp.concatenate(parts, -1)
    if abs(by) >= rows:
        return line * 0
    if by > 0:
        return library.padded(library.rows(line, by, rows, last), 0, by, last)
    return library.padded(library.rows(line, 0, rows + by, last), -by, 0, last)


def multiply_bands(library: ArrayLibrary, bands: Sequence[Array], x: Array) -> Array:
    """Return A x of open systems; entries outside the matrix do not count."""
    y = bands[2] * x
    for offset, band in zip((-2, -1, 1, 2), (*bands[:2], *bands[3:]), strict=True):
        if abs(offset) < x.shape[-1]:
            y = y + band * shifted(library, x, offset)
    return y


def solve_bands(
    library: ArrayLibrary, lines: Lines, solve: Callable[..., Array], *, periodic: bool
) -> Array:
    """Solve, with ``solve(*bands, rhs)`` for open systems; a periodic one is bordered."""
    rhs = lines.rhs
    if not periodic:
        return solve(*lines.matrix, rhs)
    n, last, xp = rhs.shape[-1], rhs.ndim - 1, library.xp
    l2, l1, d, u1, u2 = (
        xp.broadcast_to(band, (*band.shape[:-1], n)) if band.shape[-1] == 1 else band
        for band in lines.matrix
    )

    def entry(band: Array, row: int) -> Array:
        return library.rows(band, row, row + 1, last)

    def joined(before: Sequence[Array], after: Sequence[Array]) -> Array:
        shape = np.broadcast_shapes(*(tuple(part.shape) for part in (*before, *after)))
        parts = [xp.broadcast_to(part, shape) for part in (*before, *after)]
        count = len(before)
        zeros = library.padded(parts[0] * 0, 0, n - 6, last) if n > 5 else None
        middle = [] if zeros is None else [zeros]
        return xp.concatenate((*parts[:count], *middle, *parts[count:]), -1)

    open_bands = [library.rows(band, 0, n - 2, last) for band in (l2, l1, d, u1, u2)]
    columns = (
        joined([entry(l2, 0)], [entry(u2, n - 4), entry(u1, n - 3)]),
        joined([entry(l1, 0), entry(l2, 1)], [entry(u2, n - 3)]),
    )
    below = (
        joined([entry(u2, n - 2)], [entry(l2, n - 2), entry(l1, n - 2)]),
        joined([entry(u1, n - 1), entry(u2, n - 1)], [entry(l2, n - 1)]),
    )
    y = solve(*open_bands, library.rows(rhs, 0, n - 2, last))
    z = [solve(*open_bands, column) for column in columns]
    corner = ((entry(d, n - 2), entry(u1, n - 2)), (entry(l1, n - 1), entry(d, n - 1)))
    s = [[corner[p][q] - (below[p] * z[q]).sum(-1)[..., None] for q in range(2)] for p in range(2)]
    left = [entry(rhs, n - 2 + p) - (below[p] * y).sum(-1)[..., None] for p in range(2)]
    for p in range(2):  # products of these coefficients could overflow or underflow
        scale = library.constant(xp.maximum(abs(s[p][0]), abs(s[p][1])))
        s[p], left[p] = [value / scale for value in s[p]], left[p] / scale
    determinant = s[0][0] * s[1][1] - s[0][1] * s[1][0]
    first = (s[1][1] * left[0] - s[0][1] * left[1]) / determinant
    second = (s[0][0] * left[1] - s[1][0] * left[0]) / determinant
    x = y - z[0] * first - z[1] * second
    shape = tuple(x.shape[:-1])
    ends = [xp.broadcast_to(value, (*shape, 1)) for value in (first, second)]
    return xp.concatenate((x, *ends), -1)


def bands_solution(
    library: ArrayLibrary,
    lines: Lines,
    solve: Callable[..., Array],
    by_blocks: Callable[..., Array],
    exchanging: Callable[..., Array],
    *,
    is_complex: bool,
    is_folded: bool,
    periodic: bool,
) -> Array:
    """Solve systems of five diagonals, given solves of open real ones.

    Parameters
    ----------
    library, lines
        The operands.
    solve, by_blocks, exchanging : callable
        Solve for ``(*bands, rhs)``, for ``(*blocks, rhs)``, and the latter with row exchanges.
    is_complex, is_folded, periodic : bool
        Whether the matrix is complex, and how a periodic one is solved.
    """
    if is_folded:
        *wide, sides = (a[..., None, None] for a in (*lines.matrix, lines.rhs))
        x = solve_ring(library, wide, sides, exchanging)[..., 0, 0]
        return library.move(x, -1, lines.axis)

    def solve_open(*operands: Array) -> Array:
        return solve_pairs(library, operands, by_blocks) if is_complex else solve(*operands)

    return library.move(solve_bands(library, lines, solve_open, periodic=periodic), -1, lines.axis)


def blocks_solution(
    library: ArrayLibrary,
    lines: Lines,
    solve: Callable[..., Array],
    exchanging: Callable[..., Array],
    *,
    most: int | None,
    periodic: bool,
) -> Array:
    """Solve systems of blocks as `bands_solution`; rings are folded to blocks of `most` rows."""
    xp, matrix, sides = library.xp, lines.matrix, lines.rhs
    is_complex = library.is_complex(sides)
    if is_complex:
        matrix = [embedded(xp, block) for block in matrix]
        sides = xp.concatenate((sides.real, sides.imag), -2)
    if most is not None and 2 * sides.shape[-2] <= most:
        x = solve_ring(library, matrix, sides, exchanging)
    else:
        x = solve_blocks(library, Lines(matrix, sides, lines.axis), solve, periodic=periodic)
    if is_complex:
        half = x.shape[-2] // 2
        x = library.joined(x[..., :half, :], x[..., half:, :])
    return library.move(x, -3, lines.axis)


def by_columns(library: ArrayLibrary, solve: Callable[[Array], Array], rhs: Array) -> Array:
    """Solve systems of real blocks for complex right-hand sides, as twice the real ones."""
    if rhs.ndim < 3:
        raise ValueError(f"rhs must have the shape (..., n, k, m), got {tuple(rhs.shape)}")
    columns = rhs.shape[-1]
    x = solve(library.xp.concatenate((rhs.real, rhs.imag), -1))
    return library.joined(x[..., :columns], x[..., columns:])


def folds(assume: str, pivot: bool | None, *, periodic: bool) -> bool:
    """Return whether a periodic system is folded: the border needs a regular open part."""
    return periodic and assume == "general" and pivot is not False


def solve_ring(
    library: ArrayLibrary, bands: Sequence[Array], rhs: Array, solve: Callable[..., Array]
) -> Array:
    """Solve folded periodic systems, with ``solve(*blocks, rhs)`` of open ones; see rings.py.

    Parameters
    ----------
    library : ArrayLibrary
        JAX or PyTorch.
    bands : sequence of array, shape (..., n, k, k), or one row of them
        The blocks (i, i - w) to (i, i + w) of all rows.
    rhs : array, shape (..., n, k, m)
        The right-hand sides.
    solve : callable
        Solves open block tridiagonal systems with row exchanges.
    """
    xp, (n, side) = library.xp, rhs.shape[-3:-1]
    rows = [xp.broadcast_to(band, (*band.shape[:-3], n, side, side)) for band in bands]
    matrix, wide = folded_matrix(xp, rows), folded_rows(xp, rhs, len(bands) - 1)
    is_complex, half = library.is_complex(wide), wide.shape[-2]
    if is_complex:
        matrix = [embedded(xp, block) for block in matrix]
        wide = xp.concatenate((wide.real, wide.imag), -2)
    x = solve(*matrix, wide)
    if is_complex:
        x = library.joined(x[..., :half, :], x[..., half:, :])
    return unfolded_rows(x, n, side)


def solve_pairs(
    library: ArrayLibrary, operands: Sequence[Array], solve: Callable[..., Array]
) -> Array:
    """Solve open complex systems of five diagonals, with ``solve(*blocks, rhs)`` of real blocks."""
    *bands, rhs = operands
    n = rhs.shape[-1]
    wide = [library.xp.broadcast_to(band, (*band.shape[:-1], n)) for band in bands]
    blocks = [embedded(library.xp, block) for block in paired(library.xp, wide)]
    sides = pairs_of_rows(library.xp, rhs)
    x = solve(*blocks, library.xp.concatenate((sides.real, sides.imag), -1)[..., None])[..., 0]
    return rows_of_pairs(library.joined(x[..., :2], x[..., 2:]), n)


def solve_blocks(
    library: ArrayLibrary, lines: Lines, solve: Callable[..., Array], *, periodic: bool
) -> Array:
    """Solve, with ``solve(*blocks, rhs)`` for open systems; a periodic one is bordered."""
    rhs = lines.rhs
    if not periodic:
        return solve(*lines.matrix, rhs)
    n, side, first = rhs.shape[-3], rhs.shape[-2], rhs.ndim - 3
    border = _border_of(library, lines.matrix, n, solve)
    y = solve(*border.matrix, library.rows(rhs, 0, n - 1, first))
    schur, left = border.schur, library.rows(rhs, n - 1, n, first) - border.of_last_row(y)
    shape = np.broadcast_shapes(tuple(schur.shape[:-2]), tuple(left.shape[:-2]))
    last = library.xp.linalg.solve(
        library.xp.broadcast_to(schur, (*shape, side, side)),
        library.xp.broadcast_to(left, (*shape, side, left.shape[-1])),
    )
    x = y - border.solved @ last
    end = library.xp.broadcast_to(last, (*x.shape[:-3], 1, *x.shape[-2:]))
    return library.xp.concatenate((x, end), -3)


class _Border(NamedTuple):
    """Periodic matrices of blocks without their last row and column."""

    matrix: list[Array]  # the open matrices
    solved: Array  # the last column after the solve with them
    of_last_row: Callable[[Array], Array]  # the product of the last row and an x of n - 1 rows
    schur: Array  # (..., 1, k, k), what the last equation is after the elimination


def _border_of(
    library: ArrayLibrary, matrix: Sequence[Array], n: int, solve: Callable[..., Array]
) -> _Border:
    """Solve for the last column of periodic matrices of n rows."""
    side, first = matrix[1].shape[-1], matrix[1].ndim - 3
    lower, diag, upper = (
        library.xp.broadcast_to(block, (*block.shape[:-3], n, side, side)) for block in matrix
    )

    def row(array: Array, place: int) -> Array:
        return library.rows(array, place, place + 1, first)

    def of_last_row(x: Array) -> Array:
        return row(upper, n - 1) @ row(x, 0) + row(lower, n - 1) @ row(x, n - 2)

    column = library.padded(row(lower, 0), 0, n - 2, first)
    column = column + library.padded(row(upper, n - 2), n - 2, 0, first)
    inner = [library.rows(block, 0, n - 1, first) for block in (lower, diag, upper)]
    solved = solve(*inner, column)
    return _Border(inner, solved, of_last_row, row(diag, n - 1) - of_last_row(solved))


def logdet_of_ring(
    library: ArrayLibrary,
    matrix: Sequence[Array],
    solve: Callable[..., Array],
    logdet: Callable[..., Array],
    *,
    definite: bool,
) -> Array:
    """Return log |det A| of periodic matrices, with ``solve`` and ``logdet`` of open ones.

    NaN for a matrix whose last equation is singular, or not positive definite.
    """
    xp, n = library.xp, max(block.shape[-3] for block in matrix)
    border = _border_of(library, matrix, n, solve)
    schur = border.schur[..., 0, :, :]
    sign, more = xp.linalg.slogdet(schur)
    is_regular = sign != 0
    if definite:
        is_regular = (xp.linalg.eigvalsh(library.constant(schur)) > 0).all(-1)
    value = logdet(*border.matrix) + more
    return xp.where(is_regular, value, xp.full_like(value, float("nan")))


def blocks_of(
    library: ArrayLibrary,
    named: dict[str, Any],
    axis: int,
    assume: str,
    operation: str = "solve_block_tridiagonal",
    *,
    periodic: bool = False,
) -> Lines:
    """Check and promote the operands of systems, or of matrices, which have no `rhs`."""
    _require_given(operation, named, assume, ["lower"], ["upper"])
    arrays = library.operands({name: v for name, v in named.items() if v is not None})
    side = _side_of(arrays)
    ndim = max(1, *(array.ndim - 2 for array in arrays.values()))
    place = _place(axis, ndim)
    views = {}
    for name, array in arrays.items():
        wide = array.reshape((1,) * (ndim + 2 - array.ndim) + tuple(array.shape))
        views[name] = wide if array.ndim <= 3 else library.move(wide, place - 2, -3)
    rows = max(view.shape[-3] for view in views.values())
    if periodic and rows < _LEAST_PERIODIC_BLOCKS:
        raise ValueError(
            f"{operation}: a periodic system must have at least {_LEAST_PERIODIC_BLOCKS} rows, got "
            f"{rows}"
        )
    for name, view in views.items():
        length, first = view.shape[-3], view.ndim - 3
        if length == rows - 1 > 1 and not periodic and name in ("lower", "upper"):
            ends = (1, 0) if name == "lower" else (0, 1)
            views[name] = library.padded(view, *ends, first)
        elif length not in (1, rows):
            raise ValueError(f"{name} has {length} rows along axis {axis}, the systems have {rows}")
    for name, other, by in (("lower", "upper", -1), ("upper", "lower", 1)):
        if name not in views:
            block = library.move(views[other], -1, -2)
            if periodic and block.shape[-3] > 1:
                block = library.shifted(block, -by, block.ndim - 3)
            elif not periodic:
                block = shifted_blocks(library, block, by)
            views[name] = block.conj() if library.is_complex(block) else block
    rhs = views.get("rhs")
    if rhs is not None and rhs.shape[-3] != rows:
        rhs = library.xp.broadcast_to(rhs, (*rhs.shape[:-3], rows, side, rhs.shape[-1]))
    matrix = [views[name] for name in BLOCKS]
    return Lines(matrix, rhs, place - 2)


def matrix_of_logdet(
    library: ArrayLibrary, named: dict[str, Any], axis: int, assume: str, *, periodic: bool
) -> list[Array]:
    """Check and promote the blocks of `block_tridiagonal_logdet`."""
    operation = "block_tridiagonal_logdet"
    matrix = blocks_of(library, named, axis, assume, operation, periodic=periodic).matrix
    if library.is_complex(matrix[1]):
        raise TypeError(
            f"{operation}: matrices must be real: write each block B as "
            "[[B.real, -B.imag], [B.imag, B.real]], whose determinant is |det B|^2"
        )
    return matrix


def shifted_blocks(library: ArrayLibrary, blocks: Array, by: int) -> Array:
    """Return the blocks one row further (by = 1) or before (-1), zeros at the end."""
    rows, first = blocks.shape[-3], blocks.ndim - 3
    if rows == 1:
        return blocks
    if by > 0:
        return library.padded(library.rows(blocks, 1, rows, first), 0, 1, first)
    return library.padded(library.rows(blocks, 0, rows - 1, first), 1, 0, first)


def multiply_blocks(library: ArrayLibrary, matrix: Sequence[Array], x: Array) -> Array:
    """Return A x; blocks outside the matrix do not count."""
    lower, diag, upper = matrix
    y = diag @ x
    if x.shape[-3] > 1:
        y = y + lower @ shifted_blocks(library, x, -1) + upper @ shifted_blocks(library, x, 1)
    return y


def transposed(library: ArrayLibrary, matrix: Sequence[Array]) -> list[Array]:
    """Return the operands of the transposed open matrix: five diagonals, or three of blocks."""
    if len(matrix) == len(BANDS):
        return [shifted(library, matrix[4 - k], k - 2) for k in range(5)]
    lower, diag, upper = (library.xp.swapaxes(block, -1, -2) for block in matrix)
    return [shifted_blocks(library, upper, -1), diag, shifted_blocks(library, lower, 1)]


def exchanges_rows(assume: str, pivot: bool | None) -> bool | None:
    """Return `pivot` of the open systems of a call."""
    return pivot if assume == "general" else False


def _place(axis: int, ndim: int) -> int:
    """Return the axis of the rows, negative, or raise."""
    return axis_number(axis, ndim, "the operands") - ndim


def _require_given(operation: str, named: dict[str, Any], assume: str, *allowed: list[str]) -> None:
    """Raise unless all diagonals, or those that define symmetric matrices, are given."""
    require_operands(operation, named)
    missing = [name for name, value in named.items() if value is None]
    if missing and (assume != "positive definite" or missing not in allowed):
        halves = " and ".join(f"{name}=None" for name in allowed[0])
        raise ValueError(
            f"{operation}: {missing[0]} is None: pass it, or {halves} with "
            "assume='positive definite'"
        )


def _side_of(arrays: dict[str, Array]) -> int:
    """Return the number of rows of a block, or raise."""
    side = int(arrays["diag"].shape[-1]) if arrays["diag"].ndim >= 2 else 0
    for name, array in arrays.items():
        least = 3 if name == "rhs" else 2
        shape = tuple(array.shape)
        columns = shape[-1] if name == "rhs" and shape else side
        if array.ndim < least or shape[-2:] != (side, columns):
            wanted = "(..., n, k, m)" if name == "rhs" else "(..., n, k, k)"
            write = "; for one column write rhs[..., None]" if name == "rhs" else ""
            raise ValueError(f"{name} must have the shape {wanted}, got {shape}{write}")
    return side

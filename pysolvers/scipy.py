"""Functions with the names and arguments of `scipy.linalg`, for bands of at most 2 + 2 diagonals.

Batches lie in the first axes, as in the batched functions of SciPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._blocks import solve_pentadiagonal
from ._checks import integer
from ._plain import require_plain
from ._recurrence import linear_recurrence
from .tridiagonal import solve_tridiagonal

__all__ = ["cho_solve_banded", "from_banded", "solve_banded", "solveh_banded"]

Array = NDArray[Any]

_MOST = 2


def solve_banded(
    l_and_u: tuple[int, int],
    ab: ArrayLike,
    b: ArrayLike,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve banded systems, as `scipy.linalg.solve_banded`, in batches.

    Parameters
    ----------
    l_and_u : (int, int)
        Numbers of diagonals below and above the main one, each from 0 to 2.
    ab : array_like, shape (..., l + u + 1, n)
        The matrices: entry (i, j) is ``ab[..., u + i - j, j]``.
    b : array_like, shape (n,), (n, m) or (..., n, m)
        Right-hand sides. As in SciPy, one of one dimension is a vector, others are matrices whose
        leading axes broadcast with those of `ab`.
    overwrite_ab, overwrite_b : bool
        Of SciPy; the arrays are not overwritten.
    check_finite : bool, default: True
        Whether to raise an error if an entry is NaN or infinite.

    Returns
    -------
    ndarray, shape of `b`, or (..., n, m) with the axes of the batch
        The solutions.

    Raises
    ------
    ValueError
        If shapes do not fit, there are more than 2 diagonals on a side, or an entry is not finite.
    numpy.linalg.LinAlgError
        If a matrix is singular; as `pysolvers.SingularSystemError`.

    Notes
    -----
    With at most one diagonal on each side the systems are those of `solve_tridiagonal`, otherwise
    of `solve_pentadiagonal`, with row exchanges in the matrices that need them.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers.scipy import solve_banded
    >>> ab = np.array([[0.0, -1.0, -1.0], [2.0, 2.0, 2.0], [-1.0, -1.0, 0.0]])
    >>> solve_banded((1, 1), ab, [1.0, 0.0, 1.0])
    array([1., 1., 1.])
    """
    below, above = _counts(l_and_u)
    bands, sides = _array("ab", ab, check_finite), _array("b", b, check_finite)
    _require_bands(bands, below + above + 1, f"l + u + 1 = {below + above + 1}")
    lines = _diagonals(bands, below, above)
    return _solve(lines, bands, sides, "general")


def solveh_banded(
    ab: ArrayLike,
    b: ArrayLike,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    lower: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve symmetric or Hermitian positive definite banded systems, as in SciPy, in batches.

    Parameters
    ----------
    ab : array_like, shape (..., u + 1, n)
        The matrices, u from 0 to 2: entry (i, j) is ``ab[..., u + i - j, j]`` for i <= j or, if
        `lower`, ``ab[..., i - j, j]`` for i >= j.
    b : array_like
        As in `solve_banded`.
    overwrite_ab, overwrite_b : bool
        Of SciPy; the arrays are not overwritten.
    lower : bool, default: False
        Whether the diagonals are those below the main one.
    check_finite : bool, default: True
        As in `solve_banded`.

    Returns
    -------
    ndarray
        The solutions.

    Raises
    ------
    ValueError
        As `solve_banded`.
    numpy.linalg.LinAlgError
        If a matrix is not positive definite; as `pysolvers.SingularSystemError`.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers.scipy import solveh_banded
    >>> ab = np.array([[0.0, -1.0, -1.0], [2.0, 2.0, 2.0]])
    >>> solveh_banded(ab, [1.0, 0.0, 1.0]).round(12)
    array([1., 1., 1.])
    """
    bands, sides = _array("ab", ab, check_finite), _array("b", b, check_finite)
    count = _require_triangle("ab", bands)
    if lower:
        bands = _upper_of(bands)
    upper = _diagonals(bands, 0, count)
    return _solve(upper, bands, sides, "positive definite")


def cho_solve_banded(
    cb_and_lower: tuple[ArrayLike, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve with Cholesky factors of banded matrices, as in SciPy, in batches.

    Parameters
    ----------
    cb_and_lower : (array_like, bool)
        The factors cb, shape (..., u + 1, n) with u from 0 to 2, as `scipy.linalg.cholesky_banded`
        returns them, and its argument `lower`.
    b : array_like
        As in `solve_banded`.
    overwrite_b : bool
        Of SciPy; the array is not overwritten.
    check_finite : bool, default: True
        As in `solve_banded`.

    Returns
    -------
    ndarray
        The solutions.

    Raises
    ------
    TypeError
        If `cb_and_lower` is no pair.
    ValueError
        As `solve_banded`.

    See Also
    --------
    pysolvers.factor_pentadiagonal : Factors of batches, with ``solve`` and ``logdet``.

    Notes
    -----
    Solves with the two triangles are recurrences over the rows, `pysolvers.linear_recurrence`.
    As in SciPy, a zero on the diagonal gives infinite numbers or NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers.scipy import cho_solve_banded
    >>> factor = np.array([[0.0, 1.0, 1.0], [2.0, 2.0, 2.0]])  # rows (4, 2), (2, 5, 2), (2, 5)
    >>> cho_solve_banded((factor, False), [6.0, 9.0, 7.0])
    array([1., 1., 1.])
    """
    given: Any = cb_and_lower
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise TypeError(
            f"cb_and_lower must be a pair, got {type(given).__name__}: write (cb, lower), as in "
            "(cholesky_banded(ab), False)"
        )
    cb, lower = given
    bands, sides = _array("cb", cb, check_finite), _array("b", b, check_finite)
    count = _require_triangle("cb", bands)
    if lower:
        bands = _upper_of(bands)
    columns, is_vector = _columns("cb", bands, sides)
    dtype = np.result_type(bands.dtype, columns.dtype)
    batch = np.broadcast_shapes(bands.shape[:-2], columns.shape[:-2])
    x = np.empty((*batch, *columns.shape[-2:]), dtype)
    x[...] = columns
    if x.size:
        main, first, second = (
            bands[..., count - k, :, None] if k <= count else np.zeros((), dtype)
            for k in range(_MOST + 1)
        )
        _substitute(main.conj(), first.conj(), second.conj(), x, reverse=False)
        _substitute(main, _next(first, 1), _next(second, 2), x, reverse=True)
    return x[..., 0] if is_vector else x


def from_banded(ab: ArrayLike, l_and_u: tuple[int, int] = (1, 1)) -> tuple[Array, ...]:
    """Return the diagonals of matrices in the storage of `scipy.linalg.solve_banded`.

    Parameters
    ----------
    ab : array_like, shape (..., l + u + 1, n)
        The matrices, as in `solve_banded`.
    l_and_u : (int, int), default: (1, 1)
        Numbers of diagonals below and above the main one, each from 0 to 2.

    Returns
    -------
    tuple of ndarray
        The three diagonals of `solve_tridiagonal` if there is at most one on each side, otherwise
        the five of `solve_pentadiagonal`: views of `ab`, shape (..., n - k) for the distance k,
        zeros for those that it does not have.

    Raises
    ------
    ValueError
        As `solve_banded`.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers.scipy import from_banded
    >>> lower, diag, upper = from_banded([[0.0, 7.0], [1.0, 2.0], [9.0, 0.0]])
    >>> print(lower, diag, upper)
    [9.] [1. 2.] [7.]
    """
    below, above = _counts(l_and_u)
    bands = _array("ab", ab, check_finite=False)
    _require_bands(bands, below + above + 1, f"l + u + 1 = {below + above + 1}")
    lines = _diagonals(bands, below, above)
    most = 1 if max(below, above) <= 1 else 2
    return tuple(lines[k] for k in range(-most, most + 1))


def _counts(l_and_u: Any) -> tuple[int, int]:
    """Return the numbers of diagonals below and above, or raise."""
    below, above = (integer("l_and_u", value) for value in l_and_u)
    if not (0 <= below <= _MOST and 0 <= above <= _MOST):
        raise ValueError(
            f"l_and_u must be from 0 to {_MOST} each, got {(below, above)}: use "
            "scipy.linalg.solve_banded for wider bands"
        )
    return below, above


def _array(name: str, value: ArrayLike, check_finite: bool) -> Array:
    """Return an array of a dtype that the solves take."""
    require_plain(name, value)
    array = np.asarray(value)
    if array.dtype.kind in "biu":
        array = array.astype(np.float64)
    if check_finite and not np.isfinite(array).all():
        raise ValueError(f"{name} must not contain infs or NaNs")
    return array


def _require_bands(ab: Array, count: int, rule: str) -> None:
    """Raise ValueError unless there are so many diagonals."""
    if ab.ndim < 2 or ab.shape[-2] != count:
        raise ValueError(f"ab must have the shape (..., {rule}, n), got {ab.shape}")


def _diagonals(ab: Array, below: int, above: int) -> dict[int, Array]:
    """Return the diagonals by their distance from the main one, zeros for those without."""
    rows, found = ab.shape[-1], {}
    for k in range(-_MOST, _MOST + 1):
        if -below <= k <= above:
            line = ab[..., above - k, :]
            found[k] = line[..., k:] if k >= 0 else line[..., : max(0, rows + k)]
        else:
            found[k] = np.zeros((*ab.shape[:-2], max(0, rows - abs(k))), ab.dtype)
    return found


def _require_triangle(name: str, bands: Array) -> int:
    """Return the number of diagonals above the main one, or raise."""
    count = bands.shape[-2] - 1 if bands.ndim >= 2 else -1
    if not 0 <= count <= _MOST:
        raise ValueError(
            f"{name} must have the shape (..., u + 1, n) with u from 0 to {_MOST}, got "
            f"{bands.shape}"
        )
    return count


def _substitute(main: Array, first: Array, second: Array, x: Array, *, reverse: bool) -> None:
    """Solve with triangles of rows main, and first and second before them, in place."""
    with np.errstate(all="ignore"):
        x /= main
        pair = -first / main, -second / main
    for line, edge in zip(pair, (1, 2), strict=True):
        if line.ndim > 1:
            outside = slice(-edge, None) if reverse else slice(0, edge)
            line[..., outside, :] = 0
    linear_recurrence(pair[0], x, second=pair[1], axis=-2, reverse=reverse, out=x)


def _next(line: Array, by: int) -> Array:
    """Return a line whose entry i is the entry i + by."""
    return np.roll(line, -by, -2) if line.ndim > 1 else line


def _upper_of(ab: Array) -> Array:
    """Return the upper storage of Hermitian matrices in lower storage."""
    upper = np.zeros_like(ab)
    rows, count = ab.shape[-1], ab.shape[-2] - 1
    for k in range(count + 1):
        upper[..., count - k, k:] = ab[..., k, : max(0, rows - k)].conj()
    return upper


def _columns(name: str, bands: Array, b: Array) -> tuple[Array, bool]:
    """Return right-hand sides as columns, and whether they were one vector."""
    rows, is_vector = bands.shape[-1], b.ndim == 1
    sides = b[:, None] if is_vector else b
    if sides.ndim < 2 or sides.shape[-2] != rows:
        raise ValueError(f"b must have {rows} rows as {name}, got the shape {b.shape}")
    return sides, is_vector


def _solve(lines: dict[int, Array], ab: Array, b: Array, assume: Any) -> Array:
    """Solve for right-hand sides of SciPy's shapes."""
    rows = ab.shape[-1]
    sides, is_vector = _columns("ab", ab, b)
    batch = np.broadcast_shapes(ab.shape[:-2], sides.shape[:-2])
    dtype = np.result_type(ab.dtype, sides.dtype)
    if 0 in (*batch, *sides.shape[-2:]):
        shape = (*batch, rows) if is_vector else (*batch, *sides.shape[-2:])
        return np.empty(shape, dtype)
    own = {k: line[..., :, None] for k, line in lines.items()}
    if assume != "general":
        for k in (1, 2):
            own[-k] = own[k].conj()
    if assume != "general" or any(lines[k].any() for k in (-2, 2)):
        lower2, lower, diag, upper, upper2 = (own[k] for k in range(-2, 3))
        x = solve_pentadiagonal(lower2, lower, diag, upper, upper2, sides, axis=-2, assume=assume)
    else:
        x = solve_tridiagonal(own[-1], own[0], own[1], sides, axis=-2)
    return x[..., 0] if is_vector else x

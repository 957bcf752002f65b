"""Pentadiagonal systems: checks of the operands, solves, factors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import integer, require_flag
from .._errors import SingularSystemError
from .._options import OnSingular, check_choice, check_policy, check_threads
from .._runtime.singular import Singular
from .._runtime.targets import Target
from . import systems
from .systems import Assume, Factors, Matrices, Trans

Array = NDArray[Any]

_NAMES = ("lower2", "lower", "diag", "upper", "upper2")
_OFFSETS = dict(zip(_NAMES, (-2, -1, 0, 1, 2), strict=True))

# A periodic system with fewer rows has two entries in one place of the matrix.
_LEAST_PERIODIC = 5


class _Bands(NamedTuple):
    """Checked operands of a call; `matrices` are open, without the last two rows if periodic."""

    target: Target
    matrices: Matrices
    axis: int  # of the rows, negative
    views: dict[str, Array]  # the diagonals, all rows
    rows: int


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
    out: Array | None = None,
    on_singular: OnSingular = "raise",
    device: str | None = None,
    stream: object = None,
    threads: int | None = None,
) -> Array:
    r"""Solve many independent pentadiagonal systems along one axis.

    For every index of the other axes, find `x` with

    .. math::

       l^{(2)}_i x_{i-2} + l_i x_{i-1} + d_i x_i + u_i x_{i+1} + u^{(2)}_i x_{i+2} = r_i,
       \quad 0 \le i < n.

    Parameters
    ----------
    lower2, lower, diag, upper, upper2 : array_like, shape broadcastable with `rhs`
        The five diagonals. Unless `periodic`, entries that would multiply unknowns outside are
        ignored, and an off-diagonal can omit them: `lower2` and `upper2` then have n - 2, `lower`
        and `upper` n - 1 entries along `axis`. With `assume` ``'positive definite'``, `lower2` and
        `lower` can be None: they are those of the symmetric matrix.
    rhs : array_like, shape (..., n, ...)
        Right-hand sides.
    axis : int, default: -1
        Axis of the systems, as in `solve_tridiagonal`. An operand of one dimension lies along it.
    assume : {'general', 'positive definite'}
        What is known of the matrices. Symmetric positive definite ones need no row exchanges. A
        matrix that has no Cholesky factor counts as a singular one; the symmetry is not checked.
    periodic : bool, default: False
        Whether indices of unknowns count modulo n; n is then at least 5.
    pivot : bool, optional
        Whether to exchange rows (partial pivoting). By default this is done in the systems whose
        blocks of two rows are not diagonally dominant; if `periodic`, only on request.
    out : array, optional
        Array for the result, with its dtype and shape. It can be `rhs` itself; it must not overlap
        another operand.
    on_singular : {'raise', 'warn', 'nan', 'ignore'}
        Reaction to a singular matrix, as in `solve_tridiagonal`.
    device, stream
        As in `solve_tridiagonal`. A device solves real right-hand sides, open systems and without
        row exchanges.
    threads : int, optional
        Number of threads, as in `solve_tridiagonal`. The result has the same bits for any number.

    Returns
    -------
    array, shape of the broadcast operands
        The solutions: `out`, or a new array of the library of `rhs`.

    Raises
    ------
    TypeError
        If an operand has another dtype than those of `solve_tridiagonal`, or the matrix is complex.
    ValueError
        If shapes do not fit or options contradict. If a matrix has an entry that is not finite and
        `on_singular` is ``'raise'``.
    SingularSystemError
        If a matrix is singular, or not positive definite as `assume` says, and `on_singular` is
        ``'raise'``. The other systems of `out` are valid.
    BackendError
        If the device is not available, or does not solve such systems.

    See Also
    --------
    factor_pentadiagonal : Factor matrices once, to solve with them often.

    Notes
    -----
    Pairs of rows are the rows of a block tridiagonal matrix with blocks of 2 x 2 numbers, which is
    solved as `solve_block_tridiagonal` does: about 35 operations and 7 words per unknown, one
    system per lane of a vector. With row exchanges it is banded Gaussian elimination ([1]_,
    section 4.3). A periodic system is bordered: the open system of all but the last two unknowns
    is solved for the right-hand side and for the two columns of these unknowns, whose values
    follow from two equations.

    On a device each thread solves one system with 13 words per row. The call waits for the numbers
    of the singular systems. Systems that by default need row exchanges are copied to the CPU and
    solved there.

    References
    ----------
    .. [1] G. H. Golub and C. F. Van Loan, *Matrix Computations*, 4th ed., Johns Hopkins, 2013.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import solve_pentadiagonal
    >>> rhs = np.array([3.0, -1.0, 0.0, -1.0, 3.0])
    >>> solve_pentadiagonal(1.0, -4.0, 6.0, -4.0, 1.0, rhs).round(6)
    array([1., 1., 1., 1., 1.])
    """
    operation = "solve_pentadiagonal"
    on_host = (device, stream) in ((None, None), ("cpu", None))
    if on_host and periodic is False and on_singular in ("raise", "warn", "nan", "ignore"):
        bands = (lower2, lower, diag, upper, upper2)
        direct = systems.solve_directly("bands", bands, rhs, axis, out, assume, pivot, threads)
        if direct is not None:
            return direct
    named = dict(zip((*_NAMES, "rhs"), (lower2, lower, diag, upper, upper2, rhs), strict=True))
    require_flag("periodic", periodic)
    policy, count = check_policy(on_singular), check_threads(threads)
    found, sides, result = _resolve(
        operation, named, axis, assume, out, periodic=bool(periodic), device=device, stream=stream
    )
    target = found.target
    if periodic or pivot:  # allowed on the CPU
        what = "periodic=True" if periodic else "pivot=True"
        systems.require_host(target, operation, what, "pass arrays of NumPy")
    if result.dtype.kind == "c":
        write = "pass its real and its imaginary part"
        systems.require_host(target, operation, "a complex rhs", write)
    code = systems.pivoting(target.backend, assume, False if periodic and not pivot else pivot)
    if result.size:
        view = systems.last(target.destination(result), found.axis)
        sides = systems.expanded(sides, view.shape)
        pairs = [(sides, view)]
        if view.dtype.kind == "c":
            pairs = [(sides.real, view.real), (sides.imag, view.imag)]
        for right, x in pairs:
            if periodic:
                singular = _solve_periodic(found, right, x, code, count)
            else:
                matrices = found.matrices
                singular = systems.solve(target, matrices, right, x, code, count)
            systems.react(singular, found.matrices, x, policy, 2, target)
    return target.finish(result, rhs, out)


def factor_pentadiagonal(
    lower2: ArrayLike | None,
    lower: ArrayLike | None,
    diag: ArrayLike,
    upper: ArrayLike,
    upper2: ArrayLike,
    *,
    axis: int = -1,
    rows: int | None = None,
    assume: Assume = "general",
    periodic: bool = False,
    pivot: bool | None = None,
    on_singular: OnSingular = "raise",
    threads: int | None = None,
) -> PentadiagonalFactor:
    """Factor a batch of pentadiagonal matrices, for repeated solves.

    Parameters
    ----------
    lower2, lower, diag, upper, upper2 : array_like
        The five diagonals, as in `solve_pentadiagonal`.
    axis, assume, periodic
        As in `solve_pentadiagonal`.
    rows : int, optional
        Number of rows n, if no diagonal has them.
    pivot : bool, optional
        As in `solve_pentadiagonal`; by default rows are exchanged in all matrices if one of them
        needs it.
    on_singular : {'raise', 'warn', 'nan', 'ignore'}
        Reaction to a singular matrix; with ``'nan'`` its solutions are NaN.
    threads : int, optional
        Number of threads.

    Returns
    -------
    PentadiagonalFactor
        The factors: ``solve``, ``logdet``, ``inverse_diagonals``.

    Raises
    ------
    TypeError, ValueError, SingularSystemError, BackendError
        As `solve_pentadiagonal`.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import factor_pentadiagonal
    >>> factor = factor_pentadiagonal(1.0, -4.0, 6.0, -4.0, 1.0, rows=5)
    >>> factor.solve(np.array([3.0, -1.0, 0.0, -1.0, 3.0])).round(6)
    array([1., 1., 1., 1., 1.])
    """
    operation = "factor_pentadiagonal"
    named = dict(zip(_NAMES, (lower2, lower, diag, upper, upper2), strict=True))
    require_flag("periodic", periodic)
    policy, count = check_policy(on_singular), check_threads(threads)
    found, _, _ = _resolve(operation, named, axis, assume, None, rows, periodic=bool(periodic))
    code = systems.pivoting(
        found.target.backend, assume, False if periodic and not pivot else pivot
    )
    return PentadiagonalFactor(found, code, policy, count, periodic=bool(periodic), assume=assume)


class PentadiagonalFactor:
    """Factors of a batch of pentadiagonal matrices; see `factor_pentadiagonal`.

    Attributes
    ----------
    batch : tuple of int
        Shape of the batch of matrices.
    rows : int
        Number of rows n.
    dtype : dtype
        Dtype of the factors.
    axis : int
        Axis of the rows, negative.
    periodic : bool
        The argument of `factor_pentadiagonal`.
    pivoted : bool
        Whether rows are exchanged.
    nbytes : int
        Size of the factors in bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import factor_pentadiagonal
    >>> one = np.ones(6)
    >>> factor = factor_pentadiagonal(one[2:], -4 * one[1:], 7 * one, -4 * one[1:], one[2:])
    >>> factor.solve([4.0, 0.0, 1.0, 1.0, 0.0, 4.0]).round(12)
    array([1., 1., 1., 1., 1., 1.])
    """

    def __init__(
        self,
        found: _Bands,
        code: int,
        policy: OnSingular,
        threads: int,
        *,
        periodic: bool,
        assume: Assume,
    ) -> None:
        matrices = found.matrices
        self._target, self._threads = found.target, threads
        self._assume = assume
        self._made = systems.factor(found.target, matrices, code, threads)
        self.batch, self.rows, self.axis = matrices.batch, found.rows, found.axis
        self.dtype, self.periodic = matrices.dtype, periodic
        self.pivoted = self._made.pivot == found.target.backend.PIVOTS["always"]
        self.nbytes = self._made.store.nbytes
        self._border: _Border | None = None
        singular = self._made.singular
        if periodic:
            self._border = _border_of(found, self._made, threads)
            singular = _also(singular, self._border, definite=matrices.definite)
        self._singular = singular
        self._fills = policy == "nan" and len(singular.rows) > 0
        systems.react(singular, matrices, None, policy, 3)

    def __repr__(self) -> str:
        kind = "periodic, " if self.periodic else ""
        return f"PentadiagonalFactor({self.rows} rows, {kind}batch {self.batch}, {self.dtype})"

    def solve(self, rhs: ArrayLike, *, trans: Trans = "N") -> Array:
        """Solve with the matrices, or with their transposes.

        Parameters
        ----------
        rhs : array_like, shape (..., n, ...)
            Right-hand sides, to whose axes before that of the rows the matrices broadcast; the rows
            lie along `axis`. One of one dimension is that of all matrices.
        trans : {'N', 'T', 'H'}
            Whether to solve with the matrices or with their transposes.

        Returns
        -------
        array
            The solutions.

        Raises
        ------
        TypeError, ValueError
            If `rhs` has another dtype than the factors or does not fit.
        """
        if self._border is None and not self._fills and type(rhs) is np.ndarray:
            direct = systems.apply_directly(
                self._target, self._made, trans, rhs, self.axis, self._threads
            )
            if direct is not None:
                return direct
        check_choice("trans", trans, self._target.backend.TRANS)
        return systems.solved_by_parts(
            "PentadiagonalFactor.solve",
            rhs,
            lambda part: self._solve(np.asarray(part, self.dtype), trans),
        )

    def _solve(self, rhs: Array, trans: str) -> Array:
        place = rhs.ndim + self.axis if rhs.ndim > 1 else 0
        if rhs.ndim == 0 or place < 0 or rhs.shape[place] != self.rows:
            raise ValueError(
                f"rhs must have {self.rows} rows along axis {self.axis}, got shape {rhs.shape}"
            )
        view = np.moveaxis(rhs, place, -1)
        batch = systems.broadcast_batch({"the factor": self.batch, "rhs": view.shape[:-1]})
        wide = systems.expanded(view, (*batch, self.rows))
        if self._border is None:
            x = systems.apply(self._target, self._made, trans, wide, self._threads)
        else:
            x = _bordered(self._target, self._made, self._border, wide, trans, self._threads)
        if self._fills:
            systems.react(self._singular, self._made.matrices, x, "nan", 2)
        return np.ascontiguousarray(np.moveaxis(x, -1, x.ndim + self.axis))

    def logdet(self) -> Array:
        r"""Return :math:`\log |\det A|` of each matrix, in float64.

        Returns
        -------
        array, shape of the batch
            The logarithms.

        Raises
        ------
        SingularSystemError
            If a matrix that was to be positive definite has a determinant that is not positive.
        """
        logarithms, signs = systems.logdet(self._target, self._made)
        if self._border is not None:
            own, more = np.linalg.slogdet(self._border.schur)
            logarithms, signs = logarithms + more, signs * own
        if self._assume != "general" and not (signs > 0).all():
            wrong = np.argwhere(~(signs > 0))
            raise SingularSystemError(wrong, np.zeros(len(wrong), np.intp))
        return logarithms[()]

    def inverse_diagonals(self) -> tuple[Array, Array, Array, Array, Array]:
        """Return the five diagonals of the inverses, which are full matrices.

        Returns
        -------
        lower2, lower, diag, upper, upper2 : array, shape (..., n, ...)
            Entries (i, i - 2) to (i, i + 2) of the inverses, those outside 0: the method of
            Takahashi, Fagan and Chen, as `BlockTridiagonalFactor.inverse_blocks`.

        Raises
        ------
        ValueError
            If the factors have row exchanges or are periodic.
        """
        if self.pivoted or self.periodic:
            raise ValueError(
                "inverse_diagonals needs factors of open systems without row exchanges: write "
                "pivot=False or assume='positive definite'"
            )
        lower, diag, upper = systems.inverse(self._target, self._made)
        blocks = np.concatenate((lower, diag, upper), -1)  # (..., pairs, 2, 6)
        columns = {
            name: np.stack([blocks[..., p, 2 + p + offset] for p in range(2)], -1)
            for name, offset in _OFFSETS.items()
        }
        found = []
        for name, offset in _OFFSETS.items():
            line = columns[name].reshape(*self.batch, -1)[..., self.rows % 2 :].copy()
            if offset > 0:
                line[..., max(0, self.rows - offset) :] = 0
            line[..., : max(0, -offset)] = 0
            found.append(np.moveaxis(line, -1, line.ndim + self.axis))
        lower2, lower1, middle, upper1, upper2 = found
        return lower2, lower1, middle, upper1, upper2


class _Border(NamedTuple):
    """The last two rows and columns of periodic matrices, and what solves leave of them."""

    columns: Array  # (2, ..., n - 2): columns n - 2 and n - 1 of the rows before
    lines: Array  # (2, ..., n - 2): rows n - 2 and n - 1
    solved: dict[str, Array]  # columns (N) or lines (T) after the solve with the open matrix
    schur: Array  # (..., 2, 2)


def _also(singular: Singular, border: _Border, *, definite: bool) -> Singular:
    """Add the matrices whose two last equations are singular, or not `definite`."""
    with np.errstate(all="ignore"):
        determinant = np.linalg.det(border.schur)
        wrong = ~(np.abs(determinant) > 0) | ~np.isfinite(determinant)
        if definite:
            wrong |= ~((determinant > 0) & (border.schur[..., 0, 0] > 0))
    bad = np.argwhere(wrong)
    known = {tuple(system) for system in singular.systems}
    more = [system for system in bad if tuple(system) not in known]
    if not more:
        return singular
    rows = np.full(len(more), border.lines.shape[-1], np.intp)
    found = np.concatenate((singular.systems, np.array(more, np.intp)))
    order = np.lexsort(found.T[::-1]) if found.shape[1] else np.arange(len(found))
    return Singular(found[order], np.concatenate((singular.rows, rows))[order])


def _border_of(found: _Bands, made: Factors, threads: int) -> _Border:
    """Split periodic matrices, and solve for their last two columns and rows."""
    n, batch = found.rows, found.matrices.batch
    full = {name: systems.expanded(v, (*batch, n)) for name, v in found.views.items()}
    columns = np.zeros((2, *batch, n - 2), found.matrices.dtype)
    lines, corner = np.zeros_like(columns), np.zeros((*batch, 2, 2), columns.dtype)
    for name, offset in _OFFSETS.items():
        for row in sorted({0, 1, n - 4, n - 3, n - 2, n - 1}):
            column = (row + offset) % n
            if row >= n - 2 and column >= n - 2:
                corner[..., row - n + 2, column - n + 2] += full[name][..., row]
            elif row >= n - 2:
                lines[row - n + 2, ..., column] += full[name][..., row]
            elif column >= n - 2:
                columns[column - n + 2, ..., row] += full[name][..., row]
    solved = {
        "N": systems.apply(found.target, made, "N", columns, threads),
        "T": systems.apply(found.target, made, "T", lines, threads),
    }
    with np.errstate(all="ignore"):
        schur = corner - np.einsum("p...i,q...i->...pq", lines, solved["N"])
    return _Border(columns, lines, solved, schur)


def _bordered(
    target: Target, made: Factors, border: _Border, rhs: Array, trans: str, threads: int
) -> Array:
    """Solve with periodic matrices."""
    y = systems.apply(target, made, trans, rhs[..., :-2], threads)
    lines = border.lines if trans == "N" else border.columns
    solved = border.solved["N" if trans == "N" else "T"]
    schur = border.schur if trans == "N" else np.swapaxes(border.schur, -1, -2)
    with np.errstate(all="ignore"):
        left = rhs[..., -2:] - np.einsum("p...i,...i->...p", lines, y)
        determinant = schur[..., 0, 0] * schur[..., 1, 1] - schur[..., 0, 1] * schur[..., 1, 0]
        first = schur[..., 1, 1] * left[..., 0] - schur[..., 0, 1] * left[..., 1]
        second = schur[..., 0, 0] * left[..., 1] - schur[..., 1, 0] * left[..., 0]
        last = np.stack((first / determinant, second / determinant), -1)
        x = y - solved[0] * last[..., :1] - solved[1] * last[..., 1:]
    return np.concatenate((x, last), -1)


def _solve_periodic(found: _Bands, rhs: Array, x: Array, code: int, threads: int) -> Singular:
    """Factor, border and solve; return the singular systems."""
    made = systems.factor(found.target, found.matrices, code, threads)
    border = _border_of(found, made, threads)
    x[...] = _bordered(found.target, made, border, rhs, "N", threads)
    return _also(made.singular, border, definite=found.matrices.definite)


def _resolve(
    operation: str,
    named: dict[str, Any],
    axis: int,
    assume: Assume,
    out: Any,
    rows: int | None = None,
    *,
    periodic: bool,
    device: str | None = None,
    stream: object = None,
) -> tuple[_Bands, Array, Array]:
    """Check operands; return them, the right-hand sides, rows last, and the result."""
    missing = [name for name in _NAMES if named[name] is None]
    if missing and (assume != "positive definite" or missing != ["lower2", "lower"]):
        raise ValueError(
            f"{operation}: {missing[0]} is None: pass the diagonal, or lower2=None and lower=None "
            "with assume='positive definite'"
        )
    given = {name: value for name, value in named.items() if value is not None}
    if "rhs" in named:
        target = systems.solve_target(operation, named, out, "rhs", device, stream)
    else:
        target = systems.host_target(operation, named, out, "diag")
    arrays, dtype, _ = target.operands(given)
    leader = dict(zip(given, arrays, strict=True)).get("rhs", arrays[0])
    operands = dict(zip(given, systems.moved(target, arrays), strict=True))
    if operands["diag"].dtype.kind == "c":  # an entry is: all are converted to one dtype
        name = next(name for name in _NAMES if name in given and np.iscomplexobj(given[name]))
        raise TypeError(
            f"{operation}: the matrix must be real, and {name} is complex: write it as blocks for "
            "solve_block_tridiagonal"
        )
    if "rhs" in operands and operands["rhs"].ndim == 0:
        raise ValueError("rhs must have at least one dimension, got a 0-d array")
    ndim = max(1, *(array.ndim for array in operands.values()))
    place = integer("axis", axis)
    if not -ndim <= place < ndim:
        raise np.exceptions.AxisError(
            f"axis must be in {-ndim} .. {ndim - 1} for operands of {ndim} axes, got {axis}"
        )
    place = place % ndim - ndim
    views = {name: _rows_last(array, place) for name, array in operands.items()}
    count = _rows_of(operation, operands, views, rows)
    if periodic and count < _LEAST_PERIODIC:
        raise ValueError(
            f"{operation}: a periodic system must have at least {_LEAST_PERIODIC} rows, got {count}"
        )
    for name, view in views.items():
        views[name] = _with_rows(name, operands[name].ndim, view, count, axis, periodic=periodic)
    if missing:
        views |= _mirrored(views, count, periodic=periodic)
    views = dict(zip(views, systems.moved(target, list(views.values())), strict=True))
    batch = systems.broadcast_batch({name: view.shape[:-1] for name, view in views.items()})
    sides = result = np.empty(0)
    if "rhs" in views:
        sides = systems.expanded(views["rhs"], (*batch, count))
        shape = [*batch, count]
        shape.insert(len(shape) + place, shape.pop())
        result = target.result(out, given, leader, tuple(shape), dtype, leader="rhs")
    matrix = {name: views[name] for name in _NAMES}
    open_rows = count - 2 if periodic else count
    used = matrix
    if periodic:
        used = {name: view[..., : count - 2] for name, view in matrix.items()}
    own = views["diag"].dtype
    matrices = Matrices(
        operation,
        side=0,
        rows=open_rows,
        batch=batch,
        dtype=own,
        names=_NAMES,
        operands=tuple(used.values()),
        definite=assume == "positive definite",
    )
    return _Bands(target, matrices, place, matrix, count), sides, result


def _rows_last(array: Array, axis: int) -> Array:
    """Move the rows behind the batch axes; numbers and operands of fewer axes are constant."""
    if array.ndim == 1:
        return array
    if array.ndim < -axis:
        return array[..., None]
    return systems.last(array, axis)


def _rows_of(
    operation: str, operands: dict[str, Array], views: dict[str, Array], rows: int | None
) -> int:
    """Return the number of rows of the systems, or raise."""
    counts = [views[name].shape[-1] for name in ("rhs", "diag") if name in views]
    count = next((size for size in counts if size != 1), 1)
    if count == 1 and not any(operands[n].ndim == 1 for n in ("rhs", "diag") if n in operands):
        count = max(
            [
                1,
                *(
                    v.shape[-1] + abs(_OFFSETS.get(n, 0))
                    for n, v in views.items()
                    if v.shape[-1] > 1
                ),
            ]
        )
    if rows is not None:
        asked = integer("rows", rows)
        if count not in (1, asked):
            raise ValueError(f"{operation}: rows is {rows}, but the diagonals have {count} rows")
        count = asked
    elif count == 1 and all(a.ndim == 0 for a in operands.values()):
        raise ValueError(
            f"{operation}: the diagonals are all 0-d, so the number of rows is unknown: pass rows=n"
        )
    return count


def _with_rows(
    name: str, ndim: int, view: Array, count: int, axis: int, *, periodic: bool
) -> Array:
    """Return an operand with all rows, or with those that count, or raise."""
    length, least = view.shape[-1], abs(_OFFSETS.get(name, 0))
    if not periodic and length == 0 and count < least:  # no entry counts
        return np.zeros((*view.shape[:-1], count), view.dtype)
    if length == count or (not periodic and least and length == max(0, count - least)):
        return view
    if length == 1 and ndim != 1:
        return systems.expanded(view, (*view.shape[:-1], count))
    less = "" if periodic or not least else f" or {max(0, count - least)}"
    raise ValueError(f"{name} must have {count}{less} entries along axis {axis}, got {length}")


def _mirrored(views: dict[str, Array], count: int, *, periodic: bool) -> dict[str, Array]:
    """Return the lower diagonals of symmetric matrices."""
    found = {}
    for name, other, offset in (("lower2", "upper2", 2), ("lower", "upper", 1)):
        line = views[other]
        if periodic:
            found[name] = np.roll(line, offset, -1)
        else:
            rows = max(0, count - offset)
            found[name] = line[..., :rows] if rows else np.zeros((count,), line.dtype)
    return found

"""Pentadiagonal systems: checks of the operands, solves, factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import require_flag
from .._errors import SingularSystemError
from .._options import OnSingular, check_choice, check_policy, check_threads
from .._runtime.singular import Singular
from .._runtime.targets import Target
from . import formulas, pairs, rings, systems
from .blocks import factor_block_tridiagonal, solve_block_tridiagonal, solve_split
from .systems import Assume, Factors, Matrices, Trans

if TYPE_CHECKING:
    from ..distributed import Group, Slab
    from .split import Kind
    from .split_factor import SplitBlockFactor

Array = NDArray[Any]

_NAMES = ("lower2", "lower", "diag", "upper", "upper2")
_OFFSETS = dict(zip(_NAMES, (-2, -1, 0, 1, 2), strict=True))

# A periodic system with fewer rows has two entries in one place of the matrix.
_LEAST_PERIODIC = 5

# Right-hand sides of one periodic matrix for which eliminations cost less than planning.
_FEW_ENTRIES = 4096


class _Bands(NamedTuple):
    """Checked operands of a call; `matrices` are open, without the last two rows if periodic."""

    target: Target
    matrices: Matrices
    axis: int  # of the rows in the result, negative; without a result that of solves
    views: dict[str, Array]  # the diagonals, all rows
    rows: int

    @property
    def is_complex(self) -> bool:
        """Whether the matrices are complex."""
        return self.matrices.dtype.kind == "c"


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
    group: Group | None = None,
    split: Slab | None = None,
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
        `lower` can be None: they are those of the symmetric, or Hermitian, matrix.
    rhs : array_like, shape (..., n, ...)
        Right-hand sides.
    axis : int, default: -1
        Axis of the systems, as in `solve_tridiagonal`. An operand of one dimension lies along it.
    assume : {'general', 'positive definite'}
        What is known of the matrices. Symmetric, or Hermitian, positive definite ones need no row
        exchanges. A matrix that has no Cholesky factor counts as a singular one; the symmetry is
        not checked.
    periodic : bool, default: False
        Whether indices of unknowns count modulo n; n is then at least 5.
    pivot : bool, optional
        Whether to exchange rows (partial pivoting). By default this is done in the systems whose
        blocks of two rows are not diagonally dominant.
    out : array, optional
        Array for the result, with its dtype and shape. It can be `rhs` itself; it must not overlap
        another operand.
    on_singular : {'raise', 'warn', 'nan', 'ignore'}
        Reaction to a singular matrix, as in `solve_tridiagonal`.
    device, stream
        As in `solve_tridiagonal`. A device solves complex and periodic systems as arrays of CuPy,
        PyTorch or JAX on their own stream.
    threads : int, optional
        Number of threads, as in `solve_tridiagonal`. The result has the same bits for any number.
    group, split : pysolvers.distributed.Group and Slab, optional
        As in `solve_tridiagonal`: each rank passes its part of the operands, and gets its part of
        the solutions.

    Returns
    -------
    array, shape of the broadcast operands
        The solutions: `out`, or a new array of the library of `rhs`.

    Raises
    ------
    TypeError
        If an operand has another dtype than those of `solve_tridiagonal`.
    ValueError
        If shapes do not fit or options contradict. If a matrix has an entry that is not finite and
        `on_singular` is ``'raise'``.
    SingularSystemError
        If a matrix is singular, or not positive definite as `assume` says, and `on_singular` is
        ``'raise'``. The other systems of `out` are valid.
    BackendError
        If the device is not available, or does not solve such systems.
    DistributedError
        With `group`, as in `solve_tridiagonal`.

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
    follow from two equations. Where this loses digits, because the open matrix is singular or
    nearly so, the rows in the order 0, n - 1, 1, n - 2, ... are those of blocks of 4 x 4 numbers,
    which are eliminated with row exchanges.

    A complex matrix is solved as a real one with blocks of 4 x 4 numbers, with about 5 times the
    operations.

    On a device each thread solves one system, with 7 to 13 words per row, or 19 with row exchanges,
    or systems are divided into chunks, with 7 words: contiguous rows, 65 to 1024 in number, and
    neighbouring systems of 97 rows and more in float32 and of 75 to 256 rows in float64, of more
    if the systems are few. The call waits for the numbers of the singular systems where it has to
    report them.

    Systems that are cut are solved as `solve_block_tridiagonal` does, each rank's last two unknowns
    in place of a block, if each rank has at least 4 rows and the pairs of rows are diagonally
    dominant or the matrices positive definite; otherwise as whole systems.

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
    bands = (lower2, lower, diag, upper, upper2)
    if group is not None or split is not None:
        return solve_split(
            _kind(),
            group,
            split,
            dict(zip((*_NAMES, "rhs"), (*bands, rhs), strict=True)),
            axis=axis,
            assume=assume,
            periodic=periodic,
            pivot=pivot,
            out=out,
            on_singular=on_singular,
            device=device,
            stream=stream,
            threads=threads,
        )
    if on_host and periodic is True and out is None and check_policy(on_singular):
        direct = _solve_periodic_directly(bands, rhs, axis, assume, pivot, threads)
        if direct is not None:
            return direct
    if stream is None and periodic is False and on_singular in ("raise", "warn", "nan", "ignore"):
        options = (assume, pivot, threads, device, on_singular)
        direct = systems.solve_directly("bands", bands, rhs, axis, out, *options)
        if direct is not None:
            return direct
    named = dict(zip((*_NAMES, "rhs"), (lower2, lower, diag, upper, upper2, rhs), strict=True))
    require_flag("periodic", periodic)
    x = formulas.solve(
        operation,
        solve_pentadiagonal,
        solve_block_tridiagonal,
        named,
        out,
        on_singular,
        device,
        stream,
        axis=axis,
        assume=assume,
        periodic=bool(periodic),
        pivot=pivot,
        threads=threads,
    )
    if x is not None:
        return x
    policy, count = check_policy(on_singular), check_threads(threads)
    found, sides, result = _resolve(
        operation, named, axis, assume, out, periodic=bool(periodic), device=device, stream=stream
    )
    target = found.target
    _require_offered(operation, found, periodic=bool(periodic))
    code = systems.pivoting(target.backend, assume, pivot)
    if result.size:
        singular = _solve(found, sides, result, code, count, policy)
        singular = systems.explained(singular, found.matrices, policy, target)
        systems.report(singular, found.matrices, policy, 2)
    return target.finish(result, rhs, out)


def _kind() -> Kind:
    """Return what these systems are for the functions of split arrays."""
    from .split import Columns, Kind

    def columns(found: _Bands, sides: Array, result: Array) -> Columns:
        parts = [(right[None], x[None]) for right, x in _parts_of(found, sides, result)]
        return parts, lambda: None

    return Kind(
        "solve_pentadiagonal",
        _NAMES,
        tail=1,
        ends=2,
        least=4,
        least_periodic=_LEAST_PERIODIC,
        function=solve_pentadiagonal,
        resolve=_resolve,
        require=_require_offered,
        columns=columns,
        solve=_solve,
        solve_blocks=solve_block_tridiagonal,
        solve_on_host=pairs.solve_on_host,
        factor=pairs.factor,
        apply=pairs.apply,
        factor_function=factor_pentadiagonal,
        factor_blocks=factor_block_tridiagonal,
        wide=PentadiagonalFactor._wide,
    )


def _parts_of(found: _Bands, sides: Array, result: Array) -> list[tuple[Array, Array]]:
    """View right-hand sides and the result with the rows last, as those of real matrices."""
    view = systems.last(found.target.destination(result), found.axis)
    sides = systems.expanded(sides, view.shape)
    return systems.real_parts(sides, view, is_complex=found.matrices.dtype.kind == "c")


def _solve(
    found: _Bands, sides: Array, result: Array, code: int, threads: int, policy: OnSingular
) -> Singular:
    """Solve, with NaN in singular systems if `policy` says so; return these."""
    target, matrices = found.target, found.matrices
    parts = _parts_of(found, sides, result)
    for right, x in parts:
        if matrices.periodic:
            singular = _solve_periodic(found, right, x, code, threads)
        else:
            singular = pairs.solve(target, matrices, right, x, code, threads, policy)
    if policy == "nan":
        for _, x in parts:
            systems.fill_nan(singular, matrices, x, target)
    return singular


@overload
def factor_pentadiagonal(
    lower2: ArrayLike | None,
    lower: ArrayLike | None,
    diag: ArrayLike,
    upper: ArrayLike,
    upper2: ArrayLike,
    *,
    axis: int = ...,
    rows: int | None = ...,
    assume: Assume = ...,
    periodic: bool = ...,
    pivot: bool | None = ...,
    on_singular: OnSingular = ...,
    threads: int | None = ...,
    group: None = ...,
    split: None = ...,
) -> PentadiagonalFactor: ...
@overload
def factor_pentadiagonal(
    lower2: ArrayLike | None,
    lower: ArrayLike | None,
    diag: ArrayLike,
    upper: ArrayLike,
    upper2: ArrayLike,
    *,
    axis: int = ...,
    rows: int | None = ...,
    assume: Assume = ...,
    periodic: bool = ...,
    pivot: bool | None = ...,
    on_singular: OnSingular = ...,
    threads: int | None = ...,
    group: Group,
    split: Slab,
) -> SplitBlockFactor: ...
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
    group: Group | None = None,
    split: Slab | None = None,
) -> PentadiagonalFactor | SplitBlockFactor:
    """Factor a batch of pentadiagonal matrices, for repeated solves.

    Parameters
    ----------
    lower2, lower, diag, upper, upper2 : array_like
        The five diagonals, as in `solve_pentadiagonal`.
    axis : int, default: -1
        Axis of the systems, in the diagonals and in right-hand sides, as in `factor_tridiagonal`:
        any axis of right-hand sides for diagonals of one dimension.
    assume, periodic
        As in `solve_pentadiagonal`.
    rows : int, optional
        Number of rows n. Needed if no diagonal has more than one entry along `axis`, unless `diag`
        has one dimension.
    pivot : bool, optional
        As in `solve_pentadiagonal`; by default rows are exchanged in all matrices if one of them
        needs it.
    on_singular : {'raise', 'warn', 'nan', 'ignore'}
        Reaction to a singular matrix; with ``'nan'`` its solutions are NaN.
    threads : int, optional
        Number of threads.
    group, split : pysolvers.distributed.Group and Slab, optional
        As in `solve_pentadiagonal`: each rank passes its part of the matrices. `rows` is the number
        of rows of the rank.

    Returns
    -------
    PentadiagonalFactor or SplitBlockFactor
        The factors: ``solve``, ``logdet``, and without a group ``inverse_diagonals``.

    Raises
    ------
    TypeError, ValueError, SingularSystemError, BackendError, DistributedError
        As `solve_pentadiagonal`.

    Notes
    -----
    Arrays on a device have their factors there: of open real matrices, without row exchanges
    across blocks. The call waits for them, but not with ``on_singular='ignore'`` if `pivot` or
    `assume` says that nothing is exchanged. Solves run on the current stream of the library of the
    right-hand sides. Fewer than 8192 matrices of 64 block rows or more are divided into chunks of
    16: the last rows of the chunks are those of a smaller matrix, divided into chunks of 4. With
    ``pivot=False`` the matrices of the first rows of all chunks must also be regular, as those of
    dominant and of definite matrices are.

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
    if group is not None or split is not None:
        from .split_factor import SplitBlockFactor

        return SplitBlockFactor(
            _kind(),
            group,
            split,
            named,
            axis=axis,
            rows=rows,
            assume=assume,
            periodic=periodic,
            pivot=pivot,
            on_singular=on_singular,
            threads=threads,
        )
    require_flag("periodic", periodic)
    policy, count = check_policy(on_singular), check_threads(threads)
    found, _, _ = _resolve(operation, named, axis, assume, None, rows, periodic=bool(periodic))
    code = systems.pivoting(found.target.backend, assume, pivot)
    _require_offered(operation, found, periodic=bool(periodic))
    return PentadiagonalFactor(
        found, code, policy, count, periodic=bool(periodic), assume=assume, like=diag
    )


class PentadiagonalFactor(rings.RingFactor):
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
        Axis of the rows in right-hand sides: as it was given if there is one matrix, of no batch
        axis, otherwise that of the matrices, counted from the end.
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
        like: Any,
    ) -> None:
        matrices, target = found.matrices, found.target
        self._results = None if target.name == "cpu" else systems.DeviceResults(target, like, 1)
        self._target, self._threads = target.without_operands(), threads
        self._assume = assume
        self._made = pairs.factor(found.target, matrices, code, threads)
        self._matrices = matrices.without_operands()
        self.batch, self.rows, self.axis = matrices.batch, found.rows, found.axis
        self.dtype, self.periodic = matrices.dtype, periodic
        self.pivoted = self._made.pivot == found.target.backend.PIVOTS["always"]
        self.nbytes = self._made.store.nbytes
        self._border: _Border | None = None
        self._folded: rings.Folded | None = None
        if periodic:
            self._border = _border_of(found, self._made, threads)
            singular = _also(
                self._made.singular, self._border, matrices.rows, definite=matrices.definite
            )
            self._made = self._made._replace(found=singular)
            if not matrices.definite:
                where = found.target, matrices.operation, _ring_of(found)
                self._folded = rings.fold(*where, _lost(self._border), singular, threads)
        self._finish(policy, matrices, target)

    def __repr__(self) -> str:
        kind = "periodic, " if self.periodic else ""
        return f"PentadiagonalFactor({self.rows} rows, {kind}batch {self.batch}, {self.dtype})"

    def solve(self, rhs: ArrayLike, *, axis: int | None = None, trans: Trans = "N") -> Array:
        """Solve with the matrices, or with their transposes.

        Parameters
        ----------
        rhs : array_like, shape (..., n, ...)
            Right-hand sides, to whose axes other than that of the rows the matrices broadcast. One
            of one dimension is that of all matrices.
        axis : int, optional
            Axis of the rows in the solution; by default the attribute `axis`.
        trans : {'N', 'T', 'H'}
            Whether to solve with the matrices or with their transposes.

        Returns
        -------
        array
            The solutions, in the precision of the factors; complex if the factors or `rhs` are.

        Raises
        ------
        TypeError, ValueError
            If `rhs` has a higher precision than the factors, or does not fit, or has no such axis.
        """
        place = self._axis_of(axis, rhs)
        if self._results is not None:
            check_choice("trans", trans, self._target.backend.TRANS)

            def solve(target: Target, right: Array, x: Array) -> None:
                systems.apply(target, self._made, trans, right, self._threads, x)
                if self._fills:
                    systems.react(self._singular, self._matrices, x, "nan", 2, target)

            return self._results.solve(
                "PentadiagonalFactor.solve",
                np.dtype(self.dtype),
                rhs,
                place,
                lambda part: self._wide(part, place),
                solve,
            )
        is_complex = self.dtype.kind == "c"
        if not self._fills and type(rhs) is np.ndarray and not is_complex:
            direct = self._solve_directly(rhs, place, trans)
            if direct is not None:
                return direct
        check_choice("trans", trans, self._target.backend.TRANS)
        return systems.solved_by_parts(
            "PentadiagonalFactor.solve",
            rhs,
            np.dtype(self.dtype),
            lambda part: self._solve(part, place, trans),
        )

    def _solve_directly(self, rhs: Array, axis: int, trans: Any) -> Any:
        """Solve without planning, or return None."""
        call = (self._target, self._made, trans)
        if self._folded is not None:
            return None
        if self._border is None:
            return systems.apply_directly(*call, rhs, axis, self._threads)
        if rhs.ndim == 0 or rhs.shape[-1] != self.rows or (axis != -1 and rhs.ndim > 1):
            return None
        y = systems.apply_directly(*call, rhs[..., :-2], -1, self._threads)
        return None if y is None else _bordered(self._border, y, rhs[..., -2:], trans)

    def _wide(self, rhs: Array, axis: int) -> Array:
        """View right-hand sides with all batch axes, the rows last, or raise."""
        place = rhs.ndim + axis if rhs.ndim > 1 else 0
        if rhs.ndim == 0 or place < 0 or rhs.shape[place] != self.rows:
            raise ValueError(
                f"rhs must have {self.rows} rows along axis {axis}, got shape {rhs.shape}"
            )
        view = np.moveaxis(rhs, place, -1)
        batch = systems.broadcast_batch({"the factor": self.batch, "rhs": view.shape[:-1]})
        return systems.expanded(view, (*batch, self.rows))

    def _solve(self, rhs: Array, axis: int, trans: str) -> Array:
        wide = self._wide(rhs, axis)
        if self._folded is not None:
            x = self._folded.solve(wide[..., None], trans)[..., 0]
        elif self._border is None:
            x = pairs.apply(self._target, self._made, trans, wide, self._threads)
        elif trans == "H" and self.dtype.kind == "c":
            return self._solve(rhs.conj(), axis, "T").conj()
        else:
            inner = wide[..., :-2]
            y = pairs.apply(self._target, self._made, trans, inner, self._threads)
            x = _bordered(self._border, y, wide[..., -2:], trans)
        if self._fills:
            systems.react(self._singular, self._matrices, x, "nan", 2)
        return np.ascontiguousarray(np.moveaxis(x, -1, x.ndim + axis))

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
        if self._folded is not None:
            return self._folded.logdet()[()]
        if self._results is not None:
            return self._results.logdet("PentadiagonalFactor.logdet", self._made)
        logarithms, signs = systems.logdet(self._target, self._made)
        if self.dtype.kind == "c":  # the real matrix has the square
            logarithms = logarithms / 2
        if self._border is not None:
            own, more = np.linalg.slogdet(np.moveaxis(self._border.schur, (0, 1), (-2, -1)))
            logarithms, signs = logarithms + more, signs * own.real
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
        if self._results is not None:
            return self._inverse_on_device(self._results)
        found_blocks = systems.inverse(self._target, self._made)
        if self.dtype.kind == "c":
            found_blocks = [pairs.extracted(block) for block in found_blocks]
        blocks = np.concatenate(found_blocks, -1)  # (..., pairs, 2, 6)
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
            found.append(np.moveaxis(line, -1, line.ndim + self._own_axis))
        lower2, lower1, middle, upper1, upper2 = found
        return lower2, lower1, middle, upper1, upper2

    def _inverse_on_device(self, results: systems.DeviceResults) -> Any:
        """Return the diagonals of the inverses on the device."""
        target, n = results.target("PentadiagonalFactor.inverse_diagonals"), self.rows
        blocks, found, lead = systems.inverse(target, self._made), [], self.rows % 2
        for offset in _OFFSETS.values():
            line = target.empty((*self.batch, n), np.dtype(self.dtype))
            for p in range(2):
                block, q = divmod(2 + p + offset, 2)
                first = lead if p == 0 else 0  # pairs whose row p is in the matrix
                rows = line[..., 1 if p == 0 and lead else p * (1 - lead) :: 2]
                target.write(rows, blocks[block][..., first:, p, q])
            out = line[..., max(0, n - offset) :] if offset > 0 else line[..., : max(0, -offset)]
            target.write(out, np.zeros((1,) * line.ndim, self.dtype))
            found.append(np.moveaxis(line, -1, line.ndim + self._own_axis))
        return tuple(results.finish(target, line) for line in found)


class _Border(NamedTuple):
    """The last two rows and columns of periodic matrices, and what solves leave of them.

    Of each row and column, the entries in the columns and rows of `_ENDS` of the open matrix.
    """

    columns: Array  # (2, ..., 4)
    lines: Array  # (2, ..., 4)
    corner: Array  # (2, 2, ...)
    solved: dict[str, Array]  # columns (N) or lines (T) after the solve with the open matrix
    schur: Array  # (2, 2, ...)


# Of n - 2 rows the first two and the last two; of 3 rows the middle one is there twice.
_ENDS = (0, 1, -2, -1)


def _also(singular: Singular, border: _Border, open_rows: int, *, definite: bool) -> Singular:
    """Add the matrices whose two last equations are singular, or not `definite`."""
    with np.errstate(all="ignore"):
        wrong = ~_is_regular(border.schur, definite=definite)
    return systems.with_last_row(singular, wrong, open_rows)


def _scaled(schur: Array) -> tuple[Array, Array]:
    """Return the two last equations over their largest coefficients, and these.

    Products of the coefficients themselves can overflow or underflow.
    """
    scale = np.abs(schur).max(1)
    return schur / scale[:, None], scale


def _is_regular(schur: Array, *, definite: bool) -> Array:
    """Return whether the two last equations have a solution, or are positive `definite`."""
    schur, _ = _scaled(schur)
    determinant = schur[0, 0] * schur[1, 1] - schur[0, 1] * schur[1, 0]
    if definite:
        return (determinant.real > 0) & (schur[0, 0].real > 0) & np.isfinite(determinant)
    return (np.abs(determinant) > 0) & np.isfinite(determinant)


def _entries(bands: Sequence[Any], batch: tuple[int, ...], dtype: Any) -> tuple[Array, ...]:
    """Return the entries of the last two columns, rows, and both, of diagonals or numbers."""

    def at(k: int, row: int) -> Any:
        band = bands[k]
        return band[..., row] if isinstance(band, np.ndarray) and band.ndim else band

    columns, lines = np.zeros((2, 2, *batch, 4), dtype)
    corner = np.empty((2, 2, *batch), dtype)
    columns[0, ..., 0], columns[0, ..., 2], columns[0, ..., 3] = at(0, 0), at(4, -4), at(3, -3)
    columns[1, ..., 0], columns[1, ..., 1], columns[1, ..., 3] = at(1, 0), at(0, 1), at(4, -3)
    lines[0, ..., 0], lines[0, ..., 2], lines[0, ..., 3] = at(4, -2), at(0, -2), at(1, -2)
    lines[1, ..., 0], lines[1, ..., 1], lines[1, ..., 3] = at(3, -1), at(4, -1), at(0, -1)
    corner[0, 0], corner[0, 1], corner[1, 0], corner[1, 1] = (
        at(2, -2), at(3, -2), at(1, -1), at(2, -1),
    )  # fmt: skip
    return columns, lines, corner


def _spread(ends: Array, to: Array) -> None:
    """Write rows or columns of a border, whose other entries are 0."""
    to[...] = 0
    for slot, place in enumerate(_ENDS):
        to[..., place] += ends[..., slot]


def _schur(corner: Array, lines: Array, solved: Array) -> Array:
    """Return what the two last equations are after the elimination of the other ones."""
    ends = solved[..., _ENDS]
    with np.errstate(all="ignore"):
        return corner - (lines[:, None] * ends).sum(-1)


def _border_of(found: _Bands, made: Factors, threads: int) -> _Border:
    """Split periodic matrices, and solve for their last two columns and rows."""
    n, batch, dtype = found.rows, found.matrices.batch, found.matrices.dtype
    bands = [systems.expanded(view, (*view.shape[:-1], n)) for view in found.views.values()]
    columns, lines, corner = _entries(bands, batch, dtype)
    solved = {}
    for trans, ends in (("N", columns), ("T", lines)):
        full = np.empty((2, *batch, n - 2), dtype)
        _spread(ends, full)
        solved[trans] = pairs.apply(found.target, made, trans, full, threads)
    return _Border(columns, lines, corner, solved, _schur(corner, lines, solved["N"]))


def _bordered(border: _Border, y: Array, right: Array, trans: str) -> Array:
    """Return the solutions, given y of the open systems and the two last right-hand sides."""
    lines, schur = border.lines, border.schur
    if trans != "N":
        lines, schur = border.columns, np.swapaxes(schur, 0, 1)
    solved = border.solved["N" if trans == "N" else "T"]
    n = y.shape[-1]
    x = np.empty((*y.shape[:-1], n + 2), y.dtype)
    with np.errstate(all="ignore"):
        ends = y[..., _ENDS]
        schur, scale = _scaled(schur)
        first = (right[..., 0] - (lines[0] * ends).sum(-1)) / scale[0]
        second = (right[..., 1] - (lines[1] * ends).sum(-1)) / scale[1]
        determinant = schur[0, 0] * schur[1, 1] - schur[0, 1] * schur[1, 0]
        x[..., n] = (schur[1, 1] * first - schur[0, 1] * second) / determinant
        x[..., n + 1] = (schur[0, 0] * second - schur[1, 0] * first) / determinant
        np.subtract(y, solved[0] * x[..., n : n + 1], out=x[..., :n])
        x[..., :n] -= solved[1] * x[..., n + 1 :]
    return x


def _solve_periodic(found: _Bands, rhs: Array, x: Array, code: int, threads: int) -> Singular:
    """Factor, border and solve; return the singular systems."""
    made = pairs.factor(found.target, found.matrices, code, threads)
    border = _border_of(found, made, threads)
    y = pairs.apply(found.target, made, "N", rhs[..., :-2], threads)
    solved = _bordered(border, y, rhs[..., -2:], "N")
    matrices = found.matrices
    singular = _also(made.singular, border, matrices.rows, definite=matrices.definite)
    if not matrices.definite:
        wide = rhs[..., None], solved[..., None]
        options = _ring_of(found), *wide, _lost(border), singular, threads
        singular = rings.repair(found.target, matrices.operation, *options)
    x[...] = solved  # rhs can be in the same memory
    return singular


def _ring_of(found: _Bands) -> list[Array]:
    """Return periodic diagonals as blocks of one number."""
    shape = (*found.matrices.batch, found.rows)
    return [systems.expanded(view, shape)[..., None, None] for view in found.views.values()]


def _lost(border: _Border) -> Array:
    """Return the matrices of whose border digits are lost."""
    with np.errstate(all="ignore"):
        ends = np.abs(border.solved["N"]).max(axis=(0, -1))
        products = border.columns * border.solved["T"][:, None, ..., _ENDS]
        other = border.corner - products.sum(-1)
        scale = np.abs(border.corner).max((0, 1)) + np.abs(products).sum((0, 1, -1))
    return rings.lost(ends, border.schur, other, scale, (0, 1))


def _solve_periodic_directly(
    bands: tuple[Any, ...], rhs: Any, axis: Any, assume: Any, pivot: Any, threads: Any
) -> Array | None:
    """Solve a few periodic systems of one matrix without planning, or return None."""
    if type(rhs) is not np.ndarray or rhs.dtype.char not in "fd" or type(axis) is not int:
        return None
    n, last = rhs.shape[-1] if rhs.ndim else 0, rhs.ndim - 1
    if not (n >= _LEAST_PERIODIC and rhs.size <= _FEW_ENTRIES) or axis not in (-1, last):
        return None
    for k, band in enumerate(bands):
        if not _is_line(band, n, rhs.dtype) and (band is not None or k > 1):
            return None
    if assume == "positive definite" and bands[0] is None and bands[1] is None:
        lower = [
            np.concatenate((band[-by:], band[:-by])) if isinstance(band, np.ndarray) else band
            for by, band in ((2, bands[4]), (1, bands[3]))
        ]
        bands = (*lower, *bands[2:])
    elif bands[0] is None or bands[1] is None:
        return None
    columns, lines, corner = _entries(bands, (), rhs.dtype)
    sides = rhs.reshape(-1, n)
    open_sides = np.empty((len(sides) + 2, n - 2), rhs.dtype)
    open_sides[2:] = sides[:, :-2]
    _spread(columns, open_sides[:2])
    inner = tuple(band[:-2] if isinstance(band, np.ndarray) else band for band in bands)
    y = systems.solve_directly("bands", inner, open_sides, -1, None, assume, pivot, threads)
    if y is None:
        return None
    border = _Border(columns, lines, corner, {"N": y[:2]}, _schur(corner, lines, y[:2]))
    with np.errstate(all="ignore"):
        if not _is_regular(border.schur, definite=assume != "general"):
            return None
        if assume == "general" and not np.abs(y[:2]).max() <= rings.MOST_GROWTH:
            return None
    return _bordered(border, y[2:], sides[:, -2:], "N").reshape(rhs.shape)


def _is_line(band: Any, rows: int, dtype: Any) -> bool:
    """Return whether a band is a number, or a line of a dtype."""
    if type(band) is np.ndarray:
        return band.shape == (rows,) and band.dtype == dtype
    return type(band) is float or type(band) is int


def _require_offered(operation: str, found: _Bands, *, periodic: bool) -> None:
    """Raise BackendError for systems that no device solves."""
    if periodic:
        systems.require_host(found.target, operation, "periodic=True", systems.INSTEAD)
    if found.matrices.dtype.kind == "c":
        systems.require_host(found.target, operation, "a complex matrix", systems.INSTEAD)


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
    systems.require_operands(operation, named)
    missing = [name for name in _NAMES if named[name] is None]
    if missing and (assume != "positive definite" or missing != ["lower2", "lower"]):
        raise ValueError(
            f"{operation}: {missing[0]} is None: pass the diagonal, or lower2=None and lower=None "
            "with assume='positive definite'"
        )
    call = systems.operands_of(operation, named, out, device, stream)
    target, operands = call.target, call.operands
    if "rhs" in operands and operands["rhs"].ndim == 0:
        raise ValueError("rhs must have at least one dimension, got a 0-d array")
    ndim = max(1, *(array.ndim for array in operands.values()))
    place, kept = systems.row_axis(axis, ndim, f"operands of {ndim} axes", "rhs" in operands)
    views = {name: _rows_last(array, place) for name, array in operands.items()}
    count = _rows_of(operation, operands, views, rows, axis, periodic=periodic)
    systems.require_periodic_rows(operation, count, _LEAST_PERIODIC if periodic else 0)
    if count < 1 and "rhs" not in operands:
        raise ValueError(f"{operation}: matrices must have at least one row, got {count}")
    for name, view in views.items():
        views[name] = _with_rows(name, operands[name].ndim, view, count, axis, periodic=periodic)
    if missing:
        views |= _mirrored(views, count, periodic=periodic)
    views = dict(zip(views, systems.moved(target, list(views.values())), strict=True))
    batch = systems.broadcast_batch({name: view.shape[:-1] for name, view in views.items()})
    sides = result = np.empty(0)
    if "rhs" in views:
        sides = systems.expanded(views["rhs"], (*batch, count))
        result = call.result(out, systems.shape_of(batch, count, place))
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
        periodic=tuple(matrix.values()) if periodic else (),
    )
    return _Bands(target, matrices, kept, matrix, count), sides, result


def _rows_last(array: Array, axis: int) -> Array:
    """Move the rows behind the batch axes; numbers and operands of fewer axes are constant."""
    if array.ndim == 1:
        return array
    if array.ndim < -axis:
        return array[..., None]
    return systems.last(array, axis)


def _rows_of(
    operation: str,
    operands: dict[str, Array],
    views: dict[str, Array],
    rows: int | None,
    axis: int,
    *,
    periodic: bool,
) -> int:
    """Return the number of rows of the systems, or raise."""
    counts = [views[name].shape[-1] for name in ("rhs", "diag") if name in views]
    count = next((size for size in counts if size != 1), 1)
    is_known = rows is not None or any(
        operands[n].ndim == 1 for n in ("rhs", "diag") if n in operands
    )
    if count == 1 and not is_known:
        omitted = {name: abs(offset) for name, offset in _OFFSETS.items()}
        count = systems.rows_of_lines(
            operation, operands, views, axis, constant=0, omitted=omitted, periodic=periodic
        )
    return count if rows is None else systems.rows_as_asked(operation, rows, count, "diagonals")


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
    """Return the lower diagonals of symmetric, or Hermitian, matrices."""
    found = {}
    for name, other, offset in (("lower2", "upper2", 2), ("lower", "upper", 1)):
        line = views[other].conj() if views[other].dtype.kind == "c" else views[other]
        if periodic:
            found[name] = np.roll(line, offset, -1)
        else:
            rows = max(0, count - offset)
            found[name] = line[..., :rows] if rows else np.zeros((count,), line.dtype)
    return found

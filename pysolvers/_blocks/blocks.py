"""Block tridiagonal systems: checks of the operands, solves, factors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import require_flag
from .._errors import SingularSystemError
from .._options import OnSingular, check_choice, check_policy, check_threads
from .._runtime.arrays import real_of
from .._runtime.singular import Singular
from .._runtime.targets import Target
from .._xp import joined
from . import formulas, pairs, rings, systems
from .systems import Assume, Factors, Matrices, Trans

if TYPE_CHECKING:
    from ..distributed import Group, Slab
    from .split import Kind
    from .split_factor import SplitBlockFactor

Array = NDArray[Any]

_NAMES = ("lower", "diag", "upper")


class _Blocks(NamedTuple):
    """Checked operands of a call."""

    target: Target
    matrices: Matrices  # open, without the last row if periodic
    axis: int  # of the rows before those of blocks in a result, negative; without that of solves
    is_complex: bool
    views: tuple[Array, ...]  # the blocks, all rows
    rows: int


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
    out: Array | None = None,
    on_singular: OnSingular = "raise",
    device: str | None = None,
    stream: object = None,
    threads: int | None = None,
    group: Group | None = None,
    split: Slab | None = None,
) -> Array:
    r"""Solve many independent block tridiagonal systems along one axis.

    With blocks of k x k numbers, find for every index of the other axes the vectors `x` with

    .. math:: L_i x_{i-1} + D_i x_i + U_i x_{i+1} = r_i, \quad 0 \le i < n.

    Parameters
    ----------
    lower, diag, upper : array_like, shape (..., n, k, k)
        The blocks: the last two axes are those of a block, 2 <= k <= 32, complex ones k <= 16.
        Unless `periodic`, ``lower[0]`` and ``upper[n - 1]`` are ignored, and `lower` and `upper`
        can omit them and have n - 1 blocks.
        The axes before the blocks broadcast as in `solve_tridiagonal`; an array of two dimensions
        is the block of every row. With `assume` ``'positive definite'`` one of `lower` and `upper`
        can be None: it is the conjugate transpose of the other one.
    rhs : array_like, shape (..., n, k, m)
        Right-hand sides, m for each system; for one write ``rhs[..., None]``.
    axis : int, default: -1
        Axis of the rows among the axes before the blocks.
    assume : {'general', 'positive definite'}
        What is known of the matrices. Symmetric, or Hermitian, positive definite ones need no row
        exchanges across blocks: they have Cholesky factors. A matrix without them, as its entries
        below the diagonal define it, counts as a singular one; the symmetry is not checked.
    periodic : bool, default: False
        Whether indices of unknowns count modulo n; n is then at least 3.
    pivot : bool, optional
        Whether to exchange scalar rows also across blocks (partial pivoting). By default this is
        done in the systems that are not block diagonally dominant. True for k > 4 in any case.
    out : array, optional
        Array for the result, with its dtype and shape. It can be `rhs` itself; it must not overlap
        another operand.
    on_singular : {'raise', 'warn', 'nan', 'ignore'}
        Reaction to a singular matrix, as in `solve_tridiagonal`.
    device, stream
        As in `solve_tridiagonal`. A device solves systems with blocks of at most 4 rows, complex
        ones 2; complex and periodic ones as arrays of CuPy, PyTorch or JAX on their own stream.
    threads : int, optional
        Number of threads, as in `solve_tridiagonal`. The result has the same bits for any number.
    group, split : pysolvers.distributed.Group and Slab, optional
        As in `solve_tridiagonal`, with the axis of `split` among the axes before the blocks: each
        rank passes its part of the operands, and gets its part of the solutions.

    Returns
    -------
    array, shape (..., n, k, m)
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
    factor_block_tridiagonal : Factor matrices once, for solves, determinants and inverses.
    solve_pentadiagonal : Systems of five diagonals.

    Notes
    -----
    Block elimination,

    .. math:: P_i = D_i - L_i P_{i-1}^{-1} U_{i-1},

    one system per lane of a vector, with row exchanges inside the blocks: about 14/3 k^3 operations
    and 3 k^2 + 2 k words per row. It is stable if

    .. math:: \|D_i^{-1}\| (\|L_i\| + \|U_i\|) \le 1

    in every row ([1]_, section 13.2), which the default of `pivot` tests with the largest row
    sum as norm, if each scalar row is diagonally dominant, which it also tests, and for symmetric
    positive definite matrices ([1]_, section 13.3): the backward error is a small multiple of the
    rounding error times the condition number of the pivots :math:`P_i`. Other systems, and blocks
    of more than 4 rows, are solved as banded systems of n k rows with partial pivoting, which takes
    about 3 times as long.

    A complex matrix is solved as a real one with blocks of 2 k rows. A periodic system is bordered:
    the open system of all but the last row is solved for the right-hand sides and for the k columns
    of the last row's unknowns, which follow from the k equations that are left. Where this loses
    digits, because the open matrix is singular or nearly so, the rows in the order 0, n - 1, 1,
    n - 2, ... are those of blocks of 2 k rows, which are eliminated with row exchanges; blocks with
    k > 16, complex ones with k > 8, are not, and on a device real blocks with k > 2 and complex
    ones.

    On a device each thread solves one system, with 5 k^2 + 4 k words per row, or 11 k^2 + 2 k with
    row exchanges across blocks. Contiguous systems of 33 to 512 rows of blocks of 2 are divided
    into chunks, with 16 words. The call waits for the numbers of the singular systems where it has
    to report them.

    Of systems that are cut, each rank eliminates its rows onto its last block of unknowns, all
    ranks solve the reduced system of these blocks, and each substitutes ([2]_): no rows are
    exchanged across blocks. That is stable, with a backward error of a small multiple of the
    rounding error, under the condition above, which the ranks test, and for positive definite
    matrices with the condition numbers of the pivots, none of which exceeds that of the matrix.
    Other systems are distributed over the ranks as whole systems and solved as above, and so are
    those of which one is singular.

    References
    ----------
    .. [1] N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed.,
       SIAM, 2002.
    .. [2] H. H. Wang, "A parallel method for tridiagonal equations", *ACM Trans. Math. Softw.* 7
       (1981) 170-183.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import solve_block_tridiagonal
    >>> diag = np.array([[4.0, 1.0], [0.0, 5.0]])
    >>> rhs = np.array([[4.0, 4.0], [3.0, 3.0], [4.0, 4.0]])[..., None]
    >>> solve_block_tridiagonal(-np.eye(2), diag, -np.eye(2), rhs)[..., 0]
    array([[1., 1.],
           [1., 1.],
           [1., 1.]])
    """
    operation = "solve_block_tridiagonal"
    if group is not None or split is not None:
        return solve_split(
            _kind(),
            group,
            split,
            {"lower": lower, "diag": diag, "upper": upper, "rhs": rhs},
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
    if stream is None and periodic is False and on_singular in ("raise", "warn", "nan", "ignore"):
        blocks, options = (lower, diag, upper), (assume, pivot, threads, device, on_singular)
        direct = systems.solve_directly("blocks", blocks, rhs, axis, out, *options)
        if direct is not None:
            return direct
    named = {"lower": lower, "diag": diag, "upper": upper, "rhs": rhs}
    require_flag("periodic", periodic)
    x = formulas.solve(
        operation,
        solve_block_tridiagonal,
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
    code = systems.pivoting(target.backend, assume, pivot)
    _require_fast(operation, found, periodic=bool(periodic))
    if result.size:
        singular = _solve(found, sides, result, code, count, policy)
        singular = systems.explained(singular, found.matrices, policy, target)
        systems.report(singular, found.matrices, policy, 2)
    return target.finish(result, rhs, out)


def solve_split(kind: Kind, *operands: Any, **options: Any) -> Array:
    """Solve with operands of which each rank holds its part."""
    from . import split

    x: Array = split.solve_split(kind, *operands, **options)
    return x


def _kind() -> Kind:
    """Return what these systems are for the functions of split arrays."""
    from .split import Columns, Kind

    def columns(found: _Blocks, sides: Array, result: Array) -> Columns:
        made = _columns_of(found, sides, result)
        return made.parts, made.finish

    return Kind(
        "solve_block_tridiagonal",
        _NAMES,
        tail=3,
        ends=1,
        least=1,
        least_periodic=_LEAST_PERIODIC,
        function=solve_block_tridiagonal,
        resolve=_resolve,
        require=_require_fast,
        columns=columns,
        solve=_solve,
        solve_blocks=solve_block_tridiagonal,
        solve_on_host=systems.solve_on_host,
        factor=systems.factor,
        apply=systems.apply,
        factor_function=factor_block_tridiagonal,
        factor_blocks=factor_block_tridiagonal,
        wide=BlockTridiagonalFactor._wide,
    )


class _Columns(NamedTuple):
    """Right-hand sides of real matrices and where their solutions are written, columns first."""

    parts: list[tuple[Array, Array]]
    view: Array
    x: Array
    place: int

    def finish(self) -> None:
        """Bring the solutions to the result."""
        if self.x is not self.view:
            _unstacked(self.view, self.x, self.place)


def _columns_of(found: _Blocks, sides: Array, result: Array) -> _Columns:
    """View right-hand sides and the result with their columns first, the rows last but one."""
    target = found.target
    view = systems.last(target.destination(result), found.axis - 2, -3)
    sides = systems.expanded(sides, view.shape)
    if target.name != "cpu":
        columns, to = (np.moveaxis(a, -1, 0) for a in (sides, view))
        return _Columns(systems.real_parts(columns, to, is_complex=False), view, view, 0)
    place = -2 if found.is_complex else -1  # of a real matrix, the parts are columns
    x = _stacked(view, place, empty=True)
    columns, to = (np.moveaxis(a, -1, 0) for a in (_stacked(sides, place), x))
    return _Columns([(columns, to)], view, x, place)


def _solve(
    found: _Blocks, sides: Array, result: Array, code: int, threads: int, policy: OnSingular
) -> Singular:
    """Solve, with NaN in singular systems if `policy` says so; return these."""
    matrices, target = found.matrices, found.target
    columns = _columns_of(found, sides, result)
    if target.name != "cpu":
        wide = matrices._replace(batch=(len(columns.parts[0][0]), *matrices.batch))
        for right, x in columns.parts:
            singular = systems.solve(target, wide, right, x, code, threads, policy).of_first()
    else:
        ((right, x),) = columns.parts
        singular = _solve_on_host(found, right, x, code, threads)
    if policy == "nan":
        for _, x in columns.parts:
            systems.fill_nan(singular, matrices, x, target)
    columns.finish()
    return singular


def _solve_on_host(found: _Blocks, rhs: Array, x: Array, code: int, threads: int) -> Singular:
    """Solve for real right-hand sides, their columns first; return the singular systems."""
    matrices, target = found.matrices, found.target
    # Several right-hand sides are a batch axis; with factors if no matrix needs a choice.
    if matrices.periodic:
        made = systems.factor(target, matrices, code, threads)
        border = _border_of(found, made, threads)
        solved = _bordered(target, made, border, rhs, "N", threads)
        singular = _also(made.singular, border, matrices)
        if not matrices.definite:
            ring, is_lost = _ring_of(found), _lost(found, border)
            where = target, matrices.operation, ring
            singular = rings.repair(*where, rhs, solved, is_lost, singular, threads)
        x[...] = solved  # rhs can be in the same memory
        return singular
    if len(rhs) > 1 and code != target.backend.PIVOTS["auto"]:
        made = systems.factor(target, matrices, code, threads)
        x[...] = systems.apply(target, made, "N", rhs, threads)
        return made.singular
    wide = matrices._replace(batch=(len(rhs), *matrices.batch))
    return systems.solve(target, wide, rhs, x, code, threads).of_first()


@overload
def factor_block_tridiagonal(
    lower: ArrayLike | None,
    diag: ArrayLike,
    upper: ArrayLike | None,
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
) -> BlockTridiagonalFactor: ...
@overload
def factor_block_tridiagonal(
    lower: ArrayLike | None,
    diag: ArrayLike,
    upper: ArrayLike | None,
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
def factor_block_tridiagonal(
    lower: ArrayLike | None,
    diag: ArrayLike,
    upper: ArrayLike | None,
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
) -> BlockTridiagonalFactor | SplitBlockFactor:
    """Factor a batch of block tridiagonal matrices, for solves, determinants and inverses.

    Parameters
    ----------
    lower, diag, upper : array_like, shape (..., n, k, k)
        The blocks, as in `solve_block_tridiagonal`.
    axis : int, default: -1
        Axis of the rows among the axes before those of the blocks, as in `factor_tridiagonal`: any
        axis of right-hand sides for blocks of shape (n, k, k).
    assume, periodic
        As in `solve_block_tridiagonal`.
    rows : int, optional
        Number of rows n. Needed if no operand has more than one block along `axis`, unless `diag`
        has three dimensions.
    pivot : bool, optional
        As in `solve_block_tridiagonal`; by default scalar rows are exchanged across blocks in all
        matrices if one of them is not block diagonally dominant.
    on_singular : {'raise', 'warn', 'nan', 'ignore'}
        Reaction to a singular matrix; with ``'nan'`` its solutions are NaN.
    threads : int, optional
        Number of threads.
    group, split : pysolvers.distributed.Group and Slab, optional
        As in `solve_block_tridiagonal`: each rank passes its part of the matrices. `rows` is the
        number of rows of the rank.

    Returns
    -------
    BlockTridiagonalFactor or SplitBlockFactor
        The factors: ``solve``, ``logdet``, and without a group ``inverse_blocks``.

    Raises
    ------
    TypeError, ValueError, SingularSystemError, BackendError, DistributedError
        As `solve_block_tridiagonal`.

    Notes
    -----
    Arrays on a device have their factors there: of open real matrices with blocks of at most 4
    rows, without row exchanges across blocks. The call waits for them, but not with
    ``on_singular='ignore'`` if `pivot` or `assume` says that nothing is exchanged. Solves run on
    the current stream of the library of the right-hand sides. Fewer than 8192 matrices of 64 block
    rows or more are divided into chunks of 16: the last rows of the chunks are those of a smaller
    matrix, which is divided again. With ``pivot=False`` the matrices of the first rows of all
    chunks must also be regular, as those of dominant and of definite matrices are.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import factor_block_tridiagonal
    >>> factor = factor_block_tridiagonal(
    ...     -np.eye(2), 4 * np.eye(2), None, rows=3, assume="positive definite"
    ... )
    >>> factor.logdet().round(6)
    np.float64(8.050703)
    """
    operation = "factor_block_tridiagonal"
    named = {"lower": lower, "diag": diag, "upper": upper}
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
    policy, count = check_policy(on_singular), check_threads(threads)
    require_flag("periodic", periodic)
    found, _, _ = _resolve(operation, named, axis, assume, None, rows, periodic=bool(periodic))
    code = systems.pivoting(found.target.backend, assume, pivot)
    _require_fast(operation, found, periodic=bool(periodic))
    return BlockTridiagonalFactor(
        found, code, policy, count, periodic=bool(periodic), assume=assume, like=diag
    )


class BlockTridiagonalFactor(rings.RingFactor):
    """Factors of a batch of block tridiagonal matrices; see `factor_block_tridiagonal`.

    Attributes
    ----------
    batch : tuple of int
        Shape of the batch of matrices.
    rows : int
        Number of block rows n.
    side : int
        Number of rows k of a block.
    dtype : dtype
        Dtype of the factors.
    axis : int
        Axis of the rows among the axes of right-hand sides before the last two: as it was given if
        there is one matrix, of no batch axis, otherwise that of the matrices, counted from the end.
    periodic : bool
        The argument of `factor_block_tridiagonal`.
    pivoted : bool
        Whether scalar rows are exchanged across blocks.
    nbytes : int
        Size of the factors in bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import factor_block_tridiagonal
    >>> blocks = np.zeros((3, 2, 2)), np.tile(2 * np.eye(2), (3, 1, 1)), np.zeros((3, 2, 2))
    >>> factor = factor_block_tridiagonal(*blocks)
    >>> factor.solve(np.ones((3, 2, 1)))[:, :, 0]
    array([[0.5, 0.5],
           [0.5, 0.5],
           [0.5, 0.5]])
    """

    def __init__(
        self,
        found: _Blocks,
        code: int,
        policy: OnSingular,
        threads: int,
        *,
        periodic: bool,
        assume: Assume,
        like: Any,
    ) -> None:
        matrices, target = found.matrices, found.target
        self._results = None if target.name == "cpu" else systems.DeviceResults(target, like, 3)
        self._target, self._threads, self._assume = target.without_operands(), threads, assume
        self._made = systems.factor(target, matrices, code, threads)
        self.batch, self.rows = matrices.batch, found.rows
        self.side = matrices.side // 2 if found.is_complex else matrices.side
        self.dtype = matrices.dtype
        if found.is_complex:
            self.dtype = np.result_type(matrices.dtype, np.complex64)
        self.axis, self.periodic = found.axis, periodic
        self.pivoted = self._made.pivot == target.backend.PIVOTS["always"]
        self.nbytes = self._made.store.nbytes
        self._border: _Border | None = None
        self._folded: rings.Folded | None = None
        if periodic:
            self._border = _border_of(found, self._made, threads)
            singular = _also(self._made.singular, self._border, matrices)
            self._made = self._made._replace(found=singular)
            if not matrices.definite:
                where = target, matrices.operation, _ring_of(found)
                is_lost = _lost(found, self._border)
                self._folded = rings.fold(*where, is_lost, singular, threads)
        self._finish(policy, matrices, target)

    def __repr__(self) -> str:
        return (
            f"BlockTridiagonalFactor({self.rows} rows of blocks of {self.side} x {self.side}, "
            f"batch {self.batch}, {self.dtype})"
        )

    def solve(self, rhs: ArrayLike, *, axis: int | None = None, trans: Trans = "N") -> Array:
        """Solve with the matrices, or with their transposes.

        Parameters
        ----------
        rhs : array_like, shape (..., n, k, m)
            Right-hand sides, to whose axes other than that of the rows and the last two the
            matrices broadcast. One of three dimensions is that of all matrices.
        axis : int, optional
            Axis of the rows among the axes before the last two; by default the attribute `axis`.
        trans : {'N', 'T', 'H'}
            Whether to solve with the matrices or with their transposes.

        Returns
        -------
        array, shape (..., n, k, m)
            The solutions, in the precision of the factors; complex if the factors or `rhs` are.

        Raises
        ------
        TypeError, ValueError
            If `rhs` has a higher precision than the factors, or does not fit, or has no such axis.
        """
        place = self._axis_of(axis, rhs, 2)
        if self._results is not None:
            check_choice("trans", trans, self._target.backend.TRANS)

            def solve(target: Target, right: Array, x: Array) -> None:
                columns, to = (np.moveaxis(a, -1, 0) for a in (right, x))
                systems.apply(target, self._made, trans, columns, self._threads, to)
                if self._fills:
                    systems.react(self._singular, self._made.matrices, to, "nan", 2, target)

            return self._results.solve(
                "BlockTridiagonalFactor.solve",
                np.dtype(self.dtype),
                rhs,
                place,
                lambda part: self._wide(part, place),
                solve,
            )
        is_complex = self.dtype.kind == "c"
        if not self._fills and type(rhs) is np.ndarray and not (is_complex or self.periodic):
            direct = systems.apply_directly(
                self._target, self._made, trans, rhs, place, self._threads
            )
            if direct is not None:
                return direct
        check_choice("trans", trans, self._target.backend.TRANS)
        return systems.solved_by_parts(
            "BlockTridiagonalFactor.solve",
            rhs,
            np.dtype(self.dtype),
            lambda part: self._solve(part, place, trans),
        )

    def _wide(self, rhs: Array, axis: int) -> Array:
        """View right-hand sides with all batch axes, the rows last but two, or raise."""
        place = rhs.ndim - 2 + axis if rhs.ndim > 3 else 0
        fits = rhs.ndim >= 3 and place >= 0 and rhs.shape[place] == self.rows
        if not fits or rhs.shape[-2] != self.side:
            raise ValueError(
                f"rhs must have {self.rows} rows along axis {axis} before the last two axes, "
                f"and {self.side} rows in each block, got shape {rhs.shape}; for one column write "
                "rhs[..., None]"
            )
        view = np.moveaxis(rhs, place, -3)
        batch = systems.broadcast_batch({"the factor": self.batch, "rhs": view.shape[:-3]})
        return systems.expanded(view, (*batch, *view.shape[-3:]))

    def _solve(self, rhs: Array, axis: int, trans: str) -> Array:
        if self.dtype.kind == "c" and trans == "T":  # that of the real matrix is "H"
            return self._solve(rhs.conj(), axis, "H").conj()
        columns = np.moveaxis(_stacked(self._wide(rhs, axis), -2), -1, 0)
        if self._folded is not None:
            x = self._folded.solve(columns, trans)
        elif self._border is None:
            x = systems.apply(self._target, self._made, trans, columns, self._threads)
        else:
            x = _bordered(self._target, self._made, self._border, columns, trans, self._threads)
        if self._fills:
            systems.react(self._singular, self._made.matrices, x, "nan", 2)
        x = np.moveaxis(x, 0, -1)
        if self.dtype.kind == "c":
            x = joined(np, x[..., : self.side, :], x[..., self.side :, :])
        return np.ascontiguousarray(np.moveaxis(x, -3, axis - 2))

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
            logarithms = self._folded.logdet()
            return (logarithms / 2 if self.dtype.kind == "c" else logarithms)[()]
        if self._results is not None:
            return self._results.logdet("BlockTridiagonalFactor.logdet", self._made)
        logarithms, signs = systems.logdet(self._target, self._made)
        if self._border is not None:
            own, more = np.linalg.slogdet(self._border.schur)
            logarithms, signs = logarithms + more, signs * own
        if self.dtype.kind == "c":  # the real matrix has the square
            logarithms = logarithms / 2
        if self._assume != "general" and not (signs > 0).all():
            wrong = np.argwhere(~(signs > 0))
            raise SingularSystemError(wrong, np.zeros(len(wrong), np.intp))
        return logarithms[()]

    def inverse_blocks(self) -> tuple[Array, Array, Array]:
        """Return the blocks of the inverses in the places of those of the matrices.

        Returns
        -------
        lower, diag, upper : array, shape (..., n, k, k)
            Blocks (i, i - 1), (i, i) and (i, i + 1) of the inverses ([1]_), which are full
            matrices; ``lower[0]`` and ``upper[n - 1]`` are 0.

        Raises
        ------
        ValueError
            If the factors have row exchanges across blocks, or are periodic.

        References
        ----------
        .. [1] K. Takahashi, J. Fagan and M.-S. Chen, "Formation of a sparse bus impedance matrix
           and its application to short circuit study", *8th PICA Conference*, 1973.
        """
        if self.pivoted or self.periodic:
            most = self._target.backend.FAST_SIDE
            raise ValueError(
                "inverse_blocks needs factors of open systems without row exchanges across blocks, "
                f"of blocks of at most {most} rows, complex ones {most // 2}: write pivot=False or "
                "assume='positive definite'; for others solve for columns of the identity"
            )
        if self._results is not None:
            return self._inverse_on_device(self._results)
        blocks = systems.inverse(self._target, self._made)
        if self.dtype.kind == "c":
            blocks = [pairs.extracted(block) for block in blocks]
        lower, diag, upper = (
            np.moveaxis(block, -3, block.ndim - 2 + self._own_axis) for block in blocks
        )
        return lower, diag, upper

    def _inverse_on_device(self, results: systems.DeviceResults) -> Any:
        """Return the blocks of the inverses on the device."""
        target = results.target("BlockTridiagonalFactor.inverse_blocks")
        shape = systems.shape_of(self.batch, self.rows, self._own_axis)
        made = [results.new(target, (*shape, self.side, self.side), self.dtype) for _ in range(3)]
        to = [np.moveaxis(x, x.ndim - 2 + self._own_axis, -3) for _, x in made]
        found = systems.inverse(target, self._made, to)
        for view, block in zip(to, found, strict=True):
            if view is not block:
                target.write(view, block)
        return tuple(results.publish(target, value) for value, _ in made)


class _Border(NamedTuple):
    """The last block row and column of periodic matrices, and what solves leave of them.

    Blocks that are not 0: of the column those in the first and the last row of the open matrix, of
    the row those in its first and its last column.
    """

    column: tuple[Array, Array]
    row: tuple[Array, Array]
    solved: dict[str, Array]  # (k, ..., n - 1, k): the column, or the transposed row ("T")
    schur: Array  # (..., k, k)


# The fewest rows of a periodic matrix: with two, a place of it has two blocks.
_LEAST_PERIODIC = 3


def _border_of(found: _Blocks, made: Factors, threads: int) -> _Border:
    """Split periodic matrices, and solve for their last column and row."""
    n, matrices = found.rows, found.matrices
    lower, diag, upper = _ring_of(found)
    # Copies: the caller can change the matrices before a solve with the factors.
    column = (lower[..., 0, :, :].copy(), upper[..., n - 2, :, :].copy())
    row = (upper[..., n - 1, :, :].copy(), lower[..., n - 1, :, :].copy())
    solved = {}
    for trans, ends in (("N", column), ("T", tuple(np.swapaxes(b, -1, -2) for b in row))):
        full = np.zeros((matrices.side, *matrices.batch, n - 1, matrices.side), matrices.dtype)
        for place, block in zip((0, -1), ends, strict=True):
            full[..., place, :] += np.moveaxis(block, -1, 0)
        solved[trans] = systems.apply(found.target, made, trans, full, threads)
    with np.errstate(all="ignore"):
        known = np.moveaxis(solved["N"], 0, -1)
        schur = diag[..., n - 1, :, :] - _of_ends(row, known)
    return _Border(column, row, solved, schur)


def _ring_of(found: _Blocks) -> list[Array]:
    """Return all blocks with the batch axes of the matrices."""
    return [
        systems.expanded(view, (*found.matrices.batch, *view.shape[-3:])) for view in found.views
    ]


def _lost(found: _Blocks, border: _Border) -> Array:
    """Return the matrices of whose border digits are lost."""
    lines = border.solved["T"]
    last = _ring_of(found)[1][..., -1, :, :]
    with np.errstate(all="ignore"):
        products = [
            np.moveaxis(lines[..., place, :], 0, -2) @ block
            for place, block in zip((0, -1), border.column, strict=True)
        ]
        scale = sum(np.abs(part).max((-2, -1)) for part in (last, *products))
        growth = np.abs(border.solved["N"]).max(axis=(0, -2, -1))
        other = last - products[0] - products[1]
    return rings.lost(growth, border.schur, other, scale, (-2, -1))


def _of_ends(row: tuple[Array, Array], x: Array) -> Array:
    """Return the product of a last row and x (..., n - 1, k, m)."""
    return row[0] @ x[..., 0, :, :] + row[1] @ x[..., -1, :, :]


def _bordered(
    target: Target, made: Factors, border: _Border, columns: Array, trans: str, threads: int
) -> Array:
    """Solve periodic systems for right-hand sides (m, ..., n, k)."""
    row, schur, solved = border.row, border.schur, border.solved["N"]
    if trans != "N":
        top, bottom = border.column
        row = (np.swapaxes(top, -1, -2), np.swapaxes(bottom, -1, -2))
        schur, solved = np.swapaxes(schur, -1, -2), border.solved["T"]
    y = systems.apply(target, made, trans, columns[..., :-1, :], threads)
    with np.errstate(all="ignore"):
        left = np.moveaxis(columns[..., -1, :], 0, -1) - _of_ends(row, np.moveaxis(y, 0, -1))
        last = np.moveaxis(_solve_small(schur, left), -1, 0)  # (m, ..., k)
        x = np.concatenate((y, last[..., None, :]), -2)
        for q in range(last.shape[-1]):
            x[..., :-1, :] -= solved[q] * last[..., None, q : q + 1]
    return x


def _solve_small(matrix: Array, rhs: Array) -> Array:
    """Solve dense systems, NaN if singular."""
    try:
        return np.linalg.solve(matrix, rhs)
    except np.linalg.LinAlgError:
        wrong = ~_is_regular(matrix)
        x = np.linalg.solve(np.where(wrong[..., None, None], np.eye(matrix.shape[-1]), matrix), rhs)
        return np.where(wrong[..., None, None], np.nan, x)


def _is_regular(matrix: Array) -> Array:
    """Return whether dense matrices are finite and have a determinant that is not 0."""
    signs, logarithms = np.linalg.slogdet(matrix)
    return (signs != 0) & np.isfinite(logarithms)


def _also(singular: Singular, border: _Border, matrices: Matrices) -> Singular:
    """Add the matrices whose last equations are singular, or not positive definite."""
    with np.errstate(all="ignore"):
        wrong = ~_is_regular(border.schur)
        if matrices.definite:
            values = np.linalg.eigvalsh(np.where(wrong[..., None, None], 0, border.schur))
            wrong |= values[..., 0] <= 0
    return systems.with_last_row(singular, wrong, matrices.rows)


def _factored(
    *matrix: Array, assume: Assume, pivot: bool | None, threads: int | None
) -> BlockTridiagonalFactor:
    """Factor matrices whose rows are those of their operands, also where each has one."""
    rows = 1 if all(a.shape[-3:-2] == (1,) for a in matrix) else None
    options: dict[str, Any] = {"assume": assume, "pivot": pivot, "threads": threads}
    return factor_block_tridiagonal(*matrix, rows=rows, on_singular="ignore", **options)


def log_determinants(
    *matrix: Array, assume: Assume, pivot: bool | None, threads: int | None
) -> Array:
    """Return log |det A|, NaN if singular or not positive definite as `assume` says."""
    factor = _factored(*matrix, assume=assume, pivot=pivot, threads=threads)
    if factor._results is not None:
        values = factor.logdet()
    else:
        values, signs = systems.logdet(factor._target, factor._made)
        if assume != "general":
            values[signs <= 0] = np.nan
    for system in factor._singular.systems:
        values[tuple(system)] = np.nan
    return values


def inverses(
    *matrix: Array, assume: Assume, pivot: bool | None, threads: int | None
) -> list[Array]:
    """Return the blocks of `BlockTridiagonalFactor.inverse_blocks`, NaN for singular matrices."""
    factor = _factored(*matrix, assume=assume, pivot=pivot, threads=threads)
    blocks = list(factor.inverse_blocks())
    for system in factor._singular.systems:
        for block in blocks:
            block[tuple(system)] = np.nan
    return blocks


def _require_fast(operation: str, found: _Blocks, *, periodic: bool) -> None:
    """Raise BackendError for systems that no device solves."""
    target = found.target
    if target.name == "cpu":
        return
    most = target.backend.FAST_SIDE
    if found.is_complex:
        write = "write each block B as numpy.block([[B.real, -B.imag], [B.imag, B.real]])"
        systems.require_host(target, operation, "a complex system", write)
    if periodic:
        systems.require_host(target, operation, "periodic=True", systems.INSTEAD)
    if found.matrices.side > most:
        what = f"a system with blocks of {found.matrices.side} rows, more than {most},"
        systems.require_host(target, operation, what, "pass arrays of NumPy")


def _resolve(
    operation: str,
    named: dict[str, Any],
    axis: int,
    assume: Assume,
    out: Any,
    rows: int | None = None,
    *,
    periodic: bool = False,
    device: str | None = None,
    stream: object = None,
) -> tuple[_Blocks, Array, Array]:
    """Check operands; return them, the right-hand sides, rows last but two, and the result."""
    systems.require_operands(operation, named)
    _require_halves(operation, named, assume)
    call = systems.operands_of(operation, named, out, device, stream)
    target, operands, dtype = call.target, call.operands, call.dtype
    side = _side_of(operands, target.backend.MOST_SIDE)
    ndim = max(1, *(array.ndim - 2 for array in operands.values()))
    what = "the axes before those of the blocks"
    place, kept = systems.row_axis(axis, ndim, what, "rhs" in operands)
    views = {name: _rows_last(array, place) for name, array in operands.items()}
    count = _rows_of(operation, operands, views, rows, axis, periodic=periodic)
    systems.require_periodic_rows(operation, count, _LEAST_PERIODIC if periodic else 0)
    for name, view in views.items():
        found = view.shape[-3]
        is_short = not periodic and name in ("lower", "upper") and found == count - 1
        if found not in (1, count) and not is_short:
            raise ValueError(f"{name} has {found} rows along axis {axis}, the systems have {count}")
        if found == 1 and (count > 2 or name == "diag"):
            views[name] = systems.expanded(view, (*view.shape[:-3], count, *view.shape[-2:]))
    if "lower" not in views or "upper" not in views:
        views = _mirrored(views, count, periodic=periodic)
    batch = systems.broadcast_batch({name: view.shape[:-3] for name, view in views.items()})
    sides = result = np.empty(0)
    is_complex = any(views[name].dtype.kind == "c" for name in _NAMES)
    if "rhs" in views:
        sides = systems.expanded(views["rhs"], (*batch, count, *views["rhs"].shape[-2:]))
        shape = systems.shape_of(batch, count, place)
        result = call.result(out, (*shape, side, sides.shape[-1]))
    matrix = tuple(views[name] for name in _NAMES)
    if target.name != "cpu" and is_complex:
        pass  # _require_fast refuses it
    elif is_complex:
        matrix = tuple(pairs.embedded(np, view) for view in matrix)
        side *= 2
    most = target.backend.MOST_SIDE
    if side > most:
        raise ValueError(f"complex blocks can have at most {most // 2} rows, got {side // 2}")
    definite = assume == "positive definite"
    whole = (matrix,) if periodic else ()
    used = tuple(view[..., :-1, :, :] for view in matrix) if periodic else matrix
    open_rows = count - 1 if periodic else count
    matrices = Matrices(
        operation, side, open_rows, batch, real_of(dtype), _NAMES, used, definite, *whole
    )
    return _Blocks(target, matrices, kept, is_complex, matrix, count), sides, result


def _require_halves(operation: str, named: dict[str, Any], assume: str) -> None:
    """Raise unless both off-diagonals, or one of symmetric matrices, are given."""
    missing = [name for name in ("lower", "upper") if named[name] is None]
    if missing and (assume != "positive definite" or len(missing) > 1):
        raise ValueError(
            f"{operation}: {missing[0]} is None: pass its blocks, or one of lower and upper with "
            "assume='positive definite'"
        )


def _side_of(operands: dict[str, Array], most: int) -> int:
    """Return the number of rows of a block, or raise."""
    for name, array in operands.items():
        least = 3 if name == "rhs" else 2
        if array.ndim < least:
            shape = "(..., n, k, m)" if name == "rhs" else "(..., n, k, k)"
            write = "; for one column write rhs[..., None]" if name == "rhs" else ""
            raise ValueError(f"{name} must have shape {shape}, got {array.shape}{write}")
    side = operands["diag"].shape[-1]
    for name, array in operands.items():
        columns = array.shape[-1] if name == "rhs" else side
        if array.shape[-2:] != (side, columns):
            wanted = f"({side}, m)" if name == "rhs" else f"({side}, {side})"
            write = "; for one column write rhs[..., None]" if name == "rhs" else ""
            raise ValueError(
                f"the last two axes of {name} must be {wanted} as diag has blocks of {side}, got "
                f"{array.shape[-2:]}{write}"
            )
    if not 2 <= side <= most:
        raise ValueError(
            f"blocks must have 2 to {most} rows, got {side}"
            + ("; for blocks of one number use solve_tridiagonal" if side == 1 else "")
        )
    return side


def _rows_last(array: Array, axis: int) -> Array:
    """Move the rows behind the batch axes; an operand of fewer axes than `axis` is constant."""
    lead = array.ndim - 2
    if lead == 0:
        return array[None]
    if lead == 1:
        return array
    if lead < -axis:
        return array[..., None, :, :]
    return systems.last(array, axis - 2, -3)


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
    count = 1
    for name in ("rhs", "diag"):
        if name in views and views[name].shape[-3] != 1 and count == 1:
            count = views[name].shape[-3]
    if count == 1 and rows is None:
        omitted = {"lower": 1, "upper": 1}
        count = systems.rows_of_lines(
            operation, operands, views, axis, constant=2, omitted=omitted, periodic=periodic
        )
    if rows is not None:
        count = systems.rows_as_asked(operation, rows, count, "operands")
    if count < 1:
        raise ValueError(f"{operation}: systems must have at least one row, got {count}")
    return count


def _mirrored(views: dict[str, Array], count: int, *, periodic: bool) -> dict[str, Array]:
    """Add the off-diagonal that is the conjugate transpose of the other one."""
    name = "lower" if "lower" in views else "upper"
    known = views[name]
    if periodic:
        known = np.roll(known, 1 if name == "upper" else -1, -3)
    elif known.shape[-3] == count > 1:
        known = known[..., 1:, :, :] if name == "lower" else known[..., :-1, :, :]
    other = "upper" if name == "lower" else "lower"
    known = known.conj() if known.dtype.kind == "c" else known
    return views | {other: np.swapaxes(known, -1, -2)}


def _stacked(array: Array, axis: int, *, empty: bool = False) -> Array:
    """Return right-hand sides as real ones, along an axis first the real parts."""
    if array.dtype.kind != "c":
        return array
    if empty:
        shape = list(array.shape)
        shape[axis] *= 2
        return np.empty(shape, real_of(array.dtype))
    return np.concatenate((array.real, array.imag), axis)


def _unstacked(result: Array, x: Array, axis: int) -> None:
    """Write a solution back to a complex result."""
    if result.dtype.kind == "c":
        result.real[...], result.imag[...] = np.split(x, 2, axis)

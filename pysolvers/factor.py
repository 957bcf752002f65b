"""`factor_tridiagonal`: its signature, and the choice between one process and a group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from ._lines.factor import TridiagonalFactor
from ._options import OnSingular
from ._other_calls import call_error, hide_other
from ._row_sums import RowSums, warn_of_singular_ring

if TYPE_CHECKING:
    from .distributed import Group, Slab, SplitFactor

__all__ = ["TridiagonalFactor", "factor_tridiagonal"]

_NAMES = ("lower", "diag", "upper")

# For operands that a call lacks, as calls in the style of other packages do.
_MISSING: Any = None


def factor_tridiagonal(
    lower: ArrayLike,
    diag: ArrayLike | RowSums = _MISSING,
    upper: ArrayLike = _MISSING,
    *,
    axis: int = -1,
    rows: int | None = None,
    pivot: bool | None = None,
    periodic: bool = False,
    on_singular: OnSingular = "raise",
    device: str | None = None,
    stream: object = None,
    threads: int | None = None,
    check_finite: bool = False,
    where: ArrayLike | None = None,
    keep_matrix: bool = False,
    group: Group | None = None,
    split: Slab | None = None,
    **other: Any,
) -> TridiagonalFactor | SplitFactor:
    r"""Factor a batch of tridiagonal matrices for repeated solves.

    Row i of each matrix is :math:`l_i, d_i, u_i` in columns i - 1, i and i + 1.

    Parameters
    ----------
    lower, diag, upper : array_like, shapes that broadcast
        The three diagonals. Unless `periodic`, ``lower[0]`` and ``upper[n - 1]`` are
        ignored, and `lower` and `upper` can omit them: they then have n - 1 entries
        along `axis`, where `diag` has n. `diag` can be `RowSums`, as in `solve_tridiagonal`.
    axis : int, default: -1
        Axis of the systems, in the diagonals and in right-hand sides. Diagonals of one dimension
        have no other axis: it is then any axis of right-hand sides, 0 the first and -1 the last.
        With more dimensions it is that of the broadcast shape of the diagonals, and counts from
        the end in right-hand sides. Operands of one dimension lie along it.
    rows : int, optional
        Number of rows n; by default that of the diagonals. Needed if no diagonal has more
        than one entry along `axis`, because the coefficients of a matrix are constant:
        ``factor_tridiagonal(lower, diag, upper, rows=n)`` with scalars, or with arrays of
        shape (B, 1) for B matrices.
    pivot : bool, optional
        Whether to exchange rows. By default rows are exchanged in the matrices that are
        not diagonally dominant.
    periodic : bool, default: False
        Whether ``lower[0]`` is the entry of row 0 in column n - 1, and ``upper[n - 1]``
        the entry of row n - 1 in column 0.
    on_singular : {'raise', 'warn', 'nan', 'ignore'}
        Reaction to a singular matrix, that is, to a pivot that is zero, infinite or NaN or,
        without row exchanges, whose reciprocal overflows. With ``'nan'``, solves with this
        matrix return NaN. On the CPU a matrix with an entry that is NaN or infinite has such a
        pivot; a device need not report it.
    device : str, optional
        ``'cpu'``, ``'cuda'`` or ``'cuda:N'``; by default the device of the arrays.
    stream : int or object, optional
        Stream of the device on which the work is enqueued; as in `solve_tridiagonal`.
    threads : int, optional
        Number of host threads of the factorisation; by default as in `solve_tridiagonal`.
    check_finite : bool, default: False
        Whether to raise an error if an entry of a diagonal is NaN or infinite, whatever
        `on_singular` says, also in ``refactor``.
    where : array_like of bool, optional
        Rows that are inside, broadcastable with the diagonals, as in `solve_tridiagonal`; solves
        leave the values of right-hand sides outside as they are. ``refactor`` does not take another
        mask.
    keep_matrix : bool, default: False
        Whether the factor keeps the diagonals for products, ``factor.multiply(x)``: the arrays
        themselves, which must not change; with `where`, on the CPU, copies with rows of the
        identity outside. Without a `group`.
    group : pysolvers.distributed.Group, optional
        Processes that each hold a part of all arrays, as in `solve_tridiagonal`. Each rank passes
        its part of the diagonals; `rows` is the number of rows that it holds.
    split : pysolvers.distributed.Slab, optional
        With `group`, the axis of the diagonals along which they are split; for diagonals of one
        dimension, which are then split along their rows, also `axis`.

    Returns
    -------
    TridiagonalFactor or pysolvers.distributed.SplitFactor
        An object with the methods ``solve`` and ``refactor``. A `SplitFactor` if there is a
        `group`.

    Raises
    ------
    TypeError
        If a diagonal has an unsupported dtype, as in `solve_tridiagonal`.
    ValueError
        If an option is unknown, a diagonal of one dimension does not have n entries, other
        shapes do not broadcast, or all diagonals have one entry along `axis` and `rows` is
        not given. On the CPU, if `on_singular` is ``'raise'`` and an entry of a matrix is NaN or
        infinite. With `RowSums`, as in `solve_tridiagonal`; signs inside `where` are checked, too.
    SingularSystemError
        If a matrix is singular and `on_singular` is ``'raise'``.
    BackendError
        If the device is not available.

    See Also
    --------
    solve_tridiagonal : Solve without keeping the factors.

    Notes
    -----
    The factors are those of Gaussian elimination, with partial pivoting for matrices in
    which rows are exchanged ([1]_, ch. 9). A solve reads the factors once. The factors
    of a matrix that the whole batch shares stay in the cache, and a solve then moves two
    words per unknown. On the CPU, matrices with 131072 rows or more and without row
    exchanges are factored in chunks, so that all threads work on one system;
    ``info.method`` is then ``'partition'``.

    On the CPU, the factors of a periodic matrix with row exchanges are those of one elimination of
    all rows: if the solutions of a long one oscillate without decay, the normwise backward error
    grows with the rows n, to about 0.003 n eps (800 eps for 300000 rows). `solve_tridiagonal`
    divides such systems, and has a few eps.

    Solves with factors of matrices that are given by `RowSums` have the accuracy stated there. On
    the CPU that holds for the transposes, too; on a device `trans` must be ``'N'``.

    With a `group`, cut systems are solved by the partition method of `solve_tridiagonal`, with 2
    exchanged numbers per right-hand side and 4 words per unknown (9 if the matrices are not
    shared); matrices that need row exchanges are factored as whole matrices, and a solve then
    exchanges its right-hand sides and solutions, 2 numbers per unknown.

    References
    ----------
    .. [1] N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed.,
       SIAM, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import factor_tridiagonal
    >>> factor = factor_tridiagonal(-1.0, np.full(3, 2.0), -1.0)
    >>> factor.solve([[1.0, 0.0, 1.0], [0.0, 4.0, 0.0]])
    array([[1., 1., 1.],
           [2., 4., 2.]])
    """
    if upper is _MISSING or other:
        raise call_error("factor_tridiagonal", _NAMES, (lower, diag, upper), other)
    if periodic is True and where is None and on_singular in ("raise", "warn"):
        warn_of_singular_ring(lower, diag, upper)
    if group is not None or split is not None:
        if keep_matrix:
            raise ValueError(
                "factor_tridiagonal does not take keep_matrix with a group: write "
                "tridiagonal_matvec(lower, diag, upper, x, group=group, split=split)"
            )
        from .distributed._factor import SplitFactor

        named = {"lower": lower, "diag": diag, "upper": upper}
        options = (axis, rows, pivot, periodic, on_singular, device, threads, check_finite)
        return SplitFactor(group, split, named, stream, options, where)
    return TridiagonalFactor(
        lower,
        diag,
        upper,
        axis=axis,
        rows=rows,
        pivot=pivot,
        periodic=periodic,
        on_singular=on_singular,
        device=device,
        stream=stream,
        threads=threads,
        check_finite=check_finite,
        where=where,
        keep_matrix=keep_matrix,
    )


hide_other(factor_tridiagonal)

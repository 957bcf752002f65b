"""`solve_tridiagonal`: its signature, and the choice of how to solve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._lines.engine import solve_planned, solve_unplanned
from ._options import Choice, Method, OnSingular, SolveInfo
from ._other_calls import call_error, hide_other
from ._row_sums import RowSums, form_of, warn_of_singular_ring
from ._runtime.finite import are_finite

if TYPE_CHECKING:
    from .distributed import Group, Slab

__all__ = ["RowSums", "SolveInfo", "from_banded", "solve_tridiagonal"]

Array = NDArray[Any]

_NAMES = ("lower", "diag", "upper", "rhs")

# For operands that a call lacks, as calls in the style of other packages do.
_MISSING: Any = None


@overload
def solve_tridiagonal(
    lower: ArrayLike,
    diag: ArrayLike | RowSums,
    upper: ArrayLike,
    rhs: ArrayLike,
    *,
    axis: int = ...,
    method: Method = ...,
    periodic: bool = ...,
    pivot: bool | None = ...,
    out: Array | None = ...,
    on_singular: OnSingular = ...,
    device: str | None = ...,
    stream: object = ...,
    threads: int | None = ...,
    check_finite: bool = ...,
    where: ArrayLike | None = ...,
    group: Group | None = ...,
    split: Slab | None = ...,
    return_info: Literal[False] = ...,
) -> Array: ...
@overload
def solve_tridiagonal(
    lower: ArrayLike,
    diag: ArrayLike | RowSums,
    upper: ArrayLike,
    rhs: ArrayLike,
    *,
    axis: int = ...,
    method: Method = ...,
    periodic: bool = ...,
    pivot: bool | None = ...,
    out: Array | None = ...,
    on_singular: OnSingular = ...,
    device: str | None = ...,
    stream: object = ...,
    threads: int | None = ...,
    check_finite: bool = ...,
    where: ArrayLike | None = ...,
    group: Group | None = ...,
    split: Slab | None = ...,
    return_info: Literal[True],
) -> tuple[Array, SolveInfo]: ...
@overload
def solve_tridiagonal(
    lower: ArrayLike,
    diag: ArrayLike | RowSums,
    upper: ArrayLike,
    rhs: ArrayLike,
    *,
    axis: int = ...,
    method: Method = ...,
    periodic: bool = ...,
    pivot: bool | None = ...,
    out: Array | None = ...,
    on_singular: OnSingular = ...,
    device: str | None = ...,
    stream: object = ...,
    threads: int | None = ...,
    check_finite: bool = ...,
    where: ArrayLike | None = ...,
    group: Group | None = ...,
    split: Slab | None = ...,
    return_info: bool,
) -> Array | tuple[Array, SolveInfo]: ...
def solve_tridiagonal(
    lower: ArrayLike,
    diag: ArrayLike | RowSums = _MISSING,
    upper: ArrayLike = _MISSING,
    rhs: ArrayLike = _MISSING,
    *,
    axis: int = -1,
    method: Method = "auto",
    periodic: bool = False,
    pivot: bool | None = None,
    out: Array | None = None,
    on_singular: OnSingular = "raise",
    device: str | None = None,
    stream: object = None,
    threads: int | None = None,
    check_finite: bool = False,
    where: ArrayLike | None = None,
    group: Group | None = None,
    split: Slab | None = None,
    return_info: bool = False,
    **other: Any,
) -> Array | tuple[Array, SolveInfo]:
    r"""Solve many independent tridiagonal systems along one axis.

    For every index of the other axes, find `x` with

    .. math:: l_i x_{i-1} + d_i x_i + u_i x_{i+1} = r_i, \quad 0 \le i < n.

    Parameters
    ----------
    lower, diag, upper : array_like, shape broadcastable with `rhs`
        The three diagonals: NumPy arrays, or arrays on a CUDA device; see Notes.
        Unless `periodic`, ``lower[0]`` and ``upper[n - 1]`` are ignored, also if they
        are NaN; `lower` and `upper` can omit them and have n - 1 entries along
        `axis`. A matrix that broadcasts over a batch axis is never expanded in memory.
        For matrices of diffusion, `diag` can be `RowSums`: row sums instead of the diagonal,
        which keep their digits where they are small relative to the off-diagonals.
    rhs : array_like, shape (..., n, ...)
        Right-hand sides; at least one axis. Several right-hand sides for one matrix
        form a batch axis over which the matrix broadcasts.
    axis : int, default: -1
        Axis of the systems in the broadcast shape of the operands. An operand of one
        dimension lies along `axis`, whatever its length, and has n entries (or n - 1, for
        `lower` and `upper` unless `periodic`); for one coefficient per column write
        ``lower[None, :]``, for one in all rows a number. Operands of two and more
        dimensions broadcast as in NumPy, from the last axis.
    method : {'auto', 'thomas', 'cr', 'pcr', 'cr-pcr', 'pcr-thomas', 'partition', 'pivoted'}
        The algorithm; see Notes.
    periodic : bool, default: False
        Whether ``lower[0]`` couples to ``x[n - 1]`` and ``upper[n - 1]`` to ``x[0]``.
    pivot : bool, optional
        Whether to exchange rows. By default ``'auto'`` exchanges rows in the systems
        that are not diagonally dominant. True needs method ``'auto'`` or ``'pivoted'``.
    out : array, optional
        Array for the result, with the dtype and shape of the result, on the device of
        the operands. It can be `rhs` itself; it must not overlap any other operand.
    on_singular : {'raise', 'warn', 'nan', 'ignore'}
        Reaction to a singular system, that is, to a pivot that is zero, infinite or NaN or,
        without row exchanges, whose reciprocal overflows: raise an error after all systems
        are solved, issue a warning, set the solution to NaN, or do nothing. Except with
        ``'nan'``, the solution of a singular system is unspecified. On the CPU a matrix with an
        entry that is NaN or infinite has such a pivot; a device need not report it.
    device : str, optional
        ``'cpu'``, ``'cuda'`` or ``'cuda:N'``; by default the device of the arrays.
    stream : int or object, optional
        Stream of the device on which the work is enqueued: its address, or an object with
        ``__cuda_stream__()``, ``ptr`` or ``cuda_stream``. By default the current stream
        of the library of `rhs`. None on the CPU.
    threads : int, optional
        Number of host threads. The default is the number of processors that the
        process can use, or ``PYSOLVERS_NUM_THREADS`` if that is smaller. The result has
        the same bits for any number.
    check_finite : bool, default: False
        Whether to raise an error if an entry of an operand is NaN or infinite. The operands
        are read once more for it, and copied to the host if they are on a device.
    where : array_like of bool, optional
        Rows that are inside, broadcastable with `rhs`. A row outside is a row of the identity,
        x there is `rhs`, and the off-diagonals that couple to it count as 0: whatever the
        operands hold outside, also NaN, the solution inside is that of the rows inside. With
        `RowSums` the row sums are those without these off-diagonals, and their signs are not
        checked. Needs method ``'auto'``.
    group : pysolvers.distributed.Group, optional
        Processes that each hold a part of all arrays and solve together; see Notes.
    split : pysolvers.distributed.Slab, optional
        With `group`, the axis of the result along which the arrays are split.
    return_info : bool, default: False
        Whether to return a `SolveInfo` as well.

    Returns
    -------
    x : array, shape of the broadcast operands
        The solutions: `out` if it was given, otherwise a new array of the library of
        `rhs` (NumPy, CuPy, PyTorch, JAX, Numba), on the device of `rhs`. Its dtype is the
        one to which NumPy promotes the operands.
    info : SolveInfo
        Only if `return_info`.

    Raises
    ------
    TypeError
        If an operand is not float32, float64, complex64, complex128, or of integers or
        booleans. If `out` does not have the dtype of the result. If a call mixes NumPy
        arrays and arrays on a device. If a matrix with `RowSums` is complex. If an operand is a
        JAX tracer: inside ``jit``, ``grad`` and ``vmap`` use `pysolvers.jax.solve_tridiagonal`.
    ValueError
        If an option is unknown, two options contradict, an operand of one dimension does
        not have n entries, other shapes do not broadcast, `out` cannot hold the result, or
        arrays are on two devices. On the CPU, if `on_singular` is ``'raise'`` and an entry of a
        matrix is NaN or infinite; the other systems of `out` are valid. With `check_finite`, if
        an entry of any operand is. With `RowSums`, if an entry has a sign that the form excludes,
        if `pivot` is True, or if `method` is not ``'auto'``.
    SingularSystemError
        If a system is singular and `on_singular` is ``'raise'``. The other systems of
        `out` are valid.
    BackendError
        If the device or the method is not available.
    DistributedError
        With a `group`: if another rank raises an error, makes another call, or does not take part
        within the timeout of the group.

    See Also
    --------
    factor_tridiagonal : Factor matrices once, to solve with them often.
    RowSums : Row sums instead of the diagonal.

    Warns
    -----
    SingularSystemWarning
        If the entries of each row of a periodic matrix that all systems share add up to 0, as
        those of (-1, 2, -1): it is singular, and no pivot need be 0. Looked for in numbers and
        NumPy arrays of one dimension, if `on_singular` is ``'raise'`` or ``'warn'``.

    Notes
    -----
    The systems can lie along any axis, with any strides, also negative ones. Operands
    are not copied if the batch axes of all operands merge to at most two axes.
    Otherwise the operand that prevents this is copied once; ``info.copied`` names it.

    The operands promote as in NumPy: float32 with float64 gives float64, integers alone
    give float64, and Python numbers do not raise the precision of arrays. On a device, the
    library of an operand converts it. A real matrix with a complex `rhs` stays real: real
    and imaginary parts are two right-hand sides of this matrix. Only a matrix that all
    systems share is made complex, a small copy, if `rhs` has contiguous rows.

    ``'thomas'`` is Gaussian elimination without row exchanges, about 8 n operations
    per system ([1]_, ch. 9). ``'cr'``, ``'pcr'``, ``'cr-pcr'`` and ``'pcr-thomas'`` are
    cyclic reduction, parallel cyclic reduction and their hybrids ([2]_, [3]_).
    ``'partition'`` divides each system into chunks ([4]_). These methods exchange no
    rows. For diagonally dominant systems ``'thomas'`` and ``'partition'`` are stable. The error
    of ``'pcr'`` and ``'pcr-thomas'`` grows with n if the dominance is not strict: for the rows
    -1, 2, -1 the normwise backward error of ``'pcr-thomas'`` is 35 eps at n = 512, 5e3 eps at
    2e4 and 1.7e5 eps at 2e5, and the componentwise one of ``'pcr'`` is 1.4e5 eps at 2e5.

    ``'pivoted'`` is Gaussian elimination with partial pivoting. Entries grow by a factor
    of at most 2. Periodic systems, and the spans of long systems, are eliminated in a
    folded order of the unknowns, from the middle row outwards, in which entries grow by
    a factor of at most 7 ([1]_, Theorem 9.11). A device joins chunks of rows, where
    entries can grow more. It measures the growth, checks the residual of the systems
    concerned, and solves a system a second time, in order, if its residual is not small;
    ``info.repeated`` is the number of these systems.

    The solution of a system does not depend on the other systems or on the number of
    threads. On the CPU its bits do not depend on the batch size or the strides either. A
    device uses different kernels for contiguous and strided systems, for a matrix that
    all systems share, and for few and many systems; their results differ by rounding
    errors.

    Arrays on a CUDA device are those of CuPy, PyTorch, JAX, Numba or any library with
    DLPack or ``__cuda_array_interface__``; they need the package cuda-core. They are
    not copied: the call enqueues the work on the stream. With `on_singular` ``'raise'``
    or ``'warn'`` the call waits for the result in order to report singular systems.
    With ``'nan'`` or ``'ignore'`` the call returns without waiting; if `out` is given
    too, the call can be captured in a CUDA graph. Another stream must wait for this
    stream before it reads the result, or changes or frees the operands. JAX arrays are
    an exception: the result can be used at once, and the operands are kept as long as
    they are needed. Calls with arrays of JAX that repeat shapes and options are compiled,
    as `pysolvers.jax.solve_tridiagonal`. With a `device`, NumPy arrays are copied to this
    device and the result is copied back.

    With a `group`, every rank passes its part of the operands, with all other options equal, and
    gets its part of the solution. Operands that broadcast along the split axis are passed as they
    are; only the first rank can omit the first entry of `lower`, and only the last rank the last
    entry of `upper`. If the arrays are split along a batch axis, nothing is exchanged but the
    singular systems. If the systems are cut, each rank eliminates its rows onto its ends by the
    partition method [4]_, the ranks exchange 7 numbers per system, and the error is that of one
    device. With `where` one entry of the mask more is exchanged, through the memory of the host as
    the numbers then are. 5 words per unknown are moved, as on one device, and more where the
    coupling to other ranks has not yet decayed: up to 6 on the CPU, and 18 on a device or in long
    systems. Systems that need row exchanges, and all systems with ``pivot=True``, are distributed
    over the ranks as whole systems instead: 5 numbers per unknown are exchanged, and the solution
    is the one of one device. ``info.exchange`` names what was exchanged. The same number of ranks
    gives the same bits. With NumPy arrays ``device="cuda"`` gives each rank its own device. On a
    device, the first call of a kind waits for the other ranks; later ones, between devices of one
    host, wait as calls without a group do, and with ``pivot=None`` for the result.

    References
    ----------
    .. [1] N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed.,
       SIAM, 2002.
    .. [2] R. W. Hockney and C. R. Jesshope, *Parallel Computers*, Adam Hilger, 1981.
    .. [3] Y. Zhang, J. Cohen and J. D. Owens, "Fast tridiagonal solvers on the GPU",
       PPoPP 2010.
    .. [4] H. H. Wang, "A parallel method for tridiagonal equations", ACM Trans. Math.
       Softw. 7 (1981) 170-183.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import solve_tridiagonal
    >>> rhs = np.array([[1.0, 0.0, 1.0], [0.0, 4.0, 0.0]])
    >>> solve_tridiagonal(-1.0, 2.0, -1.0, rhs)
    array([[1., 1., 1.],
           [2., 4., 2.]])
    """
    if rhs is _MISSING or upper is _MISSING or other:
        raise call_error("solve_tridiagonal", _NAMES, (lower, diag, upper, rhs), other)
    diag, form = form_of(diag)
    if periodic is True and form is None and where is None and on_singular in ("raise", "warn"):
        warn_of_singular_ring(lower, diag, upper)
    is_split = group is not None or split is not None
    if check_finite is True and not is_split:
        check_finite = not are_finite((lower, diag, upper, rhs))
    if not is_split and stream is None and check_finite is False:
        answer = solve_unplanned(
            lower,
            diag,
            upper,
            rhs,
            form,
            where,
            axis,
            method,
            periodic,
            pivot,
            out,
            on_singular,
            device,
            threads,
            return_info,
        )
        if answer is not None:
            return answer
    if where is not None and method != "auto":
        raise ValueError(
            f"solve_tridiagonal does not take where with method={method!r}: it needs method 'auto'"
        )
    named = {"lower": lower, "diag": diag, "upper": upper, "rhs": rhs}
    choice = Choice(
        axis=axis,
        method=method,
        periodic=periodic,
        pivot=pivot,
        out=out,
        on_singular=on_singular,
        device=device,
        stream=stream,
        threads=threads,
        check_finite=check_finite,
        return_info=return_info,
        has_sums=form is not None,
        check_signs=form is not None and form.check_signs,
    )
    if not is_split:
        return solve_planned(named, choice, where)
    from .distributed._solve import solve_split

    return solve_split(group, split, named, choice, where)


def from_banded(ab: Any) -> tuple[Any, Any, Any]:
    """Return the diagonals of matrices in the storage of `scipy.linalg.solve_banded`.

    In this storage ``ab[0, 1:]`` is the upper diagonal, ``ab[1]`` the diagonal and ``ab[2, :-1]``
    the lower one.

    Parameters
    ----------
    ab : array, shape (..., 3, n)
        The diagonals of matrices with one diagonal below and one above the main one,
        ``l_and_u = (1, 1)``.

    Returns
    -------
    lower, diag, upper : array, shapes (..., n - 1), (..., n) and (..., n - 1)
        Views of `ab`, in the order of the arguments of `solve_tridiagonal` and
        `factor_tridiagonal`.

    Raises
    ------
    ValueError
        If `ab` does not have three diagonals.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import from_banded, solve_tridiagonal
    >>> ab = np.array([[0.0, -1.0, -1.0], [2.0, 2.0, 2.0], [-1.0, -1.0, 0.0]])
    >>> solve_tridiagonal(*from_banded(ab), np.array([1.0, 0.0, 1.0]))
    array([1., 1., 1.])
    """
    if not hasattr(ab, "shape"):
        ab = np.asarray(ab)
    if len(ab.shape) < 2 or ab.shape[-2] != 3:
        raise ValueError(
            "ab must have shape (..., 3, n), the diagonals of matrices with l_and_u = (1, 1), got "
            f"shape {tuple(ab.shape)}"
        )
    return ab[..., 2, :-1], ab[..., 1, :], ab[..., 0, 1:]


hide_other(solve_tridiagonal)

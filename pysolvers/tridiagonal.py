"""Batched tridiagonal systems: solve them, or factor their matrices for repeated solves."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._checks import integer, require_flag
from ._errors import raise_for_status
from ._factor import TridiagonalFactor
from ._options import (
    Method,
    OnSingular,
    SolveInfo,
    check_choice,
    check_policy,
    check_threads,
    check_variant,
    pivot_code,
    shape_flags,
)
from ._other_calls import call_error, hide_other
from ._row_sums import RowSums, form_of, matrix_names
from ._runtime.arrays import Shape, pairs, resolve_shape
from ._runtime.backends import require
from ._runtime.compiled import solve_compiled
from ._runtime.finite import explained, require_finite_operands
from ._runtime.interop import host_array, library_of
from ._runtime.lines import Plan, batch_strides, plan_lines
from ._runtime.places import Place, find_place, lender_of
from ._runtime.signs import require_form
from ._runtime.singular import Singular, find_singular

if TYPE_CHECKING:
    from .distributed import Group, Slab, SplitFactor

__all__ = [
    "RowSums",
    "SolveInfo",
    "TridiagonalFactor",
    "factor_tridiagonal",
    "from_banded",
    "solve_tridiagonal",
]

Array = NDArray[Any]

_OPERATION = "solve_tridiagonal"
_NAMES = ("lower", "diag", "upper", "rhs", "out")
_DIAG, _RHS, _X = 1, 3, 4

# For operands that a call lacks, as calls in the style of other packages do.
_MISSING: Any = None

# What a device does about singular systems, as numbers of the extension.
_ON_DEVICE = {"ignore": 0, "raise": 1, "nan": 2}


class _Options(NamedTuple):
    """Checked options, as codes of the backend."""

    method: int
    pivot: int
    policy: str
    threads: int
    variant: int


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
    variant: int = ...,
    check_finite: bool = ...,
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
    variant: int = ...,
    check_finite: bool = ...,
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
    variant: int = ...,
    check_finite: bool = ...,
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
    variant: int = 0,
    check_finite: bool = False,
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
    variant : int, default: 0
        Variant of the method: for ``'pcr'`` on a device, 1 to 4 select the mappings C1
        to C4 of [5]_. With 0 the backend chooses; the CPU accepts only 0.
    check_finite : bool, default: False
        Whether to raise an error if an entry of an operand is NaN or infinite. The operands
        are read once more for it, and copied to the host if they are on a device.
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
        if `pivot` is True, if `method` is not ``'auto'``, or if there is a `group`.
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

    With a `group`, every rank passes its part of the operands, with all other options equal,
    and gets its part of the solution. Operands that broadcast along the split axis are passed as
    they are; only the first rank can omit the first entry of `lower`, and only the last rank the
    last entry of `upper`. If the arrays are split along a batch axis, nothing is exchanged but the
    singular systems. If the systems are cut, each rank eliminates its rows onto its ends by the
    partition method [4]_, the ranks exchange 7 numbers per system, and the error is that of one
    device. 5 words per unknown are moved, as on one device, and more where the coupling to other
    ranks has not yet decayed: up to 6 on the CPU, and 18 on a device or in long systems. Systems
    that need row exchanges, and all systems with ``pivot=True``, are distributed over the ranks as
    whole systems instead: 5 numbers per unknown are exchanged, and the solution is the one of one
    device. ``info.exchange`` names what was exchanged. The same number of ranks gives the same
    bits. On a device, a call with a group waits for the solution.

    References
    ----------
    .. [1] N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed.,
       SIAM, 2002.
    .. [2] R. W. Hockney and C. R. Jesshope, *Parallel Computers*, Adam Hilger, 1981.
    .. [3] Y. Zhang, J. Cohen and J. D. Owens, "Fast tridiagonal solvers on the GPU",
       PPoPP 2010.
    .. [4] H. H. Wang, "A parallel method for tridiagonal equations", ACM Trans. Math.
       Softw. 7 (1981) 170-183.
    .. [5] Z. Wei, B. Jang, Y. Zhang and Y. Jia, "Parallelizing alternating direction
       implicit solver on GPUs", Procedia Comput. Sci. 18 (2013) 389-398.

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
        raise call_error("solve_tridiagonal", _NAMES[:_X], (lower, diag, upper, rhs), other)
    diag, form = form_of(diag)
    if (
        form is None
        and group is None
        and split is None
        and return_info is False
        and (method, stream) == ("auto", None)
        and on_singular in ("raise", "nan", "ignore")
        and check_finite is False
        and type(variant) is int
        and variant == 0
    ):
        lender = None if type(rhs) is np.ndarray else lender_of(rhs, device)
        direct = None
        if lender is not None:
            direct = _solve_lent(
                lower, diag, upper, rhs, axis, out, pivot, periodic, threads, on_singular, lender
            )
        elif device is None or device == "cpu":
            direct = _solve_directly(
                lower, diag, upper, rhs, axis, out, pivot, periodic, threads, on_singular
            )
            if direct is None and out is None and threads is None and library_of(rhs).compiles:
                direct = solve_compiled(
                    (lower, diag, upper, rhs),
                    (axis, pivot, periodic),
                    asks=on_singular == "raise",
                )
        if direct is not None:
            return direct

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
        variant=variant,
        check_finite=check_finite,
        return_info=return_info,
        has_sums=form is not None,
        check_signs=form is not None and form.check_signs,
    )
    if form is not None and group is not None:
        raise ValueError(
            "solve_tridiagonal does not take RowSums with a group: write factor_tridiagonal("
            "lower, RowSums(s), upper, group=group, split=split).solve(rhs)"
        )
    if group is not None or split is not None:
        from .distributed._solve import solve_split

        return solve_split(group, split, named, choice)
    call = prepare(named, choice)
    report, singular = solve_views(call, call.shape, periodic, call.views)
    return finish(call, report, singular, stacklevel=2)


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
        Axis of the matrices in the broadcast shape. Operands of one dimension lie along it
        as in `solve_tridiagonal`.
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
    group : pysolvers.distributed.Group, optional
        Processes that each hold a part of all arrays, as in `solve_tridiagonal`. Each rank passes
        its part of the diagonals; `rows` is the number of rows that it holds.
    split : pysolvers.distributed.Slab, optional
        With `group`, the axis of the diagonals along which they are split.

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
        infinite. With `RowSums`, as in `solve_tridiagonal`, but a `group` is allowed.
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
        raise call_error("factor_tridiagonal", _NAMES[:_RHS], (lower, diag, upper), other)
    if group is not None or split is not None:
        from .distributed._factor import SplitFactor

        named = {"lower": lower, "diag": diag, "upper": upper}
        options = (axis, rows, pivot, periodic, on_singular, device, threads, check_finite)
        return SplitFactor(group, split, named, stream, options)
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
    )


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
hide_other(factor_tridiagonal)


class Choice(NamedTuple):
    """Options of `solve_tridiagonal` as the caller gave them."""

    axis: int
    method: Method
    periodic: bool
    pivot: bool | None
    out: Any
    on_singular: OnSingular
    device: str | None
    stream: object
    threads: int | None
    variant: int
    check_finite: bool
    return_info: bool
    has_sums: bool = False  # `diag` holds row sums
    check_signs: bool = False


class Call(NamedTuple):
    """A checked call of `solve_tridiagonal`, its operands where they are used."""

    rhs: Any
    choice: Choice
    place: Place
    options: _Options
    shape: Shape
    dtype: np.dtype
    converted: tuple[str, ...]
    result: Array
    views: list[Array]  # lower, diag, upper, rhs and x, the axis of the systems last


def prepare(named: dict[str, Any], choice: Choice) -> Call:
    """Check the operands and the options of `solve_tridiagonal`."""
    place = find_place(
        choice.device, choice.stream, named, choice.out, leader="rhs", timed=choice.return_info
    )
    backend = place.backend
    options = _Options(
        check_choice("method", choice.method, backend.METHODS),
        pivot_code(choice.pivot, backend.PIVOTS, choice.method, has_sums=choice.has_sums),
        check_policy(choice.on_singular),
        check_threads(choice.threads),
        check_variant(choice.variant, place.name),
    )

    require_flag("periodic", choice.periodic)
    require_flag("check_finite", choice.check_finite)
    require_flag("return_info", choice.return_info)
    operands, dtype, converted = place.operands(named)
    shape = _solve_shape(operands, choice.axis, choice.periodic, backend.MAX_ROWS)
    if choice.check_finite:
        arrays = dict(zip(_NAMES, operands, strict=False))
        require_finite_operands(_OPERATION, place, arrays, shape, periodic=choice.periodic)
    if choice.has_sums:
        require_form(
            _OPERATION,
            place,
            operands,
            shape,
            periodic=choice.periodic,
            check_signs=choice.check_signs and place.asks(options.policy),
        )
    result = place.result(choice.out, named, operands[_RHS], shape.full, dtype)
    x = result
    if result.size:
        if not choice.has_sums:
            operands, widened = _widen_shared(place, operands, shape, dtype)
            converted = (*converted, *widened)
        operands, x = place.move(*operands), place.target(result)
    views = [*shape.operands(operands), shape.batch_first(x)]
    return Call(named["rhs"], choice, place, options, shape, dtype, converted, result, views)


def solve_views(
    call: Call, shape: Shape, periodic: bool, views: list[Array]
) -> tuple[dict[str, Any], Singular | None]:
    """Solve the systems of these views, of this shape, with the options of a call.

    Return the report of the backend, with the names of the operands that were copied, and, if the
    call asks for them, the singular systems.
    """
    place, options = call.place, call.options
    parts = _parts(place, shape, views)
    report: dict[str, Any] = {
        "method": "auto",
        "pivoted": 0,
        "repeated": 0,
        "kernel": "",
        "threads": 0,
    }
    failed = np.zeros(0, np.int32) if place.asks(options.policy) else None
    if views[_X].size:
        flags = shape_flags(place.backend, shape, periodic)
        if call.choice.has_sums:
            flags |= place.backend.ROW_SUMS
        report, failed = _solve_parts(place, options, flags, parts, call.choice.return_info)
    singular = None if failed is None else find_singular(failed, parts.plan)
    if singular is not None and parts.paired:
        singular = singular.of_first()
    if singular is not None and options.policy in ("raise", "warn"):
        names = matrix_names(has_sums=call.choice.has_sums)
        singular = explained(singular, place, views, shape, periodic=periodic, names=names)
    if singular is not None and options.policy == "nan" and not place.fills:
        singular.fill_nan(views[_X], shape.batch)
    return report | {"copied": tuple(_NAMES[k] for k in parts.plan.copied)}, singular


def solve_spikes(
    call: Call, shape: Shape, views: list[Array], left: Array | None, right: Array | None
) -> tuple[dict[str, Any], Singular | None] | None:
    """Solve as `solve_views`, and for the outermost columns of the inverses, in one pass.

    With the matrices T, write ``T left = lower[0] e_0`` and ``T right = upper[n - 1] e_(n - 1)``.
    ``report["pivoted"]`` counts the systems that need row exchanges; if there are any, the outputs
    are unspecified. None if the backend cannot do it, or not faster than `solve_views`.
    """
    place, options = call.place, call.options
    if place.name != "cpu" or views[_RHS].dtype != views[_DIAG].dtype:
        return None
    outputs = [views[_X], *(view for view in (left, right) if view is not None)]
    operands = [*views[:_X], *outputs]
    plan = plan_of(shape.batch, operands)
    lines = place.lines(plan, operands, views[_X].shape[-1])
    more = iter(lines[_X + 1 :])
    info = place.info(prod(shape.batch))
    status, report = place.backend.spikes_solve(
        options.method,
        options.pivot,
        shape_flags(place.backend, shape, False),
        *lines[: _X + 1],
        None if left is None else next(more),
        None if right is None else next(more),
        info,
        options.threads,
    )
    if place.backend.STATUS[status][0] == "PS_UNSUPPORTED":
        return None
    raise_for_status(status, place.backend.STATUS, _OPERATION)
    for number in plan.copied:
        if number >= _X:
            place.restore(lines[number], operands[number], plan.outer + plan.inner)
    names = tuple(_NAMES[k] for k in plan.copied if k <= _X)
    return report | {"copied": names}, find_singular(place.read(info), plan)


def finish(
    call: Call, report: dict[str, Any], singular: Singular | None, *, stacklevel: int, **facts: Any
) -> Array | tuple[Array, SolveInfo]:
    """Return what `solve_tridiagonal` returns; `facts` are further attributes of its info."""
    answer = call.place.finish(call.result, call.rhs, call.choice.out)
    if singular is not None:
        singular.report(call.options.policy, _OPERATION, stacklevel=stacklevel + 1)
    if not call.choice.return_info:
        return answer
    copied = report.pop("copied")
    description = call.place.description(report, singular)
    known: dict[str, Any] = {
        "systems": prod(call.shape.batch),
        "rows": call.shape.rows,
        "dtype": call.dtype,
        "copied": tuple(dict.fromkeys((*call.converted, *copied))),
    }
    return answer, SolveInfo(**description, **(known | facts))


def _solve_directly(
    lower: object,
    diag: object,
    upper: object,
    rhs: object,
    axis: object,
    out: object,
    pivot: object,
    periodic: object,
    threads: object,
    policy: OnSingular,
) -> Any:
    """Solve in one call of the extension if the operands need no planning, or return None.

    They need none if they are arrays of the shape of `rhs`, vectors, and real numbers, of one
    precision. Calls with errors in their arguments give None, too.
    """
    sides = (rhs, out)
    if not isinstance(rhs, np.ndarray):
        rhs = host_array(rhs)
        if type(rhs) is not np.ndarray:
            return None
        lower, diag, upper, out = map(host_array, (lower, diag, upper, out))
    backend = require("cpu")
    answer = backend.tridiag_direct(
        lower, diag, upper, rhs, axis, out, pivot, periodic, threads, 0, 0, policy != "ignore"
    )
    if answer is NotImplemented:
        return None
    if type(answer) is not np.ndarray:
        named = {"lower": lower, "diag": diag, "upper": upper, "rhs": rhs}
        place = find_place("cpu", None, named, leader="rhs")
        answer = _answer(answer, named, place, axis, periodic, policy)
    if rhs is sides[0]:
        return answer
    return library_of(sides[0]).from_host(answer, sides[0]) if out is None else sides[1]


def _solve_lent(
    lower: object,
    diag: object,
    upper: object,
    rhs: object,
    axis: object,
    out: object,
    pivot: object,
    periodic: object,
    threads: object,
    policy: OnSingular,
    lender: tuple[ModuleType, Any, int],
) -> Any:
    """Solve as `_solve_directly` does for arrays on a device, which their library lends."""
    backend, functions, ordinal = lender
    answer = backend.tridiag_lent(
        *(lower, diag, upper, rhs, axis, out, pivot, periodic, threads),
        ordinal,
        _ON_DEVICE[policy],
        functions,
    )
    if answer is NotImplemented:
        return None
    if type(answer) is int or type(answer) is tuple:
        named = {"lower": lower, "diag": diag, "upper": upper, "rhs": rhs}
        place = find_place(None, None, named, out, leader="rhs")
        _answer(answer, named, place, axis, periodic, policy)
    return answer


def _answer(
    answer: Any,
    named: dict[str, Any],
    place: Place,
    axis: Any,
    periodic: Any,
    policy: OnSingular,
) -> Array:
    """Return the array of an answer of the extension with singular systems, or raise an error."""
    if isinstance(answer, int):
        raise_for_status(answer, place.backend.STATUS, _OPERATION)
    x, info = answer
    rows_last = np.moveaxis(x, integer("axis", axis), -1)
    batch = rows_last.shape[:-1]
    plan = Plan(batch, (), tuple(k for k, size in enumerate(batch) if size > 1))
    singular = find_singular(info, plan)
    if policy == "raise":
        operands, _, _ = place.operands(named)
        shape = _solve_shape(operands, axis, bool(periodic), place.backend.MAX_ROWS)
        views = shape.operands(operands)
        singular = explained(singular, place, views, shape, periodic=bool(periodic))
    singular.report(policy, _OPERATION, stacklevel=4)
    singular.fill_nan(rows_last, batch)
    return x


def _solve_shape(operands: Sequence[Array], axis: int, periodic: bool, max_rows: int) -> Shape:
    if operands[_RHS].ndim == 0:
        raise ValueError("rhs must have at least one dimension, got a 0-d array")
    named = dict(zip(_NAMES, operands, strict=False))
    shape = resolve_shape(named, axis, leader="rhs", periodic=periodic)
    if shape.rows > max_rows:
        raise ValueError(f"a system can have at most {max_rows} rows, got {shape.rows}")
    return shape


def _widen_shared(
    place: Place, operands: list[Array], shape: Shape, dtype: np.dtype
) -> tuple[list[Array], list[str]]:
    """Make a real matrix complex if this costs less than systems of every second element.

    That is the case if all systems share the matrix, so that its copy is small, and the rows of
    the complex right-hand sides are contiguous. Return the names of the copies, too.
    """
    if operands[_DIAG].dtype == dtype:
        return operands, []
    *matrix, rhs = shape.operands(operands)
    if (
        not place.converts
        or prod(shape.batch) < 2
        or rhs.shape[-1] < 2
        or rhs.strides[-1] != rhs.itemsize
        or any(size != 1 for view in matrix for size in view.shape[:-1])
    ):
        return operands, []
    named = dict(zip(_NAMES, operands[:_RHS], strict=False))
    copies = [place.widen(name, array, dtype) for name, array in named.items()]
    return [*copies, operands[_RHS]], [name for name, array in named.items() if array.ndim]


class _Parts(NamedTuple):
    """The calls of the backend for one call: their operands, rows last, and their plan."""

    views: list[list[Array]]
    plan: Plan
    paired: bool = False  # whether the first batch axis has the real and the imaginary part
    work: Array | None = None  # contiguous copy of the right-hand sides, in place of x


def _parts(place: Place, shape: Shape, views: list[Array]) -> _Parts:
    """Divide a call with a real matrix and complex right-hand sides into real systems.

    Real and imaginary parts are two right-hand sides of one matrix: the two indices of one more
    batch axis. If the batch axes then do not merge to two without more copies, the parts are
    solved one after the other.
    """
    plan = plan_of(shape.batch, views)
    if views[_RHS].dtype == views[_DIAG].dtype:
        return _Parts([views], plan)
    matrix = views[:_RHS]
    sides = [pairs(view) for view in views[_RHS:]]
    together = [*(view[None] for view in matrix), *sides]
    paired = plan_of((2, *shape.batch), together)
    if len(paired.copied) <= len(plan.copied) or not views[_X].size:
        return _Parts([together], paired, paired=True)
    parts = [[*matrix, rhs, x] for rhs, x in zip(*sides, strict=True)]
    work = place.packed(parts[0][_X])
    return _Parts(parts, plan_of(shape.batch, [*matrix, work, work]), work=work)


def plan_of(batch: tuple[int, ...], views: Sequence[Array]) -> Plan:
    strides = [batch_strides(view) for view in views]
    return plan_lines(batch, strides, strides[_X])


def _solve_parts(
    place: Place, options: _Options, flags: int, parts: _Parts, return_info: bool
) -> tuple[dict[str, Any], NDArray[np.int32] | None]:
    """Solve all parts; return the report and the info of each system of the first one."""
    answers = []
    for views in parts.views:
        if parts.work is None:
            answers.append(_run(place, options, flags, views, parts.plan, return_info))
            continue
        *matrix, rhs, x = views
        place.write(parts.work, rhs)
        operands = [*matrix, parts.work, parts.work]
        answers.append(_run(place, options, flags, operands, parts.plan, return_info))
        place.write(x, parts.work)
    report, failed = answers[0]
    if parts.paired:  # every matrix is counted twice
        halves = {key: report[key] for key in ("pivoted", "repeated")}
        report = report | {key: (n + 1) // 2 if n > 0 else n for key, n in halves.items()}
    return report, failed


def _run(
    place: Place,
    options: _Options,
    flags: int,
    views: Sequence[Array],
    plan: Plan,
    return_info: bool,
) -> tuple[dict[str, Any], NDArray[np.int32] | None]:
    """Solve on the backend; return its report and, if requested, the info of each system."""
    backend = place.backend
    rows = views[_X].shape[-1]
    lines = place.lines(plan, views, rows)
    x = lines[_X]
    asks = place.asks(options.policy)
    info = place.info(x.shape[0] * x.shape[1]) if asks or options.policy == "nan" else None
    status, report = backend.tridiag_solve(
        options.method,
        options.pivot,
        flags,
        *lines,
        info,
        options.threads,
        options.variant,
        *place.arguments,
        asks and return_info,
    )
    raise_for_status(status, backend.STATUS, _OPERATION)
    if info is not None and options.policy == "nan" and place.fills:
        place.fill_nan(x, info.reshape(x.shape[:2]))
    if _X in plan.copied:
        place.restore(x, views[_X], plan.outer + plan.inner)
    return report, place.read(info) if info is not None and asks else None

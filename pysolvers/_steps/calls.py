"""Products with tridiagonal matrices, and implicit steps in time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import axis_number, broadcasts, integer, require, require_flag, require_number
from .._lines.engine import step_directly
from .._lines.factor import More, TridiagonalFactor, rhs_shape
from .._lines.prepared import Operation, Prepared, prepare
from .._lines.step import Step, make_step, multiply, require_real_sums, require_signs
from .._options import Choice, OnSingular, SolveInfo, check_policy
from .._plain import is_lazy, require_plain
from .._row_sums import RowSums, form_of
from .._runtime.arrays import as_array, padded_shape
from .._runtime.backends import require as require_backend
from .._runtime.direct import call_directly
from .._runtime.finite import are_checked
from .._runtime.interop import locate, shape_of
from .._runtime.targets import find_target
from .blocks import any_lazy, by_blocks
from .operands import in_one_precision, numbers_of

if TYPE_CHECKING:
    from ..distributed import Group, Slab
    from ..distributed._factor import SplitFactor

Array = NDArray[Any]
Contact = Literal["first", "last"]

_MATVEC = Operation("tridiagonal_matvec", "x", ("x",))
_RESIDUAL = Operation("residual", "rhs", ("x", "rhs"), "rhs")
_THETA = Operation("theta_step", "u", ("u", "source", "projected"), "u")
_DIFFUSION = Operation(
    "implicit_diffusion",
    "T",
    ("T", "source"),
    "T",
    labels={"lower": "K", "upper": "K", "diag": "dz"},
)

_ENDS = ("flux_first", "flux_last", "value_first", "value_last")


def tridiagonal_matvec(
    lower: ArrayLike,
    diag: ArrayLike | RowSums,
    upper: ArrayLike,
    x: ArrayLike,
    *,
    axis: int = -1,
    periodic: bool = False,
    out: Array | None = None,
    device: str | None = None,
    stream: object = None,
    threads: int | None = None,
    check_finite: bool = False,
    group: Group | None = None,
    split: Slab | None = None,
) -> Array:
    r"""Multiply batched tridiagonal matrices by vectors along one axis.

    For every index of the other axes,

    .. math:: y_i = l_i x_{i-1} + d_i x_i + u_i x_{i+1}, \quad 0 \le i < n.

    Parameters
    ----------
    lower, diag, upper : array_like, shape broadcastable with `x`
        The three diagonals, as in `solve_tridiagonal`; `diag` can be `RowSums`.
    x : array_like, shape (..., n, ...)
        The vectors.
    axis : int, default: -1
        Axis of the vectors, as in `solve_tridiagonal`.
    periodic : bool, default: False
        Whether ``lower[0]`` multiplies ``x[n - 1]`` and ``upper[n - 1]`` multiplies ``x[0]``.
    out : array, optional
        Array for the result, with its dtype and shape. It must not overlap an operand.
    device, stream, threads
        As in `solve_tridiagonal`.
    check_finite : bool, default: False
        Whether to raise an error if an entry of an operand is NaN or infinite.
    group, split : pysolvers.distributed.Group and Slab, optional
        As in `solve_tridiagonal`: each rank passes its part of the operands and gets its part of
        the result. If the vectors are cut, neighbours exchange one number of each system, and the
        result has the bits of a call with the whole arrays.

    Returns
    -------
    array, shape of the broadcast operands
        The products: `out`, or a new array of the library of `x`. Its dtype is the one to which
        NumPy promotes the operands.

    Raises
    ------
    TypeError
        If an operand has another dtype than those of `solve_tridiagonal`, if `out` does not have
        the dtype of the result, or if a matrix with `RowSums` is complex.
    ValueError
        If shapes do not broadcast or `out` cannot hold the result. With `check_finite`, if an
        entry is NaN or infinite.
    BackendError
        If the device is not available.

    See Also
    --------
    residual : The right-hand side minus the product, in one pass.
    TridiagonalFactor.multiply : Products with matrices that are kept.

    Notes
    -----
    One pass that moves 5 words per unknown, and 2 if all systems share the matrix. With `RowSums`
    the terms are :math:`s_i x_i + l_i (x_{i-1} - x_i) + u_i (x_{i+1} - x_i)`. The result has the
    same bits for any number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import tridiagonal_matvec
    >>> tridiagonal_matvec(-1.0, 2.0, -1.0, np.array([1.0, 2.0, 4.0]))
    array([ 0., -1.,  6.])
    """
    operands = (lower, diag, upper, None, x)
    if (
        group is None
        and split is None
        and stream is None
        and are_checked(check_finite, (lower, diag, upper, x))
    ):
        direct = _product_directly(operands, axis, out, periodic, device, threads)
        if direct is not None:
            return direct
    diag, form = form_of(diag)
    choice = Choice(
        axis=axis,
        periodic=periodic,
        out=out,
        device=device,
        stream=stream,
        threads=threads,
        check_finite=check_finite,
    )
    named = {"lower": lower, "diag": diag, "upper": upper, "x": x}

    def product(call: Prepared) -> Array:
        require_real_sums(call, has_sums=form is not None)
        return multiply(call, "x", None, 1.0, 0.0, has_sums=form is not None)

    if group is not None or split is not None:
        from .split import multiply_split

        return multiply_split(group, split, named, _MATVEC, choice, product)
    return product(prepare(named, None, _MATVEC, choice))


def _product_directly(
    operands: tuple[Any, ...],
    axis: Any,
    out: Any,
    periodic: Any,
    device: Any,
    threads: Any,
    extended: bool = False,
) -> Any:
    """Return a product, or a residual, by one call of the extension, or None if it needs planning.

    The last two operands are the vectors and the right-hand sides; None and the vectors for a
    product.
    """
    if device not in (None, "cpu") or type(periodic) is not bool:
        return None
    entry = require_backend("cpu").product_direct
    direct = call_directly(entry, operands, axis, out, periodic, threads, extended)
    return None if type(direct) is int else direct


def residual(
    lower: ArrayLike,
    diag: ArrayLike | RowSums,
    upper: ArrayLike,
    x: ArrayLike,
    rhs: ArrayLike,
    *,
    extended: bool = False,
    axis: int = -1,
    periodic: bool = False,
    out: Array | None = None,
    device: str | None = None,
    stream: object = None,
    threads: int | None = None,
    check_finite: bool = False,
    group: Group | None = None,
    split: Slab | None = None,
) -> Array:
    r"""Return the residuals of batched tridiagonal systems, in one pass.

    For every index of the other axes,

    .. math:: r_i = b_i - l_i x_{i-1} - d_i x_i - u_i x_{i+1}, \quad 0 \le i < n.

    Parameters
    ----------
    lower, diag, upper : array_like, shape broadcastable with `rhs`
        The three diagonals, as in `solve_tridiagonal`; `diag` can be `RowSums`.
    x : array_like, shape (..., n, ...)
        Approximate solutions.
    rhs : array_like, shape (..., n, ...)
        The right-hand sides b.
    extended : bool, default: False
        Whether to compute each residual with twice the digits of the dtype and to round it once:
        then a residual of the size of a rounding error is accurate, as a step of iterative
        refinement needs it ([1]_, ch. 12).
    axis, periodic, device, stream, threads, check_finite, group, split
        As in `tridiagonal_matvec`.
    out : array, optional
        Array for the result, with its dtype and shape. It can be `rhs` itself; it must not overlap
        another operand.

    Returns
    -------
    array, shape of the broadcast operands
        The residuals: `out`, or a new array of the library of `rhs`.

    Raises
    ------
    TypeError, ValueError, BackendError
        As in `tridiagonal_matvec`.

    See Also
    --------
    tridiagonal_matvec : The product alone.

    Notes
    -----
    With `extended` products and sums are exact pairs of numbers ([2]_), so that entries must be
    smaller than 1e300 (1e34 in single precision).

    References
    ----------
    .. [1] N. J. Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed.,
       SIAM, 2002.
    .. [2] T. J. Dekker, "A floating-point technique for extending the available precision",
       Numer. Math. 18 (1971) 224-242.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import residual
    >>> residual(-1.0, 2.0, -1.0, np.array([1.0, 1.0, 1.0]), np.array([1.0, 0.0, 2.0]))
    array([0., 0., 1.])
    """
    require_flag("extended", extended)
    operands = (lower, diag, upper, x, rhs)
    if group is None and split is None and stream is None and are_checked(check_finite, operands):
        direct = _product_directly(operands, axis, out, periodic, device, threads, bool(extended))
        if direct is not None:
            return direct
    diag, form = form_of(diag)
    choice = Choice(
        axis=axis,
        periodic=periodic,
        out=out,
        device=device,
        stream=stream,
        threads=threads,
        check_finite=check_finite,
    )
    named = {"lower": lower, "diag": diag, "upper": upper, "x": x, "rhs": rhs}

    def difference(call: Prepared) -> Array:
        require_real_sums(call, has_sums=form is not None)
        return multiply(
            call, "x", "rhs", -1.0, 1.0, extended=bool(extended), has_sums=form is not None
        )

    if group is not None or split is not None:
        from .split import multiply_split

        return multiply_split(group, split, named, _RESIDUAL, choice, difference)
    return difference(prepare(named, None, _RESIDUAL, choice))


@overload
def theta_step(
    lower: ArrayLike,
    diag: ArrayLike | RowSums,
    upper: ArrayLike,
    u: ArrayLike,
    *,
    dt: float,
    theta: float = ...,
    source: ArrayLike | None = ...,
    axis: int = ...,
    periodic: bool = ...,
    pivot: bool | None = ...,
    where: ArrayLike | None = ...,
    projected: ArrayLike | None = ...,
    contact: Contact = ...,
    out: Array | None = ...,
    on_singular: OnSingular = ...,
    device: str | None = ...,
    stream: object = ...,
    threads: int | None = ...,
    check_finite: bool = ...,
    group: Group | None = ...,
    split: Slab | None = ...,
    return_info: Literal[False] = ...,
) -> Array: ...
@overload
def theta_step(
    lower: ArrayLike,
    diag: ArrayLike | RowSums,
    upper: ArrayLike,
    u: ArrayLike,
    *,
    dt: float,
    theta: float = ...,
    source: ArrayLike | None = ...,
    axis: int = ...,
    periodic: bool = ...,
    pivot: bool | None = ...,
    where: ArrayLike | None = ...,
    projected: ArrayLike | None = ...,
    contact: Contact = ...,
    out: Array | None = ...,
    on_singular: OnSingular = ...,
    device: str | None = ...,
    stream: object = ...,
    threads: int | None = ...,
    check_finite: bool = ...,
    group: Group | None = ...,
    split: Slab | None = ...,
    return_info: bool,
) -> Array | tuple[Array, SolveInfo]: ...
def theta_step(
    lower: ArrayLike,
    diag: ArrayLike | RowSums,
    upper: ArrayLike,
    u: ArrayLike,
    *,
    dt: float,
    theta: float = 0.5,
    source: ArrayLike | None = None,
    axis: int = -1,
    periodic: bool = False,
    pivot: bool | None = None,
    where: ArrayLike | None = None,
    projected: ArrayLike | None = None,
    contact: Contact = "first",
    out: Array | None = None,
    on_singular: OnSingular = "raise",
    device: str | None = None,
    stream: object = None,
    threads: int | None = None,
    check_finite: bool = False,
    group: Group | None = None,
    split: Slab | None = None,
    return_info: bool = False,
) -> Array | tuple[Array, SolveInfo]:
    r"""Make an implicit step in time of linear equations with tridiagonal matrices, in one pass.

    For the equations :math:`u_t = A u + s`, where A is given by its three diagonals, the result x
    at the time t + dt solves

    .. math:: (I - \theta\, dt\, A)\, x = (I + (1 - \theta)\, dt\, A)\, u + dt\, s.

    Parameters
    ----------
    lower, diag, upper : array_like, shape broadcastable with `u`
        The diagonals of A, in 1 / time, as in `solve_tridiagonal`. `diag` can be `RowSums`: then,
        if dt > 0, off-diagonals :math:`\ge 0` and row sums :math:`\le 1 / (\theta\, dt)`.
    u : array_like, shape (..., n, ...)
        The values at the time t. A row of A that is zero keeps its value, as at an end with a
        given value.
    dt : float
        Length of the step.
    theta : float, default: 0.5
        1 is the implicit Euler rule, 0.5 the trapezoidal rule (Crank and Nicolson [1]_), of second
        order in dt, 0 the explicit Euler rule.
    source : array_like, optional
        The source s, per time.
    axis, periodic, pivot, device, stream, threads, return_info
        As in `solve_tridiagonal`.
    where : array_like of bool, optional
        Rows that are inside, broadcastable with `u`; as in `solve_tridiagonal`. Needs theta > 0.
    projected : array_like, optional
        Lower bound of x, broadcastable with `u`; see Notes. Needs theta > 0.
    contact : {'first', 'last'}
        With `projected`, at which rows x is equal to the bound.
    out : array, optional
        Array for the result, with its dtype and shape. It can be `u` itself; it must not overlap
        another operand.
    on_singular : {'raise', 'warn', 'nan', 'ignore'}
        Reaction to a singular matrix :math:`I - \theta\, dt\, A`, as in `solve_tridiagonal`.
    check_finite : bool, default: False
        Whether to raise an error if an entry of an operand, inside `where`, is NaN or infinite.
    group, split : pysolvers.distributed.Group and Slab, optional
        As in `solve_tridiagonal`. Systems that are cut are solved as there, between two passes over
        the parts, with theta > 0. With `projected` they are distributed over the ranks as whole
        systems, because the substitution takes the rows in order: 6 numbers per unknown are
        exchanged, and a source and a mask too. The result is that of one device.

    Returns
    -------
    x : array, shape of the broadcast operands
        The values at the time t + dt: `out`, or a new array of the library of `u`.
    info : SolveInfo
        Only if `return_info`.

    Raises
    ------
    TypeError
        If an operand has another dtype than those of `solve_tridiagonal`, if `dt` or `theta` is no
        real number, if `where` is no array of booleans, or if there is a bound and an operand is
        complex.
    ValueError
        If shapes do not broadcast, `out` cannot hold the result, `theta` is not in 0 .. 1, or
        options contradict. With `RowSums`, if an entry has a sign that the form excludes. With
        `check_finite`, if an entry is NaN or infinite.
    SingularSystemError
        If a matrix is singular and `on_singular` is ``'raise'``.
    BackendError
        If the device is not available, or does not offer an option.

    See Also
    --------
    factor_theta : The same for many steps with one matrix.
    implicit_diffusion : Diffusion between layers in flux form.

    Notes
    -----
    With :math:`y = u + \theta (x - u)`, the value at the time t + theta dt, the step is

    .. math:: (I - \theta\, dt\, A)\, y = u + \theta\, dt\, s, \quad x = u + (y - u) / \theta,

    so that no product of the matrix with u is formed, and a step moves the 5 words per unknown of a
    solve (2 if all systems share the matrix), with 8 operations more. The rounding errors of y are
    divided by theta: those of x are about eps / theta relative to u.

    With `projected` the step solves the complementarity problem :math:`x \ge g`,
    :math:`B x \ge r`, :math:`(x - g)\, (B x - r) = 0`, where B x = r are the equations above, by
    the method of Brennan and Schwartz [2]_: elimination towards the rows in contact, and projection
    in the substitution. The solution is that of the problem if B is an M-matrix and if the rows in
    contact, where x = g, are those from one end of each system up to one free boundary ([3]_), as
    of an American put (``contact='first'`` if the price of the share increases along the axis) or
    call (``'last'``). Systems are not periodic, and no rows are exchanged.

    References
    ----------
    .. [1] J. Crank and P. Nicolson, "A practical method for numerical evaluation of solutions of
       partial differential equations of the heat-conduction type", Proc. Camb. Phil. Soc. 43
       (1947) 50-67.
    .. [2] M. J. Brennan and E. S. Schwartz, "The valuation of American put options", J. Finance 32
       (1977) 449-462.
    .. [3] P. Jaillet, D. Lamberton and B. Lapeyre, "Variational inequalities and the pricing of
       American options", Acta Appl. Math. 21 (1990) 263-289.

    Examples
    --------
    A rod of 5 nodes with given values at both ends, which reaches the steady state in one long step
    of the implicit Euler rule:

    >>> import numpy as np
    >>> from pysolvers import theta_step
    >>> inner = np.array([0.0, 1.0, 1.0, 1.0, 0.0])
    >>> u = np.array([0.0, 0.0, 0.0, 0.0, 4.0])
    >>> theta_step(inner, -2 * inner, inner, u, dt=1e15, theta=1).round(6)
    array([0., 1., 2., 3., 4.])
    """
    _require_steps(dt, theta)
    require_flag("return_info", return_info)
    if contact not in ("first", "last"):
        raise ValueError(f"contact must be 'first' or 'last', got {contact!r}")
    diag, form = form_of(diag)
    others = (form, projected, group, split, stream)
    operands = (lower, diag, upper, u)
    if (
        all(value is None for value in others)
        and theta > 0
        and not return_info
        and on_singular in ("raise", "nan", "ignore")
        and are_checked(check_finite, operands if source is None else (*operands, source))
    ):
        options = (axis, out, pivot, periodic, threads)
        own = (theta * dt, 1 / theta, source, where)
        answer = step_directly(operands, options, on_singular, device, "theta_step", "theta", own)
        if answer is not None:
            return answer
    named = {"lower": lower, "diag": diag, "upper": upper, "u": u}
    choice = Choice(
        axis=axis,
        periodic=periodic,
        out=out,
        device=device,
        stream=stream,
        threads=threads,
        check_finite=check_finite,
        pivot=pivot,
        on_singular=on_singular,
        return_info=return_info,
        has_sums=form is not None,
        check_signs=form is not None and form.check_signs,
    )
    if source is not None:
        named["source"] = source
    if projected is not None:
        _require_projected(theta, pivot, periodic=periodic)
        named["projected"] = projected
    if group is not None or split is not None:
        from .split import step_split

        settings: dict[str, Any] = {"dt": dt, "theta": theta, "contact": contact}
        whole = partial(theta_step, **settings)
        return step_split(group, split, named, where, _THETA, choice, whole, settings)
    if theta == 0:
        return _explicit(named, where, choice, dt)
    call = prepare(named, where, _THETA, choice)
    require_real_sums(call, has_sums=form is not None)
    require_signs(call, theta * dt)
    if projected is not None and call.dtype.kind == "c":
        raise TypeError(f"theta_step: projected needs real operands, got {call.dtype}")
    step = Step(
        kind="theta",
        vector="u",
        step=theta * dt,
        gain=1 / theta,
        is_reversed=projected is not None and contact == "first",
    )
    return make_step(call, step, stacklevel=2)


class ThetaFactor:
    r"""Factors of :math:`I - \theta\, dt\, A`, for many steps with the same matrices.

    `factor_theta` creates it. Any number of threads can make steps with one object.

    Attributes
    ----------
    shape : tuple of int
        Broadcast shape of the diagonals: (n,), or n entries along `axis`.
    axis : int
        Axis of the systems in u, as in `TridiagonalFactor`.
    dtype : dtype
        Dtype of the factors.
    dt, theta : float
        The arguments of `factor_theta`.
    info : SolveInfo
        Method, threads and counts of the factorisation.
    nbytes : int
        Size of the factors in bytes.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import factor_theta
    >>> inner = np.array([0.0, 1.0, 1.0, 0.0])  # the values at the ends stay
    >>> rod = factor_theta(inner, -2 * inner, inner, dt=0.1, theta=1.0)
    >>> rod.step(np.array([1.0, 0.0, 0.0, 0.0]), count=1000).round(6)
    array([1.      , 0.666667, 0.333333, 0.      ])
    """

    def __init__(self, factor: TridiagonalFactor | SplitFactor, dt: float, theta: float) -> None:
        self._factor = factor
        self.dt = dt
        self.theta = theta

    @property
    def shape(self) -> tuple[int, ...]:
        """Broadcast shape of the diagonals, n entries along `axis`."""
        return self._factor.shape

    @property
    def axis(self) -> int:
        """Axis of the systems in u, as in `TridiagonalFactor`."""
        return self._factor.axis

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the factors."""
        return self._factor.dtype

    @property
    def info(self) -> SolveInfo:
        """Method, threads and counts of the factorisation."""
        return self._factor.info

    @property
    def nbytes(self) -> int:
        """Size of the factors in bytes."""
        return self._factor.nbytes

    def __repr__(self) -> str:
        return (
            f"<ThetaFactor shape={self.shape} axis={self.axis} dtype={self.dtype} "
            f"dt={self.dt:g} theta={self.theta:g}>"
        )

    def step(
        self,
        u: ArrayLike,
        source: ArrayLike | None = None,
        *,
        count: int = 1,
        axis: int | None = None,
        out: Array | None = None,
        threads: int | None = None,
        stream: object = None,
        check_finite: bool = False,
    ) -> Array:
        r"""Make steps as `theta_step` makes them.

        Parameters
        ----------
        u : array_like, shape (..., n, ...)
            The values at the time t, of a shape as the right-hand sides of
            `TridiagonalFactor.solve`.
        source : array_like, optional
            The source s, per time, the same in all steps; broadcastable with `u`.
        count : int, default: 1
            Number of steps.
        axis : int, optional
            Axis of the systems in `u`, as in `TridiagonalFactor.solve`.
        out : array, optional
            Array for the result, with its dtype and shape. It can be `u` itself.
        threads, stream, check_finite
            As in `TridiagonalFactor.solve`.

        Returns
        -------
        array, shape of `u`, or of the factor if `u` has one dimension
            The values at the time t + count dt: `out`, or a new array of the library of `u`.

        Raises
        ------
        TypeError
            If `u` or `source` has a higher precision than the factor.
        ValueError
            If shapes do not broadcast or `out` cannot hold the result. With `check_finite`, if an
            entry is NaN or infinite.
        """
        steps = integer("count", count)
        require(steps >= 1, "count must be at least 1", count)
        factor = self._factor
        if not isinstance(factor, TridiagonalFactor):
            options = {"axis": axis, "threads": threads, "stream": stream}
            return self._split_steps(
                factor, u, source, steps, out, check_finite=check_finite, **options
            )
        named = {"u": u} if source is None else {"u": u, "source": source}
        more = More(self.theta * self.dt, 1 / self.theta, steps)
        return factor._step(
            named,
            more,
            axis=axis,
            out=out,
            threads=threads,
            stream=stream,
            check_finite=check_finite,
            operation="ThetaFactor.step",
        )

    def _split_steps(
        self, factor: SplitFactor, u: Any, source: Any, steps: int, out: Any, **options: Any
    ) -> Any:
        """Make steps with factors of a group, by solves; collective."""
        operation = "ThetaFactor.step"
        named = {"u": u} if source is None else {"u": u, "source": source}
        with factor._group.agreement(operation) as agreed:
            like = {"the factor": np.empty((1,), self.dtype)}
            own = factor._device, options["stream"], named, out
            target = find_target(*own, operation=operation, leader="u")
            arrays, dtype, _ = target.operands(named, like, widens=True)
            start = arrays[0]
            full = rhs_shape(self.shape, self.axis, start, options["axis"], "u")
            shape = full.full
            for name, array in zip(named, arrays, strict=True):
                fits = array.ndim == len(shape) and broadcasts(array.shape, shape)
                if array.shape != shape if name == "u" else array.ndim and not fits:
                    raise ValueError(
                        f"{operation}: with a group {name} must have all axes of the shape {shape},"
                        f" got the shape {array.shape}: give it these axes with {name}.reshape, "
                        f"then write numpy.broadcast_to({name}, {shape})"
                    )
            if out is not None:
                target.result(out, named, start, shape, dtype, leader="u", replaces="u")
            agreed.same = {"count": steps, "whether there is a source": source is not None}
        if isinstance(factor._state, TridiagonalFactor):  # no system is cut
            more = More(self.theta * self.dt, 1 / self.theta, steps)
            with factor._group.agreement(operation):
                return factor._state._step(named, more, out=out, operation=operation, **options)
        given = in_one_precision(named, self.dtype)
        first = x = given["u"]
        added = None if source is None else self.theta * self.dt * given["source"]
        mask = factor._mask
        for step in range(steps):
            # The solve gives the result.
            is_whole = step == steps - 1 and self.theta == 1 and mask is None
            right = x if added is None else x + added
            y = factor.solve(right, out=out if is_whole else None, **options)
            x = y if self.theta == 1 else x + (y - x) / self.theta
        if mask is not None:
            from .split import added_inside

            device, stream = factor._device, options["stream"]
            choice = Choice(axis=full.axis, out=out, device=device, stream=stream)
            lines = np.broadcast_to(mask, (*full.batch, full.rows))
            where = np.moveaxis(lines, -1, full.axis)
            return added_inside(operation, first, x - first, 1.0, where, choice)
        if out is None or self.theta == 1:
            return x
        out[...] = x
        return out


def factor_theta(
    lower: ArrayLike,
    diag: ArrayLike | RowSums,
    upper: ArrayLike,
    *,
    dt: float,
    theta: float = 0.5,
    axis: int = -1,
    rows: int | None = None,
    pivot: bool | None = None,
    periodic: bool = False,
    where: ArrayLike | None = None,
    on_singular: OnSingular = "raise",
    device: str | None = None,
    stream: object = None,
    threads: int | None = None,
    check_finite: bool = False,
    group: Group | None = None,
    split: Slab | None = None,
) -> ThetaFactor:
    r"""Factor the matrices of `theta_step`, for many steps of :math:`u_t = A u + s`.

    Parameters
    ----------
    lower, diag, upper : array_like, shapes that broadcast
        The diagonals of A, in 1 / time. `diag` can be `RowSums`.
    dt : float
        Length of the steps.
    theta : float, default: 0.5
        As in `theta_step`, but greater than 0.
    axis, rows, pivot, periodic, where, on_singular, device, stream, threads, check_finite
        As in `factor_tridiagonal`, for the matrices :math:`I - \theta\, dt\, A`.
    group, split : pysolvers.distributed.Group and Slab, optional
        As in `factor_tridiagonal`: each rank passes its part of the diagonals, and to ``step`` its
        part of u and of the source, which have all axes. A step is then a solve, and sums of
        arrays; all ranks make the same steps.

    Returns
    -------
    ThetaFactor
        An object with the method ``step``.

    Raises
    ------
    TypeError
        If a diagonal has an unsupported dtype, or `dt` or `theta` is no real number.
    ValueError
        As `factor_tridiagonal`, and if `theta` is not in 0 < theta <= 1.
    SingularSystemError
        If a matrix is singular and `on_singular` is ``'raise'``.
    BackendError
        If the device is not available.

    See Also
    --------
    theta_step : One step.

    Notes
    -----
    A step reads the factors, 3 words per unknown (none of one matrix that stays in cache), and u,
    and writes the result. The formulas and rounding errors are those of `theta_step`.

    Examples
    --------
    >>> import numpy as np
    >>> from pysolvers import factor_theta
    >>> inner = np.array([0.0, 1.0, 1.0, 1.0, 0.0])
    >>> factor = factor_theta(inner, -2 * inner, inner, dt=1.0)
    >>> factor.step(np.array([0.0, 0.0, 0.0, 0.0, 4.0]), count=100).round(6)
    array([0., 1., 2., 3., 4.])
    """
    _require_steps(dt, theta)
    require(theta > 0, "factor_theta: theta must be greater than 0", theta)
    dt, theta = float(dt), float(theta)
    h = theta * dt
    diag, form = form_of(diag)
    entries = in_one_precision({"lower": lower, "diag": diag, "upper": upper})
    lower, middle, upper = -h * entries["lower"], 1 - h * entries["diag"], -h * entries["upper"]
    if form is not None:
        middle = RowSums(middle, check_signs=form.check_signs)
    if group is not None or split is not None:
        from ..distributed._factor import SplitFactor

        named = {"lower": lower, "diag": middle, "upper": upper}
        own = (axis, rows, pivot, periodic, on_singular, device, threads, check_finite)
        return ThetaFactor(SplitFactor(group, split, named, stream, own, where), dt, theta)
    factor = TridiagonalFactor(
        lower,
        middle,
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
    )
    return ThetaFactor(factor, dt, theta)


def implicit_diffusion(
    T: ArrayLike,
    K: ArrayLike,
    dz: ArrayLike,
    dt: float,
    *,
    axis: int | str,
    flux_first: ArrayLike | None = None,
    flux_last: ArrayLike | None = None,
    value_first: ArrayLike | None = None,
    value_last: ArrayLike | None = None,
    source: ArrayLike | None = None,
    theta: float = 1,
    where: ArrayLike | None = None,
    out: Array | None = None,
    device: str | None = None,
    stream: object = None,
    threads: int | None = None,
    check_finite: bool = False,
    group: Group | None = None,
    split: Slab | None = None,
) -> Any:
    r"""Make an implicit step of diffusion between layers, along one axis, in flux form.

    The layers of a column have the thicknesses :math:`d_i`. With the diffusivity
    :math:`K_{i+1/2}` of the face between the layers i and i + 1, the equations are

    .. math::

       d_i \frac{\partial T_i}{\partial t} = F_{i-1/2} - F_{i+1/2} + d_i s_i, \qquad
       F_{i+1/2} = -K_{i+1/2} \frac{T_{i+1} - T_i}{(d_i + d_{i+1}) / 2} .

    Parameters
    ----------
    T : array_like or xarray.DataArray, shape (..., n, ...)
        The values at the time t, n layers along `axis`. This and other operands can be arrays of
        dask, also in a DataArray, that have whole columns in each chunk.
    K : array_like or xarray.DataArray
        Diffusivities, :math:`\ge 0`, in length^2 / time: n - 1 along `axis`, those of the faces
        between the layers, or n + 1 with the outer faces; broadcastable with T otherwise, or a
        number.
    dz : array_like or xarray.DataArray
        Thicknesses of the layers, > 0: n along `axis`, broadcastable with T, or a number.
    dt : float
        Length of the step, :math:`\ge 0`.
    axis : int or str
        Axis of the columns in T; of a DataArray its dimension.
    flux_first, flux_last : array_like, optional
        Fluxes into the column through its first and last face, in T length / time, by default 0;
        one for each column, broadcastable with T without `axis`. With `where` they enter the first
        and the last layer inside.
    value_first, value_last : array_like, optional
        Values of T at the outer faces of the first and the last layer (inside), as the fluxes, at
        a distance of half a layer. They need K of n + 1 faces.
    source : array_like or xarray.DataArray, optional
        The source s, in T / time, broadcastable with T.
    theta : float, default: 1
        1 is the implicit Euler rule, 0.5 the trapezoidal rule; greater than 0.
    where : array_like of bool or xarray.DataArray, optional
        Layers that are inside, broadcastable with T. Nothing flows through faces between a layer
        inside and one outside; outside, the result is T, and no operand counts there, also if it
        is NaN.
    out : array, optional
        Array for the result. It can be T itself. Not with a DataArray or arrays of dask.
    device, stream, threads
        As in `solve_tridiagonal`.
    check_finite : bool, default: False
        Whether to raise an error if an entry of an operand, inside `where`, is NaN or infinite.
    group, split : pysolvers.distributed.Group and Slab, optional
        Processes that each hold a part of all arrays, as in `solve_tridiagonal`. Columns can be
        cut, along `axis`: K then is a number or has all n + 1 faces of the n layers of the rank, so
        that both ranks at a cut pass its face, and conditions at the first and the last face are
        passed on all ranks. With `where` they act on the first and the last layer inside, on
        whatever rank it is. On a device the rows of cut columns are made by the library of T
        (CuPy, PyTorch or JAX), on its current stream.

    Returns
    -------
    array or xarray.DataArray, shape of T and all that broadcasts with it
        The values at the time t + dt: `out`, or a new array of the library of T; a DataArray with
        the coordinates, name and attributes of T if T is one. If an operand is an array of dask,
        the result is one too, and each of its blocks is computed by a call of its own.

    Raises
    ------
    TypeError
        If an operand has another dtype than float32 and float64, integers or booleans, if `where`
        is no array of booleans.
    ValueError
        If K has neither n - 1 nor n + 1 faces, shapes do not broadcast, columns lie in several
        chunks, or options contradict.
    SingularSystemError
        If a thickness is 0, or a matrix is not finite.
    BackendError
        If the device is not available, or does not offer the step.

    See Also
    --------
    theta_step : Steps with any tridiagonal matrices.

    Notes
    -----
    One pass: the rows are made from K, dz and T, and eliminated by their row sums (`RowSums`), so
    that the sum of :math:`d_i T_i` over a column is conserved to rounding, also if K dt is many
    times the square of a thickness. If K and dz are finite, K :math:`\ge 0` and dz > 0, no pivot
    is zero. The signs are not checked.

    Examples
    --------
    A column of four layers of 10 m, heated from above for a day:

    >>> import numpy as np
    >>> from pysolvers import implicit_diffusion
    >>> T = np.full(4, 10.0)
    >>> T = implicit_diffusion(T, 1e-3, 10.0, 86400.0, axis=0, flux_first=1e-5)
    >>> T.round(4), (10.0 * T).sum().round(9)
    (array([10.0556, 10.02  , 10.0074, 10.0034]), np.float64(400.864))
    """
    _require_steps(dt, theta)
    require(dt >= 0, "implicit_diffusion: dt must be at least 0", dt)
    require(theta > 0, "implicit_diffusion: theta must be greater than 0", theta)
    for name, value in (("T", T), ("K", K), ("dz", dz)):
        if value is None:
            raise TypeError(f"implicit_diffusion: {name} is None: pass a number or an array")
    named = {
        "T": T,
        "K": K,
        "dz": dz,
        "source": source,
        "where": where,
        "flux_first": flux_first,
        "flux_last": flux_last,
        "value_first": value_first,
        "value_last": value_last,
    }
    step = partial(
        _diffuse,
        dt=dt,
        theta=theta,
        device=device,
        stream=stream,
        threads=threads,
        check_finite=check_finite,
    )
    if hasattr(T, "dims") and hasattr(T, "copy"):
        require(out is None, "implicit_diffusion: out must be None with a DataArray", out)
        if group is not None or split is not None:
            raise TypeError(
                "implicit_diffusion: a group needs plain arrays: pass T.data, K.data, ... and the "
                "number of the axis"
            )
        return _with_labels(named, axis, step)
    if isinstance(axis, str):
        raise TypeError(
            f"implicit_diffusion: axis must be an int for an array, got {axis!r}: names are those "
            "of dimensions of an xarray.DataArray"
        )
    axis = int(integer("axis", axis))
    if group is None and split is None:
        return _step_arrays(named, axis, step, out=out)
    from .split import diffuse_split

    ndim = axes_of(named)
    return diffuse_split(
        group,
        split,
        named,
        axis_of_columns(axis, ndim),
        ndim,
        partial(partial(step, out=out), named, axis),
        dt=dt,
        theta=theta,
        out=out,
        device=device,
        stream=stream,
        threads=threads,
        check_finite=check_finite,
    )


def _step_arrays(
    named: dict[str, Any],
    axis: int,
    step: Callable[..., Any],
    *,
    out: Any = None,
    dims: tuple[str, ...] = (),
) -> Any:
    """Make the step of `implicit_diffusion` for arrays, those of dask block by block."""
    if not any_lazy(named):
        return step(named, axis, out=out)
    require(out is None, "implicit_diffusion: out must be None with arrays of dask", out)
    ndim = axes_of(named)
    columns = tuple(n for n in named if n.startswith("value_") and named[n] is not None)
    along = axis_of_columns(axis, ndim) - ndim
    faces_of(named["K"], named["T"], along, ndim, columns)
    return by_blocks(step, named, along, ndim, dims)


def axis_of_columns(axis: int, ndim: int) -> int:
    """Return the axis of the columns, counted from the first one of the result."""
    return axis_number(axis, ndim, f"T of {ndim} axes")


def axes_of(named: dict[str, Any]) -> int:
    """Return the number of axes of the result of a diffusion."""
    return max(1, *[len(shape_of(value)) for name, value in named.items() if name not in _ENDS])


def _diffuse(
    named: dict[str, Any],
    axis: int,
    *,
    dt: float,
    theta: float,
    out: Any = None,
    device: str | None,
    stream: object,
    threads: int | None,
    check_finite: bool,
) -> Any:
    """Make the step of `implicit_diffusion` for arrays."""
    given = {name: value for name, value in named.items() if not _has_no_effect(name, value)}
    columns = tuple([name for name in given if name in _ENDS])
    ndim = axes_of(given)
    where = given.pop("where", None)
    T, K = (numbers_of(given.pop(name)) for name in ("T", "K"))
    lower, upper = faces_of(K, T, axis_of_columns(axis, ndim) - ndim, ndim, columns)
    dz = numbers_of(given.pop("dz"))
    operands = (lower, dz, upper, T)
    if stream is None and are_checked(check_finite, (*operands, *given.values())):
        options = (axis, out, None, False, threads)
        own = (theta * dt, 1 / theta, given.get("source"), where, *map(given.get, _ENDS))
        answer = step_directly(
            operands, options, "raise", device, "implicit_diffusion", "flux", own
        )
        if answer is not None:
            return answer
    for name, value in (("K", K), ("dz", dz)):
        if locate(value) is None:
            as_array(name, value)
    arrays = {"lower": lower, "diag": dz, "upper": upper, "T": T, **given}
    vectors = ("T", "source", *columns)
    operation = _DIFFUSION._replace(vectors=vectors, columns=columns)
    choice = Choice(
        axis=axis,
        out=out,
        device=device,
        stream=stream,
        threads=threads,
        check_finite=check_finite,
    )
    call = prepare(arrays, where, operation, choice)
    if call.dtype.kind == "c":
        raise TypeError(
            f"implicit_diffusion: operands must be real, got {call.dtype}: make two calls, for the "
            "real and for the imaginary part"
        )
    return make_step(call, Step(kind="flux", vector="T", step=theta * dt, gain=1 / theta))


def _has_no_effect(name: str, value: Any) -> bool:
    """Return whether an operand of a diffusion changes nothing: None, or a flux of 0."""
    return value is None or (
        name.startswith("flux_") and isinstance(value, int | float) and value == 0
    )


def faces_of(K: Any, T: Any, axis: int, ndim: int, columns: tuple[str, ...]) -> tuple[Any, Any]:
    """Return the diffusivities of the faces before and after each layer, from those of all faces.

    `axis` counts from the end of the `ndim` axes of the result; `columns` has the names of the
    conditions at the ends.
    """
    shape, own = shape_of(K), shape_of(T)
    # One axis is that of the columns.
    place = 0 if len(shape) == 1 else len(shape) + axis
    of_layers = 0 if len(own) == 1 else len(own) + axis
    layers = own[of_layers] if own and of_layers >= 0 else 1
    if not shape or place < 0 or (len(shape) > 1 and shape[place] == 1 and layers != 2):
        return K, K  # the same at all faces
    faces = shape[place]
    before = (slice(None),) * place
    if faces == layers + 1:
        return K[(*before, slice(None, -1))], K[(*before, slice(1, None))]
    if faces != layers - 1:
        raise ValueError(
            f"implicit_diffusion: K must have {layers - 1} faces along axis {axis}, those between "
            f"the {layers} layers, or {layers + 1} with the outer ones, got {faces}"
        )
    if any(name.startswith("value_") for name in columns):
        raise ValueError(
            "implicit_diffusion: value_first and value_last need K at the outer faces too: "
            f"{layers + 1} faces along axis {axis}, got {faces}"
        )
    return K, K


def _with_labels(named: dict[str, Any], axis: int | str, step: Callable[..., Any]) -> Any:
    """Make the step for a DataArray: dimensions of the same name belong together."""
    T = named["T"]
    dims = tuple(T.dims)
    along = dims[axis_of_columns(axis, len(dims))] if isinstance(axis, int) else axis
    if along not in dims:
        raise ValueError(
            f"implicit_diffusion: axis must be a dimension of T, one of {dims}, got {along!r}"
        )
    plain = {}
    for name, value in named.items():
        if not hasattr(value, "dims"):
            plain[name] = value
            continue
        own = [str(dim) for dim in value.dims]
        if name == "K" and along not in own:  # the dimension of the faces
            others = [k for k, dim in enumerate(own) if dim not in dims]
            if len(others) == 1:
                own[others[0]] = along
        unknown = [dim for dim in own if dim not in dims]
        if unknown:
            raise ValueError(
                f"implicit_diffusion: {name} has the dimension {unknown[0]!r}, T has {dims}"
            )
        is_column = name.startswith(("flux_", "value_"))
        if is_column and along in own:
            raise ValueError(f"implicit_diffusion: {name} must have no dimension {along!r}")
        all_dims = [dim for dim in dims if not (is_column and dim == along)]
        order = [own.index(dim) for dim in all_dims if dim in own]
        places = tuple(slice(None) if dim in own else None for dim in all_dims)
        if not is_lazy(value.data):
            require_plain(name, value.data)
        plain[name] = value.data.transpose(order)[places]
    result = _step_arrays(plain, dims.index(along), step, dims=dims)
    return T.copy(data=result)


def _require_steps(dt: float, theta: float) -> None:
    """Raise an error unless the settings of a step are numbers in their ranges."""
    require_number("dt", dt)
    require(isfinite(dt), "dt must be finite", dt)
    require_number("theta", theta)
    require(0 <= theta <= 1, "theta must be in 0 .. 1", theta)


def _require_projected(theta: float, pivot: bool | None, *, periodic: bool) -> None:
    """Raise ValueError if options contradict `projected`."""
    if periodic or pivot or theta == 0:
        given = "periodic=True" if periodic else "pivot=True" if pivot else "theta=0"
        raise ValueError(
            f"{given} contradicts projected, which needs theta > 0, systems that are not periodic "
            "and no exchanges of rows"
        )


def _explicit(named: dict[str, Any], where: Any, choice: Choice, dt: float) -> Any:
    """Make the step with theta = 0, a product."""
    check_policy(choice.on_singular)
    if choice.pivot is not None:
        require_flag("pivot", choice.pivot, "a bool or None")
    if where is not None or choice.return_info:
        option = "where" if where is not None else "return_info"
        raise ValueError(f"theta_step: {option} needs theta > 0, got theta=0: nothing is solved")
    arrays = {name: numbers_of(value) for name, value in named.items()}
    if "source" in arrays:
        arrays = in_one_precision(arrays)
        arrays["base"] = _moved_by(arrays, arrays.pop("source"), float(dt), choice.axis)
    if choice.out is not None:
        arrays["u"] = arrays["u"] * 1  # a copy: `out` can be u, and a row reads its neighbours
    operation = Operation("theta_step", "u", ("u", "base"), labels={"base": "source"})
    call = prepare(arrays, None, operation, choice)
    added = "base" if "base" in arrays else "u"
    return multiply(call, "u", added, dt, 1.0, has_sums=choice.has_sums)


def _moved_by(arrays: dict[str, Any], source: Any, dt: float, axis: int) -> Any:
    """Return u + dt source, each with all axes of a call: one axis is that of the systems."""
    u, source = arrays["u"], numbers_of(source)
    shapes = [np.shape(a) for a in (u, source)]
    ndim = max(1, *(np.ndim(a) for a in (*arrays.values(), source)))
    padded = [padded_shape(s, integer("axis", axis) % ndim, ndim) if s else () for s in shapes]
    try:
        np.broadcast_shapes(*padded)
    except ValueError:
        raise ValueError(
            f"theta_step: source has shape {shapes[1]}, which does not broadcast with u of shape "
            f"{shapes[0]}"
        ) from None
    if len(shapes[1]) == 1 or len(shapes[0]) == 1:
        u, source = (a.reshape(s) if s else a for a, s in zip((u, source), padded, strict=True))
    return u + dt * source

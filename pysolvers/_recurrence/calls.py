"""`linear_recurrence`: its signature, and the choice of how to compute it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks import require_flag
from .._errors import raise_for_status
from .._lines.prepared import Operation, Prepared, prepare
from .._lines.step import recur
from .._options import Choice
from .._runtime.backends import require
from .._runtime.direct import call_directly
from .._runtime.targets import fast_access_of

if TYPE_CHECKING:
    from ..distributed import Group, Slab

Array = NDArray[Any]

_NAME = "linear_recurrence"


def linear_recurrence(
    a: ArrayLike,
    b: ArrayLike,
    *,
    initial: ArrayLike | tuple[ArrayLike, ArrayLike] | None = None,
    second: ArrayLike | None = None,
    axis: int = -1,
    reverse: bool = False,
    out: Array | None = None,
    device: str | None = None,
    stream: object = None,
    threads: int | None = None,
    check_finite: bool = False,
    group: Group | None = None,
    split: Slab | None = None,
) -> Array:
    r"""Compute many linear recurrences of first or second order along one axis.

    For every index of the other axes,

    .. math:: x_t = a_t x_{t-1} + b_t, \quad 0 \le t < n,

    and with `second`, whose entries are :math:`c_t`,

    .. math:: x_t = a_t x_{t-1} + c_t x_{t-2} + b_t.

    Parameters
    ----------
    a : array_like, shape broadcastable with `b`
        The coefficients: one for each entry, one line of them for all recurrences, or a number. An
        operand of one dimension lies along `axis` and has n entries.
    b : array_like, shape (..., n, ...)
        The terms that are added; at least one axis.
    initial : array_like or pair of array_like, optional
        The values before the first one, by default 0: :math:`x_{-1}`, one for each recurrence,
        broadcastable to the shape of `b` without `axis`; with `second` the pair
        :math:`(x_{-1}, x_{-2})`.
    second : array_like, optional
        The coefficients of :math:`x_{t-2}`, as `a`.
    axis : int, default: -1
        Axis of t in the broadcast shape of the operands.
    reverse : bool, default: False
        Whether t decreases: :math:`x_t = a_t x_{t+1} + c_t x_{t+2} + b_t` from the last entry to
        the first; `initial` has the values after the last one.
    out : array, optional
        Array for the result, with its dtype and shape. It can be `b` itself; it must not overlap
        another operand.
    device, stream, threads
        As in `solve_tridiagonal`.
    check_finite : bool, default: False
        Whether to raise an error if an entry of `a`, `second` or `b` is NaN or infinite.
    group, split : pysolvers.distributed.Group and Slab, optional
        As in `solve_tridiagonal`: each rank passes its part of the operands, and gets its part of
        the result. All ranks pass `initial`; if the recurrences are cut, the values of the rank
        with the first entries count, with `reverse` of that with the last ones.

    Returns
    -------
    array, shape of the broadcast operands
        The values x: `out`, or a new array of the library of `b`. Its dtype is the one to which
        NumPy promotes the operands.

    Raises
    ------
    TypeError
        If an operand has another dtype than those of `solve_tridiagonal`, or `out` does not have
        the dtype of the result.
    ValueError
        If shapes do not broadcast, `out` cannot hold the result, or `initial` is no pair although
        there is a `second`. With `check_finite`, if an entry is NaN or infinite.
    BackendError
        If the device is not available.
    DistributedError
        With `group`, as in `solve_tridiagonal`.

    See Also
    --------
    solve_tridiagonal : Coupling in both directions.
    pysolvers.jax.linear_recurrence, pysolvers.torch.linear_recurrence : The same with derivatives.

    Notes
    -----
    One pass that moves 3 words per entry, 4 with `second`, and one word less for each operand that
    all recurrences share. Several recurrences are computed at once in the lanes of vectors. Lines
    of 32768 and more entries are divided into at least about 128 chunks, one per lane: the
    recurrence over a chunk is an affine map of the values before it, and a scan over these maps
    gives the values at the starts of all chunks ([1]_). Where values grow along a line, they are
    computed in order. Each x satisfies its equation up to few rounding errors of its terms, the
    first one of a chunk up to some 30 of the largest terms of the chunk before.

    On the CPU the result has the same bits for any number of threads, any batch and any strides.
    NaN and infinite values spread as in a loop.

    On a device a line is computed tile after tile, the chunks of a tile at the same time, with the
    same maps; where their entries exceed 2, with `second` 16, the states of the chunks of that tile
    are computed in order. A few long lines are divided into parts and read twice. The bits can
    depend on the batch.

    Of a recurrence that is cut, each rank computes its part from 0 and the product of its
    coefficients. One exchange of 2 numbers per recurrence, 6 with `second`, gives the values before
    each part, from which its entries are computed again until they are those computed from 0: few
    where the recurrence decays, otherwise all, with 6 to 8 words per entry in place of 3. Where
    values grow over a part, or are not finite, the ranks compute one after the other. The equation
    of the first entry of a part holds up to the rounding errors that the values before it have
    gathered.

    References
    ----------
    .. [1] G. E. Blelloch, "Prefix sums and their applications", Carnegie Mellon University,
       CMU-CS-90-190, 1990.

    Examples
    --------
    An exponential moving average of two signals:

    >>> import numpy as np
    >>> from pysolvers import linear_recurrence
    >>> signal = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 8.0, 0.0, 0.0]])
    >>> linear_recurrence(0.5, 0.5 * signal)
    array([[0.5   , 0.75  , 0.875 , 0.9375],
           [0.    , 4.    , 2.    , 1.    ]])

    The Fibonacci numbers, of second order:

    >>> linear_recurrence(1.0, np.zeros(8), second=1.0, initial=(1.0, 0.0))
    array([ 1.,  2.,  3.,  5.,  8., 13., 21., 34.])
    """
    is_split = group is not None or split is not None
    if initial is None and stream is None and check_finite is False and not is_split:
        direct = _compute_directly(a, second, b, axis, out, reverse, threads, device)
        if direct is not None:
            return direct
    named: dict[str, Any] = {"a": a}
    if second is not None:
        named["second"] = second
    named["b"] = b
    choice = Choice(
        axis=axis,
        out=out,
        device=device,
        stream=stream,
        threads=threads,
        check_finite=check_finite,
    )
    if is_split:
        from .split import recur_split

        checked = partial(_prepared, named, initial, reverse=reverse)
        return recur_split(group, split, named, choice, checked, reverse=reverse)
    return recur(_prepared(named, initial, choice, reverse=reverse), reverse=bool(reverse))


def _prepared(named: dict[str, Any], initial: Any, choice: Choice, *, reverse: bool) -> Prepared:
    """Check the operands and the options of a call."""
    require_flag("reverse", reverse)
    states = initial_states(initial, has_second="second" in named)
    operation = Operation(_NAME, "b", ("b", *states), "b", columns=tuple(states))
    return prepare({**named, **states}, None, operation, choice)


def _compute_directly(
    a: Any,
    second: Any,
    b: Any,
    axis: Any,
    out: Any,
    reverse: Any,
    threads: Any,
    device: str | None,
) -> Any:
    """Compute in one call of the extension if the operands need no planning, or return None."""
    if not (reverse is True or reverse is False):
        return None
    access = None if type(b) is np.ndarray else fast_access_of(b, device)
    if access is None and device not in (None, "cpu"):
        return None
    backend, functions, ordinal = access or (require("cpu"), None, 0)
    operands, options = (a, second, b), (backend.REVERSED if reverse else 0, threads)
    if access is not None:
        answer = backend.recurrence_borrowed(*operands, axis, out, *options, ordinal, functions)
        answer = None if answer is NotImplemented else answer
    else:
        answer = call_directly(backend.recurrence_direct, operands, axis, out, *options)
    if type(answer) is int:
        raise_for_status(answer, backend.STATUS, _NAME)
    return answer


def initial_states(initial: Any, *, has_second: bool) -> dict[str, Any]:
    """Return the initial values by the names that messages call them, in the order of the rows."""
    if initial is None:
        return {}
    if not has_second:
        if isinstance(initial, tuple):
            raise ValueError(
                f"initial must be one array or number, x[-1], got a tuple of {len(initial)}: a "
                "pair needs second"
            )
        return {"initial": initial}
    if not isinstance(initial, list | tuple) or len(initial) != 2:
        raise ValueError(
            "initial must be a pair (x[-1], x[-2]) with second, got "
            f"{type(initial).__name__}: write initial=(x1, x2)"
        )
    return {"initial[0]": initial[0], "initial[1]": initial[1]}

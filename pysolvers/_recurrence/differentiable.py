"""The formulas of linear recurrences for JAX and PyTorch; see pysolvers/_xp.py.

Lines have t along the last axis. With x_t - a_t x_{t-1} - c_t x_{t-2} = b_t as the triangular
system A x = b, the initial values are terms of its first two right-hand sides.
"""

from typing import Any, NamedTuple

from .._checks import broadcasts
from .._runtime.arrays import resolve_shape
from .._runtime.lines import Shape
from .._xp import ArrayLibrary
from .calls import initial_states

Array = Any


class Lines(NamedTuple):
    """Operands of a recurrence: their coefficients and b, all axes, t last; and their shape."""

    coefficients: list[Array]
    b: Array
    shape: Shape


def lines_of(
    library: ArrayLibrary,
    a: Any,
    b: Any,
    *,
    initial: Any,
    second: Any,
    axis: int,
    reverse: bool,
) -> Lines:
    """Check and promote operands, and add the initial values to b."""
    named = {"a": a} if second is None else {"a": a, "second": second}
    states = initial_states(initial, has_second=second is not None)
    arrays = library.operands({**named, "b": b, **states})
    if arrays["b"].ndim == 0:
        raise ValueError("b must have at least one dimension, got a 0-d array")
    states = {name: arrays.pop(name) for name in states}
    shape = resolve_shape(arrays, axis, leader="b")
    *coefficients, right = (_rows_last(library, array, shape) for array in arrays.values())
    if states and shape.rows:
        right = _with_states(library, coefficients, right, list(states.items()), shape, reverse)
    return Lines(coefficients, right, shape)


def _rows_last(library: ArrayLibrary, array: Array, shape: Shape) -> Array:
    """View an operand with all axes, t last."""
    ndim = len(shape.full)
    is_line = array.ndim == 1
    if array.ndim < ndim:
        array = array[(None,) * (ndim - array.ndim) + (...,)]
    return array if is_line else library.move(array, shape.axis, -1)


def _with_states(
    library: ArrayLibrary,
    coefficients: list[Array],
    b: Array,
    states: list[tuple[str, Array]],
    shape: Shape,
    reverse: bool,
) -> Array:
    """Add what the initial values add to the first rows of b."""
    last, rows = len(shape.full) - 1, shape.rows
    b = library.xp.broadcast_to(b, (*shape.batch, rows))
    for order, coefficient in enumerate(coefficients):
        for row in range(min(order + 1, rows)):
            name, state = states[order - row]
            _require_batch(name, state, shape)
            place = rows - 1 - row if reverse else row
            entry = coefficient[..., place if coefficient.shape[-1] == rows else 0]
            b = library.add(b, last, place, entry * state)
    return b


def _require_batch(name: str, state: Array, shape: Shape) -> None:
    """Raise ValueError unless initial values broadcast to the batch."""
    if not broadcasts(state.shape, shape.batch):
        raise ValueError(
            f"{name} must broadcast to {shape.batch}, one value for each line, got shape "
            f"{tuple(state.shape)}"
        )


def matvec(library: ArrayLibrary, coefficients: list[Array], x: Array, *, reverse: bool) -> Array:
    """Return A x."""
    rows, last = x.shape[-1], x.ndim - 1
    y = x
    for order, coefficient in enumerate(coefficients, 1):
        if order >= rows:
            continue
        if reverse:
            before = library.padded(library.rows(x, order, rows, last), 0, order, last)
        else:
            before = library.padded(library.rows(x, 0, rows - order, last), order, 0, last)
        y = y - coefficient * before
    return y

"""What the shapes of operands mean, by the rule of the documentation alone.

An operand of one axis lies along the axis of the systems and has n entries, or n - 1 if it is an
off-diagonal of a matrix that is not periodic. Numbers and operands of two and more axes broadcast
as in NumPy. Nothing here is imported from the package.
"""

import itertools

import numpy as np
import pytest

NAMES = ("lower", "diag", "upper", "rhs")
_MOST = 9  # rows of the systems of the tests


def _fits(name, shape, axis, ndim, rows, periodic):
    """Whether an operand fits systems of this many rows."""
    lengths = {rows} if periodic or name not in ("lower", "upper") else {rows, rows - 1}
    if len(shape) == 1:
        return shape[0] in lengths
    at = axis - ndim + len(shape)
    return at < 0 or shape[at] in lengths | {1}


def meant(named, axis, *, periodic=False):
    """Return operands of all axes and rows, the rows last, or raise ValueError.

    Entries that a short off-diagonal omits are NaN. The systems have the least number of rows that
    all operands fit; none only if `diag` or `rhs` has none.
    """
    shapes = {name: np.shape(a) for name, a in named.items()}
    ndim = max(1, *map(len, shapes.values()))
    axis %= ndim
    may_be_none = any(0 in shapes[name] for name in shapes if name in ("diag", "rhs"))
    fitting = [
        n
        for n in [*range(1, _MOST), *[0] * may_be_none]
        if all(_fits(name, s, axis, ndim, n, periodic) for name, s in shapes.items())
    ]
    if not fitting:
        raise ValueError(f"no number of rows fits {shapes}")
    rows = fitting[0]
    full = []
    for name, value in named.items():
        a = np.asarray(value, float)
        if a.ndim == 1:
            a = a.reshape((1,) * (ndim - 1) + (-1,))
        else:
            a = np.moveaxis(a.reshape((1,) * (ndim - a.ndim) + a.shape), axis, -1)
        if np.ndim(value) != 1 and a.shape[-1] == 1:
            a = np.repeat(a, rows, axis=-1)
        if a.shape[-1] == rows - 1:
            gap = np.full((*a.shape[:-1], 1), np.nan)
            a = np.concatenate([gap, a] if name == "lower" else [a, gap], axis=-1)
        full.append(a)
    return np.broadcast_arrays(*full)


def cases(shape, axis, names=NAMES):
    """Yield shapes of operands, by name, and the axis: all but some of one axis have this shape.

    One operand has one axis, or two of them, or all; the lengths are those that could be mistaken:
    n - 1, n, n + 1, 1 and the lengths of the other axes.
    """
    rows = shape[axis]
    lengths = sorted({rows - 1, rows, rows + 1, 1, *shape})
    for name, length in itertools.product(names, lengths):
        yield dict.fromkeys(names, shape) | {name: (length,)}, axis
    for length in lengths:
        yield dict.fromkeys(names, (length,)), -1
        yield dict.fromkeys(names, (length,)) | {names[-1]: shape}, axis
        yield dict.fromkeys(names, shape) | {"lower": (length,), "upper": (length,)}, axis


def filled(rng, shapes):
    """Return diagonally dominant operands of these shapes."""
    return {
        name: rng.uniform(0.5, 1, shape) + (3 if name == "diag" else 0)
        for name, shape in shapes.items()
    }


def residual(full, x, *, periodic=False):
    """Return the largest entry of A x - b, of operands and solutions with the rows last."""
    lower, diag, upper, rhs = full
    below, above = lower * np.roll(x, 1, axis=-1), upper * np.roll(x, -1, axis=-1)
    if not periodic:
        below[..., :1], above[..., -1:] = 0, 0
    return np.max(np.abs(below + diag * x + above - rhs), initial=0)


def both(named, axis, periodic, call, /, *arguments, **options):
    """Return what operands mean and what a call returns, or None if it refuses them rightly."""
    try:
        full = meant(named, axis, periodic=periodic)
    except ValueError:
        with pytest.raises(ValueError):
            call(*arguments, **options)
        return None
    return full, call(*arguments, **options)

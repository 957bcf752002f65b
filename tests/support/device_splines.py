"""Splines on a device: data and a comparison with the values of the CPU."""

import numpy as np

# Inner axes shorter and longer than a block of threads, outer axes shorter and longer than the
# splines of a thread, more rows than one block.
SHAPES = [
    ((700,), 0),
    ((33, 3), 0),
    ((40, 33), 1),
    ((9, 17, 5), 1),
    ((3, 40, 300), 1),
    ((5, 2000), 0),
]


def data(rng, shape, axis, dtype="float64", *, own=False, periodic=False):
    """Return knots, of each spline or of all, values, and points for all splines."""
    rest = shape[:axis] + shape[axis + 1 :]
    steps = 0.5 + rng.random((shape[axis], *(rest if own else ())))
    x = np.cumsum(steps, axis=0).astype(dtype).real
    y = rng.standard_normal((shape[axis], *rest)) * (1 + 1j)
    if periodic:
        y[-1] = y[0]
    y = (y if np.dtype(dtype).kind == "c" else y.real).astype(dtype)
    points = rng.uniform(x.min() - 2, x.max() + 2, (6, 7)).astype(x.dtype)
    x, y = (np.moveaxis(x, 0, axis) if own else x), np.moveaxis(y, 0, axis)
    return np.ascontiguousarray(x), np.ascontiguousarray(y), points


def near(actual, expected, eps=2e-16):
    """Require equality but for rounding errors of values of this size."""
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    most = 400 * eps * np.nanmax(np.abs(expected), initial=1.0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=most)

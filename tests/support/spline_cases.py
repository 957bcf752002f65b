"""Knots, values and conditions of splines for the tests of all libraries."""

import numpy as np

NAMED = ("not-a-knot", "clamped", "natural", "periodic")
PAIRS = {  # by the values of derivatives at the ends
    "slopes": lambda v: ((1, v), (1, 2 * v)),
    "curvatures": lambda v: ((2, v), (2, -v)),
    "mixed": lambda v: ((2, v), "not-a-knot"),
    "mixed, reversed": lambda v: ("not-a-knot", (1, v)),
    "named": lambda v: ("clamped", "natural"),
}
CONDITIONS = (*NAMED, *PAIRS)


def knots(rng, n, span=3.0):
    """Return knots that are neither equidistant nor far from it."""
    return span * (np.arange(n) + 0.4 * rng.random(n)) / max(n, 2) - 0.7


def batch(rng, n, rest, axis, dtype=np.float64, *, periodic=False):
    """Return values with n entries along `axis`."""
    y = rng.standard_normal((n, *rest))
    if np.dtype(dtype).kind == "c":
        y = y + 1j * rng.standard_normal(y.shape)
    if periodic:
        y[-1] = y[0]
    return np.moveaxis(y, 0, axis).astype(dtype)


class OwnKnots:
    """Complex splines of a batch of shape (2, 3), with 9 knots and 8 points of their own.

    The axis of the knots is the middle one. With `is_shared`, splines share their knots along the
    last axis, and their points along the first one.

    Attributes
    ----------
    x, y, points : ndarray
        Knots, values and points, shapes (2, 9, 3), (2, 9, 3) and (2, 8, 3), or with axes of
        length 1.
    bc_type : str or tuple
        Conditions at the ends.
    axis : int
        Axis of the knots and of the points: 1.
    """

    axis = 1

    def __init__(self, rng, name, *, is_shared):
        rest, n, m = (2, 3), 9, 8
        self.y = batch(rng, n, rest, self.axis, np.complex128, periodic=name == "periodic")
        x = np.stack([knots(rng, n) for _ in range(6)], 1).reshape(n, *rest)
        points = rng.uniform(x.min() - 0.3, x.max() + 0.3, (m, *rest))
        if is_shared:
            x, points = x[..., :1], points[:, :1]
        self.x, self.points = np.moveaxis(x, 0, self.axis), np.moveaxis(points, 0, self.axis)
        self.bc_type = condition(name, rng, rest)

    def lines(self):
        """Yield the place of each spline in results, its knots, values, points and conditions."""
        x, points = (np.broadcast_to(a, (2, a.shape[self.axis], 3)) for a in (self.x, self.points))
        for place in np.ndindex(2, 3):
            line = (place[0], slice(None), place[1])
            ends = conditions_at(self.bc_type, place)
            yield line, x[line], self.y[line], points[line], ends


def condition(name, rng, rest):
    """Return the argument `bc_type` of a name, with random values of the derivatives."""
    return condition_with(name, rng.standard_normal(rest)) if name in PAIRS else name


def condition_with(name, value):
    """Return the argument `bc_type` of a name; `value` gives the derivatives, if it has any."""
    return PAIRS[name](value) if name in PAIRS else name


def conditions_at(bc_type, place):
    """Return the argument `bc_type` for one spline of a batch."""
    if isinstance(bc_type, str):
        return bc_type
    return tuple(end if isinstance(end, str) else (end[0], end[1][place]) for end in bc_type)


def near(actual, expected, x, y, nu=0, eps=1e-13):
    """Require equality to 10 eps, where derivatives of order nu are of the size of y / h^nu."""
    assert actual.shape == expected.shape
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    size = np.abs(y).max() / min(np.diff(x, axis=-1).min(), 1) ** nu
    most = eps * (10 * np.nanmax(np.abs(expected), initial=0) + size)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=most)


def shifted(points, x):
    """Return points of which those outside [x_0, x_{n-1}) are shifted there by periods.

    SciPy shifts all, which rounding errors move to the piece before a knot.
    """
    points = np.asarray(points)
    is_inside = (points >= x[0]) & (points < x[-1])
    return np.where(is_inside, points, x[0] + (points - x[0]) % (x[-1] - x[0]))

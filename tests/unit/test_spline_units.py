"""CubicSpline is right in any unit of knots and values: against SciPy in double precision.

The spline through values a y at knots u x is a p(x / u), where p is that of SciPy through y at x.
In single precision the knots are those that u x is rounded to.
"""

import numpy as np
import pytest
from spline_cases import CONDITIONS, batch, condition, knots

from pysolvers import CubicSpline

interpolate = pytest.importorskip("scipy.interpolate")

#: Femtoseconds, nanometres, microseconds, days, astronomical units, light days and years, parsecs.
SI_UNITS = (
    1e-15,
    1e-12,
    1e-9,
    1e-6,
    86400.0,
    1.495978707e11,
    2.59020683712e13,
    9.4607e15,
    3.0857e16,
)
DTYPES = ("float32", "float64", "complex64", "complex128")


def unit_of(rng, dtype):
    """Return a unit: one of SI, or a power of two as far as the knots are normal numbers."""
    most = 100 if np.dtype(dtype).itemsize // (1 + (np.dtype(dtype).kind == "c")) == 4 else 400
    return rng.choice(SI_UNITS) if rng.random() < 0.4 else 2.0 ** rng.integers(-most, most)


class Problem:
    """A batch of splines in random units.

    Attributes
    ----------
    x, y, points, bc_type : ndarray or tuple
        In the units and in the dtype.
    exact : PPoly
        Through y / size at x / unit, in double precision.
    """

    def __init__(self, seed):
        rng = self.rng = np.random.default_rng(seed)
        self.dtype = np.dtype(rng.choice(DTYPES))
        self.real = np.finfo(self.dtype).dtype
        self.name = str(rng.choice(CONDITIONS))
        self.unit = unit_of(rng, self.dtype)
        self.size = 2.0 ** rng.integers(-20, 20)
        n = int(rng.choice([2, 3, 4, 5, 9, 33]))
        rest = [(), (3,), (2, 9)][rng.integers(3)]
        self.axis = int(rng.integers(len(rest) + 1))
        wide = np.complex128 if self.dtype.kind == "c" else np.float64
        self.x = (knots(rng, n) * self.unit).astype(self.real)
        y = batch(rng, n, rest, self.axis, wide, periodic=self.name == "periodic")
        y = y.astype(self.dtype)
        self.y = (self.size * y).astype(self.dtype)
        exact_x = self.x.astype(np.float64) / self.unit
        points = rng.uniform(exact_x[0] - 0.3, exact_x[-1] + 0.3, 23)
        self.points = np.concatenate([(points * self.unit).astype(self.real), self.x])
        ends = condition(self.name, rng, rest)
        self.bc_type, exact_ends = ends, ends
        if not isinstance(ends, str):
            given = [e if isinstance(e, str) else (e[0], self._given(*e)) for e in ends]
            self.bc_type = tuple(given)
            exact_ends = tuple(
                e if isinstance(e, str) else (e[0], self._scaled(e[1], e[0])) for e in given
            )
        self.exact = interpolate.CubicSpline(exact_x, y.astype(wide), self.axis, exact_ends)

    def _given(self, order, value):
        """Return a derivative of the exact spline in the units of this one, or 0."""
        value = np.asarray(value) * self.size
        for _ in range(order):
            value = value / self.unit
        info = np.finfo(self.dtype)
        is_normal = (np.abs(value) > info.tiny / info.eps) & (np.abs(value) < info.max)
        return np.where(is_normal, value, 0).astype(self.real)

    def _scaled(self, values, nu):
        """Return derivatives of order nu in the units of the exact spline."""
        values = np.asarray(values)
        values = values.astype(np.result_type(values, np.float64)) / self.size
        for _ in range(abs(nu)):
            values = values * self.unit if nu > 0 else values / self.unit
        return values

    @property
    def exact_points(self):
        return self.points.astype(np.float64) / self.unit

    def require(self, found, expected, nu, what):
        """Require an equality of derivatives of order nu but for rounding errors.

        Where the dtype cannot represent the result, it must be infinite or of the size of the
        smallest numbers.
        """
        info = np.finfo(self.dtype)
        steps = np.diff(self.exact.x).min()
        size = np.abs(expected).max(initial=0) + np.abs(self.exact.c[-1]).max() / steps ** max(
            nu, 0
        )
        scale = np.longdouble(self.size) * np.longdouble(self.unit) ** -nu
        assert found.dtype == self.dtype, what
        if scale * size > info.max / 4:
            return
        error = np.abs(self._scaled(found, nu) - expected)
        least = float(4 * np.longdouble(info.tiny) / scale)
        assert np.isfinite(found).all(), what
        assert error.max(initial=0) <= 200 * info.eps * size + least, (what, error.max() / size)


def check(seed, backend):
    print(f"seed {seed}")
    p = Problem(seed)
    what = (seed, p.name, p.dtype.name, float(p.unit), float(p.size))

    spline = CubicSpline(p.x, p.y, p.axis, p.bc_type, device=backend)

    is_inside = (p.points >= p.x[0]) & (p.points < p.x[-1])
    points = p.points if p.name != "periodic" else p.points[is_inside]
    exact_points = points.astype(np.float64) / p.unit
    for nu in range(4):
        expected = p.exact(exact_points, nu, extrapolate=True)
        p.require(spline(points, nu), expected, nu, (*what, nu))
        p.require(spline.derivative(nu)(points), expected, nu, (*what, "derivative", nu))
        if nu < 3:
            own = spline.antiderivative(2)(points, nu, extrapolate=True)
            theirs = p.exact.antiderivative(2)(exact_points, nu, extrapolate=True)
            p.require(own, theirs, nu - 2, (*what, "antiderivative", nu))
    repeated = spline.derivative(2).antiderivative().derivative()
    p.require(repeated(points), p.exact(exact_points, 2, extrapolate=True), 2, (*what, "again"))
    for _ in range(4):
        limits = p.rng.uniform(p.exact.x[0] - 0.2, p.exact.x[-1] + 0.2, 2)
        limits = (limits * p.unit).astype(p.real)
        theirs = p.exact.integrate(*(limits.astype(np.float64) / p.unit))
        p.require(spline.integrate(*limits), np.asarray(theirs), -1, (*what, "integral", *limits))


@pytest.mark.parametrize("first", range(0, 240, 60))
def test_units_of_knots_and_values(backend, first):
    for seed in range(first, first + 60, 1 if backend == "cpu" else 4):
        check(seed, backend)


@pytest.mark.slow
def test_many_units_of_knots_and_values(backend):
    first = int(np.random.default_rng().integers(2**31))
    for seed in range(first, first + 3000):
        check(seed, backend)


@pytest.mark.parametrize("first", [1e-20, 1e-9])
def test_knots_on_a_logarithmic_scale_in_single_precision(backend, first):
    # Distances differ by 15 and 20 powers of ten: the square of their ratio is out of the range of
    # float32.
    x = np.geomspace(first, 1e6 if first > 1e-15 else 1, 41, dtype=np.float32)
    y = np.sin(np.arange(41.0)).astype(np.float32)
    points = np.sqrt(x[:-1] * x[1:])
    expected = interpolate.CubicSpline(x.astype(float), y, bc_type="natural")
    lengths = np.diff(x.astype(float))

    spline = CubicSpline(x, y, bc_type="natural", device=backend)

    for nu in range(3):
        wanted = expected(points.astype(float), nu)
        scale = lengths**nu
        is_finite = np.abs(wanted) < 0.9 * np.finfo(np.float32).max
        assert is_finite.sum() > 30
        for found in (spline(points, nu), spline.derivative(nu)(points)):
            own, theirs = (scale * found)[is_finite], (scale * wanted)[is_finite]
            np.testing.assert_allclose(own, theirs, rtol=2e-5, atol=2e-5)
    for a, b in ((x[0], x[-1]), (x[2], points[30]), (points[5], points[4])):
        wanted = expected.integrate(float(a), float(b))
        np.testing.assert_allclose(spline.integrate(a, b), wanted, rtol=2e-5)
    np.testing.assert_allclose(spline.to_scipy()(points), expected(points), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("unit", [1e-15, 1e-30, 1e30])
def test_coefficients_are_given_as_far_as_the_dtype_represents_them(backend, unit):
    x, y = np.arange(6) * np.float32(unit), np.sin(np.arange(6.0)).astype(np.float32)
    expected = interpolate.CubicSpline(x.astype(float), y)

    spline = CubicSpline(x, y, device=backend)

    with np.errstate(over="ignore", under="ignore"):
        rounded = expected.c.astype(np.float32)
    is_near = np.isclose(spline.c, rounded, rtol=1e-5, atol=1e-36)
    assert (is_near | np.isinf(rounded)).all()
    wide = spline.to_scipy()
    for power in range(4):
        own, theirs = wide.c[3 - power], expected.c[3 - power]
        np.testing.assert_allclose(own, theirs, rtol=0, atol=1e-5 * unit**-power)

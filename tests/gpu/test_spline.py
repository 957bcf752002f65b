"""CubicSpline on a GPU has the values of the CPU, for the arrays of every library."""

import gpu_libraries
import numpy as np
import pytest

from pysolvers import CubicSpline

DTYPES = ("float32", "float64", "complex64", "complex128")
# Inner axes shorter and longer than a block, outer axes shorter and longer than the splines of a
# thread, more rows than one block.
SHAPES = [
    ((700,), 0),
    ((33, 3), 0),
    ((40, 33), 1),
    ((9, 17, 5), 1),
    ((3, 40, 300), 1),
    ((5, 2000), 0),
]


def data(rng, shape, axis, dtype, *, own=False, periodic=False):
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


def near(actual, expected, eps):
    """Require equality but for rounding errors of values of this size."""
    assert actual.shape == expected.shape and actual.dtype == expected.dtype
    np.testing.assert_array_equal(np.isnan(actual), np.isnan(expected))
    most = 400 * eps * np.nanmax(np.abs(expected), initial=1.0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=most)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bc", ["not-a-knot", "clamped", "natural", "periodic"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_values_are_those_of_the_cpu(library, rng, shape, axis, bc, dtype):
    x, y, points = data(rng, shape, axis, dtype, periodic=bc == "periodic")
    eps = np.finfo(dtype).eps
    expected = CubicSpline(x, y, axis, bc)

    spline = CubicSpline(library.array(x), library.array(y), axis, bc)

    for nu in range(4):
        own = spline(library.array(points), nu)
        assert library.is_kind(own)
        near(library.get(own), expected(points, nu), eps)
        near(library.get(spline(points[0], nu, False)), expected(points[0], nu, False), eps)
    near(library.get(spline.c), expected.c, eps)
    np.testing.assert_array_equal(library.get(spline.x), x)
    for nu in (-2, -1, 1, 2):
        own, theirs = spline.derivative(nu), expected.derivative(nu)
        near(library.get(own(library.array(points))), theirs(points), eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bc", ["not-a-knot", "periodic"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES[1:])
def test_knots_and_points_of_each_spline(library, rng, shape, axis, bc, dtype):
    x, y, _ = data(rng, shape, axis, dtype, own=True, periodic=bc == "periodic")
    points = np.ascontiguousarray(rng.permuted(x + x.dtype.type(0.1), axis=axis))
    eps = np.finfo(dtype).eps
    expected = CubicSpline(x, y, axis, bc)

    spline = CubicSpline(library.array(x), library.array(y), axis, bc)

    for nu in range(3):
        own = spline(library.array(points), nu, per_spline=True)
        near(library.get(own), expected(points, nu, per_spline=True), eps)
    np.testing.assert_array_equal(library.get(spline.x), x)


@pytest.mark.parametrize("bc", ["not-a-knot", "natural", "periodic"])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"), [((300, 2048), 1), ((2048, 1000), 0), ((3, 70_000), 1), ((20_000, 200), 0)]
)
def test_long_splines(rng, shape, axis, own, bc):
    x, y, _ = data(rng, shape, axis, "float64", own=own, periodic=bc == "periodic")
    here, there = (CubicSpline(x, y, axis, bc, device=d) for d in ("cpu", "cuda"))
    points = rng.uniform(x.min(), x.max(), 50)

    for nu in range(3):
        near(there(points, nu), here(points, nu), 2e-16)
    near(there.antiderivative()(points), here.antiderivative()(points), 1e-14)


@pytest.mark.parametrize("part", [np.s_[:, ::2], np.s_[3:, 1:-1], np.s_[::2, ::3]])
def test_views(library, rng, part):
    x, y, points = data(rng, (41, 30), 0, "complex128")
    there = library.view(library.array(y), part)
    knots = x[part[0]].copy()
    expected = CubicSpline(knots, y[part])

    spline = CubicSpline(library.array(knots), there)

    own = spline(library.view(library.array(points), np.s_[::2, 1::2]))
    near(library.get(own), expected(points[::2, 1::2]), 2e-16)


def test_integrals(streaming, rng):
    x, y, _ = data(rng, (5, 60), 1, "float64", periodic=True)
    for bc in ("natural", "periodic"):
        expected = CubicSpline(x, y, 1, bc)
        spline = CubicSpline(streaming.array(x), streaming.array(y), 1, bc)
        for limits in ((x[0], x[-1]), (9.0, 3.0), (-70.0, 200.0)):
            own = spline.integrate(*limits)
            assert streaming.is_kind(own)
            theirs = expected.integrate(*limits)
            scale = np.abs(theirs).max() + np.abs(y).max() * (x[-1] - x[0])
            np.testing.assert_allclose(streaming.get(own), theirs, rtol=0, atol=1e-11 * scale)
        copy = spline.to_scipy()
        np.testing.assert_allclose(copy(3.3), expected(3.3), rtol=1e-10, atol=1e-10)


def test_bad_data_is_reported(library, rng):
    x, y, _ = data(rng, (40, 300), 0, "float64")
    for values, text in ((np.nan, "finite"), (np.inf, "finite")):
        bad = y.copy()
        bad[-1, -1] = values
        with pytest.raises(ValueError, match=text):
            CubicSpline(library.array(x), library.array(bad))
    with pytest.raises(ValueError, match="increasing"):
        CubicSpline(library.array(x[::-1].copy()), library.array(y))
    with pytest.raises(ValueError, match="identical"):
        CubicSpline(library.array(x), library.array(y), 0, "periodic")


def test_calls_use_the_current_stream(streaming, rng):
    x, y, points = data(rng, (33, 200), 0, "float64")
    expected = CubicSpline(x, y)(points)
    spline = CubicSpline(streaming.array(x), streaming.array(y))
    there = streaming.array(points)
    stream = streaming.stream()
    with gpu_libraries.delayed(streaming.address(stream)), streaming.current(stream):
        values = spline(there)
        assert not streaming.is_done(stream)  # the call does not wait
    with streaming.current(stream):
        near(streaming.get(values), expected, 2e-16)


def test_numpy_arrays_are_copied_to_the_device_and_back(rng):
    x, y, points = data(rng, (4, 33), 1, "complex64")
    spline = CubicSpline(x, y, 1, device="cuda")

    assert type(spline(points)) is np.ndarray
    near(spline(points), CubicSpline(x, y, 1)(points), 1e-7)

"""CubicSpline on a device made of protected host memory: arrays of a library stay there."""

import pickle

import fake_device
import numpy as np
import pytest

from pysolvers import CubicSpline, _core


class Array(fake_device.Array):
    """An array that can be reshaped and indexed."""

    def reshape(self, shape):
        other = self.view(...)
        step, strides = other._shadow().itemsize, []
        for size in reversed(shape):
            strides.insert(0, step)
            step *= size
        other.__cuda_array_interface__ |= {"shape": shape, "strides": tuple(strides)}
        return other

    def __getitem__(self, index):
        return Array(self.device, np.asarray(self.get()[index]))

    def __sub__(self, other):
        return Array(self.device, np.asarray(self.get() - other.get()))

    def __add__(self, other):
        return Array(self.device, np.asarray(self.get() + other.get()))

    def __neg__(self):
        return Array(self.device, -self.get())

    def __rmul__(self, factor):
        return Array(self.device, np.asarray(factor * self.get()))

    def view(self, index):
        other = super().view(index)
        other.__class__ = Array
        return other


class Device(fake_device.Device):
    """A device with the entries of splines."""

    SIZE = 1 << 25

    def array(self, values):
        return Array(self, np.asarray(values))

    def _run(self, name, arguments):
        *arguments, _ordinal, stream = arguments
        self.calls.append((name, stream))
        with self.open():
            return getattr(_core, name)(*arguments)

    def spline_rows(self, *arguments):
        return self._run("spline_rows", arguments)

    def spline_pieces(self, *arguments):
        return self._run("spline_pieces", arguments)

    def spline_points(self, *arguments):
        return self._run("spline_points", arguments)


@pytest.fixture
def device():
    with fake_device.in_place_of_cuda(Device()) as fake:
        yield fake
    assert fake.live == 0


def data(rng, shape, axis, dtype=np.float64):
    x = np.cumsum(0.5 + rng.random(shape[axis]))
    y = rng.standard_normal(shape) * (1 + 1j)
    end = np.moveaxis(y, axis, 0)
    end[-1] = end[0]
    return x, y.astype(dtype) if np.dtype(dtype).kind == "c" else y.real.astype(dtype)


@pytest.mark.filterwarnings("ignore:Casting complex")
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("bc", ["not-a-knot", "periodic", "given"])
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((7, 3), 0), ((3, 7), 1), ((2, 7, 4), 1)])
def test_arrays_stay_on_the_device(device, rng, shape, axis, bc, dtype):
    x, y = data(rng, shape, axis, dtype)
    slopes = rng.standard_normal(shape[:axis] + shape[axis + 1 :]).astype(dtype)
    ends, there = bc, bc
    if bc == "given":
        ends = ((1, slopes), "natural")
        there = ((1, device.array(slopes)), "natural")
    points = rng.uniform(0, 12, (5, 2))
    expected = CubicSpline(x, y, axis, ends)
    device.calls.clear()

    spline = CubicSpline(device.array(x), device.array(y), axis, there)

    names = [name for name, *_ in device.calls]
    assert names.count("download") == 1  # the faults; everything else stays
    assert names.count("wait") == 1
    device.calls.clear()
    for nu in range(4):
        own = spline(device.array(points), nu)
        assert isinstance(own, Array)
        np.testing.assert_array_equal(own.get(), expected(points, nu))
    assert {name for name, *_ in device.calls} == {"view", "spline_points"}

    np.testing.assert_array_equal(spline.x.get(), x)
    np.testing.assert_array_equal(spline.c.get(), expected.c)
    np.testing.assert_array_equal(spline(points).get(), expected(points))
    np.testing.assert_array_equal(spline(2.5).get(), expected(2.5))
    own, theirs = spline.antiderivative(2), expected.antiderivative(2)
    np.testing.assert_array_equal(own(device.array(points)).get(), theirs(points))
    np.testing.assert_array_equal(spline.derivative()(2.5).get(), expected.derivative()(2.5))
    np.testing.assert_array_equal(spline.integrate(1, 9).get(), expected.integrate(1, 9))
    np.testing.assert_array_equal(spline.integrate(3, -19).get(), expected.integrate(3, -19))
    if bc != "periodic":
        copy = pytest.importorskip("scipy.interpolate") and spline.to_scipy()
        np.testing.assert_allclose(copy(points), expected(points), rtol=1e-11, atol=1e-11)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(spline)
    assert "cuda:0" in repr(spline)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_knots_and_points_of_each_spline(device, rng, dtype):
    x, y = data(rng, (2, 7, 3), 1, dtype)
    for knots in (
        np.moveaxis(x + rng.random((2, 3, 1)), -1, 1),
        np.moveaxis(x + rng.random((2, 1, 1)), -1, 1),
        np.moveaxis(x + rng.random((1, 3, 1)), -1, 1),
    ):
        points = rng.uniform(0, 12, (2, 4, 3))
        expected = CubicSpline(knots, y, 1)
        spline = CubicSpline(device.array(knots), device.array(y), 1)

        for given in (points, points[:1], points[..., :1]):
            own = spline(device.array(given), per_spline=True)
            np.testing.assert_array_equal(own.get(), expected(given, per_spline=True))
        np.testing.assert_array_equal(spline.x.get(), expected.x)


@pytest.mark.parametrize("view", [np.s_[::-1], np.s_[:, ::2], np.s_[:]])
def test_views_of_arrays(device, rng, view):
    x, y = data(rng, (8, 6), 0)
    points = rng.uniform(0, 9, (4, 6))
    there = device.array(y).view(view)
    expected = CubicSpline(x, y[view])

    spline = CubicSpline(device.array(x), there)

    for part in (np.s_[:, ::2], np.s_[::-1], np.s_[2]):
        own = spline(device.array(points).view(part))
        np.testing.assert_array_equal(own.get(), expected(points[part]))
    transposed = device.array(points.T).view(np.s_[:])
    np.testing.assert_array_equal(spline(transposed).get(), expected(points.T))


def test_numpy_arrays_are_computed_on_the_device(device, rng):
    x, y = data(rng, (5, 9), 1)
    points = rng.uniform(0, 12, 4)
    expected = CubicSpline(x, y, 1)

    spline = CubicSpline(x, y, 1, device="cuda")

    assert type(spline(points)) is np.ndarray
    np.testing.assert_array_equal(spline(points), expected(points))
    np.testing.assert_array_equal(spline(device.array(points)).get(), expected(points))
    np.testing.assert_array_equal(spline.c, expected.c)
    np.testing.assert_array_equal(spline.integrate(1, 2), expected.integrate(1, 2))


def test_bad_data_is_reported(device, rng):
    x, y = data(rng, (5, 9), 1)
    y[3, 4] = np.nan
    with pytest.raises(ValueError, match="`y` must contain only finite"):
        CubicSpline(device.array(x), device.array(y), 1)
    with pytest.raises(ValueError, match="strictly increasing"):
        CubicSpline(device.array(-x), device.array(np.ones(9)))
    with pytest.raises(TypeError, match="move all arrays to one device"):
        CubicSpline(x, device.array(np.ones(9)))
    with pytest.raises(ValueError, match="move all arrays to one device"):
        CubicSpline(x, np.ones(9))(device.array(x))

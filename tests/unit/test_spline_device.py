"""CubicSpline on a device has the values of the CPU, for the arrays of every library.

The device is made of protected host memory or, where there is one, a GPU.
"""

import pickle

import fake_device
import numpy as np
import pytest
from device_splines import SHAPES, data, near

from pysolvers import BackendError, CubicSpline

REAL_AND_COMPLEX = ("float64", "complex128")


@pytest.mark.parametrize(("number", "bc"), [*enumerate(["clamped", "periodic", "given"])])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_arrays_stay_on_the_device(device_library, rng, shape, axis, number, bc):
    library = device_library
    dtype = REAL_AND_COMPLEX[(SHAPES.index((shape, axis)) + number) % 2]
    x, y, points = data(rng, shape, axis, dtype, periodic=bc == "periodic")
    slopes = rng.standard_normal(shape[:axis] + shape[axis + 1 :]).astype(dtype)
    ends = there = bc
    if bc == "given":
        ends = ((1, slopes), "natural")
        there = ((1, library.array(slopes)), "natural")
    eps = np.finfo(dtype).eps
    expected = CubicSpline(x, y, axis, ends)

    spline = CubicSpline(library.array(x), library.array(y), axis, there)

    for nu in range(4):
        own = spline(library.array(points), nu)
        assert library.is_kind(own)
        near(library.get(own), expected(points, nu), eps)
        near(library.get(spline(points[0], nu, False)), expected(points[0], nu, False), eps)
    near(library.get(spline.c), expected.c, eps)
    np.testing.assert_array_equal(library.get(spline.x), x)
    if len(shape) > 1:
        near(library.get(spline(2.5)), expected(2.5), eps)
    for nu in (-2, -1, 1, 2):
        own, theirs = spline.derivative(nu), expected.derivative(nu)
        near(library.get(own(library.array(points))), theirs(points), eps)


@pytest.mark.parametrize("dtype", REAL_AND_COMPLEX)
@pytest.mark.parametrize("bc", ["not-a-knot", "periodic"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES[1:])
def test_knots_and_points_of_each_spline(device_library, rng, shape, axis, bc, dtype):
    library = device_library
    x, y, _ = data(rng, shape, axis, dtype, own=True, periodic=bc == "periodic")
    points = np.ascontiguousarray(rng.permuted(x + x.dtype.type(0.1), axis=axis))
    eps = np.finfo(dtype).eps
    expected = CubicSpline(x, y, axis, bc)

    spline = CubicSpline(library.array(x), library.array(y), axis, bc)

    for nu in range(3):
        own = spline(library.array(points), nu, per_spline=True)
        near(library.get(own), expected(points, nu, per_spline=True), eps)
    np.testing.assert_array_equal(library.get(spline.x), x)


def test_knots_and_points_that_some_splines_share(device_library, rng):
    library = device_library
    x, y, _ = data(rng, (2, 7, 3), 1)
    for knots in (
        np.moveaxis(x + rng.random((2, 3, 1)), -1, 1),
        np.moveaxis(x + rng.random((2, 1, 1)), -1, 1),
        np.moveaxis(x + rng.random((1, 3, 1)), -1, 1),
    ):
        points = rng.uniform(0, 12, (2, 4, 3))
        expected = CubicSpline(knots, y, 1)
        spline = CubicSpline(library.array(np.ascontiguousarray(knots)), library.array(y), 1)

        for given in (points, points[:1], np.ascontiguousarray(points[..., :1])):
            own = spline(library.array(given), per_spline=True)
            near(library.get(own), expected(given, per_spline=True))
        np.testing.assert_array_equal(library.get(spline.x), expected.x)


@pytest.mark.parametrize("part", [np.s_[::-1, :], np.s_[:, ::2], np.s_[3:, 1:-1], np.s_[::2, ::3]])
def test_views(device_library, rng, part):
    library = device_library
    x, y, points = data(rng, (41, 30), 0, "complex128")
    knots = x[: len(y[part])].copy()
    try:
        there = library.view(library.array(y), part)
    except NotImplementedError as error:
        pytest.skip(f"no such array: {error}")
    expected = CubicSpline(knots, y[part])

    spline = CubicSpline(library.array(knots), there)

    for at in (np.s_[::2, 1::2], np.s_[:, ::2], np.s_[2:3, :]):
        own = spline(library.view(library.array(points), at))
        near(library.get(own), expected(points[at]))
    near(library.get(spline(library.array(np.asfortranarray(points)))), expected(points))


def test_integrals(device_library, rng):
    library = device_library
    if not library.computes:
        pytest.skip("its arrays have no arithmetic")
    x, y, _ = data(rng, (5, 60), 1, periodic=True)
    for bc in ("natural", "periodic"):
        expected = CubicSpline(x, y, 1, bc)
        spline = CubicSpline(library.array(x), library.array(y), 1, bc)
        for limits in ((x[0], x[-1]), (9.0, 3.0), (-70.0, 200.0)):
            own = spline.integrate(*limits)
            assert library.is_kind(own)
            theirs = expected.integrate(*limits)
            scale = np.abs(theirs).max() + np.abs(y).max() * (x[-1] - x[0])
            np.testing.assert_allclose(library.get(own), theirs, rtol=0, atol=1e-11 * scale)
        copy = spline.to_scipy()
        np.testing.assert_allclose(copy(3.3), expected(3.3), rtol=1e-10, atol=1e-10)


def test_bad_data_is_reported(device_library, rng):
    library = device_library
    x, y, _ = data(rng, (40, 300), 0)
    there = library.array(x)
    for value in (np.nan, np.inf):
        bad = y.copy()
        bad[-1, -1] = value
        with pytest.raises(ValueError, match="`y` must contain only finite"):
            CubicSpline(there, library.array(bad))
    with pytest.raises(ValueError, match="strictly increasing"):
        CubicSpline(library.array(x[::-1].copy()), library.array(y))
    with pytest.raises(ValueError, match="identical"):
        CubicSpline(there, library.array(y), 0, "periodic")
    with pytest.raises(TypeError, match="move all arrays to one device"):
        CubicSpline(x, library.array(y))
    with pytest.raises(ValueError, match="move all arrays to one device"):
        CubicSpline(x, y)(there)


def test_a_spline_on_a_device_is_not_pickled(device_library, rng):
    x, y, _ = data(rng, (7, 3), 0)
    spline = CubicSpline(device_library.array(x), device_library.array(y))

    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(spline)
    assert "cuda:0" in repr(spline)


def test_numpy_arrays_are_copied_to_the_device_and_back(device_library, rng):
    x, y, points = data(rng, (4, 33), 1, "complex64")
    expected = CubicSpline(x, y, 1)

    spline = CubicSpline(x, y, 1, device="cuda")

    assert type(spline(points)) is np.ndarray
    near(spline(points), expected(points), 1e-7)
    near(spline.c, expected.c, 1e-7)
    near(device_library.get(spline(device_library.array(points))), expected(points), 1e-7)
    near(spline.integrate(1, 2), expected.integrate(1, 2), 1e-6)


@pytest.mark.parametrize("bc", ["not-a-knot", "periodic"])
def test_a_call_copies_nothing_to_or_from_the_host(rng, bc):
    x, y, points = data(rng, (2, 7, 4), 1, periodic=bc == "periodic")
    with fake_device.in_place_of_cuda() as device:
        x, y, points = device.array(x), device.array(y), device.array(points)
        device.calls.clear()

        spline = CubicSpline(x, y, 1, bc)
        names = [name for name, *_ in device.calls]
        assert names.count("wait") == 1
        assert not {"upload", "download"} & set(names)
        device.calls.clear()
        for nu in range(4):
            spline(points, nu)
        assert {name for name, *_ in device.calls} == {"view", "spline_points", "order"}


def test_faults_are_found_without_memory_of_the_host_for_them(rng, monkeypatch):
    def none(*_):
        raise RuntimeError("none is free")

    x, y, _ = data(rng, (2, 7, 4), 1)
    with fake_device.in_place_of_cuda() as device:
        monkeypatch.setattr(device, "Answer", none)
        CubicSpline(device.array(x), device.array(y), 1)
        y[1, -1, 2] = np.nan
        with pytest.raises(ValueError, match="`y` must contain only finite"):
            CubicSpline(device.array(x), device.array(y), 1)


def test_memory_of_the_host_is_given_back_after_an_error(rng, monkeypatch):
    x, y, _ = data(rng, (2, 7, 4), 1)
    with fake_device.in_place_of_cuda() as device:
        ended = []
        (failed,) = (k for k, (name, _) in device.STATUS.items() if name == "PS_DEVICE_FAILURE")
        end = device.Answer.end
        monkeypatch.setattr(device.Answer, "end", lambda self: [ended.append(1), end(self)])
        monkeypatch.setattr(device, "spline_make", lambda *_: failed)
        with pytest.raises(BackendError):
            CubicSpline(device.array(x), device.array(y), 1)
        assert ended == [1]


def test_the_memory_of_a_spline_is_freed_after_the_calls_that_read_it(rng):
    x, y, points = data(rng, (2, 7, 4), 1)
    with fake_device.in_place_of_cuda() as device:
        spline = CubicSpline(device.array(x), device.array(y), 1, stream=5)
        ((_, keeper, _),) = orders(device)
        slope = spline.derivative()
        points = device.array(points)
        for call in (spline, slope):
            device.calls.clear()
            call(points, stream=77)
            names = [name for name, *_ in device.calls]
            assert device.calls[-1] == ("order", 77, keeper)
            assert names.index("spline_points") < names.index("order")
        for name in ("c", "x"):
            device.calls.clear()
            getattr(spline, name)
            assert device.calls[-1][0] == "order"
            assert device.calls[-1][2] == keeper


def test_a_constructor_follows_no_reader_of_splines_of_other_streams(rng):
    x, y, points = data(rng, (2, 7, 4), 1)
    with fake_device.in_place_of_cuda() as device:
        x, y, points = device.array(x), device.array(y), device.array(points)
        CubicSpline(x, y, 1, stream=5)(points, stream=77)
        device.calls.clear()
        CubicSpline(x, y, 1, stream=1024)
        CubicSpline(x, y, 1, stream=5)
        (_, first, to_first), (_, second, to_second) = orders(device)
    assert (to_first, to_second) == (1024, 5)
    assert first != second
    assert min(first, second) >= fake_device.NEW_STREAMS


def orders(device):
    """Return the calls of `order`: what follows what."""
    return [call for call in device.calls if call[0] == "order"]

"""Splines of arrays on a device that the extension takes as they are: one call of it.

The device is made of protected host memory.
"""

import fake_device
import numpy as np
import pytest
from device_splines import SHAPES, data, near

from pysolvers import CubicSpline
from pysolvers._runtime import interop
from pysolvers.spline import cubic, piecewise


class Plain(interop.Library):
    """A library whose arrays the extension takes by itself, on its current stream."""

    has_fast_access = True

    def __init__(self):
        self.fast_access = None, describe, lambda ordinal: 0, None


def describe(array):
    """Return address, device, shape, strides and dtype."""
    found = array.__cuda_array_interface__
    return found["data"][0], 0, found["shape"], found["strides"], np.dtype(found["typestr"])


@pytest.fixture
def plain_device(monkeypatch):
    """A device, whose arrays are those of a library with fast access."""
    with fake_device.in_place_of_cuda() as device:
        monkeypatch.setitem(interop._LIBRARIES, "fake_device", Plain())
        interop._library_of_type.cache_clear()
        yield device
    interop._library_of_type.cache_clear()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("bc", ["not-a-knot", "clamped", "natural", "periodic"])
@pytest.mark.parametrize(("shape", "axis"), [*SHAPES, ((4, 6, 5), -1)])
def test_plain_arrays_need_no_general_checks(
    plain_device, rng, monkeypatch, shape, axis, bc, dtype
):
    x, y, points = data(rng, shape, axis % len(shape), dtype, periodic=bc == "periodic")
    expected = CubicSpline(x, y, axis, bc)
    there = plain_device.array(x), plain_device.array(y)

    with monkeypatch.context() as plain:
        plain.setattr(cubic, "find_target", None)
        spline = CubicSpline(*there, axis, bc)

    calls = [name for name, *_ in plain_device.calls]
    assert calls == ["order", "spline_make", "wait"]
    assert spline.axis == expected.axis and spline.dtype == y.dtype
    plain_device.calls.clear()
    at = plain_device.array(points)
    with monkeypatch.context() as plain:
        plain.setattr(piecewise, "target_for", None)
        found = [spline(at, nu, False).get() for nu in range(3)]
    assert [name for name, *_ in plain_device.calls] == ["spline_points", "order"] * 3
    for nu, values in enumerate(found):
        near(values, expected(points, nu, False), np.finfo(dtype).eps)
    np.testing.assert_array_equal(spline.x.get(), x)


def test_arrays_that_are_not_plain(plain_device, rng):
    x, y, points = data(rng, (8, 5), 0)
    own = np.ascontiguousarray(np.broadcast_to(x[:, None], y.shape))
    slopes = plain_device.array(np.ones(5))
    for knots, values, options in [
        (x, np.asfortranarray(y), {}),
        (own, y, {}),
        (x, y, {"stream": 5}),
        (x, y, {"bc_type": ((1, slopes), "natural")}),
        (x, y, {"device": "cuda:0"}),
        (x, np.empty((8, 0)), {}),
    ]:
        there = plain_device.array(knots), plain_device.array(values)
        bc = ((1, np.ones(5)), "natural") if "bc_type" in options else "not-a-knot"
        near(
            CubicSpline(*there, **options)(plain_device.array(points)).get(),
            CubicSpline(knots, values, bc_type=bc)(points),
        )
    spline, expected = CubicSpline(plain_device.array(x), plain_device.array(y)), CubicSpline(x, y)
    for at in (np.asfortranarray(points), points[:0], points[0, 0]):
        near(spline(plain_device.array(at)).get(), expected(at))
    near(spline(points).get(), expected(points))
    near(spline(plain_device.array(points), stream=5).get(), expected(points))
    with pytest.raises(TypeError, match="cannot be converted"):
        spline(plain_device.array(points.astype("f4")))
    with pytest.raises(TypeError, match="real values"):
        spline(plain_device.array(points + 1j))
    for knots, values, error, message in [
        (x[:-1], y, ValueError, "doesn't match the length of `x`"),
        (x * 1j, y, ValueError, "must contain real values"),
        (x[:1], y[:1], ValueError, "at least 2"),
        (x[::-1], y, ValueError, "strictly increasing"),
        (x, y.astype(bool), TypeError, "cannot be converted"),
        (x.astype("f4"), y, TypeError, "cannot be converted"),
    ]:
        there = plain_device.array(knots), plain_device.array(np.ascontiguousarray(values))
        with pytest.raises(error, match=message):
            CubicSpline(*there)
    there = plain_device.array(x), plain_device.array(y)
    with pytest.raises(np.exceptions.AxisError, match="axis must be in"):
        CubicSpline(*there, 2)
    with pytest.raises(ValueError, match="device is 'cpu'"):
        CubicSpline(*there, device="cpu")
    with pytest.raises(TypeError, match="move all arrays to one device"):
        CubicSpline(x, there[1])


def test_knots_that_change_in_place_are_read_again(plain_device, rng):
    x, y, points = data(rng, (9, 4), 0)
    there = plain_device.array(x), plain_device.array(y)
    first = CubicSpline(*there)
    other = np.sort(rng.uniform(x[0], x[-1], 9))

    with plain_device.open():
        there[0]._shadow()[:] = other

    second = CubicSpline(*there)
    at = plain_device.array(points)
    near(first(at).get(), CubicSpline(x, y)(points))
    near(second(at).get(), CubicSpline(other, y)(points), 2e-12)


def test_a_graph_of_the_caller_keeps_what_it_reads(plain_device, rng, monkeypatch):
    x, y, points = data(rng, (9, 4), 0)
    spline = CubicSpline(plain_device.array(x), plain_device.array(y))
    monkeypatch.setattr(Plain, "is_captured", lambda self, ordinal: True)
    plain_device.calls.clear()

    values = spline(plain_device.array(points))

    assert [name for name, *_ in plain_device.calls] == ["spline_points"]
    near(values.get(), CubicSpline(x, y)(points))

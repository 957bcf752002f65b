"""CubicSpline on a GPU: every type and condition, long splines, the current stream.

The arrays of the libraries are tested in tests/unit/test_spline_device.py.
"""

import gpu_libraries
import numpy as np
import pytest
from device_splines import SHAPES, data, near

from pysolvers import CubicSpline


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("bc", ["not-a-knot", "clamped", "natural", "periodic"])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_every_type_and_condition(rng, shape, axis, bc, dtype, own):
    x, y, points = data(rng, shape, axis, dtype, own=own, periodic=bc == "periodic")
    eps = np.finfo(dtype).eps
    here, there = (CubicSpline(x, y, axis, bc, device=d) for d in ("cpu", "cuda"))

    for nu in range(4):
        near(there(points, nu), here(points, nu), eps)
    near(there.c, here.c, eps)


@pytest.mark.parametrize("bc", ["not-a-knot", "natural", "periodic"])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"), [((300, 2048), 1), ((2048, 1000), 0), ((3, 70_000), 1), ((20_000, 200), 0)]
)
def test_long_splines(rng, shape, axis, own, bc):
    x, y, _ = data(rng, shape, axis, own=own, periodic=bc == "periodic")
    here, there = (CubicSpline(x, y, axis, bc, device=d) for d in ("cpu", "cuda"))
    points = rng.uniform(x.min(), x.max(), 50)

    for nu in range(3):
        near(there(points, nu), here(points, nu))
    near(there.antiderivative()(points), here.antiderivative()(points), 1e-14)


def test_calls_use_the_current_stream(streaming, rng):
    x, y, points = data(rng, (33, 200), 0)
    expected = CubicSpline(x, y)(points)
    spline = CubicSpline(streaming.array(x), streaming.array(y))
    there = streaming.array(points)
    stream = streaming.stream()
    with gpu_libraries.delayed(streaming.address(stream)), streaming.current(stream):
        values = spline(there)
        assert not streaming.is_done(stream)  # the call does not wait
    with streaming.current(stream):
        near(streaming.get(values), expected)


def test_the_memory_of_a_spline_is_freed_after_the_calls_that_read_it(streaming, rng):
    x, y, points = data(rng, (33, 2000), 0)
    expected = CubicSpline(x, y)(points)
    here, there, at = (streaming.array(array) for array in (x, y, points))
    zeros = streaming.array(np.zeros_like(y))
    spline = CubicSpline(here, there)
    stream = streaming.stream()
    with gpu_libraries.delayed(streaming.address(stream)):
        with streaming.current(stream):
            values = spline(at)
        del spline
        with streaming.current(streaming.stream()):
            others = [CubicSpline(here, zeros) for _ in range(4)]
    with streaming.current(stream):
        near(streaming.get(values), expected)
    assert len(others) == 4

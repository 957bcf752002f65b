"""CubicSpline of values of any shape, axis, memory order and condition, compared with SciPy."""

import numpy as np
import pytest

pytest.importorskip("hypothesis")
pytest.importorskip("scipy")
from hypothesis import given, settings, strategies as st
from scipy import interpolate

from pysolvers import CubicSpline

KINDS = ("not-a-knot", "clamped", "natural", "periodic", "pairs")


@st.composite
def splines(draw):
    """Return knots, values, axis, conditions and points."""
    rest = draw(st.lists(st.integers(1, 9), max_size=3))
    n = draw(st.one_of(st.integers(2, 12), st.sampled_from([64, 513, 700])))
    axis = draw(st.integers(0, len(rest)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    x = np.cumsum(rng.uniform(0.2, 1, n)) + draw(st.sampled_from([0, -50, 50]))
    values = rng.standard_normal((n, *rest))
    if draw(st.booleans()):
        values = values + 1j * rng.standard_normal(values.shape)
    kind = draw(st.sampled_from(KINDS))
    if kind == "periodic":
        values[-1] = values[0]
    order = draw(st.permutations(range(values.ndim)))  # of the axes in memory
    y = np.moveaxis(values, 0, axis)
    y = np.ascontiguousarray(y.transpose(order)).transpose(np.argsort(order))
    conditions = kind
    if kind == "pairs":
        ends = st.one_of(st.sampled_from(["not-a-knot", "natural", "clamped"]), st.integers(1, 2))
        conditions = tuple(
            end if isinstance(end, str) else (end, rng.standard_normal(rest))
            for end in draw(st.tuples(ends, ends))
        )
    points = rng.uniform(x[0] - 0.3, x[-1] + 0.3, draw(st.lists(st.integers(1, 9), max_size=2)))
    return x, y, axis, conditions, points


@settings(max_examples=75)
@given(splines(), st.integers(0, 3), st.sampled_from([True, False, "periodic", None]))
def test_values_are_those_of_scipy(problem, nu, extrapolate):
    x, y, axis, conditions, points = problem
    expected = interpolate.CubicSpline(x, y, axis, conditions)

    found = CubicSpline(x, y, axis, conditions)(points, nu, extrapolate)

    wanted = expected(points, nu, extrapolate)
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    size = max(np.abs(expected(x, nu)).max(), np.abs(y).max())  # derivatives can vanish
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11 * size * max(1, len(x) / 64))

"""Linear smoothers of `pysolvers.jax`: values and derivatives."""

import numpy as np
import pytest
from array_libraries import check_gradients

from pysolvers import smoothing

jax = pytest.importorskip("jax")

from pysolvers.jax import hodrick_prescott, whittaker  # noqa: E402


# The differences of any order are one loop.
@pytest.mark.parametrize("order", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_smoothers(order):
    rng = np.random.default_rng(order)
    y, weights, lam = rng.standard_normal((3, 8)), rng.uniform(0.5, 1, 8), np.array([1.0, 9, 99])
    found = whittaker(y, lam, order=order, weights=weights)
    expected = smoothing.whittaker(y, lam, order=order, weights=weights)
    np.testing.assert_allclose(found, expected, rtol=1e-11)

    def smooth(y, lam, weights):
        return whittaker(y, lam, order=order, weights=weights)

    check_gradients(smooth, (y, lam, weights))
    mapped = jax.vmap(smooth, (0, 0, None))(y, lam, weights)
    np.testing.assert_allclose(mapped, expected, rtol=1e-11)
    moved = whittaker(y.T, 9.0, order=order, axis=0)
    np.testing.assert_allclose(moved.T, smoothing.whittaker(y, 9.0, order=order), rtol=1e-11)
    y[0, 3], weights[3] = np.nan, 0
    slope = jax.grad(lambda y: smooth(y, lam, weights).sum())(y)
    assert np.isfinite(slope).all()
    assert (slope[:, 3] == 0).all()


def test_trend_and_cycle():
    y = np.random.default_rng(0).standard_normal((3, 8))
    cycle, trend = hodrick_prescott(y, 99.0)
    np.testing.assert_allclose(trend, smoothing.hodrick_prescott(y, 99.0)[1], rtol=1e-11)
    np.testing.assert_allclose(cycle + trend, y, rtol=1e-13)
    with pytest.raises(ValueError, match="lam must broadcast"):
        whittaker(y, np.ones(2))
    with pytest.raises(TypeError, match="y must be real"):
        whittaker(1j * y, 1.0)


def test_order_one_with_weights_of_each_series():
    rng = np.random.default_rng(3)
    y, weights, lam = (
        rng.standard_normal((7, 3)),
        rng.uniform(0.5, 1, (7, 3)),
        np.array([1.0, 9, 99]),
    )
    found = jax.jit(lambda *a: whittaker(*a[:2], axis=0, order=1, weights=a[2]))(y, lam, weights)
    expected = smoothing.whittaker(y, lam, axis=0, order=1, weights=weights)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    with pytest.raises(ValueError, match="at least one dimension"):
        whittaker(1.0, 1.0)
    with pytest.raises(np.exceptions.AxisError, match=r"axis must be in -2 .. 1 for y"):
        whittaker(y, 1.0, axis=2)
    with pytest.raises(ValueError, match="order must be"):
        whittaker(y, 1.0, order=3)

"""Smoothers: dense least squares, an iteration in loops, and the splines of SciPy."""

import numpy as np
import pytest
from scipy.interpolate import make_smoothing_spline as spline_of_scipy

from pysolvers import SingularSystemError
from pysolvers.smoothing import arpls, hodrick_prescott, make_smoothing_spline, whittaker


def dense(y, lam, weights, order):
    """Return the minima of the penalised squares, the series along the last axis."""
    rows = y.shape[-1]
    steps = np.diff(np.eye(rows), order, axis=0)
    lam, weights = np.broadcast_to(lam, y.shape[:-1]), np.broadcast_to(weights, y.shape)
    matrix = weights[..., None] * np.eye(rows) + lam[..., None, None] * (steps.T @ steps)
    return np.linalg.solve(matrix, (weights * y)[..., None])[..., 0]


@pytest.mark.parametrize("order", [1, 2])
def test_whittaker_minimises_the_penalised_squares(order):
    rng = np.random.default_rng(0)
    for rows in (1, 2, 3, 4, 5, 16, 33):
        y, own = rng.standard_normal((2, 3, rows)), rng.uniform(0.1, 1, (2, 3, rows))
        for lam in (0.0, 2.0, rng.uniform(0, 100, (2, 3)), rng.uniform(0, 100, (2, 1))):
            for weights in (None, own, own[0, 0], own[:, :1]):
                z = whittaker(y, lam, order=order, weights=weights)
                wanted = dense(y, lam, 1.0 if weights is None else weights, order)
                assert np.abs(z - wanted).max() <= 1e-11
        turned = whittaker(np.moveaxis(y, -1, 0), 2.0, order=order, axis=0)
        assert (np.moveaxis(turned, 0, -1) == whittaker(y, 2.0, order=order)).all()
    single = whittaker(y.astype(np.float32), 2.0, order=order)
    assert single.dtype == np.float32
    assert np.abs(single - whittaker(y, 2.0, order=order)).max() < 1e-5


def test_polynomials_that_are_not_penalised_stay():
    line = np.arange(301.0)
    for lam in (1.0, 1e4, 1e8):
        assert np.abs(whittaker(np.full(301, 3.0), lam, order=1) - 3).max() <= 1e-14
        assert np.abs(whittaker(line, lam) - line).max() <= 1e-14 * (1 + lam) * 301


def test_values_without_weight_are_interpolated():
    rng = np.random.default_rng(1)
    y, weights = np.arange(50.0) + 0.1 * rng.standard_normal((3, 50)), np.ones((3, 50))
    weights[:, 20:30] = 0
    gaps = np.where(weights == 0, np.nan, y)
    gaps[0, 25] = np.inf

    for order in (1, 2):
        z = whittaker(gaps, 5.0, order=order, weights=weights)
        assert np.isfinite(z).all()
        assert (z == whittaker(y, 5.0, order=order, weights=weights)).all()
    assert np.abs(np.diff(z[:, 20:30], 4)).max() < 1e-10  # a cubic
    weights[1] = 0
    with pytest.raises(SingularSystemError) as caught:
        whittaker(y, 0.0, weights=weights)
    assert [1] in caught.value.systems.tolist()


def test_trend_and_cycle():
    rng = np.random.default_rng(2)
    y = rng.standard_normal((40, 4)).cumsum(0)
    cycle, trend = hodrick_prescott(y, axis=0)

    assert np.allclose(trend.T, dense(y.T, 1600.0, 1.0, 2), rtol=1e-9)
    assert np.allclose(cycle + trend, y, rtol=1e-12)


def arpls_in_loops(y, lam, tol, most):
    """Return the baseline of one spectrum and the number of solves (Baek et al. 2015)."""
    w = np.ones_like(y)
    count = 0
    while count < most:
        count += 1
        z = dense(y, lam, w, 2)
        d = y - z
        negative = d[d < 0]
        m, s = negative.mean(), negative.std(ddof=1)
        after = 1 / (1 + np.exp(np.clip(2 * (d - (2 * s - m)) / s, -80, 80)))
        if np.linalg.norm(after - w) < tol * np.linalg.norm(w):
            break
        w = after
    return z, count


def test_baselines_are_those_of_single_spectra():
    rng = np.random.default_rng(3)
    x = np.linspace(0, 1, 150)
    peaks = np.exp(-(((x - rng.uniform(0.2, 0.8, (7, 1))) / 0.02) ** 2))
    y = np.sin(3 * x) + peaks + 0.01 * rng.standard_normal((7, 150))
    lam = np.geomspace(1e2, 1e5, 7)
    found = arpls(y, lam)

    assert found.converged.all()
    for k in range(7):
        z, count = arpls_in_loops(y[k], lam[k], 1e-3, 50)
        assert found.iterations[k] == count
        assert np.abs(found.baseline[k] - z).max() < 1e-9
        alone = arpls(y[k], lam[k])
        assert (alone.baseline == found.baseline[k]).all()
    columns = arpls(y.T, lam, axis=0)
    assert (found.baseline == columns.baseline.T).all()
    few = arpls(y, lam, max_iterations=2)
    assert (few.iterations == 2).all()
    assert not few.converged.any()
    flat = arpls(np.ones((2, 20)))
    assert np.allclose(flat.baseline, 1, atol=1e-8)


def test_a_spectrum_without_noise_leaves_the_others_of_its_batch_as_they_are():
    """Its weights can become 0, so that the matrix of an iteration is singular."""
    x = np.linspace(0, 1, 200)
    clean = x + np.exp(-(((x - 0.5) / 0.01) ** 2))
    noisy = clean + 0.01 * np.random.default_rng(0).standard_normal((2, 200))
    is_singular = []
    for lam in (1e5, 3e5, 1e6):
        alone = arpls(noisy, lam)
        found = arpls(np.vstack([noisy[:1], clean, noisy[1:]]), lam)

        assert (found.baseline[[0, 2]] == alone.baseline).all()
        assert (found.iterations[[0, 2]] == alone.iterations).all()
        assert found.converged[[0, 2]].all()
        assert np.abs(found.baseline[1] - x).max() < 1e-9
        is_singular.append(not found.converged[1] and found.weights[1].sum() < 1e-9)
    assert any(is_singular)


def test_smoothing_splines_are_those_of_scipy():
    rng = np.random.default_rng(4)
    x = np.sort(rng.uniform(0, 10, 60))
    y = np.sin(x)[:, None] + 0.2 * rng.standard_normal((60, 4))
    weights, points = rng.uniform(0.5, 2, 60), np.linspace(x[0], x[-1], 33)

    for w in (None, weights):
        for lam, most in ((1e-3, 1e-10), (1.0, 1e-10), (None, 1e-4)):
            spline, chosen = make_smoothing_spline(x, y, w, lam, return_lam=True)
            assert chosen.shape == (4,)
            for k in range(4):
                wanted = spline_of_scipy(x, y[:, k], w, lam)
                assert np.abs(spline(points)[:, k] - wanted(points)).max() < most
    each = make_smoothing_spline(x, y, None, np.array([1e-3, 1.0, 1e-3, 1.0]))
    alike = make_smoothing_spline(x, y[:, 1], None, 1.0)
    assert np.allclose(each(points)[:, 1], alike(points), rtol=1e-12)
    rows = make_smoothing_spline(x, y.T, weights, 1.0, axis=1)(points)
    columns = make_smoothing_spline(x, y, weights, 1.0)(points)
    assert np.allclose(rows, columns.T, rtol=1e-12)


def test_errors_name_the_argument():
    y = np.ones((3, 9))

    with pytest.raises(ValueError, match="order must be 1 or 2, got 3"):
        whittaker(y, 1.0, order=3)
    with pytest.raises(ValueError, match="lam must be finite and at least 0"):
        whittaker(y, -1.0)
    with pytest.raises(ValueError, match=r"lam must broadcast to \(3,\)"):
        whittaker(y, np.ones(9))
    with pytest.raises(ValueError, match=r"weights must be finite and at least 0, got -1\.0"):
        whittaker(y, 1.0, weights=-y)
    with pytest.raises(ValueError, match="weights must be finite and at least 0, got inf"):
        whittaker(y, 1.0, weights=y * np.inf)
    for weights, axis in ((np.ones(9), 0), (np.ones(3), 1), (np.ones((2, 9)), 1)):
        text = rf"weights must have {y.shape[axis]} entries along axis {axis}, or broadcast to"
        with pytest.raises(ValueError, match=text):
            whittaker(y, 1.0, weights=weights, axis=axis)
    with pytest.raises(TypeError, match="operands must be real"):
        whittaker(1j * y, 1.0)
    with pytest.raises(ValueError, match="arpls: y must be finite"):
        arpls(np.full((3, 9), np.nan))
    with pytest.raises(ValueError, match="x must increase"):
        make_smoothing_spline(np.zeros(9), y, axis=1)
    with pytest.raises(ValueError, match="at least 5 values, got 4"):
        make_smoothing_spline(np.arange(4), np.ones(4))
    with pytest.raises(ValueError, match="x must have one dimension and the 9 values"):
        make_smoothing_spline(np.arange(4), y, axis=1)
    knots = np.arange(9)
    with pytest.raises(TypeError, match="x must be a plain array, got MaskedArray"):
        make_smoothing_spline(np.ma.masked_array(knots, knots > 7), y, axis=1)
    with pytest.raises(TypeError, match=r"x: need float32, .* got datetime64"):
        make_smoothing_spline(knots.astype("datetime64[s]"), y, axis=1)
    with pytest.raises(TypeError, match="x must be real, got complex128"):
        make_smoothing_spline(1j * knots, y, axis=1)


def test_a_lam_that_hides_the_weights_is_refused():
    y = np.random.default_rng(0).standard_normal((3, 50))
    with pytest.raises(SingularSystemError, match=r"3 series, .*a lam that is less than 5e\+14"):
        whittaker(y, np.full(3, 1e18))


@pytest.mark.parametrize("rows", [50, 1 << 15])  # all series are iterated together, or two
def test_baselines_that_are_not_determined_are_named(rows):
    y = np.random.default_rng(0).standard_normal((2, 3, rows))
    lam = np.full((2, 3), 1e4)
    lam[1, 0] = 1e300
    with pytest.raises(SingularSystemError, match=r"1 series, first at batch index \(1, 0\)"):
        arpls(y, lam)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", [1, 2])
def test_calls_that_need_no_conversions_have_the_bits_of_others(order, dtype):
    rng = np.random.default_rng(order)
    for shape, axis in (((40,), -1), ((3, 40), 1), ((40, 3), 0), ((200, 40), -1)):
        y = rng.standard_normal(shape).astype(dtype)
        weights = rng.uniform(0, 1, shape).astype(dtype)
        strength = np.array(3.0, dtype)  # is converted
        for own in (None, weights):
            z = whittaker(y, 3.0, order=order, weights=own, axis=axis)
            other = whittaker(y, strength, order=order, weights=own, axis=axis)
            assert z.dtype == dtype and z.flags.c_contiguous
            np.testing.assert_array_equal(z, other)
        single = whittaker(np.moveaxis(y, axis, -1).reshape(-1, 40)[0], 3.0, order=order)
        first = np.moveaxis(whittaker(y, 3.0, order=order, axis=axis), axis, -1).reshape(-1, 40)[0]
        np.testing.assert_allclose(single, first, rtol=0, atol=32 * np.finfo(dtype).eps)
    with pytest.raises(ValueError, match="lam must be finite"):
        whittaker(y, -1.0)
    with pytest.raises(ValueError, match="weights must be finite and at least 0"):
        whittaker(y, 1.0, weights=-weights)


def test_knots_of_a_smoothing_spline_keep_their_precision():
    knots = 1e6 + np.arange(8) / 16  # of float32 some are equal
    y = np.random.default_rng(0).standard_normal(8)
    truth = make_smoothing_spline(knots, y.astype(np.float32).astype(float), lam=0.1)(knots)
    z = make_smoothing_spline(knots, y.astype(np.float32), lam=0.1)(knots)
    assert z.dtype == np.float64
    np.testing.assert_array_equal(z, truth)


@pytest.mark.parametrize("axis", [-1, 0])
@pytest.mark.parametrize("rows", [1, 2, 3, 15, 16, 17, 33, 40])
def test_matrices_are_made_of_weights_and_lam_where_they_are_eliminated(rows, axis):
    rng = np.random.default_rng(9)
    for count in (1, 7, 8, 19):
        y = rng.standard_normal((count, rows))
        weights = rng.uniform(0.5, 2, y.shape)
        lam = rng.uniform(0, 3, count)
        wanted = dense(y, lam, weights, 2) if rows > 2 else y
        arrays = (y, weights) if axis == -1 else (np.ascontiguousarray(a.T) for a in (y, weights))
        values, own = arrays
        z = whittaker(values, lam, weights=own, axis=axis)
        np.testing.assert_allclose(z if axis == -1 else z.T, wanted, rtol=1e-10, atol=1e-11)
        single = whittaker(values.astype(np.float32), lam.astype(np.float32), axis=axis)
        wanted = dense(y, lam, 1.0, 2) if rows > 2 else y
        np.testing.assert_allclose(single if axis == -1 else single.T, wanted, atol=2e-4)


@pytest.mark.parametrize("wrong", [-1.0, -np.inf, np.inf, np.nan])
def test_one_bad_weight_of_many_is_found(wrong):
    y, weights = np.ones((30, 41)), np.ones((30, 41))
    for place in ((0, 0), (29, 40), (11, 17)):
        own = weights.copy()
        own[place] = wrong
        for given, lam in ((own, 1.0), (own, np.full(30, 1.0)), (own[place[0]], 1.0)):
            with pytest.raises(ValueError, match=f"finite and at least 0, got {wrong}"):
                whittaker(y, lam, weights=given)


def test_all_series_that_are_not_determined_are_named():
    y, weights = np.ones((4, 5, 30)), np.ones((4, 5, 30))
    weights[1, 2] = weights[3, 4] = 0
    with pytest.raises(SingularSystemError, match=r"2 series, first at batch index \(1, 2\)") as e:
        whittaker(y, 1.0, weights=weights)
    assert e.value.systems.tolist() == [[1, 2], [3, 4]]

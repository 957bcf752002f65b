# The dates of the smooth curves have less than half of the errors of the largest values.
errors = {name: np.abs(date - peak).mean() for name, date in dates.items()}
assert errors["of the smooth curve"] < 0.5 * errors["the largest value"]
assert np.isfinite(z).all()
assert np.abs(upper - green).mean() < 0.7 * np.abs(z - green).mean()
assert np.abs(result.baseline - hill).max() < 0.3
# Without gaps a wave keeps the share of the page.
wave = np.cos(2 * np.pi * np.arange(2000) / 20)
share = 1 / (1 + 30.0 * (2 - 2 * np.cos(2 * np.pi / 20)) ** 2)
np.testing.assert_allclose(whittaker(wave, 30.0)[900:1100], share * wave[900:1100], atol=1e-6)

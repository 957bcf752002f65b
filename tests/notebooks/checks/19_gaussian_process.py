at, some = np.sort(rng.uniform(0, 40, 400)), rng.standard_normal(400)
np.testing.assert_allclose(process(at, some, variance, length, noise)[0], dense(at, some))
assert abs(noise**0.5 - 0.2) < 0.02
inside = np.abs(np.interp(when[order], true_t, walk) - mean) < band
assert inside[(when[order] < 140) | (when[order] > 171)].mean() > 0.9
# The smoothed positions are nearer than the measured ones, and inside the circles while silent.
distance = np.hypot(*(position - track).T)
assert distance[~silent].mean() < 0.6 * np.hypot(*(measured - track).T)[~silent].mean()
assert (distance < 1.5 * radius)[silent].all()

assert abs((slope * direction).sum() / difference - 1) < 1e-7
# The gradient, and the profile away from the ends.
direction = rng.standard_normal(nodes)
step = 1e-5
ends = [loss_and_slope(start + sign * step * direction)[0] for sign in (-1, 1)]
slope = loss_and_slope(start)[1] @ direction
assert abs(slope / ((ends[1] - ends[0]) / (2 * step)) - 1) < 1e-6
inside = slice(4, -4)
assert np.sqrt(np.mean((k[inside] / true_k[inside] - 1) ** 2)) < 0.1

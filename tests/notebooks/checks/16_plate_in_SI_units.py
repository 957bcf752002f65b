across = np.full(22, thickness / 21)
across[[0, -1]] /= 2
to_air = air * ((steady.u[:, 0] - room) @ across + (steady.u[:, -1] - room) @ across)
assert abs(to_water + to_air - burner * heated) < 1e-5 * burner * heated
assert abs(steady.u - pan.u).max() < 1.0

# The rods follow the sines of the implicit step.
modes = np.sin(np.pi * np.outer(np.arange(1, 101), np.arange(1, 101)) / 101)
start = np.exp(-(((np.arange(1, 101) / 101 - 0.5) / 0.1) ** 2))
waves = 4 * np.sin(np.pi * np.arange(1, 101) / 202) ** 2
decay = (1 + np.geomspace(0.1, 100, rods)[:, None] * waves) ** -100.0
assert np.abs(T - (2 / 101 * decay * (start @ modes)) @ modes).max() < 1e-12
assert errors[False] > 1e-10 > 1e-13 > errors[True] and errors[None] < 1e-13
assert (out[[0, 1, 3]] == 0.5).all()

# The mean of the middle of the plate is a quarter, by symmetry.
assert abs(plate.u[31:33, 31:33].mean() - 0.25) < 1e-6
assert min(counts, key=counts.get) == 2 / (1 + np.sin(np.pi / 64))
# Without a flow the temperature is linear; a flow with a centre of symmetry keeps it.
assert np.abs(fields[0] - (1 - np.linspace(0, 1, 97))).max() < 1e-6
assert np.abs(fields[100] + fields[100][::-1, ::-1] - 1).max() < 1e-5
assert local.iterations == 412  # of the paper

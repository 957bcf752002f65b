assert np.abs(np.load("heat-4.npy") - np.load("heat-1.npy")).max() < 1e-12
parts = np.concatenate([np.load(f"part-{rank}.npy") for rank in range(4)], axis=-1)
assert np.abs(parts - one).max() < 1e-14

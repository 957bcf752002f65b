assert np.abs(values - np.sin(2 * np.pi * points + phase)).max() < 1e-3
assert np.abs(slopes - waves(points, 1)).max() < 1e-12
assert np.abs(waves.integrate(0, 0.5) - np.cos(phase[:, 0]) / np.pi).max() < 1e-4
assert jump < 1e-12
assert np.allclose(curve(1.0 + 6 * np.pi), curve(1.0))
assert np.abs(np.array(list(orders.values())) - [4, 3, 2, 2]).max() < 0.25
assert np.abs(found - np.cos(when)).max() < 1e-5
assert np.abs(spline(x) - y).max() < 1e-12

assert all(
    np.abs(CubicSpline(t, step(t), bc_type=each)(t) - step(t)).max() < 1e-15
    for each in conditions.values()
    if each != conditions["slopes 6 and 0"]
)
points = np.linspace(0, 1, 101)
assert np.abs(waves(points) - np.sin(2 * np.pi * points + phase)).max() < 1e-3
assert np.abs(slopes - waves(points, 1)).max() < 1e-12
assert np.abs(areas - np.cos(phase[:, 0]) / np.pi).max() < 1e-4
assert np.abs(curve(2 * np.pi, 2) - curve(0.0, 2)).max() < 1e-12
assert np.allclose(curve(1.0 + 6 * np.pi), curve(1.0))
assert np.abs(found - np.cos(when)).max() < 1e-5

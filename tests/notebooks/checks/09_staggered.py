profile = ghia_profiles(100)
assert np.nanmax(np.abs(result.centreline_u(profile["y"]) - profile["u"])) < 0.01
least = {gamma: found.centreline_u(places).min() for gamma, found in profiles.items()}
assert least[0.0] < least[0.9] and abs(least[0.0] - np.nanmin(table["u"])) < 0.02
assert exact.divergence < 1e-12
assert distances[2] < distances[1] < distances[0]
exact.save("state.npz")
assert np.array_equal(StaggeredCavity.load("state.npz").step(30).u, exact.step(30).u)

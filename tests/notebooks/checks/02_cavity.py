assert np.nanmax(np.abs(u - table["u"])) < 0.01
published = {400: (0.5547, 0.6055), 1000: (0.5313, 0.5625)}  # Ghia et al. 1982
for reynolds, (x, y) in published.items():
    assert abs(centres[reynolds].x - x) < 0.02 and abs(centres[reynolds].y - y) < 0.02
assert len(history.omega) > 2
lines = LidDrivenCavity(reynolds=100, n=33, method="line-jacobi").solve(tol=1e-8).psi
assert np.abs(LidDrivenCavity(reynolds=100, n=33).solve(tol=1e-8).psi - lines).max() < 1e-7

# The plate is the product of two slabs (Carslaw and Jaeger 1959, section 3.11).
from scipy.optimize import brentq

roots = np.array(
    [
        brentq(lambda z: z * np.sin(z) - 2 * np.cos(z), k * np.pi, (k + 0.5) * np.pi)
        for k in range(20)
    ]
)[:, None]
weight = 4 * np.sin(roots) / (2 * roots + np.sin(2 * roots))
slab = (weight * np.cos(roots * result.x) * np.exp(-(roots**2) * 0.3)).sum(axis=0)
assert np.abs(result.u - np.outer(slab, slab)).max() < 2e-4
assert abs(np.log2(errors[-3] / errors[-1]) / 2 - 2) < 0.1
assert abs(u.max() - np.exp(-3 * np.pi**2 * 0.05)) < 5e-4

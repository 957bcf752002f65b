from pysolvers.torch import heat_step

assert abs((slope * direction).sum() / difference - 1) < 1e-7
# The steps are those of heat_step.
u = true_u[99, 0]
boundary = {"x-": float(left[100]), "x+": 0.0}
u = heat_step(u, dt=dt, spacing=h, diffusivity=true_k[0], boundary=boundary)
assert (u - true_u[100, 0]).abs().max() < 1e-12
# The profiles away from the ends.
assert error.max() < 0.15

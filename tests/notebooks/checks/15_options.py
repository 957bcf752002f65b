assert abs(error).max() < 4e-3
assert abs(value - black_scholes(100.0, K, sigma0, r0)) < 5e-3
assert abs(vega - 100 * density) < 0.05 and abs(rho_ - K * np.exp(-r0) * ndtr(d - sigma0)) < 0.05
# 9.870 is the mean of binomial trees of 4000 and 4001 steps.
assert abs(np.interp(100.0, s, american) - 9.870) < 0.01
assert (american >= payoff - 1e-12).all() and (american >= european - 1e-9).all()

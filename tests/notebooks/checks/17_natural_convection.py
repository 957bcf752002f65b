for rayleigh, published in ((1e4, 2.243), (1e5, 4.519)):
    flow, T, fine, limit = found[rayleigh]
    assert abs(limit - published) < 0.005 * published
    through = flow.u[:, 1:-1] * (T[:, 1:] + T[:, :-1]) / 2 - np.diff(T, axis=1) * flow.n
    assert abs(through.mean(axis=0) - fine).max() < 0.005 * fine  # as much through each line

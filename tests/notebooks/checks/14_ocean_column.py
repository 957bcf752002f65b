assert abs(change - entered) < 1e-11 * heat[0]
assert np.isnan(T[~wet]).all() and not np.isnan(T[wet]).any()
upper = record[:, depth < 100]
late = upper[int(2 * year) :]
assert late[60:80].std(axis=1).mean() < late[220:240].std(axis=1).mean()  # even in March
assert abs(late - upper[int(year) : int(2 * year)]).max() < 0.5  # the cycle repeats
assert np.nanmin(age) >= 0 and np.nanmax(age) <= steps

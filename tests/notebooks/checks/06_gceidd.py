assert largest[8][1] < 1 < largest[8][-1]
assert max(largest[1]) < 1
assert errors[2] < 0.75 * errors[1] < 0.6 * errors[0], errors
published = gceidd2022.published_errors(3)["cfd", "linf"][0]
assert abs(gceidd2022.table_errors(3, gceidd2022.GRIDS[0])[0] / published - 1) < 0.1

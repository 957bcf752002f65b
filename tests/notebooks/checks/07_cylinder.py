assert abs(steady.recirculation_length / length - 1) < 0.05
assert abs(steady.drag / cd - 1) < 0.07
assert abs(found.value / 0.139 - 1) < 0.05
assert abs(history.surface_drag[last].mean() / history.drag[last].mean() - 1) < 0.2
assert np.abs(solver.psi).max() < 4

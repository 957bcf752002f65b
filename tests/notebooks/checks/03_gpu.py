assert difference < 1e-12
assert float(abs(y - xp.asarray(x)).max()) < 1e-12
assert float(abs(field - expected).max()) < 1e-14
assert float(abs(w - solve_tridiagonal(*(a[:1] for a in operands[:3]), operands[3])).max()) < 1e-12

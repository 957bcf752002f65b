"""Factors in row-sum form of the extension on a GPU."""

import numpy as np
import pytest

from pysolvers import HeatADI
from pysolvers._runtime.device import Device


@pytest.mark.parametrize("periodic", [False, True], ids=["open", "periodic"])
@pytest.mark.parametrize("columns", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_factors_in_row_sum_form(rng, dtype, columns, periodic):
    """Against longdouble: relative errors of each unknown, for sums that vanish in a diagonal."""
    backend = HeatADI((3, 3), 1.0, 1.0, boundary=0.0, device="cuda")._settings.backend
    device = Device(backend, 0, "test")
    flags = backend.ROW_SUMS | (backend.PERIODIC if periodic else 0)
    flags |= backend.COLUMNS if columns else 0
    for rows, systems in ((3, 40), (33, 70), (1030, 6), (9000, 3)):
        lower, upper = (-rng.uniform(0.5, 2, (systems, rows)).astype(dtype) for _ in range(2))
        sums = (1e-9 * rng.random((systems, rows))).astype(dtype)
        rhs = rng.random((systems, rows)).astype(dtype)

        def there(values):
            """(1, systems, rows) on the device, with systems or rows side by side."""
            if columns:
                return device.hold(np.ascontiguousarray(values.T)).T[None]
            return device.hold(values)[None]

        operands = [there(a) for a in (lower, sums, upper)]
        status, _, factor = backend.factor_make(
            backend.PIVOTS["never"], flags, *operands, None, 0, *device.arguments
        )
        assert status == 0
        x = there(rhs)
        assert factor.solve(backend.TRANS["N"], x, x, 1, 1, 0, device.stream.address) == 0
        found = device.download(x)[0]

        check_row_sums(lower, sums, upper, rhs, found, periodic)


def check_row_sums(lower, sums, upper, rhs, x, periodic):
    """Hold each unknown to O(rows) rounding errors, though the condition is 1e9 and more."""
    a, s, c, f = (np.asarray(v, np.longdouble).T.copy() for v in (lower, sums, upper, rhs))
    if not periodic:
        a[0] = c[-1] = 0
    rows = len(a)
    kept = np.zeros((rows, 3, a.shape[1]), np.longdouble)  # g, l, u of x = g + l x_end + u x_next
    g, left, total = np.zeros_like(f[0]), np.ones_like(f[0]), np.zeros_like(f[0])
    first = np.zeros_like(f[0]), np.zeros_like(f[0]), np.ones_like(f[0])
    for i in range(rows - 1):
        sigma, rest = s[i] + a[i] * -total, a[i] * -left
        pivot = sigma - c[i] + rest
        g, left, right, total = (v / pivot for v in (f[i] - a[i] * g, rest, -c[i], sigma))
        kept[i] = g, left, right
        first = first[0] + first[2] * g, first[1] + first[2] * total, first[2] * right
    sigma, d = s[-1] - a[-1] * total, f[-1] - a[-1] * g
    found = np.zeros_like(f)
    found[-1] = (d - c[-1] * first[0]) / (sigma - c[-1] * first[1])
    for i in reversed(range(rows - 1)):
        found[i] = kept[i, 0] + kept[i, 1] * found[-1] * periodic + kept[i, 2] * found[i + 1]
    residual = a * (np.roll(found, 1, 0) - found) + c * (np.roll(found, -1, 0) - found)
    scale = (abs(a) + abs(c)) * found + f
    assert (abs(residual + s * found - f) <= 1e-17 * scale).all()
    np.testing.assert_allclose(x.T, np.float64(found), rtol=2 * rows * np.finfo(lower.dtype).eps)

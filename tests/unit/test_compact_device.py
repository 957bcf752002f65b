"""Compact differences of arrays on a device: the answers of NumPy."""

import numpy as np
import pytest

from pysolvers import BackendError, compact_derivative


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("order", "accuracy"), [(1, 4), (1, 6), (2, 6)])
def test_derivatives(device_library, rng, axis, order, accuracy):
    f = rng.standard_normal((9, 33, 12))
    options = {"order": order, "accuracy": accuracy, "spacing": 0.5}
    own = device_library.array(f)
    expected = compact_derivative(f, axis, periodic=True, **options)
    found = compact_derivative(own, axis, periodic=True, **options)
    assert device_library.is_kind(found)
    np.testing.assert_allclose(device_library.get(found), expected, atol=1e-10)
    if not hasattr(own, "__mul__"):
        with pytest.raises(BackendError, match=r"no arithmetic: pass cupy\.asarray"):
            compact_derivative(own, axis, **options)
        return
    expected = compact_derivative(f, axis, **options)
    found = compact_derivative(own, axis, **options)
    np.testing.assert_allclose(device_library.get(found), expected, atol=1e-10)


def test_eight_needs_the_cpu(device_library, rng):
    with pytest.raises(BackendError, match="accuracy 8 needs the CPU"):
        compact_derivative(device_library.array(rng.standard_normal(20)), accuracy=8)

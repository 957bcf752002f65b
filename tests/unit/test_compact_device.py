"""Compact differences of arrays on a device: the answers of NumPy."""

import numpy as np
import pytest

from pysolvers import BackendError, compact_derivative


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize(("order", "accuracy"), [(1, 4), (1, 6), (2, 6), (1, 8), (2, 8)])
def test_derivatives(device_library, rng, axis, order, accuracy):
    f = rng.standard_normal((10, 33, 12))
    options = {"order": order, "accuracy": accuracy, "spacing": 0.5}
    own = device_library.array(f)
    expected = compact_derivative(f, axis, periodic=True, **options)
    found = compact_derivative(own, axis, periodic=True, **options)
    assert device_library.is_kind(found)
    np.testing.assert_allclose(device_library.get(found), expected, atol=1e-10)
    expected = compact_derivative(f, axis, **options)
    found = compact_derivative(own, axis, **options)
    np.testing.assert_allclose(device_library.get(found), expected, atol=1e-10)


def test_short_grids_of_complex_values_of_accuracy_8_need_the_cpu(device_library, rng):
    f = rng.standard_normal(63) + 1j
    with pytest.raises(BackendError, match="complex values on a device needs 64 points, and f has"):
        compact_derivative(device_library.array(f), accuracy=8)
    f = rng.standard_normal((3, 64)) * (1 + 2j)
    for periodic in (False, True):
        found = compact_derivative(device_library.array(f), accuracy=8, periodic=periodic)
        expected = compact_derivative(f, accuracy=8, periodic=periodic)
        np.testing.assert_allclose(device_library.get(found), expected, atol=1e-10)

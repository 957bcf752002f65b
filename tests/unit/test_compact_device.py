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
    if accuracy < 8:
        expected = compact_derivative(f, axis, periodic=True, **options)
        found = compact_derivative(own, axis, periodic=True, **options)
        assert device_library.is_kind(found)
        np.testing.assert_allclose(device_library.get(found), expected, atol=1e-10)
    expected = compact_derivative(f, axis, **options)
    found = compact_derivative(own, axis, **options)
    np.testing.assert_allclose(device_library.get(found), expected, atol=1e-10)


def test_periodic_grids_and_complex_values_of_accuracy_8_need_the_cpu(device_library, rng):
    f = rng.standard_normal(20)
    with pytest.raises(BackendError, match="accuracy 8 on a periodic grid needs the CPU"):
        compact_derivative(device_library.array(f), accuracy=8, periodic=True)
    with pytest.raises(BackendError, match="accuracy 8 of complex values needs the CPU"):
        compact_derivative(device_library.array(f * 1j), accuracy=8)

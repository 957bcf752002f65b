"""Interpolation and extrema of fields of flows."""

import numpy as np
import pytest

from pysolvers.flow import _fields


def test_peak_outside_of_the_nodes_of_its_fit_is_not_taken():
    y, x = np.mgrid[-3.0:4.0, -3.0:4.0]
    field = 1 + x - 0.1 * x**2 - y**2  # its peak is five nodes away

    assert _fields.fit_peak(field, -field, 3, 3) == (0.5, 0.5, 1.0, -1.0)


def test_interpolation_is_exact_on_cubics():
    places = np.concatenate([[0], (np.arange(9) + 0.5) / 9, [1]])
    at = np.linspace(0, 1, 41)

    found = _fields.interpolate_at(places, places**3 - places, at)

    np.testing.assert_allclose(found, at**3 - at, atol=1e-14)


@pytest.mark.parametrize("sign", [1, -1])
def test_refined_minimum_is_exact_on_quartics(sign):
    places = np.concatenate([[0], (np.arange(9) + 0.5) / 9, [1]])

    value, at = _fields.refined_minimum(places, sign * ((places - 0.37) ** 4 - 0.1), sign)

    assert value == pytest.approx(-0.1 * sign, abs=1e-12)
    assert at == pytest.approx(0.37, abs=1e-4)

"""Levels of contours (`plots._figure`)."""

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from pysolvers.plots._figure import levels_of


def test_levels_cover_the_field_and_are_round_between_its_ends():
    for field in (np.array([0.013, 0.97]), np.zeros(3), np.array([5.0, np.nan, 5.1])):
        levels = levels_of(field)
        assert levels[0] <= np.nanmin(field) and levels[-1] >= np.nanmax(field)
        assert np.all(np.diff(levels) > 0)
        assert len(levels) <= 22
        np.testing.assert_allclose(levels[1:-1], np.round(levels[1:-1], 3), rtol=0, atol=1e-12)
        assert np.ptp(np.diff(levels[1:-1])) < 1e-12


@pytest.mark.parametrize("ends", [(20.0, 100.0), (-3.0, 20.0), (293.15, 400.0), (19.99, 61.3)])
def test_levels_begin_and_end_with_the_values_of_plateaus(ends):
    low, high = ends
    for error in (2e-12, 0.0, -2e-12):
        levels = levels_of(np.array([low - error, high + error, 0.5 * (low + high)]))
        room = 2e-9 * (high - low)
        assert low - room < levels[0] < low - 1e-12 * abs(low)
        assert high + 1e-12 * abs(high) < levels[-1] < high + room

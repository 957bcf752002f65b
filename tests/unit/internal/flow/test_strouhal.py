"""The frequency of a signal from its rising zeros (`flow.cylinder._result`)."""

import numpy as np
import pytest

from pysolvers.flow import Strouhal
from pysolvers.flow.cylinder._result import strouhal_of


def test_frequency_of_a_wave_at_uneven_times(rng):
    time = np.cumsum(rng.uniform(0.005, 0.02, 6000))

    found = strouhal_of(time, np.sin(2 * np.pi * (0.147 * time + 0.3)) + 0.0)

    assert found.value == pytest.approx(0.147, rel=1e-6)
    assert found.uncertainty < 1e-5
    assert found.periods >= 2


def test_last_periods_decide_and_their_spread_is_the_uncertainty():
    """The phase t + 0.02 t^2 is 1, 2, ... at the rising zeros, whose places are known."""
    time = np.linspace(0, 19.9, 40_001)

    found = strouhal_of(time, np.sin(2 * np.pi * (time + 0.02 * time**2)))

    whole = np.arange(27 - found.periods, 28)  # the phase at the end is 27.8
    zeros = (np.sqrt(1 + 0.08 * whole) - 1) / 0.04
    frequencies = 1 / np.diff(zeros)
    assert found.value == pytest.approx(found.periods / (zeros[-1] - zeros[0]), rel=1e-6)
    assert found.uncertainty == pytest.approx(frequencies.std(ddof=1), rel=1e-4)


@pytest.mark.parametrize("waves", [0.4, 1.9])
def test_less_than_three_rising_zeros_are_refused(waves):
    time = np.linspace(0, 1, 400)

    with pytest.raises(ValueError, match=r"at least 3 rising zeros .* got [01]: run longer"):
        strouhal_of(time, np.sin(2 * np.pi * waves * time))


def test_a_small_spread_is_printed_with_its_digits():
    assert str(Strouhal(0.1336104, 1.23e-7, 8)) == "0.13361 +- 1.2e-07 (8 periods)"

"""When an iteration makes no progress: the residual has to fall by a tenth within the patience."""

import pytest

from pysolvers._solver.stall import Stall, checked_patience


def ends(residuals, patience=5, start=0):
    """Return the iteration after which residuals, one an iteration, are given up; None if never."""
    stall = Stall(patience, start)
    for iteration, residual in enumerate(residuals, start + 1):
        if stall.is_over(iteration, residual):
            return iteration
    return None


@pytest.mark.parametrize("start", [0, 1000])
def test_a_residual_that_stays_is_given_up_after_the_patience(start):
    assert ends([1.0] * 20, start=start) == start + 7  # the first residual is a fall
    assert ends([1.0] * 6, start=start) is None
    assert ends([float("nan")] * 20, start=start) == start + 6


def test_a_fall_by_a_tenth_is_progress_and_a_smaller_one_is_none():
    assert ends([0.9**k for k in range(200)]) is None
    assert ends([1.0, *[0.91] * 20]) == 7
    # Small falls add up: the residual is compared with that of the last progress.
    assert ends([0.98**k for k in range(200)], patience=6) is None
    assert ends([0.98**k for k in range(200)], patience=4) == 6


def test_the_reason_has_the_numbers():
    stall = Stall(5, 0)
    for iteration, residual in enumerate((1.0, 0.5, 0.48, 0.49), 1):
        stall.is_over(iteration, residual)

    text = "has not fallen by 10 % below 5.0e-01 in 5 iterations"
    assert stall.text(0.49) == f"the residual stalled: it is 4.9e-01, and {text}"
    assert stall.text(4.7).startswith("the residual stalled")
    assert stall.text(4.9, "change") == f"the change grew: it is 4.9e+00, and {text}"


def test_patience():
    assert checked_patience(None, 10) == 5000
    assert checked_patience(None, 7000) == 7000
    assert checked_patience(3, 7000) == 3
    with pytest.raises(ValueError, match="patience must be at least 1"):
        checked_patience(0, 10)

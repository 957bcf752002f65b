"""Decisions on steps: the lengths that `LidDrivenCavity` chooses, and the parts of a run."""

from fractions import Fraction

import pytest

from pysolvers._solver.clock import Clock
from pysolvers.flow.cavity._control import StepControl


def test_cap_recovers_by_one_percent_a_decision():
    control = StepControl(limit=0.5, step=0.1, cap=0.1, best=1e-12)

    for decision in range(1, 40):
        control.judge(2e-12)
        assert control.cap == pytest.approx(0.1 * 1.01**decision, rel=1e-12)


def test_cap_recovers_up_to_the_limit():
    control = StepControl(limit=0.1005, step=0.1, cap=0.1, best=1e-12)

    control.judge(2e-12)

    assert control.cap == 0.1005


@pytest.mark.parametrize(
    ("residual", "step"), [(0.25, 0.1), (1e-8, 0.25), (100.0, 0.005), (900.0, 0.002)]
)
def test_step_is_a_share_of_the_root_of_the_residual_and_grows_by_a_quarter(residual, step):
    """min(0.05 / sqrt(R), 1.25 times the step before), but at least 0.002."""
    control = StepControl(limit=0.5, step=0.2, cap=0.4, best=1.0)

    control.judge(residual)

    assert control.step == pytest.approx(step, rel=1e-14)


def test_cap_falls_to_half_the_step_where_no_residual_was_lower_for_long():
    control = StepControl(limit=0.5, step=0.1, cap=0.4, best=1e-4, fixed=False)

    for _ in range(50):
        assert control.judge(2e-4) == "go on"
    before = control.step
    control.judge(2e-4)

    assert control.cap == pytest.approx(before / 2 * 1.01, rel=1e-12)
    assert control.waiting == 0


@pytest.mark.parametrize(
    ("growth", "verdict"), [(1, "best"), (1.01, "go on"), (990, "go on"), (1010, "step back")]
)
def test_residual_explodes_when_it_grows_a_thousandfold(growth, verdict):
    control = StepControl(limit=0.5, step=0.1, cap=0.4, best=1e-6, best_step=0.08)

    assert control.judge(growth * 1e-6) == verdict
    if verdict == "step back":
        assert control.step == control.cap == 0.04


@pytest.mark.each_value
@pytest.mark.parametrize("dt", [0.1, 1 / 3, 1e-3, 0.7, 1.1e-7, 12.3])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 10, 1000, 123_456])
def test_a_multiple_of_the_step_needs_no_short_step(dt, count):
    """`until` is rounded, so that the quotient can be a little more or less than the count."""
    exact = float(count * Fraction(dt))
    for until in (exact, exact * (1 + 2**-52), exact * (1 - 2**-52)):
        assert Clock(dt).split(until) == (count, 0.0)


@pytest.mark.each_value
@pytest.mark.parametrize("part", [1e-6, 0.25, 0.5, 0.999])
@pytest.mark.parametrize("count", [0, 1, 9, 5000])
def test_rest_of_a_run_is_one_short_step(count, part):
    dt = 0.01
    clock = Clock(dt)

    whole, rest = clock.split(float((count + Fraction(part)) * Fraction(dt)))

    assert whole == count
    assert rest == pytest.approx(part * dt, rel=1e-6)


def test_split_counts_from_the_last_change_of_the_step():
    clock = Clock(0.1)
    clock.change(7, 0.04)

    assert clock.split(0.7 + 5 * 0.04) == (12, 0.0)
    whole, rest = clock.split(0.7 + 5.5 * 0.04)
    assert whole == 12 and rest == pytest.approx(0.02, rel=1e-9)

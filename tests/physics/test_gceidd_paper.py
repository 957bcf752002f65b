"""GCEIDD on the four problems of Foadaddini et al. (2022): numbers of independent programs.

The reference numbers were found by two programs written apart from this package, which agree
with each other to 11 digits. They hold for plain upwind differences and extrapolated feet.
"""

from functools import partial

import numpy as np
import pytest
from covering import slow

from pysolvers import ConvergenceError
from pysolvers.papers.gceidd2022 import (
    GCEIDD,
    decaying_bump,
    decaying_bump_exact,
    entering_fronts,
    heated_channel,
    published_errors,
    rotating_pulse,
    rotating_pulse_exact,
    table_errors,
)

DIGITS = pytest.approx
METHODS = {
    "CFD": {"scheme": "cfd"},
    "CP": {"scheme": "cp"},
    "MU-L": {"scheme": "mu", "predictor": "newest"},
    "MU-P": {"scheme": "mu", "predictor": "printed"},
}


def solver(problem, cells, dt, method, backend="cpu", **options):
    settings = {"upwind": "plain", "foot": "extrapolate", "bound": np.inf} | METHODS[method]
    nx, ny = cells if isinstance(cells, tuple) else (cells, cells)
    settings |= {"shape": (ny + 1, nx + 1), "dt": dt}
    return GCEIDD(problem, device=backend, **(settings | options))


def bump(method, diffusion, cells, strips, dt, backend="cpu", **options):
    """Return the errors of example 1 at time 1."""
    made = solver(decaying_bump(diffusion), cells, dt, method, backend, strips=strips, **options)
    return made.run(1.0).errors(decaying_bump_exact)


def pulse(method, diffusion, cells, strips, dt, steps, backend="cpu", **options):
    """Return the errors of example 2 after so many steps."""
    made = solver(rotating_pulse(diffusion), cells, dt, method, backend, strips=strips, **options)
    exact = partial(rotating_pulse_exact, diffusion=diffusion)
    return made.step(steps).result().errors(exact)


def fronts(method, courant, backend="cpu", **options):
    """Return example 3 at 48 h, on 256 by 256 cells in 32 strips."""
    made = solver(entering_fronts(), 256, courant / 256, method, backend, strips=32, **options)
    return made.step(round(48 / courant)).u


def channel(method, backend="cpu", *, speed=250.0, steps=960, courant=1, **options):
    """Return example 4 on 512 by 128 cells."""
    dt = courant * (0.25 / 512) / (speed * 0.025**2)
    settings = {"strips": (64, 16)} | options
    return solver(heated_channel(speed), (512, 128), dt, method, backend, **settings).step(steps).u


@pytest.mark.parametrize(
    ("method", "largest", "l2"),
    [
        ("CFD", 1.179512e-3, 2.563280e-4),
        ("CP", 1.442248e-3, 3.010930e-4),
        ("MU-L", 1.394538e-3, 2.936579e-4),
        ("MU-P", 1.448082e-3, 3.022319e-4),
    ],
)
def test_bump_on_128_cells(method, largest, l2, backend):
    errors = bump(method, 0.005, 128, 8, 1 / 1024, backend)

    assert errors == DIGITS((largest, l2), rel=1e-6)


@pytest.mark.parametrize(
    ("method", "largest", "l2"),
    [
        ("CFD", 1.600994e-3, 4.134748e-4),
        ("CP", 1.690993e-3, 4.340451e-4),
        ("MU-L", 1.677565e-3, 4.127196e-4),
        ("MU-P", 1.697944e-3, 4.352079e-4),
    ],
)
def test_diffusive_bump_on_64_cells(method, largest, l2, backend):
    errors = bump(method, 0.05, 64, 8, 1 / 1024, backend)

    assert errors == DIGITS((largest, l2), rel=1e-6)


@pytest.mark.parametrize(
    ("method", "largest", "l2"),
    [
        slow("CFD", 8.828547e-3, 1.449865e-3),
        ("CP", 1.525861e-2, 2.611289e-3),
        slow("MU-L", 1.637944e-2, 2.820659e-3),
        ("MU-P", 1.517309e-2, 2.591531e-3),
    ],
)
def test_pulse_on_128_cells(method, largest, l2, backend):
    errors = pulse(method, 0.005, 128, 8, 1 / 1024, 1608, backend)

    assert errors == DIGITS((largest, l2), rel=1e-6)


@pytest.mark.parametrize(
    ("method", "courant", "l2"),
    [
        ("CFD", 2, 1.526887e-4),
        ("CP", 2, 3.160798e-4),
        ("MU-L", 2, 2.835676e-4),
        ("MU-P", 2, 3.962655e-4),
        ("CP", 4, 4.540871e-4),
        ("MU-P", 4, 6.773862e-4),
    ],
)
def test_bump_at_large_steps(method, courant, l2, backend):
    errors = bump(method, 0.001, 256, 32, courant / 256, backend)

    assert errors[1] == DIGITS(l2, rel=1e-6)


def test_extrapolated_feet_grow_and_clamped_feet_do_not(backend):
    assert bump("CFD", 0.001, 256, 32, 4 / 256, backend)[1] > 1e3
    assert bump("CFD", 0.001, 256, 32, 4 / 256, backend, foot="clamp")[1] == DIGITS(
        3.07e-4, rel=0.01
    )


def test_growth_raises_with_step_and_courant_number(backend):
    made = solver(decaying_bump(0.001), 256, 4 / 256, "CFD", backend, strips=32, bound=1e3)

    with pytest.raises(ConvergenceError, match=r"after step \d+, with Courant number 4 ") as error:
        made.run(1.0)

    result = error.value.result
    assert 1 < result.steps == made.steps < 64
    assert np.abs(result.u).max() > 1e3
    assert result.stop_reason == "diverged"
    np.testing.assert_array_equal(result.u, made.u)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "ratio"), [("CFD", 0.996), ("CP", 0.785), ("MU-L", 2.684), ("MU-P", 0.573)]
)
def test_error_of_the_pulse_in_64_strips_over_one(method, ratio, backend):
    alone = pulse(method, 0.005, 256, 1, 1 / 1024, 1608, backend)[1]
    many = pulse(method, 0.005, 256, 64, 1 / 1024, 1608, backend)[1]

    assert many / alone == DIGITS(ratio, rel=0.01)
    assert method == "CFD" or alone == DIGITS(1.824224e-3, rel=1e-6)


@pytest.mark.parametrize(
    ("method", "l2"),
    [
        ("CFD", 3.378946e-4),
        slow("CP", 2.467087e-3),
        ("MU-L", 6.588908e-3),
        slow("MU-P", 1.033656e-2),
    ],
)
def test_pulse_at_courant_number_4(method, l2, backend):
    assert pulse(method, 0.005, 256, 32, 4 / 1024, 402, backend)[1] == DIGITS(l2, rel=1e-6)


def test_pulse_at_courant_number_8(backend):
    assert pulse("CP", 0.005, 256, 32, 8 / 1024, 201, backend)[1] == DIGITS(2.545915e-3, rel=1e-6)
    assert pulse("CFD", 0.005, 256, 32, 8 / 1024, 201, backend)[1] > 1e3


def test_fronts_at_courant_number_2(backend):
    fields = {method: fronts(method, 2, backend) for method in METHODS}

    assert fields["MU-P"].max() == DIGITS(1.29704, rel=1e-5)
    assert fields["MU-L"].max() == DIGITS(1.01453, rel=1e-5)
    # extrapolated feet make what enters oscillate, and the oscillation decays
    for method, mean, over in (("CFD", 0.38682538, 1e-7), ("CP", 0.38316602, 1e-9)):
        assert fields[method].min() >= -1e-9
        assert fields[method].max() <= 1 + over
        assert fields[method].mean() == DIGITS(mean, rel=1e-7)


@pytest.mark.parametrize(
    ("method", "temperature"),
    [slow("CFD", 294.1839), ("CP", 294.4008), ("MU-L", 298.4323), slow("MU-P", 294.4470)],
)
def test_channel_at_the_wall(method, temperature, backend):
    u = channel(method, backend)

    assert u[0, 358] == DIGITS(temperature, abs=2e-4)


@pytest.mark.slow
def test_error_falls_with_strips_for_cp_and_peaks_for_mu():
    counts = (1, 2, 4, 8, 16, 32, 64)
    cp, newest, printed = (
        np.array([bump(m, 0.001, 256, k, 1 / 256)[1] for k in counts])
        for m in ("CP", "MU-L", "MU-P")
    )

    assert (np.diff(cp) < 0).all()
    assert (cp[0], cp[-1]) == DIGITS((2.61e-4, 2.00e-4), rel=5e-3)
    assert newest == DIGITS(np.array([2.61, 2.68, 2.77, 2.85, 2.68, 2.26, 1.65]) * 1e-4, rel=5e-3)
    assert (printed[0], printed.max()) == DIGITS((2.61e-4, 2.70e-4), rel=5e-3)


@pytest.mark.slow
def test_errors_at_growing_steps():
    def errors(method, courants, **options):
        """Return the errors after the last whole step until time 1: `run` would shorten one."""
        found = []
        for c in courants:
            made = solver(decaying_bump(0.001), 256, c / 256, method, strips=32, **options)
            found.append(made.step(256 // c).result().errors(decaying_bump_exact)[1])
        return found

    assert errors("CFD", (1, 2, 3)) == DIGITS([7.6e-5, 1.53e-4, 2.3e-4], rel=0.01)
    assert errors("CFD", (4,))[0] == DIGITS(1.4e10, rel=0.05)
    assert errors("CFD", (16,), foot="clamp")[0] < 2e-3
    assert errors("CP", (1, 2, 4, 8, 16)) == DIGITS(
        [2.30e-4, 3.16e-4, 4.54e-4, 7.43e-4, 1.4e-3], rel=0.03
    )
    assert errors("MU-P", (1, 2, 4, 8)) == DIGITS([2.65e-4, 3.96e-4, 6.77e-4, 18.8e-4], rel=5e-3)
    assert errors("MU-L", (16,))[0] == DIGITS(3.7e-3, rel=0.02)


@pytest.mark.slow
def test_explicit_diffusion_bounds_the_diffusion_number():
    # r = a dt/h^2 of CP in 32 strips: fine at 5.1 (CFL 4), lost at 7.7 (CFL 6)
    assert bump("CP", 0.005, 256, 32, 4 / 256)[1] < 1e-3
    with pytest.warns(RuntimeWarning, match="the limit is a diffusion number of"):
        assert bump("CP", 0.005, 256, 32, 6 / 256)[1] > 1e3


@pytest.mark.slow
@pytest.mark.parametrize(("courant", "factor"), [(0.5, 2.25), (1, 2.68), (2, 2.77)])
def test_growth_of_the_error_of_mu_with_strips(courant, factor):
    steps = round(1608 / courant)
    alone, many = (pulse("MU-L", 0.005, 256, k, courant / 1024, steps)[1] for k in (1, 64))

    assert many / alone == DIGITS(factor, rel=0.01)


@pytest.mark.slow
def test_largest_errors_of_the_pulse_at_courant_number_8():
    errors = {m: pulse(m, 0.005, 256, 32, 8 / 1024, 201)[0] for m in ("CP", "MU-L", "MU-P")}

    assert errors == DIGITS({"CP": 0.015, "MU-L": 0.11, "MU-P": 0.66}, rel=0.05)


@pytest.mark.slow
def test_limit_of_extrapolated_feet_on_the_pulse():
    def error(courant):
        return pulse("CFD", 0.005, 256, 32, courant / 1024, round(1608 / courant))[1]

    assert [error(4), error(5)] == DIGITS([3.4e-4, 4.2e-4], rel=0.02)
    assert error(6) > 0.1


def test_characteristics_of_extrapolated_fronts_are_lost_at_courant_number_4():
    u = fronts("CFD", 4)

    assert u.min() < -90
    assert u.max() > 40
    for courant in (4, 8):
        u = fronts("CP", courant)
        assert u.min() >= -1e-9
        assert u.max() <= 1 + 1e-9


@pytest.mark.slow
def test_fast_flow_cools_the_channel():
    assert channel("CP").mean() == DIGITS(47.2, abs=0.05)
    assert channel("CP", speed=1000.0, steps=3840).mean() == DIGITS(35.7, abs=0.05)


@pytest.mark.each_value
@pytest.mark.parametrize("late", [False, True], ids=["in time", "late"])
@pytest.mark.parametrize("scheme", ["cfd", "cp"])
@pytest.mark.parametrize("table", [1, 3])
def test_tables_of_the_paper(table, scheme, late):
    published = published_errors(table)
    most = 0.0035 if late and scheme == "cfd" else 0.03

    for place, nodes in ((1, 64), (2, 128)):
        found = table_errors(table, nodes, late=late, scheme=scheme)
        expected = published[scheme, "linf"][place], published[scheme, "l2"][place]
        assert found == DIGITS(expected, rel=most)


def test_tables_are_four():
    assert [len(published_errors(table)) for table in (1, 2, 3, 4)] == [6, 6, 6, 6]
    with pytest.raises(ValueError, match="table must be 1, 2, 3 or 4, got 5"):
        published_errors(5)
    with pytest.raises(ValueError, match="table must be 1, 2, 3 or 4, got 0"):
        table_errors(0, 32)

"""GCEIDD on a GPU has the solution of the CPU, whatever scheme, kernels and strips."""

import itertools

import numpy as np
import pytest

from pysolvers import BackendError, ConvectionDiffusion, ConvergenceError, Dirichlet, Neumann
from pysolvers.papers.gceidd2022 import (
    GCEIDD,
    decaying_bump,
    entering_fronts,
    heated_channel,
    rotating_pulse,
)

SCHEMES = ("cp", "cfd", "mu")
SIDES = ("x-", "x+", "y-", "y+")
PROBLEMS = {
    "bump": lambda: decaying_bump(0.005),
    "pulse": lambda: rotating_pulse(0.005),
    "fronts": entering_fronts,
}


def pair(problem, cells, dt, **options):
    """Return the same solver on the GPU and on the CPU; `cells` are those along x and y."""
    nx, ny = cells if isinstance(cells, tuple) else (cells, cells)
    options |= {"shape": (ny + 1, nx + 1), "dt": dt}
    here = GCEIDD(problem, device="cuda", **options)
    return here, GCEIDD(problem, **{k: v for k, v in options.items() if k != "kernels"})


def assert_same(here, there, tolerance=1e-12):
    np.testing.assert_allclose(here.u, there.u, rtol=0, atol=tolerance * np.abs(there.u).max())
    assert here.steps == there.steps


@pytest.mark.parametrize("kernels", ["fused", "paper"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize(
    ("shape", "strips"),
    [
        (3, 1),
        ((5, 9), (1, 3)),
        (31, (10, 1)),
        ((33, 64), (4, 8)),
        ((127, 40), (42, 13)),
        ((256, 129), (8, 32)),
        ((300, 257), (19, 11)),
    ],
)
def test_solutions_are_those_of_the_cpu(name, shape, strips, scheme, kernels):
    cells = max(shape) if isinstance(shape, tuple) else shape
    dt = 0.5 / (4 if name == "pulse" else 1) / cells
    here, there = pair(PROBLEMS[name](), shape, dt, scheme=scheme, strips=strips, kernels=kernels)

    assert_same(here.step(100), there.step(100))


# Strips of 33 to 700 cells, of equal lengths and of two lengths, fewer lines than a block has, more
# strips than a cluster has blocks.
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scheme", ["cp", "cfd"])
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize(
    ("shape", "strips"),
    [
        ((99, 130), (3, 3)),
        ((131, 66), (3, 2)),
        ((1027, 300), (8, 7)),
        ((300, 1125), (5, 3)),
        ((1400, 80), (2, 2)),
        ((70, 1537), (2, 2)),
        ((500, 700), (9, 11)),
    ],
)
def test_long_strips(name, shape, strips, scheme, dtype):
    dt = 0.5 / (4 if name == "pulse" else 1) / max(shape)
    here, there = pair(PROBLEMS[name](), shape, dt, scheme=scheme, strips=strips, dtype=dtype)

    # "fronts" has a side with a given flux: the multipliers of its lines have rounding errors that
    # are the same in each step
    bound = 4e-6 if name != "fronts" else 160 * np.finfo(np.float32).eps
    assert_same(here.step(40), there.step(40), 1e-12 if dtype == np.float64 else bound)
    if name != "fronts":
        assert here.result().kernel == "ratio fused"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scheme", ["cp", "cfd"])
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("shape", [(70, 1537), (1400, 80)])
def test_long_strips_by_the_kernels_of_the_paper(name, shape, scheme, dtype):
    dt = 0.5 / (4 if name == "pulse" else 1) / max(shape)
    options = {"scheme": scheme, "strips": 2, "dtype": dtype, "kernels": "paper"}
    here, there = pair(PROBLEMS[name](), shape, dt, **options)

    assert_same(here.step(40), there.step(40), 1e-12 if dtype == np.float64 else 4e-6)
    assert here.result().kernel.startswith("paper")


@pytest.mark.parametrize("scheme", ["cp", "cfd"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_constant_in_long_strips_keeps_its_bits(scheme, dtype):
    problem = ConvectionDiffusion((3.0, -0.7), 0.01, initial=0.7, boundary=0.7)
    here = GCEIDD(
        problem,
        shape=(301, 517),
        dt=0.002,
        scheme=scheme,
        strips=(5, 4),
        dtype=dtype,
        device="cuda",
    )

    assert (here.step(30).u == dtype(0.7)).all()
    assert here.result().kernel == "ratio fused"


@pytest.mark.parametrize("kernels", ["fused", "paper"])
@pytest.mark.parametrize(
    "options",
    [
        {"scheme": "cp", "upwind": "plain", "foot": "extrapolate"},
        {"scheme": "cfd", "foot": "extrapolate"},
        {"scheme": "mu", "upwind": "plain"},
        {"scheme": "mu", "predictor": "printed"},
    ],
    ids=lambda o: "-".join(o.values()),
)
def test_options(options, kernels):
    here, there = pair(
        rotating_pulse(0.005), (130, 97), 2 / 1024, strips=(13, 7), kernels=kernels, **options
    )

    assert_same(here.step(100), there.step(100))


@pytest.mark.parametrize("kernels", ["fused", "paper"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_channel(scheme, kernels):
    here, there = pair(
        heated_channel(), (512, 128), 0.003125, scheme=scheme, strips=(64, 16), kernels=kernels
    )

    assert_same(here.step(100), there.step(100))


@pytest.mark.parametrize("kernels", ["fused", "paper"])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("kinds", list(itertools.product("dn", repeat=4)), ids="".join)
def test_every_set_of_sides_with_data_of_every_kind(rng, kinds, scheme, kernels):
    field, wave = rng.random((48, 71)), rng.random((48, 71))
    value = {"d": Dirichlet, "n": Neumann}
    problem = ConvectionDiffusion(
        (lambda x, y, t: wave * np.cos(t), lambda x, y: x - y),
        (lambda x, y: 0.001 + 0.01 * x * y, lambda x, y, t: 0.002 * (1 + t) + 0.001 * field),
        source=[(np.cos, field), (2.0, lambda x, y: x)],
        boundary={
            side: value[kind](lambda x, y, t: np.sin(3 * x + 2 * y + t))
            for side, kind in zip(SIDES, kinds, strict=True)
        },
        initial=wave,
    )
    here, there = pair(problem, (70, 47), 0.01, scheme=scheme, strips=(5, 4), kernels=kernels)

    assert_same(here.step(70), there.step(70))


@pytest.mark.parametrize("strategy", ["3s", "naive"])
@pytest.mark.parametrize("strips", [1, 2, 8, 32, 100])
def test_strategies_of_the_paper(strips, strategy):
    here, there = pair(
        rotating_pulse(0.005),
        (320, 300),
        1 / 2048,
        strips=strips,
        kernels="paper",
        strategy=strategy,
    )

    assert_same(here.step(20), there.step(20))


# Strips of 300 to 3 cells along x.
@pytest.mark.parametrize("strips", [1, 7, 10, 33, 100])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("limits", "stage"),
    [
        ({}, lambda longest: 1),
        ({"few_strips": 0}, lambda longest: 3 if longest < 32 else 2),
        ({"few_strips": 0, "short_strip": 0, "throttle": 0}, lambda longest: 2),
        ({"few_strips": 0, "throttle": 200_000}, lambda longest: 3 if longest < 32 else 2),
        ({"few_strips": 0, "short_strip": 50}, lambda longest: 3 if longest < 50 else 2),
    ],
)
def test_stages_of_the_strategy(limits, stage, dtype, strips):
    options = {"strips": (strips, 4), "kernels": "paper", "dtype": dtype}
    here, there = pair(rotating_pulse(0.005), (300, 90), 1 / 2048, **options, **limits)

    assert_same(here.step(10), there.step(10), 1e-12 if dtype == np.float64 else 2e-5)
    expected = stage(-(-300 // strips))
    assert here.result().kernel == f"paper, 3S stage {expected}"
    names = [f"{a} {part}" for a in "xy" for part in ("predict", "rows", "solve", "correct")]
    assert list(here.occupancy) == names
    assert all(0 < share <= 1 for share in here.occupancy.values())
    if limits.get("throttle") == 200_000 and expected == 2:
        assert here.occupancy["x solve"] == pytest.approx(128 / 2048)
    assert there.occupancy == {}


def test_stages_that_a_block_cannot_hold():
    solver = GCEIDD(
        rotating_pulse(0.005),
        shape=(33, 1001),
        dt=1e-4,
        kernels="paper",
        few_strips=0,
        short_strip=10_000,
        device="cuda",
    )
    with pytest.raises(BackendError, match="does not offer the operation"):
        solver.step()


@pytest.mark.parametrize("kernels", ["fused", "paper"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_single_precision(scheme, kernels):
    here, there = pair(
        rotating_pulse(0.005),
        (200, 150),
        1 / 1024,
        scheme=scheme,
        strips=(10, 5),
        kernels=kernels,
        dtype=np.float32,
    )

    assert_same(here.step(50), there.step(50), 2e-5)


@pytest.mark.parametrize(
    ("cells", "strips"), [(1024, 64), (2048, 16), (2048, 64), (2048, 128), (3000, 200)]
)
@pytest.mark.parametrize("kernels", ["fused", "paper"])
def test_large_grids(cells, strips, kernels):
    here, there = pair(rotating_pulse(0.005), cells, 0.25 / cells, strips=strips, kernels=kernels)

    assert_same(here.step(4), there.step(4))


# More lines than the device holds at once: blocks solve several groups of them.
@pytest.mark.parametrize(("cells", "strips"), [(2048, 8), (1999, 6)])
def test_long_strips_of_large_grids(cells, strips):
    here, there = pair(rotating_pulse(0.005), cells, 0.25 / cells, strips=strips)

    assert_same(here.step(4), there.step(4))


@pytest.mark.parametrize("strips", [1, (3, 7)])
@pytest.mark.parametrize("side", [Neumann(0.1), Dirichlet(0.1)])
def test_many_short_lines_by_the_kernels_of_the_paper(side, strips):
    problem = ConvectionDiffusion((0.3, 0.2), 0.01, boundary=side, initial=lambda x, y: x * y)
    here, there = pair(problem, (20, 70_000), 1e-9, strips=strips, kernels="paper")

    assert_same(here.step(3), there.step(3))


@pytest.mark.parametrize("kernels", ["fused", "paper"])
def test_a_call_ends_with_the_step_that_grows(kernels):
    problem = decaying_bump(0.001)
    options = {"scheme": "cfd", "strips": 8, "foot": "extrapolate", "bound": 10.0}
    solvers = pair(problem, 64, 4 / 64, kernels=kernels, **options)

    for solver in solvers:
        with pytest.raises(ConvergenceError, match="not at most 10 after step"):
            solver.step(1000)

    assert_same(*solvers, 1e-9)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_parts_are_timed(scheme):
    here, _ = pair(rotating_pulse(), 256, 1 / 1024, scheme=scheme, strips=16, kernels="paper")

    seconds = here.step(20).result().seconds

    for axis in ("x", "y"):
        for part in ("predict", "rows", "solve", "correct"):
            assert seconds[f"{axis} {part}"] > 0

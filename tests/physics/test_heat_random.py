"""Random problems of heat conduction with all data at once, against dense matrices."""

import heat_matrices as dense
import numpy as np
import pytest

from pysolvers import Dirichlet, HeatADI, Neumann, Robin

pytestmark = pytest.mark.filterwarnings(
    "ignore:HeatADI.*too large for the solution:RuntimeWarning",
    "ignore:HeatADI.*can leave the range:RuntimeWarning",
    "ignore:HeatADI.*can multiply waves:RuntimeWarning",
)
CONDITIONS = {"D": lambda: Dirichlet(0.25), "N": Neumann, "R": Robin, "P": lambda: "periodic"}


def sides_of(rng, axes):
    """Random conditions as `dense.matrices` takes them."""
    found = {}
    for axis in "xyz"[:axes]:
        if rng.random() < 0.25:
            found[axis + "-"] = found[axis + "+"] = ("P",)
            continue
        for end in "-+":
            choices = [("D",), ("N", rng.normal()), ("R", rng.uniform(0, 3), rng.normal())]
            found[axis + end] = choices[rng.integers(3)]
    return found


def problem(seed):
    """Options of `HeatADI`, the start, and the dense matrices."""
    rng = np.random.default_rng(seed)
    axes = 1 + seed % 3
    shape = tuple(int(n) for n in rng.integers(3, (15, 8, 6)[axes - 1], axes))
    sides, kind = sides_of(rng, axes), seed % 4
    ends = [np.cumsum(rng.uniform(0.1, 0.4, n + 1)) for n in shape[::-1]]
    if rng.random() < 0.4:
        ends = [0.2 * np.arange(n + 1) for n in shape[::-1]]
    k = rng.uniform(0.3, 3, shape) if rng.random() < 0.6 else 1.3
    c = 10 ** rng.uniform(-1, 1, shape) if rng.random() < 0.6 else 0.7
    q, start, values = (rng.normal(size=shape) for _ in range(3))
    holes = rng.random(shape) < 0.2
    options = {
        "shape": shape,
        "coordinates": [
            e if sides["xyz"[axis] + "-"] == ("P",) else e[:-1] for axis, e in enumerate(ends)
        ],
        "diffusivity": k,
        "heat_capacity": c,
        "source": q,
        "boundary": {side: CONDITIONS[name](*rest) for side, (name, *rest) in sides.items()},
        "dt": float(rng.uniform(0.01, 0.3)),
    }
    if kind:
        options |= {"holes": holes, "hole_temperature": values if kind == 2 else None}
        c = np.where(holes, np.inf, c)
        k = np.where(holes, 0.0, k) if kind != 2 else k
        start = np.where(holes, values, start) if kind == 2 else start
    lines = [e[:-1] for e in ends]
    period = {axis: e[-1] - e[0] for axis, e in enumerate(ends)}
    *matrices, given = dense.matrices(lines, sides, k, c, q, period)
    start[given.reshape(shape)] = 0.25
    return options | {"initial": start}, start, matrices


@pytest.mark.parametrize("seed", range(24))
def test_steps_are_those_of_dense_matrices(backend, seed):
    options, start, matrices = problem(seed)
    split = ("crank-nicolson", "peaceman-rachford", "douglas-gunn")[start.ndim - 1]
    by_scheme = {split: (dense.split_step, 1e-11), "implicit": (dense.implicit_step, 1e-6)}
    for scheme, (step, tolerance) in by_scheme.items():
        expected = start
        for _ in range(3):
            expected = step(*matrices, expected, options["dt"])
        for kind, factor in ((np.float64, 1.0), (np.float32, 3e-4 / tolerance)):
            solver = HeatADI(
                **options, scheme=scheme, damped_start=False, dtype=kind, device=backend
            )
            found = solver.step(3).u
            atol = 10 * tolerance * factor * max(1, abs(expected).max())
            np.testing.assert_allclose(found, expected, rtol=0, atol=atol)

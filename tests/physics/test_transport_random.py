"""Random problems of advection and diffusion with all data at once, against dense matrices."""

import numpy as np
import pytest
import transport_matrices as dense
from parabolic_cases import named

from pysolvers import AdvectionDiffusion, ConvectionDiffusion, Dirichlet, Neumann, Robin

pytestmark = pytest.mark.filterwarnings("ignore:AdvectionDiffusion.*Courant:RuntimeWarning")
DIFFERENCES = ("central", "upwind", "third-order")
FORMS = ("number", "array", "line", "place", "time", "both")


class Data:
    """A quantity in one of the forms that users give, and its values at nodes and times."""

    def __init__(self, rng, places, scale=1.0, middle=0.0):
        """Take `places`, coordinates by name that broadcast to the nodes, as x, y, ..."""
        self.places, names = places, list(places)
        shape = np.broadcast_shapes(*(place.shape for place in places.values()))
        a, b, c, d = rng.uniform(-0.5, 0.5, 4)
        form = FORMS[rng.integers(len(FORMS))]
        if form == "number" or not names:
            self.given = middle + scale * a
        elif form == "array":
            self.given = middle + scale * rng.uniform(-1, 1, shape)
        elif form == "line":  # values of one axis are stored as one line
            size = [1] * len(shape)
            along = rng.integers(len(shape))
            size[along] = shape[along]
            self.given = middle + scale * rng.uniform(-1, 1, size)
        elif form == "time":
            self.given = lambda t: middle + scale * (a + b * np.sin(5 * t + c))
        else:
            used = [name for name in names if rng.random() < 0.7] or names[:1]

            def of(t=0.0, **at):
                phase = sum((2 + k) * place for k, place in enumerate(at.values()))
                return middle + scale * (a * np.sin(5 * t + c) + b * np.cos(phase + d + 3 * t))

            self.given = named([*used, "t"] if form == "both" else used, of)
            self.used = {name: places[name] for name in used}
        self.form, self.shape = form, shape

    def at(self, t):
        value = self.given
        if callable(value):
            when = {"t": t} if self.form in ("time", "both") else {}
            value = value(**(getattr(self, "used", {}) | when))
        return np.broadcast_to(np.asarray(value, float), self.shape)


class Problem:
    """A random problem, its solver, and its parts at a time as dense matrices."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        axes = 2 + seed % 2
        self.names = names = "xyz"[:axes]
        shape = tuple(int(n) for n in rng.integers(4, 9 if axes == 2 else 7, axes))
        extent = [(low, low + rng.uniform(0.5, 2)) for low in rng.uniform(-1, 1, axes)]
        kinds = {}
        for name in names:
            if rng.random() < 0.3:
                kinds[name + "-"] = kinds[name + "+"] = "P"
            else:
                kinds |= {name + sign: "DNRO"[rng.integers(4)] for sign in "-+"}
        self.lines, self.periods = [], {}
        for axis, (name, (low, high)) in enumerate(zip(names, extent, strict=True)):
            n, is_periodic = shape[-1 - axis], kinds[name + "-"] == "P"
            self.lines.append(np.linspace(low, high, n + is_periodic)[:n])
            if is_periodic:
                self.periods[axis] = high - low
        places = {
            name: line.reshape(-1, *[1] * axis)
            for axis, (name, line) in enumerate(zip(names, self.lines, strict=True))
        }
        self.velocity = [Data(rng, places, 2.0) for _ in names]
        self.diffusion = [Data(rng, places, 0.1, 0.1) for _ in names]
        if seed % 5 == 0:  # one diffusion for all axes
            self.diffusion = self.diffusion[:1] * axes
        self.source, self.factor = Data(rng, places, 3.0), 1.0
        source = self.source.given
        if self.source.form not in ("time", "both") and rng.random() < 0.5:
            self.factor = lambda t: np.cos(4 * t)
            source = [(self.factor, source)]
        self.sides, boundary = {}, {}
        for side, kind in kinds.items():
            if kind == "P":
                boundary[side] = "periodic"
                continue
            others = [pair for pair in zip(names, self.lines, strict=True) if pair[0] != side[0]]
            at = {name: line.reshape(-1, *[1] * k) for k, (name, line) in enumerate(others)}
            data, coefficient = Data(rng, at, 1.5), float(rng.uniform(0, 3))
            self.sides[side] = kind, coefficient, data
            boundary[side] = {
                "D": Dirichlet(data.given),
                "N": Neumann(data.given),
                "R": Robin(coefficient, data.given),
                "O": "outflow",
            }[kind]
        self.start, self.dt = float(rng.uniform(-1, 1)), float(rng.uniform(0.01, 0.1))
        self.initial = rng.normal(size=shape)
        one = self.diffusion[0].given if seed % 5 == 0 else [d.given for d in self.diffusion]
        self.problem = ConvectionDiffusion(
            [v.given for v in self.velocity],
            one,
            extent=extent,
            boundary=boundary,
            source=source,
            initial=self.initial,
        )

    def parts(self, differences, t):
        factor = self.factor(t) if callable(self.factor) else self.factor
        return dense.parts(
            differences,
            self.lines,
            self.periods,
            {name: (kind, h, data.at(t)) for name, (kind, h, data) in self.sides.items()},
            [v.at(t) for v in self.velocity],
            [d.at(t) for d in self.diffusion],
            factor * self.source.at(t),
        )

    def expected(self, differences, steps, *, damped):
        t, dt = self.start, self.dt
        old = self.parts(differences, t)
        u = np.where(old.given, old.values, self.initial.ravel())
        for k in range(steps):
            new = self.parts(differences, t + (k + 1) * dt)
            if damped and k == 0:
                middle = self.parts(differences, t + dt / 2)
                u = dense.damped_step([old, middle, new], u, dt)
            else:
                u = dense.step(old, new, u, dt)
            old = new
        return u.reshape(self.initial.shape)


@pytest.mark.parametrize("differences", DIFFERENCES)
@pytest.mark.parametrize("seed", range(24))
def test_steps_are_those_of_dense_matrices(backend, seed, differences):
    problem, damped = Problem(seed), seed % 3 == 0
    expected = problem.expected(differences, 3, damped=damped)
    for dtype, tolerance in ((np.float64, 1e-12), (np.float32, 1e-5)):
        solver = AdvectionDiffusion(
            problem.problem,
            problem.initial.shape,
            problem.dt,
            differences=differences,
            damped_start=damped,
            start_time=problem.start,
            dtype=dtype,
            device=backend,
        )
        found = solver.step(3).u
        atol = tolerance * max(1, np.abs(expected).max())
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol)

"""Lines of HeatADI in row-sum form: constants are kept, and any k and dt lose no digits.

The truth of a step is the factored step of the scheme in 60 digits.
"""

import numpy as np
import pytest
from mpmath import mp, mpf

from pysolvers import HeatADI, Neumann, Robin

pytestmark = pytest.mark.filterwarnings(
    "ignore:HeatADI.*too large for the solution:RuntimeWarning",
    "ignore:HeatADI. in (two|three) dimensions:RuntimeWarning",
)

DTYPES = (np.float32, np.float64)
SCHEMES = ("peaceman-rachford", "douglas-gunn")


def conductivity(rng, shape):
    """Random from node to node, or with a slanted jump, or of smooth layers; ratios to 1e8."""
    ratio = 10.0 ** rng.uniform(0, 8)
    places = np.meshgrid(*(np.linspace(0, 1, n) for n in shape), indexing="ij")
    slope = sum(rng.normal() * place for place in places)
    kind = rng.integers(3)
    if kind == 0:
        return ratio ** -rng.random(shape)
    if kind == 1:
        return np.where(slope > np.median(slope), 1.0, 1 / ratio)
    return ratio ** -(0.5 + 0.5 * np.sin(5 * slope))


@pytest.mark.parametrize("seed", range(12))
def test_an_insulated_constant_keeps_its_bits(backend, seed):
    rng = np.random.default_rng(seed)
    for _ in range(8):
        axes = int(rng.choice([2, 2, 3]))
        shape = tuple(int(n) for n in rng.integers(3, (40, 40, 9)[:axes]))
        # Kernels for constant k on a device round the sums of each chunk of rows.
        varies = rng.random() < 0.7 or backend == "cuda"
        k = conductivity(rng, shape) if varies else rng.uniform(0.1, 10)
        sides = {name: Neumann() if rng.random() < 0.6 else "periodic" for name in "xyz"[:axes]}
        kind = DTYPES[rng.integers(2)]
        level = float(kind(rng.normal() * 10.0 ** rng.integers(-3, 4)))
        solver = HeatADI(
            shape,
            spacing=tuple(rng.uniform(0.5, 2, axes)),
            dt=10.0 ** rng.uniform(-3, 8),
            diffusivity=k,
            boundary=sides,
            initial=level,
            scheme=SCHEMES[rng.integers(2)] if axes == 2 else "douglas-gunn",
            damped_start=bool(rng.random() < 0.3),
            dtype=kind,
            device=backend,
        )
        facts = f"{solver!r}, {sides}, {kind.__name__}, varies: {varies}, level {level}"
        np.testing.assert_array_equal(solver.step(4).u, np.full(shape, level, kind), facts)
        solver.dt = 10.0 ** rng.uniform(-3, 8)
        np.testing.assert_array_equal(solver.step(3).u, np.full(shape, level, kind), facts)


class Exact:
    """The operators K and the factored steps, in numbers of 60 digits; arrays [y][x]."""

    def __init__(self, k, spacing, dt, sides):
        self.k = np.vectorize(mpf)(k)
        self.r = [mpf(float(dt)) / mpf(float(h)) ** 2 for h in spacing]
        self.exchange = [2 * mpf(float(dt)) / mpf(float(h)) for h in spacing]
        self.sides = sides  # by axis x, y: "periodic" or a pair of ("value" | "flux", h, level)

    def row(self, axis, k, i):
        """Couplings to the neighbours of node i, exchange and inflow: of K/2."""
        n, ends = len(k), self.sides[axis]
        couplings, exchange, inflow = {}, mpf(0), mpf(0)
        for step, end in ((-1, 0), (1, 1)):
            near = i + step
            if ends == "periodic":
                near %= n
            elif not 0 <= near < n:
                _, h, level = ends[end]
                exchange += self.exchange[axis] * h / 2
                inflow += self.exchange[axis] * level / 2
                continue
            weight = self.r[axis] * k[i] * k[near] / (k[i] + k[near])
            if ends != "periodic" and not 0 <= i - step < n:
                weight *= 2
            couplings[near] = couplings.get(near, 0) + weight
        return couplings, exchange, inflow

    def lines(self, axis):
        for j in range(self.k.shape[axis]):  # axis 0 is x: rows of the array
            yield j, ((j, slice(None)) if axis == 0 else (slice(None), j))

    def is_given(self, axis, i):
        ends, n = self.sides[axis], self.k.shape[1 - axis]
        return ends != "periodic" and (
            (i == 0 and ends[0][0] == "value") or (i == n - 1 and ends[1][0] == "value")
        )

    def half(self, axis, field):
        """-K/2 of a field, with the inflow, at the unknowns; 0 at given values."""
        out = np.full(field.shape, mpf(0))
        for j, at in self.lines(axis):
            if self.is_given(1 - axis, j):
                continue
            t, k = field[at], self.k[at]
            for i in range(len(t)):
                if self.is_given(axis, i):
                    continue
                couplings, exchange, inflow = self.row(axis, k, i)
                value = inflow - exchange * t[i]
                out[at][i] = value + sum(c * (t[near] - t[i]) for near, c in couplings.items())
        return out

    def solve(self, axis, right, known, *, homogeneous=False):
        """(1 + K/2) x = right along an axis; `known` has the given values."""
        out = known.copy()
        for j, at in self.lines(axis):
            if self.is_given(1 - axis, j):
                continue
            k, n = self.k[at], len(self.k[at])
            unknown = [i for i in range(n) if not self.is_given(axis, i)]
            place = {i: p for p, i in enumerate(unknown)}
            a, b = mp.zeros(len(unknown)), mp.zeros(len(unknown), 1)
            for p, i in enumerate(unknown):
                couplings, exchange, inflow = self.row(axis, k, i)
                a[p, p] += 1 + exchange + sum(couplings.values())
                b[p] = right[at][i] + (0 if homogeneous else inflow)
                for near, c in couplings.items():
                    if near in place:
                        a[p, place[near]] -= c
                    else:
                        b[p] += c * known[at][near]
            x = mp.lu_solve(a, b)
            for p, i in enumerate(unknown):
                out[at][i] = x[p]
        return out

    def step(self, scheme, field):
        """The field after a step with constant data, and the largest number on the way."""
        if scheme == "peaceman-rachford":
            first = field + self.half(1, field)
            middle = self.solve(0, first, field)
            second = middle + self.half(0, middle)
            return self.solve(1, second, field), (field, first, middle, second)
        change = 2 * (self.half(0, field) + self.half(1, field))
        none = np.full(field.shape, mpf(0))
        one = self.solve(0, change, none, homogeneous=True)
        two = self.solve(1, one, none, homogeneous=True)
        return field + two, (field, change, one, two)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("scheme", SCHEMES)
def test_steps_of_any_k_units_and_length(backend, scheme, seed):
    """Slanted jumps of k, spacings of 1e-9 to 1e6, k of 1e-12 to 1e6, k dt/h^2 of 1e-3 to 1e8."""
    mp.dps = 60
    rng = np.random.default_rng(100 + seed)
    for kind in DTYPES:
        shape = tuple(int(n) for n in rng.integers(4, 8, 2))
        k = conductivity(rng, shape).astype(kind) * kind(10.0 ** rng.uniform(-12, 6))
        k = np.maximum(k, kind(1e-17)).astype(np.float64)
        h = 10.0 ** rng.uniform(-9, 6) * np.array([1.0, 10 ** rng.uniform(-1, 1)])
        dt = 10.0 ** rng.uniform(-3, 8) * h.min() ** 2 / k.max()
        level = float(kind(rng.uniform(-300, 300)))
        biot = float(rng.uniform(0.1, 10) * k.max() / (h.max() * max(shape)))
        sides, exact = {}, []
        for name, nodes in zip("xy", shape[::-1], strict=True):
            if rng.random() < 0.3:
                sides[name] = "periodic"
                exact.append("periodic")
                continue
            pair = []
            for end in "-+":
                choice = rng.integers(3) if nodes > 4 else 0
                sides[name + end] = (level, Neumann(), Robin(biot, level))[choice]
                kept = (
                    ("value", 0, mpf(level)),
                    ("flux", mpf(0), mpf(0)),
                    ("flux", mpf(biot), mpf(biot) * mpf(level)),
                )
                pair.append(kept[choice])
            exact.append(pair)
        field = (level + rng.normal(size=shape)).astype(kind)
        solver = HeatADI(
            shape,
            spacing=tuple(h),
            dt=dt,
            diffusivity=k,
            boundary=sides,
            initial=field,
            scheme=scheme,
            damped_start=False,
            dtype=kind,
            device=backend,
        )
        start = np.vectorize(mpf)(solver.u.astype(np.float64))
        expected, between = Exact(k, h, dt, exact).step(scheme, start)
        found = solver.step().u.astype(np.float64)
        # Rounding the fields between the sweeps has this effect, whatever the solution.
        scale = max(float(abs(one).max()) for one in (*between, expected))
        error = np.abs(found - expected.astype(np.float64)).max()
        facts = f"seed {seed}, {solver!r}, {kind.__name__}, {sides}"
        assert error <= 30 * np.finfo(kind).eps * scale, facts


@pytest.mark.parametrize("r", [30.0, 3000.0])
@pytest.mark.parametrize("sides", ["periodic", Neumann(), 0.0], ids=["periodic", "flux", "value"])
def test_rough_fields_lose_no_digits_between_the_sweeps(backend, rng, sides, r):
    """The right-hand sides are as large as r times the field, and its solution is not.

    The truth is a dense solve with one refinement in extended precision.
    """
    n = 48
    k = np.zeros((n, n), np.longdouble)
    for i in range(n):
        for near in (i - 1, i + 1):
            if sides == "periodic" or 0 <= near < n:
                half = 2 if sides != "periodic" and i in (0, n - 1) else 1
                k[i, i] += half * r / 2
                k[i, near % n] -= half * r / 2
    if sides == 0.0:
        k[[0, -1]] = 0
    one = np.eye(n, dtype=np.longdouble)

    def solve(right):
        matrix = (one + k).astype(np.float64)
        x = np.linalg.solve(matrix, right.astype(np.float64)).astype(np.longdouble)
        for _ in range(3):
            rest = (right - (one + k) @ x).astype(np.float64)
            x = x + np.linalg.solve(matrix, rest)
        return x

    start = rng.random((n, n))
    if sides == 0.0:
        start[[0, -1]] = start[:, [0, -1]] = 0
    solver = HeatADI(
        (n, n), 1.0, r, boundary=sides, initial=start, damped_start=False, device=backend
    )
    expected = start.astype(np.longdouble)
    for _ in range(3):
        middle = solve(((one - k) @ expected).T).T
        expected = solve(((one - k) @ middle.T).T)

    assert np.abs(solver.step(3).u - expected).max() < 2e-15 + 2.5e-16 * r


def bar(dtype, scheme, r, backend, *, is_insulated):
    """300 +- 10 K, and a bar of 1e4 times the conductivity of what is around it."""
    s = np.linspace(0, 1, 48)
    k = np.where(np.abs(s - 0.5) < 0.15, 1.0, 1e-4)[:, None] * np.ones(48)
    ends = {"x": Neumann()} if is_insulated else {"x-": 290.0, "x+": 310.0}
    return HeatADI(
        (48, 48),
        1.0,
        r,
        diffusivity=k,
        boundary={"y": Neumann()} | ends,
        initial=300 + 10 * np.sign(s - 0.5) * np.ones((48, 1)),
        dtype=dtype,
        scheme=scheme,
        device=backend,
    )


@pytest.mark.parametrize("r", [1e2, 1e4, 1e6])
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("is_insulated", [False, True])
def test_a_bar_in_single_precision(backend, scheme, r, is_insulated):
    """The temperatures are those of double precision but for the rounding of the steps."""
    one, other = (
        bar(kind, scheme, r, backend, is_insulated=is_insulated).step(50).u for kind in DTYPES
    )

    assert np.abs(one - other).max() < 12 * np.finfo(np.float32).eps * 310


@pytest.mark.parametrize("seed", range(12))
def test_long_lines_of_any_k(backend, seed):
    """Many chunks, jumps of k to 1e7 and large exchanges; one step in single precision.

    The right-hand side of the first sweep is not larger than `scale`, that of the second one not
    than three times as large, because a solution lies between the right-hand sides. A dozen
    roundings of `scale` are allowed.
    """
    rng = np.random.default_rng(200 + seed)
    shape = (200, 9) if seed % 2 else (9, 200)
    k = np.maximum(conductivity(rng, shape), 1e-7).astype(np.float32).astype(float)
    r, biot, level = 10.0 ** rng.uniform(0, 6), 10.0 ** rng.uniform(-3, 1), 20.0
    given = level, Neumann(), Robin(biot, level)
    sides = {name + end: given[rng.integers(3)] for name in "xy" for end in "-+"}
    field = (level + rng.normal(size=shape)).astype(np.float32).astype(float)
    one, other = (
        HeatADI(
            shape,
            1.0,
            r,
            diffusivity=k,
            boundary=sides,
            initial=field,
            scheme="peaceman-rachford",
            damped_start=False,
            dtype=kind,
            device=device,
        )
        for kind, device in ((np.float32, backend), (np.float64, "cpu"))
    )
    flows = r * 2 * k[1:] * k[:-1] / (k[1:] + k[:-1]) * np.abs(np.diff(field, axis=0))
    scale = np.abs(field).max() + flows.max()

    error = np.abs(one.step().u - other.step().u).max()

    assert error <= 6 * np.finfo(np.float32).eps * scale, f"{one!r}, {sides}"


@pytest.mark.parametrize("ends", [{"y-": 0.0, "y+": 1.0}, {"y": Neumann()}], ids=["value", "flux"])
@pytest.mark.parametrize("r", [1.0, 300.0, 3000.0])
def test_smooth_fields_far_from_the_first_value(backend, ends, r):
    """Rounding errors are relative to the differences along a line, not to those from its ends.

    Four roundings of 1, the largest value, are allowed in each of two sweeps of ten steps.
    """
    y = np.linspace(0, 1, 1000)
    field = ((1 - np.exp(-100 * y))[:, None] * np.ones(5)).astype(np.float32).astype(float)
    one, other = (
        HeatADI(
            field.shape,
            1.0,
            r,
            diffusivity=np.ones(field.shape),
            boundary={"x": Neumann()} | ends,
            initial=field,
            scheme="peaceman-rachford",
            damped_start=False,
            dtype=kind,
            device=backend,
        )
        for kind in DTYPES
    )

    error = np.abs(one.step(10).u - other.step(10).u).max()

    assert error <= 80 * np.finfo(np.float32).eps

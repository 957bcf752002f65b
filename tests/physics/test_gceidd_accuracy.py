"""GCEIDD: rounding errors of a step, against the rows in 60 digits, for any diffusion number."""

import itertools

import mpmath
import numpy as np
import pytest

from pysolvers import GCEIDD, ConvectionDiffusion, Dirichlet, Neumann

SCHEMES = ("cp", "cfd", "mu")
NUMBERS = (1e-3, 1.0, 1e3, 1e5, 1e8)  # a dt/h^2

exactly = np.vectorize(mpmath.mpf, otypes=[object])


@pytest.mark.filterwarnings("ignore:GCEIDD. with .* is unstable")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_insulated_constant_keeps_its_bits(scheme, dtype, backend, rng):
    shape = (14, 41)
    for number, strips, varies in itertools.product((*NUMBERS, 1e20), (1, (9, 3)), (False, True)):
        a = number * (0.01 + rng.random(shape)) if varies else number
        b = rng.normal(size=(14, 1)) * 10, rng.normal(size=(1, 41)) * 10
        problem = ConvectionDiffusion(
            b if varies else (3.0, -2.0),
            a,
            extent=((0, 40), (0, 13)),
            boundary=Neumann(),
            initial=20.3,
        )
        solver = GCEIDD(
            problem,
            shape=shape,
            dt=1.0,
            scheme=scheme,
            strips=strips,
            dtype=dtype,
            device=backend,
        )

        np.testing.assert_array_equal(solver.step(20).u, np.full(shape, 20.3, dtype))


def half(values):
    """Return means at half nodes, with the values of the ends beyond them."""
    between = (values[:, :-1] + values[:, 1:]) / 2
    return np.concatenate([values[:, :1], between, values[:, -1:]], axis=1)


def solved_rows(lower, diag, upper, right):
    n = diag.shape[1]
    diag, x = diag.copy(), right.copy()
    for i in range(1, n):
        m = lower[:, i] / diag[:, i - 1]
        diag[:, i] = diag[:, i] - m * upper[:, i - 1]
        x[:, i] = x[:, i] - m * x[:, i - 1]
    x[:, -1] = x[:, -1] / diag[:, -1]
    for i in range(n - 2, -1, -1):
        x[:, i] = (x[:, i] - upper[:, i] * x[:, i + 1]) / diag[:, i]
    return x


def sweep(u, older, a, b, f, ends, h, dt, scheme, strips):
    """Sweep along the last axis by the formulas of the documentation; return V and a scale."""
    n = u.shape[1] - 1
    ah, bh = half(a), half(b)
    q = dt * (bh[:, 1:] - bh[:, :-1]) / h
    place = np.clip(exactly(np.arange(n + 1)) - b * dt / h, 0, n)
    k = np.clip(np.vectorize(mpmath.floor, otypes=[object])(place), 0, n - 1).astype(int)
    low, high = np.take_along_axis(u, k, 1), np.take_along_axis(u, k + 1, 1)
    foot = low + (place - k) * (high - low)
    if scheme == "cfd":
        right_flow = left_flow = dt * ah / h**2
        right = foot + dt * f / 2
    else:
        star = ah / (1 + h * abs(bh) / (2 * ah))
        right_flow = dt * (star / h**2 + np.maximum(bh, 0) / h)
        left_flow = dt * (star / h**2 - np.minimum(bh, 0) / h)
        right = u + dt * f / 2
    lower, upper = -right_flow[:, :-1], -left_flow[:, 1:]
    diag = 1 + q - lower - upper
    cuts = [j * n // strips for j in range(1, strips)]
    spread = np.diff(ah[:, 1:-1] * np.diff(u)) / h**2
    known = {}
    for i in cuts:
        known[i] = (
            2 * u[:, i] - older[:, i]
            if scheme == "mu"
            else ((1 - q[:, i]) * foot[:, i] + dt * spread[:, i - 1] + dt * f[:, i] / 2)
        )
    for at, (kind, value) in zip((0, n), ends, strict=True):
        if kind == "dirichlet":
            known[at] = value
            continue
        beyond = -lower[:, 0] if at == 0 else -upper[:, -1]
        right[:, at] = right[:, at] + 2 * h * value * beyond
        if at == 0:
            upper[:, 0], lower[:, 0] = upper[:, 0] + lower[:, 0], 0 * lower[:, 0]
        else:
            lower[:, -1], upper[:, -1] = upper[:, -1] + lower[:, -1], 0 * upper[:, -1]
    for i, value in known.items():
        lower[:, i], diag[:, i], upper[:, i], right[:, i] = 0, 1, 0, value
    v = solved_rows(lower, diag, upper, right)
    for i in cuts:
        v[:, i] = 2 * (v[:, i + 1] + v[:, i - 1]) / 3 - (v[:, i + 2] + v[:, i - 2]) / 6
    sizes = [
        abs(u).max(),
        (dt * abs(f) / 2).max(),
        abs(v).max(),
        *(abs(p).max() for p in known.values()),
    ]
    return v, max(sizes)


def drawn(rng, number, scheme, strips, dtype):
    """Return a random problem with units far from 1, and what a step needs of it."""
    shape = ny, nx = (7, 10)
    length, unit, clock = (
        10.0 ** rng.uniform(-9, 9),
        10.0 ** rng.uniform(-15, 15),
        10.0 ** rng.uniform(-3, 3),
    )

    def rounded(values):
        return np.asarray(values, dtype).astype(float)

    h = rng.uniform(0.5, 2, 2) * length
    extent = ((0.0, (nx - 1) * h[0]), (0.0, (ny - 1) * h[1]))
    h = extent[0][1] / (nx - 1), extent[1][1] / (ny - 1)
    # Contrasts up to 1000 along a line; feet and predictions need moderate Courant numbers.
    a = [rounded(number * s**2 / clock * 10.0 ** rng.uniform(-3, 0, shape)) for s in h]
    courant = 10.0 ** rng.uniform(-3, 0.6 if scheme == "cfd" or strips != (1, 1) else 3)
    across = rng.normal(size=(ny, 1)), rng.normal(size=(1, nx))
    along = [0.1 * rng.uniform(-1, 1, shape) for _ in h]
    b = [rounded(s / clock * (courant * w + w2)) for s, w, w2 in zip(h, across, along, strict=True)]
    sign = rng.choice([0.0, 1.0])  # from both signs, or far from 0
    initial = rounded(unit * (rng.uniform(-1, 1, shape) + 1e3 * sign))
    field = rounded(unit / clock * rng.normal(size=shape) * rng.choice([0.0, 1.0]))
    sides, boundary = {}, {}
    for side, axis in (("x-", 0), ("x+", 0), ("y-", 1), ("y+", 1)):
        count, across_a = (ny, a[0]) if axis == 0 else (nx, a[1])
        edge = (np.s_[:, 0], np.s_[:, -1])[side[1] == "+"] if axis == 0 else (0, -1)[side[1] == "+"]
        if rng.random() < 0.5:
            values = rounded(unit * (rng.uniform(-1, 1, count) + 1e3 * sign))
            sides[side], boundary[side] = ("dirichlet", values), Dirichlet(values)
        else:
            slope = rounded(unit / h[axis] * rng.uniform(-1, 1, count) * rng.choice([0.0, 1.0]))
            sides[side] = ("neumann", slope)
            boundary[side] = Neumann(slope * across_a[edge]) if slope.any() else Neumann()
    problem = ConvectionDiffusion(
        b, a, extent=extent, source=field, boundary=boundary, initial=initial
    )
    return problem, (initial, a, b, field, sides, h, clock)


def exact_step(scheme, strips, initial, a, b, field, sides, h, dt):
    u, f = exactly(initial), exactly(field)
    older = u
    a, b = [exactly(v) for v in a], [exactly(v) for v in b]
    sides = {name: (kind, exactly(v)) for name, (kind, v) in sides.items()}
    dt, scale = mpmath.mpf(dt), 0
    for axis, names in enumerate((("x-", "x+", "y-", "y+"), ("y-", "y+", "x-", "x+"))):

        def turn(values, axis=axis):
            return values.T if axis else values

        lines = slice(
            sides[names[2]][0] == "dirichlet", -1 if sides[names[3]][0] == "dirichlet" else None
        )
        ends = [(sides[name][0], sides[name][1][lines]) for name in names[:2]]
        swept, size = sweep(
            *(turn(values)[lines] for values in (u, older, a[axis], b[axis], f)),
            ends,
            mpmath.mpf(h[axis]),
            dt,
            scheme,
            strips[axis],
        )
        turned = turn(u.copy())
        turned[lines] = swept
        older, u, scale = u, turn(turned), max(scale, size)
    return u, scale, sides


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_step_has_rounding_errors_only(scheme, dtype, backend):
    seed = int(np.random.default_rng().integers(2**31))
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    worst = 0.0
    with mpmath.workdps(60):
        for number, strips in itertools.product(NUMBERS, ((1, 1), (3, 2))):
            # The explicit prediction multiplies rounding errors by the diffusion number.
            if strips != (1, 1) and scheme != "mu" and number > 1:
                continue
            problem, data = drawn(rng, number, scheme, strips, dtype)
            solver = GCEIDD(
                problem,
                shape=data[0].shape,
                dt=data[-1],
                scheme=scheme,
                strips=strips,
                dtype=dtype,
                device=backend,
            )
            u = solver.step().u
            expected, scale, sides = exact_step(scheme, strips, *data)
            inner = tuple(
                slice(
                    sides[n + "-"][0] == "dirichlet",
                    -1 if sides[n + "+"][0] == "dirichlet" else None,
                )
                for n in "yx"
            )
            error = (
                float(abs(exactly(u.astype(float)) - expected)[inner].max() / scale)
                / np.finfo(dtype).eps
            )
            print(f"{number:g} {strips}: {error:.1f} eps")
            worst = max(worst, error)
    assert worst < 20

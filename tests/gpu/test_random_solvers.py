"""Random problems for every solver: the GPU has the results of the CPU, whatever the options.

PYSOLVERS_RANDOM_SECONDS is the time of all kinds together, 2 seconds each by default; each makes at
least 3 cases. The seed is drawn anew, PYSOLVERS_RANDOM_SEED is another run's, and
PYSOLVERS_RANDOM_CASE the number of one case: a failure prints both.

A draw does not know the device. It gives a function that makes the solver, runs it and returns its
results by name, and the largest difference of each from that of the CPU. An error of the same class
on both is equal, too.
"""

import itertools
import os
import time
from typing import NamedTuple

import numpy as np
import pytest
from poisson_reference import condition, require_small_residual

from pysolvers import (
    ConvectionDiffusion,
    ConvergenceError,
    CubicSpline,
    Dirichlet,
    FastPoisson,
    Neumann,
    Robin,
    SteadyConvectionDiffusion,
)
from pysolvers.flow import LidDrivenCavity, SquareCylinder, StaggeredCavity
from pysolvers.papers import gceidd2022, lmsor2012, survey2014, wei2013

# One seed for all kinds, also in several processes of pytest-xdist, whose run has one name.
RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID")
DRAWN = int(RUN[:8], 16) if RUN else int(np.random.SeedSequence().generate_state(1)[0])
SEED = int(os.environ.get("PYSOLVERS_RANDOM_SEED", DRAWN))
CASE = os.environ.get("PYSOLVERS_RANDOM_CASE")
LEAST = 3
# Where the results are made: those of the second are the expected ones.
PLACES = ({"device": "cuda"}, {})
# Both devices make the same steps, also those that are too large to be accurate.
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),
    pytest.mark.filterwarnings("ignore::pysolvers.CoarseGridWarning"),
]


class Draw(NamedTuple):
    """What is run, and how near the results are; a tolerance of 0 requires the same bits."""

    text: str
    run: object  # takes `device` or `threads`, returns arrays and numbers by name
    tolerance: object  # of the largest magnitude: a number, or a function of name and expected


def pick(rng, *values):
    """Return one of the values."""
    return values[rng.integers(len(values))]


def between(rng, low, high):
    """Return a number whose logarithm is uniform."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def size(rng, least, most):
    """Return a number of nodes, small ones as often as large ones."""
    return round(between(rng, least, most))


def values(rng, shape, names, scale=1.0):
    """Return data of any form for an array of this shape with coordinates of these names."""
    a, b, c = (float(v) for v in scale * rng.uniform(-1, 1, 3))
    form = pick(rng, "number", "array", "time", "place", "both")
    if form == "array":
        return scale * rng.uniform(-1, 1, shape)
    if form == "number":
        return a
    if form == "time":
        return lambda t: a + b * np.sin(c + t / 7)
    # The arguments of a function are known by name.
    first = names[0] if names else "t"
    inner = f"a + b * np.sin(0.3 * {first})" + (" * np.cos(t / 7)" if form == "both" else "")
    arguments = first + (", t" if form == "both" and names else "")
    return eval(f"lambda {arguments}: {inner}", {"np": np, "a": a, "b": b})


def sides(rng, shape, kinds, scale=1.0, periodic=True):
    """Return a condition of any kind for each side, `periodic` ones among them."""
    axes = "xyz"[: len(shape)]
    boundary = {}
    for number, axis in enumerate(axes):
        if periodic and rng.random() < 0.2:
            boundary[axis] = "periodic"
            continue
        place = len(shape) - 1 - number
        side = shape[:place] + shape[place + 1 :]
        others = [name for name in axes if name != axis]
        for sign in "-+":
            data = values(rng, side, others, scale)
            kind = pick(rng, *kinds)
            if kind is Robin:
                boundary[axis + sign] = Robin(between(rng, 0.1, 5), data)
            else:
                boundary[axis + sign] = kind(data)
    return boundary


def heat(rng):
    axes = pick(rng, 2, 3)
    shape = tuple(size(rng, 3, 150 if axes == 2 else 40) for _ in range(axes))
    dtype = pick(rng, np.float64, np.float32)
    r = between(rng, 0.1, 100)
    scheme = pick(rng, "peaceman-rachford", "douglas-gunn") if axes == 2 else "douglas-gunn"
    source = values(rng, shape, "xy", 1e-3 / r) if rng.random() < 0.5 else None
    options = {
        "boundary": sides(rng, shape, (Dirichlet, Neumann, Robin), 0.3),
        "scheme": scheme,
        "source": source,
        "initial": rng.random(shape),
        "damped_start": pick(rng, None, False, True),
        "dtype": dtype,
    }
    k = pick(rng, "one", "number", "axes", "array", "line", "function")
    if k == "number":
        options["diffusivity"] = between(rng, 0.2, 2)
    elif k == "axes":
        options["diffusivity"] = {name: between(rng, 0.2, 2) for name in "xyz"[:axes]}
    elif k == "array":
        options["diffusivity"] = rng.uniform(0.2, 2, shape)
    elif k == "line":
        options["diffusivity"] = rng.uniform(0.2, 2, shape[-1])
    elif k == "function":
        options["diffusivity"] = lambda x, y: 1.1 + 0.9 * np.sin(x) * np.cos(y)
    if axes == 2 and k == "one" and source is None and rng.random() < 0.4:
        options |= {
            "boundary": {name: Dirichlet(float(rng.random())) for name in ("x-", "x+", "y-", "y+")},
            "scheme": pick(rng, "peaceman-rachford", "wei2013"),
            "kernels": "wei2013",
            "memory": pick(rng, "baseline", "texture", "transpose"),
            "mapping": pick(rng, "C1", "C2", "C3", "C4"),
            "block": pick(rng, None, 32, 64, 128, 256, 512),
        }
    steps = int(rng.integers(1, 13))

    def run(**place):
        solver = wei2013.HeatADI(shape, 1.0, r, **options, **place).step(steps)
        return {"u": solver.u, "damped": solver.result().damped_start}

    # What is kept between half steps is as large as r times the field; a damped start ends its
    # iterations within 2e-11 or 4 eps. In float32, 765 draws differed by up to 9 r eps.
    is_damped = options["damped_start"] is not False
    tolerance = (2e-11 if is_damped else 1e-12) if dtype == np.float64 else 2e-6 * max(r, 10.0)
    return Draw(f"HeatADI {shape} r={r} steps={steps} {options}", run, tolerance)


def coefficient(rng, shape, low, high):
    """Return a coefficient of any form whose values are between two numbers."""
    middle, half = (low + high) / 2, (high - low) / 2
    form = pick(rng, "number", "array", "place", "time", "both")
    if form == "number":
        return float(rng.uniform(low, high))
    if form == "array":
        return rng.uniform(low, high, shape)
    if form == "place":
        return lambda x, y: middle + half * np.sin(3 * x + 2 * y)
    if form == "time":
        return lambda t: middle + half * np.cos(t)
    return lambda x, y, t: middle + half * np.sin(x - y + t)


def gceidd(rng):
    shape = (size(rng, 4, 150), size(rng, 4, 150))
    dtype = pick(rng, np.float64, np.float32)
    most = [max(1, (n - 1) // 3) for n in shape]
    strips = pick(rng, 1, tuple(int(rng.integers(1, m + 1)) for m in reversed(most)))
    velocity, diffusion = between(rng, 0.01, 2), between(rng, 1e-3, 0.1)
    problem = ConvectionDiffusion(
        [coefficient(rng, shape, -velocity, velocity) for _ in range(2)],
        pick(
            rng,
            float(diffusion),
            tuple(coefficient(rng, shape, diffusion / 4, diffusion) for _ in range(2)),
        ),
        source=values(rng, shape, "xy") if rng.random() < 0.5 else None,
        boundary=sides(rng, shape, (Dirichlet, Neumann), 1.0, periodic=False),
        initial=rng.random(shape),
    )
    # Explicit predictions do not grow up to these Courant and diffusion numbers.
    h = 1 / (max(shape) - 1)
    dt = min(0.5 * h / velocity, 0.4 * h * h / diffusion) * between(rng, 0.1, 1)
    options = {
        "scheme": pick(rng, "cp", "cfd", "mu"),
        "strips": strips,
        "upwind": pick(rng, "modified", "plain"),
        "predictor": pick(rng, "newest", "printed"),
        "foot": pick(rng, "clamp", "extrapolate"),
        "kernels": pick(rng, "fused", "paper"),
        "strategy": pick(rng, "3s", "naive"),
        "few_strips": pick(rng, 0, 512),
        "dtype": dtype,
    }
    if options["scheme"] == "cfd":
        options["upwind"] = "modified"
    if options["scheme"] != "mu":
        options["predictor"] = "newest"
    else:
        options["foot"] = "clamp"
    if options["kernels"] == "fused":
        options["strategy"] = "3s"
    steps = int(rng.integers(1, 40))

    def run(**place):
        solver = gceidd2022.GCEIDD(problem, shape, dt, **options, **place).step(steps)
        return {"u": solver.u, "steps": solver.steps}

    text = f"GCEIDD {shape} dt={dt} steps={steps} {options} {vars(problem)}"
    return Draw(text, run, 1e-12 if dtype == np.float64 else 2e-5)


def iterated(solver, counts):
    """Measures of a relaxation solver after calls of some iterations each."""
    for count in counts:
        solver.iterate(count)
    return {"u": solver.u, "residual": solver.residual, "iterations": solver.iterations}


def lmsor(rng):
    shape = (size(rng, 3, 300), size(rng, 3, 300))
    differences = pick(rng, "central", "upwind")
    strength = pick(rng, 1, 20, 60)
    form = pick(rng, "number", "separable", "any")
    parts = {"number": ((1, 1),) * 2, "separable": ((1, shape[1] - 2), (shape[0] - 2, 1))}
    inner = (shape[0] - 2, shape[1] - 2)
    f, g = (strength * rng.normal(size=part) for part in parts.get(form, (inner, inner)))
    if form == "number":
        f, g = f.item(), g.item()
    problem = SteadyConvectionDiffusion(
        f,
        g,
        shape=shape,
        extent=((0, between(rng, 0.3, 3)), (0, 1)),
        differences=differences,
        source=pick(rng, 0.0, rng.normal(size=inner)),
        boundary=pick(rng, 1.0, rng.normal(size=shape)),
    )
    kernels = ["auto", 1]
    kernels += [2] if form != "any" and differences == "central" else []
    kernels += [3] if form != "any" and differences == "central" else []
    options = {
        "relaxation": pick(rng, "lmsor", "lsor", "lmsor-2012", float(rng.uniform(0.1, 1.9))),
        "kernel": pick(rng, *kernels),
        "dtype": pick(rng, np.float32, np.float64),
        "initial": rng.normal(size=inner),
    }
    counts = rng.integers(1, 20, 2).tolist()

    def run(**place):
        return iterated(lmsor2012.LMSOR(problem, **options, **place), counts)

    text = f"LMSOR {shape} {form} {differences} strength={strength} counts={counts} {options}"
    return Draw(text, run, 0)


def red_black(rng):
    shape = (size(rng, 1, 300), size(rng, 1, 300))
    dtype = pick(rng, np.float32, np.float64)
    condition = {"D": Dirichlet, "N": Neumann}
    boundary = {}
    kinds = rng.choice(list("DNR"), 4)
    kinds[rng.integers(4)] = "D"
    for side, kind in zip(("x-", "x+", "y-", "y+"), kinds, strict=True):
        data = pick(rng, float(rng.normal()), rng.normal(size=shape[0 if side[0] == "x" else 1]))
        boundary[side] = condition[kind](data) if kind != "R" else Robin(between(rng, 0.1, 5), data)
    options = {
        "extent": ((0, between(rng, 0.3, 3)), (0, 1)),
        "conductivity": between(rng, 0.1, 10),
        "boundary": boundary,
        "source": pick(rng, 0.0, rng.normal(size=shape)),
        "omega": pick(rng, "optimal", float(rng.uniform(0.1, 1.9))),
        "variant": pick(rng, "auto", "naive", "split"),
        "dtype": dtype,
        "initial": rng.normal(size=shape),
    }
    counts = rng.integers(1, 20, 2).tolist()

    def run(**place):
        return iterated(survey2014.RedBlackSOR(shape, **options, **place), counts)

    # Sums of squares have another order.
    most = 1e-12 if dtype == np.float64 else 1e-5
    text = f"RedBlackSOR {shape} counts={counts} {options}"
    return Draw(text, run, lambda name, expected: most if name == "residual" else 0)


def poisson(rng):
    axes = pick(rng, 1, 2, 3)
    shape = tuple(size(rng, 4, (400, 150, 40)[axes - 1]) for _ in range(axes))
    dtype = np.dtype(pick(rng, "float32", "float64", "complex64", "complex128"))
    grid = pick(rng, "nodes", "cells")
    boundary = {}
    for number, name in enumerate("xyz"[:axes]):
        if rng.random() < 0.2:
            boundary[name] = "periodic"
            continue
        place = axes - 1 - number
        side = shape[:place] + shape[place + 1 :]
        for sign in "-+":
            data = pick(rng, 0.0, rng.uniform(-1, 1, side)) if side else float(rng.uniform(-1, 1))
            boundary[name + sign] = pick(rng, Dirichlet, Neumann)(data)
    spacing = [between(rng, 0.5, 2) * pick(rng, 1.0, 1.0, between(rng, 0.03, 30))] * axes
    spacing = [h * (between(rng, 1e-3, 1e3) if k else 1) for k, h in enumerate(spacing)]
    if rng.random() < 0.3:
        more = (grid == "cells") or "x" in boundary
        spacing[0] = spacing[0] * np.cumsum(rng.uniform(0.2, 1, shape[-1] + more))
    options = {"boundary": boundary, "grid": grid, "dtype": dtype, "on_incompatible": "ignore"}
    f = rng.uniform(-1, 1, shape)
    f = (f * (1 + 2j) if dtype.kind == "c" else f).astype(dtype)
    spacing = spacing[0] if axes == 1 and np.ndim(spacing[0]) == 0 else tuple(spacing)
    solver = FastPoisson(shape, spacing, **options)
    most = 2 * np.finfo(dtype).eps * condition(solver)

    def run(**place):
        here = FastPoisson(shape, spacing, **options, **place)
        u = here.solve(f)
        if dtype.kind == "f":
            require_small_residual(here, u, f)
        return {"u": u}

    return Draw(f"FastPoisson {shape} {spacing} {options}", run, most)


def spline(rng):
    axes = pick(rng, 1, 2, 3)
    axis = int(rng.integers(axes))
    knots = size(rng, 4, 400)
    shape = tuple(knots if k == axis else size(rng, 1, 60) for k in range(axes))
    dtype = np.dtype(pick(rng, "float32", "float64", "complex64", "complex128"))
    rest = shape[:axis] + shape[axis + 1 :]
    own = axes > 1 and rng.random() < 0.5
    steps = 0.5 + rng.random((knots, *(rest if own else ())))
    x = np.cumsum(steps, axis=0).astype(dtype).real
    y = rng.standard_normal((knots, *rest)) * (1 + 1j)
    ends = pick(rng, "not-a-knot", "clamped", "natural", "periodic", "pair")
    if ends == "periodic":
        y[-1] = y[0]
    y = (y if dtype.kind == "c" else y.real).astype(dtype)
    if ends == "pair":
        given = [
            pick(rng, "not-a-knot", "clamped", "natural", (1, y[0].copy()), (2, y[1].copy()))
            for _ in range(2)
        ]
        ends = tuple(given)
    low, high = float(x[0].max()), float(x[-1].min())
    points = rng.uniform(low - 2, high + 2, (5, 6)).astype(x.dtype)
    y = np.ascontiguousarray(np.moveaxis(y, 0, axis))
    x = np.ascontiguousarray(np.moveaxis(x, 0, axis)) if own else x
    extrapolate = pick(rng, None, True, False, "periodic")
    each = np.ascontiguousarray(rng.permuted(x + x.dtype.type(0.1), axis=axis)) if own else None
    limits = np.sort(rng.uniform(low, high, 2)) if low < high else np.array([low, low])
    a, b = (float(limits[k]) for k in pick(rng, (0, 1), (1, 0)))
    eps = np.finfo(dtype).eps

    def run(**place):
        made = CubicSpline(x, y, axis, ends, extrapolate, **place)
        found = {"c": made.c, "x": made.x, "integral": made.integrate(a, b)}
        for nu in range(4):
            found[f"values {nu}"] = made(points, nu)
            if own:
                found[f"own values {nu}"] = made(each, nu, per_spline=True)
        for nu in (-2, -1, 1, 2):
            found[f"derivative {nu}"] = made.derivative(nu)(points)
        return found

    def tolerance(name, expected):
        scale = np.nanmax(np.abs(expected), initial=0.0)
        if name == "x":
            return 0
        if name == "integral":  # of values that cancel
            return 400 * eps * (1 + np.abs(y).max() * (high - low) / max(scale, 1e-300))
        return 400 * eps * max(scale, 1.0) / max(scale, 1e-300)

    text = f"CubicSpline {shape} axis={axis} {dtype} own={own} {ends} {extrapolate} {a} {b}"
    return Draw(text, run, tolerance)


def lid_driven(rng):
    n = size(rng, 5, 110)
    method = pick(rng, "adi", "line-jacobi")
    lines = pick(rng, "auto", "thomas", "cr", "pcr", "cr-pcr", "pcr-thomas", "pivoted")
    options = {"method": method, "wall": pick(rng, "jensen", "woods", "thom")}
    if method == "adi":
        options |= {
            "psi_sweeps": int(rng.integers(1, 7)),
            "pseudo_dt": pick(rng, None, between(rng, 0.005, 0.05)),
            "lid_velocity": pick(rng, 1.0, float(rng.uniform(-2.5, 2.5))),
        }
    else:
        options |= {"direction": pick(rng, "alternate", "x", "y")}
    # Line-Jacobi iterations diverge for large cell Reynolds numbers.
    re = between(rng, 1, 2 * n if method == "line-jacobi" else 10 * n)
    count = int(rng.integers(1, 60))

    def run(**place):
        cavity = LidDrivenCavity(re, n, line_method=lines, **options, **place).iterate(count)
        omega = cavity.omega.copy()
        omega[[0, 0, -1, -1], [0, -1, 0, -1]] = 0  # corners have no meaning
        return {"psi": cavity.psi, "omega": omega, "residual": cavity.residual}

    text = f"LidDrivenCavity re={re} n={n} {lines} count={count} {options}"

    def most(name, expected):
        if name != "residual":
            return 1e-12
        # A residual is a difference of solutions up to 1, whose rounding errors do not shrink.
        return max(1e-7, 1e-13 / max(float(expected), 1e-13))

    return Draw(text, run, most)


def staggered(rng):
    n = size(rng, 4, 100)
    re = between(rng, 5, 5 * n)
    options = {"gamma": pick(rng, 0.0, 0.9, 1, "auto", float(rng.random()))}
    options |= pick(rng, {"tau": float(rng.uniform(0.1, 0.5))}, {"dt": 1e-4}, {})
    options["pressure"] = pick(rng, "fast", "sor")
    if options["pressure"] == "sor":
        options |= pick(
            rng, {}, {"omega": float(rng.uniform(1, 1.8))}, {"pressure_tol": 1e-8},
            {"pressure_tol": None, "max_sweeps": 20},
        )  # fmt: skip
    count = int(rng.integers(1, 40))

    def run(**place):
        cavity = StaggeredCavity(re, n, **options, **place).step(count)
        found = {name: np.array(getattr(cavity, name)) for name in ("u", "v", "p")}
        found |= {"time": cavity.time, "change": cavity.change, "sweeps": cavity.sweeps}
        return found

    def tolerance(name, expected):
        return {"change": 1e-6, "sweeps": 0}.get(name, 1e-10)

    return Draw(f"StaggeredCavity re={re} n={n} count={count} {options}", run, tolerance)


def cylinder(rng):
    shape = pick(rng, (33, 201), (49, 251), (65, 401))
    re = between(rng, 10, 150)
    dtype = pick(rng, np.float64, np.float64, np.float32)
    options = {
        "cylinder": pick(rng, "free", "fixed"),
        "psi_solver": pick(rng, "fast", "fast", "lines") if dtype == np.float64 else "fast",
        "wall": pick(rng, "thom", "woods", "jensen"),
        "steady": pick(rng, False, False, True),
        "dt": pick(rng, None, between(rng, 0.005, 0.03)),
        "perturbation": pick(rng, 1.0, float(rng.uniform(0.1, 2))),
    }
    if options["steady"]:
        options |= {"cylinder": "free", "perturbation": 1.0}
    if options["psi_solver"] == "lines":
        options["psi_tol"] = between(rng, 1e-9, 1e-5)
    count = int(rng.integers(1, 12))

    def fields(dtype, place):
        flow = SquareCylinder(re, shape, dtype=dtype, **options, **place).step(count)
        return {name: np.array(getattr(flow, name)) for name in ("psi", "omega", "u", "v")}

    def tolerance(name, expected):
        if dtype == np.float64:
            return 1e-10
        exact = fields(np.float64, {})[name]  # single precision is as near to it on both
        return 5 * np.abs(expected - exact).max() / np.abs(exact).max() + 1e-5

    text = f"SquareCylinder re={re} {shape} {np.dtype(dtype)} count={count} {options}"
    return Draw(text, lambda **place: fields(dtype, place), tolerance)


KINDS = (
    heat, gceidd, lmsor, red_black, poisson, spline, lid_driven, staggered, cylinder
)  # fmt: skip
SECONDS = float(os.environ.get("PYSOLVERS_RANDOM_SECONDS", 2 * len(KINDS))) / len(KINDS)


def outcome(draw, place):
    """Return the results, or the class of the error that names what cannot be solved."""
    try:
        return draw.run(**place)
    except (ConvergenceError, ValueError) as error:
        return type(error)


def compare(draw):
    """Require the results of both places to be near; return whether there were any."""
    here, there = (outcome(draw, place) for place in PLACES)
    if isinstance(here, type) or isinstance(there, type):
        assert here is there
        return False
    for name, expected in there.items():
        expected, actual = np.asarray(expected), np.asarray(here[name])
        assert actual.shape == expected.shape and actual.dtype == expected.dtype, name
        tolerance = draw.tolerance
        most = tolerance(name, expected) if callable(tolerance) else tolerance
        if expected.dtype.kind not in "fc" or most == 0:
            np.testing.assert_array_equal(actual, expected, err_msg=name)
            continue
        scale = np.nanmax(np.abs(expected), initial=0.0)
        np.testing.assert_allclose(actual, expected, rtol=0, atol=most * scale, err_msg=name)
    return True


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_results_are_those_of_the_cpu(kind, record_property):
    pytest.importorskip("scipy.fft")
    record_property("seed", SEED)
    solved, end = 0, time.monotonic() + SECONDS
    for case in itertools.count(int(CASE or 0)):
        draw = None
        try:
            draw = kind(np.random.default_rng([SEED, case]))
            solved += compare(draw)
        except Exception as error:
            error.add_note(f"PYSOLVERS_RANDOM_SEED={SEED} PYSOLVERS_RANDOM_CASE={case}")
            error.add_note(draw.text if draw else f"{kind.__name__} was not drawn")
            raise
        if CASE:
            return
        if case + 1 >= LEAST and time.monotonic() > end:
            break

    record_property("cases", case + 1)
    assert 2 * solved > case  # most draws are problems that can be solved

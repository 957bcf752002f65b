"""FastPoisson is right to a few rounding units for any ratio of the spacings and any unit.

The truth is the exact solution of the difference equations: single waves, SciPy's transforms along
all axes in a higher precision, and lines in 120 digits.
"""

import itertools
import os
import time

import exact_lines
import numpy as np
import pytest

from pysolvers import Dirichlet, FastPoisson, Neumann

fft = pytest.importorskip("scipy.fft")

DTYPES = ["float32", "float64"]
ENDS = ("DD", "DN", "ND", "NN", "PP")
CONDITIONS = {"D": Dirichlet(0.0), "N": Neumann()}
# Function and type of the transform, on nodes and on cells.
TRANSFORMS = {
    "DD": ("dst", 1, 2),
    "DN": ("dst", 3, 4),
    "ND": ("dct", 3, 4),
    "NN": ("dct", 1, 2),
    "PP": ("fft", 0, 0),
}
SECONDS = float(os.environ.get("PYSOLVERS_RANDOM_SECONDS", "1.5"))
SEED = os.environ.get("PYSOLVERS_RANDOM_SEED")
CASE = os.environ.get("PYSOLVERS_RANDOM_CASE")


def solver_of(grid, ends, shape, spacing, dtype):
    """Return a solver for ends and spacings in the order of the array, with sides of value 0."""
    boundary = {}
    for name, pair in zip("xyz", reversed(ends), strict=False):
        for sign, end in zip("-+", pair, strict=True):
            boundary[name + sign] = "periodic" if pair == "PP" else CONDITIONS[end]
    return FastPoisson(
        shape,
        tuple(reversed(spacing)),
        boundary=boundary,
        grid=grid,
        dtype=dtype,
        on_incompatible="ignore",
    )


class Waves:
    """The waves of one uniform axis, in a higher precision than that of the solver."""

    def __init__(self, grid, ends, size, step, wide):
        self.name, *kinds = TRANSFORMS[ends]
        self.kind = kinds[grid == "cells"]
        self.inner = slice(
            int(grid == "nodes" and ends[0] == "D"), size - int(grid == "nodes" and ends[1] == "D")
        )
        count = self.inner.stop - self.inner.start
        intervals = size - int(grid == "nodes" and ends != "PP")
        orders = np.arange(count).astype(wide)
        if self.name == "fft":
            orders = 2 * np.minimum(orders, count - orders)
        elif ends[0] != ends[1]:
            orders += wide(0.5)
        elif ends == "DD":
            orders += 1
        pi = 4 * np.arctan(wide(1))
        sines = np.sin(orders * (pi / (2 * intervals)))
        self.eigenvalues = -((2 / wide(step) * sines) ** 2)

    def transform(self, values, axis, *, back=False):
        options = {"type": self.kind} if self.kind else {}
        return getattr(fft, "i" * back + self.name)(values, axis=axis, **options)


def truth(grid, ends, spacing, f, wide):
    """Solve by transforms along all axes; in singular cases the waves without a solution are 0."""
    waves = [Waves(grid, *axis, wide) for axis in zip(ends, f.shape, spacing, strict=True)]
    inner = tuple(wave.inner for wave in waves)
    field = f[inner].astype(wide)
    total = wide(0)
    for k, wave in enumerate(waves):
        field = wave.transform(field, k)
        total = total + wave.eigenvalues.reshape((-1,) + (1,) * (f.ndim - 1 - k))
    field = np.where(total == 0, 0, field) / np.where(total == 0, 1, total)
    for k, wave in reversed(list(enumerate(waves))):
        field = wave.transform(field, k, back=True)
    u = np.zeros(f.shape, wide)
    u[inner] = field.real
    return u


def smoothest(grid, ends, shape, spacing):
    """Return the wave of the smallest eigenvalue that is not zero, of amplitude 1."""
    waves = [Waves(grid, *axis, float) for axis in zip(ends, shape, spacing, strict=True)]
    axes = [-wave.eigenvalues for wave in waves]
    total = sum(np.ix_(*axes))
    index = np.unravel_index(np.where(total == 0, np.inf, total).argmin(), total.shape)
    field = np.zeros(shape)
    amplitudes = np.zeros(total.shape)
    amplitudes[index] = 1
    for k, wave in enumerate(waves):
        amplitudes = wave.transform(amplitudes, k, back=True).real
    field[tuple(wave.inner for wave in waves)] = amplitudes / np.abs(amplitudes).max()
    return field


def assert_close(u, expected, bound):
    size = np.abs(expected).max()
    error = np.abs(u - expected).max() / size
    assert error <= bound, error


def check_random_problem(rng):
    """Solve for the smoothest wave and half as much noise."""
    axes = int(rng.integers(1, 4))
    dtype = np.dtype(rng.choice(["float32", "float64", "complex64", "complex128"]))
    grid = str(rng.choice(["nodes", "cells"]))
    ends = [str(rng.choice(ENDS)) for _ in range(axes)]
    shape = tuple(int(size) for size in rng.integers(3, (0, 200, 40, 14)[axes], axes))
    unit = 10 ** rng.uniform(-9, 9)
    spacing = [float(unit * 10 ** rng.uniform(-4, 4)) for _ in range(axes)]
    amplitude = 10 ** rng.uniform(-4, 4)
    wave = smoothest(grid, ends, shape, spacing)
    solver = solver_of(grid, ends, shape, spacing, dtype)
    parts = []
    for _ in range(1 + (dtype.kind == "c")):
        part = amplitude * (wave + rng.uniform(-0.5, 0.5, shape))
        parts.append(part.astype(np.empty(0, dtype).real.dtype))
    wide = np.float64 if dtype.itemsize // len(parts) == 4 else np.longdouble
    eps, eps_of_truth = np.finfo(dtype).eps, np.finfo(wide).eps
    u = solver.solve(parts[0] + 1j * parts[1] if len(parts) > 1 else parts[0])
    expected = [truth(grid, ends, spacing, part, wide) for part in parts]
    if len(parts) > 1:
        expected = [expected[0] + 1j * expected[1]]
    # Of 6000 draws one is above 20 eps: 26 eps of the smoothest wave of a ring of 31 cells.
    assert_close(u, expected[0], 40 * (eps + eps_of_truth))


def test_random_problems(capsys):
    """Random sides, grids, dtypes, units and spacings whose ratios are up to 1e8.

    PYSOLVERS_RANDOM_SECONDS is the time, PYSOLVERS_RANDOM_SEED the seed of another run, and
    PYSOLVERS_RANDOM_CASE the number of one case.
    """
    seed = int(SEED) if SEED else int(np.random.SeedSequence().generate_state(1)[0])
    end = time.monotonic() + SECONDS
    for case in itertools.count(int(CASE or 0)):
        try:
            check_random_problem(np.random.default_rng([seed, case]))
        except Exception as error:
            error.add_note(f"PYSOLVERS_RANDOM_SEED={seed} PYSOLVERS_RANDOM_CASE={case}")
            raise
        if CASE or (case >= 20 and time.monotonic() > end):
            break


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("exponent", range(-8, 9, 2))
@pytest.mark.parametrize("x", ["NN", "PP", "ND", "DD"])
def test_ratios_of_the_spacings(x, exponent, dtype):
    for grid, y in itertools.product(("nodes", "cells"), ("NN", "DN", "PP")):
        shape, spacing = (24, 33), (10.0**exponent, 1.0)
        f = smoothest(grid, (y, x), shape, spacing).astype(dtype)
        u = solver_of(grid, (y, x), shape, spacing, dtype).solve(f)
        wide = np.longdouble if dtype == "float64" else np.float64
        expected = truth(grid, (y, x), spacing, f, wide)
        assert_close(u, expected, 20 * (np.finfo(dtype).eps + np.finfo(wide).eps))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("length", [1e-16, 1e-8, 1.0, 1e8, 1e16])
@pytest.mark.parametrize("ends", ["NN", "PP"])
def test_singular_problems_in_any_unit(ends, length, dtype, rng):
    """A noise whose solution must not depend on the unit of length, also not in its mean."""
    wide = np.longdouble if dtype == "float64" else np.float64
    eps = np.finfo(dtype).eps + np.finfo(wide).eps
    for grid, shape in itertools.product(("nodes", "cells"), [(20,), (9, 12)]):
        axes = (ends,) * len(shape)
        spacing = (length,) * len(shape)
        f = smoothest(grid, axes, shape, spacing) + rng.uniform(-0.5, 0.5, shape)
        solver = solver_of(grid, axes, shape, spacing, dtype)
        f = f.astype(dtype)
        u = solver.solve(f)
        assert_close(u, truth(grid, axes, spacing, f, wide), 20 * eps)
        weights = np.ones(shape)
        if grid == "nodes" and ends == "NN":
            for k in range(len(shape)):
                weights[(slice(None),) * k + ([0, -1],)] /= 2
        assert abs((weights * u).mean()) <= 20 * eps * np.abs(u).max()


def column(dtype, ends):
    """Solve an ocean column of 60 layers of 1 .. 200 m and cells of 1 km for one long wave."""
    layers = np.geomspace(1, 200, 60)
    faces = np.concatenate([[0], np.cumsum(layers)])
    size, spacing = 256, 1000.0
    theta = np.pi / size
    wave = np.cos(theta * (np.arange(size) + 0.5))
    eigenvalue = (2 / spacing * np.sin(theta / 2)) ** 2
    profile = np.linspace(1, 2, 60)
    boundary = {"y": Neumann()}
    for sign, end in zip("-+", ends, strict=True):
        boundary["x" + sign] = "periodic" if end == "P" else CONDITIONS[end]
    f = (wave[:, None] * profile).astype(dtype)
    solver = FastPoisson((size, 60), (faces, spacing), boundary=boundary, grid="cells", dtype=dtype)
    gaps = (layers + np.roll(layers, 1)) / 2
    if ends != "PP":
        gaps[0] = layers[0] / 2
    lower, upper = 1 / (gaps * layers), 1 / (np.roll(gaps, -1) * layers)
    sums = np.full(60, eigenvalue)
    if ends[0] == "D":
        sums[0] += lower[0]
    if ends[1] == "D":
        sums[-1] += 2 / layers[-1] ** 2
    line = exact_lines.solve(-lower, sums, -upper, -profile, periodic=ends == "PP")
    return solver.solve(f), wave[:, None] * line


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ends", ["NN", "ND", "DN", "PP"])
def test_thin_layers_of_an_ocean(dtype, ends):
    u, expected = column(dtype, ends)
    assert_close(u, expected, 20 * np.finfo(dtype).eps)


@pytest.mark.parametrize("exponent", [-4, 0, 2, 4, 8])
@pytest.mark.parametrize("ends", ["NN", "PP"])
def test_long_first_axis_of_any_ratio_of_the_spacings(ends, exponent):
    """Lines along 1000 fine cells would lose digits of the wave along x: y has transforms."""
    step = 10.0**exponent
    wave = np.ones((1000, 1)) * np.cos(np.pi / 100 * (np.arange(100) + 0.5))
    boundary = {"x": Neumann(), "y": Neumann() if ends == "NN" else "periodic"}
    solver = FastPoisson((1000, 100), (step, 1.0), boundary=boundary, grid="cells")
    expected = -wave / (2 / step * np.sin(np.pi / 200)) ** 2

    error = np.abs(solver.solve(wave) - expected).max() / np.abs(expected).max()

    assert error <= 40 * np.finfo(float).eps


@pytest.mark.parametrize("dtype", DTYPES)
def test_long_lines(dtype):
    """The error grows as the number of nodes along x, not as its square."""
    n = 3000
    x = (np.arange(n) + 0.5) / n
    for boundary, theta in ((Neumann(), np.pi), ({"x-": Neumann(), "x+": 0.0}, np.pi / 2)):
        wave = np.cos(theta * x)
        eigenvalue = -((2 * n * np.sin(theta / (2 * n))) ** 2)
        solver = FastPoisson(n, 1 / n, boundary=boundary, grid="cells", dtype=dtype)
        u = solver.solve(wave.astype(dtype)) * eigenvalue
        assert np.abs(u - wave).max() <= n / 20 * np.finfo(dtype).eps


@pytest.mark.parametrize(
    ("dtype", "small", "large"), [("float32", 1e-25, 1e25), ("float64", 1e-200, 1e200)]
)
@pytest.mark.parametrize("boundary", [Neumann(), 0.0, "periodic"])
def test_spacings_out_of_range_are_errors(dtype, small, large, boundary):
    options = {"boundary": boundary, "dtype": dtype}
    for spacing in (small, (1.0, small), (np.arange(8 + (boundary == "periodic")) * small, 1.0)):
        with pytest.raises(ValueError, match=rf"spacing along . must be at least .* {dtype}"):
            FastPoisson((8, 8), spacing, **options)
    with pytest.raises(ValueError, match=rf"length along y must be at most .* in {dtype}.*1e\+2"):
        FastPoisson((8, 8), (1.0, large), **options)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("grid", ["nodes", "cells"])
@pytest.mark.parametrize("ends", ENDS)
def test_spacings_at_the_ends_of_the_range(grid, ends, dtype):
    limits = np.finfo(dtype)
    for step in (9 / np.sqrt(float(limits.max)), 0.04 / np.sqrt(float(limits.tiny))):
        shape, axes, spacing = (9, 11), (ends, "NN"), (float(step),) * 2
        f = smoothest(grid, axes, shape, spacing).astype(dtype)
        u = solver_of(grid, axes, shape, spacing, dtype).solve(f)
        unit = truth(grid, axes, (1.0, 1.0), f, np.float64)
        assert_close(u / step / step, unit, 40 * limits.eps)

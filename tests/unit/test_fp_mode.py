"""The bits of every solver on the CPU depend neither on the floating-point mode nor on the threads.

Each solver runs in a thread that flushes subnormal numbers to zero, as callbacks of JAX on the CPU
do, or rounds in another direction. Its data have subnormal numbers or tails. The expected bits are
those of one thread in the default mode.
"""

import os

import numpy as np
import pytest
from fp_modes import MODES, current, fp_mode

import pysolvers
from pysolvers import (
    GCEIDD,
    CubicSpline,
    FastPoisson,
    HeatADI,
    LidDrivenCavity,
    RedBlackSOR,
    SquareCylinder,
    StaggeredCavity,
)
from pysolvers.papers import lmsor2012
from pysolvers.relaxation import SteadyConvectionDiffusion
from pysolvers.transport import ConvectionDiffusion

SEED = int(os.environ.get("PYSOLVERS_RANDOM_SEED", "20240607"))
THREADS = 1, 2, 3
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]


def tiny(dtype):
    """Return a scale by which numbers of order 1 become subnormal."""
    return float(np.finfo(dtype).tiny) / 30


def numbers(rng, shape, dtype):
    values = rng.uniform(-1, 1, (2, *shape))
    return (values[0] + 1j * values[1] if np.dtype(dtype).kind == "c" else values[0]).astype(dtype)


def solve(rng):
    """Solve diagonally dominant systems and others; right sides subnormal or near the largest."""
    dtype, periodic, axis = rng.choice(DTYPES), bool(rng.random() < 0.3), int(rng.integers(2))
    n = int(rng.integers(2, 400))
    shape = (n, 30_000 // n) if axis == 0 else (30_000 // n, n)
    lower, diag, upper, rhs = (numbers(rng, shape, dtype) for _ in range(4))
    if rng.random() < 0.7:
        diag = diag + dtype(4)
    scale = dtype(rng.choice([tiny(dtype), float(np.finfo(dtype).max) / 8]))
    rhs, whole = rhs * scale, rng.random() < 0.5
    if whole:
        lower, diag, upper = lower * scale, diag * scale, upper * scale
    options = {"axis": axis, "periodic": periodic, "on_singular": "ignore"}
    return lambda threads: [
        pysolvers.solve_tridiagonal(lower, diag, upper, rhs, threads=threads, **options)
    ]


def factor(rng):
    """Factor matrices and solve with them, plain and transposed."""
    dtype, periodic = rng.choice(DTYPES), bool(rng.random() < 0.3)
    n, shared = int(rng.integers(2, 200)), bool(rng.random() < 0.5)
    shape = (30_000 // n, n)
    lower, diag, upper = (numbers(rng, (n,) if shared else shape, dtype) for _ in range(3))
    diag, rhs = diag + dtype(4), numbers(rng, shape, dtype) * dtype(tiny(dtype))

    def run(threads):
        made = pysolvers.factor_tridiagonal(lower, diag, upper, periodic=periodic, threads=threads)
        return [made.solve(rhs, trans=trans, threads=threads) for trans in "NTH"]

    return run


def heat(rng):
    """Diffuse a hot spot, around which the temperature has a subnormal tail."""
    dtype = rng.choice(DTYPES[:2])
    shape = (150, 170) if rng.random() < 0.6 else (30, 31, 32)
    hot = np.zeros(shape, dtype)
    hot[tuple(size // 2 for size in shape)] = 1
    k = 1 + rng.random(shape) if rng.random() < 0.4 and len(shape) == 2 else 1.0
    options = {"initial": hot, "diffusivity": k, "dtype": dtype, "damped_start": False}
    options["boundary"] = 0.0
    if rng.random() < 0.3 and len(shape) == 2:
        options["boundary"] = lambda x, y, t: np.exp(-t) * (x + y) * tiny(dtype)
    return lambda threads: [HeatADI(shape, 0.1, 0.001, threads=threads, **options).step(3).u]


def gceidd(rng):
    """Carry a subnormal field."""
    dtype = rng.choice(DTYPES[:2])
    start = rng.random((170, 160)) * tiny(dtype)
    problem = ConvectionDiffusion(
        (0.4, -0.3), 1e-3, source=tiny(dtype), initial=start, boundary=0.0
    )
    options = {"scheme": str(rng.choice(["cp", "cfd"])), "dtype": dtype, "bound": np.inf}
    options |= {"shape": (170, 160)}
    options["strips"] = int(rng.choice([1, 4]))
    return lambda threads: [GCEIDD(problem, dt=0.01, threads=threads, **options).step(3).u]


def plate(rng):
    """Relax a plate with subnormal temperatures."""
    dtype = rng.choice(DTYPES[:2])
    start = rng.random((170, 180)) * tiny(dtype)
    options = {"extent": ((0, 1), (0, 1)), "boundary": tiny(dtype), "initial": start}
    return lambda threads: [
        RedBlackSOR((170, 180), threads=threads, dtype=dtype, **options).iterate(7).u
    ]


def lmsor(rng):
    """Relax convection and diffusion of a subnormal field."""
    dtype = rng.choice(DTYPES[:2])
    problem = SteadyConvectionDiffusion(
        f=lambda x, y: 3 * x + 0 * y,
        g=lambda x, y: x - y,
        shape=(170, 182),
        extent=((0, 1), (0, 1)),
        boundary=lambda x, y: (x + 2 * y) * tiny(dtype),
    )
    kernel = rng.choice(["auto", "serial"])
    return lambda threads: [
        lmsor2012.LMSOR(problem, kernel=str(kernel), dtype=dtype, threads=threads).iterate(7).u
    ]


def cavity(rng):
    """Iterate the cavity from rest: the vorticity decays from the lid to subnormal numbers."""
    options = {"psi_solver": "fast"} if rng.random() < 0.4 else {}
    options = options or {"method": str(rng.choice(["adi", "line-jacobi"]))}

    def run(threads):
        solver = LidDrivenCavity(100, 170, threads=threads, **options).iterate(3)
        return [solver.psi, solver.omega, solver.u, solver.v]

    return run


def staggered(rng):
    """Step the cavity on a staggered grid from rest."""
    pressure = str(rng.choice(["fast", "sor"]))
    options = {"pressure": pressure, "gamma": float(rng.choice([0.0, 0.5])), "pressure_tol": 0.1}

    def run(threads):
        solver = StaggeredCavity(100, 170, threads=threads, **options).step(2)
        return [solver.u, solver.v, solver.p]

    return run


def cylinder(rng):
    """Step the flow around a cylinder."""
    dtype = rng.choice(DTYPES[:2])

    def run(threads):
        solver = SquareCylinder(100, (65, 401), dtype=dtype, threads=threads).step(2)
        return [solver.psi, solver.omega, solver.u, solver.v]

    return run


def spline(rng):
    """Interpolate subnormal values."""
    dtype, n = rng.choice(DTYPES), int(rng.integers(4, 60))
    real = np.finfo(dtype).dtype
    x = np.cumsum(0.5 + rng.random(n)).astype(real)
    y = numbers(rng, (n, 30_000 // n), dtype) * dtype(tiny(dtype))
    at = rng.uniform(x[0], x[-1], 50).astype(real)
    kind = str(rng.choice(["not-a-knot", "natural", "clamped"]))

    def run(threads):
        s = CubicSpline(x, y, bc_type=kind, threads=threads)
        return [s(at), s(at, 1), s.integrate(float(at[0]), float(at[1]))]

    return run


def poisson(rng):
    """Solve with a right side whose solution is subnormal."""
    dtype, grid = rng.choice(DTYPES), str(rng.choice(["nodes", "cells"]))
    shape = (170, 160) if rng.random() < 0.6 else (30, 31, 32)
    sides = dict.fromkeys("xyz"[: len(shape)], tiny(dtype)) | {"y": "periodic"}
    f = numbers(rng, shape, dtype) * dtype(tiny(dtype))
    options = {"boundary": sides, "grid": grid, "dtype": dtype}
    return lambda threads: [FastPoisson(shape, 0.5, threads=threads, **options).solve(f)]


KINDS = (
    solve,
    factor,
    heat,
    gceidd,
    plate,
    lmsor,
    cavity,
    staggered,
    cylinder,
    spline,
    poisson,
)


def bits(arrays):
    return [np.ascontiguousarray(a).tobytes() for a in arrays]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("case", range(2))
def test_bits_depend_neither_on_the_mode_nor_on_the_threads(kind, case):
    rng = np.random.default_rng([SEED, KINDS.index(kind), case])
    run = kind(rng)
    expected = bits(run(1))
    modes = ["flush", str(rng.choice(MODES))]

    for mode, threads in zip(modes, rng.permutation(THREADS), strict=False):
        with fp_mode(mode):
            found = run(int(threads))
        assert bits(found) == expected, f"seed {SEED}, {kind.__name__} {case}, {mode}, {threads}"
    assert bits(run(2)) == expected, f"seed {SEED}, {kind.__name__} {case}, after the modes"


def test_mode_is_restored_after_errors():
    before = current()
    zero = np.zeros((40, 500))
    with fp_mode("flush"), pytest.raises(pysolvers.SingularSystemError):
        pysolvers.solve_tridiagonal(zero, zero, zero, zero, threads=3)
    with fp_mode("upward"), pytest.raises(ValueError, match="strictly increasing"):
        CubicSpline([0.0, 0.0, 1.0], [0.0, 1.0, 2.0])
    with fp_mode("toward zero"), pytest.raises(pysolvers.ConvergenceError):
        RedBlackSOR((8, 8), boundary=1.0, extent=((0, 1), (0, 1)), omega=1.99).solve(
            1e-9, max_iterations=3
        )
    assert current() == before


def test_functions_of_the_user_are_called_in_the_default_mode_in_a_step():
    modes = []

    def source(x, y, t):
        modes.append(current())
        return x + y + t

    with fp_mode("flush"):
        solver = HeatADI((9, 9), 0.1, 0.01, boundary=0.0, source=source)
        modes.clear()
        solver.step(2)

    assert modes and set(modes) == {0}


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_conversions_keep_subnormal_numbers(dtype):
    small = np.full(6, 9e-39, np.float32)
    diag, rhs = np.ones((5, 6), dtype), np.full((5, 6), 9e-39, np.float32)
    with fp_mode("flush"):
        wide = pysolvers.solve_tridiagonal(0.0, diag, 0.0, small)
        number = pysolvers.solve_tridiagonal(0.0, 9e-39, 0.0, rhs)
    np.testing.assert_array_equal(wide, np.broadcast_to(small.astype(dtype), (5, 6)))
    np.testing.assert_allclose(number, np.ones((5, 6), np.float32), rtol=3e-7)

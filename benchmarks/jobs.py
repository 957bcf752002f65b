"""Time six jobs as users do them, compared with what people would use instead.

    ocean     an implicit step of vertical diffusion, 75 x 200 x 300 cells, a diffusivity for each
    options   10^4 put options by 50 Crank-Nicolson steps on 200 prices, each with its own matrix
    splines   10^4 curves through 512 values each: created, and evaluated at 512 points
    poisson   a Poisson equation on 1024 x 1024 cells between Dirichlet sides, one right side
    heat      a step of heat conduction in a plate of 1024 x 1024 nodes by alternating directions
    small     one system of 64 rows

All in float64. The peers are programs that a careful user writes: with Numba a `prange` loop over
independent lines, whose inner loop runs along memory; SciPy's banded solver for many right sides of
one matrix; a Python loop of `solve_banded` where each system has a matrix of its own, named "loop";
SciPy's splines, sparse LU and FFT; PyAMG; JAX. Packages that are not installed are left out, and so
is the job `poisson` without SciPy, which this package needs for it. Loops in Python are timed on a
part of the work and scaled. Samples of all programs of a job alternate in random order, and times
are medians; set-up (factors of LU, hierarchies, compilation) is excluded. The record holds the
largest difference of each peer from this package, relative to the largest value.

With --gpu, on a GPU, compared with cuSPARSE, CuPy and JAX.
"""

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import numpy as np

import pysolvers
from pysolvers._progress import progress
from pysolvers._runtime import backends
from pysolvers.cases.tables import Column, Table

from . import peers, poisson as poisson_benchmark, small
from .options import add_options
from .record import Measurement, Record, finish
from .timing import Call, medians

PACKAGES = "numpy", "scipy", "numba", "pyamg", "jax", "cupy-cuda13x"
SAMPLES, BUDGET = 9, 5.0  # of a program: number, and seconds after which there are no more


@dataclass(kw_only=True)
class Job:
    """The programs of a job.

    Parameters
    ----------
    size : str
        Size of the job, for the table.
    calls : dict of str to callable
        What runs the job once, by program; "package" is this one.
    share : dict of str to float
        The part of the job that a program does, 1 unless it is named here.
    part : callable
        Maps the result of a program to the part that the programs with a share compute.
    values : dict of str to array
        Results of programs whose call does not return them.
    """

    size: str
    calls: dict[str, Call]
    share: dict[str, float] = field(default_factory=dict)
    part: Callable[[Any], Any] = lambda result: result
    values: dict[str, Any] = field(default_factory=dict)


def numba_or_none() -> Any:
    """Return Numba with as many threads as this package uses; None if it is not installed."""
    if find_spec("numba") is None:
        return None
    peers.set_numba_threads(backends.require("cpu").default_threads())
    import numba

    return numba


def columns(shape: tuple[int, int, int]) -> tuple[Any, Any, Any, Any]:
    """Return matrices and right sides of (I - dt d/dz K d/dz) x = T along the first axis."""
    rng = np.random.default_rng(1)
    temperature = rng.standard_normal(shape)
    k = 10.0 ** rng.uniform(-3, 0, (shape[0] + 1, *shape[1:]))  # dt K / dz^2 at the faces
    k[[0, -1]] = 0.0
    lower, upper = -k[:-1], -k[1:]
    return lower, 1.0 - lower - upper, upper, temperature


def ocean(shape: tuple[int, int, int] = (75, 200, 300)) -> Job:
    """Return the job of columns."""
    lower, diag, upper, temperature = columns(shape)
    calls: dict[str, Call] = {
        "package": lambda: pysolvers.solve_tridiagonal(lower, diag, upper, temperature, axis=0)
    }
    if (numba := numba_or_none()) is not None:

        @numba.njit(parallel=True)
        def solve(lower, diag, upper, rhs):
            levels, rows, columns = rhs.shape
            x = np.empty_like(rhs)
            for j in numba.prange(rows):
                c = np.empty((levels, columns))
                for i in range(columns):
                    c[0, i] = upper[0, j, i] / diag[0, j, i]
                    x[0, j, i] = rhs[0, j, i] / diag[0, j, i]
                for n in range(1, levels):
                    for i in range(columns):
                        pivot = diag[n, j, i] - lower[n, j, i] * c[n - 1, i]
                        c[n, i] = upper[n, j, i] / pivot
                        x[n, j, i] = (rhs[n, j, i] - lower[n, j, i] * x[n - 1, j, i]) / pivot
                for n in range(levels - 2, -1, -1):
                    for i in range(columns):
                        x[n, j, i] -= c[n, i] * x[n + 1, j, i]
            return x

        calls["numba"] = lambda: solve(lower, diag, upper, temperature)
    rows = 4  # of the field that the loop of SciPy solves

    def loop() -> Any:
        part = (np.moveaxis(a[:, :rows], 0, -1) for a in (lower, diag, upper, temperature))
        x = peers.scipy_loop(*(np.ascontiguousarray(a).reshape(-1, shape[0]) for a in part))
        return np.moveaxis(x.reshape(rows, shape[2], shape[0]), -1, 0)

    if peers.has_scipy():
        calls["scipy loop"] = loop
    return Job(
        size=" x ".join(map(str, shape)),
        calls=calls,
        share={"scipy loop": rows / shape[1]},
        part=lambda x: x[:, :rows],
    )


@dataclass(frozen=True)
class Options:
    """Put options on grids of prices: u_t = A u backwards from the payoff, and the steps.

    Crank-Nicolson steps need one solve: with M = I - dt/2 A, M^-1 (I + dt/2 A) u = 2 M^-1 u - u.
    """

    lower: Any
    diag: Any
    upper: Any
    payoff: Any
    steps: int


def black_scholes(count: int, rows: int, steps: int) -> Options:
    """Return the matrices M of `count` options that expire after a year, and the payoffs."""
    rng = np.random.default_rng(2)
    volatility, rate = rng.uniform(0.1, 0.4, (count, 1)), rng.uniform(0.0, 0.05, (count, 1))
    price = np.linspace(0.0, 4.0, rows)  # in units of the strike
    spread = 0.5 * volatility**2 * np.arange(rows) ** 2
    drift = 0.5 * rate * np.arange(rows)
    half = 0.5 / steps
    lower, upper = -half * (spread - drift), -half * (spread + drift)
    diag = 1.0 + half * (2 * spread + rate)
    diag[:, -1] = 1.0  # the option is worthless at the highest price
    lower[:, -1] = upper[:, -1] = 0.0
    return Options(lower, diag, upper, np.tile(np.maximum(1.0 - price, 0.0), (count, 1)), steps)


def options(count: int = 10_000, rows: int = 200, steps: int = 50) -> Job:
    """Return the job of options."""
    job = black_scholes(count, rows, steps)
    matrices = job.lower, job.diag, job.upper

    def package(parts: int = 20) -> Any:
        values = job.payoff.copy()
        for part in np.array_split(np.arange(len(values)), parts):  # a part stays in the cache
            rows = slice(part[0], part[-1] + 1)
            factor = pysolvers.factor_tridiagonal(*(a[rows] for a in matrices))
            u = values[rows]
            x = np.empty_like(u)
            for _ in range(job.steps):
                factor.solve(u, out=x)
                x *= 2
                np.subtract(x, u, out=u)
        return values

    calls: dict[str, Call] = {"package": package}
    if (numba := numba_or_none()) is not None:

        @numba.njit(parallel=True)
        def solve(lower, diag, upper, payoff, steps):
            u = payoff.copy()
            count, rows = u.shape
            for k in numba.prange(count):
                c, pivot, x = np.empty(rows), np.empty(rows), np.empty(rows)
                pivot[0] = 1 / diag[k, 0]
                c[0] = upper[k, 0] * pivot[0]
                for i in range(1, rows):
                    pivot[i] = 1 / (diag[k, i] - lower[k, i] * c[i - 1])
                    c[i] = upper[k, i] * pivot[i]
                for _ in range(steps):
                    x[0] = u[k, 0] * pivot[0]
                    for i in range(1, rows):
                        x[i] = (u[k, i] - lower[k, i] * x[i - 1]) * pivot[i]
                    u[k, rows - 1] = 2 * x[rows - 1] - u[k, rows - 1]
                    for i in range(rows - 2, -1, -1):
                        x[i] -= c[i] * x[i + 1]
                        u[k, i] = 2 * x[i] - u[k, i]
            return u

        calls["numba"] = lambda: solve(*matrices, job.payoff, job.steps)
    few = max(1, count // 100)  # options that the loop of SciPy computes

    def loop() -> Any:
        u = job.payoff[:few].copy()
        for _ in range(job.steps):
            u = 2 * peers.scipy_loop(*(a[:few] for a in matrices), u) - u
        return u

    if peers.has_scipy():
        calls["scipy loop"] = loop
    if find_spec("jax"):
        calls["jax"] = jax_options(job)
    return Job(
        size=f"{count} options, {rows} prices, {job.steps} steps",
        calls=calls,
        share={"scipy loop": few / count},
        part=lambda u: u[:few],
    )


def jax_options(job: Options) -> Call:
    """Return the steps of options as a compiled program of JAX with its own solver."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    lower = np.array(job.lower)
    upper = np.array(job.upper)
    lower[:, 0] = upper[:, -1] = 0.0  # JAX reads the corners
    diagonals = [jnp.asarray(a) for a in (lower, job.diag, upper)]

    @jax.jit
    def solve(diagonals: Any, u: Any) -> Any:
        def step(u: Any, _: None) -> Any:
            x = jax.lax.linalg.tridiagonal_solve(*diagonals, u[..., None])[..., 0]
            return 2 * x - u, None

        return jax.lax.scan(step, u, None, length=job.steps)[0]

    payoff = jnp.asarray(job.payoff)
    return lambda: solve(diagonals, payoff).block_until_ready()


def splines(curves: int = 10_000, knots: int = 512) -> Job:
    """Return the job of curves: created, then evaluated."""
    x, points = np.linspace(0, 1, knots), np.linspace(0, 1, knots + 1)[:-1]
    y = np.random.default_rng(3).standard_normal((knots, curves))
    calls: dict[str, Call] = {"package": lambda: pysolvers.CubicSpline(x, y)(points)}
    if peers.has_scipy():
        from scipy.interpolate import CubicSpline as SciPySpline

        calls["scipy"] = lambda: SciPySpline(x, y)(points)
    return Job(size=f"{curves} curves of {knots} values", calls=calls)


def poisson(n: int = 1024) -> Job:
    """Return the job of a Poisson equation, with the solvers of `poisson`."""
    threads = backends.require("cpu").default_threads()
    makers = poisson_benchmark.makers((n, n), threads)
    names = {"package": "package", "splu": "splu", "spectral": "scipy fft", "pyamg": "pyamg"}
    solvers = {name: makers[key]() for key, name in names.items() if key in makers}
    f = np.random.default_rng(4).uniform(-1, 1, (n, n))
    calls: dict[str, Call] = {name: lambda solve=solve: solve(f) for name, solve in solvers.items()}
    return Job(size=f"{n} x {n} cells", calls=calls)


def heat(n: int = 1024, r: float = 50.0) -> Job:
    """Return the job of a plate: a Peaceman-Rachford step with dt k / h^2 = r, sides at 0."""
    inner = np.random.default_rng(5).standard_normal((n - 2, n - 2))
    half = r / 2
    solver, first = plate(inner, r, "cpu")
    calls: dict[str, Call] = {"package": solver.step}
    if (numba := numba_or_none()) is not None:
        calls["numba"] = numba_plate(numba, inner, half)
    if peers.has_scipy():
        calls["scipy"] = scipy_plate(inner, half)
    return Job(size=f"{n} x {n} nodes", calls=calls, values={"package": first})


def plate(inner: Any, r: float, device: str) -> tuple[Any, Any]:
    """Return a solver after one step, and the inner nodes then."""
    solver = pysolvers.HeatADI(
        tuple(n + 2 for n in inner.shape),
        1.0,
        dt=r,
        boundary=0.0,
        initial=np.pad(inner, 1),
        scheme="peaceman-rachford",
        damped_start=False,
        device=device,
    )
    solver.step()
    return solver, solver.u[1:-1, 1:-1].copy()


def scipy_plate(inner: Any, half: float) -> Call:
    """Return a Peaceman-Rachford step of the inner nodes of a plate by SciPy's banded solver."""
    from scipy.linalg import solve_banded

    bands = np.empty((3, len(inner)))
    bands[0], bands[1], bands[2] = -half, 1 + 2 * half, -half

    def sweep(t: Any) -> Any:
        padded = np.pad(t, ((1, 1), (0, 0)))
        rhs = t + half * (padded[2:] - 2 * t + padded[:-2])
        return solve_banded((1, 1), bands, rhs.T, check_finite=False)

    return lambda: sweep(sweep(inner))


def jax_plate(inner: Any, half: float) -> Call:
    """Return a Peaceman-Rachford step of the inner nodes of a plate as a program of JAX."""
    import jax
    import jax.numpy as jnp

    start = jnp.asarray(inner)
    off, diag = jnp.full_like(start, -half), jnp.full_like(start, 1 + 2 * half)
    lower, upper = off.at[:, 0].set(0), off.at[:, -1].set(0)  # JAX reads the corners

    def sweep(t: Any) -> Any:
        padded = jnp.pad(t, ((1, 1), (0, 0)))
        rhs = t + half * (padded[2:] - 2 * t + padded[:-2])
        return jax.lax.linalg.tridiagonal_solve(lower, diag, upper, rhs[..., None])[..., 0].T

    step = jax.jit(lambda t: sweep(sweep(t)))
    return lambda: step(start).block_until_ready()


def numba_plate(numba: Any, inner: Any, half: float) -> Call:
    """Return a Peaceman-Rachford step of the inner nodes of a plate as a program of Numba."""
    n = len(inner)
    c, pivot = np.empty(n), np.empty(n)  # of one matrix, which all lines share
    pivot[0] = 1 / (1 + 2 * half)
    c[0] = -half * pivot[0]
    for i in range(1, n):
        pivot[i] = 1 / (1 + 2 * half + half * c[i - 1])
        c[i] = -half * pivot[i]

    @numba.njit(parallel=True)
    def step(t, c, pivot):
        n = len(t)
        x, y = np.empty_like(t), np.empty_like(t)
        for j in numba.prange(n):
            before = 0.0
            for i in range(n):
                south = t[j - 1, i] if j > 0 else 0.0
                north = t[j + 1, i] if j < n - 1 else 0.0
                rhs = t[j, i] + half * (south - 2 * t[j, i] + north)
                before = (rhs + half * before) * pivot[i]
                x[j, i] = before
            for i in range(n - 2, -1, -1):
                x[j, i] -= c[i] * x[j, i + 1]
        width = 64  # columns of a block: the rows of the sweep along y are contiguous
        for block in numba.prange((n + width - 1) // width):
            begin, end = block * width, min(n, (block + 1) * width)
            for j in range(n):
                for i in range(begin, end):
                    west = x[j, i - 1] if i > 0 else 0.0
                    east = x[j, i + 1] if i < n - 1 else 0.0
                    rhs = x[j, i] + half * (west - 2 * x[j, i] + east)
                    if j > 0:
                        rhs += half * y[j - 1, i]
                    y[j, i] = rhs * pivot[j]
            for j in range(n - 2, -1, -1):
                for i in range(begin, end):
                    y[j, i] -= c[j] * y[j + 1, i]
        return y

    return lambda: step(inner, c, pivot)


def one_small(rows: int = 64) -> Job:
    """Return the job of one system, with the programs of `bench small`."""
    calls = small.calls(1, rows, threads=1)
    names = {"package": "package", "numba": "numba", "scipy": "scipy", "lapack": "lapack"}
    return Job(
        size=f"{rows} rows",
        calls={name: calls[key] for key, name in names.items() if key in calls},
    )


JOBS: dict[str, Callable[[], Job]] = {
    "ocean": ocean,
    "options": options,
    "splines": splines,
    "poisson": poisson,
    "heat": heat,
    "small": one_small,
}


def measure(
    job: Job,
    samples: int = SAMPLES,
    budget: float = BUDGET,
    on_host: Callable[[Any], Any] = np.asarray,
) -> dict[str, Any]:
    """Return the medians of the seconds of the programs of a job, and their differences."""
    results = {
        name: job.values[name] if name in job.values else call() for name, call in job.calls.items()
    }
    own = on_host(results["package"])
    differences = {}
    for name, result in results.items():
        expected = job.part(own) if name in job.share else own
        worst = np.abs(on_host(result) - expected).max() / np.abs(expected).max()
        differences[name] = float(f"{worst:.1e}")
    del results
    times = medians(job.calls, samples, seconds=small.SAMPLE_SECONDS, budget=budget)
    return {
        "size": job.size,
        "seconds": {
            name: float(f"{seconds / job.share.get(name, 1.0):.4g}")
            for name, seconds in times.items()
        },
        "share": job.share,
        "difference": {name: d for name, d in differences.items() if name != "package"},
    }


def table(record: Record) -> Table:
    """Return the table of a record: milliseconds, and ratios to the package."""
    rows = []
    for name, case in record["cases"].items():
        head, own = (name, case["size"]), case["seconds"]["package"]
        for program, seconds in case["seconds"].items():
            scaled = "scaled" if program in case["share"] else ""
            differs = case["difference"].get(program)
            rows.append((*head, program, 1e3 * seconds, seconds / own, differs, scaled))
            head = ("", "")
    columns = (
        Column("job"),
        Column("size", left=True),
        Column("program", left=True),
        Column("ms", ".4g"),
        Column("ratio", ".2f"),
        Column("differs", ".0e"),
        Column("", left=True),
    )
    return Table("", columns, rows)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    parser.add_argument("--only", nargs="+", choices=JOBS, default=list(JOBS), help="jobs")
    add_options(parser, "gpu", samples=SAMPLES)


def run(args: argparse.Namespace) -> int:
    """Measure, print the table and write the record."""
    if args.record and set(args.only) != set(JOBS):
        raise ValueError("--record writes the record of all jobs: leave out --only")
    makers, on_host = JOBS, np.asarray
    if args.gpu:
        from .jobs_gpu import JOBS as makers, device_values as on_host
    measurement, cases = Measurement("jobs", PACKAGES, gpu=args.gpu), {}
    for name in progress([name for name in args.only if name in makers], "jobs"):
        try:
            job = makers[name]()
        except ModuleNotFoundError as error:
            print(f"{name}: not measured: {error}", file=sys.stderr)
            continue
        cases[name] = measure(job, args.samples, on_host=on_host)
    cpu = backends.require("cpu")
    settings = {"threads": cpu.default_threads(), "samples": args.samples}
    record = measurement.record(cases, settings, kernel=cpu.describe())
    finish(args, record, [table(record)])
    return 0

"""The jobs of `jobs` on a GPU, compared with cuSPARSE, JAX and CuPy.

Arrays are on the device before a call, and a call returns when the device has finished. cuSPARSE
solves interleaved systems (`gtsvInterleavedBatch`), whose operands it overwrites: their copies are
part of the call, as they are in a program that keeps its matrix. JAX solves lines of the last axis:
the moves of axes that a program with another layout needs are part of the call.
"""

from collections.abc import Callable
from typing import Any

import cupy
import numpy as np

import pysolvers

from . import gpu_peers, jobs
from .gpu_cases import GpuCase
from .jobs import Job
from .poisson import with_cupy

__all__ = ["JOBS", "device_values"]


def device_values(result: Any) -> Any:
    """Return a result on the host."""
    return cupy.asnumpy(result) if isinstance(result, cupy.ndarray) else np.asarray(result)


def waiting(call: Callable[[], Any]) -> Callable[[], Any]:
    """Return a call that waits for the device."""

    def waits() -> Any:
        result = call()
        cupy.cuda.Device().synchronize()
        return result

    return waits


def with_jax() -> Any:
    """Return JAX on the GPU."""
    return gpu_peers._jax()


def ocean(shape: tuple[int, int, int] = (75, 200, 300)) -> Job:
    """Return the job of columns."""
    lower, diag, upper, rhs = (cupy.asarray(a) for a in jobs.columns(shape))
    calls = {
        "package": waiting(lambda: pysolvers.solve_tridiagonal(lower, diag, upper, rhs, axis=0))
    }
    flat = [a.reshape(shape[0], -1) for a in (lower, diag, upper, rhs)]
    case = GpuCase(
        part="jobs",
        matrix="own",
        axis="first",
        dtype="float64",
        rows=shape[0],
        systems=flat[0].shape[1],
    )
    x = cupy.empty_like(flat[3])
    peer = gpu_peers.cusparse("cusparse interleaved 2", case, [*flat, x])

    def cusparse() -> Any:
        if peer.restore is not None:
            peer.restore()
        peer.solve()
        return x.reshape(shape)

    calls["cusparse"] = waiting(cusparse)
    jax = with_jax()
    operands = [jax.dlpack.from_dlpack(a) for a in (lower, diag, upper, rhs)]

    @jax.jit
    def solve(*operands: Any) -> Any:
        lines = [jax.numpy.moveaxis(a, 0, -1) for a in operands]
        x = jax.lax.linalg.tridiagonal_solve(*lines[:3], lines[3][..., None])[..., 0]
        return jax.numpy.moveaxis(x, -1, 0)

    calls["jax"] = lambda: solve(*operands).block_until_ready()
    return Job(size=" x ".join(map(str, shape)), calls=calls)


def options(count: int = 10_000, rows: int = 200, steps: int = 50) -> Job:
    """Return the job of options."""
    job = jobs.black_scholes(count, rows, steps)
    matrices = [cupy.asarray(a) for a in (job.lower, job.diag, job.upper)]
    payoff = cupy.asarray(job.payoff)

    def package() -> Any:
        factor = pysolvers.factor_tridiagonal(*matrices)
        u = payoff.copy()
        x = cupy.empty_like(u)
        for _ in range(job.steps):
            factor.solve(u, out=x)
            u = 2 * x - u
        return u

    with_jax()
    return Job(
        size=f"{count} options, {rows} prices, {job.steps} steps",
        calls={"package": waiting(package), "jax": jobs.jax_options(job)},
    )


def splines(curves: int = 10_000, knots: int = 512, few: int = 64) -> Job:
    """Return the job of curves; CuPy, which creates one after the other, gets a few of them."""
    from cupyx.scipy.interpolate import CubicSpline as CupySpline

    x = cupy.linspace(0, 1, knots)
    points = cupy.linspace(0, 1, knots + 1)[:-1]
    y = cupy.asarray(np.random.default_rng(3).standard_normal((knots, curves)))
    part = cupy.ascontiguousarray(y[:, :few])
    return Job(
        size=f"{curves} curves of {knots} values",
        calls={
            "package": waiting(lambda: pysolvers.CubicSpline(x, y)(points)),
            "cupy loop": waiting(lambda: CupySpline(x, part)(points)),
        },
        share={"cupy loop": few / curves},
        part=lambda values: values[:, :few],
    )


def poisson(n: int = 4096) -> Job:
    """Return the job of a Poisson equation; CuPy by sine transforms along both axes."""
    f = cupy.random.default_rng(1).random((n, n), np.dtype("f8"))  # that of `poisson`
    solver = pysolvers.FastPoisson((n, n), 1.0, boundary=0.0, grid="cells", device="cuda")
    return Job(
        size=f"{n} x {n} cells",
        calls={
            "package": waiting(lambda: solver.solve(f)),
            "cupy": waiting(with_cupy((n, n), np.dtype("f8"))),
        },
    )


def heat(n: int = 4096, r: float = 50.0) -> Job:
    """Return the job of a plate."""
    inner = np.random.default_rng(5).standard_normal((n - 2, n - 2))
    solver, first = jobs.plate(inner, r, "cuda")
    with_jax()
    return Job(
        size=f"{n} x {n} nodes",
        calls={
            "package": waiting(solver.step),
            "jax": jobs.jax_plate(inner, r / 2),
        },
        values={"package": first},
    )


JOBS: dict[str, Callable[[], Job]] = {
    "ocean": ocean,
    "options": options,
    "splines": splines,
    "poisson": poisson,
    "heat": heat,
}

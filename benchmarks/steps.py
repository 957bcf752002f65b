"""Products, implicit steps, masks and several right-hand sides compared with the solve alone.

Float64, random entries, all in one process; the samples of a case and of its solve alternate. The
ratio is that of the medians of the times; "bar" is what it should be at most.

    product         A x, 10,000 systems of 199 rows, and (75, 200, 300) along axis 0
    theta step      Crank and Nicolson with matrices of their own; compared with the solve
    kept factors    the same with `factor_theta`, compared with `factor_tridiagonal` and its solve
    numpy           the right-hand side of the step by NumPy, and the solve
    diffusion       `implicit_diffusion` of (75, 200, 300) in columns of several depths
    numba           `implicit_diffusion` compared with kernels of Numba as users write them for this
                    step, with `prange`, column by column or level by level (if it is installed)
    mask            `solve_tridiagonal(where=)` of the same
    sides           3 and 10 right-hand sides with one matrix per column, and as many solves
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from pysolvers import (
    factor_theta,
    factor_tridiagonal,
    implicit_diffusion,
    solve_tridiagonal,
    theta_step,
    tridiagonal_matvec,
)
from pysolvers._progress import progress
from pysolvers._repr import shape_text
from pysolvers._runtime import backends
from pysolvers.cases.tables import Column, Table

from .jobs import numba_or_none
from .options import add_options
from .record import Measurement, Record, finish
from .timing import medians

Call = Callable[[], Any]

DT = 0.5


def systems(shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Return the diagonals of A, and of I - dt A / 2, and values."""
    rng = np.random.default_rng(1)
    lower, upper = rng.uniform(0, 1, (2, *shape))
    diag = -(lower + upper)
    h = DT / 2
    return lower, diag, upper, -h * lower, 1 - h * diag, -h * upper, rng.standard_normal(shape)


def columns(shape: tuple[int, ...]) -> tuple[np.ndarray, ...]:
    """Return diffusivities of faces, thicknesses, and the mask of a smooth sea bed."""
    rng = np.random.default_rng(2)
    n, ny, nx = shape
    faces = 10 ** rng.uniform(-5, -1, (n - 1, ny, nx))
    y, x = np.meshgrid(np.linspace(0, 7, ny), np.linspace(0, 9, nx), indexing="ij")
    depth = n * np.clip(0.75 + 0.5 * np.sin(x) * np.cos(y), 0, 1)
    return faces, np.linspace(1, 200, n), np.arange(n)[:, None, None] < depth


def by_numpy(lower: Any, diag: Any, upper: Any, u: Any) -> np.ndarray:
    """Return (I + dt A / 2) u as it is written with NumPy."""
    rhs = u + DT / 2 * diag * u
    rhs[:, 1:] += DT / 2 * lower[:, 1:] * u[:, :-1]
    rhs[:, :-1] += DT / 2 * upper[:, :-1] * u[:, 1:]
    return rhs


def batches(shape: tuple[int, ...], options: Record) -> list[tuple[str, float | None, Call, Call]]:
    """Return the cases of contiguous systems: name, bar, call, and its solve."""
    *matrix, _, _, _, u = systems(shape)
    of_step = systems(shape)[3:6]
    x = np.empty_like(u)
    kept = factor_tridiagonal(*of_step)
    steps = factor_theta(*matrix, dt=DT)
    out = {"out": x, **options}

    def solve() -> Any:
        return solve_tridiagonal(*of_step, u, **out)

    return [
        ("product", 1.0, lambda: tridiagonal_matvec(*matrix, u, **out), solve),
        ("theta step", 1.35, lambda: theta_step(*matrix, u, dt=DT, **out), solve),
        (
            "kept factors",
            1.35,
            lambda: steps.step(u, out=x, **options),
            lambda: kept.solve(u, out=x, **options),
        ),
        (
            "numpy",
            None,
            lambda: solve_tridiagonal(*of_step, by_numpy(*matrix, u), **out),
            solve,
        ),
    ]


def by_numba(u: Any, faces: Any, thick: Any, dt: float, inside: Any, x: Any) -> dict[str, Call]:
    """Return the step of `implicit_diffusion` as users write it with Numba, if it is installed.

    Column by column, as the equations are written down, and level by level, which the compiler
    turns into vector instructions.
    """
    if (numba := numba_or_none()) is None:
        return {}

    @numba.njit
    def row(k, j, i, u, faces, thick, dt, inside):
        lower = upper = 0.0
        if k > 0 and inside[k, j, i] and inside[k - 1, j, i]:
            lower = 2 * dt * faces[k - 1, j, i] / (thick[k - 1] + thick[k])
        if k < len(thick) - 1 and inside[k, j, i] and inside[k + 1, j, i]:
            upper = 2 * dt * faces[k, j, i] / (thick[k] + thick[k + 1])
        return lower, thick[k] + lower + upper, upper, thick[k] * u[k, j, i]

    @numba.njit(parallel=True)
    def by_columns(u, faces, thick, dt, inside, x):
        layers, rows, columns = u.shape
        for j in numba.prange(rows):
            c = np.empty(layers)
            y = np.empty(layers)
            for i in range(columns):
                for k in range(layers):
                    lower, pivot, upper, rhs = row(k, j, i, u, faces, thick, dt, inside)
                    if k > 0:
                        pivot -= lower * c[k - 1]
                        rhs += lower * y[k - 1]
                    c[k] = upper / pivot
                    y[k] = rhs / pivot
                x[-1, j, i] = y[-1]
                for k in range(layers - 2, -1, -1):
                    x[k, j, i] = y[k] + c[k] * x[k + 1, j, i]

    @numba.njit(parallel=True)
    def by_levels(u, faces, thick, dt, inside, x):
        layers, rows, columns = u.shape
        for j in numba.prange(rows):
            c = np.empty((layers, columns))
            for k in range(layers):
                for i in range(columns):
                    lower, pivot, upper, rhs = row(k, j, i, u, faces, thick, dt, inside)
                    if k > 0:
                        pivot -= lower * c[k - 1, i]
                        rhs += lower * x[k - 1, j, i]
                    c[k, i] = upper / pivot
                    x[k, j, i] = rhs / pivot
            for k in range(layers - 2, -1, -1):
                for i in range(columns):
                    x[k, j, i] += c[k, i] * x[k + 1, j, i]

    return {
        "numba, columns": lambda: by_columns(u, faces, thick, dt, inside, x),
        "numba, levels": lambda: by_levels(u, faces, thick, dt, inside, x),
    }


def oceans(shape: tuple[int, ...], options: Record) -> list[tuple[str, float | None, Call, Call]]:
    """Return the cases of columns along axis 0."""
    *matrix, lower, diag, upper, u = systems(shape)
    faces, thick, inside = columns(shape)
    x = np.empty_like(u)
    out = {"out": x, "axis": 0, **options}

    def solve() -> Any:
        return solve_tridiagonal(lower, diag, upper, u, **out)

    def diffuse() -> Any:
        return implicit_diffusion(u, faces, thick, 1e3, where=inside, **out)

    found: list[tuple[str, float | None, Call, Call]] = [
        ("product", 1.0, lambda: tridiagonal_matvec(*matrix, u, **out), solve),
        ("theta step", 1.35, lambda: theta_step(*matrix, u, dt=DT, **out), solve),
        ("diffusion", 1.2, diffuse, solve),
        (
            "mask",
            None,
            lambda: solve_tridiagonal(lower, diag, upper, u, where=inside, **out),
            solve,
        ),
    ]
    for name, peer in by_numba(u, faces, thick, 1e3, inside, x).items():
        found.append((name, 0.33 if name.endswith("columns") else None, diffuse, peer))
    return found


def tracers(shape: tuple[int, ...], options: Record) -> list[tuple[str, float | None, Call, Call]]:
    """Return the cases of several right-hand sides."""
    *_, lower, diag, upper, u = systems(shape)
    found: list[tuple[str, float | None, Call, Call]] = []
    for count, bar in ((3, 0.6), (10, 0.45)):
        sides = np.stack([u + k for k in range(count)])
        x = np.empty_like(sides)

        def together(sides: Any = sides, x: Any = x) -> Any:
            return solve_tridiagonal(lower, diag, upper, sides, axis=1, out=x, **options)

        def apart(sides: Any = sides, x: Any = x) -> None:
            for side, to in zip(sides, x, strict=True):
                solve_tridiagonal(lower, diag, upper, side, axis=0, out=to, **options)

        found.append((f"sides {count}", bar, together, apart))
    return found


def cases(args: argparse.Namespace) -> list[Record]:
    """Measure all cases."""
    options = {"threads": args.threads}
    small = args.quick
    groups = [
        (batches, (200, 19) if small else (10_000, 199)),
        (oceans, (9, 8, 10) if small else (75, 200, 300)),
        (tracers, (9, 8, 10) if small else (75, 100, 300)),
    ]
    found = []
    for group, shape in progress(groups, "steps"):
        for name, bar, call, solve in group(shape, options):
            times = medians({"step": call, "solve": solve}, args.runs)
            seconds = {k: float(f"{t:.4g}") for k, t in times.items()}
            found.append({"name": name, "shape": list(shape), "bar": bar, "seconds": seconds})
    return found


def ratio_of(entry: Record) -> float:
    """Return the ratio of a case to its solve."""
    return entry["seconds"]["step"] / entry["seconds"]["solve"]


def tables(record: Record) -> list[Table]:
    """Return the table of a record."""
    rows = [
        (
            entry["name"],
            shape_text(entry["shape"]),
            1e3 * entry["seconds"]["step"],
            1e3 * entry["seconds"]["solve"],
            ratio_of(entry),
            entry["bar"],
        )
        for entry in record["cases"]
    ]
    columns_ = [
        Column("case", left=True),
        Column("values", left=True),
        Column("ms", ".2f"),
        Column("compared, ms", ".2f"),
        Column("ratio", ".2f"),
        Column("bar", ".2f"),
    ]
    note = (
        f"Float64, {record['settings']['threads']} threads, medians of "
        f"{record['settings']['runs']} runs. Measured on {record['machine']['cpu']}; load before: "
        f"{record['load']}."
    )
    has_peer = any(entry["name"].startswith("numba") for entry in record["cases"])
    peer = (
        "numba: the diffusion compared with kernels of Numba."
        if has_peer
        else "Numba is not installed."
    )
    return [Table("", columns_, rows, (note, peer))]


def missed(record: Record) -> list[str]:
    """Return what misses its bar."""
    return [
        f"{entry['name']}, {shape_text(entry['shape'])}: {ratio_of(entry):.2f} times its solve or "
        f"peer, bar {entry['bar']:g}"
        for entry in record["cases"]
        if entry["bar"] is not None and ratio_of(entry) > entry["bar"]
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the benchmark to its parser."""
    add_options(parser, "quick", "threads", runs=15)


def run(args: argparse.Namespace) -> int:
    """Measure, print the table, and write the record."""
    measurement = Measurement("steps")
    args.threads = args.threads or backends.require("cpu").default_threads()
    settings = {"quick": args.quick, "threads": args.threads, "runs": args.runs}
    record = measurement.record(cases(args), settings)
    finish(args, record, tables(record), missed(record))
    return 0

#!/usr/bin/env python3
"""Compare the speed of two builds in one process, in which they take turns.

    python tools/ab.py OLD NEW                       # all cases
    python tools/ab.py OLD NEW 'plain/*f64*' heat    # cases by name: patterns, or their first words
    python tools/ab.py OLD OLD                       # the noise of this machine
    python tools/ab.py NEW@avx2 NEW@avx512           # two instruction sets of one build
    python tools/ab.py --list

OLD and NEW are copies of the repository with a compiled module, or compiled modules `_core*.so`,
which the package of this copy then calls; those must have the contract of this package. A word
after @ is the value of PYSOLVERS_ISA for that build.

Both builds are called with the same arrays. They alternate, and the first of each pair changes,
so that a drift of the clock of the processor or another process affects both; the mean of the
fastest quarter of the times of each counts. The time is CPU time of the calling thread or, with
more than one thread, time of day. A case whose ratio new/old is above the limit, or its inverse
above it, is measured again: with four times the rounds, in half of which the solvers and factors
of NEW are made before those of OLD, because their places in memory can change the time by a
quarter. This second ratio counts. The exit status is 1 if the ratio that counts is above the limit
for a case.
"""

import argparse
import atexit
import contextlib
import fnmatch
import importlib
import importlib.machinery
import importlib.util
import itertools
import json
import math
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 1.03
ROUNDS = 24
ROUND_SECONDS = 2e-3  # of one build in one round, at least; shorter calls are repeated
SQUARE = ((0, 1), (0, 1))
DTYPES = {"f32": np.float32, "f64": np.float64, "c64": np.complex64, "c128": np.complex128}

# A call that is timed, made of the package of a build and the number of threads.
Call = Callable[[], object]
Maker = Callable[[Any, int], Call]


class Build:
    """A build: its package, apart from that of the other build."""

    def __init__(self, text: str) -> None:
        path, _, instructions = text.partition("@")
        found = Path(path).resolve()
        if not found.exists():
            sys.exit(f"{path} does not exist: OLD and NEW are folders or compiled modules")
        root, core = (found, None) if found.is_dir() else (ROOT, found)
        if instructions:
            core = self._copy(core or next((root / "pysolvers").glob("_core.*.so")))
        with (
            self._without_package(),
            self._on_path(root),
            self._environment("PYSOLVERS_ISA", instructions),
        ):
            if core is not None:
                sys.modules["pysolvers._core"] = self._module(core)
            self.package = importlib.import_module("pysolvers")
            for name in self.package.__all__:
                getattr(self.package, name)  # imports its module, now that the path is this one
            importlib.import_module("pysolvers.papers.lmsor2012")
            backends = importlib.import_module("pysolvers._runtime.backends")
            if reason := backends.unavailable_reason("cpu"):
                sys.exit(f"{path}: {reason}")
            self.description = backends.require("cpu").describe()
            self._modules = self._package_modules()

    @staticmethod
    def _copy(path: Path) -> Path:
        """Return a copy of a module: one file is loaded once, with one instruction set."""
        folder = Path(tempfile.mkdtemp(prefix="ab-"))
        atexit.register(shutil.rmtree, folder)
        return Path(shutil.copy(path, folder))

    @staticmethod
    @contextlib.contextmanager
    def _environment(name: str, value: str) -> Iterator[None]:
        """Set a variable of the environment, unless the value is empty."""
        former = os.environ.get(name)
        if value:
            os.environ[name] = value
        try:
            yield
        finally:
            if value and former is None:
                del os.environ[name]
            elif former is not None:
                os.environ[name] = former

    @staticmethod
    def _module(path: Path) -> ModuleType:
        """Load the extension module of a file."""
        loader = importlib.machinery.ExtensionFileLoader("pysolvers._core", str(path))
        spec = importlib.util.spec_from_loader("pysolvers._core", loader)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        return module

    @staticmethod
    def _package_modules() -> dict[str, ModuleType]:
        return {n: m for n, m in sys.modules.items() if n.split(".")[0] == "pysolvers"}

    @classmethod
    @contextlib.contextmanager
    def _without_package(cls) -> Iterator[None]:
        """Remove the package from the imported modules, and restore them afterwards."""
        others = cls._package_modules()
        for name in others:
            del sys.modules[name]
        try:
            yield
        finally:
            for name in cls._package_modules():
                del sys.modules[name]
            sys.modules.update(others)

    @staticmethod
    @contextlib.contextmanager
    def _on_path(root: Path) -> Iterator[None]:
        sys.path.insert(0, str(root))
        try:
            yield
        finally:
            sys.path.remove(str(root))

    def activate(self) -> None:
        """Let imports at the time of a call find the package of this build."""
        for name in self._package_modules():
            del sys.modules[name]
        sys.modules.update(self._modules)

    def make(self, maker: Maker, threads: int) -> Call:
        """Return the call of a case, after a first run."""
        self.activate()
        call = maker(self.package, threads)
        call()
        self._modules = self._package_modules()
        return call


@dataclass
class Case:
    """A call, by name, and how many unknowns it computes."""

    name: str
    unknowns: int
    prepare: Callable[[], Maker]  # makes the data that both builds share


def systems(
    rows: int, batch: int, axis: str, dtype: str, seed: int = 0
) -> tuple[list[np.ndarray], int]:
    """Return the operands and an output of a dominant batch, and the axis of the systems."""
    rng = np.random.default_rng(seed)
    shape = (batch, rows) if axis == "last" else (rows, batch)
    kind = np.dtype(DTYPES[dtype])

    def operand() -> np.ndarray:
        part = rng.standard_normal(shape)
        if kind.kind == "c":
            return (part + 1j * rng.standard_normal(shape)).astype(kind)
        return part.astype(kind)

    lower, diag, upper, rhs = (operand() for _ in range(4))
    diag += 12
    return [lower, diag, upper, rhs, np.empty_like(rhs)], -1 if axis == "last" else 0


def first_system(operand: np.ndarray, axis: str) -> np.ndarray:
    """Return the first system of an operand, for all to share."""
    return np.ascontiguousarray(operand[:1] if axis == "last" else operand[:, :1])


def solve_case(
    group: str,
    rows: int,
    batch: int,
    axis: str,
    dtype: str,
    *,
    shared: bool = False,
    **options: object,
) -> Case:
    """Return a batch of own matrices, or of right-hand sides of one matrix."""

    def prepare() -> Maker:
        (*operands, out), along = systems(rows, batch, axis, dtype)
        if shared:
            operands[:3] = [first_system(word, axis) for word in operands[:3]]

        def maker(package: Any, threads: int) -> Call:
            return lambda: package.solve_tridiagonal(
                *operands, axis=along, out=out, threads=threads, **options
            )

        return maker

    name = f"{group}/{dtype}/{axis}/{batch}x{rows}"
    return Case(name, rows * batch, prepare)


def factor_case(
    step: str, rows: int, batch: int, axis: str, dtype: str, *, shared: bool, **options: object
) -> Case:
    """Return the factorization of a batch (step "make"), or the solve with one."""

    def prepare() -> Maker:
        (*matrix, rhs, out), along = systems(rows, batch, axis, dtype)
        if shared:
            matrix = [first_system(word, axis) for word in matrix]

        def maker(package: Any, threads: int) -> Call:
            factor = package.factor_tridiagonal(*matrix, axis=along, threads=threads, **options)
            if step == "make":
                return lambda: factor.refactor(*matrix)
            trans = "T" if step == "transposed" else "N"
            return lambda: factor.solve(rhs, out=out, threads=threads, trans=trans)

        return maker

    words = [step, "shared" if shared else "own", *options]
    name = f"factor/{'-'.join(words)}/{dtype}/{axis}/{batch}x{rows}"
    return Case(name, rows * (1 if shared and step == "make" else batch), prepare)


def stepper_case(name: str, unknowns: int, create: Callable[[Any, int], Any], step: str) -> Case:
    """Return one step or two iterations of a solver."""
    count = 2 if step == "iterate" else 1

    def maker(package: Any, threads: int) -> Call:
        solver = create(package, threads)
        method = getattr(solver, step)
        return lambda: method(count)

    return Case(name, unknowns * count, lambda: maker)


def heat_cases() -> Iterator[Case]:
    """Return time steps of heat conduction."""
    for shape, dtype in itertools.product(((129, 130), (1025, 1024), (65, 64, 66)), ("f32", "f64")):
        for kind, k in (("constant", 1.0), ("varied", lambda x, y: 1 + 0.1 * x * y)):

            def create(package: Any, threads: int, shape=shape, dtype=dtype, diffusivity=k) -> Any:
                return package.HeatADI(
                    shape,
                    1 / 64,
                    1e-4,
                    diffusivity=diffusivity,
                    boundary=package.Dirichlet(1.0),
                    initial=lambda x, y: 1 + np.sin(3 * x) * y,
                    dtype=DTYPES[dtype],
                    threads=threads,
                )

            name = f"heat/{kind}/{dtype}/{'x'.join(map(str, shape))}"
            yield stepper_case(name, math.prod(shape), create, "step")


def transport_cases() -> Iterator[Case]:
    """Return time steps of GCEIDD."""
    for dtype, scheme, strips in itertools.product(("f32", "f64"), ("cp", "cfd", "mu"), (1, 4)):

        def create(package: Any, threads: int, dtype=dtype, scheme=scheme, strips=strips) -> Any:
            problem = package.ConvectionDiffusion(
                (1.0, 0.5), 1e-3, initial=lambda x, y: x * y, boundary=package.Dirichlet(1.0)
            )
            return package.GCEIDD(
                problem, (257, 260), 1e-3, scheme=scheme, strips=strips, dtype=DTYPES[dtype],
                threads=threads,
            )  # fmt: skip

        yield stepper_case(f"gceidd/{scheme}/{dtype}/{strips}", 257 * 260, create, "step")
    fields = {
        "lines": ((lambda x, y: -4 * y, lambda x, y: 4 * x), 5e-3),
        "fields": ((lambda x, y: x * y, lambda x, y: x - y), lambda x, y: 5e-3 * (1 + x * y)),
    }
    for kind, dtype in itertools.product(fields, ("f32", "f64")):

        def varied(package: Any, threads: int, kind=kind, dtype=dtype) -> Any:
            problem = package.ConvectionDiffusion(
                *fields[kind], initial=lambda x, y: x * y, boundary=package.Dirichlet(0.0)
            )
            return package.GCEIDD(
                problem, (1025, 1024), 2.5e-4, dtype=DTYPES[dtype], threads=threads
            )

        yield stepper_case(f"gceidd/cp-{kind}/{dtype}", 1025 * 1024, varied, "step")


def relaxation_cases() -> Iterator[Case]:
    """Return iterations of the red-black solvers."""
    for dtype, kernel in itertools.product(("f32", "f64"), ("auto", 1, 2, 3, "serial")):

        def create(package: Any, threads: int, dtype=dtype, kernel=kernel) -> Any:
            problem = package.SteadyConvectionDiffusion(
                3.0, lambda x, y: 5 * y, shape=(258, 261), extent=SQUARE, boundary=1.0
            )
            make = package.papers.lmsor2012.LMSOR
            return make(problem, kernel=kernel, dtype=DTYPES[dtype], threads=threads)

        yield stepper_case(f"relaxation/lmsor-{kernel}/{dtype}", 258 * 261, create, "iterate")
    for dtype in ("f32", "f64"):

        def plate(package: Any, threads: int, dtype=dtype) -> Any:
            return package.RedBlackSOR(
                (258, 261), extent=SQUARE, boundary=1.0, dtype=DTYPES[dtype], threads=threads
            )

        yield stepper_case(f"relaxation/sor/{dtype}", 258 * 261, plate, "iterate")


def flow_cases() -> Iterator[Case]:
    """Return iterations of a cavity, steps of the staggered one and of the cylinder."""

    def cavity(package: Any, threads: int) -> Any:
        return package.LidDrivenCavity(1000, 129, threads=threads)

    def staggered(package: Any, threads: int) -> Any:
        return package.StaggeredCavity(1000, 128, threads=threads)

    yield stepper_case("flow/cavity", 129**2, cavity, "iterate")
    yield stepper_case("flow/staggered", 128**2, staggered, "step")
    for psi, dtype in itertools.product(("fast", "lines"), ("f32", "f64")):

        def cylinder(package: Any, threads: int, psi=psi, dtype=dtype) -> Any:
            named = hasattr(package.SquareCylinder, "psi_solver")  # in a former build psi
            which = {"psi_solver" if named else "psi": psi}
            options = {**which, "dtype": DTYPES[dtype], "threads": threads}
            return package.SquareCylinder(100, (161, 801), **options)

        yield stepper_case(f"flow/cylinder-{psi}/{dtype}", 161 * 801, cylinder, "step")


def spline_cases() -> Iterator[Case]:
    """Return the construction and the evaluation of splines."""
    for dtype, axis, batch in itertools.product(("f32", "f64"), ("last", "first"), (1, 200)):
        rows = 400
        shape = (batch, rows) if axis == "last" else (rows, batch)

        def prepare(dtype=dtype, axis=axis, shape=shape, rows=rows) -> Maker:
            rng = np.random.default_rng(0)
            x = np.cumsum(rng.uniform(0.5, 1.5, rows)).astype(DTYPES[dtype])
            y = rng.standard_normal(shape).astype(DTYPES[dtype])
            along = 1 if axis == "last" else 0
            return lambda package, threads: (
                lambda: package.CubicSpline(x, y, axis=along, threads=threads)
            )

        def points(dtype=dtype, axis=axis, shape=shape, rows=rows) -> Maker:
            rng = np.random.default_rng(0)
            x = np.arange(rows).astype(DTYPES[dtype])
            y = rng.standard_normal(shape).astype(DTYPES[dtype])
            at = rng.uniform(0, rows - 1, rows).astype(DTYPES[dtype])
            along = 1 if axis == "last" else 0

            def maker(package: Any, threads: int) -> Call:
                spline = package.CubicSpline(x, y, axis=along, threads=threads)
                return lambda: spline(at)

            return maker

        yield Case(f"spline/make/{dtype}/{axis}/{batch}x{rows}", rows * batch, prepare)
        yield Case(f"spline/evaluate/{dtype}/{axis}/{batch}x{rows}", rows * batch, points)


def block_cases() -> Iterator[Case]:
    """Return solves of block tridiagonal and pentadiagonal systems."""
    for dtype, side, batch, rows in itertools.product(
        ("f32", "f64"), (0, 2, 3, 4), (16, 256), (64, 500)
    ):

        def prepare(dtype=dtype, side=side, batch=batch, rows=rows) -> Maker:
            rng = np.random.default_rng(0)
            shape = (batch, rows) if side == 0 else (batch, rows, side, side)
            bands = [rng.uniform(-1, 1, shape).astype(DTYPES[dtype]) for _ in range(5)]
            shift = 6 if side == 0 else 3 * side * np.eye(side, dtype=DTYPES[dtype])
            if side == 0:
                bands[2] += shift
                rhs = rng.standard_normal(shape).astype(DTYPES[dtype])
                return lambda package, threads: (
                    lambda: package.solve_pentadiagonal(*bands, rhs, threads=threads)
                )
            rhs = rng.standard_normal((batch, rows, side, 1)).astype(DTYPES[dtype])
            matrix = (bands[0], bands[1] + shift, bands[2])
            return lambda package, threads: (
                lambda: package.solve_block_tridiagonal(*matrix, rhs, threads=threads)
            )

        name = f"blocks/{side or 'five'}/{dtype}/{batch}x{rows}"
        yield Case(name, batch * rows * max(side, 1), prepare)


def step_cases() -> Iterator[Case]:
    """Return theta steps and steps of diffusion, with and without a mask."""
    for dtype, axis, masked in itertools.product(("f32", "f64"), ("last", "first"), (False, True)):

        def prepare(step: str, dtype=dtype, axis=axis, masked=masked) -> Maker:
            rng = np.random.default_rng(0)
            shape, along = ((300, 75), 1) if axis == "last" else ((75, 300), 0)
            k, dz, u, source = (
                rng.uniform(0.5, 1.5, shape).astype(DTYPES[dtype]) for _ in range(4)
            )
            depth = np.arange(shape[along]).reshape((1, -1) if along else (-1, 1))
            deep = depth < rng.integers(20, 75, shape[1 - along]).reshape(
                (-1, 1) if along else (1, -1)
            )
            more = {"where": deep} if masked else {}
            more |= {"source": source, "axis": along}
            lower, upper = -k, -dz
            diag = 2 + k + dz

            def maker(package: Any, threads: int) -> Call:
                if step == "theta":
                    return lambda: package.theta_step(
                        -lower, -diag, -upper, u, dt=0.1, theta=1, threads=threads, **more
                    )
                faces = k[:, 1:] if along else k[1:]
                return lambda: package.implicit_diffusion(
                    u, np.ascontiguousarray(faces), dz, 0.1, threads=threads, **more
                )

            return maker

        for step in ("theta", "diffusion"):
            name = f"step/{step}{'-mask' * masked}/{dtype}/{axis}"
            yield Case(name, 75 * 300, lambda step=step, prepare=prepare: prepare(step))


def recurrence_cases() -> Iterator[Case]:
    """Return linear recurrences of first and second order: few or many lines, short or long."""
    shapes = ((1, 3000), (2, 3000), (4, 3000), (9, 3000), (100, 300), (2000, 500))
    sizes = [*shapes, (1, 1 << 17), (4, 1 << 17)]
    for dtype, axis, order, (batch, rows) in itertools.product(
        DTYPES, ("last", "first"), (1, 2), sizes
    ):

        def prepare(dtype=dtype, axis=axis, order=order, batch=batch, rows=rows) -> Maker:
            (a, _, c, b, out), along = systems(rows, batch, axis, dtype)
            a /= 8
            c /= 8
            second = {"second": c} if order == 2 else {}
            return lambda package, threads: (
                lambda: package.linear_recurrence(
                    a, b, axis=along, out=out, threads=threads, **second
                )
            )

        yield Case(f"recurrence/{order}/{dtype}/{axis}/{batch}x{rows}", batch * rows, prepare)


def product_cases() -> Iterator[Case]:
    """Return products with tridiagonal matrices."""
    for dtype, axis, (batch, rows) in itertools.product(
        DTYPES, ("last", "first"), ((1, 3000), (3, 3000), (300, 75), (4000, 500))
    ):

        def prepare(dtype=dtype, axis=axis, batch=batch, rows=rows) -> Maker:
            (*operands, out), along = systems(rows, batch, axis, dtype)
            return lambda package, threads: (
                lambda: package.tridiagonal_matvec(*operands, axis=along, out=out, threads=threads)
            )

        yield Case(f"product/{dtype}/{axis}/{batch}x{rows}", batch * rows, prepare)


def side_cases() -> Iterator[Case]:
    """Return several right-hand sides of each of many matrices."""
    for dtype, axis, sides in itertools.product(("f32", "f64"), ("last", "first"), (3, 10)):
        rows, batch = 75, 2000

        def prepare(dtype=dtype, axis=axis, sides=sides, rows=rows, batch=batch) -> Maker:
            (*matrix, _, _), along = systems(rows, batch, axis, dtype)
            rng = np.random.default_rng(1)
            shape = (sides, batch, rows) if axis == "last" else (sides, rows, batch)
            rhs = rng.standard_normal(shape).astype(DTYPES[dtype])
            out = np.empty_like(rhs)
            along = -1 if axis == "last" else 1
            matrix = [word[None] for word in matrix]
            return lambda package, threads: (
                lambda: package.solve_tridiagonal(
                    *matrix, rhs, axis=along, out=out, threads=threads
                )
            )

        yield Case(f"sides/{dtype}/{axis}/{sides}", sides * rows * batch, prepare)


def kept_cases() -> Iterator[Case]:
    """Return solves with kept factors of five diagonals and of blocks, theta steps with one."""
    for dtype, side, (batch, rows) in itertools.product(
        ("f32", "f64"), (0, 2, 3, 4), ((1, 3000), (3, 3000), (256, 64))
    ):

        def prepare(dtype=dtype, side=side, batch=batch, rows=rows) -> Maker:
            rng = np.random.default_rng(0)
            shape = (batch, rows) if side == 0 else (batch, rows, side, side)
            bands = [rng.uniform(-1, 1, shape).astype(DTYPES[dtype]) for _ in range(5)]
            bands[2] += 6 if side == 0 else 3 * side * np.eye(side, dtype=DTYPES[dtype])
            rhs = rng.standard_normal(shape[:2] + (side, 1)[: 2 * (side > 0)]).astype(DTYPES[dtype])

            def maker(package: Any, threads: int) -> Call:
                factor = (
                    package.factor_pentadiagonal(*bands, threads=threads)
                    if side == 0
                    else package.factor_block_tridiagonal(*bands[1:4], threads=threads)
                )
                return lambda: factor.solve(rhs)

            return maker

        yield Case(
            f"kept/{side or 'five'}/{dtype}/{batch}x{rows}", batch * rows * max(side, 1), prepare
        )
    for dtype, axis, shared in itertools.product(("f32", "f64"), ("last", "first"), (False, True)):

        def theta(dtype=dtype, axis=axis, shared=shared) -> Maker:
            (*matrix, u, out), along = systems(256, 1000, axis, dtype)
            if shared:
                matrix = [first_system(word, axis) for word in matrix]
            matrix[1] = -matrix[1]

            def maker(package: Any, threads: int) -> Call:
                factor = package.factor_theta(*matrix, dt=0.1, axis=along, threads=threads)
                return lambda: factor.step(u, out=out)

            return maker

        yield Case(f"kept/theta{'-shared' * shared}/{dtype}/{axis}", 256000, theta)


def grid_cases() -> Iterator[Case]:
    """Return solves of the Poisson equation on a stretched grid, steps of ParabolicADI."""
    for dtype in ("f32", "f64"):

        def poisson(dtype=dtype) -> Maker:
            rng = np.random.default_rng(0)
            x = np.cumsum(rng.uniform(0.5, 1.5, 129))
            f = rng.standard_normal((129, 129)).astype(DTYPES[dtype])

            def maker(package: Any, threads: int) -> Call:
                solver = package.FastPoisson(
                    (129, 129),
                    [x, 1.0],
                    boundary=package.Dirichlet(0.0),
                    dtype=DTYPES[dtype],
                    threads=threads,
                )
                return lambda: solver.solve(f)

            return maker

        def parabolic(package: Any, threads: int, dtype=dtype) -> Any:
            return package.ParabolicADI(
                (257, 260),
                spacing=0.01,
                dt=1e-4,
                diffusion={"xx": 1.0, "yy": 0.5, "xy": 0.3},
                advection={"x": 0.2},
                boundary=package.Dirichlet(0.0),
                initial=lambda x, y: np.sin(x) * np.sin(y),
                dtype=DTYPES[dtype],
                threads=threads,
            )

        yield Case(f"grid/poisson/{dtype}", 129**2, poisson)
        yield stepper_case(f"grid/parabolic/{dtype}", 257 * 260, parabolic, "step")


def all_cases() -> list[Case]:
    """Return every case."""
    kinds: dict[str, dict[str, object]] = {
        "plain": {"pivot": False},
        "auto": {},
        "pivoted": {"pivot": True},
        "periodic": {"pivot": False, "periodic": True},
        "periodic-auto": {"periodic": True},
        "periodic-pivoted": {"pivot": True, "periodic": True},
    }
    axes, unknowns = ("last", "first"), 1 << 14
    cases = [
        solve_case(kind, rows, max(1, total // rows), axis, dtype, **options)
        for kind, options in kinds.items()
        for dtype in DTYPES
        for axis in axes
        for rows, total in ((16, unknowns), (64, unknowns), (256, unknowns), (2000, 1 << 16))
    ]
    cases += [
        solve_case(f"memory-{kind}", rows, (1 << 21) // rows, axis, dtype, **kinds[kind])
        for kind in ("plain", "periodic", "pivoted")
        for dtype in ("f32", "f64")
        for axis in axes
        for rows in (64, 512)
    ]
    cases += [
        solve_case(f"long-{kind}", rows, batch, axis, dtype, **kinds[kind])
        for kind in ("plain", "periodic", "pivoted")
        for dtype in ("f32", "f64", "c128")
        for axis in axes
        for rows, batch in ((1 << 14, 1), (1 << 18, 1), (1 << 16, 6))
    ]
    cases += [
        solve_case(f"method-{method}", 256, 64, axis, dtype, method=method)
        for method in ("thomas", "cr", "pcr", "cr-pcr", "pcr-thomas", "partition")
        for dtype in ("f32", "f64")
        for axis in axes
    ]
    cases += [
        solve_case("small", rows, batch, "last", dtype)
        for dtype in ("f64", "c128")
        for rows, batch in ((3, 1), (8, 1), (8, 4), (100, 1))
    ]
    cases += [
        factor_case(step, rows, batch, axis, dtype, shared=shared, **options)
        for step, shared in itertools.product(("make", "solve", "transposed"), (False, True))
        for options in ({}, {"pivot": True}, {"periodic": True})
        for dtype in ("f32", "f64", "c128")
        for axis in axes
        for rows, batch in (
            (64, 256),
            (512, 100),
            *([(1 << 16, 4), (1 << 16, 2)] * (dtype == "f64")),
        )
    ]
    cases += [
        factor_case("solve", rows, (1 << 21) // rows, axis, dtype, shared=shared, **options)
        for shared in (False, True)
        for options in ({}, {"periodic": True})
        for dtype in ("f32", "f64")
        for axis in axes
        for rows in (64, 512)
    ]
    # Right-hand sides of one long matrix: few or many, contiguous or adjacent.
    cases += [
        make(step, 1 << 17, batch, axis, dtype, shared=True)
        for make, step in (
            (factor_case, "solve"),
            (factor_case, "transposed"),
            (solve_case, "shared-long"),
        )
        for dtype in ("f32", "f64", "c128")
        for axis, batch in (("last", 2), ("last", 12), ("first", 6), ("first", 24))
    ]
    for more in (
        block_cases,
        step_cases,
        heat_cases,
        transport_cases,
        spline_cases,
        relaxation_cases,
        flow_cases,
        recurrence_cases,
        product_cases,
        side_cases,
        kept_cases,
        grid_cases,
    ):
        cases += more()
    return cases


def chosen(cases: list[Case], patterns: list[str]) -> list[Case]:
    """Return the cases whose names match one of the patterns; all without patterns."""
    found = [
        case
        for case in cases
        if not patterns
        or any(fnmatch.fnmatch(case.name, p) or case.name.startswith(f"{p}/") for p in patterns)
    ]
    if not found:
        sys.exit(f"no case is called {' or '.join(patterns)}: see --list")
    return found


@dataclass
class Measured:
    """What was measured of a case: nanoseconds per unknown, and new/old."""

    name: str
    old: float
    new: float
    ratio: float
    repeat: float | None = None

    @property
    def final(self) -> float:
        """Return the ratio that counts."""
        return self.ratio if self.repeat is None else self.repeat


def alternate(builds: list[Build], calls: list[Call], threads: int, rounds: int) -> list[float]:
    """Return the seconds of a call of each build."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    start = clock()
    calls[0]()
    repeats = max(1, math.ceil(ROUND_SECONDS / max(clock() - start, 1e-7)))
    times: list[list[float]] = [[], []]
    for number in range(rounds):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            builds[side].activate()
            call = calls[side]
            start = clock()
            for _ in range(repeats):
                call()
            times[side].append((clock() - start) / repeats)
    best = max(1, rounds // 4)
    return [sum(sorted(part)[:best]) / best for part in times]


def measure(case: Case, builds: list[Build], threads: int, rounds: int, limit: float) -> Measured:
    """Measure a case, again if the builds differ by more than the limit."""
    maker = case.prepare()

    def seconds(order: tuple[int, ...], rounds: int) -> list[float]:
        """Return the seconds of a call of each build; `order` is that of their making."""
        calls = {side: builds[side].make(maker, threads) for side in order}
        return alternate(builds, [calls[0], calls[1]], threads, rounds)

    old, new = seconds((0, 1), rounds)
    scale = 1e9 / case.unknowns
    found = Measured(case.name, old * scale, new * scale, new / old)
    if max(found.ratio, 1 / found.ratio) > limit:
        pairs = [seconds(order, 2 * rounds) for order in ((1, 0), (0, 1))]
        found.repeat = math.sqrt(math.prod(new / old for old, new in pairs))
    return found


def summary(found: list[Measured], limit: float) -> str:
    """Return the means of the groups of cases, and the cases beyond the limit."""
    groups: dict[str, list[Measured]] = {}
    for one in found:
        groups.setdefault(one.name.split("/")[0], []).append(one)
    lines = [f"{'cases':28} {'number':>6} {'mean':>6} {'min':>6} {'max':>6}"]
    for name, part in [*groups.items(), ("all", found)]:
        ratios = [one.final for one in part]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        lines.append(f"{name:28} {len(part):6} {mean:6.3f} {min(ratios):6.3f} {max(ratios):6.3f}")
    beyond = [one for one in found if one.ratio > limit]
    lines.append(f"{len(beyond)} cases above {limit}, and measured again:")
    lines += [f"  {one.name}: {one.ratio:.3f}, {one.repeat:.3f}" for one in beyond]
    return "\n".join(lines)


def main() -> None:
    """Compare two builds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", nargs="?", help="a copy of the repository, or a compiled module")
    parser.add_argument("new", nargs="?", help="the other one")
    parser.add_argument("cases", nargs="*", help="names, first words of names, or patterns")
    parser.add_argument("--list", action="store_true", help="print the names of the cases")
    parser.add_argument("--threads", type=int, default=1, help="threads of a call")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="times that each build is timed")
    parser.add_argument("--limit", type=float, default=LIMIT, help="ratio that is slower")
    parser.add_argument("--json", metavar="FILE", help="write what was measured")
    options = parser.parse_args()
    if options.list:
        print("\n".join(case.name for case in all_cases()))
        return
    if options.new is None:
        parser.error("name two builds")
    cases = chosen(all_cases(), options.cases)
    builds = [Build(options.old), Build(options.new)]
    for build in builds:
        print(build.description)
    found = []
    for case in cases:
        one = measure(case, builds, options.threads, options.rounds, options.limit)
        again = "" if one.repeat is None else f", again {one.repeat:.3f}"
        print(f"{one.name:48} {one.old:9.3f} ns  {one.ratio:.3f}{again}", flush=True)
        found.append(one)
    print(summary(found, options.limit))
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n")
    sys.exit(any(one.final > options.limit for one in found))


if __name__ == "__main__":
    main()
